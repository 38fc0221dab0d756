"""Groups of which a row enters one: their loss is that of the worst member, and their noise is what one would have."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

import tightrope as tr
from tightrope.accounting.loss_pmf import LossLattice, LossPMF
from tightrope.errors import InputError
from tightrope.noise.allocation import allocate_noise
from tightrope.noise.coarse_losses import certified_noise_loss
from tightrope.noise.worst_split import (
    Alternative,
    CompositionGroup,
    NoiseSpec,
    SplitBounds,
    by_alternative,
    largest_total,
    repeat_groups,
    worst_split_loss,
)

ONE = SplitBounds(1, 1, 1)
COUNT, KEYS = NoiseSpec("count", 8, True), NoiseSpec("count", 8, True, needs_bound=True)
SUM, WIDE = NoiseSpec("sum", 8, False), NoiseSpec("sum", 16, False)
BUDGET = tr.Budget(epsilon=1, delta=1e-6)


def group(*specs: NoiseSpec, member: int | None = None, of: int = 0) -> CompositionGroup:
    return CompositionGroup(specs, ONE, alternative=None if member is None else Alternative(of, member))


def errors(groups: list[CompositionGroup], budget: tr.Budget = BUDGET) -> list[list[float]]:
    selections = allocate_noise(groups, budget).selections
    return [[one.table.mean_absolute / one.steps_per_row for one in selected] for selected in selections]


@pytest.mark.parametrize("budget", [BUDGET, tr.Budget(epsilon=1, delta=0), tr.Budget(epsilon="0.1", delta=1e-8)])
@pytest.mark.parametrize("members", [2, 12, 100])
@pytest.mark.parametrize("spec", [COUNT, SUM])
def test_members_that_are_alike_have_the_noise_of_one(members, spec, budget):
    (alone,), *_ = errors([group(spec)], budget)
    assert (
        errors([group(spec, member=i) for i in range(members)], budget) == [[pytest.approx(alone, rel=1e-5)]] * members
    )


def test_a_discovered_count_has_bounded_noise_and_the_others_too():
    allocation = allocate_noise([group(KEYS, member=0), group(COUNT, member=1)], BUDGET)
    (keys,), (count,) = allocation.selections
    assert keys.table == count.table and keys.table.largest_magnitude < 100


def test_the_loss_is_the_largest_of_all_combinations_of_members():
    """Against every row that enters one member of each set, and never above their pointwise maximum."""
    groups = [
        group(COUNT, SUM, member=0), group(WIDE, member=1), group(COUNT, member=0),
        group(SUM, member=0, of=1), group(WIDE, WIDE, WIDE, member=1, of=1), group(COUNT),
    ]  # fmt: skip
    allocation = allocate_noise(groups, BUDGET)
    window = allocation.loss_lattice
    assert window is not None
    loss = cached_losses(allocation)
    total = worst_split_loss(
        groups, loss, [one.steps_per_row for part in allocation.selections for one in part], window
    )
    chosen = [LossPMF.zero_loss(window)]
    for first, second in itertools.product((0, 1), (0, 1)):
        kept = [one for one in groups if one.alternative in (None, Alternative(0, first), Alternative(1, second))]
        parts = [part for one, part in zip(groups, allocation.selections, strict=True) if one in kept]
        losses = [certified_noise_loss(one.table, False) for part in parts for one in part]
        shifts = [one.steps_per_row for part in parts for one in part]
        chosen.append(worst_split_loss([replace(one, alternative=None) for one in kept], losses, shifts, window))
    for epsilon in np.linspace(0, 1.5, 31):
        worst = max(one.delta(epsilon) for one in chosen)
        assert worst <= total.delta(epsilon) * (1 + 1e-9)
    assert total.delta(1.0) <= 1e-6
    assert any(one.delta(1.0) > 0.3e-6 for one in chosen)


def cached_losses(allocation):
    return [certified_noise_loss(one.table, False) for part in allocation.selections for one in part]


def test_a_set_of_one_member_is_no_set():
    plain, marked = ([group(COUNT, SUM, member=member), group(COUNT)] for member in (None, 0))
    assert errors(plain) == errors(marked)


def test_amounts_of_members_are_not_added():
    groups = [group(COUNT, member=0), group(SUM, member=1), group(SUM, member=1), group(COUNT)]
    assert largest_total(groups, [5, 2, 4, 1]) == 7
    assert by_alternative(groups, "abcd") == [[["a"], ["b", "c"]], [["d"]]]


def test_a_group_of_several_rows_is_no_alternative():
    with pytest.raises(InputError, match="1 where a row enters one of several groups"):
        CompositionGroup((COUNT,), SplitBounds(2, 1, 2), alternative=Alternative(0, 0))


def test_each_of_several_releases_has_sets_of_its_own():
    """Between two releases a row may change: it may meet the worst condition of each."""
    once = [group(COUNT, member=0, of=3), group(SUM, member=1, of=3), group(COUNT), group(SUM, member=0, of=5)]
    twice = repeat_groups([(once, 2), ([group(COUNT)], 3), (once, 1)])
    assert [one.alternative and tuple(one.alternative) for one in twice] == [
        (0, 0), (0, 1), None, (1, 0), (2, 0), (2, 1), None, (3, 0), None, None, None, (4, 0), (4, 1), None, (5, 0),
    ]  # fmt: skip
    assert [replace(one, alternative=None) for one in twice[:4]] == [replace(one, alternative=None) for one in once]
    counts = [group(COUNT, member=0), group(COUNT, member=1)]
    repeated, both = errors(repeat_groups([(counts, 2)])), errors([group(COUNT)] * 2)
    assert repeated == both * 2


def test_a_lattice_without_sets_is_as_before():
    window = LossLattice(0.01, 300)
    allocation = allocate_noise([group(COUNT)] * 3, BUDGET)
    losses, shifts = cached_losses(allocation), [one.steps_per_row for part in allocation.selections for one in part]
    total = worst_split_loss([group(COUNT)] * 3, losses, shifts, window)
    single = worst_split_loss([group(COUNT)], losses[:1], shifts[:1], window)
    assert (total.delta(0.5), total.infinite_mass) == ((single**3).delta(0.5), (single**3).infinite_mass)
