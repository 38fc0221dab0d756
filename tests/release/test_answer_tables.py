"""Answers in spreadsheets and notebooks: every number, and text that stays text."""

from __future__ import annotations

import csv
import io

import pandas as pd
import pytest

import tightrope as tr
from tightrope.errors import InputError

KEY = '<script>alert("a, b")</script>'


@pytest.fixture(scope="module")
def answers():
    frame = pd.DataFrame({"g": [KEY, "=1+1"] * 500, "question": ["x"] * 1000, "x": [2.0, 4.0] * 500, "y": [1.0] * 1000})
    opened = tr.Session(frame, privacy_unit=None, budget=tr.Budget(epsilon=8, delta="1e-8"))
    line = tr.regression("x", on="y", bounds=(0, 10), on_bounds=(0, 10), by="g", keys=[KEY])
    mean = tr.mean("x", bounds=(0, 10), by=["g", "question"], keys=[[KEY, "x"], ["=1+1", "x"]])
    return opened.plan([tr.count(), mean, line]).release()


def test_a_csv_table_holds_every_record(answers):
    lines = list(csv.DictReader(io.StringIO(answers.to_csv(), newline="")))
    assert [line["question"] for line in lines] == ["count", *["mean_x_by_g_question"] * 2, "regression_x_y_by_g"]
    assert [(line["g"], line["by question"]) for line in lines] == [("", ""), (KEY, "x"), ("'=1+1", "x"), (KEY, "")]
    for line, row in zip(lines, (row for answer in answers for row in answer.rows), strict=True):
        for name in ("value", "lower", "upper"):
            assert line[name] == ("" if row[name] is None else repr(row[name]))
    assert lines[1]["usable"] == str(answers[1].rows[0]["usable"])


def test_a_spreadsheet_computes_nothing_that_a_person_wrote():
    texts = ["=cmd()", "+1+1", " =1", "@SUM(A1)", "-1-1", "\t=1", "'=1", "＝1", "-7.50", "plain = text"]
    frame = pd.DataFrame({"=column": [*texts, "more"] * 100})
    opened = tr.Session(frame, privacy_unit=None, budget=tr.Budget(epsilon=8, delta="1e-8"))
    answers = opened.plan([tr.count(by="=column", keys=texts)]).release()
    lines = list(csv.DictReader(io.StringIO(answers.to_csv(), newline="")))
    shown = {text: "'" + text for text in texts[:-2]} | {"\t=1": "\\u0009'=1"}
    assert {line["'=column"] for line in lines} == {*shown.values(), *texts[-2:]}
    assert {row["=column"] for row in answers[0].rows} == set(texts)


def test_a_line_that_is_withheld_leaves_its_fields_empty(answers):
    """All values of y are alike: there is no line through them."""
    assert answers[2].to_pandas()["value"].isna().all()
    assert answers[2].to_pandas()["intercept"].isna().all()


def test_a_notebook_shows_text_as_text(answers):
    shown = answers._repr_html_()
    assert "<script" not in shown
    assert "&lt;script&gt;" in shown
    assert shown.count("<table>") == 3


def test_a_notebook_shows_so_many_groups_only():
    frame = pd.DataFrame({"g": range(100)})
    opened = tr.Session(frame, privacy_unit=None, budget=tr.Budget(epsilon=8, delta="1e-8"))
    (answer,) = opened.plan([tr.count(by="g", keys=range(100))]).release()
    assert "... and 40 more groups" in answer._repr_html_()


def test_parquet_holds_what_csv_does(answers, tmp_path):
    answers.to_parquet(tmp_path / "results.parquet")
    frame = pd.read_parquet(tmp_path / "results.parquet")
    lines = list(csv.DictReader(io.StringIO(answers.to_csv(), newline="")))
    assert list(frame.columns) == list(lines[0])
    assert frame["question"].tolist() == [line["question"] for line in lines]
    values = [float(line["value"]) if line["value"] else None for line in lines]
    assert [None if pd.isna(value) else value for value in frame["value"]] == values


def test_a_csv_file_holds_the_text(answers, tmp_path):
    assert answers.to_csv(tmp_path / "results.csv") == answers.to_csv()
    assert (tmp_path / "results.csv").read_bytes().decode("utf-8") == answers.to_csv()


@pytest.mark.parametrize("write", ["to_csv", "to_parquet", "report"])
def test_a_file_that_cannot_be_written_is_said_in_words_of_ours(answers, tmp_path, write):
    with pytest.raises(InputError, match=r"path: the folder .*nowhere does not exist"):
        getattr(answers, write)(tmp_path / "nowhere" / "x")
    with pytest.raises(InputError, match=r"path: .* is a folder; choose a file, such as "):
        getattr(answers, write)(str(tmp_path))
    with pytest.raises(InputError, match=r"cannot be written \(File name too long\)"):
        getattr(answers, write)(tmp_path / ("x" * 300))
    with pytest.raises(InputError, match="path to be a path"):
        getattr(answers, write)(5)


def test_keys_of_two_kinds_under_one_name_are_text(tmp_path):
    frame = pd.DataFrame({"g": ["1", "2"] * 50, "n": [1, 2] * 50})
    opened = tr.Session(frame, privacy_unit=None, budget=tr.Budget(epsilon=8, delta="1e-8"))
    by_number = tr.count(by={"g": "n"}, keys=[1, 2], name="numbers")
    opened.plan([tr.count(by="g", keys=["1"]), by_number]).release().to_parquet(tmp_path / "r.parquet")
    assert pd.read_parquet(tmp_path / "r.parquet")["g"].tolist() == ["1", "1", "2"]


def test_keys_beyond_64_bits_are_text_in_every_table(tmp_path):
    large = 2**70
    frame = pd.DataFrame({"n": [1, 2] * 50})
    opened = tr.Session(frame, privacy_unit=None, budget=tr.Budget(epsilon=8, delta="1e-8"))
    answers = opened.plan([tr.count(by="n", keys=[1, large])]).release()
    answers.to_parquet(tmp_path / "r.parquet")
    assert pd.read_parquet(tmp_path / "r.parquet")["n"].tolist() == ["1", str(large)]
    assert answers[0].to_arrow()["n"].to_pylist() == ["1", str(large)]
    assert answers[0].to_polars()["n"].to_list() == ["1", str(large)]
    assert answers[0].to_pandas()["n"].tolist() == [1, large]


def test_a_page_is_written(answers, tmp_path):
    answers.report(tmp_path / "report.html", title="Census")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert "Census" in page


def test_a_rehearsal_charges_nothing_and_draws_nothing():
    frame = pd.DataFrame({"g": ["a"] * 50})
    opened = tr.Session(frame, privacy_unit=None, budget=tr.Budget(epsilon=8, delta="1e-8"))
    plan = opened.plan([tr.count()])
    plan.dry_run()
    assert opened.spent["budget_fraction"] == "0"
    assert not plan.charged
    plan.release()
    assert plan.charged
