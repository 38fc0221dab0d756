"""Public tables that are joined to a private table: its rows look up values in them by a key."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tightrope.errors import InputError, SchemaError, quoted_names, suggest_nearest
from tightrope.tables.backends.registry import backend_for
from tightrope.tables.engine_calls import engine_call, load_library
from tightrope.tables.expressions.leaves import ColumnRef
from tightrope.tables.expressions.tree import MAX_TEXT_BYTES, NUMBERS, SourceRows
from tightrope.tables.public_table import PublicTable, check_unique_keys, key_columns
from tightrope.tables.schema import Column, Kind, Schema
from tightrope.tables.sources.csv import Dialect
from tightrope.tables.sources.source import open_source
from tightrope.tables.table import Table

On = str | Sequence[str] | Mapping[str, str]
MAX_PUBLIC_ROWS = 5_000_000
"""A public table is held in memory, with at most this many rows."""
RENAME_REMEDY = 'choose with columns=["region"], or call it otherwise: columns={"airport_region": "region"}'


@dataclass(frozen=True, slots=True)
class PublicTableSource:
    """A public table, opened but not yet read, with its join columns; see ``public_table``.

    ``key_pairs`` and ``column_pairs`` hold names in the private table, each with its name in the public table.
    ``column_pairs`` is None for all columns.
    """

    name: str
    table: Table
    key_pairs: tuple[tuple[str, str], ...]
    column_pairs: tuple[tuple[str, str], ...] | None


def public_table(
    source: object,
    *,
    on: On,
    columns: Sequence[str] | Mapping[str, str] | None = None,
    table: str | None = None,
    types: Mapping[str, str] | None = None,
    dialect: Mapping[str, object] | Dialect | None = None,
) -> PublicTableSource:
    """Open a **public** table in which private rows look up values: the region of a city, the model of an aircraft.

    Parameters:
        on: the key column, or a list of key columns; ``{"dest": "faa"}`` if a column has another name in the public
            table.
        columns: the columns that private rows get (default: all); ``{"new name": "its name"}`` renames them.
        source, table, types, dialect: as in ``open_source``.

    Each private row matches at most one public row, because repeated keys are rejected. A row without a match, or with
    a missing key, gets missing values. Whether the table is public cannot be checked: data about people in it is not
    protected. The certificate identifies the table by a digest of its content.
    """
    opened = open_source(source, table=table, types=types, dialect=dialect)
    # Certificates show the name of a file, without its folder.
    if not isinstance(source, (str, Path)):
        name = "a table in memory"
    else:
        file_name = str(source).rstrip("/").rpartition("/")[2]
        name = file_name if table is None else f"{file_name}: {table}"
    return public_table_source(opened, on, columns, name)


def public_table_source(
    opened: Table, on: On, columns: Sequence[str] | Mapping[str, str] | None, name: str
) -> PublicTableSource:
    """Return an opened table as a public table with this name; see ``public_table``."""
    key_pairs, column_pairs = _parse_pairs("on", on), None if columns is None else _parse_pairs("columns", columns)
    for _, public_name in (*key_pairs, *(column_pairs or ())):
        opened.schema.find_column(public_name)
    return PublicTableSource(name, opened, key_pairs, column_pairs)


def attach_public_tables(private: Table, lookups: PublicTableSource | Iterable[PublicTableSource]) -> Table:
    """Read the public tables and return the private table with their columns.

    Raises ``SchemaError`` for kinds that cannot be compared and for names that exist already, ``InputError`` for a
    repeated key.
    """
    for given in (lookups,) if isinstance(lookups, PublicTableSource) else tuple(lookups):
        if not isinstance(given, PublicTableSource):
            raise InputError("public_tables", type(given).__name__, "tr.public_table(...), or a list of these")
        kinds = tuple(_comparison_kind(private.schema, given, *pair) for pair in given.key_pairs)
        chosen = _chosen_columns(given)
        used_names = {name.casefold() for name in private.schema.column_names}
        for name, public_name in chosen:
            given.table.schema.find_column(public_name).refuse_other_kind("public_tables columns", "be looked up")
            if name.casefold() in used_names:
                expected = f"a name that the private table does not have ({given.name} has a column of that name, too)"
                raise SchemaError("public_tables columns", name, expected, RENAME_REMEDY)
            used_names.add(name.casefold())
        kinds_by_name = {name: given.table.schema.find_column(public_name).kind for name, public_name in chosen}
        added = Schema(tuple(Column(name, kind) for name, kind in kinds_by_name.items()))
        public = PublicTable(given.name, given.key_pairs, kinds, added, None)
        public = replace(public, rows=_read_public_rows(given, public))
        private = replace(
            private,
            schema=Schema((*private.schema.columns, *added.columns)),
            public_tables=(*private.public_tables, public),
        )
    return private


def _comparison_kind(private: Schema, given: PublicTableSource, name: str, public_name: str) -> Kind:
    """Return the kind in which a private and a public column are compared; integers with numbers become numbers."""
    if name not in private.column_names:
        raise SchemaError(
            "public_tables on",
            name,
            f"one of {quoted_names(private.column_names)}",
            suggest_nearest(name, private.column_names),
        )
    kinds: list[Kind] = [private.find_column(name).kind, given.table.schema.find_column(public_name).kind]
    if "other" not in kinds and kinds[0] == kinds[1]:
        return kinds[0]
    if set(kinds) == set(NUMBERS):
        return "number"
    expected = f"of one kind on both sides, but {name} is {kinds[0]} and {public_name} of {given.name} is {kinds[1]}"
    raise SchemaError(
        "public_tables on",
        f"{name} = {public_name}",
        expected,
        "declare the types of a CSV file: types={...: 'integer'}",
    )


def _chosen_columns(given: PublicTableSource) -> tuple[tuple[str, str], ...]:
    """Return the columns that private rows get, each with its name in the public table."""
    if given.column_pairs is not None:
        return given.column_pairs
    keys = [public_name for _, public_name in given.key_pairs]
    return tuple((c.name, c.name) for c in given.table.schema.columns if c.name not in keys and c.kind != "other")


def _read_public_rows(given: PublicTableSource, public: PublicTable) -> Any:
    """Return the Arrow table of ``PublicTable.rows``."""
    chosen = _chosen_columns(given)
    keys_in_table = [public_name for _, public_name in given.key_pairs]
    with given.table.snapshot_columns(tuple(dict.fromkeys((*keys_in_table, *(name for _, name in chosen))))) as (
        _,
        backend,
        rows,
    ):
        source = SourceRows(rows, given.table.schema)
        keys = dict(zip(public.key_names, key_columns(source, keys_in_table, public.key_kinds), strict=True))
        values = {f"value{index}": ColumnRef(name).to_engine_column(source) for index, (_, name) in enumerate(chosen)}
        all_rows = rows.select(**keys, **values)
        rows_with_key = all_rows.filter([all_rows[name].notnull() for name in keys])  # others cannot match
        arrow = engine_call(
            "read the public table",
            lambda: backend_for(backend).fetch_arrow(backend, rows_with_key.limit(MAX_PUBLIC_ROWS + 1)),
        )
    if arrow.num_rows > MAX_PUBLIC_ROWS:
        raise InputError(
            "public_tables", given.name, f"at most {MAX_PUBLIC_ROWS:,} rows", "keep those that private rows can match"
        )
    # The sum over columns of the longest text is limited.
    compute, types = load_library("pyarrow.compute"), load_library("pyarrow").types
    texts = (c for c in arrow.columns if types.is_string(c.type) or types.is_large_string(c.type))
    longest = sum(compute.max(compute.binary_length(column)).as_py() or 0 for column in texts)
    if longest > MAX_TEXT_BYTES:
        expected = f"at most {MAX_TEXT_BYTES:,} bytes of text a row, over all its columns"
        raise InputError(
            "public_tables", f"{given.name} with {longest:,}", expected, "look up a short name, or fewer columns"
        )
    backend = load_library("tightrope.tables.backends.duckdb").open_connection()
    check_unique_keys(backend, load_library("ibis").memtable(arrow), public)
    return arrow.sort_by([(name, "ascending") for name in public.key_names])


def _parse_pairs(name: str, given: object) -> tuple[tuple[str, str], ...]:
    """Return each column's name in the private rows, and its name in the public table."""
    if isinstance(given, Mapping):
        pairs = tuple(given.items())
    else:
        names = [given] if isinstance(given, str) else given if isinstance(given, (list, tuple)) else ()
        pairs = tuple(zip(names, names, strict=True))
    if not pairs or not all(isinstance(text, str) and text for pair in pairs for text in pair):
        raise InputError(name, given, "a column's name, a list of these, or {name here: name there}")
    if len({public_name for _, public_name in pairs}) < len(pairs) and name == "on":
        raise InputError(name, given, "different columns", "each can be named once")
    return pairs
