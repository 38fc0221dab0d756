"""A pair of laws from upper bounds on both directions of a profile, at the lattice losses 0, h, 2h, …

Positive losses come from the profile of one direction; negative ones are those of the other, seen from Q. Masses are
enlarged until the profile of the pair is nowhere below the bounds, rounding included (``docs/proofs/filters.md``).
"""

from __future__ import annotations

import math

import numpy as np

from tightrope.numerics.arrays import Floats
from tightrope.numerics.rounding import ROUND_OFF
from tightrope.privacy.filters.adaptive import Worst
from tightrope.privacy.laws.atoms import Atoms

SMALLEST_DELTA = 1e-150
"""Values of δ between 0 and this are raised to it."""


def pair(remove: Worst, add: Worst) -> tuple[Atoms, Atoms]:
    """Laws of both directions, which are one where both bounds are the same object."""
    (up, leak), (down, opposite) = _masses(remove), _masses(add)
    near, far = _distance(up, leak, remove.step), _distance(down, opposite, remove.step)
    # Both are upper bounds on one total variation: the smaller one grows, by mass at the least positive loss.
    up[0] += max(0.0, far - near) / -math.expm1(-remove.step)
    down[0] += max(0.0, near - far) / -math.expm1(-remove.step)
    losses = np.asarray(remove.step * np.arange(1, len(up) + 1), dtype=np.float64)
    slack = max(remove.slack, add.slack)
    law = _law(losses, (up, down), (leak, opposite), max(near, far), slack)
    return (law, law) if remove is add else (law, _law(losses, (down, up), (opposite, leak), max(near, far), slack))


def _law(
    losses: Floats, masses: tuple[Floats, Floats], infinite: tuple[float, float], distance: float, slack: float
) -> Atoms:
    """P-masses at the losses and at their negatives, the rest at 0.

    Where Q adds up to 1 + c, the profile of the law may be short by c·γ at γ = e^ε < 1, where δ is at least the total
    variation: growing all masses by 2c/TV makes up for it.
    """
    (up, down), (leak, opposite) = masses, infinite
    mirrored = down * np.exp(-losses)
    centre = max(0.0, 1 - math.fsum([leak, *up, *mirrored]))
    under_q = math.fsum([opposite, centre, *down, *(up * np.exp(-losses))])
    excess = max(0.0, under_q - 1) + 16 * ROUND_OFF
    grown = 1 + 2 * excess / distance if distance > 0 else 1.0
    every = np.concatenate([-losses, [0.0], losses])
    values = np.minimum(np.concatenate([mirrored, [centre], up]) * grown, 1.0)
    sides = (min(1.0, leak * grown), min(1.0, opposite * grown))
    return Atoms.gather(every, values, infinite_mass=sides[0], opposite_mass=sides[1], slack=slack)


def _masses(bound: Worst) -> tuple[Floats, float]:
    """Masses at h, 2h, … and at +∞ whose profile reaches the bound: P_j = γ_j · (jump of the slope in γ at γ_j)."""
    values = bound.values
    infinite = float(np.max(values[values < SMALLEST_DELTA], initial=values[-1]))
    infinite = max(infinite, SMALLEST_DELTA) if infinite > 0 else 0.0
    values = np.maximum(values, infinite)
    rise = np.append(-np.diff(values), 0.0)
    masses = rise[:-1] / -math.expm1(-bound.step) - rise[1:] / math.expm1(bound.step)
    masses = np.where(masses > 16 * ROUND_OFF / bound.step * values[:-1], masses, 0.0)  # the rest is rounding
    short = values > infinite
    reached = _profile(masses, infinite, bound.step)[short]
    factor = float(np.max(values[short] / reached, initial=1.0)) * (1 + 8 * len(values) * ROUND_OFF)
    return masses * factor, min(1.0, infinite * factor)


def _profile(masses: Floats, infinite: float, step: float) -> Floats:
    """δ at 0, h, …: δ(γ_i) = δ(γ_{i+1}) + (γ_{i+1} − γ_i) Q(L > l_i), only positive terms."""
    losses = step * np.arange(len(masses) + 1)
    under_q = np.append(np.cumsum((masses * np.exp(-losses[1:]))[::-1])[::-1], 0.0)
    gains = math.expm1(step) * np.exp(losses) * under_q
    return np.asarray(infinite + np.cumsum(gains[::-1])[::-1])


def _distance(masses: Floats, infinite: float, step: float) -> float:
    """The total variation of these masses: δ(0)."""
    gains = -np.expm1(-step * np.arange(1, len(masses) + 1))
    return math.fsum([infinite, *(masses * gains)])
