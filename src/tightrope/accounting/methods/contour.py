"""The contour integral as an engine: the law is trimmed as far as the answer allows, and another engine stands behind.

Where losses have a heavy tail, as those of Gaussians sampled at a small rate, K rises like a wall behind which the
saddle hides, and the integral cancels. Mass far out that no longer counts beside δ is counted as infinite: from above
it is added, from below it is left away, and the wall is gone (theory §3.1, ``docs/proofs/contour.md``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from tightrope.accounting.bounds import Interval, outward
from tightrope.accounting.distributions.composition import Composition
from tightrope.accounting.methods.contour_line import FINENESS, Integral, LineIntegral
from tightrope.accounting.methods.method import Engine, Guess
from tightrope.errors import PrecisionError
from tightrope.numerics.arrays import Complexes, Floats
from tightrope.numerics.rounding import ROUND_OFF, SUBNORMAL

# What a trimmed law lacks: the paths with one or two losses from its tails (theory §3.1, ``docs/proofs/contour.md``).
#
# With each step's law split into a body and a far tail, M_i = B_i + T_i, a composition is Σ_j B e_j(T/B), B = Π B_i
# and e_j the elementary symmetric sums over steps: one term for each number j of losses from tails. At small sampling
# rates δ consists of j = 0 and a little of j = 1 and 2, with a saddle of their own; all other paths have mass t³/3!
# at most, t the mass of all tails.

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


# A composition with tails of some mass apart, and what its body and the paths through them add up to.


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


MANY = 10**6
FAR, FARTHEST = 3e5, 1e12
"""By this Im z the integrand must have died for the integral to be tried: losses may be as small as a rate. Those of
Laplace type, whose moments die slowly if at all, have sums of their own."""
TRIMMED = 1e-20
"""Mass that is trimmed at first, all steps together."""
SEEN_PART = 1e-11
"""Part of δ that may be left out."""
NARROW_ENOUGH = 1e-10
"""Relative width of a bracket that is good enough not to trim less."""
FEW_STEPS = 10**4
"""Of more steps a grid says little, and takes long to say it."""
FINE_WIDTH = 1e-8
"""Beyond this one the other way is tried, too."""
MOST_TRIES = 4
NEAR_POLES = 16.0
"""Tails chosen for a δ within this factor serve as well."""
ANSWERS_KEPT = 4
WIDE_BRACKET = 1e-5
"""Beyond this relative width the other engine is asked, too."""


def applies(total: Composition) -> bool:
    """Whether every moment is known and the integrand dies in the end.

    Of very many steps grids say little: there Chernoff's bounds, which need the moments alone, are the last resort.
    """
    if not (total.laws and all(law.knows_moment for law in total.laws)):
        return False
    flat = any(law.flat is not None for law in total.laws)
    if sum(total.counts) > MANY or (not flat and any(law.dies for law in total.laws)):
        return True
    return total.log_decay(0.01, FAR if flat else FARTHEST) < -34


@dataclass(frozen=True, slots=True, eq=False)
class Contour(Engine):
    """The integral, or another engine where it keeps no digit."""

    total: Composition
    instead: Engine
    levels: dict[float, Level] = field(default_factory=dict)
    aims: list[float] = field(default_factory=list)
    """The last δ that was found by way of jumps."""
    troubles: dict[float, str] = field(default_factory=dict)
    answers: dict[float, Interval] = field(default_factory=dict)
    """The last few: a search ends where it is asked again."""

    @property
    def name(self) -> str:  # type: ignore[override]
        """With the engine that stood in, once it has."""
        return f"contour (with {self.instead.name} and Chernoff's bound)" if self.troubles else "contour"

    def delta(self, epsilon: float) -> Interval:
        if epsilon >= self.total.largest + self.total.slack:
            return self.total.infinite_bounds
        if epsilon not in self.answers:
            while len(self.answers) >= ANSWERS_KEPT:
                self.answers.pop(next(iter(self.answers)))
            self.answers[epsilon] = self._answer(epsilon)
        return self.answers[epsilon]

    def _answer(self, epsilon: float) -> Interval:
        low, high, trouble = self._by_levels(epsilon)
        if high - low <= WIDE_BRACKET * high or high - self.total.infinite_mass <= SUBNORMAL:
            return low, high
        low, high = self._otherwise(epsilon, (low, high))
        if high - low > WIDE_BRACKET * high:
            self.troubles[epsilon] = trouble
        return low, high

    def _by_levels(self, epsilon: float) -> tuple[float, float, str]:
        """As it is where K rises gently; with the tails apart where it has a wall; both where one is not enough."""
        ways = (self._as_it_is, self._by_jumps) if self._trims else (self._as_it_is,)
        if self.aims:
            ways = ways[::-1]
        low, high, troubles = self.total.infinite_bounds[0], 1.0, []
        for way in ways:
            below, above, trouble = way(epsilon)
            low, high = max(low, below), min(high, above)
            if high - low <= FINE_WIDTH * high:
                break
            troubles.append(trouble)
        return low, high, "; ".join(dict.fromkeys(troubles))

    def _by_jumps(self, epsilon: float) -> tuple[float, float, str]:
        """With tails so heavy apart that paths with three losses from them just do not count."""
        low, high = self.total.infinite_bounds[0], 1.0
        aim = self.aims[0] if self.aims else self._about(epsilon)
        for _ in range(MOST_TRIES):
            try:
                below, above = self._jumping(epsilon, aim)
            except PrecisionError as caught:
                self.aims.clear()
                return low, high, str(caught)
            low, high = max(low, below), min(high, above)
            found = max(above - self.total.infinite_bounds[0], 1e-300)
            self.aims[:] = [found]
            if high - low <= NARROW_ENOUGH * high or aim / NEAR_POLES < found < aim * NEAR_POLES:
                break
            aim = found
        return low, high, "the integral cancels"

    def _as_it_is(self, epsilon: float) -> tuple[float, float, str]:
        """The bracket of the law with nothing apart."""
        try:
            return *self._level(0.0).body.delta(epsilon), "the integral cancels"
        except PrecisionError as caught:
            return self.total.infinite_bounds[0], self.ceiling(epsilon), str(caught)

    def _about(self, epsilon: float) -> float:
        """δ by the saddle-point formula, where next to nothing is trimmed."""
        lines = self._level(TRIMMED).body.lines
        try:
            return max(math.exp(lines.estimate(epsilon, lines.right.saddle(epsilon))), 1e-300)
        except PrecisionError:
            return 1.0

    @property
    def _trims(self) -> bool:
        return self._level(TRIMMED).body.total is not self.total

    def _jumping(self, epsilon: float, high: float) -> Interval:
        """Bodies, and up to two losses from the tails, for a δ of about ``high``."""
        below, above = self._level(_rounded(_apart(high))).delta(epsilon, math.log(high))
        least, most = self.total.infinite_bounds
        return outward(least + below, 4 * ROUND_OFF * below)[0], outward(most + above, 4 * ROUND_OFF * above)[1]

    def _level(self, mass: float) -> Level:
        if mass not in self.levels:
            self.levels[mass] = Level.of(self.total, mass, self._near)
        return self.levels[mass]

    @property
    def _near(self) -> int | None:
        """Where the last saddle was, at whatever level."""
        last = [level.body.lines.right.latest for level in self.levels.values()]
        return next((index for found in reversed(last) for index in found), None)

    def _otherwise(self, epsilon: float, known: Interval) -> Interval:
        """By the other engine and by Chernoff's bounds, beside what the integral says."""
        low, high = self._level(0.0).body.chernoff(epsilon)
        low, high = max(low, known[0]), min(high, known[1], self.ceiling(epsilon))
        if sum(self.total.counts) > FEW_STEPS:
            return low, max(low, high)
        try:
            below, above = self.instead.delta(epsilon)
        except PrecisionError:
            return low, max(low, high)
        low = max(low, below)
        return low, max(low, min(high, above))

    def ceiling(self, epsilon: float) -> float:
        """Chernoff's bound; also of the law trimmed by next to nothing, and only of that one where K has a wall."""
        if epsilon >= self.total.largest + self.total.slack:
            return self.total.infinite_bounds[1]
        apart = [TRIMMED] if self._trims else []
        levels = [self._level(mass) for mass in (apart if self.aims else [0.0, *apart])]
        for level in levels:
            level.body.lines.right.begin(self._near or 0)
        return min(level.body.ceiling(epsilon) for level in levels)

    def why(self, epsilon: float) -> str:
        return self.troubles.get(epsilon, "")

    def guess(self, target: float) -> Guess | None:
        """From the saddle point; where that is hidden behind a wall, from that of the bodies: jumps add a little."""
        rest = target - self.total.infinite_mass
        if not rest > 0:
            return None
        lines = self._level(0.0).body.lines
        found = self._first_guess(lines, rest)
        if self._trims and not (found and _leads(lines, found[0], rest)):
            found = self._first_guess(self._level(_rounded(_apart(rest))).body.lines, rest) or found
            self.aims[:] = [rest]
        return None if found is None or not found[0] > 0 else Guess(found[0], math.exp(found[1] / FINENESS))

    @staticmethod
    def _first_guess(lines: LineIntegral, target: float) -> tuple[float, int] | None:
        try:
            return lines.right.guess(math.log(target))
        except PrecisionError:
            return None


def _leads(lines: LineIntegral, epsilon: float, target: float) -> bool:
    """Whether the integral itself says that δ is about ``target`` there; its nodes are kept for what follows.

    Beside a wall K bends so sharply around the saddle that what the formula said of the saddle alone is lost: then the
    integral would keep no digit, and is not tried.
    """
    try:
        if lines.estimate(epsilon, lines.right.saddle(epsilon)) < math.log(target / NEAR_POLES):
            return False
        value, error = lines.value(epsilon, between=False)
    except PrecisionError:
        return False
    return error <= FINE_WIDTH * value and target / NEAR_POLES < value < target * NEAR_POLES


def _apart(delta: float) -> float:
    """The mass t of tails for which paths with more jumps, t³/3!, no longer count beside δ."""
    return float((math.factorial(MOST_JUMPS + 1) * SEEN_PART * delta) ** (1 / (MOST_JUMPS + 1)))


def _rounded(mass: float) -> float:
    """Down to a power of ten: levels are kept for other ε."""
    return float(10.0 ** max(math.floor(math.log10(mass)), -300))
