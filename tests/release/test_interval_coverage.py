"""The 95 % intervals hold the bounded, clamped statistic at least 95 % of the time."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import tightrope as tr

pytestmark = pytest.mark.slow
RUNS = 200


def test_intervals_cover():
    rng = np.random.default_rng(3)
    table = pd.DataFrame({"g": rng.integers(0, 4, 1200), "x": rng.normal(3, 4, 1200)})
    clamped = table.assign(x=table["x"].clip(0, 10)).groupby("g")["x"]
    truths = {"count_by_g": clamped.size(), "sum_x_by_g": clamped.sum(), "mean_x_by_g": clamped.mean()}
    keys = [0, 1, 2, 3]
    questions = [
        tr.count(by="g", keys=keys),
        tr.sum("x", bounds=(0, 10), by="g", keys=keys),
        tr.mean("x", bounds=(0, 10), by="g", keys=keys),
    ]
    opened = tr.Session(table, privacy_unit=None, budget=tr.Budget(epsilon=1, delta=1e-6))
    covered = dict.fromkeys(truths, 0)
    plan = opened.plan(questions)
    from tightrope.release.build_answers import AnswerBuilder, certificate_of

    draw_anew = AnswerBuilder(plan._draft, certificate_of(plan._draft)).build_answers
    exact = [opened._table.collect_totals(query_group.table_request) for query_group in plan._draft.query_groups]
    for _ in range(RUNS):  # draws anew without charging: this is a test of the intervals
        for answer in draw_anew(exact):
            rows = answer.rows
            covered[answer.name] += sum(r["lower"] <= truths[answer.name][r["g"]] <= r["upper"] for r in rows)
    for name, hits in covered.items():
        share = hits / (RUNS * len(keys))
        assert share >= 0.95 - 4 * (0.05 * 0.95 / (RUNS * len(keys))) ** 0.5, (name, share)
    assert covered["count_by_g"] < 0.995 * RUNS * len(keys)  # and are not idle
