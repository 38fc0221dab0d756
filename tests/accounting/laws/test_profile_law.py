"""A mechanism known by its profile alone composes like the mechanism itself, from above and within the bracket."""

from __future__ import annotations

import numpy as np
import pytest

import tightrope as tr
from tightrope.errors import InputError

GAUSSIAN = tr.gaussian(scale=2).loss
LAPLACE = tr.laplace(scale=1).loss
SAMPLED = tr.gaussian(scale=1).loss.poisson_sample(0.1)


def of(loss, **more):
    return tr.from_profile(loss.delta, **more).loss


@pytest.mark.parametrize("count", [1, 2, 10, 100])
@pytest.mark.parametrize("epsilon", [-1.0, 0.0, 0.5, 2.0, 5.0])
def test_a_smooth_profile_composes_to_1e_minus_7(count, epsilon):
    lower, upper = (count * of(GAUSSIAN)).delta_bounds(epsilon)
    truth = (count * GAUSSIAN).delta_bounds(epsilon)
    assert lower <= truth.upper
    assert truth.lower <= upper <= truth.upper * (1 + 1e-7)
    assert upper - lower <= 1e-5 * upper


@pytest.mark.parametrize("count", [1, 3, 30])
def test_atoms_are_found_as_kinks(count):
    lower, upper = (count * of(LAPLACE)).delta_bounds(0.7)
    truth = (count * LAPLACE).delta_bounds(0.7)
    assert lower <= truth.upper
    assert truth.lower <= upper <= truth.upper * (1 + 1e-6)
    assert upper - lower <= 1e-2 * upper


def test_two_directions_are_kept_apart():
    one, other = (tr.PrivacyLoss(d, d).delta for d in (SAMPLED.remove, SAMPLED.add))
    loss = 20 * tr.from_profile(one, reverse=other).loss
    for epsilon in (-0.3, 0.0, 1.0):
        assert loss.delta(epsilon) == pytest.approx((20 * SAMPLED).delta(epsilon), rel=1e-6)
    worse = 20 * of(SAMPLED)
    assert worse.delta(1.0) >= (20 * SAMPLED).delta(1.0) * (1 - 1e-9)


@pytest.mark.slow
def test_infinite_mass_stays():
    triple = tr.approx_dp(1, delta=1e-3).loss
    loss = 2 * of(triple, infinite_mass=1e-3)
    assert loss.epsilon(1.9e-3) == np.inf
    lower, upper = loss.delta_bounds(1.5)
    truth = (2 * triple).delta(1.5)
    assert lower <= truth <= upper <= truth * (1 + 1e-6)


def test_it_can_be_sampled_and_erased():
    loss = 10 * of(GAUSSIAN).poisson_sample(0.1)
    truth = (10 * GAUSSIAN.poisson_sample(0.1)).delta_bounds(1.0)
    lower, upper = loss.delta_bounds(1.0)
    assert lower <= truth.upper
    assert truth.lower <= upper <= truth.upper * (1 + 1e-5)
    assert of(GAUSSIAN).erase(0.5).total_variation() == pytest.approx(GAUSSIAN.total_variation() / 2)


@pytest.mark.parametrize(
    ("profile", "expected"),
    [
        (lambda e: np.exp(-e) * (0.5 + 0.1 * np.sin(9 * e) ** 2), "falls"),
        (lambda e: 2 * np.exp(-e), "in \\[0, 1\\]"),
        (lambda e: np.exp(-e) * np.nan, "in \\[0, 1\\]"),
        (lambda e: np.exp(-2 * e) / 4, "mirrored"),
        (lambda e: 0.5, "shape"),
        (lambda e: 0.5 - 0.4 * np.exp(-e), "falls"),
    ],
)
def test_what_is_no_profile_is_refused_at_once(profile, expected):
    with pytest.raises(InputError, match=expected):
        tr.from_profile(profile)
