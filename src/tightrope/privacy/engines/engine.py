"""What every engine answers: an interval that holds δ(ε)."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from tightrope.numerics.arrays import Floats
from tightrope.privacy.engines.saddle import Guess
from tightrope.privacy.laws.interval import Interval

LOST_PART = 1e-18
"""What is added to a number and is no more than this part of it is lost in its rounding."""


class Engine(ABC):
    """Computes δ(ε) of one composed direction as an interval that holds the truth."""

    name: str

    @abstractmethod
    def delta(self, epsilon: float) -> Interval: ...

    def upper(self, epsilon: float) -> float:
        """The upper end alone, where that is cheaper: it may be less tight than that of ``delta``, never unsafe."""
        return self.delta(epsilon)[1]

    def ceiling(self, epsilon: float) -> float:
        """An upper bound on δ(ε) that costs next to nothing; 1 where there is none."""
        del epsilon
        return 1.0

    def beside(self, epsilon: float, size: float) -> Interval:
        """An interval that holds δ(ε), as narrow as matters where δ is added to a number of this size."""
        most = self.ceiling(epsilon)
        return (0.0, most) if most <= LOST_PART * size else self.delta(epsilon)

    def why(self, epsilon: float) -> str:
        """What kept the bracket at ε from being narrower, where that is known."""
        del epsilon
        return ""

    def guess(self, target: float) -> Guess | None:
        """About where δ(ε) is ``target``; None where nothing is known."""
        del target
        return None

    def deltas(self, epsilons: Floats) -> tuple[Floats, Floats]:
        """Both ends at many ε."""
        ends = np.array([self.delta(epsilon) for epsilon in epsilons.tolist()]).reshape(-1, 2)
        return ends[:, 0], ends[:, 1]
