"""tightrope init --interactive: a plan from a few answers, and from the schema alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from tightrope.cli.init import collect_settings
from tightrope.cli.main import app
from tightrope.errors import InputError
from tightrope.release.plan_file import load_plan_file
from tightrope.release.plan_sections import toml_string
from tightrope.tables.schema import Column, Schema

SCHEMA = Schema((Column("user", "integer"), Column("city", "text"), Column("age", "integer"), Column("l", "other")))


def said(*answers: str):
    """Answers one after the other; an empty one takes the default."""
    left = iter(answers)
    asked: list[tuple[str, tuple[str, ...]]] = []

    def ask(words: str, choices, default: str) -> str:
        asked.append((words, tuple(choices)))
        return next(left) or default

    return ask, asked


def test_answers_become_a_plan_that_runs(folder: Path):
    target = folder / "asked.toml"
    words = ["init", str(folder / "visits.parquet"), "--interactive", "--out", str(target)]
    shown = CliRunner().invoke(app, words, input="user\n2\n\ncity\nage\n0\n120\n")
    assert shown.exit_code == 0
    assert "Oslo" not in target.read_text(encoding="utf-8")
    file = load_plan_file(target)
    assert (file.document.privacy_unit.column, file.document.privacy_unit.max_rows) == ("user", 2)
    assert [question.name for question in file.document.make_queries()] == ["total", "count_by_city", "mean_age"]
    assert file.make_plan().questions[-1].name in {"total", "count_by_city", "mean_age"}


def test_nothing_is_a_person_a_row_and_no_further_question():
    ask, asked = said("", "", "")
    person, chosen = collect_settings(SCHEMA, ask, None, each_row=False)
    assert (person, chosen.rows, chosen.questions) == (None, 1, ())
    assert asked[0][1] == ("user", "city", "age")
    assert asked[-1][1] == ("user", "age")


def test_what_a_person_is_and_a_wrong_answer_is_asked_again():
    ask, asked = said("nobody", "user", "many", "0", "3", "an aircraft", "", "age", "low", "0", "99.5")
    person, chosen = collect_settings(SCHEMA, ask, None, each_row=False)
    assert (person, chosen.rows, chosen.means) == ("user", 3, "an aircraft")
    assert chosen.questions == ({"kind": "mean", "column": "age", "bounds": (0.0, 99.5)},)
    assert "not from the data" in " ".join(words for words, _ in asked)
    assert "user" not in asked[-4][1]


def test_a_range_that_is_none_and_endless_nonsense_are_refused():
    with pytest.raises(InputError, match="bounds"):
        collect_settings(SCHEMA, said("", "age", "5", "5")[0], None, each_row=True)
    with pytest.raises(InputError, match="interactive"):
        collect_settings(SCHEMA, said(*["nobody"] * 9)[0], None, each_row=False)


def test_without_anybody_to_ask_it_says_so(folder: Path):
    words = ["init", str(folder / "visits.parquet"), "--interactive", "--out", str(folder / "new.toml")]
    shown = CliRunner().invoke(app, words, input="")
    assert shown.exit_code == 2
    assert "standard input" in shown.stderr
    assert not (folder / "new.toml").exists()


def test_words_that_a_plan_refuses_are_asked_again():
    ask, asked = said("user", "1", "1", "patient", "a" + "n" * 70, "a patient\x1b", "a patient", "", "")
    _, chosen = collect_settings(SCHEMA, ask, None, each_row=False)
    assert chosen.means == "a patient"
    assert "such as: a patient" in asked[2][0]
    ask, _ = said("user", "1000000001", "5", "", "", "")
    assert collect_settings(SCHEMA, ask, None, each_row=False)[1].rows == 5


@pytest.mark.parametrize("means", ["1", "patient", "a patient\n", "an " + "x" * 62])
def test_a_plan_says_in_words_what_a_person_may_be(folder: Path, means: str):
    text = (folder / "plan.toml").read_text(encoding="utf-8")
    (folder / "plan.toml").write_text(
        text.replace("max_rows = 3", f"max_rows = 3\nnoun = {toml_string(means)}"), encoding="utf-8"
    )
    with pytest.raises(InputError, match=r'noun to be a noun with "a" or "an" before it.*"a patient"') as refused:
        load_plan_file(folder / "plan.toml")
    assert "regex" not in str(refused.value)
