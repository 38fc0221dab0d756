"""A range for a column, read from noisy counts that were paid for."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from tightrope.certificates.printable import printable
from tightrope.engines.expressions.facts import NUMBERS
from tightrope.engines.expressions.terms import facts_of, term_of
from tightrope.engines.schema import Schema
from tightrope.errors import SchemaError
from tightrope.numerics.arrays import Floats
from tightrope.release.questions.asked import Given
from tightrope.release.questions.histogram import Histogram, histogram
from tightrope.release.questions.of_column import column_term

if TYPE_CHECKING:
    from tightrope.release.answers import Answers
    from tightrope.release.questions.vector import Noise

DECADES = range(-3, 10)
TAIL_SHARE = 0.01
"""About so much of what is seen may lie beyond each end of a suggested range; how much may lie there unseen is said."""
MOST_STEPS = 50_000
WRONG = 0.05
"""How often the shares that are said may be wrong."""
WARNING = (
    "read from the data, at a price: it was charged, and is as private as any answer. It is rough: its ends are 1, 2 "
    "or 5 times a power of ten; at most {low:.1%} of the values lie below it, and at most {high:.1%} above it (19 "
    "times in 20{more}){beyond}. Write it down and keep it: a range that is suggested anew for each release costs "
    "anew. What is publicly known is better and costs nothing"
)
MORE = "; a larger share of the budget narrows that down"
BELOW = "; besides, at most {share:.1%} of the rows have a value below {end:g} or none"
NOTHING_ELSE = "nothing but values below {end:g}, or missing ones, could be told from an empty part of the axis"
ABOVE = (
    "at least {share:.1%} of the values (19 times in 20) are {end:g} or more, and where they end is not looked for: "
    "use a larger unit"
)
SHARE_TOO_SMALL = "the share was too small for so few rows: no part of the axis could be told from an empty one"


@dataclass(frozen=True, slots=True)
class SuggestedBounds:
    """A range for ``between``; None where noise hides where the values are. ``answers`` is what was released."""

    column: str
    between: tuple[float, float] | None
    warning: str
    answers: Answers
    beyond: tuple[float, float] | None = None
    """At most these shares of the values lie below the range, and at its upper end or above; rightly 19 times in 20."""

    def __str__(self) -> str:
        name = printable(self.column)
        return f"{name}: {self.warning}" if self.between is None else f"{name} between {self.between}: {self.warning}"


def edges() -> tuple[float, ...]:
    """1, 2 and 5 times the powers of ten, on both sides of zero."""
    positive = [digit * 10.0**power for power in DECADES for digit in (1, 2, 5)]
    return (*(-edge for edge in reversed(positive)), 0.0, *positive)


def bounds_question(column: Given, where: Given | None, schema: Schema) -> Histogram:
    """How the values lie along the whole axis: one vector, at the cost of one count; ``SchemaError`` for a text."""
    term = term_of(column_term("column", column), schema)
    if (kind := facts_of(term, schema).kind) not in NUMBERS:
        raise SchemaError("column", str(term), f"a column of numbers, not of {kind}", "cast it, or declare its type")
    return histogram(column, edges=edges(), where=where, name="where the values lie")


def suggested_bounds(question: Histogram, answers: Answers, noise: Noise) -> SuggestedBounds:
    """The parts that are certainly not empty, less the outermost ``TAIL_SHARE`` of what lies in them on each side."""
    (answer,) = answers
    counts = [int(row["value"]) for row in answer.rows]
    reach = noise.half_width(1 - TAIL_SHARE / len(counts))
    between, said, beyond = _read(counts, reach, NoiseSums.of(noise))
    return SuggestedBounds(str(question.column), between, said, answers, beyond)


@dataclass(frozen=True, slots=True)
class NoiseSums:
    """How far sums of independent noise of one law reach: Chernoff's bound, from its log moments.

    ``slopes``: θ > 0. ``logs``: log E exp(θX).
    """

    slopes: Floats
    logs: Floats

    @classmethod
    def of(cls, noise: Noise) -> Self:
        """Those of the integers that run; the law is symmetric. Long laws are looked at in steps, from above."""
        tails, deviation = noise.tails, math.sqrt(noise.mechanism.mean_squared_error)
        slopes = np.geomspace(1e-3, 10.0, 60) / max(deviation, 1e-3)
        last = math.ceil(tails.factor * (len(tails.table) + 1))
        step = max(1, math.ceil(last / MOST_STEPS))
        x = np.arange(0, last, step, dtype=np.float64)
        beyond = 2 * tails.beyond(x)
        with np.errstate(over="ignore", invalid="ignore"):
            moments = [1 + float(np.sum(beyond * (np.cosh(s * (x + step)) - np.cosh(s * x)))) for s in slopes]
        known = np.isfinite(moments)
        return cls(slopes[known], np.log(np.array(moments)[known]))

    def exceeded(self, terms: int, chance: float) -> float:
        """Return what a sum of so many exceeds with at most this chance; it falls below the opposite as rarely."""
        return float(np.min((terms * self.logs - math.log(chance)) / self.slopes)) if terms else 0.0

    def shares(self, part: Sequence[int], rest: Sequence[int]) -> tuple[float, float]:
        """The least and the largest share of a part in all that is counted, from noisy counts of both.

        It holds for every way to divide an axis in two at once, so for one that was chosen by these counts.
        """
        chance = WRONG / (8 * (len(part) + len(rest)))
        ends = [
            (max(0.0, sum(own) - reach), max(0.0, sum(own) + reach))
            for own in (part, rest)
            for reach in [self.exceeded(len(own), chance)]
        ]
        (least, most), (others_least, others_most) = ends
        return (
            least / (least + others_most) if least > 0 else 0.0,
            most / (most + others_least) if most > 0 else 0.0,
        )


Pair = tuple[float, float]


def _read(counts: Sequence[int], reach: float, noise: NoiseSums) -> tuple[Pair | None, str, Pair | None]:
    """The range, what is said of it, and what lies beyond its ends at most. The first part and the last have no end.

    What is missing is counted with the first part.

    A part counts towards the range where noise alone would not reach so far; what is said of shares counts all parts.
    """
    ends, (below, *inside) = edges(), counts
    seen = [count if count > reach else 0 for count in inside]
    total = sum(seen)
    if not total:
        return None, NOTHING_ELSE.format(end=ends[0]) if below > reach else SHARE_TOO_SMALL, None
    if seen[-1] > TAIL_SHARE * total:
        return None, ABOVE.format(share=noise.shares(inside[-1:], inside[:-1])[0], end=ends[-1]), None
    low, high = _places(seen)
    outside = [noise.shares(part, rest)[1] for part, rest in _divided(inside, (low, high))]
    share = noise.shares([below], inside)[1] if below > reach else 0.0
    beyond = BELOW.format(share=share, end=ends[0]) if share > TAIL_SHARE else ""
    more = MORE if max(outside) > 2 * TAIL_SHARE else ""
    most = _upwards(outside[0]), _upwards(outside[1])
    said = WARNING.format(low=most[0], high=most[1], more=more, beyond=beyond)
    return (ends[low], ends[high]), said, most


def _divided(counts: Sequence[int], places: tuple[int, int]) -> tuple[tuple[Sequence[int], Sequence[int]], ...]:
    """What lies below and above a range, each beside all the rest."""
    low, high = places
    return (counts[:low], counts[low:]), (counts[high:], counts[:high])


def _upwards(share: float) -> float:
    """A share as it is shown: a tenth of a percent, upwards."""
    return min(1.0, math.ceil(share * 1000) / 1000)


def covering(ends: Sequence[float], counts: Sequence[int]) -> tuple[float, float] | None:
    """The narrowest range of edges with at most ``TAIL_SHARE`` of the counts on each side; each is of [edge, next).

    >>> covering([0, 1, 2, 5], [0, 1, 989, 10]), covering([0, 1], [0, 0])
    ((2, 5), None)
    """
    if not sum(counts):
        return None
    low, high = _places(counts)
    return ends[low], ends[min(high, len(ends) - 1)]


def _places(counts: Sequence[int]) -> tuple[int, int]:
    """Where that range begins and ends."""
    allowed = TAIL_SHARE * sum(counts)
    return _first(counts, allowed), len(counts) - _first(counts[::-1], allowed)


def _first(counts: Sequence[int], allowed: float) -> int:
    """How many parts may be left out, from the beginning."""
    gone = 0
    for place, count in enumerate(counts):
        gone += count
        if gone > allowed:
            return place
    return len(counts)
