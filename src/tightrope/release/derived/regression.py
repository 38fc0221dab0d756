"""The line of least squares through two columns, from their noisy moments: its slope and where it meets the axis."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Unpack, final

from tightrope.release.derived.line import Line
from tightrope.release.derived.moments import USABLE, YY, Sample, Y, main
from tightrope.release.derived.pairs import OfMoments
from tightrope.release.derived.record import EVEN, PAIRS, expected, finite
from tightrope.release.questions.asked import Asking, Given, spelled_out
from tightrope.release.questions.fixed_point import rounding
from tightrope.release.questions.node import Integers, Noises, Record
from tightrope.release.questions.vector import Vector


@final
@dataclass(frozen=True, slots=True)
class Regression(OfMoments):
    """The line of least squares of ``column`` on ``other``, through the clamped values of each group."""

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


@spelled_out
def regression(
    column: Given, on: Given, *, between: tuple[float, float], of: tuple[float, float], **asked: Unpack[Asking]
) -> Regression:
    """The line of least squares of ``column``, clamped to ``between``, on another column ``on``, clamped to ``of``.

    ``value`` is its slope and ``intercept`` where it is at zero, each with a 95 % interval; rows that have both
    values count. Five noisy vectors, charged jointly: sums of products, squares and values, and a count. The other
    keywords are those of ``count``. Raises ``PlanError`` naming what is wrong.

    >>> str(regression("delay", on="distance", between=(0, 60), of=(0, 3000)))
    'regression of delay between 0 and 60 on distance between 0 and 3000'
    """
    return Regression.asked_of((column, on), (between, of), asked)
