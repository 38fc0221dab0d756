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
