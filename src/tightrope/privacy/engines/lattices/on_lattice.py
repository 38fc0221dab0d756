"""Engines for laws with atoms on one lattice: the recurrence of a triple, and the tilted transform."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tightrope.numerics.arrays import Floats
from tightrope.privacy.engines.engine import Engine
from tightrope.privacy.engines.lattices.common_step import common_step, tolerance
from tightrope.privacy.engines.lattices.lattice import MOST_POINTS, TINY_MASS, Lattice, LatticePart
from tightrope.privacy.engines.saddle import Guess
from tightrope.privacy.engines.sums import three_point
from tightrope.privacy.laws.atoms import Atoms
from tightrope.privacy.laws.composition import Composition
from tightrope.privacy.laws.interval import Interval, joined, outward

Indices = np.ndarray[tuple[int], np.dtype[np.int64]]
FAINT_ATOM = 1e-22
"""Atoms below this mass do not decide the lattice."""

EXACT_POINTS = 2.0**52
"""Lattice points further out than this are not told apart."""


@dataclass(frozen=True, slots=True)
class Recurrence(Engine):
    """Copies of one three-point law, with an infinite mass."""

    law: three_point.ThreePoint
    infinite_mass: float
    slack: float
    inexact: float
    name = "recurrence"

    def delta(self, epsilon: float) -> Interval:
        low, high = self.deltas(np.array([epsilon]))
        return float(low[0]), float(high[0])

    def deltas(self, epsilons: Floats) -> tuple[Floats, Floats]:
        rest = 1e-15 + self.inexact
        low, high = self.law.delta(epsilons + self.slack), self.law.delta(epsilons - self.slack)
        low = low * (1 - self.law.error(low) - self.inexact) + self.infinite_mass * (1 - rest)
        high = high * (1 + self.law.error(high) + self.inexact) + self.infinite_mass * (1 + rest)
        return np.maximum(low - TINY_MASS, 0.0), np.minimum(high + TINY_MASS * (high > 0), 1.0)


@dataclass(frozen=True, slots=True)
class OnLattice(Engine):
    """A lattice sum, exact up to rounding and the slack of its losses."""

    lattice: Lattice
    slack: float
    inexact: float = 0.0
    """Relative error of the masses, all together."""
    name = "lattice"

    def delta(self, epsilon: float) -> Interval:
        high, error = self.lattice.delta(epsilon - self.slack)
        low, other = self.lattice.delta(epsilon + self.slack) if self.slack else (high, error)
        return joined(low, high, max(error, other) + self.inexact * high)

    def upper(self, epsilon: float) -> float:
        high, error = self.lattice.delta(epsilon - self.slack)
        return outward(high, error + self.inexact * high)[1]

    def guess(self, target: float) -> Guess | None:
        return self.lattice.guess(target)


@dataclass(frozen=True, slots=True)
class BothSides(Engine):
    """One lattice above and one below."""

    above: Lattice
    below: Lattice
    slack: float
    inexact: float
    name: str

    def delta(self, epsilon: float) -> Interval:
        low, under = self.below.delta(epsilon + self.slack)
        return outward(low, under + self.inexact * low)[0], self.upper(epsilon)

    def upper(self, epsilon: float) -> float:
        high, over = self.above.delta(epsilon - self.slack)
        return outward(high, over + self.inexact * high)[1]

    def guess(self, target: float) -> Guess | None:
        return self.above.guess(target)


def on_lattice(total: Composition) -> Engine | None:
    """Recurrence for one triple, lattice for atoms on a common lattice; None where there is none.

    Atoms off the lattice that hold next to nothing (rounded tails of integer tables) count as lost above, and as
    nothing below.
    """
    laws = [law for law in total.laws if isinstance(law, Atoms)]
    if len(laws) < len(total.laws):
        return None
    step = common_step([law.losses[law.masses > FAINT_ATOM] for law in laws])
    if step is None or not _extent(laws, total.counts) <= MOST_POINTS * step:
        return None
    if not _farthest(laws, total.counts) <= EXACT_POINTS * step:
        return None
    placed = [_placed(law, step) for law in laws]
    counts = total.counts
    slack = total.slack + math.fsum(n * moved for (*_, moved, _), n in zip(placed, counts, strict=True))
    stray = math.fsum(n * off for (*_, off), n in zip(placed, counts, strict=True))
    parts = tuple(
        LatticePart.of(offsets, masses, n, law.infinite_mass)
        for (offsets, masses, *_), law, n in zip(placed, laws, counts, strict=True)
    )
    infinite, inexact = total.infinite_mass, total.inexact
    if stray > 0:
        above, below = (Lattice(step, parts, infinite + lost) for lost in (stray, 0.0))
        return BothSides(above, below, slack, inexact, "lattice")
    triple = _recurrence(parts, step, infinite, (slack, inexact))
    return triple or OnLattice(Lattice(step, parts, infinite), slack, inexact)


def _extent(laws: list[Atoms], counts: tuple[int, ...]) -> float:
    """How far the sum's losses that matter lie apart: all of them, or 80 deviations."""
    spans = [float(law.losses[-1] - law.losses[0]) if len(law.losses) else 0.0 for law in laws]
    variances = [float(np.dot(law.masses, law.losses**2)) for law in laws]
    deviation = math.sqrt(math.fsum(n * v for n, v in zip(counts, variances, strict=True)))
    return min(math.fsum(n * span for n, span in zip(counts, spans, strict=True)), 80 * deviation)


def _farthest(laws: list[Atoms], counts: tuple[int, ...]) -> float:
    """How far from 0 the sum may be, that of atoms of next to no mass included."""
    ends = [float(np.max(np.abs(law.losses), initial=0.0)) for law in laws]
    return math.fsum(n * end for n, end in zip(counts, ends, strict=True))


def _placed(law: Atoms, step: float) -> tuple[Indices, Floats, float, float]:
    """Lattice points and masses, the furthest that an atom was moved, and the mass of what is off the lattice."""
    nearest = np.rint(law.losses / step)
    off = np.abs(law.losses - nearest * step)
    on = off <= tolerance(step, law.losses)
    moved = float(np.max(off[on], initial=0.0))
    return nearest[on].astype(np.int64), law.masses[on], moved, math.fsum(law.masses[~on])


def _recurrence(
    parts: tuple[LatticePart, ...], step: float, infinite: float, errors: tuple[float, float]
) -> Engine | None:
    """One symmetric law on −step, 0, +step; ``errors`` are the slack and what masses are off."""
    masses = {int(j): float(m) for j, m in zip(parts[0].offsets, parts[0].masses, strict=True)}
    if len(parts) > 1 or not {-1, 1} <= set(masses) <= {-1, 0, 1} or parts[0].count > three_point.MOST_COPIES:
        return None
    if not math.isclose(masses[-1], masses[1] * math.exp(-step), rel_tol=1e-15):
        return None
    law = three_point.three_point(step, (masses[1], masses.get(0, 0.0)), parts[0].missing, parts[0].count)
    return Recurrence(law, infinite, *errors)
