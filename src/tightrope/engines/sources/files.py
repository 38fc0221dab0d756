"""Tables in files: Parquet, alone or in parts, and DuckDB databases, which are opened read-only."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from tightrope.engines.backends.column_types import schema_of
from tightrope.engines.backends.duckdb import connect
from tightrope.engines.ground.job import ROWS
from tightrope.engines.guard import guarded, load
from tightrope.engines.snapshot.room import Rows
from tightrope.engines.sources.stamp import Stamped
from tightrope.engines.table import Table, check_names, streamed
from tightrope.errors import InputError, SchemaError, listed, nearest

HIDDEN = (".", "_")


def open_parquet(path: Path) -> Table:
    """A Parquet file."""
    return _parquet((path,))


def open_parts(folder: Path) -> Table:
    """A folder of Parquet parts, as one table. Hidden files (``.name``, ``_name``) are no parts.

    Raises ``InputError`` for a folder without parts, or that is still being written, ``SchemaError`` where two parts
    differ in a name or a type: one of them would have to give way, and a type would come from somebody's values.
    """
    parts = tuple(sorted(part for part in folder.glob("*.parquet") if not part.name.startswith(HIDDEN)))
    if not parts or (folder / "_temporary").exists():
        raise InputError("source", str(folder), "a folder of .parquet parts that were all written", "write it again")
    return _parquet(parts)


def open_duckdb(path: Path, name: str) -> Table:
    """A table or view of a DuckDB database file; ``SchemaError`` lists the tables that exist.

    What the file brings along – macros, collations, views – works in a connection that only reads rows out of it.
    """
    stamped = Stamped.now(path)
    backend = guarded(
        "open the DuckDB file (is it open elsewhere in this process or for writing?)", lambda: connect(path)
    )
    names = guarded("list the tables of the DuckDB file", lambda: _tables(backend))
    if name not in names:
        raise SchemaError("table", name, f"one of {listed(names)}", nearest(name, names))
    table = guarded("read the table's schema", lambda: backend.table(name))
    check_names(table.columns)

    def loaded(_: Sequence[str]) -> Any:
        stamped.check()
        return table

    return Table(schema_of(table.schema()), "duckdb", lambda: backend, loaded)


def _parquet(parts: tuple[Path, ...]) -> Table:
    stamped = Stamped.now(*parts)
    read = load("pyarrow.parquet").read_schema
    schemas = [guarded("read the schema of the Parquet file", partial(read, part)) for part in parts]
    _agree(parts, schemas)
    whole = schemas[0].remove_metadata()

    def stream(names: Sequence[str]) -> Rows:
        schema = load("pyarrow").schema([whole.field(name) for name in names])
        return Rows(schema, lambda: stamped.unchanged(_batches(parts, names)), parts, stamped.check)

    return streamed("parquet", whole, stream)


def _agree(parts: Sequence[Path], schemas: Sequence[Any]) -> None:
    for part, schema in zip(parts, schemas, strict=True):
        if not schema.equals(schemas[0], check_metadata=False):
            pair = (parts[0].name, part.name)
            raise SchemaError("source", pair, "parts with the same columns of the same types", "write them alike")


def _batches(parts: Sequence[Path], names: Sequence[str]) -> Iterator[Any]:
    for part in parts:
        file = guarded("open the Parquet file", partial(load("pyarrow.parquet").ParquetFile, part, pre_buffer=False))
        try:
            batches = guarded("read the rows", partial(file.iter_batches, ROWS // 4, columns=list(names)))
            while (batch := guarded("read the rows", partial(next, batches, None))) is not None:
                yield batch.select(list(names))
        finally:
            file.close()


def _tables(backend: Any) -> tuple[str, ...]:
    """Tables and views of the main schema (ibis 12 cannot list them with DuckDB 2)."""
    query = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'main' ORDER BY table_name"
    return tuple(name for (name,) in backend.raw_sql(query).fetchall())
