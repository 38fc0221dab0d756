"""The worst adaptive choice from a menu: D_k(ε) = max_o E_o[D_{k−1}(ε − L_o)] on a lattice, per direction (theory §2).

D is convex in γ = e^ε, so its chords between lattice points lie above it, and a menu law moved onto the lattice along
chords only raises E[D(ε − L)]. All sums have positive terms: the values keep their relative accuracy and are rounded
up. Proofs: ``docs/proofs/filters.md``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tightrope.numerics.arrays import Floats
from tightrope.numerics.rounding import ROUND_OFF
from tightrope.privacy.engines.lattices.common_step import common_step
from tightrope.privacy.filters.log_moments import log_moments
from tightrope.privacy.laws.atoms import Atoms
from tightrope.privacy.laws.composition import Composition
from tightrope.privacy.masses import Masses, Window

POINTS = 1 << 13
"""Lattice points of the window, unless a step is given."""
CHERNOFF_ORDERS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
ESCAPE_NATS = 70.0
"""The summed loss leaves the window with probability e^{−70} at most; then it counts as infinite."""
FARTHEST_WINDOW = 300.0
"""No window reaches further, losses beyond count as infinite: e^{−loss} must stay in double precision."""


@dataclass(frozen=True, slots=True, eq=False)
class Worst:
    """Upper bounds on δ at the losses 0, step, 2·step, …; no larger beyond the last. ``slack`` as for atoms."""

    values: Floats
    step: float
    slack: float


def worst(menu: Sequence[Composition], steps: int, window: Window) -> Worst:
    """The profile of the worst adaptive choice of ``steps`` from the menu, one direction."""
    options = [_on_window(option, window) for option in menu]
    values = -np.expm1(np.minimum(window.losses, 0.0))
    for _ in range(steps):
        values = np.max([_expected(option, values) for option in options], axis=0)
    sums = steps * (1 + max(sum(option.counts) for option in menu)) + 2
    raised = np.minimum(values * (1 + sums * (len(values) + 64) * 2 * ROUND_OFF), 1.0)
    slack = max(option.slack for option in options) + 4 * ROUND_OFF * window.step * window.reach
    return Worst(raised[window.reach :], window.step, steps * slack)


def _expected(option: Masses, values: Floats) -> Floats:
    """δ_∞ + Σ_j p_j D(ε_i − l_j) at every i.

    Below the window D is at most the chord from (γ = 0, 1) to its first point, above it no larger than at its top.
    """
    first, last = min(0, option.first), max(0, option.end - 1)
    below = 1 - (1 - values[0]) * np.exp(option.window.step * np.arange(-last, 0))
    padded = np.concatenate([below, values, np.full(-first, values[-1])])
    masses = np.pad(option.values, (option.first - first, last + 1 - option.end))
    return np.asarray(option.infinite_mass + np.convolve(padded, masses, "valid"))


def _on_window(option: Composition, window: Window) -> Masses:
    """A menu entry on the lattice; entries that are compositions are composed there."""
    total = Masses.certain(window)
    for law, count in zip(option.laws, option.counts, strict=True):
        total = total * Masses.of(law.cells(window.step), window) ** count
    return total


def window_for(menu: Sequence[Composition], steps: int, step: float | None) -> Window:
    """Wide enough for the sum of all steps, or for all of it but e^{−70}; ``step`` nats, or the atoms' lattice."""
    moments = np.max([log_moments(option, CHERNOFF_ORDERS).values for option in menu], axis=0)
    chernoff = float(np.min((steps * moments + ESCAPE_NATS) / np.array(CHERNOFF_ORDERS)))
    largest = max(0.0, *(option.largest for option in menu))
    reach = min(steps * largest, chernoff, FARTHEST_WINDOW)
    width = step or _width(menu, max(2 * reach / POINTS, 1e-9))
    # Moved onto the lattice, each step may lose one lattice point more.
    points = math.ceil(reach / width)
    return Window(width, min(points + min(steps, points) + 1, math.ceil(FARTHEST_WINDOW / width)))


def _width(menu: Sequence[Composition], wanted: float) -> float:
    """At most the wanted width, on the lattice of the menu's atoms where they have one.

    Finer than that lattice, because the entries' profiles may cross between its points.
    """
    atoms = [law.losses for option in menu for law in option.laws if isinstance(law, Atoms)]
    common = common_step(atoms) if atoms else None
    return wanted if common is None or common < wanted else common / math.ceil(common / wanted)
