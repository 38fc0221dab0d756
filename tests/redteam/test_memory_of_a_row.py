"""The most memory that a row can take is computed from the plan, and what would take more is refused when planned.

``TIGHTROPE_MEMORY_ROWS=4096`` measures the largest admitted request with that many rows of a target.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import reduce
from operator import or_
from pathlib import Path

import pyarrow
import pytest

import tightrope as tr
from tests.redteam.memory_attacks import in_small_letters
from tightrope.errors import InputError, PlanError
from tightrope.tables import Column, ContributionBounds, DistinctCount, Measure, Request, Schema
from tightrope.tables.memory import MAX_ROW_BYTES, check_row_memory, row_memory_bytes

ROWS = int(os.environ.get("TIGHTROPE_MEMORY_ROWS", "200"))
COLUMNS = {"person": "string", "v": "int64", "text": "string", **{f"c{place}": "string" for place in range(120)}}


def session(**settings: object) -> tr.Session:
    empty = pyarrow.table({name: pyarrow.array([], kind) for name, kind in COLUMNS.items()})
    said = {"privacy_unit": "person", "max_rows": 1, "budget": tr.Budget(epsilon=1, delta=1e-6), **settings}
    return tr.Session(empty, **said)


def admitted(**request: object) -> None:
    """Such a request can be planned."""
    rows = (Measure("rows", None, None),)
    given = {"by": (), "keys": None, "bounds": ContributionBounds("person", 1, 1, 1), "measures": rows, **request}
    schema = Schema(tuple(Column(name, "integer" if kind == "int64" else "text") for name, kind in COLUMNS.items()))
    check_row_memory(Request(**given), schema)


def test_seventeen_columns_to_group_by_are_refused_and_sixteen_are_planned() -> None:
    tr.count(by=[f"c{place}" for place in range(16)])
    admitted(by=tuple(f"c{place}" for place in range(16)))
    with pytest.raises(PlanError, match=r"at most 16 columns .* several questions"):
        tr.count(by=[f"c{place}" for place in range(17)])
    with pytest.raises(PlanError, match="at most 16"):
        tr.count(by={f"b{place}": tr.column("v") + place for place in range(17)})


def test_a_plan_file_with_seventeen_columns_to_group_by_is_refused(tmp_path: Path) -> None:
    pyarrow.parquet.write_table(pyarrow.table({"person": ["a"], "v": [1]}), tmp_path / "t.parquet")
    by = ", ".join(f"'v + {place}'" for place in range(17))
    plan = tmp_path / "plan.toml"
    plan.write_text(
        "[source]\npath = 't.parquet'\n[privacy_unit]\ncolumn = 'person'\nmax_rows = 1\n"
        f"[budget]\nepsilon = 1\ndelta = 1e-6\n[[question]]\nkind = 'count'\nby = [{by}]\n"
    )
    run = subprocess.run(
        [sys.executable, "-m", "tightrope", "plan", str(plan)],
        capture_output=True, text=True, check=False, env={**os.environ, "COLUMNS": "500"},
    )  # fmt: skip
    assert run.returncode != 0
    assert "at most 16 columns or expressions" in run.stdout + run.stderr


def test_texts_that_are_made_anew_in_a_condition_are_refused_when_they_are_many() -> None:
    few, many = (reduce(or_, [made == "x" for made in in_small_letters(number)]) for number in (10, 100))
    admitted(where=few.tree)
    with pytest.raises(InputError, match=f"while it is counted, but the limit is {MAX_ROW_BYTES:,}"):
        session().plan([tr.count(where=many)])


def test_texts_that_are_made_anew_in_a_value_are_refused_when_they_are_many() -> None:
    choices = [part for made in in_small_letters(30) for part in (made == "x", 1)]
    value = tr.case(*choices, 0)
    with pytest.raises(InputError, match="bytes of memory while it is counted"):
        session().plan([tr.mean(value, bounds=(0, 100))])


def test_a_longer_literal_counts_more() -> None:
    text = tr.case(tr.column("v") < 1, "X" * 1_000_000, None).lower()
    with pytest.raises(InputError, match="bytes of memory while it is counted"):
        session().plan([tr.count(where=text == "x")])


def test_many_texts_read_are_refused_and_a_plan_of_usual_size_is_not() -> None:
    missing = [tr.column(f"c{place}").is_missing() for place in range(110)]
    admitted(where=reduce(or_, missing[:80]).tree)
    with pytest.raises(InputError, match="bytes of memory while it is counted"):
        session().plan([tr.count(where=reduce(or_, missing))])
    admitted(measures=tuple(DistinctCount(f"d{place}", f"c{place}", None) for place in range(40)))
    admitted(by=tuple(tr.column(f"c{place}").lower().tree for place in range(10)))


WORST = """
import json, sys
from pathlib import Path
from tempfile import mkdtemp
from tests.redteam.test_memory_of_a_row import largest_admitted, peak, worst_table
from tests.tables.every_engine import ENGINES
import pyarrow
from tightrope.tables import attach_public_tables, public_table
engine, rows = sys.argv[1], int(sys.argv[2])
public = pyarrow.table({"k": [1], "lk": ["x" * 9_900]})
source = attach_public_tables(ENGINES[engine](worst_table(rows), Path(mkdtemp())), public_table(public, on="k"))
request, bound = largest_admitted(source.schema)
source.collect_totals(request)
print(json.dumps([peak(), bound]))
"""


def worst_table(rows: int) -> pyarrow.Table:
    """As many rows of one target who meets the public row."""
    people = pyarrow.array(["target"] * rows + ["other"] * 10)
    return pyarrow.table({"person": people, "v": list(range(rows)) + [10**6] * 10, "k": [1] * rows + [2] * 10})


def largest_admitted(schema: Schema) -> tuple[Request, int]:
    """The largest request of new texts that is admitted, and what a row of it can take."""
    made = [tr.case(tr.column("v") < 10**5 + place, tr.column("lk"), None).lower().tree for place in range(16)]
    rows, bounds = (Measure("rows", None, None),), ContributionBounds("person", 1, 1, 1)
    every = [Request(tuple(made[:many]), None, bounds, rows) for many in range(1, 17)]
    admitted = [request for request in every if row_memory_bytes(request, schema) <= MAX_ROW_BYTES]
    return admitted[-1], row_memory_bytes(admitted[-1], schema)


def peak() -> int:
    """Bytes that the process had at most."""
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024


@pytest.mark.parametrize("engine", ["parquet", "postgres"])  # a JVM keeps its garbage: that tells nothing
def test_the_largest_admitted_request_takes_less_than_is_computed(engine: str) -> None:
    pytest.importorskip({"parquet": "duckdb", "postgres": "psycopg"}[engine])
    found = {}
    for rows in (0, ROWS):
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        run = subprocess.run(
            [sys.executable, "-c", WORST, engine, str(rows)],
            cwd=Path(__file__).parents[2], env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert run.returncode == 0, run.stderr
        found[rows], bound = json.loads(run.stdout.splitlines()[-1])
    assert (found[ROWS] - found[0]) / ROWS <= bound <= MAX_ROW_BYTES
