"""The exact symmetric integer distribution: one table for sampling, certificates, errors and documents."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tightrope.accounting.distributions.atoms import Atoms
from tightrope.accounting.distributions.base import GaussianForm
from tightrope.errors import InputError
from tightrope.mechanisms.discrete.integer_weights import (
    DIGITS,
    LARGEST_SCALE,
    LARGEST_STEP,
    ONE,
    PlateauTail,
    TableFields,
    Tail,
    first_survival_at_most,
    normalize_weights,
    symmetric_quantile,
)
from tightrope.mechanisms.discrete.table_loss import loss_atoms
from tightrope.numerics.checks import check_inner_probability, check_integer
from tightrope.randomness.alias_sampler import BITS, TOTAL, WORDS_AT_ONCE, AliasSampler
from tightrope.randomness.bits import Source, Stream
from tightrope.randomness.loops import Loop, choose_outcomes, compiled_loop

if TYPE_CHECKING:
    from tightrope.accounting.privacy_loss import PrivacyLoss
    from tightrope.documents.document import PackedTable

# Integer weights from float probabilities, which are taken as exact.


def normalize_float_weights(
    half: ArrayLike, tail_ratio: float | None, tail_width: int, steps: tuple[float, ...]
) -> TableFields:
    """Return the fields of ``NoiseTable.from_probabilities``."""
    raw, tail = raw_weights(half), None
    if tail_ratio is not None:
        ratio = check_inner_probability("tail_ratio", tail_ratio)
        if not math.exp(-LARGEST_STEP) <= ratio <= 1 - 1 / LARGEST_SCALE:
            raise InputError("tail_ratio", ratio, "between e^-40 and 1 - 1e-6", "change the units, or end the table")
        mantissa, exponent = math.frexp(ratio)
        fixed = int(mantissa * 2**53) * ONE >> (53 - exponent)
        tail = PlateauTail(raw[-1] * fixed >> DIGITS, fixed, check_integer("tail_width", tail_width))
    return normalize_weights(raw, tail, steps)


def raw_weights(half: ArrayLike) -> list[int]:
    """Return floats >= 0 as integers on a common scale; smaller digits are cut off."""
    values = np.asarray(half, dtype=np.float64)
    good = values.ndim == 1 and len(values) > 0 and bool(np.all((values >= 0) & np.isfinite(values)))
    if not (good and values.max() > 0):
        raise InputError("half", half, "a list of finite numbers >= 0, not all of them 0")
    mantissas, exponents = np.frexp(values)
    wholes = np.ldexp(mantissas, 53).astype(np.int64).tolist()
    lifts = (exponents - int(exponents[values > 0].max()) + (DIGITS - 53)).tolist()
    return [m << lift if lift >= 0 else m >> -lift for m, lift in zip(wholes, lifts, strict=True)]


# Exact draws from a table: one 64-bit word each, a second one on ties; the tail by blocks.


@dataclass(frozen=True, slots=True, eq=False)
class TableSampler:
    """Sampler with outcomes ``head``: (beyond −N), −N, …, N, (beyond N); ``block``: 0, …, B−1, (B further, again)."""

    head: AliasSampler
    reach: int
    block: AliasSampler | None = None
    period: int = 0

    @classmethod
    def from_weights(cls, center: int, half: tuple[int, ...], tail: Tail | None) -> Self:
        """Return the sampler for the weights of a table; with a tail, the reach N + 1 represents all larger values."""
        if tail is None:
            return cls(AliasSampler.from_weights((*half[::-1], center, *half), -len(half)), len(half))
        outer = (*half, tail.escape_in)
        block = AliasSampler.from_weights((*tail.block, tail.escape))
        return cls(
            AliasSampler.from_weights((*outer[::-1], center, *outer), -len(outer)), len(outer), block, len(tail.block)
        )

    def draw_samples(self, size: int, randomness: Source) -> NDArray[np.int64]:
        """Return ``size`` independent draws, shape [size]."""
        out, loop = np.empty(size, dtype=np.int64), compiled_loop(choose_outcomes, size)
        for start in range(0, size, WORDS_AT_ONCE):
            self.fill_samples(out[start : start + WORDS_AT_ONCE], randomness, loop)
        return out

    def fill_samples(self, out: NDArray[np.int64], randomness: Source, loop: Loop | None = None) -> None:
        """Overwrite one block that fits the cache; draws beyond the table continue in the tail."""
        self.head.fill_outcomes(out, randomness, loop)
        if self.block is not None:
            escaped = np.flatnonzero((out == self.reach) | (out == -self.reach))
            out[escaped] += np.sign(out[escaped]) * self._draw_tail_cells(self.block, len(escaped), randomness)

    def _draw_tail_cells(self, block: AliasSampler, size: int, randomness: Source) -> NDArray[np.int64]:
        """Return cells beyond N + 1, for ``size`` draws that are beyond N."""
        out = np.zeros(size, dtype=np.int64)
        moving = np.arange(size)
        while len(moving):
            cell = block.draw_outcomes(len(moving), randomness)
            out[moving] += cell  # the outcome "escape" has number B: it adds B and continues
            moving = moving[cell == self.period]
        return out


@dataclass(frozen=True, repr=False)  # not slotted: caches what is derived from a large table
class NoiseTable:
    """P(X = 0) = center / 2¹²⁸ and P(X = ±x) = half[x−1] / 2¹²⁸ for x = 1..N; beyond N the ``tail``, if any.

    Exactly: center + 2 Σ half + 2 escape_in = 2¹²⁸. ``steps`` are the ideal spacings of the privacy losses in nats (for
    example 1/scale): losses within rounding of a multiple are moved there, and the deviation is declared in the slack
    of the atoms. They change no weight. ``gaussian_scale``: the scale, if ``gaussian_table`` made the weights; it makes
    the privacy loss of many copies faster to compute, and documents do not contain it.

    Raises ``InputError`` if the weights are not integers ≥ 0 with that sum.

    >>> table = NoiseTable(2**127, (2**126,))
    >>> table.mean_absolute, table.largest_magnitude, table.quantile(0.2)
    (0.5, 1.0, -1)
    """

    center: int
    half: tuple[int, ...]
    tail: Tail | None = None
    steps: tuple[float, ...] = ()
    gaussian_scale: float | None = field(default=None, compare=False)

    def __repr__(self) -> str:
        end = "endless tail" if self.tail else "no tail"
        return f"NoiseTable({len(self.half)} cells a side, {end})"

    def __post_init__(self) -> None:
        if self.tail is None and self.half and self.half[-1] == 0:
            trimmed_size = len(self.half)
            while trimmed_size and self.half[trimmed_size - 1] == 0:
                trimmed_size -= 1
            object.__setattr__(self, "half", self.half[:trimmed_size])
        if not min(self.half, default=0) >= 0 or not self.center >= 0:
            raise InputError("half", min(self.half, default=self.center), "weights >= 0")
        whole_weight = self.center + 2 * sum(self.half) + 2 * self._tail_mass
        if not whole_weight == TOTAL:
            raise InputError(
                "centre", self.center, "2^128 minus all other weights", "use NoiseTable.from_probabilities"
            )

    @classmethod
    def from_probabilities(
        cls, half: ArrayLike, *, tail_ratio: float | None = None, tail_width: int = 1, steps: tuple[float, ...] = ()
    ) -> Self:
        """Return the table nearest below p_0, p_1, …, p_N (p_x the probability, or any multiple of it, of x and of −x).

        The float weights are taken as exact, divided by their exact sum and rounded down; the remainder goes to 0.
        ``tail_ratio`` r continues beyond N with plateaus of ``tail_width`` cells at r, r², … times the last weight.

        >>> NoiseTable.from_probabilities([2, 1, 0]).half == (2**126,)
        True
        """
        return cls(*normalize_float_weights(half, tail_ratio, tail_width, steps))

    @property
    def _tail_mass(self) -> int:
        return self.tail.escape_in if self.tail else 0

    @cached_property
    def is_unimodal(self) -> bool:
        """Return whether P(X = x) does not increase with |x|, decided in integers."""
        weights, tail = (self.center, *self.half), self.tail
        if not all(a >= b for a, b in pairwise(weights)):
            return False
        if tail is None:
            return True
        joins = weights[-1] * TOTAL >= tail.escape_in * tail.block[0]
        wraps = tail.block[-1] * TOTAL >= tail.escape * tail.block[0]
        return joins and wraps and all(a >= b for a, b in pairwise(tail.block))

    def cell_weights(self) -> Iterator[int]:
        """Yield the weights of 0, 1, 2, … out of 2¹²⁸: exact in the table, rounded down in the tail, until they are 0.

        >>> list(NoiseTable(2**127, (2**126,)).cell_weights()) == [2**127, 2**126]
        True
        """
        yield self.center
        yield from self.half
        scale = self._tail_mass
        while self.tail is not None and scale:
            yield from (scale * cell >> BITS for cell in self.tail.block)
            scale = scale * self.tail.escape // TOTAL

    def atoms_for_shift(self, shift: int) -> Atoms:
        """Return the loss distribution of the pair (X, X + shift), from the integer weights (see ``table_loss``)."""
        atoms = loss_atoms(self, check_integer("shift", shift))
        if self.gaussian_scale is None:
            return atoms
        # At most 13.33 scales + 1 cells on a side, each rounded down by less than 2^-128; docs/proofs/gaussian-sum.md.
        distance = math.ldexp(27 * self.gaussian_scale + 5, -BITS)
        return replace(atoms, gaussian_form=GaussianForm(self.gaussian_scale, shift, distance))

    def loss(self, sensitivity: int = 1) -> PrivacyLoss:
        """Return the privacy loss for every shift 1..sensitivity.

        Symmetric unimodal noise: the profile at γ ≥ 1 does not decrease with the shift, and the mirrored part follows
        (theory §4), so the largest shift dominates. For other distributions it is the pair whose profile is the
        pointwise maximum over all shifts. Raises ``InputError`` unless the sensitivity is an integer ≥ 1.

        >>> law = NoiseTable.from_probabilities([1, 2, 1])  # not unimodal: shift 1 tells more than shift 2 at ε = 0.5
        >>> loss = law.loss(2)
        >>> max(law.loss(1).delta(0.5), 0.375) <= loss.delta(0.5)
        True
        """
        sensitivity = check_integer("sensitivity", sensitivity, remedy="integer noise is for whole-number answers")
        if sensitivity not in self._losses_by_sensitivity:
            self._losses_by_sensitivity[sensitivity] = self._dominating_loss(sensitivity)
        return self._losses_by_sensitivity[sensitivity]

    @cached_property
    def _losses_by_sensitivity(self) -> dict[int, PrivacyLoss]:
        return {}

    def _dominating_loss(self, sensitivity: int) -> PrivacyLoss:
        from tightrope.accounting.bounds import TrueValueOf
        from tightrope.accounting.privacy_loss import PrivacyLoss

        # (X + d, X) mirrors (X, X + d): both directions have the same distribution
        largest = sensitivity == 1 or self.is_unimodal
        atoms = self.atoms_for_shift(sensitivity) if largest else self._atoms_for_all_shifts(sensitivity)
        stated = TrueValueOf.MECHANISMS if largest else TrueValueOf.PAIRS
        return PrivacyLoss.from_distribution(atoms, reverse=atoms, true_value_of=stated)

    def _atoms_for_all_shifts(self, sensitivity: int) -> Atoms:
        from tightrope.mechanisms.discrete.table_loss import dominating_atoms

        return dominating_atoms([self.atoms_for_shift(shift) for shift in range(1, sensitivity + 1)])

    @cached_property
    def exact_mean_absolute(self) -> Fraction:
        """E|X| as a fraction."""
        head = Fraction(sum(x * w for x, w in enumerate(self.half, 1)), TOTAL)
        if self.tail is None:
            return 2 * head
        mean, _ = self.tail.excess_moments()
        return 2 * (head + Fraction(self.tail.escape_in, TOTAL) * (len(self.half) + 1 + mean))

    @cached_property
    def exact_mean_squared(self) -> Fraction:
        """E X² as a fraction."""
        head = Fraction(sum(x * x * w for x, w in enumerate(self.half, 1)), TOTAL)
        if self.tail is None:
            return 2 * head
        start = len(self.half) + 1
        mean, square = self.tail.excess_moments()
        return 2 * (head + Fraction(self.tail.escape_in, TOTAL) * (start * start + 2 * start * mean + square))

    @property
    def mean_absolute(self) -> float:
        """E|X|, correctly rounded."""
        return float(self.exact_mean_absolute)

    @property
    def mean_squared(self) -> float:
        """E X², correctly rounded."""
        return float(self.exact_mean_squared)

    @property
    def largest_magnitude(self) -> float:
        """The largest |X|: N, or ∞ with a tail."""
        return math.inf if self.tail else float(len(self.half))

    @cached_property
    def _suffix_weights(self) -> tuple[int, ...]:
        """The weights of "X > x" for x = 0..N."""
        return tuple(accumulate(reversed(self.half), initial=self._tail_mass))[::-1]

    def survival_probability(self, x: int) -> Fraction:
        """Return P(X > x) for x ≥ 0, exactly."""
        if x <= len(self.half):
            return Fraction(self._suffix_weights[x], TOTAL)
        return self.tail.tail_probability(x - len(self.half)) if self.tail else Fraction(0)

    def quantile(self, p: float) -> int:
        """Return the smallest x with P(X ≤ x) ≥ p; 1e−30 ≤ p < 1."""
        return symmetric_quantile(self.survival_probability, p)

    def half_width(self, confidence: float) -> int:
        """Return the smallest w with P(|X| ≤ w) ≥ confidence."""
        outside = 1 - Fraction(check_inner_probability("confidence", confidence))
        return first_survival_at_most(self.survival_probability, outside / 2)

    @cached_property
    def table_sampler(self) -> TableSampler:
        """The sampler for these weights; built once."""
        return TableSampler.from_weights(self.center, self.half, self.tail)

    def sample(self, size: int, randomness: Source | None = None) -> NDArray[np.int64]:
        """Return ``size`` independent draws, shape [size], exactly from the weights; by default from the system."""
        return self.table_sampler.draw_samples(check_integer("size", size, at_least=0), randomness or Stream())

    def to_data(self) -> dict[str, Any]:
        """Return plain data for a certificate: integers as decimal strings."""
        tail = self.tail.to_data() if self.tail else None
        return {
            "centre": str(self.center),
            "half": [str(w) for w in self.half],
            "tail": tail,
            "steps": list(self.steps),
        }

    @classmethod
    def from_data(cls, data: dict[str, Any]) -> Self:
        """The inverse of :meth:`to_data`; the sum is checked again."""
        tail = Tail.from_data(data["tail"]) if data["tail"] else None
        return cls(int(data["centre"]), tuple(map(int, data["half"])), tail, tuple(data["steps"]))

    def packed(self) -> PackedTable:
        """Return the table in the compact form of documents and ledgers."""
        from tightrope.documents.document import PackedTable  # loads msgspec, which accounting does not need

        tail = (self.tail.block, self.tail.escape_in, self.tail.escape) if self.tail else None
        return PackedTable.from_weights(self.center, self.half, tail, self.steps)

    @classmethod
    def from_packed(cls, packed: PackedTable) -> Self:
        """The inverse of :meth:`packed`; the sum is checked again."""
        from tightrope.documents.document import unpack_weights

        tail = None
        if packed.tail is not None:
            block = unpack_weights("block", packed.tail.block)
            tail = Tail(block, int(packed.tail.escape_in, 16), int(packed.tail.escape, 16))
        return cls(int(packed.center, 16), unpack_weights("half", packed.half), tail, packed.steps)


def build_noise_table(raw: Sequence[int], tail: PlateauTail | None = None, steps: tuple[float, ...] = ()) -> NoiseTable:
    """Return the distribution with raw weights of 0, ±1, …, continued by ``tail`` (see ``integer_weights``)."""
    return NoiseTable(*normalize_weights(raw, tail, steps))
