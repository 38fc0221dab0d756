"""Slow, obvious arithmetic in fractions, to compare the library with."""

from decimal import Context, Decimal
from fractions import Fraction

from tightrope.randomness.alias_sampler import TOTAL

DIGITS = Context(prec=80)


def exponential(x):
    """e^x to 80 digits."""
    return Fraction(DIGITS.exp(Decimal(x)))


def probability(table, x):
    """P(X = x), read off the definition of a table."""
    x = abs(x)
    if x == 0:
        return Fraction(table.center, TOTAL)
    if x <= len(table.half):
        return Fraction(table.half[x - 1], TOTAL)
    if table.tail is None:
        return Fraction(0)
    period, cell = divmod(x - len(table.half) - 1, len(table.tail.block))
    again = Fraction(table.tail.escape, TOTAL) ** period
    return Fraction(table.tail.escape_in, TOTAL) * again * Fraction(table.tail.block[cell], TOTAL)


def law(table, reach):
    """P(X = x) for |x| ≤ reach, by x."""
    right = [probability(table, x) for x in range(reach + 1)]
    return {x: right[abs(x)] for x in range(-reach, reach + 1)}


def hockey_stick(p, shift, gamma):
    """Σ_x (p(x) − γ p(x − shift))₊."""
    return sum(max(Fraction(0), w - gamma * p.get(x - shift, 0)) for x, w in p.items())
