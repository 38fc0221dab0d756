"""Ways to account for many equal steps, side by side: the comparison of GI Fig. 5, each way at its best.

Kairouz–Oh–Viswanath   one (ε, δ) of a step, composed exactly
GI Theorem 2           one (ε, δ, η) of a step, composed exactly
moments accountant     Rényi divergences at every real order, with the optimal conversion
Gaussian limit         the central limit theorem: approximate, **not a bound**
exact                  the loss itself

Each of the bounds holds whatever the triple, or the order, that it is made from: the searches only make it tight.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy import optimize, special

from tightrope.accounting.distributions.base import LossLaw
from tightrope.accounting.distributions.composition import Composition
from tightrope.accounting.privacy_loss import PrivacyLoss
from tightrope.errors import InputError
from tightrope.mechanisms.gaussian import gaussian
from tightrope.mechanisms.pairs import approx_dp
from tightrope.numerics.arrays import Floats
from tightrope.numerics.checks import whole

DELTA_SHARES = np.log(10) * np.array(
    [-0.3, -1, -2, -3, -4, -5, -6, -7, -8, -10, -12, -16, -22, -30, -50, -80, -140, -250]
)
"""Log of the δ that all steps together may give away through the δ of each: where the best triple is sought first."""
MOST_TRIPLE_STEPS = 200_000
"""The recurrence behind a triple takes a second for so many."""
HUGE = 1e9
"""What stands for infinity in a search: more than any ε."""
CELL = 2e-5
"""Width of the cells of a law that does not know its moments; the error of K is of second order in it."""
CONVERSION_ROUNDING = 1e-12
"""Relative rounding of a sum of moments and of its conversion, many times over."""
MOMENT_ROUNDING = 1e-14
"""Absolute rounding of log Σ m e^{zl} of a law without known moments."""
LOWEST, HIGHEST = -20.0, 12.0
"""Log of the z that are tried at most."""


class Method(ABC):
    """One way to bound what a loss adds up to."""

    name: str
    statement = "upper bound"

    @abstractmethod
    def epsilon(self, delta: float) -> float:
        """The ε that this way proves at δ; ∞ where it proves none."""

    @abstractmethod
    def delta(self, epsilon: float) -> float:
        """The δ that this way proves at ε ≥ 0."""

    def total_variation(self) -> float:
        """The total variation that this way proves: δ at 0."""
        return self.delta(0.0)


@dataclass(frozen=True, slots=True)
class Compared:
    """One line of the comparison; ``statement`` says whether it is a bound."""

    name: str
    statement: str
    epsilon: float
    total_variation: float


def methods(step: PrivacyLoss, count: int) -> tuple[Method, ...]:
    """The five ways, loosest first; the exact one last. Raises ``InputError`` unless ``count`` is a whole number ≥ 1.

    >>> step = gaussian(scale=10).loss
    >>> [way.name for way in methods(step, 100)][::4]
    ['Kairouz-Oh-Viswanath', 'exact']
    """
    count = whole("count", count)
    loss = count * step
    triples: tuple[Method, ...] = (Triples(step, count, known=False), Triples(step, count, known=True))
    return (*(triples if count <= MOST_TRIPLE_STEPS else ()), Moments(loss), Limit(loss), Exact(loss))


def compared(ways: tuple[Method, ...], delta: float) -> tuple[Compared, ...]:
    """ε at δ, and the total variation, by every way.

    >>> rows = compared(methods(gaussian(scale=10).loss, 100), 1e-5)
    >>> [round(row.epsilon, 2) for row in rows]
    [28.46, 10.07, 4.73, 4.38, 4.38]
    """
    if not 0 < delta < 1:
        raise InputError("delta", delta, "a number in (0, 1)", "no way but the exact one proves anything at 0")
    return tuple(Compared(way.name, way.statement, way.epsilon(delta), way.total_variation()) for way in ways)


@dataclass(frozen=True, slots=True)
class Exact(Method):
    """The loss itself: the upper ends of its brackets."""

    loss: PrivacyLoss
    name = "exact"
    statement = "upper bound, tight"

    def epsilon(self, delta: float) -> float:
        return self.loss.epsilon(delta)

    def delta(self, epsilon: float) -> float:
        return self.loss.delta(epsilon)


@dataclass(frozen=True, slots=True)
class Limit(Method):
    """G_μ with the μ of the central limit theorem (GI Thm 3); for finitely many steps it may err on either side."""

    loss: PrivacyLoss
    name = "Gaussian limit"
    statement = "approximate, not a bound"

    @property
    def _limit(self) -> PrivacyLoss:
        return gaussian(scale=1 / self.loss.gaussian_limit().mu).loss

    def epsilon(self, delta: float) -> float:
        return self._limit.epsilon(delta)

    def delta(self, epsilon: float) -> float:
        return self._limit.delta(epsilon)


@dataclass(frozen=True, slots=True)
class Triples(Method):
    """(ε₁, δ₁) of one step – with its total variation where it is ``known`` – composed exactly (GI Thm 2).

    The best ε₁ for each question, by a grid over the δ that the steps lose through δ₁ and a search around its best.
    """

    step: PrivacyLoss
    count: int
    known: bool

    @property
    def name(self) -> str:  # type: ignore[override]
        """Without the total variation it is the theorem of Kairouz, Oh and Viswanath."""
        return "GI Theorem 2" if self.known else "Kairouz-Oh-Viswanath"

    def epsilon(self, delta: float) -> float:
        return self._best(lambda loss: loss.epsilon(delta), math.log(delta))

    def delta(self, epsilon: float) -> float:
        return self._best(lambda loss: loss.delta(epsilon), 0.0)

    def _best(self, answer: Callable[[PrivacyLoss], float], top: float) -> float:
        """The least answer of all triples whose steps lose at most e^top through their δ."""

        def at(share: float) -> float:
            return answer(_composed(self.step, self.count, share, self.known))

        grid = [
            float(share) for share in np.unique([*(top + np.log([0.2, 0.5, 0.9])), *DELTA_SHARES[top > DELTA_SHARES]])
        ]
        found = [at(share) for share in grid]
        best = int(np.argmin(found))
        low, high = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
        refined = optimize.minimize_scalar(
            lambda share: min(at(share), HUGE), bounds=(low, high), method="bounded", options={"maxiter": 12}
        )
        return min(found[best], float(refined.fun)) if math.isfinite(found[best]) else found[best]


@lru_cache(maxsize=256)
def _composed(step: PrivacyLoss, count: int, share: float, known: bool) -> PrivacyLoss:
    """``count`` copies of the triple of a step whose δ is e^share / count."""
    epsilon = step.epsilon(min(math.exp(share) / count, 0.999))
    if math.isinf(epsilon):
        return approx_dp(0.0, delta=1.0).loss
    eta = step.total_variation() if known else None
    return count * approx_dp(epsilon, delta=step.delta(epsilon), total_variation=eta).loss


@dataclass(frozen=True, slots=True)
class Moments(Method):
    """Rényi divergences K(z)/z of order 1 + z, at every z > 0, and δ ≤ δ_∞ + e^{K(z) − zε} z^z/(1+z)^{1+z} (theory §2).

    The conversion is the best there is from one moment; the moments accountant of Abadi et al. lacks its last factor.
    """

    loss: PrivacyLoss
    name = "moments accountant"

    def epsilon(self, delta: float) -> float:
        left = delta - self.loss.infinite_mass
        return max(self._proven(side, left) for side in self._sides()) if left > 0 else math.inf

    def delta(self, epsilon: float) -> float:
        log = max(self._log_delta(side, epsilon) for side in self._sides())
        return min(1.0, self.loss.infinite_mass + math.exp(min(0.0, log)) * (1 + CONVERSION_ROUNDING))

    def _sides(self) -> tuple[Composition, ...]:
        same = self.loss.remove.laws == self.loss.add.laws and self.loss.remove.counts == self.loss.add.counts
        return (self.loss.remove,) if same else (self.loss.remove, self.loss.add)

    @staticmethod
    def _log_delta(side: Composition, epsilon: float) -> float:
        return _least(lambda z: _moment(side, z) - z * epsilon + _conversion(z))

    @staticmethod
    def _proven(side: Composition, delta: float) -> float:
        least = _least(lambda z: (_moment(side, z) + _conversion(z) - math.log(delta)) / z)
        return max(0.0, least * (1 + CONVERSION_ROUNDING))


def _conversion(z: float) -> float:
    """Log z^z/(1+z)^{1+z}."""
    return -z * math.log1p(1 / z) - math.log1p(z)


def _moment(total: Composition, z: float) -> float:
    """Upper bound on K(z) at real z > 0."""
    parts = [n * _law_moment(law, z) for law, n in zip(total.laws, total.counts, strict=True)]
    return math.fsum(parts) * (1 + CONVERSION_ROUNDING)


def _law_moment(law: LossLaw, z: float) -> float:
    """K(z) of one law and its rounding error, or of the atoms that dominate it."""
    at = np.array([complex(z)])
    known = law.log_moment(at)
    if known is not None:
        return float(known[0].real + law.moment_error(at, known)[0])
    losses, masses = _dominating(law)
    return _log_sum(losses, masses, z, law.infinite_mass)


@lru_cache(maxsize=8)
def _dominating(law: LossLaw) -> tuple[Floats, Floats]:
    """Losses and masses of atoms whose every moment is at least the law's: M is a mixture of hockey-sticks."""
    cells = law.cells(CELL)
    losses, masses = cells.ends()
    return losses[masses > 0] + law.slack, masses[masses > 0]


def _log_sum(losses: Floats, masses: Floats, z: float, infinite: float) -> float:
    """Log Σ m e^{zl}: near one as 1 − δ_∞ + Σ m (e^{zl} − 1), far from it with the peak pulled out."""
    if z * float(np.max(np.abs(losses))) < 300:
        return math.log1p(math.fsum(masses * np.expm1(z * losses)) - infinite) + MOMENT_ROUNDING
    return float(special.logsumexp(z * losses + np.log(masses))) + MOMENT_ROUNDING


def _least(height: Callable[[float], float]) -> float:
    """The least of a function of z > 0 that falls and then rises; any z is as valid, only less tight."""

    def at(place: float) -> float:
        return height(math.exp(place))

    low, here, high = 0.0, math.log(8.0), math.log(64.0)
    below, value, above = at(low), at(here), at(high)
    while below < value and low > LOWEST:
        low, here, high, below, value, above = low - 2, low, here, at(low - 2), below, value
    while above < value and high < HIGHEST:
        low, here, high, value, above = here, high, high + 1, above, at(high + 1)
    found = optimize.minimize_scalar(at, bounds=(low, high), method="bounded", options={"xatol": 1e-6})
    return min(value, below, above, float(found.fun))
