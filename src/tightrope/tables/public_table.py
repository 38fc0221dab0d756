"""Public tables beside private rows: each row of a person meets at most one row of them, by a key of its own.

What a row looks up depends on that row and on public data alone. So it is one more value of the row, and neighbours
stay neighbours: nobody's rows decide what another's row finds, how often it counts, or whether it does.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tightrope.errors import InputError
from tightrope.tables.backends.column_types import comparable
from tightrope.tables.backends.registry import of
from tightrope.tables.engine_calls import guarded, load
from tightrope.tables.expressions.arithmetic import exact
from tightrope.tables.expressions.leaves import Column as Read
from tightrope.tables.expressions.leaves import in_kind
from tightrope.tables.expressions.tree import Rows as Source
from tightrope.tables.schema import Kind, Schema

if TYPE_CHECKING:
    import ibis.expr.datatypes as dt
    import ibis.expr.types as ir

AT_ONCE = 10_000
"""Rows that are spelled out at a time for the digest."""


@dataclass(frozen=True, eq=False)  # not slotted: the digest is kept
class PublicTable:
    """A public table as it was read, once.

    ``on``: columns of the private table, and those of its own that they are compared with, as values of ``kinds``.
    ``added``: the columns that private rows get. ``rows``: an Arrow table ``key0, ..., value0, ...`` in the order of
    its keys, none of which is missing or there twice.
    """

    name: str
    on: tuple[tuple[str, str], ...]
    kinds: tuple[Kind, ...]
    added: Schema
    rows: Any = field(repr=False)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of names and values, column by column, in the order of the keys: of what is said, not of a file."""
        made = hashlib.sha256(json.dumps([[own for _, own in self.on], self.added.names]).encode())
        for column in self.rows.columns:
            for start in range(0, len(column), AT_ONCE):
                made.update(json.dumps(column.slice(start, AT_ONCE).to_pylist(), default=str).encode())
        return made.hexdigest()

    @property
    def keys(self) -> tuple[str, ...]:
        """The names of its key columns."""
        return tuple(f"key{place}" for place in range(len(self.on)))

    @property
    def types(self) -> Mapping[str, dt.DataType]:
        """The engine's types of the columns that it adds."""
        ibis = load("ibis")
        return {name: ibis.dtype(self.rows.schema.field(value).type) for name, value in self.values.items()}

    @property
    def values(self) -> dict[str, str]:
        """What its columns are called here, by the names that private rows get them under."""
        return {name: f"value{place}" for place, name in enumerate(self.added.names)}


def key_columns(source: Source, names: Sequence[str], kinds: Sequence[Kind]) -> list[ir.Column]:
    """Columns in the form in which both sides are compared: one type a kind, NaN missing, −0.0 as 0.0.

    Whole numbers that no double holds are missing beside numbers: rounded, they would meet a neighbour's key.
    """
    return [comparable(_in_kind(name, kind, source)) for name, kind in zip(names, kinds, strict=True)]


def _in_kind(name: str, kind: Kind, source: Source) -> ir.Column:
    whole = kind == "number" and source.schema.column(name).kind == "integer"
    return exact(Read(name).compiled(source)) if whole else in_kind(Read(name), kind, source)


def used_tables(tables: Sequence[PublicTable], names: Sequence[str]) -> tuple[PublicTable, ...]:
    """The tables that these columns come from, in the order in which they are joined."""
    return _traced(tables, names)[0]


def private_names(tables: Sequence[PublicTable], names: Sequence[str]) -> tuple[str, ...]:
    """The private columns that these names rest on: themselves, or what they are looked up by."""
    return _traced(tables, names)[1]


def _traced(tables: Sequence[PublicTable], names: Sequence[str]) -> tuple[tuple[PublicTable, ...], tuple[str, ...]]:
    used: list[PublicTable] = []
    needed = tuple(names)
    for table in reversed(tables):  # a later one may look up by what an earlier one added
        if any(name in table.added.names for name in needed):
            used.insert(0, table)
            own = (name for name in needed if name not in table.added.names)
            needed = tuple(dict.fromkeys((*own, *(private for private, _ in table.on))))
    return tuple(used), needed


def joined(rows: ir.Table, schema: Schema, backend: Any, tables: Sequence[PublicTable]) -> ir.Table:
    """The rows with what they look up, missing where they meet nothing: as many rows as there were.

    Raises ``InputError`` where a key is there twice by the equality of this engine: the row would become two.
    """
    for table in tables:
        there = load("ibis").memtable(table.rows)
        refuse_repeated(backend, there, table)
        rows = guarded("look up the public table", lambda: _join_public_columns(rows, there, schema, table))  # noqa: B023
    return rows


def refuse_repeated(backend: Any, there: ir.Table, table: PublicTable) -> None:
    """Raises ``InputError`` where the engine finds a key twice; the table is public, and its keys may be spoken of."""
    counted = there.group_by(list(table.keys)).agg(times=there.count())
    most = counted.agg(most=counted["times"].max())
    (times,) = guarded("look for repeated keys", lambda: of(backend).fetched(backend, most))["most"].to_pylist()
    if times is not None and times > 1:
        expected = f"a public table in which each {' and '.join(own for _, own in table.on)} is there once"
        remedy = "a private row would meet several of its rows; keep one row a key"
        raise InputError("lookup", f"{table.name}, a key {times} times", expected, remedy)


def _join_public_columns(rows: ir.Table, there: ir.Table, schema: Schema, table: PublicTable) -> ir.Table:
    private = key_columns(Source(rows, schema), [name for name, _ in table.on], table.kinds)
    same = [own == there[name] for own, name in zip(private, table.keys, strict=True)]
    both = rows.left_join(there, same)
    own = {name: rows[name] for name in rows.columns}
    return both.select(**own, **{name: there[value] for name, value in table.values.items()})
