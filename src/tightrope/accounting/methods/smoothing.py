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

from tightrope.accounting.bounds import Interval, outward
from tightrope.accounting.distributions.atoms import Atoms
from tightrope.accounting.distributions.base import LossLaw
from tightrope.accounting.distributions.composition import Composition
from tightrope.accounting.methods.enumeration import enumerated
from tightrope.accounting.methods.method import Engine, Guess, closer
from tightrope.accounting.methods.smoothing_line import (
    REACH,
    FiniteOnLine,
    Part,
    SmoothLine,
    TooManyError,
    on_line,
    smooth_line,
    uniform_slack,
)
from tightrope.errors import PrecisionError
from tightrope.numerics.arrays import Floats
from tightrope.numerics.rounding import ROUND_OFF, SUBNORMAL

# The atoms of a few losses with densities, set apart: every sum of them is known.


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

    def smoothed_delta(self, epsilon: float) -> tuple[float, float]:
        """Σ p min(1, e^{ε−l}) and its relative error."""
        return float(np.dot(self.sums.masses, np.exp(np.minimum(epsilon - self.sums.losses, 0.0)))), self.error

    def line_part(self, c: float, cumulant: float) -> Part:
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


# Saddle points on a grid, Chernoff's bounds, and the aliases that they bound (``docs/proofs/contour.md``).

Place = tuple[bool, int]
"""Whether a line lies between the poles, and its index."""
LINES_A_UNIT = 6
"""Lines are at c = e^{i/6}, or at c = −1/(1 + e^{−(i + ½)/6})."""
FARTHEST_PLACE = 40 * LINES_A_UNIT
TOLERANCE = 1e-11
"""Aliases allowed, relative to δ."""
SPARE = 4.0
"""Nats by which aliases may be larger where a line was made for another ε."""
ALIAS_ROUNDING = 1e-9
SHRINK = 0.85
STEP_DIGITS = 16
"""Binary digits of a step: so that its multiples are exact."""
NEAR_ENDS = 1.5 ** -np.arange(2.0, 18.0)
RATIOS = np.sort(np.concatenate([np.exp(np.linspace(-7, 2.5, 20)), 1 + NEAR_ENDS, 1 - NEAR_ENDS]))
"""Where the bound is tried, as multiples of the saddle: dense around it, because K may rise like a wall."""
PARTS = np.concatenate([[1.0, 0.97, 0.9, 0.8, 0.65], NEAR_ENDS])
"""And between the poles, as parts of the way to either."""


@dataclass(frozen=True, slots=True, eq=False)
class Chernoff:
    """Of one composed direction."""

    total: Composition
    heights: dict[Place, float] = field(default_factory=dict)
    others: dict[Place, tuple[Floats, Floats]] = field(default_factory=dict)
    latest: dict[bool, int] = field(default_factory=dict)

    def cumulant(self, place: Place) -> float:
        """K at the place, about; ∞ where it is not finite."""
        if place not in self.heights:
            self.heights[place] = float(self._real(np.array([at(place)]))[0])
        return self.heights[place]

    @property
    def middle(self) -> tuple[float, float]:
        """About where 1 − δ is small beside δ and beside e^ε: a deviation inside the means under Q and P.

        It only decides between methods. The squared deviation is about the difference of both means.
        """
        ends = self._real(np.array([-1.0, -0.99, -0.01, 0.0])).tolist()
        under_q, under_p = (ends[1] - ends[0]) / 0.01, (ends[3] - ends[2]) / 0.01
        deviation = math.sqrt(max(under_p - under_q, 0.0))
        return under_q + deviation, under_p - deviation

    def saddle(self, epsilon: float, *, between: bool) -> Place:
        """The place that minimises K(c) − cε − log |c| − log(1 + c): descend from the last in strides that halve."""

        def height(index: int) -> float:
            c = at((between, index))
            return self.cumulant((between, index)) - c * epsilon - math.log(abs(c)) - math.log1p(c)

        here, stride = self.latest.get(between, 0), LINES_A_UNIT if between in self.latest else 4 * LINES_A_UNIT
        while stride:
            around = [i for i in (here - stride, here + stride) if abs(i) <= FARTHEST_PLACE]
            best = min(around, key=lambda index: (height(index), index))
            if (height(best), best) < (height(here), here):
                here = best
            else:
                stride //= 2
        if not math.isfinite(height(here)):
            raise PrecisionError(f"no saddle point was found at epsilon={epsilon!r}")
        self.latest[between] = here
        return between, here

    def above(self, epsilon: float) -> float:
        """δ ≤ δ_∞ + e^{K(c) − cε} m, (1 − e^{ε−L})₊ ≤ m e^{c(L−ε)}: m = c^c/(1+c)^{1+c}, or 1 − e^{ε−l} where L ≤ l."""
        try:
            place = self.saddle(epsilon, between=False)
            c = at(place)
            cumulant, error = self.total.moments(np.array([complex(c)]))
        except PrecisionError:
            return 1.0
        known, infinite = float(cumulant[0].real), self.total.infinite_bounds[1]
        peak = c * math.log(c) - (1 + c) * math.log1p(c)
        peak = min(peak, math.log(-math.expm1(-self.room(epsilon)))) if self.room(epsilon) > 0 else peak
        rounding = float(error[0]) + 16 * ROUND_OFF * (abs(known) + abs(c * epsilon) + abs(peak) + 64)
        found = known - c * epsilon + peak + c * self.total.slack + rounding
        return outward(infinite + math.exp(min(found, 0.0)), 8 * ROUND_OFF)[1]

    def room(self, epsilon: float) -> float:
        """How far the largest loss is above ε, at most."""
        room = self.total.largest - epsilon
        return room + self.total.slack + 4 * ROUND_OFF * abs(epsilon) if room < math.inf else math.inf

    def guess(self, target: float) -> Guess | None:
        """Where the best bound is ``target``: the least (K(c) + log(c^c/(1+c)^{1+c}) − log target)/c."""
        rest = target - self.total.infinite_mass
        if not rest > 0:
            return None
        places = [(False, index) for index in range(-FARTHEST_PLACE // 4, FARTHEST_PLACE + 1, LINES_A_UNIT)]
        best = min(places, key=lambda place: self._chernoff_excess(place, rest))
        near = [(False, best[1] + i) for i in range(1 - LINES_A_UNIT, LINES_A_UNIT)]
        best = min(near, key=lambda place: self._chernoff_excess(place, rest))
        found = self._chernoff_excess(best, rest)
        if not 0 < found < math.inf:
            return None
        self.latest.setdefault(False, best[1])
        return Guess(found, at(best)) if found < self.total.largest else self._beside_largest(best, rest)

    def _beside_largest(self, place: Place, target: float) -> Guess | None:
        """Where P(L = l) (1 − e^{ε−l}) is ``target``, l the largest loss: that mass is about M(c) e^{−cl} far out."""
        part = target * math.exp(min(at(place) * self.total.largest - self.cumulant(place), 700.0))
        room = -math.log1p(-part) if part < 1 else math.inf
        return Guess(self.total.largest - room, 1 / room) if 0 < room < self.total.largest else None

    def _chernoff_excess(self, place: Place, target: float) -> float:
        c = at(place)
        return (self.cumulant(place) + c * math.log(c) - (1 + c) * math.log1p(c) - math.log(target)) / c

    def alias(self, place: Place, epsilon: float, step: float, smooth: float = 0.0) -> float:
        """Log of a bound on the aliases, relative to e^{K(c) − cε}: both signs, geometric sums over n ≥ 1.

        ``smooth``: the deviation of a normal loss that was added, and is not in K(c).
        """
        c, shift, total = at(place), 2 * math.pi / step, -math.inf
        others, bounds = self._others(place)
        bounds = bounds + smooth**2 * (others + others**2) / 2 - others * epsilon - (self.cumulant(place) - c * epsilon)
        for sign in (1, -1):
            good = (others - c) * sign > 1e-12 * abs(c)
            rate = np.abs(others[good] - c) * shift
            terms = bounds[good] - rate - np.log(-np.expm1(-rate))
            total = float(np.logaddexp(total, np.min(terms, initial=math.inf)))
        return total + ALIAS_ROUNDING

    def step(self, place: Place, epsilon: float, deviation: float) -> float:
        """A wide step whose aliases pass, with few binary digits."""
        c = at(place)
        for index in range(200):
            # About the value, with `DIGITS` binary digits.
            value = 4.0 * (1 + abs(c)) * SHRINK**index
            mantissa, exponent = math.frexp(value)
            step = math.ldexp(math.floor(math.ldexp(mantissa, STEP_DIGITS)), exponent - STEP_DIGITS)
            if self.passes(place, epsilon, step, deviation, 0.0):
                return step
        raise PrecisionError(f"no step keeps the aliases below {TOLERANCE} at c={c:.3g}")

    def passes(self, place: Place, epsilon: float, step: float, deviation: float, spare: float = SPARE) -> bool:
        """Whether the aliases are small beside the integral.

        That is about e^{height} / (|c(c+1)| √(2π) (deviation + 1/|c|)), the deviation being that of the tilted sum.
        """
        c = at(place)
        size = -math.log(abs(c) * (1 + c) * 2.5 * (deviation + 1 / abs(c)))
        return self.alias(place, epsilon, step) <= math.log(TOLERANCE) + size + spare

    def _others(self, place: Place) -> tuple[Floats, Floats]:
        """Other real points and log(e^{K(c')} c'^c' / (1+c')^{1+c'}) there; between the poles the last is 1."""
        if place not in self.others:
            c = at(place)
            others = np.sort(np.concatenate([c - c * PARTS, c - (1 + c) * PARTS])) if place[0] else c * RATIOS
            peaks = np.zeros_like(others) if place[0] else others * np.log(others) - (1 + others) * np.log1p(others)
            self.others[place] = others, self._real(others) + peaks
        return self.others[place]

    def _real(self, c: Floats) -> Floats:
        """K on the real axis, about; ∞ where it is not finite or not known."""
        moments = self._moments(c)
        if moments is None:
            parts = [self._moments(c[i : i + 1]) for i in range(len(c))] if len(c) > 1 else [None]
            moments = np.concatenate([np.full(1, np.inf) if part is None else part for part in parts])
        return np.where(np.isfinite(moments), moments, np.inf)

    def _moments(self, c: Floats) -> Floats | None:
        try:
            moments = self.total.log_moment(c.astype(np.complex128))
        except PrecisionError:
            return None
        return None if moments is None else np.asarray(moments.real)


def at(place: Place) -> float:
    """C of a place."""
    between, index = place
    return -1 / (1 + math.exp(-(index + 0.5) / LINES_A_UNIT)) if between else math.exp(index / LINES_A_UNIT)


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
        return self._narrowest_interval(epsilon, 0.0)

    def delta_to_precision(self, epsilon: float, size: float) -> Interval:
        return self._narrowest_interval(epsilon, size)

    def _narrowest_interval(self, epsilon: float, size: float) -> Interval:
        """Of few steps the other engine knows most, and lines are what takes long."""
        known = self._always(epsilon)
        ways = (self.instead.delta, self._within)
        for way in ways if self._few else ways[::-1]:
            if known[1] - known[0] <= WIDE_SUM * size or self._is_narrow_enough(epsilon, *known):
                break
            known = _nearer(known, way, epsilon)
        return known

    def _is_narrow_enough(self, epsilon: float, low: float, high: float) -> bool:
        return (
            high - low <= WIDE_ALONE * high
            or high - self.total.infinite_mass <= SUBNORMAL
            or self._rounded(epsilon, low, high)
        )

    def _alone(self, epsilon: float) -> Interval:
        """Without the other engine."""
        low, high = self._always(epsilon)
        return (
            (low, high) if self._is_narrow_enough(epsilon, low, high) else _nearer((low, high), self._within, epsilon)
        )

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
        exact, error = self.apart.smoothed_delta(epsilon) if between else self.apart.delta(epsilon)
        return low + exact * (1 - error), high + exact * (1 + error)

    def _line(self, epsilon: float, *, between: bool) -> Line:
        """A kept line with few aliases, or a new one."""
        place = self.bounds.saddle(epsilon, between=between)
        known = self.lines.get(place)
        if known is not None and self.bounds.passes(place, epsilon, known.step, known.deviation):
            return known
        if len(self.lines) >= MOST_KEPT:
            self.lines.clear()
        self.lines[place] = self._affordable_line(place, epsilon)
        return self.lines[place]

    def _affordable_line(self, place: Place, epsilon: float) -> Line:
        """Smoothed as little as can be paid for."""
        c = at(place)
        laws = [on_line(law, c) for law in self.total.laws]
        cumulant = math.fsum(n * law.cumulant for law, n in zip(laws, self.total.counts, strict=True))
        error = math.fsum(n * law.error for law, n in zip(laws, self.total.counts, strict=True))
        deviation = math.sqrt(math.fsum(n * law.variance for law, n in zip(laws, self.total.counts, strict=True)))
        step = self.bounds.step(place, epsilon, deviation)
        apart = None if self.apart is None else self.apart.line_part(c, cumulant)
        parts = Part(laws, self.total.counts, 0.0), apart
        relative = max(FINEST, abs(c) * (1 + c) * (REACH * self._farthest / MOST_ANGLE) ** 2)
        while relative <= COARSEST:
            try:
                smooth = math.sqrt(relative / (abs(c) * (1 + c)))
                sums = smooth_line(c, parts, step, smooth, self._affordable_nodes(relative))
                return Line(place, cumulant, error, deviation, step, smooth, sums)
            except PrecisionError as caught:  # nodes grow no faster than 1/μ
                relative *= max(4.0, caught.ratio**2) if isinstance(caught, TooManyError) else 4.0
        raise PrecisionError(f"the sum of {sum(self.total.counts)} losses needs too many nodes at epsilon={epsilon!r}")

    @property
    def _farthest(self) -> float:
        """The largest atom, in nats."""
        finite = [float(np.max(np.abs(law.losses), initial=0.0)) for law in self.total.laws if isinstance(law, Atoms)]
        return max(finite, default=0.0)

    def _affordable_nodes(self, relative: float) -> int:
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
