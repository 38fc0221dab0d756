"""Processes that are killed, that race and that share a ledger: nothing is uncharged, lost, or charged twice."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import postgres_server
from tests.ledger.conftest import TOTAL, claim, identity
from tests.ledger.processes import Struck, ended, started, together
from tightrope.errors import InputError, InsufficientBudgetError, LedgerError
from tightrope.ledger import Account, Ledger
from tightrope.ledger.check import check_ledger
from tightrope.ledger.store import LostError, Store, create_file_store

CHARGES = int(os.environ.get("TIGHTROPE_LEDGER_CHARGES", "400"))
"""How many charges race; 10 000 take a minute or two."""
KILLS = 20


def account(place: str | Path) -> Account:
    return Ledger(place, create=True).declare_dataset(identity(), [TOTAL])


@pytest.fixture(params=["file", "postgres"])
def place(request: Any, tmp_path: Path) -> str | Path:
    """A ledger that exists, in a file or on a server."""
    where = tmp_path / "visits.ledger" if request.param == "file" else postgres_server.server().database()
    account(where).book.close()
    return where


def paid(place: str | Path, key: str, point: int) -> Callable[[int], None]:
    """A child that charges, draws, keeps and only then says its answers; killed on the way."""

    def work(out: int) -> None:
        struck = Struck(point)
        sys.setprofile(struck)
        own = account(place)
        own.charge_release(claim(key, "0.01"))
        answers = own.store_answers(key, f"drawn by {os.getpid()}")
        sys.setprofile(None)
        os.write(out, f"{answers}\n{struck.seen}".encode())

    return work


def test_killed_at_twenty_points_each_release_is_charged_once(place):
    code, said = ended(*started(paid(place, "counted", 0)))
    assert code == 0
    points = sorted(random.Random(os.environ.get("TIGHTROPE_SEED", "7")).sample(range(1, int(said.split()[-1])), KILLS))
    for number, point in enumerate(points):
        key = f"release {number}"
        code, said = ended(*started(paid(place, key, point)))
        assert (code, said) == (-9, ""), point
        code, said = ended(*started(paid(place, key, 0)))
        own = account(place)
        assert (code, said.split("\n")[0]) == (0, own.stored_answers(key))
        assert own.current_state().balance_of("total").spent * 100 == number + 2
        own.book.close()
    report = check_ledger(Ledger(place))
    assert (report.entries, report.problems) == (1 + 2 * (KILLS + 1), ())


def test_what_was_killed_before_it_said_anything_was_charged_or_not_but_never_answered_unpaid(place):
    _, said = ended(*started(paid(place, "counted", 0)))
    last = int(said.split()[-1])
    for number, point in enumerate(range(last // 2, last, last // 12)):
        ended(*started(paid(place, f"release {number}", point)))
    entries = Ledger(place).list_entries()
    charged = {entry.key: entry.number for entry in entries if entry.kind == "charged"}
    answered = {entry.key: entry.number for entry in entries if entry.kind == "answered"}
    assert all(charged[key] < number for key, number in answered.items())
    assert check_ledger(Ledger(place)).problems == ()


def greedy(place: str | Path, name: int, share: str, most: int) -> Callable[[int], None]:
    """A child that charges until it is refused, and says how often it was not."""

    def work(out: int) -> None:
        own, count = account(place), 0
        try:
            for number in range(most):
                own.charge_release(claim(f"{name} {number}", share))
                count += 1
        except InsufficientBudgetError:
            pass
        os.write(out, str(count).encode())

    return work


@pytest.mark.parametrize("processes", [2, 16])
def test_processes_that_race_for_the_last_of_the_budget_never_overspend(place, processes):
    own = account(place)
    own.charge_release(claim("before", "0.5"))
    counts = together([greedy(place, name, "0.1", 9) for name in range(processes)])
    assert sum(map(int, counts)) == 5
    assert own.current_state().balance_of("total").fraction_left == 0
    assert check_ledger(Ledger(place)).problems == ()


def test_of_many_charges_at_once_none_is_lost(place):
    """16 processes spend 1/N N times: exactly all of it."""
    share = f"{1 / CHARGES:.10f}".rstrip("0")
    counts = together([greedy(place, name, share, -(-CHARGES // 16)) for name in range(16)])
    assert sum(map(int, counts)) == CHARGES
    assert account(place).current_state().balance_of("total").spent == 1
    charged = [entry for entry in Ledger(place).list_entries() if entry.kind == "charged"]
    assert len({entry.key for entry in charged}) == len(charged) == CHARGES
    assert check_ledger(Ledger(place)).problems == ()


def test_processes_that_try_one_key_at_once_get_the_same_answers(place):
    said = together([paid(place, "march", 0) for _ in range(6)])
    assert len({words.split("\n")[0] for words in said}) == 1
    assert account(place).current_state().balance_of("total").spent * 100 == 1


def test_processes_that_make_one_ledger_at_once_make_one(tmp_path):
    def work(out: int) -> None:
        os.write(out, account(tmp_path / "new.ledger").book.id.encode())

    assert len(set(together([work] * 8))) == 1
    assert [path.name for path in tmp_path.iterdir() if path.name.endswith(".part")] == []


def test_a_maker_killed_at_any_point_leaves_no_ledger_or_a_whole_one(tmp_path):
    """The last points are those around its two names: each of them is tried."""

    def making(path: Path, point: int) -> tuple[int, str]:
        def work(out: int) -> None:
            struck = Struck(point)
            sys.setprofile(struck)
            create_file_store(path)
            sys.setprofile(None)
            os.write(out, f"{struck.seen}".encode())

        return ended(*started(work))

    last = int(making(tmp_path / "counted.ledger", 0)[1])
    two_names = 0
    for point in (*range(1, last - 10, last // 12), *range(last - 10, last)):
        path = tmp_path / f"{point}.ledger"
        assert making(path, point)[0] == -9
        two_names += path.exists() and path.stat().st_nlink == 2
        own = account(path)
        own.charge_release(claim("march"))
        own.book.close()
        assert check_ledger(Ledger(path)).problems == ()
    assert two_names > 0


def test_a_forked_child_uses_a_connection_of_its_own(place):
    own = account(place)
    own.charge_release(claim("parent", "0.5"))

    def work(_: int) -> None:
        own.charge_release(claim("child", "0.25"))

    together([work])
    own.charge_release(claim("parent again", "0.25"))
    assert own.current_state().balance_of("total").fraction_left == 0


@pytest.fixture
def restartable(tmp_path_factory: Any) -> Iterator[tuple[str, Callable[[], None]]]:
    """A server of its own, and a way to break it off and start it again."""
    binaries = postgres_server._binaries()
    if binaries is None:
        pytest.skip("PostgreSQL is not installed")
    folder = Path(tempfile.mkdtemp(prefix="pg-", dir="/tmp"))
    as_user = postgres_server._owner(folder)

    quiet: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)

    def run(*command: object) -> None:
        subprocess.run([str(word) for word in command], check=True, cwd=folder, **quiet, **as_user)

    data, settings = folder / "data", f"-c listen_addresses='' -c unix_socket_directories={folder}"
    run(binaries / "initdb", "-D", data, "-U", "tester", "-A", "trust", "--locale=C", "-E", "UTF8", "-N")
    control = (binaries / "pg_ctl", "-w", "-D", data, "-o", settings)
    run(*control, "start")
    yield f"postgresql://tester@/postgres?host={folder}", lambda: run(*control, "-m", "immediate", "restart")
    run(*control, "-m", "immediate", "stop")
    shutil.rmtree(folder)


@pytest.mark.slow
def test_a_server_that_restarts_in_the_middle_loses_and_doubles_no_charge(restartable, monkeypatch):
    monkeypatch.setattr("tightrope.ledger.store.MAX_TRIES", 240)  # a busy machine takes long to start a server
    url, restart = restartable
    own, stop, done = account(url), threading.Event(), []

    def charge() -> None:
        while not stop.is_set():
            done.append(own.charge_release(claim(f"release {len(done)}", "0.0001")).key)

    worker = threading.Thread(target=charge)
    worker.start()
    for _ in range(3):
        time.sleep(0.3)
        restart()
    time.sleep(0.3)
    stop.set()
    worker.join(60)
    charged = [entry.key for entry in Ledger(url).list_entries() if entry.kind == "charged"]
    assert charged == done and len(done) > 3
    assert own.current_state().balance_of("total").spent * 10_000 == len(done)
    assert check_ledger(Ledger(url)).problems == ()
    own.book.close()


def test_a_server_that_is_gone_says_that_nobody_knows(place, monkeypatch):
    def lost(_: Store) -> None:
        raise LostError("the connection was lost")

    own = account(place)
    monkeypatch.setattr("tightrope.ledger.store.PAUSE_SECONDS", 0.0)
    monkeypatch.setattr(Store, "writing_transaction", lost)
    with pytest.raises(LedgerError, match=r"not known whether .* same key, which is charged once"):
        own.charge_release(claim("march"))
    with pytest.raises(LedgerError, match="lost"):
        Ledger("postgresql://somebody@/nowhere?host=/tmp/no-such-socket", create=True)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://somebody:hunter2@/nowhere",
        "postgresql+psycopg://somebody:hunter2@/nowhere",
        "postgresql://somebody@/nowhere?password=hunter2",
        "postgresql://somebody:hunter2@[",
        "mysql://somebody:hunter2@/nowhere",
        "somebody:hunter2@mysql://nowhere",
    ],
)
def test_a_url_with_a_password_is_no_place_of_a_ledger(url):
    with pytest.raises(InputError, match="expected ledger to be") as raised:
        Ledger(url, create=True)
    assert "hunter2" not in f"{raised.value} {raised.value.value}"
