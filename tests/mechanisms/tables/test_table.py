"""The exact integer law: weights, errors, quantiles, and what is written down."""

import json
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.mechanisms.exact_noise import law, probability
from tests.mechanisms.strategies import endless_tables, finite_tables, ragged_tables
from tightrope.errors import InputError
from tightrope.mechanisms.discrete.integer_tables import (
    gaussian_table,
    geometric_table,
    staircase_table,
    truncated_geometric,
)
from tightrope.mechanisms.discrete.integer_weights import Tail
from tightrope.mechanisms.discrete.noise_table import NoiseTable
from tightrope.randomness.alias_sampler import TOTAL

any_table = finite_tables | endless_tables


@given(any_table | ragged_tables)
def test_weights_add_up_exactly(table):
    beyond = table.tail.escape_in if table.tail else 0
    assert table.center + 2 * sum(table.half) + 2 * beyond == TOTAL


@given(any_table)
def test_falling_probabilities_give_a_unimodal_table(table):
    assert table.is_unimodal


def test_a_table_that_rises_is_not_unimodal():
    assert not NoiseTable.from_probabilities([1, 2]).is_unimodal
    assert not NoiseTable.from_probabilities([3, 1, 2]).is_unimodal


@given(st.lists(st.floats(0, 1e300), min_size=1, max_size=30).filter(any))
def test_quantized_probabilities_are_within_one_part(values):
    table = NoiseTable.from_probabilities(values)
    whole = sum(map(Fraction, values)) * 2 - Fraction(values[0])
    for x, value in enumerate(values[1:], 1):
        exact = Fraction(value) / whole * TOTAL
        assert abs(probability(table, x) * TOTAL - exact) <= 1 + exact * Fraction(1, 2**100)


def test_cells_without_weight_are_trimmed():
    assert NoiseTable.from_probabilities([1, 1e-50, 0]).half == ()
    assert NoiseTable(TOTAL - 2, (1, 0, 0)).half == (1,)


@given(endless_tables, st.integers(0, 60))
def test_survival_of_an_endless_tail_is_exact(table, x):
    assert table.survival_probability(x) - table.survival_probability(x + 1) == probability(table, x + 1)
    assert table.survival_probability(0) * 2 + probability(table, 0) == 1


@given(endless_tables)
@settings(deadline=None, max_examples=25)
def test_moments_of_an_endless_tail(table):
    reach = 700
    right = [float(probability(table, x)) for x in range(reach + 1)]
    assert table.survival_probability(reach) < Fraction(1, 10**18)
    assert math.isclose(table.mean_absolute, 2 * math.fsum(x * w for x, w in enumerate(right)), rel_tol=1e-12)
    assert math.isclose(table.mean_squared, 2 * math.fsum(x * x * w for x, w in enumerate(right)), rel_tol=1e-11)
    assert table.largest_magnitude == math.inf


@given(finite_tables | ragged_tables)
def test_moments_of_a_finite_table(table):
    p = law(table, len(table.half))
    assert table.exact_mean_absolute == sum(abs(x) * w for x, w in p.items())
    assert table.exact_mean_squared == sum(x * x * w for x, w in p.items())
    assert table.largest_magnitude == len(table.half)


@given(any_table, st.floats(1e-12, 1 - 1e-12) | st.sampled_from([0.5, 0.25, 0.75, 1e-30, 1 - 2**-53]))
def test_quantile_is_the_smallest_that_suffices(table, p):
    def upto(x):
        return 1 - table.survival_probability(x) if x >= 0 else table.survival_probability(-x - 1)

    x = table.quantile(p)
    assert upto(x) >= Fraction(p) > upto(x - 1)


@given(any_table, st.floats(1e-6, 1 - 1e-12))
def test_half_width_is_the_smallest_that_suffices(table, confidence):
    w = table.half_width(confidence)
    assert 1 - 2 * table.survival_probability(w) >= Fraction(confidence)
    assert w == 0 or 1 - 2 * table.survival_probability(w - 1) < Fraction(confidence)


@given(any_table)
def test_written_down_and_read_again(table):
    assert NoiseTable.from_data(json.loads(json.dumps(table.to_data()))) == table


def test_tampered_data_is_refused():
    data = geometric_table(2).to_data()
    with pytest.raises(InputError, match="centre"):
        NoiseTable.from_data({**data, "centre": str(int(data["centre"]) + 1)})


@pytest.mark.parametrize("scale", [0.03, 0.5, 1, 7.3, 100, 3000])
def test_geometric_moments(scale):
    table = geometric_table(scale)
    assert math.isclose(table.mean_absolute, 1 / math.sinh(1 / scale), rel_tol=1e-12)
    assert math.isclose(table.mean_squared, 0.5 / math.sinh(0.5 / scale) ** 2, rel_tol=1e-12)


@pytest.mark.parametrize("scale", [0.1, 0.7, 3, 250.5])
def test_gaussian_weights(scale):
    table = gaussian_table(scale)
    x = np.arange(1, len(table.half) + 1)
    raw = np.exp(-(x**2) / (2 * scale**2))
    whole = 1 + 2 * raw.sum()
    kept = raw / whole > 2.0**-70
    got = np.array([w / TOTAL for w in table.half])
    assert np.allclose(got[kept], (raw / whole)[kept], rtol=3e-14, atol=0)
    assert math.isclose(table.mean_squared, (x**2 * raw).sum() * 2 / whole, rel_tol=1e-12)


@pytest.mark.parametrize("largest", [0, 1, 5, 40])
def test_truncated_geometric(largest):
    table = truncated_geometric(scale=2, largest=largest)
    assert table.largest_magnitude == largest
    assert all(
        math.isclose(a / b, math.exp(0.5), rel_tol=1e-12) for a, b in zip(table.half, table.half[1:], strict=False)
    )


def test_staircase_has_plateaus():
    p = law(staircase_table(1.5, 4, 3), 40)
    levels = [p[x] for x in range(41)]
    assert len({round(math.log(v), 9) for v in levels[:3]}) == 1
    for start in range(3, 35, 4):
        assert math.isclose(levels[start], levels[start + 3], rel_tol=1e-20)
        assert math.isclose(levels[start - 1] / levels[start], math.exp(1.5), rel_tol=1e-12)


@pytest.mark.parametrize("half", [[], [0, 0], [-1, 2], [1, float("nan")], [float("inf")], [[1, 2]], 3.0])
def test_nonsense_probabilities(half):
    with pytest.raises(InputError, match="half"):
        NoiseTable.from_probabilities(half)


@pytest.mark.parametrize("ratio", [0, 1, -0.5, 2, float("nan"), "0.5", True, 1e-30, 1 - 1e-9])
def test_nonsense_tail_ratios(ratio):
    with pytest.raises(InputError, match="tail_ratio"):
        NoiseTable.from_probabilities([1], tail_ratio=ratio)


def test_weights_that_do_not_add_up():
    with pytest.raises(InputError, match="centre"):
        NoiseTable(TOTAL, (1,))
    with pytest.raises(InputError, match="half"):
        NoiseTable(TOTAL + 2, (-1,))
    with pytest.raises(InputError, match="tail"):
        Tail((TOTAL,), 1, 0)
    with pytest.raises(InputError, match="tail"):
        Tail((1, 2), 1, TOTAL)


def test_a_law_that_is_not_unimodal_takes_its_worst_shift():
    gap = NoiseTable.from_probabilities([1, 0, 1])  # shift 2 finds the gaps again, shift 1 does not
    assert gap.loss(1).infinite_mass == 1
    assert gap.atoms_for_shift(2).infinite_mass < 1 == gap.loss(2).infinite_mass


@pytest.mark.parametrize("p", [0, 1, -1, float("nan"), 1e-31, "0.5", True])
def test_nonsense_quantiles(p):
    with pytest.raises(InputError, match="p="):
        geometric_table(1).quantile(p)
