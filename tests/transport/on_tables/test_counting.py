"""Counts by point and group: people once, NULL nowhere, only the names that are public."""

from __future__ import annotations

import math

import pyarrow
import pytest

from tightrope.documents.document import Triple
from tightrope.errors import InputError, SchemaError
from tightrope.tables import Table, open_source
from tightrope.tables.labels import Axis, Labels
from tightrope.transport.on_tables.saved import (
    KnownLaws,
    laws_from_counts,
    laws_from_entries,
    private_laws_from_counts,
    target_law,
)
from tightrope.transport.on_tables.supports import Categories, Cells, Population, count_points

AGES = Cells((Axis("age", 0, 100, 4),))
SEX = Population(group="sex")


def people() -> Table:
    return open_source(
        pyarrow.table(
            {
                "age": [10.0, 20.0, 60.0, 150.0, math.nan, None, 30.0, -4.0],
                "sex": ["f", "f", "m", "m", "m", "f", None, "m"],
                "city": ["Oslo", "Rome", "Oslo", "Oslo", None, "Rome", "Rome", "Bergen"],
                "person": [1, 1, 2, 2, 2, 3, 3, 3],
            }
        )
    )


def test_cells_and_categories() -> None:
    found = count_points(people(), AGES, SEX)
    assert {group: cells.tolist() for group, cells in found.cells.items()} == {"f": [2, 0, 0, 0], "m": [1, 0, 1, 1]}
    named = count_points(people(), "city", SEX)
    assert named.support.point_names == ("Bergen", "Oslo", "Rome")
    assert named.cells["m"].tolist() == [1, 2, 0]


def test_of_each_person_one_row_counts() -> None:
    found = count_points(people(), "city", Population(group="sex", person="person"))
    assert sum(int(cells.sum()) for cells in found.cells.values()) <= 3


def test_only_public_names() -> None:
    some = Categories("city", Labels.from_names(["Oslo", "Paris"]))
    found = count_points(people(), some, Population(group="sex", groups=("m", "x")))
    assert {group: cells.tolist() for group, cells in found.cells.items()} == {"m": [2, 0], "x": [0, 0]}
    with pytest.raises(InputError, match="groups without rows"):
        laws_from_counts(found)


def test_shares_and_private_shares() -> None:
    found = count_points(people(), AGES, SEX)
    assert laws_from_counts(found).laws["f"].tolist() == [1.0, 0.0, 0.0, 0.0]
    learned = private_laws_from_counts(found, 40.0, person=None)
    assert learned.laws["f"] == pytest.approx([3 / 6, 1 / 6, 1 / 6, 1 / 6])  # no noise at such an epsilon; smoothed
    assert learned.learning is not None
    assert learned.learning.left[0] == Triple(epsilon=0.0, delta=1.0, total_variation=1.0)
    assert (learned.kind, learned.learning.epsilon) == ("private", 40.0)
    for wrong in (0.0, -1.0, math.nan, math.inf, 41.0):
        with pytest.raises(InputError, match="epsilon"):
            private_laws_from_counts(found, wrong, person=None)


def test_columns_that_cannot_serve() -> None:
    with pytest.raises(SchemaError, match="--bins"):
        count_points(people(), "age", SEX)
    with pytest.raises(SchemaError, match="numeric"):
        count_points(people(), Cells((Axis("city", 0, 1, 2),)), SEX)
    with pytest.raises(SchemaError, match="text or integers"):
        count_points(people(), "city", Population(group="age"))
    with pytest.raises(InputError, match="no row has both"):
        count_points(
            open_source(pyarrow.table({"a": pyarrow.array([], pyarrow.string()), "g": ["x"][:0]})),
            "a",
            Population(group="g"),
        )


def test_laws_that_are_written_down() -> None:
    entries = [("0", "a", 0.5), ("3", "a", 0.5), ("1", "b", 1.0)]
    known = laws_from_entries(entries, AGES, "age")
    assert known.laws["a"].tolist() == [0.5, 0.0, 0.0, 0.5]
    assert laws_from_entries(entries, None, "age").support.point_names == (0, 3, 1)
    wrongs = {
        "sum of the distribution": [("0", "a", 0.5)],
        "not negative": [("0", "a", 1.5), ("1", "a", -0.5)],
        "occurs twice": [("0", "a", 0.5), ("0", "a", 0.5)],
        "is not one of the 4 points": [("4", "a", 1.0)],
        "the table has no lines": [],
    }
    for words, wrong in wrongs.items():
        with pytest.raises(InputError, match=words):
            laws_from_entries(wrong, AGES, "age")
    with pytest.raises(InputError, match="NaN"):
        laws_from_entries([("0", "a", math.nan)], AGES, "age")


def test_targets_by_name() -> None:
    known = KnownLaws(AGES, {0: [1.0, 0, 0, 0], 1: [0, 0, 0, 1.0]}, "table")  # type: ignore[dict-item]
    assert target_law(known, "barycenter") is None
    uniform = target_law(known, "uniform")
    assert uniform is not None
    assert uniform.tolist() == [0.25] * 4
    assert target_law(known, "1") == [0, 0, 0, 1.0]
    with pytest.raises(InputError, match="target"):
        target_law(known, "2")
