"""The least noise under a budget: certified by independent accounting, and not beaten by hand-made choices."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tightrope as tr
from tightrope.accounting.distributions.gaussian import gaussian_mu
from tightrope.errors import InsufficientBudgetError
from tightrope.noise.allocation import NoiseSearch, allocate_noise
from tightrope.noise.composed.composed_noise import composed_noise
from tightrope.noise.families import LaplaceFamily
from tightrope.noise.worst_split import (
    CompositionGroup,
    NoiseSpec,
    SplitBounds,
    lattice_unit,
    nearest_eighths,
    worst_split,
)

COUNT = NoiseSpec("count", 8, True)
SUM = NoiseSpec("sum", 8, False)
KEYS = NoiseSpec("count", 8, True, needs_bound=True)
USABLE = NoiseSpec("usable values", 16, True)
ONE = SplitBounds(1, 1, 1)
BUDGET = tr.Budget(epsilon=1, delta=1e-6)


def recomposed(allocation, units):
    """The same tables through the public accountant, for people with one row."""
    losses = [
        choice.table.loss(choice.steps_per_row)
        for unit, choices in zip(units, allocation.selections, strict=True)
        for choice in choices
        if unit.split_bounds == ONE
    ]
    return sum(losses)


@pytest.mark.parametrize(
    ("units", "budget"),
    [
        ([CompositionGroup((COUNT,), ONE)], tr.Budget(epsilon=1, delta=1e-6)),
        ([CompositionGroup((SUM,), ONE)], tr.Budget(epsilon=1, delta=1e-6)),
        (
            [CompositionGroup((KEYS, SUM, USABLE), ONE), CompositionGroup((SUM, USABLE), ONE)],
            tr.Budget(epsilon=1, delta=1e-8),
        ),
        ([CompositionGroup((COUNT,), ONE)] * 12, tr.Budget(epsilon=1, delta=1e-6)),
        ([CompositionGroup((COUNT, SUM), ONE)], tr.Budget(attack_success="0.6", delta=1e-7)),
        ([CompositionGroup((COUNT, SUM), ONE)], tr.Budget(points=[(1, 1e-6), ("0.3", 1e-2)])),
        ([CompositionGroup((COUNT, SUM), ONE)], tr.Budget(epsilon=1, attack_success="0.6", delta=1e-6)),
    ],
)
def test_the_budget_is_kept_by_an_independent_composition(units, budget):
    allocation = allocate_noise(units, budget)
    independent = recomposed(allocation, units)
    for epsilon, delta in budget.points:
        assert allocation.loss.delta(float(epsilon)) <= float(delta)
        assert independent.delta_bounds(float(epsilon)).lower <= float(delta)
        assert independent.delta_bounds(float(epsilon)).lower <= allocation.loss.delta(float(epsilon)) * (1 + 1e-9)
    assert allocation.loss.infinite_mass <= float(budget.delta)
    assert allocation.loss.neighbors == "add-remove"


def test_one_count_gets_the_closed_form_optimum():
    allocation = allocate_noise([CompositionGroup((COUNT,), ONE)], tr.Budget(epsilon=1, delta=1e-6))
    assert allocation.selections[0][0].table.mean_absolute == pytest.approx(0.8509021157569042, rel=1e-12)


def test_one_sum_comes_within_a_thousandth_of_the_real_staircase():
    allocation = allocate_noise([CompositionGroup((SUM,), ONE)], tr.Budget(epsilon=1, delta=1e-6))
    choice = allocation.selections[0][0]
    assert choice.table.mean_absolute / choice.steps_per_row <= 0.9595175 * 1.001


def test_many_counts_get_gaussian_like_noise_and_few_do_not():
    few = allocate_noise([CompositionGroup((COUNT,), ONE)] * 3, tr.Budget(epsilon=1, delta=1e-6))
    many = allocate_noise([CompositionGroup((COUNT,), ONE)] * 20, tr.Budget(epsilon=1, delta=1e-6))
    assert few.selections[0][0].family_name not in {"discrete Gaussian", "exponential power"}
    assert many.selections[0][0].family_name == "exponential power"
    assert 1 < many.alternatives["discrete Gaussian"] < 1.05
    assert max(many.alternatives.values()) > 1.1


def test_no_classic_family_calibrated_alone_does_better():
    """Twelve Gaussians calibrated by bisection through the accountant: the planner is not worse."""
    budget = tr.Budget(epsilon=1, delta=1e-6)
    allocation = allocate_noise([CompositionGroup((COUNT,), ONE)] * 12, budget)
    low, high = 1.0, 100.0
    while high / low > 1.0001:
        middle = (low * high) ** 0.5
        fits = (12 * tr.discrete_gaussian(scale=middle).loss).delta(1.0) <= 1e-6
        low, high = (low, middle) if fits else (middle, high)
    assert (
        allocation.selections[0][0].table.mean_absolute <= tr.discrete_gaussian(scale=high).mean_absolute_error * 1.001
    )


def test_where_laplace_and_gaussian_cross_noise_between_them_is_smaller():
    """Eleven counts: E|X| of e^{−(|x|/s)^q} is 5 % below either, and within 1 % of the least known for that cost."""
    budget = tr.Budget(epsilon=1, delta=1e-6)
    allocation = allocate_noise([CompositionGroup((COUNT,), ONE)] * 11, budget)
    assert allocation.selections[0][0].family_name == "exponential power"
    assert min(allocation.alternatives[name] for name in ("discrete Laplace", "discrete Gaussian")) > 1.05
    best = composed_noise(budget, releases=11, cost="absolute")
    assert best.cost <= allocation.selections[0][0].table.mean_absolute <= 1.01 * best.cost


def test_keys_always_have_bounded_noise():
    for epsilon in (0.2, 1, 6):
        allocation = allocate_noise(
            [CompositionGroup((KEYS, SUM), SplitBounds(3, 2, 3))] * 2, tr.Budget(epsilon=epsilon, delta=1e-7)
        )
        assert all(np.isfinite(choices[0].table.largest_magnitude) for choices in allocation.selections)


@settings(max_examples=15)
@given(
    rows=st.integers(1, 4),
    per_group=st.integers(1, 4),
    groups=st.integers(1, 4),
    epsilon=st.floats(0.1, 8),
    log_delta=st.floats(-12, -3),
)
def test_every_budget_is_met_or_refused(rows, per_group, groups, epsilon, log_delta):
    budget = tr.Budget(epsilon=round(epsilon, 3), delta=10 ** round(log_delta, 2))
    units = [
        CompositionGroup((KEYS, SUM), SplitBounds(rows, per_group, groups)),
        CompositionGroup((COUNT,), SplitBounds(rows, per_group, 1)),
    ]
    allocation = allocate_noise(units, budget)
    assert allocation.loss.delta(float(budget.points[0][0])) <= float(budget.delta)


def test_heavier_questions_get_less_noise():
    light, heavy = NoiseSpec("count", nearest_eighths(1.0), True), NoiseSpec("count", nearest_eighths(0.5), True)
    allocation = allocate_noise(
        [CompositionGroup((light,), ONE), CompositionGroup((heavy,), ONE)], tr.Budget(epsilon=1, delta=1e-6)
    )
    one, other = (choices[0].table.mean_absolute for choices in allocation.selections)
    assert other / one == pytest.approx(0.5, rel=0.1)  # whole numbers


def test_sizes_share_a_lattice():
    units = [
        CompositionGroup((NoiseSpec("count", 3, True), SUM), ONE),
        CompositionGroup((NoiseSpec("sum", 16, False),), ONE),
    ]
    assert all(lattice_unit(units, 2.5) % e == 0 for e in (3, 8, 16))


def test_the_impossible_is_refused():
    with pytest.raises(InsufficientBudgetError, match="raise epsilon to"):
        allocate_noise(
            [CompositionGroup((KEYS,), SplitBounds(100_000, 1, 100_000))], tr.Budget(epsilon="1e-9", delta=1e-12)
        )
    with pytest.raises(InsufficientBudgetError, match="raise attack_success, or ask"):
        allocate_noise(
            [CompositionGroup((KEYS,), SplitBounds(100_000, 1, 100_000))],
            tr.Budget(attack_success="0.5000001", delta=1e-12),
        )


@pytest.mark.parametrize("delta", ["1e-12", "1e-3", "0.09"])
def test_an_enormous_epsilon_gets_the_least_noise_that_is_made(delta):
    choices = [
        allocate_noise([CompositionGroup((KEYS, SUM), ONE)], tr.Budget(epsilon=e, delta=delta)).selections
        for e in (40, 10_000)
    ]
    assert choices[0] == choices[1]


def test_units_that_are_alike_are_composed_once(monkeypatch):
    calls = []

    def counted(part, contribution, window):
        calls.append(contribution)
        return worst_split(part, contribution, window)

    monkeypatch.setattr("tightrope.noise.worst_split.worst_split", counted)
    three = SplitBounds(3, 3, 3)
    search = NoiseSearch(
        (
            CompositionGroup((SUM, USABLE), three),
            CompositionGroup((SUM, USABLE), three),
            CompositionGroup((USABLE,), three),
        ),
        BUDGET,
    )
    families = (LaplaceFamily(),) * 5
    apart = replace(search, groups=search.groups[:1]), replace(search, groups=search.groups[2:])
    assert search.meets_budget_coarsely(families, 30.0) and calls == [three, three]
    assert all(part.meets_budget_coarsely(families[: len(part.groups[0].noise_specs)], 30.0) for part in apart)


def test_a_table_of_budgets_chooses_as_a_plan_does():
    for units in (
        [CompositionGroup((COUNT,), ONE)] * 12,
        [CompositionGroup((KEYS, SUM), SplitBounds(3, 2, 3))],
        [CompositionGroup((SUM, USABLE), ONE)],
    ):
        full, quick = (allocate_noise(units, BUDGET, compare=compare) for compare in (True, False))
        assert [c.family_name for u in quick.selections for c in u] == [
            c.family_name for u in full.selections for c in u
        ]
        assert [c.table for u in quick.selections for c in u] == [c.table for u in full.selections for c in u]
        assert set(quick.alternatives) <= set(full.alternatives)


@pytest.mark.parametrize(
    ("epsilon", "delta", "questions", "most"),
    [("0.001", "0.01", 2, 1.02), ("0.01", "1e-3", 5, 1.02), ("0.1", "0.01", 20, 1.02), ("1", "0.1", 5, 1.02)],
)
def test_where_delta_is_large_no_noise_that_keeps_the_budget_is_much_smaller(epsilon, delta, questions, most):
    """Losses far beyond ε are a part of δ there, and were lost altogether: up to five times the noise was taken."""
    budget = tr.Budget(epsilon=epsilon, delta=delta)
    units = [CompositionGroup((SUM,), ONE)] * questions
    found = allocate_noise(units, budget)
    assert recomposed(found, units).delta(float(epsilon)) <= float(delta)
    gaussian = np.sqrt(questions) / gaussian_mu(float(epsilon), float(delta))
    assert found.total_error / questions <= most * np.sqrt(2 / np.pi) * gaussian


@pytest.mark.parametrize(
    ("epsilon", "delta"), [("1e-6", "0.05"), ("0.001", "1e-300"), ("1", "0.999"), ("39", "0.5"), ("700", "1e-6")]
)
def test_budgets_at_the_edges_are_kept_by_the_tables_themselves(epsilon, delta):
    units = [CompositionGroup((SUM,), ONE)] * 3
    found = allocate_noise(units, tr.Budget(epsilon=epsilon, delta=delta))
    assert recomposed(found, units).delta(float(epsilon)) <= float(delta)


@given(st.integers(1, 10**9), st.integers(1, 40), st.integers(4, 300))
@settings(max_examples=50, deadline=None)
def test_the_advice_about_useless_noise_is_finite_and_true(rows, vectors, digits):
    units = tuple([CompositionGroup((COUNT,), SplitBounds(rows, 1, rows))] * vectors)

    def check(epsilon):
        search = NoiseSearch(units, tr.Budget(epsilon=epsilon, delta=1e-9))
        search._check_useful_noise(search._laplace_size())

    with pytest.raises(InsufficientBudgetError) as refusal:
        check(f"1e-{digits + 12}")
    text = str(refusal.value)
    assert "inf" not in text and "nan" not in text
    if "no budget" in text:
        with pytest.raises(InsufficientBudgetError, match="no budget"):
            check(10_000)
    else:
        check(text.partition("raise epsilon to ")[2].partition(" or more")[0])
