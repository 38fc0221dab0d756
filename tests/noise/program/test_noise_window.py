"""Costs that stay bounded or hardly grow: mass goes far out, and so must the program and its proof."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.noise.program.noise_programs import least_by_program
from tightrope.documents import Budget
from tightrope.mechanisms.discrete.integer_tables import optimal_table
from tightrope.noise.least_noise import least_noise
from tightrope.noise.program.repair import repair_mixing_fraction


def beyond(threshold):
    return lambda size: float(size >= threshold)


def capped(most):
    return lambda size: min(size, most)


def certificate(budget, sensitivity, cost, shape="any"):
    return least_noise(budget, sensitivity=sensitivity, cost=cost, shape=shape).certificate


def test_an_error_costs_from_three_on_and_shape_any():
    """A law on the middle and far out costs .3621; .700 was called least."""
    found = certificate(Budget(epsilon=5, delta=0.05, total_variation=0.64), 8, beyond(3))
    assert found.upper <= 0.36216
    assert 0.35 < found.lower <= found.upper
    assert all(realized <= delta for _, delta, realized in found.realized)


def test_an_error_costs_from_three_on_and_unimodal():
    found = certificate(Budget(epsilon=5, delta=1e-6, total_variation=0.76), 4, beyond(3), "unimodal")
    assert 0.05 <= found.upper < 0.0500001
    assert found.shape_lower == pytest.approx(0.05, rel=1e-6)


@pytest.mark.parametrize("shape", ["unimodal", "any"])
@pytest.mark.parametrize("cost", [beyond(3), capped(6.0), math.log1p])
def test_a_strict_total_variation(cost, shape):
    """(1.9, 1e−3, .025) at sensitivity 4: the certificate raised."""
    found = certificate(Budget(epsilon=1.9, delta=1e-3, total_variation=0.025), 4, cost, shape)
    assert 0 < found.lower <= found.upper <= found.lower * 1.01


@pytest.mark.parametrize(("cost", "least"), [(capped(6.0), 0.776729), (math.log1p, 0.361486), (beyond(3), 0.075802)])
def test_the_bound_of_a_cost_that_hardly_grows(cost, least):
    found = certificate(Budget(epsilon=3, delta=0.01), 4, cost)
    assert found.lower == pytest.approx(found.upper, rel=1e-6)
    assert found.upper == pytest.approx(least, rel=1e-5)


@given(
    st.floats(1, 3),
    st.floats(-2, -0.6),
    st.sampled_from([None, 0.2, 0.5]),
    st.integers(2, 3),
    st.sampled_from([beyond(1), beyond(2), beyond(4), capped(3.0), math.log1p, lambda x: x**0.3]),
)
@settings(deadline=None, max_examples=5, derandomize=True)
def test_an_independent_program(epsilon, exponent, variation, sensitivity, cost):
    """Laws on −13..13 are feasible: no bound is above their least cost, and what is found does not cost more."""
    delta = min(10**exponent, variation or 1.0)
    budget = Budget(epsilon=epsilon, delta=delta, total_variation=variation)
    points = [(epsilon, delta)] + ([(0.0, variation)] if variation else [])
    optimum = least_by_program(points, sensitivity, 13, cost)
    found = certificate(budget, sensitivity, cost)
    assert found.lower <= optimum * (1 + 1e-6) + 1e-9
    assert found.upper <= optimum * (1 + 1e-5) + 1e-9


def test_a_point_with_room_to_spare_asks_for_no_repair():
    """A δ that is kept with room was taken for one that is exceeded: laws were mixed with worse ones for nothing."""
    table = optimal_table([(1.0, 0.1)])
    half = [table.center / 2**128, *(w / 2**128 for w in table.half)]
    assert repair_mixing_fraction(np.array(half), ((1.0, 0.2), (2.0, 0.2)), 1) == 0
