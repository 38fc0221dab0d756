"""``tightrope account``: what a list of mechanisms adds up to, as brackets that hold the truth."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tightrope.cli.account.attack import attack_table, relative_width, show_attack, width_of
from tightrope.cli.options import AsJson

if TYPE_CHECKING:
    from tightrope.cli.account.steps import Step
    from tightrope.privacy import Bounds, PrivacyLoss

ACCOUNT_EXAMPLE = """\b
Example, 3515 steps of DP-SGD:
  tightrope account steps.toml --delta 1e-5
where steps.toml holds
  [[step]]
  mechanism = "gaussian"
  scale = 1.3
  poisson_rate = 0.00427
  count = 3515
"""
File = Annotated[
    str, typer.Argument(metavar="STEPS", help="A TOML file with one [[step]] or more; see docs/plan-file.md.")
]
Epsilons = Annotated[list[str] | None, typer.Option("--epsilon", metavar="E", help="Show delta here; may be repeated.")]
Deltas = Annotated[list[str] | None, typer.Option("--delta", metavar="D", help="Show epsilon here; may be repeated.")]
USUAL = ("1e-6",)
SHOWN_RATES = (0.001, 0.01, 0.1)
FIXED = "Parameters fixed in advance: these bounds hold where no parameter was chosen after seeing an earlier output."


def account(path: File, epsilon: Epsilons = None, delta: Deltas = None, as_json: AsJson = False) -> None:
    """Add up what the steps in a file cost together.

    Epsilon at delta, delta at epsilon, each in a bracket that holds the truth, and what an attacker gains.
    """
    from tightrope.cli.account.steps import composed, read_steps
    from tightrope.cli.output import print_json, working

    asked = _numbers("epsilon", epsilon or ()), _numbers("delta", delta or (() if epsilon else USUAL))
    steps = read_steps(path)
    with working("Adding up ..."):
        data = _accounted(steps, composed(steps), *asked)
    if as_json:
        print_json(data)
    else:
        _show(data)


def _numbers(name: str, texts: Sequence[str]) -> list[float]:
    from tightrope.certificates.budget import decimal

    return [float(decimal(name, text)) for text in texts]


def _accounted(steps: Sequence[Step], loss: PrivacyLoss, epsilons: list[float], deltas: list[float]) -> dict[str, Any]:
    eta = loss.total_variation()
    return {
        "steps": [step.to_data() for step in steps],
        "epsilon_at_delta": [_bracket("delta", at, "epsilon", loss.epsilon_bounds) for at in deltas],
        "delta_at_epsilon": [_bracket("epsilon", at, "delta", loss.delta_bounds) for at in epsilons],
        "total_variation": eta,
        "attack_success": (1 + eta) / 2,
        "attack": attack_table(loss, SHOWN_RATES),
        "neighbours": str(loss.neighbours),
        "engine": loss.engine,
        "statement": FIXED,
    }


def _bracket(given: str, at: float, name: str, bounds: Callable[[float], Bounds]) -> dict[str, float]:
    """The upper end under the plain name: it is the one that is safe to state."""
    lower, upper = bounds(at)
    bracket = {"lower": float(lower), "upper": float(upper)}
    return {given: at, name: float(upper), **bracket, "relative_width": width_of(bracket)}


def _show(data: Mapping[str, Any]) -> None:
    from tightrope.cli.output import heading, print_table, say

    heading("Steps")
    columns = ["mechanism", "parameters", "each run sees", "erased", "count"]
    print_table(columns, [_step_line(step) for step in data["steps"]], left=3)
    if data["epsilon_at_delta"]:
        heading("Epsilon at delta (safe to state; the truth is in the bracket)")
        print_table(
            ["delta", "epsilon", "bracket", "relative width"],
            [_bound_line(row, "delta", "epsilon") for row in data["epsilon_at_delta"]],
        )
    if data["delta_at_epsilon"]:
        heading("Delta at epsilon (safe to state; the truth is in the bracket)")
        print_table(
            ["epsilon", "delta", "bracket", "relative width"],
            [_bound_line(row, "epsilon", "delta") for row in data["delta_at_epsilon"]],
        )
    heading("What an attacker gains")
    show_attack(data)
    say(f"\nneighbours: {data['neighbours']}; engine: {data['engine']}", data["statement"])


def _step_line(step: Mapping[str, Any]) -> list[str]:
    from tightrope.report.words.digits import MISSING, percent

    parameters = ", ".join(f"{name} {value}" for name, value in step["parameters"].items())
    erased = MISSING if step["erase"] is None else percent(step["erase"])
    return [step["mechanism"], parameters, _sample(step), erased, f"{step['count']:,}"]


def _sample(step: Mapping[str, Any]) -> str:
    """Which records take part in a run."""
    if step["subset"] is not None:
        return "{:,} of {:,}".format(*step["subset"])
    return "everybody" if step["poisson_rate"] is None else f"each with chance {step['poisson_rate']:g}"


def _bound_line(row: Mapping[str, float], given: str, name: str) -> list[str]:
    """The number rounded to the private side, and its bracket rounded outwards."""
    from tightrope.report.words.digits import DOWN, UP

    bracket = f"{_digits(row['lower'], 12, DOWN)} … {_digits(row['upper'], 12, UP)}"
    return [f"{row[given]:g}", _digits(row[name], 6, UP), bracket, relative_width(row)]


def _digits(value: float, digits: int, rounding: str) -> str:
    from tightrope.report.words.digits import significant

    return significant(value, digits, rounding) if math.isfinite(value) else "∞ (no bound)"
