"""What shuffling adds, beside slow exact sums and the closed form."""

import math
from fractions import Fraction
from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mp

from tightrope import local
from tightrope.errors import InputError


def by_definition(level, local_epsilon, people):
    """δ of the pair of Theorem 3.2, every outcome in sixty digits."""
    with mp.workdps(60):
        p, q = mp.e**local_epsilon / (mp.e**local_epsilon + 1), mp.e ** (-local_epsilon)
        gamma, total = mp.e**level, mp.mpf(0)
        for c in range(people):
            weight = comb(people - 1, c) * q**c * (1 - q) ** (people - 1 - c) / mp.mpf(2) ** c
            for a in range(c + 2):
                up, down = (comb(c, a - 1) if a else 0), comb(c, a)
                total += weight * max(p * up + (1 - p) * down - gamma * ((1 - p) * up + p * down), 0)
        return total


@pytest.mark.parametrize("people", [2, 3, 17, 80])
@pytest.mark.parametrize("local_epsilon", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("part", [0.0, 0.1, 0.5, 0.95])
def test_never_below_the_pair_and_near_it(people, local_epsilon, part):
    truth = by_definition(part * local_epsilon, local_epsilon, people)
    found = local.shuffled_delta(part * local_epsilon, local_epsilon=local_epsilon, people=people)
    assert truth <= found <= truth * (1 + 1e-6) + 1e-9


def test_groups_cost_little():
    one = local.shuffled_delta(0.02, local_epsilon=1.0, people=100_000)
    assert 0 < one < 1
    from tightrope.local.studies import repeated

    fine = repeated.GROUPS_OF_CLONES
    try:
        repeated.GROUPS_OF_CLONES = 20_000
        exact = local.shuffled_delta(0.02, local_epsilon=1.0, people=100_000)
    finally:
        repeated.GROUPS_OF_CLONES = fine
    assert exact <= one <= exact * 1.05


def test_a_shuffled_mechanism_stays_below():
    """Binary randomized response of n people: the number of ones is all there is; one person's bit is changed."""
    m, n = local.k_randomized_response(1.0, 2), 40
    p, q = m.true_support_probability, m.false_support_probability

    def ones(rest, mine):
        """Law of the number of ones with ``rest`` others who hold a one."""
        law = [Fraction(1)]
        for chance in [*[p] * rest, *[q] * (n - 1 - rest), mine]:
            law = [
                (law[i] * (1 - chance) if i < len(law) else 0) + (law[i - 1] * chance if i else 0)
                for i in range(len(law) + 1)
            ]
        return law

    for rest in (0, 20, 39):
        one, zero = ones(rest, p), ones(rest, q)
        for level in (0.0, 0.2, 0.5):
            gamma = Fraction(math.exp(level))
            bound = local.shuffled_delta(level, local_epsilon=1.0, people=n)
            for a, b in ((one, zero), (zero, one)):
                assert float(sum(max(x - gamma * y, 0) for x, y in zip(a, b, strict=True))) <= bound


@given(st.floats(0.1, 2), st.sampled_from([10_000, 1_000_000]), st.sampled_from([1e-4, 1e-6, 1e-9]))
def test_the_search_ends_on_the_private_side(local_epsilon, people, delta):
    found = local.shuffled_epsilon(delta, local_epsilon=local_epsilon, people=people)
    assert 0 <= found <= local_epsilon
    assert local.shuffled_delta(found, local_epsilon=local_epsilon, people=people) <= delta
    assert found == 0 or local.shuffled_delta(found * 0.99, local_epsilon=local_epsilon, people=people) > delta
    if local_epsilon <= math.log(people / (16 * math.log(2 / delta))):
        assert found <= local.shuffled_closed_form(delta, local_epsilon=local_epsilon, people=people)


def test_few_people_hide_nobody():
    assert local.shuffled_epsilon(1e-9, local_epsilon=5.0, people=2) == pytest.approx(5.0)
    assert local.shuffled_delta(1.0, local_epsilon=1.0, people=2) == 0


def test_arguments():
    for people in (0, 1, 2.0, None):
        with pytest.raises(InputError, match="people"):
            local.shuffled_delta(0.1, local_epsilon=1.0, people=people)
    for epsilon in (-1, math.nan, math.inf):
        with pytest.raises(InputError, match="epsilon"):
            local.shuffled_delta(epsilon, local_epsilon=1.0, people=10)
    for delta in (0, 1, math.nan):
        with pytest.raises(InputError, match="delta"):
            local.shuffled_epsilon(delta, local_epsilon=1.0, people=10)
    with pytest.raises(InputError, match="local_epsilon"):
        local.shuffled_closed_form(1e-6, local_epsilon=5.0, people=1000)


def test_what_no_float_holds_is_answered():
    """e^800 overflows: so private a level is of no use to anybody, but it is not an error."""
    found = local.shuffled_delta(800.0, local_epsilon=1000.0, people=10)
    assert found == 1.0
    assert local.shuffled_delta(999.5, local_epsilon=1000.0, people=10) == pytest.approx(-math.expm1(-0.5))
    assert 0 < local.shuffled_closed_form(0.5, local_epsilon=1000.0, people=10**450) < 1e-6
    assert 0 < local.shuffled_closed_form(0.5, local_epsilon=1000.0, people=10**1000) < 1e-100
