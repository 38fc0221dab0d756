"""A field of a CSV file as its declared kind, in ibis: what fits (``spellings``) is cast, the rest is missing."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING, Any

from tightrope.engines.guard import load
from tightrope.engines.sources import spellings
from tightrope.engines.sources.dialect import Dialect

if TYPE_CHECKING:
    import ibis.expr.types as ir


def field(text: ir.Column, kind: str, dialect: Dialect) -> ir.Column:
    """A column of text as a kind, NULL where it is none."""
    said = {"date": dialect.date_format, "timestamp": dialect.timestamp_format}.get(kind)
    if kind == "text":
        return text
    if said is not None:
        return _in_calendar(_utc(_parsed(_fitting(text, spellings.whole_in_format(said)), said))).cast(kind)
    fits = _fitting(text, spellings.whole(kind, dialect.decimal))
    if kind == "number":
        return _number(fits, dialect.decimal)
    if kind == "integer":
        return _integer(fits, dialect.decimal)
    return {"boolean": _boolean, "date": _date, "timestamp": _timestamp}[kind](fits)


def _fitting(text: ir.Column, pattern: str) -> ir.Column:
    """What fits, without the blanks around it."""
    return load("ibis").ifelse(text.re_search(pattern), text.strip(), None)


def _number(text: ir.Column, mark: str) -> ir.Column:
    """The nearest double, unless it is a whole number that was not written."""
    number = text.replace(mark, ".").try_cast("float64")
    exact = text.re_search(spellings.whole("exact", mark))
    stray = (number.abs() < spellings.EXACT_BELOW) & (number == number.floor()) & ~exact
    return load("ibis").ifelse(stray, None, number)


def _integer(text: ir.Column, mark: str) -> ir.Column:
    """Digits as they stand there; with an exponent by way of the double, as far as doubles are exact."""
    number, plain = _number(text, mark), text.re_extract(spellings.DIGITS, 0).try_cast("int64")
    small = (number.abs() < spellings.EXACT_BELOW) & (number == number.floor())
    scaled = load("ibis").ifelse(small, number.try_cast("int64"), None)
    return load("ibis").ifelse(text.lower().contains(spellings.SCALED), scaled, plain)


def _boolean(text: ir.Column) -> ir.Column:
    return text.lower().isin(("true", "1"))


def _date(text: ir.Column) -> ir.Column:
    return _in_calendar(text.left(spellings.DAY_LETTERS).try_cast("date"))


def _timestamp(text: ir.Column) -> ir.Column:
    """In UTC where an offset is written, else as it stands there."""
    zoned, bare = text.try_cast("timestamp('UTC', 6)"), text.try_cast("timestamp(6)")
    return _in_calendar(load("ibis").ifelse(text.re_search(spellings.whole("zoned")), _utc(zoned), bare))


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
