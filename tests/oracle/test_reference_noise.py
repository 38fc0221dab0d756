"""Least integer noise against the reference optima, both shapes, every shift by the accountant."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tightrope.documents import Budget
from tightrope.noise.least_noise import least_noise

CASES = json.loads((Path(__file__).parent / "reference" / "noise.json").read_text())["integer_noise"]


@pytest.mark.parametrize("cost", ["absolute", "squared"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(map(str, list(case.values())[:3])))
def test_the_optimum_and_its_proof(case: dict[str, Any], cost: str) -> None:
    budget = Budget(**{name: case[name] for name in ("epsilon", "delta", "total_variation") if name in case})
    optimum = case[cost]
    noise = least_noise(budget, sensitivity=case["sensitivity"], cost=cost, shape="any")
    found = noise.certificate
    assert found.lower <= optimum * (1 + 1e-10)
    assert optimum * (1 - 1e-10) <= found.upper <= optimum * (1 + 1e-6)
    assert optimum <= found.lower * (1 + 1e-6)
    falling = least_noise(budget, sensitivity=case["sensitivity"], cost=cost).certificate
    assert falling.lower <= optimum * (1 + 1e-10) <= falling.upper * (1 + 1e-9) <= optimum * (1 + 5e-4)
    for shift in range(1, case["sensitivity"] + 1):
        assert noise.table.loss(shift).delta(case["epsilon"]) <= case["delta"]
