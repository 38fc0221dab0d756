"""The engine of last resort: any laws at all, cut into cells and moved onto one lattice, from above and from below.

Above: each cell's mass goes to lattice points around it, keeping its mass under P and under Q (the chord of the
profile), so the lattice law dominates; the excess is of order k·h². Below: each loss is rounded down, so it is
dominated; the deficit is of order k·h.
"""

from __future__ import annotations

import math

import numpy as np

from tightrope.errors import PrecisionError
from tightrope.privacy.cells import CAP, Cells
from tightrope.privacy.composition import Composition, any_of
from tightrope.privacy.lattice import Lattice, LatticePart
from tightrope.privacy.law import Floats, LossLaw

POINTS = 1 << 15
"""Lattice points for the widest law's losses."""
EMPTY = 1e-2
"""The step where no finite loss has any mass."""
MOST = 1 << 20
"""Lattice points for 80 standard deviations of the sum."""


def above(total: Composition, step: float) -> Lattice:
    """A lattice sum that dominates the composition."""
    cut = [(law.cells(step).capped(), count) for law, count in zip(total.laws, total.counts, strict=True)]
    infinite = any_of((cells.infinite_mass, count) for cells, count in cut)
    if infinite == 1:
        return Lattice(step, (), 1.0)
    return Lattice(step, tuple(part(*split(*cells.ends(), step), count) for cells, count in cut), infinite)


def below(total: Composition, step: float) -> Lattice:
    """A lattice sum that is dominated by the composition."""
    if total.infinite_mass == 1:
        return Lattice(step, (), 1.0)
    cut = [(law.cells(step), count) for law, count in zip(total.laws, total.counts, strict=True)]
    parts = tuple(part(_floor(cells, step), cells.p, count) for cells, count in cut)
    return Lattice(step, parts, total.infinite_mass)


def step_for(total: Composition) -> float:
    """Lattice step: the widest law's finite range in ``POINTS`` cells, but no finer than 80 standard deviations of
    the sum in ``MOST`` cells.
    """
    shapes = [(_shape(law), count) for law, count in zip(total.laws, total.counts, strict=True)]
    widest = max(width for (width, _), _ in shapes)
    deviation = math.sqrt(math.fsum(count * variance for (_, variance), count in shapes))
    return max(widest / POINTS, 80 * deviation / MOST, 1e-12) if widest > 0 else EMPTY


def _shape(law: LossLaw) -> tuple[float, float]:
    """Finite range of the losses that matter and a bound on their variance, from a coarse cut."""
    coarse = law.cells(0.25).capped()
    held = coarse.p > 1e-40
    low, high = float(np.min(coarse.lower[held], initial=0.0)), float(np.max(coarse.upper[held], initial=0.0))
    mean = float(np.dot(coarse.p[held], coarse.lower[held]))
    spread = np.maximum(np.abs(coarse.lower[held] - mean), np.abs(coarse.upper[held] - mean))
    return high - low, float(np.dot(coarse.p[held], spread**2))


def split(losses: Floats, masses: Floats, step: float) -> tuple[np.ndarray[tuple[int], np.dtype[np.int64]], Floats]:
    """Move atoms to the lattice points around them, keeping P- and Q-mass: (offsets [2n], masses [2n])."""
    low = np.floor(losses / step)
    high = masses * np.clip(np.expm1(low * step - losses) / np.expm1(-step), 0.0, 1.0)
    offsets = np.concatenate([low, low + 1]).astype(np.int64)
    return offsets, np.concatenate([masses - high, high])


def _floor(cells: Cells, step: float) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.floor(np.minimum(cells.lower, CAP) / step).astype(np.int64)


def part(offsets: np.ndarray[tuple[int], np.dtype[np.int64]], masses: Floats, count: int) -> LatticePart:
    """Masses added up by lattice point, from the lowest to the highest that holds any."""
    if not np.all(np.isfinite(masses)):
        raise PrecisionError(f"a cell of the grid has no finite mass among {len(masses)}; the losses are too extreme")
    if not np.any(masses > 0):  # all of it is lost: next to nothing is left at 0
        return LatticePart(np.zeros(1, dtype=np.int64), np.array([1e-300]), count)
    low = int(offsets.min())
    gathered = np.bincount(offsets - low, weights=masses).astype(np.float64)
    held = np.flatnonzero(gathered > math.ulp(0.0))
    return LatticePart((held + low).astype(np.int64), gathered[held], count)
