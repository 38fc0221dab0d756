"""Questions about a column's values, each clamped to a range that is declared: it bounds what one row can change."""

from __future__ import annotations

import math
from abc import ABC
from dataclasses import dataclass, field
from typing import ClassVar, Self

from tightrope.documents.escaping import printable
from tightrope.errors import PlanError
from tightrope.numerics.checks import finite
from tightrope.queries.options import Given, unwrapped
from tightrope.queries.query import Question
from tightrope.tables import Expression
from tightrope.tables.expressions.expression import Term, facts_of, term_of
from tightrope.tables.expressions.tree import NUMBERS, Tree
from tightrope.tables.schema import Schema

PUBLIC = "say between = (lowest, highest), from what is publicly known and not from the data"


@dataclass(frozen=True, slots=True)
class OfColumn(Question, ABC):
    """A statistic of the values of ``column``, clamped to ``between``.

    ``between`` may be left out where the column is an expression that has a range by itself.
    """

    column: Given = field(compare=False)
    """The column's name, or an expression, also as text."""
    between: tuple[float, float] | None = field(default=None, kw_only=True)
    """The lowest and the highest value, to which values are clamped."""
    term: Term = field(init=False, repr=False)
    """The column, checked."""

    entries: ClassVar[tuple[str, ...]] = ("column", "between")

    def __str__(self) -> str:
        ends = self.between
        between = "" if ends is None else f" between {shown_end(ends[0])} and {shown_end(ends[1])}"
        return f"{self.what} of {printable(str(self.term))}{between}{self.asked.groups}"

    @property
    def what(self) -> str:
        """The statistic in words."""
        return self.kind

    @property
    def clamp_bounds(self) -> tuple[float, float]:
        """The range ``between``. Raises ``PlanError`` where it is not known yet."""
        if self.between is None:
            raise PlanError("between", None, "a pair of numbers", PUBLIC)
        return self.between

    @property
    def ranges(self) -> tuple[tuple[Term, tuple[float, float] | None], ...]:
        """The column, clamped to ``between``."""
        return ((self.term, self.clamp_bounds),)

    def settled(self, schema: Schema, where: Term | None = None) -> Self:
        """The range of an expression is known from its parts."""
        asked, term = self.asked.settled(schema, where), term_of(self.term, schema)
        return self.changed(asked=asked, term=term, between=self.between or _derived(term, schema))

    def __post_init__(self) -> None:
        term = column_term("column", self.column)
        self.check_options(self.kind, str(term))
        self._set(term=term, between=declared(term, self.between))


def declared(term: Term, between: object) -> tuple[float, float] | None:
    """The declared range; None where it is left out and may follow from the expression. Raises ``PlanError``."""
    return (
        None
        if between is None and (isinstance(term, Tree) or not term.isidentifier())
        else value_range("between", between)
    )


def _derived(term: Term, schema: Schema) -> tuple[float, float]:
    """The range of an expression's values; raises ``PlanError`` where it has none that a sum can be bounded by."""
    facts = facts_of(term, schema)
    found = facts.lower, facts.upper
    if facts.kind not in (*NUMBERS, "boolean") or not (all(map(math.isfinite, found)) and found[0] < found[1]):
        remedy = f"{PUBLIC}; or clip(..., lowest, highest)"
        raise PlanError("between", None, f"given, for {printable(str(term))} has no range of its own", remedy)
    return found


def column_term(name: str, column: object) -> Term:
    """A column's name, or an expression; raises ``PlanError``, which calls it ``name``, for anything else."""
    if not (isinstance(column, (str, Expression)) and str(column)):
        expected = "the name of a column or an expression"
        raise PlanError(name, column, expected, "it is needed, for example 'income'")
    return unwrapped(column)


def shown_end(number: float) -> str:
    """The number as it was asked for, every digit of it.

    >>> shown_end(1234567.0), shown_end(-0.0), shown_end(0.1)
    ('1234567', '0', '0.1')
    """
    return str(int(number)) if number.is_integer() and abs(number) < _LONG else repr(number)


_LONG = 1e15
"""From here on a float is shown with its power of ten."""


def value_range(name: str, between: object) -> tuple[float, float]:
    """A declared range; raises ``PlanError``, which calls it ``name``, for anything else."""
    if not isinstance(between, (tuple, list)) or len(between) != 2:
        raise PlanError(name, between, "a pair of numbers", PUBLIC)
    low, high = finite(f"{name}[0]", between[0], PUBLIC), finite(f"{name}[1]", between[1], PUBLIC)
    if not low < high:
        raise PlanError(name, between, "a pair (lowest, highest) with lowest < highest", PUBLIC)
    return low, high
