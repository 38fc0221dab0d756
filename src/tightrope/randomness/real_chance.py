"""Events whose probability is a real number that is known only by enclosures: decided exactly."""

from __future__ import annotations

from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction

from tightrope.randomness.source import Source

Enclosure = Callable[[int], tuple[Fraction, Fraction]]
"""Digits to (lower, upper) bounds of a number; they close in on it as the digits grow."""

FIRST_DIGITS, MORE_DIGITS = 40, 40


def happens(chance: Enclosure, randomness: Source, prefix: int = 0, bits: int = 0) -> bool:
    """Whether U < p, for a uniform real number U whose first ``bits`` binary digits are ``prefix``.

    Words of the source continue U and digits narrow p until the two are apart, which happens with probability 1: the
    answer is exact whatever the precision of a single step.
    """
    digits = FIRST_DIGITS
    while True:
        low, high = chance(digits)
        if prefix + 1 <= low * (1 << bits):
            return True
        if prefix >= high * (1 << bits):
            return False
        prefix, bits, digits = (prefix << 64) + int(randomness.words(1)[0]), bits + 64, digits + MORE_DIGITS


def falling_exponential(x: Fraction, digits: int) -> tuple[Fraction, Fraction]:
    """Bounds on e^{−x} for x ≥ 0, about ``digits`` decimal digits apart.

    The quotient is rounded either way and ``decimal`` rounds exponentials correctly; one more unit each side allows
    for that rounding.

    >>> low, high = falling_exponential(Fraction(1, 3), 20)
    >>> float(low), float(high - low) < 1e-18
    (0.7165313105737893, True)
    """
    down, up = Context(prec=digits, rounding=ROUND_FLOOR), Context(prec=digits, rounding=ROUND_CEILING)
    top, bottom = Decimal(-x.numerator), Decimal(x.denominator)
    low = down.next_minus(down.exp(down.divide(top, bottom)))
    high = up.next_plus(up.exp(up.divide(top, bottom)))
    return max(Fraction(0), Fraction(low)), Fraction(high)
