"""What additive noise can reach: the values of the paper, and bounds that hold each other."""

from __future__ import annotations

import math

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tightrope.documents import Budget
from tightrope.errors import InputError
from tightrope.mechanisms.truncated_laplace import truncated_laplace
from tightrope.noise.noise_limits import noise_limits, tail_sum
from tightrope.noise.program.closed_form import packing_bound
from tightrope.noise.program.request import ErrorCost, PrivacyTarget
from tightrope.noise.program.search import least_table
from tightrope.noise.real_noise import LeastRealNoise, RealLattice


def named(limits, name):
    return {(whose, side): value for whose, side, value in limits.known}[name]


def test_the_values_of_the_paper():
    """ε = 0.3, δ = 1.07481e−6 (n = 40): theory §4."""
    budget = Budget(epsilon=0.3, delta=1.07481e-6)
    absolute, squared = noise_limits(budget), noise_limits(budget, cost="squared")
    assert named(absolute, ("GDGK tail sums", "lower")) == pytest.approx(2.858050144, rel=1e-9)
    assert named(absolute, ("GDGK truncated Laplace", "upper")) == pytest.approx(3.333087563, rel=1e-9)
    assert named(squared, ("GDGK tail sums", "lower")) == pytest.approx(19.1867712, rel=1e-8)
    assert named(squared, ("GDGK truncated Laplace", "upper")) == pytest.approx(22.21075296, rel=1e-9)
    for found in (absolute, squared):
        assert found.gap < 1e-3


def test_geometric_sums_where_the_number_of_terms_is_whole():
    """Where G_n is exactly 0 the recursion is the closed sum of the paper."""
    epsilon, terms = 0.5, 6
    down = math.exp(-epsilon)
    delta = down**terms / 2 / sum(down**j for j in range(1, terms + 1))
    tails = [0.5 * down**k - delta * sum(down**j for j in range(1, k + 1)) for k in range(1, terms)]
    promise = PrivacyTarget.from_budget(Budget(epsilon=epsilon, delta=delta))
    assert tail_sum(promise, 2.0, ErrorCost.from_argument("absolute")) == pytest.approx(4 * sum(tails))


@pytest.mark.parametrize("cost", ["absolute", "squared"])
@pytest.mark.parametrize(
    ("epsilon", "delta", "variation"), [(1, 1e-6, None), (1, 0, None), (1, 1e-6, 0.1), (1, 0, 0.1)]
)
def test_every_lower_bound_is_below_every_upper_bound(epsilon, delta, variation, cost):
    found = noise_limits(Budget(epsilon=epsilon, delta=delta, total_variation=variation), cost=cost)
    lowers = [value for _, side, value in found.known if side == "lower"]
    uppers = [value for _, side, value in found.known if side == "upper"]
    assert max(lowers) == found.lower <= found.upper == min(uppers)
    assert found.gap < 5e-3


@given(st.floats(0.05, 4), st.floats(-8, -0.5), st.floats(0.02, 0.9))
@settings(deadline=None, max_examples=40)
def test_truncated_laplace_keeps_the_total_variation(epsilon, exponent, variation):
    """The law that the upper bound stands for exists: its exact loss keeps all three numbers."""
    from tightrope.noise.noise_limits import largest_noise_epsilon

    delta = min(10**exponent, variation)
    rate = largest_noise_epsilon(epsilon, delta, variation)
    law = truncated_laplace(epsilon=rate, delta=delta)
    assert rate <= epsilon
    assert law.loss.total_variation() <= variation * (1 + 1e-9)
    assert law.loss.delta(epsilon) <= delta * (1 + 1e-9)


@pytest.mark.parametrize(
    ("budget", "cost", "upper", "gap"),
    [
        ((1, 0.3), "absolute", 0.46992, 1e-3),  # not unimodal; .48976 was called least
        ((1, 0.1), "absolute", 0.6909, 1e-3),
        ((6, 1e-3), "squared", 0.01408, 6e-3),
        ((8, 1e-6), "absolute", 0.018322, 0.04),  # the gap was 92 %
        ((12, 1e-6), "absolute", 0.0024788, 0.006),  # staircase noise; .00430 was called least
        ((12, 1e-6), "squared", 0.00021748, 0.06),
        ((60, 1e-6), "squared", 3e-18, 2e-6),
    ],
)
def test_limits_that_meet(budget, cost, upper, gap):
    epsilon, delta = budget
    found = noise_limits(Budget(epsilon=epsilon, delta=delta), cost=cost)
    assert found.lower <= found.upper <= upper
    assert found.gap <= gap


@given(st.floats(0.5, 6), st.floats(-8, -0.5), st.sampled_from([1, 2]))
@example(0.5, -0.9361034273016431, 1)  # the solver returns a weight of -1e-17
@settings(deadline=None, max_examples=20)
def test_packing_is_below_every_law(epsilon, exponent, power):
    """Truncated Laplace, and a law of the program on a lattice, whichever costs less."""
    promise, cost = (
        PrivacyTarget.from_budget(Budget(epsilon=epsilon, delta=10**exponent)),
        ErrorCost.from_argument(("absolute", "squared")[power - 1]),
    )
    laws = [truncated_laplace(epsilon=epsilon, delta=10**exponent)]
    lattice = RealLattice(1.0, 8, cost)
    laws.append(LeastRealNoise(least_table(promise, 8, lattice.costs_above, "any").table, promise, lattice, "any"))
    errors = [law.mean_absolute_error if power == 1 else law.mean_squared_error for law in laws]
    assert 0 < packing_bound(promise, 1.0, power) <= min(errors)
    assert packing_bound(promise, 3.0, power) == pytest.approx(3**power * packing_bound(promise, 1.0, power))


def test_limits_scale_with_the_sensitivity():
    budget = Budget(epsilon=1, delta=1e-6)
    one, other = noise_limits(budget, cost="squared"), noise_limits(budget, sensitivity=3, cost="squared")
    assert other.lower == pytest.approx(9 * one.lower, rel=1e-11)
    assert other.upper == pytest.approx(9 * one.upper, rel=1e-11)


def test_any_cost():
    found = noise_limits(Budget(epsilon=1, delta=1e-3), cost=lambda x: x**1.5)
    assert 0 < found.lower <= found.upper <= 1.15 * found.lower


def test_parameters_that_no_program_fits_fall_back_to_formulas():
    found = noise_limits(Budget(epsilon=1e-4, delta=1e-8))
    assert {whose for whose, _, _ in found.known} == {
        "GDGK tail sums", "GDGK truncated Laplace", "packing", "staircase"
    }  # fmt: skip
    assert found.lower <= found.upper <= found.lower * 1.01


def test_several_points_are_bounded_by_each_and_reached_by_the_program():
    points = [(1, 1e-6), (0.5, 1e-3)]
    found = noise_limits(Budget(points=points))
    assert named(found, ("linear program", "upper")) == found.upper
    assert not any(whose.startswith("GDGK") for whose, side, _ in found.known if side == "upper")
    assert found.lower >= noise_limits(Budget(points=points[:1])).lower * (1 - 1e-9)
    assert found.lower <= found.upper <= found.lower * 1.001


@pytest.mark.parametrize(
    ("budget", "how", "said"),
    [(Budget(points=[(0, 0)]), {}, "epsilon"), (Budget(epsilon=1, delta=0.1), {"sensitivity": 0}, "sensitivity"),
     (Budget(epsilon=1, delta=0.1), {"cost": "cubed"}, "cost"), ((1, 1e-6), {}, "budget"),
     (Budget(tradeoff=lambda t: 1 - t), {}, "tradeoff")],
)  # fmt: skip
def test_nonsense(budget, how, said):
    with pytest.raises(InputError, match=said):
        noise_limits(budget, **how)
