"""The weights themselves: better than the start, never worse."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tightrope.noise.composed.candidates import CompositionProblem, best_candidate
from tightrope.noise.composed.composed_curve import ReleaseLosses
from tightrope.noise.composed.composed_noise import best_composed_shape, law_at_least_size
from tightrope.noise.composed.lattice_table import LATTICE_VARIANCE, polish_noise_weights, temper_weights
from tightrope.noise.families import ExponentialPowerFamily, LaplaceFamily
from tightrope.noise.program.request import ErrorCost


def question(releases: int = 10, shift: int = 1, points=((1.0, 1e-6),)) -> CompositionProblem:
    return CompositionProblem(points, releases, shift, ErrorCost.from_argument("squared"))


def excess(asked: CompositionProblem, half) -> float:
    return asked.log_excess(ReleaseLosses.from_weights(half, asked.shift, asked.lattice_step(LATTICE_VARIANCE)))


def test_two_starts_end_at_nearly_the_same_law():
    """Not convex, yet laws that are 2 % apart end within a few parts in ten thousand."""
    asked = question()
    starts = [law_at_least_size(asked, ExponentialPowerFamily(power), 14.0) for power in (1.35, 1.7)]
    ends = [asked.cost_of_weights(polish_noise_weights(asked, start.half_weights)) for start in starts]
    assert abs(starts[0].cost / starts[1].cost - 1) > 0.003
    assert ends[0] == pytest.approx(ends[1], rel=1e-3)
    assert min(ends) < 158.7


@pytest.mark.parametrize("releases", [2, 5, 9, 40])
@pytest.mark.parametrize("shift", [1, 3])
def test_never_worse_and_the_points_are_kept(releases, shift):
    asked = question(releases, shift)
    start = temper_weights(asked, best_composed_shape(asked, ExponentialPowerFamily())[1].half_weights)
    half = polish_noise_weights(asked, start)
    assert asked.cost_of_weights(half) <= asked.cost_of_weights(start)
    assert excess(asked, half) <= 1e-9
    assert math.fsum(half) * 2 - half[0] == pytest.approx(1, rel=1e-12)
    assert shift == 1 or np.all(np.diff(half) <= 0)


def test_two_binding_points():
    asked = question(6, points=((0.0, 0.1), (1.0, 1e-6)))
    start = best_composed_shape(asked, ExponentialPowerFamily())[1]
    half = polish_noise_weights(asked, start.half_weights)
    assert asked.cost_of_weights(half) < 0.999 * start.cost
    assert abs(excess(asked, half)) < 1e-6


def test_tempering_reaches_the_points_from_either_side():
    asked = question()
    half = best_candidate(asked, LaplaceFamily()).half_weights
    for power in (0.97, 1.03):
        assert abs(excess(asked, temper_weights(asked, half**power))) < 1e-5


def test_the_best_power_is_between_where_the_families_cross():
    power, found = best_composed_shape(question(), ExponentialPowerFamily())
    assert 1.3 < power < 1.7
    assert found.cost == pytest.approx(158.97, rel=1e-4)
    assert best_composed_shape(question(100), ExponentialPowerFamily())[0] > 1.8
