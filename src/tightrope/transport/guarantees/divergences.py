"""The divergences of ``numerics.divergences`` between two laws in rationals: upper bounds, a few units too high."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

from tightrope.errors import InputError
from tightrope.numerics.checks import probability
from tightrope.numerics.divergences import CHI_SQUARED, HELLINGER, KL, Divergence
from tightrope.numerics.rounding import rounded

Shares = Sequence[Fraction]

TERM_MARGIN = 5e-14
"""Relative: more than a term may be off (a few dozen roundings; the sums of positive terms are rounded once)."""
NEAR_ONE = Fraction(1, 2)
"""Where |p/q − 1| is at most this, logarithms come from series: their difference to the linear part has all digits."""
TERMS = 60
TINY_TERMS = 1e-300
"""Added where the laws differ: more than all terms together lose below the normal doubles."""
SMALL, LARGE = Fraction(1, 10**300), Fraction(10**300)
"""Ratios between these are normal doubles."""


def divergence(name: str, p: Shares, q: Shares, *, delta: float = 0.0) -> float:
    """D(p‖q), rounded up; ∞ where p is not absolutely continuous and D asks for it.

    ``name``: "kl" Σ p log(p/q) · "reverse_kl" Σ q log(q/p) · "total_variation" Σ (p − q)₊ ·
    "chi_squared" Σ (p − q)²/q · "hellinger" Σ (√p − √q)² · "max" log max p/q · "approximate_max" the least ε ≥ 0 with
    Σ (p − e^ε q)₊ ≤ ``delta`` (KM Def. 5: max over sets R of log((p(R) − δ)/q(R))).
    Raises ``InputError`` for another name.

    >>> p, q = [Fraction(1, 2), Fraction(1, 2)], [Fraction(1, 4), Fraction(3, 4)]
    >>> round(divergence("kl", p, q), 12), round(divergence("max", p, q), 12)
    (0.143841036226, 0.69314718056)
    """
    if not isinstance(name, str) or (name not in KINDS and name != APPROXIMATE):
        raise InputError("divergence", name, f"one of {[*KINDS, APPROXIMATE]}")
    if len(p) != len(q):
        raise InputError("laws", (len(p), len(q)), "laws over the same outcomes")
    slack = probability("delta", delta)
    if slack and name != APPROXIMATE:
        raise InputError("delta", delta, f"0 for {name!r}", f"only {APPROXIMATE!r} has a delta")
    if all(a == b for a, b in zip(p, q, strict=True)):
        return 0.0
    if name == APPROXIMATE:
        return raised(_approximate_max(p, q, Fraction(slack)))
    return raised(KINDS[name](p, q) + TINY_TERMS)


def raised(value: float) -> float:
    """A few units up; 0 and ∞ stay."""
    return rounded(value, "up", error=TERM_MARGIN)


def log_ratio(p: Fraction, q: Fraction) -> float:
    """log(p/q) to a few units in the last place, near 1 as well, whatever the size of the two; q > 0."""
    ratio = p / q
    if abs(ratio - 1) <= NEAR_ONE:
        return math.log1p(float(ratio - 1))
    if SMALL < ratio < LARGE:
        return math.log(ratio)
    return math.log(ratio.numerator) - math.log(ratio.denominator)


def _kl(p: Shares, q: Shares) -> float:
    """Σ q φ(p/q) with φ(t) = t log t − t + 1 ≥ 0: no cancellation."""
    return _sum(p, q, _bend, KL)


def _bend(p: Fraction, q: Fraction) -> float:
    """One term, q φ(p/q)."""
    if not p:
        return float(q)
    excess = p / q - 1
    if abs(excess) > NEAR_ONE:
        return float(p) * log_ratio(p, q) - float(p - q)
    d = float(excess)
    return float(q) * math.fsum((-1) ** k * d**k / (k * (k - 1)) for k in range(2, TERMS))


def _total_variation(p: Shares, q: Shares) -> float:
    return float(sum((a - b for a, b in zip(p, q, strict=True) if a > b), Fraction(0)))


def _chi_squared(p: Shares, q: Shares) -> float:
    return _sum(p, q, lambda a, b: float((a - b) ** 2 / b), CHI_SQUARED)


def _hellinger(p: Shares, q: Shares) -> float:
    return _sum(p, q, _root_gap, HELLINGER)


def _root_gap(p: Fraction, q: Fraction) -> float:
    """(√p − √q)² = a ((1 − r)/(1 + √r))² with a the larger of both and r their ratio."""
    larger, ratio = max(p, q), min(p, q) / max(p, q)
    return float(larger) * (float(1 - ratio) / (1 + math.sqrt(ratio))) ** 2


def _sum(p: Shares, q: Shares, term: Callable[[Fraction, Fraction], float], f: Divergence) -> float:
    """Sum of the terms where q > 0, and f'(∞) times the mass of p elsewhere."""
    inside = math.fsum(term(a, b) for a, b in zip(p, q, strict=True) if b and a != b)
    outside = sum((a for a, b in zip(p, q, strict=True) if not b), Fraction(0))
    return inside + f.exclusive(float(outside), 0.0) if outside else inside


def _max(p: Shares, q: Shares) -> float:
    if any(a and not b for a, b in zip(p, q, strict=True)):
        return math.inf
    return max(log_ratio(a, b) for a, b in zip(p, q, strict=True) if a)


def _approximate_max(p: Shares, q: Shares, delta: Fraction) -> float:
    """The best sets R take the outcomes in the order of their ratio."""
    pairs = [(a, b) for a, b in zip(p, q, strict=True) if a]
    pairs.sort(key=lambda pair: (pair[1] / pair[0], pair[1]))
    worst, above, below = 0.0, -delta, Fraction(0)
    for a, b in pairs:
        above, below = above + a, below + b
        if above > 0 and not below:
            return math.inf
        if above > below:
            worst = max(worst, log_ratio(above, below) + TINY_TERMS)
    return worst


APPROXIMATE = "approximate_max"
KINDS: dict[str, Callable[[Shares, Shares], float]] = {
    "kl": _kl,
    "reverse_kl": lambda p, q: _kl(q, p),
    "total_variation": _total_variation,
    "chi_squared": _chi_squared,
    "hellinger": _hellinger,
    "max": _max,
}
