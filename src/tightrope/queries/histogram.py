"""Histograms: the number of rows in each bin of a column, between declared edges."""

from __future__ import annotations

import datetime
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Self, final

from tightrope.documents.escaping import escape_control_chars
from tightrope.errors import InputError, PlanError
from tightrope.numerics.checks import check_positive
from tightrope.queries.column_query import (
    TIME_ADVICE,
    RangeEnd,
    column_term,
    measured_name,
    measured_text,
    resolve_measured,
    time_range,
    value_range,
)
from tightrope.queries.count import NOT_CLAMPED_NOTE, RowCountQuery
from tightrope.queries.options import Given
from tightrope.tables.expressions.conditions import MAX_EDGES, Cut, edge_times, make_cut
from tightrope.tables.expressions.expression import Term, resolve_term
from tightrope.tables.expressions.leaves import ColumnRef, Value, to_literal
from tightrope.tables.expressions.tree import NUMBERS
from tightrope.tables.schema import Schema

Edges = tuple[Value, ...]
EDGES_ADVICE = "say edges=[0, 18, 65], from what is publicly known; the last part has no end"
WIDTH_ADVICE = "say width=10, bounds=(0, 100), from what is publicly known"
TIME_WIDTH_ADVICE = 'say width=7 or width="month", bounds=("2024-01-01", "2024-12-31")'
CALENDAR_UNITS = "year", "quarter", "month", "week", "day", "hour"
"""Widths of bins of dates and timestamps; the last one is for timestamps only."""
MAX_PRINTED_EDGES, MAX_PRINTED_CHARACTERS = 20, 200
"""Limits for invalid edges that an error message shows: their number, and the characters of their text."""


@final
@dataclass(frozen=True, slots=True)
class histogram(RowCountQuery):
    """The number of rows in each bin of a column: increasing ``edges``, or bins of one ``width`` over ``bounds``.

    Of dates and timestamps, ``edges`` and ``bounds`` are dates or ISO texts, and ``width`` is a number of days, or
    ``"year"``, ``"quarter"``, ``"month"``, ``"week"``, ``"day"`` or ``"hour"`` of the calendar, in UTC.

    The key of a bin is its lower edge; the last bin has no upper end, and missing values and values below the first
    edge form the group ``None``. Every bin is shown, unless the groups of ``by`` are discovered: then the bins are
    discovered, too. A row is in one bin, so all bins together need the budget of one count. All other keywords are as
    in ``count``. Raises ``PlanError`` for an invalid parameter.

    >>> str(histogram("age", width=10, bounds=(0, 100)))
    'histogram of age in 11 parts from 0 to 100 and beyond'
    >>> str(histogram("day", width="month", bounds=("2024-01-01", "2024-12-31")))
    "histogram of day in 12 parts from '2024-01-01' to '2024-12-01' and beyond"
    """

    column: Given = field(compare=False)
    """The column's name, or an expression, also as text."""
    edges: Sequence[object] | None = field(default=None, kw_only=True, compare=False)
    """The lower edges of the bins, increasing."""
    width: float | str | None = field(default=None, kw_only=True, compare=False)
    """The width of every bin, in place of ``edges``: a number, or a unit of the calendar."""
    bounds: tuple[RangeEnd, RangeEnd] | None = field(default=None, kw_only=True, compare=False)
    """The range that bins of one ``width`` cover."""
    term: Term = field(init=False, repr=False)
    """The column, checked."""
    begin: Edges = field(init=False, repr=False)
    """The lower edges of the bins: ``edges``, checked, or computed from ``width`` and ``bounds``."""

    kind = "histogram"
    meaning = "The number of rows"
    additive = True
    notes = (
        "Each bin is named after its left edge and ends before the next edge; the last bin has no upper end. None "
        "counts missing values and values below the first edge.",
        NOT_CLAMPED_NOTE,
    )
    remedy_for_times = f"or dates as edges or bounds, {TIME_ADVICE}"
    entries = ("column", "edges", "width", "bounds")
    person_values = ("count", "sum")

    def __str__(self) -> str:
        ends = f"from {self.begin[0]} to {self.begin[-1]} and beyond"
        other_groups = self.asked.without_groups(self.asked.by[-1:]).groups_text
        per_person = self.asked.per_person
        measured = escape_control_chars(str(self.term)) if per_person is None else measured_text(self.term, per_person)
        return f"histogram of {measured} in {len(self.begin):,} parts {ends}{other_groups}"

    def __post_init__(self) -> None:
        lower_edges = resolve_edges(self.edges, self.width, self.bounds)
        term = column_term("column", self.column)
        key_name = str(term) if self.per_person is None else measured_name(term, self.per_person)
        options = self.check_options(self.kind, key_name)
        if str(term) in options.by:
            raise PlanError("by", str(term), "another column than the histogram's own", "its parts are groups already")
        keys = options.keys
        if keys is not None:
            has_times = lower_edges[0].kind == "text"
            bin_keys = (None, *(edge_times(lower_edges) if has_times else (edge.value for edge in lower_edges)))
            keys = tuple((*key, bin_key) for key, bin_key in itertools.product(keys, bin_keys))
        grouped_options = replace(
            options,
            by=(*options.by, key_name),
            terms=(*options.terms, term),
            keys=keys,
            part_edges=tuple(time.isoformat() for time in edge_times(lower_edges))
            if lower_edges[0].kind == "text"
            else tuple(edge.value for edge in lower_edges),
        )
        self._set_fields(asked=grouped_options, term=term, begin=lower_edges)

    @property
    def number_terms(self) -> tuple[Term, ...]:
        """The column, unless the edges are dates."""
        return (self.term,) if self.begin[0].kind in NUMBERS else ()

    def resolve(self, schema: Schema, where: Term | None = None) -> Self:
        """Return the query for this schema, grouped by the lower edge of each value's bin, after all other groups."""
        if isinstance(self.asked.terms[-1], Cut):
            return self.with_fields(asked=self.asked.resolve(schema, where))
        largest = max((abs(float(edge.value)) for edge in self.begin if edge.kind in NUMBERS), default=1.0) or 1.0
        term = (
            resolve_term(self.term, schema)
            if self.asked.per_person is None
            else resolve_measured(self.term, schema, self.asked.per_person, (-largest, largest))
        )
        cut = make_cut(ColumnRef(term) if isinstance(term, str) else term, self.begin)
        options = replace(self.asked, terms=(*self.asked.terms[:-1], cut))
        return self.with_fields(asked=options.resolve(schema, where), term=term)


def resolve_edges(edges: object, width: object, bounds: object) -> Edges:
    """Return the edges, given or computed; raises ``PlanError`` if they are missing or not increasing."""
    if (edges is None) == (width is None):
        raise PlanError("edges", edges, "given, or else width and bounds", f"{EDGES_ADVICE}; or {WIDTH_ADVICE}")
    if edges is None and (times := time_range("bounds", bounds)) is not None:
        return _calendar_edges(*times, width)
    if edges is None:
        # low, low + width, … up to high, in decimals: 0.1 is one tenth.
        if isinstance(width, str):
            raise PlanError("width", width, "a number, or a unit of the calendar with dates as bounds", WIDTH_ADVICE)
        (low, high), step = value_range("bounds", bounds), check_positive("width", width, WIDTH_ADVICE)
        if not (high - low) / step < MAX_EDGES:
            raise PlanError("width", width, f"such that there are fewer than {MAX_EDGES:,} parts", "take wider parts")
        first, exact_width = Decimal(repr(low)), Decimal(repr(float(step)))
        exact_edges = [
            first + number * exact_width
            for number in range(math.floor((Decimal(repr(high)) - first) / exact_width) + 1)
        ]
        all_integers = all(edge == edge.to_integral_value() for edge in exact_edges)
        return tuple(to_literal(int(edge) if all_integers else float(edge)) for edge in exact_edges)
    if bounds is not None or not isinstance(edges, (list, tuple, range)):
        raise PlanError(
            "edges", _printable_edges(edges), "a list of increasing numbers or days, without bounds", EDGES_ADVICE
        )
    try:
        return make_cut(ColumnRef("x"), [to_literal(edge) for edge in edges]).edges
    except InputError as error:
        raise PlanError("edges", _printable_edges(edges), error.expected, EDGES_ADVICE) from None


def _calendar_edges(low: datetime.date, high: datetime.date, width: object) -> Edges:
    """Return the edges from one day or instant to another: at multiples of a width, or where a unit begins."""
    has_clock = isinstance(low, datetime.datetime)
    units = CALENDAR_UNITS if has_clock else CALENDAR_UNITS[:-1]
    edges, step = [low], datetime.timedelta()
    if isinstance(width, str):
        if width not in units:
            raise PlanError("width", width, f"a number of days, or one of {', '.join(units)}", TIME_WIDTH_ADVICE)
    else:
        days = check_positive("width", width, TIME_WIDTH_ADVICE)
        if not (has_clock or days == int(days)) or not days * MAX_EDGES >= (high - low).total_seconds() / 86_400:
            expected = f"a whole number of days, such that there are at most {MAX_EDGES:,} parts"
            raise PlanError("width", width, expected, TIME_WIDTH_ADVICE)
        step = datetime.timedelta(days=min(days, datetime.timedelta.max.days))
    while len(edges) <= MAX_EDGES:
        try:
            following = _next_beginning(edges[-1], width) if isinstance(width, str) else low + len(edges) * step
        except OverflowError:  # the calendar ends
            break
        if following > high:
            break
        edges.append(following)
    if len(edges) > MAX_EDGES:
        raise PlanError("width", width, f"such that there are at most {MAX_EDGES:,} parts", "take wider parts")
    return tuple(to_literal(edge) for edge in edges)


def _next_beginning(time: datetime.date, unit: str) -> datetime.date:
    """Return the first day or instant after ``time`` at which a unit of the calendar begins."""
    if unit == "hour" and isinstance(time, datetime.datetime):
        return time.replace(minute=0, second=0, microsecond=0) + datetime.timedelta(hours=1)
    midnight = time.replace(hour=0, minute=0, second=0, microsecond=0) if isinstance(time, datetime.datetime) else time
    if unit in ("day", "week"):
        return midnight + datetime.timedelta(days=1 if unit == "day" else 7 - midnight.weekday())
    months = {"month": 1, "quarter": 3, "year": 12}[unit]
    index = (midnight.year * 12 + midnight.month - 1) // months * months + months
    if index // 12 > datetime.MAXYEAR:
        raise OverflowError(unit)
    return midnight.replace(year=index // 12, month=index % 12 + 1, day=1)


def _printable_edges(edges: object) -> object:
    """Return the edges for an error message: only their type and length unless short and plain; they may be data."""
    listed = edges if isinstance(edges, (list, tuple, range)) else [edges]
    is_short_and_plain = len(listed) <= MAX_PRINTED_EDGES and all(
        isinstance(edge, str | int | float | None) for edge in listed
    )
    return (
        edges
        if is_short_and_plain and len(repr(edges)) <= MAX_PRINTED_CHARACTERS
        else f"{type(edges).__name__} of {len(listed):,}"
    )
