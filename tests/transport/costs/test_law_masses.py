"""Laws as whole numbers: the sum is exact, and no mass becomes zero or less."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tightrope import transport
from tightrope.transport.costs.costs import round_to_integer_masses

EXPONENTS = st.lists(st.floats(-300, 0) | st.just(0.0) | st.floats(-20, -15), min_size=1, max_size=12)


@given(EXPONENTS, st.integers(20, 61))
def test_masses_stay_positive_and_add_up(exponents: list[float], bits: int) -> None:
    law = 10.0 ** np.array(exponents)
    law = law / law.sum()
    found = round_to_integer_masses(law, bits)
    assert int(found.sum()) == 1 << bits
    assert np.array_equal(found > 0, law > 0)
    assert np.all(np.abs(np.ldexp(found.astype(float), -bits) - law) <= (len(law) + 1) * 2.0**-bits + 2.0**-50)


@pytest.mark.parametrize("p", [1, 2, math.inf])
def test_masses_far_below_a_unit_are_moved_too(p: float) -> None:
    """Five points, four of them with next to no mass: the flows once got a negative capacity, and no end."""
    law = np.array([1e-137, 1e-276, 1e-176, 1e-261, 1.0])
    table = np.abs(np.subtract.outer(np.arange(5.0), np.arange(5.0) + 0.5))
    for cost in (table, transport.points(np.arange(5.0)[:, None], np.arange(5.0)[:, None] + 0.5)):
        assert transport.wasserstein(law, law, cost, p=p) == pytest.approx(0.5)
    line = transport.line(np.arange(5.0), np.arange(5.0) + 0.5)
    assert transport.wasserstein(law, law, line, p=p) == pytest.approx(0.5)
    assert transport.wasserstein(law, law[::-1].copy(), transport.grid(5), p=p) == pytest.approx(4.0)
