"""The least value of a function of ε that is convex in γ = e^ε, and known at each ε from both sides.

Any ε gives an upper bound. A lower one comes from four points a < b < c < d: where the function is certainly higher at
b and at c than at some ε between them, its least value lies there, above both chords a–b and c–d drawn on, so no lower
than where these cross (``docs/proofs/chords.md``). At a kink they cross in the least value itself. Elsewhere the gap is
of second order in their distance, which shrinks until the function's own brackets are no narrower.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from scipy import optimize

from tightrope.privacy.laws.interval import Interval

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


def least(value: Bracket, start: float, key: Key, floor: float, rough: Key | None = None) -> Least:
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
    found = optimize.minimize_scalar(at, bounds=(low, high), method="bounded", options={"xatol": error})
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

    def seen(epsilon: float) -> Seen:
        return Seen(epsilon, *value(epsilon))

    places, low, gaps = _risen(seen, seen(best), floor), -math.inf, [math.inf] * STALLED
    if isinstance(places, Seen):
        return Least(places.epsilon, low, places.high)
    for _ in range(ROUNDS):
        crossing, bound = _crossing(places)
        low = max(low, bound)
        gaps.append(places.best.high - low)
        if gaps[-1] <= CLOSE * abs(places.best.high) or gaps[-1] > HALF * gaps[-1 - STALLED]:
            break
        for epsilon in (crossing, _beyond(crossing, places), _vertex(places)):
            places = places.joined(seen(epsilon))
        places = _nearer(seen, places)
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


def _beyond(crossing: float, places: Around) -> float:
    """Between the crossing and the best ε, halfway in orders of magnitude: chords cross before a kink, not behind."""
    apart = places.best.epsilon - crossing
    return crossing + math.copysign(math.sqrt(abs(apart) * 4 * math.ulp(max(abs(crossing), UNIT))), apart)


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


def _vertex(places: Around) -> float:
    """Where the parabola through the upper ends at the middle three is lowest."""
    best = places.best
    (left, down), (right, up) = (
        (end.epsilon - best.epsilon, end.high - best.high) for end in (places.left, places.right)
    )
    bend = down / left - up / right
    return best.epsilon + ((down / left * right - up / right * left) / bend / 2 if bend < 0 else 0.0)


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
