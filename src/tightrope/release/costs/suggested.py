"""A range for a column, read from noisy counts that were paid for."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

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
from tightrope.release.questions.widths.two_noises import sum_widths

if TYPE_CHECKING:
    from tightrope.release.answers import Answers
    from tightrope.release.questions.vector import Noise

DECADES = range(-3, 10)
TAIL_SHARE = 0.01
"""So much of all values is left beyond each end of a suggested range, or what noise hides."""
SURE = 0.95
WARNING = (
    "read from the data, at a price: it was charged, and is as private as any answer. It is rough: its ends are 1, 2 "
    "or 5 times a power of ten; with probability 95 % over the noise at most {below} % of the values lie below it and "
    "at most {above} % at its upper end or above{beyond}. Write it down and keep "
    "it: a range that is suggested anew for each release costs anew. What is publicly known is better and costs nothing"
)
BELOW = "; besides, about {share:.0%} of the rows have a value below {end:g} or none"
NOTHING_ELSE = "nothing but values below {end:g}, or missing ones, could be told from an empty part of the axis"
ABOVE = "about {share:.0%} of the values are {end:g} or more, and where they end is not looked for: use a larger unit"
SHARE_TOO_SMALL = "the share was too small for so few rows: no part of the axis could be told from an empty one"


@dataclass(frozen=True, slots=True)
class SuggestedBounds:
    """A range for ``between``; None where noise hides where the values are. ``answers`` is what was released."""

    column: str
    between: tuple[float, float] | None
    warning: str
    answers: Answers
    beyond: tuple[float, float] | None = None
    """At most these shares of the values lie below and above it, with probability 95 % over the noise."""

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
    column, counts = str(question.column), [int(row["value"]) for row in answer.rows]
    reach = noise.half_width(1 - TAIL_SHARE / len(counts))
    parts = [count if count > reach else 0 for count in counts]
    if (found := _read(parts, counts)) is None or isinstance(found, str):
        return SuggestedBounds(column, None, found or SHARE_TOO_SMALL, answers)
    widths = sum_widths(noise.tails, len(counts), (1 - SURE) / (4 * len(counts)))
    ends, (_, *inside), (low, high) = edges(), counts, found
    below = _most_beyond(inside, ends.index(low), widths)
    above = _most_beyond(inside[::-1], len(inside) - ends.index(high), widths)
    missed = counts[0] / max(sum(counts), 1)
    beyond = BELOW.format(share=missed, end=ends[0]) if parts[0] and missed > TAIL_SHARE else ""
    warning = WARNING.format(below=_percent_up(below), above=_percent_up(above), beyond=beyond)
    return SuggestedBounds(column, found, warning, answers, (below, above))


def _read(parts: Sequence[int], counts: Sequence[int]) -> tuple[float, float] | str | None:
    """The range, or why there is none. The first part, with what is missing, and the last one have no end."""
    ends, (below, *inside) = edges(), parts
    if not any(inside):
        return NOTHING_ELSE.format(end=ends[0]) if below else None
    if inside[-1] > TAIL_SHARE * sum(inside):
        return ABOVE.format(share=inside[-1] / max(sum(counts[1:]), inside[-1]), end=ends[-1])
    return covering(ends, inside)


def _most_beyond(counts: Sequence[int], place: int, widths: Floats) -> float:
    """The largest share of all values that lie in the first ``place`` parts; simultaneous for every place.

    All counts enter, also those that hardly stand out from their noise: together they may be many.
    """
    if place == 0:
        return 0.0
    total = float(sum(counts))
    sums, numbers = np.cumsum(counts, dtype=float), np.arange(1, len(counts) + 1)
    most = max(float(np.min((sums + widths[numbers])[place - 1 :])), 0.0)
    rest = max(total - float(sums[place - 1]) - float(widths[len(counts) - place]), 0.0)
    return most / (most + rest) if rest > 0 else 1.0


def _percent_up(share: float) -> str:
    return f"{math.ceil(1000 * share) / 10:g}"


def covering(ends: Sequence[float], counts: Sequence[int]) -> tuple[float, float] | None:
    """The narrowest range of edges with at most ``TAIL_SHARE`` of the counts on each side; each is of [edge, next).

    >>> covering([0, 1, 2, 5], [0, 1, 989, 10]), covering([0, 1], [0, 0])
    ((2, 5), None)
    """
    total = sum(counts)
    if not total:
        return None
    low, high = _first(counts, TAIL_SHARE * total), len(counts) - _first(counts[::-1], TAIL_SHARE * total)
    return ends[low], ends[min(high, len(ends) - 1)]


def _first(counts: Sequence[int], allowed: float) -> int:
    """How many parts may be left out, from the beginning."""
    gone = 0
    for place, count in enumerate(counts):
        gone += count
        if gone > allowed:
            return place
    return len(counts)
