"""Real-valued noise between two lattices of m cells a sensitivity (theory §4.2): costs of cells, costs of nodes.

**Above.** A whole number K that keeps the points for shifts 1..m, unimodal, and U uniform on (−½, ½) give X = h(K + U),
h = Δ/m. A shift by h(d + t), 0 ≤ t < 1, compares cells at distance d with probability 1 − t and d + 1 with probability
t, so X keeps the points at every real shift up to Δ. Its cost is Σ p_k E φ(h|k + U|).

**Below.** Let y solve the program at the nodes hℤ for shifts hd and be linear between them. For every real noise the
bound of ``noise_dual`` holds with the infimum of r over the real line. Where φ is linear between nodes r is, too, and
nodes suffice; x² is at least its chord less h²/4; any non-decreasing φ is at least the chord of its values one node
before.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tightrope.design.program.noise_cost import Cost
from tightrope.design.program.noise_search import best_staircase
from tightrope.numerics.arrays import Floats

CELL_PARTS = 16
"""Pieces of a cell over which a cost without a formula is bounded by its value at the outer end."""
FOLLOWED_NATS = 40.0
"""Nats that a staircase is followed down."""
COARSEST, FINEST = 4, 64


@dataclass(frozen=True, slots=True)
class Lattice:
    """Cells of width Δ/m. Costs are in units of h^p for |x|^p, else as they are."""

    sensitivity: float
    cells: int
    cost: Cost

    @property
    def width(self) -> float:
        """H = Δ/m."""
        return self.sensitivity / self.cells

    @property
    def unit(self) -> float:
        """What costs are multiples of."""
        return self.width**self.cost.power if self.cost.power is not None else 1.0

    def above(self, last: int) -> Floats:
        """E φ(h|k + U|) for k = 0..last, or a little more."""
        k = np.arange(last + 1.0)
        if self.cost.power == 1:
            return np.where(k == 0, 0.25, k)
        if self.cost.power == 2:
            return np.asarray(k * k + 1 / 12)
        return np.array([self.of_cell(cell) for cell in k.tolist()])

    def of_cell(self, k: float) -> float:
        """E φ(h|k + U|), or a little more, for a cost without a formula: pieces cost what their outer end costs."""
        parts = np.arange(1, CELL_PARTS + 1) / CELL_PARTS
        ends = parts / 2 if k == 0 else k - 0.5 + parts
        return float(self.cost.at(self.width * ends).mean()) * (1 + 2.0**-48)

    def below(self, last: int) -> Floats:
        """Node values k = 0..last of a function, linear between nodes, that is nowhere above the cost."""
        k = np.arange(last + 1.0)
        if self.cost.power == 1:
            return k
        if self.cost.power == 2:
            return np.asarray(k * k - 0.25)
        return self.cost.at(self.width * np.maximum(k - 1, 0.0))


def finest(cost: Cost, sensitivity: float, epsilon: float, most: int, *, above: bool) -> Lattice:
    """The lattice of at most ``most`` cells that suits best: judged by the best staircase of ε alone.

    Its steps fall on nodes or between them, as the number of cells decides; ε = 0 takes the finest.
    """
    choices = range(COARSEST, max(COARSEST, min(most, FINEST)) + 1)
    lattices = [Lattice(sensitivity, cells, cost) for cells in choices]
    if not epsilon > 0:
        return lattices[-1]
    if above:
        return min(lattices, key=lambda lattice: staircase_cost(lattice, epsilon, above=True))
    return max(lattices, key=lambda lattice: staircase_cost(lattice, epsilon, above=False))


def staircase_cost(lattice: Lattice, epsilon: float, *, above: bool) -> float:
    """The least cost of a law that is flat on |k| < r and then falls by e^{−ε} every m cells, over r = 1..m.

    >>> fine = Lattice(1.0, 48, Cost.of("absolute"))
    >>> round(staircase_cost(fine, 1.0, above=True), 3)  # e^{ε/2} / (e^ε − 1) = 0.9595...
    0.96
    """
    last = lattice.cells * (math.ceil(FOLLOWED_NATS / epsilon) + 2)
    costs = lattice.above(last) if above else lattice.below(last)
    return best_staircase(epsilon, lattice.cells, costs)[0] * lattice.unit
