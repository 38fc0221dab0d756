"""Compare methods of accounting for many equal steps (GI Fig. 5), each with its best parameters.

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
MAX_GUARANTEE_STEPS = 200_000
"""Above this many steps the exact composition of one (ε₁, δ₁) takes more than a second, and is left out."""
SEARCH_CAP = 1e9
"""Finite value that replaces ∞ in ``minimize_scalar``; larger results are not refined."""
LOSS_CELL_WIDTH = 2e-5
"""Width of the cells of a distribution without closed-form moments M; the error of log M grows with its square."""
CONVERSION_ROUNDING = 1e-12
"""Relative rounding of a sum of moments and of its conversion, with a large margin."""
MOMENT_ROUNDING = 1e-14
"""Absolute rounding of log Σ m e^{zl} of a distribution without closed-form moments."""
MIN_LOG_Z, MAX_LOG_Z = -20.0, 12.0
"""Range of log z; the Rényi order is 1 + z."""


class AccountingMethod(ABC):
    """A method that bounds or approximates ε and δ of a composed loss."""

    name: str
    statement = "upper bound"
    """The kind of the result: a bound or an approximation."""

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
    """One line of the comparison; ``statement`` is the kind of the result: a bound or an approximation."""

    name: str
    statement: str
    epsilon: float
    total_variation: float


def accounting_methods(step: PrivacyLoss, count: int) -> tuple[AccountingMethod, ...]:
    """Return the methods for ``count`` equal steps, in the order of the comparison.

    There are five, or three above ``MAX_GUARANTEE_STEPS`` steps.

    Raises ``InputError`` unless ``count`` is an integer ≥ 1.

    >>> step = gaussian(scale=10).loss
    >>> [method.name for method in accounting_methods(step, 100)][::4]
    ['Kairouz-Oh-Viswanath', 'exact']
    """
    count = check_integer("count", count)
    loss = count * step
    step_guarantees: tuple[AccountingMethod, ...] = (
        StepGuaranteeMethod(step, count, uses_total_variation=False),
        StepGuaranteeMethod(step, count, uses_total_variation=True),
    )
    return (
        *(step_guarantees if count <= MAX_GUARANTEE_STEPS else ()),
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
        raise InputError(
            "delta", delta, "a number in (0, 1)", "a typical value is 1e-6; at delta = 0 use the exact method"
        )
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
    """The Gaussian mechanism (μ-GDP) with the μ of the central limit theorem (GI Thm 3).

    For finitely many steps its ε and δ can be too small or too large.
    """

    loss: PrivacyLoss
    name = "Gaussian limit"
    statement = "approximate, not a bound"

    @property
    def _limit_loss(self) -> PrivacyLoss:
        return gaussian(scale=1 / self.loss.gaussian_limit().mu).loss

    def epsilon(self, delta: float) -> float:
        return self._limit_loss.epsilon(delta)

    def delta(self, epsilon: float) -> float:
        return self._limit_loss.delta(epsilon)


@dataclass(frozen=True, slots=True)
class StepGuaranteeMethod(AccountingMethod):
    """Exact composition of one (ε₁, δ₁) of a step, with its total variation if ``uses_total_variation`` (GI Thm 2).

    For each ε or δ the best δ₁ is searched on a grid of log(count·δ₁), then by a bounded search; ε₁ follows from it.
    """

    step: PrivacyLoss
    count: int
    uses_total_variation: bool

    @property
    def name(self) -> str:  # type: ignore[override]
        """The name of the theorem; without the total variation, that of Kairouz, Oh and Viswanath."""
        return "GI Theorem 2" if self.uses_total_variation else "Kairouz-Oh-Viswanath"

    def epsilon(self, delta: float) -> float:
        return self._minimize_over_step_deltas(lambda loss: loss.epsilon(delta), math.log(delta))

    def delta(self, epsilon: float) -> float:
        return self._minimize_over_step_deltas(lambda loss: loss.delta(epsilon), 0.0)

    def _minimize_over_step_deltas(self, evaluate: Callable[[PrivacyLoss], float], max_log_delta: float) -> float:
        """Return the minimum of ``evaluate`` over the δ₁ with log(count·δ₁) at most ``max_log_delta``."""

        def value_at(log_total_delta: float) -> float:
            return evaluate(_compose_step_guarantee(self.step, self.count, log_total_delta, self.uses_total_variation))

        grid_end = max_log_delta + np.log([0.2, 0.5, 0.9])
        grid = [float(log) for log in np.unique([*grid_end, *LOG_DELTA_GRID[max_log_delta > LOG_DELTA_GRID]])]
        values = [value_at(log_total_delta) for log_total_delta in grid]
        best = int(np.argmin(values))
        low, high = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
        refined_minimum = scipy.optimize.minimize_scalar(
            lambda log_total_delta: min(value_at(log_total_delta), SEARCH_CAP),
            bounds=(low, high),
            method="bounded",
            options={"maxiter": 12},
        )
        return min(values[best], float(refined_minimum.fun)) if math.isfinite(values[best]) else values[best]


@lru_cache(maxsize=256)
def _compose_step_guarantee(
    step: PrivacyLoss, count: int, log_total_delta: float, uses_total_variation: bool
) -> PrivacyLoss:
    """Return the composition of ``count`` steps, each replaced by (ε₁, δ₁, η).

    ε₁ is the step's ε at e^{log_total_delta}/count (at most 0.999), and δ₁ its δ at ε₁.
    """
    epsilon = step.epsilon(min(math.exp(log_total_delta) / count, 0.999))
    if math.isinf(epsilon):
        return approx_dp(0.0, delta=1.0).loss
    eta = step.total_variation() if uses_total_variation else None
    return count * approx_dp(epsilon, delta=step.delta(epsilon), total_variation=eta).loss


@dataclass(frozen=True, slots=True)
class MomentsMethod(AccountingMethod):
    """Rényi divergences K(z)/z of order 1 + z, at every z > 0, and δ ≤ δ_∞ + e^{K(z) − zε} z^z/(1+z)^{1+z} (theory §2).

    The conversion is the best one from one moment: tighter than that of Abadi et al. by z^z/(1+z)^{1+z}.
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
        """Return the directions (removing, adding a record), or one of them if they are equal."""
        is_symmetric = self.loss.remove.laws == self.loss.add.laws and self.loss.remove.counts == self.loss.add.counts
        return (self.loss.remove,) if is_symmetric else (self.loss.remove, self.loss.add)

    @staticmethod
    def _log_delta(direction: Composition, epsilon: float) -> float:
        return _minimize_over_z(lambda z: _log_moment_bound(direction, z) - z * epsilon + _log_conversion(z))

    @staticmethod
    def _epsilon_bound(direction: Composition, delta: float) -> float:
        log_delta = math.log(delta)
        epsilon = _minimize_over_z(lambda z: (_log_moment_bound(direction, z) + _log_conversion(z) - log_delta) / z)
        return max(0.0, epsilon * (1 + CONVERSION_ROUNDING))


def _log_conversion(z: float) -> float:
    """Return log z^z/(1+z)^{1+z}."""
    return -z * math.log1p(1 / z) - math.log1p(z)


def log_moment_of_atoms(losses: Floats, masses: Floats, z: float, infinite_mass: float) -> float:
    """Return log Σ m e^{zl}, rounded up: by expm1 for small z·l, otherwise by logsumexp.

    The masses sum to 1 − ``infinite_mass``, so that Σ m e^{zl} = 1 + Σ m (e^{zl} − 1) − ``infinite_mass``.
    """
    if z * float(np.max(np.abs(losses))) < 300:
        return math.log1p(math.fsum(masses * np.expm1(z * losses)) - infinite_mass) + MOMENT_ROUNDING
    return float(special.logsumexp(z * losses + np.log(masses))) + MOMENT_ROUNDING


def _log_moment_bound(composition: Composition, z: float) -> float:
    """Return an upper bound on K(z) at real z > 0."""
    z_array, terms = np.array([complex(z)]), []
    for distribution, copies in zip(composition.laws, composition.counts, strict=True):
        log_moment = distribution.log_moment(z_array)
        if log_moment is None:
            losses, masses = _dominating_atoms(distribution)
            bound = log_moment_of_atoms(losses, masses, z, distribution.infinite_mass)
        else:
            bound = float(log_moment[0].real + distribution.log_moment_error(z_array, log_moment)[0])
        terms.append(copies * bound)
    return math.fsum(terms) * (1 + CONVERSION_ROUNDING)


@lru_cache(maxsize=8)
def _dominating_atoms(distribution: LossDistribution) -> tuple[Floats, Floats]:
    """Return losses and masses of a discrete distribution that dominates this one.

    Its hockey-stick divergences, and hence all its moments, are at least as large.
    """
    losses, masses = distribution.loss_cells(LOSS_CELL_WIDTH).dominating_atoms()
    return losses[masses > 0] + distribution.rounding_error_bound, masses[masses > 0]


def _minimize_over_z(objective: Callable[[float], float]) -> float:
    """Return the minimum of a function of z > 0 that falls and then rises.

    Every z gives a valid bound, so the minimum need not be exact.
    """

    def value_at(log_z: float) -> float:
        return objective(math.exp(log_z))

    low, middle, high = 0.0, math.log(8.0), math.log(64.0)
    value_low, value, value_high = value_at(low), value_at(middle), value_at(high)
    while value_low < value and low > MIN_LOG_Z:
        low, middle, high, value_low, value, value_high = low - 2, low, middle, value_at(low - 2), value_low, value
    while value_high < value and high < MAX_LOG_Z:
        low, middle, high, value, value_high = middle, high, high + 1, value_high, value_at(high + 1)
    minimum = scipy.optimize.minimize_scalar(value_at, bounds=(low, high), method="bounded", options={"xatol": 1e-6})
    return min(value, value_low, value_high, float(minimum.fun))
