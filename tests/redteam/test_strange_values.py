"""Values that one person brings: none stops the others' answer, stands out of order, or makes two people one."""

from __future__ import annotations

import datetime as dt
import itertools
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import tightrope as tr
from tightrope.tables import ContributionBounds, GroupTotals, Measure, Request, open_source

ROWS = Measure("rows", None, None)
NO_TIME = -(2**63)


def counted(source: object, types: dict[str, str] | None = None) -> dict[object, int]:
    """Rows by key, one row of a person."""
    bounds = ContributionBounds("person", 1, 1, 1)
    answer: GroupTotals = open_source(source, types=types).collect_totals(Request(("k",), None, bounds, (ROWS,)))
    return dict(zip(answer.keys, answer.values["rows"], strict=True))


def moved(some: dict[object, int], other: dict[object, int]) -> int:
    return sum(abs(some.get(key, 0) - other.get(key, 0)) for key in some | other)


CLOSE = {
    "number": ("9007199254740993", "9007199254740992"),
    "number ": ("0.1", "0.10000000000000000001"),
    "number  ": ("3", "2.99999999999999999999"),
    "number   ": ("0", "1e-400"),
    "number    ": ("3", "299999999999999999999e-20"),
    "integer   ": ("3", "2.99999999999999999999"),
    "integer    ": ("3", "299999999999999999999e-20"),
    "integer": ("1.7", "2.2"),
    "integer ": ("3", "2.6"),
}


@pytest.mark.parametrize("kind", CLOSE)
def test_two_people_whose_numbers_are_near_are_never_one(tmp_path: Path, kind: str):
    """As one, they would have one row; when one of them leaves, the other's row would come in its place."""
    types, moves = {"person": kind.strip()}, []
    for number, keys in enumerate(itertools.islice(itertools.product("abc", repeat=4), 5, None, 8)):
        rows = list(zip(CLOSE[kind] * 2, keys, strict=True))
        both, alone = tmp_path / f"both{number}.csv", tmp_path / f"alone{number}.csv"
        both.write_text("person,k\n" + "".join(f"{person},{key}\n" for person, key in rows))
        alone.write_text("person,k\n" + "".join(f"{person},{key}\n" for person, key in rows[::2]))
        moves.append(moved(counted(both, types), counted(alone, types)))
    assert max(moves) <= 1


@pytest.mark.parametrize("near", [Decimal("2.99999999999999999999"), Fraction(3 * 10**20 - 1, 10**20)])
def test_objects_that_are_near_a_whole_number_are_not_that_person(near):
    for key in "bcdefghijk":
        frame = pd.DataFrame({"person": pd.Series([3, near], dtype=object), "k": ["a", key]})
        assert counted(frame, {"person": "number"}) == {("a",): 1}


def test_numbers_are_read_as_before_however_they_are_written(tmp_path: Path):
    fields = ["3.000000000000000000", "1.5e1", "2.5", "1.000000e+02", "9007199254740991.0", "1e300", "-0.1", "1e-300"]
    (tmp_path / "p.csv").write_text("person,k\n" + "".join(f"{place},{field}\n" for place, field in enumerate(fields)))
    assert set(counted(tmp_path / "p.csv", {"k": "number"})) == {(float(field),) for field in fields}


@pytest.mark.parametrize(("dtype", "end"), [(np.float64, 2**53), (np.float32, 2**24)])
def test_floats_that_name_one_person_only_are_people(dtype, end):
    known = [0.0, -0.0, 1.0, -5.0, end - 1.0]
    strange = [float(end), -float(end), 0.5, np.nan, np.inf, -np.inf]
    frame = pd.DataFrame({"person": np.array(known + strange, dtype), "k": [f"k{i}" for i in range(11)]})
    kept = counted(frame)
    assert len(kept) == 4 and set(kept) <= {(f"k{i}",) for i in range(5)}


@pytest.mark.parametrize("zone", [None, "UTC"])
@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_no_instant_is_out_of_order(unit, zone):
    """Not-a-time equals nothing: among the keys, it left their order to the engine, and so to one person."""
    ticks = [*range(40_000, 0, -1_000), NO_TIME, 2**63 - 1, -(2**63) + 1, None]
    kind = pa.timestamp(unit, zone)
    table = pa.table({"k": pa.array(ticks, pa.int64()).cast(kind, safe=False), "person": np.arange(len(ticks))})
    request = Request(("k",), None, ContributionBounds("person", 1, 1, 1), (ROWS,))
    keys = [key for (key,) in open_source(table).collect_totals(request).keys]
    assert keys[0] is None and all(key == key for key in keys)  # noqa: PLR0124
    assert keys[1:] == sorted(keys[1:])
    assert len(keys) >= 41


def test_text_with_half_a_letter_is_missing_and_stops_nobody():
    text = pd.array(["a", "\ud800", "b"], dtype=pd.StringDtype("python"))
    frame = pd.DataFrame({"k": text, "person": [1, 2, 3]})
    assert counted(frame) == {("a",): 1, ("b",): 1, (None,): 1}
    kept = tr.Session(frame, privacy_unit="k", budget=tr.Budget(epsilon=1, delta=1e-8), max_rows=1)
    assert len(kept.plan([tr.count()]).release()[0].rows) == 1


@pytest.mark.parametrize("kind", ["text", "integer", "number", "boolean", "date", "timestamp"])
def test_any_field_of_a_csv_file_has_its_kind_or_is_missing(tmp_path: Path, kind: str):
    fields = ["1.0", "1.7", "1e3", "0x1F", "1e400", "-inf", "nan", "infinity", "epoch", "290309-12-22 (BC)", "t", "+5"]
    fields += ["2024-02-30", "24:00", "2024-01-01 25:00", "٣", "1_000", "true", "\x00", "a\x00b", "=1+1", "9" * 400]
    fields += ["99999-01-01"]
    path = tmp_path / "p.csv"
    path.write_text("person,k\n" + "".join(f"{place},{field}\n" for place, field in enumerate(fields)))
    found = counted(path, {"k": kind})
    assert sum(found.values()) == len(fields)
    wanted = {"integer": int, "text": str, "number": float, "boolean": bool, "date": dt.date, "timestamp": dt.datetime}
    assert all(key is None or type(key) is wanted[kind] for (key,) in found)
    if kind == "integer":
        assert {(1,), (5,), (1000,), (None,)} == set(found)
