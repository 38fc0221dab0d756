"""The loss of Laplace noise, whole or truncated: two atoms at ±ε and an exponential density between them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tightrope.numerics.arrays import Complexes, Floats
from tightrope.numerics.complex_log import log1p
from tightrope.numerics.rounding import OVERFLOW, ROUND_OFF
from tightrope.privacy.laws.flat import Flat
from tightrope.privacy.laws.law import LossLaw
from tightrope.privacy.laws.loss_cells import Cells, multiples

DOUBLINGS = 12


@dataclass(frozen=True, slots=True)
class LaplaceLaw(LossLaw):
    """Mass δ at +∞, ½ − δ at +ε, (½ − δ)e^{−ε} at −ε, density (s/4) e^{(l−ε)/2} between (theory §3); its own reverse.

    s = 1 + 2δ/(e^ε − 1). δ = 0 is the Laplace mechanism with ε = Δ/b; δ > 0 the truncated one.
    """

    epsilon: float
    delta: float = 0.0
    rounding: float = 0.0

    @property
    def infinite_mass(self) -> float:
        return self.delta

    @property
    def opposite_mass(self) -> float:
        return self.delta

    @property
    def largest(self) -> float:
        return self.epsilon

    @property
    def _excess(self) -> float:
        """S − 1."""
        return 2 * self.delta * math.exp(-self.epsilon) / -math.expm1(-self.epsilon) if self.delta else 0.0

    def reverse(self) -> LaplaceLaw:
        return self

    @property
    def flat(self) -> Flat:
        """Atoms (½ − δ) e^{−ε/2}, density (s/4) e^{−ε/2}."""
        middle = math.exp(-self.epsilon / 2)
        return Flat(self.epsilon, (0.5 - self.delta) * middle, (1 + self._excess) / 2 * self.epsilon * middle)

    def profile(self, epsilon: Floats) -> Floats:
        """δ + (½ − δ)(1 − u²) + (s/2)(1 − u)² with u = e^{(ε' − ε)/2} between ±ε; 1 − e^{ε'} below."""
        epsilon = np.asarray(epsilon, dtype=np.float64)
        gap = np.minimum(epsilon, self.epsilon) - self.epsilon
        lost = -np.expm1(gap / 2)
        inside = self.delta + (0.5 - self.delta) * -np.expm1(gap) + (1 + self._excess) / 2 * lost**2
        beyond = 0.0 - np.expm1(np.minimum(epsilon, 0.0)) + self.delta * np.exp(np.minimum(epsilon, 0.0))
        return np.where(epsilon < -self.epsilon, beyond, inside)

    def log_moment(self, z: Complexes) -> Complexes:
        """Log M(z), as log(1 + (M − 1)) where nothing overflows so that small ε keeps its digits."""
        if float(np.max(z.real)) * self.epsilon > OVERFLOW:
            return self._far(z)
        up, down = np.expm1(z * self.epsilon), np.expm1(-(z + 1) * self.epsilon)
        rest = ((z + 1) * up + z * down) / (2 * z + 1)
        rest = rest - self.delta * (up + down + 2) + self._excess / 2 * (up - down) / (2 * z + 1)
        return log1p(np.asarray(rest, dtype=np.complex128))

    def _far(self, z: Complexes) -> Complexes:
        """The same with e^{zε} pulled out."""
        down = np.exp(-(2 * z + 1) * self.epsilon)
        inner = (0.5 - self.delta) * (1 + down) + (1 + self._excess) / 2 * (1 - down) / (2 * z + 1)
        return np.asarray(z * self.epsilon + np.log(inner))

    def moment_error(self, z: Complexes, moment: Complexes) -> Floats:
        """The first-order terms of M − 1 cancel: what is left knows them to a rounding."""
        shrunk = np.exp(np.minimum(moment.real, 0.0))
        steep = np.maximum(1.0, (1 + np.abs(z)) / np.abs(2 * z + 1))
        small = 2 * np.abs(z) * np.abs(z + 1) / np.abs(z + 0.5) * self.epsilon
        return np.asarray(8 * ROUND_OFF * np.minimum(small, (4 + np.abs(z.real) * self.epsilon) * steep) / shrunk)

    @property
    def slack(self) -> float:
        """ε itself may be a rounded quotient."""
        return self.rounding * self.epsilon

    def decay(self, c: float, y: float) -> float:
        """The atoms do not decay, the density does, like 1/|2z + 1|; nearer by 1 − |φ(2y)|² ≤ 4 (1 − |φ(y)|²)."""
        down = math.exp(-(2 * c + 1) * self.epsilon)
        here = float(self.log_moment(np.array([complex(c)]))[0].real) - c * self.epsilon

        def beyond(reach: float) -> float:
            density = (1 + self._excess) / 2 / abs(complex(2 * c + 1, 2 * reach))
            top = (0.5 - self.delta + density) * (1 + down)
            return math.exp(min(0.0, math.log(top) - here))

        doubled = ((1 - beyond(y * 2.0**m) ** 2) / 4.0**m for m in range(DOUBLINGS))
        return math.sqrt(max(0.0, 1 - max(doubled)))

    def cells(self, step: float) -> Cells:
        return self.cut(multiples(-self.epsilon, self.epsilon, step))

    def cut(self, edges: Floats) -> Cells:
        """The two atoms, and intervals with their exact masses."""
        atom, ends = 0.5 - self.delta, np.array([self.epsilon, -self.epsilon])
        atoms = Cells.atoms(ends, np.array([atom, atom * math.exp(-self.epsilon)]), self.delta, self.delta)
        return atoms.joined(exponential_cells(self.epsilon, (1 + self._excess) / 2, edges))


def exponential_cells(epsilon: float, weight: float, edges: Floats) -> Cells:
    """Cells with these edges of the density (weight/2) e^{(l−ε)/2} on [−ε, ε].

    A cell of half-width t at a has P-mass w (e^t − 1) and e^a·Q-mass w (1 − e^{−t}), w = weight e^{(a−ε)/2}, so
    w · 4 sinh²(t/2) / (1 − e^{−2t}) goes to its upper end.
    """
    edges = np.unique(np.concatenate([[-epsilon, epsilon], edges[np.abs(edges) < epsilon]]))
    half = np.diff(edges) / 2
    scale = weight * np.exp((edges[:-1] - epsilon) / 2)
    high = scale * 4 * np.sinh(half / 2) ** 2 / -np.expm1(-2 * half)
    return Cells(edges[:-1], edges[1:], scale * np.expm1(half) - high, high, 0.0, 0.0)
