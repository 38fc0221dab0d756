"""Heavy hitters of a large domain: frequent prefixes first, then the frequent ones among what continues them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tightrope.errors import InputError
from tightrope.local.mechanisms.local_hashing import Hashing, LinearHash, digits_for, hashing, hashing_with_digits
from tightrope.local.parts.estimates import Shares, Tally, tail_chance
from tightrope.local.parts.kernels import count_occurrences, finite_field
from tightrope.local.parts.losses import checked_epsilon
from tightrope.local.parts.values import Integers, check_categories, report_rows
from tightrope.numerics.arrays import Floats
from tightrope.numerics.checks import check_integer, inner_probability
from tightrope.randomness.bits import Source, Stream
from tightrope.randomness.integers import uniform_below

if TYPE_CHECKING:
    from tightrope.accounting.privacy_loss import PrivacyLoss
    from tightrope.documents import Guarantee

MOST_BITS = 48
ALONE = 20
"""Bits of values that are all counted together: everybody tells of the whole value."""
TOGETHER = 1 << 25
"""Hash functions times answers whose reports are counted in one table: a quarter of a gigabyte of it."""
GROWTH = 1 << 15
"""Continuations of one prefix that are counted together."""
KEPT_PREFIXES = 32
"""Prefixes that are kept at each level but the last."""
FREQUENT_DEVIATIONS = 4.0
"""Standard deviations above which a prefix is frequent: more must not let all that begins so crowd out the others."""
Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """Frequent ``values``, the most frequent first, with their ``shares``; the intervals hold for all of ``examined``.

    So they hold for those that are shown because they looked frequent, too. They speak of the population that people
    come from: there the levels' people are independent. What is frequent may still be missing:
    a value is lost where one of its prefixes looked rare.
    """

    values: Numbers
    shares: Shares
    examined: int


@dataclass(frozen=True, slots=True)
class PrefixTree:
    """Values below 2^``size`` in base g, m digits; ``levels`` ask for the first d₁ < d₂ < … = m of them by hashing.

    A report is a row: the level, which is uniform for every value, and that level's report.
    """

    epsilon: float
    size: int
    levels: tuple[Hashing, ...]

    @property
    def loss(self) -> PrivacyLoss:
        """One report by hashing: two values differ at the last level at least."""
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
        """Rows (level, report), shape [n, 2]; raises ``InputError`` unless values are whole, in 0..2^size − 1."""
        truth, randomness = check_categories("values", values, 1 << self.size).astype(np.int64), randomness or Stream()
        out = np.empty((len(truth), 2), dtype=np.uint64)
        last = len(self.levels) - 1
        out[:, 0] = np.minimum(uniform_below(len(self.levels) + 1, len(truth), randomness), last)
        for level, oracle in enumerate(self.levels):
            chosen = out[:, 0] == level
            out[chosen, 1] = oracle.perturb(truth[chosen] // self._continuation_count(level), randomness)
        return out

    def _continuation_count(self, level: int) -> int:
        """The number of values that continue a prefix of this level."""
        return int(self.hash_base ** (self.levels[-1].linear.length - self.levels[level].linear.length))

    def find(self, reports: ArrayLike, *, most: int = 32, confidence: float = 0.95) -> Found:
        """At most ``most`` values, the most frequent first.

        Search levels keep ``KEPT_PREFIXES`` prefixes each: those whose own share and whose ancestors' are largest, all
        in standard deviations and none counted above ``FREQUENT_DEVIATIONS`` of them. The people of the last level had
        no part in that; of the candidates that are left those are found whose interval lies above 0 when the intervals
        of all candidates hold together. So **the probability that any returned value is absent from the
        population is at most (1 − confidence) / 2**, for every population. Raises ``InputError`` for reports of
        another shape, or where a level has none.
        """
        rows, limit = self._report_rows(reports), check_integer("most", most)
        inner_probability("confidence", confidence)
        kept, score = np.zeros(1, dtype=np.int64), np.zeros(1)
        for level in range(len(self.levels) - 1):
            kept, score = self._search_level(level, _answers_at_level(rows, level), kept, score)
        # The part of all errors that the candidates of each prefix may make: more where earlier people spoke for it.
        # By the likelihood of `FREQUENT_DEVIATIONS` deviations against none. For any parts, they add up to
        # 1, and the people of the next level are independent of them.
        trust_likely = np.exp(FREQUENT_DEVIATIONS * (score - score.max()))
        return self._frequent_values(
            _answers_at_level(rows, len(self.levels) - 1),
            kept,
            np.asarray(trust_likely / trust_likely.sum()),
            limit,
            confidence,
        )

    def _search_level(self, level: int, heard: Numbers, prefixes: Numbers, score: Floats) -> tuple[Numbers, Floats]:
        """The continuations that look most frequent, and their scores."""
        candidates, counts = self._candidate_supports(level, heard, prefixes)
        other, people = float(self.levels[level].false_support_probability), len(heard)
        deviations = (counts - people * other) / np.sqrt(people * other * (1 - other))
        total = np.repeat(score, len(candidates) // len(prefixes)) + np.minimum(deviations, FREQUENT_DEVIATIONS)
        real = np.flatnonzero(self._is_real(level, candidates))
        best = real[np.lexsort((-counts[real], -total[real]))[:KEPT_PREFIXES]]
        return candidates[best], total[best]

    def _is_real(self, level: int, candidates: Numbers) -> NDArray[np.bool_]:
        """Return whether numbers below 2^size have this prefix."""
        return np.asarray(candidates < -(-(1 << self.size) // self._continuation_count(level)))

    def _frequent_values(
        self, heard: Numbers, prefixes: Numbers, trust: Floats, limit: int, confidence: float
    ) -> Found:
        """The frequent ones among the values that continue the prefixes, each of which has a part of the errors."""
        last = len(self.levels) - 1
        candidates, counts = self._candidate_supports(last, heard, prefixes)
        oracle = self.levels[last]
        is_real = self._is_real(last, candidates)
        own = is_real.reshape(len(prefixes), -1).sum(axis=1)
        of = np.repeat(np.maximum(own, 1) / trust, len(candidates) // len(prefixes))
        likely = np.flatnonzero(is_real & (counts > len(heard) * float(oracle.false_support_probability)))
        missed = (1 - confidence) / (2 * of[likely])
        real = likely[tail_chance(counts[likely], len(heard), float(oracle.false_support_probability)) < missed]
        best = real[np.argsort(-counts[real], kind="stable")[:limit]]
        lower, upper = oracle.exact_ends(Tally(len(heard), len(heard), counts[best]), confidence, of[best])
        value = (counts[best] / len(heard) - float(oracle.false_support_probability)) / float(
            oracle.true_support_probability - oracle.false_support_probability
        )
        told = Shares(value, lower, upper, len(heard), confidence, simultaneous=True)
        return Found(candidates[best], told, int(np.count_nonzero(is_real)))

    def _candidate_supports(self, level: int, heard: Numbers, prefixes: Numbers) -> tuple[Numbers, Numbers]:
        """All continuations of the prefixes to this level, and how many reports support each, shape [c] each."""
        linear = self.levels[level].linear
        before = self.levels[level - 1].linear.length if level else 0
        tail = LinearHash(self.hash_base, linear.length - before)
        seeds, answers = np.divmod(heard, self.hash_base)
        first, last = np.divmod(seeds, tail.seed_count)
        head = LinearHash(self.hash_base, before)
        counts = [
            _continuation_supports(tail, last, answers, head.hash_values(first, np.array(prefix)))
            for prefix in prefixes
        ]
        candidates = prefixes[:, None] * tail.seed_count + np.arange(tail.seed_count)
        return candidates.ravel(), np.concatenate([np.zeros(0, dtype=np.int64), *counts])

    def _report_rows(self, reports: ArrayLike) -> NDArray[np.uint64]:
        rows = report_rows(reports, 2)
        level = check_categories("levels", rows[:, 0], len(self.levels))
        for number, oracle in enumerate(self.levels):
            if not len(check_categories("reports", rows[level == number, 1], oracle.report_count)):
                raise InputError("reports of a level", 0, "at least 1", "ask more people")
        return rows


def _answers_at_level(rows: NDArray[np.uint64], level: int) -> Numbers:
    return np.asarray(rows[rows[:, 0] == level, 1], dtype=np.int64)


def _continuation_supports(tail: LinearHash, last: Integers, answers: Numbers, head: Integers) -> Numbers:
    """Supports of all continuations of one prefix: a value's hash is the sum of the hashes of head and tail."""
    # Differences in the field, shape [order, order]: at (a, b) the c with b + c = a.
    sums = finite_field(tail.order).sums.astype(np.int64)
    out = np.empty_like(sums)
    numbers = np.arange(tail.order)
    out[sums, numbers[:, None]] = numbers
    wanted = out[answers, head]
    histogram = count_occurrences(last * tail.order + wanted, tail.seed_count * tail.order)
    return tail.support_counts(histogram.reshape(tail.seed_count, tail.order))


def heavy_hitters(epsilon: float, bits: int, *, hashes: int | None = None) -> PrefixTree:
    """Frequent values among all numbers of this many bits, ε-LDP in one report a person.

    Up to 20 bits everybody reports the value by local hashing, where a table of 2²⁵ numbers holds the counts of all
    hash functions and answers (of 20 bits at ε up to about 2). Else each person so reports a random prefix of it
    (Wang, Li, Jha 2021, prefix extending); prefixes grow by some 15 bits a level, and the last one has twice the people
    of another. Fewer bits find rarer values: ``spelling`` makes short numbers of texts.
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
    order = hashing(epsilon, min(1 << size, GROWTH), hashes=hashes).linear.order
    length = digits_for(order, 1 << size)
    alone = size <= ALONE and order ** (length + 1) <= TOGETHER
    parts = 1 if alone else -(-length // max(1, digits_for(order, GROWTH + 1) - 1))
    grown = [length * part // parts for part in range(1, parts + 1)]
    return PrefixTree(epsilon, size, tuple(hashing_with_digits(epsilon, order, digits) for digits in grown))


# Short texts as whole numbers with as few bits as their alphabet allows: fewer candidates, so rarer ones are found.

LATIN = "abcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True, slots=True)
class Spelling:
    """The first ``length`` letters of a text, in base len(alphabet) + 1, small letters alone; digit 0 is anything else
    and the end.
    """

    length: int
    alphabet: str

    @property
    def code_bits(self) -> int:
        """The number of bits for ``heavy_hitters``."""
        return int(((len(self.alphabet) + 1) ** self.length - 1).bit_length())

    def encode_texts(self, texts: Iterable[str]) -> NDArray[np.int64]:
        """A number for each text, shape [n].

        >>> spelling(3).decode_texts(spelling(3).encode_texts(["Ohio", "to", "5x"]))
        ['ohi', 'to', ' x']
        """
        places = {letter: number for number, letter in enumerate(self.alphabet, start=1)}
        return np.array([self._encode_text(text, places) for text in texts], dtype=np.int64)

    def _encode_text(self, text: str, places: dict[str, int]) -> int:
        number = 0
        for letter in text.lower()[: self.length].ljust(self.length):
            number = number * (len(self.alphabet) + 1) + places.get(letter, 0)
        return number

    def decode_texts(self, numbers: Iterable[int]) -> list[str]:
        """The beginnings that the numbers stand for; characters outside the alphabet become spaces."""
        base, letters = len(self.alphabet) + 1, " " + self.alphabet
        places = [base**place for place in range(self.length - 1, -1, -1)]
        return ["".join(letters[int(number) // place % base] for place in places).rstrip() for number in numbers]


def spelling(length: int = 6, *, alphabet: str = LATIN) -> Spelling:
    """Encoding of texts as numbers for ``heavy_hitters``: six Latin letters are 29 bits, where their bytes are 48.

    Raises ``InputError`` unless the alphabet has letters, small ones, each once, and the numbers have at most 48 bits.

    >>> spelling(6).code_bits
    29
    """
    size = check_integer("length", length)
    if not isinstance(alphabet, str) or not 0 < len(alphabet) == len(set(alphabet.lower()) & set(alphabet)):
        raise InputError("alphabet", alphabet, "different letters, small ones", "capital letters count as small ones")
    found = Spelling(size, alphabet)
    if size > MOST_BITS or not found.code_bits <= MOST_BITS:
        raise InputError("length", length, f"short enough for {MOST_BITS} bits", "take fewer letters")
    return found
