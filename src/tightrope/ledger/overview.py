"""An overview of a dataset: spent, reserved and remaining budget, the rules, and the savings from joint planning."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from tightrope.documents.budget import float_at_most
from tightrope.ledger.account import Account
from tightrope.ledger.chain import ANSWERED, CHARGED, REFUSED, RESERVED, Entry
from tightrope.ledger.limits import MAIN_LIMIT, Limit
from tightrope.ledger.state import ADAPTIVE, TOGETHER, Balance, State, fraction_text, left_by_addition

BY_ADDITION, BY_MOMENTS = "addition", "odometer of moments"
"""Rules of ``current_reading``, as they are written."""
ORDER_FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)
"""Orders of the odometer relative to the limit's order: fixed with the limit, before any release."""
MAX_COMPOSED_RECORDS = 200
"""Largest number of noise records that are composed for the comparison, at some milliseconds each."""
RUNNING_STATEMENT = (
    "Holds at all times at once, whatever was chosen after seeing answers: with a reading u after each release, every "
    "set A of histories that end with a reading of at most epsilon has P(A) <= e^epsilon Q(A) + delta, for all epsilon "
    "together. It speaks of what was charged so far, reserved series whole, and is no promise: that is the limit's."
)


def current_reading(
    limit: Limit, balance: Balance, counted: Mapping[str, int], texts: Mapping[str, str] | None
) -> dict[str, Any] | None:
    """Return an upper bound on the ε of all releases so far, at the δ of the budget's largest ε.

    None without an ε, or without ``texts``.

    For a limit by moments, an odometer of log moments over the noise records ``texts``, each charged as often as
    ``counted`` states; for a basic limit, the sum of ε. The minimum of both would hold only at twice the δ.
    The bound is valid at all times at once: ``docs/proofs/filters.md`` (odometer), ``docs/proofs/composition.md``.
    """
    epsilon, delta = max(limit.budget.checked_points)
    if texts is None or epsilon == 0:
        return None
    if limit.moments is None:
        exact = (balance.spent + balance.reserved) * Fraction(epsilon)
        rounded = float(exact)
        reading, rule = rounded if Fraction(rounded) >= exact else math.nextafter(rounded, math.inf), BY_ADDITION
    else:
        from tightrope.accounting.filters import Odometer
        from tightrope.accounting.neighbors import Neighbors
        from tightrope.ledger.noise_record import NoiseRecord

        odometer = Odometer(
            delta=float_at_most(delta),
            infinite_mass=float(limit.moments.infinite_mass),
            orders=tuple(float(limit.moments.order) * factor for factor in ORDER_FACTORS),
            neighbors=Neighbors.ADD_REMOVE,
        )
        for name, times in counted.items():
            odometer.charge(NoiseRecord.from_text(texts[name]).loss_of_separate_releases(times))
        reading, rule = odometer.reading, BY_MOMENTS
    return {"rule": rule, "epsilon": reading, "delta": str(delta), "statement": RUNNING_STATEMENT}


def ledger_overview(account: Account) -> dict[str, Any]:
    """Return the overview as plain data; fractions of a budget are exact, as decimals or ratios."""
    entries = account.book.list_entries(account.dataset_name)
    state = State.from_data(entries[-1].state_data)
    total = next(limit for limit in account.limits if limit.name == MAIN_LIMIT)
    # ``counted``: how often each noise record was charged, by its hash. ``blocks``: releases that were declared
    # together, such as a series; blocks add up by the rule of the total limit. ``timeline``: the balance of the whole
    # budget after every entry that changed it.
    counted: Counter[str] = Counter()
    blocks: list[dict[str, str | int | None]] = []
    timeline: list[dict[str, str]] = []
    for entry in entries:
        if entry.kind not in (CHARGED, RESERVED):
            continue
        balance = State.from_data(entry.state_data).balance_of(MAIN_LIMIT)
        timeline.append({"time": entry.time, **_balance_data(balance)})
        if entry.kind == RESERVED or entry.body_data["series"] is None:
            times = entry.body_data.get("times", 1)
            counted[entry.body_data["recipe"]] += times
            rule = TOGETHER if entry.kind == RESERVED else ADAPTIVE[total.rule]
            blocks.append({"entry": entry.number, "key": entry.key, "rule": rule, "releases": times})
    # The texts of the noise records by hash; None if one is missing or there are too many to compose.
    are_composed = "" not in counted and len(counted) <= MAX_COMPOSED_RECORDS
    texts = account.book.read_texts(counted) if are_composed else None
    # The entries that record a failed reading of the table after a charge.
    failed = sum(entry.body_data.get("reading") == "failed" for entry in entries if entry.kind == ANSWERED)
    return {
        "dataset": account.dataset_name,
        "ledger": account.book.id,
        "note": account.owner_note,
        "identity": account.identity.to_data(),
        "max_rows": sorted({declared.unit.max_rows or 1 for declared in account.declarations()}),
        "limits": [_limit_overview(limit, state) for limit in account.limits],
        "releases": _count_entries(entries, CHARGED),
        "answered": _count_entries(entries, ANSWERED) - failed,
        "failed": failed,
        "refusals": _count_entries(entries, REFUSED),
        "series": [{"key": k, "released": r.done, "times": r.times} for k, r in state.series.items()],
        "blocks": blocks,
        "planned_together": _joint_price(total, counted, texts, state),
        "running": current_reading(total, state.balance_of(MAIN_LIMIT), counted, texts),
        "timeline": timeline,
    }


def limit_overviews(account: Account) -> list[dict[str, Any]]:
    """Return the spent, reserved and remaining part of each limit now."""
    state = account.current_state()
    return [_limit_overview(limit, state) for limit in account.limits]


def entry_history(entries: Sequence[Entry]) -> list[dict[str, Any]]:
    """Return all entries as plain data."""
    return [
        {
            "number": entry.number, "dataset": entry.dataset, "kind": entry.kind, "key": entry.key, "time": entry.time,
            "body": entry.body_data, "state": entry.state_data, "previous": entry.previous, "hash": entry.hash,
        }
        for entry in entries
    ]  # fmt: skip


def _count_entries(entries: Sequence[Entry], kind: str) -> int:
    return sum(entry.kind == kind for entry in entries)


def _limit_overview(limit: Limit, state: State) -> dict[str, Any]:
    """Return a limit's current balance; of a limit that renews, the balance of its latest period."""
    used_slots = [slot for slot in state.balances if slot == limit.name or slot.startswith(f"{limit.name} ")]
    slot = max(used_slots, default=limit.name) if limit.every else limit.name
    balance = state.balance_of(slot)
    overview = {**limit.to_data(), "rule": limit.rule, "slot": slot, **_balance_data(balance)}
    if limit.moments is None:
        left = balance.fraction_left
        points = [[fraction_text(left * Fraction(value)) for value in point] for point in limit.budget.points]
        return {**overview, "points_left": points, "left_by_addition": None}
    return {**overview, "points_left": None, "left_by_addition": left_by_addition(state, slot)}


def _balance_data(balance: Balance) -> dict[str, str]:
    parts = {"spent": balance.spent, "reserved": balance.reserved, "left": balance.fraction_left}
    return {name: fraction_text(part) for name, part in parts.items()}


def _joint_price(
    total: Limit, counted: Counter[str], texts: dict[str, str] | None, state: State
) -> dict[str, Any] | None:
    """Return the budget fraction that all blocks would need if declared together; for a limit by moments, their ε.

    A fraction of a moment budget is not comparable with one of ε and δ.
    """
    if texts is None or counted.total() < 2:
        return None
    # Loads the accounting: a dataset with one release is shown without it.
    from tightrope.ledger.noise_record import NoiseRecord, composed_budget_fraction, epsilon_together

    records = [(NoiseRecord.from_text(texts[name]), times) for name, times in counted.items()]
    if total.moments is not None:
        return {"epsilon": epsilon_together(records, total.budget), "delta": str(max(total.budget.checked_points)[1])}
    fraction, taken = composed_budget_fraction(records, total.budget), 1 - state.balance_of(MAIN_LIMIT).fraction_left
    together = taken if fraction is None else min(Fraction(fraction), taken)
    return {"share": f"{float(together):.4f}", "left": f"{float(1 - together):.4f}", "less": together < taken}
