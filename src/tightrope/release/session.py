"""Sessions: a table, its privacy unit, and a budget that is charged before noise is drawn."""

from __future__ import annotations

import os
import secrets
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Self, final

from tightrope.documents.budget import Budget, BudgetFraction, Number, decimal_fraction, float_at_most, fraction_text
from tightrope.documents.escaping import escape_control_chars
from tightrope.documents.privacy_unit import PrivacyUnit
from tightrope.errors import InputError, InsufficientBudgetError, LedgerError
from tightrope.ledger import Account, Ledger
from tightrope.ledger.chain import sha256_hex
from tightrope.ledger.identity import SeriesClaim, series_release_key
from tightrope.ledger.noise_record import NoiseRecord
from tightrope.numerics.checks import check_integer
from tightrope.queries.comparisons import comparison
from tightrope.queries.options import unwrap_expression
from tightrope.queries.query import Query
from tightrope.release.accounts import InMemoryAccount, SessionCharges, SingleUseObject, refuse_release_key
from tightrope.release.bias_check import bias_check_fraction
from tightrope.release.build_answers import TableRelease
from tightrope.release.draft import (
    NoisePlan,
    QueryGroups,
    allocate_best_arrangement,
    composition_groups_of,
)
from tightrope.release.draft_search import (
    allocation_from_noise,
    budget_of_moment_share,
    moment_limit_of_budget,
    noise_of_equal_releases,
)
from tightrope.release.execution import (
    LedgerAccount,
    add_total_limit,
    charged_budget_ratio,
    dataset_identity,
    draft_under_key,
    plan_digest,
    release_claim,
    spent_budget,
)
from tightrope.release.plan import Plan
from tightrope.release.planner import Planner
from tightrope.release.series_dates import (
    SeriesDate,
    date_conditions,
    describe_series,
    draft_for_date,
    series_difference,
    series_length,
)
from tightrope.release.settings import (
    UnitSpec,
    privacy_unit_with_bounds,
    refuse_column_name,
    resolve_privacy_unit,
)
from tightrope.tables import Expression, PublicTableSource, attach_public_tables, open_source

if TYPE_CHECKING:
    from tightrope.ledger import Limit
    from tightrope.queries.marginals.question import marginals
    from tightrope.queries.options import Given
    from tightrope.queries.query_group import QueryGroup
    from tightrope.release.suggest import SuggestedBounds, SuggestedRows
    from tightrope.tables import Table
    from tightrope.tables.expressions.tree import ExpressionTree
    from tightrope.tables.schema import Schema


@final
class Series(SingleUseObject):
    """A series of ``times`` releases of one plan, reserved in a ledger; ``next()`` returns the plan of the next one.

    All of them together meet the planned share, composed exactly, with noise that is fixed in advance. A person may
    have rows in any number of the dates; the session's bounds hold per date.
    """

    __slots__ = ("_account", "_conditions", "_draft", "_key", "_session", "_times")
    _account: Account
    _conditions: tuple[ExpressionTree, ...]
    """The condition on the rows of each date; none if every date is released from a table of its own."""
    _draft: NoisePlan
    _key: str
    _session: Session
    _times: int

    def __init__(
        self,
        session: Session,
        account: Account,
        draft: NoisePlan,
        times: int,
        key: str,
        conditions: tuple[ExpressionTree, ...] = (),
    ) -> None:
        self._set_parts(_session=session, _account=account, _draft=draft, _times=times, _key=key)
        self._set_parts(_conditions=conditions)

    @classmethod
    def reserve_in_ledger(
        cls,
        session: Session,
        account: Account,
        draft: NoisePlan,
        times: int,
        key: str,
        conditions: tuple[ExpressionTree, ...] = (),
    ) -> Self:
        """Return the series of this key: with its noise from the ledger or, if it is new, planned and reserved now."""
        for condition in conditions:
            draft_for_date(draft, condition, session._table)  # a date that cannot be asked is refused before it costs
        audience = session._audience
        limit = moment_limit_of_budget(account)
        dates = "".join(f"\n{condition}" for condition in conditions)

        def digest_of(planned: NoisePlan) -> str:
            planned = planned if limit is None else replace(planned, budget=limit.budget.scale_by(planned.share))
            return sha256_hex(f"{plan_digest(planned, audience)} {times}{dates}")

        plan_digest_text = digest_of(draft)
        reservation = account.find_reservation(key)
        recorded_digest = None if reservation is None else reservation[0].body_data["plan"]
        if reservation is not None:
            noise_record = NoiseRecord.from_text(reservation[1])
            for planned in draft.drafts_by_rule():
                if digest_of(planned) == recorded_digest and _find_arrangement(planned, noise_record) is not None:
                    draft, plan_digest_text = planned, recorded_digest
                    break
        else:
            noise_record = _series_noise(draft, limit, times)
        description = describe_series(draft, times, conditions)
        if reservation is not None and recorded_digest != plan_digest_text:
            recorded = reservation[0].body_data.get("description", {})
            raise InputError.from_text("key", series_difference(key, recorded, description))
        promised_budget = (
            draft.budget
            if limit is None
            else budget_of_moment_share(limit, noise_record.composed_loss(times), draft.share)
        )
        entry = account.reserve_series(
            SeriesClaim(
                key,
                plan_digest_text,
                promised_budget,
                times,
                noise_record.to_text,
                audience,
                charged_budget_ratio(draft),
                description,
            )
        )
        first_reservation = account.find_reservation(key)
        if first_reservation is not None and reservation is None:
            # if two processes reserve at once, use the noise of the first
            noise_record = NoiseRecord.from_text(first_reservation[1])
        arrangement = _reserved_arrangement(draft, noise_record)
        series_draft = replace(draft, query_groups=arrangement, budget=Budget(**entry.body_data["kept"]))
        # The errors of one question alone, or with another budget, would not be those of a series.
        series_draft = replace(series_draft, allocation=allocation_from_noise(noise_record), planner=None)
        return cls(session, account, series_draft, entry.body_data["times"], key, conditions)

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
            return self._plan_of_date(self._checked_position(key))
        done = self.released
        repeatable = (
            position for position in range(1, done + 1) if self._account.may_read(self._release_name(position))
        )
        position = next(repeatable, done + 1)
        if position > self._times:
            raise InsufficientBudgetError(
                f"all {self._times} releases of the series {self._key!r} are done; declare another series, or plan "
                f"with the remaining budget"
            )
        return self._plan_of_date(position)

    def _checked_position(self, key: str) -> int:
        names = [self._release_name(position) for position in range(1, self.released + 1)]
        if key not in names:
            raise InputError("key", key, f"one of {names}", "leave it out for the next date")
        return names.index(key) + 1

    def _plan_of_date(self, position: int) -> Plan:
        draft = self._draft
        if self._conditions:
            draft = draft_for_date(draft, self._conditions[position - 1], self._session._table)
        return self._session._plan_in_ledger(self._account, draft, self._release_name(position), series=self._key)

    def _release_name(self, position: int) -> str:
        return series_release_key(self._key, position, self._times)


def _series_noise(draft: NoisePlan, limit: Limit | None, times: int) -> NoiseRecord:
    """Return the least noise of one of ``times`` equal releases that together meet the draft's budget or share."""
    if limit is not None:
        noise_of_one = noise_of_equal_releases(
            tuple(composition_groups_of(draft.query_groups)), limit, draft.share, times
        )
        return replace(noise_of_one, planning_rule=draft.planning_rule)
    query_groups, joint_allocation = allocate_best_arrangement(_draft_arrangements(draft), draft.budget, times=times)
    composition_groups = tuple(composition_groups_of(query_groups))
    noise_of_one = NoiseRecord(
        composition_groups,
        joint_allocation.selections[: len(composition_groups)],  # all releases have the noise of the first
        joint_allocation.loss_lattice,
        joint_allocation.alternatives,
        joint_allocation.avoidable_noise,
        joint_allocation.bounds_splits,
        draft.planning_rule,
    )
    return noise_of_one.on_finer_lattice(float_at_most(draft.budget.delta))


def _find_arrangement(draft: NoisePlan, noise_record: NoiseRecord) -> QueryGroups | None:
    """Return the arrangement of a draft that has the groups of this noise; None without one."""
    arrangements = _draft_arrangements(draft)
    return next(
        (
            query_groups
            for query_groups in arrangements
            if tuple(composition_groups_of(query_groups)) == noise_record.units
        ),
        None,
    )


def _reserved_arrangement(draft: NoisePlan, noise_record: NoiseRecord) -> tuple[QueryGroup, ...]:
    """Return the arrangement that fits the reserved noise, even if another one would be chosen today."""
    query_groups = _find_arrangement(draft, noise_record)
    if query_groups is not None:
        return query_groups
    raise LedgerError(
        "this version of Tightrope arranges the questions of this series in another way than the noise reserved "
        "for it; release the remaining dates with the version that reserved them"
    )


def _draft_arrangements(draft: NoisePlan) -> tuple[QueryGroups, ...]:
    return draft.possible_arrangements or (draft.query_groups,)


@final
class Session(SingleUseObject):
    """A session of private questions about one table, with one privacy budget.

    ``source`` is a Parquet, CSV or DuckDB file (``table=``), a pandas, polars or Arrow table, or the result of
    ``tightrope.tables.open_source`` (for a CSV file in another dialect). ``privacy_unit`` is the column, or an
    expression such as ``"lower(patient)"``, that identifies the person of each row, and ``max_rows`` is the maximum
    number of their rows that count;
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

    __slots__ = ("__weakref__", "_account", "_audience", "_budget", "_charges", "_privacy_unit", "_reading", "_table")
    _account: Account | None
    _audience: str | None
    _budget: Budget
    _charges: SessionCharges
    _privacy_unit: PrivacyUnit
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
        unit = privacy_unit_with_bounds(privacy_unit, (max_rows, max_rows_per_group, max_groups))
        opened_table = open_source(source, table=table, types=types)
        column = privacy_unit[0] if isinstance(privacy_unit, tuple) else privacy_unit
        unit = resolve_privacy_unit(unit, opened_table.schema, is_expression=isinstance(column, Expression))
        is_column = unit.column is None or unit.column in opened_table.schema.column_names
        opened_table = attach_public_tables(opened_table, public_tables)
        if not is_column:
            refuse_column_name(str(unit.column), opened_table.schema)
        self._set_parts(_budget=budget.scale_by(1), _charges=SessionCharges(), _privacy_unit=unit, _table=opened_table)
        self._set_parts(_reading=threading.Lock(), _account=None, _audience=None)

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
        ``InputError`` if the ledger has the dataset with another privacy unit or budget, or a column of another type;
        ``LedgerError`` if the ledger cannot be used. Each session has its own contribution bounds and may have further
        columns: the budget protects a person with all their rows, whatever the bounds of each release.
        """
        session = cls(
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
        all_limits = add_total_limit(session.budget, limits)
        identity = dataset_identity(dataset, session._table, session.privacy_unit)
        account = Ledger(ledger, create=True).declare_dataset(identity, all_limits, note=note)
        session._set_parts(_account=account, _audience=audience)
        return session

    def resumed(self, plan: Plan) -> Plan:
        """Return the plan of an equal release that was charged but never answered, at no further cost, or this plan."""
        earlier = plan._account.unanswered_release() if isinstance(plan._account, LedgerAccount) else None
        return (
            plan if earlier is None else Plan(earlier.draft, earlier, replace(plan._table_release, draft=earlier.draft))
        )

    def __repr__(self) -> str:
        noun, column = escape_control_chars(self._privacy_unit.means), self._privacy_unit.column
        unit = f"each row is {noun}" if column is None else f"rows with the same {column!r} are {noun}"
        return f"<Session: {unit}; {self._budget}>"

    @property
    def budget(self) -> Budget:
        """The budget of all releases of the session together."""
        return self._budget

    @property
    def privacy_unit(self) -> PrivacyUnit:
        """The privacy unit with its contribution bounds."""
        return self._privacy_unit

    @property
    def schema(self) -> Schema:
        """The columns and their kinds; does not read the data."""
        return self._table.schema

    @property
    def spent(self) -> dict[str, Any]:
        """The fraction of the budget charged so far, and its ε and δ; with a ledger, for all sessions together."""
        if self._account is not None:
            return spent_budget(self._account)
        fraction = self._charges.total_charged()
        points = [
            [fraction_text(Fraction(epsilon) * fraction), fraction_text(Fraction(delta) * fraction)]
            for epsilon, delta in self._budget.points
        ]
        return {"budget_fraction": fraction_text(fraction), "points": points, "ledger": "not recorded in a ledger"}

    def plan(
        self,
        questions: Sequence[Query | marginals],
        *,
        where: Given | None = None,
        budget_fraction: BudgetFraction = 1,
        expected_rows: int | None = None,
        margin_of_error: Mapping[str, Number | str] | None = None,
        key: str | None = None,
        bias_check: Number = 0,
        comparisons: Sequence[comparison] = (),
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
        ``comparisons``: differences and ratios of the answers (``tr.comparison``), which cost nothing further.

        Raises ``PlanError`` or ``SchemaError`` for an invalid question, ``InsufficientBudgetError`` if the budget is
        too small; its message has the smallest budget that is accurate enough.
        """
        budget = self._budget.scale_by(budget_fraction)
        if budget.total_variation == 0:
            text = "attack_success = 0.5 allows only answers that ignore the data; use a larger value, such as 0.51"
            raise InputError.from_text("budget", text)
        listed = questions if isinstance(questions, (list, tuple)) else []
        others = [question for question in listed if not isinstance(question, Query)]
        queries: Any = questions  # the planner checks their types
        if others:
            from tightrope.queries.marginals.group import expand_marginals

            queries = expand_marginals(listed)
        planner = Planner(
            self._table,
            self._privacy_unit,
            queries,
            None if where is None else unwrap_expression(where),
            bias_check_fraction(bias_check),
            self._budget,
            decimal_fraction(budget_fraction),
            budget,
            moment_limit_of_budget(self._account),
            comparisons,
            asks_marginals=bool(others),
        )
        draft = planner.make_draft(margin_of_error, expected_rows)
        if self._account is not None:
            if key is not None:
                draft = draft_under_key(self._account, draft, key, self._audience)
            return self._plan_in_ledger(self._account, draft, secrets.token_hex(8) if key is None else key)
        refuse_release_key(key)
        return Plan(draft, InMemoryAccount(self._charges, draft.charge), self._table_release(draft))

    def suggest_bounds(
        self, column: Given, *, budget_fraction: BudgetFraction, where: Given | None = None
    ) -> SuggestedBounds:
        """Suggest a range for a column with an unknown range; charges ``budget_fraction`` of the budget now.

        Counts the values along the whole axis, privately, and returns a rough range of nearly all of them. A publicly
        known range is better and costs no budget. ``print`` the result for the warning.
        """
        from tightrope.release.suggest import bounds_question, suggested_bounds

        question = bounds_question(column, where, self.schema)
        plan = self.plan([question], budget_fraction=budget_fraction)
        ((noise,),) = plan.noises()
        return suggested_bounds(question, plan.release(), noise)

    def suggest_max_rows(
        self,
        *,
        budget_fraction: BudgetFraction,
        where: Given | None = None,
        largest_rows: int | None = None,
        key: str | None = None,
    ) -> SuggestedRows:
        """Suggest a bound on the rows of a person; charges ``budget_fraction`` of the budget now.

        Counts persons by how many rows they have; a person is counted once, so the session's own bounds do not matter.
        ``print`` the result: it also limits the number of rows of the table, and the share that the bound leaves out.
        ``largest_rows``: the maximum number of rows of a person, from public knowledge; only with it are there upper
        limits. ``key`` names the release in a ledger: repeating it returns the same suggestion without a new charge.
        """
        from tightrope.release.suggest import refuse_each_row, rows_question, suggested_rows

        refuse_each_row(self._privacy_unit)
        maximum = None if largest_rows is None else check_integer("largest_rows", largest_rows)
        plan = self.plan([rows_question(where)], budget_fraction=budget_fraction, key=key)
        if key is None:
            plan = self.resumed(plan)
        ((noise,),) = plan.noises()
        return suggested_rows(plan.release(), noise, maximum)

    def _plan_in_ledger(self, account: Account, draft: NoisePlan, key: str, series: str | None = None) -> Plan:
        claim = release_claim(draft, key, self._audience)
        return Plan(draft, LedgerAccount(account, claim, draft, series), self._table_release(draft))

    def _table_release(self, draft: NoisePlan) -> TableRelease:
        return TableRelease(draft, self._table, self._reading)

    def series(
        self,
        plan: Plan,
        *,
        key: str,
        times: int | None = None,
        date: Given | None = None,
        dates: Sequence[SeriesDate] = (),
    ) -> Series:
        """Reserve the plan's share for ``times`` releases of its questions, each when its data arrive.

        The noise is the least with which all of them *together* meet the share, composed exactly, and is equal for
        each: smaller than with equal parts of the share, and much smaller with several questions. With ``date``, a
        column or an expression, and ``dates``, its values, all releases are of one table: the first uses only the rows
        with the first value, in addition to the plan's conditions, as in
        ``date="month(admitted)", dates=range(1, 13)``; ``times`` is then the number of dates. The ``key`` names
        the series in the ledger; calling this again, even in a later session, continues it. A reservation is permanent.
        Raises ``InputError`` without a ledger, for a plan of another session, or if
        another series has the key, and ``InsufficientBudgetError``.
        """
        if self._account is None:
            text = "only possible with a ledger; open the session with tr.Session.open(..., ledger=...)"
            raise InputError.from_text("series", text)
        # Noise for other bounds, or for a unit that another table computes, could protect less than a person.
        if plan.draft.privacy_unit != self._privacy_unit or plan._table_release.table is not self._table:
            text = (
                "it is of a session with another table, privacy unit or bounds; use session.plan(...) of this session"
            )
            raise InputError.from_text("plan", text)
        conditions, length = date_conditions(date, dates, self.schema), series_length(times, dates)
        return Series.reserve_in_ledger(self, self._account, plan.draft, length, key, conditions)
