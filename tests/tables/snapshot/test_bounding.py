"""The pieces of bounding: the encoding under the hash, and who is looked at closely."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from tightrope.tables import ContributionBounds, bounding
from tightrope.tables.backends.duckdb import open_connection
from tightrope.tables.bounding import ProjectedRows
from tightrope.tables.engine_calls import load_library

BACKEND = open_connection()
TEXTS = st.none() | st.text("n:,1a\N{GRINNING FACE}", max_size=4)
VALUES = st.tuples(TEXTS, st.none() | st.integers(-20, 20), TEXTS)


@settings(max_examples=80, deadline=None)
@given(st.lists(VALUES, min_size=1, max_size=60))
def test_different_rows_have_different_texts(values):
    types = (pa.string(), pa.int64(), pa.string())
    columns = [pa.array(column, kind) for column, kind in zip(zip(*values, strict=True), types, strict=True)]
    table = load_library("ibis").memtable(pa.table(columns, ["a", "b", "c"]))
    texts = BACKEND.to_pyarrow(table.select(text=bounding.encode_columns([table[name] for name in "abc"])))[
        "text"
    ].to_pylist()
    assert len(set(texts)) == len(set(values))
    assert None not in texts


def test_only_persons_over_a_bound_are_looked_at():
    people = {"person": [1, 1, 2, 2, 3, 3, 3, 4], "key0": ["a", "b", "a", "a", "a", "b", "c", None]}
    rows = ProjectedRows(load_library("ibis").memtable(pa.table(people)), ("key0",), ())

    def over(*bounds: int) -> set[int]:
        return set(
            BACKEND.to_pyarrow(bounding.persons_over_bound(rows, ContributionBounds("person", *bounds)))[
                "person"
            ].to_pylist()
        )

    assert over(3, 3, 3) == set()
    assert over(2, 2, 2) == {3}
    assert over(3, 1, 3) == {2}
    assert over(3, 3, 1) == {1, 3}
    assert over(1, 1, 1) == {1, 2, 3}
