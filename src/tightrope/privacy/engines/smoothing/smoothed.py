"""Laws whose moments are known but never die out: the integral of a loss that was smoothed a little, once for all.

Adding a normal loss of variance μ² to the sum (the loss of a μ-private Gaussian) raises δ by at most
μ/√(2π) · E e^{−x/2 − x²/2μ²}, x = L − ε, which the same nodes give: of order μ² times the density near ε, whatever the
number of losses (``docs/proofs/smoothed.md``). Heavy atoms of a few losses with densities are set apart and summed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from tightrope.errors import PrecisionError
from tightrope.numerics.rounding import ROUND_OFF, SUBNORMAL
from tightrope.privacy.engines.closer import closer
from tightrope.privacy.engines.engine import Engine
from tightrope.privacy.engines.saddle import Guess
from tightrope.privacy.engines.smoothing.alive import TooManyError
from tightrope.privacy.engines.smoothing.apart import Apart, set_apart
from tightrope.privacy.engines.smoothing.chernoff import Chernoff, Place, at
from tightrope.privacy.engines.smoothing.nodes import on_line, uniform_slack
from tightrope.privacy.engines.smoothing.smooth_line import REACH, Part, SmoothLine, smooth_line
from tightrope.privacy.laws.atoms import Atoms
from tightrope.privacy.laws.composition import Composition
from tightrope.privacy.laws.interval import Interval, outward
from tightrope.privacy.laws.law import LossLaw

FINEST = 1e-10
"""Relative gain aimed at."""
COARSEST = 1e-2
MOST_ANGLE = 4e8
"""Nodes go no farther than this over the largest atom: rounding of losses would say more than the nodes."""
MOST_NODES = 1 << 19
COARSE, MORE_NODES = 3e-9, 4
"""Where smoothing by more than this part is all that they buy, so many times the nodes are cheaper than a grid."""
DEAREST = 1 << 27
"""Nodes times atoms."""
MOST_KEPT = 4
ROUNDED = 1e-9
"""Relative error of ε that explains a bracket beside the largest loss: grids say no more there."""
FEW_STEPS = 1000
"""Of so few steps grids say most."""
INTEGRAL = 2000
"""The price of a moment that is an integral, in atoms."""
WIDE_SUM = 1e-7
"""Relative width of a sum with δ that is good enough where δ is the smaller part."""
WIDE_ALONE = 1e-6
"""Relative width from which on another engine is asked, too."""


@dataclass(frozen=True, slots=True, eq=False)
class Line:
    """One line: K(c), what that is off by, the smoothed sums and their aliases."""

    place: Place
    cumulant: float
    error: float
    deviation: float
    step: float
    smooth: float
    sums: SmoothLine


@dataclass(frozen=True, eq=False)
class Smoothed(Engine):
    """``instead`` answers where this one does not, and helps where it is wide."""

    total: Composition
    instead: Engine
    bounds: Chernoff
    lines: dict[Place, Line] = field(default_factory=dict)
    name = "smoothed contour"

    @cached_property
    def apart(self) -> Apart | None:
        """Made when it is needed: it may be the sums of a thousand losses."""
        return set_apart(self.total)

    @cached_property
    def mirror(self) -> Smoothed:
        """That of the reverse direction."""
        reverse = self.total.reverse()
        return Smoothed(reverse, self.instead, Chernoff(reverse))

    def delta(self, epsilon: float) -> Interval:
        return self._asked(epsilon, 0.0)

    def beside(self, epsilon: float, size: float) -> Interval:
        return self._asked(epsilon, size)

    def _asked(self, epsilon: float, size: float) -> Interval:
        """Of few steps the other engine knows most, and lines are what takes long."""
        known = self._always(epsilon)
        ways = (self.instead.delta, self._within)
        for way in ways if self._few else ways[::-1]:
            if known[1] - known[0] <= WIDE_SUM * size or self._settled(epsilon, *known):
                break
            known = _nearer(known, way, epsilon)
        return known

    def _settled(self, epsilon: float, low: float, high: float) -> bool:
        return (
            high - low <= WIDE_ALONE * high
            or high - self.total.infinite_mass <= SUBNORMAL
            or self._rounded(epsilon, low, high)
        )

    def _alone(self, epsilon: float) -> Interval:
        """Without the other engine."""
        low, high = self._always(epsilon)
        return (low, high) if self._settled(epsilon, low, high) else _nearer((low, high), self._within, epsilon)

    def _always(self, epsilon: float) -> Interval:
        """Bounds that always hold."""
        if epsilon >= self.total.largest + self.total.slack:
            return self.total.infinite_bounds
        least, most = self.total.infinite_bounds[0], self.ceiling(epsilon)
        if most - self.total.infinite_mass <= SUBNORMAL:
            return least, most
        return max(least, self._atoms_alone(epsilon)), most

    def _rounded(self, epsilon: float, low: float, high: float) -> bool:
        """Whether δ, which falls to δ_∞ at the largest loss, is known as well as ε can be told from that loss."""
        return (high - low) * self.bounds.room(epsilon) <= ROUNDED * abs(epsilon) * (high - self.total.infinite_mass)

    def _atoms_alone(self, epsilon: float) -> float:
        """A lower bound on δ: of the paths in which every loss is an atom."""
        if self.apart is None:
            return 0.0
        moved = self.total.slack + self.apart.sums.slack + 4 * ROUND_OFF * abs(epsilon)
        exact, error = self.apart.delta(epsilon + moved)
        infinite = self.total.infinite_bounds[0]
        return outward(infinite + exact * (1 - error), 4 * ROUND_OFF * (infinite + exact))[0]

    def ceiling(self, epsilon: float) -> float:
        return self.bounds.above(epsilon)

    def guess(self, target: float) -> Guess | None:
        rough, upper = self.bounds.guess(target), self.instead.upper if self._few else self._above
        try:
            return rough and closer(upper, rough, target, self.total.largest)
        except PrecisionError:
            return rough

    def _above(self, epsilon: float) -> float:
        return self._alone(epsilon)[1]

    @cached_property
    def _few(self) -> bool:
        """Whether the grid is asked first: of few steps with a moment that is an integral, for which lines are dear."""
        return sum(self.total.counts) <= FEW_STEPS and any(law.integrated for law in self.total.laws)

    def _within(self, epsilon: float) -> Interval:
        """From a deviation below the mean loss on δ; then 1 − δ; towards the mean under Q the reverse direction's δ."""
        pairs = zip(self.total.laws, self.total.counts, strict=True)
        slack = math.fsum(n * uniform_slack(law) for law, n in pairs) + 2 * ROUND_OFF * abs(epsilon)
        least, most = self.bounds.middle
        if epsilon >= most:
            low, high = self._finite(epsilon + slack)[0], self._finite(epsilon - slack)[1]
            infinite, error = self.total.infinite_mass, self._infinite_error
            return outward(infinite + low, error)[0], outward(infinite + high, error)[1]
        if epsilon > min(0.0, least):
            kept = self._finite(epsilon + slack, between=True)[1], self._finite(epsilon - slack, between=True)[0]
            return outward(1 - kept[0], 4 * ROUND_OFF)[0], outward(1 - kept[1], 4 * ROUND_OFF)[1]
        low, high = self.mirror._alone(-epsilon)
        base, factor = -math.expm1(epsilon), math.exp(epsilon)
        return outward(base + factor * low, 8 * ROUND_OFF)[0], outward(base + factor * high, 8 * ROUND_OFF)[1]

    @property
    def _infinite_error(self) -> float:
        """Of the infinite mass, and of adding to it."""
        return self.total.infinite_bounds[1] - self.total.infinite_mass + 4 * ROUND_OFF * self.total.infinite_mass

    def _finite(self, epsilon: float, *, between: bool = False) -> Interval:
        """δ − δ_∞, or 1 − δ between the poles."""
        line = self._line(epsilon, between=between)
        (value, off), (gain, wide) = line.sums.sums(epsilon)
        alias = math.exp(self.bounds.alias(line.place, epsilon, line.step, line.smooth))
        gain = max(gain, 0.0) + wide
        below, above = (off + alias, off + gain) if between else (off + alias + gain, off)
        height = line.cumulant - at(line.place) * epsilon
        if not height < 600:
            raise PrecisionError(f"the integrand is as large as e^{height:.4g} at epsilon={epsilon!r}")
        low, high = (math.exp(height) * max(end, 0.0) for end in (value - below, value + above))
        error = line.error + ROUND_OFF * (8 + 4 * abs(height) + 4 * abs(line.cumulant))
        low, high = low * (1 - min(error, 1.0)), high * math.exp(min(error, 600.0))
        if self.apart is None:
            return low, high
        exact, error = self.apart.kept(epsilon) if between else self.apart.delta(epsilon)
        return low + exact * (1 - error), high + exact * (1 + error)

    def _line(self, epsilon: float, *, between: bool) -> Line:
        """A kept line with few aliases, or a new one."""
        place = self.bounds.saddle(epsilon, between=between)
        known = self.lines.get(place)
        if known is not None and self.bounds.passes(place, epsilon, known.step, known.deviation):
            return known
        if len(self.lines) >= MOST_KEPT:
            self.lines.clear()
        self.lines[place] = self._made(place, epsilon)
        return self.lines[place]

    def _made(self, place: Place, epsilon: float) -> Line:
        """Smoothed as little as can be paid for."""
        c = at(place)
        laws = [on_line(law, c) for law in self.total.laws]
        cumulant = math.fsum(n * law.cumulant for law, n in zip(laws, self.total.counts, strict=True))
        error = math.fsum(n * law.error for law, n in zip(laws, self.total.counts, strict=True))
        deviation = math.sqrt(math.fsum(n * law.variance for law, n in zip(laws, self.total.counts, strict=True)))
        step = self.bounds.step(place, epsilon, deviation)
        apart = None if self.apart is None else self.apart.part(c, cumulant)
        parts = Part(laws, self.total.counts, 0.0), apart
        relative = max(FINEST, abs(c) * (1 + c) * (REACH * self._farthest / MOST_ANGLE) ** 2)
        while relative <= COARSEST:
            try:
                smooth = math.sqrt(relative / (abs(c) * (1 + c)))
                sums = smooth_line(c, parts, step, smooth, self._most(relative))
                return Line(place, cumulant, error, deviation, step, smooth, sums)
            except PrecisionError as caught:  # nodes grow no faster than 1/μ
                relative *= max(4.0, caught.ratio**2) if isinstance(caught, TooManyError) else 4.0
        raise PrecisionError(f"the sum of {sum(self.total.counts)} losses needs too many nodes at epsilon={epsilon!r}")

    @property
    def _farthest(self) -> float:
        """The largest atom, in nats."""
        finite = [float(np.max(np.abs(law.losses), initial=0.0)) for law in self.total.laws if isinstance(law, Atoms)]
        return max(finite, default=0.0)

    def _most(self, relative: float) -> int:
        """Nodes that can be paid for."""
        price = sum(40 + self._price(law) for law in self.total.laws)
        return min(MOST_NODES, DEAREST // price) * (MORE_NODES if relative > COARSE else 1)

    def _price(self, law: LossLaw) -> int:
        """Of a node; that of a moment that is an integral is paid only where grids say little."""
        if isinstance(law, Atoms):
            return len(law.losses)
        return INTEGRAL if self._few and law.integrated else 100


def _nearer(known: Interval, way: Callable[[float], Interval], epsilon: float) -> Interval:
    """With what one more way says, if it says anything."""
    try:
        low, high = way(epsilon)
    except PrecisionError:
        return known
    return max(known[0], low), min(known[1], high)


def smoothed(total: Composition, instead: Engine) -> Engine:
    """The engine, where every law knows its moments; else the other one."""
    known = all(isinstance(law, Atoms) or law.knows_moment for law in total.laws)
    return Smoothed(total, instead, Chernoff(total)) if known else instead
