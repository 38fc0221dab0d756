"""Search for the parameter at which a loss just meets a budget: a bracket is found first, then narrowed.

The *excess* of a loss over its budget is evaluated at few parameters, and near the answer, because losses far from it
are slow to compute. If the caller stated no end on a side, a parameter that ``make_loss`` rejects with ``InputError``
ends the range there: a sampling rate ends at 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from tightrope.accounting.privacy_loss import PrivacyLoss
from tightrope.errors import InputError, PrecisionError
from tightrope.numerics.root_finding import bisect_integer, bisect_real

SMALLEST, LARGEST, MOST = 1e-12, 1e12, 10**9
"""Default range of a parameter; integers from 1 to ``MOST``."""
DEFAULT_PARAMETER, DEFAULT_INTEGER = 1.0, 256
"""Default first parameter, unless the caller stated both ends or one that excludes it."""
MAX_EVALUATIONS = 400
FIRST_STRIDE, STRIDE_FROM_GUESS, MAX_STRIDE = math.log(2.0), math.log(1.25), math.log(4.0)
"""Log-factors: from the first parameter to the second, the same if the first is a guess, and the maximum of the next;
after each step the maximum doubles."""
MIN_STRIDE = 1e-3
"""Smallest log-factor of a step."""
SECANT_OVERSHOOT = 1.05
"""Factor by which the step to the secant's root is extended, so that it ends on the other side."""
MAX_RETREATS = 5
"""Maximal number of halvings of a step whose loss cannot be computed."""

MakeLoss = Callable[[Any], PrivacyLoss]
Bracket = tuple["EvaluatedParameter | None", "EvaluatedParameter | None"]


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
        if all(self.stated_ends):
            return self.nearest_parameter((math.log(self.low) + math.log(self.high)) / 2)
        return self.nearest_parameter(math.log(DEFAULT_INTEGER if self.integer else DEFAULT_PARAMETER))

    def nearest_parameter(self, log_parameter: float) -> float:
        """Return the parameter in the range nearest to e^log_parameter; ends are returned without rounding."""
        if log_parameter <= math.log(self.low):
            return self.low
        if log_parameter >= math.log(self.high):
            return self.high
        parameter = math.exp(log_parameter)
        return min(max(round(parameter) if self.integer else parameter, self.low), self.high)

    @property
    def first_stride(self) -> float:
        """Log-distance of the second parameter from the first."""
        return FIRST_STRIDE if self.initial_guess is None else STRIDE_FROM_GUESS

    def moved_parameter(self, parameter: float, length: float) -> float:
        """Return e^length times this parameter, or the next integer; at most the end of the range."""
        moved = self.nearest_parameter(math.log(parameter) + length)
        if moved != parameter or not self.integer:
            return moved
        return min(max(parameter + (1 if length > 0 else -1), self.low), self.high)

    def outward_parameters(self, start: float) -> Iterator[float]:
        """Yield parameters at growing distances from the start, on both sides in turn."""
        low = high = start
        while (low, high) != (self.low, self.high):
            low, high = self.moved_parameter(low, -2 * MAX_STRIDE), self.moved_parameter(high, 2 * MAX_STRIDE)
            yield from (low, high)


@dataclass(slots=True)
class ParameterSearch:
    """The state of a search: the evaluations so far, and the range, whose ends may move inwards."""

    make_loss: MakeLoss
    budget_excess: Callable[[PrivacyLoss], tuple[float, float]]
    """Returns ``excess`` and ``surplus`` of a loss."""
    parameter_range: ParameterRange
    evaluations_by_parameter: dict[float, EvaluatedParameter] = field(default_factory=dict)
    pending_loss: dict[float, PrivacyLoss] = field(default_factory=dict)
    """The last loss that was built, but not yet evaluated, by its parameter."""

    def evaluate_parameter(self, parameter: float) -> EvaluatedParameter:
        """Return the evaluation of a parameter's loss; each parameter is evaluated once."""
        if parameter not in self.evaluations_by_parameter:
            if len(self.evaluations_by_parameter) >= MAX_EVALUATIONS:
                raise PrecisionError(
                    f"not found after {len(self.evaluations_by_parameter)} evaluations; "
                    "is the loss monotone in the parameter?"
                )
            loss = self._build_loss(parameter)
            self.evaluations_by_parameter[parameter] = EvaluatedParameter(
                parameter, math.log(parameter), loss, *self.budget_excess(loss)
            )
        return self.evaluations_by_parameter[parameter]

    def _build_loss(self, parameter: float) -> PrivacyLoss:
        if parameter not in self.pending_loss:
            self.pending_loss = {parameter: self.make_loss(parameter)}
        loss = self.pending_loss[parameter]
        if not isinstance(loss, PrivacyLoss):
            remedy = "for a mechanism, return mechanism.loss"
            raise InputError(f"make_loss({parameter!r})", loss, "a PrivacyLoss", remedy)
        return loss

    def _input_error_at(self, parameter: float) -> InputError | None:
        """Return the error by which ``make_loss`` rejects this parameter; None if it accepts it or fails otherwise."""
        with suppress(PrecisionError):
            try:
                self.pending_loss = {parameter: self.make_loss(parameter)}
            except InputError as error:
                return error
        return None

    def first_evaluation(self) -> EvaluatedParameter:
        """Return the first evaluation: the start of the range, or the nearest parameter with a computable loss."""
        start = self.parameter_range.first_parameter
        errors: list[InputError | PrecisionError] = []
        for parameter in (
            start,
            *(() if all(self.parameter_range.stated_ends) else self.parameter_range.outward_parameters(start)),
        ):
            if rejected := self._input_error_at(parameter):
                errors.append(rejected)
                continue
            try:
                return self.evaluate_parameter(parameter)
            except PrecisionError as error:
                errors.append(error)
        raise errors[0]

    def evaluate_step(self, start: EvaluatedParameter, length: float) -> EvaluatedParameter | None:
        """Return the evaluation of e^length times this parameter, or of the end of the range; None if it is the end."""
        target = self._last_accepted_parameter(
            start.parameter, self.parameter_range.moved_parameter(start.parameter, length)
        )
        for _ in range(MAX_RETREATS):
            if target == start.parameter:
                return None
            try:
                return self.evaluate_parameter(target)
            except PrecisionError:
                target = self.parameter_range.nearest_parameter((start.log_parameter + math.log(target)) / 2)
        return self.evaluate_parameter(target)

    def _last_accepted_parameter(self, accepted: float, target: float) -> float:
        """Return ``target``, or else the last parameter before it that ``make_loss`` accepts: the new end of the range.

        Raises the ``InputError`` of ``make_loss`` if the caller stated the end of the range on this side.
        """
        error = None if target == accepted or target in self.evaluations_by_parameter else self._input_error_at(target)
        if error is None:
            return target
        if self.parameter_range.stated_ends[target > accepted]:
            raise error
        bisect: Callable[..., float] = bisect_integer if self.parameter_range.integer else bisect_real
        last = bisect(lambda parameter: self._input_error_at(parameter) is None, target, accepted, side="passes")
        low, high = (self.parameter_range.low, last) if target > accepted else (last, self.parameter_range.high)
        self.parameter_range = replace(self.parameter_range, low=low, high=high)
        return last

    def loss_falls(self, first: EvaluatedParameter) -> bool:
        """Return whether the loss falls with the parameter: from two evaluations, or more if these are equal."""
        for other in self._evaluations_around(first):
            # Positive if the other is less private: by the excess, or by the total variation if excesses are equal.
            difference = other.excess - first.excess
            if slope := (
                other.loss.total_variation() - first.loss.total_variation()
                if difference == 0 and other.meets_budget
                else difference
            ):
                return (slope < 0) == (other.log_parameter > first.log_parameter)
        remedy = "use a wider range, or pass increasing=True or increasing=False"
        raise InputError("make_loss", first.loss, "a loss that depends on the parameter", remedy)

    def _evaluations_around(self, first: EvaluatedParameter) -> Iterator[EvaluatedParameter]:
        """Yield a neighbor of the first, then parameters further out on either side in turn, the likely side first.

        By default, the loss is expected to fall with a real parameter (a scale) and to rise with an integer (steps).
        """
        parameter_range = self.parameter_range
        probably_falls = (
            parameter_range.loss_falls if parameter_range.loss_falls is not None else not parameter_range.integer
        )
        sides = (1, -1) if first.meets_budget != probably_falls else (-1, 1)
        ends = dict.fromkeys(sides, first)
        neighbors = (self.evaluate_step(first, side * self.parameter_range.first_stride) for side in sides)
        second = next((neighbor for neighbor in neighbors if neighbor is not None), None)
        if second is not None:
            ends[1 if second.log_parameter > first.log_parameter else -1] = second
            yield second
        length = MAX_STRIDE
        while ends:
            for side in list(ends):
                further = self.evaluate_step(ends[side], side * length)
                if further is None:
                    del ends[side]
                else:
                    ends[side] = further
                    yield further
            length *= 2


def bracket_parameter(search: ParameterSearch, increasing: bool | None) -> Bracket:
    """Return a parameter that meets the budget and one that violates it.

    The second is None if even the most useful end of the range meets the budget; the first is None if even the most
    private end violates it.
    """
    first = search.first_evaluation()
    falls = search.loss_falls(first) if increasing is None else not increasing
    # Whether the root is at larger parameters: if the loss falls, smaller ones are more useful.
    upwards = first.meets_budget != falls
    evaluations = search.evaluations_by_parameter.values()
    same_side = [evaluation for evaluation in evaluations if evaluation.meets_budget == first.meets_budget]
    other_side = [evaluation for evaluation in evaluations if evaluation.meets_budget != first.meets_budget]
    *_, last = ordered = sorted(
        same_side, key=lambda evaluation: evaluation.log_parameter if upwards else -evaluation.log_parameter
    )
    if other_side:
        across = min(other_side, key=lambda evaluation: abs(evaluation.log_parameter - last.log_parameter))
        return _ordered_pair(last, across)
    # Step on from `last` until an evaluation is on the other side of the root; `previous` is the one before it.
    previous = ordered[-2] if len(ordered) > 1 else None
    current = last
    sign, longest, overshoot = (1 if upwards else -1), MAX_STRIDE, SECANT_OVERSHOOT
    while True:
        length = search.parameter_range.first_stride
        if previous is not None:
            # Slightly beyond the secant's root, if that is ahead.
            decrease = previous.excess - current.excess
            ratio, length = current.excess / decrease if decrease else math.inf, longest
            if ratio >= 0:
                distance = overshoot * ratio * abs(current.log_parameter - previous.log_parameter)
                length = min(max(distance, MIN_STRIDE), longest)
        following = search.evaluate_step(current, sign * length)
        if following is None or following.meets_budget != current.meets_budget:
            return _ordered_pair(current, following)
        previous, current, longest, overshoot = current, following, 2 * longest, 2 * overshoot - 1


def _ordered_pair(one: EvaluatedParameter, other: EvaluatedParameter | None) -> Bracket:
    """Return the two evaluations, the one that meets the budget first."""
    return (one, other) if one.meets_budget else (other, one)


# Narrowing a bracket: the root of the excess between a parameter that meets the budget and one that violates it.

MIN_TOLERANCE = 1e-14
"""Parameters with a smaller relative distance are treated as equal: their logarithms are rounded."""
INWARD_FRACTION = 0.9
"""An estimate near an end of the bracket is moved inwards to this fraction of the tolerance, mostly across the root."""
MAX_QUADRATIC_CORRECTION = 0.5
"""A quadratic is used if it corrects the secant by at most this fraction of its step."""
EXTRAPOLATION_OVERSHOOT = 0.1
"""An extrapolated step is lengthened by this fraction."""


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
        width = abs(self.inside_budget.parameter - self.outside_budget.parameter)
        return width <= (1 if self.search.parameter_range.integer else tolerance * self.inside_budget.parameter)

    def narrow_at(self, log_parameter: float, tolerance: float) -> None:
        """Evaluate the parameter at this logarithm and make it an end; of integers one strictly between the ends."""
        parameter_range = self.search.parameter_range
        parameter = parameter_range.nearest_parameter(self._move_inwards(log_parameter, tolerance))
        low, high = sorted((self.inside_budget.parameter, self.outside_budget.parameter))
        if parameter_range.integer:
            parameter = min(max(parameter, low + 1), high - 1)
        tried = self.search.evaluate_parameter(parameter)
        if tried.meets_budget:
            self.inside_budget = tried
        else:
            self.previous_outside, self.outside_budget = self.outside_budget, tried

    def _move_inwards(self, log_parameter: float, tolerance: float) -> float:
        """Return the point, moved inwards if it is near an end; the middle of the bracket if it is outside."""
        gap = math.log1p(1 / self.inside_budget.parameter) if self.search.parameter_range.integer else tolerance
        low, high = sorted((self.inside_budget.log_parameter, self.outside_budget.log_parameter))
        if not low <= log_parameter <= high or high - low <= 2 * gap:
            return (low + high) / 2
        return min(max(log_parameter, low + INWARD_FRACTION * gap), high - INWARD_FRACTION * gap)


def close_parameter_bracket(
    search: ParameterSearch, good: EvaluatedParameter, bad: EvaluatedParameter, tolerance: float
) -> EvaluatedParameter:
    """Narrow a bracket to the tolerance (integers: to neighbors) and return the end that meets the budget.

    It uses secants and quadratics through the nearest evaluations. If two in a row do not halve the bracket, it tries
    the middle, and then secants of the surplus through the last two parameters that violated the budget (``STAGES``).
    """
    bracket, stage, tolerance = _RootBracket(search, good, bad, bad), 0, max(tolerance, MIN_TOLERANCE)
    while not bracket.is_narrow_enough(tolerance):
        previous_width, method = bracket.log_width, STAGES[stage]
        bracket.narrow_at(method(bracket), tolerance)
        halved = bracket.log_width <= previous_width / 2
        stage = (
            STAGES.index(NEXT_AFTER_SUCCESS[method])
            if halved and method in NEXT_AFTER_SUCCESS
            else (stage + 1) % len(STAGES)
        )
    return bracket.inside_budget


def _interpolated_root(bracket: _RootBracket) -> float:
    """Return the root of the excess: of the secant through the nearest two, or of the quadratic through three."""
    first, second, *others = bracket.nearest_evaluations
    if first.excess == second.excess:
        return math.nan
    secant = first.log_parameter - first.excess * (second.log_parameter - first.log_parameter) / (
        second.excess - first.excess
    )
    if not others:
        return secant
    # Lagrange's formula for the parameter as a function of the excess, at zero; undefined if two excesses are equal.
    third = others[0]
    a, b, c = first.excess, second.excess, third.excess
    denominators = (a - b) * (a - c), (b - a) * (b - c), (c - a) * (c - b)
    if not all(denominators):
        return secant
    root = (
        first.log_parameter * (b * c / denominators[0])
        + second.log_parameter * (a * c / denominators[1])
        + third.log_parameter * (a * b / denominators[2])
    )
    return root if abs(root - secant) <= MAX_QUADRATIC_CORRECTION * abs(secant - first.log_parameter) else secant


def _bracket_middle(bracket: _RootBracket) -> float:
    """Return the middle of the bracket."""
    return (bracket.inside_budget.log_parameter + bracket.outside_budget.log_parameter) / 2


def _extrapolated_root(bracket: _RootBracket) -> float:
    """Return the root of the surplus, by the secant through two positive values: beyond, it may fall abruptly to 0."""
    bad, worse = bracket.outside_budget, bracket.previous_outside
    decrease = worse.surplus - bad.surplus
    return (
        bad.log_parameter + bad.surplus * (bad.log_parameter - worse.log_parameter) / decrease if decrease else math.nan
    )


def _overshot_root(bracket: _RootBracket) -> float:
    """Return a point slightly beyond the extrapolated one: one-sided extrapolation would only approach the root."""
    root = _extrapolated_root(bracket)
    return root + EXTRAPOLATION_OVERSHOOT * (root - bracket.outside_budget.log_parameter)


Method = Callable[[_RootBracket], float]
STAGES: tuple[Method, ...] = (
    _interpolated_root, _interpolated_root, _bracket_middle, _interpolated_root, _interpolated_root, _extrapolated_root,
    _overshot_root, _bracket_middle,
)  # fmt: skip
"""Methods in the order in which they are tried; the next one is used if the bracket was not halved."""
NEXT_AFTER_SUCCESS: dict[Method, Method] = {
    _interpolated_root: _interpolated_root, _extrapolated_root: _extrapolated_root, _overshot_root: _extrapolated_root,
}  # fmt: skip
"""The next method after one that halved the bracket; other methods are followed by the next stage."""
