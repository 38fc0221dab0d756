"""δ(ε) of composed steps from their definitions, each form by the slow method that is sure: see ``definitions``.

finite     every multiset of outcomes, or the convolution where losses are whole multiples
pole       partial fractions of e^{wa} w^{−n}/(w² − ¼), 3 digits a step
half-line  E over the loss of one step of the profile of the other
smooth     the moment by fixed nodes, inverted on a line of fixed abscissa; two abscissae must agree
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import pairwise

from mpmath import mp, mpc, mpf
from mpmath.calculus.quadrature import GaussLegendre

from tests.oracle.definitions import (
    FINITE,
    LINES,
    Outcomes,
    Step,
    line_losses,
    line_profile,
    outcomes,
    pole_terms,
)

Steps = list[tuple[int, Step]]
Measure = list[tuple[mpf, mpf]]
"""(mass, loss) of atoms, or of the nodes of a quadrature."""


def finite(steps: Steps, epsilon: mpf, *, remove: bool) -> mpf:
    """Σ (P − γQ)₊ over all multisets of outcomes."""
    whole: Outcomes = [(mpf(1), mpf(1))]
    for count, step in steps:
        law = list(_multisets(outcomes(step, remove=remove), count))
        whole = [(p * a, q * b) for p, q in whole for a, b in law]
    gamma = mp.exp(epsilon)
    return mp.fsum(p - gamma * q for p, q in whole if p > gamma * q)


def _multisets(law: Outcomes, count: int) -> Iterator[tuple[mpf, mpf]]:
    """(P, Q) of each multiset of ``count`` outcomes."""
    (p, q), rest = law[0], law[1:]
    if not rest:
        yield p**count, q**count
        return
    for n in range(count + 1):
        ways = math.comb(count, n)
        head = ways * p**n, q**n * ways
        for a, b in _multisets(rest, count - n):
            yield head[0] * a, head[1] * b


def lattice(steps: Steps, epsilon: mpf, *, remove: bool) -> mpf:
    """Losses that are whole multiples of one step: masses convolved one copy at a time."""
    (count, step), *others = steps
    if others:
        raise ValueError("one law at a time")
    pairs = outcomes(step, remove=remove)
    infinite = mp.fsum(p for p, q in pairs if q == 0)
    law = [(p, mp.log(p / q)) for p, q in pairs if q > 0 and p > 0]
    spacing = min(abs(loss) for _, loss in law if abs(loss) > mpf(10) ** -20)
    finite_masses = {int(mp.nint(loss / spacing)): p for p, loss in law}
    whole = {0: mpf(1)}
    for _ in range(count):
        whole = _convolved(whole, finite_masses)
    gains = (p * (1 - mp.exp(epsilon - j * spacing)) for j, p in whole.items() if j * spacing > epsilon)
    return 1 - (1 - infinite) ** count + mp.fsum(gains)


def _convolved(whole: dict[int, mpf], law: dict[int, mpf]) -> dict[int, mpf]:
    result: dict[int, mpf] = {}
    for i, p in whole.items():
        for j, a in law.items():
            result[i + j] = result.get(i + j, mpf(0)) + p * a
    return result


def binomial(epsilon0: mpf, count: int, epsilon: mpf) -> mpf:
    """``count`` binary randomized responses: Σ C(k, i) (p^i r^{k−i} − e^ε r^i p^{k−i}) over 2i − k > ε/ε₀."""
    p = 1 / (1 + mp.exp(-epsilon0))
    first = int(mp.floor((epsilon / epsilon0 + count) / 2)) + 1
    first = max(first, 0)
    log_mass = mp.loggamma(count + 1) - mp.loggamma(first + 1) - mp.loggamma(count - first + 1)
    mass = mp.exp(log_mass + first * mp.log(p) + (count - first) * mp.log(1 - p))
    odds, shrink, total = p / (1 - p), mp.exp(-2 * epsilon0), mpf(0)
    ratio = mp.exp(epsilon - (2 * first - count) * epsilon0)
    for i in range(first, count + 1):
        total += mass * (1 - ratio)
        mass *= odds * (count - i) / (i + 1)
        ratio *= shrink
    return total


def pole(steps: Steps, epsilon: mpf) -> mpf:
    """Sum of coefficient · e^{ε/2} F_n(a − ε), F_n the inverse transform of 1/(w^n (w² − ¼))."""
    whole: dict[tuple[tuple[int, ...], int], mpf] = {((), 0): mpf(1)}
    widths, kept = [], mpf(1)
    for count, step in steps:
        terms, width, infinite = pole_terms(step)
        widths.append(width)
        kept *= (1 - infinite) ** count
        whole = _times(whole, _power(terms, count))
    inverse: dict[mpf, list[mpf]] = {}
    total = mpf(0)
    for (shifts, order), coefficient in whole.items():
        gap = mp.fsum(n * width for n, width in zip(shifts, widths, strict=True)) - epsilon
        if gap > 0:
            if gap not in inverse:
                inverse[gap] = _inverse(gap, sum(count for count, _ in steps))
            total += coefficient * inverse[gap][order]
    return 1 - kept + mp.exp(epsilon / 2) * total


def _power(terms: list[tuple[mpf, int, int]], count: int) -> dict[tuple[int, int], mpf]:
    whole = {(0, 0): mpf(1)}
    for _ in range(count):
        following: dict[tuple[int, int], mpf] = {}
        for (n, order), value in whole.items():
            for c, shift, more in terms:
                key = n + shift, order + more
                following[key] = following.get(key, mpf(0)) + value * c
        whole = following
    return whole


def _times(
    whole: dict[tuple[tuple[int, ...], int], mpf], law: dict[tuple[int, int], mpf]
) -> dict[tuple[tuple[int, ...], int], mpf]:
    result: dict[tuple[tuple[int, ...], int], mpf] = {}
    for (shifts, order), value in whole.items():
        for (n, more), c in law.items():
            key = (*shifts, n), order + more
            result[key] = result.get(key, mpf(0)) + value * c
    return result


def _inverse(gap: mpf, most: int) -> list[mpf]:
    """F_0 = 2 sinh(t/2), F_1 = 4 (cosh(t/2) − 1), F_n = 4 (F_{n−2} − t^{n−1}/(n−1)!)."""
    values = [2 * mp.sinh(gap / 2), 4 * (mp.cosh(gap / 2) - 1)]
    for n in range(2, most + 1):
        values.append(4 * (values[n - 2] - gap ** (n - 1) / mp.factorial(n - 1)))
    return values


def one_line(step: Step, epsilon: mpf, *, remove: bool) -> mpf:
    """A single step of a half-line law."""
    return line_profile(step, remove=remove)(epsilon)


def two_lines(first: Step, second: Step, epsilon: mpf, *, remove: bool, kinks: list[mpf]) -> mpf:
    """∫ p₁ δ₂(ε − l₁): ``kinks`` are the losses where δ₂ breaks."""
    profile = line_profile(second, remove=remove)
    density, points, atoms = line_losses(first, remove=remove)
    breaks = sorted({*points, *_crossings(density, points, [epsilon - kink for kink in kinks])})

    def term(x: mpf) -> mpf:
        p, loss = density(x)
        return p * profile(epsilon - loss)

    inside = mp.fsum(mp.quad(term, [a, b]) for a, b in pairwise(breaks))
    return inside + mp.fsum(p * profile(epsilon - loss) for p, loss in atoms)


def _crossings(density: Callable[[mpf], tuple[mpf, mpf]], points: list[mpf], losses: list[mpf]) -> list[mpf]:
    """X between the outer points where the (monotone) loss takes these values."""
    found = []
    for loss in losses:
        low, high = points[0], points[-1]
        start = density(low)[1] - loss
        if start * (density(high)[1] - loss) < 0:
            for _ in range(4 * mp.dps):
                middle = (low + high) / 2
                low, high = (middle, high) if (density(middle)[1] - loss) * start > 0 else (low, middle)
            found.append((low + high) / 2)
    return found


def finite_with_gaussian(steps: Steps, mu: mpf, epsilon: mpf, *, remove: bool) -> mpf:
    """Finite laws beside Gaussians of total μ: Σ p δ_μ(ε − l)."""
    whole: Outcomes = [(mpf(1), mpf(1))]
    for count, step in steps:
        law = list(_multisets(outcomes(step, remove=remove), count))
        whole = [(p * a, q * b) for p, q in whole for a, b in law]
    profile = line_profile({"law": "gaussian", "scale": 1, "sensitivity": mu}, remove=True)
    return mp.fsum(p * (profile(epsilon - mp.log(p / q)) if q else 1) for p, q in whole if p)


def measure(step: Step, *, remove: bool) -> Measure:
    """Nodes of a quadrature of the law of the loss: trapezoid on ℝ for Gaussians, Gauss on [0, 1] for Laplace."""
    if step["law"] in FINITE:
        return [(p, mp.log(p / q)) for p, q in outcomes(step, remove=remove) if p and q]
    density, points, atoms = line_losses(step, remove=remove)
    line = LINES[step["law"]](step)
    if line.flat:
        return [*atoms, *((w * density(x)[0], density(x)[1]) for x, w in _gauss())]
    nodes = _trapezoid(points[0], points[-1] + mpf(step.get("further", 0)), mpf(step.get("fine", 0.02)))
    return [(w * p, loss) for x, w in nodes for p, loss in [density(x)] if p > 0]


def _trapezoid(low: mpf, high: mpf, width: mpf) -> list[tuple[mpf, mpf]]:
    return [(low + i * width, width) for i in range(int((high - low) / width) + 1)]


def _gauss() -> list[tuple[mpf, mpf]]:
    """Gauss–Legendre on [0, 1]: 48 nodes."""
    return [((1 + x) / 2, w / 2) for x, w in GaussLegendre(mp).calc_nodes(5, mp.prec)]


def smooth(parts: list[tuple[int, Measure]], mu: mpf, epsilon: mpf, *, abscissa: int = 0, finer: int = 1) -> mpf:
    """(1/2πi) ∫ M(z) e^{−zε}/(z(z+1)) over a line near the saddle; ``abscissa`` moves the line."""

    def log_height(z: mpc) -> mpc:
        power = mu**2 * (z + z * z) / 2 - z * epsilon
        for count, law in parts:
            power += count * mp.log(mp.fsum(p * mp.exp(z * loss) for p, loss in law))
        return power

    def real_height(c: mpf) -> mpf:
        return mp.re(log_height(c)) - mp.log(c) - mp.log(1 + c)

    c = min((mpf(2) ** (mpf(i) / 2) for i in range(-12, 16)), key=real_height)
    c *= 1 + mpf(abscissa) / 7
    width = mp.pi * c / (45 - min(0, real_height(c))) / finer
    total, size, small, n = mpf(0), mpf(0), 0, 0
    while small < 12:
        z = mpc(c, width * n)
        term = (mp.exp(log_height(z)) / (z * (z + 1))).real / (2 if n == 0 else 1)
        total, size, n = total + term, size + abs(term), n + 1
        small = small + 1 if abs(term) < mpf(10) ** -26 * size else 0
    return total * width / mp.pi


def gaussian(mu: mpf, epsilon: mpf) -> mpf:
    """Φ(−ε/μ + μ/2) − e^ε Φ(−ε/μ − μ/2)."""
    return mp.ncdf(-epsilon / mu + mu / 2) - mp.exp(epsilon) * mp.ncdf(-epsilon / mu - mu / 2)
