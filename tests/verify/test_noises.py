"""Noise certificates, checked from the document alone."""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Any

import pytest
from flint import arb, ctx

import tightrope as tr
from tests.verify.altered import altered, not_caught
from tests.verify.written import NOISES, noise
from tightrope.documents.document import to_json_text
from tightrope.noise.program import dual
from tightrope.verify.check import check_document
from tightrope.verify.claims import CONFIRMED, NOT_CONFIRMED, REFUTED, worst_verdict
from tightrope.verify.noises import _cost_bound_claims, absolute_and_squared_moments
from tightrope.verify.tables import TOTAL_WEIGHT, Noise


@pytest.mark.parametrize("name", NOISES)
def test_a_noise_is_confirmed(name):
    claims = check_document(noise(name))
    assert worst_verdict(claims) == CONFIRMED, [claim for claim in claims if claim.verdict in (NOT_CONFIRMED, REFUTED)]


@pytest.mark.parametrize("name", ["a theorem", "a dual", "endless"])
def test_an_altered_field_is_caught_or_said_not_to_be_checked(name):
    assert [one[:3] for one in altered(noise(name), seed=23) if not_caught(*one)] == []


def test_real_valued_noise_is_not_confirmed():
    certificate = tr.least_noise(tr.Budget(epsilon=1, delta="1e-6"), integer=False).certificate
    assert worst_verdict(check_document(to_json_text(certificate.to_document()))) == NOT_CONFIRMED


def test_a_lower_bound_that_nothing_proves_is_not_confirmed():
    data = json.loads(noise("a dual"))
    data["argument"]["numbers"]["multipliers"][2]["values"][5] += 0.5
    data["argument"]["numbers"]["multipliers"][2]["cap"] += 0.5
    assert worst_verdict(check_document(json.dumps(data))) != CONFIRMED


def test_a_dual_that_promises_more_than_was_promised_is_refuted():
    data = json.loads(noise("a dual"))
    for one in data["argument"]["numbers"]["multipliers"]:
        one["delta"] = 0.0
    assert worst_verdict(check_document(json.dumps(data))) == REFUTED


def test_a_wrong_engine_is_refuted(monkeypatch):
    honest = tr.PrivacyLoss.delta
    monkeypatch.setattr(tr.PrivacyLoss, "delta", lambda self, epsilon: honest(self, epsilon) * 0.9)
    certificate = tr.least_noise(tr.Budget(epsilon=1, delta="1e-7"), sensitivity=4).certificate
    assert worst_verdict(check_document(to_json_text(certificate.to_document()))) == REFUTED


def test_a_wrong_lower_bound_is_not_confirmed(monkeypatch):
    honest = dual.proven_least_cost
    from tightrope.noise.program import certificate as noise_certificate

    monkeypatch.setattr(noise_certificate, "proven_least_cost", lambda *asked: honest(*asked) * 1.0001)
    certificate = tr.least_noise(tr.Budget(epsilon=1, delta="1e-7"), sensitivity=3).certificate
    changed = json.loads(to_json_text(certificate.to_document()))
    assert worst_verdict(check_document(json.dumps(changed))) != CONFIRMED


def test_moments_and_the_profile_of_a_small_table_are_those_of_the_definition():
    ctx.prec = 200
    data = {"centre": str(TOTAL_WEIGHT // 2), "half": [str(TOTAL_WEIGHT // 8)], "tail": None, "steps": []}
    data["tail"] = {
        "block": [str(TOTAL_WEIGHT // 2)],
        "escape_in": str(TOTAL_WEIGHT // 8),
        "escape": str(TOTAL_WEIGHT // 2),
    }
    law = Noise(data)
    weights = {
        0: Fraction(1, 2),
        1: Fraction(1, 8),
        **{k: Fraction(1, 8) * Fraction(1, 2) ** (k - 1) for k in range(2, 200)},
    }
    mean, square = (2 * sum(k**p * w for k, w in weights.items()) for p in (1, 2))
    assert [float(one) for one in absolute_and_squared_moments(law)] == pytest.approx(
        [float(mean), float(square)], rel=1e-12
    )
    for shift in (1, 2, 5):
        both = ((weights.get(abs(y), 0), weights.get(abs(y - shift), 0)) for y in range(-190, 190))
        wanted = sum(max(0.0, float(p) - 1.5 * float(q)) for p, q in both)
        largest = max(wanted, *(float(law.delta(arb(1.5).log(), s)) for s in range(1, shift)), 0.0)
        assert float(law.delta(arb(1.5).log(), shift)) == pytest.approx(largest, rel=1e-12)


@pytest.mark.parametrize(
    ("releases", "sensitivity", "delta", "cost"),
    [(6, 1, "1e-6", "squared"), (3, 2, "1e-4", "absolute"), (5, 1, "0", "squared"), (450, 2, "1e-6", "squared")],
)
def test_the_lower_bound_of_several_answers_is_recomputed(releases, sensitivity, delta, cost):
    noise = tr.least_noise(
        tr.Budget(epsilon=1, delta=delta), releases=releases, sensitivity=sensitivity, cost=cost
    ).certificate
    text = to_json_text(noise.to_document())
    checked = {claim.name: claim.verdict for claim in _cost_bound_claims(json.loads(text))}
    assert checked == {"argument.numbers: its points are promised": CONFIRMED, "lower": CONFIRMED}
    assert not [claim for claim in check_document(text) if claim.verdict == REFUTED]
    # A tail that does not follow from the one before it, and groups of more releases than there are.
    for name, value in (("centre", [0.3]), ("centre", []), ("together", releases + 1)):
        data = json.loads(text)
        data["argument"]["numbers"][name] = value
        data["lower"] = data["lower"] * 0.9
        assert [claim.verdict for claim in _cost_bound_claims(data)][-1] == NOT_CONFIRMED, name


def test_tails_raised_by_a_millionth_are_not_confirmed():
    noise = tr.least_noise(tr.Budget(epsilon=1, delta="1e-6"), releases=6, cost="squared").certificate
    for place in range(3):
        data = json.loads(to_json_text(noise.to_document()))
        data["argument"]["numbers"]["centre"][place] *= 1 + 1e-6
        assert [claim.verdict for claim in _cost_bound_claims(data)][-1] == NOT_CONFIRMED


@cache
def scored(releases: int, cost: str = "squared") -> str:
    """A certificate whose lower bound follows from the sum of scores."""
    found = tr.least_noise(tr.Budget(epsilon=1, delta="1e-6"), releases=releases, cost=cost).certificate
    return to_json_text(found.to_document())


@pytest.mark.parametrize(("releases", "cost"), [(10, "squared"), (10, "absolute"), (50, "squared"), (100, "squared")])
def test_the_lower_bound_by_scores_is_recomputed(releases, cost):
    text = scored(releases, cost)
    checked = {claim.name: claim.verdict for claim in _cost_bound_claims(json.loads(text))}
    assert checked == {"argument.numbers: its points are promised": CONFIRMED, "lower": CONFIRMED}
    raised = json.loads(text)
    raised["lower"] *= 1.01
    assert [claim.verdict for claim in _cost_bound_claims(raised)][-1] == NOT_CONFIRMED


def test_the_whole_certificate_by_scores_is_confirmed():
    claims = check_document(scored(10))
    assert worst_verdict(claims) == CONFIRMED, [claim for claim in claims if claim.verdict in (NOT_CONFIRMED, REFUTED)]


def _change(place: str, change: Callable[[Any], Any]) -> Callable[[dict[str, Any]], None]:
    def alter(numbers: dict[str, Any]) -> None:
        numbers[place] = change(numbers[place])

    return alter


PLANTED: dict[str, Callable[[dict[str, Any]], None]] = {
    "a lower limit": _change("limit", lambda limit: limit * 0.97),
    "a higher limit": _change("limit", lambda limit: limit * 1.01),
    "lower caps": _change("caps", lambda caps: [cap * 0.9 for cap in caps]),
    "a cap of none": _change("caps", lambda caps: [0.0, *caps[1:]]),
    "no cells": _change("caps", lambda caps: []),
    "a later threshold": _change("threshold", lambda threshold: threshold + 4),
    "a threshold of 0": _change("threshold", lambda threshold: 0),
    "more answers": _change("count", lambda count: count + 1),
    "fewer answers": _change("count", lambda count: count - 1),
    "a weight that is not concave": _change("values", lambda values: [*values[:20], values[20] * 1.01, *values[21:]]),
    "a larger weight": _change("values", lambda values: [value / 1.02 for value in values]),
    "levels beyond one half": _change("levels", lambda levels: [*levels[:-1], 0.6]),
    "levels out of order": _change("levels", lambda levels: [levels[1], levels[0], *levels[2:]]),
    "another cell": _change("edges", lambda edges: [edges[0] + 3, *edges[1:]]),
    "cells that end early": _change("edges", lambda edges: [*edges[:-1], edges[-1] - 1]),
    "a lower line": _change("rows", lambda rows: [rows[0], [rows[1][0], rows[1][1] * 0.99, rows[1][2]], *rows[2:]]),
    "steeper tails": _change("rows", lambda rows: [[2 * kappa, base, slope] for kappa, base, slope in rows]),
    "no tails": _change("rows", lambda rows: []),
    "a negative row": _change("rows", lambda rows: [[-rows[0][0], *rows[0][1:]], *rows[1:]]),
    "no price": _change("price", lambda price: 0.0),
    "a higher price": _change("price", lambda price: price * 1.3),
    "two points": _change("points", lambda points: points * 2),
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_error_in_the_scores_is_not_confirmed(name, monkeypatch):
    monkeypatch.setattr("tightrope.verify.noises.MAX_BOXES", 1000)  # the honest proof needs fewer
    data = json.loads(scored(10))
    PLANTED[name](data["argument"]["numbers"])
    assert [claim.verdict for claim in _cost_bound_claims(data)][-1] == NOT_CONFIRMED


def test_points_that_were_not_promised_are_refuted():
    data = json.loads(scored(10))
    data["argument"]["numbers"]["points"] = [[1.0, 1e-9]]
    assert REFUTED in [claim.verdict for claim in _cost_bound_claims(data)]
