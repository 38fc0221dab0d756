"""Results of an audit: ``Finding`` (simultaneous lower bounds) and ``Verdict`` (a claim tested against them).

If a claim is not refuted, the verdict says what the test could have detected: the least true ε that it refutes with
probability at least ½. The probability to refute is bounded from below: it is the sum, over the pairs of counts that
refute, of one event at a fixed threshold, whose two counts are independent binomials. Scores are assumed to be
likelihood ratios; a weaker attack detects less.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache, singledispatch
from typing import Any, Self

import numpy as np
from scipy import special, stats

from tightrope.accounting.privacy_loss import PrivacyLoss
from tightrope.documents.budget import Budget, Guarantee, exact_decimal_product
from tightrope.documents.numbers import DOWN, UP, significant_text, terminal_text
from tightrope.errors import InputError
from tightrope.numerics.arrays import Floats, Integers
from tightrope.numerics.checks import check_inner_probability, check_non_negative, check_probability
from tightrope.numerics.root_finding import bisect_real, bracket_by_doubling
from tightrope.numerics.rounding import to_float

# Error rates of events that distinguish two distributions, and the bounds that follow from them.
#
# The bounds are on ε, δ, the total variation and the trade-off curve.


Indices = int | Integers
LOOP_POINTS = 64
"""Up to this many points are processed one by one."""
PROBABILITY_ROUNDING = 1e-12
"""Relative safety margin of the bounds, larger than the rounding errors of their few operations."""
RANK_RATIO = 1.08
"""Ranks grow by this factor from either end: between two of them a bound is smaller by at most this factor."""
BETA_ROUNDING = 1e-9
"""Relative error of the inverse of the incomplete beta function, with a margin; the absolute error is 1e-5 of it."""


def concave_hull(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Return the corners of the least concave function above points of ascending x, from the first to the last point.

    >>> [corners.tolist() for corners in concave_hull(np.array([0.0, 1, 2]), np.array([0.0, 0.4, 1]))]
    [[0.0, 2.0], [0.0, 1.0]]
    """
    # Points below the chord of their neighbors are no corners: remove them, in alternate passes, while that helps.
    previous_count = len(x) + 1
    while LOOP_POINTS < len(x) < previous_count:
        previous_count = len(x)
        for start in (1, 2):
            middle = np.arange(start, len(x) - 1, 2)
            below = middle[_below_chord(x, y, middle - 1, middle, middle + 1)]
            x, y = np.delete(x, below), np.delete(y, below)
    corners: list[int] = []
    for i in range(len(x)):
        while len(corners) > 1 and _below_chord(x, y, corners[-2], corners[-1], i):
            corners.pop()
        corners.append(i)
    return x[corners], y[corners]


def _below_chord(x: Floats, y: Floats, left: Indices, middle: Indices, right: Indices) -> Any:
    """Return whether the middle point is on or below the chord from the left to the right point."""
    return (y[middle] - y[left]) * (x[right] - x[left]) <= (y[right] - y[left]) * (x[middle] - x[left])


@dataclass(frozen=True, slots=True, eq=False)
class Rates:
    """Events A_i with Q(A_i) ≤ ``false_positive[i]`` and P(A_i) ≥ ``true_positive[i]``, all of them together.

    P is the distribution of the first input's scores, Q that of the second's. The rates are the corners of the concave
    hull with (0, 0) and (1, 1), in ascending order; a point between two corners is reached by choosing between their
    events at random.
    """

    false_positive: Floats
    true_positive: Floats

    @classmethod
    def from_events(cls, false_positive: Floats, true_positive: Floats) -> Rates:
        """Return the hull of these events, the empty event and the certain event."""
        x, y = np.clip([np.append(false_positive, [0, 1]), np.append(true_positive, [0, 1])], 0.0, 1.0)
        order = np.lexsort((-y, x))
        # Points in ascending x, the highest first for equal x, without those that are no higher than an earlier one.
        sorted_x, sorted_y = x[order], y[order]
        is_higher = np.append(True, sorted_y[1:] > np.maximum.accumulate(sorted_y)[:-1])
        return cls(*concave_hull(np.append(sorted_x[is_higher], 1.0), np.append(sorted_y[is_higher], 1.0)))

    def join_hulls(self, other: Rates) -> Rates:
        """Return the hull of both; the bounds of both must hold together."""
        x = np.concatenate([self.false_positive, other.false_positive])
        return Rates.from_events(x, np.concatenate([self.true_positive, other.true_positive]))

    def delta(self, epsilon: float) -> float:
        """Return a lower bound on the larger of the two directions' δ(ε).

        The maximum of P(A) − e^ε Q(A) and Q(Aᶜ) − e^ε P(Aᶜ) over the events A.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            gamma = np.exp(min(epsilon, 700.0))
            of_events = self.true_positive - gamma * self.false_positive
            of_complements = 1 - self.false_positive - gamma * (1 - self.true_positive)
        return _round_down(float(max(of_events.max(), of_complements.max())))

    def epsilon(self, delta: float) -> float:
        """Return a lower bound on the ε at this δ.

        The maximum of 0, log((P(A) − δ)/Q(A)) and log((Q(Aᶜ) − δ)/P(Aᶜ)) over the events A.
        """
        gains = np.concatenate([self.true_positive, 1 - self.false_positive]) - delta
        costs = np.concatenate([self.false_positive, 1 - self.true_positive])
        positive = gains > 0
        if not positive.any():
            return 0.0
        with np.errstate(divide="ignore"):
            return _round_down(float(np.log(gains[positive] / costs[positive]).max()))

    def total_variation(self) -> float:
        """Return a lower bound on the total variation: δ at ε = 0."""
        return self.delta(0.0)

    def true_positives_at(self, false_positive: Floats) -> Floats:
        """Return a lower bound on the best attack's true-positive rate at these false-positive rates."""
        return np.asarray(np.interp(false_positive, self.false_positive, self.true_positive), dtype=np.float64)


def _round_down(value: float) -> float:
    """Return the value reduced by ``PROBABILITY_ROUNDING``, at least 0."""
    return max(0.0, value - PROBABILITY_ROUNDING * (1 + abs(value))) if math.isfinite(value) else max(0.0, value)


@lru_cache(maxsize=16)
def lower_bounds_by_count(runs: int, failure: float) -> Floats:
    """Return lower bounds on P(score > t), by the number c of ``runs`` scores that are above t; shape [runs + 1].

    They hold for all t together, except with probability ``failure``. They do not decrease in c, and are 0 at c = 0.

    The maximum of two bounds, each with half of ``failure`` (docs/proofs/audit.md):

    - Dvoretzky, Kiefer and Wolfowitz, with Massart's constant: c/n − √(log(2/β)/2n). It is tighter in the middle.
    - Clopper and Pearson, at a fixed set of ranks: the probability to exceed the k-th largest score is stochastically
      at least Beta(k, n + 1 − k), also with ties. Between ranks the bound of the next lower rank is used. It is
      tighter at both ends, which determine ε.

    >>> band = lower_bounds_by_count(1000, 0.01)
    >>> bool(band[0] == 0 and 0.4 < band[500] < 0.5 and band[1000] > 0.98)
    True
    """
    # Ranks in 1..runs, dense at both ends, which depend on `runs` alone.
    step_count = math.ceil(math.log(runs + 1) / math.log(RANK_RATIO)) + 1
    low_ranks = np.unique(np.minimum(np.ceil(RANK_RATIO ** np.arange(step_count)).astype(np.int64), runs))
    low_ranks = low_ranks[low_ranks <= (runs + 1) // 2]
    ranks = np.unique(np.concatenate([low_ranks, runs + 1 - low_ranks]))
    at_ranks = clopper_pearson_lower(ranks, runs, failure / 2 / len(ranks))
    clopper_pearson = np.concatenate([[0.0], at_ranks])[np.searchsorted(ranks, np.arange(runs + 1), side="right")]
    massart = np.arange(runs + 1) / runs - math.sqrt(math.log(2 / failure) / (2 * runs)) - BETA_ROUNDING / 1e5
    band: Floats = np.maximum(clopper_pearson, massart)
    band.flags.writeable = False
    return band


@lru_cache(maxsize=16)
def upper_bounds_by_count(runs: int, failure: float) -> Floats:
    """Return upper bounds on P(score > t), by the number of ``runs`` scores above t; see ``lower_bounds_by_count``."""
    band: Floats = 1 - lower_bounds_by_count(runs, failure)[::-1]
    band.flags.writeable = False
    return band


def clopper_pearson_lower(counts: Integers, runs: int, failure: float) -> Floats:
    """Return Clopper and Pearson's lower bound for each count of ``runs``; each fails with probability ``failure``."""
    positive = np.maximum(counts, 1)
    exact = special.betaincinv(positive, runs + 1 - positive, failure)
    return np.where(counts > 0, np.maximum(exact * (1 - BETA_ROUNDING) - BETA_ROUNDING / 1e5, 0.0), 0.0)


Points = tuple[tuple[float, float], ...]
"""Claims δ(ε) ≤ δ as pairs (ε, δ), rounded up, so that rounding does not refute a true claim."""
Claimed = Budget | Guarantee | PrivacyLoss | Sequence[tuple[float, float]]
LOSS_POINTS = 24
"""The number of points at which a loss is evaluated."""
LEAST_DELTA = 1e-5
"""A loss is evaluated from ε = 0 to where its δ is this; less probable events are rarely observed."""
CLAIM_FORMS = "a Budget, a Guarantee, a PrivacyLoss or points (epsilon, delta)"
CLAIM_REMEDY = "try tr.Budget(epsilon=1, delta=1e-8)"


@singledispatch
def claimed_points(claim: Any) -> Points:
    """Return the points (ε, δ) of a claim, in its order; raises ``InputError`` for other objects.

    >>> claimed_points([(1, 0.01)])
    ((1.0, 0.01),)
    """
    if not isinstance(claim, Sequence) or isinstance(claim, (str, bytes)) or not claim:
        raise InputError("claim", claim, CLAIM_FORMS, CLAIM_REMEDY)
    return claimed_points(Budget(points=claim))


@claimed_points.register
def budget_points(claim: Budget) -> Points:
    """Return the points of a budget, rounded up."""
    return tuple((to_float(epsilon, "up"), to_float(delta, "up")) for epsilon, delta in claim.checked_points)


@claimed_points.register
def guarantee_points(claim: Guarantee) -> Points:
    """Return the ε of the guarantee, if it is finite, and its total variation at ε = 0."""
    finite = [(float(claim.epsilon), claim.delta)] if math.isfinite(claim.epsilon) else []
    return (*finite, (0.0, claim.total_variation))


@claimed_points.register
def loss_points(claim: PrivacyLoss) -> Points:
    """Return the δ of the loss at equidistant ε, up to where it is ``LEAST_DELTA``."""
    largest = claim.epsilon(LEAST_DELTA)
    epsilons = np.linspace(0.0, largest if math.isfinite(largest) else 1.0, LOSS_POINTS)
    return tuple(zip(epsilons.tolist(), claim.delta(epsilons).tolist(), strict=True))


DETECTION_PROBABILITY = 0.5
MAX_PAIR_SIZE = 64.0
"""Largest size of a reference pair that is tried."""
SIZE_HALVINGS = 16
SUM_ROUNDING = 1e-9
"""Subtracted from a probability that is summed in floats."""
IGNORED_TAIL = 1e-13
"""Counts in tails of this probability are left out of the sum, which stays a lower bound."""
MAX_TRIED_POINTS = 2
"""The number of the claim's points that are tried: those that are exceeded most clearly."""

Events = tuple[Floats, Floats]
"""False- and true-positive rates of a pair's events."""


@dataclass(frozen=True, slots=True)
class ReferencePair:
    """Pairs of distributions with one parameter, ``size``.

    ``events(size, delta)`` are the rates of the pair's events. ``privacy(size, delta)`` is the pair's ε at ``delta``,
    or its total variation if ``delta`` is None.
    """

    name: str
    events: Callable[[float, float | None], Events]
    privacy: Callable[[float, float | None], float]


def _response_rates(size: float, delta: float | None) -> Events:
    leak = delta or 0.0
    return np.array([(1 - leak) * special.expit(-size)]), np.array([leak + (1 - leak) * special.expit(size)])


def _laplace_rates(size: float, _: float | None) -> Events:
    thresholds = size * np.linspace(0.0, 1.0, 33)
    return 0.5 * np.exp(-thresholds), 1 - 0.5 * np.exp(thresholds - size)


def _gaussian_rates(size: float, _: float | None) -> Events:
    thresholds = np.linspace(-3.0, 6.0, 181) + size / 2
    return special.ndtr(-thresholds), special.ndtr(size - thresholds)


def _gaussian_privacy(size: float, delta: float | None) -> float:
    if delta is None:
        return float(2 * special.ndtr(size / 2) - 1)
    if delta == 0:
        return math.inf
    from tightrope.mechanisms.gaussian import gaussian

    return max(0.0, gaussian(scale=1 / size).loss.epsilon(delta))


REFERENCE_PAIRS = (
    ReferencePair(
        "randomized response", _response_rates, lambda size, delta: math.tanh(size / 2) if delta is None else size
    ),
    ReferencePair(
        "Laplace",
        _laplace_rates,
        lambda size, delta: -math.expm1(-size / 2) if delta is None else max(0.0, size + 2 * math.log1p(-delta)),
    ),
    ReferencePair("Gaussian", _gaussian_rates, _gaussian_privacy),
)
"""Randomized response with a leak of δ is the most distinguishable pair with a given ε at δ."""


def least_detectable(pair: ReferencePair, points: Points, runs: tuple[int, int], failure: float) -> float:
    """Return the least ε at the δ of the first point that is refuted with probability at least ½, or ∞.

    If the first point has ε = 0, it is the least total variation.
    """
    delta = points[0][1] if points[0][0] > 0 else None

    def is_detected(size: float) -> bool:
        return probability_to_refute(pair.events(size, delta), points, runs, failure) >= DETECTION_PROBABILITY

    bracket = bracket_by_doubling(is_detected, 0.0, 1.0 / 16, limit=MAX_PAIR_SIZE)
    if bracket is None:
        return math.inf
    return pair.privacy(bisect_real(is_detected, *bracket, side="passes", halvings=SIZE_HALVINGS), delta)


def probability_to_refute(events: Events, points: Points, runs: tuple[int, int], failure: float) -> float:
    """Return a lower bound on the probability that a pair with these events refutes the claim of these points."""
    candidates = [_Event.with_largest_excess(events, point, runs) for point in points]
    tried = sorted(candidates, key=lambda event: -event.excess)[:MAX_TRIED_POINTS]
    return max(event.refutation_probability(runs, failure) for event in tried)


@dataclass(frozen=True, slots=True)
class _Event:
    """An event, and a claimed point (γ = e^ε, δ) that it exceeds by ``excess`` standard deviations."""

    false_positive: float
    true_positive: float
    gamma: float
    delta: float
    excess: float

    @classmethod
    def with_largest_excess(cls, events: Events, point: tuple[float, float], runs: tuple[int, int]) -> Self:
        """Return the event that exceeds the point most clearly."""
        false_positive, true_positive = events
        gamma = math.exp(min(point[0], 700.0))
        variance = (true_positive * (1 - true_positive) + 1 / runs[0]) / runs[0]
        variance = variance + gamma**2 * (false_positive * (1 - false_positive) + 1 / runs[1]) / runs[1]
        excess = (true_positive - gamma * false_positive - point[1]) / np.sqrt(variance)
        i = int(np.argmax(excess))
        return cls(float(false_positive[i]), float(true_positive[i]), gamma, point[1], float(excess[i]))

    def refutation_probability(self, runs: tuple[int, int], failure: float) -> float:
        """Return a lower bound on the probability that the bounds at the event's two counts refute the point."""
        tails = (IGNORED_TAIL, 1 - IGNORED_TAIL)
        low, high = (int(stats.binom.ppf(tail, runs[0], self.true_positive)) for tail in tails)
        counts = np.arange(max(low, 0), high + 1)
        allowed = (lower_bounds_by_count(runs[0], failure / 2)[counts] - self.delta) / self.gamma * (1 - SUM_ROUNDING)
        largest_refuting = np.searchsorted(upper_bounds_by_count(runs[1], failure / 2), allowed, side="left") - 1
        refuting = stats.binom.pmf(counts, runs[0], self.true_positive)
        refuting = refuting * stats.binom.cdf(largest_refuting, runs[1], self.false_positive)
        return float(refuting.sum()) - SUM_ROUNDING


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict on a claim δ(``epsilon``) ≤ ``delta``, at ``confidence``.

    If a claim has several points, this is the point that is exceeded most. ``proven_delta`` is the lower bound on δ at
    ``epsilon``, ``proven_epsilon`` that on ε at ``delta``.

    ``least_detectable`` is empty if the claim is refuted. Otherwise it says, by the name of a pair of distributions,
    the least value of ``detectable_quantity`` that this test refutes with probability at least ½, with this number of
    runs and likelihood ratios as scores; ∞ if there is none. ``detectable_quantity`` is ε at the δ of the claim's first
    point, or the total variation if that point has ε = 0.
    """

    refuted: bool
    confidence: float
    epsilon: float
    delta: float
    proven_epsilon: float
    proven_delta: float
    least_detectable: dict[str, float]
    detectable_quantity: str

    def __str__(self) -> str:
        if self.refuted:
            proven = terminal_text(self.proven_delta, 3, DOWN)
            claimed = terminal_text(self.delta, 6)
            text = f"claimed delta({self.epsilon:.6g}) <= {claimed}, proven delta({self.epsilon:.6g}) >= {proven}"
            return f"refuted at {exact_percent_text(self.confidence)} confidence: {text}"
        finite = {pair: value for pair, value in self.least_detectable.items() if math.isfinite(value)}
        values = ", ".join(f"{significant_text(value, 3, UP)} ({pair})" for pair, value in finite.items())
        if values:
            power = (
                "this test would refute the claim with probability at least 1/2 if the true "
                f"{self.detectable_quantity} were at least {values}"
            )
        else:
            power = "this test has no power; use more runs"
        return f"not refuted at {exact_percent_text(self.confidence)} confidence; {power}"


def judge_points(rates: Rates, points: Points, runs: tuple[int, int], confidence: float, failure: float) -> Verdict:
    """Return the verdict on points (ε, δ), from bounds that hold together."""
    epsilon, delta = max(points, key=lambda point: rates.delta(point[0]) - point[1])
    proven = rates.delta(epsilon)
    refuted = proven > delta
    seen = {} if refuted else {pair.name: least_detectable(pair, points, runs, failure) for pair in REFERENCE_PAIRS}
    return Verdict(refuted, confidence, epsilon, delta, rates.epsilon(delta), proven, seen, detectable_quantity(points))


def detectable_quantity(points: Points) -> str:
    """Return the name of the quantity in ``Verdict.least_detectable``."""
    epsilon, delta = points[0]
    return f"epsilon at delta = {terminal_text(delta, 6)}" if epsilon > 0 else "total variation"


def exact_percent_text(confidence: float) -> str:
    """Return a probability in percent with all of its digits, so that it is not rounded to 100 %.

    >>> exact_percent_text(0.99), exact_percent_text(0.999999999999)
    ('99 %', '99.9999999999 %')
    """
    digits = f"{exact_decimal_product(Decimal(100), Decimal(repr(confidence))):f}"
    return f"{digits.rstrip('0').rstrip('.') if '.' in digits else digits} %"


@dataclass(frozen=True, slots=True, eq=False)
class Finding:
    """Lower bounds on the privacy loss between two distributions, which hold together with probability ``confidence``.

    ``runs`` are the sizes of both samples. ``failure`` is the probability with which the bounds at all thresholds may
    fail; ``points`` is the claim for which further events were chosen, if any.
    """

    rates: Rates
    runs: tuple[int, int]
    confidence: float
    failure: float
    points: Points

    def epsilon(self, delta: float) -> float:
        """Return a lower bound on the ε at this δ, for the worse of the two directions; 0 if nothing is proven."""
        return self.rates.epsilon(check_probability("delta", delta))

    def delta(self, epsilon: float) -> float:
        """Return a lower bound on the δ at this ε ≥ 0, for the worse of the two directions."""
        return self.rates.delta(check_non_negative("epsilon", epsilon))

    def total_variation(self) -> float:
        """Return a lower bound on the total variation η: the best attacker is right at least (1 + η)/2 of the time."""
        return self.rates.total_variation()

    def true_positive_rate(self, false_positive_rate: float) -> float:
        """Return a lower bound on the best true-positive rate, for the first input, at this false-positive rate."""
        rate = check_inner_probability("false_positive_rate", false_positive_rate)
        return float(self.rates.true_positives_at(np.array([rate]))[0])

    def tradeoff(self, false_positive_rate: float) -> float:
        """Return an upper bound on the trade-off curve: on the least type-II error at this type-I error."""
        return 1 - self.true_positive_rate(false_positive_rate)

    @property
    def curve_points(self) -> tuple[Floats, Floats]:
        """The corners of the curve: false-positive rates in ascending order, and true-positive rates."""
        return self.rates.false_positive, self.rates.true_positive

    def against(self, claim: Claimed) -> Verdict:
        """Return whether the claim is refuted, and if not, which ε this test could have detected.

        ``claim`` is a ``Budget``, ``Guarantee``, ``PrivacyLoss`` or points (ε, δ). A true claim is refuted with
        probability at most 1 − ``confidence``, even if it is chosen after looking at the scores.
        """
        return judge_points(self.rates, claimed_points(claim), self.runs, self.confidence, self.failure)
