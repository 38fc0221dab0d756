"""Two tables that differ in one person, one plan: all but the noisy numbers must be the same.

Refusals, warnings, what is printed, certificate, report and kept answers, the entries of the ledger and what is left in
the folder for temporary files. ``TIGHTROPE_TWO_PLANS=all`` tries all sources, Spark and PostgreSQL among them.
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.csv
import pyarrow.parquet
import pytest

import tightrope as tr
from tests.postgres_server import server
from tests.tables.every_engine import spark
from tightrope.ledger import Ledger

ALL = os.environ.get("TIGHTROPE_TWO_PLANS") == "all"
LONG = "x" * 9_900
BUDGET = tr.Budget(epsilon=1, delta="1e-9")
SCHEMA = pyarrow.schema(
    [("user", pyarrow.int64()), ("city", pyarrow.string()), ("age", pyarrow.float64()), ("note", pyarrow.string())]
)
Rows = list[tuple[Any, Any, Any, Any]]
CROWD: Rows = [(user, ("Ulm", "Bern")[user % 2], float(20 + user % 50), "usual") for user in range(1, 121)]
PERSONS: dict[str, Rows] = {
    "a usual one": [(500, "Ulm", 30.0, "usual")],
    "many rows": [(500, ("Ulm", "Bern")[row % 2], float(row), "usual") for row in range(400)],
    "an unlisted key": [(500, "Atlantis", 30.0, "usual")] * 3,
    "a key with control letters": [(500, "\x1b[2J\u202e=1+1", 30.0, "usual")],
    "nothing but missing values": [(500, None, None, None)] * 5,
    "no number": [(500, "Ulm", float("nan"), "usual"), (500, "Ulm", float("inf"), "usual")],
    "the largest numbers": [(500, "Ulm", 1.7e308, "usual"), (500, "Ulm", -1.7e308, "usual")],
    "the least numbers": [(500, "Ulm", 5e-324, "usual"), (500, "Ulm", -0.0, "usual")],
    "a long text": [(500, "Ulm", 30.0, LONG)] * 40,
    "a long key": [(500, LONG, 30.0, "usual")] * 3,
    "a longer key": [(500, LONG * 3, 30.0, LONG * 3)] * 3,
    "the largest number of a person": [(2**63 - 1, "Ulm", 30.0, "usual"), (-(2**63), "Bern", 30.0, "usual")][:1],
    "rows of somebody else's": [(500, "Ulm", 30.0, "usual")] * 2 + [(500, "Ulm", 30.0, "other")],
    "a lone quotation mark": [(500, 'U"l,m\n', 30.0, "'")],
}
SOME = ("many rows", "a longer key")


def table(rows: Rows) -> pyarrow.Table:
    return pyarrow.table([list(column) for column in zip(*rows, strict=True)], schema=SCHEMA)


def parquet(rows: Rows, folder: Path) -> dict[str, Any]:
    pyarrow.parquet.write_table(table(rows), folder / "t.parquet")
    return {"source": folder / "t.parquet"}


def csv(rows: Rows, folder: Path) -> dict[str, Any]:
    pyarrow.csv.write_csv(table(rows), folder / "t.csv")
    kinds = {"user": "integer", "city": "text", "age": "number", "note": "text"}
    return {"source": folder / "t.csv", "types": kinds}


def parts(rows: Rows, folder: Path) -> dict[str, Any]:
    for number in range(2):
        (folder / "t" / f"part={number}").mkdir(parents=True)
        pyarrow.parquet.write_table(table(rows[number::2]), folder / "t" / f"part={number}" / "p.parquet")
    return {"source": folder / "t"}


def duckdb(rows: Rows, folder: Path) -> dict[str, Any]:
    import duckdb

    with duckdb.connect(folder / "t.duckdb") as connection:
        connection.register("arrow", table(rows))
        connection.execute("CREATE TABLE t AS SELECT * FROM arrow")
    return {"source": folder / "t.duckdb", "table": "t"}


def postgres(rows: Rows, _: Path) -> dict[str, Any]:
    url = server().database()
    with server().connect(url) as connection:
        connection.execute('CREATE TABLE t ("user" bigint, city text, age double precision, note text)')
        with connection.cursor() as cursor:
            cursor.executemany("INSERT INTO t VALUES (%s, %s, %s, %s)", rows)
    return {"source": url, "table": "public.t"}


def spark_frame(rows: Rows, folder: Path) -> dict[str, Any]:
    parquet(rows, folder)
    return {"source": spark().read.parquet(str(folder / "t.parquet"))}


SOURCES: dict[str, Callable[[Rows, Path], dict[str, Any]]] = {
    "parquet": parquet,
    "csv": csv,
    "arrow": lambda rows, _: {"source": table(rows)},
    "pandas": lambda rows, _: {"source": table(rows).to_pandas(types_mapper=None)},
    "polars": lambda rows, _: {"source": pytest.importorskip("polars").from_arrow(table(rows))},
    "folder": parts,
    "duckdb": duckdb,
    "postgres": postgres,
    "spark": spark_frame,
}
CHEAP = ("parquet", "csv")
NUMBER = re.compile(r"[-+−]?\d[\d,]*(?:\.\d+)?(?:[eE][-+]?\d+)?|[0-9a-f]{16,}")
PLACE = re.compile(r"(?:/[^\s'\"]+)+|[0-9a-f]{32,}|d[0-9a-f]{32}")


def masked(text: str) -> str:
    """Without numbers and places."""
    return NUMBER.sub("#", PLACE.sub("@", text))


def questions() -> list[Any]:
    return [
        tr.count(name="all"),
        tr.count(by="city", keys=["Ulm", "Bern", "Genf"]),
        tr.count(by="city", name="found"),
        tr.mean("age", bounds=(0, 100), by="city", keys=["Ulm", "Bern"]),
        tr.sum("age", bounds=(0, 100)),
        tr.median("age", bounds=(0, 100)),
        tr.count_distinct("note", name="notes"),
    ]


def seen(source: str, rows: Rows, folder: Path, capfd: Any, patch: Any) -> dict[str, object]:
    """All that somebody sees of a release but its numbers, and how long it took."""
    folder.mkdir()
    temporary = Path(tempfile.gettempdir())
    there = {*temporary.rglob("*")}
    place, drawn = SOURCES[source](rows, folder), iter(range(1, 10**9))
    capfd.readouterr()  # what Spark says when it starts
    before = time.perf_counter()
    outcome: dict[str, object] = {}
    with warnings.catch_warnings(record=True) as warned, patch.context() as bits:
        bits.setattr(os, "urandom", lambda size: hashlib.shake_256(b"%d" % next(drawn)).digest(size))
        warnings.simplefilter("always")
        try:
            session = tr.Session.open(
                **place, privacy_unit="user", max_rows=3, budget=BUDGET,
                ledger=folder / "l.ledger", dataset="visits",
            )  # fmt: skip
            plan = session.plan(questions(), key="march")
            answers = plan.release()
            outcome["certificate"] = masked(str(answers.certificate))
            outcome["answers"] = [(one.name, len(one.rows), masked(str(one.rows))) for one in answers]
            outcome["shown"] = masked(str(answers))
        except tr.errors.TightropeError as error:
            outcome["refused"] = (type(error).__name__, masked(str(error)))
    outcome["warned"] = sorted(masked(str(one.message)) for one in warned)
    outcome["printed"] = [masked(text) for text in capfd.readouterr()]
    ledger = Ledger(folder / "l.ledger")
    outcome["entries"] = [(entry.kind, masked(entry.body), masked(entry.state)) for entry in ledger.list_entries()]
    outcome["documents"] = sorted(masked(text) for text in ledger.book.texts_by_hash().values())
    ledger.close()
    outcome["files"] = sorted(path.name for path in folder.iterdir() if not path.name.startswith("t"))
    left = [path for path in set(temporary.rglob("*")) - there if path.is_file() and path.name != "lock"]
    outcome["spilled"] = (len(left), sum(path.stat().st_size for path in left))
    SECONDS.append((source, len(rows) - len(CROWD), time.perf_counter() - before))
    return outcome


SECONDS: list[tuple[str, int, float]] = []


@pytest.mark.usefixtures("planned_once")
@pytest.mark.parametrize("person", PERSONS if ALL else SOME)
@pytest.mark.parametrize("source", SOURCES if ALL else CHEAP)
def test_one_person_more_changes_nothing_but_numbers(source, person, tmp_path_factory, capfd, monkeypatch):
    """With the same bits for the noise: what differs then is the person."""
    spills = tmp_path_factory.getbasetemp() / "spills"
    spills.mkdir(exist_ok=True)
    monkeypatch.setattr(tempfile, "tempdir", str(spills))
    folder, outcomes = tmp_path_factory.mktemp("two"), []
    for name, rows in (("without", CROWD), ("with", CROWD + PERSONS[person])):
        outcomes.append(seen(source, rows, folder / name, capfd, monkeypatch))
    without, with_person = outcomes
    print(SECONDS[-2:])  # shown with -s: time is a channel that stays
    assert {name for name in without if without[name] != with_person.get(name)} == set()
    assert without.keys() == with_person.keys() and (ALL or "refused" not in without)
