"""Least sizes by the sign of a logarithm."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tightrope.numerics.root_finding import Side, find_crossing, least_size


def search(above, guess, limits=(1e-6, 1e6)):
    return least_size(above, guess, width=0.1, within=1e-8, limits=limits)


@given(root=st.floats(1e-4, 1e4), guess=st.floats(1e-5, 1e5), slope=st.floats(0.01, 1000))
def test_the_root_from_anywhere_on_the_private_side(root, guess, slope):
    found = search(lambda size: slope * math.log(root / size), guess)
    assert root * (1 - 1e-12) <= found <= root * (1 + 1e-7)


@given(root=st.floats(1e-3, 1e3), guess=st.floats(1e-4, 1e4))
def test_a_jump_is_found_and_what_is_returned_passes(root, guess):
    found = search(lambda size: math.inf if size < root else -math.inf, guess)
    assert root <= found <= root * (1 + 1e-7)


def test_the_ends():
    assert search(lambda _: 1.0, 1.0) == math.inf
    assert search(lambda _: -1.0, 1.0) == pytest.approx(1e-6)
    assert search(lambda size: 1 - size, 50.0, limits=(2.0, 4.0)) == pytest.approx(2.0)


@pytest.mark.parametrize("side", ["passes", "fails"])
@pytest.mark.parametrize("fails_below", [True, False])
@given(root=st.floats(0.01, 0.99))
def test_crossings_end_on_the_side_that_was_asked_for(root: float, fails_below: bool, side: Side) -> None:
    def excess(place: float) -> float:
        return (root - place) * (1 if fails_below else -1)

    ends = (0.0, 1.0) if fails_below else (1.0, 0.0)
    found = find_crossing(excess, *ends, side=side)
    assert (excess(found) <= 0) == (side == "passes")
    assert found == pytest.approx(root, abs=1e-13)


def test_crossings_of_jumps() -> None:
    def excess(place: float) -> float:
        return math.inf if place < 0.3 else -math.inf

    assert excess(find_crossing(excess, 0.0, 1.0, side="passes")) < 0
    assert find_crossing(excess, 0.0, 1.0, side="fails") == pytest.approx(0.3, rel=1e-12)


def test_ends_are_believed() -> None:
    assert find_crossing(lambda place: 1e-17, 0.0, 0.75, side="fails") == 0.75
