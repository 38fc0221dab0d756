"""How a CSV file is written: declared, never sniffed, for a guess would be made from somebody's values."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from msgspec import Struct

from tightrope.errors import InputError, listed, nearest

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
