"""Values of persons: every engine computes the same integers, and one person changes them by one row in each group."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tests.tables.every_engine import ENGINES
from tightrope.errors import InputError
from tightrope.tables import ContributionBounds, FixedPoint, Measure, Request
from tightrope.tables.expressions.conditions import make_cut
from tightrope.tables.expressions.leaves import ColumnRef, PersonValue, to_literal
from tightrope.tables.expressions.parsing import parse_expression

ROWS = 600
X = pa.array([None, math.nan, math.inf, -math.inf, 0.5, 1.25, -0.5, -0.0, 1e308, 0.1, 0.2, 1e15])
LATE = parse_expression("x > 0.15")
VALUES = {
    "rows": PersonValue("count", None),
    "late": PersonValue("count", LATE),
    "sum": PersonValue("sum", ColumnRef("x"), "0.01"),
    "any": PersonValue("any", LATE),
}
ONCE = ContributionBounds("person", 1, 1, 1)


def table(seed: int, rows: int = ROWS) -> pa.Table:
    draw = np.random.default_rng(seed)
    people = [None if number == 0 else f"p{number}" for number in draw.integers(0, 90, rows)]
    cities = pa.array(["a", "b", "é" * 70, None]).take(pa.array(draw.integers(0, 4, rows)))
    return pa.table({"person": people, "city": cities, "x": X.take(pa.array(draw.integers(0, len(X), rows)))})


def measures(value: PersonValue) -> tuple[Measure, ...]:
    grid = FixedPoint(-3.0, 20.0, Decimal("0.01"), 0)
    return (Measure("persons", value, None), Measure("sum", value, grid))


def requests() -> list[Request]:
    made = [Request((), ((),), ONCE, measures(value), person_value=value) for value in VALUES.values()]
    for groups in (1, 2, 4):
        bounds = ContributionBounds("person", groups, 1, groups)
        made += [Request(("city",), None, bounds, measures(value), person_value=value) for value in VALUES.values()]
        made.append(
            Request(("city",), (("a",), (None,)), bounds, measures(VALUES["sum"]), LATE, person_value=VALUES["sum"])
        )
    cut = make_cut(VALUES["rows"], [to_literal(edge) for edge in (1, 5, 8)])
    counted = (Measure("persons", None, None),)
    bins = ((None,), (1,), (5,), (8,))
    made.append(Request((cut,), bins, ONCE, counted, person_value=VALUES["rows"]))
    made.append(
        Request(("city", cut), None, ContributionBounds("person", 2, 1, 2), counted, person_value=VALUES["rows"])
    )
    return made


def collected(engine: str, rows: pa.Table, folder: Path) -> list[Any]:
    opened = ENGINES[engine](rows, folder)
    return [(totals.keys, totals.values) for totals in map(opened.collect_totals, requests())]


@pytest.mark.slow
@pytest.mark.parametrize("engine", [name for name in ENGINES if name != "arrow"])
def test_every_engine_computes_the_same_values(engine: str, tmp_path: Path) -> None:
    rows = table(3)
    assert collected(engine, rows, tmp_path) == collected("arrow", rows, tmp_path)


def value_of(name: str, xs: list[float | None]) -> float | None:
    """The value of a person, from the values of their rows."""
    present = [x for x in xs if x is not None and not math.isnan(x)]
    late = [x > 0.15 for x in present]
    if name == "rows":
        return len(xs)
    if name == "late":
        return sum(late)
    if name == "any":
        return None if not late else float(any(late))
    steps = [math.floor(min(max(x, -(2.0**50) * 0.01), 2.0**50 * 0.01) / 0.01 + 0.5) for x in present]
    return None if not steps else min(max(sum(steps), -(2**50)), 2**50) * 0.01


@pytest.mark.parametrize("name", VALUES)
def test_the_integers_are_those_of_each_person_by_hand(name: str, tmp_path: Path) -> None:
    rows = table(8)
    own_rows: dict[str, list[float | None]] = defaultdict(list)
    for person, x in zip(rows["person"].to_pylist(), rows["x"].to_pylist(), strict=True):
        if person is not None:
            own_rows[person].append(x)
    values = [value for value in (value_of(name, xs) for xs in own_rows.values()) if value is not None]
    grid = FixedPoint(-3.0, 20.0, Decimal("0.01"), 0)
    totals = ENGINES["arrow"](rows, tmp_path).collect_totals(
        Request((), ((),), ONCE, measures(VALUES[name]), person_value=VALUES[name])
    )
    assert totals.values["persons"] == (len(values),)
    assert totals.values["sum"] == (sum(map(grid.to_units, values)),)


def changes(first: Any, second: Any, measure: str) -> list[int]:
    """How much a measure differs by group; a group that is missing has none."""
    tables = [dict(zip(totals.keys, totals.values[measure], strict=True)) for totals in (first, second)]
    keys = dict.fromkeys((*tables[0], *tables[1]))
    return [abs(tables[0].get(key, 0) - tables[1].get(key, 0)) for key in keys]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("make_person", [lambda draw: 400, lambda draw: int(draw.integers(1, 30))])
def test_a_person_changes_one_row_of_each_of_their_groups(
    seed: int, make_person: Callable[[np.random.Generator], int], tmp_path: Path
) -> None:
    without, draw = table(seed), np.random.default_rng(seed + 100)
    more = make_person(draw)
    added = pa.table(
        {
            "person": ["new"] * more,
            "city": pa.array(["a", "b", "é" * 70, None]).take(pa.array(draw.integers(0, 4, more))),
            "x": X.take(pa.array(draw.integers(0, len(X), more))),
        }
    )
    both = pa.concat_tables([without, added.cast(without.schema)])
    before, after = (ENGINES["arrow"](rows, tmp_path) for rows in (without, both))
    largest = 2_000  # 20 in steps of 0.01
    for request in requests():
        first, second = before.collect_totals(request), after.collect_totals(request)
        for measure in request.measures:
            moved = [change for change in changes(first, second, measure.name) if change]
            assert len(moved) <= request.bounds.max_groups
            assert max(moved, default=0) <= (1 if measure.fixed_point is None else largest)


def test_values_of_persons_need_a_person() -> None:
    with pytest.raises(InputError, match="person column"):
        Request((), ((),), ContributionBounds(None, 1, 1, 1), measures(VALUES["rows"]), person_value=VALUES["rows"])
