"""The central limit theorem for composition: many small losses are close to one Gaussian (GI Thm 3).

T = Σ L_i is nearly normal under P and under Q. The Berry–Esseen theorem bounds the distance (0.56 Σ E|L − EL|³ / s³),
so the trade-off curve lies between two Gaussian ones (Dong–Roth–Su Thm 3.4, here also for unequal directions).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr, ndtri

from tightrope.accounting.bounds import Bounds, TrueValueOf
from tightrope.accounting.curves import evaluate_each
from tightrope.accounting.distributions.base import LossDistribution
from tightrope.accounting.distributions.composition import Composition
from tightrope.errors import InputError
from tightrope.numerics.arrays import Floats

BERRY_ESSEEN = 0.56
CELLS = 20_000
"""Number of cells that a loss distribution is cut into."""


@dataclass(frozen=True, slots=True)
class LossSpread:
    """Norms of the cell ends of a loss distribution, and of the distances of its losses from these ends.

    ``mean``, ``deviation`` and ``third``: mean, L² and L³ norm of the centered ends; ``drift``: bound on how far the
    mean loss is below ``mean``; ``distance`` and ``distance_third``: L² and L³ norm of the distances.
    """

    mean: float
    drift: float
    deviation: float
    distance: float
    third: float
    distance_third: float

    @classmethod
    def from_cells(cls, law: LossDistribution) -> Self:
        """Return the norms; cell ends have the larger mean, and a loss is at most the cell's width from its end."""
        cells = law.cells_by_count(CELLS)
        losses, masses = cells.dominating_atoms()
        losses, masses = losses[masses > 0], masses[masses > 0]
        mean = float(np.dot(masses, losses))
        spread = np.abs(losses - mean)
        p, width = cells.p_masses[cells.p_masses > 0], (cells.upper - cells.lower)[cells.p_masses > 0]
        drift = float(p @ (width**2 * np.exp(np.minimum(width, 700.0)))) / 2
        deviation, distance = math.sqrt(float(masses @ spread**2)), math.sqrt(float(p @ width**2))
        return cls(
            mean, drift, deviation, distance, _cube_root(float(masses @ spread**3)), _cube_root(float(p @ width**3))
        )


def _cube_root(value: float) -> float:
    return float(np.cbrt(value))


@dataclass(frozen=True, slots=True)
class SumMoments:
    """Moments of a sum: (lower, upper) bounds on its mean and deviation, and its Berry–Esseen distance to a normal."""

    mean: tuple[float, float]
    deviation: tuple[float, float]
    distance: float
    approximate_deviation: float
    """The deviation of the cell ends, between the bounds."""

    @classmethod
    def from_spread(cls, total: Composition) -> Self:
        """Return the moments of a composition.

        By Minkowski, norms differ by at most the norm of the distances, for centered losses by at most twice that.
        """
        steps = [(LossSpread.from_cells(law), n) for law, n in zip(total.laws, total.counts, strict=True)]
        mean = math.fsum(n * spread.mean for spread, n in steps)
        drift = math.fsum(n * spread.drift for spread, n in steps)
        low_deviation = math.sqrt(
            math.fsum(n * max(0.0, spread.deviation - spread.distance) ** 2 for spread, n in steps)
        )
        high_deviation = math.sqrt(math.fsum(n * (spread.deviation + spread.distance) ** 2 for spread, n in steps))
        third = math.fsum(n * (spread.third + 2 * spread.distance_third) ** 3 for spread, n in steps)
        approximate_deviation = math.sqrt(math.fsum(n * spread.deviation**2 for spread, n in steps))
        distance = BERRY_ESSEEN * third / low_deviation**3 if low_deviation else math.inf
        return cls((mean - drift, mean), (low_deviation, high_deviation), distance, approximate_deviation)


@dataclass(frozen=True, slots=True)
class DirectionMoments:
    """Moments of one direction: of the sum of the losses under P, and of their negatives under Q."""

    under_p: SumMoments
    under_q: SumMoments

    @classmethod
    def from_direction(cls, total: Composition) -> Self:
        """Return the moments of one direction of a loss; ``InputError`` if it has no Gaussian limit."""
        if not total.laws or total.infinite_mass > 0:
            value = total.infinite_mass if total.laws else "an empty composition"
            raise InputError("loss", value, "one with delta(inf) = 0", "a Gaussian has no infinite loss (GI Thm 3)")
        side = cls(SumMoments.from_spread(total), SumMoments.from_spread(total.reverse_distribution()))
        if not side.under_p.deviation[1] > 0:
            raise InputError("loss", 0.0, "one that is not always 0", "a loss of 0 has no Gaussian limit")
        return side

    @property
    def gaussian_mu(self) -> float:
        """(E_P L − E_Q L) / s."""
        return (self.under_p.mean[1] + self.under_q.mean[1]) / self.under_p.approximate_deviation

    def tradeoff_bound(self, level: Floats, *, worst: bool) -> Floats:
        """Return Φ((s_Q Φ⁻¹(level) − a − b) / s_P), with every bound taken on the requested side."""
        p, q = self.under_p, self.under_q
        quantile = ndtri(np.clip(level, 0.0, 1.0))
        gap = p.mean[1] + q.mean[1] if worst else p.mean[0] + q.mean[0]
        ends = [
            (q_deviation * quantile - gap) / p_deviation for q_deviation in q.deviation for p_deviation in p.deviation
        ]
        return np.asarray(ndtr(np.min(ends, axis=0) if worst else np.max(ends, axis=0)))


@dataclass(frozen=True, slots=True)
class GaussianLimit:
    """The Gaussian that a composition approaches.

    ``mu``: nearly μ-GDP (the worse direction), μ = 2 Σ KL / s for equal directions, which tends to √(2 Σ ε_i η_i).
    ``distance``: the Berry–Esseen bound γ; ``tradeoff_bounds`` is informative when it is well below ½.
    """

    mu: float
    distance: float
    sides: tuple[DirectionMoments, ...]

    @classmethod
    def from_loss(cls, *directions: Composition) -> Self:
        """Return the limit of one direction, or of both."""
        sides = tuple(DirectionMoments.from_direction(total) for total in directions)
        distance = max(max(side.under_p.distance, side.under_q.distance) for side in sides)
        return cls(max(side.gaussian_mu for side in sides), distance, sides)

    def tradeoff_bounds(self, false_positive_rate: ArrayLike) -> Bounds:
        """Bounds on the type-II error f(t): Φ(r Φ⁻¹(1 − t ∓ γ_Q) − μ) ∓ γ_P, r the ratio of the deviations.

        >>> from tightrope import approx_dp
        >>> loss = 10_000 * approx_dp(0.01).loss
        >>> bounds = loss.gaussian_limit().tradeoff_bounds(0.1)
        >>> bool(bounds.lower <= loss.tradeoff(0.1) <= bounds.upper)
        True
        """
        lower = evaluate_each("false_positive_rate", false_positive_rate, lambda t: self._tradeoff_bound(t, worst=True))
        upper = evaluate_each(
            "false_positive_rate", false_positive_rate, lambda t: self._tradeoff_bound(t, worst=False)
        )
        return Bounds(lower, upper, TrueValueOf.PAIRS.value)

    def _tradeoff_bound(self, t: Floats, *, worst: bool) -> Floats:
        """Return the lower bound on f(t) if ``worst``, else the upper one."""
        if not np.all((t >= 0) & (t <= 1)):
            raise InputError("false_positive_rate", t.tolist(), "probabilities in [0, 1]")
        sign = -1 if worst else 1
        curves = [
            side.tradeoff_bound(1 - t + sign * side.under_q.distance, worst=worst) + sign * side.under_p.distance
            for side in self.sides
        ]
        return np.asarray(np.clip(np.min(curves, axis=0), 0.0, 1 - t))
