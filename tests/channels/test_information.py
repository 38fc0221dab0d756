"""Information of a report: bounds, capacity with its gap."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from tests.channels.random_channels import channel, law
from tightrope.channels import Channel


@given(st.integers(0, 2**32 - 1))
def test_no_prior_exceeds_the_capacity_or_its_entropy_times_kappa(seed: int) -> None:
    rng = np.random.default_rng(seed)
    made = channel(rng)
    low, high = made.channel_capacity()
    assert low <= high <= low * (1 + 1e-4) + 1e-8
    for _ in range(5):
        prior = law(rng, made.input_count)
        shared = made.mutual_information(prior)
        assert 0 <= shared <= high
        assert shared <= made.information_limit(prior) * (1 + 1e-11) + 1e-14


@pytest.mark.parametrize("crossover", [0.01, 0.11, 0.4, 0.499])
def test_the_binary_symmetric_channel(crossover: float) -> None:
    exact = math.log(2) + crossover * math.log(crossover) + (1 - crossover) * math.log(1 - crossover)
    low, high = Channel([[1 - crossover, crossover], [crossover, 1 - crossover]]).channel_capacity()
    assert low <= exact * (1 + 1e-14) + 1e-15
    assert high >= exact * (1 - 1e-14) - 1e-15
    assert high - low < 1e-12


def test_the_z_channel() -> None:
    """log(1 + (1−p) p^{p/(1−p)})."""
    for p in (0.1, 0.5, 0.9):
        low, high = Channel([[1.0, 0.0], [p, 1 - p]]).channel_capacity()
        exact = math.log1p((1 - p) * p ** (p / (1 - p)))
        assert low <= exact * (1 + 1e-12)
        assert high >= exact * (1 - 1e-12)
        assert high == pytest.approx(exact, rel=1e-9)


def test_capacity_against_a_search_over_priors() -> None:
    rng = np.random.default_rng(9)
    for _ in range(20):
        made = Channel(rng.dirichlet(np.ones(3), 2))
        found = minimize_scalar(
            lambda x, made=made: -made.mutual_information([x, 1 - x]), bounds=(0, 1), method="bounded"
        )
        assert made.channel_capacity().upper == pytest.approx(-found.fun, rel=1e-7)
        assert made.channel_capacity().upper >= -found.fun


def test_an_input_that_is_never_used() -> None:
    """A row in the middle of two others carries nothing: its weight goes to zero."""
    made = Channel([[0.9, 0.1], [0.1, 0.9], [0.5, 0.5]])
    assert made.channel_capacity() == pytest.approx(Channel([[0.9, 0.1], [0.1, 0.9]]).channel_capacity(), rel=1e-6)
