# ruff: noqa: E501 - a table reads better in long lines
"""A document as ``tightrope release --json`` prints it: census-like and wages-like answers, with every hard case."""

from __future__ import annotations

import math
from typing import Any

from tightrope.release.questions.kinds import KINDS

STATES = (
    "Alabama Alaska Arizona Arkansas California Colorado Connecticut Delaware Florida Georgia Hawaii Idaho Illinois "
    "Indiana Iowa Kansas Kentucky Louisiana Maine Maryland Massachusetts Michigan Minnesota Mississippi Missouri Montana "
    "Nebraska Nevada New_Hampshire New_Jersey New_Mexico New_York North_Carolina North_Dakota Ohio Oklahoma Oregon "
    "Pennsylvania Rhode_Island South_Carolina South_Dakota Tennessee Texas Utah Vermont Virginia Washington "
    "West_Virginia Wisconsin Wyoming"
)
OVER = "rows, at most 8 of one person, 1 of them in one group"
STATEMENT = "Intervals hold the statistic of the bounded, clamped rows with probability at least 95 %, each by itself."


def wobble(i: int) -> float:
    """A number in [−1, 1] that looks random and is always the same."""
    return math.sin(12.9898 * i + 78.233)


def row(value: float | None, half: float, **keys: object) -> dict[str, Any]:
    if value is None:
        return {**keys, "value": None, "lower": 2, "upper": 10}
    return {**keys, "value": value, "lower": value - half, "upper": value + half}


def answer(
    name: str, question: str, kind: str, by: list[str], rows: list[dict[str, Any]], **more: Any
) -> dict[str, Any]:
    noise = {"statistic": kind, "family": "discrete truncated Laplace", "unit": "0.00001" if kind == "mean" else "1"}
    size = {"mean_absolute_error": 5.1, "half_width_95": 15.2, "worst_error": 80.0}
    why = {"why": "least expected error of 4 families at this budget"}
    facts = {"kind": kind, "meaning": KINDS[kind].meaning, "additive": KINDS[kind].additive, "over": OVER}
    filled = {
        "name": name, "question": question, **facts, "by": by, "keys": "discovered", "weight": 1, "rows": rows,
        "error": {"expected_absolute_error": 5.1, "half_width_95": 15.2, "worst_error": 80.0, "by_group_size": [], "statement": STATEMENT},
        "noise": [{**noise, **size, **why}], "notes": ["keys are shown when their noisy count exceeds 37"],
    }  # fmt: skip
    return filled | more


def mean_error(scale: float) -> dict[str, Any]:
    sizes = [
        {"rows": n, "expected_absolute_error": scale / n, "half_width_95": 2.4 * scale / n, "suppressed": hidden}
        for n, hidden in ((30, 0.41), (100, 0), (1000, 0), (10000, 0))
    ]
    nothing = {"expected_absolute_error": None, "half_width_95": None, "worst_error": None}
    return {**nothing, "by_group_size": sizes, "statement": STATEMENT}


def counts_by_state() -> dict[str, Any]:
    names = [state.replace("_", " ") for state in STATES.split()]
    rows = [row(round(600 + 560 * wobble(i) + 2400 * (i % 11 == 4)), 15, state=name) for i, name in enumerate(names)]
    return answer("people_by_state", "number of people by state", "count", ["state"], rows)


def means_by_education() -> dict[str, Any]:
    rows = [row(5.6 + 0.07 * e + 0.03 * wobble(e), 0.012 + 3 / (e + 2) ** 3, educ=e) for e in range(1, 18)]
    rows += [row(None, 0, educ=0), row(6.02, 0.31, educ=None)]
    noise = [
        {"statistic": "sum", "family": "discrete truncated Laplace", "mean_absolute_error": 5.1, "half_width_95": 15.2, "worst_error": 80.0,
         "unit": "0.00001", "why": "least expected error of 4 families at this budget"},
        {"statistic": "count", "family": "optimal staircase", "mean_absolute_error": 1.2, "half_width_95": 4, "worst_error": None,
         "unit": "1", "why": "closed-form optimum at sensitivity 1"},
    ]  # fmt: skip
    question = "mean of lweekinc between 2 and 10 by educ"
    return answer("mean_lweekinc_by_educ", question, "mean", ["educ"], rows, error=mean_error(27.0), noise=noise)


def total() -> dict[str, Any]:
    return answer("people", "number of people", "count", [], [row(29501, 14)], keys=None, notes=[])


def hours_by_year() -> dict[str, Any]:
    rows = [row(2050 + 12 * (y - 1980) + 60 * wobble(y), 190 if y != 1984 else 2600, year=y) for y in range(1980, 1988)]
    notes = ["at most one row of a person in a group"]
    question = "mean of hours between 0 and 5000 by year"
    return answer("mean_hours_by_year", question, "mean", ["year"], rows, error=mean_error(19000), notes=notes)


def wages_by_union() -> dict[str, Any]:
    rows = [row(1.602, 0.081, union=0), row(1.771, 0.19, union=1)]
    question = "mean of lwage between -1 and 4 by union"
    return answer("mean_lwage_by_union", question, "mean", ["union"], rows, error=mean_error(40), keys="given")


def two_keys() -> dict[str, Any]:
    regions, sectors = ["North", "South", "East", "West"], ["Farming", "Trade", "Public service", "Manufacturing"]
    rows = [row(round(90 + 80 * wobble(7 * i + j)), 21, region=r, sector=s) for i, r in enumerate(regions) for j, s in enumerate(sectors)]  # fmt: skip
    question = "number of observations by region and sector"
    return answer("observations", question, "count", ["region", "sector"], rows)


def many_groups(size: int = 540) -> dict[str, Any]:
    rows = [row(round(400 + 390 * wobble(i)), 18, puma=f"Area {i:04d}") for i in range(size)]
    return answer("people_by_puma", "number of people by puma", "count", ["puma"], rows)


def certificate() -> dict[str, Any]:
    epsilons = [i / 10 for i in range(21)]
    # a pair whose loss is −1, 0 or 1: δ(ε) and the trade-off in closed form
    deltas = [
        max(0.3123 * (math.e - math.exp(e)) / (math.e - 1), 0) + 1e-8 * 10 ** (-4 * max(e - 1, 0)) for e in epsilons
    ]
    rates = [0.001, 0.01, 0.05, 0.1, 0.5]
    caught = [min(math.e * r, 0.3123 + r, 1 - (1 - r) / math.e) + 1e-8 for r in rates]
    families = {
        "discrete truncated Laplace": 1.0,
        "discrete staircase": 1.07,
        "discrete Laplace": 1.12,
        "discrete Gaussian": 1.61,
    }
    return {
        "epsilon": 0.999999, "epsilon_exact": "1", "delta": 1e-8, "delta_exact": "1e-8",
        "total_variation": 0.3123, "attack_success": 0.6562, "budget": {"delta": "1e-8", "points": [["1", "1e-8"]]},
        "neighbours": {"relation": "add-remove", "person": "nr", "means": "a person", "rows_per_person": 8, "rows_per_group": 1, "groups_per_person": 8,
                       "statement": "Adding or removing one person with all their rows"},
        "mechanisms": [{"answers": ["people_by_state"], "statistic": "count", "column": None, "by": ["state"], "unit": "1", "rows": 8,
                        "family": "discrete truncated Laplace", "sensitivity_per_row": "1",
                        "table": {"centre": "1", "half": ["1"]}}],
        "profile": {"epsilon": epsilons, "delta": deltas},
        "tradeoff": {"false_positive_rate": rates, "true_positive_rate": caught},
        "alternatives": [{"family": family, "relative_error": error} for family, error in families.items()],
        "computed": {"engine": "grid", "argument": "The curve was computed on a grid with every rounding towards less privacy; its width is below 1e-9."},
        "versions": {"tightrope": "0.1.0", "numpy": "2.4.6"}, "ledger": "not recorded in a ledger",
    }  # fmt: skip


def census() -> dict[str, Any]:
    """The typical page."""
    return {
        "title": "Census 2000",
        "answers": [total(), means_by_education(), counts_by_state()],
        "certificate": certificate(),
    }


def everything() -> dict[str, Any]:
    """Every kind of answer on one page."""
    hard = [hours_by_year(), wages_by_union(), two_keys(), many_groups()]
    return {"title": "Census and wages", "answers": [*census()["answers"], *hard], "certificate": certificate()}
