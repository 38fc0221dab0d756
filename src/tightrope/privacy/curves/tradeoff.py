"""From a privacy profile to the trade-off function (theory §1, duality): how much is caught, and how much is missed.

At a false-positive rate t the best attack catches inf_ε δ(ε) + e^ε t, and misses sup_ε 1 − δ(ε) − e^ε t. Where next to
nothing is missed, that is made no difference of numbers near one: below ε = 0 it is e^ε (1 − t − δ'(−ε)) with δ' of the
reverse order, which is small there; above, 1 − δ is asked of the law itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from tightrope.privacy.curves.convex import Bracket, least
from tightrope.privacy.laws.interval import Interval

WIDE_BOUND = 1e-6
"""Beyond this relative width the coarse bound is tried, too."""
APART = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 5.0, 20.0)
"""Distances in ε at which convexity is used for the coarse bound; the best is taken."""
SPLIT, FARTHEST = 700.0, 1400.0
"""Beyond the first e^ε is two factors; beyond the second, e^ε t is more than one for every t that is a double."""
FAINT_GAIN = 1e-300
LOWEST, FAINTEST = -40.0, -744.0
"""Below the first ε the sum is one; below the second e^ε is no double."""


def true_positive_rate(
    delta_beside: Callable[[float, float], Interval],
    rate: float,
    infinite_mass: Interval,
    ceiling: Callable[[float], float],
) -> Interval:
    """Bounds on inf_ε δ(ε) + e^ε·rate, to full relative accuracy; the sum is convex in γ = e^ε.

    ``delta_beside`` is asked for δ(ε) and told what is added to it: where δ does not count, it need not be known.
    ``ceiling`` is an upper bound on δ(ε) that costs little.
    """
    if rate == 0:
        return infinite_mass

    def caught(epsilon: float) -> Interval:
        least_added, added = weighed(epsilon, rate)
        low, high = delta_beside(epsilon, least_added)
        return math.nextafter(low + least_added, 0.0), math.nextafter(high + added, math.inf)

    top = -math.log(rate)
    found = least(caught, top, math.log, LOWEST, lambda epsilon: ceiling(epsilon) + weighed(epsilon, rate)[1] - rate)
    low = found.low
    if low < found.high * (1 - WIDE_BOUND):
        low = max(low, _below(caught, found.epsilon, top))
    return min(max(low, rate), 1.0), min(found.high, 1.0)


def weighed(epsilon: float, rate: float) -> Interval:
    """e^ε·t from below and above: a product, as exp(ε + log t) would lose |log t| roundings."""
    if epsilon > FARTHEST:
        return 1.0, math.inf
    half = math.exp(epsilon / 2) if epsilon > SPLIT else 1.0
    value = rate * half * half if epsilon > SPLIT else rate * math.exp(epsilon)
    return math.nextafter(value * (1 - 1e-15), 0.0), math.nextafter(value * (1 + 1e-15), math.inf)


def _below(caught: Bracket, best: float, top: float) -> float:
    """A lower bound on the least sum, from its brackets at the best ε and on both sides.

    Between the sides convexity bounds it by both chords drawn on; left of them it can sink on to γ = 0 no faster than
    it does between, and right of them until γ = 1/rate, from where it is at least one.
    """
    here, found = caught(best), 0.0
    for apart in APART:
        left, right = caught(best - apart), caught(best + apart)
        down, up = -math.expm1(-apart), math.expm1(apart)
        drop = max((left[1] - here[0]) / down * up, (right[1] - here[0]) / up * down)
        beyond = max(0.0, math.exp(min(top - best, 700.0)) - 1 - up)
        ends = (
            left[0] - max(0.0, here[1] - left[0]) * (1 - down) / down,
            right[0] - max(0.0, here[1] - right[0]) * beyond / up,
        )
        found = max(found, min(here[0] - max(0.0, drop), *ends))
    return found


class Order(NamedTuple):
    """One order of a pair: bounds on δ(ε) and on 1 − δ(ε) at ε ≥ 0, and its infinite mass."""

    both: Callable[[float], tuple[Interval, Interval]]
    infinite_mass: Interval


def type_two_error(ahead: Order, back: Order, rate: float) -> Interval:
    """Bounds on f(t) = sup_ε 1 − δ(ε) − e^ε t, to relative accuracy however little is missed; concave in γ = e^ε."""
    kept = _kept(rate)
    if kept[1] <= back.infinite_mass[0]:
        return 0.0, 0.0

    def gained(epsilon: float) -> Interval:
        """What is missed, with its sign changed."""
        low, high = _met(ahead, rate, epsilon) if epsilon >= 0 else _mirrored(back, (rate, kept), epsilon)
        return -high, -low

    found = least(gained, -1.0, lambda value: math.asinh(value / FAINT_GAIN), FAINTEST)
    high = min(-found.low, _beyond(gained, found.epsilon) * kept[1] * (1 + 1e-15), 1.0)
    return max(0.0, -found.high), max(high, math.ulp(0.0))


def _kept(rate: float) -> Interval:
    """1 − t; itself where nothing was rounded."""
    rest = 1.0 - rate
    return (rest, rest) if 1.0 - rest == rate else (math.nextafter(rest, 0.0), math.nextafter(rest, 1.0))


def _met(ahead: Order, rate: float, epsilon: float) -> Interval:
    """(1 − δ(ε)) − e^ε t at ε ≥ 0."""
    (_, (low, high)), (least_added, added) = ahead.both(epsilon), weighed(epsilon, rate)
    return math.nextafter(low - added, -math.inf), math.nextafter(high - least_added, math.inf)


def _mirrored(back: Order, rates: tuple[float, Interval], epsilon: float) -> Interval:
    """e^ε (1 − t − δ'(−ε)) below 0; the same with 1 − δ' where that is what is known better."""
    (rate, kept), (told, rest) = rates, back.both(-epsilon)
    low = math.nextafter(max(kept[0] - told[1], rest[0] - rate), -math.inf)
    high = math.nextafter(min(kept[1] - told[0], rest[1] - rate), math.inf)
    return _stretched(low, epsilon, -1.0), _stretched(high, epsilon, 1.0)


def _stretched(value: float, epsilon: float, sign: float) -> float:
    """A value times e^ε, rounded to the side of the sign."""
    found = abs(value) * math.exp(epsilon) * (1 + math.copysign(1e-15, sign * value))
    return math.nextafter(math.copysign(found, value), math.copysign(math.inf, sign))


def _beyond(gained: Bracket, best: float) -> float:
    """The least γ seen at which nothing is missed: concave and at most γ (1 − t), it is no more than that anywhere."""
    places = (best + apart for apart in (0.0, *APART, 100.0, 1000.0))
    return next((math.exp(min(place, 0.0)) for place in places if gained(place)[0] >= 0), 1.0)
