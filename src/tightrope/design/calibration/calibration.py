"""The least noise of each family under one budget, for one answer: bisected, and ending on the private side."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from tightrope.certificates.budget import Budget
from tightrope.design.composed import exponential_power
from tightrope.design.composed.composed_question import Question
from tightrope.design.families import LISTED_NATS
from tightrope.design.program.noise_cost import Cost
from tightrope.design.program.noise_request import Promise
from tightrope.errors import BudgetRefused, InputError
from tightrope.mechanisms.integer.discrete_gaussian import tabulated_gaussian
from tightrope.mechanisms.integer.discrete_laplace import discrete_laplace
from tightrope.mechanisms.integer.discrete_staircase import discrete_staircase
from tightrope.mechanisms.integer.discrete_truncated_laplace import discrete_truncated_laplace
from tightrope.mechanisms.integer.integer_mechanism import IntegerMechanism, Tabulated
from tightrope.mechanisms.tables.integer_optimum import keeps, optimal_table
from tightrope.mechanisms.tables.table import NoiseTable
from tightrope.numerics.checks import whole

SIZE_WITHIN = 1e-6
"""How near, relatively, the least size is approached."""
MOST_DOUBLINGS = 120
"""Doublings and halvings tried at most: each search ends long before, or never."""
BOUNDED = ("discrete truncated Laplace", "exponential power", "discrete Gaussian")
"""Families whose noise ends somewhere: there the loss is infinite, so they need a δ."""
ORDER = (
    "least noise (closed form)",
    "discrete truncated Laplace",
    "discrete Laplace",
    "discrete staircase",
    "exponential power",
    "discrete Gaussian",
)
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
    searches = _searches(points, sensitivity)
    return [_tried(name, searches[name]) for name in ORDER if name in searches] + [
        Calibrated(name, None, "needs delta > 0") for name in BOUNDED if name not in searches
    ]


def least_size(build: Build, points: Points, guess: float) -> IntegerMechanism:
    """The noise ``build(size)`` of the least size that keeps every (ε, δ): larger sizes must keep more.

    Searched from ``guess`` by doubling, then bisected to ``SIZE_WITHIN``; the end that was shown to keep the points is
    returned. Sizes outside what ``build`` accepts raise its ``InputError``; ``BudgetRefused`` where no size will do.
    """
    high = _first_kept(build, points, guess)
    low, best = high / 2, build(high)
    for _ in range(MOST_DOUBLINGS):
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
    for doublings in range(MOST_DOUBLINGS):
        size = guess * 2.0**doublings
        if keeps_all(build(size), points):
            return size
    raise BudgetRefused(f"no size of this noise keeps {list(points)}; raise epsilon or delta")


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


def _searches(points: Points, sensitivity: int) -> dict[str, Callable[[], IntegerMechanism]]:
    """How to find the least noise of each family; sizes are in units of the answer or of 1/ε."""
    epsilon, delta = _main(points)
    own: dict[str, tuple[Build, float]] = {
        "discrete Laplace": (lambda size: discrete_laplace(scale=size, sensitivity=sensitivity), sensitivity / epsilon),
        "discrete staircase": (lambda size: discrete_staircase(epsilon=1 / size, sensitivity=sensitivity), 1 / epsilon),
    }
    if delta > 0:
        own["discrete truncated Laplace"] = (
            lambda size: discrete_truncated_laplace(epsilon=1 / size, delta=delta, sensitivity=sensitivity),
            1 / epsilon,
        )
        own["discrete Gaussian"] = (
            lambda size: tabulated_gaussian(scale=size, sensitivity=sensitivity),
            max(0.2, sensitivity * math.sqrt(2 * math.log(1.25 / delta)) / epsilon / 2),
        )
    searches = {name: partial(least_size, build, points, guess) for name, (build, guess) in own.items()}
    if delta > 0:
        searches[exponential_power.NAME] = partial(_between, points, sensitivity)
    return searches | (
        {"least noise (closed form)": lambda: Tabulated(optimal_table(points))} if sensitivity == 1 else {}
    )


def _between(points: Points, sensitivity: int) -> IntegerMechanism:
    """The law e^{−(|x|/s)^q}, q and s for the least E|X| in floats; s then grows until the table keeps the points."""
    power, found = exponential_power.tuned(Question(tuple(points), 1, sensitivity, Cost.of("absolute")))

    def build(size: float) -> IntegerMechanism:
        half = exponential_power.power_weights(power, size, LISTED_NATS)
        return Tabulated(NoiseTable.from_probabilities(half), sensitivity)

    size, further = found.size, SIZE_WITHIN
    while not keeps_all(build(size), points):
        size, further = size * (1 + further), 2 * further
    return build(size)


def _main(points: Points) -> tuple[float, float]:
    """The point with the least δ, and among those the least ε: what searches start from."""
    delta, epsilon = min((delta, epsilon) for epsilon, delta in points if epsilon > 0)
    return epsilon, delta


def _tried(name: str, search: Callable[[], IntegerMechanism]) -> Calibrated:
    try:
        return Calibrated(name, search())
    except (InputError, BudgetRefused) as error:
        return Calibrated(name, None, str(error))
