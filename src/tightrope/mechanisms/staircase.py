"""Staircase noise on the real line: the smallest error of pure ε-privacy."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tightrope.accounting.privacy_loss import PrivacyLoss
from tightrope.errors import InputError
from tightrope.mechanisms.discrete.integer_mechanism import IntegerMechanism
from tightrope.mechanisms.discrete.integer_tables import staircase_table
from tightrope.mechanisms.discrete.noise_table import NoiseTable
from tightrope.mechanisms.discrete.table_loss import MAX_SHIFT
from tightrope.mechanisms.mechanism import LEAST, ContinuousMechanism, check_smallest_epsilon
from tightrope.mechanisms.pairs import approx_dp
from tightrope.numerics.checks import check_integer, check_positive, check_probability


@dataclass(frozen=True, slots=True)
class Staircase(ContinuousMechanism):
    """Density a on [0, γΔ), e^{−ε}a on [γΔ, Δ), times e^{−ε} per further Δ (theory §4).

    Everything is computed from ``first_step_mass`` and ``step_shares``, as a leaves double precision for large ε.
    """

    epsilon: float
    sensitivity: float
    gamma: float
    integer_counterpart = "discrete_staircase"

    @property
    def first_step_mass(self) -> float:
        """1 − e^{−ε}: the mass of the first step on both sides together; each further one has e^{−ε} times as much."""
        return -math.expm1(-self.epsilon)

    @property
    def step_shares(self) -> tuple[float, float]:
        """Fractions of a step's mass on its first, higher part and on the rest: γ and e^{−ε}(1−γ) over their sum."""
        low = math.exp(-self.epsilon) * (1 - self.gamma)
        if self.gamma == 0:
            return 0.0, 1.0
        return self.gamma / (self.gamma + low), low / (self.gamma + low)

    @property
    def total_variation(self) -> float:
        """η of a shift by Δ: P(|X| ≤ Δ/2)."""
        high, low = self.step_shares
        if self.gamma >= 0.5:
            return self.first_step_mass * high * (0.5 / self.gamma)
        return self.first_step_mass * (high + low * (0.5 - self.gamma) / (1 - self.gamma))

    @property
    def loss(self) -> PrivacyLoss:
        """Exactly the region of the triple (ε, 0, η); dominates all shifts up to the sensitivity."""
        return approx_dp(self.epsilon, total_variation=self.total_variation).loss

    @property
    def mean_absolute_error(self) -> float:
        """Δ (E K + E U) with K the number of whole steps and U the position on the last."""
        return self.sensitivity * (self._mean_step + self._offset_moment(1))

    @property
    def mean_squared_error(self) -> float:
        """Δ² (E K² + 2 E K E U + E U²)."""
        steps = self._mean_step
        squares = steps * (1 + 2 * steps) + 2 * steps * self._offset_moment(1) + self._offset_moment(2)
        return self.sensitivity * self.sensitivity * squares

    @property
    def _mean_step(self) -> float:
        """E K = e^{−ε} / (1 − e^{−ε}); E K² = E K (1 + 2 E K)."""
        return math.exp(-self.epsilon) / self.first_step_mass

    def _offset_moment(self, power: int) -> float:
        """Return E U^p, p ≤ 2, U uniform on [0, γ) or on [γ, 1)."""
        (high, low), g = self.step_shares, self.gamma
        return (high * g + low * (1 + g)) / 2 if power == 1 else (high * g * g + low * (1 + g + g * g)) / 3

    @property
    def worst_error(self) -> float:
        return math.inf

    def _upper_quantile(self, tail: float) -> float:
        """Compute whole steps first (each leaves e^{−ε} of the tail), then the high or low part of one."""
        whole_steps = max(0, math.floor(-math.log(2 * tail) / self.epsilon))
        step_tail = math.exp(-self.epsilon * whole_steps) / 2
        fraction = min(max((step_tail - tail) / (step_tail * self.first_step_mass), 0.0), 1.0)
        high, low = self.step_shares
        upper = self.gamma * min(fraction / high, 1.0) if high else 0.0
        lower = (1 - self.gamma) * max(fraction - high, 0.0) / low if low else 0.0
        return (whole_steps + upper + lower) * self.sensitivity


def staircase(*, epsilon: float, sensitivity: float = 1.0, gamma: float | None = None) -> Staircase:
    """Return staircase noise, (ε, 0)-private; γ defaults to 1/(1 + e^{ε/2}), which minimizes E|X| (theory §4).

    The default γ is at least 10⁻³⁰⁰, which matters from ε = 1382 on.

    For accounting: ``sample`` raises and names ``discrete_staircase``. Raises ``InputError`` unless ε
    (at least 10⁻³⁰⁰) and the sensitivity are positive and 0 ≤ γ ≤ 1.

    >>> round(staircase(epsilon=1).mean_absolute_error, 9)
    0.959517376
    """
    epsilon = check_smallest_epsilon(check_positive("epsilon", epsilon))
    best = max(1 / (1 + math.exp(epsilon / 2)), LEAST) if epsilon < 1400 else LEAST
    chosen = best if gamma is None else check_probability("gamma", gamma)
    return Staircase(epsilon, check_positive("sensitivity", sensitivity), chosen)


# Discrete staircase noise: the smallest E|X| with pure ε-DP on the integers (Geng and Viswanath).


@dataclass(frozen=True, slots=True)
class DiscreteStaircase(IntegerMechanism):
    """P(X = x) ∝ e^{−iε}: i = 0 for |x| < step, then one more every ``sensitivity`` cells."""

    epsilon: float
    sensitivity: int
    step: int
    table: NoiseTable


def discrete_staircase(*, epsilon: float, sensitivity: int = 1, gamma: float | None = None) -> DiscreteStaircase:
    """Return staircase noise on the integers: pure ε-DP for integer answers that change by at most ``sensitivity``.

    In each period of ``sensitivity`` cells the first r are higher by a factor e^ε. ``gamma`` in [0, 1] sets r = ⌊gamma
    · sensitivity + ½⌋, at least 1; by default r minimizes E|X|. At sensitivity 1 this is the discrete Laplace
    distribution. The certified ε, rounding included, is at most the requested one; ε above 40 is treated as 40.

    Raises ``InputError`` for ε ≤ 0 (or below sensitivity / 10⁶), a gamma outside [0, 1], a fractional sensitivity.

    >>> noise = discrete_staircase(epsilon=1, sensitivity=3)
    >>> noise.step, round(noise.mean_absolute_error, 6), round(noise.loss.delta(1.0), 15)
    (2, 2.860832, 0.0)
    """
    sensitivity = check_integer("sensitivity", sensitivity, remedy="round the answers to fixed point first")
    if not sensitivity <= MAX_SHIFT:
        raise InputError("sensitivity", sensitivity, f"at most {MAX_SHIFT}", "measure in coarser units")
    epsilon = check_positive("epsilon", epsilon)
    step = best_step(epsilon, sensitivity) if gamma is None else rounded_step(gamma, sensitivity)
    return DiscreteStaircase(epsilon, sensitivity, step, staircase_table(epsilon, sensitivity, step))


def rounded_step(gamma: float, sensitivity: int) -> int:
    """Return ⌊gamma · sensitivity + ½⌋, at least 1."""
    return max(1, math.floor(check_probability("gamma", gamma) * sensitivity + 0.5))


def best_step(epsilon: float, sensitivity: int) -> int:
    """Return the r in 1..sensitivity with the smallest E|X|.

    With b = e^{−ε}, Δ the sensitivity, S = r + b(Δ − r) and J = ½[r(r−1) + b(Δ(Δ−1) − r(r−1))]:
    E|X| = 2 a [J/(1−b) + Δ b S/(1−b)²], a = (1−b) / (2S − (1−b)).
    """
    r, b, d = np.arange(1.0, sensitivity + 1), math.exp(-epsilon), sensitivity
    gap = -math.expm1(-epsilon)
    size = r + b * (d - r)
    first = (r * (r - 1) + b * (d * (d - 1) - r * (r - 1))) / 2
    cost = (first + d * b * size / gap) / (2 * size - gap)
    return int(np.argmin(cost)) + 1
