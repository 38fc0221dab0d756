"""Whether a function can be a privacy profile: what every δ(ε) = sup_A P(A) − e^ε Q(A) does, checked at many ε.

It stays in [0, 1], falls with ε, is convex in γ = e^ε, and so is the whole curve with its mirror below 0: from there
η = δ(0) ≤ (δ(ε) + δ'(ε) + e^ε − 1) / (1 + e^ε) with δ' of the other order of the pair, which has the same η.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tightrope.errors import InputError
from tightrope.numerics.arrays import Floats

Profile = Callable[[Floats], Floats]

DENT = 1e-9
"""How far above its own hull, relative to δ, a profile may be: rounding, not a mistake."""
FAINT = 1e-30
"""Loss beyond the ε where δ exceeds its limit by less than this counts as infinite."""
FARTHEST_CHECKED = 650.0
"""And beyond this ε."""
NEAREST, POINTS = 1e-6, 2000


def values(profile: Profile, epsilons: Floats) -> Floats:
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
    _check_middle(above, below, room)


def check_shape(name: str, profile: Profile, places: Floats, deltas: Floats, room: float) -> None:
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


def _check_middle(above: Profile, below: Profile, room: float) -> None:
    """One total variation, and no more of it than the rest of the curve allows."""
    places = np.concatenate([[0.0], np.geomspace(NEAREST, 30.0, POINTS)])
    one, other = values(above, places), values(below, places)
    if not abs(one[0] - other[0]) <= room * max(one[0], other[0]):
        remedy = "the total variation has no direction: say the smaller for both"
        raise InputError("reverse", float(other[0]), f"{float(one[0])!r} at epsilon=0, like the profile", remedy)
    most = (one + other + np.expm1(places)) / (1 + np.exp(places))
    if not np.all(one[0] <= most * (1 + room)):
        at = float(places[np.argmax(one[0] > most * (1 + room))])
        kink = "one that, mirrored below 0, is convex in e^epsilon at epsilon=0, too"
        raise InputError("profile", above, kink, f"between 0 and {at:.6g} it falls too fast for its value")


def hull(epsilons: Floats, deltas: Floats) -> list[int]:
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


def _turns_down(gammas: Floats, deltas: Floats, first: int, middle: int, last: int) -> bool:
    left = (deltas[middle] - deltas[first]) * (gammas[last] - gammas[middle])
    right = (deltas[last] - deltas[middle]) * (gammas[middle] - gammas[first])
    return bool(left >= right)
