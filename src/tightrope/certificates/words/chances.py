"""Chances behind the words, as decimals that are never below the truth: what (ε, δ) allows an attacker."""

from __future__ import annotations

from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, ROUND_FLOOR, Context, Decimal

from tightrope.certificates.words.digits import UP, Number, named, significant

_UP = Context(prec=60, rounding=ROUND_CEILING, Emax=MAX_EMAX, Emin=MIN_EMIN)
_DOWN = Context(prec=60, rounding=ROUND_FLOOR, Emax=MAX_EMAX, Emin=MIN_EMIN)
_ABOVE = _UP.add(1, Decimal("1e-50"))
"""More than the last digit of an exponential, which decimal rounds to the nearest."""
BEYOND_WORDS = 10_000
"""Nobody tells e^ε from endless beyond this ε."""


def factor(epsilon: Number) -> Decimal:
    """e^ε, rounded up; infinite beyond ``LARGEST``.

    >>> factor(0.0), factor(1.0) > Decimal("2.718281828459045235360287471352662"), factor(1e9)
    (Decimal('1'), True, Decimal('Infinity'))
    """
    if epsilon > BEYOND_WORDS:
        return Decimal("inf")
    return _UP.multiply(_UP.exp(named(epsilon)), _ABOVE) if epsilon else Decimal(1)


def total_variation(epsilon: Number, delta: Number) -> Decimal:
    """δ + (1−δ) tanh(ε/2), rounded up: what (ε, δ) alone allows (GI; theory §1).

    >>> total_variation(0.0, 0.25), total_variation(float("inf"), 0.0) == 1
    (Decimal('0.25'), True)
    """
    if not epsilon:
        return named(delta)
    flat = _DOWN.divide(2, _UP.add(factor(epsilon), 1))
    return _UP.subtract(1, _DOWN.multiply(flat, _DOWN.subtract(1, named(delta))))


def success(total_variation: Number) -> Decimal:
    """(1 + η)/2, rounded up: how often a guess from an even chance is right, at most.

    >>> success(0.3)
    Decimal('0.65')
    """
    return _UP.divide(_UP.add(1, named(total_variation)), 2)


def times(epsilon: Number) -> str:
    """e^ε in words, rounded up.

    >>> times(1.0), times(0.0), times(800.0), times(1e5)
    ('2.72', '1', '2.73 × 10³⁴⁷', 'e to the power of 100,000')
    """
    found = factor(epsilon)
    return significant(found, 3, UP) if found.is_finite() else f"e to the power of {significant(epsilon, 3, UP)}"
