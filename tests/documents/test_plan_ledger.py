"""The names of a plan's ledger and dataset, read without the rest of the plan, are those of the whole plan."""

from __future__ import annotations

from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest
from msgspec.structs import fields

from tightrope.documents.plan_ledger import read_ledger_place
from tightrope.errors import PlanError
from tightrope.release.plan_file import PlanDocument, load_plan_file
from tightrope.release.plan_sections import LedgerSection, SourceSection

PLAN = """
[source]
path = "data.parquet"
[privacy_unit]
each_row = true
[budget]
epsilon = 1
delta = 1e-8
[[question]]
kind = "count"
"""


@pytest.fixture
def plan(tmp_path: Path):
    pyarrow.parquet.write_table(pyarrow.table({"x": [1, 2]}), tmp_path / "data.parquet")
    (tmp_path / "link.parquet").symlink_to(tmp_path / "data.parquet")

    def written(text: str) -> Path:
        (tmp_path / "plan.toml").write_text(text, encoding="utf-8")
        return tmp_path / "plan.toml"

    return written


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("", ""),
        ("data.parquet", "link.parquet"),
        ("data.parquet", "./data.parquet"),
        ("[privacy_unit]", '[ledger]\ndataset = "visits"\n[privacy_unit]'),
        ("[privacy_unit]", '[ledger]\npath = "../other.ledger"\nnote = "agreed"\ntimes = 2\n[privacy_unit]'),
        ('path = "data.parquet"', 'spark = "data.parquet"'),
    ],
)
def test_the_names_are_those_of_the_whole_plan(plan, old, new):
    path = plan(PLAN.replace(old, new, 1))
    file = load_plan_file(path)
    assert read_ledger_place(path) == (file.ledger_location, file.dataset_name)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('path = "data.parquet"', 'postgres = "postgresql://anna@host/clinic"\ntable = "visits"'),
        ('path = "data.parquet"', 'spark = "s3://clinic/visits"'),
        ('path = "data.parquet"', 'path = "postgresql://anna:hush@host/clinic"'),
        ("[privacy_unit]", '[ledger]\npath = "postgresql://anna:hush@host/l"\n[privacy_unit]'),
        ("[source]", "# [source]"),
    ],
)
def test_a_plan_with_a_url_or_without_a_path_is_left_to_the_whole_check(plan, old, new):
    text = PLAN.replace(old, new, 1).replace('# [source]\npath = "data.parquet"', "")
    assert read_ledger_place(plan(text)) is None


def test_the_other_sections_and_the_table_are_not_read(plan):
    path = plan(PLAN.replace("data.parquet", "gone.parquet").replace("epsilon = 1", "epsilon = -1"))
    assert read_ledger_place(path) == (str(path.parent / "tightrope.ledger"), "gone.parquet")


@pytest.mark.parametrize(
    ("section", "kind"), [("", PlanDocument), ("source", SourceSection), ("ledger", LedgerSection)]
)
def test_every_key_of_a_plan_is_known_and_a_misspelled_one_is_an_error(plan, section, kind):
    for field in fields(kind):
        if (section, field.name) in {("", "source"), ("", "ledger"), ("source", "path")}:
            continue  # their own types
        head = f'{field.name} = "a"\n' if not section else ""
        inner = f'[{section}]\n{field.name} = "a"\n' if section else ""
        text = '[source]\npath = "data.parquet"\n'
        text = head + (text + inner if section == "ledger" else text + inner.partition("\n")[2])
        assert read_ledger_place(plan(text)) is not None, field.name
        with pytest.raises(PlanError, match=f"unknown key '{field.name}x'"):
            read_ledger_place(plan(text.replace(f"{field.name} =", f"{field.name}x =")))


def test_a_name_of_another_type_is_an_error_in_the_words_of_a_plan(plan):
    with pytest.raises(PlanError, match=r"\[ledger\] dataset to be text, got .*=3; put it in quotes"):
        read_ledger_place(plan(PLAN + "[ledger]\ndataset = 3\n"))
    with pytest.raises(PlanError, match="unknown section 'ledgr'; did you mean 'ledger'"):
        read_ledger_place(plan(PLAN + '[ledgr]\npath = "x"\n'))
