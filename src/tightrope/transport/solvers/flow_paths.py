"""From a flow on edges to who goes where: follow the mass downstream, in integers.

An optimal flow has no cycle, since every edge has a length; nodes in the order of their height are an order in which
everything that reaches a node is known before it leaves.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np

from tightrope.errors import PrecisionError
from tightrope.numerics.arrays import Floats, Integers
from tightrope.transport.libraries.ortools_flows import Arcs

Parcel = tuple[int, int, float]
"""Where it comes from, how much it is, how far it came."""


@dataclass(frozen=True, slots=True, eq=False)
class Routes:
    """``masses``[k] moves from ``starts``[k] to ``ends``[k], along ways of ``lengths``[k]."""

    starts: Integers
    ends: Integers
    masses: Floats
    lengths: Floats


def traced(arcs: Arcs, flows: Integers, height: Integers, laws: tuple[Integers, Integers], lengths: Floats) -> Routes:
    """The parcels that a flow carries from the first law to the second; what need not move stays."""
    source, target = laws
    stay = np.minimum(source, target)
    out = _departures(arcs, flows)
    waiting: dict[int, deque[Parcel]] = {
        int(s): deque([(int(s), int(source[s] - target[s]), 0.0)]) for s in np.flatnonzero(source > target)
    }
    arrived: list[tuple[int, int, int, float]] = []
    for node in np.argsort(height, kind="stable").tolist():
        held = waiting.pop(node, deque())
        for arc, amount in out.get(node, ()):
            head = int(arcs.heads[arc])
            _forward(held, amount, float(lengths[arc]), waiting.setdefault(head, deque()))
        arrived += [(origin, node, mass, way) for origin, mass, way in held]
    _require_arrivals(arrived, target - stay)
    return _routes(arrived, stay)


def _departures(arcs: Arcs, flows: Integers) -> dict[int, list[tuple[int, int]]]:
    """For every node the arcs on which something leaves it, and how much."""
    out: dict[int, list[tuple[int, int]]] = {}
    for arc in np.flatnonzero(flows > 0).tolist():
        out.setdefault(int(arcs.tails[arc]), []).append((arc, int(flows[arc])))
    return out


def _forward(held: deque[Parcel], amount: int, length: float, onward: deque[Parcel]) -> None:
    """Send ``amount`` on, first come first served; a parcel is split where it is too large."""
    while amount and held:
        origin, mass, way = held.popleft()
        sent = min(mass, amount)
        onward.append((origin, sent, way + length))
        amount -= sent
        if sent < mass:
            held.appendleft((origin, mass - sent, way))


def _require_arrivals(arrived: list[tuple[int, int, int, float]], wanted: Integers) -> None:
    """Every node got what it lacked, in integers."""
    got = np.zeros_like(wanted)
    for _, end, mass, _ in arrived:
        got[end] += mass
    if not (got == wanted).all():
        raise PrecisionError(
            "the flow that the solver returned does not end in the target law; please report this graph"
        )


def _routes(arrived: list[tuple[int, int, int, float]], stay: Integers) -> Routes:
    starts, ends, masses, ways = (list(part) for part in zip(*arrived, strict=True)) if arrived else ([], [], [], [])
    still = np.flatnonzero(stay)
    return Routes(
        np.concatenate([still, np.array(starts, dtype=np.int64)]),
        np.concatenate([still, np.array(ends, dtype=np.int64)]),
        np.concatenate([stay[still], np.array(masses, dtype=np.int64)]).astype(np.float64),
        np.concatenate([np.zeros(len(still)), np.array(ways, dtype=np.float64)]),
    )
