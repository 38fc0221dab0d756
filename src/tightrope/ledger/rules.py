"""What an entry does to the state of its dataset: one function, for whoever charges and for whoever checks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any

from tightrope.certificates.budget import Budget
from tightrope.errors import BudgetRefused
from tightrope.ledger.limits import ADDED, MAIN_LIMIT, MOMENTS, Limit
from tightrope.ledger.state import Shares, State, costs_of
from tightrope.ledger.storage.entry import CHARGED, DATASET, RESERVED

ADAPTIVE = {"basic": "basic composition", MOMENTS: "moments"}
"""Blocks chosen after seeing earlier answers, by the rule of a limit: what they keep adds up (theory §2, F5), or log
moments of their noise (F3)."""
TOGETHER = "exact composition"
"""Releases declared together, before the first: their losses are composed exactly (theory §2, F1)."""
Moved = tuple[tuple[str, str | None], ...]


def after(state: State, limits: Sequence[Limit], kind: str, key: str | None, said: Mapping[str, Any]) -> State:
    """The state after an entry whose body says this; raises ``BudgetRefused`` where a limit has not enough left."""
    if kind == DATASET:
        return State()
    if kind not in (CHARGED, RESERVED):
        return state
    slots = {limit.name: limit.slot(said["time"]) for limit in limits}
    slots |= {ADDED + name: ADDED + slot for name, slot in slots.items()}
    if said.get("series") is not None:
        if said["series"] not in state.series:
            raise BudgetRefused(f"the series {said['series']!r} was never reserved; nothing was spent")
        return state.dated(said["series"], slots)
    costs = _taken(limits, said)
    if kind == CHARGED:
        return state.charged(costs, slots)
    return state.reserved(str(key), said["times"], costs, slots)


def taken(state: State, limits: Sequence[Limit], said: Mapping[str, Any]) -> Fraction:
    """What a charged release took of the whole budget: a date of a series its part."""
    if said["series"] is not None:
        running = state.series[said["series"]]
        return running.costs[MAIN_LIMIT] / running.times
    return _taken(limits, said)[MAIN_LIMIT]


def _taken(limits: Sequence[Limit], said: Mapping[str, Any]) -> Shares:
    """What a block takes of every limit; moments as the entry says they were charged."""
    moments = tuple(said.get("costs", {}).items())
    return _costs(tuple(limits), _kept(said), said["audience"], moments)


def _kept(said: Mapping[str, Any]) -> tuple[Any, ...]:
    return said["kept"]["delta"], tuple(map(tuple, said["kept"]["points"]))


@lru_cache(maxsize=256)
def _costs(limits: tuple[Limit, ...], kept: tuple[Any, ...], audience: str | None, moments: Moved) -> Shares:
    delta, points = kept
    charged = {name: None if share is None else Fraction(share) for name, share in moments}
    return costs_of(limits, Budget(delta=delta, points=points), audience, charged)
