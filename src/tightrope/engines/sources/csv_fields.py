"""A field of a CSV file as its declared kind: what fits (``spellings``) is cast, the rest is missing.

Arrow looks what fits and DuckDB casts it: the pattern is looked at once, however often a cast needs its text.
"""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING, Any

from tightrope.engines.guard import load
from tightrope.engines.sources import spellings
from tightrope.engines.sources.dialect import Dialect

if TYPE_CHECKING:
    import ibis.expr.types as ir


def fitting(texts: Any, kind: str, dialect: Dialect) -> Any:
    """The Arrow texts that are spelled as the kind is, without the blanks around them; NULL for the others."""
    if kind == "text":
        return texts
    arrow, compute, said = load("pyarrow"), load("pyarrow.compute"), _format(kind, dialect)
    pattern = spellings.whole(kind, dialect.decimal) if said is None else spellings.whole_in_format(said)
    fits = compute.match_substring_regex(texts, pattern)
    return compute.if_else(fits, compute.ascii_trim(texts, spellings.BLANKS), arrow.scalar(None, texts.type))


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
    exact = text.re_search(spellings.whole("exact", mark))
    return load("ibis").ifelse(_small(number) & ~exact, None, number)


def _small(number: ir.Column) -> Any:
    """Whether it is a whole number that doubles tell from its neighbours; no cast of a larger one can fail."""
    return (number.abs() < spellings.EXACT_BELOW) & (number == number.try_cast("int64"))


def _integer(text: ir.Column, mark: str) -> ir.Column:
    """Digits as they stand there; with an exponent by way of the double, as far as doubles are exact."""
    number, plain = _number(text, mark), text.re_extract(spellings.INTEGER_DIGITS, 0).try_cast("int64")
    scaled = load("ibis").ifelse(_small(number), number.try_cast("int64"), None)
    return load("ibis").ifelse(text.lower().contains(spellings.SCALED), scaled, plain)


WITH_A_POINT = {"number": _number, "integer": _integer}
"""Kinds in which the mark for a point means something."""


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
