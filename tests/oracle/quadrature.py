"""High-precision numbers by mpmath: densities integrated as they are written, moments through another contour."""

from __future__ import annotations

from collections.abc import Callable

from mpmath import mp, mpc, mpf

Moment = Callable[[mpc], mpc]


def gaussian_profile(mu: mpf, epsilon: mpf) -> mpf:
    """Φ(−ε/μ + μ/2) − e^ε Φ(−ε/μ − μ/2)."""
    return mp.ncdf(-epsilon / mu + mu / 2) - mp.exp(epsilon) * mp.ncdf(-epsilon / mu - mu / 2)


def laplace_profile(steps: int, width: mpf, epsilon: mpf) -> mpf:
    """δ(ε) of ``steps`` Laplace mechanisms of ε = ``width``, by residues at z = −½ (theory §3, tool 1)."""
    total = mpf(0)
    for j in range(steps + 1):
        reach = width * (steps - 2 * j) - epsilon
        if reach > 0:
            inner = mpf(2) ** -steps * mp.exp(-reach / 2) * _coefficient(steps, j, reach)
            total += mp.binomial(steps, j) * mp.exp(-j * width) * ((1 if j == 0 else 0) + inner)
    return total


def _coefficient(steps: int, j: int, reach: mpf) -> mpf:
    """[w^{k−1}] (w + ½)^{k−j−1} (w − ½)^{j−1} e^{reach·w}, as power series; negative powers expand about w = 0."""
    half, n = mpf(1) / 2, steps
    left = [mp.binomial(steps - j - 1, i) * half ** (steps - j - 1 - i) for i in range(n)]
    right = [mp.binomial(j - 1, i) * (-half) ** (j - 1 - i) for i in range(n)]
    grown = [reach**i / mp.factorial(i) for i in range(n)]
    both = [mp.fsum(left[a] * right[b - a] for a in range(b + 1)) for b in range(n)]
    return mp.fsum(both[a] * grown[n - 1 - a] for a in range(n))


def laplace_moment(width: mpf) -> Moment:
    """log M(z) of one Laplace mechanism."""
    return lambda z: mp.log(((z + 1) * mp.exp(z * width) + z * mp.exp(-(z + 1) * width)) / (2 * z + 1))


def gaussian_moment(mu: mpf) -> Moment:
    """K(z) of one Gaussian mechanism."""
    return lambda z: mu**2 * (z + z * z) / 2


def inverted(moment: Moment, epsilon: mpf, *, c: mpf, reach: mpf) -> mpf:
    """(1/2πi)∫ e^{K(z) − zε}/(z(z+1)) over Re z = c up to |Im z| = reach, by the trapezoidal rule.

    The step is min(c/20, ¼): aliases are below e^{−2π·20} on one side and 8π nats further out on the other.
    """
    step = min(c / 20, mpf(1) / 4)
    count = int(reach / step) + 1

    def value(n: int) -> mpf:
        z = mpc(c, step * n)
        return (mp.exp(moment(z) - z * epsilon) / (z * (z + 1))).real / (2 if n == 0 else 1)

    return mp.fsum(value(n) for n in range(count)) * step / mp.pi


def density_profile(p: Callable[[mpf], mpf], q: Callable[[mpf], mpf], epsilon: mpf, points: list[mpf]) -> mpf:
    """∫ (p − e^ε q)₊ dx; ``points`` hold every kink."""
    factor = mp.exp(epsilon)
    return mp.quad(lambda x: max(mpf(0), p(x) - factor * q(x)), points)
