"""The correlation of two columns, from the noisy moments of both."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Unpack, final

from tightrope.release.derived.moments import (
    NARROWINGS,
    NUISANCE,
    USABLE,
    XX,
    XY,
    YY,
    Mean,
    Sample,
    Weights,
    X,
    Y,
    covariance_seen,
    lessened,
    main,
    variance_seen,
    variance_span,
)
from tightrope.release.derived.pairs import OfMoments
from tightrope.release.derived.record import EVEN, PAIRS, expected
from tightrope.release.derived.spans import Span
from tightrope.release.questions.asked import Asking, Given, spelled_out
from tightrope.release.questions.node import Integers, Noises, Record
from tightrope.release.questions.vector import Vector

ANY = Span(-1.0, 1.0)


@final
@dataclass(frozen=True, slots=True)
class Correlation(OfMoments):
    """The correlation of the clamped values of each group."""

    kind = "correlation"
    meaning = "The correlation"
    notes = (
        PAIRS,
        "where noise hides whether the values of a column differ at all, the correlation is withheld",
        EVEN,
    )

    varies = (X, Y)

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
    spread, found = _spread(sample.usable, seen, means, ratio), ANY
    for _ in range(NARROWINGS):
        off = sample.width(_noise(sample, means, ratio, found), main(4))
        off += sample.usable * means[0].off * means[1].off
        middle = covariance_seen(sample)
        found = Span(middle - off, middle + off).over(spread).within(found)
    return found


def _spread(usable: int, seen: tuple[float, float], means: tuple[Mean, Mean], ratio: Span) -> Span:
    """(κ V + W/κ)/2 for all ratios: convex in κ, least at √(W/V); V and W by as much larger as the means may be off."""
    least = min(max(math.sqrt(seen[1] / seen[0]), ratio.low), ratio.high)
    larger = [part + usable * mean.off**2 for part, mean in zip(seen, means, strict=True)]
    most = max((k * larger[0] + larger[1] / k) / 2 for k in (ratio.low, ratio.high))
    return Span((least * seen[0] + seen[1] / least) / 2, most)


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


@spelled_out
def correlation(
    column: Given, other: Given, *, between: tuple[float, float], of: tuple[float, float], **asked: Unpack[Asking]
) -> Correlation:
    """The correlation of two columns in rows that have both, ``column`` clamped to ``between``, ``other`` to ``of``.

    Six noisy vectors, charged jointly: sums of products, squares and values, and a count. The other keywords are those
    of ``count``. Raises ``PlanError`` naming what is wrong.

    >>> str(correlation("height", "weight", between=(1, 2.5), of=(20, 200)))
    'correlation of height between 1 and 2.5 and weight between 20 and 200'
    """
    return Correlation.asked_of((column, other), (between, of), asked)
