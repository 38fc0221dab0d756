"""The limit on shares that meets the mechanisms: each step of its proof, and no mechanism below it.

``TIGHTROPE_LIMITS=full`` runs 240 random channels a setting and finer populations; a part of them otherwise.
"""

from __future__ import annotations

import math
import os
from itertools import combinations, combinations_with_replacement

import mpmath
import numpy as np
import pytest
from scipy import stats
from scipy.optimize import linprog

from tightrope.documents import Guarantee
from tightrope.errors import InputError
from tightrope.local import limits
from tightrope.local.limits.fisher_information import (
    ChannelColumns,
    dirichlet_prior_information,
    independent_trace_bound,
    largest_report_mean,
    mean_reciprocal_of_beta,
    open_answer_trace,
)
from tightrope.local.limits.frequencies import (
    SPIKE_HEIGHTS,
    SpikePrior,
    independent_divergence,
    interactive_trace_bound,
    report_information,
    sufficient_prices,
)
from tightrope.local.studies.planning import compare

FULL = os.environ.get("TIGHTROPE_LIMITS") == "full"
CHANNELS = 240 if FULL else 24
SETTINGS = [  # k, ε, error, the least limit that is accepted, the best mechanism
    (7, 1.0, 0.01, 25_700, 27_104),
    (7, 1.0, 0.003, 298_000, 301_156),
    (4, 0.5, 0.01, 92_000, 93_774),
    (7, 4.0, 0.01, 1_350, 1_566),
    (2, 1.0, 0.01, 11_480, 11_707),
    (5, 2.0, 0.008, 7_560, 7_945),
]


@pytest.mark.parametrize(("k", "epsilon", "error", "least", "reached"), SETTINGS)
def test_limits_meet_the_mechanisms(k: int, epsilon: float, error: float, least: int, reached: int) -> None:
    """In turn is the weaker one; both lie above 0.86 of the mechanism, and their numbers are those they exclude."""
    own = limits.frequencies(Guarantee(epsilon), k=k)
    later = limits.frequencies(Guarantee(epsilon), k=k, interactive=True)
    target = k * error**2
    assert least <= own.people(target) <= reached
    assert 0.97 * least <= later.people(target) <= own.people(target)
    for limit in (own, later):
        assert limit.risk(limit.people(target) - 2) > target * (1 - 1e-6)


# --- each step of the proof


@pytest.mark.parametrize("u", [1e-9, 1e-3, 0.02, 0.6, 30.0, 1e6])
def test_the_fraction_encloses_from_above(u: float) -> None:
    """Against the integral itself in 30 digits; ``hyp2f1`` of scipy fails here."""
    for alpha, beta in ((2.1, 2.1), (3.0, 18.0), (4.3, 25.8), (50.0, 7.0)):
        with mpmath.workdps(30):
            exact = mpmath.hyp2f1(1, alpha, alpha + beta, -1 / mpmath.mpf(u)) / u
        found = float(mean_reciprocal_of_beta(u, alpha, beta))
        assert found >= exact
        assert found <= float(exact) * (1 + (1e-9 if u > 0.01 else 1e-2))
    for alpha, beta in ((900.0, 5400.0), (6e5, 4e6)):  # beyond the reach of mpmath: by Jensen, and the variance
        middle, found = u + alpha / (alpha + beta), float(mean_reciprocal_of_beta(u, alpha, beta))
        assert 1 / middle <= found <= (1 + 1 / alpha) / middle
    assert float(mean_reciprocal_of_beta(0.0, 3.0, 6.0)) == pytest.approx(4.0, rel=1e-9)


@pytest.mark.parametrize("a", [2.1, 4.0, 60.0])
def test_the_information_of_the_prior(a: float) -> None:
    """(a−1)² (Σ E p_i⁻² − (1/m) E (Σ 1/p_i)²), from the moments of a Dirichlet law; for two by quadrature, too."""
    for m in (2, 3, 9):
        total = m * a
        square = (total - 1) * (total - 2) / ((a - 1) * (a - 2))
        product = (total - 1) * (total - 2) / (a - 1) ** 2
        gradient = m * square - (m * square + m * (m - 1) * product) / m
        assert dirichlet_prior_information(m, a) == pytest.approx((a - 1) ** 2 * gradient, rel=1e-9)
    if a == 4.0:
        first = mpmath.quad(lambda p: p ** (a - 1) * (1 - p) ** (a - 1), [0, 1])
        second = mpmath.quad(
            lambda p: p ** (a - 1) * (1 - p) ** (a - 1) * ((a - 1) * (1 / p - 1 / (1 - p))) ** 2, [0, 0.5, 1]
        )
        assert 2 * dirichlet_prior_information(2, a) == pytest.approx(float(second / first), rel=1e-9)


def two_levels(m: int, u: float) -> np.ndarray:
    """All columns with u + 1 on a set and u elsewhere, shape [sets, m]."""
    sets = [chosen for size in range(1, m) for chosen in combinations(range(m), size)]
    columns = np.full((len(sets), m), u)
    for row, chosen in enumerate(sets):
        columns[row, list(chosen)] += 1
    return columns


def information(columns: np.ndarray, laws: np.ndarray) -> np.ndarray:
    """|Pw|²/(w·p) of each column at each law, shape [laws, columns]."""
    apart = np.sum((columns - columns.mean(axis=1, keepdims=True)) ** 2, axis=1)
    return np.asarray(apart / (laws @ columns.T))


def random_channel(rng: np.random.Generator, m: int, epsilon: float) -> np.ndarray:
    """An ε-LDP channel, shape [m, reports]: columns at random within e^ε, at its ends half of the time, made stochastic
    by columns that say the opposite."""
    count = int(rng.integers(1, 9))
    exponent = rng.random((count, m)) if rng.random() < 0.5 else rng.integers(0, 2, (count, m)).astype(float)
    columns = np.exp(epsilon * exponent) * rng.random((count, 1))
    mirrored = [np.roll(column, shift) for column in columns for shift in range(m)]
    drawn = np.array(mirrored if rng.random() < 0.7 else columns)
    left = drawn.sum(axis=0).max() * (1 + (0 if rng.random() < 0.5 else rng.random())) - drawn.sum(axis=0)
    if np.max(left) > 0:
        spread = np.ptp(left) / math.expm1(epsilon)
        drawn = np.vstack([drawn, left - left.min() + max(spread, 1e-12)])
    return np.asarray((drawn / drawn.sum(axis=0)).T)


@pytest.mark.parametrize(("m", "epsilon"), [(2, 1.0), (3, 0.2), (4, 4.0), (5, 2.0), (7, 1.0)])
def test_no_random_channel_says_more_than_the_best_column(m: int, epsilon: float) -> None:
    """Averaged over any laws, convexity and extreme rays alone: no chance is in it. Then the best size by its closed
    enclosure."""
    rng = np.random.default_rng(m)
    laws = rng.dirichlet(np.full(m, 5.0), 300)
    columns = two_levels(m, 1 / math.expm1(epsilon))
    best = float(np.max(information(columns, laws).mean(axis=0) / columns.mean(axis=1)))
    ratios = []
    for _ in range(CHANNELS):
        channel = random_channel(rng, m, epsilon)
        assert np.max(channel.max(axis=0) / channel.min(axis=0)) <= math.exp(epsilon) * (1 + 1e-9)
        ratios.append(float(information(channel.T, laws).mean(axis=0).sum()) / best)
    assert max(ratios) <= 1 + 1e-12
    assert max(ratios) > 0.3  # the channels are no straw men
    exact = max(
        d * (m - d) / m * float(mean_reciprocal_of_beta(1 / math.expm1(epsilon), 5.0 * d, 5.0 * (m - d)))
        / (1 / math.expm1(epsilon) + d / m) for d in range(1, m)
    )  # fmt: skip
    assert independent_trace_bound(
        ChannelColumns.from_guarantee(Guarantee(epsilon), m), 5.0
    ).upper_bound == pytest.approx(exact, rel=1e-9)


def oracle(columns: np.ndarray, law: np.ndarray, eta: float) -> float:
    """The most information of any channel chosen for this law: a linear program over all columns of two levels."""
    m = columns.shape[1]
    apart = np.sum((columns - columns.mean(axis=1, keepdims=True)) ** 2, axis=1)
    gain = np.append(information(columns, law[None])[0], 0.0)
    levels = np.vstack([columns, np.ones(m)])
    far = np.append(apart / (m - 1), 0.0)[None, :]  # the total variation, averaged over pairs
    found = linprog(-gain, A_ub=far, b_ub=[eta], A_eq=levels.T, b_eq=np.ones(m))
    return float(-found.fun)


@pytest.mark.parametrize(
    ("m", "epsilon", "eta"), [(2, 1.0, 1.0), (3, 4.0, 1.0), (4, 0.5, 1.0), (5, 2.0, 1.0), (4, 2.0, 0.2)]
)
def test_the_prices_cover_the_best_channel_at_every_law(m: int, epsilon: float, eta: float) -> None:
    """Even a mechanism that knew the shares, and could choose the channel for them, has less; at sharp corners too."""
    columns, a = ChannelColumns.from_guarantee(Guarantee(epsilon, 0.0, eta), m), 6.0
    levels = two_levels(m, columns.u)
    rng = np.random.default_rng(5)
    draws = 40 if FULL else 8
    laws = np.vstack([rng.dirichlet(np.full(m, shape), draws) for shape in (0.1, 1.0, 6.0, 50.0)] + [np.eye(m)[:1]])
    for box in (1.0, 30.0, 1e4):
        prices, (alpha, beta, gamma) = sufficient_prices(columns, a, box)
        each = alpha + beta * laws + gamma / (prices.v + laws)
        paid = each.sum(axis=1) + prices.price * columns.eta
        most = np.array([oracle(levels, law, columns.eta) for law in laws])
        assert np.all(paid >= most * (1 - 1e-9))
    assert (
        interactive_trace_bound(columns, a)
        <= (1.05 if eta == 1 else 1.25) * independent_trace_bound(columns, a).upper_bound
    )


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 5.0, 12.0, 400.0, math.inf])
@pytest.mark.parametrize("m", [2, 6, 700])
def test_the_weaker_twin_is_weaker_but_not_by_much(m: int, epsilon: float) -> None:
    columns = ChannelColumns.from_guarantee(Guarantee(epsilon, 0.0, 1.0), m)
    for a in (2.5, 20.0, 1e6):
        own, later = independent_trace_bound(columns, a).upper_bound, interactive_trace_bound(columns, a)
        assert own * (1 - 1e-9) <= later <= open_answer_trace(columns, a)
        assert later <= 1.35 * own


# --- no mechanism below it


def linear_risk(channel: np.ndarray, people: int) -> float:
    """The worst risk over all populations of the best linear estimate at the uniform law, shrunk towards 1/k.

    n E|p̂ − p|² = Σ_z m_z |B_z|² − |p|² for an unbiased p̂, exactly; the sum over both is a concave quadratic of p or,
    where the shrinking dominates, largest at a corner: it is evaluated at both.
    """
    k = len(channel)
    mean = channel.mean(axis=0)
    channel, mean = channel[:, mean > 0], mean[mean > 0]
    weighted = channel / mean
    gram = weighted @ channel.T
    if np.linalg.cond(gram) > 1e10:
        return math.inf
    inverse = np.linalg.solve(gram, weighted)  # B, shape [k, reports], with B Kᵀ = 1
    noise = channel @ np.sum(inverse**2, axis=0)  # Σ_z K(z|x) |B_z|²
    laws = np.vstack([np.full(k, 1 / k), np.eye(k), populations(k)])
    variance = (laws @ noise - np.sum(laws**2, axis=1)) / people
    bias = np.sum((laws - 1 / k) ** 2, axis=1)
    kept = np.linspace(0.02, 1, 99)[:, None]
    return float(np.min(np.max(kept**2 * variance + (1 - kept) ** 2 * bias, axis=1)))


def populations(k: int) -> np.ndarray:
    """Uniform on subsets, and halfway to a corner."""
    made = [np.where(np.arange(k) < size, 1 / size, 0.0) for size in range(1, k + 1)]
    made += [0.5 / k + 0.5 * row for row in np.eye(k)]
    return np.array(made)


@pytest.mark.parametrize(("k", "epsilon"), [(2, 1.0), (3, 2.0), (4, 0.5), (7, 1.0), (7, 4.0)])
@pytest.mark.parametrize("people", [20, 1000, 10**6])
def test_no_channel_with_its_best_linear_estimate_beats_a_limit(k: int, epsilon: float, people: int) -> None:
    rng = np.random.default_rng(k)
    own = limits.frequencies(Guarantee(epsilon), k=k).risk(people)
    later = limits.frequencies(Guarantee(epsilon), k=k, interactive=True).risk(people)
    assert 0 < later <= own
    drawn = [random_channel(rng, k, epsilon) for _ in range(CHANNELS)]
    best_sets = [two_levels(k, 1 / math.expm1(epsilon))]
    sizes = [best_sets[0][np.isclose(best_sets[0].sum(axis=1), best_sets[0][-i].sum())] for i in (1, len(best_sets[0]))]
    drawn += [(chosen / chosen.sum(axis=0)).T for chosen in sizes]
    assert min(linear_risk(channel, people) for channel in drawn) >= own


@pytest.mark.parametrize(("k", "epsilon"), [(2, 1.0), (3, 2.0), (7, 1.0), (16, 0.5), (40, 3.0)])
def test_no_mechanism_of_ours_beats_a_limit(k: int, epsilon: float) -> None:
    """With what drawing people adds at the uniform law, where the limit is taken."""
    for people in (1000, 10**5, 10**8):
        own = limits.frequencies(Guarantee(epsilon), k=k).risk(people)
        for option in compare("distribution", epsilon=epsilon, k=k):
            assert k * option.variance / people + (1 - 1 / k) / people >= own


def bayes_risks(channel: np.ndarray, people: int, a: float, laws: np.ndarray) -> np.ndarray:
    """Exact risks, at each law, of the posterior mean under Dirichlet(a) on a lattice: all counts of reports."""
    seen = laws @ channel
    kinds = list(combinations_with_replacement(range(channel.shape[1]), people))
    counts = np.array([[kind.count(z) for z in range(channel.shape[1])] for kind in kinds])
    ways = np.array([math.factorial(people) / math.prod(map(math.factorial, row)) for row in counts.tolist()])
    chances = ways * np.exp(np.log(seen) @ counts.T)  # [laws, counts]
    prior = np.prod(np.maximum(laws, 1e-300) ** (a - 1), axis=1)
    posterior = chances * prior[:, None]
    means = (posterior.T @ laws) / posterior.sum(axis=0)[:, None]
    errors = np.sum((means[None] - laws[:, None]) ** 2, axis=2)
    return np.asarray(np.sum(chances * errors, axis=1))


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 6.0])
@pytest.mark.parametrize("people", [1, 3, 9])
def test_no_bayes_estimate_of_three_shares_beats_a_limit(epsilon: float, people: int) -> None:
    """Not linear, and best for its own prior: the worst population on a lattice, exactly."""
    steps = 24 if FULL else 12
    cells = np.array([(i, j, steps - i - j) for i in range(steps + 1) for j in range(steps + 1 - i)]) / steps
    ratio = math.exp(epsilon)
    shouted = np.where(np.eye(3) > 0, ratio, 1.0)
    channels = [shouted / shouted.sum(axis=0), (1 / shouted) / (1 / shouted).sum(axis=0)]
    limit = limits.frequencies(Guarantee(epsilon), k=3).risk(people)
    for channel in channels:
        for a in (0.5, 1.0, 3.0, 10.0):
            assert np.max(bayes_risks(channel, people, a, cells)) >= limit


# --- when nobody need be asked, and other ends


def test_nobody_need_be_asked() -> None:
    """1/k for every share is off by 1 − 1/k or less."""
    limit = limits.frequencies(Guarantee(1.0), k=10_000)
    assert limit.people(10_000 * 0.0101**2) == 0
    assert limit.people(0.99 * limit.guess_risk) >= 1
    assert limits.mean(Guarantee(1.0), bounds=(-1, 1)).people(1.0) == 0
    assert limits.mean(Guarantee(1.0), bounds=(-1, 1)).people(0.99) >= 1
    with pytest.raises(InputError, match="within reach"):
        limit.people(1e-20)


def test_a_limit_falls_with_people_epsilon_and_total_variation() -> None:
    for interactive in (False, True):
        asked = [limits.frequencies(Guarantee(1.0), k=6, interactive=interactive).risk(n) for n in (1, 10, 1000, 10**6)]
        assert asked == sorted(asked, reverse=True)
        wider = [Guarantee(0.0), Guarantee(0.5), Guarantee(1.0), Guarantee(9.0), Guarantee(math.inf, 0.0, 1.0)]
        told = [limits.frequencies(one, k=6, interactive=interactive).risk(1000) for one in wider]
        assert told == sorted(told, reverse=True)
        capped = [Guarantee(2.0, 0.0, eta) for eta in (0.01, 0.1, 0.3, 0.7)]
        kept = [limits.frequencies(one, k=6, interactive=interactive).risk(1000) for one in capped]
        assert kept == sorted(kept, reverse=True)


@pytest.mark.parametrize("k", [2, 5])
def test_a_delta_is_weaker_and_covered(k: int) -> None:
    loose, tight = Guarantee(1.0, 0.01), Guarantee(1.0)
    for interactive in (False, True):
        given = limits.frequencies(loose, k=k, interactive=interactive)
        assert 0 < given.risk(10_000) <= limits.frequencies(tight, k=k, interactive=interactive).risk(10_000)
    proportion = limits.mean(loose).risk(10_000)
    assert limits.frequencies(loose, k=2).risk(10_000) >= 2 * proportion * (1 - 1e-8)


@pytest.mark.parametrize("privacy", [Guarantee(0.1), Guarantee(1.0), Guarantee(1.0, 0.05), Guarantee(2.0, 0.0, 0.1)])
def test_one_problem_has_one_limit(privacy: Guarantee) -> None:
    """A mean in [−1, 1], by three names; and more may be asked for less: other moments, more dimensions."""
    mean, bounded = limits.mean(privacy, bounds=(-1, 1)), limits.moment_mean(privacy, moment=math.inf)
    ball = limits.ball_mean(privacy, dimension=1)
    for people in (1, 30, 10_000):
        assert mean.risk(people) == bounded.risk(people)
        assert ball.risk(people) == pytest.approx(mean.risk(people), rel=0.25)  # its family of pairs is finer for few
        assert limits.moment_mean(privacy, moment=4).risk(people) >= mean.risk(people)
        assert limits.ball_mean(privacy, dimension=3).risk(people) >= mean.risk(people)
    assert mean.people(0.01) == bounded.people(0.01)
    assert mean.people(1.0) == bounded.people(1.0) == ball.people(1.0) == 0


# --- few people for many categories


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 4.0])
@pytest.mark.parametrize("blocks", [1, 2])
def test_no_channel_says_more_of_a_spike(epsilon: float, blocks: int) -> None:
    """The mutual information of the places and a report, exactly, for random channels and all best subsets."""
    size, rng = 4, np.random.default_rng(blocks)
    k = blocks * size
    for at in (4, 12, 19):
        height = float(SPIKE_HEIGHTS[at])
        places = np.array(np.meshgrid(*[np.arange(size) + size * j for j in range(blocks)])).reshape(blocks, -1).T
        laws = np.full((len(places), k), (1 - height) / k)
        for row, chosen in zip(laws, places, strict=True):
            row[chosen] += height / blocks
        channels = [random_channel(rng, k, epsilon) for _ in range(CHANNELS)]
        for d in range(1, k):
            sets = two_levels(k, 1 / math.expm1(epsilon))
            chosen = sets[np.isclose(sets.sum(axis=1), k / math.expm1(epsilon) + d)]
            channels.append((chosen / chosen.sum(axis=0)).T)
        most = max(shared_information(laws @ channel) for channel in channels)
        assert most <= independent_divergence(epsilon, k)[at] / blocks
        assert most <= report_information(Guarantee(epsilon), k)[at]
        assert most >= 0.4 * independent_divergence(epsilon, k)[at] / blocks  # its worst case is that of one place


def shared_information(rows: np.ndarray) -> float:
    middle = rows.mean(axis=0)
    some = middle > 0
    ratio = rows[:, some] / middle[some]
    return float(np.mean(np.sum(rows[:, some] * np.log(np.where(ratio > 0, ratio, 1.0)), axis=1)))


@pytest.mark.parametrize("people", [1, 2, 5])
def test_no_guess_of_a_place_beats_the_spikes(people: int) -> None:
    """One block, θ = 1, subset selection or randomized response, all reports enumerated: the posterior mean."""
    k, epsilon = 6, 1.5
    ratio = math.exp(epsilon)
    sets = two_levels(k, 1 / (ratio - 1))
    for d in (1, 2):
        chosen = sets[np.isclose(sets.sum(axis=1), k / (ratio - 1) + d)]
        channel = (chosen / chosen.sum(axis=0)).T
        counts = np.array([[one.count(z) for z in range(channel.shape[1])] for one in
                           combinations_with_replacement(range(channel.shape[1]), people)])  # fmt: skip
        ways = np.array([math.factorial(people) / math.prod(map(math.factorial, row)) for row in counts.tolist()])
        chances = ways * np.exp(np.log(channel) @ counts.T)
        exact = 1 - float(np.sum(np.sum(chances**2, axis=0) / chances.sum(axis=0)) / k)
        for interactive in (False, True):
            assert SpikePrior(Guarantee(epsilon), k, interactive).risk(people) <= exact


def test_few_people_do_not_do_for_a_thousand_categories() -> None:
    """1 person before; and the error of a guess is reached by the limit as people become few."""
    assert limits.frequencies(Guarantee(1.0), k=1000).people(1000 * 0.01**2) > 300
    for interactive in (False, True):
        limit = limits.frequencies(Guarantee(1.0), k=10_000, interactive=interactive)
        assert limit.people(10_000 * 0.0099**2) > 3
        assert 0.999 * limit.guess_risk < limit.risk(1) <= limit.guess_risk


# --- means in a ball


@pytest.mark.parametrize("dimension", [2, 3, 10, 200])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 6.0])
def test_the_longest_mean_of_a_report(dimension: int, epsilon: float) -> None:
    """Against the cap of every height by quadrature; no height does better, the best one as well."""
    half = (dimension - 3) / 2
    law = stats.beta(half + 1, half + 1, loc=-1, scale=2)  # of one coordinate
    best = 0.0
    for tau in np.linspace(0, 0.999, 400):
        share = law.sf(tau)
        first = (1 - tau * tau) ** (half + 1) * law.pdf(0.0) / (2 * half + 2)
        best = max(best, math.expm1(epsilon) * first / (1 + math.expm1(epsilon) * share))
    assert best <= largest_report_mean(epsilon, dimension) <= best * (1 + 1e-3)


@pytest.mark.parametrize("dimension", [2, 5, 30])
def test_the_limit_of_a_ball_meets_a_random_cap(dimension: int) -> None:
    """A cap around the value, drawn back to be unbiased, errs by (1/M² − |μ|²)/n: at most 1/(n M²), or 1 of a guess."""
    for epsilon in (0.5, 1.0, 4.0):
        limit, reached = (
            limits.ball_mean(Guarantee(epsilon), dimension=dimension),
            largest_report_mean(epsilon, dimension) ** -2,
        )
        for people in (1, 100, 10**5):
            assert limit.by_sphere(people) <= min(reached / people, 1.0)
        assert limit.by_sphere(10**12) >= 0.98 * reached / 10**12
    assert limits.ball_mean(Guarantee(1.0, 0.01), dimension=dimension).by_sphere(100) == 0
    few = limits.ball_mean(Guarantee(1.0), dimension=dimension, radius=3.0)
    assert few.by_sphere(1000) == pytest.approx(
        9 * limits.ball_mean(Guarantee(1.0), dimension=dimension).by_sphere(1000), rel=1e-9
    )
