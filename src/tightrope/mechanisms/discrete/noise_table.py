"""The exact symmetric integer law: one table that is sampled, certified, measured and written down."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tightrope.accounting.distributions.atoms import Atoms
from tightrope.errors import InputError
from tightrope.mechanisms.discrete.integer_weights import (
    DIGITS,
    LARGEST_SCALE,
    LARGEST_STEP,
    ONE,
    Plateaus,
    Tail,
    Weighed,
    first_at_most,
    suffix_sums,
    symmetric_quantile,
    weighed,
)
from tightrope.mechanisms.discrete.table_loss import loss_atoms
from tightrope.numerics.checks import inner_probability, whole
from tightrope.randomness.alias_sampler import TOTAL, WORDS_AT_ONCE, Choice
from tightrope.randomness.bits import Source, Stream
from tightrope.randomness.loops import Loop, choose, compiled

if TYPE_CHECKING:
    from tightrope.accounting.privacy_loss import PrivacyLoss

# Whole weights from probabilities that somebody computed in floats: the floats are taken as exact.


def weighed_floats(half: ArrayLike, tail_ratio: float | None, tail_width: int, steps: tuple[float, ...]) -> Weighed:
    """See ``NoiseTable.from_probabilities``."""
    raw = raw_weights(half)
    return weighed(raw, None if tail_ratio is None else _plateaus(raw[-1], tail_ratio, tail_width), steps)


def raw_weights(half: ArrayLike) -> list[int]:
    """Floats >= 0 as whole numbers on a common scale; what is below it is cut off."""
    values = np.asarray(half, dtype=np.float64)
    good = values.ndim == 1 and len(values) > 0 and bool(np.all((values >= 0) & np.isfinite(values)))
    if not (good and values.max() > 0):
        raise InputError("half", half, "a list of finite numbers >= 0, not all of them 0")
    mantissas, exponents = np.frexp(values)
    wholes = np.ldexp(mantissas, 53).astype(np.int64).tolist()
    lifts = (exponents - int(exponents[values > 0].max()) + (DIGITS - 53)).tolist()
    return [m << lift if lift >= 0 else m >> -lift for m, lift in zip(wholes, lifts, strict=True)]


def _plateaus(last: int, ratio: float, width: int) -> Plateaus:
    ratio = inner_probability("tail_ratio", ratio)
    if not math.exp(-LARGEST_STEP) <= ratio <= 1 - 1 / LARGEST_SCALE:
        raise InputError("tail_ratio", ratio, "between e^-40 and 1 - 1e-6", "change the units, or end the table")
    mantissa, exponent = math.frexp(ratio)
    fixed = int(mantissa * 2**53) * ONE >> (53 - exponent)
    return Plateaus(last * fixed >> DIGITS, fixed, whole("tail_width", width))


# Exact draws from a table: one 64-bit word each, a second one where it ties; the tail by blocks.


@dataclass(frozen=True, slots=True, eq=False)
class TableSampler:
    """Outcomes of ``head``: (beyond −N), −N, …, N, (beyond N); of ``block``: 0, …, B−1, (B further, again)."""

    head: Choice
    reach: int
    block: Choice | None = None
    period: int = 0

    @classmethod
    def of(cls, centre: int, half: tuple[int, ...], tail: Tail | None) -> Self:
        """From the weights of a table; with a tail the reach is N + 1 and stands for everything beyond N."""
        if tail is None:
            return cls(Choice.of((*half[::-1], centre, *half), -len(half)), len(half))
        outer = (*half, tail.escape_in)
        block = Choice.of((*tail.block, tail.escape))
        return cls(Choice.of((*outer[::-1], centre, *outer), -len(outer)), len(outer), block, len(tail.block))

    def draw(self, size: int, randomness: Source) -> NDArray[np.int64]:
        """``size`` independent draws, shape [size]."""
        out, loop = np.empty(size, dtype=np.int64), compiled(choose, size)
        for start in range(0, size, WORDS_AT_ONCE):
            self.fill(out[start : start + WORDS_AT_ONCE], randomness, loop)
        return out

    def fill(self, out: NDArray[np.int64], randomness: Source, loop: Loop | None = None) -> None:
        """Overwrite one block that fits the cache; draws beyond the table go on in the tail."""
        self.head.fill(out, randomness, loop)
        if self.block is not None:
            escaped = np.flatnonzero((out == self.reach) | (out == -self.reach))
            out[escaped] += np.sign(out[escaped]) * self._further(self.block, len(escaped), randomness)

    def _further(self, block: Choice, size: int, randomness: Source) -> NDArray[np.int64]:
        """Cells beyond N + 1, for ``size`` draws that are beyond N."""
        out = np.zeros(size, dtype=np.int64)
        moving = np.arange(size)
        while len(moving):
            cell = block.draw(len(moving), randomness)
            out[moving] += cell  # the outcome "escape" has number B: it adds B and goes on
            moving = moving[cell == self.period]
        return out


@dataclass(frozen=True, repr=False)  # not slotted: what is derived from a large table is kept
class NoiseTable:
    """P(X = 0) = centre / 2¹²⁸ and P(X = ±x) = half[x−1] / 2¹²⁸ for x = 1..N; beyond N the ``tail``, if there is one.

    Exactly: centre + 2 Σ half + 2 escape_in = 2¹²⁸. ``steps`` are the ideal spacings of the privacy losses in nats
    (say 1/scale): losses within rounding of a multiple are moved there, the deviation is declared in the slack of the
    atoms. They change no weight.

    Raises ``InputError`` where the weights are not whole numbers ≥ 0 with that sum.

    >>> table = NoiseTable(2**127, (2**126,))
    >>> table.mean_absolute, table.worst, table.quantile(0.2)
    (0.5, 1.0, -1)
    """

    centre: int
    half: tuple[int, ...]
    tail: Tail | None = None
    steps: tuple[float, ...] = ()

    def __repr__(self) -> str:
        end = "endless tail" if self.tail else "no tail"
        return f"NoiseTable({len(self.half)} cells a side, {end})"

    def __post_init__(self) -> None:
        if self.tail is None and self.half and self.half[-1] == 0:
            trimmed_size = len(self.half)
            while trimmed_size and self.half[trimmed_size - 1] == 0:
                trimmed_size -= 1
            object.__setattr__(self, "half", self.half[:trimmed_size])
        if not min(self.half, default=0) >= 0 or not self.centre >= 0:
            raise InputError("half", min(self.half, default=self.centre), "weights >= 0")
        whole_weight = self.centre + 2 * sum(self.half) + 2 * self._tail_mass
        if not whole_weight == TOTAL:
            raise InputError(
                "centre", self.centre, "2^128 minus all other weights", "use NoiseTable.from_probabilities"
            )

    @classmethod
    def from_probabilities(
        cls, half: ArrayLike, *, tail_ratio: float | None = None, tail_width: int = 1, steps: tuple[float, ...] = ()
    ) -> Self:
        """The table nearest below p_0, p_1, …, p_N (p_x the probability, or any multiple of it, of x and of −x).

        The float weights are taken as exact, divided by their exact sum and rounded down; the remainder goes to 0.
        ``tail_ratio`` r continues beyond N with plateaus of ``tail_width`` cells at r, r², … times the last weight.

        >>> NoiseTable.from_probabilities([2, 1, 0]).half == (2**126,)
        True
        """
        return cls(*weighed_floats(half, tail_ratio, tail_width, steps))

    @property
    def _tail_mass(self) -> int:
        return self.tail.escape_in if self.tail else 0

    @cached_property
    def is_unimodal(self) -> bool:
        """Whether P(X = x) does not increase with |x|, decided in whole numbers."""
        falling = all(a >= b for a, b in pairwise((self.centre, *self.half)))
        return falling and (self.tail is None or self._tail_falls(self.tail))

    def _tail_falls(self, tail: Tail) -> bool:
        last = self.half[-1] if self.half else self.centre
        joins = last * TOTAL >= tail.escape_in * tail.block[0]
        wraps = tail.block[-1] * TOTAL >= tail.escape * tail.block[0]
        return joins and wraps and all(a >= b for a, b in pairwise(tail.block))

    def atoms(self, shift: int) -> Atoms:
        """Law of the privacy loss of the pair (X, X + shift), from the integer weights (see ``integer_losses``)."""
        return loss_atoms(self, whole("shift", shift))

    def loss(self, sensitivity: int = 1) -> PrivacyLoss:
        """The privacy loss for every shift 1..sensitivity.

        Symmetric unimodal noise: the profile at γ ≥ 1 does not decrease with the shift, and the mirror below (theory
        §4), so the largest shift dominates. For other laws it is the pair whose profile is the pointwise maximum over
        all shifts (``shift_envelope``). Raises ``InputError`` unless the sensitivity is a whole number ≥ 1.

        >>> law = NoiseTable.from_probabilities([1, 2, 1])  # not unimodal: shift 1 tells more than shift 2 at ε = 0.5
        >>> loss = law.loss(2)
        >>> max(law.loss(1).delta(0.5), 0.375) <= loss.delta(0.5)
        True
        """
        sensitivity = whole("sensitivity", sensitivity, remedy="integer noise is for whole-number answers")
        if sensitivity not in self._losses:
            self._losses[sensitivity] = self._pair(sensitivity)
        return self._losses[sensitivity]

    @cached_property
    def _losses(self) -> dict[int, PrivacyLoss]:
        return {}

    def _pair(self, sensitivity: int) -> PrivacyLoss:
        from tightrope.accounting.privacy_loss import PrivacyLoss

        # (X + d, X) mirrors (X, X + d): both directions have one law
        largest = sensitivity == 1 or self.is_unimodal
        atoms = self.atoms(sensitivity) if largest else self._every_shift(sensitivity)
        return PrivacyLoss.of(atoms, reverse=atoms)

    def _every_shift(self, sensitivity: int) -> Atoms:
        from tightrope.mechanisms.discrete.table_loss import worst_of

        return worst_of([self.atoms(shift) for shift in range(1, sensitivity + 1)])

    @cached_property
    def exact_mean_absolute(self) -> Fraction:
        """E|X| as a fraction."""
        head = Fraction(sum(x * w for x, w in enumerate(self.half, 1)), TOTAL)
        if self.tail is None:
            return 2 * head
        mean, _ = self.tail.moments()
        return 2 * (head + Fraction(self.tail.escape_in, TOTAL) * (len(self.half) + 1 + mean))

    @cached_property
    def exact_mean_squared(self) -> Fraction:
        """E X² as a fraction."""
        head = Fraction(sum(x * x * w for x, w in enumerate(self.half, 1)), TOTAL)
        if self.tail is None:
            return 2 * head
        start = len(self.half) + 1
        mean, square = self.tail.moments()
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
    def worst(self) -> float:
        """The largest |X|: N, or ∞ with a tail."""
        return math.inf if self.tail else float(len(self.half))

    @cached_property
    def _suffixes(self) -> tuple[int, ...]:
        return suffix_sums(self.half, self._tail_mass)

    def survival(self, x: int) -> Fraction:
        """P(X > x) for x ≥ 0, exactly."""
        if x <= len(self.half):
            return Fraction(self._suffixes[x], TOTAL)
        return self.tail.tail_probability(x - len(self.half)) if self.tail else Fraction(0)

    def quantile(self, p: float) -> int:
        """The smallest x with P(X ≤ x) ≥ p; 1e−30 ≤ p < 1."""
        return symmetric_quantile(self.survival, p)

    def half_width(self, confidence: float) -> int:
        """The smallest w with P(|X| ≤ w) ≥ confidence."""
        outside = 1 - Fraction(inner_probability("confidence", confidence))
        return first_at_most(self.survival, outside / 2)

    @cached_property
    def sampler(self) -> TableSampler:
        """What draws from these weights; built once."""
        return TableSampler.of(self.centre, self.half, self.tail)

    def sample(self, size: int, randomness: Source | None = None) -> NDArray[np.int64]:
        """``size`` independent draws, shape [size], exactly from the weights; from the operating system by default."""
        return self.sampler.draw(whole("size", size, at_least=0), randomness or Stream())

    def to_data(self) -> dict[str, Any]:
        """Plain data for a certificate: whole numbers as decimal strings."""
        tail = self.tail.to_data() if self.tail else None
        return {
            "centre": str(self.centre),
            "half": [str(w) for w in self.half],
            "tail": tail,
            "steps": list(self.steps),
        }

    @classmethod
    def from_data(cls, data: dict[str, Any]) -> Self:
        """The inverse of :meth:`to_data`; the sum is checked again."""
        tail = Tail.from_data(data["tail"]) if data["tail"] else None
        return cls(int(data["centre"]), tuple(map(int, data["half"])), tail, tuple(data["steps"]))


def tabulate(raw: Sequence[int], tail: Plateaus | None = None, steps: tuple[float, ...] = ()) -> NoiseTable:
    """The law with raw weights raw[0], raw[1], … of 0, ±1, …, continued by ``tail`` (``integer_weights``)."""
    return NoiseTable(*weighed(raw, tail, steps))
