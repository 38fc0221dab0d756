"""Candidate distributions for the least noise under composition: every family's, each at its least size.

Sizes are found in floats (``composed_curve``); the best becomes an integer table and is certified from that.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tightrope.accounting.distributions.gaussian import gaussian_mu
from tightrope.errors import InsufficientBudgetError
from tightrope.noise.composed.composed_curve import ComposedCurve, Indices, ReleaseLosses, normalize_half_weights
from tightrope.noise.families import LatticeHeights, NoiseFamily, RepeatedReleases, SizedWeights
from tightrope.noise.program.request import ErrorCost
from tightrope.numerics.arrays import Floats
from tightrope.numerics.root_finding import least_size

# The question behind least noise under composition, and sizes that answer it in floats.

CELL_DIVISOR = 6.0
"""A loss that is moved within a cell of width h at random gains a variance of h²/6."""
FINEST_LATTICE = 2e-5
"""Lattices are no finer than this, in standard deviations of the total loss."""
FARTHEST_SIZE = 1e6
"""Maximal factor between the guess and the sizes that are searched."""


@dataclass(frozen=True, slots=True)
class CompositionProblem:
    """After ``releases`` releases δ(ε_i) ≤ δ_i, δ_i > 0, for shifts up to ``shift``; errors cost ``cost``."""

    points: tuple[tuple[float, float], ...]
    releases: int
    shift: int
    cost: ErrorCost

    def cost_of_weights(self, half: Floats) -> float:
        """E φ(|X|) of a release."""
        shares = normalize_half_weights(half)
        costs = self.cost.values_at(np.arange(len(half), dtype=np.float64))
        return float(2 * np.dot(shares, costs) - shares[0] * costs[0])

    def log_excess(self, one: ReleaseLosses) -> float:
        """The largest log δ(ε_i) − log δ_i: at most 0 if all points are met."""
        curve = ComposedCurve(one, self.releases)
        return max(curve.log_delta(epsilon) - math.log(delta) for epsilon, delta in self.points)

    @property
    def gaussian_mean(self) -> float:
        """The μ of the Gaussian whose one release meets the points: the size of the total loss, roughly."""
        return min(gaussian_mu(*point) for point in self.points)

    @property
    def gaussian_scale(self) -> float:
        """σ of the Gaussian that meets the points."""
        return self.shift * math.sqrt(self.releases) / self.gaussian_mean

    def lattice_step(self, share: float) -> float:
        """Return a lattice whose rounding adds this fraction to the total loss's variance; more if it would be huge."""
        return self.gaussian_mean * max(math.sqrt(CELL_DIVISOR * share / self.releases), FINEST_LATTICE)

    @property
    def least_delta(self) -> float:
        return min(delta for _, delta in self.points)

    def least_size(
        self, release: Callable[[float], ReleaseLosses], guess: float, within: float, width: float = 0.02
    ) -> float:
        """Return the least size, to a factor of 1 + 2 ``within``, that meets all points: larger ones must do so, too.

        Raises ``InsufficientBudgetError`` if all sizes fail.
        """

        def excess_at(size: float) -> float:
            return self.log_excess(release(size))

        limits = (guess / FARTHEST_SIZE, guess * FARTHEST_SIZE)
        found = least_size(excess_at, guess, width=width, within=within, limits=limits)
        if not math.isfinite(found):
            raise InsufficientBudgetError(
                f"no size of this noise keeps {list(self.points)} after {self.releases} releases"
            )
        return found


LATTICE_VARIANCE = 1e-5
"""Fraction of the variance of the loss that the lattice of a search may add."""
LAW_WITHIN = 1e-9
"""Relative tolerance of the least size of a distribution."""


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A distribution that meets the points in floats: weights of 0, ±1, …, its E φ(|X|), and its parameter ``size``.

    With ``heights`` the distribution is e^{−heights[|x|]/size}, exactly, in integers.
    """

    family_name: str
    half_weights: Floats
    cost: float
    size: float
    heights: Indices | None = None


def best_candidate(question: CompositionProblem, family: NoiseFamily) -> Candidate:
    """Return the cheapest distribution of the family; ``InsufficientBudgetError`` if all violate the points."""
    kept: list[Candidate] = []
    refused = [f"no {family.name} noise keeps {list(question.points)}"]
    for law in family.candidate_laws(repeated_releases(question)):
        try:
            kept.append(candidate_at_least_size(question, family.name, law))
        except InsufficientBudgetError as error:
            refused.append(str(error))
    if not kept:
        raise InsufficientBudgetError(refused[-1])
    return min(kept, key=lambda found: found.cost)


def repeated_releases(question: CompositionProblem) -> RepeatedReleases:
    """The part of the question that families use."""
    return RepeatedReleases(
        question.shift,
        question.releases,
        question.least_delta,
        question.gaussian_scale,
        lambda law: _least_lattice_size(question, law),
    )


def candidate_at_least_size(
    question: CompositionProblem, name: str, law: LatticeHeights | SizedWeights, within: float = LAW_WITHIN
) -> Candidate:
    """Return the distribution at the least size that meets the points; ``InsufficientBudgetError`` if all fail."""
    if isinstance(law, LatticeHeights):
        size = _least_lattice_size(question, law)
        last = law.heights_at(size)
        half = normalize_half_weights(np.exp(-last / (law.parts * size)))
        return Candidate(name, half, question.cost_of_weights(half), law.parts * size, last)
    step = question.lattice_step(LATTICE_VARIANCE)
    size = question.least_size(
        lambda size: ReleaseLosses.from_weights(normalize_half_weights(law.weights_at(size)), question.shift, step),
        law.size_guess,
        within,
    )
    half = normalize_half_weights(law.weights_at(size))
    own, heights = (size, None) if law.lattice_at is None else law.lattice_at(size)
    return Candidate(name, half, question.cost_of_weights(half), own, heights)


def _least_lattice_size(question: CompositionProblem, law: LatticeHeights) -> float:
    """Search from the Laplace distribution that meets ε by basic composition."""
    guess = question.releases * question.shift / max(*(e for e, _ in question.points), question.gaussian_mean)
    return question.least_size(
        lambda size: ReleaseLosses.from_heights(law.heights_at(size), question.shift, 1 / (law.parts * size)),
        guess,
        LAW_WITHIN,
    )
