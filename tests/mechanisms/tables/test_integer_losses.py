"""Privacy losses of integer tables against hockey-stick divergences in fractions."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.mechanisms.exact_noise import exponential, hockey_stick, law
from tests.mechanisms.strategies import endless_tables, finite_tables, ragged_tables
from tightrope.errors import InputError
from tightrope.mechanisms.discrete.integer_tables import gaussian_table, geometric_table, staircase_table
from tightrope.mechanisms.discrete.noise_table import NoiseTable

shifts = st.integers(1, 12)
epsilons = st.floats(-3, 6)


def bracket(atoms, epsilon):
    """δ with the declared slack on either side, and a little for the sum in floats."""
    low, high = atoms.profile(np.array([epsilon + atoms.rounding_error_bound, epsilon - atoms.rounding_error_bound]))
    return Fraction(low) * (1 - Fraction(1, 10**14)), Fraction(high) * (1 + Fraction(1, 10**14)) + Fraction(1, 10**38)


@given(finite_tables | ragged_tables, shifts, epsilons)
def test_finite_tables(table, shift, epsilon):
    exact = hockey_stick(law(table, len(table.half)), shift, exponential(epsilon))
    low, high = bracket(table.atoms_for_shift(shift), epsilon)
    assert low <= exact <= high


@given(endless_tables, shifts, epsilons)
@settings(deadline=None)
def test_endless_tables(table, shift, epsilon):
    reach = 250
    exact = hockey_stick(law(table, reach + shift), shift, exponential(epsilon))
    rest = table.survival_probability(reach) * 2 + Fraction(1, 10**30)
    low, high = bracket(table.atoms_for_shift(shift), epsilon)
    assert low - rest <= exact <= high + rest


@given(endless_tables, shifts)
def test_endless_tables_have_no_infinite_loss(table, shift):
    atoms = table.atoms_for_shift(shift)
    assert atoms.infinite_mass == 0.0 == atoms.reverse_infinity_mass
    assert abs(atoms.masses.sum() - 1) < 1e-14
    assert abs((atoms.masses * np.exp(-atoms.losses)).sum() - 1) < 1e-13


@given(finite_tables | ragged_tables, shifts)
def test_infinite_loss_is_the_mass_without_a_partner(table, shift):
    p = law(table, len(table.half))
    lonely = sum(w for x, w in p.items() if w and not p.get(x - shift, 0))
    assert table.atoms_for_shift(shift).infinite_mass == float(lonely)


@given(finite_tables | endless_tables, st.integers(1, 8), st.floats(0, 5))
def test_unimodal_profiles_grow_with_the_shift(table, shift, epsilon):
    small, large = table.atoms_for_shift(shift), table.atoms_for_shift(shift + 1)
    assert bracket(small, epsilon)[0] <= bracket(large, epsilon)[1]


@pytest.mark.parametrize(("scale", "shift"), [(2.0, 1), (2.0, 3), (0.7, 4), (300.0, 7), (1e5, 3)])
def test_geometric_losses_lie_on_their_lattice(scale, shift):
    atoms = geometric_table(scale).atoms_for_shift(shift)
    assert len(atoms.losses) == shift + 1
    assert np.allclose(atoms.losses, np.arange(-shift, shift + 1, 2) / scale, rtol=1e-14, atol=0)
    assert atoms.rounding_error_bound <= 2.0**-48 * shift / scale
    assert atoms.largest_loss + atoms.rounding_error_bound <= shift / scale


@pytest.mark.parametrize(("epsilon", "period", "high"), [(1.0, 3, 2), (0.2, 10, 5), (12.0, 4, 1), (1.0, 7, 7)])
def test_staircase_losses_are_three(epsilon, period, high):
    table = staircase_table(epsilon, period, high)
    for shift in range(1, period + 1):
        atoms = table.atoms_for_shift(shift)
        assert set(np.round(atoms.losses / epsilon, 9)) <= {-1.0, 0.0, 1.0}
        assert atoms.largest_loss + atoms.rounding_error_bound <= epsilon


def test_gaussian_losses_lie_on_their_lattice():
    atoms = gaussian_table(50.0).atoms_for_shift(2)
    steps = atoms.losses * 50.0**2 / 2
    central = np.abs(atoms.losses) < 0.25
    assert np.allclose(steps[central], np.round(steps[central]), atol=1e-9)
    assert central.sum() == np.sum(np.abs(np.arange(-2000, 2000)) * 2 / 50.0**2 < 0.25)


def test_ratios_beyond_a_float():
    atoms = NoiseTable(2**128 - 2, (1,)).atoms_for_shift(1)
    assert np.isclose(atoms.largest_loss, 128 * np.log(2), rtol=1e-15)
    far = geometric_table(0.05).atoms_for_shift(60)
    assert np.isclose(far.largest_loss, 1200, rtol=1e-12)


@pytest.mark.parametrize("shift", [0, -1, 1.0, True, "1", float("nan"), 1 << 18])
def test_nonsense_shifts(shift):
    with pytest.raises(InputError, match="s"):
        geometric_table(1.0).atoms_for_shift(shift)


def test_a_shift_far_beyond_the_noise_is_refused():
    with pytest.raises(InputError, match="sensitivity"):
        geometric_table(0.05).atoms_for_shift(1000)
