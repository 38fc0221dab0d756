"""The bias check: noisy counts of rows with and without the bound, values beyond each end, and missing fields."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from types import MappingProxyType
from typing import Any, Literal

from tightrope.documents.budget import Number, exact_decimal
from tightrope.documents.escaping import escape_control_chars
from tightrope.documents.numbers import INSTANT_UNIT, time_text
from tightrope.documents.privacy_unit import PrivacyUnit
from tightrope.documents.release import BiasPart
from tightrope.documents.wording import share_text
from tightrope.errors import InputError, PlanError
from tightrope.noise.worst_split import NoiseSpec, largest_total, linear_losses
from tightrope.queries.column_query import format_range_end
from tightrope.queries.query_group import QueryGroup
from tightrope.queries.statistics import Noise, NoisyStatistic
from tightrope.tables.expressions.conditions import Case, Compare, Missing, Not
from tightrope.tables.expressions.expression import Term
from tightrope.tables.expressions.leaves import ColumnRef, to_literal
from tightrope.tables.expressions.times import time_of_days
from tightrope.tables.expressions.tree import ExpressionTree
from tightrope.tables.request import ContributionBounds, Measure
from tightrope.tables.schema import Schema

CountedRows = Literal["used", "all", "below", "above", "missing"]
MANY_TIMES = 16
"""The count of all rows uses this many times the contribution bound: it is nearly unbounded, but needs a bound, too."""
MAX_BUDGET_FRACTION = Decimal("0.5")
"""The bias check takes less than this fraction of the budget."""
NOISE_EIGHTHS = tuple(sorted({factor * 2**power for power in range(3, 12) for factor in (2, 3)}))
"""Possible noise sizes of the tallies, relative to usual noise, in eighths.

They share a lattice, and larger ones would lengthen all tables of noise.
"""
ALL_ROWS_WEIGHT = 4
"""Weight of the count of all rows in the split of the budget; the other tallies have weight 1."""
ColumnRange = tuple[float, float] | None


@dataclass(frozen=True, slots=True)
class DiagnosticCount:
    """Definition of a *tally*, a count over all groups together; counts of rows have no ``column``."""

    counted_rows: CountedRows
    column: Term | None
    limits: ColumnRange

    def counted_expression(self, schema: Schema) -> ExpressionTree | None:
        """Return an expression that has a value in exactly the rows to count, and is missing in the others.

        Booleans are compared as the numbers 0 and 1, as in a sum.
        """
        if self.column is None:
            return None
        expression = self.column if isinstance(self.column, ExpressionTree) else ColumnRef(self.column)
        if self.counted_rows == "missing" or self.limits is None:
            return Case((Missing(expression),), (to_literal(1), None))
        if expression.infer_column_facts(schema).kind == "boolean":
            expression = Case((expression, Not(expression)), (to_literal(1), to_literal(0), None))
        operator, limit = ("<", self.limits[0]) if self.counted_rows == "below" else (">", self.limits[1])
        return Case((Compare(operator, expression, to_literal(float(limit))),), (to_literal(1), None))

    def moved_values_text(self) -> str:
        """Return a clause about the values that a tally of a column counts, in words."""
        time = time_of_days(self.column)
        column = escape_control_chars(str(self.column if time is None else time))
        if self.counted_rows == "missing" or self.limits is None:
            return f"the fields of {column} were missing or did not fit its type"
        limit = self.limits[0] if self.counted_rows == "below" else self.limits[1]
        end = format_range_end(limit) if time is None else time_text(limit, INSTANT_UNIT).removesuffix(" 00:00:00")
        return f"the values of {column} were {self.counted_rows} {end} and clamped to {end}"


def add_diagnostic_counts(query_groups: Sequence[QueryGroup], part: Decimal, schema: Schema) -> tuple[QueryGroup, ...]:
    """Return the query groups with tallies whose privacy loss is at most the fraction ``part`` of the budget's.

    A tally is one integer over all groups. A person adds to it at most the rows that remain after bounding:
    ``max_rows``, or ``MANY_TIMES`` times as many if all are counted. If that is one row, it is in only one tally
    of each column. Raises ``PlanError`` if the part is too small for the number of tallies.
    """
    if not part:
        return tuple(query_groups)
    # The privacy loss of one person's rows, up to a factor that all groups share.
    question_groups = [group for query_group in query_groups for group in query_group.composition_groups]
    loss_of_questions = largest_total(question_groups, linear_losses(question_groups))
    all_query_groups = [
        *query_groups,
        *{
            rows_key(unbounded): unbounded for unbounded in map(without_row_bounds, bounded_query_groups(query_groups))
        }.values(),
    ]
    # Scale the noise of the tallies to their fraction; the count of all rows, which has the most noise, gets more.
    groups_with_tallies = _merge_diagnostics(all_query_groups, schema)
    loss_of_tallies = loss_of_questions * float(part / (1 - part))
    total_weight = largest_total(
        [group for query_group in groups_with_tallies for group in query_group.composition_groups],
        [
            _noise_weight(vector_set) if vector_set[0].over_all_groups else 0
            for query_group in groups_with_tallies
            for vector_set in query_group.composition_sets
        ],
    )
    return tuple(_with_noise_sizes(query_group, total_weight / loss_of_tallies) for query_group in groups_with_tallies)


def bounded_query_groups(query_groups: Sequence[QueryGroup]) -> list[QueryGroup]:
    """Return the query groups in which bounding may leave out rows of a person."""
    return [
        query_group
        for query_group in query_groups
        if query_group.bounds.person_column is not None and not query_group.counts_persons
    ]


def bias_check_fraction(costs: Number) -> Decimal:
    """Return the fraction of the budget for the bias check; raises ``InputError`` unless it is in [0, 0.5)."""
    fraction = exact_decimal("bias_check", costs)
    if not 0 <= fraction < MAX_BUDGET_FRACTION:
        raise InputError("bias_check", costs, f"from 0 (no bias check) to below {MAX_BUDGET_FRACTION}", "0.02 is usual")
    return fraction


def diagnostic_counts_of(query_group: QueryGroup) -> tuple[DiagnosticCount, ...]:
    """Return the tallies that a query group needs: its used rows and, by column, clamped and missing values."""
    if not query_group.vectors_by_query or query_group.counts_persons:
        return ()
    tallies = [] if query_group.bounds.person_column is None else [DiagnosticCount("used", None, None)]
    ranges = dict.fromkeys(pair for question in query_group.ordered_queries for pair in question.clamped_columns)
    for term, limits in ranges:
        if limits is not None:
            tallies += [DiagnosticCount("below", term, limits), DiagnosticCount("above", term, limits)]
        if query_group.cells_per_group is None:  # rows without a value are in no cell
            tallies.append(DiagnosticCount("missing", term, limits))
    return tuple(tallies)


def _merge_diagnostics(query_groups: Sequence[QueryGroup], schema: Schema) -> list[QueryGroup]:
    """Return the query groups with tallies; a tally of several groups is only in the first, with all questions."""
    questions_by_tally: dict[object, list[str]] = {}
    for query_group in query_groups:
        for tally in diagnostic_counts_of(query_group):
            # The questions that the tally is about: for a tally of a column, those with that column and range.
            column_and_range = (tally.column, tally.limits)
            questions_by_tally.setdefault(diagnostic_position(tally, query_group), []).extend(
                [
                    question.asked.name
                    for question in query_group.ordered_queries
                    if tally.column is None or column_and_range in question.clamped_columns
                ]
            )
    unassigned, merged = dict(questions_by_tally), []
    for query_group in query_groups:
        own_tallies = [
            (tally, unassigned.pop(position))
            for tally in diagnostic_counts_of(query_group)
            if (position := diagnostic_position(tally, query_group)) in unassigned
        ]
        vectors = tuple(
            _diagnostic_statistic(tally, query_group.bounds.max_rows, tally.counted_expression(schema))
            for tally, _ in own_tallies
        )
        names = {
            vector.statistic_name: tuple(questions) for vector, (_, questions) in zip(vectors, own_tallies, strict=True)
        }
        merged.append(
            replace(
                query_group,
                diagnostic_counts=(*query_group.diagnostic_counts, *vectors),
                queries_by_diagnostic={**query_group.queries_by_diagnostic, **names},
            )
        )
    return merged


def diagnostic_position(tally: DiagnosticCount, query_group: QueryGroup) -> object:
    """Return a key that is equal for tallies of the same rows; cells of the values make no difference."""
    if tally.column is None:
        return tally, used_rows_key(query_group)
    # The listed groups; without a list, every row is in a group.
    listed_groups: object = None
    by = query_group.by if query_group.cells_per_group is None else query_group.by[:-1]
    if query_group.keys is not None and by:
        keys = (
            query_group.keys
            if query_group.cells_per_group is None
            else tuple(dict.fromkeys(key[:-1] for key in query_group.keys))
        )
        listed_groups = by, keys
    return tally, (query_group.where, _row_sampling_key(query_group), listed_groups)


def used_rows_key(query_group: QueryGroup) -> object:
    """Return a key that is equal for query groups that use the same rows: the rows available and the rows sampled."""
    return rows_key(without_row_bounds(query_group)), _row_sampling_key(query_group)


def _row_sampling_key(query_group: QueryGroup) -> object:
    """Return a key for the sampling of a person's rows; it includes the groups if their bounds are the tighter ones."""
    bounds = query_group.bounds
    by_group = bounds.max_rows_per_group < bounds.max_rows or (
        bool(query_group.by) and bounds.max_groups < bounds.max_rows
    )
    return bounds.max_rows, (query_group.by, bounds) if by_group else None


def without_row_bounds(query_group: QueryGroup) -> QueryGroup:
    """Return a query group that counts all rows of the same groups, with a bound ``MANY_TIMES`` as large."""
    max_rows = query_group.bounds.max_rows * MANY_TIMES
    has_listed_groups = query_group.keys is not None and bool(query_group.by)
    by, keys, cells_per_group = (
        (query_group.by, query_group.keys, query_group.cells_per_group) if has_listed_groups else ((), ((),), None)
    )
    bounds = ContributionBounds(
        query_group.bounds.person_column, max_rows, max_rows, max_rows if has_listed_groups else 1
    )
    vector = _diagnostic_statistic(DiagnosticCount("all", None, None), max_rows, None)
    queries_by_diagnostic = {
        vector.statistic_name: tuple(question.asked.name for question in query_group.ordered_queries)
    }
    return QueryGroup(
        MappingProxyType({}),
        by,
        keys,
        bounds,
        query_group.where,
        cells_per_group,
        None,
        diagnostic_counts=(vector,),
        queries_by_diagnostic=queries_by_diagnostic,
    )


def rows_key(query_group: QueryGroup) -> object:
    """Return a key that is equal for query groups whose counts of all rows are over the same rows."""
    return query_group.by, query_group.keys, query_group.where, query_group.bounds


def _diagnostic_statistic(tally: DiagnosticCount, rows: int, expression: ExpressionTree | None) -> NoisyStatistic:
    """Return the noisy vector of a tally; a person adds at most ``rows`` to it.

    If a person has one row, it is in one tally of each column, and the tallies of a column share the noise of one.
    """
    column = "" if tally.column is None else f" of {escape_control_chars(str(tally.column))}"
    noise_spec = NoiseSpec(f"rows, {tally.counted_rows}{column}, over all groups", NOISE_EIGHTHS[-1], True)
    composes_alone = tally.column is None or rows > 1
    label = diagnostic_name(tally) if composes_alone else f"values {_column_and_end(tally)}"
    return NoisyStatistic(
        Measure(diagnostic_name(tally), expression, None), noise_spec, rows, disjoint_set=label, over_all_groups=True
    )


def diagnostic_name(tally: DiagnosticCount) -> str:
    """Return the name of the tally's vector."""
    return tally.counted_rows if tally.column is None else f"{tally.counted_rows} {_column_and_end(tally)}"


def _column_and_end(tally: DiagnosticCount) -> str:
    """Return a unique digest of the column and its ends: different columns may have the same displayed text."""
    return hashlib.sha256(repr((tally.column, tally.limits)).encode()).hexdigest()[:32]


def _noise_weight(vector_set: Sequence[NoisyStatistic]) -> int:
    return ALL_ROWS_WEIGHT if vector_set[0].statistic_name == diagnostic_name(DiagnosticCount("all", None, None)) else 1


def _with_noise_sizes(query_group: QueryGroup, size: float) -> QueryGroup:
    """Return the query group with the noise of each tally at the next larger of ``NOISE_EIGHTHS``.

    ``size``: the relative noise size of a tally of weight 1. Raises ``PlanError`` if all of them are too small.
    """
    tallies = []
    for vector in query_group.diagnostic_counts:
        smallest_eighths = 8 * size / _noise_weight((vector,))
        eighths = next((size for size in NOISE_EIGHTHS if size >= smallest_eighths), None)
        if eighths is None:
            times = 10 * smallest_eighths / NOISE_EIGHTHS[-1]
            more = f"{math.ceil(times) / 10:g} times as much" if math.isfinite(times) else "0.02"
            text = f"too small for this many questions; use {more}, or ask fewer questions"
            raise PlanError.from_text("bias_check", text)
        tallies.append(replace(vector, noise_spec=replace(vector.noise_spec, eighths=eighths)))
    return replace(query_group, diagnostic_counts=tuple(tallies))


# The bias of bounding and clamping, estimated from noisy counts: shares with intervals, and sentences.

MISS_PROBABILITY = 0.025
"""Each of the two counts in a share is outside its interval with at most this probability."""
MAX_END_RATIO = 3
"""A count is significant if the upper end of its interval is at most this many times the lower end."""
KIND_BY_COUNTED_ROWS: Mapping[CountedRows, Literal["left out", "below", "above", "missing"]] = {
    "used": "left out", "all": "left out", "below": "below", "above": "above", "missing": "missing",
}  # fmt: skip
NoisyCounts = Mapping[NoisyStatistic, int]
"""Noisy counts over all groups."""


@dataclass(frozen=True, slots=True)
class NoisyCount:
    """A noisy count with the ends of its interval."""

    value: int
    lower: int
    upper: int


def estimate_bias(
    query_groups: Sequence[QueryGroup],
    noises: Sequence[Sequence[Noise]],
    counts: Sequence[NoisyCounts],
    privacy_unit: PrivacyUnit,
) -> tuple[BiasPart, ...]:
    """Return a statement per query group and tally: the share of rows left out, values clamped, or fields missing."""
    counted_query_groups = []
    for query_group, query_group_noises, counts_of_query_group in zip(query_groups, noises, counts, strict=True):
        noisy_counts = [
            (noise, counts_of_query_group[noise.vector])
            for noise in query_group_noises
            if noise.vector in counts_of_query_group
        ]
        counts_by_name = {
            noise.vector.statistic_name: NoisyCount(value, *noise.confidence_interval(value, MISS_PROBABILITY))
            for noise, value in noisy_counts
        }
        if counts_by_name:
            counted_query_groups.append((query_group, counts_by_name))
    totals = {
        rows_key(query_group): counts_by_name["all"]
        for query_group, counts_by_name in counted_query_groups
        if "all" in counts_by_name
    }
    used = {
        used_rows_key(query_group): (query_group, counts_by_name["used"])
        for query_group, counts_by_name in counted_query_groups
        if "used" in counts_by_name
    }
    rows = {
        key: (count, totals[rows_key(without_row_bounds(query_group))]) for key, (query_group, count) in used.items()
    }
    question_groups = (
        (query_group, counts_by_name)
        for query_group, counts_by_name in counted_query_groups
        if "all" not in counts_by_name
    )
    return tuple(
        part
        for query_group, counts_by_name in question_groups
        for part in _query_group_bias(query_group, counts_by_name, rows, privacy_unit)
    )


RowCounts = Mapping[object, tuple[NoisyCount, NoisyCount]]
"""The number of rows used and the number of all rows, by the key of ``used_rows_key``."""


def _query_group_bias(
    query_group: QueryGroup, counts_by_name: Mapping[str, NoisyCount], rows: RowCounts, privacy_unit: PrivacyUnit
) -> Iterator[BiasPart]:
    used_and_all = None if query_group.bounds.person_column is None else rows.get(used_rows_key(query_group))
    if used_and_all is not None and "used" in counts_by_name:
        shares = _share_with_interval(*used_and_all)
        left_out_shares = None if shares is None else (1 - shares[0], 1 - shares[2], 1 - shares[1])
        max_rows, noun = query_group.bounds.max_rows, privacy_unit.unit_noun
        subject = (
            f"the rows were not used, because at most {max_rows:,} per {noun} are; rows beyond "
            f"{max_rows * MANY_TIMES:,} per {noun}, and rows without a valid {noun} id, are not counted here"
        )
        yield _bias_part(query_group, DiagnosticCount("used", None, None), left_out_shares, subject)
    for tally in diagnostic_counts_of(query_group):
        if tally.column is not None and diagnostic_name(tally) in counts_by_name:
            count = counts_by_name[diagnostic_name(tally)]
            share = None if used_and_all is None else _share_with_interval(count, used_and_all[0])
            share_is_unknown = used_and_all is not None and share is None
            yield _bias_part(query_group, tally, share, tally.moved_values_text(), None if share_is_unknown else count)


Shares = tuple[float, float, float]
"""A count divided by a larger one: the value, and the lower and upper end of its interval."""


def _share_with_interval(part: NoisyCount, whole: NoisyCount) -> Shares | None:
    """Return the share of a part with its interval; None if the whole is not significantly above the noise.

    An interval is never narrower than the noise: if it lies beyond 0 or 1, it reaches from there as far inwards.
    """
    if whole.lower < 1 or whole.upper > MAX_END_RATIO * whole.lower:
        return None
    noise = (part.upper - part.lower) / 2 / whole.lower
    lower, upper = min(part.lower / whole.upper, 1 - noise), max(part.upper / whole.lower, noise)
    value, lower, upper = (min(max(end, 0.0), 1.0) for end in (part.value / whole.value, lower, upper))
    return value, lower, upper


def _bias_part(
    query_group: QueryGroup,
    tally: DiagnosticCount,
    shares: Shares | None,
    subject: str,
    noisy_count: NoisyCount | None = None,
) -> BiasPart:
    value, lower, upper = (None, None, None) if shares is None else shares
    return BiasPart(
        answers=query_group.queries_by_diagnostic[diagnostic_name(tally)],
        kind=KIND_BY_COUNTED_ROWS[tally.counted_rows],
        column=None if tally.column is None else str(tally.column),
        share=value,
        lower=lower,
        upper=upper,
        statement=_share_statement(shares, subject, noisy_count),
    )


def _share_statement(shares: Shares | None, subject: str, noisy_count: NoisyCount | None) -> str:
    """Return the share with its interval in words; without a share, the count; empty if the noise is too large.

    >>> _share_statement((0.03, 0.024, 0.036), "it", None), _share_statement(None, "it", None)
    ('about 3.0 % of it (2.4 % to 3.6 %)', '')
    """
    if shares is not None:
        return share_text(*shares, subject)
    if noisy_count is None:
        return ""
    if noisy_count.lower <= 0:
        noise = (noisy_count.upper - noisy_count.lower + 1) // 2
        return f"at most {max(noisy_count.upper, noise, 1):,} of {subject}"
    return f"about {noisy_count.value:,} of {subject} ({noisy_count.lower:,} to {noisy_count.upper:,})"


# The planned bias check, before anything is spent.


def planned_bias_check(
    query_groups: Sequence[QueryGroup], noises: Sequence[Sequence[Noise]], part: Decimal
) -> dict[str, Any] | None:
    """Return the fraction ``part`` of the budget and the half-width of every tally; None without a bias check."""
    if not part:
        return None
    noises_by_query_group = zip(query_groups, noises, strict=True)
    tally_noises = [
        (query_group, noise)
        for query_group, noises_of_query_group in noises_by_query_group
        for noise in noises_of_query_group
        if noise.vector in query_group.diagnostic_counts
    ]
    counts = [
        {
            "answers": query_group.answered_by(noise.vector),
            "statistic": noise.vector.noise_spec.statistic,
            "half_width_95": noise.half_width(),
        }
        for query_group, noise in tally_noises
    ]
    return {"budget_fraction": str(part), "counts": counts}
