"""Search for the smallest budget that meets an accuracy target; the result always meets it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING

from tightrope.documents.budget import Budget, Number, at_most, exact_product
from tightrope.documents.escaping import escape_control_chars
from tightrope.errors import InsufficientBudgetError, PlanError, quoted_names, suggest_nearest
from tightrope.ledger.limits import MAIN_LIMIT
from tightrope.ledger.noise_record import NoiseRecord
from tightrope.noise.allocation import NoiseAllocation, allocate_noise
from tightrope.queries.options import MarginOfError
from tightrope.queries.query import Query
from tightrope.release.draft import NoisePlan, composition_groups_of

if TYPE_CHECKING:
    from tightrope.accounting.privacy_loss import PrivacyLoss
    from tightrope.ledger import Account, Limit
    from tightrope.ledger.moments import Moments
    from tightrope.noise.worst_split import CompositionGroup
    from tightrope.queries.query_group import QueryGroup

UPWARDS = Context(prec=4, rounding=ROUND_CEILING)
"""Candidate budgets are rounded up to four digits."""
CLOSE_ENOUGH = Decimal("1.002")
"""Tolerance of the search for the smallest budget, as a ratio."""
WORTH = 0.999
"""The search is repeated if other noise reduces the largest relative half-width below this."""
STEPS, LEAST = 40, Decimal("1e-9")
WIDER = 16
"""Factor between candidates without a bracket."""
RAISED = tuple(Decimal(2) ** power for power in range(-3, 6))
"""Values of ε that are tried if a budget is insufficient: beyond the last there is almost no noise."""
DRAFTED = Callable[[Decimal, NoisePlan | None], NoisePlan]
"""Returns the draft of a size; if a draft is passed, only its noise families are tried."""
COMPARISONS = 3
"""Maximum number of repeated comparisons of noise families at the budget found."""


@dataclass(frozen=True, slots=True)
class AccuracyTarget:
    """An accuracy target: the maximum half-width of each question, and the group size for which it holds."""

    half_widths: Mapping[str, float]
    rows: int | None

    def relative_excess(self, draft: NoisePlan) -> float:
        """Return the largest ratio of a half-width to its target; at most 1 if every target is met."""
        ratios = []
        for accuracy in draft.accuracies():
            name = accuracy.question.asked.name
            if name in self.half_widths:
                half = accuracy.errors_at_size(self.rows or 1)["half_width_95"]
                ratios.append((math.inf if half is None else half) / self.half_widths[name])
        return max(ratios)


def accuracy_target(
    questions: Sequence[Query], margin_of_error: Mapping[str, Number | str] | None, rows: int | None
) -> AccuracyTarget | None:
    """Return the target of the questions and of ``margin_of_error``; None without one. Raises ``PlanError``."""
    asked = {question.asked.name: question.asked.margin_of_error for question in questions}
    for name, half in (margin_of_error or {}).items():
        if name not in asked:
            raise PlanError(
                "margin_of_error",
                name,
                f"the name of a question: {quoted_names(tuple(asked))}",
                suggest_nearest(name, tuple(asked)),
            )
        asked[name] = MarginOfError.from_option(half)
    for question in questions:
        _check_target(question, asked[question.asked.name], rows)
    halves = {name: half.half_width_at(rows) for name, half in asked.items() if half is not None}
    return AccuracyTarget(halves, rows) if halves else None


def minimal_draft(draft: DRAFTED, goal: AccuracyTarget, most: Decimal) -> NoisePlan | None:
    """Return the draft of the smallest size up to ``most`` that meets the target, within 0.2 %, or None.

    Half-widths are roughly proportional to one over the size: each candidate follows that rule, or bisects. The rule
    only guides the search: the returned draft was checked. All candidates use the noise that is best at ``most``.
    """
    found, fails = _try_draft(draft, goal, most, None), Decimal(0)
    if found is None or found[1] > 1:
        return None
    like = found[0]
    does, best = most, found
    guess = does * _clamped_fraction(found[1])
    for _ in range(STEPS):
        place = _next_size(fails, does, guess)
        if place is None:
            break
        tried = _try_draft(draft, goal, place, like)
        if tried is not None and tried[1] <= 1:
            does, best = place, tried
        else:
            fails = place
        guess = place * _clamped_fraction(tried[1]) if tried is not None else does / WIDER
    return best[0]


def minimal_budget_for(
    drafted: Callable[..., NoisePlan], goal: AccuracyTarget, budget: Budget, most: Decimal
) -> NoisePlan:
    """Return the draft with the smallest share of the budget, up to ``most``, that meets the target.

    ``drafted`` takes a budget and its share. Raises ``InsufficientBudgetError`` with an ε that would suffice.
    """

    def draft_of_share(part: Decimal, like: NoisePlan | None) -> NoisePlan:
        return drafted(budget.scale_by(part), part, compare=False, like=like)

    def draft_of_epsilon(epsilon: Decimal, like: NoisePlan | None) -> NoisePlan:
        return drafted(Budget(epsilon=epsilon, delta=budget.scale_by(most).delta), most, compare=False, like=like)

    found = minimal_draft(draft_of_share, goal, most)
    if found is None:
        asked = ", ".join(f"{escape_control_chars(name)} within ± {half:g}" for name, half in goal.half_widths.items())
        tries = (minimal_draft(draft_of_epsilon, goal, epsilon) for epsilon in RAISED)
        enough = next((tried for tried in tries if tried is not None), None)
        remedy = "no budget suffices: tighten bounds or max_rows, or ask about larger groups"
        if enough is not None:
            remedy = f"it needs about epsilon={enough.budget.epsilon} (the smallest value, up to 0.2 %)"
        raise InsufficientBudgetError(f"{budget.scale_by(most)} is not enough for {asked}; {remedy}")
    for _ in range(COMPARISONS):
        compared = drafted(found.budget, found.share)
        if goal.relative_excess(compared) > 1:
            return found
        better = minimal_draft(draft_of_share, goal, found.share) if goal.relative_excess(compared) < WORTH else None
        if better is None or better.share >= found.share:
            return compared
        found = better
    return found


def _check_target(question: Query, half: MarginOfError | None, rows: int | None) -> None:
    if half is None:
        return
    if half.relative and not question.counts:
        text = f"must be a number for a {question.kind}, not {half}: only counts accept a percentage of rows"
        raise PlanError.from_text(_option_name(question), text)
    if rows is None and (half.relative or not question.uniform):
        text = "it depends on the size of the groups: state that, too, with expected_rows=500"
        raise PlanError.from_text(_option_name(question), text)


def _option_name(question: Query) -> str:
    return f"margin_of_error of {escape_control_chars(question.asked.name)}"


def _try_draft(
    draft: DRAFTED, goal: AccuracyTarget, size: Decimal, like: NoisePlan | None
) -> tuple[NoisePlan, float] | None:
    """Return the draft and its excess; None if no noise of the same or of other families meets so small a budget."""
    try:
        made = draft(size, like)
    except InsufficientBudgetError:
        return None if like is None else _try_draft(draft, goal, size, None)
    return made, goal.relative_excess(made)


def _next_size(fails: Decimal, does: Decimal, guess: Decimal) -> Decimal | None:
    """Return the next size: the guess, kept away from both ends; None if they are within the tolerance."""
    if does <= LEAST or (fails > 0 and does <= fails * CLOSE_ENOUGH):
        return None
    low = fails if fails > 0 else does / (WIDER * WIDER)
    wanted = guess * CLOSE_ENOUGH
    if wanted >= does:  # the guess is the upper end itself: test a slightly smaller size
        place = UPWARDS.divide(does, CLOSE_ENOUGH)
    else:
        inner = (low * (does / low) ** Decimal("0.1"), does / (does / low) ** Decimal("0.1"))
        place = UPWARDS.plus(min(max(wanted, inner[0]), inner[1]))
    return place if fails < place < does else None


def _clamped_fraction(excess: float) -> Decimal:
    return Decimal(repr(min(max(excess, 1 / WIDER), WIDER))) if math.isfinite(excess) else Decimal(WIDER)


# Plans on a limit that composes by log moments: a share of it is a share of its moments, not of its ε.

MOST_TOGETHER = 1000
"""Noise is chosen for at most this many releases of the plan together."""
TRIES, AIM, CLOSE_BY_MOMENTS, LEAST_BY_MOMENTS = 8, 0.995, 0.985, 1e-6
"""Trials of a budget for all releases; the targeted and the sufficient part of a share; the smallest factor."""
STRICTER, FEW = (Decimal(1), Decimal("0.001")), 12
"""Fractions of δ for which noise is chosen; all of them are tried for fewer than this many releases together."""
DRAFTS, CLOSE_SHARE = 6, 0.98
"""Trials of a share for an accuracy target, and the tolerance of the smallest one, as a ratio."""
UPWARDS_BY_MOMENTS, DIGITS = Context(prec=6, rounding=ROUND_CEILING), Context(prec=6)


def limit_by_moments(account: Account | None) -> Limit | None:
    """Return the limit of the whole budget if it composes by moments, else None."""
    limits = () if account is None else account.limits
    return next((limit for limit in limits if limit.name == MAIN_LIMIT and limit.moments is not None), None)


def draft_by_moments(
    limit: Limit,
    tasks: tuple[QueryGroup, ...],
    made: Callable[[NoiseAllocation, Budget, Decimal], NoisePlan],
    share: Decimal,
    goal: AccuracyTarget | None,
) -> NoisePlan:
    """Return the draft with the least noise within a share of the limit's moments, or the smallest share for a goal.

    ``made`` makes the draft of an allocation. Raises ``InsufficientBudgetError`` if the share is too small.
    """

    def draft_of_part(part: Decimal) -> NoisePlan:
        recipe = fit_noise_to_share(tuple(composition_groups_of(tasks)), limit, part)
        allocation = allocation_of(recipe)
        return made(allocation, budget_of_share(limit, allocation.loss, part), part)

    best, fails = draft_of_part(share), Decimal(0)
    if goal is None:
        return best
    if goal.relative_excess(best) > 1:
        raise InsufficientBudgetError(
            f"a fraction of {share} of {limit.rule_text} is not enough for the requested margins of error; "
            f"nothing was spent"
        )
    # Nearly the smallest sufficient share: half-widths are about proportional to 1/√share.
    for _ in range(DRAFTS):
        guess = UPWARDS_BY_MOMENTS.create_decimal(
            repr(float(best.share) * min(goal.relative_excess(best), 1.0) ** 2 * 1.005)
        )
        if not fails < guess < best.share * Decimal(CLOSE_SHARE):
            guess = UPWARDS_BY_MOMENTS.divide(fails + best.share, Decimal(2))
        if guess >= best.share * Decimal(CLOSE_SHARE):
            break
        draft = draft_of_part(guess)
        best, fails = (draft, fails) if goal.relative_excess(draft) <= 1 else (best, guess)
    return best


@lru_cache(maxsize=64)
def fit_noise_to_share(
    units: tuple[CompositionGroup, ...], limit: Limit, share: Decimal, times: int = 1
) -> NoiseRecord:
    """Return the noise of one of ``times`` equal releases that together use at most the share of the limit's moments.

    It is the least noise for which all releases that fit into the whole limit would meet a budget, composed exactly:
    the largest multiple of the limit's budget whose moments fit. So noise families compete as in a joint plan. A few
    large releases would put the whole δ into rare, large losses, which have large moments: for them a smaller δ is
    tried, too, and the smallest E|X| is chosen.
    """
    together = max(1, min(MOST_TOGETHER, round(times / Fraction(share))))
    part, found = Fraction(share) / times, list[NoiseRecord]()
    for strictness in STRICTER:
        if not found or together < FEW:
            budgets = _BudgetMultiples(units, together, limit, strictness)
            found += [recipe for recipe in [budgets.largest_fitting_noise(part)] if recipe is not None]
    if not found:
        raise InsufficientBudgetError(
            f"no noise meets a fraction of {share} of {limit.rule_text}; plan with another fraction of it"
        )
    return min(found, key=_total_error).on_finer_lattice(at_most(limit.budget.delta))


@dataclass(frozen=True, slots=True)
class _BudgetMultiples:
    """Multiples of a limit's budget, for a number of equal releases together."""

    units: tuple[CompositionGroup, ...]
    together: int
    limit: Limit
    strictness: Decimal

    def scaled_budget(self, factor: Decimal) -> Budget:
        """Return the budget with ε times the factor and δ times ``strictness``; at ε = 0, δ times the factor."""
        pairs = [
            (exact_product(epsilon, factor), exact_product(delta, self.strictness))
            if epsilon > 0
            else (epsilon, exact_product(delta, factor))
            for epsilon, delta in self.limit.budget.checked_points
        ]
        most = exact_product(self.limit.budget.delta, self.strictness)
        return Budget(points=pairs, delta=min(_limit_moments(self.limit).infinite_mass, most))

    def noise_for_factor(self, factor: Decimal) -> NoiseRecord | None:
        """Return the noise of one release; None if no noise meets so small a budget."""
        try:
            found = allocate_noise(self.units * self.together, self.scaled_budget(factor))
        except InsufficientBudgetError:
            return None
        own = found.selections[: len(self.units)]
        return NoiseRecord(self.units, own, found.loss_lattice, found.alternatives, found.avoidable_noise)

    def largest_fitting_noise(self, part: Fraction) -> NoiseRecord | None:
        """Return the noise of the largest factor tried, up to one, for which one release fits into the part."""
        tried: list[tuple[Decimal, float]] = []
        fits: dict[Decimal, NoiseRecord] = {}
        factor = Decimal(1)
        for _ in range(TRIES):
            recipe = self.noise_for_factor(factor)
            if recipe is None:
                break
            taken = _limit_moments(self.limit).charged_share(recipe.loss_of_separate_releases())
            if taken is None:
                break
            ratio = float(taken / part)
            tried.append((factor, ratio))
            fits |= {factor: recipe} if ratio <= 1 else {}
            if CLOSE_BY_MOMENTS <= ratio <= 1 or (factor == 1 and fits):
                break
            factor = _next_factor(tried)
        return fits[max(fits)] if fits else None


def _total_error(recipe: NoiseRecord) -> float:
    """Return the sum of E|X| over all noise, in rows of a person."""
    return math.fsum(choice.table.mean_absolute / choice.steps_per_row for own in recipe.choices for choice in own)


def _next_factor(tried: Sequence[tuple[Decimal, float]]) -> Decimal:
    """Return the next factor by the secant method in logarithms, kept between factors that fit and that do not.

    Moments grow like ε² for large noise, and about like ε for small noise. They may jump slightly if another noise
    family is chosen.
    """
    (factor, ratio), (before, other) = tried[-1], tried[-2] if len(tried) > 1 else (Decimal(1), 1.0)
    step = math.log(factor / before) if before != factor else 0.0
    slope = min(max(math.log(ratio / other) / step, 0.7), 3.0) if step else 2.0
    guess = float(factor) * (AIM / ratio) ** (1 / slope)
    low = max((float(factor) for factor, ratio in tried if ratio <= 1), default=0.0)
    high = min((float(factor) for factor, ratio in tried if ratio > 1), default=1.0)
    inner = guess if low < guess < high else (low + high) / 2
    return DIGITS.create_decimal(repr(max(inner, LEAST_BY_MOMENTS)))


def allocation_of(recipe: NoiseRecord) -> NoiseAllocation:
    """Return the noise of one release as an allocation."""
    return NoiseAllocation(
        recipe.choices, recipe.composed_loss(), dict(recipe.alternatives), recipe.spare, recipe.window
    )


def budget_of_share(limit: Limit, loss: PrivacyLoss, share: Decimal) -> Budget:
    """Return the budget that the noise meets: the smallest ε at the share of every δ, rounded up to six digits."""
    points = []
    for epsilon, delta in limit.budget.checked_points:
        if epsilon > 0:
            part = exact_product(delta, share)
            points.append((_rounded_up(loss.epsilon(at_most(part))), part))
        else:
            points.append((epsilon, _rounded_up(loss.total_variation())))
    return Budget(points=points, delta=exact_product(limit.budget.delta, share))


def _rounded_up(value: float) -> Decimal:
    return UPWARDS_BY_MOMENTS.create_decimal(repr(value))


def _limit_moments(limit: Limit) -> Moments:
    if limit.moments is None:
        raise TypeError(limit.rule)
    return limit.moments
