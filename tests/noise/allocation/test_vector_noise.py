"""Vectors: whatever a person changes within the bounds, the budget is kept; the cheapest way wins."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import tightrope as tr
from tightrope.errors import InputError, InsufficientBudgetError
from tightrope.noise.vector_noise import VectorChange, vector_noise

BUDGET = tr.Budget(epsilon=1, delta=1e-6)


@pytest.mark.parametrize("bounds", [(6, None, 2), (None, 3.2, None), (None, None, 2), (5, 2.0, None), (9, 4.0, 3)])
def test_what_follows_from_the_bounds(bounds):
    """By going through all vectors of three coordinates."""
    change = VectorChange.from_norms(3, *bounds)
    l1, l2, linf = (math.inf if bound is None else bound for bound in bounds)
    allowed = [
        v
        for v in itertools.product(range(-7, 8), repeat=3)
        if sum(map(abs, v)) <= l1 and math.hypot(*v) <= l2 + 1e-9 and max(map(abs, v)) <= linf
    ]
    assert max(sum(map(abs, v)) for v in allowed) <= change.l1
    assert max(sum(x * x for x in v) for v in allowed) <= change.l2_squared
    assert max(max(map(abs, v)) for v in allowed) <= change.linf


@pytest.mark.parametrize(
    ("bounds", "way"),
    [
        ({"dimension": 100, "l1": 10, "linf": 1}, "L1, one each"),
        ({"dimension": 5, "l1": 6, "linf": 3}, "L1, every split"),
        ({"dimension": 1000, "l2": 20}, "L2"),
        ({"dimension": 1, "linf": 4}, "L1, every split"),
    ],
)
def test_the_budget_is_kept(bounds, way):
    found = vector_noise(BUDGET, **bounds)
    assert found.bound_name == way
    assert found.loss.delta(1.0) <= 1e-6
    assert found.mean_squared_error == min(c for c in found.candidates.values() if isinstance(c, float))


def test_every_change_within_the_bounds_is_covered():
    """Compositions of the shifts of one coordinate each, from the table that is sampled."""
    found = vector_noise(BUDGET, dimension=4, l1=5, linf=3)
    table = found.noise.table
    for v in itertools.combinations_with_replacement(range(4), 4):
        if 0 < sum(v) <= 5:
            loss = sum(table.loss(abs(x)) for x in v if x)
            for epsilon in (0.3, 1.0):
                assert loss.delta_bounds(epsilon).lower <= found.loss.delta(epsilon) * (1 + 1e-9)


def test_release():
    found = vector_noise(BUDGET, dimension=3, l1=2, linf=1)
    noisy = found.release(np.array([10, 20, 10**6]))
    assert noisy.shape == (3,)
    assert noisy.dtype.kind == "i"
    with pytest.raises(InputError, match="shape"):
        found.release(np.array([1, 2]))
    with pytest.raises(InputError, match="integer"):
        found.release(np.array([0.5, 1.0, 2.0]))


@pytest.mark.parametrize(
    ("bounds", "said"),
    [
        ({"dimension": 3}, "l1"),
        ({"dimension": 0, "l1": 1}, "dimension"),
        ({"dimension": 3, "l1": 0}, "l1"),
        ({"dimension": 3, "l2": 0.5}, "l2"),
        ({"dimension": 3, "l2": math.nan}, "l2"),
        ({"dimension": 3, "linf": 1.5}, "linf"),
    ],
)
def test_nonsense(bounds, said):
    with pytest.raises(InputError, match=said):
        vector_noise(BUDGET, **bounds)


def test_what_nothing_keeps_is_refused():
    with pytest.raises(InsufficientBudgetError, match="L2"):
        vector_noise(tr.Budget(epsilon="1e-9", delta="1e-30"), dimension=10**6, l2=1e8)
