"""Documents of former versions are read and verified."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tightrope.documents.account import read_account, read_training_account
from tightrope.documents.document import plain_data, to_json_text
from tightrope.documents.release import read_certificate, read_result
from tightrope.documents.study import read_findings, read_study
from tightrope.reporting import html
from tightrope.verify.check import check_document

FORMER = Path(__file__).parent / "former_versions"
READERS: dict[str, Callable[[str], Any]] = {
    "release-certificate-2.json": read_certificate,
    "release-certificate-3.json": read_certificate,
    "release-result-1.json": read_result,
    "account-1.json": read_account,
    "training-account-1.json": read_training_account,
    "findings-1.json": read_findings,
}


def test_every_document_has_a_reader() -> None:
    assert {path.name for path in FORMER.iterdir()} == {*READERS, "study-1.toml"}


@pytest.mark.parametrize("name", sorted(READERS))
def test_a_former_version_is_read_and_verified(name: str) -> None:
    text = (FORMER / name).read_text(encoding="utf-8")
    document = READERS[name](text)
    assert document.version == int(name.rpartition("-")[2].partition(".")[0])
    verdicts = {claim.verdict for claim in check_document(text)}
    assert "confirmed" in verdicts
    assert "refuted" not in verdicts


def test_former_keys_have_their_new_names() -> None:
    result = read_result((FORMER / "release-result-1.json").read_text(encoding="utf-8"))
    assert (result.certificate.neighbors.privacy_unit, result.certificate.neighbors.noun) == ("who", "a ship")
    assert result.certificate.neighbors.max_rows == 1
    assert result.certificate.budget_fraction == 1
    assert [one.kind for one in result.bias] == ["left out", "below", "above", "missing"]
    assert "a ship" in html(result)
    assert html(json.loads((FORMER / "release-result-1.json").read_text(encoding="utf-8"))) == html(result)


@pytest.mark.parametrize("version", [2, 3])
def test_tables_of_former_certificates_are_listed_once(version: int) -> None:
    text = (FORMER / f"release-certificate-{version}.json").read_text(encoding="utf-8")
    certificate, written = read_certificate(text), json.loads(text)
    for mechanism, former in zip(certificate.mechanisms, written["mechanisms"], strict=True):
        assert json.loads(json.dumps(plain_data(certificate.table_of(mechanism)))) == former["table"]
    distinct = {json.dumps(former["table"]) for former in written["mechanisms"]}
    assert len(certificate.tables) == len(distinct)
    rewritten = to_json_text(certificate)
    assert read_certificate(rewritten) == certificate
    assert [claim.verdict for claim in check_document(rewritten)] == [claim.verdict for claim in check_document(text)]


def test_a_former_study_is_read() -> None:
    study = read_study((FORMER / "study-1.toml").read_text(encoding="utf-8"), toml=True)
    assert (study.version, study.bounds) == (1, (0.0, 50.0))
