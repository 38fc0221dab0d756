"""Findings, verdicts and what could have been seen; scores that are odd; bad input."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

import tightrope as tr
from tightrope.audit.findings import (
    REFERENCE_PAIRS,
    Rates,
    claimed_points,
    concave_hull,
    least_detectable,
    probability_to_refute,
)
from tightrope.errors import InputError

ONE = np.arange(1_000.0)


def test_laws_that_are_equal_give_nothing_away() -> None:
    found = tr.audit.scores(ONE, ONE)
    assert (found.epsilon(0), found.delta(0), found.total_variation()) == (0, 0, 0)
    assert found.true_positive_rate(0.3) == pytest.approx(0.3)


def test_laws_that_never_meet_give_everything_away() -> None:
    found = tr.audit.scores(ONE + 1_000, ONE)
    assert found.total_variation() > 0.97 and found.epsilon(0.5) > 3
    assert found.delta(2.0) > 0.85 and found.tradeoff(0.05) < 0.03


def test_scores_may_be_infinite_equal_and_of_unequal_number() -> None:
    found = tr.audit.scores([math.inf] * 300 + [0] * 200, [-math.inf] * 90 + [0] * 10)
    assert 0.6 < found.total_variation() < 1 - 0.4 * 0.1
    assert found.runs == (500, 100)


def test_both_directions_count() -> None:
    """The second input alone gives something away: P({score ≤ t}) is what is small."""
    first, second = [1.0] * 20_000, [1.0] * 18_000 + [0.0] * 2_000
    one, other = tr.audit.scores(first, second), tr.audit.scores(np.negative(second), np.negative(first))
    assert one.epsilon(0.0) == pytest.approx(other.epsilon(0.0), rel=1e-9)
    assert one.epsilon(0.0) > 4


def test_the_order_of_runs_does_not_matter_without_a_claim() -> None:
    shuffled = np.random.default_rng(1).permutation(ONE)
    one, other = tr.audit.scores(ONE, ONE - 300), tr.audit.scores(shuffled, shuffled - 300)
    assert one.epsilon(0.01) == other.epsilon(0.01)


def test_a_hull_is_the_least_concave_function_above() -> None:
    draw = np.random.default_rng(2)
    x = np.sort(draw.random(3_000))
    y = np.sqrt(x) - 0.1 * draw.random(3_000)
    corners, heights = concave_hull(x, y)
    assert (np.interp(x, corners, heights) >= y - 1e-15).all()
    assert (np.diff(np.diff(heights) / np.diff(corners)) < 1e-9).all()
    assert (corners[0], corners[-1]) == (x[0], x[-1]) and set(corners) <= set(x)


def test_epsilon_and_delta_agree() -> None:
    rates = Rates.from_events(np.array([0.1]), np.array([0.5]))
    assert rates.epsilon(0.2) == pytest.approx(math.log(3))
    assert rates.delta(math.log(3)) == pytest.approx(0.2)
    assert rates.delta(0.0) == pytest.approx(0.4)


@pytest.mark.parametrize("law", REFERENCE_PAIRS, ids=lambda law: law.name)
@pytest.mark.parametrize("points", [((1.0, 0.01),), ((0.0, 0.2),)], ids=["epsilon", "total variation"])
def test_what_could_have_been_seen_is_seen_half_of_the_time(law, points) -> None:  # type: ignore[no-untyped-def]
    """Audits of the law at that very size: refuted so often that less than ½ is excluded, and not nearly always."""
    runs, failure, draw, audits = (600, 600), 0.01, np.random.default_rng(9), 80
    least = least_detectable(law, points, runs, failure)
    delta = points[0][1] if points[0][0] else None
    size = _size(law, least, delta)
    assert probability_to_refute(law.events(size, delta), points, runs, failure) >= 0.5 - 1e-3
    refuted = sum(_refuted(law.name, size, delta or 0.0, points, draw) for _ in range(audits))
    assert refuted > stats.binom.ppf(1e-6, audits, 0.5)
    assert probability_to_refute(law.events(0.8 * size, delta), points, runs, failure) < 0.5


def _size(law, number: float, delta: float | None) -> float:  # type: ignore[no-untyped-def]
    low, high = 1e-6, 64.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if law.privacy(middle, delta) >= number else (middle, high)
    return high


def _refuted(name: str, size: float, leak: float, points, draw: np.random.Generator) -> bool:  # type: ignore[no-untyped-def]
    if name == "Laplace":
        one, other = draw.laplace(size, 1, 600), draw.laplace(0, 1, 600)
    elif name == "Gaussian":
        one, other = draw.normal(size, 1, 600), draw.normal(0, 1, 600)
    else:
        true = leak + (1 - leak) / (1 + math.exp(-size))
        one = (draw.random(600) < true).astype(float)
        other = (draw.random(600) < (1 - leak) / (1 + math.exp(size))).astype(float)
    found = tr.audit.scores(one, other)
    return any(found.delta(epsilon) > delta for epsilon, delta in points)


def test_more_runs_see_more() -> None:
    seen = [least_detectable(REFERENCE_PAIRS[0], ((1.0, 0.0),), (n, n), 0.01) for n in (100, 1_000, 100_000)]
    assert seen[0] > seen[1] > seen[2] > 1.0
    assert (
        least_detectable(REFERENCE_PAIRS[2], ((1.0, 0.0),), (1_000, 1_000), 0.01) == math.inf
    )  # no Gaussian has δ = 0


def test_claims_are_points_rounded_up() -> None:
    for asked in ("0.1", "0.3"):
        epsilon, delta = claimed_points(tr.Budget(epsilon=asked, delta=asked))[0]
        assert Fraction(epsilon) >= Fraction(asked) and Fraction(delta) >= Fraction(asked)
    assert claimed_points(tr.Guarantee(1.0, 0.01, 0.3)) == ((1.0, 0.01), (0.0, 0.3))
    assert claimed_points(tr.Guarantee(math.inf, 0.01, 0.3)) == ((0.0, 0.3),)
    loss = tr.laplace(scale=1).loss
    assert claimed_points(loss)[0] == (0.0, loss.delta(0.0))


@pytest.mark.parametrize("claim", [None, 3, "1", [], [(1, 2, 3)], [(1, 1.5)], tr.Budget(tradeoff=lambda t: 1 - t)])
def test_what_is_no_claim_is_refused(claim) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InputError):
        tr.audit.scores(ONE, ONE).against(claim)


@pytest.mark.parametrize("bad", [[], [[1.0, 2.0]], [math.nan], ["a"], 3.0])
def test_what_are_no_scores_is_refused_without_a_value(bad) -> None:  # type: ignore[no-untyped-def]
    for pair in ((bad, [1.0]), ([1.0], bad)):
        with pytest.raises(InputError) as refused:
            tr.audit.scores(*pair)
        assert "'a'" not in str(refused.value)


@pytest.mark.parametrize("confidence", [0, 1, 1 - 1e-16, math.nan, "x"])
def test_confidences_are_between_0_and_1(confidence) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InputError):
        tr.audit.scores([1.0], [0.0], confidence=confidence)


def test_a_few_runs_say_little_and_nothing_wrong() -> None:
    found = tr.audit.scores([1.0], [0.0], claim=[(1, 0.1)])
    assert found.total_variation() == 0
    assert str(found.against([(1, 0.1)])) == "not refuted at 99 % confidence; this test has no power; use more runs"
