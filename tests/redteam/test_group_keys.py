"""Given keys: for any list of them one row falls in at most one group, and no error repeats one."""

from __future__ import annotations

import datetime as dt
import uuid
from decimal import Decimal
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tightrope as tr
from tests.tables.questions import ask
from tightrope.errors import InputError, PlanError, SchemaError, TightropeError
from tightrope.tables import open_source

NAN, UTC, BERLIN = float("nan"), dt.UTC, ZoneInfo("Europe/Berlin")
TWICE = dt.datetime(2024, 10, 27, 2, 30, tzinfo=BERLIN)
NOON = pd.Timestamp("2024-01-01 12:00")
PRIVATE = "Anna Schmidt"

COLUMNS = {
    "double": (pa.array([0.0, -0.0, 0.1, NAN, None]), [0.0, -0.0, 0, 0.1, np.float32(0.1), NAN, None, Decimal("0.1")]),
    "float": (pa.array([0.1, 0.0], pa.float32()), [0.1, np.float32(0.1), 0.10000000149011612, 0.1000000001, -0.0]),
    "decimal": (
        pa.array([Decimal("0.10"), None], pa.decimal128(10, 2)),
        [Decimal("0.1"), Decimal("0.10"), Decimal("0.101"), 0.1, Decimal("0.1000001")],
    ),
    "wide": (pa.array([Decimal(5), Decimal(10**30)], pa.decimal128(38, 0)), [5, 10**30, np.int64(5), 10**40]),
    "integer": (pa.array([1, 44], pa.int8()), [1, np.int64(1), 44, 300, 257, -212]),
    "boolean": (pa.array([True, False]), [True, False, np.True_]),
    "text": (pa.array(["a", "A", "a\N{COMBINING ACUTE ACCENT}", "á", " a"]), ["a", "A", "á", "a\u0301", "a ", " a"]),
    "micro": (
        pa.array([NOON.to_pydatetime()], pa.timestamp("us")),
        [NOON, NOON + pd.Timedelta(1, "ns"), NOON + pd.Timedelta(999, "ns"), NOON.to_pydatetime()],
    ),
    "nano": (pa.array([NOON.value + 1], pa.timestamp("ns")), [NOON, NOON + pd.Timedelta(1, "ns")]),
    "zoned": (
        pa.array([TWICE, TWICE.replace(fold=1)], pa.timestamp("us", "Europe/Berlin")),
        [TWICE, TWICE.replace(fold=1), TWICE.astimezone(UTC), TWICE.replace(fold=1).astimezone(UTC)],
    ),
    "date": (
        pa.array([dt.date(2024, 1, 1), None]),
        [dt.date(2024, 1, 1), pd.Timestamp("2024-01-01"), np.datetime64("2024-01-01"), None, pd.NaT],
    ),
}  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(sorted(COLUMNS)), st.data())
def test_one_row_falls_in_at_most_one_group(name, data):
    column, candidates = COLUMNS[name]
    keys = data.draw(st.lists(st.sampled_from(range(len(candidates))), min_size=1, max_size=6, unique=True))
    table = open_source(pa.table({"k": column}))
    try:
        answer = table.collect_totals(ask("k", keys=[(candidates[key],) for key in keys]))
    except InputError as refusal:
        assert "different in the types" in str(refusal) or isinstance(refusal, SchemaError)
        return
    assert sum(answer.values["rows"]) <= len(column)
    for number in range(len(column)):
        alone = open_source(pa.table({"k": column.slice(number, 1)}))
        assert sum(alone.collect_totals(ask("k", keys=[(candidates[key],) for key in keys])).values["rows"]) <= 1


@pytest.mark.parametrize("number", [0, 1])
def test_both_hours_that_autumn_repeats_are_groups_of_their_own(number):
    column, (first, second, *_) = COLUMNS["zoned"]
    alone = open_source(pa.table({"k": column.slice(number, 1)}))
    assert sum(alone.collect_totals(ask("k", keys=[(first,), (second,)])).values["rows"]) == 1


@pytest.mark.parametrize(
    ("name", "first", "second"),
    [("micro", 0, 1), ("micro", 1, 2), ("decimal", 0, 1), ("double", 0, 1), ("double", 5, 6), ("zoned", 0, 2),
     ("date", 0, 1), ("date", 3, 4), ("float", 0, 1), ("float", 0, 3)],
)  # fmt: skip
def test_keys_that_are_one_in_the_columns_type_are_refused(name, first, second):
    column, candidates = COLUMNS[name]
    with pytest.raises(InputError, match="different in the types"):
        open_source(pa.table({"k": column})).collect_totals(
            ask("k", keys=[(candidates[first],), (candidates[second],)])
        )


def test_both_instants_of_the_repeated_hour_are_keys():
    column, _ = COLUMNS["zoned"]
    answer = open_source(pa.table({"k": column})).collect_totals(ask("k", keys=[(TWICE.replace(fold=1),), (TWICE,)]))
    assert answer.values["rows"] == (1, 1)


@pytest.mark.parametrize(
    ("column", "keys", "rows"),
    [
        ([0, 1, 1], np.arange(3), [1, 2, 0]),
        ([0, 1, 1], pd.RangeIndex(3), [1, 2, 0]),
        ([dt.date(2024, 1, 1)], pd.date_range("2024-01-01", periods=2), [1, 0]),
        ([dt.date(2024, 1, 1)], np.array(["2024-01-01"], "datetime64[D]"), [1]),
        ([dt.datetime(2024, 1, 1)], pd.date_range("2024-01-01", periods=2), [1, 0]),
        ([dt.datetime(2024, 1, 1)], np.array(["2024-01-01T00"], "datetime64[s]"), [1]),
        (["a"], np.array(["a", "b"]), [1, 0]),
        ([str(uuid.UUID(int=1))], [uuid.UUID(int=1), uuid.UUID(int=2)], [1, 0]),
    ],
)
def test_lists_of_numpy_and_pandas_are_keys(column, keys, rows):
    (key_list,) = {tr.count(by="k", keys=keys).keys}
    table = open_source(pa.table({"k": column}))
    assert list(table.collect_totals(ask("k", keys=list(key_list))).values["rows"]) == rows


@pytest.mark.parametrize("kind", [pa.time64("us"), pa.duration("us"), pa.binary(), pa.list_(pa.int8())])
def test_columns_that_are_no_keys_say_what_to_do(kind):
    with pytest.raises(SchemaError, match=r"cannot be a privacy unit, a group or a value; (make|write)"):
        open_source(pa.table({"k": pa.array([None], kind)})).collect_totals(ask("k"))


@pytest.mark.parametrize(
    "keys",
    [pd.Series([PRIVATE]), pd.DataFrame({"a": [PRIVATE]}), PRIVATE, [[[PRIVATE], 1]], [(PRIVATE, 1)],
     {PRIVATE: 1}.keys(), pa.array([PRIVATE]), np.array(PRIVATE)],
)  # fmt: skip
def test_no_error_repeats_what_was_given_as_keys(keys):
    with pytest.raises((PlanError, TypeError)) as refusal:
        tr.count(by="k", keys=keys)
    assert isinstance(refusal.value, TightropeError)
    assert PRIVATE not in str(refusal.value)


def test_no_error_repeats_a_key_of_another_kind():
    table = open_source(pa.table({"k": [1]}))
    for keys in ([(PRIVATE,)], [(1,), (np.int64(1),)]):
        with pytest.raises(InputError) as refusal:
            table.collect_totals(ask("k", keys=keys))
        assert PRIVATE not in str(refusal.value)
