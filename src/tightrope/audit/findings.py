"""Results of an audit: simultaneous lower bounds, and tests of a claim against them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import singledispatch
from typing import Any, Self

import numpy as np
from scipy import special, stats

from tightrope.accounting.privacy_loss import PrivacyLoss
from tightrope.audit.rates import Rates, at_least, at_most
from tightrope.documents.budget import Budget, Guarantee, exact_product
from tightrope.documents.numbers import DOWN, UP, significant_text
from tightrope.errors import InputError
from tightrope.numerics.arrays import Floats
from tightrope.numerics.checks import check_probability, inner_probability, non_negative
from tightrope.numerics.rounding import to_float

# What is claimed, as points: δ(ε) is at most δ, rounded so that only what is truly above refutes it.

Points = tuple[tuple[float, float], ...]
Claimed = Budget | Guarantee | PrivacyLoss | Sequence[tuple[float, float]]
PLACES_LOOKED_AT = 24
"""The number of points at which a loss is evaluated."""
LEAST_DELTA = 1e-5
"""From ε = 0 to where its δ is this: events that are rarer are seldom seen."""
CLAIMED = "a Budget, a Guarantee, a PrivacyLoss or points (epsilon, delta)"
TRY = "try tr.Budget(epsilon=1, delta=1e-8)"


def claimed_points(claim: Any) -> Points:
    """The points (ε, δ), in the claim's order; raises ``InputError`` for what claims nothing.

    >>> claimed_points([(1, 0.01)])
    ((1.0, 0.01),)
    """
    return _claimed_points(claim)


@singledispatch
def _claimed_points(claim: Any) -> Points:
    if not isinstance(claim, Sequence) or isinstance(claim, (str, bytes)) or not claim:
        raise InputError("claim", claim, CLAIMED, TRY)
    return _claimed_points(Budget(points=claim))


@_claimed_points.register
def _(claim: Budget) -> Points:
    return tuple((to_float(epsilon, "up"), to_float(delta, "up")) for epsilon, delta in claim.checked_points)


@_claimed_points.register
def _(claim: Guarantee) -> Points:
    finite = [(float(claim.epsilon), claim.delta)] if math.isfinite(claim.epsilon) else []
    return (*finite, (0.0, claim.total_variation))


@_claimed_points.register
def _(claim: PrivacyLoss) -> Points:
    largest = claim.epsilon(LEAST_DELTA)
    places = np.linspace(0.0, largest if math.isfinite(largest) else 1.0, PLACES_LOOKED_AT)
    return tuple(zip(places.tolist(), claim.delta(places).tolist(), strict=True))


# What a test that refutes nothing would have seen: the least true ε that it refutes half of the time, or oftener.
#
# The probability to refute is bounded from below: one event at a fixed threshold, its two counts independent
# binomials, every pair of counts that refutes added up. Scores are taken to be likelihood ratios: a weaker attack
# sees less.

HALF = 0.5
LARGEST_LAW = 64.0
"""Sizes of a law beyond which nothing is sought."""
HALVINGS_OF_LAW = 16
DECIMALS = 1e-9
"""Taken off a probability that is added up in floats."""
UNSEEN = 1e-13
"""Counts in tails of this probability are left out: the sum stays a lower bound."""
TRIED = 2
"""The number of the claim's points that are tried, the most promising ones."""

Events = tuple[Floats, Floats]
"""False- and true-positive rates of a law's events."""


@dataclass(frozen=True, slots=True)
class Law:
    """Pairs of laws with one knob: their events at a size, and the size at which they have a number.

    The number is the ε at ``delta`` or, where ``delta`` is None, the total variation.
    """

    name: str
    events: Callable[[float, float | None], Events]
    number: Callable[[float, float | None], float]


def _response_rates(size: float, delta: float | None) -> Events:
    leak = delta or 0.0
    share = (1 - leak) * special.expit(size)
    return np.array([(1 - leak) * special.expit(-size)]), np.array([leak + share])


def _laplace_rates(size: float, _: float | None) -> Events:
    places = size * np.linspace(0.0, 1.0, 33)
    return 0.5 * np.exp(-places), 1 - 0.5 * np.exp(places - size)


def _gaussian_rates(size: float, _: float | None) -> Events:
    places = np.linspace(-3.0, 6.0, 181) + size / 2
    return special.ndtr(-places), special.ndtr(size - places)


def _gaussian_number(size: float, delta: float | None) -> float:
    if delta is None:
        return float(2 * special.ndtr(size / 2) - 1)
    if delta == 0:
        return math.inf
    from tightrope.mechanisms.gaussian import gaussian

    return max(0.0, gaussian(scale=1 / size).loss.epsilon(delta))


LAWS = (
    Law("randomized response", _response_rates, lambda size, delta: math.tanh(size / 2) if delta is None else size),
    Law(
        "Laplace",
        _laplace_rates,
        lambda size, delta: -math.expm1(-size / 2) if delta is None else max(0.0, size + 2 * math.log1p(-delta)),
    ),
    Law("Gaussian", _gaussian_rates, _gaussian_number),
)
"""Randomized response, with a leak of δ, is the most distinguishable pair with that ε at δ."""


def least_seen(law: Law, points: Points, runs: tuple[int, int], failure: float) -> float:
    """The least ε at the δ of the first point (total variation where that has ε = 0) that is refuted half of the time.

    ∞ where none is.
    """
    delta = points[0][1] if points[0][0] > 0 else None

    def is_detected(size: float) -> bool:
        return chance_to_refute(law.events(size, delta), points, runs, failure) >= HALF

    low, high = 0.0, 1.0 / 16
    while not is_detected(high):
        low, high = high, 2 * high
        if high > LARGEST_LAW:
            return math.inf
    for _ in range(HALVINGS_OF_LAW):
        middle = (low + high) / 2
        low, high = (low, middle) if is_detected(middle) else (middle, high)
    return law.number(high, delta)


def chance_to_refute(events: Events, points: Points, runs: tuple[int, int], failure: float) -> float:
    """A lower bound on the probability that a law with these events is refuted, at one of them."""
    tried = sorted((_Event.clearest(events, point, runs) for point in points), key=lambda one: -one.excess)[:TRIED]
    return max(event.refutation_probability(runs, failure) for event in tried)


@dataclass(frozen=True, slots=True)
class _Event:
    """Its rates, the point (γ = e^ε, δ) that it is to exceed, and by how many standard deviations it does."""

    wrong: float
    found: float
    gamma: float
    delta: float
    excess: float

    @classmethod
    def clearest(cls, events: Events, point: tuple[float, float], runs: tuple[int, int]) -> Self:
        """Return the event that exceeds the point most clearly."""
        wrong, found = events
        gamma = math.exp(min(point[0], 700.0))
        spread = (found * (1 - found) + 1 / runs[0]) / runs[0]
        spread = spread + gamma**2 * (wrong * (1 - wrong) + 1 / runs[1]) / runs[1]
        excess = (found - gamma * wrong - point[1]) / np.sqrt(spread)
        i = int(np.argmax(excess))
        return cls(float(wrong[i]), float(found[i]), gamma, point[1], float(excess[i]))

    def refutation_probability(self, runs: tuple[int, int], failure: float) -> float:
        """Return P(the bounds at the two counts refute), from the pairs that do."""
        low, high = (int(stats.binom.ppf(share, runs[0], self.found)) for share in (UNSEEN, 1 - UNSEEN))
        counts = np.arange(max(low, 0), high + 1)
        allowed = (at_least(runs[0], failure / 2)[counts] - self.delta) / self.gamma * (1 - DECIMALS)
        most = np.searchsorted(at_most(runs[1], failure / 2), allowed, side="left") - 1
        both = stats.binom.pmf(counts, runs[0], self.found) * stats.binom.cdf(most, runs[1], self.wrong)
        return float(both.sum()) - DECIMALS


# Refuted, or not refuted and what would have been: an audit's answer to a claim.


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict on a claim δ(``epsilon``) ≤ ``delta``, at ``confidence``.

    ``proven_delta`` and ``proven_epsilon`` are the lower bounds found there: on δ at that ε, on ε at that δ. Of several
    points it is the one that is exceeded most. ``could_have_seen``: where nothing is refuted, by the name of a law the
    least ε at the δ of the claim's first point (total variation, where its ε is 0) that this test refutes at least
    half of the time, with as many runs and scores that are likelihood ratios; ∞ where no ε is.
    """

    refuted: bool
    confidence: float
    epsilon: float
    delta: float
    proven_epsilon: float
    proven_delta: float
    could_have_seen: dict[str, float]
    seen_of: str

    def __str__(self) -> str:
        if self.refuted:
            proven = significant_text(self.proven_delta, 3, DOWN)
            told = f"delta({self.epsilon:.6g}) <= {self.delta:.6g} was claimed, delta >= {proven}"
            return f"refuted at {in_percent(self.confidence)}: {told}"
        least = {law: size for law, size in self.could_have_seen.items() if math.isfinite(size)}
        seen = ", ".join(f"{significant_text(size, 3, UP)} ({law})" for law, size in least.items())
        told = f"could have seen {self.seen_of} >= {seen}" if seen else "could have seen nothing: more runs"
        return f"not refuted at {in_percent(self.confidence)}; {told}"


def judge_points(rates: Rates, points: Points, runs: tuple[int, int], confidence: float, failure: float) -> Verdict:
    """The verdict on points (ε, δ), from bounds that hold together."""
    epsilon, delta = max(points, key=lambda point: rates.delta(point[0]) - point[1])
    proven = rates.delta(epsilon)
    refuted = proven > delta
    seen = {} if refuted else {law.name: least_seen(law, points, runs, failure) for law in LAWS}
    return Verdict(refuted, confidence, epsilon, delta, rates.epsilon(delta), proven, seen, seen_of(points))


def seen_of(points: Points) -> str:
    """The quantity that ``could_have_seen`` holds."""
    epsilon, delta = points[0]
    return f"epsilon at delta = {delta:g}" if epsilon > 0 else "total variation"


def in_percent(confidence: float) -> str:
    """All of its digits: it must not be rounded to certainty.

    >>> in_percent(0.99), in_percent(0.999999999999)
    ('99 %', '99.9999999999 %')
    """
    digits = f"{exact_product(Decimal(100), Decimal(repr(confidence))):f}"
    return f"{digits.rstrip('0').rstrip('.') if '.' in digits else digits} %"


@dataclass(frozen=True, slots=True, eq=False)
class Finding:
    """Lower bounds on what two laws give away, all of them together with probability ``confidence``.

    ``runs`` are the sizes of both samples; ``failure`` is the chance to fail that the bounds at every threshold have,
    and ``points`` what was to be refuted when they were made.
    """

    rates: Rates
    runs: tuple[int, int]
    confidence: float
    failure: float
    points: Points

    def epsilon(self, delta: float) -> float:
        """A lower bound on the ε at this δ, for the worse of the two directions; 0 where nothing was seen."""
        return self.rates.epsilon(check_probability("delta", delta))

    def delta(self, epsilon: float) -> float:
        """A lower bound on the δ at this ε ≥ 0, for the worse of the two directions."""
        return self.rates.delta(non_negative("epsilon", epsilon))

    def total_variation(self) -> float:
        """A lower bound on the total variation η: an attacker is right at least (1 + η)/2 of the time."""
        return self.rates.total_variation()

    def true_positive_rate(self, false_positive_rate: float) -> float:
        """A lower bound on the true-positive rate for the first input's runs at this false-positive rate."""
        rate = inner_probability("false_positive_rate", false_positive_rate)
        return float(self.rates.true_positives_at(np.array([rate]))[0])

    def tradeoff(self, false_positive_rate: float) -> float:
        """An upper bound on the trade-off curve: the type-II error at this type-I error, at most."""
        return 1 - self.true_positive_rate(false_positive_rate)

    @property
    def curve_points(self) -> tuple[Floats, Floats]:
        """Corners of the curve: false-positive rates in ascending order, and true-positive rates."""
        return self.rates.false_positive, self.rates.true_positive

    def against(self, claim: Claimed) -> Verdict:
        """Return whether the claim is refuted, and if not, how large an ε this test would have seen.

        ``claim`` is a ``Budget``, ``Guarantee``, ``PrivacyLoss`` or points (ε, δ). A claim that holds is refuted with
        probability 1 − ``confidence`` at most, and may be chosen after the scores were seen.
        """
        return judge_points(self.rates, claimed_points(claim), self.runs, self.confidence, self.failure)
