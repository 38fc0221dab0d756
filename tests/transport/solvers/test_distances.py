"""W_p as a metric between laws, and relations between its orders."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tightrope import transport
from tightrope.transport.costs.costs import Cost, Matrix
from tightrope.transport.solvers.result import Dual

SIZE = 6
LAWS = st.lists(st.integers(0, 1000), min_size=SIZE, max_size=SIZE).filter(any).map(lambda w: np.array(w) / sum(w))
ORDERS = st.sampled_from([1, 1.5, 2, 3, math.inf])
COSTS = {
    "grid": transport.grid((2, 3)),
    "king": transport.grid((2, 3), metric="chebyshev"),
    "line": transport.line([0, 1, 4, 9, 16, 25]),
    "places": transport.points(np.random.default_rng(0).random((SIZE, 2))),
    "ring": transport.graph([[int(abs(i - j) in (1, 5)) for j in range(SIZE)] for i in range(SIZE)]),
}
COSTS["table"] = Matrix(COSTS["places"].to_matrix())


@pytest.mark.parametrize("cost", COSTS.values(), ids=COSTS)
@settings(max_examples=30, deadline=None)
@given(a=LAWS, b=LAWS, c=LAWS, p=ORDERS)
def test_triangle_inequality_symmetry_and_zero(
    cost: Cost, a: np.ndarray, b: np.ndarray, c: np.ndarray, p: float
) -> None:
    there, back = transport.wasserstein(a, b, cost, p=p), transport.wasserstein(b, a, cost, p=p)
    slack = 1e-5 if p > 1 else 1e-11  # the root turns a rounding of 1e-15 into 1e-5
    detour = transport.wasserstein(a, c, cost, p=p) + transport.wasserstein(c, b, cost, p=p)
    assert there <= detour + slack
    assert math.isclose(there, back, abs_tol=slack)
    assert transport.wasserstein(a, a, cost, p=p) <= slack
    assert (there > slack) or np.abs(a - b).max() <= 1e-3


@settings(max_examples=40, deadline=None)
@given(a=LAWS, b=LAWS)
def test_the_order_of_the_orders(a: np.ndarray, b: np.ndarray) -> None:
    for cost in (COSTS["line"], COSTS["grid"]):
        rising = [transport.wasserstein(a, b, cost, p=p) for p in (1, 1.5, 2, 5, math.inf)]
        assert all(low <= high + 1e-9 for low, high in pairwise(rising))


@settings(max_examples=40, deadline=None)
@given(a=LAWS, b=LAWS)
def test_every_description_of_a_cost_gives_the_same(a: np.ndarray, b: np.ndarray) -> None:
    places = np.arange(SIZE)
    same = [
        transport.line(places),
        transport.grid(SIZE),
        transport.grid(SIZE, metric="chebyshev"),
        transport.points(places[:, None]),
        transport.graph(np.abs(np.subtract.outer(places, places)) == 1),
        np.abs(np.subtract.outer(places, places)),
    ]
    for p in (1, 2, math.inf):
        found = [transport.wasserstein(a, b, cost, p=p) for cost in same]
        assert max(found) - min(found) <= 1e-7
        if p == 1:
            assert math.isclose(found[0], np.abs(np.cumsum(a - b))[:-1].sum(), abs_tol=1e-12)


def test_a_large_line() -> None:
    count = 200_000
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=count), rng.normal(size=count)
    law = np.full(count, 1 / count)
    found = transport.coupling(law, law, transport.line(x, y))
    assert math.isclose(found.cost, np.abs(np.sort(x) - np.sort(y)).mean(), rel_tol=1e-9)
    assert found.gap <= 1e-10
    assert transport.wasserstein(law, law, transport.line(x, y), p=math.inf) == np.abs(np.sort(x) - np.sort(y)).max()


def test_a_large_grid() -> None:
    rng = np.random.default_rng(0)
    source, target = rng.dirichlet(np.ones(1600)), rng.dirichlet(np.ones(1600))
    found = transport.coupling(source, target, transport.grid((40, 40)))
    table = transport.coupling(source, target, transport.grid((40, 40)).to_matrix())
    assert math.isclose(found.cost, table.cost, rel_tol=1e-11)
    assert isinstance(found.dual, Dual)
    steps = np.diff(found.dual.u.reshape(40, 40), axis=0), np.diff(found.dual.u.reshape(40, 40), axis=1)
    assert max(np.abs(step).max() for step in steps) == 1
    assert np.abs(found.plan.sum(axis=0) - target).max() <= 1e-12
    assert np.abs(found.plan.sum(axis=1) - source).max() <= 1e-12
