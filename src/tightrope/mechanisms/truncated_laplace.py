"""Laplace noise cut off at ±A: every answer is within A of the truth, with certainty (GDGK)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate

import numpy as np
from scipy import special

from tightrope.accounting.bounds import TrueValueOf
from tightrope.accounting.distributions.atoms import Atoms
from tightrope.accounting.privacy_loss import PrivacyLoss
from tightrope.errors import InputError
from tightrope.mechanisms.discrete.integer_mechanism import IntegerMechanism
from tightrope.mechanisms.discrete.integer_tables import COARSER_UNITS, MAX_TABLE_CELLS, build_with_least_margin
from tightrope.mechanisms.discrete.integer_weights import LARGEST_STEP, fixed_point_exponential, fixed_point_powers
from tightrope.mechanisms.discrete.noise_table import NoiseTable, build_noise_table
from tightrope.mechanisms.laplace import LaplaceDistribution
from tightrope.mechanisms.mechanism import ContinuousMechanism, check_smallest_epsilon
from tightrope.numerics.checks import check_inner_probability, check_integer, check_non_negative, check_positive

FLAT = 1e-60
"""Below this the distribution is uniform to all digits, and powers of a leave double precision."""


@dataclass(frozen=True, slots=True)
class TruncatedLaplace(ContinuousMechanism):
    """Density proportional to e^{−|x|ε/Δ} on [−A, A], A = (Δ/ε) log(1 + (e^ε−1)/(2δ)); uniform at ε = 0."""

    epsilon: float
    delta: float
    sensitivity: float
    integer_counterpart = "discrete_truncated_laplace"

    @property
    def loss(self) -> PrivacyLoss:
        """Privacy loss that dominates all shifts up to the sensitivity."""
        if self.epsilon == 0:
            law = Atoms(np.zeros(1), np.array([1 - self.delta]), self.delta, self.delta)
            return PrivacyLoss.from_distribution(law, reverse=law, true_value_of=TrueValueOf.MECHANISMS)
        noise = LaplaceDistribution(self.epsilon, self.delta)
        return PrivacyLoss.from_distribution(noise, true_value_of=TrueValueOf.MECHANISMS)

    @property
    def _scaled_endpoint(self) -> float:
        """A = log(1 + (e^ε − 1)/(2δ)): the end A in units of Δ/ε."""
        log_growth = self.epsilon + math.log(-math.expm1(-self.epsilon))
        return float(np.logaddexp(0.0, log_growth - math.log(2 * self.delta)))

    @property
    def worst_error(self) -> float:
        """A."""
        if self.epsilon == 0:
            return self.sensitivity / (2 * self.delta)
        return self.sensitivity / self.epsilon * self._scaled_endpoint

    def _absolute_moment(self, power: int) -> float:
        """Return E|X|^p / A^p = p! γ(p + 1, a) / (a^p γ(1, a)), normalized incomplete gammas; 1/(p + 1) at a = 0."""
        a = self._scaled_endpoint if self.epsilon > 0 else 0.0
        if a < FLAT:
            return 1 / (power + 1)
        return float(math.factorial(power) * special.gammainc(power + 1, a) / special.gammainc(1, a) / a**power)

    @property
    def mean_absolute_error(self) -> float:
        """V1ᵘ = (Δ/ε)(1 − log(1+r)/r), r = (e^ε − 1)/(2δ), without its cancellation."""
        return self.worst_error * self._absolute_moment(1)

    @property
    def mean_squared_error(self) -> float:
        """V2ᵘ = (2Δ²/ε²)(1 − (½log²(1+r) + log(1+r))/r), likewise."""
        return self.worst_error * self.worst_error * self._absolute_moment(2)

    def _upper_quantile(self, tail: float) -> float:
        if self.epsilon == 0:
            return self.worst_error * (1 - 2 * tail)
        below = 2 * tail * -math.expm1(-self._scaled_endpoint) + math.exp(-self._scaled_endpoint)
        return -math.log(below) * (self.sensitivity / self.epsilon)


def truncated_laplace(*, epsilon: float, delta: float, sensitivity: float = 1.0) -> TruncatedLaplace:
    """Return truncated Laplace noise, (ε, δ)-private and never more than A from the truth (GDGK; theory §4).

    For accounting: ``sample`` raises and names ``discrete_truncated_laplace``. Raises ``InputError`` unless ε ≥ 0 (not
    between 0 and 10⁻³⁰⁰), 0 < δ ≤ ½ (the noise is private only then) and the sensitivity is positive.

    >>> law = truncated_laplace(epsilon=1, delta=1e-6)
    >>> round(law.worst_error, 2), round(law.loss.delta(1), 12)
    (13.66, 1e-06)
    """
    epsilon, delta = (
        check_smallest_epsilon(check_non_negative("epsilon", epsilon)),
        check_inner_probability("delta", delta),
    )
    if not delta <= 0.5:
        raise InputError(
            "delta", delta, "at most 1/2", "beyond that, release nothing with probability 1 - delta instead"
        )
    return TruncatedLaplace(epsilon, delta, check_positive("sensitivity", sensitivity))


# Discrete truncated Laplace noise: (ε, δ)-DP, with a stated bound on the error of every answer.

SMALLEST_DELTA = 1e-24


@dataclass(frozen=True, slots=True)
class DiscreteTruncatedLaplace(IntegerMechanism):
    """P(X = x) ∝ e^{−|x|ε/Δ} for |x| < N, and less at ±N."""

    epsilon: float
    delta: float
    sensitivity: int
    table: NoiseTable


def discrete_truncated_laplace(*, epsilon: float, delta: float, sensitivity: int = 1) -> DiscreteTruncatedLaplace:
    """Return geometric steps e^{−ε/Δ} that end as soon as δ allows, with a last partial step that uses up δ.

    The distribution is unimodal, so shift Δ binds; with r = e^{−ε/Δ} and θ the last partial step, δ Σp = Σ_{N−Δ<j<N}
    r^j + θ r^N + (1 − θ) r^{N−Δ} (infinite loss, and the one loss between ε and infinity). At sensitivity 1 this is the
    optimal noise of theory §4.1: no (ε, δ) noise has a stochastically smaller |X|. The certified δ at ε, rounding
    included, is at most ``delta`` at every shift 1..Δ. ε/Δ above 40 is treated as 40.

    Raises ``InputError`` unless ε > 0, 1e−24 ≤ δ ≤ ½ and the sensitivity is an integer ≥ 1.

    >>> noise = discrete_truncated_laplace(epsilon=1, delta=1e-6)
    >>> round(noise.mean_absolute_error, 9), noise.worst_error
    (0.850902116, 14.0)
    """
    sensitivity = check_integer("sensitivity", sensitivity, remedy="round the answers to fixed point first")
    epsilon, delta = check_positive("epsilon", epsilon), check_inner_probability("delta", delta)
    if not SMALLEST_DELTA <= delta <= 0.5:
        raise InputError("delta", delta, f"between {SMALLEST_DELTA:g} and 0.5", "for delta = 0 use discrete_laplace")
    step = min(epsilon / sensitivity, LARGEST_STEP)

    def build_table(margin: float) -> NoiseTable:
        built_step = step * (1 - margin)
        built_delta = Fraction(delta * (1 - margin))
        # About the smallest N with r^{N+1} (e^ε − 1 + 2δ) ≤ δ (1 + r).
        cells_delta = float(built_delta)
        built_epsilon = built_step * sensitivity
        log_gap = built_epsilon + math.log(-math.expm1(-built_epsilon) + 2 * cells_delta * math.exp(-built_epsilon))
        exact_cells = (log_gap - math.log(cells_delta) - math.log1p(math.exp(-built_step))) / built_step
        if not exact_cells < MAX_TABLE_CELLS:
            raise InputError(
                "epsilon", built_epsilon, f"enough for noise of fewer than {MAX_TABLE_CELLS} cells", COARSER_UNITS
            )
        cells = max(sensitivity, math.ceil(exact_cells)) + 2
        raw = fixed_point_powers(fixed_point_exponential(Fraction(built_step)), cells + 1)
        sums = [0, *accumulate(raw)]  # sums[n] = 1 + r + … + r^{n−1}
        # The smallest N ≥ Δ such that cutting after N needs at most δ: Σ_{N−Δ<j≤N} r^j ≤ δ (2 Σ_{j≤N} r^j − 1).
        end = len(sums) - 2
        while end > sensitivity and sums[end] - sums[end - sensitivity] <= built_delta * (2 * sums[end] - sums[1]):
            end -= 1
        missing = sums[end] - sums[end - sensitivity] - built_delta * (2 * sums[end] - raw[0])
        partial = missing / (raw[end - sensitivity] - raw[end] + 2 * built_delta * raw[end])
        return build_noise_table([*raw[:end], math.ceil(partial * raw[end])], steps=(built_step,))

    table = build_with_least_margin(build_table, sensitivity, [(epsilon, delta)])
    return DiscreteTruncatedLaplace(epsilon, delta, sensitivity, table)
