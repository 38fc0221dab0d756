"""Accounts of steps and of training, checked from the document alone."""

from __future__ import annotations

import json

import pytest
from flint import ctx

import tightrope as tr
from tests.verify.altered import MUTATIONS, altered, not_caught
from tests.verify.written import LISTED, STEPS, account, training
from tightrope.verify import accounts
from tightrope.verify.accounts import step_profile
from tightrope.verify.check import check_document
from tightrope.verify.claims import CONFIRMED, NOT_CONFIRMED, REFUTED, worst_verdict
from tightrope.verify.promises import exact_interval

FULL = MUTATIONS >= 200


@pytest.fixture(autouse=True)
def coarse(monkeypatch):
    """One grid alone, that confirms a small account: finer ones take a minute."""
    if not FULL:
        monkeypatch.setattr(accounts, "ACCOUNT_GRID_EXPONENTS", (8,))


@pytest.mark.parametrize("name", STEPS if FULL else ["finite"])
def test_an_account_is_confirmed(name):
    claims = check_document(account(name))
    assert worst_verdict(claims) == CONFIRMED, [claim for claim in claims if claim.verdict in (NOT_CONFIRMED, REFUTED)]


@pytest.mark.skipif(not FULL, reason="a minute: with TIGHTROPE_MUTATIONS=200")
def test_a_training_is_confirmed():
    claims = check_document(training())
    assert worst_verdict(claims) == CONFIRMED, [claim for claim in claims if claim.verdict in (NOT_CONFIRMED, REFUTED)]


@pytest.mark.parametrize("name", ["noise", "finite"])
@pytest.mark.skipif(not FULL, reason="minutes: with TIGHTROPE_MUTATIONS=200")
def test_an_altered_field_is_caught_or_said_not_to_be_checked(name):
    """A change within the factor up to which a bound is shown is not caught: the line says the factor."""
    missed = [one[:3] for one in altered(account(name), seed=29) if not_caught(*one)]
    assert [one for one in missed if not abs(one[2] - one[1]) <= accounts.ACCOUNT_TOLERANCE * abs(one[1])] == []


@pytest.mark.parametrize("name", ["finite", "subset"] if FULL else ["finite"])
def test_a_delta_that_is_a_twentieth_too_small_is_not_confirmed(name):
    data = json.loads(account(name))
    row = data["delta_at_epsilon"][0]
    row["delta"] = row["upper"] = row["lower"] = row["lower"] * 0.95
    row["relative_width"] = 0.0
    assert worst_verdict(check_document(json.dumps(data))) != CONFIRMED


@pytest.mark.parametrize("name", LISTED)
def test_steps_from_tables_stairs_and_points_are_confirmed(name):
    claims = check_document(account(name))
    assert worst_verdict(claims) == CONFIRMED, [claim for claim in claims if claim.verdict in (NOT_CONFIRMED, REFUTED)]


@pytest.mark.slow
@pytest.mark.parametrize("name", LISTED if FULL else ["discrete truncated Laplace"])
def test_steps_that_are_a_thousandth_too_good_are_refuted(name, monkeypatch):
    monkeypatch.setattr(accounts, "ACCOUNT_GRID_EXPONENTS", (13 if FULL else 12,))
    data = json.loads(account(name))
    data["total_variation"] *= 0.999
    data["attack_success"] = (1 + data["total_variation"]) / 2
    claims = check_document(json.dumps(data))
    assert [claim.name for claim in claims if claim.verdict == REFUTED] == ["total_variation: delta(0)"]


ALONE = {
    "staircase": tr.staircase(epsilon=0.5),
    "staircase of another shape": tr.staircase(epsilon=0.5, gamma=0.7),
    "truncated Laplace": tr.truncated_laplace(epsilon=0.5, delta=1e-7),
    "discrete staircase": tr.discrete_staircase(epsilon=0.5, sensitivity=5),
    "discrete Gaussian": tr.discrete_gaussian(scale=5, sensitivity=2),
    "discrete truncated Laplace": tr.discrete_truncated_laplace(epsilon=0.5, delta=1e-7, sensitivity=3),
    "points": tr.from_points([(1, 1e-7), (0.5, 1e-3), (0.2, 0.05)]),
}


@pytest.mark.parametrize("name", ALONE)
@pytest.mark.parametrize("epsilon", [-0.7, -0.3, 0.0, 0.1, 0.2, 0.45, 0.7, 1.1])
def test_the_profile_of_a_step_is_that_of_the_mechanism(name, epsilon, monkeypatch):
    """But for the rounding of weights to 2^−128, and for what is rounded towards safety."""
    monkeypatch.setattr(ctx, "prec", 400)
    step = json.loads(account(name))["steps"][0] | {"poisson_rate": None}
    found, stated = step_profile(step)(exact_interval(epsilon)), ALONE[name].loss.delta_bounds(epsilon)
    assert stated.lower * (1 - 1e-9) - 1e-15 <= float(found) <= stated.upper * (1 + 1e-9) + 1e-15


def test_weights_that_are_too_many_are_left_open():
    data = json.loads(account("discrete Gaussian"))
    data["steps"][0]["scale"] = 1e8
    assert worst_verdict(check_document(json.dumps(data))) == NOT_CONFIRMED


def test_noise_on_whole_numbers_is_moved_by_whole_numbers():
    data = json.loads(account("discrete Gaussian"))
    data["steps"][0]["sensitivity"] = 1.5
    assert worst_verdict(check_document(json.dumps(data))) == REFUTED
