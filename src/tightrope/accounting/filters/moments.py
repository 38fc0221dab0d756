"""F3: a budget for one moment of the loss, and an odometer from several moments; both take any loss."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Self, final

import numpy as np
import scipy

from tightrope.accounting.distributions.base import LossDistribution
from tightrope.accounting.distributions.composition import Composition, probability_of_any
from tightrope.accounting.filters.filter import ROUNDING_ALLOWANCE, Filter, Guarantee, LossAccount
from tightrope.accounting.methods.method import least_epsilon
from tightrope.accounting.neighbors import Neighbors
from tightrope.accounting.privacy_loss import PrivacyLoss
from tightrope.accounting.summaries import dominating_atoms
from tightrope.errors import InputError, InsufficientBudgetError
from tightrope.numerics.arrays import Floats
from tightrope.numerics.checks import (
    check_finite,
    check_inner_probability,
    check_non_negative,
    check_nonempty,
    check_positive,
)

# Upper bounds on K(z) = log E[e^{zL}; L < ∞] for any distribution: in closed form if possible, otherwise from cells.

Orders = tuple[float, ...]


@dataclass(frozen=True, slots=True, eq=False)
class LogMoments:
    """Upper bounds: K [m] ≥ 0 at m orders, and the mass at +∞ that K does not include."""

    values: Floats
    infinite_mass: float


def log_moments(total: Composition, orders: Orders) -> LogMoments:
    """Return K of a composition of one direction, at every order; includes rounding and the slack of the losses.

    A negative K, possible if much of the distribution is infinite, counts as 0.
    """
    parts = [(_distribution_moments(law, orders), n) for law, n in zip(total.laws, total.counts, strict=True)]
    values = sum((n * np.maximum(part.values, 0.0) for part, n in parts), np.zeros(len(orders)))
    infinite = probability_of_any((part.infinite_mass, n) for part, n in parts)
    return LogMoments(values * (1 + 1e-15 * (len(parts) + 1)), min(1.0, infinite * (1 + 1e-15)))


@lru_cache(maxsize=1024)
def _distribution_moments(law: LossDistribution, orders: Orders) -> LogMoments:
    """Return K of one distribution; one that is infinite with certainty has no finite part."""
    if law.infinite_mass == 1:
        return LogMoments(np.zeros(len(orders)), 1.0)
    z = np.array(orders)
    points = z.astype(np.complex128)
    closed_form = law.log_moment(points)
    if closed_form is None:
        atoms = dominating_atoms(law)
        return LogMoments(np.array([atoms.log_moment(order) for order in orders]), atoms.infinite_mass)
    one_by_one = [slice(i, i + 1) for i in range(len(orders))]
    errors = np.concatenate([law.log_moment_error(points[i], closed_form[i]) for i in one_by_one])
    return LogMoments(
        closed_form.real + errors + z * law.rounding_error_bound + 4e-16 * np.abs(closed_form.real),
        law.infinite_mass * (1 + law.infinity_mass_error),
    )


LOG_ORDERS = (-7.0, 9.0)
"""Natural logarithms of the range of orders searched by ``MomentFilter.fit_to_plan``."""
MomentCost = tuple[Fraction, Fraction, Fraction]
"""K of removing, K of adding, infinite mass."""


@dataclass(frozen=True, slots=True)
class MomentBound:
    """δ(ε) ≤ δ_∞ + e^{B − zε} z^z / (1+z)^{1+z} (theory §2, F3), rounded up; any real ε."""

    order: float
    budget: float
    infinite_mass: float

    def delta(self, epsilon: float) -> float:
        """The bound; at most 1. Raises ``InputError`` if ε is not finite."""
        z, epsilon = self.order, check_finite("epsilon", epsilon)
        terms = (self.budget, -z * epsilon, log_peak(z))
        exponent = math.fsum(terms) + 4e-16 * math.fsum(map(abs, terms))
        tail = math.exp(min(exponent, 0.0)) * (1 + 1e-15)
        return min(1.0, math.nextafter(self.infinite_mass + tail, 2.0))

    def epsilon(self, delta: float) -> float:
        """Smallest ε ≥ 0 at which the bound is ≤ δ; ∞ if δ ≤ δ_∞. Raises ``InputError`` unless 0 ≤ δ < 1."""
        delta = check_finite("delta", delta)
        if not 0 <= delta < 1:
            raise InputError("delta", delta, "a number in [0, 1)", "much smaller than 1/(number of people)")
        return least_epsilon(self.delta, delta, upper_bound=True) if delta > self.infinite_mass else math.inf


@final
class MomentFilter(Filter[MomentCost]):
    """Any losses while ΣK_i(z) ≤ ``budget`` in both directions and Σδ_∞,i ≤ ``infinite_mass`` (theory §2, F3).

    K(z) = log E[e^{zL}; L < ∞]; ``order`` z > 0, the budget B (nats) and the infinite mass are declared beforehand.
    Then δ(ε) ≤ δ_∞ + e^{B − zε} z^z/(1+z)^{1+z}: ``docs/proofs/filters.md``. Rényi and concentrated filters are
    special cases. The best z depends on the plan and on δ: ``MomentFilter.fit_to_plan`` finds it. Sums are exact; for
    rounding, they and the guarantee may be larger by a factor 1 + 2⁻⁴⁰. Neighbors: as declared, or as in the first
    charge. Raises ``InputError`` unless z > 0, B ≥ 0, 0 ≤ δ_∞ < 1.

    >>> from tightrope import gaussian, laplace
    >>> filter = MomentFilter(order=10, budget=2)
    >>> filter.charge(gaussian(scale=10).loss)
    >>> filter.charge(laplace(scale=20).loss)
    >>> filter.admits(gaussian(scale=5).loss)
    False
    >>> round(filter.epsilon(1e-6), 3)
    1.246
    """

    def __init__(
        self,
        *,
        order: float,
        budget: float,
        infinite_mass: float = 0.0,
        neighbors: Neighbors = Neighbors.UNSPECIFIED,
    ) -> None:
        order = check_positive(
            "order", order, "any z > 0 is valid; the best one is near the tilt of the plan at your delta"
        )
        budget = check_non_negative("budget", budget) * ROUNDING_ALLOWANCE
        infinite = check_non_negative("infinite_mass", infinite_mass) * ROUNDING_ALLOWANCE
        if not infinite < 1:
            raise InputError("infinite_mass", infinite_mass, "a number in [0, 1)", "declare the sum of all deltas")
        self._bound = MomentBound(order, budget, infinite)
        self._spent: MomentCost = (Fraction(0), Fraction(0), Fraction(0))
        super().__init__(neighbors)

    @classmethod
    def fit_to_plan(cls, plan: PrivacyLoss, *, delta: float) -> Self:
        """Return the filter that admits ``plan``, with the order that minimizes ε at ``delta`` for it.

        Raises ``InputError`` unless ``delta`` is above the plan's infinite mass and below 1.

        >>> from tightrope import gaussian
        >>> filter = MomentFilter.fit_to_plan(100 * gaussian(scale=20).loss, delta=1e-6)
        >>> round(filter.epsilon(1e-6), 3)
        2.419
        """
        delta = check_finite("delta", delta)
        directions = [list(zip(d.laws, d.counts, strict=True)) for d in (plan.remove, plan.add)]
        reserved = _sum_with_margin(max(sum(n * law.infinite_mass for law, n in direction) for direction in directions))
        if not reserved < delta < 1:
            raise InputError("delta", delta, f"in ({reserved!r}, 1)", "above the probability of an infinite loss")

        def epsilon_at_order(log_order: float) -> float:
            z = math.exp(log_order)
            return (_larger_moment(plan, z) + log_peak(z) - math.log(delta - reserved)) / z

        minimum = scipy.optimize.minimize_scalar(
            epsilon_at_order, bounds=LOG_ORDERS, method="bounded", options={"xatol": 1e-4}
        )
        order = math.exp(float(minimum.x))
        budget = _sum_with_margin(_larger_moment(plan, order))
        return cls(order=order, budget=budget, infinite_mass=reserved, neighbors=plan.neighbors)

    @property
    def guarantee(self) -> Guarantee:
        return self._bound

    @property
    def statement(self) -> str:
        bound = self._bound
        return (
            f"parameters may be chosen adaptively without restriction while the log moments of order "
            f"{bound.order:.12g} add up to at most {bound.budget:.12g} and the infinite masses to at most "
            f"{bound.infinite_mass:.12g}: delta(epsilon) is what these three numbers imply"
        )

    def _charge_cost(self, loss: PrivacyLoss) -> MomentCost:
        remove, add = (log_moments(direction, (self._bound.order,)) for direction in (loss.remove, loss.add))
        infinite = Fraction(max(remove.infinite_mass, add.infinite_mass))
        moments = [float(direction.values[0]) for direction in (remove, add)]
        if not all(map(math.isfinite, moments)):
            raise InsufficientBudgetError(
                f"this loss has no finite moment of order {self._bound.order!r}; declare a smaller order"
            )
        return Fraction(moments[0]), Fraction(moments[1]), infinite

    def _refusal_reason(self, cost: MomentCost) -> str:
        limits = (self._bound.budget, self._bound.budget, self._bound.infinite_mass)
        needed = [spent + more for spent, more in zip(self._spent, cost, strict=True)]
        if all(need <= limit for need, limit in zip(needed, limits, strict=True)):
            return ""
        left = limits[0] - float(max(self._spent[0], self._spent[1]))
        return (
            f"this charge needs a log moment of {float(max(cost[0], cost[1])):.6g} and an infinite mass of "
            f"{float(cost[2]):.6g}; left are {left:.6g} and {limits[2] - float(self._spent[2]):.6g}; "
            f"add more noise, or stop"
        )

    def _spend_cost(self, cost: MomentCost) -> None:
        self._spent = (self._spent[0] + cost[0], self._spent[1] + cost[1], self._spent[2] + cost[2])


def log_peak(order: float) -> float:
    """Return log of max_u (1 − u) u^z = z^z/(1+z)^{1+z}."""
    return -order * math.log1p(1 / order) - math.log1p(order)


def _larger_moment(plan: PrivacyLoss, order: float) -> float:
    return max(float(log_moments(direction, (order,)).values[0]) for direction in (plan.remove, plan.add))


def _sum_with_margin(total: float) -> float:
    """Return a declared sum with a margin for the rounding of its terms."""
    return total * (1 + 1e-9)


# An odometer: a running bound, valid at all times at once, for adaptive parameters without a declared total.

ODOMETER_ORDERS = tuple(2.0**j for j in range(-2, 9))
"""Default orders; each has an equal part of the failure probability."""


@dataclass(frozen=True, slots=True)
class DirectionSums:
    """Sums over the charges of one direction: log moments at each order, largest finite losses, infinite masses."""

    moments: tuple[Fraction, ...]
    largest: float
    infinite_mass: Fraction

    @classmethod
    def from_loss(cls, total: Composition, orders: tuple[float, ...]) -> DirectionSums:
        """Return the amounts that one charge adds, rounded up."""
        bounds = log_moments(total, orders)
        rounding = math.fsum(n * law.rounding_error_bound for law, n in zip(total.laws, total.counts, strict=True))
        moments = tuple(Fraction(float(value)) for value in bounds.values)
        return cls(moments, max(0.0, total.largest_loss + rounding), Fraction(bounds.infinite_mass))

    def __add__(self, other: DirectionSums) -> DirectionSums:
        moments = tuple(a + b for a, b in zip(self.moments, other.moments, strict=True))
        largest = math.nextafter(self.largest + other.largest, math.inf)
        return DirectionSums(moments, largest, self.infinite_mass + other.infinite_mass)


@final
class Odometer(LossAccount[tuple[DirectionSums, DirectionSums]]):
    """Charge any losses, chosen in any way; ``reading`` bounds the privacy loss so far, at all times at once.

    With z_1..z_m = ``orders`` and δ' = ``delta`` − ``infinite_mass``, the reading is, for the worse direction,
    u = min{Σ largest_i, min_j (Σ K_i(z_j) + log(m/δ')) / z_j}. **Theorem** (``docs/proofs/filters.md``; in the manner
    of Rogers et al. 2016): for every stopping time τ, which may depend on the outputs, and every set A of
    transcripts, P(A) ≤ ∫_A e^{u_τ} dQ + δ. So P(A) ≤ e^ε Q(A) + δ for every A of transcripts with a reading of at
    most ε, for all ε together. Without infinite masses, moreover, the realized loss of the transcript exceeds the
    reading at *some* time with probability at most δ.

    The reading depends on outputs if parameters do: it is a statement about this run, not an (ε, δ) of the whole
    procedure, which a filter gives. Only infinite masses beyond the declared sum are refused. Neighbors: as
    declared, or as in the first charge. Raises ``InputError`` unless 0 ≤ infinite_mass < delta < 1 and all z > 0.

    >>> from tightrope import gaussian, laplace
    >>> odometer = Odometer(delta=1e-6)
    >>> odometer.reading
    0.0
    >>> odometer.charge(laplace(scale=10).loss)
    >>> round(odometer.reading, 3)
    0.1
    >>> odometer.charge(gaussian(scale=10).loss)
    >>> round(odometer.reading, 3)
    0.668
    """

    def __init__(
        self,
        *,
        delta: float,
        infinite_mass: float = 0.0,
        orders: Sequence[float] = ODOMETER_ORDERS,
        neighbors: Neighbors = Neighbors.UNSPECIFIED,
    ) -> None:
        self._delta = check_inner_probability("delta", delta, "much smaller than 1/(number of people)")
        self._infinite = check_non_negative("infinite_mass", infinite_mass) * ROUNDING_ALLOWANCE
        if not self._infinite < self._delta:
            raise InputError("infinite_mass", infinite_mass, f"below delta={delta!r}", "delta covers both")
        check_nonempty("orders", orders, "leave it out for powers of two from 1/4 to 256")
        self._orders = tuple(check_positive("order", order) for order in orders)
        zero = DirectionSums((Fraction(0),) * len(self._orders), 0.0, Fraction(0))
        self._sums = (zero, zero)
        super().__init__(neighbors)

    @property
    def delta(self) -> float:
        """The probability with which the readings may fail, declared beforehand."""
        return self._delta

    @property
    def reading(self) -> float:
        """Bound in nats on the privacy loss of everything charged so far, valid at all times at once."""
        with self._lock:
            sums = self._sums
        return max(self._rounded_reading(direction) for direction in sums)

    def _rounded_reading(self, direction: DirectionSums) -> float:
        """Return the reading of one direction, with every term rounded up."""
        failure = math.nextafter(self._delta - self._infinite, 0.0)
        penalty = math.log(len(self._orders) / failure) * (1 + 4e-16)
        pairs = zip(direction.moments, self._orders, strict=True)
        return min(direction.largest, *((float(moment) + penalty) / z * (1 + 1e-15) for moment, z in pairs))

    @property
    def statement(self) -> str:
        return (
            f"parameters may be chosen adaptively without restriction and without a budget: except with probability "
            f"{self._delta:.12g} the privacy loss stays below the reading at all times, now {self.reading:.6g}; this "
            f"holds for this run so far and is no (epsilon, delta) of the whole procedure"
        )

    def _charge_cost(self, loss: PrivacyLoss) -> tuple[DirectionSums, DirectionSums]:
        remove, add = (log_moments(direction, self._orders).values for direction in (loss.remove, loss.add))
        if not all(map(math.isfinite, [*remove, *add])):
            raise InsufficientBudgetError(
                f"this loss has no finite moment of order {max(self._orders)!r}; declare smaller orders"
            )
        return DirectionSums.from_loss(loss.remove, self._orders), DirectionSums.from_loss(loss.add, self._orders)

    def _refusal_reason(self, cost: tuple[DirectionSums, DirectionSums]) -> str:
        needed = max((spent + added).infinite_mass for spent, added in zip(self._sums, cost, strict=True))
        if needed <= self._infinite:
            return ""
        return (
            f"the infinite masses would add up to {float(needed):.6g}, and infinite_mass={self._infinite:.6g} was "
            f"declared; create the odometer with a larger one (below delta), or use a mechanism without infinite mass"
        )

    def _spend_cost(self, cost: tuple[DirectionSums, DirectionSums]) -> None:
        self._sums = (self._sums[0] + cost[0], self._sums[1] + cost[1])
