"""A small table stretched to any scale: X = m Y + U₁ − U₂, exact integers at the price of one table."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tightrope.errors import InputError
from tightrope.mechanisms.integer.integer_mechanism import WIDEST_SUMMAND, Integers, add_noise, entries
from tightrope.mechanisms.integer.linear_losses import linear_loss
from tightrope.mechanisms.mechanism import Mechanism
from tightrope.mechanisms.tables.box_table import AnyTable
from tightrope.mechanisms.tables.table import NoiseTable
from tightrope.mechanisms.tables.tails import first_at_most, symmetric_quantile
from tightrope.numerics.checks import inner_probability, whole
from tightrope.privacy.loss import PrivacyLoss
from tightrope.randomness.choice import WORDS_AT_ONCE
from tightrope.randomness.integers import below
from tightrope.randomness.loops import choose, compiled, spread
from tightrope.randomness.source import Source, Words
from tightrope.randomness.stream import Stream

LARGEST_FACTOR = 1 << 40
POWERS = frozenset(1 << bits for bits in range(33))
"""Factors whose U₁ and U₂ fit into one word together."""


@dataclass(frozen=True, slots=True)
class Widened(Mechanism):
    """X = m Y + U₁ − U₂: Y from ``table``, U₁ and U₂ uniform on 0..m − 1, m = ``factor``, all independent.

    P(X = m y + s) = [(m − s) P(Y = y) + s P(Y = y + 1)] / m² for y ≥ 0 ≤ s < m: linear between the points of Y.

    *Privacy.* X and X + m d are the same random map (multiply by m, add U₁ − U₂) of Y and Y + d, so the profile of
    (X, X + m d) is at most that of (Y, Y + d). X is symmetric, and unimodal if Y is; then smaller shifts have smaller
    profiles (theory §4). So every shift up to m d costs at most what the table costs at shift d. ``sensitivity``
    (default: one step of the table, m) may be any whole number; see ``loss``. Slightly more private than certified.

    Raises ``InputError`` for a table that is not unimodal, and a factor outside 1..2⁴⁰.

    >>> from tightrope.mechanisms.tables.integer_optimum import optimal_table
    >>> noise = Widened(optimal_table([(1, 1e-6)]), factor=1000)
    >>> noise.worst_error, round(noise.mean_absolute_error), noise.half_width(0.95)
    (14999.0, 1005, 2995)
    """

    table: AnyTable
    factor: int
    sensitivity: int = 0

    def __post_init__(self) -> None:
        factor = whole("factor", self.factor)
        if not factor <= LARGEST_FACTOR:
            raise InputError("factor", factor, "at most 2^40", "measure in coarser units")
        if not self.table.is_unimodal:
            raise InputError(
                "table", "a law that is not unimodal", "a unimodal law", "smaller shifts would not be covered"
            )
        wanted = whole("sensitivity", self.sensitivity, at_least=0) or factor
        object.__setattr__(self, "sensitivity", wanted)

    @property
    def loss(self) -> PrivacyLoss:
        """Dominates every shift 1..sensitivity.

        Whole steps, and any sensitivity of an endless table: the table's loss at ⌈sensitivity / factor⌉ steps. Else
        that of the piecewise linear law at its own shift (``linear_losses``), computed anew in each call.
        """
        steps, part = divmod(self.sensitivity, self.factor)
        if part and isinstance(self.table, NoiseTable) and self.table.tail is None:
            return linear_loss(self.table, self.factor, self.sensitivity)
        return self.table.loss(steps + bool(part))

    @property
    def mean_absolute_error(self) -> float:
        """E|X|, exact: with h = P(Y ≥ 1), A = E|Y|/2, S₁ = Σ s, S₂ = Σ s² over s < m,

        E|X| = (2/m²) [m (m² − S₁) A + (m S₁ − S₂)(h + P(Y=0)) + m S₁ (A − h) + S₂ h].
        """
        m, first, second = self._sums
        half, positive = self.table.exact_mean_absolute / 2, self.table.survival(0)
        centre = 1 - 2 * positive
        inner = m * (m * m - first) * half + (m * first - second) * (positive + centre)
        return float(2 * (inner + m * first * (half - positive) + second * positive) / (m * m))

    @property
    def mean_squared_error(self) -> float:
        """E X² = m² E Y² + (m² − 1)/6, exact."""
        square = self.factor**2
        return float(square * self.table.exact_mean_squared + Fraction(square - 1, 6))

    @property
    def worst_error(self) -> float:
        """M N + m − 1."""
        return math.inf if self.table.tail else float(self.factor * (int(self.table.worst) + 1) - 1)

    @property
    def _sums(self) -> tuple[int, int, int]:
        """m, Σ s, Σ s² over 0 ≤ s < m."""
        m = self.factor
        return m, m * (m - 1) // 2, (m - 1) * m * (2 * m - 1) // 6

    def survival(self, x: int) -> Fraction:
        """P(X > x) for x ≥ 0, exactly: the rest of the cell that x lies in, and all later cells."""
        m, first, _ = self._sums
        y, s = divmod(x, m)
        left = m - 1 - s
        here, after = self.table.survival(y), self.table.survival(y + 1)
        before = 1 - self.table.survival(0) if y == 0 else self.table.survival(y - 1)  # P(Y ≥ y)
        low, high = left * (left + 1) // 2, first - s * (s + 1) // 2  # Σ (m − t), Σ t over s < t < m
        cell = (before - here) * low + (here - after) * high
        return (cell + (m * m - first) * here + first * after) / Fraction(m * m)

    def quantile(self, p: float) -> int:
        """The smallest x with P(X ≤ x) ≥ p; 1e−30 ≤ p < 1."""
        return symmetric_quantile(self.survival, p)

    def half_width(self, confidence: float) -> int:
        """The smallest w with P(|X| ≤ w) ≥ confidence."""
        outside = 1 - Fraction(inner_probability("confidence", confidence))
        return first_at_most(self.survival, outside / 2)

    def sample(self, size: int, randomness: Source | None = None) -> Integers:
        """``size`` independent draws, shape [size]: 64-bit integers, Python's where those could overflow.

        A power of two as the factor and a table that ends take two words a draw and no rejection.
        """
        size, randomness = whole("size", size, at_least=0), randomness or Stream()
        if isinstance(self.table, NoiseTable) and self._is_plain:
            return self._shifted(self.table, size, randomness)
        return self.stretched(self.table.sample(size, randomness), randomness)

    def stretched(self, steps: NDArray[Any], randomness: Source) -> Integers:
        """M Y + U₁ − U₂ for draws Y of the table, shape [n]: one number of each point, where they share their noise."""
        size, largest = len(steps), int(np.abs(steps).max(initial=0))
        if not self.factor * (largest + 1) < WIDEST_SUMMAND:
            steps = steps.astype(np.object_)
        noise: Integers = steps * self.factor + (
            below(self.factor, size, randomness) - below(self.factor, size, randomness)
        )
        return noise

    @property
    def _is_plain(self) -> bool:
        """Whether U₁ and U₂ are the bits of one word, and no sum can overflow."""
        return self.factor in POWERS and self.table.tail is None and self.worst_error < WIDEST_SUMMAND

    def _shifted(self, table: NoiseTable, size: int, randomness: Source) -> NDArray[np.int64]:
        """Blocks that stay in the cache: a table's outcome, then U₁ − U₂ from the bits of one word."""
        out, loops = np.empty(size, dtype=np.int64), (compiled(choose, size), compiled(spread, size))
        bits = np.uint64(self.factor.bit_length() - 1)
        for start in range(0, size, WORDS_AT_ONCE):
            part = out[start : start + WORDS_AT_ONCE]
            table.sampler.fill(part, randomness, loops[0])
            words = randomness.words(len(part))
            (loops[1] if loops[1] and words.flags.writeable else _spread)(words, bits, part)
        return out

    def release(self, value: Any, randomness: Source | None = None) -> Any:
        """Value + X for an integer or an array of integers; raises ``InputError`` for anything else."""
        return add_noise(value, self.sample(entries(value), randomness))


def _spread(words: Words, bits: np.uint64, out: NDArray[np.int64]) -> int:
    """The numpy twin of ``loops.spread``."""
    mask = (np.uint64(1) << bits) - np.uint64(1)
    out *= np.int64(1) << np.int64(bits)
    out += (words & mask).astype(np.int64)
    out -= ((words >> bits) & mask).astype(np.int64)
    return 0
