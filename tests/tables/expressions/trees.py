"""Random typed trees over a table of hostile values, as hypothesis strategies."""

from __future__ import annotations

import datetime as dt
import math
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from tightrope.tables.expressions.arithmetic import Absolute, Arithmetic, Clip, Extreme
from tightrope.tables.expressions.conditions import (
    COMPARISONS,
    UNITS,
    Calendar,
    Case,
    Compare,
    Member,
    Missing,
    Not,
    join_conditions,
    make_cut,
)
from tightrope.tables.expressions.functions import Cell, Local, Lower, Prefix
from tightrope.tables.expressions.leaves import ColumnRef, to_literal
from tightrope.tables.expressions.tree import ExpressionTree
from tightrope.tables.schema import Column as SchemaColumn
from tightrope.tables.schema import Schema

WHOLE = (None, 0, 1, -1, 7, -40, 2**53 - 1, 2**53, 2**53 + 1, -(2**53), 2**63 - 1, -(2**63), 3, 12, 500, -2)
LARGE = (None, 0, 1, 2**64 - 1, 2**63, 2**63 - 1, 5, 9, 2**53, 2**53 + 1, 3, 4, 6, 8, 10, 1000)
REAL = (None, math.nan, math.inf, -math.inf, 0.0, -0.0, 0.1, -0.1, 1e308, -1e308, 5e-324, 3.5, 2.0**53, -7.0, 1e300, 12)
FLAT = (None, math.nan, math.inf, 0.5, -0.0, 1.0, 2.25, -3.5, 2.0**100, -math.inf, 7.0, 8.0, 0.25, 2.0**24, -1.0, 3.0)
TEXTS = ("", "A", "a", "É", "Straße", "ΣΑΣ", "it's", "a\\", 'say "x"', "İ", "😀Ж", "a,b", "-- ;", "ﬁ", None, "null")
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
        st.builds(Calendar, st.sampled_from([unit for unit in UNITS if unit != "hour"]), columns("date")),
        st.builds(Calendar, st.sampled_from(list(UNITS)), st.one_of(columns("timestamp"), local())),
        cases(conditions(depth - 1), part),
    )


def local() -> st.SearchStrategy[ExpressionTree]:
    return st.builds(Local, columns("timestamp"), st.sampled_from(ZONES).map(to_literal))


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
        st.builds(Not, part),
        st.builds(
            lambda word, several: join_conditions(word, *several), st.sampled_from(["and", "or"]), st.tuples(part, part)
        ),
    )


def texts(depth: int) -> st.SearchStrategy[ExpressionTree]:
    first = st.builds(Prefix, columns("text"), st.integers(1, 3).map(to_literal))
    leaves = st.one_of(columns("text"), columns("text").map(Lower), first)
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
