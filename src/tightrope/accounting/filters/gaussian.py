"""A filter that adds up μ² of Gaussian differential privacy, for adaptively chosen parameters (theory §2, F4)."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import final

import numpy as np
from scipy.special import ndtri

from tightrope.accounting.distributions.atoms import Atoms
from tightrope.accounting.distributions.base import LossDistribution
from tightrope.accounting.distributions.composition import Composition
from tightrope.accounting.distributions.gaussian import GaussianLossDistribution
from tightrope.accounting.filters.filter import ROUNDING_ALLOWANCE, DominatedFilter
from tightrope.accounting.neighbors import Neighbors
from tightrope.accounting.privacy_loss import PrivacyLoss
from tightrope.errors import InsufficientBudgetError
from tightrope.numerics.arrays import Floats
from tightrope.numerics.checks import check_positive
from tightrope.numerics.rounding import ROUND_OFF

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
    if not bounded or law.infinite_mass > 0 or law.opposite_mass > 0:
        return None
    # Atoms are used directly; other distributions are replaced by the ends of their cells, which dominate them.
    if isinstance(law, Atoms):
        atoms = law
    else:
        width = max(law.largest_loss + law.reverse_distribution().largest_loss, 1e-12)
        cells = law.loss_cells(width / CELL_COUNT)
        atoms = Atoms.merge_losses(*cells.dominating_atoms(), infinite_mass=cells.infinite_mass, slack=cells.slack)
    q = atoms.masses * np.exp(np.minimum(-atoms.losses, 700.0))
    missing = abs(math.fsum(atoms.masses) - 1) + abs(math.fsum(q) - 1)
    if not missing <= MASS_TOLERANCE or atoms.infinite_mass > 0:
        return None
    error = (
        missing + 2 * atoms.rounding_bound + 4 * ROUND_OFF * (len(q) + float(np.max(np.abs(atoms.losses), initial=0.0)))
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
