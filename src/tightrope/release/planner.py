"""The planner: the noise for the questions of a plan, and how the budget is divided among them.

Rule 2 makes *relative* errors even: with equal weights, each error is the same multiple of the error that the question
would have as the only question of the plan. A closed formula estimates the noise that a question needs alone, for the
plan's whole budget: the smaller of Laplace noise (losses add up) and Gaussian noise (squares of losses add up). It only
sets the relative sizes of the noise; the noise itself is then searched and certified with these. Relative sizes are
rounded by at most 2 % to fractions 1/n of the largest, n an integer, so that all losses share one lattice.

Rule 3 also charges questions whose conditions exclude each other as one, if each row is a person: a row meets at most
one of the conditions (``with_alternatives``). Their noise sizes are reduced as far as that costs nothing. A sum uses
the statistics of a mean or variance of the same values.

Rule 1 gives all noise one size in rows, divided by √weight. Ledgers record it for releases older than rule 2.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property, lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from scipy.special import ndtri

from tightrope.accounting.distributions.gaussian import gaussian_mu
from tightrope.documents.budget import Budget, Number
from tightrope.errors import InputError, InsufficientBudgetError, PlanError
from tightrope.noise.allocation import MAX_NOISE_ROWS, NoiseAllocation, allocate_noise
from tightrope.noise.families import NORMAL_DEVIATION_RATIO
from tightrope.noise.worst_split import CompositionGroup, SplitBounds, by_alternative, largest_total, nearest_eighths
from tightrope.numerics.checks import check_integer
from tightrope.queries.accuracy import GROUP_SIZES, Accuracy
from tightrope.queries.comparisons import comparison
from tightrope.queries.options import MAX_WEIGHT
from tightrope.queries.query import Query
from tightrope.queries.query_group import QueryGroup, declared_bounds, group_queries, with_alternatives
from tightrope.queries.statistics import CONFIDENCE, NoisyStatistic
from tightrope.release.bias_check import add_diagnostic_counts
from tightrope.release.consistency import ConsistencyPlan, find_related_answers
from tightrope.release.draft import (
    NoisePlan,
    QueryGroups,
    allocate_best_arrangement,
    composition_groups_of,
    list_arrangements,
)
from tightrope.release.draft_search import accuracy_target, draft_by_moments, minimal_budget_for
from tightrope.release.settings import check_delta
from tightrope.tables.memory import check_row_memory

if TYPE_CHECKING:
    from tightrope.documents.privacy_unit import PrivacyUnit
    from tightrope.ledger import Limit
    from tightrope.queries.marginals.group import MarginalGroup, ResolvedMarginals
    from tightrope.tables import Table
    from tightrope.tables.expressions.expression import Term

ONE_SIZE_RULE, EVEN_ERRORS_RULE, SHARED_COST_RULE = 1, 2, 3
"""Numbers of the rules for relative noise sizes. Ledgers record them; entries without a number used rule 1."""
SIZE_TOLERANCE, MAX_DENOMINATOR = 0.02, 25
"""Relative tolerance of noise sizes, and the largest integer that the largest size is divided by."""
USUAL_SIZE = 2
"""Index, in ``GROUP_SIZES``, of the group size for which a plan states the error of a question alone."""
WEIGHT_STEP, NOTICEABLE_MULTIPLE = 4, 1.05
"""If an error is at least ``NOTICEABLE_MULTIPLE`` times the error alone, a plan states both, and the error for
``WEIGHT_STEP`` times the weight."""
EQUAL_SIZE_TOLERANCE = 1e-9
"""Relative difference up to which the noise sizes of two questions alone are equal."""
FINE_UNITS = 10**12
"""Sizes are compared before they are rounded, in this fraction of their unit."""
MAX_SIZE_RATIO = 8
"""The largest noise of a plan may have this many times ``MAX_NOISE_ROWS``: √64, for a weight of 1/64."""


@dataclass(frozen=True, eq=False)  # not slotted: for cached properties
class Planner:
    """Plans the least noise for questions about one table, within a fraction of a budget.

    If ``limit`` is given, releases compose under it by log moments of the privacy loss.
    """

    table: Table
    privacy_unit: PrivacyUnit
    questions: Sequence[Query]
    where: Term | None
    bias_check: Decimal
    whole_budget: Budget
    fraction: Decimal
    budget: Budget
    """The fraction of the whole budget, exactly."""
    limit: Limit | None = None
    comparisons: Sequence[comparison] = ()
    rule: int = SHARED_COST_RULE
    asks_marginals: bool = False
    """True if the questions are all tables of one ``marginals``."""

    def make_draft(
        self, margin_of_error: Mapping[str, Number | str] | None = None, expected_rows: int | None = None
    ) -> NoisePlan:
        """Return the draft with the least noise, or with the smallest budget that meets the margins of error."""
        arrangements, consistency = self.arrange_questions(self.budget)
        query_groups = arrangements[0]
        check_delta(self.budget, query_groups)
        comparisons = _check_comparisons(self.comparisons, query_groups) if self.comparisons else ()
        public_tables = self.table.public_tables_used_by([query_group.table_request for query_group in query_groups])
        goal = accuracy_target(self.questions, margin_of_error, expected_rows)
        sizes = GROUP_SIZES if expected_rows is None else (check_integer("expected_rows", expected_rows),)
        rule = self.rule_at(self.budget)

        def plan_by_previous_rule() -> NoisePlan:
            return replace(self, rule=rule - 1).make_draft(margin_of_error, expected_rows)

        def draft_for(allocation: NoiseAllocation, budget: Budget, fraction: Decimal) -> NoisePlan:
            return NoisePlan(
                query_groups,
                allocation,
                budget,
                fraction,
                self.privacy_unit,
                sizes,
                public_tables,
                self.bias_check,
                consistency,
                comparisons=comparisons,
                planner=self,
                planning_rule=rule,
                plan_by_previous_rule=None if rule == ONE_SIZE_RULE or self.asks_marginals else plan_by_previous_rule,
            )

        if self.limit is not None:
            return draft_by_moments(self.limit, query_groups, draft_for, self.fraction, goal)

        def draft_for_budget(
            budget: Budget, fraction: Decimal, *, compare: bool = True, like: NoisePlan | None = None
        ) -> NoisePlan:
            previous = None if like is None or self.asks_marginals else (like.query_groups, like.allocation)
            compare = compare and not self.asks_marginals  # families were compared for the choice of measurements
            chosen_groups, allocation = allocate_best_arrangement(arrangements, budget, compare=compare, like=previous)
            draft = draft_for(allocation, budget, fraction)
            return replace(draft, query_groups=chosen_groups, possible_arrangements=arrangements)

        if goal is None:
            return draft_for_budget(self.budget, self.fraction)
        return minimal_budget_for(draft_for_budget, goal, self.whole_budget, self.fraction)

    def rule_at(self, budget: Budget) -> int:
        """Return the lowest rule number that gives this plan the same relative noise sizes."""
        if self.rule == ONE_SIZE_RULE:
            return ONE_SIZE_RULE
        if self.asks_marginals:
            return EVEN_ERRORS_RULE
        previous, planned = replace(self, rule=self.rule - 1), self._sized_groups(budget)
        is_same = all(
            (one.noisy_statistics, one.alternative) == (other.noisy_statistics, other.alternative)
            for one, other in zip(previous._sized_groups(budget), planned, strict=True)
        )
        return previous.rule_at(budget) if is_same else self.rule

    def arrange_questions(self, budget: Budget) -> tuple[tuple[QueryGroups, ...], ConsistencyPlan]:
        """Return the possible arrangements of separate and joint noise, with bias check, and the related answers."""
        if self.asks_marginals:
            group = self._marginal_group(budget)
            check_row_memory(group.table_request, self.table.schema)
            return ((group,),), ConsistencyPlan()
        query_groups, schema = self._sized_groups(budget), self.table.schema
        consistency = find_related_answers(query_groups, schema)
        consistent_names = {name for answer_set in consistency.joined for name in answer_set.answers}
        arrangements = tuple(
            add_diagnostic_counts(arrangement, self.bias_check, schema)
            for arrangement in list_arrangements(query_groups, consistent_names)
        )
        for request in (query_group.table_request for arrangement in arrangements for query_group in arrangement):
            check_row_memory(request, schema)
        return arrangements, consistency

    @cached_property
    def _resolved_marginals(self) -> ResolvedMarginals:
        from tightrope.queries.marginals.group import ResolvedMarginals

        return ResolvedMarginals.from_tables(self.questions, self.table.schema, self.where)

    def _marginal_group(self, budget: Budget) -> MarginalGroup:
        """Return the group of all tables, with the measurements of the least noise."""
        if self.bias_check and self.privacy_unit.column is not None:
            remedy = "count rows and clamped values in a plan of their own, with a budget_fraction"
            raise PlanError("bias_check", float(self.bias_check), "0 with marginals", remedy)
        from tightrope.queries.marginals.group import MarginalGroup
        from tightrope.release.marginals import select_measurements

        resolved, rows = self._resolved_marginals, declared_bounds(self.privacy_unit).max_rows
        noise = select_measurements(resolved.workload, budget, rows)
        return MarginalGroup.from_noise(resolved, self.privacy_unit, self.table.schema, noise)

    @cached_property
    def _groups_of_one_size(self) -> tuple[QueryGroup, ...]:
        return group_queries(self.questions, self.privacy_unit, self.table.schema, self.where, weighted=True)

    def _sized_groups(self, budget: Budget) -> tuple[QueryGroup, ...]:
        if (
            self.rule == ONE_SIZE_RULE
            or sum(len(query_group.ordered_queries) for query_group in self._groups_of_one_size) == 1
        ):
            return self._groups_of_one_size
        may_share = any(type(question).share_statistics != Query.share_statistics for question in self.questions)
        if self.rule < SHARED_COST_RULE or not may_share:
            return self._even_groups(budget, shares_sums=False)
        plain, shared = (self._even_groups(budget, shares_sums=is_shared) for is_shared in (False, True))
        # Sums use the statistics of means if no answer gets less accurate.
        scales, plain_scales = _error_scales(shared, budget), _error_scales(plain, budget)
        is_better = all(scales[name] <= plain_scales[name] * (1 + SIZE_TOLERANCE) for name in scales)
        return shared if is_better else plain

    def _even_groups(self, budget: Budget, *, shares_sums: bool) -> tuple[QueryGroup, ...]:
        """Return the questions by group, with even relative errors."""
        schema = self.table.schema
        groups = group_queries(
            self.questions, self.privacy_unit, schema, self.where, weighted=False, shares_sums=shares_sums
        )
        if self.rule >= SHARED_COST_RULE and len({query_group.where for query_group in groups}) > 1:
            groups = with_alternatives(groups, schema)
        return with_even_errors(groups, budget)

    def compare_with_alone(self, plan: NoisePlan) -> list[dict[str, Any] | None]:
        """Return the half-width of each question alone and with a larger weight; None where it hardly differs."""
        if len(self.questions) == 1:
            return [None]
        if self.asks_marginals:
            return [self._table_alone(accuracy, plan.budget) for accuracy in plan.query_accuracies]
        rows = plan.sizes[min(USUAL_SIZE, len(plan.sizes) - 1)]
        both = [
            (accuracy, self._accuracy_alone(question, plan))
            for accuracy, question in zip(plan.query_accuracies, self.questions, strict=True)
        ]
        multiples = [math.inf if alone is None else noise_multiple(accuracy, alone) for accuracy, alone in both]
        parts: list[dict[str, Any] | None] = []
        for (accuracy, alone), multiple in zip(both, multiples, strict=True):
            width, width_alone = half_width_at(accuracy, rows), half_width_at(alone, rows)
            if width is None or width_alone is None or not NOTICEABLE_MULTIPLE <= multiple < math.inf:
                parts.append(None)
                continue
            weight = min(WEIGHT_STEP * accuracy.question.asked.weight, MAX_WEIGHT)
            ratio = math.sqrt(weight / accuracy.question.asked.weight)
            other_errors_factor = _factor_of_other_errors(multiples, multiple, ratio)
            parts.append(
                {
                    "rows": None if accuracy.question.uniform else rows,
                    "half_width_95": width,
                    "alone": width_alone,
                    "weight": weight,
                    "weighted": min(width, width_alone * multiple * other_errors_factor / ratio),
                    "others_times": other_errors_factor,
                }
            )
        return parts

    def _accuracy_alone(self, question: Query, plan: NoisePlan) -> Accuracy | None:
        """Return the errors of one question by itself, with a plan's budget; None if it cannot be planned alone."""
        planner = replace(self, questions=[question], rule=ONE_SIZE_RULE)
        try:
            arrangements, consistency = planner.arrange_questions(plan.budget)
            groups = tuple(tuple(composition_groups_of(query_groups)) for query_groups in arrangements)
            index, allocation = _allocation_alone(groups, plan.budget)
        except (InputError, InsufficientBudgetError):
            return None
        alone = replace(plan, query_groups=arrangements[index], allocation=allocation, sums=consistency)
        return alone.query_accuracies[0]

    def _table_alone(self, accuracy: Accuracy, budget: Budget) -> dict[str, Any] | None:
        """Return the half-width of one table of several, and that of counts of its cells with the whole budget."""
        from tightrope.release.marginals import alone_group

        group = alone_group(declared_bounds(self.privacy_unit).max_rows, len(accuracy.question.asked.keys or ((),)))
        try:
            _, allocation = _allocation_alone(((group,),), budget)
        except (InputError, InsufficientBudgetError):
            return None
        ((selected,),) = allocation.selections
        width, alone = accuracy.errors_at_size(1)["half_width_95"], float(selected.scalar_table.half_width(CONFIDENCE))
        weight = accuracy.question.asked.weight
        same = {"weight": weight, "weighted": width, "others_times": 1.0}  # a larger weight is not considered
        return {"rows": None, "half_width_95": width, "alone": alone, **same}


def noise_multiple(accuracy: Accuracy, alone: Accuracy) -> float:
    """Return how many times as large the first noise of a question in a plan is as that of the question alone."""
    noise, noise_alone = accuracy.own_noises[0], alone.own_noises[0]
    return noise.mean_absolute / noise_alone.mean_absolute if noise_alone.mean_absolute > 0 else math.inf


def half_width_at(accuracy: Accuracy | None, rows: int) -> float | None:
    """Return the half-width of an answer about this many rows; None if it is not known."""
    return None if accuracy is None else accuracy.errors_at_size(rows)["half_width_95"]


def _factor_of_other_errors(multiples: Sequence[float], multiple: float, ratio: float) -> float:
    """Return the factor by which the other errors grow if one question becomes ``ratio`` times as accurate.

    The inverse multiples add up to about 1 for Laplace noise, and their squares do for Gaussian noise. The factor is
    computed for the one whose sum is closer to 1.
    """
    added, squared = (math.fsum(one**-power for one in multiples) for power in (1, 2))
    power = 1 if abs(math.log(added)) <= abs(math.log(squared)) else 2
    total = added if power == 1 else squared
    return float(((total + (ratio**power - 1) * multiple**-power) / total) ** (1 / power))


@lru_cache(maxsize=64)
def _allocation_alone(
    arrangements: tuple[tuple[CompositionGroup, ...], ...], budget: Budget
) -> tuple[int, NoiseAllocation]:
    """Return the index of the arrangement with the smallest error, and its noise; other families are not compared."""
    allocations = [allocate_noise(groups, budget, compare=False) for groups in arrangements]
    return min(enumerate(allocations), key=lambda pair: pair[1].total_error)


# Relative sizes.


def with_even_errors(query_groups: Sequence[QueryGroup], budget: Budget) -> tuple[QueryGroup, ...]:
    """Return the query groups with relative noise sizes by rule 2; the given ones must have no weights applied.

    Weight w divides a question's relative error by √w. Raises ``InsufficientBudgetError`` if noise would be useless.
    """
    questions = [(query_group, question) for query_group in query_groups for question in query_group.ordered_queries]
    sizes_alone = [
        alone_size(
            # the query group with this question alone
            replace(
                query_group, vectors_by_query=MappingProxyType({question: query_group.vectors_by_query[question]})
            ).composition_groups,
            budget,
        )
        for query_group, question in questions
    ]
    least_size_alone = min(sizes_alone)
    factors = {
        question: (
            1.0 if size_alone <= least_size_alone * (1 + EQUAL_SIZE_TOLERANCE) else size_alone / least_size_alone
        )
        / math.sqrt(question.asked.weight)
        for (_, question), size_alone in zip(questions, sizes_alone, strict=True)
    }
    # The size of a statistic is its default size times the smallest factor of its questions.
    sizes_by_query_group: list[dict[NoisyStatistic, float]] = [{} for _ in query_groups]
    for query_group, requested in zip(query_groups, sizes_by_query_group, strict=True):
        for vector in query_group.noisy_statistics:
            users = [
                question for question, vectors in query_group.vectors_by_query.items() if vector in vectors.values()
            ]
            least_factor = min(factors[user] for user in users or query_group.ordered_queries)
            requested[vector] = vector.noise_spec.noise_size * least_factor
    if any(query_group.alternative is not None for query_group in query_groups):
        sizes_by_query_group = _with_free_accuracy(query_groups, sizes_by_query_group, budget)
    sizes = sorted({size for sizes in sizes_by_query_group for size in sizes.values()})
    rounded = dict(zip(sizes, commensurate_sizes(sizes), strict=True))
    sized = tuple(
        _with_sizes(query_group, {vector: rounded[size] for vector, size in requested.items()})
        for query_group, requested in zip(query_groups, sizes_by_query_group, strict=True)
    )
    _refuse_useless_noise(sized, budget)
    return sized


def _error_scales(query_groups: Sequence[QueryGroup], budget: Budget) -> dict[str, float]:
    """Return numbers in proportion to the error of each question, by its name."""
    common_size = alone_size(composition_groups_of(query_groups), budget)
    pairs = (pair for query_group in query_groups for pair in query_group.vectors_by_query.items())
    return {question.asked.name: common_size * question.error_scale(vectors) for question, vectors in pairs}


def alone_size(groups: Sequence[CompositionGroup], budget: Budget) -> float:
    """Return an estimate of the least common noise size with which these groups, and no others, meet the budget.

    >>> from tightrope.noise.worst_split import NoiseSpec, SplitBounds
    >>> count = CompositionGroup((NoiseSpec("count", 8, True),), SplitBounds(60, 60, 60))
    >>> alone_size([count], Budget(epsilon=1, delta=1e-6))
    60.0
    """
    sums, sums_of_squares = [], []
    for group in groups:
        bounds = group.split_bounds
        full, remainder = divmod(bounds.most_rows, bounds.largest_part)
        squared_rows = full * bounds.largest_part**2 + remainder**2
        # Joint noise (a box) makes no difference here: the error of each of its numbers has the requested size.
        sums.append(bounds.most_rows * math.fsum(1 / spec.noise_size for spec in group.noise_specs))
        sums_of_squares.append(squared_rows * math.fsum(1 / spec.noise_size**2 for spec in group.noise_specs))
    added, squared = (largest_total(groups, amounts) for amounts in (sums, sums_of_squares))
    sizes = []
    for epsilon, delta in budget.rounded_points:
        candidates = [added / epsilon] if epsilon > 0 else []
        if delta > 0:
            mu = gaussian_mu(epsilon, delta) if epsilon > 0 else 2 * float(ndtri((1 + delta) / 2))
            candidates.append(math.sqrt(squared) / mu / NORMAL_DEVIATION_RATIO)
        sizes.append(min(candidates))
    return max(sizes)


def commensurate_sizes(sizes: Sequence[float]) -> list[int]:
    """Return integers whose ratios are those of the sizes, each within 2 %.

    If possible, the sizes in eighths. Otherwise each size is about the largest one times d/n with a fixed d and an
    integer n, its divisor; d is the smallest integer for which all are within 2 %. The result is the least common
    multiple of the divisors, divided by each.

    >>> commensurate_sizes([0.5, 1.0]), commensurate_sizes([1.0, 60.0]), commensurate_sizes([0.1, 0.3162, 1.0])
    ([4, 8], [1, 60], [8, 25, 80])
    """
    eighths = [nearest_eighths(size) for size in sizes]
    if all(abs(math.log(8 * size / unit)) <= SIZE_TOLERANCE for size, unit in zip(sizes, eighths, strict=True)):
        return eighths
    ratios = [max(sizes) / size for size in sizes]
    for denominator in range(1, MAX_DENOMINATOR + 1):
        divisors = [round(denominator * ratio) for ratio in ratios]
        if all(
            abs(divisor / (denominator * ratio) - 1) <= SIZE_TOLERANCE
            for divisor, ratio in zip(divisors, ratios, strict=True)
        ):
            break
    common = math.lcm(*divisors)
    return [common // divisor for divisor in divisors]


def _with_free_accuracy(
    query_groups: Sequence[QueryGroup], sizes_by_query_group: Sequence[dict[NoisyStatistic, float]], budget: Budget
) -> list[dict[NoisyStatistic, float]]:
    """Return smaller sizes for the query groups of a set of alternatives that need less than the set's largest member.

    The set costs as much as its largest member in any case, so that this accuracy is free.
    """
    placeholders = [
        CompositionGroup((), SplitBounds(1, 1, 1), alternative=query_group.alternative) for query_group in query_groups
    ]
    scaled = list(sizes_by_query_group)
    for members in by_alternative(placeholders, range(len(query_groups))):
        sizes_alone = []
        for positions in members:
            groups = [
                group
                for position in positions
                for group in _with_sizes(
                    query_groups[position], {v: math.ceil(FINE_UNITS * size) for v, size in scaled[position].items()}
                ).composition_groups
            ]
            sizes_alone.append(alone_size(groups, budget))
        for positions, size_alone in zip(members, sizes_alone, strict=True):
            ratio = size_alone / max(sizes_alone)
            for position in positions if ratio < 1 - EQUAL_SIZE_TOLERANCE else ():
                scaled[position] = {vector: size * ratio for vector, size in scaled[position].items()}
    return scaled


def _with_sizes(query_group: QueryGroup, eighths: Mapping[NoisyStatistic, int]) -> QueryGroup:
    """Return the query group with these relative noise sizes, in eighths."""
    sized = {
        vector: replace(vector, noise_spec=replace(vector.noise_spec, eighths=size)) for vector, size in eighths.items()
    }
    vectors_by_query = {
        question: MappingProxyType({name: sized[vector] for name, vector in vectors.items()})
        for question, vectors in query_group.vectors_by_query.items()
    }
    key_count = None if query_group.key_count is None else sized[query_group.key_count]
    return replace(query_group, vectors_by_query=MappingProxyType(vectors_by_query), key_count=key_count)


def _refuse_useless_noise(query_groups: Sequence[QueryGroup], budget: Budget) -> None:
    """Raise ``InsufficientBudgetError`` if the largest noise would need too long a probability table."""
    groups = composition_groups_of(query_groups)
    largest = max(spec.noise_size for group in groups for spec in group.noise_specs)
    rows = alone_size(groups, budget) * largest
    if not rows <= MAX_SIZE_RATIO * MAX_NOISE_ROWS:
        raise InsufficientBudgetError(
            f"{budget} needs noise of about {rows:.3g} rows in an answer; raise {budget.asked[0]}, ask fewer "
            "questions, or use fewer rows of each person"
        )


def _check_comparisons(comparisons: Sequence[comparison], query_groups: QueryGroups) -> tuple[comparison, ...]:
    """Return the comparisons; raises ``PlanError`` if the answers cannot be compared, or a name is repeated."""
    queries = [question for query_group in query_groups for question in query_group.ordered_queries]
    if not isinstance(comparisons, (list, tuple)) or not all(isinstance(one, comparison) for one in comparisons):
        expected = "a list of comparisons such as tr.comparison('difference', 'a', 'b')"
        raise PlanError("comparisons", type(comparisons).__name__, expected)
    for index, compared in enumerate(comparisons):
        compared.check_answers(queries)
        if any(compared.name == other.name for other in comparisons[:index]):
            raise PlanError("name", compared.name, "a different name for each comparison", "give one of them another")
    return tuple(comparisons)
