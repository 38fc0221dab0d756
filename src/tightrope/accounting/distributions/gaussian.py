"""The loss of a normal distribution shifted by μ standard deviations: L ~ N(μ²/2, μ²).

The best test of N(μ, 1) against N(0, 1) is a threshold: δ = Φ(−a) − φ(a) m(a + μ), with Mills' ratio m = (1 − Φ)/φ.
Elementary functions, and Φ right of 0, are assumed to be accurate to two units in the last place (4u), and m to 16u;
a and μ are taken as exact.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy import special
from scipy.special import log_ndtr, ndtri

from tightrope.accounting.distributions.base import (
    LEAST_DOUBLE,
    BoundArrays,
    LossDistribution,
    bounds_by_sign_of_epsilon,
    bounds_midpoint,
    relative_bounds,
    relative_half_width,
)
from tightrope.accounting.distributions.loss_cells import MAX_LOSS_CELLS, LossCells
from tightrope.numerics.arrays import Complexes, Floats
from tightrope.numerics.root_finding import find_root
from tightrope.numerics.rounding import ROUND_OFF

ROOT_HALF = math.sqrt(0.5)
SMALL_MU = 0.5
"""Below this μ both ratios are nearly equal, and their difference is integrated instead."""
FARTHEST_DEVIATION = 100.0
"""The density is negligible here: moving further out changes no result."""
NORMAL_NODES, NORMAL_WEIGHTS = (np.asarray(values, dtype=np.float64) for values in np.polynomial.legendre.leggauss(8))
ValueWithError = tuple["Floats", "Floats"]
"""A value and a bound on its relative error, shape [n] each."""


def mills_ratio(t: Floats) -> Floats:
    """Return Mills' ratio (1 − Φ(t)) / φ(t)."""
    return np.asarray(math.sqrt(math.pi / 2) * special.erfcx(t * ROOT_HALF))


def threshold_delta(a: Floats, mu: Floats) -> ValueWithError:
    """Return Φ(−a) − φ(a) m(a + μ) for a ≥ −μ/2: it falls with a, and rises with μ."""
    a = np.minimum(a, FARTHEST_DEVIATION)
    density, density_error = _normal_density(a)
    if np.max(mu) < SMALL_MU:
        # φ(a) ∫ (1 − t m(t)) dt from a to a + μ, a sum of positive terms; for large t, t m(t) is nearly one.
        t = a[..., None] + mu[..., None] / 2 * (1 + NORMAL_NODES)
        product = t * mills_ratio(t)
        mean = (1 - product) @ (NORMAL_WEIGHTS / 2)
        rounding = (20 * np.abs(product) + 2) @ (NORMAL_WEIGHTS / 2)
        return density * mean * mu, density_error + ROUND_OFF * (12 + rounding / mean)
    # φ(a) (m(a) − m(b)) right of 0, Φ(−a) − φ(a) m(b) left of it: without severe cancellation.
    first, second = mills_ratio(np.maximum(a, 0.0)), mills_ratio(a + mu)
    minuend, subtrahend = np.where(a > 0, density * first, special.ndtr(-a)), density * second
    value = np.where(a > 0, density * (first - second), minuend - subtrahend)
    growth = np.divide(minuend + subtrahend, value, out=np.ones_like(value), where=value > 0)
    return value, np.where(a > 0, density_error, 2 * density_error * subtrahend * growth) + 24 * ROUND_OFF * growth


def threshold_overlap(a: Floats, mu: Floats) -> ValueWithError:
    """Return the complement Φ(a) + φ(a) m(a + μ): both terms are positive, so it keeps its accuracy when tiny."""
    density, off = _normal_density(a)
    left = np.where(a > 0, special.ndtr(np.maximum(a, 0.0)), density * mills_ratio(np.maximum(-a, 0.0)))
    return left + density * mills_ratio(a + mu), ROUND_OFF * 40 + np.where(a > 0, 0.0, off)


def _normal_density(a: Floats) -> ValueWithError:
    """Return φ(a), with an error that includes the rounding of a²."""
    with np.errstate(over="ignore"):
        square = a * a
    return np.exp(-square / 2) / math.sqrt(2 * math.pi), ROUND_OFF * (np.minimum(square, 2000.0) / 2 + 8)


CELL_RANGE_DEVIATIONS = 37.0
"""Standard deviations beyond which masses of the normal distribution lose digits in double precision."""
SUBNORMAL = 2.3e-308
MIN_CELL_MU, MAX_CELL_MU = 1e-300, 1e4
"""Range of μ with cells: a smaller μ is raised to it, which dominates; for a larger one all mass counts as infinite."""
MAX_ARGUMENT = 1e300
"""Larger μ and ε/μ are replaced by this."""
CERTAIN_LOSS_MU = 2e154
"""From this μ on, δ is one, up to a rounding, at every ε that is a double: μ²/2 is larger than any."""
MAX_CELL_WIDTH = 0.25
"""Cells are no wider than this many standard deviations, so that eight nodes integrate the density to rounding."""
CELL_NODES, CELL_WEIGHTS = (np.asarray(values, dtype=np.float64) for values in np.polynomial.legendre.leggauss(8))
MU_ROUNDING = 8 * ROUND_OFF
"""Relative error of μ, a quotient or the root of a sum of squares, and of numbers computed from it."""
LOG_OF_ZERO = -30.0
"""Replaces the log of 0."""
LOG_MU_RANGE = (-30.0, 6.0)
"""Range in which log μ is searched."""
TAIL_FRACTION = 1e-3
"""Fraction of δ that is the probability of a loss beyond ``gaussian_reach``."""


@dataclass(frozen=True, slots=True)
class GaussianLossDistribution(LossDistribution):
    """μ-GDP: K(z) = μ²(z + z²)/2 (theory §3); its own reverse. Any μ ≥ 0; a μ that has overflowed is ∞."""

    mu: float
    rounding: float = 0.0
    """Relative error of μ beyond ``MU_ROUNDING``, if it was computed from numbers below double precision."""

    @classmethod
    def from_steps(cls, parts: Sequence[tuple[GaussianLossDistribution, int]]) -> Self:
        """Return many steps as one with μ = √Σ n μ_i², scaled by the largest μ, as squares may overflow."""
        largest = max(part.mu for part, _ in parts)
        squares = math.fsum(n * (part.mu / largest) ** 2 for part, n in parts) if 0 < largest < math.inf else 1.0
        subnormal_rounding = LEAST_DOUBLE / largest if 0 < largest < SUBNORMAL else 0.0
        return cls(largest * math.sqrt(squares), max(subnormal_rounding, *(part.rounding for part, _ in parts)))

    @property
    def infinite_mass(self) -> float:
        return 1.0 if self.mu >= CERTAIN_LOSS_MU else 0.0

    @property
    def reverse_infinity_mass(self) -> float:
        return self.infinite_mass

    @property
    def infinity_mass_error(self) -> float:
        return 2 * ROUND_OFF if self.mu >= CERTAIN_LOSS_MU else 0.0

    @property
    def largest_loss(self) -> float:
        return math.inf

    def reverse_distribution(self) -> GaussianLossDistribution:
        return self

    @property
    def zcdp_ceiling(self) -> float:
        """K(z)/(z(z + 1)) itself, μ²/2, with its rounding."""
        return self.mu * self.mu / 2 * (1 + 4 * (MU_ROUNDING + self.rounding))

    @property
    def moment_decay_bounds(self) -> bool:
        return True

    def log_moment(self, z: Complexes) -> Complexes:
        return np.asarray(self.mu * self.mu * (z + z * z) / 2)

    def moment_decay_bound(self, c: float, y: float) -> float:
        """Return |M(c+iy)|/M(c) = e^{−μ²y²/2}, exactly."""
        del c
        return math.exp(-(self.mu * y) * (self.mu * y) / 2)

    def compute_deltas(self, epsilon: BoundArrays) -> BoundArrays:
        """Return bounds on δ(ε) = Φ(−a) − e^ε Φ(−a − μ), a = ε/μ − μ/2.

        It decreases with a, and increases with μ for fixed a.
        """
        low, high = relative_bounds(*threshold_delta(*self._argument_bounds(epsilon)))
        return _widen_by_underflow(low[1], high[0])

    def overlap_bounds(self, epsilon: BoundArrays) -> BoundArrays:
        """Return bounds on 1 − δ(ε) = Φ(a) + e^ε Φ(−a − μ); monotone in the opposite directions."""
        low, high = relative_bounds(*threshold_overlap(*self._argument_bounds(epsilon)))
        return _widen_by_underflow(low[0], high[1])

    def _argument_bounds(self, epsilon: BoundArrays) -> BoundArrays:
        """Return a, shape [2, n], and μ, shape [2, 1], rounded so that δ is first largest and then smallest.

        A μ that is too small or too large for a double is replaced by the nearest one in range.
        """
        mu = min(max(self.mu, LEAST_DOUBLE), MAX_ARGUMENT)
        with np.errstate(over="ignore"):
            scaled = np.minimum(np.stack(epsilon) / mu, MAX_ARGUMENT)
        sign = np.array([[-1.0], [1.0]])
        error = MU_ROUNDING + self.rounding
        return scaled - mu / 2 + sign * error * (scaled + mu), np.maximum(mu - sign * (error * mu + LEAST_DOUBLE), 0.0)

    def profile(self, epsilon: Floats) -> Floats:
        """Return the closed form, mirrored below 0."""
        return np.asarray(bounds_midpoint(bounds_by_sign_of_epsilon(epsilon, self.compute_deltas, self.compute_deltas)))

    def profile_rounding_error(self, epsilon: Floats) -> Floats:
        return relative_half_width(
            bounds_by_sign_of_epsilon(epsilon, self.compute_deltas, self.compute_deltas), np.shape(epsilon)
        )

    @property
    def _cell_range(self) -> tuple[float, float]:
        """The range of the cells: ``CELL_RANGE_DEVIATIONS`` standard deviations around the mean under P."""
        mu = max(self.mu, MIN_CELL_MU)
        return mu * (mu / 2 - CELL_RANGE_DEVIATIONS), mu * (mu / 2 + CELL_RANGE_DEVIATIONS)

    def loss_cells(self, step: float) -> LossCells:
        """Return intervals of loss between multiples of the step, or of several steps if there would be too many."""
        return self.loss_cells_between(step, -math.inf, math.inf)

    def loss_cells_between(self, step: float, low: float, high: float) -> LossCells:
        first, last = self._cell_range
        if not (math.isfinite(step) and self.mu <= MAX_CELL_MU):
            return self.cut_at_losses(np.zeros(1))
        first, last = max(first, low), min(last, high)
        step *= max(1, math.ceil((last - first) / step / MAX_LOSS_CELLS))
        return self.cut_at_losses(np.asarray(step * np.arange(math.ceil(first / step), math.floor(last / step) + 1)))

    def cut_at_losses(self, edges: Floats) -> LossCells:
        """Return cells with masses by quadrature of positive terms; they are at most ``MAX_CELL_WIDTH`` wide.

        The part outside counts as infinite loss under P and under Q: as outcomes of only one of them, which dominates.
        For large μ that is most of Q, whose masses under P underflow.
        """
        if not self.mu <= MAX_CELL_MU:
            return LossCells.from_atoms(np.zeros(1), np.zeros(1), 1.0, 1.0)
        mu, (first, last) = max(self.mu, MIN_CELL_MU), self._cell_range
        narrow_edges = np.linspace(first, last, math.ceil(2 * CELL_RANGE_DEVIATIONS / MAX_CELL_WIDTH) + 1)
        edges = np.unique(np.concatenate([narrow_edges, edges[(edges > first) & (edges < last)]]))
        width, x = np.diff(edges), edges[:-1] / mu - mu / 2
        low, high = np.zeros_like(width), np.zeros_like(width)
        for node, weight in zip(CELL_NODES, CELL_WEIGHTS, strict=True):
            offset = width * (1 + node) / 2
            mass = weight / 2 * np.exp(-((x + offset / mu) ** 2) / 2) * (width / mu) / math.sqrt(2 * math.pi)
            upper_fraction = np.expm1(-offset) / np.expm1(-width)
            low += mass * (1 - upper_fraction)
            high += mass * upper_fraction
        infinite_mass, reverse_infinity_mass = (
            float(special.ndtr(mean - CELL_RANGE_DEVIATIONS) + special.ndtr(-CELL_RANGE_DEVIATIONS - mean))
            for mean in (0.0, mu)
        )
        return LossCells(edges[:-1], edges[1:], low, high, infinite_mass, reverse_infinity_mass)


def _widen_by_underflow(low: Floats, high: Floats) -> BoundArrays:
    """Widen the bounds by the largest effect of underflow; the upper bound is always positive."""
    return np.maximum(low - 4 * LEAST_DOUBLE, 0.0), np.minimum(high + 4 * LEAST_DOUBLE, 1.0)


def gaussian_mu(epsilon: float, delta: float) -> float:
    """Return μ of G_μ with δ(ε) = Φ(−ε/μ + μ/2) − e^ε Φ(−ε/μ − μ/2) = δ (theory §2), to nine digits; 0 < δ < 1.

    >>> round(gaussian_mu(1.0, 1e-5), 6)
    0.268051
    """

    def log_delta_excess(log_mu: float) -> float:
        mu = math.exp(log_mu)
        first, second = log_ndtr(-epsilon / mu + mu / 2), epsilon + log_ndtr(-epsilon / mu - mu / 2)
        gap = -math.expm1(min(float(second - first), 0.0))
        return float(first) + (math.log(gap) if gap > 0 else LOG_OF_ZERO) - math.log(delta)

    low, high = LOG_MU_RANGE
    if log_delta_excess(low) >= 0:
        return math.exp(low)
    return math.exp(high if log_delta_excess(high) <= 0 else find_root(log_delta_excess, low, high, within=1e-9))


def gaussian_reach(epsilon: float, delta: float) -> float:
    """Return the loss, N(μ²/2, μ²), exceeded with a thousandth of δ: larger losses contribute little to δ(ε).

    For small δ it is near ε; otherwise it is many times ε.

    >>> round(gaussian_reach(1.0, 1e-5), 2), round(gaussian_reach(0.001, 0.01), 3)
    (1.54, 0.112)
    """
    mu = gaussian_mu(epsilon, delta)
    return mu * mu / 2 - mu * float(ndtri(TAIL_FRACTION * delta))
