"""Transport on matrices by linear programs: a second way to every answer that the mechanisms ask of the solvers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.optimize import linprog


@dataclass(frozen=True)
class Solved:
    plan: sparse.coo_array
    cost: float
    gap: float = 0.0


def coupling(source: Any, target: Any, cost: Any, p: float = 1) -> Solved:
    matrix = np.asarray(cost, dtype=float)
    if p == math.inf:
        plan = _program(source, target, _threshold(source, target, matrix))
        return Solved(sparse.coo_array(plan), float(matrix[plan > 1e-12].max()))
    plan = _program(source, target, matrix)
    return Solved(sparse.coo_array(plan), float((plan * matrix).sum()))


def barycenter(laws: Any, cost: Any, weights: Any = None) -> np.ndarray:
    matrix = np.asarray(cost, dtype=float)
    (n, m), groups = matrix.shape, len(laws)
    size = groups * n * m
    objective = np.concatenate([*(w * matrix.ravel() for w in weights), np.zeros(m)])
    rows, right = [], []
    for g, law in enumerate(laws):
        for x in range(n):
            row = np.zeros(size + m)
            row[g * n * m + x * m : g * n * m + (x + 1) * m] = 1
            rows.append(row)
            right.append(law[x])
        for y in range(m):
            row = np.zeros(size + m)
            row[g * n * m + y : (g + 1) * n * m : m] = 1
            row[size + y] = -1
            rows.append(row)
            right.append(0.0)
    found = np.maximum(linprog(objective, A_eq=np.array(rows), b_eq=right, method="highs").x[size:], 0)
    return found / found.sum()


def _threshold(source: Any, target: Any, matrix: np.ndarray) -> np.ndarray:
    for level in np.unique(matrix):
        outside = np.where(matrix <= level, 0.0, 1.0)
        if (_program(source, target, outside) * outside).sum() <= 1e-12:
            return outside
    raise AssertionError


def _program(source: Any, target: Any, matrix: np.ndarray) -> np.ndarray:
    import ot

    return np.asarray(
        ot.emd(np.asarray(source, dtype=float), np.asarray(target, dtype=float), np.ascontiguousarray(matrix))
    )
