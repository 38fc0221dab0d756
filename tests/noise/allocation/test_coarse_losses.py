"""Losses of long tables in cells: above the exact losses of every shift, and close to them."""

from __future__ import annotations

import numpy as np
import pytest

from tightrope.accounting.loss_pmf import LossLattice, LossPMF
from tightrope.documents.budget import Budget
from tightrope.mechanisms.discrete.integer_tables import (
    gaussian_table,
    staircase_table,
    truncated_geometric,
)
from tightrope.mechanisms.discrete.noise_table import NoiseTable
from tightrope.noise.allocation import MAX_AVOIDABLE_NOISE, allocate_noise
from tightrope.noise.coarse_losses import CoarseLosses, certified_noise_loss
from tightrope.noise.worst_split import CompositionGroup, NoiseSpec, SplitBounds

WINDOW = LossLattice(1 / 400, 4000)
TABLES = [
    truncated_geometric(scale=3.0, largest=9),
    truncated_geometric(scale=200.0, largest=3000),
    gaussian_table(2.0),
    gaussian_table(300.0),
    NoiseTable.from_probabilities([1.0], tail_ratio=0.78),
    NoiseTable.from_probabilities([1.0, 0.9], tail_ratio=0.993),
    NoiseTable.from_probabilities([5, 5, 4, 1, 1, 0.2]),
    staircase_table(0.5, 3),
]


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("shift", [1, 2, 7, 40])
def test_cells_are_above_the_exact_losses_and_close(table, shift):
    if table.tail is None and shift > 2 * len(table.half):
        cells = CoarseLosses.from_table(table).loss_cells(shift)
        assert cells.infinite_mass == 1
        return
    exact, cells = table.atoms_for_shift(shift), CoarseLosses.from_table(table).loss_cells(shift)
    above = LossPMF.from_cells(cells, WINDOW)
    deltas = exact.profile(np.linspace(-1, 3, 81))
    bounds = np.array([above.delta(e) for e in np.linspace(-1, 3, 81)])
    assert np.all(deltas <= bounds * (1 + 1e-9) + 1e-30)
    assert np.all(bounds <= deltas + 2e-4)
    assert cells.infinite_mass == pytest.approx(exact.infinite_mass, rel=1e-9, abs=1e-300)
    finite = exact.losses[exact.masses > 0]
    assert float(np.max(cells.upper)) >= float(np.max(finite)) - 1e-15
    assert float(np.max(cells.upper)) == pytest.approx(float(np.max(finite)), abs=1e-11)


def test_tables_that_are_not_unimodal_are_composed_from_their_atoms():
    table = NoiseTable.from_probabilities([1, 2, 1])
    assert CoarseLosses.from_table(table) is None
    assert certified_noise_loss(table, True)(2).infinite_mass == table.atoms_for_shift(2).infinite_mass


@pytest.mark.parametrize("rows", [300, 1000, 10_000])
@pytest.mark.parametrize("needs_bound", [False, True])
def test_many_rows_need_noise_in_proportion(rows, needs_bound):
    """In one count, one group with all rows is the worst split: noise of 1/ε times the rows."""
    group = CompositionGroup((NoiseSpec("count", 8, True, needs_bound),), SplitBounds(rows, rows, rows))
    allocation = allocate_noise([group], Budget(epsilon=1, delta=1e-6))
    assert allocation.selections[0][0].table.mean_absolute == pytest.approx(rows, rel=1e-3)
    assert allocation.loss.delta(1.0) <= 1e-6
    assert allocation.avoidable_noise < 1e-3


def test_splits_are_enumerated_where_the_bound_would_cost_more_than_a_hundredth():
    group = CompositionGroup((NoiseSpec("count", 8, True, True),), SplitBounds(40, 40, 40))
    cheap = allocate_noise([group], Budget(epsilon=1, delta=1e-6))
    assert cheap.bounds_splits and cheap.avoidable_noise <= MAX_AVOIDABLE_NOISE
    few = CompositionGroup((NoiseSpec("count", 8, True, True),), SplitBounds(20, 20, 20))
    assert not allocate_noise([few], Budget(epsilon=1, delta=1e-6)).bounds_splits


@pytest.mark.parametrize("ratio", [0.5, 0.01, 1e-6, 1e-8, 1e-12, 1e-15, 1e-16, 1e-17])
@pytest.mark.parametrize("shift", [1, 2, 7])
def test_the_largest_loss_of_a_steep_tail_is_not_below_the_exact_one(ratio, shift):
    """The tail falls by this ratio from cell to cell, so a shift by s loses s times its logarithm."""
    table = NoiseTable.from_probabilities([1.0], tail_ratio=ratio)
    cells = CoarseLosses.from_table(table).loss_cells(shift)
    exact = table.atoms_for_shift(shift).largest_loss
    assert float(np.max(cells.upper)) >= exact * (1 - 2.0**-52)
    assert float(np.max(cells.upper)) == pytest.approx(exact, rel=1e-12)
