"""Marginals, their weights and the integers that are counted for them."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from tightrope.errors import InputError
from tightrope.noise.marginals.selection import share_matrix
from tightrope.noise.marginals.workload import MarginalWorkload, Measurement, pair_differences


def test_components_are_all_subsets_once():
    workload = MarginalWorkload.from_marginals([2, 3, 4], [[0, 1], [1, 2]])
    assert workload.components == ((), (0,), (1,), (2,), (0, 1), (1, 2))
    assert workload.cell_count == 6 + 12
    assert sum(workload.dimension_of(component) for component in [(), (0,), (1,), (0, 1)]) == 6


def test_weights_of_cells_and_tables():
    cells = MarginalWorkload.from_orders([2, 3], [1, 2])
    assert cells.weights == (2, 3, 6)
    assert MarginalWorkload.from_orders([2, 3], [1, 2], weights="tables").weights == (1, 1, 1)
    assert MarginalWorkload.from_marginals([2, 3], [[0], [1]], weights=[0.5, 2]).weights == (Fraction(1, 2), 2)


@pytest.mark.parametrize("sizes", [(2,), (3,), (2, 3), (4, 2, 3), (2, 2, 2)])
@pytest.mark.parametrize("widest", [1, 2, 3])
def test_a_row_changes_as_many_integers_as_stated_each_by_one(sizes, widest):
    workload = MarginalWorkload.from_orders(sizes, [len(sizes)])
    for columns in workload.components:
        shape = workload.shape_of(columns)
        measurement = measurement_of(workload, columns, widest)
        for cell in np.ndindex(*shape):
            table = np.zeros(shape, dtype=np.int64)
            table[cell] = 1
            counted = measurement.count_integers(table)
            assert counted.shape == measurement.shape
            assert set(np.unique(counted)) <= {-1, 0, 1}
            assert np.abs(counted).sum() == measurement.counts_per_row


@pytest.mark.parametrize("sizes", [(2, 3, 5), (3, 3, 3, 3), (2, 2, 2, 7), (6, 4)])
@pytest.mark.parametrize("widest", [1, 2, 3, 9])
def test_every_measurement_divides_its_whole_part_among_components(sizes, widest):
    workload = MarginalWorkload.from_orders(sizes, [0, len(sizes)])
    measurements = [measurement_of(workload, columns, widest) for columns in workload.components]
    shares = share_matrix(workload, measurements).toarray()
    assert np.all(shares >= 0)
    assert shares.sum(axis=0) == pytest.approx(np.ones(len(measurements)), rel=1e-14)


@pytest.mark.parametrize("sizes", [(2, 3), (3, 2, 2), (4, 3)])
@pytest.mark.parametrize("widest", [1, 2, 3])
def test_shares_are_the_eigenvalues_of_the_dense_information_matrix(sizes, widest):
    """By matrices of cells: Q_A' Q_A acts on each component as a multiple of its projection."""
    workload = MarginalWorkload.from_orders(sizes, [len(sizes)])
    cells = workload.cells_of(tuple(range(len(sizes))))
    projections = [projection(sizes, component) for component in workload.components]
    for columns in workload.components:
        differences = tuple(i for i in columns if sizes[i] <= widest)
        measurement = Measurement(workload, columns, differences)
        query = dense_query(sizes, columns, differences)
        assert np.all(np.abs(query).sum(axis=0) == measurement.counts_per_row)
        information = query.T @ query / measurement.counts_per_row
        shares = share_matrix(workload, [measurement]).toarray()[:, 0]
        for component, share, onto in zip(workload.components, shares, projections, strict=True):
            eigenvalue = share * cells / workload.dimension_of(component)
            assert information @ onto == pytest.approx(eigenvalue * onto, abs=1e-12)


def measurement_of(workload, columns, widest):
    """Return the measurement with differences along the columns that have at most ``widest`` values."""
    return Measurement(workload, columns, tuple(i for i in columns if workload.sizes[i] <= widest))


def dense_query(sizes, columns, differences):
    """Return the matrix of a measurement over all cells."""
    matrix = np.ones((1, 1))
    for i, size in enumerate(sizes):
        factor = pair_differences(size) if i in differences else np.eye(size) if i in columns else np.ones((1, size))
        matrix = np.kron(matrix, factor)
    return matrix


def projection(sizes, component):
    """Return the projection onto a component over all cells."""
    matrix = np.ones((1, 1))
    for i, size in enumerate(sizes):
        mean = np.full((size, size), 1 / size)
        matrix = np.kron(matrix, np.eye(size) - mean if i in component else mean)
    return matrix


@pytest.mark.parametrize(
    ("arguments", "parameter"),
    [
        ({"sizes": [1, 2], "marginals": [[0]]}, "sizes"),
        ({"sizes": [2.0, 2], "marginals": [[0]]}, "sizes"),
        ({"sizes": [2, 2], "marginals": []}, "marginals"),
        ({"sizes": [2, 2], "marginals": [[2]]}, "marginals"),
        ({"sizes": [2, 2], "marginals": [[0.0]]}, "marginals"),
        ({"sizes": [2, 2], "marginals": [[0, 0]]}, "marginals"),
        ({"sizes": [2, 2], "marginals": [[0, 1], [1, 0]]}, "marginals"),
        ({"sizes": [2, 2], "marginals": [[0]], "weights": [0.0]}, "weights"),
        ({"sizes": [2, 2], "marginals": [[0]], "weights": [float("nan")]}, "weights"),
        ({"sizes": [2, 2], "marginals": [[0]], "weights": [1, 1]}, "weights"),
        ({"sizes": [10_000, 10_000], "marginals": [[0, 1]]}, "marginals"),
        ({"sizes": [2] * 40, "marginals": [list(range(25))]}, "marginals"),
    ],
)
def test_impossible_workloads_are_refused(arguments, parameter):
    with pytest.raises(InputError) as error:
        MarginalWorkload.from_marginals(**arguments)
    assert error.value.name == parameter


@pytest.mark.parametrize("orders", [[3], [-1], [1.5]])
def test_impossible_orders_are_refused(orders):
    with pytest.raises(InputError) as error:
        MarginalWorkload.from_orders([2, 2], orders)
    assert error.value.name == "orders"


def test_too_many_tables_are_refused_before_they_are_listed():
    with pytest.raises(InputError):
        MarginalWorkload.from_orders([2] * 100, [50])


def test_more_differences_are_those_with_which_a_row_changes_few_integers():
    workload = MarginalWorkload.from_orders([2, 3, 4, 9], [4])
    parity = Measurement.with_parities(workload, (0, 1, 2, 3))
    assert parity.differences == (0,)
    assert {m.differences for m in parity.with_more_differences(6)} == {(0, 1), (0, 2), (0, 1, 2)}
    assert {m.counts_per_row for m in parity.with_more_differences(6)} == {2, 3, 6}
    assert Measurement.with_parities(workload, (0,)).with_more_differences(99) == []


def test_every_set_of_columns_is_found_for_orders():
    workload = MarginalWorkload.from_orders([2] * 5, [2, 0])
    assert set(workload.marginals) == {(), *combinations(range(5), 2)}
