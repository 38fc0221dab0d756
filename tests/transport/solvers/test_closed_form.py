"""The cost of any change: closed forms against the programs that they replace."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tightrope.errors import InputError
from tightrope.transport.couplings.mechanism import CouplingMechanism
from tightrope.transport.solvers.barycenter import barycenter
from tightrope.transport.solvers.closed_form import DiscreteCost
from tightrope.transport.solvers.optimal import coupling


def laws(seed: int, groups: int, points: int) -> list[np.ndarray]:
    """Shares of few people, so that many of them are equal and many are 0."""
    rng = np.random.default_rng(seed)
    counts = [rng.multinomial(rng.integers(1, 3 * points), rng.dirichlet(np.full(points, 0.7))) for _ in range(groups)]
    return [one / one.sum() for one in counts]


@given(st.integers(0, 10**6), st.integers(1, 12))
def test_plans_cost_the_total_variation(seed: int, points: int) -> None:
    source, target = laws(seed, 2, points)
    found = coupling(source, target, DiscreteCost(points))
    assert found.cost == pytest.approx(np.maximum(source - target, 0).sum(), abs=1e-15)
    assert found.gap <= 1e-13
    plan = found.plan.toarray()
    assert plan.sum(axis=1) == pytest.approx(source, abs=1e-15)
    assert plan.sum(axis=0) == pytest.approx(target, abs=1e-15)
    u, v = ([Fraction(x) for x in side.tolist()] for side in (found.dual.u, found.dual.v))
    assert all(u[i] + v[j] <= (i != j) for i in range(points) for j in range(points))


@given(st.integers(0, 10**6), st.integers(1, 6), st.integers(1, 12), st.booleans())
def test_barycenters_are_proven_and_those_of_the_program(seed: int, groups: int, points: int, alike: bool) -> None:
    given_laws = laws(seed, groups, points)
    rng = np.random.default_rng(seed)
    weights = None if alike else (rng.dirichlet(np.ones(groups)) * rng.integers(0, 2, groups) + 1e-9).tolist()
    weights = None if weights is None else [weight / sum(weights) for weight in weights]
    found = barycenter(given_laws, DiscreteCost(points), weights=weights)
    table = barycenter(given_laws, DiscreteCost(points).to_matrix(), weights=weights)
    assert -1e-12 <= found.gap <= 1e-9
    assert found.cost <= table.cost + 1e-9
    assert found.lower <= table.cost + 1e-12


def test_two_groups_meet_in_the_middle() -> None:
    first, second = laws(3, 2, 9)
    assert barycenter([first, second], DiscreteCost(9)).law == pytest.approx((first + second) / 2, abs=1e-15)


def test_equal_laws_stay() -> None:
    (law,) = laws(5, 1, 9)
    found = barycenter([law] * 4, DiscreteCost(9))
    assert found.law == pytest.approx(law, abs=1e-15)
    assert found.cost == pytest.approx(0, abs=1e-14)


def test_thousands_of_categories() -> None:
    """A table of distances and its program would take minutes."""
    groups = dict(zip("abcd", laws(1, 4, 3000), strict=True))
    mechanism = CouplingMechanism.fit(groups, DiscreteCost(3000))
    assert mechanism.target_error <= Fraction(1, 2**120)
    assert all(0 < loss < 1 for loss in mechanism.cost_by_group.values())


def test_costs_are_those_of_the_table() -> None:
    cost, table = DiscreteCost(5), 1 - np.eye(5)
    some, others = np.array([0, 3]), np.array([3, 2, 0])
    assert np.array_equal(cost.to_matrix(), table)
    assert np.array_equal(cost.select_points(some, others).to_matrix(), table[np.ix_(some, others)])
    v = np.random.default_rng(1).normal(size=5)
    assert np.array_equal(cost.row_potentials(v), (table - v).min(axis=1))
    assert np.array_equal(cost.column_potentials(v), (table - v[:, None]).min(axis=0))
    with pytest.raises(InputError):
        DiscreteCost(0)
