"""What no noise for several releases can undercut: exact tests of the recursion, and attacks by other noise."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tightrope as tr
from tightrope.errors import InsufficientBudgetError
from tightrope.noise.composed.candidates import CompositionProblem
from tightrope.noise.composed.composed_bound import ComposedBound, CountedTails
from tightrope.noise.composed.composed_curve import ReleaseLosses, normalize_half_weights
from tightrope.noise.composed.composed_noise import composed_noise
from tightrope.noise.program.certificate import CostBound
from tightrope.noise.program.request import ErrorCost, PrivacyTarget

USUAL = tr.Budget(epsilon=1, delta=1e-6)


def bound(budget, releases, sensitivity=1, cost="squared"):
    return ComposedBound(
        CostBound(PrivacyTarget.from_budget(budget), sensitivity, ErrorCost.from_argument(cost)), releases
    )


def signed_counts(count, up, down):
    """Exact probabilities of −count, …, count, for a sum of steps +1, 0, −1."""
    weights = [Fraction(1)]
    for _ in range(count):
        longer = [Fraction(0)] * (len(weights) + 2)
        for index, weight in enumerate(weights):
            for move, step in enumerate((down, 1 - up - down, up)):
                longer[index + move] += weight * step
        weights = longer
    return weights


def divergence(count, rate, other, gamma):
    """E_γ between the signed counts of two tables, in rationals: at least the half-lines that the bound uses."""
    weights = signed_counts(count, Fraction(rate), Fraction(other))
    return sum(max(p - gamma * q, Fraction(0)) for p, q in zip(weights, weights[::-1], strict=True))


def test_ten_answers_at_the_usual_budget():
    """The average of ten answers gives 18.4; counting beyond two thresholds, 106.39; the sum of scores, 142.36."""
    assert 106.39 < bound(USUAL, 10).lower_bound < 106.40
    found = tr.least_noise(USUAL, releases=10, cost="squared").certificate
    assert 142.36 < found.lower < 142.37
    assert 158.59 < found.upper < 158.61
    assert found.argument.kind == "theorem"
    assert found.argument.numbers["count"] == 10


@pytest.mark.parametrize(("releases", "least"), [(2, 0.98), (3, 0.92), (10, 0.89), (50, 0.92), (1000, 0.91)])
def test_the_gap_is_stated(releases, least):
    """Variance: 1.4 % at two releases, 8 to 12 % from ten to a thousand."""
    found = tr.least_noise(USUAL, releases=releases, cost="squared").certificate
    assert least <= found.lower / found.upper <= 1


@pytest.mark.parametrize("budget", [USUAL, tr.Budget(epsilon=2, delta=0.1), tr.Budget(points=[(1, 1e-6), (0.3, 1e-3)])])
@pytest.mark.parametrize("cost", ["absolute", "squared"])
def test_one_release_is_the_closed_form(budget, cost):
    single = CostBound(PrivacyTarget.from_budget(budget), 1, ErrorCost.from_argument(cost)).lower_bound
    assert bound(budget, 1, cost=cost).lower_bound == pytest.approx(single, rel=1e-11)


def test_without_delta_it_is_the_geometric_law():
    """k releases are (ε, 0) exactly where each is (ε/k, 0): the bound is met."""
    found = tr.least_noise(tr.Budget(epsilon=1, delta=0), releases=5, cost="squared").certificate
    assert found.gap < 1e-9


@pytest.mark.parametrize("count", [2, 7])
@pytest.mark.parametrize("rate", [0.5, 0.2, 1e-3])
def test_the_next_tail_is_the_least_that_is_private(count, rate):
    """In rationals: 1 − 10⁻⁹ times the next tail breaks a point, 1 + 10⁻⁹ times it breaks none."""
    points = ((1.0, 1e-4), (0.2, 0.01))
    found = CountedTails(points, count).next_tail(rate)
    exact = [(Fraction(math.exp(e)), Fraction(d)) for e, d in points]

    def worst(other):
        return max(divergence(count, rate, other, g) - d for g, d in exact)

    if found == 0:
        assert worst(1e-12) <= 0
        return
    assert worst(found * (1 - 1e-9)) > 0 >= worst(found * (1 + 1e-9))


@pytest.mark.parametrize(
    ("delta", "least"), [(1e-6, (106.39, 232.9, 595.1, 1193.4)), (1e-4, (66.18, 135.0, 339.3, 678.6))]
)
def test_the_values_of_the_theory(delta, least):
    budget = tr.Budget(epsilon=1, delta=delta)
    for count, value in zip((10, 20, 50, 100), least, strict=True):
        assert value < bound(budget, count).lower_bound < value + 0.1


def test_many_releases_cost_two_thirds_of_gaussian_noise():
    """As releases become many, the variance is at least (2/3) k/μ²."""
    budget = tr.Budget(epsilon=1, delta=1e-6)
    multiplier = tr.calibrate(lambda scale: tr.gaussian(scale=scale).loss, budget).parameter  # 1/μ for one release
    assert bound(budget, 200).lower_bound / (200 * multiplier**2) == pytest.approx(2 / 3, rel=0.01)


@given(st.floats(0.05, 4), st.floats(-9, -0.7), st.integers(1, 12), st.floats(0.01, 0.5), st.floats(0.01, 0.5))
@settings(deadline=None, max_examples=100)
def test_the_recursion_rises_and_is_never_above(epsilon, exponent, count, first, second):
    tails = CountedTails(((epsilon, 10**exponent),), count)
    low, high = sorted((first, second))
    assert 0 <= tails.next_tail(low) <= tails.next_tail(high) <= high


def shapes(sensitivity):
    """Laws of many unimodal shapes, as weights of 0, 1, … at a size."""
    rng, x = np.random.default_rng(100 * sensitivity), np.arange(60 * sensitivity)
    for _ in range(8):
        power, flat = rng.uniform(0.7, 2.2), rng.integers(0, 3 * sensitivity)
        yield lambda size, power=power, flat=flat: np.exp(-((np.maximum(x - flat, 0) / size) ** power))


@pytest.mark.parametrize(("releases", "sensitivity"), [(2, 1), (3, 2), (4, 3), (8, 1)])
@pytest.mark.parametrize("cost", ["absolute", "squared", lambda x: min(x, 5.0)])
def test_no_noise_beats_it(releases, sensitivity, cost):
    budget = tr.Budget(epsilon=2, delta=0.01)
    least = bound(budget, releases, sensitivity, cost).lower_bound
    question = CompositionProblem(
        PrivacyTarget.from_budget(budget).points, releases, sensitivity, ErrorCost.from_argument(cost)
    )
    step, found = question.lattice_step(1e-5), 0
    for law in shapes(sensitivity):
        try:
            size = question.least_size(
                lambda size, law=law: ReleaseLosses.from_weights(normalize_half_weights(law(size)), sensitivity, step),
                3.0,
                1e-6,
            )
        except InsufficientBudgetError:
            continue
        found += 1
        assert question.cost_of_weights(normalize_half_weights(law(size))) >= least * (
            1 - 1e-4
        )  # sizes are searched in floats
    assert found >= 4


@pytest.mark.parametrize(("releases", "sensitivity"), [(2, 1), (2, 3), (5, 2), (12, 5)])
def test_below_the_best_noise_found(releases, sensitivity):
    for cost in ("absolute", "squared"):
        found = composed_noise(USUAL, releases=releases, sensitivity=sensitivity, cost=cost).cost
        assert found * 0.5 < bound(USUAL, releases, sensitivity, cost).lower_bound <= found


def test_groups_of_releases():
    """Many releases are counted in groups: the bound per release stays, and other costs keep what 200 prove."""
    few, many = bound(USUAL, 200), bound(USUAL, 2000)
    assert many.releases_per_sum == 10
    assert many.lower_bound == pytest.approx(10 * few.lower_bound, rel=0.06)
    assert bound(USUAL, 2000, cost="absolute").lower_bound == bound(USUAL, 200, cost="absolute").lower_bound
