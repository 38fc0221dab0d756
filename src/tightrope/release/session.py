"""A table, who a person is in it, and a budget that is charged before any noise is drawn."""

from __future__ import annotations

import os
import re
import secrets
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any, NotRequired, Self, TypedDict, Unpack, final

from tightrope.certificates.budget import Budget, Number, decimal, product
from tightrope.design.allocation.allocation import allocate
from tightrope.engines import open_source
from tightrope.errors import InputError
from tightrope.numerics.checks import whole
from tightrope.release.answering import answering
from tightrope.release.certificate import certificate_of
from tightrope.release.draft import Draft, group_sizes, units_of
from tightrope.release.plan import Plan
from tightrope.release.questions.asked import unwrapped
from tightrope.release.questions.tasks import A_PERSON, Person, tasks_of, usable_delta
from tightrope.release.register import issue, open_charges
from tightrope.release.sealed import Sealed
from tightrope.release.wanted import accurate, wanted

if TYPE_CHECKING:
    from decimal import Decimal

    from tightrope.engines import Table
    from tightrope.engines.schema import Schema
    from tightrope.ledger import Account, Limit
    from tightrope.release.answers import Answers
    from tightrope.release.questions.asked import Given
    from tightrope.release.questions.node import Question
    from tightrope.release.register import Charges
    from tightrope.release.series import Series


class Settings(TypedDict):
    """What ``Session`` takes beside its source."""

    person: str | tuple[str | None, str] | None
    budget: Budget
    rows_per_person: NotRequired[int | None]
    rows_per_group: NotRequired[int | None]
    groups_per_person: NotRequired[int | None]
    table: NotRequired[str | None]
    types: NotRequired[Mapping[str, str] | None]


LIMITS = ("rows_per_person", "rows_per_group", "groups_per_person")
MEANS = re.compile(r"^an? [^ ].{0,60}$")


@final
class Session(Sealed):
    """Private questions about one table.

    ``source`` is a Parquet, CSV or DuckDB file (``table=``), a pandas, polars or Arrow table, or what
    ``tightrope.engines.open_source`` made of one (for a CSV file in another dialect). ``person`` names the column that
    says whose row it is, and ``rows_per_person`` how many of their rows count at most; ``person=None`` says that each
    row is a person; ``person=("tail", "an aircraft")`` says what a person is where it is no human. ``rows_per_group``
    and ``groups_per_person`` bound a person further (default: by ``rows_per_person`` alone). ``types`` declares the
    columns of a CSV file and those of a pandas frame that hold objects.

    Neighbours: add or remove one person with all their rows. Several plans add up: their ε and δ (basic composition,
    valid for plans made after seeing earlier answers). Not recorded in a ledger: a second session starts afresh;
    ``Session.open`` opens one that is charged in a ledger, beside all others of its dataset.
    A session is sealed: it cannot be changed, copied or pickled, and a forked copy of its process cannot release.

    Raises ``InputError`` for bounds that are not whole numbers ≥ 1, ``SchemaError`` for a column that is not there.
    """

    __slots__ = ("__weakref__", "_account", "_audience", "_budget", "_charges", "_person", "_reading", "_table")
    _account: Account | None
    _audience: str | None
    _budget: Budget
    _charges: Charges
    _person: Person
    _reading: threading.Lock
    _table: Table

    def __init__(
        self,
        source: object,
        *,
        person: str | tuple[str | None, str] | None,
        budget: Budget,
        rows_per_person: int | None = None,
        rows_per_group: int | None = None,
        groups_per_person: int | None = None,
        table: str | None = None,
        types: Mapping[str, str] | None = None,
    ) -> None:
        if not isinstance(budget, Budget):
            raise InputError("budget", budget, "a tr.Budget", "say budget=tr.Budget(epsilon=1, delta=1e-8)")
        column, means = person if isinstance(person, tuple) and len(person) == 2 else (person, A_PERSON)
        bounds = _person(column, means, (rows_per_person, rows_per_group, groups_per_person))
        opened = open_source(source, table=table, types=types)
        if bounds.column is not None:
            opened.schema.column(bounds.column)
        parts = {"_budget": budget.share(1), "_charges": open_charges(), "_person": bounds, "_table": opened}
        parts |= {"_reading": threading.Lock(), "_account": None, "_audience": None}
        for name, value in parts.items():
            object.__setattr__(self, name, value)

    @classmethod
    def open(
        cls,
        source: object,
        *,
        ledger: str | os.PathLike[str],
        dataset: str,
        limits: Sequence[Limit] = (),
        audience: str | None = None,
        note: str = "",
        **session: Unpack[Settings],
    ) -> Self:
        """A session that is charged in a ledger: a file, made here where there is none, or ``postgresql://...``.

        ``dataset`` is the table's name in the ledger: all sessions of one name share one budget, in every process and
        for good. ``limits`` bound it further, a year or an audience each; one that is called "total" is the whole
        budget and says by which rule releases add up. ``audience`` says who sees the answers
        (None: everybody); ``note`` is written down where the dataset is declared. ``session`` is what ``Session``
        takes. Raises ``InputError`` where the ledger has the dataset with another person, bounds, columns or promise,
        ``LedgerError`` where the ledger cannot be used.
        """
        from tightrope.ledger import Ledger
        from tightrope.release.claims import identity_of, with_total

        opened = cls(source, **session)
        declared = with_total(opened.budget, limits)
        identity = identity_of(dataset, opened.schema, opened.person)
        account = Ledger(ledger, create=True).declare(identity, declared, note=note)
        object.__setattr__(opened, "_account", account)
        object.__setattr__(opened, "_audience", audience)
        return opened

    def resumed(self, plan: Plan) -> Plan:
        """The plan, or where an equal one was charged and never answered the plan of that release: it costs no more."""
        if self._account is None:
            return plan
        from tightrope.release.claims import claim_of

        waiting = self._account.unanswered(claim_of(plan.draft, "-", self._audience).plan)
        return plan if waiting is None else self._issued(plan.draft, waiting)

    @property
    def budget(self) -> Budget:
        """What all releases of the session together keep."""
        return self._budget

    @property
    def person(self) -> Person:
        """What a person is, and how many of their rows count."""
        return self._person

    @property
    def schema(self) -> Schema:
        """Columns and their kinds; reading it reads no data."""
        return self._table.schema

    @property
    def spent(self) -> dict[str, Any]:
        """The share of the budget that has been charged, and what ε and δ that is: of all sessions, in a ledger."""
        if self._account is not None:
            from tightrope.release.claims import spending

            return spending(self._account)
        share = self._charges.total()
        points = [[str(product(epsilon, share)), str(product(delta, share))] for epsilon, delta in self._budget.points]
        return {"share": str(share), "points": points, "ledger": "not recorded in a ledger"}

    def plan(
        self,
        questions: Sequence[Question],
        *,
        where: Given | None = None,
        share: Number = 1,
        expected_rows: int | None = None,
        within: Mapping[str, Number | str] | None = None,
        key: str | None = None,
    ) -> Plan:
        """The least noise for these questions within ``share`` of the budget; reads the schema only, spends nothing.

        ``where``: a condition on the rows of every question, besides the question's own.
        ``expected_rows`` states errors for groups of that size instead of 30, 100, 1 000 and 10 000. ``within`` turns
        it round: ``{"count_by_city": 50}`` takes the least share of the budget, up to ``share``, with which 95 % of
        these answers are within ± 50, or ``"5%"`` of ``expected_rows``; so does ``within`` in a question. ``key`` names
        the release in the ledger: under one key a plan is paid once, and tried again it gives the same answers. Raises
        ``PlanError`` or ``SchemaError`` for a question that cannot be asked, ``BudgetRefused`` where no noise will do,
        which says the least budget that is as accurate.
        """
        budget = self._budget.share(share)
        if budget.total_variation == 0:
            remedy = "attack_success = 0.5 (total_variation = 0) takes answers that ignore the data; 0.51 is strict"
            raise InputError("budget", str(budget), "one that lets answers depend on the data", remedy)
        tasks = tasks_of(questions, self._person, self.schema, None if where is None else unwrapped(where))
        usable_delta(budget, tasks)
        goal, sizes = wanted(questions, within, expected_rows), group_sizes(expected_rows)
        most = decimal("share", share)
        if self._account is not None:
            from tightrope.release import moments

            limit = moments.limit_by_moments(self._account)
            if limit is not None:
                return self._issued(moments.drafted(limit, (tasks, self._person, sizes), most, goal), key)

        def drafted(kept: Budget, part: Decimal, *, compare: bool = True) -> Draft:
            allocation = allocate(units_of(tasks), kept, compare=compare)
            return Draft(tasks, allocation, kept, part, self._person, sizes)

        draft = drafted(budget, most) if goal is None else accurate(drafted, goal, self._budget, most)
        return self._issued(draft, key)

    def _issued(self, draft: Draft, key: str | None) -> Plan:
        """The draft with a way to release it: charged here, or in the ledger under a key."""
        if self._account is None:
            _refuse_key(key)
            return Plan(draft, issue(self._charges, draft.share, self._answering(draft)))
        from tightrope.release.claims import claim_of
        from tightrope.release.recorded import recorded

        claim = claim_of(draft, secrets.token_hex(8) if key is None else key, self._audience)
        return Plan(draft, recorded(self._account, claim, draft, self._answering(draft)))

    def series(self, plan: Plan, *, times: int, key: str) -> Series:
        """Reserve the plan's share for ``times`` releases of its questions, each when its data come.

        The noise is the least for which all of them *together* keep the share, composed exactly, and the same for
        each: less than that of equal parts, and much less where there are several questions. The ``key`` names the
        series in the ledger: called again, in a later session too, it goes on. What is reserved is not given back.
        Raises ``InputError`` without a ledger or where the key is another series', and ``BudgetRefused``.
        """
        if self._account is None:
            raise InputError("series", key, "one in a ledger", "open the session with tr.Session.open(..., ledger=...)")
        from tightrope.release.series import series_of

        return series_of(self._account, plan.draft, whole("times", times), key, (self._audience, self._answering))

    def _answering(self, draft: Draft) -> Callable[[], AbstractContextManager[Callable[[], Answers]]]:
        """Certify, read the rows once and count them; what is then left to do is paid for: to draw.

        So no file, no engine, no full disk and no short memory can fail at a cost. One release reads at a time, for
        they share a connection.
        """
        table, reading = self._table, self._reading

        @contextmanager
        def read() -> Iterator[Callable[[], Answers]]:
            answer = answering(draft, certificate_of(draft))
            requests = [task.request for task in draft.tasks]
            with reading, table.snapshot(requests) as rows:
                exact = [rows.collect(request) for request in requests]
            yield lambda: answer(exact)

        return read


def _refuse_key(key: str | None) -> None:
    if key is not None:
        remedy = "open the session with tr.Session.open(..., ledger=..., dataset=...)"
        raise InputError("key", key, "left out where there is no ledger", remedy)


def _person(person: object, means: object, limits: tuple[int | None, int | None, int | None]) -> Person:
    if not (isinstance(means, str) and MEANS.fullmatch(means) and means.isprintable()):
        raise InputError("person", means, "a noun with its article behind the column", "('tail', 'an aircraft')")
    rows, per_group, groups = limits
    if person is None:
        for name, value in zip(LIMITS, limits, strict=True):
            if value not in (None, 1):
                remedy = "each row is a person; or name the person column"
                raise InputError(name, value, "left out when person=None", remedy)
        return Person(None, 1, 1, 1, means)
    if not isinstance(person, str) or not person:
        raise InputError("person", person, "the name of a column, or None when each row is a person")
    if rows is None:
        remedy = "how many rows of one person may count at most?"
        raise InputError("rows_per_person", rows, "a whole number >= 1", remedy)
    rows = whole("rows_per_person", rows)
    return Person(
        person,
        rows,
        rows if per_group is None else whole("rows_per_group", per_group),
        rows if groups is None else whole("groups_per_person", groups),
        means,
    )
