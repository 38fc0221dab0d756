"""The privacy loss of every mechanism here: three points, +ℓ, 0 and −ℓ, from exact fractions.

Two people's values change the probability of a report from ``up`` to ``down``, from ``down`` to ``up``, or not at all;
so the pair of laws is the dominating pair of a triple (ε, 0, η) with ε = ℓ = log(up/down) and η = up − down.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from tightrope.certificates import Guarantee
from tightrope.mechanisms.integer_losses import ROUNDING, snapped
from tightrope.privacy.atoms import Atoms
from tightrope.privacy.loss import PrivacyLoss
from tightrope.privacy.neighbours import Neighbours


def log_odds(up: Fraction, down: Fraction) -> float:
    """log(up / down) for up > down > 0, to a relative error below 2⁻⁵⁰ (``integer_losses`` says why)."""
    return math.log1p((up - down) / down)


def three_point_loss(up: Fraction, down: Fraction) -> PrivacyLoss:
    """Masses ``up`` at +ℓ, ``down`` at −ℓ and the rest at 0; one person changes the own value: neighbours "local".

    >>> round(three_point_loss(Fraction(3, 4), Fraction(1, 4)).epsilon(0.1), 12)
    0.955511445027
    """
    losses, slack = snapped(np.array([log_odds(up, down)]), ())
    loss = float(losses[0])
    masses = np.array([float(down), float(1 - up - down), float(up)])
    atoms = Atoms.gather(np.array([-loss, 0.0, loss]), masses, slack=slack)
    return PrivacyLoss.of(atoms, reverse=atoms, neighbours=Neighbours.LOCAL)


def three_point_guarantee(up: Fraction, down: Fraction) -> Guarantee:
    """(ℓ, 0, up − down), each rounded up."""
    epsilon = math.nextafter(log_odds(up, down) * (1 + ROUNDING), math.inf)
    return Guarantee(epsilon, 0.0, _rounded_up(up - down))


def _rounded_up(exact: Fraction) -> float:
    nearest = float(exact)
    return nearest if Fraction(nearest) >= exact else math.nextafter(nearest, math.inf)
