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
from tightrope.local.parts.kernels import Digits, checked_rows, clear_spare, put, width
from tightrope.local.parts.losses import WORD, Change, checked_epsilon, epsilon_of, favoured, loss_of, of_bits
from tightrope.local.parts.values import Integers, categories, domain
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


def _flip_probability(epsilon: float, optimised: bool) -> float:
    built = min(epsilon, LARGEST_STEP)
    return 1 / (math.exp(built if optimised else built / 2) + 1)


def _rounded(epsilon: float, k: int, length: int, optimised: bool) -> UnaryEncoding | None:
    """With q rounded to ``length`` digits; None where nothing, or the shorter number again, is left."""
    numerator = round(_flip_probability(epsilon, optimised) * (1 << length))
    return with_others(epsilon, k, Digits(numerator, length)) if numerator % 2 else None


def _is_close(mechanism: UnaryEncoding, optimised: bool) -> bool:
    if not optimised:
        return abs(float(mechanism.other) / _flip_probability(mechanism.epsilon, optimised) - 1) < 2**-12
    least = 1 / math.sinh(min(mechanism.epsilon, LARGEST_STEP) / 2) ** 2
    return float(mechanism.variances[0]) <= (1 + VARIANCE_EXCESS) * least


# Basic RAPPOR: a permanent answer for every category, made once; every report flips its bits again.

FLIP_DIGITS = 16
"""Binary digits of the chance that a bit is flipped."""


@dataclass(frozen=True, slots=True)
class Rappor(FrequencyOracle):
    """Each bit of the ``permanent`` row is flipped with the chance of ``flip`` in every report.

    ``loss`` and ``guarantee`` are those of the permanent row: they hold for any number of reports of one value.
    ``loss_once`` is that of a single report. Neither hides *when* a value changes: reports from one row agree more
    than those from two, in all k bits.
    """

    epsilon: float
    k: int
    permanent: UnaryEncoding
    flip: Digits

    @property
    def keep(self) -> Fraction:
        return _flipped(self.permanent.keep, self.flip.chance)

    @property
    def other(self) -> Fraction:
        return _flipped(self.permanent.other, self.flip.chance)

    @property
    def changed(self) -> Change:
        return self.permanent.changed

    @property
    def loss_once(self) -> PrivacyLoss:
        """The privacy loss of one report by somebody who never makes another."""
        return loss_of(_once(self.permanent, self.flip))

    @property
    def channel(self) -> Channel:
        """One report, as ``loss_once``: 2^k reports, Σ bit_v 2^v; k ≤ 16. ``permanent.channel`` is that of the row."""
        return of_bits(self.k, self.keep, self.other)

    def memorise(self, values: ArrayLike, randomness: Source | None = None) -> Words:
        """Permanent rows, shape [n, ⌈k/64⌉]: each person makes one for a value, keeps it and shows it to nobody."""
        return self.permanent.perturb(values, randomness)

    def report(self, rows: ArrayLike, randomness: Source | None = None) -> Words:
        """One report from each permanent row, of the same shape; any number of times."""
        kept, randomness = checked_rows("rows", rows, self.k), randomness or Stream()
        out = kept.copy()
        step = max(1, WORDS_AT_ONCE // (width(self.k) * self.flip.length))
        for start in range(0, len(kept), step):
            part = out[start : start + step]
            part ^= self.flip.rows(randomness.words(part.size * self.flip.length), *part.shape)
        clear_spare(out, self.k)
        return out

    def perturb(self, values: ArrayLike, randomness: Source | None = None) -> Words:
        """A first report of people who forget their permanent row: for one collection."""
        return self.report(self.memorise(values, randomness), randomness)


def rappor(epsilon: float, k: int, *, once: float | None = None) -> Rappor:
    """Basic RAPPOR (Erlingsson, Pihur, Korolova 2014), symmetric: ε for ever, ``once`` (default ε/2) for one report.

    It protects one value however often it is reported. With c different values, c ε tell two people apart whose values
    change at the same times; that somebody's value changed at all is not hidden (``Memoised`` says more). The chance of
    a flip is a multiple of 2⁻¹⁶, rounded up. Raises ``InputError`` unless 0 < once < ε is finite.

    >>> mechanism = rappor(2.0, 50, once=1.0)
    >>> mechanism.loss.delta(2.0), 0.999 < mechanism.loss_once.epsilon(1e-15) <= 1.0
    (0.0, True)
    """
    epsilon = checked_epsilon(epsilon)
    single = epsilon / 2 if once is None else checked_epsilon(once)
    if not single < epsilon:
        raise InputError("once", once, f"below epsilon={epsilon!r}", "one report says less than all together")
    permanent = unary_encoding(epsilon, k, optimised=False)
    # The least multiple of 2⁻¹⁶ with which one report spends at most `once`, by halving: more flips, less loss.
    most = 1 << FLIP_DIGITS - 1
    least = bisect_left(
        range(most), True, lo=1, key=lambda flips: epsilon_of(_once(permanent, _digits(flips))) <= single
    )
    if least == most:
        raise InputError("once", single, "large enough to be told from 0", "ask for more in one report")
    return Rappor(epsilon, permanent.k, permanent, _digits(least))


def _digits(numerator: int) -> Digits:
    zeros = (numerator & -numerator).bit_length() - 1
    return Digits(numerator >> zeros, FLIP_DIGITS - zeros)


def _once(permanent: UnaryEncoding, flip: Digits) -> Change:
    p, q = (_flipped(chance, flip.chance) for chance in (permanent.keep, permanent.other))
    return p * (1 - q), q * (1 - p)


def _flipped(chance: Fraction, flip: Fraction) -> Fraction:
    return chance * (1 - flip) + (1 - chance) * flip
