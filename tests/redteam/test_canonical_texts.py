"""Texts as numbers, days and instants, in CSV fields and in folders' names: no other text than was meant fits."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.tables.questions import ask
from tightrope.tables import open_source

WRITTEN = ["3", "3.0", "2.99999999999999999999", "2.999999999999999_9", "2.9999999999999999e0",
           "29999999999999999999e-19", "300000000000000000001e-20", "9007199254740993",
           "9007199254740992.6", "9007199254740990.6", "1e-400", "0",
           "1_0", "0x3", "0b11", "3f", "٣", "３", "3,0", "1.5e1", "15", ".0", "-.5", "+5", "5.", ".", "-", "1e", "1e5",
           "1e400", "-1e400", "nan", "-NaN", "Infinity", "ınf", "9223372036854775807.0", "9223372036854775808", "1.7",
           "9007199254740991e0", "007", "1e+05", "1.5e+10", "1.57e1", "1.2.3e4", "900719925474099e1",
           "900719925474099e2", "1E15", "1e16", "-3e2", "1e-1", "30e-1", "3e0.5", "3e", ".e5"]  # fmt: skip
AROUND = ["", " ", "\t", "\v", "\f", "\r", "\n", "\u00a0", "\u2003", "\x1c", "\x00"]
INSTANTS = ["2024-12-31", "2024-12-31 23:59", "2024-12-31T23:59:59.5", "2024-12-31 23:59:59.123456789",
            "2024-12-31 23:59:59-05", "2024-12-31 23:59:59Z", "2024-12-31T23:59:59+05:30", "2024-12-31 23:59:59+0530",
            "2024-12-31 23:59:59+99:99", "2024-12-31 23:59:59+16", "2024-12-31 23:59:59 Europe/Berlin",
            "2024-12-31 23:59:59 +05", "2024-12-31 24:00", "2024-02-30", "0000-01-01", "0001-01-01T00:00+05",
            "9999-12-31 23:59:59-05", "20000-01-01", "-2024-01-01", "0044-03-15 (BC)", "epoch", "infinity", "-infinity",
            "2024/12/31", "2024-12-31 00:00:00", "2024-12-31T00:00:00.000", "2024-12-31 00:00Z",
            "2024-12-31 12:00"]  # fmt: skip
BOOLEANS = ["true", "TRUE", "tRuE", "false", "1", "0", "T", "f", "yes", "no", "on", "2", "1.0", "falſe", "t"]
KINDS = {"number": WRITTEN, "integer": WRITTEN, "timestamp": INSTANTS, "date": INSTANTS, "boolean": BOOLEANS}
SPECIAL = ["epoch", " Epoch", "infinity", "-Infinity"]
ID = "person"


def read(folder: Path, texts: Iterable[str], kind: str, **dialect: str) -> dict[str, object]:
    """What each text is as a field of that kind, alone in its row beside the text itself."""
    path = folder / "t.csv"
    path.write_text(f"raw,{ID}\n" + "".join(f'"{text}","{text}"\n' for text in texts), newline="")
    table = open_source(path, types={ID: kind}, dialect={"newlines": True, **dialect})
    return dict(table.collect_totals(ask("raw", ID)).keys)


def partitioned(folder: Path, texts: Iterable[str], kind: str) -> dict[str, object]:
    """The same for names of folders."""
    folder.mkdir()
    for number, text in enumerate(dict.fromkeys(texts)):
        part = folder / f"{ID}={quote(text, safe=' ')}" / f"{number}.parquet"
        part.parent.mkdir()
        pq.write_table(pa.table({"raw": [text]}), part)
    return dict(open_source(folder, types={ID: kind}).collect_totals(ask("raw", ID)).keys)


@pytest.mark.parametrize("kind", KINDS)
def test_a_text_is_the_same_value_in_a_field_and_in_a_folders_name(tmp_path, kind):
    texts = [text for text in KINDS[kind] if text]
    assert repr(read(tmp_path, texts, kind)) == repr(partitioned(tmp_path / "parts", texts, kind))


@pytest.mark.parametrize("kind", ["number", "integer"])
def test_what_fits_is_exactly_what_is_written(tmp_path, kind):
    texts = {text for around in AROUND for written in WRITTEN for text in (written + around, around + written)}
    found = {text: key for text, key in read(tmp_path, texts, kind).items() if key is not None}
    assert {"3", "3.0", " 3", "3\t", "+5", "007"} <= set(found)
    for text, key in found.items():
        assert text.strip(" \t") == text.strip(), text
        if abs(key) < 2**53 and key == int(key):
            assert Fraction(text) == key, text


@pytest.mark.parametrize("read_table", [read, partitioned])
@pytest.mark.parametrize("kind", ["number", "integer"])
def test_nobody_is_the_person_of_another_text(tmp_path, kind, read_table):
    """Else one of the two would have a row fewer where the other one is there."""
    near = ["2.99999999999999999999" + tail for tail in AROUND] + [text for text in WRITTEN if text.startswith("2")]
    found = read_table(
        tmp_path / "d" if read_table is partitioned else tmp_path, ["3", *near, "9007199254740990.6"], kind
    )
    assert found.pop("3") == 3
    assert {key for key in found.values() if key == 3 or (key is not None and key > 4)} == set()


def test_offsets_are_applied_or_the_instant_is_missing(tmp_path):
    fits = {
        "2024-12-31 23:59:59-05": dt.datetime(2025, 1, 1, 4, 59, 59),
        "2024-12-31T23:59:59Z": dt.datetime(2024, 12, 31, 23, 59, 59),
        "2024-12-31 23:59+05:30": dt.datetime(2024, 12, 31, 18, 29),
        "2024-12-31 23:59:59.25+15:59": dt.datetime(2024, 12, 31, 8, 0, 59, 250_000),
        "2024-12-31 23:59:59+99:99": None,
        "2024-12-31 23:59:59-16": None,
        "2024-12-31 23:59 CET": None,
        "9999-12-31 23:59-05": None,
    }
    assert read(tmp_path, fits, "timestamp") == fits
    days = {"2024-12-31 23:59:59-05": None, "2024-12-31 00:00:00": dt.date(2024, 12, 31), "2024-12-31 01:00": None}
    assert read(tmp_path, days, "date") == days


@pytest.mark.parametrize(
    ("said", "text", "expected"),
    [
        ("%d.%m.%Y", "31.12.2024", dt.datetime(2024, 12, 31)),
        ("%d.%m.%Y", " 1.2.0001 ", dt.datetime(1, 2, 1)),
        ("%d. %B %Y", "1. mArch 2024", dt.datetime(2024, 3, 1)),
        ("%d-%b-%y %I:%M %p", "1-MAY-24 05:06 pm", dt.datetime(2024, 5, 1, 17, 6)),
        ("%Y-%j", "2024-366", dt.datetime(2024, 12, 31)),
        ("%Y-%m-%d %H:%M:%S.%f%z", "2024-12-31 23:59:59.5-05:30", dt.datetime(2025, 1, 1, 5, 29, 59, 500_000)),
        ("%Y%%(%-m)|[%d]^$*+?{}", "2024%(5)|[06]^$*+?{}", dt.datetime(2024, 5, 6)),
        ("%Y-%m-%d %z", "2024-12-31 +99:99", None),
        ("%Y", "0000", None),
        ("%d.%m.%Y", "31.12.2024\v", None),
        *((said, text, None) for said in ("%d.%m.%Y", "%Y", "%B") for text in SPECIAL),
    ],
)  # fmt: skip
def test_a_format_takes_what_is_written_so_and_no_other_word(tmp_path, said, text, expected):
    assert read(tmp_path, [text], "timestamp", timestamp_format=said) == {text: expected}
    assert read(tmp_path, [text], "date", date_format=said) == {text: expected and expected.date()}


def test_a_comma_for_a_point_is_for_every_number(tmp_path):
    fits = {"1,0": 1, "1.000": None, "1": 1, "1,5": None, "1.5": None, "1,": 1}
    assert read(tmp_path, fits, "integer", decimal=",") == fits
    fits = {"1,0": 1.0, "1.000": None, "1,5": 1.5, "2,99999999999999999999": None, "1,5e1": 15.0, "inf": float("inf")}
    assert read(tmp_path, fits, "number", decimal=",") == fits


def test_booleans_are_true_false_1_and_0(tmp_path):
    fits = {"true": True, "TRUE": True, "False": False, "1": True, "0": False, **dict.fromkeys(["T", "yes", "t", "2"])}
    assert read(tmp_path, fits, "boolean") == fits
