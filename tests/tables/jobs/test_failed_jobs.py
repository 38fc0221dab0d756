"""A job that fails leaves the engine as it was, and says why itself."""

from __future__ import annotations

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

from tightrope.errors import InputError
from tightrope.tables import open_source, sum_over_batches, write_columns


def refuse(batch):
    raise InputError("row", len(batch), "another one")


@pytest.fixture
def table(tmp_path):
    pyarrow.parquet.write_table(pyarrow.table({"a": range(10)}), tmp_path / "a.parquet")
    return open_source(tmp_path / "a.parquet")


def test_its_own_error_comes_through_and_the_table_can_be_used_again(table):
    for _ in range(2):
        with pytest.raises(InputError, match="another one"):
            sum_over_batches(table, ["a"], refuse, 1)
    assert sum_over_batches(table, ["a"], lambda batch: np.array([sum(batch.column(0).to_pylist())]), 1).tolist() == [
        45
    ]


def test_nothing_is_left_of_a_file(table, tmp_path):
    with pytest.raises(InputError, match="another one"):
        write_columns(table, ["a"], refuse, pyarrow.schema([("b", pyarrow.int64())]), tmp_path / "b.parquet")
    assert [path.name for path in tmp_path.iterdir()] == ["a.parquet"]
