"""Lower bounds are below the truth as often as they say, and close to it where runs are many.

TIGHTROPE_AUDITS=2000 repeats each law so often; by default fewer. All draws are repeatable, so nothing is left to luck;
and were they not: with a confidence of 95 % the number of audits that may be wrong is exceeded once in 1e9 times.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from scipy import stats

import tightrope as tr
from tests.randomness.keyed import InsecureKeyed
from tightrope.audit import score_bounds
from tightrope.audit.findings import Finding, clopper_pearson_lower, lower_bounds_by_count, upper_bounds_by_count
from tightrope.numerics.arrays import Floats

AUDITS = int(os.environ.get("TIGHTROPE_AUDITS", "150"))
RUNS = 400
BY_LUCK = 1e-9
CONFIDENCE = 0.95
DELTAS = (0.0, 1e-3, 1e-2, 0.1)
RATES = np.linspace(0.01, 0.99, 50)


@dataclass(frozen=True)
class Pair:
    """Two laws of known loss: scores of the first and of the second input."""

    loss: tr.PrivacyLoss
    first: Callable[[np.random.Generator, int], Floats]
    second: Callable[[np.random.Generator, int], Floats]
    delta: float
    """Where ε is compared."""


def _answers(share: float) -> Callable[[np.random.Generator, int], Floats]:
    return lambda draw, n: (draw.random(n) < share).astype(float)


PAIRS = {
    "Gaussian": Pair(
        tr.gaussian(scale=1).loss, lambda draw, n: draw.normal(1, 1, n), lambda draw, n: draw.normal(0, 1, n), 0.01
    ),
    "Laplace": Pair(
        tr.laplace(scale=1).loss, lambda draw, n: draw.laplace(1, 1, n), lambda draw, n: draw.laplace(0, 1, n), 0.0
    ),
    "randomized response": Pair(
        tr.randomized_response(epsilon=1).loss, _answers(math.e / (1 + math.e)), _answers(1 / (1 + math.e)), 0.0
    ),
}


def audited(pair: Pair, draw: np.random.Generator, runs: int, claim: list[tuple[float, float]] | None) -> Finding:
    one, other = pair.first(draw, runs), pair.second(draw, runs)
    halves = InsecureKeyed(int(draw.integers(1 << 60)))
    return tr.audit.scores(one, other, confidence=CONFIDENCE, claim=claim, randomness=halves)


def wrong(pair: Pair, found: Finding, allowed: Floats, epsilons: list[float]) -> bool:
    """Whether anything that was found is above the truth: ε, δ, total variation or the curve."""
    curve = [found.true_positive_rate(rate) for rate in RATES]
    above = [found.epsilon(delta) > most for delta, most in zip(DELTAS, epsilons, strict=True)]
    return any(above) or bool((curve > allowed).any()) or found.total_variation() > pair.loss.total_variation()


def failures(pair: Pair, audits: int, claim: list[tuple[float, float]] | None = None) -> int:
    draw = np.random.default_rng(7)
    allowed = 1 - pair.loss.tradeoff(RATES) + 1e-9
    epsilons = [pair.loss.epsilon(delta) if delta or math.isfinite(largest(pair)) else math.inf for delta in DELTAS]
    return sum(wrong(pair, audited(pair, draw, RUNS, claim), allowed, epsilons) for _ in range(audits))


def largest(pair: Pair) -> float:
    return math.inf if pair is PAIRS["Gaussian"] else 1.0 + 1e-9


def most_failures(audits: int) -> int:
    return int(stats.binom.isf(BY_LUCK, audits, 1 - CONFIDENCE))


@pytest.mark.parametrize("claim", [None, [(0.5, 0.05)]], ids=["every threshold", "held out"])
@pytest.mark.parametrize("name", PAIRS)
def test_what_is_found_is_below_the_truth(name: str, claim: list[tuple[float, float]] | None) -> None:
    assert failures(PAIRS[name], AUDITS, claim) <= most_failures(AUDITS)


def a_deviation_below(runs: int, _: float) -> Floats:
    """The share that was seen less its standard deviation."""
    share = np.arange(runs + 1) / runs
    return np.asarray(share - np.sqrt(share * (1 - share) / runs))


def test_error_bars_of_single_thresholds_would_be_seen_to_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    """What an audit must not do: to look at all thresholds, and to say of the best what holds for one."""
    monkeypatch.setattr(score_bounds, "lower_bounds_by_count", a_deviation_below)
    monkeypatch.setattr(
        score_bounds, "upper_bounds_by_count", lambda runs, failure: 1 - a_deviation_below(runs, failure)[::-1]
    )
    assert failures(PAIRS["Gaussian"], 150) > 60 > most_failures(150)


@pytest.mark.slow
@pytest.mark.parametrize("name", PAIRS)
def test_a_million_runs_come_within_a_tenth_of_the_truth(name: str) -> None:
    pair = PAIRS[name]
    found = audited(pair, np.random.default_rng(11), 1_000_000, None)
    truth = pair.loss.epsilon(pair.delta)
    assert 0.9 * truth <= found.epsilon(pair.delta) <= truth
    assert 0.9 * pair.loss.total_variation() <= found.total_variation() <= pair.loss.total_variation()


@pytest.mark.parametrize("name", PAIRS)
def test_a_claim_that_is_a_fifth_too_good_is_refuted(name: str) -> None:
    pair = PAIRS[name]
    claim = [(0.8 * pair.loss.epsilon(pair.delta), pair.delta)]
    found = audited(pair, np.random.default_rng(13), 150_000, claim)
    verdict = found.against(claim)
    assert verdict.refuted
    assert str(verdict).startswith("refuted at 95 % confidence: claimed delta(")
    assert not found.against(pair.loss).refuted
    assert not found.against([(pair.loss.epsilon(pair.delta), pair.delta)]).refuted


@pytest.mark.parametrize("runs, failure", [(1, 0.01), (7, 0.3), (500, 0.025), (100_000, 1e-12)])
def test_a_band_is_below_the_share_seen_and_grows(runs: int, failure: float) -> None:
    band = lower_bounds_by_count(runs, failure)
    counts = np.arange(runs + 1)
    assert band[0] == 0
    assert (np.diff(band) >= 0).all()
    assert (band <= counts / runs).all()
    assert np.array_equal(upper_bounds_by_count(runs, failure), 1 - band[::-1])


@pytest.mark.parametrize(
    "runs, count, failure", [(50, 1, 0.01), (50, 50, 1e-6), (10_000, 3, 1e-9), (10_000, 9_990, 0.2)]
)
def test_clopper_and_pearson_from_binomials(runs: int, count: int, failure: float) -> None:
    """At the bound, so many are seen with probability ``failure``, not oftener."""
    bound = float(clopper_pearson_lower(np.array([count]), runs, failure)[0])
    assert stats.binom.sf(count - 1, runs, bound) <= failure
    assert stats.binom.sf(count - 1, runs, bound * (1 + 1e-7)) > failure or bound * (1 + 1e-7) >= 1


def test_the_band_holds_for_all_thresholds_together() -> None:
    """On uniform scores the bound at t must be below 1 − t for every t: 4 000 samples, those that fail counted."""
    draw, runs, failure = np.random.default_rng(3), 60, 0.1
    band = lower_bounds_by_count(runs, failure)
    ordered = np.sort(draw.random((4_000, runs)), axis=1)
    above = np.arange(runs, 0, -1)  # just below each score
    missed = int((band[above] > 1 - ordered).any(axis=1).sum())
    assert 0 < missed <= stats.binom.isf(BY_LUCK, 4_000, failure)
