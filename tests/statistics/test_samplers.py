"""Every sampler against its own weights: the true scale passes, a scale 10 % too large is caught."""

import math

import numpy as np
import pytest
from scipy import stats

from tests.mechanisms.exact_noise import probability
from tests.randomness.scripted import Scripted
from tightrope.mechanisms.discrete.integer_tables import optimal_table, truncated_geometric
from tightrope.mechanisms.discrete.integer_weights import Tail
from tightrope.mechanisms.discrete.noise_table import NoiseTable
from tightrope.mechanisms.discrete.scaled_noise import WidenedNoise
from tightrope.mechanisms.gaussian import discrete_gaussian
from tightrope.mechanisms.laplace import discrete_laplace
from tightrope.mechanisms.randomized_response import randomized_response
from tightrope.mechanisms.staircase import discrete_staircase
from tightrope.mechanisms.truncated_laplace import discrete_truncated_laplace
from tightrope.randomness.bits import InsecureSeeded, OperatingSystem

DRAWS = 200_000


def p_value(draws, mass):
    """Chi-square of the draws against P(X = x) = mass(x); cells with fewer than 20 expected are joined."""
    reach = 0
    while mass(reach + 1) * len(draws) >= 20:
        reach += 1
    expected = [mass(x) * len(draws) for x in range(-reach, reach + 1)]
    clipped = np.clip(draws, -reach - 1, reach + 1).astype(np.int64) + reach + 1
    counts = np.bincount(clipped, minlength=2 * reach + 3)
    rest = len(draws) - math.fsum(expected)
    if rest < 10:  # the two ends are too rare to be a cell
        keep = counts[1:-1]
        return stats.chisquare(keep, np.array(expected) * keep.sum() / math.fsum(expected)).pvalue
    observed = [counts[0] + counts[-1], *counts[1:-1]]
    return stats.chisquare(observed, [rest, *expected]).pvalue


def of_table(table):
    return lambda x: float(probability(table, x))


PAIRS = [
    ("laplace", lambda s: discrete_laplace(scale=3 * s).table),
    ("wide laplace", lambda s: discrete_laplace(scale=60 * s).table),
    ("gaussian", lambda s: discrete_gaussian(scale=5 * s).table),
    ("staircase", lambda s: discrete_staircase(epsilon=1 / s, sensitivity=4).table),
    ("truncated laplace", lambda s: discrete_truncated_laplace(epsilon=0.5 / s, delta=1e-4, sensitivity=2).table),
    ("truncated geometric", lambda s: truncated_geometric(scale=4 * s, largest=9)),
    ("optimum", lambda s: optimal_table([(0, 0.25 / s), (1 / s, 1e-6)])),
]


@pytest.mark.parametrize(("name", "build"), PAIRS, ids=[name for name, _ in PAIRS])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_accepts_the_scale_and_rejects_ten_percent_more(name, build, seed):
    draws = build(1.0).sample(DRAWS, InsecureSeeded(seed))
    assert p_value(draws, of_table(build(1.0))) > 1e-4, name
    assert p_value(draws, of_table(build(1.1))) < 1e-9, name
    assert p_value(draws, of_table(build(1 / 1.1))) < 1e-9, name


def triangle(table, factor):
    def mass(x):
        y, s = divmod(abs(x), factor)
        return float(((factor - s) * probability(table, y) + s * probability(table, y + 1)) / factor**2)

    return mass


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_widened(seed):
    table, wider = discrete_laplace(scale=3).table, discrete_laplace(scale=3.3).table
    draws = WidenedNoise(table, 5).sample(DRAWS, InsecureSeeded(seed))
    assert p_value(draws, triangle(table, 5)) > 1e-4
    assert p_value(draws, triangle(wider, 5)) < 1e-9


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_randomized_response(seed):
    draws = randomized_response(epsilon=1, k=6).sample(DRAWS, InsecureSeeded(seed))
    counts = np.bincount(draws, minlength=6)

    def value(epsilon):
        e = math.exp(epsilon)
        return stats.chisquare(counts, np.array([e, 1, 1, 1, 1, 1]) * DRAWS / (e + 5)).pvalue

    assert value(1.0) > 1e-4
    assert value(1.1) < 1e-9


def test_a_tail_that_is_entered_and_repeated_often():
    half = 2**126
    table = NoiseTable(2**127, (2**125,), Tail((half, half), 2**125, 2**127))
    for seed in (1, 2, 3):
        draws = table.sample(DRAWS, InsecureSeeded(seed))
        assert p_value(draws, of_table(table)) > 1e-4
        assert abs(draws).max() > 20


def test_tail_by_hand():
    table = NoiseTable(2**126, (2**126,), Tail((2**127,), 2**125, 2**127))
    # eight columns: beyond -1, then -1, 0, 1 in one each, beyond 1, and -1, 0, 1 in one more each;
    # the block is a coin: stay below ½, else go on
    eighth, half = 2**61, 2**63
    head = [column * eighth + 1 for column in (0, 1, 2, 3, 4, 5, 6, 7)]
    source = Scripted([head, [1, half + 1], [half + 1], [1]])
    assert table.sample(8, source).tolist() == [-2, -1, 0, 1, 4, -1, 0, 1]


def test_ties_with_an_edge_take_a_second_word():
    weights = (3 << 64) + 5
    table = NoiseTable(2**128 - 2 * weights, (weights,))  # columns of -1, 0, 1 and one without an own outcome
    left, right = [3], [2**63 + 3]
    assert table.sample(1, Scripted([left, [4]])).tolist() == [-1]
    assert table.sample(1, Scripted([left, [5]])).tolist() == [0]
    assert table.sample(1, Scripted([right, [4]])).tolist() == [1]
    assert table.sample(1, Scripted([right, [5]])).tolist() == [0]


def test_the_default_source_fits():
    table = discrete_laplace(scale=3).table
    assert p_value(table.sample(DRAWS), of_table(table)) > 1e-6
    assert not np.array_equal(table.sample(64, OperatingSystem()), table.sample(64))
