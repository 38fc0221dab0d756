"""Laws that compete for the least noise under composition: every family's, each at its least size.

Sizes are found in floats (``composed_curve``); what wins becomes an integer table and is certified from that.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tightrope.design.composed.composed_curve import Indices, Released, normalised
from tightrope.design.composed.composed_question import Question
from tightrope.errors import BudgetRefused
from tightrope.mechanisms.families.family import Family, Heights, Several, Sized
from tightrope.numerics.arrays import Floats

LATTICE_VARIANCE = 1e-5
"""Share of the variance of the loss that the lattice of a search may add."""
LAW_WITHIN = 1e-9
"""How near the least size of a law is approached."""


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A law that keeps the points in floats: weights of 0, ±1, …, and its E φ(|X|); ``size`` is its own parameter.

    With ``heights`` the law is e^{−heights[|x|]/size}, exactly, in whole numbers.
    """

    name: str
    half: Floats
    cost: float
    size: float
    heights: Indices | None = None


def candidate(question: Question, family: Family) -> Candidate:
    """The cheapest law of the family. Raises ``BudgetRefused`` where none keeps the points."""
    kept: list[Candidate] = []
    refused = [f"no {family.name} noise keeps {list(question.points)}"]
    for law in family.laws(several(question)):
        try:
            kept.append(at_least_size(question, family.name, law))
        except BudgetRefused as error:
            refused.append(str(error))
    if not kept:
        raise BudgetRefused(refused[-1])
    return min(kept, key=lambda found: found.cost)


def several(question: Question) -> Several:
    """The question as a family sees it."""
    return Several(
        question.shift,
        question.releases,
        question.least_delta,
        question.gaussian_scale,
        lambda law: _least_size(question, law),
    )


def at_least_size(question: Question, name: str, law: Heights | Sized, within: float = LAW_WITHIN) -> Candidate:
    """The law at the least size that keeps the points; raises ``BudgetRefused`` where none does."""
    if isinstance(law, Heights):
        size = _least_size(question, law)
        last = law.heights(size)
        half = normalised(np.exp(-last / (law.parts * size)))
        return Candidate(name, half, question.expected(half), law.parts * size, last)
    step = question.step(LATTICE_VARIANCE)
    size = question.least_size(
        lambda size: Released.of_weights(normalised(law.weights(size)), question.shift, step), law.guess, within
    )
    half = normalised(law.weights(size))
    own, heights = (size, None) if law.lattice is None else law.lattice(size)
    return Candidate(name, half, question.expected(half), own, heights)


def _least_size(question: Question, law: Heights) -> float:
    """Searched from the Laplace law that keeps ε by adding up losses."""
    guess = question.releases * question.shift / max(*(e for e, _ in question.points), question.mu)
    return question.least_size(
        lambda size: Released.of_heights(law.heights(size), question.shift, 1 / (law.parts * size)), guess, LAW_WITHIN
    )
