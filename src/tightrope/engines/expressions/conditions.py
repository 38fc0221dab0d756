"""Conditions: comparisons, lists, missing values, and / or / not – with three values, as in SQL."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from operator import and_, eq, ge, gt, le, lt, ne, or_
from typing import TYPE_CHECKING, Any, Literal, final

from tightrope.engines.expressions.facts import Facts, Rows, truth
from tightrope.engines.expressions.leaves import Value, common, in_kind
from tightrope.engines.expressions.tree import ADDED, BOTH, COMPARED, EITHER, NOT, Tree, inside
from tightrope.engines.guard import load
from tightrope.engines.schema import Schema
from tightrope.errors import InputError

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
    def parts(self) -> tuple[Tree, ...]:
        """Both sides."""
        return self.left, self.right

    def __str__(self) -> str:
        return f"{inside(self.left, ADDED)} {self.comparison} {inside(self.right, ADDED)}"

    def facts(self, schema: Schema) -> Facts:
        """A condition; truth values have no order."""
        if common(self.parts, schema) == "boolean" and self.comparison not in ("==", "!="):
            raise InputError("expression", str(self), "a comparison of numbers, texts, days or instants")
        return truth(sure=all(part.facts(schema).sure for part in self.parts))

    def compiled(self, rows: Rows) -> ir.Column:
        """By the engine, in the common kind."""
        kind = common(self.parts, rows.schema)
        return COMPARISONS[self.comparison](*(in_kind(part, kind, rows) for part in self.parts))


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
    def parts(self) -> tuple[Tree, ...]:
        """The value and the list."""
        return self.part, *self.listed

    def __str__(self) -> str:
        return self.said("in")

    def said(self, how: str) -> str:
        """With ``in`` or ``not in``."""
        return f"{inside(self.part, ADDED)} {how} [{', '.join(map(str, self.listed))}]"

    def facts(self, schema: Schema) -> Facts:
        """A condition."""
        common(self.parts, schema)
        return truth(sure=self.part.facts(schema).sure)

    def compiled(self, rows: Rows) -> ir.Column:
        """By the engine, in the common kind."""
        kind = common(self.parts, rows.schema)
        own, *listed = (in_kind(part, kind, rows) for part in self.parts)
        return _closed(own.isin(listed))


@final
@dataclass(frozen=True)
class Missing(Tree):
    """Whether a value is missing: the only question to which a missing value has an answer."""

    part: Tree
    binding = COMPARED

    @property
    def parts(self) -> tuple[Tree, ...]:
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
    def parts(self) -> tuple[Tree, ...]:
        """The condition."""
        return (self.part,)

    def __str__(self) -> str:
        if isinstance(self.part, Member):
            return self.part.said("not in")
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
    def parts(self) -> tuple[Tree, ...]:
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
