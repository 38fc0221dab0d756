"""Proofs that a coupling is optimal: dual potentials for a sum of costs, a cut for the largest cost.

A reader needs no trust in the solver: that u_i + v_j ≤ c_ij for all pairs, or that the target near a set of sources
holds less than the set, can be checked in exact arithmetic with a few lines of code.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tightrope.numerics.arrays import Floats

DUAL_ROUNDING = 2.0**-52


@dataclass(frozen=True, slots=True, eq=False)
class Dual:
    """Potentials u [n], v [m] with u_i + v_j ≤ c_ij for every pair, exactly (Kantorovich duality).

    ``value`` is at most Σ u_i source_i + Σ v_j target_j, rounding included: no coupling costs less.
    """

    u: Floats
    v: Floats
    value: float


def dual(u: Floats, v: Floats, source: Floats, target: Floats) -> Dual:
    """The certificate of feasible potentials, its value rounded down.

    >>> law = np.array([0.5, 0.5])
    >>> 1.5 - 1e-14 < dual(np.array([1.0, 2.0]), np.array([0.0, 0.0]), law, law).value < 1.5
    True
    """
    terms = np.concatenate([u * source, v * target])
    size = float(np.abs(terms).sum())
    return Dual(u, v, math.fsum(terms) - 2 * DUAL_ROUNDING * size)


@dataclass(frozen=True, slots=True, eq=False)
class Cut:
    """A set S of sources whose targets nearer than ``value`` hold less than S: some mass goes ``value`` or further.

    ``sources`` [n] marks S, ``targets`` [m] marks at least every target with a cost below ``value`` from a source in S
    (and with mass), and ``surplus`` = source(S) − target(those), positive (Hall's condition, or the minimum cut).
    """

    sources: np.ndarray[tuple[int], np.dtype[np.bool_]]
    targets: np.ndarray[tuple[int], np.dtype[np.bool_]]
    surplus: float
    value: float
