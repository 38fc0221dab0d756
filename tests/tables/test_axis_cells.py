"""Numbers as cells: the engine and numpy agree on every double, ends are clamped, what is no number has no cell."""

from __future__ import annotations

import math

import numpy as np
import pyarrow
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tightrope.errors import InputError, SchemaError
from tightrope.tables import ContributionBounds, Measure, Request, open_source
from tightrope.tables.labels import CELL, Axis, add_cell_column

BOUNDS = ContributionBounds(None, 1, 1, 1)
VALUES = [
    math.nan,
    math.inf,
    -math.inf,
    -0.0,
    0.0,
    0.1,
    0.3,
    0.7,
    0.7000000000000001,
    1.0,
    1e300,
    -5.0,
    0.9999999999999999,
]


def in_engine(columns: dict[str, object], axes: list[Axis]) -> list[int]:
    """The cell of each row, −1 where there is none, as the engine counts them."""
    rows = pyarrow.table({"row": list(range(len(next(iter(columns.values()))))), **columns})
    request = Request(("row", CELL), None, BOUNDS, (Measure("rows", None, None),))
    grouped = add_cell_column(open_source(rows), axes).collect_totals(request)
    return [-1 if cell is None else int(cell) for _, cell in grouped.keys]


@pytest.mark.parametrize("axis", [Axis("x", 0, 1, 10), Axis("x", -1, 1e6, 7), Axis("x", 0.1, 0.7, 3)])
def test_engine_and_numpy_agree(axis: Axis) -> None:
    edges = axis.lower + np.arange(axis.cells + 1) * axis.cell_width
    values = np.concatenate([VALUES, edges, np.nextafter(edges, -np.inf), np.nextafter(edges, np.inf)])
    assert in_engine({"x": values}, [axis]) == axis.cell_numbers(values).tolist()


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6), st.integers(1, 1000), st.floats(allow_nan=False))
@example(0.1, 0.2, 3, 0.30000000000000004)
def test_cells_are_monotone_and_hold_their_centers(lower: float, width: float, cells: int, x: float) -> None:
    axis = Axis("x", lower, lower + width, cells)
    ordered = axis.cell_numbers(np.sort(np.array([x, lower, lower + width, lower + width / 2])))
    assert np.all(np.diff(ordered) >= 0)
    assert 0 <= ordered.min() <= ordered.max() == cells - 1
    assert axis.cell_numbers(axis.cell_centers).tolist() == list(range(cells))


def test_a_map_is_numbered_as_numpy_flattens_it() -> None:
    axes = [Axis("a", 0, 2, 2), Axis("b", 0, 3, 3)]
    columns = {"a": [0.5, 1.5, None, 9.0], "b": [2, 0, 1, 2]}
    assert in_engine(columns, axes) == [2, 3, -1, 5]


@pytest.mark.parametrize("wrong", [(1, 1, 3), (2, 1, 3), (math.nan, 1, 3), (0, math.inf, 3), (0, 1, 0), (0, 1, 1.5)])
def test_axes_that_are_none(wrong: tuple[float, float, int]) -> None:
    with pytest.raises(InputError):
        Axis("x", *wrong)
    with pytest.raises(InputError, match="cells"):
        Axis("x", 1.0, math.nextafter(1.0, 2.0), 1000)


def test_columns_that_cannot_be_cut() -> None:
    rows = open_source(pyarrow.table({"x": ["a"], "b": [True]}))
    for column in ("x", "b"):
        with pytest.raises(SchemaError, match="numeric"):
            add_cell_column(rows, [Axis(column, 0, 1, 2)])
    with pytest.raises(SchemaError, match="columns: 'x', 'b'"):
        add_cell_column(rows, [Axis("y", 0, 1, 2)])
