"""Results of benchmarks: losses come first, on the page and in a terminal; if an area fails, the others still run."""

from __future__ import annotations

import importlib
import math
import os
import platform
import re
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
BENCHMARKS = ROOT / "benchmarks"


def load_scripts(*names: str) -> list[ModuleType]:
    """Import modules of the folder of the scripts, which is not a package."""
    sys.path.append(str(BENCHMARKS))
    try:
        return [importlib.import_module(name) for name in names]
    finally:
        sys.path.remove(str(BENCHMARKS))


NOT_AREAS = {"all", "compare_commits", "environments", "job_tasks", "job_truths", "lines", "page", "plan"}
NOT_AREAS |= {"suggested_rows", "workers"}
lines, page, environments, everything = load_scripts("lines", "page", "environments", "all")
Line: Any = lines.Line
LOST = Line("a", "lost", "CPU s", 2.0, "peer", 1.0, goal="2 ×", goal_met=False)
LOST_RATE = Line("a", "lost rate", "M a s", 1.0, "peer", 4.0, larger_is_better=True)
SHORT = Line("a", "short", "CPU s", 1.0, "peer", 10.0, goal="20 ×", goal_met=False)
ALONE_AND_SHORT = Line("a", "alone and short", "peak MiB", 9.0, goal="5", goal_met=False)
AHEAD = Line("a", "ahead", "error", 1e-12, "peer", 1e-6, peer_caveat="counts rows in public", goal="2 ×", goal_met=True)
ALONE = Line("a", "alone", "CPU s", 1.0)
SILENT = Line("a", "silent", "CPU s", math.nan, note="more than 60 | CPU <seconds>")
EVERY = [ALONE, AHEAD, SHORT, LOST, ALONE_AND_SHORT, SILENT, LOST_RATE]


def test_what_is_lost_comes_first_then_what_is_short_of_its_goal() -> None:
    found = [line.job for line in lines.sort_lines(EVERY)]
    assert found == ["lost rate", "lost", "silent", "short", "alone and short", "ahead", "alone"]


@pytest.mark.parametrize(
    "ours, theirs, larger, ratio",
    [
        (2.0, 3.0, False, 1.5),
        (2.0, 3.0, True, 2 / 3),
        (0.0, 3.0, False, math.inf),
        (3.0, 0.0, False, 0.0),
        (0.0, 0.0, False, 1.0),
        (1.0, 1 + 1e-9, True, 1.0),
        (1.0, 0.999, False, 0.999),
    ],
)
def test_more_than_one_is_ahead(ours: float, theirs: float, larger: bool, ratio: float) -> None:
    found = Line("a", "j", "m", ours, "peer", theirs, larger_is_better=larger)
    assert found.ratio == ratio
    assert found.is_loss == (ratio < 1)


def test_a_ratio_is_never_rounded_across_one() -> None:
    barely = Line("a", "j", "CPU s", 1.0, "peer", 0.9996)
    assert lines.ratio_text(barely) == "0.9996 ×"
    assert lines.ratio_text(Line("a", "j", "CPU s", 1.0, "peer", 1.0)) == "equal"
    assert lines.ratio_text(Line("a", "j", "CPU s", 1.0, "peer", 19.84)) == "19.8 ×"


def test_rows_come_back_as_they_were_written(tmp_path: Path) -> None:
    lines.write_results(tmp_path / "rows.json", EVERY, ["a note"])
    assert repr(lines.read_results(tmp_path / "rows.json")) == repr(lines.AreaResults(tuple(EVERY), ("a note",)))
    lines.write_results(None, EVERY)


def test_tables_say_the_same_in_their_order() -> None:
    text, markdown = lines.text_table(EVERY).splitlines(), lines.markdown_table(EVERY).splitlines()
    assert text[0].split()[:2] == ["job", "measured"]
    jobs = [line.job for line in lines.sort_lines(EVERY)]
    assert [row.split("  ")[0] for row in text[1:]] == jobs
    cells = [row.strip("| ").split(" | ") for row in markdown[2:]]
    assert [row[0] for row in cells] == jobs
    assert {len(row) for row in cells} == {len(lines.COLUMN_TITLES)}
    assert [row[5] for row in cells[:3]] == ["**0.25 ×**", "**0.5 ×**", "**no answer**"]
    ahead = next(row for row in cells if row[0] == "ahead")
    assert ahead[3:] == ["1e-06†", "peer: counts rows in public", "1e+06 ×", "2 × met"]


def example_page(**changed: Any) -> str:
    done = page.AreaRun(
        "Noise", "python benchmarks/noise.py", lines.AreaResults(tuple(EVERY), ("a peer is missing",)), 90.0
    )
    failed = page.AreaRun(
        "Local", "python benchmarks/local.py", lines.AreaResults(()), 3.0, "ended with code 1: <boom>"
    )
    conditions = page.RunConditions("2026-01-02", page.describe_machine(), 0.25, 31.4, **changed)
    return str(page.results_page(conditions, [done, failed], {"opendp": "opendp 0.16.0"}))


def test_the_page_shows_losses_before_anything_else() -> None:
    text = example_page()
    first = text.split("\n## ")[1]
    assert first.startswith("Where we are behind")
    assert "Of 7 rows we are behind in 3 and short of the goal in 2 more." in first
    assert re.findall(r"^\| noise: ([\w ]+) \|", first, re.MULTILINE) == [
        line.job for line in lines.sort_lines(EVERY) if line.is_loss or line.goal_met is False
    ]


def test_the_page_names_what_is_not_whole_and_the_machine_s_class_alone() -> None:
    text = example_page(size_note="**A trial.**")
    assert text.count("ended with code 1: &lt;boom>") == 2
    assert "on 2026-01-02 in 31 minutes" in text and "a peer is missing" in text and "**A trial.**" in text
    assert f"{os.cpu_count()} cores" in text and platform.python_version() in text
    assert "more than 60 / CPU &lt;seconds>" in text
    assert not platform.node() or not re.search(rf"\b{re.escape(platform.node())}\b", text)


def test_every_script_is_an_area_and_every_peer_has_pins() -> None:
    scripts = {path.stem for path in BENCHMARKS.glob("*.py")} - NOT_AREAS
    assert {area.name for area in everything.AREAS} == scripts
    named = {name for area in everything.AREAS for name in area.peers}
    assert named == {path.stem for path in (BENCHMARKS / "peers").glob("*.txt")} == set(everything.SHOWN_VERSIONS)
    for name in named:
        pinned = environments.pins_file(name).read_text(encoding="utf-8").splitlines()
        assert all(re.fullmatch(r"[\w.-]+==[\w.]+", line) for line in pinned), name
        assert set(everything.SHOWN_VERSIONS[name]) <= set(environments.pinned_versions(name))


def test_a_peer_that_cannot_be_installed_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "peers").mkdir()
    (tmp_path / "peers" / "nobody.txt").write_text("nobody==1\n")
    monkeypatch.setattr(environments, "BENCHMARKS", tmp_path)
    monkeypatch.setattr(environments, "PEERS", tmp_path / ".peers")
    monkeypatch.setattr(environments, "candidate_pythons", lambda: iter(["/there/is/no/python"]))
    assert environments.make_environment("nobody", time.monotonic() + 60) == "FileNotFoundError"
    monkeypatch.setattr(environments, "candidate_pythons", lambda: iter([sys.executable]))
    assert environments.make_environment("nobody", time.monotonic()) == "no time was left"
    assert not environments.peer_python("nobody").exists()
    monkeypatch.setattr(everything, "SHOWN_VERSIONS", {"nobody": ("nobody",)})
    monkeypatch.setattr(everything, "INSTALL_MINUTES", 0.0)
    texts, available = everything.prepare_peers(["nobody"])
    assert (texts, available) == ({"nobody": "not installed here, no time was left (nobody 1)"}, set())


def test_peers_that_are_missing_are_left_out() -> None:
    (audits,) = (area for area in everything.AREAS if area.name == "audits")
    (noise,) = (area for area in everything.AREAS if area.name == "noise")
    assert audits.peer_arguments({"opendp"}) == ["--peer", f"opendp={environments.peer_python('opendp')}"]
    assert audits.peer_arguments(set()) == []
    assert noise.peer_arguments(set()) == ["--peers", sys.executable]


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """An area whose script is the text."""
    monkeypatch.setattr(everything, "BENCHMARKS", tmp_path)
    monkeypatch.setattr(everything, "RESULTS", tmp_path)

    def area(text: str) -> Any:
        (tmp_path / "tried.py").write_text(text)
        return everything.Area("tried", "--some words~here")

    return area


def test_an_area_that_fails_or_takes_too_long_is_reported(script: Any) -> None:
    rows = "import sys, json; open(sys.argv[-1], 'w').write(json.dumps({'lines': [], 'notes': sys.argv[1:3]}));"
    whole = everything.run_area(script(rows), "small", set(), 60.0)
    assert (whole.failure, whole.results.notes) == ("", ("--some", "words here"))
    assert whole.command == "python benchmarks/tried.py --some 'words here'"
    broken = everything.run_area(script(f"{rows} raise SystemExit('out of luck')"), "small", set(), 60.0)
    assert broken.failure == "ended with code 1: out of luck"
    assert broken.results.notes  # lines that were written before the failure are kept
    silent = everything.run_area(script("pass"), "small", set(), 60.0)
    assert silent.failure.startswith("wrote no results")
    slow = everything.run_area(script("import time; time.sleep(600)"), "small", set(), 1.0)
    assert slow.failure.startswith("stopped after")


def test_a_missing_number_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert lines.exit_status([ALONE, AHEAD, LOST]) == 0
    assert lines.exit_status([ALONE, SILENT]) == 1
    assert "no answer: silent, CPU s: more than 60 | CPU <seconds>" in capsys.readouterr().err
    assert lines.exit_status([Line("a", "infinite", "error", math.inf)]) == 1
    assert lines.exit_status([]) == 1


def test_the_site_s_page_was_written_by_a_run() -> None:
    text = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    assert text.startswith("# Benchmarks\n\nWritten by `make bench` on 20")
    headings = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert headings[0] == "Where we are behind or short of the goal" and headings[-1] == "The other tools"
    assert headings[1:-1] == [area.title for area in everything.AREAS if "usual" in area.sizes]
