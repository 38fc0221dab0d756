"""Worked problems: what real mechanisms reach is above the limits, the rates are right, van Trees has the constant."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import jn_zeros, jv

from tightrope.channels import Channel, SymmetricChannel
from tightrope.channels.extremal import dominating_channel
from tightrope.documents import Guarantee
from tightrope.errors import InputError
from tightrope.local import limits
from tightrope.local.limits.fisher_information import (
    ChannelColumns,
    first_bessel_zero,
    fisher_information,
    independent_trace_bound,
    trace_of_information,
)
from tightrope.local.limits.mean import least_error_probability, log_packing

EPSILONS = [0.2, 1.0, 3.0]
CLASSES = [Guarantee(1.0), Guarantee(0.3, 0.0, 0.1), Guarantee(2.0, 0.01, 0.3)]


def coin_risk(epsilon: float, people: int) -> float:
    """Worst mean squared error of the unbiased estimate from randomized response: at θ = ½."""
    return 0.25 / math.tanh(epsilon / 2) ** 2 / people


def subset_selection_risk(epsilon: float, k: int, people: int) -> float:
    """Σ of variances of subset selection at the uniform law, d = the best size (Ye and Barg)."""
    ratio = math.exp(epsilon)
    risks = []
    for d in range(1, k):
        s = d / k
        trace = k * s * (1 - s) * (ratio - 1) ** 2 / (1 + s * (ratio - 1)) ** 2
        risks.append((k - 1) ** 2 / (people * trace))
    return min(risks)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("people", [1, 50, 10_000, 10**8])
def test_the_mean_limit_is_below_randomized_response_and_meets_it(epsilon: float, people: int) -> None:
    limit = limits.mean(Guarantee(epsilon)).risk(people)
    reached = min(coin_risk(epsilon, people), 0.25)
    assert limit <= reached
    if people == 10**8:
        assert limit >= 0.97 * reached


def test_the_mean_limit_scales_with_the_interval() -> None:
    unit, wide = limits.mean(Guarantee(1.0)), limits.mean(Guarantee(1.0), bounds=(-10, 30))
    assert wide.risk(100) == pytest.approx(1600 * unit.risk(100), rel=1e-12)
    with pytest.raises(InputError, match="width"):
        limits.mean(Guarantee(1.0), bounds=(1, 1))
    for wrong in (3, (1,), "ab", (0, math.nan)):
        with pytest.raises(InputError, match="bounds"):
            limits.mean(Guarantee(1.0), bounds=wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("k", [2, 3, 16, 200])
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_frequency_limit_is_below_subset_selection_and_nears_it(k: int, epsilon: float) -> None:
    limit = limits.frequencies(Guarantee(epsilon), k=k)
    for people in (1, 1000, 10**6):
        assert limit.risk(people) <= min(subset_selection_risk(epsilon, k, people), 1.0)
    assert limit.risk(10**14) >= 0.9 * subset_selection_risk(epsilon, k, 10**14)


@pytest.mark.parametrize("privacy", CLASSES)
def test_no_channel_has_more_fisher_information(privacy: Guarantee) -> None:
    """The dominating channel reaches J(θ); random mixtures of its rows stay below the trace."""
    rng, best = np.random.default_rng(4), dominating_channel(privacy)
    for theta in (0.5, 0.1, 0.9):
        p, q = best.matrix
        mixed = theta * p + (1 - theta) * q
        some = mixed > 0
        reached = float(np.sum((p - q)[some] ** 2 / mixed[some]))
        assert fisher_information(privacy, theta) == pytest.approx(reached, rel=1e-12)
    for _ in range(200):
        m = int(rng.integers(2, 7))
        weights = rng.choice([0.0, 1.0], m) if rng.random() < 0.5 else rng.random(m)
        rows = np.outer(weights, best.matrix[0]) + np.outer(1 - weights, best.matrix[1])
        center = rows.mean(axis=0)
        some = center > 0
        trace = float(np.sum((rows - center)[:, some] ** 2 / center[some]))
        assert trace <= trace_of_information(privacy, m) * (1 + 1e-12)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("m", [2, 3, 5, 8])
def test_subset_selection_reaches_the_trace(epsilon: float, m: int) -> None:
    """Reports are all subsets of one size: the trace of the best size is the bound, and random channels have less."""
    ratio = math.exp(epsilon)
    traces = []
    for d in range(1, m):
        subsets = np.array([[(s >> x) & 1 for x in range(m)] for s in range(2**m) if s.bit_count() == d])
        rows = np.where(subsets.T == 1, ratio, 1.0)
        made = Channel(rows / rows.sum(axis=1, keepdims=True))
        assert made.epsilon == pytest.approx(epsilon, rel=1e-9)
        center = made.matrix.mean(axis=0)
        traces.append(float(np.sum((made.matrix - center) ** 2 / center)))
    most = independent_trace_bound(
        ChannelColumns.from_guarantee(Guarantee(epsilon), m), 1e9
    ).upper_bound  # a prior that is nearly the uniform law alone
    assert most == pytest.approx(max(traces), rel=1e-7)
    assert most <= trace_of_information(Guarantee(epsilon), m) * (1 + 1e-7)
    rng = np.random.default_rng(1)
    for _ in range(100):
        rows = np.exp(epsilon * rng.random((m, 9)))
        rows = np.column_stack([rows, rows.sum(axis=1).max() * ratio - rows.sum(axis=1)])
        made = Channel(rows / rows.sum(axis=1, keepdims=True))
        center = made.matrix.mean(axis=0)
        trace = float(np.sum((made.matrix - center) ** 2 / center))
        assert trace <= trace_of_information(Guarantee(made.epsilon * (1 + 1e-12)), m) * (1 + 1e-12)


def test_the_prior_on_a_ball_has_a_zero_of_its_bessel_function() -> None:
    for d in (2, 4, 10, 200):
        assert jv(d / 2 - 1, first_bessel_zero(d)) == pytest.approx(0, abs=1e-9)
    assert first_bessel_zero(1) >= math.pi / 2
    assert first_bessel_zero(3) >= math.pi
    assert first_bessel_zero(2004) >= jn_zeros(1001, 1)[0]


@pytest.mark.parametrize("moment", [1.5, 2, 4, math.inf])
def test_the_rate_of_example_2(moment: float) -> None:
    """(nε²)^{−(k−1)/k} in n and, for small ε, in ε² (AAC Corollary 1)."""
    rate = 1.0 if moment == math.inf else (moment - 1) / moment
    limit = limits.moment_mean(Guarantee(0.1), moment=moment)
    assert limit.risk(4 * 10**9) / limit.risk(10**9) == pytest.approx(4**-rate, rel=0.03)
    assert limits.moment_mean(Guarantee(0.05), moment=moment).risk(10**9) / limit.risk(10**9) == pytest.approx(
        4**rate, rel=0.03
    )


def test_example_2_for_every_epsilon_and_delta() -> None:
    for privacy in (Guarantee(8.0), Guarantee(1.0, 0.05), Guarantee(0.1, 1e-9, 0.01)):
        limit = limits.moment_mean(privacy, moment=2)
        assert 0 < limit.risk(10_000) < limit.risk(100) < 1
    assert limits.moment_mean(Guarantee(1.0), moment=math.inf).risk(1000) <= 4 * coin_risk(1.0, 1000)
    for wrong in (1, 0.5, math.nan, "2"):
        with pytest.raises(InputError, match="moment"):
            limits.moment_mean(Guarantee(1.0), moment=wrong)


def test_example_3_below_a_mechanism_and_with_both_methods() -> None:
    """One random axis, its sign by randomized response, scaled to be unbiased: E‖·‖² ≤ (d r / tanh(ε/2))²/n."""
    for dimension in (1, 4, 32):
        limit = limits.ball_mean(Guarantee(1.0), dimension=dimension, radius=2.0)
        for people in (10, 10**5):
            reached = min((dimension * 2.0 / math.tanh(0.5)) ** 2 / people, 4.0)
            assert 0 < limit.by_fano(people) <= reached
            assert 0 < limit.by_assouad(people) <= reached
            assert max(limit.by_fano(people), limit.by_assouad(people)) <= limit.risk(people) <= reached


def test_the_rate_of_example_3_is_d_over_n_by_assouad() -> None:
    one, four = (limits.ball_mean(Guarantee(0.5), dimension=d).by_assouad(10**7) for d in (8, 32))
    assert four / one == pytest.approx(4, rel=0.2)
    limit = limits.ball_mean(Guarantee(0.5), dimension=8)
    assert limit.by_assouad(10**6) / limit.by_assouad(10**7) == pytest.approx(10, rel=0.2)


def test_gilbert_packings_exist() -> None:
    """A greedy code in the cube is at least as large as the bound."""
    for k, distance in [(4, 2), (8, 3), (9, 4), (10, 1)]:
        code: list[int] = []
        for word in range(2**k):
            if all((word ^ other).bit_count() >= distance for other in code):
                code.append(word)
        assert math.exp(log_packing(k, distance)) <= len(code)


@pytest.mark.parametrize("count", [2, 3, 10, 1000])
def test_the_error_that_fano_leaves_solves_its_equation(count: int) -> None:
    for information in (0.0, 0.2 * math.log(count), 0.9 * math.log(count)):
        p = least_error_probability(math.log(count), information)
        left = -p * math.log(p) - (1 - p) * math.log1p(-p) + p * math.log(count - 1)
        assert left <= math.log(count) - information + 1e-12
        assert p >= (1 - (information + math.log(2)) / math.log(count)) - 1e-12
    assert least_error_probability(math.log(count), math.log(count)) == 0
    assert least_error_probability(500.0, 100.0) == pytest.approx(0.8, abs=0.01)


def test_fano_is_at_least_lemma_4_and_below_the_truth() -> None:
    """Three laws, one report each by ternary randomized response: the error of the best guess is above the bound."""
    laws = np.array([[0.6, 0.2, 0.2], [0.2, 0.6, 0.2], [0.2, 0.2, 0.6]])
    privacy = Guarantee(1.0)
    limit = limits.fano(privacy, laws, separation=2.0, cost="absolute")
    reports = laws @ SymmetricChannel.randomized_response(1.0, 3).to_channel().matrix
    truth = 1 - reports.max(axis=0).sum() / 3
    assert 0 < limit.risk(1) <= truth
    given = limits.fano(SymmetricChannel.randomized_response(1.0, 3), laws, separation=2.0, cost="absolute")
    assert limit.risk(1) <= given.risk(1) * (1 + 1e-9) <= truth * (1 + 1e-9)
    kappa, shared = math.tanh(0.5) ** 2, limit.packing.information
    for people in (1, 5):
        printed = 1 - (people * kappa * shared + math.log(2)) / math.log(3)
        assert limit.risk(people) >= printed * (1 - 1e-8)


def test_interactive_fano_is_weaker_and_never_more() -> None:
    laws = np.array([[0.6, 0.2, 0.2], [0.5, 0.3, 0.2], [0.2, 0.2, 0.6]])
    for people in (1, 10, 100):
        waiting = limits.fano(Guarantee(1.0), laws, separation=1.0).information_upper_bound(people)
        talking = limits.fano(Guarantee(1.0), laws, separation=1.0, interactive=True).information_upper_bound(people)
        assert waiting <= talking * (1 + 1e-12)
    with pytest.raises(InputError, match="at least two distributions"):
        limits.fano(Guarantee(1.0), [[0.5, 0.5]], separation=1.0)


def test_the_worked_problems_speak_of_a_class() -> None:
    channel = Channel([[0.75, 0.25], [0.25, 0.75]])
    for ask in (limits.mean, lambda p: limits.frequencies(p, k=3), lambda p: limits.moment_mean(p, moment=2)):
        with pytest.raises(InputError, match="a Guarantee"):
            ask(channel)  # type: ignore[arg-type]
    for wrong in (0, 1.5):
        with pytest.raises(InputError, match="k"):
            limits.frequencies(Guarantee(1.0), k=wrong)  # type: ignore[arg-type]


def test_assouad_is_a_sum() -> None:
    pair = limits.Hypotheses(0.1)
    one = limits.le_cam(Guarantee(1.0), pair, separation=0.5)
    eight = limits.assouad(Guarantee(1.0), pair, coordinates=8, separation=0.5)
    assert eight.risk(10) == pytest.approx(8 * one.risk(10), rel=1e-12)
    assert eight.people(0.05) == one.people(0.05 / 8)
