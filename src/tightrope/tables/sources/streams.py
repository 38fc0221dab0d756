"""Sources that come as records: Arrow streams, Arrow datasets, and files of JSON lines."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from tightrope.errors import EngineError, InputError
from tightrope.tables.engine_calls import engine_call, load_library
from tightrope.tables.files import MAX_BATCH_ROWS, StampedFiles, iterate_batches
from tightrope.tables.materialize import RowSource
from tightrope.tables.sources.canonical_text import EXACT_INTEGER_END, parse_value
from tightrope.tables.sources.csv import CSV_BLOCK, MAX_RECORD_BYTES, open_binary_file
from tightrope.tables.sources.frames import ARROW_TYPES, check_types, convert_value
from tightrope.tables.table import Table, table_from_stream

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow.dataset import Dataset

JSON_LINES = (".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz")
"""Endings of files with one JSON object in each line."""


def open_arrow_stream(source: Any) -> Table:
    """Open anything with the Arrow C stream interface, such as a ``RecordBatchReader``; no record is read.

    Its records are held in memory from the first reading on, so that a second plan sees the same ones. Raises
    ``InputError`` for a stream of single values, such as a column.
    """
    arrow = load_library("pyarrow")
    try:
        reader = engine_call("open the Arrow stream", lambda: arrow.RecordBatchReader.from_stream(source))
    except EngineError:
        reader = None
    if reader is None:
        raise InputError("source", type(source), "a stream of records with named columns that was not read before")
    lock, has_failed, tables = threading.Lock(), threading.Event(), list[Any]()

    def check_readable(_: Sequence[str] = ()) -> None:
        if has_failed.is_set():  # what is left of a stream would be another table
            text = "reading this stream failed, and a stream can be read only once; make a new one, or pass a table"
            raise InputError.from_text("source", text)

    def read_table() -> pa.Table:
        with lock:
            check_readable()
            if not tables:
                try:
                    tables.append(engine_call("read the Arrow stream", reader.read_all))
                except BaseException:
                    has_failed.set()
                    raise
            return tables[0]

    def read_columns(names: Sequence[str]) -> RowSource:
        schema = arrow.schema([reader.schema.field(name) for name in names])
        return RowSource(schema, lambda: read_table().select(list(names)).to_batches(MAX_BATCH_ROWS))

    return table_from_stream("arrow", reader.schema.remove_metadata(), read_columns, check_readable)


def open_dataset(dataset: Dataset) -> Table:
    """Open a ``pyarrow.dataset``; the columns of a plan's questions are read batch by batch."""
    arrow = load_library("pyarrow")
    schema = dataset.schema.remove_metadata()

    def read_columns(names: Sequence[str]) -> RowSource:
        chosen = arrow.schema([schema.field(name) for name in names])

        def read_batches() -> Iterator[pa.RecordBatch]:
            reader = engine_call(
                "read the Arrow dataset",
                lambda: dataset.scanner(columns=list(names), batch_size=MAX_BATCH_ROWS).to_reader(),
            )
            for batch in iterate_batches(reader):
                yield engine_call("read the Arrow dataset", lambda batch=batch: batch.cast(chosen))  # type: ignore[misc]

        return RowSource(chosen, read_batches)

    return table_from_stream("arrow", schema, read_columns)


def open_json_lines(path: Path, types: Mapping[str, str]) -> Table:
    """Open a file with one JSON object in each line, in UTF-8; files whose names end in ``.gz`` are decompressed.

    ``types`` declares the columns and their kinds: names or types found in the lines would depend on single persons.
    Each line is one record. A value that is absent or does not fit its kind is missing; in a line that is not a JSON
    object every value is missing, so that no line has an effect on another one. Texts are read as in CSV fields for
    kinds other than text. Raises ``InputError`` without ``types``.
    """
    if not types:
        text = "declare the columns of JSON lines and their kinds: types={'person': 'integer', 'city': 'text'}"
        raise InputError.from_text("types", text)
    check_types(types, tuple(types), tuple(types))
    stamped, arrow = StampedFiles.from_paths(path), load_library("pyarrow")
    schema = arrow.schema([(name, arrow.type_for_alias(ARROW_TYPES[kind])) for name, kind in types.items()])

    def read_columns(names: Sequence[str]) -> RowSource:
        chosen = arrow.schema([schema.field(name) for name in names])

        def read_batches() -> Iterator[pa.RecordBatch]:
            for lines in _line_blocks(path):
                records = [_parse_object(line) for line in lines]
                columns = [
                    arrow.array([_fitting_value(record.get(name), types[name]) for record in records], kind)
                    for name, kind in zip(names, chosen.types, strict=True)
                ]
                yield arrow.RecordBatch.from_arrays(columns, schema=chosen)

        return RowSource(chosen, lambda: stamped.checked_batches(read_batches()), (), stamped.check_unchanged)

    return table_from_stream("json", schema, read_columns, lambda _: stamped.check_unchanged())


def _line_blocks(path: Path) -> Iterator[list[bytes]]:
    """Yield the lines of the file, some at a time; raises ``InputError`` for a line that does not fit in memory."""
    with open_binary_file(path) as file:
        pending = b""
        while block := engine_call("read the JSON lines", lambda: file.read(CSV_BLOCK)):
            *lines, pending = (pending + block).split(b"\n")
            if lines:
                yield lines
            if len(pending) > MAX_RECORD_BYTES:
                raise InputError.from_text(
                    "source", f"{str(path)!r} has a line of more than {MAX_RECORD_BYTES:,} bytes"
                )
        if pending:
            yield [pending]


def _parse_object(line: bytes) -> dict[str, Any]:
    """Return the object in a line; an empty one for any other line."""
    try:
        record = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}
    return record if isinstance(record, dict) else {}


def _fitting_value(value: object, kind: str) -> object:
    """Return the value in a column of this kind; None if it does not fit.

    >>> [_fitting_value(value, "integer") for value in (7, 7.0, "7", 7.5, True, None)]
    [7, 7, 7, None, None, None]
    """
    if isinstance(value, str):
        return parse_value(value, kind)
    if kind == "integer" and isinstance(value, float) and abs(value) < EXACT_INTEGER_END and value.is_integer():
        return int(value)
    return convert_value(value, kind)
