"""The contour integral as a method: tails are trimmed as far as the result allows, with another method as fallback.

If losses have a heavy tail, like Gaussians sampled at a small rate, K rises like a wall behind which the
saddle hides, and the integral cancels. Mass far out that is negligible next to δ is counted as infinite: it is added
to the upper bound and left out of the lower one, and the wall is gone (theory §3.1, ``docs/proofs/contour.md``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from tightrope.accounting.bounds import Interval, probability_error_bounds
from tightrope.accounting.distributions.composition import Composition
from tightrope.accounting.methods.contour_line import FINENESS, ContourIntegral, LineIntegral
from tightrope.accounting.methods.method import EpsilonGuess, Method
from tightrope.errors import PrecisionError
from tightrope.numerics.arrays import Complexes, Floats
from tightrope.numerics.rounding import ROUND_OFF, SUBNORMAL

# Correction for a trimmed distribution: paths with one or two tail losses (theory §3.1, ``docs/proofs/contour.md``).
#
# With each step's distribution split into a body and a far tail, M_i = B_i + T_i, a composition is Σ_j B e_j(T/B),
# B = Π B_i and e_j the elementary symmetric sums over steps: one term for each number j of losses from tails. At small
# sampling rates δ consists of j = 0 and a little of j = 1 and 2, each with its own saddle; all other paths have mass
# t³/3! at most, t the mass of all tails.

MAX_JUMPS = 2
"""Largest number of jumps (losses from tails) in a path that is integrated."""
CACHED_BLOCKS = 64
"""Blocks of real points whose moments are cached, since bodies and jumps use the same ones."""
MAX_LOG_RATIO = 300.0
"""Cutoff for logs of ratios and errors, beyond which they are useless: products of two stay finite."""
UNKNOWN_LOG = 1e300
"""Logarithm that stands for an unknown upper bound."""
CumulantsByLaw = list[tuple[Complexes, Floats]]


@dataclass(frozen=True, slots=True, eq=False)
class BodyMoments:
    """Moments of a trimmed composition, in which every loss comes from a body."""

    total: Composition
    cached: dict[bytes, CumulantsByLaw] = field(default_factory=dict)

    @property
    def rounding_error_bound(self) -> float:
        return self.total.rounding_error_bound

    def cumulants_by_law(self, z: Complexes) -> CumulantsByLaw:
        """Return K of every distribution, and its error."""
        key = z.tobytes()
        if key in self.cached:
            return self.cached[key]
        enclosures = [law.enclose_cumulant(z) for law in self.total.laws]
        cumulants = [enclosure for enclosure in enclosures if enclosure is not None]
        if not np.any(z.imag):
            while len(self.cached) >= CACHED_BLOCKS:
                self.cached.pop(next(iter(self.cached)))
            self.cached[key] = cumulants
        return cumulants

    def log_moments(self, z: Complexes) -> tuple[Complexes, Floats]:
        return self.sum_steps(self.cumulants_by_law(z))

    def sum_steps(self, cumulants: CumulantsByLaw) -> tuple[Complexes, Floats]:
        """Return the sum over all steps, and its error."""
        value, error = np.zeros_like(cumulants[0][0]), np.zeros_like(cumulants[0][1])
        for (law_value, law_error), count in zip(cumulants, self.total.counts, strict=True):
            value, error = value + count * law_value, error + count * law_error
        return value, error

    def log_decay(self, c: float, y: float) -> float:
        return self.total.log_decay(c, y)


@dataclass(frozen=True, slots=True, eq=False)
class TailJumpMoments:
    """Moments of the paths with one or two losses from tails: K = log B + log(e_1 + e_2)."""

    bodies: BodyMoments

    @property
    def rounding_error_bound(self) -> float:
        return self.bodies.rounding_error_bound

    def log_moments(self, z: Complexes) -> tuple[Complexes, Floats]:
        """Return K and its error, which for log(e_1 + e_2) is relative to the sum that is left after cancellation."""
        cumulants = self.bodies.cumulants_by_law(z)
        total, error = self.bodies.sum_steps(cumulants)
        log_ratios, ratio_errors, counts = self._log_tail_ratios(z, cumulants)
        top = np.max(log_ratios.real, axis=0)
        ratios = np.exp(log_ratios - top)
        sizes = np.abs(ratios)
        single, square, size = counts @ ratios, counts @ ratios**2, counts @ sizes
        single_error = np.sum(sizes * ratio_errors * counts[:, None], axis=0) + 1e-14 * size
        scale = np.exp(np.minimum(top, MAX_LOG_RATIO))
        value = single + scale * (single**2 - square) / 2
        value_error = single_error * (1 + scale * size)
        relative = value_error / np.maximum(np.abs(value), 1e-300)
        unknown = (top >= MAX_LOG_RATIO) | (np.max(ratio_errors, axis=0) >= math.expm1(MAX_LOG_RATIO))
        inaccurate = unknown | (relative >= 0.5)
        bound = np.where(inaccurate, np.abs(value) + value_error + 1e-300, value)
        log = np.log(bound) + np.where(unknown, UNKNOWN_LOG, top)
        return total + log, error + np.where(inaccurate, np.inf, -np.log1p(-np.where(inaccurate, 0.0, relative)))

    def _log_tail_ratios(self, z: Complexes, cumulants: CumulantsByLaw) -> tuple[Complexes, Floats, Floats]:
        """Return log T_i/B_i of the distributions [laws, n], their relative errors, and counts."""
        ratios, errors, counts = [], [], []
        for law, count, body in zip(self.bodies.total.laws, self.bodies.total.counts, cumulants, strict=True):
            tail = law.log_tail_integral(z)
            if tail is not None:
                ratios.append(tail[0] - body[0])
                errors.append(np.expm1(np.minimum(tail[1] + body[1], MAX_LOG_RATIO)))
                counts.append(float(count))
        return np.array(ratios), np.array(errors), np.array(counts)

    def log_decay(self, c: float, y: float) -> float:
        """Return the bodies' decay without up to two bodies replaced by tails, whose moments peak on the real axis."""
        log_decays = [math.log(max(law.moment_decay_bound(c, y), 5e-324)) for law in self.bodies.total.laws]
        return min(0.0, self.bodies.log_decay(c, y) - MAX_JUMPS * min(log_decays))


@dataclass(frozen=True, slots=True, eq=False)
class TailSplit:
    """A composition with tails of some mass split off: its body, and the paths with one or two losses from them."""

    body: ContourIntegral
    jumps: LineIntegral | None
    tail_mass: float
    """A bound on the mass of all tails."""

    @classmethod
    def from_tail_mass(cls, total: Composition, mass: float, near: int | None) -> TailSplit:
        """Return the level with tails of at most this mass; saddles are searched from index ``near``."""
        trimmed = total.trim_tail(mass) if mass > 0 else total
        if all(body is law for body, law in zip(trimmed.laws, total.laws, strict=True)):
            return cls(ContourIntegral.for_source(total, None, near), None, 0.0)
        tail_mass = math.fsum(
            count * (body.infinite_mass - law.infinite_mass)
            for body, law, count in zip(trimmed.laws, total.laws, total.counts, strict=True)
        )
        bodies = BodyMoments(trimmed)
        return cls(
            ContourIntegral.for_source(trimmed, bodies, near),
            LineIntegral.for_source(TailJumpMoments(bodies), near),
            tail_mass * (1 + 1e-9) + 1e-300,
        )

    def delta(self, epsilon: float, aim: float) -> Interval:
        """Return bounds on δ less the infinite mass, for a δ of about e^{aim}."""
        value, error = self.body.lines.integrate_line(epsilon, between_poles=False, aim=aim)
        if self.jumps is not None:
            # Search well below the bodies' saddle: where jumps have a relevant probability, K has not reached its wall.
            self.jumps.right.start_search_at(self.body.lines.right.latest[0] // 2)
            jump_value, jump_error = self.jumps.integrate_line(epsilon, between_poles=False, aim=aim)
            value, error = value + jump_value, error + jump_error
        return value - error, value + error + self.tail_mass ** (MAX_JUMPS + 1) / math.factorial(MAX_JUMPS + 1)


MANY_STEPS = 10**6
FLAT_DECAY_RANGE, DECAY_RANGE = 3e5, 1e12
"""Values of Im z by which the integrand must be negligible for the integral to be tried: losses may be as small as a
rate. Laplace-type losses, whose moments decay slowly or not at all, have their own sums."""
INITIAL_TRIM = 1e-20
"""Mass that is trimmed at first, all steps together."""
NEGLIGIBLE_PART = 1e-11
"""Fraction of δ that may be omitted."""
NARROW_ENOUGH = 1e-10
"""Relative width of a bracket that is narrow enough to stop trimming less."""
FEW_STEPS = 10**4
"""Number of steps above which a grid is slow and imprecise."""
TINY_VARIANCE = 1e-14
"""Variance of the sum below which the fallback would need gigabytes and minutes, without narrower bounds."""
FINE_WIDTH = 1e-8
"""Relative width beyond which the other approach is tried, too."""
MAX_TRIES = 4
REUSE_FACTOR = 16.0
"""Tails chosen for a δ within this factor are reused."""
CACHED_ANSWERS = 4
WIDE_BRACKET = 1e-5
"""Relative width beyond which the fallback method is tried, too."""


def contour_applies(total: Composition) -> bool:
    """Return whether every moment has a formula and the integrand decays far enough.

    For very many steps grids are imprecise: Chernoff's bounds, which need only moments, are then the fallback.
    """
    if not (total.laws and all(law.has_moment for law in total.laws)):
        return False
    flat = any(law.flat_form is not None for law in total.laws)
    if sum(total.counts) > MANY_STEPS or (not flat and any(law.moment_decay_bounds for law in total.laws)):
        return True
    return total.log_decay(0.01, FLAT_DECAY_RANGE if flat else DECAY_RANGE) < -34


@dataclass(frozen=True, slots=True, eq=False)
class ContourMethod(Method):
    """The contour integral, with another method as fallback if it loses all digits."""

    total: Composition
    fallback: Method
    levels: dict[float, TailSplit] = field(default_factory=dict)
    aims: list[float] = field(default_factory=list)
    """The last δ found by the integrals over jumps."""
    troubles: dict[float, str] = field(default_factory=dict)
    answers: dict[float, Interval] = field(default_factory=dict)
    """The most recent intervals, since a search often ends at an ε evaluated before."""

    @property
    def name(self) -> str:  # type: ignore[override]
        """The name of the method, including the fallback once it was used."""
        return f"contour (with {self.fallback.name} and Chernoff's bound)" if self.troubles else "contour"

    def delta(self, epsilon: float) -> Interval:
        if epsilon >= self.total.largest_loss + self.total.rounding_error_bound:
            return self.total.infinite_bounds
        if epsilon not in self.answers:
            while len(self.answers) >= CACHED_ANSWERS:
                self.answers.pop(next(iter(self.answers)))
            self.answers[epsilon] = self._evaluate_delta(epsilon)
        return self.answers[epsilon]

    def _evaluate_delta(self, epsilon: float) -> Interval:
        low, high, trouble = self._integrate_levels(epsilon)
        if high - low <= WIDE_BRACKET * high or high - self.total.infinite_mass <= SUBNORMAL:
            return low, high
        low, high = self._fallback_bounds(epsilon, (low, high))
        if high - low > WIDE_BRACKET * high:
            self.troubles[epsilon] = trouble
        return low, high

    def _integrate_levels(self, epsilon: float) -> tuple[float, float, str]:
        """Integrate directly if K rises gently, with the tails split off if it has a wall, both if one is too wide."""
        approaches = [self._integrate_untrimmed]
        if self._trims_tails:
            approaches.append(self._integrate_with_jumps)
        if self.aims:
            approaches.reverse()
        low, high, troubles = self.total.infinite_bounds[0], 1.0, []
        for integrate in approaches:
            below, above, trouble = integrate(epsilon)
            low, high = max(low, below), min(high, above)
            if high - low <= FINE_WIDTH * high:
                break
            troubles.append(trouble)
        return low, high, "; ".join(dict.fromkeys(troubles))

    def _integrate_with_jumps(self, epsilon: float) -> tuple[float, float, str]:
        """Integrate with tails split off, so heavy that paths with three tail losses are just negligible."""
        low, high = self.total.infinite_bounds[0], 1.0
        aim = self.aims[0] if self.aims else self._approximate_delta(epsilon)
        for _ in range(MAX_TRIES):
            try:
                below, above = self._integrate_jump_terms(epsilon, aim)
            except PrecisionError as caught:
                self.aims.clear()
                return low, high, str(caught)
            low, high = max(low, below), min(high, above)
            finite_delta = max(above - self.total.infinite_bounds[0], 1e-300)
            self.aims[:] = [finite_delta]
            if high - low <= NARROW_ENOUGH * high or aim / REUSE_FACTOR < finite_delta < aim * REUSE_FACTOR:
                break
            aim = finite_delta
        return low, high, "the integral cancels"

    def _integrate_untrimmed(self, epsilon: float) -> tuple[float, float, str]:
        """Return the bracket of the untrimmed distribution."""
        try:
            return *self._select_level(0.0).body.delta(epsilon), "the integral cancels"
        except PrecisionError as caught:
            return self.total.infinite_bounds[0], self.cheap_delta_bound(epsilon), str(caught)

    def _approximate_delta(self, epsilon: float) -> float:
        """Return δ by the saddle-point formula, with tails of negligible mass trimmed."""
        lines = self._select_level(INITIAL_TRIM).body.lines
        try:
            return max(math.exp(lines.approximate_log_value(epsilon, lines.right.find_saddle(epsilon))), 1e-300)
        except PrecisionError:
            return 1.0

    @property
    def _trims_tails(self) -> bool:
        return self._select_level(INITIAL_TRIM).body.total is not self.total

    def _integrate_jump_terms(self, epsilon: float, high: float) -> Interval:
        """Return bounds from the bodies and up to two losses from the tails, for a δ of about ``high``."""
        below, above = self._select_level(_negligible_tail_mass(high)).delta(epsilon, math.log(high))
        infinite_low, infinite_high = self.total.infinite_bounds
        low, _ = probability_error_bounds(infinite_low + below, 4 * ROUND_OFF * below)
        _, high = probability_error_bounds(infinite_high + above, 4 * ROUND_OFF * above)
        return low, high

    def _select_level(self, mass: float) -> TailSplit:
        if mass not in self.levels:
            self.levels[mass] = TailSplit.from_tail_mass(self.total, mass, self._nearest_saddle_index)
        return self.levels[mass]

    @property
    def _nearest_saddle_index(self) -> int | None:
        """The index of the most recent saddle over all levels."""
        saddles = [level.body.lines.right.latest for level in self.levels.values()]
        return next((index for latest in reversed(saddles) for index in latest), None)

    @property
    def _variance_is_tiny(self) -> bool:
        """Whether log E e^L, which is at least about the variance of the sum, is below ``TINY_VARIANCE``."""
        ((value,), (error,)) = self.total.log_moments(np.array([1.0 + 0.0j]))
        return bool(value.real + error < TINY_VARIANCE)

    def _fallback_bounds(self, epsilon: float, known: Interval) -> Interval:
        """Return ``known``, narrowed by the fallback method and by Chernoff's bounds."""
        low, high = self._select_level(0.0).body.chernoff_bounds(epsilon)
        low, high = max(low, known[0]), min(high, known[1], self.cheap_delta_bound(epsilon))
        if sum(self.total.counts) > FEW_STEPS or self._variance_is_tiny:
            return low, max(low, high)
        try:
            below, above = self.fallback.delta(epsilon)
        except PrecisionError:
            return low, max(low, high)
        low = max(low, below)
        return low, max(low, min(high, above))

    def cheap_delta_bound(self, epsilon: float) -> float:
        """Return Chernoff's bound, also of the slightly trimmed distribution, or only of that one if K has a wall."""
        if epsilon >= self.total.largest_loss + self.total.rounding_error_bound:
            return self.total.infinite_bounds[1]
        trimmed = [INITIAL_TRIM] if self._trims_tails else []
        levels = [self._select_level(mass) for mass in (trimmed if self.aims else [0.0, *trimmed])]
        for level in levels:
            level.body.lines.right.start_search_at(self._nearest_saddle_index or 0)
        return min(level.body.chernoff_upper_bound(epsilon) for level in levels)

    def precision_limit(self, epsilon: float) -> str:
        return self.troubles.get(epsilon, "")

    def approximate_epsilon_at(self, target: float) -> EpsilonGuess | None:
        """Return ε of the saddle point; if that is hidden behind a wall, of the bodies' saddle: jumps add little."""
        rest = target - self.total.infinite_mass
        if not rest > 0:
            return None
        lines = self._select_level(0.0).body.lines
        guess = self._guess_from_saddle(lines, rest)
        if self._trims_tails and not (guess and lines.matches_target(guess[0], rest, REUSE_FACTOR, FINE_WIDTH)):
            trimmed_lines = self._select_level(_negligible_tail_mass(rest)).body.lines
            guess = self._guess_from_saddle(trimmed_lines, rest) or guess
            self.aims[:] = [rest]
        return None if guess is None or not guess[0] > 0 else EpsilonGuess(guess[0], math.exp(guess[1] / FINENESS))

    @staticmethod
    def _guess_from_saddle(lines: LineIntegral, target: float) -> tuple[float, int] | None:
        try:
            return lines.right.approximate_epsilon_at(math.log(target))
        except PrecisionError:
            return None


def _negligible_tail_mass(delta: float) -> float:
    """Return the mass t of tails for which paths with more jumps, t³/3!, are negligible compared with δ.

    It is rounded down to a power of ten, so that levels are reused for other ε.
    """
    mass = float((math.factorial(MAX_JUMPS + 1) * NEGLIGIBLE_PART * delta) ** (1 / (MAX_JUMPS + 1)))
    return float(10.0 ** max(math.floor(math.log10(mass)), -300))
