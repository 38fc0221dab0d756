"""What is claimed, as points: δ(ε) is at most δ, rounded so that only what is truly above refutes it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import singledispatch
from typing import Any

import numpy as np

from tightrope.certificates.budget import Budget
from tightrope.certificates.guarantee import Guarantee
from tightrope.errors import InputError
from tightrope.numerics.rounding import to_float
from tightrope.privacy.loss import PrivacyLoss

Points = tuple[tuple[float, float], ...]
Claimed = Budget | Guarantee | PrivacyLoss | Sequence[tuple[float, float]]
PLACES_LOOKED_AT = 24
"""A loss is looked at in so many places."""
LEAST_DELTA = 1e-5
"""From ε = 0 to where its δ is this: events that are rarer are seldom seen."""
CLAIMED = "a Budget, a Guarantee, a PrivacyLoss or points (epsilon, delta)"
TRY = "try tr.Budget(epsilon=1, delta=1e-8)"


def claimed_points(claim: Any) -> Points:
    """The points (ε, δ), in the claim's order; raises ``InputError`` for what claims nothing.

    >>> claimed_points([(1, 0.01)])
    ((1.0, 0.01),)
    """
    return _points(claim)


@singledispatch
def _points(claim: Any) -> Points:
    if not isinstance(claim, Sequence) or isinstance(claim, (str, bytes)) or not claim:
        raise InputError("claim", claim, CLAIMED, TRY)
    return _points(Budget(points=claim))


@_points.register
def _(claim: Budget) -> Points:
    return tuple((to_float(epsilon, "up"), to_float(delta, "up")) for epsilon, delta in claim.stated)


@_points.register
def _(claim: Guarantee) -> Points:
    finite = [(float(claim.epsilon), claim.delta)] if math.isfinite(claim.epsilon) else []
    return (*finite, (0.0, claim.total_variation))


@_points.register
def _(claim: PrivacyLoss) -> Points:
    largest = claim.epsilon(LEAST_DELTA)
    places = np.linspace(0.0, largest if math.isfinite(largest) else 1.0, PLACES_LOOKED_AT)
    return tuple(zip(places.tolist(), claim.delta(places).tolist(), strict=True))
