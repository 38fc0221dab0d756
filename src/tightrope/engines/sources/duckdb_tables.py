"""DuckDB's own: tables of a database file, which is opened read-only, and relations of a connection of the user's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tightrope.engines.backends.column_types import WIDEST_DECIMAL, schema_of
from tightrope.engines.backends.duckdb import connect
from tightrope.engines.backends.relation import Relation
from tightrope.engines.ground.job import ROWS
from tightrope.engines.guard import guarded, load
from tightrope.engines.snapshot.room import Rows
from tightrope.engines.sources.stamp import Stamped
from tightrope.engines.table import Table, check_names, streamed
from tightrope.errors import InputError, SchemaError, listed, nearest

MAIN = "main"
WIDE = ("HUGEINT", "UHUGEINT")
AS_TEXT = (*WIDE, "UUID")
WHOLE_NUMBER = rf"^-?\d{{1,{WIDEST_DECIMAL}}}$"


def open_duckdb(path: Path, name: str | None) -> Table:
    """A table or view of a DuckDB file, in ``main`` where no schema is named; ``SchemaError`` lists those that exist.

    What the file brings along – macros, collations, views – works in a connection that only reads rows out of it.
    """
    stamped = Stamped.now(path)
    backend = guarded(
        "open the DuckDB file (is it open elsewhere in this process or for writing?)", lambda: connect(path)
    )
    found = guarded("list the tables of the DuckDB file", lambda: _tables(backend))
    names = tuple(known.within(MAIN) for known in found)
    if name is None:
        raise InputError("table", None, f"one of {listed(names)}", "say table='...', or --table on a command line")
    relation = Relation(MAIN, name) if Relation(MAIN, name) in found else Relation.of(name, MAIN)
    if relation not in found:
        raise SchemaError("table", name, f"one of {listed(names)}", nearest(name, names))
    table = guarded("read the table's schema", lambda: _found(backend, relation))
    check_names(table.columns)

    def loaded(_: Sequence[str]) -> Any:
        stamped.check()
        return table

    return Table(schema_of(table.schema()), "duckdb", lambda: backend, loaded)


def open_relation(relation: Any) -> Table:
    """A relation of a user's connection, attached files and all, computed once for a plan.

    It is taken as the table that it computes, like a view.
    """
    check_names(relation.columns)
    kinds = dict(zip(relation.columns, map(str, relation.types), strict=True))
    empty = guarded("find the relation's columns", lambda: _plain(relation, kinds).limit(0).to_arrow_table())
    wide = load("pyarrow").decimal128(WIDEST_DECIMAL, 0)
    types = {name: wide if kind in WIDE else empty.schema.field(name).type for name, kind in kinds.items()}

    def stream(names: Sequence[str]) -> Rows:
        asked = {name: kinds[name] for name in names}
        schema = load("pyarrow").schema([(name, types[name]) for name in names])
        return Rows(schema, lambda: _batches(relation, asked, schema))

    def ready(_: Sequence[str]) -> None:
        guarded("find the relation's columns", lambda: _plain(relation, kinds).limit(0).to_arrow_table())

    return streamed("duckdb", load("pyarrow").schema(list(types.items())), stream, ready)


def _plain(relation: Any, kinds: dict[str, str]) -> Any:
    """The columns in types that Arrow carries whatever the connection's settings say: casts are no functions."""
    column = load("duckdb").ColumnExpression
    chosen = [
        column(name).cast("VARCHAR").alias(name) if kind in AS_TEXT else column(name) for name, kind in kinds.items()
    ]
    return relation.select(*chosen)


def _batches(relation: Any, kinds: dict[str, str], schema: Any) -> Iterator[Any]:
    arrow = load("pyarrow")
    reader = guarded("compute the relation", lambda: _plain(relation, kinds).to_arrow_reader(ROWS // 4))
    while (batch := guarded("read the rows", lambda: next(reader, None))) is not None:
        columns = [
            _narrowed(column, field.type) if kinds[field.name] in WIDE else column.cast(field.type)
            for column, field in zip(batch.columns, schema, strict=True)
        ]
        yield arrow.RecordBatch.from_arrays(columns, schema=schema)


def _narrowed(column: Any, wanted: Any) -> Any:
    """What has more than 38 digits is missing."""
    compute = load("pyarrow.compute")
    held = compute.match_substring_regex(column, WHOLE_NUMBER)
    return compute.if_else(held, column, load("pyarrow").scalar(None, column.type)).cast(wanted)


def _found(backend: Any, relation: Relation) -> Any:
    return backend.table(relation.name, database=(backend.current_catalog, relation.schema))


def _tables(backend: Any) -> tuple[Relation, ...]:
    """Tables and views (ibis 12 cannot list them with DuckDB 2)."""
    query = (
        "SELECT table_schema, table_name FROM information_schema.tables WHERE table_catalog = current_database() "
        "AND table_schema NOT IN ('information_schema', 'pg_catalog') ORDER BY ALL"
    )
    return tuple(Relation(*row) for row in backend.raw_sql(query).fetchall())
