"""Poisson-sampled Gaussian whose record is replaced by another one (theory §3.2).

P = (1−q) N(0, 1) + q N(μ, 1) against Q = (1−q) N(0, 1) + q N(−μ, 1): the worst case is a pair of opposite records. With
g(x) = 1 − q + q e^{μx − μ²/2}, P has the density φ g(x) and Q the density φ g(−x), and the loss log g(x) − log g(−x) is
odd and rises with x. Moments are M(z) = ∫ φ g(x)^{z+1} g(−x)^{−z}: with the ratio of the two in place of g, and the
density of Q in place of φ, the rules of ``subsampled_gaussian_nodes`` apply with p = z + 1. Domination and bounds:
``docs/proofs/gaussian-mixture.md``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy import special

from tightrope.accounting.distributions.base import (
    BoundArrays,
    LossDistribution,
    bounds_by_sign_of_epsilon,
    bounds_midpoint,
    relative_bounds,
    relative_half_width,
)
from tightrope.accounting.distributions.gaussian import (
    CELL_RANGE_DEVIATIONS,
    GaussianLossDistribution,
    threshold_delta,
)
from tightrope.accounting.distributions.gaussian_mixture import LineCellDistribution, widen_sum
from tightrope.accounting.distributions.loss_cells import LossCells, mixed_loss
from tightrope.accounting.distributions.moment_quadrature import CumulantEnclosure, log_one_plus
from tightrope.accounting.distributions.subsampled_gaussian import MIN_DECAY_RATE, tail_cutoff
from tightrope.accounting.distributions.subsampled_gaussian_nodes import (
    LARGE_EXPONENT,
    MAX_LINE_HEIGHT,
    MAX_LOG_INTEGRAND,
    NORMAL_TAIL_WIDTH,
    QUADRATURE_NATS,
    TRUNCATION_NATS,
    LiftedCells,
    MomentIntegrand,
    Phases,
    TwoPointPhases,
)
from tightrope.accounting.distributions.subset import subset_distribution
from tightrope.errors import PrecisionError
from tightrope.numerics.arrays import Complexes, Floats
from tightrope.numerics.complex_functions import expm1
from tightrope.numerics.rounding import ROUND_OFF

STRIP_GROWTH_NATS = 15.0
"""Nats by which the integrand may grow in a strip around the real axis, because g(−x) shrinks there."""
WEIGHT_ROUNDING = 1e-11
"""Relative error of binomial probabilities and of their differences."""
MAX_RANGES, NEGLIGIBLE_TAIL = 24, 1e-40
"""Largest number of ranges of the number of other records in the sample; a tail below the second is one range."""
POINTS_A_UNIT = 4.0
"""Points a standard deviation at which the integrand is bounded to find its range."""


@dataclass(frozen=True, slots=True)
class ReplacementPhases:
    """Posterior probabilities that the record was sampled, at points x [n + 1]: under P, and under Q."""

    above: TwoPointPhases
    """At x, for g(x)."""
    below: TwoPointPhases
    """At −x, for g(−x), in the order of x."""

    @property
    def slope(self) -> Floats:
        return self.above.slope + self.below.slope

    def power_slope(self, exponent: float) -> Floats:
        """Return bounds on the slope of p log g(x) + (1 − p) log g(−x)."""
        return abs(exponent) * self.above.slope[1:] + abs(1 - exponent) * self.below.slope[:-1]

    def lift(self, height: Floats) -> LiftedCells:
        """Return the bounds: the arguments of g(x) and of 1/g(−x), which falls with x, add up; only g(−x) shrinks."""
        first = self.above.lift(height)
        angle, odds = self.below.mu * height[:-1], self.below.sigma[1:] / (1 - self.below.sigma[1:] + 1e-300)
        second = np.arctan2(odds * np.sin(angle), 1 + odds * np.cos(angle))
        variance = self.below.sigma * (1 - self.below.sigma)
        most = np.maximum(variance[1:], variance[:-1])
        most[(self.below.sigma[:-1] > 0.5) & (self.below.sigma[1:] < 0.5)] = 0.25
        return LiftedCells(first.arg_lower + second, 2 * most * (1 - np.cos(self.below.mu * height[1:])))


@dataclass(frozen=True, slots=True)
class ReplacementIntegrand(MomentIntegrand):
    """The integrand φ g(x)^p g(−x)^{1−p}, p > 0; what the base calls g is the ratio g(x) / g(−x)."""

    def log_values(self, x: Floats) -> Floats:
        first, second = (MomentIntegrand.log_g(self, side) for side in (x, -x))
        normal = -(x**2) / 2 - math.log(2 * math.pi) / 2
        return np.asarray(normal + self.real_exponent * first + (1 - self.real_exponent) * second)

    def log_g(self, x: Floats) -> Floats:
        return np.asarray(MomentIntegrand.log_g(self, x) - MomentIntegrand.log_g(self, -x))

    @property
    def shrinking_exponent(self) -> float:
        return min(1 - self.real_exponent, 0.0)

    def log_reference(self, x: Complexes) -> tuple[Complexes, Floats | float]:
        log_g, _, error = MomentIntegrand.ratio_on_curve(self, -x, None)
        return -x * x / 2 - math.log(2 * math.pi) / 2 + log_g, error + 16 * np.abs(log_g)

    def reference_beyond(self, end: float) -> float:
        return float((1 - self.rate) * special.ndtr(-end) + self.rate * special.ndtr(-self.mu - end))

    def excess_beyond(self, end: float) -> float:
        return self.rate * float(special.ndtr(self.mu - end) - special.ndtr(-self.mu - end))

    def ratio_on_curve(self, x: Complexes, x_minus_half_mu: Complexes | None) -> tuple[Complexes, Complexes, Floats]:
        """Return the log of the ratio, the ratio less one, and the absolute rounding error of the log."""
        del x_minus_half_mu
        first, first_excess, first_error = MomentIntegrand.ratio_on_curve(self, x, None)
        second, second_excess, second_error = MomentIntegrand.ratio_on_curve(self, -x, None)
        loss = first - second
        is_large = np.abs(loss) > 0.5
        capped = np.where(loss.real > 700.0, 700.0 + 1j * loss.imag, loss)
        with np.errstate(over="ignore", invalid="ignore"):
            excess = np.where(is_large, expm1(capped), (first_excess - second_excess) / (1 + second_excess))
        return loss, np.asarray(excess), first_error + second_error + 2 * np.abs(loss)

    def phases_at(self, x: Floats) -> Phases:
        log_odds = -(self.mu**2) / 2 + math.log(self.rate) - math.log1p(-self.rate)
        above, below = (
            TwoPointPhases(self.mu, np.asarray(special.expit(sign * self.mu * x + log_odds))) for sign in (1, -1)
        )
        return ReplacementPhases(above, below)

    def log_growth_at_cut(self) -> float:
        """Return log of |g(−x)/g|^{1−p} above the cut, at an angle of at most π/2: |g|² ≥ g² (1 − 2σ(1 − σ))."""
        sigma = self._sampled_below(self.cut)
        return self.shrinking_exponent / 2 * math.log1p(-2 * sigma * (1 - sigma))

    @property
    def _largest_angle(self) -> float:
        """The largest μ |Im x|, up to π, with |g(−x)/g|^{1−p} ≤ cos(angle/2)^{1−p} ≤ e^{15}."""
        shrinking = -self.shrinking_exponent
        return 2 * math.acos(math.exp(-STRIP_GROWTH_NATS / shrinking)) if shrinking > 0 else math.pi

    def real_axis_frequency(self) -> float:
        half_width = np.minimum(np.linspace(0.1, 0.95, 40) * self._largest_angle / self.mu, 20.0)
        log_growth = self.shrinking_exponent * np.log(np.cos(half_width * self.mu / 2))
        return float(np.min(half_width / 2 + (QUADRATURE_NATS + log_growth) / half_width))

    def curve_scale(self, largest: float) -> tuple[float, float]:
        """Return β and the growth: the strip of a curve reaches up to the height πβ/2."""
        angle = min(self._largest_angle * 0.95, math.pi * largest * self.mu / 2)
        growth = self.shrinking_exponent * math.log(math.cos(angle / 2))
        return 2 * angle / (math.pi * self.mu), growth + 1  # slopes may be twice as large

    def choose_line_height(self, log_moment: float) -> tuple[float, float]:
        del log_moment
        angle = min(math.pi / 2 * 0.95, MAX_LINE_HEIGHT * self.mu, self._largest_angle / 2)
        width = angle / self.mu
        log_loss = (2 * width) ** 2 / 2 + self.shrinking_exponent * math.log(math.cos(angle))
        return angle, (QUADRATURE_NATS + log_loss) / width

    def integration_range(self) -> tuple[float, float]:
        """Return the range outside of which the integrand is below e^{−75} of its peak, on lines and on paths.

        For p ≥ 1 it falls to the left of 0 faster than φ; for p < 1 it is below the larger of both densities. To the
        right of the last cell the slope is below −13. Off the real axis |g(−x)| shrinks, but not below 1 − q.
        """
        power, far = self.real_exponent, NORMAL_TAIL_WIDTH + self.mu
        growth = min(
            self.shrinking_exponent * math.log(math.cos(min(math.pi / 2, MAX_LINE_HEIGHT * self.mu) / 2)),
            power * -math.log1p(-self._sampled_below(far)),
        )
        low = -math.sqrt(2 * growth + NORMAL_TAIL_WIDTH**2) - self.mu
        last = min(max((2 * power - 1) * self.mu, self.mu) + NORMAL_TAIL_WIDTH, self.cut)
        count = math.ceil(POINTS_A_UNIT * (last - low)) + 1
        if not count < MAX_LOG_INTEGRAND**0.5:
            raise PrecisionError(f"{self.describe_moment()} exceeds double precision; use more noise or fewer steps")
        x = np.linspace(low, last, count)
        values, phases = self.log_values(x), self.phases_at(x)
        # The largest slope in a cell, of which the parts are monotone.
        steepest = -x[:-1] + phases.power_slope(power)
        if not np.max(np.abs(values)) < MAX_LOG_INTEGRAND:
            raise PrecisionError(f"{self.describe_moment()} exceeds double precision; use more noise or fewer steps")
        most = values[:-1] + np.maximum(steepest, 0.0) * (x[1] - x[0])
        relevant = np.flatnonzero(most > np.max(values) - TRUNCATION_NATS - growth)
        end = float(x[min(relevant[-1] + 1, len(x) - 1)])
        return low, max(min(far, self.cut), end)

    def end_of_tail(self) -> float:
        """Return the x beyond which the tail integral (x > cut) is negligible: the slope there is below −13."""
        drift = self.mu * (self.real_exponent - self.shrinking_exponent * self._sampled_below(self.cut))
        return max(self.cut, drift) + NORMAL_TAIL_WIDTH

    def _sampled_below(self, x: float) -> float:
        """Return the posterior probability that the record was sampled, under Q, at x."""
        odds = self.rate / (1 - self.rate) * math.exp(-self.mu * x - self.mu**2 / 2)
        return odds / (1 + odds)


@dataclass(frozen=True, slots=True)
class ReplaceOneGaussian(LineCellDistribution):
    """Privacy loss of one step if one record is replaced; its own reverse."""

    mu: float
    rate: float
    cut: float = math.inf

    @property
    def remove(self) -> bool:  # type: ignore[override]
        """Losses are unbounded, as for the removal of a record."""
        return True

    @property
    def infinite_mass(self) -> float:
        return float((1 - self.rate) * special.ndtr(-self.cut) + self.rate * special.ndtr(self.mu - self.cut))

    def with_tail_beyond(self, mass: float) -> ReplaceOneGaussian:
        return replace(self, cut=tail_cutoff(mass, self.mu, self.rate))

    @property
    def moment_decay_bounds(self) -> bool:
        return self.cut == math.inf and self.rate > MIN_DECAY_RATE

    @property
    def largest_loss(self) -> float:
        return math.inf

    def reverse_distribution(self) -> ReplaceOneGaussian:
        """Return the loss distribution of the pair in the other order, without truncation: the same."""
        return ReplaceOneGaussian(self.mu, self.rate)

    def integrand_with_exponent(self, exponent: float) -> ReplacementIntegrand:
        return ReplacementIntegrand(self.mu, self.rate, exponent, 1, self.cut)

    def compute_deltas(self, epsilon: BoundArrays) -> BoundArrays | None:
        """Return bounds on δ at ε ≥ 0; None if the distribution is truncated.

        With the loss ε at x*, δ = q (Φ(μ − x*) − e^u Φ(−x*)) + e^ε q (e^{u'} Φ(−x*) − Φ(−μ − x*)), u and u' the
        exponents μx − μ²/2 at x* and −x*: both terms are positive and fall with x*.
        """
        if self.cut < math.inf:
            return None
        low, high = self._outcome_at(epsilon[0]), self._outcome_at(epsilon[1])
        return self._delta_beyond(high[1], epsilon[0])[0], self._delta_beyond(low[0], epsilon[1])[1]

    def _outcome_at(self, epsilon: Floats) -> BoundArrays:
        """Return bounds on the x with loss ε ≥ 0: e^u solves a quadratic equation without cancellation."""
        gap = np.expm1(np.minimum(epsilon, 700.0)) * (1 - self.rate) / self.rate
        log_gap = np.log(np.maximum(gap, 1e-300)) + np.maximum(epsilon - 700.0, 0.0)
        log_half_root = (epsilon - self.mu**2) / 2
        # log((gap + √(gap² + 4 e^{ε − μ²}))/2), with the larger of both terms taken out.
        scale = np.maximum(log_gap, log_half_root)
        part = np.exp(log_gap - scale)
        exponent = scale + np.log((part + np.sqrt(part**2 + 4 * np.exp(2 * (log_half_root - scale)))) / 2)
        x = (exponent + self.mu**2 / 2) / self.mu
        sizes = 16 + np.abs(exponent) + np.abs(log_gap) + self.mu**2 + epsilon
        error = 8 * ROUND_OFF * (sizes / self.mu + np.abs(x))
        return np.maximum(x - error, 0.0), x + error

    def _delta_beyond(self, x: Floats, epsilon: Floats) -> BoundArrays:
        """Return bounds on both terms at the x of a threshold, at least 0."""
        at, mu = np.minimum(x, 1e3), np.array([self.mu])
        first, first_error = threshold_delta(at - self.mu, mu)
        second, second_error = threshold_delta(at, mu)
        exponent = epsilon - self.mu * at - self.mu**2 / 2
        second_error = second_error + ROUND_OFF * (4 * (epsilon + self.mu * at + self.mu**2) + 4)
        low, high = relative_bounds(self.rate * first, first_error + 4 * ROUND_OFF)
        other = relative_bounds(self.rate * np.exp(np.minimum(exponent, 700.0)) * second, second_error)
        return widen_sum(low + other[0], high + other[1], 2)

    def profile(self, epsilon: Floats) -> Floats | None:
        """Return the closed form of a single step; None if the distribution is truncated."""
        if self.cut < math.inf:
            return None
        return bounds_midpoint(bounds_by_sign_of_epsilon(epsilon, self.compute_deltas, self.compute_deltas))

    def profile_rounding_error(self, epsilon: Floats) -> Floats:
        ends = bounds_by_sign_of_epsilon(epsilon, self.compute_deltas, self.compute_deltas)
        return relative_half_width(ends, np.shape(epsilon))

    @property
    def outcome_range(self) -> tuple[float, float]:
        reach = CELL_RANGE_DEVIATIONS + self.mu
        return -reach, reach

    def outcomes_at(self, losses: Floats) -> Floats:
        low, high = self._outcome_at(np.abs(losses))
        return np.copysign(low / 2 + high / 2, losses)

    def log_ratios(self, x: Floats) -> tuple[Floats, Floats]:
        return self._log_g(x), self._log_g(-x)

    def _log_g(self, x: Floats) -> Floats:
        exponent = np.asarray(self.mu * x - self.mu**2 / 2)
        large = np.logaddexp(math.log(self.rate) + exponent, math.log1p(-self.rate))
        return np.where(exponent > LARGE_EXPONENT, large, mixed_loss(exponent, self.rate))

    def masses_outside(self, low: float, high: float) -> tuple[float, float]:
        most = float(special.ndtr(low) + special.ndtr(-high)) + float(special.ndtr(self.mu - high))
        return most, most

    def largest_loss_rounding(self, x: Floats) -> float:
        return float(np.max(self.integrand_with_exponent(1.0).ratio_on_curve(x.astype(np.complex128), None)[2]))


# Poisson samples that are cut to a largest size (``docs/proofs/gaussian-mixture.md``, "Truncated batches").


@dataclass(frozen=True, slots=True)
class PublicChoice(LossDistribution):
    """One of several symmetric pairs, chosen at random, where the choice is public: M = Σ w M_i."""

    weights: tuple[float, ...]
    laws: tuple[LossDistribution, ...]
    weight_errors: tuple[float, ...]
    """Relative rounding errors of the probabilities."""

    @property
    def infinite_mass(self) -> float:
        return math.fsum(w * law.infinite_mass for w, _, law in self._mixture_parts())

    @property
    def reverse_infinity_mass(self) -> float:
        return math.fsum(w * law.reverse_infinity_mass for w, _, law in self._mixture_parts())

    @property
    def infinity_mass_error(self) -> float:
        return max(self.weight_errors) + max(law.infinity_mass_error for law in self.laws)

    @property
    def largest_loss(self) -> float:
        return max(law.largest_loss for law in self.laws)

    @property
    def needs_quadrature(self) -> bool:
        return True

    @property
    def has_moment(self) -> bool:
        return all(law.has_moment for law in self.laws)

    def reverse_distribution(self) -> PublicChoice:
        return self

    def trim_tail(self, mass: float) -> PublicChoice:
        """Return a copy in which each pair counts the largest losses, of at most this mass, as infinite."""
        return PublicChoice(self.weights, tuple(law.trim_tail(mass) for law in self.laws), self.weight_errors)

    def log_moment(self, z: Complexes) -> Complexes | None:
        enclosure = self.enclose_cumulant(z)
        return None if enclosure is None else enclosure[0]

    def enclose_cumulant(self, z: Complexes) -> CumulantEnclosure | None:
        """Return log Σ w M_i and its error, from Σ w (M_i − 1) unless a moment is large."""
        parts = [enclosure for law in self.laws if (enclosure := law.enclose_cumulant(z)) is not None]
        if len(parts) < len(self.laws):
            return None
        known = [np.isfinite(error) for _, error in parts]
        peak = np.maximum(np.max([cumulant.real for cumulant, _ in parts], axis=0) - LARGE_EXPONENT, 0.0)
        excess, error = np.zeros(np.shape(z), dtype=np.complex128), np.zeros(np.shape(z))
        for w, weight_error, (cumulant, off), is_known in zip(
            self.weights, self.weight_errors, parts, known, strict=True
        ):
            # Relative to e^{peak}. A moment of which only an upper bound is known may be any number up to that.
            size = w * np.exp(cumulant.real - peak)
            plain = w * expm1(np.where(peak > 0, 0.0, cumulant))
            part = np.where(peak > 0, w * (np.exp(cumulant - peak) - 1), plain)
            excess = excess + np.where(is_known, part, -w)
            relative = np.expm1(np.minimum(np.where(is_known, off, 0.0), 700.0))
            error = error + np.where(is_known, size * relative, size) + 8 * ROUND_OFF * (np.abs(part) + w * (peak > 0))
            error = error + weight_error * np.abs(part)
        value, bound = log_one_plus(excess, error)
        return value + peak, bound + 4 * ROUND_OFF * peak

    def log_tail_integral(self, z: Complexes) -> CumulantEnclosure | None:
        """Return log of Σ w times the parts that were trimmed, and its error."""
        found = [(w, law.log_tail_integral(z)) for w, _, law in self._mixture_parts()]
        parts = [(math.log(w), *tail) for w, tail in found if tail is not None]
        if not parts:
            return None
        peak = np.max([log_weight + value.real for log_weight, value, _ in parts], axis=0)
        sizes = [np.exp(log_weight + value.real - peak) for log_weight, value, _ in parts]
        terms = [np.exp(log_weight + value - peak) for log_weight, value, _ in parts]
        total = np.sum(terms, axis=0)
        extra = max(self.weight_errors) + 16 * ROUND_OFF
        relative = [np.expm1(np.minimum(error, 700.0)) + extra for *_, error in parts]
        off = np.sum([size * error for size, error in zip(sizes, relative, strict=True)], axis=0)
        value, error = log_one_plus(np.asarray(total - 1, dtype=np.complex128), off)
        return value + peak, error

    def moment_decay_bound(self, c: float, y: float) -> float:
        """Return Σ w M_i(c) times the bound of each pair, over M(c)."""
        at = np.array([complex(c)])
        enclosures = [law.enclose_cumulant(at) for law in self.laws]
        total = self.enclose_cumulant(at)
        if total is None:
            return 1.0
        decays = [law.moment_decay_bound(c, y) for law in self.laws]
        upper = [
            math.log(w) + float(part[0][0].real + part[1][0]) + math.log(max(decay, 1e-300))
            for w, part, decay in zip(self.weights, enclosures, decays, strict=True)
            if part is not None
        ]
        lower = float(total[0][0].real - total[1][0])
        return min(1.0, float(np.exp(min(special.logsumexp(upper) - lower, 0.0))) * (1 + 1e-12))

    def compute_deltas(self, epsilon: BoundArrays) -> BoundArrays | None:
        """Return Σ w δ_i(ε)."""
        low, high = np.zeros_like(epsilon[0]), np.zeros_like(epsilon[0])
        for w, error, law in self._mixture_parts():
            part = law.compute_deltas(epsilon)
            if part is None:
                return None
            low, high = low + w * part[0] * (1 - error), high + w * part[1] * (1 + error)
        return widen_sum(low, high, len(self.laws))

    def profile(self, epsilon: Floats) -> Floats | None:
        return bounds_midpoint(bounds_by_sign_of_epsilon(epsilon, self.compute_deltas, self.compute_deltas))

    def profile_rounding_error(self, epsilon: Floats) -> Floats:
        ends = bounds_by_sign_of_epsilon(epsilon, self.compute_deltas, self.compute_deltas)
        return relative_half_width(ends, np.shape(epsilon))

    def loss_cells(self, step: float) -> LossCells:
        parts = [law.loss_cells(step).scale_masses(w) for w, _, law in self._mixture_parts()]
        total = parts[0]
        for part in parts[1:]:
            total = total.join_bounds(part)
        infinite, opposite = (
            math.fsum(getattr(part, name) for part in parts) for name in ("infinite_mass", "reverse_infinity_mass")
        )
        slack = max(part.slack for part in parts)
        return replace(total, infinite_mass=infinite, reverse_infinity_mass=opposite, slack=slack)

    def _mixture_parts(self) -> list[tuple[float, float, LossDistribution]]:
        """Return probabilities, their relative errors, and the pairs."""
        return list(zip(self.weights, self.weight_errors, self.laws, strict=True))


def _binomial_tail(least: int, size: int, rate: float) -> float:
    """Return P(K ≥ least) of a binomial distribution, least ≥ 1."""
    return float(special.betainc(least, size - least + 1, rate))


def truncated_batch_distribution(mu: float, rate: float, size: int, records: int) -> LossDistribution:
    """Return the loss of a replaced record in a Poisson sample of ``records``, of which at most ``size`` are kept.

    The number K of other records in the sample is public: it is below the size with the probability of
    Binomial(records − 1, rate), or one of some ranges, in which the least one counts, as it has the largest rate
    size · rate / (K + 1) of the record.
    """
    whole, others = ReplaceOneGaussian(mu, rate), records - 1
    if size >= records:
        return whole
    deviation = math.sqrt(max(others * rate * (1 - rate), 1.0))
    edges, tails = [size], [_binomial_tail(size, others, rate)]
    while edges[-1] < others and len(edges) < MAX_RANGES and tails[-1] > NEGLIGIBLE_TAIL:
        width = deviation / 4 * 2 ** (len(edges) // 8)
        edges.append(min(edges[-1] + max(1, round(width)), others))
        tails.append(_binomial_tail(edges[-1], others, rate))
    tails.append(0.0)
    # If that is small, its complement is accurate.
    below = 1 - tails[0] if tails[0] < 0.5 else float(special.betaincc(size, others - size + 1, rate))
    parts: list[tuple[float, float, LossDistribution]] = []
    if below > 0:
        parts.append((below, WEIGHT_ROUNDING * min(1.0, tails[0] / below) + 4 * ROUND_OFF, whole))
    for edge, first, second in zip(edges, tails, tails[1:], strict=False):
        cut = subset_distribution(GaussianLossDistribution(2 * mu), rate * size / (edge + 1))
        if first > second:
            parts.append((first - second, WEIGHT_ROUNDING, cut))
    weights, errors, laws = zip(*parts, strict=True)
    return laws[0] if len(laws) == 1 else PublicChoice(weights, laws, errors)
