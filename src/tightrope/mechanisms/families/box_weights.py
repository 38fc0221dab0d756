"""A family's curve as the profile of noise in the shape of a box: what searches look at for several numbers at once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tightrope.mechanisms.families.weights import Weights
from tightrope.mechanisms.tables.box_points import shared_floats
from tightrope.mechanisms.tables.box_table import BoxTable
from tightrope.mechanisms.tables.integer_floats import raw_weights
from tightrope.mechanisms.tables.integer_weights import weighed
from tightrope.mechanisms.tables.table import NoiseTable
from tightrope.numerics.arrays import Floats
from tightrope.privacy.laws.loss_cells import Cells


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
