"""Basic RAPPOR: a permanent answer for every category, made once; every report flips its bits again."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from numpy.typing import ArrayLike

from tightrope.errors import InputError
from tightrope.local.mechanisms.oracle import FrequencyOracle
from tightrope.local.mechanisms.unary import WORDS_AT_ONCE, UnaryEncoding, unary_encoding
from tightrope.local.parts.bits import Digits, checked_rows, clear_spare, width
from tightrope.local.parts.losses import Change, epsilon_of, loss_of
from tightrope.local.parts.matrices import of_bits
from tightrope.local.parts.odds import checked_epsilon
from tightrope.randomness.source import Source, Words
from tightrope.randomness.stream import Stream

if TYPE_CHECKING:
    from tightrope.channels import Channel
    from tightrope.privacy.loss import PrivacyLoss

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
    return Rappor(epsilon, permanent.k, permanent, _least_flip(permanent, single))


def _least_flip(permanent: UnaryEncoding, once: float) -> Digits:
    """The least multiple of 2⁻¹⁶ with which one report spends at most ``once``, by halving: more flips, less loss."""
    most = 1 << FLIP_DIGITS - 1
    least = bisect_left(range(most), True, lo=1, key=lambda flips: _spends(permanent, flips) <= once)
    if least == most:
        raise InputError("once", once, "large enough to be told from 0", "ask for more in one report")
    return _digits(least)


def _spends(permanent: UnaryEncoding, numerator: int) -> float:
    """ε of one report, rounded up."""
    return epsilon_of(_once(permanent, _digits(numerator)))


def _digits(numerator: int) -> Digits:
    zeros = (numerator & -numerator).bit_length() - 1
    return Digits(numerator >> zeros, FLIP_DIGITS - zeros)


def _once(permanent: UnaryEncoding, flip: Digits) -> Change:
    p, q = (_flipped(chance, flip.chance) for chance in (permanent.keep, permanent.other))
    return p * (1 - q), q * (1 - p)


def _flipped(chance: Fraction, flip: Fraction) -> Fraction:
    return chance * (1 - flip) + (1 - chance) * flip
