"""Snapshots of the rows of a plan, which all its queries read, and the exact integers of each request."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Any

from tightrope.errors import EngineError, InputError
from tightrope.tables import bounding
from tightrope.tables.backends.column_types import DIGEST_LENGTH, decode_key, person_identity
from tightrope.tables.backends.registry import backend_for
from tightrope.tables.bounding import ProjectedRows, check_request, max_rows_implies_other_bounds
from tightrope.tables.engine_calls import engine_call, load_library
from tightrope.tables.expressions.expression import Term, engine_column, term_facts
from tightrope.tables.expressions.tree import SourceRows
from tightrope.tables.group_keys import Key, key_sort_order
from tightrope.tables.memory import MAX_ROW_BYTES, check_row_memory, row_memory_bytes
from tightrope.tables.request import (
    ContributionBounds,
    DistinctCount,
    GroupTotals,
    MarginalRequest,
    Measure,
    Request,
    table_name,
)
from tightrope.tables.schema import Schema

if TYPE_CHECKING:
    import ibis.expr.datatypes as dt
    import ibis.expr.types as ir
    from ibis.backends import BaseBackend

FIND_PERSONS = "find who exceeds a bound"

Totals = dict[Key, tuple[int, ...]]
ROW_COUNT = Request((), None, ContributionBounds(None, 1, 1, 1), (Measure("rows", None, None),))
"""A request for the number of rows."""


@dataclass(frozen=True, slots=True)
class SharedRows:
    """Requests for the same rows under the same bound on a person's number of rows, and all their columns together.

    The rows of persons over the bound are hashed once for all of them, with the columns of all. ``combined`` is the
    request for these columns, and ``positions`` are their positions in it by term or measure.
    """

    members: tuple[Request, ...]
    combined: Request
    positions: Mapping[tuple[object, ...], int]

    @classmethod
    def from_requests(cls, members: tuple[Request, ...]) -> SharedRows:
        """Combine the columns of requests. A key is projected as the value of a distinct count, which is the same."""
        columns: dict[tuple[object, ...], Measure] = {}
        for request in members:
            keys = [DistinctCount("key", term, None) for term in request.by]
            for measure in (*keys, *(measure for measure in request.measures if measure.column is not None)):
                columns.setdefault(_column_identity(measure), replace(measure, name=f"column {len(columns)}"))
        bounds, where = _row_bound_only(members[0].bounds), members[0].where
        measures = tuple(columns.values()) or (Measure("rows", None, None),)
        return cls(
            members,
            Request((), None, bounds, measures, where),
            {identity: index for index, identity in enumerate(columns)},
        )

    def select_columns(self, rows: ProjectedRows, request: Request) -> ProjectedRows:
        """Return the columns of one member, as ``project_rows`` names them, and the rows' positions."""
        keys = {f"key{index}": self.positions[_column_identity(term)] for index, term in enumerate(request.by)}
        values = {
            f"value{index}": self.positions[_column_identity(measure)]
            for index, measure in enumerate(request.measures)
            if measure.column is not None
        }
        columns = {name: rows.table[f"value{position}"] for name, position in (keys | values).items()}
        table = rows.table.select(person=rows.table["person"], position=rows.table["position"], **columns)
        return ProjectedRows(table, tuple(keys), tuple(values))


def _column_identity(column: Measure | Term) -> tuple[object, ...]:
    """Return what distinguishes a column of projected rows: its term, or how it is measured."""
    if not isinstance(column, Measure):
        return (DistinctCount, column, None, None)
    return (type(column), column.column, column.fixed_point, column.second_column)


def share_rows(requests: Iterable[Request], schema: Schema) -> tuple[SharedRows, ...]:
    """Return the requests whose rows of persons over a bound are hashed together.

    They have the same condition, list no keys but all cells, and their columns fit in one hashed text. Rows under
    different conditions, or of listed keys, stay apart, because they may be few.
    """
    groups: dict[tuple[ContributionBounds, Term | None], list[SharedRows]] = {}
    for request in dict.fromkeys(requests):
        counts_rows = request.bounds.person_column is not None and not request.row_count_steps
        if not (counts_rows and request.keeps_all_keys and _max_rows_implies_other_bounds(request)):
            continue
        groups_of_rows = groups.setdefault((_row_bound_only(request.bounds), request.where), [])
        last = groups_of_rows[-1].members if groups_of_rows else ()
        together = SharedRows.from_requests((*last, request))
        fits = len(together.positions) < bounding.COLUMNS_PER_TEXT - 1  # next to the person and the number of a copy
        if last and fits and row_memory_bytes(together.combined, schema) <= MAX_ROW_BYTES:
            groups_of_rows[-1] = together
        else:
            groups_of_rows.append(SharedRows.from_requests((request,)))
    return tuple(shared for row_groups in groups.values() for shared in row_groups if len(shared.members) > 1)


@dataclass(frozen=True, slots=True)
class OverBoundPersons:
    """The persons of a snapshot who exceed a bound, and their rows, found once for all requests that share them.

    Rows are counted before a request's keys are applied, and before its condition unless all requests with the same
    bound have it, so that some persons may be within the bound afterwards. That has no effect, because bounding drops
    none of their rows. ``stack`` drops the tables at the end.
    """

    backend: BaseBackend
    rows: SourceRows
    conditions: Mapping[ContributionBounds, Term | None]
    """The condition under which rows are counted, by the bound on a person's number of rows."""
    shared_rows: tuple[SharedRows, ...]
    stack: ExitStack
    _persons_by_bounds: dict[ContributionBounds, ir.Table] = field(default_factory=dict)
    _rows_by_requests: dict[tuple[Request, ...], ProjectedRows] = field(default_factory=dict)

    @classmethod
    def from_requests(
        cls, backend: BaseBackend, rows: SourceRows, requests: Sequence[Request], stack: ExitStack
    ) -> OverBoundPersons:
        """Build for the requests for which a person's number of rows decides."""
        conditions: dict[ContributionBounds, Term | None] = {}
        for request in requests:
            if request.bounds.person_column is None or not _max_rows_implies_other_bounds(request):
                continue
            bounds = _row_bound_only(request.bounds)
            is_common = conditions.setdefault(bounds, request.where) == request.where
            conditions[bounds] = request.where if is_common else None
        shared_rows = share_rows(requests, rows.schema) if conditions else ()
        return cls(backend, rows, conditions, shared_rows, stack)

    @contextmanager
    def find_persons(self, projected: ProjectedRows, request: Request) -> Iterator[ir.Table]:
        """Yield a table (column ``person``) of all persons who exceed a bound in these rows, and perhaps of others."""
        row_bound = _row_bound_only(request.bounds)
        if row_bound not in self.conditions or not _max_rows_implies_other_bounds(request):
            with self._materialize_persons(self._persons_over_bound(projected, request.bounds)) as persons:
                yield persons
            return
        if row_bound not in self._persons_by_bounds:
            rows = self._person_column(row_bound)
            persons = engine_call(FIND_PERSONS, lambda: self._persons_over_bound(rows, row_bound))
            self._persons_by_bounds[row_bound] = self.stack.enter_context(self._materialize_persons(persons))
        yield self._persons_by_bounds[row_bound]

    def _persons_over_bound(self, rows: ProjectedRows, bounds: ContributionBounds) -> ir.Table:
        if max_rows_implies_other_bounds(bounds, grouped=bool(rows.keys)):
            persons = rows.table.select("person")
            frequent = backend_for(self.backend).drop_rare_persons(self.backend, persons, bounds.max_rows)
            rows = ProjectedRows(frequent, (), ())
            bounds = _row_bound_only(bounds)
        return bounding.persons_over_bound(rows, bounds)

    def _person_column(self, bounds: ContributionBounds) -> ProjectedRows:
        """Return the person column of all rows that belong to a person and meet the common condition."""
        request = Request((), None, bounds, (Measure("rows", None, None),), self.conditions[bounds])
        source = bounding.filter_source(self.rows, request)
        assert bounds.person_column is not None  # noqa: S101 - a request without persons has no bound
        people = source.table.select(person=person_identity(engine_column(bounds.person_column, source)))
        return ProjectedRows(people.filter(people["person"].notnull()), (), ())

    def _materialize_persons(self, persons: ir.Table) -> AbstractContextManager[ir.Table]:
        return backend_for(self.backend).materialize_table(FIND_PERSONS, self.backend, persons)

    def bounded_totals(self, projected: ProjectedRows, request: Request) -> Totals:
        """Return all totals minus the totals of the rows that bounding drops; exact, because they are integers.

        The projected rows are scanned three times: for the persons who exceed a bound, for these persons' rows, and for
        all totals, a plain GROUP BY. The first two results are temporary tables, because in one query DuckDB would keep
        a copy of all projected rows. Requests that share rows scan them once.
        """
        shared = next((shared for shared in self.shared_rows if request in shared.members), None)
        if shared is not None:
            rows = shared.select_columns(self._ordered_rows(shared), request)
            if request.lists_all_cells:
                rows = bounding.renumber_positions(rows.with_all_cells())
            dropped = projected.with_table(bounding.select_dropped_rows(rows, request.bounds))
            return _compute_totals(self.backend, projected, dropped, request)
        with self.dropped_rows(projected, request) as own_dropped:
            return _compute_totals(self.backend, projected, own_dropped, request)

    @contextmanager
    def dropped_rows(self, projected: ProjectedRows, request: Request) -> Iterator[ProjectedRows | None]:
        """Yield the rows that bounding drops, for one request by itself; None if each row is a person."""
        if request.bounds.person_column is None:
            yield None
            return
        with self._copy_rows(projected, request) as rows:
            ordered = bounding.order_rows_of_persons(rows)
            yield projected.with_table(bounding.select_dropped_rows(ordered, request.bounds))

    @contextmanager
    def _copy_rows(self, projected: ProjectedRows, request: Request) -> Iterator[ProjectedRows]:
        """Yield a copy of the rows of the persons who exceed a bound."""
        with self.find_persons(projected, request) as persons:
            candidates = projected.table.semi_join(persons, "person")
            step = "copy the rows of persons who exceed a bound"
            with backend_for(self.backend).materialize_table(step, self.backend, candidates) as rows:
                yield projected.with_table(rows)

    def _ordered_rows(self, shared: SharedRows) -> ProjectedRows:
        """Return the rows of persons over the bound, with the columns of all these requests and their positions."""
        if shared.members not in self._rows_by_requests:
            wide = not backend_for(self.backend).has_wide_sums
            projected, _ = bounding.project_rows(self.rows, {}, shared.combined, wide=wide)
            with self._copy_rows(projected, shared.combined) as copied:
                ordered = bounding.order_rows_of_persons(copied)
                step = "order the rows of persons who exceed a bound"
                table = backend_for(self.backend).materialize_table(step, self.backend, ordered.table)
                self._rows_by_requests[shared.members] = ordered.with_table(self.stack.enter_context(table))
        return self._rows_by_requests[shared.members]


def _max_rows_implies_other_bounds(request: Request) -> bool:
    """Return whether a person's number of rows, as they are in the table, decides who exceeds a bound."""
    return request.person_value is None and max_rows_implies_other_bounds(request.bounds, grouped=bool(request.by))


def _row_bound_only(bounds: ContributionBounds) -> ContributionBounds:
    """Return the bounds that limit a person's number of rows alone."""
    return ContributionBounds(bounds.person_column, bounds.max_rows, bounds.max_rows, bounds.max_rows)


def collect_totals(
    table: ir.Table, types: Mapping[str, dt.DataType], over_bound: OverBoundPersons, schema: Schema, request: Request
) -> GroupTotals:
    """Return the integers of a request, with groups sorted by key; see ``Snapshot.collect_totals``."""
    backend = over_bound.backend
    wide, source = not backend_for(backend).has_wide_sums, SourceRows(table, schema)
    projected, given = engine_call(
        "prepare the columns of a question", lambda: bounding.project_rows(source, types, request, wide=wide)
    )
    if isinstance(request, MarginalRequest):
        return _marginal_totals(projected, over_bound, request)
    if request.row_count_steps:
        # Count persons by the number of steps that their number of rows reaches.
        row_counts = projected.table.group_by("person").agg(own_rows=projected.table.count())
        reached = reduce(add, [(row_counts["own_rows"] >= step).cast("int64") for step in request.row_count_steps])
        with_step = row_counts.mutate(cell=reached)
        person_count = with_step.count().cast(bounding.WIDE_TYPE)
        summary = with_step.group_by("cell").agg(total0=person_count, rows=person_count)
        persons_by_cell = _fetch_totals(backend, summary, ProjectedRows(summary, ("cell",), ()))
        totals = [persons_by_cell.get((cell,), (0,))[0] for cell in range(1, len(request.row_count_steps) + 1)]
        return GroupTotals(
            tuple((step,) for step in request.row_count_steps), {request.measures[0].name: tuple(totals)}
        )
    totals_by_key = (
        _compute_totals(backend, projected, None, request)
        if request.bounds.person_column is None or (request.person_value is not None and not request.group_terms)
        else over_bound.bounded_totals(projected, request)
    )
    if given is not None:
        # By number, because Python compares both instants of the hour that is repeated in autumn as equal.
        by_number = _arrange_groups([(number,) for number in range(len(given.keys))], totals_by_key, request)
        return GroupTotals(given.keys, by_number.values)
    if request.keys is not None and request.lists_all_cells:
        return _arrange_groups(request.keys, totals_by_key, request)
    kinds = [term_facts(term, schema).kind for term in request.by]
    texts = _texts_by_digest(backend, bounding.filter_source(source, request), request, totals_by_key)
    decoded = {}
    for key, totals_of_key in totals_by_key.items():
        full_key = tuple(column.get(entry, entry) for column, entry in zip(texts, key, strict=True))
        decoded[tuple(map(decode_key, full_key, kinds))] = totals_of_key
    return _arrange_groups(sorted(decoded, key=key_sort_order), decoded, request)


MAX_TABLES_PER_QUERY = 50
"""Maximum number of tables of counts that one query computes."""


def _marginal_totals(projected: ProjectedRows, over_bound: OverBoundPersons, request: MarginalRequest) -> GroupTotals:
    """Return the cells of each table. The rows are read once, to count all combinations of values that occur."""
    backend, step = over_bound.backend, "count the combinations of values"
    with over_bound.dropped_rows(projected, request) as dropped:
        combinations = engine_call(step, lambda: _totals_without_dropped(projected, dropped, request))
        with backend_for(backend).materialize_table(step, backend, combinations) as counted:
            return _add_up_tables(backend, projected.with_table(counted), request)


def _add_up_tables(backend: BaseBackend, counted: ProjectedRows, request: MarginalRequest) -> GroupTotals:
    """Return the cells of each table from the counts (column ``total0``) of all combinations of values."""
    numbered, counts = list(enumerate(request.tables)), [[0] * size for size in request.table_sizes]
    for first in range(0, len(numbered), MAX_TABLES_PER_QUERY):
        some = numbered[first : first + MAX_TABLES_PER_QUERY]
        parts = [_cells_of_table(counted, request, *one) for one in some]
        columns = _read_columns(backend, "add up the cells", reduce(_append_rows, parts))
        for part, cell, total in zip(columns["part"], columns["cell"], columns["total"], strict=True):
            counts[part][cell] += int(total)
    return GroupTotals(
        (), {table_name(table): tuple(cells) for table, cells in zip(request.tables, counts, strict=True)}
    )


def _cells_of_table(counted: ProjectedRows, request: MarginalRequest, number: int, table: tuple[int, ...]) -> ir.Table:
    """Return the number of rows in each cell of one table, by the cell's position, without empty cells."""
    ibis, rows = load_library("ibis"), counted.table
    cell = ibis.literal(0, "int64")
    for column in table:
        cell = cell * len(request.column_values[column]) + rows[counted.keys[column]].cast("int64")
    cells = rows.select(cell=cell.cast("int64"), total=rows["total0"])
    sums = cells.group_by("cell").agg(total=cells["total"].sum().cast(bounding.WIDE_TYPE))
    return sums.select(part=ibis.literal(number, "int64"), cell=sums["cell"], total=sums["total"])


def _append_rows(first: ir.Table, second: ir.Table) -> ir.Table:
    return first.union(second, distinct=False)


def _texts_by_digest(
    backend: BaseBackend, source: SourceRows, request: Request, keys: Iterable[Key]
) -> list[dict[object, str]]:
    """Return, for each key column, the long texts by their digests, for the digests that occur in keys."""
    texts: list[dict[object, str]] = []
    for index, term in enumerate(request.by):
        entries = dict.fromkeys(key[index] for key in keys)
        digests = tuple(entry for entry in entries if isinstance(entry, str) and len(entry) == DIGEST_LENGTH)
        if not digests:
            texts.append({})
            continue
        table = bounding.texts_with_digests(source, term, digests)
        columns = _read_columns(backend, "read the texts of the keys", table)
        texts.append(dict(zip(columns["digest"], columns["text"], strict=True)))
    return texts


def _read_columns(backend: BaseBackend, step: str, table: ir.Table) -> dict[str, list[Any]]:
    return engine_call(step, lambda: backend_for(backend).fetch_arrow(backend, table).to_pydict())


def _compute_totals(
    backend: BaseBackend, projected: ProjectedRows, dropped: ProjectedRows | None, request: Request
) -> Totals:
    """Return the totals of the rows that are not dropped; each distinct count is a separate query."""
    all_totals = _fetch_totals(backend, _totals_without_dropped(projected, dropped, request), projected)
    for index in (index for index, measure in enumerate(request.measures) if isinstance(measure, DistinctCount)):
        # Count the pairs of group and value that have a row that is not dropped.
        name = f"value{index}"
        dropped_values = None if dropped is None else bounding.with_value_key(dropped, name)
        pairs = _totals_without_dropped(bounding.with_value_key(projected, name), dropped_values, ROW_COUNT)
        used_pairs = pairs.filter(pairs["rows"] > 0)
        value_count = used_pairs.count().cast(bounding.WIDE_TYPE)
        groups = used_pairs.group_by(list(projected.keys)) if projected.keys else used_pairs
        counts = _fetch_totals(backend, groups.agg(total0=value_count, rows=value_count), projected)
        all_totals = {
            key: (*totals[:index], *counts.get(key, (0,)), *totals[index + 1 :]) for key, totals in all_totals.items()
        }
    return all_totals


def _totals_without_dropped(projected: ProjectedRows, dropped: ProjectedRows | None, request: Request) -> ir.Table:
    """Return all totals, minus the totals of dropped rows."""
    totals = bounding.totals_by_group(projected, request)
    if dropped is None:
        return totals
    # The difference, group by group, is the sum of the totals and the negated totals of dropped rows.
    dropped_totals, keys = bounding.totals_by_group(dropped, request), projected.keys
    names = [name for name in totals.columns if name not in keys]
    key_columns = [dropped_totals[name].cast(totals[name].type()).name(name) for name in keys]  # Spark loses a scale
    negated = [(-dropped_totals[name]).cast(bounding.WIDE_TYPE).name(name) for name in names]
    union = totals.select(*keys, *names).union(dropped_totals.select(*key_columns, *negated), distinct=False)
    sums = {name: union[name].sum().cast(bounding.WIDE_TYPE) for name in names}
    return union.group_by(list(keys)).agg(**sums) if keys else union.agg(**sums)


def _fetch_totals(backend: BaseBackend, summary: ir.Table, projected: ProjectedRows) -> Totals:
    """Return the totals as Python integers, without groups that have no row left; without keys, always one group."""
    columns = _read_columns(backend, "add up the groups", summary)
    keys = zip(*(columns[name] for name in projected.keys), strict=True) if projected.keys else [()]
    totals = [map(int, values) for name, values in columns.items() if name.startswith("total")]
    groups = list(zip(keys, zip(*totals, strict=True), columns["rows"], strict=True))
    if len({key for key, _, _ in groups}) < len(groups):
        raise EngineError("two groups of the engine have one key in Python; cast the key columns to text")
    return {key: values for key, values, size in groups if size > 0 or not projected.keys}


def _arrange_groups(keys: Sequence[Key], totals_by_key: Totals, request: Request) -> GroupTotals:
    """Return the groups in the order of ``keys``; a group without rows has zeros."""
    zeros = (0,) * len(request.measures)
    totals = [totals_by_key.get(key, zeros) for key in keys]
    values = {measure.name: tuple(row[index] for row in totals) for index, measure in enumerate(request.measures)}
    return GroupTotals(tuple(keys), values)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Private rows as of its creation, independent of later changes of the source.

    ``types`` are the columns' types in the source, in which keys are given.
    """

    schema: Schema
    types: Mapping[str, dt.DataType] = field(repr=False)
    _over_bound_rows: OverBoundPersons = field(repr=False)
    _rows: ir.Table = field(repr=False)

    def collect_totals(self, request: Request) -> GroupTotals:
        """Return the exact integers of a request by group: private data, to which noise must be added.

        Adding or removing one person changes each integer by exactly the sum of that person's bounded rows, and a
        ``DistinctCount`` by at most their number. The result does not depend on the order of rows or on threads. Rules:

        - a row whose person is NULL is dropped; so is one whose person is a float that is not an integer below 2^53 (in
          32 bits: 2^24), because rounding may have merged two persons; without a person column each row is a person;
        - a text of more than 10,000 bytes is missing, for every use;
        - a NULL key is the key ``None``; a NaN key is NULL; -0.0 equals 0.0;
        - values that are NULL or NaN are not usable; infinities are clamped; booleans are 0 and 1.

        Raises ``SchemaError`` if a column is missing or has an unsuitable kind, ``InputError`` if two given keys are
        equal in the column's type or one row could take too much memory, ``EngineError`` if the engine fails, without a
        value from the data.
        """
        if not isinstance(request, Request):
            raise InputError("request", type(request), "a tightrope.tables.Request")
        check_request(self.schema, request)
        check_row_memory(request, self.schema)
        return collect_totals(self._rows, self.types, self._over_bound_rows, self.schema, request)
