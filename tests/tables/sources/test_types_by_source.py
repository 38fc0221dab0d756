"""The same data in every source is taken, or refused, alike, and a column that is not asked about stops no table."""

from __future__ import annotations

from pathlib import Path

import pytest

import tightrope as tr
from tests.tables.questions import ask
from tests.tables.sources.types_by_source import SOURCES, documented_rows, expected_outcome, named_columns
from tightrope.errors import SchemaError


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
    readable = {name: value for name, (kind, value) in expected.items() if kind != "other"}
    names = list(readable)
    requests = [ask("k", *names[start : start + 15]) for start in range(0, len(names), 15)]
    with table.open_snapshot(requests) as rows:
        for request in requests:
            found = [dict(zip(request.by, key, strict=True)) for key in rows.collect_totals(request).keys]
            chosen = {name: readable[str(name)] for name in request.by[1:]}
            assert found == [{"k": 7} | chosen, {"k": 8} | dict.fromkeys(chosen)], natives
    session = tr.Session(table, privacy_unit=None, budget=tr.Budget(epsilon=1, delta=1e-8))
    for name in kinds.keys() - readable.keys():
        for question in (tr.count(by=name), tr.sum(name, bounds=(0, 1)), tr.count_distinct(name)):
            with pytest.raises(SchemaError, match=rf"the column '{name}' has .*, which cannot .*; "):
                session.plan([question])


def test_the_documented_table_is_this_one():
    page = (Path(__file__).parents[3] / "docs" / "column-types.md").read_text()
    assert "\n".join(documented_rows()) in page
