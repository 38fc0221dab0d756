"""A range for a column, read from noisy counts that were paid for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tightrope.certificates.printable import printable
from tightrope.engines.expressions.facts import NUMBERS
from tightrope.engines.expressions.terms import facts_of, term_of
from tightrope.engines.schema import Schema
from tightrope.errors import SchemaError
from tightrope.release.questions.asked import Given
from tightrope.release.questions.histogram import Histogram, histogram
from tightrope.release.questions.of_column import column_term

if TYPE_CHECKING:
    from tightrope.release.answers import Answers
    from tightrope.release.questions.vector import Noise

DECADES = range(-3, 10)
TAIL_SHARE = 0.01
"""About so much of all values may lie beyond each end of a suggested range."""
WARNING = (
    "read from the data, at a price: it was charged, and is as private as any answer. It is rough: its ends are 1, 2 "
    "or 5 times a power of ten, and about {tail:.0%} of the values may lie beyond each{beyond}. Write it down and keep "
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
    return SuggestedBounds(str(question.column), *_read([count if count > reach else 0 for count in counts]), answers)


def _read(counts: Sequence[int]) -> tuple[tuple[float, float] | None, str]:
    """The range and what is said of it. The first part, with what is missing, and the last one have no end."""
    ends, (below, *inside) = edges(), counts
    total = sum(inside)
    if not total:
        return None, NOTHING_ELSE.format(end=ends[0]) if below else SHARE_TOO_SMALL
    if inside[-1] > TAIL_SHARE * total:
        return None, ABOVE.format(share=inside[-1] / total, end=ends[-1])
    share = below / (below + total)
    beyond = BELOW.format(share=share, end=ends[0]) if share > TAIL_SHARE else ""
    return covering(ends, inside), WARNING.format(tail=TAIL_SHARE, beyond=beyond)


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
