"""Random typed trees over a table of hostile values, as hypothesis strategies."""

from __future__ import annotations

import datetime as dt
import functools
import math
from collections.abc import Callable
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from tightrope.tables.expressions.arithmetic import Absolute, Arithmetic, Clip, Extreme
from tightrope.tables.expressions.conditions import (
    COMPARISONS,
    Case,
    Compare,
    Member,
    Missing,
    Not,
    join_conditions,
    make_cut,
)
from tightrope.tables.expressions.leaves import ColumnRef, Value, to_literal
from tightrope.tables.expressions.rounding import Cell, GridValue, Logarithm, Remainder
from tightrope.tables.expressions.texts import (
    TEXT_TESTS,
    Concat,
    Converted,
    Lower,
    Prefix,
    Substring,
    Suffix,
    TextLength,
    TextTest,
    Upper,
)
from tightrope.tables.expressions.times import (
    CLOCK_UNITS,
    ELAPSED_MICROSECONDS,
    TRUNCATIONS,
    UNITS,
    Calendar,
    Elapsed,
    Local,
    Truncate,
)
from tightrope.tables.expressions.tree import ExpressionTree
from tightrope.tables.schema import Column as SchemaColumn
from tightrope.tables.schema import Schema

WHOLE = (None, 0, 1, -1, 7, -40, 2**53 - 1, 2**53, 2**53 + 1, -(2**53), 2**63 - 1, -(2**63), 3, 12, 500, -2)
LARGE = (None, 0, 1, 2**64 - 1, 2**63, 2**63 - 1, 5, 9, 2**53, 2**53 + 1, 3, 4, 6, 8, 10, 1000)
REAL = (None, math.nan, math.inf, -math.inf, 0.0, -0.0, 0.1, -0.1, 1e308, -1e308, 5e-324, 3.5, 2.0**53, -7.0, 1e300, 12)
FLAT = (None, math.nan, math.inf, 0.5, -0.0, 1.0, 2.25, -3.5, 2.0**100, -math.inf, 7.0, 8.0, 0.25, 2.0**24, -1.0, 3.0)
TEXTS = (
    "",
    "A",
    "a%",
    "É",
    "Straße",
    "ΣΑΣ",
    "it's",
    "a\\",
    'say "x"',
    "İ_",
    "😀Ж",
    "a,b",
    "-- ;",
    "ﬁ",
    None,
    "e\u0301ı",
)
TRUTHS = (None, True, False) * 5 + (True,)
DAYS = (None, dt.date(1, 1, 1), dt.date(9999, 12, 31), dt.date(2024, 2, 29), dt.date(1970, 1, 1), dt.date(2023, 12, 31))
TIMES = tuple(
    None
    if day is None
    else dt.datetime(day.year, day.month, day.day) + (day.year < 9999) * dt.timedelta(seconds=86399.5)
    for day in DAYS
)

ZONES = ("Europe/Berlin", "America/New_York", "Asia/Kolkata", "Pacific/Kiritimati", "Africa/Monrovia", "UTC")


def repeated(values: tuple[Any, ...]) -> list[Any]:
    return [values[place % len(values)] for place in range(len(WHOLE))]


ROWS: dict[str, list[Any]] = {
    "row": list(range(len(WHOLE))),
    "i": list(WHOLE),
    "large": list(LARGE),
    "x": list(REAL),
    "flat": list(FLAT),
    "name": list(TEXTS),
    "ok": list(TRUTHS),
    "day": repeated(DAYS),
    "at": repeated(TIMES),
    "zoned": repeated(TIMES[1:]),
}
TYPES = {
    "row": pa.int64(),
    "i": pa.int64(),
    "large": pa.uint64(),
    "x": pa.float64(),
    "flat": pa.float32(),
    "name": pa.string(),
    "ok": pa.bool_(),
    "day": pa.date32(),
    "at": pa.timestamp("us"),
    "zoned": pa.timestamp("us", "UTC"),
}
KINDS: dict[str, Any] = {
    "row": "integer",
    "i": "integer",
    "large": "integer",
    "x": "number",
    "flat": "number",
    "name": "text",
    "ok": "boolean",
    "day": "date",
    "at": "timestamp",
    "zoned": "timestamp",
}
SCHEMA = Schema(tuple(SchemaColumn(name, kind) for name, kind in KINDS.items()))


def arrow() -> pa.Table:
    return pa.table({name: pa.array(column, TYPES[name]) for name, column in ROWS.items()})


def rows() -> list[dict[str, Any]]:
    return [{name: column[place] for name, column in ROWS.items()} for place in range(len(WHOLE))]


def named(build: Callable[..., st.SearchStrategy[ExpressionTree]]) -> Callable[..., st.SearchStrategy[ExpressionTree]]:
    """The strategy, which prints as its name: hypothesis refuses to print large ones."""
    built = functools.cache(build)

    def drawn(draw: Any, *arguments: Any) -> ExpressionTree:
        return draw(built(*arguments))

    drawn.__name__ = drawn.__qualname__ = build.__name__
    return st.composite(drawn)


def columns(kind: str) -> st.SearchStrategy[ExpressionTree]:
    return st.sampled_from([ColumnRef(name) for name, its in KINDS.items() if its == kind and name != "row"])


def literals(kind: str) -> st.SearchStrategy[Any]:
    return {
        "integer": st.sampled_from([value for value in WHOLE if value is not None]).map(to_literal),
        "number": st.sampled_from([v for v in REAL if v is not None and math.isfinite(v)]).map(float).map(to_literal),
        "text": st.sampled_from([value for value in TEXTS if value is not None]).map(to_literal),
        "boolean": st.booleans().map(to_literal),
        "date": st.sampled_from([value for value in DAYS if value is not None]).map(to_literal),
        "timestamp": st.sampled_from([value for value in TIMES if value is not None]).map(to_literal),
    }[kind]


@named
def numbers(depth: int) -> st.SearchStrategy[ExpressionTree]:
    leaves = st.one_of(columns("integer"), columns("number"), literals("integer"), literals("number"))
    if depth == 0:
        return leaves
    part, ends = numbers(depth - 1), st.one_of(literals("integer"), literals("number"))
    ordered = st.tuples(ends, ends).map(lambda pair: sorted(pair, key=lambda end: float(end.value)))
    edges = st.lists(ends, min_size=1, max_size=5, unique_by=lambda end: float(end.value))
    return st.one_of(
        leaves,
        st.builds(Arithmetic, st.sampled_from("+-*/"), part, part),
        st.builds(Absolute, part),
        st.builds(Extreme, st.booleans(), st.tuples(part, part)),
        st.builds(lambda own, pair: Clip(own, *pair), part, ordered),
        st.builds(lambda own, found: make_cut(own, sorted(found, key=lambda end: float(end.value))), part, edges),
        st.builds(lambda own, n: Cell(own, to_literal(-1.5), to_literal(40), to_literal(n)), part, st.integers(1, 50)),
        st.builds(Calendar, st.sampled_from([unit for unit in UNITS if unit not in CLOCK_UNITS]), days()),
        st.builds(Calendar, st.sampled_from(list(UNITS)), instants()),
        st.builds(Elapsed, st.sampled_from(list(ELAPSED_MICROSECONDS)), days(), st.one_of(days(), literals("date"))),
        st.builds(
            Elapsed,
            st.sampled_from(list(ELAPSED_MICROSECONDS)),
            instants(),
            st.one_of(instants(), literals("timestamp")),
        ),
        st.builds(GridValue, st.sampled_from(["floor", "round"]), part, st.sampled_from(WIDTHS)),
        st.builds(Remainder, part, st.sampled_from([1, 7, 10**9, 0.1, 2.5, 1e300 / 1e290]).map(to_literal)),
        st.builds(Logarithm, part, st.sampled_from([None, to_literal(2), to_literal(10)])),
        st.builds(TextLength, texts(0)),
        st.builds(Converted, st.sampled_from(["integer", "number"]), numerals()),
        st.builds(lambda own: Converted("number", own), columns("integer")),
        cases(conditions(depth - 1), part),
    )


@named
def numerals() -> st.SearchStrategy[ExpressionTree]:
    given = st.one_of(columns("integer"), columns("boolean"), columns("date"))
    return st.one_of(st.builds(lambda own: Converted("text", own), given), literals("text"))


WIDTHS = [None, *map(to_literal, (1, 5, 1000, 0.1, 0.01, 2.5, 0.3, 1e-7))]


@named
def days() -> st.SearchStrategy[ExpressionTree]:
    units = st.sampled_from([unit for unit in TRUNCATIONS if unit not in CLOCK_UNITS])
    parts = st.one_of(columns("date"), columns("timestamp"))
    read = st.builds(lambda own: Converted("date", own), st.one_of(columns("timestamp"), numerals()))
    return st.one_of(
        columns("date"), read, st.builds(Truncate, units, parts), st.builds(make_cut, parts, edges_of("date"))
    )


def edges_of(kind: str) -> st.SearchStrategy[list[Value]]:
    literal = literals(kind).filter(lambda literal: kind == "date" or "T" in str(literal.value))
    return st.lists(literal, min_size=1, max_size=4, unique_by=str).map(lambda edges: sorted(edges, key=str))


@named
def instants() -> st.SearchStrategy[ExpressionTree]:
    cut = st.builds(Truncate, st.sampled_from(CLOCK_UNITS), columns("timestamp"))
    return st.one_of(
        columns("timestamp"), local(), cut, st.builds(make_cut, columns("timestamp"), edges_of("timestamp"))
    )


def local() -> st.SearchStrategy[ExpressionTree]:
    return st.builds(Local, columns("timestamp"), st.sampled_from(ZONES).map(to_literal))


@named
def conditions(depth: int) -> st.SearchStrategy[ExpressionTree]:
    if depth == 0:
        return columns("boolean")
    part, number = conditions(depth - 1), numbers(depth - 1)
    compared = [
        st.builds(Compare, st.sampled_from(list(COMPARISONS)), columns(kind), st.one_of(columns(kind), literals(kind)))
        for kind in ("text", "date", "timestamp")
    ]
    return st.one_of(
        part,
        st.builds(Compare, st.sampled_from(list(COMPARISONS)), number, number),
        st.builds(Compare, st.sampled_from(["==", "!="]), part, part),
        *compared,
        st.builds(Member, number, st.lists(literals("integer"), min_size=1, max_size=3).map(tuple)),
        st.builds(Member, texts(0), st.lists(literals("text"), min_size=1, max_size=3).map(tuple)),
        st.builds(Missing, st.one_of(number, part, columns("date"), columns("text"))),
        st.builds(TextTest, st.sampled_from(list(TEXT_TESTS)), texts(0), st.one_of(texts(0), literals("text"))),
        st.builds(Not, part),
        st.builds(
            lambda word, several: join_conditions(word, *several), st.sampled_from(["and", "or"]), st.tuples(part, part)
        ),
    )


@named
def texts(depth: int) -> st.SearchStrategy[ExpressionTree]:
    own, few = columns("text"), st.integers(1, 3).map(to_literal)
    leaves = st.one_of(
        own,
        own.map(Lower),
        own.map(Upper),
        st.builds(Prefix, own, few),
        st.builds(Suffix, own, few),
        st.builds(Substring, own, few, few),
        numerals(),
        st.builds(lambda *parts: Concat(parts), own, st.one_of(columns("integer"), literals("text"), own)),
    )
    return (
        leaves if depth == 0 else st.one_of(leaves, cases(conditions(depth - 1), st.one_of(leaves, literals("text"))))
    )


def cases(
    test: st.SearchStrategy[ExpressionTree], choice: st.SearchStrategy[ExpressionTree]
) -> st.SearchStrategy[ExpressionTree]:
    return st.one_of(
        st.builds(lambda t, a, b: Case((t,), (a, b)), test, choice, choice),
        st.builds(lambda t, u, a: Case((t, u), (a, None, a)), test, test, choice),
    )


TREES = st.one_of(numbers(2), conditions(2), texts(1))
