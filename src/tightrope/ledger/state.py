"""Spent and reserved shares of each limit, as exact rationals: pure arithmetic, replayed by every check."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, Self

from tightrope.accounting.privacy_loss import PrivacyLoss
from tightrope.documents.budget import Budget
from tightrope.errors import InputError, InsufficientBudgetError
from tightrope.ledger.chain import CHARGED, DATASET, RESERVED
from tightrope.ledger.limits import ADDED, MAIN_LIMIT, MOMENTS, Limit
from tightrope.ledger.moments import Moments
from tightrope.ledger.noise_record import NoiseRecord

# Exact shares as people read them.

SHOWN_DIGITS = 30
LONGEST_SHOWN = 12
"""Letters of a share in advice."""


def share_text(share: Fraction) -> str:
    """Return a share as a short decimal if it has one, else as a fraction.

    >>> share_text(Fraction(1, 8)), share_text(Fraction(1, 12)), share_text(Fraction(0)), share_text(Fraction(1))
    ('0.125', '1/12', '0', '1')
    """
    rest, twos, fives = share.denominator, 0, 0
    while rest % 2 == 0:
        rest, twos = rest // 2, twos + 1
    while rest % 5 == 0:
        rest, fives = rest // 5, fives + 1
    digits = max(twos, fives)
    if rest != 1 or digits > SHOWN_DIGITS:
        return str(share)
    whole = str(abs(share.numerator) * 10**digits // share.denominator).rjust(digits + 1, "0")
    text = f"{whole[:-digits]}.{whole[-digits:]}" if digits else whole
    return f"-{text}" if share < 0 else text


def rounded_down(share: Fraction) -> str:
    """Return a share exactly if it is short, else its first digits.

    >>> rounded_down(Fraction(3, 4)), rounded_down(Fraction(2, 3)), rounded_down(Fraction(10**12 - 1, 3 * 10**12))
    ('0.75', '2/3', '0.333333')
    """
    text = share_text(share)
    return text if len(text) <= LONGEST_SHOWN else share_text(Fraction(math.floor(share * 10**6), 10**6))


Shares = Mapping[str, Fraction]
"""By limit."""


@dataclass(frozen=True, slots=True)
class Balance:
    """Shares of one limit."""

    spent: Fraction = Fraction(0)
    reserved: Fraction = Fraction(0)

    @property
    def fraction_left(self) -> Fraction:
        """The share that is neither spent nor reserved."""
        return 1 - self.spent - self.reserved


@dataclass(frozen=True, slots=True)
class SeriesProgress:
    """A series under way: ``done`` of ``times`` dates; in which periods each limit has paid for it, and what it costs.

    ``costs`` are by limit, for all dates together. A limit that renews pays all of it once in each period.
    """

    times: int
    done: int
    costs: Shares
    paid: tuple[str, ...] = ()

    def to_data(self) -> list[Any]:
        return [self.times, self.done, {name: str(cost) for name, cost in self.costs.items()}, list(self.paid)]

    @classmethod
    def from_data(cls, data: list[Any]) -> Self:
        times, done, costs, paid = data
        return cls(times, done, {name: Fraction(cost) for name, cost in costs.items()}, tuple(paid))


@dataclass(frozen=True, slots=True)
class State:
    """All balances of a dataset by slot, its series by key, and how many releases were charged."""

    balances: Mapping[str, Balance] = field(default_factory=dict)
    series: Mapping[str, SeriesProgress] = field(default_factory=dict)
    releases: int = 0

    def balance_of(self, slot: str) -> Balance:
        """The balance of a slot; one that was never used is full."""
        return self.balances.get(slot, Balance())

    def after_charge(self, costs: Shares, slots: Mapping[str, str]) -> State:
        """Return the state after a charge; raises ``InsufficientBudgetError`` if a limit has not enough left."""
        self._require_room(costs, slots)
        moves = [(slots[name], cost, Fraction(0)) for name, cost in costs.items()]
        return State(self._with_balances_moved(moves), self.series, self.releases + 1)

    def after_reservation(self, key: str, times: int, costs: Shares, slots: Mapping[str, str]) -> State:
        """After a series was declared: limits for good set its cost aside, those that renew pay it now."""
        self._require_room(costs, slots)
        renews = {name: slots[name] != name for name in costs}
        moves = [(slots[n], *((c, Fraction(0)) if renews[n] else (Fraction(0), c))) for n, c in costs.items()]
        running = SeriesProgress(times, 0, dict(costs), tuple(sorted(slots[name] for name in costs if renews[name])))
        return State(self._with_balances_moved(moves), {**self.series, key: running}, self.releases)

    def after_series_date(self, key: str, slots: Mapping[str, str]) -> State:
        """After the next date of a series: its part is spent and no longer reserved."""
        running = self.series[key]
        if running.done >= running.times:
            raise InsufficientBudgetError(
                f"all {running.times} releases of the series {key!r} are done; nothing was spent; declare another "
                f"series, or plan with the remaining budget"
            )
        new = {n: c for n, c in running.costs.items() if slots[n] != n and slots[n] not in running.paid}
        self._require_room(new, slots, f"the series {key!r} is charged in full again in a new period; ")
        part = {n: c / running.times for n, c in running.costs.items() if slots[n] == n}
        moves = [*((slots[n], c, Fraction(0)) for n, c in new.items()), *((n, c, -c) for n, c in part.items())]
        paid = tuple(sorted({*running.paid, *(slots[name] for name in new)}))
        after = replace(running, done=running.done + 1, paid=paid)
        return State(self._with_balances_moved(moves), {**self.series, key: after}, self.releases + 1)

    def _with_balances_moved(self, moves: Iterable[tuple[str, Fraction, Fraction]]) -> dict[str, Balance]:
        """Return all balances after adding to the spent and reserved shares of each slot."""
        moved = dict(self.balances)
        for slot, spent, reserved in moves:
            before = moved.get(slot, Balance())
            moved[slot] = Balance(before.spent + spent, before.reserved + reserved)
        return moved

    def _require_room(self, costs: Shares, slots: Mapping[str, str], why: str = "") -> None:
        for name, cost in costs.items():
            if name.startswith(ADDED):
                continue
            left = self.balance_of(slots[name]).fraction_left
            if cost > left:
                budget = "privacy budget" if name == MAIN_LIMIT else f"limit {slots[name]!r}"
                needed = "the whole" if cost == 1 else f"a fraction of {share_text(cost)} of the"
                advice = "earlier answers are stored in the ledger"
                if left > 0:
                    advice = f"plan with {rounded_down(left / cost)} of this fraction or less"
                raise InsufficientBudgetError(
                    f"{why}this release needs {needed} {budget} and {share_text(left)} is left; nothing was spent; "
                    f"{advice}"
                )

    def to_data(self) -> dict[str, Any]:
        """Return the state as data for JSON."""
        balances = {slot: [str(b.spent), str(b.reserved)] for slot, b in self.balances.items()}
        series = {key: running.to_data() for key, running in self.series.items()}
        return {"balances": balances, "series": series, "releases": self.releases}

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Self:
        """The state that ``to_data`` wrote."""
        balances = {slot: Balance(Fraction(s), Fraction(r)) for slot, (s, r) in data["balances"].items()}
        series = {key: SeriesProgress.from_data(running) for key, running in data["series"].items()}
        return cls(balances, series, data["releases"])


def left_by_addition(state: State, slot: str) -> str:
    """Return the remainder under a limit by moments if the guarantees had been added up instead."""
    left = state.balance_of(ADDED + slot).fraction_left
    return share_text(left) if left >= 0 else "nothing"


def costs_of(
    limits: Iterable[Limit], kept: Budget, audience: str | None, moments: Mapping[str, Fraction | None]
) -> dict[str, Fraction]:
    """Return the cost of a release for each limit: from its guarantee, or its ``moments`` as they were charged.

    A limit by moments is listed with its cost under the basic rule. Raises ``InsufficientBudgetError`` if
    a limit can never cover the release.
    """
    costs: dict[str, Fraction] = {}
    for limit in (limit for limit in limits if limit.applies_to(audience)):
        basic = limit.budget_share_for(kept)
        if limit.moments is None:
            costs[limit.name] = _cost_or_refuse(limit, basic, kept)
        else:
            costs[limit.name] = _cost_or_refuse(limit, moments.get(limit.name), kept)
            costs[ADDED + limit.name] = Fraction(1) if basic is None else basic
    return costs


def _cost_or_refuse(limit: Limit, cost: Fraction | None, kept: Budget) -> Fraction:
    if cost is not None:
        return cost
    if limit.moments is None:
        remedy = f"no fraction of it covers {kept}; nothing was spent; plan with a budget with the same points"
    else:
        remedy = "its log moments do not cover this noise; nothing was spent; plan with a fraction of the whole budget"
    raise InsufficientBudgetError(f"the limit {limit.name!r} is {limit.budget}, and {remedy}")


# The effect of an entry on the state of its dataset: one function for both charging and checking.

ADAPTIVE = {"basic": "basic composition", MOMENTS: "moments"}
"""Blocks chosen after seeing earlier answers, by the rule of a limit: what they keep adds up (theory §2, F5), or log
moments of their noise (F3)."""
TOGETHER = "exact composition"
"""Releases declared together, before the first: their losses are composed exactly (theory §2, F1)."""
Moved = tuple[tuple[str, str | None], ...]


def state_after_entry(
    state: State, limits: Sequence[Limit], kind: str, key: str | None, said: Mapping[str, Any]
) -> State:
    """The state after an entry whose body says this.

    Raises ``InsufficientBudgetError`` where a limit has not enough left.
    """
    if kind == DATASET:
        return State()
    if kind not in (CHARGED, RESERVED):
        return state
    slots = {limit.name: limit.slot_at(said["time"]) for limit in limits}
    slots |= {ADDED + name: ADDED + slot for name, slot in slots.items()}
    if said.get("series") is not None:
        if said["series"] not in state.series:
            raise InsufficientBudgetError(f"the series {said['series']!r} is not reserved; nothing was spent")
        return state.after_series_date(said["series"], slots)
    costs = _shares_of_limits(limits, said)
    if kind == CHARGED:
        return state.after_charge(costs, slots)
    return state.after_reservation(str(key), said["times"], costs, slots)


def fraction_of_charge(state: State, limits: Sequence[Limit], said: Mapping[str, Any]) -> Fraction:
    """Return the part of the whole budget that a charged release took: for a date of a series, its part."""
    if said["series"] is not None:
        running = state.series[said["series"]]
        return running.costs[MAIN_LIMIT] / running.times
    return _shares_of_limits(limits, said)[MAIN_LIMIT]


def _shares_of_limits(limits: Sequence[Limit], said: Mapping[str, Any]) -> Shares:
    """Return the cost of a block for each limit; moments as charged in the entry."""
    moments = tuple(said.get("costs", {}).items())
    return _costs_by_limit(
        tuple(limits), (said["kept"]["delta"], tuple(map(tuple, said["kept"]["points"]))), said["audience"], moments
    )


@lru_cache(maxsize=256)
def _costs_by_limit(limits: tuple[Limit, ...], kept: tuple[Any, ...], audience: str | None, moments: Moved) -> Shares:
    delta, points = kept
    charged = {name: None if share is None else Fraction(share) for name, share in moments}
    return costs_of(limits, Budget(delta=delta, points=points), audience, charged)


# What noise costs the limits that add up its log moments, computed from its integer weights.

RECIPES_KEPT = 64
"""Different recipes whose losses and shares are kept at hand: a charge asks twice, a check many times."""


def moment_costs(limits: Iterable[Limit], recipe: str, times: int, audience: str | None) -> dict[str, str | None]:
    """Return the charged share of ``times`` such releases by limit; None if the whole limit is too small.

    Raises ``InputError`` where the noise is not said: nothing else tells its moments.
    """
    shares: dict[str, str | None] = {}
    for limit in limits:
        if limit.moments is None or not limit.applies_to(audience):
            continue
        if not recipe:
            text = "missing, but a limit by moments adds up log moments of the noise"
            raise InputError.from_text("recipe", text)
        share = _moment_share(limit.moments, recipe, times)
        shares[limit.name] = None if share is None else str(share)
    return shares


def charge_covers_noise(moments: Moments, recipe: str, times: int, charged: str) -> bool:
    """Return whether the charge covers the noise, computed again."""
    needed = moments.required_share(_loss_from_record(recipe, times))
    return needed is not None and needed <= Fraction(charged)


@lru_cache(maxsize=RECIPES_KEPT)
def _moment_share(moments: Moments, recipe: str, times: int) -> Fraction | None:
    return moments.charged_share(_loss_from_record(recipe, times))


@lru_cache(maxsize=RECIPES_KEPT)
def _loss_from_record(recipe: str, times: int) -> PrivacyLoss:
    return NoiseRecord.from_text(recipe).loss_of_separate_releases(times)
