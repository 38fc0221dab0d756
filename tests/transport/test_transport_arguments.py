"""What is refused, and what is said."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tightrope import transport
from tightrope.errors import InputError, MissingExtraError

GOOD = [0.5, 0.5]
TABLE = [[0, 1], [1, 0]]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (([0.5, 0.6], GOOD, TABLE), r"expected the sum of source to be 1 within 1e-9, got .*1\.1.*by their total"),
        ((GOOD, [1.5, -0.5], TABLE), r"target\[1\].*a probability.*=-0\.5"),
        ((GOOD, [1.0, -1e-12], TABLE), r"target\[1\]"),
        (([math.nan, 1], GOOD, TABLE), r"source\[0\].*nan"),
        (([], GOOD, TABLE), "source.*no empty law"),
        ((GOOD, [[0.5], [0.5]], TABLE), "target.*flatten"),
        ((["a", "b"], GOOD, TABLE), "source"),
        (([0.2, 0.3, 0.5], GOOD, TABLE), "source.*2 points"),
        (([0, 0], GOOD, TABLE), "sum of source"),
        ((GOOD, GOOD, [[0, math.nan], [1, 0]]), r"cost\[0, 1\].*nan"),
        ((GOOD, GOOD, [[0, 1], [-1, 0]]), r"cost\[1, 0\].*-1"),
        ((GOOD, GOOD, [[0, math.inf], [1, 0]]), "large finite cost"),
        ((GOOD, GOOD, [0, 1]), "cost to be a two-dimensional array"),
        ((GOOD, GOOD, "euclidean"), "cost to be a two-dimensional array"),
        ((GOOD, GOOD, TABLE, 0.5), "p to be a number >= 1"),
        ((GOOD, GOOD, TABLE, math.nan), "p to be"),
        ((GOOD, GOOD, TABLE, "2"), "p to be"),
        ((GOOD, GOOD, [[0, 20], [20, 0]], 1000), "p=1000.*math.inf"),
        ((GOOD, GOOD, transport.line([0, 20]), 1000), "p=1000"),
        ((GOOD, GOOD, transport.points([[0], [1e200]], metric="sqeuclidean")), "small enough"),
        ((GOOD, [1.0, 0.0], [[0, 1e-200], [1e-200, 0]], 2), "1e-200 to the power p"),
        ((GOOD, [1.0, 0.0], transport.line([0, 1e-200]), 2), "1e-200 to the power p"),
        ((GOOD, GOOD, TABLE, -math.inf), "p to be a number >= 1"),
    ],
)
def test_couplings(arguments: tuple[Any, ...], said: str) -> None:
    with pytest.raises(InputError, match=said):
        source, target, cost, *order = arguments
        transport.coupling(source, target, cost, p=order[0] if order else 1)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: transport.grid((0, 3)), r"shape\[0\]"),
        (lambda: transport.grid(()), "at least one number of cells"),
        (lambda: transport.grid((3, 3), metric="manhattan"), "chebyshev, cityblock"),
        (lambda: transport.points([[0, 1]], [[0, 1, 2]]), "2 coordinates"),
        (lambda: transport.points([0, 1]), "transport.line"),
        (lambda: transport.points([[0, math.nan]]), r"x\[0, 1\]"),
        (lambda: transport.points([[0, 1]], metric="cosine"), "metric"),
        (lambda: transport.line([]), "x"),
        (lambda: transport.line([0, math.inf]), r"x\[1\]"),
        (lambda: transport.line(["a"]), "x"),
        (lambda: transport.graph([[0, 1], [2, 0]]), r"adjacency\[0, 1\] - adjacency\[1, 0\].*zero"),
        (lambda: transport.graph([[0, -1], [-1, 0]]), "length > 0"),
        (lambda: transport.graph([[0, 0], [0, 0]]), "connected.*node 1.*2 parts"),
        (lambda: transport.graph([[0, 1, 2]]), "square"),
        (lambda: transport.graph("roads"), "square"),
    ],
)
def test_costs(make: Callable[[], object], said: str) -> None:
    with pytest.raises(InputError, match=said):
        make()


RAGGED = [[0.5], [0.5, 1]]


@pytest.mark.parametrize(
    ("attempt", "said"),
    [
        (lambda: transport.CouplingMechanism.fit({"a": RAGGED}, TABLE), "distribution of 'a'.*unequal lengths"),
        (lambda: transport.CouplingMechanism.fit({"a": GOOD}, TABLE, objective=["worst"]), "objective"),
        (lambda: transport.CouplingMechanism.fit({"a": GOOD}, TABLE).apply([[0], [0, 1]], "a"), "values.*unequal"),
        (lambda: transport.CouplingMechanism.fit({"a": GOOD}, TABLE).apply([0], [["a"], ["a", "a"]]), "group"),
        (lambda: transport.MetricMechanism.from_channel(RAGGED, TABLE), "matrix.*unequal"),
        (lambda: transport.lifted([[True], [True, False]], GOOD, GOOD), "relation.*unequal"),
        (lambda: transport.distribution_privacy(RAGGED, [(GOOD, GOOD)], "kl"), "mechanism.*unequal"),
        (lambda: transport.distribution_privacy(TABLE, [(GOOD, GOOD)], ["kl"]), "divergence"),
        (lambda: transport.learn_laws({"a": [[1], [1, 2]]}), "counts of 'a'.*unequal"),
        (lambda: transport.grid_distances((2, 2), "chebyshev"), "metric='chebyshev'"),
        (lambda: transport.grid_distances("ab"), "shape='ab'"),
    ],
)
def test_what_is_no_table_and_no_name(attempt: Callable[[], object], said: str) -> None:
    with pytest.raises(InputError, match=said):
        attempt()


def test_laws_that_nearly_sum_to_one_are_divided_by_their_sum() -> None:
    found = transport.coupling([0.5, 0.5 + 5e-10], GOOD, TABLE)
    assert math.isclose(found.plan.sum(), 1, abs_tol=1e-15)
    assert np.abs(found.plan.sum(axis=0) - 0.5).max() <= 1e-12


def test_arguments_are_not_written_into() -> None:
    table, law = np.array(TABLE, dtype=float), np.array([0.3, 0.7])
    table.setflags(write=False)
    law.setflags(write=False)
    assert math.isclose(transport.wasserstein(law, law[::-1], table), 0.4)


def test_the_surface_is_lazy_and_sorted() -> None:
    assert sorted(transport.__all__) == transport.__all__ == dir(transport)
    assert all(
        getattr(transport, name) is not None for name in transport.__all__ if name not in ("Barycenter", "barycenter")
    )


def test_what_is_said_without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("ot.lp", "ortools.graph.python"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match=r"POT.*tightrope\[transport\]"):
        transport.coupling(GOOD, GOOD, [[3, 1], [1, 2.5]])
    for cost, p in ((transport.grid(2), 1), (TABLE, math.inf)):
        with pytest.raises(MissingExtraError, match=r"OR-tools.*tightrope\[transport\]"):
            transport.coupling(GOOD, [0.2, 0.8], cost, p=p)
    assert transport.wasserstein(GOOD, GOOD, transport.line([0, 1]), p=2) == 0
