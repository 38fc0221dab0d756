"""A small table stretched to any scale: X = m Y + U₁ − U₂, exact integers from one small table."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tightrope.accounting.distributions.atoms import Atoms
from tightrope.accounting.privacy_loss import PrivacyLoss
from tightrope.errors import InputError
from tightrope.mechanisms.discrete.box_table import AnyTable
from tightrope.mechanisms.discrete.integer_mechanism import WIDEST_SUMMAND, Integers, add_noise, count_entries
from tightrope.mechanisms.discrete.integer_tables import gaussian_table
from tightrope.mechanisms.discrete.integer_weights import first_survival_at_most, symmetric_quantile
from tightrope.mechanisms.discrete.noise_table import NoiseTable
from tightrope.mechanisms.discrete.table_loss import LOSS_ROUNDING, weight_log_ratios
from tightrope.mechanisms.mechanism import Mechanism
from tightrope.numerics.checks import check_inner_probability, check_integer, check_positive
from tightrope.randomness.alias_sampler import TOTAL, WORDS_AT_ONCE
from tightrope.randomness.bits import Source, Stream, Words
from tightrope.randomness.integers import uniform_below
from tightrope.randomness.loops import choose_outcomes, compiled_loop, spread_values

# The privacy loss of a widened table at a shift between its steps, from the sampled distribution.
#
# X = mY + U₁ − U₂ has the weights g(my + s) = (m − s) w_y + s w_{y+1} (0 ≤ s < m, of m² 2¹²⁸), linear between multiples
# of m. With d = qm + r both g(x) and g(x − d) are linear in x between neighbors of the set B of all my and my + r. A
# point between two of them is a mixture of these two, so the pair on B alone, with m/2 times the weights, can simulate
# the whole: it dominates (``docs/proofs/exact-sampling.md``). The mirror x → d − x turns it into its reverse. All
# masses are exact; the losses have a relative error below 2⁻⁵⁰ (see ``table_loss``). A point with positive probability
# under only one of the two distributions is mass at infinite loss.

MOST_SHIFT_STEPS = 1 << 17
"""Maximum number of steps of a shift."""


def linear_loss(table: NoiseTable, factor: int, shift: int) -> PrivacyLoss:
    """Return the loss of the pair (X, X + shift); both directions have the same distribution."""
    from tightrope.accounting.privacy_loss import PrivacyLoss

    atoms = linear_atoms(table, factor, shift)
    return PrivacyLoss.from_distribution(atoms, reverse=atoms)


def linear_atoms(table: NoiseTable, factor: int, shift: int) -> Atoms:
    """Return atoms at the points of B, for a finite table.

    Raises ``InputError`` for a shift of more than 2¹⁷ steps.
    """
    if not shift <= MOST_SHIFT_STEPS * factor:
        raise InputError(
            "sensitivity", shift, f"at most {MOST_SHIFT_STEPS} times the factor {factor}", "add more noise"
        )
    steps, rest = divmod(shift, factor)
    weights = [0] * (steps + 2) + [*table.half[::-1], table.center, *table.half] + [0]

    def interpolated_weight(cell: int, offset: int) -> int:
        return (factor - offset) * weights[cell] + offset * weights[cell + 1]

    # g(x) and g(x − d) at the points my, then my + r, of every cell in the support of X.
    points = []
    for cell in range(steps + 1, len(weights) - 1):
        points.append((interpolated_weight(cell, 0), interpolated_weight(cell - steps - 1, factor - rest)))
        points.append((interpolated_weight(cell, rest), interpolated_weight(cell - steps, 0)))
    common = [(p, q) for p, q in points if p and q]
    masses: defaultdict[float, int] = defaultdict(int)
    for loss, (p, _) in zip(weight_log_ratios(common).tolist(), common, strict=True):
        masses[loss] += p
    whole = 2 * factor * TOTAL
    infinite = sum(p for p, q in points if not q) / whole
    values = np.array(sorted(masses))
    probabilities = np.array([masses[loss] / whole for loss in values.tolist()])
    slack = LOSS_ROUNDING * float(np.max(np.abs(values), initial=0.0))
    return Atoms(values, probabilities, infinite, infinite, slack, relative_mass_error=2.3e-16)


LARGEST_FACTOR = 1 << 40
POWERS = frozenset(1 << bits for bits in range(33))
"""Factors whose U₁ and U₂ fit into one word together."""


@dataclass(frozen=True, slots=True)
class WidenedNoise(Mechanism):
    """X = m Y + U₁ − U₂: Y from ``table``, U₁ and U₂ uniform on 0..m − 1, m = ``factor``, all independent.

    P(X = m y + s) = [(m − s) P(Y = y) + s P(Y = y + 1)] / m² for y ≥ 0 ≤ s < m: linear between the points of Y.

    *Privacy.* X and X + m d are the same random map (multiply by m, add U₁ − U₂) of Y and Y + d, so the profile of (X,
    X + m d) is at most the profile of (Y, Y + d). X is symmetric, and unimodal if Y is; then smaller shifts have
    smaller profiles (theory §4). So the loss of every shift up to m d is at most the loss of the table at shift d.
    ``sensitivity`` (default: one step of the table, m) may be any integer; see ``loss``. Slightly more private than
    certified.

    Raises ``InputError`` for a table that is not unimodal, and a factor outside 1..2⁴⁰.

    >>> from tightrope.mechanisms.discrete.integer_tables import optimal_table
    >>> noise = WidenedNoise(optimal_table([(1, 1e-6)]), factor=1000)
    >>> noise.worst_error, round(noise.mean_absolute_error), noise.half_width(0.95)
    (14999.0, 1005, 2995)
    """

    table: AnyTable
    factor: int
    sensitivity: int = 0

    def __post_init__(self) -> None:
        factor = check_integer("factor", self.factor)
        if not factor <= LARGEST_FACTOR:
            raise InputError("factor", factor, "at most 2^40", "measure in coarser units")
        if not self.table.is_unimodal:
            raise InputError(
                "table", "a law that is not unimodal", "a unimodal law", "smaller shifts would not be covered"
            )
        wanted = check_integer("sensitivity", self.sensitivity, at_least=0) or factor
        object.__setattr__(self, "sensitivity", wanted)

    @property
    def loss(self) -> PrivacyLoss:
        """Privacy loss that dominates every shift 1..sensitivity.

        Whole steps, and any sensitivity of an infinite table: the table's loss at ⌈sensitivity / factor⌉ steps.
        Otherwise the loss of the piecewise linear distribution at its own shift (``linear_loss``), computed on each
        call.
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
        m, first, second = self._offset_sums
        half, positive = self.table.exact_mean_absolute / 2, self.table.survival_probability(0)
        center = 1 - 2 * positive
        inner = m * (m * m - first) * half + (m * first - second) * (positive + center)
        return float(2 * (inner + m * first * (half - positive) + second * positive) / (m * m))

    @property
    def mean_squared_error(self) -> float:
        """E X² = m² E Y² + (m² − 1)/6, exact."""
        square = self.factor**2
        return float(square * self.table.exact_mean_squared + Fraction(square - 1, 6))

    @property
    def worst_error(self) -> float:
        """M N + m − 1."""
        return math.inf if self.table.tail else float(self.factor * (int(self.table.largest_magnitude) + 1) - 1)

    @property
    def _offset_sums(self) -> tuple[int, int, int]:
        """m, Σ s, Σ s² over 0 ≤ s < m."""
        m = self.factor
        return m, m * (m - 1) // 2, (m - 1) * m * (2 * m - 1) // 6

    def survival_probability(self, x: int) -> Fraction:
        """Return P(X > x) for x ≥ 0, exactly: the rest of the cell of x, and all later cells."""
        m, first, _ = self._offset_sums
        y, s = divmod(x, m)
        left = m - 1 - s
        beyond_y, beyond_next = self.table.survival_probability(y), self.table.survival_probability(y + 1)
        at_least_y = (
            1 - self.table.survival_probability(0) if y == 0 else self.table.survival_probability(y - 1)
        )  # P(Y ≥ y)
        low, high = left * (left + 1) // 2, first - s * (s + 1) // 2  # Σ (m − t), Σ t over s < t < m
        cell = (at_least_y - beyond_y) * low + (beyond_y - beyond_next) * high
        return (cell + (m * m - first) * beyond_y + first * beyond_next) / Fraction(m * m)

    def quantile(self, p: float) -> int:
        """Return the smallest x with P(X ≤ x) ≥ p; 1e−30 ≤ p < 1."""
        return symmetric_quantile(self.survival_probability, p)

    def half_width(self, confidence: float) -> int:
        """Return the smallest w with P(|X| ≤ w) ≥ confidence."""
        outside = 1 - Fraction(check_inner_probability("confidence", confidence))
        return first_survival_at_most(self.survival_probability, outside / 2)

    def sample(self, size: int, randomness: Source | None = None) -> Integers:
        """Return ``size`` independent draws, shape [size]: 64-bit integers, or Python integers if those could overflow.

        With a power of two as the factor and a finite table, a draw takes two words and no rejection.
        """
        size, randomness = check_integer("size", size, at_least=0), randomness or Stream()
        fits_one_word = self.factor in POWERS and self.table.tail is None and self.worst_error < WIDEST_SUMMAND
        if isinstance(self.table, NoiseTable) and fits_one_word:
            return self._sample_in_blocks(self.table, size, randomness)
        return self.stretch_draws(self.table.sample(size, randomness), randomness)

    def stretch_draws(self, steps: NDArray[Any], randomness: Source) -> Integers:
        """Return m Y + U₁ − U₂ for draws Y of the table, shape [n]."""
        size, largest = len(steps), int(np.abs(steps).max(initial=0))
        if not self.factor * (largest + 1) < WIDEST_SUMMAND:
            steps = steps.astype(np.object_)
        noise: Integers = steps * self.factor + (
            uniform_below(self.factor, size, randomness) - uniform_below(self.factor, size, randomness)
        )
        return noise

    def _sample_in_blocks(self, table: NoiseTable, size: int, randomness: Source) -> NDArray[np.int64]:
        """Draw in blocks that fit the cache: a table outcome, then U₁ − U₂ from the bits of one word."""
        out, loops = (
            np.empty(size, dtype=np.int64),
            (compiled_loop(choose_outcomes, size), compiled_loop(spread_values, size)),
        )
        bits = np.uint64(self.factor.bit_length() - 1)
        for start in range(0, size, WORDS_AT_ONCE):
            part = out[start : start + WORDS_AT_ONCE]
            table.table_sampler.fill_samples(part, randomness, loops[0])
            words = randomness.random_words(len(part))
            (loops[1] if loops[1] and words.flags.writeable else _spread_with_numpy)(words, bits, part)
        return out

    def release(self, value: Any, randomness: Source | None = None) -> Any:
        """Return value + X for an integer or an array of integers; raises ``InputError`` for other types."""
        return add_noise(value, self.sample(count_entries(value), randomness))


def _spread_with_numpy(words: Words, bits: np.uint64, out: NDArray[np.int64]) -> int:
    """NumPy version of ``loops.spread_values``."""
    mask = (np.uint64(1) << bits) - np.uint64(1)
    out *= np.int64(1) << np.int64(bits)
    out += (words & mask).astype(np.int64)
    out -= ((words >> bits) & mask).astype(np.int64)
    return 0


# Gaussian-like noise of any scale, from a small table: the fastest exact integer noise.

FEWEST_STEPS = 256
"""The table's scale is 256 to 512 steps: linear interpolation adds at most 2.6e−6 of the variance."""


def widened_gaussian(*, scale: float, sensitivity: int = 1) -> WidenedNoise:
    """Return X = 2^s Y + U₁ − U₂ with Y from a Gaussian table of some thousand cells; E X² = scale² within 1e−12.

    Not the discrete Gaussian (``discrete_gaussian``): its weights are linear between multiples of 2^s. It is certified
    exactly; its loss is the loss of a Gaussian whose scale is smaller by a millionth, or by two millionths if
    ``sensitivity`` is not a multiple of 2^s. Raises ``InputError`` unless 512 ≤ scale ≤ 2⁴⁸ and sensitivity is an
    integer ≥ 1.

    >>> noise = widened_gaussian(scale=1e9, sensitivity=10**9)
    >>> noise.factor, round(noise.mean_squared_error / 1e18, 9)
    (2097152, 1.0)
    """
    scale = check_positive("scale", scale, "the scale is the size of the noise in units of the answer")
    sensitivity = check_integer("sensitivity", sensitivity, remedy="round the answers to fixed point first")
    if not scale >= 2 * FEWEST_STEPS:
        raise InputError(
            "scale", scale, f"at least {2 * FEWEST_STEPS}", "smaller noise needs no widening: discrete_gaussian"
        )
    if not scale <= LARGEST_FACTOR * FEWEST_STEPS:
        raise InputError("scale", scale, "at most 2^48", "measure in coarser units")
    factor = 1 << (int(scale) // FEWEST_STEPS).bit_length() - 1
    steps = scale / factor
    return WidenedNoise(gaussian_table(math.sqrt(steps * steps - (1 - 1 / factor**2) / 6)), factor, sensitivity)
