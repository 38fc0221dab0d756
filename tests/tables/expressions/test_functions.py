"""Functions of texts, numbers and times: edge values on every engine, what follows from the schema, and refusals."""

from __future__ import annotations

import datetime as dt
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tightrope as tr
from tests.tables.questions import COUNT, ROW_IS_PERSON
from tightrope.errors import InputError
from tightrope.release.execution import digest_text
from tightrope.tables import Request, Table
from tightrope.tables.expressions.expression import resolve_term
from tightrope.tables.expressions.functions import FUNCTIONS
from tightrope.tables.expressions.parsing import parse_expression
from tightrope.tables.schema import Column as SchemaColumn
from tightrope.tables.schema import Schema

SCHEMA = Schema((
    SchemaColumn("n", "integer"),
    SchemaColumn("x", "number"),
    SchemaColumn("name", "text"),
    SchemaColumn("day", "date"),
    SchemaColumn("at", "timestamp"),
    SchemaColumn("ok", "boolean"),
))  # fmt: skip

TEXTS = ("Anna_100%", "ÉCOLE", "straße", "", None, "🙂ab", "e\u0301")
NUMBERS = (-0.5, 0.5, 2.5, -1e-20, math.inf, math.nan, 0.3, 1000.0, 0.0, -7.0, 1e300)
INTEGERS = (0, -1, 7, -7, 2**53 - 1, 2**53, -(2**63), None, 999, 1000, 14)
LARGE = 9_007_199_254_740_000
DAYS = (dt.date(2024, 1, 1), dt.date(2023, 1, 1), dt.date(2020, 12, 31), dt.date(1, 1, 1), dt.date(9999, 12, 31), None)
INSTANTS = (
    dt.datetime(2024, 2, 29, 23, 59, 59, 999_999), dt.datetime(1969, 12, 31, 23, 30), dt.datetime(1, 1, 1), None,
)  # fmt: skip


def nine_digits(logarithm: float) -> float:
    """A logarithm as it is rounded."""
    return round(logarithm * 2**30) / 2**30


OF_TEXTS: dict[str, tuple[Any, ...]] = {
    "contains(name, '_1')": (True, False, False, False, None, False, False),
    "contains(name, '%')": (True, False, False, False, None, False, False),
    "contains(name, '')": (True, True, True, True, None, True, True),
    "starts_with(name, 'a')": (False, False, False, False, None, False, False),
    "starts_with(name, 'e')": (False, False, False, False, None, False, True),
    "ends_with(name, '%')": (True, False, False, False, None, False, False),
    "ends_with(name, name)": (True, True, True, True, None, True, True),
    "lower(name)": ("anna_100%", "école", "straße", "", None, "🙂ab", "e\u0301"),
    "upper(name)": ("ANNA_100%", "ÉCOLE", "STRAßE", "", None, "🙂AB", "E\u0301"),
    "concat(name, '-', n)": (
        "Anna_100%-0", "ÉCOLE--1", "straße-7", "--7", None, f"🙂ab-{2**53}", f"e\u0301-{-(2**63)}",
    ),
    "length(name)": (9, 5, 6, 0, None, 3, 2),
    "prefix(name, 2)": ("An", "ÉC", "st", "", None, "🙂a", "e\u0301"),
    "suffix(name, 2)": ("0%", "LE", "ße", "", None, "ab", "e\u0301"),
    "substring(name, 2, 2)": ("nn", "CO", "tr", "", None, "ab", "\u0301"),
    "substring(name, 9, 5)": ("%", "", "", "", None, "", ""),
}  # fmt: skip
DIGITS = ("12", "-007", "+5", "1.50", " 1", "1\n", "1e3", "٣", "9" * 18, "9" * 19, "2024-02-29", "2023-02-29",
          "0000-01-01", "2024-1-1", "inf", "", "-", "0x10", "1_000", "1d", "2024-02-29\u2028", None)  # fmt: skip
OF_DIGITS: dict[str, tuple[Any, ...]] = {
    "integer(code)": (12, -7, 5, *[None] * 5, 10**18 - 1, *[None] * 13),
    "number(code)": (12.0, -7.0, 5.0, 1.5, *[None] * 18),
    "date(code)": (*[None] * 10, dt.date(2024, 2, 29), *[None] * 11),
    "number(integer(code)) / 2": (6.0, -3.5, 2.5, *[None] * 5, 5e17, *[None] * 13),
    "text(integer(code))": ("12", "-7", "5", *[None] * 5, "9" * 18, *[None] * 13),
    "text(date(code))": (*[None] * 10, "2024-02-29", *[None] * 11),
    "text(code == '12')": ("true", *["false"] * 20, None),
    "date(local(at, 'Asia/Kolkata'))": (dt.date(2024, 3, 1), dt.date(1970, 1, 1), None, *[None] * 19),
}
OF_NUMBERS: dict[str, tuple[Any, ...]] = {
    "floor(x)": (-1, 0, 2, -1, None, None, 0, 1000, 0, -7, None),
    "round(x)": (0, 1, 3, 0, None, None, 0, 1000, 0, -7, None),
    "floor(x, 0.1)": (-0.5, 0.5, 2.5, -0.1, None, None, 0.3, 1000.0, 0.0, -7.0, None),
    "round(x, 0.2)": (-0.4, 0.6, 2.6, 0.0, None, None, 0.4, 1000.0, 0.0, -7.0, None),
    "round(x, 500)": (0, 0, 0, 0, None, None, 0, 1000, 0, 0, None),
    "floor(n, 10)": (0, -10, 0, -10, 2**53 - 2, None, None, None, 990, 1000, 10),
    "mod(x, 2)": (1.5, 0.5, 0.5, 2.0, None, None, 0.3, 0.0, 0.0, 1.0, 0.0),
    "mod(n, 7)": (0, 6, 0, 0, (2**53 - 1) % 7, None, None, None, 5, 6, 0),
    "log(x, 10)": (
        None,
        nine_digits(math.log10(0.5)),
        nine_digits(math.log10(2.5)),
        None,
        nine_digits(math.log10(sys.float_info.max)),
        None,
        nine_digits(math.log10(0.3)),
        3.0,
        None,
        None,
        300.0,
    ),
    "floor(log(n, 10))": (None, None, 0, None, 15, 15, None, None, 2, 3, 1),
    "log(1)": (0.0,) * 11,
}
OF_DAYS: dict[str, tuple[Any, ...]] = {
    "quarter(day)": (1, 1, 4, 1, 4, None),
    "week_of_year(day)": (1, 52, 53, 1, 52, None),
    "week(day)": (
        dt.date(2024, 1, 1), dt.date(2022, 12, 26), dt.date(2020, 12, 28), dt.date(1, 1, 1), dt.date(9999, 12, 27),
        None,
    ),
    "date_trunc('quarter', day)": (
        dt.date(2024, 1, 1), dt.date(2023, 1, 1), dt.date(2020, 10, 1), dt.date(1, 1, 1), dt.date(9999, 10, 1), None,
    ),
    "days_between('2024-01-01', day)": (0, -365, -1096, -738885, 2913173, None),
    "hours_between(day, '2024-01-02')": (24, 366 * 24, 1097 * 24, 738886 * 24, -2913172 * 24, None),
}  # fmt: skip
OF_INSTANTS: dict[str, tuple[Any, ...]] = {
    "date_trunc('day', at)": (dt.date(2024, 2, 29), dt.date(1969, 12, 31), dt.date(1, 1, 1), None),
    "date_trunc('month', at)": (dt.date(2024, 2, 1), dt.date(1969, 12, 1), dt.date(1, 1, 1), None),
    "date_trunc('hour', at)": (dt.datetime(2024, 2, 29, 23), dt.datetime(1969, 12, 31, 23), dt.datetime(1, 1, 1), None),
    "date_trunc('minute', at)": (
        dt.datetime(2024, 2, 29, 23, 59), dt.datetime(1969, 12, 31, 23, 30), dt.datetime(1, 1, 1), None,
    ),
    "cut(at, ['0001-01-01', '1970-01-01', '2024-02-29'])": (
        dt.date(2024, 2, 29), dt.date(1, 1, 1), dt.date(1, 1, 1), None,
    ),
    "cut(at, ['1969-12-31T23:30', '2024-03-01T01:00+02:00'])": (
        dt.datetime(2024, 2, 29, 23), dt.datetime(1969, 12, 31, 23, 30), None, None,
    ),
    "minute(at)": (59, 30, 0, None),
    "week(at)": (dt.date(2024, 2, 26), dt.date(1969, 12, 29), dt.date(1, 1, 1), None),
    "hours_between('1970-01-01', at)": (1709251199999999 / 3_600_000_000, -0.5, -17259888.0, None),
    "seconds_between(at, '2024-03-01')": (1e-6, 1709253000.0, 63844848000.0, None),
}  # fmt: skip


def padded(values: tuple[Any, ...], rows: int) -> list[Any]:
    return [*values, *[None] * (rows - len(values))]


def computed(table: Table, texts: list[str]) -> dict[str, list[Any]]:
    trees = [parse_expression(text) for text in texts]
    keys = table.collect_totals(Request(("row", *trees), None, ROW_IS_PERSON, (COUNT,))).keys
    return {text: [key[1 + place] for key in keys] for place, text in enumerate(texts)}


@pytest.mark.parametrize(
    "expected", [OF_TEXTS, OF_DIGITS, OF_NUMBERS, OF_DAYS, OF_INSTANTS], ids=["text", "digits", "number", "day", "at"]
)
def test_edge_values_are_the_same_on_every_engine(opened: Callable[[pa.Table], Table], expected: Any) -> None:
    rows = max(map(len, expected.values()))
    table = opened(
        pa.table({
            "row": range(rows),
            "name": pa.array(padded(TEXTS, rows)[:rows], pa.string()),
            "code": pa.array(padded(DIGITS, rows)[:rows], pa.string()),
            "x": pa.array(padded(NUMBERS, rows)[:rows], pa.float64()),
            "n": pa.array(padded(INTEGERS, rows)[:rows], pa.int64()),
            "day": pa.array(padded(DAYS, rows)[:rows], pa.date32()),
            "at": pa.array(padded(INSTANTS, rows)[:rows], pa.timestamp("us")),
        })
    )  # fmt: skip
    found = computed(table, list(expected))
    for text, values in expected.items():
        assert found[text] == list(values), text


@pytest.mark.parametrize(
    ("text", "kind", "lower", "upper", "number"),
    [
        ("floor(clip(x, 0, 100), 10)", "integer", 0, 100, 11),
        ("round(clip(x, 0, 1), 0.25)", "number", 0, 1, 5),
        ("round(clip(x, -0.5, 0.4))", "integer", 0, 0, 1),
        ("floor(x)", "integer", -math.inf, math.inf, None),
        ("floor(max(x, 3.5))", "integer", 3, math.inf, None),
        ("floor(clip(x, 0, 1e6))", "integer", 0, 10**6, None),
        ("case(ok, 9007199254740993, 9007199254740992.0)", "number", 2**53, 2**53, 1),
        ("case(ok, 1, n > 3, 1.0, 2)", "number", 1, 2, 2),
        ("floor(clip(x, 9.00719925474e15, 9.0071992547409e15), 0.999999999999999)", "number", LARGE, LARGE + 900, 800),
        ("mod(n, 7)", "integer", 0, 6, 7),
        ("mod(n, 5000)", "integer", 0, 4999, None),
        ("mod(weekday(day), 9)", "integer", 1, 7, 7),
        ("mod(x, 7)", "number", 0, 7, None),
        ("quarter(at)", "integer", 1, 4, 4),
        ("week_of_year(day)", "integer", 1, 53, 53),
        ("minute(at)", "integer", 0, 59, 60),
        ("length(name)", "integer", 0, 10_000, None),
        ("concat('Q', quarter(day))", "text", -math.inf, math.inf, 4),
        ("concat(name, quarter(day))", "text", -math.inf, math.inf, None),
        ("contains(name, 'a')", "boolean", 0, 1, 2),
        ("integer(name)", "integer", -math.inf, math.inf, None),
        ("number(month(day))", "number", 1, 12, None),
        ("text(quarter(day))", "text", -math.inf, math.inf, 4),
        ("text(ok)", "text", -math.inf, math.inf, 2),
        ("date(at)", "date", -math.inf, math.inf, None),
        ("week(at)", "date", -math.inf, math.inf, None),
        ("date_trunc('hour', at)", "timestamp", -math.inf, math.inf, None),
        ("days_between(day, day)", "integer", -math.inf, math.inf, None),
        ("hours_between(at, at)", "number", -math.inf, math.inf, None),
        ("log(x)", "number", -math.inf, math.inf, None),
    ],
)
def test_kind_range_and_values_follow_from_the_schema(
    text: str, kind: str, lower: float, upper: float, number: int | None
) -> None:
    facts = parse_expression(text).infer_column_facts(SCHEMA)
    values = facts.possible_values
    assert (facts.kind, facts.lower, facts.upper) == (kind, lower, upper)
    assert (None if values is None else len(values)) == number


@pytest.mark.parametrize(
    "text", ["floor(9007199254740993, 1000)", "floor(case(ok, 9007199254740993, 9007199254740000), 500)"]
)
def test_an_integer_that_no_double_holds_is_missing_on_a_grid(text: str) -> None:
    assert None in (parse_expression(text).infer_column_facts(SCHEMA).possible_keys or ())


def test_the_range_of_a_logarithm_encloses_it() -> None:
    facts = parse_expression("log(clip(x, 1, 1000), 10)").infer_column_facts(SCHEMA)
    assert -1e-9 < facts.lower < 0 and 3 < facts.upper < 3 + 1e-9
    assert parse_expression("log(clip(x, 0, 1000))").infer_column_facts(SCHEMA).lower == -math.inf


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("floor(x, 0)", "a positive number for the width"),
        ("round(x, -1)", "a positive number for the width"),
        ("round(x, n)", r"round\(x\) or round\(x, width\)"),
        ("round(x, 1e300)", "a positive number for the width"),
        ("floor(name)", "to be a number"),
        ("mod(x, 0)", "a positive number below 2"),
        ("mod(x, 'a')", "a positive number below 2"),
        ("log(x, 1)", "a base of at least 2"),
        ("log(day)", "to be a number"),
        ("upper(n)", r"text\(n\) makes a text of it"),
        ("contains(n, '1')", "a text for contains"),
        ("contains(name, 1)", "a text for contains"),
        ("concat(name, x)", r"round\(x\)"),
        ("concat(name, day)", r"text\(day\)"),
        ("concat(name)", r"concat\(text, text, ...\)"),
        ("integer(x)", r"floor\(x\) or round\(x\)"),
        ("number(ok)", r"case\(condition, 1, 0\)"),
        ("text(at)", r"date\(t\)"),
        ("date(n)", "a text or timestamp for date"),
        ("suffix(name, 0)", "1 to 1,000 characters"),
        ("substring(name, 0, 3)", "the first character is number 1"),
        ("substring(name, 1)", "the first character is number 1"),
        ("quarter(name)", "a date or timestamp for quarter"),
        ("minute(day)", "a timestamp for minute"),
        ("date_trunc('fortnight', day)", "year, quarter, month, week, day, hour, minute"),
        ("date_trunc(day, 'month')", "date_trunc\\('month', day or instant\\)"),
        ("date_trunc('hour', day)", "a timestamp for hour"),
        ("hours_between(day, at)", "parts of one kind"),
        ("hours_between(n, 3)", "a date or timestamp for hours_between"),
        ("hours_between('2024-01-01', '2024-01-02')", "a date or timestamp for hours_between"),
        ("days_between(day, 'soon')", "a date such as"),
        ("cut(at, ['2024-01-01T02:00+02:00', '2024-01-01T03:00+03:00'])", "rising days or instants, in UTC"),
        ("cut(day, ['2024-01-01T02:00'])", "a date such as"),
        ("cut(at, ['soon'])", "a timestamp such as"),
        ("x % 2 == 0", r"mod\(x, divisor\)"),
        ("x // 2 == 0", r"floor\(x / y\)"),
        ("name like 'a%'", "starts_with"),
        ("'a' in name", r"contains\(text, part\)"),
    ],
)
def test_refusals_name_what_to_write(text: str, told: str) -> None:
    with pytest.raises(InputError, match=told):
        resolve_term(text, SCHEMA)


a, b = tr.column("a"), tr.column("b")


@pytest.mark.parametrize(
    ("written", "text"),
    [
        (a.floor() + a.floor(0.5), "floor(a) + floor(a, 0.5)"),
        (a.round() + a.round(5), "round(a) + round(a, 5)"),
        (a.mod(7) + a % 3, "mod(a, 7) + mod(a, 3)"),
        (a.log() / a.log(10), "log(a) / log(a, 10)"),
        (a.upper().suffix(3), "suffix(upper(a), 3)"),
        (a.substring(2, 3).concat("-", b), "concat(substring(a, 2, 3), '-', b)"),
        (a.contains("x") | a.starts_with(b), "contains(a, 'x') or starts_with(a, b)"),
        (~a.ends_with("z"), "not ends_with(a, 'z')"),
        (a.length() > 3, "length(a) > 3"),
        (a.cast("number") > b.cast("integer"), "number(a) > integer(b)"),
        (a.quarter() + a.week_of_year() + a.minute(), "quarter(a) + week_of_year(a) + minute(a)"),
        (a.week() == "2024-01-01", "week(a) == '2024-01-01'"),
        (a.date_trunc("week") < b.date_trunc("month"), "week(a) < date_trunc('month', b)"),
        (a.days_between(b) + a.hours_between(b), "days_between(a, b) + hours_between(a, b)"),
        (a.minutes_between(b), "minutes_between(a, b)"),
        (a.seconds_between("2024-01-01"), "seconds_between(a, '2024-01-01')"),
    ],
)  # fmt: skip
def test_methods_and_texts_give_the_same_tree(written: tr.Expression, text: str) -> None:
    assert str(written) == text
    assert written.tree == parse_expression(text)


def test_every_function_has_an_example_in_the_page_on_plan_files() -> None:
    page = (Path(__file__).parents[3] / "docs/plan-file.md").read_text(encoding="utf-8")
    assert [name for name in FUNCTIONS if f"{name}(" not in page] == []


def test_digests_of_expressions_stay_as_ledgers_hold_them() -> None:
    tree = parse_expression("lower(a) == prefix(a, 2) or month(d) == cell(x, 0, 1, 3)")
    assert digest_text(tree) == (
        "Logic(word='or', conditions=(Compare(comparison='==', left=Lower(part=Column(name='a')), "
        "right=Prefix(part=Column(name='a'), letters=Value(value=2, kind='integer'))), Compare(comparison='==', "
        "left=Calendar(unit='month', part=Column(name='d')), right=Cell(part=Column(name='x'), "
        "lower=Value(value=0, kind='integer'), upper=Value(value=1, kind='integer'), cells=Value(value=3, "
        "kind='integer')))))"
    )
