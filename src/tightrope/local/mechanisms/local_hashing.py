"""Local hashing: a report is a random hash function and the randomized hash of the value under it.

The hash functions are the linear ones over a field of g elements: a value is written with m digits in base g, a seed s
has m digits too, and h_s(v) = Σ s_j v_j. For v ≠ w and a uniform seed, h_s(v) − h_s(w) is uniform on the field: two
values collide with probability 1/g *exactly*, so hash collisions cause no bias. The hash is computed from tables of
sums and products, so it is the same on every machine. The supports of all values are counted together by m small
transforms, instead of hashing every value for every report. (Projective geometry response is a relative: Feldman,
Nelson, Nguyen, Talwar 2022.)
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tightrope.channels import Channel
from tightrope.errors import InputError
from tightrope.local.mechanisms.oracle import FrequencyOracle
from tightrope.local.mechanisms.response import Response
from tightrope.local.parts.estimates import Tally
from tightrope.local.parts.kernels import LARGEST_ORDER, PEOPLE_AT_ONCE, finite_field, finite_field_orders
from tightrope.local.parts.losses import check_channel_size, checked_epsilon, other_outcome_weight
from tightrope.local.parts.values import Integers, check_categories, check_domain_size, smallest_type
from tightrope.numerics.checks import check_integer
from tightrope.randomness.bits import Source, Stream
from tightrope.randomness.integers import uniform_below

MOST_HASHED_CATEGORIES = 1 << 22
INT32_LIMIT = 1 << 31
MOST_WORK = 1 << 32
"""Additions that counting the supports of all values may take: some seconds."""


@dataclass(frozen=True, slots=True)
class LinearHash:
    """h_s(v) = Σ s_j v_j over the field with ``order`` elements, for values and seeds of ``length`` digits."""

    order: int
    length: int

    @property
    def seed_count(self) -> int:
        """The number of seeds."""
        return int(self.order**self.length)

    def hash_values(self, seeds: Integers, values: Integers) -> NDArray[np.int64]:
        """Return h_s(v) for each pair, shape [n].

        >>> LinearHash(2, 3).hash_values(np.array([0b011, 0b101]), np.array([0b111, 0b111])).tolist()
        [0, 0]
        """
        table, out = finite_field(self.order), np.zeros(np.broadcast(seeds, values).shape, dtype=np.uint16)
        seeds, values = seeds.astype(np.uint64), values.astype(np.uint64)
        base = np.uint64(self.order)
        for _ in range(self.length):
            out = table.sums[out, table.products[seeds % base, values % base]]
            seeds, values = seeds // base, values // base
        return out.astype(np.int64)

    def support_counts(self, histogram: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return C_v = Σ_s N[s, h_s(v)] for every v, shape [seeds], from the counts N[s, y], shape [seeds, order].

        Digit by digit: T_j[v_j, rest, y] = Σ_s T_{j−1}[s, rest, y + s v_j], and C_v = T_m[v, 0].
        """
        table = finite_field(self.order)
        dtype = np.int32 if histogram.sum() < INT32_LIMIT else np.int64  # no sum exceeds the sum of all
        done: Integers = np.ascontiguousarray(histogram.T, dtype=dtype)  # answers first: then permuting them moves rows
        for place in range(self.length):
            block: Integers = done.reshape(self.order, self.order ** (self.length - place - 1), self.order, -1)
            sums = []
            for digit in range(self.order):
                total = np.zeros((*block.shape[:2], block.shape[3]), dtype=block.dtype)
                for s, shifted_answers in enumerate(table.sums[table.products[:, digit]]):
                    total += block[:, :, s][shifted_answers]
                sums.append(total)
            done = np.stack(sums, axis=2)
        return np.asarray(done.reshape(self.order, self.seed_count)[0], dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Hashing(FrequencyOracle):
    """A uniform seed s and randomized response on h_s(value), as the one number s · g + y."""

    epsilon: float
    k: int
    linear: LinearHash
    response: Response

    @property
    def true_support_probability(self) -> Fraction:
        return self.response.true_support_probability

    @property
    def false_support_probability(self) -> Fraction:
        """1/g exactly: the hash of another value is uniform, given the report."""
        return Fraction(1, self.linear.order)

    @property
    def report_change_probabilities(self) -> tuple[Fraction, Fraction]:
        """The change of two values: hashes differ with probability 1 − 1/g; else reports are equally likely."""
        apart = 1 - Fraction(1, self.linear.order)
        return apart * self.response.true_support_probability, apart * self.response.false_support_probability

    @property
    def possible_report_count(self) -> int:
        """The number of different reports."""
        return self.linear.seed_count * self.linear.order

    @property
    def channel(self) -> Channel:
        """The channel to the reports s · g + y of a seed s and an answer y."""
        seeds, order = self.linear.seed_count, self.linear.order
        check_channel_size(self.k, seeds * order)
        hashes = self.linear.hash_values(np.arange(seeds), np.arange(self.k)[:, None])
        keep = float(self.response.true_support_probability / seeds)
        other = float(self.response.false_support_probability / seeds)
        matrix = np.where(hashes[:, :, None] == np.arange(order), keep, other)
        return Channel(matrix.reshape(self.k, seeds * order))

    def perturb(self, values: ArrayLike, randomness: Source | None = None) -> NDArray[Any]:
        """Return numbers below ``possible_report_count``, of the smallest unsigned type, shape [n]."""
        truth, randomness = check_categories("values", values, self.k), randomness or Stream()
        out = np.empty(len(truth), dtype=smallest_type(self.possible_report_count))
        for start in range(0, len(truth), PEOPLE_AT_ONCE):
            block = truth[start : start + PEOPLE_AT_ONCE]
            seeds = uniform_below(self.linear.seed_count, len(block), randomness)
            answers = self.response.perturb(self.linear.hash_values(seeds, block), randomness)
            out[start : start + PEOPLE_AT_ONCE] = seeds * self.linear.order + answers
        return out

    def tally_of_reports(self, people: int, counts: NDArray[np.int64]) -> Tally:
        """Return the tally of the supports of all values, from the counts of reports."""
        histogram = counts.reshape(self.linear.seed_count, self.linear.order)
        return Tally(people, people, self.linear.support_counts(histogram)[: self.k])


def hashing(epsilon: float, k: int, *, hashes: int | None = None) -> Hashing:
    """Return optimized local hashing (Wang et al. 2017) with exact linear hashes, ε-LDP.

    ``hashes`` g is a prime or a power of two up to 256; by default the one with the least variance, near e^ε + 1,
    among those that can be counted in some seconds. A report has log₂ k + 2 log₂ g bits at most. ε above 40 is taken
    as 40. Raises ``InputError`` unless ε > 0 is finite, 2 ≤ k ≤ 2²² and there is a field with g elements.

    >>> mechanism = hashing(1.0, 1000)
    >>> mechanism.linear, mechanism.perturb([7, 7, 7]).dtype
    (LinearHash(order=4, length=5), dtype('uint16'))
    """
    epsilon = checked_epsilon(epsilon)
    size = check_domain_size(k, MOST_HASHED_CATEGORIES, "find the frequent values first: local.heavy_hitters")
    if hashes is not None:
        if check_integer("hashes", hashes, at_least=2) not in finite_field_orders():
            raise InputError("hashes", hashes, f"a prime or a power of two up to {LARGEST_ORDER}", "leave it out")
        if not _collection_work(hashes, size) <= MOST_WORK:
            raise InputError("hashes", hashes, f"small enough that {size} values can be counted", "leave it out")
        return hashing_with_digits(epsilon, hashes, digits_for_values(hashes, size), size)
    orders = [order for order in finite_field_orders() if _collection_work(order, size) <= MOST_WORK]
    return min(
        (hashing_with_digits(epsilon, order, digits_for_values(order, size), size) for order in orders),
        key=lambda candidate: candidate.report_variances[0],
    )


def hashing_with_digits(epsilon: float, order: int, length: int, k: int | None = None) -> Hashing:
    """Return hashing for the first k (default: all) numbers of this many digits in base ``order``."""
    response = Response(epsilon, order, other_outcome_weight(epsilon, order))
    return Hashing(epsilon, order**length if k is None else k, LinearHash(order, length), response)


def digits_for_values(order: int, k: int) -> int:
    """Return the smallest m with order^m ≥ k."""
    length, size = 1, order
    while size < k:
        length, size = length + 1, size * order
    return length


def _collection_work(order: int, k: int) -> int:
    """Return the number of additions that count the supports of k values."""
    length = digits_for_values(order, k)
    return int(length * order ** (length + 2))
