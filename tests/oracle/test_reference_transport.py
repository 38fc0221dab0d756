"""Wasserstein distances against reference numbers."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from tightrope import transport

CASES = json.loads((Path(__file__).parent / "reference" / "transport.json").read_text())


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{len(case['points'])}-points")
def test_distances(case: dict[str, Any]) -> None:
    cost = transport.points(case["points"])
    for p, distance in ((1, case["w1"]), (math.inf, case["winf"])):
        assert math.isclose(transport.wasserstein(case["source"], case["target"], cost, p=p), distance, rel_tol=1e-9)
        table = transport.wasserstein(case["source"], case["target"], cost.to_matrix(), p=p)
        assert math.isclose(table, distance, rel_tol=1e-9)


def test_the_example_of_kawamoto_and_murakami() -> None:
    """KM Example 2: 0.1 moves from 2 to 1 and 0.2 from 2 to 3."""
    source, target = [0.2, 0.5, 0.3], [0.3, 0.2, 0.5]
    for cost in (transport.line([1, 2, 3]), transport.grid((3,)), transport.points([[1], [2], [3]])):
        found = transport.coupling(source, target, cost)
        wanted = [[0.2, 0, 0], [0.1, 0.2, 0.2], [0, 0, 0.3]]
        assert abs(found.plan.toarray() - wanted).max() <= 1e-12
        assert math.isclose(found.cost, 0.3, rel_tol=1e-12)
        assert math.isclose(found.dual.value, 0.3, rel_tol=1e-12)
