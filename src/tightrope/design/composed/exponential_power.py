"""e^{−(|x|/s)^q}, 1 ≤ q ≤ 2: the Laplace law at one end, the Gaussian at the other, both parameters tuned.

It takes nine tenths of what there is to gain over the classic families where those two cross (theory §4.3).
"""

from __future__ import annotations

import math

import numpy as np
from scipy import optimize

from tightrope.design.composed.candidate_laws import Candidate, cells, depth, of_weights
from tightrope.design.composed.composed_question import Question
from tightrope.design.power_law import deviation
from tightrope.errors import BudgetRefused
from tightrope.numerics.arrays import Floats

NAME = "exponential power"
POWERS = (1.9, 1.75, 1.6, 1.5, 1.4, 1.3, 1.2, 1.15, 1.1, 1.05, 1.02)
"""Where the best q is sought first."""
COMPETING_WITHIN = 1e-6
"""How near the least size is approached while powers compete."""
NEAREST = 2e-3
"""How near the best q is approached."""


def exponential_power(question: Question) -> Candidate:
    """The best q, and the least s for it."""
    return tuned(question)[1]


def tuned(question: Question) -> tuple[float, Candidate]:
    """The best q and its law. Raises ``BudgetRefused`` where no q will do."""
    found: dict[float, Candidate] = {}

    def at(power: float) -> float:
        try:
            found[power] = sized(question, power, _guess(question, power, found), COMPETING_WITHIN)
        except BudgetRefused:
            return math.inf
        return found[power].cost

    if not math.isfinite(min(map(at, POWERS))):
        raise BudgetRefused(f"no exponential power keeps {list(question.points)}; measure in coarser units")
    ordered = [2.0, *POWERS, 1.0]
    place = ordered.index(min(found, key=lambda power: found[power].cost))
    around = (ordered[place + 1], ordered[place - 1])
    optimize.minimize_scalar(at, bounds=around, method="bounded", options={"xatol": NEAREST})
    best = min(found, key=lambda power: found[power].cost)
    return best, sized(question, best, found[best].size)


def sized(question: Question, power: float, guess: float, within: float = 1e-9) -> Candidate:
    """The law of this power at its least size."""

    def weights(size: float) -> Floats:
        return power_weights(power, size, depth(question))

    return of_weights(NAME, question, weights, guess, within)


def power_weights(power: float, size: float, nats: float) -> Floats:
    """e^{−(x/s)^q} of 0, 1, 2, … down to e^{−nats}."""
    reach = np.arange(cells(size * nats ** (1 / power)) + 1)
    return np.asarray(np.exp(-((reach / size) ** power)), dtype=np.float64)


def _guess(question: Question, power: float, found: dict[float, Candidate]) -> float:
    """The size with the standard deviation of the nearest power that is known, or of the Gaussian."""
    if not found:
        return question.gaussian_scale / deviation(power)
    nearest = min(found, key=lambda other: abs(other - power))
    return found[nearest].size * deviation(nearest) / deviation(power)
