"""Column generation against the table of all pairs; its proof covers every pair."""

from __future__ import annotations

import math
import tracemalloc

import numpy as np
import pytest

from tightrope import transport
from tightrope.transport.solvers.arc_pricing import MAX_NEW_ARCS, arc_pricing, profitable_pairs, table_coupling
from tightrope.transport.solvers.result import Dual


@pytest.mark.parametrize("metric", ["chebyshev", "cityblock", "euclidean", "sqeuclidean"])
@pytest.mark.parametrize("dimension", [1, 2, 3])
def test_the_table_agrees(metric: str, dimension: int) -> None:
    rng = np.random.default_rng(dimension)
    x, y = rng.normal(size=(150, dimension)), rng.normal(size=(130, dimension)) + 0.3
    source, target = rng.dirichlet(np.ones(150)), rng.dirichlet(np.full(130, 0.3))
    cost = transport.points(x, y, metric=metric)
    priced, whole = arc_pricing(cost, source, target), table_coupling(cost, source, target)
    assert math.isclose(priced.cost, whole.cost, rel_tol=1e-11)
    assert priced.gap <= 1e-11 * cost.to_matrix().max()
    assert np.abs(priced.plan.sum(axis=0) - target).sum() <= 1e-12
    assert np.abs(priced.plan.sum(axis=1) - source).sum() <= 1e-12


def test_places_that_coincide() -> None:
    """Costs of zero are arcs too, and many optima are equal."""
    rng = np.random.default_rng(1)
    places = rng.integers(0, 8, (300, 2)).astype(float)
    source, target = rng.dirichlet(np.ones(300)), rng.dirichlet(np.ones(300))
    cost = transport.points(places)
    found = arc_pricing(cost, source, target)
    assert found.gap <= 1e-11
    assert arc_pricing(cost, source, source).cost <= 1e-15


def test_powers() -> None:
    rng = np.random.default_rng(2)
    x = rng.random((120, 2))
    source, target = rng.dirichlet(np.ones(120)), rng.dirichlet(np.ones(120))
    cost = transport.points(x).raise_to_power(3)
    assert math.isclose(
        arc_pricing(cost, source, target).cost, table_coupling(cost, source, target).cost, rel_tol=1e-10
    )


@pytest.mark.slow
def test_it_is_chosen_where_there_are_many_pairs() -> None:
    rng = np.random.default_rng(3)
    cost = transport.points(rng.random((1100, 2)), rng.random((1000, 2)))
    found = transport.coupling(rng.dirichlet(np.ones(1100)), rng.dirichlet(np.ones(1000)), cost)
    assert found.method == "arc pricing"
    assert found.gap <= 1e-11


def test_points_without_mass_get_potentials_too() -> None:
    rng = np.random.default_rng(4)
    x, y = rng.random((90, 2)), rng.random((80, 2))
    source, target = rng.dirichlet(np.ones(90)), rng.dirichlet(np.ones(80))
    source[::3], target[1::4] = 0, 0
    source, target = source / source.sum(), target / target.sum()
    found = arc_pricing(transport.points(x, y), source, target)
    assert isinstance(found.dual, Dual)
    slack = transport.points(x, y).to_matrix() - found.dual.u[:, None] - found.dual.v
    assert slack.min() >= 0
    assert found.gap <= 1e-12


@pytest.mark.parametrize("seed", range(8))
def test_lattices_of_ties(seed: int) -> None:
    """Equal weights and equal distances: all vertices are degenerate."""
    rng = np.random.default_rng(seed)
    x, y = rng.integers(0, 12, (2, 200, 2)).astype(float)
    law = np.full(200, 1 / 200)
    for metric in ("cityblock", "chebyshev", "sqeuclidean"):
        cost = transport.points(x, y, metric=metric)
        priced = arc_pricing(cost, law, law)
        assert math.isclose(priced.cost, table_coupling(cost, law, law).cost, rel_tol=1e-10)
        assert priced.gap <= 1e-10 * cost.to_matrix().max()


def test_pairs_that_pay_are_not_held_where_all_of_them_do() -> None:
    """The matrix of costs would be 18 MB, all pairs with what they save 36 MB."""
    rng = np.random.default_rng(7)
    cost = transport.points(rng.random((1500, 2)), rng.random((1500, 2)))
    u, v = 2 + rng.random(1500), rng.random(1500)
    tracemalloc.start()
    pairs, over = profitable_pairs(cost, u, v)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    saved = u[:, None] - cost.to_matrix() + v
    most = MAX_NEW_ARCS * 3000
    assert np.array_equal(np.sort(saved.ravel()[pairs]), np.sort(saved.ravel())[-most:])
    assert np.array_equal(over, saved.max(axis=0))
    assert peak < 12e6
