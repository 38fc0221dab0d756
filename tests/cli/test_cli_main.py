"""The command as a whole: help, version, exit codes, one line for whatever goes wrong."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

import pytest

from tightrope import __version__, errors
from tightrope.cli.errors import Interrupted, exit_on_error, explain_error
from tightrope.cli.main import app

COMMANDS = ("init", "plan", "release", "noise", "account")


def tightrope(*words: str, **settings: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tightrope", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, encoding="utf-8", **settings)  # type: ignore[call-overload]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_shows_an_example_and_json(run, command):
    shown = run(command, "--help")
    assert shown.code == 0
    assert "Example" in shown.out
    assert f"tightrope {command} " in shown.out
    assert "--json" in shown.out


def test_help_lists_every_command(run):
    for words in ((), ("--help",), ("-h",)):
        shown = run(*words)
        assert shown.code == 0
        assert all(f"  {command} " in shown.out for command in COMMANDS)
        assert "Example" in shown.out
        assert "..." not in shown.out.replace("ARGS]...", "")  # no summary is cut off


def test_version(run):
    assert run("--version").out == f"tightrope {__version__}\n"


def test_nonsense_is_one_line(run):
    run("nois").refused_with("nois", "noise", "try 'tightrope --help'")
    run("noise", "--epsilonn", "1").refused_with("--epsilonn", "--epsilon", "try 'tightrope noise --help'")
    run("release").refused_with("PLAN")
    run("release", "a.toml", "b.toml").refused_with("b.toml")
    run("--nonsense").refused_with("--nonsense")


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.InputError("x", 1, "y"), 2),
        (errors.PlanError("x", 1, "y"), 2),
        (errors.SchemaError("x", "two\nlines", "y"), 2),
        (errors.InsufficientBudgetError("no"), 3),
        (errors.EngineError("two\nlines \x1b[31m"), 1),
        (errors.MissingExtraError("jinja2", "release"), 1),
        (KeyError("a value from the data"), 1),
        (OSError(28, "No space left on device", "report.html"), 1),
    ],
)
def test_every_error_has_its_code_and_one_printable_line(error, code):
    found, text = explain_error(error)
    assert found == code
    assert text.isprintable()


def test_messages_of_other_libraries_are_not_shown():
    """They may quote the data."""
    assert "Anna" not in explain_error(KeyError("Anna"))[1]
    assert "--debug" in explain_error(KeyError("Anna"))[1]


def test_debug_shows_the_traceback_wherever_it_stands(run):
    with pytest.raises(errors.PlanError):
        app(["release", "nowhere.toml", "--debug"])
    shown = tightrope("--debug", "release", "nowhere.toml")
    assert "Traceback" in shown.stderr


def test_help_is_fast_and_loads_nothing_heavy():
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert tightrope("--help").returncode == 0
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert (after.ru_utime - before.ru_utime) + (after.ru_stime - before.ru_stime) < 0.6
    heavy = ("numpy", "scipy", "ibis", "duckdb", "matplotlib", "pandas", "rich")
    code = f"import sys, tightrope.cli.main; print([m for m in {heavy} if m in sys.modules])"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert loaded.stdout.strip() == "[]"


def test_module_and_exit_code_outside_python():
    shown = tightrope("noise", "--epsilon", "nan", "--delta", "1e-6")
    assert (shown.returncode, shown.stdout) == (2, "")
    assert shown.stderr.count("\n") == 1
    assert "epsilon='nan'" in shown.stderr


def test_a_reader_who_stops_early_is_no_error():
    command = f"{sys.executable} -m tightrope noise --epsilon 1 --delta 1e-6 --json | head -1"
    done = subprocess.run(["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True, check=False)
    assert done.stderr == ""


def test_letters_that_the_terminal_lacks_lose_nothing(folder: Path):
    shown = tightrope("plan", str(folder / "plan.toml"), env={"PYTHONIOENCODING": "ascii", "PATH": ""})
    assert shown.returncode == 0
    assert "Privacy guarantee" in shown.stdout


LOADING = """
import sys
class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == {name!r}:
            raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupt())
sys.argv = ["tightrope", "plan", {plan!r}]
from tightrope.__main__ import main
main()
"""


@pytest.mark.parametrize("name", ["typer", "tightrope.cli.main", "tightrope.release.plan_file", "numpy"])
def test_ctrl_c_while_libraries_load_is_one_line(folder: Path, name: str):
    code = LOADING.format(name=name, plan=str(folder / "plan.toml"))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "tightrope: interrupted; nothing was spent\n")


def test_what_several_places_know_of_a_signal_is_said_once(capsys):
    stop = Interrupted("interrupted; nothing was spent")
    stop.add_note("nothing was spent")
    with pytest.raises(SystemExit) as end, exit_on_error(debug=False):
        raise stop
    assert end.value.code == 130
    assert capsys.readouterr().err == "tightrope: interrupted; nothing was spent\n"


def test_ctrl_c_anywhere_else_is_not_silent(run, monkeypatch):
    """No claim about the budget is made where nobody knows it."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("tightrope.cli.ledger._open_datasets", interrupt)
    shown = run("ledger", "show", "a.ledger")
    assert (shown.code, shown.err) == (130, "tightrope: interrupted\n")


@pytest.mark.parametrize("words", [["ledger", "show", "a", "9" * 5_000], ["plan", "9" * 5_000], ["9" * 5_000]])
def test_a_message_about_a_very_long_argument_is_short(run, words):
    outcome = run(*words)
    assert outcome.code in (1, 2)
    assert outcome.err.startswith("tightrope: ") and len(outcome.err) < 700 and "999..." in outcome.err


@pytest.mark.parametrize("number", [f"'{'1' * 5_000}'", "1" * 4_000, "1e-320", "nan"])
def test_a_number_in_a_plan_that_is_out_of_range_is_refused(run, folder, number):
    text = (folder / "plan.toml").read_text(encoding="utf-8")
    (folder / "plan.toml").write_text(text.replace("[budget]", f"[budget]\nbias_check = {number}"), encoding="utf-8")
    run("plan", folder / "plan.toml").refused_with("bias_check")
