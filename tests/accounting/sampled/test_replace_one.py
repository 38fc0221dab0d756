"""A record of a Poisson sample that is replaced or zeroed out, against mpmath with code of its own."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tightrope as tr
from tightrope.accounting.distributions.composition import Composition
from tightrope.accounting.distributions.replace_one_gaussian import ReplaceOneGaussian
from tightrope.accounting.methods.grid import GridMethod
from tightrope.accounting.neighbors import Neighbors
from tightrope.errors import InputError


def replaced(scale: float, rate: float) -> tr.PrivacyLoss:
    return tr.gaussian(scale=scale).loss.poisson_sample(rate, neighbors="replace-one")


def one_step(mu: float, rate: float, epsilon: float) -> mp.mpf:
    """Return δ(ε) of one step from the masses beyond the threshold, found by bisection."""
    m, q, e = mp.mpf(mu), mp.mpf(rate), mp.mpf(epsilon)

    def density(x: mp.mpf) -> mp.mpf:
        return 1 - q + q * mp.exp(m * x - m * m / 2)

    low, high = mp.mpf(-64), mp.mpf(512)
    for _ in range(int(3.4 * mp.mp.dps) + 10):
        middle = (low + high) / 2
        low, high = (middle, high) if mp.log(density(middle) / density(-middle)) < e else (low, middle)
    above = [mp.ncdf(s - low) for s in (0, m, -m)]
    return (1 - q) * above[0] + q * above[1] - mp.exp(e) * ((1 - q) * above[0] + q * above[2])


def many_steps(mu: float, rate: float, count: int, epsilon: float, c: float) -> mp.mpf:
    """Return δ(ε) by the trapezoidal rule for the contour integral and for each moment, on the real axis of x."""
    m, q, e, width = mp.mpf(mu), mp.mpf(rate), mp.mpf(epsilon), mp.mpf(1) / 8
    xs = [width * i for i in range(int((-14 - 6 * mu) * 8), int((14 + 4 * c * mu) * 8))]
    up = [mp.log(1 - q + q * mp.exp(m * x - m * m / 2)) for x in xs]
    down = [mp.log(1 - q + q * mp.exp(-m * x - m * m / 2)) for x in xs]
    weights = [mp.exp(a - x * x / 2) for x, a in zip(xs, up, strict=True)]
    losses = [a - b for a, b in zip(up, down, strict=True)]

    def integrand(z: mp.mpc) -> mp.mpc:
        moment = mp.fsum(w * mp.exp(z * loss) for w, loss in zip(weights, losses, strict=True))
        return (width * moment / mp.sqrt(2 * mp.pi)) ** count * mp.exp(-z * e) / (z * (z + 1))

    step, total = 2 * mp.pi * c / 160, integrand(mp.mpc(c)).real / 2
    for n in range(1, 2000):
        term = integrand(mp.mpc(c, n * step))
        total += term.real
        if abs(term) < mp.mpf(10) ** -18 * abs(total):
            return total * step / mp.pi
    raise AssertionError("the integral does not converge")


@pytest.mark.parametrize(
    ("mu", "rate", "epsilon"),
    [(1, 0.1, 0.5), (0.3, 0.01, 0.0), (0.3, 0.01, 0.01), (2, 0.5, 3), (1e-3, 0.2, 1e-4), (5, 1e-4, 2), (8, 0.9, 20)],
)
def test_one_step_contains_the_exact_value(mu: float, rate: float, epsilon: float) -> None:
    bounds = replaced(1 / mu, rate).delta_bounds(epsilon)
    with mp.workdps(60):
        truth = one_step(1 / mp.mpf(1 / mu), rate, epsilon)
    assert mp.mpf(bounds.lower) <= truth <= mp.mpf(bounds.upper)
    assert bounds.upper - bounds.lower <= 1e-9 * bounds.upper


@pytest.mark.parametrize(
    ("scale", "rate", "count", "epsilon", "c"),
    [
        (1.0, 0.3, 5, 1.0, 2.0),
        (0.5, 0.1, 20, 2.0, 1.0),
        (1.25, 0.05, 100, 1.0, 2.0),
        (4.0, 0.01, 1000, 0.5, 15.0),
        (1.3, 256 / 60_000, 3515, 1.0, 7.0),
    ],
)
def test_many_steps_contain_the_exact_value(scale: float, rate: float, count: int, epsilon: float, c: float) -> None:
    bounds = (count * replaced(scale, rate)).delta_bounds(epsilon)
    with mp.workdps(30):
        truth = many_steps(1 / scale, rate, count, epsilon, c)
    assert mp.mpf(bounds.lower) <= truth <= mp.mpf(bounds.upper)
    assert bounds.upper - bounds.lower <= 1e-9 * bounds.upper


@pytest.mark.parametrize(("mu", "rate", "c"), [(1.0, 0.01, 8.0), (0.2, 0.3, 20.0), (3.0, 1e-3, 0.7), (1.0, 0.05, -0.4)])
@pytest.mark.parametrize("y", [0.0, 2.0, 40.0])
def test_moments_contain_the_exact_value(mu: float, rate: float, c: float, y: float) -> None:
    value, error = ReplaceOneGaussian(mu, rate).enclose_cumulant(np.array([complex(c, y)]))
    with mp.workdps(40):
        m, q, z, width = mp.mpf(mu), mp.mpf(rate), mp.mpc(c, y), mp.mpf(1) / 64
        xs = [width * i for i in range(int((-14 - mu) * 64), int((14 + 2 * (abs(c) + 1) * mu) * 64))]
        moment = mp.fsum(
            mp.exp(
                -x * x / 2
                + (z + 1) * mp.log(1 - q + q * mp.exp(m * x - m * m / 2))
                - z * mp.log(1 - q + q * mp.exp(-m * x - m * m / 2))
            )
            for x in xs
        )
        truth = mp.log(moment * width / mp.sqrt(2 * mp.pi))
    difference = complex(truth) - complex(value[0])
    turns = round(difference.imag / (2 * math.pi))
    assert abs(difference - 2j * math.pi * turns) <= error[0] + 1e-14 * abs(value[0])
    assert error[0] <= 1e-9 or value[0].real < -5


@pytest.mark.parametrize(("mu", "rate", "c"), [(1.0, 0.01, 8.0), (0.2, 0.3, 20.0), (3.0, 1e-3, 0.7), (0.5, 0.9, 3.0)])
def test_the_decay_bounds_the_modulus_for_every_larger_y(mu: float, rate: float, c: float) -> None:
    law = ReplaceOneGaussian(mu, rate)
    y = np.geomspace(0.01, 100 / rate, 60)
    value, error = law.enclose_cumulant(np.asarray(c + 1j * y))
    at_c = law.enclose_cumulant(np.array([c + 0j]))
    ratios = value.real - at_c[0][0].real
    bounds = np.log([law.moment_decay_bound(c, float(each)) for each in y])
    known = np.isfinite(error)
    farther = np.maximum.accumulate(np.where(known, ratios - error, -np.inf)[::-1])[::-1]
    assert np.all(farther <= bounds + at_c[1][0] + 1e-12)
    assert bounds[-1] < -1


@pytest.mark.parametrize(("count", "epsilon"), [(3, 0.4), (40, 1.5)])
def test_the_grid_agrees(count: int, epsilon: float) -> None:
    """Cells of losses, in another method."""
    step = replaced(1.5, 0.2)
    low, high = GridMethod(Composition.from_distribution(step.remove.laws[0]) * count).delta(epsilon)
    bounds = (count * step).delta_bounds(epsilon)
    assert low <= bounds.upper
    assert bounds.lower <= high
    assert high - low <= 0.02 * high


@settings(max_examples=20, deadline=None)
@given(st.floats(0.5, 10), st.floats(0.01, 0.9), st.integers(10, 200), st.sampled_from([0.0, 0.05, 0.5]))
def test_replacing_loses_more_than_removing_and_less_than_a_public_sample(
    scale: float, rate: float, count: int, epsilon: float
) -> None:
    """Were it known whether the record was sampled, then δ would be the rate times that of the distance 2."""
    step, twice = replaced(scale, rate), tr.gaussian(scale=scale, sensitivity=2).loss
    removed = tr.gaussian(scale=scale).loss.poisson_sample(rate)
    for times in (1, count):
        bounds = (times * step).delta_bounds(epsilon)
        assert (times * removed).delta_bounds(epsilon).lower <= bounds.upper
        assert bounds.lower <= (times * twice).delta(epsilon)
        assert 0 <= bounds.lower <= bounds.upper <= 1
    assert step.delta_bounds(epsilon).lower <= rate * twice.delta(epsilon) * (1 + 1e-12)


def test_records_that_are_not_opposite_lose_less() -> None:
    """Two records in the plane at several angles, by outcomes on a grid."""
    grid = np.linspace(-8.5, 8.5, 501)
    x, y = np.meshgrid(grid, grid)
    normal = np.exp(-(x**2 + y**2) / 2) / (2 * math.pi) * (grid[1] - grid[0]) ** 2
    rate, mu = 0.3, 1.2
    worst = replaced(1 / mu, rate)
    for angle in (0.5, 1.5, 2.5, math.pi):
        moved = [np.exp(mu * (x * math.cos(a) + y * math.sin(a)) - mu * mu / 2) for a in (0.0, angle)]
        p, q = (1 - rate + rate * density for density in moved)
        for epsilon in (0.0, 0.3, 1.0):
            plane = np.sum(normal * np.maximum(p - math.exp(epsilon) * q, 0))
            assert plane <= worst.delta(epsilon) + (1e-4 if angle == math.pi else 0)
            assert angle < 3 or plane == pytest.approx(worst.delta(epsilon), rel=1e-3)


def test_zero_out_is_the_loss_of_adding_and_removing() -> None:
    zeroed = tr.gaussian(scale=2).loss.poisson_sample(0.1, neighbors="zero-out")
    removed = tr.gaussian(scale=2).loss.poisson_sample(0.1)
    assert (30 * zeroed).delta(0.5) == (30 * removed).delta(0.5)
    assert (zeroed.neighbors, removed.neighbors) == (Neighbors.ZERO_OUT, Neighbors.ADD_REMOVE)
    assert zeroed.group(3).delta(0.5) == removed.group(3).delta(0.5)
    with pytest.raises(InputError, match="do not add up"):
        zeroed + removed


def test_ends_of_the_rate_and_other_losses() -> None:
    loss = tr.gaussian(scale=3).loss
    certain = loss.poisson_sample(1, neighbors=Neighbors.REPLACE_ONE)
    assert certain.delta(0.5) == tr.gaussian(scale=3, sensitivity=2).loss.delta(0.5)
    assert loss.poisson_sample(0, neighbors="replace-one").delta(0) == 0
    composed = 10 * replaced(3, 0.1) + tr.gaussian(scale=9, sensitivity=2).loss
    assert composed.neighbors is Neighbors.REPLACE_ONE
    bounds = composed.delta_bounds(0.3)
    assert bounds.upper - bounds.lower <= 1e-9 * bounds.upper
    assert bounds.lower > (10 * replaced(3, 0.1)).delta(0.3)
    rates = (100 * replaced(3, 0.1)).true_positive_rate_bounds(0.05)
    assert rates.upper - rates.lower <= 1e-6


def test_wrong_relations_are_refused() -> None:
    loss = tr.gaussian(scale=3).loss
    with pytest.raises(InputError, match="one of add-remove, zero-out, replace-one"):
        loss.poisson_sample(0.1, neighbors="local")
    with pytest.raises(InputError, match="Gaussian noise"):
        tr.laplace(scale=1).loss.poisson_sample(0.1, neighbors="replace-one")
    with pytest.raises(InputError, match="for a group"):
        loss.group(2).poisson_sample(0.1, neighbors="replace-one")
    with pytest.raises(InputError, match="Gaussian steps"):
        replaced(3, 0.1).group(2)
    with pytest.raises(InputError, match="do not add up"):
        replaced(3, 0.1) + loss.poisson_sample(0.1)
