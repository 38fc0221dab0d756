"""An expression as a frozen tree: equal trees are the same expression, and each prints as its text.

Rules, the same on every engine: an expression sees one row. What is missing (NULL, NaN) stays missing in every
operation but ``is None``, ``and``, ``or`` and ``case``; conditions have three values, as in SQL. Arithmetic is that of
doubles; whole numbers stay whole and exact, and are missing from 2⁵³ on; what is divided by zero is missing.
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
class Facts:
    """``lower`` and ``upper`` hold every value of a number or a truth value; ``values`` are all there can be, sorted.

    ``sure``: it is never missing.
    """

    kind: Kind
    lower: float = -math.inf
    upper: float = math.inf
    values: tuple[object, ...] | None = None
    sure: bool = False

    @property
    def keys(self) -> tuple[object, ...] | None:
        """All values that a row can have, missing first; None where nobody knows them."""
        if self.values is None:
            return None
        return self.values if self.sure else (None, *self.values)


def truth(*, sure: bool = False) -> Facts:
    """Those of a condition."""
    return Facts("boolean", 0.0, 1.0, (False, True), sure)


@dataclass(frozen=True, slots=True)
class Rows:
    """Where expressions are computed: a table of the engine, and the kinds of its columns."""

    table: ir.Table
    schema: Schema


MOST_DEPTH = 40
MOST_WEIGHT = 10_000
LONGEST_TEXT = 10_000
"""Bytes in UTF-8 that a text of a table has at most: a longer one is missing, whatever it is used for."""
FIXED_SIZE_BYTES = 16
"""Bytes that a value of fixed size takes, and a reference to a text."""
EITHER, BOTH, NOT, COMPARED, ADDED, TIMES, ATOM = range(1, 8)
"""How tightly the forms of the text bind, the loosest first."""


@dataclass(frozen=True)
class Tree(ABC):
    """A node. A kind of node is a final frozen class that declares the facts below; limits hold by construction."""

    binding: ClassVar[int] = ATOM
    """How tightly its text binds."""
    mentions: ClassVar[int] = 1
    """How often each of its parts stands in the engine's query."""

    def __post_init__(self) -> None:
        if self.depth > MOST_DEPTH or self.weight > MOST_WEIGHT:
            size = f"{self.depth} levels, {self.weight} terms"
            expected = f"at most {MOST_DEPTH} levels deep and {MOST_WEIGHT:,} terms long"
            raise InputError("expression", size, expected, "compute the column before")

    @property
    def operands(self) -> tuple[Tree, ...]:
        """What it is made of."""
        return ()

    @property
    def reads(self) -> tuple[str, ...]:
        """The columns that it reads itself."""
        return ()

    @cached_property
    def depth(self) -> int:
        """Levels of nodes."""
        return 1 + max((part.depth for part in self.operands), default=0)

    @cached_property
    def weight(self) -> int:
        """How long the engine's query is, about."""
        return 1 + self.mentions * sum(part.weight for part in self.operands)

    @property
    def longest(self) -> int:
        """Bytes that its value has at most, whatever the row."""
        return FIXED_SIZE_BYTES

    @property
    def made_anew(self) -> bool:
        """Whether its value is a new text; all others are of fixed size, or refer to a text that is there already."""
        return False

    @cached_property
    def memory(self) -> int:
        """Bytes that the engine takes at most to compute it for one row: the new values of all nodes together."""
        own = self.longest if self.made_anew else 0
        return FIXED_SIZE_BYTES + own + self.mentions * sum(part.memory for part in self.operands)

    @abstractmethod
    def __str__(self) -> str:
        """Its text, which reads back as the same tree."""

    @abstractmethod
    def facts(self, schema: Schema) -> Facts:
        """Kind and range; raises ``SchemaError`` for a column that is not there, ``InputError`` for a wrong kind."""

    @abstractmethod
    def compiled(self, rows: Rows) -> ir.Column:
        """The engine's column; its facts were asked for before."""


def inside(part: Tree, least: int) -> str:
    """The text of a part, in parentheses where it binds less tightly than this."""
    return str(part) if part.binding >= least else f"({part})"


def columns_of(tree: Tree) -> tuple[str, ...]:
    """The columns that an expression reads, each once, as they come."""
    return tuple(dict.fromkeys(_columns(tree)))


def _columns(tree: Tree) -> Iterator[str]:
    yield from tree.reads
    for part in tree.operands:
        yield from _columns(part)
