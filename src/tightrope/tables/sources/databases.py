"""DuckDB's own: tables of a database file, opened read-only, and relations of a user's connection."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from tightrope.errors import EngineError, InputError, SchemaError, quoted_names, suggest_nearest
from tightrope.tables.backends import postgres
from tightrope.tables.backends.backend import Relation
from tightrope.tables.backends.column_types import WIDEST_DECIMAL, schema_of
from tightrope.tables.backends.duckdb import open_connection
from tightrope.tables.backends.postgres import UNREAD, ColumnFormat
from tightrope.tables.engine_calls import engine_call, load_library
from tightrope.tables.files import ROWS, iterate_batches
from tightrope.tables.materialize import RowSource, drop_invalid_utf8
from tightrope.tables.sources.stamp import StampedFiles
from tightrope.tables.table import Table, check_names, table_from_stream

MAIN = "main"
WIDE = ("HUGEINT", "UHUGEINT")
AS_TEXT = (*WIDE, "UUID")
WHOLE_NUMBER = rf"^-?\d{{1,{WIDEST_DECIMAL}}}$"


def open_duckdb(path: Path, name: str | None) -> Table:
    """A table or view of a DuckDB file, in ``main`` where no schema is named; ``SchemaError`` lists those that exist.

    What the file brings along – macros, collations, views – works in a connection that only reads rows out of it.
    """
    stamped = StampedFiles.from_paths(path)
    backend = engine_call(
        "open the DuckDB file (is it open elsewhere in this process or for writing?)", lambda: open_connection(path)
    )
    query = (  # tables and views: ibis 12 cannot list them with DuckDB 2
        "SELECT table_schema, table_name FROM information_schema.tables WHERE table_catalog = current_database() "
        "AND table_schema NOT IN ('information_schema', 'pg_catalog') ORDER BY ALL"
    )
    found = engine_call(
        "list the tables of the DuckDB file",
        lambda: tuple(Relation(*row) for row in backend.raw_sql(query).fetchall()),
    )
    names = tuple(known.name_in_schema(MAIN) for known in found)
    if name is None:
        raise InputError(
            "table", None, f"one of {quoted_names(names)}", "say table='...', or --table on a command line"
        )
    relation = Relation(MAIN, name) if Relation(MAIN, name) in found else Relation.from_text(name, MAIN)
    if relation not in found:
        raise SchemaError("table", name, f"one of {quoted_names(names)}", suggest_nearest(name, names))
    table = engine_call(
        "read the table's schema",
        lambda: backend.table(relation.name, database=(backend.current_catalog, relation.schema)),
    )
    check_names(table.columns)

    def load_table(_: Sequence[str]) -> Any:
        stamped.check_unchanged()
        return table

    return Table(schema_of(table.schema()), "duckdb", lambda: backend, load_table)


def open_relation(relation: Any) -> Table:
    """A relation of a user's connection, attached files and all, computed once for a plan.

    It is taken as the table that it computes, like a view.
    """
    check_names(relation.columns)
    kinds = dict(zip(relation.columns, map(str, relation.types), strict=True))
    empty = engine_call(
        "find the relation's columns", lambda: _select_portable(relation, kinds).limit(0).to_arrow_table()
    )
    arrow = load_library("pyarrow")
    wide = arrow.decimal128(WIDEST_DECIMAL, 0)
    types = {name: wide if kind in WIDE else empty.schema.field(name).type for name, kind in kinds.items()}

    def read_columns(names: Sequence[str]) -> RowSource:
        asked = {name: kinds[name] for name in names}
        schema = arrow.schema([(name, types[name]) for name in names])

        def read_batches() -> Iterator[Any]:
            reader = engine_call(
                "compute the relation", lambda: _select_portable(relation, asked).to_arrow_reader(ROWS // 4)
            )
            for batch in iterate_batches(reader):
                columns = []
                for column, field in zip(batch.columns, schema, strict=True):
                    values = column
                    if asked[field.name] in WIDE:  # values with more than 38 digits are missing
                        compute = load_library("pyarrow.compute")
                        held = compute.match_substring_regex(column, WHOLE_NUMBER)
                        values = compute.if_else(held, column, arrow.scalar(None, column.type))
                    columns.append(values.cast(field.type))
                yield arrow.RecordBatch.from_arrays(columns, schema=schema)

        return RowSource(schema, read_batches)

    def check_relation(_: Sequence[str]) -> None:
        engine_call("find the relation's columns", lambda: _select_portable(relation, kinds).limit(0).to_arrow_table())

    return table_from_stream("duckdb", arrow.schema(list(types.items())), read_columns, check_relation)


def _select_portable(relation: Any, kinds: dict[str, str]) -> Any:
    """The columns in types that Arrow carries under all settings of the connection: casts are not functions."""
    column = load_library("duckdb").ColumnExpression
    chosen = [
        column(name).cast("VARCHAR").alias(name) if kind in AS_TEXT else column(name) for name, kind in kinds.items()
    ]
    return relation.select(*chosen)


# Tables in PostgreSQL: the needed columns of one snapshot, read once.


def open_postgres(url: str, table: str) -> Table:
    """A table, partitioned or foreign table, view or materialized view; ``table`` without a schema is in ``public``.

    Nothing is written and nothing is left behind: a role that may read is enough, and columns that it may not read are
    not there. A view, and what stands behind a foreign table, is taken as the table that it computes.
    """
    place, relation = postgres.check_url(url), Relation.from_text(table, "public")
    with postgres.read_only_transaction(place) as connection:
        forms = postgres.readable_columns(connection, relation)
    check_names(forms)

    def select_formats(names: Sequence[str]) -> dict[str, ColumnFormat]:
        for name in names:
            if forms[name] == UNREAD:
                expected = "a number, text, boolean, uuid, date or timestamp, or an enum"
                raise SchemaError("column", name, expected, "cast it in a view")
        return {name: forms[name] for name in names}

    def read_columns(names: Sequence[str]) -> RowSource:
        asked = select_formats(names)

        def read_batches() -> Iterator[Any]:
            # One transaction: that the columns are still the same ones is seen in the snapshot that the rows come from.
            with postgres.read_only_transaction(place) as connection:
                _check_unchanged(connection, relation, asked)
                for block, count in postgres.copy_rows(connection, relation, tuple(asked)):
                    yield _parse_block(block, count, asked)

        return RowSource(_arrow_schema(asked), read_batches)

    def check_table(names: Sequence[str]) -> None:
        with postgres.read_only_transaction(place) as connection:
            _check_unchanged(connection, relation, select_formats(names or list(forms)[:1]))

    return table_from_stream("postgres", _arrow_schema(forms), read_columns, check_table)


def _arrow_schema(forms: Mapping[str, ColumnFormat]) -> Any:
    return load_library("pyarrow").schema([(name, form.arrow_type) for name, form in forms.items()])


def _check_unchanged(connection: Any, relation: Relation, asked: Mapping[str, ColumnFormat]) -> None:
    """Raise ``InputError`` unless the table has these columns, as it had them when it was opened. Reads no row."""
    if postgres.readable_columns(connection, relation, tuple(asked)) != asked:
        raise InputError("source", str(relation), "with the columns that it had when it was opened", "open it again")


def _parse_block(block: bytes, count: int, forms: Mapping[str, ColumnFormat]) -> Any:
    """Records in PostgreSQL's spelling as a batch."""
    arrow, reader = load_library("pyarrow"), load_library("pyarrow.csv")
    places = {f"c{place}": form for place, form in enumerate(forms.values())}
    read = reader.ReadOptions(column_names=list(places), block_size=len(block) + 1, use_threads=False)
    parse = reader.ParseOptions(newlines_in_values=True, ignore_empty_lines=False)
    convert = reader.ConvertOptions(
        column_types={
            place: form.arrow_type if form.rule is None else arrow.binary() for place, form in places.items()
        },
        null_values=[""],
        true_values=["t"],
        false_values=["f"],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )
    table = engine_call("read the rows", lambda: reader.read_csv(arrow.BufferReader(block), read, parse, convert))
    if len(table) != count:
        raise EngineError("PostgreSQL's rows were read as another number of rows than came; nothing was answered")
    columns = []
    for place, form in places.items():
        column = table[place].combine_chunks()
        if form.rule is not None:
            text = drop_invalid_utf8(column.view("string"))
            column = engine_call("settle the values", partial(form.rule, text, form.arrow_type))
        columns.append(column)
    return arrow.RecordBatch.from_arrays(columns, schema=_arrow_schema(forms))
