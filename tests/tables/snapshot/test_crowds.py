"""Who has too many rows is found once for all requests that have one bound: the integers stay what they are."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from tests.tables.questions import ask, mean, per_person
from tightrope.tables import Measure, Request, bounding, open_source
from tightrope.tables.bounding import persons_over_bound
from tightrope.tables.expressions.parsing import parse_expression

MEASURES = (Measure("rows", None, None), *mean("x", lower=-2, upper=10))


def table() -> pa.Table:
    draw = np.random.default_rng(5)
    people = [None, *draw.integers(0, 60, 399).tolist()]
    keys = draw.choice(["a", "b", "c"], 400)
    return pa.table({"person": people, "k": keys, "j": draw.integers(0, 4, 400), "x": draw.normal(3, 4, 400)})


REQUESTS = [
    ask(bounds=per_person(3), measures=MEASURES),
    ask("k", bounds=per_person(3), measures=MEASURES),
    Request(("k",), (("a",), (None,)), per_person(3), MEASURES),
    Request(("j",), None, per_person(3), MEASURES, parse_expression("x > 5 and k in ['a', 'b']")),
    ask("k", bounds=per_person(3, 1, 2), measures=MEASURES),
    ask("j", bounds=per_person(3, 3, 2), measures=MEASURES),
    ask("j", bounds=per_person(2), measures=MEASURES),
]


@pytest.mark.slow
def test_integers_are_those_of_each_request_alone(opened):
    source = opened(table())
    with source.open_snapshot(REQUESTS) as rows:
        together = [rows.collect_totals(request) for request in (*REQUESTS, *reversed(REQUESTS))]
    alone = [open_source(table()).collect_totals(request) for request in REQUESTS]
    assert together == [*alone, *reversed(alone)]


def test_persons_are_gone_through_once_for_one_bound(monkeypatch):
    asked = []

    def counted(rows, bounds):
        asked.append(bounds)
        return persons_over_bound(rows, bounds)

    monkeypatch.setattr(bounding, "persons_over_bound", counted)
    with open_source(table()).open_snapshot(REQUESTS) as rows:
        for request in REQUESTS:
            rows.collect_totals(request)
    assert len(asked) == 4  # one for the first four, one for each of the last three
