"""What is done to the place of a ledger while it is used: names, mounts, old pages, settings of a server."""

from __future__ import annotations

import os
import shutil
import sqlite3
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from tests import postgres_server
from tests.ledger.conftest import TOTAL, claim, identity
from tests.ledger.processes import ended, started
from tightrope.errors import InputError, LedgerError, TightropeError
from tightrope.ledger import Account, Ledger
from tightrope.ledger.places import checked_file
from tightrope.ledger.store import LOCK, Store

ENTRIES = "tightrope_entries"
PAGE = 4096


def account(where: str | Path, dataset: str = "visits") -> Account:
    return Ledger(where, create=True).declare_dataset(identity(dataset), [TOTAL])


def spent(where: str | Path) -> Fraction:
    own = account(where)
    found = own.current_state().balance_of("total").spent
    own.book.close()
    return found


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A closed ledger with three charges of 0.1."""
    return _charged(tmp_path / "visits.ledger")


def _charged(where: Any, releases: int = 3) -> Any:
    own = account(where)
    for number in range(releases):
        own.charge_release(claim(f"release {number}", "0.1"))
    own.book.close()
    return where


def _replaced(place: Path) -> None:
    shutil.copy(place, place.with_name("copy"))
    place.with_name("copy").replace(place)


def _folder_swapped(place: Path) -> None:
    other = place.parent.with_name("other")
    shutil.copytree(place.parent, other)
    place.parent.rename(place.parent.with_name("gone"))
    other.rename(place.parent)


def _linked_elsewhere(place: Path) -> None:
    place.rename(place.with_name("elsewhere"))
    place.symlink_to(_charged(place.with_name("second.ledger"), 0))


@pytest.mark.parametrize(
    ("swap", "said"),
    [
        (_replaced, "moved, replaced or removed"),
        (_folder_swapped, "moved, replaced or removed"),
        (_linked_elsewhere, "moved, replaced or removed"),
        (lambda place: place.rename(place.with_name("moved")), "moved, replaced or removed"),
        (lambda place: place.unlink(), "moved, replaced or removed"),
        (lambda place: shutil.rmtree(place.parent), "moved, replaced or removed"),
        (lambda place: place.with_name("second").hardlink_to(place), "hard link"),
    ],
)
@pytest.mark.parametrize("moment", ["before the charge", "before the answer"])
def test_a_file_that_is_swapped_while_it_is_open_takes_no_charge_and_gives_no_answer(tmp_path, swap, said, moment):
    folder = tmp_path / "folder"
    folder.mkdir()
    own = account(_charged(folder / "visits.ledger"))
    own.charge_release(claim("first", "0.1"))
    if moment == "before the charge":
        swap(folder / "visits.ledger")
        with pytest.raises(TightropeError, match=said):
            own.charge_release(claim("second", "0.5"))
    else:
        own.charge_release(claim("second", "0.5"))
        swap(folder / "visits.ledger")
        with pytest.raises(TightropeError, match=said):
            own.store_answers("second", "what nobody may see")
    own.book.close()


def test_a_second_thread_does_not_charge_the_file_that_was_put_in_its_place(place):
    """A pool's second connection opened what the name led to by then: two files under one session."""
    own = account(place)
    own.charge_release(claim("first", "0.1"))
    outcomes: list[str] = []

    def charge() -> None:
        try:
            own.charge_release(claim("second", "0.1"))
        except LedgerError as error:
            outcomes.append(str(error))

    with own.book._store.reading_transaction():
        _replaced(place)
        thread = threading.Thread(target=charge)
        thread.start()
        thread.join(60)
    assert len(outcomes) == 1 and "moved, replaced or removed" in outcomes[0]


def test_a_file_that_is_mounted_by_itself_is_refused(place, tmp_path):
    """As a container mounts it: its log would lie in another folder than that of the first name."""
    written = str(place).replace(" ", "\\040")
    with pytest.raises(InputError, match=r"is mounted by itself.*mount the folder instead"):
        checked_file(place, f"a / ext4 rw 0 0\n/dev/vda {written} ext4 rw 0 0\n")
    assert checked_file(place, f"a / ext4 rw 0 0\n/dev/vda {place.parent} ext4 rw 0 0\n") == place


@pytest.mark.parametrize("ending", [".head", "-wal", "-shm", "-journal"])
def test_no_ledger_has_the_name_of_what_stands_beside_another(place, ending):
    """A ledger ``a.head`` was overwritten by the first charge in a ledger ``a``."""
    with pytest.raises(InputError, match="must not end with"):
        account(place.with_name(f"visits.ledger{ending}"))


def test_another_file_where_the_witness_belongs_is_left_alone(tmp_path):
    other = tmp_path / "a.head"
    other.write_text("somebody's own notes\n" * 50, encoding="utf-8")
    with pytest.raises(LedgerError, match="is not the head file of a"):
        account(tmp_path / "a")
    assert other.read_text(encoding="utf-8").startswith("somebody's own notes")


def test_a_witness_is_never_written_through_a_link(place):
    victim = place.with_name("precious")
    victim.write_text("precious", encoding="utf-8")
    part = place.with_name(f".{place.name}.head.{os.getpid()}-{threading.get_ident()}.part")
    part.symlink_to(victim)
    _charged(place, 4)
    assert victim.read_text(encoding="utf-8") == "precious"


@pytest.mark.parametrize(("datasets", "before", "after"), [(1, 20, 1), (1, 20, 10), (3, 12, 2)])
def test_no_single_older_page_lets_a_charge_overspend_or_an_answer_be_drawn_again(tmp_path, datasets, before, after):
    """A disk that lost one write, or a restore that missed one page: each page in turn is the older one."""
    place = tmp_path / "visits.ledger"

    def history(first: int, last: int) -> None:
        for name in range(datasets):
            own = account(place, f"set {name}")
            for number in range(first, last):
                own.charge_release(claim(f"release {number}", "0.005"))
                own.store_answers(f"release {number}", f"answers {number} " + "x" * 500)
            own.book.close()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        history(0, before)
        older = place.read_bytes()
        history(before, before + after)
        newer, head = place.read_bytes(), place.with_name("visits.ledger.head").read_bytes()
        outcomes = []
        for start in range(0, len(older), PAGE):
            if older[start : start + PAGE] == newer[start : start + PAGE]:
                continue
            place.write_bytes(newer[:start] + older[start : start + PAGE] + newer[start + PAGE :])
            place.with_name("visits.ledger.head").write_bytes(head)
            outcomes.append(_with_an_older_page(place, before + after))
    assert len(outcomes) > 4 and not {"overspent", "drawn again"} & set(outcomes), outcomes


def test_no_single_older_page_lets_a_table_be_read_a_third_time(tmp_path):
    """All releases were killed twice while they read."""
    place = tmp_path / "visits.ledger"

    def history(first: int, last: int) -> None:
        own = account(place)
        for number in range(first, last):
            assert own.begin_reading(claim(f"release {number}", "0.001"))[1]
            assert own.begin_reading(claim(f"release {number}", "0.001"))[1]
        own.book.close()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        history(0, 200)
        older = place.read_bytes()
        history(200, 202)
        newer, head = place.read_bytes(), place.with_name("visits.ledger.head").read_bytes()
        outcomes = []
        for start in range(0, len(older), PAGE):
            if older[start : start + PAGE] == newer[start : start + PAGE]:
                continue
            place.write_bytes(newer[:start] + older[start : start + PAGE] + newer[start + PAGE :])
            place.with_name("visits.ledger.head").write_bytes(head)
            try:
                own = account(place)
                entry, may_read = own.begin_reading(claim("release 201", "0.001"))
                charged_again = entry.number > 405
                outcomes.append("read" if may_read and not charged_again else "right")
                own.book.close()
            except TightropeError:
                outcomes.append("refused")
    assert len(outcomes) > 3 and "read" not in outcomes, outcomes


def _with_an_older_page(place: Path, releases: int) -> str:
    own = None
    try:
        own = account(place, "set 0")
        if own.store_answers(f"release {releases - 1}", "drawn again") == "drawn again":
            return "drawn again"
        entry = own.charge_release(claim("one more", "0.3"))
        paid = Fraction(releases, 200) + Fraction(3, 10)
        return "right" if own.state_after(entry).balance_of("total").spent >= paid else "overspent"
    except TightropeError:
        return "refused"
    finally:
        if own is not None:
            own.book.close()


@pytest.fixture
def url() -> str:
    """A ledger in PostgreSQL with three charges of 0.1."""
    return str(_charged(postgres_server.server().database()))


def run(url: str, *statements: str) -> None:
    postgres_server.server().run(url, *statements)


def setting(url: str, value: str) -> None:
    run(url, f"ALTER DATABASE {url.split('/')[3].partition('?')[0]} SET {value}")


FUNCTION = "CREATE FUNCTION meddle() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {} END $$"
MEDDLING = {
    "a trigger that skips": (
        FUNCTION.format("RETURN NULL;"),
        f"CREATE TRIGGER a BEFORE INSERT ON {ENTRIES} FOR EACH ROW EXECUTE FUNCTION meddle()",
    ),
    "a trigger that changes": (
        FUNCTION.format("NEW.state := '{}'; RETURN NEW;"),
        f"CREATE TRIGGER a BEFORE INSERT ON {ENTRIES} FOR EACH ROW EXECUTE FUNCTION meddle()",
    ),
    "a rule": (f"CREATE RULE a AS ON INSERT TO {ENTRIES} DO INSTEAD NOTHING",),
    "a trigger that deletes": (
        f"DROP TRIGGER {ENTRIES}_delete ON {ENTRIES}",
        FUNCTION.format(f"DELETE FROM {ENTRIES} WHERE number = NEW.number; RETURN NULL;"),
        f"CREATE TRIGGER a AFTER INSERT ON {ENTRIES} FOR EACH ROW EXECUTE FUNCTION meddle()",
    ),
    "one that deletes at the end": (
        f"DROP TRIGGER {ENTRIES}_delete ON {ENTRIES}",
        FUNCTION.format(f"DELETE FROM {ENTRIES} WHERE number = NEW.number; RETURN NULL;"),
        f"CREATE CONSTRAINT TRIGGER a AFTER INSERT ON {ENTRIES} DEFERRABLE INITIALLY DEFERRED "
        "FOR EACH ROW EXECUTE FUNCTION meddle()",
    ),
}


@pytest.mark.parametrize("meddling", MEDDLING)
def test_what_a_trigger_or_a_rule_drops_is_no_charge(url, meddling):
    run(url, *MEDDLING[meddling])
    with pytest.raises(LedgerError, match="did not keep entry 5 as it was written"):
        account(url).charge_release(claim("one more", "0.5"))
    assert spent(url) * 10 == 3


@pytest.mark.parametrize("does", ["BEFORE INSERT {} SELECT RAISE(IGNORE); END", "AFTER INSERT {} DELETE FROM {}; END"])
def test_what_a_trigger_of_a_file_drops_is_no_charge(place, does):
    with closing(sqlite3.connect(place)) as connection:
        connection.execute(f"DROP TRIGGER {ENTRIES}_delete")
        work = does.format(f"ON {ENTRIES} BEGIN", f"{ENTRIES} WHERE number = NEW.number")
        connection.execute(f"CREATE TRIGGER a {work}")
        connection.commit()
    with pytest.raises(LedgerError, match="did not keep entry 5 as it was written"):
        account(place).charge_release(claim("one more", "0.5"))
    assert spent(place) * 10 == 3


def test_row_level_security_hides_no_charge(url):
    """A policy that hid the entries of a dataset gave its budget again."""
    server = postgres_server.server()
    with suppress(Exception):  # another test of this server made it
        run(url, "CREATE ROLE app LOGIN")
    run(
        url,
        "GRANT ALL ON ALL TABLES IN SCHEMA public TO app",
        f"ALTER TABLE {ENTRIES} ENABLE ROW LEVEL SECURITY",
        f"CREATE POLICY p ON {ENTRIES} USING (number <= 2) WITH CHECK (true)",
    )
    as_app = server.url(url.split("/")[3].partition("?")[0], user="app")
    with pytest.raises(LedgerError, match="row-level security"):
        account(as_app)
    assert spent(url) * 10 == 3


@pytest.mark.parametrize("table", ["tightrope_ledger", ENTRIES, "tightrope_documents"])
def test_tables_that_a_crash_would_empty_are_refused(url, table):
    own = account(url)
    run(url, f"ALTER TABLE {table} SET UNLOGGED")
    with pytest.raises(LedgerError, match="not UNLOGGED"):
        own.charge_release(claim("one more", "0.5"))
    own.book.close()
    with pytest.raises(LedgerError, match="not UNLOGGED"):
        account(url)


def test_a_search_path_leads_to_no_second_ledger(url):
    run(url, "CREATE SCHEMA s")
    setting(url, "search_path = s")
    with pytest.raises(LedgerError, match="is in the schema 'public'"):
        account(url)
    run(url, f"CREATE TABLE s.{ENTRIES} (LIKE public.{ENTRIES})")
    setting(url, "search_path = s, public")
    assert spent(url) * 10 == 3  # entries of s, which comes first, were taken for those of the ledger


@pytest.mark.parametrize(
    "made", ["TABLE {} (number bigint)", "VIEW {} AS SELECT 1 AS number", "UNLOGGED TABLE {} (x text)"]
)
@pytest.mark.parametrize("name", [ENTRIES, "tightrope_documents"])
def test_a_table_that_somebody_else_made_is_no_part_of_a_ledger(made, name):
    url = postgres_server.server().database()
    run(url, f"CREATE {made.format(name)}")
    with pytest.raises(LedgerError, match=f"has another table named '{name}'"):
        account(url)


@pytest.mark.parametrize("level", ["read committed", "repeatable read", "serializable"])
def test_sessions_that_charge_at_once_wait_for_each_other_at_every_isolation(url, level):
    """With a snapshot from before the lock, four of five charges failed."""
    setting(url, f"default_transaction_isolation = '{level}'")
    failed: list[TightropeError] = []

    def charges(name: int) -> None:
        own = account(url)
        for number in range(5):
            try:
                own.charge_release(claim(f"{name} {number}", "0.01"))
            except TightropeError as error:
                failed.append(error)
        own.book.close()

    threads = [threading.Thread(target=charges, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert failed == [] and spent(url) * 10 == 5


def test_a_charge_is_on_disk_whatever_the_database_has_set(url):
    setting(url, "synchronous_commit = off")
    own = account(url)
    with own.book._store.writing_transaction() as connection:
        assert connection.exec_driver_sql("SHOW synchronous_commit").scalar() == "on"
    setting(url, "synchronous_commit = remote_apply")
    with Store(url).writing_transaction() as connection:
        assert connection.exec_driver_sql("SHOW synchronous_commit").scalar() == "remote_apply"


@pytest.fixture
def held(url: str) -> Iterator[Callable[[], None]]:
    """Another session that holds what a charge waits for, and a way to end it."""
    with postgres_server.server().connect(url) as other:
        other.execute(f"SELECT pg_advisory_lock({LOCK})")
        yield lambda: other.execute("SELECT pg_advisory_unlock_all()")


def test_a_lock_that_is_held_for_ever_is_waited_for_a_while(url, held, monkeypatch):
    monkeypatch.setattr("tightrope.ledger.store.LOCK_TIMEOUT_SECONDS", 1)
    own = account(url)
    with pytest.raises(LedgerError, match="another program has locked it; try again"):
        own.charge_release(claim("one more", "0.1"))
    held()
    own.charge_release(claim("one more", "0.1"))
    assert spent(url) * 10 == 4


@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII", "EUC_JP"])
def test_letters_that_a_database_cannot_hold_are_said_before_the_charge(encoding):
    url = str(_charged(postgres_server.server().database(encoding=encoding)))
    own = account(url)
    try:
        own.charge_release(claim("東京 Ü €", "0.1"))
    except LedgerError as error:
        assert "encoding UTF8" in str(error)
        assert spent(url) * 10 == 3
    else:
        assert own.find_charge(claim("東京 Ü €", "0.1")) is not None


@pytest.mark.parametrize("moment", ["after the charge", "after the entry", "at the end"])
def test_a_backend_that_is_ended_in_a_transaction_loses_and_doubles_no_charge(url, moment, monkeypatch):
    monkeypatch.setattr("tightrope.ledger.store.PAUSE_SECONDS", 0.0)
    own, ends = account(url), []

    def end(connection: Any) -> None:
        if not ends:
            ends.append(connection.exec_driver_sql("SELECT pg_backend_pid()").scalar())
            run(url, f"SELECT pg_terminate_backend({ends[0]})")

    where = {
        "after the charge": "chain.store_text",
        "after the entry": "chain.append_entry",
        "at the end": "chain.last_entry",
    }
    part = where[moment].partition(".")[2]
    from tightrope.ledger import chain

    usual = getattr(chain, part)

    def meddled(connection: Any, *rest: Any) -> Any:
        found = usual(connection, *rest)
        end(connection)
        return found

    monkeypatch.setattr(chain, part, meddled)
    own.charge_release(
        claim("one more", "0.1", noise_record="{}") if moment == "after the charge" else claim("one more", "0.1")
    )
    assert len(ends) == 1 and spent(url) * 10 == 4


def test_the_process_that_opens_a_moved_ledger_and_the_one_that_had_it_do_not_both_charge(place):
    """Each name has a log of its own: two processes spent the last of one budget."""

    def first(out: int) -> None:
        own = account(place)
        own.charge_release(claim("first", "0.5"))
        place.rename(place.with_name("moved.ledger"))
        try:
            own.charge_release(claim("second", "0.2"))
            os.write(out, b"charged")
        except LedgerError:
            os.write(out, b"refused")

    assert ended(*started(first)) == (0, "refused")
