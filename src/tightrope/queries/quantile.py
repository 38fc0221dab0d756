"""Quantiles of a column: where a share of its values lies below. One is chosen; several are read from counts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import ClassVar, Self, final

import numpy as np
import scipy

from tightrope.errors import PlanError
from tightrope.mechanisms.exponential import (
    PARTS,
    QuantileChoice,
    cell_distances,
    half_widths,
    millionths,
    width_distances,
)
from tightrope.noise.worst_split import Spend, eighths
from tightrope.numerics.arrays import Floats
from tightrope.numerics.checks import finite
from tightrope.queries.column_query import OfColumn, column_term, declared
from tightrope.queries.intervals import OUTSIDE, ROUNDING, Tails
from tightrope.queries.options import Given
from tightrope.queries.query import Integers, Noises, Question, Record
from tightrope.queries.statistics import WIDEST_VALUE, Noise, Vector, cell_choice
from tightrope.tables.expressions.expression import Term
from tightrope.tables.expressions.functions import Cell
from tightrope.tables.expressions.leaves import Column, literal
from tightrope.tables.request import Measure
from tightrope.tables.schema import Schema

# How many rows lie below each edge of a grid, from noisy counts of blocks and of the cells in them.
#
# A group of n rows is counted in B blocks of b cells: y_i = Y_i + X_i for blocks and z_ik = Z_ik + X_ik for cells,
# with independent symmetric noise. The excess at an edge, k cells into block i, is how many more rows lie below it
# than the quantile wants:
#
#     D = #below − q n = (1 − q) Σ_{j<i} Y_j − q Σ_{j≥i} Y_j + Σ_{l<k} Z_il.
#
# Its estimate puts y for Y, and for the rows of block i below the edge what least squares makes of both levels where
# they are equally noisy: Σ_{l<k} z_il + k/(b + 1) · (y_i − Σ_l z_il). All of it is linear in the noise, so the error
# of D has the log moment L(θ) = Σ log M(θ w) over its weights w, and P(error > t) ≤ exp(L(θ) − θ t) for all θ ≥ 0
# (Chernoff).

SLOPES, FIRST, LAST = 48, 1e-3, 30.0
"""Values of θ that are tried: over the standard deviation of one noise, and so far apart at either end."""

NO_MOMENT = 1e290
"""In place of a log moment that is infinite or cannot be computed: no bound comes of it, and zero times it is zero."""
NEGLIGIBLE, REST = 1e-12, 1e-6
"""Of a moment: what the end of an endless list may add to it; and what all that is beyond adds to all log moments."""
AROUND, FAR_MORE, BEYOND_NOISE = 8, 4.0, 8.0
"""A heap: a cell beside so many on either side, how many times their mean it must have, and how far above noise."""


@dataclass(frozen=True, slots=True, eq=False)
class Edges:
    """The noise of the excess at every edge: ``reach[i, k]`` is exceeded 2.5 % of the time at most, on either side.

    ``spread[i, k]``: its standard deviation. ``total``: log moments of the sum of all blocks, at ``slopes``.
    """

    q: float
    reach: Floats
    spread: Floats
    slopes: Floats
    total: Floats

    @classmethod
    def of(cls, block: Tails, cell: Tails, q: float, blocks: int, cells: int) -> Self:
        """For quantile q; blocks and cells have noises of their own."""
        deviation = math.sqrt(max(_variance(block), _variance(cell), 1e-12))
        slopes = np.geomspace(FIRST, LAST, SLOPES) / deviation
        i, k = np.arange(blocks)[:, None], np.arange(cells + 1)
        part = k / (cells + 1)
        outer = i * _log_moment(block, slopes, 1 - q)[:, None, None]
        outer = outer + (blocks - 1 - i) * _log_moment(block, slopes, q)[:, None, None]
        inner = np.stack([_log_moment(block, slopes, abs(w - q)) for w in part], axis=1)
        inner += k * np.stack([_log_moment(cell, slopes, 1 - w) for w in part], axis=1)
        inner += (cells - k) * np.stack([_log_moment(cell, slopes, w) for w in part], axis=1)
        moments = outer + inner[:, None, :]
        bounds = (moments + math.log(2 / OUTSIDE) + REST) / slopes[:, None, None]
        weights = (part - q) ** 2 + i * (1 - q) ** 2 + (blocks - 1 - i) * q**2
        variance = weights * _variance(block) + (k * (1 - part) ** 2 + (cells - k) * part**2) * _variance(cell)
        total = blocks * _log_moment(block, slopes, 1.0)
        return cls(q, bounds.min(axis=0) * (1 + ROUNDING), np.sqrt(variance), slopes, total)

    def excess(self, blocks: Floats, cells: Floats) -> Floats:
        """The estimate at every edge, shape [B, b + 1], from noisy counts [B] and [B, b]."""
        inside = np.concatenate([np.zeros((len(blocks), 1)), np.cumsum(cells, axis=1)], axis=1)
        missed = (blocks - inside[:, -1])[:, None] * np.arange(inside.shape[1]) / inside.shape[1]
        below = np.concatenate([[0.0], np.cumsum(blocks)])
        found: Floats = below[:-1, None] - self.q * below[-1] + inside + missed
        return found

    def held(self, excess: Floats) -> tuple[int, int]:
        """The first and the last cell that may hold the quantile: none of its ends speaks clearly against it.

        The excess of the true cell is below 0 at its left end and at least 0 at its right one, so that it is left out
        5 % of the time at most.
        """
        left, right = excess[:, :-1].ravel(), excess[:, 1:].ravel()
        may = (left < self.reach[:, :-1].ravel()) & (right >= -self.reach[:, 1:].ravel())
        places = np.flatnonzero(may)
        return (int(places[0]), int(places[-1])) if len(places) else (0, len(may) - 1)

    def place(self, excess: Floats) -> float:
        """Where the rising excess crosses zero, in cells from the left end."""
        joined = np.append(excess[:, :-1].ravel(), excess[-1, -1])
        rising: Floats = scipy.optimize.isotonic_regression(joined).x
        above = int(np.searchsorted(rising, 0.0, side="left"))
        if above in (0, len(rising)):
            return float(min(above, len(rising) - 1))
        low, high = rising[above - 1], rising[above]
        return float(above - 1 + (-low / (high - low) if high > low else 0.5))

    def at_most(self, rows: float) -> float:
        """A bound on P(the sum of the noises of all blocks ≤ −``rows``), ``rows`` > 0."""
        return min(1.0, float(np.exp((self.total - self.slopes * rows).min() + REST)))


def heaped(cells: Floats, place: int, noise: float) -> bool:
    """Whether a cell has far more rows than those around it, by noisy counts with this mean absolute noise.

    Its values then lie at one number rather than all over it.
    """
    first, place = max(place - AROUND, 0), min(place, len(cells) - 1)
    others = np.delete(cells[first : place + AROUND + 1], place - first)
    return bool(cells[place] > FAR_MORE * max(float(others.mean()), 0.0) + BEYOND_NOISE * noise)


def _variance(tails: Tails) -> float:
    """E X² = 2 Σ_{x ≥ 0} (2x + 1) P(X > x)."""
    places = np.arange(len(tails.table), dtype=np.float64)
    return float(2 * ((2 * places + 1) * tails.table).sum())


def _log_moment(tails: Tails, slopes: Floats, weight: float) -> Floats:
    """Log E e^{θ w X} at every θ, shape [θ]; X is symmetric and what lies beyond its list is put at its end.

    E cosh(s X) = 1 + 2 Σ_{x ≥ 0} P(X > x) (cosh(s (x + 1)) − cosh(s x)). Where the noise has no end, the rest of the
    list is negligible only for slopes at which the terms have died down; elsewhere there is ``NO_MOMENT``.
    """
    places = np.arange(len(tails.table), dtype=np.float64)
    slope = slopes[:, None] * weight
    with np.errstate(over="ignore", invalid="ignore"):
        terms = tails.table * 2 * np.sinh(slope * (places + 0.5)) * np.sinh(slope / 2)
        moment = 1 + 2 * terms.sum(axis=1)
    endless = tails.table[-1] > 0
    dying = terms[:, -1] < NEGLIGIBLE * moment if endless else np.isfinite(moment)
    known = dying & np.isfinite(moment)
    return np.where(known, np.log(np.where(known, moment, 1.0)), NO_MOMENT)


# The cells in which the values of a group are counted: equal parts of a range, around round numbers.

BLOCKS, CELLS = 50, 80
"""Blocks of the range, and cells of a block: about the least noise in a count of what lies below an edge, and a number
of cells that divides round ranges at round numbers, where many values lie.
"""
ALL_CELLS = BLOCKS * CELLS
SLACK, ROUNDINGS = 1e-6, 16
"""Of a cell, and in units of the last place of the farther end: values at an edge may be counted on either side of it,
by rounding."""
FURTHER_DIGITS = 20
"""Of the number that stands for a cell."""
DOUBLES = 64
"""A cell holds so many at least."""


@dataclass(frozen=True, slots=True)
class Grid:
    """``ALL_CELLS`` cells over a range; the last reaches to its end."""

    low: float
    high: float

    def __post_init__(self) -> None:
        between, far = (self.low, self.high), max(abs(self.low), abs(self.high))
        if not far <= WIDEST_VALUE:
            expected = f"a range within {WIDEST_VALUE:g} of zero"
            raise PlanError("between", between, expected, "measure in larger units, so that the numbers are smaller")
        if not self.width >= ALL_CELLS * DOUBLES * math.ulp(far):
            expected = f"a range of which doubles tell {ALL_CELLS * DOUBLES:,} values apart"
            raise PlanError("between", between, expected, "move its zero nearer, or widen it: it is cut into cells")

    def cell(self, column: Term) -> Cell:
        """In which of them a value lies, clamped to the range."""
        part = Column(column) if isinstance(column, str) else column
        half = (self.high - self.low) / (2 * ALL_CELLS)
        return Cell(part, literal(self.low - half), literal(self.high - half), literal(ALL_CELLS))

    @property
    def width(self) -> float:
        """Of the range."""
        return self.high - self.low

    def edge(self, cell: float, outwards: float = 0.0) -> float:
        """The number at so many cells from the beginning of the grid, inside the range."""
        if cell >= ALL_CELLS:
            return self.high
        place = self.low + (cell + outwards - 0.5) / ALL_CELLS * self.width
        return min(max(place, self.low), self.high)

    def held(self, first: int, last: int) -> tuple[float, float]:
        """What lies in the cells from the first to the last, which may lie beyond the range."""
        rounded = ROUNDINGS * math.ulp(max(abs(self.low), abs(self.high))) * ALL_CELLS / self.width
        return self.edge(first, outwards=-SLACK - rounded), self.edge(last + 1, outwards=SLACK + rounded)

    def middle(self, cell: int) -> float:
        """The number of a cell with the fewest digits; of the last, where all that is beyond the range lies, its end.

        >>> [Grid(0, end).middle(cell) for end, cell in ((30, 267), (365, 22), (40, 400), (1, 1333))]
        [2.0, 2.0, 4.0, 0.3332]
        """
        if cell == ALL_CELLS - 1:
            return self.high
        middle = self.low + cell / ALL_CELLS * self.width
        first, end = self.edge(cell), self.edge(cell + 1)
        digits = -math.floor(math.log10(self.width))
        tries = (round(middle, count) for count in range(digits, digits + FURTHER_DIGITS))
        return next((found for found in tries if first <= found < end), middle)


# One quantile by two choices of the exponential mechanism: its cell, and how far around it the interval reaches.

VALUE, WIDTH = "choice of the value, in rows below it", "choice of the width, in rows below its ends"
CENTRES = 16
VALUE_SIZE, WIDTH_SIZE = 0.75, 1.5
"""Of their noise: two thirds of the budget for the value, which is what people read."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """The round number of the cell that is chosen; the interval holds the quantile but 5 % of the time."""

    grid: Grid
    below: int
    size: float

    notes: ClassVar[tuple[str, ...]] = (
        f"one of {ALL_CELLS:,} equal parts of the range is chosen, and how far around it the interval reaches: each by "
        "the exponential mechanism, at the price of noise in the number of rows below; the value is the round number "
        "of its part",
        "it has a value whatever the rows are: that of an empty group says nothing, and its interval is nearly always "
        "the whole range",
    )

    def vectors(self) -> tuple[Vector, ...]:
        """The choice of a cell, then that of a width around it."""
        value, width = QuantileChoice(self.below), QuantileChoice(self.below, around=VALUE)
        sized = (VALUE, value, VALUE_SIZE), (WIDTH, width, WIDTH_SIZE)
        first, second = (cell_choice(name, choice, part * self.size) for name, choice, part in sized)
        return first, second

    def record(self, integers: Integers, noises: Noises) -> Record:
        """The cell, and the cells around it."""
        del noises
        cell, around = integers[VALUE], integers[WIDTH]
        lower, upper = self.grid.held(cell - around, cell + around)
        return {"value": self.grid.middle(cell), "lower": lower, "upper": upper}

    def errors(self, noises: Noises, people: int) -> tuple[float, float]:
        """For values that are spread evenly over the range; where they lie closer together, errors are smaller."""
        expected, half = _errors(noises[VALUE], noises[WIDTH], people)
        return min(expected, 1.0) * self.grid.width, min(half, 1.0) * self.grid.width

    def withheld(self, noises: Noises, people: int) -> float:
        """Never."""
        del noises, people
        return 0.0


@lru_cache(maxsize=256)
def _errors(value: Noise, width: Noise, people: int) -> tuple[float, float]:
    """E|error| and the mean half-width in parts of the range, for rows at its first, third, … of 2n parts.

    The half-width is the mean over ``CENTRES`` of the cells that are chosen, equally likely parts of their law.
    """
    choice = value.vector.choice
    if choice is None:
        raise TypeError(value.vector.name)
    edges = np.clip((np.arange(ALL_CELLS + 1) - 0.5) / ALL_CELLS, 0.0, 1.0)
    below = np.floor(people * np.where(np.arange(ALL_CELLS + 1) == ALL_CELLS, 1.0, edges) + 0.5)
    excess = PARTS * below - choice.below * people
    truth = ALL_CELLS * (math.ceil(choice.below * people / PARTS) - 0.5) / people
    law = value.law.law(cell_distances(excess))
    expected = float(law @ np.abs(np.arange(ALL_CELLS) - truth)) + 0.25
    centres = np.searchsorted(np.cumsum(law), (np.arange(CENTRES) + 0.5) / CENTRES)
    reached: Floats = np.minimum(np.array(half_widths(ALL_CELLS)) + 0.5, ALL_CELLS / 2)
    target = choice.target(width.law, ALL_CELLS)
    laws = (width.law.law(width_distances(excess, int(centre), target)) for centre in centres)
    half = math.fsum(float(one @ reached) for one in laws) / CENTRES
    return expected / ALL_CELLS, math.nextafter(half / ALL_CELLS, math.inf)


# Several quantiles from noisy counts of the same cells and blocks: they cost what one costs, and never cross.

BLOCK, CELL = "rows by block", "rows by cell"
NORMAL = 0.7978845608028654
"""E|Z| of the normal law: a sum of so many noises is nearly one."""


@dataclass(frozen=True, slots=True)
class Counted:
    """Where the estimate of how many rows lie below crosses what the quantile wants."""

    grid: Grid
    q: float
    size: float

    notes: ClassVar[tuple[str, ...]] = (
        f"values are counted in {ALL_CELLS:,} equal parts of the range, and in blocks of them: both counts are "
        "paid for once, however many quantiles are read from them",
        "a value between two edges of the grid is a guess: the round number of its cell where that has far more rows "
        "than those around it; the interval reaches to the edges",
        "where the noisy count is below 1 the quantile is withheld and the interval is the whole range",
    )

    @property
    def levels(self) -> tuple[str, str]:
        """What its vectors are called: questions of one weight share them."""
        size = eighths(self.size)
        return f"{BLOCK} {size}", f"{CELL} {size}"

    def vectors(self) -> tuple[Vector, ...]:
        """Counts by block and by cell. A row is in one of each."""
        outer, inner = self.levels
        return _counts(outer, BLOCK, self.size, CELLS), _counts(inner, CELL, self.size, 1)

    def record(self, integers: Integers, noises: Noises) -> Record:
        """Where the estimate of the excess crosses zero; ``usable`` is the noisy number of values."""
        blocks, cells = (np.asarray(integers[name], dtype=np.float64) for name in self.levels)
        usable = int(blocks.sum())
        if usable < 1:
            return {"value": None, "lower": self.grid.low, "upper": self.grid.high, "usable": usable}
        edges = self._edges(noises)
        excess = edges.excess(blocks, cells.reshape(BLOCKS, CELLS))
        lower, upper = self.grid.held(*edges.held(excess))
        place = edges.place(excess)
        alone = heaped(cells, int(place), noises[self.levels[1]].mean_absolute)
        value = self.grid.middle(int(place)) if alone else self.grid.edge(place)
        return {"value": value, "lower": min(lower, value), "upper": max(upper, value), "usable": usable}

    def errors(self, noises: Noises, people: int) -> tuple[float, float]:
        """For values that are spread evenly over the range; where they lie closer together, errors are smaller."""
        edges = self._edges(noises)
        block, cell = int(self.q * BLOCKS), CELLS // 2
        expected = NORMAL * float(edges.spread[block, cell]) / people + 0.25 / ALL_CELLS
        half = float(edges.reach[block, cell]) / people + 1 / ALL_CELLS
        return min(expected, 1.0) * self.grid.width, min(half, 1.0) * self.grid.width

    def withheld(self, noises: Noises, people: int) -> float:
        """P(the noisy count is below 1), at most."""
        return self._edges(noises).at_most(people)

    def _edges(self, noises: Noises) -> Edges:
        outer, inner = (noises[name] for name in self.levels)
        return _shared(outer, inner, self.q)


def _counts(name: str, statistic: str, size: float, block: int) -> Vector:
    """Rows of each block of so many cells: a row is in one of them."""
    return Vector(Measure(name, None, None), Spend(statistic, eighths(size), True), 1, exclusive=name, block=block)


@lru_cache(maxsize=64)
def _shared(outer: Noise, inner: Noise, q: float) -> Edges:
    """Computed once for all groups."""
    return Edges.of(outer.tails, inner.tails, q, BLOCKS, CELLS)


MEDIAN = 0.5


FEW_ROWS = "; where there are few rows or none, an arbitrary value of the range, with an interval of nearly all of it"
"""A choice has a value whatever the rows are, and no count of rows is paid for beside it."""


@final
@dataclass(frozen=True, slots=True)
class quantile(OfColumn):
    """The value that a share ``q`` of a column's values does not exceed, each value clamped to ``between``.

    One quantile of a column, range and groups is chosen from a grid of ``between``, by the exponential mechanism.
    Several are read from the same noisy counts: any number costs the same, and they never cross. Groups are listed with
    ``keys``, or follow from expressions. The other keywords are those of ``count``. Raises ``PlanError`` naming what is
    wrong.

    >>> quantile("income", 0.9, between=(0, 200_000)).name
    'quantile_0.9_income'
    """

    q: float
    """The share of values that do not exceed the answer: 0.5 is the median."""
    counted: bool = field(default=False, init=False)
    """Whether it is read from counts that others share; else it is chosen."""

    kind = "quantile"
    meaning = "The value that a share of all values does not exceed"
    additive = False
    uniform = False
    notes = ("of the bounds on a person only that on all rows applies to groups of quantiles",)
    entries = ("column", "between", "q")
    entry_defaults: ClassVar[Mapping[str, object]] = {"q": MEDIAN}

    def meaning_for(self, means: str) -> str:
        """Which share lies below: half of all, or 90 %."""
        del means
        part = "half" if self.q == MEDIAN else f"{100 * self.q:g} %"
        return f"The value that {part} of all values do not exceed{'' if self.counted else FEW_ROWS}"

    @property
    def what(self) -> str:
        """Which quantile."""
        return "median" if self.q == MEDIAN else f"{self.q:g} quantile"

    def __post_init__(self) -> None:
        q = self.q
        if isinstance(q, list | tuple):
            raise PlanError("q", q, "one number", "write one [[question]] for each; in Python say tr.quantiles")
        term, share = column_term("column", self.column), finite("q", q, "0.5 is the median")
        if not 0 < share < 1:
            raise PlanError("q", q, "above 0 and below 1", "0.5 is the median")
        named = ("median",) if share == MEDIAN else ("quantile", f"{share:g}")
        found = self.check_options(*named, str(term))
        if found.groups_per_person is not None or (found.by and found.rows_per_group is not None):
            remedy = "rows_per_person bounds all groups of quantiles together"
            raise PlanError("rows_per_group", found.rows_per_group, "left out, as groups_per_person", remedy)
        self._set(term=term, between=declared(term, self.between), q=share)

    def settled(self, schema: Schema, where: Term | None = None) -> Self:
        """Raises ``PlanError`` where its groups would have to be discovered."""
        found = OfColumn.settled(self, schema, where)
        if found.asked.by and found.asked.keys is None:
            remedy = "list the groups with keys=[...]: those of quantiles cannot be discovered"
            raise PlanError("keys", None, "given", remedy)
        return found

    @property
    def cell(self) -> Cell:
        """The grid: cells of equal width around round numbers, where many values lie; the last reaches to the end."""
        return self._grid.cell(self.term)

    def among(self, together: Sequence[Question]) -> Self:
        """Chosen where it is the only one of its column and groups; several are read from counts that serve all."""
        return self.changed(counted=len(together) > 1 or millionths(self.q) is None)

    @property
    def rules(self) -> tuple[str, ...]:
        """What depends on how it is answered, then what holds for all."""
        return (*self._way.notes, *self.notes)

    @property
    def _grid(self) -> Grid:
        return Grid(*self.clamp_bounds)

    @property
    def _way(self) -> Counted | Chosen:
        exact = None if self.counted else millionths(self.q)
        if exact is None:
            return Counted(self._grid, self.q, self.asked.size)
        return Chosen(self._grid, exact, self.asked.size)

    def vectors(self) -> tuple[Vector, ...]:
        """Two choices, or counts by block and by cell."""
        return self._way.vectors()

    def record(self, integers: Integers, noises: Noises) -> Record:
        """The value and its interval; ``usable`` is the noisy number of values, where they are counted."""
        return self._way.record(integers, noises)

    def errors(self, noises: Noises, people: int) -> tuple[float, float]:
        """For values that are spread evenly over the range; where they lie closer together, errors are smaller."""
        return self._way.errors(noises, people)

    def withheld(self, noises: Noises, people: int) -> float:
        """How likely too few rows seem to be there, where they are counted."""
        return self._way.withheld(noises, people)


def median(
    column: Given,
    *,
    between: tuple[float, float] | None = None,
    where: Given | None = None,
    by: Given | Mapping[str, Given] | Sequence[Given | Mapping[str, Given]] = (),
    keys: object = None,
    weight: float = 1.0,
    name: str | None = None,
    rows_per_group: int | None = None,
    groups_per_person: int | None = None,
    within: float | str | None = None,
    title: str | None = None,
    description: str | None = None,
    unit: str | None = None,
    means: str | None = None,
) -> quantile:
    """The median of a column: ``quantile`` with q = 0.5.

    >>> str(median("income", between=(0, 200_000)))
    'median of income between 0 and 200000'
    """
    return quantile(
        column, MEDIAN, between=between, where=where, by=by, keys=keys, weight=weight, name=name,
        rows_per_group=rows_per_group, groups_per_person=groups_per_person, within=within,
        title=title, description=description, unit=unit, means=means,
    )  # fmt: skip


def quantiles(
    column: Given,
    qs: Sequence[float],
    *,
    between: tuple[float, float] | None = None,
    where: Given | None = None,
    by: Given | Mapping[str, Given] | Sequence[Given | Mapping[str, Given]] = (),
    keys: object = None,
    weight: float = 1.0,
    name: None = None,
    rows_per_group: int | None = None,
    groups_per_person: int | None = None,
    within: float | str | None = None,
    title: str | None = None,
    description: str | None = None,
    unit: str | None = None,
    means: str | None = None,
) -> list[quantile]:
    """A question for each of several quantiles, any number at one cost: ``session.plan([*tr.quantiles(...), ...])``.

    Each has a name of its own. The other keywords are those of ``quantile``. Raises ``PlanError`` naming what is wrong.

    >>> [str(one) for one in quantiles("age", [0.25, 0.75], between=(0, 100))]
    ['0.25 quantile of age between 0 and 100', '0.75 quantile of age between 0 and 100']
    """
    if name is not None:
        raise PlanError("name", name, "left out", "each quantile has a name of its own")
    shares = list(qs) if isinstance(qs, Iterable) else []
    if not shares:
        raise PlanError("qs", qs, "a list of at least one number", "say [0.25, 0.5, 0.75]")
    return [
        quantile(
            column, q, between=between, where=where, by=by, keys=keys, weight=weight,
            rows_per_group=rows_per_group, groups_per_person=groups_per_person, within=within,
            title=title, description=description, unit=unit, means=means,
        )
        for q in shares
    ]  # fmt: skip
