"""Poisson sampling of a finite law, which stays finite (theory §2, add-remove).

With B the outputs with the record and A those without it, an outcome of loss l = log B/A has mass (1−q)A + qB against
A: the loss becomes log(1 − q + q e^l). What only A has keeps the loss log(1−q); what only B has stays infinite.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from tightrope.numerics.arrays import Floats
from tightrope.numerics.rounding import ROUND_OFF
from tightrope.privacy.laws.atoms import Atoms
from tightrope.privacy.sampled.mixing import INNER, mixed, slope
from tightrope.privacy.sampled.subsampled import PoissonAdd, PoissonRemove


def sampled_remove(base: Atoms, rate: float) -> Atoms:
    """Law of ((1−q)A + qB, A), 0 < q < 1, from that of (B, A)."""
    losses = np.append(mixed(base.losses, rate), math.log1p(-rate))
    alone = (1 - rate) * (base.opposite_mass + base.absent)
    masses = np.append(rate * base.masses + (1 - rate) * base.opposite, alone)
    return _finite(PoissonRemove(base, rate), base, (losses, masses))


def sampled_add(base: Atoms, rate: float) -> Atoms:
    """Law of (A, (1−q)A + qB), 0 < q < 1, from that of (A, B), whose infinite loss is what only A has."""
    losses = np.append(-mixed(-base.losses, rate), -math.log1p(-rate))
    return _finite(PoissonAdd(base, rate), base, (losses, np.append(base.masses, base.infinite_mass)))


def _finite(law: PoissonRemove | PoissonAdd, base: Atoms, atoms: tuple[Floats, Floats]) -> Atoms:
    """A loss moves by a share of what the base's did; a mass by e^slack, since it holds one of either side.

    A single step asks the base, whose losses are not rounded anew, and of which each keeps its own digits.
    """
    losses, masses = atoms
    farthest = base.largest if isinstance(law, PoissonRemove) else -float(np.min(base.losses, initial=math.inf))
    slack = slope(farthest + base.slack, law.rate) * base.slack + INNER * float(np.max(np.abs(losses), initial=0.0))
    outside = {"infinite_mass": law.infinite_mass, "opposite_mass": law.opposite_mass}
    found = Atoms.gather(losses, masses, **outside, slack=slack)
    inexact = base.inexact + math.expm1(min(base.slack, 1.0)) + 8 * ROUND_OFF
    slacks = base.slack * _share(law, found.losses) * (1 + 1e-9) + INNER * np.abs(found.losses)
    return replace(found, inexact=inexact, formula=law if base.reversible else None, slacks=slacks)


def _share(law: PoissonRemove | PoissonAdd, losses: Floats) -> Floats:
    """Of the sampled part in a loss, 1 − (1 − q) e^{∓l}: by so much it moves with the base's."""
    sign = -1 if isinstance(law, PoissonRemove) else 1
    with np.errstate(over="ignore"):
        return np.clip(1 - (1 - law.rate) * np.exp(sign * losses), 0.0, 1.0) + 8 * ROUND_OFF
