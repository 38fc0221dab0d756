"""A function that no pair of laws has as its profile is refused when it is handed over; an imprecise one is not."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tightrope as tr
from tightrope.accounting.distributions.gaussian import GaussianLossDistribution
from tightrope.errors import InputError

LAW = GaussianLossDistribution(1.0)
TRUE = LAW.profile


def rising(e):
    return 0.1 + 0.3 * np.minimum(np.expm1(e / 50), 1.0)


def rising_far_out(e):
    return np.exp(-e) / 4 + 1e-5 * (e > 9)


def dented(e):
    """Not convex in a window of 3 %."""
    return TRUE(e) * (1 - 1e-4 * (np.abs(e - 1.0) < 0.015))


REFUSED = {
    "rises": (rising, {}, "falls with epsilon.*rises there"),
    "rises far out": (rising_far_out, {}, "falls with epsilon"),
    "dented": (dented, {}, r"falls|convex.*epsilon=(0\.9|1)"),
    "above one": (lambda e: 1.5 * np.exp(-e), {}, r"in \[0, 1\]"),
    "below zero": (lambda e: 0.3 * np.exp(-e) - 1e-3, {}, r"in \[0, 1\]"),
    "nothing": (lambda e: np.nan * e, {}, r"in \[0, 1\]"),
    "one number": (lambda e: 0.5, {}, "shape"),
    "a matrix": (lambda e: np.ones((2, len(e))), {}, "shape"),
    "concave in the middle": (lambda e: 0.4 * np.exp(-4 * e), {}, "mirrored"),
    "another total variation": (TRUE, {"reverse": GaussianLossDistribution(0.9).profile}, "reverse to be 0.38"),
    "a reverse that rises": (TRUE, {"reverse": lambda e: TRUE(np.zeros(1))[0] + e / 1e4}, "reverse"),
    "below its own limit": (TRUE, {"infinite_mass": 0.01}, "infinite_mass to be at most"),
    "no function": (0.5, {}, "profile to be a function"),
    "no reverse": (TRUE, {"reverse": 0.5}, "reverse to be a function"),
    "too many infinite": (TRUE, {"infinite_mass": 1.5}, "infinite_mass"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_at_once(name):
    profile, settings, said = REFUSED[name]
    with pytest.raises(InputError, match=said):
        tr.from_profile(profile, **settings)


@pytest.mark.filterwarnings("ignore::tightrope.errors.PrecisionWarning")
@pytest.mark.parametrize("error", [1e-10, 1e-6, 1e-2])
def test_a_profile_that_is_off_by_its_stated_error(error):
    """It wobbles within its error, so it is neither convex nor falling: its hull is what counts, also across 0."""

    def profile(e):
        return np.clip(TRUE(e) * (1 + 0.9 * error * np.sin(50 * e)), 0.0, 1.0)

    loss = 2 * tr.from_profile(profile, relative_error=error).loss
    truth = 2 * tr.gaussian(scale=1).loss
    for epsilon in (-0.5, 0.0, 0.5, 2.0):
        lower, upper = loss.delta_bounds(epsilon)
        assert lower <= truth.delta(epsilon)
        assert truth.delta_bounds(epsilon).lower <= upper <= truth.delta(epsilon) * (1 + 6 * error + 1e-6)


@pytest.mark.parametrize(
    "loss", [tr.laplace(scale=1).loss, tr.approx_dp(1, delta=1e-3).loss, tr.gaussian(scale=9).loss]
)
def test_every_true_profile_passes(loss):
    law = loss.remove.laws[0]
    again = tr.from_profile(law.profile, infinite_mass=law.infinite_mass).loss
    assert again.delta(0.3) == pytest.approx(loss.delta(0.3), rel=1e-12)
    assert math.isclose(again.infinite_mass, law.infinite_mass)


def test_the_same_function_twice_is_one_direction():
    assert tr.from_profile(TRUE, reverse=TRUE).loss.subset_sample(1, 10).delta(0.1) == pytest.approx(
        tr.gaussian(scale=1).loss.subset_sample(1, 10).delta(0.1), rel=1e-12
    )


def test_two_directions_meet_at_zero():
    """Two upper bounds on one total variation, apart by no more than their error: the smaller holds for both."""
    sampled = tr.gaussian(scale=1).loss.poisson_sample(0.1)
    one, other = (direction.laws[0].profile for direction in (sampled.remove, sampled.add))
    with np.errstate(all="ignore"):
        loss = tr.from_profile(lambda e: one(e) * (1 + 1e-4), reverse=other, relative_error=1e-4).loss
        upper, truth = ((3 * each).delta(0.4) for each in (loss, sampled))
    assert truth <= upper <= truth * (1 + 2e-3)


def zcdp_bound(rho):
    """The least bound on δ over orders a, with divergences ρa (Canonne, Kamath, Steinke 2020, Prop. 12)."""
    orders = 1 + np.geomspace(0.01, 1e4, 500)[:, None]

    def bound(e):
        logs = (orders - 1) * (rho * orders - e) - np.log(orders - 1) + orders * np.log1p(-1 / orders)
        return np.exp(np.minimum(np.min(logs, axis=0), 0.0))

    return bound


@pytest.mark.parametrize("rho", [0.005, 0.1, 1.0])
def test_a_minimum_over_orders_is_made_convex(rho):
    """Refused as a profile, since it is none; as an upper bound it is, and the Gaussian with that ρ meets it."""
    bound, gaussian = zcdp_bound(rho), tr.gaussian(scale=1 / math.sqrt(2 * rho)).loss
    with pytest.raises(InputError, match=r"convex.*upper_bound=True"):
        tr.from_profile(bound)
    loss = tr.from_profile(bound, upper_bound=True).loss
    epsilons = np.linspace(0.0, rho + 7 * math.sqrt(2 * rho), 41)
    deltas = loss.delta(epsilons)
    assert np.all(deltas >= gaussian.delta(epsilons))
    assert np.all(deltas <= bound(epsilons) * (1 + 2e-3))
    assert deltas[0] < 0.99 * bound(np.zeros(1))[0]  # the mirror image lowers the total variation
    spread = 2 * math.sqrt(8 * rho)
    if rho == 0.1:
        assert (4 * gaussian).delta(spread) < (4 * loss).delta(spread) < 4 * loss.delta(spread / 4)


def test_dents_and_rises_of_an_upper_bound_are_bridged():
    for profile in (dented, lambda e: np.minimum(TRUE(e) * (1 + 0.1 * np.sin(20 * e) ** 2), 1.0), rising_far_out):
        loss = tr.from_profile(profile, upper_bound=True).loss
        epsilons = np.linspace(0.0, 5.0, 64)
        deltas = loss.delta(epsilons)
        assert np.all(np.diff(deltas) <= 0)
        assert np.all(deltas <= profile(epsilons) * (1 + 2e-3))
        assert tr.from_profile(profile, upper_bound=True, infinite_mass=0.0).loss.delta(1.0) == loss.delta(1.0)
    raised = tr.from_profile(lambda e: TRUE(e) / 2 + 0.01, upper_bound=True, infinite_mass=0.01)
    assert raised.loss.infinite_mass == pytest.approx(0.01, rel=1e-12)


@pytest.mark.parametrize(
    ("profile", "settings", "expected"),
    [
        (TRUE, {"reverse": TRUE}, "reverse to be left out"),
        (TRUE, {"infinite_mass": 0.01}, "infinite_mass to be at most"),
        (lambda e: 2 * np.exp(-e), {}, r"in \[0, 1\]"),
        (lambda e: np.nan * e, {}, r"in \[0, 1\]"),
    ],
)
def test_what_is_no_upper_bound_is_refused(profile, settings, expected):
    with pytest.raises(InputError, match=expected):
        tr.from_profile(profile, upper_bound=True, **settings)


@pytest.mark.parametrize("upper_bound", [False, True])
@pytest.mark.parametrize("profile", [3, "exp", None, lambda e: np.exp(-e) / 4 + 0j, lambda e: ["a"] * len(e)])
def test_what_is_no_function_of_numbers_is_refused(profile, upper_bound):
    with pytest.raises(InputError) as refused:
        tr.from_profile(profile, upper_bound=upper_bound)
    assert refused.value.name == "profile"
