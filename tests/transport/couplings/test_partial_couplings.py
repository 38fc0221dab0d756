"""Partial couplings: all but a mass δ of each group on a common law, exactly in the tables that are sampled."""

from __future__ import annotations

import dataclasses
import json
import math
from fractions import Fraction
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tightrope.documents.coupling import Learning, Origin
from tightrope.documents.document import Triple, plain_data, to_json_text
from tightrope.errors import InputError
from tightrope.randomness.bits import InsecureSeeded
from tightrope.tables.labels import Axis
from tightrope.transport.costs.graphs import grid
from tightrope.transport.costs.points import line
from tightrope.transport.couplings.mechanism import CouplingMechanism
from tightrope.transport.exact.plan import ExactDistribution, distributions_with_common_part, exact_delta
from tightrope.transport.exact.tables import GroupTables
from tightrope.transport.guarantees.distribution_checks import distribution_privacy
from tightrope.transport.guarantees.learned_distributions import (
    approximate_knowledge,
    learn_laws,
    one_draw_from_samples,
)
from tightrope.transport.on_tables.saved import SavedCoupling
from tightrope.transport.on_tables.supports import Cells
from tightrope.verify.check import check_document
from tightrope.verify.claims import REFUTED, worst_verdict

DELTAS = st.sampled_from([1e-9, 1e-6, 0.01, 0.1, 0.4, 0.75, 1 - 1e-9])


def laws(seed: int, size: int, names: str = "ab", zeros: float = 0.0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    masses = {name: rng.dirichlet(np.full(size, 0.5)) * (rng.random(size) >= zeros) + 1e-300 for name in names}
    return {name: law / law.sum() for name, law in masses.items()}


def exact_variation(first: list[Fraction], second: list[Fraction]) -> Fraction:
    return sum((abs(a - b) for a, b in zip(first, second, strict=True)), Fraction(0)) / 2


@given(st.integers(0, 10**6), st.integers(2, 12), DELTAS, st.booleans(), st.sampled_from(["ab", "abc"]))
def test_no_two_outputs_differ_by_more_than_delta(
    seed: int, size: int, delta: float, with_target: bool, names: str
) -> None:
    """Exactly, in the rationals of the sampling tables, and without any tolerance."""
    target = laws(seed + 1, size)["a"] if with_target else None
    groups = laws(seed, size, names, 0.3)
    fitted = CouplingMechanism.fit(groups, line(np.arange(float(size))), target=target, delta=delta)
    outputs = [fitted.exact_output_distribution(name) for name in names]
    common = [fitted.target[y] for y in range(size)]
    assert all(sum(output) == 1 for output in outputs)
    assert all(exact_variation(a, b) <= exact_delta(delta) for a, b in combinations([*outputs, common], 2))
    assert fitted.common_mass >= 1 - exact_delta(delta)
    assert fitted.delta == delta
    if with_target:
        assert common == [ExactDistribution.from_probabilities("t", target, size)[y] for y in range(size)]  # type: ignore[arg-type]


@given(st.integers(0, 10**6), st.integers(2, 8), DELTAS)
def test_the_loss_is_the_least_and_its_bound_is_below(seed: int, size: int, delta: float) -> None:
    groups, cost = laws(seed, size, "abc"), grid((size,))
    fitted = CouplingMechanism.fit(groups, cost, delta=delta, weights={"a": 1, "b": 2, "c": 1})
    part = fitted.common_part
    assert part is not None
    mean = 0.25 * fitted.cost_by_group["a"] + 0.5 * fitted.cost_by_group["b"] + 0.25 * fitted.cost_by_group["c"]
    assert part.lower - 1e-11 <= mean <= part.lower + 1e-8 * size


def test_delta_0_is_the_coupling_of_today() -> None:
    groups, cost = laws(3, 6), line(np.arange(6.0))
    plain, zero = CouplingMechanism.fit(groups, cost), CouplingMechanism.fit(groups, cost, delta=0)
    assert zero.common_part is None
    assert zero.delta == 0
    assert (zero.target, zero.cost_by_group) == (plain.target, plain.cost_by_group)
    tiny = CouplingMechanism.fit(groups, cost, delta=1e-9)
    assert sum(tiny.cost_by_group.values()) == pytest.approx(sum(plain.cost_by_group.values()), abs=1e-7)


def test_a_delta_of_the_total_variation_leaves_values_alone() -> None:
    groups, cost = laws(4, 6), line(np.arange(6.0))
    enough = float(np.abs(groups["a"] - groups["b"]).sum()) / 2 + 1e-9
    fitted = CouplingMechanism.fit(groups, cost, delta=enough)
    assert max(fitted.cost_by_group.values()) <= 1e-8
    losses = [
        sum(CouplingMechanism.fit(groups, cost, delta=enough * part).cost_by_group.values())
        for part in (0.1, 0.4, 0.7, 0.95)
    ]
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] > 1e-6


def test_example_by_hand() -> None:
    """(1, 0) and (0, 1) on two points at δ = ¼: ¾ is common, and a quarter of each group stays where it is."""
    fitted = CouplingMechanism.fit({"a": [1.0, 0.0], "b": [0.0, 1.0]}, line([0, 1]), delta=0.25)
    assert sum(fitted.cost_by_group.values()) == pytest.approx(0.75, abs=1e-9)
    first, second = fitted.output_distribution("a"), fitted.output_distribution("b")
    assert first[0] - second[0] == pytest.approx(0.25, abs=1e-9)
    assert fitted.common_mass == pytest.approx(0.75, abs=1e-9)


def test_a_planted_error_is_seen() -> None:
    """Tables of a larger δ, or of another group, share less than the δ that is stated."""
    groups, cost = laws(1, 5), line(np.arange(5.0))
    fitted, looser = (CouplingMechanism.fit(groups, cost, delta=delta) for delta in (0.1, 0.2))
    swapped = GroupTables.from_tables({"a": fitted.tables["b"], "b": fitted.tables["a"]})
    assert dataclasses.replace(fitted, tables=swapped).common_mass < 1 - Fraction(0.1)
    assert dataclasses.replace(fitted, tables=looser.tables).common_mass < 1 - Fraction(0.1)
    assert fitted.common_mass >= 1 - Fraction(0.1)


def test_draws_have_the_written_distribution() -> None:
    groups = {"a": [0.75, 0.25, 0.0], "b": [0.0, 0.25, 0.75]}
    fitted = CouplingMechanism.fit(groups, line([0, 1, 2]), delta=0.3)
    rng = np.random.default_rng(5)
    for name, law in groups.items():
        values = rng.choice(3, size=200_000, p=law)
        drawn = fitted.apply(values, name, randomness=InsecureSeeded(6))
        assert np.abs(np.bincount(drawn, minlength=3) / len(drawn) - fitted.output_distribution(name)).max() < 0.006
    # An excluded value is replaced by a draw from the target.
    strays = fitted.apply([2] * 50_000, "a", randomness=InsecureSeeded(7))
    assert np.abs(np.bincount(strays, minlength=3) / 50_000 - fitted.target.float_masses).max() < 0.012


def test_outputs_of_several_people_compose() -> None:
    """k outputs of different people of one group: at most 1 − (1 − δ)^k, attained if the rests are disjoint."""
    delta, k = 0.25, 3
    fitted = CouplingMechanism.fit({"a": [1.0, 0.0, 0.0], "b": [0.0, 0.0, 1.0]}, line([0, 1, 2]), delta=delta)
    first, second = fitted.output_distribution("a"), fitted.output_distribution("b")
    joint = sum(
        max(math.prod(first[list(ys)]) - math.prod(second[list(ys)]), 0.0) for ys in product(range(3), repeat=k)
    )
    assert joint <= 1 - (1 - delta) ** k + 1e-12
    bound = distribution_privacy(fitted, [("a", "b")], "total_variation").epsilon
    assert bound == pytest.approx(delta, abs=1e-9)
    apart = [{0: 1 - delta, 1: delta}, {0: 1 - delta, 2: delta}]
    most = sum(
        max(math.prod(apart[0].get(y, 0.0) for y in ys) - math.prod(apart[1].get(y, 0.0) for y in ys), 0.0)
        for ys in product(range(3), repeat=k)
    )
    assert most == pytest.approx(1 - (1 - delta) ** k)


# Distributions that are known approximately: the δ of the mechanism is part of every bound.


@given(st.integers(0, 10**6), st.sampled_from([0.05, 0.2]), st.sampled_from([0.0, 0.02, 0.3]))
def test_approximate_knowledge_covers_the_outputs(seed: int, delta: float, spread: float) -> None:
    groups = laws(seed, 5)
    fitted = CouplingMechanism.fit(groups, line(np.arange(5.0)), delta=delta)
    rng = np.random.default_rng(seed)
    actual = {name: law * np.exp(rng.uniform(-spread, spread, 5)) for name, law in groups.items()}
    actual = {name: law / law.sum() for name, law in actual.items()}
    bound = approximate_knowledge(fitted, actual)
    first, second = (fitted.exact_output_distribution(name, actual[name]) for name in "ab")
    assert exact_variation(first, second) <= Fraction(bound.total_variation)
    ratio = Fraction(math.exp(bound.epsilon))
    for p, q in ((first, second), (second, first)):
        assert sum((max(a - ratio * b, Fraction(0)) for a, b in zip(p, q, strict=True)), Fraction(0)) <= Fraction(
            bound.delta
        ) + Fraction(1, 10**12)


def test_bounds_for_samples_and_learned_laws_include_delta() -> None:
    groups, cost = {"a": [0.5, 0.5], "b": [0.25, 0.75]}, [[0, 1], [1, 0]]
    plain, partial = (CouplingMechanism.fit(groups, cost, delta=delta) for delta in (0.0, 0.125))
    few = [one_draw_from_samples(mechanism, 100_000) for mechanism in (plain, partial)]
    assert few[1].total_variation == pytest.approx(few[0].total_variation + 0.125, abs=1e-9)
    assert few[1].delta == few[1].total_variation
    learned = learn_laws({"a": [500, 500], "b": [250, 750]})
    for epsilon in (0.0, 0.2, 1.0):
        without, added = learned.one_draw(epsilon), learned.one_draw(epsilon, mechanism_delta=0.125)
        assert added.epsilon == without.epsilon
        assert added.delta >= min(without.delta + 0.125, added.total_variation)
        assert added.total_variation >= 0.125
    with pytest.raises(InputError, match="mechanism_delta"):
        learned.one_draw(0.1, mechanism_delta=-0.1)


# Documents.


def saved(delta: float = 0.1, target: Any = None) -> SavedCoupling:
    support = Cells((Axis("x", 0, 1, 2), Axis("y", 0, 1, 2)))
    groups = {"a": [0.5, 0.25, 0.25, 0.0], "b": [0.1, 0.2, 0.3, 0.4]}
    fitted = CouplingMechanism.fit(groups, support.transport_cost(), target=target, delta=delta)
    return SavedCoupling(fitted, support, "group", "cityblock", Origin.from_kind("public", "mine"))


@pytest.mark.parametrize("target", [None, [0.25, 0.25, 0.25, 0.25]])
def test_there_and_back(target: Any) -> None:
    before = saved(0.1, target)
    after = SavedCoupling.from_json(to_json_text(before.to_document()))
    assert after.to_document() == before.to_document()
    assert after.mechanism.common_part == before.mechanism.common_part
    assert "common_part" not in json.loads(to_json_text(saved(0.0, target).to_document()))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"delta": 0.05}, "common part"),
        ({"lower": 5.0}, "lower"),
        ({"weights": [0.5, 0.6]}, "weights"),
        ({"potentials": [[0.0] * 4] * 2}, "lower"),
        ({"potentials": [[0.0] * 4]}, "common_part"),
        ({"potentials": [[0.0] * 3] * 2}, "common_part"),
        ({"delta": 0.0}, "delta"),
        ({"extra": 1}, "extra"),
    ],
)
def test_changed_documents_are_refused(changes: dict[str, Any], said: str) -> None:
    data = json.loads(to_json_text(saved().to_document()))
    data["common_part"].update(changes)
    with pytest.raises(InputError, match=said):
        SavedCoupling.from_json(json.dumps(data))


def test_a_bound_for_learned_laws_includes_delta() -> None:
    """A document whose stated bound is smaller than its δ is refused, and not confirmed."""
    found = saved(0.1)
    for variation in (0.05, 0.2):
        left = (Triple(epsilon=0.0, delta=variation, total_variation=variation),)
        learning = Learning(epsilon=1.0, person="each row", confidence=0.95, left=left)
        data = json.loads(to_json_text(found.to_document()))
        data["origin"] = plain_data(Origin.from_kind("private", "mine", learning))
        is_refuted = worst_verdict(check_document(json.dumps(data))) == REFUTED
        assert is_refuted == (variation < 0.1)
        if is_refuted:
            with pytest.raises(InputError, match="left"):
                SavedCoupling.from_json(json.dumps(data))
        else:
            SavedCoupling.from_json(json.dumps(data))


# What is refused, and integers.


@pytest.mark.parametrize("delta", [-0.1, 1.5, math.nan, 1e-12, 1.0, "much"])
def test_deltas_that_are_refused(delta: Any) -> None:
    with pytest.raises(InputError) as caught:
        CouplingMechanism.fit(laws(1, 3), line([0, 1, 2]), delta=delta)
    assert caught.value.name == "delta"


def test_the_largest_distance_has_no_partial_coupling() -> None:
    with pytest.raises(InputError) as caught:
        CouplingMechanism.fit(laws(1, 3), line([0, 1, 2]), delta=0.1, objective="worst")
    assert caught.value.name == "objective"


@given(st.integers(0, 10**6), DELTAS)
def test_integers_share_what_they_should(seed: int, delta: float) -> None:
    """Also if the solver's floats miss their sums, or exceed the target."""
    rng = np.random.default_rng(seed)
    target = ExactDistribution.from_probabilities("t", rng.dirichlet(np.ones(6)), 6)
    common = rng.dirichlet(np.ones(6)) * (1 - delta) * 1.0001
    rests = rng.dirichlet(np.full(6, 0.3), 3) * delta * 0.9999
    for given_target in (None, target):
        mu, outputs = distributions_with_common_part(common, rests, delta, given_target)
        limits = [mu.masses[y] * 2**120 // mu.total for y in range(6)]
        shared = sum(min(limits[y], *(output.masses[y] for output in outputs)) for y in range(6))
        assert Fraction(shared, 2**120) >= 1 - exact_delta(delta) + Fraction(6, 2**120)
        assert all(sum(output.masses) == output.total == 2**120 for output in outputs)
        assert min(min(output.masses) for output in outputs) >= 0
