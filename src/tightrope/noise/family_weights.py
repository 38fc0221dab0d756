"""A distribution as float weights for 0, 1, 2, …: what searches look at, and what an integer table is made from."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tightrope.accounting.distributions.loss_cells import LossCells
from tightrope.errors import InsufficientBudgetError
from tightrope.mechanisms.discrete.box_table import BoxTable, shared_point_counts
from tightrope.mechanisms.discrete.integer_weights import normalize_weights
from tightrope.mechanisms.discrete.noise_table import NoiseTable, raw_weights
from tightrope.numerics.arrays import Floats

LISTED_NATS = 90.0
"""Float weights are never listed beyond e^{−90}: there an integer table of 128 bits has weight 0, too."""
DEEPER = 25.0
"""Float weights are listed until e^{−25} of the mass that may be lost."""
MOST_ATOMS = 1024
"""Losses of a longer distribution are binned into about this many cells: sufficient for searches."""
NARROWEST_CELL = 1e-12
"""Nats between the ends of a cell below which it is one atom."""
LONGEST_SIDE = 1 << 17
"""Cells of one side at most."""

Indices = np.ndarray[tuple[int], np.dtype[np.int64]]


@dataclass(frozen=True, slots=True)
class NoiseRequirement:
    """Requirements on a noise distribution: ``shift`` of one row, parts of a worst person, mass that it may lose."""

    shift: int
    part_rows: tuple[int, ...]
    infinite_mass: float

    @property
    def listing_depth(self) -> float:
        """−log of the weight at which listing ends."""
        return min(LISTED_NATS, DEEPER - math.log(max(self.infinite_mass, 1e-300)))


@dataclass(frozen=True, eq=False)  # not slotted: what every shift needs is kept
class FloatWeights:
    """Float weights of 0..N (each for x and −x).

    Unbounded distributions continue after the first ``head_length`` weights: ``tail_ratio`` times for every
    ``tail_width`` cells.
    """

    half_weights: Floats
    head_length: int = 0
    tail_ratio: float | None = None
    tail_width: int = 1

    def integer_table(self) -> NoiseTable:
        """Return the integer table that is sampled."""
        if self.tail_ratio is None:
            return NoiseTable.from_probabilities(self.half_weights)
        return NoiseTable.from_probabilities(
            self.half_weights[: self.head_length], tail_ratio=self.tail_ratio, tail_width=self.tail_width
        )

    @cached_property
    def _probabilities(self) -> Floats:
        return self.half_weights / (2 * float(np.sum(self.half_weights)) - float(self.half_weights[0]))

    @property
    def mean_absolute(self) -> float:
        """E|X| of the listed weights."""
        return 2 * float(np.dot(self._probabilities, np.arange(len(self.half_weights))))

    @property
    def zero_probability(self) -> float:
        """P(X = 0)."""
        return float(self._probabilities[0])

    def shift_loss_cells(self, shift: int) -> LossCells:
        """The loss of (X, X + shift) in floats, for searching. Mass shifted past the listed weights counts as lost;
        an unbounded distribution goes on there by its ratio, so that no mass is left out, however steep the
        distribution is.
        """
        p, logs, further, lost = self._shifted_probabilities(shift)
        q = np.exp(further)
        if len(p) <= MOST_ATOMS:
            return LossCells.from_atoms(logs - further, p, lost, lost)
        starts = np.arange(0, len(p), -(-len(p) // MOST_ATOMS))
        lower, upper = self._cell_loss_bounds(logs - further, starts)
        p, q = np.add.reduceat(p, starts), np.add.reduceat(q, starts)
        # Cells that keep both masses; where all losses of a cell are equal, all of it is at the end.
        upper = np.maximum(lower, upper)
        width = np.maximum(upper - lower, NARROWEST_CELL)
        high = p * np.minimum(np.maximum(np.expm1(np.log(q / p) + lower) / np.expm1(-width), 0.0), 1.0)
        high = np.where(upper - lower < NARROWEST_CELL, p, high)
        return LossCells(lower, upper, p - high, high, lost, lost)

    def _shifted_probabilities(self, shift: int) -> tuple[Floats, Floats, Floats, float]:
        """Return P(X = x), log P(X = x) and log P(X = x + shift) for x = −N.., and the lost mass."""
        whole, logs = self._two_sided_probabilities
        if self.tail_ratio is None:
            return whole[:-shift], logs[:-shift], logs[shift:], float(np.sum(whole[-shift:]))
        beyond = np.arange(shift)
        further = logs[len(logs) - self.tail_width + beyond % self.tail_width] + math.log(self.tail_ratio) * (
            1 + beyond // self.tail_width
        )
        return whole, logs, np.concatenate([logs, further])[shift:], 0.0

    def _cell_loss_bounds(self, losses: Floats, starts: Indices) -> tuple[Floats, Floats]:
        """The least and the largest loss of each cell; the losses of a log-concave distribution rise."""
        if self._is_log_concave:
            return losses[starts], losses[np.append(starts[1:], len(losses)) - 1]
        return np.minimum.reduceat(losses, starts), np.maximum.reduceat(losses, starts)

    @cached_property
    def _is_log_concave(self) -> bool:
        """True if the logarithms are concave, up to rounding."""
        return bool(np.all(np.diff(self._two_sided_probabilities[1], 2) <= NARROWEST_CELL))

    @cached_property
    def _two_sided_probabilities(self) -> tuple[Floats, Floats]:
        """Probabilities of −N..N, N the last that is positive, and their logarithms."""
        shares = self._probabilities[: np.flatnonzero(self._probabilities)[-1] + 1]
        whole = np.concatenate([shares[:0:-1], shares])
        return whole, np.log(whole)


def cell_count(count: float) -> int:
    """Return a number of cells as an integer; ``InsufficientBudgetError`` if it is too large to be listed."""
    if not count < LONGEST_SIDE:
        raise InsufficientBudgetError(
            f"noise of {count:.3g} cells a side is needed, more than {LONGEST_SIDE}; use coarser units"
        )
    return max(2, math.ceil(count))


# A family's curve as the profile of noise in the shape of a box: what searches look at for several numbers at once.


@dataclass(frozen=True, eq=False)  # not slotted: what every shift needs is kept
class BoxWeights:
    """P(x) ∝ half[max |x_i|] on integer vectors of ``dimension`` numbers; unlisted mass counts as lost."""

    half_weights: Floats
    dimension: int

    @classmethod
    def from_weights(cls, law: FloatWeights, dimension: int) -> BoxWeights:
        """Return box weights from the listed weights of one number; rising weights are lowered to be non-increasing."""
        falling = np.minimum.accumulate(law.half_weights)
        return cls(falling[: np.flatnonzero(falling)[-1] + 1], dimension)

    def integer_table(self) -> BoxTable:
        """Return the sampled integer table: its mixture of boxes has (half[r] − half[r+1]) (2r+1)^d at half-width r."""
        raw = raw_weights(self.half_weights)
        steps = [a - b for a, b in zip(raw, [*raw[1:], 0], strict=True)]
        widths = [step * (2 * r + 1) ** self.dimension for r, step in enumerate(steps)]
        return BoxTable(NoiseTable(*normalize_weights([2 * widths[0], *widths[1:]])), self.dimension)

    @cached_property
    def _width_probabilities(self) -> Floats:
        """P(R = r)."""
        steps = -np.diff(self.half_weights, append=0.0)
        sizes = (2.0 * np.arange(len(self.half_weights)) + 1) ** self.dimension
        found: Floats = steps * sizes / np.dot(steps, sizes)
        return found

    @property
    def mean_absolute(self) -> float:
        """E|X_i| of the listed weights."""
        r = np.arange(len(self.half_weights), dtype=np.float64)
        return float(np.dot(self._width_probabilities, r * (r + 1) / (2 * r + 1)))

    @property
    def zero_probability(self) -> float:
        """P(X_i = 0)."""
        return float(np.dot(self._width_probabilities, 1 / (2.0 * np.arange(len(self.half_weights)) + 1)))

    @cached_property
    def _point_probabilities(self) -> tuple[Floats, Floats]:
        """The probability of a point by its largest |x_i|, and its logarithm."""
        sizes = (2.0 * np.arange(len(self.half_weights)) + 1) ** self.dimension
        chances = self.half_weights / np.dot(-np.diff(self.half_weights, append=0.0), sizes)
        return chances, np.log(self.half_weights)

    def shift_loss_cells(self, shift: int) -> LossCells:
        """The loss of (X, X + shift·(1, …, 1)) in floats, for searching."""
        chances, logs = self._point_probabilities
        count = len(logs)
        there = np.arange(count)[:, None] + np.arange(-shift, shift + 1)
        many = self._shared_counts(shift)
        held = (there >= 0) & (there < count) & (many > 0)
        losses = logs[:, None] - logs[np.clip(there, 0, count - 1)]
        masses = many * chances[:, None]
        lost = float(masses[there >= count].sum())
        return LossCells.from_atoms(losses[held], masses[held], lost, lost)

    def _shared_counts(self, shift: int) -> Floats:
        """Return the number of points by distance from 0 and by the difference of the corner's distance to it."""
        here, apart = np.arange(len(self.half_weights))[:, None], np.arange(-shift, shift + 1)
        lengths = (2 * here + apart - shift + 1).astype(np.float64)
        many = shared_point_counts(lengths, self.dimension, one_end=False)
        ends = shared_point_counts(lengths[:, [0, -1]], self.dimension, one_end=True)
        many[:, [0, -1]] = ends
        return many
