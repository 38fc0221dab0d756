"""A parameter on either side of where a loss stops keeping a budget: sought outwards from an everyday value.

How much a loss exceeds its budget, the *excess*, is asked at few parameters and none far from the answer: laws far out
are slow. A parameter that ``make_loss`` refuses with ``InputError`` ends the range, where the caller stated no end on
that side: a rate ends at 1 without being told.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from tightrope.accounting.privacy_loss import PrivacyLoss
from tightrope.errors import InputError, PrecisionError

SMALLEST, LARGEST, MOST = 1e-12, 1e12, 10**9
"""Where a parameter is sought unless the caller says; whole numbers from 1 to ``MOST``."""
USUAL, USUAL_WHOLE = 1.0, 256
"""What is tried first, unless the caller stated both ends or one beyond."""
MOST_EVALUATIONS = 400
DOUBLE, BESIDE, FARTHEST = math.log(2.0), math.log(1.25), math.log(4.0)
"""The second parameter is twice the first, or beside a guess; then none is multiplied by more than 4, 16, 256, …"""
SHORTEST = 1e-3
OVERSHOOT = 1.05
"""How far beyond the secant's root the next parameter lies, so that it is on the other side."""
RETREATS = 5
"""How often a step whose loss cannot be computed is halved."""

MakeLoss = Callable[[Any], PrivacyLoss]
Pair = tuple["Tried | None", "Tried | None"]


@dataclass(frozen=True, slots=True)
class Tried:
    """A parameter with its logarithm, its loss, and by how much it exceeds the budget: on two scales of one sign."""

    parameter: float
    place: float
    loss: PrivacyLoss
    excess: float
    """In standard deviations: nearly linear wherever the loss is unbounded."""
    surplus: float
    """In multiples of what is allowed: nearly linear where δ falls to zero at once."""

    @property
    def keeps(self) -> bool:
        return self.excess <= 0


@dataclass(frozen=True, slots=True)
class Range:
    """Where the parameter is sought; ``stated`` says which ends, low and high, are the caller's."""

    low: float
    high: float
    stated: tuple[bool, bool]
    integer: bool
    begin: float | None = None
    """Where the answer is thought to be near."""
    falling: bool | None = None
    """Whether the loss is thought to fall with the parameter."""

    @property
    def start(self) -> float:
        """The guess; without one the middle of a range that was stated whole, or else an everyday value."""
        if self.begin is not None:
            return min(max(self.begin, self.low), self.high)
        usual = USUAL_WHOLE if self.integer else USUAL
        place = (math.log(self.low) + math.log(self.high)) / 2 if all(self.stated) else math.log(usual)
        return self.nearest(place)

    def nearest(self, place: float) -> float:
        """The parameter nearest to e^place inside the range; its ends exactly, although logarithms are rounded."""
        if place <= math.log(self.low):
            return self.low
        if place >= math.log(self.high):
            return self.high
        found = math.exp(place)
        return min(max(round(found) if self.integer else found, self.low), self.high)

    @property
    def stride(self) -> float:
        """How far, in logarithms, the second parameter is from the first."""
        return DOUBLE if self.begin is None else BESIDE

    def moved(self, here: float, length: float) -> float:
        """The parameter e^length times this one, or the next whole number; the end where that is nearer."""
        there = self.nearest(math.log(here) + length)
        if there != here or not self.integer:
            return there
        return min(max(here + (1 if length > 0 else -1), self.low), self.high)


@dataclass(slots=True)
class Search:
    """The question, what was asked so far, and where the range was found to end."""

    make_loss: MakeLoss
    exceeded: Callable[[PrivacyLoss], tuple[float, float]]
    """``excess`` and ``surplus`` of a loss."""
    range: Range
    seen: dict[float, Tried] = field(default_factory=dict)
    made: dict[float, PrivacyLoss] = field(default_factory=dict)
    """The last loss that was made, and not evaluated yet."""

    def at(self, parameter: float) -> Tried:
        """The parameter's loss, evaluated once."""
        if parameter not in self.seen:
            if len(self.seen) >= MOST_EVALUATIONS:
                raise PrecisionError(f"no answer after {len(self.seen)} evaluations; is the loss monotone?")
            loss = self._loss(parameter)
            self.seen[parameter] = Tried(parameter, math.log(parameter), loss, *self.exceeded(loss))
        return self.seen[parameter]

    def _loss(self, parameter: float) -> PrivacyLoss:
        if parameter not in self.made:
            self.made = {parameter: self.make_loss(parameter)}
        loss = self.made[parameter]
        if not isinstance(loss, PrivacyLoss):
            remedy = "a mechanism has one: return mechanism.loss"
            raise InputError(f"make_loss({parameter!r})", loss, "a PrivacyLoss", remedy)
        return loss

    def _refused(self, parameter: float) -> InputError | None:
        """Why ``make_loss`` refuses this parameter; None where it does not, or cannot tell."""
        with suppress(PrecisionError):
            try:
                self.made = {parameter: self.make_loss(parameter)}
            except InputError as error:
                return error
        return None

    def first(self) -> Tried:
        """Where the search begins: the start of the range, or the nearest whose loss can be made and computed."""
        start = self.range.start
        why: list[InputError | PrecisionError] = []
        for parameter in (start, *(() if all(self.range.stated) else _outwards(self.range, start))):
            if refused := self._refused(parameter):
                why.append(refused)
                continue
            try:
                return self.at(parameter)
            except PrecisionError as error:
                why.append(error)
        raise why[0]

    def step(self, here: Tried, length: float) -> Tried | None:
        """A parameter e^length times as large, or the last before the range ends; None where it ends here."""
        target = self._last_accepted(here.parameter, self.range.moved(here.parameter, length))
        for _ in range(RETREATS):
            if target == here.parameter:
                return None
            try:
                return self.at(target)
            except PrecisionError:
                target = self.range.nearest((here.place + math.log(target)) / 2)
        return self.at(target)

    def _last_accepted(self, here: float, there: float) -> float:
        """``there``, or the last parameter on the way that ``make_loss`` accepts: the range ends at it from now on.

        Raises its ``InputError`` where the caller said that the range goes on.
        """
        refused = None if there == here or there in self.seen else self._refused(there)
        if refused is None:
            return there
        if self.range.stated[there > here]:
            raise refused
        while (middle := self._between(here, there)) not in (here, there):
            here, there = (middle, there) if self._refused(middle) is None else (here, middle)
        low, high = (self.range.low, here) if there > here else (here, self.range.high)
        self.range = replace(self.range, low=low, high=high)
        return here

    def _between(self, one: float, other: float) -> float:
        return (one + other) // 2 if self.range.integer else (one + other) / 2


def bracket(search: Search, increasing: bool | None) -> Pair:
    """A parameter that keeps the budget beside one that does not.

    None instead of the latter where the most useful end of the range keeps the budget, and instead of the former where
    the most private end does not.
    """
    first = search.first()
    falls = _falls(search, first) if increasing is None else not increasing
    upwards = first.keeps != falls  # the way to the root: smaller ones are more useful where the loss falls
    alike = [tried for tried in search.seen.values() if tried.keeps == first.keeps]
    others = [tried for tried in search.seen.values() if tried.keeps != first.keeps]
    *_, here = ordered = sorted(alike, key=lambda tried: tried.place if upwards else -tried.place)
    if others:
        there = min(others, key=lambda tried: abs(tried.place - here.place))
        return _pair(here, there)
    # On from `here` until the budget is kept no more, or at last; `before` is what was tried before it.
    before = ordered[-2] if len(ordered) > 1 else None
    walked_here = here
    sign, longest, overshoot = (1 if upwards else -1), FARTHEST, OVERSHOOT
    while True:
        length = search.range.stride if before is None else min(_stride(before, walked_here, overshoot), longest)
        walked_there = search.step(walked_here, sign * length)
        if walked_there is None or walked_there.keeps != walked_here.keeps:
            return _pair(walked_here, walked_there)
        before, walked_here, longest, overshoot = walked_here, walked_there, 2 * longest, 2 * overshoot - 1


def _pair(here: Tried, there: Tried | None) -> Pair:
    """The one that keeps the budget first."""
    return (here, there) if here.keeps else (there, here)


def _stride(before: Tried, here: Tried, overshoot: float) -> float:
    """A little beyond where the secant meets zero; ∞ where it does not."""
    fallen = before.excess - here.excess
    ratio = here.excess / fallen if fallen else math.inf
    return max(overshoot * ratio * abs(here.place - before.place), SHORTEST) if ratio >= 0 else math.inf


def _falls(search: Search, first: Tried) -> bool:
    """Whether the loss falls with the parameter: from two evaluations, or more where these are alike."""
    for other in _others(search, first):
        # Positive where the first is less private: by the excess, and where nothing is lost by the total variation.
        apart = other.excess - first.excess
        if more := (
            other.loss.total_variation() - first.loss.total_variation() if apart == 0 and other.keeps else apart
        ):
            return (more < 0) == (other.place > first.place)
    remedy = "widen the range, or say increasing=True or increasing=False"
    raise InputError("make_loss", first.loss, "a loss that depends on the parameter", remedy)


def _others(search: Search, first: Tried) -> Iterator[Tried]:
    """One beside the first, then further and further out on either side in turn; first where the root may be.

    A scale is thought to make a loss fall, and a number of steps to make it rise.
    """
    falling = search.range.falling if search.range.falling is not None else not search.range.integer
    sides = (1, -1) if first.keeps != falling else (-1, 1)
    ends = dict.fromkeys(sides, first)
    beside = (search.step(first, side * search.range.stride) for side in sides)
    second = next((tried for tried in beside if tried is not None), None)
    if second is not None:
        ends[1 if second.place > first.place else -1] = second
        yield second
    length = FARTHEST
    while ends:
        for side in list(ends):
            further = search.step(ends[side], side * length)
            if further is None:
                del ends[side]
            else:
                ends[side] = further
                yield further
        length *= 2


def _outwards(within: Range, start: float) -> Iterator[float]:
    """Parameters further and further from the start, on either side in turn."""
    low = high = start
    while (low, high) != (within.low, within.high):
        low, high = within.moved(low, -2 * FARTHEST), within.moved(high, 2 * FARTHEST)
        yield from (low, high)


# A bracket closed in on: the root of the excess between a parameter that keeps a budget and one that does not.

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
