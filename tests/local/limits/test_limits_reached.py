"""Limits stay below what real mechanisms reach, and are the numbers of the papers where these are right."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from tightrope.channels import Channel, SymmetricChannel, suprema
from tightrope.channels.extremal import dominating_channel
from tightrope.documents import Guarantee
from tightrope.errors import InputError
from tightrope.local import limits
from tightrope.local.limits.constraint import AnyMechanism
from tightrope.local.limits.limit import fewest_people

CLASSES = [Guarantee(1.0), Guarantee(0.3, 0.0, 0.1), Guarantee(2.0, 0.01, 0.3), Guarantee(math.inf, 0.0, 0.2)]
PEOPLE = [1, 3, 25]


def exact_advantage(a: float, b: float, people: int) -> float:
    """Total variation of n coins of chance a and n of chance b."""
    k = np.arange(people + 1)
    return float(np.abs(stats.binom.pmf(k, people, a) - stats.binom.pmf(k, people, b)).sum() / 2)


def best_coin_error(a: float, b: float, people: int, type_one: float) -> float:
    """Least type-II error of a randomized count test at this type-I error (Neyman–Pearson), b < a."""
    k = np.arange(people + 1)
    first, second = stats.binom.pmf(k, people, a), stats.binom.pmf(k, people, b)
    spent = np.minimum(np.maximum(type_one - np.concatenate([[0.0], np.cumsum(first)[:-1]]), 0.0), first)
    return 1 - float(np.sum(second * spent / np.where(first > 0, first, 1)))


@pytest.mark.parametrize("privacy", CLASSES)
@pytest.mark.parametrize("people", PEOPLE)
def test_the_dominating_channel_tells_no_more_than_the_class_may(privacy: Guarantee, people: int) -> None:
    """n outputs of the five-atom channel, by the composition of its pair; coins that differ a little and a lot."""
    best = dominating_channel(privacy)
    for p0, p1 in [
        ([0.6, 0.4], [0.4, 0.6]),
        ([0.51, 0.49], [0.5, 0.5]),
        ([1.0, 0.0], [0.0, 1.0]),
        ([1.0, 0.0], [0.9, 0.1]),
    ]:
        given = limits.le_cam(best, p0, p1, separation=1.0)
        any_of_them = limits.le_cam(privacy, p0, p1, separation=1.0)
        assert given.testing_advantage(people) <= any_of_them.testing_advantage(people) + 2e-9
        assert given.risk(people) >= any_of_them.risk(people) * (1 - 1e-8) - 1e-9


@pytest.mark.parametrize("people", PEOPLE)
def test_a_given_channel_is_answered_exactly(people: int) -> None:
    coin = SymmetricChannel.randomized_response(1.0, 2)
    limit = limits.le_cam(coin, [0.6, 0.4], [0.4, 0.6], separation=0.2)
    a, b = coin.output_distribution(np.array([0.6, 0.4]))[0], coin.output_distribution(np.array([0.4, 0.6]))[0]
    exact = exact_advantage(a, b, people)
    assert limit.testing_advantage(people) == pytest.approx(exact, rel=1e-6)
    assert limit.testing_advantage(people) >= exact
    assert limit.risk(people) == pytest.approx(0.01 * (1 - exact) / 2, rel=1e-5)


@pytest.mark.parametrize("privacy", [Guarantee(1.0), Guarantee(0.5, 0.0, 0.2)])
@pytest.mark.parametrize("people", [10, 1000])
def test_le_cam_is_at_least_lemma_3_and_below_randomized_response(privacy: Guarantee, people: int) -> None:
    p0, p1, tau = np.array([0.55, 0.45]), np.array([0.45, 0.55]), 0.05
    kl = float(np.sum(p0 * np.log(p0 / p1)))
    kappa = suprema.kl_contraction(privacy)
    printed = tau**2 / 2 * (1 - math.sqrt(people * kappa * kl / 2))
    limit = limits.le_cam(privacy, p0, p1, separation=2 * tau)
    assert limit.risk(people) >= printed * (1 - 1e-8)
    # A test of the two with the binary mechanism errs half of 1 − TV; so does every estimator on the two points.
    best = dominating_channel(privacy)
    pair = limits.le_cam(best, p0, p1, separation=2 * tau)
    assert limit.risk(people) <= pair.risk(people) * (1 + 1e-8)


def test_costs_scale_as_they_should() -> None:
    made = {
        cost: limits.le_cam(Guarantee(1.0), [0.6, 0.4], [0.4, 0.6], separation=0.2, cost=cost)
        for cost in ("absolute", "squared")
    }
    mine = limits.le_cam(Guarantee(1.0), [0.6, 0.4], [0.4, 0.6], separation=0.2, cost=lambda error: error**3)
    assert made["squared"].risk(5) == pytest.approx(0.1 * made["absolute"].risk(5), rel=1e-12)
    assert mine.risk(5) == pytest.approx(0.01 * made["absolute"].risk(5), rel=1e-12)


@pytest.mark.parametrize("distance", [1e-9, 1e-5, 0.3, 3.0])
def test_laws_that_hardly_differ_are_not_told_apart_and_not_lost(distance: float) -> None:
    """A Hellinger distance far below the unit round-off still adds up over people."""
    pair = limits.Hypotheses.from_normal_shift(distance)
    assert pair.hellinger == pytest.approx(distance**2 / 4, rel=distance**2)
    limit = limits.le_cam(Guarantee(1.0), pair, separation=distance)
    assert limit.testing_advantage(10**14) > 0.99 if distance > 1e-8 else 1e-4 < limit.testing_advantage(10**14) < 0.1
    if distance < 1e-8:
        return
    n = limit.people(distance**2 / 80)
    assert n > 0.02 / distance**2
    assert limit.risk(max(1, n - 1)) > distance**2 / 80 or n == 1


def test_hypotheses_are_checked() -> None:
    with pytest.raises(InputError, match="p1"):
        limits.le_cam(Guarantee(1.0), [0.5, 0.5], separation=1)
    with pytest.raises(InputError, match="left out"):
        limits.le_cam(Guarantee(1.0), limits.Hypotheses(0.1), [0.5, 0.5], separation=1)
    with pytest.raises(InputError, match="over the 2 inputs"):
        limits.le_cam(Channel([[0.75, 0.25], [0.25, 0.75]]), limits.Hypotheses(0.1), separation=1)
    with pytest.raises(InputError, match="privacy"):
        limits.le_cam(1.0, [0.5, 0.5], [0.4, 0.6], separation=1)  # type: ignore[arg-type]
    for wrong in (0, -1, math.nan):
        with pytest.raises(InputError, match="separation"):
            limits.le_cam(Guarantee(1.0), [0.5, 0.5], [0.4, 0.6], separation=wrong)
    with pytest.raises(InputError, match="absolute, squared"):
        limits.le_cam(Guarantee(1.0), [0.5, 0.5], [0.4, 0.6], separation=1, cost="cubic")
    for field in ("total_variation", "kl", "reverse_kl", "hellinger"):
        with pytest.raises(InputError, match=field):
            limits.Hypotheses(**{"total_variation": 0.1, field: math.nan})
    with pytest.raises(InputError, match="people"):
        limits.le_cam(Guarantee(1.0), [0.5, 0.5], [0.4, 0.6], separation=1).risk(0)


@pytest.mark.parametrize("alpha", [0.01, 0.3])
@pytest.mark.parametrize("people", [5, 60, 300])
def test_no_test_of_randomized_coins_beats_the_testing_limit(alpha: float, people: int) -> None:
    coin = SymmetricChannel.randomized_response(1.0, 2)
    a, b = coin.output_distribution(np.array([0.6, 0.4]))[0], coin.output_distribution(np.array([0.4, 0.6]))[0]
    exact = best_coin_error(a, b, people, alpha)
    assert limits.testing(Guarantee(1.0), [0.6, 0.4], [0.4, 0.6]).type_two_error(alpha, people) <= exact * (1 + 1e-9)
    given = limits.testing(coin, [0.6, 0.4], [0.4, 0.6]).type_two_error(alpha, people)
    assert given == pytest.approx(exact, rel=1e-6)
    assert given <= exact


def test_the_exponent_is_at_most_corollary_4_and_what_channels_reach() -> None:
    privacy, p0, p1 = Guarantee(1.0), [0.6, 0.4], [0.4, 0.6]
    exponent = limits.testing(privacy, p0, p1).error_exponent
    kl = 0.6 * math.log(1.5) + 0.4 * math.log(2 / 3)
    assert exponent <= suprema.kl_contraction(privacy) * kl * (1 + 1e-12)
    reached = dominating_channel(privacy).output_divergence("kl", p0, p1)
    assert reached <= exponent * (1 + 1e-12)
    assert limits.testing(dominating_channel(privacy), p0, p1).error_exponent == pytest.approx(reached, rel=1e-12)


def test_testing_needs_laws_whose_reports_differ() -> None:
    with pytest.raises(InputError, match="no number of people"):
        limits.testing(Guarantee(0.0), [0.6, 0.4], [0.4, 0.6]).people(0.1, 0.1)
    assert limits.testing(Guarantee(0.0), [0.6, 0.4], [0.4, 0.6]).people(0.5, 0.6) == 1
    with pytest.raises(InputError, match="type_two_error"):
        limits.testing(Guarantee(1.0), [0.6, 0.4], [0.4, 0.6]).people(0.1, 0.0)


@pytest.mark.parametrize("privacy", CLASSES[:3])
def test_mutual_information_is_at_most_kappa_entropy_and_no_channel_has_more(privacy: Guarantee) -> None:
    rng = np.random.default_rng(2)
    for _ in range(50):
        prior = rng.dirichlet(np.ones(2))
        bound = limits.mutual_information(privacy, prior)
        assert bound <= suprema.kl_contraction(privacy) * stats.entropy(prior) * (1 + 1e-12)
        assert limits.mutual_information(dominating_channel(privacy), prior) <= bound * (1 + 1e-12)


def test_fewest_people_ends_on_the_proven_side() -> None:
    for target in (0.5, 1e-3, 1e-7):
        n = fewest_people(lambda people: people**-0.5, target)
        assert (n - 1) ** -0.5 > target or n == 1
        assert n <= 1 / target**2 * (1 + 1e-12) + 1
        assert n >= (1 - 2e-3) / target**2 - 1
    assert fewest_people(lambda people: 0.0, 1.0) == 1
    with pytest.raises(InputError, match="within reach"):
        fewest_people(lambda people: 1.0, 0.5)
    with pytest.raises(InputError, match="risk"):
        limits.mean(Guarantee(1.0)).people(0.0)


def test_composition_is_what_makes_le_cam_sharp_for_far_laws() -> None:
    """Laws without common support: KL = ∞, Lemma 3 says nothing, the blurred triple does."""
    limit = limits.le_cam(Guarantee(0.5), [1, 0], [0, 1], separation=2.0)
    assert limit.divergence.kl < math.inf
    assert limit.risk(5) > 0.1
    triple = suprema.between_outputs(Guarantee(0.5), 1.0)
    assert limit.divergence.kl == pytest.approx(triple.epsilon * triple.total_variation, rel=1e-12)
    assert AnyMechanism(Guarantee(0.5)).report_divergence(limits.Hypotheses(0.0)).kl == 0
