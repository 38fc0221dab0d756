"""Questions about a column's values, each clamped to a range that is declared: it bounds what one row can change."""

from __future__ import annotations

from abc import ABC
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from tightrope.certificates.printable import printable
from tightrope.errors import PlanError
from tightrope.numerics.checks import finite
from tightrope.release.questions.asked import Asked, Asking, asking
from tightrope.release.questions.node import Question

PUBLIC = "say between = (lowest, highest), from what is publicly known and not from the data"


@dataclass(frozen=True, slots=True)
class OfColumn(Question, ABC):
    """A statistic of the values of ``column``, clamped to ``between``."""

    column: str
    between: tuple[float, float]

    entries = ("column", "between")

    def __str__(self) -> str:
        low, high = self.between
        return (
            f"{self.kind} of {printable(self.column)} between {shown_end(low)} and {shown_end(high)}{self.asked.groups}"
        )

    @classmethod
    def of(cls, column: object, between: object, asked: Asking) -> Self:
        """The question, checked; raises ``PlanError`` naming what is wrong."""
        name = column_name("column", column)
        return cls(Asked.of(cls.kind, name, **asked), name, value_range("between", between))

    @classmethod
    def from_entry(cls, entry: Mapping[str, Any]) -> Self:
        """The column and its range, besides what every question has."""
        return cls.of(entry.get("column"), entry.get("between"), asking(entry))


def column_name(name: str, column: object) -> str:
    """The name of a column; raises ``PlanError``, which calls it ``name``, for anything else."""
    if not (isinstance(column, str) and column):
        raise PlanError(name, column, "the name of a column", "it is needed, for example 'income'")
    return column


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
