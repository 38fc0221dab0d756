"""The width of a weighted sum of noises, against exact sums over every outcome."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pandas as pd
import pytest

import tightrope as tr
from tightrope.mechanisms.discrete.integer_tables import geometric_table, truncated_geometric
from tightrope.mechanisms.discrete.noise_table import NoiseTable
from tightrope.mechanisms.discrete.scaled_noise import WidenedNoise
from tightrope.queries import moment_estimates
from tightrope.queries.intervals import NoiseTails, half_width
from tightrope.queries.moment_estimates import NoiseSum, Span, span_around

SMALL = [
    WidenedNoise(truncated_geometric(scale=3.0, largest=14), 1),
    WidenedNoise(NoiseTable.from_probabilities([3, 3, 2, 1]), 3),
    WidenedNoise(truncated_geometric(scale=2.0, largest=9), 2),
]
WEIGHTS = [(1.0, 1.0, 1.0), (1.0, 0.0, 0.3), (0.2, -5.0, 1.0), (1e-3, 1e-4, 2e-3), (0.0, 0.0, 2.0)]


def law(noise):
    reach = int(noise.worst_error)
    beyond = [float(noise.survival_probability(x)) for x in range(reach + 1)]
    upper = [a - b for a, b in itertools.pairwise(beyond)]
    return np.arange(-reach, reach + 1), np.array([*upper[::-1], 1 - 2 * beyond[0], *upper])


def exceeded(weights, width):
    """P(|Σ c X| > width), by going through every outcome."""
    places, masses = np.zeros(1), np.ones(1)
    for weight, noise in zip(weights, SMALL, strict=True):
        own, chances = law(noise)
        places = (places[:, None] + weight * own[None, :]).ravel()
        masses = (masses[:, None] * chances[None, :]).ravel()
    return float(masses[np.abs(places) > width].sum())


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("outside", [0.05, 0.001])
def test_widths_hold_every_sum_and_are_not_idle(weights, outside):
    joint = NoiseSum(tuple(map(NoiseTails.from_noise, SMALL)))
    width = joint.weighted_sum_width(weights, outside)
    assert exceeded(weights, width) <= outside
    rounding = sum(abs(weight) for weight in weights)
    assert exceeded(weights, 0.94 * width - rounding) > outside


@pytest.mark.parametrize("outside", [0.05, 0.001])
def test_widths_of_wide_noise_are_nearly_the_smallest(outside):
    """Of noises so wide that rounding to integers is negligible, the width is within 2 % of the exact one."""
    noises = [WidenedNoise(geometric_table(5.0), 1000), WidenedNoise(truncated_geometric(scale=4.0, largest=30), 700)]
    joint = NoiseSum(tuple(map(NoiseTails.from_noise, noises)))
    lattice = np.arange(-400, 401) * 500.0
    masses = []
    for noise, weight in zip(noises, (1.0, 0.75), strict=True):
        ends = [float(noise.survival_probability(round((x - 250) / weight))) for x in lattice[400:]]
        upper = np.append(-np.diff(ends), 0.0)
        masses.append(np.concatenate([upper[:0:-1], [1 - 2 * ends[1]], upper[1:]]))
    summed = np.convolve(*masses)
    sums = np.arange(len(summed)) * 500.0 - 400_000
    width = joint.weighted_sum_width((1.0, 0.75), outside)
    assert summed[np.abs(sums) > width + 500].sum() <= outside
    assert summed[np.abs(sums) > 0.98 * width - 500].sum() > outside


@pytest.mark.parametrize(("count", "expected"), [(1, [1]), (2, [1, 1]), (3, [1, 4, 1]), (4, [1, 11, 11, 1])])
def test_cells_of_a_sum_of_uniform_numbers_have_eulerian_probabilities(count, expected, cells=8):
    transform = moment_estimates._cell_sum_transform(count, cells)
    frequencies = np.arange(count * cells) * np.pi / (count * cells)
    centers = np.arange(count) - (count - 1) / 2
    chances = np.array(expected) / math.factorial(count)
    assert transform == pytest.approx((np.cos(np.outer(frequencies, centers)) * chances).sum(axis=1), abs=1e-12)


@pytest.mark.parametrize("cells", [4, 8])
def test_widths_on_a_coarse_lattice_hold_every_sum(cells, monkeypatch):
    """Few cells make widths longer, never shorter than the exact ones."""
    monkeypatch.setattr(moment_estimates, "CELLS_PER_WIDTH", cells)
    for weights in WEIGHTS:
        width = NoiseSum(tuple(map(NoiseTails.from_noise, SMALL))).weighted_sum_width(weights, 0.05)
        assert exceeded(weights, width) <= 0.05
        rounding = sum(abs(weight) for weight in weights)
        assert exceeded(weights, 0.8 * width - rounding) > 0.05


def test_widths_grow_with_each_weight_and_scale_with_all():
    joint = NoiseSum(tuple(map(NoiseTails.from_noise, SMALL)))
    widths = [joint.weighted_sum_width((1.0, weight, 0.5), 0.05) for weight in np.linspace(0, 4, 60)]
    assert all(b >= a * (1 - 0.03) for a, b in itertools.pairwise(widths))
    assert joint.weighted_sum_width((2 * 2.0**-30, 2 * 2.0**-30, 2.0**-30), 0.05) * 2**30 == joint.weighted_sum_width(
        (2, 2, 1), 0.05
    )
    assert joint.weighted_sum_width((math.inf, 1, 1), 0.05) == math.inf
    assert joint.weighted_sum_width((0.0, 0.0, 0.0), 0.05) == 0.0


def test_an_endless_law_is_held_too():
    joint = NoiseSum(
        (
            NoiseTails.from_noise(WidenedNoise(geometric_table(5.0), 7)),
            NoiseTails.from_noise(WidenedNoise(geometric_table(5.0), 7)),
        )
    )
    x, y = (WidenedNoise(geometric_table(5.0), 7).sample(100_000) for _ in "xy")
    share = np.mean(np.abs(x - 0.5 * y) > joint.weighted_sum_width((1.0, 0.5), 0.05))
    assert 0.04 < share < 0.0535


def test_spans_hold_what_is_done_to_their_numbers():
    first, second = Span(-1.0, 2.0), Span(0.5, 3.0)
    for a, b in itertools.product(np.linspace(-1, 2, 13), np.linspace(0.5, 3, 11)):
        for span, number in (
            (first + second, a + b),
            (first - second, a - b),
            (first * second, a * b),
            (first.divide_by_positive(second), a / b),
            (first.squared_span(), a * a),
            (-first, -a),
        ):
            assert span.low - 1e-12 <= number <= span.high + 1e-12
    assert first.divide_by_positive(Span(0.0, 1.0)) == Span(-math.inf, math.inf)
    assert (span_around(5.0, 1.0).clip_to_span(first), span_around(0.0, 1.0).clip_to_span(first)) == (
        Span(2.0, 2.0),
        Span(-1.0, 1.0),
    )


@pytest.mark.parametrize("epsilon", [10, 20, 30])
def test_no_width_is_without_end_where_noise_has_two_scales(epsilon):
    """Staircase noise of a large ε is narrow but for rare steps of a whole row: the lattice ended before those."""
    table = pd.DataFrame({"x": [0.5], "y": [0.5]})
    session = tr.Session(table, privacy_unit=None, budget=tr.Budget(epsilon=epsilon, delta=1e-6))
    plan = session.plan([tr.regression("x", on="y", bounds=(0, 1), on_bounds=(0, 1))])
    noises = plan.draft.noises_by_query_group[0]
    for noise in noises:
        joint, outside = NoiseSum((noise.noise_tails,)), 1e-3
        width = joint.weighted_sum_width((1.0,), outside)
        assert width <= 1.1 * half_width(noise.noise_tails, outside) + 1
        assert 2 * float(noise.noise_tails.smoothed_tail_probability(np.array([width]))[0]) <= outside
    assert plan.accuracies()[0].errors_at_size(1_000)["half_width_95"] < 0.05
