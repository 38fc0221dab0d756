"""The dates of a series as conditions on the rows of one table, and descriptions of series that say what differs."""

from __future__ import annotations

import datetime
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from tightrope.errors import InputError, SchemaError
from tightrope.numerics.checks import check_integer
from tightrope.queries.options import Given, unwrap_expression
from tightrope.queries.query import Query
from tightrope.queries.query_group import QueryGroup
from tightrope.release.draft import NoisePlan
from tightrope.tables import Table
from tightrope.tables.expressions.conditions import join_conditions
from tightrope.tables.expressions.expression import Term, resolve_term, term_facts
from tightrope.tables.expressions.leaves import ColumnRef
from tightrope.tables.expressions.tree import ExpressionTree
from tightrope.tables.memory import check_row_memory
from tightrope.tables.schema import Schema

SeriesDate = int | str | datetime.date
"""The value of one date of a series, such as a month."""
DATE_ADVICE = 'say date="month(admitted)", dates=range(1, 13): the first release is of month 1, the second of month 2'
FILTER_ADVICE = "give each plan its own series key, or declare date and dates: what differs from release to release"


def date_conditions(date: Given | None, dates: Sequence[SeriesDate], schema: Schema) -> tuple[ExpressionTree, ...]:
    """Return the condition on the rows of each release of a series: that ``date`` is its value; none without dates.

    Raises ``InputError`` for values of another type or that are repeated, and if only one of both is given.
    """
    if (date is None) != (len(dates) == 0):
        raise InputError.from_text("date" if date is None else "dates", f"missing; {DATE_ADVICE}")
    if date is None:
        return ()
    try:
        term = resolve_term(unwrap_expression(date), schema)
        shown = ColumnRef(term) if isinstance(term, str) else term
        conditions = tuple(resolve_term(f"({shown}) == {_literal_text(value)}", schema) for value in dates)
        for condition in conditions:
            term_facts(condition, schema)
    except InputError as error:
        raise error if isinstance(error, SchemaError) else InputError.from_error(error, "dates") from None
    if len(set(map(str, conditions))) < len(conditions):
        raise InputError.from_text("dates", "one value is repeated; each date of a series is released once")
    return tuple(condition for condition in conditions if isinstance(condition, ExpressionTree))


def series_length(times: int | None, dates: Sequence[SeriesDate]) -> int:
    """Return the number of releases of a series, which ``times`` or the number of ``dates`` states."""
    if times is None and not dates:
        raise InputError.from_text("times", f"missing; state the number of releases, or dates: {DATE_ADVICE}")
    if times is not None and dates and times != len(dates):
        raise InputError.from_text("times", f"{times}, but there are {len(dates)} dates; leave it out")
    return check_integer("times", len(dates) if times is None else times)


def draft_for_date(draft: NoisePlan, condition: ExpressionTree, table: Table) -> NoisePlan:
    """Return the draft with the same noise for the rows of one date only; raises ``InputError`` for too wide rows."""
    query_groups = tuple(_group_for_date(query_group, condition) for query_group in draft.query_groups)
    for query_group in query_groups:
        check_row_memory(query_group.table_request, table.schema)
    public = table.public_tables_used_by([query_group.table_request for query_group in query_groups])
    return replace(draft, query_groups=query_groups, possible_arrangements=(), public=public)


def describe_series(draft: NoisePlan, times: int, conditions: Sequence[ExpressionTree]) -> dict[str, Any]:
    """Return what a plan asks as texts, which a ledger keeps with a series: parameters of the plan, never data."""
    without_filters = [question.with_fields(asked=replace(question.asked, where=())) for question in draft.questions]
    return {
        "questions": [f"{question.asked.name}: {question}" for question in without_filters],
        "filters": [str(question.asked.row_condition or "all rows") for question in draft.questions],
        "bounds": draft.privacy_unit.limits_text,
        "budget": str(draft.budget),
        "budget_fraction": str(draft.share),
        "times": times,
        "dates": [str(condition) for condition in conditions],
    }


def series_difference(key: str, recorded: Mapping[str, Any], asked: Mapping[str, Any]) -> str:
    """Return a sentence on the first difference of a plan from the series of this key, and what to do.

    ``recorded`` is empty for a series that version 0.1 reserved.

    >>> series_difference("monthly", {"filters": ["month == 1"]}, {"filters": ["month == 2"]}).partition(";")[0]
    "the series 'monthly' filters on month == 1, this plan on month == 2"
    """
    for name, value in asked.items():
        before, after = _first_difference(recorded.get(name, value), value)
        if before == after:
            continue
        if name == "filters":
            return f"the series {key!r} filters on {before}, this plan on {after}; {FILTER_ADVICE}"
        words = name.replace("_", " ")
        return (
            f"the series {key!r} has the {words} {before}, this plan {after}; a series is fixed when it is declared, "
            f"so choose a new key"
        )
    return (
        f"{key!r} already names a series with other questions, budget_fraction or times, which are fixed; choose a "
        f"new key"
    )


def _first_difference(before: Any, after: Any) -> tuple[Any, Any]:
    """Return both values, of lists the first pair of entries that differ; equal values if nothing differs."""
    if not (isinstance(before, list) and isinstance(after, list)):
        return before, after
    pairs = itertools.zip_longest(before, after, fillvalue="nothing")
    return next((pair for pair in pairs if pair[0] != pair[1]), ("", ""))


def _literal_text(value: object) -> str:
    if isinstance(value, datetime.datetime):
        return repr(str(value))
    if isinstance(value, datetime.date):
        return repr(value.isoformat())
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise InputError("dates", value, "integers, texts or dates", "such as dates=range(1, 13)")
    return repr(value)


def _group_for_date(query_group: QueryGroup, condition: ExpressionTree) -> QueryGroup:
    def for_date(question: Query) -> Query:
        conditions = (_both(condition, question.asked.row_condition),)
        return question.with_fields(asked=replace(question.asked, where=conditions))

    vectors = {for_date(question): vectors for question, vectors in query_group.vectors_by_query.items()}
    return replace(query_group, vectors_by_query=MappingProxyType(vectors), where=_both(condition, query_group.where))


def _both(condition: ExpressionTree, where: Term | None) -> ExpressionTree:
    if where is None:
        return condition
    return join_conditions("and", condition, ColumnRef(where) if isinstance(where, str) else where)
