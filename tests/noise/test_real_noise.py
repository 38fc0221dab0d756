"""The least noise for real-valued answers: errors, bounds, privacy at fractional shifts, no sampler."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tightrope.documents import Budget
from tightrope.errors import InputError, PrecisionError
from tightrope.noise.least_noise import least_noise
from tightrope.noise.program.request import ErrorCost
from tightrope.noise.real_noise import LeastRealStaircase, RealLattice, _cap_at_cost, best_lattice, staircase_cost


@pytest.mark.parametrize(
    ("epsilon", "cost", "at_most", "truncated_laplace"),
    [
        (1, "absolute", 0.9595014632, 0.999984),
        (1, "squared", 1.9182, 1.999751),
        (3, "absolute", 0.2349, 0.333333),
        (3, "squared", 0.1528, 0.222219),
    ],
)
def test_less_than_truncated_laplace_and_nearly_least(epsilon, cost, at_most, truncated_laplace):
    noise = least_noise(Budget(epsilon=epsilon, delta=1e-6), integer=False, cost=cost)
    found = noise.certificate
    error = noise.mean_absolute_error if cost == "absolute" else noise.mean_squared_error
    assert error == found.upper <= at_most < truncated_laplace
    assert found.lower <= found.upper <= found.lower * (1 + 1e-3)
    assert found.guarantee.delta <= 1e-6


def test_a_law_of_any_shape():
    """At (1, .3) a law that rises outwards costs 4 % less; privacy at every real shift is the table's own."""
    budget = Budget(epsilon=1, delta=0.3)
    free, plain = (least_noise(budget, integer=False, shape=shape) for shape in ("any", "unimodal"))
    assert not free.table.is_unimodal
    assert free.mean_absolute_error <= 0.46992
    assert plain.mean_absolute_error > 0.4897
    assert free.certificate.gap < 1e-3
    assert free.certificate.guarantee.delta <= 0.3
    x, step = np.linspace(-4, 5, 90_001, retstep=True)
    for shift in (0.1, 0.37, 0.5, 0.81, 1.0):
        spent = np.maximum(density(free, x) - math.e * density(free, x - shift), 0).sum() * step
        assert spent <= 0.3 + 2e-3


@pytest.mark.parametrize("cost", ["absolute", "squared"])
def test_staircases_where_a_lattice_is_too_coarse(cost):
    noise = least_noise(Budget(epsilon=12, delta=1e-6), integer=False, cost=cost, sensitivity=2)
    assert isinstance(noise, LeastRealStaircase)
    assert noise.loss.delta(12.0) == 0
    assert noise.certificate.lower <= noise.cost_upper_bound <= 1.07 * noise.certificate.lower
    assert noise.certificate.argument.kind == "theorem"
    assert noise.quantile(0.5) <= noise.quantile(0.999999) < math.inf
    assert noise.worst_error == math.inf
    with pytest.raises(InputError, match="integer=True"):
        noise.sample(3)


def test_a_total_variation_that_staircases_break():
    """η = .01 at ε = 12: the law comes from the lattice, and keeps it."""
    noise = least_noise(Budget(epsilon=12, delta=1e-6, total_variation=0.01), integer=False)
    assert noise.loss.total_variation() <= 0.01
    assert noise.certificate.lower <= noise.mean_absolute_error


def test_everything_scales_with_the_sensitivity():
    one = least_noise(Budget(epsilon=1, delta=1e-6), integer=False)
    other = least_noise(Budget(epsilon=1, delta=1e-6), integer=False, sensitivity=2.5)
    assert other.mean_absolute_error == pytest.approx(2.5 * one.mean_absolute_error, rel=1e-14)
    assert other.mean_squared_error == pytest.approx(6.25 * one.mean_squared_error, rel=1e-14)
    assert other.quantile(0.9) == pytest.approx(2.5 * one.quantile(0.9), rel=1e-14)
    assert other.worst_error == pytest.approx(2.5 * one.worst_error, rel=1e-14)
    assert other.certificate.lower == pytest.approx(2.5 * one.certificate.lower, rel=1e-12)


def density(noise, x):
    """The density of X, from the table and the width of its cells."""
    cells = np.rint(np.abs(x) / noise.lattice.cell_width).astype(int)
    p = [noise.table.center, *noise.table.half, *[0] * (cells.max() + 1)]
    return np.array([p[c] / 2**128 for c in cells.tolist()]) / noise.lattice.cell_width


@pytest.mark.parametrize("shift", [0.013, 0.25, 0.5003, 0.77, 0.999, 1.0])
@pytest.mark.parametrize("epsilon", [0.0, 0.5, 1.0])
def test_no_real_shift_exceeds_the_loss(shift, epsilon):
    noise = least_noise(Budget(epsilon=1, delta=1e-3), integer=False)
    x, step = np.linspace(-12, 13, 200_001, retstep=True)
    spent = np.maximum(density(noise, x) - math.exp(epsilon) * density(noise, x - shift), 0).sum() * step
    assert spent <= noise.loss.delta(epsilon) + 3e-4


def test_errors_and_quantiles_agree_with_the_density():
    noise = least_noise(Budget(epsilon=1, delta=1e-3), integer=False)
    x, step = np.linspace(-12, 12, 2_000_001, retstep=True)
    weights = density(noise, x) * step
    assert weights.sum() == pytest.approx(1, abs=1e-5)
    assert (weights * np.abs(x)).sum() == pytest.approx(noise.mean_absolute_error, rel=1e-5)
    assert (weights * x * x).sum() == pytest.approx(noise.mean_squared_error, rel=1e-5)
    for p in (0.01, 0.3, 0.5, 0.77, 0.999):
        assert weights[x <= noise.quantile(p)].sum() == pytest.approx(p, abs=2e-5)
    assert noise.half_width(0.95) == pytest.approx(noise.quantile(0.975))
    assert noise.quantile(1 - 1e-15) <= noise.worst_error


def test_a_real_law_is_not_sampled():
    noise = least_noise(Budget(epsilon=1, delta=1e-3), integer=False)
    for refused in (lambda: noise.sample(3), lambda: noise.release(1.5)):
        with pytest.raises(InputError, match="integer=True"):
            refused()


@pytest.mark.parametrize("sensitivity", [0, -1, float("nan"), float("inf"), "1"])
def test_nonsense_sensitivities(sensitivity):
    with pytest.raises(InputError, match="sensitivity"):
        least_noise(Budget(epsilon=1, delta=0), integer=False, sensitivity=sensitivity)


def test_several_real_releases_are_refused():
    with pytest.raises(InputError, match="releases"):
        least_noise(Budget(epsilon=1, delta=0), integer=False, releases=2)


@pytest.mark.parametrize("cost", ["absolute", "squared"])
@pytest.mark.parametrize("cells", [4, 9, 30])
def test_node_costs_are_below_and_cell_costs_above(cost, cells):
    lattice = RealLattice(2.0, cells, ErrorCost.from_argument(cost))
    x = np.linspace(0, 6, 4001)
    nodes = np.arange(4 * cells) * lattice.cell_width
    below = np.interp(x, nodes, lattice.costs_below(4 * cells - 1) * lattice.cost_unit)
    assert np.all(below <= ErrorCost.from_argument(cost).values_at(x) + 1e-12)
    inside = np.abs(np.linspace(-0.5, 0.5, 10_001)) * lattice.cell_width
    assert lattice.costs_above(3)[0] * lattice.cost_unit >= ErrorCost.from_argument(cost).values_at(inside).mean() * (
        1 - 1e-3
    )


def test_a_cost_without_a_formula_is_enclosed():
    lattice = RealLattice(1.0, 8, ErrorCost.from_argument(lambda x: x**1.5))
    plain = np.linspace(0.5, 1.5, 10_001) / 8
    assert lattice.costs_above(4)[1] >= (plain**1.5).mean()
    x = np.linspace(0, 3, 3001)
    assert np.all(np.interp(x, np.arange(30) / 8, lattice.costs_below(29)) <= x**1.5 + 1e-15)
    found = least_noise(Budget(epsilon=1, delta=1e-3), integer=False, cost=lambda x: x**1.5).certificate
    assert found.lower <= found.upper <= found.lower * 1.15


def test_the_lattice_fits_the_steps_of_the_staircase():
    """γ = 1/(1 + e^{ε/2}): E|X| = e^{ε/2}/(e^ε − 1) in the limit, from above and from below."""
    cost, exact = ErrorCost.from_argument("absolute"), math.exp(0.5) / math.expm1(1)
    above, below = best_lattice(cost, 1.0, 1.0, 48, above=True), best_lattice(cost, 1.0, 1.0, 48, above=False)
    assert exact <= staircase_cost(above, 1.0, above=True) <= exact * (1 + 1e-5)
    assert exact * (1 - 1e-3) <= staircase_cost(below, 1.0, above=False) <= exact
    assert best_lattice(cost, 1.0, 0.0, 20, above=True).cell_count == 20


@pytest.mark.parametrize("tail", [1e-3, 1e-12, 1e-16, 1e-20, 1e-60])
def test_far_quantiles_of_a_staircase_are_those_of_its_law(tail):
    """One minus the tail rounds the tail away: below 2**-52 all of them were one number, and too near."""
    noise = least_noise(Budget(epsilon=10, delta=1e-6), integer=False)
    assert isinstance(noise, LeastRealStaircase)
    beyond = tail * 2  # both sides
    assert math.isclose(-noise.quantile(tail), noise.staircase_law._upper_quantile(tail), rel_tol=1e-15)
    step = math.floor(-math.log(beyond) / noise.staircase_law.epsilon)
    assert step <= -noise.quantile(tail) <= step + 1


def test_a_bound_that_contradicts_a_cost_is_a_fault():
    assert _cap_at_cost(1 + 1e-12, 1.0) == 1.0
    with pytest.raises(PrecisionError, match="exceeds a cost"):
        _cap_at_cost(1.001, 1.0)
