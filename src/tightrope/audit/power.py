"""What a test that refutes nothing would have seen: the least true ε that it refutes half of the time, or oftener.

The probability to refute is bounded from below: one event at a fixed threshold, its two counts independent binomials,
every pair of counts that refutes added up. Scores are taken to be likelihood ratios: a weaker attack sees less.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import special, stats

from tightrope.audit.bands import at_least, at_most
from tightrope.audit.claims import Points
from tightrope.numerics.arrays import Floats

HALF = 0.5
LARGEST_LAW = 64.0
"""Sizes of a law beyond which nothing is sought."""
HALVINGS_OF_LAW = 16
DECIMALS = 1e-9
"""Taken off a probability that is added up in floats."""
UNSEEN = 1e-13
"""Counts in tails of this probability are left out: the sum stays a lower bound."""
TRIED = 2
"""So many of the claim's points are tried, the most promising ones."""

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


def _response(size: float, delta: float | None) -> Events:
    leak = delta or 0.0
    share = (1 - leak) * special.expit(size)
    return np.array([(1 - leak) * special.expit(-size)]), np.array([leak + share])


def _laplace(size: float, _: float | None) -> Events:
    places = size * np.linspace(0.0, 1.0, 33)
    return 0.5 * np.exp(-places), 1 - 0.5 * np.exp(places - size)


def _gaussian(size: float, _: float | None) -> Events:
    places = np.linspace(-3.0, 6.0, 181) + size / 2
    return special.ndtr(-places), special.ndtr(size - places)


def _gaussian_number(size: float, delta: float | None) -> float:
    if delta is None:
        return float(2 * special.ndtr(size / 2) - 1)
    if delta == 0:
        return math.inf
    from tightrope.mechanisms.continuous.gaussian import gaussian

    return max(0.0, gaussian(scale=1 / size).loss.epsilon(delta))


LAWS = (
    Law("randomised response", _response, lambda size, delta: math.tanh(size / 2) if delta is None else size),
    Law(
        "Laplace",
        _laplace,
        lambda size, delta: -math.expm1(-size / 2) if delta is None else max(0.0, size + 2 * math.log1p(-delta)),
    ),
    Law("Gaussian", _gaussian, _gaussian_number),
)
"""Randomised response, with a leak of δ, is the easiest to tell apart of all that have that ε at δ."""


def least_seen(law: Law, points: Points, runs: tuple[int, int], failure: float) -> float:
    """The least ε at the δ of the first point (total variation where that has ε = 0) that is refuted half of the time.

    ∞ where none is.
    """
    delta = points[0][1] if points[0][0] > 0 else None

    def seen(size: float) -> bool:
        return chance_to_refute(law.events(size, delta), points, runs, failure) >= HALF

    low, high = 0.0, 1.0 / 16
    while not seen(high):
        low, high = high, 2 * high
        if high > LARGEST_LAW:
            return math.inf
    for _ in range(HALVINGS_OF_LAW):
        middle = (low + high) / 2
        low, high = (low, middle) if seen(middle) else (middle, high)
    return law.number(high, delta)


def chance_to_refute(events: Events, points: Points, runs: tuple[int, int], failure: float) -> float:
    """A lower bound on the probability that a law with these events is refuted, at one of them."""
    tried = sorted((_best(events, point, runs) for point in points), key=lambda one: -one.excess)[:TRIED]
    return max(_chance(one, runs, failure) for one in tried)


@dataclass(frozen=True, slots=True)
class _Event:
    """Its rates, the point (γ = e^ε, δ) that it is to exceed, and by how many standard deviations it does."""

    wrong: float
    found: float
    gamma: float
    delta: float
    excess: float


def _best(events: Events, point: tuple[float, float], runs: tuple[int, int]) -> _Event:
    """The event that exceeds the point most clearly."""
    wrong, found = events
    gamma = math.exp(min(point[0], 700.0))
    spread = (found * (1 - found) + 1 / runs[0]) / runs[0] + gamma**2 * (wrong * (1 - wrong) + 1 / runs[1]) / runs[1]
    excess = (found - gamma * wrong - point[1]) / np.sqrt(spread)
    i = int(np.argmax(excess))
    return _Event(float(wrong[i]), float(found[i]), gamma, point[1], float(excess[i]))


def _chance(event: _Event, runs: tuple[int, int], failure: float) -> float:
    """P(the bounds at the two counts refute), from the pairs that do."""
    low, high = (int(stats.binom.ppf(share, runs[0], event.found)) for share in (UNSEEN, 1 - UNSEEN))
    counts = np.arange(max(low, 0), high + 1)
    allowed = (at_least(runs[0], failure / 2)[counts] - event.delta) / event.gamma * (1 - DECIMALS)
    most = np.searchsorted(at_most(runs[1], failure / 2), allowed, side="left") - 1
    both = stats.binom.pmf(counts, runs[0], event.found) * stats.binom.cdf(most, runs[1], event.wrong)
    return float(both.sum()) - DECIMALS
