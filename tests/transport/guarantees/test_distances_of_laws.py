"""Diameter, optimal couplings on a relation, and stability, beside their definitions."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tightrope.errors import InputError
from tightrope.transport import diameter, lifted, optimally_lifted, stability, wasserstein

LINE = np.abs(np.subtract.outer(np.arange(4.0), np.arange(4.0)))
LAWS = st.lists(st.integers(0, 5), min_size=4, max_size=4).filter(any).map(lambda w: np.array(w) / sum(w))
ALL = np.ones((4, 4), dtype=bool)


@given(LAWS, LAWS)
def test_the_diameter_is_the_largest_distance_of_two_points_with_mass(p: np.ndarray, q: np.ndarray) -> None:
    longest = max(LINE[x, y] for x in range(4) for y in range(4) if p[x] > 0 and q[y] > 0)
    assert diameter(p, q, LINE) == longest >= wasserstein(p, q, LINE, p=math.inf)


@given(LAWS, LAWS)
def test_every_pair_is_optimally_lifted_to_everything_and_to_its_own_optimum(p: np.ndarray, q: np.ndarray) -> None:
    assert optimally_lifted(ALL, p, q, LINE) == lifted(ALL, p, q)
    within = wasserstein(p, q, LINE, p=math.inf)
    assert optimally_lifted(within >= LINE, p, q, LINE, p=math.inf) == lifted(within >= LINE, p, q)


def test_a_coupling_on_the_relation_that_costs_more_is_not_optimal() -> None:
    detour = np.array([[False, True], [True, False]])
    even = [0.5, 0.5]
    assert lifted(detour, even, even)
    assert not optimally_lifted(detour, even, even, [[0, 1], [1, 0]])
    assert not optimally_lifted(detour, even, even, [[0, 1], [1, 0]], p=math.inf)
    assert optimally_lifted(detour, [1.0, 0.0], [0.0, 1.0], [[0, 1], [1, 0]], p=2)


@given(LAWS, LAWS, st.lists(LAWS, min_size=4, max_size=4))
def test_no_two_laws_move_apart_by_more_than_the_stability(p: np.ndarray, q: np.ndarray, rows: list) -> None:  # type: ignore[type-arg]
    moves = np.stack(rows)
    assert wasserstein(p @ moves, q @ moves, LINE) <= stability(moves, LINE) * wasserstein(p, q, LINE) + 1e-9


def test_stability_of_maps_that_are_known() -> None:
    assert stability(np.eye(4), LINE) == 1
    assert stability(np.eye(4)[[0, 0, 0, 0]], LINE) == 0
    assert stability(np.eye(4)[[0, 3, 3, 3]], LINE) == 3
    assert stability([[1, 0], [0, 1]], [[0, 0], [0, 0]]) == math.inf


def test_other_shapes_are_refused() -> None:
    with pytest.raises(InputError, match="transformation"):
        stability([[0.5, 0.5]], LINE)
