"""Errors of questions say which question they are of, what was typed, and what to say instead."""

from __future__ import annotations

import pandas as pd
import pytest

import tightrope as tr
from tightrope.errors import InputError, PlanError, SchemaError
from tightrope.tables.expressions.parsing import parse_expression

BUDGET = tr.Budget(epsilon=1, delta="1e-8")


def session() -> tr.Session:
    frame = pd.DataFrame({"nr": [1, 2], "x": [1.0, 2.0], "carrier": ["AA", "UA"]})
    return tr.Session(frame, privacy_unit="nr", max_rows=1, budget=BUDGET)


@pytest.mark.parametrize(
    "question",
    [
        tr.mean("speed", bounds=(0, 1), name="fastest"),
        tr.mean("carrier", bounds=(0, 1), name="fastest"),
        tr.count(where="carrier = 'AA'", name="fastest"),
        tr.count(where="x + 1", name="fastest"),
        tr.count(by="country", name="fastest"),
        tr.count(by="nr", name="fastest"),
        tr.count(by="carrier", keys=[1], name="fastest"),
    ],
)
def test_a_question_is_named(question: tr.release.Query):
    with pytest.raises((PlanError, SchemaError, InputError), match="of fastest") as refused:
        session().plan([tr.count(), question])
    assert refused.value.name.endswith("of fastest")


@pytest.mark.parametrize("within", ["5%", "5 %"])
def test_within_names_its_question_and_shows_what_was_typed(within: str):
    with pytest.raises(PlanError, match="margin_of_error of mean_x") as refused:
        session().plan([tr.mean("x", bounds=(0, 1), margin_of_error=within)], expected_rows=30)
    assert "5%" in str(refused.value)
    with pytest.raises(PlanError, match="'5%'"):
        session().plan([tr.count(margin_of_error=within)])


def test_edges_show_what_was_typed():
    for edges in ([3, 2, 1], "0, 18, 65", [0, "a"]):
        with pytest.raises(PlanError) as refused:
            tr.histogram("x", edges=edges)  # type: ignore[arg-type]
        assert repr(edges) in str(refused.value)
    for data in (pd.Series([2.5, 1.5]), list(range(500, 0, -1))):
        with pytest.raises(PlanError) as refused:
            tr.histogram("x", edges=data)  # type: ignore[arg-type]
        assert "2.5" not in str(refused.value)
        assert "499" not in str(refused.value)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("carrier = 'AA'", "say =="),
        ("x <> 5", "say !="),
        ("x > 1 && x < 5", "say and"),
        ("x > 1 || x < 5", "say or"),
        ("x IS NOT NULL", "say x is not None"),
        ("x is null", "say x is None"),
        ("x > 1 AND x < 5", "say and, in lower case"),
        ("NOT x > 1", "say not, in lower case"),
        ("carrier IN ('AA')", "say x in"),
        ("x BETWEEN 1 AND 5", "say 0 <= x <= 5"),
        ("carrier LIKE 'A%'", "no patterns"),
    ],
)
def test_what_other_languages_say_is_told(text: str, hint: str):
    with pytest.raises(InputError) as refused:
        parse_expression(text)
    assert hint in refused.value.args[0]


def test_what_stands_in_a_text_is_no_hint():
    with pytest.raises(InputError) as refused:
        parse_expression("carrier == 'A && B <> C' carrier")
    assert "say" not in refused.value.args[0]
