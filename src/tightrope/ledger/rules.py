"""What an entry does to the state of its dataset: one function, for whoever charges and for whoever checks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any

from tightrope.certificates.budget import Budget
from tightrope.errors import BudgetRefused
from tightrope.ledger.limits import TOTAL, Limit
from tightrope.ledger.state import Shares, State, costs_of
from tightrope.ledger.storage.entry import CHARGED, DATASET, RESERVED

ADAPTIVE = "basic composition"
"""Blocks chosen after seeing earlier answers: their shares add up (theory §2, F5)."""
TOGETHER = "exact composition"
"""Releases declared together, before the first: their losses are composed exactly (theory §2, F1)."""


def after(state: State, limits: Sequence[Limit], kind: str, key: str | None, said: Mapping[str, Any]) -> State:
    """The state after an entry whose body says this; raises ``BudgetRefused`` where a limit has not enough left."""
    if kind == DATASET:
        return State()
    if kind not in (CHARGED, RESERVED):
        return state
    slots = {limit.name: limit.slot(said["time"]) for limit in limits}
    if said.get("series") is not None:
        if said["series"] not in state.series:
            raise BudgetRefused(f"the series {said['series']!r} was never reserved; nothing was spent")
        return state.dated(said["series"], slots)
    costs = _costs(tuple(limits), _kept(said), said["audience"])
    if kind == CHARGED:
        return state.charged(costs, slots)
    return state.reserved(str(key), said["times"], costs, slots)


def taken(state: State, limits: Sequence[Limit], said: Mapping[str, Any]) -> Fraction:
    """What a charged release took of the whole budget: a date of a series its part."""
    if said["series"] is not None:
        running = state.series[said["series"]]
        return running.costs[TOTAL] / running.times
    return _costs(tuple(limits), _kept(said), said["audience"])[TOTAL]


def _kept(said: Mapping[str, Any]) -> tuple[Any, ...]:
    return said["kept"]["delta"], tuple(map(tuple, said["kept"]["points"]))


@lru_cache(maxsize=256)
def _costs(limits: tuple[Limit, ...], kept: tuple[Any, ...], audience: str | None) -> Shares:
    delta, points = kept
    return costs_of(limits, Budget(delta=delta, points=points), audience)


def rule(said: Mapping[str, Any]) -> str:
    """By which rule a release adds to the others of its block."""
    return ADAPTIVE if said.get("series") is None else TOGETHER
