"""Exact choice by 128-bit weights."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.randomness.scripted import Scripted
from tightrope.errors import InputError
from tightrope.randomness.alias_sampler import TOTAL, WORDS_AT_ONCE, AliasSampler
from tightrope.randomness.bits import InsecureSeeded

LAST = 2**64 - 1


def weights_from(cuts):
    ends = [0, *sorted(cuts), TOTAL]
    return [b - a for a, b in pairwise(ends)]


def chosen(choice, number):
    """The outcome of one 128-bit number; the low word is given only if it is asked for."""
    source = Scripted([[number >> 64], [number & LAST]])
    return int(choice.draw_outcomes(1, source)[0]), len(source.answers) == 0


near_edges = st.builds(
    lambda high, low, nudge: max(0, min(TOTAL - 1, (high << 64) + low + nudge)),
    st.sampled_from([0, 1, 2**16, 2**63, LAST - 1, LAST]) | st.integers(0, LAST),
    st.sampled_from([0, LAST]) | st.integers(0, LAST),
    st.integers(-2, 2),
)
any_weights = st.lists(near_edges, max_size=40).map(weights_from)


def edges(choice):
    """Edges as numbers of 128 bits."""
    ends = choice.columns.edges
    return [(high << 64) + low for high, low in zip(ends.high.tolist(), ends.low.tolist(), strict=True)]


@given(any_weights)
@settings(max_examples=300)
def test_the_columns_hold_exactly_the_weights(weights):
    columns = AliasSampler.from_weights(weights).columns
    size = max(len(weights), 1 << columns.bits)
    assert columns.outcome_weights(size) == weights + [0] * (size - len(weights))


@given(any_weights, near_edges)
def test_every_number_goes_where_its_column_says(weights, number):
    choice = AliasSampler.from_weights(weights, first=-3)
    table = edges(choice)
    capacity = TOTAL >> choice.columns.bits
    for probe in [number, *(min(TOTAL - 1, max(0, edge + nudge)) for edge in table for nudge in (-1, 0, 1))]:
        column = probe // capacity
        expected = column if probe < table[column] else int(choice.columns.other[column])
        assert chosen(choice, probe)[0] == expected - 3


@given(any_weights)
def test_the_law_of_the_draws_is_the_law_of_the_weights(weights):
    """Between its ends and edges each column gives one outcome, so all 2¹²⁸ numbers are counted by their runs."""
    choice = AliasSampler.from_weights(weights)
    capacity = TOTAL >> choice.columns.bits
    cuts = sorted({*range(0, TOTAL + 1, capacity), *edges(choice)})
    counted = dict.fromkeys(range(len(weights)), 0)
    for low, high in pairwise(cuts):
        assert chosen(choice, low)[0] == chosen(choice, high - 1)[0]
        counted[chosen(choice, low)[0]] += high - low
    assert list(counted.values()) == weights


def test_the_low_word_is_drawn_only_on_a_tie():
    cut = (5 << 64) + 7
    choice = AliasSampler.from_weights(
        [cut, TOTAL - cut]
    )  # column 0: outcome 0 below the cut, then 1; column 1 is full
    assert chosen(choice, (5 << 64) + 6) == (0, True)
    assert chosen(choice, (5 << 64) + 7) == (1, True)
    assert chosen(choice, 4 << 64) == (0, False)
    assert chosen(choice, 6 << 64) == (1, False)


def test_ties_inside_a_batch_are_decided_one_by_one():
    choice = AliasSampler.from_weights([(5 << 64) + 7, TOTAL - (5 << 64) - 7])
    source = Scripted([[5, 0, 5, LAST, 5], [6, 7, 8]])
    assert choice.draw_outcomes(5, source).tolist() == [0, 0, 1, 1, 1]


def test_outcomes_of_weight_zero_never_happen():
    weights = [0, TOTAL // 2, 0, TOTAL // 2, 0]
    assert set(AliasSampler.from_weights(weights).draw_outcomes(10_000, InsecureSeeded(3)).tolist()) == {1, 3}


def test_one_outcome_and_no_draws():
    assert AliasSampler.from_weights([TOTAL]).draw_outcomes(5, InsecureSeeded(3)).tolist() == [0] * 5
    assert AliasSampler.from_weights([0, 0, TOTAL, 0], first=7).draw_outcomes(5, InsecureSeeded(3)).tolist() == [9] * 5
    assert AliasSampler.from_weights([TOTAL]).draw_outcomes(0, InsecureSeeded(3)).shape == (0,)


def test_a_draw_takes_one_word():
    source = Scripted([[1] * WORDS_AT_ONCE, [2] * 3])
    assert (
        len(AliasSampler.from_weights([TOTAL // 4, TOTAL - TOTAL // 4]).draw_outcomes(WORDS_AT_ONCE + 3, source))
        == WORDS_AT_ONCE + 3
    )
    assert source.answers == []


@pytest.mark.parametrize("size", [50, 500, 5000, 5001])
def test_large_tables_hold_exactly_the_weights(size):
    parts = InsecureSeeded(size).random_words(size).tolist()
    weights = [part * TOTAL // (sum(parts) + 1) for part in parts]
    weights[size // 2] += TOTAL - sum(weights)
    columns = AliasSampler.from_weights(weights).columns
    found = columns.outcome_weights(1 << columns.bits)
    assert found[:size] == weights
    assert not any(found[size:])
    shares = (
        np.bincount(AliasSampler.from_weights(weights).draw_outcomes(200_000, InsecureSeeded(1)), minlength=size)
        / 200_000
    )
    assert abs(shares[size // 2] - float(Fraction(weights[size // 2], TOTAL))) < 0.005


@pytest.mark.parametrize("weights", [[], [TOTAL - 1], [TOTAL + 1, -1], [TOTAL, 1]])
def test_weights_that_do_not_add_up(weights):
    with pytest.raises(InputError, match="weights"):
        AliasSampler.from_weights(weights)
