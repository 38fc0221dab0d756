"""What happens to files: full disks, damage, cuts, old copies. Nothing is charged wrongly, and messages say what."""

from __future__ import annotations

import os
import resource
import shutil
import sqlite3
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.ledger.conftest import TOTAL, claim, identity
from tests.ledger.processes import ended, started
from tightrope.documents.release import LedgerEntry
from tightrope.errors import InputError, InsufficientBudgetError, LedgerError, LedgerWarning, TightropeError
from tightrope.ledger import Account, Ledger, store
from tightrope.ledger.check import check_ledger
from tightrope.ledger.places import REMOTE, HeadFile, checked_file


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A closed ledger with ten charges of 0.05, each answered."""
    where = tmp_path / "visits.ledger"
    own = account(where)
    for number in range(10):
        own.charge_release(claim(f"release {number}", "0.05"))
        own.store_answers(f"release {number}", f"answers {number} " + "x" * 2000)
    own.book.close()
    return where


def account(where: Path) -> Account:
    return Ledger(where, create=True).declare_dataset(identity(), [TOTAL])


def problems(where: Path) -> tuple[str, ...]:
    """What a check finds, or why the ledger cannot be opened."""
    try:
        ledger = Ledger(where)
    except TightropeError as error:
        return (str(error),)
    found = check_ledger(ledger).problems
    ledger.close()
    return found


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="a full disk is made by a limit of Linux")
@pytest.mark.parametrize("room", [0, 4_000, 20_000, 100_000])
def test_a_full_disk_charges_what_it_says_it_charged(place, room):
    def work(out: int) -> None:
        own = account(place)
        log = place.with_name(f"{place.name}-wal")
        most = (log.stat().st_size if log.exists() else 0) + room
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, resource.RLIM_INFINITY))
        for number in range(60):
            try:
                own.charge_release(claim(f"more {number}", "0.001"))
                os.write(out, b"1")
            except LedgerError as error:
                os.write(out, b"0" if "cannot be used" in str(error) else b"?")

    code, said = ended(*started(work))
    assert code == 0 and "?" not in said and "0" in said
    own = account(place)
    charged = [
        entry.key for entry in own.book.list_entries() if entry.kind == "charged" and str(entry.key)[:4] == "more"
    ]
    assert len(charged) >= said.count("1")
    assert {f"more {number}" for number, fate in enumerate(said) if fate == "1"} <= set(charged)
    own.charge_release(claim("afterwards", "0.001"))
    own.book.close()
    assert problems(place) == ()


def test_a_ledger_that_may_only_be_read_charges_nothing(place):
    def work(out: int) -> None:
        if os.getuid() == 0:
            place.parent.chmod(0o755)
            os.setuid(65534)
        else:
            place.chmod(0o444)
            place.parent.chmod(0o555)
        try:
            account(place).charge_release(claim("one more", "0.05"))
        except LedgerError as error:
            os.write(out, str(error).encode())

    for parent in place.parents[:4]:  # a process of several has one folder more
        parent.chmod(0o755)
    code, said = ended(*started(work))
    place.parent.chmod(0o755)
    place.chmod(0o644)
    assert code == 0 and "cannot be used" in said and "let this user" in said
    assert account(place).current_state().balance_of("total").spent * 2 == 1


@pytest.mark.parametrize("where", [0.1, 0.3, 0.5, 0.7, 0.9])
@pytest.mark.parametrize("with_what", [b"\x00", b"\xa5"])
def test_a_damaged_page_is_found(place, where, with_what):
    content = bytearray(place.read_bytes())
    start = int(where * len(content)) // 4096 * 4096
    content[start : start + 4096] = with_what * 4096
    place.write_bytes(bytes(content))
    assert problems(place) != ()


@pytest.mark.parametrize("text", [b'"0.05"', b'["1/2","0"]', b"release 3", b"answers 4"])
def test_a_changed_letter_is_found(place, text):
    content = place.read_bytes()
    assert text in content
    changed = content.replace(text, text.replace(b"0", b"9").replace(b"3", b"4").replace(b"s 4", b"s 5"))
    place.write_bytes(changed)
    assert problems(place) != ()


@pytest.mark.parametrize("left", [0, 1, 100, 4096, 3 * 4096])
def test_a_file_that_was_cut_off_is_refused_and_not_begun_anew(place, left):
    with place.open("r+b") as file:
        file.truncate(left)
    with pytest.raises(TightropeError):
        account(place).charge_release(claim("one more", "0.9"))


def test_a_ledger_that_is_gone_is_not_begun_anew(place):
    place.unlink()
    with pytest.raises(LedgerError, match="is missing"):
        account(place)


def test_a_copy_that_was_put_back_is_refused(place):
    older = place.with_name("backup")
    shutil.copy(place, older)
    own = account(place)
    own.charge_release(claim("after the copy", "0.5"))
    own.book.close()
    shutil.copy(older, place)
    with pytest.raises(LedgerError, match="a copy was put back"):
        account(place)


def test_a_copy_put_back_under_an_open_ledger_charges_nothing(place):
    older, own = place.read_bytes(), account(place)
    own.charge_release(claim("after the copy", "0.5"))
    Ledger(place).close()
    own.book.close()
    place.write_bytes(older)
    with pytest.raises(LedgerError, match="a copy was put back"):
        own.charge_release(claim("after the copy", "0.5"))


def test_a_copy_with_its_witness_is_found_by_a_newer_certificate_alone(place):
    older = {path: path.read_bytes() for path in (place, place.with_name(f"{place.name}.head"))}
    own = account(place)
    entry = own.charge_release(claim("after the copy", "0.5"))
    own.book.close()
    certificate = LedgerEntry(
        ledger=own.book.id, dataset="visits", key="after the copy", number=entry.number, hash=entry.hash,
        budget_fraction="1/2",
        left="0", position=11, of=None,
    )  # fmt: skip
    assert check_ledger(Ledger(place), [certificate]).problems == ()
    for path, content in older.items():
        path.write_bytes(content)
    assert problems(place) == ()  # nothing in the file can say so
    (found,) = check_ledger(Ledger(place), [certificate]).problems
    assert "an older copy" in found


def test_an_unreadable_witness_claims_nothing_and_is_written_anew(place):
    witness = place.with_name(f"{place.name}.head")
    witness.write_text("", encoding="ascii")
    own = account(place)
    entry = own.charge_release(claim("one more", "0.05"))
    assert witness.read_text(encoding="ascii") == f"{entry.number} {entry.hash}\n"
    own.book.close()


def test_rows_cannot_be_changed_by_accident(place):
    with closing(sqlite3.connect(place)) as connection:
        for statement in ("UPDATE tightrope_entries SET time = ''", "DELETE FROM tightrope_entries WHERE number = 3"):
            with pytest.raises(sqlite3.IntegrityError, match="never changed"):
                connection.execute(statement)


def forged(place: Path, statement: str) -> None:
    """Somebody who takes the triggers away first."""
    with closing(sqlite3.connect(place)) as connection:
        names = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'")]
        for name in names:
            connection.execute(f"DROP TRIGGER {name}")
        connection.execute(statement)
        connection.commit()


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("DELETE FROM tightrope_entries WHERE number = 4", "entry 4 is missing"),
        ("UPDATE tightrope_entries SET state = replace(state, '1/2', '1/4')", "changed after it was written"),
        ("UPDATE tightrope_entries SET key = 'other' WHERE number = 4", "entry 4 was changed after it was written"),
        ("DELETE FROM tightrope_documents WHERE content LIKE 'answers 4%'", "answers of entry 11"),
    ],
)
def test_what_was_changed_on_purpose_but_clumsily_is_found(place, statement, said):
    forged(place, statement)
    assert any(said in problem for problem in problems(place))


def test_a_last_entry_that_is_not_what_was_written_stops_every_charge(place):
    forged(place, "UPDATE tightrope_entries SET state = replace(state, '1/2', '0') WHERE number = 21")
    place.with_name(f"{place.name}.head").unlink()
    with pytest.raises(LedgerError, match="entry 21 of the ledger was changed after it was written"):
        account(place).charge_release(claim("one more", "0.9"))


def test_other_files_are_no_ledgers(tmp_path):
    (tmp_path / "text").write_text("budget = 1\n" * 100, encoding="utf-8")
    sqlite3.connect(tmp_path / "empty.db").execute("CREATE TABLE t (x)").connection.close()
    for name, said in (("text", "not a database"), ("empty.db", "no such table")):
        with pytest.raises(LedgerError, match=said):
            Ledger(tmp_path / name)
    with pytest.raises(InputError, match="not a folder"):
        Ledger(tmp_path, create=True)
    with pytest.raises(InputError, match="does not exist; the first release creates it"):
        Ledger(tmp_path / "nowhere")
    with pytest.raises(InputError, match="does not exist"):
        Ledger(tmp_path / "no" / "where", create=True)
    with pytest.raises(InputError, match=r"mysql://\.\.\."):
        Ledger("mysql://somebody:secret@host/base")


@pytest.mark.parametrize("kind", REMOTE)
def test_disks_of_other_machines_are_refused(tmp_path, kind):
    mounts = f"a / ext4 rw 0 0\nserver:/x {tmp_path} {kind} rw 0 0\n"
    with pytest.raises(InputError, match=r"network file system.*postgresql"):
        checked_file(tmp_path / "visits.ledger", mounts)
    assert checked_file(tmp_path / "visits.ledger", f"{mounts}b {tmp_path} ext4 rw 0 0\n")


@pytest.fixture
def exhausted(place: Path) -> Iterator[Account]:
    own = account(place)
    own.charge_release(claim("the rest", "0.5"))
    yield own
    own.book.close()


def test_fifty_refusals_change_nothing_but_the_history(exhausted):
    for number in range(50):
        with pytest.raises(InsufficientBudgetError):
            exhausted.charge_release(claim(f"refused {number}", "0.001"))
    assert exhausted.current_state().balance_of("total").spent == 1
    assert check_ledger(Ledger(exhausted.book.display_name)).problems == ()


def test_a_file_with_two_names_is_refused(place):
    """Each name has a log of its own, and the charges of one would be lost to the other."""
    other = place.with_name("other.ledger")
    other.hardlink_to(place)
    for name in (place, other):
        with pytest.raises(InputError, match="hard link"):
            account(name)
    other.unlink()
    assert account(place).current_state().balance_of("total").spent * 2 == 1


def test_the_name_under_which_a_ledger_was_made_is_not_a_second_one(place):
    """Who is killed between its two names leaves both, and who opens it meanwhile sees both."""
    made = place.with_name(f".{place.name}.0123abcd.part")
    made.hardlink_to(place)
    assert account(place).current_state().balance_of("total").spent * 2 == 1
    assert not made.exists()
    for other in (f".{place.name}.mine", f".{place.name}.part", f".{place.name}.0123abcdX.part"):
        stranger = place.with_name(other)
        stranger.hardlink_to(place)
        with pytest.raises(InputError, match="hard link"):
            account(place)
        stranger.unlink()


@pytest.mark.parametrize("leaves", [0, 1, 2, 3])
def test_a_ledger_that_appears_between_any_two_looks_is_opened(tmp_path, monkeypatch, leaves):
    """Another process makes it at that moment, and takes its first name away after ``leaves`` more looks."""
    look, looks = os.stat, 0
    for moment in range(1, 40):
        path, looks = tmp_path / f"{moment}.ledger", 0
        made = path.with_name(f".{path.name}.0123abcd.part")
        store.create_file_store(made)

        def other_process(seen: object, *rest: object, moment=moment, path=path, made=made, **more: object) -> object:
            nonlocal looks
            looks += str(seen) == str(path)
            try:
                return look(seen, *rest, **more)
            finally:
                if looks == moment and not os.path.lexists(path):
                    os.link(made, path)
                if looks >= moment + leaves and made in path.parent.iterdir() and os.path.lexists(path):
                    made.unlink(missing_ok=True)

        monkeypatch.setattr(os, "stat", other_process)
        own = account(path)
        monkeypatch.setattr(os, "stat", look)
        own.charge_release(claim("march"))
        own.book.close()
        assert problems(path) == ()
        if looks < moment:
            break
    assert 3 < moment < 39


def test_the_part_of_another_ledger_is_left_alone(place):
    other = place.with_name(f".{place.name}.0123abcd.part")
    other.write_bytes(b"being made")
    second = place.with_name("second.ledger")
    second.hardlink_to(place)
    with pytest.raises(InputError, match="hard link"):
        account(place)
    assert other.read_bytes() == b"being made"


def test_a_link_leads_to_the_file_and_its_witness(place):
    link = place.with_name("link.ledger")
    link.symlink_to(place)
    account(link).charge_release(claim("by the link", "0.05"))
    assert not link.with_name("link.ledger.head").exists()
    assert problems(place) == ()


def test_a_witness_that_cannot_be_written_is_said_aloud(opened, tmp_path):
    account = opened().declare_dataset(identity(), [TOTAL])
    head = tmp_path / "visits.ledger.head"
    head.unlink()
    part = head.with_name(f".{head.name}.{os.getpid()}-{threading.get_ident()}.part")
    part.mkdir()
    with pytest.warns(LedgerWarning, match="cannot be written .*older copy"):
        account.charge_release(claim("a"))
    assert account.current_state().releases == 1


def test_threads_that_charge_at_once_have_parts_of_their_own(place, monkeypatch):
    """They shared the name of a part: one renamed what another was about to, and a warning said it was not written."""
    witness, replace, threads = HeadFile(place), Path.replace, []

    def overtaken(path: Path, target: Path) -> Path:
        if not threads:
            threads.append(threading.Thread(target=witness.write_head, args=(3, "b")))
            threads[0].start()
            threads[0].join(60)
        return replace(path, target)

    monkeypatch.setattr(Path, "replace", overtaken)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        witness.write_head(2, "a")
    assert len(threads) == 1 and witness.last_seen_entry() == (2, "a")


def test_a_witness_that_cannot_be_read_is_no_witness_that_says_nothing(opened, tmp_path):
    account = opened().declare_dataset(identity(), [TOTAL])
    head = tmp_path / "visits.ledger.head"
    head.unlink()
    head.mkdir()
    with pytest.raises(LedgerError, match=r"head cannot be read .*older copy"):
        account.charge_release(claim("a"))
