"""Verification of couplings in rationals, from the definitions; shares nothing with the solvers."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from tightrope.transport.solvers.result import Coupling, Cut, Dual


def costs_of(coordinates: tuple[np.ndarray, np.ndarray], p: int) -> list[list[Fraction]]:
    """|x_i − y_j|₁^p in rationals, for rows of coordinates."""
    x, y = ([[Fraction(float(value)) for value in np.atleast_1d(place)] for place in places] for places in coordinates)
    return [
        [sum((abs(a - b) for a, b in zip(here, there, strict=True)), Fraction(0)) ** p for there in y] for here in x
    ]


def table_of(values: np.ndarray) -> list[list[Fraction]]:
    return [[Fraction(float(value)) for value in row] for row in values]


def check(found: Coupling, source: np.ndarray, target: np.ndarray, costs: list[list[Fraction]]) -> None:
    """Marginals, feasibility of the dual for every pair, its value as a lower bound, and a closed gap."""
    check_marginals(found, source, target)
    proof = found.dual
    assert isinstance(proof, Dual)
    u, v = ([Fraction(float(value)) for value in side] for side in (proof.u, proof.v))
    assert all(u[i] + v[j] <= costs[i][j] for i in range(len(u)) for j in range(len(v)))
    value = sum(a * Fraction(float(m)) for a, m in zip(u, source, strict=True))
    value += sum(a * Fraction(float(m)) for a, m in zip(v, target, strict=True))
    assert Fraction(proof.value) <= value
    entries = found.plan.tocoo()
    each = zip(entries.row, entries.col, entries.data, strict=True)
    spent = sum(Fraction(float(mass)) * costs[i][j] for i, j, mass in each)
    largest = max(max(row) for row in costs)
    assert abs(float(spent) - found.cost) <= 1e-12 * float(largest)
    assert float(spent - Fraction(proof.value)) <= 1e-12 * float(largest)


def check_marginals(found: Coupling, source: np.ndarray, target: np.ndarray) -> None:
    plan = table_of(found.plan.toarray())
    assert all(mass >= 0 for row in plan for mass in row)
    for sums, law in (([sum(row) for row in plan], source), ([sum(c) for c in zip(*plan, strict=True)], target)):
        assert sum(abs(total - Fraction(float(mass))) for total, mass in zip(sums, law, strict=True)) <= Fraction(2e-12)


def check_bottleneck(found: Coupling, source: np.ndarray, target: np.ndarray, costs: np.ndarray) -> None:
    """No entry above the cost, and a set of sources that must reach that far."""
    check_marginals(found, source, target)
    proof = found.dual
    assert isinstance(proof, Cut)
    assert math.isclose(costs[found.plan.nonzero()].max(), found.cost, rel_tol=1e-15)
    near = costs < found.cost * (1 - 1e-15)
    reached = (near & proof.sources[:, None] & (source > 0)[:, None] & (target > 0)).any(axis=0)
    assert not (reached & ~proof.targets).any()
    surplus = source[proof.sources].sum() - target[proof.targets].sum()
    assert math.isclose(surplus, proof.surplus, abs_tol=1e-12)
    assert found.cost == 0 or surplus > 0
