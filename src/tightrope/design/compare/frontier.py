"""The frontier between privacy and error: for each promise the least error of any noise, and noise that has it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tightrope.certificates.noise import NoiseCertificate
from tightrope.design.least_noise import least_noise
from tightrope.errors import InputError
from tightrope.numerics.checks import Real, filled, whole

Promises = Real | Sequence[Real]
MOST_PROMISES = 10_000
"""Promises of one frontier."""


@dataclass(frozen=True, slots=True)
class Point:
    """One promise: what was asked, what the noise realises, its expected cost, and the proven limit on that of any.

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
    """All points, in the order of the lists they were asked by; ``cost_name`` says what ``cost`` is."""

    points: tuple[Point, ...]
    cost_name: str
    sensitivity: int
    releases: int

    def to_data(self) -> list[dict[str, Any]]:
        """A list of rows: ``pandas.DataFrame(found.to_data())``."""
        return [point.to_data() for point in self.points]


def frontier(
    *,
    epsilon: Promises,
    delta: Promises,
    total_variation: Promises | None = None,
    people: int | Sequence[int] | None = None,
    sensitivity: int = 1,
    cost: str | Callable[[float], float] = "absolute",
    releases: int = 1,
) -> Frontier:
    """The least noise and the proven limit for every combination of the promises given; lists vary, numbers stay.

    ``cost`` of a point is an upper end, computed from a table that can be sampled; ``limit`` a lower bound on that of
    every integer noise (theory §4). Neighbours: whatever the sensitivity speaks of. ``report.plots.frontier`` draws it.
    Raises ``InputError`` for nonsense and for more than 10 000 combinations.

    >>> found = frontier(epsilon=[0.5, 1, 2], delta=1e-6, people=1000)
    >>> [round(point.cost, 3) for point in found.points], all(p.limit <= p.cost for p in found.points)
    ([1.919, 0.851, 0.276], True)
    """
    lists = (
        _listed("epsilon", epsilon),
        _listed("delta", delta),
        _listed("total_variation", total_variation),
    )
    crowds = [None if n is None else whole("people", n) for n in _listed("people", people)]
    found = tuple(_points(lists, crowds, {"sensitivity": sensitivity, "cost": cost, "releases": releases}))
    name = cost if isinstance(cost, str) else getattr(cost, "__name__", "cost")
    return Frontier(found, name, sensitivity, releases)


def _listed(name: str, value: Promises | None) -> list[Any]:
    """A list of one for a number or None."""
    if np.ndim(value) == 0:  # type: ignore[arg-type]
        return [value]
    items = list(np.asarray(value).tolist() if isinstance(value, np.ndarray) else value)  # type: ignore[arg-type]
    filled(name, items, "give at least one number")
    return items


def _points(
    lists: tuple[list[Any], list[Any], list[Any]], crowds: list[int | None], how: dict[str, Any]
) -> Iterator[Point]:
    count = len(lists[0]) * len(lists[1]) * len(lists[2]) * len(crowds)
    if not count <= MOST_PROMISES:
        raise InputError("epsilon", count, f"at most {MOST_PROMISES} combinations", "draw fewer lines at once")
    for epsilon, delta, eta in itertools.product(*lists):
        certificate = least_noise(epsilon=epsilon, delta=delta, total_variation=eta, **how).certificate
        yield from (_point((epsilon, delta, eta), people, certificate) for people in crowds)


def _point(asked: tuple[Any, Any, Any], people: int | None, certificate: NoiseCertificate) -> Point:
    epsilon, delta, eta = asked
    return Point(
        float(epsilon),
        float(delta),
        None if eta is None else float(eta),
        people,
        certificate.guarantee.total_variation,
        certificate.upper,
        certificate.lower,
    )
