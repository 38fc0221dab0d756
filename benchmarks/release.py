"""Ten million rows of five million persons: what an exact, bounded answer costs beside a plain GROUP BY, and OpenDP.

    PYTHONPATH=src python benchmarks/release.py [--rows 10000000] [--folder DIR] [--repeat 5] [--memory-limit 1GB]
    ... --opendp /path/to/python     # of an environment with opendp[polars]: the same questions, in the same run
    ... --rows 100000000 --repeat 1 --only "release, whole way"   # a table larger than the memory that DuckDB may use

Makes a Parquet file (half as many persons as rows, 3 % of them with more than three rows, 200 keys, 2 % NaN) and
measures, each job in a process of its own and all in one run: a bare GROUP BY key, GROUP BY person alone, and
``Table.collect`` of the row count, the usable count and the centered sum (a count and a mean by key) with three rows a
person, keys discovered and given. Prints medians of wall and CPU seconds, ratios to GROUP BY person, and peak memory.
With ``--opendp``: count by city, mean income by city and median age, with three rows a person, by both; the errors of
means and the median are those from the whole table, errors of counts those from the rows that each used, as declared.
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lines import Line, option, write

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

KEYS = 200
GROUP = 5_000_000
HEAVY = (4, 4, 4, 4, 5, 5, 6, 7)
"""Rows of those who have more than three."""
GOALS_BESIDE = {"CPU s": 5.0}
"""Times less than OpenDP that are wanted; as little otherwise."""
COUNTS = 3
"""The weight of the counts: so that all three errors are smaller than OpenDP's, and not the means' alone by far."""
GOAL_SECONDS, GOAL_RATIO, GOAL_MEBIBYTES = 5.0, 3.0, 2048


def generate(path: Path, rows: int) -> None:
    """In row groups, so that a table of any size can be made; where a person's rows lie is far apart and unsorted."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    draw = np.random.default_rng(20_240_229)
    stride = next(step for step in range(int(rows * 0.618), rows) if math.gcd(step, rows) == 1)
    names = np.array([f"city {number:03d}" for number in range(KEYS)])
    columns = {"user_id": "int64", "city": "string", "income": "float64", "unused": "float64", "age": "int64"}
    schema = pa.schema(list(columns.items()))
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, rows, GROUP):
            many = min(GROUP, rows - start)
            places = np.arange(start, start + many, dtype=np.int64) * stride % rows
            income = draw.lognormal(10, 1, many)
            income[draw.random(many) < 0.02] = np.nan
            city = pa.DictionaryArray.from_arrays(draw.integers(0, KEYS, many).astype(np.int32), names)
            people = persons(places, rows)
            cells = [people, city.cast(pa.string()), income, draw.random(many), people * 7919 % 73 + 18]
            writer.write_table(pa.table(cells, schema=schema))


def persons(places: NDArray[np.int64], rows: int) -> NDArray[np.int64]:
    """The person of each place: 97 of 100 have one, two or three rows, the others four to seven."""
    import numpy as np

    light = int(rows * 0.93) // 6 * 6
    few = places // 6 * 3 + np.array([0, 1, 1, 2, 2, 2])[places % 6]
    beyond = np.maximum(places - light, 0)
    heavy = np.repeat(np.arange(len(HEAVY)), HEAVY)
    many = light // 2 + beyond // len(heavy) * len(HEAVY) + heavy[beyond % len(heavy)]
    return np.where(places < light, few, many)


def by_key(path: Path, _limit: str | None) -> Callable[[], object]:
    return _sql("SELECT city, count(*) FROM read_parquet(?) GROUP BY city", path)


def by_person(path: Path, _limit: str | None) -> Callable[[], object]:
    """The counts of all persons, computed but not fetched: fetching five million rows is not the engine's work."""
    return _sql("SELECT count(*), max(n) FROM (SELECT count(*) n FROM read_parquet(?) GROUP BY user_id)", path)


def _sql(query: str, path: Path) -> Callable[[], object]:
    import duckdb

    connection = duckdb.connect(config={"preserve_insertion_order": False})
    return lambda: connection.execute(query, [str(path)]).fetchall()


def collect(path: Path, limit: str | None, keys: tuple[tuple[object, ...], ...] | None = None) -> Callable[[], object]:
    from tightrope.tables import ContributionBounds, FixedPoint, Measure, Request, open_source

    income = FixedPoint(0, 200_000, Decimal("0.01"), 10_000_000)
    measures = (Measure("rows", None, None), Measure("usable", "income", None), Measure("sum", "income", income))
    request = Request(("city",), keys, ContributionBounds("user_id", 3, 3, 3), measures)
    table = open_source(path)
    if limit is not None:
        from tightrope.tables.backends import duckdb

        duckdb.MEMORY_LIMIT = limit
    return lambda: table.collect_totals(request)


def collect_given(path: Path, limit: str | None) -> Callable[[], object]:
    return collect(path, limit, tuple((f"city {number:03d}",) for number in range(KEYS)))


def release(path: Path, _limit: str | None) -> Callable[[], object]:
    """The whole way: open the table, plan count and mean by key, charge, collect, draw noise, certify."""
    import tightrope as tr

    def whole() -> object:
        session = tr.Session(path, privacy_unit="user_id", max_rows=3, budget=tr.Budget(epsilon=1, delta=1e-8))
        plan = session.plan([tr.count(by="city"), tr.mean("income", bounds=(0, 200_000), by="city")])
        return plan.release()

    return whole


def three_questions(path: Path, _limit: str | None) -> Callable[[], object]:
    """What OpenDP is asked, too: count by city, mean income by city, median age."""
    import tightrope as tr

    def whole() -> object:
        session = tr.Session(path, privacy_unit="user_id", max_rows=3, budget=tr.Budget(epsilon=1, delta=1e-8))
        mean = tr.mean("income", bounds=(0, 200_000), by="city")
        plan = session.plan([tr.count(by="city", weight=COUNTS), mean, tr.median("age", bounds=(0, 100))])
        counts, means, median = plan.release()
        return {
            "count_error": plan.accuracies()[0].errors_at_size(1_000)["expected_absolute_error"],
            "mean": {row["city"]: row["value"] for row in means.rows},
            "median": median.rows[0]["value"],
            "groups": len(counts.rows),
        }

    return whole


JOBS = {
    "GROUP BY key": by_key,
    "GROUP BY person": by_person,
    "collect, discovered keys": collect,
    "collect, given keys": collect_given,
    "release, whole way": release,
    "release, three questions": three_questions,
}


def cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def measure(job: str, path: Path, repeat: int, limit: str | None) -> dict[str, object]:
    """Wall and CPU seconds of each repetition (the first also loads libraries and the file), and peak memory."""
    wall, cpu = [], []
    started, used = time.perf_counter(), cpu_seconds()
    work = JOBS[job](path, limit)
    answers = []
    for _ in range(repeat):
        answers.append(work())
        wall.append(time.perf_counter() - started)
        cpu.append(cpu_seconds() - used)
        started, used = time.perf_counter(), cpu_seconds()
    mebibytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    found = {"wall": wall, "cpu": cpu, "mebibytes": mebibytes}
    return {**found, "answers": answers} if job == "release, three questions" else found


def in_process(job: str, path: Path, options: argparse.Namespace) -> dict[str, Any]:
    command = [sys.executable, __file__, "--job", job, "--file", str(path), "--repeat", str(options.repeat)]
    command += ["--memory-limit", options.memory_limit] if options.memory_limit else []
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def beside(path: Path, options: argparse.Namespace, ours: dict[str, Any]) -> list[Line]:
    """OpenDP's seconds, memory and errors, and how many times ours they are. Raises where it fails."""
    script = str(Path(__file__).parent / "peers/opendp_release.py")
    command = [options.opendp, script, str(path), str(options.repeat)]
    theirs = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[-1])
    truth, out = exact(path), []
    print(f"\n{'three questions':26} {'Tightrope':>10} {'OpenDP':>10} {'ratio':>7}")
    for name, values in {
        "CPU s": [statistics.median(one["cpu"]) for one in (ours, theirs)],
        "wall s": [statistics.median(one["wall"]) for one in (ours, theirs)],
        "peak MiB": [one["mebibytes"] for one in (ours, theirs)],
        "error of a count, as declared": [
            statistics.fmean(a["count_error"] for a in one["answers"]) for one in (ours, theirs)
        ],
        "error of a mean": [mean_error(one["answers"], truth) for one in (ours, theirs)],
        "error of the median": [
            statistics.fmean(abs(a["median"] - truth["median"]) for a in one["answers"]) for one in (ours, theirs)
        ],
    }.items():
        ratio = f"{values[1] / values[0]:.2f}" if values[0] else "–"
        print(f"{name:26} {values[0]:10.4g} {values[1]:10.4g} {ratio:>7}")
        line = Line("release", f"three questions, {options.rows:.0e} rows", name, values[0], "opendp", values[1])
        wanted = GOALS_BESIDE.get(name, 1.0)
        out.append(replace(line, goal=f"{wanted:g} ×", met=line.ratio >= wanted))
    return out


def exact(path: Path) -> dict[str, Any]:
    """Means, clamped, and the median, of the whole table."""
    import pandas as pd

    table = pd.read_parquet(path, columns=["city", "income", "age"])
    clamped = table["income"].clip(0, 200_000).groupby(table["city"]).mean()
    return {"mean": clamped.to_dict(), "median": float(table["age"].quantile(0.5, interpolation="lower"))}


def mean_error(answers: list[dict[str, Any]], truth: dict[str, Any]) -> float:
    """Over all groups and releases."""
    return statistics.fmean(abs(value - truth["mean"][city]) for a in answers for city, value in a["mean"].items())


def report(path: Path, options: argparse.Namespace) -> None:
    found = {job: in_process(job, path, options) for job in JOBS if options.only in (None, job)}
    if options.only:
        print(
            {
                name: [round(value) for value in values]
                for name, values in found[options.only].items()
                if name in ("wall", "cpu")
            }
        )
        print(f"peak {found[options.only]['mebibytes']:.0f} MiB")
        return
    lines, notes = compared(path, options, found["release, three questions"])
    write(options.json, [*lines, *lines_of(found, options.rows)], notes)
    wall = {job: statistics.median(result["wall"]) for job, result in found.items()}
    cpu = {job: statistics.median(result["cpu"]) for job, result in found.items()}
    print(f"{'job':26} {'wall s':>7} {'first':>7} {'CPU s':>7} {'x person':>9} {'CPU x':>7} {'peak MiB':>9}")
    for job, result in found.items():
        ratios = wall[job] / wall["GROUP BY person"], cpu[job] / cpu["GROUP BY person"]
        numbers = f"{wall[job]:7.2f} {result['wall'][0]:7.2f} {cpu[job]:7.2f} {ratios[0]:9.2f} {ratios[1]:7.2f}"
        print(f"{job:26} {numbers} {result['mebibytes']:9.0f}")
    for job in list(JOBS)[2:]:
        ratio = wall[job] / wall["GROUP BY person"]
        met = wall[job] <= GOAL_SECONDS and ratio <= GOAL_RATIO and found[job]["mebibytes"] <= GOAL_MEBIBYTES
        goal = f"<= {GOAL_SECONDS:g} s, <= {GOAL_RATIO:g} x GROUP BY person, <= {GOAL_MEBIBYTES} MiB"
        print(f"{job}: goal {goal}: {'met' if met else 'MISSED'}")


def compared(path: Path, options: argparse.Namespace, ours: dict[str, Any]) -> tuple[list[Line], list[str]]:
    """The lines beside OpenDP, or why there are none."""
    if not options.opendp:
        return [], ["opendp was not asked for"]
    try:
        return beside(path, options, ours), []
    except subprocess.CalledProcessError as error:
        return [], [f"opendp failed: {(error.stderr.strip().splitlines() or ['died'])[-1][:90]}"]


def lines_of(found: dict[str, dict[str, Any]], rows: int) -> list[Line]:
    """Ours beside a bare GROUP BY person, which is no peer, but a floor; seconds have a goal at ten million rows."""
    middle = {kind: {job: statistics.median(said[kind]) for job, said in found.items()} for kind in ("wall", "cpu")}
    out = []
    for job in list(JOBS)[2:5]:
        name, times = f"{job}, {rows:.0e} rows", middle["wall"][job] / middle["wall"]["GROUP BY person"]
        enough, small = middle["wall"][job] <= GOAL_SECONDS, found[job]["mebibytes"] <= GOAL_MEBIBYTES
        wall: dict[str, Any] = {"goal": f"{GOAL_SECONDS:g}", "met": enough} if rows >= 10_000_000 else {}
        out += [
            Line("release", name, "CPU s", middle["cpu"][job]),
            Line("release", name, "wall s", middle["wall"][job], **wall),
            Line(
                "release", name, "wall, times GROUP BY person", times, goal=f"{GOAL_RATIO:g}", met=times <= GOAL_RATIO
            ),
            Line("release", name, "peak MiB", found[job]["mebibytes"], goal=f"{GOAL_MEBIBYTES}", met=small),
        ]
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--folder", type=Path, help="where to keep the file; default: a temporary folder")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--memory-limit", help="DuckDB's memory_limit for collect, for example 1GB")
    parser.add_argument("--opendp", help="a Python that has opendp[polars]: compare with it")
    parser.add_argument("--only", choices=JOBS, help="measure this job alone")
    option(parser)
    parser.add_argument("--job", choices=JOBS, help=argparse.SUPPRESS)
    parser.add_argument("--file", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.folder:
        options.folder.mkdir(parents=True, exist_ok=True)
    if options.job:
        print(json.dumps(measure(options.job, options.file, options.repeat, options.memory_limit)))
        return
    with tempfile.TemporaryDirectory() as temporary:
        path = (options.folder or Path(temporary)) / f"people_{options.rows}.parquet"
        if not path.exists():
            generate(path, options.rows)
        report(path, options)


if __name__ == "__main__":
    main()
