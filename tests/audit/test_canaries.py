"""One run with many canaries: the bound against the paper's number, against exact attacks, and against all attacks."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import optimize, sparse, special, stats

import tightrope as tr
from tightrope.audit import OneRun, one_run
from tightrope.errors import InputError
from tightrope.randomness.bits import InsecureSeeded

BY_LUCK = 1e-9


def printed(canaries: int, guesses: int, correct: int, epsilon: float, delta: float) -> float:
    """Corollary 5.4 as it is printed."""
    share = 1 / (1 + math.exp(-epsilon))
    fewer = np.arange(correct + 1)
    reached = stats.binom.sf(correct - fewer - 1, guesses, share)
    steepest = max((reached[1:] - reached[0]) / fewer[1:], default=0.0)
    return min(1.0, float(reached[0] + 2 * canaries * delta * steepest))


def test_the_paper_s_example_and_more_from_the_same_guesses() -> None:
    """Appendix D: 1 000 canaries, 100 guesses, 75 right, δ = 1e-4, 95 %: ε ≥ 0.673."""
    assert printed(1000, 100, 75, 0.673, 1e-4) == pytest.approx(0.05, rel=0.002)
    assert OneRun(1000, 100, 75, 0.95).epsilon(1e-4) == pytest.approx(0.6956, abs=5e-4)


@pytest.mark.parametrize("guesses", [1, 3, 30, 150])
@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0, 4.0])
def test_it_is_below_the_printed_bound_wherever_anything_is_refuted(guesses: int, epsilon: float) -> None:
    for correct, delta in itertools.product(range(1, guesses + 1), (0.0, 1e-6, 1e-4)):
        ours = OneRun(2 * guesses, guesses, correct).p_value(epsilon, delta)
        theirs = printed(2 * guesses, guesses, correct, epsilon, delta)
        assert ours <= theirs * (1 + 1e-8) or theirs > 0.8
        if delta == 0:
            assert ours == pytest.approx(theirs, rel=1e-8)


def test_far_below_the_mean_the_printed_bound_is_exceeded() -> None:
    """Two canaries, two guesses, one right: laws a, b, b, c of both, either one and none right, by hand."""
    epsilon, delta = 2.0, 0.001
    gamma = math.exp(epsilon)
    b = (1 + delta / gamma) / (gamma + 2 + 1 / gamma)
    a, c = gamma * b, (b - delta) / gamma
    assert a + 2 * b + c == pytest.approx(1, abs=1e-15)
    lost = max(a - gamma * b, 0) + max(b - gamma * c, 0), max(b - gamma * a, 0) + max(c - gamma * b, 0)
    assert sum(lost) == pytest.approx(delta, rel=1e-9)  # (ε, δ)-private: one flip turns a into b and b into c
    assert 1 - c > printed(2, 2, 1, epsilon, delta) + 5e-5
    assert 1 - c == pytest.approx(OneRun(2, 2, 1).p_value(epsilon, delta), abs=1e-8)


def most_probable(epsilon: float, delta: float, canaries: int, guesses: int, correct: int) -> float:
    """The most that any (ε, δ)-private attack reaches, by linear programming over all of them.

    A run is what it guesses: P(t | s) for each way s to include canaries and each t in {−1, 0, 1}^m with so many
    guesses. For two neighboring s, Σ_t (P(t|s) − e^ε P(t|s'))₊ ≤ δ, with a slack for each t.
    """
    worlds = list(itertools.product([-1, 1], repeat=canaries))
    outputs = [t for t in itertools.product([-1, 0, 1], repeat=canaries) if sum(map(abs, t)) == guesses]
    edges = [
        (i, j)
        for i, s in enumerate(worlds)
        for j, r in enumerate(worlds)
        if sum(a != b for a, b in zip(s, r, strict=True)) == 1
    ]
    laws, slacks = len(worlds) * len(outputs), len(edges) * len(outputs)
    right = [sum(a == b for a, b in zip(s, t, strict=True)) >= correct for s in worlds for t in outputs]
    gain = np.concatenate([np.array(right, dtype=float) / len(worlds), np.zeros(slacks)])
    width = len(outputs)
    differences = sparse.lil_matrix((slacks + len(edges), laws + slacks))
    for k, (i, j) in enumerate(edges):
        for t in range(width):
            row = k * width + t
            differences[row, i * width + t] = 1
            differences[row, j * width + t] = -math.exp(epsilon)
            differences[row, laws + row] = -1
        differences[slacks + k, laws + k * width : laws + (k + 1) * width] = 1
    rows = np.concatenate([np.zeros(slacks), np.full(len(edges), delta)])
    ones = sparse.lil_matrix((len(worlds), laws + slacks))
    for i in range(len(worlds)):
        ones[i, i * width : (i + 1) * width] = 1
    found = optimize.linprog(
        -gain, A_ub=differences.tocsr(), b_ub=rows, A_eq=ones.tocsr(), b_eq=np.ones(len(worlds)), method="highs"
    )
    assert found.status == 0
    return float(-found.fun)


@pytest.mark.parametrize("canaries, guesses", [(1, 1), (2, 1), (2, 2), (3, 1), (3, 2), (3, 3)])
@pytest.mark.parametrize("epsilon, delta", [(0.0, 0.01), (0.5, 0.0), (0.5, 0.03), (2.0, 0.001), (1.0, 0.2)])
def test_no_private_attack_reaches_more(canaries: int, guesses: int, epsilon: float, delta: float) -> None:
    for correct in range(guesses + 1):
        best = most_probable(epsilon, delta, canaries, guesses, correct)
        ours = OneRun(canaries, guesses, correct).p_value(epsilon, delta)
        assert best <= ours + 1e-7
        if delta < 0.01:
            assert best == pytest.approx(ours, abs=1e-7)  # which some attack reaches


def most_probable_alike(epsilon: float, delta: float, canaries: int, guesses: int, correct: int) -> float:
    """The same where all canaries and both answers are treated alike: p_w is the chance of w right guesses."""
    gamma, right = math.exp(epsilon), np.arange(guesses)
    up, down = sparse.lil_matrix((guesses, guesses + 1)), sparse.lil_matrix((guesses, guesses + 1))
    up[right, right + 1], up[right, right] = right + 1, -gamma * (guesses - right)
    down[right, right], down[right, right + 1] = guesses - right, -gamma * (right + 1)
    slack = -sparse.identity(2 * guesses)
    total = sparse.hstack([sparse.csr_matrix((1, guesses + 1)), np.ones((1, 2 * guesses))])
    rows = sparse.vstack([sparse.hstack([sparse.vstack([up, down]), slack]), total]).tocsr()
    gain = np.append((np.arange(guesses + 1) >= correct).astype(float), np.zeros(2 * guesses))
    found = optimize.linprog(
        -gain,
        A_ub=rows,
        b_ub=np.append(np.zeros(2 * guesses), canaries * delta),
        A_eq=np.append(np.ones(guesses + 1), np.zeros(2 * guesses))[None, :],
        b_eq=[1.0],
        method="highs",
    )
    assert found.status == 0
    return float(-found.fun)


@pytest.mark.parametrize("canaries, guesses", [(20, 20), (60, 15), (200, 40)])
@pytest.mark.parametrize("epsilon, delta", [(0.0, 1e-4), (0.4, 1e-3), (1.5, 1e-5)])
def test_many_canaries_that_are_treated_alike(canaries: int, guesses: int, epsilon: float, delta: float) -> None:
    for correct in range(guesses // 2, guesses + 1, 3):
        best = most_probable_alike(epsilon, delta, canaries, guesses, correct)
        ours = OneRun(canaries, guesses, correct).p_value(epsilon, delta)
        assert best <= ours + 1e-7
        if canaries * delta < 0.01:
            assert best == pytest.approx(ours, abs=1e-7)


def test_both_programs_agree() -> None:
    for correct in (1, 2, 3):
        assert most_probable_alike(0.5, 0.03, 3, 3, correct) == pytest.approx(most_probable(0.5, 0.03, 3, 3, correct))
        assert most_probable_alike(1.0, 0.2, 3, 2, 2) == pytest.approx(most_probable(1.0, 0.2, 3, 2, 2))


def test_without_its_term_for_delta_the_bound_would_be_wrong() -> None:
    best = most_probable(0.5, 0.03, 3, 3, 3)
    assert best > OneRun(3, 3, 3).p_value(0.5, 0.0) + 0.02


@pytest.mark.parametrize("epsilon, delta", [(0.2, 0.01), (1.0, 1e-4)])
def test_attacks_that_are_known_exactly(epsilon: float, delta: float) -> None:
    """Everything is told with probability δ; or each canary is, for itself."""
    canaries, share = 60, special.expit(epsilon)
    for correct in range(canaries + 1):
        bound = OneRun(canaries, canaries, correct).p_value(epsilon, delta)
        honest = stats.binom.sf(correct - 1, canaries, share)
        assert delta + (1 - delta) * honest <= bound + 1e-12
        assert stats.binom.sf(correct - 1, canaries, delta + (1 - delta) * share) <= bound + 1e-12


def reports(draw: np.random.Generator, canaries: int, epsilon: float) -> tuple[np.ndarray, np.ndarray]:
    included = draw.random(canaries) < 0.5
    kept = draw.random(canaries) < special.expit(epsilon)
    return np.where(kept, included, ~included).astype(float), included


def test_it_holds_as_often_as_it_says_and_comes_near() -> None:
    """1 000 runs of randomized response, of which each is wrong with probability 5 % at most."""
    draw, found, lots = np.random.default_rng(5), [], InsecureSeeded(5)
    for _ in range(1_000):
        scores, included = reports(draw, 400, 1.0)
        most = int(scores.sum())
        guesses = 2 * min(most, 400 - most, 150)
        found.append(one_run(scores, included, guesses=guesses, confidence=0.95, randomness=lots))
    wrong = sum(one.p_value(1.0, 0.0) < 0.05 for one in found)
    assert 0 < wrong <= stats.binom.isf(BY_LUCK, 1_000, 0.05)
    assert 0.5 < np.median([one.epsilon(0.0) for one in found[:50]]) < 1.0


def test_a_claim_is_refuted_or_what_could_be_seen_is_said() -> None:
    draw, lots = np.random.default_rng(7), InsecureSeeded(7)
    found = one_run(*reports(draw, 2_000, 2.0), guesses=1_900, randomness=lots)
    assert found.against(tr.Budget(epsilon=1, delta=1e-6)).refuted
    spared = found.against(tr.Budget(epsilon=2, delta=1e-6))
    seen = spared.least_detectable["randomized response"]
    assert not spared.refuted and 2 < seen < 3
    assert str(spared).endswith("(randomized response)")
    again = (one_run(*reports(draw, 2_000, seen), guesses=1_900, randomness=lots) for _ in range(80))
    refuted = sum(one.against([(2, 1e-6)]).refuted for one in again)
    assert refuted > stats.binom.ppf(1e-6, 80, 0.5)
    assert found.delta(1.0) > 0 and found.against([(1, 0)]).proven_delta == found.delta(1.0)


@pytest.mark.parametrize(
    "scores, included, guesses",
    [
        ([1.0, 2.0], [1], 1),
        ([1.0, math.nan], [1, 0], 1),
        ([1.0, 2.0], [1, 3], 1),
        ([1.0, 2.0], [1, 0], 3),
        ([1.0], [1], 0),
        (["a"], [1], 1),
        ([1.0], ["a"], 1),
    ],
)
def test_what_is_no_run_is_refused(scores: list[float], included: list[int], guesses: int) -> None:
    with pytest.raises(InputError):
        one_run(scores, included, guesses=guesses)


@pytest.mark.parametrize("guesses", [1, 60, 400])
def test_equal_scores_tell_nothing_however_the_canaries_are_listed(guesses: int) -> None:
    """By chance it is seen otherwise once in 10¹² times."""
    included = np.repeat([True, False], 200)
    for scores in (np.zeros(400), np.full(400, np.inf), np.tile([1.0, 0.0], 200)):
        found = one_run(scores, included, guesses=guesses, confidence=1 - 1e-12)
        assert found.epsilon(0.0) == 0.0
