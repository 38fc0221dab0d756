"""Every value of the reference file, computed elsewhere in high precision, inside the bracket to its printed digits."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import tightrope as tr

REFERENCE = json.loads((Path(__file__).parent / "reference" / "accounting.json").read_text(encoding="utf-8"))
COMPOSED = REFERENCE["composed"]


def half_digit(printed: str, digits: int = 40) -> float:
    """Half a unit of the last printed digit, or of the last trusted one, relative to the value."""
    value = Decimal(printed)
    _, figures, _ = value.as_tuple()
    return 0.5 * 10.0 ** (1 - min(len(figures), digits)) * 1.0000001


def check(lower: float, upper: float, printed: str, digits: int = 40) -> None:
    """Both ends within 1e−9 of the truth, the truth between them up to what is printed."""
    truth, margin = float(printed), half_digit(printed, digits)
    assert lower <= truth * (1 + margin), (lower, printed)
    assert upper >= truth * (1 - margin), (upper, printed)
    tolerance = max(1e-9, margin)
    assert abs(lower / truth - 1) <= tolerance
    assert abs(upper / truth - 1) <= tolerance


@pytest.mark.parametrize(
    ("case", "epsilon"), [(case, epsilon) for case in REFERENCE["triples"] for epsilon in case["delta_at"]]
)
def test_a_composed_triple(case: dict[str, Any], epsilon: str) -> None:
    step = tr.approx_dp(
        float(case["epsilon"]), delta=float(case["delta"]), total_variation=float(case["total_variation"])
    )
    check(*(case["k"] * step.loss).delta_bounds(float(epsilon)), case["delta_at"][epsilon])


@pytest.mark.parametrize("case", REFERENCE["gaussian"])
def test_a_gaussian(case: dict[str, str]) -> None:
    loss = tr.gaussian(scale=1, sensitivity=float(case["mu"])).loss
    check(*loss.delta_bounds(float(case["epsilon"])), case["delta"])


@pytest.mark.parametrize("case", [case for case in COMPOSED if case["kind"] == "poisson-gaussian"])
def test_a_sampled_gaussian_in_both_directions(case: dict[str, Any]) -> None:
    step = tr.gaussian(scale=float(case["sigma"])).loss.poisson_sample(float(case["q"]))
    loss, epsilon = case["k"] * step, float(case["eps"])
    check(*tr.PrivacyLoss(loss.remove, loss.remove).delta_bounds(epsilon), case["remove"], case["digits"])
    check(*tr.PrivacyLoss(loss.add, loss.add).delta_bounds(epsilon), case["add"], case["digits"])
    worse = max(case["remove"], case["add"], key=float)
    check(*loss.delta_bounds(epsilon), worse, case["digits"])


@pytest.mark.parametrize("case", [case for case in COMPOSED if case["kind"] == "laplace"])
def test_a_composed_laplace(case: dict[str, Any]) -> None:
    loss = case["k"] * tr.laplace(scale=1, sensitivity=float(case["eps0"])).loss
    check(*loss.delta_bounds(float(case["eps"])), case["delta"], case["digits"])


@pytest.mark.parametrize("case", [case for case in COMPOSED if case["kind"].startswith("mix")])
def test_a_mixture_of_families(case: dict[str, Any]) -> None:
    assert case["kind"] == "mix lap.05x200 lap.2x20 gauss10x50 gauss30x400"
    loss = 200 * tr.laplace(scale=20).loss + 20 * tr.laplace(scale=5).loss
    loss = loss + 50 * tr.gaussian(scale=10).loss + 400 * tr.gaussian(scale=30).loss
    check(*loss.delta_bounds(float(case["eps"])), case["delta"], case["digits"])


def test_nothing_in_the_file_is_left_out() -> None:
    assert set(REFERENCE) == {"triples", "gaussian", "composed"}
    assert {case["kind"].split()[0] for case in COMPOSED} == {"poisson-gaussian", "laplace", "mix"}


@pytest.mark.parametrize(
    ("sigma", "rate", "count", "epsilon", "remove", "add"),
    [
        (1.0, 0.01, 1000, 1, 0.00261242057862692, 0.000794590173571718),
        (1.0, 0.01, 1000, 3, 9.22208900375e-10, 2.50187350617953e-21),
        (0.8, 0.01, 1000, 3, 1.76713758683295e-5, 6.9111723006891e-12),
        (0.8, 0.01, 1000, 8, 1.25803025162326e-14, 3.21703553309776e-240),
        (1.3, 256 / 60000, 3515, 1, 9.42260574155293e-7, 1.474229295e-7),
        (1.0, 0.01, 1000, 8, 3.1421103e-26, 0.0),
    ],
)
def test_the_table_of_theory_3(
    sigma: float, rate: float, count: int, epsilon: float, remove: float, add: float
) -> None:
    """12 digits, or as many as are printed."""
    loss = count * tr.gaussian(scale=sigma).loss.poisson_sample(rate)
    for direction, printed in ((loss.remove, remove), (loss.add, add)):
        if printed:
            digits = len(Decimal(str(printed)).as_tuple().digits)
            lower, upper = tr.PrivacyLoss(direction, direction).delta_bounds(epsilon)
            assert (lower + upper) / 2 == pytest.approx(printed, rel=max(1e-12, 10.0 ** (1 - digits)), abs=0)
