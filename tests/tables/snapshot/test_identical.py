"""One table, every engine, the same integers: which rows of a person are kept is the same choice everywhere."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from tests.tables.every_engine import ENGINES
from tests.tables.questions import ask, mean, per_person
from tightrope.tables import ContributionBounds, DistinctCount, Measure, Request

ROWS = 400
PERSONS = ("p float", "p text", "whole", "zoned")
UTC = dt.UTC
KEYS: dict[str, pa.Array] = {
    "text": pa.array(["", "a", "A", "á", "a\u0301", " a", "a ", None, 'a"b', "a,b", "ﬁ", "日本", "a" * 300]),
    "whole": pa.array([0, 1, -1, 2**63 - 1, -(2**63), None], pa.int64()),
    "float": pa.array([0.0, -0.0, 0.1, 1e300, -1e-300, 5e-324, 2.0**53, 1e22, 123456.75, math.nan, math.inf, None]),
    "single": pa.array([0.1, 3.0, -1e-40, 3.4e38, None], pa.float32()),
    "boolean": pa.array([True, False, None]),
    "decimal": pa.array([Decimal("1.50"), Decimal("-0.25"), Decimal("0.00"), None], pa.decimal128(10, 2)),
    "wide": pa.array([Decimal(10**37), Decimal(-9), None], pa.decimal128(38, 0)),
    "date": pa.array([dt.date(2024, 2, 29), dt.date(1, 1, 1), dt.date(9999, 12, 31), None]),
    "instant": pa.array([dt.datetime(2024, 1, 2, 3, 4, 5, 600), dt.datetime(1, 1, 1), None], pa.timestamp("us")),
    "zoned": pa.array([dt.datetime(2024, 10, 27, 0, 30, tzinfo=UTC), None], pa.timestamp("us", tz="UTC")),
}
VALUES = pa.array([None, math.nan, math.inf, -math.inf, 0.5, 1.5, -0.5, -0.0, 1e308, 5e-324, 0.125])
MEASURES = (Measure("rows", None, None), *mean("x", lower=-2, upper=10, step="0.25", center=3))


def table(draw: np.random.Generator) -> pa.Table:
    people = draw.integers(0, 40, ROWS)
    columns = {name: column.take(draw.integers(0, len(column), ROWS)) for name, column in KEYS.items()}
    persons = {"person": people, "p float": people.astype(float), "p text": people.astype(str)}
    return pa.table({**persons, **columns, "x": VALUES.take(draw.integers(0, len(VALUES), ROWS))})


@pytest.mark.slow
@pytest.mark.parametrize("engine", [name for name in ENGINES if name != "arrow"])
def test_every_engine_counts_and_keeps_the_same(tmp_path: Path, engine: str):
    rows = table(np.random.default_rng(14))
    here, there = ENGINES["arrow"](rows, tmp_path), ENGINES[engine](rows, tmp_path)
    requests = [ask(key, bounds=per_person(3, 1, 2), measures=MEASURES) for key in KEYS]
    requests += [ask("boolean", bounds=ContributionBounds(name, 4, 2, 2), measures=MEASURES) for name in PERSONS]
    given = tuple((key,) for key in (None, -(2**63), 2**63 - 1, 0))
    requests += [Request(("whole",), given, ContributionBounds("person", 2, 2, 2), MEASURES)]
    different = tuple(DistinctCount(name, name, None) for name in ("text", "float", "decimal", "zoned"))
    requests += [Request(("boolean",), None, per_person(3, 2, 2), (*MEASURES, *different))]
    with here.open_snapshot(requests) as ours, there.open_snapshot(requests) as theirs:
        for request in requests:
            assert theirs.collect_totals(request) == ours.collect_totals(request), request.by
