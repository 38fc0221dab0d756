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

from tightrope.errors import EngineError, InputError, listed, nearest
from tightrope.tables.backends.backend import sql
from tightrope.tables.backends.duckdb import connect
from tightrope.tables.engine_calls import guarded, load
from tightrope.tables.materialize import Rows, readable
from tightrope.tables.sources import canonical_text
from tightrope.tables.sources.frames import ARROW_TYPES, check_types
from tightrope.tables.sources.stamp import Stamped
from tightrope.tables.table import Table, check_names, streamed

if TYPE_CHECKING:
    import ibis.expr.types as ir

# How a CSV file is written: declared, never sniffed, for a guess would be made from somebody's values.

ENCODINGS = ("utf-8", "latin-1", "windows-1252")
_DIRECTIVES = re.compile(r"(?:[^%]|%(?:-?[mdHMSyIj]|[YfbBpz%]))*")


class Dialect(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One line is one record; a field is plain, or in quotes from its first to its last letter, quotes doubled.

    ``header`` is True where the first line names the columns, or the names where no line does. ``quote=""``: quotes
    mean nothing. ``decimal`` is the mark in numbers; no mark stands between thousands. ``date_format`` and
    ``timestamp_format`` are like ``%d.%m.%Y``; left out, days are 2024-12-31. With ``newlines`` a field in quotes may
    go over several lines: a stray quote then swallows lines up to the next one, so say it only of a file that needs it.

    >>> Dialect.of({"delimiter": ";", "decimal": ","}).delimiter
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
    def of(cls, entries: Mapping[str, object] | Dialect) -> Dialect:
        """From declared entries; ``InputError`` for one that is unknown or cannot be."""
        if isinstance(entries, Dialect):
            return entries
        known = cls.__struct_fields__
        for name in entries:
            if name not in known:
                raise InputError("dialect", name, f"one of {listed(known)}", nearest(name, known))
        header = entries.get("header", True)
        names = tuple(header) if isinstance(header, Sequence) and not isinstance(header, str) else header
        try:
            return cls(**{**entries, "header": names})  # type: ignore[arg-type]
        except InputError as error:
            raise InputError(f"dialect {error.name}", error.value, error.expected, error.remedy) from None

    def __post_init__(self) -> None:
        _check("delimiter", self.delimiter, _is_mark(self.delimiter), "one letter such as ',', ';' or '\\t'")
        _check("quote", self.quote, self.quote == "" or _is_mark(self.quote), "one letter such as '\"', or ''")
        _check("quote", self.quote, self.quote != self.delimiter, "another letter than the delimiter")
        _check("decimal", self.decimal, self.decimal in (".", ","), "'.' or ','")
        _check("encoding", self.encoding, self.encoding in ENCODINGS, f"one of {listed(ENCODINGS)}")
        named = isinstance(self.header, tuple) and len(self.header) > 0
        _check("header", self.header, self.header is True or named, "True, or the names of the columns")
        _check("newlines", self.newlines, isinstance(self.newlines, bool), "True or False")
        for name in ("date_format", "timestamp_format"):
            said = getattr(self, name)
            fits = said is None or (isinstance(said, str) and "%" in said and _DIRECTIVES.fullmatch(said) is not None)
            _check(name, said, fits, "a format such as '%d.%m.%Y'")


def _check(name: str, value: object, fits: bool, expected: str) -> None:
    if not fits:
        raise InputError(name, value, expected)


def _is_mark(mark: object) -> bool:
    return isinstance(mark, str) and len(mark) == 1 and mark.isascii() and mark not in "\r\n\0" and not mark.isalnum()


# The lines of a CSV file, checked before anybody reads them: a record is where we say that it is.
#
# Readers of CSV differ in what they make of a stray quote. Here a file is refused unless all of them must agree: a
# quote opens a field at its first letter, closes it at its last, and is doubled within; a record has as many fields
# as the header; a field goes over several lines only where that is declared.

CSV_BLOCK = 1 << 22
LONGEST = 1 << 26
"""Bytes of one record, at most."""
NEWLINE, RETURN = 10, 13
BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Lines:
    """Whole records as bytes in UTF-8 (but for what the encoding has no letter for), and how many they are."""

    text: bytes
    count: int


@dataclass(frozen=True, slots=True)
class CsvFile:
    """A file and how it is written."""

    path: Path
    dialect: Dialect

    def first(self) -> bytes:
        """The first line, without its end; nothing behind it decides anything here, whatever marks are declared."""
        with guarded("open the CSV file", lambda: self.path.open("rb")) as file:
            waiting = b""
            for block in _blocks(file, self.dialect.encoding):
                waiting += block
                if b"\n" in block or len(waiting) > LONGEST:
                    break
        return waiting.partition(b"\n")[0].removesuffix(b"\r")

    def lines(self, fields: int) -> Iterator[Lines]:
        """All records but the header, in blocks. Raises ``InputError``, without a word of the file, where one is not
        as declared.
        """
        skip = self.dialect.header is True
        for text in self._whole():
            body = text.partition(b"\n")[2] if skip else text
            skip = False
            if body:
                yield Lines(body, self._records(body, fields))

    def _whole(self) -> Iterator[bytes]:
        """Blocks that end where a record does."""
        with guarded("open the CSV file", lambda: self.path.open("rb")) as file:
            waiting = b""
            for block in _blocks(file, self.dialect.encoding):
                waiting += block
                end = self._last_end(waiting)
                if end:
                    yield waiting[:end]
                    waiting = waiting[end:]
                elif len(waiting) > LONGEST:
                    raise self._refusal()
            if waiting:
                yield waiting

    def _last_end(self, text: bytes) -> int:
        """Behind the last line end that is in no quotes; 0 where there is none."""
        if not self.dialect.newlines:
            return text.rfind(b"\n") + 1
        data = np.frombuffer(text, np.uint8)
        ends = np.flatnonzero(data == NEWLINE)
        outside = ends[self._inside(self._quotes(data), ends) == 0]
        return int(outside[-1]) + 1 if outside.size else 0

    def _records(self, text: bytes, fields: int) -> int:
        """How many records there are in whole lines."""
        data = np.frombuffer(text if text.endswith(b"\n") else text + b"\n", np.uint8)
        quotes = self._quotes(data)
        marks = np.flatnonzero((data == ord(self.dialect.delimiter)) | (data == NEWLINE))
        inside = self._inside(quotes, marks) == 1
        sound = (
            quotes.size % 2 == 0
            and self._quotes_in_place(data, quotes)
            and self._returns_in_place(data, quotes)
            and (self.dialect.newlines or not np.any(data[marks[inside]] == NEWLINE))
        )
        ends = data[marks[~inside]] == NEWLINE
        if not (sound and ends.size % fields == 0 and _regular(ends.reshape(-1, fields))):
            raise self._refusal()
        return int(ends.size // fields)

    def _quotes(self, data: NDArray[np.uint8]) -> NDArray[np.intp]:
        quote = self.dialect.quote
        return np.flatnonzero(data == ord(quote)) if quote else np.empty(0, np.intp)

    @staticmethod
    def _inside(quotes: NDArray[np.intp], places: NDArray[np.intp]) -> NDArray[np.intp]:
        """1 for places in quotes, 0 for others."""
        return np.searchsorted(quotes, places) % 2

    def _quotes_in_place(self, data: NDArray[np.uint8], quotes: NDArray[np.intp]) -> bool:
        """Each quote opens a field at its first letter or closes it at its last; a doubled one does both."""
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
        return alone.size == 0 or (self.dialect.newlines and bool(np.all(self._inside(quotes, alone))))

    def _refusal(self) -> InputError:
        expected = (
            "a CSV file whose records have as many fields as there are columns, each plain or in quotes from its first "
            "to its last letter, one record a line"
        )
        remedy = "mend the line that is not (its content is not shown), or declare dialect={...} as the file is written"
        return InputError("source", str(self.path), expected, remedy)


def _regular(ends: NDArray[np.bool_]) -> bool:
    """Whether each row of marks is delimiters and then a line end."""
    return bool(np.all(ends[:, -1]) and not np.any(ends[:, :-1]))


def _blocks(file: BinaryIO, encoding: str) -> Iterator[bytes]:
    """The bytes of the file in UTF-8, without a byte order mark."""
    convert = _CONVERT[encoding]
    block = guarded("read the CSV file", lambda: file.read(CSV_BLOCK)).removeprefix(BOM if encoding == "utf-8" else b"")
    while block:
        yield convert(block)
        block = guarded("read the CSV file", lambda: file.read(CSV_BLOCK))


def _from_windows(block: bytes) -> bytes:
    """Bytes that the encoding has no letter for stay as they are, which no UTF-8 is: fields with them are missing."""
    return block.decode("windows-1252", "surrogateescape").encode("utf-8", "surrogateescape")


_CONVERT: dict[str, Callable[[bytes], bytes]] = {
    "utf-8": lambda block: block,
    "latin-1": lambda block: block.decode("latin-1").encode("utf-8"),
    "windows-1252": _from_windows,
}

# A field of a CSV file as its declared kind: what fits (``spellings``) is cast, the rest is missing.
#
# Arrow looks what fits and DuckDB casts it: the pattern is looked at once, however often a cast needs its text.


def fitting(texts: Any, kind: str, dialect: Dialect) -> Any:
    """The Arrow texts that are spelled as the kind is, without the blanks around them; NULL for the others."""
    if kind == "text":
        return texts
    arrow, compute, said = load("pyarrow"), load("pyarrow.compute"), _format(kind, dialect)
    pattern = canonical_text.whole(kind, dialect.decimal) if said is None else canonical_text.whole_in_format(said)
    fits = compute.match_substring_regex(texts, pattern)
    return compute.if_else(fits, compute.ascii_trim(texts, canonical_text.BLANKS), arrow.scalar(None, texts.type))


def field(text: ir.Column, kind: str, dialect: Dialect) -> ir.Column:
    """A column of fitting texts as its kind, NULL where one is none all the same: the 30th of February."""
    said = _format(kind, dialect)
    if kind == "text":
        return text
    if said is not None:
        return _in_calendar(_utc(_parsed(text, said))).cast(kind)
    if kind in WITH_A_POINT:
        return WITH_A_POINT[kind](text, dialect.decimal)
    return {"boolean": _boolean, "date": _date, "timestamp": _timestamp}[kind](text)


def _format(kind: str, dialect: Dialect) -> str | None:
    return {"date": dialect.date_format, "timestamp": dialect.timestamp_format}.get(kind)


def _number(text: ir.Column, mark: str) -> ir.Column:
    """The nearest double, unless it is a whole number that was not written."""
    number = (text if mark == "." else text.replace(mark, ".")).try_cast("float64")
    exact = text.re_search(canonical_text.whole("exact", mark))
    return load("ibis").ifelse(_small(number) & ~exact, None, number)


def _small(number: ir.Column) -> Any:
    """Whether it is a whole number that doubles tell from its neighbours; no cast of a larger one can fail."""
    return (number.abs() < canonical_text.EXACT_BELOW) & (number == number.try_cast("int64"))


def _integer(text: ir.Column, mark: str) -> ir.Column:
    """Digits as they stand there; with an exponent by way of the double, as far as doubles are exact."""
    number, plain = _number(text, mark), text.re_extract(canonical_text.INTEGER_DIGITS, 0).try_cast("int64")
    scaled = load("ibis").ifelse(_small(number), number.try_cast("int64"), None)
    return load("ibis").ifelse(text.lower().contains(canonical_text.SCALED), scaled, plain)


WITH_A_POINT = {"number": _number, "integer": _integer}
"""Kinds in which the mark for a point means something."""


def _boolean(text: ir.Column) -> ir.Column:
    return text.lower().isin(("true", "1"))


def _date(text: ir.Column) -> ir.Column:
    return _in_calendar(text.left(canonical_text.DAY_LETTERS).try_cast("date"))


def _timestamp(text: ir.Column) -> ir.Column:
    """In UTC where an offset is written, else as it stands there."""
    zoned, bare = text.try_cast("timestamp('UTC', 6)"), text.try_cast("timestamp(6)")
    return _in_calendar(load("ibis").ifelse(text.re_search(canonical_text.whole("zoned")), _utc(zoned), bare))


def _in_calendar(value: ir.Column) -> ir.Column:
    """What is in the years that a calendar of ours has."""
    return load("ibis").ifelse(value.year().between(datetime.MINYEAR, datetime.MAXYEAR), value, None)


def _parsed(text: ir.Column, said: str) -> Any:
    """DuckDB's ``try_strptime``, which ibis has no word for; with ``%z`` it gives an instant in a zone."""
    ibis = load("ibis")

    def try_strptime(text: str, said: str) -> Any: ...

    signature = (("string", "string"), "timestamp('UTC', 6)")
    return ibis.udf.scalar.builtin(try_strptime, signature=signature)(text, said)


def _utc(instant: ir.Column) -> Any:
    """Without a zone, in UTC whatever zone the connection is in: by its microseconds."""
    ibis, zoned = load("ibis"), (("timestamp('UTC', 6)",), "int64")

    def epoch_us(instant: Any) -> Any: ...

    def make_timestamp(microseconds: int) -> Any: ...

    ticks = ibis.udf.scalar.builtin(epoch_us, signature=zoned)(instant)
    return ibis.udf.scalar.builtin(make_timestamp, signature=(("int64",), "timestamp(6)"))(ticks)


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
    # One column whose name holds what separates columns elsewhere.
    for mark in _OTHER_DELIMITERS:
        if len(names) == 1 and mark in names[0]:
            typed = "\\t" if mark == "\t" else mark
            remedy = f"say dialect={{'delimiter': {mark!r}}}, or --dialect 'delimiter={typed}' on a command line"
            raise InputError("dialect", names[0], "the delimiter that the header uses", remedy)
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
