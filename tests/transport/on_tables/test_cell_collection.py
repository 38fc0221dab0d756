"""Cells on tables: centers of the target's law, only what was asked for, and no row that cannot be hidden."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

from tightrope.errors import InputError, SchemaError
from tightrope.tables import open_source
from tightrope.tables.labels import Axis
from tightrope.transport.couplings.mechanism import CouplingMechanism
from tightrope.transport.on_tables.collection import CellPoints, DrawJob, apply_cells
from tightrope.transport.on_tables.supports import Cells

MAP = Cells((Axis("y", 0, 2, 2), Axis("x", 0, 20, 2)))
LAWS = {1: [0.5, 0.5, 0.0, 0.0], 2: [0.0, 0.25, 0.25, 0.5]}
TARGET = [0.1, 0.4, 0.2, 0.3]


def mechanism() -> CouplingMechanism:
    return CouplingMechanism.fit(LAWS, MAP.transport_cost(), target=TARGET)


def rows(size: int) -> dict[str, object]:
    rng = np.random.default_rng(3)
    group = rng.integers(1, 3, size)
    cells = np.array([rng.choice(4, p=LAWS[int(one)]) for one in group])
    y, x = MAP.cell_centers(cells)
    return {"y": y + rng.uniform(-0.5, 0.5, size), "x": x + rng.uniform(-5, 5, size), "g": group, "year": group + 2000}


def test_every_group_comes_out_with_the_target(tmp_path: Path) -> None:
    size = 40_000
    place = tmp_path / "out.parquet"
    assert apply_cells(mechanism(), open_source(pyarrow.table(rows(size))), MAP, "g", place, keep=["year"]) == size
    out = pyarrow.parquet.read_table(place)
    assert out.column_names == ["y", "x", "year"]
    drawn = MAP.cell_numbers([out["y"].to_numpy(), out["x"].to_numpy()])
    for year in (2001, 2002):
        mine = drawn[out["year"].to_numpy() == year]
        shares = np.bincount(mine, minlength=4) / len(mine)
        assert np.abs(shares - TARGET).max() < 6 * np.sqrt(0.25 / len(mine))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"y": [0.5, None], "x": [1.0, 1.0], "g": [1, 1]}, "rows have values that are not among the points"),
        ({"y": [0.5, float("nan")], "x": [1.0, 1.0], "g": [1, 1]}, "rows have values that are not among the points"),
        ({"y": [0.5, 0.5], "x": [1.0, 1.0], "g": [1, 3]}, "rows have unknown groups"),
        ({"y": [0.5, 0.5], "x": [1.0, 1.0], "g": [1, None]}, "rows have unknown groups"),
    ],
)
def test_rows_that_cannot_be_hidden(change: dict[str, object], words: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=words):
        apply_cells(mechanism(), open_source(pyarrow.table(change)), MAP, "g", tmp_path / "out.parquet")
    assert not list(tmp_path.iterdir())


def test_columns(tmp_path: Path) -> None:
    table, place = open_source(pyarrow.table({**rows(10), "t": ["a"] * 10})), tmp_path / "out.parquet"
    for kept in ("y", "g"):
        with pytest.raises(InputError, match="keep"):
            apply_cells(mechanism(), table, MAP, "g", place, keep=[kept])
    with pytest.raises(SchemaError, match="numeric"):
        apply_cells(mechanism(), table, Cells((Axis("t", 0, 1, 2), MAP.axes[1])), "g", place)
    with pytest.raises(SchemaError):
        apply_cells(mechanism(), table, MAP, "missing", place)


def test_the_work_travels_without_memory(tmp_path: Path) -> None:
    """On a cluster it is sent to the workers."""
    work = DrawJob.from_mechanism(mechanism(), CellPoints(MAP), "g")
    batch = pyarrow.table({name: rows(50)[name] for name in ("y", "x", "g")}).to_batches()[0]
    there = pickle.loads(pickle.dumps(work))(batch)  # noqa: S301 - our own bytes
    assert there.schema == work.draw_schema
    assert set(there.column(0).to_pylist()) <= {0.5, 1.5}
