"""The coupling mechanism: one output law for all groups, the least loss, one draw a person and value."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from tightrope.errors import InputError
from tightrope.randomness.alias_sampler import TOTAL
from tightrope.transport.costs.graphs import grid
from tightrope.transport.couplings.mechanism import CouplingMechanism
from tightrope.transport.exact.tables import GroupTables
from tightrope.transport.guarantees.distribution_checks import mass_outside

LINE = np.abs(np.subtract.outer(np.arange(5.0), np.arange(5.0)))
SMALL = Fraction(1, 10**12)


def laws(seed: int, size: int, names: str = "ab") -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {name: rng.dirichlet(np.full(size, 0.5)) for name in names}


def points(seed: int, size: int) -> np.ndarray:
    place = np.random.default_rng(seed).random((size, 2))
    return np.hypot(*np.moveaxis(place[:, None] - place, 2, 0))


@given(st.integers(0, 10**6), st.integers(2, 12), st.sampled_from(["expected", "worst"]), st.booleans())
def test_every_group_comes_out_with_the_target(seed: int, size: int, objective: Any, given_target: bool) -> None:
    target = laws(seed + 1, size)["a"] if given_target else None
    mechanism = CouplingMechanism.fit(laws(seed, size, "abc"), points(seed, size), target=target, objective=objective)
    assert mechanism.target_error <= SMALL
    for group in "abc":
        exact = mechanism.exact_output_distribution(group)
        assert sum(exact) == 1
        assert all(abs(share - mechanism.target[y]) <= Fraction(size, TOTAL) for y, share in enumerate(exact))


def test_example_2_of_the_paper() -> None:
    """KM Example 2: the plan moves 0.1 from 2 to 1 and 0.2 from 2 to 3."""
    mechanism = CouplingMechanism.fit({"g": [0.2, 0.5, 0.3]}, LINE[:3, :3], target=[0.3, 0.2, 0.5])
    assert mechanism.cost_by_group["g"] == pytest.approx(0.3, abs=1e-12)
    expected = [[0.2, 0, 0], [0.1, 0.2, 0.2], [0, 0, 0.3]]
    assert mechanism.plan_matrix("g").toarray() == pytest.approx(np.array(expected), abs=1e-12)
    worst = CouplingMechanism.fit({"g": [0.2, 0.5, 0.3]}, LINE[:3, :3], target=[0.3, 0.2, 0.5], objective="worst")
    assert worst.cost_by_group["g"] == 1.0


def test_a_planted_error_is_seen() -> None:
    """The check of the tables must see a table of another group."""
    fitted = CouplingMechanism.fit(laws(1, 5), LINE)
    swapped = CouplingMechanism(
        fitted.groups, fitted.target, GroupTables.from_tables({"a": fitted.tables["b"], "b": fitted.tables["a"]}),
        fitted.cost_by_group, fitted.objective, fitted.unplanned_mass,
    )  # fmt: skip
    assert fitted.target_error <= SMALL < Fraction(1, 1000) < swapped.target_error


def test_losses_are_wasserstein_distances() -> None:
    groups, target, cost = laws(4, 8), laws(5, 8)["a"], points(6, 8)
    expected = CouplingMechanism.fit(groups, cost, target=target, objective="expected")
    worst = CouplingMechanism.fit(groups, cost, target=target, objective="worst")
    for group, law in groups.items():
        assert expected.cost_by_group[group] == pytest.approx(least(law, target, cost), abs=1e-9)
        levels = [level for level in np.unique(cost) if least(law, target, np.where(cost <= level, 0.0, 1.0)) < 1e-9]
        assert worst.cost_by_group[group] == levels[0]


def least(source: np.ndarray, target: np.ndarray, cost: np.ndarray) -> float:
    """The least mean cost, as a linear program."""
    n, m = cost.shape
    sums = np.concatenate([np.kron(np.eye(n), np.ones(m)), np.kron(np.ones(n), np.eye(m))])
    return float(linprog(cost.ravel(), A_eq=sums, b_eq=np.concatenate([source, target])).fun)


def test_the_barycenter_costs_least_and_follows_the_weights() -> None:
    groups = laws(7, 5)
    best = CouplingMechanism.fit(groups, LINE)
    named = CouplingMechanism.fit(groups, LINE, target="barycenter")
    total = sum(best.cost_by_group.values())
    assert sum(named.cost_by_group.values()) == total
    for rival in (*groups.values(), np.full(5, 0.2), laws(8, 5)["a"]):
        assert total <= sum(CouplingMechanism.fit(groups, LINE, target=rival).cost_by_group.values()) + 1e-9
    pulled = CouplingMechanism.fit(groups, LINE, weights={"a": 1.0, "b": 0.0})
    assert pulled.cost_by_group["a"] <= 1e-9 < best.cost_by_group["a"] + best.cost_by_group["b"]


def test_drawn_outputs_have_the_target_law() -> None:
    groups = laws(11, 5)
    mechanism = CouplingMechanism.fit(groups, LINE, target=laws(13, 5)["a"])
    rng, count = np.random.default_rng(12), 200_000
    wanted = mechanism.target.float_masses
    for group, law in groups.items():
        seen = np.bincount(mechanism.apply(rng.choice(5, count, p=law), group), minlength=5) / count
        assert np.all(np.abs(seen - wanted) < 6 * np.sqrt(wanted * (1 - wanted) / count) + 1e-9)
        assert np.max(np.abs(law - wanted)) > 0.05


def test_a_value_that_the_law_excludes_comes_out_with_the_target() -> None:
    mechanism = CouplingMechanism.fit({"a": [0.0, 1.0], "b": [0.5, 0.5]}, LINE[:2, :2], target=[0.25, 0.75])
    assert mechanism.output_distribution("a", [1.0, 0.0]).tolist() == [0.25, 0.75]


def test_a_person_gets_one_answer_for_one_value() -> None:
    mechanism = CouplingMechanism.fit({"a": [1.0, 0.0], "b": [0.0, 1.0]}, LINE[:2, :2], target=[0.5, 0.5])
    people = np.arange(2000)
    first = mechanism.apply(np.zeros(2000, int), "a", person=people)
    assert 850 < first.sum() < 1150
    assert np.array_equal(mechanism.apply(np.zeros(2000, int), "a", person=people[::-1])[::-1], first)
    assert np.array_equal(mechanism.apply(np.zeros(2000, int), "b", person=people), first)
    assert len(set(mechanism.apply([0] * 64, "a", person="Ann").tolist())) == 1
    assert len(set(mechanism.apply([0] * 64, "a").tolist())) == 2
    assert len(mechanism.memory) == 2001


@pytest.mark.parametrize("k", [1, 2, 3, 6])
def test_the_same_value_released_k_times_gives_the_group_away(k: int) -> None:
    """Theory §6: exact knowledge, λ₀ = δ₁, λ₁ = (½, 0, ½), μ a coin: total variation 1 − 2^{1−k} with fresh draws."""
    cost = np.abs(np.subtract.outer(np.arange(3.0), np.array([0.0, 2.0])))
    mechanism = CouplingMechanism.fit({"0": [0.0, 1.0, 0.0], "1": [0.5, 0.0, 0.5]}, cost, target=[0.5, 0.5])
    repeated = {group: _k_draws(mechanism, group, k) for group in "01"}
    apart = sum((abs(repeated["0"][seen] - repeated["1"][seen]) for seen in repeated["0"]), Fraction(0)) / 2
    assert apart == 1 - Fraction(2) ** (1 - k)


def _k_draws(mechanism: CouplingMechanism, group: str, k: int) -> dict[tuple[int, ...], Fraction]:
    law, tables = mechanism.groups[group], mechanism.tables[group]
    rows = [(law[x], tables.row_weights(x)) for x in law.support_points.tolist()]
    return {
        seen: sum((p * math.prod(Fraction(row.get(y, 0), TOTAL) for y in seen) for p, row in rows), Fraction(0))
        for seen in product((0, 1), repeat=k)
    }


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"groups": {}}, "mapping from the name"),
        ({"groups": {"a": [0.5, 0.4]}}, "sum of the distribution of 'a'"),
        ({"groups": {"a": [1.5, -0.5]}}, "not negative"),
        ({"groups": {"a": []}}, "no empty law"),
        ({"groups": {"a": [float("nan"), 1.0]}}, "NaN"),
        ({"groups": {"a": [1.0]}}, "each of 2 points"),
        ({"cost": [[0.0, math.nan], [1.0, 0.0]]}, "=nan"),
        ({"cost": [[0.0, -1.0], [1.0, 0.0]]}, "=-1"),
        ({"cost": [0.0, 1.0]}, "cost to be a two-dimensional array"),
        ({"cost": "far"}, "cost to be a two-dimensional array"),
        ({"target": [0.5, 0.6]}, "sum of target"),
        ({"target": "middle"}, "'barycenter'"),
        ({"objective": "median"}, "objective='median'"),
        ({"weights": {"b": 1.0}}, "one weight for each"),
        ({"weights": {"a": 0.0}}, "positive sum"),
        ({"weights": {"a": math.nan}}, "weight of 'a'"),
    ],
)
def test_bad_fits_teach(change: dict[str, Any], message: str) -> None:
    arguments: dict[str, Any] = {"groups": {"a": [0.5, 0.5]}, "cost": LINE[:2, :2], **change}
    with pytest.raises(InputError, match=message):
        CouplingMechanism.fit(**arguments)


@pytest.mark.parametrize(
    ("values", "group", "person", "message"),
    [
        ([0, 1], "z", None, r"one of \['a', 'b'\]"),
        ([0, 1], ["a"], None, r"one of \['a', 'b'\]"),
        ([0, 5, -1], "a", None, "values outside 0..4=2"),
        ([0.0, float("nan")], "a", None, "integers"),
        (3, "a", None, "integers"),
        ([0, 1], "a", ["Ann"], "one for each of 2"),
    ],
)
def test_bad_values_teach_without_showing_them(values: Any, group: Any, person: Any, message: str) -> None:
    mechanism = CouplingMechanism.fit(laws(1, 5), LINE)
    with pytest.raises(InputError, match=message):
        mechanism.apply(values, group, person=person)


def test_no_values_are_no_outputs() -> None:
    assert CouplingMechanism.fit(laws(1, 5), LINE).apply([], "a").shape == (0,)


def grid_laws(seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {"a": rng.dirichlet(np.full(12, 0.4)), "b": rng.dirichlet(np.full(12, 0.4))}


@pytest.mark.parametrize("seed", range(8))
def test_of_the_plans_of_least_maximum_the_one_of_least_average(seed: int) -> None:
    groups, cost = grid_laws(seed), grid((3, 4))
    target, table = grid_laws(seed + 100)["a"], cost.to_matrix()
    fitted = CouplingMechanism.fit(groups, cost, target=target, objective="worst")
    for group, law in groups.items():
        far = np.where(table <= fitted.cost_by_group[group], table, 1e4)
        plan = fitted.plan_matrix(group).toarray()
        assert np.sum(plan * table) == pytest.approx(least(law, target, far), abs=1e-9)


LAWS_OF_CRUMBS = [
    ([0.3, 0.7, 0.0], [0.1, 0.2, 0.7]),
    ([0.1, 0.2, 0.7], [0.3, 0.0, 0.7]),
    ([1 / 3, 1 / 3, 1 / 3], [0.2, 0.5, 0.3]),
    ([0.6, 0.3, 0.1], [0.7, 0.2, 0.1]),
]


@pytest.mark.parametrize(("law", "target"), LAWS_OF_CRUMBS)
def test_no_table_moves_beyond_the_stated_maximum(law: list[float], target: list[float]) -> None:
    """Not even what roundings in the laws leave over: then the maximum is that of the laws as they are."""
    for cost in (LINE[:3, :3], np.array([[0.0, 1, 9], [1, 0, 5], [9, 5, 0]])):
        fitted = CouplingMechanism.fit({"g": law}, cost, target=target, objective="worst")
        x, y = fitted.plan_matrix("g").nonzero()
        assert fitted.cost_by_group["g"] == cost[x, y].max()
        allowed = cost < fitted.cost_by_group["g"]
        assert mass_outside(allowed, law, target) > 0, "a smaller one would do"


def test_nothing_to_move() -> None:
    fitted = CouplingMechanism.fit({"g": [0.25, 0.75]}, [[0, 1], [1, 0]], target=[0.25, 0.75], objective="worst")
    assert fitted.cost_by_group["g"] == 0.0
