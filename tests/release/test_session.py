"""From a table to answers: what is spent, what is shown, and what never depends on the data."""

from __future__ import annotations

import json
import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import tightrope as tr
from tightrope.documents.wording import DELTA_TOO_LARGE
from tightrope.errors import InputError, InsufficientBudgetError, PlanError, SchemaError

pytestmark = pytest.mark.usefixtures("planned_once")

BUDGET = tr.Budget(epsilon=4, delta=1e-6)


@pytest.fixture
def visits():
    rng = np.random.default_rng(7)
    people = np.repeat(np.arange(3000), rng.integers(1, 4, 3000))
    return pd.DataFrame({
        "person": people,
        "city": rng.choice(["Ulm", "Bern", "Graz", None], len(people), p=[0.5, 0.3, 0.15, 0.05]),
        "income": np.where(rng.random(len(people)) < 0.1, np.nan, rng.gamma(3, 12_000, len(people))),
    })  # fmt: skip


def session(visits, **changes):
    arguments = {"privacy_unit": "person", "max_rows": 3, "budget": BUDGET, **changes}
    return tr.Session(visits, **arguments)


def test_answers_are_near_the_truth_and_sorted(visits):
    questions = [
        tr.count(by="city"),
        tr.mean("income", bounds=(0, 100_000), by="city"),
        tr.sum("income", bounds=(0, 100_000)),
    ]
    answers = session(visits).plan(questions).release()
    counts = {row["city"]: row["value"] for row in answers["count_by_city"].rows}
    assert list(counts) == [None, "Bern", "Graz", "Ulm"]
    truth = visits["city"].value_counts()
    assert all(abs(counts[city] - truth[city]) < 80 for city in ("Bern", "Graz", "Ulm"))
    assert abs(counts[None] - visits["city"].isna().sum()) < 80
    income = visits["income"].clip(0, 100_000)
    assert answers["sum_income"].rows[0]["value"] == pytest.approx(income.sum(), rel=0.03)
    means = dict(zip(*(answers["mean_income_by_city"].to_pandas()[c] for c in ("city", "value")), strict=True))
    assert means["Ulm"] == pytest.approx(income[visits["city"] == "Ulm"].mean(), rel=0.1)


def test_a_second_plan_beyond_the_budget_is_refused_and_costs_nothing(visits):
    opened = session(visits)
    opened.plan([tr.count()], budget_fraction="0.7").release()
    with pytest.raises(InsufficientBudgetError, match=r"0\.3 is left"):
        opened.plan([tr.count()], budget_fraction="0.4").release()
    assert opened.spent["budget_fraction"] == "0.7"
    opened.plan([tr.count()], budget_fraction="0.3").release()
    assert opened.spent["points"] == [["4", "0.000001"]]


def test_plans_do_not_read_the_data(visits, monkeypatch):
    opened = session(visits)
    monkeypatch.setattr(type(opened._table), "collect_totals", lambda *_: pytest.fail("a plan read the data"))
    plan = opened.plan([tr.count(by="city"), tr.mean("income", bounds=(0, 1e5), by="city")])
    assert "Planning spends no budget" in str(plan)
    assert len(plan.table([tr.Budget(epsilon=e, delta=1e-6) for e in (0.5, 1)])) == 2


def test_plan_and_certificate_are_the_same_for_other_data(visits):
    questions = [tr.count(by="city"), tr.sum("income", bounds=(0, 1e5))]
    one = session(visits).plan(questions).release().certificate
    other = session(visits.iloc[:50]).plan(questions).release().certificate
    assert one == other


def test_given_keys_that_are_absent_get_noise_around_zero_and_others_are_dropped(visits):
    answers = session(visits).plan([tr.count(by="city", keys=["Ulm", "Nowhere"])]).release()
    assert [row["city"] for row in answers[0].rows] == ["Nowhere", "Ulm"]
    assert abs(answers[0].rows[0]["value"]) < 60


def test_a_key_of_one_person_is_never_shown(visits):
    lonely = pd.concat([visits, pd.DataFrame({"person": [99999], "city": ["Atlantis"], "income": [1.0]})])
    for _ in range(5):
        answers = session(lonely).plan([tr.count(by="city")]).release()
        assert "Atlantis" not in set(answers[0].to_pandas()["city"])


def test_the_threshold_is_the_largest_noise(visits):
    plan = session(visits).plan([tr.count(by="city")])
    accuracy = plan.accuracies()[0]
    assert accuracy.key_threshold == plan.noises()[0][0].table.largest_magnitude
    assert accuracy.errors_at_size(accuracy.key_threshold * 3)["suppressed"] == 0
    assert 0 < accuracy.errors_at_size(1)["suppressed"] <= 1


def test_json_has_the_promised_shape(visits):
    document = json.loads(
        session(visits).plan([tr.count(by="city"), tr.mean("income", bounds=(0, 1e5))]).release().to_json()
    )
    certificate = document["certificate"]
    assert 0 < certificate["epsilon"] <= 4 and certificate["delta"] == 1e-6
    assert 0 < certificate["total_variation"] < 1 and float(certificate["epsilon_exact"]) == certificate["epsilon"]
    assert {"name", "question", "rows", "error"} <= set(document["answers"][0])
    assert {"city", "value", "lower", "upper"} == set(document["answers"][0]["rows"][0])
    assert certificate["ledger"] == "not recorded in a ledger"


def test_the_certificate_lets_anybody_recompute_the_guarantee(visits):
    """One unbounded-person table, one count: rebuild the table from text and account for it."""
    from tightrope.documents.document import plain_data
    from tightrope.mechanisms.discrete.noise_table import NoiseTable

    opened = tr.Session(visits, privacy_unit=None, budget=BUDGET)
    released = opened.plan([tr.count(by="city")]).release()
    (mechanism,), certificate = released.certificate_data.mechanisms, released.certificate
    table = NoiseTable.from_data(plain_data(released.certificate_data.table_of(mechanism)))
    loss = table.loss(mechanism.table_steps_per_row)
    assert loss.delta(certificate["epsilon"]) <= certificate["delta"] * (1 + 1e-9)
    assert loss.total_variation() == pytest.approx(certificate["total_variation"], rel=1e-9)


def test_small_groups_get_a_withheld_mean_with_the_whole_range():
    table = pd.DataFrame({"group": ["a"] * 2, "x": [1.0, 2.0]})
    opened = tr.Session(table, privacy_unit=None, budget=tr.Budget(epsilon="0.05", delta=1e-6))
    plan = opened.plan([tr.mean("x", bounds=(0, 10), by="group", keys=[chr(i) for i in range(97, 117)])])
    rows = plan.release()[0].rows
    withheld = [row for row in rows if row["value"] is None]
    assert withheld and all((row["lower"], row["upper"]) == (0, 10) for row in withheld)
    assert all(0 <= row["lower"] <= row["value"] <= row["upper"] <= 10 for row in rows if row["value"] is not None)


def test_nan_infinity_and_null_follow_the_rules():
    table = pd.DataFrame({"x": [1.0, math.nan, math.inf, -math.inf, None] * 2000})
    opened = tr.Session(table, privacy_unit=None, budget=tr.Budget(epsilon=10, delta=1e-6))
    answers = opened.plan([tr.count(), tr.sum("x", bounds=(0, 10)), tr.mean("x", bounds=(0, 10))]).release()
    assert answers[0].rows[0]["value"] == pytest.approx(10_000, abs=30)
    assert answers[1].rows[0]["value"] == pytest.approx(2000 * (1 + 10 + 0), rel=0.01)
    assert answers[2].rows[0]["value"] == pytest.approx(11 / 3, rel=0.02)


def test_decimal_data_far_from_zero_keep_their_digits():
    table = pd.DataFrame({"x": 1_000_000 + np.arange(20_000) / 20_000})
    answers = (
        tr.Session(table, privacy_unit=None, budget=BUDGET)
        .plan([tr.mean("x", bounds=(1_000_000, 1_000_001))])
        .release()
    )
    assert answers[0].rows[0]["value"] == pytest.approx(1_000_000.5, abs=1e-3)


@pytest.mark.parametrize(
    ("question", "error"),
    [
        (lambda: tr.count(by="town"), SchemaError),
        (lambda: tr.sum("salary", bounds=(0, 1)), SchemaError),
        (lambda: tr.mean("city", bounds=(0, 1)), SchemaError),
    ],
)
def test_unknown_columns_and_types_are_named(visits, question, error):
    with pytest.raises(error, match=r"expected .* got |^[\w ]+: "):
        session(visits).plan([question()])


@pytest.mark.parametrize(
    "bad",
    [
        lambda: tr.sum("x", bounds=(1, 0)), lambda: tr.sum("x", bounds=(0, math.inf)), lambda: tr.sum("x", bounds=3),
        lambda: tr.mean("x", bounds=(math.nan, 1)), lambda: tr.mean("", bounds=(0, 1)),
        lambda: tr.count(by=["a", "a"]),
        lambda: tr.count(by="value"), lambda: tr.count(keys=[1]), lambda: tr.count(by="a", keys=[]),
        lambda: tr.count(by="a", keys="xyz"), lambda: tr.count(by=["a", "b"], keys=[1]),
        lambda: tr.count(by="a", keys={"b": [1]}), lambda: tr.count(weight=0), lambda: tr.count(weight=math.nan),
        lambda: tr.count(weight=65), lambda: tr.count(weight=1 / 65),
        lambda: tr.count(name=""), lambda: tr.count(by=3), lambda: tr.count(max_rows_per_group=0),
    ],
)  # fmt: skip
def test_nonsense_questions_teach(bad):
    with pytest.raises(InputError, match=r"expected .* got |^[\w ]+: "):
        bad()


@pytest.mark.parametrize(
    "changes",
    [
        {"privacy_unit": "nobody"}, {"privacy_unit": 3}, {"max_rows": None}, {"max_rows": 0},
        {"max_rows": 1.5},
        {"max_rows": True}, {"max_rows_per_group": -1}, {"max_groups": 0}, {"budget": 1},
        {"privacy_unit": None, "max_rows": 3},
    ],
)  # fmt: skip
def test_nonsense_sessions_teach(visits, changes):
    with pytest.raises(InputError, match=r"expected .* got |^[\w ]+: "):
        session(visits, **changes)


@pytest.mark.parametrize("questions", [[], "count", [1], tr.count()])
def test_questions_are_a_list(visits, questions):
    with pytest.raises(PlanError):
        session(visits).plan(questions)


def test_two_questions_of_one_name_are_refused(visits):
    with pytest.raises(PlanError, match="different name"):
        session(visits).plan([tr.count(), tr.count()])


def test_pure_privacy_needs_listed_keys(visits):
    opened = session(visits, budget=tr.Budget(epsilon=1, delta=0))
    with pytest.raises(InputError, match=r"list the groups of count_by_city with keys=\[...\], or use delta=1e-12"):
        opened.plan([tr.count(by="city")])
    assert opened.spent["budget_fraction"] == "0"


@pytest.mark.parametrize("rows", [1, 3, 120])
def test_pure_privacy_is_exact(visits, rows):
    """No output gives anybody away, however improbable: every table has a tail without an end, and δ(ε) is 0."""
    opened = session(visits, budget=tr.Budget(epsilon=1, delta=0), max_rows=rows)
    keys = ["Ulm", "Bern", "Graz"]
    plan = opened.plan([tr.count(), tr.count(by="city", keys=keys), tr.mean("income", bounds=(0, 1e5))])
    assert all(noise.table.tail is not None for noises in plan.noises() for noise in noises)
    assert plan.loss.infinite_mass == plan.loss.delta(1.0) == 0 < plan.loss.delta(0.9)
    certificate = plan.release().certificate
    assert 0.99 < certificate["epsilon"] <= 1 and certificate["delta"] == 0


@pytest.mark.parametrize(
    ("epsilon", "delta", "many"),
    [("3", "1e-8", 1), ("0.7", "1e-12", 1), ("0.1", "1e-12", 1), ("1", "1e-320", 1), ("5.173", "1e-12", 2)],
)
def test_what_is_promised_is_never_above_what_was_asked_for(visits, epsilon, delta, many):
    """It said epsilon 3.01 where 3 was asked for and kept: ε was sought anew, and ends some roundings above."""
    plan = session(visits, budget=tr.Budget(epsilon=epsilon, delta=delta), max_rows=1).plan(
        [tr.count(name=f"count {i}") for i in range(many)]
    )
    stated = plan.to_data()
    assert Fraction(stated["epsilon_exact"]) <= Fraction(epsilon)
    assert f"epsilon {float(epsilon):.3g} " in str(plan) or many > 1


def test_a_delta_that_protects_nobody_is_refused_and_a_large_one_is_warned_of(visits):
    with pytest.raises(InputError, match=DELTA_TOO_LARGE):
        session(visits, budget=tr.Budget(epsilon=1, delta="0.99")).plan([tr.count()])
    warned = session(visits, budget=tr.Budget(epsilon=1, delta="0.001")).plan([tr.count()])
    assert "with 1,000 people it allows publishing all data of one of them" in str(warned)
    assert "allows publishing" not in str(session(visits).plan([tr.count()]))


def test_a_mean_shows_the_noisy_count_that_was_paid_for(visits):
    plan = session(visits).plan([tr.mean("income", bounds=(0, 1e5), by="city", keys=["Ulm", "Bern"]), tr.count()])
    answers = plan.release()
    usable = dict(zip(*(answers[0].to_pandas()[column] for column in ("city", "usable")), strict=True))
    truth = visits.dropna().groupby("city").size()
    assert all(abs(usable[city] - truth[city]) < 150 and usable[city] % 1 == 0 for city in usable)
    assert "usable" not in answers[1].to_pandas() and "usable" not in answers[1].rows[0]
    assert '"usable":' in answers.to_json().replace(" ", "").replace("\n", "")
