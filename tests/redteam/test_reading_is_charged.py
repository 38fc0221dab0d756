"""Readings that fail on real engines, after the charge: each is paid, durably and once; what fails before is free."""

from __future__ import annotations

import numbers
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import tightrope as tr
from tests.ledger.conftest import claim, identity
from tests.ledger.processes import ended, started, together
from tests.postgres_server import server
from tests.redteam.test_dry_run_checks import damaged
from tests.tables.every_engine import spark
from tightrope.errors import EngineError, InputError, InsufficientBudgetError, TightropeError
from tightrope.ledger import Ledger, Limit
from tightrope.ledger.check import check_ledger
from tightrope.ledger.overview import ledger_overview

pytestmark = pytest.mark.usefixtures("planned_once")

BUDGET = tr.Budget(epsilon=1, delta="1e-6")
PAID = "charged before it reads, because whether reading fails can depend on the rows"


@pytest.fixture(params=["memory", "ledger"])
def session(request: Any, tmp_path: Path) -> Callable[..., tr.Session]:
    """Opens a session on a source, charged in memory or in the ledger of the test's folder."""

    def opened(source: object, **more: Any) -> tr.Session:
        said = {"privacy_unit": "person", "max_rows": 2, "budget": BUDGET, **more}
        if request.param == "memory":
            return tr.Session(source, **said)
        return tr.Session.open(source, ledger=tmp_path / "people.ledger", dataset="people", **said)

    return opened


def paid_and_closed(plan: tr.Plan, opened: tr.Session, place: Path) -> None:
    """The plan cannot read again, and the ledger, opened anew, says that it was charged and that reading failed."""
    assert (plan.charged, opened.spent["budget_fraction"]) == (True, "0.5")
    with pytest.raises(InsufficientBudgetError):
        plan.release()
    if not place.exists():
        return
    ledger = Ledger(place)
    assert check_ledger(ledger).problems == ()
    view = ledger_overview(ledger.open_account("people"))
    assert (view["releases"], view["answered"], view["failed"]) == (1, 0, 1)
    assert opened.resumed(opened.plan([tr.count()], budget_fraction="0.5")).charged is False


def failing(plan: tr.Plan, opened: tr.Session, place: Path) -> None:
    with pytest.raises(EngineError, match=PAID):
        plan.release()
    paid_and_closed(plan, opened, place)


def test_a_file_whose_later_rows_are_damaged(session, tmp_path):
    path = tmp_path / "table.parquet"
    damaged(path)
    opened = session(path, privacy_unit="id")
    failing(opened.plan([tr.sum("x", bounds=(0, 1))], budget_fraction="0.5"), opened, tmp_path / "people.ledger")


@pytest.mark.parametrize("suggest", ["suggest_bounds", "suggest_max_rows"])
def test_what_is_suggested_is_charged_before_it_reads_too(session, tmp_path, suggest):
    path = tmp_path / "table.parquet"
    damaged(path)
    opened = session(path, privacy_unit="id")
    with pytest.raises(EngineError, match=PAID):
        getattr(opened, suggest)(*(["x"] if suggest == "suggest_bounds" else []), budget_fraction="0.5")
    assert opened.spent["budget_fraction"] == "0.5"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is limited by Linux")
def test_memory_that_ends_while_rows_are_read(tmp_path):
    """By an exception, or by a library that ends the process: it is paid either way."""
    code = f"""
    import resource
    import pyarrow as pa
    import tightrope as tr
    texts = pa.array([f"{{number:09d}}" * 1000 for number in range(60_000)])
    table = pa.table({{"person": pa.array(range(len(texts))), "k": texts}})
    session = tr.Session.open(table, privacy_unit="person", max_rows=1, budget=tr.Budget(epsilon=1, delta="1e-6"),
                              ledger={str(tmp_path / "people.ledger")!r}, dataset="people")
    plan = session.plan([tr.count_distinct("k")], budget_fraction="0.5", key="march")
    plan.dry_run()
    used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + 2**27, used + 2**27))
    try:
        plan.release()
    except BaseException as error:
        resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, ) * 2)
        spent = session.spent["budget_fraction"]
        print(plan.charged, spent, {PAID!r} in f"{{error}} {{getattr(error, '__notes__', '')}}")
    """
    command = [sys.executable, "-W", "ignore", "-c", textwrap.dedent(code)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    view = ledger_overview(Ledger(tmp_path / "people.ledger").open_account("people"))
    if done.returncode == 0:
        assert done.stdout == "True 0.5 True\n", done.stderr
    assert (view["releases"], view["answered"]) == (1, 0)


@pytest.fixture
def clinic() -> str:
    """A database with a table, and a view of it whose rows take their time."""
    url = server().database()
    server().run(
        url,
        "CREATE TABLE people (person int, k text)",
        "INSERT INTO people SELECT number / 2, 'a' FROM generate_series(1, 4000) AS number",
        "CREATE VIEW slow AS SELECT person, k || pg_sleep(0.01)::text AS k FROM people",
    )
    return url


def test_a_server_that_ends_the_connection_while_rows_are_read(session, tmp_path, clinic):
    opened = session(clinic, table="slow")
    plan = opened.plan([tr.count(by="k", keys=["a"])], budget_fraction="0.5")
    ended_readers = []

    def end_the_reader() -> None:
        query = (
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
            "WHERE datname = current_database() AND query LIKE 'COPY%' AND state = 'active'"
        )
        with server().connect(clinic) as connection:
            while not ended_readers:
                if connection.execute(query).fetchone()[0]:
                    ended_readers.append(plan.charged)
                time.sleep(0.02)

    thread = threading.Thread(target=end_the_reader)
    thread.start()
    try:
        failing(plan, opened, tmp_path / "people.ledger")
    finally:
        ended_readers.append(True)
        thread.join()
    assert ended_readers[0] is True


@pytest.mark.parametrize(
    ("change", "error", "said"),
    [
        ("DROP VIEW slow; DROP TABLE people", TightropeError, "nothing was spent"),
        ("DROP VIEW slow; ALTER TABLE people ALTER k TYPE date USING NULL", InputError, "changed since it was opened"),
        ("DROP VIEW slow; ALTER TABLE people DROP COLUMN k", TightropeError, "nothing was spent"),
        ("ALTER DATABASE {} ALLOW_CONNECTIONS false", EngineError, "connect to PostgreSQL"),
    ],
)
def test_a_database_that_is_gone_or_changed_costs_nothing(session, clinic, change, error, said):
    opened = session(clinic, table="people")
    plan = opened.plan([tr.count(by="k", keys=["a"])], budget_fraction="0.5")
    name = clinic.partition("@/")[2].partition("?")[0]
    place = server().url() if "DATABASE" in change else clinic
    server().run(place, *change.format(name).split("; "))
    for _ in range(2):
        with pytest.raises(error, match=said) as failure:
            plan.release()
        assert "nothing was spent" in str(failure.value)
    assert (plan.charged, opened.spent["budget_fraction"]) == (False, "0")


@pytest.mark.slow
def test_a_spark_job_that_is_canceled_while_rows_are_read(session, tmp_path):
    sleep = "java_method('java.lang.Thread', 'sleep', bigint(20))"
    frame = spark().range(2000).selectExpr("id as person", f"concat('a', {sleep}) as k")
    opened = session(frame)
    plan = opened.plan([tr.count(by="k", keys=["a"])], budget_fraction="0.5")
    over = threading.Event()

    def cancel() -> None:
        while not over.wait(0.1):
            if plan.charged:
                spark().sparkContext.cancelAllJobs()

    thread = threading.Thread(target=cancel)
    thread.start()
    try:
        failing(plan, opened, tmp_path / "people.ledger")
    finally:
        over.set()
        thread.join()


class Falling:
    """A number at which something happens to whoever reads it."""

    def __init__(self, happens: Callable[[], None]) -> None:
        self._happens = happens

    def __float__(self) -> float:
        self._happens()
        return 0.5


numbers.Real.register(Falling)


def table(happens: Callable[[], None]) -> pd.DataFrame:
    """Two rows; where the second is read, this happens."""
    return pd.DataFrame({"person": [1, 2], "x": pd.Series([0.5, Falling(happens)], dtype="object")})


def interrupt() -> None:
    signal.raise_signal(signal.SIGINT)


def test_an_interrupt_while_rows_are_read(session, tmp_path):
    opened = session(table(interrupt), types={"x": "number"})
    plan = opened.plan([tr.mean("x", bounds=(0, 1))], budget_fraction="0.5")
    with pytest.raises(KeyboardInterrupt, match=r"the budget was spent, and nothing was published"):
        plan.release()
    assert (plan.charged, opened.spent["budget_fraction"]) == (True, "0.5")
    place = tmp_path / "people.ledger"
    if place.exists():
        again = session(table(lambda: None), types={"x": "number"})
        assert again.resumed(again.plan([tr.mean("x", bounds=(0, 1))], budget_fraction="0.5")).release()
        assert [entry.kind for entry in Ledger(place).list_entries()] == ["dataset", "charged", "retried", "answered"]
        assert again.spent["budget_fraction"] == "0.5"


def killed(place: Path, trace: Path, share: str = "0.5") -> Callable[[int], None]:
    """A process that is killed where it reads the second row, and leaves a trace before."""

    def kill() -> None:
        with trace.open("a") as file:
            file.write("read\n")
        os.kill(os.getpid(), signal.SIGKILL)

    def work(out: int) -> None:
        said = {"privacy_unit": "person", "max_rows": 1, "budget": BUDGET, "types": {"x": "number"}}
        opened = tr.Session.open(table(kill), ledger=place, dataset="people", **said)
        try:
            opened.plan([tr.count(where="x > 0")], budget_fraction=share, key="march").release()
        except InsufficientBudgetError as refusal:
            os.write(out, str(refusal).encode())

    return work


def test_readings_that_are_killed_are_two_for_a_charge(tmp_path, monkeypatch):
    """No charge is lost, and none is needed for the second try; a third one reads nothing."""
    monkeypatch.setattr("tightrope.release.execution.POLL_SECONDS", 0.0)
    place, trace = tmp_path / "people.ledger", tmp_path / "trace"
    for _ in range(2):
        assert ended(*started(killed(place, trace))) == (-9, "")
    code, said = ended(*started(killed(place, trace)))
    assert code == 0 and "both readings of the table that a charge includes" in said
    assert trace.read_text() == "read\nread\n"
    ledger = Ledger(place)
    assert [entry.kind for entry in ledger.list_entries()] == ["dataset", "charged", "retried"]
    assert check_ledger(ledger).problems == ()
    account = ledger.open_account("people")
    assert str(account.current_state().balance_of("total").fraction_left) == "1/2" and not account.may_read("march")


@pytest.mark.parametrize("kind", ["file", "postgres"])
def test_of_processes_that_begin_under_one_key_at_once_two_may_read(tmp_path, kind):
    """Each would see whether it fails, on a machine of its own: a charge pays for two looks, not for sixteen."""
    place = tmp_path / "people.ledger" if kind == "file" else server().database()
    Ledger(place, create=True).declare_dataset(identity(), [Limit("total", BUDGET)]).book.close()

    def begin(out: int) -> None:
        account = Ledger(place).open_account("visits")
        os.write(out, str(account.begin_reading(claim("march", "0.5"))[1]).encode())

    assert sorted(together([begin] * 16)) == ["False"] * 14 + ["True"] * 2
    account = Ledger(place).open_account("visits")
    assert str(account.current_state().balance_of("total").fraction_left) == "1/2"
    assert account.store_answers("march", "[]") == "[]"
    assert account.begin_reading(claim("march", "0.5"))[1] is False
