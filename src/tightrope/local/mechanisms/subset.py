"""Reports that are sets of categories, more often one with the person's category.

Subset selection reports any set of w categories, Hadamard response one of k sets, the rows of a Hadamard matrix.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from tightrope.channels import Channel
from tightrope.errors import InputError
from tightrope.local.mechanisms.oracle import FrequencyOracle
from tightrope.local.parts.estimates import Tally
from tightrope.local.parts.kernels import (
    PEOPLE_AT_ONCE,
    BinaryDigits,
    clear_spare_bits,
    set_bits,
    word_and_mask,
    words_for_bits,
)
from tightrope.local.parts.losses import WORD, check_channel_size, checked_epsilon, favored_weight, sets_channel
from tightrope.local.parts.values import Integers, check_categories, check_domain_size, smallest_type
from tightrope.mechanisms.discrete.integer_weights import LARGEST_STEP
from tightrope.randomness.bits import Source, Stream, Words

MOST_SUBSET_CATEGORIES = 1 << 20
HADAMARD_PEOPLE_AT_ONCE = 1 << 13
"""Each array of so many words is smaller than the 128 kB from which the system maps new memory, which takes longer."""
REPORT_WORDS_AT_ONCE = 1 << 19
"""Words of reports handled at once: so many people that the last corrections of set sizes are done together."""
START_DIGITS = 7
"""Binary digits of the probability of each element of the initial sets."""


@dataclass(frozen=True, slots=True)
class SubsetSelection(FrequencyOracle):
    """A set of ``size`` categories has the person's one with probability own_weight / 2⁶⁴; the others are uniform.

    A report is a row of k packed bits, see ``local.bits_to_arrow``.
    """

    epsilon: float
    k: int
    size: int
    own_weight: int

    @property
    def true_support_probability(self) -> Fraction:
        return Fraction(self.own_weight, WORD)

    @property
    def false_support_probability(self) -> Fraction:
        """q: of the k − 1 others, w − 1 are in a set with the person's category, and w in a set without."""
        return (self.true_support_probability * (self.size - 1) + (1 - self.true_support_probability) * self.size) / (
            self.k - 1
        )

    @property
    def report_change_probabilities(self) -> tuple[Fraction, Fraction]:
        """The change for sets with the first category but not the second, and the reverse."""
        p, w, others = self.true_support_probability, self.size, self.k - 1
        return p * (self.k - w) / others, (1 - p) * w / others

    @property
    def channel(self) -> Channel:
        """The channel to sets in the order of ``itertools.combinations(range(k), size)``, at most 2¹⁶ of them."""
        return sets_channel(self.k, self.size, self.true_support_probability)

    def perturb(self, values: ArrayLike, randomness: Source | None = None) -> Words:
        """Return rows of packed bits, shape [n, ⌈k/64⌉]; ``InputError`` unless values are integers in 0..k − 1."""
        truth, randomness = check_categories("values", values, self.k), randomness or Stream()
        out = np.empty((len(truth), words_for_bits(self.k)), dtype=np.uint64)
        step = max(1, REPORT_WORDS_AT_ONCE // out.shape[1])
        for start in range(0, len(truth), step):
            out[start : start + step] = self._randomize_block(truth[start : start + step], randomness)
        return out

    def _randomize_block(self, values: Integers, randomness: Source) -> Words:
        """Return random sets, one row per value: independent bits first, then their sizes are corrected.

        Independent bits are uniform among the sets of equal size; adding or removing a random element keeps this.
        """
        rows = self._initial_sets(len(values), randomness)
        set_bits(rows, values, randomness.random_words(len(values)) < np.uint64(self.own_weight))
        missing = self.size - np.bitwise_count(rows).sum(axis=1, dtype=np.int64)
        unfinished: Integers = np.flatnonzero(missing)
        while len(unfinished):
            unfinished = self._correct_set_sizes(rows, values, missing, unfinished, randomness)
        return rows

    def _initial_sets(self, people: int, randomness: Source) -> Words:
        """Return sets of independent bits, whose size is on average near the one with the fewest corrections.

        A uniform category can be removed from a set of w with probability w / k, and added with the rest. So removing
        takes k / w tries and adding k / (k − w): the fewest are expected if a set begins too large with probability
        w / k (the quantile that minimizes an asymmetric absolute error).
        """
        share = self.size / self.k
        deviation = math.sqrt(share * (1 - share) / self.k)
        digits = round_to_binary_digits(share + deviation * float(ndtri(share)))
        columns = words_for_bits(self.k)
        if digits is None:
            return np.zeros((people, columns), dtype=np.uint64)
        rows = digits.sample_rows(randomness.random_words(people * columns * digits.length), people, columns)
        clear_spare_bits(rows, self.k)
        return rows

    def _correct_set_sizes(
        self, rows: Words, values: Integers, missing: Integers, unfinished: Integers, randomness: Source
    ) -> Integers:
        """Try one uniform category in each unfinished row, and return the rows that are unfinished after it.

        It is added to a set that is too small, or removed from one that is too large; never the person's category.
        """
        places = randomness.random_words(len(unfinished)) >> np.uint64(64 - self.k.bit_length())
        word, mask = word_and_mask(np.minimum(places, np.uint64(self.k - 1)))
        is_set = (rows[unfinished, word] & mask) != 0
        is_other = (places < np.uint64(self.k)) & (places != values[unfinished].astype(np.uint64))
        flip = is_other & (is_set == (missing[unfinished] < 0))
        chosen = unfinished[flip]
        rows[chosen, word[flip]] ^= mask[flip]
        missing[chosen] -= np.sign(missing[chosen])
        return np.asarray(unfinished[missing[unfinished] != 0])

    def count_reports(self, reports: ArrayLike) -> NDArray[np.int64]:
        """Return how many sets contain each category; raises ``InputError`` if a set has another size."""
        counts = super(SubsetSelection, self).count_reports(reports)
        sizes = np.bitwise_count(np.asarray(reports)).sum(axis=1, dtype=np.int64)
        if np.any(sizes != self.size):
            wrong = int(sizes[sizes != self.size][0])
            raise InputError("size of a reported set", wrong, str(self.size), "use the mechanism that made the reports")
        return counts


def round_to_binary_digits(share: float) -> BinaryDigits | None:
    """Return a probability of few binary digits near ``share`` (more digits if it is small); None for 0 or less."""
    if not share > 0:
        return None
    length = START_DIGITS + max(0, math.floor(-math.log2(share)) - 1)
    numerator = min(max(1, round(share * (1 << length))), (1 << length) - 1)
    odd = numerator & -numerator
    return BinaryDigits(numerator // odd, length - odd.bit_length() + 1)


def subset_selection(epsilon: float, k: int, *, size: int | None = None) -> SubsetSelection:
    """Return subset selection: sets of w categories; those with the true one are e^ε times as likely (Ye, Barg 2018).

    ε-LDP. By default w is the size with the least variance, near k / (e^ε + 1). ε above 40 is taken as 40.
    Raises ``InputError`` unless ε > 0 is finite, 2 ≤ k ≤ 2²⁰ and 1 ≤ w < k.

    >>> mechanism = subset_selection(1.0, 1024)
    >>> mechanism.size, round(float(mechanism.true_support_probability), 6)
    (275, 0.499508)
    """
    epsilon = checked_epsilon(epsilon)
    categories = check_domain_size(k, MOST_SUBSET_CATEGORIES, "hash the categories: local.hashing")
    if size is not None:
        if isinstance(size, bool) or not isinstance(size, int) or not 1 <= size < categories:
            raise InputError("size", size, f"a whole number in 1..{categories - 1}", "leave it out for the best one")
        return _selection_of_size(epsilon, categories, size)
    near = int(categories / (math.exp(min(epsilon, LARGEST_STEP)) + 1))
    sizes = range(max(1, near - 1), min(categories - 1, near + 2) + 1)
    return min(
        (_selection_of_size(epsilon, categories, w) for w in sizes), key=lambda candidate: candidate.mean_variance
    )


def _selection_of_size(epsilon: float, k: int, size: int) -> SubsetSelection:
    """Return the selection with the largest p with p (k − w) / ((1 − p) w) ≤ e^ε, w = ``size``."""
    return SubsetSelection(epsilon, k, size, favored_weight(epsilon, Fraction(k - size, size)))


# Hadamard response: a report is a number of about log₂ k bits, more often one that the category favors.

MOST_HADAMARD_CATEGORIES = 1 << 24


@dataclass(frozen=True, slots=True)
class Hadamard(FrequencyOracle):
    """A report is y in 0..2^bits − 1; category v favors the half of them with an even number of ones in (v + 1) & y.

    Each report uses one random word: its first ``bits`` are a uniform y; the others determine whether y must be
    favored, with probability favor / 2^(64 − bits). If y is in the wrong half, flipping its bit at the lowest 1 of v +
    1 gives a uniform number of the right half.
    """

    epsilon: float
    k: int
    bits: int
    favor: int

    @property
    def true_support_probability(self) -> Fraction:
        return Fraction(self.favor, 1 << (64 - self.bits))

    @property
    def false_support_probability(self) -> Fraction:
        """½ exactly: the halves of two categories have a quarter of all reports in common."""
        return Fraction(1, 2)

    @property
    def report_change_probabilities(self) -> tuple[Fraction, Fraction]:
        """The change of two categories, whose halves differ in half of all reports."""
        return self.true_support_probability / 2, (1 - self.true_support_probability) / 2

    @property
    def channel(self) -> Channel:
        """The channel with 2^bits reports; for k up to about 2¹²."""
        check_channel_size(self.k, 1 << self.bits)
        rows, reports = np.arange(1, self.k + 1)[:, None], np.arange(1 << self.bits)
        odd = np.bitwise_count(rows & reports) & 1
        half = 1 << (self.bits - 1)
        favored = float(self.true_support_probability / half)
        return Channel(np.where(odd, float((1 - self.true_support_probability) / half), favored))

    @property
    def possible_report_count(self) -> int:
        """The number of different reports."""
        return 1 << self.bits

    def perturb(self, values: ArrayLike, randomness: Source | None = None) -> NDArray[Any]:
        """Return numbers below 2^bits, of the smallest unsigned type, shape [n]."""
        truth, randomness = check_categories("values", values, self.k), randomness or Stream()
        out = np.empty(len(truth), dtype=smallest_type(self.possible_report_count))
        for start in range(0, len(truth), PEOPLE_AT_ONCE):
            words = randomness.random_words(len(truth[start : start + PEOPLE_AT_ONCE]))
            for offset in range(0, len(words), HADAMARD_PEOPLE_AT_ONCE):
                part = words[offset : offset + HADAMARD_PEOPLE_AT_ONCE]
                place = slice(start + offset, start + offset + len(part))
                out[place] = self._randomize_block(truth[place], part)
        return out

    def _randomize_block(self, values: Integers, words: Words) -> Words:
        rest = np.uint64(64 - self.bits)
        uniform, low_bits = words >> rest, words & np.uint64((1 << (64 - self.bits)) - 1)
        row = values.astype(np.uint64) + np.uint64(1)
        odd = np.bitwise_count(row & uniform) & np.uint8(1)
        is_wrong = odd == (low_bits < np.uint64(self.favor))
        lowest = row & (~row + np.uint64(1))
        return np.asarray(uniform ^ np.where(is_wrong, lowest, np.uint64(0)))

    def tally_of_reports(self, people: int, counts: NDArray[np.int64]) -> Tally:
        """Return the tally with C_v = (n + Σ_y N_y (−1)^{|(v+1) & y|}) / 2, from the counts N_y of reports y."""
        return Tally(people, people, (people + hadamard_transform(counts)[1 : self.k + 1]) // 2)


def hadamard_transform(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return Σ_y counts[y] (−1)^{|v & y|} for every v, shape [2^bits]: the Walsh–Hadamard transform, in integers.

    >>> hadamard_transform(np.array([3, 1, 0, 0])).tolist()
    [4, 2, 4, 2]
    """
    out, half = counts.astype(np.int64), 1
    while half < len(counts):
        pairs = out.reshape(-1, 2, half)
        out = np.stack([pairs[:, 0] + pairs[:, 1], pairs[:, 0] - pairs[:, 1]], axis=1)
        half *= 2
    return out.reshape(-1)


def hadamard(epsilon: float, k: int) -> Hadamard:
    """Return Hadamard response (Acharya, Sun, Zhang 2019, the high-privacy case), ε-LDP.

    Variance ((e^ε + 1) / (e^ε − 1))² a person: cosh²(ε/2) times the variance of ``local.unary_encoding``, 2 % more at ε
    = 0.3 and 27 % more at ε = 1, where ``local.hashing`` is better and a little slower. A large ε is limited to what 64
    − log₂ k binary digits can represent. Raises ``InputError`` unless ε > 0 is finite and 2 ≤ k ≤ 2²⁴.

    >>> mechanism = hadamard(1.0, 1000)
    >>> mechanism.bits, round(float(mechanism.true_support_probability), 9)
    (10, 0.731058579)
    """
    epsilon = checked_epsilon(epsilon)
    size = check_domain_size(
        k, MOST_HADAMARD_CATEGORIES, "hash the categories into fewer, or find the frequent ones first"
    )
    bits = size.bit_length()
    return Hadamard(epsilon, size, bits, favored_weight(epsilon, Fraction(1), 1 << (64 - bits)))
