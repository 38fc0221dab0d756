"""One law above every split of many rows, against all of them composed by brute force."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tightrope as tr
from tests.noise.allocation.test_contributions import EPSILONS, convolved, splits
from tightrope.accounting.loss_pmf import LossLattice, LossPMF, greatest_dominated_pmf
from tightrope.accounting.loss_pmf import maximum_profile_pmf as largest_of
from tightrope.errors import InputError, InsufficientBudgetError
from tightrope.mechanisms.discrete.integer_tables import (
    gaussian_table,
    geometric_table,
    staircase_table,
    truncated_geometric,
)
from tightrope.mechanisms.discrete.noise_table import NoiseTable
from tightrope.noise.allocation import allocate_noise
from tightrope.noise.families import ExponentialPowerFamily
from tightrope.noise.family_weights import MOST_ATOMS, NoiseRequirement
from tightrope.noise.worst_split import (
    MOST_COMPOSITIONS,
    CompositionGroup,
    NoiseSpec,
    PartSizes,
    SplitBounds,
    dominate_every_split,
    worst_split,
)

TABLES = [
    truncated_geometric(scale=3.0, largest=9),
    gaussian_table(2.0),
    staircase_table(0.5, 2),
    geometric_table(4.0),
    NoiseTable.from_probabilities([5, 5, 4, 1, 1, 0.2]),
]
WINDOW = LossLattice(1 / 60, 600)
COUNT, SUM, KEYS = (
    NoiseSpec("count", 8, True),
    NoiseSpec("sum", 8, False),
    NoiseSpec("count", 8, True, needs_bound=True),
)


def bound(table, contribution, window=WINDOW):
    return dominate_every_split(lambda c: table.atoms_for_shift(c).raise_losses().loss_cells(0.0), contribution, window)


@pytest.mark.parametrize("table", TABLES)
@given(rows=st.integers(1, 6), per_group=st.integers(1, 6), groups=st.integers(1, 6))
def test_no_split_is_worse(table, rows, per_group, groups):
    contribution = SplitBounds(rows, per_group, groups)
    law = bound(table, contribution)
    found = np.array([law.delta(e) for e in EPSILONS])
    for parts in splits(contribution):
        if len(parts) <= 3:
            assert np.all(convolved(table, parts) <= found * (1 + 1e-9) + 1e-12), parts


@pytest.mark.parametrize("table", TABLES)
def test_it_is_above_the_exact_worst_split(table):
    for contribution in (SplitBounds(8, 8, 8), SplitBounds(12, 3, 7), SplitBounds(9, 4, 3)):
        exact = worst_split(
            lambda c: LossPMF.from_cells(table.atoms_for_shift(c).loss_cells(0.0), WINDOW), contribution, WINDOW
        )
        above = bound(table, contribution)
        assert all(exact.delta(e) <= above.delta(e) * (1 + 1e-9) + 1e-15 for e in EPSILONS)


def test_one_group_alone_would_be_unsafe():
    """The bound on splits into one group is passed by a split into two: a planted 'the fullest part' is caught."""
    table = staircase_table(1.0, 2, 1)
    one = bound(table, SplitBounds(2, 2, 1))
    assert np.any(convolved(table, (1, 1)) > np.array([one.delta(e) for e in EPSILONS]) * 1.001)


def test_gaussian_noise_costs_what_one_group_costs():
    table, window = gaussian_table(200.0), LossLattice(1 / 400, 800)
    one = LossPMF.from_cells(table.atoms_for_shift(60).loss_cells(0.0), window)
    above = bound(table, SplitBounds(60, 60, 60), window)
    assert above.delta(1.0) == pytest.approx(one.delta(1.0), rel=0.02)


def test_a_long_law_in_cells_is_above_its_atoms():
    law = ExponentialPowerFamily(1.5).float_weights(400.0, NoiseRequirement(1, (7,), 1e-7))
    assert len(law.half_weights) > MOST_ATOMS
    table, window = law.integer_table(), LossLattice(1 / 400, 800)
    gathered, exact = (
        LossPMF.from_cells(law.shift_loss_cells(7), window),
        LossPMF.from_cells(table.atoms_for_shift(7).loss_cells(0.0), window),
    )
    for epsilon in (0.0, 0.01, 0.05, 0.1):
        assert exact.delta(epsilon) <= gathered.delta(epsilon) * (1 + 1e-9) + 1e-36  # whole numbers of 2^-128
        assert gathered.delta(epsilon) <= exact.delta(epsilon) * 1.01 + 1e-36


@given(most=st.integers(1, 10_000))
def test_ranges_cover_every_size(most):
    sizes = PartSizes.from_largest(most)
    assert sizes.upper_edges[0] == most and sizes.lower_edges[-1] == 0
    assert sizes.lower_edges[:-1] == sizes.upper_edges[1:]


def test_the_hull_is_below_both_and_above_what_both_dominate():
    wide, narrow = (
        LossPMF.from_cells(table.atoms_for_shift(1).loss_cells(0.0), WINDOW)
        for table in (gaussian_table(1.5), geometric_table(1.1))
    )
    both, either = greatest_dominated_pmf([wide, narrow]), largest_of([wide, narrow])
    common = LossPMF.from_cells(geometric_table(6.0).atoms_for_shift(1).loss_cells(0.0), WINDOW)
    for number in range(-50, 150):
        deltas = [law.delta(number / 60) for law in (common, both, wide, narrow, either)]
        assert deltas[0] <= deltas[1] * (1 + 1e-9) + 1e-15
        assert deltas[1] <= min(deltas[2:4]) * (1 + 1e-9) + 1e-15 and max(deltas[2:4]) <= deltas[4] * (1 + 1e-9) + 1e-15


@settings(max_examples=200)
@given(
    rows=st.integers(1, 10_000), per_group=st.integers(1, 10_000), groups=st.integers(1, 10_000), cut=st.integers(1, 3)
)
def test_a_tighter_declaration_is_never_refused_and_never_composed_longer(rows, per_group, groups, cut):
    loose = SplitBounds(rows, per_group, groups)
    for tighter in (
        SplitBounds(max(1, rows // cut), per_group, groups),
        SplitBounds(rows, max(1, per_group // cut), groups),
        SplitBounds(rows, per_group, max(1, groups // cut)),
    ):
        assert tighter.composes_every_split or not loose.composes_every_split
        assert (
            not tighter.composes_every_split
            or tighter.has_one_split
            or (tighter.composition_rounds * tighter.most_rows * tighter.largest_part <= MOST_COMPOSITIONS)
        )


@settings(max_examples=4, deadline=None)
@given(groups=st.integers(1, 60), rows=st.sampled_from([30, 51, 80]))
def test_fewer_groups_never_need_more_noise(groups, rows):
    budget = tr.Budget(epsilon=1, delta=1e-6)
    loose, tight = (
        allocate_noise([CompositionGroup((COUNT,), SplitBounds(rows, rows, g))], budget) for g in (rows, groups)
    )
    assert tight.selections[0][0].table.mean_absolute <= loose.selections[0][0].table.mean_absolute * 1.001


def test_many_rows_keep_the_budget_and_say_what_the_bound_costs():
    budget = tr.Budget(epsilon=1, delta=1e-6)
    many = allocate_noise([CompositionGroup((COUNT,), SplitBounds(300, 300, 300))], budget)
    assert many.loss.delta(1.0) <= 1e-6
    assert many.selections[0][0].table.mean_absolute == pytest.approx(300, rel=1e-3)
    assert 0 <= many.avoidable_noise < 1e-3
    assert allocate_noise([CompositionGroup((COUNT,), SplitBounds(20, 20, 20))], budget).avoidable_noise is None
    keys = allocate_noise([CompositionGroup((KEYS, SUM), SplitBounds(1000, 10, 1000))], budget)
    assert keys.loss.delta(1.0) <= 1e-6 and 0 < keys.avoidable_noise < 0.9


def test_beyond_ten_thousand_rows_the_remedy_is_said():
    with pytest.raises(InputError, match="max_rows_per_group=1"):
        SplitBounds(10_001, 10_001, 10_001)
    assert (
        SplitBounds(100_000, 1, 100_000).composes_every_split and SplitBounds(100_000, 100_000, 1).composes_every_split
    )


def test_the_impossible_is_still_refused():
    with pytest.raises(InsufficientBudgetError):
        allocate_noise(
            [CompositionGroup((KEYS,), SplitBounds(10_000, 10_000, 10_000))], tr.Budget(epsilon="0.001", delta=1e-12)
        )
