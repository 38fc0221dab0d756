"""A feasible law for any sensitivity Δ from the optimum of sensitivity 1: plateaus as wide as Δ.

Y keeps the points at shift 1, U is uniform on 0..Δ−1, X = ΔY + U − ⌊Δ/2⌋. Adding d ≤ Δ to X adds 1 to Y with
probability d/Δ, told by U, and else nothing: X keeps the points at every shift 1..Δ. Its mean with its mirror image
does, too, and is symmetric and unimodal. It gives the scale of the linear program, and what a repair mixes in.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from tightrope.errors import InputError
from tightrope.mechanisms.tables.integer_optimum import optimal_table
from tightrope.numerics.arrays import Floats
from tightrope.randomness.choice import BITS, TOTAL

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tightrope.mechanisms.tables.table import NoiseTable

MOST_PROGRAM_CELLS = 20_000
"""Cells a side that a linear program is made for."""
DEEP = 1e-9
"""Endless laws are listed until their weights are below this part of p_0."""
STRICTER = 0.75
"""The law that is mixed in keeps this part of every δ."""


@dataclass(frozen=True, slots=True)
class Reference:
    """Whole-number weights of |x| = 0..N, some of them 0 at the end, and N."""

    weights: tuple[int, ...]

    @classmethod
    def of(cls, points: tuple[tuple[float, float], ...], sensitivity: int) -> Reference:
        """Keeps ``STRICTER`` of every point's δ at all shifts; raises ``InputError`` where it has too many cells."""
        if any(d > 0 and levels_of(e, d) * sensitivity > MOST_PROGRAM_CELLS for e, d in points):
            raise _too_wide(sensitivity)
        table = optimal_table([(epsilon, delta * STRICTER) for epsilon, delta in points])
        levels = list(_levels(table, MOST_PROGRAM_CELLS // sensitivity + 1))
        cells = sensitivity * (len(levels) + 1)
        if not cells <= MOST_PROGRAM_CELLS:
            raise _too_wide(sensitivity)
        levels += [0] * (cells // sensitivity + 2 - len(levels))
        half = sensitivity // 2
        sums = (
            levels[abs((x + half) // sensitivity)] + levels[abs((half - x) // sensitivity)] for x in range(cells + 1)
        )
        return cls(tuple(sums))

    @property
    def floats(self) -> Floats:
        """Weights relative to the first."""
        return np.array([w / self.weights[0] for w in self.weights])


def levels_of(epsilon: float, delta: float) -> float:
    """About how many sensitivities the noise of this point reaches (theory §4): A/Δ, δ > 0.

    >>> round(levels_of(1.0, 1e-6), 2), levels_of(0.0, 0.1)
    (13.66, 5.0)
    """
    if epsilon == 0:
        return 1 / (2 * delta)
    return math.log1p(math.expm1(min(epsilon, 700.0)) / (2 * delta)) / epsilon


def _too_wide(sensitivity: int) -> InputError:
    expected = f"small enough for noise of fewer than {MOST_PROGRAM_CELLS} cells"
    remedy = "measure in coarser units: round the answers to multiples of a unit first, and divide by it"
    return InputError("sensitivity", sensitivity, expected, remedy)


def _levels(table: NoiseTable, most: int) -> Iterator[int]:
    """P(Y = 0), P(Y = 1), … in units of 2⁻¹²⁸, down to ``DEEP``; at most ``most`` + 1 of them."""
    faint = int(table.centre * DEEP)
    for weight in islice(_weights(table), most + 1):
        if weight <= faint and table.tail is not None:
            return
        yield weight


def _weights(table: NoiseTable) -> Iterator[int]:
    yield table.centre
    yield from table.half
    if table.tail is None:
        return
    scale = table.tail.escape_in
    while scale:
        yield from (scale * cell >> BITS for cell in table.tail.block)
        scale = scale * table.tail.escape // TOTAL
