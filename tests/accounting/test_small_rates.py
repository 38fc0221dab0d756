"""Modern trainings: sixty of them are enclosed to eight digits, never above dp-accounting, and agree with the oracle.

Settings: ``tests/oracle/small_rate_settings.py``; oracle: ``reference/small_rates.json`` beside it; dp-accounting:
``tests/peers/cases/small_rates.json``. What they cost: ``benchmarks/small_rates.py``.
"""

from __future__ import annotations

import json
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import tightrope as tr
from tests.accounting.patience import patience
from tests.oracle.small_rate_settings import Setting, settings

TESTS = Path(__file__).parent.parent
ORACLE = json.loads((TESTS / "oracle" / "reference" / "small_rates.json").read_text(encoding="utf-8"))
PEER = json.loads((TESTS / "peers" / "cases" / "small_rates.json").read_text(encoding="utf-8"))
ALL = settings()
WIDTH = 1e-8
PRINTED = Fraction(1, 10**23)
"""Rounding of the oracle's 25 digits, relative."""
HANG = 60.0
SETTINGS = pytest.mark.parametrize("setting", [pytest.param(s, id=f"{i}-{s.name}") for i, s in enumerate(ALL)])
CHECKED = pytest.mark.parametrize("told", [pytest.param(c, id=f"{c['index']}-{c['name']}") for c in ORACLE])


@cache
def loss_of(setting: Setting) -> tr.PrivacyLoss:
    return setting.steps * tr.gaussian(scale=setting.sigma).loss.poisson_sample(setting.rate)


@cache
def epsilons(setting: Setting) -> tuple[float, float]:
    with patience(HANG):
        lower, upper = loss_of(setting).epsilon_bounds(setting.delta)
    return float(lower), float(upper)


def contains(lower: float, upper: float, printed: str) -> bool:
    """Exactly, but for the last printed digit; and nowhere further off than WIDTH."""
    truth = Fraction(printed)
    near = (1 - Fraction(WIDTH)) * truth <= Fraction(lower) and Fraction(upper) <= (1 + Fraction(WIDTH)) * truth
    return near and Fraction(lower) <= truth * (1 + PRINTED) and Fraction(upper) >= truth * (1 - PRINTED)


@SETTINGS
def test_epsilon_is_enclosed_to_eight_digits(setting: Setting) -> None:
    lower, upper = epsilons(setting)
    assert 0 < lower <= upper <= lower * (1 + WIDTH)


@SETTINGS
def test_delta_is_enclosed_to_eight_digits(setting: Setting) -> None:
    _, epsilon = epsilons(setting)
    with patience(HANG):
        lower, upper = loss_of(setting).delta_bounds(epsilon)
    assert 0 < lower <= upper <= lower * (1 + WIDTH)
    assert upper <= setting.delta


@pytest.mark.parametrize(
    "told", [pytest.param(c, id=f"{c['index']}-{ALL[c['index']].name}") for c in PEER if c["upper"] is not None]
)
def test_never_above_dp_accounting(told: dict[str, Any]) -> None:
    """Unless it is below our proven lower end: its transform in doubles loses tails (12.69188 for 12.69200 in one)."""
    lower, upper = epsilons(ALL[told["index"]])
    assert upper <= told["upper"] or told["upper"] < lower


@CHECKED
def test_epsilon_is_the_oracle_s(told: dict[str, Any]) -> None:
    assert contains(*epsilons(ALL[told["index"]]), max(told["remove"], told["add"], key=Fraction))


@CHECKED
def test_delta_is_the_oracle_s(told: dict[str, Any]) -> None:
    with patience(HANG):
        lower, upper = loss_of(ALL[told["index"]]).delta_bounds(told["epsilon"])
    assert contains(float(lower), float(upper), told["delta_at_epsilon"])


@CHECKED
def test_each_direction_is_the_oracle_s(told: dict[str, Any]) -> None:
    setting = ALL[told["index"]]
    for way in ("remove", "add"):
        law = getattr(loss_of(setting), way)
        with patience(HANG):
            lower, upper = tr.PrivacyLoss(law, law).epsilon_bounds(setting.delta)
        assert contains(float(lower), float(upper), told[way])


def test_the_oracle_covers_both_ends() -> None:
    """Ten or more settings, of few and of many expected uses of a record."""
    uses = sorted(ALL[c["index"]].rate * ALL[c["index"]].steps for c in ORACLE)
    assert len(uses) >= 10
    assert uses[0] < 0.5
    assert uses[-1] > 30
