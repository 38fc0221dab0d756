"""The room: a table of ours in a connection of ours, filled once, then shut.

Nobody else's macro, collation, view or setting is in it, and every scan of it sees the same rows. Its columns are
called ``c0, c1, ...``: no name of the user's reaches the engine.
"""

from __future__ import annotations

import glob
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tightrope.engines.backends.duckdb import connect, seal
from tightrope.engines.guard import guarded, load
from tightrope.engines.snapshot.settled import settled, settled_schema, within

if TYPE_CHECKING:
    import ibis.expr.types as ir

TABLE = "tightrope_rows"


@dataclass(frozen=True, slots=True)
class Rows:
    """Where rows come from: the Arrow schema of ``batches``, and what makes an iterator of them, each row once.

    ``parquet`` are files that hold the same rows, if there are such: what needs no rule is read from them without a
    detour. ``check`` raises where the source has changed; ``batches`` do so by themselves.
    """

    schema: Any
    batches: Callable[[], Iterable[Any]]
    parquet: tuple[Path, ...] = ()
    check: Callable[[], None] = lambda: None


@contextmanager
def filled(rows: Rows, longest: int | None = None) -> Iterator[tuple[Any, ir.Table]]:
    """A back end and the one table in it: all the rows, settled, under their names.

    A text of more than ``longest`` bytes is missing: it is left out before anything else is done with it.

    Errors of the batches pass as they are; those of the engine are ``EngineError``.
    """
    backend = guarded("open a room of our own", connect)
    try:
        if not _copied(backend.con, rows, longest):
            batches = (within(batch, longest) for batch in rows.batches())
            _fill(backend.con, settled_schema(rows.schema), batches, longest)
        guarded("shut the room", lambda: seal(backend))
        table = guarded("read the room's own schema", lambda: backend.table(TABLE))
        names = {name: table[f"c{place}"] for place, name in enumerate(rows.schema.names)}
        yield backend, table.select(**names)
    finally:
        guarded("leave the room", backend.disconnect)


DIRECT = {
    "int8": "TINYINT",
    "int16": "SMALLINT",
    "int32": "INTEGER",
    "int64": "BIGINT",
    "uint8": "UTINYINT",
    "uint16": "USMALLINT",
    "uint32": "UINTEGER",
    "uint64": "UBIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "bool": "BOOLEAN",
    "string": "VARCHAR",
    "large_string": "VARCHAR",
    "date32[day]": "DATE",
}
"""Arrow types for which DuckDB reads from a Parquet file exactly what Arrow does, and what it calls them."""


def _copied(connection: Any, rows: Rows, longest: int | None) -> bool:
    """Whether the rows were read from their files by DuckDB itself: no rule had anything to do in them."""
    if not rows.parquet or not all(str(field.type) in DIRECT for field in rows.schema):
        return False
    rows.check()
    duckdb = load("duckdb")
    places = [glob.escape(str(path.absolute())) for path in rows.parquet]
    columns = [_within(field, longest).alias(f"c{place}") for place, field in enumerate(rows.schema)]
    try:
        found = connection.read_parquet(places, hive_partitioning=False).select(*columns)
        if list(map(str, found.types)) != [DIRECT[str(field.type)] for field in rows.schema]:
            return False
        found.create(TABLE)
    except duckdb.Error:  # text that is not UTF-8, say: batch by batch, by rule
        return False
    rows.check()
    return True


def _within(field: Any, longest: int | None) -> Any:
    """DuckDB's expression for a column of a Parquet file, without texts that are too long."""
    duckdb = load("duckdb")
    column = duckdb.ColumnExpression(field.name)
    if longest is None or DIRECT[str(field.type)] != "VARCHAR":
        return column
    fits = duckdb.FunctionExpression("strlen", column) <= duckdb.ConstantExpression(longest)
    return duckdb.CaseExpression(fits, column)


def _fill(connection: Any, schema: Any, batches: Iterable[Any], longest: int | None) -> None:
    arrow = load("pyarrow")
    stored = arrow.schema([arrow.field(f"c{place}", field.type) for place, field in enumerate(schema)])
    guarded("make the table", lambda: connection.from_arrow(stored.empty_table()).create(TABLE))
    for batch in batches:
        _store(connection, within(settled(batch, schema), longest), stored)


def _store(connection: Any, batch: Any, stored: Any) -> None:
    arrow = load("pyarrow")
    rows = arrow.Table.from_batches([arrow.RecordBatch.from_arrays(batch.columns, schema=stored)])
    guarded("store a batch of rows", lambda: connection.from_arrow(rows).insert_into(TABLE))
