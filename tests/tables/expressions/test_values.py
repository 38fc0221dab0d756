"""Every engine computes what plain Python computes, and within the declared kind, range and values."""

from __future__ import annotations

import datetime as dt
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.tables.every_engine import ENGINES
from tests.tables.expressions import trees
from tests.tables.expressions.evaluator import evaluated
from tests.tables.questions import COUNT, ROW_IS_PERSON
from tightrope.tables import Request, Table
from tightrope.tables.expressions.parsing import parse_expression
from tightrope.tables.expressions.tree import ExpressionTree
from tightrope.tables.memory import MAX_ROW_BYTES, row_memory_bytes

PYTHON: dict[str, Any] = {
    "integer": int,
    "number": (int, float),
    "text": str,
    "boolean": bool,
    "date": dt.date,
    "timestamp": dt.datetime,
}


@pytest.fixture(scope="module", params=["arrow", "duckdb", "postgres", "spark"])
def table(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Table:
    folder: Path = tmp_path_factory.mktemp("rows")
    return ENGINES[request.param](trees.arrow(), folder)


def computed(table: Table, found: list[ExpressionTree]) -> list[tuple[object, ...]]:
    """The values of every tree in each row: keys of groups of one; in two requests if a row would take too much."""
    request = Request(("row", *dict.fromkeys(found)), None, ROW_IS_PERSON, (COUNT,))
    if row_memory_bytes(request, trees.SCHEMA) > MAX_ROW_BYTES:
        halves = computed(table, found[::2]), computed(table, found[1::2])
        return [tuple(pair[place % 2][place // 2] for place in range(len(found))) for pair in zip(*halves, strict=True)]
    return [key[1:] for key in table.collect_totals(request).keys]


@settings(max_examples=14, deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.generate])
@given(found=st.lists(trees.TREES, min_size=6, max_size=10, unique_by=str))
def test_engines_compute_what_python_computes(table: Table, found: list[ExpressionTree]) -> None:
    expected = [tuple(evaluated(tree, row) for tree in found) for row in trees.rows()]
    for tree, *pairs in zip(found, *map(zip, computed(table, found), expected), strict=True):
        assert [pair[0] for pair in pairs] == [pair[1] for pair in pairs], str(tree)


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(tree=trees.TREES)
def test_kind_range_and_values_hold_every_value(tree: ExpressionTree) -> None:
    facts = tree.infer_column_facts(trees.SCHEMA)
    assert len(set(facts.possible_values or ())) == len(facts.possible_values or ())
    for value in (evaluated(tree, row) for row in trees.rows()):
        if value is None:
            assert not facts.never_missing
            continue
        assert isinstance(value, PYTHON[facts.kind])
        assert facts.possible_values is None or value in facts.possible_values
        if facts.kind in ("integer", "number", "boolean") and math.isfinite(value):
            assert facts.lower <= float(value) <= facts.upper


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(tree=trees.TREES)
def test_a_tree_reads_back_from_its_text(tree: ExpressionTree) -> None:
    assert parse_expression(str(tree)) == tree
