"""The line of least squares through two columns, from their noisy moments: its slope and where it meets the axis."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Self, final

from tightrope.queries.moment_estimates import (
    EVEN,
    NARROWINGS,
    NUISANCE,
    PAIRS,
    USABLE,
    XY,
    YY,
    Mean,
    Sample,
    Span,
    Weights,
    X,
    Y,
    around,
    covariance_seen,
    covariance_span,
    expected,
    finite,
    lessened,
    main,
    variance_seen,
    variance_span,
)
from tightrope.queries.moments import OfMoments
from tightrope.queries.options import Given
from tightrope.queries.query import Integers, Noises, Record
from tightrope.queries.statistics import Vector, rounding

# The line of least squares through noisy moments: y along which it goes, x what it meets, both centred.

ANY = Span(-math.inf, math.inf)


@dataclass(frozen=True, slots=True, eq=False)
class Line:
    """x = base + slope · y for the rows of a group: C, n times the covariance, over V, n times the variance of y."""

    sample: Sample
    x: Mean
    y: Mean
    covariance: float
    variance: float

    @classmethod
    def of(cls, sample: Sample) -> Self | None:
        """None where noise hides whether there is any variance to go along."""
        seen = covariance_seen(sample), variance_seen(sample, Y)
        found = cls(sample, sample.mean(X), sample.mean(Y), *seen)
        return found if math.isfinite(found.slope(main(2)).reach) else None

    @property
    def seen(self) -> float:
        """The slope as it came out."""
        return self.covariance / self.variance

    @property
    def base(self) -> float:
        """The line where y is at its middle."""
        return self.x.seen - self.seen * self.y.seen

    def slope(self, outside: float) -> Span:
        """Where the slope b is: C − b V is noise alone. Without limit where V may be zero."""
        found = self._any_slope(outside)
        if not math.isfinite(found.reach):
            return found
        usable = self.sample.usable
        spread = Span(self.variance, self.variance + usable * self.y.off**2)
        for _ in range(NARROWINGS):
            off = self.sample.width(self._slope_noise(found), outside) + usable * self.x.off * self.y.off
            found = around(self.covariance, off).over(spread).within(found)
        return found

    def _any_slope(self, outside: float) -> Span:
        """A first range: the noise of C and that of b V, each wider half of the time."""
        flat = self._slope_noise(Span(0.0, 0.0))
        rest = self.variance - self.sample.width(self._variance_noise(), outside / 2)
        off = self.sample.width(flat, outside / 2) + self.sample.usable * self.x.off * self.y.off
        most = (abs(self.covariance) + off) / rest if rest > 0 else math.inf
        return Span(-most, most)

    def _variance_noise(self) -> dict[str, Span]:
        """The weights of the noises in V, as C − b V has them: those of ``_slope_noise`` that b multiplies."""
        y = self.y.span
        return {YY: Span(1.0, 1.0), Y: y * 2, USABLE: y.square() + lessened(self.sample.noises[YY])}

    @classmethod
    def hidden(cls, sample: Sample) -> float:
        """How much of V noise hides: where less is seen, there is no line."""
        line = cls(sample, sample.mean(X), sample.mean(Y), covariance_seen(sample), variance_seen(sample, Y))
        return sample.width(line._variance_noise(), main(2) / 2)

    def _slope_noise(self, slope: Span) -> dict[str, Span]:
        """The weights of all noises in C − b V."""
        x, y, centre = self.x.span, self.y.span, lessened(self.sample.noises[YY])
        return {
            XY: Span(1.0, 1.0),
            YY: -slope,
            X: -y,
            Y: slope * y * 2 - x,
            USABLE: x * y - slope * (y.square() + centre),
        }

    def height(self, at: float, outside: float) -> Span:
        """Where the line is at y = ``at``: with u = at − mean of y, r = height − mean of x, C u − r V is noise alone.

        The means in u and r are those that are seen, and their noise is added: that of C/n to u, that of V/n to r.
        """
        slope = self.slope(NUISANCE)
        if not math.isfinite(slope.reach):
            return ANY
        beside = Span(at, at) - self.y.span
        found = self.x.span + slope * beside
        for _ in range(NARROWINGS):
            rise = (found - self.x.span).within(slope * beside)
            off = self.sample.width(self._height_noise(beside, rise), outside) + self._second(beside, rise)
            middle = self.x.seen + self.covariance * (at - self.y.seen) / self.variance
            found = around(middle, off / self.variance).within(found)
        return found

    @property
    def _moments(self) -> tuple[Span, Span]:
        """Where the covariance and the variance are."""
        means = self.x, self.y
        return covariance_span(self.sample, means, NUISANCE), variance_span(self.sample, Y, self.y, NUISANCE)

    def _height_noise(self, beside: Span, rise: Span) -> Weights:
        x, y, centre = self.x.span, self.y.span, lessened(self.sample.noises[YY])
        covariance, variance = self._moments
        return {
            XY: beside,
            YY: -rise,
            X: variance - beside * y,
            Y: rise * y * 2 - beside * x - covariance,
            USABLE: beside * x * y - rise * (y.square() + centre) + covariance * y - variance * x,
        }

    def _second(self, beside: Span, rise: Span) -> float:
        """Products of two noises: what the noise of means does to noisy moments."""
        n, (covariance, variance) = self.sample.usable, self._moments
        off = (covariance * n - self.covariance).reach * self.y.off + (variance * n - self.variance).reach * self.x.off
        return off + n * self.y.off * (self.x.off * beside.reach + self.y.off * rise.reach)


@final
@dataclass(frozen=True, slots=True)
class regression(OfMoments):
    """The line of least squares of ``column``, clamped to ``between``, on another column ``on``, clamped to ``of``.

    ``value`` is its slope and ``intercept`` where it is at zero, each with a 95 % interval; rows that have both
    values count. Five noisy vectors, charged jointly: sums of products, squares and values, and a count. The other
    keywords are those of ``count``. Raises ``PlanError`` naming what is wrong.

    >>> str(regression("delay", on="distance", between=(0, 60), of=(0, 3000)))
    'regression of delay between 0 and 60 on distance between 0 and 3000'
    """

    column: Given = field(compare=False)
    """The column that the line predicts, or an expression."""
    on: Given = field(compare=False)
    """The column that the line goes along, or an expression."""

    kind = "regression"
    meaning = "The slope of the line of least squares"
    given = ("column", "on")
    joined = "on"
    entries = (*given, "between", "of")
    varies = (Y,)
    notes = (
        "value is the slope, with its interval; intercept, in result.json and in .frame, is where the line is at zero, "
        "with an interval of its own",
        PAIRS,
        "where noise hides whether the values that the line goes along differ at all, the line is withheld; an end "
        "that is missing has no limit",
        EVEN,
    )

    def __post_init__(self) -> None:
        self.check_pair(self.column, self.on)

    def vectors(self) -> tuple[Vector, ...]:
        """The sum of products, that of squares of what the line goes along, both sums, and the number of rows."""
        return self.moments(YY)

    def record(self, integers: Integers, noises: Noises) -> Record:
        """Covariance over variance; ``usable`` is the noisy number of rows."""
        usable = integers[USABLE]
        line = Line.of(Sample.of(integers, noises)) if usable >= 1 else None
        if line is None:
            nothing = dict.fromkeys(("value", "lower", "upper", "intercept", "intercept_lower", "intercept_upper"))
            return {**nothing, "usable": usable}
        (x, y), slope = self.factors, line.slope(main(2))
        meets, zero = line.height(-y.middle, main(5)), line.base - line.seen * y.middle
        off = rounding((x.middle, line.seen * y.middle))
        return {
            "value": line.seen,
            "lower": min(slope.low, line.seen),
            "upper": max(slope.high, line.seen),
            "usable": usable,
            "intercept": x.middle + zero,
            "intercept_lower": finite(x.middle + min(meets.low, zero) - off),
            "intercept_upper": finite(x.middle + max(meets.high, zero) + off),
        }

    def needed(self, sample: Sample, name: str) -> float:
        """What the noise in n times the variance may be, for the slope to have a limit."""
        del name
        return Line.hidden(sample)

    def errors(self, noises: Noises, people: int) -> tuple[float, float]:
        """Those of the slope, for values around the middle of their range, half alike (``record.TYPICAL``)."""
        return expected(self.record(self.typical(noises, people), noises))
