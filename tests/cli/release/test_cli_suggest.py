"""tightrope suggest: how many rows of a person to use, from a plan as init writes it to a release with the bound."""

from __future__ import annotations

import json
import re

import pyarrow
import pyarrow.parquet
import pytest

from tightrope.release.plan_file import load_plan_file


@pytest.fixture
def starter(run, folder):
    """The plan that init writes for a table of 4,000 people with 4 rows each, and its text."""
    users = [number // 4 for number in range(16_000)]
    pyarrow.parquet.write_table(pyarrow.table({"user": users}), folder / "stays.parquet")
    target = folder / "stays.toml"
    shown = run("init", folder / "stays.parquet", "--privacy-unit", "user", "--out", target)
    assert f"tightrope suggest {target}" in shown.out.replace("\n", " ")
    return target, target.read_text(encoding="utf-8")


def test_a_bound_is_suggested_charged_once_and_used_in_the_same_ledger(run, starter):
    """One row of each person would leave 75 % of the rows out: the plan says so, and the suggestion is 4."""
    target, text = starter
    assert "NOT CHOSEN YET" in text
    assert "budget_fraction = 0.45" in text
    planned = " ".join(run("plan", target).out.split())
    assert "Warning: max_rows = 1, so one row of each person is used, and all others are left out" in planned
    assert "A release of this plan takes 0.45 of the whole budget; 0.55 would remain for later releases." in planned
    first = run("suggest", target, "--key", "bound", "--largest-rows", 7, "--json")
    suggested = json.loads(first.out)
    assert suggested["max_rows"] == 4
    assert suggested["persons"][0] <= 4_000 <= suggested["persons"][1]
    assert suggested["rows"][0] <= 16_000 <= suggested["rows"][1]
    assert suggested["certificate"]["entry"]["left"] == "19/20"
    shown = " ".join(run("suggest", target, "--key", "bound", "--largest-rows", 7).out.split())
    for words in ("Suggested: max_rows = 4", "of the rows", "nothing was charged now", "write max_rows = 4"):
        assert words in shown
    target.write_text(text.replace("\nmax_rows = 1", "\nmax_rows = 4"), encoding="utf-8")
    planned = " ".join(run("plan", target).out.split())
    assert "Warning: max_rows" not in planned
    assert "takes 0.45 of the whole budget; 0.95 is left now; 0.5 would remain for later releases." in planned
    result = json.loads(run("release", target, "--json").out)
    assert result["answers"][0]["rows"][0]["value"] == pytest.approx(16_000, abs=400)
    assert result["certificate"]["entry"]["left"] == "1/2"


def test_a_number_that_was_chosen_is_written_without_the_remark(run, folder):
    target = folder / "chosen.toml"
    shown = run("init", folder / "visits.parquet", "--privacy-unit", "user", "--max-rows", 2, "--out", target)
    assert "tightrope suggest" not in shown.out
    text = target.read_text(encoding="utf-8")
    assert re.search(r"^max_rows = 2$", text, re.MULTILINE)
    assert "NOT CHOSEN YET" not in text
    assert load_plan_file(target).document.privacy_unit.max_rows == 2


def test_what_cannot_be_suggested_is_refused_before_a_charge(run, folder):
    each_row = folder / "each.toml"
    run("init", folder / "visits.parquet", "--each-row", "--max-rows", 3, "--out", each_row).refused_with("--each-row")
    assert run("init", folder / "visits.parquet", "--each-row", "--out", each_row).code == 0
    run("suggest", each_row).refused_with("each person has one row")
    for fraction in ("2", "0", "", "nan", "1/0", "1e-5000"):
        run("suggest", folder / "plan.toml", "--budget-fraction", fraction).refused_with("budget_fraction")
    run("suggest", folder / "plan.toml", "--largest-rows", "0").refused_with("--largest-rows")
    assert not (folder / "tightrope.ledger").exists() or "0 releases" in run("ledger", "show", folder / "plan.toml").out
    assert run("suggest", folder / "plan.toml", "--budget-fraction", "0.9").code == 0
    run("suggest", folder / "plan.toml", "--budget-fraction", "0.2").refused_with("0.1 is left", code=3)


def test_a_suggestion_stopped_after_its_charge_is_finished_by_the_next_run(run, folder, monkeypatch):
    """Ctrl-C while the table is read: the line says what was spent, and the next run is not charged."""

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("tightrope.release.build_answers.TableRelease.read_and_draw", interrupted)
        run("suggest", folder / "plan.toml").refused_with("the budget was spent, and nothing was published", code=130)
    shown = json.loads(run("suggest", folder / "plan.toml", "--json").out)
    assert shown["certificate"]["entry"]["left"] == "19/20"
    with monkeypatch.context() as patch:
        patch.setattr("tightrope.release.session.Session.suggest_max_rows", interrupted)
        run("suggest", folder / "plan.toml").refused_with("interrupted", "nothing was spent", code=130)
