"""The title of an answer states the bound on a person's rows, wherever it is printed."""

from __future__ import annotations

import io
import json
from typing import Any

import pandas as pd
import pytest
from msgspec import structs

import tightrope as tr
from tightrope.documents.release import BiasPart, displayed_title, results_csv
from tightrope.release.answers import Answers
from tightrope.release.plan_text import bias_check_lines
from tightrope.reporting import html
from tightrope.reporting.wording.answers import shown_answers
from tightrope.reporting.wording.sentences import answer_heading, bias_statements, left_out_text

BUDGET = tr.Budget(epsilon=8, delta="1e-8")
COUNTED = "using at most 3 rows per aircraft"


def flights() -> pd.DataFrame:
    return pd.DataFrame({"tail": [i // 20 for i in range(4_000)], "year": [2000 + i % 4 for i in range(4_000)]})


@pytest.fixture(scope="module")
def answers() -> Answers:
    session = tr.Session(flights(), privacy_unit=("tail", "an aircraft"), max_rows=3, budget=BUDGET)
    years = [2000, 2001, 2002, 2003]
    return session.plan([
        tr.count(name="rows"),
        tr.count(by="year", keys=years, title="Flights by year", name="titled"),
        tr.count(by="year", keys=years, max_rows_per_group=1, max_groups=2, name="spread"),
        tr.count_distinct(name="planes"),
        tr.count_distinct(by="year", keys=years, name="in_three"),
        tr.count_distinct(by="year", keys=years[:3], name="in_all"),
        tr.count_distinct("year", name="years"),
    ], bias_check="0.02").release()  # fmt: skip


TITLES = {
    "rows": f"Number of rows ({COUNTED})",
    "titled": f"Flights by year ({COUNTED})",
    "spread": "Number of rows by year (using at most 2 rows per aircraft, 1 per group)",
    "planes": "Aircraft count",
    "in_three": "Aircraft count by year (each aircraft counts in at most 3 groups)",
    "in_all": "Aircraft count by year",
    "years": f"Number of different values of year ({COUNTED})",
}


def test_only_answers_that_may_leave_rows_out_say_so_in_their_notes(answers: Answers) -> None:
    for answer in answers:
        noted = any("additional rows are left out" in note for note in answer.document.notes)
        assert noted == (answer.name not in ("planes", "in_all")), answer.name


def test_every_output_has_the_title_with_the_bound(answers: Answers) -> None:
    result = answers.result()
    page, table = html(result), pd.read_csv(io.StringIO(answers.to_csv()))
    for answer, shown in zip(answers, shown_answers(result), strict=True):
        title = TITLES[answer.name]
        assert (answer.title, answer.document.label, answer_heading(shown)) == (title, title, title)
        assert title in repr(answer)
        assert title in answer._repr_html_()
        assert f">{title}</h2>" in page
        assert f">{title}</a>" in page
        assert set(table[table["question"] == answer.name]["statistic"]) == {title}


def test_a_plan_says_it_before_the_release(answers: Answers) -> None:
    del answers
    session = tr.Session(flights(), privacy_unit=("tail", "an aircraft"), max_rows=3, budget=BUDGET)
    text = str(session.plan([tr.count()]))
    assert f"count: Number of rows ({COUNTED})" in text
    assert text.count("session.suggest_max_rows") == 1


def test_nothing_is_added_if_each_row_is_a_person() -> None:
    session = tr.Session(flights(), privacy_unit=None, budget=BUDGET)
    plan = session.plan([tr.count(by="year", keys=[2000])], bias_check="0.02")
    assert plan.release()[0].title == "Number of rows by year"
    assert "suggest_max_rows" not in str(plan)
    assert bias_check_lines(plan.document().bias_check) == [
        "Limits cause no bias in this plan: no row is left out, and no value is clamped."
    ]


def test_a_document_without_labels_states_the_bound_as_well(answers: Answers) -> None:
    result = answers.result()
    former = structs.replace(result, answers=tuple(structs.replace(one, label="") for one in result.answers))
    assert displayed_title(former.answers[0]) == "Number of rows (at most 3 rows per aircraft)"
    assert displayed_title(former.answers[3]) == TITLES["planes"]
    assert "Number of rows (at most 3 rows per aircraft)" in results_csv(former)
    partial: dict[str, Any] = json.loads(json.dumps({"answers": [{"question": "mean of x", "over": "at most 2 rows"}]}))
    assert ">Mean of x (at most 2 rows)</h2>" in html(partial)


def bias(share: tuple[float, float, float] | None, statement: str, kind: Any = "left out") -> BiasPart:
    value, lower, upper = share or (None, None, None)
    return BiasPart(
        answers=("rows",), kind=kind, column=None, share=value, lower=lower, upper=upper, statement=statement
    )


def test_the_share_left_out_is_stated_next_to_the_answer(answers: Answers) -> None:
    result = structs.replace(answers.result(), bias=(bias((0.85, 0.84, 0.86), "about 85 % of the rows"),))
    said = "About 85 % of its rows were left out (84 % to 86 %)."
    assert left_out_text(result, "rows") == said
    assert left_out_text(result, "titled") == ""
    assert html(result).count(said) == 1
    unknown = structs.replace(answers.result(), bias=(bias((0.4, 0.1, 0.7), ""), bias(None, "", "below")))
    assert left_out_text(unknown, "rows") == "The noise is too large to say how many of its rows were left out."


def test_estimates_that_say_nothing_are_one_line(answers: Answers) -> None:
    kinds = ("below", "above", "missing")
    silent = tuple(bias(None, statement, kind) for statement in ("", "the noise is too large to say") for kind in kinds)
    alone = bias_statements(structs.replace(answers.result(), bias=silent))
    assert alone == [("The noise is too large to say how many rows or values this concerns.", "rows")]
    both = structs.replace(answers.result(), bias=(*silent, bias((0.85, 0.84, 0.86), "about 85 % of the rows")))
    assert [statement for statement, _ in bias_statements(both)] == [
        "About 85 % of the rows.",
        "The noise is too large to say how many other rows or values this concerns.",
    ]
