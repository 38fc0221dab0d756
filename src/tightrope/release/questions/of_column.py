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
        return f"{self.kind} of {printable(self.column)} between {_end(low)} and {_end(high)}{self.asked.groups}"

    @classmethod
    def of(cls, column: object, between: object, asked: Asking) -> Self:
        """The question, checked; raises ``PlanError`` naming what is wrong."""
        if not (isinstance(column, str) and column):
            raise PlanError("column", column, "the name of a column", "it is needed, for example 'income'")
        return cls(Asked.of(cls.kind, column, **asked), column, _range(between))

    @classmethod
    def from_entry(cls, entry: Mapping[str, Any]) -> Self:
        """The column and its range, besides what every question has."""
        return cls.of(entry.get("column"), entry.get("between"), asking(entry))


def _end(number: float) -> str:
    """The number as it was asked for, every digit of it.

    >>> _end(1234567.0), _end(-0.0), _end(0.1)
    ('1234567', '0', '0.1')
    """
    return str(int(number)) if number.is_integer() and abs(number) < _LONG else repr(number)


_LONG = 1e15
"""From here on a float is shown with its power of ten."""


def _range(between: object) -> tuple[float, float]:
    if not isinstance(between, (tuple, list)) or len(between) != 2:
        raise PlanError("between", between, "a pair of numbers", PUBLIC)
    low, high = finite("between[0]", between[0], PUBLIC), finite("between[1]", between[1], PUBLIC)
    if not low < high:
        raise PlanError("between", between, "a pair (lowest, highest) with lowest < highest", PUBLIC)
    return low, high
