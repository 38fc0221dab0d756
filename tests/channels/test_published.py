"""Bounds as the papers print them: true where they say so, and never sharper than our own."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tightrope import Guarantee, approx_dp, gaussian, laplace
from tightrope.channels import Channel, SymmetricChannel, published, suprema
from tightrope.errors import InputError
from tightrope.local.limits import Hypotheses, le_cam
from tightrope.local.limits.methods import by_two_points

EPSILONS = (0.0, 0.01, 0.5, 1.0, 3.0)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_ours_is_never_the_weaker_one(epsilon: float) -> None:
    one = Guarantee(epsilon)
    assert suprema.jeffreys_bound(one, 0.3) <= published.jeffreys_by_duchi(epsilon, 0.3) * (1 + 1e-12)
    assert suprema.printed_jeffreys(one, 0.3) <= published.jeffreys_by_duchi(epsilon, 0.3) * (1 + 1e-12)
    assert published.binary_share(one) <= suprema.binary_share_of_best_kl(one)
    assert published.binary_share_by_kairouz(epsilon) <= published.binary_share_pure(epsilon)
    assert published.binary_share_pure(epsilon) <= suprema.binary_share_of_best_kl(one)


def test_binary_shares_have_the_printed_values() -> None:
    assert published.binary_share(Guarantee(1.0, 0.0, 0.3)) == pytest.approx(0.0638, abs=5e-5)
    assert published.binary_share(Guarantee(math.inf, 0.0, 0.3)) == 0
    assert published.binary_share(Guarantee(0.0)) == pytest.approx(published.binary_share(Guarantee(1e-9)))
    assert published.binary_share_pure(1.0) == pytest.approx(1 / (2 * (math.e + 1)))


def test_information_by_duchi_counts_people_and_pairs() -> None:
    laws = [[0.5, 0.5], [0.25, 0.75], [1.0, 0.0]]
    apart = 2 * (0.25**2 + 0.5**2 + 0.75**2) / 9
    assert published.information_by_duchi(1.0, laws, 3) == pytest.approx(12 * math.expm1(1) ** 2 * apart)


def test_information_by_kairouz_splits_as_evenly_as_it_can() -> None:
    assert published.information_by_kairouz(0.1, [0.7, 0.2, 0.1]) == pytest.approx(0.7 * 0.3 * 0.01 / 2)
    rows = SymmetricChannel.randomized_response(1e-3, 2).to_channel().matrix[[0, 1, 1]]
    assert Channel(rows).mutual_information([0.7, 0.2, 0.1]) == pytest.approx(
        published.information_by_kairouz(1e-3, [0.7, 0.2, 0.1]), rel=1e-3
    )
    with pytest.raises(InputError, match="values of prior"):
        published.information_by_kairouz(0.1, np.full(21, 1 / 21))


@pytest.mark.parametrize("epsilon", [-1.0, math.nan, 1e6])
def test_epsilons_that_are_none_are_refused(epsilon: float) -> None:
    with pytest.raises(InputError, match="epsilon"):
        published.binary_share_pure(epsilon)


def test_maximal_leakage_of_two_inputs_is_their_total_variation() -> None:
    for rows in ([[0.7, 0.2, 0.1], [0.1, 0.2, 0.7]], [[1.0, 0.0], [0.0, 1.0]], [[0.5, 0.5], [0.5, 0.5]]):
        channel = Channel(rows)
        assert math.expm1(channel.maximal_leakage) == pytest.approx(channel.total_variation, abs=1e-12)


def test_maximal_leakage_bounds_the_capacity_and_never_grows() -> None:
    channel = Channel([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4]])
    assert channel.channel_capacity().upper <= channel.maximal_leakage
    assert (channel @ Channel([[0.9, 0.1], [0.5, 0.5], [0.2, 0.8]])).maximal_leakage <= channel.maximal_leakage
    assert channel.product_with(channel).maximal_leakage == pytest.approx(2 * channel.maximal_leakage)


@pytest.mark.parametrize("loss", [gaussian(scale=1).loss, laplace(scale=2).loss, approx_dp(1, delta=0.1).loss])
def test_bayes_security_is_a_lower_bound_on_what_total_variation_leaves(loss) -> None:  # type: ignore[no-untyped-def]
    exact = 1 - loss.total_variation_bounds().lower
    assert loss.bayes_security() <= exact
    assert loss.bayes_security() == pytest.approx(1 - loss.total_variation(), abs=1e-12)


@pytest.mark.parametrize("people", [1, 10, 100, 10_000])
def test_le_cam_as_printed_is_below_ours(people: int) -> None:
    pair = Hypotheses.from_distributions([0.55, 0.45], [0.45, 0.55])
    printed = by_two_points(pair, people, Guarantee(1.0, 0.01), separation=0.1)
    assert printed <= le_cam(Guarantee(1.0, 0.01), pair, separation=0.1).risk(people) * (1 + 1e-8)
    assert printed >= 0


def test_le_cam_as_printed_says_nothing_of_laws_that_exclude_each_other() -> None:
    assert by_two_points(Hypotheses.from_distributions([1.0, 0.0], [0.0, 1.0]), 1, Guarantee(1.0), separation=1.0) == 0
