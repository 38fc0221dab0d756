"""Exact shares as people read them."""

from __future__ import annotations

import math
from fractions import Fraction

SHOWN_DIGITS = 30
LONGEST_SHOWN = 12
"""Letters of a share in advice."""


def shown(share: Fraction) -> str:
    """A share as a decimal where it has one of few digits, else as a fraction.

    >>> shown(Fraction(1, 8)), shown(Fraction(1, 12)), shown(Fraction(0)), shown(Fraction(1))
    ('0.125', '1/12', '0', '1')
    """
    rest, twos, fives = share.denominator, 0, 0
    while rest % 2 == 0:
        rest, twos = rest // 2, twos + 1
    while rest % 5 == 0:
        rest, fives = rest // 5, fives + 1
    digits = max(twos, fives)
    if rest != 1 or digits > SHOWN_DIGITS:
        return str(share)
    whole = str(abs(share.numerator) * 10**digits // share.denominator).rjust(digits + 1, "0")
    text = f"{whole[:-digits]}.{whole[-digits:]}" if digits else whole
    return f"-{text}" if share < 0 else text


def rounded_down(share: Fraction) -> str:
    """A share as it is where that is short, else the first digits of it.

    >>> rounded_down(Fraction(3, 4)), rounded_down(Fraction(2, 3)), rounded_down(Fraction(10**12 - 1, 3 * 10**12))
    ('0.75', '2/3', '0.333333')
    """
    text = shown(share)
    return text if len(text) <= LONGEST_SHOWN else shown(Fraction(math.floor(share * 10**6), 10**6))
