"""What a table costs: E φ(|X|) from the whole-number weights that are sampled, rounded up."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np

from tightrope.design.program.noise_closed_form import rounded_up
from tightrope.design.program.noise_cost import DOUBLINGS, GROWTH, Cost
from tightrope.mechanisms.tables.table import NoiseTable
from tightrope.numerics.arrays import Floats
from tightrope.randomness.choice import TOTAL

DEEP = Fraction(1, 1 << 60)


def expense(table: NoiseTable, cost: Cost) -> float:
    """E φ(|X|), rounded up. Raises ``InputError`` for a cost that grows too fast where the noise never ends.

    >>> expense(NoiseTable(2**127, (2**126,)), Cost.of("absolute"))
    0.5
    """
    if cost.power == 1:
        return rounded_up(table.exact_mean_absolute)
    if cost.power == 2:
        return rounded_up(table.exact_mean_squared)
    if table.tail is None:
        return rounded_up(finite_expense(table, cost.at(np.arange(table.worst + 1))))
    return rounded_up(_endless(table, cost))


def finite_expense(table: NoiseTable, values: Floats) -> Fraction:
    """Σ p_x c_|x| for a table that ends, exactly, from the float costs c_0..c_N."""
    costs = [Fraction(value) for value in values.tolist()]
    return Fraction(sum(2 * w * c for w, c in zip(table.half, costs[1:], strict=True)) + table.centre * costs[0], TOTAL)


def _endless(table: NoiseTable, cost: Cost) -> Fraction:
    """φ(0) + 2 Σ_k (φ(k) − φ(k−1)) P(X ≥ k) up to M, and beyond it 2 Σ_j 16^{j+1} φ(M) P(X > 2^j M), j = 0, 1, …

    φ grows at most sixteenfold where the error doubles (checked), and the tail is geometric: the last term of the sum,
    taken twice, covers all further ones.
    """
    last = 1
    while table.survival(last) > DEEP:
        last *= 2
    cost.check_growth(float(last))
    values = [Fraction(value) for value in cost.at(np.arange(last + 1.0)).tolist()]
    inside = sum((b - a) * table.survival(k) for k, (a, b) in enumerate(pairwise(values)))
    terms = [Fraction(int(GROWTH)) ** (j + 1) * table.survival(last << j) for j in range(DOUBLINGS // 2)]
    return values[0] + 2 * inside + 2 * values[-1] * (sum(terms) + terms[-1])
