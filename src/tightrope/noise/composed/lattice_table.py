"""Integer tables whose privacy losses lie on a lattice by construction: P(X = x) ∝ e^{−h·n(x)} with whole heights n.

All losses are whole multiples of h, so any number of releases is certified by the exact lattice engine in one
transform. A distribution is brought here by rounding its logarithms to multiples of h – losses then move by less than
h, at random, which adds h²/6 a release to the variance of the loss – and h itself is the size that is tuned afterwards.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Self

import numpy as np
import scipy

from tightrope.errors import InsufficientBudgetError
from tightrope.mechanisms.discrete.integer_weights import DIGITS, ONE, fixed_point_exponential
from tightrope.mechanisms.discrete.noise_table import NoiseTable, build_noise_table
from tightrope.noise.composed.candidates import Candidate, CompositionProblem
from tightrope.noise.composed.composed_curve import (
    CurveDerivatives,
    Indices,
    ReleaseLosses,
    curve_derivatives,
    normalize_half_weights,
)
from tightrope.numerics.arrays import Floats

HEIGHT_VARIANCE = 1e-6
"""Fraction of the variance of the loss that rounding the logarithms of weights may add."""
MOST_LOSS_POINTS = 1 << 15
"""Lattice points for the standard deviation of the total loss at most: exact lattices that are finer are coarsened."""
TINY_DELTA = 1e-16
"""Below this δ, rounding of weights off the lattice by up to 10⁻²³ matters: the accountant's grid is closer."""
TABLE_WITHIN = 1e-13
BITS = 30
"""Binary digits of h: multiples up to 2²³ of it are exact, and so are the differences from which it is found."""
FIRST_MARGIN, LAST_MARGIN = 1e-11, 0.1
"""h is reduced by the first margin, relatively, then by the certificate's deficit, until it is certified."""
LESS = 0.1
"""Log δ falls about 1/0.1 times as fast as log h, or faster; where it does not, the margin doubles."""


@dataclass(frozen=True, slots=True, eq=False)
class LatticeWeights:
    """Weights e^{−step·heights[x]} of 0, ±1, …; heights ≥ 0."""

    heights: Indices
    lattice_step: float

    @classmethod
    def from_candidate(cls, question: CompositionProblem, found: Candidate) -> Self:
        """The candidate's own lattice where it has one that is not too fine; else rounded."""
        own = 1 / found.size
        if found.heights is not None and question.gaussian_mean < own * MOST_LOSS_POINTS:
            return cls(found.heights, own)
        return cls.from_rounded_weights(found.half_weights, question.lattice_step(HEIGHT_VARIANCE))

    @classmethod
    def from_rounded_weights(cls, half: Floats, step: float) -> Self:
        """Logarithms of the weights rounded to multiples of the step; weights of 0 end the distribution.

        The center, which takes the remainder of all rounding, is a step above every other cell: equal to one but for
        the remainder it would have a loss of 2⁻¹²⁸ there, on no lattice.
        """
        held = half[: int(np.flatnonzero(half > 0)[-1]) + 1]
        logs = np.log(held, where=held > 0, out=np.full(len(held), -math.inf))
        heights = np.rint((np.max(logs) - np.maximum(logs, -700.0)) / step).astype(np.int64)
        if len(heights) > 1 and heights[0] == heights[1]:
            heights[1:] += 1
        return cls(heights, step)

    def with_largest_step(self, question: CompositionProblem) -> Self:
        """The largest step that meets the points, in floats."""
        size = question.least_size(
            lambda size: ReleaseLosses.from_heights(self.heights, question.shift, 1 / size),
            1 / self.lattice_step,
            TABLE_WITHIN,
            1e-4,
        )
        return type(self)(self.heights, 1 / size)

    def certified_table(self, question: CompositionProblem) -> NoiseTable:
        """The integer table, its step smaller by the first margin for which the exact accountant proves the points.

        Raises ``InsufficientBudgetError`` if all proofs fail.
        """
        for short in (True,) if question.least_delta > TINY_DELTA else (False, True):
            table = self._table_with_margin(question, short)
            if table is not None:
                return table
        raise InsufficientBudgetError(f"no integer table near this law keeps {list(question.points)}; raise delta")

    def _table_with_margin(self, question: CompositionProblem, short: bool) -> NoiseTable | None:
        """The first table that is certified, its step in few digits or as it is."""
        margin = FIRST_MARGIN
        while margin < LAST_MARGIN:
            step = self.lattice_step * (1 - margin)
            if short:
                # Rounded down to ``BITS``: multiples of it are exact floats, and the accountant finds it in them.
                mantissa, exponent = math.frexp(step)
                step = math.ldexp(math.floor(math.ldexp(mantissa, BITS)), exponent - BITS)
            table = type(self)(self.heights, step).integer_table()
            lacking = relative_excess(table, question)
            if lacking <= 0:
                return table
            margin = max(2 * margin, margin + LESS * lacking)
        return None

    def integer_table(self) -> NoiseTable:
        """The integer table nearest below: powers of e^{−step} in fixed point."""
        ratio = fixed_point_exponential(Fraction(self.lattice_step))
        powers: dict[int, int] = {}
        raw, height, weights = ONE, 0, []
        for up in np.diff(self.heights, prepend=0).tolist():
            height += up
            if up >= 0:
                powers.setdefault(up, _fixed_point_power(ratio, up))
                raw = raw * powers[up] >> DIGITS
            else:
                raw = _fixed_point_power(ratio, height)
            weights.append(raw)
        return build_noise_table(weights, steps=(self.lattice_step,))


def table_keeps_points(table: NoiseTable, question: CompositionProblem) -> bool:
    """Return whether the exact accountant proves every point for the integer weights, rounding included."""
    return relative_excess(table, question) <= 0


def relative_excess(table: NoiseTable, question: CompositionProblem) -> float:
    """Return the largest δ(ε_i)/δ_i − 1 that the exact accountant proves; positive without a proof."""
    if not (question.shift == 1 or table.is_unimodal):
        return math.inf
    total = question.releases * table.loss(question.shift)
    excesses = []
    for epsilon, allowed in question.points:
        found = total.delta(epsilon)
        # Each has the sign of found − allowed under any rounding.
        if found <= allowed:
            excesses.append(min(0.0, found - allowed))
        else:
            excesses.append(found / allowed - 1 + 1e-16 if allowed > 0 else math.inf)
    return max(excesses)


def _fixed_point_power(ratio: int, exponent: int) -> int:
    """ratio^exponent in fixed point, by squaring."""
    result = ONE
    for bit in f"{exponent:b}":
        result = result * result >> DIGITS
        if bit == "1":
            result = result * ratio >> DIGITS
    return result


# The distribution itself improved: sequential quadratic programming in the logarithms of the weights.
#
# Least E φ(|X|) subject to Σ p = 1 and log δ_k(ε_i) ≤ log δ_i at the points that bind. With z = d log p each step
# solves
#
#     min c·z + ½ zᵀ(Σ λ_i H_i + μ diag p) z   subject to   A z = −g,
#
# H_i the banded curvature of ``composed_curve``, λ the multipliers of the step before, μ Levenberg's. After a step
# the distribution is tempered (p → p^τ) until it meets the points; it is taken only if it then costs less. So the
# result is at least as good as the start. The problem is not convex for k ≥ 2: the optimum is local.

MOST_POLISHINGS = 40
TOO_LITTLE_GAINED = 3e-6
"""A step that gains less than this fraction of the cost, or nothing, is counted as stalled."""
PATIENCE = 7
"""The search ends after this many stalled steps in a row."""
DAMPING, EASIER, HARDER = 1.0, 0.3, 6.0
LONGEST_STEP = 1.5
"""Largest change of the logarithm of a weight in one step."""
BINDING = 1e-3
"""Points whose log δ is this far below the allowed one do not bind."""
TEMPERED = 1e-9
LIGHTEST = 1e-36
"""Smallest weight; smaller ones at the end are dropped."""
LATTICE_VARIANCE = 4e-6
"""Fraction of the variance of the loss that the lattice may add."""


def polish_weights(question: CompositionProblem, half: Floats) -> Floats:
    """Weights of 0, 1, 2, … that meet the points at no more than the cost of ``half``."""
    state = _PolishState.from_weights(question, half)
    damping, stalled = DAMPING, 0
    for _ in range(MOST_POLISHINGS):
        tried = state.next_state(damping)
        if tried is None or not tried.cost < state.cost:
            stalled, damping = stalled + 1, damping * HARDER
        else:
            stalled = stalled + 1 if tried.cost > state.cost * (1 - TOO_LITTLE_GAINED) else 0
            state, damping = tried, damping * EASIER
        if stalled >= PATIENCE:
            break
    return state.half_weights


@dataclass(frozen=True, slots=True, eq=False)
class _PolishState:
    """Weights that meet the points, their cost, and the derivatives of δ there."""

    question: CompositionProblem
    half_weights: Floats
    cost: float
    binding_curves: tuple[CurveDerivatives, ...]
    allowed_log_deltas: tuple[float, ...]

    @classmethod
    def from_weights(cls, question: CompositionProblem, half: Floats) -> _PolishState:
        step = question.lattice_step(LATTICE_VARIANCE)
        found = [
            (curve_derivatives(half, question.shift, step, question.releases, epsilon), math.log(delta))
            for epsilon, delta in question.points
        ]
        binding = [(line, log) for line, log in found if line.log_delta > log - BINDING] or found[:1]
        lines, allowed = zip(*binding, strict=True)
        return cls(question, half, question.cost_of_weights(half), tuple(lines), tuple(allowed))

    def next_state(self, damping: float) -> _PolishState | None:
        """Return the next weights, tempered, or None."""
        move = self._newton_move(damping)
        if move is None:
            return None
        raw = self.half_weights * np.exp(np.clip(move, -LONGEST_STEP, LONGEST_STEP))
        if self.question.shift > 1:
            raw = np.minimum.accumulate(raw)
        last = int(np.flatnonzero(raw > LIGHTEST)[-1])
        half = temper_weights(self.question, normalize_half_weights(np.maximum(raw[: last + 1], LIGHTEST)))
        if half is None or not self.question.cost_of_weights(half) < self.cost:
            return None
        return _PolishState.from_weights(self.question, half)

    def _newton_move(self, damping: float) -> Floats | None:
        """Changes of the logarithms of the weights."""
        half, count, curves = self.half_weights, len(self.half_weights), self.binding_curves
        ways = np.full(count, 2.0)
        ways[0] = 1.0
        weights = ways * half
        costs = weights * self.question.cost.values_at(np.arange(count, dtype=np.float64))
        rows = np.array([weights, *(half * line.gradient for line in curves)])
        allowed = zip(curves, self.allowed_log_deltas, strict=True)
        wrong = np.array([0.0, *(line.log_delta - log for line, log in allowed)])
        # The least-squares multipliers of c + Aᵀλ = 0; multipliers of points are ≥ 0.
        inverse = 1 / np.maximum(weights, 1e-300)
        found = np.linalg.lstsq((rows * inverse) @ rows.T, -(rows * inverse) @ costs, rcond=None)[0]
        multipliers = np.concatenate([found[:1], np.maximum(found[1:], 0.0)])
        # From curvature in p to curvature in log p: diag(p) H diag(p).
        scaled_band = sum(m * line.curvature_band for m, line in zip(multipliers[1:], curves, strict=True))
        band = np.zeros_like(scaled_band)
        shift = len(scaled_band) - 1
        for apart in range(shift + 1):
            row = shift - apart
            band[row, apart:] = scaled_band[row, apart:] * half[apart:] * half[: len(half) - apart]
        band[-1] += damping * self.cost * weights + 1e-300
        try:
            solved = scipy.linalg.solveh_banded(band, np.column_stack([costs, *rows]))
            dual = np.linalg.solve(rows @ solved[:, 1:], wrong - rows @ solved[:, 0])
        except (scipy.linalg.LinAlgError, ValueError):
            return None
        move = -solved[:, 0] - solved[:, 1:] @ dual
        return np.asarray(move) if np.all(np.isfinite(move)) else None


def temper_weights(question: CompositionProblem, half: Floats) -> Floats | None:
    """Return p^τ with the τ nearest 1 that meets the points; None if that is far away."""
    step, logs = question.lattice_step(LATTICE_VARIANCE), np.log(half / half[0])

    def release_at(size: float) -> ReleaseLosses:
        return ReleaseLosses.from_weights(normalize_half_weights(np.exp(logs / size)), question.shift, step)

    try:
        size = question.least_size(release_at, 1.0, TEMPERED, 1e-4)
    except InsufficientBudgetError:
        return None
    return normalize_half_weights(np.exp(logs / size))
