"""A parameter on either side of where a loss stops keeping a budget: sought outwards from an everyday value.

How much a loss exceeds its budget, the *excess*, is asked at few parameters and none far from the answer: distributions
far out are slow. A parameter that ``make_loss`` rejects with ``InputError`` ends the range, where the caller stated no
end on that side: a rate ends at 1 without being told.
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
"""Default range of a parameter; integers from 1 to ``MOST``."""
USUAL, USUAL_WHOLE = 1.0, 256
"""Default first parameter, unless the caller stated both ends or one that excludes it."""
MOST_EVALUATIONS = 400
DOUBLE, BESIDE, FARTHEST = math.log(2.0), math.log(1.25), math.log(4.0)
"""The second parameter is 2 times the first, 1.25 times if that is a guess; later factors are at most 4, 16, 256, …"""
SHORTEST = 1e-3
OVERSHOOT = 1.05
"""Factor by which the step to the secant's root is extended, so that it ends on the other side."""
RETREATS = 5
"""Maximal number of halvings of a step whose loss cannot be computed."""

MakeLoss = Callable[[Any], PrivacyLoss]
Pair = tuple["EvaluatedParameter | None", "EvaluatedParameter | None"]


@dataclass(frozen=True, slots=True)
class EvaluatedParameter:
    """A parameter with its logarithm, its loss, and its excess over the budget, on two scales with the same sign."""

    parameter: float
    log_parameter: float
    loss: PrivacyLoss
    excess: float
    """The excess in standard deviations: nearly linear if the loss is unbounded."""
    surplus: float
    """The excess in multiples of the allowed δ: nearly linear where δ falls abruptly to zero."""

    @property
    def meets_budget(self) -> bool:
        return self.excess <= 0


@dataclass(frozen=True, slots=True)
class ParameterRange:
    """The range of the parameter; ``stated_ends``: whether the caller gave the low and the high end."""

    low: float
    high: float
    stated_ends: tuple[bool, bool]
    integer: bool
    initial_guess: float | None = None
    """A guess of the answer."""
    loss_falls: bool | None = None
    """True if the loss is expected to fall with the parameter."""

    @property
    def first_parameter(self) -> float:
        """The guess; without one the middle of a range with both ends stated, or else a default value."""
        if self.initial_guess is not None:
            return min(max(self.initial_guess, self.low), self.high)
        usual = USUAL_WHOLE if self.integer else USUAL
        place = (math.log(self.low) + math.log(self.high)) / 2 if all(self.stated_ends) else math.log(usual)
        return self.nearest_parameter(place)

    def nearest_parameter(self, place: float) -> float:
        """The parameter nearest to e^place inside the range; its ends exactly, although logarithms are rounded."""
        if place <= math.log(self.low):
            return self.low
        if place >= math.log(self.high):
            return self.high
        found = math.exp(place)
        return min(max(round(found) if self.integer else found, self.low), self.high)

    @property
    def first_stride(self) -> float:
        """Log-distance of the second parameter from the first."""
        return DOUBLE if self.initial_guess is None else BESIDE

    def moved_parameter(self, here: float, length: float) -> float:
        """The parameter e^length times this one, or the next integer; the end where that is nearer."""
        there = self.nearest_parameter(math.log(here) + length)
        if there != here or not self.integer:
            return there
        return min(max(here + (1 if length > 0 else -1), self.low), self.high)

    def outward_parameters(self, start: float) -> Iterator[float]:
        """Yield parameters further and further from the start, on either side in turn."""
        low = high = start
        while (low, high) != (self.low, self.high):
            low, high = self.moved_parameter(low, -2 * FARTHEST), self.moved_parameter(high, 2 * FARTHEST)
            yield from (low, high)


@dataclass(slots=True)
class ParameterSearch:
    """The search: the evaluations so far, and the ends of the range."""

    make_loss: MakeLoss
    budget_excess: Callable[[PrivacyLoss], tuple[float, float]]
    """``excess`` and ``surplus`` of a loss."""
    parameter_range: ParameterRange
    evaluations_by_parameter: dict[float, EvaluatedParameter] = field(default_factory=dict)
    pending_loss: dict[float, PrivacyLoss] = field(default_factory=dict)
    """The last loss that was made, but not yet evaluated."""

    def evaluate_parameter(self, parameter: float) -> EvaluatedParameter:
        """The parameter's loss, evaluated once."""
        if parameter not in self.evaluations_by_parameter:
            if len(self.evaluations_by_parameter) >= MOST_EVALUATIONS:
                raise PrecisionError(
                    f"no answer after {len(self.evaluations_by_parameter)} evaluations; is the loss monotone?"
                )
            loss = self._made_loss(parameter)
            self.evaluations_by_parameter[parameter] = EvaluatedParameter(
                parameter, math.log(parameter), loss, *self.budget_excess(loss)
            )
        return self.evaluations_by_parameter[parameter]

    def _made_loss(self, parameter: float) -> PrivacyLoss:
        if parameter not in self.pending_loss:
            self.pending_loss = {parameter: self.make_loss(parameter)}
        loss = self.pending_loss[parameter]
        if not isinstance(loss, PrivacyLoss):
            remedy = "a mechanism has one: return mechanism.loss"
            raise InputError(f"make_loss({parameter!r})", loss, "a PrivacyLoss", remedy)
        return loss

    def _refusal_of(self, parameter: float) -> InputError | None:
        """Return why ``make_loss`` rejects this parameter; None if it does not, or this is unknown."""
        with suppress(PrecisionError):
            try:
                self.pending_loss = {parameter: self.make_loss(parameter)}
            except InputError as error:
                return error
        return None

    def first_evaluation(self) -> EvaluatedParameter:
        """Return the first evaluation: the start of the range, or the nearest parameter with a computable loss."""
        start = self.parameter_range.first_parameter
        why: list[InputError | PrecisionError] = []
        for parameter in (
            start,
            *(() if all(self.parameter_range.stated_ends) else self.parameter_range.outward_parameters(start)),
        ):
            if refused := self._refusal_of(parameter):
                why.append(refused)
                continue
            try:
                return self.evaluate_parameter(parameter)
            except PrecisionError as error:
                why.append(error)
        raise why[0]

    def evaluate_step(self, here: EvaluatedParameter, length: float) -> EvaluatedParameter | None:
        """A parameter e^length times as large, or the last before the range ends; None where it ends here."""
        target = self._last_accepted(here.parameter, self.parameter_range.moved_parameter(here.parameter, length))
        for _ in range(RETREATS):
            if target == here.parameter:
                return None
            try:
                return self.evaluate_parameter(target)
            except PrecisionError:
                target = self.parameter_range.nearest_parameter((here.log_parameter + math.log(target)) / 2)
        return self.evaluate_parameter(target)

    def _last_accepted(self, here: float, there: float) -> float:
        """``there``, or the last parameter on the way that ``make_loss`` accepts: the range ends at it from now on.

        Raises its ``InputError`` if the range stated by the caller continues.
        """
        refused = None if there == here or there in self.evaluations_by_parameter else self._refusal_of(there)
        if refused is None:
            return there
        if self.parameter_range.stated_ends[there > here]:
            raise refused
        while (middle := self._middle_parameter(here, there)) not in (here, there):
            here, there = (middle, there) if self._refusal_of(middle) is None else (here, middle)
        low, high = (self.parameter_range.low, here) if there > here else (here, self.parameter_range.high)
        self.parameter_range = replace(self.parameter_range, low=low, high=high)
        return here

    def _middle_parameter(self, one: float, other: float) -> float:
        return (one + other) // 2 if self.parameter_range.integer else (one + other) / 2

    def loss_falls(self, first: EvaluatedParameter) -> bool:
        """Return whether the loss falls with the parameter: from two evaluations, or more if these are equal."""
        for other in self._evaluations_around(first):
            # Positive where the first is less private: by the excess, and where nothing is lost by the total variation.
            apart = other.excess - first.excess
            if more := (
                other.loss.total_variation() - first.loss.total_variation()
                if apart == 0 and other.meets_budget
                else apart
            ):
                return (more < 0) == (other.log_parameter > first.log_parameter)
        remedy = "widen the range, or say increasing=True or increasing=False"
        raise InputError("make_loss", first.loss, "a loss that depends on the parameter", remedy)

    def _evaluations_around(self, first: EvaluatedParameter) -> Iterator[EvaluatedParameter]:
        """Yield a neighbor of the first, then parameters further out on either side in turn, the likely side first.

        By default, the loss is expected to fall with a real parameter (a scale) and to rise with an integer (steps).
        """
        within = self.parameter_range
        falling = within.loss_falls if within.loss_falls is not None else not within.integer
        sides = (1, -1) if first.meets_budget != falling else (-1, 1)
        ends = dict.fromkeys(sides, first)
        beside = (self.evaluate_step(first, side * self.parameter_range.first_stride) for side in sides)
        second = next((tried for tried in beside if tried is not None), None)
        if second is not None:
            ends[1 if second.log_parameter > first.log_parameter else -1] = second
            yield second
        length = FARTHEST
        while ends:
            for side in list(ends):
                further = self.evaluate_step(ends[side], side * length)
                if further is None:
                    del ends[side]
                else:
                    ends[side] = further
                    yield further
            length *= 2


def bracket_root(search: ParameterSearch, increasing: bool | None) -> Pair:
    """Return a parameter that meets the budget and one that violates it.

    The second equals None if the most useful end of the range meets the budget, the first if the most private end
    violates it.
    """
    first = search.first_evaluation()
    falls = search.loss_falls(first) if increasing is None else not increasing
    upwards = first.meets_budget != falls  # the way to the root: smaller ones are more useful where the loss falls
    alike = [tried for tried in search.evaluations_by_parameter.values() if tried.meets_budget == first.meets_budget]
    others = [tried for tried in search.evaluations_by_parameter.values() if tried.meets_budget != first.meets_budget]
    *_, here = ordered = sorted(alike, key=lambda tried: tried.log_parameter if upwards else -tried.log_parameter)
    if others:
        there = min(others, key=lambda tried: abs(tried.log_parameter - here.log_parameter))
        return _ordered_pair(here, there)
    # On from `here` until the budget is kept no more, or at last; `before` is what was tried before it.
    before = ordered[-2] if len(ordered) > 1 else None
    walked_here = here
    sign, longest, overshoot = (1 if upwards else -1), FARTHEST, OVERSHOOT
    while True:
        length = (
            search.parameter_range.first_stride
            if before is None
            else min(_secant_stride(before, walked_here, overshoot), longest)
        )
        walked_there = search.evaluate_step(walked_here, sign * length)
        if walked_there is None or walked_there.meets_budget != walked_here.meets_budget:
            return _ordered_pair(walked_here, walked_there)
        before, walked_here, longest, overshoot = walked_here, walked_there, 2 * longest, 2 * overshoot - 1


def _ordered_pair(here: EvaluatedParameter, there: EvaluatedParameter | None) -> Pair:
    """Return the two, with the one that meets the budget first."""
    return (here, there) if here.meets_budget else (there, here)


def _secant_stride(before: EvaluatedParameter, here: EvaluatedParameter, overshoot: float) -> float:
    """A little beyond where the secant meets zero; ∞ where it does not."""
    fallen = before.excess - here.excess
    ratio = here.excess / fallen if fallen else math.inf
    return max(overshoot * ratio * abs(here.log_parameter - before.log_parameter), SHORTEST) if ratio >= 0 else math.inf


# Narrowing a bracket: the root of the excess between a parameter that meets a budget and one that violates it.

FINEST = 1e-14
"""Parameters with a smaller relative distance are treated as equal: their logarithms are rounded."""
PUSHED = 0.9
"""An estimate near an end of the bracket is moved inwards by this fraction of the tolerance, across the root."""
TRUSTED = 0.5
"""A quadratic is used if it corrects the secant by at most this fraction of its step."""
BEYOND_LAST = 0.1
"""An extrapolated point is overshot by this fraction of the step to it."""


@dataclass(slots=True)
class _RootBracket:
    """The two ends, and the previous end that violated the budget."""

    search: ParameterSearch
    inside_budget: EvaluatedParameter
    outside_budget: EvaluatedParameter
    previous_outside: EvaluatedParameter

    @property
    def log_width(self) -> float:
        return abs(self.inside_budget.log_parameter - self.outside_budget.log_parameter)

    @property
    def nearest_evaluations(self) -> list[EvaluatedParameter]:
        """All evaluations, in ascending order of the absolute excess."""
        return sorted(self.search.evaluations_by_parameter.values(), key=lambda tried: abs(tried.excess))

    def is_narrow_enough(self, tolerance: float) -> bool:
        apart = abs(self.inside_budget.parameter - self.outside_budget.parameter)
        return apart <= (1 if self.search.parameter_range.integer else tolerance * self.inside_budget.parameter)

    def narrow_at(self, place: float, tolerance: float) -> None:
        """The parameter there is one of the ends now; of integers one strictly between them."""
        found, whole = (
            self.search.parameter_range.nearest_parameter(self._safe_place(place, tolerance)),
            self.search.parameter_range.integer,
        )
        low, high = sorted((self.inside_budget.parameter, self.outside_budget.parameter))
        tried = self.search.evaluate_parameter(min(max(found, low + 1), high - 1) if whole else found)
        if tried.meets_budget:
            self.inside_budget = tried
        else:
            self.previous_outside, self.outside_budget = self.outside_budget, tried

    def _safe_place(self, place: float, tolerance: float) -> float:
        """Return the point, moved inwards if it is near an end; the middle if it is outside."""
        gap = math.log1p(1 / self.inside_budget.parameter) if self.search.parameter_range.integer else tolerance
        low, high = sorted((self.inside_budget.log_parameter, self.outside_budget.log_parameter))
        if not low <= place <= high or high - low <= 2 * gap:
            return (low + high) / 2
        return min(max(place, low + PUSHED * gap), high - PUSHED * gap)


def close_bracket(
    search: ParameterSearch, good: EvaluatedParameter, bad: EvaluatedParameter, tolerance: float
) -> EvaluatedParameter:
    """Narrow a bracket to the tolerance (integers: to neighbors) and return the end that meets the budget.

    By secants and quadratics through the nearest evaluations. If two in a row do not halve the bracket, its middle is
    tried, and then secants of the surplus through the last two that violated the budget.
    """
    bracket, stage, tolerance = _RootBracket(search, good, bad, bad), 0, max(tolerance, FINEST)
    while not bracket.is_narrow_enough(tolerance):
        before, method = bracket.log_width, STAGES[stage]
        bracket.narrow_at(method(bracket), tolerance)
        halved = bracket.log_width <= before / 2
        stage = STAGES.index(AGAIN[method]) if halved and method in AGAIN else (stage + 1) % len(STAGES)
    return bracket.inside_budget


def _interpolated_root(bracket: _RootBracket) -> float:
    """Return the zero of the excess by the secant through the nearest two, corrected by the quadratic through three."""
    first, second, *others = bracket.nearest_evaluations
    if first.excess == second.excess:
        return math.nan
    secant = first.log_parameter - first.excess * (second.log_parameter - first.log_parameter) / (
        second.excess - first.excess
    )
    if not others:
        return secant
    # Lagrange's formula for the place as a function of the excess, at zero; undefined where two excesses agree.
    third = others[0]
    a, b, c = first.excess, second.excess, third.excess
    parts = (a - b) * (a - c), (b - a) * (b - c), (c - a) * (c - b)
    if not all(parts):
        return secant
    root = (
        first.log_parameter * (b * c / parts[0])
        + second.log_parameter * (a * c / parts[1])
        + third.log_parameter * (a * b / parts[2])
    )
    return root if abs(root - secant) <= TRUSTED * abs(secant - first.log_parameter) else secant


def _bracket_middle(bracket: _RootBracket) -> float:
    """The middle."""
    return (bracket.inside_budget.log_parameter + bracket.outside_budget.log_parameter) / 2


def _extrapolated_root(bracket: _RootBracket) -> float:
    """Return the zero of the surplus by the secant through two positive values: beyond, it may fall abruptly to 0."""
    bad, worse = bracket.outside_budget, bracket.previous_outside
    steep = worse.surplus - bad.surplus
    return bad.log_parameter + bad.surplus * (bad.log_parameter - worse.log_parameter) / steep if steep else math.nan


def _overshot_root(bracket: _RootBracket) -> float:
    """Return a point slightly beyond the extrapolated one: one-sided extrapolation would only approach the root."""
    place = _extrapolated_root(bracket)
    return place + BEYOND_LAST * (place - bracket.outside_budget.log_parameter)


Method = Callable[[_RootBracket], float]
STAGES: tuple[Method, ...] = (
    _interpolated_root, _interpolated_root, _bracket_middle, _interpolated_root, _interpolated_root, _extrapolated_root,
    _overshot_root, _bracket_middle,
)  # fmt: skip
"""Methods in the order in which they are tried; the next one is used if the bracket was not halved."""
AGAIN: dict[Method, Method] = {
    _interpolated_root: _interpolated_root, _extrapolated_root: _extrapolated_root, _overshot_root: _extrapolated_root,
}  # fmt: skip
"""The next method after one that halved the bracket."""
