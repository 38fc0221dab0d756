"""The worst way one person's rows may fall, against every split composed by brute force."""

from __future__ import annotations

import itertools
from functools import reduce

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tightrope.accounting.loss_pmf import LossLattice, LossPMF
from tightrope.errors import InputError
from tightrope.mechanisms.discrete.integer_tables import gaussian_table, staircase_table, truncated_geometric
from tightrope.noise.worst_split import SplitBounds, worst_split

EPSILONS = np.linspace(0, 3, 13)


def splits(contribution):
    """All ways to put rows into groups, as multisets of parts."""
    found = set()
    for groups in range(1, min(contribution.groups, contribution.rows) + 1):
        for parts in itertools.combinations_with_replacement(range(1, contribution.largest_part + 1), groups):
            if sum(parts) <= contribution.rows:
                found.add(parts)
    return found


def convolved(table, parts):
    """Profile of a split by direct summation over all pairs of losses."""
    losses, masses, lost = np.zeros(1), np.ones(1), 0.0
    for part in parts:
        atoms = table.atoms_for_shift(part)
        losses = np.add.outer(losses, atoms.losses).ravel()
        masses = np.multiply.outer(masses, atoms.masses).ravel()
        lost = 1 - (1 - lost) * (1 - atoms.infinite_mass)
    gains = -np.expm1(np.minimum(EPSILONS[:, None] - losses, 0))
    return lost + gains @ masses


def worst(table, contribution, window):
    return worst_split(
        lambda c: LossPMF.from_cells(table.atoms_for_shift(c).loss_cells(0.0), window), contribution, window
    )


@pytest.mark.parametrize(
    "table", [truncated_geometric(scale=3.0, largest=9), gaussian_table(2.0), staircase_table(0.5, 2)]
)
@given(rows=st.integers(1, 5), per_group=st.integers(1, 5), groups=st.integers(1, 5))
def test_no_split_is_worse_than_the_worst(table, rows, per_group, groups):
    contribution = SplitBounds(rows, per_group, groups)
    window = LossLattice(1 / 60, 600)
    bound = worst(table, contribution, window)
    found = np.array([bound.delta(e) for e in EPSILONS])
    for parts in splits(contribution):
        if len(parts) <= 3:
            assert np.all(convolved(table, parts) <= found * (1 + 1e-9) + 1e-12), parts


def test_two_rows_are_the_maximum_of_both_splits_exactly_on_the_lattice():
    table = truncated_geometric(scale=2.0, largest=6)
    window = LossLattice(0.5, 60)
    bound = worst(table, SplitBounds(2, 2, 2), window)
    exact = np.maximum(convolved(table, (2,)), convolved(table, (1, 1)))
    on_lattice = [i for i, e in enumerate(EPSILONS) if (2 * e) % 1 == 0]
    found = np.array([bound.delta(EPSILONS[i]) for i in on_lattice])
    np.testing.assert_allclose(found, exact[on_lattice], rtol=1e-8)


def test_one_fixed_worst_split_would_be_unsafe():
    """The two splits cross, so neither is the worst everywhere: a planted 'always in one group' would miss one."""
    table = staircase_table(1.0, 2, 1)
    together, apart = convolved(table, (2,)), convolved(table, (1, 1))
    assert np.any(together > apart * 1.001)
    assert np.any(apart > together * 1.001)


def test_few_groups_cost_no_more_than_many():
    table, window = gaussian_table(3.0), LossLattice(1 / 60, 600)
    few = worst(table, SplitBounds(6, 2, 3), window)
    many = worst(table, SplitBounds(6, 6, 6), window)
    for epsilon in EPSILONS:
        assert few.delta(epsilon) <= many.delta(epsilon) * (1 + 1e-9)


def test_spread_rows_are_plain_composition():
    table, window = gaussian_table(3.0), LossLattice(1 / 60, 600)
    one = LossPMF.from_cells(table.atoms_for_shift(1).loss_cells(0.0), window)
    bound = worst(table, SplitBounds(4, 1, 9), window)
    assert bound.delta(0.5) == pytest.approx(reduce(LossPMF.__mul__, [one] * 4).delta(0.5), rel=1e-12)


@pytest.mark.parametrize("bad", [0, -1, 1.5, True, None])
def test_bounds_are_whole_numbers(bad):
    with pytest.raises(InputError):
        SplitBounds(bad, 1, 1)
