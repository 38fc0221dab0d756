"""Quantiles of a column: a single one by the exponential mechanism, several from noisy counts."""

from __future__ import annotations

import datetime
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import ClassVar, Self, final

import numpy as np

from tightrope.documents.escaping import escape_control_chars
from tightrope.documents.numbers import DATE_UNIT, INSTANT_UNIT, ROUND_BY_DIRECTION, Rounding, days_since_epoch
from tightrope.errors import PlanError
from tightrope.mechanisms.exponential import (
    PARTS,
    QuantileChoice,
    cell_distances,
    half_widths,
    quantile_in_millionths,
    width_distances,
)
from tightrope.noise.worst_split import NoiseSpec, nearest_eighths
from tightrope.numerics.arrays import Floats
from tightrope.numerics.checks import check_finite
from tightrope.queries.cell_counts import ALL_CELLS, BLOCKS, CELLS, CellGrid, EdgeExcess, has_heaped_values
from tightrope.queries.column_query import (
    TIME_ADVICE,
    ColumnQuery,
    RangeEnd,
    column_term,
    declared_range,
    format_range_end,
    measured_name,
    time_range,
)
from tightrope.queries.intervals import OUTSIDE
from tightrope.queries.options import Given
from tightrope.queries.query import Integers, Noises, Query, Record
from tightrope.queries.statistics import Noise, NoisyStatistic, cell_choice
from tightrope.tables.expressions.expression import Term, term_facts
from tightrope.tables.expressions.leaves import TIME_KINDS, ColumnRef
from tightrope.tables.expressions.rounding import Cell
from tightrope.tables.expressions.times import days_from_epoch
from tightrope.tables.request import Measure
from tightrope.tables.schema import Schema

# One quantile by two choices of the exponential mechanism: its cell, and the width of the interval around it.

VALUE, WIDTH = "choice of the value, in rows below it", "choice of the width, in rows below its ends"
AVERAGED_CENTERS = 16
"""Number of chosen cells over which the half-width is averaged for the expected error."""
EXTREME_NOISE_SIZES = (0.875, 1.125)
"""Relative noise of both choices of a minimum or maximum, which leaves out the fewest rows if they are similar."""


@dataclass(frozen=True, slots=True)
class ChosenQuantile:
    """A quantile, minimum or maximum: the round number of a chosen cell; the interval covers it with 95 % or more."""

    grid: CellGrid
    below: int
    size: float
    noise_sizes: tuple[float, float] = (0.75, 1.5)
    """Relative noise of the choices of value and width: two thirds of the budget are for the value."""

    notes: ClassVar[tuple[str, ...]] = (
        f"The range is divided into {ALL_CELLS:,} equal cells. The exponential mechanism chooses a cell, then the "
        "width of the interval; each costs as much as noise in the number of rows below. The value is the roundest "
        "number in the chosen cell.",
        "If a count of the same rows in this plan may be 0 (its interval includes 0), the value is suppressed, and the "
        "interval is the whole range. Without such a count, an empty group has a value, which means nothing, and an "
        "interval that is the whole range 19 times in 20: add a count.",
    )

    def noisy_statistics(self) -> tuple[NoisyStatistic, ...]:
        """Return the choice of a cell, then the choice of a width around it."""
        value, width = QuantileChoice(self.below), QuantileChoice(self.below, around=VALUE)
        value_size, width_size = (noise_size * self.size for noise_size in self.noise_sizes)
        return cell_choice(VALUE, value, value_size), cell_choice(WIDTH, width, width_size)

    def estimate(self, integers: Integers, noises: Noises) -> Record:
        """Return the round number of the cell, and the range of the cells around it."""
        del noises
        cell, around = integers[VALUE], integers[WIDTH]
        lower, upper = self.grid.cell_bounds(cell - around, cell + around)
        return {"value": self.grid.representative_value(cell), "lower": lower, "upper": upper}

    def expected_error(self, noises: Noises, people: int) -> tuple[float, float]:
        """Return the errors for values spread evenly over the range; for values closer together, errors are smaller."""
        expected, half_width = _relative_choice_errors(noises[VALUE], noises[WIDTH], people)
        return min(expected, 1.0) * self.grid.range_width, min(half_width, 1.0) * self.grid.range_width

    def suppression_probability(self, noises: Noises, people: int) -> float:
        """Return 0: a chosen quantile is always shown."""
        del noises, people
        return 0.0


@lru_cache(maxsize=256)
def _relative_choice_errors(value: Noise, width: Noise, people: int) -> tuple[float, float]:
    """Return E|error| and the mean half-width as fractions of the range, for rows at its first, third, … of 2n parts.

    The half-width is the mean over ``AVERAGED_CENTERS`` chosen cells, equally spaced quantiles of their distribution.
    """
    choice = value.choice
    if choice is None:
        raise TypeError(value.vector.statistic_name)
    if choice.is_extreme and people <= choice.left_out:
        return 1.0, 1.0
    edges = np.clip((np.arange(ALL_CELLS + 1) - 0.5) / ALL_CELLS, 0.0, 1.0)
    below = np.floor(people * np.where(np.arange(ALL_CELLS + 1) == ALL_CELLS, 1.0, edges) + 0.5)
    excess = PARTS * below - choice.below * people + choice.excess_shift
    truth = ALL_CELLS * (math.ceil((choice.below * people - choice.excess_shift) / PARTS) - 0.5) / people
    cell_probabilities = value.choice_distribution.selection_probabilities(cell_distances(excess))
    expected = float(cell_probabilities @ np.abs(np.arange(ALL_CELLS) - truth)) + 0.25
    centers = np.searchsorted(np.cumsum(cell_probabilities), (np.arange(AVERAGED_CENTERS) + 0.5) / AVERAGED_CENTERS)
    half_widths_in_cells: Floats = np.minimum(np.array(half_widths(ALL_CELLS)) + 0.5, ALL_CELLS / 2)
    target = choice.target_excess(width.choice_distribution, ALL_CELLS)
    width_probabilities = (
        width.choice_distribution.selection_probabilities(width_distances(excess, int(center), target))
        for center in centers
    )
    half_width = (
        math.fsum(float(probabilities @ half_widths_in_cells) for probabilities in width_probabilities)
        / AVERAGED_CENTERS
    )
    return expected / ALL_CELLS, math.nextafter(half_width / ALL_CELLS, math.inf)


# Several quantiles from noisy counts of the same cells and blocks, for the budget of one; they never cross.

BLOCK, CELL = "rows by block", "rows by cell"
NORMAL_MEAN_ABSOLUTE = 0.7978845608028654
"""E|Z| of the standard normal distribution: the sum of the noises is nearly normal."""


@dataclass(frozen=True, slots=True)
class CountedQuantile:
    """A quantile from noisy counts: the number at which the estimated number of rows below reaches its target."""

    grid: CellGrid
    q: float
    size: float

    notes: ClassVar[tuple[str, ...]] = (
        f"Values are counted in {ALL_CELLS:,} equal cells of the range and in blocks of cells. These counts are "
        "charged once and serve every quantile of the same column.",
        "Within a cell the value is a guess: the roundest number of the cell if the cell has far more rows than its "
        "neighbors. The interval reaches to the edges of the cell.",
        "Where the noisy count is below 1, the quantile is suppressed and the interval is the whole range.",
    )

    @staticmethod
    def statistic_names(noises: Noises) -> tuple[str, str]:
        """Return the names of both vectors among these: queries share them, also of several weights."""
        outer, inner = (next(name for name in noises if name.startswith(statistic)) for statistic in (BLOCK, CELL))
        return outer, inner

    def noisy_statistics(self) -> tuple[NoisyStatistic, ...]:
        """Return the counts by block and by cell. A row is in one of each."""
        size = nearest_eighths(self.size)
        outer, inner = f"{BLOCK} {size}", f"{CELL} {size}"
        return _block_counts(outer, BLOCK, self.size, CELLS), _block_counts(inner, CELL, self.size, 1)

    def estimate(self, integers: Integers, noises: Noises) -> Record:
        """Return the number where the estimated excess crosses zero; ``usable`` is the noisy number of values."""
        outer, inner = self.statistic_names(noises)
        blocks, cells = (np.asarray(integers[name], dtype=np.float64) for name in (outer, inner))
        usable = int(blocks.sum())
        if usable < 1:
            return {"value": None, "lower": self.grid.low, "upper": self.grid.high, "usable": usable}
        edges = self._edge_excess(noises)
        excess = edges.estimate_excess(blocks, cells.reshape(BLOCKS, CELLS))
        lower, upper = self.grid.cell_bounds(*edges.likely_cells(excess))
        position = edges.zero_crossing(excess)
        is_heap = has_heaped_values(cells, int(position), noises[inner].mean_absolute)
        value = self.grid.representative_value(int(position)) if is_heap else self.grid.edge_value(position)
        return {"value": value, "lower": min(lower, value), "upper": max(upper, value), "usable": usable}

    def expected_error(self, noises: Noises, people: int) -> tuple[float, float]:
        """Return the errors for values spread evenly over the range; for values closer together, errors are smaller."""
        edges = self._edge_excess(noises)
        block, cell = int(self.q * BLOCKS), CELLS // 2
        expected = NORMAL_MEAN_ABSOLUTE * float(edges.spread[block, cell]) / people + 0.25 / ALL_CELLS
        half_width = edges.exact_reach(block, cell) / people + 1 / ALL_CELLS
        return min(expected, 1.0) * self.grid.range_width, min(half_width, 1.0) * self.grid.range_width

    def suppression_probability(self, noises: Noises, people: int) -> float:
        """Return an upper bound on P(the noisy count is below 1)."""
        return self._edge_excess(noises).lower_tail_bound(people)

    def _edge_excess(self, noises: Noises) -> EdgeExcess:
        outer, inner = (noises[name] for name in self.statistic_names(noises))
        return EdgeExcess.from_noises(outer, inner, self.q)


def _block_counts(name: str, statistic: str, size: float, block: int) -> NoisyStatistic:
    """Return the number of rows in each block of ``block`` cells: a row is in one of them."""
    return NoisyStatistic(
        Measure(name, None, None), NoiseSpec(statistic, nearest_eighths(size), True), 1, disjoint_set=name, block=block
    )


MEDIAN, HALF_DAY = 0.5, 0.5


FEW_ROWS_NOTE = (
    "; where there are few rows or none, an arbitrary value of the range, with an interval of nearly all of it"
)
"""Note: a choice has a value even for few rows, and the budget does not include a count of rows."""


@dataclass(frozen=True, slots=True)
class RankQuery(ColumnQuery, ABC):
    """A value of a certain rank among the values of a column, each clamped to ``bounds``, on a grid of ``bounds``.

    Groups are listed with ``keys``, or follow from expressions. Of dates and timestamps, ``bounds`` are dates or ISO
    texts. The answer is a date (or timestamp, to the second), and its errors are in days.
    """

    bounds: tuple[RangeEnd, RangeEnd] | None = field(default=None, kw_only=True)  # type: ignore[assignment]
    """The lowest and highest value, to which values are clamped: numbers, or dates."""
    time_bounds: tuple[datetime.date, datetime.date] | None = field(default=None, init=False)
    """The range, if it is of dates or timestamps; ``bounds`` is then in days since 1970-01-01."""
    time_term: Term | None = field(default=None, init=False)
    """The column, if it is of dates or timestamps; ``term`` is then its number of days since 1970-01-01."""
    days_unit: str = field(default="", init=False)
    """The unit of the answer if it is a date or timestamp."""

    additive = False
    uniform = False
    clamping_effect_text = "only an answer at an end of this range can be another one without clamping"
    notes = ("For medians and quantiles only max_rows counts; max_groups and max_rows_per_group are ignored.",)
    remedy_for_times = f"or dates as bounds, {TIME_ADVICE}"

    def _set_checked_fields(self, *name_parts: str) -> None:
        """Check the column, the range and the options; ``name_parts`` begin the default name. Raises ``PlanError``."""
        term = column_term("column", self.column)
        options = self.check_options(
            *name_parts, str(term) if self.per_person is None else measured_name(term, self.per_person)
        )
        if options.max_groups is not None or (options.by and options.max_rows_per_group is not None):
            remedy = "max_rows bounds all groups of quantiles together"
            raise PlanError("max_rows_per_group", options.max_rows_per_group, "left out, as max_groups", remedy)
        times = time_range("bounds", self.bounds)
        days = None if times is None else (days_since_epoch(times[0]), days_since_epoch(times[1]))
        if times is not None and options.reader_texts.get("unit") is not None:
            raise PlanError("unit", options.reader_texts["unit"], "left out", "the answer is a date")
        self._set_fields(term=term, bounds=days or declared_range(term, self.bounds), time_bounds=times)

    @property
    def range_ends(self) -> tuple[str, str]:
        """Both ends of the range as text; of dates, as dates."""
        if self.time_bounds is not None:
            return str(self.time_bounds[0]), str(self.time_bounds[1])
        low, high = self.clamp_bounds
        return format_range_end(low), format_range_end(high)

    def _text_with_range(self, bounds: str) -> str:
        if self.time_bounds is None:
            return ColumnQuery._text_with_range(self, bounds)
        shown = escape_control_chars(str(self.time_term or self.term))
        return f"{self.statistic_name} of {shown}{bounds}{self.asked.groups_text}"

    @property
    def number_terms(self) -> tuple[Term, ...]:
        """The column, unless the range is of dates."""
        return (self.term,) if self.time_bounds is None else ()

    def resolve(self, schema: Schema, where: Term | None = None) -> Self:
        """Return the query for this schema; one about dates is about the days since 1970-01-01."""
        resolved = ColumnQuery.resolve(self, schema, where)
        if self.time_bounds is not None and self.time_term is None:
            resolved = resolved.with_fields(**resolved._fields_in_days(schema))
        return resolved

    def _fields_in_days(self, schema: Schema) -> dict[str, object]:
        """Return the fields of the query about days since 1970-01-01; raises ``PlanError`` unless it is about times."""
        kind, shown = term_facts(self.term, schema).kind, escape_control_chars(str(self.term))
        if kind not in TIME_KINDS:
            raise PlanError.from_text("bounds", f"they are dates, but {shown!r} is a column of kind {kind}")
        if kind == "date" and any(isinstance(end, datetime.datetime) for end in self.time_bounds or ()):
            raise PlanError.from_text("bounds", f"leave out the time of day: {shown!r} is a column of dates")
        tree = ColumnRef(self.term) if isinstance(self.term, str) else self.term
        unit = DATE_UNIT if kind == "date" else INSTANT_UNIT
        asked = replace(self.asked, reader_texts={**self.asked.reader_texts, "unit": unit})
        return {"asked": asked, "term": days_from_epoch(tree), "time_term": self.term, "days_unit": unit}

    @property
    def cell_expression(self) -> Cell:
        """The grid: cells of equal width around round numbers, where many values lie; the last ends with the range."""
        return self._cell_grid.cell_expression(self.term)

    @property
    def range_without_rows(self) -> tuple[float, float] | None:
        """The range: a choice has a value even without rows."""
        return self.clamp_bounds

    @property
    def all_notes(self) -> tuple[str, ...]:
        """The notes on the method, then the notes for all quantiles."""
        in_days = ("Margins of error are in days.",) if self.time_bounds is not None else ()
        of_rows = self.notes if self.asked.per_person is None else ()
        return (*self.method_notes, *in_days, *of_rows)

    @property
    def method_notes(self) -> tuple[str, ...]:
        """The notes on the method."""
        return self._answering_method.notes

    @property
    def _cell_grid(self) -> CellGrid:
        return CellGrid(*self.clamp_bounds)

    @property
    @abstractmethod
    def _answering_method(self) -> CountedQuantile | ChosenQuantile:
        """The choices, or the counts, from which the value is computed."""

    def noisy_statistics(self) -> tuple[NoisyStatistic, ...]:
        """Return two choices, or counts by block and by cell."""
        return self._answering_method.noisy_statistics()

    def estimate(self, integers: Integers, noises: Noises, outside: float = OUTSIDE) -> Record:
        """Return the value and its interval; ``usable`` is the noisy number of values, if they are counted.

        Raises ``ValueError`` for another ``outside`` than 5 %: the method has that probability.
        """
        if outside != OUTSIDE:
            raise ValueError("the interval of a quantile misses it with a probability of 5 %")
        record = self._answering_method.estimate(integers, noises)
        if self.days_unit != DATE_UNIT:
            return record
        directions: dict[str, Rounding] = {"value": "nearest", "lower": "down", "upper": "up"}
        return {
            name: number
            if number is None or name not in directions
            else float(ROUND_BY_DIRECTION[directions[name]](number))
            for name, number in record.items()
        }

    def expected_error(self, noises: Noises, people: int) -> tuple[float, float]:
        """Return the errors for values spread evenly over the range; for values closer together, errors are smaller.

        Rounding to days adds at most half a day to the error, and at most a day to the half-width.
        """
        expected, half_width = self._answering_method.expected_error(noises, people)
        if self.days_unit != DATE_UNIT:
            return expected, half_width
        return expected + HALF_DAY, half_width + 2 * HALF_DAY

    def suppression_probability(self, noises: Noises, people: int) -> float:
        """Return a bound on P(the noisy number of values is below 1), 0 if the value is chosen."""
        return self._answering_method.suppression_probability(noises, people)


@final
@dataclass(frozen=True, slots=True)
class quantile(RankQuery):
    """The ``q``-quantile of a column, each value clamped to ``bounds``: a fraction ``q`` of values does not exceed it.

    A single quantile of a column, range and groups is chosen from a grid of ``bounds`` by the exponential mechanism.
    Several are read from the same noisy counts: any number needs the same budget, and they never cross. Groups are
    listed with ``keys``, or follow from expressions. All other keywords are as in ``count``. Raises ``PlanError`` for
    an invalid parameter.

    Of dates and timestamps, ``bounds`` are dates or ISO texts. The answer is a date (or timestamp, to the second), and
    its errors are in days.

    >>> quantile("income", 0.9, bounds=(0, 200_000)).name
    'quantile_0.9_income'
    >>> str(quantile("admitted", 0.9, bounds=("2024-01-01", "2024-12-31")))
    '0.9 quantile of admitted between 2024-01-01 and 2024-12-31'
    """

    q: float
    """The fraction of values that do not exceed the answer: 0.5 is the median."""
    counted: bool = field(default=False, init=False)
    """True if the quantile is read from counts shared with other quantiles; otherwise it is chosen."""

    kind = "quantile"
    meaning = "The value that a given fraction of all values does not exceed"
    entries = ("column", "bounds", "q")
    entry_defaults: ClassVar[Mapping[str, object]] = {"q": MEDIAN}

    def title_and_meaning(self, means: str) -> tuple[str, str]:
        """Return the query and its meaning in words: the value that half of all, or 90 %, do not exceed."""
        del means
        fraction_text, few_rows_note = (
            "half" if self.q == MEDIAN else f"{100 * self.q:g} %",
            "" if self.counted else FEW_ROWS_NOTE,
        )
        return self.default_title, f"The value that {fraction_text} of all values do not exceed{few_rows_note}"

    @property
    def statistic_name(self) -> str:
        """The name of the quantile."""
        return "median" if self.q == MEDIAN else f"{self.q:g} quantile"

    def __post_init__(self) -> None:
        q = self.q
        if isinstance(q, list | tuple):
            raise PlanError("q", q, "one number", "write one [[question]] for each; in Python say tr.quantiles")
        column_term("column", self.column)
        fraction = check_finite("q", q, "0.5 is the median")
        if not 0 < fraction < 1:
            remedy = "0.5 is the median; tr.minimum and tr.maximum leave out the rows that they must"
            raise PlanError("q", q, "above 0 and below 1", remedy)
        self._set_checked_fields(*(("median",) if fraction == MEDIAN else ("quantile", f"{fraction:g}")))
        self._set_fields(q=fraction)

    def specialize(self, together: Sequence[Query]) -> Self:
        """Return the query: chosen if it is the only one of its column and groups, else read from shared counts."""
        quantile_count = sum(isinstance(question, quantile) for question in together)
        return self.with_fields(counted=quantile_count > 1 or quantile_in_millionths(self.q) is None)

    @property
    def range_without_rows(self) -> tuple[float, float] | None:
        """The range, if the quantile is chosen: a choice has a value even without rows, a counted quantile has none."""
        return None if self.counted else self.clamp_bounds

    @property
    def _answering_method(self) -> CountedQuantile | ChosenQuantile:
        millionths = None if self.counted else quantile_in_millionths(self.q)
        if millionths is None:
            return CountedQuantile(self._cell_grid, self.q, self.asked.relative_noise_size)
        return ChosenQuantile(self._cell_grid, millionths, self.asked.relative_noise_size)


@dataclass(frozen=True, slots=True)
class ExtremeQuery(RankQuery, ABC):
    """The minimum or maximum of a column without the few rows that are farthest out, each value clamped to ``bounds``.

    The true minimum and maximum are the value of one person, so that they cannot be released. How many rows are left
    out follows from the noise, not from the data: this many that a value beyond all rows is chosen at most 1 time in
    20. It is chosen from a grid of ``bounds`` by the exponential mechanism.
    """

    values_left_out: int | None = field(default=None, init=False, compare=False)
    """The number of values that are left out; None until the noise is selected."""

    farthest: ClassVar[str]
    """The values that are left out: the smallest or the largest."""
    rank_in_millionths: ClassVar[int]
    """The quantile, in millionths: 0 or 1,000,000."""

    def __post_init__(self) -> None:
        self._set_checked_fields(self.kind)

    @property
    def left_out_text(self) -> str:
        """The values that are left out, in words."""
        count = self.values_left_out
        if count is None:
            return f"{self.farthest} values"
        return f"{self.farthest} value" if count == 1 else f"{count:,} {self.farthest} values"

    @property
    def statistic_name(self) -> str:
        """The statistic in words, with the values that are left out."""
        return f"{self.kind} of all but the {self.left_out_text}"

    def title_and_meaning(self, means: str) -> tuple[str, str]:
        """Return the query and its meaning in words: what is left out, and where the value means nothing."""
        del means
        few_rows = "so few values" if self.values_left_out is None else f"{self.values_left_out:,} values or fewer"
        meaning = (
            f"The {self.farthest} value apart from the {self.left_out_text}, because the true {self.kind} is the "
            f"value of one person; where there are {few_rows}, an arbitrary value of the range"
        )
        return self.default_title, meaning

    @property
    def rows_without_value(self) -> int:
        """The number of values that are left out: with so few, none remains."""
        return self.values_left_out or 0

    def resolve_noise(self, noises: Noises) -> Self:
        """Return the query with the number of values that its noise leaves out."""
        choice = noises[VALUE].choice
        return self.with_fields(values_left_out=None if choice is None else choice.left_out)

    @property
    def method_notes(self) -> tuple[str, ...]:
        """The notes on the grid, on what is left out and what is certain."""
        few = "so few" if self.values_left_out is None else f"{self.values_left_out:,}"
        return (
            ChosenQuantile.notes[0],
            f"The number of values that are left out follows from the noise, not from the data. The interval is for "
            f"the {self.kind} of the other values. The value itself lies, 19 times in 20, at most one cell beyond the "
            f"true {self.kind}, with at most twice as many values beyond it.",
            f"If a count of the same rows in this plan may be {few} or less (by its interval), the value is "
            "suppressed, and the interval is the whole range: add a count.",
        )

    @property
    def _answering_method(self) -> ChosenQuantile:
        size = self.asked.relative_noise_size
        return ChosenQuantile(self._cell_grid, self.rank_in_millionths, size, EXTREME_NOISE_SIZES)


@final
@dataclass(frozen=True, slots=True)
class minimum(ExtremeQuery):
    """The minimum of a column without its smallest values, each value clamped to ``bounds``.

    The true minimum is the value of one person and cannot be released. How many of the smallest values are left out
    depends on the noise, not on the data; plan, answer and label state the number. All other keywords are as in
    ``quantile``. Raises ``PlanError`` for an invalid parameter.

    >>> minimum("income", bounds=(0, 200_000)).name
    'minimum_income'
    >>> str(minimum("income", bounds=(0, 200_000)))
    'minimum of all but the smallest values of income between 0 and 200000'
    """

    kind = "minimum"
    meaning = "The smallest value apart from a few smaller ones"
    farthest = "smallest"
    rank_in_millionths = 0


@final
@dataclass(frozen=True, slots=True)
class maximum(ExtremeQuery):
    """The maximum of a column without its largest values, each value clamped to ``bounds``.

    The true maximum is the value of one person and cannot be released. How many of the largest values are left out
    depends on the noise, not on the data; plan, answer and label state the number. All other keywords are as in
    ``quantile``. Raises ``PlanError`` for an invalid parameter.

    >>> maximum("delay", bounds=(0, 2_000)).name
    'maximum_delay'
    """

    kind = "maximum"
    meaning = "The largest value apart from a few larger ones"
    farthest = "largest"
    rank_in_millionths = PARTS


def median(
    column: Given,
    *,
    bounds: tuple[RangeEnd, RangeEnd] | None = None,
    where: Given | None = None,
    by: Given | Mapping[str, Given] | Sequence[Given | Mapping[str, Given]] = (),
    keys: object = None,
    weight: float = 1.0,
    name: str | None = None,
    max_rows_per_group: int | None = None,
    max_groups: int | None = None,
    margin_of_error: float | str | None = None,
    title: str | None = None,
    description: str | None = None,
    unit: str | None = None,
    means: str | None = None,
    per_person: str | None = None,
    round_to: float | None = None,
) -> quantile:
    """The median of a column: ``quantile`` with q = 0.5.

    >>> str(median("income", bounds=(0, 200_000)))
    'median of income between 0 and 200000'
    """
    return quantile(
        column, MEDIAN, bounds=bounds, where=where, by=by, keys=keys, weight=weight, name=name,
        max_rows_per_group=max_rows_per_group, max_groups=max_groups, margin_of_error=margin_of_error,
        title=title, description=description, unit=unit, means=means,
        per_person=per_person, round_to=round_to,
    )  # fmt: skip


def quantiles(
    column: Given,
    qs: Sequence[float],
    *,
    bounds: tuple[RangeEnd, RangeEnd] | None = None,
    where: Given | None = None,
    by: Given | Mapping[str, Given] | Sequence[Given | Mapping[str, Given]] = (),
    keys: object = None,
    weight: float = 1.0,
    name: None = None,
    max_rows_per_group: int | None = None,
    max_groups: int | None = None,
    margin_of_error: float | str | None = None,
    title: str | None = None,
    description: str | None = None,
    unit: str | None = None,
    means: str | None = None,
    per_person: str | None = None,
    round_to: float | None = None,
) -> list[quantile]:
    """Return one query per quantile, all for one budget: ``session.plan([*tr.quantiles(...), ...])``.

    Each has its own name. All other keywords are as in ``quantile``. Raises ``PlanError`` for an invalid parameter.

    >>> [str(one) for one in quantiles("age", [0.25, 0.75], bounds=(0, 100))]
    ['0.25 quantile of age between 0 and 100', '0.75 quantile of age between 0 and 100']
    """
    if name is not None:
        raise PlanError("name", name, "left out", "each quantile has its own name")
    fractions = list(qs) if isinstance(qs, Iterable) else []
    if not fractions:
        raise PlanError("qs", qs, "a list of at least one number", "say [0.25, 0.5, 0.75]")
    return [
        quantile(
            column, q, bounds=bounds, where=where, by=by, keys=keys, weight=weight,
            max_rows_per_group=max_rows_per_group, max_groups=max_groups, margin_of_error=margin_of_error,
            title=title, description=description, unit=unit, means=means,
        per_person=per_person, round_to=round_to,
        )
        for q in fractions
    ]  # fmt: skip
