"""Numbers that no double holds, or that are no numbers to everybody, are refused where they are read."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tightrope.documents.budget import Budget
from tightrope.errors import InputError
from tightrope.release.plan_file import load_plan_file
from tightrope.studio.plan_form import WISHES, PlanForm, PromiseForm

SAID = "1E+999999999", "1e-400", '"1E+999999999"', '"NaN"', '"Infinity"', "9" * 100_000
TYPED = "1E+999999999", "1e999", "1e-400", "9" * 5_000, "9." + "9" * 1_000_000


BUDGETS = {
    "large": "1E+999999999", "small": "1e-999999999", "nan": "NaN", "infinity": "Infinity", "5 000": "9" * 5_000,
    "million": "9" * 1_000_000, "other digits": "\u0661", "wide digits": "\uff11", "underscore": "1_0",
    "whole": 10**5_000, "decimal": Decimal("1E+999999999"), "float": 1e999,
}  # fmt: skip


@pytest.mark.parametrize("value", BUDGETS.values(), ids=BUDGETS)
def test_no_budget_has_such_a_number(value: Any) -> None:
    for said in ({"epsilon": value, "delta": 1e-8}, {"epsilon": 1, "delta": value}):
        with pytest.raises(InputError) as refused:
            Budget(**said)
        assert len(str(refused.value)) < 1_000


@pytest.mark.parametrize("value", SAID, ids=range(len(SAID)))
def test_no_page_says_such_a_number(value: str) -> None:
    for said in (f'{{"value": {value}, "delta": 0.1}}', f'{{"value": 1, "delta": {value}}}'):
        with pytest.raises(InputError) as refused:
            WISHES.parse_json(said.replace("{", '{"said": "epsilon", ', 1), PromiseForm)
        assert len(str(refused.value)) < 1_000
    with pytest.raises(InputError):
        WISHES.parse_json(json.dumps({"who": {}, "budget_fraction": "1E+999999999"}), PlanForm)


@pytest.mark.parametrize("value", TYPED, ids=range(len(TYPED)))
def test_no_plan_file_has_such_a_number(tmp_path: Path, value: str) -> None:
    path = tmp_path / "plan.toml"
    path.write_text(
        f'[source]\npath = "a.parquet"\n[privacy_unit]\neach_row = true\n[budget]\nepsilon = {value}\ndelta = 1e-8\n'
        '[[question]]\nkind = "count"\n'
    )
    with pytest.raises(InputError) as refused:
        load_plan_file(path)
    assert len(str(refused.value)) < 1_000
