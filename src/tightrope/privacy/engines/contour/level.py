"""A composition with tails of some mass apart, and what its body and the paths through them add up to."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tightrope.privacy.engines.contour.contour_integral import Integral
from tightrope.privacy.engines.contour.jumps import MOST_JUMPS, Bodies, Jumps
from tightrope.privacy.engines.contour.line_integral import LineIntegral
from tightrope.privacy.laws.composition import Composition
from tightrope.privacy.laws.interval import Interval


@dataclass(frozen=True, slots=True, eq=False)
class Level:
    """The composition with tails of some mass apart: its body, and the paths with one or two losses from them."""

    body: Integral
    jumps: LineIntegral | None
    gone: float
    """A bound on the mass of all tails."""

    @classmethod
    def of(cls, total: Composition, mass: float, near: int | None) -> Level:
        """With tails of no more than this mass; saddles are ``near`` this index."""
        trimmed = total.trimmed(mass) if mass > 0 else total
        if all(one is other for one, other in zip(trimmed.laws, total.laws, strict=True)):
            return cls(Integral.of(total, None, near), None, 0.0)
        gone = math.fsum(
            count * (one.infinite_mass - other.infinite_mass)
            for one, other, count in zip(trimmed.laws, total.laws, total.counts, strict=True)
        )
        bodies = Bodies(trimmed)
        return cls(Integral.of(trimmed, bodies, near), LineIntegral.of(Jumps(bodies), near), gone * (1 + 1e-9) + 1e-300)

    def delta(self, epsilon: float, aim: float) -> Interval:
        """Bounds on δ less the infinite mass, for a δ of about e^{aim}."""
        value, error = self.body.lines.value(epsilon, between=False, aim=aim)
        if self.jumps is not None:
            # Where jumps are likely enough to count K has not reached its wall: some way below the bodies' saddle.
            self.jumps.right.begin(self.body.lines.right.latest[0] // 2)
            more, off = self.jumps.value(epsilon, between=False, aim=aim)
            value, error = value + more, error + off
        return value - error, value + error + self.gone ** (MOST_JUMPS + 1) / math.factorial(MOST_JUMPS + 1)
