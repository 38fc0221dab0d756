"""What a trimmed law lacks: the paths with one or two losses from its tails (theory §3.1, ``docs/proofs/contour.md``).

With each step's law split into a body and a far tail, M_i = B_i + T_i, a composition is Σ_j B e_j(T/B), B = Π B_i and
e_j the elementary symmetric sums over steps: one term for each number j of losses from tails. At small sampling rates
δ consists of j = 0 and a little of j = 1 and 2, with a saddle of their own; all other paths have mass t³/3! at most, t
the mass of all tails.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from tightrope.numerics.arrays import Complexes, Floats
from tightrope.privacy.laws.composition import Composition

MOST_JUMPS = 2
"""Jumps that are counted."""
BLOCKS_KEPT = 64
"""Blocks of real points whose moments are kept, since bodies and jumps ask for the same ones."""
STEEPEST_RATIO = 300.0
"""Logs of ratios and errors beyond this say nothing, and are cut: products of two stay finite."""
NOT_KNOWN = 1e300
"""The logarithm of an upper bound where there is none."""
Each = list[tuple[Complexes, Floats]]


@dataclass(frozen=True, slots=True, eq=False)
class Bodies:
    """Source of moments of a trimmed composition: no loss comes from a tail."""

    total: Composition
    kept: dict[bytes, Each] = field(default_factory=dict)

    @property
    def slack(self) -> float:
        return self.total.slack

    def each(self, z: Complexes) -> Each:
        """K of every law, and its error."""
        key = z.tobytes()
        if key in self.kept:
            return self.kept[key]
        found = [law.enclosed(z) for law in self.total.laws]
        known = [one for one in found if one is not None]
        if not np.any(z.imag):
            while len(self.kept) >= BLOCKS_KEPT:
                self.kept.pop(next(iter(self.kept)))
            self.kept[key] = known
        return known

    def moments(self, z: Complexes) -> tuple[Complexes, Floats]:
        return self.summed(self.each(z))

    def summed(self, each: Each) -> tuple[Complexes, Floats]:
        """All steps together."""
        value, error = np.zeros_like(each[0][0]), np.zeros_like(each[0][1])
        for (one, off), count in zip(each, self.total.counts, strict=True):
            value, error = value + count * one, error + count * off
        return value, error

    def log_decay(self, c: float, y: float) -> float:
        return self.total.log_decay(c, y)


@dataclass(frozen=True, slots=True, eq=False)
class Jumps:
    """Source of moments of the paths with one or two losses from tails: K = log B + log(e_1 + e_2)."""

    bodies: Bodies

    @property
    def slack(self) -> float:
        return self.bodies.slack

    def moments(self, z: Complexes) -> tuple[Complexes, Floats]:
        """The error of log(e_1 + e_2) is that of a sum relative to what is left of it."""
        each = self.bodies.each(z)
        total, error = self.bodies.summed(each)
        ratios, wrong, counts = self._ratios(z, each)
        top = np.max(ratios.real, axis=0)
        parts = np.exp(ratios - top)
        sizes = np.abs(parts)
        single, square, size = counts @ parts, counts @ parts**2, counts @ sizes
        off = np.sum(sizes * wrong * counts[:, None], axis=0) + 1e-14 * size
        scale = np.exp(np.minimum(top, STEEPEST_RATIO))
        value = single + scale * (single**2 - square) / 2
        lost = off * (1 + scale * size)
        relative = lost / np.maximum(np.abs(value), 1e-300)
        unknown = (top >= STEEPEST_RATIO) | (np.max(wrong, axis=0) >= math.expm1(STEEPEST_RATIO))
        beyond = unknown | (relative >= 0.5)
        log = np.log(np.where(beyond, np.abs(value) + lost + 1e-300, value)) + np.where(unknown, NOT_KNOWN, top)
        return total + log, error + np.where(beyond, np.inf, -np.log1p(-np.where(beyond, 0.0, relative)))

    def _ratios(self, z: Complexes, each: Each) -> tuple[Complexes, Floats, Floats]:
        """Of the laws, log T_i/B_i [laws, n], their relative errors, and counts."""
        ratios, errors, counts = [], [], []
        for law, count, body in zip(self.bodies.total.laws, self.bodies.total.counts, each, strict=True):
            tail = law.tail(z)
            if tail is not None:
                ratios.append(tail[0] - body[0])
                errors.append(np.expm1(np.minimum(tail[1] + body[1], STEEPEST_RATIO)))
                counts.append(float(count))
        return np.array(ratios), np.array(errors), np.array(counts)

    def log_decay(self, c: float, y: float) -> float:
        """A tail's moment is largest on the real axis; the two bodies that it may stand for no longer die."""
        each = [math.log(max(law.decay(c, y), 5e-324)) for law in self.bodies.total.laws]
        return min(0.0, self.bodies.log_decay(c, y) - MOST_JUMPS * min(each))
