"""Public tables joined to private rows: each private row matches at most one of their rows, by its key.

The looked-up values depend on the private row and on public data alone. So they are further values of the row, and
neighboring tables stay neighbors: one person's rows never affect another row's match, or whether and how often it
counts.
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
    from ibis.backends import BaseBackend

DIGEST_BATCH_ROWS = 10_000
"""Rows that are converted to Python values at a time for the digest."""


@dataclass(frozen=True, eq=False)  # without slots, because the digest is cached
class PublicTable:
    """A public table, read once.

    ``key_pairs``: columns of the private table, each with the public table's column that it is compared with.
    ``key_kinds``: the kinds in which they are compared.
    ``added_schema``: the columns that private rows get.
    ``rows``: an Arrow table ``key0, ..., value0, ...``, sorted by its keys, which are present and unique.
    """

    name: str
    key_pairs: tuple[tuple[str, str], ...]
    key_kinds: tuple[Kind, ...]
    added_schema: Schema
    rows: Any = field(repr=False)

    @cached_property
    def content_digest(self) -> str:
        """SHA-256 of the names and values, column by column in the order of keys; independent of the file format."""
        key_columns = [public for _, public in self.key_pairs]
        digest = hashlib.sha256(json.dumps([key_columns, self.added_schema.column_names]).encode())
        for column in self.rows.columns:
            for start in range(0, len(column), DIGEST_BATCH_ROWS):
                digest.update(json.dumps(column.slice(start, DIGEST_BATCH_ROWS).to_pylist(), default=str).encode())
        return digest.hexdigest()

    @property
    def key_names(self) -> tuple[str, ...]:
        """The names of the key columns in ``rows``."""
        return tuple(f"key{index}" for index in range(len(self.key_pairs)))

    @property
    def added_types(self) -> Mapping[str, dt.DataType]:
        """The engine's types of the columns that it adds."""
        ibis = load_library("ibis")
        return {name: ibis.dtype(self.rows.schema.field(value).type) for name, value in self.internal_names.items()}

    @property
    def internal_names(self) -> dict[str, str]:
        """The names in ``rows`` of the added columns, by their names in private rows."""
        return {name: f"value{index}" for index, name in enumerate(self.added_schema.column_names)}


def key_columns(source: SourceRows, names: Sequence[str], kinds: Sequence[Kind]) -> list[ir.Column]:
    """Return key columns in the form in which both sides are compared: one type per kind, NaN missing, −0.0 as 0.0.

    Integers that are compared with numbers are missing if doubles cannot hold them: rounded, they would match other
    keys.
    """
    columns = []
    for name, kind in zip(names, kinds, strict=True):
        if kind == "number" and source.schema.find_column(name).kind == "integer":
            column = integer_to_double(ColumnRef(name).to_engine_column(source))
        else:
            column = column_in_kind(ColumnRef(name), kind, source)
        columns.append(to_comparable(column))
    return columns


def trace_lookups(
    tables: Sequence[PublicTable], names: Sequence[str]
) -> tuple[tuple[PublicTable, ...], tuple[str, ...]]:
    """Return the public tables that these columns come from, and the private table's columns that they need."""
    used: list[PublicTable] = []
    needed = tuple(names)
    for table in reversed(tables):  # the key of a later table may be a column that an earlier one added
        if any(name in table.added_schema.column_names for name in needed):
            used.insert(0, table)
            other_names = (name for name in needed if name not in table.added_schema.column_names)
            needed = tuple(dict.fromkeys((*other_names, *(private for private, _ in table.key_pairs))))
    return tuple(used), needed


def join_public_tables(rows: ir.Table, schema: Schema, backend: BaseBackend, tables: Sequence[PublicTable]) -> ir.Table:
    """Return the same rows with the columns of the public tables, which are missing in rows without a match.

    Raises ``InputError`` if a public key occurs twice by the equality of this engine: the row would become two.
    """
    for table in tables:
        public_rows = load_library("ibis").memtable(table.rows)
        check_unique_keys(backend, public_rows, table)
        rows = engine_call("join the public table", lambda: _join_public_columns(rows, public_rows, schema, table))  # noqa: B023
    return rows


def check_unique_keys(backend: BaseBackend, public_rows: ir.Table, table: PublicTable) -> None:
    """Raise ``InputError`` if the engine finds a key twice."""
    counts = public_rows.group_by(list(table.key_names)).agg(times=public_rows.count())
    largest = counts.agg(times=counts["times"].max())
    found = engine_call("look for repeated keys", lambda: backend_for(backend).fetch_arrow(backend, largest))
    (times,) = found["times"].to_pylist()
    if times is not None and times > 1:
        columns = " and ".join(public for _, public in table.key_pairs)
        text = f"in {table.name!r} each {columns} must be there once, but one occurs {times} times"
        raise InputError.from_text("public_tables", f"{text}; keep one row for each key")


def _join_public_columns(rows: ir.Table, public_rows: ir.Table, schema: Schema, table: PublicTable) -> ir.Table:
    private_keys = key_columns(SourceRows(rows, schema), [name for name, _ in table.key_pairs], table.key_kinds)
    equal_keys = [key == public_rows[name] for key, name in zip(private_keys, table.key_names, strict=True)]
    joined = rows.left_join(public_rows, equal_keys)
    private_columns = {name: rows[name] for name in rows.columns}
    added_columns = {name: public_rows[internal] for name, internal in table.internal_names.items()}
    return joined.select(**private_columns, **added_columns)
