"""How the values of a column are spread: the number of rows between edges that are declared."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Self, final

from tightrope.documents.escaping import printable
from tightrope.errors import InputError, PlanError
from tightrope.numerics.checks import positive
from tightrope.queries.column_query import column_term, value_range
from tightrope.queries.count import NOT_CLIPPED, RowCounting
from tightrope.queries.options import Given
from tightrope.tables.expressions.conditions import MOST_EDGES, Cut, cut
from tightrope.tables.expressions.expression import Term, term_of
from tightrope.tables.expressions.leaves import Column, Value, instant, literal
from tightrope.tables.schema import Schema

Edges = tuple[Value, ...]
RISING = "say edges=[0, 18, 65], from what is publicly known; the last part has no end"
WIDTH = "say width=10, between=(0, 100), from what is publicly known"


@final
@dataclass(frozen=True, slots=True)
class histogram(RowCounting):
    """How many rows lie between one edge and the next: rising ``edges``, or one ``width`` all over ``between``.

    The key of a part is the edge where it begins; the last part has no end, and missing values and those below the
    first edge are the group ``None``. Every part is shown, unless ``by`` has groups to be discovered: then its parts
    are, too. A row is in one part, so that all of them cost what one count costs. The other keywords are those of
    ``count``. Raises ``PlanError`` naming what is wrong.

    >>> str(histogram("age", width=10, between=(0, 100)))
    'histogram of age in 11 parts from 0 to 100 and beyond'
    """

    column: Given = field(compare=False)
    """The column's name, or an expression, also as text."""
    edges: Sequence[object] | None = field(default=None, kw_only=True, compare=False)
    """Where the parts begin, rising."""
    width: float | None = field(default=None, kw_only=True, compare=False)
    """The width of every part, in place of ``edges``."""
    between: tuple[float, float] | None = field(default=None, kw_only=True, compare=False)
    """The range that parts of one ``width`` cover."""
    term: Term = field(init=False, repr=False)
    """The column, checked."""
    begin: Edges = field(init=False, repr=False)
    """Where the parts begin, checked or counted off."""

    kind = "histogram"
    meaning = "How many records there are"
    additive = True
    notes = (
        "each part is named by the edge where it begins and ends before the next one; the last part has no end; None "
        "are missing values and those below the first edge",
        NOT_CLIPPED,
    )
    entries = ("column", "edges", "width", "between")

    def __str__(self) -> str:
        ends = f"from {self.begin[0]} to {self.begin[-1]} and beyond"
        others = replace(self.asked, by=self.asked.by[:-1], terms=self.asked.terms[:-1]).groups
        return f"histogram of {printable(str(self.term))} in {len(self.begin):,} parts {ends}{others}"

    def __post_init__(self) -> None:
        begin = edges_of(self.edges, self.width, self.between)
        term = column_term("column", self.column)
        found = self.check_options(self.kind, str(term))
        if str(term) in found.by:
            raise PlanError(
                "by", str(term), "another column than that of the histogram", "its parts are groups already"
            )
        keys = None if found.keys is None else _with_parts(found.keys, begin)
        grouped = replace(found, by=(*found.by, str(term)), terms=(*found.terms, term), keys=keys)
        self._set(asked=grouped, term=term, begin=begin)

    @property
    def part_edges(self) -> tuple[bool | int | float | str, ...]:
        """As they were given."""
        return tuple(edge.value for edge in self.begin)

    def settled(self, schema: Schema, where: Term | None = None) -> Self:
        """Grouped by the edge below each value, after all other groups."""
        if isinstance(self.asked.terms[-1], Cut):
            return self.changed(asked=self.asked.settled(schema, where))
        term = term_of(self.term, schema)
        parts = cut(Column(term) if isinstance(term, str) else term, self.begin)
        asked = replace(self.asked, terms=(*self.asked.terms[:-1], parts))
        return self.changed(asked=asked.settled(schema, where), term=term)


def edges_of(edges: object, width: object, between: object) -> Edges:
    """The edges, given or counted off; raises ``PlanError`` where they are neither or do not rise."""
    if (edges is None) == (width is None):
        raise PlanError("edges", edges, "given, or else width and between", f"{RISING}; or {WIDTH}")
    if edges is None:
        # low, low + width, … up to high, in decimals: 0.1 is one tenth.
        (low, high), step = value_range("between", between), positive("width", width, WIDTH)
        if not (high - low) / step < MOST_EDGES:
            raise PlanError("width", width, f"such that there are fewer than {MOST_EDGES:,} parts", "take wider parts")
        first, by = Decimal(repr(low)), Decimal(repr(float(step)))
        exact = [first + number * by for number in range(math.floor((Decimal(repr(high)) - first) / by) + 1)]
        whole = all(edge == edge.to_integral_value() for edge in exact)
        return tuple(literal(int(edge) if whole else float(edge)) for edge in exact)
    if between is not None or not isinstance(edges, (list, tuple, range)):
        raise PlanError("edges", _typed(edges), "a list of rising numbers or days, without between", RISING)
    try:
        return cut(Column("x"), [literal(edge) for edge in edges]).edges
    except InputError as error:
        raise PlanError("edges", _typed(edges), error.expected, RISING) from None


def _typed(edges: object) -> object:
    """What was typed, if it is short and plain: a column of a frame is data, and is not shown."""
    plain = edges if isinstance(edges, (list, tuple, range)) else [edges]
    short = len(plain) <= MOST_SHOWN and all(isinstance(edge, str | int | float | None) for edge in plain)
    return edges if short and len(repr(edges)) <= MOST_LETTERS else f"{type(edges).__name__} of {len(plain):,}"


MOST_SHOWN, MOST_LETTERS = 20, 200
"""So much of wrong edges is shown at most."""


def _with_parts(keys: tuple[tuple[object, ...], ...], edges: Edges) -> tuple[tuple[object, ...], ...]:
    """Every part of every group that is listed."""
    days = edges[0].kind == "text"
    parts = (None, *(instant(str(edge.value), "date") if days else edge.value for edge in edges))
    return tuple((*key, part) for key, part in itertools.product(keys, parts))
