"""Sensitivity over scale at both ends of double precision: no noise at all, and noise that hides everything."""

from __future__ import annotations

import math

import numpy as np

from tightrope.errors import InputError
from tightrope.numerics.checks import non_negative, positive
from tightrope.numerics.rounding import ROUND_OFF
from tightrope.privacy.laws.atoms import Atoms
from tightrope.privacy.loss import PrivacyLoss

LEAST = 1e-300
"""What loses less than this is left out of an account: its formulas would leave double precision."""
LEFT_OUT = "so little is lost that doubles hardly hold it: leave this release out of the account"


def checked(scale: object, sensitivity: object) -> tuple[float, float]:
    """Both as floats: the scale may be 0, which is no noise.

    Raises ``InputError`` for a negative scale, a sensitivity that is not positive, and where the scale is more than
    10³⁰⁰ times the sensitivity.
    """
    size, most = non_negative("scale", scale), positive("sensitivity", sensitivity)
    if not ratio(size, most) >= LEAST:
        raise InputError("scale", size, f"at most 1e300 times the sensitivity, {most:g}", LEFT_OUT)
    return size, most


def not_faint(epsilon: float) -> float:
    """An ε that is 0 or at least 10⁻³⁰⁰; raises ``InputError`` for one between."""
    if not (epsilon == 0 or epsilon >= LEAST):
        raise InputError("epsilon", epsilon, "at least 1e-300", LEFT_OUT)
    return epsilon


def ratio(scale: float, sensitivity: float) -> float:
    """Sensitivity / scale; ∞ where there is no noise, or less than a double can tell."""
    return sensitivity / scale if scale > 0 else math.inf


def disclosed(scale: float) -> PrivacyLoss:
    """The loss of noise that hides nothing: infinite, certainly.

    For a positive scale it is a bound on what has no double: the loss exceeds all of them with a probability that is
    1 to all digits.
    """
    nothing = np.zeros(0)
    law = Atoms(nothing, nothing, 1.0, 1.0, inexact=0.0 if scale == 0 else 2 * ROUND_OFF)
    return PrivacyLoss.of(law, reverse=law)
