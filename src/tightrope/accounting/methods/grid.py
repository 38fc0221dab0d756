"""The fallback method for arbitrary distributions: they are cut into cells and moved onto one lattice.

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

from tightrope.accounting.bounds import Interval, probability_error_bounds
from tightrope.accounting.distributions.composition import Composition, probability_of_any
from tightrope.accounting.distributions.loss_cells import LossCells
from tightrope.accounting.methods.lattice import Lattice, LatticePart
from tightrope.accounting.methods.lattice_method import SNAP_TOLERANCE, common_loss_step
from tightrope.accounting.methods.method import EpsilonGuess, Method
from tightrope.errors import PrecisionError
from tightrope.numerics.arrays import Floats

COARSE_CUT = 0.25
IGNORED_MASS = 1e-40
"""Smaller masses are ignored when the window is chosen."""
RARE_MASS = 1e-12
"""Mass folded onto b, all steps together: the lower bound on δ loses this much, relative to δ."""
FAR_NATS = 36.0
"""The other losses are below ε − a with a probability of about e^{−36}."""
WINDOW_GROWTH = 1.25
"""Ratio of successive windows, which form a geometric sequence so that neighboring ε share a grid."""
MIN_SHORTENING = 2.0
"""A window is used only if it is shorter than a distribution by this factor."""
RELATIVE_RATES = 2.0 ** np.arange(-8, 24)
"""Chernoff's bounds are tried at these, over the deviation of the sum."""
SUM_ERROR = 1e-13
"""Relative error of sums of masses."""


class GridWindow(NamedTuple):
    """The losses, from b to a, that a grid must distinguish for δ(ε); infinite without folding.

    If one loss is above a, the sum is above ε for any values of the others, up to a negligible probability; there
    1 − e^{ε−l} is linear in e^{−l}, so its mass may be moved to a and to ∞, with both masses kept. A loss below b is as
    rare as a rounding error, and may be moved to b. At small rates some losses are a thousand times as large as those
    that matter, and a grid between b and a is finer by that factor (``docs/proofs/grid.md``).
    """

    low: float = -math.inf
    high: float = math.inf


class FoldedCells(NamedTuple):
    """Cells between the ends, atoms at the ends; the masses that were folded there, and their losses."""

    cells: LossCells
    above: float
    below: float
    bottom: float
    top: float


def fold_into_window(cells: LossCells, window: GridWindow, step: float) -> FoldedCells:
    """Fold cells, cut at multiples of the step, onto the outermost multiples in the window.

    Above, e^top of the mass under Q is kept there, and the rest of that under P is lost; below, all mass goes up.
    """
    above = cells.lower >= window.high - step / 2
    below = cells.upper <= window.low
    if not (above.any() or below.any()):
        return FoldedCells(cells, 0.0, 0.0, -math.inf, math.inf)
    bottom = float(np.max(cells.upper[below], initial=-math.inf))
    top = float(np.min(cells.lower[above], initial=math.inf))
    # The next atom may be far beyond the window: the chord up to any point before it contains all folded mass.
    ends = bottom, min(top, math.ceil(window.high / step) * step) if above.any() else top
    mass_below, mass_above = math.fsum(cells.p_masses[below]), math.fsum(cells.p_masses[above])
    at_top = min(mass_above, math.fsum(cells.q_masses[above]) * math.exp(min(ends[1], 700.0)) * (1 - SUM_ERROR))
    atoms = [(end, mass) for end, mass in zip(ends, (mass_below, at_top), strict=True) if mass > 0]
    losses, masses = np.array([end for end, _ in atoms]), np.array([mass for _, mass in atoms])
    inner = replace(cells.select_cells(~above & ~below), infinite_mass=cells.infinite_mass + (mass_above - at_top))
    folded = inner.join_bounds(LossCells.from_atoms(losses, masses, 0.0, 0.0))
    return FoldedCells(folded, mass_above, mass_below, *ends)


@dataclass(frozen=True, slots=True, eq=False)
class CoarseComposition:
    """A composition in coarse cells: lower ends and masses of each distribution, counts, the window's lower end."""

    losses: tuple[tuple[Floats, Floats], ...]
    counts: tuple[int, ...]
    low: float
    top: float
    """The largest relevant loss of all distributions."""
    reach: float
    """The sum of all losses is below minus this with a probability of about e^{−FAR_NATS}."""

    @classmethod
    def from_cells(cls, total: Composition) -> Self:
        """Return an outline from the coarse cells of the distributions."""
        cells = [law.loss_cells(COARSE_CUT) for law in total.laws]
        # The loss, no more than 0, below which all distributions together have negligible mass.
        upper = np.concatenate([part.upper for part in cells])
        masses = np.concatenate([n * part.p_masses for part, n in zip(cells, total.counts, strict=True)])
        order = np.argsort(upper)
        ends = upper[order]
        rare = int(np.searchsorted(np.cumsum(masses[order]), RARE_MASS, side="right"))
        first = int(np.searchsorted(ends, ends[min(rare, len(ends) - 1)]))  # many end at one loss where a rate is small
        low = min(float(ends[first - 1]), 0.0) if first else -math.inf
        losses = tuple((part.lower, part.p_masses) for part in cells)
        top = max(float(np.max(part.upper[part.p_masses > IGNORED_MASS], initial=0.0)) for part in cells)
        rates, logs = _log_moments_at_rates([(np.maximum(lower, low), p) for lower, p in losses], total.counts)
        reach = float(np.min((logs @ np.array(total.counts, dtype=np.float64) + FAR_NATS) / rates))
        return cls(losses, total.counts, low, top, max(reach, 0.0))

    def folding_window(self, epsilon: float) -> GridWindow:
        """Return a window for ε, or an infinite one if folding is not worthwhile."""
        needed = max(epsilon, 0.0) + self.reach
        if not self.reach > 0 or not needed * WINDOW_GROWTH * MIN_SHORTENING < self.top:
            return GridWindow()
        steps = math.ceil(math.log(needed / self.reach) / math.log(WINDOW_GROWTH))
        return GridWindow(self.low, self.reach * WINDOW_GROWTH**steps)

    def folding_error(self, parts: Sequence[FoldedCells]) -> FoldedMoments:
        """Return a bound on the effect of folding, for every ε."""
        tops = [part.top for part in parts]
        clipped = [
            (np.clip(lower, part.bottom, part.top), p) for (lower, p), part in zip(self.losses, parts, strict=True)
        ]
        rates, logs = _log_moments_at_rates(clipped, self.counts)
        others = (logs @ np.array(self.counts, dtype=np.float64))[:, None] - logs
        above = [n * part.above for part, n in zip(parts, self.counts, strict=True)]
        below = math.fsum(n * part.below for part, n in zip(parts, self.counts, strict=True))
        return FoldedMoments(rates, others, np.array(above), np.array(tops), below)


@dataclass(frozen=True, slots=True, eq=False)
class FoldedMoments:
    """Rates [r]; log E e^{−rate·R} [r, laws] for the sum R of all losses but one of a distribution; masses folded from
    above, and their new losses [laws]; the mass folded from below.
    """

    rates: Floats
    others: Floats
    above: Floats
    tops: Floats
    below: float

    def folding_error_bound(self, epsilon: float, high: float) -> float:
        """Bound the increase of δ(ε) ≤ ``high``: paths with a loss above the top and a sum of the others below ε − top,
        paths moved to ∞ because of rounding, and a part of δ itself by losses from below.
        """
        is_folded = self.above > 0
        epsilon_of_others = epsilon - np.where(is_folded, self.tops, 0.0)
        probabilities = np.exp(np.minimum(np.min(self.others + self.rates[:, None] * epsilon_of_others, axis=0), 0.0))
        rounding = 2 * SUM_ERROR * float(np.sum(self.above))
        return (float(np.dot(self.above[is_folded], probabilities[is_folded])) + rounding + self.below * high) * (
            1 + 1e-9
        )


def _log_moments_at_rates(losses: Sequence[tuple[Floats, Floats]], counts: Sequence[int]) -> tuple[Floats, Floats]:
    """Return rates [r] and log E e^{−rate·L} [r, laws]."""
    positive = [(lower[p > 0], p[p > 0]) for lower, p in losses]
    squares = [float(np.dot(p, np.clip(lower, -1, 1) ** 2)) for lower, p in positive]
    variance = math.fsum(n * square for square, n in zip(squares, counts, strict=True))
    rates = np.asarray(RELATIVE_RATES / math.sqrt(max(variance, 1e-300)), dtype=np.float64)
    log_moments = np.full((len(rates), len(positive)), -math.inf)  # as for a distribution with only infinite losses
    for column, (lower, p) in enumerate(positive):
        if len(p):
            exponents = np.log(p) - rates[:, None] * lower
            top = np.max(exponents, axis=1)
            log_moments[:, column] = top + np.log(np.sum(np.exp(exponents - top[:, None]), axis=1))
    return rates, log_moments


Indices = np.ndarray[tuple[int], np.dtype[np.int64]]
Flags = np.ndarray[tuple[int], np.dtype[np.bool_]]
EVERYWHERE = GridWindow()
EMPTY_STEP = 1e-2
"""The step if no finite loss has mass."""
TILT_NATS = 6.0
"""Nats above the saddle at which a cached tilt is reused: rounding is far below the error of moving."""
EXTENT_FACTOR = 4
"""Lattice points for the sum, for each one of the widest distribution."""
HEAVY_ATOM = 1e-6
"""Atoms above this mass should lie on the grid."""
HALF_DEVIATIONS = math.sqrt(2 * math.log(4))
"""The sum moves by less than its mean and this many deviations with probability ½ at least."""
MAX_MOVE = 1.0
"""If a grid may have moved the sum by more nats than this, it gives no lower bound."""
UNDERFLOW = 1e-300
"""Bound on the sum of masses that underflow in double precision."""
FAR_DEVIATIONS = 40.0
"""Number of deviations beyond which the move's density is 0 in double precision."""


@dataclass(frozen=True, slots=True, eq=False)
class Grid:
    """A lattice distribution that dominates, and what bounds its excess over the true one."""

    upper: Lattice
    unmoved: Lattice | None
    """The paths on it of which no loss was moved."""
    drift: float
    """Bound on the mean of the move of a path."""
    deviation: float
    """Bound on the standard deviation of the move of a path."""
    lost: float
    """Finite mass that became infinite."""
    slack: float
    folding: FoldedMoments | None = None

    def delta(self, epsilon: float) -> tuple[float, float]:
        """Return [lower, upper] of δ(ε), including rounding."""
        high, high_error = self.upper.delta(epsilon - self.slack)
        low, low_error = self.upper.delta(epsilon + self.slack)
        if not max(self.deviation, self.drift) < MAX_MOVE:
            return 0.0, high + high_error + UNDERFLOW
        gained = self.lost + (self._splitting_error(epsilon + self.slack) if self.deviation else 0.0)
        gained += self.folding.folding_error_bound(epsilon + self.slack, high + high_error) if self.folding else 0.0
        return max(0.0, low - low_error - gained * (1 + 1e-9)), high + high_error + UNDERFLOW

    def delta_upper_bound(self, epsilon: float) -> float:
        """Return the upper end alone."""
        high, error = self.upper.delta(epsilon - self.slack)
        return high + error + UNDERFLOW

    def _splitting_error(self, epsilon: float) -> float:
        """Return 2 Σ W G((|l − ε| − v)₊): each path stays within v of its position with probability ½ or more."""
        near = self.drift + HALF_DEVIATIONS * self.deviation
        losses, masses, error = self.upper.masses_near(epsilon, near + self.drift + FAR_DEVIATIONS * self.deviation)
        if self.unmoved is not None:
            masses = np.maximum(masses - self.unmoved.mass_lower_bounds(losses), 0.0) + 1e-12 * masses
        distance = np.maximum(np.abs(losses - epsilon) - near, 0.0)
        gains = self._excess_bound(distance)
        return 2 * float(np.dot(masses, gains)) + 2 * error * float(np.linalg.norm(gains))

    def _excess_bound(self, distance: Floats) -> Floats:
        """Return a bound on E (e^{|M|−a} − 1)₊: ∫_a^∞ e^{u−a} min(1, 2 e^{−(u−m)²/2s²}) du for u ≥ m, and 2 below."""
        m, s = self.drift, self.deviation
        start = np.maximum(distance, m)
        tail = np.exp(m - distance + s * s / 2) * s * math.sqrt(2 * math.pi) * special.ndtr((m + s * s - start) / s)
        return np.asarray(2 * (tail + np.expm1(start - distance)))


def compose_on_grid(
    total: Composition, points: int, outline: CoarseComposition | None = None, window: GridWindow = EVERYWHERE
) -> Grid:
    """Compose on a lattice with about ``points`` points for the widest distribution, folded onto a window of losses."""
    if total.infinite_mass == 1:
        return Grid(Lattice(EMPTY_STEP, (), 1.0), None, 0.0, 0.0, 0.0, 0.0)
    step = step_for(total, points, window)
    counts = total.counts
    cells = [law.loss_cells_between(step, window.low - step, window.high + step / 2) for law in total.laws]
    parts, snapped = [], []
    for law_cells in cells:
        parts.append(fold_into_window(law_cells, window, step))
        snapped.append(_LatticeCells.from_cells(parts[-1].cells, step))
    before_rounding = probability_of_any(
        (law_cells.infinite_mass, n) for law_cells, n in zip(cells, counts, strict=True)
    )
    infinite = probability_of_any((p.infinite_mass, n) for p, n in zip(snapped, counts, strict=True))
    slacks, squared_ranges, drifts, upper = [], [], [], []
    for law, p, n in zip(total.laws, snapped, counts, strict=True):
        slacks.append(n * (law.rounding_error_bound + p.largest_snap))
        squared_ranges.append(n * p.range**2)
        drifts.append(n * p.range**2 * math.exp(min(p.range, 700.0)) / 2)
        upper.append(_sum_by_lattice_point(p.offsets, p.masses, n, p.infinite_mass))
    unmoved = None
    if all(np.any(p.unmoved) for p in snapped):
        unmoved_parts = (
            _sum_by_lattice_point(p.offsets[p.unmoved], p.masses[p.unmoved], n, None)
            for p, n in zip(snapped, counts, strict=True)
        )
        unmoved = Lattice(step, tuple(unmoved_parts), 0.0, TILT_NATS)
    return Grid(
        Lattice(step, tuple(upper), infinite, TILT_NATS),
        unmoved,
        drift=math.fsum(drifts),
        deviation=math.sqrt(math.fsum(squared_ranges)) / 2,
        lost=max(0.0, before_rounding - total.infinite_mass),
        slack=math.fsum(slacks),
        folding=outline.folding_error(parts) if outline is not None and window != EVERYWHERE else None,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _LatticeCells:
    """Cells on a lattice: points and masses, flags of the unmoved ones, and bounds on the moves of the others."""

    offsets: Indices
    masses: Floats
    unmoved: Flags
    range: float
    largest_snap: float
    infinite_mass: float

    @classmethod
    def from_cells(cls, cells: LossCells, step: float) -> _LatticeCells:
        losses, masses = cells.dominating_atoms()
        nearest = np.rint(losses / step)
        distance = np.abs(losses - nearest * step)
        on = distance <= SNAP_TOLERANCE * step
        low = np.where(on, nearest, np.floor(losses / step))
        upper_part = np.where(on, 0.0, np.clip(np.expm1(low * step - losses) / np.expm1(-step), 0.0, 1.0))
        high = np.where(on, low, low + 1)
        half = len(cells.lower)
        width = (high[half:] - low[:half]) * (masses[:half] + masses[half:] > 0)
        unmoved = np.tile(width == 0, 2)
        return cls(
            np.concatenate([low, low + 1]).astype(np.int64),
            np.concatenate([masses * (1 - upper_part), masses * upper_part]),
            np.concatenate([unmoved, np.zeros_like(unmoved)]),
            range=float(np.max(width, initial=0.0)) * step,
            largest_snap=float(np.max(distance[on], initial=0.0))
            + 2.0**-52 * float(np.max(np.abs(losses), initial=0.0)),
            infinite_mass=cells.infinite_mass,
        )


def step_for(total: Composition, points: int, window: GridWindow) -> float:
    """Return the step of a grid with about ``points`` points for the widest distribution.

    It is at least the sum's range, or 80 of its standard deviations, divided by ``EXTENT_FACTOR`` times as many points;
    a divisor of the step of the heavy atoms if they have one.
    """
    # The finite range of the relevant losses of each distribution and a bound on their variance, from coarse cells.
    widths, variances = [], []
    for law in total.laws:
        coarse = law.loss_cells(0.25)
        relevant = coarse.p_masses > 1e-40
        p = coarse.p_masses[relevant]
        lower, upper = (np.clip(end[relevant], *window) for end in (coarse.lower, coarse.upper))
        widths.append(float(np.max(upper, initial=0.0)) - float(np.min(lower, initial=0.0)))
        mean = float(np.dot(p, lower))
        distance = np.maximum(np.abs(lower - mean), np.abs(upper - mean))
        variances.append(float(np.dot(p, distance**2)))
    widest = max(widths)
    deviation = math.sqrt(math.fsum(n * variance for n, variance in zip(total.counts, variances, strict=True)))
    extent = min(80 * deviation, math.fsum(n * width for n, width in zip(total.counts, widths, strict=True)))
    step = max(widest / points, extent / (EXTENT_FACTOR * points), 1e-12) if widest > 0 else EMPTY_STEP
    atoms = [law.loss_cells(math.inf) for law in total.laws]
    heavy = [cells.lower[(cells.lower == cells.upper) & (cells.low > HEAVY_ATOM)] for cells in atoms]
    common = common_loss_step(heavy)
    return step if common is None or common <= step else common / math.ceil(common / step)


def split_to_lattice(losses: Floats, masses: Floats, step: float) -> tuple[Indices, Floats]:
    """Move atoms to the lattice points around them, keeping P- and Q-mass: (offsets [2n], masses [2n])."""
    low = np.floor(losses / step)
    high = masses * np.clip(np.expm1(low * step - losses) / np.expm1(-step), 0.0, 1.0)
    offsets = np.concatenate([low, low + 1]).astype(np.int64)
    return offsets, np.concatenate([masses - high, high])


def _sum_by_lattice_point(offsets: Indices, masses: Floats, count: int, missing: float | None) -> LatticePart:
    """Return the masses summed by lattice point, without empty points."""
    if not np.all(np.isfinite(masses)):
        raise PrecisionError(f"a cell of the grid has no finite mass among {len(masses)}; the losses are too extreme")
    if not np.any(masses > 0):  # all of it is lost: next to nothing is left at 0
        return LatticePart(np.zeros(1, dtype=np.int64), np.array([1e-300]), count, 1.0)
    low = int(offsets.min())
    span = int(offsets.max()) - low
    if span > MAX_SPAN:
        raise PrecisionError(f"the losses span {span} lattice points, more than {MAX_SPAN}")
    gathered = np.bincount(offsets - low, weights=masses).astype(np.float64)
    points = np.flatnonzero(gathered > math.ulp(0.0))
    return LatticePart.from_masses((points + low).astype(np.int64), gathered[points], count, missing)


GRIDS = (1 << 13, 1 << 16, 1 << 19)
"""Lattice points for the widest distribution."""
CACHED_GRIDS = 4
MAX_SPAN = 1 << 26
"""Lattice points that the losses of one distribution may span: half a gigabyte, for an array with all of them."""
NARROW_ENOUGH = 1e-7
"""Relative width of a bracket below which no finer grid is tried."""
STABLE_FALL = 1e-8
"""Relative fall of the upper end, from one grid to the next, that leaves a 64th of that to gain."""


@dataclass(frozen=True)
class GridMethod(Method):
    """Grids, each eight times finer than the last, until the bracket is narrow."""

    total: Composition
    _made: dict[tuple[int, GridWindow], Grid] = field(default_factory=dict)
    name = "grid"

    def delta(self, epsilon: float) -> Interval:
        if epsilon >= self.total.largest_loss + self.total.rounding_error_bound:
            return self.total.infinite_bounds
        low, high = 0.0, 1.0
        for points in GRIDS:
            try:
                finer = self._grid_for_epsilon(points, epsilon).delta(epsilon)
            except PrecisionError:
                if points == GRIDS[0]:
                    raise
                break
            low, high = max(low, finer[0]), min(high, finer[1])
            if high - low <= NARROW_ENOUGH * low:
                break
        mass_error = self.total.relative_mass_error
        return probability_error_bounds(low, low * mass_error)[0], probability_error_bounds(high, high * mass_error)[1]

    def delta_upper_bound(self, epsilon: float) -> float:
        """Return the upper end alone; since errors fall as h², refinement stops once the upper end is stable."""
        if epsilon >= self.total.largest_loss + self.total.rounding_error_bound:
            return self.delta(epsilon)[1]
        high = 1.0
        for points in GRIDS:
            try:
                finer = self._grid_for_epsilon(points, epsilon).delta_upper_bound(epsilon)
            except PrecisionError:
                if points == GRIDS[0]:
                    raise
                break
            is_stable, high = finer >= high * (1 - STABLE_FALL), min(high, finer)
            if is_stable:
                break
        return probability_error_bounds(high, high * self.total.relative_mass_error)[1]

    def approximate_epsilon_at(self, target: float) -> EpsilonGuess | None:
        """Return a guess from the coarsest grid."""
        try:
            return self._grid_for_epsilon(GRIDS[0], 0.0).upper.approximate_epsilon_at(target)
        except PrecisionError:
            return None

    def _grid_for_epsilon(self, points: int, epsilon: float) -> Grid:
        """Return a grid for the window of ε; few are cached."""
        key = points, self._coarse_outline.folding_window(epsilon)
        if key not in self._made:
            while len(self._made) >= CACHED_GRIDS:
                self._made.pop(next(iter(self._made)))
            self._made[key] = compose_on_grid(self.total, points, self._coarse_outline, key[1])
        return self._made[key]

    @cached_property
    def _coarse_outline(self) -> CoarseComposition:
        return CoarseComposition.from_cells(self.total)
