"""A dominating loss distribution as masses on a bounded lattice: composed, compared and maximized during planning.

Every operation only increases losses: a loss above the window becomes infinite, one below it is raised to the lowest
point, and an atom between two lattice points is split so that both masses are kept. So every result dominates the
distribution that it represents. Only positive terms are added and multiplied: masses keep their relative accuracy.
Only the points between the two ends are stored, so narrow distributions are composed quickly.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from tightrope.accounting.distributions.atoms import Atoms
from tightrope.accounting.distributions.loss_cells import LossCells
from tightrope.accounting.methods.grid import split_to_lattice
from tightrope.numerics.arrays import Floats
from tightrope.numerics.rounding import ROUND_OFF

MASS_MARGIN = 5e-10
"""Relative bound on the rounding error of a few thousand compositions; exported masses are enlarged by it."""
FAINT_ABOVE, FAINT_BELOW = 1e-40, 1e-25
"""Smaller masses at the ends are dropped: at the lower end they are raised; at the upper end they join the infinite
loss, if it is already possible (so pure distributions stay pure)."""
SNAP = 1e-10
"""Atoms this close to a lattice point, relative to the step, are moved to it; ``slack`` is the distance downwards."""


@dataclass(frozen=True, slots=True)
class LossLattice:
    """Lattice points −reach..reach of width ``step`` nats."""

    step: float
    reach: int

    @property
    def lattice_losses(self) -> Floats:
        """Losses at all points."""
        return self.losses_from(-self.reach, 2 * self.reach + 1)

    def losses_from(self, first: int, count: int) -> Floats:
        """Return the losses at ``count`` points, starting with number ``first``."""
        return np.asarray(self.step * np.arange(first, first + count), dtype=np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class LossPMF:
    """P-masses at the window's points ``first``, ``first`` + 1, …, and the mass at +∞."""

    window: LossLattice
    first: int
    values: Floats
    infinite_mass: float
    slack: float = 0.0
    """Nats by which atoms within rounding of a lattice point were moved down to it: bounds hold at ε minus this."""

    @classmethod
    def zero_loss(cls, window: LossLattice) -> Self:
        """Return the distribution of a loss that is always 0."""
        return cls(window, 0, np.ones(1), 0.0)

    @classmethod
    def from_cells(cls, cells: LossCells, window: LossLattice) -> Self:
        """Return the dominating distribution of cells or atoms on the window."""
        losses, masses = cells.dominating_atoms() if np.any(cells.high) else (cells.lower, cells.low)
        positive = masses > 0
        losses, masses = losses[positive], masses[positive]
        nearest = np.rint(losses / window.step) * window.step
        on_lattice = np.abs(losses - nearest) <= SNAP * window.step
        lowered = float(np.max(losses[on_lattice] - nearest[on_lattice], initial=0.0))
        offsets, split_masses = split_to_lattice(np.where(on_lattice, nearest, losses), masses, window.step)
        reach = window.reach
        points = np.minimum(np.maximum(offsets, -reach), reach + 1)
        values = np.bincount(points + reach, weights=split_masses, minlength=2 * reach + 2)
        return cls._clip_to_window(window, -reach, values.astype(np.float64), cells.infinite_mass, lowered)

    @classmethod
    def _clip_to_window(cls, window: LossLattice, first: int, values: Floats, infinite: float, slack: float) -> Self:
        """Make losses above the window (or faint ones there) infinite, and raise those below it."""
        inside = -window.reach <= first and first + len(values) <= window.reach + 1
        faint = FAINT_ABOVE if infinite > 0 else 0.0
        if inside and values[0] > FAINT_BELOW and values[-1] > faint:
            return cls(window, first, values, infinite, slack)
        significant = np.flatnonzero(values > faint)
        end = min(int(significant[-1]) + 1 if len(significant) else 0, window.reach + 1 - first)
        if end <= 0:
            return cls(window, window.reach, np.zeros(1), infinite + math.fsum(values), slack)
        heavy = np.flatnonzero(values[:end] > FAINT_BELOW)
        start = max(min(int(heavy[0]) if len(heavy) else 0, end - 1), min(-window.reach - first, end - 1), 0)
        inner = values[start:end].copy()
        inner[0] += values[:start].sum()
        return cls(window, max(first + start, -window.reach), inner, infinite + float(values[end:].sum()), slack)

    @property
    def end_index(self) -> int:
        """One past the number of the last stored point."""
        return self.first + len(self.values)

    @property
    def point_losses(self) -> Floats:
        """Losses at the stored points."""
        return self.window.losses_from(self.first, len(self.values))

    def __mul__(self, other: LossPMF) -> LossPMF:
        """Return the distribution of the sum of two independent losses."""
        infinite = self.infinite_mass + other.infinite_mass - self.infinite_mass * other.infinite_mass
        full = np.convolve(self.values, other.values)
        return self._clip_to_window(self.window, self.first + other.first, full, infinite, self.slack + other.slack)

    def __pow__(self, count: int) -> LossPMF:
        """Compose ``count`` ≥ 1 independent copies, by squaring."""
        half = self ** (count // 2) if count > 1 else self
        if count == 1:
            return self
        return half * half * self if count % 2 else half * half

    def delta(self, epsilon: float) -> float:
        """δ(ε), any ε: Σ_{l > ε} P_l (1 − e^{ε − l}) and the infinite mass, rounded up."""
        losses, epsilon = self.point_losses, epsilon - self.slack
        first = int(np.searchsorted(losses, epsilon, side="right"))
        value = float(np.dot(self.values[first:], -np.expm1(epsilon - losses[first:])))
        return (self.infinite_mass + value) * (1 + len(losses) * ROUND_OFF)

    def to_atoms(self) -> Atoms:
        """Return the same distribution as atoms; the opposite mass makes both directions of a symmetric pair equal.

        It bounds one order only: raising losses removes mass under Q, so the mirror image of the rest is not a bound.
        """
        positive, factor = self.values > 0, 1 + MASS_MARGIN
        infinite = min(1.0, self.infinite_mass * factor)
        return Atoms(
            self.point_losses[positive],
            self.values[positive] * factor,
            infinite,
            infinite,
            rounding_error_bound=self.slack + 4 * ROUND_OFF * self.window.step * self.window.reach,
            one_order=True,
        )


def maximum_profile_pmf(laws: Sequence[LossPMF]) -> LossPMF:
    """Return the distribution whose profile is the pointwise maximum of all the profiles, at the lattice points.

    The maximum of profiles is convex in γ = e^ε, and its chords between lattice points lie above it.
    """
    if len(laws) == 1:
        return laws[0]
    first, profiles = _deltas_at_points(laws)
    return _from_profile(laws, first, np.max(profiles, axis=0), max(law.infinite_mass for law in laws))


def greatest_dominated_pmf(laws: Sequence[LossPMF]) -> LossPMF:
    """Return a distribution that all the given ones dominate, and that dominates everything all of them dominate.

    The profile of anything they all dominate is convex and below each of theirs, so it is below the convex hull of
    their minimum at the lattice points.
    """
    if len(laws) == 1:
        return laws[0]
    first, profiles = _deltas_at_points(laws)
    lowest, infinite = np.min(profiles, axis=0), min(law.infinite_mass for law in laws)
    # The lower convex hull in γ of the points; beyond the last it is `infinite`.
    step = laws[0].window.step
    heights = [*lowest.tolist(), infinite]
    gammas = np.exp(step * np.arange(len(heights))).tolist()
    hull: list[int] = []
    for c in range(len(heights)):
        while len(hull) > 1:
            a, b = hull[-2:]
            slope = (heights[c] - heights[a]) / (gammas[c] - gammas[a])
            if not heights[b] - heights[a] >= slope * (gammas[b] - gammas[a]):
                break  # b is below the chord from a to c
            hull.pop()
        hull.append(c)
    profile = np.asarray(np.interp(gammas, np.take(gammas, hull), np.take(heights, hull)))[:-1]
    return _from_profile(laws, first, profile, infinite)


def _deltas_at_points(laws: Sequence[LossPMF]) -> tuple[int, Floats]:
    """δ at every point between the outermost ends: S_i − T_i with S, T running sums of positive terms from the top."""
    first, end = min(law.first for law in laws), max(law.end_index for law in laws)
    values = np.zeros((len(laws), end - first))
    for row, law in zip(values, laws, strict=True):
        row[law.first - first : law.end_index - first] = law.values
    down = np.exp(-laws[0].window.losses_from(first, end - first))
    infinite = np.array([[law.infinite_mass] for law in laws])
    return first, infinite + np.maximum(_sums_above(values) - _sums_above(values * down) / down, 0.0)


def _sums_above(values: Floats) -> Floats:
    """Return the sum of all later entries, for each entry of each row."""
    sums = np.zeros_like(values)
    sums[:, :-1] = np.cumsum(values[:, :0:-1], axis=1)[:, ::-1]
    return sums


def _from_profile(laws: Sequence[LossPMF], first: int, profile: Floats, infinite: float) -> LossPMF:
    """Return the distribution with P_j = γ_j · (jump of the profile's slope in γ at γ_j).

    The remaining mass goes to the lowest point.
    """
    window = laws[0].window
    up, down = math.expm1(window.step), -math.expm1(-window.step)
    rise = np.diff(np.append(profile, infinite))
    values = np.concatenate([[0.0], np.maximum(rise[1:] / up - rise[:-1] / down, 0.0)])
    values[0] = max(0.0, 1.0 - infinite - math.fsum(values))
    return LossPMF._clip_to_window(window, first, values, infinite, max(law.slack for law in laws))
