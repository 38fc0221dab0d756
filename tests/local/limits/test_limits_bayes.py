"""Bayes limits: Remark 1, Example 4 and its figure, and below what randomized response reaches."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, special, stats

from tightrope.channels import SymmetricChannel
from tightrope.channels.suprema import printed_contraction
from tightrope.documents import Guarantee
from tightrope.errors import InputError
from tightrope.local import limits
from tightrope.local.limits.bayes import largest_guess_probability
from tightrope.local.limits.methods import by_contraction, by_information

FREE = Guarantee(math.inf, 0.0, 1.0)
UNIFORM = limits.BetaBernoulli()


def coin(theta: np.ndarray) -> np.ndarray:
    return np.stack([1 - theta, theta], axis=1)


def coin_bayes_risk(epsilon: float, people: int) -> float:
    """E |Θ̂ − Θ| of the posterior median from n randomized coins, Θ uniform, by a fine grid."""
    theta = (np.arange(4000) + 0.5) / 4000
    flip = 1 / (1 + math.exp(epsilon))
    shown = flip + (1 - 2 * flip) * theta
    total = 0.0
    for ones in range(people + 1):
        weights = stats.binom.pmf(ones, people, shown) / len(theta)
        median = theta[np.searchsorted(np.cumsum(weights), weights.sum() / 2)]
        total += float(weights @ np.abs(theta - median))
    return total


def test_remark_1() -> None:
    """2/27 (at γ = 4/3) where (15) gives 0.0456."""
    assert limits.bayes(FREE, UNIFORM).one_step(1) == pytest.approx(2 / 27, rel=2e-9)
    assert by_information(UNIFORM, 1) == pytest.approx(0.0456, abs=1e-4)
    assert UNIFORM.mutual_information(1) == pytest.approx(math.log(2) - 0.5, rel=1e-11)
    assert UNIFORM.shared_information(np.array([1.0, 4 / 3, 2.0, 5.0]), 1) == pytest.approx(
        [1 / 4, 1 / 9, 0, 0], abs=2e-12
    )


def test_the_whole_risk_is_more_than_one_step_and_less_than_the_truth() -> None:
    """∫ (1 − p)₊ dζ = 7/48 + 1/64 for one open coin; its posterior median errs by (2 − √2)/3."""
    limit = limits.bayes(FREE, UNIFORM).risk(1)
    assert limit == pytest.approx(7 / 48 + 1 / 64, rel=2e-3)
    assert 2 / 27 < limit < (2 - math.sqrt(2)) / 3


@pytest.mark.parametrize("people", [1, 2, 5, 20])
def test_example_4(people: int) -> None:
    """I_γ of n coins against quadrature, P(x) = s!(n−s)!/(n+1)! for each sequence."""
    gammas = np.array([1.0, 1.7, 4.0])
    for gamma, told in zip(gammas.tolist(), UNIFORM.shared_information(gammas, people).tolist(), strict=True):
        exact = 0.0
        for s in range(people + 1):
            choose, top = special.comb(people, s), s / people

            def gain(theta: float, s: int = s, choose: float = choose, gamma: float = gamma) -> float:
                return max(choose * theta**s * (1 - theta) ** (people - s) - gamma / (people + 1), 0.0)

            exact += integrate.quad(gain, 0, 1, points=[top], limit=500, epsabs=1e-11)[0]
        assert told == pytest.approx(exact, abs=1e-8)
        assert told >= exact - 1e-9


FIGURE = [
    (1, 0.0978, 0.0460, 0.0515),
    (2, 0.0907, 0.0456, 0.0392),
    (5, 0.0564, 0.0397, 0.0243),
    (10, 0.0387, 0.0352, 0.0165),
    (20, 0.0269, 0.0258, 0.0109),
    (50, 0.0172, 0.0146, 0.0061),
    (200, 0.00876, 0.00524, 0.00257),
]


@pytest.mark.parametrize(("people", "whole_curve", "theorem", "corollary"), FIGURE)
def test_the_figure_of_example_4(people: int, whole_curve: float, theorem: float, corollary: float) -> None:
    """(1, 1e−4)-LDP: Theorem 2 above Corollary 3 from two people on, the whole curve above both, the risk above all."""
    privacy = Guarantee(1.0, 1e-4)
    limit = limits.bayes(privacy, UNIFORM)
    assert limit.one_step(people) == pytest.approx(whole_curve, rel=6e-3)
    assert by_contraction(UNIFORM, people, privacy) == pytest.approx(theorem, rel=6e-3)
    assert by_information(UNIFORM, people, printed_contraction(privacy, people)) == pytest.approx(corollary, rel=6e-3)
    assert limit.risk(people) > limit.one_step(people) > max(theorem, corollary)
    assert theorem > corollary or people == 1


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
@pytest.mark.parametrize("people", [1, 5, 40])
def test_randomized_coins_err_more_than_the_limit(epsilon: float, people: int) -> None:
    reached = coin_bayes_risk(epsilon, people)
    assert limits.bayes(Guarantee(epsilon), UNIFORM).risk(people) <= reached
    given = limits.bayes(SymmetricChannel.randomized_response(epsilon, 2), UNIFORM).risk(people)
    assert limits.bayes(Guarantee(epsilon), UNIFORM).risk(people) <= given * (1 + 1e-6) <= reached * (1 + 1e-6)
    assert given >= 0.3 * reached


@pytest.mark.parametrize("people", [1, 3, 30])
def test_cells_are_below_the_closed_form_and_near_it(people: int) -> None:
    cells = limits.Cells.from_prior(stats.uniform(), coin)
    for privacy in (FREE, Guarantee(1.0, 1e-4)):
        exact, cut = (limits.bayes(privacy, problem).risk(people) for problem in (UNIFORM, cells))
        assert cut <= exact * (1 + 1e-6)
        assert cut >= 0.98 * exact


def test_beta_priors_by_cells() -> None:
    for a, b in [(2.0, 5.0), (0.5, 0.5)]:
        exact, cells = limits.BetaBernoulli(a, b), limits.Cells.from_prior(stats.beta(a, b), coin)
        gammas = np.array([1.0, 1.5, 3.0])
        assert cells.shared_information(gammas, 4) == pytest.approx(exact.shared_information(gammas, 4), abs=2e-3)
        assert cells.mutual_information(1) == pytest.approx(exact.mutual_information(1), rel=1e-3)
        radius = np.array([0.01, 0.1, 0.3])
        windows = [
            max(stats.beta(a, b).cdf(t + r) - stats.beta(a, b).cdf(t - r) for t in np.linspace(0, 1, 400))
            for r in radius
        ]
        for problem in (exact, cells):
            assert np.all(problem.small_ball_probability(radius) >= np.array(windows) - 1e-12)
            assert problem.small_ball_probability(radius) == pytest.approx(windows, abs=2e-2)


def test_samples_are_their_own_prior() -> None:
    points = np.array([0.2, 0.4, 0.4, 0.9])
    made = limits.Cells.from_prior(points, coin)
    assert made.small_ball_probability(np.array([1e-6, 0.1, 0.25, 0.35])) == pytest.approx([0.5, 0.75, 0.75, 1.0])
    one = coin(points)
    center = one.mean(axis=0)
    for gamma in (1.0, 1.5):
        exact = float(np.maximum(one - gamma * center, 0).sum() / 4)
        assert made.shared_information(np.array([gamma]), 1)[0] == pytest.approx(exact, abs=1e-11)


def test_unbounded_priors_and_many_values() -> None:
    """A normal parameter of a binned normal value: three bins, so that many people go by Pinsker's bound."""

    def binned(mean: np.ndarray) -> np.ndarray:
        low, high = stats.norm.cdf(-0.5 - mean), stats.norm.cdf(0.5 - mean)
        return np.stack([low, high - low, 1 - high], axis=1)

    problem = limits.Cells.from_prior(stats.norm(0, 2), binned, cells=500)
    limit = limits.bayes(Guarantee(1.0), problem, cost="squared")
    assert 4 >= limit.risk(1) > limit.risk(10) > 0
    assert np.all(np.diff(problem.shared_information(np.array([1.0, 2.0]), 7)) <= 0)


@given(st.floats(0.001, 0.999), st.floats(0.0, 3.0))
def test_the_largest_share_is_where_the_divergence_is_the_information(ball: float, information: float) -> None:
    p = float(largest_guess_probability(information, np.array([ball]))[0])
    assert p >= ball
    if p < 1:
        at = special.rel_entr(p, ball) + special.rel_entr(1 - p, 1 - ball)
        assert at == pytest.approx(information, abs=1e-9)


def test_risk_falls_with_people_and_privacy() -> None:
    risks = [limits.bayes(Guarantee(1.0), UNIFORM).risk(n) for n in (1, 2, 4, 16, 256)]
    assert all(more > less for more, less in pairwise(risks))
    tight = [limits.bayes(Guarantee(epsilon), UNIFORM).risk(20) for epsilon in (0.1, 1.0, 4.0)]
    assert all(more > less for more, less in pairwise(tight))
    assert limits.bayes(Guarantee(1.0), UNIFORM).people(0.05) > 20


def test_windows_keep_the_rate_for_many_people() -> None:
    """Within a factor of five of randomized coins at every n, and n^(−1/2); the truth at n = 300 by a fine grid."""
    limit = limits.bayes(Guarantee(1.0), UNIFORM)
    assert limit.risk(10**6) / limit.risk(4 * 10**6) == pytest.approx(2, rel=0.02)
    for people in (300, 10**6):
        spread = 0.5 / math.tanh(0.5) / math.sqrt(people)
        assert 0.2 * spread * math.sqrt(2 / math.pi) < limit.risk(people) < spread * math.sqrt(2 / math.pi)
    assert limit.risk_within_windows(300) <= coin_bayes_risk(1.0, 300)
    assert limits.bayes(Guarantee(1.0), limits.Cells.from_prior([0.1, 0.9], coin)).risk_within_windows(10) == 0


def test_windows_of_an_unbounded_prior() -> None:
    """Θ normal, a report of whether the value Θ + noise is positive; only few windows see any information."""
    problem = limits.Cells.from_prior(stats.norm(0, 1), lambda mean: coin(stats.norm.cdf(mean)))
    limit = limits.bayes(Guarantee(2.0), problem, cost="squared")
    assert 1 > limit.risk(1) > limit.risk(1000) > limit.risk(100_000) > 0


def test_bad_problems_are_explained() -> None:
    with pytest.raises(InputError, match="BetaBernoulli"):
        limits.bayes(Guarantee(1.0), stats.uniform())  # type: ignore[arg-type]
    for wrong in (0, -1, math.nan):
        with pytest.raises(InputError, match="a"):
            limits.BetaBernoulli(wrong)
    for samples in ([], [math.nan], [[0.5]], "x", None):
        with pytest.raises(InputError, match="prior"):
            limits.Cells.from_prior(samples, coin)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="one distribution for each"):
        limits.Cells.from_prior([0.1, 0.9], lambda theta: [[0.5, 0.5]])
    with pytest.raises(InputError, match="sum of matrix"):
        limits.Cells.from_prior([0.1, 0.9], lambda theta: np.stack([theta, theta], axis=1))
    with pytest.raises(InputError, match="cells"):
        limits.Cells.from_prior(stats.uniform(), coin, cells=1)


@pytest.mark.parametrize("samples", [[1234.5, math.nan], [1234.5, math.inf], [[1234.5]], ["1234.5x"]])
def test_samples_of_people_are_not_shown(samples: list[float]) -> None:
    with pytest.raises(InputError, match="prior") as said:
        limits.Cells.from_prior(samples, coin)
    assert "1234" not in str(said.value)


@pytest.mark.parametrize("known", [1e-22, 1e-18, 1e-16])
def test_the_largest_share_allows_for_rounding(known: float) -> None:
    """KL(p‖b) of a p near b is computed to 1e−16 alone: p must not come out below the true one."""
    for base in (0.1, 0.5, 0.9):
        truth = base + math.sqrt(2 * known * base * (1 - base)) * (1 - 1e-6)
        assert float(largest_guess_probability(known, np.array([base]))[0]) >= truth
