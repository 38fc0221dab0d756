"""Ten million rows of five million persons: the cost of an exact, bounded answer, compared with a GROUP BY and OpenDP.

    PYTHONPATH=src python benchmarks/release.py [--rows 10000000] [--folder DIR] [--repeat 5] [--memory-limit 1GB]
    ... --opendp /path/to/python     # of an environment with opendp[polars]: the same questions, in the same run
    ... --rows 100000000 --repeat 1 --only "release, whole way"   # a table larger than the memory that DuckDB may use

Makes a Parquet file (half as many persons as rows, 3 % of them with more than three rows, 200 keys, 2 % NaN) and
measures, each job in its own process: a GROUP BY key, a GROUP BY person, and ``Table.collect_totals`` for the row
count, the usable count and the centered sum (a count and a mean by key) with three rows per person, keys discovered
and given. Prints medians of wall and CPU seconds, ratios to GROUP BY person, and peak memory. With ``--opendp``: count
by city, mean income by city and median age, with three rows per person, by both tools; the errors of means and of the
median are relative to the whole table, errors of counts to the rows that each tool used, as declared.
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lines import Line, add_json_option, exit_status, write_results
from workers import WorkerResult, run_worker

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

KEYS = 200
ROWS_PER_GROUP = 5_000_000
HEAVY = (4, 4, 4, 4, 5, 5, 6, 7)
"""The numbers of rows of persons with more than three."""
PEER_FACTORS = {"CPU s": 5.0}
"""The goals for ratios to OpenDP; 1 for other numbers."""
COUNT_WEIGHT = 3
"""The weight of the counts, such that all three errors are smaller than OpenDP's."""
GOAL_SECONDS, GOAL_RATIO, GOAL_MEBIBYTES = 5.0, 3.0, 2048
Work = Callable[[], object]


def write_people(path: Path, rows: int) -> None:
    """Write the table in row groups, so that it can have any size; the rows of a person are far apart and unsorted."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(20_240_229)
    stride = next(step for step in range(int(rows * 0.618), rows) if math.gcd(step, rows) == 1)
    names = np.array([f"city {number:03d}" for number in range(KEYS)])
    columns = {"user_id": "int64", "city": "string", "income": "float64", "unused": "float64", "age": "int64"}
    schema = pa.schema(list(columns.items()))
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, rows, ROWS_PER_GROUP):
            count = min(ROWS_PER_GROUP, rows - start)
            positions = np.arange(start, start + count, dtype=np.int64) * stride % rows
            income = rng.lognormal(10, 1, count)
            income[rng.random(count) < 0.02] = np.nan
            city = pa.DictionaryArray.from_arrays(rng.integers(0, KEYS, count).astype(np.int32), names)
            people = persons_at(positions, rows)
            cells = [people, city.cast(pa.string()), income, rng.random(count), people * 7919 % 73 + 18]
            writer.write_table(pa.table(cells, schema=schema))


def persons_at(positions: NDArray[np.int64], rows: int) -> NDArray[np.int64]:
    """Return the person at each position: 97 of 100 have one, two or three rows, the others four to seven."""
    import numpy as np

    light = int(rows * 0.93) // 6 * 6
    few = positions // 6 * 3 + np.array([0, 1, 1, 2, 2, 2])[positions % 6]
    beyond = np.maximum(positions - light, 0)
    heavy = np.repeat(np.arange(len(HEAVY)), HEAVY)
    many = light // 2 + beyond // len(heavy) * len(HEAVY) + heavy[beyond % len(heavy)]
    return np.asarray(np.where(positions < light, few, many), np.int64)


# ------------------------------------------------------------------ the jobs


def group_by_key(path: Path, _limit: str | None) -> Work:
    """Count rows by key, in SQL."""
    return sql_query("SELECT city, count(*) FROM read_parquet(?) GROUP BY city", path)


def group_by_person(path: Path, _limit: str | None) -> Work:
    """Count rows by person, in SQL, without fetching the counts: fetching five million rows is not DuckDB's work."""
    return sql_query("SELECT count(*), max(n) FROM (SELECT count(*) n FROM read_parquet(?) GROUP BY user_id)", path)


def sql_query(query: str, path: Path) -> Work:
    """Return a function that runs a query in DuckDB."""
    import duckdb

    connection = duckdb.connect(config={"preserve_insertion_order": False})
    return lambda: connection.execute(query, [str(path)]).fetchall()


def collect_totals(path: Path, limit: str | None, keys: tuple[tuple[object, ...], ...] | None = None) -> Work:
    """Collect exact totals, by keys that are discovered unless they are given."""
    from tightrope.tables import ContributionBounds, FixedPoint, Measure, Request, open_source

    income = FixedPoint(0, 200_000, Decimal("0.01"), 10_000_000)
    measures = (Measure("rows", None, None), Measure("usable", "income", None), Measure("sum", "income", income))
    request = Request(("city",), keys, ContributionBounds("user_id", 3, 3, 3), measures)
    table = open_source(path)
    if limit is not None:
        from tightrope.tables.backends import duckdb

        duckdb.MEMORY_LIMIT = limit
    return lambda: table.collect_totals(request)


def collect_given_keys(path: Path, limit: str | None) -> Work:
    """Collect exact totals by given keys."""
    return collect_totals(path, limit, tuple((f"city {number:03d}",) for number in range(KEYS)))


def release_table(path: Path, _limit: str | None) -> Work:
    """Open the table, plan count and mean by key, charge, collect, draw noise, certify."""
    import tightrope as tr

    def release() -> object:
        session = tr.Session(path, privacy_unit="user_id", max_rows=3, budget=tr.Budget(epsilon=1, delta=1e-8))
        plan = session.plan([tr.count(by="city"), tr.mean("income", bounds=(0, 200_000), by="city")])
        return plan.release()

    return release


def release_three_questions(path: Path, _limit: str | None) -> Work:
    """Answer the same questions as OpenDP: count by city, mean income by city, median age."""
    import tightrope as tr

    def release() -> object:
        session = tr.Session(path, privacy_unit="user_id", max_rows=3, budget=tr.Budget(epsilon=1, delta=1e-8))
        mean = tr.mean("income", bounds=(0, 200_000), by="city")
        plan = session.plan([tr.count(by="city", weight=COUNT_WEIGHT), mean, tr.median("age", bounds=(0, 100))])
        counts, means, median = plan.release()
        return {
            "count_error": plan.accuracies()[0].errors_at_size(1_000)["expected_absolute_error"],
            "mean": {row["city"]: row["value"] for row in means.rows},
            "median": median.rows[0]["value"],
            "groups": len(counts.rows),
        }

    return release


THREE_QUESTIONS = "release, three questions"
JOBS: dict[str, Callable[[Path, str | None], Work]] = {
    "GROUP BY key": group_by_key,
    "GROUP BY person": group_by_person,
    "collect, discovered keys": collect_totals,
    "collect, given keys": collect_given_keys,
    "release, whole way": release_table,
    THREE_QUESTIONS: release_three_questions,
}
OWN_JOBS = [name for name in JOBS if not name.startswith("GROUP BY")]


# ------------------------------------------------------------------ one process for each job


def cpu_seconds() -> float:
    """Return the CPU seconds of this process."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def measure_job(job: str, path: Path, repeat: int, limit: str | None) -> dict[str, object]:
    """Return wall and CPU seconds of each repetition (the first also loads libraries and the file), and peak memory."""
    wall, cpu, answers = [], [], []
    start, used = time.perf_counter(), cpu_seconds()
    work = JOBS[job](path, limit)
    for _ in range(repeat):
        answers.append(work())
        wall.append(time.perf_counter() - start)
        cpu.append(cpu_seconds() - used)
        start, used = time.perf_counter(), cpu_seconds()
    mebibytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    numbers = {"wall": wall, "cpu": cpu, "mebibytes": mebibytes}
    return {**numbers, "answers": answers} if job == THREE_QUESTIONS else numbers


def run_job(job: str, path: Path, options: argparse.Namespace) -> WorkerResult:
    """Run a job in its own process."""
    command = [sys.executable, __file__, "--job", job, "--file", str(path), "--repeat", str(options.repeat)]
    return run_worker([*command, *(["--memory-limit", options.memory_limit] if options.memory_limit else [])])


def median_of(result: WorkerResult, name: str) -> float:
    """Return the median of "wall" or "cpu", or NaN if the job failed."""
    return math.nan if result.failure else statistics.median(result.values[name])


# ------------------------------------------------------------------ the report


def opendp_lines(path: Path, options: argparse.Namespace, own: WorkerResult) -> tuple[list[Line], list[str]]:
    """Run OpenDP on the three questions; return the lines, or why there are none."""
    if not options.opendp:
        return [], ["run without opendp (--opendp)"]
    script = str(Path(__file__).parent / "peers/opendp_release.py")
    peer = run_worker([options.opendp, script, str(path), str(options.repeat)])
    if peer.failure or own.failure:
        return [], [f"opendp failed: {peer.failure}"] if peer.failure else []
    truth, lines = true_answers(path), []
    print(f"\n{'three questions':26} {'Tightrope':>10} {'OpenDP':>10} {'ratio':>7}")
    own_numbers, peer_numbers = question_numbers(own, truth), question_numbers(peer, truth)
    for name, value in own_numbers.items():
        goal = PEER_FACTORS.get(name, 1.0)
        line = Line("release", f"three questions, {options.rows:.0e} rows", name, value)
        line = line.with_peer("opendp", peer_numbers[name])
        lines.append(line.with_goal(f"{goal:g} ×", met=line.ratio >= goal))
        print(f"{name:26} {value:10.4g} {peer_numbers[name]:10.4g} {line.ratio:7.2f}")
    return lines, []


def question_numbers(result: WorkerResult, truth: Mapping[str, Any]) -> dict[str, float]:
    """Return times, memory and errors of a tool on the three questions."""
    answers = result.values["answers"]
    mean_errors = [abs(value - truth["mean"][city]) for answer in answers for city, value in answer["mean"].items()]
    return {
        "CPU s": median_of(result, "cpu"),
        "wall s": median_of(result, "wall"),
        "peak MiB": result.number("mebibytes"),
        "error of a count, as declared": statistics.fmean(answer["count_error"] for answer in answers),
        "error of a mean": statistics.fmean(mean_errors),
        "error of the median": statistics.fmean(abs(answer["median"] - truth["median"]) for answer in answers),
    }


def true_answers(path: Path) -> dict[str, Any]:
    """Return clamped means by city, and the median age, of the whole table."""
    import pandas as pd

    table = pd.read_parquet(path, columns=["city", "income", "age"])
    clamped = table["income"].clip(0, 200_000).groupby(table["city"]).mean()
    return {"mean": clamped.to_dict(), "median": float(table["age"].quantile(0.5, interpolation="lower"))}


def print_job(name: str, result: WorkerResult, floor: WorkerResult) -> None:
    """Print the row of a job; ``floor`` is the GROUP BY person."""
    if result.failure:
        print(f"{name:26} {result.failure}")
        return
    wall, cpu = median_of(result, "wall"), median_of(result, "cpu")
    ratios = wall / median_of(floor, "wall"), cpu / median_of(floor, "cpu")
    numbers = f"{wall:7.2f} {result.values['wall'][0]:7.2f} {cpu:7.2f} {ratios[0]:9.2f} {ratios[1]:7.2f}"
    print(f"{name:26} {numbers} {result.number('mebibytes'):9.0f}")


def job_lines(name: str, result: WorkerResult, floor: WorkerResult, rows: int) -> list[Line]:
    """Return the lines of a job; GROUP BY person is a lower limit, not a peer. Wall time has a goal from 10⁷ rows."""
    job, wall, memory = f"{name}, {rows:.0e} rows", median_of(result, "wall"), result.number("mebibytes")
    ratio = wall / median_of(floor, "wall")
    wall_line = Line("release", job, "wall s", wall)
    ratio_line = Line("release", job, "wall, times GROUP BY person", ratio, note=floor.failure)
    return [
        Line("release", job, "CPU s", median_of(result, "cpu"), note=result.failure),
        wall_line.with_goal(f"{GOAL_SECONDS:g}" if rows >= 10_000_000 else "", met=wall <= GOAL_SECONDS),
        ratio_line.with_goal(f"{GOAL_RATIO:g}", met=ratio <= GOAL_RATIO),
        Line("release", job, "peak MiB", memory).with_goal(f"{GOAL_MEBIBYTES}", met=memory <= GOAL_MEBIBYTES),
    ]


def report_one(job: str, path: Path, options: argparse.Namespace) -> int:
    """Run and print one job alone; return the exit code."""
    result = run_job(job, path, options)
    if result.failure:
        print(f"{job}: {result.failure}", file=sys.stderr)
        return 1
    print({name: [round(value) for value in result.values[name]] for name in ("wall", "cpu")})
    print(f"peak {result.number('mebibytes'):.0f} MiB")
    return 0


def report(path: Path, options: argparse.Namespace) -> int:
    """Run all jobs and print the results; return the exit code."""
    results = {job: run_job(job, path, options) for job in JOBS}
    floor = results["GROUP BY person"]
    peer_lines, notes = opendp_lines(path, options, results[THREE_QUESTIONS])
    print(f"{'job':26} {'wall s':>7} {'first':>7} {'CPU s':>7} {'x person':>9} {'CPU x':>7} {'peak MiB':>9}")
    for job, result in results.items():
        print_job(job, result, floor)
    own_lines = [line for job in OWN_JOBS for line in job_lines(job, results[job], floor, options.rows)]
    for line in own_lines:
        if line.goal_met is False:
            print(f"goal missed: {line.job}: {line.measured} {line.ours:.3g}, goal {line.goal}")
    lines = [*peer_lines, *own_lines]
    write_results(options.json, lines, notes)
    return exit_status(lines)


def main() -> int:
    """Run as a script or as a worker."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--folder", type=Path, help="where to keep the file; by default a temporary folder")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--memory-limit", help="DuckDB's memory_limit for collecting totals, for example 1GB")
    parser.add_argument("--opendp", help="the interpreter of an environment with opendp[polars]: compare with it")
    parser.add_argument("--only", choices=JOBS, help="measure only this job, without writing lines")
    add_json_option(parser)
    parser.add_argument("--job", choices=JOBS, help=argparse.SUPPRESS)
    parser.add_argument("--file", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.folder:
        options.folder.mkdir(parents=True, exist_ok=True)
    if options.job:
        print(json.dumps(measure_job(options.job, options.file, options.repeat, options.memory_limit)))
        return 0
    with tempfile.TemporaryDirectory() as temporary:
        path = (options.folder or Path(temporary)) / f"people_{options.rows}.parquet"
        if not path.exists():
            write_people(path, options.rows)
        return report_one(options.only, path, options) if options.only else report(path, options)


if __name__ == "__main__":
    sys.exit(main())
