"""The best shape of a family with two knobs, and the least size for it."""

from __future__ import annotations

import math

from scipy import optimize

from tightrope.design.composed.candidates import LAW_WITHIN, Candidate, at_least_size, several
from tightrope.design.composed.composed_question import Question
from tightrope.errors import BudgetRefused
from tightrope.mechanisms.families.family import Shaped, Sized

COMPETING_WITHIN = 1e-6
"""How near the least size is approached while shapes compete."""
NEAREST = 2e-3
"""How near the best shape is approached."""


def tuned(question: Question, family: Shaped) -> tuple[float, Candidate]:
    """The best shape and its law. Raises ``BudgetRefused`` where no shape will do."""
    found: dict[float, Candidate] = {}

    def at(shape: float) -> float:
        try:
            found[shape] = sized(question, family.at(shape), _guess(question, family, shape, found), COMPETING_WITHIN)
        except BudgetRefused:
            return math.inf
        return found[shape].cost

    if not math.isfinite(min(map(at, family.grid))):
        raise BudgetRefused(f"no {family.name} keeps {list(question.points)}; measure in coarser units")
    low, high = family.ends
    ordered = sorted({low, *family.grid, high}, reverse=True)
    place = ordered.index(min(found, key=lambda shape: found[shape].cost))
    around = (ordered[min(place + 1, len(ordered) - 1)], ordered[max(place - 1, 0)])
    optimize.minimize_scalar(at, bounds=around, method="bounded", options={"xatol": NEAREST})
    best = min(found, key=lambda shape: found[shape].cost)
    return best, sized(question, family.at(best), found[best].size)


def sized(question: Question, family: Shaped, guess: float, within: float = LAW_WITHIN) -> Candidate:
    """The law of this shape at its least size."""
    depth = several(question).depth
    return at_least_size(question, family.name, Sized(lambda scale: family.listed(scale, depth), guess), within)


def _guess(question: Question, family: Shaped, shape: float, found: dict[float, Candidate]) -> float:
    """The size with the standard deviation of the nearest shape that is known, or of the Gaussian."""
    wanted = family.at(shape).deviation
    if not found:
        return question.gaussian_scale / wanted
    nearest = min(found, key=lambda other: abs(other - shape))
    return found[nearest].size * family.at(nearest).deviation / wanted
