"""What somebody says wrong who uses this for the first time: each is answered with what to say instead."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest
from msgspec import structs

import tightrope as tr
from tightrope.documents.release import PlannedCosts, PlannedCount
from tightrope.errors import InputError
from tightrope.release.bias_check import (
    NoisyCount,
    _query_group_bias,
    _share_statement,
    diagnostic_counts_of,
    diagnostic_name,
    used_rows_key,
)
from tightrope.release.plan_text import bias_check_lines, shared_answer_notes
from tightrope.reporting.wording.partial_release import PartialBias, PartialRelease
from tightrope.reporting.wording.sentences import bias_statements
from tightrope.tables.expressions.parsing import parse_expression

pytestmark = pytest.mark.usefixtures("planned_once")

BUDGET = tr.Budget(epsilon=1, delta=1e-8)
VISITS = pd.DataFrame({
    "Patient ID": [1.0, 2.0, 3.0],
    "Visit Date": ["2024-01-01", "2024-01-02", "2024-02-01"],
    "urgent": ["yes", "no", "yes"],
    "age": [3.0, 40.0, 70.0],
})  # fmt: skip


def visits(**settings: object) -> tr.Session:
    said = {"privacy_unit": "Patient ID", "max_rows": 2, "budget": BUDGET} | settings
    return tr.Session(VISITS, **said)  # type: ignore[arg-type]


def remedy_of(*questions: object) -> str:
    with pytest.raises(InputError) as found:
        visits().plan(list(questions))  # type: ignore[arg-type]
    return str(found.value)


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ({"budget": BUDGET}, "missing 1 required keyword-only argument: 'privacy_unit'"),
        ({"privacy_unit": "Patient ID"}, "missing 1 required keyword-only argument: 'budget'"),
        ({"privacy_unit": "Patient ID", "budget": BUDGET, "row_per_person": 5}, "unexpected keyword argument"),
    ],
)
def test_parameters_that_are_missing_or_misspelt_are_named(said: dict[str, object], told: str) -> None:
    with pytest.raises(TypeError, match=told):
        tr.Session(VISITS, **said)  # type: ignore[arg-type]


def test_a_session_says_what_it_promises_and_to_whom() -> None:
    assert repr(visits()) == "<Session: rows with the same 'Patient ID' are a person; epsilon 1 at delta 1e-8>"
    assert repr(visits(privacy_unit=None, max_rows=None)) == "<Session: each row is a person; epsilon 1 at delta 1e-8>"
    plan = visits().plan([tr.count(), tr.mean("age", bounds=(0, 100))], budget_fraction="0.5")
    assert repr(plan).splitlines()[0] == "<Plan: 2 questions; epsilon 0.5 at delta 5e-9"


def test_a_count_that_is_shown_by_its_size_is_never_said_to_be_negative() -> None:
    asked = visits().plan([tr.count(by="urgent", keys=["yes"]), tr.count(by="urgent", name="found")])
    listed, found = asked.to_data()["answers"]
    assert [any("clamped at 0" in note for note in answer["notes"]) for answer in (listed, found)] == [True, False]


def test_the_proportion_of_a_number_is_told_how_a_condition_is_written() -> None:
    asked = visits().plan([tr.proportion("age"), tr.proportion("age > 3")])
    number, condition = (" ".join(answer["notes"]) for answer in asked.to_data()["answers"])
    assert "age is a number, not true or false" in number and "tr.proportion('age > 0')" in number
    assert "is a number" not in condition


def test_one_question_alone_is_told_to_stand_in_brackets() -> None:
    with pytest.raises(InputError, match=r"questions='number of rows'; put it in brackets"):
        visits().plan(tr.count())  # type: ignore[arg-type]


def test_the_share_of_a_text_is_told_to_compare() -> None:
    assert remedy_of(tr.proportion("urgent")).endswith("say what counts as true, as in urgent == 'yes'")


def test_days_that_are_texts_are_told_to_be_cast_whatever_the_source() -> None:
    assert "cast the column" in remedy_of(tr.count(by="month(column('Visit Date'))"))


@pytest.mark.parametrize("text", ["month(`Visit Date`)", "Visit Date > 3", "age > 3 and Visit Date > 3"])
def test_a_name_with_blanks_is_told_how_it_is_written(text: str) -> None:
    with pytest.raises(InputError, match=r'column\("my col"\)'):
        parse_expression(text)


@pytest.mark.parametrize("text", ["age IS NOT NULL", "age > 3 AND b", "not", "x in ['a b', 'c"])
def test_other_mistakes_are_not_taken_for_names_with_blanks(text: str) -> None:
    with pytest.raises(InputError) as found:
        parse_expression(text)
    assert "my col" not in str(found.value)


def test_noise_of_two_counts_that_are_alike_is_named_once() -> None:
    quartiles = tr.quantiles("age", [0.25, 0.75], bounds=(0, 100))
    data = visits().plan([tr.proportion("age > 18"), *quartiles]).to_data()
    share, median, _ = (answer["noise"] for answer in data["answers"])
    assert [noise["statistic"] for noise in share] == ["ones or zeros"]
    assert [noise["statistic"] for noise in median] == ["rows by block", "rows by cell"]


def test_a_quantile_says_which_share_lies_below() -> None:
    data = visits().plan(list(tr.quantiles("age", [0.25, 0.5], bounds=(0, 100)))).to_data()
    assert [answer["meaning"] for answer in data["answers"]] == [
        "The value that 25 % of all values do not exceed",
        "The value that half of all values do not exceed",
    ]


def test_a_median_says_what_it_is_without_rows() -> None:
    """The same words whatever the rows are: nothing more is read or paid for."""
    empty = pa.table({"x": pa.array([], pa.float64())})
    session = tr.Session(empty, privacy_unit=None, budget=tr.Budget(epsilon=1, delta=1e-8))
    answers = session.plan([tr.median("x", bounds=(0, 100))]).release()
    assert "few rows or none, an arbitrary value" in answers[0].document.meaning


def test_what_is_no_human_is_not_called_a_person_in_a_title() -> None:
    plan = visits(privacy_unit=("Patient ID", "an aircraft")).plan([tr.count_distinct(by="urgent")])
    assert plan.to_data()["answers"][0]["question"] == "aircraft count by urgent"
    assert visits().plan([tr.count_distinct()]).to_data()["answers"][0]["question"] == "number of persons"


def test_a_group_is_not_named_twice_for_its_quotes() -> None:
    asked = visits().plan([tr.count(by='column("Patient ID")>1'), tr.count(by={"old": "age > 65"})])
    said = [answer["question"] for answer in asked.to_data()["answers"]]
    assert said == ['number of rows by column("Patient ID")>1', "number of rows by old (age > 65)"]


def test_a_refusal_says_the_promise_as_it_was_said() -> None:
    with pytest.raises(
        tr.errors.InsufficientBudgetError, match=r"^epsilon 1 at delta 1e-8 is not enough for n within ± 0.5"
    ):
        visits().plan([tr.count(name="n")], margin_of_error={"n": 0.5})


@pytest.mark.parametrize(
    ("budget", "said"),
    [
        (tr.Budget(epsilon=1, delta="1e-6"), "epsilon 1 at delta 0.000001"),
        (
            tr.Budget(attack_success=0.55, delta="1e-8"),
            "total variation 0.10 and probability of infinite loss at most 1e-8",
        ),
        (
            tr.Budget(points=[(1, "1e-6"), ("0.5", "1e-3")]),
            "epsilon 1 at delta 0.000001 and epsilon 0.5 at delta 0.001",
        ),
    ],
)
def test_a_budget_reads_as_it_was_asked(budget: tr.Budget, said: str) -> None:
    assert str(budget) == said


def test_what_all_answers_have_in_common_is_said_once() -> None:
    plan = visits().plan([tr.count(), tr.mean("age", bounds=(0, 100))])
    assert str(plan).count("the additional rows are left out") == 1
    assert str(visits().plan([tr.count()])).count("the additional rows are left out") == 1
    assert shared_answer_notes(plan.document().answers[:1]) == []


def test_counts_of_what_was_left_out_that_tell_nothing_say_so() -> None:
    counts = tuple(PlannedCount(answers=(), statistic="rows, used", half_width_95=half) for half in (20.0, 20_680.0))
    header, useful, summary = bias_check_lines(PlannedCosts(budget_fraction="0.02", counts=counts))
    assert header.startswith("At most 2 % of this budget")
    assert useful.endswith("± 20")
    assert "1 other count of rows or values: ± 20,680. " in summary
    assert "bias_check = 0" in summary
    assert (
        "2 counts of rows or values: ± 20,680 or more"
        in bias_check_lines(
            PlannedCosts(budget_fraction="0.02", counts=(counts[1], structs.replace(counts[1], half_width_95=1e6)))
        )[-1]
    )
    assert "bias_check = 0" not in bias_check_lines(PlannedCosts(budget_fraction="0.02", counts=counts[:1]))[-1]


def test_the_index_that_pandas_writes_has_a_name(tmp_path: Path) -> None:
    pd.DataFrame({"city": ["Ulm", "Bern"], "age": [1, 2]}).to_csv(tmp_path / "p.csv")
    session = tr.Session(
        tmp_path / "p.csv", privacy_unit=None, budget=tr.Budget(epsilon=9000, delta=0), types={"age": "integer"}
    )
    assert list(session.schema.column_names) == ["index", "city", "age"]
    answers = session.plan([tr.sum("age", bounds=(0, 4)), tr.count(by="index", keys=["0", "1"])]).release()
    assert answers["sum_age"].rows[0]["value"] == pytest.approx(3, abs=0.1)
    assert [row["value"] for row in answers["count_by_index"].rows] == [1, 1]


def statements(used: NoisyCount, other: NoisyCount) -> list[str]:
    """What is said of a mean's rows and values where these were the noisy counts."""
    plan = visits().plan([tr.mean("age", bounds=(0, 100))], bias_check="0.02")
    query_group = plan.draft.query_groups[0]
    own = {
        diagnostic_name(tally): used if tally.counted_rows == "used" else other
        for tally in diagnostic_counts_of(query_group)
    }
    return [
        cost.statement
        for cost in _query_group_bias(
            query_group, own, {used_rows_key(query_group): (used, used)}, plan.draft.privacy_unit
        )
    ]


def test_what_the_noise_hides_is_not_said_as_a_number() -> None:
    rough = NoisyCount(15_500, -5_000, 36_000)
    for said in (
        statements(rough, rough),
        statements(NoisyCount(18_000, 9_000, 27_000), NoisyCount(15_000, 800, 29_000)),
    ):
        assert len(said) == 4
        assert set(said) == {""}


def test_what_the_noise_lets_through_is_said_with_its_interval() -> None:
    said = statements(NoisyCount(1_000, 995, 1_005), NoisyCount(30, 25, 35))
    assert said[0].startswith("at most 1.0 % of the rows were not used")
    assert said[1].startswith("about 3.0 % of the values of age were below 0 and clamped to 0 (2.4 % to 3.6 %)")


def test_a_share_that_may_be_none_or_all_is_said_by_its_other_end() -> None:
    used = NoisyCount(1_000, 995, 1_005)
    assert statements(used, NoisyCount(3, -2, 8))[1].startswith("at most 0.9 % of the values of age were below 0")
    assert statements(used, NoisyCount(-9, -14, -4))[1].startswith("at most 0.6 % of the values of age were below 0")
    assert statements(used, NoisyCount(1_009, 1_004, 1_014))[1].startswith("at least 99 % of the values of age")
    assert (
        statements(used, NoisyCount(1, 0, 2))[1] == "at most 0.3 % of the values of age were below 0 and clamped to 0"
    )


def test_a_count_that_may_be_none_is_said_by_its_other_end() -> None:
    assert _share_statement(None, "the values", NoisyCount(3, -2, 8)) == "at most 8 of the values"
    assert _share_statement(None, "the values", NoisyCount(-9, -14, -4)) == "at most 5 of the values"
    assert _share_statement(None, "the values", NoisyCount(9, 4, 14)) == "about 9 of the values (4 to 14)"


def test_rows_without_a_person_are_said_to_be_left_out_once_and_not_counted_among_the_unused() -> None:
    assert (
        "and rows without a valid person id, are not counted here"
        in statements(*[NoisyCount(1_000, 995, 1_005)] * 2)[0]
    )
    plan = visits().plan([tr.count(), tr.mean("age", bounds=(0, 100))])
    assert str(plan).count("Rows whose Patient ID is missing, or a float that is not an integer below 2^53") == 1
    alone = tr.Session(pd.DataFrame({"age": [1]}), privacy_unit=None, budget=tr.Budget(epsilon=1, delta="1e-8"))
    assert "NULL" not in str(alone.plan([tr.count()]))


def test_equal_sentences_about_what_was_left_out_are_one() -> None:
    costs = [PartialBias(statement="it is so", answers=names) for names in (("a",), ("b", "c"), ("a",))]
    assert bias_statements(PartialRelease(bias=(*costs, PartialBias(statement="other", answers=("d",))))) == [
        ("It is so.", "a, b, c"),
        ("Other.", "d"),
    ]
