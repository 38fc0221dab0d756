"""Bounds on an attacker are upper bounds, whatever part of them the certificate states."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tightrope.reporting.wording import promise
from tightrope.reporting.wording.partial_release import PartialCertificate, PartialProfile, PartialRates

RATES = st.floats(0, 1)
# randomized response on one bit: keeps it with probability e^ε/(1 + e^ε); everything is known in closed form
EPSILON = 1.0
KEPT = math.e / (1 + math.e)


def response_delta(epsilon: float) -> float:
    return max(0.0, KEPT - math.exp(epsilon) * (1 - KEPT))


def response_power(rate: float) -> float:
    return rate * math.e if rate <= 1 - KEPT else 1 - (1 - rate) / math.e


PROFILE = [(i / 10, response_delta(i / 10)) for i in range(11)]


@given(RATES)
def test_the_bound_is_above_the_truth(rate: float) -> None:
    assert promise.true_positive_rate(PROFILE, rate) >= response_power(rate) - 1e-12


@given(RATES)
def test_the_bound_is_tight_where_the_profile_is_complete(rate: float) -> None:
    assert promise.true_positive_rate(PROFILE, rate) == pytest.approx(response_power(rate), abs=1e-12)


@given(RATES, st.integers(1, 11))
def test_fewer_points_never_promise_more(rate: float, kept: int) -> None:
    assert promise.true_positive_rate(PROFILE[:kept], rate) >= promise.true_positive_rate(PROFILE, rate)


def test_success_from_whatever_is_stated() -> None:
    success = (1 + 2 * KEPT - 1) / 2
    assert promise.certificate_attack_success(PartialCertificate(attack_success=0.6)) == 0.6
    assert promise.certificate_attack_success(PartialCertificate(total_variation=2 * KEPT - 1)) == pytest.approx(
        success
    )
    assert promise.certificate_attack_success(PartialCertificate(epsilon=EPSILON, delta=0.0)) == pytest.approx(success)
    assert promise.certificate_attack_success(PartialCertificate()) is None


def test_the_drawn_profile_is_a_guarantee_between_its_points() -> None:
    deltas = (*map(response_delta, (0, 0.4, 0.9)), 1e-8)
    stated = PartialProfile(epsilon=(0, 0.4, 0.9, 1.0), delta=deltas)
    drawn = promise.profile_points(PartialCertificate(profile=stated))
    assert len(drawn) > 4
    assert all(delta >= response_delta(epsilon) - 1e-12 for epsilon, delta in drawn)


def test_stated_catches_win_where_they_are_better() -> None:
    tradeoff = PartialRates(false_positive_rate=(0.01, 0.1), true_positive_rate=(0.02, 0.9))
    catches = promise.attack_rates(PartialCertificate(total_variation=0.3, tradeoff=tradeoff))
    found = {catch.false_positive_rate: catch.true_positive_rate for catch in catches}
    assert found == {0.001: pytest.approx(0.301), 0.01: 0.02, 0.05: pytest.approx(0.35), 0.1: pytest.approx(0.4)}


def test_nothing_stated_nothing_claimed() -> None:
    nothing = PartialCertificate()
    for points in (promise.tradeoff_points, promise.attack_rates, promise.profile_points):
        assert points(nothing) == []
