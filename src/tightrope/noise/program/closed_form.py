"""The closed form of theory §4.1: tails G_k that are lower bounds for every integer noise of sensitivity 1.

P(|X| ≥ k) ≥ 2 G_k for every noise that meets the points, so E φ(|X|) ≥ φ(0) + 2 Σ_{k≥1} (φ(k) − φ(k−1)) G_k for every
non-decreasing φ. All numbers are in fixed point with 256 binary digits, rounded down; omitting further k only lowers
the sum.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

import numpy as np

from tightrope.mechanisms.discrete.integer_weights import DIGITS, ONE, fixed_point_exponential
from tightrope.noise.program.request import ErrorCost, PrivacyTarget
from tightrope.numerics.root_finding import find_crossing

SMALLEST_TAIL = 1 << (DIGITS - 160)
"""Smaller tails are omitted, in units of 2⁻²⁵⁶."""
MAX_TAILS = 1 << 21

Points = Sequence[tuple[float, float]]


def least_noise_tails(points: Points) -> list[int]:
    """Return G_1, G_2, … in units of 2⁻²⁵⁶, rounded down.

    G_{k+1} = max_i e^{−ε_i}(G_k − δ_i), and G_1 = max_i e^{−ε_i}(1 − G_1 − δ_i).

    >>> first = least_noise_tails([(0.0, 0.25)])[0]  # (1 − η)/2
    >>> 0.375 - 1e-60 <= first / ONE <= 0.375
    True
    """
    lines = _fixed_point_lines(points)
    return _tail_recursion(lines, max((ONE - delta) * decay // (ONE + decay) for decay, delta in lines))


def least_tails_from_half(points: Points) -> list[int]:
    """Return the tails G_1, … of the same recursion from G_0 = ½.

    They are lower bounds on P(X ≥ kΔ) of every noise, integer or real, for any sensitivity Δ (theory §4).
    """
    lines = _fixed_point_lines(points)
    return _tail_recursion(lines, _next_tail(lines, ONE // 2))


def _fixed_point_lines(points: Points) -> list[tuple[int, int]]:
    """Return (e^{−ε} rounded down, δ rounded up) of each point in fixed point."""
    return [(max(0, fixed_point_exponential(Fraction(e)) - 1), math.ceil(Fraction(d) * ONE)) for e, d in points]


def _next_tail(lines: Sequence[tuple[int, int]], tail: int) -> int:
    return max((tail - delta) * decay >> DIGITS for decay, delta in lines)


def _tail_recursion(lines: Sequence[tuple[int, int]], tail: int) -> list[int]:
    tails: list[int] = []
    while tail > SMALLEST_TAIL and len(tails) < MAX_TAILS:
        tails.append(tail)
        tail = _next_tail(lines, tail)
    return tails


def cost_from_tails(tails: Sequence[int], cost: ErrorCost) -> float:
    """Return φ(0) + 2 Σ (φ(k) − φ(k−1)) G_k, rounded down; tails are in units of 2⁻²⁵⁶."""
    values = cost.values_at(np.arange(len(tails) + 1.0)).tolist()
    if cost.power is not None:
        total = Fraction(sum((int(b) - int(a)) * g for a, b, g in zip(values, values[1:], tails, strict=False)), ONE)
    else:
        steps = (Fraction(b) - Fraction(a) for a, b in pairwise(values))
        total = sum((step * g for step, g in zip(steps, tails, strict=True)), Fraction(0)) / ONE
    return round_down(Fraction(values[0]) + 2 * total)


def round_down(exact: Fraction) -> float:
    """Return the largest float ≤ the number."""
    nearest = float(exact)
    return nearest if Fraction(nearest) <= exact else math.nextafter(nearest, -math.inf)


def round_up(exact: Fraction) -> float:
    """Return the smallest float ≥ the number."""
    nearest = float(exact)
    return nearest if Fraction(nearest) >= exact else math.nextafter(nearest, math.inf)


# A lower bound for real-valued noise at ε too large for lattices (packing).
#
# For b > 0 let u(x, d) = (φ(b) − φ(x))₊ ω(d) on 2b ≤ |d| ≤ Δ with ω(d) ∝ (φ(|d| − b) − φ(b))₊, ∫ω = 1, multiply the
# inequality of shift d at x, as in ``dual`` with integrals. If 2 e^{−ε} ∫_{2b}^{Δ} (φ(t − b) − φ(b)) dt is at
# least ∫_{−b}^{b} (φ(b) − φ), the reduced cost is at least φ(b) everywhere, so every distribution costs at least
# φ(b) − δ (φ(b) − φ(0)). Proof: docs/proofs/optimal-noise.md.

FORMULA_MARGIN = 1e-12
"""Relative margin for formulas in floats."""
SMALLEST_SPACING, LARGEST_EPSILON = 1e-100, 200.0
"""The smallest b that is searched, in units of Δ; points with a larger ε are omitted."""


def packing_bound(promise: PrivacyTarget, sensitivity: float, power: int) -> float:
    """Return a lower bound on E|X|^p of real noise that meets the guarantee; the best over all points.

    >>> from tightrope.documents import Budget
    >>> promise = PrivacyTarget.from_budget(Budget(epsilon=12, delta=1e-6))
    >>> 0.99 < packing_bound(promise, 1.0, 1) / 0.0024788 < 1  # what staircase noise costs
    True
    """
    points = [point for point in promise.without_cap_point.points if 0 < point[0] <= LARGEST_EPSILON]
    best = max((_largest_spacing(epsilon, power) ** power * (1 - delta) for epsilon, delta in points), default=0.0)
    return best * sensitivity**power * (1 - 8 * FORMULA_MARGIN)


def _largest_spacing(epsilon: float, power: int) -> float:
    """Return the largest b, in units of Δ, that meets the condition, less a margin."""

    def log_ratio(log_b: float) -> float:
        """Return log of the required integral divided by the available one: increasing in b."""
        b, p = math.exp(log_b), power
        needed = 2 * b ** (p + 1) * p / (p + 1)
        available = 2 * math.exp(-epsilon) * (((1 - b) ** (p + 1) - b ** (p + 1)) / (p + 1) - b**p * (1 - 2 * b))
        return math.log(needed / available) + FORMULA_MARGIN if 0 < b < 0.5 and available > 0 else math.inf

    return math.exp(find_crossing(log_ratio, 0.0, math.log(SMALLEST_SPACING), side="passes")) * (1 - FORMULA_MARGIN)
