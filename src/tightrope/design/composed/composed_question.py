"""The question behind least noise under composition, and sizes that answer it in floats."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tightrope.design.composed.composed_curve import ComposedCurve, Released, normalised
from tightrope.design.program.noise_cost import Cost
from tightrope.errors import BudgetRefused
from tightrope.numerics.arrays import Floats
from tightrope.numerics.search import least_size
from tightrope.privacy.laws.gaussian_size import gaussian_mu

CELL_DIVISOR = 6.0
"""A loss that is moved within a cell of width h at random gains a variance of h²/6."""
FINEST_LATTICE = 2e-5
"""Lattices are no finer than this, in standard deviations of the total loss."""
FARTHEST_SIZE = 1e6
"""Sizes further than this factor from the guess are not looked at."""


@dataclass(frozen=True, slots=True)
class Question:
    """After ``releases`` releases δ(ε_i) ≤ δ_i, δ_i > 0, for shifts up to ``shift``; errors cost ``cost``."""

    points: tuple[tuple[float, float], ...]
    releases: int
    shift: int
    cost: Cost

    def expected(self, half: Floats) -> float:
        """E φ(|X|) of a release."""
        shares = normalised(half)
        costs = self.cost.at(np.arange(len(half), dtype=np.float64))
        return float(2 * np.dot(shares, costs) - shares[0] * costs[0])

    def excess(self, one: Released) -> float:
        """The largest log δ(ε_i) − log δ_i: at most 0 where the question is answered."""
        curve = ComposedCurve(one, self.releases)
        return max(curve.log_delta(epsilon) - math.log(delta) for epsilon, delta in self.points)

    @property
    def mu(self) -> float:
        """The μ of the Gaussian whose one release keeps the points: the size of the total loss, roughly."""
        return min(gaussian_mu(*point) for point in self.points)

    @property
    def gaussian_scale(self) -> float:
        """σ of the Gaussian that keeps the points."""
        return self.shift * math.sqrt(self.releases) / self.mu

    def step(self, share: float) -> float:
        """A lattice on which moved losses add this share to the variance of their sum; more where it would be huge."""
        return self.mu * max(math.sqrt(CELL_DIVISOR * share / self.releases), FINEST_LATTICE)

    @property
    def least_delta(self) -> float:
        return min(delta for _, delta in self.points)

    def least_size(
        self, release: Callable[[float], Released], guess: float, within: float, width: float = 0.02
    ) -> float:
        """The least size, to a factor of 1 + 2 ``within``, whose release keeps all points: larger ones must keep more.

        Raises ``BudgetRefused`` where none does.
        """

        def above(size: float) -> float:
            return self.excess(release(size))

        limits = (guess / FARTHEST_SIZE, guess * FARTHEST_SIZE)
        found = least_size(above, guess, width=width, within=within, limits=limits)
        if not math.isfinite(found):
            raise BudgetRefused(f"no size of this noise keeps {list(self.points)} after {self.releases} releases")
        return found
