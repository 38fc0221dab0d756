"""Calibration ends on the private side, next to what is not, in a handful of evaluations."""

from __future__ import annotations

import math
from fractions import Fraction
from statistics import NormalDist

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

import tightrope as tr
from tightrope.errors import InputError, InsufficientBudgetError
from tightrope.noise.calibrate import Calibration, calibrate

USUAL = tr.Budget(epsilon=1, delta="1e-6")
BUDGETS = {
    "usual": USUAL,
    "far out": tr.Budget(epsilon=10, delta="1e-200"),
    "tiny epsilon": tr.Budget(epsilon="0.01", delta="1e-10"),
    "attack success": tr.Budget(attack_success="0.55", delta="1e-8"),
    "several points": tr.Budget(points=[(1, "1e-6"), ("0.5", "1e-3"), (0, "0.2")]),
    "everything": tr.Budget(epsilon=2, attack_success="0.9", points=[(5, "1e-12")], delta="1e-7"),
}
HANDFUL = 12


def kept(found: Calibration, budget: tr.Budget) -> bool:
    """Every point, against the budget's exact decimals; what is shown at a smaller ε holds, too."""

    def shown(epsilon: float) -> Fraction:
        return Fraction(min(found.loss.delta([math.nextafter(epsilon, -1.0), epsilon])))

    return all(shown(float(epsilon)) <= Fraction(delta) for epsilon, delta in budget.points)


def gaussians(scale):
    return 100 * tr.gaussian(scale=scale).loss


def sampled(scale):
    return 3515 * tr.gaussian(scale=scale).loss.poisson_sample(256 / 60_000)


@pytest.mark.parametrize("budget", BUDGETS.values(), ids=BUDGETS)
def test_the_least_scale_of_gaussian_noise(budget):
    found = tr.calibrate(gaussians, budget)
    assert kept(found, budget)
    assert found.evaluations <= HANDFUL
    smaller = gaussians(found.parameter * (1 - 2e-9))
    assert any(smaller.delta(float(epsilon)) > float(delta) for epsilon, delta in budget.points)


@pytest.mark.parametrize(("epsilon", "delta"), [(1, "1e-5"), ("0.2", "1e-5"), (8, "1e-8")])
def test_the_least_noise_of_training(epsilon, delta):
    budget = tr.Budget(epsilon=epsilon, delta=delta)
    found = tr.calibrate(sampled, budget)
    assert kept(found, budget)
    assert found.evaluations <= HANDFUL
    assert sampled(found.parameter * (1 - 1e-8)).delta(float(epsilon)) > float(delta)


def test_an_attacker_of_training():
    budget = tr.Budget(attack_success="0.52", delta="1e-5")
    found = tr.calibrate(sampled, budget)
    assert found.evaluations <= HANDFUL
    assert found.loss.total_variation() <= 0.04
    assert found.loss.total_variation() == pytest.approx(0.04, rel=1e-8)


def test_a_gaussian_against_its_formula():
    """2 Φ(μ/2) − 1 = η."""
    found = tr.calibrate(lambda scale: tr.gaussian(scale=scale).loss, tr.Budget(attack_success="0.6", delta="1e-9"))
    assert found.parameter == pytest.approx(1 / (2 * special.ndtri(0.6)), rel=2e-9)


def test_the_most_steps():
    step = tr.gaussian(scale=1.3).loss.poisson_sample(256 / 60_000)
    found = tr.calibrate(lambda steps: steps * step, USUAL, integer=True)
    assert isinstance(found.parameter, int)
    assert kept(found, USUAL)
    assert ((found.parameter + 1) * step).delta(1.0) > 1e-6
    assert found.evaluations <= HANDFUL
    told = tr.calibrate(lambda steps: steps * step, USUAL, integer=True, increasing=True)
    assert told.parameter == found.parameter


@pytest.mark.parametrize(("epsilon", "scale"), [("1", 5), ("3", 2), ("10", 1), ("0.001", 2437)])
def test_the_least_whole_scale(epsilon, scale):
    found = tr.calibrate(
        lambda scale: tr.gaussian(scale=scale).loss, tr.Budget(epsilon=epsilon, delta="1e-6"), integer=True
    )
    assert found.parameter == scale


def test_the_largest_rate():
    def loss(rate):
        return 200 * tr.gaussian(scale=1.3).loss.poisson_sample(rate)

    found = tr.calibrate(loss, USUAL, largest=1)
    assert kept(found, USUAL)
    assert loss(found.parameter * (1 + 1e-8)).delta(1.0) > 1e-6
    assert found.evaluations <= HANDFUL


@given(
    epsilon=st.floats(0.05, 8), delta=st.floats(1e-30, 0.1), count=st.integers(1, 10_000),
    eta=st.one_of(st.none(), st.floats(0.01, 0.5)),
)  # fmt: skip
def test_any_budget_is_kept_and_used(epsilon, delta, count, eta):
    budget = tr.Budget(epsilon=epsilon, delta=delta, points=None if eta is None else [(0, eta)])

    def loss(scale):
        return count * tr.gaussian(scale=scale).loss

    found = tr.calibrate(loss, budget)
    assert kept(found, budget)
    assert found.evaluations <= 2 * HANDFUL  # more than usual where two points bind at once
    smaller = loss(found.parameter * (1 - 3e-9))
    assert any(smaller.delta(float(e)) > float(d) for e, d in budget.points)


@pytest.mark.parametrize("epsilon", ["0.3", "1", "7"])
def test_a_pure_budget(epsilon):
    """δ is a step there: found by halving, still exactly on the private side."""
    budget = tr.Budget(epsilon=epsilon, delta=0)
    found = tr.calibrate(lambda scale: tr.laplace(scale=scale).loss, budget)
    assert kept(found, budget)
    assert found.parameter == pytest.approx(1 / float(epsilon), rel=2e-9)
    assert found.parameter >= 1 / float(epsilon) * (1 - 1e-15)


def test_infinite_loss_is_capped_even_where_no_point_asks():
    """Total variation alone would allow to publish one person in ten in the clear."""
    budget = tr.Budget(attack_success="0.55", delta="1e-8")

    def loss(share):
        return tr.approx_dp(0.01, delta=share).loss

    found = tr.calibrate(loss, budget, smallest=1e-12, largest=1)
    assert found.parameter == pytest.approx(1e-8, rel=2e-9)
    assert found.loss.infinite_mass <= 1e-8


def test_an_end_of_the_range_that_keeps_the_budget_is_the_answer():
    assert tr.calibrate(gaussians, USUAL, smallest=100).parameter == 100
    assert tr.calibrate(lambda steps: steps * tr.gaussian(scale=50).loss, USUAL, largest=7, integer=True).parameter == 7


def test_the_answer_lies_in_the_range():
    found = tr.calibrate(gaussians, USUAL, smallest=42.2, largest=42.3)
    assert found.parameter == pytest.approx(42.24678892, rel=2e-9)


def test_a_coarser_tolerance_needs_less():
    fine, coarse = tr.calibrate(gaussians, USUAL), tr.calibrate(gaussians, USUAL, tolerance=1e-2)
    assert coarse.evaluations < fine.evaluations
    assert fine.parameter <= coarse.parameter * (1 + 1e-9) <= fine.parameter * 1.011
    assert kept(coarse, USUAL)


def test_what_is_returned_is_private_where_the_loss_is_not_monotone():
    """A loss that jumps up and down by a tenth: whatever is returned keeps the budget."""

    def loss(scale):
        return gaussians(scale * (1 + 0.1 * math.sin(300 * math.log(scale))))

    assert kept(tr.calibrate(loss, USUAL, increasing=False), USUAL)


@pytest.mark.parametrize(
    ("budget", "settings", "said"),
    [
        (USUAL, {"largest": 1}, r"delta\(1.0\) is .*, not 1e-06.*use a wider range"),
        (tr.Budget(epsilon=1, delta=0), {}, "not 0"),
        (tr.Budget(points=[(1, "0.5"), (2, "1e-300")]), {"largest": 10}, r"delta\(2.0\)"),
    ],
)
def test_an_impossible_budget_is_refused_with_what_is_possible(budget, settings, said):
    with pytest.raises(InsufficientBudgetError, match=said):
        tr.calibrate(gaussians, budget, **settings)


def test_a_cap_on_infinite_loss_that_cannot_be_kept():
    with pytest.raises(InsufficientBudgetError, match="an infinite loss is 1e-05, not 1e-06"):
        tr.calibrate(lambda scale: tr.truncated_laplace(epsilon=1 / scale, delta=1e-5).loss, USUAL)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"smallest": math.nan}, "smallest=nan"),
        ({"smallest": 0}, "smallest=0"),
        ({"largest": math.inf}, "largest=inf"),
        ({"smallest": 2, "largest": 1}, "above smallest"),
        ({"smallest": 2, "largest": 2}, "above smallest"),
        ({"smallest": 1.5, "integer": True}, "smallest=1.5"),
        ({"tolerance": 0}, "tolerance=0"),
        ({"tolerance": math.nan}, "tolerance=nan"),
        ({"budget": (1, 1e-6)}, "a Budget"),
        ({"make_loss": 3}, "make_loss=3"),
        ({"make_loss": lambda scale: tr.gaussian(scale=scale)}, "return mechanism.loss"),
        ({"make_loss": lambda scale: None}, r"make_loss\(1.0\)=None"),
        ({"make_loss": lambda scale: tr.gaussian(scale=2).loss}, "depends on the parameter"),
        ({"make_loss": lambda scale: tr.gaussian(scale=-scale).loss}, "scale=-1.0"),
    ],
)
def test_nonsense(settings, said):
    with pytest.raises(InputError, match=said):
        tr.calibrate(**{"make_loss": gaussians, "budget": USUAL, **settings})


@pytest.mark.parametrize("rates", [[(0.01, 0.05)], [(0.001, 0.01), (0.1, 0.2)], [(0.4, 0.9)]])
def test_an_attackers_rates(rates):
    """The Gaussian of the least scale has μ = min Φ⁻¹(TPR) − Φ⁻¹(FPR); a sampled one just meets the rates, too."""
    budget = tr.Budget(attack_rates=rates, delta=1e-6)
    found = calibrate(lambda scale: 100 * tr.gaussian(scale=scale).loss, budget)
    mu = min(NormalDist().inv_cdf(second) - NormalDist().inv_cdf(first) for first, second in rates)
    assert found.parameter == pytest.approx(10 / mu, rel=1e-8)
    sampled = calibrate(lambda scale: 200 * tr.gaussian(scale=scale).loss.poisson_sample(0.02), budget)
    reached = [sampled.loss.true_positive_rate(first) / second for first, second in rates]
    assert 1 - 1e-6 <= max(reached) <= 1
    by_points = calibrate(
        lambda scale: 200 * tr.gaussian(scale=scale).loss.poisson_sample(0.02),
        tr.Budget(points=budget.points, delta=1e-6),
    )
    assert sampled.parameter <= by_points.parameter * (1 + 1e-8)


def test_rates_also_cap_certain_failure():
    budget = tr.Budget(attack_rates=[(0.01, 0.05)], delta=1e-6)
    with pytest.raises(InsufficientBudgetError, match="probability of an infinite loss"):
        calibrate(lambda epsilon: tr.approx_dp(epsilon, delta=1e-5).loss, budget, increasing=True)
    tight = calibrate(lambda epsilon: 3 * tr.approx_dp(epsilon).loss, budget)
    assert tight.loss.true_positive_rate(0.01) <= 0.05
