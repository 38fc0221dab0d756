"""The rows of a plan, read once: every question of it is asked of the same rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Any

from tightrope.errors import EngineError, InputError
from tightrope.tables import bounding
from tightrope.tables.backends.column_types import decode_key, person_identity
from tightrope.tables.backends.registry import backend_for
from tightrope.tables.bounding import ProjectedRows, check_request, row_bound_decides
from tightrope.tables.engine_calls import engine_call
from tightrope.tables.expressions.expression import facts_of
from tightrope.tables.expressions.tree import SourceRows
from tightrope.tables.group_keys import Key, key_sort_order
from tightrope.tables.memory import check_row_memory
from tightrope.tables.request import ContributionBounds, DistinctCount, GroupTotals, Measure, Request
from tightrope.tables.schema import Schema

if TYPE_CHECKING:
    import ibis.expr.datatypes as dt
    import ibis.expr.types as ir

# Persons with more rows than may count, found once for all requests that have the same bound on them.
#
# Who is found is looked at closely, and nothing else follows from it: of a person whose rows keep the bound, none is
# dropped. So it does no harm that rows are counted before a request's own condition and keys leave some of them out.

STEP = "find who exceeds a bound"


@dataclass(frozen=True, slots=True)
class OverBoundRows:
    """The persons of one snapshot, by their column and the bound on their rows; tables are dropped with the stack."""

    backend: Any
    table: ir.Table
    shared_bounds: frozenset[ContributionBounds]
    stack: ExitStack
    _persons_by_bounds: dict[ContributionBounds, ir.Table] = field(default_factory=dict)

    @classmethod
    def from_requests(
        cls, backend: Any, table: ir.Table, requests: Sequence[Request], stack: ExitStack
    ) -> OverBoundRows:
        """Build for bounds that several requests share and that depend only on a person's number of rows."""
        alone = (
            one for one in requests if one.bounds.person_column and row_bound_decides(one.bounds, grouped=bool(one.by))
        )
        asked = Counter(_row_bound_only(one.bounds) for one in alone)
        return cls(backend, table, frozenset(bounds for bounds, many in asked.items() if many > 1), stack)

    @contextmanager
    def find_persons(self, narrow: ProjectedRows, bounds: ContributionBounds) -> Iterator[ir.Table]:
        """A table of all (column ``person``) who exceed a bound in these rows, others perhaps among them."""
        plain = _row_bound_only(bounds)
        if plain not in self.shared_bounds or not row_bound_decides(bounds, grouped=bool(narrow.keys)):
            with self._materialize_persons(bounding.persons_over_bound(narrow, bounds)) as few:
                yield few
            return
        if plain not in self._persons_by_bounds:
            everybody = engine_call(STEP, lambda: bounding.persons_over_bound(self._person_column(plain), plain))
            self._persons_by_bounds[plain] = self.stack.enter_context(self._materialize_persons(everybody))
        yield self._persons_by_bounds[plain]

    def _person_column(self, bounds: ContributionBounds) -> ProjectedRows:
        """Return the person column of all rows that belong to a person."""
        assert bounds.person_column is not None  # noqa: S101 - of() and _bounded ask nothing else
        people = self.table.select(person=person_identity(self.table[bounds.person_column]))
        return ProjectedRows(people.filter(people["person"].notnull()), (), ())

    def _materialize_persons(self, persons: ir.Table) -> AbstractContextManager[ir.Table]:
        return backend_for(self.backend).materialize_table(STEP, self.backend, persons)


def _row_bound_only(bounds: ContributionBounds) -> ContributionBounds:
    """The bound on the number of rows alone."""
    return ContributionBounds(bounds.person_column, bounds.max_rows, bounds.max_rows, bounds.max_rows)


# From a table and a request to the integers of every group.

Totals = dict[Key, tuple[int, ...]]
ROWS_ALONE = Request((), None, ContributionBounds(None, 1, 1, 1), (Measure("rows", None, None),))


def collect_totals(
    table: ir.Table, types: Mapping[str, dt.DataType], crowds: OverBoundRows, schema: Schema, request: Request
) -> GroupTotals:
    """The integers that the request asks for, groups sorted by key; every step in the engine is guarded."""
    backend = crowds.backend
    wide, source = not backend_for(backend).has_wide_sums, SourceRows(table, schema)
    narrow, given = engine_call(
        "prepare the columns of a question", lambda: bounding.project_rows(source, types, request, wide=wide)
    )
    if request.row_count_steps:
        # Persons by number of rows: each in one cell, independently of all other persons.
        persons_counted = narrow.table.group_by("person").agg(own=narrow.table.count())
        reached = reduce(add, [(persons_counted["own"] >= step).cast("int64") for step in request.row_count_steps])
        placed = persons_counted.mutate(cell=reached)
        many = placed.count().cast(bounding.WIDE_TOTAL)
        summary = placed.group_by("cell").agg(total0=many, rows=many)
        persons_found = _fetch_totals(backend, summary, ProjectedRows(summary, ("cell",), ()))
        totals = [persons_found.get((place,), (0,))[0] for place in range(1, len(request.row_count_steps) + 1)]
        return GroupTotals(
            tuple((step,) for step in request.row_count_steps), {request.measures[0].name: tuple(totals)}
        )
    found = (
        _compute_totals(backend, narrow, None, request)
        if request.bounds.person_column is None
        else _bounded_totals(crowds, narrow, request)
    )
    if given is not None:
        # by place: Python takes both instants of the hour that autumn repeats for one key
        counted = _arrange_groups([(number,) for number in range(len(given.keys))], found, request)
        return GroupTotals(given.keys, counted.values)
    kinds = [facts_of(term, schema).kind for term in request.by]
    texts = _texts_by_digest(backend, bounding.filter_source(source, request), request, found)
    whole = {tuple(own.get(entry, entry) for own, entry in zip(texts, key, strict=True)): key for key in found}
    named = {tuple(map(decode_key, key, kinds)): found[short] for key, short in whole.items()}
    return _arrange_groups(sorted(named, key=key_sort_order), named, request)


def _texts_by_digest(backend: Any, source: SourceRows, request: Request, found: Totals) -> list[dict[object, str]]:
    """Return each key column's texts whose digests are keys, by digest: read once a group, not once a row."""
    texts: list[dict[object, str]] = []
    for place, term in enumerate(request.by):
        digests = bounding.select_digests(key[place] for key in found)
        own = bounding.texts_with_digests(source, term, digests) if digests else None
        read = {} if own is None else _read_columns(backend, "read the texts of the keys", own)
        texts.append(dict(zip(read.get("digest", ()), read.get("text", ()), strict=True)))
    return texts


def _read_columns(backend: Any, step: str, table: ir.Table) -> dict[str, list[Any]]:
    return engine_call(step, lambda: backend_for(backend).fetch_arrow(backend, table).to_pydict())


def _bounded_totals(crowds: OverBoundRows, narrow: ProjectedRows, request: Request) -> Totals:
    """Return all totals minus the totals of the rows that bounding drops: exact, because they are integers.

    Three scans of few columns: who exceeds a bound, the rows of those few, and all totals at the speed of a plain
    GROUP BY. The first two results are temporary tables: inline, DuckDB would keep a copy of all narrow rows.
    """
    backend = crowds.backend
    with crowds.find_persons(narrow, request.bounds) as few:
        excess = narrow.table.semi_join(few, "person")
        with backend_for(backend).materialize_table(
            "set aside the rows of those who exceed a bound", backend, excess
        ) as held:
            dropped = narrow.with_table(bounding.select_dropped_rows(narrow.with_table(held), request.bounds))
            return _compute_totals(backend, narrow, dropped, request)


def _compute_totals(backend: Any, narrow: ProjectedRows, dropped: ProjectedRows | None, request: Request) -> Totals:
    """The totals of the rows that are not dropped; different values by a query of their own, as they do not add up."""
    found = _fetch_totals(backend, _totals_without_dropped(narrow, dropped, request), narrow)
    for place in (place for place, measure in enumerate(request.measures) if isinstance(measure, DistinctCount)):
        # Of each group, how many values a row has that is not dropped: pairs of group and value, then their number.
        name = f"value{place}"
        less = None if dropped is None else bounding.with_value_key(dropped, name)
        pairs = _totals_without_dropped(bounding.with_value_key(narrow, name), less, ROWS_ALONE)
        left = pairs.filter(pairs["rows"] > 0)
        many = {"total0": left.count().cast(bounding.WIDE_TOTAL), "rows": left.count().cast(bounding.WIDE_TOTAL)}
        own = _fetch_totals(
            backend, left.group_by(list(narrow.keys)).agg(**many) if narrow.keys else left.agg(**many), narrow
        )
        found = {key: (*totals[:place], *own.get(key, (0,)), *totals[place + 1 :]) for key, totals in found.items()}
    return found


def _totals_without_dropped(narrow: ProjectedRows, dropped: ProjectedRows | None, request: Request) -> ir.Table:
    """Return all totals, minus the totals of dropped rows."""
    whole = bounding.totals_by_group(narrow, request)
    if dropped is None:
        return whole
    # The difference of the totals, group by group.
    less, keys = bounding.totals_by_group(dropped, request), narrow.keys
    names = [name for name in whole.columns if name not in keys]
    alike = [less[name].cast(whole[name].type()).name(name) for name in keys]  # Spark forgets a scale
    negated = less.select(*alike, *((-less[name]).cast(bounding.WIDE_TOTAL).name(name) for name in names))
    both = whole.select(*keys, *names).union(negated, distinct=False)
    sums = {name: both[name].sum().cast(bounding.WIDE_TOTAL) for name in names}
    return both.group_by(list(keys)).agg(**sums) if keys else both.agg(**sums)


def _fetch_totals(backend: Any, summary: ir.Table, narrow: ProjectedRows) -> Totals:
    """The totals as Python integers, without groups that bounding left empty (but for the one group of all rows)."""
    columns = _read_columns(backend, "add up the groups", summary)
    keys = zip(*(columns[name] for name in narrow.keys), strict=True) if narrow.keys else [()]
    totals = [map(int, values) for name, values in columns.items() if name.startswith("total")]
    groups = list(zip(keys, zip(*totals, strict=True), columns["rows"], strict=True))
    found = {key: (values, size) for key, values, size in groups}
    if len(found) < len(groups):
        raise EngineError("two groups of the engine have one key in Python; cast the key columns to text")
    return {key: values for key, (values, size) in found.items() if size > 0 or not narrow.keys}


def _arrange_groups(keys: Sequence[Key], found: Totals, request: Request) -> GroupTotals:
    """The groups in this order; a group that was asked for and has no rows is all zeros."""
    nothing = (0,) * len(request.measures)
    totals = [found.get(key, nothing) for key in keys]
    values = {measure.name: tuple(row[place] for row in totals) for place, measure in enumerate(request.measures)}
    return GroupTotals(tuple(keys), values)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Private rows as of its creation, independent of later changes of the source.

    ``types`` are the columns' types in the source, in which keys are given.
    """

    schema: Schema
    types: Mapping[str, dt.DataType] = field(repr=False)
    _over_bound_rows: OverBoundRows = field(repr=False)
    _rows: ir.Table = field(repr=False)

    def collect_totals(self, request: Request) -> GroupTotals:
        """The exact integers that a request asks for, by group: private data, to be noised before anyone sees them.

        Adding or removing one person changes each integer by exactly what that person's own bounded rows add; one of
        ``DistinctCount``, for others may have the same values, by at most that. The
        answer depends neither on the order of rows nor on threads. Rules:

        - a row whose person is NULL is dropped, and so is one whose person is a float but no whole number below 2^53
          (of 32 bits: 2^24), for rounding may have made one of two; with ``person=None`` each row is a person;
        - a text of more than 10,000 bytes is missing, for every use;
        - a NULL key is a key of its own, ``None``; a NaN key is NULL; -0.0 equals 0.0;
        - values that are NULL or NaN are not usable; infinities are clamped; booleans are 0 and 1.

        Raises ``SchemaError`` when a column is missing or has a kind that cannot serve, ``InputError`` when two given
        keys are one in the column's type or one row could take too much memory, ``EngineError`` when the engine fails,
        without a value from the data.
        """
        if not isinstance(request, Request):
            raise InputError("request", type(request), "a tightrope.tables.Request")
        check_request(self.schema, request)
        check_row_memory(request, self.schema)
        return collect_totals(self._rows, self.types, self._over_bound_rows, self.schema, request)
