"""The best division of a budget among measurements: numbers of theory §4.4, proofs, brute force, and integer noise."""

from __future__ import annotations

import math
import time
from functools import reduce
from itertools import combinations, pairwise, product
from operator import add

import numpy as np
import pytest
import scipy.optimize

from tightrope.accounting.distributions.gaussian import gaussian_mu
from tightrope.documents.budget import Budget
from tightrope.errors import InputError
from tightrope.ledger.noise_record import NoiseRecord
from tightrope.noise.allocation import allocate_noise, gaussian_guess
from tightrope.noise.marginals.selection import (
    MarginalNoise,
    allocate_marginal_noise,
    noise_groups,
    plan_measurements,
    round_sizes,
    share_matrix,
    variance_lower_bound,
)
from tightrope.noise.marginals.workload import MarginalWorkload, Measurement
from tightrope.noise.worst_split import EIGHTHS, CompositionGroup, NoiseSpec, SplitBounds

SETTINGS = [
    ((2, 2, 5, 8, 16, 50), (1, 2), 2.702, 2.702),
    ((2,) * 8, (1, 2), 2.591, 2.591),
    ((2,) * 8, (3,), 2.818, 2.818),
    ((10,) * 5, (1, 2, 3), 3.243, 3.243),
    ((2, 5, 9, 7, 16, 2, 2, 41, 99, 17), (1, 2), 4.194, 4.194),
    ((3,) * 5, (1, 2), 2.390, 2.325),
]
"""Sizes, orders, the root mean square deviation of a cell at μ = 1 with one-hot counts and parities, the optimum."""


@pytest.mark.parametrize(("sizes", "orders", "with_parities", "optimum"), SETTINGS)
def test_settings_of_the_theory(sizes, orders, with_parities, optimum):
    workload = MarginalWorkload.from_orders(sizes, orders)
    plan = plan_measurements(workload, most_changes=1)
    deviation = plan.root_mean_square_deviation()
    assert deviation == pytest.approx(with_parities, rel=1e-3)
    limit = math.sqrt(plan.gaussian_limit / workload.cell_count)
    assert limit == pytest.approx(optimum, rel=1e-3)
    assert deviation == pytest.approx(math.sqrt(plan.weighted_variance / workload.cell_count), rel=1e-9)
    assert plan.gap <= (0.03 if 3 in sizes else 1e-3)
    assert plan.weighted_variance <= plan.reachable_limit * (1 + 1e-5)
    assert sum(plan.parts) == pytest.approx(1, rel=1e-12)


@pytest.mark.parametrize("orders", [(1,), (1, 2), (0, 1, 2, 3)])
def test_differences_of_pairs_reach_the_optimum_for_three_values(orders):
    plan = plan_measurements(MarginalWorkload.from_orders((3,) * 5, orders), most_changes=8)
    assert plan.gap <= 1e-5


def test_differences_of_every_column_always_reach_the_optimum():
    rng = np.random.default_rng(7)
    for _ in range(20):
        sizes = rng.integers(2, 7, rng.integers(1, 6)).tolist()
        every = [list(c) for k in range(len(sizes) + 1) for c in combinations(range(len(sizes)), k)]
        chosen = [every[i] for i in rng.choice(len(every), rng.integers(1, len(every) + 1), replace=False)]
        weights = rng.uniform(0.01, 10, len(chosen)).tolist()
        workload = MarginalWorkload.from_marginals(sizes, chosen, weights=weights)
        assert plan_measurements(workload, most_changes=10**6).gap <= 1e-5


@pytest.mark.parametrize(
    ("sizes", "marginals", "weights"),
    [
        ((2, 3), [(0,), (1,), (0, 1)], "cells"),
        ((2, 2, 2), [(0, 1), (1, 2)], "cells"),
        ((3, 3), [(0,), (1,), (0, 1)], "tables"),
        ((2, 4), [(0, 1), ()], [1.0, 30.0]),
    ],
)
def test_the_bound_is_the_optimum_of_dense_mechanisms(sizes, marginals, weights):
    """Another route: minimize over all information matrices F = R'R of cells with a diagonal of 1."""
    workload = MarginalWorkload.from_marginals(sizes, marginals, weights=weights)
    cells = math.prod(sizes)
    cost = np.zeros((cells, cells))
    for columns, weight in zip(workload.marginals, workload.weights, strict=True):
        query = np.ones((1, 1))
        for i, size in enumerate(sizes):
            query = np.kron(query, np.eye(size) if i in columns else np.ones((1, size)))
        cost += float(weight) / len(query) * query.T @ query

    def variance(flat):
        root = flat.reshape(cells, cells)
        root = root / np.linalg.norm(root, axis=0)
        return float(np.trace(np.linalg.solve(root.T @ root + 1e-9 * np.eye(cells), cost)))

    rng, limit = np.random.default_rng(3), variance_lower_bound(workload)
    found = min(
        scipy.optimize.minimize(
            variance,
            np.eye(cells).ravel() + 0.3 * rng.normal(size=cells**2),
            method="L-BFGS-B",
            options={"maxfun": 40_000},
        ).fun
        for _ in range(2)
    )
    assert limit * (1 - 1e-6) <= found <= limit * (1 + 2e-3)


def test_more_changes_are_never_worse():
    workload = MarginalWorkload.from_orders((2, 3, 4, 5) * 3, (1, 2, 3))
    limits = (1, 2, 4, 16, 64)
    plans = [plan_measurements(workload, most_changes=limit) for limit in limits]
    variances = [plan.weighted_variance for plan in plans]
    assert all(later <= earlier * (1 + 1e-5) for earlier, later in pairwise(variances))
    for plan, limit in zip(plans, limits, strict=True):
        assert max(measurement.counts_per_row for measurement in plan.measurements) <= limit
    assert plans[0].gap >= 0.05 and plans[-1].gap <= 1e-4


@pytest.mark.parametrize("sizes", [(3, 3, 3), (3, 4, 2), (10, 10)])
def test_the_best_parts_by_another_solver(sizes):
    workload = MarginalWorkload.from_orders(sizes, range(1, len(sizes) + 1))
    plan = plan_measurements(workload, most_changes=1)
    measurements = [Measurement.with_parities(workload, columns) for columns in workload.components]
    shares = share_matrix(workload, measurements).toarray()
    costs = np.array([float(cost) for cost in workload.component_costs])

    def variance(parts):
        return float(np.sum(costs / (shares @ parts + 1e-300)))

    start = np.full(len(measurements), 1 / len(measurements))
    found = scipy.optimize.minimize(
        variance,
        start,
        method="SLSQP",
        bounds=[(0, 1)] * len(start),
        constraints=[{"type": "eq", "fun": lambda parts: np.sum(parts) - 1}],
        options={"maxiter": 2000, "ftol": 1e-12},
    )
    assert plan.weighted_variance == pytest.approx(found.fun, rel=1e-5)
    assert plan.reachable_limit <= found.fun


def test_any_prices_give_a_lower_bound_and_the_plan_its_best():
    rng = np.random.default_rng(11)
    workload = MarginalWorkload.from_orders((3, 4, 3, 5), (1, 2, 3))
    plan = plan_measurements(workload, most_changes=1)
    for _ in range(200):
        prices = rng.exponential(size=len(workload.components)) ** rng.integers(1, 4)
        bound = variance_lower_bound(workload, plan.measurements, prices.tolist())
        assert bound <= plan.weighted_variance
        parts = rng.dirichlet(np.full(len(plan.measurements), 0.5))
        information = share_matrix(workload, plan.measurements) @ parts
        costs = np.array([float(cost) for cost in workload.component_costs])
        with np.errstate(divide="ignore"):
            assert plan.reachable_limit <= np.sum(costs / information)
    assert plan.reachable_limit >= plan.weighted_variance * (1 - 1e-5)
    assert plan.gaussian_limit <= plan.reachable_limit


@pytest.mark.parametrize("prices", [[], [-1.0, 1, 1, 1], [math.nan, 1, 1, 1], [0.0, 0, 0, 0]])
def test_prices_that_prove_nothing_are_refused(prices):
    workload = MarginalWorkload.from_orders((2, 3), (2,))
    plan = plan_measurements(workload)
    with pytest.raises(InputError):
        variance_lower_bound(workload, plan.measurements, prices)


@pytest.mark.parametrize(
    ("sizes", "orders"), [((2, 3, 4, 5, 7) * 4, (0, 1, 2, 3)), ((2, 3, 14, 20, 7) * 20, (0, 1, 2)), ((10,) * 20, (3,))]
)
def test_many_columns_are_planned_in_seconds(sizes, orders):
    start = time.process_time()
    workload = MarginalWorkload.from_orders(sizes, orders)
    plan = plan_measurements(workload)
    round_sizes(plan)
    assert plan.gaussian_limit <= plan.reachable_limit <= plan.weighted_variance * (1 + 1e-12)
    assert time.process_time() - start < 10


@pytest.mark.parametrize(("sizes", "orders", "_with_parities", "_optimum"), SETTINGS)
def test_rounded_sizes_cost_little(sizes, orders, _with_parities, _optimum):
    plan = plan_measurements(MarginalWorkload.from_orders(sizes, orders))
    measurements, eighths = round_sizes(plan)
    assert set(eighths) <= set(EIGHTHS)
    parts = np.array([m.counts_per_row / size**2 for m, size in zip(measurements, eighths, strict=True)])
    information = share_matrix(plan.workload, measurements) @ (parts / parts.sum())
    costs = np.array([float(cost) for cost in plan.workload.component_costs])
    assert math.sqrt(np.sum(costs / information) / plan.gaussian_limit) <= 1.02


BUDGET = Budget(epsilon=1, delta=1e-8)


@pytest.mark.parametrize(("sizes", "orders", "_with_parities", "_optimum"), SETTINGS)
def test_errors_beside_equal_budgets(sizes, orders, _with_parities, _optimum):
    workload = MarginalWorkload.from_orders(sizes, orders)
    noise = allocate_marginal_noise(workload, BUDGET)
    assert noise.loss.delta(1.0) <= 1e-8
    alone = CompositionGroup((NoiseSpec("count", 8, whole_rows=True),), SplitBounds(1, 1, 1))
    equal = allocate_noise([alone] * len(workload.marginals), BUDGET, compare=False)
    deviation = math.sqrt(noise.weighted_variance / workload.cell_count)
    assert equal.selections[0][0].scalar_table.mean_squared ** 0.5 >= 1.5 * deviation


def test_few_measurements_get_the_sizes_for_noise_that_is_not_gaussian():
    workload = MarginalWorkload.from_orders((2, 5, 9), (1, 2))
    measurements, sizes = round_sizes(plan_measurements(workload))
    gaussian_sizes = MarginalNoise(
        workload, measurements, allocate_noise(noise_groups(measurements, sizes), BUDGET), BUDGET
    )
    noise = allocate_marginal_noise(workload, BUDGET)
    assert math.sqrt(noise.weighted_variance) <= 0.8 * math.sqrt(gaussian_sizes.weighted_variance)
    assert len(noise.measurements) < len(measurements)


@pytest.mark.parametrize("power", [2.0, 1.5, 1.0])
def test_sizes_for_a_power_are_a_local_minimum(power):
    """Another factor for any single size does not help."""
    plan = plan_measurements(MarginalWorkload.from_orders((2, 5, 9, 4), (1, 2)), most_changes=1)
    measurements, sizes = round_sizes(plan, power)
    shares = share_matrix(plan.workload, measurements)
    costs = np.array([float(cost) for cost in plan.workload.component_costs])

    def variance(scales):
        return np.sum(costs / (shares @ (1 / scales**2))) * np.sum(scales**-power) ** (2 / power)

    least = variance(np.array(sizes, dtype=float))
    for position, factor in product(range(len(sizes)), (0.4, 2.5)):
        changed = np.array(sizes, dtype=float)
        changed[position] *= factor
        assert least <= variance(changed)


@pytest.mark.parametrize(
    "budget",
    [
        Budget(epsilon=0.5, delta=1e-6),
        Budget(attack_success=0.55, delta=1e-8),
        Budget(epsilon=1, delta=1e-6, total_variation=0.2),
        Budget(epsilon=2, delta=0),
    ],
)
def test_the_loss_of_all_tables_together_meets_the_budget(budget):
    """It is not below the composition of the tables' own losses, and a ledger's record gives it again."""
    workload = MarginalWorkload.from_orders((2, 3), (1, 2))
    noise = allocate_marginal_noise(workload, budget)
    own_losses = [m.counts_per_row * table.loss(1) for m, table in zip(noise.measurements, noise.tables, strict=True)]
    total = reduce(add, own_losses)
    allocation = noise.allocation
    groups = tuple(noise_groups(noise.measurements, [spec.noise_spec.eighths for (spec,) in allocation.selections]))
    record = NoiseRecord(groups, allocation.selections, allocation.loss_lattice, bounds_splits=allocation.bounds_splits)
    again = NoiseRecord.from_text(record.to_text).composed_loss()
    for epsilon, delta in budget.rounded_points:
        assert total.delta_bounds(epsilon).lower <= noise.loss.delta(epsilon) <= delta
        assert again.delta(epsilon) == noise.loss.delta(epsilon)


def test_several_rows_of_a_person_cover_every_way_they_may_fall():
    """Two rows: together in each table, apart in each, or mixed."""
    workload = MarginalWorkload.from_orders((3, 4), (1, 2))
    noise = allocate_marginal_noise(workload, Budget(epsilon=1, delta=1e-6), max_rows=2)
    rng = np.random.default_rng(5)
    for _ in range(12):
        cells = [tuple(rng.integers(0, size) for size in workload.sizes) for _ in range(2)]
        if rng.random() < 0.3:
            cells[1] = cells[0]
        loss = None
        for measurement, table in zip(noise.measurements, noise.tables, strict=True):
            marginal = np.zeros(workload.shape_of(measurement.columns), dtype=np.int64)
            for cell in cells:
                marginal[tuple(cell[i] for i in measurement.columns)] += 1
            for shift in np.abs(measurement.count_integers(marginal)).ravel():
                if shift:
                    one = table.loss(int(shift))
                    loss = one if loss is None else loss + one
        assert loss.delta_bounds(1.0).lower <= 1e-6


def test_groups_bound_rows_and_the_integers_that_they_change():
    workload = MarginalWorkload.from_orders((3, 3, 7), (3,))
    (group,) = noise_groups([Measurement(workload, (0, 1, 2), (0, 1))], [8], max_rows=5)
    assert group.split_bounds == SplitBounds(20, 5, 63)


def test_twenty_columns_get_their_noise_in_seconds():
    workload = MarginalWorkload.from_orders((2, 3, 4, 5, 7) * 4, (0, 1, 2, 3))
    start = time.process_time()
    noise = allocate_marginal_noise(workload, BUDGET)
    assert time.process_time() - start < 16  # eight if nothing else runs
    assert noise.loss.delta(1.0) <= 1e-8
    # within 3 % of Gaussian noise at this budget with any linear mechanism
    least = math.sqrt(variance_lower_bound(workload)) / gaussian_mu(1.0, 1e-8)
    assert 1 <= math.sqrt(noise.weighted_variance) / least <= 1.03


@pytest.mark.parametrize("rows", [3, 7, 20])
def test_noise_for_several_rows_is_planned_in_seconds_and_in_proportion(rows):
    workload = MarginalWorkload.from_orders((2, 2, 5, 8, 16, 50), (0, 1, 2))
    one_row = allocate_marginal_noise(workload, BUDGET)
    start = time.process_time()
    noise = allocate_marginal_noise(workload, BUDGET, max_rows=rows)
    assert time.process_time() - start < 16  # six if nothing else runs
    assert noise.loss.delta(1.0) <= 1e-8
    ratio = math.sqrt(noise.weighted_variance / one_row.weighted_variance) / rows
    assert ratio == pytest.approx(1, abs=0.01)
    groups = noise_groups(noise.measurements, noise.sizes, rows)
    again = allocate_noise(groups, BUDGET, compare=False, like=noise.allocation)
    assert noise.allocation.total_error <= again.total_error * (1 + 1e-3)


def test_rows_whose_splits_are_bounded_together_get_a_family_with_a_close_bound():
    workload = MarginalWorkload.from_orders((2, 5, 9), (0, 1, 2))
    one_row = allocate_marginal_noise(workload, BUDGET)
    noise = allocate_marginal_noise(workload, BUDGET, max_rows=30)
    assert noise.loss.delta(1.0) <= 1e-8
    assert math.sqrt(noise.weighted_variance / one_row.weighted_variance) / 30 <= 1.1


@pytest.mark.parametrize("budget", [BUDGET, Budget(attack_success=0.55, delta=1e-6), Budget(epsilon=8, delta=1e-3)])
def test_the_estimated_size_of_gaussian_noise_is_near_the_least_one(budget):
    workload = MarginalWorkload.from_orders((2, 3, 4) * 4, (0, 1, 2, 3))
    measurements, sizes = round_sizes(plan_measurements(workload))
    groups = noise_groups(measurements, sizes)
    guess = gaussian_guess(groups, budget)
    found = allocate_noise(groups, budget, compare=False, like=guess)
    assert found.normalized_size / guess.normalized_size == pytest.approx(1, abs=0.02)
