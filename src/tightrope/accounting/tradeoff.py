"""From a privacy profile to the trade-off function (theory §1, duality): true-positive rate and type-II error.

At a false-positive rate t the best attack has the true-positive rate inf_ε δ(ε) + e^ε t and the type-II error
sup_ε 1 − δ(ε) − e^ε t. A type-II error near 0 is not computed as a difference of numbers near one: below ε = 0 it is
e^ε (1 − t − δ'(−ε)) with the small δ' of the reverse order; above, the distribution itself gives 1 − δ.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import scipy

from tightrope.accounting.bounds import Interval

# Minimize a function of ε that is convex in γ = e^ε, given lower and upper bounds on its value at each ε.
#
# Any ε gives an upper bound. A lower one comes from four points a < b < c < d: if the function is certainly higher
# at b and at c than at some ε between them, its minimum lies there, above both extended chords a–b and c–d, so at
# least as high as their crossing (``docs/proofs/chords.md``). At a kink they cross in the minimum itself. Elsewhere
# the gap is of second order in their distance, which shrinks until the bounds on the function are as wide as the gap.

Bracket = Callable[[float], Interval]
Key = Callable[[float], float]
UNIT = 1e-12
"""Smaller losses are not distinguished from 0."""
HIGHEST = 1500.0
"""Largest ε searched for the minimum: above it e^ε t exceeds one for every positive t."""
NEAR, FAR = 1e-3, 0.1
"""Tolerances, in places, of the minimum before chords are drawn, and of the minimum of a rough bound."""
RISEN = 1.5
FIRST = 1e-4
"""First distance of the chords, relative to ε."""
ROUNDS = 20
STALLED = 3
"""Stop if this many rounds have not halved the gap."""
GROWTH, FURTHER = 32.0, 3.0
CLOSE = 2e-14
"""Relative gap that is good enough."""
ROOM_TO_RISE = 4.0
"""Required rise of the function from the best ε to the chords, in widths of the bounds on its value."""
NARROWEST, HALF, TRIES = 1e-3, 0.5, 4
LARGEST_LOSS = 700.0
"""Beyond this many nats e^ε leaves double precision."""
CONVEX_ROUNDING = 2e-15


class EvaluatedPoint(NamedTuple):
    """An ε with a lower and an upper bound on the function there."""

    epsilon: float
    low: float
    high: float


class MinimumBracket(NamedTuple):
    """Five ε in ascending order: the function is certainly higher at the second and at the fourth than at the third."""

    far: EvaluatedPoint
    left: EvaluatedPoint
    best: EvaluatedPoint
    right: EvaluatedPoint
    farther: EvaluatedPoint

    def join_bounds(self, new: EvaluatedPoint) -> MinimumBracket:
        """Add the value at one more ε between the second and the fourth, if it is informative."""
        _, left, best, right, _ = self
        if not left.epsilon < new.epsilon < right.epsilon:
            return self
        if new.high < best.high:
            return self._replace(best=new).join_bounds(best)
        if not new.low > best.high:
            return self
        before = new.epsilon < best.epsilon
        return self._replace(far=left, left=new) if before else self._replace(right=new, farther=right)


class LeastValue(NamedTuple):
    """The ε with the least value found, and bounds on the minimum; the lower bound is −∞ if none was proven."""

    epsilon: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class SinhScale:
    """Places around an origin: ε = origin + unit · sinh(place), fine near it and coarse far away."""

    origin: float = 0.0
    unit: float = UNIT

    def epsilon_at(self, place: float) -> float:
        return self.origin + self.unit * math.sinh(place)

    def scaled_position(self, epsilon: float) -> float:
        return math.asinh((epsilon - self.origin) / self.unit)


FROM_ZERO = SinhScale()
"""Equally fine for small and for large ε."""


def least_value(value: Bracket, start: float, key: Key, floor: float, rough: Key | None = None) -> LeastValue:
    """Minimize ``value``, searching from ``start`` down to ``floor``; ``key`` is increasing and rescales values.

    ``rough``: a cheap upper bound of the value that has its minimum nearby, if one is known. It saves evaluations.
    """
    asked = cache(value)
    scale = FROM_ZERO if rough is None else _rough_scale(rough, start, floor)
    start = start if scale is FROM_ZERO else scale.origin
    return _chords_at_minimum(
        asked, _minimizing_epsilon(lambda epsilon: key(asked(epsilon)[1]), scale, (start, floor), NEAR), floor
    )


def _rough_scale(rough: Key, start: float, floor: float) -> SinhScale:
    """Return a scale around the minimum of the rough bound, with the distance at which it rises by half as the unit."""
    origin = _minimizing_epsilon(rough, FROM_ZERO, (start, floor), FAR)
    lowest, unit = rough(origin), max(abs(origin), UNIT) * FIRST
    if not lowest < rough(floor):
        return FROM_ZERO
    while unit < 1 and max(rough(origin - unit), rough(origin + unit)) < RISEN * lowest:
        unit *= 2
    return SinhScale(origin, unit)


def _minimizing_epsilon(height: Key, scale: SinhScale, ends: tuple[float, float], error: float) -> float:
    """Return the ε of the minimal height: stride downhill until it rises, then search between."""

    def height_at(place: float) -> float:
        return height(scale.epsilon_at(place))

    low, middle, high = _bracket_minimum(height_at, *(scale.scaled_position(end) for end in (*ends, HIGHEST)))
    found = scipy.optimize.minimize_scalar(height_at, bounds=(low, high), method="bounded", options={"xatol": error})
    return scale.epsilon_at(min((middle, float(found.x)), key=height_at))


def _bracket_minimum(height: Key, start: float, floor: float, highest: float) -> tuple[float, float, float]:
    """Return three places, the lowest in the middle, or at the end of the range if the height falls to there."""
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


def _chords_at_minimum(value: Bracket, best: float, floor: float) -> LeastValue:
    """Bound the minimum by chords on both sides of the best ε.

    They move outwards until the function certainly rises to them, then as near as it still does.
    """

    def evaluate_bracket(epsilon: float) -> EvaluatedPoint:
        return EvaluatedPoint(epsilon, *value(epsilon))

    places, low, gaps = (
        _points_above_minimum(evaluate_bracket, evaluate_bracket(best), floor),
        -math.inf,
        [math.inf] * STALLED,
    )
    if isinstance(places, EvaluatedPoint):
        return LeastValue(places.epsilon, low, places.high)
    for _ in range(ROUNDS):
        crossing, bound = _chord_crossing(places)
        low = max(low, bound)
        gaps.append(places.best.high - low)
        if gaps[-1] <= CLOSE * abs(places.best.high) or gaps[-1] > HALF * gaps[-1 - STALLED]:
            break
        # Between the crossing and the best ε, halfway in orders of magnitude: chords cross before a kink, not behind.
        apart = places.best.epsilon - crossing
        # The vertex of the parabola through the upper ends at the middle three.
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
            places = places.join_bounds(evaluate_bracket(epsilon))
        places = _tighten_chords(evaluate_bracket, places)
    return LeastValue(places.best.epsilon, low, places.best.high)


def _points_above_minimum(
    seen: Callable[[float], EvaluatedPoint], best: EvaluatedPoint, floor: float
) -> MinimumBracket | EvaluatedPoint:
    """Return places on both sides to which the function certainly rises; or the best ε alone if there are none."""
    ends: list[EvaluatedPoint] = []
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
    return MinimumBracket(
        seen(2 * left.epsilon - best.epsilon), left, best, right, seen(2 * right.epsilon - best.epsilon)
    )


def _tighten_chords(seen: Callable[[float], EvaluatedPoint], places: MinimumBracket) -> MinimumBracket:
    """Move both chords as near as the function still rises to them by clearly more than the width of its bounds."""
    best = places.best
    own = ROOM_TO_RISE * max(best.high - best.low, CONVEX_ROUNDING * abs(best.high))
    for side, sign in ((places.left, -1), (places.right, 1)):
        reach, rise = abs(side.epsilon - best.epsilon), side.low - best.high
        nearer = _scaled_distance(reach, rise / own)
        if nearer < reach:
            tried = [seen(best.epsilon + sign * nearer)]
            while len(tried) < TRIES and not tried[-1].low > best.high:
                tried.append(seen((tried[-1].epsilon + side.epsilon) / 2))
            twice = seen(best.epsilon + sign * 2 * nearer) if len(tried) == 1 else side
            places = places.join_bounds(twice).join_bounds(tried[-1])
    return places


def _scaled_distance(reach: float, ratio: float) -> float:
    """Return the distance at which a rise would be smaller by this ratio: exponential far away, otherwise parabolic.

    Returns the same distance if that gains little.
    """
    if reach > 1 + math.log(max(ratio, 1.0)):
        return reach - math.log(max(ratio, 1.0)) if ratio > math.e else reach
    nearer = reach * max(math.sqrt(1 / ratio), NARROWEST) if ratio > 1 else reach
    return nearer if nearer < HALF * reach else reach


def _chord_crossing(places: MinimumBracket) -> tuple[float, float]:
    """Return the ε where both chords cross, and a lower bound on the minimum, which lies between them.

    Left of the crossing, the left chord is above the right one; right of it, the right chord is above the left one. So
    each chord needs the other only for the position.
    """
    first, second, best, third, fourth = places
    if not first.epsilon < second.epsilon < best.epsilon < third.epsilon < fourth.epsilon:
        return best.epsilon, -math.inf  # too close to each other to be distinguished
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
"""Beyond the first, e^ε is split into two factors; beyond the second, e^ε t exceeds one for every positive double t."""
FAINT_GAIN = 1e-300
LOWEST, FAINTEST = -40.0, -744.0
"""Below the first ε the sum is one; below the second, e^ε underflows."""


def true_positive_rate(
    delta_beside: Callable[[float, float], Interval],
    rate: float,
    infinite_mass: Interval,
    ceiling: Callable[[float], float],
) -> Interval:
    """Bounds on inf_ε δ(ε) + e^ε·rate, to full relative accuracy; the sum is convex in γ = e^ε.

    ``delta_beside`` receives ε and the amount that is added to δ(ε): if δ is negligible next to it, a crude value will
    do. ``ceiling`` is a cheap upper bound on δ(ε).
    """
    if rate == 0:
        return infinite_mass

    def positive_rate_bounds(epsilon: float) -> Interval:
        least_added, added = exp_weighted_bounds(epsilon, rate)
        low, high = delta_beside(epsilon, least_added)
        return math.nextafter(low + least_added, 0.0), math.nextafter(high + added, math.inf)

    top = -math.log(rate)
    found = least_value(
        positive_rate_bounds,
        top,
        math.log,
        LOWEST,
        lambda epsilon: ceiling(epsilon) + exp_weighted_bounds(epsilon, rate)[1] - rate,
    )
    low = found.low
    if low < found.high * (1 - WIDE_BOUND):
        low = max(low, _sum_lower_bound(positive_rate_bounds, found.epsilon, top))
    return min(max(low, rate), 1.0), min(found.high, 1.0)


def exp_weighted_bounds(epsilon: float, rate: float) -> Interval:
    """e^ε·t from below and above: a product, as exp(ε + log t) would lose |log t| roundings."""
    if epsilon > FARTHEST:
        return 1.0, math.inf
    half = math.exp(epsilon / 2) if epsilon > SPLIT else 1.0
    value = rate * half * half if epsilon > SPLIT else rate * math.exp(epsilon)
    return math.nextafter(value * (1 - 1e-15), 0.0), math.nextafter(value * (1 + 1e-15), math.inf)


def _sum_lower_bound(caught: Bracket, best: float, top: float) -> float:
    """Return a lower bound on the minimum of the sum, from its bounds at the best ε and on both sides.

    Between the sides, convexity bounds it by both extended chords; left of them it can decrease towards γ = 0 at most
    as fast as between them, and right of them until γ = 1/rate, from where on it is at least one.
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


class OrderBounds(NamedTuple):
    """One order of a pair: bounds on δ(ε) and on 1 − δ(ε) at ε ≥ 0, and its infinite mass."""

    both: Callable[[float], tuple[Interval, Interval]]
    infinite_mass: Interval


def type_two_error(ahead: OrderBounds, back: OrderBounds, rate: float) -> Interval:
    """Bounds on f(t) = sup_ε 1 − δ(ε) − e^ε t, to relative accuracy even near 0; concave in γ = e^ε."""
    # 1 − t; exact where the subtraction was.
    rest = 1.0 - rate
    kept = (rest, rest) if 1.0 - rest == rate else (math.nextafter(rest, 0.0), math.nextafter(rest, 1.0))
    if kept[1] <= back.infinite_mass[0]:
        return 0.0, 0.0

    def negated_error_bounds(epsilon: float) -> Interval:
        """Return bounds on the negated type-II error."""
        low, high = (
            _supporting_line(ahead, rate, epsilon) if epsilon >= 0 else _mirrored_brackets(back, (rate, kept), epsilon)
        )
        return -high, -low

    found = least_value(negated_error_bounds, -1.0, lambda value: math.asinh(value / FAINT_GAIN), FAINTEST)
    # The smallest γ found at which the function is at most 0: it is concave and at most γ (1 − t), so at most that.
    places = (found.epsilon + apart for apart in (0.0, *APART, 100.0, 1000.0))
    high = min(
        -found.low,
        next((math.exp(min(place, 0.0)) for place in places if negated_error_bounds(place)[0] >= 0), 1.0)
        * kept[1]
        * (1 + 1e-15),
        1.0,
    )
    return max(0.0, -found.high), max(high, math.ulp(0.0))


def _supporting_line(ahead: OrderBounds, rate: float, epsilon: float) -> Interval:
    """(1 − δ(ε)) − e^ε t at ε ≥ 0."""
    (_, (low, high)), (least_added, added) = ahead.both(epsilon), exp_weighted_bounds(epsilon, rate)
    return math.nextafter(low - added, -math.inf), math.nextafter(high - least_added, math.inf)


def _mirrored_brackets(back: OrderBounds, rates: tuple[float, Interval], epsilon: float) -> Interval:
    """e^ε (1 − t − δ'(−ε)) below 0; uses 1 − δ' instead if that is more accurate."""
    (rate, kept), (told, rest) = rates, back.both(-epsilon)
    low = math.nextafter(max(kept[0] - told[1], rest[0] - rate), -math.inf)
    high = math.nextafter(min(kept[1] - told[0], rest[1] - rate), math.inf)
    return _scale_by_exp(low, epsilon, -1.0), _scale_by_exp(high, epsilon, 1.0)


def _scale_by_exp(value: float, epsilon: float, sign: float) -> float:
    """Return a value times e^ε, rounded towards the side of the sign."""
    found = abs(value) * math.exp(epsilon) * (1 + math.copysign(1e-15, sign * value))
    return math.nextafter(math.copysign(found, value), math.copysign(math.inf, sign))
