"""Couplings on tables: on every engine, the output's law is the target for every group, and strays stop everything."""

from __future__ import annotations

import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import stats

from tests.tables.every_engine import ENGINES
from tightrope.errors import EngineError, InputError, SchemaError, TightropeError
from tightrope.tables import Table
from tightrope.transport.couplings.mechanism import CouplingMechanism
from tightrope.transport.on_tables.collection import DrawJob, NamedPoints, PointNames, apply_table

N = 20_000
LAWS = {"a": [0.5, 0.5, 0.0], "b": [0.0, 0.25, 0.75]}
TARGET = [0.25, 0.5, 0.25]
COST = [[0, 1, 2], [1, 0, 1], [2, 1, 0]]
TOWNS = ["Bergen", "Oslo", "Tromsø"]
MECHANISM = CouplingMechanism.fit(LAWS, COST, target=TARGET)
ALPHA = 1e-6
Opened = Callable[[pa.Table], Table]


@pytest.fixture(params=sorted(ENGINES))
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Opened:
    return lambda arrow: ENGINES[request.param](arrow, tmp_path)


def people(rows: int = N) -> pa.Table:
    """Values in the exact proportions of their group's law."""
    towns = [
        name
        for group in LAWS
        for name, share in zip(TOWNS, LAWS[group], strict=True)
        for _ in range(int(share * rows / 2))
    ]
    return pa.table({"town": towns, "group": ["a"] * (rows // 2) + ["b"] * (rows // 2), "id": range(rows)})


def test_every_group_has_the_targets_law(opened: Opened, tmp_path: Path) -> None:
    path = tmp_path / "out.parquet"
    assert apply_table(MECHANISM, opened(people()), "town", "group", path, points=TOWNS, keep=["id"]) == N
    back = pq.read_table(path).sort_by("id")
    assert back.column_names == ["town", "id"]
    assert back["id"].to_pylist() == list(range(N))
    for half in (slice(0, N // 2), slice(N // 2, N)):
        found = Counter(back["town"].to_pylist()[half])
        # the proportions of the values are exact, so the spread is below that of independent draws
        assert stats.chisquare([found[town] for town in TOWNS], np.array(TARGET) * N / 2).pvalue > ALPHA


def test_each_row_is_drawn_from_its_own_row_of_the_plan(opened: Opened, tmp_path: Path) -> None:
    path, table = tmp_path / "out.parquet", people()
    apply_table(MECHANISM, opened(table), "town", "group", path, points=TOWNS, keep=["id"])
    drawn = pq.read_table(path).sort_by("id")["town"].to_pylist()
    for group in LAWS:
        plan = MECHANISM.plan_matrix(group).toarray()
        for x, town in enumerate(TOWNS):
            rows = [i for i, row in enumerate(table.to_pylist()) if (row["town"], row["group"]) == (town, group)]
            found = Counter(drawn[i] for i in rows)
            possible = [y for y in range(3) if plan[x, y] > 0]
            assert set(found) <= {TOWNS[y] for y in possible}
            if len(possible) > 1:
                expected = plan[x, possible] / plan[x].sum() * len(rows)
                assert stats.chisquare([found[TOWNS[y]] for y in possible], expected).pvalue > ALPHA


def test_two_runs_draw_twice(opened: Opened, tmp_path: Path) -> None:
    coin = CouplingMechanism.fit({1: [0.0, 1.0], 2: [1.0, 0.0]}, [[0, 1], [1, 0]], target=[0.5, 0.5])
    table = opened(pa.table({"v": [10, 20] * 1000, "g": pa.array([2, 1] * 1000, pa.int16()), "id": range(2000)}))
    for name in ("a.parquet", "b.parquet"):
        apply_table(coin, table, "v", "g", tmp_path / name, points=[10, 20], keep=["id"])
    first, second = (pq.read_table(tmp_path / name).sort_by("id") for name in ("a.parquet", "b.parquet"))
    assert set(first["v"].to_pylist()) == {10, 20}
    same = int(np.sum(first["v"].to_numpy() == second["v"].to_numpy()))
    assert stats.binomtest(same, 2000).pvalue > ALPHA


def test_a_target_with_points_of_its_own(tmp_path: Path) -> None:
    halves = CouplingMechanism.fit({"a": [1.0, 0.0, 0.0]}, [[0, 1], [0, 1], [0, 1]], target=[0.5, 0.5])
    table = pa.table({"town": ["Bergen"] * 1000, "group": ["a"] * 1000})
    points = PointNames.from_names(TOWNS, ["west", "east"])
    apply_table(halves, table, "town", "group", tmp_path / "out.parquet", points=points)
    found = Counter(pq.read_table(tmp_path / "out.parquet")["town"].to_pylist())
    assert stats.binomtest(found["east"], 1000).pvalue > ALPHA
    with pytest.raises(InputError, match=r"\(3, 2\), as in the mechanism"):
        apply_table(halves, table, "town", "group", tmp_path / "other.parquet", points=TOWNS)


def strays(column: str, strange: list[Any]) -> pa.Table:
    table = people(400)
    values = table[column].to_pylist()
    values[10 : 10 + len(strange)] = strange
    return table.set_column(table.column_names.index(column), column, pa.array(values))


@pytest.mark.parametrize(
    ("column", "strange", "says"),
    [
        ("group", ["Anna Schmidt", None], "2 of 400 rows have unknown groups"),
        (
            "town",
            ["Anna Schmidt", None, ""],
            "3 of 400 rows have values that are not among the points",
        ),
    ],
)
def test_strays_stop_everything(column: str, strange: list[Any], says: str, opened: Opened, tmp_path: Path) -> None:
    table = opened(strays(column, strange))
    before = set(tmp_path.iterdir())
    with pytest.raises(InputError, match=says) as refusal:
        apply_table(MECHANISM, table, "town", "group", tmp_path / "out.parquet", points=TOWNS)
    assert "Anna" not in "".join(traceback.format_exception(refusal.value))
    assert set(tmp_path.iterdir()) == before


def test_an_engine_that_fails_for_another_reason_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> Any:
        raise OSError("disk")

    monkeypatch.setattr(pq.ParquetWriter, "write_table", fail)
    with pytest.raises(EngineError, match="failed to write"):
        apply_table(MECHANISM, people(), "town", "group", tmp_path / "out.parquet", points=TOWNS)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("value", "group", "options", "error", "says"),
    [
        ("twn", "group", {}, SchemaError, "did you mean 'town'"),
        ("town", "grup", {}, SchemaError, "did you mean 'group'"),
        ("id", "group", {}, SchemaError, "must be of type text"),
        ("town", "id", {}, SchemaError, "must be of type text"),
        ("town", "group", {"keep": ["group"]}, InputError, "keep: cannot include"),
        ("town", "group", {"keep": ["town"]}, InputError, "keep: cannot include"),
        ("town", "group", {"points": TOWNS[1:]}, InputError, r"\(3, 3\), as in the mechanism"),
        ("town", "group", {"points": TOWNS[:2] * 2}, InputError, "without repetitions"),
    ],
)
def test_requests_that_are_refused(
    value: str, group: str, options: dict[str, Any], error: type[TightropeError], says: str, tmp_path: Path
) -> None:
    with pytest.raises(error, match=says):
        apply_table(MECHANISM, people(), value, group, tmp_path / "out.parquet", **{"points": TOWNS, **options})
    assert list(tmp_path.iterdir()) == []


def test_what_travels_holds_no_memory() -> None:
    remembering = CouplingMechanism.fit(LAWS, COST, target=TARGET)
    remembering.apply([0, 1], "a", person=["Anna", "Bert"])
    assert remembering.memory
    assert (
        DrawJob.from_mechanism(remembering, NamedPoints("town", PointNames.from_names(TOWNS)), "group").mechanism.memory
        == {}
    )


def test_the_place_of_a_row_does_not_tell_its_group(tmp_path: Path) -> None:
    """The table is sorted by group, as tables are: draws in its order would tell the group of every row."""
    mechanism = CouplingMechanism.fit({"a": [0.5, 0.5], "b": [0.5, 0.5]}, [[0, 1], [1, 0]])
    rows = pa.table({"v": ["p", "q"] * 1000, "g": ["a"] * 1000 + ["b"] * 1000})
    apply_table(mechanism, rows, "v", "g", tmp_path / "out.parquet", points=["p", "q"])
    assert pq.read_table(tmp_path / "out.parquet")["v"].to_pylist() == ["p"] * 1000 + ["q"] * 1000
