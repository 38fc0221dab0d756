"""What Laplace-type losses have in common: tilted by e^{−l/2} they are two equal atoms and a uniform density."""

from __future__ import annotations

import math
from typing import NamedTuple


class Flat(NamedTuple):
    """A loss tilted by e^{−l/2}: ``atom`` at −ε and +ε each, ``spread`` uniformly between."""

    epsilon: float
    atom: float
    spread: float

    @property
    def whole(self) -> float:
        """M = 2a + b, the mass under the tilted law: E e^{−L/2}."""
        return 2 * self.atom + self.spread

    @property
    def odds(self) -> float:
        """Of the density against both atoms."""
        return self.spread / (2 * self.atom) if self.atom > 0 else math.inf
