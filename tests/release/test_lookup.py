"""Public tables beside a session: in Python and in a plan file the same, and in the certificate by a digest."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tightrope as tr
from tightrope.documents.document import to_json_text
from tightrope.documents.release import read_certificate
from tightrope.errors import PlanError, SchemaError
from tightrope.release.execution import plan_digest
from tightrope.release.plan_file import load_plan_file

pytestmark = pytest.mark.usefixtures("planned_once")

BUDGET = tr.Budget(epsilon=1, delta=1e-6)
CITIES = pa.table({"town": ["Oslo", "Rome", "Bergen"], "region": ["north", "south", "north"], "alt": [23, 37, 12]})
PLAN = """
[source]
path = "people.parquet"

[[public_table]]
path = "cities.parquet"
on = { city = "town" }
columns = ["region"]

[privacy_unit]
column = "nr"
max_rows = 2

[budget]
epsilon = 1
delta = 1e-6

[[question]]
kind = "count"
by = "region"
keys = ["north", "south"]
"""


def people() -> pa.Table:
    draw = np.random.default_rng(1)
    return pa.table({"nr": np.arange(4_000) // 2, "city": draw.choice(["Oslo", "Rome", "Nowhere"], 4_000)})


def session(public: pa.Table = CITIES, **said: object) -> tr.Session:
    looked_up = tr.public_table(public, on={"city": "town"}, **said)  # type: ignore[arg-type]
    return tr.Session(people(), privacy_unit="nr", max_rows=2, budget=BUDGET, public_tables=looked_up)


def test_columns_of_a_public_table_are_asked_about_like_others():
    plan = session().plan([tr.count(by="region"), tr.mean("alt", bounds=(0, 50), where="region == 'south'")])
    answers = plan.release()
    true = people()["city"].to_pylist()
    counts = {row["region"]: row for row in answers[0].rows}
    assert set(counts) == {None, "north", "south"}
    reach = plan.noises()[0][0].noise_mechanism.worst_error
    assert abs(counts["south"]["value"] - true.count("Rome")) <= reach
    (south,) = answers[1].rows
    assert abs(south["value"] - 37) <= 4 * (south["upper"] - south["lower"])  # sixteen standard deviations


def test_the_certificate_says_which_public_table_by_its_digest():
    held = session(columns=["region"]).plan([tr.count(by="region", keys=["north"])]).release().certificate_data
    (named,) = held.public_tables
    assert (named.name, named.on, named.columns, named.rows) == ("a table in memory", {"city": "town"}, ("region",), 3)
    assert read_certificate(to_json_text(held)).public_tables == held.public_tables
    other = CITIES.set_column(1, "region", pa.array(["north", "south", "south"]))
    second = session(other, columns=["region"]).plan([tr.count(by="region", keys=["north"])]).release()
    assert second.certificate_data.public_tables[0].sha256 != named.sha256
    assert session().plan([tr.count(by="city", keys=["Oslo"])]).release().certificate_data.public_tables == ()


def test_another_public_table_is_another_question_to_a_ledger():
    ask = [tr.count(by="region", keys=["north"])]
    other = CITIES.set_column(1, "region", pa.array(["north", "south", "south"]))
    first, again, changed = (
        plan_digest(made.plan(ask).draft, None) for made in (session(), session(CITIES.take([2, 0, 1])), session(other))
    )
    assert first == again != changed


def test_a_ledger_knows_a_dataset_by_its_own_columns(tmp_path: Path):
    said = {"privacy_unit": "nr", "max_rows": 2, "budget": BUDGET, "ledger": tmp_path / "l", "dataset": "people"}
    tr.Session.open(people(), **said)  # type: ignore[arg-type]
    looked_up = tr.public_table(CITIES, on={"city": "town"})
    opened = tr.Session.open(people(), public_tables=looked_up, **said)  # type: ignore[arg-type]
    assert "region" in opened.schema.column_names


def test_a_person_is_a_column_of_the_private_table():
    with pytest.raises(SchemaError):
        tr.Session(
            people(),
            privacy_unit="region",
            max_rows=1,
            budget=BUDGET,
            public_tables=tr.public_table(CITIES, on={"city": "town"}),
        )


def test_a_plan_file_says_the_same(tmp_path: Path):
    pq.write_table(people(), tmp_path / "people.parquet")
    pq.write_table(CITIES, tmp_path / "cities.parquet")
    (tmp_path / "plan.toml").write_text(PLAN)
    plan = load_plan_file(tmp_path / "plan.toml").make_plan()
    assert [(public.name, public.added_schema.column_names) for public in plan.draft.public] == [
        ("cities.parquet", ("region",))
    ]
    assert {row["region"] for row in plan.release()[0].rows} == {"north", "south"}


@pytest.mark.parametrize(
    ("line", "changed", "place"),
    [
        ('on = { city = "town" }', 'on = { cty = "town" }', "public_table"),
        ('on = { city = "town" }', "on = 3", "public_table"),
        ('path = "cities.parquet"', 'path = "towns.parquet"', "public_table 1 path"),
        ('columns = ["region"]', 'columns = ["regoin"]', "public_table 1 column"),
        ('columns = ["region"]', 'column = ["region"]', "public_table"),
    ],
)
def test_a_plan_file_names_what_is_wrong(tmp_path: Path, line: str, changed: str, place: str):
    pq.write_table(people(), tmp_path / "people.parquet")
    pq.write_table(CITIES, tmp_path / "cities.parquet")
    (tmp_path / "plan.toml").write_text(PLAN.replace(line, changed))
    with pytest.raises((PlanError, SchemaError), match=place):
        load_plan_file(tmp_path / "plan.toml").make_plan()
