"""A limit on one moment of the loss: what is chosen after seeing answers costs little more than what was planned.

Theory §2, F3; proofs: ``docs/proofs/composition.md`` and ``docs/proofs/filters.md``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, Self

import numpy as np
import scipy

from tightrope.accounting.distributions.atoms import Atoms
from tightrope.accounting.distributions.base import LossDistribution
from tightrope.accounting.distributions.composition import Composition
from tightrope.accounting.filters.moments import MomentBound, log_moments, log_peak
from tightrope.accounting.privacy_loss import PrivacyLoss
from tightrope.documents.budget import Budget, at_most, exact_product
from tightrope.errors import InputError

CERTAIN = Decimal("0.25")
"""The part of δ for certain failure: it costs 2 % of the noise, and noise that ends may end four times less rarely."""
ORDERS = tuple(round(2 ** (eighth / 8) * 16) / 16 for eighth in range(-32, 137))
"""Orders that are looked at, from 1/16 to 2^17, all of them exact as floats."""
WIDTHS = (1.96, 3.0)
"""95 % half-widths of Gaussian noise over its deviation, and of Laplace noise over its scale."""
GRAIN = 1024
"""Parts of a nat that a budget of moments is rounded down to."""
CLOSE_NATS = 1e-6
"""Nats that stay between a budget and what would just do: every machine's rounding agrees that it does."""
CUTS = tuple(2.0**-power for power in range(0, 34, 2))
"""Parts of δ_∞ that a release's largest losses may be moved to, where that takes less."""
SHARE_DIGITS = 10**12
MARGIN = Fraction(1, 10**9)
"""Relative margin added to a computed charge, so that a later computation elsewhere never exceeds the charge."""


@dataclass(frozen=True, slots=True)
class Moments:
    """All releases together: log moments of order z add up to at most B, masses of infinite loss to at most δ_∞.

    Exact decimals, fixed when the limit is declared. A share s of the limit is sB and sδ_∞, in both directions.
    """

    order: Decimal
    budget: Decimal
    infinite_mass: Decimal

    @classmethod
    def choose_for(cls, budget: Budget, releases: int) -> Self:
        """Return the moment budget that meets every point of the budget, best for about ``releases`` equal releases.

        Best is the least 95 % half-width of the noise with log moment B/n, Gaussian or Laplace: a planner finds what
        lies between. Raises ``InputError`` where some δ is 0: no bound on moments reaches it.
        """
        least = min(delta for _, delta in budget.checked_points)
        if not least > 0:
            text = f"'moments' needs delta > 0, but the budget is {budget}; set a delta such as 1e-8, or rule='basic'"
            raise InputError.from_text("rule", text)
        infinite = min(budget.delta, exact_product(least, CERTAIN))
        errors = {z: _smallest_half_width(z, _largest_moment_budget(z, budget, infinite) / releases) for z in ORDERS}
        order = min(ORDERS, key=lambda z: errors[z])
        if not math.isfinite(errors[order]):
            text = f"'moments' is not possible for {budget}; raise epsilon or delta, or set rule='basic'"
            raise InputError.from_text("rule", text)
        nats = Fraction(math.floor((_largest_moment_budget(order, budget, infinite) - CLOSE_NATS) * GRAIN), GRAIN)
        return cls(Decimal(order), Decimal(nats.numerator) / Decimal(nats.denominator), infinite)

    def keeps_budget(self, budget: Budget) -> bool:
        """Return whether every point of the budget follows: δ_∞ + e^{B − zε} z^z/(1+z)^{1+z} ≤ δ, rounded upward."""
        if not (self.order > 0 and self.budget > 0 and 0 <= self.infinite_mass <= budget.delta):
            return False
        # The least float that is not below the decimal.
        low = at_most(self.infinite_mass)
        bound = MomentBound(
            float(self.order),
            float(self.budget),
            low if Fraction(low) == Fraction(self.infinite_mass) else math.nextafter(low, math.inf),
        )
        exact = Fraction(bound.order) == Fraction(self.order) and Fraction(bound.budget) == Fraction(self.budget)
        return exact and all(bound.delta(epsilon) <= delta for epsilon, delta in budget.rounded_points)

    def required_share(self, loss: PrivacyLoss) -> Fraction | None:
        """Return the share that a loss takes, as computed, rounded upward; None if the whole budget is too small.

        The largest losses, which a moment weighs most and which are rare, may be counted as infinite instead: for each
        direction by itself the pair that does so, and takes least, dominates the block as well.
        """
        found = [self._required_share_for(direction) for direction in (loss.remove, loss.add)]
        known = [share for share in found if share is not None]
        return max(known) if len(known) == len(found) else None

    def _required_share_for(self, total: Composition) -> Fraction | None:
        parts = CUTS if self.infinite_mass > 0 else ()
        masses = (float(self.infinite_mass) * part / max(1, sum(total.counts)) for part in parts)
        cut = (Composition(tuple(_without_top(law, mass) for law in total.laws), total.counts) for mass in masses)
        found = [self._share_of_pair(law) for law in (total, *cut)]
        return min((share for share in found if share is not None), default=None)

    def _share_of_pair(self, total: Composition) -> Fraction | None:
        """The share of one pair of laws."""
        found = log_moments(total, (float(self.order),))
        nats, infinite = float(found.values[0]), found.infinite_mass
        if not math.isfinite(nats) or (infinite > 0 and not self.infinite_mass > 0):
            return None
        part = Fraction(infinite) / Fraction(self.infinite_mass) if infinite > 0 else Fraction(0)
        return max(Fraction(nats) / Fraction(self.budget), part)

    def charged_share(self, loss: PrivacyLoss) -> Fraction | None:
        """The share that a loss is charged: a little more than ``required_share``, to twelve digits."""
        needed = self.required_share(loss)
        return None if needed is None else Fraction(math.ceil(needed * (1 + MARGIN) * SHARE_DIGITS), SHARE_DIGITS)

    def to_data(self) -> dict[str, str]:
        """Return the moment budget as data for JSON."""
        return {name: str(value) for name, value in asdict(self).items()}

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Self:
        """The numbers that ``to_data`` wrote."""
        return cls(**{name: Decimal(value) for name, value in data.items()})


def _without_top(law: LossDistribution, mass: float) -> LossDistribution:
    """Return a dominating pair with this mass of the largest losses made infinite. Only atoms are changed."""
    if not isinstance(law, Atoms) or len(law.losses) == 0:
        return law
    kept = max(1, len(law.losses) - int(np.searchsorted(np.cumsum(law.masses[::-1]), mass, side="right")))
    moved = law.masses[kept:]
    infinite = min(1.0, (law.infinite_mass + math.fsum(moved)) * (1 + 1e-15))
    opposite = min(1.0, law.opposite_mass + math.fsum(moved * np.exp(-law.losses[kept:])))
    return Atoms(law.losses[:kept], law.masses[:kept], infinite, opposite, law.rounding_bound, law.relative_mass_error)


def _largest_moment_budget(order: float, budget: Budget, infinite: Decimal) -> float:
    """The largest B that keeps every point: log(δ − δ_∞) + zε − log(z^z/(1+z)^{1+z})."""
    left = [(epsilon, delta - float(infinite)) for epsilon, delta in budget.rounded_points]
    rooms = [math.log(delta) + order * epsilon if delta > 0 else -math.inf for epsilon, delta in left]
    return min(rooms) - log_peak(order)


def _smallest_half_width(order: float, moment: float) -> float:
    """Return the least half-width, per row of a person, of noise with this log moment; ∞ if no noise has it."""
    if not moment > 0:
        return math.inf

    # The ε of the Laplace noise whose log moment of this order is this.
    def excess_moment(log_epsilon: float) -> float:
        epsilon = math.exp(log_epsilon)
        low = order * math.exp(-(2 * order + 1) * epsilon)
        return order * epsilon + math.log((order + 1 + low) / (2 * order + 1)) - moment

    scales = (
        math.sqrt(order * (order + 1) / (2 * moment)),
        1
        / math.exp(
            scipy.optimize.brentq(excess_moment, -30.0, math.log(1 + 2 * moment / order + 2 / order), xtol=1e-9)
        ),
    )
    return min(width * scale for width, scale in zip(WIDTHS, scales, strict=True))
