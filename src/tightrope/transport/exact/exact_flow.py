"""How much mass can stay on allowed pairs: a largest flow in whole numbers, from a float plan to the last unit."""

from __future__ import annotations

from collections import deque
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tightrope.transport.exact.exact_laws import Law
from tightrope.transport.exact.exact_plan import Entries, ExactPlan, float_entries, missing, pour, shrink

Allowed = NDArray[np.bool_]
Way = list[tuple[int, int]]
"""Pairs (x, y), x₀ y₀, x₁ y₀, x₁ y₁, …: mass is put on every second one and taken from those between."""


def mass_that_stays_out(allowed: Allowed, source: Law, target: Law, plan: Any) -> Fraction:
    """The least mass outside ``allowed`` of a coupling of two laws, exactly; ``plan`` is a guess that saves time.

    Ford and Fulkerson's augmenting ways, shortest first (Edmonds and Karp 1972): where no way is left, the flow is a
    largest one, and by Strassen what it leaves behind is what no coupling can place.

    >>> from scipy.sparse import csr_array
    >>> half, none = Law.of("law", [0.5, 0.5]), csr_array((2, 2))
    >>> mass_that_stays_out(np.eye(2, dtype=bool), half, Law.of("law", [0.25, 0.75]), none)
    Fraction(1, 4)
    """
    _, left, _ = _largest(allowed, source, target, plan)
    return Fraction(sum(left), source.total * target.total)


def plan_within(allowed: Allowed, source: Law, target: Law, plan: Any) -> ExactPlan | None:
    """The float ``plan`` as an exact coupling of two laws on ``allowed`` pairs; None where there is no such coupling.

    ``stray`` is the mass on pairs that the plan does not use.

    >>> from scipy.sparse import csr_array
    >>> half = Law.of("law", [0.5, 0.5])
    >>> plan_within(np.ones((2, 2), dtype=bool), half, half, csr_array(np.eye(2) / 2)).stray
    Fraction(0, 1)
    """
    entries, left, _ = _largest(allowed, source, target, plan)
    if any(left):
        return None
    total = source.total * target.total
    used = {pair for pair, weight in float_entries(plan, total).items() if weight}
    stray = sum(weight for pair, weight in entries.items() if pair not in used)
    return ExactPlan({pair: weight for pair, weight in entries.items() if weight}, total, Fraction(stray, total))


def _largest(allowed: Allowed, source: Law, target: Law, plan: Any) -> tuple[Entries, list[int], list[int]]:
    """A largest flow on allowed pairs, and what rows and columns have left."""
    total = source.total * target.total
    rows = [mass * target.total for mass in source.masses]
    columns = [mass * source.total for mass in target.masses]
    entries = {pair: weight for pair, weight in float_entries(plan, total).items() if weight and allowed[pair]}
    for axis, bounds in ((0, rows), (1, columns)):
        shrink(entries, axis, bounds)
    rows, columns = missing(entries, 0, rows), missing(entries, 1, columns)
    for pair in list(entries):
        pour(entries, pair, rows, columns)
    goals = [np.flatnonzero(row).tolist() for row in allowed]
    while way := _way(goals, entries, rows, columns):
        _send(way, entries, rows, columns)
    return entries, rows, columns


def _way(goals: list[list[int]], entries: Entries, rows: list[int], columns: list[int]) -> Way:
    """A shortest way from a row that has mass left to a column that lacks some; empty where there is none."""
    users = _users(entries)
    came: dict[int, tuple[int, int | None]] = {}  # column -> (row before it, column before that)
    waiting: deque[tuple[int, int | None]] = deque((x, None) for x, left in enumerate(rows) if left)
    seen = {x for x, _ in waiting}
    while waiting:
        x, before = waiting.popleft()
        for y in goals[x]:
            if y in came:
                continue
            came[y] = (x, before)
            if columns[y]:
                return _traced(came, y)
            fresh = users.get(y, set()) - seen
            seen |= fresh
            waiting.extend((other, y) for other in sorted(fresh))
    return []


def _users(entries: Entries) -> dict[int, set[int]]:
    """For each column the rows that send mass to it."""
    out: dict[int, set[int]] = {}
    for (x, y), weight in entries.items():
        if weight:
            out.setdefault(y, set()).add(x)
    return out


def _traced(came: dict[int, tuple[int, int | None]], end: int) -> Way:
    way: Way = []
    last: int | None = end
    while last is not None:
        x, before = came[last]
        way += [(x, last)] if before is None else [(x, last), (x, before)]
        last = before
    return way[::-1]


def _send(way: Way, entries: Entries, rows: list[int], columns: list[int]) -> None:
    """As much along the way as its ends and the pairs that give some allow."""
    (first, _), (_, last) = way[0], way[-1]
    amount = min(rows[first], columns[last], *(entries[pair] for pair in way[1::2]))
    for number, pair in enumerate(way):
        entries[pair] = entries.get(pair, 0) + (-amount if number % 2 else amount)
    rows[first] -= amount
    columns[last] -= amount
