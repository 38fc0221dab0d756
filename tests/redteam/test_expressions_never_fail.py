"""No row makes an expression fail: whether a release comes would say, for nothing, what one person's row holds."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import tightrope as tr

BUDGET = tr.Budget(epsilon=1, delta=1e-6)
FAR = "9999-12-31"
UNITS = ("s", "ms", "us", "ns")


def spent(frame: pd.DataFrame, **asked: object) -> str:
    session = tr.Session(frame, privacy_unit="id", max_rows=1, budget=BUDGET)
    session.plan([tr.count(**asked)]).release()
    return session.spent["budget_fraction"]


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("zone", [None, "Europe/Oslo"])
@pytest.mark.parametrize(
    "asked",
    [
        {"where": f"id == 17 and sick and seen == '{FAR}'"},
        {"where": f"case(id == 17 and sick, seen == '{FAR}', True)"},
        {"where": f"seen in ['{FAR}', '0001-01-01']"},
        {"by": f"case(sick, '{FAR}', seen)"},
        {"by": f"year(case(sick, '{FAR}', seen))"},
        {"by": f"week(case(sick, '{FAR}', seen))"},
        {"by": f"date_trunc('hour', case(sick, '{FAR}', seen))"},
        {"by": f"cut(case(sick, '{FAR}', seen), ['0001-01-01', '{FAR}'])"},
        {"where": f"seconds_between(case(sick, '{FAR}', seen), '0001-01-01') < 0"},
        {"where": f"days_between('{FAR}', seen) < 0 or log(days(seen)) > 0"},
    ],
)
def test_a_far_literal_beside_an_instant(unit: str, zone: str | None, asked: dict[str, object]) -> None:
    for sick in (False, True):
        seen = pd.Series(np.array(["2020-01-01"] * 100, f"M8[{unit}]"))
        frame = pd.DataFrame({"id": range(100), "sick": [i == 17 and sick for i in range(100)]})
        frame["seen"] = seen if zone is None else seen.dt.tz_localize(zone)
        assert spent(frame, **asked) == "1"


@pytest.mark.parametrize("one", UNITS)
@pytest.mark.parametrize("other", UNITS)
@pytest.mark.parametrize("asked", [{"where": "a < b"}, {"by": "case(id == 3, a, b)"}, {"where": "not (a == b)"}])
def test_instants_of_several_units(one: str, other: str, asked: dict[str, object]) -> None:
    for far in ("2021-01-01", "2262-04-11T23:47:16" if other == "ns" else "3000-01-01"):
        values = np.array(["2021-01-01"] * 49 + [far], f"M8[{other}]")
        frame = pd.DataFrame({"id": range(50), "a": np.array(["2020-01-01"] * 50, f"M8[{one}]"), "b": values})
        assert spent(frame, **asked) == "1"
