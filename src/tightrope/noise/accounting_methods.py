"""Methods of accounting for many equal steps: the comparison of GI Fig. 5, each method with its best parameters.

- Kairouz–Oh–Viswanath: one (ε, δ) of a step, composed exactly.
- GI Theorem 2: one (ε, δ, η) of a step, composed exactly.
- Moments accountant: Rényi divergences of every real order, with the optimal conversion.
- Gaussian limit: the central limit theorem; approximate, **not a bound**.
- Exact: the numerical composition of the loss itself.

Every (ε, δ, η) and every order gives a valid bound: the searches for the best ones only make it tighter.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import scipy
from scipy import special

from tightrope.accounting.distributions.base import LossDistribution
from tightrope.accounting.distributions.composition import Composition
from tightrope.accounting.privacy_loss import PrivacyLoss
from tightrope.errors import InputError
from tightrope.mechanisms.gaussian import gaussian
from tightrope.mechanisms.pairs import approx_dp
from tightrope.numerics.arrays import Floats
from tightrope.numerics.checks import check_integer

LOG_DELTA_GRID = np.log(10) * np.array(
    [-0.3, -1, -2, -3, -4, -5, -6, -7, -8, -10, -12, -16, -22, -30, -50, -80, -140, -250]
)
"""Natural logs of count·δ₁: the initial grid of the search for the best (ε₁, δ₁) of a step."""
MAX_TRIPLE_STEPS = 200_000
"""The recurrence for a triple takes a second for this many steps."""
INFINITE_EPSILON = 1e9
"""Stand-in for infinity in a search: larger than any ε."""
LOSS_CELL_WIDTH = 2e-5
"""Width of the cells of a distribution without known moments; the error of K is of second order in it."""
CONVERSION_ROUNDING = 1e-12
"""Relative rounding of a sum of moments and of its conversion, with a large margin."""
MOMENT_ROUNDING = 1e-14
"""Absolute rounding of log Σ m e^{zl} of a distribution without known moments."""
MIN_LOG_ORDER, MAX_LOG_ORDER = -20.0, 12.0
"""Range of log z."""


class AccountingMethod(ABC):
    """A method that bounds a composed loss."""

    name: str
    statement = "upper bound"

    @abstractmethod
    def epsilon(self, delta: float) -> float:
        """Return the method's ε at δ; ∞ if it gives no bound."""

    @abstractmethod
    def delta(self, epsilon: float) -> float:
        """Return the method's δ at ε ≥ 0."""

    def total_variation(self) -> float:
        """Return the method's total variation: δ at ε = 0."""
        return self.delta(0.0)


@dataclass(frozen=True, slots=True)
class MethodResult:
    """One line of the comparison; ``statement`` says whether it is a bound."""

    name: str
    statement: str
    epsilon: float
    total_variation: float


def accounting_methods(step: PrivacyLoss, count: int) -> tuple[AccountingMethod, ...]:
    """Return the methods for ``count`` equal steps, loosest first: five, or three above ``MAX_TRIPLE_STEPS`` steps.

    Raises ``InputError`` unless ``count`` is an integer ≥ 1.

    >>> step = gaussian(scale=10).loss
    >>> [method.name for method in accounting_methods(step, 100)][::4]
    ['Kairouz-Oh-Viswanath', 'exact']
    """
    count = check_integer("count", count)
    loss = count * step
    triples: tuple[AccountingMethod, ...] = (
        TripleMethod(step, count, uses_total_variation=False),
        TripleMethod(step, count, uses_total_variation=True),
    )
    return (
        *(triples if count <= MAX_TRIPLE_STEPS else ()),
        MomentsMethod(loss),
        GaussianLimitMethod(loss),
        ExactMethod(loss),
    )


def compare_methods(methods: tuple[AccountingMethod, ...], delta: float) -> tuple[MethodResult, ...]:
    """Return ε at δ, and the total variation, by each method.

    >>> rows = compare_methods(accounting_methods(gaussian(scale=10).loss, 100), 1e-5)
    >>> [round(row.epsilon, 2) for row in rows]
    [28.46, 10.07, 4.73, 4.38, 4.38]
    """
    if not 0 < delta < 1:
        raise InputError("delta", delta, "a number in (0, 1)", "at delta = 0 only the exact method gives a bound")
    return tuple(
        MethodResult(method.name, method.statement, method.epsilon(delta), method.total_variation())
        for method in methods
    )


@dataclass(frozen=True, slots=True)
class ExactMethod(AccountingMethod):
    """Exact composition: the upper bounds of the numerical privacy loss."""

    loss: PrivacyLoss
    name = "exact"
    statement = "upper bound, tight"

    def epsilon(self, delta: float) -> float:
        return self.loss.epsilon(delta)

    def delta(self, epsilon: float) -> float:
        return self.loss.delta(epsilon)


@dataclass(frozen=True, slots=True)
class GaussianLimitMethod(AccountingMethod):
    """G_μ with the μ of the central limit theorem (GI Thm 3).

    For finitely many steps its ε and δ can be too small or too large.
    """

    loss: PrivacyLoss
    name = "Gaussian limit"
    statement = "approximate, not a bound"

    @property
    def _gaussian_limit(self) -> PrivacyLoss:
        return gaussian(scale=1 / self.loss.gaussian_limit().mu).loss

    def epsilon(self, delta: float) -> float:
        return self._gaussian_limit.epsilon(delta)

    def delta(self, epsilon: float) -> float:
        return self._gaussian_limit.delta(epsilon)


@dataclass(frozen=True, slots=True)
class TripleMethod(AccountingMethod):
    """Exact composition of (ε₁, δ₁) of one step, and of its total variation if ``uses_total_variation`` (GI Thm 2).

    For each ε or δ the best ε₁ is found on a grid of log(count·δ₁), then refined by a bounded search.
    """

    step: PrivacyLoss
    count: int
    uses_total_variation: bool

    @property
    def name(self) -> str:  # type: ignore[override]
        """Without the total variation it is the theorem of Kairouz, Oh and Viswanath."""
        return "GI Theorem 2" if self.uses_total_variation else "Kairouz-Oh-Viswanath"

    def epsilon(self, delta: float) -> float:
        return self._best_triple_value(lambda loss: loss.epsilon(delta), math.log(delta))

    def delta(self, epsilon: float) -> float:
        return self._best_triple_value(lambda loss: loss.delta(epsilon), 0.0)

    def _best_triple_value(self, evaluate: Callable[[PrivacyLoss], float], max_log_delta: float) -> float:
        """Return the least value over all triples with log(count·δ₁) at most ``max_log_delta``."""

        def value_at(log_total_delta: float) -> float:
            return evaluate(_composed_triple(self.step, self.count, log_total_delta, self.uses_total_variation))

        near_maximum = max_log_delta + np.log([0.2, 0.5, 0.9])
        grid = [float(log) for log in np.unique([*near_maximum, *LOG_DELTA_GRID[max_log_delta > LOG_DELTA_GRID]])]
        values = [value_at(log_total_delta) for log_total_delta in grid]
        best = int(np.argmin(values))
        low, high = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
        refined = scipy.optimize.minimize_scalar(
            lambda log_total_delta: min(value_at(log_total_delta), INFINITE_EPSILON),
            bounds=(low, high),
            method="bounded",
            options={"maxiter": 12},
        )
        return min(values[best], float(refined.fun)) if math.isfinite(values[best]) else values[best]


@lru_cache(maxsize=256)
def _composed_triple(step: PrivacyLoss, count: int, log_total_delta: float, uses_total_variation: bool) -> PrivacyLoss:
    """Return the composition of ``count`` steps, each replaced by (ε₁, δ₁, η) with δ₁ = e^{log_total_delta}/count."""
    epsilon = step.epsilon(min(math.exp(log_total_delta) / count, 0.999))
    if math.isinf(epsilon):
        return approx_dp(0.0, delta=1.0).loss
    eta = step.total_variation() if uses_total_variation else None
    return count * approx_dp(epsilon, delta=step.delta(epsilon), total_variation=eta).loss


@dataclass(frozen=True, slots=True)
class MomentsMethod(AccountingMethod):
    """Rényi divergences K(z)/z of order 1 + z, at every z > 0, and δ ≤ δ_∞ + e^{K(z) − zε} z^z/(1+z)^{1+z} (theory §2).

    The conversion is the best one from one moment; the moments accountant of Abadi et al. lacks its last factor.
    """

    loss: PrivacyLoss
    name = "moments accountant"

    def epsilon(self, delta: float) -> float:
        remaining_delta = delta - self.loss.infinite_mass
        if not remaining_delta > 0:
            return math.inf
        return max(self._epsilon_bound(direction, remaining_delta) for direction in self._distinct_directions())

    def delta(self, epsilon: float) -> float:
        log_delta = max(self._log_delta(direction, epsilon) for direction in self._distinct_directions())
        return min(1.0, self.loss.infinite_mass + math.exp(min(0.0, log_delta)) * (1 + CONVERSION_ROUNDING))

    def _distinct_directions(self) -> tuple[Composition, ...]:
        """Return the loss after removing a person, and that after adding one unless it is the same."""
        same = self.loss.remove.laws == self.loss.add.laws and self.loss.remove.counts == self.loss.add.counts
        return (self.loss.remove,) if same else (self.loss.remove, self.loss.add)

    @staticmethod
    def _log_delta(direction: Composition, epsilon: float) -> float:
        return _minimize_over_orders(lambda z: _log_moment_bound(direction, z) - z * epsilon + _log_conversion(z))

    @staticmethod
    def _epsilon_bound(direction: Composition, delta: float) -> float:
        log_delta = math.log(delta)
        epsilon = _minimize_over_orders(
            lambda z: (_log_moment_bound(direction, z) + _log_conversion(z) - log_delta) / z
        )
        return max(0.0, epsilon * (1 + CONVERSION_ROUNDING))


def _log_conversion(z: float) -> float:
    """Return log z^z/(1+z)^{1+z}."""
    return -z * math.log1p(1 / z) - math.log1p(z)


def _log_moment_bound(composition: Composition, z: float) -> float:
    """Return an upper bound on K(z) at real z > 0."""
    orders, terms = np.array([complex(z)]), []
    for distribution, copies in zip(composition.laws, composition.counts, strict=True):
        log_moment = distribution.log_moment(orders)
        if log_moment is None:
            bound = _log_sum(*_dominating_atoms(distribution), z, distribution.infinite_mass)
        else:
            bound = float(log_moment[0].real + distribution.moment_error(orders, log_moment)[0])
        terms.append(copies * bound)
    return math.fsum(terms) * (1 + CONVERSION_ROUNDING)


@lru_cache(maxsize=8)
def _dominating_atoms(distribution: LossDistribution) -> tuple[Floats, Floats]:
    """Return losses and masses of atoms that have at least the distribution's moments.

    Every moment is a mixture of hockey-stick divergences, and the atoms have larger ones.
    """
    losses, masses = distribution.loss_cells(LOSS_CELL_WIDTH).dominating_atoms()
    return losses[masses > 0] + distribution.rounding_bound, masses[masses > 0]


def _log_sum(losses: Floats, masses: Floats, z: float, infinite_mass: float) -> float:
    """Return log Σ m e^{zl}, rounded up: by expm1 for small z·l, otherwise by logsumexp."""
    if z * float(np.max(np.abs(losses))) < 300:
        return math.log1p(math.fsum(masses * np.expm1(z * losses)) - infinite_mass) + MOMENT_ROUNDING
    return float(special.logsumexp(z * losses + np.log(masses))) + MOMENT_ROUNDING


def _minimize_over_orders(objective: Callable[[float], float]) -> float:
    """Return the minimum of a function of z > 0 that falls and then rises.

    Every z gives a valid bound, so the minimum need not be exact.
    """

    def value_at(log_order: float) -> float:
        return objective(math.exp(log_order))

    low, middle, high = 0.0, math.log(8.0), math.log(64.0)
    value_low, value, value_high = value_at(low), value_at(middle), value_at(high)
    while value_low < value and low > MIN_LOG_ORDER:
        low, middle, high, value_low, value, value_high = low - 2, low, middle, value_at(low - 2), value_low, value
    while value_high < value and high < MAX_LOG_ORDER:
        low, middle, high, value, value_high = middle, high, high + 1, value_high, value_at(high + 1)
    found = scipy.optimize.minimize_scalar(value_at, bounds=(low, high), method="bounded", options={"xatol": 1e-6})
    return min(value, value_low, value_high, float(found.fun))
