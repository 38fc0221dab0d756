"""From a privacy profile to the trade-off function (theory §1, duality)."""

from __future__ import annotations

import math
from collections.abc import Callable

from scipy import optimize

NEARBY = (1e-6, 1e-4, 1e-8, 1e-2)
"""Distances at which chords on both sides are made to cross."""
CLOSE = 1e-10
"""Relative width that is good enough."""
WIDE = 1e-6
"""Beyond this the coarse bound is tried, too."""
Bracket = Callable[[float], tuple[float, float]]
PRECISION = 1e-11
"""How closely the best ε is sought; at a kink of the profile the answer is off by this much of itself."""
APART = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 5.0, 20.0)
"""Distances in ε at which convexity is used for the lower bound; the best is taken."""


def true_positive_rate(delta_at: Bracket, rate: float, infinite_mass: tuple[float, float]) -> tuple[float, float]:
    """Bounds on inf_ε δ(ε) + e^ε·rate, to full relative accuracy.

    Any ε gives an upper one, the search makes it tight. The sum is convex in γ = e^ε, hence falls and then rises.
    """
    if rate == 0:
        return infinite_mass

    def caught(epsilon: float) -> tuple[float, float]:
        low, high = delta_at(epsilon)
        added = math.exp(epsilon + math.log(rate))
        return (low + added) * (1 - 2e-15), (high + added) * (1 + 2e-15)

    best, value = _least(lambda epsilon: caught(epsilon)[1], -math.log(rate))
    low, value = _between(caught, best, value)
    if low < value * (1 - WIDE):
        low = max(low, _below(caught, best, -math.log(rate)))
    return min(max(low, rate), 1.0), min(value, 1.0)


def _least(caught: Callable[[float], float], top: float) -> tuple[float, float]:
    """The best ε and its sum; from ``top`` on the sum is at least one."""
    low, middle, high = _around(caught, top)
    width = PRECISION * max(1.0, abs(middle))
    found = optimize.minimize_scalar(caught, bounds=(low, high), method="bounded", options={"xatol": width})
    return min(((e, caught(e)) for e in (float(found.x), low, middle, high)), key=lambda pair: pair[1])


def _around(caught: Callable[[float], float], top: float) -> tuple[float, float, float]:
    """An interval that holds the best ε, and the best point seen."""
    low, middle, high, width = top - 1, top, top, 1.0
    best, here = caught(middle), caught(low)
    while here < best:
        low, middle, high, best, width = low - 2 * width, low, middle, here, 2 * width
        here = caught(low)
    return low, middle, high


def _between(caught: Bracket, best: float, value: float) -> tuple[float, float]:
    """A lower bound where the sum is certainly higher on both sides of ``best``, and a better upper one.

    A convex function lies above its chords drawn on, so between the two sides it is no less than where they cross: at
    a kink that is the least value itself, and the place to look for it.
    """
    found, here = 0.0, caught(best)[1]
    for apart in NEARBY:
        ends = [best + n * apart for n in (-2, -1, 1, 2)]
        values = [caught(end) for end in ends]
        if here < min(values[1][0], values[2][0]):
            crossing = _crossing(values, [math.expm1(end - best) for end in ends])
            found = max(found, crossing[1])
            value = min(value, caught(best + math.log1p(crossing[0]))[1])
        if found >= value * (1 - CLOSE):
            break
    return min(found, value), value


def _crossing(values: list[tuple[float, float]], places: list[float]) -> tuple[float, float]:
    """Where both chords cross, as γ over that of ``best`` less one, and a lower bound, the least being between them."""
    (first, second, third, fourth), (a, b, c, d) = values, places
    down, up = (second[0] - first[1]) / (b - a), (fourth[1] - third[0]) / (d - c)
    place = min(max((third[0] - second[0] + down * b - up * c) / (down - up), b), c)
    height = max(second[0] + down * (place - b), third[0] + up * (place - c))
    rounding = 2e-15 * (second[1] + third[1] + (up - down) * (c - b))
    return place, min(height - rounding, second[0], third[0])


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
