"""CSV files: every field is read as text, then cast to its column's declared kind; what does not fit is missing.

Arrow's reader splits the fields, but our own check of quotes and line ends comes first: alone, Arrow accepts a stray
quote, text after a closing quote, a single carriage return as a line end, and a quote that is never closed, so that one
person's line could change which records there are. Where it does refuse a line, its message quotes the line.
"""

from __future__ import annotations

import csv
import gzip
import io
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from msgspec import Struct
from msgspec.structs import replace as replace_fields
from numpy.typing import NDArray

from tightrope.errors import EngineError, InputError, quoted_names, suggest_nearest
from tightrope.tables.backends.backend import compile_sql
from tightrope.tables.backends.duckdb import open_connection
from tightrope.tables.engine_calls import engine_call, load_library
from tightrope.tables.files import StampedFiles
from tightrope.tables.materialize import RowSource, drop_invalid_utf8
from tightrope.tables.sources.canonical_text import cast_field, select_matching_texts
from tightrope.tables.sources.frames import ARROW_TYPES, check_types
from tightrope.tables.sources.parquet_folders import first_bytes
from tightrope.tables.table import Table, check_names, table_from_stream

if TYPE_CHECKING:
    import pyarrow as pa

CSV_BLOCK = 1 << 22
MAX_RECORD_BYTES = 1 << 26
NEWLINE, CARRIAGE_RETURN = 10, 13
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
GZIP_MARK = b"\x1f\x8b"
UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
SUFFIXES = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
INDEX_COLUMN = "index"
FIELDS_VIEW = "fields"
ENCODINGS = ("utf-8", "latin-1", "windows-1252")
_COMMON_DELIMITERS = (",", ";", "\t", "|")
_FORMAT_PATTERN = re.compile(r"(?:[^%]|%(?:-?[mdHMSyIj]|[YfbBpz%]))*")
"""Formats of dates and timestamps whose directives Python and DuckDB interpret alike."""


class Dialect(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The form of a CSV file. It is declared, because a guess from the file would depend on private values.

    One line is one record. A field is plain, or in quotes from its first to its last character with quotes doubled.

    - ``delimiter``: by default a comma, in ``.tsv`` files a tab.
    - ``header``: True if the first line names the columns, otherwise the names.
    - ``quote``: the quote character; with ``""`` quotes have no special meaning.
    - ``decimal``: the decimal mark of numbers; there is no mark between thousands.
    - ``date_format`` and ``timestamp_format``: such as ``%d.%m.%Y``; by default days are written as 2024-12-31.
    - ``newlines``: True if a field in quotes may contain line ends. A stray quote then swallows all lines up to the
      next quote, so declare it only if the file needs it.
    - ``null_values``: a text, or several, that stand for a missing value, such as ``NA``, in quotes or not. An empty
      field without quotes is always missing.

    >>> Dialect.from_entries({"delimiter": ";", "decimal": ","}).delimiter
    ';'
    """

    delimiter: str | None = None
    quote: str = '"'
    decimal: str = "."
    encoding: str = "utf-8"
    header: bool | tuple[str, ...] = True
    date_format: str | None = None
    timestamp_format: str | None = None
    newlines: bool = False
    null_values: str | tuple[str, ...] = ()

    @property
    def null_texts(self) -> tuple[str, ...]:
        """The texts that stand for a missing value."""
        return (self.null_values,) if isinstance(self.null_values, str) else self.null_values

    @property
    def field_separator(self) -> str:
        """The delimiter; a comma if none was declared."""
        return "," if self.delimiter is None else self.delimiter

    @classmethod
    def from_entries(cls, entries: Mapping[str, object] | Dialect) -> Dialect:
        """Build from declared entries; ``InputError`` for an unknown name or an invalid value."""
        if isinstance(entries, Dialect):
            return entries
        fields = cls.__struct_fields__
        for name in entries:
            if name not in fields:
                raise InputError("dialect", name, f"one of {quoted_names(fields)}", suggest_nearest(name, fields))
        lists = {
            name: tuple(value)
            for name, value in entries.items()
            if name in ("header", "null_values") and isinstance(value, Sequence) and not isinstance(value, str)
        }
        try:
            return cls(**{**entries, **lists})  # type: ignore[arg-type]
        except InputError as error:
            raise InputError.from_error(error, f"dialect {error.name}") from None

    def __post_init__(self) -> None:
        is_separator = self.delimiter is None or _is_mark(self.delimiter)
        _check_entry("delimiter", self.delimiter, is_separator, "one letter such as ',', ';' or '\\t'")
        _check_entry("quote", self.quote, self.quote == "" or _is_mark(self.quote), "one letter such as '\"', or ''")
        _check_entry("quote", self.quote, self.quote != self.field_separator, "another letter than the delimiter")
        _check_entry("decimal", self.decimal, self.decimal in (".", ","), "'.' or ','")
        _check_entry("encoding", self.encoding, self.encoding in ENCODINGS, f"one of {quoted_names(ENCODINGS)}")
        has_names = isinstance(self.header, tuple) and len(self.header) > 0
        _check_entry("header", self.header, self.header is True or has_names, "True, or the names of the columns")
        _check_entry("newlines", self.newlines, isinstance(self.newlines, bool), "True or False")
        are_texts = isinstance(self.null_texts, tuple) and all(isinstance(text, str) for text in self.null_texts)
        _check_entry("null_values", self.null_values, are_texts, "a text such as 'NA', or a list of texts")
        for name in ("date_format", "timestamp_format"):
            declared_format = getattr(self, name)
            fits = declared_format is None or (
                isinstance(declared_format, str)
                and "%" in declared_format
                and _FORMAT_PATTERN.fullmatch(declared_format) is not None
            )
            _check_entry(name, declared_format, fits, "a format such as '%d.%m.%Y'")


def _check_entry(name: str, value: object, fits: bool, expected: str) -> None:
    if not fits:
        raise InputError(name, value, expected)


def _is_mark(mark: object) -> bool:
    return isinstance(mark, str) and len(mark) == 1 and mark.isascii() and mark not in "\r\n\0" and not mark.isalnum()


# Lines are checked before they are parsed, because CSV readers interpret stray quotes differently. A file is rejected
# unless all readers must agree: a quote opens a field as its first character, closes it as its last one, and is doubled
# inside; every record has as many fields as the header; a field contains line ends only if that is declared.


@dataclass(frozen=True, slots=True)
class CsvLines:
    """Complete records as bytes, and their number.

    The bytes are UTF-8, except where the file has bytes that are not valid in its encoding.
    """

    text: bytes
    count: int


def open_binary_file(path: Path) -> BinaryIO:
    """Open the file, and decompress it if its name ends in ``.gz``."""
    is_compressed = path.suffix.lower() == ".gz"
    if is_compressed and first_bytes(path, len(GZIP_MARK)) != GZIP_MARK:
        text = f"{str(path)!r} is called .gz, but is not compressed by gzip; call it by what it is"
        raise InputError.from_text("source", text)
    open_file: Callable[..., Any] = gzip.open if is_compressed else open
    file: BinaryIO = engine_call("open the file", lambda: open_file(path, "rb"))
    return file


@dataclass(frozen=True, slots=True)
class CsvFile:
    """A CSV file and its form."""

    path: Path
    dialect: Dialect

    def read_header(self) -> bytes:
        """Return the first record, without its end; the rest of the file has no effect on the result."""
        with open_binary_file(self.path) as file:
            text = b""
            for block in _utf8_blocks(file, self.dialect.encoding):
                text += block
                if end := self._first_record_end(text):
                    return text[:end].removesuffix(b"\n").removesuffix(b"\r")
                if len(text) > MAX_RECORD_BYTES:
                    break
        return text

    def column_names(self) -> tuple[str, ...]:
        """Return the declared names, or those in the first line; no other line is read."""
        header, dialect, separator = self.dialect.header, self.dialect, self.dialect.field_separator
        if isinstance(header, tuple):
            check_names(header)
            return header
        quoting: Any = {"quotechar": dialect.quote} if dialect.quote else {"quoting": csv.QUOTE_NONE}
        line, names = self.read_header(), None
        self._check_header(line)
        try:
            reader = csv.reader(io.StringIO(line.decode(), newline=""), delimiter=separator, strict=True, **quoting)
            names = tuple(next(reader, ()))
        except csv.Error:
            names = None
        if names is None:
            remedy = "a quote must open a name as its first character and close it as its last one"
            raise InputError.from_text("source", f"the header of {str(self.path)!r} has a stray quote; {remedy}")
        # A single column whose name contains another common delimiter: the declared one is probably wrong.
        for mark in _COMMON_DELIMITERS:
            if len(names) == 1 and mark in names[0]:
                escaped = "\\t" if mark == "\t" else mark
                remedy = f"say dialect={{'delimiter': {mark!r}}}, or --dialect 'delimiter={escaped}' on a command line"
                text = f"the header {names[0]!r} seems to have another delimiter than {separator!r}; {remedy}"
                raise InputError.from_text("dialect", text)
        all_names = _name_index_column(names)
        check_names(all_names)
        return all_names

    def read_lines(self, fields: int) -> Iterator[CsvLines]:
        """Yield all records without the header, in blocks.

        Raises ``InputError``, which quotes nothing of the file, if a record does not have the declared form.
        """
        has_header = self.dialect.header is True
        for text in self._record_blocks(fields):
            records = text[self._first_record_end(text) or len(text) :] if has_header else text
            has_header = False
            if records:
                yield CsvLines(records, self._count_records(records, fields))

    def read_texts(self, lines: CsvLines, names: Sequence[str], chosen: Sequence[str]) -> pa.RecordBatch:
        """Return the chosen columns as an Arrow batch of texts; an empty field without quotes is NULL."""
        arrow, reader = load_library("pyarrow"), load_library("pyarrow.csv")
        dialect = self.dialect
        read = reader.ReadOptions(column_names=list(names), block_size=len(lines.text) + 1, use_threads=False)
        parse = reader.ParseOptions(
            delimiter=dialect.field_separator,
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
        table = engine_call("read the CSV file", lambda: reader.read_csv(buffer, read, parse, convert))
        if len(table) != lines.count:
            raise EngineError("the reader of CSV found other records than there are; write the file as Parquet")
        texts = [drop_invalid_utf8(column.combine_chunks().view("string")) for column in table.columns]
        return arrow.RecordBatch.from_arrays(texts, names=list(chosen))

    def cast_batches(
        self, batches: Iterator[pa.RecordBatch], schema: pa.Schema, kinds: Mapping[str, str]
    ) -> Iterator[pa.RecordBatch]:
        """Yield the batches of texts cast to their declared types, in a separate connection."""
        backend = engine_call("open a connection", open_connection)
        field_names = [f"c{index}" for index in range(len(kinds))]
        arrow = load_library("pyarrow")
        try:
            empty = arrow.table({name: arrow.array([], "string") for name in field_names})
            engine_call("name the fields", lambda: backend.con.register(FIELDS_VIEW, empty))

            def compile_casts() -> str:
                fields = backend.table(FIELDS_VIEW)
                casts = {
                    f"t{index}": cast_field(fields[f"c{index}"], kind, self.dialect)
                    for index, kind in enumerate(kinds.values())
                }
                return compile_sql(backend, fields.select(**casts))

            query = engine_call("prepare the casts", compile_casts)
            for batch in batches:
                columns = zip(batch.columns, kinds.values(), strict=True)
                texts = [select_matching_texts(column, kind, self.dialect) for column, kind in columns]
                renamed = arrow.Table.from_arrays(texts, names=field_names)
                engine_call("name the fields", partial(backend.con.register, FIELDS_VIEW, renamed))
                table = engine_call("cast the fields", lambda: backend.con.sql(query).to_arrow_table())
                yield from table.rename_columns(schema.names).cast(schema).to_batches()
        finally:
            engine_call("close the connection", backend.disconnect)

    def _check_header(self, line: bytes) -> None:
        """Raise ``InputError``, which quotes nothing of the file, if the header cannot be read for a known reason."""
        encoding, quote = self.dialect.encoding, self.dialect.quote.encode()
        outside_quotes = b"".join(line.split(quote)[::2]) if quote else line
        try:
            is_text = bool(line.decode()) or not line
        except UnicodeDecodeError:
            is_text = False
        if line.startswith(UTF16_MARKS) or b"\0" in line:
            problem = "is written in UTF-16, or is no text; save it as CSV in UTF-8, or call it .csv.gz if it is so"
        elif not is_text:
            others = quoted_names(tuple(name for name in ENCODINGS if name != encoding))
            problem = f"has a header that is not {encoding}; declare dialect={{'encoding': ...}}, one of {others}"
        elif b"\r" in outside_quotes:
            problem = "has lines that end in a carriage return alone; write it with newlines as line ends"
        elif quote and line.count(quote) % 2:
            problem = (
                "has a quote in its header that is not closed in the first line; if a column's name has a line end, "
                "declare dialect={'newlines': True}"
            )
        else:
            return
        raise InputError.from_text("source", f"{str(self.path)!r} {problem}")

    def _first_record_end(self, text: bytes) -> int:
        """Return the position after the first line end outside quotes, or 0."""
        if not self.dialect.newlines:
            return text.find(b"\n") + 1
        data = np.frombuffer(text, np.uint8)
        ends = np.flatnonzero(data == NEWLINE)
        outside = ends[self._inside_quotes(self._quote_positions(data), ends) == 0]
        return int(outside[0]) + 1 if outside.size else 0

    def _record_blocks(self, fields: int) -> Iterator[bytes]:
        """Yield the file in blocks of complete records, without a blank line at its end.

        If there is only one column, a blank line is a record without a value, also at the end: were it none, removing
        the record after it would remove it, too.
        """
        if fields == 1:
            yield from self._line_blocks()
            return
        previous = b""
        for block in self._line_blocks():
            if previous:
                yield previous
            previous = block
        if previous.endswith((b"\n\n", b"\n\r\n")) or previous in (b"\n", b"\r\n"):
            previous = previous.removesuffix(b"\n").removesuffix(b"\r")
        if previous:
            yield previous

    def _line_blocks(self) -> Iterator[bytes]:
        """Yield the file in blocks of complete records and blank lines."""
        with open_binary_file(self.path) as file:
            pending = b""
            for block in _utf8_blocks(file, self.dialect.encoding):
                pending += block
                end = self._last_record_end(pending)
                if end:
                    yield pending[:end]
                    pending = pending[end:]
                elif len(pending) > MAX_RECORD_BYTES:
                    raise self._malformed_error()
            if pending:
                yield pending

    def _last_record_end(self, text: bytes) -> int:
        """Return the position after the last line end outside quotes, or 0."""
        if not self.dialect.newlines:
            return text.rfind(b"\n") + 1
        data = np.frombuffer(text, np.uint8)
        ends = np.flatnonzero(data == NEWLINE)
        outside = ends[self._inside_quotes(self._quote_positions(data), ends) == 0]
        return int(outside[-1]) + 1 if outside.size else 0

    def _count_records(self, text: bytes, fields: int) -> int:
        """Return the number of records; raises ``InputError`` if one does not have the declared form."""
        data = np.frombuffer(text if text.endswith(b"\n") else text + b"\n", np.uint8)
        quotes = self._quote_positions(data)
        marks = np.flatnonzero((data == ord(self.dialect.field_separator)) | (data == NEWLINE))
        inside = self._inside_quotes(quotes, marks) == 1
        well_quoted = (
            quotes.size % 2 == 0
            and self._quotes_in_place(data, quotes)
            and self._returns_in_place(data, quotes)
            and (self.dialect.newlines or not np.any(data[marks[inside]] == NEWLINE))
        )
        ends = data[marks[~inside]] == NEWLINE
        is_valid = False
        if well_quoted and ends.size % fields == 0:
            records = ends.reshape(-1, fields)  # the marks of each record are delimiters and then a line end
            is_valid = bool(np.all(records[:, -1]) and not np.any(records[:, :-1]))
        if not is_valid:
            raise self._malformed_error()
        return int(ends.size // fields)

    def _quote_positions(self, data: NDArray[np.uint8]) -> NDArray[np.intp]:
        quote = self.dialect.quote
        return np.flatnonzero(data == ord(quote)) if quote else np.empty(0, np.intp)

    @staticmethod
    def _inside_quotes(quotes: NDArray[np.intp], positions: NDArray[np.intp]) -> NDArray[np.intp]:
        """Return 1 for positions inside quotes, 0 for others."""
        return np.searchsorted(quotes, positions) % 2

    def _quotes_in_place(self, data: NDArray[np.uint8], quotes: NDArray[np.intp]) -> bool:
        """Return whether each quote opens a field at its start or closes it at its end; a doubled quote does both."""
        quote, delimiter = ord(self.dialect.quote or "\0"), ord(self.dialect.field_separator)
        opening, closing = quotes[::2], quotes[1::2]
        before = data[opening[opening > 0] - 1]
        after = data[closing + 1]  # the block ends with a line end
        return bool(
            np.all(np.isin(before, (delimiter, NEWLINE, quote)))
            and np.all(np.isin(after, (delimiter, NEWLINE, CARRIAGE_RETURN, quote)))
        )

    def _returns_in_place(self, data: NDArray[np.uint8], quotes: NDArray[np.intp]) -> bool:
        """Return whether each carriage return precedes a newline, or is in quotes and line ends are allowed there."""
        returns = np.flatnonzero(data[:-1] == CARRIAGE_RETURN)
        single = returns[data[returns + 1] != NEWLINE]
        return single.size == 0 or (self.dialect.newlines and bool(np.all(self._inside_quotes(quotes, single))))

    def _malformed_error(self) -> InputError:
        text = (
            f"in {str(self.path)!r} a line does not have the declared form (its content is not shown): each line must "
            "be one record with as many fields as there are columns, each plain or in quotes from its first to its "
            "last character, and end in a newline, not in a carriage return alone; mend the line, or declare "
            "dialect={...} as the file is written"
        )
        return InputError.from_text("source", text)


def _utf8_blocks(file: BinaryIO, encoding: str) -> Iterator[bytes]:
    """Yield the bytes of the file in UTF-8, without a byte order mark."""
    convert = _UTF8_CONVERTERS[encoding]
    block = engine_call("read the CSV file", lambda: file.read(CSV_BLOCK))
    if block.startswith(BYTE_ORDER_MARK):
        if encoding != "utf-8":
            text = f"the file begins with the mark of UTF-8, but {encoding!r} is declared; leave the encoding out"
            raise InputError.from_text("dialect", text)
        block = block.removeprefix(BYTE_ORDER_MARK)
    while block:
        yield convert(block)
        block = engine_call("read the CSV file", lambda: file.read(CSV_BLOCK))


_UTF8_CONVERTERS: dict[str, Callable[[bytes], bytes]] = {
    "utf-8": lambda block: block,
    "latin-1": lambda block: block.decode("latin-1").encode("utf-8"),
    # Bytes that are not valid in the encoding stay unchanged and are invalid UTF-8, so that their fields are missing.
    "windows-1252": lambda block: block.decode("windows-1252", "surrogateescape").encode("utf-8", "surrogateescape"),
}


def is_csv_path(path: str | Path) -> bool:
    """Return whether a path is one of a CSV file, by its name.

    >>> is_csv_path("visits.CSV.gz"), is_csv_path("visits.parquet")
    (True, False)
    """
    return str(path).lower().endswith(SUFFIXES)


def open_csv(path: Path, types: Mapping[str, str], dialect: Dialect) -> Table:
    """Open a CSV file, by default in UTF-8 with commas, double quotes and a header line; see ``Dialect``.

    Files whose names end in ``.tsv`` have tabs, and those that end in ``.gz`` are decompressed.

    Types are declared, never guessed from the data; a column without a type is text. A field that does not have the
    form of its kind (see ``canonical_text``) is NULL: "1.0" is an integer, "1.7" is not, and booleans are
    true/false/1/0. Spaces around values other than text are ignored. An empty field without quotes is NULL for every
    type, ``""`` is the empty text. A record that does not have the declared form raises ``InputError`` when the rows
    are read.
    """
    if dialect.delimiter is None and ".tsv" in (suffix.lower() for suffix in path.suffixes[-2:]):
        dialect = replace_fields(dialect, delimiter="\t")
    file, stamped = CsvFile(path, dialect), StampedFiles.from_paths(path)
    names = file.column_names()
    check_types(types, names, names)
    arrow = load_library("pyarrow")
    kinds = {name: types.get(name, "text") for name in names}
    schema = arrow.schema([arrow.field(name, arrow.type_for_alias(ARROW_TYPES[kind])) for name, kind in kinds.items()])

    def read_columns(chosen: Sequence[str]) -> RowSource:
        chosen_schema = arrow.schema([schema.field(name) for name in chosen])
        chosen_kinds = {name: kinds[name] for name in chosen}

        def typed_batches() -> Iterator[pa.RecordBatch]:
            texts = (file.read_texts(lines, names, chosen) for lines in file.read_lines(len(names)))
            return file.cast_batches(stamped.checked_batches(texts), chosen_schema, chosen_kinds)

        return RowSource(chosen_schema, typed_batches)

    table = table_from_stream("csv", schema, read_columns, lambda _: stamped.check_unchanged())
    return replace(table, untyped_columns=tuple(name for name in names if name not in types))


def _name_index_column(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names with a nameless first column, the index of a frame written by pandas or R, called "index".

    >>> _name_index_column(("", "city")), _name_index_column(("", "index"))
    (('index', 'city'), ('', 'index'))
    """
    taken = INDEX_COLUMN in (name.casefold() for name in names)
    return (INDEX_COLUMN, *names[1:]) if len(names) > 1 and not names[0] and not taken else names
