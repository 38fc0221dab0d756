"""The common target of least cost: optimal by its own lower bound, and below every other law that is tried."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tightrope import transport
from tightrope.errors import InputError
from tightrope.transport.costs.costs import Cost, Matrix

RNG = np.random.default_rng(5)
PLACES = RNG.random((12, 2))
COSTS = {
    "grid": transport.grid((3, 4)),
    "line": transport.line(np.arange(12.0)[::-1] ** 2),
    "line-to-another": transport.line(np.arange(12.0), np.arange(5.0)),
    "places": transport.points(PLACES),
    "places-to-others": transport.points(PLACES, PLACES[:7] + 0.1),
    "table": Matrix(RNG.random((12, 9))),
}


@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize("cost", COSTS.values(), ids=COSTS)
def test_its_own_bound_and_other_laws(cost: Cost, p: int) -> None:
    rng = np.random.default_rng(6)
    laws, weights = rng.dirichlet(np.full(12, 0.5), 3), rng.dirichlet(np.ones(3))
    found = transport.barycenter(laws, cost, weights=weights, p=p)
    scale = cost.to_matrix().max() ** p
    assert -1e-12 * scale <= found.gap <= 1e-8 * scale
    costs = [one.cost for one in found.couplings]
    assert math.isclose(found.cost, float(weights @ costs), rel_tol=1e-12)
    for _ in range(20):
        other = rng.dirichlet(np.full(cost.matrix_shape[1], 0.3))
        each = [transport.wasserstein(law, other, cost, p=p) ** p for law in laws]
        assert weights @ each >= found.lower - 1e-12 * scale


def test_a_single_group_costs_nothing_at_its_own_law() -> None:
    law = np.array([0.1, 0.2, 0.3, 0.4])
    found = transport.barycenter([law], transport.grid((2, 2)))
    assert np.abs(found.law - law).max() <= 1e-9
    assert found.cost <= 1e-9


def test_two_groups_share_the_way() -> None:
    """With equal weights any law between the two is best: the cost is half the distance."""
    laws = np.random.default_rng(7).dirichlet(np.ones(100), 2)
    cost = transport.grid((10, 10))
    found = transport.barycenter(laws, cost)
    assert math.isclose(found.cost, transport.wasserstein(*laws, cost) / 2, rel_tol=1e-8)


def test_a_group_without_weight_has_no_say() -> None:
    laws = [[1, 0, 0], [0, 0, 1]]
    found = transport.barycenter(laws, transport.line([0, 1, 2]), weights=[1, 0])
    assert np.abs(found.law - [1, 0, 0]).max() <= 1e-9
    assert found.couplings[1].cost == pytest.approx(2)


@pytest.mark.parametrize(
    ("laws", "weights", "p", "said"),
    [
        ([], None, 1, "laws"),
        ("ab", None, 1, "laws"),
        ([[0.5, 0.4]], None, 1, r"sum of laws\[0\]"),
        ([[0.5, 0.5]], [0.5, 0.5], 1, "weights"),
        ([[0.5, 0.5]], [0.9], 1, "sum of weights"),
        ([[0.5, 0.5]], None, math.inf, "p to be a finite number"),
    ],
)
def test_bad_input(laws: object, weights: object, p: float, said: str) -> None:
    with pytest.raises(InputError, match=said):
        transport.barycenter(laws, transport.line([0, 1]), weights=weights, p=p)  # type: ignore[arg-type]
