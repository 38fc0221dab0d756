"""A dominating loss law as masses on a window of a lattice: composed, compared and maximised while a plan is made.

All operations only ever move loss upwards: what leaves the window above becomes infinite, what leaves it below is
lifted to its lowest point, atoms between two lattice points are split keeping both masses. So every law here
dominates what it stands for. Sums and products of positive terms only: masses keep their relative accuracy. A law holds
only the points between its ends, so what is narrow is composed fast.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from tightrope.accounting.distributions.atoms import Atoms
from tightrope.accounting.distributions.loss_cells import Cells
from tightrope.accounting.methods.grid import split
from tightrope.numerics.arrays import Floats
from tightrope.numerics.rounding import ROUND_OFF

MASS_MARGIN = 5e-10
"""Relative bound on the rounding of some thousand compositions: exported masses are larger by it."""
FAINT_ABOVE, FAINT_BELOW = 1e-40, 1e-25
"""Less than this at the ends of a law is not carried along: below it is lifted, above it joins an infinite loss, if the
law has one at all: pure laws stay pure."""
SNAP = 1e-10
"""Atoms this close to a lattice point, relative to the step, are moved there; the slack says how far down."""


@dataclass(frozen=True, slots=True)
class Window:
    """Lattice points −reach..reach of width ``step`` nats."""

    step: float
    reach: int

    @property
    def losses(self) -> Floats:
        """At all points."""
        return self.points(-self.reach, 2 * self.reach + 1)

    def points(self, first: int, count: int) -> Floats:
        """Losses at ``count`` points from the number ``first`` on."""
        return np.asarray(self.step * np.arange(first, first + count), dtype=np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class Masses:
    """P-masses at the window's points ``first``, ``first`` + 1, …, and the mass at +∞."""

    window: Window
    first: int
    values: Floats
    infinite_mass: float
    slack: float = 0.0
    """Nats by which atoms within rounding of a lattice point were moved down to it: bounds hold at ε minus this."""

    @classmethod
    def certain(cls, window: Window) -> Self:
        """No loss at all."""
        return cls(window, 0, np.ones(1), 0.0)

    @classmethod
    def of(cls, cells: Cells, window: Window) -> Self:
        """The window's dominating law of cells or atoms."""
        losses, masses = cells.ends() if np.any(cells.high) else (cells.lower, cells.low)
        held = masses > 0
        losses, masses = losses[held], masses[held]
        nearest = np.rint(losses / window.step) * window.step
        near = np.abs(losses - nearest) <= SNAP * window.step
        lowered = float(np.max(losses[near] - nearest[near], initial=0.0))
        offsets, moved = split(np.where(near, nearest, losses), masses, window.step)
        reach = window.reach
        places = np.minimum(np.maximum(offsets, -reach), reach + 1)
        gathered = np.bincount(places + reach, weights=moved, minlength=2 * reach + 2)
        return cls._inside(window, -reach, gathered.astype(np.float64), cells.infinite_mass, lowered)

    @classmethod
    def _inside(cls, window: Window, first: int, values: Floats, infinite: float, slack: float) -> Self:
        """What lies beyond the window, or is faint, becomes infinite above and is lifted below."""
        inside = -window.reach <= first and first + len(values) <= window.reach + 1
        faint = FAINT_ABOVE if infinite > 0 else 0.0
        if inside and values[0] > FAINT_BELOW and values[-1] > faint:
            return cls(window, first, values, infinite, slack)
        held = np.flatnonzero(values > faint)
        end = min(int(held[-1]) + 1 if len(held) else 0, window.reach + 1 - first)
        if end <= 0:
            return cls(window, window.reach, np.zeros(1), infinite + math.fsum(values), slack)
        heavy = np.flatnonzero(values[:end] > FAINT_BELOW)
        start = max(min(int(heavy[0]) if len(heavy) else 0, end - 1), min(-window.reach - first, end - 1), 0)
        kept = values[start:end].copy()
        kept[0] += values[:start].sum()
        return cls(window, max(first + start, -window.reach), kept, infinite + float(values[end:].sum()), slack)

    @property
    def end(self) -> int:
        """One past the number of the last point that is held."""
        return self.first + len(self.values)

    @property
    def losses(self) -> Floats:
        """Those of the points that are held."""
        return self.window.points(self.first, len(self.values))

    def __mul__(self, other: Masses) -> Masses:
        """Independent losses added up."""
        infinite = self.infinite_mass + other.infinite_mass - self.infinite_mass * other.infinite_mass
        full = np.convolve(self.values, other.values)
        return self._inside(self.window, self.first + other.first, full, infinite, self.slack + other.slack)

    def __pow__(self, count: int) -> Masses:
        """``count`` ≥ 1 independent copies, by squaring."""
        half = self ** (count // 2) if count > 1 else self
        if count == 1:
            return self
        return half * half * self if count % 2 else half * half

    def delta(self, epsilon: float) -> float:
        """δ(ε), any ε: Σ_{l > ε} P_l (1 − e^{ε − l}) and the infinite mass, rounded up."""
        losses, epsilon = self.losses, epsilon - self.slack
        first = int(np.searchsorted(losses, epsilon, side="right"))
        value = float(np.dot(self.values[first:], -np.expm1(epsilon - losses[first:])))
        return (self.infinite_mass + value) * (1 + len(losses) * ROUND_OFF)

    def atoms(self) -> Atoms:
        """The same law for the engines; the opposite mass makes both directions of a symmetric pair equal.

        It bounds one order: raised masses take mass under Q away, and the mirror of what is left is no bound.
        """
        held, up = self.values > 0, 1 + MASS_MARGIN
        infinite = min(1.0, self.infinite_mass * up)
        return Atoms(
            self.losses[held],
            self.values[held] * up,
            infinite,
            infinite,
            slack=self.slack + 4 * ROUND_OFF * self.window.step * self.window.reach,
            one_order=True,
        )


def worst(laws: Sequence[Masses]) -> Masses:
    """The law whose profile is the pointwise maximum of the laws' profiles, at the lattice points.

    The maximum of profiles is convex in γ = e^ε, and its chords between lattice points lie above it.
    """
    if len(laws) == 1:
        return laws[0]
    first, profiles = _profiles(laws)
    return _of_profile(laws, first, np.max(profiles, axis=0), max(law.infinite_mass for law in laws))


def greatest_lower_bound(laws: Sequence[Masses]) -> Masses:
    """A law below all the laws but above everything that all of them dominate.

    What they all dominate has a convex profile below each of theirs, so it is below the convex hull of their minimum
    at the lattice points.
    """
    if len(laws) == 1:
        return laws[0]
    first, profiles = _profiles(laws)
    lowest, infinite = np.min(profiles, axis=0), min(law.infinite_mass for law in laws)
    # The lower convex hull in γ of the points; beyond the last it is `infinite`.
    step = laws[0].window.step
    heights = [*lowest.tolist(), infinite]
    gammas = np.exp(step * np.arange(len(heights))).tolist()
    kept: list[int] = []
    for new in range(len(heights)):
        while len(kept) > 1 and _rises(kept[-2], kept[-1], new, gammas, heights):
            kept.pop()
        kept.append(new)
    return _of_profile(
        laws, first, np.asarray(np.interp(gammas, np.take(gammas, kept), np.take(heights, kept)))[:-1], infinite
    )


def _profiles(laws: Sequence[Masses]) -> tuple[int, Floats]:
    """δ at every point between the outermost ends: S_i − T_i with S, T running sums of positive terms from the top."""
    first, end = min(law.first for law in laws), max(law.end for law in laws)
    values = np.zeros((len(laws), end - first))
    for row, law in zip(values, laws, strict=True):
        row[law.first - first : law.end - first] = law.values
    down = np.exp(-laws[0].window.points(first, end - first))
    infinite = np.array([[law.infinite_mass] for law in laws])
    return first, infinite + np.maximum(_above(values) - _above(values * down) / down, 0.0)


def _above(values: Floats) -> Floats:
    """Sums of all that stands further right, in each row."""
    sums = np.zeros_like(values)
    sums[:, :-1] = np.cumsum(values[:, :0:-1], axis=1)[:, ::-1]
    return sums


def _of_profile(laws: Sequence[Masses], first: int, profile: Floats, infinite: float) -> Masses:
    """P_j = γ_j · (jump of the profile's slope in γ at γ_j); all that is missing goes to the lowest point."""
    window = laws[0].window
    up, down = math.expm1(window.step), -math.expm1(-window.step)
    rise = np.diff(np.append(profile, infinite))
    values = np.concatenate([[0.0], np.maximum(rise[1:] / up - rise[:-1] / down, 0.0)])
    values[0] = max(0.0, 1.0 - infinite - math.fsum(values))
    return Masses._inside(window, first, values, infinite, max(law.slack for law in laws))


def _rises(a: int, b: int, c: int, gammas: list[float], heights: list[float]) -> bool:
    """Whether b lies on or above the chord from a to c."""
    slope = (heights[c] - heights[a]) / (gammas[c] - gammas[a])
    return heights[b] - heights[a] >= slope * (gammas[b] - gammas[a])
