"""Discrete truncated Laplace noise: (ε, δ)-DP, and no answer is further off than a stated bound."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate

from tightrope.errors import InputError
from tightrope.mechanisms.integer.integer_mechanism import IntegerMechanism
from tightrope.mechanisms.tables.integer_optimum import first_within
from tightrope.mechanisms.tables.integer_tables import COARSER, MOST_TABLE_CELLS
from tightrope.mechanisms.tables.integer_weights import LARGEST_STEP, exponential, powers
from tightrope.mechanisms.tables.table import NoiseTable, tabulate
from tightrope.numerics.checks import inner_probability, positive, whole

SMALLEST_DELTA = 1e-24


@dataclass(frozen=True, slots=True)
class DiscreteTruncatedLaplace(IntegerMechanism):
    """P(X = x) ∝ e^{−|x|ε/Δ} for |x| < N, and less than that at ±N."""

    epsilon: float
    delta: float
    sensitivity: int
    table: NoiseTable


def discrete_truncated_laplace(*, epsilon: float, delta: float, sensitivity: int = 1) -> DiscreteTruncatedLaplace:
    """Geometric steps e^{−ε/Δ} that end where δ allows, with a last partial step that uses δ up.

    The law is unimodal, so shift Δ binds; with r = e^{−ε/Δ} and θ the last partial step,
    δ Σp = Σ_{N−Δ<j<N} r^j + θ r^N + (1 − θ) r^{N−Δ} (infinite loss, and the one loss between ε and infinity).
    At sensitivity 1 this is the optimal noise of theory §4.1: no (ε, δ) noise has a stochastically smaller |X|.
    The certified δ at ε, rounding included, is at most ``delta`` at every shift 1..Δ. ε/Δ above 40 is taken as 40.

    Raises ``InputError`` unless ε > 0, 1e−24 ≤ δ ≤ ½ and the sensitivity is a whole number ≥ 1.

    >>> noise = discrete_truncated_laplace(epsilon=1, delta=1e-6)
    >>> round(noise.mean_absolute_error, 9), noise.worst_error
    (0.850902116, 14.0)
    """
    sensitivity = whole("sensitivity", sensitivity, remedy="round the answers to fixed point first")
    epsilon, delta = positive("epsilon", epsilon), inner_probability("delta", delta)
    if not SMALLEST_DELTA <= delta <= 0.5:
        raise InputError("delta", delta, f"between {SMALLEST_DELTA:g} and 0.5", "for delta = 0 use discrete_laplace")
    step = min(epsilon / sensitivity, LARGEST_STEP)

    def build(margin: float) -> NoiseTable:
        return _built(step * (1 - margin), Fraction(delta * (1 - margin)), sensitivity)

    table = first_within(build, sensitivity, [(epsilon, delta)])
    return DiscreteTruncatedLaplace(epsilon, delta, sensitivity, table)


def _built(step: float, delta: Fraction, sensitivity: int) -> NoiseTable:
    cells = _cells(step, float(delta), sensitivity) + 2
    raw = powers(exponential(Fraction(step)), cells + 1)
    sums = [0, *accumulate(raw)]  # sums[n] = 1 + r + … + r^{n−1}
    end = _end(sums, delta, sensitivity)
    missing = sums[end] - sums[end - sensitivity] - delta * (2 * sums[end] - raw[0])
    partial = missing / (raw[end - sensitivity] - raw[end] + 2 * delta * raw[end])
    return tabulate([*raw[:end], math.ceil(partial * raw[end])], steps=(step,))


def _cells(step: float, delta: float, sensitivity: int) -> int:
    """About the smallest N with r^{N+1} (e^ε − 1 + 2δ) ≤ δ (1 + r)."""
    epsilon = step * sensitivity
    log_gap = epsilon + math.log(-math.expm1(-epsilon) + 2 * delta * math.exp(-epsilon))
    cells = (log_gap - math.log(delta) - math.log1p(math.exp(-step))) / step
    if not cells < MOST_TABLE_CELLS:
        raise InputError("epsilon", epsilon, f"enough for noise of fewer than {MOST_TABLE_CELLS} cells", COARSER)
    return max(sensitivity, math.ceil(cells))


def _end(sums: list[int], delta: Fraction, sensitivity: int) -> int:
    """The smallest N ≥ Δ for which the law cut after N has δ or less: Σ_{N−Δ<j≤N} r^j ≤ δ (2 Σ_{j≤N} r^j − 1)."""

    def fits(n: int) -> bool:
        return sums[n + 1] - sums[n + 1 - sensitivity] <= delta * (2 * sums[n + 1] - sums[1])

    end = len(sums) - 2
    while end > sensitivity and fits(end - 1):
        end -= 1
    return end
