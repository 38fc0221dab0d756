"""Tables of the classic integer distributions, from which mechanisms are built."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache, partial
from itertools import pairwise
from typing import Self

import numpy as np

from tightrope.accounting.distributions.atoms import Atoms
from tightrope.errors import InputError
from tightrope.mechanisms.discrete.integer_weights import (
    DIGITS,
    LARGEST_SCALE,
    LARGEST_STEP,
    ONE,
    PlateauTail,
    fixed_point_exponential,
    fixed_point_powers,
)
from tightrope.mechanisms.discrete.noise_table import NoiseTable, build_noise_table
from tightrope.numerics.checks import (
    check_integer,
    check_non_negative,
    check_nonempty,
    check_positive,
    check_probability,
)
from tightrope.randomness.alias_sampler import BITS

PRIVATE_SIDE = 1 - 2.0**-48
"""Factor on a requested ε, so that the certified ε, rounding included, stays below the request."""

LARGEST_GAUSSIAN = 1e5
SMALLEST_GAUSSIAN = 0.1
MAX_TABLE_CELLS = 1 << 21
COARSER_UNITS = (
    "measure in coarser units, or widen a smaller table (tightrope.mechanisms.discrete.scaled_noise.WidenedNoise)"
)


def geometric_table(scale: float) -> NoiseTable:
    """Return p_x ∝ e^{−|x|/scale} on all integers: the discrete Laplace distribution, with an exact geometric tail.

    The actual scale is scale / (1 − 2⁻⁴⁸). Raises ``InputError`` unless 1/40 ≤ scale ≤ 10⁶.

    >>> round(geometric_table(2.0).mean_absolute, 12) == round(1 / math.sinh(0.5), 12)
    True
    """
    scale = check_scale_range(scale, 1 / LARGEST_STEP, LARGEST_SCALE)
    return staircase_table(1 / scale, 1)


def staircase_table(epsilon: float, period: int, high: int = 1) -> NoiseTable:
    """Return weights e^{−iε} on plateaus: |x| < high at i = 0, then ``period`` cells a plateau; 1 ≤ high ≤ period.

    Pure ε-DP for shifts up to ``period``, built for ε (1 − 2⁻⁴⁸), with an exact tail; ε above 40 is treated as 40.
    """
    step = min(check_positive("epsilon", epsilon), LARGEST_STEP) * PRIVATE_SIDE
    period = check_integer("sensitivity", period)
    if not period / step <= 2 * LARGEST_SCALE:
        raise InputError("epsilon", epsilon, f"at least sensitivity / {LARGEST_SCALE:g}", COARSER_UNITS)
    ratio = fixed_point_exponential(Fraction(step))
    return build_noise_table([ONE] * check_integer("high", high), PlateauTail(ratio, ratio, period), (step,))


def truncated_geometric(*, scale: float, largest: int) -> NoiseTable:
    """Return p_x ∝ e^{−|x|/scale} for |x| ≤ largest, else 0; cells below 2⁻¹²⁸ are empty."""
    scale = check_scale_range(scale, 1 / LARGEST_STEP, LARGEST_SCALE)
    largest = check_integer("largest", largest, at_least=0)
    if not largest < MAX_TABLE_CELLS:
        raise InputError("largest", largest, f"below {MAX_TABLE_CELLS}", COARSER_UNITS)
    step = PRIVATE_SIDE / scale
    cells = min(largest, math.ceil(BITS * math.log(2) * scale))
    return build_noise_table(fixed_point_powers(fixed_point_exponential(Fraction(step)), cells + 1), steps=(step,))


def gaussian_table(scale: float) -> NoiseTable:
    """Return p_x ∝ e^{−x²/(2 scale²)} for cells of at least 2⁻¹²⁸; the rest is certified as mass at infinite loss.

    Successive weights by w_{x+1} = w_x t_x, t_{x+1} = t_x q with q = e^{−1/scale²}, in fixed point.
    Raises ``InputError`` unless 0.1 ≤ scale ≤ 10⁵.
    """
    scale = check_scale_range(scale, SMALLEST_GAUSSIAN, LARGEST_GAUSSIAN)
    half_precision = 1 / (2 * Fraction(scale) ** 2)
    ratio, factor = fixed_point_exponential(half_precision), fixed_point_exponential(2 * half_precision)
    raw = [ONE]
    while raw[-1] >> (DIGITS - BITS):  # at least 2^{-128} of the weight of 0
        raw.append(raw[-1] * ratio >> DIGITS)
        ratio = ratio * factor >> DIGITS
    return replace(build_noise_table(raw, steps=(1 / (2 * scale * scale),)), gaussian_scale=scale)


def check_scale_range(scale: object, low: float, high: float) -> float:
    """Return a positive scale in [low, high]; raises ``InputError`` with a remedy otherwise."""
    number = check_positive("scale", scale, "the scale is the size of the noise in units of the answer")
    if not number >= low:
        raise InputError("scale", scale, f"at least {low:g}", "smaller noise gives no protection: increase the scale")
    if not number <= high:
        raise InputError("scale", scale, f"at most {high:g}", COARSER_UNITS)
    return number


# The optimal integer noise of sensitivity 1 for a list of points (ε_i, δ_i): a closed form (theory §4.1).
#
# With f the trade-off function of the list and c its fixed point: G_1 = c = max_i (1 − δ_i)/(1 + e^{ε_i}), G_{k+1} =
# f(1 − G_k) = max_i e^{−ε_i}(G_k − δ_i), P(X ≥ k) = G_k. |X| is stochastically smallest among all integer noises with
# this guarantee: it minimizes E φ(|X|) for every non-decreasing φ at once.

Points = Sequence[tuple[float, float]]

MARGINS = (1 - PRIVATE_SIDE, 2.0**-46, 2.0**-44, 2.0**-40, 2.0**-32, 2.0**-24, 2.0**-16)
"""Relative reductions of the requested points, tried in this order until the integer table meets the request."""
LARGE_TABLE_CELLS, LARGE_TABLE_MARGINS = 8192, tuple(2.0**-digits for digits in range(36, 14, -2))
"""Building larger tables takes long: reductions below the rounding of their certificates, 2⁻⁵⁰ a cell, are left out."""

SMALLEST_STEP = 1e-9
"""Smallest ideal spacing of losses that is declared."""
TINY_EPSILON = 1e-200
"""Below it, the number of cells is that of ε = 0 to double precision, and products with ε could underflow."""

NEGLIGIBLE_DELTA = 1e-24
"""A smaller δ is treated as 0: a table of 128 bits cannot represent it."""


@dataclass(frozen=True, slots=True)
class TailRecurrence:
    """The map G ↦ e^{−ε}(G − δ) in fixed point, rounded up."""

    decay: int
    delta: int

    @classmethod
    def from_point(cls, epsilon: float, delta: float) -> Self:
        """Return the map of the point (ε, δ), rounded to the private side."""
        return cls(fixed_point_exponential(Fraction(epsilon)) + 1, int(Fraction(delta) * ONE))

    @staticmethod
    def steps_to_zero(epsilon: float, delta: float) -> float:
        """Return the number of steps from G_1 to 0 for δ > 0: log(1 + G_1 (1 − e^{−ε}) e^ε / δ) / ε."""
        decay = math.exp(-epsilon)
        first = (1 - delta) * decay / (1 + decay)
        if epsilon > TINY_EPSILON:
            return math.log1p(-first * math.expm1(-epsilon) / (decay * delta)) / epsilon
        return first / delta  # the limit at ε = 0

    def last_crossing(self, others: list[TailRecurrence]) -> int:
        """Return the G below which none of the others is above this one, whose δ is 0.

        a (G − δ) ≤ b G ⇔ G ≤ aδ / (a − b).
        """
        bounds = [a.decay * a.delta // (a.decay - self.decay) for a in others if a.decay > self.decay]
        return min(bounds, default=ONE)

    def next_tail(self, tail: int) -> int:
        """Return e^{−ε}(G − δ)."""
        return -((self.delta - tail) * self.decay >> DIGITS)

    @property
    def fixed_point(self) -> int:
        """(1 − δ) e^{−ε} / (1 + e^{−ε})."""
        return -(-(ONE - self.delta) * self.decay // (ONE + self.decay))


def optimal_table(points: Points) -> NoiseTable:
    """Return the optimal table of sensitivity 1 for points (ε_i ≥ 0, δ_i); (0, η) is a total variation of η.

    If some δ_i = 0 the distribution has an exact geometric tail, otherwise it is finite. ε above 40 is treated as 40, δ
    below 1e−24 as 0. The certified δ at each ε_i, rounding included, is at most δ_i. Raises ``InputError`` for invalid
    points.

    >>> table = optimal_table([(1, 1e-6)])
    >>> round(table.mean_absolute, 12), round(table.mean_squared, 12)
    (0.850902115757, 1.841099853871)
    """
    pairs = list(points)
    check_nonempty("points", pairs, "say [(1, 1e-6)]")
    requested: list[tuple[float, float]] = []
    for pair in pairs:
        epsilon, delta = min(check_non_negative("epsilon", pair[0]), LARGEST_STEP), check_probability("delta", pair[1])
        if not delta < 1:
            raise InputError("delta", delta, "below 1", "leave out this point: it holds for every mechanism")
        if delta < NEGLIGIBLE_DELTA and not epsilon >= 1 / LARGEST_SCALE:
            raise InputError("epsilon", epsilon, f"at least {1 / LARGEST_SCALE:g} where delta = 0", COARSER_UNITS)
        requested.append((epsilon, delta if delta >= NEGLIGIBLE_DELTA else 0.0))
    return _certified_optimum(tuple(requested))


@lru_cache(maxsize=4)
def _certified_optimum(points: tuple[tuple[float, float], ...]) -> NoiseTable:
    """Return ``optimal_table`` of checked points; searches of a budget ask for the last ones again."""
    margins: tuple[float, ...] = MARGINS
    cells = _fewest_cells(points)
    if LARGE_TABLE_CELLS < cells < MAX_TABLE_CELLS:
        margins = tuple(margin for margin in LARGE_TABLE_MARGINS if margin >= 2.0**-50 * cells)
    return build_with_least_margin(partial(_build_with_margin, points), 1, points, margins)


def build_with_least_margin(
    build: Callable[[float], NoiseTable], sensitivity: int, points: Points, margins: Sequence[float] = MARGINS
) -> NoiseTable:
    """Return the first table over ``margins`` whose certified profile meets every point for that sensitivity."""
    for margin in margins:
        table = build(margin)
        if table_meets_points(table.atoms_for_shift(sensitivity), points):
            return table
    raise InputError("delta", [d for _, d in points], "at least 1e-24, or 0", "such a budget needs delta=0 noise")


def table_meets_points(atoms: Atoms, points: Points) -> bool:
    """Return whether an upper bound on δ(ε_i), rounding included, is at most δ_i for every point."""
    return largest_delta_excess(atoms, points) <= 0


def largest_delta_excess(atoms: Atoms, points: Points) -> float:
    """Return the largest excess of an upper bound on δ(ε_i), rounding included, over δ_i; at most 0 if all are met."""
    epsilons = np.array([epsilon for epsilon, _ in points])
    above = atoms.profile(epsilons - atoms.rounding_error_bound) * (1 + 2.0**-51 * (len(atoms.losses) + 8))
    return float(np.max(above - np.array([delta for _, delta in points])))


def _fewest_cells(points: Points) -> float:
    """Return a lower bound on the number of cells on each side; 0 for points without δ."""
    return max((TailRecurrence.steps_to_zero(*point) for point in points if point[1] > 0), default=0.0)


def _build_with_margin(points: Points, margin: float) -> NoiseTable:
    """Return the optimal table of points that are lower by this relative margin, without a check of its certificate."""
    if not _fewest_cells(points) < MAX_TABLE_CELLS:
        raise InputError("points", points, f"points that fewer than {MAX_TABLE_CELLS} cells can meet", COARSER_UNITS)
    inner = [(epsilon * (1 - margin), delta * (1 - margin)) for epsilon, delta in points]
    lines = [TailRecurrence.from_point(*point) for point in inner]
    pure_epsilon = min((epsilon for epsilon, delta in inner if delta == 0), default=None)
    # G_1, G_2, … until they reach 0, or until the line of the pure point attains the maximum for all later steps.
    pure_line, end = None, 0
    if pure_epsilon is not None:
        pure_line = TailRecurrence.from_point(pure_epsilon, 0.0)
        end = pure_line.last_crossing(lines)
    tails = [max(line.fixed_point for line in lines)]
    if len(lines) == 1:  # the same as below, in half of the time
        decay, delta, tail = lines[0].decay, lines[0].delta, tails[0]
        while tail > end:
            tail = max(0, -((delta - tail) * decay >> DIGITS))
            tails.append(tail)
    while tails[-1] > end:
        tails.append(max(0, *(line.next_tail(tails[-1]) for line in lines)))
    steps = tuple(sorted({epsilon for epsilon, _ in inner if epsilon > SMALLEST_STEP}, reverse=True))
    if pure_line is None:
        return build_noise_table(_cell_weights([*tails[:-1], 0]), steps=steps)
    level = tails[-1] * (ONE - pure_line.decay) >> DIGITS
    return build_noise_table(_cell_weights(tails), PlateauTail(level, pure_line.decay), steps)


def _cell_weights(tails: list[int]) -> list[int]:
    """Return p_0 = 1 − 2 G_1, p_k = G_k − G_{k+1}."""
    return [ONE - 2 * tails[0]] + [a - b for a, b in pairwise(tails)]
