"""F4: μ² adds up, whatever is chosen."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import final

import numpy as np
from scipy.special import ndtri

from tightrope.accounting.distributions.atoms import Atoms
from tightrope.accounting.distributions.base import LossLaw
from tightrope.accounting.distributions.composition import Composition
from tightrope.accounting.distributions.gaussian import GaussianLaw
from tightrope.accounting.filters.filter import ROOM, Dominated
from tightrope.accounting.neighbors import Neighbours
from tightrope.accounting.privacy_loss import PrivacyLoss
from tightrope.errors import BudgetRefused
from tightrope.numerics.arrays import Floats
from tightrope.numerics.checks import positive
from tightrope.numerics.rounding import ROUND_OFF

# The least μ for which μ-GDP provably dominates a loss: exact for bounded losses, none for others.

CUT = 2000
"""Cells of a bounded law: its chords decide how much μ is too large, never whether it is large enough."""
TRUSTED = 1e-9
"""Masses must add up to one this closely; what is missing is charged as their relative error."""


def squared_mu(direction: Composition) -> float | None:
    """Σ n μ_i², rounded up; None where a law is not dominated by any Gaussian that we can prove."""
    mus = [(gaussian_mu(law), n) for law, n in zip(direction.laws, direction.counts, strict=True)]
    known = [n * mu * mu for mu, n in mus if mu is not None]
    total = math.fsum(known) * (1 + 1e-15)
    return total if len(known) == len(mus) and math.isfinite(total) else None


@lru_cache(maxsize=1024)
def gaussian_mu(law: LossLaw) -> float | None:
    """μ of one law (theory §2, F4; ``docs/proofs/filters.md``).

    The trade-off function of a law with finitely many bounded losses is a polygon; the Gaussian one is convex, so it
    lies below wherever it does at the corners. At the corner behind loss l that is Φ⁻¹(P(L > l)) − Φ⁻¹(Q(L > l)) ≤ μ.
    """
    if isinstance(law, GaussianLaw):
        return law.mu
    bounded = math.isfinite(law.largest) and math.isfinite(law.reverse().largest)
    if not bounded or law.infinite_mass > 0 or law.opposite_mass > 0:
        return None
    # Atoms as they are; anything else by the ends of its cells, which dominate it.
    if isinstance(law, Atoms):
        atoms = law
    else:
        width = max(law.largest + law.reverse().largest, 1e-12)
        cells = law.cells(width / CUT)
        atoms = Atoms.gather(*cells.ends(), infinite_mass=cells.infinite_mass, slack=cells.slack)
    q = atoms.masses * np.exp(np.minimum(-atoms.losses, 700.0))
    missing = abs(math.fsum(atoms.masses) - 1) + abs(math.fsum(q) - 1)
    if not missing <= TRUSTED or atoms.infinite_mass > 0:
        return None
    error = missing + 2 * atoms.slack + 4 * ROUND_OFF * (len(q) + float(np.max(np.abs(atoms.losses), initial=0.0)))
    corners = _quantile(atoms.masses) - _quantile(q)
    return (max(0.0, float(np.max(corners, initial=0.0))) + 8 * error) * (1 + 1e-14)


def _quantile(masses: Floats) -> Floats:
    """Φ⁻¹ of the mass above each corner, from whichever tail is the smaller: relative errors stay small."""
    above, below = np.cumsum(masses[::-1])[::-1][1:], np.cumsum(masses)[:-1]
    return np.where(above <= below, ndtri(np.minimum(above, 0.5)), -ndtri(np.minimum(below, 0.5)))


@final
class GaussianFilter(Dominated[Fraction]):
    """Σμ_i² ≤ ``mu``²: together μ-GDP, as if the parameters had been fixed (theory §2, F4).

    Takes Gaussian losses, and bounded ones (pure ε, Laplace, tables without infinite mass) at the least μ that
    provably dominates them: 2Φ⁻¹(e^ε/(1+e^ε)) for pure ε (Dong–Roth–Su). Everything else is refused: a
    Poisson-sampled Gaussian is no better than the Gaussian far in the tail. Sums are exact and may be larger by a
    factor 1 + 2⁻⁴⁰ for rounding; so is the guarantee. Neighbours: as declared, or those of the first charge. Raises
    ``InputError`` unless μ > 0.

    >>> from tightrope import gaussian
    >>> filter = GaussianFilter(mu=1)
    >>> for scale in [2, 2, 4]:
    ...     filter.charge(gaussian(scale=scale).loss)
    >>> filter.admits(gaussian(scale=1.6).loss)
    True
    >>> round(filter.delta(1), 6) == round(gaussian(scale=1).loss.delta(1), 6)
    True
    """

    def __init__(self, *, mu: float, neighbours: Neighbours = Neighbours.UNSPECIFIED) -> None:
        self._mu = positive("mu", mu, "a Gaussian release of sensitivity 1 and scale s has mu = 1/s") * ROOM
        self._spent = Fraction(0)
        super().__init__(neighbours)

    @property
    def loss(self) -> PrivacyLoss:
        """The loss of one Gaussian release with the declared μ."""
        return PrivacyLoss.of(GaussianLaw(self._mu), neighbours=self.neighbours)

    @property
    def statement(self) -> str:
        return (
            f"parameters may be chosen adaptively without restriction while the squares of mu add up to at most "
            f"{self._mu:.12g} squared: together {self._mu:.12g}-GDP"
        )

    def _cost(self, loss: PrivacyLoss) -> Fraction:
        squares = [squared_mu(direction) for direction in (loss.remove, loss.add)]
        known = [square for square in squares if square is not None]
        if len(known) < len(squares):
            raise BudgetRefused(
                "this loss is not provably dominated by a Gaussian one (it is unbounded, or infinite with some "
                "probability); charge a MomentFilter, which takes any loss"
            )
        return Fraction(max(known))

    def _refusal(self, cost: Fraction) -> str:
        limit = Fraction(self._mu) ** 2
        if self._spent + cost <= limit:
            return ""
        left = max(0.0, float(limit - self._spent)) ** 0.5
        return f"this charge needs mu={float(cost) ** 0.5:.6g} and mu={left:.6g} is left; add more noise, or stop"

    def _spend(self, cost: Fraction) -> None:
        self._spent += cost
