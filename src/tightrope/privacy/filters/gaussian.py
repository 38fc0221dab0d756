"""F4: μ² adds up, whatever is chosen."""

from __future__ import annotations

from fractions import Fraction
from typing import final

from tightrope.errors import BudgetRefused
from tightrope.numerics.checks import positive
from tightrope.privacy.filters.equivalent import squared_mu
from tightrope.privacy.filters.filter import Dominated
from tightrope.privacy.filters.gate import ROOM
from tightrope.privacy.laws.gaussian import GaussianLaw
from tightrope.privacy.loss import PrivacyLoss
from tightrope.privacy.neighbours import Neighbours


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
