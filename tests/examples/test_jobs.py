"""The sixteen jobs of examples/jobs: scripts run, plan files say the same, and intervals hold the truth.

The truth is computed by pandas, of a table in which no aircraft has more rows than may count. Noise is that of the
operating system; a test fails by luck less than once in 1e9 runs.
"""

from __future__ import annotations

import io
import runpy
import shutil
from contextlib import redirect_stdout
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from scipy import stats

import tightrope as tr
from benchmarks.job_tasks import TASKS, Task, true_answers
from benchmarks.job_truths import JOBS as FURTHER_JOBS
from tightrope.noise.allocation import allocate_noise
from tightrope.release.answers import Answer
from tightrope.release.build_answers import AnswerBuilder, certificate_of
from tightrope.release.draft import NoisePlan
from tightrope.release.plan_file import load_plan_file
from tightrope.tables import PublicTableSource, attach_public_tables, open_source

pytestmark = pytest.mark.slow
EXAMPLES = Path(__file__).parents[2] / "examples"
JOBS = sorted(TASKS)
RELEASES = 60
BY_LUCK = 1e-11
"""Of one job; all together stay below 1e-9."""


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tables of the jobs."""
    folder = tmp_path_factory.mktemp("data")
    tables = runpy.run_path(str(EXAMPLES / "make_data.py"))
    for name in tables["TABLES"]:
        if name.removeprefix("jobs/") in ("flights", "airports", "census", "savers"):
            tables["TABLES"][name]().to_parquet(folder / f"{Path(name).name}.parquet", index=False)
    return folder


@pytest.fixture(autouse=True)
def planned_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a script and a plan file plan alike is computed once: it takes a second or two."""
    monkeypatch.setattr("tightrope.release.draft.allocate_noise", lambda units, budget, **k: kept(tuple(units), budget))


kept = cache(allocate_noise)


@pytest.fixture
def folder(data: Path, tmp_path: Path) -> Path:
    """A folder with the jobs' files and tables."""
    for place in [*data.iterdir(), *(EXAMPLES / "jobs").glob("*.py"), *(EXAMPLES / "jobs").glob("*.toml")]:
        (tmp_path / place.name).symlink_to(place) if place.suffix == ".parquet" else shutil.copy(place, tmp_path)
    return tmp_path


def test_there_are_a_script_a_plan_and_a_truth_for_each_job() -> None:
    scripts, plans = (sorted(place.stem for place in (EXAMPLES / "jobs").glob(f"*.{end}")) for end in ("py", "toml"))
    assert scripts == plans == sorted([*TASKS, *FURTHER_JOBS])


@pytest.mark.parametrize("job", JOBS)
def test_the_script_runs_the_plan_file_says_the_same_and_intervals_hold_the_truth(job: str, folder: Path) -> None:
    with redirect_stdout(io.StringIO()) as shown:
        names = runpy.run_path(str(folder / f"{job}.py"))
    assert "Planning spends no budget" in shown.getvalue() and len(names["answers"][0].rows) > 0
    file = load_plan_file(folder / f"{job}.toml")
    plan, draft = file.release_plan(), names["plan"].draft
    assert plan.draft.to_data() == draft.to_data()
    requests = [task.table_request for task in draft.query_groups]
    assert [task.table_request for task in plan.draft.query_groups] == requests
    assert plan.release()[0].name == names["answers"][0].name
    assert file.source_location == folder / f"{TASKS[job].table}.parquet"
    public = (
        [tr.public_table(folder / "airports.parquet", on={"dest": "faa"}, columns=["tzone"])] if draft.public else []
    )
    held, asked = covered(TASKS[job], draft, folder, public)
    assert stats.binom.cdf(held, asked, 0.95) > BY_LUCK, held / asked


def covered(task: Task, draft: NoisePlan, folder: Path, public: list[PublicTableSource]) -> tuple[int, int]:
    """How many intervals hold the truth, and of how many: drawn anew without a charge, for this is a test of noise.

    Groups have noise of their own, so that each holds or not by itself.
    """
    bounded = task.bound_rows(pd.read_parquet(folder / f"{task.table}.parquet"))
    truth = true_answers(task, task.neutral_rows(bounded))
    table = attach_public_tables(open_source(bounded), public)
    exact = [table.collect_totals(asked.table_request) for asked in draft.query_groups]
    draw = AnswerBuilder(draft, certificate_of(draft)).build_answers
    rows = [(row, key_of(answer, row)) for answer in (draw(exact)[0] for _ in range(RELEASES)) for row in answer.rows]
    known = [inside(row, truth[key]) for row, key in rows if key in truth]
    return sum(known), len(known)


def key_of(answer: Answer, row: dict[str, Any]) -> str:
    """The group of a row, as ``tasks`` names it."""
    return " ".join(str(row[name]) for name in answer.question.key_columns)


def inside(row: dict[str, Any], truth: float) -> bool:
    """Whether the interval holds it; an end that is missing has no limit."""
    lower, upper = row["lower"], row["upper"]
    return (lower is None or lower <= truth) and (upper is None or truth <= upper)
