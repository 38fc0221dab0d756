"""Files and frames in which one person's values decide a type, a record or a failure: by rule, they decide nothing."""

from __future__ import annotations

import datetime as dt
import os
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tightrope as tr
from tests.tables.questions import COUNT, ask, mean, per_person
from tightrope.errors import InputError, PlanError, SchemaError
from tightrope.tables import open_source

PRIVATE = "Anna Schmidt"
NAN = float("nan")


def parquet(folder: Path, name: str = "people.parquet", **columns: object) -> Path:
    path = folder / name
    pq.write_table(pa.table(columns), path)
    return path


def csv(folder: Path, text: str | bytes) -> Path:
    path = folder / "people.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


# A file that is replaced


def test_a_parquet_file_that_was_replaced_is_refused(tmp_path):
    table = open_source(parquet(tmp_path, k=["a"] * 3))
    parquet(tmp_path, "other.parquet", k=["b"] * 3).replace(tmp_path / "people.parquet")
    with pytest.raises(InputError, match="has changed since"):
        table.collect_totals(ask("k"))


def test_a_file_that_is_replaced_while_it_is_read_is_refused(tmp_path, monkeypatch):
    from tightrope.tables.sources import parquet as reading

    path = parquet(tmp_path, k=pa.array([b"a"] * 3).cast("string"), t=pa.array([0] * 3, pa.timestamp("s")))
    table, whole = open_source(path), reading._read_batches

    def replaced(*asked):
        for batch in whole(*asked):
            parquet(tmp_path, k=["b"] * 4, t=pa.array([0] * 4, pa.timestamp("s")))
            yield batch

    monkeypatch.setattr(reading, "_read_batches", replaced)
    with pytest.raises(InputError, match="has changed since"):
        table.collect_totals(ask("k", "t"))


@pytest.mark.parametrize("name", ["people.csv", "people.parquet", "people.duckdb"])
def test_a_file_that_is_touched_is_another_file(tmp_path, name):
    import duckdb

    path = tmp_path / name
    if name.endswith("csv"):
        path.write_text("k\na\n")
    elif name.endswith("parquet"):
        parquet(tmp_path, k=["a"])
    else:
        with duckdb.connect(path) as connection:
            connection.execute("CREATE TABLE t AS SELECT 'a' AS k")
    table = open_source(path, table="t" if name.endswith("duckdb") else None)
    assert table.collect_totals(ask("k")).keys == (("a",),)
    os.utime(path, (1, 1))
    with pytest.raises(InputError, match="has changed since"):
        table.collect_totals(ask("k"))


def test_a_file_that_cannot_be_read_is_found_when_it_is_read_and_is_charged(tmp_path):
    path = csv(tmp_path, "k,x\na,1\nb\n")
    session = tr.Session(path, privacy_unit=None, budget=tr.Budget(epsilon=1, delta=1e-6))
    plan = session.plan([tr.count(by="k")])
    plan.dry_run()
    with pytest.raises(InputError, match=r"mend the line.*charged before it reads"):
        plan.release()
    assert session.spent["budget_fraction"] == "1"


# Folders of parts


def parts(folder: Path, *columns: pa.Array) -> Path:
    place = folder / "parts"
    place.mkdir()
    for number, column in enumerate(columns):
        pq.write_table(pa.table({"x": column}), place / f"part-{number}.parquet")
    return place


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (pa.array([1], pa.int64()), pa.array([1.5])),
        (pa.array([1], pa.int64()), pa.array([1], pa.int32())),
        (pa.array(["1"]), pa.array([1])),
        (pa.array([0], pa.timestamp("ms")), pa.array([0], pa.timestamp("us"))),
    ],
)
def test_no_parts_type_wins_over_anothers(tmp_path, first, second):
    with pytest.raises(SchemaError, match="parts 1 and 2 of 2"):
        open_source(parts(tmp_path, first, second))


def test_parts_with_other_columns_are_refused_and_marks_of_writers_are_not_read(tmp_path):
    folder = parts(tmp_path, pa.array([1, 2]), pa.array([3]))
    for name in ("_metadata", ".part-0.parquet.crc"):
        (folder / name).write_bytes(b"nothing of the kind")
    assert open_source(folder).collect_totals(ask()).values["rows"] == (3,)
    pq.write_table(pa.table({"x": [1], "y": [2]}), folder / "part-9.parquet")
    with pytest.raises(SchemaError, match="parts 1 and 3 of 3"):
        open_source(folder)
    for name in (".hidden.parquet", "_metadata.parquet"):
        (folder / name).write_bytes(b"nothing of the kind")
        with pytest.raises(InputError, match="does not begin so"):
            open_source(folder)


def test_a_part_that_came_later_is_not_read_and_one_that_went_is_missed(tmp_path):
    folder = parts(tmp_path, pa.array([1, 2]), pa.array([3]))
    table = open_source(folder)
    (folder / "part-1.parquet").unlink()
    with pytest.raises(InputError, match="has changed since"):
        table.collect_totals(ask())


# Objects of pandas


NOBODY = [object(), NAN, b"x", dt.datetime(2024, 1, 1, tzinfo=dt.UTC), "\ud800", 10**40]
MIXED = [1, 2.5, "3", None, True, PRIVATE, dt.date(2024, 1, 1), dt.datetime(2024, 1, 1, 5), np.int8(7), *NOBODY]


@pytest.mark.parametrize(
    ("kind", "keys"),
    [
        ("integer", [None, 1, 7]),
        ("text", [None, "3", PRIVATE]),
        ("boolean", [None, True]),
        ("date", [None, dt.date(2024, 1, 1)]),
        ("timestamp", [None, dt.datetime(2024, 1, 1, 5)]),
        ("number", [None, 1.0, 2.5, 7.0, 1e40]),
    ],
)
def test_objects_have_the_declared_kind_or_are_missing(kind, keys):
    table = open_source(pd.DataFrame({"k": pd.Series(MIXED, dtype=object)}), types={"k": kind})
    assert table.schema.find_column("k").kind == kind
    assert table.collect_totals(ask("k")).keys == tuple((key,) for key in keys)


def test_one_persons_object_changes_no_type():
    plain = pd.DataFrame({"k": pd.Series(["1", "2"], dtype=object)})
    hostile = pd.DataFrame({"k": pd.Series(["1", "2", 3.5], dtype=object)})
    for frame in (plain, hostile, hostile.astype("category")):
        assert open_source(frame).schema.find_column("k").kind == "other"
        with pytest.raises(SchemaError, match="types="):
            open_source(frame).collect_totals(ask("k"))
        declared = open_source(frame, types={"k": "text"})
        assert declared.collect_totals(ask("k", keys=[("1",), ("2",)])).values["rows"] == (1, 1)


class _Unwilling:
    """What fails whatever it is asked."""

    def _refuse(self, *_):
        raise RuntimeError(PRIVATE)

    __str__ = __float__ = __int__ = __bool__ = __iter__ = __eq__ = __hash__ = __lt__ = __gt__ = __trunc__ = _refuse


class _Text(_Unwilling, str):
    pass


class _Number(_Unwilling, float):
    pass


class _Integer(_Unwilling, int):
    pass


class _Day(_Unwilling, dt.date):
    pass


class _Instant(_Unwilling, dt.datetime):
    year = property(_Unwilling._refuse)


FAR = [pd.Timestamp(np.datetime64(day, "s")) for day in ("20000-01-01", "-0500-01-01", "0000-12-31", "10000-01-01")]
UNWILLING = [
    *FAR,
    _Text("a"),
    _Number(1.5),
    _Number("nan"),
    _Integer(7),
    _Day(2024, 1, 1),
    _Instant(2024, 1, 1),
    _Unwilling(),
]
FITTING = {"integer": 1, "number": 0.5, "text": "x", "boolean": True, "date": dt.date(2020, 1, 1),
           "timestamp": dt.datetime(2020, 1, 1, 5, 6, 7, 89)}  # fmt: skip


@pytest.mark.parametrize("kind", FITTING)
@pytest.mark.parametrize("place", range(len(UNWILLING)))
def test_a_value_that_fails_when_it_is_asked_is_its_own_row_alone(kind, place):
    """It is missing, or what it holds; the row beside it is read in any case."""
    frame = pd.DataFrame({"k": pd.Series([FITTING[kind], None], dtype=object)})
    frame.at[1, "k"] = UNWILLING[place]
    found = open_source(frame, types={"k": kind}).collect_totals(ask("k"))
    assert dict(zip(found.keys, found.values["rows"], strict=True))[(FITTING[kind],)] == 1
    assert len(found.keys) == 2
    if kind == "timestamp":
        assert found.keys[0] == (None,)


def test_instants_that_fit_are_kept_to_the_microsecond():
    instants = [pd.Timestamp("2024-01-01 01:02:03.000004567"), pd.Timestamp.max, dt.datetime(1, 1, 1),
                dt.datetime(9999, 1, 1, 23, 59, 59, 999_999), dt.datetime(2020, 10, 25, 2, 30, fold=1)]  # fmt: skip
    frame = pd.DataFrame({"k": pd.Series(instants, dtype=object)})
    assert {key for (key,) in open_source(frame, types={"k": "timestamp"}).collect_totals(ask("k")).keys} == {
        dt.datetime(2024, 1, 1, 1, 2, 3, 4), dt.datetime(1, 1, 1), dt.datetime(2262, 4, 11, 23, 47, 16, 854_775),
        dt.datetime(9999, 1, 1, 23, 59, 59, 999_999), dt.datetime(2020, 10, 25, 2, 30)}  # fmt: skip


# Values that no type can hold


def test_instants_and_days_out_of_range_are_missing():
    end = 2**62
    columns = {
        "seconds": pa.array([0, end, -end], pa.int64()).cast(pa.timestamp("s")),
        "zoned": pa.array([0, end, -end], pa.int64()).cast(pa.timestamp("ms", "Asia/Tokyo")),
        "day": pa.array([0, 86_400_000 * 3, 5], pa.int64()).cast(pa.date64()),
        "far": pa.array([0, end // 86_400_000 * 86_400_000, 86_400_000], pa.int64()).cast(pa.date64()),
    }
    table = open_source(pa.table(columns))
    start = dt.datetime(1970, 1, 1)
    assert table.collect_totals(ask("seconds")).keys == ((None,), (start,))
    assert table.collect_totals(ask("zoned")).keys == ((None,), (start.replace(tzinfo=dt.UTC),))
    assert table.collect_totals(ask("day")).keys == ((None,), (start.date(),), (dt.date(1970, 1, 4),))
    assert table.collect_totals(ask("far")).keys == ((None,), (start.date(),), (dt.date(1970, 1, 2),))


BROKEN = [b"a", b"\xff\xfe", b"b", b"caf\xc3", "é".encode(), None]


@pytest.mark.parametrize("source", ["arrow", "parquet", "dictionary", "csv"])
def test_text_that_is_not_utf8_is_missing(tmp_path, source):
    column = pa.array(BROKEN, pa.binary()).view(pa.string())
    if source == "csv":
        table = open_source(csv(tmp_path, b"k,x\n" + b"".join((k or b"") + b",1\n" for k in BROKEN)))
    elif source == "parquet":
        table = open_source(parquet(tmp_path, k=column))
    else:
        table = open_source(pa.table({"k": column.dictionary_encode() if source == "dictionary" else column}))
    answer = table.collect_totals(ask("k"))
    assert answer.keys == ((None,), ("a",), ("b",), ("é",))
    assert answer.values["rows"] == (3, 1, 1, 1)


def test_decimals_of_256_bits_and_other_types_are_no_failure_of_the_rest():
    wide = pa.array([1, 2], pa.int64()).cast(pa.decimal256(60, 2))
    table = open_source(pa.table({"wide": wide, "k": ["a", "b"]}))
    assert table.schema.find_column("wide").kind == "other"
    assert table.collect_totals(ask("k")).values["rows"] == (1, 1)


def test_a_lazy_frame_is_computed_once_for_a_plan():
    computed: list[int] = []

    def seen(x: pl.Series) -> pl.Series:
        computed.append(len(x))
        return x

    lazy = pl.LazyFrame({"person": [1, 1, 2], "x": [1.0, 2.0, 3.0]}).with_columns(
        pl.col("x").map_batches(seen, return_dtype=pl.Float64)
    )
    session = tr.Session(lazy, privacy_unit="person", max_rows=1, budget=tr.Budget(epsilon=5, delta=1e-6))
    session.plan([tr.count(), tr.sum("x", bounds=(0, 5)), tr.mean("x", bounds=(0, 5), by="x", keys=[1.0])]).release()
    assert sum(computed) == 3


# CSV


def counted(path: Path, **options: object) -> dict[object, int]:
    answer = open_source(path, **options).collect_totals(ask("k"))
    return {key: rows for (key,), rows in zip(answer.keys, answer.values["rows"], strict=True)}


@pytest.mark.parametrize(
    "hostile",
    [
        f'"{PRIVATE},1',  # swallows what follows, up to the next quote
        f'"{PRIVATE}"x,1',
        f'{PRIVATE}",1',
        f'x"{PRIVATE}",1',
        f'"{PRIVATE}""x,1',
        f"{PRIVATE}",
        f"{PRIVATE},1,2",
        f"{PRIVATE}\r1,x",  # another reader's line end
        f'"{PRIVATE}\n",1',
        f'"{PRIVATE}\r",1',
        "",
    ],
)
@pytest.mark.parametrize("after", ["b,2\n", '"b",2\n', 'b,"2"\nc,3\n', ""])
def test_a_stray_quote_or_field_swallows_nobodys_row(tmp_path, hostile, after):
    path = csv(tmp_path, f"k,x\na,1\n{hostile}\n{after}")
    if not hostile and not after:  # one blank line at the end, which no row stands behind
        assert counted(path) == {"a": 1}
        return
    with pytest.raises(InputError, match="mend the line") as refusal:
        counted(path)
    assert PRIVATE not in str(refusal.value)


def test_what_stands_in_quotes_is_a_field(tmp_path):
    path = csv(tmp_path, 'k,x\r\n"a,b",1\r\n"say ""hi""",2\r\n"",3\r\n,4\r\n"""",5')
    assert counted(path) == {None: 1, "": 1, '"': 1, "a,b": 1, 'say "hi"': 1}


@pytest.mark.parametrize("block", [1, 7, 64])
def test_blocks_end_where_records_do(tmp_path, monkeypatch, block):
    from tightrope.tables.sources import csv as csv_lines

    monkeypatch.setattr(csv_lines, "CSV_BLOCK", block)
    lines = [f'"k{number},\n{number}",{number}\r\n' for number in range(40)]
    path = csv(tmp_path, "k,x\r\n" + "".join(lines))
    assert counted(path, dialect={"newlines": True}) == {f"k{number},\n{number}": 1 for number in range(40)}
    with pytest.raises(InputError, match="mend the line"):
        counted(path)


def test_the_dialect_is_declared(tmp_path):
    path = csv(tmp_path, b"a;1,5;'x;y';31.12.2024;1.2.2024 03:04\nb;1.5;y;2024-12-31;?\nc;-7,25;;1.1.0001;\n")
    dialect = {"delimiter": ";", "quote": "'", "decimal": ",", "header": ["k", "n", "t", "d", "i"],
               "date_format": "%d.%m.%Y", "timestamp_format": "%d.%m.%Y %H:%M"}  # fmt: skip
    table = open_source(path, types={"n": "number", "d": "date", "i": "timestamp"}, dialect=dialect)
    assert table.collect_totals(ask("k")).keys == (("a",), ("b",), ("c",))
    assert table.collect_totals(ask("n")).keys == ((None,), (-7.25,), (1.5,))
    assert table.collect_totals(ask("t")).keys == ((None,), ("x;y",), ("y",))
    assert table.collect_totals(ask("d")).keys == ((None,), (dt.date(1, 1, 1),), (dt.date(2024, 12, 31),))
    assert table.collect_totals(ask("i")).keys == ((None,), (dt.datetime(2024, 2, 1, 3, 4),))


@pytest.mark.parametrize(("encoding", "key"), [("latin-1", "é\x80"), ("windows-1252", "é€"), ("utf-8", "é€")])
def test_encodings(tmp_path, encoding, key):
    path = csv(tmp_path, f"k,x\n{key},1\n".encode(encoding.replace("windows-", "cp")))
    assert counted(path, dialect={"encoding": encoding}) == {key: 1}
    unknown = csv(tmp_path, b"k,x\n\x81,1\n")
    assert counted(unknown, dialect={"encoding": "windows-1252"}) == {None: 1}


@pytest.mark.parametrize(
    ("dialect", "says"),
    [
        ({"delimeter": ";"}, "did you mean 'delimiter'"),
        ({"delimiter": ";;"}, "one letter"),
        ({"delimiter": "\n"}, "one letter"),
        ({"delimiter": "1"}, "one letter"),
        ({"quote": ","}, "another letter"),
        ({"decimal": ";"}, "'.' or ','"),
        ({"encoding": "utf-16"}, "one of 'utf-8'"),
        ({"header": False}, "the names of the columns"),
        ({"header": ["a", "A"]}, "upper and lower case"),
        ({"date_format": "dd.mm.yyyy"}, "a format such as"),
        ({"newlines": 1}, "True or False"),
    ],
)
def test_dialects_that_cannot_be_are_refused(tmp_path, dialect, says):
    with pytest.raises(InputError, match=says):
        open_source(csv(tmp_path, "k,x\na,1\n"), dialect=dialect)


@pytest.mark.parametrize("mark", [";", "\t", "|"])
def test_a_header_with_another_delimiter_says_so(tmp_path, mark):
    with pytest.raises(InputError, match="say dialect="):
        open_source(csv(tmp_path, f"k{mark}x\na{mark}1\n"))


def test_a_plan_file_declares_the_dialect(tmp_path):
    from tightrope.release.plan_file import load_plan_file

    csv(tmp_path, "k;x\na;1,5\nb;2,5\n")
    text = """
    [source]
    path = "people.csv"
    [source.types]
    x = "number"
    [source.dialect]
    delimiter = ";"
    decimal = ","
    [privacy_unit]
    each_row = true
    [budget]
    epsilon = 5
    delta = 1e-6
    [[question]]
    kind = "sum"
    column = "x"
    bounds = [0, 5]
    """
    (tmp_path / "plan.toml").write_text(text)
    session = load_plan_file(tmp_path / "plan.toml").open_session()
    assert session._table.collect_totals(ask(measures=mean("x", step="0.1"))).values["sum"] == (40,)
    (tmp_path / "plan.toml").write_text(text.replace("delimiter", "delimeter"))
    with pytest.raises(PlanError, match="delimiter"):
        load_plan_file(tmp_path / "plan.toml")


def test_an_unfit_field_changes_only_its_own_row(tmp_path):
    rows = ["1,3", "1,oops", "2,1e400", "3,nan", "4,0x10", "5, 7 ", "6,٣"]
    path = csv(tmp_path, "person,x\n" + "\n".join(rows) + "\n")
    request = ask(bounds=per_person(2), measures=(COUNT, *mean("x")))
    answer = open_source(path, types={"person": "integer", "x": "number"}).collect_totals(request)
    assert answer.values["rows"] == (7,)
    assert answer.values["sum"][0] <= 10 * answer.values["usable"][0]
