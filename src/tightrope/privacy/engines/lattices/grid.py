"""The engine of last resort: any laws at all, cut into cells and moved onto one lattice.

Above: each cell's mass goes to lattice points around it, keeping its mass under P and under Q (the chord of the
profile), so the lattice law dominates. Below: the law above less a bound on what the moving may have added. The sum
moved by M, independent steps of bounded range with E[e^{−M} | L] = 1, so it gained at most
E[(e^{|M| − |L − ε|} − 1)₊], which needs the mass near ε only: of order k·h² (``docs/proofs/grid.md``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import special

from tightrope.errors import PrecisionError
from tightrope.numerics.arrays import Floats
from tightrope.privacy.engines.lattices.common_step import SNAP, common_step
from tightrope.privacy.engines.lattices.lattice import Lattice, LatticePart
from tightrope.privacy.engines.lattices.window import Gained, Outline, Window, folded
from tightrope.privacy.laws.composition import Composition, any_of
from tightrope.privacy.laws.law import LossLaw
from tightrope.privacy.laws.loss_cells import Cells

Indices = np.ndarray[tuple[int], np.dtype[np.int64]]
Flags = np.ndarray[tuple[int], np.dtype[np.bool_]]
EVERYWHERE = Window()
EMPTY = 1e-2
"""The step where no finite loss has any mass."""
SPARE_NATS = 6.0
"""Nats above the saddle that are paid for a tilt that is kept: rounding is far below what moving costs."""
ROOM = 4
"""Lattice points for the sum, for each one of the widest law."""
HEAVY = 1e-6
"""Atoms above this mass should lie on the grid."""
HALF_DEVIATIONS = math.sqrt(2 * math.log(4))
"""The sum moves by less than its mean and this many deviations with probability ½ at least."""
COARSE = 1.0
"""A grid that may have moved the sum by more nats than this says nothing from below."""
UNDERFLOW = 1e-300
"""Cells whose masses leave double precision may add up to this."""
FAR_DEVIATIONS = 40.0
"""Deviations beyond which nothing moves, in double precision."""


@dataclass(frozen=True, slots=True, eq=False)
class Grid:
    """The lattice above; the paths on it that were not moved; mean and deviation bounds of the move; mass lost."""

    upper: Lattice
    still: Lattice | None
    drift: float
    deviation: float
    lost: float
    slack: float
    folding: Gained | None = None

    def delta(self, epsilon: float) -> tuple[float, float]:
        """[lower, upper] of δ(ε), rounding included."""
        high, over = self.upper.delta(epsilon - self.slack)
        below, under = self.upper.delta(epsilon + self.slack)
        if not max(self.deviation, self.drift) < COARSE:
            return 0.0, high + over + UNDERFLOW
        gained = self.lost + (self._gained(epsilon + self.slack) if self.deviation else 0.0)
        gained += self.folding.at(epsilon + self.slack, high + over) if self.folding else 0.0
        return max(0.0, below - under - gained * (1 + 1e-9)), high + over + UNDERFLOW

    def above(self, epsilon: float) -> float:
        """The upper end alone."""
        high, over = self.upper.delta(epsilon - self.slack)
        return high + over + UNDERFLOW

    def _gained(self, epsilon: float) -> float:
        """2 Σ W G((|l − ε| − v)₊): each path is seen within v of where it was, with probability ½ or more."""
        near = self.drift + HALF_DEVIATIONS * self.deviation
        losses, masses, error = self.upper.near(epsilon, near + self.drift + FAR_DEVIATIONS * self.deviation)
        if self.still is not None:
            masses = np.maximum(masses - self.still.matched(losses), 0.0) + 1e-12 * masses
        distance = np.maximum(np.abs(losses - epsilon) - near, 0.0)
        gains = self._gain(distance)
        return 2 * float(np.dot(masses, gains)) + 2 * error * float(np.linalg.norm(gains))

    def _gain(self, distance: Floats) -> Floats:
        """∫_a^∞ e^{u−a} min(1, 2 e^{−(u−m)²/2s²}) du for u ≥ m, and 2 below: a bound on E (e^{|M|−a} − 1)₊."""
        m, s = self.drift, self.deviation
        start = np.maximum(distance, m)
        tail = np.exp(m - distance + s * s / 2) * s * math.sqrt(2 * math.pi) * special.ndtr((m + s * s - start) / s)
        return np.asarray(2 * (tail + np.expm1(start - distance)))


def grid(total: Composition, points: int, outline: Outline | None = None, window: Window = EVERYWHERE) -> Grid:
    """The composition on a lattice of about ``points`` points for the widest law, folded onto a window of losses."""
    if total.infinite_mass == 1:
        return Grid(Lattice(EMPTY, (), 1.0), None, 0.0, 0.0, 0.0, 0.0)
    step = step_for(total, points, window)
    counts = total.counts
    cells = [law.between(step, window.low - step, window.high + step / 2) for law in total.laws]
    parts = [folded(each, window, step) for each in cells]
    placed = [_Placed.of(part.cells, step) for part in parts]
    finite = any_of((each.infinite_mass, n) for each, n in zip(cells, counts, strict=True))
    infinite = any_of((p.infinite_mass, n) for p, n in zip(placed, counts, strict=True))
    slack = math.fsum(n * (law.slack + p.snapped) for law, p, n in zip(total.laws, placed, counts, strict=True))
    ranges = math.fsum(n * p.range**2 for p, n in zip(placed, counts, strict=True))
    drift = math.fsum(n * p.range**2 * math.exp(min(p.range, 700.0)) / 2 for p, n in zip(placed, counts, strict=True))
    on_lattice = (_part(p.offsets, p.masses, n, p.infinite_mass) for p, n in zip(placed, counts, strict=True))
    return Grid(
        Lattice(step, tuple(on_lattice), infinite, SPARE_NATS),
        _still(placed, counts, step),
        drift,
        math.sqrt(ranges) / 2,
        max(0.0, finite - total.infinite_mass),
        slack,
        outline.gained(parts) if outline is not None and window != EVERYWHERE else None,
    )


def _still(placed: list[_Placed], counts: tuple[int, ...], step: float) -> Lattice | None:
    """The lattice law of the paths on which nothing was moved; None where every path was."""
    if not all(np.any(p.still) for p in placed):
        return None
    parts = (_part(p.offsets[p.still], p.masses[p.still], n, None) for p, n in zip(placed, counts, strict=True))
    return Lattice(step, tuple(parts), 0.0, SPARE_NATS)


@dataclass(frozen=True, slots=True, eq=False)
class _Placed:
    """Cells on a lattice: points and masses, which of them were not moved, how far others may have been."""

    offsets: Indices
    masses: Floats
    still: Flags
    range: float
    snapped: float
    infinite_mass: float

    @classmethod
    def of(cls, cells: Cells, step: float) -> _Placed:
        losses, masses = cells.ends()
        nearest = np.rint(losses / step)
        off = np.abs(losses - nearest * step)
        on = off <= SNAP * step
        low = np.where(on, nearest, np.floor(losses / step))
        share = np.where(on, 0.0, np.clip(np.expm1(low * step - losses) / np.expm1(-step), 0.0, 1.0))
        high = np.where(on, low, low + 1)
        half = len(cells.lower)
        wide = (high[half:] - low[:half]) * (masses[:half] + masses[half:] > 0)
        still = np.tile(wide == 0, 2)
        return cls(
            np.concatenate([low, low + 1]).astype(np.int64),
            np.concatenate([masses * (1 - share), masses * share]),
            np.concatenate([still, np.zeros_like(still)]),
            float(np.max(wide, initial=0.0)) * step,
            float(np.max(off[on], initial=0.0)) + 2.0**-52 * float(np.max(np.abs(losses), initial=0.0)),
            cells.infinite_mass,
        )


def step_for(total: Composition, points: int, window: Window) -> float:
    """The widest law's finite range in ``points`` cells, but no finer than the sum's range, or 80 of its standard
    deviations, in ``ROOM`` times as many; a divisor of the step of the heavy atoms where they have one.
    """
    shapes = [(_shape(law, window), count) for law, count in zip(total.laws, total.counts, strict=True)]
    widest = max(width for (width, _), _ in shapes)
    deviation = math.sqrt(math.fsum(count * variance for (_, variance), count in shapes))
    extent = min(80 * deviation, math.fsum(count * width for (width, _), count in shapes))
    step = max(widest / points, extent / (ROOM * points), 1e-12) if widest > 0 else EMPTY
    common = common_step([_heavy(law) for law in total.laws])
    return step if common is None or common <= step else common / math.ceil(common / step)


def _heavy(law: LossLaw) -> Floats:
    """Losses of the atoms that should lie on the grid."""
    cells = law.cells(math.inf)
    return np.asarray(cells.lower[(cells.lower == cells.upper) & (cells.low > HEAVY)])


def _shape(law: LossLaw, window: Window) -> tuple[float, float]:
    """Finite range of the losses that matter and a bound on their variance, from a coarse cut."""
    coarse = law.cells(0.25)
    p = coarse.p
    held = p > 1e-40
    lower, upper = (np.clip(end[held], *window) for end in (coarse.lower, coarse.upper))
    low, high = float(np.min(lower, initial=0.0)), float(np.max(upper, initial=0.0))
    mean = float(np.dot(p[held], lower))
    spread = np.maximum(np.abs(lower - mean), np.abs(upper - mean))
    return high - low, float(np.dot(p[held], spread**2))


def split(losses: Floats, masses: Floats, step: float) -> tuple[Indices, Floats]:
    """Move atoms to the lattice points around them, keeping P- and Q-mass: (offsets [2n], masses [2n])."""
    low = np.floor(losses / step)
    high = masses * np.clip(np.expm1(low * step - losses) / np.expm1(-step), 0.0, 1.0)
    offsets = np.concatenate([low, low + 1]).astype(np.int64)
    return offsets, np.concatenate([masses - high, high])


def _part(offsets: Indices, masses: Floats, count: int, missing: float | None) -> LatticePart:
    """Masses added up by lattice point, those that hold any."""
    if not np.all(np.isfinite(masses)):
        raise PrecisionError(f"a cell of the grid has no finite mass among {len(masses)}; the losses are too extreme")
    if not np.any(masses > 0):  # all of it is lost: next to nothing is left at 0
        return LatticePart(np.zeros(1, dtype=np.int64), np.array([1e-300]), count, 1.0)
    low = int(offsets.min())
    gathered = np.bincount(offsets - low, weights=masses).astype(np.float64)
    held = np.flatnonzero(gathered > math.ulp(0.0))
    return LatticePart.of((held + low).astype(np.int64), gathered[held], count, missing)
