"""The proven bound: valid whatever numbers it is given."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.noise.program.noise_programs import least_by_program
from tightrope.documents import Budget
from tightrope.noise.program.dual import DualMultiplier, improve_dual_multipliers, proven_least_cost
from tightrope.noise.program.linear_program import NoiseProgram, normalize_reference, solve_linear_program
from tightrope.noise.program.request import PrivacyTarget
from tightrope.noise.program.search import least_table, proving_multipliers


def costs(power):
    return lambda n: np.arange(n + 1.0) ** power


random_multipliers = st.builds(
    lambda shift, cap, start, shares, left: DualMultiplier(
        1.0, 1e-3, shift, cap, start, cap * np.array(shares), cap * left
    ),
    st.integers(1, 3),
    st.floats(0, 20),
    st.integers(-30, 2),
    st.lists(st.floats(0, 1), min_size=1, max_size=40),
    st.sampled_from([0.0, 1.0, 0.5]),
)
OPTIMUM = {power: least_by_program([(1.0, 1e-3)], 3, 32, power) for power in (1, 2)}


@given(st.lists(random_multipliers, max_size=4), st.sampled_from([1, 2]))
@settings(deadline=None, max_examples=300)
def test_no_numbers_prove_too_much(multipliers, power):
    """Any y in [0, w] gives a true bound: the optimum of an independent program is never below it."""
    assert proven_least_cost(multipliers, costs(power), "any") <= OPTIMUM[power] * (1 + 1e-7)
    improved = improve_dual_multipliers(multipliers, costs(power))
    assert proven_least_cost(improved, costs(power), "any") <= OPTIMUM[power] * (1 + 1e-7)
    assert all(np.all((m.values >= 0) & (m.values <= m.cap)) and 0 <= m.left_value <= m.cap for m in improved)


@pytest.mark.parametrize("power", [1, 2])
def test_the_program_proves_its_optimum(power):
    promise = PrivacyTarget.from_budget(Budget(epsilon=1, delta=1e-3))
    multipliers = proving_multipliers(promise, 3, costs(power))
    assert proven_least_cost(multipliers, costs(power), "any") == pytest.approx(OPTIMUM[power], rel=1e-7)


def test_a_bound_for_unimodal_laws_is_no_bound_for_all():
    """At a large δ the optimum is not unimodal: the unimodal bound is above the cost of the optimum."""
    promise, cost = PrivacyTarget.from_budget(Budget(epsilon=1, delta=0.3)), costs(1)
    unimodal, free = (least_table(promise, 4, cost, shape) for shape in ("unimodal", "any"))
    bound = proven_least_cost(unimodal.multipliers, cost, "unimodal")
    assert free.table.mean_absolute < bound <= unimodal.table.mean_absolute
    assert proven_least_cost(unimodal.multipliers, cost, "any") <= free.table.mean_absolute


def test_a_coarser_lattice_still_proves_something():
    promise, cost = PrivacyTarget.from_budget(Budget(epsilon=1, delta=1e-6)), costs(1)
    coarse = proving_multipliers(promise, 5, lambda n: 4 * cost(n))
    fine = tuple(m.stretch_cells(4) for m in coarse)
    exact = proven_least_cost(proving_multipliers(promise, 20, cost), cost, "any")
    assert exact * (1 - 5e-3) <= proven_least_cost(fine, cost, "any") <= exact * (1 + 1e-9)


def test_wide_noise_is_proven_on_a_coarser_lattice():
    promise, cost = PrivacyTarget.from_budget(Budget(epsilon=1, delta=1e-6)), costs(1)
    multipliers = proving_multipliers(promise, 100, cost)
    assert max(m.shift for m in multipliers) == 100
    table = least_table(promise, 100, cost, "unimodal").table
    bound = proven_least_cost(multipliers, cost, "any")
    assert bound <= table.mean_absolute <= bound * (1 + 1e-3)


def test_multipliers_are_clipped():
    ends = normalize_reference(np.exp(-np.arange(60.0) / 3))
    found = solve_linear_program(NoiseProgram(((1.0, 1e-6),), 3, np.arange(60.0), ends, "any", False))
    for m in found.multipliers:
        assert np.all((m.values >= 0) & (m.values <= m.cap))


def test_e_to_the_epsilon_is_rounded_up():
    from tests.mechanisms.exact_noise import exponential

    for epsilon in (0.1, 1.0, 3.7, 20.0):
        gamma = DualMultiplier(epsilon, 0.0, 1, 1.0, 0, np.zeros(1), 0.0).exp_epsilon
        assert exponential(epsilon) < gamma < math.exp(epsilon) * (1 + 1e-14)
