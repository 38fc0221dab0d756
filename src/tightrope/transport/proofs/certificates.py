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
SPLIT = 2.0**27 + 1
LOST = 2.0**-1070
"""At most what a product and its halves lose below the least float."""


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
    heights, masses = np.concatenate([u, v]), np.concatenate([source, target])
    counted = (heights != 0) & (masses != 0)
    if not counted.any():
        return Dual(u, v, 0.0)
    _, power = math.frexp(float(np.abs(heights[counted]).max()))
    terms = _exact_products(np.ldexp(heights[counted], -power), masses[counted])
    value = math.fsum(terms) - LOST * len(terms)
    return Dual(u, v, math.nextafter(math.ldexp(math.nextafter(value, -math.inf), power), -math.inf))


def _exact_products(one: Floats, other: Floats) -> Floats:
    """Numbers whose sum is Σ one_i other_i, up to what falls below the least float: products and what these lost.

    Factors are at most 1, split into halves of 26 bits (Dekker 1971), so that potentials far above the cost, which
    cancel in the sum, take no digits from it.
    """
    product = one * other
    (high, low), (long, short) = _halves(one), _halves(other)
    lost = ((high * long - product) + high * short + low * long) + low * short
    return np.concatenate([product, lost])


def _halves(values: Floats) -> tuple[Floats, Floats]:
    wide = values * SPLIT
    high = wide - (wide - values)
    return high, values - high


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
