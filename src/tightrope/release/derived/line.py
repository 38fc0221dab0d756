"""The line of least squares through noisy moments: y along which it goes, x what it meets, both centred."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

from tightrope.release.derived.moments import (
    NARROWINGS,
    NUISANCE,
    USABLE,
    XY,
    YY,
    Mean,
    Sample,
    Weights,
    X,
    Y,
    covariance_seen,
    covariance_span,
    lessened,
    main,
    variance_seen,
    variance_span,
)
from tightrope.release.derived.spans import Span, around

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
