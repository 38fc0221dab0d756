"""Unary encoding: a bit for every category, the own one set more often than the others."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from tightrope.channels import Channel
from tightrope.local.mechanisms.oracle import FrequencyOracle
from tightrope.local.parts.bits import Digits, clear_spare, put, width
from tightrope.local.parts.matrices import of_bits
from tightrope.local.parts.odds import WORD, checked_epsilon, favoured
from tightrope.local.parts.values import Integers, categories, domain
from tightrope.mechanisms.tables.integer_weights import LARGEST_STEP
from tightrope.randomness.source import Source, Words
from tightrope.randomness.stream import Stream

MOST_UNARY_CATEGORIES = 1 << 20
WORDS_AT_ONCE = 1 << 15
"""Words handled at once: they stay in the cache."""
MOST_DIGITS = 64
VARIANCE_EXCESS = 1e-4
"""Relative excess of the variance over the optimum that shorter chances may cost."""


@dataclass(frozen=True, slots=True)
class UnaryEncoding(FrequencyOracle):
    """The own bit is 1 with chance own_weight / 2⁶⁴, each other bit with the chance of ``digits``; all independent.

    A report is a row of k packed bits, see ``bits``.
    """

    epsilon: float
    k: int
    own_weight: int
    digits: Digits

    @property
    def keep(self) -> Fraction:
        return Fraction(self.own_weight, WORD)

    @property
    def other(self) -> Fraction:
        return self.digits.chance

    @property
    def changed(self) -> tuple[Fraction, Fraction]:
        """Two people differ in two bits: (1, 0) is p (1 − q) against q (1 − p), and (0, 1) the other way round."""
        p, q = self.keep, self.other
        return p * (1 - q), q * (1 - p)

    @property
    def channel(self) -> Channel:
        """2^k reports: Σ bit_v 2^v; k ≤ 16."""
        return of_bits(self.k, self.keep, self.other)

    def perturb(self, values: ArrayLike, randomness: Source | None = None) -> Words:
        """Rows of packed bits, shape [n, ⌈k/64⌉]; raises ``InputError`` unless values are whole, in 0..k − 1."""
        truth, randomness = categories("values", values, self.k), randomness or Stream()
        out = np.empty((len(truth), width(self.k)), dtype=np.uint64)
        step = max(1, WORDS_AT_ONCE // (out.shape[1] * self.digits.length))
        for start in range(0, len(truth), step):
            out[start : start + step] = self._block(truth[start : start + step], randomness)
        return out

    def _block(self, values: Integers, randomness: Source) -> Words:
        people, columns = len(values), width(self.k)
        words = randomness.words(people * (columns * self.digits.length + 1))
        rows = self.digits.rows(words[people:], people, columns)
        put(rows, values, words[:people] < np.uint64(self.own_weight))
        clear_spare(rows, self.k)
        return rows


def unary_encoding(epsilon: float, k: int, *, optimised: bool = True) -> UnaryEncoding:
    """Optimised (q = 1/(e^ε + 1), p = ½) or symmetric (q = 1/(e^{ε/2} + 1), p = 1 − q) unary encoding, ε-LDP.

    q is rounded to few binary digits, which makes it fast; p is then the largest with p (1 − q) ≤ e^ε q (1 − p), so
    that no privacy is left unused. The optimised q is at the least variance, 4e^ε/(e^ε − 1)² an person (Wang et al.
    2017): rounding costs at most 10⁻⁴ of it. The symmetric q is right to 2⁻¹² of itself.
    ε above 40 is taken as 40. Raises ``InputError`` unless ε > 0 is finite and 2 ≤ k ≤ 2²⁰.

    >>> mechanism = unary_encoding(1.0, 100)
    >>> round(float(mechanism.other), 3), round(float(mechanism.keep), 1)
    (0.266, 0.5)
    >>> mechanism.estimate(mechanism.perturb([3] * 1000)).value.shape
    (100,)
    """
    epsilon = checked_epsilon(epsilon)
    size = domain(k, MOST_UNARY_CATEGORIES, "hash the categories: local.hashing")
    tried = (_rounded(epsilon, size, length, optimised) for length in range(1, MOST_DIGITS + 1))
    return next(mechanism for mechanism in tried if mechanism and _is_close(mechanism, optimised))


def with_others(epsilon: float, k: int, digits: Digits) -> UnaryEncoding:
    """Unary encoding with the given chance q of other bits, and the largest p for it."""
    return UnaryEncoding(epsilon, k, favoured(epsilon, 1 / digits.chance - 1), digits)


def _wanted(epsilon: float, optimised: bool) -> float:
    built = min(epsilon, LARGEST_STEP)
    return 1 / (math.exp(built if optimised else built / 2) + 1)


def _rounded(epsilon: float, k: int, length: int, optimised: bool) -> UnaryEncoding | None:
    """With q rounded to ``length`` digits; None where nothing, or the shorter number again, is left."""
    numerator = round(_wanted(epsilon, optimised) * (1 << length))
    return with_others(epsilon, k, Digits(numerator, length)) if numerator % 2 else None


def _is_close(mechanism: UnaryEncoding, optimised: bool) -> bool:
    if not optimised:
        return abs(float(mechanism.other) / _wanted(mechanism.epsilon, optimised) - 1) < 2**-12
    least = 1 / math.sinh(min(mechanism.epsilon, LARGEST_STEP) / 2) ** 2
    return float(mechanism.variances[0]) <= (1 + VARIANCE_EXCESS) * least
