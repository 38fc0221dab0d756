"""The losses that a grid must tell apart for δ(ε), and what folding all others onto the ends can have added.

Where one loss is above a, the sum is above ε whatever the others are, but for next to nothing; there 1 − e^{ε−l} is
linear in e^{−l}, so its mass may as well lie at a and at ∞, with both masses kept. A loss below b is as rare as a
rounding, and may lie at b. Laws of small rates have losses a thousand times as large as those that matter, and a grid
between b and a is as much finer (``docs/proofs/grid.md``).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import numpy as np

from tightrope.numerics.arrays import Floats
from tightrope.privacy.laws.composition import Composition
from tightrope.privacy.laws.loss_cells import Cells

COARSE_CUT = 0.25
HELD_MASS = 1e-40
"""Mass below this is not looked for."""
RARE_MASS = 1e-12
"""All steps together, the mass that is folded onto b: so much of δ is lost from below."""
FAR = 36.0
"""The other losses are below ε − a with a probability of about e^{−36}."""
WINDOW_GROWTH = 1.25
"""Windows are geometric ones, so that neighbouring ε share a grid."""
WORTH = 2.0
"""Windows that are not this much shorter than a law gain nothing."""
RATES_TRIED = 2.0 ** np.arange(-8, 24)
"""Chernoff's bounds are tried at these, over the deviation of the sum."""
ROUNDED_SUMS = 1e-13
"""Relative error of sums of masses."""


class Window(NamedTuple):
    """From b to a; without ends where nothing is folded."""

    low: float = -math.inf
    high: float = math.inf


class Folded(NamedTuple):
    """Cells between the ends, atoms on these; the masses that were folded there, and where they are."""

    cells: Cells
    above: float
    below: float
    bottom: float
    top: float


def folded(cells: Cells, window: Window, step: float) -> Folded:
    """Cells that were cut at multiples of the step within the window, folded onto the outermost of these.

    Above, e^top of the mass under Q is kept there, and the rest of that under P is lost; below, all mass goes up.
    """
    above = cells.lower >= window.high - step / 2
    below = cells.upper <= window.low
    if not (above.any() or below.any()):
        return Folded(cells, 0.0, 0.0, -math.inf, math.inf)
    bottom = float(np.max(cells.upper[below], initial=-math.inf))
    top = float(np.min(cells.lower[above], initial=math.inf))
    # The next atom may be far beyond the window: the chord from any place up to it holds all that is folded.
    ends = bottom, min(top, math.ceil(window.high / step) * step) if above.any() else top
    less, more = math.fsum(cells.p[below]), math.fsum(cells.p[above])
    kept = min(more, math.fsum(cells.q[above]) * math.exp(min(ends[1], 700.0)) * (1 - ROUNDED_SUMS))
    atoms = [(end, mass) for end, mass in zip(ends, (less, kept), strict=True) if mass > 0]
    losses, masses = np.array([end for end, _ in atoms]), np.array([mass for _, mass in atoms])
    inner = replace(cells.part(~above & ~below), infinite_mass=cells.infinite_mass + (more - kept))
    return Folded(inner.joined(Cells.atoms(losses, masses, 0.0, 0.0)), more, less, *ends)


@dataclass(frozen=True, slots=True, eq=False)
class Outline:
    """A composition in coarse cells: lower ends and masses of each law, how many there are, the window's lower end."""

    losses: tuple[tuple[Floats, Floats], ...]
    counts: tuple[int, ...]
    low: float
    top: float
    """The largest loss of all laws that is looked for."""
    reach: float
    """The sum of all losses is below minus this with a probability of about e^{−FAR}."""

    @classmethod
    def of(cls, total: Composition) -> Self:
        """From the cells that the laws come with."""
        cells = [law.cells(COARSE_CUT) for law in total.laws]
        low = _rare(cells, total.counts)
        losses = tuple((each.lower, each.p) for each in cells)
        top = max(float(np.max(each.upper[each.p > HELD_MASS], initial=0.0)) for each in cells)
        rates, logs = _moments([(np.maximum(lower, low), p) for lower, p in losses], total.counts)
        reach = float(np.min((logs @ np.array(total.counts, dtype=np.float64) + FAR) / rates))
        return cls(losses, total.counts, low, top, max(reach, 0.0))

    def window(self, epsilon: float) -> Window:
        """One that serves ε, if it gains anything."""
        needed = max(epsilon, 0.0) + self.reach
        if not self.reach > 0 or not needed * WINDOW_GROWTH * WORTH < self.top:
            return Window()
        places = math.ceil(math.log(needed / self.reach) / math.log(WINDOW_GROWTH))
        return Window(self.low, self.reach * WINDOW_GROWTH**places)

    def gained(self, parts: Sequence[Folded]) -> Gained:
        """What folding has added, for every ε."""
        tops = [part.top for part in parts]
        clipped = [
            (np.clip(lower, part.bottom, part.top), p) for (lower, p), part in zip(self.losses, parts, strict=True)
        ]
        rates, logs = _moments(clipped, self.counts)
        others = (logs @ np.array(self.counts, dtype=np.float64))[:, None] - logs
        above = [n * part.above for part, n in zip(parts, self.counts, strict=True)]
        below = math.fsum(n * part.below for part, n in zip(parts, self.counts, strict=True))
        return Gained(rates, others, np.array(above), np.array(tops), below)


@dataclass(frozen=True, slots=True, eq=False)
class Gained:
    """Rates [r]; log E e^{−rate·R} [r, laws] for the sum R of all losses but one of a law; masses that were folded from
    above, and to where [laws]; the mass folded from below.
    """

    rates: Floats
    others: Floats
    above: Floats
    tops: Floats
    below: float

    def at(self, epsilon: float, high: float) -> float:
        """What δ(ε) ≤ ``high`` can have gained: paths with a loss above the top and a sum of the others below ε − top,
        those that went to ∞ for rounding's sake; and a part of δ itself by losses from below.
        """
        folds = self.above > 0
        rest = epsilon - np.where(folds, self.tops, 0.0)
        chances = np.exp(np.minimum(np.min(self.others + self.rates[:, None] * rest, axis=0), 0.0))
        lost = 2 * ROUNDED_SUMS * float(np.sum(self.above))
        return (float(np.dot(self.above[folds], chances[folds])) + lost + self.below * high) * (1 + 1e-9)


def _rare(cells: Sequence[Cells], counts: Sequence[int]) -> float:
    """The loss, no more than 0, below which all laws together hold next to nothing."""
    upper = np.concatenate([each.upper for each in cells])
    masses = np.concatenate([n * each.p for each, n in zip(cells, counts, strict=True)])
    order = np.argsort(upper)
    ends = upper[order]
    held = int(np.searchsorted(np.cumsum(masses[order]), RARE_MASS, side="right"))
    first = int(np.searchsorted(ends, ends[min(held, len(ends) - 1)]))  # many end at one loss where a rate is small
    return min(float(ends[first - 1]), 0.0) if first else -math.inf


def _moments(losses: Sequence[tuple[Floats, Floats]], counts: Sequence[int]) -> tuple[Floats, Floats]:
    """Rates [r] and log E e^{−rate·L} [r, laws]."""
    held = [(lower[p > 0], p[p > 0]) for lower, p in losses]
    squares = [float(np.dot(p, np.clip(lower, -1, 1) ** 2)) for lower, p in held]
    variance = math.fsum(n * square for square, n in zip(squares, counts, strict=True))
    rates = np.asarray(RATES_TRIED / math.sqrt(max(variance, 1e-300)), dtype=np.float64)
    return rates, np.stack([_log_moment(lower, p, rates) for lower, p in held], axis=1)


def _log_moment(lower: Floats, p: Floats, rates: Floats) -> Floats:
    """−∞ for a law whose losses are all infinite."""
    if not len(p):
        return np.full(len(rates), -math.inf)
    exponents = np.log(p) - rates[:, None] * lower
    top = np.max(exponents, axis=1)
    return np.asarray(top + np.log(np.sum(np.exp(exponents - top[:, None]), axis=1)))
