"""The further jobs of examples/jobs: scripts run, plan files say the same, and 95 % intervals hold the exact answers.

The full setting, 200 releases of each: ``python benchmarks/job_truths.py``, or this test with TIGHTROPE_RELEASES=200.
"""

from __future__ import annotations

import io
import os
import runpy
import shutil
from contextlib import redirect_stdout
from functools import cache
from pathlib import Path

import pandas as pd
import pytest
from scipy import stats

from benchmarks.job_truths import EXAMPLES, JOBS, make_table, measure_coverage, write_job
from tightrope.release.plan_file import load_plan_file

pytestmark = [pytest.mark.slow, pytest.mark.statistics]
RELEASES = int(os.environ.get("TIGHTROPE_RELEASES", "5"))
BY_LUCK = 1e-9


@cache
def bounded_table(name: str) -> pd.DataFrame:
    return make_table(JOBS[name], runpy.run_path(str(EXAMPLES / "make_data.py"))["TABLES"])


@pytest.mark.parametrize("name", JOBS)
def test_script_and_plan_agree_and_intervals_contain_the_exact_answers(name: str, tmp_path: Path) -> None:
    bounded = bounded_table(name)
    plan_path = write_job(name, tmp_path, bounded)
    shutil.copy(EXAMPLES / "jobs" / f"{name}.py", tmp_path)
    draft = load_plan_file(plan_path).release_plan().draft
    with redirect_stdout(io.StringIO()) as shown:
        names = runpy.run_path(str(tmp_path / f"{name}.py"))
    assert "Planning spends no budget" in shown.getvalue() and names["answers"][0].rows
    assert [query_group.table_request for query_group in draft.query_groups] == [
        query_group.table_request for query_group in names["plan"].draft.query_groups
    ]
    assert draft.to_data()["answers"] == names["plan"].to_data()["answers"]
    truth = JOBS[name].true_answers(bounded)
    assert set(truth) == {part.name for part in (*names["answers"], *names["answers"].comparisons)}
    result = measure_coverage(name, plan_path, draft, truth, RELEASES)
    print(f"{name}: {result.covered} of {result.intervals}", *result.titles, sep="\n  ")
    assert stats.binom.cdf(result.covered, result.intervals, 0.95) > BY_LUCK, result


@pytest.mark.parametrize("name", ["miles_by_month", "ten_destinations_few_rows", "months_of_a_year"])
def test_a_title_states_how_many_rows_of_a_unit_count(name: str, tmp_path: Path) -> None:
    plan_path = write_job(name, tmp_path, bounded_table(name))
    document = load_plan_file(plan_path).make_plan().document()
    rows = JOBS[name].rows
    assert all(f"(using at most {rows} rows per aircraft" in answer.label for answer in document.answers)


def test_the_wide_file_has_67_columns() -> None:
    assert bounded_table("wide_file").shape[1] == 67
