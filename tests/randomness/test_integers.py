"""Uniform integers below a bound."""

import numpy as np
import pytest
from scipy import stats

from tests.randomness.scripted import Scripted
from tightrope.errors import InputError
from tightrope.randomness.bits import InsecureSeeded, OperatingSystem
from tightrope.randomness.integers import LARGEST_BOUND, uniform_below


@pytest.mark.parametrize("bound", [1, 2, 3, 7, 64, 65, 1000])
def test_uniform(bound):
    draws = uniform_below(bound, 50_000, InsecureSeeded(bound))
    counts = np.bincount(draws, minlength=bound)
    assert len(counts) == bound
    assert bound == 1 or stats.chisquare(counts).pvalue > 1e-4


@pytest.mark.parametrize("bound", [LARGEST_BOUND, LARGEST_BOUND - 1, 2**62 + 1, 3 * 2**61])
def test_large_bounds(bound):
    draws = uniform_below(bound, 4000, OperatingSystem())
    assert 0 <= int(draws.min()) <= int(draws.max()) < bound
    assert stats.kstest(draws / bound, "uniform").pvalue > 1e-4


def test_words_at_or_above_the_bound_are_rejected():
    source = Scripted([[3 << 62, 2 << 62, 1 << 62], [3 << 62], [0]])
    assert uniform_below(3, 3, source).tolist() == [2, 1, 0]


@pytest.mark.parametrize("bound", [0, -1, 1.0, "3", True, None, float("nan"), LARGEST_BOUND + 1])
def test_nonsense_bounds(bound):
    with pytest.raises(InputError, match="bound"):
        uniform_below(bound, 1)


@pytest.mark.parametrize("size", [-1, 2.0, "2", None])
def test_nonsense_sizes(size):
    with pytest.raises(InputError, match="size"):
        uniform_below(3, size)
