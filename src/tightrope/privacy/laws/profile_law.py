"""The loss law behind any privacy profile, known only as a function (theory §3, "any profile").

A profile is convex in γ = e^ε, and its kinks are atoms: the law of its values at chosen ε, connected by chords,
dominates. Above 0 they come from δ, below 0 from the mirrored reverse, so that no mass is a difference of numbers
near 1. Values are raised by their relative error first; the hull of what was raised is above the truth.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tightrope.errors import InputError
from tightrope.numerics.arrays import Floats
from tightrope.privacy.laws.law import LossLaw
from tightrope.privacy.laws.loss_cells import Cells, multiples
from tightrope.privacy.laws.profile_check import DENT, Profile, check_pair, check_shape, hull, reach, values

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

    def profile(self, epsilon: Floats) -> Floats:
        """As given, and mirrored below 0: 1 − e^ε (1 − δ'(−ε))."""
        epsilon = np.asarray(epsilon, dtype=np.float64)
        size = np.abs(epsilon)
        mirrored = 1 - np.exp(-size) * (1 - values(self.below, size))
        return np.where(epsilon >= 0, values(self.above, size), mirrored)

    def profile_error(self, epsilon: Floats) -> Floats:
        return np.full(np.shape(epsilon), self.relative_error + 2e-15)

    def cells(self, step: float) -> Cells:
        low, high = -self.reach[1], self.reach[0]
        return self.cut(np.concatenate([[low], multiples(low, high, step), [high]]))

    def cut(self, edges: Floats) -> Cells:
        """Cells between the kinks; a kink's mass may have been on either side of it, so each side holds half."""
        above = self._raised(self.above, edges, self.reach[0])
        below = self._raised(self.below, -edges, self.reach[1])
        start = min(above[1][0], below[1][0])  # both are above one and the same total variation
        losses, masses, outside = _kinks(above, below, start)
        if not np.min(masses) > -DENT:
            losses, masses, outside = _kinks(above, below, _bridged(above, below, start))
        if not np.min(masses) > -DENT:
            raise InputError("profile", self.above, "one that, mirrored below 0, is convex in e^epsilon at 0, too")
        masses, shares = np.maximum(masses, 0.0), np.full(len(losses), 0.5)
        shares[0] = shares[-1] = 1.0
        return Cells(losses[:-1], losses[1:], (masses * shares)[:-1], (masses * shares)[1:], *outside)

    def _raised(self, profile: Profile, edges: Floats, farthest: float) -> Half:
        """Places from 0 on, and δ there with its error."""
        places = np.unique(np.concatenate([[0.0], np.clip(edges[edges > 0], 0.0, farthest), [farthest]]))
        deltas = np.minimum(values(profile, places) * (1 + self.relative_error), 1.0)
        check_shape("profile", profile, places, deltas, DENT + 2 * self.relative_error)
        return places, deltas


Half = tuple[Floats, Floats]


def _kinks(above: Half, below: Half, start: float) -> tuple[Floats, Floats, tuple[float, float]]:
    """Losses, their masses under the first law of the pair, and the mass beyond either end, with η = ``start``."""
    (top, up, infinite), (bottom, down, opposite) = (_half(*half, start) for half in (above, below))
    down = down * np.exp(-bottom)
    centre = 1 - infinite - math.fsum(up) - math.fsum(down)
    losses, masses = np.concatenate([-bottom[::-1], [0.0], top]), np.concatenate([down[::-1], [centre], up])
    return losses, masses, (infinite, opposite)


def _half(places: Floats, deltas: Floats, start: float) -> tuple[Floats, Floats, float]:
    """Kinks above 0, their masses, and what is lost beyond the last."""
    deltas = np.append(start, np.minimum(deltas[1:], start))
    kept = hull(places, deltas)
    epsilons, found = places[kept], deltas[kept]
    slopes = np.append(np.diff(found) / np.diff(np.exp(epsilons)), 0.0)
    masses = np.exp(epsilons[1:]) * np.diff(slopes)
    return epsilons[1:], np.maximum(masses, 0.0), float(found[-1])


def _bridged(above: Half, below: Half, start: float) -> float:
    """η on the hull of the whole curve, from above: the most for which a line through it at γ = 1 is below all else.

    Raised values may be too high in the middle to be convex there; the hull of what is above the truth stays so.
    """
    (top, up), (bottom, down) = above, below
    right, left = np.expm1(top[1:]), -np.expm1(-bottom[1:])  # γ − 1 above, 1 − γ below
    mirrored = left + (1 - left) * down[1:]
    low, high = 0.0, start
    for _ in range(CUT_HALVINGS):
        eta = (low + high) / 2
        fits = np.max((eta - mirrored) / left) <= np.min((up[1:] - eta) / right)
        low, high = (eta, high) if fits else (low, eta)
    return high
