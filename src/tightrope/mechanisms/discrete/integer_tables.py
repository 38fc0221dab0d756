"""Tables of the classic integer laws; planners build mechanisms from them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
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
    Plateaus,
    exponential,
    powers,
)
from tightrope.mechanisms.discrete.noise_table import NoiseTable, tabulate
from tightrope.numerics.checks import filled, non_negative, positive, probability, whole
from tightrope.randomness.alias_sampler import BITS

PRIVATE_SIDE = 1 - 2.0**-48
"""Laws that are asked for by ε are built for this much of it: the certified ε, rounding included, stays below."""

LARGEST_GAUSSIAN = 1e5
SMALLEST_GAUSSIAN = 0.1
MOST_TABLE_CELLS = 1 << 21
COARSER = "measure in coarser units, or widen a smaller table (mechanisms.integer.widened)"


def geometric_table(scale: float) -> NoiseTable:
    """p_x ∝ e^{−|x|/scale} on all integers: the discrete Laplace law, with an exact geometric tail.

    The scale that runs is scale / (1 − 2⁻⁴⁸). Raises ``InputError`` unless 1/40 ≤ scale ≤ 10⁶.

    >>> round(geometric_table(2.0).mean_absolute, 12) == round(1 / math.sinh(0.5), 12)
    True
    """
    scale = scale_between(scale, 1 / LARGEST_STEP, LARGEST_SCALE)
    return staircase_table(1 / scale, 1)


def staircase_table(epsilon: float, period: int, high: int = 1) -> NoiseTable:
    """Weights e^{−iε} on plateaus: |x| < high at i = 0, then ``period`` cells a plateau; 1 ≤ high ≤ period.

    Pure ε-DP for shifts up to ``period``, with ε (1 − 2⁻⁴⁸) inside and an exact tail; ε above 40 is taken as 40.
    """
    step = min(positive("epsilon", epsilon), LARGEST_STEP) * PRIVATE_SIDE
    period = whole("sensitivity", period)
    if not period / step <= 2 * LARGEST_SCALE:
        raise InputError("epsilon", epsilon, f"at least sensitivity / {LARGEST_SCALE:g}", COARSER)
    ratio = exponential(Fraction(step))
    return tabulate([ONE] * whole("high", high), Plateaus(ratio, ratio, period), (step,))


def truncated_geometric(*, scale: float, largest: int) -> NoiseTable:
    """p_x ∝ e^{−|x|/scale} for |x| ≤ largest, else 0; cells below 2⁻¹²⁸ are empty."""
    scale = scale_between(scale, 1 / LARGEST_STEP, LARGEST_SCALE)
    largest = whole("largest", largest, at_least=0)
    if not largest < MOST_TABLE_CELLS:
        raise InputError("largest", largest, f"below {MOST_TABLE_CELLS}", COARSER)
    step = PRIVATE_SIDE / scale
    cells = min(largest, math.ceil(BITS * math.log(2) * scale))
    return tabulate(powers(exponential(Fraction(step)), cells + 1), steps=(step,))


def gaussian_table(scale: float) -> NoiseTable:
    """p_x ∝ e^{−x²/(2 scale²)} as far as cells hold 2⁻¹²⁸: the missing rest is mass at infinite loss, and is certified.

    Successive weights by w_{x+1} = w_x t_x, t_{x+1} = t_x q with q = e^{−1/scale²}, in fixed point.
    Raises ``InputError`` unless 0.1 ≤ scale ≤ 10⁵.
    """
    scale = scale_between(scale, SMALLEST_GAUSSIAN, LARGEST_GAUSSIAN)
    half_precision = 1 / (2 * Fraction(scale) ** 2)
    ratio, factor = exponential(half_precision), exponential(2 * half_precision)
    raw = [ONE]
    while raw[-1] >> (DIGITS - BITS):  # at least 2^{-128} of the weight of 0
        raw.append(raw[-1] * ratio >> DIGITS)
        ratio = ratio * factor >> DIGITS
    return tabulate(raw, steps=(1 / (2 * scale * scale),))


def scale_between(scale: object, low: float, high: float) -> float:
    """A positive scale in [low, high]; raises ``InputError`` with what to do instead."""
    number = positive("scale", scale, "the scale is the size of the noise in units of the answer")
    if not number >= low:
        raise InputError("scale", scale, f"at least {low:g}", "smaller noise protects nobody: ask for more")
    if not number <= high:
        raise InputError("scale", scale, f"at most {high:g}", COARSER)
    return number


# The least integer noise of sensitivity 1 for a list of points (ε_i, δ_i): a closed form (theory §4.1).
#
# With f the trade-off function of the list and c its fixed point: G_1 = c = max_i (1 − δ_i)/(1 + e^{ε_i}), G_{k+1} =
# f(1 − G_k) = max_i e^{−ε_i}(G_k − δ_i), P(X ≥ k) = G_k. |X| is stochastically smallest among all integer noises with
# this guarantee: it minimises E φ(|X|) for every non-decreasing φ at once.

Points = Sequence[tuple[float, float]]

MARGINS = (1 - PRIVATE_SIDE, 2.0**-46, 2.0**-44, 2.0**-40, 2.0**-32, 2.0**-24, 2.0**-16)
"""How much smaller than asked the points are made, tried in this order until the integer table keeps what was asked."""

SMALLEST_STEP = 1e-9
"""No ideal spacing of losses is declared below this."""

NEVER = 1e-24
"""A δ below this is taken as 0: a table of 128 bits could not tell."""


@dataclass(frozen=True, slots=True)
class Line:
    """G ↦ e^{−ε}(G − δ) in fixed point, rounded up."""

    decay: int
    delta: int

    @classmethod
    def of(cls, epsilon: float, delta: float) -> Self:
        """The line of the point (ε, δ), rounded to the private side."""
        return cls(exponential(Fraction(epsilon)) + 1, int(Fraction(delta) * ONE))

    def at(self, tail: int) -> int:
        """e^{−ε}(G − δ)."""
        return -((self.delta - tail) * self.decay >> DIGITS)

    @property
    def fixed_point(self) -> int:
        """(1 − δ) e^{−ε} / (1 + e^{−ε})."""
        return -(-(ONE - self.delta) * self.decay // (ONE + self.decay))


def optimal_table(points: Points) -> NoiseTable:
    """The optimal table of sensitivity 1 for points (ε_i ≥ 0, δ_i); (0, η) is a total variation of η.

    Where some δ_i = 0 the law has an exact geometric tail, else it ends. ε above 40 is taken as 40, δ below 1e−24 as 0.
    The certified δ at each ε_i, rounding included, is at most δ_i. Raises ``InputError`` for points that are none.

    >>> table = optimal_table([(1, 1e-6)])
    >>> round(table.mean_absolute, 12), round(table.mean_squared, 12)
    (0.850902115757, 1.841099853871)
    """
    pairs = list(points)
    filled("points", pairs, "say [(1, 1e-6)]")
    asked = [_point(epsilon, delta) for epsilon, delta in pairs]
    return first_within(lambda margin: _built(asked, margin), 1, asked)


def first_within(build: Callable[[float], NoiseTable], sensitivity: int, points: Points) -> NoiseTable:
    """The first table over ``MARGINS`` whose certified profile keeps every point for that sensitivity."""
    for margin in MARGINS:
        table = build(margin)
        if keeps(table.atoms(sensitivity), points):
            return table
    raise InputError("delta", [d for _, d in points], "at least 1e-24, or 0", "such a budget needs delta=0 noise")


def keeps(atoms: Atoms, points: Points) -> bool:
    """Whether an upper bound on δ(ε_i), rounding included, is at most δ_i for every point."""
    return excess(atoms, points) <= 0


def excess(atoms: Atoms, points: Points) -> float:
    """The most by which an upper bound on δ(ε_i), rounding included, is above δ_i; at most 0 where all are kept."""
    epsilons = np.array([epsilon for epsilon, _ in points])
    above = atoms.profile(epsilons - atoms.slack) * (1 + 2.0**-51 * (len(atoms.losses) + 8))
    return float(np.max(above - np.array([delta for _, delta in points])))


def _point(epsilon: float, delta: float) -> tuple[float, float]:
    epsilon, delta = min(non_negative("epsilon", epsilon), LARGEST_STEP), probability("delta", delta)
    if not delta < 1:
        raise InputError("delta", delta, "below 1", "leave the point out: it promises nothing")
    if delta >= NEVER:
        return epsilon, delta
    if not epsilon >= 1 / LARGEST_SCALE:
        raise InputError("epsilon", epsilon, f"at least {1 / LARGEST_SCALE:g} where delta = 0", COARSER)
    return epsilon, 0.0


def _built(points: Points, margin: float) -> NoiseTable:
    fewest = max((_fewest_cells(*point) for point in points if point[1] > 0), default=0.0)
    if not fewest < MOST_TABLE_CELLS:
        raise InputError("points", points, f"points that fewer than {MOST_TABLE_CELLS} cells can keep", COARSER)
    inner = [(epsilon * (1 - margin), delta * (1 - margin)) for epsilon, delta in points]
    lines = [Line.of(*point) for point in inner]
    endless = min((epsilon for epsilon, delta in inner if delta == 0), default=None)
    last = None if endless is None else Line.of(endless, 0.0)
    tails = _tails(lines, last)
    steps = tuple(sorted({epsilon for epsilon, _ in inner if epsilon > SMALLEST_STEP}, reverse=True))
    if last is None:
        return tabulate(_differences([*tails, 0]), steps=steps)
    level = tails[-1] * (ONE - last.decay) >> DIGITS
    return tabulate(_differences(tails), Plateaus(level, last.decay), steps)


def _fewest_cells(epsilon: float, delta: float) -> float:
    """Steps from G_1 to 0 for one point alone, δ > 0: log(1 + G_1 (1 − e^{−ε}) e^ε / δ) / ε."""
    decay = math.exp(-epsilon)
    first = (1 - delta) * decay / (1 + decay)
    return math.log1p(-first * math.expm1(-epsilon) / (decay * delta)) / epsilon if epsilon > 0 else first / delta


def _tails(lines: list[Line], last: Line | None) -> list[int]:
    """G_1, G_2, … until they reach 0, or until ``last`` has decided and decides for ever."""
    tails = [max(line.fixed_point for line in lines)]
    settled = _last_crossing(lines, last) if last else 0
    while tails[-1] > settled:
        tails.append(max(0, *(line.at(tails[-1]) for line in lines)))
    return tails if last else tails[:-1]


def _last_crossing(lines: list[Line], last: Line) -> int:
    """Below this G no line is above ``last``: a (G − δ) ≤ b G ⇔ G ≤ aδ / (a − b)."""
    bounds = [a.decay * a.delta // (a.decay - last.decay) for a in lines if a.decay > last.decay]
    return min(bounds, default=ONE)


def _differences(tails: list[int]) -> list[int]:
    """p_0 = 1 − 2 G_1, p_k = G_k − G_{k+1}."""
    return [ONE - 2 * tails[0]] + [a - b for a, b in pairwise(tails)]
