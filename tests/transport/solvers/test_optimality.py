"""Every kind of cost on many small random problems, each verified in rationals."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.transport.rational import check, check_bottleneck, costs_of, table_of
from tightrope import transport
from tightrope.transport.solvers.result import Dual

TRIES = 60


def laws(rng: np.random.Generator, n: int, m: int) -> tuple[np.ndarray, np.ndarray]:
    """Two laws, of a kind that varies: with zeros, with equal weights, with weights of many orders of magnitude."""
    kind = rng.integers(4)
    found = []
    for size in (n, m):
        masses = rng.dirichlet(np.full(size, [1.0, 0.1, 5.0, 1.0][kind]))
        if kind == 1 and size > 1:
            masses[rng.integers(size)] = 0
        if kind == 3:
            masses = np.ones(size)
        found.append(masses / masses.sum())
    return found[0], found[1]


@pytest.mark.parametrize("p", [1, 2])
def test_tables(p: int) -> None:
    rng = np.random.default_rng(p)
    for _ in range(2 * TRIES):
        n, m = rng.integers(1, 9, 2)
        source, target = laws(rng, n, m)
        table = np.ldexp(rng.integers(0, 1 << 20, (n, m)).astype(float), -int(rng.integers(30)))
        found = transport.coupling(source, target, table, p=p)
        check(found, source, target, [[value**p for value in row] for row in table_of(table)])


@pytest.mark.parametrize("p", [1, 2, 3])
def test_lines(p: int) -> None:
    rng = np.random.default_rng(10 + p)
    for _ in range(TRIES):
        n, m = rng.integers(1, 9, 2)
        source, target = laws(rng, n, m)
        x, y = rng.normal(size=n).round(rng.integers(8)), rng.normal(size=m).round(rng.integers(8))
        found = transport.coupling(source, target, transport.line(x, y), p=p)
        assert found.method == "monotone rearrangement"
        check(found, source, target, costs_of((x, y), p))
        assert math.isclose(
            found.wasserstein_distance, transport.wasserstein(source, target, transport.line(x, y), p=p)
        )


@pytest.mark.parametrize("p", [1, 2])
def test_places_with_the_cityblock_metric(p: int) -> None:
    rng = np.random.default_rng(20 + p)
    for _ in range(TRIES):
        n, m = rng.integers(1, 9, 2)
        source, target = laws(rng, n, m)
        x, y = rng.normal(size=(n, 2)), rng.normal(size=(m, 2))
        found = transport.coupling(source, target, transport.points(x, y, metric="cityblock"), p=p)
        check(found, source, target, costs_of((x, y), p))


@pytest.mark.parametrize("metric", ["cityblock", "chebyshev"])
def test_grids(metric: str) -> None:
    rng = np.random.default_rng(30)
    for _ in range(TRIES):
        shape = tuple(rng.integers(1, 5, rng.integers(1, 4)).tolist())
        cells = math.prod(shape)
        source, target = laws(rng, cells, cells)
        cost = transport.grid(shape, metric=metric)
        found = transport.coupling(source, target, cost)
        assert found.method == "edge flow"
        check(found, source, target, table_of(cost.to_matrix()))


def test_graphs() -> None:
    rng = np.random.default_rng(40)
    for _ in range(TRIES):
        nodes = int(rng.integers(2, 10))
        cost = transport.graph(ring_with_chords(rng, nodes))
        source, target = laws(rng, nodes, nodes)
        found = transport.coupling(source, target, cost)
        assert found.method == "edge flow"
        check(found, source, target, table_of(cost.to_matrix()))
        squared = transport.coupling(source, target, cost, p=2)
        assert squared.wasserstein_distance >= found.wasserstein_distance - 1e-12


def ring_with_chords(rng: np.random.Generator, nodes: int) -> np.ndarray:
    """Lengths are multiples of 2⁻¹⁰, so that sums of them are exact in floats."""
    table = np.zeros((nodes, nodes))
    for k in range(nodes):
        table[k, (k + 1) % nodes] = rng.integers(1, 4096) / 1024
    table[rng.integers(nodes), rng.integers(nodes)] = rng.integers(1, 4096) / 1024
    np.fill_diagonal(table, 0)
    return np.maximum(table, table.T)


def test_lengths_that_are_no_round_numbers() -> None:
    rng = np.random.default_rng(41)
    table = ring_with_chords(rng, 30)
    table = table * np.pi
    cost = transport.graph(table)
    source, target = laws(rng, 30, 30)
    found = transport.coupling(source, target, cost)
    assert found.gap <= 1e-11
    assert math.isclose(found.cost, transport.coupling(source, target, cost.to_matrix()).cost, rel_tol=1e-11)


def test_the_largest_cost() -> None:
    rng = np.random.default_rng(50)
    for _ in range(2 * TRIES):
        n, m = rng.integers(1, 9, 2)
        source, target = laws(rng, n, m)
        table = rng.integers(0, 12, (n, m)).astype(float)
        check_bottleneck(transport.coupling(source, target, table, p=math.inf), source, target, table)


def test_the_largest_cost_on_a_line() -> None:
    rng = np.random.default_rng(51)
    for _ in range(TRIES):
        n, m = rng.integers(1, 9, 2)
        source, target = laws(rng, n, m)
        cost = transport.line(rng.integers(0, 20, n), rng.integers(0, 20, m))
        found = transport.coupling(source, target, cost, p=math.inf)
        check_bottleneck(found, source, target, cost.to_matrix())
        assert found.cost == transport.coupling(source, target, cost.to_matrix(), p=math.inf).cost


def test_a_wrong_dual_is_caught() -> None:
    """The power of the verification: potentials that are a little too large fail it."""
    law = np.array([0.5, 0.5])
    found = transport.coupling(law, law[::-1].copy(), [[0, 1], [1, 0]])
    assert isinstance(found.dual, Dual)
    found.dual.u[0] += 1e-9
    with pytest.raises(AssertionError):
        check(found, law, law, table_of(np.array([[0.0, 1.0], [1.0, 0.0]])))
