"""The atoms of a few losses with densities, set apart: every sum of them is known."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tightrope.numerics.rounding import ROUND_OFF
from tightrope.privacy.engines.smoothing.nodes import FiniteOnLine
from tightrope.privacy.engines.smoothing.smooth_line import Part
from tightrope.privacy.engines.sums.enumeration import enumerated
from tightrope.privacy.laws.atoms import Atoms
from tightrope.privacy.laws.composition import Composition
from tightrope.privacy.laws.law import LossLaw


@dataclass(frozen=True, slots=True, eq=False)
class Apart:
    """The sums in which every loss is an atom: their law, and the atoms of each law with counts."""

    sums: Atoms
    laws: tuple[Atoms, ...]
    counts: tuple[int, ...]

    @property
    def error(self) -> float:
        """Relative error of the masses."""
        return self.sums.inexact + ROUND_OFF * (16 + len(self.sums.losses))

    def delta(self, epsilon: float) -> tuple[float, float]:
        """Σ p (1 − e^{ε−l})₊ and its relative error."""
        return float(np.dot(self.sums.masses, -np.expm1(np.minimum(epsilon - self.sums.losses, 0.0)))), self.error

    def kept(self, epsilon: float) -> tuple[float, float]:
        """Σ p min(1, e^{ε−l}) and its relative error."""
        return float(np.dot(self.sums.masses, np.exp(np.minimum(epsilon - self.sums.losses, 0.0)))), self.error

    def part(self, c: float, cumulant: float) -> Part:
        """On the line through c, relative to e^{K(c)}."""
        laws = [FiniteOnLine.of(law, c) for law in self.laws]
        own = math.fsum(n * law.cumulant for law, n in zip(laws, self.counts, strict=True))
        return Part(laws, self.counts, own - cumulant)


def set_apart(total: Composition) -> Apart | None:
    """What can be set apart; None where some law has no atom, all are finite, or there are too many sums."""
    if all(isinstance(law, Atoms) for law in total.laws):
        return None
    laws = tuple(_atoms(law) for law in total.laws)
    if not all(len(law.losses) for law in laws):
        return None
    sums = enumerated(Composition(laws, total.counts))
    return None if sums is None else Apart(sums, laws, total.counts)


def _atoms(law: LossLaw) -> Atoms:
    """The atoms of a law, as one that is infinite elsewhere."""
    if isinstance(law, Atoms):
        return law
    cells = law.cells(math.inf)
    single = (cells.lower == cells.upper) & (cells.p > 0)
    masses = cells.p[single]
    rest = 1 - math.fsum(masses)
    return Atoms.gather(cells.lower[single], masses, infinite_mass=rest, opposite_mass=rest, slack=cells.slack)
