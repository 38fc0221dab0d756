"""The covariance of two columns: noisy sums of centred values and of their products over a noisy count."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Unpack, final

from tightrope.release.derived.factors import reach
from tightrope.release.derived.moments import USABLE, Sample, X, Y, covariance_seen, covariance_span, main
from tightrope.release.derived.pairs import OfMoments
from tightrope.release.derived.record import EVEN, PAIRS, expected
from tightrope.release.questions.asked import Asking, Given, spelled_out
from tightrope.release.questions.node import Integers, Noises, Record
from tightrope.release.questions.vector import Vector


@final
@dataclass(frozen=True, slots=True)
class Covariance(OfMoments):
    """The covariance of the clamped values of each group, divided by the number of rows."""

    kind = "covariance"
    meaning = "The covariance"
    notes = (
        "it is that of the rows that are used: products are divided by their number, not by one less",
        PAIRS,
        "where the noisy count is below 1 it is withheld and the interval is all that can be",
        EVEN,
    )

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


@spelled_out
def covariance(
    column: Given, other: Given, *, between: tuple[float, float], of: tuple[float, float], **asked: Unpack[Asking]
) -> Covariance:
    """The covariance of two columns in the rows that have both, ``column`` clamped to ``between``, ``other`` to ``of``.

    Noisy sums of products and of centred values and a noisy count, charged jointly. The other keywords are those of
    ``count``. Raises ``PlanError`` naming what is wrong.

    >>> covariance("height", "weight", between=(1, 2.5), of=(20, 200)).name
    'covariance_height_weight'
    """
    return Covariance.asked_of((column, other), (between, of), asked)
