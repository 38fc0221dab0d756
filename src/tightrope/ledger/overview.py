"""An overview of a dataset: spent, reserved and remaining budget, the rules, and the savings from joint planning."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from tightrope.accounting.filters import Odometer
from tightrope.accounting.neighbors import Neighbors
from tightrope.documents.budget import at_most
from tightrope.ledger import chain
from tightrope.ledger.account import Account
from tightrope.ledger.chain import ANSWERED, CHARGED, REFUSED, RESERVED, Entry
from tightrope.ledger.limits import MAIN_LIMIT, Limit
from tightrope.ledger.noise_record import NoiseRecord, composed_budget_share, epsilon_together
from tightrope.ledger.state import ADAPTIVE, TOGETHER, Balance, State, left_by_addition, share_text

# What holds at every time of a dataset's life at once: the reading of an odometer, by a rule that is fixed
# beforehand.
#
# Theorem: ``docs/proofs/filters.md`` (odometer) and ``docs/proofs/composition.md``. A reading is a statement about
# the releases so far. The guarantee is the limit's.

BY_ADDITION, BY_MOMENTS = "addition", "odometer of moments"
FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)
"""Orders of the odometer relative to the limit's order: fixed with the limit, before any release."""
RUNNING_STATEMENT = (
    "Holds at all times at once, whatever was chosen after seeing answers: with a reading u after each release, every "
    "set A of histories that end with a reading of at most epsilon has P(A) <= e^epsilon Q(A) + delta, for all epsilon "
    "together. It speaks of what was charged so far, reserved series whole, and is no promise: that is the limit's."
)


def current_reading(
    limit: Limit, balance: Balance, counted: Mapping[str, int], texts: Mapping[str, str]
) -> dict[str, Any] | None:
    """Return the reading under the limit of the whole budget, at the δ of its largest ε; None without an ε.

    A limit by moments has an odometer of log moments over the noise that was charged, each of ``counted`` that many
    times; a basic one adds up ε. The least of both would hold for twice the δ, so it is one.
    """
    epsilon, delta = max(limit.budget.checked_points)
    if epsilon == 0:
        return None
    if limit.moments is None:
        # The least float that is not below it.
        exact = (balance.spent + balance.reserved) * Fraction(epsilon)
        near = float(exact)
        reading, rule = near if Fraction(near) >= exact else math.nextafter(near, math.inf), BY_ADDITION
    else:
        odometer = Odometer(
            delta=at_most(delta),
            infinite_mass=float(limit.moments.infinite_mass),
            orders=tuple(float(limit.moments.order) * factor for factor in FACTORS),
            neighbors=Neighbors.ADD_REMOVE,
        )
        for name, times in counted.items():
            odometer.charge(NoiseRecord.from_text(texts[name]).loss_of_separate_releases(times))
        reading, rule = odometer.reading, BY_MOMENTS
    return {"rule": rule, "epsilon": reading, "delta": str(delta), "statement": RUNNING_STATEMENT}


MOST_COMPOSED = 200
"""Different releases that are composed for the comparison: it takes some milliseconds each."""


def ledger_overview(account: Account) -> dict[str, Any]:
    """Everything as plain data; shares are exact, as decimals or fractions."""
    own = account.book.list_entries(account.dataset_name)
    state = State.from_data(own[-1].state_data)
    total = next(limit for limit in account.limits if limit.name == MAIN_LIMIT)
    # How often each noise was charged, by the hash of its record, and which releases add up by which rule:
    # a series is one block and counts in full; blocks add up with each other by the total's.
    counted: Counter[str] = Counter()
    blocks: list[dict[str, str | int | None]] = []
    for entry in own:
        if entry.kind == RESERVED or (entry.kind == CHARGED and entry.body_data["series"] is None):
            times = entry.body_data.get("times", 1)
            counted[entry.body_data["recipe"]] += times
            rule = TOGETHER if entry.kind == RESERVED else ADAPTIVE[total.rule]
            blocks.append({"entry": entry.number, "key": entry.key, "rule": rule, "releases": times})
    texts = _record_texts(account, counted)
    # Whether it says that the table could not be read after a charge.
    failed = sum((entry.kind == ANSWERED and entry.body_data.get("reading") == "failed") for entry in own)
    return {
        "dataset": account.dataset_name,
        "ledger": account.book.id,
        "note": account.owner_note,
        "identity": account.identity.to_data(),
        "limits": [_limit_overview(limit, state) for limit in account.limits],
        "releases": _count_entries(own, CHARGED),
        "answered": _count_entries(own, ANSWERED) - failed,
        "failed": failed,
        "refusals": _count_entries(own, REFUSED),
        "series": [{"key": k, "released": r.done, "times": r.times} for k, r in state.series.items()],
        "blocks": blocks,
        "planned_together": _joint_price(total, counted, texts, state),
        "running": None if texts is None else current_reading(total, state.balance_of(MAIN_LIMIT), counted, texts),
        "timeline": _budget_timeline(own),
    }


def limit_overviews(account: Account) -> list[dict[str, Any]]:
    """Every limit with what is spent, reserved and left of it now."""
    state = account.current_state()
    return [_limit_overview(limit, state) for limit in account.limits]


def entry_history(entries: Sequence[Entry]) -> list[dict[str, Any]]:
    """Every entry as plain data, for people and programs."""
    return [
        {
            "number": entry.number, "dataset": entry.dataset, "kind": entry.kind, "key": entry.key, "time": entry.time,
            "body": entry.body_data, "state": entry.state_data, "previous": entry.previous, "hash": entry.hash,
        }
        for entry in entries
    ]  # fmt: skip


def _count_entries(own: Sequence[Entry], kind: str) -> int:
    return sum(entry.kind == kind for entry in own)


def _limit_overview(limit: Limit, state: State) -> dict[str, Any]:
    """One limit as it is now: a limit that renews in its latest period."""
    used = [slot for slot in state.balances if slot == limit.name or slot.startswith(f"{limit.name} ")]
    slot = max(used, default=limit.name) if limit.every else limit.name
    balance = state.balance_of(slot)
    said = {**limit.to_data(), "rule": limit.rule, "slot": slot, **_balance_data(balance)}
    if limit.moments is None:
        left = balance.fraction_left
        points = [[share_text(left * Fraction(value)) for value in point] for point in limit.budget.points]
        return {**said, "points_left": points, "left_by_addition": None}
    return {**said, "points_left": None, "left_by_addition": left_by_addition(state, slot)}


def _balance_data(balance: Balance) -> dict[str, str]:
    parts = {"spent": balance.spent, "reserved": balance.reserved, "left": balance.fraction_left}
    return {name: share_text(part) for name, part in parts.items()}


def _record_texts(account: Account, counted: Counter[str]) -> dict[str, str] | None:
    """Return the noise records; None if noise is missing, or of too many kinds to compose interactively."""
    if "" in counted or len(counted) > MOST_COMPOSED:
        return None
    return account.book.read_transaction(
        lambda connection: {name: chain.read_text(connection, name) for name in counted}
    )


def _joint_price(
    total: Limit, counted: Counter[str], texts: dict[str, str] | None, state: State
) -> dict[str, Any] | None:
    """Return the budget share of all blocks if declared together; by moments: their ε.

    A share of moments is not comparable with one of ε and δ.
    """
    if texts is None or counted.total() < 2:
        return None
    recipes = [(NoiseRecord.from_text(texts[name]), times) for name, times in counted.items()]
    if total.moments is not None:
        return {"epsilon": epsilon_together(recipes, total.budget), "delta": str(max(total.budget.checked_points)[1])}
    share, taken = composed_budget_share(recipes, total.budget), 1 - state.balance_of(MAIN_LIMIT).fraction_left
    least = taken if share is None else min(Fraction(share), taken)
    return {"share": f"{float(least):.4f}", "left": f"{float(1 - least):.4f}", "less": least < taken}


def _budget_timeline(own: Sequence[Entry]) -> list[dict[str, str]]:
    """The whole budget after every entry that changed it."""
    return [
        {"time": entry.time, **_balance_data(State.from_data(entry.state_data).balance_of(MAIN_LIMIT))}
        for entry in own
        if entry.kind in (CHARGED, RESERVED)
    ]
