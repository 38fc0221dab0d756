"""Tables in PostgreSQL: the needed columns of one snapshot, read once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tightrope.engines.backends import postgres
from tightrope.engines.backends.postgres_types import UNREAD, Form
from tightrope.engines.backends.relation import Relation
from tightrope.engines.guard import guarded, load
from tightrope.engines.snapshot.room import Rows
from tightrope.engines.snapshot.settled import readable
from tightrope.engines.table import Table, check_names, streamed
from tightrope.errors import EngineError, InputError, SchemaError


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
        return Rows(_schema(asked), lambda: _batches(place, relation, asked))

    def ready(names: Sequence[str]) -> None:
        with postgres.transaction(place) as connection:
            _refuse_changed(connection, relation, chosen(names or list(forms)[:1]))

    return streamed("postgres", _schema(forms), stream, ready)


def _schema(forms: Mapping[str, Form]) -> Any:
    return load("pyarrow").schema([(name, form.type) for name, form in forms.items()])


def _batches(url: str, relation: Relation, asked: Mapping[str, Form]) -> Iterator[Any]:
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
    columns = [_settled(table[place].combine_chunks(), form) for place, form in places.items()]
    return arrow.RecordBatch.from_arrays(columns, schema=_schema(forms))


def _settled(column: Any, form: Form) -> Any:
    rule = form.rule
    if rule is None:
        return column
    text = readable(column.view("string"))
    return guarded("settle the values", lambda: rule(text, form.type))
