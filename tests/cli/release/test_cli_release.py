"""tightrope release: answers, a report, a certificate, and nothing that depends on the data but the noise."""

from __future__ import annotations

import json
import math

import pytest


def numbers(value):
    """Every number in a JSON object."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return [number for item in value for number in numbers(item)]
    return [value] if isinstance(value, float) else []


def test_answers_and_promise_in_words(run, folder):
    shown = run("release", folder / "plan.toml")
    assert (shown.code, shown.err) == (0, "")
    for words in ("Visits", "City 00", "±", "right at most", "more in", "report.html", "certificate.json",
                  "not recorded in a ledger"):  # fmt: skip
        assert words in shown.out
    assert "\x1b" not in shown.out  # neither colours nor what a key smuggles in
    assert (folder / "report.html").read_text(encoding="utf-8").startswith("<!doctype html>")


def test_at_most_twenty_rows_are_shown(run, folder):
    shown = run("release", folder / "plan.toml").out
    assert "... and 10 more in" in shown
    assert "City 25" not in shown


def test_json_is_exactly_one_object(run, folder):
    shown = run("release", folder / "plan.toml", "--json")
    assert (shown.code, shown.err) == (0, "")
    document = json.loads(shown.out, parse_constant=lambda name: 1 / 0)
    assert set(document) == {"document", "version", "title", "answers", "certificate"}
    counts, ages = document["answers"]
    assert {"name", "question", "rows"} <= set(counts)
    assert [row["member"] for row in ages["rows"]] == [False, True]
    assert all(row["lower"] <= row["value"] <= row["upper"] for row in counts["rows"])
    assert all(map(math.isfinite, numbers(document)))
    certificate = document["certificate"]
    assert 0 < certificate["epsilon"] <= 1
    assert json.loads((folder / "certificate.json").read_text(encoding="utf-8")) == certificate


def test_out_is_made_and_holds_both_files(run, folder):
    out = folder / "deep" / "out"
    assert run("release", folder / "plan.toml", "--out", out).code == 0
    assert sorted(path.name for path in out.iterdir()) == ["certificate.json", "report.html"]
    assert not (folder / "report.html").exists()


def test_files_hold_neither_paths_nor_small_groups(run, folder):
    run("release", folder / "plan.toml")
    written = "".join((folder / name).read_text(encoding="utf-8") for name in ("report.html", "certificate.json"))
    assert str(folder) not in written


@pytest.fixture
def nothing_may_be_spent(monkeypatch):
    def refuse(*_: object) -> None:
        raise AssertionError("the budget was spent")

    monkeypatch.setattr("tightrope.release.session.answer_tasks", refuse)


def test_a_folder_that_cannot_be_written_to_costs_nothing(run, folder, nothing_may_be_spent):
    run("release", folder / "plan.toml", "--out", "/proc/self/nowhere").refused_with("/proc/self/nowhere", "--out")
    run("release", folder / "plan.toml", "--out", folder / "plan.toml").refused_with("plan.toml", "--out")


def test_a_missing_extra_costs_nothing(run, folder, nothing_may_be_spent, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "jinja2", None)
    run("release", folder / "plan.toml").refused_with("jinja2", "pip install", code=1)


def test_refusals_end_with_three(run, folder, monkeypatch):
    from tightrope.errors import BudgetRefused

    def refuse(*_: object) -> None:
        raise BudgetRefused("0.5 of the budget is left; plan with share=0.5")

    monkeypatch.setattr("tightrope.release.session.answer_tasks", refuse)
    run("release", folder / "plan.toml").refused_with("share=0.5", code=3)


def test_nonsense(run, folder):
    run("release", folder / "nowhere.toml").refused_with("nowhere.toml")
    run("release", folder / "visits.parquet").refused_with("TOML")
    (folder / "visits.parquet").write_bytes(b"not a table")
    run("release", folder / "plan.toml").refused_with(code=1)
    (folder / "visits.parquet").unlink()
    run("release", folder / "plan.toml").refused_with("visits.parquet", "relative to the plan")
