"""A law as float weights for 0, 1, 2, …: what searches look at, and what an integer table is made from."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tightrope.accounting.distributions.loss_cells import Cells
from tightrope.errors import BudgetRefused
from tightrope.mechanisms.discrete.box_table import BoxTable, shared_floats
from tightrope.mechanisms.discrete.integer_weights import weighed
from tightrope.mechanisms.discrete.noise_table import NoiseTable, raw_weights
from tightrope.numerics.arrays import Floats

LISTED_NATS = 90.0
"""Float weights are never listed beyond e^{−90}: there an integer table of 128 bits has nothing either."""
DEEPER = 25.0
"""Float weights are listed until e^{−25} of the mass that may be lost."""
MOST_ATOMS = 1024
"""Losses of a longer law are gathered in cells, about so many: searches need no more."""
NARROWEST_CELL = 1e-12
"""Nats between the ends of a cell below which it is one atom."""
LONGEST_SIDE = 1 << 17
"""Cells of one side at most."""

Indices = np.ndarray[tuple[int], np.dtype[np.int64]]


@dataclass(frozen=True, slots=True)
class Need:
    """What a noise law must hide: ``shift`` for one row, the parts of a worst person, and the mass it may lose."""

    shift: int
    parts: tuple[int, ...]
    infinite_mass: float

    @property
    def depth(self) -> float:
        """−log of the weight at which listing ends."""
        return min(LISTED_NATS, DEEPER - math.log(max(self.infinite_mass, 1e-300)))


@dataclass(frozen=True, eq=False)  # not slotted: what every shift needs is kept
class Weights:
    """Float weights of 0..N (each for x and −x).

    Endless laws say how they go on after the first ``head`` weights: ``ratio`` times for every ``width`` cells.
    """

    half: Floats
    head: int = 0
    ratio: float | None = None
    width: int = 1

    def table(self) -> NoiseTable:
        """The integer table that runs."""
        if self.ratio is None:
            return NoiseTable.from_probabilities(self.half)
        return NoiseTable.from_probabilities(self.half[: self.head], tail_ratio=self.ratio, tail_width=self.width)

    @cached_property
    def _shares(self) -> Floats:
        return self.half / (2 * float(np.sum(self.half)) - float(self.half[0]))

    @property
    def mean_absolute(self) -> float:
        """E|X| of the listed weights."""
        return 2 * float(np.dot(self._shares, np.arange(len(self.half))))

    @property
    def at_zero(self) -> float:
        """P(X = 0)."""
        return float(self._shares[0])

    def cells(self, shift: int) -> Cells:
        """The loss of (X, X + shift) in floats, for searching. What is shifted past the listed weights counts as lost;
        an endless law goes on there by its ratio, so that no mass is left out, however steep the law is.
        """
        p, logs, further, lost = self._shifted(shift)
        q = np.exp(further)
        if len(p) <= MOST_ATOMS:
            return Cells.atoms(logs - further, p, lost, lost)
        starts = np.arange(0, len(p), -(-len(p) // MOST_ATOMS))
        ends = self._ends(logs - further, starts)
        return _cells_with_losses(*ends, np.add.reduceat(p, starts), np.add.reduceat(q, starts), lost)

    def _shifted(self, shift: int) -> tuple[Floats, Floats, Floats, float]:
        """P(X = x), its logarithm and that of P(X = x + shift) for x = −N.., and the mass that is lost."""
        whole, logs = self._sides
        if self.ratio is None:
            return whole[:-shift], logs[:-shift], logs[shift:], float(np.sum(whole[-shift:]))
        beyond = np.arange(shift)
        further = logs[len(logs) - self.width + beyond % self.width] + math.log(self.ratio) * (1 + beyond // self.width)
        return whole, logs, np.concatenate([logs, further])[shift:], 0.0

    def _ends(self, losses: Floats, starts: Indices) -> tuple[Floats, Floats]:
        """The least and the largest loss of each cell; the losses of a log-concave law rise."""
        if self._concave:
            return losses[starts], losses[np.append(starts[1:], len(losses)) - 1]
        return np.minimum.reduceat(losses, starts), np.maximum.reduceat(losses, starts)

    @cached_property
    def _concave(self) -> bool:
        """Whether the logarithms are concave, but for rounding."""
        return bool(np.all(np.diff(self._sides[1], 2) <= NARROWEST_CELL))

    @cached_property
    def _sides(self) -> tuple[Floats, Floats]:
        """Probabilities of −N..N, N the last that is positive, and their logarithms."""
        shares = self._shares[: np.flatnonzero(self._shares)[-1] + 1]
        whole = np.concatenate([shares[:0:-1], shares])
        return whole, np.log(whole)


def _cells_with_losses(lower: Floats, upper: Floats, p: Floats, q: Floats, lost: float) -> Cells:
    """Cells that keep both masses; where no loss of a cell differs, all of it is at the end."""
    upper = np.maximum(lower, upper)
    width = np.maximum(upper - lower, NARROWEST_CELL)
    high = p * np.minimum(np.maximum(np.expm1(np.log(q / p) + lower) / np.expm1(-width), 0.0), 1.0)
    high = np.where(upper - lower < NARROWEST_CELL, p, high)
    return Cells(lower, upper, p - high, high, lost, lost)


def cells(count: float) -> int:
    """A number of cells, bounded: ``BudgetRefused`` where it is too large to be listed."""
    if not count < LONGEST_SIDE:
        raise BudgetRefused(f"noise of {count:.3g} cells a side is needed, more than {LONGEST_SIDE}; use coarser units")
    return max(2, math.ceil(count))


# A family's curve as the profile of noise in the shape of a box: what searches look at for several numbers at once.


@dataclass(frozen=True, eq=False)  # not slotted: what every shift needs is kept
class BoxWeights:
    """P(x) ∝ half[max |x_i|] on whole vectors of ``dimension`` numbers; what is not listed counts as lost."""

    half: Floats
    dimension: int

    @classmethod
    def of(cls, law: Weights, dimension: int) -> BoxWeights:
        """From the listed weights of a law of one number: they must not rise, and are lowered where they do."""
        falling = np.minimum.accumulate(law.half)
        return cls(falling[: np.flatnonzero(falling)[-1] + 1], dimension)

    def table(self) -> BoxTable:
        """The integer table that runs: its mixture of boxes has (half[r] − half[r+1]) (2r+1)^d at half-width r."""
        raw = raw_weights(self.half)
        steps = [a - b for a, b in zip(raw, [*raw[1:], 0], strict=True)]
        widths = [step * (2 * r + 1) ** self.dimension for r, step in enumerate(steps)]
        return BoxTable(NoiseTable(*weighed([2 * widths[0], *widths[1:]])), self.dimension)

    @cached_property
    def _widths(self) -> Floats:
        """P(R = r)."""
        steps = -np.diff(self.half, append=0.0)
        sizes = (2.0 * np.arange(len(self.half)) + 1) ** self.dimension
        found: Floats = steps * sizes / np.dot(steps, sizes)
        return found

    @property
    def mean_absolute(self) -> float:
        """E|X_i| of the listed weights."""
        r = np.arange(len(self.half), dtype=np.float64)
        return float(np.dot(self._widths, r * (r + 1) / (2 * r + 1)))

    @property
    def at_zero(self) -> float:
        """P(X_i = 0)."""
        return float(np.dot(self._widths, 1 / (2.0 * np.arange(len(self.half)) + 1)))

    @cached_property
    def _points(self) -> tuple[Floats, Floats]:
        """The probability of a point by its largest |x_i|, and its logarithm."""
        sizes = (2.0 * np.arange(len(self.half)) + 1) ** self.dimension
        chances = self.half / np.dot(-np.diff(self.half, append=0.0), sizes)
        return chances, np.log(self.half)

    def cells(self, shift: int) -> Cells:
        """The loss of (X, X + shift·(1, …, 1)) in floats, for searching."""
        chances, logs = self._points
        count = len(logs)
        there = np.arange(count)[:, None] + np.arange(-shift, shift + 1)
        many = self._shared(shift)
        held = (there >= 0) & (there < count) & (many > 0)
        losses = logs[:, None] - logs[np.clip(there, 0, count - 1)]
        masses = many * chances[:, None]
        lost = float(masses[there >= count].sum())
        return Cells.atoms(losses[held], masses[held], lost, lost)

    def _shared(self, shift: int) -> Floats:
        """How many points there are, by distance from 0 and by how much farther they are from the corner."""
        here, apart = np.arange(len(self.half))[:, None], np.arange(-shift, shift + 1)
        lengths = (2 * here + apart - shift + 1).astype(np.float64)
        many = shared_floats(lengths, self.dimension, one_end=False)
        ends = shared_floats(lengths[:, [0, -1]], self.dimension, one_end=True)
        many[:, [0, -1]] = ends
        return many
