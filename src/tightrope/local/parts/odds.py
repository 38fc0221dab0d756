"""Chances as whole numbers out of 2⁶⁴, rounded so that the odds e^ε are never exceeded.

A uniform 64-bit word u is below T with probability T / 2⁶⁴ exactly: a mechanism that compares words with whole numbers
has the probabilities that its certificate speaks of, and no float has a say.
"""

from __future__ import annotations

from fractions import Fraction

from tightrope.errors import InputError
from tightrope.mechanisms.tables.integer_tables import PRIVATE_SIDE
from tightrope.mechanisms.tables.integer_weights import LARGEST_STEP, ONE, exponential
from tightrope.numerics.checks import positive

WORD = 1 << 64
"""How many words there are."""


def checked_epsilon(epsilon: object) -> float:
    """A finite ε > 0 as a float; raises ``InputError`` for anything else, ∞ included."""
    return positive("epsilon", epsilon, "0 would report nothing and infinity the truth; a typical value is 1")


def falling(epsilon: float) -> int:
    """e^{−ε(1 − 2⁻⁴⁸)} in fixed point (``integer_weights.ONE`` is 1), rounded up; ε above 40 is taken as 40."""
    return exponential(Fraction(min(epsilon, LARGEST_STEP) * PRIVATE_SIDE)) + 1


def other_weight(epsilon: float, k: int, whole: int = WORD) -> int:
    """Least w with (whole − (k−1) w) / w ≤ e^ε: the weight of each of k − 1 outcomes beside a favoured one.

    Raises ``InputError`` where ε is so small that no favour is left.

    >>> w = other_weight(1.0, 4)
    >>> round((WORD - 3 * w) / w, 12)
    2.718281828459
    """
    decay = falling(epsilon)
    weight = -(-whole * decay // (ONE + (k - 1) * decay))
    if not k * weight < whole:
        raise InputError("epsilon", epsilon, f"large enough to be told from 0 among {k} outcomes", "ask for more")
    return weight


def favour(epsilon: float, k: int) -> Fraction:
    """(e^ε − 1) / (e^ε + k − 1) for the ε that is built: no rounded response has a larger total variation."""
    decay = falling(epsilon)
    return Fraction(ONE - decay, ONE + (k - 1) * decay)


def favoured(epsilon: float, others: Fraction, whole: int = WORD) -> int:
    """Most T with T / (whole − T) ≤ e^ε / others: a chance T / whole against ``others`` equal ones that share the rest.

    Raises ``InputError`` where ε is so small that T is no favour.

    >>> round(favoured(1.0, Fraction(1)) / WORD, 12)
    0.73105857863
    """
    decay, parts = falling(epsilon), Fraction(others)
    top = whole * ONE * parts.denominator // (ONE * parts.denominator + parts.numerator * decay)
    if not top * parts.numerator > (whole - top) * parts.denominator:
        raise InputError("epsilon", epsilon, "large enough to be told from 0 in 64 binary digits", "ask for more")
    return top
