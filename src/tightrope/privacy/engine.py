"""Which method answers: the first that fits a composition (one direction).

closed form  a single law that knows its profile
recurrence   copies of one triple: positive three-term recurrence
lattice      laws with atoms on one lattice: tilted transform
contour      laws with densities: integral through the saddle point
grid         everything else: cells moved onto a lattice, from both sides
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np

from tightrope.errors import PrecisionError
from tightrope.privacy import contour, grid
from tightrope.privacy.atoms import Atoms
from tightrope.privacy.composition import Composition
from tightrope.privacy.lattice import Lattice, LatticePart
from tightrope.privacy.law import Floats, LossLaw
from tightrope.privacy.three_point import ThreePoint, three_point

Interval = tuple[float, float]
Indices = np.ndarray[tuple[int], np.dtype[np.int64]]
SNAP = 1e-11
"""Losses this close to a lattice, relative to its step, count as on it; the distance joins the slack."""
HEAVY = 1e-6
"""Atoms above this mass should lie on the grid."""
FAINT = 1e-22
"""Atoms below this mass do not decide the lattice."""


class Engine(ABC):
    """Computes δ(ε) of one composed direction as an interval that holds the truth."""

    name: str

    @abstractmethod
    def delta(self, epsilon: float) -> Interval: ...


@dataclass(frozen=True, slots=True)
class ClosedForm(Engine):
    """A single law with a formula."""

    law: LossLaw
    name = "closed form"

    def delta(self, epsilon: float) -> Interval:
        """Below 0 by the mirror 1 − e^ε + e^ε δ'(−ε), δ' of the reverse order: sums of positive terms."""
        if epsilon >= 0:
            return self._at(self.law, epsilon)
        low, high = self._at(self.law.reverse(), -epsilon)
        base, factor = -math.expm1(epsilon), math.exp(epsilon)
        return _outward(base + factor * low, 4e-16)[0], _outward(base + factor * high, 4e-16)[1]

    @staticmethod
    def _at(law: LossLaw, epsilon: float) -> Interval:
        """Losses may be off by the law's slack, so each end is taken at the ε that is on its side."""
        if epsilon - law.slack >= law.largest:
            return law.infinite_mass, law.infinite_mass
        ends = np.array([epsilon + law.slack, epsilon - law.slack])
        values, errors = law.profile(ends), law.profile_error(ends)
        low, high = (0.0, 1.0) if values is None else (float(values[0]), float(values[1]))
        return _outward(low, low * float(errors[0]))[0], _outward(high, high * float(errors[1]))[1]


@dataclass(frozen=True, slots=True)
class Recurrence(Engine):
    """Copies of one three-point law, with an infinite mass."""

    law: ThreePoint
    infinite_mass: float
    slack: float
    name = "recurrence"

    def delta(self, epsilon: float) -> Interval:
        high, error = self.law.delta(epsilon - self.slack)
        low, _ = self.law.delta(epsilon + self.slack)
        return _joined(low + self.infinite_mass, high + self.infinite_mass, error + 1e-15 * self.infinite_mass)


@dataclass(frozen=True, slots=True)
class OnLattice(Engine):
    """A lattice sum, exact up to rounding and the slack of its losses."""

    lattice: Lattice
    slack: float
    name = "lattice"

    def delta(self, epsilon: float) -> Interval:
        high, error = self.lattice.delta(epsilon - self.slack)
        low, other = self.lattice.delta(epsilon + self.slack) if self.slack else (high, error)
        return _joined(low, high, max(error, other))


@dataclass(frozen=True, slots=True)
class Contour(Engine):
    """The integral through the saddle point."""

    total: Composition
    slack: float
    instead: Callable[[], Engine]
    name = "contour"

    def delta(self, epsilon: float) -> Interval:
        """By the integral; by the grid where the integrand does not die at this ε."""
        try:
            value, error = contour.delta(self.total, epsilon - self.slack)
            low, other = contour.delta(self.total, epsilon + self.slack) if self.slack else (value, error)
        except PrecisionError:
            return self.instead().delta(epsilon)
        return _joined(low, value, max(error, other))


@dataclass(frozen=True, slots=True)
class BothSides(Engine):
    """One lattice above and one below."""

    upper: Lattice
    lower: Lattice
    slack: float
    name: str

    def delta(self, epsilon: float) -> Interval:
        high, over = self.upper.delta(epsilon - self.slack)
        low, under = self.lower.delta(epsilon + self.slack)
        return _outward(low, under)[0], _outward(high, over)[1]


def choose(total: Composition) -> Engine:
    """The engine that fits; made once and kept by the loss."""
    if not total.laws:
        return OnLattice(Lattice(1.0, (), 0.0), 0.0)
    if total.infinite_mass == 1:
        return ClosedForm(Atoms(np.zeros(0), np.zeros(0), 1.0, 1.0))
    single = total.laws[0] if total.counts == (1,) else None
    if single is not None and single.profile(np.array([1.0])) is not None:
        return ClosedForm(single)
    return _lattice(total) or _contour(total) or _grid(total)


def _slack(total: Composition) -> float:
    """Sum of the laws' loss errors, and the rounding of adding so many losses up."""
    return math.fsum(n * law.slack for law, n in zip(total.laws, total.counts, strict=True))


def _contour(total: Composition) -> Engine | None:
    if not contour.applies(total):
        return None
    return Contour(total, _slack(total), cache(lambda: _grid(total)))


def _grid(total: Composition) -> Engine:
    """A lattice that holds the atoms, where they have one."""
    step = grid.step_for(total)
    heavy = [law.losses[law.masses > HEAVY] for law in total.laws if isinstance(law, Atoms)]
    common = _common_step(heavy) if heavy else None
    if common is not None and common > step:
        step = common / math.ceil(common / step)
    return BothSides(grid.above(total, step), grid.below(total, step), _slack(total), "grid")


def _lattice(total: Composition) -> Engine | None:
    """Recurrence for one triple, lattice for atoms on a common lattice; None where there is none.

    Atoms off the lattice that hold next to nothing (rounded tails of integer tables) count as lost above, and as
    nothing below.
    """
    laws = [law for law in total.laws if isinstance(law, Atoms)]
    if len(laws) < len(total.laws):
        return None
    step = _common_step([law.losses[law.masses > FAINT] for law in laws])
    if step is None:
        return None
    placed = [_placed(law, step) for law in laws]
    counts = total.counts
    slack = _slack(total) + math.fsum(n * moved for (*_, moved, _), n in zip(placed, counts, strict=True))
    stray = math.fsum(n * off for (*_, off), n in zip(placed, counts, strict=True))
    parts = tuple(LatticePart(offsets, masses, n) for (offsets, masses, *_), n in zip(placed, counts, strict=True))
    infinite = total.infinite_mass
    if stray > 0:
        return BothSides(Lattice(step, parts, infinite + stray), Lattice(step, parts, infinite), slack, "lattice")
    return _recurrence(parts, step, infinite, slack) or OnLattice(Lattice(step, parts, infinite), slack)


def _placed(law: Atoms, step: float) -> tuple[Indices, Floats, float, float]:
    """Lattice points and masses, the furthest that an atom was moved, and the mass of what is off the lattice."""
    nearest = np.rint(law.losses / step)
    off = np.abs(law.losses - nearest * step)
    on = off <= _tolerance(step, law.losses)
    moved = float(np.max(off[on], initial=0.0))
    return nearest[on].astype(np.int64), law.masses[on], moved, math.fsum(law.masses[~on])


def _recurrence(parts: tuple[LatticePart, ...], step: float, infinite: float, slack: float) -> Engine | None:
    """One symmetric law on −step, 0, +step."""
    masses = {int(j): float(m) for j, m in zip(parts[0].offsets, parts[0].masses, strict=True)}
    if len(parts) > 1 or not {-1, 1} <= set(masses) <= {-1, 0, 1}:
        return None
    if not math.isclose(masses[-1], masses[1] * math.exp(-step), rel_tol=1e-15):
        return None
    return Recurrence(three_point(step, masses[1], masses.get(0, 0.0), parts[0].count), infinite, slack)


def _common_step(all_losses: list[np.ndarray[tuple[int], np.dtype[np.float64]]]) -> float | None:
    """The greatest number of which all losses are whole multiples, up to rounding; None where it is too fine."""
    losses = np.unique(np.abs(np.concatenate([np.zeros(0), *all_losses])))
    losses = losses[losses > 0]
    if len(losses) == 0:
        return 1.0
    step = float(losses[0])
    for _ in range(64):
        rest = np.abs(losses - np.rint(losses / step) * step)
        worst = float(np.max(rest))
        near = _tolerance(step, losses)
        if worst <= near:
            return step
        step = float(np.min(rest[rest > near]))
        if step < losses[-1] / (1 << 20):
            return None
    return None


def _tolerance(step: float, losses: Floats) -> float:
    """How far off the lattice rounding may take a loss; never more than a thousandth of the step."""
    rounding = 1e-15 * float(np.max(np.abs(losses), initial=0.0)) + 1e-16
    return min(max(SNAP * step, rounding), 1e-3 * step)


def _outward(value: float, error: float) -> Interval:
    """Value ∓ error inside [0, 1], each end one step further out; an exact zero stays one."""
    if value == error == 0:
        return 0.0, 0.0
    low, high = value - error, value + error
    return max(0.0, math.nextafter(low, -1.0)), min(1.0, math.nextafter(high, 2.0))


def _joined(low: float, high: float, error: float) -> Interval:
    return _outward(low, error)[0], _outward(high, error)[1]
