"""The first plan: it loads and runs as it is, explains itself, and makes no range up."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tightrope.errors import SchemaError
from tightrope.release.plan_file import load_plan_file
from tightrope.release.plan_sections import starter_plan_text, toml_string
from tightrope.tables.schema import Column, Schema

SCHEMA = Schema(
    (Column("nr", "integer"), Column("city", "text"), Column("income", "number"), Column("tags", "other"))
)  # fmt: skip
NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)
KINDS = st.sampled_from(["integer", "number", "text", "boolean", "date", "timestamp", "other"])


def uncommented(text: str, start: str) -> str:
    """The plan with the example that starts with this comment switched on."""
    before, _, after = text.partition(start)
    code = tuple(f"# {key}" for key in ("[[", "kind =", "by =", "column =", "bounds ="))
    lines = [line.removeprefix("# ") if line.startswith(code) else line for line in after.splitlines()]
    return before + start + "\n".join(lines)


def test_it_loads_and_runs_as_it_is(tmp_path: Path):
    table = pyarrow.table({"nr": [1, 2, 2], "city": ["a", "b", "b"], "income": [1.0, 2.0, 3.0]})
    pyarrow.parquet.write_table(table, tmp_path / "people.parquet")
    (tmp_path / "plan.toml").write_text(starter_plan_text(SCHEMA, "people.parquet", "nr"), encoding="utf-8")
    answers = load_plan_file(tmp_path / "plan.toml").make_plan().release()
    assert [answer.name for answer in answers] == ["total"]


def test_examples_ask_for_the_likeliest_columns():
    text = starter_plan_text(SCHEMA, "people.parquet", "nr")
    questions = tomllib.loads(uncommented(text, "# The number of rows").replace("?, ?", "0, 1"))["question"]
    assert questions[1] == {"kind": "count", "by": "city"}
    assert questions[2] == {"kind": "mean", "column": "income", "bounds": [0, 1], "by": "city"}


def test_no_range_is_made_up():
    """An example that is switched on without its range is no TOML."""
    with pytest.raises(tomllib.TOMLDecodeError):
        tomllib.loads(uncommented(starter_plan_text(SCHEMA, "people.parquet", "nr"), "# A mean"))


def test_every_setting_is_explained():
    text = starter_plan_text(SCHEMA, "people.parquet", "nr")
    for word in ("epsilon:", "delta:", "one over the number of people", "max_rows_per_group", "max_groups", "weight",
                 "title", "attack_success", "expected_rows", "keys", "tightrope plan", "result.json", "noun",
                 "docs/plan-file.md"):  # fmt: skip
        assert word in text
    assert max(map(len, text.splitlines())) <= 125


def test_each_row_csv_and_duckdb():
    alone = tomllib.loads(starter_plan_text(SCHEMA, "a/people.csv", None))
    assert alone["privacy_unit"] == {"each_row": True}
    assert alone["title"] == "people"
    typed = (
        starter_plan_text(SCHEMA, "a/people.csv", None)
        .replace('# "income"', '"income"')
        .replace("# [source.types]", "[source.types]")
    )
    assert tomllib.loads(typed)["source"]["types"] == {"income": "text"}  # what it is until somebody says otherwise
    marks = {"delimiter": ";", "decimal": ","}
    assert tomllib.loads(starter_plan_text(SCHEMA, "a/people.csv", None, dialect=marks))["source"]["dialect"] == marks
    assert tomllib.loads(starter_plan_text(SCHEMA, "p.duckdb", "nr", table="t"))["source"] == {
        "path": "p.duckdb",
        "table": "t",
    }


def test_a_person_that_cannot_be_one():
    with pytest.raises(SchemaError, match="did you mean 'nr'"):
        starter_plan_text(SCHEMA, "a.parquet", "nrr")
    with pytest.raises(SchemaError, match="cannot identify people"):
        starter_plan_text(SCHEMA, "a.parquet", "tags")


@given(names=st.lists(st.tuples(NAMES, KINDS), max_size=8, unique_by=lambda pair: pair[0]), path=NAMES)
def test_whatever_the_columns_are_called_it_is_toml(names, path):
    schema = Schema(tuple(Column(name, kind) for name, kind in names))
    for place in (path, f"{path}.csv"):
        plan = tomllib.loads(starter_plan_text(schema, place, None))
        assert plan["source"]["path"] == place
        assert len(plan["question"]) == 1


@given(NAMES)
def test_quoted_is_read_back(text):
    assert tomllib.loads(f"a = {toml_string(text)}")["a"] == text


def test_hundreds_of_columns_are_not_all_listed():
    schema = Schema(tuple(Column(f"c{i}", "number") for i in range(1_000)))
    assert "... and 900 more" in starter_plan_text(schema, "a.parquet", None)
    assert "... and 900 more" in starter_plan_text(schema, "a.csv", None)
