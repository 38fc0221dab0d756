"""Laws that compete for the least noise under composition: every family's, each at its least size.

Sizes are found in floats (``composed_curve``); what wins becomes an integer table and is certified from that.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tightrope.accounting.distributions.gaussian import gaussian_mu
from tightrope.errors import BudgetRefused
from tightrope.noise.composed.composed_curve import ComposedCurve, Indices, Released, normalised
from tightrope.noise.families import Family, Heights, Several, Sized
from tightrope.noise.program.request import Cost
from tightrope.numerics.arrays import Floats
from tightrope.numerics.root_finding import least_size

# The question behind least noise under composition, and sizes that answer it in floats.

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


LATTICE_VARIANCE = 1e-5
"""Share of the variance of the loss that the lattice of a search may add."""
LAW_WITHIN = 1e-9
"""How near the least size of a law is approached."""


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A law that keeps the points in floats: weights of 0, ±1, …, and its E φ(|X|); ``size`` is its own parameter.

    With ``heights`` the law is e^{−heights[|x|]/size}, exactly, in whole numbers.
    """

    name: str
    half: Floats
    cost: float
    size: float
    heights: Indices | None = None


def candidate(question: Question, family: Family) -> Candidate:
    """The cheapest law of the family. Raises ``BudgetRefused`` where none keeps the points."""
    kept: list[Candidate] = []
    refused = [f"no {family.name} noise keeps {list(question.points)}"]
    for law in family.laws(several(question)):
        try:
            kept.append(at_least_size(question, family.name, law))
        except BudgetRefused as error:
            refused.append(str(error))
    if not kept:
        raise BudgetRefused(refused[-1])
    return min(kept, key=lambda found: found.cost)


def several(question: Question) -> Several:
    """The question as a family sees it."""
    return Several(
        question.shift,
        question.releases,
        question.least_delta,
        question.gaussian_scale,
        lambda law: _least_size(question, law),
    )


def at_least_size(question: Question, name: str, law: Heights | Sized, within: float = LAW_WITHIN) -> Candidate:
    """The law at the least size that keeps the points; raises ``BudgetRefused`` where none does."""
    if isinstance(law, Heights):
        size = _least_size(question, law)
        last = law.heights(size)
        half = normalised(np.exp(-last / (law.parts * size)))
        return Candidate(name, half, question.expected(half), law.parts * size, last)
    step = question.step(LATTICE_VARIANCE)
    size = question.least_size(
        lambda size: Released.of_weights(normalised(law.weights(size)), question.shift, step), law.guess, within
    )
    half = normalised(law.weights(size))
    own, heights = (size, None) if law.lattice is None else law.lattice(size)
    return Candidate(name, half, question.expected(half), own, heights)


def _least_size(question: Question, law: Heights) -> float:
    """Searched from the Laplace law that keeps ε by adding up losses."""
    guess = question.releases * question.shift / max(*(e for e, _ in question.points), question.mu)
    return question.least_size(
        lambda size: Released.of_heights(law.heights(size), question.shift, 1 / (law.parts * size)), guess, LAW_WITHIN
    )
