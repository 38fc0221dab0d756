"""A ledger on a terminal: a table of limits, a picture of the budget by date, and which rule holds for what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from tightrope.certificates.printable import printable
from tightrope.certificates.words.digits import UP, significant
from tightrope.cli.output import heading, print_table, say

Json = Mapping[str, Any]
WIDTH = 50
SPENT, RESERVED, LEFT = "█", "▒", "·"
MOST_DATES, MOST_ENTRIES = 20, 200
MOMENTS, TOGETHER = "moments", "exact composition"
"""As an overview names rules."""


def show_overview(view: Json) -> None:
    """One dataset."""
    identity = view["identity"]
    heading(f"{printable(view['dataset'])}: {view['releases']} released, {view['refusals']} refused")
    say(whose_rows(identity))
    say(*([f"Note: {printable(view['note'])}"] if view["note"] else []))
    columns = ["limit", "adds up", "spent", "reserved", "left", "which is"]
    print_table(columns, [_limit(limit) for limit in view["limits"]], left=2, words=1)
    _show_dates(view["timeline"])
    _show_rules(view)
    _show_running(view["running"])


def whose_rows(identity: Json) -> str:
    """Who is protected in a dataset, and how many of their rows count.

    >>> whose_rows({"person": None, "means": "a person", "rows_per_person": 1})
    'Each row is a person.'
    >>> whose_rows({"person": "tail", "means": "an aircraft", "rows_per_person": 12})
    'All rows with one value of tail are an aircraft; at most 12 of them count.'
    """
    means = printable(identity["means"])
    if identity["person"] is None:
        return f"Each row is {means}."
    column, rows = printable(identity["person"]), identity["rows_per_person"]
    return f"All rows with one value of {column} are {means}; at most {rows:,} of them count."


def _limit(limit: Json) -> list[str]:
    whose = f" ({limit['audience']})" if limit["audience"] else ""
    what = "moments" if limit["rule"] == MOMENTS else "epsilon, delta"
    return [f"{limit['slot']}{whose}", what, limit["spent"], limit["reserved"], limit["left"], _left(limit)]


def _left(limit: Json) -> str:
    """What a share is: ε and δ, or nats of a moment and certain failure; and what addition would have left."""
    if limit["rule"] != MOMENTS:
        return "; ".join(f"{epsilon}, {delta}" for epsilon, delta in limit["points_left"])
    fixed, left = limit["moments"], float(Fraction(limit["left"]))
    nats, mass = left * float(fixed["budget"]), left * float(fixed["infinite_mass"])
    addition = limit["left_by_addition"]
    return f"{nats:.3g} nats at order {fixed['order']}, {mass:.2g} of failure; by addition {addition} would be left"


def _show_epsilon(price: Json) -> None:
    """The price on a limit by moments."""
    if price["epsilon"] is not None:
        epsilon = significant(price["epsilon"], 3, UP)
        say(
            f"Declared together before the first, all of this would keep epsilon {epsilon} "
            f"at delta {float(price['delta']):g}. That is a comparison, and no budget: what was chosen on the way does "
            f"not compose like that."
        )


def _show_running(reading: Json | None) -> None:
    """The odometer, with all that its number means."""
    if reading is None:
        return
    heading("Running epsilon")
    epsilon = significant(reading["epsilon"], 4, UP)
    say(f"{epsilon} at delta {float(reading['delta']):g}, by {reading['rule']}.", reading["statement"])


def _show_dates(timeline: Sequence[Json]) -> None:
    """A bar after every release, the latest ones."""
    if not timeline:
        say("Nothing has been spent.")
        return
    heading(f"The whole budget after each release: {SPENT} spent, {RESERVED} reserved, {LEFT} left")
    if len(timeline) > MOST_DATES:
        say(f"... {len(timeline) - MOST_DATES} earlier ones: tightrope ledger history")
    for moment in timeline[-MOST_DATES:]:
        say(f"{moment['time'][:16].replace('T', ' ')}  {bar(moment)}  {moment['left']} left")


def bar(moment: Json) -> str:
    """The three parts of a budget, rounded so that nothing that is gone looks left.

    >>> bar({"spent": "0.5", "reserved": "0.25", "left": "0.25"}) == 25 * SPENT + 13 * RESERVED + 12 * LEFT
    True
    """
    spent = -(-Fraction(moment["spent"]) * WIDTH // 1)
    gone = -(-(Fraction(moment["spent"]) + Fraction(moment["reserved"])) * WIDTH // 1)
    return SPENT * int(spent) + RESERVED * int(gone - spent) + LEFT * int(WIDTH - gone)


def _show_rules(view: Json) -> None:
    """How releases add up, and what it costs not to plan ahead."""
    if not view["blocks"]:
        return
    heading("How they add up")
    for one in view["series"]:
        say(f"Series {printable(one['key'])}: {one['released']} of {one['times']} released, composed exactly together.")
    single = sum(block["releases"] for block in view["blocks"] if block["rule"] != TOGETHER)
    if single:
        say(f"{single} released one by one, perhaps after seeing earlier answers: their shares add up.")
    for limit in view["limits"]:
        if limit["rule"] == MOMENTS:
            say(f"{limit['slot']}: shares of log moments of the noise, of order {limit['moments']['order']}, which was "
                f"fixed before the first release for about {limit['releases']} of them.")  # fmt: skip
    price = view["planned_together"]
    if price is not None and "epsilon" in price:
        _show_epsilon(price)
    elif price is not None and price["less"]:
        say(
            f"Had all of this been declared together before the first, it would have taken a share of "
            f"{price['share']}, and {price['left']} would be left. That is a comparison, and no budget: what was "
            f"chosen on the way does not compose like that."
        )
    elif price is not None:
        say("Declared together before the first, all of this would have taken as much.")


def show_history(entries: Sequence[Json]) -> None:
    """A line an entry."""
    columns = ["entry", "time", "dataset", "what", "key", "left of the whole"]
    print_table(columns, [_entry(entry) for entry in entries[-MOST_ENTRIES:]], left=5)
    if len(entries) > MOST_ENTRIES:
        say(f"... and {len(entries) - MOST_ENTRIES} earlier ones with --json")


def _entry(entry: Json) -> list[str]:
    from tightrope.ledger.shares import shown

    spent, reserved = entry["state"]["balances"].get("total", ["0", "0"])
    left = shown(1 - Fraction(spent) - Fraction(reserved))
    key = entry["key"] or entry["body"].get("key", "")
    said = "" if entry["kind"] == "dataset" else printable(key)
    what = entry["body"].get("reading", entry["kind"])
    return [str(entry["number"]), entry["time"][:19], printable(entry["dataset"]), what, said, left]
