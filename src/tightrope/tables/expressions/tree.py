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

NUMBERS = ("integer", "number")
EXACT_INTEGER_END = 2**53
"""Computed integers are exact below this; from it on they are missing, because a double cannot tell them apart."""
MAX_TREE_DEPTH = 40
MAX_QUERY_LENGTH = 10_000
MAX_TEXT_BYTES = 10_000
"""Largest text of a table, in bytes of UTF-8; a longer one is missing, for every use."""
MAX_LISTED_VALUES = 2_000
"""Most possible values of an expression that are listed."""
FIXED_SIZE_BYTES = 16
"""Bytes that a value of fixed size takes, and a reference to a text."""
OR_BINDING, AND_BINDING, NOT_BINDING, COMPARISON_BINDING, SUM_BINDING, PRODUCT_BINDING, ATOM_BINDING = range(1, 8)
"""Binding strengths of the forms of the text, the loosest first."""


@dataclass(frozen=True, slots=True)
class ValueFacts:
    """Facts of an expression's values that follow from the schema alone.

    ``lower`` and ``upper`` enclose every number or truth value. ``possible_values`` are all values other than a missing
    one, sorted, or None if they are many or unknown. ``never_missing`` is True if no row has a missing value.
    """

    kind: Kind
    lower: float = -math.inf
    upper: float = math.inf
    possible_values: tuple[object, ...] | None = None
    never_missing: bool = False

    @property
    def possible_keys(self) -> tuple[object, ...] | None:
        """All values that a row can have, a missing one first; None if they are unknown."""
        if self.possible_values is None:
            return None
        return self.possible_values if self.never_missing else (None, *self.possible_values)


def boolean_facts(*, never_missing: bool = False) -> ValueFacts:
    """Return the facts of a condition."""
    return ValueFacts("boolean", 0.0, 1.0, (False, True), never_missing)


@dataclass(frozen=True, slots=True)
class SourceRows:
    """The input of expressions: an engine's table, and the schema that gives the kinds of its columns."""

    table: ir.Table
    schema: Schema


@dataclass(frozen=True)
class ExpressionTree(ABC):
    """A node of an expression. Each subclass is final and frozen; a tree beyond the size limits cannot be built."""

    binding_strength: ClassVar[int] = ATOM_BINDING
    """How tightly the node's text binds; operands that bind less tightly are put in parentheses."""
    operand_mentions: ClassVar[int] = 1
    """The number of times each operand occurs in the engine's query."""
    is_exact: ClassVar[bool] = False
    """True if the node itself does no arithmetic, which an engine may compute in another way in another query."""

    def __post_init__(self) -> None:
        if self.tree_depth > MAX_TREE_DEPTH or self.query_length > MAX_QUERY_LENGTH:
            size = f"{self.tree_depth} levels, {self.query_length} terms"
            expected = f"at most {MAX_TREE_DEPTH} levels deep and {MAX_QUERY_LENGTH:,} terms long"
            raise InputError("expression", size, expected, "compute a part of it as a column of the table")

    @property
    def child_nodes(self) -> tuple[ExpressionTree, ...]:
        """The operands."""
        return ()

    @property
    def own_columns(self) -> tuple[str, ...]:
        """The columns that this node reads itself, without those of its operands."""
        return ()

    @cached_property
    def tree_depth(self) -> int:
        """The number of levels of nodes."""
        return 1 + max((part.tree_depth for part in self.child_nodes), default=0)

    @cached_property
    def query_length(self) -> int:
        """The approximate length of the engine's query."""
        return 1 + self.operand_mentions * sum(part.query_length for part in self.child_nodes)

    @property
    def max_value_bytes(self) -> int:
        """The largest size of its value in bytes, for any row."""
        return FIXED_SIZE_BYTES

    @property
    def creates_text(self) -> bool:
        """True if its value is a new text; other values have a fixed size or refer to a text that already exists."""
        return False

    @cached_property
    def memory_bytes(self) -> int:
        """The most bytes that the engine takes to compute it for one row: the new values of all nodes together."""
        new_text = self.max_value_bytes if self.creates_text else 0
        return FIXED_SIZE_BYTES + new_text + self.operand_mentions * sum(part.memory_bytes for part in self.child_nodes)

    @abstractmethod
    def __str__(self) -> str:
        """Return the text, which ``parse_expression`` reads back as the same tree."""

    @abstractmethod
    def infer_column_facts(self, schema: Schema) -> ValueFacts:
        """Return kind and range; raises ``SchemaError`` for a missing column, ``InputError`` for a wrong kind."""

    @abstractmethod
    def to_engine_column(self, rows: SourceRows) -> ir.Column:
        """Return the engine's column; ``infer_column_facts`` must have succeeded for this schema."""


def parenthesize_part(part: ExpressionTree, min_strength: int) -> str:
    """Return the text of an operand, in parentheses if it binds less tightly than ``min_strength``."""
    return str(part) if part.binding_strength >= min_strength else f"({part})"


def tree_columns(tree: ExpressionTree) -> tuple[str, ...]:
    """Return the columns that an expression reads, each once, in the order of the text."""
    return tuple(dict.fromkeys(_walk_columns(tree)))


def _walk_columns(tree: ExpressionTree) -> Iterator[str]:
    yield from tree.own_columns
    for part in tree.child_nodes:
        yield from _walk_columns(part)
