"""Means of vectors."""

import math

import numpy as np
import pytest

from tests.randomness.keyed import InsecureKeyed
from tightrope import local
from tightrope.errors import InputError

PEOPLE = 20_000


def people(dimension):
    """Vectors whose coordinates have different means."""
    base = np.linspace(-0.8, 0.8, dimension)
    return base + 0.2 * np.sin(np.arange(PEOPLE)[:, None] + np.arange(dimension))


@pytest.mark.parametrize(
    ("epsilon", "dimension", "count"), [(1.0, 5, None), (6.0, 5, None), (2.0, 3, 3), (1.0, 1, None)]
)
def test_unbiased_and_covered(epsilon, dimension, count):
    m, vectors, source = local.vector_mean(epsilon, dimension, count=count), people(dimension), InsecureKeyed(1)
    found = [m.estimate(m.perturb(vectors, source)) for _ in range(60)]
    values = np.array([s.value for s in found])
    error = np.mean([(s.upper - s.lower) / 2 / 1.96 for s in found], axis=0)
    assert np.all(np.abs(values.mean(axis=0) - vectors.mean(axis=0)) < 4.5 * error / math.sqrt(60))
    covered = np.mean([(s.lower <= vectors.mean(axis=0)) & (vectors.mean(axis=0) <= s.upper) for s in found])
    assert covered > 0.88
    assert values.std(axis=0) == pytest.approx(error, rel=0.45)


def test_the_loss_is_that_of_all_coordinates():
    m = local.vector_mean(6.0, 10)
    assert m.count == 2
    assert m.loss.delta(6.0) == 0
    assert m.loss.epsilon(1e-9) <= 6.0
    assert m.loss.total_variation() == pytest.approx((2 * m.part.loss).total_variation())
    assert local.vector_mean(1.0, 10).count == 1
    assert local.vector_mean(100.0, 3).count == 3


def test_every_coordinate_is_reported_equally_often():
    m = local.vector_mean(6.0, 5)
    rows = m.perturb(people(5), InsecureKeyed(2))
    assert rows.shape == (PEOPLE, 3)
    counts = np.bincount(rows[:, 0], minlength=5)
    assert np.all(np.abs(counts - PEOPLE / 5) < 5 * math.sqrt(PEOPLE / 5))


def test_simultaneous_is_wider():
    m = local.vector_mean(1.0, 4)
    rows = m.perturb(people(4))
    alone, together = m.estimate(rows), m.estimate(rows, simultaneous=True)
    assert np.all(together.upper > alone.upper)
    assert np.array_equal(together.value, alone.value)


@pytest.mark.parametrize(
    "values", [[1.0, 0.0], np.zeros((3, 2)), np.full((3, 3), np.nan), np.full((3, 3), 1.1), [["a", "b", "c"]]]
)
def test_values(values):
    with pytest.raises(InputError, match="values"):
        local.vector_mean(1.0, 3).perturb(values)


def test_options():
    with pytest.raises(InputError, match="count"):
        local.vector_mean(1.0, 3, count=4)
    with pytest.raises(InputError, match="count"):
        local.vector_mean(1.0, 3, count=0)
    with pytest.raises(InputError, match="dimension"):
        local.vector_mean(1.0, 0)
    with pytest.raises(InputError, match="epsilon"):
        local.vector_mean(math.inf, 3)


def test_reports():
    m = local.vector_mean(1.0, 3)
    with pytest.raises(InputError, match="shape of reports"):
        m.estimate([1, 2, 3])
    with pytest.raises(InputError, match="first coordinates"):
        m.estimate([[3, 0], [0, 0]])
    with pytest.raises(InputError, match="reports of a coordinate"):
        m.estimate([[0, 0], [1, 0]])


def test_intervals_cover_where_reports_happen_to_agree():
    m, source = local.vector_mean(8.0, 2, count=1), InsecureKeyed(12)
    found = [m.estimate(m.perturb(np.ones((200, 2)), source)) for _ in range(200)]
    assert np.mean([(s.lower <= 1) & (s.upper >= 1) for s in found]) >= 0.93


@pytest.mark.parametrize(("epsilon", "count"), [(1.0, None), (6.0, 2), (9.0, 3)])
def test_the_guarantee_is_that_of_all_coordinates(epsilon, count):
    m = local.vector_mean(epsilon, 4, count=count)
    assert epsilon * 0.999 <= m.guarantee.epsilon <= epsilon
    assert m.loss.total_variation() <= m.guarantee.total_variation * (1 + 1e-12)
    assert m.loss.delta(m.guarantee.epsilon) <= 1e-12
    assert m.guarantee.total_variation < math.tanh(epsilon / 2)


@pytest.mark.parametrize("wrong", [1.5, -1.0001, math.nan, math.inf])
def test_a_number_outside_is_refused_whichever_coordinate_is_asked_for(wrong):
    """Whether somebody sees an error must not depend on the coordinate that chance chose."""
    m = local.vector_mean(1.0, 50)
    vector = np.zeros((1, 50))
    vector[0, 7] = wrong
    for _ in range(20):
        with pytest.raises(InputError, match="values outside"):
            m.perturb(vector)
