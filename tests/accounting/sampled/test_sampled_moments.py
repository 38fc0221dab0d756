"""Moments of sampled Gaussians beside the real axis, and the bound on their modulus far out, against mpmath."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise

import mpmath as mp
import numpy as np
import pytest

from tightrope.accounting.distributions.composition import Composition
from tightrope.accounting.distributions.subsampled_gaussian import PoissonGaussian
from tightrope.accounting.distributions.subset import SubsetGaussian
from tightrope.accounting.methods.tail_jumps import BodyMoments, TailJumpMoments
from tightrope.errors import PrecisionError

CASES = [(0.5, 1e-4, 30.0), (1.0, 9e-6, 15.0), (2.5, 1e-3, 1.5), (0.125, 5e-4, 200.0), (1.0, 0.3, 2.0)]
HEIGHTS = [0.0, 0.3, 10.0, 1e3, 1e5]


def normal(x: mp.mpf) -> mp.mpf:
    return mp.exp(-x * x / 2) / mp.sqrt(2 * mp.pi)


def along(value: Callable[[mp.mpc], mp.mpc], corners: Sequence[mp.mpc]) -> mp.mpc:
    """∫ of the value over a polygon, each side from 0 to 1.

    Ends that are complex would be kept by mpmath for other tests' real ends: both are one key.
    """
    return mp.fsum(mp.quad(lambda t, a=a, b=b: (b - a) * value(a + t * (b - a)), [0, 1]) for a, b in pairwise(corners))


def excess(law: PoissonGaussian, z: complex) -> mp.mpc:
    """M − 1 by mpmath, on panels of a polygon of its own: along the real axis, but lifted where the far part turns."""
    mu, q, z = mp.mpf(law.mu), mp.mpf(law.rate), mp.mpc(z)
    p = z + 1 if law.remove else -z
    lift = mp.mpf(min(1.0, 1.2 / law.mu)) * mp.sign(p.imag)

    def value(x: mp.mpc) -> mp.mpc:
        a = q * mp.expm1(mu * x - mu * mu / 2)
        return normal(x) * ((1 + a) ** p - 1 - p * a)

    last = max(float(p.real) * law.mu, 0.0) + 14 + law.mu
    return along(value, [mp.mpc(x, lift) for x in [*np.arange(-14.0, last - 1, 1.0), last]])


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("remove", [True, False])
def test_moments_hold_mpmath_s(case: tuple[float, float, float], remove: bool) -> None:
    mu, rate, c = case
    law = PoissonGaussian(mu, rate, remove)
    with mp.workdps(30):
        for y in HEIGHTS:
            if rate > 0.1 and y > 100:
                continue
            value, error = law.enclose_cumulant(np.array([complex(c, y)]))
            truth = mp.log1p(excess(law, complex(c, y)))
            off = abs(mp.mpc(complex(value[0])) - truth)
            turns = abs(complex(value[0]).imag - float(truth.imag)) > 3  # another branch of the logarithm
            assert turns or off <= error[0]
            assert value[0].real < -5 or error[0] <= 1e-10


@pytest.mark.parametrize("remove", [True, False])
def test_real_powers_of_one_class_share_nodes(remove: bool) -> None:
    """Together as each alone, and as mpmath says, at both ends of a class; those beyond every class are refused."""
    law = PoissonGaussian(0.5, 1e-3, remove)
    z = np.array([8.5, 60.0, 1e-3, 700.0, 2.0], dtype=np.complex128)
    values, errors = law.enclose_cumulant(z)
    for here, value, error in zip(z, values, errors, strict=True):
        assert law.enclose_cumulant(np.array([here]))[0][0] == value
        assert error <= 1e-10 * abs(value)
    with mp.workdps(30):
        for place in (0, 1):
            assert abs(mp.mpf(float(values[place].real)) - mp.log1p(excess(law, z[place])).real) <= errors[place]
    with pytest.raises(PrecisionError, match="a moment of order 1e\\+30 is beyond"):
        law.enclose_cumulant(np.array([1e30 + 0j]))


@pytest.mark.parametrize("y", [0.5, 40.0, 3e3])
def test_rows_of_equidistant_points_say_what_single_points_say(y: float) -> None:
    law = PoissonGaussian(0.7, 1e-3, remove=True)
    z = 12 + 1j * y * np.arange(1, 200)
    together, error = law.enclose_cumulant(z)
    for i in (0, 7, 63, 64, 150, 198):
        alone, own = law.enclose_cumulant(z[i : i + 1])
        assert abs(together[i] - alone[0]) <= error[i] + own[0]


@pytest.mark.parametrize("mu", [0.3, 1.0, 2.5])
@pytest.mark.parametrize("rate", [1e-5, 0.02])
def test_a_subset_s_moments(mu: float, rate: float) -> None:
    law = SubsetGaussian(mu, rate)
    with mp.workdps(30):
        m, q = mp.mpf(mu), mp.mpf(rate)

        def part(z: mp.mpc, sign: int) -> mp.mpc:
            def value(x: mp.mpc) -> mp.mpc:
                g = 1 + q * mp.expm1(m * x - m * m / 2)
                return normal(x) * (g * (g**z - 1) if sign > 0 else g**-z - 1)

            up = mp.mpf(min(0.6, 0.6 / mu)) * (sign if z.imag else 0)
            corner = [mp.mpc(mu / 2 + 0.5 + n, up) for n in range(int(14 + mu * (float(z.real) + 1)))]
            return along(value, [m / 2, *corner])

        for y in (0.0, 1.0, 300.0, 1 / rate):
            z = complex(3.0, y)
            value, error = law.enclose_cumulant(np.array([z]))
            truth = mp.log(1 + part(mp.mpc(z), 1) + part(mp.mpc(z), -1))
            assert abs(mp.mpc(complex(value[0])) - truth) <= error[0] + 1e-24
            assert error[0] <= 1e-10


LAWS = [PoissonGaussian(mu, q, way) for mu, q, _ in CASES for way in (True, False)]


@pytest.mark.parametrize("law", [*LAWS, SubsetGaussian(1.0, 1e-4), SubsetGaussian(0.2, 0.3)])
def test_the_path_bounds_the_modulus_for_every_larger_y(law: PoissonGaussian | SubsetGaussian) -> None:
    """And falls, and is no loose bound where the modulus is near one."""
    c = 3.0
    heights = np.geomspace(1e-3, 1e4, 60) / law.rate
    moments, errors = law.enclose_cumulant(c + 1j * heights)
    at_c, own = law.enclose_cumulant(np.array([complex(c)]))
    sizes = np.exp(np.minimum(moments.real - at_c[0].real - errors - own[0], 0.0))
    bounds = np.array([law.moment_decay_bound(c, float(y)) for y in heights])
    assert np.all(np.maximum.accumulate(sizes[::-1])[::-1] <= bounds)
    assert np.all(np.diff(bounds) <= 1e-15)
    near = (1 - sizes > 1e-9) & (sizes > 0.99)
    if isinstance(law, PoissonGaussian) and law.mu <= 1 and law.rate < 0.01:
        assert np.all(1 - bounds[near] >= 0.5 * (1 - sizes[near]))


def test_a_body_and_its_tail_make_the_law() -> None:
    """M = B + T on a line and on the real axis."""
    law = PoissonGaussian(1.3, 1e-3, remove=True)
    body = law.trim_tail(1e-6)
    assert 0 < body.infinite_mass <= 1e-6
    for z in (np.array([2.0 + 0j, 3.0 + 0j]), 2.0 + 1j * np.array([5.0, 50.0, 500.0])):
        whole, first, second = law.enclose_cumulant(z), body.enclose_cumulant(z), body.log_tail_integral(z)
        total = np.exp(first[0]) + np.exp(second[0])
        room = whole[1] + first[1] + np.abs(np.exp(second[0])) * second[1] + 1e-14
        assert np.all(np.abs(total - np.exp(whole[0])) <= room * np.abs(np.exp(whole[0])))


def test_jumps_are_the_second_and_third_terms_of_a_power() -> None:
    """(B + T)^k = B^k + k B^{k−1} T + C(k, 2) B^{k−2} T² + …"""
    law, k = PoissonGaussian(1.3, 1e-3, remove=True), 50
    body = Composition.from_distribution(law).trim_tail(1e-5) * k
    z = 2.0 + 1j * np.array([5.0, 50.0])
    b, t = np.exp(body.laws[0].enclose_cumulant(z)[0]), np.exp(body.laws[0].log_tail_integral(z)[0])
    expected = k * b ** (k - 1) * t + k * (k - 1) / 2 * b ** (k - 2) * t**2
    value, error = TailJumpMoments(BodyMoments(body)).log_moments(z)
    np.testing.assert_allclose(np.exp(value), expected, rtol=1e-10)
    assert np.all(error < 1e-9)


@pytest.mark.parametrize("mu", [5.0, 6.5, 8.3, 17.8, 25.9, 26.1, 45.0])
def test_narrow_noise_has_the_moments_of_its_whole_law(mu: float) -> None:
    """∫ φ (g − 1) is 0, but not up to a point beside μ: moments were off by as much as the rate where μ > 6."""
    rate, z = 0.01, np.array([0.05, 1, 1 + 1j, 0.05 + 3j, 3 + 100j])
    x = 2.0**-13 * np.arange(-(16 << 13), math.ceil(mu + 16) << 13)
    log_g = np.logaddexp(math.log1p(-rate), math.log(rate) + mu * x - mu**2 / 2)
    density = np.exp(-(x**2) / 2) * 2.0**-13 / math.sqrt(2 * math.pi)
    values, errors = PoissonGaussian(mu, rate, remove=False).enclose_cumulant(z[2:])
    reals, wrong = PoissonGaussian(mu, rate, remove=False).enclose_cumulant(z[:2])
    exact = np.array([np.sum(density * np.exp(-power * log_g)) for power in z])
    off = np.abs(np.exp(np.concatenate([reals, values])) / exact - 1)
    assert np.all(off <= np.concatenate([wrong, errors]) + 2e-12)
