"""Unary encoding, one randomized bit per category, and basic RAPPOR, which randomizes memorized bits in each report."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from tightrope.channels import Channel
from tightrope.errors import InputError, PrecisionError
from tightrope.local.mechanisms.oracle import FrequencyOracle
from tightrope.local.parts.kernels import BinaryDigits, check_packed_rows, clear_spare_bits, set_bits, words_for_bits
from tightrope.local.parts.losses import (
    WORD,
    Change,
    bits_channel,
    checked_epsilon,
    epsilon_of_change,
    favored_weight,
    loss_of_change,
)
from tightrope.local.parts.values import Integers, check_categories, check_domain_size
from tightrope.mechanisms.discrete.integer_weights import LARGEST_STEP
from tightrope.numerics.root_finding import bisect_integer
from tightrope.randomness.bits import Source, Stream, Words

if TYPE_CHECKING:
    from tightrope.accounting.privacy_loss import PrivacyLoss

MOST_UNARY_CATEGORIES = 1 << 20
WORDS_AT_ONCE = 1 << 15
"""Words that are processed at once: few enough for the processor's cache."""
MOST_DIGITS = 64
VARIANCE_EXCESS = 1e-4
"""Largest relative excess of the variance over the optimum from rounding the probability to few digits."""


@dataclass(frozen=True, slots=True)
class UnaryEncoding(FrequencyOracle):
    """Independent bits: 1 with probability own_weight / 2⁶⁴ for the true category, with that of ``digits`` for others.

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
    def report_change_probabilities(self) -> tuple[Fraction, Fraction]:
        """The change for two bits: (1, 0) has p (1 − q) under the first value and q (1 − p) under the second."""
        p, q = self.true_support_probability, self.false_support_probability
        return p * (1 - q), q * (1 - p)

    @property
    def channel(self) -> Channel:
        """The channel to the 2^k reports Σ bit_v 2^v; k ≤ 16."""
        return bits_channel(self.k, self.true_support_probability, self.false_support_probability)

    def perturb(self, values: ArrayLike, randomness: Source | None = None) -> Words:
        """Return rows of packed bits, shape [n, ⌈k/64⌉]; ``InputError`` unless values are integers in 0..k − 1."""
        truth, randomness = check_categories("values", values, self.k), randomness or Stream()
        out = np.empty((len(truth), words_for_bits(self.k)), dtype=np.uint64)
        step = max(1, WORDS_AT_ONCE // (out.shape[1] * self.digits.length))
        for start in range(0, len(truth), step):
            out[start : start + step] = self._randomize_block(truth[start : start + step], randomness)
        return out

    def _randomize_block(self, values: Integers, randomness: Source) -> Words:
        people, columns = len(values), words_for_bits(self.k)
        words = randomness.random_words(people * (columns * self.digits.length + 1))
        rows = self.digits.sample_rows(words[people:], people, columns)
        set_bits(rows, values, words[:people] < np.uint64(self.own_weight))
        clear_spare_bits(rows, self.k)
        return rows


def unary_encoding(epsilon: float, k: int, *, optimized: bool = True) -> UnaryEncoding:
    """Return optimized (q = 1/(e^ε + 1), p = ½) or symmetric (q = 1/(e^{ε/2} + 1), p = 1 − q) unary encoding, ε-LDP.

    q is rounded to few binary digits, for speed; then p is the largest with p (1 − q) ≤ e^ε q (1 − p). The optimized q
    has the least variance, 4e^ε/(e^ε − 1)² per person (Wang et al. 2017); rounding increases it by at most 10⁻⁴ of it.
    The symmetric q is rounded to a relative 2⁻¹². ε above 40 is taken as 40. Raises ``InputError`` unless ε > 0 is
    finite and 2 ≤ k ≤ 2²⁰.

    >>> mechanism = unary_encoding(1.0, 100)
    >>> round(float(mechanism.false_support_probability), 3), round(float(mechanism.true_support_probability), 1)
    (0.266, 0.5)
    >>> mechanism.estimate(mechanism.perturb([3] * 1000)).value.shape
    (100,)
    """
    epsilon = checked_epsilon(epsilon)
    size = check_domain_size(k, MOST_UNARY_CATEGORIES, "hash the categories: local.hashing")
    capped_epsilon = min(epsilon, LARGEST_STEP)
    q = 1 / (math.exp(capped_epsilon if optimized else capped_epsilon / 2) + 1)
    # q rounded to 1, 2, … digits; an even numerator is 0, or the same number as with fewer digits.
    roundings = ((round(q * (1 << length)), length) for length in range(1, MOST_DIGITS + 1))
    digits = (BinaryDigits(numerator, length) for numerator, length in roundings if numerator % 2)
    candidates = (
        UnaryEncoding(epsilon, size, favored_weight(epsilon, 1 / false_digits.one_probability - 1), false_digits)
        for false_digits in digits
    )
    for candidate in candidates:  # a tiny ε is refused here, before 1/sinh² overflows
        if optimized:
            least_variance = 1 / math.sinh(capped_epsilon / 2) ** 2
            is_close = float(candidate.report_variances[0]) <= (1 + VARIANCE_EXCESS) * least_variance
        else:
            is_close = abs(float(candidate.false_support_probability) / q - 1) < 2**-12
        if is_close:
            return candidate
    raise PrecisionError(f"no rounding of q to {MOST_DIGITS} binary digits is close enough")


FLIP_DIGITS = 16
"""Binary digits of the probability that a bit is flipped."""


@dataclass(frozen=True, slots=True)
class Rappor(FrequencyOracle):
    """Basic RAPPOR: every report flips each bit of the ``permanent`` row with the probability of ``flip``.

    ``loss`` and ``guarantee`` are those of the permanent row: they hold for any number of reports of one value.
    ``loss_once`` is the loss of a single report. Neither hides *when* a value changes: reports from the same row agree
    in more bits than reports from two rows.
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
    def report_change_probabilities(self) -> Change:
        return self.permanent.report_change_probabilities

    @property
    def loss_once(self) -> PrivacyLoss:
        """The privacy loss of one report by a person who makes only one."""
        return loss_of_change(_single_report_probabilities(self.permanent, self.flip))

    @property
    def channel(self) -> Channel:
        """The channel of one report to Σ bit_v 2^v, k ≤ 16; ``permanent.channel`` is that of the row."""
        return bits_channel(self.k, self.true_support_probability, self.false_support_probability)

    def permanent_rows(self, values: ArrayLike, randomness: Source | None = None) -> Words:
        """Return permanent rows, shape [n, ⌈k/64⌉]: each person must store the row of a value and keep it secret."""
        return self.permanent.perturb(values, randomness)

    def report_rows(self, rows: ArrayLike, randomness: Source | None = None) -> Words:
        """Return one report from each permanent row, of the same shape; may be called any number of times."""
        permanent, randomness = check_packed_rows("rows", rows, self.k), randomness or Stream()
        out = permanent.copy()
        step = max(1, WORDS_AT_ONCE // (words_for_bits(self.k) * self.flip.length))
        for start in range(0, len(permanent), step):
            part = out[start : start + step]
            part ^= self.flip.sample_rows(randomness.random_words(part.size * self.flip.length), *part.shape)
        clear_spare_bits(out, self.k)
        return out

    def perturb(self, values: ArrayLike, randomness: Source | None = None) -> Words:
        """Return one report from new permanent rows that are not stored: for a single collection."""
        return self.report_rows(self.permanent_rows(values, randomness), randomness)


def rappor(epsilon: float, k: int, *, once: float | None = None) -> Rappor:
    """Return basic RAPPOR (Erlingsson, Pihur, Korolova 2014), symmetric: ε for all reports, ``once`` (ε/2) for one.

    ε bounds the loss of any number of reports of one value. For c different values the bound is c ε, between two people
    whose values change at the same times; it is not hidden that a value changed (see ``Memoized``). The probability of
    a flip is a multiple of 2⁻¹⁶, rounded up. Raises ``InputError`` unless 0 < once < ε is finite.

    >>> mechanism = rappor(2.0, 50, once=1.0)
    >>> mechanism.loss.delta(2.0), 0.999 < mechanism.loss_once.epsilon(1e-15) <= 1.0
    (0.0, True)
    """
    epsilon = checked_epsilon(epsilon)
    single = epsilon / 2 if once is None else checked_epsilon(once)
    if not single < epsilon:
        raise InputError(
            "once", once, f"below epsilon={epsilon!r}", "the loss of one report is below that of all together"
        )
    permanent = unary_encoding(epsilon, k, optimized=False)
    # The smallest multiple of 2⁻¹⁶ with which one report has a loss of at most `once`: more flips, less loss.
    most = 1 << FLIP_DIGITS - 1
    least = bisect_integer(
        lambda flips: epsilon_of_change(_single_report_probabilities(permanent, _flip_digits(flips))) <= single,
        0,
        most,
        side="passes",
    )
    if least == most:
        raise InputError("once", single, "large enough to differ from 0", "use a larger value")
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
