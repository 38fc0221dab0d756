"""Filters: one guarantee, declared in advance, for all losses that are admitted, even if they are chosen adaptively.

Here the base class, and the filters by exact sums: of ε and δ (``BasicFilter``, F5) and of μ² (``GaussianFilter``, F4).
"""

from __future__ import annotations

import math
import os
import threading
from abc import ABC, abstractmethod
from fractions import Fraction
from functools import lru_cache
from typing import Generic, NoReturn, Protocol, TypeVar, final

import numpy as np
from scipy.special import ndtri

from tightrope.accounting.distributions.atoms import Atoms
from tightrope.accounting.distributions.base import LossDistribution
from tightrope.accounting.distributions.composition import Composition
from tightrope.accounting.distributions.gaussian import GaussianLossDistribution
from tightrope.accounting.neighbors import Neighbors
from tightrope.accounting.privacy_loss import PrivacyLoss
from tightrope.errors import InputError, InsufficientBudgetError
from tightrope.numerics.arrays import Floats
from tightrope.numerics.checks import check_non_negative, check_positive
from tightrope.numerics.rounding import ROUND_OFF

Cost = TypeVar("Cost")
ROUNDING_ALLOWANCE = 1 + 2.0**-40
"""Declared sums are enlarged by this factor, so that ten charges of 0.1 fit into 1; guarantees use the enlarged sum."""


class LossAccount(ABC, Generic[Cost]):
    """Base class of filters and odometers: a loss is charged before its mechanism runs, completely or not at all.

    All charges have one neighboring relation; only the process that created the object can charge it. Refusals depend
    on the declared parameters and on earlier charges, never on data.
    """

    def __init__(self, neighbors: Neighbors) -> None:
        if not isinstance(neighbors, Neighbors):
            raise InputError("neighbors", neighbors, "a member of Neighbors", "such as Neighbors.ADD_REMOVE")
        self._neighbors, self._group_size = neighbors, 1
        self._lock = threading.Lock()
        self._process = os.getpid()

    @property
    @abstractmethod
    def statement(self) -> str:
        """The guarantee in one sentence, including which parameters may be chosen adaptively, and from what."""

    @abstractmethod
    def _charge_cost(self, loss: PrivacyLoss) -> Cost:
        """Return the cost of a loss; raises ``InsufficientBudgetError`` for a loss that can never be admitted."""

    @abstractmethod
    def _refusal_reason(self, cost: Cost) -> str:
        """Return why a cost does not fit now; empty if it does. Called under the lock."""

    @abstractmethod
    def _spend_cost(self, cost: Cost) -> None:
        """Add a cost that fits. Called under the lock."""

    @property
    def neighbors(self) -> Neighbors:
        """The declared relation, or the one of the first charge with a relation."""
        return self._neighbors

    def admits(self, loss: PrivacyLoss) -> bool:
        """Return whether ``charge(loss)`` would succeed now; charges nothing.

        Raises ``InputError`` if the loss is not a ``PrivacyLoss``, or is stated for another neighboring relation.
        """
        relation = self._relation_with(loss)
        try:
            cost = self._charge_cost(loss)
        except InsufficientBudgetError:
            return False
        with self._lock:
            return bool(relation) and os.getpid() == self._process and not self._refusal_reason(cost)

    def charge(self, loss: PrivacyLoss) -> None:
        """Charge the loss of a mechanism **before** it runs.

        Raises ``InsufficientBudgetError`` if it does not fit – then nothing is charged and the mechanism must not run –
        and ``InputError`` if it is not a ``PrivacyLoss``, or is stated for another neighboring relation.
        """
        self._relation_with(loss)
        cost = self._charge_cost(loss)
        with self._lock:
            relation, size = self._relation_with(loss)
            reason = self._foreign_process() or self._refusal_reason(cost)
            if reason:
                raise InsufficientBudgetError(reason)
            self._spend_cost(cost)
            self._neighbors, self._group_size = relation, size

    def _relation_with(self, loss: PrivacyLoss) -> tuple[Neighbors, int]:
        """Return the neighboring relation and the group size after a charge; raises ``InputError`` if they differ."""
        relation = self._neighbors.with_other(require_privacy_loss("loss", loss).neighbors)
        return relation, self._neighbors.common_group_size(self._group_size, loss.neighbors, loss.group_size)

    def _foreign_process(self) -> str:
        """Return why this process cannot charge; empty if it can."""
        if os.getpid() == self._process:
            return ""
        return (
            f"this {type(self).__name__} was made in process {self._process}, and a forked copy would spend its "
            f"budget again; charge in the process that made it"
        )

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        """Prevent copying and pickling: each copy would spend the same budget."""
        raise InputError(
            "copy", type(self).__name__, "not used", "a copy would spend the same budget again; share the object itself"
        )


def require_privacy_loss(name: str, loss: object) -> PrivacyLoss:
    """Return the argument if it is a privacy loss; otherwise raise ``InputError``."""
    if not isinstance(loss, PrivacyLoss):
        raise InputError(name, loss, "a PrivacyLoss", "a mechanism has it as .loss, such as tr.laplace(scale=1).loss")
    return loss


class Guarantee(Protocol):
    """Upper bounds on δ(ε) and on ε(δ), as a ``PrivacyLoss`` has them."""

    def delta(self, epsilon: float, /) -> float: ...

    def epsilon(self, delta: float, /) -> float: ...


class Filter(LossAccount[Cost]):
    """``charge`` each loss before its mechanism runs; the guarantee depends on the declared budget (theory §2).

    It covers all admitted mechanisms, each chosen (with its parameters) after seeing all earlier outputs, stopping at
    any time, in both directions of the neighboring relation. It is never the sum that was actually charged: that sum
    depends on outputs, and reporting it requires an ``Odometer``.
    """

    @property
    @abstractmethod
    def guarantee(self) -> Guarantee:
        """Bound for everything that can be admitted, from the declared budget."""

    def delta(self, epsilon: float) -> float:
        """Upper bound on δ(ε) of everything that can be admitted. Raises ``InputError`` if ε is not finite."""
        return self.guarantee.delta(epsilon)

    def epsilon(self, delta: float) -> float:
        """Smallest ε ≥ 0 proven at δ, an upper bound; ∞ if none is proven. ``InputError`` unless 0 ≤ δ < 1."""
        return self.guarantee.epsilon(delta)


class DominatedFilter(Filter[Cost]):
    """A filter whose budget is one loss."""

    @property
    @abstractmethod
    def loss(self) -> PrivacyLoss:
        """A loss that dominates everything that can be admitted.

        It composes with losses of fixed parameters, even if their mechanisms run between the steps.
        """

    @property
    def guarantee(self) -> Guarantee:
        return self.loss


@final
class BasicFilter(DominatedFilter[tuple[Fraction, Fraction]]):
    """A filter by sums: with Σε_i ≤ ``epsilon`` and Σδ_i ≤ ``delta`` all together are (ε, δ)-private (theory §2, F5).

    Rogers et al. 2016, Thm 3.6. δ_i is the loss's infinite mass plus ``each``, and ε_i the least ε at that δ_i; with
    ``each=0`` the largest finite loss, so an unbounded loss (Gaussian) needs ``each > 0``. Sums are exact; for
    rounding, they and the guarantee may be larger by a factor 1 + 2⁻⁴⁰. Neighbors: as declared, or as in the first
    charge. Raises ``InputError`` unless ε ≥ 0, 0 ≤ δ < 1, each ≥ 0.

    >>> from tightrope import approx_dp
    >>> filter = BasicFilter(epsilon=1, delta=1e-6)
    >>> filter.charge(approx_dp(0.7, delta=1e-7).loss)
    >>> filter.admits(approx_dp(0.4).loss), filter.admits(approx_dp(0.3).loss)
    (False, True)
    >>> round(filter.epsilon(2e-6), 4)
    1.0
    """

    def __init__(
        self, *, epsilon: float, delta: float, each: float = 0.0, neighbors: Neighbors = Neighbors.UNSPECIFIED
    ) -> None:
        self._epsilon = check_non_negative("epsilon", epsilon) * ROUNDING_ALLOWANCE
        self._delta = check_non_negative("delta", delta) * ROUNDING_ALLOWANCE
        if not self._delta < 1:
            raise InputError("delta", delta, "a number in [0, 1)", "much smaller than 1/(number of people)")
        self._each = check_non_negative("each", each, "the delta at which the epsilon of every charge is read")
        self._spent = (Fraction(0), Fraction(0))
        super().__init__(neighbors)

    @property
    def loss(self) -> PrivacyLoss:
        """The dominating pair of every (ε, δ)-private mechanism with the declared sums."""
        e, d = self._epsilon, self._delta
        losses, masses = np.array([e, -e]), (1 - d) / (1 + np.exp(np.array([-e, e])))
        atoms = Atoms.merge_losses(
            losses, masses, infinite_mass=d, reverse_infinity_mass=d, rounding_error_bound=4e-16 * e
        )
        return PrivacyLoss.from_distribution(atoms, reverse=atoms, neighbors=self.neighbors)

    @property
    def statement(self) -> str:
        return (
            f"parameters may be chosen adaptively without restriction while the sum of epsilons is at most "
            f"{self._epsilon:.12g} and the sum of deltas at most {self._delta:.12g}: together that is what is spent"
        )

    def _charge_cost(self, loss: PrivacyLoss) -> tuple[Fraction, Fraction]:
        delta = min(1.0, (loss.infinite_mass + self._each) * (1 + 1e-15))
        if delta >= 1:
            raise InsufficientBudgetError(
                f"this loss is infinite with probability {delta!r}: it exceeds every sum of deltas below 1"
            )
        epsilon = loss.epsilon(delta) if self._each else max(_largest_loss(loss.remove), _largest_loss(loss.add), 0.0)
        if not math.isfinite(epsilon):
            raise InsufficientBudgetError(
                f"this loss has no epsilon at delta={delta!r}; create the filter with, for example, each=1e-8, "
                f"or use a MomentFilter"
            )
        return Fraction(epsilon), Fraction(delta)

    def _refusal_reason(self, cost: tuple[Fraction, Fraction]) -> str:
        epsilon, delta = (spent + part for spent, part in zip(self._spent, cost, strict=True))
        if epsilon <= self._epsilon and delta <= self._delta:
            return ""
        remaining = (self._epsilon - float(self._spent[0]), self._delta - float(self._spent[1]))
        return (
            f"this charge needs epsilon={float(cost[0]):.6g} and delta={float(cost[1]):.6g}; left are "
            f"epsilon={remaining[0]:.6g} and delta={remaining[1]:.6g}; add more noise, or stop"
        )

    def _spend_cost(self, cost: tuple[Fraction, Fraction]) -> None:
        self._spent = (self._spent[0] + cost[0], self._spent[1] + cost[1])


def _largest_loss(direction: Composition) -> float:
    """Return the supremum of the finite loss, rounding error included."""
    rounding = math.fsum(n * law.rounding_error_bound for law, n in zip(direction.laws, direction.counts, strict=True))
    return direction.largest_loss + rounding


# The sum of μ² of Gaussian differential privacy (theory §2, F4).

CELL_COUNT = 2000
"""Number of cells of a bounded distribution: with fewer cells μ is larger, never too small."""
MASS_TOLERANCE = 1e-9
"""Masses must add up to one within this tolerance; the difference is charged as their relative error."""


def squared_mu(direction: Composition) -> float | None:
    """Return Σ n μ_i², rounded up; None if a distribution is not provably dominated by a Gaussian one."""
    mus = [(gaussian_mu(law), n) for law, n in zip(direction.laws, direction.counts, strict=True)]
    known = [n * mu * mu for mu, n in mus if mu is not None]
    total = math.fsum(known) * (1 + 1e-15)
    return total if len(known) == len(mus) and math.isfinite(total) else None


@lru_cache(maxsize=1024)
def gaussian_mu(law: LossDistribution) -> float | None:
    """Return the smallest μ for which μ-GDP provably dominates a loss distribution; None if there is none.

    Theory §2, F4; ``docs/proofs/filters.md``.

    The trade-off function of a distribution with finitely many bounded losses is a polygon; the Gaussian one is
    convex, so it lies below everywhere if it does at the corners. At the corner behind loss l that is
    Φ⁻¹(P(L > l)) − Φ⁻¹(Q(L > l)) ≤ μ.
    """
    if isinstance(law, GaussianLossDistribution):
        return law.mu
    bounded = math.isfinite(law.largest_loss) and math.isfinite(law.reverse_distribution().largest_loss)
    if not bounded or law.infinite_mass > 0 or law.reverse_infinity_mass > 0:
        return None
    # Atoms are used directly; other distributions are replaced by the ends of their cells, which dominate them.
    if isinstance(law, Atoms):
        atoms = law
    else:
        width = max(law.largest_loss + law.reverse_distribution().largest_loss, 1e-12)
        cells = law.loss_cells(width / CELL_COUNT)
        atoms = Atoms.merge_losses(
            *cells.dominating_atoms(), infinite_mass=cells.infinite_mass, rounding_error_bound=cells.slack
        )
    q = atoms.masses * np.exp(np.minimum(-atoms.losses, 700.0))
    missing = abs(math.fsum(atoms.masses) - 1) + abs(math.fsum(q) - 1)
    if not missing <= MASS_TOLERANCE or atoms.infinite_mass > 0:
        return None
    error = (
        missing
        + 2 * atoms.rounding_error_bound
        + 4 * ROUND_OFF * (len(q) + float(np.max(np.abs(atoms.losses), initial=0.0)))
    )
    corners = _normal_quantile(atoms.masses) - _normal_quantile(q)
    return (max(0.0, float(np.max(corners, initial=0.0))) + 8 * error) * (1 + 1e-14)


def _normal_quantile(masses: Floats) -> Floats:
    """Return Φ⁻¹ of the mass above each corner, from the smaller of the two tails: relative errors stay small."""
    above, below = np.cumsum(masses[::-1])[::-1][1:], np.cumsum(masses)[:-1]
    return np.where(above <= below, ndtri(np.minimum(above, 0.5)), -ndtri(np.minimum(below, 0.5)))


@final
class GaussianFilter(DominatedFilter[Fraction]):
    """A filter by Σμ_i² ≤ ``mu``²: all together are μ-GDP, as with fixed parameters (theory §2, F4).

    Takes Gaussian losses, and bounded ones (pure ε, Laplace, tables without infinite mass) at the least μ that
    provably dominates them: 2Φ⁻¹(e^ε/(1+e^ε)) for pure ε (Dong–Roth–Su). All other losses are refused: far in the
    tail, a Poisson-sampled Gaussian is as bad as the Gaussian. Sums are exact; for rounding, they and the guarantee
    may be larger by a factor 1 + 2⁻⁴⁰. Neighbors: as declared, or as in the first charge. Raises ``InputError``
    unless μ > 0.

    >>> from tightrope import gaussian
    >>> filter = GaussianFilter(mu=1)
    >>> for scale in [2, 2, 4]:
    ...     filter.charge(gaussian(scale=scale).loss)
    >>> filter.admits(gaussian(scale=1.6).loss)
    True
    >>> round(filter.delta(1), 6) == round(gaussian(scale=1).loss.delta(1), 6)
    True
    """

    def __init__(self, *, mu: float, neighbors: Neighbors = Neighbors.UNSPECIFIED) -> None:
        self._mu = (
            check_positive("mu", mu, "a Gaussian release of sensitivity 1 and scale s has mu = 1/s")
            * ROUNDING_ALLOWANCE
        )
        self._spent = Fraction(0)
        super().__init__(neighbors)

    @property
    def loss(self) -> PrivacyLoss:
        """The loss of one Gaussian release with the declared μ."""
        return PrivacyLoss.from_distribution(GaussianLossDistribution(self._mu), neighbors=self.neighbors)

    @property
    def statement(self) -> str:
        return (
            f"parameters may be chosen adaptively without restriction while the squares of mu add up to at most "
            f"{self._mu:.12g} squared: together {self._mu:.12g}-GDP"
        )

    def _charge_cost(self, loss: PrivacyLoss) -> Fraction:
        squares = [squared_mu(direction) for direction in (loss.remove, loss.add)]
        finite = [square for square in squares if square is not None]
        if len(finite) < len(squares):
            raise InsufficientBudgetError(
                "this loss is not provably dominated by a Gaussian one (it is unbounded, or infinite with some "
                "probability); charge a MomentFilter, which takes any loss"
            )
        return Fraction(max(finite))

    def _refusal_reason(self, cost: Fraction) -> str:
        limit = Fraction(self._mu) ** 2
        if self._spent + cost <= limit:
            return ""
        remaining = max(0.0, float(limit - self._spent)) ** 0.5
        return f"this charge needs mu={float(cost) ** 0.5:.6g} and mu={remaining:.6g} is left; add more noise, or stop"

    def _spend_cost(self, cost: Fraction) -> None:
        self._spent += cost
