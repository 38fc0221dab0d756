"""From a privacy profile to the trade-off function (theory §1, duality): true-positive rate and type-II error.

At a false-positive rate t the best attack has the true-positive rate inf_ε δ(ε) + e^ε t and the type-II error
sup_ε 1 − δ(ε) − e^ε t. A type-II error near 0 is not computed as a difference of numbers near one: for ε < 0 it
is e^ε (1 − t − δ'(−ε)) with the small δ' of the reverse order; for ε ≥ 0, 1 − δ is computed directly.
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

BoundedFunction = Callable[[float], Interval]
"""A function of ε that returns a lower and an upper bound on its value."""
RealFunction = Callable[[float], float]
SMALLEST_LOSS = 1e-12
"""Smaller losses are not distinguished from 0."""
HIGHEST = 1500.0
"""Largest ε searched for the minimum: above it e^ε t exceeds one for every positive t."""
SEARCH_TOLERANCE, ROUGH_TOLERANCE = 1e-3, 0.1
"""Tolerances, in positions of a ``SinhScale``: of the minimum before chords are drawn; of the rough bound's minimum."""
RISE_FACTOR = 1.5
"""The unit of the search is the distance at which the rough bound is this factor above its minimum."""
FIRST_DISTANCE = 1e-4
"""First distance of the chords, relative to ε."""
MAX_ROUNDS = 20
"""Maximal number of rounds that move chords."""
STALL_ROUNDS = 3
"""Stop if this many rounds have not halved the gap."""
SHORT_GROWTH, LONG_GROWTH = 32.0, 3.0
"""Factors by which the distance of the chords grows: below one nat, and from there on."""
RELATIVE_GAP = 2e-14
"""Relative gap that is good enough."""
ROOM_TO_RISE = 4.0
"""Required rise of the function from the best ε to the chords, in widths of the bounds on its value."""
MIN_SHRINKAGE = 1e-3
"""One round reduces the distance of a chord at most to this part of it."""
MAX_CHORD_POINTS = 4
"""Maximal number of points that are tried when a chord is moved."""
LARGEST_LOSS = 700.0
"""Beyond this many nats e^ε leaves double precision."""
CONVEX_ROUNDING = 2e-15
"""Relative rounding error of a term of the chords' crossing; larger distances multiply it."""


class EvaluatedPoint(NamedTuple):
    """An ε with a lower and an upper bound on the function there."""

    epsilon: float
    low: float
    high: float


WIDE_GAP = 1e-6
"""If bounds are relatively wider than this, ``true_positive_rate`` also tries a coarse bound from convexity alone."""
SIDE_DISTANCES = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 5.0, 20.0)
"""Distances in ε at which convexity is used for the coarse bound; the best is taken."""
SPLIT_EPSILON, UNBOUNDED_EPSILON = 700.0, 1400.0
"""Beyond the first, e^ε is split into two factors; beyond the second, e^ε t exceeds one for every positive double t."""
SMALLEST_ERROR = 1e-300
"""Smaller type-II errors are not distinguished from 0 by the search."""
LOWEST_EPSILON, UNDERFLOW_EPSILON = -40.0, -744.0
"""Below the first ε the sum is one; below the second, e^ε underflows."""


class MinimumBracket(NamedTuple):
    """Five ε in ascending order: the function is certainly higher at the second and at the fourth than at the third."""

    outer_left: EvaluatedPoint
    left: EvaluatedPoint
    best: EvaluatedPoint
    right: EvaluatedPoint
    outer_right: EvaluatedPoint

    def join_bounds(self, new: EvaluatedPoint) -> MinimumBracket:
        """Add the value at one more ε between the second and the fourth, if it is informative."""
        _, left, best, right, _ = self
        if not left.epsilon < new.epsilon < right.epsilon:
            return self
        if new.high < best.high:
            return self._replace(best=new).join_bounds(best)
        if not new.low > best.high:
            return self
        if new.epsilon < best.epsilon:
            return self._replace(outer_left=left, left=new)
        return self._replace(right=new, outer_right=right)

    def chord_crossing(self) -> tuple[float, float]:
        """Return the ε where both chords cross, and a lower bound on the minimum, which lies between them.

        Left of the crossing, the function is above the left chord, which falls; right of it, above the right chord,
        which rises. So the minimum is at least the height of the crossing. Each chord alone, evaluated beyond the
        crossing's position by its error, gives a lower bound on this height: the larger one is returned.
        """
        first, second, best, third, fourth = self
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
        position_error = error * (abs(third.low) + abs(second.low) + up * c + down * b) / (up + down)
        position = min(max((second.low - third.low + down * b + up * c) / (up + down), b), c)
        falling, rising = down * (position + position_error - b), up * (c - position + position_error)
        left = second.low - falling - error * (abs(second.low) + falling)
        right = third.low - rising - error * (abs(third.low) + rising)
        return best.epsilon + math.log(position), min(max(left, right), second.low, third.low)

    def tighten_chords(self, evaluate: Callable[[float], EvaluatedPoint]) -> MinimumBracket:
        """Move both chords towards the best ε, as long as the function at them is still clearly higher than there.

        Clearly: by ``ROOM_TO_RISE`` times the width of the bounds on its value.
        """
        bracket, best = self, self.best
        width = ROOM_TO_RISE * max(best.high - best.low, CONVEX_ROUNDING * abs(best.high))
        for side, sign in ((self.left, -1), (self.right, 1)):
            distance, ratio = abs(side.epsilon - best.epsilon), (side.low - best.high) / width
            # The distance at which the rise would be smaller by this ratio: if the rise is exponential in the distance
            # (far away) or quadratic (near). The chord keeps its distance if moving it gains little.
            nats = math.log(max(ratio, 1.0))
            if distance > 1 + nats:
                nearer = distance - nats if ratio > math.e else distance
            else:
                nearer = distance * max(math.sqrt(1 / ratio), MIN_SHRINKAGE) if ratio > 1 else distance
                nearer = nearer if nearer < distance / 2 else distance
            if nearer < distance:
                points = [evaluate(best.epsilon + sign * nearer)]
                while len(points) < MAX_CHORD_POINTS and not points[-1].low > best.high:
                    points.append(evaluate((points[-1].epsilon + side.epsilon) / 2))
                outer = evaluate(best.epsilon + sign * 2 * nearer) if len(points) == 1 else side
                bracket = bracket.join_bounds(outer).join_bounds(points[-1])
        return bracket


class LeastValue(NamedTuple):
    """The ε with the least value found, and bounds on the minimum; the lower bound is −∞ if none was proven."""

    epsilon: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class SinhScale:
    """Positions around an origin: ε = origin + unit · sinh(position), fine near the origin, coarse far from it."""

    origin: float = 0.0
    unit: float = SMALLEST_LOSS

    def epsilon_at(self, position: float) -> float:
        return self.origin + self.unit * math.sinh(position)

    @classmethod
    def around_minimum(cls, rough: RealFunction, start: float, floor: float) -> SinhScale:
        """Return a scale around the minimum of a rough bound; the unit is the distance at which it rises by half."""
        origin = _minimizing_epsilon(rough, FROM_ZERO, (start, floor), ROUGH_TOLERANCE)
        lowest, unit = rough(origin), max(abs(origin), SMALLEST_LOSS) * FIRST_DISTANCE
        if not lowest < rough(floor):
            return FROM_ZERO
        while unit < 1 and max(rough(origin - unit), rough(origin + unit)) < RISE_FACTOR * lowest:
            unit *= 2
        return cls(origin, unit)


FROM_ZERO = SinhScale()
"""Equally fine for small and for large ε."""


def least_value(
    value: BoundedFunction, start: float, rescale: RealFunction, floor: float, rough: RealFunction | None = None
) -> LeastValue:
    """Minimize ``value``, searching from ``start`` down to ``floor``.

    ``rescale``: an increasing function; the search compares rescaled values.

    ``rough``: a cheap upper bound of the value that has its minimum nearby, if one is available. It saves evaluations.
    The minimum is bounded by chords on both sides of the best ε: they move outwards until the function certainly rises
    to them, then as near as it still does.
    """
    cached_value = cache(value)

    def evaluate_point(epsilon: float) -> EvaluatedPoint:
        return EvaluatedPoint(epsilon, *cached_value(epsilon))

    scale = FROM_ZERO if rough is None else SinhScale.around_minimum(rough, start, floor)
    ends = (start if scale is FROM_ZERO else scale.origin, floor)
    best_epsilon = _minimizing_epsilon(lambda epsilon: rescale(cached_value(epsilon)[1]), scale, ends, SEARCH_TOLERANCE)
    bracket = _points_above_minimum(evaluate_point, evaluate_point(best_epsilon), floor)
    low, gaps = -math.inf, [math.inf] * STALL_ROUNDS
    if isinstance(bracket, EvaluatedPoint):
        return LeastValue(bracket.epsilon, low, bracket.high)
    for _ in range(MAX_ROUNDS):
        crossing, bound = bracket.chord_crossing()
        low = max(low, bound)
        gaps.append(bracket.best.high - low)
        if gaps[-1] <= RELATIVE_GAP * abs(bracket.best.high) or gaps[-1] > gaps[-1 - STALL_ROUNDS] / 2:
            break
        # Chords cross slightly before a kink, not behind it: so a point beyond the crossing is tried, too, at the
        # geometric mean of its distance from the best ε and of four units in the last place.
        distance = bracket.best.epsilon - crossing
        halfway = math.sqrt(abs(distance) * 4 * math.ulp(max(abs(crossing), SMALLEST_LOSS)))
        # The vertex of the parabola through the upper ends at the middle three.
        middle = bracket.best
        left, down = bracket.left.epsilon - middle.epsilon, bracket.left.high - middle.high
        right, up = bracket.right.epsilon - middle.epsilon, bracket.right.high - middle.high
        bend = down / left - up / right
        vertex = (down / left * right - up / right * left) / bend / 2 if bend < 0 else 0.0
        for epsilon in (crossing, crossing + math.copysign(halfway, distance), middle.epsilon + vertex):
            bracket = bracket.join_bounds(evaluate_point(epsilon))
        bracket = bracket.tighten_chords(evaluate_point)
    return LeastValue(bracket.best.epsilon, low, bracket.best.high)


def _minimizing_epsilon(height: RealFunction, scale: SinhScale, ends: tuple[float, float], error: float) -> float:
    """Return the ε of the minimal height: stride downhill until it rises, then search between."""

    def height_at(position: float) -> float:
        return height(scale.epsilon_at(position))

    low, middle, high = bracket_minimum(
        height_at, *(math.asinh((end - scale.origin) / scale.unit) for end in (*ends, HIGHEST))
    )
    result = scipy.optimize.minimize_scalar(height_at, bounds=(low, high), method="bounded", options={"xatol": error})
    return scale.epsilon_at(min((middle, float(result.x)), key=height_at))


def bracket_minimum(height: RealFunction, start: float, floor: float, highest: float) -> tuple[float, float, float]:
    """Return three positions, the lowest in the middle, or at the end of the range if the height falls to there."""
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


def _points_above_minimum(
    evaluate: Callable[[float], EvaluatedPoint], best: EvaluatedPoint, floor: float
) -> MinimumBracket | EvaluatedPoint:
    """Return points on both sides to which the function certainly rises; the best one alone if it does not rise."""
    ends: list[EvaluatedPoint] = []
    for sign in (-1, 1):
        distance, end = FIRST_DISTANCE * max(abs(best.epsilon), SMALLEST_LOSS), best
        while not end.low > best.high:
            end = evaluate(best.epsilon + sign * distance)
            best = min(best, end, key=lambda point: point.high)
            if not (end.low > best.high or floor <= end.epsilon <= HIGHEST):
                return best
            distance *= SHORT_GROWTH if distance < 1 else LONG_GROWTH
        ends.append(end)
    left, right = ends
    outer_left, outer_right = (evaluate(2 * end.epsilon - best.epsilon) for end in ends)
    return MinimumBracket(outer_left, left, best, right, outer_right)


def true_positive_rate(
    delta_to_precision: Callable[[float, float], Interval],
    rate: float,
    infinite_mass: Interval,
    ceiling: Callable[[float], float],
) -> Interval:
    """Return bounds on inf_ε δ(ε) + e^ε·rate, to full relative accuracy; the sum is convex in γ = e^ε.

    ``delta_to_precision`` receives ε and the amount that is added to δ(ε): if δ is negligible next to it, a crude
    value will do. ``ceiling`` is a cheap upper bound on δ(ε).
    """
    if rate == 0:
        return infinite_mass

    def positive_rate_bounds(epsilon: float) -> Interval:
        least_added, added = exp_weighted_bounds(epsilon, rate)
        low, high = delta_to_precision(epsilon, least_added)
        return math.nextafter(low + least_added, 0.0), math.nextafter(high + added, math.inf)

    top = -math.log(rate)
    minimum = least_value(
        positive_rate_bounds,
        top,
        math.log,
        LOWEST_EPSILON,
        lambda epsilon: ceiling(epsilon) + exp_weighted_bounds(epsilon, rate)[1] - rate,
    )
    low = minimum.low
    if low < minimum.high * (1 - WIDE_GAP):
        # Between points on both sides of the best ε, convexity bounds the sum by both extended chords. Left of the left
        # point, the sum falls towards γ = 0 at most as steeply as from the best ε to that point. Right of the right
        # point, it falls at most as steeply as from the best ε to that point, until γ = 1/rate: from there on it is at
        # least one.
        middle = positive_rate_bounds(minimum.epsilon)
        for distance in SIDE_DISTANCES:
            left, right = (positive_rate_bounds(minimum.epsilon + side) for side in (-distance, distance))
            down, up = -math.expm1(-distance), math.expm1(distance)
            drop = max((left[1] - middle[0]) / down * up, (right[1] - middle[0]) / up * down)
            beyond = max(0.0, math.exp(min(top - minimum.epsilon, 700.0)) - 1 - up)
            ends = (
                left[0] - max(0.0, middle[1] - left[0]) * (1 - down) / down,
                right[0] - max(0.0, middle[1] - right[0]) * beyond / up,
            )
            low = max(low, min(middle[0] - max(0.0, drop), *ends))
    return min(max(low, rate), 1.0), min(minimum.high, 1.0)


def exp_weighted_bounds(epsilon: float, rate: float) -> Interval:
    """Return e^ε·t from below and above: a product, as exp(ε + log t) would lose |log t| roundings."""
    if epsilon > UNBOUNDED_EPSILON:
        return 1.0, math.inf
    half = math.exp(epsilon / 2) if epsilon > SPLIT_EPSILON else 1.0
    value = rate * half * half if epsilon > SPLIT_EPSILON else rate * math.exp(epsilon)
    return math.nextafter(value * (1 - 1e-15), 0.0), math.nextafter(value * (1 + 1e-15), math.inf)


class OrderBounds(NamedTuple):
    """One order of a pair: bounds on δ(ε) and on 1 − δ(ε) at ε ≥ 0, and on its infinite mass."""

    delta_and_complement: Callable[[float], tuple[Interval, Interval]]
    infinite_mass: Interval


def type_two_error(forward: OrderBounds, reverse: OrderBounds, rate: float) -> Interval:
    """Return bounds on f(t) = sup_ε 1 − δ(ε) − e^ε t, relatively accurate even near 0.

    ``forward``, ``reverse``: the pair in both orders. The function of ε is concave in γ = e^ε.
    """
    # 1 − t; exact where the subtraction was.
    rest = 1.0 - rate
    true_rate = (rest, rest) if 1.0 - rest == rate else (math.nextafter(rest, 0.0), math.nextafter(rest, 1.0))
    if true_rate[1] <= reverse.infinite_mass[0]:
        return 0.0, 0.0

    def negated_error_bounds(epsilon: float) -> Interval:
        if epsilon >= 0:  # (1 − δ(ε)) − e^ε t
            (_, complement), (least_added, added) = (
                forward.delta_and_complement(epsilon),
                exp_weighted_bounds(epsilon, rate),
            )
            low = math.nextafter(complement[0] - added, -math.inf)
            high = math.nextafter(complement[1] - least_added, math.inf)
        else:  # e^ε (1 − t − δ'(−ε)), or with 1 − δ' where that is more accurate
            delta, complement = reverse.delta_and_complement(-epsilon)
            low = math.nextafter(max(true_rate[0] - delta[1], complement[0] - rate), -math.inf)
            high = math.nextafter(min(true_rate[1] - delta[0], complement[1] - rate), math.inf)
            low, high = _scale_by_exp(low, epsilon, -1.0), _scale_by_exp(high, epsilon, 1.0)
        return -high, -low

    minimum = least_value(
        negated_error_bounds, -1.0, lambda value: math.asinh(value / SMALLEST_ERROR), UNDERFLOW_EPSILON
    )
    # The smallest γ found at which the function is at most 0. It is concave, so it stays at most 0 for larger γ; for
    # smaller ones it is at most their γ (1 − t). So this γ times 1 − t is an upper bound.
    epsilons = (minimum.epsilon + distance for distance in (0.0, *SIDE_DISTANCES, 100.0, 1000.0))
    gamma = next((math.exp(min(epsilon, 0.0)) for epsilon in epsilons if negated_error_bounds(epsilon)[0] >= 0), 1.0)
    high = min(-minimum.low, gamma * true_rate[1] * (1 + 1e-15), 1.0)
    return max(0.0, -minimum.high), max(high, math.ulp(0.0))


def _scale_by_exp(value: float, epsilon: float, sign: float) -> float:
    """Return a value times e^ε, rounded towards the side of the sign."""
    size = abs(value) * math.exp(epsilon) * (1 + math.copysign(1e-15, sign * value))
    return math.nextafter(math.copysign(size, value), math.copysign(math.inf, sign))
