"""Poisson sampling of a finite law, which stays finite (theory §2, add-remove).

With B the outputs with the record and A those without it, an outcome of loss l = log B/A has mass (1−q)A + qB against
A: the loss becomes log(1 − q + q e^l). What only A has keeps the loss log(1−q); what only B has stays infinite.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from tightrope.privacy.atoms import Atoms
from tightrope.privacy.cells import mixed_loss
from tightrope.privacy.law import Floats

ROUND_OFF = 2.0**-53
STEEP = 600.0
"""Beyond this loss, log(1 − q + q e^l) = l + log q."""


def sampled_remove(base: Atoms, rate: float) -> Atoms:
    """Law of ((1−q)A + qB, A), 0 < q < 1, from that of (B, A)."""
    losses = np.append(_mapped(base.losses, rate), math.log1p(-rate))
    mixed = rate * base.masses + (1 - rate) * base.opposite
    masses = np.append(mixed, (1 - rate) * base.opposite_mass)
    return _finite(base, losses, masses, (rate * base.infinite_mass, 0.0))


def sampled_add(base: Atoms, rate: float) -> Atoms:
    """Law of (A, (1−q)A + qB), 0 < q < 1, from that of (A, B), whose infinite loss is what only A has."""
    losses = np.append(-_mapped(-base.losses, rate), -math.log1p(-rate))
    masses = np.append(base.masses, base.infinite_mass)
    return _finite(base, losses, masses, (0.0, rate * base.opposite_mass))


def _finite(base: Atoms, losses: Floats, masses: Floats, outside: tuple[float, float]) -> Atoms:
    """A loss moves by no more than the base's did; a mass by e^slack, since it holds one of either side."""
    slack = base.slack + 4 * ROUND_OFF * float(np.max(np.abs(losses), initial=0.0))
    found = Atoms.gather(losses, masses, infinite_mass=outside[0], opposite_mass=outside[1], slack=slack)
    return replace(found, inexact=base.inexact + base.slack + 8 * ROUND_OFF)


def _mapped(loss: Floats, rate: float) -> Floats:
    """log(1 − q + q e^l), exact near 0."""
    return np.where(loss > STEEP, loss + math.log(rate), mixed_loss(loss, rate))
