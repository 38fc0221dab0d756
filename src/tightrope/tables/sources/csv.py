"""CSV files: every field is read as text, then cast to its column's declared kind; what does not fit is missing."""

from __future__ import annotations

import csv
import datetime
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tightrope.errors import EngineError, InputError, quoted_names, suggest_nearest
from tightrope.tables.backends.backend import compile_sql
from tightrope.tables.backends.duckdb import open_connection
from tightrope.tables.engine_calls import engine_call, load_library
from tightrope.tables.materialize import RowSource, drop_invalid_utf8
from tightrope.tables.sources import canonical_text
from tightrope.tables.sources.frames import ARROW_TYPES, check_types
from tightrope.tables.sources.stamp import StampedFiles
from tightrope.tables.table import Table, check_names, table_from_stream

if TYPE_CHECKING:
    import ibis.expr.types as ir

# How a CSV file is written: declared, never sniffed, because a guess would depend on private values.

ENCODINGS = ("utf-8", "latin-1", "windows-1252")
_DIRECTIVES = re.compile(r"(?:[^%]|%(?:-?[mdHMSyIj]|[YfbBpz%]))*")


class Dialect(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One line is one record; a field is plain, or in quotes from its first to its last character, quotes doubled.

    ``header`` is True where the first line names the columns, or the names where no line does. ``quote=""``: quotes
    mean nothing. ``decimal`` is the mark in numbers; no mark stands between thousands. ``date_format`` and
    ``timestamp_format`` are like ``%d.%m.%Y``; left out, days are 2024-12-31. With ``newlines`` a field in quotes may
    go over several lines: a stray quote then swallows lines up to the next one, so say it only of a file that needs it.

    >>> Dialect.from_entries({"delimiter": ";", "decimal": ","}).delimiter
    ';'
    """

    delimiter: str = ","
    quote: str = '"'
    decimal: str = "."
    encoding: str = "utf-8"
    header: bool | tuple[str, ...] = True
    date_format: str | None = None
    timestamp_format: str | None = None
    newlines: bool = False

    @classmethod
    def from_entries(cls, entries: Mapping[str, object] | Dialect) -> Dialect:
        """From declared entries; ``InputError`` for one that is unknown or cannot be."""
        if isinstance(entries, Dialect):
            return entries
        known = cls.__struct_fields__
        for name in entries:
            if name not in known:
                raise InputError("dialect", name, f"one of {quoted_names(known)}", suggest_nearest(name, known))
        header = entries.get("header", True)
        names = tuple(header) if isinstance(header, Sequence) and not isinstance(header, str) else header
        try:
            return cls(**{**entries, "header": names})  # type: ignore[arg-type]
        except InputError as error:
            raise InputError.from_error(error, f"dialect {error.name}") from None

    def __post_init__(self) -> None:
        _check_entry("delimiter", self.delimiter, _is_mark(self.delimiter), "one letter such as ',', ';' or '\\t'")
        _check_entry("quote", self.quote, self.quote == "" or _is_mark(self.quote), "one letter such as '\"', or ''")
        _check_entry("quote", self.quote, self.quote != self.delimiter, "another letter than the delimiter")
        _check_entry("decimal", self.decimal, self.decimal in (".", ","), "'.' or ','")
        _check_entry("encoding", self.encoding, self.encoding in ENCODINGS, f"one of {quoted_names(ENCODINGS)}")
        named = isinstance(self.header, tuple) and len(self.header) > 0
        _check_entry("header", self.header, self.header is True or named, "True, or the names of the columns")
        _check_entry("newlines", self.newlines, isinstance(self.newlines, bool), "True or False")
        for name in ("date_format", "timestamp_format"):
            said = getattr(self, name)
            fits = said is None or (isinstance(said, str) and "%" in said and _DIRECTIVES.fullmatch(said) is not None)
            _check_entry(name, said, fits, "a format such as '%d.%m.%Y'")


def _check_entry(name: str, value: object, fits: bool, expected: str) -> None:
    if not fits:
        raise InputError(name, value, expected)


def _is_mark(mark: object) -> bool:
    return isinstance(mark, str) and len(mark) == 1 and mark.isascii() and mark not in "\r\n\0" and not mark.isalnum()


# The lines of a CSV file, checked before parsing, so that the boundaries of records are certain.
#
# Readers of CSV differ in what they make of a stray quote. Here a file is refused unless all of them must agree: a
# quote opens a field at its first letter, closes it at its last, and is doubled within; a record has as many fields
# as the header; a field goes over several lines only where that is declared.

CSV_BLOCK = 1 << 22
LONGEST = 1 << 26
"""Bytes of one record, at most."""
NEWLINE, RETURN = 10, 13
BOM = b"\xef\xbb\xbf"
INDEX = "index"
_OTHER_DELIMITERS = (";", "\t", "|")


@dataclass(frozen=True, slots=True)
class CsvLines:
    """Whole records as bytes in UTF-8 (but for what the encoding has no letter for), and how many they are."""

    text: bytes
    count: int


@dataclass(frozen=True, slots=True)
class CsvFile:
    """A file and how it is written."""

    path: Path
    dialect: Dialect

    def read_first_line(self) -> bytes:
        """The first line, without its end; the rest of the file has no effect here, for all declared marks."""
        with engine_call("open the CSV file", lambda: self.path.open("rb")) as file:
            waiting = b""
            for block in _utf8_blocks(file, self.dialect.encoding):
                waiting += block
                if b"\n" in block or len(waiting) > LONGEST:
                    break
        return waiting.partition(b"\n")[0].removesuffix(b"\r")

    def column_names(self) -> tuple[str, ...]:
        """The declared names, or those in the first line; no other line is read."""
        header, dialect = self.dialect.header, self.dialect
        if isinstance(header, tuple):
            check_names(header)
            return header
        quoting: Any = {"quotechar": dialect.quote} if dialect.quote else {"quoting": csv.QUOTE_NONE}
        try:
            line = self.read_first_line().decode()
            names = tuple(next(csv.reader([line], delimiter=dialect.delimiter, strict=True, **quoting), ()))
        except (UnicodeDecodeError, csv.Error):
            names = None
        if names is None:
            expected = f"a CSV file in {dialect.encoding} with a header line"
            raise InputError("source", str(self.path), expected, "convert it to UTF-8, or declare dialect={...}")
        # One column whose name holds what separates columns elsewhere.
        for mark in _OTHER_DELIMITERS:
            if len(names) == 1 and mark in names[0]:
                typed = "\\t" if mark == "\t" else mark
                remedy = f"say dialect={{'delimiter': {mark!r}}}, or --dialect 'delimiter={typed}' on a command line"
                raise InputError("dialect", names[0], "the delimiter that the header uses", remedy)
        named = _name_index_column(names)
        check_names(named)
        return named

    def read_lines(self, fields: int) -> Iterator[CsvLines]:
        """All records but the header, in blocks. Raises ``InputError``, without a word of the file, where one is not
        as declared.
        """
        skip = self.dialect.header is True
        for text in self._whole_records():
            body = text.partition(b"\n")[2] if skip else text
            skip = False
            if body:
                yield CsvLines(body, self._count_records(body, fields))

    def read_texts(self, lines: CsvLines, names: Sequence[str], chosen: Sequence[str]) -> Any:
        """The chosen columns of some records as written: bytes, or NULL for an empty field without quotes."""
        arrow, reader = load_library("pyarrow"), load_library("pyarrow.csv")
        dialect = self.dialect
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
        table = engine_call("read the CSV file", lambda: reader.read_csv(buffer, read, parse, convert))
        if len(table) != lines.count:
            raise EngineError("the reader of CSV found other records than there are; write the file as Parquet")
        texts = [drop_invalid_utf8(column.combine_chunks().view("string")) for column in table.columns]
        return arrow.RecordBatch.from_arrays(texts, names=list(chosen))

    def _whole_records(self) -> Iterator[bytes]:
        """Blocks that end where a record does."""
        with engine_call("open the CSV file", lambda: self.path.open("rb")) as file:
            waiting = b""
            for block in _utf8_blocks(file, self.dialect.encoding):
                waiting += block
                end = self._last_record_end(waiting)
                if end:
                    yield waiting[:end]
                    waiting = waiting[end:]
                elif len(waiting) > LONGEST:
                    raise self._malformed_error()
            if waiting:
                yield waiting

    def _last_record_end(self, text: bytes) -> int:
        """Return the position after the last line end outside quotes, or 0."""
        if not self.dialect.newlines:
            return text.rfind(b"\n") + 1
        data = np.frombuffer(text, np.uint8)
        ends = np.flatnonzero(data == NEWLINE)
        outside = ends[self._inside_quotes(self._quote_positions(data), ends) == 0]
        return int(outside[-1]) + 1 if outside.size else 0

    def _count_records(self, text: bytes, fields: int) -> int:
        """Return the number of records in whole lines."""
        data = np.frombuffer(text if text.endswith(b"\n") else text + b"\n", np.uint8)
        quotes = self._quote_positions(data)
        marks = np.flatnonzero((data == ord(self.dialect.delimiter)) | (data == NEWLINE))
        inside = self._inside_quotes(quotes, marks) == 1
        sound = (
            quotes.size % 2 == 0
            and self._quotes_in_place(data, quotes)
            and self._returns_in_place(data, quotes)
            and (self.dialect.newlines or not np.any(data[marks[inside]] == NEWLINE))
        )
        ends = data[marks[~inside]] == NEWLINE
        regular = False
        if sound and ends.size % fields == 0:
            records = ends.reshape(-1, fields)  # the marks of each record are delimiters and then a line end
            regular = bool(np.all(records[:, -1]) and not np.any(records[:, :-1]))
        if not regular:
            raise self._malformed_error()
        return int(ends.size // fields)

    def _quote_positions(self, data: NDArray[np.uint8]) -> NDArray[np.intp]:
        quote = self.dialect.quote
        return np.flatnonzero(data == ord(quote)) if quote else np.empty(0, np.intp)

    @staticmethod
    def _inside_quotes(quotes: NDArray[np.intp], places: NDArray[np.intp]) -> NDArray[np.intp]:
        """1 for places in quotes, 0 for others."""
        return np.searchsorted(quotes, places) % 2

    def _quotes_in_place(self, data: NDArray[np.uint8], quotes: NDArray[np.intp]) -> bool:
        """Each quote opens a field at its start or closes it at its end; a doubled one does both."""
        quote, delimiter = ord(self.dialect.quote or "\0"), ord(self.dialect.delimiter)
        opening, closing = quotes[::2], quotes[1::2]
        before = data[opening[opening > 0] - 1]
        after = data[closing + 1]  # the block ends with a line end
        return bool(
            np.all(np.isin(before, (delimiter, NEWLINE, quote)))
            and np.all(np.isin(after, (delimiter, NEWLINE, RETURN, quote)))
        )

    def _returns_in_place(self, data: NDArray[np.uint8], quotes: NDArray[np.intp]) -> bool:
        """A carriage return stands before a line end, or in quotes where lines may."""
        returns = np.flatnonzero(data[:-1] == RETURN)
        alone = returns[data[returns + 1] != NEWLINE]
        return alone.size == 0 or (self.dialect.newlines and bool(np.all(self._inside_quotes(quotes, alone))))

    def _malformed_error(self) -> InputError:
        expected = (
            "a CSV file whose records have as many fields as there are columns, each plain or in quotes from its first "
            "to its last letter, one record a line"
        )
        remedy = "mend the line that is not (its content is not shown), or declare dialect={...} as the file is written"
        return InputError("source", str(self.path), expected, remedy)


def _utf8_blocks(file: BinaryIO, encoding: str) -> Iterator[bytes]:
    """The bytes of the file in UTF-8, without a byte order mark."""
    convert = _CONVERT[encoding]
    block = engine_call("read the CSV file", lambda: file.read(CSV_BLOCK)).removeprefix(
        BOM if encoding == "utf-8" else b""
    )
    while block:
        yield convert(block)
        block = engine_call("read the CSV file", lambda: file.read(CSV_BLOCK))


_CONVERT: dict[str, Callable[[bytes], bytes]] = {
    "utf-8": lambda block: block,
    "latin-1": lambda block: block.decode("latin-1").encode("utf-8"),
    # Bytes that the encoding has no letter for stay as they are, which no UTF-8 is: fields with them are missing.
    "windows-1252": lambda block: block.decode("windows-1252", "surrogateescape").encode("utf-8", "surrogateescape"),
}

# A field of a CSV file as its declared kind: what fits (``canonical_text``) is cast, the rest is missing.
#
# Arrow looks what fits and DuckDB casts it: the pattern is looked at once, however often a cast needs its text.


def select_matching_texts(texts: Any, kind: str, dialect: Dialect) -> Any:
    """The Arrow texts in the format of the kind, without surrounding spaces; NULL for the others."""
    if kind == "text":
        return texts
    arrow, compute, said = load_library("pyarrow"), load_library("pyarrow.compute"), _declared_format(kind, dialect)
    pattern = (
        canonical_text.pattern_of_kind(kind, dialect.decimal)
        if said is None
        else canonical_text.pattern_of_format(said)
    )
    fits = compute.match_substring_regex(texts, pattern)
    return compute.if_else(fits, compute.ascii_trim(texts, canonical_text.BLANKS), arrow.scalar(None, texts.type))


def cast_field(text: ir.Column, kind: str, dialect: Dialect) -> ir.Column:
    """A column of fitting texts as its kind, NULL for invalid values such as February 30."""
    said = _declared_format(kind, dialect)
    if kind == "text":
        return text
    ibis = load_library("ibis")
    if said is not None:
        # DuckDB's own function, which ibis has no word for; with ``%z`` it gives an instant in a zone.
        def try_strptime(text: str, said: str) -> Any: ...

        signature = (("string", "string"), "timestamp('UTC', 6)")
        instant = ibis.udf.scalar.builtin(try_strptime, signature=signature)(text, said)
        return _keep_calendar_years(_to_utc(instant)).cast(kind)
    if kind == "number":
        return _cast_number(text, dialect.decimal)
    if kind == "integer":
        # Digits as written; with an exponent by way of the double, as far as doubles are exact.
        number = _cast_number(text, dialect.decimal)
        plain = text.re_extract(canonical_text.INTEGER_DIGITS, 0).try_cast("int64")
        scaled = ibis.ifelse(_is_exact_integer(number), number.try_cast("int64"), None)
        return ibis.ifelse(text.lower().contains(canonical_text.SCALED), scaled, plain)
    if kind == "boolean":
        return text.lower().isin(("true", "1"))
    if kind == "date":
        value = text.left(canonical_text.DAY_LETTERS).try_cast("date")
    else:
        # An instant in UTC if an offset is written; otherwise as written.
        zoned, bare = text.try_cast("timestamp('UTC', 6)"), text.try_cast("timestamp(6)")
        value = ibis.ifelse(text.re_search(canonical_text.pattern_of_kind("zoned")), _to_utc(zoned), bare)
    return _keep_calendar_years(value)


def _declared_format(kind: str, dialect: Dialect) -> str | None:
    return {"date": dialect.date_format, "timestamp": dialect.timestamp_format}.get(kind)


def _cast_number(text: ir.Column, mark: str) -> ir.Column:
    """The nearest double, unless it is a whole number that was not written."""
    number = (text if mark == "." else text.replace(mark, ".")).try_cast("float64")
    exact = text.re_search(canonical_text.pattern_of_kind("exact", mark))
    return load_library("ibis").ifelse(_is_exact_integer(number) & ~exact, None, number)


def _is_exact_integer(number: ir.Column) -> Any:
    """True for integers that doubles distinguish from their neighbors; no cast of a larger one can fail."""
    return (number.abs() < canonical_text.EXACT_BELOW) & (number == number.try_cast("int64"))


def _keep_calendar_years(value: ir.Column) -> ir.Column:
    """Keep values in the years of Python's calendar."""
    return load_library("ibis").ifelse(value.year().between(datetime.MINYEAR, datetime.MAXYEAR), value, None)


def _to_utc(instant: ir.Column) -> Any:
    """Convert to UTC without a zone, in any zone of the connection: by its microseconds."""
    ibis, zoned = load_library("ibis"), (("timestamp('UTC', 6)",), "int64")

    def epoch_us(instant: Any) -> Any: ...

    def make_timestamp(microseconds: int) -> Any: ...

    ticks = ibis.udf.scalar.builtin(epoch_us, signature=zoned)(instant)
    return ibis.udf.scalar.builtin(make_timestamp, signature=(("int64",), "timestamp(6)"))(ticks)


FIELDS = "fields"


def open_csv(path: Path, types: Mapping[str, str], dialect: Dialect) -> Table:
    """A CSV file, by default in UTF-8 with commas, double quotes and a header line; ``Dialect`` says what else can be.

    Types are declared, never guessed from the data: a column without a type is text. A field that is not spelled as
    ``canonical_text`` says of its kind is NULL (spaces around it are ignored, booleans are true/false/1/0); "1.0" is an
    integer, "1.7" is not. An empty field without quotes is NULL for every type, ``""`` is the empty text. A file with
    a record that is not as declared is an ``InputError`` before anything else is done.
    """
    file, stamped = CsvFile(path, dialect), StampedFiles.from_paths(path)
    names = file.column_names()
    check_types(types, names, names)
    arrow = load_library("pyarrow")
    kinds = {name: types.get(name, "text") for name in names}
    schema = arrow.schema([arrow.field(name, arrow.type_for_alias(ARROW_TYPES[kind])) for name, kind in kinds.items()])

    def read_columns(chosen: Sequence[str]) -> RowSource:
        wanted = arrow.schema([schema.field(name) for name in chosen])
        asked = {name: kinds[name] for name in chosen}

        def typed_batches() -> Iterator[Any]:
            given = (file.read_texts(lines, names, chosen) for lines in file.read_lines(len(names)))
            return _cast_batches(stamped.checked_batches(given), wanted, asked, file)

        return RowSource(wanted, typed_batches)

    return table_from_stream("csv", schema, read_columns, lambda _: stamped.check_unchanged())


def _name_index_column(names: tuple[str, ...]) -> tuple[str, ...]:
    """A first column without a name is what pandas and R write of a frame's index, and is called so.

    >>> _name_index_column(("", "city")), _name_index_column(("", "index"))
    (('index', 'city'), ('', 'index'))
    """
    taken = INDEX in (name.casefold() for name in names)
    return (INDEX, *names[1:]) if len(names) > 1 and not names[0] and not taken else names


def _cast_batches(batches: Iterator[Any], schema: Any, kinds: Mapping[str, str], file: CsvFile) -> Iterator[Any]:
    """The batches in their declared types, cast in a connection of its own."""
    backend = engine_call("open a connection", open_connection)
    places = [f"c{place}" for place in range(len(kinds))]
    try:
        empty = load_library("pyarrow").table({place: load_library("pyarrow").array([], "string") for place in places})
        engine_call("name the fields", lambda: backend.con.register(FIELDS, empty))

        def compile_casts() -> str:
            fields = backend.table(FIELDS)
            chosen = {
                f"t{place}": cast_field(fields[f"c{place}"], kind, file.dialect)
                for place, kind in enumerate(kinds.values())
            }
            return compile_sql(backend, fields.select(**chosen))

        query = engine_call("prepare the casts", compile_casts)
        for batch in batches:
            texts = [
                select_matching_texts(*known, file.dialect) for known in zip(batch.columns, kinds.values(), strict=True)
            ]
            renamed = load_library("pyarrow").Table.from_arrays(texts, names=places)
            engine_call("name the fields", partial(backend.con.register, FIELDS, renamed))
            made = engine_call("cast the fields", lambda: backend.con.sql(query).to_arrow_table())
            yield from made.rename_columns(schema.names).cast(schema).to_batches()
    finally:
        engine_call("close the connection", backend.disconnect)
