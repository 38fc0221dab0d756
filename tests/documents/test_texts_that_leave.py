"""No text that leaves is obeyed: every code point in several places of a key, in CSV, JSON, TOML and HTML."""

from __future__ import annotations

import ast
import csv
import io
import json
import os
import re
import sys
import tomllib
import unicodedata
from functools import cache
from html.parser import HTMLParser
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tightrope as tr
from tightrope.documents.escaping import (
    csv_table,
    escape_control_chars,
    escape_csv_formula,
    html_text,
    json_text,
    toml_value,
)

SOURCE = Path(tr.__file__).parent
EVERY = "TIGHTROPE_EVERY_CODE_POINT" in os.environ
"""All 1 114 112 code points; otherwise all that are assigned, and each 101st of those that are not or are private."""
POINTS = [
    chr(point)
    for point in range(sys.maxunicode + 1)
    if EVERY or point % 101 == 0 or unicodedata.category(chr(point)) not in ("Cn", "Co")
]
PLACES = ("{}=1;{}=1", "a|{}\t{}@x{}")
UNSEEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}
BLANK = "\u115f\u1160\u2800\u3164\uffa0"
SPLIT = re.compile(r"[;|,\t\r\n]")


@cache
def skipped(letter: str) -> bool:
    return unicodedata.category(letter)[0] in "CMZ" or letter in BLANK or letter == '"'


def begins(cell: str) -> bool:
    """Whether a cell, or what is left of it without letters that nobody sees, begins like a formula."""
    first = next((letter for letter in cell if not skipped(letter)), " ")
    return unicodedata.normalize("NFKC", first)[0] in "=+-@−"


def computed(text: str) -> bool:
    """Whether a cell, however it was split off, begins like a formula."""
    return any(map(begins, SPLIT.split(text)))


def obeyed(text: str) -> set[str]:
    """What in a text a terminal obeys, or nobody sees."""
    return {letter for letter in set(text) if unicodedata.category(letter) in UNSEEN and letter != "\n"}


@pytest.mark.parametrize("place", PLACES)
def test_no_code_point_makes_a_cell_of_csv_a_formula(place: str) -> None:
    keys = [place.replace("{}", letter) for letter in POINTS]
    text = csv_table({"key": keys, "value": [-5] * len(keys)})
    assert not obeyed(text)
    text.encode("utf-8")
    rows = list(csv.reader(io.StringIO(text)))
    assert len(rows) == len(keys) + 1
    assert {row[1] for row in rows[1:]} == {"-5"}
    assert not [row[0] for row in rows if computed(row[0])]
    for mark in ";|\t":
        cells = [cell for line in text.splitlines() for cell in line.removesuffix(",-5").split(mark)]
        assert not [cell for cell in cells if begins(cell)]
    if place == PLACES[0]:
        read = pd.read_csv(io.StringIO(text), dtype={"key": str}, keep_default_na=False)
        assert read["value"].dtype.kind == "i"
        assert read["key"].tolist() == [row[0] for row in rows[1:]]


def test_numbers_stay_numbers_and_plain_keys_stay_what_they_are() -> None:
    text = csv_table({"key": ["-5", "Zürich", "a=b", "Frankfurt-Main, Süd"], "value": [-5, -0.5, None, 7]})
    plain = '"-5",-5', '"Zürich",-0.5', '"a=b",""', '"Frankfurt-Main, Süd",7'
    assert text == '"key","value"\n' + "".join(f"{line}\n" for line in plain)
    assert escape_csv_formula("'a") == "''a"
    assert escape_csv_formula("\0=1") == "'\\u0000=1"
    assert escape_csv_formula("\xa0＝1").startswith("'")


class Seen(HTMLParser):
    """What a browser makes of a page."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, list[tuple[str, str | None]]]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, attrs))

    def handle_data(self, data: str) -> None:
        self.text += data


def test_html_and_terminals_show_every_code_point_and_obey_none() -> None:
    text = "".join(f"{letter}<b>&{letter}" for letter in POINTS)
    shown = escape_control_chars(text)
    assert not obeyed(shown)
    assert len(shown) == len(text)
    page = Seen()
    page.feed(f'<p title="{html_text(text)}">{html_text(text)}</p>')
    page.close()
    assert page.tags == [("p", [("title", shown)])]
    assert page.text == shown


def test_json_and_toml_read_back_exactly_and_hold_nothing_that_is_obeyed() -> None:
    keys = [f"a{letter}b" for letter in POINTS]
    for written in (json_text(keys, indent=2), json_text(keys, ascii_only=True), json_text(keys, compact=True)):
        assert not obeyed(written)
        assert json.loads(written) == keys
    scalars = [key for key in keys if unicodedata.category(key[1]) != "Cs"]
    written = "".join(f"{toml_value(number)} = {toml_value(key)}\n" for number, key in enumerate(scalars[::7]))
    assert not obeyed(written)
    assert list(tomllib.loads(written).values()) == scalars[::7]


def test_a_release_writes_no_key_that_is_obeyed(tmp_path: Path) -> None:
    """Through the library's own façade: the files of a release, and a notebook's table."""
    hostile = ["x;=1+1;", "a|=1", "\x1b[2J", "\0=1", "\u200b=1", "\xa0@x", "a\u202eb", "\x9b2J", "</script>", "x\n=1"]
    table = pa.table({"key\x1b": [key for key in hostile for _ in range(300)]})
    session = tr.Session(table, privacy_unit=None, budget=tr.Budget(epsilon=5, delta=1e-8))
    answers = session.plan([tr.count(by="key\x1b", keys={"key\x1b": hostile})]).release()
    answers.report(tmp_path / "report.html")
    for text in (answers.to_csv(), answers.to_json(), (tmp_path / "report.html").read_text(), answers._repr_html_()):
        assert not obeyed(text)
    rows = list(csv.reader(io.StringIO(answers.to_csv())))
    assert len(rows) == len(hostile) + 1
    assert not [cell for row in rows for cell in row[:2] if computed(cell)]
    exact = {row["key\x1b"] for row in json.loads(answers.to_json())["answers"][0]["rows"]}
    assert exact == set(hostile)
    answers.to_parquet(tmp_path / "results.parquet")
    assert set(pq.read_table(tmp_path / "results.parquet").column("key\x1b").to_pylist()) == set(hostile)


ONE_PLACE = "documents/escaping.py"
WRITERS = {
    "csv": "csv.writer csv.DictWriter", "html": "html.escape xml.sax.saxutils.escape",
    "json": "json.dumps json.dump msgspec.json.encode", "frames": "to_csv write_csv to_html to_markdown",
    "terminal": "print sys.stdout.write sys.stderr.write",
}  # fmt: skip
ELSEWHERE = {
    # not what a person reads: hashes, ledgers, and comparisons, which no file or terminal shows
    "tables/public_table.py", "release/execution.py", "verify/findings.py", "verify/ledgers.py", "verify/accounts.py",
    "verify/releases.py",
    # these escape what they write by themselves or by printable, and have tests of it
    "verify/check.py",  # copied out as one file that imports no Tightrope
    "cli/output.py", "cli/errors.py", "__main__.py", "cli/output_files.py",
    "release/answers.py",  # defines to_csv
}  # fmt: skip


def test_nothing_else_writes_a_text_that_leaves() -> None:
    """A module that needs one of these forms takes it from the one place."""
    forbidden = {name for names in WRITERS.values() for name in names.split()}
    found = set()
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                name = ast.unparse(node.func)
                if name in forbidden or name.rpartition(".")[2] in WRITERS["frames"].split():
                    found.add(path.relative_to(SOURCE).as_posix())
            if isinstance(node, ast.ImportFrom) and node.module in ("csv", "html", "json", "markupsafe"):
                names = {f"{node.module}.{one.name}" for one in node.names}
                if names & forbidden:
                    found.add(path.relative_to(SOURCE).as_posix())
    comparing = {"verify/contributions.py", "verify/marginals.py"}  # compare, as the rest of verify
    assert found - ELSEWHERE - comparing == {ONE_PLACE}
