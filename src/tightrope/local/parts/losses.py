"""The privacy loss of every mechanism here: three points, +ℓ, 0 and −ℓ, from exact fractions.

Two people's values change the probability of some reports from ``up`` to ``down``, of others from ``down`` to ``up``,
and of the rest not at all; so the pair of laws is the dominating pair of a triple (ε, 0, η) with ε = ℓ = log(up/down)
and η = up − down (theory §1).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from fractions import Fraction

import numpy as np

from tightrope.certificates import Guarantee
from tightrope.mechanisms.tables.integer_losses import LOSS_ROUNDING
from tightrope.numerics.rounding import rounded, to_float
from tightrope.privacy.laws.atoms import Atoms
from tightrope.privacy.loss import PrivacyLoss
from tightrope.privacy.neighbours import Neighbours

Change = tuple[Fraction, Fraction]
"""Probabilities (up, down), up > down > 0, of reports under the first value; exchanged under the second."""


def joined(*parts: tuple[Fraction, Change]) -> Change:
    """One change that dominates a public choice among several, each with its probability: the largest odds r, and the
    sum of all η. Its pair (rη, η) / (r − 1) dominates every pair with such odds and η.

    >>> joined((Fraction(1, 2), (Fraction(3, 4), Fraction(1, 4))), (Fraction(1, 2), (Fraction(2, 3), Fraction(1, 3))))
    (Fraction(5, 8), Fraction(5, 24))
    """
    odds = max(up / down for _, (up, down) in parts)
    eta = sum((share * (up - down) for share, (up, down) in parts), Fraction(0))
    return odds * eta / (odds - 1), eta / (odds - 1)


def log_odds(change: Change) -> float:
    """log(up / down), to a relative error below 2⁻⁵⁰ (``integer_losses`` says why)."""
    up, down = change
    return math.log1p((up - down) / down)


def loss_of(change: Change) -> PrivacyLoss:
    """Masses ``up`` at +ℓ, ``down`` at −ℓ and the rest at 0.

    One person changes the own value: neighbours are "local". The laws of both orders of the pair are the same.

    >>> round(loss_of((Fraction(3, 4), Fraction(1, 4))).epsilon(0.1), 12)
    0.955511445027
    """
    up, down = change
    loss = log_odds(change)
    masses = np.array([float(down), float(1 - up - down), float(up)])
    atoms = Atoms.gather(np.array([-loss, 0.0, loss]), masses, slack=LOSS_ROUNDING * loss)
    return PrivacyLoss.of(atoms, reverse=atoms, neighbours=Neighbours.LOCAL)


def epsilon_of(change: Change) -> float:
    """ℓ, rounded up."""
    return rounded(log_odds(change), "up", error=LOSS_ROUNDING)


def guarantee_of(change: Change) -> Guarantee:
    """(ℓ, 0, up − down), each rounded up."""
    up, down = change
    return Guarantee(epsilon_of(change), 0.0, to_float(up - down, "up"))


class Declared(ABC):
    """A mechanism that says what one report changes; what it guarantees follows."""

    __slots__ = ()

    @property
    @abstractmethod
    def changed(self) -> Change:
        """What changes between the two values of a person that are easiest to tell apart: exactly what is sampled."""

    @property
    def loss(self) -> PrivacyLoss:
        """The privacy loss of one report, from the whole numbers that are sampled; neighbours are "local"."""
        return loss_of(self.changed)

    @property
    def guarantee(self) -> Guarantee:
        """The realised (ε, 0, η), rounded up; ε is at most the one that was asked for."""
        return guarantee_of(self.changed)
