"""Integer tables whose privacy losses lie on a lattice by construction: P(X = x) ∝ e^{−h·n(x)} with integer heights n.

All losses are integer multiples of h, so any number of releases is certified by the exact lattice method in one
transform. Other distributions get this form by rounding their logarithms to multiples of h: losses then change by less
than h, at random, which adds h²/6 per release to the variance of the loss. Afterwards h is tuned as the size.

1. Tables and their certification (``LatticeWeights``).
2. Optimization of the weights themselves (``polish_noise_weights``).
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
    composed_curve_derivatives,
    normalize_half_weights,
)
from tightrope.numerics.arrays import Floats

HEIGHT_VARIANCE = 1e-6
"""Fraction of the variance of the loss that rounding the logarithms of weights may add."""
MAX_LOSS_POINTS = 1 << 15
"""Maximal number of lattice points per standard deviation of the total loss: finer lattices are replaced."""
TINY_DELTA = 1e-16
"""Below this δ, rounding h to few digits, which changes weights by up to 10⁻²³, matters; so it is not rounded first."""
STEP_TOLERANCE = 1e-13
"""Relative tolerance of the largest h that meets the points."""
STEP_BITS = 30
"""Binary digits of h: products of h and integers up to 2²³ are exact, and so are differences of losses."""
FIRST_MARGIN, LAST_MARGIN = 1e-11, 0.1
"""h is reduced by the first margin, relatively, then by the certificate's deficit, until it is certified."""
STEP_SENSITIVITY = 0.1
"""The number log δ changes at least about 1/0.1 times as fast as log h; if this is not enough, the margin doubles."""


@dataclass(frozen=True, slots=True, eq=False)
class LatticeWeights:
    """Weights e^{−lattice_step·heights[|x|]} of 0, ±1, …; heights ≥ 0."""

    heights: Indices
    lattice_step: float

    @classmethod
    def from_candidate(cls, problem: CompositionProblem, candidate: Candidate) -> Self:
        """Return the candidate on its own lattice, if it has one that is not too fine; otherwise rounded to one."""
        candidate_step = 1 / candidate.size
        if candidate.heights is not None and problem.gaussian_mean < candidate_step * MAX_LOSS_POINTS:
            return cls(candidate.heights, candidate_step)
        return cls.from_rounded_weights(candidate.half_weights, problem.lattice_step(HEIGHT_VARIANCE))

    @classmethod
    def from_rounded_weights(cls, half: Floats, step: float) -> Self:
        """Return the weights with logarithms rounded to multiples of the step; trailing weights of 0 are dropped.

        The center is at least one step above its neighbor: integer tables add the remainder of all rounding to it, so
        if the two were equal, their loss would be about 2⁻¹²⁸, off the lattice.
        """
        positive = half[: int(np.flatnonzero(half > 0)[-1]) + 1]
        logs = np.log(positive, where=positive > 0, out=np.full(len(positive), -math.inf))
        heights = np.rint((np.max(logs) - np.maximum(logs, -700.0)) / step).astype(np.int64)
        if len(heights) > 1 and heights[0] == heights[1]:
            heights[1:] += 1
        return cls(heights, step)

    def with_largest_step(self, problem: CompositionProblem) -> Self:
        """Return the weights with the largest step that meets the points, in floats."""
        size = problem.least_size(
            lambda size: ReleaseLosses.from_heights(self.heights, problem.shift, 1 / size),
            1 / self.lattice_step,
            STEP_TOLERANCE,
            1e-4,
        )
        return type(self)(self.heights, 1 / size)

    def certified_table(self, problem: CompositionProblem) -> NoiseTable:
        """Return the integer table with the largest step tried for which the exact accountant proves the points.

        Raises ``InsufficientBudgetError`` if all of them fail.
        """
        for rounds_step in (True,) if problem.least_delta > TINY_DELTA else (False, True):
            table = self._table_with_margin(problem, rounds_step)
            if table is not None:
                return table
        raise InsufficientBudgetError(
            f"no integer table near this noise meets {list(problem.points)}; use a larger delta"
        )

    def _table_with_margin(self, problem: CompositionProblem, rounds_step: bool) -> NoiseTable | None:
        """Return the first certified table with growing margins; ``rounds_step``: the step has ``STEP_BITS`` digits."""
        margin = FIRST_MARGIN
        while margin < LAST_MARGIN:
            step = self.lattice_step * (1 - margin)
            if rounds_step:
                # Rounded down to ``STEP_BITS``: multiples are exact floats, and the accountant finds the step in them.
                mantissa, exponent = math.frexp(step)
                step = math.ldexp(math.floor(math.ldexp(mantissa, STEP_BITS)), exponent - STEP_BITS)
            table = type(self)(self.heights, step).integer_table()
            excess = relative_delta_excess(table, problem)
            if excess <= 0:
                return table
            margin = max(2 * margin, margin + STEP_SENSITIVITY * excess)
        return None

    def integer_table(self) -> NoiseTable:
        """Return the integer table of these weights, rounded down: powers of e^{−step} in fixed point."""
        ratio = fixed_point_exponential(Fraction(self.lattice_step))
        powers: dict[int, int] = {}
        raw, height, weights = ONE, 0, []
        for difference in np.diff(self.heights, prepend=0).tolist():
            height += difference
            if difference >= 0:
                powers.setdefault(difference, _fixed_point_power(ratio, difference))
                raw = raw * powers[difference] >> DIGITS
            else:
                raw = _fixed_point_power(ratio, height)
            weights.append(raw)
        return build_noise_table(weights, steps=(self.lattice_step,))


def table_keeps_points(table: NoiseTable, problem: CompositionProblem) -> bool:
    """Return whether the exact accountant proves every point for the integer weights, rounding included."""
    return relative_delta_excess(table, problem) <= 0


def relative_delta_excess(table: NoiseTable, problem: CompositionProblem) -> float:
    """Return the largest δ(ε_i)/δ_i − 1 by the exact accountant; it is at most 0 exactly if every point is proven."""
    if not (problem.shift == 1 or table.is_unimodal):
        return math.inf
    total = problem.releases * table.loss(problem.shift)
    excesses = []
    for epsilon, allowed in problem.points:
        delta = total.delta(epsilon)
        # Each excess has the sign of delta − allowed under any rounding.
        if delta <= allowed:
            excesses.append(min(0.0, delta - allowed))
        else:
            excesses.append(delta / allowed - 1 + 1e-16 if allowed > 0 else math.inf)
    return max(excesses)


def _fixed_point_power(ratio: int, exponent: int) -> int:
    """Return ratio^exponent in fixed point, by repeated squaring."""
    result = ONE
    for bit in f"{exponent:b}":
        result = result * result >> DIGITS
        if bit == "1":
            result = result * ratio >> DIGITS
    return result


# 2. Optimization of the weights: sequential quadratic programming in their logarithms.
#
# Minimize E φ(|X|) subject to Σ p = 1 and log δ_k(ε_i) ≤ log δ_i at the points that bind. With z = d log p each step
# solves
#
#     min c·z + ½ zᵀ(Σ λ_i H_i + μ diag p) z   subject to   A z = −g,
#
# with H_i the banded curvature of ``composed_curve``, λ the multipliers, and μ the damping of Levenberg and Marquardt.
# After a step the distribution is tempered (p → p^τ) until it meets the points; the step is accepted only if the cost
# then decreases. So the result costs at most as much as the start. For k ≥ 2 the problem is not convex, and the optimum
# is local.

MAX_POLISH_STEPS = 40
MIN_RELATIVE_GAIN = 3e-6
"""A step that gains less than this fraction of the cost, or nothing, is counted as stalled."""
MAX_STALLED_STEPS = 7
"""The search ends after this many stalled steps in a row."""
DAMPING, DAMPING_DECREASE, DAMPING_INCREASE = 1.0, 0.3, 6.0
"""Initial damping, and its factors after an accepted and after a rejected step."""
MAX_LOG_CHANGE = 1.5
"""Largest change of the logarithm of a weight in one step."""
BINDING_MARGIN = 1e-3
"""Points whose log δ is this far below the allowed one do not bind."""
TEMPER_TOLERANCE = 1e-9
"""Relative tolerance of τ."""
SMALLEST_WEIGHT = 1e-36
"""Smallest weight; smaller ones at the end are dropped."""
LATTICE_VARIANCE = 4e-6
"""Fraction of the variance of the loss that the lattice may add."""


def polish_noise_weights(problem: CompositionProblem, half: Floats) -> Floats:
    """Return weights of 0, 1, 2, … that meet the points and cost at most as much as ``half``."""
    state = _PolishState.from_weights(problem, half)
    damping, stalled = DAMPING, 0
    for _ in range(MAX_POLISH_STEPS):
        tried = state.next_state(damping)
        if tried is None or not tried.cost < state.cost:
            stalled, damping = stalled + 1, damping * DAMPING_INCREASE
        else:
            stalled = stalled + 1 if tried.cost > state.cost * (1 - MIN_RELATIVE_GAIN) else 0
            state, damping = tried, damping * DAMPING_DECREASE
        if stalled >= MAX_STALLED_STEPS:
            break
    return state.half_weights


@dataclass(frozen=True, slots=True, eq=False)
class _PolishState:
    """Weights that meet the points, their cost, and the derivatives of δ there."""

    problem: CompositionProblem
    half_weights: Floats
    cost: float
    binding_curves: tuple[CurveDerivatives, ...]
    allowed_log_deltas: tuple[float, ...]

    @classmethod
    def from_weights(cls, problem: CompositionProblem, half: Floats) -> _PolishState:
        step = problem.lattice_step(LATTICE_VARIANCE)
        curves = [
            (composed_curve_derivatives(half, problem.shift, step, problem.releases, epsilon), math.log(delta))
            for epsilon, delta in problem.points
        ]
        binding = [
            (curve, allowed_log) for curve, allowed_log in curves if curve.log_delta > allowed_log - BINDING_MARGIN
        ] or curves[:1]
        binding_curves, allowed_logs = zip(*binding, strict=True)
        return cls(problem, half, problem.cost_of_weights(half), tuple(binding_curves), tuple(allowed_logs))

    def next_state(self, damping: float) -> _PolishState | None:
        """Return the state after one step, tempered; None if the step fails or the cost does not decrease."""
        move = self._newton_move(damping)
        if move is None:
            return None
        raw = self.half_weights * np.exp(np.clip(move, -MAX_LOG_CHANGE, MAX_LOG_CHANGE))
        if self.problem.shift > 1:
            raw = np.minimum.accumulate(raw)
        last = int(np.flatnonzero(raw > SMALLEST_WEIGHT)[-1])
        half = temper_weights(self.problem, normalize_half_weights(np.maximum(raw[: last + 1], SMALLEST_WEIGHT)))
        if half is None or not self.problem.cost_of_weights(half) < self.cost:
            return None
        return _PolishState.from_weights(self.problem, half)

    def _newton_move(self, damping: float) -> Floats | None:
        """Return the changes of the logarithms of the weights; None if the linear system cannot be solved."""
        half, count, curves = self.half_weights, len(self.half_weights), self.binding_curves
        multiplicities = np.full(count, 2.0)
        multiplicities[0] = 1.0
        weights = multiplicities * half
        costs = weights * self.problem.cost.values_at(np.arange(count, dtype=np.float64))
        rows = np.array([weights, *(half * curve.gradient for curve in curves)])
        allowed = zip(curves, self.allowed_log_deltas, strict=True)
        residuals = np.array([0.0, *(curve.log_delta - allowed_log for curve, allowed_log in allowed)])
        # The least-squares multipliers of c + Aᵀλ = 0; multipliers of points are ≥ 0.
        inverse = 1 / np.maximum(weights, 1e-300)
        least_squares = np.linalg.lstsq((rows * inverse) @ rows.T, -(rows * inverse) @ costs, rcond=None)[0]
        multipliers = np.concatenate([least_squares[:1], np.maximum(least_squares[1:], 0.0)])
        # From curvature in p to curvature in log p: diag(p) H diag(p).
        scaled_band = sum(m * curve.curvature_band for m, curve in zip(multipliers[1:], curves, strict=True))
        band = np.zeros_like(scaled_band)
        shift = len(scaled_band) - 1
        for offset in range(shift + 1):
            row = shift - offset
            band[row, offset:] = scaled_band[row, offset:] * half[offset:] * half[: len(half) - offset]
        band[-1] += damping * self.cost * weights + 1e-300
        try:
            solved = scipy.linalg.solveh_banded(band, np.column_stack([costs, *rows]))
            dual = np.linalg.solve(rows @ solved[:, 1:], residuals - rows @ solved[:, 0])
        except (scipy.linalg.LinAlgError, ValueError):
            return None
        move = -solved[:, 0] - solved[:, 1:] @ dual
        return np.asarray(move) if np.all(np.isfinite(move)) else None


def temper_weights(problem: CompositionProblem, half: Floats) -> Floats | None:
    """Return p^τ with the τ nearest 1 that meets the points; None if all τ that are tried fail."""
    step, logs = problem.lattice_step(LATTICE_VARIANCE), np.log(half / half[0])

    def release_at(size: float) -> ReleaseLosses:
        return ReleaseLosses.from_weights(normalize_half_weights(np.exp(logs / size)), problem.shift, step)

    try:
        size = problem.least_size(release_at, 1.0, TEMPER_TOLERANCE, 1e-4)
    except InsufficientBudgetError:
        return None
    return normalize_half_weights(np.exp(logs / size))
