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
from tightrope.tables.engine_calls import load
from tightrope.tables.expressions.arithmetic import numeric
from tightrope.tables.expressions.leaves import ENGINE, TIMES, Value, common, in_kind, instant
from tightrope.tables.expressions.tree import (
    ADDED,
    BOTH,
    COMPARED,
    EITHER,
    FIXED_SIZE_BYTES,
    NOT,
    NUMBERS,
    Facts,
    Rows,
    Tree,
    inside,
    truth,
)
from tightrope.tables.schema import Kind, Schema

if TYPE_CHECKING:
    import ibis.expr.types as ir

COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {"==": eq, "!=": ne, "<": lt, "<=": le, ">": gt, ">=": ge}


@final
@dataclass(frozen=True)
class Compare(Tree):
    """Two values of one kind; missing where one of them is."""

    comparison: str
    left: Tree
    right: Tree
    binding = COMPARED

    @property
    def operands(self) -> tuple[Tree, ...]:
        """Both sides."""
        return self.left, self.right

    def __str__(self) -> str:
        return f"{inside(self.left, ADDED)} {self.comparison} {inside(self.right, ADDED)}"

    def facts(self, schema: Schema) -> Facts:
        """A condition; truth values have no order."""
        if common(self.operands, schema) == "boolean" and self.comparison not in ("==", "!="):
            raise InputError("expression", str(self), "a comparison of numbers, texts, days or instants")
        return truth(sure=all(part.facts(schema).sure for part in self.operands))

    def compiled(self, rows: Rows) -> ir.Column:
        """By the engine, in the common kind."""
        kind = common(self.operands, rows.schema)
        return COMPARISONS[self.comparison](*(in_kind(part, kind, rows) for part in self.operands))


@final
@dataclass(frozen=True)
class Member(Tree):
    """Whether a value is one of a list."""

    part: Tree
    listed: tuple[Value, ...]
    binding = COMPARED

    def __post_init__(self) -> None:
        if not (self.listed and all(isinstance(value, Value) for value in self.listed)):
            raise InputError("in", len(self.listed), "a list of literals, at least one", "say x in ['a', 'b']")
        super().__post_init__()

    @property
    def operands(self) -> tuple[Tree, ...]:
        """The value and the list."""
        return self.part, *self.listed

    def __str__(self) -> str:
        return self.membership_text("in")

    def membership_text(self, how: str) -> str:
        """With ``in`` or ``not in``."""
        return f"{inside(self.part, ADDED)} {how} [{', '.join(map(str, self.listed))}]"

    def facts(self, schema: Schema) -> Facts:
        """A condition."""
        common(self.operands, schema)
        return truth(sure=self.part.facts(schema).sure)

    def compiled(self, rows: Rows) -> ir.Column:
        """By the engine, in the common kind."""
        kind = common(self.operands, rows.schema)
        own, *listed = (in_kind(part, kind, rows) for part in self.operands)
        return _closed(own.isin(listed))


@final
@dataclass(frozen=True)
class Missing(Tree):
    """Whether a value is missing: the only question to which a missing value has an answer."""

    part: Tree
    binding = COMPARED

    @property
    def operands(self) -> tuple[Tree, ...]:
        """The value."""
        return (self.part,)

    def __str__(self) -> str:
        return f"{inside(self.part, ADDED)} is None"

    def facts(self, schema: Schema) -> Facts:
        """A condition that is never missing."""
        self.part.facts(schema)
        return truth(sure=True)

    def compiled(self, rows: Rows) -> ir.Column:
        """NULL, for NaN is NULL by now."""
        return _closed(self.part.compiled(rows).isnull())


@final
@dataclass(frozen=True)
class Not(Tree):
    """The opposite; missing where the condition is."""

    part: Tree
    binding = NOT

    @property
    def operands(self) -> tuple[Tree, ...]:
        """The condition."""
        return (self.part,)

    def __str__(self) -> str:
        if isinstance(self.part, Member):
            return self.part.membership_text("not in")
        if isinstance(self.part, Missing):
            return f"{inside(self.part.part, ADDED)} is not None"
        return f"not {inside(self.part, NOT)}"

    def facts(self, schema: Schema) -> Facts:
        """A condition."""
        return truth(sure=condition(self.part, schema).sure)

    def compiled(self, rows: Rows) -> ir.Column:
        """By the engine; a comparison, which ibis puts in parentheses, as it does not put NOT."""
        return self.part.compiled(rows) == load("ibis").literal(False)


@final
@dataclass(frozen=True)
class Logic(Tree):
    """``and`` and ``or`` of conditions: missing where those that are known do not decide. See ``logic``."""

    word: Literal["and", "or"]
    conditions: tuple[Tree, ...]

    @property
    def binding(self) -> int:  # type: ignore[override]
        """``and`` binds more tightly than ``or``."""
        return BOTH if self.word == "and" else EITHER

    @property
    def operands(self) -> tuple[Tree, ...]:
        """The conditions."""
        return self.conditions

    def __str__(self) -> str:
        return f" {self.word} ".join(inside(part, self.binding + 1) for part in self.conditions)

    def facts(self, schema: Schema) -> Facts:
        """A condition."""
        every = [condition(part, schema) for part in self.conditions]
        return truth(sure=all(own.sure for own in every))

    def compiled(self, rows: Rows) -> ir.Column:
        """By the engine."""
        return reduce(and_ if self.word == "and" else or_, [part.compiled(rows) for part in self.conditions])


def logic(word: Literal["and", "or"], *conditions: Tree) -> Logic:
    """Conditions joined; those that are joined by the same word already become one list, so that equal means equal."""
    flat: list[Tree] = []
    for part in conditions:
        flat += part.conditions if isinstance(part, Logic) and part.word == word else [part]
    return Logic(word, tuple(flat))


def condition(part: Tree, schema: Schema) -> Facts:
    """The facts of a condition; raises ``InputError`` for what is none."""
    found = part.facts(schema)
    if found.kind != "boolean":
        remedy = "compare it with something, such as distance > 500"
        raise InputError("expression", f"{part} ({found.kind})", "a condition, true or false", remedy)
    return found


def _closed(found: ir.Column) -> ir.Column:
    """The same condition within a function's parentheses: ibis 12 sets none, and a = b IN (c) is (a = b) IN (c)."""
    return found.nullif(load("ibis").null("boolean"))


# Values out of few: parts of a range, cases, months and hours.

MOST_EDGES = 2_000


@final
@dataclass(frozen=True)
class Cut(Tree):
    """The largest edge that is not above x; missing below the first one. So the last part has no end."""

    part: Tree
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
    def operands(self) -> tuple[Tree, ...]:
        """What is cut, and the edges."""
        return self.part, *self.edges

    @property
    def weight(self) -> int:
        """Each edge is compared with the part."""
        return len(self.edges) * (2 + self.part.weight)

    @cached_property
    def memory(self) -> int:
        """By halves: a row meets the logarithm of the number of edges, and the first one."""
        return (2 + len(self.edges).bit_length()) * (FIXED_SIZE_BYTES + self.part.memory)

    def __str__(self) -> str:
        return f"cut({self.part}, [{', '.join(map(str, self.edges))}])"

    def facts(self, schema: Schema) -> Facts:
        """The edges."""
        if common(self.operands, schema) == "date":
            return Facts("date", values=tuple(self._days()))
        numeric(self.operands, schema)
        return Facts(
            self.edges[0].kind,
            float(self.edges[0].value),
            float(self.edges[-1].value),
            tuple(edge.value for edge in self.edges),
        )

    def compiled(self, rows: Rows) -> ir.Column:
        """By halves: the logarithm of the number of edges in comparisons a row."""
        ibis, kind = load("ibis"), common(self.operands, rows.schema)
        x, *edges = (in_kind(part, kind, rows) for part in self.operands)
        out = edges if kind == "date" else [edge.compiled(rows) for edge in self.edges]
        return ibis.ifelse(x >= edges[0], _halved(x, edges, out), ibis.null(out[0].type()))

    def _days(self) -> list[datetime.date]:
        return [instant(str(edge.value), "date") for edge in self.edges]


def cut(part: Tree, edges: Sequence[Value]) -> Cut:
    """Whole numbers beside numbers are numbers."""
    kinds = {edge.kind for edge in edges}
    if kinds == set(NUMBERS):
        return Cut(part, tuple(Value(float(edge.value), "number") for edge in edges))
    return Cut(part, tuple(edges))


def _halved(x: ir.Column, edges: Sequence[ir.Scalar], out: Sequence[ir.Scalar]) -> ir.Column:
    if len(edges) == 1:
        return out[0]
    half = len(edges) // 2
    upper, lower = _halved(x, edges[half:], out[half:]), _halved(x, edges[:half], out[:half])
    return load("ibis").ifelse(x >= edges[half], upper, lower)


@final
@dataclass(frozen=True)
class Case(Tree):
    """The value beside the first condition that is true; the last value where none is. ``None`` is a missing value."""

    conditions: tuple[Tree, ...]
    choices: tuple[Tree | None, ...]

    def __post_init__(self) -> None:
        whole = self.conditions and len(self.choices) == len(self.conditions) + 1
        if not whole or all(choice is None for choice in self.choices):
            remedy = "such as case(age < 18, 'young', age < 65, 'grown', 'old')"
            raise InputError("case", len(self.choices), "case(condition, value, ..., otherwise)", remedy)
        super().__post_init__()

    @property
    def operands(self) -> tuple[Tree, ...]:
        """Conditions and values."""
        return *self.conditions, *self._given_choices

    @property
    def _given_choices(self) -> tuple[Tree, ...]:
        return tuple(choice for choice in self.choices if choice is not None)

    @property
    def longest(self) -> int:
        """That of its longest choice."""
        return max(choice.longest for choice in self._given_choices)

    def __str__(self) -> str:
        pairs = zip(self.conditions, self.choices, strict=False)
        return f"case({', '.join(f'{test}, {choice}' for test, choice in pairs)}, {self.choices[-1]})"

    def facts(self, schema: Schema) -> Facts:
        """All values of the choices, where those are known."""
        for test in self.conditions:
            condition(test, schema)
        kind, every = common(self._given_choices, schema), [choice.facts(schema) for choice in self._given_choices]
        found = None if any(own.values is None for own in every) else _sorted(kind, self._given_choices, every)
        sure = len(self._given_choices) == len(self.choices) and all(own.sure for own in every)
        return Facts(kind, min(own.lower for own in every), max(own.upper for own in every), found, sure)

    def compiled(self, rows: Rows) -> ir.Column:
        """By the engine, which takes a missing condition for one that is not true."""
        ibis, kind = load("ibis"), common(self._given_choices, rows.schema)
        nothing = ibis.null(in_kind(self._given_choices[0], kind, rows).type())
        choices = [nothing if choice is None else in_kind(choice, kind, rows) for choice in self.choices]
        tests = [test.compiled(rows) for test in self.conditions]
        return ibis.cases(*zip(tests, choices, strict=False), else_=choices[-1])


def _sorted(kind: Kind, choices: Sequence[Tree], every: Sequence[Facts]) -> tuple[object, ...]:
    found = {value for own in every for value in own.values or ()}
    if kind in TIMES:
        found = {instant(str(value), kind) for value in found}
    return tuple(sorted(map(float, found) if kind == "number" else found))  # type: ignore[arg-type, type-var]


@final
@dataclass(frozen=True)
class Calendar(Tree):
    """A part of a day or an instant, in UTC where the instant has a zone. ``weekday``: 1 is Monday, 7 is Sunday.

    ``days``: how many days lie between 1970-01-01 and its day, so that two of them have a difference.
    """

    unit: str
    part: Tree

    @property
    def operands(self) -> tuple[Tree, ...]:
        """The day or instant."""
        return (self.part,)

    def __str__(self) -> str:
        return f"{self.unit}({self.part})"

    def facts(self, schema: Schema) -> Facts:
        """The range of the unit."""
        kind = self.part.facts(schema).kind
        kinds = TIMES[1:] if self.unit == "hour" else TIMES
        if kind not in kinds:
            remedy = "cast the column, or, of a CSV file, declare its type" if kind == "text" else ""
            raise InputError("expression", f"{self.part} ({kind})", f"a {' or '.join(kinds)} for {self.unit}", remedy)
        low, high = UNITS[self.unit]
        return Facts("integer", low, high, None if self.unit in ("year", "days") else tuple(range(low, high + 1)))

    def compiled(self, rows: Rows) -> ir.Column:
        """By the engine."""
        own = self.part.compiled(rows)
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
