"""Exact choice by 128-bit weights."""

from bisect import bisect_right
from itertools import accumulate, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.randomness.scripted import Scripted
from tightrope.errors import InputError
from tightrope.randomness.choice import TOTAL, Choice
from tightrope.randomness.source import InsecureSeeded

LAST = 2**64 - 1


def weights_from(cuts):
    ends = [0, *sorted(cuts), TOTAL]
    return [b - a for a, b in pairwise(ends)]


def chosen(choice, number):
    """The outcome of one 128-bit number; the low word is given only if it is asked for."""
    source = Scripted([[number >> 64], [number & LAST]])
    return int(choice.draw(1, source)[0]), len(source.answers) == 0


near_edges = st.builds(
    lambda high, low, nudge: max(0, min(TOTAL - 1, (high << 64) + low + nudge)),
    st.sampled_from([0, 1, 2**16, 2**63, LAST - 1, LAST]) | st.integers(0, LAST),
    st.sampled_from([0, LAST]) | st.integers(0, LAST),
    st.integers(-2, 2),
)


@given(st.lists(near_edges, max_size=8), near_edges, st.integers(-1, 1))
def test_agrees_with_whole_numbers_everywhere(cuts, number, nudge):
    choice = Choice.of(weights_from(cuts))
    for probe in [number, *(min(TOTAL - 1, max(0, cut + nudge)) for cut in cuts)]:
        assert chosen(choice, probe)[0] == bisect_right(sorted(cuts), probe)


def test_the_low_word_is_drawn_only_on_a_tie():
    cut = (5 << 64) + 7
    choice = Choice.of([cut, TOTAL - cut])
    assert chosen(choice, (5 << 64) + 6) == (0, True)
    assert chosen(choice, (5 << 64) + 7) == (1, True)
    assert chosen(choice, 4 << 64) == (0, False)
    assert chosen(choice, 6 << 64) == (1, False)


def test_ties_inside_a_batch_are_decided_one_by_one():
    cut = (5 << 64) + 7
    choice = Choice.of([cut, 1, TOTAL - cut - 1])
    source = Scripted([[5, 0, 5, LAST, 5], [6, 7, 8]])
    assert choice.draw(5, source).tolist() == [0, 0, 1, 2, 2]


def test_outcomes_of_weight_zero_never_happen():
    weights = [0, TOTAL // 2, 0, TOTAL // 2, 0]
    assert set(Choice.of(weights).draw(10_000, InsecureSeeded(3)).tolist()) == {1, 3}


def test_one_outcome_and_no_draws():
    assert Choice.of([TOTAL]).draw(5, InsecureSeeded(3)).tolist() == [0] * 5
    assert Choice.of([TOTAL]).draw(0, InsecureSeeded(3)).shape == (0,)


@given(st.lists(st.integers(0, 2**40), min_size=1, max_size=300))
def test_guide_and_search_agree(parts):
    scale = TOTAL // (sum(parts) + 1)
    weights = [p * scale for p in parts]
    weights.append(TOTAL - sum(weights))
    choice = Choice.of(weights)
    words = InsecureSeeded(9).words(500)
    expected = np.searchsorted([e >> 64 for e in accumulate(weights[:-1])], words.tolist(), side="right")
    assert np.array_equal(choice.draw(500, InsecureSeeded(9)), expected)


@pytest.mark.parametrize("weights", [[], [TOTAL - 1], [TOTAL + 1, -1], [TOTAL, 1]])
def test_weights_that_do_not_add_up(weights):
    with pytest.raises(InputError, match="weights"):
        Choice.of(weights)
