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
from tightrope.tables.expressions.expression import resolve_term, term_facts
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
    if (kind := term_facts(term, schema).kind) not in NUMBERS:
        text = f"{str(term)!r} must be numeric, but it is {kind}; say number(...), or declare its type"
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

    def weighted_quantile(self, weights: Floats, chance: float) -> float:
        """Return a bound that Σ wᵢXᵢ exceeds with at most this probability, and so does minus it; wᵢ ≥ 0.

        Log moments are convex, so interpolating them linearly rounds up; beyond the largest slope they count as ∞.
        """
        if not np.any(weights > 0):
            return 0.0
        slopes = self.slopes / np.max(weights)
        knots, moments = np.append(0.0, self.slopes), np.append(0.0, self.log_moments)
        sums = np.interp(slopes[:, None] * weights, knots, moments, right=math.inf).sum(axis=1)
        return float(np.min((sums - math.log(chance)) / slopes))

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
"""Estimated share of persons with all their rows used under a suggested bound."""
CONFIRMED_SHARE = 0.5
"""Minimum of that share with probability ``CONFIDENCE``; with less, the noise is too large for a suggestion.

A bound is not raised until 90 % are certain: in a table of 3,000 people with 10 rows or fewer, that took a bound of 512
where 8 was enough, and noise is proportional to the bound.
"""
CONFIDENCE = 0.95
ROWS_WARNING = (
    "it keeps all rows of about 90 % of the people; with probability 95 % over the noise, of at least {percent} %. "
    "This was estimated privately from the data, and charged to the budget. The noise of answers is about "
    "proportional to max_rows, so half of it may be a better choice. Use the same max_rows in later releases"
)
NO_BOUND_TEXT = (
    f"no bound up to {CANDIDATE_BOUNDS[-1]:,} seems to keep all rows of {SUFFICIENT_SHARE:.0%} of the people, or the "
    "noise is too large to tell; use a larger budget fraction"
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
        return f"number of persons by how many rows they have{self.asked.without_groups(self.asked.by).groups_text}"


@dataclass(frozen=True, slots=True)
class TableSize:
    """Limits on the size of a table; all hold together with probability ``CONFIDENCE`` over the noise.

    A limit is None if there is none: the rows of a person are unlimited unless a maximum is declared.
    """

    persons: tuple[int, int]
    rows: tuple[int, int | None]
    """Rows of all persons: those with a privacy unit that match the condition."""
    left_out: tuple[float, float | None] | None
    """The share of these rows that a bound leaves out; None without a bound."""

    def __str__(self) -> str:
        (few, many), (least, most) = self.persons, self.rows
        people = f"{few:,} to {many:,} people" if few < many else f"{few:,} people"
        rows = f"at least {least:,} rows" if most is None else f"{least:,} to {most:,} rows"
        left_out = "" if self.left_out is None else f"; with this max_rows, {left_out_text(*self.left_out)}"
        unlimited = f". There is no upper limit on rows, because {NO_MAXIMUM_TEXT}" if most is None else ""
        return f"With probability 95 %, the table has {rows}, of {people}{left_out}{unlimited}"


NO_MAXIMUM_TEXT = "no largest number of rows of a person is declared (largest_rows, or --largest-rows)"


def left_out_text(least: float, most: float | None) -> str:
    """Return the limits on the share of rows that are left out, rounded outwards to a tenth of a percent.

    >>> left_out_text(0.1239, 0.1301), left_out_text(0.0, 0.0)
    ('12.3 % to 13.1 % of the rows are left out of every answer', 'every row is used')
    >>> left_out_text(0.0001, None)
    'an unknown part of the rows is left out of every answer'
    """
    if most == 0:
        return "every row is used"
    low, high = math.floor(1000 * least) / 10, None if most is None else math.ceil(1000 * most) / 10
    if low > 0:
        share = f"at least {low:g} %" if high is None else f"{low:g} % to {high:g} %"
        return f"{share} of the rows are left out of every answer"
    if high is None or high >= 100:
        return "an unknown part of the rows is left out of every answer"
    return f"at most {high:g} % of the rows are left out of every answer"


@dataclass(frozen=True, slots=True)
class SuggestedRows:
    """A suggested bound on the rows of a person; None if the noise is too large or the largest step too small."""

    max_rows: int | None
    warning: str
    answers: Answers
    size: TableSize
    """Limits on the size of the table, and on the share of its rows that the bound leaves out."""
    at_least: float | None = None
    """Minimum share of persons with at most ``max_rows`` rows, with probability 95 % over the noise."""

    def __str__(self) -> str:
        warning = self.warning
        bound = warning if self.max_rows is None else f"max_rows = {self.max_rows}: {warning}"
        return f"{bound}. {self.size}"


def rows_question(where: Given | None) -> RowsPerUnitQuery:
    """Return the question that counts persons by their number of rows."""
    return RowsPerUnitQuery(where=where)


def refuse_each_row(privacy_unit: PrivacyUnit) -> None:
    """Raise ``PlanError`` if each row is a person."""
    if privacy_unit.column is None:
        raise PlanError.from_text("privacy_unit", "each row is a person, so each person has one row")


def suggested_rows(answers: Answers, noise: Noise, largest_rows: int | None = None) -> SuggestedRows:
    """Return the smallest bound under which about ``SUFFICIENT_SHARE`` of the persons have all their rows used.

    With probability ``CONFIDENCE`` over the noise, the minimum shares of all bounds hold at once; so do the limits on
    the size. ``largest_rows``: the declared maximum number of rows of a person.
    """
    (answer,) = answers
    # Steps above the declared maximum are empty. Counts within their noise do not move the bound, but are part of all
    # limits: together they could be many persons.
    counts = [
        int(row["value"])
        for row, step in zip(answer.rows, ROW_COUNT_STEPS, strict=True)
        if largest_rows is None or step <= largest_rows
    ]
    likely_noise = noise.half_width(1 - NEGLIGIBLE_CHANCE)
    sums = np.cumsum([count if count > likely_noise else 0 for count in counts])
    widths = sum_widths(noise.noise_tails, len(counts), (1 - CONFIDENCE) / (2 * len(CANDIDATE_BOUNDS)))
    shares = [*minimum_shares(counts, widths), 1.0] if largest_rows is not None else minimum_shares(counts, widths)
    for bound, sum_to_bound, share in zip(CANDIDATE_BOUNDS, sums, shares, strict=False):
        if share >= CONFIRMED_SHARE and sum_to_bound >= max(SUFFICIENT_SHARE * sums[-1], 1):
            percent, max_rows = math.floor(100 * share), min(bound, largest_rows or bound)
            size = table_size(counts, noise, max_rows, largest_rows)
            return SuggestedRows(max_rows, ROWS_WARNING.format(percent=percent), answers, size, percent / 100)
    return SuggestedRows(None, NO_BOUND_TEXT, answers, table_size(counts, noise, None, largest_rows))


NEGLIGIBLE_CHANCE = 0.1
"""Counts that noise exceeds in absolute value with at least this probability do not move a suggested bound."""
STATEMENTS = 6
"""The number of statements about the size of a table: two about persons, two about rows, two about those left out."""


def table_size(counts: Sequence[int], noise: Noise, bound: int | None, largest_rows: int | None) -> TableSize:
    """Return limits on the size of a table from noisy counts of persons by their number of rows, in the first steps.

    The numbers nᵢ of persons are at least 0, and a person of step i has between aᵢ and bᵢ rows. So Σ wᵢnᵢ is a lower
    limit on the rows for all 0 ≤ wᵢ ≤ aᵢ, and Σ bᵢnᵢ an upper limit if the last bᵢ is declared. Sums are estimated with
    independent noise (Chernoff bounds). Several w are tried, and the bound may be chosen by the same counts: the error
    probability is divided by all that could be used.
    """
    noisy, sums = np.array(counts, dtype=float), NoiseSumBounds.from_noise(noise)
    smallest = np.array(ROW_COUNT_STEPS, dtype=float)
    largest = np.append(np.array(CANDIDATE_BOUNDS, dtype=float), math.inf)
    smallest, largest = smallest[: len(counts)], largest[: len(counts)]
    if largest_rows is not None:
        largest = np.minimum(largest, largest_rows)
    chance = (1 - CONFIDENCE) / STATEMENTS

    def lower_limit(weights: Floats, tries: int = 1) -> float:
        return max(0.0, float(weights @ noisy) - sums.weighted_quantile(weights, chance / tries))

    def upper_limit(weights: Floats, tries: int = 1) -> float:
        return max(0.0, float(weights @ noisy) + sums.weighted_quantile(weights, chance / tries))

    def best_lower_limit(weights: Floats, tries: int = 1) -> float:
        # Large weights amplify the noise: they are cut at every value, or set to 0 beyond it.
        limits = [
            lower_limit(tried, 2 * len(weights) * tries)
            for cut in weights
            for tried in (np.minimum(weights, cut), np.where(weights <= cut, weights, 0.0))
        ]
        return max(limits)

    one_each = np.ones(len(noisy))
    persons = math.ceil(lower_limit(one_each)), math.floor(upper_limit(one_each))
    least_rows = max(persons[0], math.ceil(best_lower_limit(smallest)))
    rows = least_rows, None if largest_rows is None else max(least_rows, math.floor(upper_limit(largest)))
    if bound is None:
        return TableSize(persons, rows, None)
    # The bound is one of several, for each of which two limits are needed at either end.
    tries = 2 * len(CANDIDATE_BOUNDS)
    used_high = upper_limit(np.minimum(largest, bound), tries)
    left_out_low = best_lower_limit(np.maximum(smallest - bound, 0.0), tries)
    least_share = left_out_low / (left_out_low + used_high) if left_out_low > 0 else 0.0
    if largest_rows is None:
        return TableSize(persons, rows, (least_share, None))
    used_low = best_lower_limit(np.minimum(smallest, bound), tries)
    left_out_high = upper_limit(np.maximum(largest - bound, 0.0), tries)
    most_share = left_out_high / (left_out_high + used_low) if left_out_high > 0 else 0.0
    return TableSize(persons, rows, (least_share, most_share))


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
