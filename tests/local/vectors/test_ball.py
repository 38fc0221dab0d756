"""Means of vectors in a ball: privacy for whatever floats do, no bias, the stated error, intervals that cover."""

import math
import os
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from tests.randomness.keyed import InsecureKeyed
from tightrope import Guarantee, local
from tightrope.errors import InputError
from tightrope.local.parts.losses import WORD
from tightrope.local.vectors import nearest_direction_moments, seeded_directions

STUDIES = int(os.environ.get("TIGHTROPE_STUDIES", "100"))
"""Simulated studies; 2000 take some minutes."""
SURE = 7
"""Standard deviations: a chance of 1e−11 of failing by luck."""


def people(count, dimension, seed=1):
    """Vectors inside and on the ball, not centered."""
    raw = np.random.default_rng(seed).normal(size=(count, dimension)) + 0.7
    unit = raw / np.linalg.norm(raw, axis=1, keepdims=True)
    return unit * np.minimum(1.0, np.linspace(0.2, 1.5, count))[:, None]


def sphere_gain(dimension):
    """E|u₁| of a uniform unit vector."""
    return math.exp(math.lgamma(dimension / 2) - math.lgamma((dimension + 1) / 2)) / math.sqrt(math.pi)


@pytest.mark.parametrize("dimension", [1, 2, 3, 10, 10_000])
def test_one_pair_is_the_mechanism_of_duchi_jordan_and_wainwright(dimension):
    m = local.ball_mean(1.0, dimension, directions=1)
    known = 1 / (math.tanh(0.5) * sphere_gain(dimension))
    assert m.length == pytest.approx(known, rel=1e-11)


@pytest.mark.parametrize("dimension", [2, 7, 100])
def test_order_statistics_are_those_of_the_sphere(dimension):
    found = nearest_direction_moments(dimension, 6)
    assert found.mean[5] == pytest.approx(sphere_gain(dimension), rel=1e-12)
    assert found.square[5] == pytest.approx(1 / dimension, rel=1e-12)
    raw = np.random.default_rng(2).normal(size=(100_000, 6, dimension if dimension < 10 else 2))
    if dimension == 100:  # |u₁| alone: a Gaussian beside 99 others
        rest = np.random.default_rng(3).chisquare(99, size=(100_000, 6))
        shadow = np.abs(raw[..., 0]) / np.sqrt(raw[..., 0] ** 2 + rest)
    else:
        shadow = np.abs(raw[..., 0]) / np.linalg.norm(raw, axis=2)
    ordered = -np.sort(-shadow, axis=1)
    for size in (1, 2, 4):
        for power, exact in ((1, found.mean), (2, found.square)):
            sample = np.mean(ordered[:, :size] ** power, axis=1)
            assert abs(sample.mean() - exact[size - 1]) < SURE * sample.std() / math.sqrt(len(sample))


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.0, 4.0, 30.0])
@pytest.mark.parametrize("pairs", [1, 5, 16])
def test_the_odds_of_two_whole_numbers_are_at_most_e_to_the_epsilon(epsilon, pairs):
    m = local.ball_mean(epsilon, 3, directions=pairs)
    near = Fraction(m.inside, WORD) / m.near
    other = (1 - Fraction(m.inside, WORD)) / m.other_count
    assert near * m.near + other * m.other_count == 1
    assert near > other
    assert float(near / other) <= math.exp(epsilon) * (1 + 1e-13)
    assert math.log(near / other) <= m.guarantee.epsilon <= epsilon
    assert m.report_change_probabilities == (near * m.near, other * m.near)
    assert m.loss.delta(epsilon) == 0


HOSTILE = [
    np.zeros(3),
    np.array([5e-324, 0, 0]),
    np.array([1e-308, -1e-308, 1e-320]),
    np.array([1.0, 1e-17, -0.0]),
    np.array([0.6, -0.8, 0.0]),
    np.full(3, 1 / math.sqrt(3)),
]


def test_every_row_of_directions_is_a_permutation_whatever_the_vector_is():
    """That each direction is reported with one of two chances is all that privacy asks of floats."""
    m = local.ball_mean(1.0, 3)
    seeds = np.array([0, 1, 2**64 - 1], dtype=np.uint64)
    for vector in HOSTILE:
        for axis in (vector, np.full(3, np.nan)):  # even if no direction were near
            order = m._order_directions(np.tile(axis, (3, 1)), seeds)
            assert np.array_equal(np.sort(order, axis=1), np.tile(np.arange(32), (3, 1)))


class Scripted(InsecureKeyed):
    """Seeds that everybody shares, so that reports can be counted; every other word is drawn."""

    def __init__(self, seed, shared):
        super().__init__(seed)
        self.shared, self.calls = shared, 0

    def random_words(self, n):
        self.calls += 1
        return np.full(n, self.shared, dtype=np.uint64) if self.calls == 2 else super().random_words(n)


def histogram(m, vector, seed):
    """How often each direction of one seed is reported by people with one vector."""
    reports = 1 << 15  # one block
    rows = m.perturb(np.tile(vector, (reports, 1)), Scripted(seed, 99))
    assert np.all(rows[:, 0] == 99)
    return np.bincount(rows[:, 1].astype(int), minlength=2 * m.pairs) / reports, reports


def hits(m, declared, vector):
    """Deviations of the share of near directions, by hand, from the declared chance."""
    rates, reports = histogram(m, vector, 5)
    shadows = seeded_directions(np.full(m.pairs, 99, dtype=np.uint64), np.arange(m.pairs), len(vector)) @ vector
    near = np.argsort(-np.stack([shadows, -shadows], axis=1).ravel())[: m.near]
    chance = declared.inside / WORD
    return (rates[near].sum() - chance) / math.sqrt(chance * (1 - chance) / reports)


def test_near_directions_are_reported_with_the_declared_chance():
    m, vector = local.ball_mean(2.0, 2, directions=4), np.array([0.6, 0.8])
    assert abs(hits(m, m, vector)) < SURE
    planted = replace(m, inside=int(m.inside * 1.05))
    assert hits(planted, m, vector) > SURE


def test_each_near_direction_and_each_other_one_are_alike():
    m, vector = local.ball_mean(2.0, 2, directions=4), np.array([0.6, 0.8])
    rates, reports = histogram(m, vector, 6)
    shadows = seeded_directions(np.full(4, 99, dtype=np.uint64), np.arange(4), 2) @ vector
    order = np.argsort(-np.stack([shadows, -shadows], axis=1).ravel())
    for part, chance in ((order[: m.near], m.inside / WORD), (order[m.near :], 1 - m.inside / WORD)):
        expected = np.full(len(part), chance / len(part)) * reports
        statistic = np.sum((rates[part] * reports - expected) ** 2 / expected)
        assert stats.chi2.sf(statistic, len(part)) > 1e-10


@pytest.mark.parametrize(("epsilon", "dimension"), [(1.0, 1), (0.5, 2), (1.0, 3), (4.0, 30)])
def test_unbiased_with_exactly_the_stated_variance(epsilon, dimension):
    m, count = local.ball_mean(epsilon, dimension, radius=3.0), 8_000
    for vector in (people(3, dimension)[0] * 3.0, people(3, dimension)[2] * 3.0, np.zeros(dimension)):
        decoded = m.decode_reports(m.perturb(np.tile(vector, (count, 1)), InsecureKeyed(2)))
        assert np.linalg.norm(decoded, axis=1) == pytest.approx(m.length, rel=1e-12)
        exact = m.variance_at(vector)
        assert np.all(np.abs(decoded.mean(axis=0) - vector) < SURE * np.sqrt(exact / count))
        squares = (decoded - vector) ** 2
        assert np.all(np.abs(squares.mean(axis=0) - exact) < SURE * squares.std(axis=0) / math.sqrt(count) + 1e-9)
        assert exact.sum() == pytest.approx(m.worst_squared_error - vector @ vector, rel=1e-12)
        assert np.all(exact >= m.least_report_variance(vector) * (1 - 1e-12))


@pytest.mark.parametrize(("dimension", "count"), [(1, 200), (4, 200)])
def test_intervals_cover(dimension, count):
    m, source, vectors = local.ball_mean(1.0, dimension), InsecureKeyed(3), people(count, dimension)
    truth = vectors.mean(axis=0)
    found = [m.estimate(m.perturb(vectors, source)) for _ in range(STUDIES)]
    together = [m.estimate(m.perturb(vectors, source), simultaneous=True) for _ in range(STUDIES)]
    fewest = stats.binom.ppf(1e-10, STUDIES, 0.94)
    held = np.sum([(s.lower <= truth) & (truth <= s.upper) for s in found], axis=0)
    assert np.all(held >= fewest)
    assert np.sum([np.all((s.lower <= truth) & (truth <= s.upper)) for s in together]) >= fewest
    errors = np.array([s.value - truth for s in found])
    sizes = np.mean([(s.upper - s.lower) / 2 / 1.959964 for s in found], axis=0)
    assert np.all(np.abs(errors.mean(axis=0)) < SURE * sizes / math.sqrt(STUDIES))
    assert np.sqrt(np.mean(errors**2, axis=0)) == pytest.approx(sizes, rel=SURE / math.sqrt(2 * STUDIES))


@pytest.mark.parametrize("dimension", [2, 10, 100])
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0, 4.0])
def test_no_worse_than_one_pair_and_far_better_than_coordinates(epsilon, dimension):
    m, one = local.ball_mean(epsilon, dimension), local.ball_mean(epsilon, dimension, directions=1)
    assert m.worst_squared_error < one.worst_squared_error
    assert local.ball_mean(epsilon, dimension, directions=64).worst_squared_error < m.worst_squared_error
    cube = dimension**2 * local.vector_mean(epsilon, dimension, count=1).part.variance_at(1 / math.sqrt(dimension))
    assert m.worst_squared_error - 1 < cube
    if (epsilon, dimension) == (1.0, 100):
        assert cube / (m.worst_squared_error - 1) > 59


@pytest.mark.parametrize("dimension", [1, 5, 100])
def test_no_limit_is_broken(dimension):
    m = local.ball_mean(1.0, dimension)
    limit = local.limits.ball_mean(Guarantee(1.0), dimension=dimension)
    for count in (1000, 1_000_000):
        assert limit.risk(count) <= m.worst_squared_error / count


def test_many_dimensions():
    m = local.ball_mean(1.0, 10_000)
    found = m.estimate(m.perturb(np.eye(1, 10_000).repeat(20, axis=0)))
    assert found.value.shape == (10_000,)
    assert np.all(np.isfinite(found.upper - found.lower))


def test_reports_that_agree_have_an_interval():
    m = local.ball_mean(3.0, 1)
    rows = np.array([[7, 0]] * 40)
    found = m.estimate(rows)
    assert found.upper[0] - found.lower[0] > 0.1


def test_one_person_and_nobody():
    m = local.ball_mean(1.0, 2)
    assert m.perturb(np.zeros((0, 2))).shape == (0, 2)
    assert m.decode_reports(m.perturb([[0.6, 0.8]])).shape == (1, 2)
    for values in (np.zeros((0, 2)), [[0.6, 0.8]]):
        with pytest.raises(InputError, match="number of reports"):
            m.estimate(m.perturb(values))


@pytest.mark.parametrize(
    "values",
    [
        [[math.nan, 0.0]],
        [[math.inf, 0.0]],
        [[0.8, 0.7]],
        [[1e308, 1e308]],
        [0.5, 0.5],
        [[0.5]],
        [["a", "b"]],
        [[True, False]],
        [[0.5j, 0]],
        [],
    ],
)
def test_invalid_vectors_are_refused(values):
    with pytest.raises(InputError, match=r"values|vectors longer"):
        local.ball_mean(1.0, 2).perturb(values)


def test_errors_show_no_vector():
    with pytest.raises(InputError) as caught:
        local.ball_mean(1.0, 2).perturb([[0.1, 0.2], [0.777, 0.888]])
    assert "vectors longer than 1=1" in str(caught.value)
    assert "777" not in str(caught.value)


def test_invalid_reports_are_refused():
    m = local.ball_mean(1.0, 2)
    for rows in ([1, 2], [[0.5, 1]], [[1, 2, 3]]):
        with pytest.raises(InputError, match="shape of reports"):
            m.estimate(rows)
    with pytest.raises(InputError, match="directions of reports"):
        m.estimate([[1, 32], [1, 0]])
    with pytest.raises(InputError, match="seeds of reports"):
        m.estimate([[-1, 3], [1, 0]])


def test_arguments():
    for epsilon in (0, -1, math.nan, math.inf, "1", True):
        with pytest.raises(InputError, match="epsilon"):
            local.ball_mean(epsilon, 2)
    for dimension in (0, 2.0, None, 1 << 21):
        with pytest.raises(InputError, match="dimension"):
            local.ball_mean(1.0, dimension)
    for radius in (0, -1, math.nan, math.inf, 1e-101, 1e101):
        with pytest.raises(InputError, match="radius"):
            local.ball_mean(1.0, 2, radius=radius)
    for number in (0, 5000, 1.5):
        with pytest.raises(InputError, match="directions"):
            local.ball_mean(1.0, 2, directions=number)


@pytest.mark.parametrize("radius", [1e-100, 1e100])
def test_any_radius(radius):
    m = local.ball_mean(1.0, 2, radius=radius)
    found = m.estimate(m.perturb(np.tile([radius * 0.6, radius * 0.8], (500, 1)), InsecureKeyed(4)))
    assert np.all(np.abs(found.value / radius - [0.6, 0.8]) < SURE * m.length / radius / math.sqrt(500))
