"""Sessions: a table, its privacy unit, and a budget that is charged before noise is drawn."""

from __future__ import annotations

import os
import secrets
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self, final

from tightrope.documents.budget import Budget, Number, at_most, exact_decimal, exact_product
from tightrope.documents.escaping import escape_control_chars
from tightrope.errors import InputError, InsufficientBudgetError, LedgerError
from tightrope.ledger.chain import sha256_hex
from tightrope.ledger.identity import SeriesClaim, date_of_series
from tightrope.ledger.noise_record import NoiseRecord
from tightrope.numerics.checks import check_integer
from tightrope.queries.options import unwrap_expression
from tightrope.queries.query_group import PrivacyUnit, group_queries
from tightrope.release.bias_check import add_diagnostic_counts, bias_check_fraction
from tightrope.release.build_answers import prepare_release
from tightrope.release.consistency import find_related_answers
from tightrope.release.draft import (
    NoisePlan,
    Tasks,
    allocate_best_arrangement,
    composition_groups_of,
    group_sizes,
    list_arrangements,
)
from tightrope.release.draft_search import (
    accuracy_target,
    allocation_of,
    budget_of_share,
    fit_noise_to_share,
    limit_by_moments,
    minimal_budget_for,
)
from tightrope.release.execution import claim_of, ledger_release_handle, plan_digest
from tightrope.release.plan import Plan, SingleUseObject
from tightrope.release.plan_register import issue_plan, open_account, refuse_key
from tightrope.release.settings import UnitSpec, check_delta, person_of
from tightrope.release.suggest import bounds_question, refuse_each_row, rows_question, suggested_bounds, suggested_rows
from tightrope.tables import PublicTableSource, attach_public_tables, open_source
from tightrope.tables.memory import check_row_memory

if TYPE_CHECKING:
    from decimal import Decimal

    from tightrope.ledger import Account, Limit
    from tightrope.noise.allocation import NoiseAllocation
    from tightrope.queries.options import Given
    from tightrope.queries.query import Query
    from tightrope.release.answers import Answers
    from tightrope.release.plan_register import InMemoryAccount
    from tightrope.release.suggest import SuggestedBounds, SuggestedRows
    from tightrope.tables import Table
    from tightrope.tables.schema import Schema

# Series: a fixed plan for several dates, declared and reserved together, released one by one.

Answering = Callable[["NoisePlan"], Callable[[], AbstractContextManager[Callable[[], "Answers"]]]]
How = tuple[str | None, Answering]
"""The audience, and the function that prepares a release of a draft."""


@final
class Series(SingleUseObject):
    """A series of ``times`` releases of one plan, reserved in a ledger; ``next()`` is the plan of the next release.

    All of them together meet the planned share, composed exactly, with noise that is fixed in advance. A person may
    have rows in any number of the dates; the session's bounds hold per date.
    """

    __slots__ = ("_account", "_draft", "_how", "_key", "_times")
    _account: Account
    _draft: NoisePlan
    _how: How
    _key: str
    _times: int

    def __init__(self, account: Account, draft: NoisePlan, times: int, key: str, how: How) -> None:
        parts: dict[str, Any] = {"_account": account, "_draft": draft, "_how": how, "_key": key, "_times": times}
        for name, value in parts.items():
            object.__setattr__(self, name, value)

    @property
    def times(self) -> int:
        """The number of releases declared."""
        return self._times

    @property
    def released(self) -> int:
        """The number of releases charged so far."""
        return self._account.current_state().series[self._key].done

    def next(self, key: str | None = None) -> Plan:
        """Return the plan of the first charged date that may be read once more, else of the next date.

        The ``key`` of a date (in its certificate) selects that date's plan; releasing it again is free.
        Raises ``InsufficientBudgetError`` if all dates are released.
        """
        if key is not None:
            return self._plan_under_key(self._checked_key(key))
        done = self.released
        waiting = (place for place in range(1, done + 1) if self._account.may_read(self._release_name(place)))
        place = next(waiting, done + 1)
        if place > self._times:
            raise InsufficientBudgetError(
                f"all {self._times} releases of the series {self._key!r} are done; declare another series, or plan "
                f"with the remaining budget"
            )
        return self._plan_under_key(self._release_name(place))

    def _checked_key(self, key: str) -> str:
        names = [self._release_name(place) for place in range(1, self.released + 1)]
        if key not in names:
            raise InputError("key", key, f"one of {names}", "leave it out for the next date")
        return key

    def _plan_under_key(self, key: str) -> Plan:
        audience, answering = self._how
        claim = claim_of(self._draft, key, audience)
        return Plan(
            self._draft, ledger_release_handle(self._account, claim, self._draft, answering(self._draft), self._key)
        )

    def _release_name(self, place: int) -> str:
        return date_of_series(self._key, place, self._times)


def series_of(account: Account, draft: NoisePlan, times: int, key: str, how: How) -> Series:
    """Return the series of this key, from the ledger with its noise, or newly planned and reserved."""
    limit = limit_by_moments(account)
    said = draft if limit is None else replace(draft, budget=limit.budget.scale_by(draft.share))
    plan = sha256_hex(f"{plan_digest(said, how[0])} {times}")
    found = account.find_reservation(key)
    if found is not None:
        recipe = NoiseRecord.from_text(found[1])
    elif limit is not None:
        recipe = fit_noise_to_share(tuple(composition_groups_of(draft.tasks)), limit, draft.share, times)
    else:
        # The least noise with which all releases together meet the draft's budget; each gets the noise of the first.
        tasks, together = allocate_best_arrangement(_draft_arrangements(draft), draft.budget, times=times)
        units = tuple(composition_groups_of(tasks))
        selections = together.selections[: len(units)]
        one = NoiseRecord(units, selections, together.loss_lattice, together.alternatives, together.avoidable_noise)
        recipe = one.on_finer_lattice(at_most(draft.budget.delta))
    if found is not None and found[0].body_data["plan"] != plan:
        text = (
            f"{key!r} already names a series with other questions, budget_fraction or times, which are fixed; choose a "
            f"new key"
        )
        raise InputError.from_text("key", text)
    promised = draft.budget if limit is None else budget_of_share(limit, recipe.composed_loss(times), draft.share)
    entry = account.reserve_series(SeriesClaim(key, plan, promised, times, recipe.to_text, how[0]))
    first = account.find_reservation(key)
    if first is not None and found is None:
        recipe = NoiseRecord.from_text(first[1])  # if two processes reserve at once, use the noise of the first
    # The arrangement of the tasks that fits the reserved noise, even if another one would be chosen today.
    arranged_found = next(
        (tasks for tasks in _draft_arrangements(draft) if tuple(composition_groups_of(tasks)) == recipe.units), None
    )
    if arranged_found is None:
        raise LedgerError(
            "this version of Tightrope arranges the questions of this series in another way than the noise reserved "
            "for it; release the remaining dates with the version that reserved them"
        )
    own = replace(draft, tasks=arranged_found, budget=Budget(**entry.body_data["kept"]))
    return Series(account, replace(own, allocation=allocation_of(recipe)), entry.body_data["times"], key, how)


def _draft_arrangements(draft: NoisePlan) -> tuple[Tasks, ...]:
    return draft.possible_arrangements or (draft.tasks,)


@final
class Session(SingleUseObject):
    """A session of private questions about one table, with one privacy budget.

    ``source`` is a Parquet, CSV or DuckDB file (``table=``), a pandas, polars or Arrow table, or the result of
    ``tightrope.tables.open_source`` (for a CSV file in another dialect). ``privacy_unit`` names the column that
    identifies the person of each row, and ``max_rows`` is the maximum number of their rows that count;
    ``privacy_unit=None`` means that each row is one person; ``privacy_unit=("tail", "an aircraft")`` names a unit that
    is not a person. ``max_rows_per_group`` and ``max_groups`` bound a person further (default: ``max_rows`` alone).
    ``types`` declares the types of the columns of a CSV file, and of object columns of a pandas frame.
    ``public_tables`` (``tr.public_table``): tables whose columns are joined to the rows by a key.

    Neighbors: add or remove one person with all their rows. The ε and δ of several plans add up (basic composition,
    valid for plans made after seeing earlier answers). Spending is not recorded in a ledger: a second session has a
    new budget; ``Session.open`` opens one that shares a budget, in a ledger, with all others of its dataset.
    A session cannot be changed, copied or pickled, and a forked copy of its process cannot release.

    Raises ``InputError`` for bounds that are not integers ≥ 1, ``SchemaError`` for a missing column.
    """

    __slots__ = ("__weakref__", "_account", "_audience", "_budget", "_charges", "_person", "_reading", "_table")
    _account: Account | None
    _audience: str | None
    _budget: Budget
    _charges: InMemoryAccount
    _person: PrivacyUnit
    _reading: threading.Lock
    _table: Table

    def __init__(  # noqa: PLR0913 - each is a keyword that users pass
        self,
        source: object,
        *,
        privacy_unit: UnitSpec,
        budget: Budget,
        max_rows: int | None = None,
        max_rows_per_group: int | None = None,
        max_groups: int | None = None,
        table: str | None = None,
        types: Mapping[str, str] | None = None,
        public_tables: PublicTableSource | Sequence[PublicTableSource] = (),
    ) -> None:
        if not isinstance(budget, Budget):
            raise InputError("budget", budget, "a tr.Budget", "say budget=tr.Budget(epsilon=1, delta=1e-8)")
        bounds = person_of(privacy_unit, (max_rows, max_rows_per_group, max_groups))
        opened = open_source(source, table=table, types=types)
        if bounds.column is not None:
            opened.schema.find_column(bounds.column)
        opened = attach_public_tables(opened, public_tables)
        parts = {"_budget": budget.scale_by(1), "_charges": open_account(), "_person": bounds, "_table": opened}
        parts |= {"_reading": threading.Lock(), "_account": None, "_audience": None}
        for name, value in parts.items():
            object.__setattr__(self, name, value)

    @classmethod
    def open(  # noqa: PLR0913 - each is a keyword that users pass
        cls,
        source: object,
        *,
        privacy_unit: UnitSpec,
        budget: Budget,
        ledger: str | os.PathLike[str],
        dataset: str,
        max_rows: int | None = None,
        max_rows_per_group: int | None = None,
        max_groups: int | None = None,
        table: str | None = None,
        types: Mapping[str, str] | None = None,
        public_tables: PublicTableSource | Sequence[PublicTableSource] = (),
        limits: Sequence[Limit] = (),
        audience: str | None = None,
        note: str = "",
    ) -> Self:
        """Return a session that is charged in a ledger: a file, created if necessary, or ``postgresql://...``.

        ``dataset`` is the table's name in the ledger: all sessions with this name share one budget, in every process,
        permanently. ``limits`` bound it further, for a period or an audience; the limit named "total" is the whole
        budget and sets the composition rule. ``audience`` names the recipients of the answers (None: everybody);
        ``note`` is recorded when the dataset is declared. The other parameters are as in ``Session``. Raises
        ``InputError`` if the ledger has the dataset with another privacy unit, bounds, columns or budget,
        ``LedgerError`` if the ledger cannot be used.
        """
        from tightrope.ledger import Ledger
        from tightrope.release.execution import add_total_limit, identity_of

        opened = cls(
            source,
            privacy_unit=privacy_unit,
            budget=budget,
            max_rows=max_rows,
            max_rows_per_group=max_rows_per_group,
            max_groups=max_groups,
            table=table,
            types=types,
            public_tables=public_tables,
        )
        declared = add_total_limit(opened.budget, limits)
        identity = identity_of(dataset, opened._table.private_schema, opened.privacy_unit)
        account = Ledger(ledger, create=True).declare_dataset(identity, declared, note=note)
        object.__setattr__(opened, "_account", account)
        object.__setattr__(opened, "_audience", audience)
        return opened

    def resumed(self, plan: Plan) -> Plan:
        """Return the plan of an equal release that was charged but never answered, at no further cost, or this plan."""
        if self._account is None:
            return plan
        from tightrope.release.execution import claim_of

        waiting = self._account.unanswered_key(claim_of(plan.draft, "-", self._audience).plan)
        return plan if waiting is None else self._issue_plan(plan.draft, waiting)

    def __repr__(self) -> str:
        means, column = escape_control_chars(self._person.means), self._person.column
        unit = f"each row is {means}" if column is None else f"rows with the same {column!r} are {means}"
        return f"<Session: {unit}; {self._budget}>"

    @property
    def budget(self) -> Budget:
        """The budget of all releases of the session together."""
        return self._budget

    @property
    def privacy_unit(self) -> PrivacyUnit:
        """The privacy unit with its contribution bounds."""
        return self._person

    @property
    def schema(self) -> Schema:
        """The columns and their kinds; does not read the data."""
        return self._table.schema

    @property
    def spent(self) -> dict[str, Any]:
        """The share of the budget charged so far, and the ε and δ of that; with a ledger, for all sessions."""
        if self._account is not None:
            from tightrope.release.execution import spent_budget

            return spent_budget(self._account)
        share = self._charges.total_charged()
        points = [
            [str(exact_product(epsilon, share)), str(exact_product(delta, share))]
            for epsilon, delta in self._budget.points
        ]
        return {"budget_fraction": str(share), "points": points, "ledger": "not recorded in a ledger"}

    def plan(
        self,
        questions: Sequence[Query],
        *,
        where: Given | None = None,
        budget_fraction: Number = 1,
        expected_rows: int | None = None,
        margin_of_error: Mapping[str, Number | str] | None = None,
        key: str | None = None,
        bias_check: Number = 0,
    ) -> Plan:
        """Plan the least noise for these questions within ``budget_fraction`` of the budget.

        Reads the schema only and spends nothing.

        ``where``: a condition on the rows of every question, in addition to the question's own.
        ``expected_rows`` states errors for groups of that size instead of 30, 100, 1 000 and 10 000. With
        ``margin_of_error={"count_by_city": 50}`` the plan takes the smallest part of the budget, up to
        ``budget_fraction``, for which 95 % of these answers are within ± 50, or ``"5%"`` of ``expected_rows``; so does
        ``margin_of_error`` in a question. ``key`` names the release in the ledger: a plan is charged once per key, and
        releasing it again returns the same answers. ``bias_check=0.02`` spends at most 2 % of the budget to measure the
        bias of bounding and clamping: rows left out, values beyond each end, missing fields (``Answers.bias``).

        Raises ``PlanError`` or ``SchemaError`` for an invalid question, ``InsufficientBudgetError`` if the budget is
        too small; its message has the smallest budget that is accurate enough.
        """
        budget = self._budget.scale_by(budget_fraction)
        if budget.total_variation == 0:
            text = (
                "attack_success = 0.5 (total_variation = 0) allows only answers that ignore the data; use a larger "
                "value, such as 0.51"
            )
            raise InputError.from_text("budget", text)
        asked = group_queries(questions, self._person, self.schema, None if where is None else unwrap_expression(where))
        sums = find_related_answers(asked, self.schema)
        arranged = list_arrangements(asked, {name for one in sums.joined for name in one.answers})
        ways = tuple(add_diagnostic_counts(way, bias_check_fraction(bias_check), self.schema) for way in arranged)
        for request in (task.table_request for way in ways for task in way):
            check_row_memory(request, self.schema)
        tasks = ways[0]
        check_delta(budget, tasks)
        public = self._table.public_for([task.table_request for task in tasks])
        goal, sizes = accuracy_target(questions, margin_of_error, expected_rows), group_sizes(expected_rows)
        most = exact_decimal("budget_fraction", budget_fraction)

        def draft_for(allocation: NoiseAllocation, kept: Budget, part: Decimal) -> NoisePlan:
            return NoisePlan(
                tasks, allocation, kept, part, self._person, sizes, public, bias_check_fraction(bias_check), sums
            )

        if self._account is not None:
            from tightrope.release import draft_search

            limit = draft_search.limit_by_moments(self._account)
            if limit is not None:
                return self._issue_plan(draft_search.draft_by_moments(limit, tasks, draft_for, most, goal), key)

        def draft_for_budget(
            kept: Budget, part: Decimal, *, compare: bool = True, like: NoisePlan | None = None
        ) -> NoisePlan:
            before = None if like is None else (like.tasks, like.allocation)
            own, allocation = allocate_best_arrangement(ways, kept, compare=compare, like=before)
            return replace(draft_for(allocation, kept, part), tasks=own, possible_arrangements=ways)

        draft = (
            draft_for_budget(budget, most)
            if goal is None
            else minimal_budget_for(draft_for_budget, goal, self._budget, most)
        )
        return self._issue_plan(draft, key)

    def suggest_bounds(self, column: Given, *, budget_fraction: Number, where: Given | None = None) -> SuggestedBounds:
        """Suggest a range for a column with an unknown range; charges ``budget_fraction`` of the budget now.

        Counts the values along the whole axis, privately, and returns a rough range of nearly all of them. A publicly
        known range is better and costs no budget. ``print`` the result for the warning.
        """
        question = bounds_question(column, where, self.schema)
        plan = self.plan([question], budget_fraction=budget_fraction)
        ((noise,),) = plan.noises()
        return suggested_bounds(question, plan.release(), noise)

    def suggest_max_rows(self, *, budget_fraction: Number, where: Given | None = None) -> SuggestedRows:
        """Suggest a bound on the rows of a person; charges ``budget_fraction`` of the budget now.

        Counts persons by how many rows they have; a person is counted once, so the session's own bounds do not matter.
        ``print`` the result for the warning. In a ledger the bounds of a dataset are fixed by its first release.
        """
        refuse_each_row(self._person)
        plan = self.plan([rows_question(where)], budget_fraction=budget_fraction)
        ((noise,),) = plan.noises()
        return suggested_rows(plan.release(), noise)

    def _issue_plan(self, draft: NoisePlan, key: str | None) -> Plan:
        """Return the draft as a plan that is charged to this session, or to the ledger under a key."""
        if self._account is None:
            refuse_key(key)
            return Plan(
                draft, issue_plan(self._charges, draft.share, prepare_release(draft, self._table, self._reading))
            )
        from tightrope.release.execution import claim_of, ledger_release_handle

        claim = claim_of(draft, secrets.token_hex(8) if key is None else key, self._audience)
        return Plan(
            draft,
            ledger_release_handle(self._account, claim, draft, prepare_release(draft, self._table, self._reading)),
        )

    def series(self, plan: Plan, *, times: int, key: str) -> Series:
        """Reserve the plan's share for ``times`` releases of its questions, each when its data arrive.

        The noise is the least with which all of them *together* meet the share, composed exactly, and is equal for
        each: smaller than with equal parts of the share, and much smaller with several questions. The ``key`` names
        the series in the ledger; calling this again, even in a later session, continues it. A reservation is permanent.
        Raises ``InputError`` without a ledger or if another series has the key, and ``InsufficientBudgetError``.
        """
        if self._account is None:
            text = "only possible with a ledger; open the session with tr.Session.open(..., ledger=...)"
            raise InputError.from_text("series", text)
        how = self._audience, lambda draft: prepare_release(draft, self._table, self._reading)
        return series_of(self._account, plan.draft, check_integer("times", times), key, how)
