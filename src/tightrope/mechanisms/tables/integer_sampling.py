"""Exact draws from a table: one 64-bit word each, a second one where it ties; the tail by blocks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from tightrope.mechanisms.tables.tails import Tail
from tightrope.randomness.choice import WORDS_AT_ONCE, Choice
from tightrope.randomness.loops import Loop, choose, compiled
from tightrope.randomness.source import Source


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
