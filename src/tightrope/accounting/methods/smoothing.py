"""Distributions whose moments are known but never decay: the integral of a slightly smoothed loss.

Adding a normal loss of variance μ² to the sum (the loss of a μ-private Gaussian) raises δ by at most
μ/√(2π) · E e^{−x/2 − x²/2μ²}, x = L − ε, which the same nodes give: of order μ² times the density near ε, for any
number of losses (``docs/proofs/smoothed.md``). Heavy atoms of a few losses with densities are set apart and summed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from tightrope.accounting.bounds import Interval, probability_error_bounds
from tightrope.accounting.distributions.atoms import Atoms, enumerate_composition
from tightrope.accounting.distributions.base import LossDistribution
from tightrope.accounting.distributions.composition import Composition
from tightrope.accounting.methods.method import EpsilonGuess, Method, interpolate_epsilon
from tightrope.accounting.methods.smoothing_line import (
    NODE_RANGE,
    CostLimitError,
    FiniteLineDistribution,
    LineComponent,
    SmoothLine,
    distribution_on_line,
    smooth_line,
    uniform_slack,
)
from tightrope.errors import PrecisionError
from tightrope.numerics.arrays import Floats
from tightrope.numerics.rounding import ROUND_OFF, SUBNORMAL

# The atoms of a few losses with densities, summed separately by enumeration.


@dataclass(frozen=True, slots=True, eq=False)
class AtomicPart:
    """The sums in which every loss is an atom: their distribution, and the atoms of each distribution with counts."""

    sums: Atoms
    laws: tuple[Atoms, ...]
    counts: tuple[int, ...]

    @property
    def relative_error(self) -> float:
        """Relative error of the masses."""
        return self.sums.relative_mass_error + ROUND_OFF * (16 + len(self.sums.losses))

    def delta(self, epsilon: float) -> tuple[float, float]:
        """Return Σ p (1 − e^{ε−l})₊ and its relative error."""
        gains = -np.expm1(np.minimum(epsilon - self.sums.losses, 0.0))
        return float(np.dot(self.sums.masses, gains)), self.relative_error

    def smoothed_delta(self, epsilon: float) -> tuple[float, float]:
        """Return Σ p min(1, e^{ε−l}) and its relative error."""
        return float(np.dot(self.sums.masses, np.exp(np.minimum(epsilon - self.sums.losses, 0.0)))), self.relative_error

    def line_part(self, c: float, cumulant: float) -> LineComponent:
        """Return the part on the line through c, relative to e^{K(c)}."""
        laws = [FiniteLineDistribution.from_law(law, c) for law in self.laws]
        atoms_cumulant = math.fsum(n * law.cumulant for law, n in zip(laws, self.counts, strict=True))
        return LineComponent(laws, self.counts, atoms_cumulant - cumulant)


def separate_heavy_atoms(total: Composition) -> AtomicPart | None:
    """Return the atoms to sum separately; None if a distribution lacks atoms, all are finite, or sums are too many."""
    if all(isinstance(law, Atoms) for law in total.laws):
        return None
    laws: list[Atoms] = []
    for law in total.laws:
        if isinstance(law, Atoms):
            laws.append(law)
            continue
        cells = law.loss_cells(math.inf)
        single = (cells.lower == cells.upper) & (cells.p_masses > 0)
        masses = cells.p_masses[single]
        rest = 1 - math.fsum(masses)  # counts as infinite
        laws.append(
            Atoms.merge_losses(
                cells.lower[single],
                masses,
                infinite_mass=rest,
                reverse_infinity_mass=rest,
                rounding_error_bound=cells.slack,
            )
        )
    if not all(len(law.losses) for law in laws):
        return None
    sums = enumerate_composition(Composition(tuple(laws), total.counts))
    return None if sums is None else AtomicPart(sums, tuple(laws), total.counts)


# Saddle points on a grid, Chernoff's bounds, and the aliases that they bound (``docs/proofs/contour.md``).

Position = tuple[bool, int]
"""True if a line lies between the poles, and the index of the line."""
LINES_PER_UNIT = 6
"""Lines are at c = e^{i/6}, or at c = −1/(1 + e^{−(i + ½)/6})."""
MAX_INDEX = 40 * LINES_PER_UNIT
TOLERANCE = 1e-11
"""Largest size of aliases, relative to δ."""
ALIAS_SPARE_NATS = 4.0
"""Nats by which aliases may be larger if a line was made for another ε."""
ALIAS_ROUNDING = 1e-9
SHRINK = 0.85
STEP_DIGITS = 16
"""Binary digits of a step: so that its multiples are exact."""
NEAR_ENDS = 1.5 ** -np.arange(2.0, 18.0)
RATIOS = np.sort(np.concatenate([np.exp(np.linspace(-7, 2.5, 20)), 1 + NEAR_ENDS, 1 - NEAR_ENDS]))
"""Points at which the bound is tried, as multiples of the saddle: dense around it, because K may rise like a wall."""
PARTS = np.concatenate([[1.0, 0.97, 0.9, 0.8, 0.65], NEAR_ENDS])
"""Points between the poles, as fractions of the distance to either."""


@dataclass(frozen=True, slots=True, eq=False)
class ChernoffBound:
    """Chernoff's bounds of one composed direction."""

    total: Composition
    cumulants: dict[Position, float] = field(default_factory=dict)
    others: dict[Position, tuple[Floats, Floats]] = field(default_factory=dict)
    latest: dict[bool, int] = field(default_factory=dict)

    def cumulant_at(self, position: Position) -> float:
        """Return K at the position, approximately; ∞ if it is infinite."""
        if position not in self.cumulants:
            self.cumulants[position] = float(self._real_cumulant(np.array([point_at_position(position)]))[0])
        return self.cumulants[position]

    @property
    def middle_range(self) -> tuple[float, float]:
        """The approximate range where 1 − δ is small relative to δ and e^ε: a deviation inside the means under Q and P.

        It serves only to choose between methods. The squared deviation is about the difference of both means.
        """
        ends = self._real_cumulant(np.array([-1.0, -0.99, -0.01, 0.0])).tolist()
        under_q, under_p = (ends[1] - ends[0]) / 0.01, (ends[3] - ends[2]) / 0.01
        deviation = math.sqrt(max(under_p - under_q, 0.0))
        return under_q + deviation, under_p - deviation

    def find_saddle(self, epsilon: float, *, between_poles: bool) -> Position:
        """Return the minimizer of K(c) − cε − log |c| − log(1 + c): descend from the last one with halving strides."""

        def log_integrand(index: int) -> float:
            c = point_at_position((between_poles, index))
            return self.cumulant_at((between_poles, index)) - c * epsilon - math.log(abs(c)) - math.log1p(c)

        current = self.latest.get(between_poles, 0)
        stride = LINES_PER_UNIT if between_poles in self.latest else 4 * LINES_PER_UNIT
        while stride:
            neighbors = [i for i in (current - stride, current + stride) if abs(i) <= MAX_INDEX]
            best = min(neighbors, key=lambda index: (log_integrand(index), index))
            if (log_integrand(best), best) < (log_integrand(current), current):
                current = best
            else:
                stride //= 2
        if not math.isfinite(log_integrand(current)):
            raise PrecisionError(f"no saddle point was found at epsilon={epsilon!r}")
        self.latest[between_poles] = current
        return between_poles, current

    def delta_chernoff_bound(self, epsilon: float) -> float:
        """Return δ_∞ + e^{K(c) − cε} m ≥ δ, at the saddle c.

        (1 − e^{ε−L})₊ ≤ m e^{c(L−ε)} with m = c^c/(1+c)^{1+c}, or 1 − e^{ε−l} where L ≤ l.
        """
        try:
            position = self.find_saddle(epsilon, between_poles=False)
            c = point_at_position(position)
            cumulant, error = self.total.log_moments(np.array([complex(c)]))
        except PrecisionError:
            return 1.0
        value, infinite = float(cumulant[0].real), self.total.infinite_bounds[1]
        log_factor = c * math.log(c) - (1 + c) * math.log1p(c)
        distance = self.distance_to_maximum(epsilon)
        if distance > 0:
            log_factor = min(log_factor, math.log(-math.expm1(-distance)))
        rounding = float(error[0]) + 16 * ROUND_OFF * (abs(value) + abs(c * epsilon) + abs(log_factor) + 64)
        log_bound = value - c * epsilon + log_factor + c * self.total.rounding_error_bound + rounding
        return probability_error_bounds(infinite + math.exp(min(log_bound, 0.0)), 8 * ROUND_OFF)[1]

    def distance_to_maximum(self, epsilon: float) -> float:
        """Return an upper bound on the largest loss less ε."""
        distance = self.total.largest_loss - epsilon
        if not distance < math.inf:
            return math.inf
        return distance + self.total.rounding_error_bound + 4 * ROUND_OFF * abs(epsilon)

    def approximate_epsilon_at(self, target: float) -> EpsilonGuess | None:
        """Return ε at which the best bound is ``target``: the least (K(c) + log(c^c/(1+c)^{1+c}) − log target)/c."""
        rest = target - self.total.infinite_mass
        if not rest > 0:
            return None
        positions = [(False, index) for index in range(-MAX_INDEX // 4, MAX_INDEX + 1, LINES_PER_UNIT)]
        best = min(positions, key=lambda position: self._epsilon_for_bound(position, rest))
        neighbors = [(False, best[1] + i) for i in range(1 - LINES_PER_UNIT, LINES_PER_UNIT)]
        best = min(neighbors, key=lambda position: self._epsilon_for_bound(position, rest))
        epsilon = self._epsilon_for_bound(best, rest)
        if not 0 < epsilon < math.inf:
            return None
        self.latest.setdefault(False, best[1])
        if epsilon < self.total.largest_loss:
            return EpsilonGuess(epsilon, point_at_position(best))
        return self._guess_near_maximum(best, rest)

    def _guess_near_maximum(self, position: Position, target: float) -> EpsilonGuess | None:
        """Return ε with P(L = l) (1 − e^{ε−l}) = ``target``, l the largest loss, of mass about M(c) e^{−cl} far out."""
        log_mass = self.cumulant_at(position) - point_at_position(position) * self.total.largest_loss
        fraction = target * math.exp(min(-log_mass, 700.0))
        distance = -math.log1p(-fraction) if fraction < 1 else math.inf
        if not 0 < distance < self.total.largest_loss:
            return None
        return EpsilonGuess(self.total.largest_loss - distance, 1 / distance)

    def _epsilon_for_bound(self, position: Position, target: float) -> float:
        """Return the ε at which the bound from this line is the target."""
        c = point_at_position(position)
        return (self.cumulant_at(position) + c * math.log(c) - (1 + c) * math.log1p(c) - math.log(target)) / c

    def log_alias_bound(self, position: Position, epsilon: float, step: float, smooth: float = 0.0) -> float:
        """Return the log of a bound on the aliases, relative to e^{K(c) − cε}: both signs, geometric sums over n ≥ 1.

        ``smooth``: the deviation of a normal loss that was added and is missing in K(c).
        """
        c, shift, total = point_at_position(position), 2 * math.pi / step, -math.inf
        others, bounds = self._other_real_points(position)
        log_integrand = self.cumulant_at(position) - c * epsilon
        bounds = bounds + smooth**2 * (others + others**2) / 2 - others * epsilon - log_integrand
        for sign in (1, -1):
            on_side = (others - c) * sign > 1e-12 * abs(c)
            rate = np.abs(others[on_side] - c) * shift
            terms = bounds[on_side] - rate - np.log(-np.expm1(-rate))
            total = float(np.logaddexp(total, np.min(terms, initial=math.inf)))
        return total + ALIAS_ROUNDING

    def widest_valid_step(self, position: Position, epsilon: float, deviation: float) -> float:
        """Return a wide step whose aliases are small enough, with few binary digits."""
        c = point_at_position(position)
        for index in range(200):
            # About the value, with `DIGITS` binary digits.
            value = 4.0 * (1 + abs(c)) * SHRINK**index
            mantissa, exponent = math.frexp(value)
            step = math.ldexp(math.floor(math.ldexp(mantissa, STEP_DIGITS)), exponent - STEP_DIGITS)
            if self.alias_is_small(position, epsilon, step, deviation, 0.0):
                return step
        raise PrecisionError(f"no step keeps the aliases below {TOLERANCE} at c={c:.3g}")

    def alias_is_small(
        self,
        position: Position,
        epsilon: float,
        step: float,
        deviation: float,
        spare_nats: float = ALIAS_SPARE_NATS,
    ) -> bool:
        """Return whether the aliases are small relative to the integral.

        The integral is about e^{height} / (|c(c+1)| √(2π) (deviation + 1/|c|)), with the deviation of the tilted sum.
        """
        c = point_at_position(position)
        size = -math.log(abs(c) * (1 + c) * 2.5 * (deviation + 1 / abs(c)))
        return self.log_alias_bound(position, epsilon, step) <= math.log(TOLERANCE) + size + spare_nats

    def _other_real_points(self, position: Position) -> tuple[Floats, Floats]:
        """Return other real points and log(e^{K(c')} c'^c' / (1+c')^{1+c'}) there; between the poles the last is 1."""
        if position not in self.others:
            c = point_at_position(position)
            others = np.sort(np.concatenate([c - c * PARTS, c - (1 + c) * PARTS])) if position[0] else c * RATIOS
            peaks = np.zeros_like(others) if position[0] else others * np.log(others) - (1 + others) * np.log1p(others)
            self.others[position] = others, self._real_cumulant(others) + peaks
        return self.others[position]

    def _real_cumulant(self, c: Floats) -> Floats:
        """Return K on the real axis, approximately; ∞ if it is infinite or unknown."""
        moments = self._log_moments(c)
        if moments is None:
            parts = [self._log_moments(c[i : i + 1]) for i in range(len(c))] if len(c) > 1 else [None]
            moments = np.concatenate([np.full(1, np.inf) if part is None else part for part in parts])
        return np.where(np.isfinite(moments), moments, np.inf)

    def _log_moments(self, c: Floats) -> Floats | None:
        try:
            moments = self.total.log_moment(c.astype(np.complex128))
        except PrecisionError:
            return None
        return None if moments is None else np.asarray(moments.real)


def point_at_position(position: Position) -> float:
    """Return c at a position."""
    between_poles, index = position
    return -1 / (1 + math.exp(-(index + 0.5) / LINES_PER_UNIT)) if between_poles else math.exp(index / LINES_PER_UNIT)


MIN_GAIN = 1e-10
"""Target for the relative gain."""
MAX_GAIN = 1e-2
MAX_ANGLE = 4e8
"""Largest Im z times the largest atom: beyond it the rounding of losses dominates."""
MOST_NODES = 1 << 19
COARSE_GAIN, COARSE_NODE_FACTOR = 3e-9, 4
"""If the smoothing error would exceed the first number, this many times the nodes are cheaper than a grid."""
MAX_NODE_ATOMS = 1 << 27
"""Nodes times atoms."""
CACHED_LINES = 4
EPSILON_ROUNDING = 1e-9
"""Relative error of ε that explains a bracket near the largest loss, where grids are no more precise."""
FEW_STEPS = 1000
"""Number of steps up to which grids are most precise."""
INTEGRAL_COST = 2000
"""The cost of a moment that is an integral, in atoms."""
NARROW_SUM = 1e-7
"""Relative width of a sum with δ that is narrow enough if δ is the smaller part."""
NARROW_ALONE = 1e-6
"""Relative width beyond which the fallback method is tried, too."""


@dataclass(frozen=True, slots=True, eq=False)
class SmoothedLineSums:
    """One line: K(c), its error, the smoothed sums and their aliases."""

    position: Position
    cumulant: float
    error: float
    deviation: float
    step: float
    smooth: float
    sums: SmoothLine


@dataclass(frozen=True, eq=False)
class SmoothingMethod(Method):
    """The smoothed contour integral; ``fallback`` is used if it fails or if the interval is wide."""

    total: Composition
    fallback: Method
    bounds: ChernoffBound
    lines: dict[Position, SmoothedLineSums] = field(default_factory=dict)
    name = "smoothed contour"

    @cached_property
    def separate_atoms(self) -> AtomicPart | None:
        """The separately summed atoms, computed on first use: there may be sums of a thousand losses."""
        return separate_heavy_atoms(self.total)

    @cached_property
    def reverse_method(self) -> SmoothingMethod:
        """The method for the reverse direction."""
        reverse = self.total.reverse_distribution()
        return SmoothingMethod(reverse, self.fallback, ChernoffBound(reverse))

    def delta(self, epsilon: float) -> Interval:
        return self._narrowest_interval(epsilon, 0.0)

    def delta_to_precision(self, epsilon: float, size: float) -> Interval:
        return self._narrowest_interval(epsilon, size)

    def _narrowest_interval(self, epsilon: float, size: float) -> Interval:
        """Return the narrowest interval; with ``_grid_goes_first`` the fallback is tried before the slow lines."""
        bounds = self._unconditional_bounds(epsilon)
        methods = (self.fallback.delta, self._integrate_stably)
        for delta in methods if self._grid_goes_first else methods[::-1]:
            if bounds[1] - bounds[0] <= NARROW_SUM * size or self._is_narrow_enough(epsilon, *bounds):
                break
            bounds = _tighten_bounds(bounds, delta, epsilon)
        return bounds

    def _is_narrow_enough(self, epsilon: float, low: float, high: float) -> bool:
        return (
            high - low <= NARROW_ALONE * high
            or high - self.total.infinite_mass <= SUBNORMAL
            or self._within_rounding(epsilon, low, high)
        )

    def _delta_without_fallback(self, epsilon: float) -> Interval:
        """Return an interval without the fallback method."""
        low, high = self._unconditional_bounds(epsilon)
        if self._is_narrow_enough(epsilon, low, high):
            return low, high
        return _tighten_bounds((low, high), self._integrate_stably, epsilon)

    def _unconditional_bounds(self, epsilon: float) -> Interval:
        """Return bounds that always hold."""
        if epsilon >= self.total.largest_loss + self.total.rounding_error_bound:
            return self.total.infinite_bounds
        low, high = self.total.infinite_bounds[0], self.quick_delta_upper_bound(epsilon)
        if high - self.total.infinite_mass <= SUBNORMAL:
            return low, high
        return max(low, self._atomic_lower_bound(epsilon)), high

    def _within_rounding(self, epsilon: float, low: float, high: float) -> bool:
        """Return whether δ, which falls to δ_∞ at the largest loss, is as precise as rounding of ε permits there."""
        return (high - low) * self.bounds.distance_to_maximum(epsilon) <= EPSILON_ROUNDING * abs(epsilon) * (
            high - self.total.infinite_mass
        )

    def _atomic_lower_bound(self, epsilon: float) -> float:
        """Return a lower bound on δ, from the paths in which every loss is an atom."""
        if self.separate_atoms is None:
            return 0.0
        slack = (
            self.total.rounding_error_bound
            + self.separate_atoms.sums.rounding_error_bound
            + 4 * ROUND_OFF * abs(epsilon)
        )
        exact, error = self.separate_atoms.delta(epsilon + slack)
        infinite = self.total.infinite_bounds[0]
        return probability_error_bounds(infinite + exact * (1 - error), 4 * ROUND_OFF * (infinite + exact))[0]

    def quick_delta_upper_bound(self, epsilon: float) -> float:
        return self.bounds.delta_chernoff_bound(epsilon)

    def approximate_epsilon_at(self, target: float) -> EpsilonGuess | None:
        rough = self.bounds.approximate_epsilon_at(target)
        upper = self.fallback.delta_upper_bound if self._grid_goes_first else self._upper_bound_without_fallback
        try:
            return rough and interpolate_epsilon(upper, rough, target, self.total.largest_loss)
        except PrecisionError:
            return rough

    def _upper_bound_without_fallback(self, epsilon: float) -> float:
        return self._delta_without_fallback(epsilon)[1]

    @cached_property
    def _grid_goes_first(self) -> bool:
        """Return whether to try the grid first: for few steps with a moment that is an integral (lines are costly)."""
        return sum(self.total.counts) <= FEW_STEPS and any(law.needs_quadrature for law in self.total.laws)

    def _integrate_stably(self, epsilon: float) -> Interval:
        """Use δ down to a deviation below the mean loss, then 1 − δ; near the mean under Q the reverse order's δ."""
        pairs = zip(self.total.laws, self.total.counts, strict=True)
        slack = math.fsum(n * uniform_slack(law) for law, n in pairs) + 2 * ROUND_OFF * abs(epsilon)
        least, most = self.bounds.middle_range
        if epsilon >= most:
            low, high = self._finite_part(epsilon + slack)[0], self._finite_part(epsilon - slack)[1]
            infinite, error = self.total.infinite_mass, self._infinite_error
            return probability_error_bounds(infinite + low, error)[0], probability_error_bounds(infinite + high, error)[
                1
            ]
        if epsilon > min(0.0, least):
            largest_complement = self._finite_part(epsilon + slack, between_poles=True)[1]
            smallest_complement = self._finite_part(epsilon - slack, between_poles=True)[0]
            low, _ = probability_error_bounds(1 - largest_complement, 4 * ROUND_OFF)
            _, high = probability_error_bounds(1 - smallest_complement, 4 * ROUND_OFF)
            return low, high
        low, high = self.reverse_method._delta_without_fallback(-epsilon)
        base, factor = -math.expm1(epsilon), math.exp(epsilon)
        low, _ = probability_error_bounds(base + factor * low, 8 * ROUND_OFF)
        _, high = probability_error_bounds(base + factor * high, 8 * ROUND_OFF)
        return low, high

    @property
    def _infinite_error(self) -> float:
        """The rounding error of the infinite mass, and of adding to it."""
        return self.total.infinite_bounds[1] - self.total.infinite_mass + 4 * ROUND_OFF * self.total.infinite_mass

    def _finite_part(self, epsilon: float, *, between_poles: bool = False) -> Interval:
        """Return an interval for δ − δ_∞, or for 1 − δ between the poles."""
        line = self._line_for_epsilon(epsilon, between_poles=between_poles)
        (value, value_error), (gain, gain_error) = line.sums.sums_at(epsilon)
        alias = math.exp(self.bounds.log_alias_bound(line.position, epsilon, line.step, line.smooth))
        gain = max(gain, 0.0) + gain_error
        if between_poles:
            below, above = value_error + alias, value_error + gain
        else:
            below, above = value_error + alias + gain, value_error
        height = line.cumulant - point_at_position(line.position) * epsilon
        if not height < 600:
            raise PrecisionError(f"the integrand is as large as e^{height:.4g} at epsilon={epsilon!r}")
        low, high = (math.exp(height) * max(end, 0.0) for end in (value - below, value + above))
        error = line.error + ROUND_OFF * (8 + 4 * abs(height) + 4 * abs(line.cumulant))
        low, high = low * (1 - min(error, 1.0)), high * math.exp(min(error, 600.0))
        if self.separate_atoms is None:
            return low, high
        exact, error = (
            self.separate_atoms.smoothed_delta(epsilon) if between_poles else self.separate_atoms.delta(epsilon)
        )
        return low + exact * (1 - error), high + exact * (1 + error)

    def _line_for_epsilon(self, epsilon: float, *, between_poles: bool) -> SmoothedLineSums:
        """Return a cached line with small aliases, or a new one."""
        position = self.bounds.find_saddle(epsilon, between_poles=between_poles)
        cached = self.lines.get(position)
        if cached is not None and self.bounds.alias_is_small(position, epsilon, cached.step, cached.deviation):
            return cached
        if len(self.lines) >= CACHED_LINES:
            self.lines.clear()
        self.lines[position] = self._affordable_line(position, epsilon)
        return self.lines[position]

    def _affordable_line(self, position: Position, epsilon: float) -> SmoothedLineSums:
        """Return a line with the least affordable smoothing."""
        c = point_at_position(position)
        laws = [distribution_on_line(law, c) for law in self.total.laws]
        cumulant = math.fsum(n * law.cumulant for law, n in zip(laws, self.total.counts, strict=True))
        error = math.fsum(n * law.error for law, n in zip(laws, self.total.counts, strict=True))
        deviation = math.sqrt(math.fsum(n * law.variance for law, n in zip(laws, self.total.counts, strict=True)))
        step = self.bounds.widest_valid_step(position, epsilon, deviation)
        apart = None if self.separate_atoms is None else self.separate_atoms.line_part(c, cumulant)
        parts = LineComponent(laws, self.total.counts, 0.0), apart
        relative = max(MIN_GAIN, abs(c) * (1 + c) * (NODE_RANGE * self._largest_atom_loss / MAX_ANGLE) ** 2)
        while relative <= MAX_GAIN:
            try:
                smooth = math.sqrt(relative / (abs(c) * (1 + c)))
                sums = smooth_line(c, parts, step, smooth, self._affordable_nodes(relative))
                return SmoothedLineSums(position, cumulant, error, deviation, step, smooth, sums)
            except PrecisionError as caught:  # nodes grow no faster than 1/μ
                relative *= max(4.0, caught.ratio**2) if isinstance(caught, CostLimitError) else 4.0
        raise PrecisionError(f"the sum of {sum(self.total.counts)} losses needs too many nodes at epsilon={epsilon!r}")

    @property
    def _largest_atom_loss(self) -> float:
        """The largest atom, in nats."""
        finite = [float(np.max(np.abs(law.losses), initial=0.0)) for law in self.total.laws if isinstance(law, Atoms)]
        return max(finite, default=0.0)

    def _affordable_nodes(self, relative: float) -> int:
        """Return the largest affordable number of nodes."""
        node_cost = sum(40 + self._node_cost(law) for law in self.total.laws)
        return min(MOST_NODES, MAX_NODE_ATOMS // node_cost) * (COARSE_NODE_FACTOR if relative > COARSE_GAIN else 1)

    def _node_cost(self, law: LossDistribution) -> int:
        """Return the cost of a node; an integral's full cost applies only if the grid goes first."""
        if isinstance(law, Atoms):
            return len(law.losses)
        return INTEGRAL_COST if self._grid_goes_first and law.needs_quadrature else 100


def _tighten_bounds(bounds: Interval, delta: Callable[[float], Interval], epsilon: float) -> Interval:
    """Return the intersection of ``bounds`` with the interval ``delta(epsilon)``, unless computing that fails."""
    try:
        low, high = delta(epsilon)
    except PrecisionError:
        return bounds
    return max(bounds[0], low), min(bounds[1], high)


def build_smoothing_method(total: Composition, fallback: Method) -> Method:
    """Return this method if every distribution has a formula for its moments, else ``fallback``."""
    applies = all(isinstance(law, Atoms) or law.has_moment for law in total.laws)
    return SmoothingMethod(total, fallback, ChernoffBound(total)) if applies else fallback
