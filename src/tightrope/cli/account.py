"""``tightrope account``: lower and upper bounds on the total privacy loss of a list of mechanisms."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Annotated

import typer
from msgspec import structs

from tightrope.cli.options import AsJson, Force, HtmlReport, check_report_path, command_app, privacy_curve_points
from tightrope.cli.output import echo_heading, echo_lines, print_document, print_table, show_spinner, write_file
from tightrope.documents.account import Account, Attack, AttackerGain, delta_bracket, epsilon_bracket, read_steps
from tightrope.documents.budget import attack_success_of, exact_decimal
from tightrope.documents.numbers import UP, percent_text, significant_text
from tightrope.documents.reader import reword_key_errors
from tightrope.reporting import document_html
from tightrope.reporting.wording.accounts import STEP_COLUMNS, bound_line, method_text, step_line
from tightrope.reporting.wording.promise import attack_rate_text

if TYPE_CHECKING:
    from tightrope.accounting import PrivacyLoss
    from tightrope.documents.account import Run, Step

# From the steps of a file to their composed privacy loss.


def compose_steps(steps: Sequence[Run]) -> PrivacyLoss:
    """Return the composed loss of all steps, with **parameters fixed in advance**; errors name the step."""
    losses: list[PrivacyLoss] = []
    for number, step in enumerate(steps, start=1):
        with reword_key_errors(f"step {number}"):
            make_mechanism = getattr(importlib.import_module("tightrope"), step.mechanism_name)
            step_loss: PrivacyLoss = make_mechanism(**step.maker_arguments).loss
            if step.poisson_rate is not None:
                step_loss = step_loss.poisson_sample(step.poisson_rate)
            if step.subset is not None:
                m, n = step.subset
                step_loss = step_loss.subset_sample(m, n)  # type: ignore[arg-type]  # raises for fractional records
            losses.append(step.count * (step_loss if step.erase is None else step_loss.erase(step.erase)))
    return reduce(add, losses)


# Bounds on an attacker's success, printed the same way by every command.

ATTACK_HEADING = "Power of the best membership-inference attack"


def attack_rate_bounds(loss: PrivacyLoss, rates: Sequence[float], statement: str) -> AttackerGain:
    """Return upper bounds on the true-positive rate of every attack at these false-positive rates."""
    eta = float(loss.total_variation())
    attacks = [
        Attack(false_positive_rate=rate, true_positive_rate=float(loss.true_positive_rate(rate))) for rate in rates
    ]
    return AttackerGain(
        total_variation=eta,
        attack_success=attack_success_of(eta),
        attack=tuple(attacks),
        neighbors=loss.neighbors.value,
        method=loss.method,
        statement=statement,
    )


def print_attack_table(gain: AttackerGain) -> None:
    """Print the bounds on true-positive rates and on the success of a membership guess, rounded up."""
    rates = [
        [attack_rate_text(row.false_positive_rate), attack_rate_text(row.true_positive_rate)] for row in gain.attack
    ]
    print_table(["false-positive rate", "true-positive rate, at most"], rows=rates, left=0)
    success, eta = percent_text(gain.attack_success, UP), significant_text(gain.total_variation, 6, UP)
    echo_lines(f"total variation {eta}: a guess about membership is right at most {success} of the time.")


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
Epsilons = Annotated[
    list[str] | None, typer.Option("--epsilon", metavar="E", help="Report delta at this epsilon; may be repeated.")
]
Deltas = Annotated[
    list[str] | None,
    typer.Option(
        "--delta",
        metavar="D",
        help="Report epsilon at this delta; may be repeated. [default: 1e-6 if --epsilon is not given]",
    ),
]
DEFAULT_DELTAS = ("1e-6",)
NEIGHBORS_TEXT = {
    "unspecified": "those for which the sensitivities are stated",
    "add-remove": "one row is added or removed",
    "replace-one": "one row is replaced",
    "zero-out": "the contribution of one row is set to zero",
    "local": "one person's answer is replaced",
}
"""Neighboring relations as printed."""
SHOWN_FALSE_POSITIVE_RATES = (0.001, 0.01, 0.1)
ASSUMPTIONS_TEXT = (
    "Valid for parameters that were fixed in advance, which means that no parameter depends on an earlier output."
)


def account(
    path: File,
    epsilon: Epsilons = None,
    delta: Deltas = None,
    report: HtmlReport = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Compute the total privacy loss of the mechanisms in a file.

    Prints epsilon at each --delta and delta at each --epsilon, with lower and upper bounds, and bounds on an attacker's
    success.
    """
    check_report_path(report, replace=force)
    epsilons = _parse_numbers("epsilon", epsilon or ())
    deltas = _parse_numbers("delta", delta or (() if epsilon else DEFAULT_DELTAS))
    steps = read_steps(path).step
    with show_spinner("Composing ..."):
        loss = compose_steps(steps)
        result = _build_account(steps, loss, epsilons, deltas)
    if report is not None:
        with show_spinner("Writing the report ..."):
            write_file(report, document_html(result, curve=privacy_curve_points(loss, result.first_guarantee[0])))
    if as_json:
        print_document(result)
        return
    echo_heading("Steps")
    print_table(STEP_COLUMNS, [step_line(step) for step in result.steps], left=3)
    if result.epsilon_at_delta:
        echo_heading("Epsilon at delta (upper bounds; the true value lies in the interval)")
        lines = [bound_line(row.delta, row.epsilon, row) for row in result.epsilon_at_delta]
        print_table(["delta", "epsilon", "interval", "relative width"], lines)
    if result.delta_at_epsilon:
        echo_heading("Delta at epsilon (upper bounds; the true value lies in the interval)")
        lines = [bound_line(row.epsilon, row.delta, row) for row in result.delta_at_epsilon]
        print_table(["epsilon", "delta", "interval", "relative width"], lines)
    echo_heading(ATTACK_HEADING)
    print_attack_table(result)
    echo_lines(
        f"\nNeighboring data sets: {NEIGHBORS_TEXT[result.neighbors]}. "
        f"Accounting method: {method_text(result.method)}.",
        result.statement,
        f"In the tables, the true value is that of {loss.true_value_of}.",
    )
    echo_lines(*([] if report is None else [f"Written: {report}"]))


def _parse_numbers(name: str, texts: Sequence[str]) -> list[float]:
    return [float(exact_decimal(name, text)) for text in texts]


def _build_account(steps: tuple[Step, ...], loss: PrivacyLoss, epsilons: list[float], deltas: list[float]) -> Account:
    """Return the document with bounds on ε at each δ and on δ at each ε."""
    return Account(
        document="account",
        version=2,
        steps=steps,
        epsilon_at_delta=tuple(epsilon_bracket(delta, *map(float, loss.epsilon_bounds(delta))) for delta in deltas),
        delta_at_epsilon=tuple(delta_bracket(epsilon, *map(float, loss.delta_bounds(epsilon))) for epsilon in epsilons),
        **structs.asdict(attack_rate_bounds(loss, SHOWN_FALSE_POSITIVE_RATES, ASSUMPTIONS_TEXT)),
    )


app = command_app(account, example=ACCOUNT_EXAMPLE)
