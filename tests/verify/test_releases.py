"""Release certificates, checked from the document alone."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from decimal import Decimal
from functools import reduce

import numpy as np
import pandas as pd
import pytest

import tightrope as tr
from tests.verify.altered import altered, not_caught, of_version_3
from tests.verify.written import QUESTIONS, release, table
from tightrope.accounting.loss_pmf import LossPMF
from tightrope.noise import worst_split
from tightrope.verify.check import check_document
from tightrope.verify.claims import CONFIRMED, NOT_CONFIRMED, REFUTED, worst_verdict


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_release_is_confirmed(name):
    claims = check_document(release(name))
    assert worst_verdict(claims) == CONFIRMED, [claim for claim in claims if claim.verdict in (NOT_CONFIRMED, REFUTED)]


@pytest.mark.parametrize("epsilon", [0.05, 0.01])
def test_a_release_of_a_small_epsilon_is_confirmed_on_a_grid_as_fine(epsilon):
    """Once a rate of an attacker at 0.01 was stated 1.8e-12 below the truth: the mirror of a raised law is no bound."""
    budget = tr.Budget(epsilon=epsilon, delta=1e-8)
    session = tr.Session(table(), privacy_unit="person", max_rows=4, budget=budget)
    asked = [tr.count(by="city", keys=["Ulm", "Bern"]), tr.count()]
    claims = check_document(json.dumps(session.plan(asked).release().certificate))
    assert worst_verdict(claims) == CONFIRMED, [claim for claim in claims if claim.verdict in (NOT_CONFIRMED, REFUTED)]


@pytest.mark.parametrize("fraction", ["1/3", "1/7", "0.3"])
def test_a_release_of_a_third_of_the_budget_is_confirmed(fraction):
    """A third of δ = 1e-8 has no shortest text below it: the certificate states the double before the nearest one."""
    session = tr.Session(table(), privacy_unit="person", max_rows=1, budget=tr.Budget(epsilon=1, delta=1e-8))
    certificate = session.plan([tr.count()], budget_fraction=fraction).release().certificate
    claims = check_document(json.dumps(certificate))
    assert worst_verdict(claims) == CONFIRMED, [claim for claim in claims if claim.verdict in (NOT_CONFIRMED, REFUTED)]
    assert Decimal(repr(certificate["delta"])) <= Decimal(certificate["delta_exact"])
    for wrong in (math.nextafter(certificate["delta"], 0.0), certificate["delta"] * (1 + 1e-15)):
        stated = {claim.name: claim.verdict for claim in check_document(json.dumps({**certificate, "delta": wrong}))}
        assert stated["delta"] == (CONFIRMED if wrong == float(certificate["delta_exact"]) else REFUTED)


def test_one_release_of_a_series_is_confirmed_on_a_lattice_of_its_own(tmp_path):
    """Its ε is a small part of the ε of all: on their lattice its curve was stated 27 % too high in places."""
    session = tr.Session.open(
        table(), privacy_unit="person", max_rows=2, budget=tr.Budget(epsilon=2, delta=1e-6),
        ledger=tmp_path / "people.ledger", dataset="people",
    )  # fmt: skip
    series = session.series(session.plan([tr.count()]), times=12, key="year")
    claims = check_document(json.dumps(series.next().release().certificate))
    assert worst_verdict(claims) == CONFIRMED, [claim for claim in claims if claim.verdict in (NOT_CONFIRMED, REFUTED)]
    assert not [claim for claim in claims if "profile" in claim.name and "looser" in claim.finding]


def test_a_point_that_is_true_but_loose_is_confirmed_and_said():
    data = json.loads(release("cells"))
    data["profile"]["delta"][3] *= 1.3
    claims = {claim.name.split(":")[0]: claim for claim in check_document(json.dumps(data))}
    assert worst_verdict(list(claims.values())) == CONFIRMED
    assert "looser" in claims["profile.delta[3]"].finding
    assert "looser" not in claims["profile.delta[4]"].finding


def test_an_epsilon_that_does_not_follow_from_the_tables_is_not_confirmed():
    data = json.loads(release("cells"))
    value = data["epsilon"] * 1.03
    data |= {"epsilon": value, "epsilon_exact": str(Decimal(value))}
    assert worst_verdict(check_document(json.dumps(data))) == NOT_CONFIRMED


@pytest.mark.parametrize("name", ["cells", "chosen", "pure"])
def test_an_altered_field_is_caught_or_said_not_to_be_checked(name):
    assert [one[:3] for one in altered(release(name), seed=17) if not_caught(*one)] == []


@pytest.mark.parametrize("name", ["epsilon", "delta", "total_variation"])
def test_a_promise_that_is_better_by_a_tenth_of_a_percent_is_not_confirmed(name):
    data = json.loads(release("rows of a person"))
    value = data[name] * 0.999
    data |= {name: value, f"{name}_exact": str(Decimal(value))}
    data["attack_success"] = math.nextafter((1 + data["total_variation"]) / 2, 2.0)
    data["profile"]["delta"][0] = data["total_variation"]
    data["budget"]["delta"] = data["delta_exact"]
    assert worst_verdict(check_document(json.dumps(data))) != CONFIRMED


def test_an_older_version_is_confirmed_without_its_units():
    data = of_version_3(json.loads(release("rows of a person"))) | {"version": 1}
    for one in data["mechanisms"]:
        del one["together"]
    assert worst_verdict(check_document(json.dumps(data))) in (CONFIRMED, NOT_CONFIRMED)
    assert any("version 1" in claim.finding for claim in check_document(json.dumps(data)))


def test_an_accountant_that_forgets_rows_is_refuted(monkeypatch):
    monkeypatch.setattr(worst_split, "_group_loss", lambda own, window: lambda rows: _one_row(own, window))
    claims = check_document(json.dumps(plan().release().certificate))
    assert worst_verdict(claims) == REFUTED, claims


def _one_row(own, window):
    return reduce(LossPMF.__mul__, (LossPMF.from_cells(loss(shift), window) for loss, shift in own))


def test_an_accountant_that_loses_what_is_infinite_is_refuted(monkeypatch):
    honest = LossPMF.from_cells.__func__
    monkeypatch.setattr(
        LossPMF, "from_cells", classmethod(lambda cls, *law: replace(honest(cls, *law), infinite_mass=0.0))
    )
    assert worst_verdict(check_document(json.dumps(plan().release().certificate))) == REFUTED


def plan():
    """A plan that is made anew: its accountant may be a wrong one."""
    session = tr.Session(table(), privacy_unit="person", max_rows=4, budget=tr.Budget(epsilon=1, delta=1e-6))
    return session.plan([tr.count(by="city"), tr.count(by="city", keys=["Ulm", "Bern"], name="again")])


def test_an_endless_noise_is_confirmed_beyond_its_largest_loss():
    session = tr.Session(table(), privacy_unit=None, budget=tr.Budget(epsilon=1, delta=1e-6))
    data = session.plan([tr.sum("age", bounds=(0, 7)), tr.count()]).release().certificate
    assert data["profile"]["delta"][-1] == 0
    claims = check_document(json.dumps(data))
    assert worst_verdict(claims) == CONFIRMED, [claim for claim in claims if claim.verdict in (NOT_CONFIRMED, REFUTED)]


def changed_choice(**fields):
    """The certificate of a chosen quantile, in which the choice of its width says something else."""
    data = json.loads(release("chosen"))
    data["mechanisms"][1]["choice"] |= fields
    return {
        claim.name: claim.verdict for claim in check_document(json.dumps(data)) if "mechanisms[1].choice" in claim.name
    }


@pytest.mark.parametrize(("parts", "told"), [(-1e-9, "dominates the choice"), (1e-9, "no larger than needed")])
def test_a_choice_whose_weights_fall_otherwise_than_its_table_is_refuted(parts, told):
    root = int(json.loads(release("chosen"))["mechanisms"][1]["choice"]["root"])
    found = changed_choice(root=str(root + int(root * parts)))
    assert [verdict for name, verdict in found.items() if told in name] == [REFUTED]


@pytest.mark.parametrize("more", [-1, 1])
def test_an_interval_that_is_chosen_nearer_or_further_is_refuted(more):
    target = int(json.loads(release("chosen"))["mechanisms"][1]["choice"]["target"])
    assert changed_choice(target=str(target + more))["mechanisms[1].choice.target"] == REFUTED


def test_noise_that_is_said_to_be_a_choice_and_a_choice_to_be_noise_are_refuted():
    data = of_version_3(json.loads(release("chosen")))
    del data["mechanisms"][0]["choice"]
    assert worst_verdict(check_document(json.dumps(data))) == REFUTED
    data = of_version_3(json.loads(release("cells")))
    data["mechanisms"][0]["family"] = "exponential mechanism"
    assert worst_verdict(check_document(json.dumps(data))) == REFUTED


def test_a_choice_beside_noise_that_is_heavier_further_out_is_refuted():
    """A tail that never ends as slowly as it may, but two cells of the table that change places with the middle."""
    data = of_version_3(json.loads(release("chosen")))
    part = data["mechanisms"][0]["table"]
    center, first = int(part["centre"]), int(part["half"][0])
    part |= {"centre": str(center - 2 * (first // 8)), "half": [str(first + first // 8), *part["half"][1:]]}
    found = {claim.name: claim.verdict for claim in check_document(json.dumps(data))}
    assert found["mechanisms[0].choice.root: the table dominates the choice"] == REFUTED


def width_gone(data):
    del data["mechanisms"][1]


def another_share(data):
    data["mechanisms"][1]["choice"]["below"] = "400000"


def fewer_cells(data):
    for one in data["mechanisms"]:
        one["choice"]["cells"] = 1


@pytest.mark.parametrize(
    ("forge", "told"),
    [
        (lambda data: [one.update(exclusive="one of") for one in data["mechanisms"]], "exclusive"),
        (lambda data: data["mechanisms"][1]["choice"].update(target=None), "what is chosen for it"),
        (lambda data: data["mechanisms"][0].update(family="discrete Laplace", choice=None), "what is chosen for it"),
        (width_gone, "what is chosen for it"),
        (another_share, "same rows and share"),
        (lambda data: data["mechanisms"][1].update(where="x > 3"), "same rows and share"),
        (fewer_cells, "cells"),
    ],
    ids=["one of both", "two cells", "noise and a width", "a cell alone", "two shares", "other rows", "one cell"],
)
def test_choices_that_do_not_belong_together_are_refuted(forge, told):
    """With a label that says that each row enters one of them, two choices once verified at half their epsilon."""
    data = of_version_3(json.loads(release("chosen")))
    forge(data)
    assert [claim for claim in check_document(json.dumps(data)) if claim.verdict == REFUTED and told in claim.name]


def test_a_tiny_delta_is_no_number_too_large():
    """At 1e-300 the grid's units are beyond doubles: the verifier called its own writer's document malformed."""
    session = tr.Session(table(), privacy_unit=None, budget=tr.Budget(epsilon=1, delta=1e-300))
    claims = check_document(json.dumps(session.plan([tr.count()]).release().certificate))
    assert worst_verdict(claims) != REFUTED


def test_one_group_of_many_rows_without_delta_is_gone_through_soon():
    """Every number of rows was composed, though the most rows lose most: 1 500 rows took minutes."""
    table = pd.DataFrame({"p": np.arange(600) // 3})
    session = tr.Session(table, privacy_unit="p", max_rows=1_500, budget=tr.Budget(epsilon=1, delta=0))
    claims = check_document(json.dumps(session.plan([tr.count()]).release().certificate))
    assert worst_verdict(claims) != REFUTED
    assert {claim.verdict for claim in claims if claim.name.startswith(("epsilon", "total_variation"))} == {CONFIRMED}
