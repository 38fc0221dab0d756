"""The most frequent value of each group, and values rounded to a grid for readers."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import tightrope as tr
from tightrope.errors import PlanError
from tightrope.queries.options import round_record
from tightrope.release.build_answers import AnswerBuilder, certificate_of
from tightrope.release.plan import Plan

BUDGET = tr.Budget(epsilon=1, delta=1e-8)
BY_LUCK = 1e-9


def trips() -> pd.DataFrame:
    carriers = {"AA": {"ATL": 900, "ORD": 600, "BOS": 500}, "UA": {"ORD": 420, "ATL": 400, "BOS": 20}}
    rows = [(carrier, dest) for carrier, counts in carriers.items() for dest, n in counts.items() for _ in range(n)]
    table = pd.DataFrame(rows, columns=["carrier", "dest"])
    return table.assign(delay=np.random.default_rng(4).uniform(0, 60, len(table)))


def draws(opened: tr.Session, plan: Plan, times: int) -> list[Any]:
    exact = [opened._table.collect_totals(query_group.table_request) for query_group in plan.draft.query_groups]
    builder = AnswerBuilder(plan.draft, certificate_of(plan.draft))
    return [builder.build_answers(exact) for _ in range(times)]


@pytest.mark.parametrize("keys", [None, {"carrier": ["AA", "UA"], "dest": ["ATL", "BOS", "ORD"]}])
def test_each_group_has_its_most_frequent_value_and_an_interval_that_holds(keys: object) -> None:
    opened = tr.Session(trips(), privacy_unit=None, budget=BUDGET)
    plan = opened.plan([tr.mode("dest", by="carrier", keys=keys)])
    counts = trips().groupby(["carrier", "dest"]).size()
    held, certain, most = 0, 0, 100
    for (answer,) in draws(opened, plan, most):
        assert [row["carrier"] for row in answer.rows] == ["AA", "UA"]
        for row in answer.rows:
            held += row["lower"] <= counts[row["carrier"], row["dest"]] <= row["upper"]
            if row["worst_rank"] == 1:
                certain += 1
                assert counts[row["carrier"], row["dest"]] == counts[row["carrier"]].max()
        assert answer.rows[0]["dest"] == "ATL"  # 900 of AA: 300 more than the next
    assert stats.binom.cdf(held, 2 * most, 0.95) > BY_LUCK
    assert certain >= most


def test_a_mode_has_the_noise_of_a_count_and_its_own_name() -> None:
    opened = tr.Session(trips(), privacy_unit=None, budget=BUDGET)
    modes = opened.plan([tr.mode("dest", keys=["ATL", "BOS"])]).noises()
    counts = opened.plan([tr.count(by="dest", keys=["ATL", "BOS"])]).noises()
    assert modes[0][0].table == counts[0][0].table
    assert tr.mode("dest").asked.name == "mode_dest"
    assert tr.mode("dest", by=["carrier"], name="m").asked.name == "m"
    assert str(tr.mode("upper(dest)", by="carrier", where="delay > 5")) == (
        "most frequent value of upper(dest) by carrier where delay > 5"
    )
    with pytest.raises(PlanError, match="different"):
        tr.mode("dest", by="dest")


@pytest.mark.parametrize("width", ["1", "50", "0.1", "0.05", "1e-3", "7", "1e300"])
def test_rounding_moves_the_value_to_the_grid_and_the_ends_outwards(width: str) -> None:
    from decimal import Decimal

    rng, exact = np.random.default_rng(1), Decimal(width)
    for scale in (1e-3, 1.0, 1e4, 1e17):
        for value in rng.normal(0, scale, 50):
            record = {"value": value, "lower": value - scale / 3, "upper": value + scale / 7, "usable": 12}
            rounded = round_record(record, exact)
            assert rounded["lower"] <= record["lower"] and rounded["upper"] >= record["upper"]
            assert rounded["lower"] <= rounded["value"] <= rounded["upper"] and rounded["usable"] == 12
            assert abs(Fraction(rounded["value"]) - Fraction(value)) <= Fraction(exact) / 2 + Fraction(math.ulp(value))
            multiple = Fraction(rounded["upper"]) / Fraction(exact)
            assert abs(multiple - round(multiple)) * Fraction(exact) <= Fraction(math.ulp(rounded["upper"]))


def test_rounded_answers_are_round_in_every_form_and_the_plan_says_so() -> None:
    opened = tr.Session(trips(), privacy_unit=None, budget=BUDGET)
    carriers = ["AA", "UA"]
    questions = [
        tr.count(by="carrier", keys=carriers, round_to=50),
        tr.mean("delay", bounds=(0, 60), round_to=0.5),
        tr.count(by="carrier", keys=carriers, name="exact"),
        tr.median("delay", bounds=(0, 60), round_to=5),
    ]
    compared = tr.comparison("difference", "exact", between={"carrier": ("AA", "UA")}, round_to=100)
    plan = opened.plan(questions, comparisons=[compared])
    errors = {part["name"]: part["error"]["half_width_95"] for part in plan.to_data()["answers"]}
    assert errors["count_by_carrier"] == errors["exact"] + 50
    answers = plan.release()
    for row in [*answers[0].to_pandas().to_dict("records"), *answers[0].document.rows]:
        assert row["value"] % 50 == row["lower"] % 50 == row["upper"] % 50 == 0
    assert answers[1].value * 2 == int(answers[1].value * 2) and answers[3].value % 5 == 0
    assert answers.comparisons[0].value % 100 == 0
    result = json.loads(answers.to_json())
    assert any("multiples of 50" in note for note in result["answers"][0]["notes"])
    assert any("multiples of 100" in note for note in result["comparisons"][0]["notes"])


def test_rounded_totals_and_parts_are_not_adjusted() -> None:
    opened = tr.Session(trips(), privacy_unit=None, budget=BUDGET)
    by = tr.expression("dest == 'ATL'")
    plan = opened.plan([tr.count(round_to=10), tr.count(by={"hub": by}, name="hubs")])
    assert plan.draft.consistent_fits == ()
    adjusted = opened.plan([tr.count(), tr.count(by={"hub": by}, name="hubs")])
    assert adjusted.draft.consistent_fits


@pytest.mark.parametrize("width", [0, -1, "x", float("nan"), float("inf"), None.__class__, [10]])
def test_a_grid_without_width_is_refused(width: Any) -> None:
    with pytest.raises(PlanError, match="round_to"):
        tr.count(round_to=width)
