"""DuckDB: private connections, optimizer rules that must be off, and a reader of batches."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tightrope.tables.backends.backend import Backend, compile_sql
from tightrope.tables.engine_calls import engine_call, load_library
from tightrope.tables.files import iterate_batches, spill_folder

if TYPE_CHECKING:
    import ibis.expr.types as ir
    import pyarrow as pa
    from ibis.backends import BaseBackend

MISLEADING = ("statistics_propagation", "type_pushdown")
"""Optimizer rules of DuckDB 2.0 that give wrong answers, found by tests/tables.

``statistics_propagation``: a Parquet file's minimum and maximum ignore NaN, so DuckDB concludes that no value is NaN,
replaces ``isnan(x)`` by false, and would clamp NaN to the upper bound instead of dropping it.
``type_pushdown``: turns TRY_CAST of a CSV column into a CAST while reading, which fails on what should become NULL.
"""

MEMORY_LIMIT = "620MB"
"""Memory limit of our connections; the rest is spilled to disk, in a folder that only this user can open.

Spilled rows are not encrypted, because DuckDB 2.0 needs an extension for that, which would have to be installed.
"""


def open_connection(database: Path | None = None) -> BaseBackend:
    """Return a new DuckDB back end of ibis: in memory, or on one file, read-only, without access to other files.

    What does not fit in memory spills into a private folder. Nothing is installed from the network, no
    progress bar is drawn, and misleading optimizer rules are turned off.
    """
    ibis = load_library("ibis")
    load_library("ibis.backends.duckdb")
    settings = {
        "preserve_insertion_order": False,
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "temp_directory": str(spill_folder(database)),
        "memory_limit": MEMORY_LIMIT,
        "disabled_optimizers": ",".join(MISLEADING),
    }
    path = ":memory:" if database is None else database
    backend = ibis.duckdb.connect(path, read_only=database is not None, **settings)
    # In a notebook without ipywidgets the bar is off, and DuckDB refuses to set it.
    if backend.con.sql("SELECT current_setting('enable_progress_bar')").fetchall() != [(False,)]:
        backend.raw_sql("SET enable_progress_bar = false")
    if database is not None:  # views in the file are run, and must not read other files
        backend.raw_sql("SET enable_external_access = false")
    return backend


def seal_connection(backend: BaseBackend) -> None:
    """Forbid the connection to open files and to change settings from now on."""
    backend.raw_sql("SET enable_external_access = false")
    backend.raw_sql("SET lock_configuration = true")


@dataclass(slots=True)
class _RuleOverride:
    """The number of readers that need the rules off in a user's connection, and its setting before the first one."""

    readers: int
    original_rules: str


_rule_overrides: dict[int, _RuleOverride] = {}
"""By the ``id`` of the connection."""
_rule_lock = threading.Lock()


@contextmanager
def without_misleading_rules(backend: BaseBackend) -> Iterator[None]:
    """Turn the rules off inside the context; the last thread to leave it restores the connection's setting.

    Raises ``EngineError`` if the setting cannot be changed.
    """

    def disable_rules() -> None:
        with _rule_lock:
            override = _rule_overrides.get(id(backend.con))
            if override is not None:
                override.readers += 1
                return
            original = _disabled_rules(backend)
            disabled = [*filter(None, original.split(","))]
            if not set(MISLEADING) <= set(disabled):
                backend.settings["disabled_optimizers"] = ",".join(dict.fromkeys((*disabled, *MISLEADING)))
            _rule_overrides[id(backend.con)] = _RuleOverride(1, original)

    def restore_rules() -> None:
        with _rule_lock:
            override = _rule_overrides[id(backend.con)]
            override.readers -= 1
            if override.readers == 0:
                del _rule_overrides[id(backend.con)]
                if _disabled_rules(backend) != override.original_rules:
                    backend.settings["disabled_optimizers"] = override.original_rules

    engine_call("change the settings", disable_rules)
    try:
        yield
    finally:
        engine_call("restore the settings", restore_rules)


def _disabled_rules(backend: BaseBackend) -> str:
    ((rules,),) = backend.raw_sql("SELECT current_setting('disabled_optimizers')").fetchall()
    return str(rules or "")


def arrow_reader(backend: BaseBackend, rows: ir.Table, size: int) -> pa.RecordBatchReader:
    """Return a reader of record batches that runs the query once, while it is read.

    It avoids ``to_pyarrow_batches`` of ibis 12, which fails with DuckDB 2 and would hold the whole result in memory.
    """
    query = engine_call("prepare the rows", lambda: backend.con.sql(compile_sql(backend, rows)))
    return engine_call("read the rows", lambda: query.to_arrow_reader(size))


BUCKET_COLUMN = "bucket"
FEWEST_COUNTED_ROWS, MOST_COUNTED_ROWS = 1_000_000, 40_000_000
"""Numbers of rows for which persons are counted by buckets: fewer are grouped at once, more would need more memory."""
BUCKET_BITS = 25
"""Buckets by their binary logarithm: 128 MiB of counts."""
LARGEST_SHARE_OF_ROWS = 0.4
"""If more of the rows are in buckets over the bound, leaving out the others saves nothing."""
BATCH_ROWS = 1 << 20
SMALL_INTEGERS = frozenset({"int8", "int16", "int32", "int64", "uint8", "uint16", "uint32"})
"""Types whose values fit into 64 bits with a sign."""


def drop_rare_persons(backend: BaseBackend, persons: ir.Table, max_rows: int) -> ir.Table:
    """Return the rows (column ``person``) whose hash has a bucket of more than ``max_rows`` rows.

    All rows of a person are in one bucket, so that each person with more rows is there, with all of them. Counting
    buckets in an array takes a fifth of the time of grouping millions of persons, who are then few. Numbers of persons
    within a range of as many integers have a bucket each: then these are exactly the persons over the bound, and the
    table is not read again. Tables with few or very many rows, or whose buckets are mostly over the bound, are returned
    as they are.
    """
    person, library = persons["person"], load_library("ibis")
    has_numbers = str(person.type()).lstrip("!") in SMALL_INTEGERS
    summary = {"rows": persons.count()}
    if has_numbers:
        summary |= {"first": person.min().cast("int64"), "last": person.max().cast("int64")}
    (found,) = engine_call("count the rows", lambda: backend.to_pyarrow(persons.aggregate(**summary)).to_pylist())
    rows = int(found["rows"])
    if not FEWEST_COUNTED_ROWS <= rows <= MOST_COUNTED_ROWS:
        return persons
    first, buckets = 0, 1 << BUCKET_BITS
    is_numbered = has_numbers and found["last"] - found["first"] < buckets
    if is_numbered:
        first, buckets = found["first"], found["last"] - found["first"] + 1
        bucket_sql = f"person::BIGINT - ({first})::BIGINT AS {BUCKET_COLUMN}"
    else:
        bucket_sql = f"(hash(person) & {buckets - 1})::BIGINT AS {BUCKET_COLUMN}"
    query = f"SELECT person, {bucket_sql} FROM ({compile_sql(backend, persons)})"  # noqa: S608 - ibis' own SQL
    schema = {"person": person.type(), BUCKET_COLUMN: "int64"}
    hashed = engine_call("number the persons", lambda: backend.sql(query, schema=schema))
    counts = np.zeros(buckets, np.int32)
    for batch in iterate_batches(arrow_reader(backend, hashed.select(BUCKET_COLUMN), BATCH_ROWS)):
        np.add.at(counts, batch.column(0).to_numpy(), np.int32(1))  # 32 bits: a count never begins again at 0
    over_bound = np.flatnonzero(counts > max_rows)
    if not counts[over_bound].sum(dtype=np.int64) <= LARGEST_SHARE_OF_ROWS * rows:
        return persons
    arrow = load_library("pyarrow")
    if is_numbered:
        numbers = np.repeat(over_bound + first, counts[over_bound])
        return library.memtable(arrow.table({"person": numbers})).cast({"person": person.type()})
    kept = library.memtable(arrow.table({BUCKET_COLUMN: over_bound}))
    return hashed.semi_join(kept, BUCKET_COLUMN).select("person")


DUCKDB = Backend(
    "duckdb",
    safe_settings=without_misleading_rules,
    open_batch_reader=arrow_reader,
    drop_rare_persons=drop_rare_persons,
)
