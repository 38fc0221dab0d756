"""One direction of a dominating pair, as the distribution of its privacy loss L = log dP/dQ under P.

The class offers everything that a method may need; each method uses a part of it. Losses are in nats.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tightrope.numerics.arrays import Complexes, Floats
from tightrope.numerics.rounding import ROUND_OFF

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tightrope.accounting.distributions.loss_cells import LossCells


class FlatForm(NamedTuple):
    """A Laplace-type loss distribution tilted by e^{−l/2}: ``atom`` at −ε and at +ε, ``spread`` uniform between."""

    epsilon: float
    atom: float
    spread: float

    @property
    def tilted_mass(self) -> float:
        """M = 2a + b, the total mass of the tilted distribution: E e^{−L/2}."""
        return 2 * self.atom + self.spread

    @property
    def density_odds(self) -> float:
        """The density's mass relative to both atoms."""
        return self.spread / (2 * self.atom) if self.atom > 0 else math.inf


class GaussianForm(NamedTuple):
    """A discrete Gaussian of this scale and the same moved by ``shift``, each up to a total variation ``distance``."""

    scale: float
    shift: int
    distance: float


BoundArrays = tuple[Floats, Floats]
"""A lower and an upper bound of each number, both of shape [n]."""


class LossDistribution(ABC):
    """Distribution of the privacy loss of one ordered pair (P, Q), under P.

    ``infinite_mass`` is P(L = +∞): the probability of outputs that are impossible under Q.
    ``reverse_infinity_mass`` is Q(L = −∞): the probability under Q of outputs that are impossible under P.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def infinite_mass(self) -> float: ...

    @property
    @abstractmethod
    def reverse_infinity_mass(self) -> float: ...

    @property
    @abstractmethod
    def largest_loss(self) -> float:
        """Supremum of the finite losses; ∞ if they are unbounded."""

    @abstractmethod
    def loss_cells(self, step: float) -> LossCells:
        """Return cells of width at most ``step`` nats, at most ``MAX_LOSS_CELLS`` of them; atoms have width zero."""

    def loss_cells_between(self, step: float, low: float, high: float) -> LossCells:
        """Return cells of width at most ``step`` from ``low`` to ``high``, and of any width elsewhere."""
        del low, high
        return self.loss_cells(step)

    def cut_at_losses(self, edges: Floats) -> LossCells | None:
        """Return cells with edges at these losses (ascending) and where necessary; None if edges cannot be chosen."""
        del edges
        return None

    def cells_by_count(self, count: int) -> LossCells:
        """Return about ``count`` cells, narrow where losses are dense; if sampled, from even cells of the base."""
        coarse = self.loss_cells(0.25)
        has_mass = coarse.p_masses > 1e-40
        width = float(np.max(coarse.upper[has_mass]) - np.min(coarse.lower[has_mass]))
        return self.loss_cells(max(width / count, 1e-300))

    @abstractmethod
    def reverse_distribution(self) -> LossDistribution:
        """Return the distribution of log dQ/dP under Q."""

    @property
    def rounding_error_bound(self) -> float:
        """Bound on the rounding error of each loss, in nats."""
        return 0.0

    def log_moment(self, z: Complexes) -> Complexes | None:
        """Return K(z) = log E[e^{zL}; L < ∞] for Re z > 0, on any branch (theory §3); None if unknown."""
        del z
        return None

    @property
    def has_moment(self) -> bool:
        """Return whether ``log_moment`` returns a value."""
        return self.log_moment(np.array([1.0 + 0j])) is not None

    @property
    def moment_decay_bounds(self) -> bool:
        """Return whether a density alone makes the moment decay on every line, at the scale of its losses."""
        return False

    def log_moment_error(self, z: Complexes, moment: Complexes) -> Floats:
        """Return a bound on the error of ``moment`` = K(z) on a line of equal Re z; some units in the last place."""
        del z
        return np.asarray(1e-15 * np.abs(moment))

    def enclose_cumulant(self, z: Complexes) -> tuple[Complexes, Floats] | None:
        """Return K(z) and a bound on the modulus of its error, for z of equal Re z or real; None if K is unknown.

        If the error is ∞, the real part returned is only an upper bound on the real part of K.
        """
        moment = self.log_moment(z)
        return None if moment is None else (moment, self.log_moment_error(z, moment))

    def trim_tail(self, mass: float) -> LossDistribution:
        """Return a copy that counts at most this mass of the largest losses as infinite; self if that is no better."""
        del mass
        return self

    def log_tail_integral(self, z: Complexes) -> tuple[Complexes, Floats] | None:
        """Return log E[e^{zL}; the part removed by ``trim_tail``] and its error; None if nothing was removed."""
        del z
        return None

    def declared_moment(self, order: float) -> float | None:
        """Return a declared upper bound on K(z), z > 0, of the mechanism itself; None if there is no declaration."""
        del order
        return None

    @property
    def zcdp_ceiling(self) -> float:
        """An upper bound on K(z)/(z(z + 1)) for every z > 0; ∞ if unknown."""
        return math.inf

    @property
    def flat_form(self) -> FlatForm | None:
        """The distribution tilted by e^{−l/2}, if it is two equal atoms and a uniform density."""
        return None

    @property
    def gaussian_form(self) -> GaussianForm | None:
        """The two distributions, if they are discrete Gaussians of one scale, except for rounded probabilities."""
        return None

    @property
    def offset_range(self) -> float | None:
        """The length in nats of an interval of losses whose position an analyst may choose at each step; None if fixed.

        The distribution is then worst for a single step; several steps chosen adaptively have less than its sums.
        """
        return None

    @property
    def is_envelope(self) -> bool:
        """Return whether each δ(ε) is that of another mechanism: no single one has this distribution."""
        return self.offset_range is not None

    @property
    def needs_quadrature(self) -> bool:
        """Return whether each value of the moment needs its own (expensive) quadrature."""
        return False

    @property
    def relative_mass_error(self) -> float:
        """Relative error of the finite masses, beyond a few units in the last place."""
        return 0.0

    @property
    def infinity_mass_error(self) -> float:
        """Relative rounding error of the infinite masses, if they were computed."""
        return 0.0

    def moment_decay_bound(self, c: float, y: float) -> float:
        """Return an upper bound on |M(c+iy')| / M(c) for |y'| ≥ y; 1 if unknown."""
        del c, y
        return 1.0

    def profile(self, epsilon: Floats) -> Floats | None:
        """Return δ(ε) in closed form, to a few units in the last place; None without a closed form."""
        del epsilon
        return None

    def profile_rounding_error(self, epsilon: Floats) -> Floats:
        """Return an upper bound on the relative error of ``profile``; a few units in the last place by default."""
        return np.full(np.shape(epsilon), 2e-15)

    def compute_deltas(self, epsilon: BoundArrays) -> BoundArrays | None:
        """Return bounds on δ at an ε ≥ 0 between two ends; None without a formula.

        Every rounding and the rounding error of the losses are included. δ is nonincreasing, so each bound is evaluated
        at the corresponding end of ε, moved outwards by the bound on that error.
        """
        first, last = widen_bounds(epsilon, self.rounding_error_bound)
        profile = self.profile(first)
        if profile is None:
            return None
        at_first = relative_bounds(profile, self.profile_rounding_error(first))
        if last is first:
            return at_first
        at_last = relative_bounds(np.asarray(self.profile(last)), self.profile_rounding_error(last))
        return at_last[0], at_first[1]

    def overlap_bounds(self, epsilon: BoundArrays) -> BoundArrays | None:
        """Return bounds on 1 − δ if they are more accurate than by subtraction; None otherwise."""
        del epsilon
        return None


# Interval arithmetic on arrays: numbers between two bounds, with outward rounding.
#
# A profile is nonincreasing in ε. So for an ε in [a, b], δ is at least its lower bound at b and at most its upper
# bound at a: neither slopes nor condition numbers are needed.

if TYPE_CHECKING:
    Flags = NDArray[np.bool_]

LEAST_DOUBLE = 5e-324
"""The least double above 0."""


def relative_bounds(value: Floats, error: Floats | float) -> BoundArrays:
    """Return value · (1 ∓ error) inside [0, 1], each end rounded outwards; an exact zero stays zero."""
    return _round_outward_in_unit(value * (1 - np.minimum(error, 1.0)), value * (1 + error), value > 0)


def scale_bounds(bounds: BoundArrays, min_factor: Floats | float, max_factor: Floats | float) -> BoundArrays:
    """Return the bounds times a factor between ``min_factor`` and ``max_factor``; exact zeros stay zero."""
    low, high = bounds
    return _round_outward_in_unit(low * min_factor, high * max_factor, (high > 0) & (np.asarray(max_factor) > 0))


def widen_bounds(bounds: BoundArrays, distance: float) -> BoundArrays:
    """Return the bounds moved outwards by at least ``distance``, rounding included."""
    if not distance:
        return bounds
    low, high = bounds[0] - distance, bounds[1] + distance
    low = np.where(bounds[0] - low < distance, np.nextafter(low, -np.inf), low)
    return low, np.where(high - bounds[1] < distance, np.nextafter(high, np.inf), high)


def mirror_bounds(epsilon: Floats, reverse: BoundArrays) -> BoundArrays:
    """Return 1 − e^ε + e^ε δ' at ε ≤ 0, with δ' at −ε in the reverse order: both terms are positive."""
    base, factor = -np.expm1(epsilon), np.exp(epsilon)
    low, high = (relative_bounds(base + factor * end, 8 * ROUND_OFF) for end in reverse)
    return low[0], high[1]


def bounds_by_sign_of_epsilon(
    epsilon: Floats,
    forward: Callable[[BoundArrays], BoundArrays | None],
    reverse: Callable[[BoundArrays], BoundArrays | None],
) -> BoundArrays | None:
    """Return ``forward(ε)`` at ε ≥ 0; below 0, the mirror image of ``reverse(−ε)``, for the reverse order."""
    negative = epsilon < 0
    if not np.any(negative):
        return forward((epsilon, epsilon))
    size = np.abs(epsilon)
    reverse_bounds = reverse((size, size))
    forward_bounds = reverse_bounds if np.all(negative) else forward((size, size))
    if forward_bounds is None or reverse_bounds is None:
        return None
    mirrored = mirror_bounds(-size, reverse_bounds)
    return np.where(negative, mirrored[0], forward_bounds[0]), np.where(negative, mirrored[1], forward_bounds[1])


def bounds_midpoint(ends: BoundArrays | None) -> Floats | None:
    """Return the midpoint of both ends."""
    return None if ends is None else np.asarray(ends[0] / 2 + ends[1] / 2)


def relative_half_width(ends: BoundArrays | None, shape: tuple[int, ...]) -> Floats:
    """Return the distance of the ends from their midpoint, relative to the midpoint."""
    if ends is None:
        return np.zeros(shape)
    low, high = ends
    return np.asarray((high - low) / np.maximum(high + low, LEAST_DOUBLE) + 4 * ROUND_OFF)


def _round_outward_in_unit(low: Floats, high: Floats, positive: Flags) -> BoundArrays:
    """Return both ends rounded outwards inside [0, 1]; intervals that are not positive become zero."""
    lower, upper = np.nextafter(np.maximum(low, 0.0), 0.0), np.minimum(np.nextafter(high, 2.0), 1.0)
    return (lower, upper) if positive.all() else (lower * positive, upper * positive)
