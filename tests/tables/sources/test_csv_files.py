"""CSV files as editors, spreadsheets and libraries write them, and the true reasons of what is refused."""

from __future__ import annotations

import csv
import gzip
import io
import sqlite3

import duckdb
import pandas as pd
import polars as pl
import pytest

import tightrope as tr
from tests.tables.questions import ask, mean
from tightrope.errors import InputError
from tightrope.release.plan_file import load_plan_file
from tightrope.tables import Table, open_source

PRIVATE = "Anna Schmidt"
ROWS = {"city": ["Oslo", None, "Riga, LV", 'the "Ö"'], "income": [1, 2, None, 4]}
KEYS = ((None,), ("Oslo",), ("Riga, LV",), ('the "Ö"',))


def open_csv(folder, content: bytes, name: str = "a.csv", **options) -> Table:
    (folder / name).write_bytes(gzip.compress(content) if name.lower().endswith(".gz") else content)
    return open_source(folder / name, **options)


def write_by_hand(path, delimiter: str = ",", lineterminator: str = "\r\n") -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, delimiter=delimiter, lineterminator=lineterminator).writerows(
            [ROWS, *zip(*ROWS.values(), strict=True)]
        )


WRITERS = {
    "pandas": ("a.csv", lambda path: pd.DataFrame(ROWS).to_csv(path, index=False)),
    "pandas, compressed": ("a.csv.gz", lambda path: pd.DataFrame(ROWS).to_csv(path, index=False)),
    "pandas, tabs": ("a.tsv", lambda path: pd.DataFrame(ROWS).to_csv(path, index=False, sep="\t")),
    "pandas, compressed tabs": ("a.TSV.gz", lambda path: pd.DataFrame(ROWS).to_csv(path, index=False, sep="\t")),
    "pandas, all in quotes": ("a.csv", lambda path: pd.DataFrame(ROWS).to_csv(path, index=False, quoting=1)),
    "polars": ("a.csv", lambda path: pl.DataFrame(ROWS).write_csv(path)),
    "polars with a mark": ("a.csv", lambda path: pl.DataFrame(ROWS).write_csv(path, include_bom=True)),
    "duckdb": ("a.csv", lambda path: duckdb.sql("SELECT * FROM frame").write_csv(str(path))),
    "duckdb, compressed": ("a.csv.gz", lambda path: duckdb.sql("SELECT * FROM frame").write_csv(str(path))),
    "Python": ("a.csv", write_by_hand),
    "Python, tabs": ("a.tsv", lambda path: write_by_hand(path, "\t", "\n")),
}
frame = pl.DataFrame(ROWS)


@pytest.mark.parametrize("writer", WRITERS)
def test_files_of_real_writers(tmp_path, writer):
    name, write = WRITERS[writer]
    write(tmp_path / name)
    table = open_source(tmp_path / name, types={"income": "number"})
    empty_texts = writer == "pandas, all in quotes"  # it writes NULL as an empty text in quotes
    assert table.collect_totals(ask("city")).keys == ((("",), *KEYS[1:]) if empty_texts else KEYS)
    assert table.collect_totals(ask(measures=mean("income"))).values == {"usable": (3,), "sum": (7,)}


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_one_blank_line_at_the_end_is_no_record(tmp_path, end):
    lines = [b"a,b", b"1,2", b"3,4"]
    for blank in (b"", end, end + end):
        assert open_csv(tmp_path, end.join(lines) + blank).collect_totals(ask()).values["rows"] == (2,)
    assert open_csv(tmp_path, b"a,b" + end + end).collect_totals(ask()).values["rows"] == (0,)
    for content in (end.join(lines) + 3 * end, end.join([lines[0], b"", *lines[1:]])):
        with pytest.raises(InputError, match="mend the line"):
            open_csv(tmp_path, content).collect_totals(ask())


def test_a_blank_line_in_a_file_of_one_column_is_a_record_wherever_it_stands(tmp_path):
    """If only the last one were none, removing the record after it would remove two."""
    for content in (b"a\n1\n\n", b"a\n\n1\n"):
        assert open_csv(tmp_path, content).collect_totals(ask("a")).values == {"rows": (1, 1)}


def test_a_blank_line_at_the_end_of_many_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr("tightrope.tables.sources.csv.CSV_BLOCK", 7)
    content = b"a,b\r\n" + b"1,2\r\n" * 50 + b"\r\n"
    assert open_csv(tmp_path, content).collect_totals(ask("a")).values == {"rows": (50,)}


def test_declared_texts_for_missing_values(tmp_path):
    content = b'code,answer\nNA,1\n"NA",2\n"",3\n,4\nna,5\n-9, 6\n'
    table = open_csv(tmp_path, content, dialect={"null_values": "NA"})
    assert table.collect_totals(ask("code")) == tr.tables.GroupTotals(
        ((None,), ("",), ("-9",), ("na",)), {"rows": (3, 1, 1, 1)}
    )
    numbers = b"x\n1\n-9\n -9 \n99\n"
    table = open_csv(tmp_path, numbers, dialect={"null_values": ["-9", "99"]}, types={"x": "integer"})
    assert table.collect_totals(ask("x")).values == {"rows": (3, 1)}
    with pytest.raises(InputError, match="a text such as 'NA', or a list of texts"):
        open_csv(tmp_path, numbers, dialect={"null_values": [9]})


def test_texts_for_missing_values_in_a_plan(tmp_path):
    open_csv(tmp_path, b"region,x\nNA,1\nEU,2\n")
    plan = tmp_path / "plan.toml"
    plan.write_text(
        '[source]\npath = "a.csv"\n[source.dialect]\nnull_values = ["NA"]\n[privacy_unit]\neach_row = true\n'
        '[budget]\nepsilon = 1\ndelta = 1e-8\n[[question]]\nkind = "count"\n'
    )
    table = load_plan_file(plan).open_table()
    assert table.collect_totals(ask("region")).keys == ((None,), ("EU",))


def test_a_name_with_a_line_end(tmp_path):
    content = b'"name\nof the city",x\r\nOslo,1\r\n'
    with pytest.raises(InputError, match=r"a column's name has a line end, declare dialect=\{'newlines': True\}"):
        open_csv(tmp_path, content)
    table = open_csv(tmp_path, content, dialect={"newlines": True})
    assert table.schema.column_names == ("name\nof the city", "x")
    assert table.collect_totals(ask("x")).keys == (("1",),)


@pytest.mark.parametrize(
    ("content", "options", "reason"),
    [
        (f"name,x\r{PRIVATE},1\r".encode(), {}, "lines that end in a carriage return alone"),
        (f"name,x\n{PRIVATE},1\n".encode("utf-16"), {}, "is written in UTF-16, or is no text"),
        (f"name,x\n{PRIVATE},1\n".encode("utf-16-be"), {}, "is written in UTF-16, or is no text"),
        (gzip.compress(f"name,x\n{PRIVATE},1\n".encode(), mtime=0), {}, r"call it \.csv\.gz if it is so"),
        ("århus,x\n".encode("latin-1"), {}, "a header that is not utf-8; declare .* one of 'latin-1', 'windows-1252'"),
        (b"\xef\xbb\xbfa,b\n", {"dialect": {"encoding": "latin-1"}}, "begins with the mark of UTF-8, but 'latin-1'"),
        (b'"a"b,x\n', {}, "has a stray quote"),
        (b'"a,x\nb,1\n', {}, "a quote in its header that is not closed"),
    ],
)
def test_a_header_is_refused_for_the_true_reason(tmp_path, content, options, reason):
    with pytest.raises(InputError, match=reason) as refused:
        open_csv(tmp_path, content, **options)
    assert PRIVATE not in str(refused.value)
    assert "convert it to UTF-8" not in str(refused.value)


def test_other_files_are_named_for_what_they_are(tmp_path):
    with pytest.raises(InputError, match="not compressed by gzip"):
        (tmp_path / "a.csv.gz").write_bytes(b"a,b\n1,2\n")
        open_source(tmp_path / "a.csv.gz")
    with sqlite3.connect(tmp_path / "a.db") as connection:
        connection.execute("CREATE TABLE people (name)")
    connection.close()
    with pytest.raises(InputError, match=r"it is a SQLite database; .*ATTACH"):
        open_source(tmp_path / "a.db", table="people")
    with pytest.raises(InputError, match=r"seems to have another delimiter than '\\t'"):
        open_csv(tmp_path, b"a,b\n1,2\n", name="a.tsv")


def test_a_line_that_ends_in_a_carriage_return_alone_is_refused(tmp_path):
    for content in (b"a,b\n1,2\r3,4\n", b"a,b\r\n1,2\r3,4\r\n"):
        with pytest.raises(InputError, match="not in a carriage return alone"):
            open_csv(tmp_path, content).collect_totals(ask())


def test_a_cut_off_compressed_file_fails(tmp_path):
    whole = gzip.compress(b"a,b\n" + b"".join(b"%d,%d\n" % (i, i * i) for i in range(10_000)))
    (tmp_path / "a.csv.gz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(tr.errors.EngineError, match="failed to read the CSV file"):
        open_source(tmp_path / "a.csv.gz").collect_totals(ask("a"))
    assert io.BytesIO(whole).read(2) == b"\x1f\x8b"
