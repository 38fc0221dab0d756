"""The pointwise maximum of the profiles of all shifts, against fractions."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.mechanisms.exact_noise import exponential, hockey_stick, law
from tests.mechanisms.strategies import endless_tables, finite_tables, ragged_tables
from tightrope.mechanisms.discrete.noise_table import NoiseTable
from tightrope.mechanisms.discrete.table_loss import dominating_atoms


def most(table, sensitivity, epsilon):
    """The largest hockey-stick divergence over the shifts, exactly."""
    p, gamma = law(table, len(table.half)), exponential(epsilon)
    return max(hockey_stick(p, shift, gamma) for shift in range(1, sensitivity + 1))


@given(ragged_tables, st.integers(2, 9), st.floats(-3, 8))
@settings(deadline=None)
def test_the_loss_of_a_ragged_law_is_the_worst_shift_at_every_epsilon(table, sensitivity, epsilon):
    bounds = table.loss(sensitivity).delta_bounds(epsilon)
    exact = most(table, sensitivity, epsilon)
    assert Fraction(bounds.lower) <= exact <= Fraction(bounds.upper)
    assert bounds.upper <= float(exact) * (1 + 1e-11) + 1e-15


@given(ragged_tables, st.integers(2, 6))
@settings(deadline=None, max_examples=40)
def test_the_maximum_is_exact_at_every_kink_of_every_shift(table, sensitivity):
    kinks = np.unique(np.concatenate([table.atoms_for_shift(shift).losses for shift in range(1, sensitivity + 1)]))
    loss = table.loss(sensitivity)
    for epsilon in kinks.tolist():
        bounds = loss.delta_bounds(epsilon)
        assert Fraction(bounds.lower) <= most(table, sensitivity, epsilon) <= Fraction(bounds.upper)


@given(finite_tables | endless_tables, st.integers(2, 6), st.floats(0, 5))
@settings(deadline=None)
def test_for_unimodal_laws_it_is_the_largest_shift(table, sensitivity, epsilon):
    shifts = [table.atoms_for_shift(shift) for shift in range(1, sensitivity + 1)]
    both = dominating_atoms(shifts)
    here = np.array([epsilon])
    assert (
        both.profile(here - both.rounding_error_bound)[0] * (1 + 1e-14)
        >= shifts[-1].profile(here + both.rounding_error_bound)[0]
    )
    assert both.profile(here)[0] <= shifts[-1].profile(here - shifts[-1].rounding_error_bound)[0] * (1 + 1e-9) + 1e-300


@given(ragged_tables, st.integers(2, 4), st.floats(0.1, 6))
@settings(deadline=None, max_examples=25)
def test_two_releases_with_any_shifts_are_dominated(table, sensitivity, epsilon):
    p = law(table, len(table.half))
    gamma = exponential(epsilon)
    composed = (2 * table.loss(sensitivity)).delta(epsilon)
    for first in range(1, sensitivity + 1):
        for second in range(-sensitivity, sensitivity + 1):
            pairs = [
                (a * b, p.get(x - first, Fraction(0)) * p.get(y - second, Fraction(0)))
                for x, a in p.items()
                for y, b in p.items()
            ]
            exact = sum((max(Fraction(0), one - gamma * other) for one, other in pairs), Fraction(0))
            assert exact <= Fraction(composed)


def test_a_mirrored_pair_has_both_totals():
    atoms = NoiseTable.from_probabilities([1, 3, 2, 2, 4]).loss(4).remove.laws[0]
    assert abs(atoms.masses.sum() + atoms.infinite_mass - 1) < 1e-12
    assert abs((atoms.masses * np.exp(-atoms.losses)).sum() + atoms.reverse_infinity_mass - 1) < 1e-12


@pytest.mark.parametrize("sensitivity", [2, 3, 7])
def test_losses_beyond_a_float_ratio(sensitivity):
    table = NoiseTable(2**127, (1, 2**126 - 1))
    loss = table.loss(sensitivity)
    assert loss.delta(80.0) == pytest.approx(float(most(table, sensitivity, 80)), rel=1e-11)
