"""Every plan of examples/jobs: what its certificate promises is confirmed, without a release."""

from __future__ import annotations

import runpy
import shutil
import tomllib
from pathlib import Path

import pytest

from tests.verify.altered import MUTATIONS
from tightrope.documents.document import to_json_text
from tightrope.release.build_answers import certificate_of
from tightrope.release.plan_file import load_plan_file
from tightrope.verify.check import check_document
from tightrope.verify.claims import CONFIRMED, NOT_CONFIRMED, REFUTED, worst_verdict

EXAMPLES = Path(__file__).parents[2] / "examples"
JOBS = sorted((EXAMPLES / "jobs").glob("*.toml"))
SMALL = ["filtered", "median_income", "return_to_education"]
"""Jobs on a small table; all of them with TIGHTROPE_MUTATIONS=200."""


@pytest.mark.parametrize(
    "job", [job for job in JOBS if MUTATIONS >= 200 or job.stem in SMALL], ids=lambda job: job.stem
)
def test_the_certificate_of_a_job_is_confirmed(job, tmp_path):
    shutil.copy(job, tmp_path)
    said = tomllib.loads(job.read_text(encoding="utf-8"))
    tables = runpy.run_path(str(EXAMPLES / "make_data.py"))["TABLES"]
    for name in {said["source"]["path"], *(one["path"] for one in said.get("public_table", []))}:
        tables[f"jobs/{Path(name).stem}"]().to_parquet(tmp_path / name, index=False)
    claims = check_document(to_json_text(certificate_of(load_plan_file(tmp_path / job.name).make_plan()._draft)))
    assert worst_verdict(claims) == CONFIRMED, [claim for claim in claims if claim.verdict in (NOT_CONFIRMED, REFUTED)]
