"""What a real release writes: a small one, made once in a run of the tests, with every hard case of a page."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

import tightrope as tr
from tests.reporting.states import STATES
from tightrope.documents.document import to_json_text

AREAS = [f"Area {number:04d}" for number in range(2100)]
REGIONS, SECTORS = ["North", "South", "East", "West"], ["Farming", "Trade", "Public service", "Manufacturing"]
NOBODY = list(range(50, 80))
"""Years of education that nobody has: about half of these means are withheld."""
PEOPLE = 30_000
TITLE = "Census and wages"


def _table() -> pd.DataFrame:
    """Two rows of everybody; few rows have education 17, and some states are not known."""
    draw, rows = np.random.default_rng(7), 2 * PEOPLE
    states = [name.replace("_", " ") for name in STATES.split()]
    shares = np.arange(10, 10 + len(states)) / sum(range(10, 10 + len(states)))
    education = draw.integers(8, 17, rows)
    education[:20] = 17
    return pd.DataFrame({
        "nr": np.repeat(np.arange(PEOPLE), 2),
        "state": np.where(draw.random(rows) < 0.03, None, draw.choice(states, rows, p=shares)),
        "educ": education,
        "lweekinc": 5 + 0.08 * education + draw.normal(0, 0.5, rows),
        "hours": draw.uniform(1500, 2500, rows),
        "year": draw.integers(1980, 1988, rows),
        "region": draw.choice(REGIONS, rows),
        "sector": draw.choice(SECTORS, rows),
        "area": draw.choice(AREAS, rows),
    })  # fmt: skip


@cache
def _written() -> str:
    session = tr.Session(_table(), privacy_unit="nr", max_rows=2, budget=tr.Budget(epsilon=1, delta=1e-8))
    questions = [
        tr.count(name="people"),
        tr.mean("lweekinc", bounds=(2, 10), by="educ", keys=[*range(8, 18), *NOBODY], weight=4, name="income"),
        tr.count(by="state", name="states"),
        tr.mean("hours", bounds=(0, 5000), by="year", keys=list(range(1980, 1988)), name="hours"),
        tr.count(by=["region", "sector"], keys={"region": REGIONS, "sector": SECTORS}, name="sectors"),
        tr.count(by="area", keys=AREAS, name="areas"),
    ]
    return to_json_text(session.plan(questions).release().result(TITLE))


@cache
def _parts() -> dict[str, str]:
    document = json.loads(_written())
    return {found["name"]: json.dumps(found) for found in document["answers"]} | {"": json.dumps(document)}


def everything() -> dict[str, Any]:
    """The whole document, as ``tightrope release --json`` prints it."""
    return dict(json.loads(_parts()[""]))


def typical() -> dict[str, Any]:
    """The same with three of the answers."""
    return everything() | {"answers": [answer("people"), answer("income"), answer("states")]}


def certificate() -> dict[str, Any]:
    """What proves it."""
    return dict(everything()["certificate"])


def answer(name: str) -> dict[str, Any]:
    """One of its answers: people, income, states, hours, sectors or areas."""
    return dict(json.loads(_parts()[name]))


def cut(name: str, groups: int) -> dict[str, Any]:
    """An answer with its first groups only."""
    found = answer(name)
    return found | {"rows": found["rows"][:groups]}


def rows_by(key: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """An answer with other rows, by another column."""
    return answer("states") | {"by": [key], "rows": rows}


def row(value: float, half: float, **keys: object) -> dict[str, Any]:
    """A record of an answer."""
    return {**keys, "value": value, "lower": value - half, "upper": value + half}
