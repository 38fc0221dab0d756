"""K(z) = log E[e^{zL}; L < ∞] from above, for any law: closed form where there is one, from cells where not."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import logsumexp

from tightrope.numerics.arrays import Floats
from tightrope.privacy.laws.composition import Composition, any_of
from tightrope.privacy.laws.law import LossLaw

Orders = tuple[float, ...]
FINEST_CELLS = 1e-4
"""Cells are this part of the range of losses wide."""
FAINT_CELL = 1e-40


@dataclass(frozen=True, slots=True, eq=False)
class LogMoments:
    """Upper bounds: K [m] ≥ 0 at m orders, and the mass at +∞ that K leaves out."""

    values: Floats
    infinite_mass: float


def log_moments(total: Composition, orders: Orders) -> LogMoments:
    """K of a composition of one direction, at every order; rounding and the slack of the losses are on top.

    A law whose K is negative, because much of it is infinite, counts as 0.
    """
    parts = [(_of_law(law, orders), n) for law, n in zip(total.laws, total.counts, strict=True)]
    values = sum((n * np.maximum(part.values, 0.0) for part, n in parts), np.zeros(len(orders)))
    infinite = any_of((part.infinite_mass, n) for part, n in parts)
    return LogMoments(values * (1 + 1e-15 * (len(parts) + 1)), min(1.0, infinite * (1 + 1e-15)))


@lru_cache(maxsize=1024)
def _of_law(law: LossLaw, orders: Orders) -> LogMoments:
    """One law; a law that is infinite for certain has no finite part."""
    if law.infinite_mass == 1:
        return LogMoments(np.zeros(len(orders)), 1.0)
    z = np.array(orders)
    points = z.astype(np.complex128)
    known = law.log_moment(points)
    if known is None:
        return _of_cells(law, orders)
    one_by_one = [slice(i, i + 1) for i in range(len(orders))]
    errors = np.concatenate([law.moment_error(points[i], known[i]) for i in one_by_one])
    return LogMoments(
        known.real + errors + z * law.slack + 4e-16 * np.abs(known.real), law.infinite_mass * (1 + law.infinite_error)
    )


def _of_cells(law: LossLaw, orders: Orders) -> LogMoments:
    """The law of the cells' ends dominates; e^{zl} is convex in e^{−l}, so its moment is no smaller."""
    outline = law.cells(0.25)
    held = outline.p > FAINT_CELL
    extent = float(np.max(outline.upper[held]) - np.min(outline.lower[held]))
    cells = law.cells(max(extent * FINEST_CELLS, 1e-300))
    losses, masses = cells.ends()
    held = masses > 0
    losses, logs = losses[held], np.log(masses[held])
    values = np.array([float(logsumexp(z * losses + logs)) for z in orders])
    far = float(np.max(np.abs(losses), initial=0.0))
    error = 1e-15 * (np.array(orders) * far + 64) + math.ulp(1.0) * len(losses)
    return LogMoments(
        values + error + np.array(orders) * cells.slack,
        max(cells.infinite_mass, law.infinite_mass * (1 + law.infinite_error)),
    )
