"""Parquet sources: a file, a folder of parts with or without partitions, or all files that match a pattern."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tightrope.errors import InputError, SchemaError
from tightrope.tables.engine_calls import engine_call, load_library
from tightrope.tables.files import MAX_BATCH_ROWS, StampedFiles, iterate_batches, numbered_parts
from tightrope.tables.materialize import RowSource
from tightrope.tables.sources.canonical_text import parse_value
from tightrope.tables.sources.frames import ARROW_TYPES, check_types
from tightrope.tables.sources.parquet_folders import (
    PARQUET_MARKS,
    ParquetPart,
    first_bytes,
    is_pattern,
    parts_by_pattern,
    parts_in_folder,
)
from tightrope.tables.table import Table, check_names, table_from_stream

if TYPE_CHECKING:
    import pyarrow as pa


def open_parquet(path: Path, types: Mapping[str, str]) -> Table:
    """Open a Parquet file, a folder of parts, or a pattern, as one table.

    A column that only folder names give (``year=2024``) is text, or of the kind that ``types`` declares: a type
    inferred from the names could depend on a single person's folder. If the files have such a column too, it has the
    files' type, and a value that differs from the folder's becomes missing.

    Raises ``InputError`` if there are no parts or a file is not Parquet, ``SchemaError`` if two parts differ in a
    column's name or type.
    """
    parts: tuple[ParquetPart, ...] = (ParquetPart(path),)
    markers = 0
    if is_pattern(path):
        parts = parts_by_pattern(path)
    elif path.is_dir():
        parts, markers = parts_in_folder(path)
    paths = [part.path for part in parts]
    stamped = StampedFiles.from_paths(path, *paths)
    # An error quotes nothing of a file that is no Parquet file.
    wrong = next((index for index, part in enumerate(paths) if first_bytes(part) not in PARQUET_MARKS), None)
    if wrong is not None:
        part = numbered_parts(wrong, of=len(paths))
        remedy = f"{part} is called so, but does not begin so: write it again, or call it by what it is"
        raise InputError("source", str(path), "a Parquet file", remedy)
    merged, same_schemas = _merge_schemas(path, parts)
    added = [name for name in parts[0].column_names if name not in merged.names]
    check_names([*merged.names, *added])
    # A folder name cannot give a list or struct. The error does not name the column, which may be a value of the data.
    is_nested = load_library("pyarrow").types.is_nested
    if any(is_nested(merged.field(name).type) for name in parts[0].column_names if name in merged.names):
        expected = "columns that folders name, too, to be no lists in the files"
        raise SchemaError("source", str(path), expected, "write the folders' columns into the folders alone")
    check_types(types, added, [*merged.names, *added])
    kinds = {name: types.get(name, "text") for name in added}
    arrow = load_library("pyarrow")
    full_schema = arrow.schema(
        [*merged, *((name, arrow.type_for_alias(ARROW_TYPES[kind])) for name, kind in kinds.items())]
    )

    def read_columns(names: Sequence[str]) -> RowSource:
        schema = arrow.schema([full_schema.field(name) for name in names])
        file_columns = set(merged.names) - set(parts[0].column_names)
        parquet_files = tuple(paths) if same_schemas and set(names) <= file_columns else ()
        return RowSource(
            schema,
            lambda: stamped.checked_batches(_read_batches(parts, merged, schema, kinds)),
            parquet_files,
            stamped.check_unchanged,
        )

    return replace(
        table_from_stream("parquet", full_schema, read_columns, lambda _: stamped.check_unchanged()),
        untyped_columns=tuple(name for name in added if name not in types),
        marker_count=markers,
    )


def _merge_schemas(given_path: Path, parts: Sequence[ParquetPart]) -> tuple[pa.Schema, bool]:
    """Return the schema of all files together, and whether each file has exactly this schema.

    A column whose values are all missing in a file has the type that it has in the other files: some writers infer the
    type from the values, and a file may hold a single person.
    """
    arrow = load_library("pyarrow")
    schemas = [_read_schema(part.path, numbered_parts(index, of=len(parts))) for index, part in enumerate(parts)]
    merged = schemas[0].remove_metadata()
    for schema in schemas[1:]:
        if schema.names == merged.names and not schema.equals(merged, check_metadata=False):
            pairs = zip(merged, schema, strict=True)
            merged = arrow.schema([field if arrow.types.is_null(known.type) else known for known, field in pairs])
    for index, schema in enumerate(schemas):
        if not _matches_schema(schema, merged):
            expected = (
                f"parts with the same columns of the same types, but {numbered_parts(0, index, of=len(parts))} differ"
            )
            raise SchemaError(
                "source", str(given_path), expected, "write them alike (parts are in the order of their paths)"
            )
    merged = merged.remove_metadata()
    return merged, all(schema.equals(merged, check_metadata=False) for schema in schemas)


def _read_schema(path: Path, part: str) -> pa.Schema:
    """Return the schema of one file; raises ``SchemaError`` about ``part`` for types that Arrow cannot represent."""

    def read_arrow_schema() -> pa.Schema | None:
        try:
            with _open_file(path) as file:
                return file.schema_arrow
        except load_library("pyarrow").ArrowNotImplementedError:
            return None

    schema = engine_call("read the schema of the Parquet file", read_arrow_schema)
    if schema is None:
        expected = (
            f"columns of types that Arrow can read, but {part} has others, such as integers of 128 bits of polars"
        )
        raise SchemaError("source", str(path), expected, "cast them to decimals or texts before the file is written")
    return schema


def has_arrow_types(path: Path) -> bool:
    """Return whether Arrow can represent all columns of a Parquet file; true, too, if it is no Parquet file."""
    if first_bytes(path) not in PARQUET_MARKS:
        return True
    try:
        _read_schema(path, numbered_parts(0, of=1))
    except SchemaError:
        return False
    return True


def _open_file(path: Path) -> Any:
    """Open a Parquet file; the instants of 96 bits that Spark writes are read in microseconds.

    In nanoseconds, Arrow's default, years outside 1678 to 2261 would become other years.
    """
    return load_library("pyarrow.parquet").ParquetFile(path, pre_buffer=False, coerce_int96_timestamp_unit="us")


def _matches_schema(schema: pa.Schema, merged: pa.Schema) -> bool:
    """Return whether a file has the merged columns, each of its merged type or null."""
    is_null = load_library("pyarrow").types.is_null
    return schema.equals(merged, check_metadata=False) or (
        schema.names == merged.names
        and all(
            field.equals(merged_field, check_metadata=False) or is_null(field.type)
            for field, merged_field in zip(schema, merged, strict=True)
        )
    )


def _read_batches(
    parts: Sequence[ParquetPart], merged: pa.Schema, schema: pa.Schema, kinds: Mapping[str, str]
) -> Iterator[pa.RecordBatch]:
    """Yield the batches of all parts in ``schema``; ``kinds`` are the kinds of columns that only folder names give."""
    names = [name for name in schema.names if name not in kinds]
    file_names = names or merged.names[:1]  # at least one column, so that rows can be counted
    for part in parts:
        values = {
            name: parse_value(value, kinds[name]) if name in kinds else _as_type(value, merged.field(name).type)
            for name, value in part.folder_values
        }
        file = engine_call("open the Parquet file", partial(_open_file, part.path))
        try:
            batches = engine_call(
                "read the rows", partial(file.iter_batches, MAX_BATCH_ROWS // 4, columns=list(file_names))
            )
            for batch in iterate_batches(batches):
                yield _complete_batch(batch, schema, values)
        finally:
            file.close()


def _complete_batch(batch: pa.RecordBatch, schema: pa.Schema, values: Mapping[str, Any]) -> pa.RecordBatch:
    """Return a batch with all columns of the schema: the file's, and those that only its folder names give."""
    arrow, compute = load_library("pyarrow"), load_library("pyarrow.compute")

    def keep_equal(column: pa.Array, folder_value: pa.Scalar | None) -> pa.Array:
        """Return the column with values that differ from the folder's value as missing."""
        if folder_value is None or not folder_value.is_valid:
            return arrow.nulls(len(column), column.type)
        decoded = column.dictionary_decode() if arrow.types.is_dictionary(column.type) else column
        is_equal = compute.fill_null(compute.equal(decoded, folder_value), False)
        return compute.if_else(is_equal, decoded, arrow.scalar(None, decoded.type)).cast(column.type)

    file_columns = set(batch.schema.names)
    columns = []
    for field in schema:
        if field.name not in file_columns:
            columns.append(arrow.repeat(arrow.scalar(values[field.name], field.type), len(batch)))
            continue
        # A column in which all values are missing may have no type; it gets its type in other files.
        column = batch.column(field.name)
        if arrow.types.is_null(column.type):
            column = arrow.nulls(len(column), field.type)
        if field.name in values:
            # A value that differs from the folder's becomes missing, so that no row affects another one.
            column = engine_call("compare a column with its folder", partial(keep_equal, column, values[field.name]))
        columns.append(column)
    return arrow.RecordBatch.from_arrays(columns, schema=schema)


def _as_type(value: str | None, kind: pa.DataType) -> pa.Scalar | None:
    """Return a folder's value in the type of the files; None if it does not fit."""
    arrow, text = load_library("pyarrow"), parse_value(value, "text")
    while arrow.types.is_dictionary(kind):
        kind = kind.value_type
    try:
        return None if text is None else arrow.scalar(text, arrow.large_string()).cast(kind)
    except (arrow.ArrowInvalid, arrow.ArrowNotImplementedError):
        return None
