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
from tightrope.tables.backends.column_types import decoded, identity
from tightrope.tables.backends.registry import of
from tightrope.tables.bounding import Rows, check, rows_alone
from tightrope.tables.engine_calls import guarded
from tightrope.tables.expressions.expression import facts_of
from tightrope.tables.expressions.tree import Rows as Source
from tightrope.tables.group_keys import Key, rank
from tightrope.tables.memory import refuse_large
from tightrope.tables.request import Distinct, Grouped, Measure, PersonBounds, Request
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
class Crowds:
    """The persons of one snapshot, by their column and the bound on their rows; tables are dropped with the stack."""

    backend: Any
    table: ir.Table
    shared: frozenset[PersonBounds]
    stack: ExitStack
    _found: dict[PersonBounds, ir.Table] = field(default_factory=dict)

    @classmethod
    def of(cls, backend: Any, table: ir.Table, requests: Sequence[Request], stack: ExitStack) -> Crowds:
        """For bounds of several requests that the number of a person's rows decides."""
        alone = (one for one in requests if one.bounds.person and rows_alone(one.bounds, grouped=bool(one.by)))
        asked = Counter(_plain(one.bounds) for one in alone)
        return cls(backend, table, frozenset(bounds for bounds, many in asked.items() if many > 1), stack)

    @contextmanager
    def persons(self, narrow: Rows, bounds: PersonBounds) -> Iterator[ir.Table]:
        """A table of all (column ``person``) who exceed a bound in these rows, others perhaps among them."""
        plain = _plain(bounds)
        if plain not in self.shared or not rows_alone(bounds, grouped=bool(narrow.keys)):
            with self._materialized_units(bounding.over_bound(narrow, bounds)) as few:
                yield few
            return
        if plain not in self._found:
            everybody = guarded(STEP, lambda: bounding.over_bound(self._everybody(plain), plain))
            self._found[plain] = self.stack.enter_context(self._materialized_units(everybody))
        yield self._found[plain]

    def _everybody(self, bounds: PersonBounds) -> Rows:
        """All rows that are anybody's, and nothing of them but whose they are."""
        assert bounds.person is not None  # noqa: S101 - of() and _bounded ask nothing else
        people = self.table.select(person=identity(self.table[bounds.person]))
        return Rows(people.filter(people["person"].notnull()), (), ())

    def _materialized_units(self, persons: ir.Table) -> AbstractContextManager[ir.Table]:
        return of(self.backend).materialised(STEP, self.backend, persons)


def _plain(bounds: PersonBounds) -> PersonBounds:
    """The bound on the number of rows alone."""
    return PersonBounds(bounds.person, bounds.rows, bounds.rows, bounds.rows)


# From a table and a request to the integers of every group.

Totals = dict[Key, tuple[int, ...]]
ROWS_ALONE = Request((), None, PersonBounds(None, 1, 1, 1), (Measure("rows", None, None),))


def collect(
    table: ir.Table, types: Mapping[str, dt.DataType], crowds: Crowds, schema: Schema, request: Request
) -> Grouped:
    """The integers that the request asks for, groups sorted by key; every step in the engine is guarded."""
    backend = crowds.backend
    wide, source = not of(backend).wide_sums, Source(table, schema)
    narrow, given = guarded(
        "prepare the columns of a question", lambda: bounding.narrow(source, types, request, wide=wide)
    )
    if request.steps:
        # How many persons have so many rows: each in one cell, whatever rows the others have.
        persons_counted = narrow.table.group_by("person").agg(own=narrow.table.count())
        reached = reduce(add, [(persons_counted["own"] >= step).cast("int64") for step in request.steps])
        placed = persons_counted.mutate(cell=reached)
        many = placed.count().cast(bounding.WIDE_TOTAL)
        summary = placed.group_by("cell").agg(total0=many, rows=many)
        persons_found = _fetched(backend, summary, Rows(summary, ("cell",), ()))
        totals = [persons_found.get((place,), (0,))[0] for place in range(1, len(request.steps) + 1)]
        return Grouped(tuple((step,) for step in request.steps), {request.measures[0].name: tuple(totals)})
    found = (
        _totals(backend, narrow, None, request) if request.bounds.person is None else _bounded(crowds, narrow, request)
    )
    if given is not None:
        # by place: Python takes both instants of the hour that autumn repeats for one key
        counted = _answer([(number,) for number in range(len(given.keys))], found, request)
        return Grouped(given.keys, counted.values)
    kinds = [facts_of(term, schema).kind for term in request.by]
    texts = _long_texts(backend, bounding.filtered_source(source, request), request, found)
    whole = {tuple(own.get(entry, entry) for own, entry in zip(texts, key, strict=True)): key for key in found}
    named = {tuple(map(decoded, key, kinds)): found[short] for key, short in whole.items()}
    return _answer(sorted(named, key=rank), named, request)


def _long_texts(backend: Any, source: Source, request: Request, found: Totals) -> list[dict[object, str]]:
    """Of each key column, the texts whose digests are keys, by these: read once for each group, not for each row."""
    texts: list[dict[object, str]] = []
    for place, term in enumerate(request.by):
        digests = bounding.digests(key[place] for key in found)
        own = bounding.long_texts(source, term, digests) if digests else None
        read = {} if own is None else _columns(backend, "read the texts of the keys", own)
        texts.append(dict(zip(read.get("digest", ()), read.get("text", ()), strict=True)))
    return texts


def _columns(backend: Any, step: str, table: ir.Table) -> dict[str, list[Any]]:
    return guarded(step, lambda: of(backend).fetched(backend, table).to_pydict())


def _bounded(crowds: Crowds, narrow: Rows, request: Request) -> Totals:
    """All totals minus those of the rows that bounding drops: exact, because they are integers.

    Three scans of few columns: who exceeds a bound, the rows of those few, and all totals at the speed of a plain
    GROUP BY. The first two results are temporary tables: inline, DuckDB would keep a copy of all narrow rows.
    """
    backend = crowds.backend
    with crowds.persons(narrow, request.bounds) as few:
        excess = narrow.table.semi_join(few, "person")
        with of(backend).materialised("set aside the rows of those who exceed a bound", backend, excess) as held:
            dropped = narrow.replaced(bounding.dropped(narrow.replaced(held), request.bounds))
            return _totals(backend, narrow, dropped, request)


def _totals(backend: Any, narrow: Rows, dropped: Rows | None, request: Request) -> Totals:
    """The totals of the rows that are not dropped; different values by a query of their own, as they do not add up."""
    found = _fetched(backend, _total_without_dropped(narrow, dropped, request), narrow)
    for place in (place for place, measure in enumerate(request.measures) if isinstance(measure, Distinct)):
        # Of each group, how many values a row has that is not dropped: pairs of group and value, then their number.
        name = f"value{place}"
        less = None if dropped is None else bounding.by_value(dropped, name)
        pairs = _total_without_dropped(bounding.by_value(narrow, name), less, ROWS_ALONE)
        left = pairs.filter(pairs["rows"] > 0)
        many = {"total0": left.count().cast(bounding.WIDE_TOTAL), "rows": left.count().cast(bounding.WIDE_TOTAL)}
        own = _fetched(
            backend, left.group_by(list(narrow.keys)).agg(**many) if narrow.keys else left.agg(**many), narrow
        )
        found = {key: (*totals[:place], *own.get(key, (0,)), *totals[place + 1 :]) for key, totals in found.items()}
    return found


def _total_without_dropped(narrow: Rows, dropped: Rows | None, request: Request) -> ir.Table:
    """All totals, minus those of the rows that are dropped."""
    whole = bounding.totals(narrow, request)
    return whole if dropped is None else _difference(whole, bounding.totals(dropped, request), narrow.keys)


def _difference(minuend: ir.Table, subtrahend: ir.Table, keys: Sequence[str]) -> ir.Table:
    """The totals of one minus those of the other, group by group."""
    names = [name for name in minuend.columns if name not in keys]
    alike = [subtrahend[name].cast(minuend[name].type()).name(name) for name in keys]  # Spark forgets a scale
    negated = subtrahend.select(*alike, *((-subtrahend[name]).cast(bounding.WIDE_TOTAL).name(name) for name in names))
    both = minuend.select(*keys, *names).union(negated, distinct=False)
    sums = {name: both[name].sum().cast(bounding.WIDE_TOTAL) for name in names}
    return both.group_by(list(keys)).agg(**sums) if keys else both.agg(**sums)


def _fetched(backend: Any, summary: ir.Table, narrow: Rows) -> Totals:
    """The totals as Python integers, without groups that bounding left empty (but for the one group of all rows)."""
    columns = _columns(backend, "add up the groups", summary)
    keys = zip(*(columns[name] for name in narrow.keys), strict=True) if narrow.keys else [()]
    totals = [map(int, values) for name, values in columns.items() if name.startswith("total")]
    groups = list(zip(keys, zip(*totals, strict=True), columns["rows"], strict=True))
    found = {key: (values, size) for key, values, size in groups}
    if len(found) < len(groups):
        raise EngineError("two groups of the engine have one key in Python; cast the key columns to text")
    return {key: values for key, (values, size) in found.items() if size > 0 or not narrow.keys}


def _answer(keys: Sequence[Key], found: Totals, request: Request) -> Grouped:
    """The groups in this order; a group that was asked for and has no rows is all zeros."""
    nothing = (0,) * len(request.measures)
    totals = [found.get(key, nothing) for key in keys]
    values = {measure.name: tuple(row[place] for row in totals) for place, measure in enumerate(request.measures)}
    return Grouped(tuple(keys), values)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Private rows: those that there were when it was made, whatever becomes of the source.

    ``types`` are the columns' types in the source, which keys are given in.
    """

    schema: Schema
    types: Mapping[str, dt.DataType] = field(repr=False)
    _crowds: Crowds = field(repr=False)
    _rows: ir.Table = field(repr=False)

    def collect(self, request: Request) -> Grouped:
        """The exact integers that a request asks for, by group: private data, to be noised before anyone sees them.

        Adding or removing one person changes each integer by exactly what that person's own bounded rows add; one of
        ``Distinct``, for others may have the same values, by at most that. The
        answer depends neither on the order of rows nor on threads. Rules:

        - a row whose person is NULL is dropped, and so is one whose person is a float but no whole number below 2^53
          (of 32 bits: 2^24), for rounding may have made one of two; with ``person=None`` each row is a person;
        - a text of more than 10,000 bytes is missing, whatever it is used for;
        - a NULL key is a key of its own, ``None``; a NaN key is NULL; -0.0 equals 0.0;
        - values that are NULL or NaN are not usable; infinities are clamped; booleans are 0 and 1.

        Raises ``SchemaError`` when a column is missing or has a kind that cannot serve, ``InputError`` when two given
        keys are one in the column's type or one row could take too much memory, ``EngineError`` when the engine fails,
        without a value from the data.
        """
        if not isinstance(request, Request):
            raise InputError("request", type(request), "a tightrope.tables.Request")
        check(self.schema, request)
        refuse_large(request, self.schema)
        return collect(self._rows, self.types, self._crowds, self.schema, request)
