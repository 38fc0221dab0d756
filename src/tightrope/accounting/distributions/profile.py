"""Loss distribution of a privacy profile that is given as a function (theory §3, "any profile").

A profile is convex in γ = e^ε, and its kinks are atoms: connecting its values at chosen ε by chords gives a
distribution that dominates. Values above 0 come from δ, below 0 from the mirrored reverse, so that no mass is a
difference of numbers near 1. Values are first raised by their relative error; their convex hull is above the truth.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

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
        losses, masses, outside = kink_masses(above, below, start)
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
            losses, masses, outside = kink_masses(above, below, eta)
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


def kink_masses(above: CheckedDeltas, below: CheckedDeltas, start: float) -> tuple[Floats, Floats, tuple[float, float]]:
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


# Declared Rényi divergences: the profile that they imply (``docs/proofs/renyi.md``).

RenyiCurve = Callable[[Floats], Floats]
"""From orders α > 1, shape [n], to bounds on the Rényi divergence D_α in nats; ∞ where it is not bounded."""
LOG_ORDER_RANGE, NODE_COUNT = (-11.5, 16.5), 8192
"""Range of log(α − 1) in which a function is evaluated, and the number of its nodes."""
RENYI_ERROR = 1e-11
"""Relative error of the profile: rounding of its exponent, and the distance from the best order."""
REFINEMENTS = (1.0, 0.125)
"""Distances of the points of a parabola, relative to the distance of two nodes."""
GOLDEN_STEPS = 60


@dataclass(frozen=True, slots=True, eq=False)
class MomentCurve:
    """Upper bounds on K(z) = z D_{1+z} at nodes z > 0, ascending, and the functions whose sum they are.

    K is convex and K(0) = 0, so that chords between bounds are bounds, too; after the last node K rises by at most
    ``largest_loss`` for each unit of z.
    """

    orders: Floats
    bounds: Floats
    largest_loss: float
    parts: tuple[tuple[RenyiCurve, int], ...] = ()
    rho: float = math.inf
    """A bound on K(z)/(z(z + 1)) for every z > 0."""

    @classmethod
    def from_function(cls, curve: RenyiCurve, rho: float = math.inf) -> MomentCurve:
        """Return the curve of a function, at nodes with equal ratios."""
        nodes, parts = np.exp(np.linspace(*LOG_ORDER_RANGE, NODE_COUNT)), ((curve, 1),)
        bounds = _summed_moments(parts, nodes)
        if not np.any(np.isfinite(bounds)):
            raise InputError("curve", curve, "a function with a finite bound for some order alpha > 1")
        return replace(cls.from_values(nodes, bounds, math.inf), parts=parts, rho=rho)

    @classmethod
    def from_values(cls, orders: Floats, bounds: Floats, largest_loss: float) -> MomentCurve:
        """Return the lower convex hull of (0, 0) and of the finite bounds."""
        finite = np.isfinite(bounds)
        hull = [(0.0, 0.0)]
        for z, bound in zip(orders[finite].tolist(), bounds[finite].tolist(), strict=True):
            while len(hull) > 1:
                (a, low), (b, middle) = hull[-2:]
                if (middle - low) * (z - b) < (bound - middle) * (b - a):
                    break
                hull.pop()
            hull.append((z, bound))
        while len(hull) > 1 and hull[-1][1] - hull[-2][1] >= largest_loss * (hull[-1][0] - hull[-2][0]):
            hull.pop()
        points = np.array(hull)
        return cls(points[:, 0], points[:, 1], largest_loss)

    @classmethod
    def sum_of(cls, curves: tuple[tuple[MomentCurve, int], ...]) -> MomentCurve:
        """Return the curve of a composition, in which each curve is repeated so many times."""
        nodes = np.unique(np.concatenate([curve.orders for curve, _ in curves]))
        bounds = sum((count * curve.moments_at(nodes) for curve, count in curves), np.zeros(len(nodes)))
        largest = math.fsum(count * curve.largest_loss for curve, count in curves)
        parts = tuple((part, n * count) for curve, count in curves for part, n in curve.parts)
        has_functions = all(curve.parts for curve, _ in curves)
        rho = math.fsum(count * curve.rho for curve, count in curves)
        return replace(cls.from_values(nodes, bounds, largest), parts=parts if has_functions else (), rho=rho)

    def moments_at(self, orders: Floats) -> Floats:
        """Return the bounds at any z ≥ 0, from chords."""
        beyond = orders > self.orders[-1]
        inside = np.interp(orders, self.orders, self.bounds)
        if not beyond.any():
            return np.asarray(inside)
        extended = np.full_like(inside, np.inf)
        if self.largest_loss < math.inf:
            extended = self.bounds[-1] + self.largest_loss * (orders - self.orders[-1])
        return np.where(beyond, extended, inside)

    def implied_deltas(self, epsilons: Floats) -> Floats:
        """Return the least e^{K(z) − zε} z^z/(1+z)^{1+z} over z, at ε ≥ 0; 0 from the largest loss on.

        On a chord of slope b it is least at z = 1/(e^{b−ε} − 1). A parabola through neighboring nodes gives a better
        order where K is a function; any order gives a bound.
        """
        flat = np.ravel(epsilons)
        slopes = np.append(np.diff(self.bounds) / np.diff(self.orders), self.largest_loss)
        with np.errstate(divide="ignore", over="ignore"):
            turns = slopes + np.append(-np.inf, np.log(self.orders[1:]) - np.log1p(self.orders[1:]))
            # The last chord on which the exponent falls at the lower end.
            chord = np.clip(np.searchsorted(turns, flat, side="left") - 1, 0, len(slopes) - 1)
            ends = np.append(self.orders, np.inf)
            ratio = np.expm1(np.maximum(slopes[chord] - flat, 0.0))
            z = np.clip(np.where(ratio > 0, 1 / ratio, np.inf), ends[chord], ends[chord + 1])
        unbounded = np.isinf(z)
        z = np.where(unbounded, self.orders[-1], z)
        exponent = self._exponent(self.moments_at(z), z, flat)
        if self.parts:
            exponent = np.minimum(exponent, self._refined_exponent(z, flat))
        deltas = np.where(unbounded & (flat >= self.largest_loss), 0.0, np.exp(np.minimum(exponent, 0.0)))
        return np.asarray(deltas.reshape(np.shape(epsilons)))

    def _refined_exponent(self, z: Floats, epsilons: Floats) -> Floats:
        low, high = self.orders[1], self.orders[-1]
        step = (LOG_ORDER_RANGE[1] - LOG_ORDER_RANGE[0]) / (NODE_COUNT - 1)
        best, log_z = np.full(len(z), np.inf), np.log(np.clip(z, low, high))
        for part in REFINEMENTS:
            near = np.clip(log_z + part * step * np.array([[-1.0], [0.0], [1.0]]), math.log(low), math.log(high))
            values = np.stack([self._exponent_of_functions(np.exp(row), epsilons) for row in near])
            best = np.minimum(best, np.min(values, axis=0))
            with np.errstate(invalid="ignore", divide="ignore"):
                bend = values[0] - 2 * values[1] + values[2]
                move = np.clip((values[0] - values[2]) / (2 * bend), -2.0, 2.0) * part * step
            log_z = np.where(np.isfinite(move) & (bend > 0), log_z + move, log_z)
        refined = np.exp(np.clip(log_z, math.log(low), math.log(high)))
        return np.asarray(np.minimum(best, self._exponent_of_functions(refined, epsilons)))

    def _exponent_of_functions(self, z: Floats, epsilons: Floats) -> Floats:
        order = (1 + z) - 1
        return self._exponent(_summed_moments(self.parts, order), order, epsilons)

    def _exponent(self, moments: Floats, z: Floats, epsilons: Floats) -> Floats:
        """Return K − zε + z log z − (1 + z) log(1 + z)."""
        safe = np.maximum(z, 1e-300)
        return np.asarray(moments - z * epsilons - z * np.log1p(1 / safe) - np.log1p(z))

    @property
    def implied_total_variation(self) -> float:
        """A bound on δ(0): the moments' own, or Pinsker's or Bretagnolle and Huber's for the Kullback–Leibler one."""
        divergence = max(float(self.bounds[1] / self.orders[1]), 0.0) if len(self.orders) > 1 else self.largest_loss
        divergence = min(divergence, self.largest_loss)
        others = math.sqrt(divergence / 2), math.sqrt(-math.expm1(-divergence)), math.tanh(self.largest_loss / 2)
        return min(1.0, float(self.implied_deltas(np.zeros(1))[0]), *others)


def _summed_moments(parts: tuple[tuple[RenyiCurve, int], ...], orders: Floats) -> Floats:
    """Return Σ n z D(1 + z); raises ``InputError`` if a function returns something else than bounds."""
    total = np.zeros(len(orders))
    for curve, count in parts:
        values = np.asarray(curve(1 + orders), dtype=np.float64)
        if values.shape != orders.shape or not np.all(values >= 0):
            shown = values.shape if values.shape != orders.shape else float(np.min(values))
            raise InputError("curve", shown, f"a divergence >= 0 for each order, shape {orders.shape}")
        total += count * ((1 + orders) - 1) * values
    return total


@dataclass(frozen=True, slots=True, eq=False)
class RenyiLossDistribution(ProfileLossDistribution):
    """The pair whose profile declared Rényi divergences imply in both orders; copies add up their divergences."""

    curve: MomentCurve
    tangent: float
    """Between 0 and this ε the profile is a line in γ."""

    @classmethod
    def from_curve(cls, curve: MomentCurve) -> RenyiLossDistribution:
        """Return the pair of the least bound at each ε, with a line to δ(0) where that is smaller than the bound.

        The bound is convex in γ = e^ε. Its line to γ = 1 is a tangent, and with the mirror image below 1 the whole is
        convex for δ(0) ≤ (2 δ(ε) + γ − 1)/(γ + 1).
        """
        deltas_at = curve.implied_deltas
        grid = np.concatenate([np.geomspace(SMALLEST_CHECKED, FARTHEST_CHECKED, 2 * POINT_COUNT)])

        def largest_middle(epsilon: Floats) -> Floats:
            return np.asarray((2 * deltas_at(epsilon) + np.expm1(epsilon)) / (1 + np.exp(epsilon)))

        middle = min(curve.implied_total_variation, _least_on_grid(largest_middle, grid)[1])

        def slope_to_middle(epsilon: Floats) -> Floats:
            return np.asarray((deltas_at(epsilon) - middle) / np.expm1(epsilon))

        tangent, _ = _least_on_grid(slope_to_middle, grid)
        at_tangent = float(deltas_at(np.array([tangent]))[0])

        def profile(epsilons: Floats) -> Floats:
            near = np.minimum(epsilons, tangent)  # a mean of both ends, of positive terms
            line = middle * np.expm1(near - tangent) / math.expm1(-tangent)
            line += at_tangent * np.expm1(near) / math.expm1(tangent)
            return np.asarray(np.where(epsilons < tangent, line, deltas_at(np.maximum(epsilons, tangent))))

        reach = limit_epsilon(profile, 0.0)
        return cls(profile, profile, (0.0, 0.0), (reach, reach), RENYI_ERROR, curve, tangent)

    @classmethod
    def from_steps(cls, parts: Sequence[tuple[RenyiLossDistribution, int]]) -> RenyiLossDistribution:
        """Return many steps as one, with the sum of their declared divergences."""
        return _merge_renyi_steps(tuple(parts))

    @property
    def largest_loss(self) -> float:
        return self.curve.largest_loss

    @property
    def zcdp_ceiling(self) -> float:
        return self.curve.rho

    def declared_moment(self, order: float) -> float:
        z = np.array([order])
        bound = self.curve.moments_at(z)
        return float(np.minimum(bound, _summed_moments(self.curve.parts, z))[0] if self.curve.parts else bound[0])

    def cut_at_losses(self, edges: Floats) -> LossCells:
        """Return cells as for any profile, and atoms at 0 and at the ends of the tangents: between them no losses."""
        outer = edges[np.abs(edges) > self.tangent]
        cells = ProfileLossDistribution.cut_at_losses(self, np.concatenate([outer, [-self.tangent, self.tangent]]))
        is_gap = (cells.lower >= -self.tangent) & (cells.upper <= self.tangent)
        losses = np.concatenate([cells.lower[is_gap], cells.upper[is_gap]])
        masses = np.concatenate([cells.low[is_gap], cells.high[is_gap]])
        atoms = LossCells.from_atoms(losses, masses, 0.0, 0.0)
        return cells.select_cells(~is_gap).join_bounds(atoms)

    def reverse_distribution(self) -> RenyiLossDistribution:
        return self


@lru_cache(maxsize=256)
def _merge_renyi_steps(parts: tuple[tuple[RenyiLossDistribution, int], ...]) -> RenyiLossDistribution:
    """Return the same object for both orders of a pair."""
    if len(parts) == 1 and parts[0][1] == 1:
        return parts[0][0]
    curves = tuple((part.curve, count) for part, count in parts)
    return RenyiLossDistribution.from_curve(MomentCurve.sum_of(curves))


def _least_on_grid(function: Profile, grid: Floats) -> tuple[float, float]:
    """Return the argument and the value of about the least value, by golden sections next to the least on a grid."""
    index = int(np.argmin(function(grid)))
    low, high = math.log(grid[max(index - 1, 0)]), math.log(grid[min(index + 1, len(grid) - 1)])
    ratio = (math.sqrt(5) - 1) / 2
    for _ in range(GOLDEN_STEPS):
        first, second = high - ratio * (high - low), low + ratio * (high - low)
        values = function(np.exp(np.array([first, second])))
        low, high = (low, second) if values[0] <= values[1] else (first, high)
    best = math.exp((low + high) / 2)
    return best, float(function(np.array([best]))[0])
