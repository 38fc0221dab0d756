"""Rényi divergences and zCDP, out of a loss and into one, against formulas and independent high-precision numbers."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tightrope as tr
from tightrope.errors import InputError

ORDERS = [1.001, 1.5, 2.0, 3.7, 16.0, 200.0]
EPSILONS = np.array([0.0, 0.05, 0.3, 1.0, 2.5, 6.0])


def exact_zcdp_delta(rho: float, epsilon: float) -> mp.mpf:
    """The least moment bound over all orders, by Newton's method in 40 digits."""
    with mp.workdps(40):
        exact_rho, exact_epsilon = mp.mpf(rho), mp.mpf(epsilon)

        def slope(z):
            return exact_rho * (2 * z + 1) - exact_epsilon + mp.log(z / (1 + z))

        low, high = mp.mpf(10) ** -12, mp.mpf(10) ** 8
        z = mp.findroot(slope, (low, high), solver="anderson", tol=1e-60, maxsteps=400, verify=False)
        exponent = exact_rho * z * (z + 1) - z * exact_epsilon + z * mp.log(z) - (1 + z) * mp.log(1 + z)
        return mp.e**exponent


@pytest.mark.parametrize("rho", [1e-5, 1e-3, 0.05, 0.7, 20.0])
@pytest.mark.parametrize("deviations", [2.0, 5.0, 9.0])
def test_the_profile_of_zcdp_is_the_least_moment_bound(rho, deviations):
    epsilon = rho + deviations * math.sqrt(2 * rho)
    lower, upper = tr.from_zcdp(rho).loss.delta_bounds(epsilon)
    truth = exact_zcdp_delta(rho, epsilon)
    assert lower <= truth <= upper <= truth * (1 + 1e-9)


@pytest.mark.parametrize("points", [[(2, 0.2)], [(1.5, 0.1), (4, 0.5), (20, 3.0)], [(3, 0.4), (5, 0.45), (64, 1.5)]])
@pytest.mark.parametrize("epsilon", [1.5, 3.0, 8.0])
def test_the_profile_of_points_is_the_least_bound_on_the_chords(points, epsilon):
    orders = np.array([0.0, *(alpha - 1 for alpha, _ in points)])
    moments = np.array([0.0, *((alpha - 1) * bound for alpha, bound in points)])
    z = np.unique(np.concatenate([np.linspace(1e-6, orders[-1], 400_001), orders[1:]]))
    exponent = np.interp(z, orders, moments) - z * epsilon + z * np.log(z) - (1 + z) * np.log1p(z)
    truth = math.exp(float(np.min(exponent)))
    lower, upper = tr.from_rdp(points).loss.delta_bounds(epsilon)
    assert lower <= truth * (1 + 1e-12)
    assert truth * (1 - 1e-9) <= upper <= truth * (1 + 1e-9)


def test_a_bound_on_all_losses_is_pure_privacy():
    loss, pure = tr.from_rdp([(math.inf, 1.0)]).loss, tr.approx_dp(1).loss
    for epsilon in (0.0, 0.3, 0.9, 1.0):
        assert loss.delta(epsilon) == pytest.approx(pure.delta(epsilon), rel=1e-9, abs=1e-15)
    assert tr.from_rdp([(2, 0.1), (math.inf, 1.0)]).loss.delta(0.5) < pure.delta(0.5)


MECHANISMS = [
    tr.gaussian(scale=2).loss,
    tr.laplace(scale=1.5).loss,
    tr.gaussian(scale=1).loss.poisson_sample(0.05),
    20 * tr.approx_dp(0.2).loss,
    tr.approx_dp(1, total_variation=0.1).loss,
    tr.gaussian(scale=1.5).loss.subset_sample(5, 100),
]


@pytest.mark.parametrize("loss", MECHANISMS)
def test_what_its_divergences_imply_is_above_a_mechanism(loss):
    orders = np.sort(np.concatenate([1 + np.geomspace(1e-3, 1e3, 60), ORDERS]))
    implied = tr.from_rdp(list(zip(orders.tolist(), loss.rdp(orders).tolist(), strict=True))).loss
    points = tr.from_rdp([(alpha, loss.rdp(alpha)) for alpha in ORDERS]).loss
    for epsilon in EPSILONS.tolist():
        truth = loss.delta_bounds(epsilon).lower
        assert truth <= implied.delta(epsilon) * (1 + 1e-9)
        assert implied.delta(epsilon) <= points.delta(epsilon) * (1 + 1e-6)
    assert (3 * loss).delta_bounds(0.5).lower <= (3 * points).delta(0.5)


@pytest.mark.parametrize("loss", MECHANISMS)
def test_rho_is_the_least_that_bounds_every_order(loss):
    lower, upper = loss.zcdp_bounds()
    assert lower <= upper == loss.zcdp()
    for alpha in np.geomspace(1e-4, 1e3, 40) + 1:
        assert loss.rdp_bounds(float(alpha)).lower <= upper * alpha
    assert loss.delta_bounds(0.5).lower <= tr.from_zcdp(upper).loss.delta(0.5)


@pytest.mark.parametrize("alpha", ORDERS)
def test_divergences_of_closed_forms(alpha):
    with mp.workdps(60):
        order, epsilon = mp.mpf(alpha), 1 / mp.mpf(1.5)
        laplace = order * mp.e ** ((order - 1) * epsilon) + (order - 1) * mp.e ** (-order * epsilon)
        odds = mp.e ** mp.mpf(0.7)
        first, second = odds / (1 + odds), 1 / (1 + odds)
        response = first**order * second ** (1 - order) + second**order * first ** (1 - order)
        truths = {
            tr.gaussian(scale=2).loss: order / 8,
            tr.laplace(scale=1.5).loss: mp.log(laplace / (2 * order - 1)) / (order - 1),
            tr.approx_dp(0.7).loss: mp.log(response) / (order - 1),
        }
    for loss, truth in truths.items():
        lower, upper = loss.rdp_bounds(alpha)
        assert lower <= truth <= upper == loss.rdp(alpha)
        assert upper - lower <= 1e-9 * truth
        assert (7 * loss).rdp(alpha) == pytest.approx(float(7 * truth), rel=1e-9)


@pytest.mark.parametrize("alpha", [2, 3, 8, 32])
def test_divergences_of_sampled_gaussians_by_binomial_sums(alpha):
    rate, scale = mp.mpf(0.02), mp.mpf(1.25)
    with mp.workdps(60):
        terms = (
            mp.binomial(alpha, j) * (1 - rate) ** (alpha - j) * rate**j * mp.e ** (j * (j - 1) / (2 * scale**2))
            for j in range(alpha + 1)
        )
        truth = mp.log(mp.fsum(terms)) / (alpha - 1)
    loss = tr.gaussian(scale=1.25).loss.poisson_sample(0.02)
    lower, upper = loss.rdp_bounds(alpha)
    assert lower <= truth <= upper <= truth * (1 + 1e-9)


def test_rho_of_closed_forms():
    odds = math.e / (1 + math.e)
    for loss, truth in [
        (5 * tr.gaussian(scale=2).loss, 5 / 8),
        (tr.laplace(scale=1).loss, math.exp(-1)),  # the Kullback–Leibler divergence, as α falls to 1
        (tr.approx_dp(1).loss, 2 * odds - 1),
        (tr.gaussian(scale=3).loss + tr.approx_dp(1).loss, 2 * odds - 1 + 1 / 18),
    ]:
        lower, upper = loss.zcdp_bounds()
        assert lower <= truth * (1 + 1e-12)
        assert truth * (1 - 1e-12) <= upper <= truth * (1 + 1e-9)
    sampled = 10 * tr.gaussian(scale=2).loss.poisson_sample(1e-4)
    assert sampled.zcdp() == pytest.approx(10 / 8, rel=1e-9)
    assert (0 * tr.gaussian(scale=2).loss).zcdp() == 0.0
    # A user with four records has up to four times the shift.
    assert tr.gaussian(scale=4).loss.poisson_sample(0.01).group(4).zcdp() == pytest.approx(0.5, rel=1e-9)


def test_random_allocation_has_at_most_the_divergences_of_one_step():
    step = tr.gaussian(scale=5).loss
    for loss, count in ((step.random_allocation(1000), 1), (3 * step.random_allocation(1000), 3)):
        assert loss.rdp(4) <= count * step.rdp(4) * (1 + 1e-12)
        assert loss.zcdp() <= count * step.zcdp() * (1 + 1e-12)


def test_losses_that_can_be_infinite_have_no_divergence():
    for loss in (tr.truncated_laplace(epsilon=1, delta=1e-6).loss, tr.approx_dp(1, delta=1e-9).loss):
        assert loss.rdp(2) == loss.zcdp() == math.inf
    assert tr.from_rdp([(4, 0.3)]).loss.zcdp() == math.inf
    assert tr.from_rdp([(4, 0.3)]).loss.rdp(4.5) == math.inf
    assert tr.laplace(scale=2).loss.rdp(math.inf) == pytest.approx(0.5, rel=1e-12)


@settings(max_examples=15, deadline=None)
@given(st.floats(1e-4, 3.0), st.integers(1, 50), st.floats(0.0, 8.0))
def test_declared_divergences_add_up(rho, count, epsilon):
    repeated, once = count * tr.from_zcdp(rho).loss, tr.from_zcdp(count * rho).loss
    assert repeated.delta(epsilon) == pytest.approx(once.delta(epsilon), rel=1e-8, abs=1e-300)
    assert repeated.zcdp() == pytest.approx(count * rho, rel=1e-12)
    gaussian = tr.gaussian(scale=1 / math.sqrt(2 * rho * count)).loss
    assert gaussian.delta_bounds(epsilon).lower <= repeated.delta(epsilon)


def test_it_composes_with_other_losses():
    together = tr.from_zcdp(0.01).loss + tr.gaussian(scale=5).loss
    lower, upper = together.epsilon_bounds(1e-6)
    assert upper - lower <= 1e-6
    assert (tr.gaussian(scale=5).loss + tr.gaussian(scale=math.sqrt(50)).loss).epsilon(1e-6) <= upper
    assert upper <= tr.from_zcdp(0.03).loss.epsilon(1e-6)
    assert (10 * tr.from_zcdp(0.05).loss.poisson_sample(0.1)).epsilon(1e-6) < 0.7 * tr.from_zcdp(0.5).loss.epsilon(1e-6)


def test_doubtful_curves_are_refused():
    for curve in (
        [],
        [(1, 0.1)],
        [(2, -0.1)],
        [(2, math.nan)],
        [(math.nan, 1)],
        [3],
        lambda a: -a,
        lambda a: 1.0,
        lambda a: a * np.inf,
    ):
        with pytest.raises(InputError):
            tr.from_rdp(curve)
    for rho in (-1, math.nan, math.inf, "0.1"):
        with pytest.raises(InputError):
            tr.from_zcdp(rho)
    for alpha in (1, 0.5, math.nan, "2"):
        with pytest.raises(InputError):
            tr.gaussian(scale=1).loss.rdp(alpha)


@pytest.mark.parametrize("rho", ["0.1", 1e-6, 3, 200])
@pytest.mark.parametrize("delta", ["1e-3", 1e-9, "1e-40"])
def test_a_budget_of_rho_is_met_by_gaussian_noise_of_rho(rho, delta):
    budget = tr.Budget(rho=rho, delta=delta)
    ((epsilon, limit),) = budget.points
    gaussian = tr.gaussian(scale=1 / math.sqrt(2 * float(rho))).loss
    if epsilon:
        assert limit == budget.delta
        assert float(epsilon) <= gaussian.epsilon_bounds(float(delta)).lower <= float(epsilon) * (1 + 1e-5)
    else:
        assert float(limit) <= gaussian.total_variation() <= float(limit) * (1 + 1e-5)
    assert budget.asked == ("rho", "delta")
    found = tr.calibrate(lambda scale: tr.gaussian(scale=scale).loss, budget)
    assert found.loss.zcdp() <= float(rho) * (1 + 1e-9)


def test_budgets_of_rho_that_are_refused():
    for arguments in ({"rho": 0.1}, {"rho": 0, "delta": 1e-6}, {"rho": 0.1, "delta": 0}, {"rho": 1e9, "delta": 1e-6}):
        with pytest.raises(InputError):
            tr.Budget(**arguments)
