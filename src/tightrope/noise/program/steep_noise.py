"""Noise for a large ε and sensitivity Δ in closed form: stairs that fall by e^{−ε} and end, and a lower bound.

**Noise.** P(X = x) = v_0 for |x| < r, then L plateaus of Δ cells with v_1, v_1 e^{−ε}, …, and 0 beyond. At shift Δ,
which binds for unimodal distributions, the excess is n (v_0 − e^ε v_1) + Δ v_1 e^{−(L−1)ε}, n = min(2r − 1, Δ): the
excess of the center over e^ε v_1, and the last plateau. If the last plateau alone is at most δ, v_1 is the solution of
excess = δ.

**Bound.** P(X = 0) ≤ e^ε P(X = ±d) + δ for all d ≤ Δ. Weights w_d = e^{−ε}(c_d − c_0 − λ) for these inequalities with
λ = 2 e^{−ε} Σ (c_d − c_0) / (1 + 2 Δ e^{−ε}), if λ ≤ c_1 − c_0, prove E c ≥ c_0 + (1 − δ) λ.

The gap between the two is about 4 e^{−ε} for the cost |x| and 8 e^{−ε} for x²: if e^ε is too large for the sums of a
linear program in floats, this is the optimum to six digits or more. All numbers are integers
(``docs/proofs/optimal-noise.md``).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Self

from tightrope.mechanisms.discrete.integer_tables import MARGINS, staircase_table
from tightrope.mechanisms.discrete.integer_weights import LARGEST_STEP, ONE, fixed_point_exponential
from tightrope.mechanisms.discrete.noise_table import NoiseTable, build_noise_table
from tightrope.noise.program.closed_form import round_down
from tightrope.noise.program.dual import Costs
from tightrope.noise.program.repair import holds_at_all_shifts

STEEP = 6.0
"""These stairs are tried for ε of at least this."""
TIGHT = 1e-6
"""If the relative gap between bound and cost is at most this, the program is not solved."""
MOST_STAIRS = 12
"""Maximal number of plateaus."""
EXTRA_STAIRS = 2
"""Number of plateaus that are tried beyond the fewest that meet δ: each may cost less than it saves near zero."""
MOST_STEEP_CELLS = 1 << 17
"""Maximal number of cells on each side."""

Points = Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class SteepNoise:
    """The cheapest of these staircases that meets the points, if any, its cost, and a lower bound for every noise."""

    table: NoiseTable | None
    cost: float
    lower_bound: float

    @classmethod
    def from_points(cls, points: Points, bounding: Points, sensitivity: int, costs: Costs, first: int = 1) -> Self:
        """Return the cheapest stairs that meet all ``points``, and the bound for the weaker points ``bounding``.

        ``first`` is a value of r that is tried in addition to 1.

        >>> import numpy as np
        >>> found = SteepNoise.from_points([(18.0, 1e-8)], [(18.0, 1e-8)], 10, lambda n: np.arange(n + 1.0))
        >>> f"{found.cost:.4g}", found.is_tight
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
        cost, _, table = min(
            (approximate_cost(table, costs, max_cells=MOST_STEEP_CELLS), number, table)
            for number, table in enumerate(tables)
        )
        return cls(table, cost, bound)

    @property
    def is_tight(self) -> bool:
        """True if the cost is proven to be within ``TIGHT`` of the least."""
        return self.cost - self.lower_bound <= TIGHT * self.lower_bound


def steep_bound(points: Points, sensitivity: int, costs: Costs) -> float:
    """Return a lower bound on the cost of integer noise that meets a point at all shifts up to the sensitivity.

    >>> import numpy as np
    >>> round(steep_bound([(18.0, 1e-8)], 10, lambda n: np.arange(n + 1.0)) * 1e6, 4)
    1.6753
    """
    least, *others = (Fraction(value) for value in costs(sensitivity).tolist())
    cost_increase = sum((value - least for value in others), Fraction(0))
    bound = least
    for epsilon, delta in points:
        decay = Fraction(max(0, fixed_point_exponential(Fraction(epsilon)) - 1), ONE)
        level = 2 * cost_increase * decay / (1 + 2 * sensitivity * decay)
        if level <= others[0] - least:
            bound = max(bound, least + (1 - Fraction(delta)) * level)
    return round_down(bound)


def _tables_within_budget(
    epsilon: float, delta: float, points: Points, sensitivity: int, high: int
) -> Iterator[NoiseTable]:
    """Yield staircases for one point, unbounded and truncated, that meet all points; r = ``high``."""
    unbounded = staircase_table(epsilon, sensitivity, high)
    if holds_at_all_shifts(unbounded, points, sensitivity):
        yield unbounded
    found_count = 0
    for stairs in range(1, MOST_STAIRS + 1 if delta > 0 else 1):
        for margin in MARGINS:
            raw = _raw_weights(
                epsilon * (1 - margin), Fraction(delta) * Fraction(1 - margin), sensitivity, high, stairs
            )
            if raw is None:
                break
            table = build_noise_table(raw, steps=(epsilon * (1 - margin),))
            if holds_at_all_shifts(table, points, sensitivity):
                found_count += 1
                yield table
                break
        if found_count > EXTRA_STAIRS:
            break


def _raw_weights(epsilon: float, delta: Fraction, sensitivity: int, high: int, stairs: int) -> list[int] | None:
    """Return the weights of 0, 1, …; None if the last plateau alone exceeds δ, or if the weights would increase."""
    decay = Fraction(fixed_point_exponential(Fraction(epsilon)) + 1, ONE)
    levels = [decay**j for j in range(stairs)]
    center_cells = 2 * high - 1
    excess_fraction = Fraction(min(center_cells, sensitivity), center_cells)
    inner = 2 * sensitivity * excess_fraction * sum(levels) - sensitivity * levels[-1]
    first = decay * (excess_fraction - delta) / (excess_fraction * center_cells + decay * inner)
    center = (1 - 2 * sensitivity * first * sum(levels)) / center_cells
    if not (center >= first > 0 and sensitivity * first * levels[-1] <= delta):
        return None
    rounded_levels = [-(-(first * level).numerator * ONE // (first * level).denominator) for level in levels]
    return [int(center * ONE)] * high + [level for level in rounded_levels for _ in range(sensitivity)]


def approximate_cost(
    table: NoiseTable, costs: Costs, *, smallest_tail: float = 2.0**-128, max_cells: int | None = None
) -> float:
    """Return E c in floats, of at most ``max_cells`` cells and down to tails of ``smallest_tail``."""
    tails, k = [], 0
    while (max_cells is None or k < max_cells) and (tail := float(table.survival_probability(k))) > smallest_tail:
        tails.append(tail)
        k += 1
    values: list[float] = costs(len(tails) + 1).tolist()
    return values[0] + 2 * math.fsum((values[k + 1] - values[k]) * tail for k, tail in enumerate(tails))
