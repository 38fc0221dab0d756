"""The weights themselves: better than the start, never worse."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tightrope.noise.composed.candidates import Question, candidate
from tightrope.noise.composed.composed_curve import Released
from tightrope.noise.composed.composed_noise import sized, tuned
from tightrope.noise.composed.lattice_table import LATTICE_VARIANCE, polished, tempered
from tightrope.noise.families import ExponentialPower, Laplace
from tightrope.noise.program.request import Cost


def question(releases: int = 10, shift: int = 1, points=((1.0, 1e-6),)) -> Question:
    return Question(points, releases, shift, Cost.of("squared"))


def excess(asked: Question, half) -> float:
    return asked.excess(Released.of_weights(half, asked.shift, asked.step(LATTICE_VARIANCE)))


def test_two_starts_end_at_nearly_the_same_law():
    """Not convex, yet laws that are 2 % apart end within a few parts in ten thousand."""
    asked = question()
    starts = [sized(asked, ExponentialPower(power), 14.0) for power in (1.35, 1.7)]
    ends = [asked.expected(polished(asked, start.half)) for start in starts]
    assert abs(starts[0].cost / starts[1].cost - 1) > 0.003
    assert ends[0] == pytest.approx(ends[1], rel=1e-3)
    assert min(ends) < 158.7


@pytest.mark.parametrize("releases", [2, 5, 9, 40])
@pytest.mark.parametrize("shift", [1, 3])
def test_never_worse_and_the_points_are_kept(releases, shift):
    asked = question(releases, shift)
    start = tempered(asked, tuned(asked, ExponentialPower())[1].half)
    half = polished(asked, start)
    assert asked.expected(half) <= asked.expected(start)
    assert excess(asked, half) <= 1e-9
    assert math.fsum(half) * 2 - half[0] == pytest.approx(1, rel=1e-12)
    assert shift == 1 or np.all(np.diff(half) <= 0)


def test_two_binding_points():
    asked = question(6, points=((0.0, 0.1), (1.0, 1e-6)))
    start = tuned(asked, ExponentialPower())[1]
    half = polished(asked, start.half)
    assert asked.expected(half) < 0.999 * start.cost
    assert abs(excess(asked, half)) < 1e-6


def test_tempering_reaches_the_points_from_either_side():
    asked = question()
    half = candidate(asked, Laplace()).half
    for power in (0.97, 1.03):
        assert abs(excess(asked, tempered(asked, half**power))) < 1e-5


def test_the_best_power_is_between_where_the_families_cross():
    power, found = tuned(question(), ExponentialPower())
    assert 1.3 < power < 1.7
    assert found.cost == pytest.approx(158.97, rel=1e-4)
    assert tuned(question(100), ExponentialPower())[0] > 1.8
