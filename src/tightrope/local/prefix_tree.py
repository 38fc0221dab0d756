"""Heavy hitters of a large domain: frequent prefixes are found first, then the frequent values that continue them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tightrope.errors import InputError
from tightrope.local.mechanisms.local_hashing import (
    Hashing,
    LinearHash,
    digits_for_values,
    hashing,
    hashing_with_digits,
)
from tightrope.local.parts.estimates import Shares, Tally, binomial_tail_chance
from tightrope.local.parts.kernels import finite_field
from tightrope.local.parts.losses import checked_epsilon
from tightrope.local.parts.values import check_categories, check_report_array
from tightrope.numerics.arrays import Floats
from tightrope.numerics.checks import check_inner_probability, check_integer
from tightrope.randomness.bits import Source, Stream
from tightrope.randomness.integers import uniform_below

if TYPE_CHECKING:
    from tightrope.accounting.privacy_loss import PrivacyLoss
    from tightrope.documents import Guarantee

MOST_BITS = 48
MAX_SINGLE_LEVEL_BITS = 20
"""Up to this many bits, everyone reports the whole value and all values are counted."""
MAX_TABLE_NUMBERS = 1 << 25
"""Largest number of (hash function, answer) pairs in one table of counts: a quarter of a gigabyte."""
MAX_CONTINUATIONS = 1 << 15
"""Largest number of continuations of one prefix at the next level."""
KEPT_PREFIXES = 32
"""Prefixes that are kept at each level but the last."""
FREQUENT_DEVIATIONS = 4.0
"""Largest score of a prefix at one level in standard deviations, so that one frequent prefix displaces no others."""
Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class FrequentValues:
    """Frequent ``values``, the most frequent first, with their ``shares``; ``examined`` is the number of candidates.

    The intervals hold together for all candidates, so they also hold for those that are selected as frequent. They are
    for the population that people are drawn from, since then the people of different levels are independent. A frequent
    value can be missing: if the estimate for one of its prefixes is too low, it is not examined.
    """

    values: Numbers
    shares: Shares
    examined: int


@dataclass(frozen=True, slots=True)
class PrefixTree:
    """Values below 2^``size`` as m digits in base g; ``levels`` report the first d₁ < d₂ < … = m of them by hashing.

    A report is a row: the level, which is uniform for every value, and that level's report.
    """

    epsilon: float
    size: int
    levels: tuple[Hashing, ...]

    @property
    def loss(self) -> PrivacyLoss:
        """The loss of one report by hashing; two values differ at least at the last level."""
        return self.levels[-1].loss

    @property
    def guarantee(self) -> Guarantee:
        """The realized (ε, 0, η), rounded up."""
        return self.levels[-1].guarantee

    @property
    def hash_base(self) -> int:
        """The base g."""
        return self.levels[0].linear.order

    def perturb(self, values: ArrayLike, randomness: Source | None = None) -> NDArray[np.uint64]:
        """Return rows (level, report), shape [n, 2]; ``InputError`` unless values are integers in 0..2^size − 1."""
        truth, randomness = check_categories("values", values, 1 << self.size).astype(np.int64), randomness or Stream()
        out = np.empty((len(truth), 2), dtype=np.uint64)
        last = len(self.levels) - 1
        out[:, 0] = np.minimum(uniform_below(len(self.levels) + 1, len(truth), randomness), last)
        for level, oracle in enumerate(self.levels):
            chosen = out[:, 0] == level
            out[chosen, 1] = oracle.perturb(truth[chosen] // self._continuation_count(level), randomness)
        return out

    def _continuation_count(self, level: int) -> int:
        """Return the number of values that continue a prefix of this level."""
        return int(self.hash_base ** (self.levels[-1].linear.length - self.levels[level].linear.length))

    def find(self, reports: ArrayLike, *, most: int = 32, confidence: float = 0.95) -> FrequentValues:
        """Return at most ``most`` values, the most frequent first.

        Each level but the last keeps ``KEPT_PREFIXES`` prefixes: those with the largest sum of the shares of the prefix
        and its ancestors, in standard deviations, each at most ``FREQUENT_DEVIATIONS``. The last level's reports are
        independent of this selection; a candidate is returned if its interval is above 0, where the intervals of all
        candidates hold together. So **the probability that any returned value is absent from the
        population is at most (1 − confidence) / 2**, for every population. Raises ``InputError`` for reports of
        another shape, or if a level has none.
        """
        rows, limit = self._report_rows(reports), check_integer("most", most)
        check_inner_probability("confidence", confidence)
        prefixes, score = np.zeros(1, dtype=np.int64), np.zeros(1)
        last = len(self.levels) - 1
        for level in range(last):
            prefixes, score = self._search_level(level, _reports_at_level(rows, level), prefixes, score)
        # The part of the error probability for the candidates of each prefix, in proportion to the likelihood ratio of
        # `FREQUENT_DEVIATIONS` deviations to none. Any parts that add up to 1 are valid, since the reports of the last
        # level are independent of them.
        likelihood = np.exp(FREQUENT_DEVIATIONS * (score - score.max()))
        error_parts = np.asarray(likelihood / likelihood.sum())
        return self._frequent_values(_reports_at_level(rows, last), prefixes, error_parts, limit, confidence)

    def _search_level(self, level: int, reports: Numbers, prefixes: Numbers, score: Floats) -> tuple[Numbers, Floats]:
        """Return the continuations of the prefixes with the largest scores, and their scores."""
        candidates, counts = self._candidate_supports(level, reports, prefixes)
        other, people = float(self.levels[level].false_support_probability), len(reports)
        deviations = (counts - people * other) / np.sqrt(people * other * (1 - other))
        total = np.repeat(score, len(candidates) // len(prefixes)) + np.minimum(deviations, FREQUENT_DEVIATIONS)
        valid = np.flatnonzero(self._is_valid(level, candidates))
        best = valid[np.lexsort((-counts[valid], -total[valid]))[:KEPT_PREFIXES]]
        return candidates[best], total[best]

    def _is_valid(self, level: int, candidates: Numbers) -> NDArray[np.bool_]:
        """Return whether numbers below 2^size have this prefix."""
        return np.asarray(candidates < -(-(1 << self.size) // self._continuation_count(level)))

    def _frequent_values(
        self, reports: Numbers, prefixes: Numbers, error_parts: Floats, limit: int, confidence: float
    ) -> FrequentValues:
        """Return the frequent values that continue the prefixes, each of which has a part of the error probability."""
        last = len(self.levels) - 1
        oracle, people = self.levels[last], len(reports)
        candidates, counts = self._candidate_supports(last, reports, prefixes)
        is_valid = self._is_valid(last, candidates)
        candidates_per_prefix = is_valid.reshape(len(prefixes), -1).sum(axis=1)
        # Each candidate may have 1 / divisor of the error probability.
        divisor = np.repeat(np.maximum(candidates_per_prefix, 1) / error_parts, len(candidates) // len(prefixes))
        other = float(oracle.false_support_probability)
        likely = np.flatnonzero(is_valid & (counts > people * other))
        allowed_error = (1 - confidence) / (2 * divisor[likely])
        frequent = likely[binomial_tail_chance(counts[likely], people, other) < allowed_error]
        best = frequent[np.argsort(-counts[frequent], kind="stable")[:limit]]
        lower, upper = oracle.exact_ends(Tally(people, people, counts[best]), confidence, divisor[best])
        slope = float(oracle.true_support_probability - oracle.false_support_probability)
        shares = Shares((counts[best] / people - other) / slope, lower, upper, people, confidence, simultaneous=True)
        return FrequentValues(candidates[best], shares, int(np.count_nonzero(is_valid)))

    def _candidate_supports(self, level: int, reports: Numbers, prefixes: Numbers) -> tuple[Numbers, Numbers]:
        """Return all continuations of the prefixes to this level, and how many reports support each, shape [c] each.

        A value's hash is the sum of the hashes of its prefix (head) and of its continuation (tail).
        """
        linear = self.levels[level].linear
        prefix_length = self.levels[level - 1].linear.length if level else 0
        head = LinearHash(self.hash_base, prefix_length)
        tail = LinearHash(self.hash_base, linear.length - prefix_length)
        seeds, answers = np.divmod(reports, self.hash_base)
        head_seeds, tail_seeds = np.divmod(seeds, tail.seed_count)
        # Differences in the field, shape [order, order]: at (a, b) the c with b + c = a.
        sums = finite_field(tail.order).sums.astype(np.int64)
        differences, elements = np.empty_like(sums), np.arange(tail.order)
        differences[sums, elements[:, None]] = elements
        counts = [np.zeros(0, dtype=np.int64)]
        for prefix in prefixes:
            tail_answers = differences[answers, head.hash_values(head_seeds, np.array(prefix))]
            counts.append(tail.support_counts(tail_seeds * tail.order + tail_answers))
        candidates = prefixes[:, None] * tail.seed_count + np.arange(tail.seed_count)
        return candidates.ravel(), np.concatenate(counts)

    def _report_rows(self, reports: ArrayLike) -> NDArray[np.uint64]:
        rows = check_report_array(reports, 2)
        level = check_categories("levels", rows[:, 0], len(self.levels))
        for number, oracle in enumerate(self.levels):
            if not len(check_categories("reports", rows[level == number, 1], oracle.possible_report_count)):
                raise InputError("reports of a level", 0, "at least 1", "ask more people")
        return rows


def _reports_at_level(rows: NDArray[np.uint64], level: int) -> Numbers:
    return np.asarray(rows[rows[:, 0] == level, 1], dtype=np.int64)


def heavy_hitters(epsilon: float, bits: int, *, hashes: int | None = None) -> PrefixTree:
    """Return a mechanism for the frequent values among all numbers of this many bits, ε-LDP with one report a person.

    Up to 20 bits everyone reports the whole value by local hashing, if the counts of all hash functions and answers fit
    in a table of 2²⁵ numbers (for 20 bits: up to ε of about 2). Otherwise each person reports the prefix of one random
    length (Wang, Li, Jha 2021, prefix extending); each level has about 15 bits more than the previous one, and the last
    one has twice as many people as each other. With fewer bits rarer values are found: ``spelling`` encodes texts as
    short numbers.
    Raises ``InputError`` unless ε > 0 is finite, 1 ≤ bits ≤ 48, and ``hashes`` is as for ``hashing``.

    >>> mechanism = heavy_hitters(4.0, 20)
    >>> import numpy as np
    >>> people = np.where(np.arange(20_000) % 2, 123_456, np.arange(20_000))
    >>> mechanism.find(mechanism.perturb(people)).values[0]
    np.int64(123456)
    """
    epsilon, size = checked_epsilon(epsilon), check_integer("bits", bits)
    if not size <= MOST_BITS:
        raise InputError("bits", bits, f"at most {MOST_BITS}", "report a hash of the value, and look the value up")
    order = hashing(epsilon, min(1 << size, MAX_CONTINUATIONS), hashes=hashes).linear.order
    length = digits_for_values(order, 1 << size)
    has_one_level = size <= MAX_SINGLE_LEVEL_BITS and order ** (length + 1) <= MAX_TABLE_NUMBERS
    level_count = 1 if has_one_level else -(-length // max(1, digits_for_values(order, MAX_CONTINUATIONS + 1) - 1))
    lengths = [length * level // level_count for level in range(1, level_count + 1)]
    return PrefixTree(epsilon, size, tuple(hashing_with_digits(epsilon, order, digits) for digits in lengths))


LATIN = "abcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True, slots=True)
class Spelling:
    """An encoding of the first ``length`` characters of a text, in lower case, in base len(alphabet) + 1.

    Digit 0 stands for the end of the text and for every character outside the alphabet.
    """

    length: int
    alphabet: str

    @property
    def code_bits(self) -> int:
        """The number of bits, for ``heavy_hitters``."""
        return int(((len(self.alphabet) + 1) ** self.length - 1).bit_length())

    def encode_texts(self, texts: Iterable[str]) -> NDArray[np.int64]:
        """Return a number for each text, shape [n].

        >>> spelling(3).decode_texts(spelling(3).encode_texts(["Ohio", "to", "5x"]))
        ['ohi', 'to', ' x']
        """
        digits = {character: digit for digit, character in enumerate(self.alphabet, start=1)}
        numbers = []
        for text in texts:
            number = 0
            for character in text.lower()[: self.length].ljust(self.length):
                number = number * (len(self.alphabet) + 1) + digits.get(character, 0)
            numbers.append(number)
        return np.array(numbers, dtype=np.int64)

    def decode_texts(self, numbers: Iterable[int]) -> list[str]:
        """Return the first characters of the encoded texts; characters outside the alphabet become spaces."""
        base, characters = len(self.alphabet) + 1, " " + self.alphabet
        powers = [base**exponent for exponent in range(self.length - 1, -1, -1)]
        return ["".join(characters[int(number) // power % base] for power in powers).rstrip() for number in numbers]


def spelling(length: int = 6, *, alphabet: str = LATIN) -> Spelling:
    """Return an encoding of texts as numbers for ``heavy_hitters``: 29 bits for six Latin letters instead of 48.

    Raises ``InputError`` unless the alphabet has different lowercase characters and the numbers have at most 48 bits.

    >>> spelling(6).code_bits
    29
    """
    size = check_integer("length", length)
    if not isinstance(alphabet, str) or not 0 < len(alphabet) == len(set(alphabet.lower()) & set(alphabet)):
        raise InputError("alphabet", alphabet, "different lowercase characters", "texts are converted to lower case")
    encoding = Spelling(size, alphabet)
    if size > MOST_BITS or not encoding.code_bits <= MOST_BITS:
        raise InputError("length", length, f"short enough for {MOST_BITS} bits", "use fewer characters")
    return encoding
