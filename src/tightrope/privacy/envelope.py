"""A proven bound on the modulus of a characteristic function beyond any point, from its values at a few.

Let φ be that of a law with density w in the loss l. Far out |φ(y)| ≤ P(cut away) + V/y, V the total variation of w on
what is kept. Between two points |φ| exceeds their mean by at most E min(2, d |L − m|), and the larger of them by at
most E min(2, d² (L − m)²/2), d half their distance: what interpolating each e^{iy(l − m)} linearly is off. Near 0
1 − |φ(2y)|² ≤ 4 (1 − |φ(y)|²), so a bound at 2^m y gives one at y (``docs/proofs/sampled-gaussian.md``).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import numpy as np

from tightrope.errors import PrecisionError
from tightrope.privacy.law import Complexes, Floats

NEAREST = 0.3
"""Points are taken from this many reciprocals of the deviation on."""
RATIO = 1.1
BLOCK = 8
MOST = 400
MORE = 8
"""Doublings that are tried beyond the first."""
SMALL = 0.4
"""Points are taken until the far bound is as small as this."""
ROUNDING = 1e-12


@dataclass(frozen=True, slots=True, eq=False)
class FarBound:
    """For every place to cut: the mass cut away and the total variation of the density on the rest, shape [n]."""

    masses: Floats
    variations: Floats

    def __call__(self, y: float) -> float:
        return min(1.0, float(np.min(self.masses + self.variations / y)))


@dataclass(frozen=True, slots=True, eq=False)
class Envelope:
    """Bounds on sup |φ| from each of ``points`` on, and far out."""

    points: Floats
    highest: Floats
    far: FarBound

    @classmethod
    def of(
        cls, modulus: Callable[[Floats], Floats], law: tuple[Floats, Floats], far: FarBound, farthest: float
    ) -> Self:
        """From a function that gives |φ| up to ``farthest``, and the law as masses at ascending losses."""
        masses, losses = law
        centre = float(losses[np.searchsorted(np.cumsum(masses), 0.5 * float(np.sum(masses)))])
        distances = np.abs(losses - centre)
        deviation = math.sqrt(max(float(np.dot(masses, distances**2)), 1e-300))
        points, values = _looked_up(modulus, NEAREST / deviation, far, farthest)
        halves = np.diff(points) / 2
        moved = [float(masses @ np.minimum(2.0, d * distances)) for d in halves]
        bent = [float(masses @ np.minimum(2.0, (d * distances) ** 2 / 2)) for d in halves]
        first, second = (values[:-1] + values[1:]) / 2 + moved, np.maximum(values[:-1], values[1:]) + bent
        between = np.minimum(first, second)
        highest = np.maximum.accumulate(np.append(between, far(float(points[-1])))[::-1])[::-1]
        return cls(points, np.minimum(highest, 1.0), far)

    @classmethod
    def on_line(
        cls,
        log_moment: Callable[[Complexes], Complexes],
        line: tuple[float, float],
        law: tuple[Floats, Floats],
        far: FarBound,
        farthest: float,
    ) -> Self:
        """Of |M(c + iy)| / M(c) for ``line`` = (c, K(c)), from K and the law as losses and logarithms of masses."""
        (c, at_c), (loss, log_weight) = line, law
        order = np.argsort(loss)
        tilted = np.exp(log_weight + c * loss - at_c)[order]

        def modulus(y: Floats) -> Floats:
            z = np.asarray(c + 1j * y, dtype=np.complex128)
            return np.asarray(np.exp(np.minimum(log_moment(z).real - at_c, 0.0)))

        return cls.of(modulus, (tilted, loss[order]), far, farthest)

    def beyond(self, y: float) -> float:
        """A bound on |φ(y')| for every y' ≥ y; it falls with y.

        The best of those at 2^m y: the first points may say nothing where a little mass lies far from the rest.
        """
        if not y > 0:
            return 1.0
        fewest = max(0, math.ceil(math.log2(float(self.points[0]) / y))) if y < self.points[0] else 0
        return min(self._doubled(y, doublings) for doublings in range(fewest, fewest + MORE))

    def _doubled(self, y: float, doublings: int) -> float:
        there = y * 2.0**doublings * (1 + 1e-12)
        place = int(np.searchsorted(self.points, there, side="right")) - 1
        bound = min(float(self.highest[max(place, 0)]), self.far(there / (1 + 1e-12)))
        return math.sqrt(1 - (1 - bound) * (1 + bound) * 0.25**doublings)


def _looked_up(
    modulus: Callable[[Floats], Floats], start: float, far: FarBound, farthest: float
) -> tuple[Floats, Floats]:
    """Points from ``start`` on and |φ| there, until the far bound takes over or they become too dear."""
    points, values = np.zeros(0), np.zeros(0)
    while len(points) < MOST:
        new = np.asarray(start * RATIO ** np.arange(len(points), len(points) + BLOCK), dtype=np.float64)
        try:
            found = modulus(new)
        except PrecisionError:
            break
        points, values = np.append(points, new), np.append(values, found + ROUNDING)
        if not points[-1] < farthest or far(float(points[-1])) <= SMALL:
            break
    return (points, values) if len(points) else (np.array([start]), np.ones(1))
