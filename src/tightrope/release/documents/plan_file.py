"""A plan in a file: TOML that is checked key by key and becomes a session and its questions.

``docs/plan-file.md`` describes every key. Each mistake is one ``PlanError`` that says where it is and what to try.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tightrope.certificates.budget import Budget, Number
from tightrope.errors import InputError, PlanError, listed, nearest
from tightrope.release.documents.toml_file import Section, Typed, placed, read_toml
from tightrope.release.plan import Plan
from tightrope.release.questions.asked import ENTRIES
from tightrope.release.questions.kinds import KINDS
from tightrope.release.questions.node import Question
from tightrope.release.session import Session

START = "write a plan for your data with: tightrope init DATA --person COLUMN"
WHO = 'say column = "...": all rows of one person are hidden together; or each_row = true where nobody has two rows'


@dataclass(frozen=True, slots=True)
class PlanFile:
    """A plan as it was written: ``session()`` opens the table, ``plan()`` chooses the noise; neither spends."""

    title: str | None
    folder: Path
    source: Path
    settings: Mapping[str, Any]
    """The arguments of ``Session`` besides the source."""
    questions: tuple[Question, ...]
    share: Number
    expected_rows: int | None

    def session(self) -> Session:
        """The table with its person and budget; reads the schema only."""
        return Session(self.source, **self.settings)

    def plan(self) -> Plan:
        """The least noise for the questions; reads the schema only, spends nothing."""
        return self.session().plan(self.questions, share=self.share, expected_rows=self.expected_rows)


def load(path: str | Path) -> PlanFile:
    """The plan in a file. Paths in it are relative to it. Raises ``PlanError`` for anything that is not a plan."""
    place = Path(path)
    top = Section.of(
        "the plan", read_toml(place, START), ("title", "expected_rows", "source", "person", "budget", "question")
    )
    source, settings = _source(top, place.parent)
    budget, share = _budget(top)
    return PlanFile(
        title=top.text("title"),
        folder=place.parent,
        source=source,
        settings={**settings, **_person(top), "budget": budget},
        questions=_questions(top.entries.get("question")),
        share=share,
        expected_rows=top.whole("expected_rows"),
    )


def _source(top: Section, folder: Path) -> tuple[Path, dict[str, Any]]:
    own = Section.of("[source]", top.entries.get("source", {}), ("path", "table", "types"))
    typed = own.needed("path", "the path of the data in quotes", 'say path = "people.parquet"')
    path = folder / typed
    if not path.is_file():
        raise PlanError("[source] path", typed, f"a file that exists ({path})", "paths are relative to the plan")
    return path, {"table": own.text("table"), "types": _types(own)}


def _types(source: Section) -> dict[str, str] | None:
    """Kinds of columns; the table itself says what it has, so only the form is checked here."""
    types = source.entries.get("types")
    if types is None:
        return None
    own = Section.of("[source.types]", types, tuple(types) if isinstance(types, Mapping) else ())
    return {column: own.needed(column, "a kind in quotes", 'say "number"') for column in own.entries}


def _person(top: Section) -> dict[str, Any]:
    own = Section.of(
        "[person]", top.entries.get("person", {}), ("column", "each_row", "rows", "rows_per_group", "groups")
    )
    column, each_row = own.text("column"), own.flag("each_row")
    rows, per_group, groups = own.whole("rows"), own.whole("rows_per_group"), own.whole("groups")
    if (column is None) != each_row:
        raise PlanError("[person]", dict(own.entries), "either a column or each_row = true", WHO)
    if each_row and not {rows, per_group, groups} <= {None, 1}:
        raise PlanError("[person]", dict(own.entries), "each_row = true alone", "a person with one row has no bounds")
    if column is not None and rows is None:
        raise PlanError("[person] rows", rows, "a whole number >= 1", "how many rows of one person may count at most?")
    return {"person": column, "rows_per_person": rows, "rows_per_group": per_group, "groups_per_person": groups}


def _budget(top: Section) -> tuple[Budget, Number]:
    """The budget, and the share of it that this plan may spend."""
    known = ("epsilon", "delta", "attack_success", "points", "share")
    own = Section.of("[budget]", top.entries.get("budget", {}), known)
    with placed("[budget]"):
        if not isinstance(own.entries.get("points", []), list):
            raise InputError("points", own.entries["points"], "a list of pairs", "say points = [[1, 1e-6]]")
        budget = Budget(**{key: value for key, value in own.entries.items() if key != "share"})
        budget.share(share := own.entries.get("share", 1))
        return budget, share


def _questions(listing: object) -> tuple[Question, ...]:
    if not isinstance(listing, list) or not listing:
        raise PlanError(
            "question", listing, "one [[question]] table or more", "write [[question]] with double brackets"
        )
    return tuple(_question(f"question {number}", entry) for number, entry in enumerate(listing, start=1))


def _question(place: str, entry: object) -> Question:
    kind = entry.get("kind") if isinstance(entry, Mapping) else None
    if kind not in tuple(KINDS):
        raise PlanError(f"{place} kind", kind, f"one of {listed(tuple(KINDS))}", nearest(kind, tuple(KINDS)))
    node = KINDS[kind]
    own = Section.of(f"{place}, a {kind}", entry, ("kind", *node.entries, *ENTRIES))
    with placed(place):
        return node.from_entry(_plain(own.entries))


def _plain(value: Any) -> Any:
    """Values as Python numbers: a column of numbers holds floats."""
    if isinstance(value, Typed):
        return float(value)
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else value
