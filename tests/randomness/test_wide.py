"""Numbers of 128 bits in arrays, against Python's."""

from bisect import bisect_left
from itertools import accumulate

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tightrope.randomness.integers import Wide

TOP = 2**128
words = st.sampled_from([0, 1, 2, 2**63, 2**64 - 2, 2**64 - 1]) | st.integers(0, 2**64 - 1)
numbers = st.builds(lambda high, low: (high << 64) + low, words, words)
lists = st.lists(numbers, max_size=30)


def back(wide):
    return [(high << 64) + low for high, low in zip(wide.high.tolist(), wide.low.tolist(), strict=True)]


@given(lists)
def test_there_and_back(values):
    assert back(Wide.from_integers(values)) == values
    assert len(Wide.from_integers(values)) == len(values)


@given(st.lists(st.tuples(numbers, numbers), max_size=30))
def test_differences_and_comparisons(pairs):
    left, right = Wide.from_integers([a for a, _ in pairs]), Wide.from_integers([b for _, b in pairs])
    assert back(left - right) == [(a - b) % TOP for a, b in pairs]
    assert left.less_than(right).tolist() == [a < b for a, b in pairs]


@given(lists)
def test_running_sums(values):
    assert back(Wide.from_integers(values).cumulative_sums()) == [total % TOP for total in accumulate(values)]


@given(lists, lists)
def test_ranks(values, wanted):
    values.sort()
    wanted += values  # ties
    assert Wide.from_integers(values).ranks_of(Wide.from_integers(wanted)).tolist() == [
        bisect_left(values, w) for w in wanted
    ]


def test_many_equal_high_words():
    values = sorted([7 << 64 | low for low in range(0, 2000, 2)] + [1, 2**127])
    wanted = [7 << 64 | low for low in range(-3 + 3, 2003)]
    assert Wide.from_integers(values).ranks_of(Wide.from_integers(wanted)).tolist() == [
        bisect_left(values, w) for w in wanted
    ]


def test_one_number_many_times():
    assert back(Wide.filled_with(3, 2**127 + 1)) == [2**127 + 1] * 3
    assert np.array_equal(Wide.from_integers([1, 2, 3])[1:].low, [2, 3])


@pytest.mark.parametrize("value", [-1, TOP])
def test_numbers_that_do_not_fit(value):
    with pytest.raises(OverflowError):
        Wide.from_integers([value])
