"""Parquet: one file, a folder of parts with or without partitions, or all files that fit a pattern."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from tightrope.errors import InputError, SchemaError
from tightrope.tables.engine_calls import engine_call, load_library
from tightrope.tables.files import ROWS, iterate_batches
from tightrope.tables.materialize import RowSource
from tightrope.tables.sources.canonical_text import parse_value
from tightrope.tables.sources.frames import ARROW_TYPES, check_types
from tightrope.tables.sources.parquet_folders import (
    MARKS,
    ParquetPart,
    first_bytes,
    is_pattern,
    parts_by_pattern,
    parts_in_folder,
)
from tightrope.tables.sources.stamp import StampedFiles, numbered_parts
from tightrope.tables.table import Table, check_names, table_from_stream


def open_parquet(path: Path, types: Mapping[str, str]) -> Table:
    """A Parquet file, a folder of parts, or a pattern, as one table.

    Columns that only folders name (``year=2024``) are text, or of the kind that ``types`` declares: a type that was
    found in the names would be one that a single person's folder decides. Where the files hold such a column, too, it
    has the files' type, and a row that says otherwise than its folder is missing there. Raises ``InputError`` for no
    parts and for files that are none, ``SchemaError`` where two differ in a name or a type: one of them would have to
    give way.
    """
    parts: tuple[ParquetPart, ...] = (ParquetPart(path),)
    markers = 0
    if is_pattern(path):
        parts = parts_by_pattern(path)
    elif path.is_dir():
        parts, markers = parts_in_folder(path)
    paths = [part.path for part in parts]
    stamped = StampedFiles.from_paths(path, *paths)
    _check_file_starts(path, paths)
    kept, alike = _merge_schemas(path, parts)
    added = [name for name in parts[0].column_names if name not in kept.names]
    check_names([*kept.names, *added])
    # Lists and structures of a file are no value that a folder can have; what they are called is not said.
    nested = load_library("pyarrow").types.is_nested
    if any(nested(kept.field(name).type) for name in parts[0].column_names if name in kept.names):
        expected = "columns that folders name, too, to be no lists in the files"
        raise SchemaError("source", str(path), expected, "write the folders' columns into the folders alone")
    check_types(types, added, [*kept.names, *added])
    kinds = {name: types.get(name, "text") for name in added}
    arrow = load_library("pyarrow")
    whole = arrow.schema([*kept, *((name, arrow.type_for_alias(ARROW_TYPES[kind])) for name, kind in kinds.items())])

    def read_columns(names: Sequence[str]) -> RowSource:
        schema = arrow.schema([whole.field(name) for name in names])
        own = set(kept.names) - set(parts[0].column_names)
        from_files = tuple(paths) if alike and set(names) <= own else ()
        return RowSource(
            schema,
            lambda: stamped.checked_batches(_read_batches(parts, kept, schema, kinds)),
            from_files,
            stamped.check_unchanged,
        )

    return replace(
        table_from_stream("parquet", whole, read_columns, lambda _: stamped.check_unchanged()), marker_count=markers
    )


def _check_file_starts(asked: Path, paths: Sequence[Path]) -> None:
    """``InputError`` for a file that does not begin as Parquet does, nothing of it said."""
    for place, path in enumerate(paths):
        if first_bytes(path) not in MARKS:
            called = numbered_parts(place, of=len(paths))
            remedy = f"{called} is called so, but does not begin so: write it again, or call it by what it is"
            raise InputError("source", str(asked), "a Parquet file", remedy)


def _merge_schemas(asked: Path, parts: Sequence[ParquetPart]) -> tuple[Any, bool]:
    """Return the schema of all files together, and whether each file has just that one.

    A column in which all values of a file are missing has the type that the other files give it: writers that look for
    the type of a column in its values find none there, and one person may be alone in a file.
    """
    arrow, read = load_library("pyarrow"), load_library("pyarrow.parquet").read_schema
    schemas = [engine_call("read the schema of the Parquet file", partial(read, part.path)) for part in parts]
    merged = schemas[0].remove_metadata()
    for schema in schemas[1:]:
        if schema.names == merged.names and not schema.equals(merged, check_metadata=False):
            pairs = zip(merged, schema, strict=True)
            merged = arrow.schema([other if arrow.types.is_null(one.type) else one for one, other in pairs])
    for place, schema in enumerate(schemas):
        if not _matches_schema(schema, merged):
            expected = (
                f"parts with the same columns of the same types, but {numbered_parts(0, place, of=len(parts))} differ"
            )
            raise SchemaError(
                "source", str(asked), expected, "write them alike (parts are in the order of their paths)"
            )
    merged = merged.remove_metadata()
    return merged, all(schema.equals(merged, check_metadata=False) for schema in schemas)


def _matches_schema(schema: Any, merged: Any) -> bool:
    """Return whether a file has the merged columns, each of its merged type or null."""
    is_null = load_library("pyarrow").types.is_null
    return schema.equals(merged, check_metadata=False) or (
        schema.names == merged.names
        and all(
            one.equals(other, check_metadata=False) or is_null(one.type)
            for one, other in zip(schema, merged, strict=True)
        )
    )


def _read_batches(parts: Sequence[ParquetPart], kept: Any, schema: Any, kinds: Mapping[str, str]) -> Iterator[Any]:
    opened = load_library("pyarrow.parquet").ParquetFile
    names = [name for name in schema.names if name not in kinds]
    read = names or kept.names[:1]  # rows to count
    for part in parts:
        values = {
            name: parse_value(value, kinds[name]) if name in kinds else _as_type(value, kept.field(name).type)
            for name, value in part.folder_values
        }
        file = engine_call("open the Parquet file", partial(opened, part.path, pre_buffer=False))
        try:
            batches = engine_call("read the rows", partial(file.iter_batches, ROWS // 4, columns=list(read)))
            for batch in iterate_batches(batches):
                yield _complete_batch(batch, schema, values)
        finally:
            file.close()


def _complete_batch(batch: Any, schema: Any, values: Mapping[str, Any]) -> Any:
    """The columns of the schema: the file's own, and those that its folders say."""
    arrow = load_library("pyarrow")
    own = set(batch.schema.names)
    columns = []
    for field in schema:
        if field.name not in own:
            columns.append(arrow.repeat(arrow.scalar(values[field.name], field.type), len(batch)))
            continue
        # A column of a file; one without a type, in which all is missing, in the type that other files give it.
        column = batch.column(field.name)
        if arrow.types.is_null(column.type):
            column = arrow.nulls(len(column), field.type)
        if field.name in values:
            # Missing in rows that say otherwise than the folder: no row changes or stops another.
            column = engine_call("compare a column with its folder", partial(_keep_equal, column, values[field.name]))
        columns.append(column)
    return arrow.RecordBatch.from_arrays(columns, schema=schema)


def _as_type(value: str | None, kind: Any) -> Any:
    """Return a folder's value in the type of the files; None if it does not fit."""
    arrow, plain = load_library("pyarrow"), parse_value(value, "text")
    while arrow.types.is_dictionary(kind):
        kind = kind.value_type
    try:
        return None if plain is None else arrow.scalar(plain, arrow.large_string()).cast(kind)
    except (arrow.ArrowInvalid, arrow.ArrowNotImplementedError):
        return None


def _keep_equal(column: Any, said: Any) -> Any:
    arrow, compute = load_library("pyarrow"), load_library("pyarrow.compute")
    if said is None or not said.is_valid:
        return arrow.nulls(len(column), column.type)
    plain = column.dictionary_decode() if arrow.types.is_dictionary(column.type) else column
    agreed = compute.fill_null(compute.equal(plain, said), False)
    return compute.if_else(agreed, plain, arrow.scalar(None, plain.type)).cast(column.type)
