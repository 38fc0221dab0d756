"""The lattice that a set of losses lies on, up to rounding."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tightrope.numerics.arrays import Floats

SNAP = 1e-11
"""Losses this close to a lattice, relative to its step, count as on it; the distance joins the slack."""


def common_step(all_losses: Sequence[Floats]) -> float | None:
    """The greatest number of which all losses are whole multiples, up to rounding; None where it is too fine."""
    losses = np.unique(np.abs(np.concatenate([np.zeros(0), *all_losses])))
    losses = losses[losses > 0]
    if len(losses) == 0:
        return 1.0
    step = float(losses[0])
    for _ in range(64):
        rest = np.abs(losses - np.rint(losses / step) * step)
        worst = float(np.max(rest))
        near = tolerance(step, losses)
        if worst <= near:
            return step
        step = float(np.min(rest[rest > near]))
        if step < losses[-1] / (1 << 20):
            return None
    return None


def tolerance(step: float, losses: Floats) -> float:
    """How far off the lattice rounding may take a loss; never more than a thousandth of the step."""
    rounding = 1e-15 * float(np.max(np.abs(losses), initial=0.0)) + 1e-16
    return min(max(SNAP * step, rounding), 1e-3 * step)
