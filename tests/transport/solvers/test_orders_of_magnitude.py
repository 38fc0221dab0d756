"""Costs of any order of magnitude: one of 1e32 or 1e150 among small ones, points far away, any unit."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy.optimize import linprog

from tests.transport.rational import check_marginals
from tightrope import transport
from tightrope.errors import InputError, PrecisionError

FAR = 1e16
CLOSE = 1e-6


def pair(rng: np.random.Generator, n: int, m: int) -> tuple[np.ndarray, np.ndarray]:
    return rng.dirichlet(np.ones(n)), rng.dirichlet(np.ones(m))


def least(source: np.ndarray, target: np.ndarray, costs: np.ndarray) -> tuple[float, np.ndarray]:
    """What HiGHS finds, and its plan; the costs should be near 1."""
    n, m = costs.shape
    sums = np.vstack([np.kron(np.eye(n), np.ones(m)), np.kron(np.ones(n), np.eye(m))])
    found = linprog(costs.ravel(), A_eq=sums, b_eq=np.concatenate([source, target]))
    return float(found.fun), found.x.reshape(n, m)


@pytest.mark.parametrize("outlier", [1e10, 1e32, 1e150])
@pytest.mark.parametrize("size", [6, 90])
def test_one_huge_cost_leaves_the_others_their_digits(outlier: float, size: int) -> None:
    rng = np.random.default_rng(size)
    source, target = pair(rng, size, size)
    costs = rng.integers(1, 2001, (size, size)).astype(float)
    costs[1, 2] = 1e6
    expected, _ = least(source, target, costs / 1000)
    costs[1, 2] = outlier
    found = transport.coupling(source, target, costs)
    assert math.isclose(found.cost, 1000 * expected, rel_tol=CLOSE)
    assert abs(found.gap) <= CLOSE * found.cost


def test_small_tables_in_any_unit_with_an_outlier() -> None:
    rng = np.random.default_rng(0)
    compared = 0
    for _ in range(150):
        n, m = rng.integers(2, 7, 2)
        source, target = pair(rng, n, m)
        near, unit = rng.uniform(0.1, 10, (n, m)), 10.0 ** rng.uniform(-150, 150)
        i, j = rng.integers(n), rng.integers(m)
        near[i, j] = 1e3
        expected, plan = least(source, target, near)
        costs = near * unit
        costs[i, j] = unit * 10.0 ** rng.uniform(3, 150)
        found = transport.coupling(source, target, costs)
        check_marginals(found, source, target)
        assert abs(found.gap) <= CLOSE * found.cost
        if plan[i, j] == 0:
            compared += 1
            assert math.isclose(found.cost, expected * unit, rel_tol=CLOSE)
    assert compared > 100


def test_entries_of_all_orders_of_magnitude() -> None:
    rng = np.random.default_rng(1)
    for _ in range(30):
        n, m = rng.integers(2, 7, 2)
        source, target = pair(rng, n, m)
        found = transport.coupling(source, target, 10.0 ** rng.uniform(-150, 150, (n, m)))
        assert abs(found.gap) <= CLOSE * found.cost


@pytest.mark.parametrize("p", [1, 2, 3])
@pytest.mark.parametrize("cost", [transport.points, lambda x, y: transport.line(x.ravel(), y.ravel())])
def test_a_far_pair_that_stays_there(p: int, cost: Callable[..., object]) -> None:
    rng = np.random.default_rng(p)
    x, y = rng.random((8, 1)), rng.random((8, 1))
    x[0], y[3] = FAR, FAR
    law = np.full(8, 1 / 8)
    expected = np.mean(np.abs(np.sort(x.ravel()) - np.sort(y.ravel())) ** p) ** (1 / p)
    found = transport.coupling(law, law, cost(x, y), p=p)
    assert math.isclose(found.wasserstein_distance, expected, rel_tol=CLOSE)
    assert abs(found.gap) <= CLOSE * found.cost
    assert math.isclose(transport.wasserstein(law, law, cost(x, y), p=p), expected, rel_tol=CLOSE)


def test_a_far_pair_among_points_that_are_priced_arc_by_arc() -> None:
    rng = np.random.default_rng(5)
    x, y = rng.random((1030, 2)), rng.random((1030, 2))
    x[0], y[3] = FAR, FAR
    law = np.full(1030, 1 / 1030)
    found = transport.coupling(law, law, transport.points(x, y))
    assert found.cost < 1
    assert abs(found.gap) <= CLOSE * found.cost


def test_distances_are_refused_in_the_words_of_couplings() -> None:
    rng = np.random.default_rng(6)
    source, target = pair(rng, 5000, 5000)
    places = np.concatenate([rng.random(4999), [1e30]])
    target[-1] = source[-1]
    target /= target.sum()
    said = []
    for ask in (transport.coupling, transport.wasserstein):
        with pytest.raises(PrecisionError) as refused:
            ask(source, target, transport.line(places), p=1)
        said.append(str(refused.value))
    assert said[0] == said[1]
    assert "unit" in said[0]


def test_an_edge_of_huge_length() -> None:
    edges = np.zeros((4, 4))
    edges[0, 1], edges[1, 2], edges[2, 3], edges[0, 3] = 1, 2, 1e32, 1e32
    found = transport.coupling([0.5, 0.5, 0, 0], [0, 0.2, 0.8, 0], transport.graph(edges + edges.T))
    assert math.isclose(found.cost, 2.1)


@pytest.mark.parametrize("size", [5, 60, 400])
def test_laws_that_differ_by_roundings_are_not_refused(size: int) -> None:
    rng = np.random.default_rng(size)
    source, _ = pair(rng, size, size)
    target = source * (1 + 1e-16 * rng.integers(-2, 3, size))
    assert transport.coupling(source, target / target.sum(), transport.points(rng.random((size, 2)))).cost < 1e-15


@pytest.mark.parametrize("kind", [np.float32, np.float16])
def test_short_floats_are_divided_in_doubles(kind: type[np.floating]) -> None:
    counts = np.arange(1, 101).astype(kind)
    law = counts / counts.sum()
    found = transport.wasserstein(law, law[::-1], transport.line(np.arange(100)))
    assert math.isclose(found, 33, rel_tol=float(np.finfo(kind).eps) * 4)
    with pytest.raises(InputError, match="in doubles"):
        transport.wasserstein(counts, law, transport.line(np.arange(100)))


@pytest.mark.parametrize("metric", ["euclidean", "sqeuclidean"])
@pytest.mark.parametrize("unit", [1e-300, 1e-200, 1e-165])
def test_places_whose_distance_floats_take_for_zero_are_refused(metric, unit):
    cost = transport.points([[0.0, 0.0], [unit, unit]], metric=metric)
    for attempt in (transport.coupling, transport.wasserstein):
        with pytest.raises(PrecisionError, match="larger unit"):
            attempt([0.5, 0.5], [0.2, 0.8], cost)
    assert transport.wasserstein([0.5, 0.5], [0.5, 0.5], cost) == 0


def test_powers_that_floats_take_for_zero_are_refused():
    for cost in ([[1e-200, 1], [1, 1e-200]], transport.line([0, 1], [1e-200, 1])):
        with pytest.raises(PrecisionError, match="larger unit"):
            transport.wasserstein([0.5, 0.5], [0.5, 0.5], cost, p=2)
    assert transport.wasserstein([0.5, 0.5], [0.2, 0.8], transport.points([[0, 0], [1e-140, 0]])) == pytest.approx(
        3e-141
    )
