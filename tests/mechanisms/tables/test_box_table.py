"""Noise for several numbers at once: its loss against enumeration, every shift below the corner's, exact draws."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tightrope.errors import InputError
from tightrope.mechanisms.discrete.box_table import BoxTable, table_from_data
from tightrope.mechanisms.discrete.noise_table import NoiseTable
from tightrope.noise.families import registered_families
from tightrope.noise.family_weights import BoxWeights, FloatWeights, NoiseRequirement
from tightrope.randomness.alias_sampler import TOTAL
from tightrope.randomness.bits import InsecureSeeded
from tightrope.randomness.integers import uniform_below_each

EPSILONS = (0.0, 0.2, 0.7, 1.5, 3.0)


def box(*widths: float, dimension: int = 2) -> BoxTable:
    """With about these chances of the half-widths 0, 1, …"""
    return BoxTable(NoiseTable.from_probabilities([2 * widths[0], *widths[1:]]), dimension)


def chances(table: BoxTable) -> dict[tuple[int, ...], Fraction]:
    """P(x) of every point, exactly."""
    found: dict[tuple[int, ...], Fraction] = {}
    for r, weight in enumerate([table.radii.center, *(2 * w for w in table.radii.half)]):
        each = Fraction(weight, TOTAL * (2 * r + 1) ** table.dimension)
        for point in product(range(-r, r + 1), repeat=table.dimension):
            found[point] = found.get(point, Fraction(0)) + each
    return found


def profile(p: dict[tuple[int, ...], Fraction], shift: tuple[int, ...], epsilon: float) -> float:
    growth = Fraction(math.exp(epsilon))
    moved = {tuple(a + b for a, b in zip(point, shift, strict=True)): chance for point, chance in p.items()}
    return float(sum(max(Fraction(0), chance - growth * moved.get(point, Fraction(0))) for point, chance in p.items()))


TABLES = [
    box(0.3, 0.2, 0.3, 0.1, 0.1),
    box(0, 0, 1.0),
    box(0.5, 0, 0, 0, 0.5),
    box(0.2, 0.3, 0.5, dimension=3),
]


@pytest.mark.parametrize("shift", [1, 2, 4, 7])
@pytest.mark.parametrize("table", TABLES, ids=repr)
def test_the_loss_at_the_corner_is_that_of_all_points(table, shift):
    p = chances(table)
    assert sum(p.values()) == 1
    for epsilon in EPSILONS:
        exact = profile(p, (shift,) * table.dimension, epsilon)
        assert exact * (1 - 1e-12) <= table.loss(shift).delta(epsilon) <= exact * (1 + 1e-9) + 1e-30


@given(
    st.lists(st.integers(0, 9), min_size=2, max_size=5).filter(any),
    st.integers(2, 3),
    st.lists(st.integers(-3, 3), min_size=3, max_size=3),
)
def test_no_shift_within_the_box_loses_more_than_its_corner(widths, dimension, shift):
    table, own = box(*map(float, widths), dimension=dimension), tuple(shift[:dimension])
    p, most = chances(table), max(map(abs, own))
    for epsilon in EPSILONS:
        assert profile(p, own, epsilon) <= profile(p, (most,) * dimension, epsilon)
        if most:
            assert profile(p, own, epsilon) <= table.loss(most).delta(epsilon)


def test_smoothed_to_finer_units_no_shift_loses_more_than_the_corner():
    """M Y + U − U′ in each coordinate, with steps of their own: enumerated for all shifts up to one step."""
    table, factors = box(0.4, 0.3, 0.2, 0.1), (2, 3)
    law = chances(table)
    smooth: dict[tuple[int, ...], Fraction] = {}
    for point, chance in law.items():
        for ways in product(*(product(range(m), repeat=2) for m in factors)):
            place = tuple(m * y + u - v for m, y, (u, v) in zip(factors, point, ways, strict=True))
            smooth[place] = smooth.get(place, Fraction(0)) + chance / math.prod(m * m for m in factors)
    for shift in product(range(factors[0] + 1), range(-factors[1], factors[1] + 1)):
        for epsilon in EPSILONS:
            assert profile(smooth, shift, epsilon) <= table.loss(1).delta(epsilon)


@pytest.mark.parametrize("table", TABLES, ids=repr)
def test_what_is_said_of_one_number_is_its_marginal(table):
    marginal: dict[int, Fraction] = {}
    for point, chance in chances(table).items():
        marginal[point[0]] = marginal.get(point[0], Fraction(0)) + chance
    fine = Fraction(1, 1 << 200)
    for x in range(int(table.largest_magnitude) + 2):
        exact = sum(chance for y, chance in marginal.items() if y > x)
        assert exact <= table.survival_probability(x) <= exact + fine
    assert table.exact_mean_squared == sum(y * y * chance for y, chance in marginal.items())
    absolute = sum(abs(y) * chance for y, chance in marginal.items())
    assert absolute <= table.exact_mean_absolute <= absolute + fine
    assert table.positive_probabilities() == pytest.approx(
        [float(marginal[y]) for y in range(1, int(table.largest_magnitude) + 1)], rel=1e-15
    )
    width = table.half_width(0.9)
    assert sum(chance for y, chance in marginal.items() if abs(y) > width) <= Fraction(0.1)
    assert width == 0 or sum(chance for y, chance in marginal.items() if abs(y) >= width) > Fraction(1, 10)


@pytest.mark.slow
def test_points_are_drawn_as_the_table_says_and_not_number_by_number():
    table, times = box(0.3, 0.2, 0.3, 0.2), 200_000
    law = chances(table)
    drawn = table.draw_points(times)
    apart = np.column_stack([table.draw_points(times)[:, 0], table.draw_points(times)[:, 0]])
    assert _fits(drawn, law) > 1e-9
    assert _fits(apart, law) < 1e-9  # each number has its law, and all together another one


def _fits(points: np.ndarray, law: dict[tuple[int, ...], Fraction]) -> float:
    seen, counts = np.unique(points, axis=0, return_counts=True)
    found = {tuple(map(int, point)): int(many) for point, many in zip(seen, counts, strict=True)}
    expected = np.array([float(chance) * len(points) for chance in law.values()])
    return float(stats.chisquare([found.get(point, 0) for point in law], expected).pvalue)


def test_bounds_of_their_own_are_kept_and_reached():
    bounds = np.array([1, 2, 3, 5, 8, 1 << 52] * 400)
    drawn = uniform_below_each(bounds, InsecureSeeded(5))
    assert (drawn >= 0).all() and (drawn < bounds).all()
    assert [sorted(set(drawn[bounds == bound].tolist())) for bound in (1, 2, 3, 5, 8)] == [
        list(range(bound)) for bound in (1, 2, 3, 5, 8)
    ]
    assert drawn[bounds == 1 << 52].max() > 1 << 51
    with pytest.raises(InputError, match="bounds"):
        uniform_below_each(np.array([0]), InsecureSeeded(5))


@pytest.mark.parametrize("dimension", [2, 5])
@pytest.mark.parametrize("family", registered_families(), ids=lambda family: family.name)
def test_a_family_as_a_profile_is_searched_as_it_is_certified(family, dimension):
    law = family.float_weights(2.0, NoiseRequirement(4, (1,), 1e-6))
    weights = BoxWeights.from_weights(law, dimension)
    table = weights.integer_table()
    assert table.mean_absolute == pytest.approx(weights.mean_absolute, rel=1e-9)
    ends, masses = weights.shift_loss_cells(4).dominating_atoms()
    lost = weights.shift_loss_cells(4).infinite_mass
    assert masses.sum() + lost == pytest.approx(1, rel=1e-12)
    for epsilon in EPSILONS:
        searched = float(np.sum(masses * np.maximum(0.0, -np.expm1(epsilon - ends)))) + lost
        assert table.loss(4).delta(epsilon) == pytest.approx(searched, rel=1e-6, abs=1e-25)


def test_weights_that_rise_are_lowered():
    assert BoxWeights.from_weights(FloatWeights(np.array([1.0, 0.5, 0.75, 0.0])), 2).half_weights.tolist() == [
        1.0,
        0.5,
        0.5,
    ]


def test_it_is_written_and_read():
    assert table_from_data(TABLES[0].to_data()) == TABLES[0]
    assert table_from_data(TABLES[0].radii.to_data()) == TABLES[0].radii


def test_what_is_none_is_refused():
    ends = NoiseTable.from_probabilities([1, 1])
    with pytest.raises(InputError, match="all of them"):
        TABLES[0].sample(3)
    for dimension in (1, 17):
        with pytest.raises(InputError, match="dimension"):
            BoxTable(ends, dimension)
    with pytest.raises(InputError, match="finite table"):
        BoxTable(NoiseTable.from_probabilities([1, 0.5], tail_ratio=0.5), 2)
    with pytest.raises(InputError, match="sensitivity"):
        TABLES[0].atoms_for_shift(1 << 30)
