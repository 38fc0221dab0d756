"""Random questions about a hostile table: whatever is joined agrees before noise, row by row.

``TIGHTROPE_QUESTIONS`` says how many sets of questions are tried; 300 for all.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import pytest

import tightrope as tr
from tests.release.totals.test_related import FLAGS, STATES, TABLE
from tightrope.errors import InputError
from tightrope.queries.query_group import group_queries
from tightrope.release import consistency
from tightrope.release.consistency import ConsistentAnswers, ConsistentFit, LeastSquares, find_related_answers

TRIES = int(os.environ.get("TIGHTROPE_QUESTIONS", "20"))
SEED = 2
KNOWN = {
    "age > 18": FLAGS,
    "cut(age, [0, 18])": [None, 0, 18],
    "month(day)": [None, *range(1, 13)],
    "case(state == 'a', 'x', 'y')": ["x", "y"],
    "x is None": [True, False],
}
LISTED = {
    "flag": [FLAGS, [True, False], [True]],
    "state": [STATES, ["a"], ["a", "b", "", "A", None, "d", "c"]],
    "number": [[1, 2, 3], [1, 2, 3, None], [2]],
    "flag 2": [FLAGS, [True, False]],
    "state 2": [STATES, ["a", "b", "c", "zz"]],
    "large": [[2**53], [2**53, 2**53 + 1]],
}
CONDITIONS = [
    None, None, "state in ['a', 'b']", "flag is not None", "number in [1, 2]", "state in ['a'] and number in [1, 2, 3]",
    "flag", "age > 0 or flag", "not (state in ['a'])", "number in [1, 2] or state in ['a']", "flag in [True]",
    "column('state 2') in ['a', 'b', 'c']", f"large in [{2.0**53!r}]", f"large in [{2**53}]", "number in [1.0, 2.0]",
]  # fmt: skip


def question(draw: random.Random, place: int, where: str | None) -> tr.Question:
    columns = draw.sample([*KNOWN, *LISTED], draw.choice([0, 0, 1, 1, 2, 3]))
    said: dict[str, Any] = {"name": f"question {place}", "where": where}
    if columns:
        said |= {"by": columns, "keys": {name: KNOWN.get(name) or draw.choice(LISTED[name]) for name in columns}}
    if draw.random() < 0.1:
        said |= {"max_rows_per_group": draw.choice([1, 2])}
    if draw.random() < 0.1:
        said |= {"max_groups": draw.choice([1, 2])}
    return tr.count(**said) if draw.random() < 0.7 else tr.sum("x", bounds=draw.choice([(0, 9), (-1, 4)]), **said)


def drawn(draw: random.Random) -> tuple[tr.Session, list[tr.Question]]:
    bounds = draw.choice([{}, {}, {"max_rows": 1}, {"max_rows": 5}, {"max_rows": 30}])
    person = "person" if bounds else None
    opened = tr.Session(TABLE, privacy_unit=person, budget=tr.Budget(epsilon=1, delta=1e-6), **bounds)
    where = draw.choice(CONDITIONS)
    others = [where if draw.random() < 0.8 else draw.choice(CONDITIONS) for _ in range(draw.choice([2, 3, 4]))]
    return opened, [question(draw, place, one) for place, one in enumerate(others)]


def agrees(joined: ConsistentAnswers, truth: dict[str, dict[tuple[object, ...], int]], draw: random.Random) -> bool:
    """Whether least squares, with any weights, leave what is exact as it is."""
    own = tuple(map(frozenset, joined.axes_by_answer))
    weights = tuple(Fraction(draw.randint(1, 9)) for _ in own)
    fitted = ConsistentFit(joined, ())
    fitted.__dict__["least_squares"] = LeastSquares(tuple(map(len, joined.axes)), own, weights)
    tables = [fitted._noisy_table(place, truth[name]) for place, name in enumerate(joined.answers)]
    return all((one == other).all() for one, other in zip(tables, fitted.least_squares.fit_tables(tables), strict=True))


def outcomes(seed: int, tries: int) -> Iterator[bool]:
    """For every set that is joined in so many random lists of questions, whether it agrees."""
    draw = random.Random(seed)
    for _ in range(tries):
        opened, questions = drawn(draw)
        try:
            query_groups = group_queries(questions, opened.privacy_unit, opened.schema)
        except InputError:
            continue
        sums, truth = find_related_answers(query_groups, opened.schema), {}
        for query_group in query_groups if sums.joined else ():
            own = opened._table.collect_totals(query_group.table_request)
            for one, vectors in query_group.vectors_by_query.items():
                (vector,) = vectors.values()
                truth[one.name] = dict(zip(own.keys, own.values[vector.statistic_name], strict=True))
        yield from (agrees(joined, truth, draw) for joined in sums.joined)


def test_whatever_is_joined_agrees_before_noise():
    found = list(outcomes(1, TRIES))
    assert len(found) >= TRIES / 10
    assert all(found)


@pytest.mark.parametrize("fault", ["any keys are all there are", "any bound leaves the same rows"])
def test_a_proof_that_takes_too_much_for_granted_is_caught(monkeypatch, fault):
    if fault == "any keys are all there are":
        monkeypatch.setattr(consistency, "_covers_all_rows", lambda *_: True)
    else:
        monkeypatch.setattr("tightrope.release.consistency._AdditiveAnswer.each_row_counts", property(lambda _: True))
    assert not all(outcomes(SEED, 300))  # stops at the first that does not
