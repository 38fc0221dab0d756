"""Suggested bounds: a range for a column, and a maximum number of rows, from noisy counts that are charged."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self, final

import numpy as np

from tightrope.documents.escaping import escape_control_chars
from tightrope.documents.privacy_unit import PrivacyUnit
from tightrope.errors import PlanError, SchemaError
from tightrope.numerics.arrays import Floats
from tightrope.queries.column_query import column_term
from tightrope.queries.count import NOT_CLAMPED_NOTE, RowCountQuery
from tightrope.queries.histogram import histogram
from tightrope.queries.intervals import sum_widths
from tightrope.queries.options import Given
from tightrope.queries.statistics import Noise
from tightrope.release.answers import Answers
from tightrope.tables.expressions.expression import facts_of, resolve_term
from tightrope.tables.expressions.tree import NUMBERS
from tightrope.tables.schema import Schema

POWERS_OF_TEN = range(-3, 10)
"""The exponents of the edges that are searched."""
OUTSIDE_SHARE = 0.01
"""Approximate share of the counted values that may lie beyond each end of a suggested range."""
MAX_NOISE_STEPS = 50_000
"""Maximum number of steps in which a noise distribution is bounded."""
ERROR_PROBABILITY = 0.05
"""Maximum probability that a stated share is wrong."""
BOUNDS_WARNING = (
    "estimated privately from the data, and charged to the budget. The ends are 1, 2 or 5 times a power of ten. "
    "{outside}{beyond}. Keep these bounds for later releases, because each new suggestion is charged. Bounds from "
    "public knowledge are better and cost nothing"
)
OUTSIDE_TEXT = (
    "At most {low:.1%} of the values are below them, and at most {high:.1%} above them (19 times in 20{more})"
)
NO_LIMIT_TEXT = "The noise was too large to limit how many values are outside; use a larger budget fraction"
TIGHTER_LIMITS_TEXT = "; a larger budget fraction gives tighter limits"
BELOW_TEXT = "; at most {share:.1%} of the rows have a value below {end:g}, or no value"
ONLY_BELOW_TEXT = "only values below {end:g}, or missing values, could be distinguished from the noise"
ABOVE_TEXT = (
    "at least {share:.1%} of the values (19 times in 20) are {end:g} or more, beyond the range that is searched: use a "
    "larger unit"
)
TOO_NOISY_TEXT = "the budget fraction was too small for so few rows: no values could be distinguished from the noise"


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
    """Return the edges of the bins: 0, and ± 1, 2 and 5 times the powers of ten, in order."""
    positive_edges = [digit * 10.0**power for power in POWERS_OF_TEN for digit in (1, 2, 5)]
    return (*(-edge for edge in reversed(positive_edges)), 0.0, *positive_edges)


def bounds_question(column: Given, where: Given | None, schema: Schema) -> histogram:
    """Return a histogram over the whole axis, with the budget of one count; raises ``SchemaError`` unless numeric."""
    term = resolve_term(column_term("column", column), schema)
    if (kind := facts_of(term, schema).kind) not in NUMBERS:
        text = f"{str(term)!r} must be numeric, but it is {kind}; cast it, or declare its type"
        raise SchemaError.from_text("column", text)
    return histogram(column, edges=decimal_edges(), where=where, name="where the values lie")


def suggested_bounds(question: histogram, answers: Answers, noise: Noise) -> SuggestedBounds:
    """Return the range of the bins with significant counts, less ``OUTSIDE_SHARE`` of their values on each side."""
    (answer,) = answers
    counts = [int(row["value"]) for row in answer.rows]
    largest_noise = noise.half_width(1 - OUTSIDE_SHARE / len(counts))
    column, noise_sums = str(question.term), NoiseSumBounds.from_noise(noise)
    # Only bins whose count exceeds the largest likely noise determine the range; the stated shares use all bins. The
    # first bin has no lower end and also counts missing values; the last one has no upper end.
    edges, (below_count, *counts_inside) = decimal_edges(), counts
    significant_counts = [count if count > largest_noise else 0 for count in counts_inside]
    total = sum(significant_counts)
    if not total:
        warning = ONLY_BELOW_TEXT.format(end=edges[0]) if below_count > largest_noise else TOO_NOISY_TEXT
        return SuggestedBounds(column, None, warning, answers)
    if significant_counts[-1] > OUTSIDE_SHARE * total:
        share, _ = noise_sums.share_bounds(counts_inside[-1:], counts_inside[:-1])
        return SuggestedBounds(column, None, ABOVE_TEXT.format(share=share, end=edges[-1]), answers)
    low, high = _range_edge_indexes(significant_counts)
    outside_shares = (
        noise_sums.share_bounds(counts_inside[:low], counts_inside[low:])[1],
        noise_sums.share_bounds(counts_inside[high:], counts_inside[:high])[1],
    )
    share = noise_sums.share_bounds([below_count], counts_inside)[1] if below_count > largest_noise else 0.0
    below_text = BELOW_TEXT.format(share=share, end=edges[0]) if share > OUTSIDE_SHARE else ""
    tighter_limits = TIGHTER_LIMITS_TEXT if max(outside_shares) > 2 * OUTSIDE_SHARE else ""
    largest_shares = _round_up_share(outside_shares[0]), _round_up_share(outside_shares[1])
    limits_text = OUTSIDE_TEXT if min(largest_shares) < 1 else NO_LIMIT_TEXT
    warning = BOUNDS_WARNING.format(
        outside=limits_text.format(low=largest_shares[0], high=largest_shares[1], more=tighter_limits),
        beyond=below_text,
    )
    return SuggestedBounds(column, (edges[low], edges[high]), warning, answers, largest_shares)


@dataclass(frozen=True, slots=True)
class NoiseSumBounds:
    """Chernoff bounds on sums of independent noise of one distribution, from its log moments.

    ``slopes``: θ > 0. ``log_moments``: log E exp(θX).
    """

    slopes: Floats
    log_moments: Floats

    @classmethod
    def from_noise(cls, noise: Noise) -> Self:
        """Return the bounds for the sampled integer noise, which is symmetric; long tables are bounded in steps."""
        tails, deviation = noise.noise_tails, math.sqrt(noise.noise_mechanism.mean_squared_error)
        slopes = np.geomspace(1e-3, 10.0, 60) / max(deviation, 1e-3)
        end = math.ceil(tails.factor * (len(tails.table) + 1))
        step = max(1, math.ceil(end / MAX_NOISE_STEPS))
        x = np.arange(0, end, step, dtype=np.float64)
        two_sided_tail = 2 * tails.tail_probability(x)
        with np.errstate(over="ignore", invalid="ignore"):
            moments = [1 + float(np.sum(two_sided_tail * (np.cosh(s * (x + step)) - np.cosh(s * x)))) for s in slopes]
        is_finite = np.isfinite(moments)
        return cls(slopes[is_finite], np.log(np.array(moments)[is_finite]))

    def upper_quantile(self, terms: int, chance: float) -> float:
        """Return a bound that a sum of ``terms`` noises exceeds with at most this probability, and so does minus it."""
        return float(np.min((terms * self.log_moments - math.log(chance)) / self.slopes)) if terms else 0.0

    def share_bounds(self, part: Sequence[int], rest: Sequence[int]) -> tuple[float, float]:
        """Return the smallest and the largest share of a part in the total, from noisy counts of part and rest.

        It holds simultaneously for all splits of an axis in two, so also for one that was chosen by these counts.
        """
        chance = ERROR_PROBABILITY / (8 * (len(part) + len(rest)))
        intervals = [
            (max(0.0, sum(counts) - largest_noise), max(0.0, sum(counts) + largest_noise))
            for counts in (part, rest)
            for largest_noise in [self.upper_quantile(len(counts), chance)]
        ]
        (part_low, part_high), (rest_low, rest_high) = intervals
        return (
            part_low / (part_low + rest_high) if part_low > 0 else 0.0,
            part_high / (part_high + rest_low) if part_high > 0 else 0.0,
        )


def _round_up_share(share: float) -> float:
    """Return a share rounded up to a tenth of a percent, for display."""
    return min(1.0, math.ceil(share * 1000) / 1000)


def covering_range(ends: Sequence[float], counts: Sequence[int]) -> tuple[float, float] | None:
    """Return the narrowest range of edges with at most ``OUTSIDE_SHARE`` of the counts (of [edge, next)) on each side.

    >>> covering_range([0, 1, 2, 5], [0, 1, 989, 10]), covering_range([0, 1], [0, 0])
    ((2, 5), None)
    """
    if not sum(counts):
        return None
    low, high = _range_edge_indexes(counts)
    return ends[low], ends[min(high, len(ends) - 1)]


def _range_edge_indexes(counts: Sequence[int]) -> tuple[int, int]:
    """Return the indexes of the two edges of ``covering_range``."""
    allowed = OUTSIDE_SHARE * sum(counts)
    return _count_skippable_bins(counts, allowed), len(counts) - _count_skippable_bins(counts[::-1], allowed)


def _count_skippable_bins(counts: Sequence[int], allowed: float) -> int:
    """Return the number of bins at the beginning with at most ``allowed`` counts in total."""
    total = 0
    for index, count in enumerate(counts):
        total += count
        if total > allowed:
            return index
    return len(counts)


CANDIDATE_BOUNDS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024)
ROW_COUNT_STEPS = (1, *(bound + 1 for bound in CANDIDATE_BOUNDS))
"""Smallest number of rows in each step; the persons of a step have at most its bound in ``CANDIDATE_BOUNDS``."""
SUFFICIENT_SHARE = 0.9
"""Minimum share of persons with all their rows used under a suggested bound, with probability ``CONFIDENCE``."""
CONFIDENCE = 0.95
ROWS_WARNING = (
    "under it all rows of at least {percent} % of the people are used, with probability 95 % over the noise. Estimated "
    "privately from the data, and charged to the budget. The noise is about proportional to the bound: half of it may "
    "be a better choice. Keep the bound for later releases"
)
NO_BOUND_TEXT = (
    f"no bound up to {CANDIDATE_BOUNDS[-1]:,} can be confirmed to keep all rows of {SUFFICIENT_SHARE:.0%} of the "
    "people; use a larger budget fraction"
)


@final
@dataclass(frozen=True, slots=True)
class RowsPerUnitQuery(RowCountQuery):
    """Count persons by their number of rows; each person is in one group."""

    kind = "rows_of_person"
    meaning = "The number of people with this many rows, or more, up to the next number"
    additive = True
    row_count_steps = ROW_COUNT_STEPS
    notes = (NOT_CLAMPED_NOTE,)

    def __post_init__(self) -> None:
        options = self.check_options("rows of a person")
        self._set_fields(asked=replace(options, by=("rows",), keys=tuple((step,) for step in ROW_COUNT_STEPS)))

    def __str__(self) -> str:
        return f"number of persons by how many rows they have{self.asked.rows_that_count}"


@dataclass(frozen=True, slots=True)
class SuggestedRows:
    """A suggested bound on the rows of a person; None if the noise is too large or the largest step too small."""

    max_rows: int | None
    warning: str
    answers: Answers
    at_least: float | None = None
    """Minimum share of persons with at most ``max_rows`` rows, with probability 95 % over the noise."""

    def __str__(self) -> str:
        warning = self.warning
        return warning if self.max_rows is None else f"max_rows = {self.max_rows}: {warning}"


def rows_question(where: Given | None) -> RowsPerUnitQuery:
    """Return the question that counts persons by their number of rows."""
    return RowsPerUnitQuery(where=where)


def refuse_each_row(person: PrivacyUnit) -> None:
    """Raise ``PlanError`` if each row is a person."""
    if person.column is None:
        raise PlanError.from_text("privacy_unit", "each row is a person, so each person has one row")


def suggested_rows(answers: Answers, noise: Noise) -> SuggestedRows:
    """Return the smallest bound under which at least ``SUFFICIENT_SHARE`` of the persons have all their rows used.

    With probability ``CONFIDENCE`` over the noise, the minimum shares of all bounds hold at once.
    """
    (answer,) = answers
    counts = [int(row["value"]) for row in answer.rows]
    widths = sum_widths(noise.noise_tails, len(counts), (1 - CONFIDENCE) / (2 * len(CANDIDATE_BOUNDS)))
    for bound, share in zip(CANDIDATE_BOUNDS, minimum_shares(counts, widths), strict=True):
        if share >= SUFFICIENT_SHARE:
            percent = math.floor(100 * share)
            return SuggestedRows(bound, ROWS_WARNING.format(percent=percent), answers, percent / 100)
    return SuggestedRows(None, NO_BOUND_TEXT, answers)


def minimum_shares(counts: Sequence[int], widths: Floats) -> Floats:
    """Return, for each step but the last, the minimum share of persons at it or before it; shape [n − 1].

    ``widths``: the maximum error of a sum of noises, by their number. All counts are used, even those within their
    noise, because many small steps together could be a large part of all persons.

    >>> minimum_shares([50, 45, 5], np.zeros(4)).tolist(), minimum_shares([9, 3], np.array([0, 3.0, 3.0])).tolist()
    ([0.5, 0.95], [0.5])
    """
    sums, step_numbers = np.cumsum(counts, dtype=float), np.arange(1, len(counts))
    at_most_step = np.maximum.accumulate(np.maximum(sums[:-1] - widths[step_numbers], 0.0))
    above_step = np.minimum.accumulate(np.maximum(sums[-1] - sums[:-1] + widths[len(counts) - step_numbers], 0.0))
    return np.where(at_most_step > 0, at_most_step / np.maximum(at_most_step + above_step, 1.0), 0.0)
