"""Profiles and rates of true positives of one step, in mpmath from the definitions: nothing shared with the library.

A *curve* is a symmetric pair known by δ(γ) for γ ≥ 1 and by the best rate of true positives at a false-positive rate t.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from mpmath import mp, mpf

Profile = Callable[[mpf], mpf]
Rate = Callable[[mpf], mpf]
Outcomes = list[tuple[mpf, mpf]]


@dataclass(frozen=True)
class Curve:
    """δ at γ ≥ 1, the best rate of true positives, and the least γ from which δ no longer falls."""

    profile: Profile
    caught: Rate
    last: mpf

    def delta(self, epsilon: float) -> mpf:
        """δ(ε) of a symmetric pair at any ε: 1 − γ + γ δ(1/γ) below 0."""
        gamma = mp.exp(mpf(epsilon))
        return self.profile(gamma) if epsilon >= 0 else -mp.expm1(mpf(epsilon)) + gamma * self.profile(1 / gamma)


def gaussian(mu: mpf) -> Curve:
    """N(μ, 1) against N(0, 1): the best attack is {x > c}."""

    def profile(gamma: mpf) -> mpf:
        cut = mp.log(gamma) / mu + mu / 2
        return upper_tail(cut - mu) - gamma * upper_tail(cut)

    return Curve(profile, lambda t: upper_tail(quantile(t) - mu), mp.inf)


def laplace(epsilon: mpf, delta: mpf) -> Curve:
    """Laplace noise, cut off where that leaves δ outside: X + 1 with the record, X without, Δ = 1."""
    end = mp.inf if delta == 0 else mp.log(1 + (mp.exp(epsilon) - 1) / (2 * delta)) / epsilon
    left_out = mpf(0) if delta == 0 else mp.exp(-epsilon * end)

    def above(t: mpf) -> mpf:
        """P(X > t)."""
        if abs(t) >= end:
            return mpf(0) if t > 0 else mpf(1)
        far = (mp.exp(-epsilon * abs(t)) - left_out) / (2 * (1 - left_out))
        return far if t >= 0 else 1 - far

    def profile(gamma: mpf) -> mpf:
        """Between 0 and 1 the loss is ε(2x − 1); beyond 1 it is ε, or infinite."""
        if mp.log(gamma) >= epsilon:
            return delta
        cut = (mp.log(gamma) / epsilon + 1) / 2
        return above(cut - 1) - gamma * above(cut)

    def caught(rate: mpf) -> mpf:
        """{X > c}, whose ratio rises."""
        share = min(rate, 1 - rate)
        cut = -mp.log(2 * share * (1 - left_out) + left_out) / epsilon
        return above((cut if rate <= share else -cut) - 1)

    return Curve(profile, caught, mp.exp(epsilon))


def bounded_range(epsilon: mpf) -> Curve:
    """The density e^{(l−ε)/2} / (2(1 − e^{−ε})) of losses on [−ε, ε]."""
    whole = -mp.expm1(-epsilon)

    def beyond(loss: mpf) -> tuple[mpf, mpf]:
        """P(L > l) and Q(L > l), the latter the integral of e^{−l} of the density."""
        p = -mp.expm1((loss - epsilon) / 2) / whole
        q = mp.exp(-(epsilon + loss) / 2) * -mp.expm1((loss - epsilon) / 2) / whole
        return p, q

    def profile(gamma: mpf) -> mpf:
        if mp.log(gamma) >= epsilon:
            return mpf(0)
        p, q = beyond(mp.log(gamma))
        return p - gamma * q

    def caught(rate: mpf) -> mpf:
        """Q(L > l) = t is solved by e^{−l/2} = w: e^{−ε/2} (w − e^{−ε/2}) = t · whole."""
        low = mp.exp(-epsilon / 2)
        w = low + rate * whole / low
        return (1 - low / w) / whole

    return Curve(profile, caught, mp.exp(epsilon))


def finite(outcomes: Outcomes) -> Curve:
    """Outcomes with (P, Q), a symmetric pair: Σ (P − γQ)₊, and the likeliest outcomes first."""
    held = sorted(outcomes, key=lambda pq: pq[0] / pq[1] if pq[1] else mp.inf, reverse=True)

    def profile(gamma: mpf) -> mpf:
        return mp.fsum(p - gamma * q for p, q in held if p > gamma * q)

    def caught(rate: mpf) -> mpf:
        total, left = mpf(0), rate
        for p, q in held:
            share = mpf(1) if q <= left else left / q
            total, left = total + share * p, left - share * q
        return total

    return Curve(profile, caught, max((p / q for p, q in held if p and q), default=mpf(0)))


def triple(epsilon: mpf, delta: mpf, eta: mpf | None) -> Curve:
    """GI eqs. 43–44; η its largest value where it is None."""
    gamma = mp.exp(epsilon)
    active = mpf(1) if eta is None else (eta - delta) * (1 + gamma) / ((1 - delta) * (gamma - 1))
    c = (1 - delta) * active / (1 + gamma)
    p = [delta, c * gamma, (1 - active) * (1 - delta), c, mpf(0)]
    return finite(list(zip(p, reversed(p), strict=True)))


def widest(epsilon: mpf, delta: mpf) -> mpf:
    """The largest total variation that (ε, δ) allows."""
    return delta + (1 - delta) * mp.expm1(epsilon) / (mp.exp(epsilon) + 1)


def of_fractions(outcomes: list[tuple[Fraction, Fraction]]) -> Curve:
    return finite([(mpf(p.numerator) / p.denominator, mpf(q.numerator) / q.denominator) for p, q in outcomes])


def subset(base: Curve, share: mpf) -> Curve:
    """A record of ``share`` of the data is seen (GI Prop. 1; C_p of Dong, Roth and Su for the rates)."""

    def profile(gamma: mpf) -> mpf:
        return share * base.profile(1 + (gamma - 1) / share)

    def caught(rate: mpf) -> mpf:
        fixed = (1 - base.profile(mpf(1))) / 2  # of the base: as many false positives as false negatives, by symmetry
        if base.caught(fixed) < 1 - fixed:
            raise ValueError("the fixed point lies on a segment of slope -1: not needed here")
        return share * base.caught(rate) + (1 - share) * rate if rate <= fixed else mp.nan

    return Curve(profile, caught, 1 + share * (base.last - 1))


def poisson_remove(base: Curve, rate: mpf) -> Curve:
    """P = (1−q)A + qB against A: tests are those of B against A."""

    def profile(gamma: mpf) -> mpf:
        return rate * base.profile(1 + (gamma - 1) / rate)

    return Curve(profile, lambda t: (1 - rate) * t + rate * base.caught(t), 1 + rate * (base.last - 1))


def poisson_add(base: Curve, rate: mpf) -> Curve:
    """A against (1−q)A + qB, from a symmetric base: w (A − γ'B)₊ with w = 1 − γ(1 − q)."""

    def profile(gamma: mpf) -> mpf:
        weight = 1 - gamma * (1 - rate)
        return weight * base.profile(gamma * rate / weight) if weight > 0 else mpf(0)

    return Curve(profile, lambda _: mp.nan, 1 / (1 - rate + rate / base.last))


def upper_tail(x: mpf) -> mpf:
    """1 − Φ(x), to full relative accuracy."""
    return mp.erfc(x / mp.sqrt(2)) / 2


def quantile(t: mpf) -> mpf:
    """The x with 1 − Φ(x) = t, by Newton's method on the logarithm."""
    if t > mpf(1) / 2:
        return -quantile(1 - t)
    if t == 0:
        return mp.inf
    x = mp.sqrt(-2 * mp.log(2 * t) + mpf(1) / 100) if t < mpf("0.4") else (mpf(1) / 2 - t) * mp.sqrt(2 * mp.pi)
    for _ in range(200):
        tail = upper_tail(x)
        step = (mp.log(tail) - mp.log(t)) * tail / (mp.exp(-x * x / 2) / mp.sqrt(2 * mp.pi))
        x += step
        if abs(step) <= mpf(10) ** (8 - mp.dps) * (1 + abs(x)):
            return x
    raise ArithmeticError(f"no quantile found at {t}")
