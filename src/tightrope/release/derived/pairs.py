"""Questions about two columns of the same rows, each clamped to a range of its own."""

from __future__ import annotations

import math
from abc import ABC
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from tightrope.certificates.printable import printable
from tightrope.engines.expressions.terms import Term, term_of
from tightrope.engines.request import Factor
from tightrope.engines.schema import Schema
from tightrope.errors import PlanError
from tightrope.release.derived.factors import factor, products, squares, total, usable_rows
from tightrope.release.derived.moments import USABLE, XX, XY, YY, Sample, X, Y, hidden
from tightrope.release.derived.record import ALIKE, TYPICAL, withheld_below
from tightrope.release.questions.asked import Asked, Asking, asking
from tightrope.release.questions.node import Noises, Question
from tightrope.release.questions.of_column import column_term, shown_end, value_range
from tightrope.release.questions.vector import Vector

Range = tuple[float, float]
LIGHTER = 2.0
"""Noise of all but the products, relative to theirs: it enters with smaller weights."""


@dataclass(frozen=True, slots=True)
class OfPair(Question, ABC):
    """A statistic of ``column``, clamped to ``between``, and ``other``, clamped to ``of``, in rows that have both."""

    column: Term
    other: Term
    between: Range
    of: Range

    given: ClassVar[tuple[str, str]] = ("column", "other")
    """What the two columns are called where the question is asked."""
    joined: ClassVar[str] = "and"
    entries = (*given, "between", "of")
    additive = False
    uniform = False

    def __str__(self) -> str:
        ends = [f"between {shown_end(low)} and {shown_end(high)}" for low, high in (self.between, self.of)]
        first, second = f"{printable(str(self.column))} {ends[0]}", f"{printable(str(self.other))} {ends[1]}"
        return f"{self.kind} of {first} {self.joined} {second}{self.asked.groups}"

    @classmethod
    def asked_of(cls, columns: tuple[object, object], ranges: tuple[object, object], asked: Asking) -> Self:
        """The question, checked; raises ``PlanError`` naming what is wrong."""
        first, second = (column_term(name, column) for name, column in zip(cls.given, columns, strict=True))
        if first == second:
            raise PlanError(cls.given[1], str(second), f"another column than {str(first)!r}")
        between, of = value_range("between", ranges[0]), value_range("of", ranges[1])
        return cls(Asked.of(cls.kind, str(first), str(second), **asked), first, second, between, of)

    @property
    def ranges(self) -> tuple[tuple[Term, tuple[float, float] | None], ...]:
        """Both columns, each clamped to its own range."""
        return (self.column, self.between), (self.other, self.of)

    def settled(self, schema: Schema, where: Term | None = None) -> Self:
        """With both columns read."""
        first, second = term_of(self.column, schema), term_of(self.other, schema)
        return replace(self, asked=self.asked.settled(schema, where), column=first, other=second)

    @classmethod
    def from_entry(cls, entry: Mapping[str, Any]) -> Self:
        """Both columns and their ranges, besides what every question has."""
        first, second = (entry.get(name) for name in cls.given)
        return cls.asked_of((first, second), (entry.get("between"), entry.get("of")), asking(entry))


@dataclass(frozen=True, slots=True)
class OfMoments(OfPair, ABC):
    """A statistic of the moments of two columns: x is ``column`` and y is ``other``, each counted from its middle."""

    varies: ClassVar[tuple[str, ...]] = ()
    """The columns that must be seen to vary: else it is withheld."""

    @property
    def factors(self) -> tuple[Factor, Factor]:
        """Both columns, counted from the middle of their ranges."""
        return factor("between", self.between), factor("of", self.of)

    def moments(self, *wanted: str) -> tuple[Vector, ...]:
        """The sum of products, both sums, the number of rows, and those sums of squares that are wanted."""
        (x, y), size = self.factors, self.asked.size
        first, second, light = self.column, self.other, size * LIGHTER
        every = {
            XY: products(XY, (first, second), (x, y), size),
            XX: squares(XX, first, x, second, light),
            YY: squares(YY, second, y, first, light),
            X: total(X, first, x, second, light),
            Y: total(Y, second, y, first, light),
            USABLE: usable_rows(USABLE, first, second, light),
        }
        return tuple(every[name] for name in (XY, *wanted, X, Y, USABLE))

    def typical(self, noises: Noises, people: int) -> dict[str, int]:
        """Integers of a group without noise: values around the middle, half alike."""
        largest = {name: noise.vector.sensitivity for name, noise in noises.items()}
        squared = {name: round(people * largest[name] * (2 * TYPICAL - 1)) for name in (XX, YY) if name in largest}
        alike = round(people * largest[XY] * ALIKE * TYPICAL)
        return {X: 0, Y: 0, XY: alike, USABLE: people, **squared}

    def withheld(self, noises: Noises, people: int) -> float:
        """P(the noisy count is below 1), and that noise hides whether the values differ; typical ones, as in errors."""
        few = withheld_below(noises[USABLE], people)
        if not self.varies or people < 1:
            return few
        sample = Sample.of(self.typical(noises, people), noises)
        return min(1.0, few + math.fsum(hidden(sample, name, self.needed(sample, name)) for name in self.varies))

    def needed(self, sample: Sample, name: str) -> float:
        """How much of n times a variance must be seen, so that it is not withheld."""
        del sample, name
        return 0.0
