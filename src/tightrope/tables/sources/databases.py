"""DuckDB's own: tables of a database file, which is opened read-only, and relations of a connection of the user's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tightrope.errors import EngineError, InputError, SchemaError, listed, nearest
from tightrope.tables.backends import postgres
from tightrope.tables.backends.backend import Relation
from tightrope.tables.backends.column_types import WIDEST_DECIMAL, schema_of
from tightrope.tables.backends.duckdb import connect
from tightrope.tables.backends.postgres import UNREAD, Form
from tightrope.tables.engine_calls import guarded, load
from tightrope.tables.files import ROWS
from tightrope.tables.materialize import Rows, readable
from tightrope.tables.sources.stamp import Stamped
from tightrope.tables.table import Table, check_names, streamed

MAIN = "main"
WIDE = ("HUGEINT", "UHUGEINT")
AS_TEXT = (*WIDE, "UUID")
WHOLE_NUMBER = rf"^-?\d{{1,{WIDEST_DECIMAL}}}$"


def open_duckdb(path: Path, name: str | None) -> Table:
    """A table or view of a DuckDB file, in ``main`` where no schema is named; ``SchemaError`` lists those that exist.

    What the file brings along – macros, collations, views – works in a connection that only reads rows out of it.
    """
    stamped = Stamped.now(path)
    backend = guarded(
        "open the DuckDB file (is it open elsewhere in this process or for writing?)", lambda: connect(path)
    )
    found = guarded("list the tables of the DuckDB file", lambda: _tables(backend))
    names = tuple(known.within(MAIN) for known in found)
    if name is None:
        raise InputError("table", None, f"one of {listed(names)}", "say table='...', or --table on a command line")
    relation = Relation(MAIN, name) if Relation(MAIN, name) in found else Relation.of(name, MAIN)
    if relation not in found:
        raise SchemaError("table", name, f"one of {listed(names)}", nearest(name, names))
    table = guarded("read the table's schema", lambda: _catalog_table(backend, relation))
    check_names(table.columns)

    def loaded(_: Sequence[str]) -> Any:
        stamped.check()
        return table

    return Table(schema_of(table.schema()), "duckdb", lambda: backend, loaded)


def open_relation(relation: Any) -> Table:
    """A relation of a user's connection, attached files and all, computed once for a plan.

    It is taken as the table that it computes, like a view.
    """
    check_names(relation.columns)
    kinds = dict(zip(relation.columns, map(str, relation.types), strict=True))
    empty = guarded("find the relation's columns", lambda: _plain(relation, kinds).limit(0).to_arrow_table())
    wide = load("pyarrow").decimal128(WIDEST_DECIMAL, 0)
    types = {name: wide if kind in WIDE else empty.schema.field(name).type for name, kind in kinds.items()}

    def stream(names: Sequence[str]) -> Rows:
        asked = {name: kinds[name] for name in names}
        schema = load("pyarrow").schema([(name, types[name]) for name in names])
        return Rows(schema, lambda: _batches(relation, asked, schema))

    def ready(_: Sequence[str]) -> None:
        guarded("find the relation's columns", lambda: _plain(relation, kinds).limit(0).to_arrow_table())

    return streamed("duckdb", load("pyarrow").schema(list(types.items())), stream, ready)


def _plain(relation: Any, kinds: dict[str, str]) -> Any:
    """The columns in types that Arrow carries whatever the connection's settings say: casts are no functions."""
    column = load("duckdb").ColumnExpression
    chosen = [
        column(name).cast("VARCHAR").alias(name) if kind in AS_TEXT else column(name) for name, kind in kinds.items()
    ]
    return relation.select(*chosen)


def _batches(relation: Any, kinds: dict[str, str], schema: Any) -> Iterator[Any]:
    arrow = load("pyarrow")
    reader = guarded("compute the relation", lambda: _plain(relation, kinds).to_arrow_reader(ROWS // 4))
    while (batch := guarded("read the rows", lambda: next(reader, None))) is not None:
        columns = [
            _narrowed(column, field.type) if kinds[field.name] in WIDE else column.cast(field.type)
            for column, field in zip(batch.columns, schema, strict=True)
        ]
        yield arrow.RecordBatch.from_arrays(columns, schema=schema)


def _narrowed(column: Any, wanted: Any) -> Any:
    """What has more than 38 digits is missing."""
    compute = load("pyarrow.compute")
    held = compute.match_substring_regex(column, WHOLE_NUMBER)
    return compute.if_else(held, column, load("pyarrow").scalar(None, column.type)).cast(wanted)


def _catalog_table(backend: Any, relation: Relation) -> Any:
    return backend.table(relation.name, database=(backend.current_catalog, relation.schema))


def _tables(backend: Any) -> tuple[Relation, ...]:
    """Tables and views (ibis 12 cannot list them with DuckDB 2)."""
    query = (
        "SELECT table_schema, table_name FROM information_schema.tables WHERE table_catalog = current_database() "
        "AND table_schema NOT IN ('information_schema', 'pg_catalog') ORDER BY ALL"
    )
    return tuple(Relation(*row) for row in backend.raw_sql(query).fetchall())


# Tables in PostgreSQL: the needed columns of one snapshot, read once.


def open_postgres(url: str, table: str) -> Table:
    """A table, partitioned or foreign table, view or materialised view; ``table`` without a schema is in ``public``.

    Nothing is written and nothing is left behind: a role that may read is enough, and columns that it may not read are
    not there. A view, and what stands behind a foreign table, is taken as the table that it computes.
    """
    place, relation = postgres.checked(url), Relation.of(table, "public")
    with postgres.transaction(place) as connection:
        forms = postgres.columns(connection, relation)
    check_names(forms)

    def chosen(names: Sequence[str]) -> dict[str, Form]:
        for name in names:
            if forms[name] == UNREAD:
                expected = "a number, text, boolean, uuid, date or timestamp, or an enum"
                raise SchemaError("column", name, expected, "cast it in a view")
        return {name: forms[name] for name in names}

    def stream(names: Sequence[str]) -> Rows:
        asked = chosen(names)
        return Rows(_schema(asked), lambda: _postgres_table_batches(place, relation, asked))

    def ready(names: Sequence[str]) -> None:
        with postgres.transaction(place) as connection:
            _refuse_changed(connection, relation, chosen(names or list(forms)[:1]))

    return streamed("postgres", _schema(forms), stream, ready)


def _schema(forms: Mapping[str, Form]) -> Any:
    return load("pyarrow").schema([(name, form.type) for name, form in forms.items()])


def _postgres_table_batches(url: str, relation: Relation, asked: Mapping[str, Form]) -> Iterator[Any]:
    """One transaction: that the columns are still the same ones is seen in the snapshot that the rows come from."""
    with postgres.transaction(url) as connection:
        _refuse_changed(connection, relation, asked)
        for block, count in postgres.copied(connection, relation, tuple(asked)):
            yield _batch(block, count, asked)


def _refuse_changed(connection: Any, relation: Relation, asked: Mapping[str, Form]) -> None:
    """Raise ``InputError`` unless the table has these columns, as it had them when it was opened. Reads no row."""
    if postgres.columns(connection, relation, tuple(asked)) != asked:
        raise InputError("source", str(relation), "with the columns that it had when it was opened", "open it again")


def _batch(block: bytes, count: int, forms: Mapping[str, Form]) -> Any:
    """Records in PostgreSQL's spelling as a batch."""
    arrow, reader = load("pyarrow"), load("pyarrow.csv")
    places = {f"c{place}": form for place, form in enumerate(forms.values())}
    read = reader.ReadOptions(column_names=list(places), block_size=len(block) + 1, use_threads=False)
    parse = reader.ParseOptions(newlines_in_values=True, ignore_empty_lines=False)
    convert = reader.ConvertOptions(
        column_types={place: form.type if form.rule is None else arrow.binary() for place, form in places.items()},
        null_values=[""],
        true_values=["t"],
        false_values=["f"],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )
    table = guarded("read the rows", lambda: reader.read_csv(arrow.BufferReader(block), read, parse, convert))
    if len(table) != count:
        raise EngineError("PostgreSQL's rows were read as another number of rows than came; nothing was answered")
    columns = [_normalized_column(table[place].combine_chunks(), form) for place, form in places.items()]
    return arrow.RecordBatch.from_arrays(columns, schema=_schema(forms))


def _normalized_column(column: Any, form: Form) -> Any:
    rule = form.rule
    if rule is None:
        return column
    text = readable(column.view("string"))
    return guarded("settle the values", lambda: rule(text, form.type))
