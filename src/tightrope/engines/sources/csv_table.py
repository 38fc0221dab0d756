"""CSV files: every field is read as text, then cast to its column's declared kind; what does not fit is missing."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tightrope.engines.backends.backend import sql
from tightrope.engines.backends.duckdb import connect
from tightrope.engines.guard import guarded, load
from tightrope.engines.snapshot.room import Rows
from tightrope.engines.snapshot.settled import readable
from tightrope.engines.sources.csv_fields import field, fitting
from tightrope.engines.sources.csv_lines import CsvFile, Lines
from tightrope.engines.sources.dialect import Dialect
from tightrope.engines.sources.objects import ARROW_TYPES, check_types
from tightrope.engines.sources.stamp import Stamped
from tightrope.engines.table import Table, check_names, streamed
from tightrope.errors import EngineError, InputError

if TYPE_CHECKING:
    import ibis.expr.types as ir

FIELDS = "fields"
INDEX = "index"
_OTHER_DELIMITERS = (";", "\t", "|")


def open_csv(path: Path, types: Mapping[str, str], dialect: Dialect) -> Table:
    """A CSV file, by default in UTF-8 with commas, double quotes and a header line; ``Dialect`` says what else can be.

    Types are declared, never guessed from the data: a column without a type is text. A field that is not spelled as
    ``spellings`` says of its kind is NULL (blanks around it are ignored, booleans are true/false/1/0); "1.0" is an
    integer, "1.7" is none. An empty field without quotes is NULL for every type, ``""`` is the empty text. A file with
    a record that is not as declared is an ``InputError`` before anything else is done.
    """
    file, stamped = CsvFile(path, dialect), Stamped.now(path)
    names = _names(file)
    check_types(types, names, names)
    arrow = load("pyarrow")
    kinds = {name: types.get(name, "text") for name in names}
    schema = arrow.schema([arrow.field(name, arrow.type_for_alias(ARROW_TYPES[kind])) for name, kind in kinds.items()])

    def stream(chosen: Sequence[str]) -> Rows:
        wanted = arrow.schema([schema.field(name) for name in chosen])
        asked = {name: kinds[name] for name in chosen}

        def batches() -> Iterator[Any]:
            given = (_raw(lines, file, names, chosen) for lines in file.lines(len(names)))
            return _typed(stamped.unchanged(given), wanted, asked, file)

        return Rows(wanted, batches)

    return streamed("csv", schema, stream, lambda _: stamped.check())


def _names(file: CsvFile) -> tuple[str, ...]:
    """The declared names, or those in the first line; no other line is read."""
    header, dialect = file.dialect.header, file.dialect
    if isinstance(header, tuple):
        check_names(header)
        return header
    quoting: Any = {"quotechar": dialect.quote} if dialect.quote else {"quoting": csv.QUOTE_NONE}
    try:
        line = file.first().decode()
        names = tuple(next(csv.reader([line], delimiter=dialect.delimiter, strict=True, **quoting), ()))
    except (UnicodeDecodeError, csv.Error):
        names = None
    if names is None:
        expected = f"a CSV file in {dialect.encoding} with a header line"
        raise InputError("source", str(file.path), expected, "convert it to UTF-8, or declare dialect={...}")
    _refuse_other_delimiter(names)
    named = _with_index(names)
    check_names(named)
    return named


def _with_index(names: tuple[str, ...]) -> tuple[str, ...]:
    """A first column without a name is what pandas and R write of a frame's index, and is called so.

    >>> _with_index(("", "city")), _with_index(("", "index"))
    (('index', 'city'), ('', 'index'))
    """
    taken = INDEX in (name.casefold() for name in names)
    return (INDEX, *names[1:]) if len(names) > 1 and not names[0] and not taken else names


def _refuse_other_delimiter(names: tuple[str, ...]) -> None:
    """One column whose name holds what separates columns elsewhere."""
    for mark in _OTHER_DELIMITERS:
        if len(names) == 1 and mark in names[0]:
            typed = "\\t" if mark == "\t" else mark
            remedy = f"say dialect={{'delimiter': {mark!r}}}, or --dialect 'delimiter={typed}' on a command line"
            raise InputError("dialect", names[0], "the delimiter that the header uses", remedy)


def _raw(lines: Lines, file: CsvFile, names: Sequence[str], chosen: Sequence[str]) -> Any:
    """The chosen columns of some records as they stand there: bytes, or NULL for an empty field without quotes."""
    arrow, reader = load("pyarrow"), load("pyarrow.csv")
    dialect = file.dialect
    read = reader.ReadOptions(column_names=list(names), block_size=len(lines.text) + 1, use_threads=False)
    parse = reader.ParseOptions(
        delimiter=dialect.delimiter,
        quote_char=dialect.quote or False,
        newlines_in_values=True,
        ignore_empty_lines=False,
    )
    convert = reader.ConvertOptions(
        column_types=dict.fromkeys(names, arrow.binary()),
        include_columns=list(chosen),
        null_values=[""],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )
    buffer = arrow.BufferReader(lines.text)
    table = guarded("read the CSV file", lambda: reader.read_csv(buffer, read, parse, convert))
    if len(table) != lines.count:
        raise EngineError("the reader of CSV found other records than there are; write the file as Parquet")
    texts = [readable(column.combine_chunks().view("string")) for column in table.columns]
    return arrow.RecordBatch.from_arrays(texts, names=list(chosen))


def _typed(batches: Iterator[Any], schema: Any, kinds: Mapping[str, str], file: CsvFile) -> Iterator[Any]:
    """The batches in their declared types, cast in a connection of its own."""
    backend = guarded("open a connection", connect)
    places = [f"c{place}" for place in range(len(kinds))]
    try:
        empty = load("pyarrow").table({place: load("pyarrow").array([], "string") for place in places})
        guarded("name the fields", lambda: backend.con.register(FIELDS, empty))
        query = guarded("prepare the casts", lambda: sql(backend, _cast(backend, list(kinds.values()), file.dialect)))
        for batch in batches:
            texts = [fitting(*known, file.dialect) for known in zip(batch.columns, kinds.values(), strict=True)]
            renamed = load("pyarrow").Table.from_arrays(texts, names=places)
            guarded("name the fields", partial(backend.con.register, FIELDS, renamed))
            made = guarded("cast the fields", lambda: backend.con.sql(query).to_arrow_table())
            yield from made.rename_columns(schema.names).cast(schema).to_batches()
    finally:
        guarded("close the connection", backend.disconnect)


def _cast(backend: Any, kinds: Sequence[str], dialect: Dialect) -> ir.Table:
    table = backend.table(FIELDS)
    return table.select(**{
        f"t{place}": field(table[f"c{place}"], kind, dialect) for place, kind in enumerate(kinds)
    })  # fmt: skip
