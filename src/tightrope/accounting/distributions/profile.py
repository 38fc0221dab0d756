"""Loss distribution of a privacy profile that is given as a function (theory §3, "any profile").

A profile is convex in γ = e^ε, and its kinks are atoms: connecting its values at chosen ε by chords gives a
distribution that dominates. Values above 0 come from δ, below 0 from the mirrored reverse, so that no mass is a
difference of numbers near 1. Values are first raised by their relative error; their convex hull is above the truth.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from tightrope.accounting.distributions.base import LossDistribution
from tightrope.accounting.distributions.loss_cells import LossCells, loss_step_multiples
from tightrope.errors import InputError
from tightrope.numerics.arrays import Floats
from tightrope.numerics.root_finding import bisect_real

Profile = Callable[[Floats], Floats]

CONVEXITY_TOLERANCE = 1e-9
"""Height above its own hull, relative to δ, that a profile may have: rounding, not a mistake."""
LIMIT_TOLERANCE = 1e-30
"""Losses beyond the ε at which δ exceeds its limit by less than this count as infinite."""
FARTHEST_CHECKED = 650.0
"""Losses beyond this ε also count as infinite."""
SMALLEST_CHECKED, POINT_COUNT = 1e-6, 2000
CUT_HALVINGS = 60
"""Number of bisection steps for the total variation."""
A_FUNCTION = "a function from an array of epsilons to one of deltas"
UPPER_BOUND = "if it is only an upper bound, such as a minimum over orders, pass upper_bound=True"
CheckedDeltas = tuple[Floats, Floats]
"""Values of ε from 0 on, ascending, and δ there."""


def checked_values(profile: Profile, epsilons: Floats) -> Floats:
    """Return the values of the function; raises ``InputError`` unless all are in [0, 1] and have the right shape."""
    if not callable(profile):
        raise InputError("profile", profile, A_FUNCTION)
    values = np.asarray(profile(epsilons))
    if values.dtype.kind not in "fiu":
        raise InputError("profile", str(values.dtype), "a function with real numbers as values")
    values = values.astype(np.float64)
    if values.shape != epsilons.shape or not np.all((values >= 0) & (values <= 1)):
        shown = values.shape if values.shape != epsilons.shape else float(values[~((values >= 0) & (values <= 1))][0])
        raise InputError("profile", shown, f"a delta in [0, 1] for each epsilon, shape {epsilons.shape}")
    return values


def limit_epsilon(profile: Profile, limit: float) -> float:
    """Return the smallest ε, to 1 %, from which on δ is within ``LIMIT_TOLERANCE`` of its limit."""
    ladder = np.geomspace(SMALLEST_CHECKED, FARTHEST_CHECKED, POINT_COUNT)
    near = np.flatnonzero(checked_values(profile, ladder) <= limit + LIMIT_TOLERANCE)
    return float(ladder[near[0]]) if len(near) else FARTHEST_CHECKED


def check_profile_pair(above: Profile, below: Profile, limit: float, relative_error: float) -> None:
    """Raise ``InputError`` unless both functions, within their error, can be the profiles of one pair.

    A profile δ(ε) = sup_A P(A) − e^ε Q(A) is in [0, 1], nonincreasing in ε and convex in γ = e^ε, and so is the whole
    curve with its mirror below 0: η = δ(0) ≤ (δ(ε) + δ'(ε) + e^ε − 1) / (1 + e^ε), with δ' of the other order of the
    pair, which has the same η.
    """
    tolerance = CONVEXITY_TOLERANCE + 2 * relative_error
    for name, profile in (("profile", above), ("reverse", below)):
        if not callable(profile):
            raise InputError(name, profile, A_FUNCTION)
        farthest = limit_epsilon(profile, limit)
        near = np.geomspace(min(SMALLEST_CHECKED, farthest / 2), farthest, POINT_COUNT)
        epsilons = np.unique(np.concatenate([[0.0], near, np.linspace(0.0, farthest, POINT_COUNT)]))
        deltas = checked_values(profile, epsilons)
        check_shape(name, profile, epsilons, deltas, tolerance)
        if not deltas[-1] >= limit * (1 - tolerance):
            raise InputError("infinite_mass", limit, f"at most the {name} far out, {float(deltas[-1])!r}")
    # Both have the same total variation, and it is at most what the rest of the curve allows.
    middle_epsilons = np.concatenate([[0.0], np.geomspace(SMALLEST_CHECKED, 30.0, POINT_COUNT)])
    one, other = checked_values(above, middle_epsilons), checked_values(below, middle_epsilons)
    if not abs(one[0] - other[0]) <= tolerance * max(one[0], other[0]):
        remedy = "the total variation has no direction: use the smaller value for both"
        raise InputError("reverse", float(other[0]), f"{float(one[0])!r} at epsilon=0, like the profile", remedy)
    most = (one + other + np.expm1(middle_epsilons)) / (1 + np.exp(middle_epsilons))
    if not np.all(one[0] <= most * (1 + tolerance)):
        at = float(middle_epsilons[np.argmax(one[0] > most * (1 + tolerance))])
        kink = "one that, mirrored below 0, is convex in e^epsilon at epsilon=0, too"
        raise InputError(
            "profile", above, kink, f"between 0 and {at:.6g} it falls too fast for its value; {UPPER_BOUND}"
        )


def check_shape(name: str, profile: Profile, epsilons: Floats, deltas: Floats, tolerance: float) -> None:
    """Check that it is nonincreasing and convex in e^ε within the tolerance; otherwise its hull would be too low."""
    rises = np.diff(deltas) > tolerance * deltas[1:]
    if np.any(rises):
        at = float(epsilons[np.argmax(rises)])
        raise InputError(
            name, profile, f"one that falls with epsilon, also beyond epsilon={at:.6g}", "delta rises there"
        )
    hull = hull_indices(epsilons, deltas)
    dents = deltas - np.interp(np.exp(epsilons), np.exp(epsilons[hull]), deltas[hull]) > tolerance * deltas
    if np.any(dents):
        at = float(epsilons[np.argmax(dents)])
        raise InputError(name, profile, f"one that is convex in e^epsilon, also near epsilon={at:.6g}", UPPER_BOUND)


def points_of_upper_bound(profile: Profile, limit: float, relative_error: float) -> list[tuple[float, float]]:
    """Return points (ε, δ) that a mechanism meets if the function, within its error, is at least its profile.

    They are dense where δ is at least 1e-30, and 40 of them are further out. Raises ``InputError`` if values leave
    [0, 1] or drop below the limit.
    """
    reach = limit_epsilon(profile, limit)
    near = np.geomspace(1e-4 * reach, reach, POINT_COUNT // 3)
    far = np.geomspace(reach, FARTHEST_CHECKED, 41)
    epsilons = np.unique(np.concatenate([np.linspace(0.0, reach, POINT_COUNT * 2 // 3), near, far]))
    deltas = checked_values(profile, epsilons)
    if not np.min(deltas) >= limit * (1 - CONVEXITY_TOLERANCE - 2 * relative_error):
        raise InputError("infinite_mass", limit, f"at most the profile far out, {float(np.min(deltas))!r}")
    deltas = np.maximum(np.minimum(deltas * (1 + relative_error), 1.0), limit)
    # Beyond the range of from_points no point is needed: the profile there is at most the last value.
    inside = epsilons <= 600
    return list(zip(epsilons[inside].tolist(), deltas[inside].tolist(), strict=True))


def hull_indices(epsilons: Floats, deltas: Floats) -> list[int]:
    """Return the indices of the vertices of the lower convex hull in γ = e^ε."""
    hull: list[int] = []
    gammas = np.exp(epsilons)
    if np.all(np.diff(np.diff(deltas) / np.diff(gammas)) > 0):
        return list(range(len(epsilons)))
    for last in range(len(epsilons)):
        while len(hull) > 1:
            first, middle = hull[-2:]
            left = (deltas[middle] - deltas[first]) * (gammas[last] - gammas[middle])
            right = (deltas[last] - deltas[middle]) * (gammas[middle] - gammas[first])
            if not left >= right:
                break
            hull.pop()
        hull.append(last)
    return hull


@dataclass(frozen=True, slots=True, eq=False)
class ProfileLossDistribution(LossDistribution):
    """δ(ε) for ε ≥ 0 of one direction and of the other; both to ``relative_error``."""

    above: Profile
    below: Profile
    limits: tuple[float, float]
    """Limits of both profiles as ε grows."""
    reach: tuple[float, float]
    """The largest finite loss that is resolved, in each direction."""
    relative_error: float

    @classmethod
    def from_profiles(
        cls, above: Profile, below: Profile, limits: tuple[float, float], relative_error: float
    ) -> ProfileLossDistribution:
        """Build it, finding the largest loss of each direction; ``InputError`` if a function is not a profile."""
        check_profile_pair(above, below, limits[0], relative_error)
        return cls(
            above, below, limits, (limit_epsilon(above, limits[0]), limit_epsilon(below, limits[1])), relative_error
        )

    @property
    def infinite_mass(self) -> float:
        return self.limits[0]

    @property
    def reverse_infinity_mass(self) -> float:
        return self.limits[1]

    @property
    def largest_loss(self) -> float:
        return math.inf

    @property
    def relative_mass_error(self) -> float:
        return self.relative_error

    @property
    def infinity_mass_error(self) -> float:
        return self.relative_error

    def reverse_distribution(self) -> ProfileLossDistribution:
        return ProfileLossDistribution(self.below, self.above, self.limits[::-1], self.reach[::-1], self.relative_error)

    def profile(self, epsilon: Floats) -> Floats:
        """Return the given function, mirrored below 0: 1 − e^ε (1 − δ'(−ε))."""
        epsilon = np.asarray(epsilon, dtype=np.float64)
        size = np.abs(epsilon)
        mirrored = 1 - np.exp(-size) * (1 - checked_values(self.below, size))
        return np.where(epsilon >= 0, checked_values(self.above, size), mirrored)

    def profile_rounding_error(self, epsilon: Floats) -> Floats:
        return np.full(np.shape(epsilon), self.relative_error + 2e-15)

    def loss_cells(self, step: float) -> LossCells:
        low, high = -self.reach[1], self.reach[0]
        return self.cut_at_losses(np.concatenate([[low], loss_step_multiples(low, high, step), [high]]))

    def cut_at_losses(self, edges: Floats) -> LossCells:
        """Cut into cells between the kinks; a kink's mass may have been on either side, so each side gets half."""
        above = self._deltas_with_error(self.above, edges, self.reach[0])
        below = self._deltas_with_error(self.below, -edges, self.reach[1])
        start = min(above[1][0], below[1][0])  # both are upper bounds on the same total variation
        losses, masses, outside = _kink_masses(above, below, start)
        if not np.min(masses) > -CONVEXITY_TOLERANCE:
            # η on the hull of the whole curve, from above: the largest value for which a line through it at γ = 1 is
            # below the rest of the curve.
            # Raised values may be too high in the middle to be convex there; their hull is still above the truth.
            (top, up), (bottom, down) = above, below
            right, left = np.expm1(top[1:]), -np.expm1(-bottom[1:])  # γ − 1 above, 1 − γ below
            bridged_mirrored = left + (1 - left) * down[1:]

            def fits_below(eta: float) -> bool:
                return bool(np.max((eta - bridged_mirrored) / left) <= np.min((up[1:] - eta) / right))

            eta = bisect_real(fits_below, start, 0.0, side="fails", halvings=CUT_HALVINGS)
            losses, masses, outside = _kink_masses(above, below, eta)
        if not np.min(masses) > -CONVEXITY_TOLERANCE:
            raise InputError("profile", self.above, "one that, mirrored below 0, is convex in e^epsilon at 0, too")
        masses, shares = np.maximum(masses, 0.0), np.full(len(losses), 0.5)
        shares[0] = shares[-1] = 1.0
        return LossCells(losses[:-1], losses[1:], (masses * shares)[:-1], (masses * shares)[1:], *outside)

    def _deltas_with_error(self, profile: Profile, edges: Floats, farthest: float) -> CheckedDeltas:
        """Return epsilons from 0 on, and δ there with its error."""
        epsilons = np.unique(np.concatenate([[0.0], np.clip(edges[edges > 0], 0.0, farthest), [farthest]]))
        deltas = np.minimum(checked_values(profile, epsilons) * (1 + self.relative_error), 1.0)
        check_shape("profile", profile, epsilons, deltas, CONVEXITY_TOLERANCE + 2 * self.relative_error)
        return epsilons, deltas


def _kink_masses(
    above: CheckedDeltas, below: CheckedDeltas, start: float
) -> tuple[Floats, Floats, tuple[float, float]]:
    """Return losses, masses under the first distribution, and the mass beyond either end, with η = ``start``."""
    # Of each half: the kinks above 0, their masses, and the mass beyond the last one.
    halves = []
    for points, values in (above, below):
        deltas = np.append(start, np.minimum(values[1:], start))
        hull = hull_indices(points, deltas)
        epsilons, deltas = points[hull], deltas[hull]
        slopes = np.append(np.diff(deltas) / np.diff(np.exp(epsilons)), 0.0)
        masses = np.exp(epsilons[1:]) * np.diff(slopes)
        halves.append((epsilons[1:], np.maximum(masses, 0.0), float(deltas[-1])))
    (top, up, infinite), (bottom, down, opposite) = halves
    down = down * np.exp(-bottom)
    center = 1 - infinite - math.fsum(up) - math.fsum(down)
    losses, masses = np.concatenate([-bottom[::-1], [0.0], top]), np.concatenate([down[::-1], [center], up])
    return losses, masses, (infinite, opposite)


class MonotoneBrackets:
    """Bounds on a nonincreasing function of ε that are nonincreasing themselves; each answer agrees with earlier ones.

    Bounds at neighboring ε may differ by rounding, so that an upper end can rise by some units in the last place. The
    true function is nonincreasing, so an upper end may be lowered to the one at a smaller ε, and a lower end raised to
    the one at a larger ε. Repeated calls at the same ε return the same answer.
    """

    __slots__ = ("_ends", "_epsilons", "_lock")

    def __init__(self) -> None:
        self._epsilons: Floats = np.empty(0)
        self._ends: Floats = np.empty((0, 2))
        self._lock = Lock()

    def __reduce__(self) -> tuple[type[MonotoneBrackets], tuple[()]]:
        """Pickle as an empty cache."""
        return MonotoneBrackets, ()

    def __deepcopy__(self, memo: object) -> MonotoneBrackets:
        """Copy as an empty cache."""
        del memo
        return MonotoneBrackets()

    def missing_epsilons(self, epsilons: Floats) -> Floats:
        """Return the ε without an answer so far, unique and ascending."""
        with self._lock:
            unique = np.unique(epsilons)
            return unique[~self._has_brackets(unique)]

    def brackets_at(self, epsilons: Floats) -> tuple[Floats, Floats]:
        """Return both ends at ε that all have an answer."""
        with self._lock:
            ends = self._ends[np.searchsorted(self._epsilons, epsilons)]
        return ends[:, 0], ends[:, 1]

    def insert_brackets(self, epsilons: Floats, low: Floats, high: Floats) -> None:
        """Store bounds at ascending ε, each clipped to the bounds of its neighbors; existing ones are unchanged.

        >>> falling = MonotoneBrackets()
        >>> falling.insert_brackets(np.array([1.0, 2.0]), np.array([0.1, 0.05]), np.array([0.2, 0.21]))
        >>> falling.insert_brackets(np.array([1.0, 1.5]), np.array([0.0, 0.12]), np.array([1.0, 0.19]))
        >>> falling.brackets_at(np.array([1.0, 1.5, 2.0]))
        (array([0.1 , 0.1 , 0.05]), array([0.2, 0.2, 0.2]))
        """
        with self._lock:
            new = ~self._has_brackets(epsilons)
            at, ends = epsilons[new], np.column_stack((low, high))[new]
            indices = np.searchsorted(self._epsilons, at)
            neighbors = np.vstack(([np.inf, np.inf], self._ends, [-np.inf, -np.inf]))
            ends = np.minimum(np.maximum(ends, neighbors[indices + 1]), neighbors[indices])
            falling = np.maximum.accumulate(ends[::-1, 0])[::-1], np.minimum.accumulate(ends[:, 1])
            self._epsilons = np.insert(self._epsilons, indices, at)
            self._ends = np.insert(self._ends, indices, np.column_stack(falling), axis=0)

    def _has_brackets(self, epsilons: Floats) -> NDArray[np.bool_]:
        indices = np.searchsorted(self._epsilons, epsilons)
        inside = indices < len(self._epsilons)
        inside[inside] = self._epsilons[indices[inside]] == epsilons[inside]
        return inside
