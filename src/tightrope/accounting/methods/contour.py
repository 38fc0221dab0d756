"""The contour integral as a method: tails are trimmed as far as the result allows, with another method as fallback.

If losses have a heavy tail, like Gaussians sampled at a small rate, K rises like a wall behind which the
saddle hides, and the integral cancels. Mass far out that is negligible next to δ is counted as infinite: it is added
to the upper bound and left out of the lower one, and the wall is gone (theory §3.1, ``docs/proofs/contour.md``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from tightrope.accounting.bounds import Interval, round_outward
from tightrope.accounting.distributions.composition import Composition
from tightrope.accounting.methods.contour_line import FINENESS, ContourIntegral, LineIntegral
from tightrope.accounting.methods.method import DeltaGuess, Method
from tightrope.errors import PrecisionError
from tightrope.numerics.arrays import Complexes, Floats
from tightrope.numerics.rounding import ROUND_OFF, SUBNORMAL

# Correction for a trimmed distribution: paths with one or two tail losses (theory §3.1, ``docs/proofs/contour.md``).
#
# With each step's distribution split into a body and a far tail, M_i = B_i + T_i, a composition is Σ_j B e_j(T/B),
# B = Π B_i and e_j the elementary symmetric sums over steps: one term for each number j of losses from tails. At small
# sampling rates δ consists of j = 0 and a little of j = 1 and 2, each with its own saddle; all other paths have mass
# t³/3! at most, t the mass of all tails.

MOST_JUMPS = 2
"""Largest number of jumps (losses from tails) in a path that is integrated."""
BLOCKS_KEPT = 64
"""Blocks of real points whose moments are cached, since bodies and jumps use the same ones."""
STEEPEST_RATIO = 300.0
"""Cutoff for logs of ratios and errors, beyond which they are useless: products of two stay finite."""
NOT_KNOWN = 1e300
"""Logarithm that stands for an unknown upper bound."""
Each = list[tuple[Complexes, Floats]]


@dataclass(frozen=True, slots=True, eq=False)
class BodyMoments:
    """Moments of a trimmed composition, in which every loss comes from a body."""

    total: Composition
    kept: dict[bytes, Each] = field(default_factory=dict)

    @property
    def rounding_bound(self) -> float:
        return self.total.rounding_bound

    def cumulants_by_law(self, z: Complexes) -> Each:
        """Return K of every distribution, and its error."""
        key = z.tobytes()
        if key in self.kept:
            return self.kept[key]
        found = [law.enclose_cumulant(z) for law in self.total.laws]
        known = [one for one in found if one is not None]
        if not np.any(z.imag):
            while len(self.kept) >= BLOCKS_KEPT:
                self.kept.pop(next(iter(self.kept)))
            self.kept[key] = known
        return known

    def log_moments(self, z: Complexes) -> tuple[Complexes, Floats]:
        return self.sum_steps(self.cumulants_by_law(z))

    def sum_steps(self, each: Each) -> tuple[Complexes, Floats]:
        """Return the sum over all steps, and its error."""
        value, error = np.zeros_like(each[0][0]), np.zeros_like(each[0][1])
        for (one, off), count in zip(each, self.total.counts, strict=True):
            value, error = value + count * one, error + count * off
        return value, error

    def log_decay(self, c: float, y: float) -> float:
        return self.total.log_decay(c, y)


@dataclass(frozen=True, slots=True, eq=False)
class TailJumpMoments:
    """Moments of the paths with one or two losses from tails: K = log B + log(e_1 + e_2)."""

    bodies: BodyMoments

    @property
    def rounding_bound(self) -> float:
        return self.bodies.rounding_bound

    def log_moments(self, z: Complexes) -> tuple[Complexes, Floats]:
        """Return K and its error, which for log(e_1 + e_2) is relative to the sum that is left after cancellation."""
        each = self.bodies.cumulants_by_law(z)
        total, error = self.bodies.sum_steps(each)
        ratios, wrong, counts = self._log_tail_ratios(z, each)
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

    def _log_tail_ratios(self, z: Complexes, each: Each) -> tuple[Complexes, Floats, Floats]:
        """Return log T_i/B_i of the distributions [laws, n], their relative errors, and counts."""
        ratios, errors, counts = [], [], []
        for law, count, body in zip(self.bodies.total.laws, self.bodies.total.counts, each, strict=True):
            tail = law.log_tail_integral(z)
            if tail is not None:
                ratios.append(tail[0] - body[0])
                errors.append(np.expm1(np.minimum(tail[1] + body[1], STEEPEST_RATIO)))
                counts.append(float(count))
        return np.array(ratios), np.array(errors), np.array(counts)

    def log_decay(self, c: float, y: float) -> float:
        """Return the bodies' decay without up to two bodies replaced by tails, whose moments peak on the real axis."""
        each = [math.log(max(law.moment_decay_bound(c, y), 5e-324)) for law in self.bodies.total.laws]
        return min(0.0, self.bodies.log_decay(c, y) - MOST_JUMPS * min(each))


# A composition with tails of some mass split off: the sum over its body and the paths through the tails.


@dataclass(frozen=True, slots=True, eq=False)
class TailSplit:
    """A composition with tails of some mass split off: its body, and the paths with one or two losses from them."""

    body: ContourIntegral
    jumps: LineIntegral | None
    gone: float
    """A bound on the mass of all tails."""

    @classmethod
    def from_tail_mass(cls, total: Composition, mass: float, near: int | None) -> TailSplit:
        """Return the level with tails of at most this mass; saddles are searched from index ``near``."""
        trimmed = total.trim_tail(mass) if mass > 0 else total
        if all(one is other for one, other in zip(trimmed.laws, total.laws, strict=True)):
            return cls(ContourIntegral.for_source(total, None, near), None, 0.0)
        gone = math.fsum(
            count * (one.infinite_mass - other.infinite_mass)
            for one, other, count in zip(trimmed.laws, total.laws, total.counts, strict=True)
        )
        bodies = BodyMoments(trimmed)
        return cls(
            ContourIntegral.for_source(trimmed, bodies, near),
            LineIntegral.for_source(TailJumpMoments(bodies), near),
            gone * (1 + 1e-9) + 1e-300,
        )

    def delta(self, epsilon: float, aim: float) -> Interval:
        """Return bounds on δ less the infinite mass, for a δ of about e^{aim}."""
        value, error = self.body.lines.integrate_line(epsilon, between_poles=False, aim=aim)
        if self.jumps is not None:
            # Search well below the bodies' saddle: where jumps have a relevant probability, K has not reached its wall.
            self.jumps.right.start_search_at(self.body.lines.right.latest[0] // 2)
            more, off = self.jumps.integrate_line(epsilon, between_poles=False, aim=aim)
            value, error = value + more, error + off
        return value - error, value + error + self.gone ** (MOST_JUMPS + 1) / math.factorial(MOST_JUMPS + 1)


MANY = 10**6
FAR, FARTHEST = 3e5, 1e12
"""Values of Im z by which the integrand must be negligible for the integral to be tried: losses may be as small as a
rate. Laplace-type losses, whose moments decay slowly or not at all, have their own sums."""
TRIMMED = 1e-20
"""Mass that is trimmed at first, all steps together."""
SEEN_PART = 1e-11
"""Fraction of δ that may be omitted."""
NARROW_ENOUGH = 1e-10
"""Relative width of a bracket that is narrow enough to stop trimming less."""
FEW_STEPS = 10**4
"""Number of steps above which a grid is slow and imprecise."""
FINE_WIDTH = 1e-8
"""Relative width beyond which the other approach is tried, too."""
MOST_TRIES = 4
NEAR_POLES = 16.0
"""Tails chosen for a δ within this factor are reused."""
ANSWERS_KEPT = 4
WIDE_BRACKET = 1e-5
"""Relative width beyond which the fallback method is tried, too."""


def contour_applies(total: Composition) -> bool:
    """Return whether every moment has a formula and the integrand decays far enough.

    For very many steps grids are imprecise: Chernoff's bounds, which need only moments, are then the fallback.
    """
    if not (total.laws and all(law.knows_moment for law in total.laws)):
        return False
    flat = any(law.flat_form is not None for law in total.laws)
    if sum(total.counts) > MANY or (not flat and any(law.moment_decays for law in total.laws)):
        return True
    return total.log_decay(0.01, FAR if flat else FARTHEST) < -34


@dataclass(frozen=True, slots=True, eq=False)
class ContourMethod(Method):
    """The contour integral, with another method as fallback if it loses all digits."""

    total: Composition
    instead: Method
    levels: dict[float, TailSplit] = field(default_factory=dict)
    aims: list[float] = field(default_factory=list)
    """The last δ found by the integrals over jumps."""
    troubles: dict[float, str] = field(default_factory=dict)
    answers: dict[float, Interval] = field(default_factory=dict)
    """The most recent intervals, since a search often ends at an ε evaluated before."""

    @property
    def name(self) -> str:  # type: ignore[override]
        """The name of the method, including the fallback once it was used."""
        return f"contour (with {self.instead.name} and Chernoff's bound)" if self.troubles else "contour"

    def delta(self, epsilon: float) -> Interval:
        if epsilon >= self.total.largest_loss + self.total.rounding_bound:
            return self.total.infinite_bounds
        if epsilon not in self.answers:
            while len(self.answers) >= ANSWERS_KEPT:
                self.answers.pop(next(iter(self.answers)))
            self.answers[epsilon] = self._evaluate_delta(epsilon)
        return self.answers[epsilon]

    def _evaluate_delta(self, epsilon: float) -> Interval:
        low, high, trouble = self._by_levels(epsilon)
        if high - low <= WIDE_BRACKET * high or high - self.total.infinite_mass <= SUBNORMAL:
            return low, high
        low, high = self._fallback_bounds(epsilon, (low, high))
        if high - low > WIDE_BRACKET * high:
            self.troubles[epsilon] = trouble
        return low, high

    def _by_levels(self, epsilon: float) -> tuple[float, float, str]:
        """Integrate directly if K rises gently, with the tails split off if it has a wall, both if one is too wide."""
        ways = (self._as_it_is, self._by_jumps) if self._trims_tails else (self._as_it_is,)
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
        """Integrate with tails split off, so heavy that paths with three tail losses are just negligible."""
        low, high = self.total.infinite_bounds[0], 1.0
        aim = self.aims[0] if self.aims else self._approximate_delta(epsilon)
        for _ in range(MOST_TRIES):
            try:
                below, above = self._integrate_jump_terms(epsilon, aim)
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
        """Return the bracket of the untrimmed distribution."""
        try:
            return *self._select_level(0.0).body.delta(epsilon), "the integral cancels"
        except PrecisionError as caught:
            return self.total.infinite_bounds[0], self.cheap_upper_bound(epsilon), str(caught)

    def _approximate_delta(self, epsilon: float) -> float:
        """Return δ by the saddle-point formula, with tails of negligible mass trimmed."""
        lines = self._select_level(TRIMMED).body.lines
        try:
            return max(math.exp(lines.approximate_log_value(epsilon, lines.right.find_saddle(epsilon))), 1e-300)
        except PrecisionError:
            return 1.0

    @property
    def _trims_tails(self) -> bool:
        return self._select_level(TRIMMED).body.total is not self.total

    def _integrate_jump_terms(self, epsilon: float, high: float) -> Interval:
        """Return bounds from the bodies and up to two losses from the tails, for a δ of about ``high``."""
        below, above = self._select_level(_round_to_decade(_negligible_tail_mass(high))).delta(epsilon, math.log(high))
        least, most = self.total.infinite_bounds
        return round_outward(least + below, 4 * ROUND_OFF * below)[0], round_outward(
            most + above, 4 * ROUND_OFF * above
        )[1]

    def _select_level(self, mass: float) -> TailSplit:
        if mass not in self.levels:
            self.levels[mass] = TailSplit.from_tail_mass(self.total, mass, self._nearest_saddle_index)
        return self.levels[mass]

    @property
    def _nearest_saddle_index(self) -> int | None:
        """The index of the most recent saddle over all levels."""
        last = [level.body.lines.right.latest for level in self.levels.values()]
        return next((index for found in reversed(last) for index in found), None)

    def _fallback_bounds(self, epsilon: float, known: Interval) -> Interval:
        """Combine ``known`` with the fallback method and with Chernoff's bounds."""
        low, high = self._select_level(0.0).body.chernoff_bounds(epsilon)
        low, high = max(low, known[0]), min(high, known[1], self.cheap_upper_bound(epsilon))
        if sum(self.total.counts) > FEW_STEPS:
            return low, max(low, high)
        try:
            below, above = self.instead.delta(epsilon)
        except PrecisionError:
            return low, max(low, high)
        low = max(low, below)
        return low, max(low, min(high, above))

    def cheap_upper_bound(self, epsilon: float) -> float:
        """Return Chernoff's bound, also of the slightly trimmed distribution, or only of that one if K has a wall."""
        if epsilon >= self.total.largest_loss + self.total.rounding_bound:
            return self.total.infinite_bounds[1]
        apart = [TRIMMED] if self._trims_tails else []
        levels = [self._select_level(mass) for mass in (apart if self.aims else [0.0, *apart])]
        for level in levels:
            level.body.lines.right.start_search_at(self._nearest_saddle_index or 0)
        return min(level.body.chernoff_upper_bound(epsilon) for level in levels)

    def precision_limit(self, epsilon: float) -> str:
        return self.troubles.get(epsilon, "")

    def approximate_epsilon(self, target: float) -> DeltaGuess | None:
        """Return ε of the saddle point; if that is hidden behind a wall, of the bodies' saddle: jumps add little."""
        rest = target - self.total.infinite_mass
        if not rest > 0:
            return None
        lines = self._select_level(0.0).body.lines
        found = self._first_guess(lines, rest)
        if self._trims_tails and not (found and _integral_matches_target(lines, found[0], rest)):
            found = (
                self._first_guess(self._select_level(_round_to_decade(_negligible_tail_mass(rest))).body.lines, rest)
                or found
            )
            self.aims[:] = [rest]
        return None if found is None or not found[0] > 0 else DeltaGuess(found[0], math.exp(found[1] / FINENESS))

    @staticmethod
    def _first_guess(lines: LineIntegral, target: float) -> tuple[float, int] | None:
        try:
            return lines.right.approximate_epsilon(math.log(target))
        except PrecisionError:
            return None


def _integral_matches_target(lines: LineIntegral, epsilon: float, target: float) -> bool:
    """Return whether the integral confirms that δ is about ``target`` at ε; its nodes are reused later.

    Near a wall K bends so sharply around the saddle that the saddle-point formula is useless: then the integral
    would lose all digits, and is skipped.
    """
    try:
        if lines.approximate_log_value(epsilon, lines.right.find_saddle(epsilon)) < math.log(target / NEAR_POLES):
            return False
        value, error = lines.integrate_line(epsilon, between_poles=False)
    except PrecisionError:
        return False
    return error <= FINE_WIDTH * value and target / NEAR_POLES < value < target * NEAR_POLES


def _negligible_tail_mass(delta: float) -> float:
    """Return the mass t of tails for which paths with more jumps, t³/3!, are negligible compared with δ."""
    return float((math.factorial(MOST_JUMPS + 1) * SEEN_PART * delta) ** (1 / (MOST_JUMPS + 1)))


def _round_to_decade(mass: float) -> float:
    """Round down to a power of ten, so that levels are reused for other ε."""
    return float(10.0 ** max(math.floor(math.log10(mass)), -300))
