"""From a table and a request to the integers of every group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Any

from tightrope.engines.backends.column_types import decoded
from tightrope.engines.backends.known import of
from tightrope.engines.expressions.facts import Rows as Source
from tightrope.engines.expressions.terms import facts_of
from tightrope.engines.guard import guarded
from tightrope.engines.request import Distinct, Grouped, Measure, PersonBounds, Request
from tightrope.engines.schema import Schema
from tightrope.engines.snapshot import bounding, rows
from tightrope.engines.snapshot.crowds import Crowds
from tightrope.engines.snapshot.keys import Key, rank
from tightrope.engines.snapshot.rows import Rows
from tightrope.errors import EngineError

if TYPE_CHECKING:
    import ibis.expr.datatypes as dt
    import ibis.expr.types as ir

Totals = dict[Key, tuple[int, ...]]
ROWS_ALONE = Request((), None, PersonBounds(None, 1, 1, 1), (Measure("rows", None, None),))


def collect(
    table: ir.Table, types: Mapping[str, dt.DataType], crowds: Crowds, schema: Schema, request: Request
) -> Grouped:
    """The integers that the request asks for, groups sorted by key; every step in the engine is guarded."""
    backend = crowds.backend
    wide, source = not of(backend).wide_sums, Source(table, schema)
    narrow, given = guarded("prepare the columns of a question", lambda: rows.narrow(source, types, request, wide=wide))
    if request.steps:
        return _persons(backend, narrow, request)
    found = _all(backend, narrow, request) if request.bounds.person is None else _bounded(crowds, narrow, request)
    if given is not None:
        # by place: Python takes both instants of the hour that autumn repeats for one key
        counted = _answer([(number,) for number in range(len(given.keys))], found, request)
        return Grouped(given.keys, counted.values)
    kinds = [facts_of(term, schema).kind for term in request.by]
    texts = _long_texts(backend, rows.asked(source, request), request, found)
    whole = {tuple(own.get(entry, entry) for own, entry in zip(texts, key, strict=True)): key for key in found}
    named = {tuple(map(decoded, key, kinds)): found[short] for key, short in whole.items()}
    return _answer(sorted(named, key=rank), named, request)


def _long_texts(backend: Any, source: Source, request: Request, found: Totals) -> list[dict[object, str]]:
    """Of each key column, the texts whose digests are keys, by these: read once for each group, not for each row."""
    texts: list[dict[object, str]] = []
    for place, term in enumerate(request.by):
        digests = rows.digests(key[place] for key in found)
        own = rows.long_texts(source, term, digests) if digests else None
        read = {} if own is None else _columns(backend, "read the texts of the keys", own)
        texts.append(dict(zip(read.get("digest", ()), read.get("text", ()), strict=True)))
    return texts


def _columns(backend: Any, step: str, table: ir.Table) -> dict[str, list[Any]]:
    return guarded(step, lambda: of(backend).fetched(backend, table).to_pydict())


def _all(backend: Any, narrow: Rows, request: Request) -> Totals:
    """The totals where each row is a person: nothing to bound."""
    return _totals(backend, narrow, None, request)


def _persons(backend: Any, narrow: Rows, request: Request) -> Grouped:
    """How many persons have so many rows: each in one cell, whatever rows the others have."""
    counted = narrow.table.group_by("person").agg(own=narrow.table.count())
    reached = reduce(add, [(counted["own"] >= step).cast("int64") for step in request.steps])
    placed = counted.mutate(cell=reached)
    many = placed.count().cast(rows.WIDE_TOTAL)
    summary = placed.group_by("cell").agg(total0=many, rows=many)
    found = _fetched(backend, summary, Rows(summary, ("cell",), ()))
    totals = [found.get((place,), (0,))[0] for place in range(1, len(request.steps) + 1)]
    return Grouped(tuple((step,) for step in request.steps), {request.measures[0].name: tuple(totals)})


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
    found = _fetched(backend, _kept(narrow, dropped, request), narrow)
    for place in (place for place, measure in enumerate(request.measures) if isinstance(measure, Distinct)):
        own = _fetched(backend, _different(narrow, dropped, f"value{place}"), narrow)
        found = {key: (*totals[:place], *own.get(key, (0,)), *totals[place + 1 :]) for key, totals in found.items()}
    return found


def _kept(narrow: Rows, dropped: Rows | None, request: Request) -> ir.Table:
    """All totals, minus those of the rows that are dropped."""
    whole = rows.totals(narrow, request)
    return whole if dropped is None else _difference(whole, rows.totals(dropped, request), narrow.keys)


def _different(narrow: Rows, dropped: Rows | None, name: str) -> ir.Table:
    """Of each group, how many values a row has that is not dropped: pairs of group and value, then their number."""
    less = None if dropped is None else rows.by_value(dropped, name)
    pairs = _kept(rows.by_value(narrow, name), less, ROWS_ALONE)
    left = pairs.filter(pairs["rows"] > 0)
    many = {"total0": left.count().cast(rows.WIDE_TOTAL), "rows": left.count().cast(rows.WIDE_TOTAL)}
    return left.group_by(list(narrow.keys)).agg(**many) if narrow.keys else left.agg(**many)


def _difference(minuend: ir.Table, subtrahend: ir.Table, keys: Sequence[str]) -> ir.Table:
    """The totals of one minus those of the other, group by group."""
    names = [name for name in minuend.columns if name not in keys]
    alike = [subtrahend[name].cast(minuend[name].type()).name(name) for name in keys]  # Spark forgets a scale
    negated = subtrahend.select(*alike, *((-subtrahend[name]).cast(rows.WIDE_TOTAL).name(name) for name in names))
    both = minuend.select(*keys, *names).union(negated, distinct=False)
    sums = {name: both[name].sum().cast(rows.WIDE_TOTAL) for name in names}
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
