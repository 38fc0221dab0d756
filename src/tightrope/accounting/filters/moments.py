"""F3: a budget for one moment of the loss; accepts any loss."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Self, final

import numpy as np
import scipy
from scipy.special import logsumexp

from tightrope.accounting.distributions.base import LossDistribution
from tightrope.accounting.distributions.composition import Composition, any_of
from tightrope.accounting.epsilon_search import least_epsilon
from tightrope.accounting.filters.filter import ROUNDING_ALLOWANCE, Filter, Guarantee
from tightrope.accounting.neighbors import Neighbors
from tightrope.accounting.privacy_loss import PrivacyLoss
from tightrope.errors import InputError, InsufficientBudgetError
from tightrope.numerics.arrays import Floats
from tightrope.numerics.checks import check_finite, check_positive, non_negative

# Upper bounds on K(z) = log E[e^{zL}; L < ∞] for any distribution: in closed form if possible, otherwise from cells.

Orders = tuple[float, ...]
FINEST_CELLS = 1e-4
"""Width of cells, as a fraction of the range of losses."""
IGNORED_CELL = 1e-40


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
    infinite = any_of((part.infinite_mass, n) for part, n in parts)
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
        # The distribution of the cells' ends dominates; e^{zl} is convex in e^{−l}, so its moment is at least as large.
        coarse = law.loss_cells(0.25)
        has_mass = coarse.p_masses > IGNORED_CELL
        extent = float(np.max(coarse.upper[has_mass]) - np.min(coarse.lower[has_mass]))
        cells = law.loss_cells(max(extent * FINEST_CELLS, 1e-300))
        losses, masses = cells.dominating_atoms()
        has_mass = masses > 0
        losses, log_masses = losses[has_mass], np.log(masses[has_mass])
        values = np.array([float(logsumexp(order * losses + log_masses)) for order in orders])
        largest = float(np.max(np.abs(losses), initial=0.0))
        error = 1e-15 * (z * largest + 64) + math.ulp(1.0) * len(losses)
        infinite_mass = max(cells.infinite_mass, law.infinite_mass * (1 + law.infinite_error))
        return LogMoments(values + error + z * cells.slack, infinite_mass)
    one_by_one = [slice(i, i + 1) for i in range(len(orders))]
    errors = np.concatenate([law.moment_error(points[i], closed_form[i]) for i in one_by_one])
    return LogMoments(
        closed_form.real + errors + z * law.rounding_bound + 4e-16 * np.abs(closed_form.real),
        law.infinite_mass * (1 + law.infinite_error),
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
        budget = non_negative("budget", budget) * ROUNDING_ALLOWANCE
        infinite = non_negative("infinite_mass", infinite_mass) * ROUNDING_ALLOWANCE
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
