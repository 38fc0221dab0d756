"""Types of columns in every source: what each of its writers makes of a value and NULL, and what we read.

``CASES`` is the table in docs/column-types.md; ``python -m tests.tables.sources.types_by_source`` prints its rows.
"""

from __future__ import annotations

import datetime as dt
import decimal
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from tests.postgres_server import server
from tests.tables.every_engine import postgres_database, spark
from tightrope.tables import Table, open_source

SOMEONE = uuid.UUID("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11")
DAY, HOUR = dt.date(2024, 1, 2), dt.datetime(2024, 1, 2, 3)
INSTANT = HOUR.replace(tzinfo=dt.UTC)
PRICE = decimal.Decimal("1.5")
LARGE = 2**127 - 1
"""The largest integer of 128 bits; decimals of 38 digits do not reach it."""


@dataclass(frozen=True)
class Case:
    """One row: the kind of the column, its value, and the types by source: native name → what makes them.

    Arrow: an array. polars and pandas: a series. DuckDB, PostgreSQL and Spark: SQL of the value.
    """

    title: str
    kind: str
    value: object
    arrow: Mapping[str, pa.Array]
    polars: Mapping[str, pl.Series]
    pandas: Mapping[str, pd.Series]
    duckdb: Mapping[str, str]
    postgres: Mapping[str, str]
    spark: Mapping[str, str]


def arrow(value: Any, *types: pa.DataType) -> dict[str, pa.Array]:
    return {str(kind): pa.array([value, None], kind) for kind in types}


def in_polars(value: Any, *types: Any) -> dict[str, pl.Series]:
    return {str(kind): pl.Series([value, None], dtype=kind) for kind in types}


def in_pandas(value: Any, *types: Any) -> dict[str, pd.Series]:
    return {str(kind): pd.Series([value, None], dtype=kind) for kind in types}


def sql(value: str, *types: str) -> dict[str, str]:
    return {kind: f"CAST({value} AS {kind})" for kind in types}


def extension(kind: Any, storage: list[Any]) -> dict[str, pa.Array]:
    return {
        kind.extension_name.removeprefix("arrow."): pa.ExtensionArray.from_storage(
            kind, pa.array(storage, kind.storage_type)
        )
    }


def runs(values: pa.Array) -> dict[str, pa.Array]:
    array = pa.RunEndEncodedArray.from_arrays(pa.array([1, 2], pa.int32()), values)
    return {f"run_end_encoded<{values.type}>": array}


def categories(values: pa.Array) -> dict[str, pa.Array]:
    return {
        f"dictionary<{values.type}>": pa.DictionaryArray.from_arrays(pa.array([0, None], pa.int8()), values.slice(0, 1))
    }


CASES = (
    Case(
        "booleans",
        "boolean",
        True,
        arrow(True, pa.bool_()) | extension(pa.bool8(), [1, None]) | runs(pa.array([True, None])),
        in_polars(True, pl.Boolean),
        in_pandas(True, "boolean", "bool[pyarrow]"),
        sql("true", "BOOLEAN"),
        sql("true", "bool"),
        sql("true", "boolean"),
    ),
    Case(
        "integers of 8 to 64 bits",
        "integer",
        7,
        arrow(7, *(getattr(pa, f"{sign}int{bits}")() for sign in ("", "u") for bits in (8, 16, 32, 64)))
        | categories(pa.array([7]))
        | runs(pa.array([7, None])),
        in_polars(7, pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64),
        in_pandas(7, *(f"{sign}nt{bits}" for sign in ("I", "UI") for bits in (8, 16, 32, 64)), "int64[pyarrow]")
        | {"category of int64": pd.Series([7, None], dtype="Int64").astype("category")},
        sql("7", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"),
        sql("7", "int2", "int4", "int8"),
        sql("7", "tinyint", "smallint", "int", "bigint"),
    ),
    Case(
        "integers of 128 bits",
        "integer",
        LARGE,
        {},
        in_polars(LARGE, pl.Int128),
        {},
        sql(str(LARGE), "HUGEINT"),
        {},
        {},
    ),
    Case(
        "decimals without a fraction, up to 38 digits",
        "integer",
        10**37,
        arrow(10**37, pa.decimal128(38, 0)),
        in_polars(10**37, pl.Decimal(38, 0)),
        {},
        sql(str(10**37), "DECIMAL(38, 0)"),
        sql(str(10**37), "numeric(38, 0)"),
        sql(str(10**37), "decimal(38,0)"),
    ),
    Case(
        "unsigned integers of 128 bits",
        "text",
        str(2**128 - 1),
        {},
        in_polars(2**128 - 1, pl.UInt128),
        {},
        sql(str(2**128 - 1), "UHUGEINT"),
        {},
        {},
    ),
    Case(
        "floats",
        "number",
        1.5,
        arrow(np.float16(1.5), pa.float16()) | arrow(1.5, pa.float32(), pa.float64()),
        in_polars(1.5, pl.Float16, pl.Float32, pl.Float64),
        in_pandas(1.5, "float16", "float32", "float64", "Float64", "double[pyarrow]")
        | {"Sparse[float64]": pd.Series(pd.arrays.SparseArray([1.5, np.nan]))},
        sql("1.5", "FLOAT", "DOUBLE"),
        sql("1.5", "float4", "float8"),
        sql("1.5", "float", "double"),
    ),
    Case(
        "decimals of up to 38 digits",
        "number",
        PRICE,
        arrow(PRICE, pa.decimal32(9, 1), pa.decimal64(18, 1), pa.decimal128(38, 1)),
        in_polars(PRICE, pl.Decimal(38, 1)),
        {"decimal128(9, 1)[pyarrow]": pd.Series([PRICE, None], dtype=pd.ArrowDtype(pa.decimal128(9, 1)))},
        sql("1.5", "DECIMAL(4, 1)", "DECIMAL(38, 1)"),
        sql("1.5", "numeric(38, 1)"),
        sql("1.5", "decimal(38,1)"),
    ),
    Case(
        "decimals of other sizes, read as the nearest double",
        "number",
        1.5,
        {},
        {},
        {},
        {},
        sql("1.5", "numeric", "numeric(50, 1)"),
        {},
    ),
    Case(
        "texts",
        "text",
        "a",
        arrow("a", pa.string(), pa.large_string(), pa.string_view()) | runs(pa.array(["a", None])),
        in_polars("a", pl.String),
        in_pandas("a", "str", "string", "string[pyarrow]", "large_string[pyarrow]"),
        sql("'a'", "VARCHAR"),
        sql("'a'", "text", "varchar(5)", "char(5)", "name"),
        sql("'a'", "string", "varchar(5)", "char(1)") | {"string collate UTF8_LCASE": "'a' COLLATE UTF8_LCASE"},
    ),
    Case(
        "categories and enums",
        "text",
        "a",
        categories(pa.array(["a"]))
        | categories(pa.array(["a"], pa.string_view()))
        | runs(pa.array(["a", None]).dictionary_encode()),
        in_polars("a", pl.Categorical, pl.Enum(["a", "b"])),
        in_pandas("a", "category"),
        sql("'a'", "ENUM('a', 'b')"),
        {"an enum": "'a'::tightrope_letters"},
        {},
    ),
    Case(
        "UUIDs",
        "text",
        str(SOMEONE),
        {"uuid": pa.array([SOMEONE.bytes, None], pa.uuid())},
        {},
        {"uuid": pd.Series(pd.arrays.ArrowExtensionArray(pa.array([SOMEONE.bytes, None], pa.uuid())))},
        sql(f"'{SOMEONE}'", "UUID"),
        sql(f"'{SOMEONE}'", "uuid"),
        {},
    ),
    Case(
        "only NULL",
        "text",
        None,
        {"null": pa.nulls(2)},
        in_polars(None, pl.Null),
        {"null[pyarrow]": pd.Series([None, None], dtype=pd.ArrowDtype(pa.null()))},
        {"NULL": "NULL"},
        {},
        {"void": "NULL"},
    ),
    Case(
        "days",
        "date",
        DAY,
        arrow(DAY, pa.date32(), pa.date64()),
        in_polars(DAY, pl.Date),
        in_pandas(DAY, "date32[day][pyarrow]"),
        sql(f"'{DAY}'", "DATE"),
        sql(f"'{DAY}'", "date"),
        sql(f"'{DAY}'", "date"),
    ),
    Case(
        "times without a zone",
        "timestamp",
        HOUR,
        arrow(HOUR, *(pa.timestamp(unit) for unit in ("s", "ms", "us", "ns"))),
        in_polars(HOUR, *(pl.Datetime(unit) for unit in ("ms", "us", "ns"))),
        in_pandas(HOUR, *(f"datetime64[{unit}]" for unit in ("s", "ms", "us", "ns")), "timestamp[us][pyarrow]"),
        sql(f"'{HOUR}'", "TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"),
        sql(f"'{HOUR}'", "timestamp"),
        sql(f"'{HOUR}'", "timestamp_ntz"),
    ),
    Case(
        "instants (times with a zone)",
        "timestamp",
        INSTANT,
        arrow(INSTANT, *(pa.timestamp(unit, "Europe/Oslo") for unit in ("s", "ms", "us", "ns"))),
        in_polars(INSTANT, *(pl.Datetime(unit, "UTC") for unit in ("ms", "us", "ns"))),
        in_pandas(INSTANT, *(f"datetime64[{unit}, Europe/Oslo]" for unit in ("s", "us", "ns"))),
        sql(f"'{INSTANT}'", "TIMESTAMPTZ"),
        sql(f"'{INSTANT}'", "timestamptz"),
        sql(f"'{INSTANT}'", "timestamp"),
    ),
    Case(
        "times of day",
        "other",
        None,
        arrow(dt.time(1), pa.time32("s"), pa.time64("us")),
        in_polars(dt.time(1), pl.Time),
        in_pandas(dt.time(1), "time64[us][pyarrow]"),
        sql("'01:00:00'", "TIME", "TIME_NS"),
        sql("'01:00:00'", "time", "timetz"),
        {},
    ),
    Case(
        "durations, intervals, periods",
        "other",
        None,
        arrow(dt.timedelta(1), pa.duration("us")) | arrow(pa.MonthDayNano([1, 2, 3]), pa.month_day_nano_interval()),
        in_polars(dt.timedelta(1), pl.Duration("us")),
        in_pandas(dt.timedelta(1), "timedelta64[us]") | {"period[M]": pd.Series(["2024-01", None], dtype="period[M]")},
        sql("'1 day'", "INTERVAL"),
        sql("'1 day'", "interval"),
        {
            "interval day": "INTERVAL '1' DAY",
            "interval year": "INTERVAL '1' YEAR",
            "interval": "make_interval(1, 2, 3)",
        },
    ),
    Case(
        "bytes",
        "other",
        None,
        arrow(b"a", pa.binary(), pa.large_binary(), pa.binary_view(), pa.binary(1)),
        in_polars(b"a", pl.Binary),
        in_pandas(b"a", "binary[pyarrow]"),
        sql("'a'", "BLOB", "BIT") | {"BIT": "'101'::BIT"},
        sql("'a'", "bytea") | {"bit": "B'101'"},
        sql("'a'", "binary"),
    ),
    Case(
        "lists, arrays, structs, maps, unions",
        "other",
        None,
        arrow([1], pa.list_(pa.int64()), pa.large_list(pa.int8()), pa.list_(pa.int64(), 1), pa.list_view(pa.int64()))
        | arrow({"a": 1}, pa.struct({"a": pa.int64()}))
        | arrow([("a", 1)], pa.map_(pa.string(), pa.int64())),
        in_polars([1], pl.List(pl.Int64), pl.Array(pl.Int64, 1)) | in_polars({"a": 1}, pl.Struct({"a": pl.Int64})),
        {"list<int64>[pyarrow]": pd.Series([[1], None], dtype=pd.ArrowDtype(pa.list_(pa.int64())))},
        {"INTEGER[]": "[1]", "INTEGER[1]": "[1]::INTEGER[1]", "STRUCT": "{'a': 1}", "MAP": "MAP {'a': 1}"}
        | {"UNION": "union_value(number := 1)"},
        {"int4[]": "ARRAY[1]", "int4range": "int4range(1, 2)", "point": "point(1, 2)"},
        {"array": "array(1)", "struct": "named_struct('a', 1)", "map": "map('a', 1)"},
    ),
    Case(
        "JSON and values of any type",
        "other",
        None,
        extension(pa.json_(), ["{}", None]),
        {},
        {},
        {"JSON": "'{}'::JSON", "VARIANT": "1::VARIANT"},
        sql("'{}'", "json", "jsonb"),
        {"variant": "parse_json('{}')"},
    ),
    Case(
        "other types",
        "other",
        None,
        arrow(PRICE, pa.decimal256(50, 1)) | extension(pa.opaque(pa.string(), "geometry", "postgis"), ["a", None]),
        {"Object": pl.Series([SOMEONE, None], dtype=pl.Object)},
        {"complex128": pd.Series([1 + 2j, 0]), "longdouble": pd.Series([1.5, 2], dtype=np.longdouble)}
        | in_pandas(SOMEONE, "object")
        | {"interval": pd.Series(pd.interval_range(0, 2))},
        {"GEOMETRY": "'POINT (1 1)'::GEOMETRY", "BIGNUM": "1::BIGNUM"},
        sql("'1.2.3.4'", "inet") | sql("1", "money") | {"xml": "'<a/>'::xml"},
        {},
    ),
)
WRITERS_LACK = {
    "parquet": ("run_end_encoded", "month_day_nano_interval", "dictionary<string_view>", "binary_view"),
    "polars parquet": ("Int128", "UInt128", "Object"),
    "pandas parquet": ("complex128", "longdouble", "object", "Sparse"),
    "spark parquet": ("interval", "void", "variant"),
}
"""Types that a writer of Parquet does not write, by the start of their names; polars' 128 bits cannot be read back."""
WRITERS_CHANGE = {
    ("duckdb parquet", "HUGEINT"): ("number", float(LARGE)),
    ("duckdb parquet", "UHUGEINT"): ("number", float(2**128 - 1)),
    ("duckdb parquet", "BIT"): ("text", "101"),
    ("duckdb parquet", "BIGNUM"): ("text", "1"),
    ("spark parquet", "timestamp"): ("timestamp", HOUR),  # in UTC, but the file does not name a zone
}
"""What a writer of Parquet makes of a type, where it is another one than the source's."""


def named_columns(source: str) -> dict[str, tuple[Case, str, Any]]:
    """The columns of a source: their names with the case, the native type and what makes the value."""
    library = source.partition(" ")[0].replace("parquet", "arrow")
    lacking = WRITERS_LACK.get(source, ())
    entries = [
        (case, native, make)
        for case in CASES
        for native, make in getattr(case, library).items()
        if not native.startswith(lacking)
    ]
    return {f"c{index}": entry for index, entry in enumerate(entries)}


def expected_outcome(source: str, case: Case, native: str) -> tuple[str, object]:
    """The kind of a column and its value."""
    return WRITERS_CHANGE.get((source, native), (case.kind, case.value))


def select_sql(source: str) -> str:
    columns = named_columns(source)
    values = ", ".join(f"{make} AS {name}" for name, (_, _, make) in columns.items())
    return f"SELECT 7 AS k, {values} UNION ALL SELECT 8, {', '.join(['NULL'] * len(columns))}"


def arrow_table() -> pa.Table:
    return pa.table({"k": [7, 8]} | {name: make for name, (_, _, make) in named_columns("arrow").items()})


def parquet_file(folder: Path) -> Table:
    columns = {name: make for name, (_, _, make) in named_columns("parquet").items()}
    pq.write_table(pa.table({"k": [7, 8]} | columns), folder / "arrow.parquet")
    return open_source(folder / "arrow.parquet")


def polars_frame(source: str = "polars") -> pl.DataFrame:
    return pl.DataFrame({"k": [7, 8]} | {name: make for name, (_, _, make) in named_columns(source).items()})


def polars_parquet(folder: Path) -> Table:
    polars_frame("polars parquet").write_parquet(folder / "polars.parquet")
    return open_source(folder / "polars.parquet")


def pandas_frame(source: str = "pandas") -> pd.DataFrame:
    return pd.DataFrame({"k": [7, 8]} | {name: make for name, (_, _, make) in named_columns(source).items()})


def pandas_parquet(folder: Path) -> Table:
    pandas_frame("pandas parquet").to_parquet(folder / "pandas.parquet")
    return open_source(folder / "pandas.parquet")


def duckdb_file(folder: Path) -> Table:
    with duckdb.connect(folder / "types.duckdb") as connection:
        connection.execute(f"CREATE TABLE people AS {select_sql('duckdb')}")
    return open_source(folder / "types.duckdb", table="people")


def duckdb_parquet(folder: Path) -> Table:
    with duckdb.connect() as connection:
        connection.execute(f"COPY ({select_sql('duckdb')}) TO '{folder / 'duckdb.parquet'}'")
    return open_source(folder / "duckdb.parquet")


def postgres_table(_: Path) -> Table:
    url = postgres_database()
    setup = ("DROP TABLE IF EXISTS types", "DROP TYPE IF EXISTS tightrope_letters")
    enum = "CREATE TYPE tightrope_letters AS ENUM ('a', 'b')"
    one_row, _, _ = select_sql("postgres").partition(" UNION ")  # the types of a union have no number of digits
    server().run(url, *setup, enum, f"CREATE TABLE types AS {one_row}", "INSERT INTO types (k) VALUES (8)")
    return open_source(url, table="types")


def spark_frame(source: str = "spark") -> Any:
    spark().conf.set("spark.sql.session.timeZone", "UTC")
    return spark().sql(select_sql(source))


def spark_parquet(folder: Path) -> Table:
    spark_frame("spark parquet").write.parquet(str(folder / "spark"))
    return open_source(folder / "spark")


SOURCES: dict[str, Callable[[Path], Table]] = {
    "arrow": lambda _: open_source(arrow_table()),
    "parquet": parquet_file,
    "polars": lambda _: open_source(polars_frame()),
    "polars lazy": lambda _: open_source(polars_frame().lazy()),
    "polars parquet": polars_parquet,
    "pandas": lambda _: open_source(pandas_frame()),
    "pandas parquet": pandas_parquet,
    "duckdb relation": lambda _: open_source(duckdb.connect().sql(select_sql("duckdb"))),
    "duckdb file": duckdb_file,
    "duckdb parquet": duckdb_parquet,
    "postgres": postgres_table,
    "spark": lambda _: open_source(spark_frame()),
    "spark parquet": spark_parquet,
}


def documented_rows() -> list[str]:
    """The rows of the table in the docs."""
    libraries = ("arrow", "polars", "pandas", "duckdb", "postgres", "spark")
    rows = []
    for case in CASES:
        kind = "**refused**" if case.kind == "other" else case.kind
        cells = [", ".join(f"`{native}`" for native in getattr(case, library)) or "–" for library in libraries]
        rows.append(f"| {case.title} | {kind} | {' | '.join(cells)} |")
    return rows


if __name__ == "__main__":
    print("\n".join(documented_rows()))
