"""``tightrope ledger``: what was promised about a dataset, what is spent of it, and whether that is all true."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tightrope.cli.options import AsJson, PlanPath

if TYPE_CHECKING:
    from tightrope.certificates.release import LedgerEntry
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
group = typer.Typer(rich_markup_mode=None, no_args_is_help=True)
Place = Annotated[str, typer.Argument(metavar="LEDGER", help="A ledger's file, its postgresql:// URL, or a plan.")]
Dataset = Annotated[str | None, typer.Option(metavar="NAME", help="One dataset of several.")]
Note = Annotated[str, typer.Option(metavar="TEXT", help="What its owner wants to be remembered.")]
Certificates = Annotated[
    list[Path] | None, typer.Argument(metavar="[CERTIFICATE]...", help="Files certificate.json of releases.")
]


@group.command("open", epilog=OPEN_EXAMPLE)
def open_(path: PlanPath, note: Note = "", as_json: AsJson = False) -> None:
    """Declare a plan's dataset and budget in its ledger, and spend nothing."""
    from tightrope.release.documents.plan_file import load

    file = load(path)
    file.recorded(note=note or None)
    _shown([_ledger(path).account(file.dataset)], as_json)


@group.command("show", epilog=SHOW_EXAMPLE)
def show(place: Place, dataset: Dataset = None, as_json: AsJson = False) -> None:
    """Show what is spent, reserved and left, by date, and by which rule releases add up."""
    ledger = _ledger(place)
    _shown([ledger.account(name) for name in _datasets(ledger, place, dataset)], as_json)


@group.command("history", epilog=HISTORY_EXAMPLE)
def history(place: Place, dataset: Dataset = None, as_json: AsJson = False) -> None:
    """List every entry: declared, reserved, charged, answered, refused."""
    from tightrope.cli.ledger.view import show_history
    from tightrope.cli.output import print_json
    from tightrope.ledger import overview

    ledger = _ledger(place)
    wanted = _datasets(ledger, place, dataset)
    entries = overview.history([entry for entry in ledger.book.entries() if entry.dataset in wanted])
    if as_json:
        print_json({"document": "ledger history", "version": 1, "ledger": ledger.id, "entries": entries})
    else:
        show_history(entries)


@group.command("check", epilog=LEDGER_CHECK_EXAMPLE)
def check(place: Place, certificates: Certificates = None, as_json: AsJson = False) -> None:
    """Go through the ledger from its first entry: every hash, sum and guarantee, and certificates on disk."""
    from tightrope.cli.output import print_json, say, working
    from tightrope.errors import LedgerError
    from tightrope.ledger.check import check as checked

    ledger = _ledger(place)
    with working("Going through the ledger ..."):
        found = checked(ledger, _named(place, certificates or []))
    if as_json:
        print_json({
            "document": "ledger check", "version": 1, "ledger": ledger.id, "entries": found.entries,
            "guarantees": found.guarantees, "certificates": found.certificates, "problems": list(found.problems),
        })  # fmt: skip
    if found.problems:
        raise LedgerError(f"the ledger {ledger.name} does not hold: {'; '.join(found.problems)}")
    if not as_json:
        say(
            f"Entries: {found.entries}. Every hash follows from the one before, every sum from its history.",
            f"Guarantees computed again from their noise: {found.guarantees}. Certificates whose entries are there: "
            f"{found.certificates}.",
            *_unseen(ledger),
        )


@group.command("export", epilog=EXPORT_EXAMPLE)
def export(place: Place) -> None:
    """Print the whole ledger as one JSON object: every entry, and every longer text by its hash."""
    from tightrope.cli.output import print_json
    from tightrope.ledger import overview

    ledger = _ledger(place)
    entries = overview.history(ledger.book.entries())
    documents = ledger.book.documents()
    print_json({
        "document": "ledger", "version": 1, "ledger": ledger.id, "entries": entries, "documents": documents,
    })  # fmt: skip


def _unseen(ledger: Ledger) -> list[str]:
    """What a check cannot know."""
    if ledger.book.is_file:
        return ["An older copy that was put back with its .head file is found out by newer certificates alone."]
    return ["An older copy of the database that was put back is found out by newer certificates alone."]


def _ledger(place: str) -> Ledger:
    """The ledger of a plan, a file or a URL; it must be there."""
    from tightrope.ledger import Ledger
    from tightrope.release.documents.plan_file import load

    return Ledger(load(place).ledger if _is_plan(place) else place)


def _is_plan(place: str) -> bool:
    return place.endswith(".toml")


def _datasets(ledger: Ledger, place: str, dataset: str | None) -> list[str]:
    """The dataset that is named, the plan's, or all."""
    from tightrope.release.documents.plan_file import load

    if dataset is not None:
        return [ledger.account(dataset).name]
    return [load(place).dataset] if _is_plan(place) else ledger.datasets()


def _named(place: str, certificates: Sequence[Path]) -> list[LedgerEntry]:
    """What the certificates say of their entries; of a plan's own where none is named."""
    from tightrope.certificates.release import read_certificate
    from tightrope.errors import InputError

    beside = Path(place).parent / "certificate.json"
    paths = certificates or ([beside] if _is_plan(place) and beside.exists() else [])
    found: list[LedgerEntry] = []
    for path in paths:
        try:
            entry = read_certificate(path.read_text(encoding="utf-8")).entry
        except (OSError, UnicodeDecodeError):
            raise InputError("certificate", str(path), "a file certificate.json of a release") from None
        found += [] if entry is None else [entry]
    return found


def _shown(accounts: Sequence[Account], as_json: bool) -> None:
    from tightrope.cli.ledger.view import show_overview
    from tightrope.cli.output import print_json
    from tightrope.ledger.overview import overview

    views: list[dict[str, Any]] = [overview(account) for account in accounts]
    if as_json:
        print_json({"document": "ledger overview", "version": 1, "datasets": views})
        return
    for view in views:
        show_overview(view)
