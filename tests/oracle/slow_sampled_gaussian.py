"""ε(δ) of Poisson-sampled Gaussians to 25 digits by a slow contour integral in mpmath: nothing here is from ``src``.

Theory §3: δ(ε) = (1/2πi) ∫_{c−i∞}^{c+i∞} M(z)^k e^{−zε} / (z(z+1)) dz for any c > 0, here by the trapezoidal rule
whose aliases are below e^{−TARGET} δ on both sides. Theory §3.1: M(z) = ∫ φ_σ(x) (1 − q + q e^u)^p dx with
u = (2x − 1)/(2σ²), p = z + 1 (remove) or −z (add), by the trapezoidal rule on the line Im x = ±θσ² where the
integrand decays as |Im z| grows. On the nodes z_n = c + ihn the powers follow from each other by one
multiplication a node of x: whole numbers with BITS binary places, so that 10⁵ nodes of z cost a minute.

Nothing is proven here: ``epsilon`` is to be asked twice, on two contours and two grids, and believed where both agree.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count as naturals
from typing import Any

import numpy as np
from mpmath import mp, mpc, mpf

DIGITS = 60
BITS = 230
TARGET = mpf(78)
"""Nats of relative error of the trapezoidal rule in z: 1e-34."""
CANCELLED = 46
"""Nats by which the terms of the sum over z may exceed it."""
QUIET = 40
"""So many terms in a row below the last wanted digit end the sum over z."""
MOST_NODES = 60_000
"""About a minute; a law whose moments fall more slowly is given up."""
ONE = mpf(1)
Whole = np.ndarray[Any, np.dtype[np.object_]]


@dataclass(frozen=True, slots=True)
class Sampled:
    """``steps`` Gaussians of noise ``sigma`` at ``rate``; ``remove``: the loss of the pair (with, without)."""

    sigma: mpf
    rate: mpf
    steps: int
    remove: bool

    def power(self, z: mpc) -> mpc:
        return z + 1 if self.remove else -z

    def density(self, x: mpc) -> mpc:
        return mp.exp(-x * x / (2 * self.sigma**2)) / (self.sigma * mp.sqrt(2 * mp.pi))

    def log_ratio(self, x: mpc) -> mpc:
        """Log of with over without, log(1 − q + q e^u)."""
        return mp.log(1 - self.rate + self.rate * mp.exp((2 * x - 1) / (2 * self.sigma**2)))


@dataclass(frozen=True)
class Grid:
    """Nodes of a trapezoidal rule in x for all z with 0 < Re z ≤ ``most``: a density times the step, a log ratio."""

    law: Sampled
    most: mpf
    shift: mpf
    finer: mpf
    nodes: list[tuple[mpc, mpc]] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "nodes", [(self.step * self.law.density(x), self.law.log_ratio(x)) for x in self._x()])

    @property
    def nats(self) -> mpf:
        """What the rule may leave out of M: k times it must not matter."""
        return TARGET + mp.log(self.law.steps) + 10

    @property
    def angle(self) -> mpf:
        """θ: half way to the zero of the bracket, or where the Gaussian has grown by e (it grows by e^{θ²σ²/2}).

        add: half of that, so that |bracket| ≥ 1 − q in the whole strip, as its power −z falls steeply there.
        """
        return min(mp.pi / 2, mpf(1.5) / self.law.sigma) / (1 if self.law.remove else 2)

    @property
    def step(self) -> mpf:
        """2πd/nats, with d the distance to the next thing that grows."""
        return 2 * mp.pi * mpf("0.9") * self.angle * self.law.sigma**2 / self.nats / self.finer

    def _x(self) -> Iterator[mpc]:
        height = self.shift * self.angle * self.law.sigma**2 * (1 if self.law.remove else -1)
        reach = self.law.sigma * mp.sqrt(2 * self.nats)
        right = reach + (self.most + 1 if self.law.remove else 0)
        for n in range(int(mp.floor(-reach / self.step)), int(mp.ceil(right / self.step)) + 1):
            yield mpc(n * self.step, height)

    def log_moment(self, z: mpc) -> mpc:
        """K(z) = k log M(z)."""
        p = self.law.power(z)
        return self.law.steps * mp.log(mp.fsum(w * mp.exp(p * ratio) for w, ratio in self.nodes))


@dataclass(frozen=True)
class Chernoff:
    """What the real axis says: how large ε is, and which abscissa and step a contour may have."""

    law: Sampled
    found: dict[mpf, mpf] = field(default_factory=dict)

    def log_moment(self, c: mpf) -> mpf:
        """K(c) to a few digits beyond doubles, on the real x-line."""
        if c not in self.found:
            with mp.workdps(30 + int(mp.log10(self.law.steps)) + 2 * int(-mp.log10(self.law.rate))):
                self.found[c] = Grid(self.law, c, mpf(0), mpf("0.5")).log_moment(c).real
        return self.found[c]

    def abscissae(self) -> list[mpf]:
        """Geometric, from far below the saddle to where e^K is beyond any use."""
        ladder = []
        for n in naturals(-16):
            c = mpf(2) ** (mpf(n) / 4)
            if self.log_moment(c) > 2000 or n > 120:
                return ladder
            ladder.append(c)
        return ladder

    def epsilon(self, delta: mpf) -> mpf:
        """Least ε with e^{K(c) − cε} c^c/(1+c)^{1+c} ≤ δ for some c: an upper bound."""
        return min(
            (self.log_moment(c) - mp.log(delta) + c * mp.log(c) - (1 + c) * mp.log(1 + c)) / c for c in self.abscissae()
        )

    def contour(self, epsilon: mpf, delta: mpf, *, back: mpf) -> tuple[mpf, mpf]:
        """(c, h): the largest step h = 2π/r whose aliases are small on both sides, then c times ``back``.

        Only abscissae where terms do not exceed δ by more digits than there are to spare.
        """
        need = TARGET - mp.log(delta)
        ladder = self.abscissae()

        def rate(c: mpf) -> mpf:
            beyond = [d for d in ladder if d > mpf("1.05") * c]
            return max(
                need / c, min((need + self.log_moment(d) - d * epsilon) / (d - c) for d in beyond) if beyond else mp.inf
            )

        near = [c for c in ladder if self.log_moment(c) - c * epsilon - mp.log(c * (1 + c)) < mp.log(delta) + CANCELLED]
        c = min(near, key=rate) * back
        return c, 2 * mp.pi / rate(c)


def _fixed(values: list[mpf]) -> Whole:
    return np.array([int(mp.nint(mp.ldexp(value, BITS))) for value in values], dtype=object)


@dataclass(frozen=True)
class Line:
    """The values of M^k/(z(z+1)) on z_n = c + ihn, n ≥ 0, until they no longer matter for δ."""

    law: Sampled
    c: mpf
    h: mpf
    values: list[tuple[mpc, mpc]]

    @classmethod
    def of(cls, law: Sampled, c: mpf, h: mpf, *, shift: mpf, finer: mpf, smallest: mpf) -> Line:
        """``smallest`` is the log of what may be left out of the sum of |values| h/π."""
        kept: list[tuple[mpc, mpc]] = []
        quiet = 0
        for n, moment in enumerate(_moments(Grid(law, c, shift, finer), c, h)):
            z = mpc(c, n * h)
            value = moment**law.steps / (z * (z + 1)) * h / mp.pi / (2 if n == 0 else 1)
            kept.append((z, value))
            quiet = quiet + 1 if mp.log(abs(value)) + mp.log(n + 1) < smallest else 0
            if quiet > QUIET:
                return cls(law, c, h, kept)
            if n > MOST_NODES:
                break
        raise ArithmeticError(f"more than {MOST_NODES} nodes on the line Re z = {mp.nstr(c, 5)} of {law}")

    def deltas(self, epsilon: mpf) -> tuple[mpf, mpf]:
        """δ and −dδ/dε."""
        turn, factor = mp.expj(-self.h * epsilon), mpc(mp.exp(-self.c * epsilon))
        total, slope = mpc(0), mpc(0)
        for z, value in self.values:
            term = factor * value
            total += term
            slope += z * term
            factor *= turn
        return total.real, slope.real

    def epsilon(self, delta: mpf, most: mpf, start: mpf) -> mpf:
        """Newton in log δ, which is concave, kept inside [0, most] by halving; far from ``start`` the sum is noise."""
        low, high, epsilon = mpf(0), most, start
        for _ in range(200):
            value, slope = self.deltas(epsilon)
            low, high = (epsilon, high) if value > delta else (low, epsilon)
            following = epsilon + mp.log(value / delta) * value / slope if value > 0 and slope > 0 else mp.inf
            if not low <= following <= high:
                following = (low + high) / 2
            if abs(following - epsilon) < mpf(10) ** -32 * abs(epsilon):
                return following
            epsilon = following
        raise ArithmeticError(f"no epsilon at delta={delta} for {self.law}: the last was {epsilon}")


def _moments(grid: Grid, c: mpf, h: mpf) -> Iterator[mpc]:
    """M(c + ihn), n = 0, 1, …: each node of x turns by e^{±ihL}, never growing."""
    sign = 1 if grid.law.remove else -1
    start = [w * mp.exp(grid.law.power(c) * ratio) for w, ratio in grid.nodes]
    turns = [mp.exp(mpc(0, sign) * h * ratio) for _, ratio in grid.nodes]
    real, imaginary = _fixed([v.real for v in start]), _fixed([v.imag for v in start])
    cos, sin = _fixed([v.real for v in turns]), _fixed([v.imag for v in turns])
    while True:
        yield mpc(mp.ldexp(int(real.sum()), -BITS), mp.ldexp(int(imaginary.sum()), -BITS))
        real, imaginary = (real * cos - imaginary * sin) >> BITS, (real * sin + imaginary * cos) >> BITS


@dataclass(frozen=True, slots=True)
class Answer:
    """ε, and the line that it was found on: ``line.deltas`` gives δ at other ε nearby."""

    epsilon: mpf
    line: Line


def solved(law: Sampled, delta: mpf, *, back: mpf = ONE, shift: mpf = ONE, finer: mpf = ONE) -> Answer:
    """ε of one direction, 0 where δ(0) is small enough; the contour is tuned at Chernoff's ε, then where that led to.

    ``back`` moves the abscissa, ``shift`` the line of x, ``finer`` divides both steps: no digit may depend on them.
    """
    bound = Chernoff(law)

    def tuned(epsilon: mpf) -> Line:
        c, h = bound.contour(epsilon, delta, back=back)
        smallest = mp.log(delta) + c * epsilon - TARGET
        return Line.of(law, c, h / finer, shift=shift, finer=finer, smallest=smallest)

    near = most = bound.epsilon(delta)
    for _ in range(8):
        line = tuned(near)
        if line.deltas(mpf(0))[0] <= delta and (at_zero := tuned(mpf(0))).deltas(mpf(0))[0] <= delta:
            return Answer(mpf(0), at_zero)
        before, near = near, line.epsilon(delta, most, near)
        if abs(near - before) <= near / 100:
            return Answer(near, line)
    raise ArithmeticError(f"the contour of {law} does not settle: the last epsilon was {near}")


def law_of(sigma: float | str, rate: float | mpf, steps: int, *, remove: bool) -> Sampled:
    """Doubles stand for themselves, strings for the decimals that they show."""
    return Sampled(mpf(sigma), mpf(rate), steps, remove)
