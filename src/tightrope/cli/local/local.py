"""``tightrope local``: studies in the local model; ``check`` computes the privacy loss of a randomization matrix."""

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
from tightrope.documents.numbers import UP, percent_text, typed_text
from tightrope.errors import InputError

CHECK_EXAMPLE = """\b
Example, a CSV file whose line i has the probabilities of all reports if the answer is i:
  tightrope local check channel.csv --delta 1e-6
"""
app = typer.Typer(
    rich_markup_mode=None,
    no_args_is_help=True,
    add_completion=False,
    help="Local differential privacy: each person randomizes their own answer before it is collected.",
)
Table = Annotated[Path, typer.Argument(metavar="CHANNEL", help="A CSV file of probabilities, one line per answer.")]
Delta = Annotated[float, typer.Option(metavar="D", help="delta of (epsilon, delta)-DP, for example 1e-6.")]


app.command("plan", epilog=plan.STUDY_EXAMPLE)(command_from_dataclass(plan.StudyOptions, plan.plan))
app.command("perturb", epilog=perturb.PERTURB_EXAMPLE)(perturb.perturb)
app.command("estimate", epilog=perturb.ESTIMATE_EXAMPLE)(
    command_from_dataclass(perturb.EstimateOptions, perturb.estimate)
)


@app.command("check", epilog=CHECK_EXAMPLE)
def check(channel: Table, delta: Delta = 0.0, as_json: AsJson = False) -> None:
    """Compute the privacy loss of a randomization matrix.

    Line i of the CSV file has the probabilities P(report | answer i) of all reports.
    """
    found = Channel(read_channel(channel))
    eta = found.total_variation
    data: dict[str, Any] = {
        "inputs": found.input_count,
        "outputs": found.output_count,
        "epsilon": found.epsilon,
        "delta": delta,
        "epsilon_at_delta": found.guarantee(delta).epsilon,
        "total_variation": eta,
        "guess": (1 + eta) / 2,
        "kl_contraction": found.kl_contraction,
        "capacity": found.channel_capacity().upper,
    }
    if as_json:
        print_json(data)
        return
    echo_lines(f"{data['inputs']} answers, {data['outputs']} reports")
    at_delta = (
        "" if delta == 0 else f"; epsilon at delta {typed_text(delta, 6)}: {_rounded_up(data['epsilon_at_delta'])}"
    )
    echo_lines(f"epsilon: {_rounded_up(data['epsilon'])}{at_delta}")
    echo_lines(
        f"total variation: {_rounded_up(data['total_variation'])}; a guess between two answers is right at most "
        f"{percent_text(data['guess'], UP)} of the time (random guessing: 50 %)"
    )
    contraction = typed_text(data["kl_contraction"], 6)
    echo_lines(
        f"KL contraction coefficient: {contraction}; the KL divergence between the reports of two populations is at "
        f"most {contraction} times the one between their answers"
    )
    echo_lines(
        f"channel capacity: {typed_text(data['capacity'], 6)} nats; for every prior, the mutual information between an "
        "answer and its report is at most this"
    )


def _rounded_up(value: float) -> str:
    return typed_text(value, 6, UP) if math.isfinite(value) else "∞"


def read_channel(path: Path) -> list[list[float]]:
    """Return the numbers of a CSV file; errors never show its contents."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as lines:
            rows = [[float(cell) for cell in row] for row in csv.reader(lines) if row]
    except OSError as problem:
        raise InputError.from_text(str(path), f"cannot be read ({problem.strerror})") from None
    except (ValueError, csv.Error):
        text = "expected a CSV file that has only numbers, with commas between them and without a header"
        raise InputError.from_text(str(path), text) from None
    lengths = sorted({len(row) for row in rows})
    layout = "one line for each answer, one column for each report"
    if not lengths:
        raise InputError.from_text(str(path), f"the file is empty; expected {layout}")
    if len(lengths) > 1:
        text = f"all lines must have equally many numbers; they have {lengths[0]} to {lengths[-1]}"
        raise InputError.from_text(str(path), f"{text}; expected {layout}")
    return rows
