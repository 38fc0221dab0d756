"""The loss law behind any privacy profile, known only as a function (theory §3, "any profile").

A profile is convex in γ = e^ε, and its kinks are atoms: the law of its values at chosen ε, connected by chords,
dominates. Above 0 they come from δ, below 0 from the mirrored reverse, so that no mass is a difference of numbers
near 1. Values are raised by their relative error first; the hull of what was raised is above the truth.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from tightrope.accounting.distributions.base import LossLaw
from tightrope.accounting.distributions.loss_cells import Cells, multiples
from tightrope.errors import InputError
from tightrope.numerics.arrays import Floats as ProfileCheckFloats
from tightrope.numerics.arrays import Floats as ProfileLawFloats

# Whether a function can be a privacy profile: what every δ(ε) = sup_A P(A) − e^ε Q(A) does, checked at many ε.
#
# It stays in [0, 1], falls with ε, is convex in γ = e^ε, and so is the whole curve with its mirror below 0: from
# there η = δ(0) ≤ (δ(ε) + δ'(ε) + e^ε − 1) / (1 + e^ε) with δ' of the other order of the pair, which has the same η.

Profile = Callable[[ProfileCheckFloats], ProfileCheckFloats]

DENT = 1e-9
"""How far above its own hull, relative to δ, a profile may be: rounding, not a mistake."""
FAINT = 1e-30
"""Loss beyond the ε where δ exceeds its limit by less than this counts as infinite."""
FARTHEST_CHECKED = 650.0
"""And beyond this ε."""
NEAREST, POINTS = 1e-6, 2000


def values(profile: Profile, epsilons: ProfileCheckFloats) -> ProfileCheckFloats:
    """What the function says, checked."""
    found = np.asarray(profile(epsilons), dtype=np.float64)
    if found.shape != epsilons.shape or not np.all((found >= 0) & (found <= 1)):
        told = found.shape if found.shape != epsilons.shape else float(found[~((found >= 0) & (found <= 1))][0])
        raise InputError("profile", told, f"a delta in [0, 1] for each epsilon, shape {epsilons.shape}")
    return found


def reach(profile: Profile, limit: float) -> float:
    """The least ε, to 1 %, from which on δ is within ``FAINT`` of its limit."""
    ladder = np.geomspace(NEAREST, FARTHEST_CHECKED, POINTS)
    near = np.flatnonzero(values(profile, ladder) <= limit + FAINT)
    return float(ladder[near[0]]) if len(near) else FARTHEST_CHECKED


def check_pair(above: Profile, below: Profile, limit: float, relative_error: float) -> None:
    """Raises ``InputError`` unless both functions can be the profiles of one pair of laws, to their error."""
    room = DENT + 2 * relative_error
    for name, profile in (("profile", above), ("reverse", below)):
        if not callable(profile):
            raise InputError(name, profile, "a function from an array of epsilons to one of deltas")
        farthest = reach(profile, limit)
        near = np.geomspace(min(NEAREST, farthest / 2), farthest, POINTS)
        places = np.unique(np.concatenate([[0.0], near, np.linspace(0.0, farthest, POINTS)]))
        deltas = values(profile, places)
        check_shape(name, profile, places, deltas, room)
        if not deltas[-1] >= limit * (1 - room):
            raise InputError("infinite_mass", limit, f"at most the {name} far out, {float(deltas[-1])!r}")
    # One total variation, and no more of it than the rest of the curve allows.
    check_middle_places = np.concatenate([[0.0], np.geomspace(NEAREST, 30.0, POINTS)])
    one, other = values(above, check_middle_places), values(below, check_middle_places)
    if not abs(one[0] - other[0]) <= room * max(one[0], other[0]):
        remedy = "the total variation has no direction: say the smaller for both"
        raise InputError("reverse", float(other[0]), f"{float(one[0])!r} at epsilon=0, like the profile", remedy)
    most = (one + other + np.expm1(check_middle_places)) / (1 + np.exp(check_middle_places))
    if not np.all(one[0] <= most * (1 + room)):
        at = float(check_middle_places[np.argmax(one[0] > most * (1 + room))])
        kink = "one that, mirrored below 0, is convex in e^epsilon at epsilon=0, too"
        raise InputError("profile", above, kink, f"between 0 and {at:.6g} it falls too fast for its value")


def check_shape(
    name: str, profile: Profile, places: ProfileCheckFloats, deltas: ProfileCheckFloats, room: float
) -> None:
    """It falls and is convex in e^ε, but for the room; else its hull would say less than it does."""
    rises = np.diff(deltas) > room * deltas[1:]
    if np.any(rises):
        at = float(places[np.argmax(rises)])
        raise InputError(
            name, profile, f"one that falls with epsilon, also beyond epsilon={at:.6g}", "delta rises there"
        )
    kept = hull(places, deltas)
    dents = deltas - np.interp(np.exp(places), np.exp(places[kept]), deltas[kept]) > room * deltas
    if np.any(dents):
        at = float(places[np.argmax(dents)])
        raise InputError(name, profile, f"one that is convex in e^epsilon, also near epsilon={at:.6g}")


def hull(epsilons: ProfileCheckFloats, deltas: ProfileCheckFloats) -> list[int]:
    """Indices of the vertices of the lower convex hull in γ = e^ε."""
    kept: list[int] = []
    gammas = np.exp(epsilons)
    if np.all(np.diff(np.diff(deltas) / np.diff(gammas)) > 0):
        return list(range(len(epsilons)))
    for here in range(len(epsilons)):
        while len(kept) > 1 and _turns_down(gammas, deltas, kept[-2], kept[-1], here):
            kept.pop()
        kept.append(here)
    return kept


def _turns_down(gammas: ProfileCheckFloats, deltas: ProfileCheckFloats, first: int, middle: int, last: int) -> bool:
    left = (deltas[middle] - deltas[first]) * (gammas[last] - gammas[middle])
    right = (deltas[last] - deltas[middle]) * (gammas[middle] - gammas[first])
    return bool(left >= right)


CUT_HALVINGS = 60


@dataclass(frozen=True, slots=True, eq=False)
class ProfileLaw(LossLaw):
    """δ(ε) for ε ≥ 0 of one direction and of the other; both to ``relative_error``."""

    above: Profile
    below: Profile
    limits: tuple[float, float]
    """What both tend to."""
    reach: tuple[float, float]
    """The largest finite loss that is told apart, in either direction."""
    relative_error: float

    @classmethod
    def of(cls, above: Profile, below: Profile, limits: tuple[float, float], relative_error: float) -> ProfileLaw:
        """With both reaches found; ``InputError`` where a profile is none."""
        check_pair(above, below, limits[0], relative_error)
        return cls(above, below, limits, (reach(above, limits[0]), reach(below, limits[1])), relative_error)

    @property
    def infinite_mass(self) -> float:
        return self.limits[0]

    @property
    def opposite_mass(self) -> float:
        return self.limits[1]

    @property
    def largest(self) -> float:
        return math.inf

    @property
    def inexact(self) -> float:
        return self.relative_error

    @property
    def infinite_error(self) -> float:
        return self.relative_error

    def reverse(self) -> ProfileLaw:
        return ProfileLaw(self.below, self.above, self.limits[::-1], self.reach[::-1], self.relative_error)

    def profile(self, epsilon: ProfileLawFloats) -> ProfileLawFloats:
        """As given, and mirrored below 0: 1 − e^ε (1 − δ'(−ε))."""
        epsilon = np.asarray(epsilon, dtype=np.float64)
        size = np.abs(epsilon)
        mirrored = 1 - np.exp(-size) * (1 - values(self.below, size))
        return np.where(epsilon >= 0, values(self.above, size), mirrored)

    def profile_error(self, epsilon: ProfileLawFloats) -> ProfileLawFloats:
        return np.full(np.shape(epsilon), self.relative_error + 2e-15)

    def cells(self, step: float) -> Cells:
        low, high = -self.reach[1], self.reach[0]
        return self.cut(np.concatenate([[low], multiples(low, high, step), [high]]))

    def cut(self, edges: ProfileLawFloats) -> Cells:
        """Cells between the kinks; a kink's mass may have been on either side of it, so each side holds half."""
        above = self._raised(self.above, edges, self.reach[0])
        below = self._raised(self.below, -edges, self.reach[1])
        start = min(above[1][0], below[1][0])  # both are above one and the same total variation
        losses, masses, outside = _kinks(above, below, start)
        if not np.min(masses) > -DENT:
            # η on the hull of the whole curve, from above: the most for which a line through it at γ = 1 is below all
            # else.
            # Raised values may be too high in the middle to be convex there; the hull of what is above the truth
            # stays so.
            (top, up), (bottom, down) = above, below
            right, left = np.expm1(top[1:]), -np.expm1(-bottom[1:])  # γ − 1 above, 1 − γ below
            bridged_mirrored = left + (1 - left) * down[1:]
            bridged_low, bridged_high = 0.0, start
            for _ in range(CUT_HALVINGS):
                eta = (bridged_low + bridged_high) / 2
                fits = np.max((eta - bridged_mirrored) / left) <= np.min((up[1:] - eta) / right)
                bridged_low, bridged_high = (eta, bridged_high) if fits else (bridged_low, eta)
            losses, masses, outside = _kinks(above, below, bridged_high)
        if not np.min(masses) > -DENT:
            raise InputError("profile", self.above, "one that, mirrored below 0, is convex in e^epsilon at 0, too")
        masses, shares = np.maximum(masses, 0.0), np.full(len(losses), 0.5)
        shares[0] = shares[-1] = 1.0
        return Cells(losses[:-1], losses[1:], (masses * shares)[:-1], (masses * shares)[1:], *outside)

    def _raised(self, profile: Profile, edges: ProfileLawFloats, farthest: float) -> Half:
        """Places from 0 on, and δ there with its error."""
        places = np.unique(np.concatenate([[0.0], np.clip(edges[edges > 0], 0.0, farthest), [farthest]]))
        deltas = np.minimum(values(profile, places) * (1 + self.relative_error), 1.0)
        check_shape("profile", profile, places, deltas, DENT + 2 * self.relative_error)
        return places, deltas


Half = tuple[ProfileLawFloats, ProfileLawFloats]


def _kinks(above: Half, below: Half, start: float) -> tuple[ProfileLawFloats, ProfileLawFloats, tuple[float, float]]:
    """Losses, their masses under the first law of the pair, and the mass beyond either end, with η = ``start``."""
    (top, up, infinite), (bottom, down, opposite) = (_half(*half, start) for half in (above, below))
    down = down * np.exp(-bottom)
    centre = 1 - infinite - math.fsum(up) - math.fsum(down)
    losses, masses = np.concatenate([-bottom[::-1], [0.0], top]), np.concatenate([down[::-1], [centre], up])
    return losses, masses, (infinite, opposite)


def _half(
    places: ProfileLawFloats, deltas: ProfileLawFloats, start: float
) -> tuple[ProfileLawFloats, ProfileLawFloats, float]:
    """Kinks above 0, their masses, and what is lost beyond the last."""
    deltas = np.append(start, np.minimum(deltas[1:], start))
    kept = hull(places, deltas)
    epsilons, found = places[kept], deltas[kept]
    slopes = np.append(np.diff(found) / np.diff(np.exp(epsilons)), 0.0)
    masses = np.exp(epsilons[1:]) * np.diff(slopes)
    return epsilons[1:], np.maximum(masses, 0.0), float(found[-1])


# Brackets of a falling function that fall themselves: every answer agrees with all that were given before.
#
# Two brackets of one profile at neighbouring ε may differ by their roundings, and then an upper end can rise by some
# units in the last place. The truth falls, so an end may be lowered to that of a smaller ε, or raised to that of a
# larger one, and stay on its side. What was once answered at an ε is answered again.

Floats = NDArray[np.float64]


class Monotone:
    """Answers so far, by ascending ε: many are asked for and settled at once."""

    __slots__ = ("_ends", "_epsilons", "_lock")

    def __init__(self) -> None:
        self._epsilons: Floats = np.empty(0)
        self._ends: Floats = np.empty((0, 2))
        self._lock = Lock()

    def __reduce__(self) -> tuple[type[Monotone], tuple[()]]:
        """A copy in another process knows nothing yet."""
        return Monotone, ()

    def __deepcopy__(self, memo: object) -> Monotone:
        """Nor does one in this process."""
        del memo
        return Monotone()

    def unknown(self, epsilons: Floats) -> Floats:
        """Those at which nothing was answered yet, each once, ascending."""
        with self._lock:
            asked = np.unique(epsilons)
            return asked[~self._knows(asked)]

    def at(self, epsilons: Floats) -> tuple[Floats, Floats]:
        """Both ends at ε at which all was answered."""
        with self._lock:
            found = self._ends[np.searchsorted(self._epsilons, epsilons)]
        return found[:, 0], found[:, 1]

    def settle(self, epsilons: Floats, low: Floats, high: Floats) -> None:
        """Keep brackets at ascending ε, each between those of its neighbours; one that is known stays as it is.

        >>> falling = Monotone()
        >>> falling.settle(np.array([1.0, 2.0]), np.array([0.1, 0.05]), np.array([0.2, 0.21]))
        >>> falling.settle(np.array([1.0, 1.5]), np.array([0.0, 0.12]), np.array([1.0, 0.19]))
        >>> falling.at(np.array([1.0, 1.5, 2.0]))
        (array([0.1 , 0.1 , 0.05]), array([0.2, 0.2, 0.2]))
        """
        with self._lock:
            new = ~self._knows(epsilons)
            at, ends = epsilons[new], np.column_stack((low, high))[new]
            places = np.searchsorted(self._epsilons, at)
            ends = self._between(places, ends)
            falling = np.maximum.accumulate(ends[::-1, 0])[::-1], np.minimum.accumulate(ends[:, 1])
            self._epsilons = np.insert(self._epsilons, places, at)
            self._ends = np.insert(self._ends, places, np.column_stack(falling), axis=0)

    def _knows(self, epsilons: Floats) -> NDArray[np.bool_]:
        places = np.searchsorted(self._epsilons, epsilons)
        inside = places < len(self._epsilons)
        inside[inside] = self._epsilons[places[inside]] == epsilons[inside]
        return inside

    def _between(self, places: NDArray[np.intp], ends: Floats) -> Floats:
        """No higher than what is known at the next smaller ε, no lower than at the next larger one."""
        known = np.vstack(([np.inf, np.inf], self._ends, [-np.inf, -np.inf]))
        held: Floats = np.minimum(np.maximum(ends, known[places + 1]), known[places])
        return held
