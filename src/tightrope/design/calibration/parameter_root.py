"""A bracket closed in on: the root of the excess between a parameter that keeps a budget and one that does not."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from tightrope.design.calibration.parameter_search import Search, Tried

FINEST = 1e-14
"""Parameters that are nearer than this, relatively, are not told apart: their logarithms are rounded."""
PUSHED = 0.9
"""A root beside an end of the bracket is moved across it by this part of the tolerance: the other end follows."""
TRUSTED = 0.5
"""A quadratic is believed where it corrects the secant by no more than this part of its step."""
BEYOND_LAST = 0.1
"""A place that was extrapolated is overshot by this part of the way to it."""


@dataclass(slots=True)
class _Bracket:
    """The two ends, and the end that kept the budget as little before."""

    search: Search
    good: Tried
    bad: Tried
    worse: Tried

    @property
    def width(self) -> float:
        return abs(self.good.place - self.bad.place)

    @property
    def near(self) -> list[Tried]:
        """All that were tried, from the least excess on either side of zero."""
        return sorted(self.search.seen.values(), key=lambda tried: abs(tried.excess))

    def near_enough(self, tolerance: float) -> bool:
        apart = abs(self.good.parameter - self.bad.parameter)
        return apart <= (1 if self.search.range.integer else tolerance * self.good.parameter)

    def narrowed(self, place: float, tolerance: float) -> None:
        """The parameter there is one of the ends now; of whole numbers one strictly between them."""
        found, whole = self.search.range.nearest(self._between(place, tolerance)), self.search.range.integer
        low, high = sorted((self.good.parameter, self.bad.parameter))
        tried = self.search.at(min(max(found, low + 1), high - 1) if whole else found)
        if tried.keeps:
            self.good = tried
        else:
            self.worse, self.bad = self.bad, tried

    def _between(self, place: float, tolerance: float) -> float:
        """The place, pushed across the root where it lies beside an end; the middle where it is not inside."""
        gap = math.log1p(1 / self.good.parameter) if self.search.range.integer else tolerance
        low, high = sorted((self.good.place, self.bad.place))
        if not low <= place <= high or high - low <= 2 * gap:
            return (low + high) / 2
        return min(max(place, low + PUSHED * gap), high - PUSHED * gap)


def closed(search: Search, good: Tried, bad: Tried, tolerance: float) -> Tried:
    """The end that keeps the budget, of a bracket that was narrowed to the tolerance; to neighbours, if whole.

    By secants and quadratics through what came nearest. Where two in a row do not halve the bracket its middle is
    tried; and where that does not help, secants of the surplus through the last two that did not keep the budget.
    """
    bracket, stage, tolerance = _Bracket(search, good, bad, bad), 0, max(tolerance, FINEST)
    while not bracket.near_enough(tolerance):
        before, method = bracket.width, STAGES[stage]
        bracket.narrowed(method(bracket), tolerance)
        halved = bracket.width <= before / 2
        stage = STAGES.index(AGAIN[method]) if halved and method in AGAIN else (stage + 1) % len(STAGES)
    return bracket.good


def _interpolated(bracket: _Bracket) -> float:
    """Where the excess is zero by the secant through the nearest two, corrected by the quadratic through three."""
    first, second, *others = bracket.near
    if first.excess == second.excess:
        return math.nan
    secant = first.place - first.excess * (second.place - first.place) / (second.excess - first.excess)
    root = _quadratic(first, second, others[0]) if others else math.nan
    return root if abs(root - secant) <= TRUSTED * abs(secant - first.place) else secant


def _quadratic(first: Tried, second: Tried, third: Tried) -> float:
    """Lagrange's formula for the place as a function of the excess, at zero; NaN where two excesses agree."""
    a, b, c = first.excess, second.excess, third.excess
    parts = (a - b) * (a - c), (b - a) * (b - c), (c - a) * (c - b)
    if not all(parts):
        return math.nan
    return first.place * (b * c / parts[0]) + second.place * (a * c / parts[1]) + third.place * (a * b / parts[2])


def _halved(bracket: _Bracket) -> float:
    """The middle."""
    return (bracket.good.place + bracket.bad.place) / 2


def _extrapolated(bracket: _Bracket) -> float:
    """Where the surplus is zero, from two that have some: it may fall to nothing at once beyond."""
    bad, worse = bracket.bad, bracket.worse
    steep = worse.surplus - bad.surplus
    return bad.place + bad.surplus * (bad.place - worse.place) / steep if steep else math.nan


def _overshot(bracket: _Bracket) -> float:
    """A little beyond: what was extrapolated from one side only comes ever nearer to the root."""
    place = _extrapolated(bracket)
    return place + BEYOND_LAST * (place - bracket.bad.place)


Method = Callable[[_Bracket], float]
STAGES: tuple[Method, ...] = (
    _interpolated, _interpolated, _halved, _interpolated, _interpolated, _extrapolated, _overshot, _halved,
)  # fmt: skip
"""What is tried, each where those before it did not halve the bracket."""
AGAIN: dict[Method, Method] = {
    _interpolated: _interpolated, _extrapolated: _extrapolated, _overshot: _extrapolated,
}  # fmt: skip
"""What is tried next where one did."""
