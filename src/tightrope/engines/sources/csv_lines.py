"""The lines of a CSV file, checked before anybody reads them: a record is where we say that it is.

Readers of CSV differ in what they make of a stray quote. Here a file is refused unless all of them must agree: a quote
opens a field at its first letter, closes it at its last, and is doubled within; a record has as many fields as the
header; a field goes over several lines only where that is declared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from tightrope.engines.guard import guarded
from tightrope.engines.sources.dialect import Dialect
from tightrope.errors import InputError

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
