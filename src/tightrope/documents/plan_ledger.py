"""The ledger of a plan file and the name of its dataset: the part of a plan that showing a ledger needs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, NamedTuple

from msgspec import Meta

from tightrope.documents.document import Part
from tightrope.documents.reader import Reader, missing_field_tip
from tightrope.errors import PlanError

LEDGER_FILE = "tightrope.ledger"
"""Default ledger file, in the plan's folder."""
PLAN_FILE = Reader(
    "the plan", "write a plan for your data with: tightrope init DATA --privacy-unit COLUMN", PlanError, by_hand=True
)
Text = Annotated[str, Meta(min_length=1), missing_field_tip("put it in quotes")]


class _SourceNames(Part, frozen=True, kw_only=True):
    path: Text | None = None
    spark: Text | None = None
    postgres: Text | None = None
    table: Text | None = None
    types: Any = None
    dialect: Any = None


class _LedgerNames(Part, frozen=True, kw_only=True):
    path: Text = LEDGER_FILE
    dataset: Text | None = None
    note: Any = None
    audience: Any = None
    times: Any = None
    series: Any = None
    date: Any = None
    dates: Any = None
    limit: Any = None


class _PlanNames(Part, frozen=True, kw_only=True):
    """A plan of which only the names in ``source`` and ``ledger`` are read; other sections may have any content.

    All keys of these three tables are listed, so that a misspelled one is an error here too.
    """

    document: Any = None
    version: Any = None
    title: Any = None
    description: Any = None
    origin: Any = None
    publisher: Any = None
    date: Any = None
    contact: Any = None
    expected_rows: Any = None
    where: Any = None
    source: _SourceNames
    privacy_unit: Any = None
    budget: Any = None
    public_table: Any = None
    ledger: _LedgerNames = _LedgerNames()
    question: Any = None
    comparison: Any = None
    marginals: Any = None


class LedgerPlace(NamedTuple):
    """The location of a plan's ledger, and the name of the plan's dataset in it."""

    location: str
    dataset: str


def read_ledger_place(plan: Path) -> LedgerPlace | None:
    """Return the ledger and the dataset of a plan whose paths are files; None for a plan with a URL.

    A URL may hold a password, so a plan with one is checked as a whole before a part of the URL could be shown.
    Raises ``PlanError`` for a file that cannot be read, an unknown key, or a name of another type.
    """
    names = PLAN_FILE.convert_data({"source": {}, **PLAN_FILE.parse_toml(plan)}, _PlanNames)
    source, ledger = names.source, names.ledger
    path = source.path or source.spark
    if path is None or any("://" in place for place in (path, ledger.path)):
        return None
    dataset = dataset_name(plan.parent / path, source.table, ledger.dataset)
    return LedgerPlace(ledger_location(plan.parent, ledger.path), dataset)


def ledger_location(folder: Path, path: str) -> str:
    """Return the location of the ledger of a plan in this folder: a URL, or a file.

    >>> ledger_location(Path("plans"), "visits.ledger"), ledger_location(Path("plans"), "postgresql://host/visits")
    ('plans/visits.ledger', 'postgresql://host/visits')
    """
    return path if "://" in path else str(folder / path)


def dataset_name(source: Path | str, table: str | None, declared: str | None) -> str:
    """Return the name of a table in the ledger: as declared, else from the names of the file and the table in it.

    >>> dataset_name("postgresql://host/clinic", "visits", None), dataset_name(Path("a.csv"), None, "patients")
    ('clinic: visits', 'patients')
    """
    if declared is not None:
        return declared
    # resolve links: another link to a file is the same dataset
    file_name = source.resolve().name if isinstance(source, Path) else source.rstrip("/").rpartition("/")[2]
    return file_name if table is None else f"{file_name}: {table}"
