"""Answers say what they are, names command no terminal, and what is wrong is told without a value of the data."""

from __future__ import annotations

import json
import re
from decimal import localcontext

import numpy as np
import pandas as pd
import pytest

import tightrope as tr
from tightrope import reporting
from tightrope.documents.numbers import one_in_text, percent_text, significant_text
from tightrope.documents.release import PLANNED, PlannedRelease
from tightrope.errors import InputError, PlanError
from tightrope.reporting.wording.answers import Row, rounded_answer_row

pytestmark = pytest.mark.usefixtures("planned_once")

BUDGET = tr.Budget(epsilon=4, delta=1e-6)
EVIL = "ci\x1b[31mty\u202e\n"


@pytest.fixture(scope="module")
def flights() -> pd.DataFrame:
    rng = np.random.default_rng(3)
    return pd.DataFrame({
        "tail": np.repeat(np.arange(200), 40), EVIL: rng.choice(["a", "b"], 8000), "delay": rng.integers(0, 90, 8000),
    })  # fmt: skip


@pytest.fixture(scope="module")
def answers(flights) -> tr.release.Answers:
    session = tr.Session(
        flights, privacy_unit=("tail", "an aircraft"), max_rows=12, max_rows_per_group=3, budget=BUDGET
    )
    asked = [tr.count(max_rows_per_group=12), tr.sum("delay", bounds=(0, 100), by=EVIL), tr.count(name="one each")]
    return session.plan(asked).release()


def words(page: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", page.partition("<body>")[2]).split())


def test_a_bounded_count_says_so_everywhere(answers):
    count, total, one = answers.result().answers
    assert count.over == one.over.replace("3", "12") == "at most 12 rows per aircraft"
    assert total.over == "at most 12 rows per aircraft, at most 3 per group"
    assert (count.max_rows, total.max_rows_per_group, one.max_rows) == (12, 3, 3)
    assert any("not the whole table" in note for note in count.notes)
    assert any("max_rows_per_group = 3 limits it" in note for note in one.notes)
    said = words(reporting.html(answers.result()))
    assert "The number of rows, using at most 12 rows per aircraft." in said
    assert "over the whole table." not in said


def test_a_plan_says_the_same(flights):
    plan = tr.Session(flights, privacy_unit="tail", max_rows=12, budget=BUDGET).plan([tr.count()])
    assert "using at most 12 rows per person" in str(plan)
    assert PLANNED.parse_json(json.dumps(plan.to_data()), PlannedRelease) == plan.document()


def test_only_a_human_is_addressed(answers, flights):
    said = words(reporting.html(answers.result()))
    assert "whether an aircraft is in the data" in said and "with the data of an aircraft as without" in said
    assert "at most 12 rows per aircraft" in said
    assert not re.search(r"\byou\b|\byour\b|\bpeople\b|\bperson\b", said.partition(" Limitations Intervals ")[0])
    assert not re.search(r"\byou\b|\byour\b|\bpeople\b", said)  # nor further down, where the curves are
    human = tr.Session(flights, privacy_unit="tail", max_rows=12, budget=BUDGET).plan([tr.count()]).release()
    assert "whether you are in the data" in words(reporting.html(human.result()))


@pytest.mark.parametrize("means", ["aircraft", "", "an \x1b[2J", "a ", 3, None, "a" * 99, "a b\nc"])
def test_what_a_person_means_is_a_noun_with_its_article(flights, means):
    with pytest.raises(InputError, match="privacy_unit"):
        tr.Session(flights, privacy_unit=("tail", means), max_rows=1, budget=BUDGET)


def test_no_name_commands_a_terminal(answers, flights):
    plan = tr.Session(flights, privacy_unit=EVIL, max_rows=1, budget=BUDGET).plan([tr.count(by="tail", name=EVIL)])
    assert "\x1b" not in str(plan) and "\u202e" not in str(plan) and "ci�[31mty��" in str(plan)
    page = reporting.html(answers.result())
    assert "\x1b" not in page and "\u202e" not in page


@pytest.mark.parametrize(
    ("row", "decimals", "said"),
    [
        ((100, 88, 112), 0, ("100", "± 12", "88", "112")),
        ((10.04, 9.99, 10.09), 1, ("10.0", "± 0.1", "9.9", "10.1")),
        ((0.2, 0.0, 0.5), 1, ("0.2", "+0.3 −0.2", "0.0", "0.5")),
        ((None, 0, 10), 0, ("suppressed", "–", "0", "10")),
    ],
)
def test_plus_minus_agrees_with_from_and_to(row, decimals, said):
    text = rounded_answer_row(Row((), *row), decimals)
    assert (text.value, text.plus_minus_text, text.lower, text.upper) == said


def test_no_decimal_context_makes_a_promise_look_stronger():
    usual = percent_text(0.5934), one_in_text(3.3e-7), significant_text(0.00012345, 3), significant_text(12345.6, 3)
    with localcontext() as context:
        context.prec = 1
        assert (
            percent_text(0.5934),
            one_in_text(3.3e-7),
            significant_text(0.00012345, 3),
            significant_text(12345.6, 3),
        ) == usual


def test_integer_keys_stay_integers_beside_a_missing_one():
    table = pd.DataFrame({"k": pd.array([1, 2, None] * 400, dtype="Int64"), "b": [True, False, True] * 400})
    session = tr.Session(table, privacy_unit=None, budget=BUDGET)
    by_number, by_truth = session.plan([tr.count(by="k"), tr.count(by="b")]).release()
    assert [str(by_number.to_pandas()[name].dtype) for name in ("k", "value")] == ["Int64", "int64"]
    assert list(by_number.to_pandas()["k"].dropna()) == [1, 2]
    assert str(by_truth.to_pandas()["b"].dtype) == "bool"


SECRET = pd.Series(["Anna Schmidt", "Bo Li"], name="city")


@pytest.mark.parametrize(
    "ask",
    [
        lambda: tr.count(by="city", keys=SECRET),
        lambda: tr.count(by="city", keys={"city": SECRET}),
        lambda: tr.count(by=SECRET),
        lambda: tr.mean(SECRET, bounds=(0, 1)),
        lambda: tr.mean("x", bounds=SECRET),
        lambda: tr.Session(SECRET.to_frame(), privacy_unit=SECRET, budget=BUDGET),
        lambda: tr.Session(SECRET.to_frame(), privacy_unit=None, budget=SECRET),
        lambda: tr.Session(SECRET.to_frame(), privacy_unit=None, budget=BUDGET).plan(SECRET),
    ],
)
def test_no_error_quotes_a_column(ask):
    with pytest.raises(InputError, match="expected") as raised:
        ask()
    assert "Anna" not in str(raised.value)


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda s: tr.count(by=["g", "k"], keys=[[["a"], 1]]), "none of them a list itself"),
        (lambda s: tr.count(by="g", keys=[(("a", [1]),)]), "none of them a list itself"),
        (lambda s: tr.count(by=["g", "k"], keys={"g": range(20_000), "k": range(20_000)}), "400,000,000 combinations"),
        (lambda s: s.plan([tr.sum("x", bounds=(0, 1e-310))]), "bounds of sum_x to be a range that reaches to 1e-250"),
        (
            lambda s: s.plan([tr.mean("x", bounds=(0, 5e-324))]),
            "bounds of mean_x to be a range that reaches to 1e-250",
        ),
        (lambda s: s.plan([tr.count(name=str(i)) for i in range(300)]), "questions to be at most 100"),
        (lambda s: tr.Budget(), "budget to be an epsilon, a total_variation"),
    ],
)
def test_what_was_raw_teaches(ask, said):
    session = tr.Session(pd.DataFrame({"x": [1.0]}), privacy_unit=None, budget=BUDGET)
    with pytest.raises(InputError, match=re.escape(said)):
        ask(session)


def test_a_budget_that_nothing_keeps_teaches():
    budget = tr.Budget(attack_success=0.5, delta=1e-6)
    session = tr.Session(pd.DataFrame({"x": [1.0]}), privacy_unit=None, budget=budget)
    for question in (tr.mean("x", bounds=(0, 1)), tr.count()):
        with pytest.raises(InputError, match=r"attack_success = 0\.5"):
            session.plan([question])


@pytest.mark.parametrize(
    ("budget", "question", "said"),
    [
        ("", 'kind = "count"', "epsilon = 1 and delta = 1e-8"),
        ("epsilon = 1\ndelta = 1e-8", 'kind = "max"', "is not available"),
        ("epsilon = 1\ndelta = 1e-8", 'kind = "meen"', "did you mean 'mean'"),
    ],
)
def test_a_plan_file_teaches_in_its_own_words(tmp_path, budget, question, said):
    from tightrope.release.plan_file import load_plan_file

    plan = tmp_path / "plan.toml"
    plan.write_text(
        f'[source]\npath = "a.csv"\n[privacy_unit]\neach_row = true\n[budget]\n{budget}\n[[question]]\n{question}\n',
        encoding="utf-8",
    )
    with pytest.raises(PlanError, match=re.escape(said)):
        load_plan_file(plan)
