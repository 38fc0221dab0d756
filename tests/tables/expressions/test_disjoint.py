"""Which conditions are proven disjoint, which never are, and that the engine agrees on every row of hostile values."""

from __future__ import annotations

import datetime as dt
import itertools
import math
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from tests.tables.every_engine import ENGINES
from tightrope.tables import ContributionBounds, Measure, Request, open_source
from tightrope.tables.expressions.disjoint import condition_alternatives, exclude_each_other
from tightrope.tables.expressions.expression import resolve_term

ROWS = {
    "row": pa.array(range(12)),
    "n": pa.array([None, 0, 1, 2, 5, -1, 2**53, 2**53 + 1, 2**53 + 2, -(2**63), 2**63 - 1, 10], "int64"),
    "x": pa.array([None, math.nan, 0.0, -0.0, 0.1, 0.30000000000000004, 0.3, 5.0, 5.5, math.inf, -math.inf, 2.0**53]),
    "f": pa.array(np.array([0.1, 0.2, 0.1, 5, 5.5, 0, 1, 2, 3, 4, 16777216, 0.3], "float32")),
    "g": pa.array([None, "a", "A", "á", "a\u0301", " a", "a ", "", "b", "2024-01-01", "20240101", "2024-01-01T00:00"]),
    "m": pa.array(
        [None, *(Decimal(f"{cents}.{cents:02}") for cents in range(9)), Decimal("0.10"), Decimal("0.30")],
        pa.decimal128(10, 2),
    ),
    "flag": pa.array([None, True, False, True, False, True, None, True, False, True, False, True]),
    "d": pa.array([None, *(dt.date(2024, month, 1) for month in range(1, 12))]),
    "t": pa.array(
        [None, *(dt.datetime(2024, 3, 31, 0, 59, 59, 999_999) + dt.timedelta(microseconds=i) for i in range(11))],
        pa.timestamp("us"),
    ),
}
TABLE = pa.table(ROWS)
SCHEMA = open_source(TABLE).schema

DISJOINT = (
    ("g == 'a'", "g == 'b'"),
    ("g == 'a'", "g in ['b', 'A']"),
    ("g == 'a'", "not g == 'a'"),
    ("g == 'a'", "g is None"),
    ("g not in ['a', 'b']", "g in ['a', 'b']"),
    ("lower(g) == 'a'", "lower(g) == 'b'"),
    ("contains(g, 'a')", "not contains(g, 'a')"),
    ("n < 5", "n >= 5"),
    ("n < 5", "5 <= n"),
    ("0 <= n < 2", "2 <= n < 5"),
    ("-1 <= n", "n < -1"),
    ("-2 < n <= -1", "-1 < n <= 0"),
    ("-1 == n", "n is None"),
    ("t < '2024-06-01T00:00' and t >= '2024-01-03T00:00:00'", "t >= '2024-06-01T00:00' and t >= '2024-01-03T00:00:00'"),
    ("g == '2024-01-01' and g != '2024-01-01T00:00'", "g != '2024-01-01' and g != '2024-01-01T00:00'"),
    ("n < 5", "n > 5.5"),
    ("n == 1", "n == 2.0"),
    ("x <= 0.3", "x >= 0.30000000000000004"),
    ("x < 0.0", "x >= -0.0"),
    ("x is None", "x <= 5"),
    ("x is None", "x is not None"),
    ("f == 0.1", "f == 0.2"),
    ("f <= 0.1", "f > 0.1"),
    ("f == 0.1", "f == 0.10000000149011612"),
    ("m == 0.1", "m == 0.1000000001"),
    ("m <= 0.3", "m > 0.3"),
    ("x < 1e300", "x >= 1e300"),
    ("flag", "not flag"),
    ("flag == True", "flag == False"),
    ("flag", "flag is None"),
    ("flag and n == 1", "n == 2 or not flag"),
    ("d < '2024-03-01'", "d >= '2024-03-01'"),
    ("d == '2024-03-01'", "d == '2024-04-01'"),
    ("t < '2024-03-31T01:00:00'", "t >= '2024-03-31T01:00:00'"),
    ("t < '2024-03-31T01:00'", "t >= '2024-03-31T01:00'"),
    ("g == '2024-01-01'", "g != '2024-01-01'"),
    ("month(d) == 1", "month(d) == 2"),
    ("month(d) in [1, 2, 3]", "month(d) in [4, 5]"),
    ("year(d) == 2024 and month(d) == 1", "year(d) == 2024 and month(d) == 2"),
    ("hour(local(t, 'Europe/Berlin')) == 1", "hour(local(t, 'Europe/Berlin')) == 3"),
    ("cut(x, [0, 1, 5]) == 0", "cut(x, [0, 1, 5]) == 1"),
    ("date_trunc('month', d) == '2024-01-01'", "date_trunc('month', d) == '2024-02-01'"),
    ("not (n < 5 or g == 'a')", "n < 5"),
    ("(n == 1 or n == 2) and flag", "(n == 1 or n == 2) and not flag"),
)
OVERLAPPING = (
    ("g == 'a'", "g == 'a'"),
    ("g == 'a'", "n == 1"),
    ("g == 'a'", "lower(g) == 'b'"),
    ("g < 'b'", "g > 'b'"),
    ("n <= 5", "n >= 5"),
    ("n > 9007199254740992", "n <= 9007199254740992.0"),
    ("n == 9007199254740993", "n == 9007199254740992"),
    ("n in [9007199254740992.0, 5.5]", "n != 9007199254740992.0"),
    ("x == 9007199254740993", "x == 9007199254740992"),
    ("x + 1 == 2", "x + 1 == 3"),
    ("n < 3", "x >= 3"),
    ("d == '2024-03-01'", "d == '20240301'"),
    ("t < '2024-03-31T01:00'", "t >= '2024-03-31T01:00:00'"),
    ("t <= '2024-03-31'", "t >= '2024-03-31T00:00:00'"),
    ("g == '20240101'", "g != '2024-01-01'"),
    ("g == '2024-01-01T00:00'", "g not in ['2024-01-01', 'q']"),
    ("g == '20240101' and g != '2024-01-01' and g != 'q'", "g == '20240101' and g != '2024-01-01' and g != 'r'"),
    ("g in ['2024-01-01', '2024-W01-1']", "g in ['2024-01-01T00:00:00', '2024-01-01T00:00']"),
    ("t == '2024-03-31T01:00'", "t == '2024-03-31T01:00:00+00:00'"),
    ("t == '2024-03-31T01:00'", "t == '2024-03-31T03:00:00+02:00'"),
    ("flag or n == 1", "n == 1"),
    ("not (flag and n == 1)", "n == 1"),
    ("n != 1", "n != 2"),
    ("month(d) == 1", "year(d) == 2024"),
    ("n is None", "g is None"),
    ("n in [1, 2]", "n in [2, 5]"),
    ("cut(x, [0, 1]) == 0", "cut(x, [0, 1, 5]) == 1"),
)


def proven(one: str | None, other: str | None) -> bool:
    both = [condition_alternatives(c and resolve_term(c, SCHEMA), SCHEMA) for c in (one, other)]
    assert exclude_each_other(*both) == exclude_each_other(*both[::-1])
    return exclude_each_other(*both)


@pytest.mark.parametrize("pair", DISJOINT, ids=" | ".join)
def test_disjoint_conditions_are_proven(pair):
    assert proven(*pair)


@pytest.mark.parametrize("pair", OVERLAPPING, ids=" | ".join)
def test_conditions_that_may_hold_together_are_not(pair):
    assert not proven(*pair)


def test_no_condition_excludes_nothing():
    assert not proven(None, "n == 1")
    assert not proven(None, None)


def test_a_condition_of_too_many_alternatives_is_not_proven():
    many = " and ".join(f"(n == {2 * i} or x == {2 * i + 1})" for i in range(5))
    assert condition_alternatives(resolve_term(many, SCHEMA), SCHEMA) is None
    assert not proven(many, "n == -1")


@pytest.mark.parametrize("engine", ENGINES)
def test_no_row_meets_two_conditions_that_are_proven_disjoint(engine, tmp_path):
    """Each two of all conditions above, on rows with values at and near every literal, in every engine."""
    source = ENGINES[engine](TABLE, tmp_path)
    texts = list(dict.fromkeys(text for pair in (*DISJOINT, *OVERLAPPING) for text in pair))
    conditions = [resolve_term(text, source.schema) for text in texts]
    requests = [
        Request(("row",), None, ContributionBounds(None, 1, 1, 1), (Measure("rows", None, None),), condition)
        for condition in conditions
    ]
    with source.open_snapshot(requests) as rows:
        met = [{key for (key,) in rows.collect_totals(request).keys} for request in requests]
    alternatives = [condition_alternatives(condition, source.schema) for condition in conditions]
    pairs = [pair for pair in itertools.combinations(range(len(texts)), 2)
             if exclude_each_other(*(alternatives[place] for place in pair))]  # fmt: skip
    assert len(pairs) > 2 * len(DISJOINT)
    assert [(texts[i], texts[j]) for i, j in pairs if met[i] & met[j]] == []
    assert sum(bool(rows) for rows in met) > len(texts) * 3 / 4
