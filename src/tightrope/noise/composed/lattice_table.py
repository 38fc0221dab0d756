"""Integer tables whose privacy losses lie on a lattice by construction: P(X = x) ∝ e^{−h·n(x)} with whole heights n.

All losses are whole multiples of h, so any number of releases is certified by the exact lattice engine in one
transform. A law is brought here by rounding its logarithms to multiples of h – losses then move by less than h, at
random, which adds h²/6 a release to the variance of the loss – and h itself is the size that is tuned afterwards.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Self

import numpy as np
import scipy

from tightrope.errors import BudgetRefused
from tightrope.mechanisms.discrete.integer_weights import DIGITS, ONE, exponential
from tightrope.mechanisms.discrete.noise_table import NoiseTable, tabulate
from tightrope.noise.composed.candidates import Candidate, Question
from tightrope.noise.composed.composed_curve import Indices, Released, Slopes, normalised, slopes
from tightrope.numerics.arrays import Floats

HEIGHT_VARIANCE = 1e-6
"""Share of the variance of the loss that rounding the logarithms of weights may add."""
MOST_LOSS_POINTS = 1 << 15
"""Lattice points for the standard deviation of the total loss at most: exact lattices that are finer are coarsened."""
TINY_DELTA = 1e-16
"""For a δ below this weights off the lattice by rounding, up to 10⁻²³, matter: the accountant's grid is nearer then."""
TABLE_WITHIN = 1e-13
BITS = 30
"""Binary digits of h: multiples up to 2²³ of it are exact, and so are the differences from which it is found."""
FIRST_MARGIN, LAST_MARGIN = 1e-11, 0.1
"""h is made smaller by the first, relatively, then by what the certificate lacks, until it is certified."""
LESS = 0.1
"""Log δ falls about 1/0.1 times as fast as log h, or faster; where it does not, the margin doubles."""


@dataclass(frozen=True, slots=True, eq=False)
class LatticeLaw:
    """Weights e^{−step·heights[x]} of 0, ±1, …; heights ≥ 0."""

    heights: Indices
    step: float

    @classmethod
    def of_candidate(cls, question: Question, found: Candidate) -> Self:
        """The candidate's own lattice where it has one that is not too fine; else rounded."""
        own = 1 / found.size
        if found.heights is not None and question.mu < own * MOST_LOSS_POINTS:
            return cls(found.heights, own)
        return cls.rounded(found.half, question.step(HEIGHT_VARIANCE))

    @classmethod
    def rounded(cls, half: Floats, step: float) -> Self:
        """Logarithms of the weights rounded to multiples of the step; weights of 0 end the law.

        The centre, which takes the remainder of all rounding, is a step above every other cell: equal to one but for
        the remainder it would have a loss of 2⁻¹²⁸ there, on no lattice.
        """
        held = half[: int(np.flatnonzero(half > 0)[-1]) + 1]
        logs = np.log(held, where=held > 0, out=np.full(len(held), -math.inf))
        heights = np.rint((np.max(logs) - np.maximum(logs, -700.0)) / step).astype(np.int64)
        if len(heights) > 1 and heights[0] == heights[1]:
            heights[1:] += 1
        return cls(heights, step)

    def tuned(self, question: Question) -> Self:
        """The largest step that keeps the points, in floats."""
        size = question.least_size(
            lambda size: Released.of_heights(self.heights, question.shift, 1 / size), 1 / self.step, TABLE_WITHIN, 1e-4
        )
        return type(self)(self.heights, 1 / size)

    def certified(self, question: Question) -> NoiseTable:
        """The integer table, its step smaller by the first margin for which the exact accountant proves the points.

        Raises ``BudgetRefused`` where it proves them for none.
        """
        for short in (True,) if question.least_delta > TINY_DELTA else (False, True):
            table = self._shrunk(question, short)
            if table is not None:
                return table
        raise BudgetRefused(f"no integer table near this law keeps {list(question.points)}; raise delta")

    def _shrunk(self, question: Question, short: bool) -> NoiseTable | None:
        """The first table that is certified, its step in few digits or as it is."""
        margin = FIRST_MARGIN
        while margin < LAST_MARGIN:
            step = self.step * (1 - margin)
            table = type(self)(self.heights, _short(step) if short else step).table()
            lacking = relative_excess(table, question)
            if lacking <= 0:
                return table
            margin = max(2 * margin, margin + LESS * lacking)
        return None

    def table(self) -> NoiseTable:
        """The integer table nearest below: powers of e^{−step} in fixed point."""
        ratio = exponential(Fraction(self.step))
        powers: dict[int, int] = {}
        raw, height, weights = ONE, 0, []
        for up in np.diff(self.heights, prepend=0).tolist():
            height += up
            if up >= 0:
                powers.setdefault(up, _power(ratio, up))
                raw = raw * powers[up] >> DIGITS
            else:
                raw = _power(ratio, height)
            weights.append(raw)
        return tabulate(weights, steps=(self.step,))


def keeps(table: NoiseTable, question: Question) -> bool:
    """Whether the exact accountant proves every point for the integer weights, rounding included."""
    return relative_excess(table, question) <= 0


def relative_excess(table: NoiseTable, question: Question) -> float:
    """The largest δ(ε_i)/δ_i − 1 that the exact accountant proves; positive for a law without a proof."""
    if not (question.shift == 1 or table.is_unimodal):
        return math.inf
    total = question.releases * table.loss(question.shift)
    return max(_excess_ratio(total.delta(epsilon), delta) for epsilon, delta in question.points)


def _excess_ratio(found: float, allowed: float) -> float:
    """With the sign of found − allowed, whatever the rounding."""
    if found <= allowed:
        return min(0.0, found - allowed)
    return found / allowed - 1 + 1e-16 if allowed > 0 else math.inf


def _short(step: float) -> float:
    """The step rounded down to ``BITS``: its whole multiples are exact floats, and the accountant finds it in them."""
    mantissa, exponent = math.frexp(step)
    return math.ldexp(math.floor(math.ldexp(mantissa, BITS)), exponent - BITS)


def _power(ratio: int, exponent: int) -> int:
    """ratio^exponent in fixed point, by squaring."""
    result = ONE
    for bit in f"{exponent:b}":
        result = result * result >> DIGITS
        if bit == "1":
            result = result * ratio >> DIGITS
    return result


# The law itself improved: sequential quadratic programming in the logarithms of the weights.
#
# Least E φ(|X|) subject to Σ p = 1 and log δ_k(ε_i) ≤ log δ_i at the points that bind. With z = d log p each step
# solves
#
#     min c·z + ½ zᵀ(Σ λ_i H_i + μ diag p) z   subject to   A z = −g,
#
# H_i the banded curvature of ``composed_slopes``, λ the multipliers of the step before, μ Levenberg's. After a step
# the law is tempered (p → p^τ) until it keeps the points; it is taken only if it then costs less. So whatever
# happens, the result is no worse than the start. The problem is not convex for k ≥ 2: the optimum is local.

MOST_POLISHINGS = 40
TOO_LITTLE_GAINED = 3e-6
"""A step that gains less than this share of the cost is one too many ..."""
PATIENCE = 7
"""... and so is one that gains nothing; after so many the search ends."""
DAMPING, EASIER, HARDER = 1.0, 0.3, 6.0
LONGEST_STEP = 1.5
"""Most that a step changes the logarithm of a weight."""
BINDING = 1e-3
"""Points whose log δ is this far below what is allowed do not bind."""
TEMPERED = 1e-9
LIGHTEST = 1e-36
"""Weights are no smaller; the last ones that would be are dropped."""
LATTICE_VARIANCE = 4e-6
"""Share of the variance of the loss that the lattice may add."""


def polished(question: Question, half: Floats) -> Floats:
    """Weights of 0, 1, 2, … that keep the points at no more than the cost of ``half``."""
    state = _State.of(question, half)
    damping, stalled = DAMPING, 0
    for _ in range(MOST_POLISHINGS):
        tried = state.stepped(damping)
        if tried is None or not tried.cost < state.cost:
            stalled, damping = stalled + 1, damping * HARDER
        else:
            stalled = stalled + 1 if tried.cost > state.cost * (1 - TOO_LITTLE_GAINED) else 0
            state, damping = tried, damping * EASIER
        if stalled >= PATIENCE:
            break
    return state.half


@dataclass(frozen=True, slots=True, eq=False)
class _State:
    """Weights that keep the points, what they cost, and what δ does there."""

    question: Question
    half: Floats
    cost: float
    lines: tuple[Slopes, ...]
    allowed: tuple[float, ...]

    @classmethod
    def of(cls, question: Question, half: Floats) -> _State:
        step = question.step(LATTICE_VARIANCE)
        found = [
            (slopes(half, question.shift, step, question.releases, epsilon), math.log(delta))
            for epsilon, delta in question.points
        ]
        binding = [(line, log) for line, log in found if line.log_delta > log - BINDING] or found[:1]
        lines, allowed = zip(*binding, strict=True)
        return cls(question, half, question.expected(half), tuple(lines), tuple(allowed))

    def stepped(self, damping: float) -> _State | None:
        """The next weights, tempered; None where there are none."""
        move = _move(self, damping)
        if move is None:
            return None
        raw = self.half * np.exp(np.clip(move, -LONGEST_STEP, LONGEST_STEP))
        if self.question.shift > 1:
            raw = np.minimum.accumulate(raw)
        last = int(np.flatnonzero(raw > LIGHTEST)[-1])
        half = tempered(self.question, normalised(np.maximum(raw[: last + 1], LIGHTEST)))
        if half is None or not self.question.expected(half) < self.cost:
            return None
        return _State.of(self.question, half)


def _move(state: _State, damping: float) -> Floats | None:
    """Changes of the logarithms of the weights."""
    half, count = state.half, len(state.half)
    ways = np.full(count, 2.0)
    ways[0] = 1.0
    weights = ways * half
    costs = weights * state.question.cost.at(np.arange(count, dtype=np.float64))
    rows = np.array([weights, *(half * line.gradient for line in state.lines)])
    wrong = np.array([0.0, *(line.log_delta - log for line, log in zip(state.lines, state.allowed, strict=True))])
    # The least-squares multipliers of c + Aᵀλ = 0, those of the points ≥ 0.
    inverse = 1 / np.maximum(weights, 1e-300)
    found = np.linalg.lstsq((rows * inverse) @ rows.T, -(rows * inverse) @ costs, rcond=None)[0]
    multipliers = np.concatenate([found[:1], np.maximum(found[1:], 0.0)])
    # From curvature in p to curvature in log p: diag(p) H diag(p).
    scaled_band = sum(m * line.band for m, line in zip(multipliers[1:], state.lines, strict=True))
    band = np.zeros_like(scaled_band)
    shift = len(scaled_band) - 1
    for apart in range(shift + 1):
        row = shift - apart
        band[row, apart:] = scaled_band[row, apart:] * half[apart:] * half[: len(half) - apart]
    band[-1] += damping * state.cost * weights + 1e-300
    try:
        solved = scipy.linalg.solveh_banded(band, np.column_stack([costs, *rows]))
        dual = np.linalg.solve(rows @ solved[:, 1:], wrong - rows @ solved[:, 0])
    except (scipy.linalg.LinAlgError, ValueError):
        return None
    move = -solved[:, 0] - solved[:, 1:] @ dual
    return np.asarray(move) if np.all(np.isfinite(move)) else None


def tempered(question: Question, half: Floats) -> Floats | None:
    """p^τ with the τ nearest 1 that keeps the points; None where that is far away."""
    step, logs = question.step(LATTICE_VARIANCE), np.log(half / half[0])

    def release(size: float) -> Released:
        return Released.of_weights(normalised(np.exp(logs / size)), question.shift, step)

    try:
        size = question.least_size(release, 1.0, TEMPERED, 1e-4)
    except BudgetRefused:
        return None
    return normalised(np.exp(logs / size))
