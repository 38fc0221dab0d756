"""tightrope ledger: open, show, history, check, export – by plan, by file; text and one JSON object."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests import postgres_server

PART = "delta = 1e-6\nbudget_fraction = 0.25"


@pytest.fixture
def plan(folder: Path) -> Path:
    """A plan that spends a quarter."""
    path = folder / "plan.toml"
    path.write_text(path.read_text(encoding="utf-8").replace("delta = 1e-6", PART), encoding="utf-8")
    return path


@pytest.fixture
def released(plan: Path, run) -> Path:
    """The same, after one release and the ledger that it made."""
    assert run("release", plan, "--key", "march").code == 0
    return plan


def test_open_declares_and_spends_nothing(run, plan):
    shown = run("ledger", "open", plan, "--note", "promised to the board")
    assert (shown.code, shown.err) == (0, "")
    for words in ("visits.parquet: 0 releases", "the same user", "promised to the board", "Nothing has been spent"):
        assert words in shown.out
    assert run("release", plan).code == 0


def test_show_has_a_table_a_picture_and_the_rules(run, released):
    run("release", released, "--out", released.parent / "second")
    shown = run("ledger", "show", released)
    assert (shown.code, shown.err) == (0, "")
    for words in ("visits.parquet: 2 releases, 0 refusals", "total", "0.5", "█████", "·····",
                  "2 releases, planned one at a time", "Planned jointly in advance"):  # fmt: skip
        assert words in " ".join(shown.out.split())
    (dataset,) = json.loads(run("ledger", "show", released.parent / "tightrope.ledger", "--json").out)["datasets"]
    (limit,) = dataset["limits"]
    assert (limit["spent"], limit["reserved"], limit["left"]) == ("0.5", "0", "0.5")
    assert limit["points_left"] == [["0.5", "0.0000005"]]
    assert len(dataset["timeline"]) == 2


@pytest.mark.slow
def test_show_says_what_planning_ahead_would_have_saved(run, plan):
    """Listed keys need no noise with an end: many small releases compose better than they add up."""
    text = plan.read_text(encoding="utf-8").replace('by = "city"', 'by = "member"\nkeys = [false, true]')
    plan.write_text(text.replace("budget_fraction = 0.25", "budget_fraction = 0.05"), encoding="utf-8")
    for number in range(8):
        assert run("release", plan, "--out", plan.parent / str(number)).code == 0
    assert "would have used a fraction of" in " ".join(run("ledger", "show", plan).out.split())


def test_history_lists_what_happened_refusals_too(run, released):
    text = released.read_text(encoding="utf-8").replace("budget_fraction = 0.25", "budget_fraction = 0.9")
    released.write_text(text, encoding="utf-8")
    run("release", released, "--out", released.parent / "more").refused_with("0.75 is left", code=3)
    shown = run("ledger", "history", released)
    for words in ("dataset", "charged", "answered", "refused", "march", "0.75"):
        assert words in shown.out
    entries = json.loads(run("ledger", "history", released, "--json").out)["entries"]
    assert [entry["kind"] for entry in entries] == ["dataset", "charged", "answered", "refused"]
    assert entries[1]["hash"] == entries[2]["previous"]


def test_check_goes_through_chain_guarantees_and_certificates(run, released):
    shown = run("ledger", "check", released)
    assert (shown.code, shown.err) == (0, "")
    assert "Entries: 3." in shown.out and "from the recorded noise: 1." in shown.out
    assert "Certificates found in the ledger: 1." in " ".join(shown.out.split())
    found = json.loads(run("ledger", "check", released, "--json").out)
    assert found["problems"] == [] and found["guarantees"] == found["certificates"] == 1


def test_check_finds_an_older_copy_by_a_certificate(run, released):
    folder = released.parent
    files = [folder / "tightrope.ledger", folder / "tightrope.ledger.head"]
    for path in files:
        shutil.copy(path, folder / f"{path.name}.backup")
    assert run("release", released, "--out", folder / "second").code == 0
    for path in files:
        shutil.copy(folder / f"{path.name}.backup", path)
    assert run("ledger", "check", released).code == 0
    run("ledger", "check", released, folder / "second" / "certificate.json").refused_with("an older copy", code=1)
    found = run("ledger", "check", released, folder / "second" / "certificate.json", "--json")
    assert found.code == 1 and "older copy" in json.loads(found.out)["problems"][0]


def test_a_copy_that_was_put_back_stops_the_next_release(run, released):
    folder = released.parent
    shutil.copy(folder / "tightrope.ledger", folder / "backup")
    assert run("release", released, "--out", folder / "second").code == 0
    shutil.copy(folder / "backup", folder / "tightrope.ledger")
    run("release", released, "--out", folder / "third").refused_with("a copy was put back", code=1)


def test_export_is_one_object_with_every_text(run, released):
    data = json.loads(run("ledger", "export", released).out)
    assert data["document"] == "ledger" and len(data["entries"]) == 3
    answered = data["entries"][2]["body"]["document"]
    stored = json.loads(data["documents"][answered])
    result = json.loads((released.parent / "result.json").read_text(encoding="utf-8"))
    assert stored["certificate"]["epsilon"] == result["certificate"]["epsilon"]


def test_nonsense(run, plan, tmp_path):
    run("ledger", "show", plan).refused_with("the first release creates it")
    run("ledger", "show", tmp_path / "nowhere.ledger").refused_with("nowhere.ledger does not exist")
    run("ledger", "show", tmp_path).refused_with("a file, not a folder")
    run("ledger", "show", "mysql://root:secret@host/x").refused_with("postgresql://")
    assert run("ledger", "open", plan).code == 0
    run("ledger", "show", plan, "--dataset", "visitors").refused_with("visits.parquet")
    run("ledger", "check", plan, plan).refused_with("release")


def test_limits_of_a_plan_are_limits_of_its_dataset(run, plan):
    text = plan.read_text(encoding="utf-8")
    section = (
        '[ledger]\nnote = "agreed"\n[[ledger.limit]]\nname = "yearly"\nepsilon = 0.25\ndelta = 1e-6\nevery = "year"\n'
    )
    plan.write_text(f"{text}\n{section}", encoding="utf-8")
    assert run("release", plan).code == 0
    run("release", plan, "--out", plan.parent / "second").refused_with("'yearly 20", "0 is left", code=3)
    shown = run("ledger", "show", plan)
    assert "yearly 20" in shown.out and "agreed" in shown.out
    plan.write_text(f"{text}\n{section.replace('year', 'week')}", encoding="utf-8")
    run("release", plan).refused_with("every")


def test_a_ledger_in_postgresql_by_its_url(run, plan):
    url = postgres_server.server().database()
    text = plan.read_text(encoding="utf-8")
    plan.write_text(f'{text}\n[ledger]\npath = "{url}"\ndataset = "visits"\n', encoding="utf-8")
    assert run("release", plan, "--key", "march").code == 0
    assert not (plan.parent / "tightrope.ledger").exists()
    again = run("release", plan, "--key", "march", "--out", plan.parent / "again")
    assert (again.code, again.err) == (0, "")
    assert (plan.parent / "again/result.json").read_bytes() == (plan.parent / "result.json").read_bytes()
    plan.write_text(
        plan.read_text(encoding="utf-8").replace("budget_fraction = 0.25", "budget_fraction = 0.8"), encoding="utf-8"
    )
    run("release", plan, "--out", plan.parent / "more").refused_with("0.75 is left", code=3)
    assert "visits: 1 release, 1 refusal" in run("ledger", "show", url).out
    checked = run("ledger", "check", url, plan.parent / "certificate.json")
    assert checked.code == 0 and "A restored backup can be detected only" in checked.out


BY_MOMENTS = '\n[[ledger.limit]]\nname = "total"\nrule = "moments"\nreleases = 8\n'


@pytest.fixture
def by_moments(plan: Path) -> Path:
    """A plan that takes a tenth of a whole budget by moments, by listed keys."""
    text = plan.read_text(encoding="utf-8").replace('by = "city"', 'by = "member"\nkeys = [false, true]')
    plan.write_text(text.replace("budget_fraction = 0.25", "budget_fraction = 0.4") + BY_MOMENTS, encoding="utf-8")
    return plan


@pytest.mark.slow
def test_a_plan_by_moments_is_planned_and_shown_by_its_rule(run, by_moments):
    planned = run("plan", by_moments)
    assert (planned.code, planned.err) == (0, "")
    assert "Budget left" not in planned.out and not (by_moments.parent / "tightrope.ledger").exists()
    for name in ("one", "two"):
        released = run("release", by_moments, "--out", by_moments.parent / name)
        assert released.code == 0, released.err
    assert "by moments" in released.out and "under basic composition" in " ".join(released.out.split())
    assert "by moments" in (by_moments.parent / "two" / "report.html").read_text(encoding="utf-8")
    shown = run("ledger", "show", by_moments)
    said = " ".join(shown.out.split())
    for words in ("log moments of the privacy loss add up, of order", "under basic composition", "Spent so far",
                  "odometer of moments", "a valid guarantee for all", "Planned jointly in advance"):  # fmt: skip
        assert words in said
    assert run("ledger", "check", by_moments, by_moments.parent / "two" / "certificate.json").code == 0


def test_plan_says_what_is_left_and_that_a_release_would_be_refused(run, by_moments):
    for name in ("one", "two"):
        assert run("release", by_moments, "--out", by_moments.parent / name).code == 0
    planned = run("plan", by_moments)
    said = " ".join(planned.out.split())
    assert planned.code == 0 and "Budget left: 0.2" in said
    assert "A release would be refused: this release needs a fraction of 0.39" in said
    history = run("ledger", "history", by_moments)
    assert "refused" not in history.out  # asking is no release


def test_plan_says_that_the_ledger_knows_another_promise(run, released):
    released.write_text(released.read_text(encoding="utf-8").replace("delta = 1e-6", "delta = 1e-7"), encoding="utf-8")
    said = " ".join(run("plan", released).out.split())
    assert "A release would be refused: " in said and "but the ledger has epsilon 1 at delta 0.000001" in said, said[
        -900:
    ]


def test_plan_says_how_far_a_series_is(run, plan):
    plan.write_text(plan.read_text(encoding="utf-8") + "\n[ledger]\ntimes = 2\n", encoding="utf-8")
    for name in ("one", "two"):
        assert run("release", plan, "--out", plan.parent / name).code == 0
        said = " ".join(run("plan", plan).out.split())
        assert (
            "1 of 2 releases of the series" if name == "one" else "all 2 releases of the series 'series' are done"
        ) in said


def test_a_rule_that_is_changed_between_releases_is_refused(run, by_moments):
    assert run("release", by_moments, "--out", by_moments.parent / "one").code == 0
    text = by_moments.read_text(encoding="utf-8")
    for other in (text.replace("releases = 8", "releases = 9"), text.replace(BY_MOMENTS, "")):
        by_moments.write_text(other, encoding="utf-8")
        refused = run("release", by_moments, "--out", by_moments.parent / "two")
        assert refused.code == 2 and "by moments for about 8 releases" in refused.err


def test_a_twin_of_a_dataset_is_one_line_on_standard_error(run, released):
    text = released.read_text(encoding="utf-8") + '\n[ledger]\ndataset = "patients"\n'
    released.write_text(text, encoding="utf-8")
    opened = run("ledger", "open", released)
    assert opened.code == 0
    assert opened.err.startswith("tightrope: warning: the ledger already has 'visits.parquet', with the same columns")
    assert opened.err.count("\n") == 1


YEARLY = '\n[[ledger.limit]]\nname = "yearly"\nepsilon = 0.9\ndelta = 1e-6\nevery = "year"\n'


@pytest.mark.parametrize("page", [20, 80, 110, 200])
def test_numbers_are_whole_on_a_page_of_any_width(run, by_moments, monkeypatch, page):
    """Where the words and numbers of all limits have no room side by side, each limit is a block of lines."""
    by_moments.write_text(by_moments.read_text(encoding="utf-8") + YEARLY, encoding="utf-8")
    assert run("release", by_moments).code == 0
    (dataset,) = json.loads(run("ledger", "show", by_moments, "--json").out)["datasets"]
    monkeypatch.setattr("tightrope.cli.output.PAGE", page)
    shown = run("ledger", "show", by_moments).out
    assert "…" not in shown
    words = shown.split()
    for limit in dataset["limits"]:
        assert limit["name"] in words
        for name in ("spent", "reserved", "left") if page >= 80 else ():
            assert limit[name] in words, (name, limit)
    joined = "".join(words)
    assert all(limit["left"] in joined for limit in dataset["limits"])
    assert max(map(len, shown.splitlines())) <= page


def test_show_loads_no_library_that_it_does_not_need(released):
    """A tenth of a second of processor time each: one release is shown without the arithmetic of composition."""
    idle = ("numpy", "scipy", "tightrope.accounting", "tightrope.tables", "tightrope.queries", "tightrope.release")
    code = (
        "import atexit, sys; from tightrope.__main__ import main;"
        f"atexit.register(lambda: print([name for name in {idle!r} if name in sys.modules])); main()"
    )
    command = [sys.executable, "-c", code, "ledger", "show", released]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "visits.parquet: 1 release, 0 refusals" in shown
    assert shown.splitlines()[-1] == "[]"


def test_a_ledger_is_shown_when_the_table_of_its_plan_is_gone(run, released):
    (released.parent / "visits.parquet").unlink()
    assert "visits.parquet: 1 release" in run("ledger", "show", released).out
    released.write_text(released.read_text(encoding="utf-8") + "[ledgr]\n", encoding="utf-8")
    run("ledger", "show", released).refused_with("unknown section 'ledgr'; did you mean 'ledger'?")
