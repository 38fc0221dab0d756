"""Exact decisions about real probabilities."""

from fractions import Fraction
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mp, mpf

from tests.randomness.scripted import Scripted
from tightrope.randomness.bits import InsecureSeeded
from tightrope.randomness.integers import FIRST_DIGITS, bernoulli_from_bits, falling_exponential


@given(st.fractions(0, 400, max_denominator=10**12), st.sampled_from([20, 40, 80]))
def test_enclosures_of_the_exponential(x, digits):
    low, high = falling_exponential(x, digits)
    with mp.workdps(digits + 30):
        truth = mp.exp(-mpf(x.numerator) / x.denominator)
        assert mpf(low.numerator) / low.denominator <= truth <= mpf(high.numerator) / high.denominator
    assert high - low <= high * Fraction(10) ** (4 - digits)


def test_the_exponential_at_zero():
    low, high = falling_exponential(Fraction(0), 30)
    assert low < 1 < high


def third(digits):
    """Bounds on 1/3, none of them exact."""
    return Fraction(1, 3) - Fraction(1, 10**digits), Fraction(1, 3) + Fraction(1, 10**digits)


def test_words_are_taken_until_the_answer_is_certain():
    third_word = (2**64 - 1) // 3  # 0x5555…: the first digits of 1/3
    assert bernoulli_from_bits(third, Scripted([[third_word - 1]]))
    assert not bernoulli_from_bits(third, Scripted([[third_word + 1]]))
    assert bernoulli_from_bits(third, Scripted([[third_word], [third_word], [0]]))
    assert not bernoulli_from_bits(third, Scripted([[third_word], [third_word], [third_word], [third_word + 1]]))


def test_a_prefix_may_decide_alone():
    assert bernoulli_from_bits(third, Scripted([]), prefix=0, bits=2)
    assert not bernoulli_from_bits(third, Scripted([]), prefix=2, bits=2)
    assert bernoulli_from_bits(third, Scripted([[1 << 62]]), prefix=1, bits=2)
    assert not bernoulli_from_bits(third, Scripted([[1 << 63]]), prefix=1, bits=2)


def test_certain_events():
    assert bernoulli_from_bits(lambda digits: (Fraction(1), Fraction(1)), Scripted([]))
    assert not bernoulli_from_bits(lambda digits: (Fraction(0), Fraction(0)), Scripted([]))


@pytest.mark.parametrize("x", [Fraction(1, 10), Fraction(7, 3)])
def test_frequencies(x):
    source = InsecureSeeded(4)
    count = sum(bernoulli_from_bits(partial(falling_exponential, x), source) for _ in range(4000))
    expected = 4000 * float(mp.exp(-mpf(x.numerator) / x.denominator))
    assert abs(count - expected) < 5 * expected**0.5
    assert FIRST_DIGITS > 2 * 19  # the first digits decide nearly always against one word
