"""Which method answers: the first that fits a composition (one direction).

closed form  a single law that knows its profile
recurrence   copies of one triple: positive three-term recurrence
lattice      laws with atoms on one lattice: tilted transform
enumeration  a few copies of small finite laws: every sum of losses
contour      laws with densities: integral through the saddle point
exact sum    up to some hundred copies of one Laplace-type law: positive recurrence
grid         everything else: cells moved onto a lattice, from both sides
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple, Self

import numpy as np

from tightrope.accounting.bounds import Interval
from tightrope.accounting.distributions.atoms import Atoms
from tightrope.accounting.distributions.base import Ends, LossLaw
from tightrope.accounting.distributions.base import mirrored as closed_form_mirrored
from tightrope.accounting.distributions.composition import Composition
from tightrope.accounting.methods import contour
from tightrope.accounting.methods.contour import Contour
from tightrope.accounting.methods.enumeration import enumerated, mirrored
from tightrope.accounting.methods.grid import Gridded
from tightrope.accounting.methods.laplace_sum import flat_sum
from tightrope.accounting.methods.lattice import Lattice
from tightrope.accounting.methods.lattice_method import OnLattice, on_lattice
from tightrope.accounting.methods.method import Engine
from tightrope.accounting.methods.smoothing import smoothed
from tightrope.numerics.arrays import Floats
from tightrope.numerics.rounding import ROUND_OFF

# A single law that knows its profile.


class Side(NamedTuple):
    """One order of the pair: its law, the ε from which on only its infinite mass is left, and that mass."""

    law: LossLaw
    last: float
    infinite: Interval

    @classmethod
    def of(cls, law: LossLaw) -> Self:
        """Of a law, whose largest loss may be off by its slack."""
        return cls(law, float(np.nextafter(law.largest + law.slack, np.inf)), Composition.of(law).infinite_bounds)

    def deltas(self, epsilons: Floats) -> Ends:
        """Bounds on δ(ε); at ε ≥ 0 unless the law is finite."""
        found = self.law.deltas((epsilons, epsilons)) or (np.zeros_like(epsilons), np.ones_like(epsilons))
        beyond = epsilons >= self.last
        if not beyond.any():
            return found
        low, high = (np.where(beyond, end, other) for end, other in zip(self.infinite, found, strict=True))
        return low, high


@dataclass(frozen=True, slots=True)
class ClosedForm(Engine):
    """A single law with a formula."""

    law: LossLaw
    name: str = "closed form"
    mirror: Callable[[], LossLaw | None] | None = None
    """The law of the reverse order, if it is known better than from ``law``: None where it is not known."""
    sides: dict[bool, Side | None] = field(default_factory=dict, repr=False, compare=False)
    """The order asked for, and the reverse one, once they were needed."""

    def delta(self, epsilon: float) -> Interval:
        low, high = self.deltas(np.array([epsilon]))
        return float(low[0]), float(high[0])

    def deltas(self, epsilons: Floats) -> Ends:
        """Below 0 by the mirror 1 − e^ε + e^ε δ'(−ε), δ' of the reverse order: sums of positive terms.

        A finite law whose reverse has lost masses to underflow is summed as it is.
        """
        negative = epsilons < 0
        back = self._side(ahead=False) if negative.any() else None
        if back is None:
            low, high = self._one_side.deltas(epsilons)
            return np.minimum(low, 1.0), np.minimum(high, 1.0)  # raised masses add up to more than one
        below = closed_form_mirrored(np.minimum(epsilons, 0.0), back.deltas(np.maximum(-epsilons, 0.0)))
        if negative.all():
            return below
        above = self._one_side.deltas(np.maximum(epsilons, 0.0))
        low, high = (np.where(negative, less, more) for less, more in zip(below, above, strict=True))
        return low, high

    @property
    def _one_side(self) -> Side:
        return self._side(ahead=True) or Side.of(self.law)

    def _side(self, *, ahead: bool) -> Side | None:
        if ahead not in self.sides:
            law = self.law if ahead else self._reverse()
            self.sides[ahead] = None if law is None else Side.of(law)
        return self.sides[ahead]

    def _reverse(self) -> LossLaw | None:
        if self.mirror is not None:
            return self.mirror()
        return None if isinstance(self.law, Atoms) and not self.law.reversible else self.law.reverse()


def choose(total: Composition) -> Engine:
    """The engine that fits; made once and kept by the loss."""
    if not total.laws:
        return OnLattice(Lattice(1.0, (), 0.0), 0.0)
    if total.infinite_mass == 1:
        nearly = 0.0 if total.infinite_bounds[0] == 1 else 8 * ROUND_OFF
        return ClosedForm(Atoms(np.zeros(0), np.zeros(0), 1.0, 1.0, inexact=nearly))
    law = total.laws[0] if total.counts == (1,) else None
    return (
        (ClosedForm(law) if law is not None and law.profile(np.array([1.0])) is not None else None)
        or on_lattice(total)
        or _finite(total)
        or _dense(total)
    )


def _finite(total: Composition) -> Engine | None:
    finite = enumerated(total)
    if finite is None:
        return None
    return ClosedForm(finite, "enumeration", cache(lambda: mirrored(total)))


def _dense(total: Composition) -> Engine:
    """Laws with densities; the grid stands behind each of the others."""
    last = smoothed(total, Gridded(total))
    if contour.applies(total):
        return Contour(total, last)
    return flat_sum(total, last) or last
