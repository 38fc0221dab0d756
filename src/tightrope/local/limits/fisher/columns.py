"""What a report can be that says most about shares: columns of a channel with two levels, 1 and e^ε, by size.

A report is a column w of the channel; its information, averaged over a prior, is convex and homogeneous in w, and so
largest where w is 1 on some categories and e^ε on d others (``docs/proofs/shares.md``). Divided by e^ε − 1 these are
``u + 1`` on d categories and ``u`` on the others, u = 1/(e^ε − 1).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tightrope.certificates.guarantee import Guarantee
from tightrope.numerics.arrays import Floats

SINGLE_SIZES = 256
"""Sizes d that are looked at one by one; larger ones in blocks of a relative width of 1/SINGLE_SIZES."""


@dataclass(frozen=True, slots=True)
class Columns:
    """All reports about ``m`` categories under (ε, 0, η): ``u`` = 1/(e^ε − 1), ``eta`` = 1 is no constraint."""

    m: int
    u: float
    eta: float

    @classmethod
    def of(cls, privacy: Guarantee, m: int) -> Columns:
        """Of a guarantee with δ = 0.

        >>> round(Columns.of(Guarantee(1.0), 3).u, 6)
        0.581977
        """
        free = privacy.total_variation >= math.tanh(privacy.epsilon / 2)
        return cls(m, inverse_growth(privacy.epsilon), 1.0 if free else privacy.total_variation)

    @property
    def blocks(self) -> tuple[Floats, Floats]:
        """First and last size of each block, shape [blocks]: all of 1 … m − 1, one by one up to ``SINGLE_SIZES``."""
        first = [1]
        while first[-1] < self.m:
            first.append(first[-1] + max(1, first[-1] // SINGLE_SIZES))
        starts = np.array(first[:-1], dtype=np.float64)
        return starts, np.append(starts[1:] - 1, float(self.m - 1))

    def apart(self, sizes: Floats) -> Floats:
        """|Pw|² of a column with so many high entries, P onto the directions that keep the sum: d (m − d)/m."""
        return np.asarray(sizes * (self.m - sizes) / self.m)

    def densest(self, first: Floats, last: Floats) -> Floats:
        """The largest ``apart(d)/(u + d/m)`` with d in each block: concave in d, so at its top or at the nearer end."""
        top = self.m * (math.sqrt(self.u * (1 + self.u)) - self.u)
        sizes = np.clip(top, first, last)
        return np.asarray(self.apart(sizes) / (self.u + sizes / self.m))


def inverse_growth(epsilon: float) -> float:
    """1/(e^ε − 1) without overflow, rounded down: towards the larger class. 0 for ε = ∞, ∞ for ε = 0."""
    return math.exp(-epsilon) / -math.expm1(-epsilon) * (1 - 1e-15) if epsilon > 0 else math.inf
