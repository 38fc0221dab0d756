"""Ledgers, couplings and findings, checked from the document alone."""

from __future__ import annotations

import json

import pytest

from tests.verify.altered import altered, not_caught
from tests.verify.written import coupling, ledger
from tightrope.documents.document import to_json_text
from tightrope.local.studies.study import Findings, Study
from tightrope.verify.check import check_document
from tightrope.verify.claims import CONFIRMED, NOT_CONFIRMED, REFUTED, worst_verdict
from tightrope.verify.ledgers import HASHED_FIELDS, canonical_text, sha256


@pytest.mark.parametrize("document", [ledger, coupling], ids=["ledger", "coupling"])
def test_a_record_is_confirmed(document):
    claims = check_document(document())
    assert worst_verdict(claims) == CONFIRMED, [claim for claim in claims if claim.verdict in (NOT_CONFIRMED, REFUTED)]


@pytest.mark.parametrize("document", [ledger, coupling], ids=["ledger", "coupling"])
def test_an_altered_field_is_caught_or_said_not_to_be_checked(document):
    assert [one[:3] for one in altered(document(), seed=31) if not_caught(*one)] == []


def test_a_ledger_written_anew_with_a_smaller_sum_is_refuted():
    data = json.loads(ledger())
    previous = data["entries"][0]["previous"]
    for entry in data["entries"]:
        entry["previous"] = previous
        if entry["kind"] != "dataset":
            entry["state"]["balances"]["total"][0] = "1/8"
        held = [canonical_text(entry[part]) if part in {"body", "state"} else entry[part] for part in HASHED_FIELDS]
        entry["hash"] = previous = sha256(canonical_text(held))
    claims = check_document(json.dumps(data))
    assert worst_verdict(claims) == REFUTED
    assert {claim.name for claim in claims if claim.verdict == REFUTED} >= {"entry 2.state"}


def test_an_entry_that_was_taken_out_is_refuted():
    data = json.loads(ledger())
    del data["entries"][1]
    assert worst_verdict(check_document(json.dumps(data))) == REFUTED


def test_findings_say_that_they_cannot_be_confirmed():
    study = Study("distribution", 1.0, categories=("yes", "no"))
    found = Findings.from_counts(study, study.mechanism.tally_reports([0] * 700 + [1] * 300))
    claims = check_document(to_json_text(found.to_document()))
    assert worst_verdict(claims) == NOT_CONFIRMED, claims
    assert any("findings do not contain" in claim.finding for claim in claims)
