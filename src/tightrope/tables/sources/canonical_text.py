"""Accepted text forms of numbers, days and instants in CSV fields and folder names; other texts are missing values.

Forms are accepted by patterns that Python and RE2 match alike; Python's and DuckDB's casts give the same value for each
accepted text. A list of *rejected* forms would depend on what a library happens to accept: underscores, unusual spaces,
``epoch``.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from tightrope.tables.engine_calls import load_library

if TYPE_CHECKING:
    import ibis.expr.types as ir
    import pyarrow as pa

    from tightrope.tables.sources.csv import Dialect

BLANKS = " \t"
"""Characters ignored around values other than text."""
INTEGER_DIGITS = r"[+-]?[0-9]+"
"""The part of an integer to the left of its point."""
EXPONENT_MARK = "e"
"""The start of an exponent, in upper or lower case."""
DAY_LENGTH = 10
EXACT_INTEGER_END = 2.0**53
"""Doubles hold every integer below."""
_POINT = "[.]"
_SHORT_SCALED = rf"[+-]?([0-9]|{_POINT}){{1,15}}[eE][+]?[0-9]+"
"""Numbers with an exponent and at most 15 digits: such a number is an integer if its double is. R writes 1e+05."""
_DAY = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
_TIME = r"([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\.[0-9]{1,9})?)?"
_MIDNIGHT = r"00:00(:00(\.0{1,9})?)?"
_OFFSET = r"(Z|[+-](0[0-9]|1[0-5])(:?[0-5][0-9])?)"
"""Offsets from UTC below 16 hours; larger ones are in use nowhere, and engines disagree about them."""
_MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
           "December")  # fmt: skip


def _any_case(*words: str) -> str:
    """Return a pattern for words in upper or lower case; unlike ``(?i)`` it does not match a long s as s."""
    patterns = ("".join(f"[{letter.upper()}{letter.lower()}]" for letter in word) for word in words)
    return f"({'|'.join(patterns)})"


_SPECIAL_NUMBER = _any_case("inf", "infinity", "nan")
_KIND_PATTERNS: Mapping[str, str] = {
    "integer": rf"{INTEGER_DIGITS}({_POINT}0*)?|{_SHORT_SCALED}",
    "number": rf"[+-]?(([0-9]+({_POINT}[0-9]*)?|{_POINT}[0-9]+)([eE][+-]?[0-9]+)?|{_SPECIAL_NUMBER})",
    "exact": rf"{INTEGER_DIGITS}({_POINT}0*)?|[+-]?{_POINT}0+|{_SHORT_SCALED}",
    "boolean": rf"{_any_case('true', 'false')}|[01]",
    "date": rf"{_DAY}([ T]{_MIDNIGHT})?",
    "timestamp": rf"{_DAY}([ T]{_TIME}{_OFFSET}?)?",
    "zoned": rf"{_DAY}[ T]{_TIME}{_OFFSET}",
}
"""Patterns by kind, and two more. ``exact``: numbers that are integers if their double is an integer below 2^53; others
must not be rounded to an integer, which may be another person. ``zoned``: timestamps with an offset from UTC."""
_DIRECTIVE_PATTERNS: Mapping[str, str] = {
    "Y": "[0-9]{1,4}",
    "f": "[0-9]{1,6}",
    "j": "[0-9]{1,3}",
    "b": _any_case(*(month[:3] for month in _MONTHS)),
    "B": _any_case(*_MONTHS),
    "p": _any_case("am", "pm"),
    "z": _OFFSET,
    "%": "%",
    **dict.fromkeys("mdHMSyI", "[0-9]{1,2}"),
}
"""Patterns of the texts that each directive of a format accepts; the engine checks the calendar."""


def pattern_of_kind(kind: str, mark: str = ".") -> str:
    """Return the pattern of a complete text of that kind; ``mark`` is the decimal mark of numbers."""
    return _anchor_pattern(_KIND_PATTERNS[kind].replace(_POINT, f"[{mark}]"))


def pattern_of_format(text_format: str) -> str:
    """Return the pattern of a complete text in a format such as ``%d.%m.%Y``, with the directives of ``Dialect``."""
    pieces = re.findall(r"%-?(.)|( +)|([^% ])", text_format, re.DOTALL)
    return _anchor_pattern(
        "".join(
            _DIRECTIVE_PATTERNS[directive] if directive else " +" if spaces else re.escape(literal)
            for directive, spaces, literal in pieces
        )
    )


def _anchor_pattern(pattern: str) -> str:
    return rf"^[ \t]*({pattern})[ \t]*$"


def parse_value(value: str | None, kind: str) -> Any:
    """Return a text's value in a column of a declared kind, as in CSV fields; None if it does not fit.

    >>> pairs = (("007", "integer"), ("1.7", "integer"), ("2024-02-29", "date"), ("007", "text"))
    >>> tuple(parse_value(*pair) for pair in pairs)
    (7, None, datetime.date(2024, 2, 29), '007')
    """
    if value is None or kind == "text":
        return value and (None if any("\ud800" <= character <= "\udfff" for character in value) else value)
    if not re.fullmatch(pattern_of_kind(kind), value):
        return None
    try:
        return _PARSERS[kind](value.strip(BLANKS))
    except (ValueError, OverflowError):  # the 30th of February; an instant that is beyond the calendar in UTC
        return None


def parse_integer(text: str) -> int | None:
    """Return the integer of 64 bits in a text of the form of integers; None if it does not fit."""
    if EXPONENT_MARK in text.lower():
        number = parse_number(text)
        return int(number) if number is not None and abs(number) < EXACT_INTEGER_END and number.is_integer() else None
    value = int(text.partition(".")[0])
    return value if -(1 << 63) <= value < 1 << 63 else None


def parse_number(text: str) -> float | None:
    """Return the nearest double; None if it is an integer and the text is not."""
    value = float(text)
    was_rounded = (
        abs(value) < EXACT_INTEGER_END
        and value == math.floor(value)
        and not re.fullmatch(pattern_of_kind("exact"), text)
    )
    return None if was_rounded else value


def parse_timestamp(text: str) -> datetime.datetime:
    """Return a time without a zone, in UTC if the text has an offset."""
    value = datetime.datetime.fromisoformat(text)
    return value if value.tzinfo is None else value.astimezone(datetime.UTC).replace(tzinfo=None)


_PARSERS: Mapping[str, Callable[[str], Any]] = {
    "integer": parse_integer,
    "number": parse_number,
    "boolean": lambda text: text.lower() in ("true", "1"),
    "date": lambda text: datetime.date.fromisoformat(text[:DAY_LENGTH]),
    "timestamp": parse_timestamp,
}

# A field in the form of its declared kind is cast, any other field is missing. Arrow matches
# the patterns and DuckDB casts, so that each pattern is matched once, however often a cast uses the text.


def select_matching_texts(texts: pa.Array, kind: str, dialect: Dialect) -> pa.Array:
    """Return the texts that have the form of the kind, without surrounding spaces; NULL for the others.

    Texts that the dialect declares to be missing are NULL, too.
    """
    arrow, compute = load_library("pyarrow"), load_library("pyarrow.compute")
    texts = texts if kind == "text" else compute.ascii_trim(texts, BLANKS)
    if dialect.null_texts:
        is_missing = compute.is_in(texts, arrow.array(dialect.null_texts, texts.type))
        texts = compute.if_else(is_missing, arrow.scalar(None, texts.type), texts)
    if kind == "text":
        return texts
    declared_format = _declared_format(kind, dialect)
    pattern = pattern_of_kind(kind, dialect.decimal) if declared_format is None else pattern_of_format(declared_format)
    fits = compute.match_substring_regex(texts, pattern)
    return compute.if_else(fits, texts, arrow.scalar(None, texts.type))


def cast_field(text: ir.Column, kind: str, dialect: Dialect) -> ir.Column:
    """Cast a column of texts that have the form of the kind; values such as February 30 become NULL."""
    declared_format = _declared_format(kind, dialect)
    if kind == "text":
        return text
    ibis = load_library("ibis")
    if declared_format is not None:
        # A function of DuckDB that ibis lacks; with ``%z`` it returns an instant with a zone.
        def try_strptime(text: str, declared_format: str) -> Any: ...

        signature = (("string", "string"), "timestamp('UTC', 6)")
        instant = ibis.udf.scalar.builtin(try_strptime, signature=signature)(text, declared_format)
        return _keep_calendar_years(_to_utc(instant)).cast(kind)
    if kind == "number":
        return _cast_number(text, dialect.decimal)
    if kind == "integer":
        # Digits are cast directly; a number with an exponent is cast to a double first, and kept if that is exact.
        number = _cast_number(text, dialect.decimal)
        digits = text.re_extract(INTEGER_DIGITS, 0).try_cast("int64")
        with_exponent = ibis.ifelse(_is_exact_integer(number), number.try_cast("int64"), None)
        return ibis.ifelse(text.lower().contains(EXPONENT_MARK), with_exponent, digits)
    if kind == "boolean":
        return text.lower().isin(("true", "1"))
    if kind == "date":
        value = text.left(DAY_LENGTH).try_cast("date")
    else:
        # An instant in UTC if the text has an offset; otherwise a time without a zone.
        zoned, zoneless = text.try_cast("timestamp('UTC', 6)"), text.try_cast("timestamp(6)")
        value = ibis.ifelse(text.re_search(pattern_of_kind("zoned")), _to_utc(zoned), zoneless)
    return _keep_calendar_years(value)


def _declared_format(kind: str, dialect: Dialect) -> str | None:
    return {"date": dialect.date_format, "timestamp": dialect.timestamp_format}.get(kind)


def _cast_number(text: ir.Column, mark: str) -> ir.Column:
    """Return the nearest double; NULL if it is an integer and the text is not: rounding could merge persons."""
    number = (text if mark == "." else text.replace(mark, ".")).try_cast("float64")
    exact = text.re_search(pattern_of_kind("exact", mark))
    return load_library("ibis").ifelse(_is_exact_integer(number) & ~exact, None, number)


def _is_exact_integer(number: ir.Column) -> ir.BooleanValue:
    """Return whether a double is an integer below 2^53; larger values are not cast to integers, so no cast fails."""
    return (number.abs() < EXACT_INTEGER_END) & (number == number.try_cast("int64"))


def _keep_calendar_years(value: ir.Column) -> ir.Column:
    """Return values in the years 1 to 9999; others become NULL."""
    return load_library("ibis").ifelse(value.year().between(datetime.MINYEAR, datetime.MAXYEAR), value, None)


def _to_utc(instant: ir.Column) -> ir.Column:
    """Return an instant as UTC time without a zone, by its microseconds, whatever the connection's time zone is."""
    ibis, signature = load_library("ibis"), (("timestamp('UTC', 6)",), "int64")

    def epoch_us(instant: Any) -> Any: ...

    def make_timestamp(microseconds: int) -> Any: ...

    ticks = ibis.udf.scalar.builtin(epoch_us, signature=signature)(instant)
    return ibis.udf.scalar.builtin(make_timestamp, signature=(("int64",), "timestamp(6)"))(ticks)
