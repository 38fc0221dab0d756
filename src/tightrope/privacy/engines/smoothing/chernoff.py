"""Saddle points on a grid, Chernoff's bounds, and the aliases that they bound (``docs/proofs/contour.md``)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from tightrope.errors import PrecisionError
from tightrope.numerics.arrays import Floats
from tightrope.numerics.rounding import ROUND_OFF
from tightrope.privacy.engines.saddle import Guess
from tightrope.privacy.laws.composition import Composition
from tightrope.privacy.laws.interval import outward

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
        best = min(places, key=lambda place: self._least(place, rest))
        near = [(False, best[1] + i) for i in range(1 - LINES_A_UNIT, LINES_A_UNIT)]
        best = min(near, key=lambda place: self._least(place, rest))
        found = self._least(best, rest)
        if not 0 < found < math.inf:
            return None
        self.latest.setdefault(False, best[1])
        return Guess(found, at(best)) if found < self.total.largest else self._beside_largest(best, rest)

    def _beside_largest(self, place: Place, target: float) -> Guess | None:
        """Where P(L = l) (1 − e^{ε−l}) is ``target``, l the largest loss: that mass is about M(c) e^{−cl} far out."""
        part = target * math.exp(min(at(place) * self.total.largest - self.cumulant(place), 700.0))
        room = -math.log1p(-part) if part < 1 else math.inf
        return Guess(self.total.largest - room, 1 / room) if 0 < room < self.total.largest else None

    def _least(self, place: Place, target: float) -> float:
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
            step = _short(4.0 * (1 + abs(c)) * SHRINK**index)
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


def _short(value: float) -> float:
    """About the value, with ``DIGITS`` binary digits."""
    mantissa, exponent = math.frexp(value)
    return math.ldexp(math.floor(math.ldexp(mantissa, STEP_DIGITS)), exponent - STEP_DIGITS)
