"""The same data in every source is taken, or refused, alike, and a column that is not asked about stops no table."""

from __future__ import annotations

from pathlib import Path

import pytest

import tightrope as tr
from tests.tables.questions import ask
from tests.tables.sources.types_by_source import SOURCES, documented_rows, expected_outcome, named_columns
from tightrope.errors import SchemaError


def expected_keys(value: object) -> tuple[tuple[object, ...], ...]:
    return ((None,),) if value is None else ((None,), (value,))


@pytest.mark.parametrize("source", SOURCES)
def test_every_type_is_read_or_refused_alike(source, tmp_path):
    """All types are columns of one table, so that none of them stops the others."""
    table = SOURCES[source](tmp_path)
    columns = named_columns(source)
    expected = {name: expected_outcome(source, case, native) for name, (case, native, _) in columns.items()}
    kinds = {name: kind for name, (kind, _) in expected.items()}
    natives = {name: native for name, (_, native, _) in columns.items()}
    assert {name: (natives[name], table.schema.find_column(name).kind) for name in columns} == {
        name: (natives[name], kind) for name, kind in kinds.items()
    }
    requests = {name: ask(name) for name, kind in kinds.items() if kind != "other"}
    with table.open_snapshot([ask("k"), *requests.values()]) as rows:
        keys = {name: rows.collect_totals(request).keys for name, request in requests.items()}
        assert rows.collect_totals(ask("k")).keys == ((7,), (8,))
    readable = {name: expected_keys(value) for name, (_, value) in expected.items() if name in keys}
    assert {natives[name]: keys[name] for name in keys} == {natives[name]: value for name, value in readable.items()}
    session = tr.Session(table, privacy_unit=None, budget=tr.Budget(epsilon=1, delta=1e-8))
    for name in kinds.keys() - requests.keys():
        for question in (tr.count(by=name), tr.sum(name, bounds=(0, 1)), tr.count_distinct(name)):
            with pytest.raises(SchemaError, match=rf"the column '{name}' has .*, which cannot .*; "):
                session.plan([question])


def test_the_documented_table_is_this_one():
    page = (Path(__file__).parents[3] / "docs" / "column-types.md").read_text()
    assert "\n".join(documented_rows()) in page
