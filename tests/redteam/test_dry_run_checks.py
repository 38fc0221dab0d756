"""What can fail whatever the rows are fails before the charge; a reading that fails comes after it, and is paid."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tightrope as tr
from tightrope.errors import EngineError, InputError, InsufficientBudgetError, PlanError, TightropeError

TABLE = pd.DataFrame({"id": ["a", "b"], "x": [1.0, 2.0], "k": ["u", "v"]})
BUDGET = tr.Budget(epsilon=1, delta=1e-8)


def opened() -> tr.Session:
    return tr.Session(TABLE, privacy_unit="id", budget=BUDGET, max_rows=2)


@pytest.mark.parametrize("step", ["persons_over_bound", "select_dropped_rows"])
def test_an_engine_that_fails_while_it_counts_is_charged(monkeypatch, step):
    """Whether it fails can depend on one person's rows: free, it would be an answer that can be asked without end."""

    def fail(*_: object) -> None:
        raise EngineError("the engine failed to add up the groups")

    session = opened()
    plan = session.plan([tr.count(), tr.sum("x", bounds=(0, 1), by="k")])
    with monkeypatch.context() as patch:
        patch.setattr(f"tightrope.tables.bounding.{step}", fail)
        with pytest.raises(EngineError, match=r"a fraction of 1 of the budget was spent.*charged before it reads"):
            plan.release()
    assert (plan.charged, session.spent["budget_fraction"]) == (True, "1")
    with pytest.raises(InsufficientBudgetError):
        plan.release()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="a full disk is made by a limit of Linux")
def test_a_disk_that_is_full_while_rows_are_bounded_is_charged():
    """One person with very many rows is enough to fill it."""
    code = """
    import resource, signal
    import numpy as np, pyarrow as pa
    import tightrope as tr
    from tightrope.tables.backends import duckdb
    duckdb.MEMORY_LIMIT, many = "100MB", 1_000_000
    table = pa.table({"id": pa.array(["p"] * many), "k": np.arange(many), "x": np.random.rand(many)})
    session = tr.Session(table, privacy_unit="id", budget=tr.Budget(epsilon=1, delta=1e-8), max_rows=2)
    plan = session.plan([tr.sum("x", bounds=(0, 1), by="k")])
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2**20, 2**20))
    try:
        plan.release()
    except tr.errors.EngineError as error:
        print(plan.charged, session.spent["budget_fraction"], "charged before it reads" in str(error))
    """
    command = [sys.executable, "-c", textwrap.dedent(code)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.stdout == "True 1 True\n", done.stderr


def test_no_row_is_read_before_the_charge(monkeypatch):
    plan = opened().plan([tr.count(), tr.mean("x", bounds=(0, 1), by="k")])
    charged_at = []
    collect = tr.tables.Snapshot.collect_totals

    def watched(self: tr.tables.Snapshot, request: object) -> object:
        charged_at.append(plan.charged)
        return collect(self, request)

    monkeypatch.setattr("tightrope.tables.Snapshot.collect_totals", watched)
    plan.release()
    assert charged_at == [True, True]
    assert plan.charged


def test_what_no_document_can_hold_costs_nothing(monkeypatch):
    """Found with a range of 1e307, whose half-width was infinite: the answers were paid, and could not be written."""
    session = opened()
    plan = session.plan([tr.count(by="k")])
    with monkeypatch.context() as patch:
        patch.setattr("tightrope.queries.statistics.Noise.half_width", lambda *_: float("inf"))
        with pytest.raises(InputError, match=r"half_width_95.*nothing was spent"):
            plan.release()
    assert session.spent["budget_fraction"] == "0"


@pytest.mark.parametrize(
    "question",
    [
        tr.count(),
        tr.count(by="k"),
        tr.count_distinct(),
        tr.mean("x", bounds=(0, 1), by="k"),
        tr.median("x", bounds=(0, 1)),
        *tr.quantiles("x", [0.1, 1 / 3], bounds=(0, 1)),
        tr.histogram("x", bounds=(0, 1), width=0.5),
        tr.proportion("x > 0.5"),
        tr.standard_deviation("x", bounds=(0, 1)),
    ],
    ids=str,
)
def test_an_answer_that_cannot_be_computed_costs_nothing(monkeypatch, question):
    """Once a fault in a record was found by a release that had been paid for: all of it runs on nothing before."""

    def fail(*_: object) -> None:
        raise ZeroDivisionError

    session = opened()
    plan = session.plan([question])
    with monkeypatch.context() as patch:
        patch.setattr(type(question), "estimate", fail)
        with pytest.raises(ZeroDivisionError):
            plan.release()
    assert (plan.charged, session.spent["budget_fraction"]) == (False, "0")


@pytest.mark.parametrize("bounds", [(1e307, 1.1e307), (-1e300, 1e300), (0, 1.7e308)])
def test_a_range_whose_sums_no_double_holds_is_refused(bounds):
    for question in (tr.sum, tr.mean):
        with pytest.raises(PlanError, match=r"within 1e\+290 of zero"):
            opened().plan([question("x", bounds=bounds)])


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", ["0.01", 1, 20])
def test_at_the_ends_of_what_is_allowed_everything_can_be_written(epsilon):
    session = tr.Session(TABLE, privacy_unit="id", budget=tr.Budget(epsilon=epsilon, delta=1e-12), max_rows=2)
    for bounds in ((-1e290, 1e290), (9.9e289, 1e290), (0, 1e-249)):
        questions = [tr.count(by="k"), tr.sum("x", bounds=bounds), tr.mean("x", bounds=bounds, by="k")]
        try:
            plan = session.plan(questions, budget_fraction="0.3")
        except TightropeError:  # too narrow a range for its size: refused in words
            continue
        assert plan.release().to_json() and plan.document()


def parts(path, *, groups: int = 8) -> None:
    """A Parquet file of several row groups, plain."""
    table = pa.table({"id": pa.array([f"p{i}" for i in range(800)]), "x": np.linspace(0, 1, 800)})
    pq.write_table(table, path, row_group_size=800 // groups, compression="snappy", use_dictionary=False)


def test_a_file_that_is_gone_or_changed_costs_nothing(tmp_path):
    path = tmp_path / "table.parquet"
    parts(path)
    session = tr.Session(path, privacy_unit="id", budget=BUDGET, max_rows=1)
    plan = session.plan([tr.sum("x", bounds=(0, 1))])
    path.unlink()
    with pytest.raises(InputError, match=r"changed since.*nothing was spent"):
        plan.release()
    parts(path, groups=2)
    with pytest.raises(InputError, match=r"changed since.*nothing was spent"):
        plan.release()
    assert (plan.charged, session.spent["budget_fraction"]) == (False, "0")


def damaged(path) -> None:
    """Pages in the middle are damaged: the schema and the ends are whole, and reading finds it out."""
    parts(path)
    raw = bytearray(path.read_bytes())
    middle = len(raw) // 2
    raw[middle : middle + 3000] = b"\xff" * 3000
    path.write_bytes(raw)


def test_rows_that_cannot_be_read_are_charged(tmp_path):
    path = tmp_path / "table.parquet"
    damaged(path)
    session = tr.Session(path, privacy_unit="id", budget=BUDGET, max_rows=1)
    plan = session.plan([tr.sum("x", bounds=(0, 1))])
    with pytest.raises(TightropeError, match="was spent, and nothing was published: a release is charged before it"):
        plan.release()
    assert (plan.charged, session.spent["budget_fraction"]) == (True, "1")


def test_a_dry_run_reads_no_row(monkeypatch):
    def read(*_: object) -> None:
        raise AssertionError("a row was read")

    plan = opened().plan([tr.count(by="k")])
    monkeypatch.setattr("tightrope.tables.Snapshot.collect_totals", read)
    plan.dry_run()
    assert not plan.charged
