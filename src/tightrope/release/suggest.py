"""Suggested bounds: a range for a column, and a maximum number of rows, from noisy counts that are charged."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self, final

import numpy as np

from tightrope.documents.escaping import escape_control_chars
from tightrope.errors import PlanError, SchemaError
from tightrope.numerics.arrays import Floats
from tightrope.queries.column_query import column_term
from tightrope.queries.count import NOT_CLAMPED, RowCountQuery
from tightrope.queries.histogram import histogram
from tightrope.queries.intervals import sum_widths
from tightrope.queries.options import Given
from tightrope.queries.query_group import PrivacyUnit
from tightrope.queries.statistics import Noise
from tightrope.release.answers import Answers
from tightrope.tables.expressions.expression import facts_of, resolve_term
from tightrope.tables.expressions.tree import NUMBERS
from tightrope.tables.schema import Schema

DECADES = range(-3, 10)
TAIL_SHARE = 0.01
"""Approximate share of the counted values that may lie beyond each end of a suggested range."""
MOST_NOISE_STEPS = 50_000
WRONG = 0.05
"""Maximum probability that the stated shares are wrong."""
WARNING = (
    "estimated privately from the data, and charged to the budget. The ends are 1, 2 or 5 times a power of ten. "
    "{outside}{beyond}. Keep these bounds for later releases, because each new suggestion is charged. Bounds from "
    "public knowledge are better and cost nothing"
)
OUTSIDE = "At most {low:.1%} of the values are below them, and at most {high:.1%} above them (19 times in 20{more})"
NO_LIMIT = "The noise was too large to limit how many values are outside; use a larger budget fraction"
MORE = "; a larger budget fraction gives tighter limits"
BELOW = "; at most {share:.1%} of the rows have a value below {end:g}, or no value"
NOTHING_ELSE = "only values below {end:g}, or missing values, could be distinguished from the noise"
ABOVE = (
    "at least {share:.1%} of the values (19 times in 20) are {end:g} or more, beyond the range that is searched: use a "
    "larger unit"
)
SHARE_TOO_SMALL = "the budget fraction was too small for so few rows: no values could be distinguished from the noise"


@dataclass(frozen=True, slots=True)
class SuggestedBounds:
    """A suggested range for ``bounds``; None if the noise is too large. ``answers`` are the released counts."""

    column: str
    bounds: tuple[float, float] | None
    warning: str
    answers: Answers
    beyond: tuple[float, float] | None = None
    """Maximum shares of the values below the range, and at its upper end or above, with probability 95 %."""

    def __str__(self) -> str:
        name = escape_control_chars(self.column)
        return f"{name}: {self.warning}" if self.bounds is None else f"{name} between {self.bounds}: {self.warning}"


def decimal_edges() -> tuple[float, ...]:
    """Return 1, 2 and 5 times the powers of ten, on both sides of zero."""
    positive = [digit * 10.0**power for power in DECADES for digit in (1, 2, 5)]
    return (*(-edge for edge in reversed(positive)), 0.0, *positive)


def bounds_question(column: Given, where: Given | None, schema: Schema) -> histogram:
    """Return a histogram over the whole axis, which costs as much as one count; ``SchemaError`` unless numeric."""
    term = resolve_term(column_term("column", column), schema)
    if (kind := facts_of(term, schema).kind) not in NUMBERS:
        raise SchemaError.from_text("column", f"{term} must be numeric, but it is {kind}; cast it, or declare its type")
    return histogram(column, edges=decimal_edges(), where=where, name="where the values lie")


def suggested_bounds(question: histogram, answers: Answers, noise: Noise) -> SuggestedBounds:
    """Return the range of bins that are significantly nonempty, without ``TAIL_SHARE`` of their values on each side."""
    (answer,) = answers
    counts = [int(row["value"]) for row in answer.rows]
    reach = noise.half_width(1 - TAIL_SHARE / len(counts))
    column, sums = str(question.term), NoiseSumBounds.from_noise(noise)
    # Only bins whose count exceeds the reach determine the range; the stated shares use all bins. The first bin has
    # no lower end and counts missing values, too; the last one has no upper end.
    ends, (below, *inside) = decimal_edges(), counts
    seen = [count if count > reach else 0 for count in inside]
    total = sum(seen)
    if not total:
        warning = NOTHING_ELSE.format(end=ends[0]) if below > reach else SHARE_TOO_SMALL
        return SuggestedBounds(column, None, warning, answers)
    if seen[-1] > TAIL_SHARE * total:
        share, _ = sums.share_bounds(inside[-1:], inside[:-1])
        return SuggestedBounds(column, None, ABOVE.format(share=share, end=ends[-1]), answers)
    low, high = _range_positions(seen)
    outside = sums.share_bounds(inside[:low], inside[low:])[1], sums.share_bounds(inside[high:], inside[:high])[1]
    share = sums.share_bounds([below], inside)[1] if below > reach else 0.0
    beyond = BELOW.format(share=share, end=ends[0]) if share > TAIL_SHARE else ""
    more = MORE if max(outside) > 2 * TAIL_SHARE else ""
    most = _rounded_up_share(outside[0]), _rounded_up_share(outside[1])
    limits = OUTSIDE if min(most) < 1 else NO_LIMIT
    warning = WARNING.format(outside=limits.format(low=most[0], high=most[1], more=more), beyond=beyond)
    return SuggestedBounds(column, (ends[low], ends[high]), warning, answers, most)


@dataclass(frozen=True, slots=True)
class NoiseSumBounds:
    """Chernoff bounds on sums of independent noise of one distribution, from its log moments.

    ``slopes``: θ > 0. ``logs``: log E exp(θX).
    """

    slopes: Floats
    logs: Floats

    @classmethod
    def from_noise(cls, noise: Noise) -> Self:
        """Return the bounds for the sampled integer noise (symmetric); long tables are bounded from above in steps."""
        tails, deviation = noise.noise_tails, math.sqrt(noise.noise_mechanism.mean_squared_error)
        slopes = np.geomspace(1e-3, 10.0, 60) / max(deviation, 1e-3)
        last = math.ceil(tails.factor * (len(tails.table) + 1))
        step = max(1, math.ceil(last / MOST_NOISE_STEPS))
        x = np.arange(0, last, step, dtype=np.float64)
        beyond = 2 * tails.tail_probability(x)
        with np.errstate(over="ignore", invalid="ignore"):
            moments = [1 + float(np.sum(beyond * (np.cosh(s * (x + step)) - np.cosh(s * x)))) for s in slopes]
        known = np.isfinite(moments)
        return cls(slopes[known], np.log(np.array(moments)[known]))

    def upper_quantile(self, terms: int, chance: float) -> float:
        """Return a bound that a sum of ``terms`` noises exceeds with at most this probability; so does its negative."""
        return float(np.min((terms * self.logs - math.log(chance)) / self.slopes)) if terms else 0.0

    def share_bounds(self, part: Sequence[int], rest: Sequence[int]) -> tuple[float, float]:
        """Return the smallest and the largest share of a part in the total, from noisy counts of part and rest.

        It holds simultaneously for all splits of an axis in two, so also for one that was chosen by these counts.
        """
        chance = WRONG / (8 * (len(part) + len(rest)))
        ends = [
            (max(0.0, sum(own) - reach), max(0.0, sum(own) + reach))
            for own in (part, rest)
            for reach in [self.upper_quantile(len(own), chance)]
        ]
        (least, most), (others_least, others_most) = ends
        return (
            least / (least + others_most) if least > 0 else 0.0,
            most / (most + others_least) if most > 0 else 0.0,
        )


def _rounded_up_share(share: float) -> float:
    """Return a share rounded up to a tenth of a percent, for display."""
    return min(1.0, math.ceil(share * 1000) / 1000)


def covering_range(ends: Sequence[float], counts: Sequence[int]) -> tuple[float, float] | None:
    """Return the narrowest range of edges with at most ``TAIL_SHARE`` of the counts (of [edge, next)) on each side.

    >>> covering_range([0, 1, 2, 5], [0, 1, 989, 10]), covering_range([0, 1], [0, 0])
    ((2, 5), None)
    """
    if not sum(counts):
        return None
    low, high = _range_positions(counts)
    return ends[low], ends[min(high, len(ends) - 1)]


def _range_positions(counts: Sequence[int]) -> tuple[int, int]:
    """Return the indexes of the edges of that range."""
    allowed = TAIL_SHARE * sum(counts)
    return _skippable_parts(counts, allowed), len(counts) - _skippable_parts(counts[::-1], allowed)


def _skippable_parts(counts: Sequence[int], allowed: float) -> int:
    """Return the number of bins at the beginning with at most ``allowed`` counts in total."""
    gone = 0
    for place, count in enumerate(counts):
        gone += count
        if gone > allowed:
            return place
    return len(counts)


# The distribution of the number of rows per person, and a bound derived from it.

BOUNDS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024)
STEPS_OF_BOUNDS = (1, *(bound + 1 for bound in BOUNDS))
"""Smallest number of rows in each step; the persons of a step have at most its bound in ``BOUNDS``."""
ENOUGH = 0.9
"""Minimum share of persons with all their rows used under a suggested bound, with probability ``SURE``."""
SURE = 0.95
ROWS_OF_PERSON_WARNING = (
    "under it all rows of at least {percent} % of the people are used, with probability 95 % over the noise. Estimated "
    "privately from the data, and charged to the budget. The noise is about proportional to the bound: half of it may "
    "be a better choice. Keep the bound for later releases"
)
UNKNOWN = (
    f"no bound up to {BOUNDS[-1]:,} can be confirmed to keep all rows of {ENOUGH:.0%} of the people; use a larger "
    "budget fraction"
)


@final
@dataclass(frozen=True, slots=True)
class RowsPerUnitQuery(RowCountQuery):
    """Count persons by their number of rows; each person is in one group."""

    kind = "rows_of_person"
    meaning = "The number of people with this many rows, or more, up to the next number"
    additive = True
    notes = (NOT_CLAMPED,)

    def __post_init__(self) -> None:
        found = self.check_options("rows of a person")
        self._set_fields(asked=replace(found, by=("rows",), keys=tuple((step,) for step in STEPS_OF_BOUNDS)))

    def __str__(self) -> str:
        return f"number of persons by how many rows they have{self.asked.rows_that_count}"

    @property
    def row_count_steps(self) -> tuple[int, ...]:
        """The smallest number of rows of each group."""
        return STEPS_OF_BOUNDS


@dataclass(frozen=True, slots=True)
class SuggestedRows:
    """A suggested bound on the rows of a person; None if the noise is too large or the largest step too small."""

    max_rows: int | None
    warning: str
    answers: Answers
    at_least: float | None = None
    """Minimum share of persons with at most ``max_rows`` rows, with probability 95 % over the noise."""

    def __str__(self) -> str:
        said = self.warning
        return said if self.max_rows is None else f"max_rows = {self.max_rows}: {said}"


def rows_question(where: Given | None) -> RowsPerUnitQuery:
    """Return the question that counts persons by their number of rows."""
    return RowsPerUnitQuery(where=where)


def refuse_each_row(person: PrivacyUnit) -> None:
    """Raise ``PlanError`` if each row is a person."""
    if person.column is None:
        raise PlanError.from_text("privacy_unit", "each row is a person, so each person has one row")


def suggested_rows(answers: Answers, noise: Noise) -> SuggestedRows:
    """Return the smallest bound under which at least ``ENOUGH`` of the persons have all their rows used.

    With probability ``SURE`` over the noise the lower ends of all bounds hold at once, including the chosen one's.
    """
    (answer,) = answers
    counts = [int(row["value"]) for row in answer.rows]
    widths = sum_widths(noise.noise_tails, len(counts), (1 - SURE) / (2 * len(BOUNDS)))
    for bound, share in zip(BOUNDS, least_shares(counts, widths), strict=True):
        if share >= ENOUGH:
            percent = math.floor(100 * share)
            return SuggestedRows(bound, ROWS_OF_PERSON_WARNING.format(percent=percent), answers, percent / 100)
    return SuggestedRows(None, UNKNOWN, answers)


def least_shares(counts: Sequence[int], widths: Floats) -> Floats:
    """Return, for each step but the last, the minimum share of persons at it or before it; shape [n − 1].

    ``widths``: the maximum error of a sum of noises, by their number. All counts are used, even those within their
    noise, because many small steps together could be a large part of all persons.

    >>> least_shares([50, 45, 5], np.zeros(4)).tolist(), least_shares([9, 3], np.array([0, 3.0, 3.0])).tolist()
    ([0.5, 0.95], [0.5])
    """
    sums, numbers = np.cumsum(counts, dtype=float), np.arange(1, len(counts))
    within = np.maximum.accumulate(np.maximum(sums[:-1] - widths[numbers], 0.0))
    beyond = np.minimum.accumulate(np.maximum(sums[-1] - sums[:-1] + widths[len(counts) - numbers], 0.0))
    return np.where(within > 0, within / np.maximum(within + beyond, 1.0), 0.0)
