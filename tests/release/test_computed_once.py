"""A release computes its noise, its certificate and the description of each answer once."""

from __future__ import annotations

from collections import Counter

import pandas as pd

import tightrope as tr
from tightrope.queries.query_group import QueryGroup, group_queries
from tightrope.queries.statistics import Noise
from tightrope.release import build_answers
from tightrope.release.draft import NoisePlan

TABLE = pd.DataFrame(
    {"city": ["Oslo", "Rome"] * 200, "sex": ["f", "f", "m", "m"] * 100, "x": [1.0, 2.0, 3.0, 4.0] * 100}
)
ONLY = "city in ['Oslo', 'Rome'] and sex in ['f', 'm']"
QUESTIONS = [
    tr.count(by=["city", "sex"], keys={"city": ["Oslo", "Rome"], "sex": ["f", "m"]}),
    tr.count(by="sex", keys=["f", "m"]),
    tr.count(by="city", keys=["Oslo", "Rome"]),
    tr.count(),
    tr.mean("x", bounds=(0, 5)),
]


def count_calls(monkeypatch, owner: object, name: str, calls: Counter[str]) -> None:
    function = getattr(owner, name)

    def counted(*words: object, **options: object) -> object:
        calls[name] += 1
        return function(*words, **options)

    monkeypatch.setattr(owner, name, counted)


def test_a_release_in_a_ledger_computes_everything_once(monkeypatch, tmp_path):
    calls: Counter[str] = Counter()
    for owner, name in (
        (Noise, "__init__"),
        (NoisePlan, "answer_data"),
        (build_answers, "certificate_of"),
        (build_answers, "guarantee_data"),
    ):
        count_calls(monkeypatch, owner, name, calls)
    session = tr.Session.open(
        TABLE, privacy_unit=None, budget=tr.Budget(epsilon="0.1", delta=1e-6), ledger=tmp_path / "a.ledger", dataset="a"
    )
    plan = session.resumed(session.plan(QUESTIONS, where=ONLY))
    answers = plan.release()
    vectors = sum(len(query_group.noisy_statistics) for query_group in plan.draft.query_groups)
    assert len(answers[0].rows) == 4 and len(plan.draft.sums.joined) == 1
    assert calls == {"__init__": vectors, "answer_data": len(QUESTIONS), "certificate_of": 1, "guarantee_data": 1}


def test_a_draft_with_other_noise_computes_it_anew():
    draft = tr.Session(TABLE, privacy_unit=None, budget=tr.Budget(epsilon="0.1", delta=1e-6)).plan(QUESTIONS[:-1]).draft
    half = draft._with_budget(tr.Budget(epsilon="0.05", delta=1e-6))
    errors = [[one.errors_at_size(100)["half_width_95"] for one in made.query_accuracies] for made in (draft, half)]
    assert all(more > less for less, more in zip(*errors, strict=True))


def test_a_query_group_keeps_its_request():
    session = tr.Session(TABLE, privacy_unit=None, budget=tr.Budget(epsilon="0.1", delta=1e-6))
    query_group: QueryGroup = group_queries([tr.count()], session.privacy_unit, session.schema)[0]
    assert query_group.table_request is query_group.table_request
