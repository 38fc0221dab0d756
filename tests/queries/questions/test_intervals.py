"""Intervals against exact sums over every outcome of the noise."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

import tightrope as tr
from tightrope.mechanisms.discrete.integer_tables import (
    gaussian_table,
    geometric_table,
    optimal_table,
    staircase_table,
    truncated_geometric,
)
from tightrope.mechanisms.discrete.noise_table import NoiseTable
from tightrope.mechanisms.discrete.scaled_noise import WidenedNoise
from tightrope.noise.family_weights import BoxWeights, FloatWeights
from tightrope.queries.intervals import IndependentPair, JointBoxPair, NoiseTails, RatioWidths, interval_given_shown

pytestmark = pytest.mark.usefixtures("planned_once")

BOUNDED = [
    optimal_table([(1, 1e-6)]),
    truncated_geometric(scale=8.0, largest=60),
    gaussian_table(1.5),
    NoiseTable.from_probabilities([3, 3, 2, 1]),
]
ENDLESS = [geometric_table(3.0), staircase_table(0.8, 3, 2)]


def chances(table, reach):
    """P(Y = y) for |y| ≤ reach, by the table's own exact survival."""
    beyond = [table.survival_probability(y) for y in range(reach + 1)]
    upper = [float(a - b) for a, b in pairwise(beyond)]
    return np.array([*upper[::-1], float(1 - 2 * beyond[0]), *upper])


@pytest.mark.parametrize("table", BOUNDED + ENDLESS)
@pytest.mark.parametrize("factor", [1, 2, 7, 1 << 36])
def test_tails_are_the_exact_ones(table, factor):
    noise = WidenedNoise(table, factor)
    tails = NoiseTails.from_noise(noise)
    reach = int(min(noise.worst_error, 40 * factor))
    places = sorted({0, 1, factor - 1, factor, factor + 1, reach // 3, reach // 2, reach - 1, reach, reach + 5})
    exact = [noise.survival_probability(x) for x in places]
    np.testing.assert_allclose(
        tails.tail_probability(np.array(places, float)), [float(e) for e in exact], rtol=1e-10, atol=1e-21
    )
    mirrored = [float(1 - noise.survival_probability(x)) for x in places]
    np.testing.assert_allclose(tails.tail_probability(-1 - np.array(places, float)), mirrored, rtol=1e-12)


@pytest.mark.parametrize("table", BOUNDED)
def test_intervals_of_shown_counts_hold_given_that_they_are_shown(table):
    above, tails = int(table.largest_magnitude), NoiseTails.from_noise(WidenedNoise(table, 1))
    noise = chances(table, above)
    ends = {value: interval_given_shown(tails, value, above) for value in range(above + 1, 6 * above + 1)}
    assert all(low <= value <= high for value, (low, high) in ends.items())
    for count in range(1, 4 * above):
        values = range(max(above + 1, count - above), count + above + 1)
        masses = {value: noise[value - count + above] for value in values}
        held = sum(mass for value, mass in masses.items() if ends[value][0] <= count <= ends[value][1])
        assert held / sum(masses.values()) >= 0.95 - 1e-9, count


def test_the_usual_interval_would_never_hold_a_small_group():
    table = BOUNDED[1]
    above, width = int(table.largest_magnitude), table.half_width(0.95)
    assert above + 1 - width > 20  # a group of 20 that is shown is never within value ± width
    low, _ = interval_given_shown(NoiseTails.from_noise(WidenedNoise(table, 1)), above + 1, above)
    assert low == 1


def test_far_beyond_the_threshold_the_interval_is_the_usual_one():
    table = BOUNDED[1]
    above, width = int(table.largest_magnitude), table.half_width(0.95)
    assert interval_given_shown(NoiseTails.from_noise(WidenedNoise(table, 1)), 4 * above, above) == (
        4 * above - width,
        4 * above + width,
    )


def inside(top, bottom, ratio, width):
    """P(|X − mY| ≤ width), exactly."""
    total = Fraction(0)
    for y in range(-int(bottom.largest_magnitude), int(bottom.largest_magnitude) + 1):
        mass = (
            bottom.survival_probability(abs(y) - 1) - bottom.survival_probability(abs(y))
            if y
            else 1 - 2 * bottom.survival_probability(0)
        )
        low, high = -np.floor(width - ratio * y), np.floor(width + ratio * y)
        below = sum(_mass(top, x) for x in range(int(low), int(high) + 1))
        total += mass * below
    return float(total)


def _tails(top, bottom):
    return IndependentPair(NoiseTails.from_noise(top), NoiseTails.from_noise(bottom))


def _mass(noise, x):
    x = abs(x)
    return (
        1 - 2 * noise.survival_probability(0)
        if x == 0
        else noise.survival_probability(x - 1) - noise.survival_probability(x)
    )


@pytest.mark.parametrize(
    "bottom", [NoiseTable.from_probabilities([3, 3, 2, 1]), truncated_geometric(scale=2.0, largest=12)]
)
@pytest.mark.parametrize(
    "top", [WidenedNoise(truncated_geometric(scale=3.0, largest=20), 5), WidenedNoise(gaussian_table(2.0), 9)]
)
def test_widths_hold_the_joint_noise_and_are_not_idle(top, bottom):
    ratios = RatioWidths.from_noise_pair(
        IndependentPair(NoiseTails.from_noise(top), NoiseTails.from_noise(WidenedNoise(bottom, 1))), 10.0
    )
    for ratio in (0.0, 1.7, 10.0):
        width = ratios.widths[min(int(ratio / 10 * len(ratios.widths)), len(ratios.widths) - 1)]
        assert inside(top, bottom, ratio, width) >= 0.95
        assert inside(top, bottom, ratio, 0.96 * width - 1.5) < 0.95


def test_widths_rise_with_the_ratio():
    ratios = RatioWidths.from_noise_pair(
        _tails(WidenedNoise(geometric_table(3.0), 100), WidenedNoise(geometric_table(5.0), 1)), 1e4
    )
    assert np.all(np.diff(ratios.widths) >= 0)


@pytest.mark.parametrize(
    ("top", "bottom"), [(500.0, 60.0), (-300.0, 4.0), (20.0, 0.0), (-50.0, -3.0), (1e5, 90.0), (-1e5, 90.0)]
)
def test_the_interval_is_the_hull_of_all_likely_ratios(top, bottom):
    noise = (
        WidenedNoise(truncated_geometric(scale=3.0, largest=20), 5),
        WidenedNoise(truncated_geometric(scale=4.0, largest=25), 1),
    )
    ratios = RatioWidths.from_noise_pair(_tails(*noise), 10.0)
    low, high = ratios.ratio_interval(top, bottom)
    assert -10 <= low < high <= 10
    tried = np.linspace(-10, 10, 20_001)
    index = np.minimum((np.abs(tried) / 10 * len(ratios.widths)).astype(int), len(ratios.widths) - 1)
    kept = tried[np.abs(top - tried * bottom) <= ratios.widths[index]]
    assert len(kept) == 0 or (low <= kept[0] <= low + 0.002 and high - 0.002 <= kept[-1] <= high)


@pytest.mark.parametrize("factors", [(1, 1), (7, 3), (1000, 40)])
@pytest.mark.parametrize("ratio", [0.0, 0.4, 1.0, 9.0])
def test_widths_of_numbers_of_one_box_hold_them_and_are_not_idle(factors, ratio):
    """Against all pairs, exactly: given the half-width each number is a triangle's worth wider than uniform."""
    radii = BoxWeights.from_weights(FloatWeights(np.exp(-np.arange(60) / 3.0)), 2).integer_table()
    laws = JointBoxPair(radii.radius_probabilities(), factors)
    exact = _outside_of_box(radii.radius_probabilities(), factors, ratio)
    width = float(RatioWidths.from_noise_pair(laws, 10.0).widths[min(int(ratio / 10 * 160), 159)])
    assert exact(width) <= 0.05
    assert exact(0.9 * width - 1.5 * max(factors)) > 0.05
    for w in (0.3 * width, width, 2 * width):
        assert exact(w + 0.5) <= laws.excess_probability(np.array([w]), np.array([ratio]))[0] + 1e-12
    halves = laws.approximate_half_widths(0.05)
    assert laws.swapped_pair.approximate_half_widths(0.05) == halves[::-1]


def _outside_of_box(chances, factors, ratio):
    """P(|X − mY| > w) of the two numbers that run, summed over half-widths and places."""
    parts = []
    for r, chance in enumerate(chances):
        laws = []
        for factor in factors:
            uniform = np.zeros(2 * r * factor + 1)
            uniform[::factor] = 1 / (2 * r + 1)
            triangle = (factor - np.abs(np.arange(1 - factor, factor))) / factor**2
            law = np.convolve(uniform, triangle)
            laws.append((np.arange(len(law)) - len(law) // 2, law))
        parts.append((chance, laws))

    def outside(width):
        total = 0.0
        for chance, ((x, p), (y, q)) in parts:
            above = np.concatenate([np.cumsum(p[::-1])[::-1], [0.0]])
            beyond = above[np.clip(np.floor(width + ratio * y).astype(int) + 1 - x[0], 0, len(p))]
            total += chance * 2 * float(beyond @ q)
        return total

    return outside


@pytest.mark.parametrize("epsilon", [1, 20])
@pytest.mark.parametrize(("low", "width"), [(1.7e12, 1000.0), (1e9, 1.0), (-1e12 - 1, 1.0)])
def test_a_mean_far_from_zero_is_not_missed_by_its_last_digit(low, width, epsilon):
    """The middle of the range is a rounded double: the end of an interval lay one inside it, half of the time."""
    session = tr.Session(pd.DataFrame({"x": [low]}), privacy_unit=None, budget=tr.Budget(epsilon=epsilon, delta=1e-6))
    plan = session.plan([tr.mean("x", bounds=(low, low + width))])
    (question,), (noises,) = plan.draft.questions, plan.draft.noises_by_query_group
    own, rows = {noise.vector.statistic_name.split()[-1]: noise for noise in noises}, 1_000
    for value in (low, low + width):
        exact = question.fixed_point_grid.to_units(value) * rows
        for off in (0, 1, -1, noises[0].half_width() // 3):
            record = question.estimate({"sum": exact + int(off), "usable": rows}, own)
            assert record["lower"] <= value <= record["upper"]


def test_an_interval_of_a_mean_narrows_with_the_noise():
    """It never looked below a third of a first guess, which was far too wide where the count has next to no noise."""
    session = tr.Session(pd.DataFrame({"x": [0.5]}), privacy_unit=None, budget=tr.Budget(epsilon=30, delta=1e-6))
    plan = session.plan([tr.mean("x", bounds=(0, 1))])
    errors = plan.accuracies()[0].errors_at_size(1_000)
    assert errors["half_width_95"] < 10 * errors["expected_absolute_error"]
