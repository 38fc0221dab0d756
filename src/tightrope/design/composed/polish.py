"""The law itself improved: sequential quadratic programming in the logarithms of the weights.

Least E φ(|X|) subject to Σ p = 1 and log δ_k(ε_i) ≤ log δ_i at the points that bind. With z = d log p each step solves

    min c·z + ½ zᵀ(Σ λ_i H_i + μ diag p) z   subject to   A z = −g,

H_i the banded curvature of ``composed_slopes``, λ the multipliers of the step before, μ Levenberg's. After a step the
law is tempered (p → p^τ) until it keeps the points; it is taken only if it then costs less. So whatever happens, the
result is no worse than the start. The problem is not convex for k ≥ 2: the optimum is local.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, solveh_banded

from tightrope.design.composed.composed_curve import Released, normalised
from tightrope.design.composed.composed_question import Question
from tightrope.design.composed.composed_slopes import Slopes, slopes
from tightrope.errors import BudgetRefused
from tightrope.numerics.arrays import Floats

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
    multipliers = _multipliers(costs, rows, weights)
    band = _scaled(sum(m * line.band for m, line in zip(multipliers[1:], state.lines, strict=True)), half)
    band[-1] += damping * state.cost * weights + 1e-300
    try:
        solved = solveh_banded(band, np.column_stack([costs, *rows]))
        dual = np.linalg.solve(rows @ solved[:, 1:], wrong - rows @ solved[:, 0])
    except (LinAlgError, ValueError):
        return None
    move = -solved[:, 0] - solved[:, 1:] @ dual
    return np.asarray(move) if np.all(np.isfinite(move)) else None


def _multipliers(costs: Floats, rows: Floats, weights: Floats) -> Floats:
    """The least-squares multipliers of c + Aᵀλ = 0, those of the points ≥ 0."""
    inverse = 1 / np.maximum(weights, 1e-300)
    found = np.linalg.lstsq((rows * inverse) @ rows.T, -(rows * inverse) @ costs, rcond=None)[0]
    return np.concatenate([found[:1], np.maximum(found[1:], 0.0)])


def _scaled(band: Floats, half: Floats) -> Floats:
    """From curvature in p to curvature in log p: diag(p) H diag(p)."""
    result = np.zeros_like(band)
    shift = len(band) - 1
    for apart in range(shift + 1):
        row = shift - apart
        result[row, apart:] = band[row, apart:] * half[apart:] * half[: len(half) - apart]
    return result


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
