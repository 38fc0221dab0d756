"""A ledger in a file and one in PostgreSQL, with a dataset of one promise."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import tightrope as tr
from tightrope.documents.privacy_unit import PrivacyUnit
from tightrope.ledger import Account, Claim, Identity, Ledger, Limit

BUDGET = tr.Budget(epsilon=1, delta="1e-6")
TOTAL = Limit("total", BUDGET)


def identity(name: str = "visits", **changes: object) -> Identity:
    usual = {"columns": (("user", "integer"), ("city", "text")), "privacy_unit": "user", "means": "a person"}
    bounds = {"max_rows": 3, "max_rows_per_group": 3, "max_groups": 3}
    given = {**usual, **bounds, **changes}
    unit = PrivacyUnit(given.pop("privacy_unit"), means=given.pop("means"), **{key: given.pop(key) for key in bounds})
    return Identity(name, unit=unit, **given)  # type: ignore[arg-type]


def claim(key: str, share: str = "0.1", plan: str = "plan", **more: str) -> Claim:
    return Claim(key, plan, BUDGET.scale_by(share), **more)


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Callable[..., Ledger]]:
    """Opens the ledger of the test's folder, as often as one likes."""
    made: list[Ledger] = []

    def open_one(**settings: object) -> Ledger:
        made.append(Ledger(tmp_path / "visits.ledger", create=True, **settings))  # type: ignore[arg-type]
        return made[-1]

    yield open_one
    for ledger in made:
        ledger.close()


@pytest.fixture
def account(opened: Callable[..., Ledger]) -> Account:
    return opened().declare_dataset(identity(), [TOTAL])
