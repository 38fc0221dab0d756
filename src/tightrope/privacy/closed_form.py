"""A single law that knows its profile."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tightrope.privacy.atoms import Atoms
from tightrope.privacy.composition import Composition
from tightrope.privacy.interval import Engine, Interval, outward
from tightrope.privacy.law import LossLaw


@dataclass(frozen=True, slots=True)
class ClosedForm(Engine):
    """A single law with a formula."""

    law: LossLaw
    name: str = "closed form"
    mirror: Callable[[], LossLaw | None] | None = None
    """The law of the reverse order, if it is known better than from ``law``: None where it is not known."""

    def delta(self, epsilon: float) -> Interval:
        """Below 0 by the mirror 1 − e^ε + e^ε δ'(−ε), δ' of the reverse order: sums of positive terms.

        A finite law whose reverse has lost masses to underflow is summed as it is.
        """
        reverse = self._reverse() if epsilon < 0 else None
        if reverse is None:
            return self._at(self.law, epsilon)
        low, high = self._at(reverse, -epsilon)
        base, factor = -math.expm1(epsilon), math.exp(epsilon)
        return outward(base + factor * low, 4e-16)[0], outward(base + factor * high, 4e-16)[1]

    def _reverse(self) -> LossLaw | None:
        if self.mirror is not None:
            return self.mirror()
        return None if isinstance(self.law, Atoms) and not self.law.reversible else self.law.reverse()

    @staticmethod
    def _at(law: LossLaw, epsilon: float) -> Interval:
        """Losses may be off by the law's slack, so each end is taken at the ε that is on its side."""
        if epsilon - law.slack >= law.largest:
            return Composition.of(law).infinite_bounds
        ends = np.array([epsilon + law.slack, epsilon - law.slack])
        values, errors = law.profile(ends), law.profile_error(ends)
        low, high = (0.0, 1.0) if values is None else (float(values[0]), float(values[1]))
        return outward(low, low * float(errors[0]))[0], outward(high, high * float(errors[1]))[1]
