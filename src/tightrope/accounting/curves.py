"""Curves derived from a privacy profile, with bounds: trade-off, true-positive rate, best accuracy, Bayes risk."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import lru_cache, singledispatch
from threading import Lock
from typing import Protocol, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tightrope.accounting.bounds import Bounds, Interval, probability_error_bounds
from tightrope.accounting.distributions.atoms import Atoms
from tightrope.accounting.distributions.base import BoundArrays
from tightrope.accounting.distributions.composition import Composition
from tightrope.accounting.methods.method import Method
from tightrope.accounting.methods.select import ClosedFormMethod, choose_method
from tightrope.accounting.tradeoff import OrderBounds, type_two_error
from tightrope.errors import InputError
from tightrope.numerics.arrays import Floats
from tightrope.numerics.checks import check_finite
from tightrope.numerics.rounding import ROUND_OFF

# The overlap of two distributions, 1 − δ(ε) = ∫ min(dP, e^ε dQ), and both orders of a pair for callers that need them.

Directed = tuple[Composition, Method]
CACHED_METHODS = 8
"""Number of methods for reverse orders that are cached."""


@singledispatch
def delta_and_complement(method: Method, epsilon: float) -> tuple[Interval, Interval]:
    """Return bounds on δ(ε) and on 1 − δ(ε), ε ≥ 0: the second by subtraction unless the method is more accurate."""
    return _with_complement(method.delta(epsilon))


@delta_and_complement.register
def _(method: ClosedFormMethod, epsilon: float) -> tuple[Interval, Interval]:
    delta, flat = method.delta(epsilon), method.law.flat_form
    if flat is not None:
        # ∫ min(e^{l/2}, e^{ε − l/2}) of the distribution tilted by e^{−l/2}, atoms and density, with its error.
        end, atom, density = flat.epsilon, flat.atom, flat.spread / flat.epsilon
        if epsilon >= end:
            value = 2 * atom * math.cosh(end / 2) + 2 * density * math.sinh(end / 2)
        else:
            below, above = -math.expm1(-(end + epsilon) / 2), -math.expm1((epsilon - end) / 2)
            value = atom * (math.exp(epsilon - end / 2) + math.exp(-end / 2))
            value += density * math.exp(epsilon / 2) * (below + above)
        error = value * (4 * method.law.rounding_error_bound + ROUND_OFF * (32 + 2 * (end + epsilon)))
        return delta, probability_error_bounds(value, error)
    point = np.array([epsilon])
    overlap = method.law.overlap_bounds((point, point))
    return _with_complement(delta) if overlap is None else (delta, (float(overlap[0][0]), float(overlap[1][0])))


def _with_complement(delta: Interval) -> tuple[Interval, Interval]:
    return delta, (probability_error_bounds(1 - delta[1], 0.0)[0], probability_error_bounds(1 - delta[0], 0.0)[1])


def both_orders(directed: Directed, known: list[Directed]) -> tuple[OrderBounds, OrderBounds] | None:
    """Return a direction and its reverse, reusing a method of ``known``; None if masses have been lost."""
    total, method = directed
    if not all(law.has_exact_reverse for law in total.laws if isinstance(law, Atoms)):
        return None
    reverse = total.reverse_distribution()
    same = (method for other, method in known if other.laws == reverse.laws and other.counts == reverse.counts)
    back = next(same, None) or _reversed_method(total)
    return _ordered_bounds(method, total), _ordered_bounds(back, reverse)


def _ordered_bounds(method: Method, total: Composition) -> OrderBounds:
    return OrderBounds(lambda epsilon: delta_and_complement(method, epsilon), total.infinite_bounds)


@lru_cache(maxsize=CACHED_METHODS)
def _reversed_method(total: Composition) -> Method:
    return choose_method(total.reverse_distribution())


# Scalars in, float out; arrays in, arrays of the same shape out.


class Check(Protocol):
    """Converts one value to a float or raises ``InputError``."""

    def __call__(self, name: str, value: object, /) -> float: ...


def evaluate_each(
    name: str, values: ArrayLike, answer: Callable[[Floats], Floats], *, check: Check = check_finite
) -> float | Floats:
    """Apply ``answer`` to the flat values; ``InputError`` for non-numbers and for values that fail ``check``."""
    flat, shape = _flatten_values(name, values, check)
    return _restore_shape(answer(flat), shape)


def evaluate_each_pair(
    name: str, values: ArrayLike, answer: Callable[[Floats], tuple[Floats, Floats]], *, check: Check = check_finite
) -> tuple[float | Floats, float | Floats]:
    """Like ``evaluate_each``, for a function that returns two results."""
    flat, shape = _flatten_values(name, values, check)
    first, second = answer(flat)
    return _restore_shape(first, shape), _restore_shape(second, shape)


def _restore_shape(results: Floats, shape: tuple[int, ...] | None) -> float | Floats:
    return float(results[0]) if shape is None else results.reshape(shape)


def _flatten_values(name: str, values: ArrayLike, check: Check) -> tuple[Floats, tuple[int, ...] | None]:
    """Return the values flattened, and their shape; None for a scalar."""
    try:
        array = np.asarray(values)
    except ValueError:
        raise InputError(name, values, "a number, or an array of numbers") from None
    if array.ndim == 0:
        return np.array([check(name, array.item() if isinstance(values, np.ndarray) else values)]), None
    if array.size == 0:
        raise InputError(name, values, "a number, or an array with at least one entry")
    if array.dtype == np.float64 and np.all(np.isfinite(array)):
        return array.ravel(), array.shape
    return np.array([check(name, value) for value in array.ravel().tolist()]), array.shape


EVEN_PRIOR = 0.5
CURVE_ROUNDING = 1e-15
SMALL_ERROR = 0.1
WIDE_RELATIVE_ERROR = 1e-9
"""A type-II error below the first and with a relative error above the second is computed directly, not as 1 − p."""


class Curves(ABC):
    """Curves that follow from bounds on δ(ε) and on the true-positive rate."""

    __slots__ = ()

    @property
    @abstractmethod
    def true_value_of(self) -> str:
        """The mechanisms that have the true value between the bounds."""

    @abstractmethod
    def _delta_brackets(self, epsilons: Floats) -> tuple[Floats, Floats]:
        """Lower and upper bounds on δ, shape [n]."""

    @abstractmethod
    def _true_positive_bounds(self, rate: float) -> tuple[float, float]:
        """Bounds on the true-positive rate at one false-positive rate."""

    @abstractmethod
    def _direction_methods(self) -> list[Directed]:
        """Return each direction with its evaluator."""

    def total_variation(self) -> float:
        """Upper bound on η = δ(0) = TV(P, Q), the attacker's greatest advantage over a coin toss.

        >>> from tightrope import gaussian
        >>> round(gaussian(scale=1).loss.total_variation(), 9)
        0.382924923
        """
        return float(self._delta_brackets(np.zeros(1))[1][0])

    def total_variation_bounds(self) -> Bounds:
        """``Bounds(lower, upper)`` around η; see ``total_variation``."""
        lower, upper = self._delta_brackets(np.zeros(1))
        return Bounds(float(lower[0]), float(upper[0]), self.true_value_of)

    def bayes_security(self) -> float:
        """Lower bound on β* = 1 − η, the best attacker's error rate relative to random guessing (GI III-B).

        1 is perfect, 0 means certain success; k releases of total variation at most η each have at least (1 − η)^k.

        >>> from tightrope import gaussian
        >>> round(gaussian(scale=1).loss.bayes_security(), 9)
        0.617075077
        """
        return 2 * float(self.bayes_risk())

    @overload
    def attack_success(self, prior: float = ...) -> float: ...
    @overload
    def attack_success(self, prior: Floats | list[float]) -> Floats: ...
    def attack_success(self, prior: ArrayLike = EVEN_PRIOR) -> float | Floats:
        """Upper bound on the accuracy of a membership guess by an attacker whose prior probability is ``prior``.

        1 − π + π δ(log((1−π)/π)), the worse direction; (1 + η)/2 at π = ½. Raises ``InputError`` unless 0 < π < 1.

        >>> from tightrope import gaussian
        >>> round(gaussian(scale=1).loss.attack_success(), 9), round(gaussian(scale=1).loss.attack_success(0.01), 9)
        (0.691462461, 0.990000038)
        """
        return evaluate_each("prior", prior, lambda p: _complement_bounds(self._risk_bounds(p)[0])[1])

    @overload
    def bayes_risk(self, prior: float = ...) -> float: ...
    @overload
    def bayes_risk(self, prior: Floats | list[float]) -> Floats: ...
    def bayes_risk(self, prior: ArrayLike = EVEN_PRIOR) -> float | Floats:
        """Lower bound on the error rate of the best membership guess: 1 − ``attack_success``."""
        return evaluate_each("prior", prior, lambda p: self._risk_bounds(p)[0])

    def bayes_risk_bounds(self, prior: ArrayLike = EVEN_PRIOR) -> Bounds:
        """``Bounds(lower, upper)`` around the Bayes risk; see ``bayes_risk``."""
        return Bounds(*evaluate_each_pair("prior", prior, self._risk_bounds), self.true_value_of)

    def _risk_bounds(self, prior: Floats) -> tuple[Floats, Floats]:
        """Return bounds on π (1 − δ(log((1−π)/π)))."""
        if not np.all((prior > 0) & (prior < 1)):
            raise InputError("prior", prior.tolist(), "probabilities strictly between 0 and 1", "0.5 is a fair coin")
        odds = np.log1p(-prior) - np.log(prior)
        lower, upper = self._delta_brackets(odds)
        # The relative change of 1 − δ is at most the change of ε, and ε has rounding errors.
        room = CURVE_ROUNDING * (1 + np.abs(odds) + np.abs(np.log1p(-prior)))
        least, most = (
            prior * (np.nextafter(1 - upper, 0.0)) * (1 - room),
            prior * np.nextafter(1 - lower, 1.0) * (1 + room),
        )
        return np.maximum(np.nextafter(least, -1.0), 0.0), np.minimum(np.nextafter(most, 2.0), prior)

    @overload
    def tradeoff(self, false_positive_rate: float) -> float: ...
    @overload
    def tradeoff(self, false_positive_rate: Floats | list[float]) -> Floats: ...
    def tradeoff(self, false_positive_rate: ArrayLike) -> float | Floats:
        """Lower bound on the type-II error of every attack with this type-I error (the trade-off function).

        f(t) = sup_ε 1 − δ(ε) − e^ε t for each direction, the smaller of the two (theory §1), to relative accuracy also
        when it is nearly 0. Raises ``InputError`` unless 0 ≤ t ≤ 1.

        >>> from tightrope import gaussian
        >>> round(gaussian(scale=1).loss.tradeoff(0.05), 6)
        0.740489
        """
        return evaluate_each("false_positive_rate", false_positive_rate, lambda t: self._error_bounds(t)[1][0])

    def tradeoff_bounds(self, false_positive_rate: ArrayLike) -> Bounds:
        """``Bounds(lower, upper)`` around f(t); see ``tradeoff``."""
        ends = evaluate_each_pair("false_positive_rate", false_positive_rate, lambda t: self._error_bounds(t)[1])
        return Bounds(*ends, self.true_value_of)

    @overload
    def true_positive_rate(self, false_positive_rate: float) -> float: ...
    @overload
    def true_positive_rate(self, false_positive_rate: Floats | list[float]) -> Floats: ...
    def true_positive_rate(self, false_positive_rate: ArrayLike) -> float | Floats:
        """Upper bound on the true-positive rate of every attack with this false-positive rate.

        1 − f(t) = inf_ε δ(ε) + e^ε t, to full relative accuracy however small t is; see ``tradeoff``.

        >>> from tightrope import gaussian
        >>> print(f"{gaussian(scale=1).loss.true_positive_rate(1e-12):.6e}")
        7.973580e-10
        """
        return evaluate_each("false_positive_rate", false_positive_rate, lambda t: self._error_bounds(t)[0][1])

    def true_positive_rate_bounds(self, false_positive_rate: ArrayLike) -> Bounds:
        """``Bounds(lower, upper)`` around the true-positive rate; see ``true_positive_rate``."""
        ends = evaluate_each_pair("false_positive_rate", false_positive_rate, lambda t: self._error_bounds(t)[0])
        return Bounds(*ends, self.true_value_of)

    def _error_bounds(self, rates: Floats) -> tuple[BoundArrays, BoundArrays]:
        """Return bounds on the true-positive rate and on the type-II error; small type-II errors are direct."""
        if not np.all((rates >= 0) & (rates <= 1)):
            raise InputError("false_positive_rate", rates.tolist(), "probabilities in [0, 1]")
        low, high = (
            np.array(ends) for ends in zip(*(self._true_positive_bounds(rate) for rate in rates.tolist()), strict=True)
        )
        least, most = _complement_bounds(high)[0], _complement_bounds(low)[1]
        for i in np.flatnonzero((least < SMALL_ERROR) & (most - least > WIDE_RELATIVE_ERROR * most)):
            lower, upper = self._type_two_bounds(float(rates[i]))
            least[i], most[i] = max(least[i], lower), min(most[i], upper)
        low, high = np.maximum(low, _complement_bounds(most)[0]), np.minimum(high, _complement_bounds(least)[1])
        return (low, high), (least, most)

    def _type_two_bounds(self, rate: float) -> tuple[float, float]:
        """Return bounds on the type-II error, the smaller of both directions."""
        known = self._direction_methods()
        orders = [both_orders(directed, known) for directed in known]
        errors = [(0.0, 1.0) if pair is None else type_two_error(*pair, rate) for pair in orders]
        return min(low for low, _ in errors), min(high for _, high in errors)


def _complement_bounds(chances: Floats) -> BoundArrays:
    """Return 1 − p from below and above; exact where the subtraction was."""
    rest = 1.0 - chances
    rounded = (1.0 - rest) != chances
    return np.where(rounded, np.nextafter(rest, 0.0), rest), np.where(rounded, np.nextafter(rest, 1.0), rest)


class MonotoneBrackets:
    """Bounds on a nonincreasing function of ε that are nonincreasing themselves; each answer agrees with earlier ones.

    Bounds at neighboring ε may differ by rounding, so that an upper end can rise by some units in the last place. The
    true function is nonincreasing, so an upper end may be lowered to the one at a smaller ε, and a lower end raised to
    the one at a larger ε. Repeated calls at the same ε return the same answer.
    """

    __slots__ = ("_ends", "_epsilons", "_lock")

    def __init__(self) -> None:
        self._epsilons: Floats = np.empty(0)
        self._ends: Floats = np.empty((0, 2))
        self._lock = Lock()

    def __reduce__(self) -> tuple[type[MonotoneBrackets], tuple[()]]:
        """Pickle as an empty cache."""
        return MonotoneBrackets, ()

    def __deepcopy__(self, memo: object) -> MonotoneBrackets:
        """Copy as an empty cache."""
        del memo
        return MonotoneBrackets()

    def missing_epsilons(self, epsilons: Floats) -> Floats:
        """Return the ε without an answer so far, unique and ascending."""
        with self._lock:
            unique = np.unique(epsilons)
            return unique[~self._has_brackets(unique)]

    def brackets_at(self, epsilons: Floats) -> tuple[Floats, Floats]:
        """Return both ends at ε that all have an answer."""
        with self._lock:
            ends = self._ends[np.searchsorted(self._epsilons, epsilons)]
        return ends[:, 0], ends[:, 1]

    def insert_brackets(self, epsilons: Floats, low: Floats, high: Floats) -> None:
        """Store bounds at ascending ε, each clipped to the bounds of its neighbors; existing ones are unchanged.

        >>> falling = MonotoneBrackets()
        >>> falling.insert_brackets(np.array([1.0, 2.0]), np.array([0.1, 0.05]), np.array([0.2, 0.21]))
        >>> falling.insert_brackets(np.array([1.0, 1.5]), np.array([0.0, 0.12]), np.array([1.0, 0.19]))
        >>> falling.brackets_at(np.array([1.0, 1.5, 2.0]))
        (array([0.1 , 0.1 , 0.05]), array([0.2, 0.2, 0.2]))
        """
        with self._lock:
            new = ~self._has_brackets(epsilons)
            at, ends = epsilons[new], np.column_stack((low, high))[new]
            indices = np.searchsorted(self._epsilons, at)
            neighbors = np.vstack(([np.inf, np.inf], self._ends, [-np.inf, -np.inf]))
            ends = np.minimum(np.maximum(ends, neighbors[indices + 1]), neighbors[indices])
            falling = np.maximum.accumulate(ends[::-1, 0])[::-1], np.minimum.accumulate(ends[:, 1])
            self._epsilons = np.insert(self._epsilons, indices, at)
            self._ends = np.insert(self._ends, indices, np.column_stack(falling), axis=0)

    def _has_brackets(self, epsilons: Floats) -> NDArray[np.bool_]:
        indices = np.searchsorted(self._epsilons, epsilons)
        inside = indices < len(self._epsilons)
        inside[inside] = self._epsilons[indices[inside]] == epsilons[inside]
        return inside
