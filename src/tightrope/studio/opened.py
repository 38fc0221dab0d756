"""What the studio was opened on: the tables of a plan, given or begun for a file of data, and where it is saved."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from pathlib import Path, PurePath
from typing import Any

from msgspec.structs import replace

from tightrope.engines import Column, open_source
from tightrope.errors import InputError
from tightrope.release.documents.plan_document import PlanDocument
from tightrope.release.documents.plan_file import PLAN_FILE, PlanFile, load, parsed
from tightrope.release.documents.sections import DATABASES
from tightrope.studio.wishes import SAID, Promise, Who, Wish, Wishes

USUAL = Promise(said="attack_success", value=Decimal("0.6"), delta=Decimal("1e-8"))
COSTS = Decimal("0.02")
"""The part of the budget that counts what bounds left out, as ``tightrope init`` has it."""


@dataclass(frozen=True)
class Opened:
    """A plan's ``tables`` as its file has them, the ``columns`` of its table, and the file ``out`` to be saved.

    ``given``: whether there was a plan, whose own questions can then be kept. Nothing here is a value of the data.
    """

    tables: Mapping[str, Any]
    out: Path
    columns: tuple[Column, ...]
    given: bool

    @property
    def typeless(self) -> bool:
        """Whether the types of columns have to be declared: it is a CSV file."""
        return str(self.tables["source"].get("path", "")).lower().endswith(".csv")

    def file(self, tables: Mapping[str, Any]) -> PlanFile:
        """The plan that these tables are, as if it were saved."""
        return PlanFile(parsed(tables), self.out.parent)

    @cached_property
    def asked(self) -> tuple[str, ...]:
        """The plan's own questions, in words."""
        return tuple(map(str, parsed(self.tables).questions())) if self.given else ()

    @cached_property
    def wishes(self) -> Wishes:
        """What the page shows at first: what the plan says, or one count under a usual promise of nobody yet."""
        if not self.given:
            return Wishes(
                title=self.tables["title"], who=Who(), promise=USUAL, questions=(Wish(kind="count"),), share=Decimal(1)
            )
        document = parsed(self.tables)
        return Wishes(
            title=document.title,
            who=_who(document),
            promise=_promise(document),
            share=document.budget.share,
            questions=tuple(Wish(kept=number) for number in range(len(document.question))),
            types=document.source.types or {},
            expected_rows=document.expected_rows,
        )

    @property
    def likely(self) -> Wishes:
        """The same with each row a person where nobody said who is one: to be computed before it is said."""
        unsaid = self.wishes.who == Who()
        return replace(self.wishes, who=Who(each_row=True)) if unsaid else self.wishes


def opened(given: str, out: str | None, *, table: str | None = None) -> Opened:
    """A plan (``.toml``) or a table opened: its schema is read, never a value. Raises ``InputError``."""
    if given.lower().endswith(".toml"):
        if table is not None:
            raise InputError("table", table, "left out beside a plan", "the plan names its table")
        return _plan(Path(given), out)
    return _data(given, Path(out or "plan.toml"), table)


def _plan(path: Path, out: str | None) -> Opened:
    file = load(path)
    target = path.with_name(f"{path.stem}-studio.toml") if out is None else Path(out)
    if target.absolute().parent != path.absolute().parent:
        raise InputError("out", str(target), f"a file in {path.parent}", "paths in a plan are relative to it")
    return Opened(PLAN_FILE.tables(path), target, file.session().schema.columns, given=True)


def _data(given: str, out: Path, table: str | None) -> Opened:
    columns = open_source(given, table=table).schema.columns
    in_database = given.startswith(DATABASES)
    named = {} if table is None else {"table": table}
    source = {"postgres": given, **named} if in_database else {"path": _relative(given, out), **named}
    title = (table or "table") if in_database else PurePath(given).stem
    return Opened({"title": title, "source": source, "budget": {"costs": COSTS}}, out, columns, given=False)


def _relative(data: str, plan: Path) -> str:
    """The path of the data as the plan will have it: relative to the plan, or absolute on another drive."""
    try:
        return Path(os.path.relpath(data, plan.parent)).as_posix()
    except ValueError:
        return Path(data).absolute().as_posix()


def _who(document: PlanDocument) -> Who:
    person = document.person
    return Who(
        column=person.column,
        each_row=person.column is None,
        rows=person.rows,
        rows_per_group=person.rows_per_group,
        groups=person.groups,
        means=person.means,
    )


def _promise(document: PlanDocument) -> Promise | None:
    """The plan's promise where a slider can say it: not several points."""
    budget = document.budget
    said = [name for name in SAID if getattr(budget, name, None) is not None]
    if len(said) != 1 or budget.points is not None or budget.delta is None:
        return None
    return Promise(said=said[0], value=getattr(budget, said[0]), delta=budget.delta)
