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
from tightrope.accounting.methods.contour_line import FINENESS, LineIntegral
from tightrope.accounting.methods.method import EpsilonGuess, Method
from tightrope.accounting.methods.tail_jumps import TailSplit, negligible_tail_mass
from tightrope.accounting.methods.tilted_grid import TiltedGridMethod
from tightrope.errors import PrecisionError
from tightrope.numerics.rounding import ROUND_OFF, SUBNORMAL

MANY_STEPS = 10**6
FLAT_DECAY_RANGE, DECAY_RANGE = 3e5, 1e12
"""Values of Im z by which the integrand must be negligible for the integral to be tried: losses may be as small as a
rate. Laplace-type losses, whose moments decay slowly or not at all, have their own sums."""
INITIAL_TRIM = 1e-20
"""Mass that is trimmed at first, all steps together."""
NARROW_ENOUGH = 1e-10
"""Relative width of a bracket that is narrow enough to stop trimming less."""
FEW_STEPS = 10**4
"""Number of steps above which a grid is slow and imprecise."""
FINE_WIDTH = 1e-8
"""Relative width beyond which the other approach is tried, too."""
NEARLY_FINE_WIDTH = 1e-7
"""Relative width up to which the integral is used again at another ε, and not the grid alone."""
MAX_REFINEMENTS = 40
GUESS_NATS = 0.1
"""A guess of ε is near enough if log δ is within this of the target."""
ROUGH_WIDTH = 0.3
"""Relative width of a bracket that is narrow enough to guess from."""
CACHED_GUESSES = 64
SAME_CASE = 0.05
"""Within this relative distance of an ε with a wide bracket, the grid is used first."""
COMPOSED_WIDTH = 1e-2
"""Relative width of a bracket from the tilted grid that the fallback method, which is slow, would not improve."""
MAX_TRIES = 4
REUSE_FACTOR = 16.0
"""Tails chosen for a δ within this factor are reused."""
CACHED_ANSWERS = 4
TINY_VARIANCE = 1e-14
"""Variance of the sum below which the fallback would need gigabytes and minutes, without narrower bounds."""
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
    grid: TiltedGridMethod | None = None
    levels: dict[float, TailSplit] = field(default_factory=dict)
    aims: list[float] = field(default_factory=list)
    """The last δ found by the integrals over jumps."""
    wide: list[float] = field(default_factory=list)
    """Each ε at which the integral left a bracket that is wide, and wider than the grid's."""
    guesses: dict[float, EpsilonGuess | None] = field(default_factory=dict)
    uses_grid: list[bool] = field(default_factory=list)
    """Not empty if a guess was last improved by the grid."""
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
        low, high, is_narrow, trouble = self._integrate_or_compose(epsilon)
        widest = WIDE_BRACKET if self.grid is None or epsilon < 0 else COMPOSED_WIDTH
        if is_narrow or high - low <= widest * high or high - self.total.infinite_mass <= SUBNORMAL:
            return low, high
        low, high = self._fallback_bounds(epsilon, (low, high))
        if high - low > widest * high:
            self.troubles[epsilon] = trouble
        return low, high

    def _integrate_or_compose(self, epsilon: float) -> tuple[float, float, bool, str]:
        """Integrate, and compose on a grid if the bracket is wide; near an ε where it was, compose first.

        Also return whether the grid's bracket is narrow.
        """
        low, high, is_narrow, trouble = 0.0, 1.0, False, "the integral cancels"
        # What was found at a wide bracket holds for an ε near it, too.
        if self.grid is not None and any(abs(epsilon - other) <= SAME_CASE * other for other in self.wide):
            low, high, is_narrow = self.grid.bracket_delta(epsilon)
            if high - low <= COMPOSED_WIDTH * high:
                return low, high, is_narrow, trouble
        below, above, trouble = self._integrate_levels(epsilon)
        low, high = max(low, below), min(high, above)
        if self.grid is not None and high - low > FINE_WIDTH * high and epsilon >= 0:
            below, above, is_narrow = self.grid.bracket_delta(epsilon)
            if high - low > max(NEARLY_FINE_WIDTH * high, 2 * (above - below)):
                self.wide.append(epsilon)
            low, high = max(low, below), min(high, above)
        return low, high, is_narrow, trouble

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
            return self.total.infinite_bounds[0], self.quick_delta_upper_bound(epsilon), str(caught)

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
        below, above = self._select_level(negligible_tail_mass(high)).delta(epsilon, math.log(high))
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
        low, high = max(low, known[0]), min(high, known[1], self.quick_delta_upper_bound(epsilon))
        if sum(self.total.counts) > FEW_STEPS or self._variance_is_tiny:
            return low, max(low, high)
        try:
            below, above = self.fallback.delta(epsilon)
        except PrecisionError:
            return low, max(low, high)
        low = max(low, below)
        return low, max(low, min(high, above))

    def quick_delta_upper_bound(self, epsilon: float) -> float:
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
        """Return ε of the saddle point; if that is hidden behind a wall, of the bodies' saddle: jumps add little.

        Where a grid can replace the integral, the guess is improved until δ there is near the target.
        """
        rest = target - self.total.infinite_mass
        if not rest > 0:
            return None
        if rest not in self.guesses:
            while len(self.guesses) >= CACHED_GUESSES:
                self.guesses.pop(next(iter(self.guesses)))
            guess = self._guess_near_saddle(rest)
            is_bounded = self.grid is None or math.isfinite(self.total.largest_loss)
            self.guesses[rest] = guess if is_bounded else self._refine_guess(guess or EpsilonGuess(1.0, 1.0), rest)
        return self.guesses[rest]

    def _guess_near_saddle(self, target: float) -> EpsilonGuess | None:
        lines = self._select_level(0.0).body.lines
        guess = self._guess_from_saddle(lines, target)
        if self._trims_tails and not (guess and lines.matches_target(guess[0], target, REUSE_FACTOR, FINE_WIDTH)):
            trimmed_lines = self._select_level(negligible_tail_mass(target)).body.lines
            guess = self._guess_from_saddle(trimmed_lines, target) or guess
            self.aims[:] = [target]
        return None if guess is None or not guess[0] > 0 else EpsilonGuess(guess[0], math.exp(guess[1] / FINENESS))

    def _refine_guess(self, guess: EpsilonGuess, target: float) -> EpsilonGuess:
        """Return a guess with δ near the target, by secants inside a bracket."""
        low, high, (epsilon, rate) = 0.0, math.inf, guess
        previous: tuple[float, float] | None = None
        for _ in range(MAX_REFINEMENTS):
            excess = math.log(max(self._rough_delta(epsilon), math.ulp(0.0)) / target)
            if previous is not None and (excess - previous[1]) * (previous[0] - epsilon) > 0:
                rate = (excess - previous[1]) / (previous[0] - epsilon)
            if abs(excess) < GUESS_NATS:
                break
            low, high = (epsilon, high) if excess > 0 else (low, epsilon)
            previous = epsilon, excess
            epsilon += excess / rate
            if epsilon <= low == 0 and self._rough_delta(0.0) <= target:
                return EpsilonGuess(0.0, rate)
            if not low < epsilon < high:
                epsilon = 2 * low if math.isinf(high) else (low + high) / 2
        return EpsilonGuess(epsilon, rate)

    def _rough_delta(self, epsilon: float) -> float:
        """Return an upper bound on δ, by the integral or a coarse grid: first that which was narrow the last time."""
        high = 1.0
        for _ in range(2):
            if self.uses_grid and self.grid is not None:
                below, above = self.grid.coarse_bracket(epsilon, ROUGH_WIDTH)
            else:
                below, above, _ = self._integrate_levels(epsilon)
                if above - below <= NEARLY_FINE_WIDTH * above:
                    self.answers[epsilon] = below, above
            high = min(high, above)
            if above - below <= ROUGH_WIDTH * above:
                break
            self.uses_grid[:] = [] if self.uses_grid else [True]
        return high

    @staticmethod
    def _guess_from_saddle(lines: LineIntegral, target: float) -> tuple[float, int] | None:
        try:
            return lines.right.approximate_epsilon_at(math.log(target))
        except PrecisionError:
            return None
