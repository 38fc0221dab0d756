"""The least noise of each family under one budget, for one answer: bisected, and ending on the private side."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count

from tightrope.certificates.budget import Budget
from tightrope.design.composed.composed_question import Question
from tightrope.design.composed.shapes import tuned
from tightrope.design.program.noise_cost import Cost
from tightrope.design.program.noise_request import Promise
from tightrope.errors import BudgetRefused, InputError
from tightrope.mechanisms.families.family import Family, Shaped
from tightrope.mechanisms.families.registry import offered
from tightrope.mechanisms.families.weights import LISTED_NATS, Need
from tightrope.mechanisms.integer.integer_mechanism import IntegerMechanism, Tabulated
from tightrope.mechanisms.tables.integer_optimum import excess, keeps, optimal_table
from tightrope.mechanisms.tables.table import NoiseTable
from tightrope.numerics.checks import whole

SIZE_WITHIN = 1e-6
"""How near, relatively, the least size is approached."""
MOST_HALVINGS = 120
"""Halvings tried at most: each search ends long before."""
USUAL_DOUBLINGS = 8
"""Doublings tried whatever they bring: most guesses are off by less."""
HELPS = 0.75
"""What a doubling must leave at most of the excess from then on: tables of 128 bits keep no δ below, however wide."""
CLOSED_FORM = "least noise (closed form)"
Points = Sequence[tuple[float, float]]
Build = Callable[[float], IntegerMechanism]


@dataclass(frozen=True, slots=True)
class Calibrated:
    """A family at one budget: its noise, or why there is none."""

    family: str
    mechanism: IntegerMechanism | None
    reason: str = ""


def families(budget: Budget, *, sensitivity: int = 1) -> list[Calibrated]:
    """Every family of integer noise, as small as the budget allows, for one answer that changes by ``sensitivity``.

    All points of the budget hold for the integer table that is sampled, rounding included, at every shift up to the
    sensitivity. Sensitivity 1 adds the closed-form optimum, which no integer noise beats (theory §4.1).
    Neighbours: whatever the sensitivity speaks of. Raises ``InputError`` unless it is a whole number ≥ 1.

    >>> [found.family for found in families(Budget(epsilon=1, delta=0)) if found.mechanism]
    ['least noise (closed form)', 'discrete Laplace', 'discrete staircase']
    """
    sensitivity = whole("sensitivity", sensitivity, remedy="round the answers to fixed point first")
    points = Promise.of(budget).points
    closed = [_tried(CLOSED_FORM, lambda: Tabulated(optimal_table(points)))] if sensitivity == 1 else []
    pure = min(delta for _, delta in points) == 0
    found = [_least(family, points, sensitivity) for family in offered() if not (pure and family.bounded)]
    missing = [Calibrated(family.name, None, "needs delta > 0") for family in offered() if pure and family.bounded]
    return [*closed, *found, *missing]


def least_size(build: Build, points: Points, guess: float) -> IntegerMechanism:
    """The noise ``build(size)`` of the least size that keeps every (ε, δ): larger sizes must keep more.

    Searched from ``guess`` by doubling, then bisected to ``SIZE_WITHIN``; the end that was shown to keep the points is
    returned. Sizes outside what ``build`` accepts raise its ``InputError``; ``BudgetRefused`` where no size will do.
    """
    high = _first_kept(build, points, guess)
    low, best = high / 2, build(high)
    for _ in range(MOST_HALVINGS):
        smaller = _kept(build, points, low)
        if smaller is None:
            break
        low, high, best = low / 2, low, smaller
    while high > low * (1 + SIZE_WITHIN):
        middle = math.sqrt(low * high)
        found = _kept(build, points, middle)
        low, high, best = (middle, high, best) if found is None else (low, middle, found)
    return best


def _first_kept(build: Build, points: Points, guess: float) -> float:
    """The first of guess, 2 guess, 4 guess, … that keeps the points; ``InputError`` of ``build`` ends it."""
    size, before = guess, math.inf
    for doublings in count():
        noise = build(size)
        left = excess(noise.table.atoms(noise.sensitivity), points)
        if left <= 0:
            break
        if doublings >= USUAL_DOUBLINGS and not left <= HELPS * before:
            raise BudgetRefused(f"no size of this noise keeps {list(points)}; raise epsilon or delta")
        size, before = 2 * size, left
    return size


def _kept(build: Build, points: Points, size: float) -> IntegerMechanism | None:
    """The noise of this size if it keeps the points; sizes too small to build do not."""
    try:
        noise = build(size)
    except InputError:
        return None
    return noise if keeps_all(noise, points) else None


def keeps_all(noise: IntegerMechanism, points: Points) -> bool:
    """Whether the table that is sampled keeps every point, rounding included."""
    return keeps(noise.table.atoms(noise.sensitivity), points)


def _tried(name: str, search: Callable[[], IntegerMechanism]) -> Calibrated:
    try:
        return Calibrated(name, search())
    except (InputError, BudgetRefused) as error:
        return Calibrated(name, None, str(error))


def _least(family: Family, points: Points, sensitivity: int) -> Calibrated:
    if isinstance(family, Shaped):
        return _tried(family.name, lambda: _shaped(family, points, sensitivity))
    return _tried(family.name, lambda: _sized(family, points, sensitivity))


def _sized(family: Family, points: Points, sensitivity: int) -> IntegerMechanism:
    """Searched from the point that asks for most by itself; a total variation is about its ε."""
    need = Need(sensitivity, (1,), min(delta for _, delta in points))
    guess = max(family.guess(epsilon or delta, need) for epsilon, delta in points)
    return least_size(lambda size: family.noise(size, need), points, guess)


def _shaped(family: Shaped, points: Points, sensitivity: int) -> IntegerMechanism:
    """Shape and scale for the least E|X| in floats; the scale then grows until the table keeps the points."""
    shape, found = tuned(Question(tuple(points), 1, sensitivity, Cost.of("absolute")), family)
    law = family.at(shape)

    def build(scale: float) -> IntegerMechanism:
        return Tabulated(NoiseTable.from_probabilities(law.listed(scale, LISTED_NATS)), sensitivity)

    size, further = found.size, SIZE_WITHIN
    while not keeps_all(build(size), points):
        size, further = size * (1 + further), 2 * further
    return build(size)
