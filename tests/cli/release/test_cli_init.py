"""tightrope init: a plan for somebody's own table that runs as it is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tightrope.release.plan_file import load_plan_file


def test_a_plan_that_loads_and_runs(run, folder, monkeypatch):
    monkeypatch.chdir(folder)
    (folder / "plan.toml").unlink()
    shown = run("init", "visits.parquet", "--privacy-unit", "user")
    assert shown.code == 0
    assert "tightrope plan plan.toml" in shown.out
    plan = load_plan_file(folder / "plan.toml")
    assert [question.name for question in plan.document.make_queries()] == ["total"]
    assert plan.document.privacy_unit.column == "user"
    assert run("release", "plan.toml").code == 0


def test_paths_are_relative_to_the_plan(run, folder):
    target = folder / "plans" / "deep" / "first.toml"
    assert run("init", folder / "visits.parquet", "--each-row", "--out", target).code == 0
    assert 'path = "../../visits.parquet"' in target.read_text(encoding="utf-8")
    assert load_plan_file(target).source_location.is_file()


def test_json(run, folder):
    target = folder / "other.toml"
    shown = json.loads(run("init", folder / "visits.parquet", "--privacy-unit", "user", "--out", target, "--json").out)
    assert shown["plan"] == str(target)
    assert {"name": "city", "kind": "text"} in shown["columns"]


def test_no_value_of_the_table_is_in_it(run, folder):
    target = folder / "other.toml"
    run("init", folder / "visits.parquet", "--privacy-unit", "user", "--out", target)
    assert "Oslo" not in target.read_text(encoding="utf-8")


def test_a_plan_is_not_overwritten(run, folder):
    before = (folder / "plan.toml").read_text(encoding="utf-8")
    words = ("init", folder / "visits.parquet", "--privacy-unit", "user", "--out", folder / "plan.toml")
    run(*words).refused_with("plan.toml", "--force")
    assert (folder / "plan.toml").read_text(encoding="utf-8") == before
    assert run(*words, "--force").code == 0


def test_nonsense(run, folder):
    data, out = folder / "visits.parquet", ("--out", folder / "new.toml")
    run("init", data, *out).refused_with("--privacy-unit", "--each-row", "identifies the person of each row")
    run("init", data, "--privacy-unit", "user", "--each-row", *out).refused_with("--each-row")
    run("init", data, "--privacy-unit", "usr", *out).refused_with("'usr'", "did you mean 'user'?")
    run("init", folder / "nothing.parquet", "--each-row", *out).refused_with("nothing.parquet", "exists")
    run("init", folder / "plan.toml", "--each-row", *out).refused_with(".parquet", ".csv")
    run("init", data, "--each-row", "--table", "x", *out).refused_with("table", "DuckDB")
    assert not (folder / "new.toml").exists()


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="needs a folder nobody can write to")
def test_a_folder_that_cannot_be_written_to(run, folder):
    run("init", folder / "visits.parquet", "--each-row", "--out", "/proc/self/x/plan.toml").refused_with("/proc/self/x")


def test_a_csv_file_with_semicolons_and_decimal_commas(run, folder):
    (folder / "semi.csv").write_text("id;x\n" + "".join(f"{i};{i % 7},5\n" for i in range(900)), encoding="utf-8")
    words = ("init", folder / "semi.csv", "--each-row", "--out", folder / "semi.toml")
    run(*words).refused_with("delimiter", "';'")
    assert run(*words, "--dialect", "delimiter=;", "--dialect", "decimal=,").code == 0
    run(*words, "--force", "--dialect", "delimeter=;").refused_with("KEY=MARK", "did you mean 'delimiter'?")
    text = (folder / "semi.toml").read_text(encoding="utf-8")
    typed = text.replace("# [source.types]", "[source.types]").replace('# "x" = "text"', 'x = "number"')
    asked = typed + '[[question]]\nkind = "mean"\ncolumn = "x"\nbounds = [0, 10]\n'
    (folder / "semi.toml").write_text(asked, encoding="utf-8")
    result = json.loads(run("release", folder / "semi.toml", "--json").out)
    assert result["answers"][1]["rows"][0]["value"] == pytest.approx(3.5, abs=0.5)


def test_marks_of_writers_in_a_folder_are_said(run, folder):
    parts = folder / "parts"
    parts.mkdir()
    (folder / "visits.parquet").rename(parts / "a.parquet")
    (parts / "_SUCCESS").touch()
    assert "not read: 1" in run("init", parts, "--privacy-unit", "user", "--out", folder / "new.toml").out
