"""Search for the smallest budget that meets an accuracy target; the result always meets it.

A *size* is the amount of budget of a draft: a fraction of the session's budget, or a value of ε.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING

from tightrope.documents.budget import Budget, Number, exact_decimal_product, float_at_most
from tightrope.documents.escaping import escape_control_chars
from tightrope.errors import InsufficientBudgetError, PlanError, quoted_names, suggest_nearest
from tightrope.ledger.limits import MAIN_LIMIT
from tightrope.ledger.noise_record import NoiseRecord
from tightrope.noise.allocation import MAX_NOISE_ROWS, NoiseAllocation, allocate_noise
from tightrope.noise.worst_split import repeat_groups
from tightrope.numerics.progress import with_progress
from tightrope.queries.options import MarginOfError
from tightrope.queries.query import Query
from tightrope.release.draft import NoisePlan, composition_groups_of

if TYPE_CHECKING:
    from tightrope.accounting.privacy_loss import PrivacyLoss
    from tightrope.ledger import Account, Limit
    from tightrope.ledger.moments import Moments
    from tightrope.noise.worst_split import CompositionGroup
    from tightrope.queries.query_group import QueryGroup

ROUND_UP_FOUR_DIGITS = Context(prec=4, rounding=ROUND_CEILING)
"""Candidate budgets are rounded up to four digits."""
SIZE_RATIO_TOLERANCE = Decimal("1.002")
"""Tolerance of the search for the smallest budget, as a ratio."""
WORTHWHILE_EXCESS = 0.999
"""The search is repeated if other noise families reduce the largest half-width, relative to its target, below this."""
MAX_SEARCH_STEPS, SMALLEST_SIZE = 40, Decimal("1e-9")
"""Limits of the search: its number of drafts, and the smallest size."""
MAX_SIZE_RATIO = 16
"""Maximum ratio between a size and the next guess."""
LARGER_EPSILONS = tuple(Decimal(2) ** power for power in range(-3, 6))
"""Values of ε that are tried if a budget is insufficient; with the last one there is almost no noise."""
MakeDraft = Callable[[Decimal, NoisePlan | None], NoisePlan]
"""A function that returns the draft of a size; if a draft is passed, only its noise families are tried."""
MAX_COMPARISONS = 3
"""Maximum number of repeated comparisons of noise families at the budget found."""


@dataclass(frozen=True, slots=True)
class AccuracyTarget:
    """An accuracy target: the maximum half-width of each question, and the group size for which it holds."""

    half_widths: Mapping[str, float]
    rows: int | None

    def relative_excess(self, draft: NoisePlan) -> float:
        """Return the largest ratio of a half-width to its target; at most 1 if every target is met.

        Noise of more than ``MAX_NOISE_ROWS`` in every answer would be useless, and planning with it takes hours: it
        exceeds any target.
        """
        choices = (choice for selected in draft.allocation.selections for choice in selected)
        ratios = [min(choice.table.mean_absolute / choice.steps_per_row for choice in choices) / MAX_NOISE_ROWS]
        for accuracy in draft.query_accuracies:
            name = accuracy.question.asked.name
            if name in self.half_widths:
                half_width = accuracy.errors_at_size(self.rows or 1)["half_width_95"]
                ratios.append((math.inf if half_width is None else half_width) / self.half_widths[name])
        return max(ratios)


def _check_margin(question: Query, margin: MarginOfError, rows: int | None) -> None:
    """Raise ``PlanError`` for a margin that is not of this kind of question, or that needs the size of the groups."""
    option = f"margin_of_error of {escape_control_chars(question.asked.name)}"
    if margin.relative and not question.counts:
        text = f"must be a number for a {question.kind}, not {margin}: only counts accept a percentage of rows"
        raise PlanError.from_text(option, text)
    if rows is None and (margin.relative or not question.uniform):
        text = f"{str(margin)!r} needs the size of the groups, because the error depends on it: add expected_rows=500"
        raise PlanError.from_text(option, text)


def accuracy_target(
    questions: Sequence[Query], margin_of_error: Mapping[str, Number | str] | None, rows: int | None
) -> AccuracyTarget | None:
    """Return the target of the questions and of ``margin_of_error``; None without one. Raises ``PlanError``."""
    margins = {question.asked.name: question.asked.margin_of_error for question in questions}
    for name, margin in (margin_of_error or {}).items():
        if name not in margins:
            raise PlanError(
                "margin_of_error",
                name,
                f"the name of a question: {quoted_names(tuple(margins))}",
                suggest_nearest(name, tuple(margins)),
            )
        margins[name] = MarginOfError.from_option(margin)
    for question in questions:
        if (checked := margins[question.asked.name]) is not None:
            _check_margin(question, checked, rows)
    half_widths = {name: margin.half_width_at(rows) for name, margin in margins.items() if margin is not None}
    return AccuracyTarget(half_widths, rows) if half_widths else None


def minimal_draft(make_draft: MakeDraft, goal: AccuracyTarget, most: Decimal) -> NoisePlan | None:
    """Return the draft of the smallest size up to ``most`` that meets the target, within 0.2 %; None if ``most`` fails.

    Half-widths are roughly inversely proportional to the size: each candidate follows that rule, or bisects. The rule
    only guides the search: the returned draft was checked. All candidates use the noise families that are best at
    ``most``.
    """
    steps = with_progress(range(MAX_SEARCH_STEPS + 1))
    next(steps)
    first_trial, failing_size = _try_draft(make_draft, goal, most, None), Decimal(0)
    if first_trial is None or first_trial[1] > 1:
        return None
    first_draft = first_trial[0]
    sufficient_size, best_trial = most, first_trial
    guess = sufficient_size * _clamped_fraction(first_trial[1])
    for _ in steps:
        size = _next_size(failing_size, sufficient_size, guess)
        if size is None:
            break
        trial = _try_draft(make_draft, goal, size, first_draft)
        if trial is not None and trial[1] <= 1:
            sufficient_size, best_trial = size, trial
        else:
            failing_size = size
        guess = size * _clamped_fraction(trial[1]) if trial is not None else sufficient_size / MAX_SIZE_RATIO
    return best_trial[0]


def minimal_budget_for(
    drafted: Callable[..., NoisePlan], goal: AccuracyTarget, budget: Budget, most: Decimal
) -> NoisePlan:
    """Return the draft with the smallest fraction of the budget, up to ``most``, that meets the target.

    ``drafted`` takes a budget and the fraction that it is of the whole. Raises ``InsufficientBudgetError`` with an ε
    that would suffice.
    """

    def draft_of_share(fraction: Decimal, like: NoisePlan | None) -> NoisePlan:
        return drafted(budget.scale_by(fraction), fraction, compare=False, like=like)

    def draft_of_epsilon(epsilon: Decimal, like: NoisePlan | None) -> NoisePlan:
        return drafted(Budget(epsilon=epsilon, delta=budget.scale_by(most).delta), most, compare=False, like=like)

    best = minimal_draft(draft_of_share, goal, most)
    if best is None:
        targets = ", ".join(
            f"{escape_control_chars(name)} within ± {half_width:g}" for name, half_width in goal.half_widths.items()
        )
        trials = (minimal_draft(draft_of_epsilon, goal, epsilon) for epsilon in LARGER_EPSILONS)
        sufficient_draft = next((trial for trial in trials if trial is not None), None)
        remedy = "no budget suffices: tighten bounds or max_rows, or ask about larger groups"
        if sufficient_draft is not None:
            remedy = f"it needs about epsilon={sufficient_draft.budget.epsilon} (within 0.2 % of the smallest possible)"
        raise InsufficientBudgetError(f"{budget.scale_by(most)} is not enough for {targets}; {remedy}")
    for _ in range(MAX_COMPARISONS):
        compared = drafted(best.budget, best.share)
        excess = goal.relative_excess(compared)
        if excess > 1:
            return best
        better = minimal_draft(draft_of_share, goal, best.share) if excess < WORTHWHILE_EXCESS else None
        if better is None or better.share >= best.share:
            return compared
        best = better
    return best


def _try_draft(
    make_draft: MakeDraft, goal: AccuracyTarget, size: Decimal, like: NoisePlan | None
) -> tuple[NoisePlan, float] | None:
    """Return the draft of a size and its relative excess; None if no noise family meets so small a budget."""
    try:
        result = make_draft(size, like)
    except InsufficientBudgetError:
        return None if like is None else _try_draft(make_draft, goal, size, None)
    return result, goal.relative_excess(result)


def _next_size(failing_size: Decimal, sufficient_size: Decimal, guess: Decimal) -> Decimal | None:
    """Return the next size to try: the guess, moved away from both ends; None if they are within the tolerance.

    ``failing_size`` is known to miss the target (0: none is known), ``sufficient_size`` to meet it.
    """
    if sufficient_size <= SMALLEST_SIZE or (
        failing_size > 0 and sufficient_size <= failing_size * SIZE_RATIO_TOLERANCE
    ):
        return None
    low = failing_size if failing_size > 0 else sufficient_size / (MAX_SIZE_RATIO * MAX_SIZE_RATIO)
    target_size = guess * SIZE_RATIO_TOLERANCE
    if target_size >= sufficient_size:  # the guess is the upper end itself: test a slightly smaller size
        size = ROUND_UP_FOUR_DIGITS.divide(sufficient_size, SIZE_RATIO_TOLERANCE)
    else:
        inner_range = (
            low * (sufficient_size / low) ** Decimal("0.1"),
            sufficient_size / (sufficient_size / low) ** Decimal("0.1"),
        )
        size = ROUND_UP_FOUR_DIGITS.plus(min(max(target_size, inner_range[0]), inner_range[1]))
    return size if failing_size < size < sufficient_size else None


def _clamped_fraction(excess: float) -> Decimal:
    return (
        Decimal(repr(min(max(excess, 1 / MAX_SIZE_RATIO), MAX_SIZE_RATIO)))
        if math.isfinite(excess)
        else Decimal(MAX_SIZE_RATIO)
    )


# Plans on a limit that composes by log moments: a fraction of it is a fraction of its moments, not of its ε.

MAX_RELEASES_TOGETHER = 1000
"""Noise is selected for at most this many releases of the plan together."""
MAX_TRIALS, TARGET_RATIO, SUFFICIENT_RATIO, SMALLEST_FACTOR = 8, 0.995, 0.985, 1e-6
"""Maximum trials of a budget for all releases; the targeted and the sufficient use of a share; the smallest factor."""
DELTA_FRACTIONS, FEW_RELEASES = (Decimal(1), Decimal("0.001")), 12
"""Fractions of δ for which noise is selected; all are tried if fewer than this many releases fit into the limit."""
MAX_DRAFTS, SHARE_TOLERANCE = 6, 0.98
"""Maximum trials of a share for an accuracy target, and the tolerance of the smallest one, as a ratio."""
ROUND_UP_SIX_DIGITS, SIX_DIGITS = Context(prec=6, rounding=ROUND_CEILING), Context(prec=6)


def moment_limit_of_budget(account: Account | None) -> Limit | None:
    """Return the limit of the whole budget if it composes by moments, else None."""
    limits = () if account is None else account.limits
    return next((limit for limit in limits if limit.name == MAIN_LIMIT and limit.moments is not None), None)


def draft_by_moments(
    limit: Limit,
    query_groups: tuple[QueryGroup, ...],
    make_draft: Callable[[NoiseAllocation, Budget, Decimal], NoisePlan],
    share: Decimal,
    goal: AccuracyTarget | None,
) -> NoisePlan:
    """Return the draft with the least noise within ``share``, a fraction of the limit's moments.

    With a goal: the draft with the smallest fraction, up to ``share``, that meets the goal. ``make_draft`` returns
    the draft of an allocation. Raises ``InsufficientBudgetError`` if the share is too small.
    """

    def draft_of_part(part: Decimal) -> NoisePlan:
        noise_record = noise_of_equal_releases(tuple(composition_groups_of(query_groups)), limit, part)
        allocation = allocation_from_noise(noise_record)
        return make_draft(allocation, budget_of_moment_share(limit, allocation.loss, part), part)

    best, failing_share = draft_of_part(share), Decimal(0)
    if goal is None:
        return best
    if goal.relative_excess(best) > 1:
        raise InsufficientBudgetError(
            f"a fraction of {share} of {limit.rule_text} is not enough for the requested margins of error; "
            f"nothing was spent"
        )
    # Nearly the smallest sufficient share: half-widths are about proportional to 1/√share.
    for _ in range(MAX_DRAFTS):
        guess = ROUND_UP_SIX_DIGITS.create_decimal(
            repr(float(best.share) * min(goal.relative_excess(best), 1.0) ** 2 * 1.005)
        )
        if not failing_share < guess < best.share * Decimal(SHARE_TOLERANCE):
            guess = ROUND_UP_SIX_DIGITS.divide(failing_share + best.share, Decimal(2))
        if guess >= best.share * Decimal(SHARE_TOLERANCE):
            break
        draft = draft_of_part(guess)
        best, failing_share = (draft, failing_share) if goal.relative_excess(draft) <= 1 else (best, guess)
    return best


@lru_cache(maxsize=64)
def noise_of_equal_releases(
    units: tuple[CompositionGroup, ...], limit: Limit, share: Decimal, times: int = 1
) -> NoiseRecord:
    """Return the noise of one of ``times`` equal releases that together use at most the share of the limit's moments.

    It is the least noise with which all releases that fit into the whole limit, composed exactly, would meet a
    multiple of the limit's budget: the largest multiple at which the moments of one release fit into its share. So
    noise families are compared as in a joint plan. A few large releases would put the whole δ into rare, large losses,
    which have large moments: for them a smaller δ is tried, too, and the noise with the smallest total E|X| is
    returned.
    """
    release_count = max(1, min(MAX_RELEASES_TOGETHER, round(times / Fraction(share))))
    part, candidates = Fraction(share) / times, list[NoiseRecord]()
    for delta_fraction in DELTA_FRACTIONS:
        if not candidates or release_count < FEW_RELEASES:
            budgets = _BudgetMultiples(units, release_count, limit, delta_fraction)
            candidates += [
                noise_record for noise_record in [budgets.largest_fitting_noise(part)] if noise_record is not None
            ]
    if not candidates:
        raise InsufficientBudgetError(
            f"no noise meets a fraction of {share} of {limit.rule_text}; plan with another fraction of it"
        )
    # The sum of E|X| over all noise, in units of one row.
    errors = [
        math.fsum(choice.table.mean_absolute / choice.steps_per_row for choices in one.choices for choice in choices)
        for one in candidates
    ]
    return candidates[errors.index(min(errors))].on_finer_lattice(float_at_most(limit.budget.delta))


@dataclass(frozen=True, slots=True)
class _BudgetMultiples:
    """Multiples of a limit's budget, for a number of equal releases together."""

    units: tuple[CompositionGroup, ...]
    release_count: int
    limit: Limit
    delta_fraction: Decimal

    def scaled_budget(self, factor: Decimal) -> Budget:
        """Return the budget with ε times the factor and δ times ``delta_fraction``; at ε = 0, δ times the factor."""
        pairs = [
            (exact_decimal_product(epsilon, factor), exact_decimal_product(delta, self.delta_fraction))
            if epsilon > 0
            else (epsilon, exact_decimal_product(delta, factor))
            for epsilon, delta in self.limit.budget.checked_points
        ]
        largest_delta = exact_decimal_product(self.limit.budget.delta, self.delta_fraction)
        return Budget(points=pairs, delta=min(_limit_moments(self.limit).infinite_mass, largest_delta))

    def noise_for_factor(self, factor: Decimal) -> NoiseRecord | None:
        """Return the noise of one release; None if no noise meets so small a budget."""
        try:
            groups = repeat_groups([(self.units, self.release_count)])
            allocation = allocate_noise(groups, self.scaled_budget(factor))
        except InsufficientBudgetError:
            return None
        selections_of_one = allocation.selections[: len(self.units)]
        return NoiseRecord(
            self.units,
            selections_of_one,
            allocation.loss_lattice,
            allocation.alternatives,
            allocation.avoidable_noise,
            allocation.bounds_splits,
        )

    def largest_fitting_noise(self, part: Fraction) -> NoiseRecord | None:
        """Return the noise of the largest factor tried, up to one, for which one release fits into the part."""
        trials: list[tuple[Decimal, float]] = []
        fitting_noise: dict[Decimal, NoiseRecord] = {}
        factor = Decimal(1)
        for _ in range(MAX_TRIALS):
            noise_record = self.noise_for_factor(factor)
            if noise_record is None:
                break
            charged_share = _limit_moments(self.limit).charged_fraction(noise_record.loss_of_separate_releases())
            if charged_share is None:
                break
            ratio = float(charged_share / part)
            trials.append((factor, ratio))
            fitting_noise |= {factor: noise_record} if ratio <= 1 else {}
            if SUFFICIENT_RATIO <= ratio <= 1 or (factor == 1 and fitting_noise):
                break
            factor = _next_factor(trials)
        return fitting_noise[max(fitting_noise)] if fitting_noise else None


def _next_factor(trials: Sequence[tuple[Decimal, float]]) -> Decimal:
    """Return the next factor by the secant method in logarithms, kept between factors that fit and that do not.

    Moments grow like ε² for large noise, and about like ε for small noise. They may jump slightly if another noise
    family is chosen.
    """
    (factor, ratio), (previous_factor, previous_ratio) = (
        trials[-1],
        trials[-2] if len(trials) > 1 else (Decimal(1), 1.0),
    )
    step = math.log(factor / previous_factor) if previous_factor != factor else 0.0
    slope = min(max(math.log(ratio / previous_ratio) / step, 0.7), 3.0) if step else 2.0
    guess = float(factor) * (TARGET_RATIO / ratio) ** (1 / slope)
    low = max((float(factor) for factor, ratio in trials if ratio <= 1), default=0.0)
    high = min((float(factor) for factor, ratio in trials if ratio > 1), default=1.0)
    next_factor = guess if low < guess < high else (low + high) / 2
    return SIX_DIGITS.create_decimal(repr(max(next_factor, SMALLEST_FACTOR)))


def allocation_from_noise(noise_record: NoiseRecord) -> NoiseAllocation:
    """Return the noise of one release as an allocation."""
    return NoiseAllocation(
        noise_record.choices,
        noise_record.composed_loss(),
        dict(noise_record.alternatives),
        noise_record.avoidable_noise,
        noise_record.window,
        noise_record.bounds_splits,
    )


def budget_of_moment_share(limit: Limit, loss: PrivacyLoss, share: Decimal) -> Budget:
    """Return the budget that the noise meets: the smallest ε at the share of every δ, rounded up to six digits."""
    points = []
    for epsilon, delta in limit.budget.checked_points:
        if epsilon > 0:
            delta_share = exact_decimal_product(delta, share)
            points.append((_rounded_up(loss.epsilon(float_at_most(delta_share))), delta_share))
        else:
            points.append((epsilon, _rounded_up(loss.total_variation())))
    return Budget(points=points, delta=exact_decimal_product(limit.budget.delta, share))


def _rounded_up(value: float) -> Decimal:
    return ROUND_UP_SIX_DIGITS.create_decimal(repr(value))


def _limit_moments(limit: Limit) -> Moments:
    if limit.moments is None:
        raise TypeError(limit.rule)
    return limit.moments
