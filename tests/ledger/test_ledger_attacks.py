"""Attacks at random: kills at any instant, disks that fill up, backends that end, restored files in any mixture.

``TIGHTROPE_LEDGER_ATTACKS`` says how many of each; 20 in CI, 500 where everything is tried.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from fractions import Fraction
from pathlib import Path

import pytest

from tests import postgres_server
from tests.ledger.conftest import TOTAL, claim, identity
from tests.ledger.processes import ended, started
from tightrope.errors import LedgerError, TightropeError
from tightrope.ledger import Account, Ledger
from tightrope.ledger.check import check_ledger

ATTACKS = int(os.environ.get("TIGHTROPE_LEDGER_ATTACKS", "8"))
SHARE = Fraction(1, 100_000)


def account(where: str | Path) -> Account:
    return Ledger(where, create=True).declare_dataset(identity(), [TOTAL])


def chance(name: str) -> random.Random:
    return random.Random(os.environ.get("TIGHTROPE_SEED", "7") + name)


def release_until_killed(where: str | Path, name: str, out: int) -> None:
    """Charge, draw, keep, and only then say the answers: a line for each."""
    own = account(where)
    for number in range(10_000):
        key = f"{name} {number}"
        own.charge_release(claim(key, str(float(SHARE.numerator) / SHARE.denominator)))
        os.write(out, f"{key}={own.store_answers(key, f'drawn for {key} by {os.getpid()}')}\n".encode())


def assert_right(where: str | Path, seen: dict[str, str]) -> None:
    """Whatever anybody saw is charged, kept, and what it was; sums are those of the entries."""
    ledger = Ledger(where)
    own = ledger.open_account("visits")
    charged = [entry.key for entry in ledger.list_entries() if entry.kind == "charged"]
    assert len(set(charged)) == len(charged) and seen.keys() <= set(charged)
    assert {key: own.stored_answers(key) for key in seen} == seen
    assert own.current_state().balance_of("total").spent == len(charged) * SHARE
    assert check_ledger(ledger).problems == ()
    ledger.close()


@pytest.mark.parametrize("kind", ["file", "postgres"])
def test_two_processes_killed_at_any_instant_show_nothing_that_was_not_paid(kind, tmp_path):
    where = tmp_path / "visits.ledger" if kind == "file" else postgres_server.server().database()
    account(where).book.close()
    clock, seen = chance(kind), {}
    for attack in range(ATTACKS):
        children = [
            started(lambda out, name=f"{attack}.{number}": release_until_killed(where, name, out))
            for number in range(2)
        ]
        for child, _ in children:
            time.sleep(clock.uniform(0, 0.12))
            os.kill(child, signal.SIGKILL)
        for child in children:
            code, said = ended(*child)
            assert code == -9
            seen |= dict(line.split("=", 1) for line in said.split("\n") if line.endswith(tuple("0123456789")))
    assert_right(where, seen)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of a few pages, where this user may make one."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", folder]
    if os.getuid() != 0 or subprocess.run(command, check=False, capture_output=True).returncode:
        pytest.skip("only a superuser can make a disk")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


def test_a_disk_that_fills_up_at_any_page_loses_and_doubles_no_charge(small_disk):
    """The disk is as large as the ledger and some pages; then it has room again."""
    pages = chance("disk")
    for attack in range(ATTACKS):
        place = small_disk / f"{attack}.ledger"
        subprocess.run(["mount", "-o", "remount,size=16m", small_disk], check=True)
        account(place).book.close()
        used = sum(file.stat().st_blocks for file in small_disk.iterdir()) * 512
        size = used + 4096 * pages.randrange(0, 60)
        subprocess.run(["mount", "-o", f"remount,size={size}", small_disk], check=True)
        code, said = ended(*started(lambda out, place=place: release_until_full(place, out)))
        assert code == 0 and said.endswith("full\n")
        subprocess.run(["mount", "-o", "remount,size=16m", small_disk], check=True)
        seen = dict(line.split("=", 1) for line in said.split("\n") if "=" in line)
        assert_right(place, seen)
        own = account(place)
        own.charge_release(claim("there is room again", "0.5"))
        own.book.close()
        for file in small_disk.iterdir():
            file.unlink()


def release_until_full(where: Path, out: int) -> None:
    import warnings

    warnings.simplefilter("ignore")
    own = None
    for number in range(10_000):
        key = f"release {number}"
        try:
            own = own or account(where)
            own.charge_release(claim(key, str(float(SHARE.numerator) / SHARE.denominator)))
            os.write(out, f"{key}={own.store_answers(key, f'drawn for {key}' + 'x' * 3000)}\n".encode())
        except LedgerError:
            os.write(out, b"full\n")
            return


def test_backends_that_are_ended_at_any_instant_lose_and_double_no_charge(monkeypatch):
    monkeypatch.setattr("tightrope.ledger.store.PAUSE_SECONDS", 0.02)
    monkeypatch.setattr("tightrope.ledger.store.MAX_TRIES", 100)
    url, stop, clock = postgres_server.server().database(), threading.Event(), chance("backends")
    own, seen = account(url), {}

    def work() -> None:
        while not stop.is_set():
            key = f"release {len(seen)}"
            own.charge_release(claim(key, str(float(SHARE.numerator) / SHARE.denominator)))
            seen[key] = own.store_answers(key, f"drawn for {key}")

    worker = threading.Thread(target=work)
    worker.start()
    ended_by_us = 0
    with postgres_server.server().connect(url) as other:
        while ended_by_us < ATTACKS and worker.is_alive():
            time.sleep(clock.uniform(0, 0.05))
            others = "datname = current_database() AND pid <> pg_backend_pid()"
            found = other.execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {others}").fetchall()
            ended_by_us += len(found)
    stop.set()
    worker.join(60)
    assert ended_by_us >= ATTACKS and len(seen) > 0
    assert_right(url, seen)


def test_no_mixture_of_older_files_is_charged_as_if_it_were_the_ledger(tmp_path):
    """Snapshots of the file, its log and its head while it is used, put back in any mixture with a newer head."""
    import warnings

    place = tmp_path / "visits.ledger"
    parts = [place, place.with_name("visits.ledger-wal"), place.with_name("visits.ledger.head")]
    snapshots: list[list[bytes | None]] = []
    own = account(place)
    for number in range(40):
        own.charge_release(claim(f"release {number}", str(float(SHARE.numerator) / SHARE.denominator)))
        if number % 8 == 0:
            own.book.close()  # the log goes into the file
        snapshots.append([path.read_bytes() if path.exists() else None for path in parts])
    own.book.close()
    spent = own.current_state().balance_of("total").spent
    own.book.close()
    newest_head, mixture, outcomes = parts[2].read_bytes(), chance("mixture"), []
    for attempt in range(ATTACKS * 5):
        for path in tmp_path.iterdir():
            path.unlink() if path.is_file() else shutil.rmtree(path)
        file, log = mixture.choice(snapshots)[0], mixture.choice([*snapshots, [None, None]])[1]
        if attempt == 0:  # the newest file with the newest log: this one is the ledger
            file, log, _ = snapshots[-1]
        for path, content in zip(parts, [file, log, newest_head], strict=True):
            if content is not None:
                path.write_bytes(content)
        with warnings.catch_warnings(), suppress(TightropeError):
            warnings.simplefilter("error")
            restored = account(place)
            try:
                entry = restored.charge_release(claim("one more", "0.5"))
                outcomes.append(restored.state_after(entry).balance_of("total").spent - Fraction(1, 2))
            finally:
                restored.book.close()
    assert len(outcomes) > 0 and all(found == spent for found in outcomes)
