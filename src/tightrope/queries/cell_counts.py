"""Counts of the values of a group in cells of a grid: the cells, and the rows below an edge from noisy counts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Self

import numpy as np
import scipy

from tightrope.errors import PlanError
from tightrope.numerics.arrays import Floats
from tightrope.queries.intervals import OUTSIDE, TAIL_ROUNDING, NoiseTails
from tightrope.queries.statistics import MAX_FIXED_POINT, Noise
from tightrope.tables.expressions.expression import Term
from tightrope.tables.expressions.leaves import ColumnRef, to_literal
from tightrope.tables.expressions.rounding import Cell

# The number of rows below each edge of a grid, from noisy counts of blocks and of their cells.
#
# A group of n rows is counted in B blocks of b cells: y_i = Y_i + X_i for blocks and z_ik = Z_ik + X_ik for cells,
# with independent symmetric noise. The excess at an edge, k cells into block i, is the number of rows below it minus
# the number for the quantile:
#
#     D = #below − q n = (1 − q) Σ_{j<i} Y_j − q Σ_{j≥i} Y_j + Σ_{l<k} Z_il.
#
# The estimate replaces Y by y, and the rows of block i below the edge by the least-squares estimate from both levels
# for equal noise: Σ_{l<k} z_il + k/(b + 1) · (y_i − Σ_l z_il). It is linear in the noise, so the error of D has the
# log moment L(θ) = Σ log M(θ w) over its weights w, and P(error > t) ≤ exp(L(θ) − θ t) for all θ ≥ 0 (Chernoff). At
# the edges that decide an interval, the distribution of the error on a grid gives a shorter reach.

SLOPE_COUNT, SMALLEST_SLOPE, LARGEST_SLOPE = 48, 1e-3, 30.0
"""The values of θ that are tried: their number, the smallest and the largest, times a noise's standard deviation."""

NO_MOMENT = 1e290
"""Replaces a log moment that is infinite or cannot be computed: the bound is vacuous, and zero times it is zero."""
NEGLIGIBLE_TERM, TRUNCATION_ERROR = 1e-12, 1e-6
"""Maximum of the last term of a moment's infinite series, relative to the sum; the error of truncated log moments."""
GRID_POINTS, GRID_DEVIATIONS = 1 << 14, 19.2
"""Points of the grid of an error, and its length in standard deviations; sums beyond it wrap around."""
ROUNDING_PROBABILITY, TRANSFORM_ERROR = 1e-3, 2e-14
"""The probability that rounding to the grid adds up to more than its allowance; the error of floats of a transform."""
NEIGHBOR_CELLS, HEAP_FACTOR, HEAP_NOISE_FACTOR = 8, 4.0, 8.0
"""Heaped values: the number of neighboring cells on either side; the multiples of their mean and of the noise.

A count above the sum of both multiples is a heap.
"""


@dataclass(frozen=True, eq=False)  # not slotted: caches the reach of single edges
class EdgeExcess:
    """The noise of the excess at every edge: ``reach[i, k]`` is exceeded with probability ≤ 2.5 % on either side.

    ``spread[i, k]``: its standard deviation. ``total``: log moments of the sum of all blocks, at ``slopes``;
    ``moments``: log moments at every edge, shape [θ, i, k]. ``tails``: those of a block's and of a cell's noise.
    """

    tails: tuple[NoiseTails, NoiseTails]
    moments: Floats
    q: float
    reach: Floats
    spread: Floats
    slopes: Floats
    total: Floats

    @classmethod
    @lru_cache(maxsize=64)
    def from_noises(cls, outer: Noise, inner: Noise, q: float) -> EdgeExcess:
        """Return the noise at the edges of the grid of quantiles, computed once for all groups."""
        return cls.from_tails(outer.noise_tails, inner.noise_tails, q, BLOCKS, CELLS)

    @classmethod
    def from_tails(cls, block: NoiseTails, cell: NoiseTails, q: float, blocks: int, cells: int) -> Self:
        """Return the noise at all edges for quantile q, from separate noises of blocks and cells."""
        deviation = math.sqrt(max(_noise_variance(block), _noise_variance(cell), 1e-12))
        slopes = np.geomspace(SMALLEST_SLOPE, LARGEST_SLOPE, SLOPE_COUNT) / deviation
        i, k = np.arange(blocks)[:, None], np.arange(cells + 1)
        block_weight = k / (cells + 1)
        outer = i * _log_moment(block, slopes, 1 - q)[:, None, None]
        outer = outer + (blocks - 1 - i) * _log_moment(block, slopes, q)[:, None, None]
        inner = np.stack([_log_moment(block, slopes, abs(w - q)) for w in block_weight], axis=1)
        inner += k * np.stack([_log_moment(cell, slopes, 1 - w) for w in block_weight], axis=1)
        inner += (cells - k) * np.stack([_log_moment(cell, slopes, w) for w in block_weight], axis=1)
        moments = outer + inner[:, None, :]
        bounds = (moments + math.log(2 / OUTSIDE) + TRUNCATION_ERROR) / slopes[:, None, None]
        weights = (block_weight - q) ** 2 + i * (1 - q) ** 2 + (blocks - 1 - i) * q**2
        variance = weights * _noise_variance(block) + (
            k * (1 - block_weight) ** 2 + (cells - k) * block_weight**2
        ) * _noise_variance(cell)
        total = blocks * _log_moment(block, slopes, 1.0)
        reach = bounds.min(axis=0) * (1 + TAIL_ROUNDING)
        return cls((block, cell), moments, q, reach, np.sqrt(variance), slopes, total)

    @cached_property
    def _exact_reaches(self) -> dict[tuple[int, int], float]:
        return {}

    def exact_reach(self, i: int, k: int) -> float:
        """Return a reach of edge k of block i that is nearly the smallest, at most ``reach[i, k]``.

        It is computed from the distribution of the error on a grid, to which each noise is rounded.
        """
        if (i, k) not in self._exact_reaches:
            self._exact_reaches[i, k] = min(self._reach_on_grid(i, k), float(self.reach[i, k]))
        return self._exact_reaches[i, k]

    def _reach_on_grid(self, i: int, k: int) -> float:
        blocks, cells = self.reach.shape[0], self.reach.shape[1] - 1
        share, (block, cell) = k / (cells + 1), self.tails
        terms = [(block, 1 - self.q, i), (block, self.q, blocks - 1 - i), (block, abs(share - self.q), 1)]
        terms += [(cell, 1 - share, k), (cell, share, cells - k)]
        step = GRID_DEVIATIONS * max(float(self.spread[i, k]), 1e-12) / GRID_POINTS
        transform, lost, noise_count = np.ones(GRID_POINTS // 2 + 1), 0.0, 0
        for tails, weight, count in terms:
            if weight > 0 and count > 0:
                masses = _masses_on_grid(tails, weight / step)
                transform = transform * np.fft.rfft(masses).real ** count
                lost += count * max(0.0, 1 - float(masses.sum()))
                noise_count += count
        sums = np.maximum(np.fft.irfft(transform, GRID_POINTS), 0.0)[: GRID_POINTS // 4]
        # A sum that wraps around into the inner half of the grid is at least 3/4 of its length.
        beyond = step * (0.75 * GRID_POINTS - noise_count / 2)
        exponent = float((self.moments[:, i, k] - self.slopes * beyond).min()) + TRUNCATION_ERROR
        lost += 2 * math.exp(min(exponent, 0.0)) + ROUNDING_PROBABILITY
        lost += noise_count * math.sqrt(GRID_POINTS) * TRANSFORM_ERROR
        inside = 2 * np.cumsum(sums) - sums[0]
        sufficient = np.flatnonzero(inside - lost >= 1 - OUTSIDE)
        if len(sufficient) == 0:
            return math.inf
        # Hoeffding: the sum of the roundings, at most step/2 each, exceeds this with ROUNDING_PROBABILITY.
        rounding = step * math.sqrt(noise_count * math.log(2 / ROUNDING_PROBABILITY) / 2)
        return (float(sufficient[0]) * step + rounding) * (1 + TAIL_ROUNDING)

    def estimate_excess(self, blocks: Floats, cells: Floats) -> Floats:
        """Return the estimated excess at every edge, shape [B, b + 1], from noisy counts [B] and [B, b]."""
        inside = np.concatenate([np.zeros((len(blocks), 1)), np.cumsum(cells, axis=1)], axis=1)
        correction = (blocks - inside[:, -1])[:, None] * np.arange(inside.shape[1]) / inside.shape[1]
        below = np.concatenate([[0.0], np.cumsum(blocks)])
        excess: Floats = below[:-1, None] - self.q * below[-1] + inside + correction
        return excess

    def likely_cells(self, excess: Floats) -> tuple[int, int]:
        """Return the first and the last cell that may contain the quantile, given the excess at the ends of each.

        The excess of the true cell is below 0 at its left end and at least 0 at its right end, so it is excluded with
        probability at most 5 %.
        """
        left, right = excess[:, :-1].ravel(), excess[:, 1:].ravel()
        is_possible = (left < self.reach[:, :-1].ravel()) & (right >= -self.reach[:, 1:].ravel())
        indexes = np.flatnonzero(is_possible)
        if len(indexes) == 0:
            return 0, len(is_possible) - 1
        # From each end inwards, up to the first cell that is possible by the exact distribution of the error, too.
        first = next((int(index) for index in indexes if self._is_likely(int(index), left, right)), None)
        if first is None:
            return int(indexes[0]), int(indexes[-1])
        return first, next(int(index) for index in indexes[::-1] if self._is_likely(int(index), left, right))

    def _is_likely(self, index: int, left: Floats, right: Floats) -> bool:
        """Return whether a cell may contain the quantile, given the excess at the ends of all cells."""
        i, k = divmod(index, self.reach.shape[1] - 1)
        return bool(left[index] < self.exact_reach(i, k) and right[index] >= -self.exact_reach(i, k + 1))

    def zero_crossing(self, excess: Floats) -> float:
        """Return the position at which the isotonic excess crosses zero, in cells from the left end."""
        excess_at_edges = np.append(excess[:, :-1].ravel(), excess[-1, -1])
        rising: Floats = scipy.optimize.isotonic_regression(excess_at_edges).x
        upper_index = int(np.searchsorted(rising, 0.0, side="left"))
        if upper_index in (0, len(rising)):
            return float(min(upper_index, len(rising) - 1))
        low, high = rising[upper_index - 1], rising[upper_index]
        return float(upper_index - 1 + (-low / (high - low) if high > low else 0.5))

    def lower_tail_bound(self, rows: float) -> float:
        """Return a bound on P(the sum of the noises of all blocks ≤ −``rows``), ``rows`` > 0."""
        return min(1.0, float(np.exp((self.total - self.slopes * rows).min() + TRUNCATION_ERROR)))


def has_heaped_values(cells: Floats, cell: int, noise: float) -> bool:
    """Return whether a cell has many more rows than its neighbors, from counts with this mean absolute ``noise``.

    Its values are then assumed to be a single number, not spread over the cell.
    """
    first, cell = max(cell - NEIGHBOR_CELLS, 0), min(cell, len(cells) - 1)
    neighbors = np.delete(cells[first : cell + NEIGHBOR_CELLS + 1], cell - first)
    return bool(cells[cell] > HEAP_FACTOR * max(float(neighbors.mean()), 0.0) + HEAP_NOISE_FACTOR * noise)


def _masses_on_grid(tails: NoiseTails, scale: float) -> Floats:
    """Return P(K = 0), P(K = 1), …, and P(K = −1) last, of K = the integer nearest to ``scale`` · X, ties outwards."""
    half = GRID_POINTS // 2
    last = min(half - 1, math.ceil(scale * tails.factor * (len(tails.table) + 1)) + 1)
    beyond = tails.tail_probability(np.ceil((np.arange(1, last + 2) - 0.5) / scale) - 1)
    one_side, masses = np.maximum(beyond[:-1] - beyond[1:], 0.0), np.zeros(GRID_POINTS)
    masses[0] = max(1 - 2 * float(beyond[0]), 0.0)
    masses[1 : last + 1] = one_side
    masses[-last:] = one_side[::-1]
    return masses


def _noise_variance(tails: NoiseTails) -> float:
    """Return E X² = 2 Σ_{x ≥ 0} (2x + 1) P(X > x)."""
    x = np.arange(len(tails.table), dtype=np.float64)
    return float(2 * ((2 * x + 1) * tails.table).sum())


def _log_moment(tails: NoiseTails, slopes: Floats, weight: float) -> Floats:
    """Return log E e^{θ w X} at every θ, shape [θ]; X is symmetric, the mass beyond its list is put at its end.

    E cosh(s X) = 1 + 2 Σ_{x ≥ 0} P(X > x) (cosh(s (x + 1)) − cosh(s x)). For unbounded noise, the rest of the series is
    negligible only for slopes at which the terms have decayed; for other slopes the result is ``NO_MOMENT``.
    """
    x = np.arange(len(tails.table), dtype=np.float64)
    slope = slopes[:, None] * weight
    with np.errstate(over="ignore", invalid="ignore"):
        terms = tails.table * 2 * np.sinh(slope * (x + 0.5)) * np.sinh(slope / 2)
        moment = 1 + 2 * terms.sum(axis=1)
    is_unbounded = tails.table[-1] > 0
    terms_decay = terms[:, -1] < NEGLIGIBLE_TERM * moment if is_unbounded else np.isfinite(moment)
    is_known = terms_decay & np.isfinite(moment)
    return np.where(is_known, np.log(np.where(is_known, moment, 1.0)), NO_MOMENT)


# The cells in which the values of a group are counted: of equal width, centered at round numbers.

BLOCKS, CELLS = 50, 80
"""Blocks of the range, and cells of a block.

The noise in a count of the rows below an edge is nearly the smallest, and this number of cells divides round ranges at
round numbers, where many values lie.
"""
ALL_CELLS = BLOCKS * CELLS
EDGE_ROUNDING, EDGE_ULPS = 1e-6, 16
"""Rounding allowance at an edge, in cells, and in units in the last place of the farther end of the range.

Because of rounding, values at an edge may be counted on either side of it.
"""
MAX_EXTRA_DIGITS = 20
"""Maximum number of additional decimal digits of the number that represents a cell."""
MIN_DOUBLES_PER_CELL = 64
"""Minimum number of doubles in a cell."""


@dataclass(frozen=True, slots=True)
class CellGrid:
    """A grid of ``ALL_CELLS`` cells over a range; the last cell ends at the end of the range."""

    low: float
    high: float

    def __post_init__(self) -> None:
        bounds, largest_magnitude = (self.low, self.high), max(abs(self.low), abs(self.high))
        if not largest_magnitude <= MAX_FIXED_POINT:
            expected = f"a range within {MAX_FIXED_POINT:g} of zero"
            raise PlanError("bounds", bounds, expected, "measure in larger units, so that the numbers are smaller")
        if not self.range_width >= ALL_CELLS * MIN_DOUBLES_PER_CELL * math.ulp(largest_magnitude):
            expected = f"a range that contains at least {ALL_CELLS * MIN_DOUBLES_PER_CELL:,} different doubles"
            raise PlanError("bounds", bounds, expected, "shift the column nearer to zero, or widen the range")

    def cell_expression(self, column: Term) -> Cell:
        """Return the expression for the cell of a value, clamped to the range."""
        value = ColumnRef(column) if isinstance(column, str) else column
        half_cell = (self.high - self.low) / (2 * ALL_CELLS)
        return Cell(value, to_literal(self.low - half_cell), to_literal(self.high - half_cell), to_literal(ALL_CELLS))

    @property
    def range_width(self) -> float:
        """The width of the range."""
        return self.high - self.low

    def edge_value(self, cell: float, outwards: float = 0.0) -> float:
        """Return the number at ``cell`` cells from the beginning of the grid, clamped to the range."""
        if cell >= ALL_CELLS:
            return self.high
        number = self.low + (cell + outwards - 0.5) / ALL_CELLS * self.range_width
        return min(max(number, self.low), self.high)

    def cell_bounds(self, first: int, last: int) -> tuple[float, float]:
        """Return the range of the cells from the first to the last, which may lie beyond the grid."""
        rounding = EDGE_ULPS * math.ulp(max(abs(self.low), abs(self.high))) * ALL_CELLS / self.range_width
        return self.edge_value(first, outwards=-EDGE_ROUNDING - rounding), self.edge_value(
            last + 1, outwards=EDGE_ROUNDING + rounding
        )

    def representative_value(self, cell: int) -> float:
        """Return the number in a cell with the fewest digits; for the last cell, the end of the range.

        >>> [CellGrid(0, end).representative_value(cell) for end, cell in ((30, 267), (365, 22), (40, 400), (1, 1333))]
        [2.0, 2.0, 4.0, 0.3332]
        """
        if cell == ALL_CELLS - 1:
            return self.high
        middle = self.low + cell / ALL_CELLS * self.range_width
        first, end = self.edge_value(cell), self.edge_value(cell + 1)
        digits = -math.floor(math.log10(self.range_width))
        candidates = (round(middle, count) for count in range(digits, digits + MAX_EXTRA_DIGITS))
        return next((candidate for candidate in candidates if first <= candidate < end), middle)
