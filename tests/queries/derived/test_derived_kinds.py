"""Kinds of several noisy numbers, end to end: what they say, what they refuse, how plan files name them."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

import tightrope as tr
from tests.queries.derived.kinds import KINDS, RANGES, SECOND, accuracy_of, columns, exact
from tightrope.documents.release import read_result
from tightrope.errors import InputError, SchemaError
from tightrope.queries.intervals import IndependentPair
from tightrope.queries.ratio import RatioInterval
from tightrope.release.plan_file import QUERY_KINDS as KNOWN
from tightrope.release.plan_file import load_plan_file

pytestmark = pytest.mark.usefixtures("planned_once")

PEOPLE = 4_000


@pytest.fixture(scope="module")
def table():
    values = columns(PEOPLE)
    keys = np.random.default_rng(0).choice(["a", "b", "b", "c", "c", "c"], PEOPLE)
    return pd.DataFrame({"who": np.arange(PEOPLE) // 2, "g": keys, **values})


def session(table, *, epsilon=20, privacy_unit="who", rows=2):
    bounds = {"max_rows": rows} if privacy_unit else {}
    return tr.Session(table, privacy_unit=privacy_unit, budget=tr.Budget(epsilon=epsilon, delta="1e-8"), **bounds)


@pytest.mark.parametrize("keys", [None, ["a", "b", "c"]], ids=["discovered", "given"])
def test_every_kind_is_near_the_truth_in_every_group(table, keys):
    """Beyond four half-widths of 95 % falls e^-12 of Laplace noise, and less of any other: 42 answers are near."""
    plan = session(table, epsilon=200).plan([kind.ask(by="g", keys=keys) for kind in KINDS.values()])
    for name, answer in zip(KINDS, plan.release(), strict=True):
        assert [row["g"] for row in answer.rows] == ["a", "b", "c"]
        for row in answer.rows:
            own = table[table["g"] == row["g"]]
            truth = KINDS[name].truth({column: own[column].to_numpy() for column in "xyb"})
            assert row["lower"] <= row["value"] <= row["upper"]
            assert row["upper"] - row["lower"] <= max(0.25 * abs(truth), 0.25), (name, row, truth)
            assert abs(row["value"] - truth) <= 2 * (row["upper"] - row["lower"]), (name, row, truth)


def test_values_without_noise_are_those_of_numpy():
    values = columns(500)
    for kind in KINDS.values():
        accuracy = accuracy_of(kind.ask())
        record = accuracy.question.estimate(exact(accuracy, values), accuracy.noises_by_name)
        assert record["value"] is None or record["value"] == pytest.approx(kind.truth(values), rel=1e-6)
        assert accuracy.question.kind in KNOWN


def test_missing_values_of_either_column_leave_a_row_out():
    table = pd.DataFrame({"x": [1.0, 9.0, 5.0, math.nan] * 500, "y": [10.0, 50.0, None, 20.0] * 500})
    answers = session(table, epsilon=40, privacy_unit=None).plan(
        [
            tr.ratio("x", "y", **RANGES, denominator_bounds=SECOND),
            tr.covariance("x", "y", **RANGES, other_bounds=SECOND),
        ]
    )
    ratio, covariance = (answer.rows[0] for answer in answers.release())
    assert ratio["value"] == pytest.approx(10 / 60, rel=0.02)
    assert covariance["value"] == pytest.approx(80.0, rel=0.05)
    assert abs(covariance["usable"] - 1000) < 20


def test_people_are_counted_once_a_group():
    table = pd.DataFrame({"who": [1] * 50 + [2] * 50 + list(range(3, 303)), "g": ["a"] * 100 + ["a", "b"] * 150})
    opened = session(table, rows=5)
    plan = opened.plan([tr.count_distinct(by="g", keys=["a", "b"]), tr.count(by="g", keys=["a", "b"], name="rows")])
    people, rows = plan.release()
    assert [abs(row["value"] - truth) < 8 for row, truth in zip(people.rows, (152, 150), strict=True)] == [True, True]
    assert abs(rows.rows[0]["value"] - 160) < 20
    assert plan.questions[0].kind == "count_distinct"
    assert plan.to_data()["answers"][0]["max_rows_per_group"] == 1


def test_a_share_costs_what_one_count_costs():
    count, share = accuracy_of(tr.count()), accuracy_of(tr.proportion("b"))
    assert share.own_noises[0].table == count.own_noises[0].table
    mean = accuracy_of(tr.mean("b", bounds=(0, 1)))
    assert share.errors_at_size(1000)["half_width_95"] < 1.01 * mean.errors_at_size(1000)["half_width_95"]


def test_the_certificate_says_which_mechanisms_are_one(table):
    certificate = session(table).plan([tr.proportion("b", by="g", keys=["a", "b"]), tr.count(by="g", keys=["a", "b"])])
    found = certificate.release().certificate["mechanisms"]
    labels = [mechanism["exclusive"] for mechanism in found]
    assert labels[0] == labels[1] is not None and labels[2] is None
    assert [mechanism["groups"] for mechanism in found] == [4, 4, 2]


def test_the_largest_come_first_with_what_can_be_concluded(table):
    keys = ["a", "b", "c", "none"]
    (answer,) = session(table, epsilon=5).plan([tr.top_k(2, by="g", keys=keys)]).release()
    assert [row["g"] for row in answer.rows] == ["c", "b"]
    assert [(row["best_rank"], row["worst_rank"]) for row in answer.rows] == [(1, 1), (2, 2)]
    assert list(answer.to_pandas()["worst_rank"]) == [1, 2]


def test_what_stands_beside_a_value_is_written_and_read(table):
    plan = session(table).plan([tr.top_k(1, by="g"), tr.regression("x", on="y", **RANGES, on_bounds=SECOND)])
    first, second = read_result(plan.release().to_json()).answers
    assert {"best_rank", "worst_rank"} < set(first.rows[0])
    assert {"usable", "intercept", "intercept_lower", "intercept_upper"} < set(second.rows[0])


def test_intervals_of_the_largest_hold_for_all_at_once():
    """Of a hundred equal groups, the largest is one that noise was kind to: a usual interval would seldom hold it."""
    keys = list(range(100))
    table = pd.DataFrame({"g": np.repeat(keys, 40)})
    opened = session(table, epsilon=1, privacy_unit=None)
    plan = opened.plan([tr.top_k(3, by="g", keys=keys)])
    accuracy = plan.accuracies()[0]
    (noise,) = accuracy.own_noises
    held = usual = 0
    for _ in range(100):
        drawn = [
            accuracy.question.estimate({"rows": 40 + int(x)}, accuracy.noises_by_name)
            for x in noise.noise_mechanism.sample(100)
        ]
        shown = accuracy.question.select_shown_groups(drawn, accuracy.noises_by_name, [])
        held += all(record["lower"] <= 40 <= record["upper"] for _, record in shown)
        usual += all(drawn[place]["lower"] <= 40 <= drawn[place]["upper"] for place, _ in shown)
        assert all(record["best_rank"] <= 3 or record["best_rank"] == 1 for _, record in shown)
    assert held >= 85
    assert usual < 50


def test_hidden_groups_may_be_larger():
    table = pd.DataFrame({"g": ["a"] * 3000 + ["b"] * 60})
    (answer,) = session(table, epsilon=1, privacy_unit=None).plan([tr.top_k(2, by="g")]).release()
    assert answer.rows[0]["worst_rank"] == 1
    assert len(answer.rows) == 1 or answer.rows[1]["worst_rank"] is None or answer.rows[1]["lower"] > 30


@pytest.mark.parametrize(("least", "most"), [(0.0, math.inf), (-math.inf, math.inf), (0.2, 7.0), (-3.0, 0.5)])
def test_odds_keep_every_likely_ratio_of_either_kind(least, most):
    noise = accuracy_of(tr.count(), epsilon="0.5").own_noises[0]
    odds = RatioInterval.from_noise_pair(IndependentPair(noise.noise_tails, noise.noise_tails))
    for ratio in (0.0, 0.3, 1.0, 4.0, -2.0):
        if least <= ratio <= most:
            low, high = odds.likely_ratios(200 * ratio + 3, 200 - 3, least, most)
            assert max(low, least) <= ratio <= min(high, most) and high - low < 0.2 * (1 + ratio**2)
    assert odds.likely_ratios(300.0, 1.0, least, most)[1] == most


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda: tr.count_distinct(by="g", max_rows_per_group=2), "max_rows_per_group"),
        (lambda: tr.top_k(0, by="g"), "k"),
        (lambda: tr.top_k(3), "by"),
        (lambda: tr.proportion(""), "column"),
        (lambda: tr.ratio("x", "x", **RANGES, denominator_bounds=SECOND), "denominator"),
        (lambda: tr.ratio("x", "y", bounds=(0, 1), denominator_bounds=(-1, 1)), "denominator_bounds"),
        (lambda: tr.covariance("x", "y", bounds=(0, 1), other_bounds=(1, 1)), "other_bounds"),
        (lambda: tr.regression("x", on="", **RANGES, on_bounds=SECOND), "on"),
        (lambda: tr.variance("x", bounds=(0, 1e200)).noisy_statistics(), "bounds"),
    ],
)
def test_what_cannot_be_asked_is_refused_while_it_is_free(ask, said):
    with pytest.raises(InputError, match=f"expected {said}|{said}"):
        ask()


def test_a_second_column_must_be_there(table):
    with pytest.raises(SchemaError, match="nowhere"):
        session(table).plan([tr.covariance("x", "nowhere", **RANGES, other_bounds=SECOND)])
    with pytest.raises(SchemaError, match="'g'"):
        session(table).plan([tr.ratio("x", "g", **RANGES, denominator_bounds=SECOND)])


ENTRIES = {
    "count_distinct": 'column = "x"\nby = "g"',
    "proportion": 'column = "b"',
    "ratio": 'numerator = "x"\ndenominator = "y"\nbounds = [0, 10]\ndenominator_bounds = [0, 100]',
    "variance": 'column = "x"\nbounds = [0, 10]',
    "standard_deviation": 'column = "x"\nbounds = [0, 10]',
    "covariance": 'column = "x"\nother = "y"\nbounds = [0, 10]\nother_bounds = [0, 100]',
    "correlation": 'column = "x"\nother = "y"\nbounds = [0, 10]\nother_bounds = [0, 100]',
    "regression": 'column = "x"\non = "y"\nbounds = [0, 10]\non_bounds = [0, 100]',
    "top_k": 'k = 3\nby = "g"',
    "mode": 'column = "g"\nby = "b"',
    "suppressed_count": 'by = "g"',
    "minimum": 'column = "x"\nbounds = [0, 10]',
    "maximum": 'column = "x"\nbounds = [0, 10]',
}


def test_a_plan_file_asks_them_all(table, tmp_path):
    table.to_parquet(tmp_path / "t.parquet")
    questions = "".join(f'[[question]]\nkind = "{kind}"\n{entry}\n' for kind, entry in ENTRIES.items())
    head = '[source]\npath = "t.parquet"\n[privacy_unit]\ncolumn = "who"\nmax_rows = 2\n'
    head += "[budget]\nepsilon = 9\ndelta = 1e-8\n"
    (tmp_path / "plan.toml").write_text(head + questions)
    plan = load_plan_file(tmp_path / "plan.toml").make_plan()
    assert {question.kind for question in plan.questions} == set(ENTRIES)
    read_result(plan.release().to_json())
    assert "Planning spends no budget" in str(plan)


def test_the_smallest_of_listed_groups_has_a_worst_rank():
    """Nothing is withheld of groups that are listed: an interval that reaches below zero hides none."""
    table = pd.DataFrame({"g": ["a"] * 500 + ["b"] * 300 + ["c"] * 3 + ["d"]})
    session = tr.Session(table, privacy_unit=None, budget=tr.Budget(epsilon=1, delta=1e-6))
    for _ in range(5):
        (answer,) = session.plan([tr.top_k(4, by="g", keys=list("abcd"))], budget_fraction="0.1").release()
        assert {row["worst_rank"] for row in answer.rows} <= {1, 2, 3, 4}


def test_a_slope_is_not_hidden_by_noise_of_what_is_no_part_of_the_variance():
    """The other column's mean, which is not in it, widened what noise hides of the variance: ten times the rows."""
    table = pd.DataFrame({"who": [1, 2], "x": [1.0, 2.0], "y": [1.0, 3.0]})
    session = tr.Session(table, privacy_unit="who", max_rows=4, budget=tr.Budget(epsilon=3, delta=1e-8))
    (accuracy,) = session.plan([tr.regression("x", on="y", bounds=(0, 5_000), on_bounds=(0, 30))]).accuracies()
    found = accuracy.errors_at_size(1_000)
    assert found["suppressed"] < 1e-6
    assert found["half_width_95"] < 40
