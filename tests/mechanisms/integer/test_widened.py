"""Widened tables: errors, quantiles and privacy against the exact convolution."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.mechanisms.exact_noise import exponential, hockey_stick, law
from tests.mechanisms.strategies import endless_tables, finite_tables
from tightrope.errors import InputError
from tightrope.mechanisms.discrete.integer_tables import geometric_table, optimal_table
from tightrope.mechanisms.discrete.noise_table import NoiseTable
from tightrope.mechanisms.discrete.scaled_noise import WidenedNoise
from tightrope.randomness.bits import InsecureSeeded

factors = st.integers(1, 7)


def convolved(table, factor, reach):
    """P(X = x) of m Y + U₁ − U₂ by its definition."""
    out = {}
    for y, w in law(table, reach).items():
        for u in range(1 - factor, factor):
            x = factor * y + u
            out[x] = out.get(x, 0) + w * Fraction(factor - abs(u), factor**2)
    return out


@given(finite_tables, factors)
def test_errors_are_exact(table, factor):
    p, noise = convolved(table, factor, len(table.half)), WidenedNoise(table, factor)
    assert noise.mean_absolute_error == float(sum(abs(x) * w for x, w in p.items()))
    assert noise.mean_squared_error == float(sum(x * x * w for x, w in p.items()))
    assert noise.worst_error == max(x for x, w in p.items() if w)


@given(finite_tables | endless_tables, factors, st.integers(0, 30))
@settings(deadline=None)
def test_survival_is_exact(table, factor, x):
    p = convolved(table, factor, 12)
    noise = WidenedNoise(table, factor)
    if factor * 12 > x + 1:
        assert noise.survival_probability(x) - noise.survival_probability(x + 1) == p.get(x + 1, 0)
        assert 2 * noise.survival_probability(0) + p[0] == 1


@given(finite_tables | endless_tables, factors, st.floats(1e-6, 1 - 1e-9))
@settings(deadline=None)
def test_half_width_is_the_smallest_that_suffices(table, factor, confidence):
    noise = WidenedNoise(table, factor)
    w = noise.half_width(confidence)
    assert 1 - 2 * noise.survival_probability(w) >= Fraction(confidence)
    assert w == 0 or 1 - 2 * noise.survival_probability(w - 1) < Fraction(confidence)


@given(finite_tables, factors, st.integers(1, 4), st.floats(0, 4))
@settings(deadline=None, max_examples=40)
def test_the_table_dominates_every_shift(table, factor, steps, epsilon):
    gamma = exponential(epsilon)
    allowed = hockey_stick(law(table, len(table.half)), steps, gamma)
    p = convolved(table, factor, len(table.half))
    spent = [hockey_stick(p, shift, gamma) for shift in range(1, factor * steps + 1)]
    assert max(spent) <= allowed
    assert spent == sorted(spent)


def test_sensitivity_is_rounded_up_to_whole_steps():
    table = geometric_table(5.0)
    for sensitivity, steps in [(0, 1), (1, 1), (10, 1), (11, 2), (30, 3)]:
        assert WidenedNoise(table, 10, sensitivity).loss is table.loss(steps)


def test_enormous_factors_do_not_overflow():
    noise = WidenedNoise(geometric_table(1e6), 1 << 40)
    draws = noise.sample(50, InsecureSeeded(1))
    assert draws.dtype == np.object_
    assert all(isinstance(x, int) for x in draws.tolist())
    assert max(map(abs, draws)) < 2**40 * 10**8
    small = WidenedNoise(optimal_table([(1, 1e-6)]), 1 << 40)
    assert small.sample(50).dtype == np.int64
    assert small.half_width(0.95) < small.worst_error < 2**44
    assert math.isclose(small.mean_squared_error, 2.0**80 * (small.table.mean_squared + 1 / 6), rel_tol=1e-12)


@pytest.mark.parametrize("factor", [0, -1, 1.0, "2", True, None, float("nan"), (1 << 40) + 1])
def test_nonsense_factors(factor):
    with pytest.raises(InputError, match="factor"):
        WidenedNoise(geometric_table(1), factor)


def test_other_nonsense():
    with pytest.raises(InputError, match="unimodal"):
        WidenedNoise(NoiseTable.from_probabilities([1, 2]), 3)
    with pytest.raises(InputError, match="sensitivity"):
        WidenedNoise(geometric_table(1), 3, -1)
