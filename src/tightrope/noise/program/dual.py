"""A lower bound on the cost of any noise from multipliers, which may be inexact (theory §4.2).

For every privacy point (ε, δ) and shift d take w ≥ 0 and 0 ≤ y_k ≤ w, k ∈ ℤ. Every distribution p that meets the point
at shift d has Σ_k y_k (p_k − e^ε p_{k−d}) ≤ w δ, so E c = Σ_k p_k c_k ≥ Σ_k p_k r_k − Σ w δ with

    r_k = c_k + Σ (y_k − e^ε y_{k+d}),    hence    E c ≥ min_k (r_k + r_{−k})/2 − Σ w δ:

averaging with its mirror image keeps a distribution private and costs the same. A unimodal distribution is a mixture of
uniform distributions on −j..j: for these the averages of r over −j..j replace r. Every y gives a valid bound, so a
solver may be inexact.

**Rounding.** e^ε is rounded up; a sum of n terms errs by less than n u times the sum of their sizes; the bound is
lowered by 8 u (2n + 2) (c_max + Σ (1 + e^ε) w).
**Beyond the listed values** y is ``left_value`` on the left and 0 on the right, so (r_k + r_{−k})/2 is
c_k − ½ Σ (e^ε − 1) left_value there, which does not decrease with |k|: one more value suffices.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tightrope.noise.program.request import Shape
from tightrope.numerics.arrays import Floats
from tightrope.numerics.rounding import ROUND_OFF

LARGEST_EPSILON = 300.0
"""Points with a larger ε are omitted, since e^ε would overflow."""

SOLVER_ROUNDING = 2.0**-30
"""Relative differences below this are rounding errors of the solver and are not improved."""

Costs = Callable[[int], Floats]
"""A function of N that returns c_0, …, c_N: non-decreasing costs."""


@dataclass(frozen=True, slots=True, eq=False)
class DualMultiplier:
    """The multipliers y_k of the point (ε, δ) at one shift.

    y_k is ``values[k − start]``, ``left_value`` before them and 0 after them; all are in [0, w], w = ``cap``.
    """

    epsilon: float
    delta: float
    shift: int
    cap: float
    start: int
    values: Floats
    left_value: float

    @property
    def exp_epsilon(self) -> float:
        """The factor e^ε, rounded up."""
        return math.nextafter(math.exp(self.epsilon) * (1 + 8 * ROUND_OFF), math.inf)

    @property
    def index_reach(self) -> int:
        """The least n such that y_k and y_{k+d} are constant for k < −n and for k > n, or a little more."""
        return max(abs(self.start), abs(self.start + len(self.values))) + self.shift + 1

    def values_between(self, first: int, last: int) -> Floats:
        """Return y_k for k = first..last."""
        values = np.zeros(last - first + 1)
        values[: max(0, min(self.start - first, len(values)))] = self.left_value
        low, high = max(first, self.start), min(last + 1, self.start + len(self.values))
        if low < high:
            values[low - first : high - first] = self.values[low - self.start : high - self.start]
        return values

    def with_point(self, epsilon: float, delta: float) -> DualMultiplier:
        """Return the same multipliers for another point: they give a valid bound for it."""
        return replace(self, epsilon=epsilon, delta=delta)

    def stretch_cells(self, factor: int) -> DualMultiplier:
        """Return the multiplier for cells ``factor`` times as fine: y is linear between neighboring old cells."""
        nodes = np.arange(len(self.values) + 2) * factor
        whole = np.concatenate([[self.left_value], self.values, [0.0]])
        fine = np.interp(np.arange(1, nodes[-1]), nodes, whole)
        start = (self.start - 1) * factor + 1
        return DualMultiplier(self.epsilon, self.delta, self.shift * factor, self.cap, start, fine, self.left_value)

    def to_data(self) -> dict[str, Any]:
        """Return plain data; floats are exact in JSON."""
        return {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "shift": self.shift,
            "cap": self.cap,
            "start": self.start,
            "left": self.left_value,
            "values": self.values.tolist(),
        }


def proven_least_cost(multipliers: Sequence[DualMultiplier], costs: Costs, shape: Shape) -> float:
    """Return a lower bound on E c of distributions of that shape that meet the points at the multipliers' shifts.

    >>> one = DualMultiplier(1.0, 0.0, 1, 2.0, -1, np.array([1.0, 0.5]), 0.0)
    >>> proven_least_cost([one], lambda n: np.arange(n + 1.0), "any") <= 1 / math.sinh(1)
    True
    """
    used = [m for m in multipliers if m.epsilon <= LARGEST_EPSILON and m.cap > 0]
    reach = max((m.index_reach for m in used), default=1)
    values = costs(reach + 1)
    reduced = values[:-1] + _mirror_average(_multiplier_sums(used, reach))
    left_sum = math.fsum((m.exp_epsilon - 1) * m.left_value for m in used) / 2
    beyond = float(values[-1]) - left_sum
    if shape == "unimodal":  # means over −j..j, for every j
        averaged = (2 * np.cumsum(reduced) - reduced[0]) / (2.0 * np.arange(len(reduced)) + 1)
    else:
        averaged = reduced
    delta_cost = math.fsum(m.delta * m.cap for m in used)
    size = float(values[-1]) + math.fsum((1 + m.exp_epsilon) * m.cap for m in used)
    terms = 2 * len(used) + 2 + (2 * reach if shape == "unimodal" else 0)
    bound = min(float(averaged.min()), beyond) - delta_cost - 8 * ROUND_OFF * terms * size
    return max(math.nextafter(bound, -math.inf), float(values[0]))


def improve_dual_multipliers(multipliers: Sequence[DualMultiplier], costs: Costs) -> tuple[DualMultiplier, ...]:
    """Return the multipliers, or better ones: y is raised where r_k + r_{−k} is less than at 0 by more than rounding.

    Solvers are inexact in cells that hardly matter. Raising y at −k by t raises r there by t and lowers it at −k − d,
    further out, by e^ε t: differences within rounding are left alone, or they would grow.
    """
    if not all(m.epsilon <= LARGEST_EPSILON for m in multipliers) or not multipliers:
        return tuple(multipliers)
    main_index = min(range(len(multipliers)), key=lambda i: (multipliers[i].delta, -multipliers[i].shift))
    improved = [*multipliers]
    main = multipliers[main_index]
    reach = max(m.index_reach for m in multipliers)
    reduced = costs(reach) + _mirror_average(_multiplier_sums(multipliers, reach))
    target = float(reduced[0]) * (1 - SOLVER_ROUNDING)
    values, max_value = main.values.copy(), main.cap if main.delta > 0 else math.inf
    for k in range(max(1, 1 - main.start - len(values)), 1 - main.start):
        increase = min(2 * (target - float(reduced[k])), max_value - values[-k - main.start])
        if increase > 0:
            values[-k - main.start] += increase
            reduced[k + main.shift] -= main.exp_epsilon * increase / 2
    cap = max(main.cap, float(values.max(initial=0.0)))
    improved[main_index] = replace(main, values=values, cap=cap)
    candidates = (tuple(multipliers), tuple(improved))
    return max(candidates, key=lambda numbers: proven_least_cost(numbers, costs, "any"))


def _multiplier_sums(multipliers: Sequence[DualMultiplier], reach: int) -> Floats:
    """Return Σ (y_k − e^ε y_{k+d}) for k = −reach..reach."""
    total = np.zeros(2 * reach + 1)
    for m in multipliers:
        y = m.values_between(-reach, reach + m.shift)
        total += y[: len(total)] - m.exp_epsilon * y[m.shift :]
    return total


def _mirror_average(values: Floats) -> Floats:
    """Return (v_k + v_{−k})/2 for k = 0..reach."""
    middle = len(values) // 2
    return np.asarray((values[middle:] + values[middle::-1]) / 2, dtype=np.float64)
