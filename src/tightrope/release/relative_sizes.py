"""Relative noise sizes of a plan's questions: with equal weights, each error is the same multiple of its error alone.

What a question needs alone is the size of the noise with which it would meet the plan's whole budget by itself. The
formula for it is the smaller of two: Laplace noise, whose losses add up, and Gaussian noise, whose squares do. It only
sets the relative sizes: the noise itself is searched and certified with them. Sizes are rounded by at most 2 % to
multiples 1/n of one size, n integers, so that all losses share one lattice.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from scipy.special import ndtri

from tightrope.accounting.distributions.gaussian import gaussian_mu
from tightrope.documents.budget import Budget
from tightrope.documents.escaping import escape_control_chars
from tightrope.errors import PlanError
from tightrope.noise.families import NORMAL_DEVIATION_RATIO
from tightrope.noise.worst_split import CompositionGroup, nearest_eighths
from tightrope.queries.query import Query
from tightrope.queries.query_group import QueryGroup
from tightrope.queries.statistics import NoisyStatistic

if TYPE_CHECKING:
    from tightrope.release.draft import NoisePlan

MAX_WEIGHT_RATIO = 1000
"""The largest ratio of two weights in a plan."""
SIZE_TOLERANCE, MAX_DENOMINATOR = 0.02, 25
"""Relative tolerance of noise sizes, and the largest integer that the largest size is divided by."""
EQUAL_NEEDS = 1e-9
"""Needs that differ by less are equal."""


def with_even_errors(tasks: Sequence[QueryGroup], budget: Budget, *, coarse: bool = False) -> tuple[QueryGroup, ...]:
    """Return the tasks with relative noise sizes such that equal weights have equal errors relative to those alone.

    Weight w divides a question's relative error by √w. ``coarse``: sizes are the nearest ones in ``EIGHTHS``. Raises
    ``PlanError`` if the ratio of two weights exceeds ``MAX_WEIGHT_RATIO``.
    """
    weights = [question.asked.weight for task in tasks for question in task.ordered_queries]
    if not max(weights) <= MAX_WEIGHT_RATIO * min(weights):
        expected = f"at most {MAX_WEIGHT_RATIO} times the smallest weight of the plan, {min(weights):g}"
        remedy = f"with weights 1 and {MAX_WEIGHT_RATIO} errors already differ {math.sqrt(MAX_WEIGHT_RATIO):.0f}-fold"
        raise PlanError("weight", max(weights), expected, remedy)
    factors = _factors_by_query(tasks, budget)
    sizes_by_task = [_requested_sizes(task, factors) for task in tasks]
    sizes = sorted({size for sizes in sizes_by_task for size in sizes.values()})
    rounded = dict(zip(sizes, map(nearest_eighths, sizes) if coarse else commensurate_sizes(sizes), strict=True))
    return tuple(
        _with_sizes(task, {vector: rounded[size] for vector, size in requested.items()})
        for task, requested in zip(tasks, sizes_by_task, strict=True)
    )


def _factors_by_query(tasks: Sequence[QueryGroup], budget: Budget) -> dict[Query, float]:
    """Return the factor of the noise of each question: its need relative to the least one, divided by √weight."""
    questions = [(task, question) for task in tasks for question in task.ordered_queries]
    needs = [alone_size(_task_of_query(task, question).composition_groups, budget) for task, question in questions]
    least = min(needs)
    return {
        question: (1.0 if need <= least * (1 + EQUAL_NEEDS) else need / least) / math.sqrt(question.asked.weight)
        for (_, question), need in zip(questions, needs, strict=True)
    }


def alone_size(groups: Sequence[CompositionGroup], budget: Budget) -> float:
    """Return about the least common size of noise with which these groups alone meet the budget.

    >>> from tightrope.noise.worst_split import NoiseSpec, SplitBounds
    >>> count = CompositionGroup((NoiseSpec("count", 8, True),), SplitBounds(60, 60, 60))
    >>> alone_size([count], Budget(epsilon=1, delta=1e-6))
    60.0
    """
    added, squared = 0.0, 0.0
    for group in groups:
        bounds = group.split_bounds
        full, remainder = divmod(bounds.most_rows, bounds.largest_part)
        squared_rows = full * bounds.largest_part**2 + remainder**2
        # The errors of a box are those of its numbers, of which each has the requested size.
        added += bounds.most_rows * math.fsum(1 / spec.noise_size for spec in group.noise_specs)
        squared += squared_rows * math.fsum(1 / spec.noise_size**2 for spec in group.noise_specs)
    sizes = []
    for epsilon, delta in budget.rounded_points:
        candidates = [added / epsilon] if epsilon > 0 else []
        if delta > 0:
            mu = gaussian_mu(epsilon, delta) if epsilon > 0 else 2 * float(ndtri((1 + delta) / 2))
            candidates.append(math.sqrt(squared) / mu / NORMAL_DEVIATION_RATIO)
        sizes.append(min(candidates))
    return max(sizes)


def commensurate_sizes(sizes: Sequence[float]) -> list[int]:
    """Return the sizes in a common unit, as integers, within 2 % up to a common factor.

    In eighths if possible; otherwise the largest size is divided by integers.

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


def _task_of_query(task: QueryGroup, question: Query) -> QueryGroup:
    """Return the task as if it had only this question."""
    return replace(task, vectors_by_query=MappingProxyType({question: task.vectors_by_query[question]}))


def _requested_sizes(task: QueryGroup, factors: Mapping[Query, float]) -> dict[NoisyStatistic, float]:
    """Return the size of each vector: its own times the least factor of the questions that use it."""
    sizes: dict[NoisyStatistic, float] = {}
    for vector in task.noisy_statistics:
        users = [question for question, vectors in task.vectors_by_query.items() if vector in vectors.values()]
        sizes[vector] = vector.noise_spec.noise_size * min(factors[user] for user in users or task.ordered_queries)
    return sizes


def _with_sizes(task: QueryGroup, eighths: Mapping[NoisyStatistic, int]) -> QueryGroup:
    """Return the task with these relative sizes."""

    def with_size(vector: NoisyStatistic) -> NoisyStatistic:
        return replace(vector, noise_spec=replace(vector.noise_spec, eighths=eighths[vector]))

    vectors_by_query = {
        question: MappingProxyType({name: with_size(vector) for name, vector in vectors.items()})
        for question, vectors in task.vectors_by_query.items()
    }
    key_count = None if task.key_count is None else with_size(task.key_count)
    return replace(task, vectors_by_query=MappingProxyType(vectors_by_query), key_count=key_count)


# What each question would have alone, and what another weight would buy: estimates from the formula above.


def alone_lines(plan: NoisePlan) -> list[str]:
    """Return, for each of several questions, about its 95 % half-width alone, and with weight 4; empty for one."""
    accuracies = plan.query_accuracies
    if len(accuracies) < 2:
        return []
    multiples = {
        question.asked.name: _multiple_of_alone(plan, index, question)
        for index, task in enumerate(plan.tasks)
        for question in task.ordered_queries
    }
    inverse_sum = math.fsum(1 / multiple for multiple in multiples.values())
    lines = []
    for accuracy in accuracies:
        name, size = accuracy.question.asked.name, plan.sizes[min(2, len(plan.sizes) - 1)]
        half_width, multiple = accuracy.errors_at_size(size)["half_width_95"], multiples[accuracy.question.asked.name]
        if half_width is None:
            continue
        # Budgets add up like 1/multiple, or like its square for Gaussian noise: the cautious one of both for others.
        doubled = (inverse_sum + 1 / multiple) / inverse_sum
        at_size = "" if accuracy.uniform_error else f" with {size:,} rows"
        lines.append(
            f"{escape_control_chars(name)}{at_size}: ± {half_width:.3g}, alone it would be about ± "
            f"{half_width / multiple:.2g}; four times its weight: about ± {half_width * doubled / 2:.2g}, and the "
            f"errors of the others times {doubled:.2g} (estimates)."
        )
    return lines


def _multiple_of_alone(plan: NoisePlan, index: int, question: Query) -> float:
    """Return about how many times the noise of a question alone its noise in the plan is, at least 1."""
    task, noises = plan.tasks[index], {noise.vector: noise for noise in plan.noises_by_task[index]}
    vector = next(iter(task.vectors_by_query[question].values()))
    noise = noises[vector]
    alone = alone_size(_task_of_query(task, question).composition_groups, plan.budget) * vector.noise_spec.noise_size
    return max(1.0, float(noise.table.mean_absolute) / noise.steps_per_row / alone)
