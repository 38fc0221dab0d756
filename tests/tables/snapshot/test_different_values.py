"""How many different values there are: the rules, over every engine, and plain Python beside them."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pyarrow as pa
import pytest

from tests.tables.questions import COUNT, ask, mean, per_person
from tightrope.errors import InputError, SchemaError
from tightrope.release.execution import digest_text
from tightrope.tables import DistinctCount, Measure, open_source

NAN = float("nan")
DIFFERENT = DistinctCount("different", "v", None)


def test_each_value_counts_once_and_missing_ones_never(opened):
    table = opened(pa.table({"k": ["a", "a", "a", "b", "b", None], "v": ["x", "X", "x", None, None, "x"]}))
    answer = table.collect_totals(ask("k", measures=(COUNT, DIFFERENT)))
    assert answer.keys == ((None,), ("a",), ("b",))
    assert answer.values == {"rows": (1, 3, 2), "different": (1, 2, 0)}
    assert table.collect_totals(ask(measures=(DIFFERENT, COUNT))).values == {"different": (2,), "rows": (6,)}


def test_a_listed_group_without_rows_has_none(opened):
    table = opened(pa.table({"k": ["a", "a"], "v": [1, 2]}))
    answer = table.collect_totals(ask("k", keys=[("a",), ("z",)], measures=(DIFFERENT,)))
    assert answer.values == {"different": (2, 0)}


def test_values_are_what_keys_are(opened):
    table = opened(pa.table({"v": [0.0, -0.0, NAN, None, 1.5, 1.5]}))
    assert table.collect_totals(ask(measures=(DIFFERENT,))).values == {"different": (2,)}


def test_an_empty_table_has_none(opened):
    table = opened(pa.table({"person": pa.array([], pa.int64()), "v": pa.array([], pa.string())}))
    answer = table.collect_totals(ask(measures=(COUNT, DIFFERENT), bounds=per_person()))
    assert answer.values == {"rows": (0,), "different": (0,)}


def test_only_rows_that_are_used_bring_values(opened):
    """A person of many values brings as many as rows of theirs count; others bring what they share."""
    people = [1] * 50 + [2, 3, 4]
    table = opened(pa.table({"person": people, "v": [*range(50), 900, 900, 901]}))
    answer = table.collect_totals(ask(bounds=per_person(3), measures=(COUNT, DIFFERENT)))
    assert answer.values == {"rows": (6,), "different": (5,)}


def test_beside_sums_and_counts_of_the_same_rows(opened):
    draw = np.random.default_rng(3)
    rows = {"person": draw.integers(0, 30, 200), "k": draw.integers(0, 3, 200), "v": draw.integers(0, 9, 200)}
    measures = (*mean("v"), DIFFERENT, COUNT)
    found = opened(pa.table(rows)).collect_totals(ask("k", bounds=per_person(99), measures=measures))
    expected = defaultdict(list)
    for key, value in zip(rows["k"], rows["v"], strict=True):
        expected[int(key)].append(int(value))
    assert found.values["different"] == tuple(len(set(expected[key])) for (key,) in found.keys)  # type: ignore[index]
    assert found.values["usable"] == found.values["rows"] == tuple(len(expected[key]) for (key,) in found.keys)  # type: ignore[index]


def test_what_has_no_plain_values_is_refused():
    table = open_source(pa.table({"v": [[1], [2]]}))
    with pytest.raises(SchemaError, match="the column 'v' has the type list"):
        table.collect_totals(ask(measures=(DIFFERENT,)))
    for wrong in ({"column": None, "fixed_point": None}, {"column": "v", "fixed_point": mean("v")[1].fixed_point}):
        with pytest.raises(InputError, match="one column or expression"):
            DistinctCount("different", **wrong)


def test_a_plain_measure_is_written_as_before():
    """Keys of releases are digests of what is asked: what was asked before has the digest that it had."""
    assert (
        digest_text(Measure("rows", None, None)) == "Measure(name='rows', column=None, fixed_point=None, beside=None)"
    )


def test_long_texts_are_short_while_they_are_counted(opened):
    """One person's texts of megabytes would fill the memory, and stop the release exactly where they are: missing."""
    texts = ["a" * 9_999 + str(place % 3) for place in range(29)] + ["a" * 2_000_000, "b", "B", None]
    table = opened(pa.table({"person": [*range(30), 1, 2, 3], "v": texts}))
    answer = table.collect_totals(ask(bounds=per_person(3), measures=(DIFFERENT, COUNT)))
    assert answer.values == {"different": (5,), "rows": (33,)}
