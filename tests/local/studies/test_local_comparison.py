"""Which mechanism is best, by exact variance."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tightrope import local
from tightrope.errors import InputError


@given(st.floats(0.1, 5), st.integers(2, 300))
def test_least_variance_first(epsilon, k):
    options = local.compare("distribution", epsilon=epsilon, k=k)
    variances = [option.variance for option in options]
    assert variances == sorted(variances)
    assert all(option.variance == option.mechanism.mean_variance for option in options)
    assert local.best("distribution", epsilon=epsilon, k=k) == options[0]
    assert {option.name for option in options} >= {"k_randomized_response", "hadamard"}


def test_known_winners():
    assert local.best("distribution", epsilon=3.0, k=10).name == "k_randomized_response"
    large = local.best("distribution", epsilon=1.0, k=1024)
    assert large.name == "subset_selection"
    assert large.bits == 1024
    small = local.best("distribution", epsilon=1.0, k=1024, most_bits=12)
    assert (small.name, small.bits) == ("hashing", 12)
    assert local.best("mean", epsilon=3.0).name == "hybrid"
    assert local.best("mean", epsilon=0.3, most_bits=1).name == "duchi"


def test_errors_and_people():
    option = local.best("distribution", epsilon=1.0, k=100)
    people = option.people_for_error(0.01)
    assert option.expected_error(people) <= 0.01 < option.expected_error(people - 1)
    assert option.expected_error(400) == pytest.approx(math.sqrt(option.variance / 400))
    assert option.people_for_error(1e9) == 1
    with pytest.raises(InputError, match="error"):
        option.people_for_error(0)
    with pytest.raises(InputError, match="people"):
        option.expected_error(0)


def test_arguments():
    with pytest.raises(InputError, match="question"):
        local.compare("median", epsilon=1.0)
    with pytest.raises(InputError, match="k"):
        local.compare("distribution", epsilon=1.0)
    with pytest.raises(InputError, match="epsilon"):
        local.compare("mean", epsilon=0)
    with pytest.raises(InputError, match="most_bits"):
        local.best("distribution", epsilon=1.0, k=1024, most_bits=3)
