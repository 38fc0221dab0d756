"""Conditions with three values, as in SQL: comparisons, membership in lists, tests for missing values, and, or, not.

Also expressions that have few different values: ``cut`` and ``case``.
"""

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
from tightrope.tables.expressions.leaves import (
    TIME_KINDS,
    Value,
    column_in_kind,
    common_kind,
    is_day_text,
    parse_instant,
)
from tightrope.tables.expressions.tree import (
    AND_BINDING,
    COMPARISON_BINDING,
    FIXED_SIZE_BYTES,
    NOT_BINDING,
    NUMBERS,
    OR_BINDING,
    SUM_BINDING,
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
MAX_EDGES = 2_000


@final
@dataclass(frozen=True)
class Compare(ExpressionTree):
    """A comparison of two values of one kind; missing if one of them is."""

    comparison: str
    left: ExpressionTree
    right: ExpressionTree
    binding_strength = COMPARISON_BINDING
    is_exact = True

    @property
    def child_nodes(self) -> tuple[ExpressionTree, ...]:
        """Both sides."""
        return self.left, self.right

    def __str__(self) -> str:
        left, right = (parenthesize_part(part, SUM_BINDING) for part in self.child_nodes)
        return f"{left} {self.comparison} {right}"

    def infer_column_facts(self, schema: Schema) -> ValueFacts:
        """Return the facts of a condition; boolean values can only be compared with == and !=."""
        if common_kind(self.child_nodes, schema) == "boolean" and self.comparison not in ("==", "!="):
            raise InputError("expression", str(self), "a comparison of numbers, texts, days or instants")
        return boolean_facts(
            never_missing=all(part.infer_column_facts(schema).never_missing for part in self.child_nodes)
        )

    def to_engine_column(self, rows: SourceRows) -> ir.Column:
        """Compare in the engine, in the common kind."""
        kind = common_kind(self.child_nodes, rows.schema)
        return COMPARISONS[self.comparison](*(column_in_kind(part, kind, rows) for part in self.child_nodes))


@final
@dataclass(frozen=True)
class Member(ExpressionTree):
    """The condition that a value is in a list."""

    part: ExpressionTree
    listed: tuple[Value, ...]
    binding_strength = COMPARISON_BINDING
    is_exact = True

    def __post_init__(self) -> None:
        if not (self.listed and all(isinstance(value, Value) for value in self.listed)):
            raise InputError("in", len(self.listed), "a list of literals, at least one", "such as x in ['a', 'b']")
        super().__post_init__()

    @property
    def child_nodes(self) -> tuple[ExpressionTree, ...]:
        """The value and the list."""
        return self.part, *self.listed

    def __str__(self) -> str:
        return self.membership_text("in")

    def membership_text(self, operator: str) -> str:
        """Return the text with the operator ``in`` or ``not in``."""
        return f"{parenthesize_part(self.part, SUM_BINDING)} {operator} [{', '.join(map(str, self.listed))}]"

    def infer_column_facts(self, schema: Schema) -> ValueFacts:
        """Return the facts of a condition."""
        common_kind(self.child_nodes, schema)
        return boolean_facts(never_missing=self.part.infer_column_facts(schema).never_missing)

    def to_engine_column(self, rows: SourceRows) -> ir.Column:
        """Compare in the engine, in the common kind."""
        kind = common_kind(self.child_nodes, rows.schema)
        column, *listed = (column_in_kind(part, kind, rows) for part in self.child_nodes)
        return _put_in_parentheses(column.isin(listed))


@final
@dataclass(frozen=True)
class Missing(ExpressionTree):
    """The condition that a value is missing: the only one that is true for missing values."""

    part: ExpressionTree
    binding_strength = COMPARISON_BINDING
    is_exact = True

    @property
    def child_nodes(self) -> tuple[ExpressionTree, ...]:
        """The value."""
        return (self.part,)

    def __str__(self) -> str:
        return f"{parenthesize_part(self.part, SUM_BINDING)} is None"

    def infer_column_facts(self, schema: Schema) -> ValueFacts:
        """Return the facts of a condition that is never missing."""
        self.part.infer_column_facts(schema)
        return boolean_facts(never_missing=True)

    def to_engine_column(self, rows: SourceRows) -> ir.Column:
        """Test for NULL; ``ColumnRef`` has turned NaN into NULL."""
        return _put_in_parentheses(self.part.to_engine_column(rows).isnull())


@final
@dataclass(frozen=True)
class Not(ExpressionTree):
    """The negation of a condition; missing if the condition is."""

    part: ExpressionTree
    binding_strength = NOT_BINDING
    is_exact = True

    @property
    def child_nodes(self) -> tuple[ExpressionTree, ...]:
        """The condition."""
        return (self.part,)

    def __str__(self) -> str:
        if isinstance(self.part, Member):
            return self.part.membership_text("not in")
        if isinstance(self.part, Missing):
            return f"{parenthesize_part(self.part.part, SUM_BINDING)} is not None"
        return f"not {parenthesize_part(self.part, NOT_BINDING)}"

    def infer_column_facts(self, schema: Schema) -> ValueFacts:
        """Return the facts of a condition."""
        return boolean_facts(never_missing=check_condition(self.part, schema).never_missing)

    def to_engine_column(self, rows: SourceRows) -> ir.Column:
        """Compare with false: ibis puts a comparison in parentheses, but not NOT."""
        return self.part.to_engine_column(rows) == load_library("ibis").literal(False)


@final
@dataclass(frozen=True)
class Logic(ExpressionTree):
    """``and`` or ``or`` of conditions; missing if the conditions that are present leave the result open.

    Built by ``join_conditions``.
    """

    word: Literal["and", "or"]
    conditions: tuple[ExpressionTree, ...]
    is_exact = True

    @property
    def binding_strength(self) -> int:  # type: ignore[override]
        """``and`` binds more tightly than ``or``."""
        return AND_BINDING if self.word == "and" else OR_BINDING

    @property
    def child_nodes(self) -> tuple[ExpressionTree, ...]:
        """The conditions."""
        return self.conditions

    def __str__(self) -> str:
        return f" {self.word} ".join(parenthesize_part(part, self.binding_strength + 1) for part in self.conditions)

    def infer_column_facts(self, schema: Schema) -> ValueFacts:
        """Return the facts of a condition."""
        facts = [check_condition(part, schema) for part in self.conditions]
        return boolean_facts(never_missing=all(part.never_missing for part in facts))

    def to_engine_column(self, rows: SourceRows) -> ir.Column:
        """Compute it in the engine."""
        return reduce(and_ if self.word == "and" else or_, [part.to_engine_column(rows) for part in self.conditions])


def join_conditions(word: Literal["and", "or"], *conditions: ExpressionTree) -> Logic:
    """Return the conditions joined by a word, with nested uses of the same word in one list: a unique tree."""
    flat: list[ExpressionTree] = []
    for part in conditions:
        flat += part.conditions if isinstance(part, Logic) and part.word == word else [part]
    return Logic(word, tuple(flat))


def check_condition(part: ExpressionTree, schema: Schema) -> ValueFacts:
    """Return the facts of a condition; raises ``InputError`` for anything else."""
    facts = part.infer_column_facts(schema)
    if facts.kind != "boolean":
        remedy = "compare it with something, such as distance > 500"
        raise InputError("expression", f"{part} ({facts.kind})", "a condition, true or false", remedy)
    return facts


def _put_in_parentheses(condition: ir.Column) -> ir.Column:
    """Return the condition inside a function call: ibis 12 sets no parentheses, and a = b IN (c) is (a = b) IN (c)."""
    return condition.nullif(load_library("ibis").null("boolean"))


@final
@dataclass(frozen=True)
class Cut(ExpressionTree):
    """The largest edge that is not above x; missing below the first edge. The last part has no upper end.

    Edges of instants may be days, from midnight in UTC on; if all of them are, the value is a day.
    """

    part: ExpressionTree
    edges: tuple[Value, ...]
    operand_mentions = 1
    is_exact = True

    def __post_init__(self) -> None:
        kinds = {edge.kind for edge in self.edges if isinstance(edge, Value)}
        values: list[Any] = [edge.value for edge in self.edges]
        rising = len(kinds) == 1 and all(a < b for a, b in itertools.pairwise(values))
        if not rising or kinds == {"boolean"} or len(self.edges) > MAX_EDGES:
            expected = f"cut(x, [a, b, ...]) with rising numbers or days, at most {MAX_EDGES:,}"
            raise InputError("edges", f"{len(self.edges)} edges", expected)
        super().__post_init__()

    @property
    def child_nodes(self) -> tuple[ExpressionTree, ...]:
        """The value that is cut, and the edges."""
        return self.part, *self.edges

    @property
    def query_length(self) -> int:
        """The length of the query, in which each edge is compared with the value."""
        return len(self.edges) * (2 + self.part.query_length)

    @cached_property
    def memory_bytes(self) -> int:
        """The memory of a binary search: one comparison for each halving of the edges, and one with the first."""
        return (2 + len(self.edges).bit_length()) * (FIXED_SIZE_BYTES + self.part.memory_bytes)

    def __str__(self) -> str:
        return f"cut({self.part}, [{', '.join(map(str, self.edges))}])"

    def infer_column_facts(self, schema: Schema) -> ValueFacts:
        """Return the edges as the possible values."""
        kind = common_kind(self.child_nodes, schema)
        if kind in TIME_KINDS:
            edges = [parse_instant(str(edge.value), kind) for edge in self.edges]
            if not all(a < b for a, b in itertools.pairwise(edges)):
                raise InputError("edges", f"{len(edges)} edges", "rising days or instants, in UTC")
            return ValueFacts(edge_kind(self.edges), possible_values=tuple(edge_times(self.edges)))
        numeric_kind(self.child_nodes, schema)
        return ValueFacts(
            self.edges[0].kind,
            float(self.edges[0].value),
            float(self.edges[-1].value),
            tuple(edge.value for edge in self.edges),
        )

    def to_engine_column(self, rows: SourceRows) -> ir.Column:
        """Find the edge by binary search, in log₂(number of edges) comparisons a row."""
        ibis, kind = load_library("ibis"), common_kind(self.child_nodes, rows.schema)
        x, *edges = (column_in_kind(part, kind, rows) for part in self.child_nodes)
        results = (
            [ibis.literal(time) for time in edge_times(self.edges)]
            if kind in TIME_KINDS
            else [edge.to_engine_column(rows) for edge in self.edges]
        )
        return ibis.ifelse(x >= edges[0], _bisect_edges(x, edges, results), ibis.null(results[0].type()))


def edge_kind(edges: Sequence[Value]) -> Literal["date", "timestamp"]:
    """Return the kind of edges that are texts: days, unless one of them has a time of day."""
    return "date" if all(is_day_text(str(edge.value)) for edge in edges) else "timestamp"


def edge_times(edges: Sequence[Value]) -> list[datetime.date]:
    """Return the days or instants of edges that are texts; raises ``InputError`` if one is neither."""
    kind = edge_kind(edges)
    return [parse_instant(str(edge.value), kind) for edge in edges]


def make_cut(part: ExpressionTree, edges: Sequence[Value]) -> Cut:
    """Return the ``Cut`` at these edges; integers mixed with numbers become numbers."""
    kinds = {edge.kind for edge in edges}
    if kinds == set(NUMBERS):
        return Cut(part, tuple(Value(float(edge.value), "number") for edge in edges))
    return Cut(part, tuple(edges))


def _bisect_edges(x: ir.Column, edges: Sequence[ir.Scalar], results: Sequence[ir.Scalar]) -> ir.Column:
    """Return the result that belongs to the largest edge ≤ x, for x at or above the first edge."""
    if len(edges) == 1:
        return results[0]
    half = len(edges) // 2
    upper, lower = _bisect_edges(x, edges[half:], results[half:]), _bisect_edges(x, edges[:half], results[:half])
    return load_library("ibis").ifelse(x >= edges[half], upper, lower)


@final
@dataclass(frozen=True)
class Case(ExpressionTree):
    """The value of the first condition that is true; otherwise the last value. ``None`` is a missing value."""

    conditions: tuple[ExpressionTree, ...]
    choices: tuple[ExpressionTree | None, ...]
    is_exact = True

    def __post_init__(self) -> None:
        is_complete = self.conditions and len(self.choices) == len(self.conditions) + 1
        if not is_complete or all(choice is None for choice in self.choices):
            remedy = "such as case(age < 18, 'young', age < 65, 'grown', 'old')"
            raise InputError("case", len(self.choices), "case(condition, value, ..., otherwise)", remedy)
        super().__post_init__()

    @property
    def child_nodes(self) -> tuple[ExpressionTree, ...]:
        """Conditions and values."""
        return *self.conditions, *self._present_choices

    @property
    def _present_choices(self) -> tuple[ExpressionTree, ...]:
        return tuple(choice for choice in self.choices if choice is not None)

    @property
    def max_value_bytes(self) -> int:
        """The size of the largest choice."""
        return max(choice.max_value_bytes for choice in self._present_choices)

    def __str__(self) -> str:
        pairs = zip(self.conditions, self.choices, strict=False)
        return f"case({', '.join(f'{test}, {choice}' for test, choice in pairs)}, {self.choices[-1]})"

    def infer_column_facts(self, schema: Schema) -> ValueFacts:
        """Return the union of the choices' ranges, and of their possible values if all of these are known."""
        for test in self.conditions:
            check_condition(test, schema)
        kind = common_kind(self._present_choices, schema)
        facts = [choice.infer_column_facts(schema) for choice in self._present_choices]
        values = None if any(choice.possible_values is None for choice in facts) else _sorted_values(kind, facts)
        never_missing = None not in self.choices and all(choice.never_missing for choice in facts)
        lower, upper = min(choice.lower for choice in facts), max(choice.upper for choice in facts)
        return ValueFacts(kind, lower, upper, values, never_missing)

    def to_engine_column(self, rows: SourceRows) -> ir.Column:
        """Build a CASE of the engine, in which a missing condition counts as not true."""
        ibis, kind = load_library("ibis"), common_kind(self._present_choices, rows.schema)
        missing = ibis.null(column_in_kind(self._present_choices[0], kind, rows).type())
        choices = [missing if choice is None else column_in_kind(choice, kind, rows) for choice in self.choices]
        tests = [test.to_engine_column(rows) for test in self.conditions]
        return ibis.cases(*zip(tests, choices, strict=False), else_=choices[-1])


def _sorted_values(kind: Kind, facts: Sequence[ValueFacts]) -> tuple[object, ...]:
    """Return all possible values of several choices, converted to their common kind."""
    values = {value for choice in facts for value in choice.possible_values or ()}
    if kind in TIME_KINDS:
        values = {parse_instant(str(value), kind) for value in values}
    if kind == "number":
        values = {float(value) for value in values}  # type: ignore[arg-type]
    return tuple(sorted(values))  # type: ignore[type-var]
