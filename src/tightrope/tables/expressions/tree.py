"""An expression as a frozen tree: equal trees are the same expression, and each prints as its text.

Rules, the same on every engine: an expression sees one row. Missing values (NULL, NaN) stay missing in every
operation but ``is None``, ``and``, ``or`` and ``case``; conditions have three values, as in SQL. Arithmetic is in
doubles; integers stay exact integers, and are missing from 2⁵³ on; division by zero gives a missing value.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

from tightrope.errors import InputError
from tightrope.tables.schema import Kind, Schema

if TYPE_CHECKING:
    import ibis.expr.types as ir

# What is known of an expression from the schema alone: its kind, its range, and all its values where they are few.

NUMBERS = ("integer", "number")
WHOLE = 2**53
"""Whole numbers that are computed are exact below it, and missing from it on: a double could not tell them apart."""


@dataclass(frozen=True, slots=True)
class ValueFacts:
    """``lower`` and ``upper`` hold every number or truth value; ``possible_values`` are all possible values, sorted.

    ``never_missing``: it is never missing.
    """

    kind: Kind
    lower: float = -math.inf
    upper: float = math.inf
    possible_values: tuple[object, ...] | None = None
    never_missing: bool = False

    @property
    def possible_keys(self) -> tuple[object, ...] | None:
        """All values that a row can have, missing first; None if they are unknown."""
        if self.possible_values is None:
            return None
        return self.possible_values if self.never_missing else (None, *self.possible_values)


def boolean_facts(*, sure: bool = False) -> ValueFacts:
    """Return the facts of a condition."""
    return ValueFacts("boolean", 0.0, 1.0, (False, True), sure)


@dataclass(frozen=True, slots=True)
class SourceRows:
    """The input of expressions: a table of the engine, and the kinds of its columns."""

    table: ir.Table
    schema: Schema


MOST_DEPTH = 40
MOST_WEIGHT = 10_000
LONGEST_TEXT = 10_000
"""Bytes in UTF-8 that a text of a table has at most: a longer one is missing, for every use."""
FIXED_SIZE_BYTES = 16
"""Bytes that a value of fixed size takes, and a reference to a text."""
EITHER, BOTH, NOT, COMPARED, ADDED, TIMES, ATOM = range(1, 8)
"""Binding strengths of the forms of the text, the loosest first."""


@dataclass(frozen=True)
class ExpressionTree(ABC):
    """A node. A kind of node is a final frozen class that declares the facts below; limits hold by construction."""

    binding_strength: ClassVar[int] = ATOM
    """The binding strength of its text."""
    mentions: ClassVar[int] = 1
    """The number of times each part occurs in the engine's query."""

    def __post_init__(self) -> None:
        if self.tree_depth > MOST_DEPTH or self.query_length > MOST_WEIGHT:
            size = f"{self.tree_depth} levels, {self.query_length} terms"
            expected = f"at most {MOST_DEPTH} levels deep and {MOST_WEIGHT:,} terms long"
            raise InputError("expression", size, expected, "compute the column before")

    @property
    def child_nodes(self) -> tuple[ExpressionTree, ...]:
        """The operands."""
        return ()

    @property
    def own_columns(self) -> tuple[str, ...]:
        """The columns that it reads itself."""
        return ()

    @cached_property
    def tree_depth(self) -> int:
        """Levels of nodes."""
        return 1 + max((part.tree_depth for part in self.child_nodes), default=0)

    @cached_property
    def query_length(self) -> int:
        """The approximate length of the engine's query."""
        return 1 + self.mentions * sum(part.query_length for part in self.child_nodes)

    @property
    def max_value_bytes(self) -> int:
        """The largest size of its value in bytes, for any row."""
        return FIXED_SIZE_BYTES

    @property
    def creates_text(self) -> bool:
        """True if its value is a new text; all others are of fixed size, or refer to a text that is there already."""
        return False

    @cached_property
    def memory_bytes(self) -> int:
        """Bytes that the engine takes at most to compute it for one row: the new values of all nodes together."""
        own = self.max_value_bytes if self.creates_text else 0
        return FIXED_SIZE_BYTES + own + self.mentions * sum(part.memory_bytes for part in self.child_nodes)

    @abstractmethod
    def __str__(self) -> str:
        """Its text, which reads back as the same tree."""

    @abstractmethod
    def infer_facts(self, schema: Schema) -> ValueFacts:
        """Kind and range; raises ``SchemaError`` for a column that is not there, ``InputError`` for a wrong kind."""

    @abstractmethod
    def to_engine_column(self, rows: SourceRows) -> ir.Column:
        """The engine's column; its facts were asked for before."""


def parenthesize_part(part: ExpressionTree, least: int) -> str:
    """The text of a part, in parentheses where it binds less tightly than this."""
    return str(part) if part.binding_strength >= least else f"({part})"


def tree_columns(tree: ExpressionTree) -> tuple[str, ...]:
    """The columns that an expression reads, each once, as they come."""
    return tuple(dict.fromkeys(_walk_columns(tree)))


def _walk_columns(tree: ExpressionTree) -> Iterator[str]:
    yield from tree.own_columns
    for part in tree.child_nodes:
        yield from _walk_columns(part)
