"""Moments of sampled Laplace-type laws against mpmath, the bound on their modulus, and their compositions."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest

import tightrope as tr
from tightrope.accounting.distributions.base import LossDistribution
from tightrope.accounting.distributions.composition import Composition
from tightrope.accounting.methods.grid import GridMethod
from tightrope.errors import PrecisionError

CASES = [(1.0, 1e-4), (1.0, 0.1), (1e-3, 0.3), (5.0, 1e-3), (0.2, 0.999)]
POINTS = [complex(0.5), 10 + 30j, 300 + 1000j, 2000 + 5e4j]


def spread_under_a(base: float) -> list[tuple[mp.mpf, mp.mpf]]:
    """Atoms (loss, mass) of Laplace noise without the record; its density is e^{−(a + l)/2}/4 between."""
    a = mp.mpf(base)
    return [(-a, mp.mpf(1) / 2), (a, mp.exp(-a) / 2)]


def expected(base: float, power: mp.mpc, rate: float, *, start: float | None = None) -> mp.mpc:
    """E_A (1 − q + q e^l)^w over losses from ``start`` on."""
    a, q, low = mp.mpf(base), mp.mpf(rate), mp.mpf(-base if start is None else start)

    def value(loss: mp.mpf) -> mp.mpc:
        return (1 - q + q * mp.exp(loss)) ** power

    dense = mp.quad(lambda x: value(x) * mp.exp(-(a + x) / 2) / 4, mp.linspace(low, a, 9))
    return dense + mp.fsum(mass * value(loss) for loss, mass in spread_under_a(base) if loss >= low)


def off(value: complex, truth: mp.mpc) -> float:
    """Apart from the branch of the logarithm."""
    apart = complex(mp.mpc(value) - mp.log(truth))
    return abs(complex(apart.real, math.remainder(apart.imag, 2 * math.pi)))


def known(law: LossDistribution, z: complex) -> tuple[complex, float]:
    found = law.enclose_cumulant(np.array([z]))
    assert found is not None
    return complex(found[0][0]), float(found[1][0])


@pytest.mark.parametrize(("base", "rate"), CASES)
@pytest.mark.parametrize("z", POINTS)
def test_moments_hold_mpmath_s(base: float, rate: float, z: complex) -> None:
    if abs(z) * min(rate, 0.2) * math.expm1(base) > 400:
        pytest.skip("needs more nodes than are tried; a refusal")
    loss = tr.laplace(scale=1 / base).loss.poisson_sample(rate)
    with mp.workdps(40):
        for law, power in ((loss.remove.laws[0], mp.mpc(z) + 1), (loss.add.laws[0], -mp.mpc(z))):
            value, error = known(law, z)
            assert off(value, expected(base, power, rate)) <= error
            assert error <= 1e-11 * max(1, abs(value))


@pytest.mark.parametrize("z", [0.5 + 0j, 40 + 3j, 100 + 2000j])
def test_moments_of_subsets_hold_mpmath_s(z: complex) -> None:
    base, rate = 1.0, 1e-2
    law = tr.laplace(scale=1 / base).loss.subset_sample(1, 100).remove.laws[0]
    with mp.workdps(40):
        up, one, down, mass = (expected(base, w, rate, start=0.0) for w in (mp.mpc(z) + 1, 1, -mp.mpc(z), 0))
        value, error = known(law, z)
        assert off(value, 1 + up - one + down - mass) <= error <= 1e-12


@pytest.mark.parametrize(("base", "rate"), CASES[:4])
@pytest.mark.parametrize("kind", ["remove", "add", "subset"])
def test_no_modulus_further_out_is_above_the_bound(base: float, rate: float, kind: str) -> None:
    plain = tr.laplace(scale=1 / base).loss
    sampled = plain.subset_sample(round(1000 * rate) or 1, 1000) if kind == "subset" else plain.poisson_sample(rate)
    law = getattr(sampled, "add" if kind == "add" else "remove").laws[0]
    span = law.largest_loss * 2
    rng, checked = np.random.default_rng(3), 0
    for c in (0.3, 5.0, 40.0):
        top, _ = known(law, complex(c))
        for turns in rng.uniform(0.01, 12, 12):
            y = turns / span
            bound = law.moment_decay_bound(c, y)
            for further in y * (1 + rng.exponential(1.0, 8)):
                try:
                    value, error = known(law, complex(c, further))
                except PrecisionError:
                    continue
                checked += 1
                assert math.exp(value.real - top.real - error - 1e-12) <= bound <= 1
    assert checked > 30


def test_bounded_ranges_and_truncated_noise_have_them_too() -> None:
    """Without atoms, and with an infinite loss: the contour agrees with the grid, and says far more."""
    for base in (tr.bounded_range(epsilon=0.7).loss, tr.truncated_laplace(epsilon=1, delta=1e-9).loss):
        loss = 2000 * base.poisson_sample(1e-3)
        assert loss.method == "contour"
        epsilon = loss.epsilon(1e-5)
        for total in (loss.remove, loss.add):
            low, high = GridMethod(total).delta(epsilon)
            engine = (tr.PrivacyLoss(total, total)).delta_bounds(epsilon)
            assert max(low, engine.lower) <= min(high, engine.upper) * (1 + 1e-12)
        bounds = loss.delta_bounds(epsilon)
        assert bounds.upper - bounds.lower <= 1e-9 * bounds.upper


@pytest.mark.parametrize("count", [10**4, 10**6])
def test_small_rates_are_as_narrow_as_those_of_gaussians(count: int) -> None:
    loss = count * tr.laplace(scale=1).loss.poisson_sample(1 / count)
    bounds = loss.epsilon_bounds(1e-6)
    assert bounds.upper - bounds.lower <= 1e-8 * bounds.upper


def test_large_losses_are_left_to_the_grid() -> None:
    loss = tr.laplace(scale=1 / 60).loss.poisson_sample(1e-3)
    assert loss.remove.laws[0].log_moment(np.array([1.0 + 0j])) is None
    assert Composition.from_distribution(loss.remove.laws[0]).log_moment(np.array([1.0 + 0j])) is None
    assert (3 * loss).method == "grid"


def test_beside_the_largest_loss_the_heaviest_atoms_are_all_that_counts() -> None:
    """So near that no other path reaches ε: δ is the chance of three largest losses times 1 − e^{ε − l}."""
    loss = 3 * tr.laplace(scale=0.5).loss.poisson_sample(0.2)
    largest = 3 * math.log1p(0.2 * math.expm1(2))
    chance = (0.8 * math.exp(-2) / 2 + 0.2 / 2) ** 3
    rounding = 1e-5  # of ε, beside what is left to the largest loss
    for room in (1e-9, 3e-10):
        lower, upper = loss.delta_bounds(largest - room)
        assert 0.99 * chance * room <= lower <= chance * room * (1 + rounding)
        assert chance * room * (1 - rounding) <= upper <= 1.01 * chance * room
    lower, upper = loss.epsilon_bounds(1e-12)
    truth = largest - 1e-12 / chance
    assert truth - 3e-12 <= lower <= truth + 1e-14
    assert truth - 1e-14 <= upper <= truth + 3e-12


def test_finite_losses_off_every_lattice_need_no_grid(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where more nodes of the smoothed integral are cheaper than a grid that says no more."""
    monkeypatch.setattr(GridMethod, "delta", lambda _, epsilon: pytest.fail(f"a grid was asked at {epsilon!r}"))
    loss = 36 * tr.discrete_gaussian(scale=1.03, sensitivity=3).loss.poisson_sample(0.00444)
    upper = loss.epsilon(1e-8)
    lower, delta = loss.delta_bounds(upper)
    assert (1 - 1e-6) * delta <= lower <= delta <= 1e-8
