"""Random allocation of records to Gaussian steps, against quadrature, simulation and bounds from theory."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest

import tightrope as tr
from tightrope.accounting.distributions.allocated_gaussian import (
    AllocatedGaussian,
    laplace_excess,
    truncation_height,
)
from tightrope.errors import InputError


def directions(scale: float, steps: int, epsilon: float) -> tuple[tuple[float, float], tuple[float, float]]:
    at = np.array([epsilon])
    ends = [AllocatedGaussian(1 / scale, steps, remove).compute_deltas((at, at)) for remove in (True, False)]
    return tuple((float(low[0]), float(high[0])) for low, high in ends)


@pytest.mark.parametrize(
    ("scale", "epsilon", "remove", "add"),
    [(1.0, 0.5, 4.40890803e-5, 5.92528e-7), (0.6, 0.5, 0.02290859, None), (0.6, 1.0, 0.00486851, None)],
)
def test_known_values(scale, epsilon, remove, add):
    (_, removing), (_, adding) = directions(scale, 100, epsilon)
    assert removing == pytest.approx(remove, rel=2e-6)
    assert add is None or adding == pytest.approx(add, rel=2e-6)
    assert tr.gaussian(scale=scale).loss.random_allocation(100).delta(epsilon) == removing


def two_steps(scale: float, epsilon: float, *, remove: bool) -> mp.mpf:
    """δ of two steps by one integral in 30 digits: the ratio of the second step is integrated in closed form."""
    with mp.workdps(30):
        mu, strike = 1 / mp.mpf(scale), 2 * mp.e ** (mp.mpf(epsilon) * (1 if remove else -1))

        def price(z):  # E(W − k)₊ or E(k − W)₊ for the strike that is left
            left = strike - mp.e ** (mu * z - mu**2 / 2)
            if left <= 0:
                value = 1 - left if remove else mp.mpf(0)
            else:
                d = mp.log(left) / mu
                sign = 1 if remove else -1
                value = sign * (mp.ncdf(sign * (mu / 2 - d)) - left * mp.ncdf(sign * (-mu / 2 - d)))
            return value * mp.npdf(z)

        kink = (mp.log(strike) + mu**2 / 2) / mu
        total = mp.quad(price, [-14, -6, -2, 0, min(kink, 14), kink + 2, kink + 8]) / 2
        return total if remove else total * mp.e ** mp.mpf(epsilon)


@pytest.mark.parametrize("scale", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("epsilon", [0.0, 0.3])
def test_two_steps_by_quadrature(scale, epsilon):
    for (low, high), remove in zip(directions(scale, 2, epsilon), (True, False), strict=True):
        truth = two_steps(scale, epsilon, remove=remove)
        assert low <= truth * (1 + 1e-12)
        assert truth * (1 - 1e-12) <= high
        assert scale < 1 or high - low <= 1e-9 * high  # two steps with little noise take too many nodes


def plain_price(scale: float, steps: int, epsilon: float, *, remove: bool) -> mp.mpf:
    """δ by the inversion integral of puts in 40 digits, on one line, without any of the refinements."""
    with mp.workdps(40):
        mu, strike = 1 / mp.mpf(scale), mp.e ** (mp.mpf(epsilon) * (1 if remove else -1))
        c, period, width = mp.mpf(8 if remove else 20), mp.mpf(8), mp.mpf(1) / 50
        z = [k * width for k in range(-700, 750)]
        ratios = [mp.e ** (mu * x - mu**2 / 2) for x in z]
        weights = [mp.npdf(x) * width for x in z]
        step, total, n = 2 * mp.pi / period, mp.mpf(0), 0
        while True:
            s = mp.mpc(c, n * step)
            transform = mp.fsum(w * mp.exp(-s / steps * r) for w, r in zip(weights, ratios, strict=True)) ** steps
            term = transform * mp.exp(s * strike) / s**2
            total += term.real / (2 if n == 0 else 1)
            if n > 5 and abs(term) < mp.mpf(10) ** -32:
                break
            n += 1
        put = total * step / mp.pi
        aliases = mp.fsum(mp.e ** (-k * c * period) * (strike - 1 + k * period) for k in range(1, 5))
        put -= aliases  # far out a put is K − 1 but for a call, which is negligible here
        return 1 - strike + put if remove else put * mp.e ** mp.mpf(epsilon)


EXACT = {  # by plain_price; scale, steps, epsilon: removing, adding
    (1.0, 100, 0.5): ("0.000044089080338630416186", "5.925283691709105228e-7"),
    (1.0, 20, 0.2): ("0.045109960136509247189", "0.040447471200898401624"),
    (3.0, 50, 0.02): ("0.011066900038203422319", "0.011053400384604048882"),
}


@pytest.mark.parametrize("setting", list(EXACT))
def test_many_steps_in_forty_digits(setting):
    for (low, high), truth in zip(directions(*setting), EXACT[setting], strict=True):
        assert low <= mp.mpf(truth) * (1 + mp.mpf(10) ** -18)
        assert mp.mpf(truth) * (1 - mp.mpf(10) ** -18) <= high
        assert high - low <= 1e-9 * high


@pytest.mark.slow
def test_the_plain_integral_gives_the_exact_numbers():
    setting = (1.0, 100, 0.5)
    for remove, truth in zip((True, False), EXACT[setting], strict=True):
        assert abs(plain_price(*setting, remove=remove) / mp.mpf(truth) - 1) < 1e-15


def simulated(scale: float, steps: int, epsilons: list[float], draws: int) -> list[tuple[float, float, float, float]]:
    """Return for each ε the means and standard errors of the payoffs of both directions."""
    generator, sums, mu = np.random.default_rng(20240607), np.zeros((len(epsilons), 4)), 1 / scale
    block = max(1, 4_000_000 // steps)
    done = 0
    while done < draws:
        z = generator.standard_normal((min(block, draws - done), steps))
        ratio = np.mean(np.exp(mu * z - mu**2 / 2), axis=1)
        for row, epsilon in zip(sums, epsilons, strict=True):
            payoffs = np.maximum(ratio - math.exp(epsilon), 0), np.maximum(1 - math.exp(epsilon) * ratio, 0)
            row += [payoffs[0].sum(), (payoffs[0] ** 2).sum(), payoffs[1].sum(), (payoffs[1] ** 2).sum()]
        done += len(ratio)
    means = sums / draws
    errors = np.sqrt(np.maximum(means[:, 1::2] - means[:, ::2] ** 2, 0.0) / draws)
    return [(m[0], e[0], m[2], e[1]) for m, e in zip(means, errors, strict=True)]


def check_simulation(scale: float, steps: int, epsilons: list[float], draws: int) -> None:
    for epsilon, (remove, remove_error, add, add_error) in zip(
        epsilons, simulated(scale, steps, epsilons, draws), strict=True
    ):
        (low, high), (low_add, high_add) = directions(scale, steps, epsilon)
        assert low - 5 * remove_error <= remove <= high + 5 * remove_error
        assert low_add - 5 * add_error <= add <= high_add + 5 * add_error


@pytest.mark.parametrize(("scale", "steps"), [(1.0, 10), (2.0, 50)])
def test_simulation_of_an_epoch(scale, steps):
    check_simulation(scale, steps, [0.0, 0.05, 0.2], 100_000)


@pytest.mark.slow
@pytest.mark.parametrize(("scale", "steps"), [(1.0, 10), (0.7, 30)])
def test_simulation_of_ten_million_epochs(scale, steps):
    check_simulation(scale, steps, [0.0, 0.1, 0.4], 10_000_000)


@pytest.mark.parametrize("scale", [1.0, 5.0])
@pytest.mark.parametrize("steps", [100, 10_000])
def test_bounds_by_theory(scale, steps):
    step = tr.gaussian(scale=scale).loss
    loss = step.random_allocation(steps)
    last = 1.0
    for epsilon in (0.0, 0.02, 0.1, 0.4):
        low, high = loss.delta_bounds(epsilon)
        assert low <= high <= step.delta(epsilon)
        assert high <= last
        # Allocation to fewer steps is allocation to more of them, two of which have the same output.
        assert low <= step.random_allocation(max(1, steps // 2)).delta(epsilon)
        last = high
    assert loss.total_variation() == loss.delta(0)
    one, other = directions(scale, steps, 0.0)
    assert one[0] <= other[1]
    assert other[0] <= one[1]


@pytest.mark.parametrize("delta", [1e-2, 1e-5, 1e-8])
@pytest.mark.parametrize(("scale", "steps"), [(1.0, 100), (1.0, 100_000), (5.0, 1000)])
def test_one_epoch_is_narrow(scale, steps, delta):
    lower, upper = tr.gaussian(scale=scale).loss.random_allocation(steps).epsilon_bounds(delta)
    assert lower <= upper <= lower + 1e-9


def test_little_noise_takes_a_steeper_line():
    lower, upper = tr.gaussian(scale=0.6).loss.random_allocation(100).epsilon_bounds(1e-4)
    assert lower <= upper <= lower + 1e-9
    # One of 100 steps, or each with probability 1/100: near, since both are rare large losses.
    poisson = (100 * tr.gaussian(scale=0.6).loss.poisson_sample(0.01)).epsilon(1e-4)
    assert 0.8 * poisson < lower < poisson


def test_epochs_compose():
    step = tr.gaussian(scale=1).loss
    epoch = step.random_allocation(1000)
    lower, upper = (10 * epoch).epsilon_bounds(1e-6)
    assert epoch.epsilon(1e-6) < lower <= upper <= lower * (1 + 1e-3)
    assert upper < (10 * step).epsilon(1e-6)
    # One of 1,000 steps an epoch, or each with probability 1/1,000: the variance of the loss is nearly the same.
    assert upper == pytest.approx((10_000 * step.poisson_sample(1e-3)).epsilon(1e-6), rel=0.1)


def test_moments_of_the_transform():
    """E e^{−s(W − 1)} − 1 at real s, by integration in 30 digits."""
    with mp.workdps(30):
        for mu in (0.05, 1.0, 2.5):
            for order in (1e-4, 0.3, 5.0):
                truth = mp.quad(
                    lambda z, mu=mu, order=order: (
                        mp.npdf(z) * mp.expm1(-mp.mpf(order) * (mp.e ** (mp.mpf(mu) * z - mp.mpf(mu) ** 2 / 2) - 1))
                    ),
                    [-14, -4, 0, 4, 14 + mu],
                )
                value, error = laplace_excess(mu, np.array([order], dtype=np.clongdouble))
                assert abs(float(value[0].real) - truth) <= float(error[0]) + 1e-16 * abs(truth)
                assert abs(value[0].imag) <= error[0]


@pytest.mark.parametrize("mu", [0.1, 1.0, 2.0])
def test_the_transform_is_small_beyond_its_height(mu):
    size = math.log1p(float(laplace_excess(mu, np.array([0.1], dtype=np.clongdouble))[0].real[0])) - 0.1
    height = truncation_height(mu, 0.1, size, 0.5)
    beyond = 0.1 + 1j * np.linspace(height, 20 * height, 400).astype(np.longdouble)
    sizes = np.abs(1 + laplace_excess(mu, beyond)[0]).astype(np.float64) * math.exp(-0.1)
    assert np.all(sizes <= math.exp(size - 0.5))


def test_doubtful_arguments_are_refused():
    step = tr.gaussian(scale=1).loss
    for steps in (0, -1, 2.5, 10**7):
        with pytest.raises(InputError):
            step.random_allocation(steps)
    for loss in (2 * step, tr.laplace(scale=1).loss, step.poisson_sample(0.1), tr.gaussian(scale=0.1).loss):
        with pytest.raises(InputError):
            loss.random_allocation(10)
    assert step.random_allocation(1).epsilon(1e-6) == step.epsilon(1e-6)


def test_the_loss_of_a_group_stays_one():
    allocated = tr.gaussian(scale=2).loss.group(2).random_allocation(10)
    assert allocated.group_size == 2
    with pytest.raises(InputError):
        allocated + tr.gaussian(scale=2).loss.poisson_sample(0.1)
    assert allocated.delta(0.5) == tr.gaussian(scale=1).loss.random_allocation(10).delta(0.5)
