"""Two releases: δ is piecewise quadratic in the weights, with kinks where two losses add up to ε.

Good laws sit on the kinks (losses of ε/2), where Newton's method of ``polish`` does not see them. With D(x, y) =
p_x p_y − e^ε p_{x−Δ} p_{y−Δ} δ is Σ D₊ over all pairs. Each step makes every D linear and keeps the positive parts: a
linear program in a box around p. The law is then made flatter or steeper until it keeps the points, exactly but for
rounding; a step is taken if it costs less. So the result is no worse than the start; the optimum is local.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import optimize, sparse

from tightrope.design.composed.composed_curve import Indices, normalised, shifted
from tightrope.design.composed.composed_question import Question
from tightrope.numerics.arrays import Floats

MOST_PAIR_CELLS = 45
"""Laws of more cells a side have too many pairs."""
MOST_STEPS = 20
WIDEST, NARROWEST = 0.5, 1e-5
"""Sides of the box, in parts of the weights."""
FIRST, WIDER, NARROWER = 0.3, 1.5, 3.0
LEAST_GAIN = 1e-6
FRESH = 1e-3
"""Weights may also grow by this part of the least δ, however small they are."""
FAINT_MASS = 1e-30
TEMPERS = (1.6, 1.3, 1.15, 1.07, 1.03, 1.01, 1.003, 1.001, 1.0, 0.999, 0.997, 0.99, 0.97, 0.93, 0.87, 0.8, 0.7, 0.6)
HALVINGS = 40
KEPT_OF_DELTA = 1 - 1e-12
"""This part of every δ is kept in floats."""


def paired(question: Question, half: Floats) -> Floats | None:
    """Weights of 0, 1, … that keep the points at less cost than ``half``, tempered; None where that keeps nothing."""
    law = tempered_exactly(question, half)
    if law is None or not len(law) <= MOST_PAIR_CELLS:
        return law
    box, best = FIRST, question.expected(law)
    for _ in range(MOST_STEPS):
        tried = _stepped(question, law, box)
        cost = math.inf if tried is None else question.expected(tried)
        if tried is None or not cost < best * (1 - LEAST_GAIN):
            box /= NARROWER
        else:
            law, best, box = tried, cost, min(box * WIDER, WIDEST)
        if box < NARROWEST:
            break
    return law


def tempered_exactly(question: Question, half: Floats) -> Floats | None:
    """p^τ with the largest τ, of those that are tried, that keeps the points; None where none does."""
    logs = np.log(np.maximum(half, FAINT_MASS) / half[0])

    def keeps(power: float) -> bool:
        return _keeps(question, normalised(np.exp(logs * power)))

    if keeps(TEMPERS[0]):
        return normalised(np.exp(logs * TEMPERS[0]))
    ends = next(((high, low) for high, low in pairwise(TEMPERS) if keeps(low)), None)
    return None if ends is None else normalised(np.exp(logs * _last(keeps, *ends)))


def _last(keeps: Callable[[float], bool], high: float, low: float) -> float:
    """A power that keeps the points near one, above it, that does not."""
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if keeps(middle) else (low, middle)
    return low


def _keeps(question: Question, half: Floats) -> bool:
    p, q = shifted(half, question.shift)
    both, other = np.outer(p, p), np.outer(q, q)
    return all(
        float(np.maximum(both - math.exp(epsilon) * other, 0).sum()) <= delta * KEPT_OF_DELTA
        for epsilon, delta in question.points
    )


def _stepped(question: Question, half: Floats, box: float) -> Floats | None:
    """The optimum of the linear program around the law, tempered."""
    program = _Program.around(question, half, box)
    found = optimize.linprog(**program.arguments(question, half, box), method="highs")
    if found.x is None:
        return None
    return tempered_exactly(question, np.maximum(half + found.x[: len(half)], FAINT_MASS))


@dataclass(frozen=True, slots=True, eq=False)
class _Program:
    """Rows: D linear less its slack ≤ 0 for pairs that may be positive, Σ slacks ≤ δ for each point."""

    matrix: sparse.csr_array
    above: Floats
    slacks: int

    @classmethod
    def around(cls, question: Question, half: Floats, box: float) -> _Program:
        blocks = [_block(half, question.shift, box, *point) for point in question.points]
        changes = sparse.vstack([block[0] for block in blocks])
        slacks = sparse.block_diag([block[1] for block in blocks])
        above = np.concatenate([block[2] for block in blocks])
        matrix = sparse.csr_array(sparse.hstack([changes, slacks]))
        if question.shift > 1:
            matrix, above = _falling(matrix, above, half)
        return cls(matrix, above, slacks.shape[1])

    def arguments(self, question: Question, half: Floats, box: float) -> dict[str, Any]:
        """In the words of ``scipy.optimize.linprog``."""
        count, pad = len(half), np.zeros(self.slacks)
        ways = np.where(np.arange(count) == 0, 1.0, 2.0)
        costs = ways * question.cost.at(np.arange(count, dtype=np.float64))
        room = box * (half + FRESH * question.least_delta)
        bounds = [(max(-most, -weight), most) for most, weight in zip(room.tolist(), half.tolist(), strict=True)]
        return {
            "c": np.concatenate([costs, pad]),
            "A_ub": self.matrix,
            "b_ub": self.above,
            "A_eq": np.concatenate([ways, pad])[None, :],
            "b_eq": [0.0],
            "bounds": bounds + [(0, None)] * self.slacks,
        }


def _block(
    half: Floats, shift: int, box: float, epsilon: float, delta: float
) -> tuple[sparse.csr_array, sparse.csr_array, Floats]:
    """Coefficients of the changes of weights and of the slacks, and right-hand sides, of one point."""
    cells, gamma = len(half), math.exp(epsilon)
    near, far = _places(cells, shift)
    first, second = np.triu_indices(2 * cells - 1)
    wide = np.append(half, 0.0)  # the last stands for what is outside
    mine, theirs = wide[near[first]] * wide[near[second]], gamma * wide[far[first]] * wide[far[second]]
    may = np.flatnonzero(mine * (1 + box) ** 2 + FAINT_MASS > theirs * (1 - box) ** 2)
    i, j = first[may], second[may]
    rows = np.tile(np.arange(len(may)), 4)
    columns = np.concatenate([near[i], near[j], far[i], far[j]])
    values = [wide[near[j]], wide[near[i]], -gamma * wide[far[j]], -gamma * wide[far[i]]]
    changes = sparse.csr_array((np.concatenate(values), (rows, columns)), shape=(len(may) + 1, cells + 1))[:, :cells]
    twice = np.where(i == j, 1.0, 2.0)
    slacks = sparse.vstack([-sparse.eye_array(len(may)), sparse.csr_array(twice[None, :])])
    return changes, sparse.csr_array(slacks), np.append(theirs[may] - mine[may], delta)


def _places(cells: int, shift: int) -> tuple[Indices, Indices]:
    """|x| and |x − shift| for x = −N..N, N + 1 for what is outside."""
    x = np.arange(1 - cells, cells)
    return np.abs(x), np.minimum(np.where(x - shift < 1 - cells, cells, np.abs(x - shift)), cells)


def _falling(matrix: sparse.csr_array, above: Floats, half: Floats) -> tuple[sparse.csr_array, Floats]:
    """And p_{x+1} ≤ p_x: then the largest shift says all."""
    shape = (len(half) - 1, matrix.shape[1])
    falls = sparse.eye_array(*shape, k=1) - sparse.eye_array(*shape)
    return sparse.csr_array(sparse.vstack([matrix, falls])), np.append(above, -np.diff(half))
