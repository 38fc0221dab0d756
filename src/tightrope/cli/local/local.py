"""``tightrope local``: studies without a trusted collector; ``check`` computes the guarantee of a report."""

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
from tightrope.errors import InputError

CHECK_EXAMPLE = """\b
Example, a table with a line for each answer that a person may have, and in it the probabilities of the reports:
  tightrope local check channel.csv --delta 1e-6
"""
app = typer.Typer(rich_markup_mode=None, no_args_is_help=True, add_completion=False)
Table = Annotated[Path, typer.Argument(metavar="CHANNEL", help="A CSV file of numbers: a row for each input.")]
Delta = Annotated[float, typer.Option(metavar="D", help="The delta at which epsilon is stated.")]


app.command("plan", epilog=plan.STUDY_EXAMPLE)(command_from_dataclass(plan.StudyOptions, plan.plan))
app.command("perturb", epilog=perturb.PERTURB_EXAMPLE)(perturb.perturb)
app.command("estimate", epilog=perturb.ESTIMATE_EXAMPLE)(
    command_from_dataclass(perturb.EstimateOptions, perturb.estimate)
)


@app.command("check", epilog=CHECK_EXAMPLE)
def check(channel: Table, delta: Delta = 0.0, as_json: AsJson = False) -> None:
    """What a report drawn from a table of probabilities says about a person."""
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
    echo_lines(f"{data['inputs']} inputs, {data['outputs']} reports")
    echo_lines(
        f"epsilon {_format_number(data['epsilon'])}; at delta {delta:g} epsilon "
        f"{_format_number(data['epsilon_at_delta'])}"
    )
    echo_lines(
        f"total variation {data['total_variation']:.6g}: a guess between two is right {data['guess']:.4%} of the time"
    )
    echo_lines(f"contraction {data['kl_contraction']:.6g}: n reports say no more than so much of what n values say")
    echo_lines(f"capacity {data['capacity']:.6g} nats: no report says more about a value, whatever is believed before")


def _format_number(value: float) -> str:
    return f"{value:.6g}" if math.isfinite(value) else "∞"


def read_channel(path: Path) -> list[list[float]]:
    """The numbers of a CSV file; no value of it is shown in an error."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as lines:
            rows = [[float(cell) for cell in row] for row in csv.reader(lines) if row]
    except OSError as problem:
        raise InputError("channel", str(path), "a file that can be read", str(problem.strerror)) from None
    except (ValueError, csv.Error):
        remedy = "commas between them, no line of names"
        raise InputError("channel", str(path), "a CSV file of numbers alone", remedy) from None
    lengths = sorted({len(row) for row in rows})
    if len(lengths) != 1:
        remedy = "a line for each input, a column for each report"
        raise InputError("numbers in a line of the channel", lengths, "as many in each", remedy)
    return rows
