"""The table of mechanisms in docs/local.md says what the exact fractions say."""

from __future__ import annotations

import math

import pytest

from tightrope import local
from tightrope.local.studies.planning import DISTRIBUTION

EPSILONS = [0.3, 1.0, 2.0, 4.0]
KS = [5, 64, 1000]


def rare(mechanism):
    return float(mechanism.report_variances[0])


def eta(mechanism):
    return mechanism.guarantee.total_variation


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("k", KS)
def test_shares(epsilon, k):
    grown, half = math.exp(epsilon), math.exp(epsilon / 2)
    response = local.k_randomized_response(epsilon, k)
    assert rare(response) == pytest.approx((grown + k - 2) / (grown - 1) ** 2)
    assert eta(response) == pytest.approx((grown - 1) / (grown + k - 1))
    assert response.report_bits == math.ceil(math.log2(k))
    unary = local.unary_encoding(epsilon, k)
    assert rare(unary) == pytest.approx(4 * grown / (grown - 1) ** 2, rel=2e-4)
    assert eta(unary) == pytest.approx(math.tanh(epsilon / 2) / 2, rel=0.02)  # few binary digits
    symmetric = local.unary_encoding(epsilon, k, optimized=False)
    assert rare(symmetric) == pytest.approx(half / (half - 1) ** 2, rel=1e-3)
    assert eta(symmetric) == pytest.approx(math.tanh(epsilon / 4), rel=1e-3)
    assert unary.report_bits == symmetric.report_bits == k


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("k", KS)
def test_shares_from_short_reports(epsilon, k):
    grown = math.exp(epsilon)
    hashing = local.hashing(epsilon, k)
    order = hashing.linear.order
    assert rare(hashing) == pytest.approx((grown + order - 1) ** 2 / ((grown - 1) ** 2 * (order - 1)))
    assert eta(hashing) == pytest.approx((1 - 1 / order) * (grown - 1) / (grown + order - 1))
    assert hashing.report_bits <= math.log2(k) + 2 * math.log2(order) + 1
    hadamard = local.hadamard(epsilon, k)
    assert rare(hadamard) == pytest.approx(((grown + 1) / (grown - 1)) ** 2)
    assert eta(hadamard) == pytest.approx(math.tanh(epsilon / 2) / 2)
    assert hadamard.report_bits == math.floor(math.log2(k)) + 1


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("k", KS)
def test_subset_selection_has_the_least_variance(epsilon, k):
    subset = local.subset_selection(epsilon, k)
    p, q = float(subset.true_support_probability), float(subset.false_support_probability)
    assert rare(subset) == pytest.approx(q * (1 - q) / (p - q) ** 2)
    assert eta(subset) == pytest.approx((p * k - subset.size) / (k - 1))
    others = [make(epsilon, k).mean_variance for make in DISTRIBUTION.values()]
    assert subset.mean_variance <= min(others) * (1 + 1e-9)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("x", [0.0, 0.4, 1.0])
def test_means(epsilon, x):
    grown, half = math.exp(epsilon), math.exp(epsilon / 2)
    duchi, piecewise, hybrid = local.duchi(epsilon), local.piecewise(epsilon), local.hybrid(epsilon)
    by_bit = ((grown + 1) / (grown - 1)) ** 2 - x * x
    by_cell = x * x / (half - 1) + (half + 3) / (3 * (half - 1) ** 2)
    share = 1 - 1 / half if epsilon > 0.61 else 0.0
    assert duchi.variance_at(x) == pytest.approx(by_bit)
    assert piecewise.variance_at(x) == pytest.approx(by_cell, rel=1e-3)
    assert hybrid.variance_at(x) == pytest.approx(share * by_cell + (1 - share) * by_bit, rel=1e-3)
    assert eta(duchi) == pytest.approx(math.tanh(epsilon / 2))
    assert eta(piecewise) == pytest.approx(1 - 1 / half, rel=1e-4)
    assert min(eta(piecewise), eta(duchi)) <= eta(hybrid) * (1 + 1e-9)
    assert eta(hybrid) <= max(eta(piecewise), eta(duchi)) * (1 + 1e-9)
    assert duchi.report_bits == 1
    assert piecewise.report_bits >= 17


def test_rappor_protects_for_ever_what_one_row_says():
    assert eta(local.rappor(2.0, 50)) == pytest.approx(math.tanh(0.5), rel=1e-3)
