"""Queries about the values of a column, clamped to a declared range that bounds the effect of one row."""

from __future__ import annotations

import datetime
import math
from abc import ABC
from dataclasses import dataclass, field
from typing import ClassVar, Self

from tightrope.documents.escaping import escape_control_chars
from tightrope.errors import InputError, PlanError
from tightrope.numerics.checks import check_finite
from tightrope.queries.options import Given, unwrap_expression
from tightrope.queries.query import Query
from tightrope.queries.statistics import column_grid
from tightrope.tables import Expression
from tightrope.tables.expressions.expression import Term, resolve_term, term_facts
from tightrope.tables.expressions.leaves import (
    ColumnRef,
    PersonAggregate,
    PersonValue,
    is_day_text,
    parse_instant,
)
from tightrope.tables.expressions.tree import NUMBERS, ExpressionTree
from tightrope.tables.schema import Kind, Schema

EXPONENT_FROM = 1e15
"""From this size on, a float is shown with an exponent."""
TIME_ADVICE = "such as ('2024-01-01', '2024-12-31')"
RangeEnd = float | str | datetime.date
"""An end of a range: a number, or for dates and timestamps a date, also as ISO text."""
RANGE_ADVICE = "give the range to which values are clamped, from public knowledge, not from the data"


def clamped_text(low: object, high: object) -> str:
    """Return the range of a column as titles state it.

    >>> clamped_text(0, 500000)
    ' (clamped to [0, 500000])'
    """
    return f" (clamped to [{low}, {high}])"


def moved_values_text(low: object, high: object, subject: str = "values") -> str:
    """Return how values beyond a range are counted.

    >>> moved_values_text(0, 50, "values of age")
    'values of age above 50 count as 50, those below 0 as 0'
    """
    return f"{subject} above {high} count as {high}, those below {low} as {low}"


@dataclass(frozen=True, slots=True)
class ColumnQuery(Query, ABC):
    """A statistic of the values of ``column``, clamped to ``bounds``.

    ``bounds`` may be left out if the column is an expression with a range of its own.
    """

    column: Given = field(compare=False)
    """The column's name, or an expression, also as text."""
    bounds: tuple[float, float] | None = field(default=None, kw_only=True)
    """The lowest and highest value, to which values are clamped."""
    term: Term = field(init=False, repr=False)
    """The column, checked."""
    clamps_values: bool = field(default=True, init=False, repr=False, compare=False)
    """True unless the range of a resolved query contains all values that its column can have."""

    clamping_effect_text: ClassVar[str] = "without clamping, the answer can be another one"
    """The effect of clamping on the answer, unless it moves in the direction of the values."""
    clamped_number: ClassVar[str] = ""
    """The name of an answer that moves in the direction of the values."""
    entries: ClassVar[tuple[str, ...]] = ("column", "bounds")
    person_values: ClassVar[tuple[str, ...]] = ("count", "sum")

    def __str__(self) -> str:
        return self._text_with_range("" if self.bounds is None else " between {} and {}".format(*self.range_ends))

    @property
    def default_title(self) -> str:
        """The query in words, with the range to which values are clamped."""
        return self._text_with_range("" if self.bounds is None else clamped_text(*self.range_ends))

    @property
    def range_ends(self) -> tuple[str, str]:
        """Both ends of the range as text."""
        low, high = self.clamp_bounds
        return format_range_end(low), format_range_end(high)

    @property
    def clamping_effect(self) -> str:
        """The effect of clamping; empty if the range contains all values of the column."""
        if not self.clamps_values:
            return ""
        low, high = self.range_ends
        if self.clamped_number:
            return (
                f"Values above {high} count as {high}, so the true {self.clamped_number} can be higher; those below "
                f"{low} count as {low}, so it can be lower."
            )
        moved = moved_values_text(low, high)
        return f"{moved[:1].upper()}{moved[1:]}: {self.clamping_effect_text}."

    def _text_with_range(self, bounds: str) -> str:
        per_person = self.asked.per_person
        measured = escape_control_chars(str(self.term)) if per_person is None else measured_text(self.term, per_person)
        return f"{self.statistic_name} of {measured}{bounds}{self.asked.groups_text}"

    @property
    def statistic_name(self) -> str:
        """The statistic in words."""
        return self.kind

    @property
    def clamp_bounds(self) -> tuple[float, float]:
        """The range ``bounds``. Raises ``PlanError`` if it is not set yet."""
        if self.bounds is None:
            raise PlanError.from_text("bounds", f"missing; {RANGE_ADVICE}")
        return self.bounds

    @property
    def clamped_columns(self) -> tuple[tuple[Term, tuple[float, float] | None], ...]:
        """The column, clamped to ``bounds``."""
        return ((self.term, self.clamp_bounds),)

    @property
    def number_terms(self) -> tuple[Term, ...]:
        """The column."""
        return (self.term,)

    def resolve(self, schema: Schema, where: Term | None = None) -> Self:
        """Return the query for this schema; the range of an expression is derived from its parts.

        Raises ``PlanError`` unless that range is numeric and finite.
        """
        asked, bounds = self.asked.resolve(schema, where), self.bounds
        term = (
            resolve_term(self.term, schema)
            if asked.per_person is None
            else resolve_measured(self.term, schema, asked.per_person, bounds)
        )
        facts = term_facts(term, schema)
        if bounds is None:
            bounds = facts.lower, facts.upper
            is_range = all(map(math.isfinite, bounds)) and bounds[0] < bounds[1]
            if facts.kind not in (*NUMBERS, "boolean") or not is_range:
                text = f"missing, and {escape_control_chars(str(term))} has no range of its own; {RANGE_ADVICE}"
                raise PlanError.from_text("bounds", f"{text}; or use clip(..., lowest, highest)")
        clamps_values = not bounds[0] <= facts.lower <= facts.upper <= bounds[1]
        return self.with_fields(asked=asked, term=term, bounds=bounds, clamps_values=clamps_values)

    def __post_init__(self) -> None:
        term = column_term("column", self.column)
        self.check_options(self.kind, str(term) if self.per_person is None else measured_name(term, self.per_person))
        self._set_fields(term=term, bounds=declared_range(term, self.bounds))


ALL_ROWS = "*"
"""The column of a statistic of persons that counts all of their rows."""


def measured_name(term: Term, per_person: str | None) -> str:
    """Return the word for a measured column in the default name of a query.

    >>> measured_name("*", "count"), measured_name("delay", "sum"), measured_name("delay", None)
    ('rows_per_person', 'delay_per_person', 'delay')
    """
    return str(term) if per_person is None else f"{'rows' if term == ALL_ROWS else term}_per_person"


def measured_text(term: Term, per_person: PersonAggregate | None) -> str:
    """Return a measured column in words, for a query that may not be resolved yet."""
    if per_person is not None and not isinstance(term, PersonValue):
        part = None if term == ALL_ROWS else term if isinstance(term, ExpressionTree) else ColumnRef(term)
        return escape_control_chars(str(PersonValue(per_person, part)))
    return escape_control_chars(str(term))


def resolve_measured(
    term: Term, schema: Schema, per_person: PersonAggregate | None, bounds: tuple[float, float] | None
) -> Term:
    """Return the measured column for this schema; of persons, the value of a person, whose step follows from bounds.

    Raises ``PlanError`` for a sum of all rows.
    """
    if per_person is None or isinstance(term, PersonValue):
        return resolve_term(term, schema)
    if term == ALL_ROWS:
        if per_person != "count":
            raise PlanError.from_text(
                "column", f'"*" counts rows, with per_person="count"; name a column for {per_person!r}'
            )
        return PersonValue("count", None)
    resolved = resolve_term(term, schema)
    part = ColumnRef(resolved) if isinstance(resolved, str) else resolved
    step = "1" if bounds is None or per_person != "sum" else str(column_grid(bounds, centered=False).step)
    value = PersonValue(per_person, part, step)
    value.infer_column_facts(schema)
    return value


def declared_range(term: Term, bounds: object) -> tuple[float, float] | None:
    """Return the declared range; None if it was left out and the column may be an expression. Raises ``PlanError``."""
    return (
        None
        if bounds is None and (isinstance(term, ExpressionTree) or not term.isidentifier())
        else value_range("bounds", bounds)
    )


def column_term(name: str, column: object) -> Term:
    """Return the column name or expression of parameter ``name``; raises ``PlanError`` if it is neither."""
    if not (isinstance(column, (str, Expression)) and str(column)):
        if column is None:
            raise PlanError.from_text(name, "missing; name a column, such as 'income'")
        expected = "the name of a column or an expression"
        raise PlanError(name, column, expected, "for example 'income'")
    return unwrap_expression(column)


def format_range_end(number: float) -> str:
    """Return the number as text with all of its digits.

    >>> format_range_end(1234567.0), format_range_end(-0.0), format_range_end(0.1)
    ('1234567', '0', '0.1')
    """
    return str(int(number)) if number.is_integer() and abs(number) < EXPONENT_FROM else repr(number)


def time_range(name: str, bounds: object) -> tuple[datetime.date, datetime.date] | None:
    """Return the range of parameter ``name`` if its ends are days or instants, also as ISO texts, else None.

    Both are instants in UTC if one has a time of day. Raises ``PlanError`` if they are not in order, or if one is a
    text of another form.
    """
    ends = bounds if isinstance(bounds, (tuple, list)) and len(bounds) == 2 else ()
    if not ends or not any(isinstance(end, (str, datetime.date)) for end in ends):
        return None
    texts = [end.isoformat() if isinstance(end, datetime.date) else end for end in ends]
    if not all(isinstance(text, str) for text in texts):
        raise PlanError(name, bounds, "two numbers or two dates", TIME_ADVICE)
    kind: Kind = "date" if all(map(is_day_text, texts)) else "timestamp"
    try:
        low, high = (parse_instant(text, kind) for text in texts)
    except InputError:
        raise PlanError(name, bounds, "two numbers or two dates", TIME_ADVICE) from None
    if not low < high:
        raise PlanError.from_text(name, f"the first date must be before the second, not {low} and {high}")
    return low, high


def value_range(name: str, bounds: object) -> tuple[float, float]:
    """Return the range of parameter ``name`` as two floats; raises ``PlanError`` if it is not a range."""
    if not isinstance(bounds, (tuple, list)) or len(bounds) != 2:
        if bounds is None:
            raise PlanError.from_text(name, f"missing; {RANGE_ADVICE}")
        raise PlanError(name, bounds, "a pair of numbers", RANGE_ADVICE)
    if any(isinstance(end, (str, datetime.date)) for end in bounds):
        remedy = "dates are for median, quantile and histogram; days(x) turns a date into a number"
        raise PlanError(name, tuple(map(str, bounds)), "a pair of numbers", remedy)
    low, high = check_finite(f"{name}[0]", bounds[0], RANGE_ADVICE), check_finite(f"{name}[1]", bounds[1], RANGE_ADVICE)
    if not low < high:
        raise PlanError.from_text(name, f"the first number must be smaller than the second, not {low:g} and {high:g}")
    return low, high
