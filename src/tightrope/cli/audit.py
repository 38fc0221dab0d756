"""``tightrope audit``: what samples of a mechanism on two neighboring inputs prove about it."""

from __future__ import annotations

import csv
import importlib
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from tightrope import audit as audits
from tightrope.audit import OneRun, one_run
from tightrope.audit.findings import claimed_points, in_percent
from tightrope.cli.errors import FAILED
from tightrope.cli.options import AsJson, check_picture_path, command_app, command_from_dataclass
from tightrope.cli.output import echo_lines, print_json, print_table, show_spinner
from tightrope.documents import Budget
from tightrope.documents.numbers import DOWN, percent_text, significant_text
from tightrope.errors import InputError
from tightrope.numerics.checks import check_integer
from tightrope.reporting.charts.plots import attack_curve

if TYPE_CHECKING:
    from tightrope.audit import Finding, Verdict
    from tightrope.numerics.arrays import Floats

# Samples for an audit: a CSV file, or a function of the user's.

TWO_SAMPLES, CANARIES = "input", "included"
HEADER = "a header with a column 'input' (1 or 0), or 'included' (1 or 0) and 'score', and columns of numbers"


@dataclass(frozen=True)
class Table:
    """Rows of numbers, and of each what it is: from input 1 or 0, or a canary that was in (1) or out (0)."""

    kind: str
    rows: Floats
    ones: Floats

    def from_file(self, which: int) -> Floats:
        """The rows of one input."""
        found: Floats = self.rows[self.ones == which]
        return found


def read_table(path: Path) -> Table:
    """The table of a CSV file; ``InputError`` names a line, never what stands there."""
    header, *lines = _read_lines(path)
    kind = next((name for name in (TWO_SAMPLES, CANARIES) if name in header), "")
    if not kind or len(header) < 2:
        raise InputError("header", "line 1", HEADER, "write a first line such as input,score")
    rows: list[list[float]] = []
    for number, line in enumerate(lines, 2):
        try:
            rows.append([float(cell) for _, cell in zip(header, line, strict=True)])
        except ValueError:  # a cell is not a number, or the line is shorter or longer than the header
            raise InputError("scores", f"line {number}", f"a table with {len(header)} numbers in every line") from None
    numbers = np.array(rows, dtype=np.float64)
    if not len(numbers):
        raise InputError("scores", str(path), "a file with at least one row below its header")
    place = header.index(kind)
    column = numbers[:, place]
    wrong = [number for number, value in enumerate(column, 2) if value not in (0, 1)]
    if wrong:
        raise InputError("scores", f"line {wrong[0]}", f"a table whose column '{kind}' holds 1 or 0")
    return Table(kind, np.delete(numbers, place, axis=1), column)


def _read_lines(path: Path) -> list[list[str]]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            found = [line for line in csv.reader(file) if line]
    except OSError as error:
        raise InputError("scores", str(path), f"a file that can be read ({error.strerror})") from None
    except (UnicodeDecodeError, csv.Error):
        raise InputError("scores", str(path), "a CSV file in UTF-8") from None
    if not found:
        raise InputError("scores", str(path), HEADER)
    return [[cell.strip() for cell in found[0]], *found[1:]]


def sample_function(name: str, runs: int) -> Table:
    """Outputs of module:function for ``runs`` runs on input 1 and on input 0: a number or a row of numbers each."""
    module, _, attribute = name.partition(":")
    expected = "module:function, as Python imports it from here"
    if not (module and attribute.isidentifier()):
        raise InputError("python", name, expected, "mechanism.py with a function noisy is mechanism:noisy")
    # As Python imports it, the working directory first.
    sys.path.insert(0, str(Path.cwd()))
    try:
        function = getattr(importlib.import_module(module), attribute, None)
    except ImportError as error:
        raise InputError("python", name, expected, f"importing {error.name or module} failed") from error
    finally:
        sys.path.pop(0)
    if not callable(function):
        raise InputError("python", name, expected, f"{module} has no function of that name")
    expected = "a function(input, runs) that returns one number a run, or a row of them"
    samples: list[Floats] = []
    for which in (1, 0):
        try:
            sample = np.asarray(function(which, runs), dtype=np.float64)
        except Exception as error:
            remedy = f"it raised {type(error).__name__}: see where with --debug"
            raise InputError("python", name, expected, remedy) from error
        rows = sample[:, None] if sample.ndim == 1 else sample
        if rows.ndim != 2 or not len(rows):
            raise InputError("python", name, expected, f"it returned an array of {sample.ndim} axes")
        samples.append(rows)
    one, other = samples
    if one.shape[1] != other.shape[1]:
        raise InputError("python", name, "a function that returns as many numbers a run on both inputs")
    return Table(TWO_SAMPLES, np.concatenate([one, other]), np.repeat([1.0, 0.0], [len(one), len(other)]))


AUDIT_EXAMPLE = """\b
Example:
  tightrope audit scores.csv --epsilon 1 --delta 1e-5   a header input,score and lines such as 1,0.73
  tightrope audit --python mechanism:noisy --doubles    noisy(1, runs) and noisy(0, runs) return samples
  tightrope audit canaries.csv --guesses 200            a header included,score: one run, many canaries

Exit code 1: the claim is refuted.
"""
DELTAS = (0.0, 1e-6, 1e-4, 1e-3, 1e-2, 0.1)
MOST_CORNERS = 400


@dataclass(frozen=True)
class AuditOptions:
    """The options, as typed."""

    scores: Annotated[
        Path | None, typer.Argument(metavar="SCORES.csv", help="One line a run: input (1 or 0) and its numbers.")
    ] = None
    python: Annotated[
        str | None,
        typer.Option(metavar="MODULE:FUNCTION", help="Import and call this function instead: it runs your own code."),
    ] = None
    runs: Annotated[int, typer.Option(metavar="N", help="With --python: runs on each of the two inputs.")] = 100_000
    doubles: Annotated[
        bool, typer.Option("--doubles", help="Look at the last bits of the numbers, too, by a classifier.")
    ] = False
    guesses: Annotated[
        int | None, typer.Option(metavar="K", help="With canaries: how many are guessed, half of them each way.")
    ] = None
    epsilon: Annotated[str | None, typer.Option(metavar="E", help="The claim: this epsilon ...")] = None
    delta: Annotated[str | None, typer.Option(metavar="D", help="... at this delta; 0 unless it is said.")] = None
    total_variation: Annotated[str | None, typer.Option(metavar="T", help="The claim: this total variation.")] = None
    confidence: Annotated[float, typer.Option(metavar="C", help="Everything said holds with this probability.")] = 0.99
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw what an attacker reaches into a .png, .svg or .pdf.")
    ] = None
    as_json: AsJson = False


def audit(options: AuditOptions) -> None:
    """Prove lower bounds on what a mechanism gives away.

    From samples of its output on two neighboring inputs, or from one run with many canaries. Several numbers a run
    are made one score by a classifier, which learns on half of the runs. With a claim: refuted, or how large an epsilon
    the test would have seen.
    """
    if options.epsilon is None and options.total_variation is None and options.delta is None:
        claim = None
    else:
        claim = Budget(epsilon=options.epsilon, delta=options.delta or "0", total_variation=options.total_variation)
    with show_spinner("Auditing ..."):
        found = _audit_samples(options, claim)
        verdict = None if claim is None else found.against(claim)
    data = _json_data(found, verdict)
    if options.plot is not None:
        if isinstance(found, OneRun):
            raise InputError("plot", str(options.plot), "left out: one run with canaries has no curve")
        check_picture_path(options.plot)
        try:
            attack_curve(*found.curve_points, () if claim is None else claimed_points(claim)).savefig(options.plot)
        except OSError as error:
            raise InputError("plot", str(options.plot), "a file that can be written", str(error.strerror)) from None
    _print_result(found, data, verdict, options.as_json)
    if verdict is not None and verdict.refuted:
        raise typer.Exit(FAILED)


def _audit_samples(options: AuditOptions, claim: Budget | None) -> Finding | OneRun:
    """What the samples prove: those of the file, or of the function."""
    if (options.scores is None) == (options.python is None):
        raise InputError("scores", options.scores and str(options.scores), "a CSV file, or --python, and not both")
    if options.scores is not None:
        table = read_table(options.scores)
    else:
        table = sample_function(str(options.python), check_integer("runs", options.runs))
    if table.kind == CANARIES:
        if table.rows.shape[1] != 1 or options.guesses is None:
            remedy = "fix --guesses before you look at who was included"
            raise InputError("guesses", options.guesses, "given, with one column of scores beside 'included'", remedy)
        return one_run(table.rows[:, 0], table.ones, guesses=options.guesses, confidence=options.confidence)
    one, other = table.from_file(1), table.from_file(0)
    if options.doubles and one.shape[1] > 1:
        raise InputError("doubles", f"{one.shape[1]} columns", "options for with one number a run")
    if options.doubles:
        columns = [audits.float_columns(part[:, 0]) for part in (one, other)]
        return audits.samples(*columns, confidence=options.confidence, claim=claim)
    if one.shape[1] > 1:
        return audits.samples(one, other, confidence=options.confidence, claim=claim)
    return audits.scores(one[:, 0], other[:, 0], confidence=options.confidence, claim=claim)


def _json_data(found: Finding | OneRun, verdict: Verdict | None) -> dict[str, Any]:
    """The data printed as JSON."""
    bounds = {
        "confidence": found.confidence,
        "epsilon": [{"delta": delta, "at_least": found.epsilon(delta)} for delta in DELTAS],
        "total_variation": found.delta(0.0),
        "attack_success": (1 + found.delta(0.0)) / 2,
    }
    claim = {} if verdict is None else {"verdict": {**asdict(verdict), "text": str(verdict)}}
    if isinstance(found, OneRun):
        runs: dict[str, Any] = {"canaries": found.canaries, "guesses": found.guesses, "correct": found.correct}
    else:
        false, true = (side[:: max(1, len(side) // MOST_CORNERS)].tolist() for side in found.curve_points)
        runs = {"runs": list(found.runs), "curve": {"false_positive_rate": false, "true_positive_rate": true}}
    return {"document": "audit", **runs, **bounds, **claim}


def _print_result(found: Finding | OneRun, data: dict[str, Any], verdict: Verdict | None, as_json: bool) -> None:

    if as_json:
        print_json(data)
        return
    if isinstance(found, OneRun):
        echo_lines(
            f"{found.correct:,} of {found.guesses:,} guesses about {found.canaries:,} canaries in one run are right"
        )
        together = "each by itself"
    else:
        echo_lines(f"{found.runs[0]:,} runs on the first input, {found.runs[1]:,} on the second")
        together = "all together"
    echo_lines(f"With a confidence of {in_percent(found.confidence)}, {together}:\n")
    rows = [[f"{row['delta']:g}", significant_text(row["at_least"], 4, DOWN)] for row in data["epsilon"]]
    print_table(["delta", "epsilon, at least"], rows)
    echo_lines(
        f"\ntotal variation at least {significant_text(data['total_variation'], 4, DOWN)}: an attacker who guesses"
    )
    echo_lines(f"which input it was is right at least {percent_text(data['attack_success'], DOWN)} of the time.")
    if verdict is not None:
        echo_lines(f"\nThe claim is {verdict}.")


app = command_app(command_from_dataclass(AuditOptions, audit), example=AUDIT_EXAMPLE)
