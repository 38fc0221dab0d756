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

# The constraints on the noise, and the least sizes that meet them in floats.

CELL_DIVISOR = 6.0
"""A loss that is moved within a cell of width h at random gains a variance of h²/6."""
FINEST_LATTICE = 2e-5
"""Lattices are no finer than this, in standard deviations of the total loss."""
MAX_SIZE_FACTOR = 1e6
"""Maximal factor between the guess and the sizes that are searched."""


@dataclass(frozen=True, slots=True)
class CompositionProblem:
    """The constraints: after ``releases`` releases δ(ε_i) ≤ δ_i for shifts up to ``shift``; ``cost`` is φ(|x|).

    ``points`` has the (ε_i, δ_i), all with δ_i > 0.
    """

    points: tuple[tuple[float, float], ...]
    releases: int
    shift: int
    cost: ErrorCost

    def cost_of_weights(self, half: Floats) -> float:
        """Return E φ(|X|) of one release from the weights of 0, 1, …"""
        probabilities = normalize_half_weights(half)
        costs = self.cost.values_at(np.arange(len(half), dtype=np.float64))
        return float(2 * np.dot(probabilities, costs) - probabilities[0] * costs[0])

    def log_excess(self, release: ReleaseLosses) -> float:
        """Return the largest log δ(ε_i) − log δ_i: at most 0 if all points are met."""
        curve = ComposedCurve(release, self.releases)
        return max(curve.log_delta(epsilon) - math.log(delta) for epsilon, delta in self.points)

    @property
    def gaussian_mean(self) -> float:
        """The μ of the Gaussian whose single release meets the points: about the size of the total loss."""
        return min(gaussian_mu(*point) for point in self.points)

    @property
    def gaussian_scale(self) -> float:
        """σ of the Gaussian that meets the points."""
        return self.shift * math.sqrt(self.releases) / self.gaussian_mean

    def lattice_step(self, variance_fraction: float) -> float:
        """Return the step of a lattice whose rounding adds this fraction to the total loss's variance.

        It is at least ``FINEST_LATTICE`` standard deviations, so that the lattice is not too long.
        """
        return self.gaussian_mean * max(math.sqrt(CELL_DIVISOR * variance_fraction / self.releases), FINEST_LATTICE)

    @property
    def least_delta(self) -> float:
        return min(delta for _, delta in self.points)

    def least_size(
        self, release: Callable[[float], ReleaseLosses], guess: float, within: float, width: float = 0.02
    ) -> float:
        """Return the least size that meets all points, to a factor of 1 + 2 ``within``; larger ones must do so, too.

        Raises ``InsufficientBudgetError`` if all sizes fail.
        """

        def excess_at(size: float) -> float:
            return self.log_excess(release(size))

        limits = (guess / MAX_SIZE_FACTOR, guess * MAX_SIZE_FACTOR)
        size = least_size(excess_at, guess, width=width, within=within, limits=limits)
        if not math.isfinite(size):
            raise InsufficientBudgetError(
                f"no size of this noise meets {list(self.points)} after {self.releases} releases"
            )
        return size


LATTICE_VARIANCE = 1e-5
"""Fraction of the variance of the loss that the lattice of a search may add."""
SIZE_TOLERANCE = 1e-9
"""Relative tolerance of the least size of a distribution."""


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A distribution that meets the points in floats: weights of 0, ±1, …, its E φ(|X|), and its parameter ``size``.

    If ``heights`` is given, the distribution is e^{−heights[|x|]/size}, exactly, in integers.
    """

    family_name: str
    half_weights: Floats
    cost: float
    size: float
    heights: Indices | None = None


def best_candidate(problem: CompositionProblem, family: NoiseFamily) -> Candidate:
    """Return the cheapest distribution of the family; ``InsufficientBudgetError`` if all violate the points."""
    candidates: list[Candidate] = []
    failures = [f"no {family.name} noise meets {list(problem.points)}"]
    for distribution in family.candidate_noise_distributions(repeated_releases(problem)):
        try:
            candidates.append(candidate_at_least_size(problem, family.name, distribution))
        except InsufficientBudgetError as error:
            failures.append(str(error))
    if not candidates:
        raise InsufficientBudgetError(failures[-1])
    return min(candidates, key=lambda candidate: candidate.cost)


def repeated_releases(problem: CompositionProblem) -> RepeatedReleases:
    """Return the part of the problem that families use."""
    return RepeatedReleases(
        problem.shift,
        problem.releases,
        problem.least_delta,
        problem.gaussian_scale,
        lambda heights: _least_lattice_size(problem, heights),
    )


def candidate_at_least_size(
    problem: CompositionProblem, name: str, distribution: LatticeHeights | SizedWeights, within: float = SIZE_TOLERANCE
) -> Candidate:
    """Return the distribution at the least size that meets the points; ``InsufficientBudgetError`` if all fail."""
    if isinstance(distribution, LatticeHeights):
        size = _least_lattice_size(problem, distribution)
        heights = distribution.heights_at(size)
        half = normalize_half_weights(np.exp(-heights / (distribution.parts * size)))
        return Candidate(name, half, problem.cost_of_weights(half), distribution.parts * size, heights)
    step = problem.lattice_step(LATTICE_VARIANCE)
    size = problem.least_size(
        lambda size: ReleaseLosses.from_weights(
            normalize_half_weights(distribution.weights_at(size)), problem.shift, step
        ),
        distribution.size_guess,
        within,
    )
    half = normalize_half_weights(distribution.weights_at(size))
    lattice_size, lattice_heights = (size, None) if distribution.lattice_at is None else distribution.lattice_at(size)
    return Candidate(name, half, problem.cost_of_weights(half), lattice_size, lattice_heights)


def _least_lattice_size(problem: CompositionProblem, distribution: LatticeHeights) -> float:
    """Return the least size of a lattice distribution; the search starts where basic composition meets ε."""
    guess = problem.releases * problem.shift / max(*(e for e, _ in problem.points), problem.gaussian_mean)
    return problem.least_size(
        lambda size: ReleaseLosses.from_heights(
            distribution.heights_at(size), problem.shift, 1 / (distribution.parts * size)
        ),
        guess,
        SIZE_TOLERANCE,
    )
