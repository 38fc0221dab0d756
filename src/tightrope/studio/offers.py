"""What the page offers to choose from: kinds of questions with their fields, and the stops of its sliders."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from decimal import Decimal

from tightrope.studio.wishes import SAID, Promise, Said

NUMBER_KINDS = "integer", "number"
GROUPS = "text", "boolean", "integer", "date"
TYPES = "text", "integer", "number", "boolean", "date", "timestamp"
"""What a column of a CSV file can be declared as."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of question in plain words, and the fields that it takes besides groups and a weight."""

    kind: str
    words: str
    fields: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    """Kinds of columns that it can be asked of."""


KINDS = (
    Kind("count", "How many rows there are"),
    Kind("mean", "The average of a column", ("column", "between"), NUMBER_KINDS),
    Kind("sum", "The sum of a column", ("column", "between"), NUMBER_KINDS),
    Kind("quantile", "The median, or another quantile, of a column", ("column", "between", "q"), NUMBER_KINDS),
    Kind("histogram", "How the values of a column are spread", ("column", "between", "width"), NUMBER_KINDS),
    Kind("standard_deviation", "How far values lie from their average", ("column", "between"), NUMBER_KINDS),
)
LADDERS: dict[Said, tuple[str, ...]] = {
    "attack_success": tuple(f"0.{percent}" for percent in (51, 52, 53, 54, 55, 57, 60, 63, 66, 70, 75, 80, 85, 90, 95)),
    "total_variation": (
        "0.02", "0.04", "0.06", "0.08", "0.1", "0.14", "0.2", "0.26", "0.32", "0.4", "0.5", "0.6", "0.7", "0.8", "0.9",
    ),
    "epsilon": (
        "0.05", "0.1", "0.15", "0.2", "0.3", "0.4", "0.5", "0.7", "1", "1.4", "2", "2.5", "3", "4", "5", "7", "10",
    ),
}  # fmt: skip
"""The stops of each slider, the strictest first."""
DELTAS = tuple(f"1e-{digits}" for digits in (12, 10, 9, 8, 7, 6, 5, 4))


def around(promise: Promise) -> list[Promise]:
    """The stops of the slider on which a promise lies, at its δ: first it, then its neighbours, then those between.

    So the next move of a hand finds its answer, and wherever it jumps there is one that is a little stricter.
    """
    stops = sorted({promise.value, *map(Decimal, LADDERS[promise.said])})
    here = stops.index(promise.value)
    ordered = sorted(range(len(stops)), key=lambda place: (abs(place - here) > 1, _coarse(place), abs(place - here)))
    at = [Promise(said=promise.said, value=stops[place], delta=promise.delta) for place in ordered]
    return [promise, *(one for one in at if one != promise)]


def stricter(promise: Promise) -> list[Promise]:
    """The stops that keep a promise, at its δ and at smaller ones, the least strict first."""
    values = sorted({promise.value, *map(Decimal, LADDERS[promise.said])}, reverse=True)
    deltas = sorted({promise.delta, *map(Decimal, DELTAS)}, reverse=True)
    all_stops = (Promise(said=promise.said, value=v, delta=d) for v, d in itertools.product(values, deltas))
    return [stop for stop in all_stops if stop.keeps(promise)]


def ladders(own: Promise | None) -> dict[str, list[str]]:
    """Every slider's stops, with those of a plan's own promise among them."""
    values: dict[str, set[Decimal]] = {said: set(map(Decimal, LADDERS[said])) for said in SAID}
    values["delta"] = set(map(Decimal, DELTAS))
    if own is not None:
        values[own.said].add(own.value)
        values["delta"].add(own.delta)
    return {name: [str(value) for value in sorted(stops)] for name, stops in values.items()}


def _coarse(place: int) -> int:
    """Every eighth stop first, then every fourth, every other, all."""
    return next(level for level, step in enumerate((8, 4, 2, 1)) if place % step == 0)
