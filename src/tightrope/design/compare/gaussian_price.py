"""What Gaussian noise costs beside the least noise there is, over the plane of ε and δ (GDGK)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from tightrope.certificates.budget import Budget
from tightrope.design.calibration.calibrate import calibrate
from tightrope.design.noise_limits import noise_limits
from tightrope.errors import InputError
from tightrope.mechanisms.continuous.gaussian import gaussian
from tightrope.numerics.checks import filled

SCALE_TOLERANCE = 1e-9
"""How near the least scale is found, relatively."""


@dataclass(frozen=True, slots=True)
class Price:
    """The cost of the least Gaussian over that of the least noise lies between ``lower`` and ``upper``."""

    epsilon: float
    delta: float
    lower: float
    upper: float


def gaussian_price(
    *, epsilon: Sequence[float], delta: Sequence[float], cost: str = "absolute"
) -> tuple[tuple[Price, ...], ...]:
    """A row for each δ, a price for each ε: real-valued noise of sensitivity 1, cost "absolute" or "squared".

    The scale of the Gaussian is the least one, by its exact profile, not by the classical formula. Sensitivity does not
    matter. ``report.plots.gaussian_price`` draws it. Raises ``InputError`` for empty lists and another cost.

    >>> ((price,),) = gaussian_price(epsilon=[1.0], delta=[1e-6], cost="squared")
    >>> 9.30 < price.lower <= price.upper < 9.32
    True
    """
    if cost not in {"absolute", "squared"}:
        raise InputError("cost", cost, "'absolute' or 'squared'")
    filled("epsilon", list(epsilon), "say [0.5, 1, 2]")
    filled("delta", list(delta), "say [1e-6, 1e-9]")
    found = [_price(e, d, cost) for d, e in itertools.product(delta, epsilon)]
    width = len(epsilon)
    return tuple(tuple(found[i : i + width]) for i in range(0, len(found), width))


def _price(epsilon: float, delta: float, cost: str) -> Price:
    budget = Budget(epsilon=epsilon, delta=delta)
    limits = noise_limits(budget, cost=cost)
    scale = calibrate(lambda size: gaussian(scale=size).loss, budget, tolerance=SCALE_TOLERANCE).parameter
    paid = scale * math.sqrt(2 / math.pi) if cost == "absolute" else scale**2
    return Price(epsilon, delta, paid * (1 - 3 * SCALE_TOLERANCE) / limits.upper, paid / limits.lower)
