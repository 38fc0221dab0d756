"""Symmetric channels and their products say what their matrices say, and millions of values cost nothing."""

from __future__ import annotations

import math
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tightrope.channels import Channel, ProductChannel, SymmetricChannel
from tightrope.channels.kernel import Kernel
from tightrope.channels.product import _group_starts
from tightrope.errors import InputError

EPSILONS = [-1.0, 0.0, 0.3, 1.0, 2.5]


@st.composite
def symmetric(draw: st.DrawFn, most: int = 6) -> SymmetricChannel:
    """Also ones that lie more often than not, that withhold, that rule out."""
    k = draw(st.integers(2, most))
    keep, other = draw(st.integers(0, 100)), draw(st.integers(0, 100))
    erased = draw(st.sampled_from([0, 0, 30]))
    total = keep + (k - 1) * other + erased
    if total == 0:
        return SymmetricChannel(k, 1.0, 0.0)
    return SymmetricChannel(k, keep / total, other / total, erased / total)


def same(structured: Kernel, dense: Channel, seed: int) -> None:
    rng = np.random.default_rng(seed)
    assert (structured.input_count, structured.output_count) == (dense.input_count, dense.output_count)
    assert structured.epsilon == pytest.approx(dense.epsilon, rel=1e-12)
    assert structured.profile(EPSILONS) == pytest.approx(dense.profile(EPSILONS), abs=1e-13)
    assert structured.kl_contraction == pytest.approx(dense.kl_contraction, abs=1e-13)
    assert structured.total_variation == pytest.approx(dense.total_variation, abs=1e-14)
    assert structured.loss.delta(EPSILONS) == pytest.approx(dense.loss.delta(EPSILONS), abs=1e-12)
    assert structured.guarantee(0.05).epsilon == pytest.approx(dense.guarantee(0.05).epsilon, rel=1e-9, abs=1e-12)
    p0, p1 = rng.dirichlet(np.ones(dense.input_count)), rng.dirichlet(np.ones(dense.input_count))
    for name in ("total_variation", "hellinger"):
        assert structured.output_divergence(name, p0, p1) == pytest.approx(
            dense.output_divergence(name, p0, p1), abs=1e-14
        )
    assert structured.mutual_information(p0) == pytest.approx(dense.mutual_information(p0), abs=1e-13)
    low, high = structured.channel_capacity()
    assert low - 1e-12 <= dense.channel_capacity().upper
    assert high + 1e-12 >= dense.channel_capacity().lower
    assert high - low < 1e-9


@given(symmetric(), st.integers(0, 1000))
def test_a_symmetric_channel_is_its_matrix(made: SymmetricChannel, seed: int) -> None:
    same(made, made.to_channel(), seed)


@given(symmetric(3), symmetric(3), st.integers(0, 1000))
def test_a_product_is_its_matrix(first: SymmetricChannel, second: SymmetricChannel, seed: int) -> None:
    same(first.product_with(second), first.to_channel().product_with(second.to_channel()), seed)


@given(symmetric(), st.sampled_from([0.0, 0.5, 1.0]))
def test_erasure(made: SymmetricChannel, alpha: float) -> None:
    kept = made.erase(alpha)
    assert kept.total_variation == pytest.approx((1 - alpha) * made.total_variation, abs=1e-14)
    assert kept.kl_contraction == pytest.approx((1 - alpha) * made.kl_contraction, abs=1e-14)
    assert kept.channel_capacity().upper == pytest.approx((1 - alpha) * made.channel_capacity().upper, abs=1e-13)


@pytest.mark.parametrize("k", [2, 3, 10, 1000, 10**6])
@pytest.mark.parametrize("epsilon", [0.01, 1.3, 8.0])
def test_randomized_response_in_closed_form(k: int, epsilon: float) -> None:
    made, ratio = SymmetricChannel.randomized_response(epsilon, k), math.exp(epsilon)
    kappa = (ratio - 1) ** 2 / ((ratio + k - 1) * (ratio + 1))
    assert made.kl_contraction == pytest.approx(kappa, rel=1e-9)
    assert made.total_variation == pytest.approx((ratio - 1) / (ratio + k - 1), rel=1e-9)
    assert made.epsilon == pytest.approx(epsilon, rel=1e-12)


def test_a_million_values_cost_nothing() -> None:
    start = time.process_time()
    made = SymmetricChannel.randomized_response(1.0, 10**6)
    prior = np.full(10**6, 1e-6)
    assert np.allclose(made.output_distribution(prior), prior, rtol=1e-12, atol=0)
    assert made.loss.delta(0.5) > 0
    assert made.mutual_information(prior) == pytest.approx(made.channel_capacity().upper, abs=1e-12)
    assert time.process_time() - start < 2
    with pytest.raises(InputError, match="use this channel without a matrix"):
        made.to_channel()


def test_many_attributes() -> None:
    made = ProductChannel(tuple(SymmetricChannel.randomized_response(0.1, 50) for _ in range(40)))
    assert made.epsilon == pytest.approx(4.0, rel=1e-12)
    assert made.input_count == 50**40
    assert float(made.profile(1.0)) == pytest.approx(made.loss.delta(1.0), rel=1e-6)
    with pytest.raises(InputError, match="use each attribute alone"):
        made.output_distribution(np.ones(1))


def test_bad_input_is_explained() -> None:
    with pytest.raises(InputError, match="keep"):
        SymmetricChannel(3, 0.9, 0.2)
    with pytest.raises(InputError, match="k to be a whole number"):
        SymmetricChannel(1, 1.0, 0.0)
    with pytest.raises(InputError, match="other"):
        SymmetricChannel(3, 1.0, -0.1)
    with pytest.raises(InputError, match="keep"):
        SymmetricChannel(3, math.nan, 0.5)
    for wrong in (-1.0, math.nan, math.inf):
        with pytest.raises(InputError, match="epsilon"):
            SymmetricChannel.randomized_response(wrong, 3)
    with pytest.raises(InputError, match="at least one channel"):
        ProductChannel(())


@pytest.mark.parametrize("k", [2**53 + 1, 10**30, 10**400])
def test_more_values_than_floats_count_are_refused(k: int) -> None:
    with pytest.raises(InputError, match="2\\^53"):
        SymmetricChannel.randomized_response(1.0, k)
    with pytest.raises(InputError, match="2\\^53"):
        SymmetricChannel(k, 0.5, 0.0, 0.5)
    assert SymmetricChannel.randomized_response(1.0, 2**53).epsilon == pytest.approx(1.0, rel=1e-12)


def test_outputs_that_follow_closely_are_not_all_put_together() -> None:
    """Sums of ε_i = 2^i · 0.9e−14 lie closer than 1e−14 side by side over a long range: no chain may join them."""
    factors = [SymmetricChannel.randomized_response(0.9e-14 * 2**i, 2) for i in range(14)]
    made = factors[0].product_with(*factors[1:])
    dense = made.row_pair.matrix
    assert made.total_variation >= 0.999 * factors[-1].total_variation
    assert dense.shape[1] > 100
    losses = np.sort(np.arange(3000) * 0.9e-14)
    starts = _group_starts(losses)
    widths = [float(np.ptp(part)) for part in np.split(losses, starts[1:])]
    assert max(widths) <= 1e-14
    assert _group_starts(np.array([-np.inf, -np.inf, 0.0, 1e-16, 1.0, np.inf])).tolist() == [0, 1, 2, 4, 5]


def test_many_coins_have_few_different_losses() -> None:
    """A coin's third output never happens: forty coins have 41 different losses, not 3^40 outputs."""
    coin = SymmetricChannel.randomized_response(0.1, 2)
    made = coin.product_with(*[coin] * 39)
    assert made.row_pair.output_count <= 50
    assert made.total_variation == pytest.approx((40 * coin.loss).total_variation(), rel=1e-9)
