"""Projection of estimates on distributions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tightrope import local
from tightrope.errors import InputError
from tightrope.local.parts.estimates import Shares

numbers = st.lists(st.floats(-2, 2), min_size=1, max_size=30)


def shares(values):
    array = np.array(values)
    return Shares(array, array - 1, array + 1, 10)


@given(numbers)
def test_it_is_a_distribution_and_nothing_is_nearer(values):
    found = local.on_simplex(shares(values)).value
    assert np.all(found >= 0)
    assert abs(found.sum() - 1) < 1e-9
    gap = np.array(values) - found
    # optimality: the gap is constant on the support and no larger elsewhere
    level = gap[found > 1e-9]
    assert np.ptp(level) < 1e-9
    assert np.all(gap <= level.max() + 1e-9)


@given(numbers, st.lists(st.floats(0, 1), min_size=30, max_size=30))
def test_it_never_moves_away_from_a_distribution(values, weights):
    truth = np.array(weights[: len(values)]) + 1e-9
    truth /= truth.sum()
    found = local.on_simplex(shares(values)).value
    assert np.sum((found - truth) ** 2) <= np.sum((np.array(values) - truth) ** 2) + 1e-9


def test_distributions_stay():
    assert local.on_simplex(shares([0.2, 0.8, 0.0])).value.round(12).tolist() == [0.2, 0.8, 0.0]


def test_it_says_that_it_is_biased_and_has_no_intervals():
    found = local.on_simplex(shares([0.5, 0.6]))
    assert type(found).__name__ == "BiasedEstimates"
    assert not hasattr(found, "lower")


@pytest.mark.parametrize("wrong", [shares([]), shares([0.5, np.nan]), shares([np.inf]), [0.5, 0.5], shares([[0.5]])])
def test_what_is_no_estimate_is_refused(wrong):
    with pytest.raises(InputError, match="shares"):
        local.on_simplex(wrong)
