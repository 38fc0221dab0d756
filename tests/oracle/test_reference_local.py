"""Every value of the reference file for channels, to 1e−9."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from tightrope.channels import Channel, SymmetricChannel

REFERENCE = json.loads((Path(__file__).parent / "reference" / "local.json").read_text(encoding="utf-8"))
TIGHT = {"rel": 1e-9, "abs": 0.0}


@pytest.mark.parametrize("case", REFERENCE, ids=lambda case: f"{len(case['matrix'])} rows")
def test_a_channel(case: dict[str, Any]) -> None:
    made = Channel(case["matrix"])
    assert made.epsilon == (math.inf if case["epsilon"] is None else pytest.approx(case["epsilon"], **TIGHT))
    assert made.total_variation == pytest.approx(case["total_variation"], **TIGHT)
    assert made.kl_contraction == pytest.approx(case["kl_contraction"], **TIGHT)
    for epsilon, delta in case["profile"].items():
        assert made.profile(float(epsilon)) == pytest.approx(delta, **TIGHT)
        assert made.contraction(math.exp(float(epsilon))) == pytest.approx(delta, **TIGHT)
        assert made.loss.delta(float(epsilon)) == pytest.approx(delta, **TIGHT)


def test_nothing_in_the_file_is_left_out() -> None:
    known = {"matrix", "epsilon", "total_variation", "profile", "kl_contraction"}
    assert all(set(case) == known for case in REFERENCE)
    assert len(REFERENCE) == 3


def test_k_ary_randomised_response_of_theory_5() -> None:
    """Printed as 0.1204452604; the formula gives …60339."""
    assert SymmetricChannel.randomized_response(1.3, 10).kl_contraction == pytest.approx(0.12044526034, rel=1e-10)
