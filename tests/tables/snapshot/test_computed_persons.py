"""Persons who are computed from columns are bounded exactly as those of a column that has the same values."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tests.tables.questions import COUNT, mean
from tightrope.errors import InputError
from tightrope.tables import ContributionBounds, DistinctCount, Request
from tightrope.tables.expressions.parsing import parse_expression
from tightrope.tables.memory import check_row_memory
from tightrope.tables.schema import Column, Schema

NAMES = ["Ann", "ANN", "ann", "Bob", None, "bob", "", "Ärne", "ärne", "ÄRNE"] * 6
NUMBERS = [1, 2, 3, None] * 15
LOWER = [None if name is None else name.lower() for name in NAMES]
JOINED = [None if None in pair else f"{pair[0]}/{pair[1]}" for pair in zip(NAMES, NUMBERS, strict=True)]


@pytest.mark.parametrize(
    ("text", "column"), [("lower(name)", "lower"), ("concat(name, '/', nr)", "joined"), ("mod(nr, 2)", "parity")]
)
def test_computed_persons_are_bounded_as_those_of_a_column(opened, text, column):
    table = opened(
        pa.table({
            "name": pa.array(NAMES, pa.string()),
            "nr": pa.array(NUMBERS, pa.int64()),
            "lower": pa.array(LOWER, pa.string()),
            "joined": pa.array(JOINED, pa.string()),
            "parity": pa.array([None if number is None else number % 2 for number in NUMBERS], pa.int64()),
            "city": pa.array(["Oslo", "Rome", "Bern"] * 20, pa.string()),
            "x": pa.array([float(place % 11) for place in range(60)], pa.float64()),
        })
    )  # fmt: skip
    measures = (COUNT, *mean("x"), DistinctCount("different", "city", None))
    requests = [
        Request(by, None, ContributionBounds(person, *bounds), measures)
        for by, bounds in (((), (4, 4, 1)), (("city",), (4, 2, 2)), (("city",), (2, 2, 2)))
        for person in (parse_expression(text), column)
    ]
    with table.open_snapshot(requests) as snapshot:
        found = [snapshot.collect_totals(request) for request in requests]
    for computed, stored in zip(found[::2], found[1::2], strict=True):
        assert computed == stored
        assert sum(computed.values["rows"]) > 0


def test_a_person_of_many_new_texts_is_refused():
    schema = Schema((Column("name", "text"),))
    bounds = ContributionBounds(parse_expression(f"concat({', '.join(['lower(name)'] * 10)})"), 1, 1, 1)
    with pytest.raises(InputError, match="bytes of memory while it is counted"):
        check_row_memory(Request((), None, bounds, (COUNT,)), schema)
