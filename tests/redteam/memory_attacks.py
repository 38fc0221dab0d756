"""Three plans that were to run out of memory where one person is there, tried in a process with little address space.

``python -m tests.redteam.memory_attacks ENGINE KNOWN ATTACK ...`` prints a line an attempt: the attack, whether the
target is there, and what became of it. KNOWN is how many rows the known persons have who fill the memory. The source of
this program decides nothing by itself: the test compares the lines.
"""

from __future__ import annotations

import json
import resource
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow

import tightrope as tr
from tests.tables.every_engine import ENGINES
from tightrope.errors import InputError, TightropeError
from tightrope.tables import Expression

ADDRESS_SPACE = 7 << 30
LETTERS = 9_900
OTHERS = 1_000
"""Persons of one row each who meet no public row."""


def table(rows_of_target: int, known: int) -> pyarrow.Table:
    """Rows of one target, of 20 known persons who meet the public row as the target does, and of all others."""
    many = {"target": rows_of_target, **{f"known{place}": known // 20 for place in range(20)}}
    people = [name for name, rows in many.items() for _ in range(rows)]
    rest = [f"other{place}" for place in range(OTHERS)]
    return pyarrow.table({
        "person": pyarrow.array(people + rest, "string"),
        "v": pyarrow.array([place % 1_000 for place in range(len(people))] + [10**6] * OTHERS, "int64"),
        "k": pyarrow.array([1] * len(people) + [2] * OTHERS, "int64"),
    })  # fmt: skip


def looked_up(columns: int) -> list[Expression]:
    """Expressions that are one looked-up text, each by a condition of its own."""
    return [tr.case(tr.column("v") < 1_000 + place, tr.column("lk"), None) for place in range(columns)]


def in_small_letters(columns: int) -> list[Expression]:
    """Expressions that make a text anew in the rows of the target, from a literal: no table has to hold it."""
    target = tr.column("person") == "target"
    literal = "X" * LETTERS
    return [tr.case(target & (tr.column("v") >= -place), literal, None).lower() for place in range(columns)]


ATTACKS = {
    "180 expressions": (looked_up(180), 40, 0),
    "16 expressions": (looked_up(16), 40, 0),
    "100 literals": (in_small_letters(100), 40, 0),
    "16 literals": (in_small_letters(16), 40, 0),
    "known persons, 180": (looked_up(180), 2, None),
    "known persons, 16": (looked_up(16), 2, None),
}
"""Each: what groups are made of, how many rows the target has, and the known persons' (None: as many as were asked)."""


def outcome(engine: str, folder: Path, by: list[Expression], rows_of_target: int, known: int) -> str:
    """What becomes of a release: planned, read and counted; the noise makes no difference."""
    public = tr.public_table(pyarrow.table({"k": [1], "lk": ["x" * LETTERS]}), on="k")
    source = ENGINES[engine](table(rows_of_target, known), folder)
    session = tr.Session(
        source, privacy_unit="person", max_rows=1, budget=tr.Budget(epsilon=1, delta=1e-6), public_tables=[public]
    )
    try:
        plan = session.plan([tr.count(by={f"b{place}": one for place, one in enumerate(by)})])
    except InputError as error:
        return f"refused when planned: {error}"
    try:
        plan.dry_run()
    except TightropeError as error:
        return f"failed: {error}"
    return "answered"


def attempts(engine: str, known: int, names: list[str]) -> Iterator[tuple[str, bool, str]]:
    """Each attack, without and with the target."""
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            by, rows, filled = ATTACKS[name]
            for there in (False, True):
                own = known if filled is None else filled
                yield name, there, outcome(engine, Path(folder), by, rows * there, own)


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    for attempt in attempts(sys.argv[1], int(sys.argv[2]), sys.argv[3:]):
        print(json.dumps(attempt), flush=True)
