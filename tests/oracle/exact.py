"""Privacy profiles by brute force in exact fractions: slow, short, and nothing shared with the library.

A pair is a list of (P, Q) over outcomes. The only irrational number is γ = e^ε, taken to 80 digits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from fractions import Fraction

from mpmath import mp, mpf

Pair = list[tuple[Fraction, Fraction]]


def exponential(epsilon: float | Fraction) -> Fraction:
    """e^ε to 80 digits, as a fraction."""
    with mp.workdps(80):
        exponent = mpf(epsilon.numerator) / epsilon.denominator if isinstance(epsilon, Fraction) else mpf(epsilon)
        sign, mantissa, power, _ = mp.exp(exponent)._mpf_
    return (-1) ** sign * Fraction(int(mantissa)) * Fraction(2) ** int(power)


def pair(p: Iterable[Fraction], q: Iterable[Fraction]) -> Pair:
    return list(zip(p, q, strict=True))


def swapped(law: Pair) -> Pair:
    return [(q, p) for p, q in law]


def sampled(law: Pair, rate: Fraction, *, remove: bool) -> Pair:
    """((1−r)A + rB, A) from (B, A), or (A, (1−r)A + rB) from (A, B)."""
    if remove:
        return [((1 - rate) * a + rate * b, a) for b, a in law]
    return [(a, (1 - rate) * a + rate * b) for a, b in law]


def composed(laws: Iterable[Pair]) -> Pair:
    """The product of all laws; outcomes with equal masses are joined."""
    product: Counter[tuple[Fraction, Fraction]] = Counter({(Fraction(1), Fraction(1)): 1})
    for law in laws:
        following: Counter[tuple[Fraction, Fraction]] = Counter()
        for (p, q), copies in product.items():
            for a, b in law:
                following[p * a, q * b] += copies
        product = following
    return [(copies * p, copies * q) for (p, q), copies in product.items()]


def profile(law: Pair, gamma: Fraction) -> Fraction:
    """Σ (P − γQ)₊."""
    return sum((p - gamma * q for p, q in law if p > gamma * q), Fraction(0))


def worse_profile(laws: Iterable[Pair], epsilon: float) -> Fraction:
    """δ(ε) of the composition, the worse of both orders."""
    whole, gamma = composed(laws), exponential(epsilon)
    return max(profile(whole, gamma), profile(swapped(whole), gamma))


def triple(gamma: Fraction, delta: Fraction, eta: Fraction) -> Pair:
    """The five atoms of (log γ, δ, η): GI eqs. 43-44."""
    alpha = 1 - (eta - delta) * (1 + gamma) / ((1 - delta) * (gamma - 1))
    c = (1 - delta) * (1 - alpha) / (1 + gamma)
    p = [delta, c * gamma, alpha * (1 - delta), c, Fraction(0)]
    return pair(p, reversed(p))
