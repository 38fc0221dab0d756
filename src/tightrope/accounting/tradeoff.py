"""From a privacy profile to the trade-off function (theory §1, duality): how much is caught, and how much is missed.

At a false-positive rate t the best attack catches inf_ε δ(ε) + e^ε t, and misses sup_ε 1 − δ(ε) − e^ε t. Where next to
nothing is missed, that is made no difference of numbers near one: below ε = 0 it is e^ε (1 − t − δ'(−ε)) with δ' of the
reverse order, which is small there; above, 1 − δ is asked of the law itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import scipy

from tightrope.accounting.bounds import Interval

# The least value of a function of ε that is convex in γ = e^ε, and known at each ε from both sides.
#
# Any ε gives an upper bound. A lower one comes from four points a < b < c < d: where the function is certainly higher
# at b and at c than at some ε between them, its least value lies there, above both chords a–b and c–d drawn on, so no
# lower than where these cross (``docs/proofs/chords.md``). At a kink they cross in the least value itself. Elsewhere
# the gap is of second order in their distance, which shrinks until the function's own brackets are no narrower.

Bracket = Callable[[float], Interval]
Key = Callable[[float], float]
UNIT = 1e-12
"""Losses below it are not told apart."""
HIGHEST = 1500.0
"""No least value lies further up: e^ε t is more than one there, whatever t is."""
NEAR, FAR = 1e-3, 0.1
"""How well, in places, the least value is found before chords are drawn, and that of a rough bound."""
RISEN = 1.5
FIRST = 1e-4
"""First distance of the chords, relative to ε."""
ROUNDS = 20
STALLED = 3
"""So many rounds that have not halved the gap are the last."""
GROWTH, FURTHER = 32.0, 3.0
CLOSE = 2e-14
"""Relative gap that is good enough."""
ROOM_TO_RISE = 4.0
"""What the function should rise by from the best ε to the chords, in widths of its own bracket."""
NARROWEST, HALF, TRIES = 1e-3, 0.5, 4
LARGEST_LOSS = 700.0
"""Beyond this many nats e^ε leaves double precision."""
CONVEX_ROUNDING = 2e-15


class Seen(NamedTuple):
    """An ε, and what the function is there from below and above."""

    epsilon: float
    low: float
    high: float


class Around(NamedTuple):
    """Five ε in order: the function is certainly higher at the second and at the fourth than in the middle."""

    far: Seen
    left: Seen
    best: Seen
    right: Seen
    farther: Seen

    def joined(self, new: Seen) -> Around:
        """With what was seen at one more ε between the second and the fourth, where that says more."""
        _, left, best, right, _ = self
        if not left.epsilon < new.epsilon < right.epsilon:
            return self
        if new.high < best.high:
            return self._replace(best=new).joined(best)
        if not new.low > best.high:
            return self
        before = new.epsilon < best.epsilon
        return self._replace(far=left, left=new) if before else self._replace(right=new, farther=right)


class Least(NamedTuple):
    """Where the least value was seen, and bounds on it; the lower one is −∞ where nothing was shown."""

    epsilon: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Scale:
    """Places around an origin: ε = origin + unit · sinh(place), fine beside it and coarse far out."""

    origin: float = 0.0
    unit: float = UNIT

    def epsilon(self, place: float) -> float:
        return self.origin + self.unit * math.sinh(place)

    def place(self, epsilon: float) -> float:
        return math.asinh((epsilon - self.origin) / self.unit)


FROM_ZERO = Scale()
"""Equally fine for small and for large ε."""


def least_value(value: Bracket, start: float, key: Key, floor: float, rough: Key | None = None) -> Least:
    """Of ``value``, sought from ``start`` down to ``floor``; ``key`` rises, and tells values apart on its own scale.

    ``rough``: an upper bound of the value that costs little and is least nearby, if one is known. It saves evaluations.
    """
    asked = cache(value)
    scale = FROM_ZERO if rough is None else _scale(rough, start, floor)
    start = start if scale is FROM_ZERO else scale.origin
    return _pinned(asked, _sought(lambda epsilon: key(asked(epsilon)[1]), scale, (start, floor), NEAR), floor)


def _scale(rough: Key, start: float, floor: float) -> Scale:
    """Where the rough bound is least, and how far from there it rises by half."""
    origin = _sought(rough, FROM_ZERO, (start, floor), FAR)
    lowest, unit = rough(origin), max(abs(origin), UNIT) * FIRST
    if not lowest < rough(floor):
        return FROM_ZERO
    while unit < 1 and max(rough(origin - unit), rough(origin + unit)) < RISEN * lowest:
        unit *= 2
    return Scale(origin, unit)


def _sought(height: Key, scale: Scale, ends: tuple[float, float], error: float) -> float:
    """The ε of the least height: stride downhill until it rises, then search between."""

    def at(place: float) -> float:
        return height(scale.epsilon(place))

    low, middle, high = _around(at, *(scale.place(end) for end in (*ends, HIGHEST)))
    found = scipy.optimize.minimize_scalar(at, bounds=(low, high), method="bounded", options={"xatol": error})
    return scale.epsilon(min((middle, float(found.x)), key=at))


def _around(height: Key, start: float, floor: float, highest: float) -> tuple[float, float, float]:
    """Three places of which the middle is no higher than the others, or the last of them where it falls to the end."""
    lowest = height(start)
    stride = -1.0 if height(start - 1.0) < lowest else 1.0
    before, middle = start - stride, start
    while floor < middle < highest:
        after = max(middle + stride, floor)
        value = height(after)
        if not value < lowest:
            return min(before, after), middle, max(before, after)
        before, middle, lowest, stride = middle, after, value, 1.5 * stride
    return min(before, middle), middle, max(before, middle)


def _pinned(value: Bracket, best: float, floor: float) -> Least:
    """Chords on both sides of the best ε: wider until the function certainly rises to them, then as near as it does."""

    def evaluate_bracket(epsilon: float) -> Seen:
        return Seen(epsilon, *value(epsilon))

    places, low, gaps = _risen(evaluate_bracket, evaluate_bracket(best), floor), -math.inf, [math.inf] * STALLED
    if isinstance(places, Seen):
        return Least(places.epsilon, low, places.high)
    for _ in range(ROUNDS):
        crossing, bound = _crossing(places)
        low = max(low, bound)
        gaps.append(places.best.high - low)
        if gaps[-1] <= CLOSE * abs(places.best.high) or gaps[-1] > HALF * gaps[-1 - STALLED]:
            break
        # Between the crossing and the best ε, halfway in orders of magnitude: chords cross before a kink, not behind.
        apart = places.best.epsilon - crossing
        # Where the parabola through the upper ends at the middle three is lowest.
        vertex_best = places.best
        (left, down), (right, up) = (
            (end.epsilon - vertex_best.epsilon, end.high - vertex_best.high) for end in (places.left, places.right)
        )
        bend = down / left - up / right
        for epsilon in (
            crossing,
            crossing + math.copysign(math.sqrt(abs(apart) * 4 * math.ulp(max(abs(crossing), UNIT))), apart),
            vertex_best.epsilon + ((down / left * right - up / right * left) / bend / 2 if bend < 0 else 0.0),
        ):
            places = places.joined(evaluate_bracket(epsilon))
        places = _nearer(evaluate_bracket, places)
    return Least(places.best.epsilon, low, places.best.high)


def _risen(seen: Callable[[float], Seen], best: Seen, floor: float) -> Around | Seen:
    """Places on both sides to which the function certainly rises; the best ε alone where there are none."""
    ends: list[Seen] = []
    for sign in (-1, 1):
        reach, end = FIRST * max(abs(best.epsilon), UNIT), best
        while not end.low > best.high:
            end = seen(best.epsilon + sign * reach)
            best = min(best, end, key=lambda place: place.high)
            if not (end.low > best.high or floor <= end.epsilon <= HIGHEST):
                return best
            reach *= GROWTH if reach < 1 else FURTHER
        ends.append(end)
    left, right = ends
    return Around(seen(2 * left.epsilon - best.epsilon), left, best, right, seen(2 * right.epsilon - best.epsilon))


def _nearer(seen: Callable[[float], Seen], places: Around) -> Around:
    """Both chords as near as the function still rises to them by somewhat more than what it is known to."""
    best = places.best
    own = ROOM_TO_RISE * max(best.high - best.low, CONVEX_ROUNDING * abs(best.high))
    for side, sign in ((places.left, -1), (places.right, 1)):
        reach, rise = abs(side.epsilon - best.epsilon), side.low - best.high
        nearer = _distance(reach, rise / own)
        if nearer < reach:
            tried = [seen(best.epsilon + sign * nearer)]
            while len(tried) < TRIES and not tried[-1].low > best.high:
                tried.append(seen((tried[-1].epsilon + side.epsilon) / 2))
            twice = seen(best.epsilon + sign * 2 * nearer) if len(tried) == 1 else side
            places = places.joined(twice).joined(tried[-1])
    return places


def _distance(reach: float, ratio: float) -> float:
    """Where a rise would be less by this ratio: e^ε's far out, else a parabola's; the same where that gains little."""
    if reach > 1 + math.log(max(ratio, 1.0)):
        return reach - math.log(max(ratio, 1.0)) if ratio > math.e else reach
    nearer = reach * max(math.sqrt(1 / ratio), NARROWEST) if ratio > 1 else reach
    return nearer if nearer < HALF * reach else reach


def _crossing(places: Around) -> tuple[float, float]:
    """The ε where both chords cross, and a lower bound, the least value being between them.

    Left of any place before the crossing the left chord is above the right one there; right of any place behind it the
    right chord is above the left one. So each chord needs the other for the place alone.
    """
    first, second, best, third, fourth = places
    if not first.epsilon < second.epsilon < best.epsilon < third.epsilon < fourth.epsilon:
        return best.epsilon, -math.inf  # too near to each other to be told apart
    if not best.epsilon - second.epsilon < LARGEST_LOSS > fourth.epsilon - best.epsilon:
        return best.epsilon, -math.inf
    b, c = math.exp(second.epsilon - best.epsilon), math.exp(third.epsilon - best.epsilon)
    down = (first.high - second.low) / (b * -math.expm1(first.epsilon - second.epsilon))
    up = (fourth.high - third.low) / (c * math.expm1(fourth.epsilon - third.epsilon))
    if not (down > 0 < up and math.isfinite(up + down)):
        return best.epsilon, -math.inf
    error = CONVEX_ROUNDING * (2 + fourth.epsilon - first.epsilon)
    off = error * (abs(third.low) + abs(second.low) + up * c + down * b) / (up + down)
    place = min(max((second.low - third.low + down * b + up * c) / (up + down), b), c)
    falling, rising = down * (place + off - b), up * (c - place + off)
    left = second.low - falling - error * (abs(second.low) + falling)
    right = third.low - rising - error * (abs(third.low) + rising)
    return best.epsilon + math.log(place), min(max(left, right), second.low, third.low)


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
    found = least_value(
        caught, top, math.log, LOWEST, lambda epsilon: ceiling(epsilon) + weighed(epsilon, rate)[1] - rate
    )
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
    # 1 − t; itself where nothing was rounded.
    rest = 1.0 - rate
    kept = (rest, rest) if 1.0 - rest == rate else (math.nextafter(rest, 0.0), math.nextafter(rest, 1.0))
    if kept[1] <= back.infinite_mass[0]:
        return 0.0, 0.0

    def gained(epsilon: float) -> Interval:
        """What is missed, with its sign changed."""
        low, high = _supporting_line(ahead, rate, epsilon) if epsilon >= 0 else _mirrored(back, (rate, kept), epsilon)
        return -high, -low

    found = least_value(gained, -1.0, lambda value: math.asinh(value / FAINT_GAIN), FAINTEST)
    # The least γ seen at which nothing is missed: concave and at most γ (1 − t), it is no more than that anywhere.
    places = (found.epsilon + apart for apart in (0.0, *APART, 100.0, 1000.0))
    high = min(
        -found.low,
        next((math.exp(min(place, 0.0)) for place in places if gained(place)[0] >= 0), 1.0) * kept[1] * (1 + 1e-15),
        1.0,
    )
    return max(0.0, -found.high), max(high, math.ulp(0.0))


def _supporting_line(ahead: Order, rate: float, epsilon: float) -> Interval:
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
