"""``tightrope noise``: the least noise of every family at one budget, side by side."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tightrope.cli.options import AsJson

if TYPE_CHECKING:
    from tightrope.certificates import Budget
    from tightrope.design.calibration import Calibrated

EXAMPLE = """\b
Example:
  tightrope noise --epsilon 1 --delta 1e-6 --sensitivity 3
"""
Epsilon = Annotated[str, typer.Option(metavar="E", help="How much one answer may tell about a person; 1 is usual.")]
Delta = Annotated[str, typer.Option(metavar="D", help="How improbable a failure of that promise must be, say 1e-6.")]
Eta = Annotated[
    str | None,
    typer.Option(metavar="T", help="Also cap the total variation: an attacker is right (1 + T)/2 of the time."),
]
Sensitivity = Annotated[int, typer.Option(metavar="S", help="How much one person can change the whole-number answer.")]


def noise(
    epsilon: Epsilon, delta: Delta, sensitivity: Sensitivity = 1, total_variation: Eta = None, as_json: AsJson = False
) -> None:
    """Compare the least noise of every family at a budget.

    For one whole-number answer. What is compared is what would be sampled, rounding included.
    """
    from tightrope.cli.output import print_json, working
    from tightrope.design.calibration import families

    budget = _budget(epsilon, delta, total_variation)
    with working("Searching the least noise of every family ..."):
        found = families(budget, sensitivity=sensitivity)
        rows = _compared(found)
    data = {**budget.to_data(), "sensitivity": sensitivity, "families": rows}
    if as_json:
        print_json({"epsilon": float(epsilon), **data, "delta": float(budget.delta)})
    else:
        _show(budget, sensitivity, rows)


def _budget(epsilon: str, delta: str, total_variation: str | None) -> Budget:
    from tightrope.certificates import Budget
    from tightrope.errors import InputError

    if total_variation is None:
        return Budget(epsilon=epsilon, delta=delta)
    Budget(epsilon=epsilon, delta=delta)  # names its own mistakes before the list of points is made
    try:
        return Budget(epsilon=epsilon, delta=delta, points=[(0, total_variation)])
    except InputError:
        raise InputError("total_variation", total_variation, "a number in [0, 1)", "0.1 is strict") from None


def _compared(found: Sequence[Calibrated]) -> list[dict[str, Any]]:
    """Errors of each family, and how much larger its E|X| is than the least one."""
    errors = [family.mechanism.mean_absolute_error for family in found if family.mechanism]
    least = min(errors, default=math.nan)
    return [{"family": family.family, **_facts(family, least)} for family in found]


def _facts(family: Calibrated, least: float) -> dict[str, Any]:
    law = family.mechanism
    if law is None:
        return {"possible": False, "reason": family.reason}
    error = law.mean_absolute_error
    return {
        "possible": True,
        "mean_absolute_error": error,
        "root_mean_squared_error": math.sqrt(law.mean_squared_error),
        "half_width_95": law.half_width(0.95),
        "worst_error": law.worst_error,
        "total_variation": law.loss.total_variation(),
        "ratio": error / least if least > 0 else 1.0,
    }


def _show(budget: Budget, sensitivity: int, rows: Sequence[Mapping[str, Any]]) -> None:
    from tightrope.cli.output import print_table, say

    say(f"Whole-number noise for one answer that a person changes by at most {sensitivity}", f"{budget}\n")
    columns = ["family", "E|X|", "sqrt(E X²)", "95 % ±", "worst ±", "total var.", "ratio"]
    ordered = sorted(rows, key=lambda row: row.get("ratio", math.inf))
    print_table(columns, [_line(row) for row in ordered])
    say("\nerror E|X| and its square root of E X²; 95 % of errors and all errors within ±; ratio of E|X| to the best")
    say("total variation t: an attacker who guesses whether somebody is in the data is right (1 + t)/2 of the time.")
    if sensitivity == 1:
        say("At sensitivity 1 no whole-number noise beats the closed form: not in E|X|, not in any other error.")


def _line(row: Mapping[str, Any]) -> list[str]:
    from tightrope.report.digits import UP, fixed, significant

    if not row["possible"]:
        return [f"{row['family']}: not possible, {row['reason']}", *["–"] * 6]
    worst = "no limit" if math.isinf(row["worst_error"]) else fixed(row["worst_error"], 0)
    spread = [significant(row[name], 4, UP) for name in ("mean_absolute_error", "root_mean_squared_error")]
    half, eta = fixed(row["half_width_95"], 0), significant(row["total_variation"], 4, UP)
    return [row["family"], *spread, half, worst, eta, significant(row["ratio"], 4, UP)]
