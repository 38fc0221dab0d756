"""Unary encoding: a bit for every category, the own one set more often than the others."""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from tightrope.channels import Channel
from tightrope.errors import InputError
from tightrope.local.mechanisms.oracle import FrequencyOracle
from tightrope.local.parts.kernels import BinaryDigits, checked_rows, clear_spare, packed_words, put_bits
from tightrope.local.parts.losses import WORD, Change, checked_epsilon, epsilon_of, favored_weight, loss_of, of_bits
from tightrope.local.parts.values import Integers, check_categories, check_domain_size
from tightrope.mechanisms.discrete.integer_weights import LARGEST_STEP
from tightrope.randomness.bits import Source, Stream, Words

if TYPE_CHECKING:
    from tightrope.accounting.privacy_loss import PrivacyLoss

MOST_UNARY_CATEGORIES = 1 << 20
WORDS_AT_ONCE = 1 << 15
"""Words handled at once: they stay in the cache."""
MOST_DIGITS = 64
VARIANCE_EXCESS = 1e-4
"""Relative excess of the variance over the optimum that shorter chances may cost."""


@dataclass(frozen=True, slots=True)
class UnaryEncoding(FrequencyOracle):
    """The own bit is 1 with chance own_weight / 2⁶⁴, each other bit with the chance of ``digits``; all independent.

    A report is a row of k packed bits, see ``local.bits_to_arrow``.
    """

    epsilon: float
    k: int
    own_weight: int
    digits: BinaryDigits

    @property
    def true_support_probability(self) -> Fraction:
        return Fraction(self.own_weight, WORD)

    @property
    def false_support_probability(self) -> Fraction:
        return self.digits.one_probability

    @property
    def change_probabilities(self) -> tuple[Fraction, Fraction]:
        """Two people differ in two bits: (1, 0) is p (1 − q) against q (1 − p), and (0, 1) the other way round."""
        p, q = self.true_support_probability, self.false_support_probability
        return p * (1 - q), q * (1 - p)

    @property
    def channel(self) -> Channel:
        """2^k reports: Σ bit_v 2^v; k ≤ 16."""
        return of_bits(self.k, self.true_support_probability, self.false_support_probability)

    def perturb(self, values: ArrayLike, randomness: Source | None = None) -> Words:
        """Rows of packed bits, shape [n, ⌈k/64⌉]; raises ``InputError`` unless values are whole, in 0..k − 1."""
        truth, randomness = check_categories("values", values, self.k), randomness or Stream()
        out = np.empty((len(truth), packed_words(self.k)), dtype=np.uint64)
        step = max(1, WORDS_AT_ONCE // (out.shape[1] * self.digits.length))
        for start in range(0, len(truth), step):
            out[start : start + step] = self._randomize_block(truth[start : start + step], randomness)
        return out

    def _randomize_block(self, values: Integers, randomness: Source) -> Words:
        people, columns = len(values), packed_words(self.k)
        words = randomness.random_words(people * (columns * self.digits.length + 1))
        rows = self.digits.sample_rows(words[people:], people, columns)
        put_bits(rows, values, words[:people] < np.uint64(self.own_weight))
        clear_spare(rows, self.k)
        return rows


def unary_encoding(epsilon: float, k: int, *, optimized: bool = True) -> UnaryEncoding:
    """Optimised (q = 1/(e^ε + 1), p = ½) or symmetric (q = 1/(e^{ε/2} + 1), p = 1 − q) unary encoding, ε-LDP.

    q is rounded to few binary digits, which makes it fast; p is then the largest with p (1 − q) ≤ e^ε q (1 − p), so
    that no privacy is left unused. The optimized q is at the least variance, 4e^ε/(e^ε − 1)² an person (Wang et al.
    2017): rounding costs at most 10⁻⁴ of it. The symmetric q is right to 2⁻¹² of itself.
    ε above 40 is taken as 40. Raises ``InputError`` unless ε > 0 is finite and 2 ≤ k ≤ 2²⁰.

    >>> mechanism = unary_encoding(1.0, 100)
    >>> round(float(mechanism.false_support_probability), 3), round(float(mechanism.true_support_probability), 1)
    (0.266, 0.5)
    >>> mechanism.estimate(mechanism.perturb([3] * 1000)).value.shape
    (100,)
    """
    epsilon = checked_epsilon(epsilon)
    size = check_domain_size(k, MOST_UNARY_CATEGORIES, "hash the categories: local.hashing")
    tried = (_round_digits(epsilon, size, length, optimized) for length in range(1, MOST_DIGITS + 1))
    return next(mechanism for mechanism in tried if mechanism and _is_close(mechanism, optimized))


def with_others(epsilon: float, k: int, digits: BinaryDigits) -> UnaryEncoding:
    """Unary encoding with the given chance q of other bits, and the largest p for it."""
    return UnaryEncoding(epsilon, k, favored_weight(epsilon, 1 / digits.one_probability - 1), digits)


def _flip_probability(epsilon: float, optimized: bool) -> float:
    built = min(epsilon, LARGEST_STEP)
    return 1 / (math.exp(built if optimized else built / 2) + 1)


def _round_digits(epsilon: float, k: int, length: int, optimized: bool) -> UnaryEncoding | None:
    """With q rounded to ``length`` digits; None where nothing, or the shorter number again, is left."""
    numerator = round(_flip_probability(epsilon, optimized) * (1 << length))
    return with_others(epsilon, k, BinaryDigits(numerator, length)) if numerator % 2 else None


def _is_close(mechanism: UnaryEncoding, optimized: bool) -> bool:
    if not optimized:
        return (
            abs(float(mechanism.false_support_probability) / _flip_probability(mechanism.epsilon, optimized) - 1)
            < 2**-12
        )
    least = 1 / math.sinh(min(mechanism.epsilon, LARGEST_STEP) / 2) ** 2
    return float(mechanism.report_variances[0]) <= (1 + VARIANCE_EXCESS) * least


# Basic RAPPOR: a permanent answer for every category, made once; every report flips its bits again.

FLIP_DIGITS = 16
"""Binary digits of the chance that a bit is flipped."""


@dataclass(frozen=True, slots=True)
class Rappor(FrequencyOracle):
    """Each bit of the ``permanent`` row is flipped with the chance of ``flip`` in every report.

    ``loss`` and ``guarantee`` belong to the permanent row: they hold for any number of reports of one value.
    ``loss_once`` is the loss of a single report. Neither hides *when* a value changes: reports from one row agree more
    than those from two, in all k bits.
    """

    epsilon: float
    k: int
    permanent: UnaryEncoding
    flip: BinaryDigits

    @property
    def true_support_probability(self) -> Fraction:
        return _flipped_probability(self.permanent.true_support_probability, self.flip.one_probability)

    @property
    def false_support_probability(self) -> Fraction:
        return _flipped_probability(self.permanent.false_support_probability, self.flip.one_probability)

    @property
    def change_probabilities(self) -> Change:
        return self.permanent.change_probabilities

    @property
    def loss_once(self) -> PrivacyLoss:
        """The privacy loss of one report by a person who makes only one."""
        return loss_of(_single_report_probabilities(self.permanent, self.flip))

    @property
    def channel(self) -> Channel:
        """One report, as ``loss_once``: 2^k reports, Σ bit_v 2^v; k ≤ 16. ``permanent.channel``: the row's channel."""
        return of_bits(self.k, self.true_support_probability, self.false_support_probability)

    def memorize(self, values: ArrayLike, randomness: Source | None = None) -> Words:
        """Permanent rows, shape [n, ⌈k/64⌉]: each person makes one for a value, keeps it and keeps it secret."""
        return self.permanent.perturb(values, randomness)

    def report(self, rows: ArrayLike, randomness: Source | None = None) -> Words:
        """One report from each permanent row, of the same shape; any number of times."""
        kept, randomness = checked_rows("rows", rows, self.k), randomness or Stream()
        out = kept.copy()
        step = max(1, WORDS_AT_ONCE // (packed_words(self.k) * self.flip.length))
        for start in range(0, len(kept), step):
            part = out[start : start + step]
            part ^= self.flip.sample_rows(randomness.random_words(part.size * self.flip.length), *part.shape)
        clear_spare(out, self.k)
        return out

    def perturb(self, values: ArrayLike, randomness: Source | None = None) -> Words:
        """A first report of people who forget their permanent row: for one collection."""
        return self.report(self.memorize(values, randomness), randomness)


def rappor(epsilon: float, k: int, *, once: float | None = None) -> Rappor:
    """Basic RAPPOR (Erlingsson, Pihur, Korolova 2014), symmetric: ε for ever, ``once`` (default ε/2) for one report.

    It protects one value however often it is reported. With c different values, c ε tell two people apart whose values
    change at the same times; the fact that a value changed is not hidden (``Memoized`` says more). The chance of
    a flip is a multiple of 2⁻¹⁶, rounded up. Raises ``InputError`` unless 0 < once < ε is finite.

    >>> mechanism = rappor(2.0, 50, once=1.0)
    >>> mechanism.loss.delta(2.0), 0.999 < mechanism.loss_once.epsilon(1e-15) <= 1.0
    (0.0, True)
    """
    epsilon = checked_epsilon(epsilon)
    single = epsilon / 2 if once is None else checked_epsilon(once)
    if not single < epsilon:
        raise InputError("once", once, f"below epsilon={epsilon!r}", "one report says less than all together")
    permanent = unary_encoding(epsilon, k, optimized=False)
    # The least multiple of 2⁻¹⁶ with which one report spends at most `once`, by halving: more flips, less loss.
    most = 1 << FLIP_DIGITS - 1
    least = bisect_left(
        range(most),
        True,
        lo=1,
        key=lambda flips: epsilon_of(_single_report_probabilities(permanent, _flip_digits(flips))) <= single,
    )
    if least == most:
        raise InputError("once", single, "large enough to be told from 0", "ask for more in one report")
    return Rappor(epsilon, permanent.k, permanent, _flip_digits(least))


def _flip_digits(numerator: int) -> BinaryDigits:
    zeros = (numerator & -numerator).bit_length() - 1
    return BinaryDigits(numerator >> zeros, FLIP_DIGITS - zeros)


def _single_report_probabilities(permanent: UnaryEncoding, flip: BinaryDigits) -> Change:
    p, q = (
        _flipped_probability(chance, flip.one_probability)
        for chance in (permanent.true_support_probability, permanent.false_support_probability)
    )
    return p * (1 - q), q * (1 - p)


def _flipped_probability(chance: Fraction, flip: Fraction) -> Fraction:
    return chance * (1 - flip) + (1 - chance) * flip
