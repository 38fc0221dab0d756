"""A kind of question that nobody foresaw, in one file: it goes the whole way without a change in ``src``."""

from __future__ import annotations

import ast
import json
import math
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import final

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import tightrope as tr
from tightrope.cli.main import app
from tightrope.documents.privacy_unit import PrivacyUnit
from tightrope.errors import InputError, PlanError
from tightrope.queries.query import Integers, Noises, Query, Record
from tightrope.queries.query_group import QueryGroup, group_queries
from tightrope.queries.statistics import NoisyStatistic, column_grid, row_count, value_sum
from tightrope.release import plan_file
from tightrope.tables import open_source
from tightrope.tables.expressions.rounding import Cell

ABOVE, BELOW = "above zero", "below zero"


@final
@dataclass(frozen=True, slots=True)
class SumOfAbsoluteValues(Query):
    """Σ |x| with |x| ≤ up_to: the sum of what lies above zero, minus the sum of what lies below it."""

    column: str
    up_to: float = field(kw_only=True)

    kind = "sum_of_absolute_values"
    meaning = "How far all values are from zero together"
    additive = True
    uniform = True
    notes = ("values beyond the limit are moved to it",)
    entries = ("column", "up_to")

    def __post_init__(self) -> None:
        self.check_options(self.kind, self.column)

    def __str__(self) -> str:
        return f"sum of |{self.column}| up to {self.up_to:g}{self.asked.groups_text}"

    def noisy_statistics(self) -> tuple[NoisyStatistic, ...]:
        above, below = column_grid((0, self.up_to), centered=False), column_grid((-self.up_to, 0), centered=False)
        size = self.asked.relative_noise_size
        return value_sum(ABOVE, self.column, above, size), value_sum(BELOW, self.column, below, size)

    def estimate(self, integers: Integers, noises: Noises) -> Record:
        value = (integers[ABOVE] - integers[BELOW]) * noises[ABOVE].step_size
        _, width = self.expected_error(noises, 1)
        return {"value": value, "lower": value - width, "upper": value + width}

    def expected_error(self, noises: Noises, people: int) -> tuple[float, float]:
        """Both noises stay within their widths 95 % of the time."""
        return (
            sum(noise.mean_absolute for noise in noises.values()),
            sum(noise.half_width(0.975) for noise in noises.values()),
        )


PLAN = """
title = "Errors"
[source]
path = "errors.parquet"
[privacy_unit]
column = "person"
max_rows = 3
[budget]
epsilon = 4
delta = 1e-6
[[question]]
kind = "sum_of_absolute_values"
column = "x"
up_to = 10
by = "g"
keys = ["a", "b", "c"]
[[question]]
kind = "sum_of_absolute_values"
column = "x"
up_to = 10
by = "g"
name = "discovered"
"""


@pytest.fixture(autouse=True)
def registered():
    plan_file.register_query_kind(SumOfAbsoluteValues)
    yield
    del plan_file.ADDED_KINDS[SumOfAbsoluteValues.kind]


@pytest.fixture
def table() -> pd.DataFrame:
    rng = np.random.default_rng(11)
    return pd.DataFrame({
        "person": np.repeat(np.arange(2000), 2),
        "g": rng.choice(["a", "b"], 4000),
        "x": np.where(rng.random(4000) < 0.1, np.nan, rng.normal(0, 5, 4000)),
    })  # fmt: skip


def test_from_a_plan_file_to_certificate_and_page(table, tmp_path: Path):
    table.to_parquet(tmp_path / "errors.parquet")
    (tmp_path / "plan.toml").write_text(PLAN, encoding="utf-8")
    planned = CliRunner().invoke(app, ["plan", str(tmp_path / "plan.toml")])
    assert planned.exit_code == 0, planned.output
    assert "Sum of |x| up to 10 by g" in planned.stdout and "values beyond the limit are moved to it" in planned.stdout
    released = CliRunner().invoke(app, ["release", str(tmp_path / "plan.toml"), "--json"])
    assert released.exit_code == 0, released.output
    given, discovered = json.loads(released.stdout)["answers"]
    truth = table.assign(x=table["x"].clip(-10, 10).abs()).groupby("g")["x"].sum()
    for answer, groups in ((given, ["a", "b", "c"]), (discovered, ["a", "b"])):
        assert [row["g"] for row in answer["rows"]] == groups
        for row in answer["rows"]:
            width = row["upper"] - row["value"]
            assert abs(row["value"] - truth.get(row["g"], 0)) < 4 * width < 4_000
    certificate = json.loads((tmp_path / "certificate.json").read_text(encoding="utf-8"))
    assert 0 < certificate["epsilon"] <= 4
    assert [mechanism["statistic"] for mechanism in certificate["mechanisms"]] == ["sum", "sum", "count", "sum", "sum"]
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "Sum of |x| up to 10 by g" in page
    assert "How far all values are from zero together, for each" in page


def test_its_intervals_hold(table):
    opened = tr.Session(table, privacy_unit="person", max_rows=2, budget=tr.Budget(epsilon=1, delta=1e-6))
    empty = [f"nobody {number}" for number in range(300)]
    rows = opened.plan([SumOfAbsoluteValues("x", up_to=10, by="g", keys=empty)]).release()[0].rows
    errors, width = [abs(row["value"]) for row in rows], rows[0]["upper"] - rows[0]["value"]
    assert sum(error <= width for error in errors) >= 268  # of 300; at 95 % fewer have a probability of 1e-4
    assert sum(error > width / 3 for error in errors) > 20  # a third of it would not do
    assert len({row["value"] for row in rows}) > 290


TABLES, GROUPS = 80, ("a", "b", "c")


def random_tables(draw: np.random.Generator) -> pd.DataFrame:
    """Many tables in one: a column tells them apart and is part of every key, and a person is in one only."""
    rows = 20 * TABLES
    number, person = draw.integers(0, TABLES, rows), draw.integers(0, 4, rows)
    values = [math.nan, -math.inf, math.inf, -10.0, 10.0, 0.5, *draw.normal(0, 8, 6)]
    names = [f"{n} {p}" for n, p in zip(number, person, strict=True)]
    columns = {"number": number, "newcomer": person == 0, "person": names}
    return pd.DataFrame({**columns, "g": draw.choice(GROUPS, rows), "x": draw.choice(values, rows)})


def planned(frame: pd.DataFrame) -> QueryGroup:
    keys = {"number": range(TABLES), "g": list(GROUPS)}
    question = SumOfAbsoluteValues("x", up_to=10, by=["number", "g"], keys=keys)
    (query_group,) = group_queries([question], PrivacyUnit("person", 3, 2, 2), open_source(frame).schema)
    return query_group


def shares(query_group: QueryGroup, frame: pd.DataFrame) -> dict[str, float]:
    """The most that a person changes the integers of a vector by, over what is declared."""
    with_, without = (
        open_source(part).collect_totals(query_group.table_request).values
        for part in (frame, frame[~frame["newcomer"]])
    )
    found = {}
    for vector in query_group.noisy_statistics:
        change = np.abs(np.subtract(with_[vector.statistic_name], without[vector.statistic_name])).reshape(
            TABLES, len(GROUPS)
        )
        assert np.count_nonzero(change, axis=1).max() <= query_group.bounds.max_groups
        in_group, over_all = (
            change.max() / query_group.bounds.max_rows_per_group,
            change.sum(axis=1).max() / query_group.bounds.max_rows,
        )
        found[vector.statistic_name] = max(in_group, over_all) / vector.sensitivity
    return found


def test_no_person_moves_an_integer_by_more_than_is_declared():
    frame = random_tables(np.random.default_rng(5))
    found = shares(planned(frame), frame)
    assert len(found) == 2
    assert set(found.values()) == {1.0}  # and some come as far


def test_a_sensitivity_that_is_too_small_is_seen():
    frame = random_tables(np.random.default_rng(5))
    query_group = planned(frame)
    ((question, vectors),) = query_group.vectors_by_query.items()
    small = {name: replace(vector, sensitivity=vector.sensitivity - 1) for name, vector in vectors.items()}
    assert all(share > 1 for share in shares(replace(query_group, vectors_by_query={question: small}), frame).values())


def test_a_name_belongs_to_one_kind():
    @final
    @dataclass(frozen=True, slots=True)
    class Other(SumOfAbsoluteValues):  # type: ignore[misc]
        pass

    with pytest.raises(InputError, match="no other kind"):
        plan_file.register_query_kind(Other)


@final
@dataclass(frozen=True, slots=True)
class RowsInCells(Query):
    """A query that counts its groups in cells, and does not check that the groups are listed."""

    column: str

    kind = "rows_in_cells"
    meaning = "Rows by cell"
    additive = True
    uniform = True
    entries = ("column",)

    def __post_init__(self) -> None:
        self.check_options(self.kind, self.column)

    def __str__(self) -> str:
        return f"rows by cell of {self.column}"

    @property
    def cell_expression(self) -> Cell:
        return tr.quantile(self.column, bounds=(0, 10), q=0.5).cell_expression

    def noisy_statistics(self) -> tuple[NoisyStatistic, ...]:
        return (row_count("rows", 1.0),)

    def estimate(self, integers: Integers, noises: Noises) -> Record:
        raise NotImplementedError

    def expected_error(self, noises: Noises, people: int) -> tuple[float, float]:
        return 1.0, 1.0


def test_groups_in_cells_cannot_be_discovered(table: pd.DataFrame) -> None:
    """Counts of cells have no threshold: a discovered group would show that its key is in the data."""
    schema, person = open_source(table).schema, PrivacyUnit("person", 3, 2, 2)
    with pytest.raises(PlanError, match="cannot be discovered"):
        group_queries([RowsInCells("x", by="g")], person, schema)
    assert group_queries([RowsInCells("x", by="g", keys=["a"])], person, schema)


def test_texts_do_not_test_for_the_name_of_a_kind():
    """Texts follow from attributes of a query and from the statistics in a document, so that they fit new kinds."""
    kinds = {*plan_file.QUERY_KINDS, plan_file.MEDIAN}
    rooms = [
        Path(tr.__file__).parent / room for room in ("reporting", "cli", "studio", "documents", "release", "queries")
    ]
    tested = [
        (path.name, ast.unparse(node))
        for room in rooms
        for path in room.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Compare)
        and any(isinstance(one, ast.Attribute) and one.attr == "kind" for one in ast.walk(node))
        and any(isinstance(one, ast.Constant) and one.value in kinds for one in ast.walk(node))
    ]
    # Titles of documents of version 0.2.0 and before; and counts of persons, which are named after the privacy unit.
    names = ("release.py", "part"), ("sentences.py", "answer"), ("release_page.py", "answer")
    assert sorted(tested) == sorted((file, f"{one}.kind == 'count_distinct'") for file, one in names)
