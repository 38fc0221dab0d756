"""What is known of an expression from the schema alone: its kind, its range, and all its values where they are few."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tightrope.engines.schema import Kind, Schema

if TYPE_CHECKING:
    import ibis.expr.types as ir

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
