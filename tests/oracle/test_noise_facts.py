"""Total variations, errors and profiles of theory §4, against the densities themselves."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import pytest
from mpmath import mp, mpf

import tightrope as tr
from tests.oracle.quadrature import density_profile, gaussian_profile

Density = Callable[[mpf], mpf]


@pytest.fixture(autouse=True)
def _thirty_digits() -> object:
    with mp.workdps(30):
        yield


def staircase_density(epsilon: float, gamma: float, width: float = 1.0) -> Density:
    """a on [0, γΔ), a e^{−ε} on [γΔ, Δ), times e^{−ε} for every further Δ."""
    down, g, size = mp.exp(-mpf(epsilon)), mpf(gamma), mpf(width)
    height = (1 - down) / (2 * size * (g + down * (1 - g)))

    def density(x: mpf) -> mpf:
        steps = abs(x) / size
        whole = int(mp.floor(steps))
        return height * down ** (whole + (steps - whole >= g))

    return density


def truncated_density(epsilon: float, delta: float) -> tuple[Density, mpf]:
    """Proportional to e^{−|x|ε} on [−A, A]; Δ = 1."""
    rate = mpf(epsilon)
    end = mp.log(1 + (mp.exp(rate) - 1) / (2 * mpf(delta))) / rate
    whole = 2 * (1 - mp.exp(-rate * end)) / rate
    return (lambda x: mp.exp(-rate * abs(x)) / whole if abs(x) <= end else mpf(0)), end


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.0, 4.0, 30.0])
def test_total_variation_of_laplace(epsilon: float) -> None:
    eta = tr.laplace(scale=1, sensitivity=epsilon).loss.total_variation()
    assert eta == pytest.approx(float(-mp.expm1(-mpf(epsilon) / 2)), rel=1e-13)


@pytest.mark.parametrize("mu", [0.001, 0.1, 1.0, 3.0, 12.0])
def test_total_variation_of_gaussian(mu: float) -> None:
    """2Φ(μ/2) − 1, where small μ cancels too."""
    eta = tr.gaussian(scale=1, sensitivity=mu).loss.total_variation()
    assert eta == pytest.approx(float(mp.erf(mpf(mu) / 2 / mp.sqrt(2))), rel=1e-9)


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("gamma", [0.0, 0.2, 0.4999, 0.5, 0.7, 1.0])
def test_total_variation_of_staircase(epsilon: float, gamma: float) -> None:
    """P(|X| ≤ Δ/2), by integrating the density; both branches of the formula."""
    law, density = tr.staircase(epsilon=epsilon, gamma=gamma), staircase_density(epsilon, gamma)
    kinks = sorted({mpf(0), min(mpf(gamma), mpf(1) / 2), mpf(1) / 2})
    expected = float(2 * mp.quad(density, kinks))
    assert law.total_variation == pytest.approx(expected, rel=1e-13)
    assert law.loss.total_variation() == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-6), (0.1, 1e-3), (3.0, 0.2), (1.0, 0.5), (0.5, 1e-12)])
def test_total_variation_of_truncated_laplace(epsilon: float, delta: float) -> None:
    law = tr.truncated_laplace(epsilon=epsilon, delta=delta)
    _, end = truncated_density(epsilon, delta)
    expected = float(mp.expm1(-mpf(epsilon) / 2) / mp.expm1(-end * epsilon))
    assert law.loss.total_variation() == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("epsilon", [0.4, 1.5])
@pytest.mark.parametrize("gamma", [0.0, 0.25, 0.6, 1.0])
def test_staircase_profile_is_the_triple_region(epsilon: float, gamma: float) -> None:
    """E_{e^q} between the density and its shift, cell by cell, is what the triple says."""
    density, reach = staircase_density(epsilon, gamma), 60
    g = mpf(gamma)
    edges = sorted(
        {
            sign * (k + step) + shift
            for k in range(reach)
            for step in (mpf(0), g)
            for sign in (1, -1)
            for shift in (0, 1)
        }
    )
    loss = tr.staircase(epsilon=epsilon, gamma=gamma).loss
    for at in (0.0, epsilon / 3, epsilon / 1.01):
        factor = mp.exp(mpf(at))
        cells = ((a + b) / 2 for a, b in itertools.pairwise(edges))
        gains = (max(mpf(0), density(x) - factor * density(x - 1)) for x in cells)
        expected = mp.fsum(gain * (b - a) for gain, a, b in zip(gains, edges, edges[1:], strict=False))
        assert loss.delta(at) == pytest.approx(float(expected), abs=1.2 * math.exp(-epsilon * (reach - 2)), rel=1e-10)


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-2), (0.3, 0.2), (2.0, 1e-5)])
@pytest.mark.parametrize("at", [-0.5, 0.0, 0.2, 0.9, 2.5])
def test_truncated_laplace_profile_by_quadrature(epsilon: float, delta: float, at: float) -> None:
    density, end = truncated_density(epsilon, delta)
    kink = (mpf(1) - mpf(at) / epsilon) / 2
    points = sorted({-end, mpf(0), mpf(1), 1 - end, end, min(max(kink, -end), end)})
    expected = density_profile(density, lambda x: density(x - 1), mpf(at), points)
    assert tr.truncated_laplace(epsilon=epsilon, delta=delta).loss.delta(at) == pytest.approx(
        float(expected), rel=1e-12
    )


@pytest.mark.parametrize("mu", [0.03, 0.5, 2.0, 8.0])
@pytest.mark.parametrize("epsilon", [-3.0, 0.0, 0.01, 1.0, 10.0])
def test_gaussian_bracket_holds_the_closed_form(mu: float, epsilon: float) -> None:
    lower, upper = tr.gaussian(scale=1, sensitivity=mu).loss.delta_bounds(epsilon)
    with mp.workdps(400):
        truth = gaussian_profile(mpf(mu), mpf(epsilon))
        assert lower <= truth <= upper


@pytest.mark.parametrize("scale", [0.25, 1.0, 7.5])
def test_moments_of_laplace_and_gaussian(scale: float) -> None:
    b = mpf(scale)
    for law, density in (
        (tr.laplace(scale=scale), lambda x: mp.exp(-x / b) / (2 * b)),
        (tr.gaussian(scale=scale), lambda x: mp.npdf(x, 0, b)),
    ):
        check_moments(law, density, [0, b, 5 * b, mp.inf])


@pytest.mark.parametrize("gamma", [None, 0.0, 0.3, 1.0])
def test_moments_of_staircase(gamma: float | None) -> None:
    law = tr.staircase(epsilon=1.5, sensitivity=2, gamma=gamma)
    density = staircase_density(1.5, law.gamma, 2.0)
    edges = sorted({2 * (k + step) for k in range(50) for step in (mpf(0), mpf(law.gamma))})
    check_moments(law, density, edges)


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-6), (0.01, 1e-4), (5.0, 0.3)])
def test_moments_of_truncated_laplace(epsilon: float, delta: float) -> None:
    density, end = truncated_density(epsilon, delta)
    law = tr.truncated_laplace(epsilon=epsilon, delta=delta)
    check_moments(law, density, [mpf(0), end / 8, end / 2, end])
    assert law.worst_error == pytest.approx(float(end), rel=1e-13)


def check_moments(law: object, density: Density, points: list[mpf]) -> None:
    """E|X| and E X² of a symmetric density."""
    first, second = (float(2 * mp.quad(lambda x, p=p: x**p * density(x), points)) for p in (1, 2))
    assert law.mean_absolute_error == pytest.approx(first, rel=1e-11)
    assert law.mean_squared_error == pytest.approx(second, rel=1e-11)


def test_printed_values_of_theory_4() -> None:
    """GDGK's example (ε=1, δ=1e−6) and truncated Laplace's errors beside the optimum."""
    law = tr.truncated_laplace(epsilon=1, delta=1e-6)
    assert round(law.worst_error, 2) == 13.66
    assert law.mean_absolute_error == pytest.approx(0.999984, abs=5e-7)
    assert law.mean_squared_error == pytest.approx(1.999751, abs=5e-7)
    strong = tr.truncated_laplace(epsilon=3, delta=1e-6)
    assert strong.mean_absolute_error == pytest.approx(0.333333, abs=5e-7)
    assert strong.mean_squared_error == pytest.approx(0.222219, abs=5e-7)
    small = tr.truncated_laplace(epsilon=0.3, delta=1.07481e-6)
    assert small.mean_absolute_error == pytest.approx(3.333087563, rel=1e-8)
    assert small.mean_squared_error == pytest.approx(22.21075296, rel=1e-8)


@pytest.mark.parametrize(
    "law",
    [
        tr.laplace(scale=2),
        tr.gaussian(scale=0.5),
        tr.staircase(epsilon=0.7),
        tr.staircase(epsilon=2, gamma=0.9),
        tr.truncated_laplace(epsilon=0.5, delta=1e-3),
        tr.truncated_laplace(epsilon=0, delta=0.01),
    ],
    ids=lambda law: type(law).__name__,
)
def test_quantiles_invert_the_distribution(law: object) -> None:
    """P(X ≤ quantile(p)) = p, by integrating |X| beyond it through the law's own half width."""
    for p in (1e-9, 0.01, 0.3, 0.5, 0.9, 1 - 1e-6):
        x = law.quantile(p)
        assert law.quantile(1 - p) == pytest.approx(-x, rel=1e-6, abs=1e-9)
        assert law.half_width(0.95) == pytest.approx(law.quantile(0.975), rel=1e-12)
    widths = [law.half_width(c) for c in (0.1, 0.5, 0.9, 0.99)]
    assert widths == sorted(widths)
    assert widths[-1] <= law.worst_error


def test_staircase_quantiles_by_quadrature() -> None:
    law = tr.staircase(epsilon=1.1, sensitivity=3, gamma=0.3)
    density = staircase_density(1.1, 0.3, 3.0)
    edges = sorted({3 * (k + step) for k in range(40) for step in (mpf(0), mpf("0.3"))})
    for p in (0.55, 0.7, 0.9, 0.999):
        x = mpf(law.quantile(p))
        inside = [mpf(0), *[edge for edge in edges if 0 < edge < x], x]
        assert float(mp.quad(density, inside)) == pytest.approx(p - 0.5, rel=1e-10)
