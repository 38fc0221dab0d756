"""Public tables joined to private rows: each private row matches at most one of their rows, by its key.

What a row looks up depends on that row and on public data alone. So it is one more value of the row, and neighbors
stay neighbors: one person's rows never affect another row's match, or how often or whether it counts.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tightrope.errors import InputError
from tightrope.tables.backends.column_types import to_comparable
from tightrope.tables.backends.registry import backend_for
from tightrope.tables.engine_calls import engine_call, load_library
from tightrope.tables.expressions.arithmetic import integer_to_double
from tightrope.tables.expressions.leaves import ColumnRef, column_in_kind
from tightrope.tables.expressions.tree import SourceRows
from tightrope.tables.schema import Kind, Schema

if TYPE_CHECKING:
    import ibis.expr.datatypes as dt
    import ibis.expr.types as ir

AT_ONCE = 10_000
"""Rows that are spelled out at a time for the digest."""


@dataclass(frozen=True, eq=False)  # not slotted: the digest is kept
class PublicTable:
    """A public table as it was read, once.

    ``key_pairs``: columns of the private table, and its own columns to compare them with, as values of ``kinds``.
    ``added_schema``: the columns that private rows get. ``rows``: an Arrow table ``key0, ..., value0, ...`` in the
    order of its keys, all present and unique.
    """

    name: str
    key_pairs: tuple[tuple[str, str], ...]
    key_kinds: tuple[Kind, ...]
    added_schema: Schema
    rows: Any = field(repr=False)

    @cached_property
    def content_digest(self) -> str:
        """SHA-256 of names and values, column by column, in the order of the keys: of the contents, not of a file."""
        made = hashlib.sha256(json.dumps([[own for _, own in self.key_pairs], self.added_schema.column_names]).encode())
        for column in self.rows.columns:
            for start in range(0, len(column), AT_ONCE):
                made.update(json.dumps(column.slice(start, AT_ONCE).to_pylist(), default=str).encode())
        return made.hexdigest()

    @property
    def key_names(self) -> tuple[str, ...]:
        """The names of its key columns."""
        return tuple(f"key{place}" for place in range(len(self.key_pairs)))

    @property
    def added_types(self) -> Mapping[str, dt.DataType]:
        """The engine's types of the columns that it adds."""
        ibis = load_library("ibis")
        return {name: ibis.dtype(self.rows.schema.field(value).type) for name, value in self.internal_names.items()}

    @property
    def internal_names(self) -> dict[str, str]:
        """The internal names of its columns, by the names that private rows get them under."""
        return {name: f"value{place}" for place, name in enumerate(self.added_schema.column_names)}


def key_columns(source: SourceRows, names: Sequence[str], kinds: Sequence[Kind]) -> list[ir.Column]:
    """Columns in the form in which both sides are compared: one type a kind, NaN missing, −0.0 as 0.0.

    Integers that doubles cannot hold are missing if compared with numbers: rounded, they match other keys.
    """
    columns = []
    for name, kind in zip(names, kinds, strict=True):
        if kind == "number" and source.schema.find_column(name).kind == "integer":
            column = integer_to_double(ColumnRef(name).to_engine_column(source))
        else:
            column = column_in_kind(ColumnRef(name), kind, source)
        columns.append(to_comparable(column))
    return columns


def used_tables(tables: Sequence[PublicTable], names: Sequence[str]) -> tuple[PublicTable, ...]:
    """The tables that these columns come from, in the order in which they are joined."""
    return _trace_lookups(tables, names)[0]


def private_names(tables: Sequence[PublicTable], names: Sequence[str]) -> tuple[str, ...]:
    """The private columns that these names rest on: themselves, or what they are looked up by."""
    return _trace_lookups(tables, names)[1]


def _trace_lookups(
    tables: Sequence[PublicTable], names: Sequence[str]
) -> tuple[tuple[PublicTable, ...], tuple[str, ...]]:
    used: list[PublicTable] = []
    needed = tuple(names)
    for table in reversed(tables):  # a later one may look up by what an earlier one added
        if any(name in table.added_schema.column_names for name in needed):
            used.insert(0, table)
            own = (name for name in needed if name not in table.added_schema.column_names)
            needed = tuple(dict.fromkeys((*own, *(private for private, _ in table.key_pairs))))
    return tuple(used), needed


def join_public_tables(rows: ir.Table, schema: Schema, backend: Any, tables: Sequence[PublicTable]) -> ir.Table:
    """The rows with what they look up, missing where they meet nothing: as many rows as there were.

    Raises ``InputError`` where a key is there twice by the equality of this engine: the row would become two.
    """
    for table in tables:
        there = load_library("ibis").memtable(table.rows)
        check_unique_keys(backend, there, table)
        rows = engine_call("look up the public table", lambda: _join_public_columns(rows, there, schema, table))  # noqa: B023
    return rows


def check_unique_keys(backend: Any, there: ir.Table, table: PublicTable) -> None:
    """Raises ``InputError`` where the engine finds a key twice; the table is public, and its keys may be spoken of."""
    counted = there.group_by(list(table.key_names)).agg(times=there.count())
    most = counted.agg(most=counted["times"].max())
    (times,) = engine_call("look for repeated keys", lambda: backend_for(backend).fetch_arrow(backend, most))[
        "most"
    ].to_pylist()
    if times is not None and times > 1:
        expected = f"a public table in which each {' and '.join(own for _, own in table.key_pairs)} is there once"
        remedy = "a private row would meet several of its rows; keep one row a key"
        raise InputError("public_tables", f"{table.name}, a key {times} times", expected, remedy)


def _join_public_columns(rows: ir.Table, there: ir.Table, schema: Schema, table: PublicTable) -> ir.Table:
    private = key_columns(SourceRows(rows, schema), [name for name, _ in table.key_pairs], table.key_kinds)
    same = [own == there[name] for own, name in zip(private, table.key_names, strict=True)]
    both = rows.left_join(there, same)
    own = {name: rows[name] for name in rows.columns}
    return both.select(**own, **{name: there[value] for name, value in table.internal_names.items()})
