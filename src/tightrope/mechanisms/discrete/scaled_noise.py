"""A small table stretched to any scale: X = m Y + U₁ − U₂, exact integers at the price of one table."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tightrope.accounting.distributions.atoms import Atoms
from tightrope.accounting.privacy_loss import PrivacyLoss
from tightrope.errors import InputError
from tightrope.mechanisms.discrete.box_table import AnyTable
from tightrope.mechanisms.discrete.integer_mechanism import WIDEST_SUMMAND, Integers, add_noise, entries
from tightrope.mechanisms.discrete.integer_tables import gaussian_table
from tightrope.mechanisms.discrete.integer_weights import first_at_most, symmetric_quantile
from tightrope.mechanisms.discrete.noise_table import NoiseTable
from tightrope.mechanisms.discrete.table_loss import LOSS_ROUNDING, log_ratios
from tightrope.mechanisms.mechanism import Mechanism
from tightrope.numerics.checks import inner_probability, positive, whole
from tightrope.randomness.alias_sampler import TOTAL, WORDS_AT_ONCE
from tightrope.randomness.bits import Source, Stream, Words
from tightrope.randomness.integers import below
from tightrope.randomness.loops import choose, compiled, spread

# The privacy loss of a widened table at a shift between its steps, from the law that is sampled.
#
# X = mY + U₁ − U₂ has the weights g(my + s) = (m − s) w_y + s w_{y+1} (0 ≤ s < m, of m² 2¹²⁸), linear between
# multiples of m. With d = qm + r both g(x) and g(x − d) are linear in x between neighbours of the set B of all my and
# my + r. A point between two of them is a mixture of these two, so the pair on B alone, with m/2 times the weights,
# can imitate the whole: it dominates (``docs/proofs/exact-sampling.md``). The mirror x → d − x turns it into its
# reverse. All masses are exact; the losses have a relative error below 2⁻⁵⁰ (``integer_losses``). A point that only
# one of the two laws can reach is mass at infinite loss.

MOST_SHIFT_STEPS = 1 << 17
"""A shift of more steps than this is refused."""


def linear_loss(table: NoiseTable, factor: int, shift: int) -> PrivacyLoss:
    """The loss of the pair (X, X + shift); both directions have one law."""
    from tightrope.accounting.privacy_loss import PrivacyLoss

    atoms = linear_atoms(table, factor, shift)
    return PrivacyLoss.of(atoms, reverse=atoms)


def linear_atoms(table: NoiseTable, factor: int, shift: int) -> Atoms:
    """Atoms at the points of B, for a table that ends.

    Raises ``InputError`` for a shift of more than 2¹⁷ steps.
    """
    if not shift <= MOST_SHIFT_STEPS * factor:
        raise InputError(
            "sensitivity", shift, f"at most {MOST_SHIFT_STEPS} times the factor {factor}", "add more noise"
        )
    points = list(_points(table, factor, shift))
    both = [(p, q) for p, q in points if p and q]
    masses: defaultdict[float, int] = defaultdict(int)
    for loss, (p, _) in zip(log_ratios(both).tolist(), both, strict=True):
        masses[loss] += p
    whole = 2 * factor * TOTAL
    infinite = sum(p for p, q in points if not q) / whole
    values = np.array(sorted(masses))
    shares = np.array([masses[loss] / whole for loss in values.tolist()])
    slack = LOSS_ROUNDING * float(np.max(np.abs(values), initial=0.0))
    return Atoms(values, shares, infinite, infinite, slack, inexact=2.3e-16)


def _points(table: NoiseTable, factor: int, shift: int) -> Iterator[tuple[int, int]]:
    """g(x) and g(x − d) at the points my, then my + r, of every cell where X can be."""
    steps, rest = divmod(shift, factor)
    weights = [0] * (steps + 2) + [*table.half[::-1], table.centre, *table.half] + [0]

    def at(cell: int, place: int) -> int:
        return (factor - place) * weights[cell] + place * weights[cell + 1]

    for cell in range(steps + 1, len(weights) - 1):
        yield at(cell, 0), at(cell - steps - 1, factor - rest)
        yield at(cell, rest), at(cell - steps, 0)


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

    >>> from tightrope.mechanisms.discrete.integer_tables import optimal_table
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


# Gaussian-like noise of any scale, from a small table: the fastest exact integer noise.

FEWEST_STEPS = 256
"""The table's scale is 256 to 512 steps: straight lines between them cost at most 2.6e−6 of the variance."""


def widened_gaussian(*, scale: float, sensitivity: int = 1) -> Widened:
    """X = 2^s Y + U₁ − U₂ with Y from a Gaussian table of some thousand cells; E X² = scale² to 1e−12 of it.

    Not the discrete Gaussian (``discrete_gaussian``): its law is linear between multiples of 2^s. It is certified as
    the law that it is, and costs what a Gaussian of a scale smaller by a millionth costs, or two where ``sensitivity``
    is no multiple of 2^s. Raises ``InputError`` unless 512 ≤ scale ≤ 2⁴⁸ and sensitivity is a whole number ≥ 1.

    >>> noise = widened_gaussian(scale=1e9, sensitivity=10**9)
    >>> noise.factor, round(noise.mean_squared_error / 1e18, 9)
    (2097152, 1.0)
    """
    scale = positive("scale", scale, "the scale is the size of the noise in units of the answer")
    sensitivity = whole("sensitivity", sensitivity, remedy="round the answers to fixed point first")
    if not scale >= 2 * FEWEST_STEPS:
        raise InputError(
            "scale", scale, f"at least {2 * FEWEST_STEPS}", "smaller noise needs no widening: discrete_gaussian"
        )
    if not scale <= LARGEST_FACTOR * FEWEST_STEPS:
        raise InputError("scale", scale, "at most 2^48", "measure in coarser units")
    factor = 1 << (int(scale) // FEWEST_STEPS).bit_length() - 1
    steps = scale / factor
    return Widened(gaussian_table(math.sqrt(steps * steps - (1 - 1 / factor**2) / 6)), factor, sensitivity)
