"""Roots, crossings, least sizes and bisections: on the requested side, for NaN, plateaus and ends of any kind."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tightrope.errors import InputError, PrecisionError
from tightrope.numerics.root_finding import (
    Side,
    bisect_arrays,
    bisect_integer,
    bisect_real,
    bracket_by_doubling,
    find_crossing,
    find_root,
    least_size,
)


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


@pytest.mark.parametrize("search", [find_crossing, bisect_real])
@pytest.mark.parametrize("side", ["passes", "fails"])
def test_nan_is_on_neither_side(search, side: Side) -> None:
    with pytest.raises((PrecisionError, ValueError)):
        search(lambda _: math.nan, 0.0, 1.0, side=side)


def test_nan_in_other_searches() -> None:
    with pytest.raises(PrecisionError):
        search(lambda _: math.nan, 1.0)
    with pytest.raises(PrecisionError):
        bisect_integer(lambda _: math.nan, 0, 10, side="passes")  # type: ignore[arg-type, return-value]
    with pytest.raises(PrecisionError):
        bracket_by_doubling(lambda _: math.nan, 0.0, 1.0)  # type: ignore[arg-type, return-value]
    with pytest.raises(PrecisionError):
        bisect_arrays(lambda x: x * math.nan, np.zeros(2), np.ones(2), side="passes", halvings=3)
    with pytest.raises(ValueError, match="NaN"):
        find_root(lambda _: math.nan, 0.0, 1.0, within=1e-9)


@pytest.mark.parametrize("side", ["passes", "fails"])
@pytest.mark.parametrize("rises", [True, False])
@given(root=st.floats(-50, 50))
def test_bisection_ends_at_neighboring_floats(root: float, rises: bool, side: Side) -> None:
    def condition(x: float) -> bool:
        return x >= root if rises else x <= root

    fails, passes = (-60.0, 60.0) if rises else (60.0, -60.0)
    found = bisect_real(condition, fails, passes, side=side)
    assert condition(found) == (side == "passes")
    assert condition(math.nextafter(found, fails if side == "passes" else passes)) != (side == "passes")


@pytest.mark.parametrize("side", ["passes", "fails"])
@given(root=st.floats(1e-6, 1e6), within=st.floats(1e-9, 1.0), relative=st.floats(1e-9, 0.1))
def test_bisection_to_a_tolerance(root: float, within: float, relative: float, side: Side) -> None:
    found = bisect_real(lambda x: x >= root, 0.0, 1e7, side=side, within=within, relative=relative)
    assert (found >= root) == (side == "passes")
    assert abs(found - root) <= within + relative * found
    found = bisect_real(lambda x: x >= root, 1e-7, 1e7, side=side, relative=relative, geometric=True)
    assert (found >= root) == (side == "passes")
    assert abs(found - root) <= relative * found


def test_fixed_numbers_of_halvings() -> None:
    points: list[float] = []

    def condition(x: float) -> bool:
        points.append(x)
        return x >= 0.3

    assert bisect_real(condition, 0.0, 1.0, side="passes", halvings=3) == 0.375
    assert points == [0.5, 0.25, 0.375]
    assert bisect_real(condition, 0.0, 1.0, side="fails", halvings=3) == 0.25


@pytest.mark.parametrize("side", ["passes", "fails"])
def test_conditions_that_change_often_still_end_on_the_side(side: Side) -> None:
    def condition(x: float) -> bool:
        return math.sin(x) > 0 or 20 <= x <= 22  # several changes, and a plateau

    found = bisect_real(condition, -0.5, 20.5, side=side)
    assert condition(found) == (side == "passes")
    whole = bisect_integer(condition, -1, 21, side=side)
    assert condition(whole) == (side == "passes")
    assert condition(whole + 1) != condition(whole) or condition(whole - 1) != condition(whole)


@pytest.mark.parametrize("verdict", [True, False])
def test_an_end_that_is_never_reached_is_returned(verdict: bool) -> None:
    fails, passes = bisect_real(lambda _: verdict, 0.0, 1.0, side="fails"), 1.0
    assert fails == (0.0 if verdict else math.nextafter(1.0, 0.0))
    assert bisect_real(lambda _: verdict, 0.0, passes, side="passes") == (5e-324 if verdict else 1.0)
    assert bisect_integer(lambda _: verdict, 0, 100, side="passes") == (1 if verdict else 100)
    assert bisect_integer(lambda _: verdict, 0, 100, side="fails") == (0 if verdict else 99)


@pytest.mark.parametrize("end", [math.inf, -math.inf, math.nan, 1e200])
def test_ends_that_cannot_be_halved(end: float) -> None:
    with pytest.raises(InputError):
        bisect_real(lambda x: x > 0, end, 1.0, side="passes")
    with pytest.raises(InputError):
        bisect_real(lambda x: x > 0, 0.0, end, side="fails")
    with pytest.raises(InputError):
        bisect_integer(lambda x: x > 0, 0, end, side="passes")  # type: ignore[arg-type]
    with pytest.raises(InputError):
        bisect_real(lambda x: x > 0, 0.0, 1.0, side="passes", geometric=True)


@pytest.mark.parametrize("side", ["passes", "fails"])
@given(root=st.integers(-(10**30), 10**30), margin=st.integers(1, 10**30), rises=st.booleans())
def test_integers_of_any_size(root: int, margin: int, rises: bool, side: Side) -> None:
    ends = (root - margin, root) if rises else (root + margin, root)
    found = bisect_integer(lambda n: n >= root if rises else n <= root, *ends, side=side)
    assert found == (root if side == "passes" else root - 1 if rises else root + 1)


@given(root=st.integers(1, 10**9))
def test_integers_to_a_tolerance(root: int) -> None:
    found = bisect_integer(lambda n: n >= root, 0, 10**9, side="passes", relative=0.01)
    assert root <= found <= root + max(1, 0.01 * found)


def test_equal_ends_and_neighbors() -> None:
    assert bisect_integer(lambda n: n > 3, 3, 4, side="passes") == 4
    assert bisect_integer(lambda n: n > 3, 3, 4, side="fails") == 3
    assert bisect_real(lambda _: True, 1.0, 1.0, side="fails") == 1.0


@given(roots=st.lists(st.floats(0.01, 0.99), min_size=1, max_size=5))
def test_arrays_are_bisected_entry_by_entry(roots: list[float]) -> None:
    edges, zeros, ones = np.array(roots), np.zeros(len(roots)), np.ones(len(roots))
    found = bisect_arrays(lambda x: x >= edges, zeros, ones, side="passes", halvings=20)
    below = bisect_arrays(lambda x: x >= edges, zeros, ones, side="fails", halvings=20)
    alone = [bisect_real(lambda x, e=e: x >= e, 0.0, 1.0, side="passes", halvings=20) for e in roots]
    assert found.tolist() == alone
    assert np.all(below < edges)
    assert np.all(found - below == 2.0**-20)


def test_brackets_by_doubling() -> None:
    assert bracket_by_doubling(lambda x: x >= 5, 0.0, 1.0) == (4.0, 8.0)
    assert bracket_by_doubling(lambda x: x >= 1, 0.0, 1.0) == (0.0, 1.0)
    assert bracket_by_doubling(lambda x: x >= 5, 0.0, 1.0, limit=8.0) == (4.0, 8.0)
    assert bracket_by_doubling(lambda x: x >= 5, 0.0, 1.0, limit=7.9) is None
    assert bracket_by_doubling(lambda x: x <= 0.3, 1.0, 0.5, factor=0.5) == (0.5, 0.25)
    assert bracket_by_doubling(lambda x: x <= 0.3, 1.0, 0.5, limit=0.3, factor=0.5) is None
    assert bracket_by_doubling(lambda _: False, 0.0, 1.0) is None
    assert bracket_by_doubling(lambda _: False, 1.0, 0.5, factor=0.5) is None
    assert bracket_by_doubling(lambda n: n >= 1 << 2000, 0, 1) == (1 << 1999, 1 << 2000)


def test_roots_for_guesses() -> None:
    assert find_root(lambda x: x**3 - 2, 0.0, 2.0, within=1e-12) == pytest.approx(2 ** (1 / 3), abs=1e-12)
    with pytest.raises(ValueError, match="signs"):
        find_root(lambda x: x + 1, 0.0, 2.0, within=1e-12)
