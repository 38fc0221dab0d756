"""Laws with densities, composed: quadrature, residues and an independent contour in high precision."""

from __future__ import annotations

import pytest
from mpmath import mp, mpf

import tightrope as tr
from tests.oracle.quadrature import gaussian_moment, gaussian_profile, inverted, laplace_moment, laplace_profile

CONTAINED = [(1, 1.0), (2, 1.0), (2, 0.01), (3, 0.5), (3, 3.0), (7, 0.2)]


def contains(loss: tr.PrivacyLoss, epsilon: float, truth: mpf, width: float, absolute: float = 1e-300) -> None:
    lower, upper = loss.delta_bounds(epsilon)
    assert lower <= truth <= upper, (loss.method, lower, mp.nstr(truth, 17), upper)
    assert upper - lower <= width * float(truth) + absolute, (loss.method, lower, mp.nstr(truth, 17), upper)


@pytest.mark.parametrize(("count", "width"), CONTAINED)
@pytest.mark.parametrize("share", [-0.5, 0.0, 0.1, 0.5, 0.93])
def test_laplace_by_residues(count: int, width: float, share: float) -> None:
    """ε at shares of the largest loss k·ε₀."""
    epsilon = share * count * width
    with mp.workdps(60):
        forward = laplace_profile(count, mpf(width), mpf(abs(epsilon)))
        truth = forward if epsilon >= 0 else 1 - mp.exp(mpf(epsilon)) * (1 - forward)
        contains(count * tr.laplace(scale=1, sensitivity=width).loss, epsilon, truth, 3e-3, 2e-6)


@pytest.mark.parametrize("epsilon", [0.0, 0.7, 1.5])
def test_the_residues_against_plain_quadrature(epsilon: float) -> None:
    """The oracle itself: two Laplace losses, ∫ δ₁(ε − l) dP(l) over the one-step law."""
    width = mpf(1)

    def single(at: mpf) -> mpf:
        if at >= width:
            return mpf(0)
        return -mp.expm1((at - width) / 2) if at >= -width else -mp.expm1(at)

    def density(loss: mpf) -> mpf:
        return mp.exp((loss - width) / 2) / 4 * single(epsilon - loss)

    with mp.workdps(25):
        inner = mp.quad(density, sorted({p for p in (-width, epsilon - width, epsilon, width) if abs(p) <= width}))
        whole = single(epsilon - width) / 2 + mp.exp(-width) / 2 * single(epsilon + width) + inner
        assert mp.almosteq(whole, laplace_profile(2, width, mpf(epsilon)), 1e-15)


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-3), (0.5, 0.1), (2.0, 1e-8)])
@pytest.mark.parametrize("share", [0.0, 0.3, 0.8])
def test_two_truncated_laplaces_by_quadrature(epsilon: float, delta: float, share: float) -> None:
    """δ = 1 − (1−δ)² + ∫ over two finite losses; atoms by hand, density by quadrature."""
    with mp.workdps(30):
        width, lost, at = mpf(epsilon), mpf(delta), mpf(share) * 2 * mpf(epsilon)
        atom, weight = mpf(1) / 2 - lost, (1 + 2 * lost / mp.expm1(width)) / 4

        def single(x: mpf) -> mpf:
            """E (1 − e^{x − L})₊ over the finite losses of one step, from the law of theory §3."""
            low = min(max(x, -width), width)
            top = atom * -mp.expm1(x - width) if x < width else mpf(0)
            bottom = atom * mp.exp(-width) * -mp.expm1(x + width) if x < -width else mpf(0)
            middle = 2 * weight * (1 - mp.exp((low - width) / 2))
            middle -= 2 * weight * mp.exp(x - width / 2) * (mp.exp(-low / 2) - mp.exp(-width / 2))
            return top + bottom + middle

        points = sorted({-width, width, *[p for p in (at - width, at + width, at) if -width < p < width]})
        inside = mp.quad(lambda loss: weight * mp.exp((loss - width) / 2) * single(at - loss), points)
        finite = atom * single(at - width) + atom * mp.exp(-width) * single(at + width) + inside
        truth = 1 - (1 - lost) ** 2 + finite
        loss = 2 * tr.truncated_laplace(epsilon=epsilon, delta=delta).loss
        contains(loss, float(at), truth, 3e-3, 2e-6)


@pytest.mark.parametrize(("sigma", "rate"), [(1.0, 0.01), (0.5, 0.25), (3.0, 0.5), (1.0, 1e-6)])
@pytest.mark.parametrize("epsilon", [-0.4, 0.0, 0.005, 0.6, 3.0])
def test_one_sampled_gaussian(sigma: float, rate: float, epsilon: float) -> None:
    """One step has a closed form: the outputs that are likelier form a half-line."""
    with mp.workdps(60):
        mu, q, at = 1 / mpf(sigma), mpf(rate), mpf(epsilon)
        loss = tr.gaussian(scale=sigma).loss.poisson_sample(rate)
        contains(loss, epsilon, max(_remove(mu, q, at), _add(mu, q, at)), 1e-9)


def _edge(mu: mpf, ratio: mpf) -> mpf:
    """x with e^{μx − μ²/2} = ratio."""
    return mp.log(ratio) / mu + mu / 2 if ratio > 0 else -mp.inf


def _remove(mu: mpf, q: mpf, epsilon: mpf) -> mpf:
    """E over x beyond the edge of ((1−q)A + qB) − e^ε A."""
    x = _edge(mu, (mp.exp(epsilon) - 1 + q) / q)
    tail, shifted = mp.ncdf(-x), mp.ncdf(mu - x)
    return (1 - q) * tail + q * shifted - mp.exp(epsilon) * tail


def _add(mu: mpf, q: mpf, epsilon: mpf) -> mpf:
    """E over x before the edge of A − e^ε ((1−q)A + qB)."""
    ratio = (mp.exp(-epsilon) - 1 + q) / q
    if ratio <= 0:
        return mpf(0)
    x = _edge(mu, ratio)
    return mp.ncdf(x) - mp.exp(epsilon) * ((1 - q) * mp.ncdf(x) + q * mp.ncdf(x - mu))


@pytest.mark.parametrize(
    ("count", "width", "epsilon", "c"), [(10**6, 1e-3, 5.0, 8), (10**6, 1e-3, 0.0, 1), (10**5, 0.01, 2.0, 0.5)]
)
def test_a_million_laplaces(count: int, width: float, epsilon: float, c: float) -> None:
    """An absolute error of one rounding in log M(z) would be multiplied by the count."""
    with mp.workdps(40):
        single, deviation = laplace_moment(mpf(width)), mp.sqrt(count) * width
        truth = inverted(lambda z: count * single(z), mpf(epsilon), c=mpf(c), reach=14 / deviation)
        contains(count * tr.laplace(scale=1, sensitivity=width).loss, epsilon, truth, 1e-9)


@pytest.mark.parametrize("epsilon", [-1.0, 0.0, 2.0, 12.0])
def test_gaussian_beside_a_few_laplaces(epsilon: float) -> None:
    """Few compositions with atoms, and a Gaussian that makes the integrand die."""
    with mp.workdps(40):
        wide, small = gaussian_moment(mpf(1)), laplace_moment(mpf(1) / 2)
        truth = inverted(lambda z: wide(z) + 3 * small(z), mpf(epsilon), c=mpf(1) + max(0, int(epsilon)), reach=mpf(14))
        loss = tr.gaussian(scale=1).loss + 3 * tr.laplace(scale=2).loss
        assert loss.method == "contour"
        contains(loss, epsilon, truth, 1e-9)


@pytest.mark.parametrize(("mu", "count"), [(1e-3, 1), (1e-2, 1), (1e-4, 10**6), (0.019, 2)])
@pytest.mark.parametrize("share", [0.0, 1.0, 6.0, 30.0])
def test_small_gaussians_where_the_formula_cancels(mu: float, count: int, share: float) -> None:
    with mp.workdps(400):
        whole = mpf(mu) * mp.sqrt(count)
        epsilon = float(share * whole)
        loss = count * tr.gaussian(scale=1, sensitivity=mu).loss
        contains(loss, epsilon, gaussian_profile(whole, mpf(epsilon)), 1e-8)
