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
REPORTS_AT_ONCE = 1 << 18
"""Reports whose seeds are scaled at once."""
MOST_WORK = 1 << 32
"""Largest m g^(m + 2), which limits g. It is g times the number of additions that count the supports of all values."""


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

    def support_counts(self, reports: Integers, times: Integers | None = None) -> NDArray[np.int64]:
        """Return how many reports s · g + y support each v, that is h_s(v) = y, shape [seeds].

        Report i counts ``times[i]`` times, by default once. The reports (s, y) and (c s, c y) support the same values,
        so each seed is divided by its last digit that is not 0, which removes a factor g of the work: if this is s_j,
        the reports become counts N[y, s] of answers and of seeds of j digits, and C_v = Σ_s N[v_j + h_s(v), s].
        The sum is taken digit by digit: T_i[y, rest, v_i] = Σ_s T_{i−1}[y + s v_i, rest, s].

        >>> LinearHash(2, 2).support_counts(np.array([0b001, 0b011, 0b011])).tolist()
        [0, 2, 0, 2]
        """
        counts, all_values = self._scaled_histogram(reports, times)
        out, start = np.full(self.seed_count, all_values), 0
        for place in range(self.length):
            size = self.order ** (place + 1)
            part, start = counts[start : start + size], start + size
            if np.any(part):
                rows = out.reshape(-1, size)
                rows += self._sum_over_seeds(part, place)
        return out

    def _scaled_histogram(self, reports: Integers, times: Integers | None) -> tuple[NDArray[np.int64], int]:
        """Return the counts N[y, s] for the last digits j = 0, 1, … one after the other, and those of the seed 0.

        A seed 0 supports all values with the answer 0, and no value with another answer.
        """
        order, table = self.order, finite_field(self.order)
        inverses = np.argmax(table.products == 1, axis=1).astype(np.uint16)
        size = sum(order ** (place + 1) for place in range(self.length))
        counts = np.zeros(size + 2, dtype=np.int64)
        for first in range(0, len(reports), REPORTS_AT_ONCE):
            seeds, answers = np.divmod(reports[first : first + REPORTS_AT_ONCE].astype(np.int64), order)
            digits = [(seeds // order**place % order).astype(np.uint16) for place in range(self.length)]
            last, power = np.zeros(len(seeds), dtype=np.uint16), np.ones(len(seeds), dtype=np.int64)
            for place, digit in enumerate(digits):
                power[digit > 0] = order**place
                last = np.where(digit > 0, digit, last)
            factor = inverses[last]
            # (power − 1) g / (g − 1) cells belong to earlier digits, and `power` to each answer.
            cell = (power - 1) // (order - 1) * order + (table.products[factor, answers] - np.int64(1)) * power
            for place, digit in enumerate(digits):
                cell += table.products[factor, digit] * np.int64(order**place)
            cell = np.where(last > 0, cell, size + (answers > 0))
            weights = None if times is None else times[first : first + REPORTS_AT_ONCE]
            counts += np.bincount(cell, weights, len(counts)).astype(np.int64)  # floats are exact up to 2⁵³ people
        return counts[:size], int(counts[size])

    def _sum_over_seeds(self, counts: NDArray[np.int64], place: int) -> NDArray[np.int64]:
        """Return C_v for all v of ``place`` + 1 digits, from the counts N[y, s] of seeds of ``place`` digits."""
        order, table = self.order, finite_field(self.order)
        dtype = np.int32 if counts.sum() < INT32_LIMIT else np.int64  # no sum exceeds the sum of all
        done: Integers = counts.astype(dtype)
        for digit in range(place):
            shape = (order, order ** (place - digit - 1), order, order**digit)
            block = done.reshape(shape)
            by_answer = np.ascontiguousarray(np.moveaxis(block, 2, 1)).reshape(order * order, -1)
            done = np.empty(shape, dtype=dtype)
            for v in range(order):
                # The row of answer y + s v and seed digit s, shape [s, y].
                rows = table.sums[table.products[:, v]].astype(np.int64) * order + np.arange(order)[:, None]
                total = by_answer[rows].sum(axis=0, dtype=dtype)
                done[:, :, v] = total.reshape(order, shape[1], shape[3])
        return np.asarray(done.ravel(), dtype=np.int64)


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

    def tally_reports(self, reports: ArrayLike) -> Tally:
        """Return the tally; fewer reports than there are different ones are not counted in a table of all."""
        checked = check_categories("reports", reports, self.possible_report_count)
        if len(checked) >= self.possible_report_count:
            return super(Hashing, self).tally_reports(checked)
        return Tally(len(checked), len(checked), self.linear.support_counts(checked)[: self.k])

    def tally_of_reports(self, people: int, counts: NDArray[np.int64]) -> Tally:
        """Return the tally of the supports of all values, from the counts of reports."""
        reports = np.flatnonzero(counts)
        return Tally(people, people, self.linear.support_counts(reports, counts[reports])[: self.k])


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
