"""A refusal of a plan file speaks of its keys, one of Python of its parameters; both take the same budgets."""

from __future__ import annotations

import inspect
import tomllib
from pathlib import Path

import pyarrow
import pyarrow.csv
import pyarrow.parquet
import pytest

import tightrope as tr
from tightrope.documents.budget import BUDGET_ARGUMENTS
from tightrope.errors import InputError, InsufficientBudgetError, TightropeError
from tightrope.queries.options import ENTRIES
from tightrope.release import Session
from tightrope.release.plan_file import PLAN_KEYS, QUERY_KINDS, PlanDocument, load_plan_file, query_class
from tightrope.release.plan_sections import BudgetSection
from tightrope.tables import Dialect, open_source

TABLE = pyarrow.table({"nr": [1, 2], "x": [0.5, 1.5], "k": ["a", "b"]})
MANY = "max_rows = 20_000"
PLAN = """
[source]
path = "data.parquet"
[privacy_unit]
column = "nr"
max_rows = 8
[budget]
epsilon = 1
delta = 1e-8
[[question]]
kind = "mean"
column = "x"
bounds = [0, 2]
by = "k"
"""


@pytest.fixture
def refusal(tmp_path: Path):
    pyarrow.parquet.write_table(TABLE, tmp_path / "data.parquet")
    pyarrow.csv.write_csv(TABLE, tmp_path / "data.csv")

    def refused(*changes: tuple[str, str]) -> str:
        text = PLAN
        for old, new in changes:
            assert old in text
            text = text.replace(old, new, 1)
        (tmp_path / "plan.toml").write_text(text, encoding="utf-8")
        with pytest.raises(TightropeError) as error:
            load_plan_file(tmp_path / "plan.toml").make_plan()
        return str(error.value)

    return refused


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            [("max_rows = 8", MANY)],
            ["expected [privacy_unit] max_rows to be", "max_rows_per_group = 1, max_groups = 1"],
        ),
        ([('by = "k"', 'by = "k"\nmax_groups = 0')], ["question 1 max_groups=0"]),
        ([('by = "k"', 'by = "k"\nmax_rows_per_group = 0')], ["question 1 max_rows_per_group=0"]),
        ([('by = "k"', 'keys = ["a"]')], ["question 1 keys", 'by = "city"']),
        ([("1e-8", "0.5")], ["[budget] delta"]),
        ([("1e-8", "0")], ["[budget] delta", "keys = [...]", "delta = 1e-12"]),
        ([("epsilon = 1", "points = [[-1, 0.1]]")], ["[budget] points"]),
        ([("epsilon = 1", "attack_success = 0.5")], ["[budget]", "attack_success"]),
        ([("epsilon = 1", 'epsilon = "1e-9"')], ["raise epsilon to"]),
        ([("epsilon = 1", "attack_success = 0.5000000000001")], ["raise attack_success, or"]),
        ([("epsilon = 1", 'points = [["1e-9", "1e-9"]]')], ["raise points, or"]),
        ([('"data.parquet"', '"data.parquet"\ntypes = {x = "number"}')], ["[source] types"]),
        ([('"data.parquet"', '"data.csv"\ndialect = {delimiter = "ab"}')], ["[source.dialect] delimiter"]),
        ([('"data.parquet"', '"data.parquet"\ntable = "t"')], ["[source] table"]),
        ([('"nr"', '"number"')], ["'number'", "'nr'"]),
    ],
    ids=lambda value: str(value)[:40],
)
def test_it_names_the_keys_of_the_file(refusal, changes, said):
    text = refusal(*changes)
    assert [word for word in said if word not in text] == []
    assert [name for name in ("keys=[...", "delta=1e") if name in text] == []


def test_python_names_its_parameters():
    opened = Session(TABLE, privacy_unit="nr", max_rows=20_000, budget=tr.Budget(epsilon=1, delta=1e-8))
    with pytest.raises(InputError, match=r"expected max_rows to be .*max_rows_per_group=1, max_groups=1"):
        opened.plan([tr.count(by="k")])
    with pytest.raises(InputError, match="expected max_groups"):
        tr.count(by="k", max_groups=0)


def test_every_parameter_has_its_key():
    """A parameter that is added without a key, or a key without a parameter, is found here."""
    called = (Session, Session.open, Session.plan, Session.series, open_source)
    parameters = {name for function in called for name in inspect.signature(function).parameters} - {
        "self",
        "session",
        "plan",
    }
    # the first two are called so in the file too, and are in no table; the other is an option of the command line
    assert parameters - set(PLAN_KEYS) == {"expected_rows", "margin_of_error", "key"}
    assert set(PLAN_KEYS) - parameters <= set(BUDGET_ARGUMENTS)
    sections = {part.encode_name: part.type for part in _fields(PlanDocument)}
    for key in PLAN_KEYS.values():
        table, _, name = key.rpartition(" ") if " " in key else (key, "", "")
        assert key in sections or _has(sections, table.strip("[]"), name)
    for kind in map(query_class, QUERY_KINDS):
        options = set(inspect.signature(kind).parameters)
        assert options == {*ENTRIES, *kind.entries}


def _fields(kind):
    import msgspec

    return msgspec.structs.fields(kind)


def _has(sections, table: str, name: str) -> bool:
    kinds = {**sections, "source.dialect": Dialect}
    return table in kinds and (not name or name in {field.encode_name for field in _fields(kinds[table])})


@pytest.mark.parametrize("epsilon", [41, 1000, 10_000])
def test_what_a_budget_accepts_is_planned(epsilon):
    """The noise is that of the largest ε that any is made for, and the plan says so."""
    plans = [
        Session(TABLE, privacy_unit=None, budget=tr.Budget(epsilon=e, delta=1e-8)).plan([tr.count(by="k")])
        for e in (40, epsilon)
    ]
    assert plans[0].to_data()["answers"][0]["noise"] == plans[1].to_data()["answers"][0]["noise"]
    notes = [plan.to_data()["answers"][0]["notes"] for plan in plans]
    assert [any("gives no meaningful protection" in note for note in said) for said in notes] == [False, True]


def test_beyond_it_both_interfaces_refuse():
    with pytest.raises(InputError, match=r"epsilon to be greater than 0 and at most 10,000"):
        tr.Budget(epsilon=10_001, delta=1e-8)
    with pytest.raises(InputError, match=r"points .* in \[0, 10000\]"):
        BudgetSection(points=((10_001, "1e-8"),))  # type: ignore[arg-type]
    with pytest.raises(InsufficientBudgetError, match="raise epsilon to"):
        Session(TABLE, privacy_unit=None, budget=tr.Budget(epsilon="1e-9", delta=1e-8)).plan([tr.count()])


def test_a_share_remembers_what_was_asked():
    assert tr.Budget(attack_success=0.6, delta=1e-8).scale_by("0.5").asked == ("attack_success", "delta")
    assert tr.Budget(epsilon=1, delta=0).asked == ("epsilon", "delta")
    assert tr.Budget(epsilon=1, delta=0) == tr.Budget(points=[(1, 0)])


def test_the_plan_of_these_tests_is_right():
    assert tomllib.loads(PLAN)["privacy_unit"]["max_rows"] == 8
