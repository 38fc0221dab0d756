"""``tightrope ledger``: what was promised about a dataset, what is spent of it, and whether that is all true."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tightrope.cli.options import AsJson, PlanPath
from tightrope.cli.output import echo_heading, echo_lines, print_json, print_table, show_spinner
from tightrope.documents.escaping import escape_control_chars
from tightrope.documents.numbers import UP, significant_text
from tightrope.documents.release import read_certificate
from tightrope.errors import InputError, LedgerError

if TYPE_CHECKING:
    from tightrope.documents.release import LedgerEntry
    from tightrope.ledger import Account, Ledger

OPEN_EXAMPLE = """\b
Example, before the first release; a release does the same where nobody did it before:
  tightrope ledger open plan.toml --note "promised to the board in March"
"""
SHOW_EXAMPLE = """\b
Example:
  tightrope ledger show plan.toml
"""
HISTORY_EXAMPLE = """\b
Example, every entry of the ledger that a plan uses:
  tightrope ledger history plan.toml
"""
LEDGER_CHECK_EXAMPLE = """\b
Example; a certificate that the ledger does not know shows that it is an older copy:
  tightrope ledger check plan.toml out/*/certificate.json

Exit codes: 0 everything holds, 1 something does not, and the message says what; 2 bad input.
"""
EXPORT_EXAMPLE = """\b
Example:
  tightrope ledger export plan.toml > ledger.json
"""
app = typer.Typer(rich_markup_mode=None, no_args_is_help=True, add_completion=False)
Place = Annotated[str, typer.Argument(metavar="LEDGER", help="A ledger's file, its postgresql:// URL, or a plan.")]
Dataset = Annotated[str | None, typer.Option(metavar="NAME", help="One dataset of several.")]
Note = Annotated[str, typer.Option(metavar="TEXT", help="What its owner wants to be remembered.")]
Certificates = Annotated[
    list[Path] | None, typer.Argument(metavar="[CERTIFICATE]...", help="Files certificate.json of releases.")
]


@app.command("open", epilog=OPEN_EXAMPLE)
def open_(path: PlanPath, note: Note = "", as_json: AsJson = False) -> None:
    """Declare a plan's dataset and budget in its ledger, and spend nothing."""
    from tightrope.release.plan_file import load_plan_file

    file = load_plan_file(path)
    file.open_ledger_session(note=note or None)
    _show_overviews([_open_ledger(path).open_account(file.dataset_name)], as_json)


@app.command("show", epilog=SHOW_EXAMPLE)
def show(place: Place, dataset: Dataset = None, as_json: AsJson = False) -> None:
    """Show what is spent, reserved and left, by date, and by which rule releases add up."""
    ledger = _open_ledger(place)
    _show_overviews([ledger.open_account(name) for name in _selected_datasets(ledger, place, dataset)], as_json)


@app.command("history", epilog=HISTORY_EXAMPLE)
def history(place: Place, dataset: Dataset = None, as_json: AsJson = False) -> None:
    """List every entry: declared, reserved, charged, answered, refused."""
    from tightrope.ledger import overview

    ledger = _open_ledger(place)
    wanted = _selected_datasets(ledger, place, dataset)
    entries = overview.entry_history([entry for entry in ledger.book.list_entries() if entry.dataset in wanted])
    if as_json:
        print_json({"document": "ledger history", "version": 1, "ledger": ledger.ledger_id, "entries": entries})
    else:
        show_history(entries)


@app.command("check", epilog=LEDGER_CHECK_EXAMPLE)
def check(place: Place, certificates: Certificates = None, as_json: AsJson = False) -> None:
    """Go through the ledger from its first entry: every hash, sum and guarantee, and certificates on disk."""
    from tightrope.ledger.check import check_ledger as checked

    ledger = _open_ledger(place)
    with show_spinner("Going through the ledger ..."):
        # What the certificates say of their entries; of a plan's own where none is named.
        named_certificates = certificates or []

        beside = Path(place).parent / "certificate.json"
        paths = named_certificates or ([beside] if _is_plan(place) and beside.exists() else [])
        named_found: list[LedgerEntry] = []
        for path in paths:
            try:
                entry = read_certificate(path.read_text(encoding="utf-8")).entry
            except (OSError, UnicodeDecodeError):
                raise InputError("certificate", str(path), "a file certificate.json of a release") from None
            named_found += [] if entry is None else [entry]
        found = checked(ledger, named_found)
    if as_json:
        print_json({
            "document": "ledger check", "version": 1, "ledger": ledger.ledger_id, "entries": found.entries,
            "guarantees": found.guarantees, "certificates": found.certificates, "problems": list(found.problems),
        })  # fmt: skip
    if found.problems:
        raise LedgerError(f"the ledger {ledger.display_name} does not hold: {'; '.join(found.problems)}")
    if not as_json:
        # What a check cannot know.
        if ledger.book.is_file:
            unseen = ["An older copy that was put back with its .head file is found out by newer certificates alone."]
        else:
            unseen = ["An older copy of the database that was put back is found out by newer certificates alone."]
        echo_lines(
            f"Entries: {found.entries}. Every hash follows from the one before, every sum from its history.",
            f"Guarantees computed again from their noise: {found.guarantees}. Certificates whose entries are there: "
            f"{found.certificates}.",
            *unseen,
        )


@app.command("export", epilog=EXPORT_EXAMPLE)
def export(place: Place) -> None:
    """Print the whole ledger as one JSON object: every entry, and every longer text by its hash."""
    from tightrope.ledger import overview

    ledger = _open_ledger(place)
    entries = overview.entry_history(ledger.book.list_entries())
    documents = ledger.book.texts_by_hash()
    print_json({
        "document": "ledger", "version": 1, "ledger": ledger.ledger_id, "entries": entries, "documents": documents,
    })  # fmt: skip


def _open_ledger(place: str) -> Ledger:
    """The ledger of a plan, a file or a URL; it must be there."""
    from tightrope.ledger import Ledger
    from tightrope.release.plan_file import load_plan_file

    return Ledger(load_plan_file(place).ledger_location if _is_plan(place) else place)


def _is_plan(place: str) -> bool:
    return place.endswith(".toml")


def _selected_datasets(ledger: Ledger, place: str, dataset: str | None) -> list[str]:
    """The dataset that is named, the plan's, or all."""
    from tightrope.release.plan_file import load_plan_file

    if dataset is not None:
        return [ledger.open_account(dataset).dataset_name]
    return [load_plan_file(place).dataset_name] if _is_plan(place) else ledger.dataset_names()


def _show_overviews(accounts: Sequence[Account], as_json: bool) -> None:
    from tightrope.ledger.overview import ledger_overview

    views: list[dict[str, Any]] = [ledger_overview(account) for account in accounts]
    if as_json:
        print_json({"document": "ledger overview", "version": 1, "datasets": views})
        return
    for view in views:
        show_overview(view)


# A ledger on a terminal: a table of limits, a picture of the budget by date, and which rule holds for what.

Json = Mapping[str, Any]
WIDTH = 50
SPENT, RESERVED, LEFT = "█", "▒", "·"
MOST_DATES, MOST_ENTRIES = 20, 200
MOMENTS, TOGETHER = "moments", "exact composition"
"""As an overview names rules."""


def show_overview(view: Json) -> None:
    """One dataset."""
    identity = view["identity"]
    echo_heading(f"{escape_control_chars(view['dataset'])}: {view['releases']} released, {view['refusals']} refused")
    echo_lines(whose_rows(identity))
    echo_lines(*([f"Note: {escape_control_chars(view['note'])}"] if view["note"] else []))
    columns = ["limit", "adds up", "spent", "reserved", "left", "which is"]
    print_table(columns, [_budget_limit(limit) for limit in view["limits"]], left=2, words=1)
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
    means = escape_control_chars(identity["means"])
    if identity["person"] is None:
        return f"Each row is {means}."
    column, rows = escape_control_chars(identity["person"]), identity["rows_per_person"]
    return f"All rows with one value of {column} are {means}; at most {rows:,} of them count."


def _budget_limit(limit: Json) -> list[str]:
    whose = f" ({limit['audience']})" if limit["audience"] else ""
    what = "moments" if limit["rule"] == MOMENTS else "epsilon, delta"
    return [f"{limit['slot']}{whose}", what, limit["spent"], limit["reserved"], limit["left"], _amount_left(limit)]


def _amount_left(limit: Json) -> str:
    """Describe a share: ε and δ, or nats of a moment and certain failure; and what addition would have left."""
    if limit["rule"] != MOMENTS:
        return "; ".join(f"{epsilon}, {delta}" for epsilon, delta in limit["points_left"])
    fixed, left = limit["moments"], float(Fraction(limit["left"]))
    nats, mass = left * float(fixed["budget"]), left * float(fixed["infinite_mass"])
    addition = limit["left_by_addition"]
    return f"{nats:.3g} nats at order {fixed['order']}, {mass:.2g} of failure; by addition {addition} would be left"


def _show_epsilon(price: Json) -> None:
    """The price on a limit by moments."""
    if price["epsilon"] is not None:
        epsilon = significant_text(price["epsilon"], 3, UP)
        echo_lines(
            f"Declared together before the first, all of this would keep epsilon {epsilon} "
            f"at delta {float(price['delta']):g}. That is a comparison, and no budget: what was chosen on the way does "
            f"not compose like that."
        )


def _show_running(reading: Json | None) -> None:
    """The odometer, with all that its number means."""
    if reading is None:
        return
    echo_heading("Spent so far")
    epsilon = significant_text(reading["epsilon"], 4, UP)
    echo_lines(
        f"So far these releases together cost epsilon {epsilon} at delta {float(reading['delta']):g} (by "
        f"{reading['rule']}). Your limit is the promise; this is what has been used of it.",
        "The number is valid after every release, even if later plans were chosen after seeing earlier answers.",
    )


def _show_dates(timeline: Sequence[Json]) -> None:
    """A bar after every release, the latest ones."""
    if not timeline:
        echo_lines("Nothing has been spent.")
        return
    echo_heading(f"The whole budget after each release: {SPENT} spent, {RESERVED} reserved, {LEFT} left")
    if len(timeline) > MOST_DATES:
        echo_lines(f"... {len(timeline) - MOST_DATES} earlier ones: tightrope ledger history")
    for moment in timeline[-MOST_DATES:]:
        echo_lines(f"{moment['time'][:16].replace('T', ' ')}  {budget_bar(moment)}  {moment['left']} left")


def budget_bar(moment: Json) -> str:
    """The three parts of a budget, rounded so that nothing that is gone looks left.

    >>> budget_bar({"spent": "0.5", "reserved": "0.25", "left": "0.25"}) == 25 * SPENT + 13 * RESERVED + 12 * LEFT
    True
    """
    spent = -(-Fraction(moment["spent"]) * WIDTH // 1)
    gone = -(-(Fraction(moment["spent"]) + Fraction(moment["reserved"])) * WIDTH // 1)
    return SPENT * int(spent) + RESERVED * int(gone - spent) + LEFT * int(WIDTH - gone)


def _show_rules(view: Json) -> None:
    """Describe how releases add up, and the cost of not planning ahead."""
    if not view["blocks"]:
        return
    echo_heading("How they add up")
    for one in view["series"]:
        echo_lines(
            f"Series {escape_control_chars(one['key'])}: {one['released']} of {one['times']} released, "
            f"composed exactly together."
        )
    single = sum(block["releases"] for block in view["blocks"] if block["rule"] != TOGETHER)
    if single:
        echo_lines(f"{single} released one by one, perhaps after seeing earlier answers: their shares add up.")
    for limit in view["limits"]:
        if limit["rule"] == MOMENTS:
            echo_lines(f"{limit['slot']}: shares of log moments of the noise, of order "
                       f"{limit['moments']['order']}, which was "
                f"fixed before the first release for about {limit['releases']} of them.")  # fmt: skip
    price = view["planned_together"]
    if price is not None and "epsilon" in price:
        _show_epsilon(price)
    elif price is not None and price["less"]:
        echo_lines(
            f"Had all of this been declared together before the first, it would have taken a share of "
            f"{price['share']}, and {price['left']} would be left. That is a comparison, and no budget: what was "
            f"chosen on the way does not compose like that."
        )
    elif price is not None:
        echo_lines("Declared together before the first, all of this would have taken as much.")


def show_history(entries: Sequence[Json]) -> None:
    """A line an entry."""
    columns = ["entry", "time", "dataset", "what", "key", "left of the whole"]
    print_table(columns, [_entry_line(entry) for entry in entries[-MOST_ENTRIES:]], left=5)
    if len(entries) > MOST_ENTRIES:
        echo_lines(f"... and {len(entries) - MOST_ENTRIES} earlier ones with --json")


def _entry_line(entry: Json) -> list[str]:
    from tightrope.ledger.state import share_text

    spent, reserved = entry["state"]["balances"].get("total", ["0", "0"])
    left = share_text(1 - Fraction(spent) - Fraction(reserved))
    key = entry["key"] or entry["body"].get("key", "")
    said = "" if entry["kind"] == "dataset" else escape_control_chars(key)
    what = entry["body"].get("reading", entry["kind"])
    return [str(entry["number"]), entry["time"][:19], escape_control_chars(entry["dataset"]), what, said, left]
