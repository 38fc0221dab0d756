"""Documents that version 0.1.0 wrote are read and verified."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tightrope.documents.account import read_account, read_training_account
from tightrope.documents.release import read_certificate, read_result
from tightrope.documents.study import read_findings, read_study
from tightrope.reporting import html
from tightrope.verify.check import check_document

FORMER = Path(__file__).parent / "written_by_0_1"
READERS: dict[str, Callable[[str], Any]] = {
    "release-certificate-2.json": read_certificate,
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


def test_a_former_study_is_read() -> None:
    study = read_study((FORMER / "study-1.toml").read_text(encoding="utf-8"), toml=True)
    assert (study.version, study.bounds) == (1, (0.0, 50.0))
