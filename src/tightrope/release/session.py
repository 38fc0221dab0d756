"""A table, who a person is in it, and a budget that is charged before any noise is drawn."""

from __future__ import annotations

import os
import secrets
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self, Unpack, final

from tightrope.documents.budget import Budget, Number, at_most, decimal, product
from tightrope.errors import BudgetRefused, InputError, LedgerError
from tightrope.ledger.chain import digest
from tightrope.ledger.identity import SeriesClaim, date_of_series
from tightrope.ledger.noise_record import Recipe
from tightrope.numerics.checks import whole
from tightrope.queries.options import unwrapped
from tightrope.queries.query_group import Person, tasks_of
from tightrope.release.bias_check import sliver, with_tallies
from tightrope.release.build_answers import prepared
from tightrope.release.consistency import related
from tightrope.release.draft import Draft, Tasks, allocated, arrangements, group_sizes, units_of
from tightrope.release.draft_search import (
    accuracy_target,
    accurate,
    allocation_of,
    budget_of_share,
    fitted,
    limit_by_moments,
)
from tightrope.release.execution import claim_of, plan_digest, recorded
from tightrope.release.plan import Plan, Sealed
from tightrope.release.plan_register import issue, open_charges, refuse_key
from tightrope.release.settings import Settings, person_of, settled, signature, usable_delta
from tightrope.release.suggest import bounds_question, refuse_each_row, rows_question, suggested_bounds, suggested_rows
from tightrope.tables import attached, open_source
from tightrope.tables.memory import refuse_large

if TYPE_CHECKING:
    from decimal import Decimal

    from tightrope.ledger import Account, Limit
    from tightrope.noise.allocation import Allocation
    from tightrope.queries.options import Given
    from tightrope.queries.query import Question
    from tightrope.release.answers import Answers
    from tightrope.release.plan_register import Charges
    from tightrope.release.suggest import SuggestedBounds, SuggestedRows
    from tightrope.tables import Table
    from tightrope.tables.schema import Schema

# A fixed plan for several dates: declared together, reserved together, released one by one.

Answering = Callable[["Draft"], Callable[[], AbstractContextManager[Callable[[], "Answers"]]]]
How = tuple[str | None, Answering]
"""Who sees the answers, and what prepares a release of a draft."""


@final
class Series(Sealed):
    """``times`` releases of one plan that a ledger reserved: ``next()`` is the plan of the first that has no answers.

    All of them together keep the share that was planned, composed exactly, for noise that was fixed beforehand. What a
    person adds may be in the data of any number of the dates; per date the session's bounds hold.
    """

    __slots__ = ("_account", "_draft", "_how", "_key", "_times")
    _account: Account
    _draft: Draft
    _how: How
    _key: str
    _times: int

    def __init__(self, account: Account, draft: Draft, times: int, key: str, how: How) -> None:
        parts: dict[str, Any] = {"_account": account, "_draft": draft, "_how": how, "_key": key, "_times": times}
        for name, value in parts.items():
            object.__setattr__(self, name, value)

    @property
    def times(self) -> int:
        """How many releases were declared."""
        return self._times

    @property
    def released(self) -> int:
        """How many were charged so far."""
        return self._account.state().series[self._key].done

    def next(self, key: str | None = None) -> Plan:
        """The plan of the next date; of one that was charged and may read once more, where there is one.

        With the ``key`` of a date (its certificate names it) the plan is that date's: released again it is free.
        Raises ``BudgetRefused`` where all are released.
        """
        if key is not None:
            return self._plan(self._checked_key(key))
        done = self.released
        waiting = (place for place in range(1, done + 1) if self._account.may_read(self._name(place)))
        place = next(waiting, done + 1)
        if place > self._times:
            raise BudgetRefused(
                f"all {self._times} releases of the series {self._key!r} were released; declare another series, or "
                f"plan with what is left"
            )
        return self._plan(self._name(place))

    def _checked_key(self, key: str) -> str:
        names = [self._name(place) for place in range(1, self.released + 1)]
        if key not in names:
            raise InputError("key", key, f"one of {names}", "leave it out for the next date")
        return key

    def _plan(self, key: str) -> Plan:
        audience, answering = self._how
        claim = claim_of(self._draft, key, audience)
        return Plan(self._draft, recorded(self._account, claim, self._draft, answering(self._draft), self._key))

    def _name(self, place: int) -> str:
        return date_of_series(self._key, place, self._times)


def series_of(account: Account, draft: Draft, times: int, key: str, how: How) -> Series:
    """The series of this key: found with its noise, or planned and reserved."""
    limit = limit_by_moments(account)
    said = draft if limit is None else replace(draft, budget=limit.budget.share(draft.share))
    plan = digest(f"{plan_digest(said, how[0])} {times}")
    found = account.reserved(key)
    recipe = _planned(draft, times, limit) if found is None else Recipe.from_text(found[1])
    if found is not None and found[0].body_data["plan"] != plan:
        raise InputError("key", key, "new, or that of this very series", "the questions, the share and times are fixed")
    promised = draft.budget if limit is None else budget_of_share(limit, recipe.loss(times), draft.share)
    entry = account.reserve(SeriesClaim(key, plan, promised, times, recipe.text, how[0]))
    first = account.reserved(key)
    if first is not None and found is None:
        recipe = Recipe.from_text(first[1])  # of two processes that reserve at once, the noise of the first
    # The tasks as the noise that was reserved has them: it is kept, whatever would be chosen today.
    arranged_found = next((tasks for tasks in _arrangements(draft) if tuple(units_of(tasks)) == recipe.units), None)
    if arranged_found is None:
        raise LedgerError(
            "the noise that was reserved for this series fits none of the ways in which this version arranges its "
            "questions; release the dates that are left with the version that reserved them"
        )
    own = replace(draft, tasks=arranged_found, budget=Budget(**entry.body_data["kept"]))
    return Series(account, replace(own, allocation=allocation_of(recipe)), entry.body_data["times"], key, how)


def _arrangements(draft: Draft) -> tuple[Tasks, ...]:
    return draft.ways or (draft.tasks,)


def _planned(draft: Draft, times: int, limit: Limit | None) -> Recipe:
    """The least noise for which all releases together keep the draft's budget, or its share of a limit's moments.

    Each is given that of the first.
    """
    if limit is not None:
        return fitted(tuple(units_of(draft.tasks)), limit, draft.share, times)
    tasks, together = allocated(_arrangements(draft), draft.budget, times=times)
    units = tuple(units_of(tasks))
    one = Recipe(units, together.choices[: len(units)], together.window, together.alternatives, together.spare)
    return one.closer(at_most(draft.budget.delta))


@final
class Session(Sealed):
    """Private questions about one table.

    ``source`` is a Parquet, CSV or DuckDB file (``table=``), a pandas, polars or Arrow table, or what
    ``tightrope.tables.open_source`` made of one (for a CSV file in another dialect). ``person`` names the column that
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
        from tightrope.release.execution import identity_of, with_total

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
        from tightrope.release.execution import claim_of

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
            from tightrope.release.execution import spending

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
        goal, sizes = accuracy_target(questions, within, expected_rows), group_sizes(expected_rows)
        most = decimal("share", share)

        def draft_for(allocation: Allocation, kept: Budget, part: Decimal) -> Draft:
            return Draft(tasks, allocation, kept, part, self._person, sizes, public, sliver(costs), sums)

        if self._account is not None:
            from tightrope.release import draft_search

            limit = draft_search.limit_by_moments(self._account)
            if limit is not None:
                return self._issued(draft_search.drafted(limit, tasks, draft_for, most, goal), key)

        def drafted(kept: Budget, part: Decimal, *, compare: bool = True, like: Draft | None = None) -> Draft:
            before = None if like is None else (like.tasks, like.allocation)
            own, allocation = allocated(ways, kept, compare=compare, like=before)
            return replace(draft_for(allocation, kept, part), tasks=own, ways=ways)

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
        from tightrope.release.execution import claim_of, recorded

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

        how = self._audience, lambda draft: prepared(draft, self._table, self._reading)
        return series_of(self._account, plan.draft, whole("times", times), key, how)
