"""Repair of float weights that nearly meet a guarantee: an integer table that meets it, checked by the accountant.

Mixing in a fraction λ of a distribution that meets smaller δ_i removes a small excess, because hockey-stick divergences
are convex in the pair. If δ = 0, every weight is raised to at least e^{−ε} times those from which a shift leads to it,
and the distribution continues indefinitely in that ratio. The smallest fraction whose table the accountant accepts is
used; all checks are on the integers that will be sampled.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate, islice

import numpy as np

from tightrope.errors import InputError, PrecisionError
from tightrope.mechanisms.discrete.integer_tables import PRIVATE_SIDE, optimal_table, table_meets_points
from tightrope.mechanisms.discrete.integer_weights import DIGITS, LARGEST_STEP, ONE, Tail, fixed_point_exponential
from tightrope.mechanisms.discrete.noise_table import NoiseTable, build_noise_table
from tightrope.numerics.arrays import Floats
from tightrope.randomness.alias_sampler import TOTAL

# A feasible distribution for any sensitivity Δ from the optimum of sensitivity 1: plateaus as wide as Δ.
#
# Y meets the points at shift 1, U is uniform on 0..Δ−1, X = ΔY + U − ⌊Δ/2⌋. Adding d ≤ Δ to X adds 1 to Y with
# probability d/Δ, depending on U, and otherwise 0: X meets the points at every shift 1..Δ. So does its average with its
# mirror image, which is symmetric and unimodal. The linear program is scaled by it, and the repair mixes it in.

MOST_PROGRAM_CELLS = 20_000
"""Maximal cells per side of a linear program."""
SMALLEST_LISTED = 1e-9
"""Unbounded distributions are listed until their weights are below this multiple of p_0."""
DELTA_FRACTION = 0.75
"""The distribution that is mixed in meets this fraction of every δ."""


@dataclass(frozen=True, slots=True)
class ReferenceWeights:
    """Integer weights of |x| = 0..N, some of them 0 at the end, and N."""

    weights: tuple[int, ...]

    @classmethod
    def from_points(cls, points: tuple[tuple[float, float], ...], sensitivity: int) -> ReferenceWeights:
        """Return weights that meet ``DELTA_FRACTION`` of every δ at all shifts; ``InputError`` if too many cells."""
        if any(d > 0 and estimated_levels(e, d) * sensitivity > MOST_PROGRAM_CELLS for e, d in points):
            raise _too_wide_error(sensitivity)
        table = optimal_table([(epsilon, delta * DELTA_FRACTION) for epsilon, delta in points])
        # P(Y = 0), P(Y = 1), … in units of 2⁻¹²⁸, down to ``SMALLEST_LISTED``.
        levels, faint = list[int](), int(table.center * SMALLEST_LISTED)
        for weight in islice(table.cell_weights(), MOST_PROGRAM_CELLS // sensitivity + 2):
            if weight <= faint and table.tail is not None:
                break
            levels.append(weight)
        cells = sensitivity * (len(levels) + 1)
        if not cells <= MOST_PROGRAM_CELLS:
            raise _too_wide_error(sensitivity)
        levels += [0] * (cells // sensitivity + 2 - len(levels))
        half = sensitivity // 2
        sums = (
            levels[abs((x + half) // sensitivity)] + levels[abs((half - x) // sensitivity)] for x in range(cells + 1)
        )
        return cls(tuple(sums))

    @property
    def relative_weights(self) -> Floats:
        """Weights relative to the first."""
        return np.array([w / self.weights[0] for w in self.weights])


def estimated_levels(epsilon: float, delta: float) -> float:
    """Return about how many sensitivities the noise of this point extends (theory §4): A/Δ, δ > 0.

    >>> round(estimated_levels(1.0, 1e-6), 2), estimated_levels(0.0, 0.1)
    (13.66, 5.0)
    """
    if epsilon == 0:
        return 1 / (2 * delta)
    return math.log1p(math.expm1(min(epsilon, 700.0)) / (2 * delta)) / epsilon


def _too_wide_error(sensitivity: int) -> InputError:
    expected = f"small enough for noise of fewer than {MOST_PROGRAM_CELLS} cells"
    remedy = "measure in coarser units: round the answers to multiples of a unit first, and divide by it"
    return InputError("sensitivity", sensitivity, expected, remedy)


# The repair.

MIN_FRACTION = 2.0**-45
"""The fraction of the reference that is tried first after 0; later ones grow by the next factor."""
FRACTION_GROWTH = 8.0
FRACTION_BITS = 60
"""The fraction is rounded up to a multiple of 2⁻⁶⁰."""
CLEAR_BITS = 40
"""Weights that differ by 2⁻⁴⁰ of themselves keep their order when they are rounded."""


@dataclass(frozen=True, slots=True)
class TableRepair:
    """The constraints on the table: the points at every shift up to ``sensitivity``, and unimodality."""

    points: tuple[tuple[float, float], ...]
    sensitivity: int
    unimodal: bool
    reference: ReferenceWeights

    @property
    def endless_epsilon(self) -> float | None:
        """The least ε with δ = 0; None if every δ is positive."""
        return min((epsilon for epsilon, delta in self.points if delta == 0), default=None)

    def repair_table(self, weights: Floats) -> NoiseTable:
        """Return a table near the float weights p_0..p_N that meets the guarantee; ``PrecisionError`` on failure."""
        fraction = repair_mixing_fraction(weights, self.points, self.sensitivity)
        while True:
            table = self._mix_reference(weights, fraction)
            if holds_at_all_shifts(table, self.points, self.sensitivity):
                return table
            if fraction == 1:
                break
            fraction = min(1.0, max(MIN_FRACTION, fraction * FRACTION_GROWTH))
        raise PrecisionError(f"no table of 128 bits could be shown to meet {self.points!r}; use a larger delta")

    def _mix_reference(self, weights: Floats, fraction: float) -> NoiseTable:
        """Return the table of (1 − fraction) · weights + fraction · reference."""
        scaled_weights = [int(max(w, 0.0) * 2.0**106) << (DIGITS - 106) for w in weights.tolist()]
        reference = self.reference.weights
        scaled_weights += [0] * (len(reference) - len(scaled_weights))
        fixed_fraction = min(1 << FRACTION_BITS, math.ceil(fraction * 2.0**FRACTION_BITS))
        weight_factor, reference_factor = (
            ((1 << FRACTION_BITS) - fixed_fraction) * _two_sided_sum(reference),
            fixed_fraction * _two_sided_sum(scaled_weights),
        )
        raw = [
            a * weight_factor + b * reference_factor
            for a, b in zip(scaled_weights, [*reference, *[0] * (len(scaled_weights) - len(reference))], strict=True)
        ]
        if self.endless_epsilon is not None:
            return self._endless_table(raw)
        return build_noise_table(_make_decreasing(raw) if self.unimodal else raw)

    def _endless_table(self, raw: list[int]) -> NoiseTable:
        """Return the table with weights raised to meet ε with δ = 0, and with the tail that continues them."""
        epsilon = min(self.endless_epsilon or 0.0, LARGEST_STEP)
        ratio = fixed_point_exponential(Fraction(epsilon * PRIVATE_SIDE))
        while raw[-1] == 0:
            raw.pop()
        for x in range(1, len(raw)):
            raw[x] = max(raw[x], ratio * self._largest_reachable(raw, x) >> DIGITS)
        raw = _make_decreasing(raw) if self.unimodal else raw
        # drop final weights that equal the continuation, up to 2⁻⁴⁰: the tail generates them
        while (
            len(raw) > 1
            and raw[-1] - (raw[-1] >> CLEAR_BITS) <= ratio * self._largest_reachable(raw, len(raw)) >> DIGITS
        ):
            raw.pop()
        start = len(raw)
        for x in range(start, start + self.sensitivity):
            raw.append(-(-ratio * self._largest_reachable(raw, x) >> DIGITS))
        # The table with weights `head` and then `block`, `ratio` times it, and so on.
        head = raw[:start]
        block = raw[start:]
        tail_sum = sum(block) * ONE // (ONE - ratio)
        total = 2 * (sum(head) + tail_sum) - head[0]
        half = tuple(w * TOTAL // total for w in head[1:])
        escape_in = tail_sum * TOTAL // total
        cells = tuple(b * (ONE - ratio) * TOTAL // (sum(block) * ONE) for b in block)
        tail = Tail(cells, escape_in, TOTAL - sum(cells))
        return NoiseTable(TOTAL - 2 * (sum(half) + escape_in), half, tail)

    def _largest_reachable(self, raw: Sequence[int], x: int) -> int:
        """Return the largest weight that x can be shifted to, towards 0."""
        if self.unimodal:
            return raw[abs(x - self.sensitivity)] if abs(x - self.sensitivity) < x else 0
        return max(raw[max(0, x - self.sensitivity) : x])


def holds_at_all_shifts(table: NoiseTable, points: Sequence[tuple[float, float]], sensitivity: int) -> bool:
    """Return whether the accountant proves every point at every shift 1..sensitivity, rounding included.

    For unimodal tables (checked in integers) the largest shift dominates all others (theory §4).
    """
    shifts = range(sensitivity if table.is_unimodal else 1, sensitivity + 1)
    return all(table_meets_points(table.atoms_for_shift(shift), points) for shift in shifts)


def repair_mixing_fraction(weights: Floats, points: Sequence[tuple[float, float]], sensitivity: int) -> float:
    """Return the fraction of the stricter distribution that offsets the largest excess over a δ_i, or 0, in floats.

    The result is checked by the accountant afterwards.
    """
    padded = np.concatenate([np.zeros(sensitivity), weights[:0:-1], weights, np.zeros(sensitivity)])
    worst = 0.0
    for epsilon, delta in points:
        if delta == 0:
            continue
        factor = math.exp(min(epsilon, 700.0))
        deltas = [float(np.maximum(padded[d:] - factor * padded[:-d], 0).sum()) for d in range(1, sensitivity + 1)]
        excess = max(0.0, max(deltas) - delta)
        worst = max(worst, excess / (excess + (1 - DELTA_FRACTION) * delta))
    return worst * 1.001


def _two_sided_sum(half: Sequence[int]) -> int:
    """Return the sum over −N..N of symmetric weights."""
    return 2 * sum(half) - half[0]


def _make_decreasing(raw: Sequence[int]) -> list[int]:
    """Return the weights, each raised to the largest one further out."""
    return list(accumulate(reversed(raw), max))[::-1]
