"""Points by their distances from 0 and from a corner, one by one."""

from __future__ import annotations

from collections import Counter
from itertools import product

import numpy as np
import pytest

from tightrope.mechanisms.discrete.box_table import points_with_both_ends, shared_point_counts

REACH = 4


@pytest.mark.parametrize("shift", [1, 2, 3, 5, 9])
@pytest.mark.parametrize("dimension", [2, 3, 4])
def test_they_are_counted_as_when_one_goes_through_them(dimension, shift):
    found = Counter()
    for point in product(range(-REACH, REACH + 1), repeat=dimension):
        found[max(map(abs, point)), max(abs(x - shift) for x in point)] += 1
    asked = [(a, a + apart) for a in range(REACH + 1) for apart in range(-shift, shift + 1)]
    for a, b in asked:
        length, one_end = a + b - shift + 1, abs(a - b) == shift
        assert shared_point_counts(np.array([float(length)]), dimension, one_end=one_end) == found[a, b]
    assert set(found) <= set(asked)


def test_floats_keep_their_digits_where_differences_of_powers_would_not():
    exact = points_with_both_ends(10**6 - 1, 5)
    assert shared_point_counts(np.array([1e6]), 5, one_end=False)[0] == pytest.approx(exact, rel=1e-14)
