"""Other ways to account for the same steps: bounds are above the truth, and the better ones closer to it."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tightrope as tr
from tightrope.errors import InputError
from tightrope.noise.accounting_methods import (
    MAX_GUARANTEE_STEPS,
    ExactMethod,
    GaussianLimitMethod,
    MomentsMethod,
    StepGuaranteeMethod,
    _dominating_atoms,
    accounting_methods,
    compare_methods,
    log_moment_of_atoms,
)

STEPS = {
    "sampled": (tr.gaussian(scale=1.3).loss.poisson_sample(256 / 60_000), 3515),
    "plain": (tr.gaussian(scale=10).loss, 100),
    "pure": (tr.approx_dp(0.1).loss, 50),
    "leaking": (tr.approx_dp(0.1, delta=1e-8, total_variation=0.02).loss, 50),
}


@pytest.fixture(params=STEPS)
def run(request):
    return STEPS[request.param]


@pytest.mark.parametrize("delta", [1e-2, 1e-5])
def test_every_bound_is_above_the_truth(run, delta) -> None:
    step, count = run
    truth = (count * step).epsilon_bounds(delta).lower
    for way in (
        StepGuaranteeMethod(step, count, uses_total_variation=False),
        StepGuaranteeMethod(step, count, uses_total_variation=True),
        MomentsMethod(count * step),
    ):
        assert way.epsilon(delta) >= truth, way.name
        for epsilon in (0.0, 0.3, 1.5):
            assert way.delta(epsilon) >= (count * step).delta_bounds(epsilon).lower, (way.name, epsilon)
            assert way.delta(epsilon) <= 1


def test_a_total_variation_helps(run) -> None:
    step, count = run
    without, known = (
        StepGuaranteeMethod(step, count, uses_total_variation=False),
        StepGuaranteeMethod(step, count, uses_total_variation=True),
    )
    for delta in (1e-2, 1e-5):
        assert known.epsilon(delta) <= without.epsilon(delta) * (1 + 1e-9)
    assert known.total_variation() <= without.total_variation() * (1 + 1e-9)


def test_theorem_2_is_exact_for_a_step_that_is_a_triple() -> None:
    step = tr.approx_dp(0.3, total_variation=0.05).loss
    found = StepGuaranteeMethod(step, 40, uses_total_variation=True)
    assert found.epsilon(1e-4) == pytest.approx((40 * step).epsilon(1e-4), rel=1e-9)
    assert found.delta(0.5) == pytest.approx((40 * step).delta(0.5), rel=1e-9)


def test_moments_of_a_gaussian_against_their_formula() -> None:
    """K(z) = μ²(z + z²)/2 and δ ≤ e^{K(z) − zε} z^z/(1+z)^{1+z}: the best of a fine grid of z."""
    z = np.exp(np.linspace(-5, 8, 400_001))
    mu, delta = 0.7, 1e-6
    conversion = z * np.log(z) - (1 + z) * np.log1p(z)
    loss = tr.gaussian(scale=1 / mu).loss
    epsilon = float(np.min((mu**2 * (z + z * z) / 2 + conversion - math.log(delta)) / z))
    assert MomentsMethod(loss).epsilon(delta) == pytest.approx(epsilon, rel=1e-8)
    log = float(np.min(mu**2 * (z + z * z) / 2 + conversion - 3 * z))
    assert MomentsMethod(loss).delta(3.0) == pytest.approx(math.exp(log), rel=1e-8)


def test_real_orders_with_the_best_conversion_beat_the_first_accountant() -> None:
    """Abadi et al. got 1.19 for this run (GI Fig. 5)."""
    step, count = STEPS["sampled"]
    assert MomentsMethod(count * step).epsilon(1e-5) == pytest.approx(0.954353, abs=1e-5)


@pytest.mark.parametrize("z", [0.05, 1.0, 8.0, 60.0])
def test_atoms_that_dominate_have_larger_moments(z) -> None:
    law = tr.gaussian(scale=3).loss.remove.laws[0]
    truth = (z + z * z) / 18
    found = log_moment_of_atoms(*_dominating_atoms(law), z, 0.0)
    assert truth * (1 - 1e-9) <= found <= truth * (1 + 1e-6)


def test_laws_without_moments_have_bounds_too() -> None:
    """Sampled Laplace noise with very large losses: no rule for K, so the atoms that dominate it."""
    step = tr.laplace(scale=1 / 60).loss.subset_sample(10, 100)
    assert step.remove.laws[0].log_moment(np.array([1 + 0j])) is None
    found = MomentsMethod(step)
    assert step.epsilon(1e-5) <= found.epsilon(1e-5) <= 2 * step.epsilon(1e-5)


def test_the_limit_says_that_it_is_no_bound() -> None:
    step, count = STEPS["plain"]
    found = GaussianLimitMethod(count * step)
    assert "not a bound" in found.statement
    assert found.epsilon(1e-5) == pytest.approx((count * step).epsilon(1e-5), rel=1e-5)  # Gaussians are their limit


def test_the_table_goes_from_loose_to_exact() -> None:
    rows = compare_methods(accounting_methods(*STEPS["sampled"]), 1e-5)
    assert [row.name for row in rows] == [
        "Kairouz-Oh-Viswanath", "GI Theorem 2", "moments accountant", "Gaussian limit", "exact",
    ]  # fmt: skip
    bounds = [row.epsilon for row in rows if "not a bound" not in row.statement]
    assert bounds == sorted(bounds, reverse=True)
    assert rows[-1].epsilon == ExactMethod(3515 * STEPS["sampled"][0]).epsilon(1e-5)


def test_certain_failure_leaves_the_moments_nothing() -> None:
    step, count = STEPS["leaking"]
    assert math.isinf(MomentsMethod(count * step).epsilon(1e-8))


def test_too_many_steps_for_triples_leave_them_out() -> None:
    step, _ = STEPS["plain"]
    assert next(way.name for way in accounting_methods(step, MAX_GUARANTEE_STEPS + 1)) == "moments accountant"


@pytest.mark.parametrize("delta", [0, 1, -1, math.nan])
def test_nonsense(delta) -> None:
    with pytest.raises(InputError, match="delta"):
        compare_methods(accounting_methods(*STEPS["plain"]), delta)
    with pytest.raises(InputError, match="count"):
        accounting_methods(STEPS["plain"][0], 0)
