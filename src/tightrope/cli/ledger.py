"""``tightrope ledger``: show and check the privacy budget of a dataset."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tightrope.cli.options import AsJson, PlanPath
from tightrope.cli.output import echo_heading, echo_lines, print_json, print_table, show_spinner
from tightrope.documents.escaping import escape_control_chars
from tightrope.documents.numbers import DOWN, MISSING, UP, significant_text, terminal_text
from tightrope.documents.plan_ledger import LedgerPlace, read_ledger_place
from tightrope.errors import InputError, LedgerError

if TYPE_CHECKING:
    from tightrope.documents.release import LedgerEntry
    from tightrope.ledger import Account, Ledger

OPEN_EXAMPLE = """\b
Example, before the first release (which otherwise declares the dataset):
  tightrope ledger open plan.toml --note "budget agreed by the board in March"
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
Example (if a certificate's entry is missing from the ledger, the ledger is an older copy):
  tightrope ledger check plan.toml out/*/certificate.json

Exit codes: 0 the ledger is consistent; 1 it is not, and the message says why; 2 bad input.
"""
EXPORT_EXAMPLE = """\b
Example:
  tightrope ledger export plan.toml > ledger.json
"""
app = typer.Typer(
    rich_markup_mode=None,
    no_args_is_help=True,
    add_completion=False,
    help="Show and check the privacy budget of a dataset.",
)
Place = Annotated[str, typer.Argument(metavar="LEDGER", help="A ledger's file, its postgresql:// URL, or a plan.")]
Dataset = Annotated[str | None, typer.Option(metavar="NAME", help="Show only this dataset.")]
Note = Annotated[str, typer.Option(metavar="TEXT", help="A note of the owner, stored in the ledger.")]
Certificates = Annotated[
    list[Path] | None, typer.Argument(metavar="[CERTIFICATE]...", help="certificate.json files of releases.")
]


@app.command("open", epilog=OPEN_EXAMPLE, short_help="Declare a dataset and its budget; spends none.")
def open_(path: PlanPath, note: Note = "", as_json: AsJson = False) -> None:
    """Declare a plan's dataset and budget in its ledger, without spending any."""
    from tightrope.ledger import Ledger
    from tightrope.release.plan_file import load_plan_file

    file = load_plan_file(path)
    file.open_ledger_session(note=note or None)
    _show_overviews([Ledger(file.ledger_location).open_account(file.dataset_name)], as_json)


@app.command("show", epilog=SHOW_EXAMPLE, short_help="Show the budget spent, reserved and left.")
def show(place: Place, dataset: Dataset = None, as_json: AsJson = False) -> None:
    """Show the budget that is spent, reserved and left, by date, and the composition rule."""
    ledger, names = _open_datasets(place, dataset)
    _show_overviews([ledger.open_account(name) for name in names], as_json)


@app.command("history", epilog=HISTORY_EXAMPLE, short_help="List every entry of the ledger.")
def history(place: Place, dataset: Dataset = None, as_json: AsJson = False) -> None:
    """List every entry: dataset declared, reserved, charged, answered, refused."""
    from tightrope.ledger import overview

    ledger, names = _open_datasets(place, dataset)
    entries = overview.entry_history([entry for entry in ledger.book.list_entries() if entry.dataset in names])
    if as_json:
        print_json({"document": "ledger history", "version": 1, "ledger": ledger.ledger_id, "entries": entries})
    else:
        show_history(entries)


@app.command("check", epilog=LEDGER_CHECK_EXAMPLE, short_help="Check hashes, totals, guarantees and certificates.")
def check(place: Place, certificates: Certificates = None, as_json: AsJson = False) -> None:
    """Check every hash, total and guarantee in the ledger, and certificates on disk."""
    from tightrope.documents.release import read_certificate
    from tightrope.ledger.check import check_ledger

    ledger = _open_datasets(place)[0]
    with show_spinner("Checking the ledger ..."):
        # The ledger entries of the certificates; by default of the certificate in the plan's folder.
        named_certificates = certificates or []

        beside = Path(place).parent / "certificate.json"
        paths = named_certificates or ([beside] if _is_plan(place) and beside.exists() else [])
        named_found: list[LedgerEntry] = []
        for path in paths:
            try:
                entry = read_certificate(path.read_text(encoding="utf-8")).entry
            except (OSError, UnicodeDecodeError):
                raise InputError.from_text(str(path), "not a readable certificate.json of a release") from None
            named_found += [] if entry is None else [entry]
        found = check_ledger(ledger, named_found)
    if as_json:
        print_json({
            "document": "ledger check", "version": 1, "ledger": ledger.ledger_id, "entries": found.entries,
            "guarantees": found.guarantees, "certificates": found.certificates, "problems": list(found.problems),
        })  # fmt: skip
    if found.problems:
        raise LedgerError(f"the ledger {ledger.display_name} failed the check: {'; '.join(found.problems)}")
    if not as_json:
        restored = "A restored backup of the ledger and its .head file" if ledger.book.is_file else "A restored backup"
        echo_lines(
            f"Entries: {found.entries}. The hash chain and all totals are consistent.",
            f"Guarantees recomputed from the recorded noise: {found.guarantees}. Certificates found in the ledger: "
            f"{found.certificates}.",
            f"{restored} can be detected only by comparing with newer certificates.",
        )


@app.command("export", epilog=EXPORT_EXAMPLE, short_help="Print the whole ledger as one JSON object.")
def export(place: Place) -> None:
    """Print the whole ledger as one JSON object: all entries, and longer texts by their hashes."""
    from tightrope.ledger import overview

    ledger = _open_datasets(place)[0]
    entries = overview.entry_history(ledger.book.list_entries())
    documents = ledger.book.texts_by_hash()
    print_json({
        "document": "ledger", "version": 1, "ledger": ledger.ledger_id, "entries": entries, "documents": documents,
    })  # fmt: skip


def _is_plan(place: str) -> bool:
    return place.endswith(".toml")


def _open_datasets(place: str, dataset: str | None = None) -> tuple[Ledger, list[str]]:
    """Open the existing ledger of a plan, a file or a URL; return it and the names of the dataset, the plan's, or all.

    Of a plan, only the names of the ledger and the dataset are read, without the libraries that plan a release.
    """
    from tightrope.ledger import Ledger

    location, plan_dataset = place, None
    if _is_plan(place):
        found = read_ledger_place(Path(place))
        if found is None:
            from tightrope.release.plan_file import load_plan_file

            file = load_plan_file(place)
            found = LedgerPlace(file.ledger_location, file.dataset_name)
        location, plan_dataset = found
    ledger = Ledger(location)
    if dataset is not None:
        return ledger, [ledger.open_account(dataset).dataset_name]
    return ledger, ledger.dataset_names() if plan_dataset is None else [plan_dataset]


def _show_overviews(accounts: Sequence[Account], as_json: bool) -> None:
    from tightrope.ledger.overview import ledger_overview

    views: list[dict[str, Any]] = [ledger_overview(account) for account in accounts]
    if as_json:
        print_json({"document": "ledger overview", "version": 1, "datasets": views})
        return
    for view in views:
        show_overview(view)


# A ledger on a terminal: a table of limits, a bar of the budget by date, and the composition rules.

Json = Mapping[str, Any]
WIDTH = 50
SPENT, RESERVED, LEFT = "█", "▒", "·"
MOST_DATES, MOST_ENTRIES = 20, 200
MOMENTS, TOGETHER = "moments", "exact composition"
"""The names of composition rules in an overview."""
RULE_NAMES = {"addition": "basic composition"}
"""Other names of rules in sentences."""
EVENTS = {"dataset": "declared", "failed": "read failed"}
"""Other names of entries in the history."""


def show_overview(view: Json) -> None:
    """Print the overview of one dataset: its counts, limits and what is left of each."""
    identity = view["identity"]
    releases, refusals = view["releases"], view["refusals"]
    counts = f"{releases} release{'s' * (releases != 1)}, {refusals} refusal{'s' * (refusals != 1)}"
    echo_heading(f"{escape_control_chars(view['dataset'])}: {counts}")
    echo_lines(whose_rows(identity, view["max_rows"]))
    echo_lines(*([f"Note: {escape_control_chars(view['note'])}"] if view["note"] else []))
    # What is left of each limit: ε and δ (of each point), or a log moment, which is described below the table.
    rows: list[list[str]] = []
    by_moments: list[str] = []
    for limit in view["limits"]:
        name = f"{limit['slot']} ({limit['audience']})" if limit["audience"] else limit["slot"]
        if limit["rule"] == MOMENTS:
            fixed, left = limit["moments"], float(Fraction(limit["left"]))
            nats, mass = left * float(fixed["budget"]), left * float(fixed["infinite_mass"])
            epsilons = deltas = MISSING
            by_moments.append(
                f"{name}: left are {nats:.3g} nats of the log moment of order {fixed['order']}, and a probability of "
                f"{mass:.2g} of infinite loss; under basic composition {limit['left_by_addition']} would be left"
            )
        else:
            epsilons = "; ".join(epsilon for epsilon, _ in limit["points_left"])
            deltas = "; ".join(_small_number_text(delta) for _, delta in limit["points_left"])
        rule = "moments" if limit["rule"] == MOMENTS else "basic"
        rows.append([name, rule, limit["spent"], limit["reserved"], limit["left"], epsilons, deltas])
    columns = ["limit", "composition", "spent", "reserved for series", "left", "epsilon left", "delta left"]
    print_table(columns, rows, left=2)
    echo_lines(*map(escape_control_chars, by_moments))
    timeline = view["timeline"]
    if timeline:
        echo_heading(f"The whole budget after each release: {SPENT} spent, {RESERVED} reserved, {LEFT} left")
        if len(timeline) > MOST_DATES:
            echo_lines(f"... {len(timeline) - MOST_DATES} earlier ones: tightrope ledger history")
        for moment in timeline[-MOST_DATES:]:
            echo_lines(f"{moment['time'][:16].replace('T', ' ')}  {budget_bar(moment)}  {moment['left']} left")
    else:
        echo_lines("Nothing has been spent.")
    _show_rules(view)
    reading = view["running"]
    if reading is not None and timeline:
        echo_heading("Spent so far")
        epsilon = significant_text(reading["epsilon"], 4, UP)
        echo_lines(
            f"All releases so far: epsilon {epsilon}, delta {terminal_text(Decimal(reading['delta']))} "
            f"({RULE_NAMES.get(reading['rule'], reading['rule'])}).",
            "This total is a valid guarantee for all of them together, even if later plans depend on earlier answers.",
        )


def whose_rows(identity: Json, max_rows: Sequence[int]) -> str:
    """Return the privacy unit of a dataset, and how many rows of it the sessions use.

    >>> whose_rows({"person": None, "means": "a person"}, [1])
    'Each row is a person.'
    >>> whose_rows({"person": "tail", "means": "an aircraft"}, [12])
    'All rows with the same tail are an aircraft; at most 12 of them are used.'
    >>> whose_rows({"person": "tail", "means": "an aircraft"}, [3, 12])
    'All rows with the same tail are an aircraft; at most 3 or 12 of them are used in a release.'
    """
    means = escape_control_chars(identity["means"])
    if identity["person"] is None:
        return f"Each row is {means}."
    column, bounds = escape_control_chars(identity["person"]), " or ".join(f"{rows:,}" for rows in max_rows)
    where = " in a release" if len(max_rows) > 1 else ""
    return f"All rows with the same {column} are {means}; at most {bounds} of them are used{where}."


def _small_number_text(number: str) -> str:
    """Return a fraction below 0.0001 as it is typed, rounded down; others unchanged.

    >>> _small_number_text("0.00000001"), _small_number_text("1/12"), _small_number_text("0")
    ('1e-8', '1/12', '0')
    """
    value = Fraction(number)
    return terminal_text(float(value), 3, DOWN) if 0 < value < Fraction(1, 10_000) else number


def budget_bar(moment: Json) -> str:
    """The three parts of a budget as a bar; the part left is rounded down.

    >>> budget_bar({"spent": "0.5", "reserved": "0.25", "left": "0.25"}) == 25 * SPENT + 13 * RESERVED + 12 * LEFT
    True
    """
    spent = -(-Fraction(moment["spent"]) * WIDTH // 1)
    gone = -(-(Fraction(moment["spent"]) + Fraction(moment["reserved"])) * WIDTH // 1)
    return SPENT * int(spent) + RESERVED * int(gone - spent) + LEFT * int(WIDTH - gone)


def _show_rules(view: Json) -> None:
    """Describe how releases compose, and what joint planning would have saved."""
    if not view["blocks"]:
        return
    echo_heading("Composition")
    for one in view["series"]:
        echo_lines(
            f"Series {escape_control_chars(one['key'])}: {one['released']} of {one['times']} released; its releases "
            f"are composed jointly."
        )
    single = sum(block["releases"] for block in view["blocks"] if block["rule"] != TOGETHER)
    if single:
        one = "release" if single == 1 else "releases"
        echo_lines(
            f"{single} {one}, planned one at a time. The budget fractions of such releases add up (basic composition), "
            "which is valid even if later plans depend on earlier answers."
        )
    for limit in view["limits"]:
        if limit["rule"] == MOMENTS:
            echo_lines(
                f"{limit['slot']}: log moments of the privacy loss add up, of order {limit['moments']['order']}, fixed "
                f"before the first release for about {limit['releases']} releases."
            )
    price = view["planned_together"]
    if price is None:
        return
    if "epsilon" in price:  # of a limit by moments
        if price["epsilon"] is not None:
            epsilon = significant_text(price["epsilon"], 3, UP)
            echo_lines(
                f"Planned jointly in advance, these releases would satisfy epsilon {epsilon} at delta "
                f"{terminal_text(Decimal(price['delta']))}. {COMPARISON}"
            )
    elif price["less"]:
        echo_lines(
            f"Planned jointly in advance, these releases would have used a fraction of {price['share']} of the budget, "
            f"and {price['left']} would be left. {COMPARISON}"
        )
    else:
        echo_lines("Planned jointly in advance, these releases would have used as much of the budget.")


COMPARISON = "This is a comparison, not spendable budget: releases planned separately do not compose this way."


def show_history(entries: Sequence[Json]) -> None:
    """Print one line per entry."""
    from tightrope.ledger.state import fraction_text

    rows: list[list[str]] = []
    for entry in entries[-MOST_ENTRIES:]:
        spent, reserved = entry["state"]["balances"].get("total", ["0", "0"])
        left = fraction_text(1 - Fraction(spent) - Fraction(reserved))
        key = "" if entry["kind"] == "dataset" else escape_control_chars(entry["key"] or entry["body"].get("key", ""))
        kind, dataset = entry["body"].get("reading", entry["kind"]), escape_control_chars(entry["dataset"])
        rows.append([str(entry["number"]), entry["time"][:19], dataset, EVENTS.get(kind, kind), key, left])
    print_table(["entry", "time", "dataset", "event", "key", "budget left"], rows, left=5)
    if len(entries) > MOST_ENTRIES:
        echo_lines(f"... and {len(entries) - MOST_ENTRIES} earlier ones with --json")
