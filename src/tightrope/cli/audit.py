"""``tightrope audit``: lower bounds on a mechanism's privacy loss from samples of its output."""

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
from tightrope.audit.findings import claimed_points, exact_percent_text
from tightrope.cli.options import AsJson, check_picture_path, command_app, command_from_dataclass, open_csv_file
from tightrope.cli.output import echo_lines, print_json, print_table, show_spinner
from tightrope.documents import Budget
from tightrope.documents.budget import attack_success_of
from tightrope.documents.numbers import DOWN, percent_text, significant_text, terminal_text
from tightrope.errors import InputError
from tightrope.numerics.checks import check_integer
from tightrope.reporting.charts.plots import attack_curve

if TYPE_CHECKING:
    from tightrope.audit import Finding, Verdict
    from tightrope.numerics.arrays import Floats

# Samples for an audit: from a CSV file, or from the user's function.

SOURCES_TEXT = "give a CSV file of samples, or --python MODULE:FUNCTION"
INPUT_COLUMN, INCLUDED_COLUMN = "input", "included"
HEADER_TEXT = (
    "line 1 must be a header with a column 'input' (1 or 0), or 'included' (1 or 0) and 'score'; all other columns "
    "hold numbers"
)


@dataclass(frozen=True)
class AuditSamples:
    """Mechanism outputs [n, d] and their labels [n]: input 1 or 0, or canary included (1) or not (0).

    ``label_column`` is the column of the labels, which states which of the two they are.
    """

    label_column: str
    outputs: Floats
    labels: Floats

    def rows_with_label(self, label: int) -> Floats:
        """Return the outputs with this label."""
        rows: Floats = self.outputs[self.labels == label]
        return rows


def read_samples_csv(path: Path) -> AuditSamples:
    """Return the samples in a CSV file; errors give the line number, never its contents."""
    with open_csv_file(path, SOURCES_TEXT) as file:
        reader = csv.reader(file)
        lines = [(reader.line_num, cells) for cells in reader if cells]
    if not lines:
        raise InputError.from_text(str(path), f"the file is empty; {HEADER_TEXT}")
    header = [cell.strip() for cell in lines[0][1]]
    label_column = next((name for name in (INPUT_COLUMN, INCLUDED_COLUMN) if name in header), "")
    if not label_column or len(header) < 2:
        raise InputError.from_text(str(path), HEADER_TEXT)
    label_index = header.index(label_column)
    rows: list[list[float]] = []
    for number, cells in lines[1:]:
        try:
            row = [float(cell) for _, cell in zip(header, cells, strict=True)]
        except ValueError:  # a cell is not a number, or the line is shorter or longer than the header
            raise InputError.from_text(f"line {number} of {path}", f"expected {len(header)} numbers") from None
        if row[label_index] not in (0, 1):
            raise InputError.from_text(f"line {number} of {path}", f"column '{label_column}' must be 1 or 0")
        rows.append(row)
    if not rows:
        raise InputError.from_text(str(path), "expected at least one row below the header")
    numbers = np.array(rows, dtype=np.float64)
    return AuditSamples(label_column, np.delete(numbers, label_index, axis=1), numbers[:, label_index])


def call_sample_function(name: str, runs: int) -> AuditSamples:
    """Call the user's ``module:function`` for ``runs`` runs on input 1 and on input 0.

    The function returns an array of shape [runs] or [runs, d]. The working directory is searched first for the module.
    """
    module, _, attribute = name.partition(":")
    option = f"--python {name}"
    if not (module and attribute.isidentifier()):
        raise InputError.from_text(
            option, "write MODULE:FUNCTION, for example mechanism:noisy for the function noisy in mechanism.py"
        )
    sys.path.insert(0, str(Path.cwd()))
    try:
        function = getattr(importlib.import_module(module), attribute, None)
    except ImportError as error:
        raise InputError.from_text(option, f"importing {error.name or module} failed") from error
    finally:
        sys.path.pop(0)
    if not callable(function):
        raise InputError.from_text(option, f"module {module} has no function {attribute}")
    expected = f"{attribute}(input, runs) must return one number per run, or one row of numbers per run"
    samples: list[Floats] = []
    for label in (1, 0):
        try:
            outputs = np.asarray(function(label, runs), dtype=np.float64)
        except Exception as error:
            raise InputError.from_text(
                option, f"the function raised {type(error).__name__} (--debug shows where); {expected}"
            ) from error
        rows = outputs[:, None] if outputs.ndim == 1 else outputs
        if rows.ndim != 2 or not len(rows):
            raise InputError.from_text(option, f"the function returned an array of shape {outputs.shape}; {expected}")
        samples.append(rows)
    one, other = samples
    if one.shape[1] != other.shape[1]:
        raise InputError.from_text(
            option,
            f"the function returned {one.shape[1]} numbers per run for input 1 and {other.shape[1]} for input 0; both "
            "must be equal",
        )
    return AuditSamples(INPUT_COLUMN, np.concatenate([one, other]), np.repeat([1.0, 0.0], [len(one), len(other)]))


AUDIT_EXAMPLE = """\b
Example:
  tightrope audit scores.csv --epsilon 1 --delta 1e-5   a header input,score and lines such as 1,0.73
  tightrope audit --python mechanism:noisy --doubles    noisy(1, runs) and noisy(0, runs) return samples
  tightrope audit canaries.csv --guesses 200            a header included,score: one run, many canaries

Exit codes: 0 done, and no claim is refuted; 1 the claim is refuted (or another error); 2 bad input.
"""
CLAIM_REFUTED = 1
"""Exit code, as of ``tightrope verify``."""
DELTAS = (0.0, 1e-6, 1e-4, 1e-3, 1e-2, 0.1)
MAX_ROC_POINTS = 400


@dataclass(frozen=True)
class AuditOptions:
    """The values of the options."""

    scores: Annotated[
        Path | None,
        typer.Argument(metavar="SCORES.csv", help="One line per run: the input (1 or 0) and the numbers of the run."),
    ] = None
    python: Annotated[
        str | None,
        typer.Option(
            metavar="MODULE:FUNCTION", help="Instead of a file: import this function and call it. This runs its code."
        ),
    ] = None
    runs: Annotated[int, typer.Option(metavar="N", help="With --python: runs on each of the two inputs.")] = 100_000
    doubles: Annotated[
        bool,
        typer.Option("--doubles", help="Also test the low-order bits of floating-point outputs (trains a classifier)."),
    ] = False
    guesses: Annotated[
        int | None,
        typer.Option(
            metavar="K",
            help="With canaries: number of guesses. The K/2 highest-scoring canaries are guessed to be in the training "
            "data, the K/2 lowest-scoring not to be.",
        ),
    ] = None
    epsilon: Annotated[str | None, typer.Option(metavar="E", help="Claimed epsilon.")] = None
    delta: Annotated[str | None, typer.Option(metavar="D", help="Claimed delta, with --epsilon [default: 0].")] = None
    total_variation: Annotated[str | None, typer.Option(metavar="T", help="Claimed total variation.")] = None
    confidence: Annotated[
        float,
        typer.Option(
            metavar="C",
            help="Confidence level. With two inputs it holds for all bounds simultaneously; with canaries, for each "
            "bound separately.",
        ),
    ] = 0.99
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Plot the ROC curve of the best attack (.png, .svg or .pdf)."),
    ] = None
    as_json: AsJson = False


def audit(options: AuditOptions) -> None:
    """Compute lower confidence bounds on a mechanism's privacy loss.

    From samples of its output on two neighboring inputs, or from one training run with many canaries (examples of
    which each is included with probability 1/2). If each run has several numbers, a classifier trained on half of the
    runs combines them into one score. With a claim, reports whether it is refuted; if not, how large the true epsilon
    would have to be for this test to refute the claim with probability at least 1/2.
    """
    check_picture_path(options.plot)
    if options.epsilon is None and options.total_variation is None and options.delta is None:
        claim = None
    else:
        claim = Budget(epsilon=options.epsilon, delta=options.delta or "0", total_variation=options.total_variation)
    with show_spinner("Auditing ..."):
        found = _audit_samples(options, claim)
        verdict = None if claim is None else found.against(claim)
    if options.plot is not None and not isinstance(found, OneRun):
        try:
            attack_curve(*found.curve_points, () if claim is None else claimed_points(claim)).savefig(options.plot)
        except OSError as error:
            raise InputError.from_text(f"--plot {options.plot}", f"cannot be written ({error.strerror})") from None
    _print_result(found, verdict, options.as_json)
    if verdict is not None and verdict.refuted:
        raise typer.Exit(CLAIM_REFUTED)


def _audit_samples(options: AuditOptions, claim: Budget | None) -> Finding | OneRun:
    """Return the bounds that the samples of the file, or of the function, prove."""
    if (options.scores is None) == (options.python is None):
        given = "no samples are given" if options.scores is None else "a file and --python cannot be combined"
        raise InputError.from_text("SCORES.csv", f"{given}; {SOURCES_TEXT}")
    if options.scores is not None:
        samples = read_samples_csv(options.scores)
    else:
        samples = call_sample_function(str(options.python), check_integer("runs", options.runs))
    if samples.label_column == INCLUDED_COLUMN:
        return _audit_canaries(options, samples)
    if options.guesses is not None:
        raise InputError.from_text("--guesses", f"is only for canaries, in a file with a column '{INCLUDED_COLUMN}'")
    one, other = samples.rows_with_label(1), samples.rows_with_label(0)
    if options.doubles and one.shape[1] > 1:
        raise InputError.from_text("--doubles", f"needs one number per run; there are {one.shape[1]}")
    if options.doubles:
        columns = [audits.float_columns(part[:, 0]) for part in (one, other)]
        return audits.samples(*columns, confidence=options.confidence, claim=claim)
    if one.shape[1] > 1:
        return audits.samples(one, other, confidence=options.confidence, claim=claim)
    return audits.scores(one[:, 0], other[:, 0], confidence=options.confidence, claim=claim)


def _audit_canaries(options: AuditOptions, samples: AuditSamples) -> OneRun:
    """Return the bounds from one run with canaries."""
    columns = samples.outputs.shape[1]
    if columns != 1:
        raise InputError.from_text(
            str(options.scores), f"a file of canaries must have exactly one column of scores; this one has {columns}"
        )
    if options.guesses is None:
        raise InputError.from_text("--guesses", "is required for canaries; choose it before looking at the data")
    if options.guesses > len(samples.labels):
        raise InputError.from_text(
            f"--guesses {options.guesses}", f"must not exceed the number of canaries, {len(samples.labels):,}"
        )
    if options.plot is not None:
        raise InputError.from_text("--plot", "is not available for canaries: one run has no ROC curve")
    return one_run(samples.outputs[:, 0], samples.labels, guesses=options.guesses, confidence=options.confidence)


def _print_result(found: Finding | OneRun, verdict: Verdict | None, as_json: bool) -> None:
    """Print the lower bounds and the verdict on the claim."""
    eta = found.delta(0.0)
    data: dict[str, Any] = {
        "confidence": found.confidence,
        "epsilon": [{"delta": delta, "at_least": found.epsilon(delta)} for delta in DELTAS],
        "total_variation": eta,
        "attack_success": attack_success_of(eta),
    }
    if isinstance(found, OneRun):
        scope, guess = "each bound separately", "whether a canary is included"
        guesses = f"{found.correct:,} of {found.guesses:,} guesses"
        made = f"{guesses} about {found.canaries:,} canaries in one run are correct"
        runs: dict[str, Any] = {"canaries": found.canaries, "guesses": found.guesses, "correct": found.correct}
    else:
        scope, guess = "all bounds simultaneously", "the input"
        made = f"{found.runs[0]:,} runs on the first input, {found.runs[1]:,} on the second"
        false_positive_rates, true_positive_rates = (
            rates[:: max(1, len(rates) // MAX_ROC_POINTS)].tolist() for rates in found.curve_points
        )
        curve = {"false_positive_rate": false_positive_rates, "true_positive_rate": true_positive_rates}
        runs = {"runs": list(found.runs), "curve": curve}
    if as_json:
        claim = {} if verdict is None else {"verdict": {**asdict(verdict), "text": str(verdict)}}
        print_json({"document": "audit", **runs, **data, **claim})
        return
    echo_lines(made)
    echo_lines(f"Lower bounds at {exact_percent_text(found.confidence)} confidence ({scope}):\n")
    rows = [[terminal_text(row["delta"]), significant_text(row["at_least"], 4, DOWN)] for row in data["epsilon"]]
    print_table(["delta", "epsilon, at least"], rows)
    eta_text, success = significant_text(eta, 4, DOWN), percent_text(data["attack_success"], DOWN)
    if success != "50 %":
        echo_lines(
            f"\ntotal variation at least {eta_text}: the best attacker guesses {guess} correctly at least "
            f"{success} of the time."
        )
    elif isinstance(found, OneRun) and eta > 0:
        echo_lines(
            f"\ntotal variation at least {eta_text}. One run says little about total variation: a mechanism that "
            "reveals everything with a small probability can produce the same result."
        )
    else:
        echo_lines(f"\ntotal variation at least {eta_text}")
    if verdict is not None:
        echo_lines(f"\nThe claim is {verdict}.")


app = command_app(command_from_dataclass(AuditOptions, audit), example=AUDIT_EXAMPLE)
