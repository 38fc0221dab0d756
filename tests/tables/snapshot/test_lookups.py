"""Looking up in a public table: each private row meets at most one row there, on every engine, whatever is in it."""

from __future__ import annotations

import datetime as dt
import math
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from tests.tables.every_engine import ENGINES
from tests.tables.questions import COUNT, ask, mean, per_person
from tightrope.errors import InputError, SchemaError
from tightrope.tables import Request, Table, attach_public_tables, open_source, public_table

CITIES = ["Oslo", "oslo", "Rome", None, "Ro\u0301me", ""]
PUBLIC = pa.table({
    "city": ["Oslo", "Rome", "Paris", None, None],
    "region": ["north", "south", "south", "lost", "lost"],
    "height": [23.0, math.nan, 35.0, 1.0, 2.0],
})  # fmt: skip
NONE = (0, 0, 0)
REGION = {"Oslo": "north", "Rome": "south"}


def people(rows: int = 60) -> pa.Table:
    draw = np.random.default_rng(3)
    return pa.table({
        "person": draw.integers(0, 12, rows),
        "city": pa.array([CITIES[place] for place in draw.integers(0, len(CITIES), rows)]),
        "x": draw.integers(0, 10, rows).astype(float),
    })  # fmt: skip


def beside(private: pa.Table, public: Any, **said: Any) -> Table:
    return attach_public_tables(open_source(private), public_table(public, **said))


@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_finds_the_same_and_loses_no_row(tmp_path: Path, engine: str):
    rows = people()
    table = attach_public_tables(ENGINES[engine](rows, tmp_path), public_table(PUBLIC, on="city"))
    expected = Counter(REGION.get(city) for city in rows["city"].to_pylist())
    found = table.collect_totals(ask("region"))
    assert dict(zip(found.keys, found.values["rows"], strict=True)) == {(k,): n for k, n in expected.items()}
    bounded = Request(("region",), None, per_person(3, 1, 2), (COUNT, *mean("height")))
    assert table.collect_totals(bounded) == beside(rows, PUBLIC, on="city").collect_totals(bounded)


KINDS = {
    "boolean": (pa.array([True, False, None]), pa.array([True, False])),
    "date": (pa.array([dt.date(2024, 2, 29), None]), pa.array([dt.date(2024, 2, 29)])),
    "instant": (
        pa.array([dt.datetime(2024, 1, 1, 12, tzinfo=dt.UTC)], pa.timestamp("us", "UTC")),
        pa.array([dt.datetime(2024, 1, 1, 12)], pa.timestamp("s")),
    ),
    "small in large": (pa.array([1, 2], pa.int8()), pa.array([1, 2], pa.int64())),
    "whole in float": (pa.array([1, 2], pa.int64()), pa.array([1.0, 2.5, math.nan])),
    "zeros": (pa.array([0.0, -0.0, math.nan]), pa.array([-0.0])),
}


@pytest.mark.parametrize("engine", ["arrow", "spark", "postgres"])
def test_keys_of_every_kind_meet(tmp_path: Path, engine: str):
    for name, (private, public) in KINDS.items():
        rows = pa.table({"key": private, "person": list(range(len(private)))})
        there = pa.table({"key": public, "said": ["met"] * len(public)})
        table = attach_public_tables(ENGINES[engine](rows, tmp_path), public_table(there, on="key"))
        here = set(public.to_pylist())
        plain = [v.astimezone(dt.UTC).replace(tzinfo=None) if name == "instant" else v for v in private.to_pylist()]
        met = sum(value in here for value in plain if value is not None)
        found = table.collect_totals(ask("said", keys=[("met",)]))
        assert found.values["rows"] == (met,), name


TWICE = {
    "texts": (pa.array(["a", "b", "a"]), pa.array(["a"])),
    "zeros": (pa.array([0.0, -0.0]), pa.array([1.0])),
    "one instant": (
        pa.array([dt.datetime(2024, 1, 1, 0, 0, 0), dt.datetime(2024, 1, 1)], pa.timestamp("ms")),
        pa.array([dt.datetime(2024, 1, 1)], pa.timestamp("us")),
    ),
}


@pytest.mark.parametrize("case", TWICE)
def test_a_key_that_is_there_twice_is_refused(case: str):
    public, private = TWICE[case]
    rows, there = pa.table({"key": private}), pa.table({"key": public, "said": ["x"] * len(public)})
    with pytest.raises(InputError, match="there once"):
        beside(rows, there, on="key")


def test_whole_numbers_that_no_double_holds_are_no_keys_beside_numbers():
    there = pa.table({"key": pa.array([2**53, 2**53 + 1, 5]), "said": ["x", "y", "z"]})
    rows = pa.table({"key": pa.array([2.0**53, 2.0**53 + 2, 5.0])})
    found = beside(rows, there, on="key").collect_totals(ask("said"))
    assert dict(zip(found.keys, found.values["rows"], strict=True)) == {(None,): 2, ("z",): 1}


def test_two_columns_decide_together_and_either_may_be_missing():
    rows = pa.table({"city": ["a", "a", None], "year": [1, 2, 1]})
    there = pa.table({"town": ["a", "a", "a", None], "y": [1, 2, None, 1], "n": [10, 20, 30, 40]})
    found = beside(rows, there, on={"city": "town", "year": "y"}).collect_totals(ask("n"))
    assert dict(zip(found.keys, found.values["rows"], strict=True)) == {(None,): 1, (10,): 1, (20,): 1}


def test_columns_are_chosen_and_called_otherwise():
    rows = pa.table({"city": ["Oslo"], "Region": ["mine"]})
    with pytest.raises(SchemaError, match="does not have") as refused:
        beside(rows, PUBLIC, on="city")
    assert "columns=" in str(refused.value)
    table = beside(rows, PUBLIC, on="city", columns={"place": "region"})
    assert table.schema.column_names == ("city", "Region", "place")
    assert table.private_schema.column_names == ("city", "Region")
    assert beside(rows, PUBLIC, on="city", columns=["height"]).schema.column_names == ("city", "Region", "height")


def test_kinds_that_cannot_be_compared_are_refused():
    rows = pa.table({"code": [1, 2], "when": pa.array([dt.date(2024, 1, 1)] * 2)})
    there = pa.table({"code": ["1", "2"], "when": pa.array([dt.datetime(2024, 1, 1)] * 2, pa.timestamp("us"))})
    for column in ("code", "when"):
        with pytest.raises(SchemaError, match="of one kind"):
            beside(rows, there, on=column, columns={"other": "code"})


def test_what_is_said_wrongly_is_told():
    rows = pa.table({"city": ["Oslo"]})
    for said in ({"on": []}, {"on": 3}, {"on": {"city": 1}}, {"on": "city", "columns": []}):
        with pytest.raises(InputError):
            beside(rows, PUBLIC, **said)
    for said in ({"on": "town"}, {"on": "city", "columns": ["regoin"]}):
        with pytest.raises(SchemaError):
            beside(rows, PUBLIC, **said)
    with pytest.raises(InputError, match=r"tr\.public_table"):
        attach_public_tables(open_source(rows), ["city"])  # type: ignore[list-item]


def test_one_lookup_leads_to_the_next_and_only_used_ones_are_joined():
    rows = pa.table({"city": ["Oslo", "Rome"]})
    lands = pa.table({"region": ["north", "south"], "heads": [1, 2]})
    table = attach_public_tables(open_source(rows), [public_table(PUBLIC, on="city"), public_table(lands, on="region")])
    request = ask("heads")
    assert table.collect_totals(request).keys == ((1,), (2,))
    assert [public.added_schema.column_names for public in table.public_tables_used_by([request])] == [
        ("region", "height"),
        ("heads",),
    ]
    assert len(table.public_tables_used_by([ask("region")])) == 1
    assert table.public_tables_used_by([ask("city")]) == ()


def test_the_digest_is_of_what_is_said(tmp_path: Path):
    frame = PUBLIC.to_pandas()
    frame.to_csv(tmp_path / "cities.csv", index=False)
    rows = pa.table({"city": ["Oslo"]})

    def digest(public: Any, **said: Any) -> str:
        return beside(rows, public, on="city", **said).public_tables[0].content_digest

    first = digest(PUBLIC)
    assert digest(PUBLIC.take([4, 2, 0, 1, 3])) == first
    assert digest(str(tmp_path / "cities.csv"), types={"height": "number"}) == first
    assert digest(PUBLIC, columns=["region"]) != first
    other = PUBLIC.set_column(1, "region", pa.array(["north", "south", "souti", "lost", "lost"]))
    assert digest(other) != first


def test_a_public_table_of_a_million_rows_is_met_row_by_row():
    many = 1_000_000
    there = pa.table({"key": np.arange(many), "even": np.arange(many) % 2 == 0})
    rows = pa.table({"key": np.arange(0, 3 * many, 1_000), "person": np.arange(3_000) % 50})
    table = beside(rows, there, on="key")
    found = table.collect_totals(ask("even", bounds=per_person(60, 60, 60)))
    assert dict(zip(found.keys, found.values["rows"], strict=True)) == {(None,): 2_000, (True,): 1_000}


@pytest.mark.parametrize("seed", range(3))
def test_one_person_more_adds_their_own_bounded_rows_and_nothing_else(seed: int):
    draw = np.random.default_rng(seed)
    rows = people(300).to_pandas()
    hostile = pd.DataFrame({"person": 999, "city": draw.choice(["Oslo", "Rome", "?", "a" * 300], 80), "x": 1e300})
    request = Request(("region",), None, per_person(3, 2, 2), (COUNT, *mean("height", lower=0, upper=30)))
    both, without, alone = (
        _by_key(beside(pa.Table.from_pandas(frame, preserve_index=False), PUBLIC, on="city"), request)
        for frame in (pd.concat([rows, hostile]).sample(frac=1, random_state=seed), rows, hostile)
    )
    for key in both | without:
        assert both.get(key, NONE) == tuple(map(sum, zip(without.get(key, NONE), alone.get(key, NONE), strict=True)))
    assert sum(values[0] for values in alone.values()) <= 3


def _by_key(table: Table, request: Request) -> dict[tuple[object, ...], tuple[int, ...]]:
    found = table.collect_totals(request)
    return dict(zip(found.keys, zip(*found.values.values(), strict=True), strict=True))
