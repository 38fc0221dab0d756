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


# All coordinates may change by as much: noise in the shape of a box.


@pytest.mark.parametrize(("dimension", "linf"), [(10, 1), (4, 3)])
def test_without_delta_a_box_has_the_least_variance(dimension, linf):
    """E X² is about (d + 1)(d + 2)/3 (Δ/ε)², against 2 d² (Δ/ε)² with ε/d for each coordinate."""
    epsilon = 0.1
    found = vector_noise(tr.Budget(epsilon=epsilon, delta=0), dimension=dimension, linf=linf)
    assert found.bound_name == "L∞, in a box"
    scale = linf / epsilon
    assert found.mean_squared_error == pytest.approx((dimension + 1) * (dimension + 2) / 3 * scale**2, rel=0.01)
    others = [
        error for name, error in found.candidates.items() if name != found.bound_name and isinstance(error, float)
    ]
    assert others and min(others) > 0.9 * 2 * dimension**2 * scale**2
    assert found.loss.epsilon(0) <= epsilon
    assert found.noise.loss.epsilon(0) <= epsilon


def test_a_box_with_a_small_delta_keeps_the_budget_and_wins():
    found = vector_noise(tr.Budget(epsilon=1, delta=1e-9), dimension=3, linf=2)
    assert found.bound_name == "L∞, in a box"
    assert found.loss.delta(1.0) <= 1e-9 and found.noise.loss.delta(1.0) <= 1e-9 * (1 + 1e-6)
    assert found.mean_squared_error < min(
        error for name, error in found.candidates.items() if name != found.bound_name and isinstance(error, float)
    )


def test_a_box_is_released_as_whole_vectors():
    found = vector_noise(tr.Budget(epsilon=1, delta=0), dimension=3, linf=1)
    exact = np.array([5, -7, 10**6])
    noisy = np.array([found.release(exact) - exact for _ in range(4000)])
    assert abs(np.mean(noisy.astype(float) ** 2) / found.mean_squared_error - 1) < 0.25
    radii = np.abs(noisy).max(axis=1)
    large = np.abs(noisy[:, 0][radii > np.median(radii)]).mean()
    assert large > 1.3 * np.abs(noisy[:, 0]).mean()  # coordinates of one point are large together
    with pytest.raises(InputError, match="whole vectors"):
        found.noise.sample(4)
    with pytest.raises(InputError, match="vectors of 3"):
        found.noise.release(np.array([1, 2]))
    assert found.noise.sample(6).shape == (6,)
    assert found.noise.release(np.zeros((2, 3), np.int64)).shape == (2, 3)
    assert found.noise.quantile(0.5) == 0 and found.noise.half_width(0.95) > 0 and found.noise.worst_error == math.inf


def test_of_too_many_coordinates_there_is_no_box():
    assert "L∞, in a box" not in vector_noise(BUDGET, dimension=17, linf=1).candidates
