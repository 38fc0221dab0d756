"""Conditions: comparisons, lists, missing values, and / or / not – with three values, as in SQL."""

from __future__ import annotations

import datetime
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import and_, eq, ge, gt, le, lt, ne, or_
from typing import TYPE_CHECKING, Any, Literal, final

from tightrope.errors import InputError
from tightrope.tables.engine_calls import load_library
from tightrope.tables.expressions.arithmetic import numeric_kind
from tightrope.tables.expressions.leaves import ENGINE, TIMES, Value, column_in_kind, common_kind, parse_instant
from tightrope.tables.expressions.tree import (
    ADDED,
    BOTH,
    COMPARED,
    EITHER,
    FIXED_SIZE_BYTES,
    NOT,
    NUMBERS,
    ExpressionTree,
    SourceRows,
    ValueFacts,
    boolean_facts,
    parenthesize_part,
)
from tightrope.tables.schema import Kind, Schema

if TYPE_CHECKING:
    import ibis.expr.types as ir

COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {"==": eq, "!=": ne, "<": lt, "<=": le, ">": gt, ">=": ge}


@final
@dataclass(frozen=True)
class Compare(ExpressionTree):
    """Two values of one kind; missing where one of them is."""

    comparison: str
    left: ExpressionTree
    right: ExpressionTree
    binding_strength = COMPARED

    @property
    def child_nodes(self) -> tuple[ExpressionTree, ...]:
        """Both sides."""
        return self.left, self.right

    def __str__(self) -> str:
        return f"{parenthesize_part(self.left, ADDED)} {self.comparison} {parenthesize_part(self.right, ADDED)}"

    def infer_facts(self, schema: Schema) -> ValueFacts:
        """A condition; truth values have no order."""
        if common_kind(self.child_nodes, schema) == "boolean" and self.comparison not in ("==", "!="):
            raise InputError("expression", str(self), "a comparison of numbers, texts, days or instants")
        return boolean_facts(sure=all(part.infer_facts(schema).never_missing for part in self.child_nodes))

    def to_engine_column(self, rows: SourceRows) -> ir.Column:
        """By the engine, in the common kind."""
        kind = common_kind(self.child_nodes, rows.schema)
        return COMPARISONS[self.comparison](*(column_in_kind(part, kind, rows) for part in self.child_nodes))


@final
@dataclass(frozen=True)
class Member(ExpressionTree):
    """The condition that a value is in a list."""

    part: ExpressionTree
    listed: tuple[Value, ...]
    binding_strength = COMPARED

    def __post_init__(self) -> None:
        if not (self.listed and all(isinstance(value, Value) for value in self.listed)):
            raise InputError("in", len(self.listed), "a list of literals, at least one", "say x in ['a', 'b']")
        super().__post_init__()

    @property
    def child_nodes(self) -> tuple[ExpressionTree, ...]:
        """The value and the list."""
        return self.part, *self.listed

    def __str__(self) -> str:
        return self.membership_text("in")

    def membership_text(self, how: str) -> str:
        """With ``in`` or ``not in``."""
        return f"{parenthesize_part(self.part, ADDED)} {how} [{', '.join(map(str, self.listed))}]"

    def infer_facts(self, schema: Schema) -> ValueFacts:
        """A condition."""
        common_kind(self.child_nodes, schema)
        return boolean_facts(sure=self.part.infer_facts(schema).never_missing)

    def to_engine_column(self, rows: SourceRows) -> ir.Column:
        """By the engine, in the common kind."""
        kind = common_kind(self.child_nodes, rows.schema)
        own, *listed = (column_in_kind(part, kind, rows) for part in self.child_nodes)
        return _in_parentheses(own.isin(listed))


@final
@dataclass(frozen=True)
class Missing(ExpressionTree):
    """The condition that a value is missing: the only one that is true for missing values."""

    part: ExpressionTree
    binding_strength = COMPARED

    @property
    def child_nodes(self) -> tuple[ExpressionTree, ...]:
        """The value."""
        return (self.part,)

    def __str__(self) -> str:
        return f"{parenthesize_part(self.part, ADDED)} is None"

    def infer_facts(self, schema: Schema) -> ValueFacts:
        """A condition that is never missing."""
        self.part.infer_facts(schema)
        return boolean_facts(sure=True)

    def to_engine_column(self, rows: SourceRows) -> ir.Column:
        """NULL, for NaN is NULL by now."""
        return _in_parentheses(self.part.to_engine_column(rows).isnull())


@final
@dataclass(frozen=True)
class Not(ExpressionTree):
    """The opposite; missing where the condition is."""

    part: ExpressionTree
    binding_strength = NOT

    @property
    def child_nodes(self) -> tuple[ExpressionTree, ...]:
        """The condition."""
        return (self.part,)

    def __str__(self) -> str:
        if isinstance(self.part, Member):
            return self.part.membership_text("not in")
        if isinstance(self.part, Missing):
            return f"{parenthesize_part(self.part.part, ADDED)} is not None"
        return f"not {parenthesize_part(self.part, NOT)}"

    def infer_facts(self, schema: Schema) -> ValueFacts:
        """A condition."""
        return boolean_facts(sure=check_condition(self.part, schema).never_missing)

    def to_engine_column(self, rows: SourceRows) -> ir.Column:
        """By the engine; a comparison, which ibis puts in parentheses, as it does not put NOT."""
        return self.part.to_engine_column(rows) == load_library("ibis").literal(False)


@final
@dataclass(frozen=True)
class Logic(ExpressionTree):
    """``and`` and ``or`` of conditions: missing where those that are known do not decide. See ``join_conditions``."""

    word: Literal["and", "or"]
    conditions: tuple[ExpressionTree, ...]

    @property
    def binding_strength(self) -> int:  # type: ignore[override]
        """``and`` binds more tightly than ``or``."""
        return BOTH if self.word == "and" else EITHER

    @property
    def child_nodes(self) -> tuple[ExpressionTree, ...]:
        """The conditions."""
        return self.conditions

    def __str__(self) -> str:
        return f" {self.word} ".join(parenthesize_part(part, self.binding_strength + 1) for part in self.conditions)

    def infer_facts(self, schema: Schema) -> ValueFacts:
        """A condition."""
        every = [check_condition(part, schema) for part in self.conditions]
        return boolean_facts(sure=all(own.never_missing for own in every))

    def to_engine_column(self, rows: SourceRows) -> ir.Column:
        """By the engine."""
        return reduce(and_ if self.word == "and" else or_, [part.to_engine_column(rows) for part in self.conditions])


def join_conditions(word: Literal["and", "or"], *conditions: ExpressionTree) -> Logic:
    """Conditions joined; those that are joined by the same word already become one list, so that equal means equal."""
    flat: list[ExpressionTree] = []
    for part in conditions:
        flat += part.conditions if isinstance(part, Logic) and part.word == word else [part]
    return Logic(word, tuple(flat))


def check_condition(part: ExpressionTree, schema: Schema) -> ValueFacts:
    """Return the facts of a condition; raises ``InputError`` for anything else."""
    found = part.infer_facts(schema)
    if found.kind != "boolean":
        remedy = "compare it with something, such as distance > 500"
        raise InputError("expression", f"{part} ({found.kind})", "a condition, true or false", remedy)
    return found


def _in_parentheses(found: ir.Column) -> ir.Column:
    """The same condition within a function's parentheses: ibis 12 sets none, and a = b IN (c) is (a = b) IN (c)."""
    return found.nullif(load_library("ibis").null("boolean"))


# Values out of few: parts of a range, cases, months and hours.

MOST_EDGES = 2_000


@final
@dataclass(frozen=True)
class Cut(ExpressionTree):
    """The largest edge that is not above x; missing below the first one. So the last part has no end."""

    part: ExpressionTree
    edges: tuple[Value, ...]
    mentions = 1

    def __post_init__(self) -> None:
        own = {edge.kind for edge in self.edges if isinstance(edge, Value)}
        values: list[Any] = [edge.value for edge in self.edges]
        rising = len(own) == 1 and all(a < b for a, b in itertools.pairwise(values))
        if not rising or own == {"boolean"} or len(self.edges) > MOST_EDGES:
            expected = f"cut(x, [a, b, ...]) with rising numbers or days, at most {MOST_EDGES:,}"
            raise InputError("edges", f"{len(self.edges)} edges", expected)
        super().__post_init__()

    @property
    def child_nodes(self) -> tuple[ExpressionTree, ...]:
        """The value that is cut, and the edges."""
        return self.part, *self.edges

    @property
    def query_length(self) -> int:
        """Each edge is compared with the part."""
        return len(self.edges) * (2 + self.part.query_length)

    @cached_property
    def memory_bytes(self) -> int:
        """By halves: a row meets the logarithm of the number of edges, and the first one."""
        return (2 + len(self.edges).bit_length()) * (FIXED_SIZE_BYTES + self.part.memory_bytes)

    def __str__(self) -> str:
        return f"cut({self.part}, [{', '.join(map(str, self.edges))}])"

    def infer_facts(self, schema: Schema) -> ValueFacts:
        """The edges."""
        if common_kind(self.child_nodes, schema) == "date":
            return ValueFacts("date", possible_values=tuple(self._edge_days()))
        numeric_kind(self.child_nodes, schema)
        return ValueFacts(
            self.edges[0].kind,
            float(self.edges[0].value),
            float(self.edges[-1].value),
            tuple(edge.value for edge in self.edges),
        )

    def to_engine_column(self, rows: SourceRows) -> ir.Column:
        """By halves: the logarithm of the number of edges in comparisons a row."""
        ibis, kind = load_library("ibis"), common_kind(self.child_nodes, rows.schema)
        x, *edges = (column_in_kind(part, kind, rows) for part in self.child_nodes)
        out = edges if kind == "date" else [edge.to_engine_column(rows) for edge in self.edges]
        return ibis.ifelse(x >= edges[0], _bisect_edges(x, edges, out), ibis.null(out[0].type()))

    def _edge_days(self) -> list[datetime.date]:
        return [parse_instant(str(edge.value), "date") for edge in self.edges]


def make_cut(part: ExpressionTree, edges: Sequence[Value]) -> Cut:
    """Convert integers to numbers if they are mixed with numbers."""
    kinds = {edge.kind for edge in edges}
    if kinds == set(NUMBERS):
        return Cut(part, tuple(Value(float(edge.value), "number") for edge in edges))
    return Cut(part, tuple(edges))


def _bisect_edges(x: ir.Column, edges: Sequence[ir.Scalar], out: Sequence[ir.Scalar]) -> ir.Column:
    if len(edges) == 1:
        return out[0]
    half = len(edges) // 2
    upper, lower = _bisect_edges(x, edges[half:], out[half:]), _bisect_edges(x, edges[:half], out[:half])
    return load_library("ibis").ifelse(x >= edges[half], upper, lower)


@final
@dataclass(frozen=True)
class Case(ExpressionTree):
    """The value of the first condition that is true; otherwise the last value. ``None`` is a missing value."""

    conditions: tuple[ExpressionTree, ...]
    choices: tuple[ExpressionTree | None, ...]

    def __post_init__(self) -> None:
        whole = self.conditions and len(self.choices) == len(self.conditions) + 1
        if not whole or all(choice is None for choice in self.choices):
            remedy = "such as case(age < 18, 'young', age < 65, 'grown', 'old')"
            raise InputError("case", len(self.choices), "case(condition, value, ..., otherwise)", remedy)
        super().__post_init__()

    @property
    def child_nodes(self) -> tuple[ExpressionTree, ...]:
        """Conditions and values."""
        return *self.conditions, *self._given_choices

    @property
    def _given_choices(self) -> tuple[ExpressionTree, ...]:
        return tuple(choice for choice in self.choices if choice is not None)

    @property
    def max_value_bytes(self) -> int:
        """The length of its longest choice."""
        return max(choice.max_value_bytes for choice in self._given_choices)

    def __str__(self) -> str:
        pairs = zip(self.conditions, self.choices, strict=False)
        return f"case({', '.join(f'{test}, {choice}' for test, choice in pairs)}, {self.choices[-1]})"

    def infer_facts(self, schema: Schema) -> ValueFacts:
        """All values of the choices, where those are known."""
        for test in self.conditions:
            check_condition(test, schema)
        kind, every = (
            common_kind(self._given_choices, schema),
            [choice.infer_facts(schema) for choice in self._given_choices],
        )
        found = (
            None
            if any(own.possible_values is None for own in every)
            else _sorted_values(kind, self._given_choices, every)
        )
        sure = len(self._given_choices) == len(self.choices) and all(own.never_missing for own in every)
        return ValueFacts(kind, min(own.lower for own in every), max(own.upper for own in every), found, sure)

    def to_engine_column(self, rows: SourceRows) -> ir.Column:
        """By the engine, which takes a missing condition for one that is not true."""
        ibis, kind = load_library("ibis"), common_kind(self._given_choices, rows.schema)
        nothing = ibis.null(column_in_kind(self._given_choices[0], kind, rows).type())
        choices = [nothing if choice is None else column_in_kind(choice, kind, rows) for choice in self.choices]
        tests = [test.to_engine_column(rows) for test in self.conditions]
        return ibis.cases(*zip(tests, choices, strict=False), else_=choices[-1])


def _sorted_values(kind: Kind, choices: Sequence[ExpressionTree], every: Sequence[ValueFacts]) -> tuple[object, ...]:
    found = {value for own in every for value in own.possible_values or ()}
    if kind in TIMES:
        found = {parse_instant(str(value), kind) for value in found}
    return tuple(sorted(map(float, found) if kind == "number" else found))  # type: ignore[arg-type, type-var]


@final
@dataclass(frozen=True)
class Calendar(ExpressionTree):
    """A part of a day or an instant, in UTC where the instant has a zone. ``weekday``: 1 is Monday, 7 is Sunday.

    ``days``: how many days lie between 1970-01-01 and its day, so that two of them have a difference.
    """

    unit: str
    part: ExpressionTree

    @property
    def child_nodes(self) -> tuple[ExpressionTree, ...]:
        """The day or instant."""
        return (self.part,)

    def __str__(self) -> str:
        return f"{self.unit}({self.part})"

    def infer_facts(self, schema: Schema) -> ValueFacts:
        """The range of the unit."""
        kind = self.part.infer_facts(schema).kind
        kinds = TIMES[1:] if self.unit == "hour" else TIMES
        if kind not in kinds:
            remedy = "cast the column, or, of a CSV file, declare its type" if kind == "text" else ""
            raise InputError("expression", f"{self.part} ({kind})", f"a {' or '.join(kinds)} for {self.unit}", remedy)
        low, high = UNITS[self.unit]
        return ValueFacts("integer", low, high, None if self.unit in ("year", "days") else tuple(range(low, high + 1)))

    def to_engine_column(self, rows: SourceRows) -> ir.Column:
        """By the engine."""
        own = self.part.to_engine_column(rows)
        if self.unit == "days":
            found = (own.date() if own.type().is_timestamp() else own).epoch_days()
        else:
            found = own.day_of_week.index() + 1 if self.unit == "weekday" else getattr(own, self.unit)()
        return found.cast(ENGINE["integer"])


DAYS = tuple((day - datetime.date(1970, 1, 1)).days for day in (datetime.date.min, datetime.date.max))
UNITS = {
    "year": (1, 9999), "month": (1, 12), "day": (1, 31), "weekday": (1, 7), "hour": (0, 23), "days": (DAYS[0], DAYS[1])
}  # fmt: skip
"""Each with its range."""
