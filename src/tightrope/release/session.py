"""A table, who a person is in it, and a budget that is charged before any noise is drawn."""

from __future__ import annotations

import os
import secrets
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self, Unpack, final

from tightrope.certificates.budget import Budget, Number, decimal, product
from tightrope.engines import attached, open_source
from tightrope.engines.snapshot.memory import refuse_large
from tightrope.errors import InputError
from tightrope.numerics.checks import whole
from tightrope.release.answering import prepared
from tightrope.release.costs.rows_of_person import refuse_each_row, rows_question, suggested_rows
from tightrope.release.costs.suggested import bounds_question, suggested_bounds
from tightrope.release.costs.tallies import sliver, with_tallies
from tightrope.release.drafting.arranged import allocated, arrangements
from tightrope.release.drafting.draft import Draft, group_sizes
from tightrope.release.drafting.wanted import accurate, wanted
from tightrope.release.plan import Plan
from tightrope.release.questions.asked import unwrapped
from tightrope.release.questions.tasks import Person, tasks_of
from tightrope.release.register import issue, open_charges, refuse_key
from tightrope.release.sealed import Sealed
from tightrope.release.stated.extremes import usable_delta
from tightrope.release.stated.people import person_of
from tightrope.release.stated.settings import Settings, settled, signature
from tightrope.release.totals.related import related

if TYPE_CHECKING:
    from decimal import Decimal

    from tightrope.design.allocation.allocation import Allocation
    from tightrope.engines import Table
    from tightrope.engines.schema import Schema
    from tightrope.ledger import Account, Limit
    from tightrope.release.costs.rows_of_person import SuggestedRows
    from tightrope.release.costs.suggested import SuggestedBounds
    from tightrope.release.questions.asked import Given
    from tightrope.release.questions.node import Question
    from tightrope.release.register import Charges
    from tightrope.release.series import Series


@final
class Session(Sealed):
    """Private questions about one table.

    ``source`` is a Parquet, CSV or DuckDB file (``table=``), a pandas, polars or Arrow table, or what
    ``tightrope.engines.open_source`` made of one (for a CSV file in another dialect). ``person`` names the column that
    says whose row it is, and ``rows_per_person`` how many of their rows count at most; ``person=None`` says that each
    row is a person; ``person=("tail", "an aircraft")`` says what a person is where it is no human. ``rows_per_group``
    and ``groups_per_person`` bound a person further (default: by ``rows_per_person`` alone). ``types`` declares the
    columns of a CSV file and those of a pandas frame that hold objects. ``lookup``: public tables (``tr.lookup``) whose
    columns rows get by a key.

    Neighbours: add or remove one person with all their rows. Several plans add up: their ε and δ (basic composition,
    valid for plans made after seeing earlier answers). Not recorded in a ledger: a second session starts afresh;
    ``Session.open`` opens one that is charged in a ledger, beside all others of its dataset.
    A session is sealed: it cannot be changed, copied or pickled, and a forked copy of its process cannot release.

    Raises ``InputError`` for bounds that are not whole numbers ≥ 1, ``SchemaError`` for a column that is not there.
    """

    __signature__ = signature("source")
    __slots__ = ("__weakref__", "_account", "_audience", "_budget", "_charges", "_person", "_reading", "_table")
    _account: Account | None
    _audience: str | None
    _budget: Budget
    _charges: Charges
    _person: Person
    _reading: threading.Lock
    _table: Table

    def __init__(self, source: object, **settings: Unpack[Settings]) -> None:
        said = settled(**settings)
        limits = said["rows_per_person"], said["rows_per_group"], said["groups_per_person"]
        bounds = person_of(said["person"], limits)
        opened = open_source(source, table=said["table"], types=said["types"])
        if bounds.column is not None:
            opened.schema.column(bounds.column)
        opened = attached(opened, said["lookup"])
        parts = {"_budget": said["budget"].share(1), "_charges": open_charges(), "_person": bounds, "_table": opened}
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
        identity = identity_of(dataset, opened._table.private, opened.person)
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

    def __repr__(self) -> str:
        whose = "each row" if self._person.column is None else f"all rows with one {self._person.column!r}"
        return f"<Session: a person is {whose}; {self._budget}>"

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
        costs: Number = 0,
    ) -> Plan:
        """The least noise for these questions within ``share`` of the budget; reads the schema only, spends nothing.

        ``where``: a condition on the rows of every question, besides the question's own.
        ``expected_rows`` states errors for groups of that size instead of 30, 100, 1 000 and 10 000. ``within`` turns
        it round: ``{"count_by_city": 50}`` takes the least share of the budget, up to ``share``, with which 95 % of
        these answers are within ± 50, or ``"5%"`` of ``expected_rows``; so does ``within`` in a question. ``key`` names
        the release in the ledger: under one key a plan is paid once, and tried again it gives the same answers. Raises
        ``PlanError`` or ``SchemaError`` for a question that cannot be asked, ``BudgetRefused`` where no noise will do,
        which says the least budget that is as accurate. ``costs=0.02`` takes at most 2 % of
        what is spent to count what bounding and clamping cost: rows that are left out, values beyond each end, missing
        fields (``Answers.costs``).
        """
        budget = self._budget.share(share)
        if budget.total_variation == 0:
            remedy = "attack_success = 0.5 (total_variation = 0) takes answers that ignore the data; 0.51 is strict"
            raise InputError("budget", str(budget), "one that lets answers depend on the data", remedy)
        asked = tasks_of(questions, self._person, self.schema, None if where is None else unwrapped(where))
        sums = related(asked, self.schema)
        arranged = arrangements(asked, {name for one in sums.joined for name in one.answers})
        ways = tuple(with_tallies(way, sliver(costs), self.schema) for way in arranged)
        for request in (task.request for way in ways for task in way):
            refuse_large(request, self.schema)
        tasks = ways[0]
        usable_delta(budget, tasks)
        public = self._table.public_for([task.request for task in tasks])
        goal, sizes = wanted(questions, within, expected_rows), group_sizes(expected_rows)
        most = decimal("share", share)

        def made(allocation: Allocation, kept: Budget, part: Decimal) -> Draft:
            return Draft(tasks, allocation, kept, part, self._person, sizes, public, sliver(costs), sums)

        if self._account is not None:
            from tightrope.release.drafting import moments

            limit = moments.limit_by_moments(self._account)
            if limit is not None:
                return self._issued(moments.drafted(limit, tasks, made, most, goal), key)

        def drafted(kept: Budget, part: Decimal, *, compare: bool = True, like: Draft | None = None) -> Draft:
            before = None if like is None else (like.tasks, like.allocation)
            own, allocation = allocated(ways, kept, compare=compare, like=before)
            return replace(made(allocation, kept, part), tasks=own, ways=ways)

        draft = drafted(budget, most) if goal is None else accurate(drafted, goal, self._budget, most)
        return self._issued(draft, key)

    def suggest_bounds(self, column: Given, *, share: Number, where: Given | None = None) -> SuggestedBounds:
        """A range for a column whose range nobody knows, for ``share`` of the budget, which is charged now.

        Counts the values along the whole axis, privately, and takes the range that holds nearly all of them; rough, and
        no better than what is publicly known, which costs nothing. ``print`` it for the warning.
        """
        question = bounds_question(column, where, self.schema)
        plan = self.plan([question], share=share)
        ((noise,),) = plan.noises()
        return suggested_bounds(question, plan.release(), noise)

    def suggest_rows_per_person(self, *, share: Number, where: Given | None = None) -> SuggestedRows:
        """A bound on the rows of a person where nobody knows one, for ``share`` of the budget, which is charged now.

        Counts persons by how many rows they have; a person is counted once, so the session's own bounds do not matter.
        ``print`` it for the warning. In a ledger the bounds of a dataset are fixed by its first release.
        """
        refuse_each_row(self._person)
        plan = self.plan([rows_question(where)], share=share)
        ((noise,),) = plan.noises()
        return suggested_rows(plan.release(), noise)

    def _issued(self, draft: Draft, key: str | None) -> Plan:
        """The draft with a way to release it: charged here, or in the ledger under a key."""
        if self._account is None:
            refuse_key(key)
            return Plan(draft, issue(self._charges, draft.share, prepared(draft, self._table, self._reading)))
        from tightrope.release.claims import claim_of
        from tightrope.release.recorded import recorded

        claim = claim_of(draft, secrets.token_hex(8) if key is None else key, self._audience)
        return Plan(draft, recorded(self._account, claim, draft, prepared(draft, self._table, self._reading)))

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

        how = self._audience, lambda draft: prepared(draft, self._table, self._reading)
        return series_of(self._account, plan.draft, whole("times", times), key, how)
