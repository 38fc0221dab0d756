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


# Boxes without a limit: P(x) ∝ e^(−max |x_i| / scale), which is private with δ = 0.

UNBOUNDED = [(0.7, 2), (1.5, 2), (0.3, 3), (1.0, 3)]
"""The scale of the profile in steps, and the dimension."""


def unbounded(scale: float, dimension: int) -> BoxTable:
    return BoxTable.from_ratio(math.exp(-1 / scale), dimension)


def point_chances(table: BoxTable, last: int) -> np.ndarray:
    """P(x) by max |x_i| from 0 to ``last``, from the integer weights in exact fractions."""
    center, half, tail = table.radii.center, table.radii.half, table.radii.tail
    assert tail is not None
    weights, rest = [Fraction(center), *(Fraction(2 * weight) for weight in half)], Fraction(2 * tail.escape_in)
    while len(weights) <= last + 400:
        weights += [rest * Fraction(weight, TOTAL) for weight in tail.block]
        rest *= Fraction(tail.escape, TOTAL)
    sums, found = Fraction(0), []
    for r in range(last + 400, -1, -1):
        sums += weights[r] / TOTAL / (2 * r + 1) ** table.dimension
        found.append(sums)
    return np.array([float(chance) for chance in found[::-1][: last + 1]])


@pytest.mark.parametrize(("scale", "dimension"), UNBOUNDED)
def test_an_unbounded_box_is_private_without_delta_for_every_neighbor(scale, dimension, shift=2, reach=9):
    """All shifts by up to two steps in each number, at every point near 0, and along the profile far from it."""
    table = unbounded(scale, dimension)
    chance = point_chances(table, 60)
    largest = math.log(max(chance[:-shift] / chance[shift:]))
    assert largest <= shift / scale * (1 + 1e-12)
    stated = table.loss(shift).epsilon(0)
    assert largest * (1 - 1e-12) <= stated <= shift / scale * (1 + 1e-12)
    points = np.array(list(product(range(-reach, reach + 1), repeat=dimension)))
    for move in product(range(-shift, shift + 1), repeat=dimension):
        here, there = (chance[np.abs(points - moved).max(axis=1)] for moved in (0, move))
        assert np.log(here / there).max() <= stated + 1e-12


@pytest.mark.parametrize(("scale", "dimension"), UNBOUNDED)
def test_the_loss_of_an_unbounded_box_is_that_of_all_points(scale, dimension, shift=2, reach=44):
    table = unbounded(scale, dimension)
    chance = point_chances(table, 2 * reach)
    points = np.abs(np.stack(np.meshgrid(*[np.arange(-reach, reach + 1)] * dimension), axis=-1))
    moved = np.abs(np.stack(np.meshgrid(*[np.arange(-reach, reach + 1) - shift] * dimension), axis=-1))
    here, there = chance[points.max(axis=-1)], chance[moved.max(axis=-1)]
    assert here.sum() == pytest.approx(1, abs=1e-9)
    for epsilon in EPSILONS:
        exact = float(np.maximum(here - math.exp(epsilon) * there, 0.0).sum())
        assert table.loss(shift).delta(epsilon) == pytest.approx(exact, rel=1e-8, abs=1e-9)


def test_an_unbounded_box_whose_tail_is_too_light_loses_more_than_its_scale():
    """A planted bug: half-widths continue with the ratio of the profile, though boxes grow."""
    right = BoxTable.from_ratio(math.exp(-1 / 4), 5)
    head = [right.radii.center / TOTAL, *(weight / TOTAL for weight in right.radii.half[:100])]
    wrong = NoiseTable.from_probabilities(head, tail_ratio=math.exp(-1 / 4))
    assert right.loss(1).epsilon(0) <= 0.25 * (1 + 1e-12)
    assert BoxTable(wrong, 5).loss(1).epsilon(0) > 0.26


@pytest.mark.parametrize(("scale", "dimension"), [*UNBOUNDED, (16.0, 10), (300.0, 10)])
def test_what_is_said_of_one_number_of_an_unbounded_box_is_what_theory_has(scale, dimension):
    """E X² = E R(R + 1)/3; for wide noise (d + 1)(d + 2)/3 scale², and E|X| = (d + 1)/2 scale."""
    table = unbounded(scale, dimension)
    r = np.arange(int(200 * scale) + 200, dtype=np.float64)
    logs = -r / scale + dimension * np.log(2 * r + 1)
    chances = np.exp(logs - logs.max())
    chances /= chances.sum()
    assert table.mean_absolute == pytest.approx(chances @ (r * (r + 1) / (2 * r + 1)), rel=1e-9)
    assert float(table.exact_mean_squared) == pytest.approx(chances @ (r * (r + 1) / 3), rel=1e-9)
    x = int(2 * dimension * scale)
    beyond = float((chances * np.maximum(r - x, 0) / (2 * r + 1)).sum())
    assert float(table.survival_probability(x)) == pytest.approx(beyond, rel=1e-9)
    assert table.largest_magnitude == math.inf and table.tail is table.radii.tail
    if scale >= 16:
        assert float(table.exact_mean_squared) == pytest.approx(
            (dimension + 1) * (dimension + 2) / 3 * scale**2, rel=1e-3
        )
        assert table.mean_absolute == pytest.approx((dimension + 1) / 2 * scale, rel=1e-3)
    width = table.half_width(0.95)
    assert table.survival_probability(width) <= 0.025 < table.survival_probability(width - 1)


@pytest.mark.slow
@pytest.mark.parametrize(("scale", "dimension"), [(0.7, 2), (0.5, 3)])
def test_points_of_an_unbounded_box_are_drawn_as_the_table_says(scale, dimension, times=200_000, reach=3):
    """Points within the box of half-width 3 one by one, all others together by their largest coordinate."""
    table = unbounded(scale, dimension)
    chance, drawn = point_chances(table, reach), table.draw_points(times)
    inside = np.abs(drawn).max(axis=1) <= reach
    seen = np.zeros((2 * reach + 1,) * dimension)
    np.add.at(seen, tuple(drawn[inside].T + reach), 1)
    places = np.stack(np.meshgrid(*[np.abs(np.arange(-reach, reach + 1))] * dimension), axis=-1).max(axis=-1)
    expected = np.append(chance[places].ravel(), 1 - chance[places].sum()) * times
    found = np.append(seen.ravel(), times - inside.sum())
    assert stats.chisquare(found, expected).pvalue > 1e-9
    wrong = np.append(seen.ravel() * 1.05, times - inside.sum() - 0.05 * seen.sum())
    assert stats.chisquare(wrong, expected * wrong.sum() / expected.sum()).pvalue < 1e-9


def test_it_is_written_and_read():
    assert table_from_data(TABLES[0].to_data()) == TABLES[0]
    endless = unbounded(1.0, 2)
    assert table_from_data(endless.to_data()) == endless
    assert table_from_data(TABLES[0].radii.to_data()) == TABLES[0].radii


def test_what_is_none_is_refused():
    ends = NoiseTable.from_probabilities([1, 1])
    with pytest.raises(InputError, match="all of them"):
        TABLES[0].sample(3)
    for dimension in (1, 17):
        with pytest.raises(InputError, match="dimension"):
            BoxTable(ends, dimension)
    with pytest.raises(InputError, match="sensitivity"):
        TABLES[0].atoms_for_shift(1 << 30)
