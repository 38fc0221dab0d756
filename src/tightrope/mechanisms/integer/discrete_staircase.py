"""Discrete staircase noise: the least E|X| with pure ε-DP on the integers (Geng and Viswanath)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tightrope.errors import InputError
from tightrope.mechanisms.integer.integer_mechanism import IntegerMechanism
from tightrope.mechanisms.tables.integer_losses import LARGEST_SHIFT
from tightrope.mechanisms.tables.integer_tables import staircase_table
from tightrope.mechanisms.tables.table import NoiseTable
from tightrope.numerics.checks import positive, probability, whole


@dataclass(frozen=True, slots=True)
class DiscreteStaircase(IntegerMechanism):
    """P(X = x) ∝ e^{−iε}: i = 0 for |x| < step, then one more every ``sensitivity`` cells."""

    epsilon: float
    sensitivity: int
    step: int
    table: NoiseTable


def discrete_staircase(*, epsilon: float, sensitivity: int = 1, gamma: float | None = None) -> DiscreteStaircase:
    """Staircase noise on the integers: pure ε-DP for whole-number answers that change by at most ``sensitivity``.

    In each period of ``sensitivity`` cells the first r are one factor e^ε higher. ``gamma`` in [0, 1] sets
    r = ⌊gamma · sensitivity + ½⌋, at least 1; by default r minimises E|X|. At sensitivity 1 this is the discrete
    Laplace law. The certified ε, rounding included, is at most the one asked for; ε above 40 is taken as 40.

    Raises ``InputError`` for ε ≤ 0 (or below sensitivity / 10⁶), a gamma outside [0, 1], a fractional sensitivity.

    >>> noise = discrete_staircase(epsilon=1, sensitivity=3)
    >>> noise.step, round(noise.mean_absolute_error, 6), round(noise.loss.delta(1.0), 15)
    (2, 2.860832, 0.0)
    """
    sensitivity = whole("sensitivity", sensitivity, remedy="round the answers to fixed point first")
    if not sensitivity <= LARGEST_SHIFT:
        raise InputError("sensitivity", sensitivity, f"at most {LARGEST_SHIFT}", "measure in coarser units")
    epsilon = positive("epsilon", epsilon)
    step = best_step(epsilon, sensitivity) if gamma is None else rounded_step(gamma, sensitivity)
    return DiscreteStaircase(epsilon, sensitivity, step, staircase_table(epsilon, sensitivity, step))


def rounded_step(gamma: float, sensitivity: int) -> int:
    """⌊gamma · sensitivity + ½⌋, at least 1."""
    return max(1, math.floor(probability("gamma", gamma) * sensitivity + 0.5))


def best_step(epsilon: float, sensitivity: int) -> int:
    """The r in 1..sensitivity with the least E|X|.

    With b = e^{−ε}, Δ the sensitivity, S = r + b(Δ − r) and J = ½[r(r−1) + b(Δ(Δ−1) − r(r−1))]:
    E|X| = 2 a [J/(1−b) + Δ b S/(1−b)²], a = (1−b) / (2S − (1−b)).
    """
    r, b, d = np.arange(1.0, sensitivity + 1), math.exp(-epsilon), sensitivity
    gap = -math.expm1(-epsilon)
    size = r + b * (d - r)
    first = (r * (r - 1) + b * (d * (d - 1) - r * (r - 1))) / 2
    cost = (first + d * b * size / gap) / (2 * size - gap)
    return int(np.argmin(cost)) + 1
