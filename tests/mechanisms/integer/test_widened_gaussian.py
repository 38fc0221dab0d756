"""Stretched Gaussian tables and the loss of their piecewise linear law."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.mechanisms.exact_noise import exponential, hockey_stick
from tests.mechanisms.integer.test_widened import convolved
from tests.mechanisms.strategies import finite_tables
from tightrope.errors import InputError
from tightrope.mechanisms.discrete.integer_tables import gaussian_table, geometric_table
from tightrope.mechanisms.discrete.scaled_noise import WidenedNoise, linear_atoms, widened_gaussian
from tightrope.mechanisms.gaussian import gaussian
from tightrope.randomness.bits import InsecureSeeded


@given(finite_tables, st.integers(1, 9), st.integers(1, 30), st.floats(-3, 3))
@settings(deadline=None, max_examples=150)
def test_the_points_between_runs_dominate(table, factor, shift, epsilon):
    atoms = linear_atoms(table, factor, shift)
    truth = hockey_stick(convolved(table, factor, len(table.half)), shift, exponential(epsilon))
    found = float(atoms.profile(np.array([epsilon - atoms.rounding_error_bound]))[0])
    assert found >= float(truth) * (1 - 1e-14) - 1e-15
    assert math.isclose(float(atoms.masses.sum()) + atoms.infinite_mass, 1, rel_tol=1e-13)
    opposite = float((atoms.masses * np.exp(-atoms.losses)).sum())
    assert math.isclose(opposite + atoms.reverse_infinity_mass, 1, rel_tol=1e-13)


@given(finite_tables, st.integers(1, 9), st.integers(1, 4), st.floats(-3, 3))
@settings(deadline=None, max_examples=50)
def test_whole_steps_lose_nothing_to_the_table(table, factor, steps, epsilon):
    """At whole steps the points between runs are those of the table."""
    loss = WidenedNoise(table, factor, factor * steps).loss
    assert loss is table.loss(steps)
    direct = float(linear_atoms(table, factor, factor * steps).profile(np.array([epsilon]))[0])
    assert math.isclose(
        direct, float(table.atoms_for_shift(steps).profile(np.array([epsilon]))[0]), rel_tol=1e-9, abs_tol=1e-12
    )


@given(finite_tables, st.integers(2, 7), st.integers(1, 20), st.floats(0, 3))
@settings(deadline=None, max_examples=60)
def test_every_smaller_shift_is_covered(table, factor, sensitivity, epsilon):
    promised = WidenedNoise(table, factor, sensitivity).loss.delta(epsilon)
    p, gamma = convolved(table, factor, len(table.half)), exponential(epsilon)
    spent = max(hockey_stick(p, shift, gamma) for shift in range(1, sensitivity + 1))
    assert float(spent) <= promised * (1 + 1e-14) + 1e-15


def test_a_shift_within_a_step_costs_less_than_the_step():
    table = gaussian_table(300.0)
    deltas = [WidenedNoise(table, 64, shift).loss.delta(1e-3) for shift in (16, 32, 63, 64, 65, 96, 128)]
    assert deltas == sorted(deltas)
    assert deltas[2] < deltas[3] < deltas[4]
    scale = math.sqrt(WidenedNoise(table, 64).mean_squared_error)
    truth = gaussian(scale=scale, sensitivity=32).loss.delta(1e-3)
    assert truth < WidenedNoise(table, 64, 32).loss.delta(1e-3) < truth * (1 + 2e-4)


def test_endless_tables_are_charged_for_whole_steps():
    table = geometric_table(5.0)
    assert WidenedNoise(table, 8, 9).loss is table.loss(2)


@pytest.mark.parametrize("scale", [512.0, 1000.0, 123_456.7, 1e9, 2.0**48])
def test_the_variance_is_the_one_asked_for(scale):
    noise = widened_gaussian(scale=scale)
    exact = noise.factor**2 * noise.table.exact_mean_squared + Fraction(noise.factor**2 - 1, 6)
    assert abs(exact / Fraction(scale) ** 2 - 1) < Fraction(1, 10**12)
    assert 256 <= scale / noise.factor < 512 or noise.factor == 1 << 40
    assert math.isclose(noise.mean_squared_error, scale**2, rel_tol=1e-12)


@pytest.mark.parametrize(("sensitivity", "cost"), [(10**6, 1e-5), (10**8, 2e-6), (10**9, 2e-6), (953 << 20, 2e-6)])
def test_what_it_costs_compared_with_a_gaussian(sensitivity, cost):
    epsilon = widened_gaussian(scale=1e9, sensitivity=sensitivity).loss.epsilon(1e-6)
    best = gaussian(scale=1e9, sensitivity=sensitivity).loss.epsilon(1e-6)
    assert best < epsilon < best * (1 + cost)


@pytest.mark.parametrize("factor", [1, 2, 5, 8, 1 << 32, (1 << 32) + 1])
def test_draws_have_the_declared_moments(factor):
    noise = WidenedNoise(gaussian_table(4.0), factor)
    draws = noise.sample(100_000, InsecureSeeded(2)).astype(float)
    assert abs((draws**2).mean() / noise.mean_squared_error - 1) < 0.02
    assert abs(draws.mean()) < 4 * math.sqrt(noise.mean_squared_error / 100_000)
    assert np.abs(draws).max() <= noise.worst_error


@pytest.mark.parametrize("scale", [511.0, 0.0, -1.0, 2.0**49, math.nan, math.inf, "1000", None])
def test_nonsense_scales(scale):
    with pytest.raises(InputError, match="scale"):
        widened_gaussian(scale=scale)


@pytest.mark.parametrize("sensitivity", [0, -1, 1.0, None, True])
def test_nonsense_sensitivities(sensitivity):
    with pytest.raises(InputError, match="sensitivity"):
        widened_gaussian(scale=1e4, sensitivity=sensitivity)


def test_an_absurd_sensitivity():
    with pytest.raises(InputError, match="sensitivity"):
        _ = widened_gaussian(scale=1e4, sensitivity=10**10 + 1).loss
