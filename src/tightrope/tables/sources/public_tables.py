"""What is opened beside a private table: public ones, from which its rows look up a value by a key."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tightrope.errors import InputError, SchemaError, listed, nearest
from tightrope.tables.backends.registry import of
from tightrope.tables.engine_calls import guarded, load
from tightrope.tables.expressions.leaves import Column as Read
from tightrope.tables.expressions.tree import LONGEST_TEXT, NUMBERS
from tightrope.tables.expressions.tree import Rows as Source
from tightrope.tables.public_table import PublicTable, key_columns, refuse_repeated
from tightrope.tables.schema import Column, Kind, Schema
from tightrope.tables.sources.csv import Dialect
from tightrope.tables.sources.source import open_source
from tightrope.tables.table import Table

On = str | Sequence[str] | Mapping[str, str]
MOST_ROWS = 5_000_000
"""A public table is held in memory, with at most so many rows."""
RENAME = 'choose with columns=["region"], or call it otherwise: columns={"airport_region": "region"}'


@dataclass(frozen=True, slots=True)
class Lookup:
    """A public table, opened and not yet read, and how private rows find theirs; see ``lookup``."""

    name: str
    table: Table
    on: tuple[tuple[str, str], ...]
    columns: tuple[tuple[str, str], ...] | None


def lookup(
    source: object,
    *,
    on: On,
    columns: Sequence[str] | Mapping[str, str] | None = None,
    table: str | None = None,
    types: Mapping[str, str] | None = None,
    dialect: Mapping[str, object] | Dialect | None = None,
) -> Lookup:
    """A **public** table in which private rows look something up: the region of a city, the model of an aircraft.

    ``on`` names the column by which a row finds its row there, ``on={"dest": "faa"}`` where the public table calls it
    otherwise, a list or several entries where several decide together. ``columns`` are those that rows get (default:
    all), ``{"new name": "its own"}`` calls them otherwise. The rest is that of ``open_source``.

    Each private row meets at most one public row, for a key that is there twice is refused; a row that meets none gets
    what is missing, and so does one whose key is missing. Nobody checks that the table is public: what it says of
    people, if it does, is not protected. The certificate names it by a digest of its content.
    """
    opened = open_source(source, table=table, types=types, dialect=dialect)
    # A file's name, never its place; what is in memory is called so.
    if not isinstance(source, (str, Path)):
        called = "a table in memory"
    else:
        last = str(source).rstrip("/").rpartition("/")[2]
        called = last if table is None else f"{last}: {table}"
    return lookup_in(opened, on, columns, called)


def lookup_in(opened: Table, on: On, columns: Sequence[str] | Mapping[str, str] | None, name: str) -> Lookup:
    """The same for a table that is open, under a name."""
    pairs, wanted = _pairs("on", on), None if columns is None else _pairs("columns", columns)
    for own in (*(own for _, own in pairs), *(own for _, own in wanted or ())):
        opened.schema.column(own)
    return Lookup(name, opened, pairs, wanted)


def attached(private: Table, lookups: Lookup | Iterable[Lookup]) -> Table:
    """The private table with the columns of the public ones, which are read now.

    Raises ``SchemaError`` for kinds that cannot be compared and for names that are there already, ``InputError`` for a
    key that is there twice.
    """
    for given in (lookups,) if isinstance(lookups, Lookup) else tuple(lookups):
        if not isinstance(given, Lookup):
            raise InputError("lookup", type(given).__name__, "tr.lookup(...), or a list of these")
        kinds = tuple(_kind(private.schema, given, *pair) for pair in given.on)
        # The columns that rows get, under names that are not there yet.
        chosen = given.columns if given.columns is not None else _usable(given)
        taken = {name.casefold() for name in private.schema.names}
        for name, own in chosen:
            if given.table.schema.column(own).kind == "other":
                raise SchemaError(
                    "lookup columns", own, "a column of plain values", "lists and structs cannot be looked up"
                )
            if name.casefold() in taken:
                expected = f"a name that the private table does not have ({given.name} has a column of that name, too)"
                raise SchemaError("lookup columns", name, expected, RENAME)
            taken.add(name.casefold())
        added = Schema(tuple(Column(name, given.table.schema.column(own).kind) for name, own in chosen))
        public = PublicTable(given.name, given.on, kinds, added, None)
        public = replace(public, rows=_read_public_rows(given, public))
        private = replace(
            private, schema=Schema((*private.schema.columns, *added.columns)), public=(*private.public, public)
        )
    return private


def _kind(private: Schema, given: Lookup, name: str, own: str) -> Kind:
    """The one kind in which a pair is compared: whole numbers are numbers beside numbers."""
    if name not in private.names:
        raise SchemaError("lookup on", name, f"one of {listed(private.names)}", nearest(name, private.names))
    kinds: list[Kind] = [private.column(name).kind, given.table.schema.column(own).kind]
    if "other" not in kinds and kinds[0] == kinds[1]:
        return kinds[0]
    if set(kinds) == set(NUMBERS):
        return "number"
    expected = f"of one kind on both sides, but {name} is {kinds[0]} and {own} of {given.name} is {kinds[1]}"
    raise SchemaError(
        "lookup on", f"{name} = {own}", expected, "declare the types of a CSV file: types={...: 'integer'}"
    )


def _usable(given: Lookup) -> tuple[tuple[str, str], ...]:
    keys = [own for _, own in given.on]
    return tuple((c.name, c.name) for c in given.table.schema.columns if c.name not in keys and c.kind != "other")


def _read_public_rows(given: Lookup, public: PublicTable) -> Any:
    """The Arrow table of ``PublicTable.rows``."""
    chosen = given.columns if given.columns is not None else _usable(given)
    own = [own for _, own in given.on]
    with given.table.snapshot_columns(tuple(dict.fromkeys((*own, *(name for _, name in chosen))))) as (
        _,
        backend,
        rows,
    ):
        source = Source(rows, given.table.schema)
        keys = dict(zip(public.keys, key_columns(source, own, public.kinds), strict=True))
        values = {f"value{place}": Read(name).compiled(source) for place, (_, name) in enumerate(chosen)}
        every = rows.select(**keys, **values)
        found = every.filter([every[name].notnull() for name in keys])  # a row without a key meets nobody
        arrow = guarded("read the public table", lambda: of(backend).fetched(backend, found.limit(MOST_ROWS + 1)))
    if arrow.num_rows > MOST_ROWS:
        raise InputError("lookup", given.name, f"at most {MOST_ROWS:,} rows", "keep those that can be met")
    _refuse_long(given, arrow)
    backend = load("tightrope.tables.backends.duckdb").connect()
    refuse_repeated(backend, load("ibis").memtable(arrow), public)
    return arrow.sort_by([(name, "ascending") for name in public.keys])


def _refuse_long(given: Lookup, arrow: Any) -> None:
    """Raises ``InputError`` where the longest texts of its columns are too long together."""
    compute, types = load("pyarrow.compute"), load("pyarrow").types
    texts = (c for c in arrow.columns if types.is_string(c.type) or types.is_large_string(c.type))
    longest = sum(compute.max(compute.binary_length(column)).as_py() or 0 for column in texts)
    if longest > LONGEST_TEXT:
        expected = f"at most {LONGEST_TEXT:,} bytes of text a row, over all its columns"
        raise InputError("lookup", f"{given.name} with {longest:,}", expected, "look up a short name, or fewer columns")


def _pairs(name: str, given: object) -> tuple[tuple[str, str], ...]:
    """What each is called among private rows, and in the public table."""
    listed = [given] if isinstance(given, str) else given
    pairs = tuple(listed.items() if isinstance(listed, Mapping) else ((one, one) for one in _list(listed)))
    if not pairs or not all(isinstance(text, str) and text for pair in pairs for text in pair):
        raise InputError(name, given, "a column's name, a list of these, or {name here: name there}")
    if len({there for _, there in pairs}) < len(pairs) and name == "on":
        raise InputError(name, given, "different columns", "each can be named once")
    return pairs


def _list(given: object) -> Sequence[Any]:
    return given if isinstance(given, (list, tuple)) else ()
