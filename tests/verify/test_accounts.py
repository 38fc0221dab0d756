"""Accounts of steps and of training, checked from the document alone."""

from __future__ import annotations

import json

import pytest

from tests.verify.altered import MUTATIONS, altered, not_caught
from tests.verify.written import STEPS, account, training
from tightrope.verify import accounts
from tightrope.verify.check import checked
from tightrope.verify.claims import CONFIRMED, OPEN, REFUTED, verdict

FULL = MUTATIONS >= 200


@pytest.fixture(autouse=True)
def coarse(monkeypatch):
    """One grid alone, that confirms a small account: finer ones take a minute."""
    if not FULL:
        monkeypatch.setattr(accounts, "ACCOUNT_STEPS", (8,))


@pytest.mark.parametrize("name", STEPS if FULL else ["finite"])
def test_an_account_is_confirmed(name):
    claims = checked(account(name))
    assert verdict(claims) == CONFIRMED, [claim for claim in claims if claim.verdict in (OPEN, REFUTED)]


@pytest.mark.skipif(not FULL, reason="a minute: with TIGHTROPE_MUTATIONS=200")
def test_a_training_is_confirmed():
    claims = checked(training())
    assert verdict(claims) == CONFIRMED, [claim for claim in claims if claim.verdict in (OPEN, REFUTED)]


@pytest.mark.parametrize("name", ["noise", "finite"])
@pytest.mark.skipif(not FULL, reason="minutes: with TIGHTROPE_MUTATIONS=200")
def test_an_altered_field_is_caught_or_said_not_to_be_checked(name):
    """A change within the factor up to which a bound is shown is not caught: the line says the factor."""
    missed = [one[:3] for one in altered(account(name), seed=29) if not_caught(*one)]
    assert [one for one in missed if not abs(one[2] - one[1]) <= accounts.NEAR * abs(one[1])] == []


@pytest.mark.parametrize("name", ["finite", "subset"] if FULL else ["finite"])
def test_a_delta_that_is_a_twentieth_too_small_is_not_confirmed(name):
    data = json.loads(account(name))
    row = data["delta_at_epsilon"][0]
    row["delta"] = row["upper"] = row["lower"] = row["lower"] * 0.95
    row["relative_width"] = 0.0
    assert verdict(checked(json.dumps(data))) != CONFIRMED


def test_a_step_without_a_closed_form_is_said_to_be_open():
    data = json.loads(account("noise"))
    run = {name: data["steps"][0][name] for name in ("count", "poisson_rate", "subset", "erase")}
    data["steps"][0] = {**run, "mechanism": "staircase", "epsilon": 1.0, "sensitivity": None, "gamma": None}
    claims = checked(json.dumps(data))
    assert verdict(claims) == OPEN
    assert any("staircase" in claim.stated for claim in claims)
