"""Brackets hold exact values where masses are subnormal, rates near one, and δ is the infinite mass itself."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import tightrope as tr
from tests.oracle.exact import Pair, composed, exponential, pair, profile, sampled, swapped

TINY = 5e-324
P, Q = [0.25, 0.5, 0.25], [0.5, 0.125, 0.375]


def finite(p: list[float], q: list[float]) -> Pair:
    return pair(map(Fraction, p), map(Fraction, q))


def exact(both: tuple[Pair, Pair], epsilon: float) -> Fraction:
    return max(profile(law, exponential(epsilon)) for law in both)


def erased(law: Pair, probability: float) -> Pair:
    kept = 1 - Fraction(probability)
    return [(kept * p, kept * q) for p, q in law] + [(Fraction(probability), Fraction(probability))]


def poisson(law: Pair, rate: float) -> tuple[Pair, Pair]:
    return sampled(law, Fraction(rate), remove=True), sampled(swapped(law), Fraction(rate), remove=False)


def assert_holds(loss: tr.PrivacyLoss, both: tuple[Pair, Pair], epsilon: float, width: float) -> None:
    truth, (lower, upper) = exact(both, epsilon), loss.delta_bounds(epsilon)
    assert Fraction(lower) <= truth <= Fraction(upper)
    assert upper - lower <= width * upper


@pytest.mark.parametrize("epsilon", [-1e-9, 0.0, 5.0, 700.0])
def test_an_outcome_that_nearly_never_comes(epsilon: float) -> None:
    """Once 5e-20 instead of 0.3: e^{744} times the least double had been taken for e^{700}."""
    p, q = [TINY, 1.0], [0.25, 0.75]
    assert_holds(tr.from_pair(p, q).loss, (finite(p, q), finite(q, p)), epsilon, 1e-11)


@pytest.mark.parametrize("epsilon", [0.5, 5.0, 300.0])
def test_such_an_outcome_in_a_sample(epsilon: float) -> None:
    p, q = [TINY, 1.0], [0.25, 0.75]
    assert_holds(tr.from_pair(p, q).loss.poisson_sample(0.5), poisson(finite(p, q), 0.5), epsilon, 1e-11)


@pytest.mark.parametrize("epsilon", [-1.0, -1e-3, -1e-6])
def test_products_that_underflow_on_one_side(epsilon: float) -> None:
    """P² of the first outcome is no double, Q² = 2⁻³⁴ counts below ε = 0: it had been lost."""
    p, q = [2.0**-600, 1.0], [2.0**-17, 1 - 2.0**-17]
    law = composed([finite(p, q)] * 2)
    loss = 2 * tr.from_pair(p, q).loss
    assert_holds(loss, (law, swapped(law)), epsilon, 1e-6)


@pytest.mark.parametrize("epsilon", [-1e-12, -1e-3])
def test_erasing_what_nearly_never_comes(epsilon: float) -> None:
    p, q = [TINY, 1.0], [2.0**-31, 1 - 2.0**-31]
    law = erased(finite(p, q), 0.4)
    assert_holds(tr.from_pair(p, q).loss.erase(0.4), (law, swapped(law)), epsilon, 1e-2)


@pytest.mark.parametrize("rate", [1 - 1e-9, 1 - 2.0**-50])
@pytest.mark.parametrize("depth", [1e-3, 1e-9, 0.5])
def test_losses_sampled_at_rates_near_one(rate: float, depth: float) -> None:
    """log(1 − q + q e^l) is no log1p there: losses were off by 1e−7, up to a few nats."""
    p, q = [2.0**-60, 1.0], [0.5, 0.5]
    both = poisson(finite(p, q), rate)
    losses = [math.log(a) - math.log(b) for law in both for a, b in law if a and b]
    for loss in losses:
        assert_holds(tr.from_pair(p, q).loss.poisson_sample(rate), both, loss * (1 - depth), 1e-3)


def test_sampled_gaussian_at_a_rate_near_one() -> None:
    """Of ((1−q)A + qB, A) against the plain pair: q = 1 − 2⁻⁵⁰ makes it no worse, and hardly better."""
    plain = 2 * tr.gaussian(scale=0.2).loss
    steps = 2 * tr.gaussian(scale=0.2).loss.poisson_sample(1 - 2.0**-50)
    assert steps.delta_bounds(30.0).lower <= plain.delta(30.0) <= steps.delta(30.0) * (1 + 1e-9)


def test_a_reversed_law_stays_inexact_when_erased() -> None:
    law = tr.from_pair([2.0**-200, 1.0], [0.5, 0.5]).loss.remove.laws[0].reverse_distribution()
    kept = tr.PrivacyLoss.from_distribution(law).erase(0.25).remove.laws[0]
    assert kept.relative_mass_error >= law.relative_mass_error > 0


class TestInfiniteMass:
    """What an output may give away with certainty is itself rounded where it was computed."""

    def test_of_two_steps(self) -> None:
        p, q = [0.1, 0.9], [0.0, 1.0]
        law = composed([finite(p, q)] * 2)
        loss = 2 * tr.from_pair(p, q).loss
        truth = sum(a for a, b in law if b == 0)
        lower, upper = loss.true_positive_rate_bounds(0.0)
        assert lower <= truth <= upper <= lower * (1 + 1e-14)
        assert_holds(loss, (law, swapped(law)), 50.0, 1e-14)

    def test_of_many_steps_is_not_one(self) -> None:
        loss = 50 * tr.from_pair([0.75, 0.25], [0.0, 1.0]).loss
        lower, upper = loss.delta_bounds(3.0)
        assert lower <= 1 - Fraction(1, 4) ** 50 <= upper == 1
        assert (50 * tr.from_pair([1.0, 0.0], [0.0, 1.0]).loss).delta_bounds(3.0) == (1.0, 1.0)

    def test_the_other_direction_needs_more(self) -> None:
        """δ(log 2) = ½ is the infinite mass of one order; that the other has a loss of log 256 does not matter."""
        p, q = [0.5, 0.5 - 2.0**-10, 2.0**-10], [0.0, 0.75, 0.25]
        lower, upper = tr.from_pair(p, q).loss.epsilon_bounds(0.5)
        assert lower <= 1e-3 and upper <= 1e-3

    def test_least_epsilon_at_it(self) -> None:
        p, q = [0.5, 0.375, 0.125], [0.0, 0.125, 0.875]
        loss = tr.from_pair(p, q).loss
        lower, upper = loss.epsilon_bounds(0.5)
        assert lower <= math.log(3) <= upper <= math.log(3) * (1 + 1e-14)
        assert loss.epsilon(math.nextafter(0.5, 0.0)) == math.inf


@pytest.mark.parametrize("rate", [1e-12, 3e-9, 0.1, 0.3])
def test_one_minus_a_rate_is_rounded_outwards(rate: float) -> None:
    p, q = finite(P, Q), finite(Q, P)
    loss = tr.from_pair(P, Q).loss
    found = max(max_caught(law, Fraction(rate)) for law in (p, q))
    lower, upper = loss.tradeoff_bounds(rate)
    assert Fraction(float(lower)) <= 1 - found <= Fraction(float(upper))
    assert Fraction(loss.tradeoff(rate)) <= 1 - found


def max_caught(law: Pair, rate: Fraction) -> Fraction:
    """Neyman and Pearson: the outcomes with the least Q/P first."""
    caught = Fraction(0)
    for p, q in sorted(law, key=lambda both: both[1] / both[0]):
        part = min(Fraction(1), rate / q)
        caught, rate = caught + part * p, rate - part * q
    return caught


@pytest.mark.parametrize("prior", [1e-9, 0.3, 0.5, 1 - 1e-9])
def test_attacks_are_rounded_outwards(prior: float) -> None:
    law = composed([finite(P, Q)] * 3)
    known, loss = Fraction(prior), 3 * tr.from_pair(P, Q).loss
    risk = min(sum(min(known * a, (1 - known) * b) for a, b in both) for both in (law, swapped(law)))
    assert Fraction(loss.attack_success(prior)) >= 1 - risk
    assert Fraction(loss.bayes_risk(prior)) <= risk
    assert np.all(np.diff(loss.bayes_risk_bounds([prior]))[0] <= 1e-12)


@pytest.mark.parametrize("mu", [40.0, 200.0, 3000.0])
@pytest.mark.parametrize("away", [-1.0, -0.01, 0.0, 1e-6, 0.7])
def test_gaussian_around_the_mean_loss(mu: float, away: float) -> None:
    """ε/μ − μ/2 is a small difference there, and is off by roundings of μ."""
    from mpmath import erfc, exp, mp, mpf, sqrt

    with mp.workdps(60):
        scale = 1 / mu
        m = 1 / mpf(scale)
        epsilon = mu * mu / 2 + away * mu
        low, high = mpf(epsilon) / m - m / 2, mpf(epsilon) / m + m / 2
        truth = (erfc(low / sqrt(2)) - exp(mpf(epsilon)) * erfc(high / sqrt(2))) / 2
        lower, upper = tr.gaussian(scale=scale).loss.delta_bounds(epsilon)
        assert lower <= truth <= upper <= lower * (1 + 1e-10)


@pytest.mark.parametrize("rate", [0.3, 0.9, 1 - 1e-9])
@pytest.mark.parametrize("steps", range(-6, 1))
def test_sampled_laplace_at_the_largest_loss(rate: float, steps: int) -> None:
    """log(1 − q + q e^ε) is rounded: δ is not yet its limit just below."""
    from mpmath import exp, log1p, mp, mpf

    with mp.workdps(60):
        base, q = mpf(0.25), mpf(rate)
        epsilon = float(log1p(q * (exp(base) - 1)))
        epsilon += steps * math.ulp(epsilon)
        inner = mp.log((exp(mpf(epsilon)) - 1 + q) / q)
        truth = q * (1 - exp((inner - base) / 2)) if inner < base else mpf(0)
        lower, upper = tr.laplace(scale=4).loss.poisson_sample(rate).delta_bounds(epsilon)
        assert lower <= truth <= upper <= 1e-14


def test_nearly_collinear_points() -> None:
    """Masses of kinks were differences of rounded slopes."""
    given = [(0.001 + 0.1 * j, 0.01 - 1e-6 * (math.exp(0.001 + 0.1 * j) - math.exp(0.001))) for j in range(3)]
    loss = tr.from_points(given).loss
    for epsilon, delta in given:
        assert loss.delta_bounds(epsilon).lower <= delta <= loss.delta(epsilon)
    gammas = [exponential(epsilon) for epsilon, _ in given]
    share = (exponential(0.05) - gammas[0]) / (gammas[1] - gammas[0])
    truth = (1 - share) * Fraction(given[0][1]) + share * Fraction(given[1][1])
    lower, upper = loss.delta_bounds(0.05)
    assert Fraction(lower) <= truth <= Fraction(upper)


@pytest.mark.parametrize("epsilon", [-690.0, -300.0, 0.0, 10.0])
def test_a_far_loss_beside_a_fine_lattice(epsilon: float) -> None:
    """Losses of 1e−16 nats and 690: places on that lattice left the whole numbers of the machine."""
    p, q = [2.0**-1000, 0.5, 0.5], [2.0**-54, 0.5, 0.5 - 2.0**-54]
    law = composed([erased(finite(p, q), 0.5)] * 2)
    assert_holds(2 * tr.from_pair(p, q).loss.erase(0.5), (law, swapped(law)), epsilon, 1.0)


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 5.0])
@pytest.mark.parametrize("rate", [1e-12, 1e-9, 1e-4])
def test_rates_at_a_kink_are_known_to_more_than_a_digit(epsilon: float, rate: float) -> None:
    """Of randomized response e^ε t is caught; the lower end was t at the smallest rates."""
    truth = exponential(epsilon) * Fraction(rate)
    lower, upper = tr.approx_dp(epsilon).loss.true_positive_rate_bounds(rate)
    assert Fraction(lower) <= truth * (1 + Fraction(1, 10**14)) and truth <= Fraction(upper) * (1 + Fraction(1, 10**14))
    assert upper - lower <= 1e-5 * upper


@pytest.mark.parametrize("epsilon", [0.5, 900.0])
def test_a_triple_too_steep_for_doubles(epsilon: float) -> None:
    lower, upper = (2 * tr.approx_dp(800.0, total_variation=0.5).loss).delta_bounds(epsilon)
    truth = 0.75 if epsilon < 800 else 0.25
    assert lower <= truth <= upper <= truth * (1 + 1e-11)
