"""Choice of the method: the first that fits a composition (one direction).

dynamic program  two or more steps of bounded range, whose offsets may be chosen adaptively, and any others
closed form  a single distribution with a formula for its profile
exact sum    copies of one discrete Gaussian: a sum over integers, close to the continuous closed form
recurrence   copies of one triple: positive three-term recurrence
lattice      distributions with atoms on one lattice: tilted transform
enumeration  a few copies of small finite distributions: every sum of losses
contour      distributions with densities: integral through the saddle point; for Gaussians with a tilted grid where
             the integral leaves a wide bracket
exact sum    up to some hundred copies of one Laplace-type distribution: positive recurrence
grid         everything else: cells moved onto a lattice, from both sides
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple, Self

import numpy as np

from tightrope.accounting.bounds import Interval
from tightrope.accounting.distributions.atoms import Atoms, enumerate_composition, enumerate_reverse_composition
from tightrope.accounting.distributions.base import BoundArrays, LossDistribution
from tightrope.accounting.distributions.base import mirror_bounds as closed_form_mirrored
from tightrope.accounting.distributions.composition import Composition
from tightrope.accounting.methods.adaptive_range import AdaptiveRangeMethod, adaptive_range_method
from tightrope.accounting.methods.grid import GridMethod
from tightrope.accounting.methods.lattice import Lattice
from tightrope.accounting.methods.lattice_method import LatticeMethod, gaussian_sum_method, lattice_method_if_exact
from tightrope.accounting.methods.method import Method
from tightrope.numerics.arrays import Floats
from tightrope.numerics.rounding import ROUND_OFF

# A single distribution with a formula for its profile.


class DirectionTail(NamedTuple):
    """One order of the pair: its distribution, the ε above which only its infinite mass is left, and that mass."""

    law: LossDistribution
    last: float
    infinite: Interval

    @classmethod
    def from_law(cls, law: LossDistribution) -> Self:
        """Return the side of a distribution, whose largest loss may have a rounding error."""
        return cls(
            law,
            float(np.nextafter(law.largest_loss + law.rounding_error_bound, np.inf)),
            Composition.from_distribution(law).infinite_bounds,
        )

    def delta_bounds_at(self, epsilons: Floats) -> BoundArrays:
        """Return bounds on δ(ε), for ε ≥ 0 unless the distribution is finite."""
        deltas = self.law.compute_deltas((epsilons, epsilons)) or (np.zeros_like(epsilons), np.ones_like(epsilons))
        beyond = epsilons >= self.last
        if not beyond.any():
            return deltas
        low, high = (np.where(beyond, end, delta) for end, delta in zip(self.infinite, deltas, strict=True))
        return low, high


@dataclass(frozen=True, slots=True)
class ClosedFormMethod(Method):
    """A single distribution with a formula."""

    law: LossDistribution
    name: str = "closed form"
    mirror: Callable[[], LossDistribution | None] | None = None
    """Returns the distribution of the reverse order if it is not derived from ``law``; None if unknown."""
    sides: dict[bool, DirectionTail | None] = field(default_factory=dict, repr=False, compare=False)
    """The requested order and the reverse one, once computed."""

    def delta(self, epsilon: float) -> Interval:
        low, high = self.delta_bounds_at(np.array([epsilon]))
        return float(low[0]), float(high[0])

    def delta_bounds_at(self, epsilons: Floats) -> BoundArrays:
        """Return bounds at many ε; below 0 by 1 − e^ε + e^ε δ'(−ε), δ' of the reverse order: sums of positive terms.

        A finite distribution is summed directly if its reverse has lost masses to underflow.
        """
        negative = epsilons < 0
        back = self._forward_side(ahead=False) if negative.any() else None
        if back is None:
            low, high = self._one_side.delta_bounds_at(epsilons)
            return np.minimum(low, 1.0), np.minimum(high, 1.0)  # raised masses add up to more than one
        below = closed_form_mirrored(np.minimum(epsilons, 0.0), back.delta_bounds_at(np.maximum(-epsilons, 0.0)))
        if negative.all():
            return below
        above = self._one_side.delta_bounds_at(np.maximum(epsilons, 0.0))
        low, high = (np.where(negative, less, more) for less, more in zip(below, above, strict=True))
        return low, high

    @property
    def _one_side(self) -> DirectionTail:
        return self._forward_side(ahead=True) or DirectionTail.from_law(self.law)

    def _forward_side(self, *, ahead: bool) -> DirectionTail | None:
        if ahead not in self.sides:
            law: LossDistribution | None = self.law
            if not ahead and self.mirror is not None:
                law = self.mirror()
            elif not ahead:
                has_reverse = not isinstance(self.law, Atoms) or self.law.has_exact_reverse
                law = self.law.reverse_distribution() if has_reverse else None
            self.sides[ahead] = None if law is None else DirectionTail.from_law(law)
        return self.sides[ahead]


def choose_method(total: Composition) -> Method:
    """Return the method that fits; the loss caches it."""
    return adaptive_range_method(total, choose_pair_method) or choose_pair_method(total)


def adds_envelopes(total: Composition, method: Method) -> bool:
    """Return whether the method adds up pairs that are worst for a single step only: no mechanisms lose that much."""
    envelopes = [(law, count) for law, count in zip(total.laws, total.counts, strict=True) if law.is_envelope]
    is_exact = isinstance(method, AdaptiveRangeMethod) and all(law.offset_range is not None for law, _ in envelopes)
    return sum(count for _, count in envelopes) > 1 and not is_exact


def choose_pair_method(total: Composition) -> Method:
    """Return the method for the composition of the pairs themselves, each one fixed."""
    if not total.laws:
        return LatticeMethod(Lattice(1.0, (), 0.0), 0.0)
    if total.infinite_mass == 1:
        nearly = 0.0 if total.infinite_bounds[0] == 1 else 8 * ROUND_OFF
        return ClosedFormMethod(Atoms(np.zeros(0), np.zeros(0), 1.0, 1.0, relative_mass_error=nearly))
    if total.counts == (1,) and total.laws[0].profile(np.array([1.0])) is not None:
        return ClosedFormMethod(total.laws[0])
    return gaussian_sum_method(total, lambda: _choose_numerical_method(total)) or _choose_numerical_method(total)


def _choose_numerical_method(total: Composition) -> Method:
    """Return the method for a composition without a formula."""
    if (on_one_lattice := lattice_method_if_exact(total)) is not None:
        return on_one_lattice
    if (finite := enumerate_composition(total)) is not None:
        return ClosedFormMethod(finite, "enumeration", cache(lambda: enumerate_reverse_composition(total)))
    # Distributions with densities; the grid is the fallback of all others. Releases of integer noise load none of them.
    from tightrope.accounting.methods.contour import ContourMethod, contour_applies
    from tightrope.accounting.methods.laplace_sum import laplace_sum_method
    from tightrope.accounting.methods.smoothing import build_smoothing_method
    from tightrope.accounting.methods.tilted_grid import TiltedGridMethod

    fallback = build_smoothing_method(total, GridMethod(total))
    integral = ContourMethod(total, fallback, TiltedGridMethod.from_composition(total))
    return integral if contour_applies(total) else laplace_sum_method(total, fallback) or fallback
