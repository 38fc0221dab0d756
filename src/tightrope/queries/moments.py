"""The variance of a column and its square root: noisy sums of centred values and their squares over a noisy count."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import ClassVar, Self, final

from tightrope.documents.escaping import printable
from tightrope.errors import PlanError
from tightrope.queries.column_query import OfColumn, column_term, shown_end, value_range
from tightrope.queries.moment_estimates import (
    ASSUMED_CORRELATION,
    EVEN,
    NARROWINGS,
    NUISANCE,
    PAIRS,
    TYPICAL,
    USABLE,
    XX,
    XY,
    YY,
    Mean,
    Sample,
    Span,
    Weights,
    X,
    Y,
    covariance_seen,
    covariance_span,
    expected,
    factor,
    hidden,
    lessened,
    main,
    products,
    reach,
    squares,
    total,
    usable_rows,
    variance_seen,
    variance_span,
    withheld_below,
)
from tightrope.queries.options import Given
from tightrope.queries.query import Integers, Noises, Question, Record
from tightrope.queries.statistics import Vector
from tightrope.tables.expressions.expression import Term, term_of
from tightrope.tables.request import Factor
from tightrope.tables.schema import Schema


@dataclass(frozen=True, slots=True)
class Spread(OfColumn, ABC):
    """How far values lie from their mean: of the rows that are used, divided by their number, not by one less."""

    additive = False
    uniform = False
    notes = (
        "it is that of the rows that are used: squares are divided by their number, not by one less",
        "where the noisy count is below 1 it is withheld and the interval is all that can be",
        EVEN,
    )

    @staticmethod
    @abstractmethod
    def _of(variance: float) -> float:
        """What is answered, from the variance."""

    def vectors(self) -> tuple[Vector, ...]:
        """The number of values, their centred sum and that of their squares."""
        size, of = self.asked.size, factor("between", self.clamp_bounds)
        return (
            squares(XX, self.term, of, None, size),
            total(X, self.term, of, None, size),
            usable_rows(USABLE, self.term, None, size),
        )

    def record(self, integers: Integers, noises: Noises) -> Record:
        """S/N − (S/N)², within what can be; ``usable`` is the noisy number of values."""
        usable, most = integers[USABLE], reach(factor("between", self.clamp_bounds)) ** 2
        if usable < 1:
            return {"value": None, "lower": 0.0, "upper": self._of(most), "usable": usable}
        sample = Sample.of(integers, noises)
        found = variance_span(sample, X, sample.mean(X), main(1))
        seen = min(max(variance_seen(sample, X) / usable, 0.0), most)
        ends = self._of(min(found.low, seen)), self._of(max(found.high, seen))
        return {"value": self._of(seen), "lower": ends[0], "upper": ends[1], "usable": usable}

    def errors(self, noises: Noises, people: int) -> tuple[float, float]:
        """For values around the middle of their range (``record.TYPICAL``)."""
        squared = TYPICAL * noises[XX].vector.sensitivity * 2
        centre = noises[XX].vector.sensitivity
        return expected(self.record({XX: round(people * (squared - centre)), X: 0, USABLE: people}, noises))

    def withheld(self, noises: Noises, people: int) -> float:
        """P(the noisy count is below 1)."""
        return withheld_below(noises[USABLE], people)


@final
@dataclass(frozen=True, slots=True)
class variance(Spread):
    """The variance of a column, each value clamped to ``between``: of the rows that are used, divided by their number.

    Noisy sums of centred values and of their squares and a noisy count, charged jointly. The other keywords are those
    of ``count``. Raises ``PlanError`` naming what is wrong.

    >>> variance("income", between=(0, 200_000)).name
    'variance_income'
    """

    kind = "variance"
    meaning = "The variance"

    @staticmethod
    def _of(variance: float) -> float:
        return variance


@final
@dataclass(frozen=True, slots=True)
class standard_deviation(Spread):
    """The square root of ``variance``, at the same cost.

    >>> str(standard_deviation("age", between=(0, 120), by="city"))
    'standard deviation of age between 0 and 120 by city'
    """

    kind = "standard_deviation"
    meaning = "The standard deviation"

    def __str__(self) -> str:
        return super(standard_deviation, self).__str__().replace("_", " ", 1)

    @staticmethod
    def _of(variance: float) -> float:
        return math.sqrt(max(variance, 0.0))


# Questions about two columns of the same rows, each clamped to a range of its own.

Range = tuple[float, float]
LIGHTER = 2.0
"""Noise of all but the products, relative to theirs: it enters with smaller weights."""


@dataclass(frozen=True, slots=True)
class OfPair(Question, ABC):
    """A statistic of two columns, one clamped to ``between`` and the other to ``of``, in rows that have both.

    A kind declares both columns as its fields, under the names of ``given``, and passes them to ``check_pair``.
    """

    between: tuple[float, float] = field(kw_only=True)
    """The lowest and the highest value of the first column, to which its values are clamped."""
    of: tuple[float, float] = field(kw_only=True)
    """The same of the second column."""
    first: Term = field(init=False, repr=False)
    """The first column, checked."""
    second: Term = field(init=False, repr=False)
    """The second column, checked."""

    given: ClassVar[tuple[str, str]] = ("column", "other")
    """What the two columns are called where the question is asked."""
    joined: ClassVar[str] = "and"
    entries = (*given, "between", "of")
    additive = False
    uniform = False

    def __str__(self) -> str:
        ends = [f"between {shown_end(low)} and {shown_end(high)}" for low, high in (self.between, self.of)]
        first, second = f"{printable(str(self.first))} {ends[0]}", f"{printable(str(self.second))} {ends[1]}"
        return f"{self.kind} of {first} {self.joined} {second}{self.asked.groups}"

    def check_pair(self, *columns: Given) -> None:
        """Check both columns, both ranges and the options; raises ``PlanError`` naming what is wrong."""
        first, second = (column_term(name, column) for name, column in zip(self.given, columns, strict=True))
        if first == second:
            raise PlanError(self.given[1], str(second), f"another column than {str(first)!r}")
        between, of = value_range("between", self.between), value_range("of", self.of)
        self.check_options(self.kind, str(first), str(second))
        self._set(first=first, second=second, between=between, of=of)

    @property
    def ranges(self) -> tuple[tuple[Term, tuple[float, float] | None], ...]:
        """Both columns, each clamped to its own range."""
        return (self.first, self.between), (self.second, self.of)

    def settled(self, schema: Schema, where: Term | None = None) -> Self:
        """With both columns read."""
        first, second = term_of(self.first, schema), term_of(self.second, schema)
        return self.changed(asked=self.asked.settled(schema, where), first=first, second=second)


@dataclass(frozen=True, slots=True)
class OfMoments(OfPair, ABC):
    """A statistic of the moments of two columns: x is the first and y the second, each counted from its middle."""

    varies: ClassVar[tuple[str, ...]] = ()
    """The columns that must be seen to vary: else it is withheld."""

    @property
    def factors(self) -> tuple[Factor, Factor]:
        """Both columns, counted from the middle of their ranges."""
        return factor("between", self.between), factor("of", self.of)

    def moments(self, *wanted: str) -> tuple[Vector, ...]:
        """The sum of products, both sums, the number of rows, and those sums of squares that are wanted."""
        (x, y), size = self.factors, self.asked.size
        first, second, light = self.first, self.second, size * LIGHTER
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
        alike = round(people * largest[XY] * ASSUMED_CORRELATION * TYPICAL)
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


# The covariance of two columns: noisy sums of centred values and of their products over a noisy count.


@final
@dataclass(frozen=True, slots=True)
class covariance(OfMoments):
    """The covariance of two columns in the rows that have both, ``column`` clamped to ``between``, ``other`` to ``of``.

    Noisy sums of products and of centred values and a noisy count, charged jointly. The other keywords are those of
    ``count``. Raises ``PlanError`` naming what is wrong.

    >>> covariance("height", "weight", between=(1, 2.5), of=(20, 200)).name
    'covariance_height_weight'
    """

    column: Given = field(compare=False)
    """The first column, or an expression."""
    other: Given = field(compare=False)
    """The second column, or an expression."""

    kind = "covariance"
    meaning = "The covariance"
    notes = (
        "it is that of the rows that are used: products are divided by their number, not by one less",
        PAIRS,
        "where the noisy count is below 1 it is withheld and the interval is all that can be",
        EVEN,
    )

    def __post_init__(self) -> None:
        self.check_pair(self.column, self.other)

    def vectors(self) -> tuple[Vector, ...]:
        """The sum of products, both sums, and the number of rows."""
        return self.moments()

    def record(self, integers: Integers, noises: Noises) -> Record:
        """Sxy/N − Sx/N Sy/N, within what can be; ``usable`` is the noisy number of rows."""
        usable, (x, y) = integers[USABLE], self.factors
        most = reach(x) * reach(y)
        if usable < 1:
            return {"value": None, "lower": -most, "upper": most, "usable": usable}
        sample = Sample.of(integers, noises)
        found = covariance_span(sample, (sample.mean(X), sample.mean(Y)), main(2))
        value = min(max(covariance_seen(sample) / usable, -most), most)
        return {"value": value, "lower": min(found.low, value), "upper": max(found.high, value), "usable": usable}

    def errors(self, noises: Noises, people: int) -> tuple[float, float]:
        """For values around the middle of their range (``record.TYPICAL``)."""
        return expected(self.record(self.typical(noises, people), noises))


# The correlation of two columns, from the noisy moments of both.

ANY = Span(-1.0, 1.0)


@final
@dataclass(frozen=True, slots=True)
class correlation(OfMoments):
    """The correlation of two columns in rows that have both, ``column`` clamped to ``between``, ``other`` to ``of``.

    Six noisy vectors, charged jointly: sums of products, squares and values, and a count. The other keywords are those
    of ``count``. Raises ``PlanError`` naming what is wrong.

    >>> str(correlation("height", "weight", between=(1, 2.5), of=(20, 200)))
    'correlation of height between 1 and 2.5 and weight between 20 and 200'
    """

    column: Given = field(compare=False)
    """The first column, or an expression."""
    other: Given = field(compare=False)
    """The second column, or an expression."""

    kind = "correlation"
    meaning = "The correlation"
    notes = (
        PAIRS,
        "where noise hides whether the values of a column differ at all, the correlation is withheld",
        EVEN,
    )

    varies = (X, Y)

    def __post_init__(self) -> None:
        self.check_pair(self.column, self.other)

    def vectors(self) -> tuple[Vector, ...]:
        """The sums of products and squares, both sums, and the number of rows."""
        return self.moments(XX, YY)

    def record(self, integers: Integers, noises: Noises) -> Record:
        """Covariance over the root of both variances, within [−1, 1]; ``usable`` is the noisy number of rows."""
        usable = integers[USABLE]
        if usable < 1:
            return {"value": None, "lower": -1.0, "upper": 1.0, "usable": usable}
        sample = Sample.of(integers, noises)
        seen = variance_seen(sample, X), variance_seen(sample, Y)
        if not min(seen) > 0:
            return {"value": None, "lower": -1.0, "upper": 1.0, "usable": usable}
        value = min(max(covariance_seen(sample) / math.sqrt(seen[0]) / math.sqrt(seen[1]), -1.0), 1.0)
        found = _likely(sample, seen)
        return {"value": value, "lower": min(found.low, value), "upper": max(found.high, value), "usable": usable}

    def errors(self, noises: Noises, people: int) -> tuple[float, float]:
        """For values around the middle of their range, half alike (``record.TYPICAL``)."""
        return expected(self.record(self.typical(noises, people), noises))


def _likely(sample: Sample, seen: tuple[float, float]) -> Span:
    """Where the correlation r is: C − r (κ V + W/κ)/2 is noise alone at κ = √(W/V), V and W both variances times n."""
    means = sample.mean(X), sample.mean(Y)
    x, y = (variance_span(sample, name, mean, NUISANCE) for name, mean in zip((X, Y), means, strict=True))
    if not min(x.low, y.low) > 0:
        return ANY
    ratio = Span(math.sqrt(y.low / x.high), math.sqrt(y.high / x.low))
    # (κ V + W/κ)/2 for all ratios: convex in κ, least at √(W/V); V and W by as much larger as the means may be off.
    least = min(max(math.sqrt(seen[1] / seen[0]), ratio.low), ratio.high)
    larger = [part + sample.usable * mean.off**2 for part, mean in zip(seen, means, strict=True)]
    most = max((k * larger[0] + larger[1] / k) / 2 for k in (ratio.low, ratio.high))
    spread, found = Span((least * seen[0] + seen[1] / least) / 2, most), ANY
    for _ in range(NARROWINGS):
        off = sample.width(_noise(sample, means, ratio, found), main(4))
        off += sample.usable * means[0].off * means[1].off
        middle = covariance_seen(sample)
        found = Span(middle - off, middle + off).over(spread).within(found)
    return found


def _noise(sample: Sample, means: tuple[Mean, Mean], ratio: Span, found: Span) -> Weights:
    """The weights of all noises in C − r (κ V + W/κ)/2."""
    (x, y), other = (mean.span for mean in means), Span(1 / ratio.high, 1 / ratio.low)
    first = ratio * (x.square() + lessened(sample.noises[XX]))
    second = other * (y.square() + lessened(sample.noises[YY]))
    return {
        XY: 1.0,
        XX: found * ratio * 0.5,
        YY: found * other * 0.5,
        X: found * ratio * x - y,
        Y: found * other * y - x,
        USABLE: x * y - found * (first + second) * 0.5,
    }
