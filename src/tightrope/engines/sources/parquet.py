"""Parquet: one file, a folder of parts with or without partitions, or all files that fit a pattern."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from tightrope.engines.ground.job import ROWS
from tightrope.engines.guard import guarded, load
from tightrope.engines.snapshot.room import Rows
from tightrope.engines.sources.objects import ARROW_TYPES, check_types
from tightrope.engines.sources.partitions import Part, fitting, in_folder, is_pattern
from tightrope.engines.sources.spellings import fitted
from tightrope.engines.sources.stamp import Stamped
from tightrope.engines.table import Table, check_names, streamed
from tightrope.errors import InputError, SchemaError

MARKS = (b"PAR1", b"PARE")
"""What Parquet begins with, plain and encrypted."""


def open_parquet(path: Path, types: Mapping[str, str]) -> Table:
    """A Parquet file, a folder of parts, or a pattern, as one table.

    Columns that only folders name (``year=2024``) are text, or of the kind that ``types`` declares: a type that was
    found in the names would be one that a single person's folder decides. Raises ``InputError`` for no parts,
    ``SchemaError`` where two differ in a name or a type: one of them would have to give way.
    """
    parts = fitting(path) if is_pattern(path) else in_folder(path) if path.is_dir() else (Part(path),)
    paths = [part.path for part in parts]
    stamped = Stamped.now(*paths)
    for found in paths:
        _refuse_others(found)
    kept, added = _schema(parts), parts[0].names
    check_names([*kept.names, *added])
    check_types(types, added, [*kept.names, *added])
    kinds = {name: types.get(name, "text") for name in added}
    arrow = load("pyarrow")
    whole = arrow.schema([*kept, *((name, arrow.type_for_alias(ARROW_TYPES[kind])) for name, kind in kinds.items())])

    def stream(names: Sequence[str]) -> Rows:
        schema = arrow.schema([whole.field(name) for name in names])
        from_files = tuple(paths) if set(names) <= set(kept.names) else ()
        return Rows(schema, lambda: stamped.unchanged(_batches(parts, kept, schema, kinds)), from_files, stamped.check)

    return streamed("parquet", whole, stream)


def _refuse_others(path: Path) -> None:
    """``InputError`` for a file that does not begin as Parquet does, nothing of it said."""
    with guarded("open the Parquet file", lambda: path.open("rb")) as file:
        begins = guarded("read the Parquet file", lambda: file.read(4))
    if begins not in MARKS:
        remedy = "its name says so, but not how it begins: write it again, or call it by what it is"
        raise InputError("source", path.name, "a Parquet file", remedy)


def _schema(parts: Sequence[Part]) -> Any:
    """The schema that all files have."""
    read = load("pyarrow.parquet").read_schema
    schemas = [guarded("read the schema of the Parquet file", partial(read, part.path)) for part in parts]
    for part, schema in zip(parts, schemas, strict=True):
        if not schema.equals(schemas[0], check_metadata=False):
            pair = (parts[0].path.name, part.path.name)
            raise SchemaError("source", pair, "parts with the same columns of the same types", "write them alike")
    return schemas[0].remove_metadata()


def _batches(parts: Sequence[Part], kept: Any, schema: Any, kinds: Mapping[str, str]) -> Iterator[Any]:
    opened = load("pyarrow.parquet").ParquetFile
    names = [name for name in schema.names if name not in kinds]
    read = names or kept.names[:1]  # rows to count
    for part in parts:
        values = {name: fitted(value, kinds[name]) for name, value in part.values}
        file = guarded("open the Parquet file", partial(opened, part.path, pre_buffer=False))
        try:
            batches = guarded("read the rows", partial(file.iter_batches, ROWS // 4, columns=list(read)))
            while (batch := guarded("read the rows", partial(next, batches, None))) is not None:
                yield _completed(batch, schema, values)
        finally:
            file.close()


def _completed(batch: Any, schema: Any, values: Mapping[str, Any]) -> Any:
    """The columns of the schema: the file's own, and those that its folders say."""
    arrow = load("pyarrow")
    columns = [
        arrow.repeat(arrow.scalar(values[field.name], field.type), len(batch))
        if field.name in values
        else batch.column(field.name)
        for field in schema
    ]
    return arrow.RecordBatch.from_arrays(columns, schema=schema)
