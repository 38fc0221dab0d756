"""Who a value is from, and of which group: names that are one name, groups value by value."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import Any
from uuid import UUID

import numpy as np
import pandas as pd
import pytest

from tightrope.errors import InputError
from tightrope.randomness.alias_sampler import TOTAL
from tightrope.randomness.bits import InsecureSeeded
from tightrope.transport.couplings.mechanism import CouplingMechanism, encode_groups, person_names
from tightrope.transport.exact.tables import GroupTables, RowTables

LINE = np.abs(np.subtract.outer(np.arange(5.0), np.arange(5.0)))
COIN = [[0, 1], [1, 0]]


def coin() -> CouplingMechanism:
    return CouplingMechanism.fit({"a": [1.0, 0.0], "b": [0.0, 1.0]}, COIN, target=[0.5, 0.5])


# Groups.


@pytest.mark.parametrize(
    "names",
    [
        ["a", "bb", "c"],
        [3, 1, 2],
        [1, "1", 2.5],
        [("north", 1), ("south", 2), ("north", 2)],
        [f"g{k}" for k in range(40)],
        list(range(100, 60, -1)),
        [True, "x", None],
        ["", "a", "long" * 50],
        ["a", "a\0"],
        [-(2**63), 2**63 - 1, 0],
        [f"district {k}" for k in range(6000)],
    ],
)
def test_the_group_of_each_value_is_found(names: list[Any]) -> None:
    rng = np.random.default_rng(5)
    picked = rng.integers(0, len(names), 500).tolist()
    given = [names[k] for k in picked]
    boxed = np.empty(500, dtype=object)
    boxed[:] = given
    for group in (given, boxed, pd.Series(given, dtype=object)):
        assert encode_groups(group, names, 500).tolist() == picked


@pytest.mark.parametrize("dtype", [np.int8, np.uint64, np.int64, np.float64])
@pytest.mark.parametrize("count", [3, 40])
def test_numbers_of_every_kind_are_found(dtype: Any, count: int) -> None:
    names = list(range(count))
    assert encode_groups(np.array([2, 0, 1], dtype=dtype), names, 3).tolist() == [2, 0, 1]


@pytest.mark.parametrize("names", [["b", "a", "cc"], [5, 2**40, -7]])
def test_names_are_found_by_search(names: list[Any]) -> None:
    given = np.array(names * 10)
    assert encode_groups(given, names, 30).tolist() == [0, 1, 2] * 10
    with pytest.raises(InputError, match="unknown groups=10"):
        encode_groups(given, [name for name in names if name not in ("cc", -7)], 30)


def test_names_between_known_ones_are_unknown() -> None:
    names = [f"g{k}" for k in range(50)]
    given = np.array([f"g{k}" for k in range(5000)])
    with pytest.raises(InputError, match="unknown groups=4950"):
        encode_groups(given, names, 5000)
    with pytest.raises(InputError, match="unknown groups=4950"):
        encode_groups(np.arange(5000), list(range(50)), 5000)


def test_tables_of_all_groups_are_those_of_each() -> None:
    rng = np.random.default_rng(4)
    mechanism = CouplingMechanism.fit({name: rng.dirichlet(np.full(5, 0.4)) for name in "abc"}, LINE)
    tables = {
        name: RowTables.from_weights([mechanism.tables[name].row_weights(x) for x in range(5)], 5) for name in "abc"
    }
    joined = GroupTables.from_tables(tables)
    assert list(joined) == ["a", "b", "c"]
    for number, name in enumerate("abc"):
        assert [joined[name].row_weights(x) for x in range(5)] == [tables[name].row_weights(x) for x in range(5)]
        assert [joined.joined.row_weights(5 * number + x) for x in range(5)] == [
            tables[name].row_weights(x) for x in range(5)
        ]
        places, members = np.arange(5), np.full(5, number, dtype=np.int32)
        drawn = joined.draw_outcomes(members, places, InsecureSeeded(3))
        assert np.array_equal(drawn, tables[name].draw_outcomes(places, InsecureSeeded(3)))


def test_values_of_many_groups_come_out_as_group_by_group() -> None:
    rng = np.random.default_rng(2)
    laws = {name: rng.dirichlet(np.full(5, 0.4)) for name in "abc"}
    mechanism = CouplingMechanism.fit(laws, LINE)
    count = 120_000
    groups = rng.choice(list("abc"), count, p=[0.5, 0.3, 0.2])
    values = np.empty(count, dtype=np.int64)
    for name, law in laws.items():
        values[groups == name] = rng.choice(5, int(np.sum(groups == name)), p=law)
    out = mechanism.apply(values, groups)
    for name in laws:
        table = mechanism.plan_matrix(name).toarray()
        seen = np.zeros((5, 5))
        np.add.at(seen, (values[groups == name], out[groups == name]), 1)
        share = seen / seen.sum()
        assert np.all(np.abs(share - table) < 6 * np.sqrt(table * (1 - table) / seen.sum()) + 1e-3)
        assert np.all(seen[table == 0] == 0)


def test_one_name_for_all_and_that_name_for_each_are_the_same() -> None:
    mechanism = CouplingMechanism.fit({"a": [0.5, 0.5], "b": [0.2, 0.8]}, COIN, target=[0.4, 0.6])
    values = np.random.default_rng(1).integers(0, 2, 1000)
    whole, each = (mechanism.apply(values, group, randomness=InsecureSeeded(4)) for group in ("b", ["b"] * 1000))
    assert np.array_equal(whole, each)
    assert mechanism.apply([], []).shape == mechanism.apply([], "a").shape == (0,)


def test_memory_goes_by_person_and_value_whatever_the_groups() -> None:
    mechanism = coin()
    names = np.arange(400).repeat(2)
    out = mechanism.apply(np.zeros(800, int), ["a", "b"] * 400, person=names)
    assert np.array_equal(out[::2], out[1::2])
    assert len(mechanism.memory) == 400
    assert np.array_equal(mechanism.apply(np.zeros(800, int), "b", person=names), out)


@pytest.mark.parametrize(
    ("group", "message"),
    [
        (["a"], "one for each of 2 values"),
        (["a", "secret"], "unknown groups=1"),
        (np.array(["a", "secret"]), "unknown groups=1"),
        ([["a", "b"], ["b", "a"]], "one for each of 2 values"),
        (("a", "b"), "one of"),
        ([1, "a"], "unknown groups=1"),
        ([None, float("nan")], "unknown groups=2"),
    ],
)
def test_wrong_groups_teach_and_name_nobodys(group: Any, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        coin().apply([0, 1], group)
    assert "secret" not in str(caught.value)


def test_numbers_that_strings_hide_are_no_groups() -> None:
    with pytest.raises(InputError, match="unknown groups=1"):
        CouplingMechanism.fit({"1": [1.0, 0.0], "a": [0.0, 1.0]}, COIN).apply([0, 1], [1, "a"])


# People.


@pytest.mark.parametrize(
    "names",
    [
        [7, "7"],
        [b"7", "7"],
        ["a\0", "a"],
        [2**53, 2**53 + 1],
        [2**70, 2**70 + 1],
        [("Ann", 1), ("Ann", 2)],
        [UUID(int=1), UUID(int=2)],
        [1, "Ann"],
        (1, 2),
        np.array([1, 2], dtype=np.uint64),
        pd.Series(["Ann", "Bob"]),
    ],
)
def test_two_people_are_two(names: Any) -> None:
    mechanism = coin()
    mechanism.apply([0, 0], "a", person=names)
    assert len(mechanism.memory) == 2
    first = mechanism.apply([0, 0], "a", person=names)
    assert all(np.array_equal(mechanism.apply([0, 0], "a", person=names), first) for _ in range(5))
    assert len(mechanism.memory) == 2


@pytest.mark.parametrize("name", [7, "Ann", np.int64(7), np.str_("Ann"), b"x", UUID(int=3)])
def test_one_person_is_one_however_written(name: Any) -> None:
    mechanism = coin()
    mechanism.apply([0] * 20, "a", person=name)
    mechanism.apply([0] * 20, "a", person=[name] * 20)
    assert len(mechanism.memory) == 1


@pytest.mark.parametrize(
    "names",
    [
        [1.0, 2.0],
        [True, 2],
        [None, "Ann"],
        [float("nan"), "Ann"],
        np.array([1.0, np.nan]),
        np.array(["2020-01-01", "NaT"], dtype="M8[ns]"),
        [("Ann", 1.0), "Bob"],
        [["Ann"], ["Bob"]],
        [{"Ann"}, {"Bob"}],
        pd.Series([1, None]),
        float("nan"),
    ],
)
def test_what_is_no_name_is_refused_without_showing_it(names: Any) -> None:
    """NaN was never remembered: each release of one value was a fresh draw. 1 and True were one person."""
    mechanism = coin()
    with pytest.raises(InputError, match="types in person") as caught:
        mechanism.apply([0, 0], "a", person=names)
    assert "Ann" not in str(caught.value)
    assert not mechanism.memory


def test_names_of_another_shape_are_refused() -> None:
    for names in (["Ann"], np.array([["Ann", "Bob"]]), ()):
        with pytest.raises(InputError, match="one for each of 2"):
            person_names(names, 2)


def test_memory_that_takes_two_values_for_one_tells_the_group() -> None:
    """λ₀ = δ₁, λ₁ = (½, 0, ½), μ a coin, two independent values: remembered as one where they agree, TV is ½, not 0."""
    cost = np.abs(np.subtract.outer(np.arange(3.0), np.array([0.0, 2.0])))
    mechanism = CouplingMechanism.fit({"0": [0.0, 1.0, 0.0], "1": [0.5, 0.0, 0.5]}, cost, target=[0.5, 0.5])
    for remembered, wanted in ((True, Fraction(1, 2)), (False, Fraction(0))):
        first, second = (_two_values(mechanism, group, remembered) for group in "01")
        assert sum((abs(first[pair] - second[pair]) for pair in first), Fraction(0)) / 2 == wanted


def _two_values(mechanism: CouplingMechanism, group: str, remembered: bool) -> dict[tuple[int, int], Fraction]:
    law, tables = mechanism.groups[group], mechanism.tables[group]
    chances = {
        x: [Fraction(tables.row_weights(x).get(y, 0), TOTAL) for y in (0, 1)] for x in law.support_points.tolist()
    }
    out = dict.fromkeys(product((0, 1), repeat=2), Fraction(0))
    for (x, p), (other, q) in product(chances.items(), repeat=2):
        for y, z in out:
            both = p[y] * (y == z) if remembered and x == other else p[y] * q[z]
            out[y, z] += law[x] * law[other] * both
    return out
