"""Distributions as float weights of 0, 1, 2, …: searches evaluate these, and integer tables are computed from them."""

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
"""Weights below e^{−90} are not listed: there an integer table of 128 bits has weight 0, too."""
EXTRA_LISTED_NATS = 25.0
"""Weights are listed down to e^{−25} times the mass that may be lost."""
MOST_ATOMS = 1024
"""Losses of a distribution with more cells are binned into about this many: sufficient for searches."""
NARROWEST_CELL = 1e-12
"""A cell of losses narrower than this many nats counts as one atom."""
MAX_CELLS = 1 << 17
"""Maximal number of cells on each side."""

Indices = np.ndarray[tuple[int], np.dtype[np.int64]]


@dataclass(frozen=True, slots=True)
class NoiseRequirement:
    """The requirements on one noise distribution.

    - ``shift``: how much one row shifts the answer.
    - ``part_rows``: numbers of rows that one person has in each group, in the worst case.
    - ``infinite_mass``: the probability of infinite loss that is allowed.
    """

    shift: int
    part_rows: tuple[int, ...]
    infinite_mass: float

    @property
    def listing_depth(self) -> float:
        """Nats below the largest weight at which the list ends."""
        return min(LISTED_NATS, EXTRA_LISTED_NATS - math.log(max(self.infinite_mass, 1e-300)))


@dataclass(frozen=True, eq=False)  # not slotted: cached properties
class FloatWeights:
    """Float weights of 0..N (each for x and −x).

    An unbounded distribution has a ``tail_ratio``: after the first ``head_length`` weights, each weight is
    ``tail_ratio`` times the one ``tail_width`` cells before.
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
    def half_probabilities(self) -> Floats:
        """P(X = x), x = 0..N, of the listed weights."""
        return self.half_weights / (2 * float(np.sum(self.half_weights)) - float(self.half_weights[0]))

    @property
    def mean_absolute(self) -> float:
        """E|X| of the listed weights."""
        return 2 * float(np.dot(self.half_probabilities, np.arange(len(self.half_weights))))

    @property
    def zero_probability(self) -> float:
        """P(X = 0)."""
        return float(self.half_probabilities[0])

    def shift_loss_cells(self, shift: int) -> LossCells:
        """Return the loss of (X, X + shift) in floats, for searching.

        Mass shifted past the listed weights counts as infinite loss. An unbounded distribution continues there by its
        ratio, so that all mass is included, however steep the distribution is.
        """
        p, logs, log_q, lost = self._shifted_probabilities(shift)
        q = np.exp(log_q)
        if len(p) <= MOST_ATOMS:
            return LossCells.from_atoms(logs - log_q, p, lost, lost)
        starts = np.arange(0, len(p), -(-len(p) // MOST_ATOMS))
        losses = logs - log_q
        is_log_concave = np.all(np.diff(self._two_sided_probabilities[1], 2) <= NARROWEST_CELL)  # up to rounding
        if is_log_concave:  # then losses are ascending
            lower, upper = losses[starts], losses[np.append(starts[1:], len(losses)) - 1]
        else:
            lower, upper = np.minimum.reduceat(losses, starts), np.maximum.reduceat(losses, starts)
        p, q = np.add.reduceat(p, starts), np.add.reduceat(q, starts)
        # The cells have the same masses under P and Q; if all losses of a cell are equal, its mass is at the upper end.
        upper = np.maximum(lower, upper)
        width = np.maximum(upper - lower, NARROWEST_CELL)
        high = p * np.minimum(np.maximum(np.expm1(np.log(q / p) + lower) / np.expm1(-width), 0.0), 1.0)
        high = np.where(upper - lower < NARROWEST_CELL, p, high)
        return LossCells(lower, upper, p - high, high, lost, lost)

    def _shifted_probabilities(self, shift: int) -> tuple[Floats, Floats, Floats, float]:
        """Return P(X = x), log P(X = x) and log P(X = x + shift) for x = −N.., and the mass of infinite loss."""
        probabilities, logs = self._two_sided_probabilities
        if self.tail_ratio is None:
            return probabilities[:-shift], logs[:-shift], logs[shift:], float(np.sum(probabilities[-shift:]))
        offsets = np.arange(shift)
        log_continued = logs[len(logs) - self.tail_width + offsets % self.tail_width] + math.log(self.tail_ratio) * (
            1 + offsets // self.tail_width
        )
        return probabilities, logs, np.concatenate([logs, log_continued])[shift:], 0.0

    @cached_property
    def _two_sided_probabilities(self) -> tuple[Floats, Floats]:
        """Probabilities of −N..N, and their logarithms; N is the last x with a positive probability."""
        half = self.half_probabilities[: np.flatnonzero(self.half_probabilities)[-1] + 1]
        probabilities = np.concatenate([half[:0:-1], half])
        return probabilities, np.log(probabilities)


def noise_cell_count(count: float) -> int:
    """Return a number of cells as an integer; ``InsufficientBudgetError`` if it is too large to be listed."""
    if not count < MAX_CELLS:
        raise InsufficientBudgetError(
            f"the noise would have {count:.3g} cells on each side, more than {MAX_CELLS}; use coarser units"
        )
    return max(2, math.ceil(count))


# The same for several numbers that share their noise: the weights depend on the largest coordinate.


@dataclass(frozen=True, eq=False)  # not slotted: cached properties
class BoxWeights:
    """P(x) ∝ half_weights[max |x_i|] on integer vectors of ``dimension`` numbers; unlisted mass counts as lost.

    With a ``tail_ratio``, all weights are its powers and the noise is unbounded: no mass is lost.
    """

    half_weights: Floats
    dimension: int
    tail_ratio: float | None = None

    @classmethod
    def from_weights(cls, weights: FloatWeights, dimension: int, *, bounded: bool = True) -> BoxWeights:
        """Return box weights from the listed weights of one number; rising weights are lowered to be non-increasing.

        Not ``bounded``: the weights of ``weights`` are powers of its tail ratio.
        """
        falling = np.minimum.accumulate(weights.half_weights)
        listed = falling[: np.flatnonzero(falling)[-1] + 1]
        return cls(listed, dimension, None if bounded else weights.tail_ratio)

    def integer_table(self) -> BoxTable:
        """Return the table that is sampled: boxes of half-width r with weights (half[r] − half[r+1]) (2r+1)^d."""
        if self.tail_ratio is not None:
            return BoxTable.from_ratio(self.tail_ratio, self.dimension)
        raw = raw_weights(self.half_weights)
        steps = [a - b for a, b in zip(raw, [*raw[1:], 0], strict=True)]
        widths = [step * (2 * r + 1) ** self.dimension for r, step in enumerate(steps)]
        return BoxTable(NoiseTable(*normalize_weights([2 * widths[0], *widths[1:]])), self.dimension)

    @cached_property
    def _width_probabilities(self) -> Floats:
        """The probability of each half-width r of the mixture of boxes."""
        steps = -np.diff(self.half_weights, append=0.0)
        sizes = (2.0 * np.arange(len(self.half_weights)) + 1) ** self.dimension
        probabilities: Floats = steps * sizes / np.dot(steps, sizes)
        return probabilities

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
        """The probability of a single point, by its largest |x_i|, and the logarithm of its unnormalized weight."""
        sizes = (2.0 * np.arange(len(self.half_weights)) + 1) ** self.dimension
        probabilities = self.half_weights / np.dot(-np.diff(self.half_weights, append=0.0), sizes)
        return probabilities, np.log(self.half_weights)

    def shift_loss_cells(self, shift: int) -> LossCells:
        """Return the loss of (X, X + shift·(1, …, 1)) in floats, for searching."""
        probabilities, logs = self._point_probabilities
        count = len(logs)
        shifted_radii = np.arange(count)[:, None] + np.arange(-shift, shift + 1)
        point_counts = self._shared_counts(shift)
        is_finite = (shifted_radii >= 0) & (shifted_radii < count) & (point_counts > 0)
        losses = logs[:, None] - logs[np.clip(shifted_radii, 0, count - 1)]
        masses = point_counts * probabilities[:, None]
        lost = float(masses[shifted_radii >= count].sum())
        if self.tail_ratio is None:
            return LossCells.from_atoms(losses[is_finite], masses[is_finite], lost, lost)
        largest = -shift * math.log(self.tail_ratio) * np.array([1.0, -1.0])
        return LossCells.from_atoms(
            np.append(losses[is_finite], largest), np.append(masses[is_finite], lost / (1 + np.exp(-largest))), 0.0, 0.0
        )

    def _shared_counts(self, shift: int) -> Floats:
        """Return the number of points x by r = max |x_i| (rows) and by max |x_i + shift| − r from −shift to shift."""
        radii, differences = np.arange(len(self.half_weights))[:, None], np.arange(-shift, shift + 1)
        lengths = (2 * radii + differences - shift + 1).astype(np.float64)
        counts = shared_point_counts(lengths, self.dimension, one_end=False)
        ends = shared_point_counts(lengths[:, [0, -1]], self.dimension, one_end=True)
        counts[:, [0, -1]] = ends
        return counts
