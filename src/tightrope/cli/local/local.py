"""``tightrope local``: studies with local differential privacy.

``check`` computes the privacy loss of a randomization matrix.
"""

from __future__ import annotations

import csv
import math
from pathlib import Path
from typing import Annotated, Any

import typer

from tightrope.channels import Channel
from tightrope.cli.local import perturb, plan
from tightrope.cli.options import AsJson, command_from_dataclass
from tightrope.cli.output import echo_lines, print_json
from tightrope.documents.budget import attack_success_of
from tightrope.documents.numbers import UP, percent_text, terminal_text
from tightrope.errors import InputError

CHECK_EXAMPLE = """\b
Example, for a CSV file in which each line has the probabilities of all reports for one answer:
  tightrope local check channel.csv --delta 1e-6
"""
app = typer.Typer(
    rich_markup_mode=None,
    no_args_is_help=True,
    add_completion=False,
    help="Local differential privacy: each person randomizes their own answer before it is collected.",
)
MatrixPath = Annotated[Path, typer.Argument(metavar="MATRIX", help="A CSV file of probabilities, one line per answer.")]
Delta = Annotated[float, typer.Option(metavar="D", help="delta of (epsilon, delta)-DP, for example 1e-6.")]
SUM_TOLERANCE = 1e-9
"""Largest accepted difference between the sum of a row's probabilities and 1."""

app.command("plan", epilog=plan.STUDY_EXAMPLE)(command_from_dataclass(plan.StudyOptions, plan.plan))
app.command("perturb", epilog=perturb.PERTURB_EXAMPLE, short_help="Randomize answers: write one report per row.")(
    perturb.perturb
)
app.command("estimate", epilog=perturb.ESTIMATE_EXAMPLE)(
    command_from_dataclass(perturb.EstimateOptions, perturb.estimate)
)


@app.command("check", epilog=CHECK_EXAMPLE)
def check(matrix_path: MatrixPath, delta: Delta = 0.0, as_json: AsJson = False) -> None:
    """Compute the privacy loss of a randomization matrix.

    Each line of the CSV file has the probabilities P(report | answer) of all reports for one answer.
    """
    channel = Channel(read_probability_matrix(matrix_path))
    eta = channel.total_variation
    data: dict[str, Any] = {
        "inputs": channel.input_count,
        "outputs": channel.output_count,
        "epsilon": channel.epsilon,
        "delta": delta,
        "epsilon_at_delta": channel.guarantee(delta).epsilon,
        "total_variation": eta,
        "guess": attack_success_of(eta),
        "kl_contraction": channel.kl_contraction,
        "capacity": channel.channel_capacity().upper,
    }
    if as_json:
        print_json(data)
        return
    echo_lines(f"{data['inputs']} answers, {data['outputs']} reports")
    at_delta = (
        ""
        if delta == 0
        else f"; epsilon at delta {terminal_text(delta, 6)}: {_format_upper_bound(data['epsilon_at_delta'])}"
    )
    echo_lines(f"epsilon: {_format_upper_bound(data['epsilon'])}{at_delta}")
    echo_lines(
        f"total variation: {_format_upper_bound(data['total_variation'])}; a guess between two equally likely answers "
        f"is right at most {percent_text(data['guess'], UP)} of the time (random guessing: 50 %)"
    )
    contraction = _format_upper_bound(data["kl_contraction"])
    echo_lines(
        f"KL contraction coefficient: {contraction}; the KL divergence between the reports of two populations is at "
        f"most {contraction} times the one between their answers"
    )
    echo_lines(
        f"channel capacity: {_format_upper_bound(data['capacity'])} nats; for every prior, the mutual information "
        "between an answer and its report is at most this"
    )


def _format_upper_bound(value: float) -> str:
    """Return the number with 6 digits, rounded up; "∞" if it is infinite."""
    return terminal_text(value, 6, UP) if math.isfinite(value) else "∞"


def read_probability_matrix(path: Path) -> list[list[float]]:
    """Return the rows of a CSV file of numbers. Errors do not show its contents."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = [[float(cell) for cell in row] for row in csv.reader(file) if row]
    except OSError as problem:
        raise InputError.from_text(str(path), f"cannot be read ({problem.strerror})") from None
    except (ValueError, csv.Error):
        message = "expected a CSV file that has only numbers, with commas between them and without a header"
        raise InputError.from_text(str(path), message) from None
    lengths = sorted({len(row) for row in rows})
    layout = "one line per input (answer), one column per output (report)"
    if not lengths:
        raise InputError.from_text(str(path), f"the file is empty; expected {layout}")
    if len(lengths) > 1:
        message = f"all lines must have the same number of values; the lengths range from {lengths[0]} to {lengths[-1]}"
        raise InputError.from_text(str(path), f"{message}; expected {layout}")
    for number, row in enumerate(rows, start=1):
        if abs(math.fsum(row) - 1) > SUM_TOLERANCE:
            message = (
                f"the probabilities sum to {math.fsum(row):.6g}, not 1; if these are counts, divide by their total"
            )
            raise InputError.from_text(f"row {number} of {path}", message)
    return rows
