"""The loss law behind any privacy profile, known only as a function (theory §3, "any profile").

A profile is convex in γ = e^ε, and its kinks are atoms: the law of its values at chosen ε, connected by chords,
dominates. Above 0 they come from δ, below 0 from the mirrored reverse, so that no mass is a difference of numbers
near 1. Values are raised by their relative error first; the hull of what was raised is above the truth.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tightrope.errors import InputError
from tightrope.privacy.cells import Cells, multiples
from tightrope.privacy.law import Floats, LossLaw

Profile = Callable[[Floats], Floats]

FAINT = 1e-30
"""Loss beyond the ε where δ exceeds its limit by less than this counts as infinite."""
FARTHEST = 650.0
"""And beyond this ε."""
DENT = 1e-9
"""How far above its own hull, relative to δ, a profile may be: rounding, not a mistake."""


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
        reach = (_reach(above, limits[0]), _reach(below, limits[1]))
        return cls(above, below, limits, reach, relative_error)

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

    def profile(self, epsilon: Floats) -> Floats:
        """As given, and mirrored below 0: 1 − e^ε (1 − δ'(−ε))."""
        epsilon = np.asarray(epsilon, dtype=np.float64)
        size = np.abs(epsilon)
        mirrored = 1 - np.exp(-size) * (1 - _values(self.below, size))
        return np.where(epsilon >= 0, _values(self.above, size), mirrored)

    def profile_error(self, epsilon: Floats) -> Floats:
        return np.full(np.shape(epsilon), self.relative_error + 2e-15)

    def cells(self, step: float) -> Cells:
        low, high = -self.reach[1], self.reach[0]
        return self.cut(np.concatenate([[low], multiples(low, high, step), [high]]))

    def cut(self, edges: Floats) -> Cells:
        """Cells between the kinks; a kink's mass may have been on either side of it, so each side holds half."""
        top, up, infinite = self._half(self.above, edges, self.reach[0])
        bottom, down, opposite = self._half(self.below, -edges, self.reach[1])
        centre = 1 - infinite - math.fsum(up) - math.fsum(down * np.exp(-bottom))
        if not centre > -DENT:
            kink = "one that, mirrored below 0, is convex in e^epsilon at epsilon=0, too"
            raise InputError("profile", self.above, kink, "it falls too fast there for its value")
        centre = max(centre, 0.0)
        losses = np.concatenate([-bottom[::-1], [0.0], top])
        masses = np.concatenate([(down * np.exp(-bottom))[::-1], [centre], up])
        shares = np.full(len(losses), 0.5)
        shares[0] = shares[-1] = 1.0
        return Cells(losses[:-1], losses[1:], (masses * shares)[:-1], (masses * shares)[1:], infinite, opposite)

    def _half(self, profile: Profile, edges: Floats, reach: float) -> tuple[Floats, Floats, float]:
        """Kinks above 0, their masses under the first law of the pair, and what is lost beyond the last."""
        places = np.unique(np.concatenate([[0.0], np.clip(edges[edges > 0], 0.0, reach), [reach]]))
        deltas = np.minimum(_values(profile, places) * (1 + self.relative_error), 1.0)
        kept = _hull(places, deltas)
        _check(profile, places, deltas, kept)
        epsilons, values = places[kept], deltas[kept]
        slopes = np.append(np.diff(values) / np.diff(np.exp(epsilons)), 0.0)
        masses = np.exp(epsilons[1:]) * np.diff(slopes)
        return epsilons[1:], np.maximum(masses, 0.0), float(values[-1])


def _values(profile: Profile, epsilons: Floats) -> Floats:
    """What the function says, checked."""
    found = np.asarray(profile(epsilons), dtype=np.float64)
    if found.shape != epsilons.shape or not np.all((found >= 0) & (found <= 1)):
        told = found.shape if found.shape != epsilons.shape else float(found[~((found >= 0) & (found <= 1))][0])
        raise InputError("profile", told, f"a delta in [0, 1] for each epsilon, shape {epsilons.shape}")
    return found


def _reach(profile: Profile, limit: float) -> float:
    """The least ε, to 1 %, from which on δ is within ``FAINT`` of its limit."""
    ladder = np.geomspace(1e-6, FARTHEST, 2000)
    near = np.flatnonzero(_values(profile, ladder) <= limit + FAINT)
    return float(ladder[near[0]]) if len(near) else FARTHEST


def _hull(epsilons: Floats, deltas: Floats) -> list[int]:
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


def _check(profile: Profile, places: Floats, deltas: Floats, kept: list[int]) -> None:
    """A profile falls and is convex in e^ε; else the hull would say less than it does."""
    hull = np.interp(np.exp(places), np.exp(places[kept]), deltas[kept])
    dents = deltas - hull > DENT * deltas
    if np.any(dents) or np.any(np.diff(deltas) > DENT * deltas[1:]):
        at = places[np.argmax(dents)] if np.any(dents) else places[np.argmax(np.diff(deltas))]
        raise InputError("profile", profile, f"one that falls and is convex in e^epsilon, also near epsilon={at:.6g}")
