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
from tightrope.engines.sources.stamp import Stamped, numbered
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
    stamped = Stamped.now(path, *paths)
    _refuse_others(path, paths)
    kept, alike = _schema(path, parts)
    added = parts[0].names
    check_names([*kept.names, *added])
    check_types(types, added, [*kept.names, *added])
    kinds = {name: types.get(name, "text") for name in added}
    arrow = load("pyarrow")
    whole = arrow.schema([*kept, *((name, arrow.type_for_alias(ARROW_TYPES[kind])) for name, kind in kinds.items())])

    def stream(names: Sequence[str]) -> Rows:
        schema = arrow.schema([whole.field(name) for name in names])
        from_files = tuple(paths) if alike and set(names) <= set(kept.names) else ()
        return Rows(schema, lambda: stamped.unchanged(_batches(parts, kept, schema, kinds)), from_files, stamped.check)

    return streamed("parquet", whole, stream, lambda _: stamped.check())


def _refuse_others(asked: Path, paths: Sequence[Path]) -> None:
    """``InputError`` for a file that does not begin as Parquet does, nothing of it said."""
    for place, path in enumerate(paths):
        if _beginning(path) not in MARKS:
            called = numbered(place, of=len(paths))
            remedy = f"{called} is called so, but does not begin so: write it again, or call it by what it is"
            raise InputError("source", str(asked), "a Parquet file", remedy)


def _beginning(path: Path) -> bytes:
    with guarded("open the Parquet file", lambda: path.open("rb")) as file:
        return guarded("read the Parquet file", lambda: file.read(len(MARKS[0])))


def _schema(asked: Path, parts: Sequence[Part]) -> tuple[Any, bool]:
    """Return the schema of all files together, and whether each file has just that one.

    A column in which all values of a file are missing has the type that the other files give it: writers that look for
    the type of a column in its values find none there, and one person may be alone in a file.
    """
    arrow, read = load("pyarrow"), load("pyarrow.parquet").read_schema
    schemas = [guarded("read the schema of the Parquet file", partial(read, part.path)) for part in parts]
    merged = schemas[0].remove_metadata()
    for schema in schemas[1:]:
        if schema.names == merged.names and not schema.equals(merged, check_metadata=False):
            pairs = zip(merged, schema, strict=True)
            merged = arrow.schema([other if arrow.types.is_null(one.type) else one for one, other in pairs])
    for place, schema in enumerate(schemas):
        if not _fits(schema, merged):
            expected = f"parts with the same columns of the same types, but {numbered(0, place, of=len(parts))} differ"
            raise SchemaError(
                "source", str(asked), expected, "write them alike (parts are in the order of their paths)"
            )
    merged = merged.remove_metadata()
    return merged, all(schema.equals(merged, check_metadata=False) for schema in schemas)


def _fits(schema: Any, merged: Any) -> bool:
    """Whether a file has the columns of all together, each of their type or of none."""
    is_null = load("pyarrow").types.is_null
    return schema.equals(merged, check_metadata=False) or (
        schema.names == merged.names
        and all(
            one.equals(other, check_metadata=False) or is_null(one.type)
            for one, other in zip(schema, merged, strict=True)
        )
    )


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
        else _typed(batch.column(field.name), field.type)
        for field in schema
    ]
    return arrow.RecordBatch.from_arrays(columns, schema=schema)


def _typed(column: Any, kind: Any) -> Any:
    """A column of a file; one without a type, in which all is missing, in the type that other files give it."""
    arrow = load("pyarrow")
    return arrow.nulls(len(column), kind) if arrow.types.is_null(column.type) else column
