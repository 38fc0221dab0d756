"""A lower bound for real-valued noise at large ε, too large for lattices: places hide one another.

For b > 0 let u(x, d) = (φ(b) − φ(x))₊ ω(d) on 2b ≤ |d| ≤ Δ with ω(d) ∝ (φ(|d| − b) − φ(b))₊, ∫ω = 1, multiply the
inequality of shift d at x, as in ``noise_dual`` with integrals. If 2 e^{−ε} ∫_{2b}^{Δ} (φ(t − b) − φ(b)) dt is at least
∫_{−b}^{b} (φ(b) − φ), no place is left with less than φ(b), so every law costs at least φ(b) − δ (φ(b) − φ(0)).
Proof: docs/proofs/optimal-noise.md.
"""

from __future__ import annotations

import math

from tightrope.design.program.noise_request import Promise
from tightrope.numerics.search import crossing

MARGIN = 1e-12
"""Relative margin for formulas in floats."""
SMALLEST, LARGEST_EPSILON = 1e-100, 200.0


def packing_bound(promise: Promise, sensitivity: float, power: int) -> float:
    """No real noise that keeps the promise has a smaller E|X|^p; from whichever point says most.

    >>> from tightrope.certificates import Budget
    >>> promise = Promise.of(Budget(epsilon=12, delta=1e-6))
    >>> 0.99 < packing_bound(promise, 1.0, 1) / 0.0024788 < 1  # what staircase noise costs
    True
    """
    points = [point for point in promise.uncapped.points if 0 < point[0] <= LARGEST_EPSILON]
    best = max((_widest(epsilon, power) ** power * (1 - delta) for epsilon, delta in points), default=0.0)
    return best * sensitivity**power * (1 - 8 * MARGIN)


def _widest(epsilon: float, power: int) -> float:
    """The largest b in units of Δ for which the condition holds, less a margin."""
    found = crossing(lambda b: _lacking(math.exp(b), epsilon, power), 0.0, math.log(SMALLEST), side="passes")
    return math.exp(found) * (1 - MARGIN)


def _lacking(b: float, epsilon: float, power: int) -> float:
    """Log of what is asked over what there is, for b in units of Δ: rises with b."""
    p = power
    asked = 2 * b ** (p + 1) * p / (p + 1)
    there = 2 * math.exp(-epsilon) * (((1 - b) ** (p + 1) - b ** (p + 1)) / (p + 1) - b**p * (1 - 2 * b))
    return math.log(asked / there) + MARGIN if 0 < b < 0.5 and there > 0 else math.inf
