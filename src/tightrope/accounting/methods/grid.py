"""The engine of last resort: any laws at all, cut into cells and moved onto one lattice.

Above: each cell's mass goes to lattice points around it, keeping its mass under P and under Q (the chord of the
profile), so the lattice law dominates. Below: the law above less a bound on what the moving may have added. The sum
moved by M, independent steps of bounded range with E[e^{−M} | L] = 1, so it gained at most
E[(e^{|M| − |L − ε|} − 1)₊], which needs the mass near ε only: of order k·h² (``docs/proofs/grid.md``).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np
from scipy import special

from tightrope.accounting.bounds import Interval, outward
from tightrope.accounting.distributions.base import LossLaw
from tightrope.accounting.distributions.composition import Composition, any_of
from tightrope.accounting.distributions.loss_cells import Cells
from tightrope.accounting.methods.lattice import Lattice, LatticePart
from tightrope.accounting.methods.lattice_method import SNAP, common_step
from tightrope.accounting.methods.method import Engine, Guess
from tightrope.errors import PrecisionError
from tightrope.numerics.arrays import Floats

# The losses that a grid must tell apart for δ(ε), and what folding all others onto the ends can have added.
#
# Where one loss is above a, the sum is above ε whatever the others are, but for next to nothing; there 1 − e^{ε−l} is
# linear in e^{−l}, so its mass may as well lie at a and at ∞, with both masses kept. A loss below b is as rare as a
# rounding, and may lie at b. Laws of small rates have losses a thousand times as large as those that matter, and a
# grid between b and a is as much finer (``docs/proofs/grid.md``).

COARSE_CUT = 0.25
HELD_MASS = 1e-40
"""Mass below this is not looked for."""
RARE_MASS = 1e-12
"""All steps together, the mass that is folded onto b: so much of δ is lost from below."""
FAR = 36.0
"""The other losses are below ε − a with a probability of about e^{−36}."""
WINDOW_GROWTH = 1.25
"""Windows are geometric ones, so that neighbouring ε share a grid."""
WORTH = 2.0
"""Windows that are not this much shorter than a law gain nothing."""
RATES_TRIED = 2.0 ** np.arange(-8, 24)
"""Chernoff's bounds are tried at these, over the deviation of the sum."""
ROUNDED_SUMS = 1e-13
"""Relative error of sums of masses."""


class Window(NamedTuple):
    """From b to a; without ends where nothing is folded."""

    low: float = -math.inf
    high: float = math.inf


class Folded(NamedTuple):
    """Cells between the ends, atoms on these; the masses that were folded there, and where they are."""

    cells: Cells
    above: float
    below: float
    bottom: float
    top: float


def folded(cells: Cells, window: Window, step: float) -> Folded:
    """Cells that were cut at multiples of the step within the window, folded onto the outermost of these.

    Above, e^top of the mass under Q is kept there, and the rest of that under P is lost; below, all mass goes up.
    """
    above = cells.lower >= window.high - step / 2
    below = cells.upper <= window.low
    if not (above.any() or below.any()):
        return Folded(cells, 0.0, 0.0, -math.inf, math.inf)
    bottom = float(np.max(cells.upper[below], initial=-math.inf))
    top = float(np.min(cells.lower[above], initial=math.inf))
    # The next atom may be far beyond the window: the chord from any place up to it holds all that is folded.
    ends = bottom, min(top, math.ceil(window.high / step) * step) if above.any() else top
    less, more = math.fsum(cells.p[below]), math.fsum(cells.p[above])
    kept = min(more, math.fsum(cells.q[above]) * math.exp(min(ends[1], 700.0)) * (1 - ROUNDED_SUMS))
    atoms = [(end, mass) for end, mass in zip(ends, (less, kept), strict=True) if mass > 0]
    losses, masses = np.array([end for end, _ in atoms]), np.array([mass for _, mass in atoms])
    inner = replace(cells.select_cells(~above & ~below), infinite_mass=cells.infinite_mass + (more - kept))
    return Folded(inner.joined(Cells.atoms(losses, masses, 0.0, 0.0)), more, less, *ends)


@dataclass(frozen=True, slots=True, eq=False)
class Outline:
    """A composition in coarse cells: lower ends and masses of each law, how many there are, the window's lower end."""

    losses: tuple[tuple[Floats, Floats], ...]
    counts: tuple[int, ...]
    low: float
    top: float
    """The largest loss of all laws that is looked for."""
    reach: float
    """The sum of all losses is below minus this with a probability of about e^{−FAR}."""

    @classmethod
    def of(cls, total: Composition) -> Self:
        """From the cells that the laws come with."""
        cells = [law.cells(COARSE_CUT) for law in total.laws]
        # The loss, no more than 0, below which all laws together hold next to nothing.
        upper = np.concatenate([each.upper for each in cells])
        masses = np.concatenate([n * each.p for each, n in zip(cells, total.counts, strict=True)])
        order = np.argsort(upper)
        ends = upper[order]
        held = int(np.searchsorted(np.cumsum(masses[order]), RARE_MASS, side="right"))
        first = int(np.searchsorted(ends, ends[min(held, len(ends) - 1)]))  # many end at one loss where a rate is small
        low = min(float(ends[first - 1]), 0.0) if first else -math.inf
        losses = tuple((each.lower, each.p) for each in cells)
        top = max(float(np.max(each.upper[each.p > HELD_MASS], initial=0.0)) for each in cells)
        rates, logs = _moments([(np.maximum(lower, low), p) for lower, p in losses], total.counts)
        reach = float(np.min((logs @ np.array(total.counts, dtype=np.float64) + FAR) / rates))
        return cls(losses, total.counts, low, top, max(reach, 0.0))

    def window(self, epsilon: float) -> Window:
        """One that serves ε, if it gains anything."""
        needed = max(epsilon, 0.0) + self.reach
        if not self.reach > 0 or not needed * WINDOW_GROWTH * WORTH < self.top:
            return Window()
        places = math.ceil(math.log(needed / self.reach) / math.log(WINDOW_GROWTH))
        return Window(self.low, self.reach * WINDOW_GROWTH**places)

    def gained(self, parts: Sequence[Folded]) -> Gained:
        """What folding has added, for every ε."""
        tops = [part.top for part in parts]
        clipped = [
            (np.clip(lower, part.bottom, part.top), p) for (lower, p), part in zip(self.losses, parts, strict=True)
        ]
        rates, logs = _moments(clipped, self.counts)
        others = (logs @ np.array(self.counts, dtype=np.float64))[:, None] - logs
        above = [n * part.above for part, n in zip(parts, self.counts, strict=True)]
        below = math.fsum(n * part.below for part, n in zip(parts, self.counts, strict=True))
        return Gained(rates, others, np.array(above), np.array(tops), below)


@dataclass(frozen=True, slots=True, eq=False)
class Gained:
    """Rates [r]; log E e^{−rate·R} [r, laws] for the sum R of all losses but one of a law; masses that were folded from
    above, and to where [laws]; the mass folded from below.
    """

    rates: Floats
    others: Floats
    above: Floats
    tops: Floats
    below: float

    def at(self, epsilon: float, high: float) -> float:
        """What δ(ε) ≤ ``high`` can have gained: paths with a loss above the top and a sum of the others below ε − top,
        those that went to ∞ for rounding's sake; and a part of δ itself by losses from below.
        """
        folds = self.above > 0
        rest = epsilon - np.where(folds, self.tops, 0.0)
        chances = np.exp(np.minimum(np.min(self.others + self.rates[:, None] * rest, axis=0), 0.0))
        lost = 2 * ROUNDED_SUMS * float(np.sum(self.above))
        return (float(np.dot(self.above[folds], chances[folds])) + lost + self.below * high) * (1 + 1e-9)


def _moments(losses: Sequence[tuple[Floats, Floats]], counts: Sequence[int]) -> tuple[Floats, Floats]:
    """Rates [r] and log E e^{−rate·L} [r, laws]."""
    held = [(lower[p > 0], p[p > 0]) for lower, p in losses]
    squares = [float(np.dot(p, np.clip(lower, -1, 1) ** 2)) for lower, p in held]
    variance = math.fsum(n * square for square, n in zip(squares, counts, strict=True))
    rates = np.asarray(RATES_TRIED / math.sqrt(max(variance, 1e-300)), dtype=np.float64)
    return rates, np.stack([_log_moment(lower, p, rates) for lower, p in held], axis=1)


def _log_moment(lower: Floats, p: Floats, rates: Floats) -> Floats:
    """−∞ for a law whose losses are all infinite."""
    if not len(p):
        return np.full(len(rates), -math.inf)
    exponents = np.log(p) - rates[:, None] * lower
    top = np.max(exponents, axis=1)
    return np.asarray(top + np.log(np.sum(np.exp(exponents - top[:, None]), axis=1)))


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
    on_lattice = (
        _sum_by_lattice_point(p.offsets, p.masses, n, p.infinite_mass) for p, n in zip(placed, counts, strict=True)
    )
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
    parts = (
        _sum_by_lattice_point(p.offsets[p.still], p.masses[p.still], n, None)
        for p, n in zip(placed, counts, strict=True)
    )
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


def _sum_by_lattice_point(offsets: Indices, masses: Floats, count: int, missing: float | None) -> LatticePart:
    """Masses added up by lattice point, those that hold any."""
    if not np.all(np.isfinite(masses)):
        raise PrecisionError(f"a cell of the grid has no finite mass among {len(masses)}; the losses are too extreme")
    if not np.any(masses > 0):  # all of it is lost: next to nothing is left at 0
        return LatticePart(np.zeros(1, dtype=np.int64), np.array([1e-300]), count, 1.0)
    low = int(offsets.min())
    gathered = np.bincount(offsets - low, weights=masses).astype(np.float64)
    held = np.flatnonzero(gathered > math.ulp(0.0))
    return LatticePart.of((held + low).astype(np.int64), gathered[held], count, missing)


# The engine of last resort, as fine as it must be.

GRIDS = (1 << 13, 1 << 16, 1 << 19)
"""Lattice points for the widest law."""
GRIDS_KEPT = 4
NARROW_ENOUGH = 1e-7
"""Relative width of a bracket that is good enough not to try a finer grid."""

STILL = 1e-8
"""Relative fall of the upper end, from one grid to the next, that leaves a 64th of that to gain."""


@dataclass(frozen=True)
class Gridded(Engine):
    """Grids, each eight times finer than the last, until the bracket is narrow."""

    total: Composition
    _made: dict[tuple[int, Window], Grid] = field(default_factory=dict)
    name = "grid"

    def delta(self, epsilon: float) -> Interval:
        if epsilon >= self.total.largest + self.total.slack:
            return self.total.infinite_bounds
        low, high = 0.0, 1.0
        for points in GRIDS:
            try:
                finer = self._grid(points, epsilon).delta(epsilon)
            except PrecisionError:
                if points == GRIDS[0]:
                    raise
                break
            low, high = max(low, finer[0]), min(high, finer[1])
            if high - low <= NARROW_ENOUGH * low:
                break
        return outward(low, low * self.total.inexact)[0], outward(high, high * self.total.inexact)[1]

    def upper(self, epsilon: float) -> float:
        """Without lower ends: as they move by h², an upper end that stays where it was is as good as it gets."""
        if epsilon >= self.total.largest + self.total.slack:
            return self.delta(epsilon)[1]
        high = 1.0
        for points in GRIDS:
            try:
                finer = self._grid(points, epsilon).above(epsilon)
            except PrecisionError:
                if points == GRIDS[0]:
                    raise
                break
            settled, high = finer >= high * (1 - STILL), min(high, finer)
            if settled:
                break
        return outward(high, high * self.total.inexact)[1]

    def guess(self, target: float) -> Guess | None:
        """From the coarsest grid."""
        try:
            return self._grid(GRIDS[0], 0.0).upper.guess(target)
        except PrecisionError:
            return None

    def _grid(self, points: int, epsilon: float) -> Grid:
        """Of the window that serves ε; few are kept."""
        key = points, self._outline.window(epsilon)
        if key not in self._made:
            while len(self._made) >= GRIDS_KEPT:
                self._made.pop(next(iter(self._made)))
            self._made[key] = grid(self.total, points, self._outline, key[1])
        return self._made[key]

    @cached_property
    def _outline(self) -> Outline:
        return Outline.of(self.total)
