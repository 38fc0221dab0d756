"""The question ``marginals``: which tables it makes, the values of its columns, and what it refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import tightrope as tr
from tightrope.errors import PlanError, SchemaError
from tightrope.queries.marginals.group import ResolvedMarginals
from tightrope.tables.schema import Column, Schema

SCHEMA = Schema(
    (
        Column("sex", "text"),
        Column("age", "integer"),
        Column("ok", "boolean"),
        Column("day", "date"),
        Column("income", "number"),
    )
)
KEYS = {"sex": ["F", "M"], "age": [1, 2, 3]}


def resolve(question: tr.marginals) -> ResolvedMarginals:
    return ResolvedMarginals.from_tables(question.make_tables(), SCHEMA, None)


def test_orders_give_every_table_of_so_many_columns():
    tables = tr.marginals(["sex", "age", "ok"], keys=KEYS).make_tables()
    assert [table.asked.name for table in tables] == [
        "marginals",
        "marginals_by_sex",
        "marginals_by_age",
        "marginals_by_ok",
        "marginals_by_sex_age",
        "marginals_by_sex_ok",
        "marginals_by_age_ok",
    ]
    assert [table.positions for table in tr.marginals(["sex", "age"], orders=[2], keys=KEYS).make_tables()] == [(0, 1)]


def test_listed_tables_have_their_own_columns_and_name():
    question = tr.marginals(of=[["age", "sex"], ["ok"]], keys=KEYS, name="people", where="age > 0", title="People")
    first, second = question.make_tables()
    assert (first.asked.name, second.asked.name) == ("people_by_age_sex", "people_by_ok")
    assert str(first) == "number of rows by age, sex where age > 0"
    assert first.asked.reader_texts["title"] == "People, by age, sex"


def test_values_are_listed_or_follow_from_the_schema():
    columns: list[Any] = ["sex", "ok", {"month": "month(day)"}, {"band": "cut(income, [0, 100])"}, "age"]
    resolved = resolve(tr.marginals(columns, keys={"sex": ["F", "M"]}, bounds={"age": (17, 19)}))
    assert resolved.column_values == (
        ("F", "M"),
        (None, False, True),
        (None, *range(1, 13)),
        (None, 0, 100),
        (17, 18, 19),
    )
    assert str(resolved.terms[-1]) == "clip(age, 17, 19)"
    assert resolved.workload.sizes == (2, 3, 13, 3, 3)
    assert resolved.tables[6].asked.keys == tuple((a, b) for a in ("F", "M") for b in (None, False, True))


def test_weights_are_those_of_the_tables():
    by_table = resolve(tr.marginals(["sex", "age"], keys=KEYS, weight="tables"))
    assert by_table.workload.weights == (1, 1, 1, 1)
    assert resolve(tr.marginals(["sex", "age"], keys=KEYS)).workload.weights == (1, 2, 3, 6)
    numbers = resolve(tr.marginals(of=[["sex"], ["age"]], keys=KEYS, weights=[1, 0.5]))
    assert numbers.workload.weights == (1, 0.5)


@pytest.mark.parametrize(
    ("options", "parameter"),
    [
        ({"columns": []}, "columns"),
        ({"columns": ["sex", "sex"]}, "by"),
        ({"columns": ["sex"], "orders": (0, 2)}, "orders"),
        ({"columns": ["sex"], "orders": 1}, "orders"),
        ({"columns": ["sex"], "orders": [[1]]}, "orders"),
        ({"of": [[1]]}, "of"),
        ({"of": [["sex"], 3]}, "of"),
        ({"columns": ["sex"], "orders": ()}, "orders"),
        ({"columns": ["sex"], "orders": [True]}, "orders"),
        ({"of": [["sex"], ["sex"]]}, "of"),
        ({"of": [["sex", "sex"]]}, "of"),
        ({"columns": ["age"], "of": [["sex"]]}, "of"),
        ({"of": "sex"}, "of"),
        ({"of": [["sex"]], "keys": {"age": [1]}}, "keys"),
        ({"of": [["sex"]], "keys": ["F", "M"]}, "keys"),
        ({"of": [["sex"]], "keys": {"sex": "FM"}}, "keys of sex"),
        ({"of": [["age"]], "bounds": {"age": (0, 0)}}, "bounds of age"),
        ({"of": [["age"]], "bounds": {"age": (0.5, 3)}}, "bounds of age"),
        ({"of": [["age"]], "bounds": {"age": (0, 9)}, "keys": {"age": [1, 2]}}, "bounds"),
        ({"of": [["sex"]], "weight": "all"}, "weight"),
        ({"of": [["sex"]], "weights": [1, 2]}, "weights"),
        ({"of": [["sex"]], "weights": [float("nan")]}, "weights"),
        ({"of": [["sex"]], "name": " "}, "name"),
        ({"of": [["sex"]], "where": 3}, "where"),
        ({"of": [["sex"]], "margin_of_error": -1}, "margin_of_error"),
    ],
)
def test_invalid_parameters_are_named(options: dict[str, Any], parameter: str):
    with pytest.raises(PlanError) as caught:
        tr.marginals(**options)
    assert caught.value.name == parameter


@pytest.mark.parametrize(
    ("options", "parameter", "advice"),
    [
        ({"keys": {"sex": None}}, "keys of sex", "list of its values"),
        ({"keys": {"sex": pd.Series(["F", "M"])}}, "keys of sex", "disclose"),
        ({"keys": {"sex": "FM"}}, "keys of sex", 'keys={"sex": ["F", "M"]}'),
        ({"keys": {"sex": []}}, "keys of sex", 'keys={"sex": ["F", "M"]}'),
        ({"keys": {"sex": {"F": 1}}}, "keys of sex", 'keys={"sex": ["F", "M"]}'),
        ({"keys": {"sex": 3}}, "keys of sex", 'keys={"sex": ["F", "M"]}'),
        ({"keys": "FM"}, "keys", "values by column"),
        ({"bounds": {"age": (2**70, 2**70 + 5)}}, "bounds of age", "64 bits"),
        ({"bounds": {"age": (-(2**63) - 1, -(2**63) + 5)}}, "bounds of age", "64 bits"),
        ({"bounds": {"age": None}}, "bounds of age", "two integers"),
        ({"bounds": {"age": "09"}}, "bounds of age", 'bounds={"age": (0, 99)}'),
        ({"bounds": {"age": (False, True)}}, "bounds of age", "two integers"),
        ({"weights": "12"}, "weights", "a list with a number for each of the 2 tables"),
        ({"weights": {"sex": 1, "age": 2}}, "weights", "got weights='dict'"),
        ({"weights": [1]}, "weights", "got weights='1 weights'"),
        ({"weights": [1, None]}, "weights", "numbers above 0"),
        ({"weights": [1, "2"]}, "weights", "numbers above 0"),
        ({"weights": [1, True]}, "weights", "numbers above 0"),
        ({"weights": [1, 2], "weight": "tables"}, "weight", "left out"),
        ({"orders": np.array([1, 2, 3])}, "orders", "numbers of columns"),
    ],
)
def test_errors_of_types_say_what_to_write(options: dict[str, Any], parameter: str, advice: str):
    with pytest.raises(PlanError) as caught:
        tr.marginals(["sex", "age"], **{"orders": (1,), **options})
    assert caught.value.name == parameter
    assert advice in str(caught.value)


def test_columns_of_equal_values_are_refused():
    for columns, options in (
        ({"a": "age", "b": "age"}, {"bounds": {"a": (0, 9), "b": (0, 9)}}),
        ({"a": "age", "b": "clip(age, 0, 9)"}, {"bounds": {"a": (0, 9)}, "keys": {"b": range(10)}}),
        ({"a": "age", "b": "age"}, {"keys": {"a": [1, 2], "b": [2, 3]}}),
    ):
        with pytest.raises(PlanError, match="'a' and 'b' are both") as caught:
            resolve(tr.marginals(columns, **options))
        assert caught.value.name == "columns of marginals"
    assert resolve(tr.marginals({"a": "age", "b": "age"}, bounds={"a": (0, 9), "b": (0, 8)})).workload.sizes == (10, 9)


def test_integers_of_numpy_are_bounds_and_weights():
    asked = tr.marginals(["age"], bounds={"age": (np.int64(0), np.int64(2))}, weights=[np.float64(1), np.int64(2)])
    assert resolve(asked).column_values == ((0, 1, 2),)
    assert resolve(asked).workload.weights == (1, 2)


@pytest.mark.parametrize(
    ("options", "error", "parameter"),
    [
        ({"of": [["sex"]]}, PlanError, "keys of marginals"),
        ({"of": [["sex"]], "keys": {"sex": ["F"]}}, PlanError, "keys of marginals"),
        ({"of": [["sex"]], "keys": {"sex": [1, 2]}}, SchemaError, "key of marginals"),
        ({"of": [["sex"]], "bounds": {"sex": (1, 2)}}, PlanError, "bounds of sex of marginals"),
        ({"of": [["city"]], "keys": {"city": ["a", "b"]}}, SchemaError, "column of marginals"),
        ({"columns": ["age", "x"], "keys": {"age": range(1000), "x": range(1000)}}, SchemaError, "column of marginals"),
        (
            {"columns": ["age", "income"], "keys": {"age": range(999), "income": range(999)}},
            PlanError,
            "orders of marginals",
        ),
    ],
)
def test_values_must_fit_the_schema(options: dict[str, Any], error: type[Exception], parameter: str):
    with pytest.raises(error) as caught:
        resolve(tr.marginals(**options))
    assert caught.value.name == parameter  # type: ignore[attr-defined]


def test_two_tables_of_one_name_are_refused():
    columns: list[Any] = [{"ok_age": "age + 1"}, "ok", "age"]
    with pytest.raises(PlanError) as error:
        tr.marginals(columns, bounds={"ok_age": (1, 3), "age": (0, 2)})
    assert (error.value.name, error.value.value) == ("columns", "marginals_by_ok_age")


def test_one_column_has_by_default_a_total_and_its_table():
    assert [table.positions for table in tr.marginals(["ok"]).make_tables()] == [(), (0,)]


def test_effects_of_clamping_are_those_of_the_columns_of_a_table():
    tables = tr.marginals(["ok", "age"], bounds={"age": (17, 99)}, orders=[1]).make_tables()
    assert tables[0].clamping_effect == ""
    assert "below 17 count as 17, and those above 99 as 99" in tables[1].clamping_effect


@pytest.mark.parametrize("questions", [tr.marginals(["ok"]), "count", 3])
def test_a_plan_takes_a_list_of_questions(questions: Any):
    session = tr.Session(pd.DataFrame({"ok": [True]}), privacy_unit=None, budget=tr.Budget(epsilon=1, delta=0))
    with pytest.raises(PlanError) as error:
        session.plan(questions)
    assert error.value.name == "questions"
    assert "brackets" in str(error.value)
