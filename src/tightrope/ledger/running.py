"""What holds at every time of a dataset's life at once: the reading of an odometer, by a rule that is fixed beforehand.

Theorem: ``docs/proofs/filters.md`` (odometer) and ``docs/proofs/composition.md``. A reading is a statement about what
was released so far. It is no promise: that is the limit's.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

from tightrope.certificates.budget import at_most
from tightrope.ledger.limits import Limit
from tightrope.ledger.moments import Moments
from tightrope.ledger.recipe import Recipe
from tightrope.ledger.state import Balance
from tightrope.privacy.filters import Odometer
from tightrope.privacy.neighbours import Neighbours

BY_ADDITION, BY_MOMENTS = "addition", "odometer of moments"
FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)
"""Orders of the odometer over that of the limit: fixed with it, before anything is released."""
RUNNING_STATEMENT = (
    "Holds at all times at once, whatever was chosen after seeing answers: with a reading u after each release, every "
    "set A of histories that end with a reading of at most epsilon has P(A) <= e^epsilon Q(A) + delta, for all epsilon "
    "together. It speaks of what was charged so far, reserved series whole, and is no promise: that is the limit's."
)


def running(
    limit: Limit, balance: Balance, counted: Mapping[str, int], texts: Mapping[str, str]
) -> dict[str, Any] | None:
    """The reading under the limit of the whole budget, at the δ of its largest ε; None where it promises no ε.

    A limit by moments has an odometer of log moments over the noise that was charged, each of ``counted`` so many
    times; a basic one adds up ε. The least of both would hold for twice the δ, so it is one.
    """
    epsilon, delta = max(limit.budget.stated)
    if epsilon == 0:
        return None
    if limit.moments is None:
        reading, rule = _at_least((balance.spent + balance.reserved) * Fraction(epsilon)), BY_ADDITION
    else:
        reading, rule = _odometer(limit.moments, delta, counted, texts), BY_MOMENTS
    return {"rule": rule, "epsilon": reading, "delta": str(delta), "statement": RUNNING_STATEMENT}


def _odometer(moments: Moments, delta: Decimal, counted: Mapping[str, int], texts: Mapping[str, str]) -> float:
    odometer = Odometer(
        delta=at_most(delta),
        infinite_mass=float(moments.infinite_mass),
        orders=tuple(float(moments.order) * factor for factor in FACTORS),
        neighbours=Neighbours.ADD_REMOVE,
    )
    for name, times in counted.items():
        odometer.charge(Recipe.read(texts[name]).releases(times))
    return odometer.reading


def _at_least(exact: Fraction) -> float:
    """The least float that is not below it."""
    near = float(exact)
    return near if Fraction(near) >= exact else math.nextafter(near, math.inf)
