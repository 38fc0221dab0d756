"""Reports in Arrow and back."""

import sys

import numpy as np
import pytest

from tests.local.mechanisms.channel_definitions import MAKERS
from tightrope import local
from tightrope.errors import InputError, MissingExtraError

pa = pytest.importorskip("pyarrow")


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("k", [4, 8, 63, 64, 65, 130])
def test_there_and_back(name, k):
    m = MAKERS[name](1.0, k)
    reports = m.perturb(np.arange(100) % k)
    if reports.ndim == 2:
        column = local.bits_to_arrow(reports, k)
        back = local.bits_from_arrow(column, k)
        assert column.nbytes == 100 * -(-k // 8)
        parts = pa.chunked_array([column.slice(0, 30), column.slice(30, 0), column.slice(30)])
        assert np.array_equal(local.bits_from_arrow(parts, k), reports)
        assert np.array_equal(local.bits_from_arrow(column.slice(7, 20), k), reports[7:27])
    else:
        column = local.to_arrow(reports)
        back = local.from_arrow(column)
        assert column.nbytes == reports.nbytes
        assert np.array_equal(local.from_arrow(pa.chunked_array([column, column])), np.tile(reports, 2))
    assert back.dtype == reports.dtype
    assert np.array_equal(back, reports)
    assert np.array_equal(m.estimate(back).value, m.estimate(reports).value)


def test_nobody():
    m = local.unary_encoding(1.0, 70)
    assert local.bits_from_arrow(local.bits_to_arrow(m.perturb([]), 70), 70).shape == (0, 2)
    assert len(local.from_arrow(local.to_arrow(np.zeros(0, dtype=np.uint8)))) == 0


def test_other_columns_are_refused():
    for column in (pa.array([1.5]), pa.array([1]), pa.array([1, None], pa.uint8()), pa.array(["a"])):
        with pytest.raises(InputError, match="column"):
            local.from_arrow(column)
        with pytest.raises(InputError, match="column"):
            local.bits_from_arrow(column, 20)
    with pytest.raises(InputError, match="column"):
        local.bits_from_arrow(local.bits_to_arrow(np.zeros((1, 1), dtype=np.uint64), 8), 20)
    with pytest.raises(InputError, match="highest bit"):
        local.bits_from_arrow(pa.array([b"\xff"], pa.binary(1)), 5)


def test_other_reports_are_refused():
    for reports in ([1, 2], np.array([1.0]), np.array([-1]), np.zeros((2, 2), dtype=np.uint64)):
        with pytest.raises(InputError, match="reports"):
            local.to_arrow(reports)
    with pytest.raises(InputError, match="rows"):
        local.bits_to_arrow(np.zeros((2, 2), dtype=np.uint64), 20)


def test_without_pyarrow(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match="pyarrow"):
        local.to_arrow(np.zeros(1, dtype=np.uint8))
