"""A mechanism in a file: the round trip is exact, and a file that was changed is refused."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Iterator
from functools import reduce
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tightrope.documents.coupling import Learning, Origin, read_coupling
from tightrope.documents.document import Triple, to_json_text
from tightrope.errors import InputError
from tightrope.randomness.alias_sampler import TOTAL
from tightrope.randomness.bits import InsecureSeeded
from tightrope.tables.labels import Axis, Labels
from tightrope.transport.couplings.mechanism import CouplingMechanism, move_statistics
from tightrope.transport.on_tables.saved import SavedCoupling
from tightrope.transport.on_tables.supports import Categories, Cells

LEFT = tuple(Triple(epsilon=e, delta=d, total_variation=0.25) for e, d in ((0.0, 0.25), (1.0, 0.125)))
LEARNING = Learning(epsilon=0.5, person="each row", confidence=0.95, left=LEFT)
LAWS = {"a": [0.5, 0.25, 0.25, 0.0], "b": [0.1, 0.2, 0.3, 0.4]}
TARGET = [0.25, 0.25, 0.3, 0.2]


def saved(objective: Any = "expected", laws: Any = LAWS, target: Any = TARGET) -> SavedCoupling:
    support = Cells((Axis("x", 0, 1, 2), Axis("y", 0, 1, 2)))
    mechanism = CouplingMechanism.fit(laws, support.transport_cost(), target=target, objective=objective)
    return SavedCoupling(mechanism, support, "group", "cityblock", Origin.from_kind("public", "mine"))


@given(st.integers(0, 10**6), st.sampled_from(["expected", "worst"]))
def test_there_and_back(seed: int, objective: str) -> None:
    rng = np.random.default_rng(seed)
    laws = {name: rng.dirichlet(np.full(4, 0.3)) for name in "ab"}
    before = saved(objective, laws, rng.dirichlet(np.ones(4)))
    text = to_json_text(before.to_document())
    assert read_coupling(text) == before.to_document()
    after = SavedCoupling.from_json(text)
    assert after.to_document() == before.to_document()
    assert (after.mechanism.groups, after.mechanism.cost_by_group) == (
        before.mechanism.groups,
        before.mechanism.cost_by_group,
    )
    assert after.mechanism.unplanned_mass == before.mechanism.unplanned_mass
    values = rng.integers(4, size=200)
    draws = [one.mechanism.apply(values, "b", randomness=InsecureSeeded(seed)).tolist() for one in (before, after)]
    assert draws[0] == draws[1]


@pytest.mark.parametrize("names", [["Bergen", "Oslo", "Rome"], [3, 1, 2]])
def test_categories(names: list[Any]) -> None:
    support = Categories("city", Labels.from_names(names))
    mechanism = CouplingMechanism.fit(
        {0: [0.2, 0.5, 0.3], 1: [0.3, 0.3, 0.4]}, support.transport_cost(), target=[0.3, 0.2, 0.5]
    )
    one = SavedCoupling(mechanism, support, "sex", support.default_metric, Origin.from_kind("table", "mine"))
    other = SavedCoupling.from_json(to_json_text(one.to_document()))
    assert (other.support, other.metric, other.group) == (support, support.default_metric, "sex")
    assert list(other.mechanism.groups) == [0, 1]


def test_losses_are_those_of_the_weights() -> None:
    found = saved("worst")
    for name in LAWS:
        moved = move_statistics(found.mechanism, name, found.support.transport_cost())
        assert moved.largest == found.mechanism.cost_by_group[name]
        assert moved.mean == pytest.approx(saved().mechanism.cost_by_group[name] * 1.0, abs=1.0)
        assert 0 <= moved.unchanged_fraction <= 1


@pytest.mark.parametrize("stray, kept", [(1e-30, 0.0), (1e-13, 0.0), (1e-9, 1e-9)])
def test_what_rounding_leaves_behind_does_not_stay(stray: float, kept: float) -> None:
    """A plan that moves everybody but for that mass."""
    fitted = CouplingMechanism.fit({"a": [1.0, 0.0], "b": [0.5, 0.5]}, [[0, 1], [1, 0]], target=[stray, 1.0 - stray])
    assert move_statistics(fitted, "a", [[0, 1], [1, 0]]).unchanged_fraction == pytest.approx(kept, rel=1e-6, abs=0)


def test_origins() -> None:
    for origin in (
        Origin.from_kind("table", "uniform"),
        Origin.from_kind("public", "a"),
        Origin.from_kind("private", "barycenter", LEARNING),
    ):
        one = dataclasses.replace(saved(), origin=origin)
        assert SavedCoupling.from_json(to_json_text(one.to_document())).origin == origin
    for kind, learned in (("table", LEARNING), ("private", None), ("rumor", None)):
        with pytest.raises(InputError, match="kind"):
            Origin.from_kind(kind, "uniform", learned)


def _swap(row: dict[str, Any]) -> None:
    row["weights"][0], row["weights"][-1] = row["weights"][-1], row["weights"][0]


def _one_more(weights: list[str]) -> None:
    weights[0] = f"{int(weights[0], 16) + 1:x}"


def _excluded(data: dict[str, Any]) -> None:
    """Point 3 has no mass in "a": another row there leaves the output law as it is."""
    one = data["groups"][0]
    one["tables"].append({"outcomes": [3], "weights": [f"{TOTAL:x}"]})
    one["rows"][3] = len(one["tables"]) - 1


def _detour(data: dict[str, Any]) -> None:
    """Independent coupling: the same output law, at a larger loss than stated."""
    one, whole = data["groups"][1], data["groups"][0]["rows"][3]
    one["tables"], one["rows"] = [data["groups"][0]["tables"][whole]], [0] * 4


TAMPERINGS = {
    "document": lambda data: data.update(document="other"),
    "version": lambda data: data.update(version=2),
    "version as text": lambda data: data.update(version="1"),
    "no groups": lambda data: data.update(groups=[]),
    "one group less": lambda data: data["groups"].pop(),
    "group twice": lambda data: data["group"].update(names=["a", "a"]),
    "mixed names": lambda data: data["group"].update(names=["a", 1]),
    "true is no name": lambda data: data["group"].update(names=[True, False]),
    "objective": lambda data: data.update(objective="least"),
    "target": lambda data: data["target"].reverse(),
    "target short": lambda data: data["target"].pop(),
    "target negative": lambda data: data.update(target=["-1", "1", "1", "1"]),
    "target zero": lambda data: data.update(target=["0"] * 4),
    "target number": lambda data: data.update(target=[1, 1, 1, 1]),
    "law": lambda data: data["groups"][1]["law"].reverse(),
    "loss": lambda data: data["groups"][1].update(loss=data["groups"][1]["loss"] * 0.999),
    "loss nan": lambda data: data["groups"][1].update(loss=float("nan")),
    "weights sum": lambda data: data["groups"][1]["tables"][0]["weights"].append("1"),
    "weights less": lambda data: data["groups"][0]["tables"][0].update(weights=[f"{TOTAL:x}"]),
    "weights one more": lambda data: _one_more(data["groups"][0]["tables"][0]["weights"]),
    "weights swapped": lambda data: [_swap(row) for row in data["groups"][1]["tables"] if len(row["weights"]) > 1],
    "outcome outside": lambda data: data["groups"][0]["tables"][0]["outcomes"].__setitem__(0, 4),
    "row outside": lambda data: data["groups"][0]["rows"].__setitem__(0, 99),
    "row missing": lambda data: data["groups"][0]["rows"].pop(),
    "rows swapped": lambda data: data["groups"][1]["rows"].reverse(),
    "excluded point": _excluded,
    "detour": _detour,
    "stray": lambda data: data.update(stray=["1", "2"]),
    "stray of nothing": lambda data: data.update(stray=["0", "0"]),
    "metric": lambda data: data["support"].update(metric="mahalanobis"),
    "kind": lambda data: data["support"].update(kind="sphere"),
    "bounds": lambda data: data["support"]["axes"][0].update(lower=5),
    "cells": lambda data: data["support"]["axes"][0].update(cells=3),
    "huge": lambda data: data["support"]["axes"][0].update(cells=10**9),
    "unknown key": lambda data: data["support"].update(unit="km"),
    "secrecy": lambda data: data["origin"].update(secrecy="as public as the laws that it was given; and more"),
    "origin": lambda data: data.pop("origin"),
    "origin kind": lambda data: data["origin"].update(kind="rumor"),
    "origin without learning": lambda data: data["origin"].update(kind="private"),
    "origin learned nothing": lambda data: data["origin"].update(kind="private", learning={"epsilon": 1, "left": []}),
}


@pytest.mark.parametrize("tampering", TAMPERINGS.values(), ids=TAMPERINGS)
def test_tampering_is_refused(tampering: Any) -> None:
    data = json.loads(to_json_text(saved().to_document()))
    SavedCoupling.from_json(json.dumps(data))
    tampering(data)
    with pytest.raises(InputError):
        SavedCoupling.from_json(json.dumps(data))


@pytest.mark.parametrize(
    ("tampering", "said"),
    [
        ("kind", "coupling support kind to be one of 'categories', 'cells'"),
        ("unknown key", "coupling support (cells): unknown key 'unit'; known keys: 'kind', 'axes', 'metric'"),
        ("target negative", "coupling target 1='str'"),
        ("row outside", "coupling groups 1 rows=99"),
        ("outcome outside", "weights of 'a'=4"),
    ],
)
def test_the_place_is_named_and_no_mass_is_shown(tampering: str, said: str) -> None:
    data = json.loads(to_json_text(saved().to_document()))
    TAMPERINGS[tampering](data)
    with pytest.raises(InputError) as refused:
        SavedCoupling.from_json(json.dumps(data))
    assert said in str(refused.value)


JUNK = [
    None,
    True,
    0,
    -1,
    10**400,
    1.5,
    -0.0,
    math.nan,
    math.inf,
    "",
    "x",
    "0",
    "f" * 9000,
    [],
    ["1"],
    {},
    {"a": 1},
    [[]],
]


def _places(data: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to everything in the data."""
    inside = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in inside:
        yield (*above, key)
        yield from _places(value, (*above, key))


@given(st.data(), st.sampled_from(JUNK))
def test_junk_anywhere_is_refused_or_harmless(data: st.DataObject, junk: Any) -> None:
    """No other exception than ``InputError``; what is read all the same does what it says."""
    private = dataclasses.replace(saved(), origin=Origin.from_kind("private", "barycenter", LEARNING))
    tree = json.loads(to_json_text(private.to_document()))
    *above, last = data.draw(st.sampled_from(list(_places(tree))))
    reduce(lambda inner, key: inner[key], above, tree)[last] = junk
    try:
        read = SavedCoupling.from_json(json.dumps(tree))
    except InputError:
        return
    assert read.mechanism.target_error < 2.0**-99
    assert math.isfinite(sum(read.mechanism.cost_by_group.values()))


@pytest.mark.parametrize("text", ["", "[]", "3", "{", '{"format": NaN}', "[" * 100_000, '"text"', "null"])
def test_what_is_no_file(text: str) -> None:
    with pytest.raises(InputError):
        SavedCoupling.from_json(text)
