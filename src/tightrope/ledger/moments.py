"""A limit on one log moment of the privacy loss: adaptive releases cost little more than planned ones.

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

from tightrope.accounting.distributions.atoms import Atoms
from tightrope.accounting.distributions.base import LossDistribution
from tightrope.accounting.distributions.composition import Composition
from tightrope.accounting.filters.moments import MomentBound, log_moments, log_peak
from tightrope.accounting.privacy_loss import PrivacyLoss
from tightrope.documents.budget import Budget, exact_decimal_product, float_at_most
from tightrope.errors import InputError
from tightrope.numerics.root_finding import find_root

INFINITE_FRACTION = Decimal("0.25")
"""Part of δ reserved for infinite losses: costs 2 % of the noise, and is what bounded noise needs."""
ORDERS = tuple(round(2 ** (eighth / 8) * 16) / 16 for eighth in range(-32, 137))
"""Candidate orders from 1/16 to 2^17, all exact as floats."""
HALF_WIDTHS = (1.96, 3.0)
"""95 % half-widths of Gaussian noise in standard deviations, and of Laplace noise in scales."""
PARTS_OF_NAT = 1024
"""A moment budget is rounded down to a multiple of 1/1024 nat."""
SAFETY_NATS = 1e-6
"""Distance of a moment budget from the largest valid one, so that rounding cannot invalidate it on any machine."""
TRIMMED_PARTS = tuple(2.0**-power for power in range(0, 34, 2))
"""Candidates for the part of δ_∞ that is spent on the largest losses of a release, counted as infinite."""
CHARGE_DENOMINATOR = 10**12
"""A charge is rounded up to a multiple of its inverse."""
CHARGE_MARGIN = Fraction(1, 10**9)
"""Relative margin added to a computed charge, so that a later computation elsewhere never exceeds the charge."""


@dataclass(frozen=True, slots=True)
class Moments:
    """A moment budget for all releases together.

    Their log moments of order z add up to at most B, their masses of infinite loss to at most δ_∞.
    Exact decimals, fixed when the limit is declared. A fraction s of the limit is (sB, sδ_∞), in both directions.
    """

    order: Decimal
    budget: Decimal
    infinite_mass: Decimal

    @classmethod
    def choose_for(cls, budget: Budget, releases: int) -> Self:
        """Return the moment budget that meets every point of the budget, best for about ``releases`` equal releases.

        Best means the smallest 95 % half-width of Gaussian or Laplace noise with log moment B/n. Raises ``InputError``
        if some δ is 0, which no bound on moments implies.
        """
        least = min(delta for _, delta in budget.checked_points)
        if not least > 0:
            text = f"'moments' needs delta > 0, but the budget is {budget}; set a delta such as 1e-8, or rule='basic'"
            raise InputError.from_text("rule", text)
        infinite = min(budget.delta, exact_decimal_product(least, INFINITE_FRACTION))
        half_widths = {
            z: smallest_half_width(z, _largest_moment_budget(z, budget, infinite) / releases) for z in ORDERS
        }
        order = min(ORDERS, key=lambda z: half_widths[z])
        if not math.isfinite(half_widths[order]):
            text = f"'moments' is not possible for {budget}; raise epsilon or delta, or set rule='basic'"
            raise InputError.from_text("rule", text)
        nats = Fraction(
            math.floor((_largest_moment_budget(order, budget, infinite) - SAFETY_NATS) * PARTS_OF_NAT), PARTS_OF_NAT
        )
        return cls(Decimal(order), Decimal(nats.numerator) / Decimal(nats.denominator), infinite)

    def keeps_budget(self, budget: Budget) -> bool:
        """Return whether every point of the budget follows: δ_∞ + e^{B − zε} z^z/(1+z)^{1+z} ≤ δ, rounded upward."""
        if not (self.order > 0 and self.budget > 0 and 0 <= self.infinite_mass <= budget.delta):
            return False
        # The infinite mass is rounded up to a float.
        low = float_at_most(self.infinite_mass)
        bound = MomentBound(
            float(self.order),
            float(self.budget),
            low if Fraction(low) == Fraction(self.infinite_mass) else math.nextafter(low, math.inf),
        )
        is_exact = Fraction(bound.order) == Fraction(self.order) and Fraction(bound.budget) == Fraction(self.budget)
        return is_exact and all(bound.delta(epsilon) <= delta for epsilon, delta in budget.rounded_points)

    def required_fraction(self, loss: PrivacyLoss) -> Fraction | None:
        """Return the fraction of the budget that a loss needs, rounded upward; None if the whole budget is too small.

        The rare largest losses, which dominate a moment, may be counted as infinite instead: the result is a
        dominating pair of the release, in each direction the one that needs the smallest fraction.
        """
        fractions = [self._smallest_fraction(direction) for direction in (loss.remove, loss.add)]
        covered = [fraction for fraction in fractions if fraction is not None]
        return max(covered) if len(covered) == len(fractions) else None

    def _smallest_fraction(self, total: Composition) -> Fraction | None:
        """Return the smallest fraction that a dominating pair of the composition needs; None if there is none."""
        parts = TRIMMED_PARTS if self.infinite_mass > 0 else ()
        masses = (float(self.infinite_mass) * part / max(1, sum(total.counts)) for part in parts)
        trimmed = (
            Composition(tuple(_largest_losses_infinite(law, mass) for law in total.laws), total.counts)
            for mass in masses
        )
        fractions = [self._fraction_for_pair(pair) for pair in (total, *trimmed)]
        return min((fraction for fraction in fractions if fraction is not None), default=None)

    def _fraction_for_pair(self, total: Composition) -> Fraction | None:
        """Return the fraction that this dominating pair needs; None if its moment is infinite."""
        moments = log_moments(total, (float(self.order),))
        nats, infinite = float(moments.values[0]), moments.infinite_mass
        if not math.isfinite(nats) or (infinite > 0 and not self.infinite_mass > 0):
            return None
        part = Fraction(infinite) / Fraction(self.infinite_mass) if infinite > 0 else Fraction(0)
        return max(Fraction(nats) / Fraction(self.budget), part)

    def charged_fraction(self, loss: PrivacyLoss) -> Fraction | None:
        """Return the fraction that a loss is charged: ``required_fraction`` with a margin, to twelve digits."""
        needed = self.required_fraction(loss)
        return (
            None
            if needed is None
            else Fraction(math.ceil(needed * (1 + CHARGE_MARGIN) * CHARGE_DENOMINATOR), CHARGE_DENOMINATOR)
        )

    def to_data(self) -> dict[str, str]:
        """Return the moment budget as data for JSON."""
        return {name: str(value) for name, value in asdict(self).items()}

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Self:
        """Return the moment budget from the data of ``to_data``."""
        return cls(**{name: Decimal(value) for name, value in data.items()})


def _largest_losses_infinite(distribution: LossDistribution, mass: float) -> LossDistribution:
    """Return a dominating pair in which this mass of the largest losses is infinite; unchanged if it is not atoms."""
    if not isinstance(distribution, Atoms) or len(distribution.losses) == 0:
        return distribution
    kept_count = max(
        1, len(distribution.losses) - int(np.searchsorted(np.cumsum(distribution.masses[::-1]), mass, side="right"))
    )
    trimmed_masses = distribution.masses[kept_count:]
    infinite = min(1.0, (distribution.infinite_mass + math.fsum(trimmed_masses)) * (1 + 1e-15))
    opposite = min(
        1.0, distribution.reverse_infinity_mass + math.fsum(trimmed_masses * np.exp(-distribution.losses[kept_count:]))
    )
    return Atoms(
        distribution.losses[:kept_count],
        distribution.masses[:kept_count],
        infinite,
        opposite,
        distribution.rounding_error_bound,
        distribution.relative_mass_error,
    )


def _largest_moment_budget(order: float, budget: Budget, infinite: Decimal) -> float:
    """Return the largest B that meets every point: min of log(δ − δ_∞) + zε − log(z^z/(1+z)^{1+z})."""
    finite_points = [(epsilon, delta - float(infinite)) for epsilon, delta in budget.rounded_points]
    bounds = [math.log(delta) + order * epsilon if delta > 0 else -math.inf for epsilon, delta in finite_points]
    return min(bounds) - log_peak(order)


def smallest_half_width(order: float, moment: float) -> float:
    """Return the least half-width, per row of a person, of noise with this log moment; ∞ if no noise has it.

    >>> round(smallest_half_width(20.0, 1.0), 2), smallest_half_width(20.0, 0.0)
    (28.4, inf)
    """
    if not moment > 0:
        return math.inf

    # Its root is log ε of the Laplace noise with this log moment.
    def excess_moment(log_epsilon: float) -> float:
        epsilon = math.exp(log_epsilon)
        low = order * math.exp(-(2 * order + 1) * epsilon)
        return order * epsilon + math.log((order + 1 + low) / (2 * order + 1)) - moment

    scales = (
        math.sqrt(order * (order + 1) / (2 * moment)),
        1 / math.exp(find_root(excess_moment, -30.0, math.log(1 + 2 * moment / order + 2 / order), within=1e-9)),
    )
    return min(width * scale for width, scale in zip(HALF_WIDTHS, scales, strict=True))
