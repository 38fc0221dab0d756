"""GI Theorem 2 against its printed double sum, in exact rationals (theory §2)."""

from __future__ import annotations

import math
from fractions import Fraction
from math import comb

import pytest

import tightrope as tr
from tests.oracle.exact import composed, exponential, profile, triple

GAMMAS = [Fraction(3, 2), Fraction(11, 10), Fraction(20), Fraction(1001, 1000)]
DELTAS = [Fraction(0), Fraction(1, 2**20), Fraction(1, 8)]
SHARES = [Fraction(0), Fraction(1, 8), Fraction(1, 2), Fraction(1)]


def double_sum(k: int, j: int, gamma: Fraction, alpha: Fraction) -> Fraction:
    """δ_j as printed, with e^ε = γ."""
    total = Fraction(0)
    for a in range(k - j):
        for m in range(math.ceil(Fraction(k - j - a, 2))):
            weight = comb(k, a) * comb(k - a, m) * ((1 - alpha) / (1 + gamma)) ** (k - a) * alpha**a
            total += weight * (gamma ** (k - m - a) - gamma ** (m + j))
    return total


def guaranteed(k: int, j: int, gamma: Fraction, delta: Fraction, eta: Fraction) -> Fraction:
    """1 − (1−δ)^k (1 − δ_j)."""
    alpha = 1 - (eta - delta) * (1 + gamma) / ((1 - delta) * (gamma - 1))
    return 1 - (1 - delta) ** k * (1 - double_sum(k, j, gamma, alpha))


def largest_eta(gamma: Fraction, delta: Fraction) -> Fraction:
    """δ + (1−δ) tanh(ε/2)."""
    return delta + (1 - delta) * (gamma - 1) / (gamma + 1)


@pytest.mark.parametrize("k", [1, 2, 3, 5, 8, 12])
@pytest.mark.parametrize("gamma", GAMMAS)
@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("share", SHARES)
def test_the_double_sum(k: int, gamma: Fraction, delta: Fraction, share: Fraction) -> None:
    epsilon = math.log(gamma)
    eta = delta + Fraction(float(share * (largest_eta(gamma, delta) - delta)) * (1 - 2e-16 * (share == 1)))
    loss = k * tr.approx_dp(epsilon, delta=float(delta), total_variation=float(eta)).loss
    for j in range(k + 1):
        truth = guaranteed(k, j, gamma, delta, Fraction(float(eta)))
        lower, upper = loss.delta_bounds(j * epsilon)
        # log γ, η and j·ε are rounded to a float each: a few 1e−16 in ε, where the profile falls by at most one a nat.
        noise = 1e-14 * float(truth) + 4e-16 * k * (1 + epsilon)
        assert lower - noise <= truth <= upper + noise
        assert float(truth) - 1e-11 * float(truth) - noise <= lower
        assert upper <= float(truth) + 1e-11 * float(truth) + noise


@pytest.mark.parametrize("k", [1, 2, 4])
@pytest.mark.parametrize("epsilon", [0.0625, 1.0, 3.5])
@pytest.mark.parametrize("delta", [0.0, 2.0**-20, 0.125])
@pytest.mark.parametrize("eta", [0.015625, 0.25, 0.45])
@pytest.mark.parametrize("at", [0.0, 0.3, 1.0, 2.0, -0.7])
def test_between_the_lattice_points_the_bracket_holds_the_exact_profile(
    k: int, epsilon: float, delta: float, eta: float, at: float
) -> None:
    gamma, low = exponential(epsilon), Fraction(min(delta, eta))
    clipped = min(Fraction(eta), largest_eta(gamma, low))
    truth = profile(composed([triple(gamma, low, clipped)] * k), exponential(at))
    lower, upper = (k * tr.approx_dp(epsilon, delta=delta, total_variation=eta).loss).delta_bounds(at)
    assert lower <= truth <= upper
    assert upper - lower <= 1e-12 * upper + 1e-15


def test_the_double_sum_is_the_composition_of_the_five_atoms() -> None:
    """The oracle itself: two independent exact ways agree."""
    gamma, delta, eta = Fraction(5, 2), Fraction(1, 50), Fraction(1, 5)
    for k in (1, 2, 3, 4):
        for j in range(k + 1):
            whole = composed([triple(gamma, delta, eta)] * k)
            assert profile(whole, gamma**j) == guaranteed(k, j, gamma, delta, eta)


def test_printed_values_of_theory_2() -> None:
    half = math.tanh(0.5)
    loss = 5 * tr.approx_dp(1, total_variation=0.7 * half).loss
    printed = [0.6310896749, 0.4326929785, 0.2393449491, 0.09537256592, 0.02218456943, 0.0]
    for j, value in enumerate(printed):
        assert loss.delta(j) == pytest.approx(value, rel=3e-10, abs=1e-15)
    whole = 5 * tr.approx_dp(1).loss
    assert whole.delta(1) == pytest.approx(0.5371017198, rel=3e-10)
    assert whole.delta(3) == pytest.approx(0.1805546286, rel=3e-10)
