"""A plan file with ``[[marginals]]``: planned, released and verified by commands."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from tightrope.cli.main import app
from tightrope.errors import PlanError
from tightrope.release.plan_file import parse_plan_document
from tightrope.studio.plan_form import open_editor_state

PLAN = """
[source]
path = "people.parquet"
[privacy_unit]
each_row = true
[budget]
epsilon = 1
delta = 1e-8
[[marginals]]
columns = ["sex", { band = "cut(age, [20, 40])" }, "ok"]
orders = [1, 2]
keys.sex = ["F", "M"]
keys.ok = [false, true]
"""


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    draw = np.random.default_rng(1)
    rows = {"sex": np.array(["F", "M"])[draw.integers(0, 2, 500)], "age": draw.integers(0, 90, 500)}
    pd.DataFrame({**rows, "ok": draw.integers(0, 2, 500).astype(bool)}).to_parquet(tmp_path / "people.parquet")
    path = tmp_path / "plan.toml"
    path.write_text(PLAN, encoding="utf-8")
    return path


def test_commands_plan_release_and_verify_it(plan: Path):
    planned = CliRunner().invoke(app, ["plan", str(plan)])
    assert planned.exit_code == 0, planned.stderr
    assert "Tables that add up to each other" in planned.stdout
    assert "marginals_by_sex_band" in planned.stdout
    assert "bias_check = " not in planned.stdout
    assert CliRunner().invoke(app, ["release", str(plan)]).exit_code == 0
    answers = json.loads((plan.parent / "result.json").read_text(encoding="utf-8"))["answers"]
    assert [answer["name"] for answer in answers][:2] == ["marginals_by_sex", "marginals_by_band"]
    checked = CliRunner().invoke(app, ["verify", str(plan.parent / "result.json")])
    assert checked.exit_code == 0, checked.stdout
    assert (plan.parent / "report.html").stat().st_size > 10_000


@pytest.mark.parametrize(
    ("changed", "parameter"),
    [
        ({"weight": "all"}, "marginals 1 weight"),
        ({"order": [1]}, "marginals 1"),
        ({"orders": [5]}, "marginals 1 orders"),
        ({"keys": {"city": [1, 2]}}, "marginals 1 keys"),
        ({"bounds": {"age": [1]}}, "marginals 1 bounds of age"),
    ],
)
def test_mistakes_are_named_with_their_place(changed: dict[str, object], parameter: str):
    sections = {"source": {"path": "a"}, "privacy_unit": {"each_row": True}, "budget": {"epsilon": 1, "delta": 1e-8}}
    with pytest.raises(PlanError) as caught:
        parse_plan_document({**sections, "marginals": [{"columns": ["sex", "age"], **changed}]})
    assert caught.value.name.startswith(parameter)


def test_a_plan_without_any_question_says_so():
    sections = {"source": {"path": "a"}, "privacy_unit": {"each_row": True}, "budget": {"epsilon": 1, "delta": 1e-8}}
    with pytest.raises(PlanError) as caught:
        parse_plan_document(sections)
    assert caught.value.name == "question"


def test_other_questions_and_the_editor_refuse_it(plan: Path):
    with pytest.raises(Exception, match="text editor"):
        open_editor_state(str(plan), None)
    plan.write_text(PLAN + '[[question]]\nkind = "count"\n', encoding="utf-8")
    refused = CliRunner().invoke(app, ["plan", str(plan)])
    assert refused.exit_code == 2
    assert "marginals" in refused.stderr
