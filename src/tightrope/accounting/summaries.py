"""Summaries of a composition: Rényi divergences, the smallest ρ of zCDP, and the Gaussian that it approaches.

With K(z) = log E_P e^{zL} the Rényi divergence of order α of a dominating pair is D_α = K(α − 1)/(α − 1), and K is
convex with K(0) = 0. So ρ = sup K(z)/(z(z + 1)) is bounded on an interval of z by a chord of K
(``docs/proofs/renyi.md``).
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp, ndtr, ndtri

from tightrope.accounting.bounds import Bounds, Interval, TrueValueOf
from tightrope.accounting.curves import evaluate_each
from tightrope.accounting.distributions.atoms import Atoms
from tightrope.accounting.distributions.base import LossDistribution
from tightrope.accounting.distributions.composition import Composition
from tightrope.errors import InputError, PrecisionError
from tightrope.numerics.arrays import Floats

FINEST_CELLS = 1e-4
"""Width of cells, as a fraction of the range of losses."""
IGNORED_CELL = 1e-40
SMALLEST_ORDER, LARGEST_ORDER = 2.0**-30, 2.0**40
"""Range of z = α − 1 in which the supremum over all orders is searched; beyond it is bounded."""
ACCURACY = 1e-10
"""Relative width of the bracket on ρ at which the search ends."""
MAX_EVALUATIONS = 400
ROUNDING = 4e-16
SMALL_EXPONENT, ATOM_ROUNDING = 0.1, 8e-15
"""Exponents z l up to which e^{zl} − 1 is summed, and the rounding of such a sum, relative to its absolute terms."""
MODERATE_ORDERS = 1.0, 0.01, 100.0
"""Orders at which the search for ρ begins."""


class DominatingAtoms(NamedTuple):
    """Losses and logarithms of masses of a dominating distribution, for moments; its infinite mass and the slack."""

    losses: Floats
    log_masses: Floats
    infinite_mass: float
    slack: float

    def log_moment(self, order: float) -> float:
        """Return an upper bound on log Σ p e^{zl}."""
        largest = float(np.max(np.abs(self.losses), initial=0.0))
        error = 1e-15 * (order * largest + 64) + math.ulp(1.0) * len(self.losses)
        return float(logsumexp(order * self.losses + self.log_masses)) + error + order * self.slack


@lru_cache(maxsize=256)
def dominating_atoms(law: LossDistribution) -> DominatingAtoms:
    """Return the ends of fine cells: e^{zl} is convex in e^{−l}, so that their moment is at least as large."""
    coarse = law.loss_cells(0.25)
    has_mass = coarse.p_masses > IGNORED_CELL
    extent = float(np.max(coarse.upper[has_mass]) - np.min(coarse.lower[has_mass]))
    cells = law.loss_cells(max(extent * FINEST_CELLS, 1e-300))
    losses, masses = cells.dominating_atoms()
    positive = masses > 0
    infinite_mass = max(cells.infinite_mass, law.infinite_mass * (1 + law.infinity_mass_error))
    return DominatingAtoms(losses[positive], np.log(masses[positive]), infinite_mass, cells.slack)


def renyi_bounds(total: Composition, alpha: float) -> Interval:
    """Return bounds on the Rényi divergence of order α > 1, or ∞, of one direction; ∞ if a loss can be infinite."""
    if total.infinite_bounds[0] > 0:
        return math.inf, math.inf
    if alpha == math.inf:
        largest, rounding = total.largest_loss, total.rounding_error_bound
        return max(0.0, largest - rounding), max(0.0, largest + rounding)
    order = alpha - 1
    low, high = LogMoments(total).at_order(order)
    return low / order * (1 - ROUNDING), high / order * (1 + ROUNDING)


def zcdp_bounds(total: Composition) -> Interval:
    """Return bounds on the smallest ρ with D_α ≤ ρ α for every α > 1, of one direction; ∞ if there is none."""
    if total.infinite_bounds[0] > 0:
        return math.inf, math.inf
    return _SupremumSearch(LogMoments(total)).find_bounds() if total.laws else (0.0, 0.0)


@dataclass(frozen=True, slots=True, eq=False)
class LogMoments:
    """Bounds on K of one direction, cached by order."""

    total: Composition
    found: dict[float, Interval] = field(default_factory=dict)

    def at_order(self, order: float) -> Interval:
        """Return bounds on K(z) ≥ 0."""
        if order not in self.found:
            parts = [(_law_moment(law, order), n) for law, n in zip(self.total.laws, self.total.counts, strict=True)]
            low = math.fsum(n * bounds[0] for bounds, n in parts)
            self.found[order] = low * (1 - ROUNDING), math.fsum(n * bounds[1] for bounds, n in parts) * (1 + ROUNDING)
        return self.found[order]


def _law_moment(law: LossDistribution, order: float) -> Interval:
    """Return bounds on K(z) of one distribution: declared, in closed form, or from cells."""
    declared = law.declared_moment(order)
    if declared is not None:
        return declared * (1 - ROUNDING), declared * (1 + ROUNDING)
    if isinstance(law, Atoms) and law.infinite_mass == 0:
        return _atoms_moment(law, order)
    z = np.array([complex(order)])
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            enclosure = law.enclose_cumulant(z)
    except PrecisionError:
        enclosure = None
    if enclosure is not None and math.isfinite(enclosure[0][0].real) and math.isfinite(enclosure[1][0]):
        value = float(enclosure[0][0].real)
        error = float(enclosure[1][0]) + order * law.rounding_error_bound
        return max(0.0, value - error), max(0.0, value + error)
    if not order * min(law.largest_loss, 1.0) < math.inf:
        return 0.0, math.inf
    ceiling = law.zcdp_ceiling * order * (order + 1) * (1 + ROUNDING)
    atoms = dominating_atoms(law)
    return 0.0, ceiling if atoms.infinite_mass > 0 else min(ceiling, max(0.0, atoms.log_moment(order)))


def _atoms_moment(law: Atoms, order: float) -> Interval:
    """Return bounds on K of atoms whose masses add up to 1: log(1 + Σ p (e^{zl} − 1)) if all exponents are small."""
    exponents = order * law.losses
    size = float(np.max(np.abs(exponents), initial=0.0))
    loss_error = order * law.rounding_error_bound
    if size < SMALL_EXPONENT:
        growth = np.expm1(exponents)
        value = math.log1p(float(np.dot(law.masses, growth)))
        error = float(np.dot(law.masses, np.abs(growth))) * (law.relative_mass_error + ATOM_ROUNDING) * 2 + loss_error
    else:
        value = float(logsumexp(exponents, b=law.masses))
        error = law.relative_mass_error + ATOM_ROUNDING * (1 + size) + loss_error
    return max(0.0, value - error), max(0.0, value + error)


class _OrderRange(NamedTuple):
    """Orders z from ``low`` to ``high`` and minus a bound on K(z)/(z(z + 1)) there: the largest bound sorts first."""

    negative_bound: float
    low: float
    high: float
    uses_chord: bool


@dataclass(slots=True, eq=False)
class _SupremumSearch:
    """Branch and bound for sup K(z)/(z(z + 1)): ranges with the largest bounds are halved."""

    moments: LogMoments
    lower: float = 0.0

    def find_bounds(self) -> Interval:
        for order in MODERATE_ORDERS:
            self._evaluate(order)
        count = round(math.log2(LARGEST_ORDER / SMALLEST_ORDER))
        ends = [0.0, *(SMALLEST_ORDER * 2.0**i for i in range(count + 1)), math.inf]
        ranges = [_OrderRange(-self._ceiling(low), low, high, False) for low, high in pairwise(ends)]
        heapq.heapify(ranges)
        while len(self.moments.found) < MAX_EVALUATIONS:
            top = ranges[0]
            is_last = top.high == math.inf or (top.uses_chord and not top.high - top.low > 1e-9 * top.high)
            if is_last or -top.negative_bound <= self.lower * (1 + ACCURACY):
                break
            if not top.uses_chord:
                bound = min(-top.negative_bound, self._chord_bound(top.low, top.high))
                heapq.heapreplace(ranges, _OrderRange(-bound, top.low, top.high, True))
                continue
            middle = math.sqrt(top.low * top.high) if top.low > 0 else top.high / 2
            heapq.heappop(ranges)
            for low, high in ((top.low, middle), (middle, top.high)):
                bound = min(-top.negative_bound, self._ceiling(low), self._chord_bound(low, high))
                heapq.heappush(ranges, _OrderRange(-bound, low, high, True))
        return self.lower, -ranges[0].negative_bound * (1 + 8 * ROUNDING)

    def _evaluate(self, order: float) -> float:
        """Return the upper bound on K(z); raises the lower bound on the supremum."""
        low, high = self.moments.at_order(order)
        self.lower = max(self.lower, low / (order * (order + 1)) * (1 - 2 * ROUNDING))
        return high

    def _ceiling(self, order: float) -> float:
        """Return a bound for all orders from z on: of each distribution its own, or its largest loss over 1 + z."""
        total = self.moments.total
        parts = []
        for law, count in zip(total.laws, total.counts, strict=True):
            largest = max(0.0, law.largest_loss + law.rounding_error_bound)
            parts.append(count * min(law.zcdp_ceiling, largest / (1 + order)))
        return math.fsum(parts)

    def _chord_bound(self, low: float, high: float) -> float:
        """Return the maximum of the chord of K over z(z + 1): (p + sz)/(z² + z), p ≤ 0, rises up to one z and falls."""
        last = self._evaluate(high)
        if low == 0 or not last < math.inf:
            return last / high if low == 0 else math.inf
        first = self._evaluate(low)
        slope = (last - first) / (high - low)
        start = min(first - slope * low, 0.0)
        best = (-start + math.sqrt(start * (start - slope))) / slope if slope > 0 else low
        z = min(max(best, low), high)
        return max((first + slope * (at - low)) / (at * (at + 1)) for at in (low, z, high))


# The central limit theorem for composition: many small losses are close to one Gaussian (GI Thm 3).
#
# T = Σ L_i is nearly normal under P and under Q. The Berry–Esseen theorem bounds the distance (0.56 Σ E|L − EL|³ / s³),
# so the trade-off curve lies between two Gaussian ones (Dong–Roth–Su Thm 3.4, here also for unequal directions).

BERRY_ESSEEN = 0.56
CELLS = 20_000
"""Number of cells that a loss distribution is cut into."""


@dataclass(frozen=True, slots=True)
class LossSpread:
    """Norms of the cell ends of a loss distribution, and of the distances of its losses from these ends.

    ``mean``, ``deviation`` and ``third``: mean, L² and L³ norm of the centered ends; ``drift``: bound on how far the
    mean loss is below ``mean``; ``distance`` and ``distance_third``: L² and L³ norm of the distances.
    """

    mean: float
    drift: float
    deviation: float
    distance: float
    third: float
    distance_third: float

    @classmethod
    def from_cells(cls, law: LossDistribution) -> Self:
        """Return the norms; cell ends have the larger mean, and a loss is at most the cell's width from its end."""
        cells = law.cells_by_count(CELLS)
        losses, masses = cells.dominating_atoms()
        losses, masses = losses[masses > 0], masses[masses > 0]
        mean = float(np.dot(masses, losses))
        spread = np.abs(losses - mean)
        p, width = cells.p_masses[cells.p_masses > 0], (cells.upper - cells.lower)[cells.p_masses > 0]
        drift = float(p @ (width**2 * np.exp(np.minimum(width, 700.0)))) / 2
        deviation, distance = math.sqrt(float(masses @ spread**2)), math.sqrt(float(p @ width**2))
        return cls(
            mean, drift, deviation, distance, _cube_root(float(masses @ spread**3)), _cube_root(float(p @ width**3))
        )


def _cube_root(value: float) -> float:
    return float(np.cbrt(value))


@dataclass(frozen=True, slots=True)
class SumMoments:
    """Moments of a sum: (lower, upper) bounds on its mean and deviation, and its Berry–Esseen distance to a normal."""

    mean: tuple[float, float]
    deviation: tuple[float, float]
    distance: float
    approximate_deviation: float
    """The deviation of the cell ends, between the bounds."""

    @classmethod
    def from_spread(cls, total: Composition) -> Self:
        """Return the moments of a composition.

        By Minkowski, norms differ by at most the norm of the distances, for centered losses by at most twice that.
        """
        steps = [(LossSpread.from_cells(law), n) for law, n in zip(total.laws, total.counts, strict=True)]
        mean = math.fsum(n * spread.mean for spread, n in steps)
        drift = math.fsum(n * spread.drift for spread, n in steps)
        low_deviation = math.sqrt(
            math.fsum(n * max(0.0, spread.deviation - spread.distance) ** 2 for spread, n in steps)
        )
        high_deviation = math.sqrt(math.fsum(n * (spread.deviation + spread.distance) ** 2 for spread, n in steps))
        third = math.fsum(n * (spread.third + 2 * spread.distance_third) ** 3 for spread, n in steps)
        approximate_deviation = math.sqrt(math.fsum(n * spread.deviation**2 for spread, n in steps))
        distance = BERRY_ESSEEN * third / low_deviation**3 if low_deviation else math.inf
        return cls((mean - drift, mean), (low_deviation, high_deviation), distance, approximate_deviation)


@dataclass(frozen=True, slots=True)
class DirectionMoments:
    """Moments of one direction: of the sum of the losses under P, and of their negatives under Q."""

    under_p: SumMoments
    under_q: SumMoments

    @classmethod
    def from_direction(cls, total: Composition) -> Self:
        """Return the moments of one direction of a loss; ``InputError`` if it has no Gaussian limit."""
        if not total.laws or total.infinite_mass > 0:
            value = total.infinite_mass if total.laws else "an empty composition"
            raise InputError("loss", value, "one with delta(inf) = 0", "a Gaussian has no infinite loss (GI Thm 3)")
        side = cls(SumMoments.from_spread(total), SumMoments.from_spread(total.reverse_distribution()))
        if not side.under_p.deviation[1] > 0:
            raise InputError("loss", 0.0, "one that is not always 0", "a loss of 0 has no Gaussian limit")
        return side

    @property
    def gaussian_mu(self) -> float:
        """(E_P L − E_Q L) / s."""
        return (self.under_p.mean[1] + self.under_q.mean[1]) / self.under_p.approximate_deviation

    def tradeoff_bound(self, level: Floats, *, worst: bool) -> Floats:
        """Return Φ((s_Q Φ⁻¹(level) − a − b) / s_P), with every bound taken on the requested side."""
        p, q = self.under_p, self.under_q
        quantile = ndtri(np.clip(level, 0.0, 1.0))
        gap = p.mean[1] + q.mean[1] if worst else p.mean[0] + q.mean[0]
        ends = [
            (q_deviation * quantile - gap) / p_deviation for q_deviation in q.deviation for p_deviation in p.deviation
        ]
        return np.asarray(ndtr(np.min(ends, axis=0) if worst else np.max(ends, axis=0)))


@dataclass(frozen=True, slots=True)
class GaussianLimit:
    """The Gaussian that a composition approaches.

    ``mu``: nearly μ-GDP (the worse direction), μ = 2 Σ KL / s for equal directions, which tends to √(2 Σ ε_i η_i).
    ``distance``: the Berry–Esseen bound γ; ``tradeoff_bounds`` is informative when it is well below ½.
    """

    mu: float
    distance: float
    sides: tuple[DirectionMoments, ...]

    @classmethod
    def from_loss(cls, *directions: Composition) -> Self:
        """Return the limit of one direction, or of both."""
        sides = tuple(DirectionMoments.from_direction(total) for total in directions)
        distance = max(max(side.under_p.distance, side.under_q.distance) for side in sides)
        return cls(max(side.gaussian_mu for side in sides), distance, sides)

    def tradeoff_bounds(self, false_positive_rate: ArrayLike) -> Bounds:
        """Bounds on the type-II error f(t): Φ(r Φ⁻¹(1 − t ∓ γ_Q) − μ) ∓ γ_P, r the ratio of the deviations.

        >>> from tightrope import approx_dp
        >>> loss = 10_000 * approx_dp(0.01).loss
        >>> bounds = loss.gaussian_limit().tradeoff_bounds(0.1)
        >>> bool(bounds.lower <= loss.tradeoff(0.1) <= bounds.upper)
        True
        """
        lower = evaluate_each("false_positive_rate", false_positive_rate, lambda t: self._tradeoff_bound(t, worst=True))
        upper = evaluate_each(
            "false_positive_rate", false_positive_rate, lambda t: self._tradeoff_bound(t, worst=False)
        )
        return Bounds(lower, upper, TrueValueOf.PAIRS.value)

    def _tradeoff_bound(self, t: Floats, *, worst: bool) -> Floats:
        """Return the lower bound on f(t) if ``worst``, else the upper one."""
        if not np.all((t >= 0) & (t <= 1)):
            raise InputError("false_positive_rate", t.tolist(), "probabilities in [0, 1]")
        sign = -1 if worst else 1
        curves = [
            side.tradeoff_bound(1 - t + sign * side.under_q.distance, worst=worst) + sign * side.under_p.distance
            for side in self.sides
        ]
        return np.asarray(np.clip(np.min(curves, axis=0), 0.0, 1 - t))
