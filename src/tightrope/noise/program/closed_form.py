"""Closed forms: the tails of the least noise of sensitivity 1, and noise for a large ε with its bound.

1. The tails (``least_noise_tails``), and rounding in a stated direction.
2. Noise for a large ε and any sensitivity (``SteepNoise``).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Self

import numpy as np

from tightrope.mechanisms.discrete.integer_tables import MARGINS, staircase_table
from tightrope.mechanisms.discrete.integer_weights import DIGITS, LARGEST_STEP, ONE, fixed_point_exponential
from tightrope.mechanisms.discrete.noise_table import NoiseTable, build_noise_table
from tightrope.noise.program.dual import Costs
from tightrope.noise.program.repair import holds_at_all_shifts
from tightrope.noise.program.request import ErrorCost, PrivacyTarget
from tightrope.numerics.root_finding import find_crossing

# 1. The closed form of theory §4.1: tails G_k that are lower bounds for every integer noise of sensitivity 1.
#
# P(|X| ≥ k) ≥ 2 G_k for every noise that meets the points, so E φ(|X|) ≥ φ(0) + 2 Σ_{k≥1} (φ(k) − φ(k−1)) G_k for every
# non-decreasing φ. All numbers are in fixed point with 256 binary digits, rounded down; omitting further k only lowers
# the sum.

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


# 2. Noise for a large ε and sensitivity Δ in closed form: stairs that fall by e^{−ε} and end, and a lower bound.
#
# **Noise.** P(X = x) = v_0 for |x| < r, then L plateaus of Δ cells with v_1, v_1 e^{−ε}, …, and 0 beyond. At shift Δ,
# which binds for unimodal distributions, the excess is n (v_0 − e^ε v_1) + Δ v_1 e^{−(L−1)ε}, n = min(2r − 1, Δ): the
# excess of the center over e^ε v_1, and the last plateau. If the last plateau alone is at most δ, v_1 is the solution
# of excess = δ.
#
# **Bound.** P(X = 0) ≤ e^ε P(X = ±d) + δ for all d ≤ Δ. Weights w_d = e^{−ε}(c_d − c_0 − λ) for these inequalities with
# λ = 2 e^{−ε} Σ (c_d − c_0) / (1 + 2 Δ e^{−ε}), if λ ≤ c_1 − c_0, prove E c ≥ c_0 + (1 − δ) λ.
#
# The gap between the two is about 4 e^{−ε} for the cost |x| and 8 e^{−ε} for x²: if e^ε is too large for the sums of a
# linear program in floats, this is the optimum to six digits or more. All numbers are integers
# (``docs/proofs/optimal-noise.md``).

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
