"""A table, who a person is in it, and a budget that is charged before any noise is drawn."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from tightrope.certificates.budget import Budget, Number
from tightrope.design.allocation.allocation import allocate
from tightrope.engines import open_source
from tightrope.errors import BudgetRefused, InputError
from tightrope.numerics.checks import whole
from tightrope.release.answering import answer_tasks
from tightrope.release.answers import Answers
from tightrope.release.certificate import certificate_of
from tightrope.release.plan import Plan, group_sizes
from tightrope.release.questions.tasks import Person, tasks_of

if TYPE_CHECKING:
    from tightrope.engines import Table
    from tightrope.engines.schema import Schema
    from tightrope.release.questions.node import Question


@dataclass(slots=True)
class Spent:
    """The share of the budget that is gone; charged atomically."""

    total: Decimal = Decimal(0)
    lock: threading.Lock = field(default_factory=threading.Lock)
    process: int = field(default_factory=os.getpid)

    def charge(self, share: Decimal) -> None:
        """Take a share, or raise ``BudgetRefused`` and take nothing; in the process that opened the session only."""
        if os.getpid() != self.process:
            raise BudgetRefused(
                f"this session was opened in process {self.process}, and a forked copy would spend its budget again; "
                f"release in the process that opened it"
            )
        with self.lock:
            if not self.total + share <= 1:
                left = 1 - self.total
                raise BudgetRefused(
                    f"this release needs a share of {share} of the budget and {left} is left; "
                    f"plan with share={left} or less, or open a session with a larger budget"
                )
            self.total += share


class Session:
    """Private questions about one table.

    ``source`` is a Parquet, CSV or DuckDB file (``table=``), a pandas, polars or Arrow table, or what
    ``tightrope.engines.open_source`` made of one (for a CSV file in another dialect). ``person`` names the column that
    says whose row it is, and ``rows_per_person`` how many of their rows count at most; ``person=None`` says that each
    row is a person. ``rows_per_group`` and ``groups_per_person`` bound a person further (default: by
    ``rows_per_person`` alone). ``types`` declares the columns of a CSV file and those of a pandas frame that hold
    objects.

    Neighbours: add or remove one person with all their rows. Several plans add up: their ε and δ (basic composition,
    valid for plans made after seeing earlier answers). Not recorded in a ledger: a second session starts afresh.
    Raises ``InputError`` for bounds that are not whole numbers ≥ 1, ``SchemaError`` for a column that is not there.
    """

    def __init__(
        self,
        source: object,
        *,
        person: str | None,
        budget: Budget,
        rows_per_person: int | None = None,
        rows_per_group: int | None = None,
        groups_per_person: int | None = None,
        table: str | None = None,
        types: Mapping[str, str] | None = None,
    ) -> None:
        if not isinstance(budget, Budget):
            raise InputError("budget", budget, "a tr.Budget", "say budget=tr.Budget(epsilon=1, delta=1e-8)")
        self.budget = budget
        self.person = _person(person, rows_per_person, rows_per_group, groups_per_person)
        self._table: Table = open_source(source, table=table, types=types)
        if person is not None:
            self._table.schema.column(person)
        self._spent = Spent()

    @property
    def schema(self) -> Schema:
        """Columns and their kinds; reading it reads no data."""
        return self._table.schema

    @property
    def spent(self) -> dict[str, Any]:
        """The share of the budget that has been charged, and what ε and δ that is."""
        share = self._spent.total
        points = [[str(epsilon * share), str(delta * share)] for epsilon, delta in self.budget.points]
        return {"share": str(share), "points": points, "ledger": "not recorded in a ledger"}

    def plan(self, questions: Sequence[Question], *, share: Number = 1, expected_rows: int | None = None) -> Plan:
        """The least noise for these questions within ``share`` of the budget; reads the schema only, spends nothing.

        ``expected_rows`` states errors for groups of that size instead of 30, 100, 1 000 and 10 000. Raises
        ``PlanError`` or ``SchemaError`` for a question that cannot be asked, ``BudgetRefused`` where no noise will do.
        """
        budget = self.budget.share(share)
        if not budget.delta > 0:
            raise InputError("delta", budget.delta, "above 0 for a release", "1e-12 costs next to nothing")
        tasks = tasks_of(questions, self.person, self.schema)
        allocation = allocate([task.unit for task in tasks], budget)
        sizes = group_sizes(expected_rows)
        return Plan(tasks, allocation, budget, Decimal(str(share)), self.person, sizes, self._release)

    def _release(self, plan: Plan) -> Answers:
        """Certify, read the rows once, charge, then count and draw: a source that cannot be read costs nothing."""
        certificate = certificate_of(plan)
        with self._table.snapshot([task.request for task in plan.tasks]) as rows:
            self._spent.charge(plan.share)
            return answer_tasks(plan, rows, certificate)


def _person(person: str | None, rows: int | None, per_group: int | None, groups: int | None) -> Person:
    if person is None:
        for name, value in (("rows_per_person", rows), ("rows_per_group", per_group), ("groups_per_person", groups)):
            if value not in (None, 1):
                raise InputError(
                    name, value, "left out when person=None", "each row is a person; or name the person column"
                )
        return Person(None, 1, 1, 1)
    if not isinstance(person, str) or not person:
        raise InputError("person", person, "the name of a column, or None when each row is a person")
    if rows is None:
        raise InputError(
            "rows_per_person", rows, "a whole number >= 1", "how many rows of one person may count at most?"
        )
    rows = whole("rows_per_person", rows)
    return Person(
        person,
        rows,
        rows if per_group is None else whole("rows_per_group", per_group),
        rows if groups is None else whole("groups_per_person", groups),
    )
