"""Noise of a large ε for a sensitivity Δ in closed form: stairs that fall by e^{−ε} and end, and a bound next to them.

**Noise.** P(X = x) = v_0 for |x| < r, then L plateaus of Δ cells with v_1, v_1 e^{−ε}, …, and 0 beyond. At shift Δ,
which binds for unimodal laws, the excess is n (v_0 − e^ε v_1) + Δ v_1 e^{−(L−1)ε}, n = min(2r − 1, Δ): the last plateau
and what the centre may have more than e^ε v_1. Where the last plateau alone is at most δ, v_1 follows from the excess
being δ.

**Bound.** P(X = 0) ≤ e^ε P(X = ±d) + δ for all d ≤ Δ. Weights w_d = e^{−ε}(c_d − c_0 − λ) for these inequalities with
λ = 2 e^{−ε} Σ (c_d − c_0) / (1 + 2 Δ e^{−ε}), if λ ≤ c_1 − c_0, prove E c ≥ c_0 + (1 − δ) λ.

Both together leave a gap of about 4 e^{−ε} of |x|, 8 e^{−ε} of x²: where e^ε is too large for the sums of a linear
program in floats, this is the optimum to six digits and more. All is computed in whole numbers
(``docs/proofs/optimal-noise.md``).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Self

from tightrope.mechanisms.discrete.integer_tables import MARGINS, staircase_table
from tightrope.mechanisms.discrete.integer_weights import LARGEST_STEP, ONE, exponential
from tightrope.mechanisms.discrete.noise_table import NoiseTable, tabulate
from tightrope.noise.program.closed_form import rounded_down
from tightrope.noise.program.dual import Costs
from tightrope.noise.program.repair import keeps_everywhere

STEEP = 6.0
"""From this ε on stairs of this kind are tried."""
TIGHT = 1e-6
"""Where the bound is this near to the cost, relatively, no program is solved."""
MOST_STAIRS = 12
MORE_STAIRS = 2
"""Plateaus beyond the fewest that keep δ: each may cost less than what it saves nearer to zero."""
MOST_STEEP_CELLS = 1 << 17

Points = Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Steep:
    """The cheapest of these laws that keeps the points, if any does, its cost, and what every noise costs at least."""

    table: NoiseTable | None
    cost: float
    bound: float

    @classmethod
    def of(cls, points: Points, bounding: Points, sensitivity: int, costs: Costs, first: int = 1) -> Self:
        """For all ``points``; the bound from ``bounding``, points that imply no more. ``first``: r that is tried, too.

        >>> import numpy as np
        >>> found = Steep.of([(18.0, 1e-8)], [(18.0, 1e-8)], 10, lambda n: np.arange(n + 1.0))
        >>> f"{found.cost:.4g}", found.tight
        ('1.675e-06', True)
        """
        bound = steep_bound(bounding, sensitivity, costs)
        tables = [
            table
            for epsilon, delta in points
            if epsilon >= STEEP and sensitivity * MOST_STAIRS <= MOST_STEEP_CELLS
            for high in sorted({1, first})
            for table in _tables_within_budget(min(epsilon, LARGEST_STEP), delta, points, sensitivity, high)
        ]
        if not tables:
            return cls(None, math.inf, bound)
        cost, _, table = min((_cost(table, costs), number, table) for number, table in enumerate(tables))
        return cls(table, cost, bound)

    @property
    def tight(self) -> bool:
        """Whether it is proven that next to nothing costs less."""
        return self.cost - self.bound <= TIGHT * self.bound


def steep_bound(points: Points, sensitivity: int, costs: Costs) -> float:
    """No integer noise of any shape that keeps a point at all shifts up to the sensitivity costs less; rounded down.

    >>> import numpy as np
    >>> round(steep_bound([(18.0, 1e-8)], 10, lambda n: np.arange(n + 1.0)) * 1e6, 4)
    1.6753
    """
    least, *others = (Fraction(value) for value in costs(sensitivity).tolist())
    above = sum((value - least for value in others), Fraction(0))
    found = least
    for epsilon, delta in points:
        decay = Fraction(max(0, exponential(Fraction(epsilon)) - 1), ONE)
        level = 2 * above * decay / (1 + 2 * sensitivity * decay)
        if level <= others[0] - least:
            found = max(found, least + (1 - Fraction(delta)) * level)
    return rounded_down(found)


def _tables_within_budget(
    epsilon: float, delta: float, points: Points, sensitivity: int, high: int
) -> Iterator[NoiseTable]:
    """Laws of one point, endless and ended, that keep all points; their first plateau has ``high`` cells a side."""
    endless = staircase_table(epsilon, sensitivity, high)
    if keeps_everywhere(endless, points, sensitivity):
        yield endless
    more = 0
    for stairs in range(1, MOST_STAIRS + 1 if delta > 0 else 1):
        for margin in MARGINS:
            raw = _raw(epsilon * (1 - margin), Fraction(delta) * Fraction(1 - margin), sensitivity, high, stairs)
            if raw is None:
                break
            table = tabulate(raw, steps=(epsilon * (1 - margin),))
            if keeps_everywhere(table, points, sensitivity):
                more += 1
                yield table
                break
        if more > MORE_STAIRS:
            break


def _raw(epsilon: float, delta: Fraction, sensitivity: int, high: int, stairs: int) -> list[int] | None:
    """Weights of 0, 1, …; None where the last plateau alone is more than δ, or the weights would rise."""
    decay = Fraction(exponential(Fraction(epsilon)) + 1, ONE)
    levels = [decay**j for j in range(stairs)]
    both = 2 * high - 1
    share = Fraction(min(both, sensitivity), both)
    inner = 2 * sensitivity * share * sum(levels) - sensitivity * levels[-1]
    first = decay * (share - delta) / (share * both + decay * inner)
    centre = (1 - 2 * sensitivity * first * sum(levels)) / both
    if not (centre >= first > 0 and sensitivity * first * levels[-1] <= delta):
        return None
    raised = [-(-(first * level).numerator * ONE // (first * level).denominator) for level in levels]
    return [int(centre * ONE)] * high + [level for level in raised for _ in range(sensitivity)]


def _cost(table: NoiseTable, costs: Costs) -> float:
    """E c in floats; of an endless law as far as its weights are above 2⁻¹²⁸."""
    tails, k = [], 0
    while (tail := float(table.survival(k))) > 2.0**-128 and k < MOST_STEEP_CELLS:
        tails.append(tail)
        k += 1
    values: list[float] = costs(len(tails) + 1).tolist()
    return values[0] + 2 * math.fsum((values[k + 1] - values[k]) * tail for k, tail in enumerate(tails))
