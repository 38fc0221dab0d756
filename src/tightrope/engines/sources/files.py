"""Tables in files: Parquet, CSV and DuckDB databases, which are opened read-only."""

from __future__ import annotations

import csv
import glob
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from tightrope.engines.backends.column_types import schema_of
from tightrope.engines.backends.duckdb import connect
from tightrope.engines.guard import guarded
from tightrope.engines.schema import Kind, Schema
from tightrope.engines.table import Table, check_names
from tightrope.errors import InputError, SchemaError, listed, nearest

if TYPE_CHECKING:
    import ibis.expr.types as ir

_CSV_TYPES: Mapping[str, str] = {
    "integer": "int64",
    "number": "float64",
    "text": "string",
    "boolean": "boolean",
    "date": "date",
    "timestamp": "timestamp",
}


def open_parquet(path: Path) -> Table:
    """A Parquet file."""
    backend = connect()
    place = _literally(path)
    table = guarded("read the schema of the Parquet file", lambda: backend.read_parquet(place, hive_partitioning=False))
    return _opened("parquet", backend, table)


def open_parts(folder: Path) -> Table:
    """A folder of Parquet parts, as one table; ``InputError`` for one without, or that is still being written."""
    if not any(folder.glob("*.parquet")) or (folder / "_temporary").exists():
        raise InputError("source", str(folder), "a folder of .parquet parts that were all written", "write it again")
    backend = connect()
    parts = f"{_literally(folder)}/*.parquet"
    table = guarded("read the schema of the parts", lambda: backend.read_parquet(parts, hive_partitioning=False))
    return _opened("parquet", backend, table)


def open_duckdb(path: Path, name: str) -> Table:
    """A table or view of a DuckDB database file; ``SchemaError`` lists the tables that exist."""
    backend = guarded(
        "open the DuckDB file (is it open elsewhere in this process or for writing?)", lambda: connect(path)
    )
    names = guarded("list the tables of the DuckDB file", lambda: _tables(backend))
    if name not in names:
        raise SchemaError("table", name, f"one of {listed(names)}", nearest(name, names))
    return _opened("duckdb", backend, guarded("read the table's schema", lambda: backend.table(name)))


def open_csv(path: Path, types: Mapping[str, str]) -> Table:
    """A CSV file in UTF-8: comma, double quotes, a header line.

    Types are declared, never guessed from the data: a column without a type is text. Every field is read as text and
    then cast; a field that does not cast is NULL, as DuckDB's TRY_CAST decides (blanks around a number are ignored,
    "1.7" declared integer is rounded, dates are 2024-12-31, booleans true/false/1/0). An empty field without quotes is
    NULL for every type, ``""`` is the empty text. A line with more or fewer fields than the header is an
    ``EngineError`` when a question is asked.
    """
    names = _header(path)
    _check_types(types, names)
    backend = connect()
    dialect = {
        "delim": ",",
        "quote": '"',
        "escape": '"',
        "header": True,
        "auto_detect": False,
        "allow_quoted_nulls": False,
    }
    columns = dict.fromkeys(names, "string")
    text = guarded("open the CSV file", lambda: backend.read_csv(_literally(path), columns=columns, **dialect))
    cast = {name: text[name].try_cast(_CSV_TYPES[kind]) for name, kind in types.items() if kind != "text"}
    return _opened("csv", backend, text.mutate(**cast) if cast else text)


def _opened(source_kind: str, backend: Any, table: ir.Table) -> Table:
    schema: Schema = schema_of(table.schema())
    return Table(schema, source_kind, backend, lambda _: table)


def _literally(path: Path) -> str:
    """The path with brackets, stars and question marks taken as they are: DuckDB would expand them."""
    return glob.escape(str(path.absolute()))


def _tables(backend: Any) -> tuple[str, ...]:
    """Tables and views of the main schema (ibis 12 cannot list them with DuckDB 2)."""
    query = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'main' ORDER BY table_name"
    return tuple(name for (name,) in backend.raw_sql(query).fetchall())


def _header(path: Path) -> tuple[str, ...]:
    """The names in the first line; no other line is read."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            names = next(csv.reader(file), [])
    except (UnicodeDecodeError, csv.Error):
        names = None
    if names is None:
        raise InputError("source", str(path), "a CSV file in UTF-8 with a header line", "convert it to UTF-8")
    check_names(names)
    return tuple(names)


def _check_types(types: Mapping[str, str], names: tuple[str, ...]) -> None:
    kinds = tuple(kind for kind in get_args(Kind) if kind != "other")
    for name, kind in types.items():
        if name not in names:
            raise SchemaError("types", name, f"for one of the columns {listed(names)}", nearest(name, names))
        if kind not in kinds:
            raise InputError("types", {name: kind}, f"one of {listed(kinds)} for each column", nearest(kind, kinds))
