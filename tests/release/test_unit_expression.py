"""A privacy unit that is an expression: in a session, a plan file, a ledger and a starter plan."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

import tightrope as tr
from tightrope.cli.main import app
from tightrope.errors import InputError, PlanError, SchemaError

BUDGET = tr.Budget(epsilon=1, delta=1e-8)
VISITS = pd.DataFrame({
    "patient": ["Ann", "ANN", "bob", "Bob", "Eve"] * 40,
    "hospital": ["north", "south"] * 100,
    "nr": list(range(50)) * 4,
    "cost": [float(place % 7) for place in range(200)],
})  # fmt: skip


def session(unit: object = "lower(patient)", **changes: object) -> tr.Session:
    return tr.Session(VISITS, privacy_unit=unit, max_rows=3, budget=BUDGET, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize("unit", ["lower(patient)", tr.column("patient").lower()])
def test_the_unit_is_named_by_its_text_everywhere(unit: object) -> None:
    opened = session(unit)
    plan = opened.plan([tr.count(), tr.mean("cost", bounds=(0, 7), by="hospital")], bias_check=0.1)
    assert repr(opened).startswith("<Session: rows with the same 'lower(patient)' are a person")
    assert "one person (a value of lower(patient)) with all their rows" in str(plan)
    assert "Rows whose lower(patient) is missing" in str(plan)
    answers = plan.release()
    assert answers.certificate["neighbors"]["privacy_unit"] == "lower(patient)"


def test_a_column_in_an_expression_s_clothes_is_the_column() -> None:
    assert session('column("patient")').privacy_unit == session("patient").privacy_unit


@pytest.mark.parametrize(
    ("unit", "error", "told"),
    [
        ("patiant", SchemaError, "did you mean 'patient'"),
        ("lower(patiant)", SchemaError, "did you mean 'patient'"),
        ("lower(patient", InputError, "privacy_unit: 'lower\\(patient' is not valid"),
        ("lower(cost)", InputError, "a text for lower"),
        ("cost > 3", InputError, "differs from person to person"),
        ("concat('a', 'b')", InputError, "differs from person to person"),
        (3, InputError, "the name of a column, an expression, or None"),
    ],
)
def test_what_cannot_identify_people_is_refused(unit: object, error: type[InputError], told: str) -> None:
    with pytest.raises(error, match=told):
        session(unit)


def test_an_expression_that_reads_as_another_column_is_refused() -> None:
    table = VISITS.assign(**{"lower(patient)": VISITS["nr"]})
    with pytest.raises(InputError, match="is also the name of a column"):
        tr.Session(table, privacy_unit=tr.column("patient").lower(), max_rows=1, budget=BUDGET)
    assert (
        tr.Session(table, privacy_unit="lower(patient)", max_rows=1, budget=BUDGET).privacy_unit.column
        == "lower(patient)"
    )


def test_people_are_counted_and_not_grouped_by() -> None:
    with pytest.raises(PlanError, match="another column than the person's"):
        session().plan([tr.count(by="lower(patient)")])
    with pytest.raises(PlanError, match="leave it out: then persons are counted"):
        session().plan([tr.count_distinct("lower(patient)")])


PLAN = """document = "plan"
version = 2
[source]
path = "visits.parquet"
[privacy_unit]
column = "concat(hospital, '/', nr)"
max_rows = 2
noun = "a bed"
[budget]
epsilon = 1
delta = 1e-8
[[question]]
kind = "count"
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    VISITS.to_parquet("visits.parquet")
    Path("plan.toml").write_text(PLAN, encoding="utf-8")
    return tmp_path


@pytest.mark.usefixtures("folder")
def test_a_plan_file_is_planned_and_released_and_its_ledger_keeps_the_unit() -> None:
    run = CliRunner().invoke(app, ["plan", "plan.toml"], env={"COLUMNS": "300"})
    assert run.exit_code == 0, run.output
    assert "concat(hospital, '/', nr)" in run.stdout
    assert CliRunner().invoke(app, ["release", "plan.toml"]).exit_code == 0
    verified = CliRunner().invoke(app, ["verify", "certificate.json"])
    assert verified.exit_code == 0, verified.output
    Path("plan.toml").write_text(PLAN.replace("'/'", "'-'"), encoding="utf-8")
    changed = CliRunner().invoke(app, ["release", "plan.toml", "--force"], env={"COLUMNS": "300"})
    assert changed.exit_code == 2
    assert "the ledger has \"concat(hospital, '/', nr)\" for this dataset" in changed.output


@pytest.mark.usefixtures("folder")
def test_a_starter_plan_takes_an_expression() -> None:
    made = CliRunner().invoke(app, ["init", "visits.parquet", "--privacy-unit", "lower(patient)", "--out", "new.toml"])
    assert made.exit_code == 0, made.output
    assert 'column = "lower(patient)"' in Path("new.toml").read_text(encoding="utf-8")
    assert CliRunner().invoke(app, ["plan", "new.toml"]).exit_code == 0
