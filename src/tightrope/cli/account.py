"""``tightrope account``: what a list of mechanisms adds up to, as brackets that hold the truth."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Annotated

import typer
from msgspec import structs

from tightrope.cli.options import AsJson, Force, Page, check_page, command_app, curve_of
from tightrope.cli.output import echo_heading, echo_lines, print_document, print_table, show_spinner, write_file
from tightrope.documents.account import Account, Attack, AttackerGain, delta_bracket, epsilon_bracket
from tightrope.documents.budget import exact_decimal
from tightrope.documents.numbers import UP, percent_text, significant_text
from tightrope.documents.reader import named_keys
from tightrope.documents.steps import read_steps
from tightrope.reporting import document_html
from tightrope.reporting.wording.accounts import STEP_COLUMNS, bound_line, step_line

if TYPE_CHECKING:
    from tightrope.accounting import PrivacyLoss
    from tightrope.documents.steps import Run, Step

# From written steps to the privacy loss of all of them together.


def compose_steps(steps: Sequence[Run]) -> PrivacyLoss:
    """The loss of all steps together, with **parameters fixed in advance**; errors say which step they come from."""
    losses: list[PrivacyLoss] = []
    for number, step in enumerate(steps, start=1):
        with named_keys(f"step {number}"):
            make = getattr(importlib.import_module("tightrope"), step.mechanism_name)
            once: PrivacyLoss = make(**step.maker_arguments).loss
            if step.poisson_rate is not None:
                once = once.poisson_sample(step.poisson_rate)
            if step.subset is not None:
                m, n = step.subset
                once = once.subset_sample(m, n)  # type: ignore[arg-type]  # it refuses parts of records in its own words
            losses.append(step.count * (once if step.erase is None else once.erase(step.erase)))
    return reduce(add, losses)


# What a loss means for an attacker: shown the same by every command.


def attack_rate_bounds(loss: PrivacyLoss, rates: Sequence[float], statement: str) -> AttackerGain:
    """Upper bounds on every attack's true-positive rate at these false-positive rates."""
    eta = float(loss.total_variation())
    attacks = [
        Attack(false_positive_rate=rate, true_positive_rate=float(loss.true_positive_rate(rate))) for rate in rates
    ]
    return AttackerGain(
        total_variation=eta,
        attack_success=(1 + eta) / 2,
        attack=tuple(attacks),
        neighbors=loss.neighbors.value,
        method=loss.method,
        statement=statement,
    )


def show_attack(found: AttackerGain) -> None:
    """The table, and how often a guess is right; rounded up."""
    rates = [[percent_text(row.false_positive_rate), percent_text(row.true_positive_rate, UP)] for row in found.attack]
    print_table(["false alarms", "members recognized, at most"], rows=rates, left=0)
    right, eta = percent_text(found.attack_success, UP), significant_text(found.total_variation, 6, UP)
    echo_lines(f"total variation {eta}: a guess about membership is right at most {right}.")


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


def account(
    path: File,
    epsilon: Epsilons = None,
    delta: Deltas = None,
    report: Page = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Add up what the steps in a file cost together.

    Epsilon at delta, delta at epsilon, each in a bracket that holds the truth, and what an attacker gains.
    """
    check_page(report, replace=force)
    asked = _parse_numbers("epsilon", epsilon or ()), _parse_numbers("delta", delta or (() if epsilon else USUAL))
    steps = read_steps(path).step
    with show_spinner("Adding up ..."):
        loss = compose_steps(steps)
        found = _account_result(steps, loss, *asked)
    if report is not None:
        with show_spinner("Writing the page ..."):
            write_file(report, document_html(found, curve=curve_of(loss, found.first_guarantee[0])))
    if as_json:
        print_document(found)
        return
    echo_heading("Steps")
    print_table(STEP_COLUMNS, [step_line(step) for step in found.steps], left=3)
    if found.epsilon_at_delta:
        echo_heading("Epsilon at delta (safe to state; the truth is in the bracket)")
        lines = [bound_line(row.delta, row.epsilon, row) for row in found.epsilon_at_delta]
        print_table(["delta", "epsilon", "bracket", "relative width"], lines)
    if found.delta_at_epsilon:
        echo_heading("Delta at epsilon (safe to state; the truth is in the bracket)")
        lines = [bound_line(row.epsilon, row.delta, row) for row in found.delta_at_epsilon]
        print_table(["epsilon", "delta", "bracket", "relative width"], lines)
    echo_heading("What an attacker gains")
    show_attack(found)
    echo_lines(f"\nneighbors: {found.neighbors}; method: {found.method}", found.statement)
    echo_lines(*([] if report is None else [f"Written: {report}"]))


def _parse_numbers(name: str, texts: Sequence[str]) -> list[float]:

    return [float(exact_decimal(name, text)) for text in texts]


def _account_result(steps: tuple[Step, ...], loss: PrivacyLoss, epsilons: list[float], deltas: list[float]) -> Account:

    return Account(
        document="account",
        version=2,
        steps=steps,
        epsilon_at_delta=tuple(epsilon_bracket(at, *map(float, loss.epsilon_bounds(at))) for at in deltas),
        delta_at_epsilon=tuple(delta_bracket(at, *map(float, loss.delta_bounds(at))) for at in epsilons),
        **structs.asdict(attack_rate_bounds(loss, SHOWN_RATES, FIXED)),
    )


app = command_app(account, example=ACCOUNT_EXAMPLE)
