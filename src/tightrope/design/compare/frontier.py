"""The frontier between privacy and error: for each promise the least error of any noise, and noise that has it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tightrope.certificates.budget import Budget
from tightrope.certificates.noise import NoiseCertificate
from tightrope.design.least_noise import least_noise
from tightrope.errors import InputError
from tightrope.numerics.checks import filled, whole

MOST_PROMISES = 10_000
"""Promises of one frontier."""


@dataclass(frozen=True, slots=True)
class Point:
    """One promise: what was asked, what the noise realises, its expected cost, and the proven limit on that of any.

    ``epsilon`` is the ε asked for at ``delta``, 0 where none was.

    ``relative_error`` is the cost per person where the number of people was given: for a count of all of them and cost
    "absolute", the relative error.
    """

    epsilon: float
    delta: float
    asked_total_variation: float | None
    people: int | None
    total_variation: float
    cost: float
    limit: float

    @property
    def relative_error(self) -> float | None:
        """Cost over people."""
        return None if self.people is None else self.cost / self.people

    def to_data(self) -> dict[str, Any]:
        """Plain data, one row of a table."""
        return {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "asked_total_variation": self.asked_total_variation,
            "total_variation": self.total_variation,
            "people": self.people,
            "cost": self.cost,
            "limit": self.limit,
            "relative_error": self.relative_error,
        }


@dataclass(frozen=True, slots=True)
class Frontier:
    """All points, in the order of the budgets, then of the people; ``cost_name`` says what ``cost`` is."""

    points: tuple[Point, ...]
    cost_name: str
    sensitivity: int
    releases: int

    def to_data(self) -> list[dict[str, Any]]:
        """A list of rows: ``pandas.DataFrame(found.to_data())``."""
        return [point.to_data() for point in self.points]


def frontier(
    budgets: Sequence[Budget],
    *,
    people: int | Sequence[int] | None = None,
    sensitivity: int = 1,
    cost: str | Callable[[float], float] = "absolute",
    releases: int = 1,
) -> Frontier:
    """The least noise and the proven limit for every budget, with every number of people.

    ``cost`` of a point is an upper end, computed from a table that can be sampled; ``limit`` a lower bound on that of
    every integer noise (theory §4). Neighbours: whatever the sensitivity speaks of. ``report.plots.frontier`` draws it.
    Raises ``InputError`` for nonsense and for more than 10 000 combinations.

    >>> found = frontier([Budget(epsilon=epsilon, delta=1e-6) for epsilon in (0.5, 1, 2)], people=1000)
    >>> [round(point.cost, 3) for point in found.points], all(p.limit <= p.cost for p in found.points)
    ([1.919, 0.851, 0.276], True)
    """
    asked, crowds = list(budgets), _crowds(people)
    filled("budgets", asked, "say [Budget(epsilon=1, delta=1e-6)]")
    if not len(asked) * len(crowds) <= MOST_PROMISES:
        count = len(asked) * len(crowds)
        raise InputError("budgets", count, f"at most {MOST_PROMISES} combinations", "draw fewer lines at once")
    found: list[Point] = []
    for budget in asked:
        proven = least_noise(budget, sensitivity=sensitivity, cost=cost, releases=releases).certificate
        found += [_point(budget, crowd, proven) for crowd in crowds]
    name = cost if isinstance(cost, str) else getattr(cost, "__name__", "cost")
    return Frontier(tuple(found), name, sensitivity, releases)


def _crowds(people: int | Sequence[int] | None) -> list[int | None]:
    """A list of one for a number or None."""
    if people is None:
        return [None]
    asked = list(people) if isinstance(people, Sequence) else [people]
    filled("people", asked, "give at least one number")
    return [whole("people", number) for number in asked]


def _point(budget: Budget, people: int | None, certificate: NoiseCertificate) -> Point:
    epsilon, eta = budget.epsilon, budget.total_variation
    return Point(
        0.0 if epsilon is None else float(epsilon),
        float(budget.delta),
        None if eta is None else float(eta),
        people,
        certificate.guarantee.total_variation,
        certificate.upper,
        certificate.lower,
    )
