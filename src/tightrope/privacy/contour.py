"""δ(ε) as a contour integral through the saddle point: full relative accuracy at any δ, cost free of k (theory §3).

δ(ε) = δ_∞ + (1/2πi) ∫ e^{K(z) − zε} / (z(z+1)) dz over Re z = c > 0, and 1 − δ(ε) is minus the same for −1 < c < 0,
which is better below the mean loss. The trapezoidal rule with step h aliases by Σ_{n≠0} e^{2πnc/h} δ₀(ε + 2πn/h), all
terms positive; each is bounded by Chernoff at every c', the best of which is taken, and h shrinks until the bound
passes. Lines and steps are taken from grids and kept: neighbouring ε share the moments, which are all that costs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from tightrope.errors import PrecisionError
from tightrope.privacy.composition import Composition
from tightrope.privacy.interval import Engine, Interval, outward
from tightrope.privacy.law import Complexes, Floats
from tightrope.privacy.saddle import Guess, guess

ROUND_OFF = 2.0**-53
TOLERANCE = 1e-14
"""Aliasing and truncation allowed, relative to δ."""
FIRST_BLOCK, LAST_BLOCK = 64, 1024
MOST_NODES = 1 << 17
UNDERFLOW = -760.0
"""E to this power is 0 in double precision, with room for rounding."""
SUBNORMAL = 1e-290
"""Below this numbers begin to lose digits."""
FINENESS = 6
"""Lines are at c = e^{i/6}, or at c = −1/(1 + e^{−(i + ½)/6})."""
MANY = 10**6
FAR = 3e5
"""By this Im z the integrand must have died for the integral to be tried."""
FARTHEST = 40 * FINENESS
SHRINK = 0.8
STEEPEST = 600.0
NEAR = 1.5 ** -np.arange(2.0, 18.0)
RATIOS = np.sort(np.concatenate([np.exp(np.linspace(-7, 2.5, 20)), 1 + NEAR, 1 - NEAR]))
"""Where the Chernoff bound is tried, as multiples of the saddle: dense around it, because K may rise like a wall."""
PARTS = np.concatenate([[1.0, 0.97, 0.9, 0.8, 0.65], NEAR])
"""And between the poles, as parts of the way to either."""
Place = tuple[bool, int]
"""Whether a line lies between the poles, and its index."""


def applies(total: Composition) -> bool:
    """Whether every moment is known and the integrand dies within the nodes we are ready to pay for.

    Of very many steps grids say little: there Chernoff's bounds, which need the moments alone, are the last resort.
    """
    if not total.laws or total.log_moment(np.array([1.0 + 0j])) is None:
        return False
    return sum(total.counts) > MANY or total.log_decay(0.01, FAR) < -34


@dataclass(frozen=True, slots=True, eq=False)
class Line:
    """The line Re z = c: K(c), and Chernoff data on other real points: log(e^{K(c')} c'^c' / (1+c')^{1+c'})."""

    c: float
    cumulant: float
    others: Floats
    log_bounds: Floats
    nodes: dict[int, Nodes] = field(default_factory=dict)

    def alias(self, epsilon: float, step: float) -> float:
        """Log of a bound on the aliasing, relative to e^{K(c) − cε}: both signs, geometric sums over n ≥ 1."""
        shift, total = 2 * math.pi / step, -math.inf
        bounds = self.log_bounds - self.others * epsilon - (self.cumulant - self.c * epsilon)
        for sign in (1, -1):
            good = (self.others - self.c) * sign > 1e-12 * abs(self.c)
            rate = np.abs(self.others[good] - self.c) * shift
            terms = bounds[good] - rate - np.log(-np.expm1(-rate))
            total = float(np.logaddexp(total, np.min(terms, initial=math.inf)))
        return total

    def step(self, epsilon: float) -> tuple[int, float, float]:
        """The widest step of the grid whose aliasing passes: its index, itself, its aliasing."""
        # The integral is about e^{height} / (|c(c+1)| · width), so ask for the tolerance relative to that.
        size = abs(self.c) * (1 + self.c)
        allowed = math.log(TOLERANCE) - math.log(size * 20.0 * (1 + abs(self.c)))
        for index in range(160):
            step = 4.0 * (1 + abs(self.c)) * SHRINK**index
            alias = self.alias(epsilon, step)
            if alias <= allowed:
                return index, step, alias
        raise PrecisionError(f"no step keeps the aliasing below {TOLERANCE} at saddle c={self.c:.3g}")


@dataclass(slots=True, eq=False)
class Nodes:
    """Nodes z = c + ihn of one line and step, K there and a bound on its error, as far as they were needed."""

    z: Complexes
    cumulant: Complexes
    error: Floats

    @classmethod
    def none(cls) -> Nodes:
        """No node yet."""
        return cls(np.zeros(0, dtype=np.complex128), np.zeros(0, dtype=np.complex128), np.zeros(0))

    def reach(self, total: Composition, c: float, step: float, count: int) -> None:
        """Know at least ``count`` nodes."""
        while len(self.z) < count:
            start = len(self.z)
            block = min(max(FIRST_BLOCK, start), LAST_BLOCK)
            z = np.asarray(c + 1j * step * np.arange(start, start + block), dtype=np.complex128)
            cumulant, error = total.moments(z)
            self.cumulant = np.concatenate([self.cumulant, cumulant])
            self.error = np.concatenate([self.error, error])
            self.z = np.concatenate([self.z, z])


@dataclass(frozen=True, slots=True, eq=False)
class Contour(Engine):
    """The integral, or another engine where it keeps no digit."""

    total: Composition
    instead: Engine
    lines: dict[Place, Line] = field(default_factory=dict)
    heights: dict[Place, float] = field(default_factory=dict)
    mirror: list[Contour] = field(default_factory=list)
    latest: dict[bool, int] = field(default_factory=dict)
    name = "contour"

    def delta(self, epsilon: float) -> Interval:
        infinite = self.total.infinite_mass
        if epsilon >= self.total.largest + self.total.slack:
            return self.total.infinite_bounds
        if self._vanishes(epsilon):
            return outward(infinite, math.ulp(0.0) + self._infinite_error)
        try:
            return self._within(epsilon)
        except PrecisionError:
            return self._otherwise(epsilon)

    def _otherwise(self, epsilon: float) -> Interval:
        """By the other engine, and by Chernoff's bounds, which always hold.

        δ₀ ≤ e^{K(c) − cε} c^c/(1+c)^{1+c} for c > 0, and 1 − δ ≤ e^{K(c) − cε} for −1 < c < 0.
        """
        least = self.total.infinite_bounds[0]
        above = self.ceiling(epsilon)
        if above - self.total.infinite_mass <= SUBNORMAL:
            return least, above
        between = self._saddle(epsilon, between=True)
        below = outward(-math.expm1(min(self._chernoff(between, epsilon), 0.0)), 8 * ROUND_OFF)[0]
        try:
            low, high = self.instead.delta(epsilon)
        except PrecisionError:
            low, high = least, 1.0
        low = max(low, below)
        return low, max(low, min(high, above))

    def ceiling(self, epsilon: float) -> float:
        """Chernoff's bound."""
        try:
            right = self._saddle(epsilon, between=False)
        except PrecisionError:
            return 1.0
        c, infinite = _at(right), self.total.infinite_mass
        peak = c * math.log(c) - (1 + c) * math.log1p(c)
        above = infinite + math.exp(min(self._chernoff(right, epsilon) + peak, 0.0))
        return outward(above, 8 * ROUND_OFF * above + self._infinite_error)[1]

    @property
    def _infinite_error(self) -> float:
        """Of the infinite mass, and of adding to it."""
        return self.total.infinite_bounds[1] - self.total.infinite_mass + 4 * ROUND_OFF * self.total.infinite_mass

    def guess(self, target: float) -> Guess | None:
        """From the saddle point."""
        rest = target - self.total.infinite_mass
        if not rest > 0:
            return None
        found = guess(lambda c: _moment(self.total, c.astype(np.complex128)).real, math.log(rest))
        if found is not None:
            self.latest.setdefault(False, round(math.log(found.rate) * FINENESS))
        return found

    def _chernoff(self, place: Place, epsilon: float) -> float:
        """K(c) − cε with all that rounding and the slack of the losses may have taken from it."""
        c = _at(place)
        cumulant, error = self.total.moments(np.array([complex(c)]))
        size = abs(float(cumulant[0].real)) + abs(c * epsilon) + 64
        return (
            float(cumulant[0].real) - c * epsilon + float(error[0]) + abs(c) * self.total.slack + 8 * ROUND_OFF * size
        )

    def _within(self, epsilon: float) -> Interval:
        """Above the mean loss δ − δ_∞; above the mean under Q 1 − δ; below it the reverse direction's δ."""
        if epsilon >= self._mean(0.0):
            value, error = self._integral(epsilon, between=False)
            infinite = self.total.infinite_mass
            low, high = outward(infinite + value, error + self._infinite_error)
            return max(low, self.total.infinite_bounds[0]), high
        if epsilon >= min(0.0, self._mean(-1.0)):
            value, error = self._integral(epsilon, between=True)
            return outward(1 - value, error + 4 * ROUND_OFF)
        if not self.mirror:
            reverse = self.total.reverse()
            self.mirror.append(Contour(reverse, self.instead))
        low, high = self.mirror[0]._within(-epsilon)
        base, factor = -math.expm1(epsilon), math.exp(epsilon)
        return outward(base + factor * low, 8 * ROUND_OFF)[0], outward(base + factor * high, 8 * ROUND_OFF)[1]

    def _mean(self, at: float) -> float:
        """About K'(0) = E_P L or K'(−1) = E_Q L: it only decides between methods."""
        ends = np.array([at - 0.01, at] if at == 0 else [at, at + 0.01])
        low, high = _moment(self.total, ends.astype(np.complex128)).real
        return float(high - low) / 0.01

    def _integral(self, epsilon: float, *, between: bool) -> tuple[float, float]:
        """The integral over the best line on one side of 0, positive, and a bound on its error."""
        line = self._line(self._saddle(epsilon, between=between))
        index, step, alias = line.step(epsilon)
        nodes = line.nodes.setdefault(index, Nodes.none())
        height = line.cumulant - line.c * epsilon
        value, wobble, rest = self._sum(line, step, nodes, epsilon)
        if not height < STEEPEST:
            raise PrecisionError(f"the integrand is as large as e^{height:.4g} at epsilon={epsilon!r}")
        # Losses off by the slack move δ by no more than slack · P(L > ε − slack), and Chernoff bounds that.
        moved = self.total.slack * math.exp(min(abs(line.c) * self.total.slack, 700.0))
        error = math.exp(alias) + rest + wobble + moved
        if not value > 2 * error:
            raise PrecisionError(
                f"no digit is kept at epsilon={epsilon!r}: {value!r} within {error!r} of e^{height:.4g}"
            )
        found = math.exp(height + math.log(value))  # e^height alone may be below double precision
        return found, found * (error / value + 4 * ROUND_OFF * (abs(height) + 4)) + 2 * math.ulp(0.0) * (
            found < SUBNORMAL
        )

    def _sum(self, line: Line, step: float, nodes: Nodes, epsilon: float) -> tuple[float, float, float]:
        """(h/2π) Σ over c + ihn: the value, its rounding, and a bound on what lies beyond the last node.

        Beyond |Im z| = T the integrand is at most decay(c, T)/|z(z+1)|, so the rest is below decay/T · (1 + h/T)/π.
        """
        if self.total.log_decay(line.c, step * MOST_NODES) > math.log(TOLERANCE):
            raise PrecisionError(f"the integrand does not die within {MOST_NODES} nodes of width {step:.3g}")
        value, wobble, start = 0.0, 0.0, 0
        height, sign = line.cumulant - line.c * epsilon, math.copysign(1.0, line.c)
        while start < MOST_NODES:
            stop = start + min(max(FIRST_BLOCK, start), LAST_BLOCK)
            nodes.reach(self.total, line.c, step, stop)
            z, cumulant = nodes.z[start:stop], nodes.cumulant[start:stop]
            terms = np.exp(cumulant - z * epsilon - height) / (z * (z + 1)) * (sign * step / math.pi)
            terms[0] /= 2 if start == 0 else 1
            value += math.fsum(terms.real)
            exponents = np.abs(cumulant) + np.abs(z) * abs(epsilon) + abs(height) + 64
            wobble += float(np.dot(np.abs(terms), 2 * ROUND_OFF * exponents + nodes.error[start:stop]))
            start, reach = stop, step * stop
            rest = math.exp(self.total.log_decay(line.c, reach)) / reach * (1 + step / reach) / math.pi
            if rest < TOLERANCE * abs(value):
                return value, wobble, rest
        raise PrecisionError(f"the integrand has not died after {MOST_NODES} nodes of width {step:.3g}")

    def _vanishes(self, epsilon: float) -> bool:
        """Whether some δ − δ_∞ ≤ e^{K(c) − cε} proves it to be below the smallest double."""
        for index in (0, FINENESS, 2 * FINENESS, 4 * FINENESS):
            cumulant, level = self._cumulant((False, index)), math.exp(index / FINENESS) * epsilon
            if cumulant - level < UNDERFLOW:
                return True
            if cumulant > level:
                return False
        return False

    def _cumulant(self, place: Place) -> float:
        """K at the place; ∞ where it is not finite."""
        if place not in self.heights:
            self.heights[place] = self._finite(_at(place))
        return self.heights[place]

    def _finite(self, c: float) -> float:
        try:
            value = float(_moment(self.total, np.array([complex(c)]))[0].real)
        except PrecisionError:
            return math.inf
        return value if math.isfinite(value) else math.inf

    def _saddle(self, epsilon: float, *, between: bool) -> Place:
        """The line that minimises K(c) − cε − log |c| − log(1 + c): descend from the last one in strides that halve."""

        def height(place: Place) -> float:
            c = _at(place)
            return self._cumulant(place) - c * epsilon - math.log(abs(c)) - math.log1p(c)

        here, stride = self.latest.get(between, 0), FINENESS if between in self.latest else 4 * FINENESS
        while stride:
            around = [i for i in (here - stride, here + stride) if abs(i) <= FARTHEST]
            best = min(around, key=lambda index: (height((between, index)), index))
            if (height((between, best)), best) < (height((between, here)), here):
                here = best
            else:
                stride //= 2
        if not math.isfinite(height((between, here))):
            raise PrecisionError(f"no saddle point was found at epsilon={epsilon!r}")
        self.latest[between] = here
        return between, here

    def _line(self, place: Place) -> Line:
        if place not in self.lines:
            c = _at(place)
            others = np.concatenate([c - c * PARTS, c - (1 + c) * PARTS]) if place[0] else c * RATIOS
            moments = _moment(self.total, others.astype(np.complex128)).real
            peaks = np.zeros_like(others) if place[0] else others * np.log(others) - (1 + others) * np.log1p(others)
            bounds = np.where(np.isfinite(moments), moments + peaks, np.inf)
            self.lines[place] = Line(c, self._cumulant(place), others, bounds)
        return self.lines[place]


def _at(place: Place) -> float:
    between, index = place
    return -1 / (1 + math.exp(-(index + 0.5) / FINENESS)) if between else math.exp(index / FINENESS)


def _moment(total: Composition, z: Complexes) -> Complexes:
    moment = total.log_moment(z)
    if moment is None:
        raise PrecisionError(f"one of the {len(total.laws)} laws has no moment function")
    return moment
