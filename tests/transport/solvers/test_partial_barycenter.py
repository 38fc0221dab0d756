"""All but a mass δ of each group on a common law: the least cost by other linear programs, its proof, its frontier."""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

from tightrope import transport
from tightrope.errors import InputError
from tightrope.transport.costs.costs import Cost, Matrix
from tightrope.transport.solvers import barycenter as module
from tightrope.transport.solvers.closed_form import DiscreteCost

RNG = np.random.default_rng(11)
PLACES = RNG.random((7, 2))
COSTS: dict[str, Cost] = {
    "line": transport.line(np.array([3.0, 0.0, 1.0, 7.0, 2.0, 2.5, 9.0])),
    "line-to-another": transport.line(np.arange(7.0), np.arange(5.0) * 1.3),
    "places": transport.points(PLACES),
    "discrete": DiscreteCost(7),
    "table": Matrix(RNG.random((7, 4))),
    "path": transport.grid((7,)),
    "squares": transport.points(PLACES, metric="sqeuclidean"),
}
DELTAS = (0.0, 0.05, 0.3, 0.7, 1.0)


def laws(seed: int, count: int, size: int = 7) -> np.ndarray:
    return np.random.default_rng(seed).dirichlet(np.full(size, 0.5), count)


def variation(first: np.ndarray, second: np.ndarray) -> float:
    return float(np.abs(first - second).sum()) / 2


def least_cost(groups: np.ndarray, cost: Cost, weights: np.ndarray, delta: float, *, rule: str, target: Any) -> float:
    """The least cost, by another program: variables γ_s, then e. ``rule`` "pairs": Σ (P_s − P_t)₊ ≤ δ for all s < t,
    and for the target; ``rule`` "common": Σ e ≥ 1 − δ with e ≤ P_s, and e ≤ target."""
    (count, n), m = groups.shape, cost.matrix_shape[1]
    size = n * m
    marginal = np.kron(np.ones((1, n)), np.eye(m))
    pairs = list(combinations(range(count), 2)) if rule == "pairs" else []
    extra = m * (len(pairs) + (count if rule == "pairs" and target is not None else 0)) if rule == "pairs" else m
    width = count * size + extra
    equal, upper, bounds = np.zeros((count * n, width)), [], []
    for s in range(count):
        equal[s * n : (s + 1) * n, s * size : (s + 1) * size] = np.kron(np.eye(n), np.ones((1, m)))

    def block(parts: dict[int, float], number: int, sign: float) -> np.ndarray:
        rows = np.zeros((m, width))
        for s, factor in parts.items():
            rows[:, s * size : (s + 1) * size] = factor * marginal
        rows[:, count * size + number * m : count * size + (number + 1) * m] = sign * np.eye(m)
        return rows

    def sum_of(number: int, sign: float) -> np.ndarray:
        row = np.zeros((1, width))
        row[0, count * size + number * m : count * size + (number + 1) * m] = sign
        return row

    if rule == "pairs":
        for number, (s, t) in enumerate(pairs):
            upper += [block({s: 1, t: -1}, number, -1), sum_of(number, 1)]
            bounds += [np.zeros(m), [delta]]
        for s in range(count) if target is not None else ():
            upper += [block({s: 1}, len(pairs) + s, -1), sum_of(len(pairs) + s, 1)]
            bounds += [target, [delta]]
    else:
        for s in range(count):
            upper.append(block({s: -1}, 0, 1))
            bounds.append(np.zeros(m))
        if target is not None:
            upper.append(block({}, 0, 1))
            bounds.append(target)
        upper.append(sum_of(0, -1))
        bounds.append([delta - 1])
    costs = np.concatenate([np.outer(weights, cost.to_matrix().ravel()).ravel(), np.zeros(extra)])
    found = linprog(
        costs, A_ub=np.vstack(upper), b_ub=np.concatenate(bounds), A_eq=equal, b_eq=groups.ravel(), method="highs"
    )
    assert found.status == 0, found.message
    return float(found.fun)


@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("cost", COSTS.values(), ids=COSTS)
def test_two_groups_are_the_least_at_this_total_variation(cost: Cost, delta: float) -> None:
    """The program of total variations: equal, since two laws within δ have a common part of mass 1 − δ."""
    groups, weights = laws(1, 2), np.array([0.3, 0.7])
    found = transport.partial_barycenter(groups, cost, delta=delta, weights=weights.tolist())
    scale = float(cost.to_matrix().max())
    assert found.cost == pytest.approx(
        least_cost(groups, cost, weights, delta, rule="pairs", target=None), abs=1e-8 * scale
    )
    assert -1e-12 * scale <= found.gap <= 1e-8 * scale
    assert variation(*found.laws) <= delta + 1e-12
    assert (found.common <= found.laws + 1e-12).all()
    assert found.common.sum() == pytest.approx(1 - delta, abs=1e-12)


@pytest.mark.parametrize("with_target", [False, True])
@pytest.mark.parametrize("count", [1, 3, 4])
@pytest.mark.parametrize("cost", COSTS.values(), ids=COSTS)
def test_several_groups_by_another_program(cost: Cost, count: int, with_target: bool) -> None:
    groups, m = laws(2, count), cost.matrix_shape[1]
    weights = np.random.default_rng(3).dirichlet(np.ones(count))
    target = laws(4, 1, m)[0] if with_target else None
    scale = float(cost.to_matrix().max())
    for delta in (0.1, 0.4):
        found = transport.partial_barycenter(groups, cost, delta=delta, target=target, weights=weights.tolist())
        expected = least_cost(groups, cost, weights, delta, rule="common", target=target)
        assert found.cost == pytest.approx(expected, abs=1e-8 * scale)
        assert -1e-12 * scale <= found.gap <= 1e-8 * scale
        every = [*found.laws, *([] if target is None else [target])]
        assert all(variation(a, b) <= delta + 1e-12 for a, b in combinations(every, 2))
        # Laws that are only pairwise within δ: never dearer, and never cheaper than a common part of 1 − (S − 1) δ.
        if count > 1:
            pairwise = least_cost(groups, cost, weights, delta, rule="pairs", target=target)
            parts = len(every) - 1
            floor = transport.partial_barycenter(
                groups, cost, delta=min(1.0, parts * delta), target=target, weights=weights.tolist()
            )
            assert floor.lower - 1e-9 * scale <= pairwise <= found.cost + 1e-9 * scale


@pytest.mark.parametrize("cost", COSTS.values(), ids=COSTS)
def test_delta_0_is_the_barycenter_and_the_total_variation_costs_nothing(cost: Cost) -> None:
    groups = laws(5, 3)
    scale = float(cost.to_matrix().max())
    found = transport.partial_barycenter(groups, cost, delta=0.0)
    assert found.cost == pytest.approx(transport.barycenter(groups, cost).cost, abs=1e-8 * scale)
    target = laws(6, 1, cost.matrix_shape[1])[0]
    fixed = transport.partial_barycenter(groups, cost, delta=0.0, target=target)
    assert fixed.cost == pytest.approx(
        float(np.mean([transport.wasserstein(law, target, cost) for law in groups])), abs=1e-8 * scale
    )
    if not np.diag(cost.to_matrix()).any() and cost.matrix_shape == (7, 7):
        enough = 1 - float(groups.min(axis=0).sum())
        assert transport.partial_barycenter(groups, cost, delta=enough).cost <= 1e-9 * scale
        assert transport.partial_barycenter(groups, cost, delta=enough - 0.01).lower > 0


@pytest.mark.parametrize("with_target", [False, True])
@pytest.mark.parametrize("cost", COSTS.values(), ids=COSTS)
def test_the_frontier_is_exact_convex_and_decreasing(cost: Cost, with_target: bool) -> None:
    groups, m = laws(7, 2), cost.matrix_shape[1]
    target = laws(8, 1, m)[0] if with_target else None
    frontier = transport.delta_frontier(groups, cost, target=target, max_points=200)
    assert frontier.is_exact
    costs, deltas = [point.cost for point in frontier.points], [point.delta for point in frontier.points]
    assert deltas == sorted(deltas)
    assert (deltas[0], deltas[-1]) == (0.0, 1.0)
    scale = float(cost.to_matrix().max())
    slopes = np.diff(costs) / np.diff(deltas)
    assert (slopes <= 1e-6 * scale).all()
    # Convex, up to the tolerance of short pieces.
    assert (np.diff(slopes) * np.diff(deltas)[1:] >= -1e-6 * scale).all()
    for delta in np.random.default_rng(9).random(12).tolist():
        lower, upper = frontier.cost_bounds(delta)
        expected = least_cost(groups, cost, np.array([0.5, 0.5]), delta, rule="common", target=target)
        assert lower - 1e-8 * scale <= expected <= upper + 1e-8 * scale
        assert upper - lower <= 2e-7 * scale


def test_a_frontier_of_few_points_bounds_what_it_has_not_solved() -> None:
    groups, cost = laws(10, 3, 40), transport.line(np.arange(40.0))
    rough = transport.delta_frontier(groups, cost, max_points=4)
    fine = transport.delta_frontier(groups, cost, max_points=400)
    assert len(rough.points) == 4
    assert not rough.is_exact
    assert fine.is_exact
    for delta in np.linspace(0, 1, 21).tolist():
        (lower, upper), (least, most) = rough.cost_bounds(delta), fine.cost_bounds(delta)
        assert lower <= most + 1e-9
        assert least <= upper + 1e-9


def test_a_frontier_of_costs_beyond_precision_ends() -> None:
    """Costs of 1e15 and 1: gaps at the solutions stay open, and are not solved again and again."""
    rng = np.random.default_rng(17)
    table = np.where(rng.random((7, 7)) < 0.3, 1e15, rng.random((7, 7)))
    found = transport.delta_frontier(laws(18, 2), table, max_points=12)
    deltas = [point.delta for point in found.points]
    assert len(set(deltas)) == len(deltas) <= 12
    for delta in (0.0, 0.2, 1.0):
        lower, upper = found.cost_bounds(delta)
        assert 0 <= lower <= upper


@pytest.mark.parametrize("cost", COSTS.values(), ids=COSTS)
def test_potentials_are_at_most_the_distances(cost: Cost) -> None:
    groups, weights = laws(19, 3), [0.2, 0.5, 0.3]
    v = transport.partial_barycenter(groups, cost, delta=0.15, weights=weights).dual.v
    assert (v >= 0).all()
    assert (v <= np.array(weights)[:, None] * cost.to_matrix().max() * (1 + 1e-12)).all()
    # Raising them loses nothing.
    loose = np.maximum(v - np.random.default_rng(20).random(v.shape) * 0.1 * v.max(), 0)
    tight = module.tight_potentials(cost, np.array(weights), loose)
    before, after = (
        module.common_part_dual(groups, cost, np.array(weights), some, None).lower_bound(0.15)
        for some in (loose, tight)
    )
    assert after >= before - 1e-12 * cost.to_matrix().max()


def test_a_proof_of_one_delta_bounds_every_other() -> None:
    groups, cost = laws(12, 3), COSTS["places"]
    dual = transport.partial_barycenter(groups, cost, delta=0.2).dual
    for delta in (0.0, 0.1, 0.3, 0.9):
        assert dual.lower_bound(delta) <= transport.partial_barycenter(groups, cost, delta=delta).cost + 1e-12


def test_planted_potentials_prove_no_more() -> None:
    """Any potentials give a valid bound: the base is recomputed from them, so that larger ones do not raise it."""
    groups, cost, shares = laws(13, 2), COSTS["line"], np.array([0.5, 0.5])
    found = transport.partial_barycenter(groups, cost, delta=0.2)
    assert found.lower == pytest.approx(found.cost, abs=1e-8)
    for factor in (0.5, 1.5, 20.0):
        planted = module.common_part_dual(groups, cost, shares, found.dual.v * factor, None)
        assert planted.lower_bound(0.2) <= found.cost + 1e-12
    rng = np.random.default_rng(14)
    for _ in range(50):
        noise = np.maximum(found.dual.v + rng.normal(0, 1, found.dual.v.shape), 0)
        assert module.common_part_dual(groups, cost, shares, noise, None).lower_bound(0.2) <= found.cost + 1e-12
        capped = module.common_part_dual(groups, cost, shares, noise, groups[0])
        least = transport.partial_barycenter(groups, cost, delta=0.2, target=groups[0])
        assert capped.lower_bound(0.2) <= least.cost + 1e-12


def test_two_groups_agree_with_another_library() -> None:
    """POT's partial transport, by an exact solver of its own; half of it with equal weights."""
    ot = pytest.importorskip("ot")
    rng = np.random.default_rng(16)
    for size, delta in ((5, 0.1), (20, 0.02), (40, 0.35)):
        places, (first, second) = rng.random((size, 2)), rng.dirichlet(np.full(size, 0.5), 2)
        table = transport.points(places).to_matrix()
        moved = float((ot.partial.partial_wasserstein(first, second, table, m=1 - delta) * table).sum())
        found = transport.partial_barycenter([first, second], transport.points(places), delta=delta)
        assert found.cost == pytest.approx(moved / 2, abs=1e-9)


def test_forbidden_moves() -> None:
    """A move that costs a million times the others is forbidden: it is not used where δ or another way avoids it."""
    cost = np.array([[0, 1.0, 1e6], [1.0, 0, 1e6], [1e6, 1e6, 0]])
    groups = [[0.6, 0.3, 0.1], [0.2, 0.6, 0.2]]
    found = transport.partial_barycenter(groups, cost, delta=0.1)
    assert found.cost == pytest.approx(0.15, abs=1e-6)
    assert found.cost - found.lower <= 1e-6
    assert transport.partial_barycenter(groups, cost, delta=0.05).lower > 1e4


@pytest.mark.parametrize("name", ["line", "places", "discrete", "path"])
def test_two_groups_and_a_metric_are_partial_transport(name: str) -> None:
    """min(w) times the least cost of moving all but a mass δ of one law to the other."""
    cost, (first, second) = COSTS[name], laws(15, 2)
    table = cost.to_matrix()
    sums = np.vstack([np.kron(np.eye(7), np.ones((1, 7))), np.kron(np.ones((1, 7)), np.eye(7))])
    for delta, weight in ((0.0, 0.5), (0.1, 0.2), (0.3, 0.9)):
        moved = linprog(
            table.ravel(), A_ub=sums, b_ub=np.concatenate([first, second]),
            A_eq=np.ones((1, 49)), b_eq=[1 - delta], method="highs",
        )  # fmt: skip
        found = transport.partial_barycenter([first, second], cost, delta=delta, weights=[weight, 1 - weight])
        assert found.cost == pytest.approx(min(weight, 1 - weight) * moved.fun, abs=1e-8 * float(table.max()))


def test_a_group_without_weight_is_still_hidden() -> None:
    groups = np.array([[1.0, 0, 0], [0, 0, 1.0]])
    found = transport.partial_barycenter(groups, transport.line([0, 1, 2]), delta=0.25, weights=[1, 0])
    assert found.cost <= 1e-9
    assert variation(*found.laws) <= 0.25 + 1e-12
    assert 1.5 - 1e-9 <= found.couplings[1].cost <= 2


def test_more_groups_within_delta_pairwise_can_cost_less() -> None:
    """Three groups, each on two of three points: pairwise within ½ as they are, but they have no common part."""
    groups = np.array([[0, 0.5, 0.5], [0.5, 0, 0.5], [0.5, 0.5, 0]])
    weights = np.full(3, 1 / 3)
    assert least_cost(groups, DiscreteCost(3), weights, 0.5, rule="pairs", target=None) <= 1e-9
    found = transport.partial_barycenter(groups, DiscreteCost(3), delta=0.5)
    assert found.lower > 0.1
    assert transport.partial_barycenter(groups, DiscreteCost(3), delta=1.0).cost <= 1e-9


@pytest.mark.parametrize("delta", [-0.1, 1.1, math.nan, "x"])
def test_bad_delta(delta: Any) -> None:
    with pytest.raises(InputError) as caught:
        transport.partial_barycenter([[0.5, 0.5]], transport.line([0, 1]), delta=delta)
    assert "delta" in str(caught.value)


def test_bad_targets_and_numbers_of_points() -> None:
    with pytest.raises(InputError, match="target"):
        transport.partial_barycenter([[0.5, 0.5]], transport.line([0, 1]), delta=0.1, target=[0.5, 0.4])
    with pytest.raises(InputError, match="max_points"):
        transport.delta_frontier([[0.5, 0.5]], transport.line([0, 1]), max_points=1)
