"""Public tables that accompany a private table, whose rows look up values in them by a key."""

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
MOST_ROWS = 5_000_000
"""A public table is held in memory, with at most this many rows."""
RENAME = 'choose with columns=["region"], or call it otherwise: columns={"airport_region": "region"}'


@dataclass(frozen=True, slots=True)
class PublicTableSource:
    """A public table, opened and not yet read, and how private rows find theirs; see ``public_table``."""

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
    """A **public** table in which private rows look something up: the region of a city, the model of an aircraft.

    ``on`` names the column by which a row finds its row there, ``on={"dest": "faa"}`` where the public table calls it
    otherwise, a list or several entries where several decide together. ``columns`` are those that rows get (default:
    all), ``{"new name": "its own"}`` renames them. The rest is as in ``open_source``.

    Each private row meets at most one public row, for a key that is there twice is refused; a row that meets none gets
    what is missing, and so does one whose key is missing. It is not checked that the table is public: what it says of
    people, if it does, is not protected. The certificate names it by a digest of its content.
    """
    opened = open_source(source, table=table, types=types, dialect=dialect)
    # A file's name, never its place; what is in memory is called so.
    if not isinstance(source, (str, Path)):
        called = "a table in memory"
    else:
        last = str(source).rstrip("/").rpartition("/")[2]
        called = last if table is None else f"{last}: {table}"
    return public_table_source(opened, on, columns, called)


def public_table_source(
    opened: Table, on: On, columns: Sequence[str] | Mapping[str, str] | None, name: str
) -> PublicTableSource:
    """The same for a table that is open, under a name."""
    pairs, wanted = _parse_pairs("on", on), None if columns is None else _parse_pairs("columns", columns)
    for own in (*(own for _, own in pairs), *(own for _, own in wanted or ())):
        opened.schema.find_column(own)
    return PublicTableSource(name, opened, pairs, wanted)


def attach_public_tables(private: Table, lookups: PublicTableSource | Iterable[PublicTableSource]) -> Table:
    """The private table with the columns of the public ones, which are read now.

    Raises ``SchemaError`` for kinds that cannot be compared and for names that are there already, ``InputError`` for a
    key that is there twice.
    """
    for given in (lookups,) if isinstance(lookups, PublicTableSource) else tuple(lookups):
        if not isinstance(given, PublicTableSource):
            raise InputError("public_tables", type(given).__name__, "tr.public_table(...), or a list of these")
        kinds = tuple(_comparison_kind(private.schema, given, *pair) for pair in given.key_pairs)
        # The columns that rows get, under names that are not there yet.
        chosen = _chosen_columns(given)
        taken = {name.casefold() for name in private.schema.column_names}
        for name, own in chosen:
            if given.table.schema.find_column(own).kind == "other":
                raise SchemaError(
                    "public_tables columns", own, "a column of plain values", "lists and structs cannot be looked up"
                )
            if name.casefold() in taken:
                expected = f"a name that the private table does not have ({given.name} has a column of that name, too)"
                raise SchemaError("public_tables columns", name, expected, RENAME)
            taken.add(name.casefold())
        added = Schema(tuple(Column(name, given.table.schema.find_column(own).kind) for name, own in chosen))
        public = PublicTable(given.name, given.key_pairs, kinds, added, None)
        public = replace(public, rows=_read_public_rows(given, public))
        private = replace(
            private,
            schema=Schema((*private.schema.columns, *added.columns)),
            public_tables=(*private.public_tables, public),
        )
    return private


def _comparison_kind(private: Schema, given: PublicTableSource, name: str, own: str) -> Kind:
    """Return the kind in which a pair is compared: integers compared with numbers are numbers."""
    if name not in private.column_names:
        raise SchemaError(
            "public_tables on",
            name,
            f"one of {quoted_names(private.column_names)}",
            suggest_nearest(name, private.column_names),
        )
    kinds: list[Kind] = [private.find_column(name).kind, given.table.schema.find_column(own).kind]
    if "other" not in kinds and kinds[0] == kinds[1]:
        return kinds[0]
    if set(kinds) == set(NUMBERS):
        return "number"
    expected = f"of one kind on both sides, but {name} is {kinds[0]} and {own} of {given.name} is {kinds[1]}"
    raise SchemaError(
        "public_tables on", f"{name} = {own}", expected, "declare the types of a CSV file: types={...: 'integer'}"
    )


def _chosen_columns(given: PublicTableSource) -> tuple[tuple[str, str], ...]:
    if given.column_pairs is not None:
        return given.column_pairs
    keys = [own for _, own in given.key_pairs]
    return tuple((c.name, c.name) for c in given.table.schema.columns if c.name not in keys and c.kind != "other")


def _read_public_rows(given: PublicTableSource, public: PublicTable) -> Any:
    """The Arrow table of ``PublicTable.rows``."""
    chosen = _chosen_columns(given)
    own = [own for _, own in given.key_pairs]
    with given.table.snapshot_columns(tuple(dict.fromkeys((*own, *(name for _, name in chosen))))) as (
        _,
        backend,
        rows,
    ):
        source = SourceRows(rows, given.table.schema)
        keys = dict(zip(public.key_names, key_columns(source, own, public.key_kinds), strict=True))
        values = {f"value{place}": ColumnRef(name).to_engine_column(source) for place, (_, name) in enumerate(chosen)}
        every = rows.select(**keys, **values)
        found = every.filter([every[name].notnull() for name in keys])  # a row without a key has no match
        arrow = engine_call(
            "read the public table", lambda: backend_for(backend).fetch_arrow(backend, found.limit(MOST_ROWS + 1))
        )
    if arrow.num_rows > MOST_ROWS:
        raise InputError("public_tables", given.name, f"at most {MOST_ROWS:,} rows", "keep those that can be met")
    # The longest texts of its columns may be too long together.
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
    """Return each column's name in the private rows, and in the public table."""
    if isinstance(given, Mapping):
        pairs = tuple(given.items())
    else:
        names = [given] if isinstance(given, str) else given if isinstance(given, (list, tuple)) else ()
        pairs = tuple(zip(names, names, strict=True))
    if not pairs or not all(isinstance(text, str) and text for pair in pairs for text in pair):
        raise InputError(name, given, "a column's name, a list of these, or {name here: name there}")
    if len({there for _, there in pairs}) < len(pairs) and name == "on":
        raise InputError(name, given, "different columns", "each can be named once")
    return pairs
