"""The channels that mechanisms declare: the chances of their definitions, the losses of their certificates."""

import math
from itertools import combinations

import numpy as np
import pytest

from tests.local.mechanisms.channel_definitions import MAKERS, rows_of
from tightrope import local
from tightrope.channels import SymmetricChannel, suprema
from tightrope.documents import Guarantee
from tightrope.errors import InputError
from tightrope.local.mechanisms.subset import SubsetSelection


def matrix(channel):
    return (channel.to_channel() if isinstance(channel, SymmetricChannel) else channel).matrix


def columns(m):
    """Reports in the order of the columns."""
    if isinstance(m, SubsetSelection):
        return [sum(1 << v for v in chosen) for chosen in combinations(range(m.k), m.size)]
    return sorted(rows_of(m)[0])


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize(("epsilon", "k"), [(1.0, 4), (0.3, 3), (2.5, 5)])
def test_the_channel_is_the_definition(name, epsilon, k):
    m = MAKERS[name](epsilon, k)
    made = matrix(m.channel)
    exact = np.array([[float(row[y]) for y in columns(m)] for row in rows_of(m)])
    assert made == pytest.approx(exact[:, : made.shape[1]], rel=1e-14, abs=0)
    assert not exact[:, made.shape[1] :].any()


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize(("epsilon", "k"), [(1.0, 4), (0.05, 7), (5.0, 10)])
def test_the_channel_has_the_declared_guarantee_and_loss(name, epsilon, k):
    m = MAKERS[name](epsilon, k)
    assert m.channel.epsilon == pytest.approx(m.guarantee.epsilon, rel=1e-12)
    assert m.channel.total_variation == pytest.approx(m.guarantee.total_variation, rel=1e-12)
    for level in (0.0, 0.3 * epsilon, 0.9 * epsilon):
        assert m.channel.profile(level) == pytest.approx(m.loss.delta(level), rel=1e-9, abs=1e-14)
    kappa = suprema.kl_contraction(Guarantee(m.guarantee.epsilon, 0.0, m.guarantee.total_variation))
    assert m.channel.kl_contraction <= kappa * (1 + 1e-12)


def test_a_rappor_channel_is_one_report():
    m = local.rappor(2.0, 4, once=1.1)
    assert m.channel.epsilon == pytest.approx(m.loss_once.epsilon(1e-15), rel=1e-9)
    assert m.permanent.channel.epsilon == pytest.approx(m.guarantee.epsilon, rel=1e-12)


def test_duchi_has_two_inputs():
    m = local.duchi(1.0, bounds=(0.0, 10.0))
    assert (m.channel.input_count, m.channel.output_count) == (2, 2)
    assert m.channel.epsilon == pytest.approx(m.guarantee.epsilon, rel=1e-12)


def test_response_has_a_channel_at_any_size():
    m = local.k_randomized_response(1.0, 1 << 20)
    assert m.channel.input_count == 1 << 20
    assert m.channel.epsilon == pytest.approx(1.0, rel=1e-6)


@pytest.mark.parametrize(
    "make",
    [
        lambda: local.unary_encoding(1.0, 17),
        lambda: local.unary_encoding(1.0, 10_000),
        lambda: local.rappor(1.0, 20),
        lambda: local.subset_selection(1.0, 1024),
        lambda: local.subset_selection(1.0, 20, size=10),
        lambda: local.hadamard(1.0, 1 << 13),
        lambda: local.hadamard(1.0, 1 << 20),
        lambda: local.hashing(1.0, 100_000),
    ],
)
def test_too_many_reports_are_refused(make):
    with pytest.raises(InputError, match="loss and guarantee need no matrix"):
        _ = make().channel


def test_the_largest_matrices_are_made():
    assert local.unary_encoding(1.0, 16).channel.output_count == 1 << 16
    assert local.subset_selection(1.0, 300, size=2).channel.output_count == math.comb(300, 2)
    assert local.hadamard(1.0, 4095).channel.output_count == 4096
