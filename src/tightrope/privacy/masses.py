"""A dominating loss law as masses on a window of a lattice: composed, compared and maximised while a plan is made.

All operations only ever move loss upwards: what leaves the window above becomes infinite, what leaves it below is
lifted to its lowest point, atoms between two lattice points are split keeping both masses. So every law here
dominates what it stands for. Sums and products of positive terms only: masses keep their relative accuracy.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from tightrope.numerics.arrays import Floats
from tightrope.numerics.rounding import ROUND_OFF
from tightrope.privacy.engines.lattices.grid import split
from tightrope.privacy.laws.atoms import Atoms
from tightrope.privacy.laws.loss_cells import Cells

MASS_MARGIN = 5e-10
"""Relative bound on the rounding of some thousand compositions: exported masses are larger by it."""
SNAP = 1e-10
"""Atoms this close to a lattice point, relative to the step, are moved there; the slack says how far down."""


@dataclass(frozen=True, slots=True)
class Window:
    """Lattice points −reach..reach of width ``step`` nats."""

    step: float
    reach: int

    @property
    def losses(self) -> Floats:
        return np.asarray(self.step * np.arange(-self.reach, self.reach + 1), dtype=np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class Masses:
    """P-masses [2·reach + 1] at the window's points, and the mass at +∞."""

    window: Window
    values: Floats
    infinite_mass: float
    slack: float = 0.0
    """Nats by which atoms within rounding of a lattice point were moved down to it: bounds hold at ε minus this."""

    @classmethod
    def certain(cls, window: Window) -> Self:
        """No loss at all."""
        values = np.zeros(2 * window.reach + 1)
        values[window.reach] = 1.0
        return cls(window, values, 0.0)

    @classmethod
    def of(cls, cells: Cells, window: Window) -> Self:
        """The window's dominating law of cells or atoms."""
        losses, masses = cells.ends()
        held = masses > 0
        nearest = np.rint(losses / window.step) * window.step
        near = held & (np.abs(losses - nearest) <= SNAP * window.step)
        lowered = float(np.max(losses[near] - nearest[near], initial=0.0))
        losses = np.where(near, nearest, losses)
        offsets, moved = split(losses[held], masses[held], window.step)
        inside = np.maximum(offsets, -window.reach)
        above = inside > window.reach
        points = 2 * window.reach + 1
        values = np.bincount(inside[~above] + window.reach, weights=moved[~above], minlength=points).astype(np.float64)
        return cls(window, values, cells.infinite_mass + math.fsum(moved[above]), lowered)

    def __mul__(self, other: Masses) -> Masses:
        """Independent losses added up."""
        reach = self.window.reach
        full = np.convolve(self.values, other.values)
        values = full[reach : 3 * reach + 1].copy()
        values[0] += math.fsum(full[:reach])
        escaped = math.fsum(full[3 * reach + 1 :])
        infinite = self.infinite_mass + other.infinite_mass - self.infinite_mass * other.infinite_mass
        return Masses(self.window, values, infinite + escaped, self.slack + other.slack)

    def __pow__(self, count: int) -> Masses:
        """``count`` ≥ 1 independent copies, by squaring."""
        half = self ** (count // 2) if count > 1 else self
        if count == 1:
            return self
        return half * half * self if count % 2 else half * half

    def profile(self) -> Floats:
        """δ at every point of the window: S_i − T_i with S, T running sums of positive terms from the top."""
        above = np.append(np.cumsum(self.values[::-1])[::-1][1:], 0.0)
        down = np.exp(-self.window.losses)
        weighted = np.append(np.cumsum((self.values * down)[::-1])[::-1][1:], 0.0) / down
        return self.infinite_mass + np.maximum(above - weighted, 0.0)

    def delta(self, epsilon: float) -> float:
        """δ(ε), any ε: Σ_{l > ε} P_l (1 − e^{ε − l}) and the infinite mass, rounded up."""
        losses, epsilon = self.window.losses, epsilon - self.slack
        first = int(np.searchsorted(losses, epsilon, side="right"))
        value = float(np.dot(self.values[first:], -np.expm1(epsilon - losses[first:])))
        return (self.infinite_mass + value) * (1 + len(losses) * ROUND_OFF)

    def atoms(self) -> Atoms:
        """The same law for the engines; the opposite mass makes both directions of a symmetric pair equal."""
        held, up = self.values > 0, 1 + MASS_MARGIN
        infinite = min(1.0, self.infinite_mass * up)
        return Atoms(
            self.window.losses[held],
            self.values[held] * up,
            infinite,
            infinite,
            slack=self.slack + 4 * ROUND_OFF * self.window.step * self.window.reach,
        )


def worst(laws: Sequence[Masses]) -> Masses:
    """The law whose profile is the pointwise maximum of the laws' profiles, at the lattice points.

    The maximum of profiles is convex in γ = e^ε, and its chords between lattice points lie above it.
    """
    if len(laws) == 1:
        return laws[0]
    window = laws[0].window
    highest = np.max([law.profile() for law in laws], axis=0)
    infinite = max(law.infinite_mass for law in laws)
    slack = max(law.slack for law in laws)
    return Masses(window, _masses(highest, infinite, window), infinite, slack)


def _masses(profile: Floats, infinite: float, window: Window) -> Floats:
    """P_j = γ_j · (jump of the profile's slope in γ at γ_j); all that is missing goes to the lowest point."""
    up, down = math.expm1(window.step), -math.expm1(-window.step)
    rise = np.diff(np.append(profile, infinite))
    inner = rise[1:] / up - rise[:-1] / down
    values = np.concatenate([[0.0], np.maximum(inner, 0.0)])
    values[0] = max(0.0, 1.0 - infinite - math.fsum(values))
    return values
