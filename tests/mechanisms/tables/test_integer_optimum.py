"""The closed-form optimum, and the truncated law that meets it at sensitivity 1."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.mechanisms.exact_noise import exponential, hockey_stick, law
from tightrope.errors import InputError
from tightrope.mechanisms.discrete import integer_tables
from tightrope.mechanisms.discrete.integer_tables import optimal_table, table_meets_points
from tightrope.mechanisms.truncated_laplace import discrete_truncated_laplace

REFERENCE = [  # epsilon, delta, total variation, E|X|, E X²: shared/reference/noise.json
    (1, 1e-06, None, 0.8509021157569042, 1.8410998538708114),
    (1, 0.01, None, 0.7984977697207178, 1.5162969664088046),
    (0.5, 0.001, None, 1.8831837780200567, 7.28160499057894),
    (0.1, 0.01, None, 6.494796739559747, 66.20114522285425),
    (1, 1e-06, 0.46, 0.854252257359406, 1.8483493262272972),
    (1, 1e-06, 0.4, 0.9491707808440216, 2.053746379177634),
    (1, 1e-06, 0.3, 1.1073683199850481, 2.396074800761532),
    (1, 1e-06, 0.2, 1.4327759623809888, 3.4346484758853615),
    (1, 1e-06, 0.1, 2.574578649272904, 9.374246128066309),
]


@pytest.mark.parametrize(("epsilon", "delta", "variation", "absolute", "squared"), REFERENCE)
def test_reference_values(epsilon, delta, variation, absolute, squared):
    points = [(epsilon, delta)] if variation is None else [(0, variation), (epsilon, delta)]
    table = optimal_table(points)
    assert math.isclose(table.mean_absolute, absolute, rel_tol=1e-12)
    assert math.isclose(table.mean_squared, squared, rel_tol=1e-12)
    assert table.is_unimodal


def test_a_large_table_is_built_once_and_as_good_as_with_the_least_reduction(monkeypatch):
    """Reductions below the rounding of a certificate were tried one by one, in every step of a search."""
    point, built = (6e-4, 1e-8), []
    build = integer_tables._build_with_margin
    smallest = build((point,), integer_tables.MARGINS[0])
    monkeypatch.setattr(integer_tables, "_build_with_margin", lambda *asked: (built.append(asked), build(*asked))[1])
    tables = [optimal_table([point]) for _ in range(3)]
    assert len(built) == 1 and tables[0] is tables[2]
    assert table_meets_points(tables[0].atoms_for_shift(1), [point])
    assert smallest.mean_absolute < tables[0].mean_absolute < smallest.mean_absolute * (1 + 1e-9)


@pytest.mark.parametrize(("epsilon", "delta", "variation", "absolute", "squared"), REFERENCE[:4])
def test_truncated_laplace_of_sensitivity_one_is_the_optimum(epsilon, delta, variation, absolute, squared):
    noise = discrete_truncated_laplace(epsilon=epsilon, delta=delta)
    assert math.isclose(noise.mean_absolute_error, absolute, rel_tol=1e-12)
    assert math.isclose(noise.mean_squared_error, squared, rel_tol=1e-12)
    center = noise.table.center / 2**128
    assert math.isclose(center, math.tanh(epsilon / 2) + 2 * delta / (1 + math.exp(epsilon)), rel_tol=1e-12)


some_points = st.lists(
    st.tuples(st.floats(0.05, 6), st.floats(-20, -0.5).map(lambda x: 10**x) | st.just(0.0)), min_size=1, max_size=4
)


@given(some_points)
@settings(deadline=None)
def test_every_point_is_kept(points):
    table = optimal_table(points)
    assert table_meets_points(table.atoms_for_shift(1), points)
    assert table.is_unimodal
    assert (table.tail is not None) == any(delta == 0 for _, delta in points)


@given(some_points)
@settings(deadline=None)
def test_tail_probabilities_follow_the_recursion(points):
    table = optimal_table(points)
    lines = [(math.exp(-e), d) for e, d in points]
    expected = max((1 - d) * a / (1 + a) for a, d in lines)
    for k in range(30):
        assert math.isclose(table.survival_probability(k), expected, rel_tol=1e-4, abs_tol=1e-12)
        expected = max(0.0, *(a * (expected - d) for a, d in lines))


@given(st.floats(0.05, 8), st.floats(-15, math.log10(0.5)), st.integers(1, 7))
@settings(deadline=None, max_examples=60)
def test_truncated_laplace_never_exceeds_its_budget_at_any_shift(epsilon, exponent, sensitivity):
    delta = 10**exponent
    noise = discrete_truncated_laplace(epsilon=epsilon, delta=delta, sensitivity=sensitivity)
    p = law(noise.table, len(noise.table.half))
    gamma = exponential(epsilon)
    spent = [hockey_stick(p, shift, gamma) for shift in range(1, sensitivity + 1)]
    assert max(spent) == spent[-1] <= Fraction(delta)
    assert spent[-1] >= Fraction(delta) * (1 - Fraction(1, 10**8))
    assert table_meets_points(noise.table.atoms_for_shift(sensitivity), [(epsilon, delta)])
    assert noise.table.is_unimodal


def test_the_certified_profile_of_the_mechanism_keeps_the_budget():
    for sensitivity in (1, 2, 5):
        noise = discrete_truncated_laplace(epsilon=0.7, delta=1e-8, sensitivity=sensitivity)
        assert 0.999999e-8 < noise.loss.delta(0.7) <= 1e-8


def test_large_epsilon_is_capped_and_tiny_delta_is_none():
    assert optimal_table([(100, 1e-6)]) == optimal_table([(40, 1e-6)])
    assert optimal_table([(1, 1e-30)]) == optimal_table([(1, 0)])


def test_a_weaker_point_changes_nothing():
    alone, both = optimal_table([(1, 1e-6)]), optimal_table([(1, 1e-6), (2, 0.1)])
    assert np.isclose(alone.mean_squared, both.mean_squared, rtol=1e-12)


@pytest.mark.parametrize(
    "points",
    [[], [(0, 0)], [(1, 1)], [(-1, 0.1)], [(1, -0.1)], [(1, 2)], [(float("nan"), 0.1)], [(1, float("nan"))],
     [(float("inf"), 0.1)], [("1", 0.1)], [(True, 0.1)], [(1e-9, 0)], [(1e-9, 1e-15)]],
)  # fmt: skip
def test_nonsense_points(points):
    with pytest.raises(InputError):
        optimal_table(points)


@pytest.mark.parametrize("epsilon", [5e-324, 1e-310, 1e-200, 1e-199, 1e-100, 1e-9])
def test_a_table_that_would_be_too_long_is_refused_before_it_is_computed(epsilon):
    with pytest.raises(InputError, match="fewer than 2097152 cells"):
        optimal_table([(epsilon, 1e-8)])
