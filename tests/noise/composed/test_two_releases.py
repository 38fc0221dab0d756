"""Two releases: laws on the kinks, certified, and no worse than a search that knows nothing of them."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tightrope as tr
from tightrope.noise.composed.candidates import CompositionProblem
from tightrope.noise.composed.composed_bound import ComposedBound
from tightrope.noise.composed.composed_curve import normalize_half_weights
from tightrope.noise.composed.composed_noise import POLISHED, composed_noise, optimize_pair, temper_exactly
from tightrope.noise.program.certificate import CostBound
from tightrope.noise.program.request import ErrorCost, PrivacyTarget


def spent(half, epsilon, shift):
    """δ of two releases, pair by pair."""
    p = dict(enumerate([*half[:0:-1], *half], 1 - len(half)))
    pairs = [(p.get(x, 0.0), p.get(x - shift, 0.0)) for x in range(1 - len(half), len(half) + shift)]
    return sum(max(a * c - math.exp(epsilon) * b * d, 0) for a, b in pairs for c, d in pairs)


def weights(table):
    return np.array([float(w) for w in (table.center, *table.half)]) / 2.0**128


@pytest.mark.parametrize(
    ("epsilon", "delta", "most", "before"),
    [(1, 0.01, 5.8, 5.926), (2, 0.01, 1.588, 1.606), (1, 1e-3, 7.384, 7.445), (0.5, 1e-3, 28.4, 28.76)],
)
def test_less_than_a_smooth_search_finds(epsilon, delta, most, before):
    budget = tr.Budget(epsilon=epsilon, delta=delta)
    found = composed_noise(budget, releases=2)
    assert found.cost <= most < before
    assert found.family == POLISHED
    assert (2 * found.table.loss()).delta(float(epsilon)) <= delta
    assert spent(weights(found.table), epsilon, 1) == pytest.approx(delta, rel=1e-6)
    assert (
        ComposedBound(
            CostBound(PrivacyTarget.from_budget(budget), 1, ErrorCost.from_argument("squared")), 2
        ).lower_bound
        <= found.cost
    )


def test_a_larger_sensitivity_stays_unimodal():
    found = composed_noise(tr.Budget(epsilon=2, delta=0.05), releases=2, sensitivity=2, cost="absolute")
    assert found.table.is_unimodal
    assert (2 * found.table.loss(2)).delta(2.0) <= 0.05
    assert spent(weights(found.table), 2, 2) <= 0.05 * (1 + 1e-9)
    assert found.cost <= 0.99 * min(cost for name, cost in found.candidates.items() if name != POLISHED)


def test_several_points():
    found = composed_noise(tr.Budget(epsilon=1, delta=0.01, total_variation=0.3), releases=2)
    total = 2 * found.table.loss()
    assert total.delta(1.0) <= 0.01
    assert total.total_variation() <= 0.3


@pytest.mark.parametrize("shift", [1, 2])
def test_a_search_ends_no_worse_and_keeps_the_points(shift):
    question = CompositionProblem(((1.0, 0.02), (0.2, 0.2)), 2, shift, ErrorCost.from_argument("squared"))
    start = normalize_half_weights(np.exp(-np.arange(14.0 * shift) / (3 * shift)))
    kept = temper_exactly(question, start)
    better = optimize_pair(question, start)
    assert question.cost_of_weights(better) < question.cost_of_weights(kept)
    for half in (kept, better):
        for epsilon, delta in question.points:
            assert spent(half, epsilon, shift) <= delta * (1 + 1e-9)
    assert shift == 1 or np.all(np.diff(better) <= 1e-15)


def test_a_law_that_no_power_mends_is_left():
    question = CompositionProblem(((1.0, 1e-6),), 2, 1, ErrorCost.from_argument("squared"))
    assert optimize_pair(question, normalize_half_weights(np.ones(3))) is None
