"""The verifier on releases of ``marginals``: what was written is confirmed, and what was altered is refuted."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import tightrope as tr
from tightrope.verify.check import check_document
from tightrope.verify.claims import CONFIRMED, REFUTED, worst_verdict
from tightrope.verify.standalone import standalone_text

Data = dict[str, Any]


def released(max_rows: int | None, epsilon: float = 1) -> str:
    draw = np.random.default_rng(3)
    rows = pd.DataFrame(
        {name: draw.integers(0, size, 900) for name, size in (("p", 300), ("a", 2), ("b", 3), ("c", 4))}
    )
    unit = {"privacy_unit": None} if max_rows is None else {"privacy_unit": "p", "max_rows": max_rows}
    session = tr.Session(rows, budget=tr.Budget(epsilon=epsilon, delta=1e-8), **unit)
    keys = {"a": [0, 1], "b": [0, 1, 2], "c": [0, 1, 2, 3]}
    return session.plan([tr.marginals(["a", "b", "c"], keys=keys)]).release().to_json()


@pytest.fixture(scope="module")
def text() -> str:
    return released(None)


@pytest.mark.parametrize("max_rows", [None, 2])
def test_a_release_is_confirmed(text: str, max_rows: int | None):
    claims = check_document(text if max_rows is None else released(max_rows))
    assert worst_verdict(claims) == CONFIRMED, [claim for claim in claims if claim.verdict != CONFIRMED]
    assert any("least squares" in claim.name for claim in claims)
    certificate = json.dumps(json.loads(text)["certificate"])
    assert worst_verdict(check_document(certificate)) == CONFIRMED


def measurement(data: Data, *, differences: bool) -> Data:
    return next(
        one for one in data["certificate"]["marginals"]["measurements"] if bool(one["differences"]) == differences
    )


def mechanism(data: Data, *, differences: bool) -> Data:
    return data["certificate"]["mechanisms"][measurement(data, differences=differences)["mechanism"] - 1]


def _without_part(data: Data) -> None:
    del data["certificate"]["marginals"]


def _other_statistic(data: Data) -> None:
    for one in data["certificate"]["mechanisms"]:
        one["statistic"] = "count"


def _fewer_rows(data: Data) -> None:
    mechanism(data, differences=False)["groups"] -= 1


def _fewer_changes(data: Data) -> None:
    measurement(data, differences=True)["differences"] = []


def _smaller_column(data: Data) -> None:
    data["certificate"]["marginals"]["sizes"][2] = 3


def _other_weight(data: Data) -> None:
    part = measurement(data, differences=False)
    numerator, denominator = part["precision"].split("/")
    part["precision"] = f"{int(numerator) * 2}/{denominator}"


def _smaller_gap(data: Data) -> None:
    data["certificate"]["marginals"]["gap"] = max(0.0, data["certificate"]["marginals"]["gap"] - 0.001)


def _moved_cell(data: Data) -> None:
    row = data["answers"][-1]["rows"][0]
    for name in ("value", "lower", "upper"):
        row[name] += 1


def _narrow_interval(data: Data) -> None:
    data["answers"][2]["rows"][0]["upper"] -= 1


def _narrow_table(data: Data) -> None:
    table = data["certificate"]["marginals"]["tables"][1]
    table["half_width_95"] /= 2


def _swapped_keys(data: Data) -> None:
    first, second, *_ = data["answers"][-1]["rows"]
    first["c"], second["c"] = second["c"], first["c"]


def _rename(answer: Data, old: str, new: str) -> None:
    answer["by"] = [new if name == old else name for name in answer["by"]]
    answer["rows"] = [{new if name == old else name: value for name, value in row.items()} for row in answer["rows"]]


def _another_name_in_one_table(data: Data) -> None:
    _rename(data["answers"][-1], "c", "height")


def _exchanged_names_in_one_table(data: Data) -> None:
    for old, new in (("b", "between"), ("c", "b"), ("between", "c")):
        _rename(data["answers"][-1], old, new)


def _one_name_for_two_columns(data: Data) -> None:
    for answer in data["answers"]:
        if "a" not in answer["by"]:
            _rename(answer, "c", "a")


def _another_value_in_one_table(data: Data) -> None:
    for row in data["answers"][-1]["rows"]:
        row["c"] = 7 if row["c"] == 3 else row["c"]


def _values_in_another_order_in_one_table(data: Data) -> None:
    for row in data["answers"][-1]["rows"]:
        row["c"] = 3 - row["c"]


def _another_type_in_one_table(data: Data) -> None:
    for row in data["answers"][-1]["rows"]:
        row["c"] = str(row["c"])


def _repeated_value_in_every_table(data: Data) -> None:
    for answer in data["answers"]:
        for row in answer["rows"] if "c" in answer["by"] else ():
            row["c"] = min(row["c"], 2)


def _moved_integer(data: Data) -> None:
    data["measured"][0][0] += 5


def _left_out_integer(data: Data) -> None:
    data["measured"][0].pop()


def _left_out_table(data: Data) -> None:
    data["answers"].pop()


def _joint_noise(data: Data) -> None:
    for one in data["certificate"]["mechanisms"]:
        one["together"] = 1


def _another_condition(data: Data) -> None:
    data["certificate"]["mechanisms"][0]["where"] = "a > 0"


def _no_measurement(data: Data) -> None:
    data["certificate"]["marginals"]["measurements"].pop()


def _huge_size(data: Data) -> None:
    data["certificate"]["marginals"]["sizes"] = [2**20] * 3


ALTERATIONS = [value for name, value in list(globals().items()) if name.startswith("_") and callable(value)]
ALTERATIONS.remove(_rename)


@pytest.mark.parametrize("alter", ALTERATIONS, ids=lambda alter: alter.__name__)
def test_what_was_altered_is_refuted(text: str, alter: Callable[[Data], None]):
    data = json.loads(text)
    alter(data)
    assert worst_verdict(check_document(json.dumps(data))) == REFUTED


def test_only_documents_with_tables_take_the_checks_along(text: str):
    assert "fitted_tables" in standalone_text(text)
    session = tr.Session(pd.DataFrame({"a": [1, 2]}), privacy_unit=None, budget=tr.Budget(epsilon=1, delta=1e-8))
    assert "fitted_tables" not in standalone_text(session.plan([tr.count()]).release().to_json())
