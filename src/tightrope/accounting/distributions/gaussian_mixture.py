"""Mixtures of Gaussians, P = Σ p_i N(s_i, 1) with s_i ≥ 0, against Q = N(0, 1), in both orders (theory §3.2).

With g(x) = Σ p_i e^{s_i x − s_i²/2} the loss is log g(x) under P, or −log g(x) under Q in the other order; g rises with
x. A user with up to m examples in a Poisson sample of rate q is the mixture with s_i = iμ and the probabilities of
Binomial(m, q). Probabilities are kept as logarithms, as they fall below double precision for many examples.
Domination, closed form and moments: ``docs/proofs/gaussian-mixture.md``.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from scipy import special

from tightrope.accounting.distributions.base import (
    LEAST_DOUBLE,
    BoundArrays,
    LossDistribution,
    bounds_by_sign_of_epsilon,
    bounds_midpoint,
    relative_bounds,
    relative_half_width,
)
from tightrope.accounting.distributions.gaussian import (
    CELL_NODES,
    CELL_RANGE_DEVIATIONS,
    CELL_WEIGHTS,
    MAX_CELL_WIDTH,
    GaussianLossDistribution,
    threshold_delta,
)
from tightrope.accounting.distributions.loss_cells import MAX_LOSS_CELLS, LossCells
from tightrope.accounting.distributions.subsampled_gaussian import MIN_DECAY_RATE, LineMomentDistribution
from tightrope.accounting.distributions.subsampled_gaussian_nodes import (
    LARGE_EXPONENT,
    NORMAL_TAIL_WIDTH,
    TRUNCATION_NATS,
    LiftedCells,
    MomentIntegrand,
    Phases,
)
from tightrope.numerics.arrays import Complexes, Floats
from tightrope.numerics.complex_functions import expm1, log1p
from tightrope.numerics.root_finding import find_root
from tightrope.numerics.rounding import ROUND_OFF

MAX_COMPONENTS = 1000
"""Largest number of shifts."""
MIN_SHIFT, MAX_SHIFT = 1e-12, 1e3
"""Range of the shifts above 0, in standard deviations."""
ALL_BELOW_ZERO = -5.0
"""Where both arguments of a threshold's δ are below this, it is one minus two small tails."""
WEIGHT_UNITS = 8.0
"""Relative rounding error of a probability, in units of 2⁻⁵³, in addition to its logarithm's error."""
NEWTON_STEPS, NEWTON_WITHIN = 100, 4 * ROUND_OFF
MAX_ROOT_ERROR = 0.1
"""Errors of a root up to this, times the largest shift, change the slope by less than a factor of 1.2."""


@dataclass(frozen=True, slots=True)
class MixtureComponents:
    """Shifts above 0, ascending, logarithms of their probabilities, and of the probability of no shift (or −∞)."""

    shifts: tuple[float, ...]
    log_weights: tuple[float, ...]
    log_zero_weight: float

    @property
    def largest(self) -> float:
        return self.shifts[-1]

    @property
    def moved_weight(self) -> float:
        """The probability of a shift above 0."""
        return min(1.0, math.fsum(math.exp(log_weight) for log_weight in self.log_weights))

    @property
    def weight_error(self) -> float:
        """Relative rounding error of the probabilities, in units of 2⁻⁵³."""
        return WEIGHT_UNITS + 2 * max(abs(log_weight) for log_weight in self.log_weights)

    def sample_all(self, rate: float) -> MixtureComponents:
        """Return the components if all of this happens with probability ``rate`` only, and otherwise no shift."""
        rest = math.log1p(-rate * self.moved_weight) if rate * self.moved_weight < 1 else -math.inf
        return MixtureComponents(self.shifts, tuple(w + math.log(rate) for w in self.log_weights), rest)

    def columns(self, dimensions: int = 1) -> tuple[Floats, Floats]:
        """Return shifts and logarithms [k, 1, …] that broadcast against arrays of this many dimensions."""
        shape = (-1, *([1] * dimensions))
        return np.array(self.shifts).reshape(shape), np.array(self.log_weights).reshape(shape)

    def log_moved_sum(self, x: Floats) -> tuple[Floats, Floats]:
        """Return log Σ p_i e^{s_i x − s_i²/2} over shifts above 0, at x of any shape, and its slope."""
        shifts, log_weights = self.columns(np.ndim(x))
        exponent = shifts * x + (log_weights - shifts**2 / 2)
        peak = np.max(exponent, axis=0)
        terms = np.exp(exponent - peak)
        total = np.sum(terms, axis=0)
        return np.asarray(peak + np.log(total)), np.asarray(np.tensordot(self.shifts, terms, axes=1) / total)

    def log_g(self, x: Floats) -> Floats:
        """Return log g at x of any shape, accurate near 0."""
        shifts, log_weights = self.columns(np.ndim(x))
        exponent = shifts * x - shifts**2 / 2
        is_large = np.max(exponent, axis=0) > LARGE_EXPONENT
        near = np.where(is_large, 0.0, exponent)
        growth = np.sum(np.exp(log_weights) * np.expm1(near), axis=0)
        log_total = np.logaddexp(self.log_moved_sum(x)[0], self.log_zero_weight)
        return np.where(is_large | (np.abs(growth) > 0.5), log_total, np.log1p(np.where(is_large, 0.0, growth)))

    def outcome_at(self, log_level: Floats, level_error: Floats) -> BoundArrays:
        """Return bounds on the x where the sum over shifts above 0 is e^{log_level}, up to an error of that logarithm.

        The logarithm of the sum is convex, with slopes between the least and the largest shift: Newton's steps from the
        right never pass the root.
        """
        shifts, log_weights = self.columns(np.ndim(log_level))
        x = np.min((log_level - log_weights) / shifts + shifts / 2, axis=0)  # where the largest addend is e^{log_level}
        for _ in range(NEWTON_STEPS):
            value, slope = self.log_moved_sum(x)
            step = (value - log_level) / slope
            x = x - step
            if np.all(np.abs(step) <= NEWTON_WITHIN * (1 + np.abs(x))):
                break
        value, slope = self.log_moved_sum(x)
        sizes = self.largest * np.abs(x) + self.largest**2 + np.abs(value) + self.weight_error + 8
        error = 1.2 * (np.abs(value - log_level) + level_error + 8 * ROUND_OFF * sizes) / slope
        error = np.where(error * self.largest <= MAX_ROOT_ERROR, error + 4 * ROUND_OFF * np.abs(x), np.inf)
        return x - error, x + error


def _threshold_delta(a: Floats, shift: float) -> tuple[Floats, Floats]:
    """Return Φ(−a) − e^{as + s²/2} Φ(−a − s) at any a [n] and its relative error."""
    mu = np.array([shift])
    below = a + shift < ALL_BELOW_ZERO
    value, error = threshold_delta(np.where(below, 0.0, a), mu)
    if not np.any(below):
        return value, error
    log_ratio = np.where(below, shift * (a + shift / 2), -1.0)
    gain, first, second = -np.expm1(log_ratio), special.ndtr(a), np.exp(log_ratio) * special.ndtr(a + shift)
    direct = gain + (second - first)
    sizes = ROUND_OFF * (8 * (gain + first + second) + (4 + 4 * np.abs(log_ratio)) * (1 - gain + second) + 4 * gain)
    return np.where(below, direct, value), np.where(below, sizes / np.maximum(direct, LEAST_DOUBLE), error)


@dataclass(frozen=True, slots=True, eq=False)
class MixturePhases:
    """Posterior probabilities [k, n + 1] of the shifts above 0 at points x."""

    shifts: Floats
    posterior: Floats
    x: Floats

    @property
    def slope(self) -> Floats:
        return self.shifts @ self.posterior

    def power_slope(self, exponent: float) -> Floats:
        """Return the bounds: the slope rises with x."""
        return abs(exponent) * self.slope[1:]

    def lift(self, height: Floats) -> LiftedCells:
        """Return the bounds: arg g rises with x and with the height, and (|g|/g)² = (1 − C)² + S².

        C = Σ ρ (1 − cos sh), S = Σ ρ sin sh. The logarithm of 1 − (|g|/g)² has slopes of at most twice the largest
        shift in x, and it rises with the height.
        """
        half = self.shifts[:, None] * (height / 2)
        sine, cosine = np.sin(half), np.cos(half)
        lost = np.sum(2 * self.posterior * sine**2, axis=0)
        turned = np.sum(2 * self.posterior * sine * cosine, axis=0)
        arg_g = np.arctan2(turned, 1 - lost)
        # At the right end of each cell the height, and at either end the posterior.
        raised = self.shifts[:, None] * (height[1:] / 2)
        sine_squared, double_sine = 2 * np.sin(raised) ** 2, np.sin(2 * raised)
        lost_left = np.sum(self.posterior[:, :-1] * sine_squared, axis=0)
        turned_left = np.sum(self.posterior[:, :-1] * double_sine, axis=0)
        squares = [2 * c - c**2 - s**2 for c, s in ((lost[1:], turned[1:]), (lost_left, turned_left))]
        growth = np.exp(float(self.shifts[-1]) * np.diff(self.x)) * (1 + 1e-12)
        squared_loss = np.maximum(*squares) * growth + 8 * ROUND_OFF * np.maximum(lost[1:], lost_left)
        return LiftedCells(arg_g[:-1], np.minimum(squared_loss, 1 - 1e-12))


@dataclass(frozen=True, slots=True)
class MixtureIntegrand(MomentIntegrand):
    """The integrand φ g^p of a mixture: ``mu`` is its largest shift, ``rate`` the probability of a shift above 0."""

    components: MixtureComponents = MixtureComponents((), (), 0.0)

    def log_g(self, x: Floats) -> Floats:
        return self.components.log_g(x)

    @property
    def log_zero_weight(self) -> float:
        return self.components.log_zero_weight

    def describe_law(self) -> str:
        return f"{len(self.components.shifts)} shifts up to {self.mu:.3g} standard deviations"

    def ratio_on_curve(self, x: Complexes, x_minus_half_mu: Complexes | None) -> tuple[Complexes, Complexes, Floats]:
        """Return log g and g − 1 at x [k], and the absolute rounding error of log g in units of 2⁻⁵³."""
        del x_minus_half_mu
        shifts, log_weights = self.components.columns()
        exponent = shifts * x - shifts**2 / 2
        top = np.max(exponent.real, axis=0)
        is_large = top > LARGE_EXPONENT
        near = np.where(is_large, 0.0, exponent)
        growth = np.exp(log_weights) * expm1(near)
        g_minus_one = np.asarray(np.sum(growth, axis=0))
        # The largest addend is taken out of the sum, whose terms are in one half-plane.
        weighted = exponent + log_weights
        largest = np.argmax(weighted.real, axis=0)
        peak = np.take_along_axis(weighted, largest[None, :], axis=0)[0]
        if self.log_zero_weight > -math.inf:
            peak = np.where(peak.real < self.log_zero_weight, self.log_zero_weight, peak)
        terms = np.exp(weighted - peak)
        total = np.sum(terms, axis=0) + np.exp(self.log_zero_weight - peak)
        direct = is_large | (np.abs(g_minus_one) > 0.5)
        loss = np.where(direct, peak + np.log(total), log1p(np.where(direct, 0.0, g_minus_one)))
        with np.errstate(over="ignore", invalid="ignore"):
            g_minus_one[is_large] = np.exp(loss[is_large])
        share = np.abs(terms) / np.abs(total)
        units = 4 * np.abs(shifts * x) + shifts**2 + 6
        # An error of a probability changes log g by its part of g − 1, or by its share of g.
        relative = np.where(is_large, np.inf, np.sum(np.abs(growth), axis=0)) * np.exp(-np.minimum(loss.real, 700.0))
        part = np.minimum(np.where(np.isnan(relative), np.inf, relative), 1 + np.sum(share, axis=0))
        error = np.sum(units * share, axis=0) + self.components.weight_error * part + 6 * np.abs(loss)
        return np.asarray(loss, dtype=np.complex128), g_minus_one, np.asarray(error)

    def excess_beyond(self, end: float) -> float:
        gains = zip(self.components.shifts, self.components.log_weights, strict=True)
        return math.fsum(math.exp(w) * float(special.ndtr(s - end) - special.ndtr(-end)) for s, w in gains)

    def phases_at(self, x: Floats) -> Phases:
        shifts, log_weights = self.components.columns()
        exponent = shifts * x + (log_weights - shifts**2 / 2)
        total = np.logaddexp(self.components.log_moved_sum(x)[0], self.log_zero_weight)
        return MixturePhases(shifts.ravel(), np.exp(exponent - total), x)

    def _range_for_negative_exponent(self) -> tuple[float, float]:
        """Return the range for p < 0.

        On the left |g| is at least its component of the least shift s, p e^{sx − s²/2}, or p if s is 0. On the right
        |g| ≥ 1 where each e^u cos(s Im x) ≥ 1.
        """
        power, first = -self.real_exponent, 0.0
        log_weight = self.log_zero_weight
        if log_weight == -math.inf:
            first, log_weight = self.components.shifts[0], self.components.log_weights[0]

        def negative_log_slope(x: float) -> float:
            """Return −(log φ g^p)'(x); log φ g^p is concave."""
            return x + power * float(self.phases_at(np.array([x])).slope[0])

        mode = find_root(negative_log_slope, -power * self.mu - 1, 1.0, within=1e-3)
        peak = float(self.log_values(np.array([mode]))[0])
        nats = TRUNCATION_NATS - peak + power * (first**2 / 2 - log_weight) + (power * first) ** 2 / 2
        return -power * first - math.sqrt(2 * max(nats, TRUNCATION_NATS)), NORMAL_TAIL_WIDTH + self.mu


class LineCellDistribution(LineMomentDistribution):
    """A loss that is monotone in the outcome x, in cells between outcomes."""

    __slots__ = ()

    @property
    @abstractmethod
    def outcome_range(self) -> tuple[float, float]:
        """Outcomes between which the cells lie."""

    @abstractmethod
    def outcomes_at(self, losses: Floats) -> Floats:
        """Return the outcomes with these losses, approximately; some may be missing."""

    @abstractmethod
    def log_ratios(self, x: Floats) -> tuple[Floats, Floats]:
        """Return log dP/dφ and log dQ/dφ at x [n]."""

    @abstractmethod
    def masses_outside(self, low: float, high: float) -> tuple[float, float]:
        """Return bounds on the masses under P and under Q outside two outcomes."""

    @abstractmethod
    def largest_loss_rounding(self, x: Floats) -> float:
        """Return a bound on the rounding errors of the losses at x, in units of 2⁻⁵³."""

    def loss_at_outcome(self, x: Floats) -> Floats:
        """Return the loss log dP/dQ at x [n]."""
        first, second = self.log_ratios(x)
        return first - second

    def loss_cells(self, step: float) -> LossCells:
        return self.loss_cells_between(step, -math.inf, math.inf)

    def loss_cells_between(self, step: float, low: float, high: float) -> LossCells:
        """Return cells between multiples of the step, where they are not too many, and between two losses only."""
        first, last = np.sort(self.loss_at_outcome(np.array(self.outcome_range))).tolist()
        first, last = max(first, low), min(last, high)
        if not (math.isfinite(step) and first < last):
            return self.cut_at_losses(np.zeros(0))
        step *= max(1, math.ceil((last - first) / step / MAX_LOSS_CELLS))
        return self.cut_at_losses(np.asarray(step * np.arange(math.ceil(first / step), math.floor(last / step) + 1)))

    def cut_at_losses(self, edges: Floats) -> LossCells:
        """Return cells with masses by quadrature of positive terms over x, at most ``MAX_CELL_WIDTH`` wide.

        The part outside counts as infinite loss under P and under Q, which dominates.
        """
        start, stop = self.outcome_range
        cuts = self.outcomes_at(edges)
        plain = np.linspace(start, stop, math.ceil((stop - start) / MAX_CELL_WIDTH) + 1)
        x = np.unique(np.concatenate([plain, cuts[(cuts > start) & (cuts < stop)]]))
        loss, width = self.loss_at_outcome(x), np.diff(x)
        lower, upper = np.minimum(loss[:-1], loss[1:]), np.maximum(loss[:-1], loss[1:])
        low, high = np.zeros_like(width), np.zeros_like(width)
        span = np.maximum(upper - lower, LEAST_DOUBLE)
        for node, weight in zip(CELL_NODES, CELL_WEIGHTS, strict=True):
            at = x[:-1] + width * (1 + node) / 2
            first, second = self.log_ratios(at)
            inner = np.clip(first - second, lower, upper)
            mass = weight / 2 * np.exp(first - at**2 / 2) * width / math.sqrt(2 * math.pi)
            upper_fraction = np.clip(np.expm1(lower - inner) / np.expm1(-span), 0.0, 1.0)
            low += mass * (1 - upper_fraction)
            high += mass * upper_fraction
        slack = 4 * ROUND_OFF * self.largest_loss_rounding(x)
        return LossCells(lower, upper, low, high, *self.masses_outside(start, stop), slack)


@dataclass(frozen=True, slots=True)
class GaussianMixture(LineCellDistribution):
    """Privacy loss of the mixture against N(0, 1) if ``remove``, otherwise of N(0, 1) against the mixture."""

    components: MixtureComponents
    remove: bool
    cut: float = math.inf

    @property
    def infinite_mass(self) -> float:
        if self.cut == math.inf:
            return 0.0
        shifts, log_weights = (values.ravel() for values in self.components.columns())
        tails = [self.components.log_zero_weight + special.log_ndtr(-self.cut)]
        return float(np.exp(special.logsumexp([*tails, *(log_weights + special.log_ndtr(shifts - self.cut))])))

    def with_tail_beyond(self, mass: float) -> GaussianMixture:
        """Return a copy whose cut leaves at most this mass beyond it: an equal part of each component."""
        part = mass / (len(self.components.shifts) + 1)
        cuts = [-float(special.ndtri(min(0.5, part)))]
        for shift, log_weight in zip(self.components.shifts, self.components.log_weights, strict=True):
            if math.log(part) < log_weight:
                cuts.append(shift - float(special.ndtri_exp(math.log(part) - log_weight)))
        return replace(self, cut=max(cuts))

    @property
    def moment_decay_bounds(self) -> bool:
        return self.cut == math.inf and self.components.moved_weight > MIN_DECAY_RATE

    @property
    def largest_loss(self) -> float:
        """The supremum of the losses: in the other order, the record may be in no sample."""
        return math.inf if self.remove else -self.components.log_zero_weight

    @property
    def zcdp_ceiling(self) -> float:
        """That of the largest shift alone: e^{K} is convex in the mixture."""
        return GaussianLossDistribution(self.components.largest).zcdp_ceiling

    def reverse_distribution(self) -> GaussianMixture:
        """Return the loss distribution of the pair in the other order, without truncation."""
        return GaussianMixture(self.components, not self.remove)

    def integrand_with_exponent(self, exponent: float) -> MixtureIntegrand:
        parts = self.components
        return MixtureIntegrand(parts.largest, parts.moved_weight, exponent, self.power_sign, self.cut, parts)

    def compute_deltas(self, epsilon: BoundArrays) -> BoundArrays | None:
        """Return bounds on δ at ε ≥ 0; None if the distribution is truncated.

        With g(x*) = e^{±ε}, δ = Σ p_i (Φ(s_i − x*) − e^{u_i} Φ(−x*)), or e^ε Σ p_i (e^{u_i} Φ(x*) − Φ(x* − s_i)) in the
        other order, u_i = s_i x* − s_i²/2: all terms are positive, and monotone in x*.
        """
        if self.cut < math.inf:
            return None
        low, high = self._outcomes_between(epsilon)
        if self.remove:
            return self._removal_delta(high)[0], self._removal_delta(low)[1]
        return self._addition_delta(low, epsilon[1])[0], self._addition_delta(high, epsilon[0])[1]

    def _outcomes_between(self, epsilon: BoundArrays) -> BoundArrays:
        """Return bounds on the outcome whose loss is ε, for an ε between two ends; −∞ where no outcome has it."""
        sign, moved = (1.0 if self.remove else -1.0), self.components.moved_weight
        exponents = sign * np.stack(epsilon)
        # e^{±ε} less the probability of no shift, as a sum with the probability of a shift, and its error.
        growth = np.expm1(np.minimum(exponents, 700.0))
        error = 4 * ROUND_OFF * (np.abs(growth) + self.components.weight_error * moved)
        levels = np.concatenate([growth + moved - error, growth + moved + error])
        logs = np.log(np.where(levels > 0, levels, 1.0)) + np.maximum(np.concatenate([exponents] * 2) - 700.0, 0.0)
        low, high = self.components.outcome_at(logs, 4 * ROUND_OFF * (1 + np.abs(logs)))
        low, high = (np.where(levels > 0, end, -np.inf) for end in (low, high))
        return np.min(low, axis=0), np.max(high, axis=0)

    def _removal_delta(self, x: Floats) -> BoundArrays:
        """Return bounds on Σ p_i (Φ(s_i − x) − e^{s_i x − s_i²/2} Φ(−x)), which falls with x."""
        low, high = np.zeros_like(x), np.zeros_like(x)
        at = np.clip(x, -1e3, 1e3)
        for shift, log_weight in zip(self.components.shifts, self.components.log_weights, strict=True):
            value, error = _threshold_delta(at - shift, shift)
            error = error + ROUND_OFF * self.components.weight_error
            bounds = relative_bounds(math.exp(log_weight) * value, error)
            low, high = low + bounds[0], high + bounds[1]
        return widen_sum(low, high, len(self.components.shifts))

    def _addition_delta(self, x: Floats, epsilon: Floats) -> BoundArrays:
        """Return bounds on e^ε Σ p_i (e^{s_i x − s_i²/2} Φ(x) − Φ(x − s_i)), which rises with x."""
        low, high = np.zeros_like(x), np.zeros_like(x)
        at = np.clip(x, -1e3, 1e3)
        for shift, log_weight in zip(self.components.shifts, self.components.log_weights, strict=True):
            value, error = _threshold_delta(-at, shift)
            exponent = np.asarray(shift * at - shift**2 / 2 + log_weight + epsilon)
            sizes = np.abs(shift * at) + shift**2 + abs(log_weight) + np.abs(epsilon)
            error = error + ROUND_OFF * (4 * sizes + self.components.weight_error + 4)
            bounds = relative_bounds(np.exp(np.minimum(exponent, 700.0)) * value, error)
            low, high = low + bounds[0], high + bounds[1]
        return widen_sum(low, high, len(self.components.shifts))

    def profile(self, epsilon: Floats) -> Floats | None:
        """Return the closed form of a single step; None if the distribution is truncated."""
        reverse = self.reverse_distribution().compute_deltas
        return (
            None
            if self.cut < math.inf
            else bounds_midpoint(bounds_by_sign_of_epsilon(epsilon, self.compute_deltas, reverse))
        )

    def profile_rounding_error(self, epsilon: Floats) -> Floats:
        reverse = self.reverse_distribution().compute_deltas
        return relative_half_width(bounds_by_sign_of_epsilon(epsilon, self.compute_deltas, reverse), np.shape(epsilon))

    @property
    def outcome_range(self) -> tuple[float, float]:
        return -CELL_RANGE_DEVIATIONS, CELL_RANGE_DEVIATIONS + self.components.largest

    def outcomes_at(self, losses: Floats) -> Floats:
        sign = 1.0 if self.remove else -1.0
        level = np.expm1(np.clip(sign * losses, -700.0, 700.0)) + self.components.moved_weight
        positive = level[level > 0]
        return self.components.outcome_at(np.log(positive), np.zeros_like(positive))[0] if len(positive) else positive

    def log_ratios(self, x: Floats) -> tuple[Floats, Floats]:
        log_g = self.components.log_g(x)
        return (log_g, np.zeros_like(x)) if self.remove else (np.zeros_like(x), log_g)

    def masses_outside(self, low: float, high: float) -> tuple[float, float]:
        shifts = (0.0, *self.components.shifts)
        most = max(float(special.ndtr(low - s) + special.ndtr(s - high)) for s in shifts)
        return most, most

    def largest_loss_rounding(self, x: Floats) -> float:
        return float(np.max(self.integrand_with_exponent(1.0).ratio_on_curve(x.astype(np.complex128), None)[2]))


def widen_sum(low: Floats, high: Floats, count: int) -> BoundArrays:
    """Widen the bounds by the roundings of a sum of positive terms, and by underflow."""
    low, high = low * (1 - count * ROUND_OFF), high * (1 + count * ROUND_OFF)
    return np.maximum(low - 4 * count * LEAST_DOUBLE, 0.0), np.minimum(high + 4 * count * LEAST_DOUBLE, 1.0)


def mixture_distribution(shifts: Sequence[float], log_weights: Sequence[float], *, remove: bool) -> LossDistribution:
    """Return the loss distribution of a mixture whose shifts, in standard deviations, are at least 0.

    Equal shifts are joined; shifts of probability 0 are left out; a single shift is a plain Gaussian.
    """
    joined: dict[float, list[float]] = {}
    for shift, log_weight in zip(shifts, log_weights, strict=True):
        if log_weight > -math.inf:
            joined.setdefault(float(shift), []).append(float(log_weight))
    totals = {
        shift: logs[0] if len(logs) == 1 else float(special.logsumexp(logs)) for shift, logs in sorted(joined.items())
    }
    if len(totals) == 1:
        return GaussianLossDistribution(next(iter(totals)))
    log_zero_weight = totals.pop(0.0, -math.inf)
    return GaussianMixture(MixtureComponents(tuple(totals), tuple(totals.values()), log_zero_weight), remove)


@lru_cache(maxsize=256)
def binomial_log_weights(size: int, rate: float) -> tuple[float, ...]:
    """Return the logarithms of the probabilities of 0, …, ``size`` under Binomial(size, rate).

    They are computed from integers. The first is accurate relative to itself; the others to a few units in the last
    place of one, or of themselves if larger.
    """
    sampled, whole = rate.as_integer_ratio()
    kept = whole - sampled
    counts = (math.comb(size, i) * sampled**i * kept ** (size - i) for i in range(1, size + 1))
    return (size * math.log1p(-rate), *(log_of_quotient(count, whole**size) for count in counts))


def log_of_quotient(numerator: int, denominator: int) -> float:
    """Return log(numerator / denominator) of positive integers of any size.

    >>> round(log_of_quotient(3, 2**2000) / math.log(2), 9)
    -1998.415037499
    """
    shift = numerator.bit_length() - denominator.bit_length()
    mantissa = (numerator << max(-shift, 0)) / (denominator << max(shift, 0))
    return math.log(mantissa) + shift * math.log(2)
