"""Ranges that are read from the data, at a price."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import tightrope as tr
from tightrope.errors import BudgetRefused
from tightrope.release.costs.suggested import covering


def session(values: np.ndarray) -> tr.Session:
    budget = tr.Budget(epsilon=2, delta=1e-8)
    return tr.Session(pa.table({"x": values}), person=None, budget=budget)


def test_a_range_holds_nearly_all_values_and_is_charged():
    """Bounded noise never makes a full part of the axis an empty one, nor an empty one of 99 % a full one."""
    values = np.concatenate([np.full(5_000, -30.0), np.full(20_000, 40.0), np.full(5_000, 1_500.0)])
    opened = session(values)
    found = opened.suggest_bounds("x", share="0.5")
    assert found.between == (-50.0, 2_000.0)
    assert opened.spent["share"] == "0.5"
    assert "charged" in str(found)
    assert "-50.0" in str(found)
    assert found.answers.certificate["mechanisms"]
    with pytest.raises(BudgetRefused):
        opened.suggest_bounds("x", share="0.6")


def test_too_few_rows_give_no_range():
    found = session(np.array([5.0])).suggest_bounds("x", share="0.001")
    assert found.between is None
    assert "too small" in found.warning


def test_outliers_are_left_outside():
    counts = [0, 5, 0, 990, 0, 5]
    assert covering([0, 1, 2, 5, 10, 20], counts) == (5, 10)
    assert covering([0, 1], [3, 4]) == (0, 1)
