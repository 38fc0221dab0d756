"""``tightrope dpsgd``: the privacy of a training run with noisy gradients, or the noise that it needs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from msgspec import structs

from tightrope.cli.account import ATTACK_HEADING, attack_rate_bounds, print_attack_table
from tightrope.cli.options import (
    AsJson,
    Force,
    HtmlReport,
    check_report_path,
    command_app,
    command_from_dataclass,
    privacy_curve_points,
)
from tightrope.cli.output import (
    echo_heading,
    echo_lines,
    print_document,
    print_table,
    show_spinner,
    writable_folder,
    write_file,
)
from tightrope.documents import Budget
from tightrope.documents.account import ComparisonAccount, TrainingAccount, epsilon_bracket
from tightrope.documents.budget import exact_decimal
from tightrope.documents.numbers import DOWN, UP, significant_text, terminal_text
from tightrope.errors import InputError
from tightrope.noise.accounting_methods import accounting_methods, compare_methods
from tightrope.noise.calibrate import DpSgd, least_noise_multiplier, sampling_from_name, steps_in_epochs
from tightrope.reporting import document_html
from tightrope.reporting.charts.plots import tradeoff_curves
from tightrope.reporting.wording.accounts import (
    METHOD_COLUMNS,
    NEIGHBOR_TEXT,
    bound_text,
    comparison_line,
    method_text,
    relative_width,
)

DPSGD_EXAMPLE = """\b
Example, epsilon of 15 epochs, and the noise for epsilon 1:
  tightrope dpsgd --examples 60000 --batch 256 --noise 1.3 --epochs 15 --delta 1e-5
  tightrope dpsgd --examples 60000 --batch 256 --epsilon 1 --epochs 15 --delta 1e-5
"""
Examples = Annotated[int, typer.Option(metavar="N", help="Number of examples in the training data.")]
Batch = Annotated[int, typer.Option(metavar="B", help="Examples per batch; on average, with Poisson sampling.")]
Delta = Annotated[str, typer.Option(metavar="D", help="delta of (epsilon, delta)-DP, for example 1e-5.")]
Noise = Annotated[
    float | None,
    typer.Option(metavar="S", help="Noise multiplier: standard deviation of the noise divided by the clipping norm."),
]
Epsilon = Annotated[
    str | None, typer.Option(metavar="E", help="Instead of --noise: find the least noise with this epsilon.")
]
Success = Annotated[
    str | None,
    typer.Option(
        metavar="P",
        help="Instead of --noise: find the least noise that limits the success rate of a membership guess "
        "(prior probability 1/2) to P, for example 0.55.",
    ),
]
Epochs = Annotated[str | None, typer.Option(metavar="K", help="Number of epochs; rounded down to whole batches.")]
Steps = Annotated[int | None, typer.Option(metavar="T", help="Instead of --epochs: number of batches.")]
Sampling = Annotated[
    str,
    typer.Option(
        metavar="SCHEME",
        help="poisson (each example joins a batch independently; neighbors: one example added or removed) or subset "
        "(batches of fixed size; neighbors: one example replaced, sensitivity 2).",
    ),
]
Compare = Annotated[bool, typer.Option("--compare/--no-compare", help="Compare with other accounting methods.")]
Out = Annotated[str | None, typer.Option(metavar="DIR", help="Plot the trade-off curves to DIR/dpsgd.png.")]
TABLE_FALSE_POSITIVE_RATES = (0.0001, 0.001, 0.01, 0.1)
CURVE_FILE_NAME = "dpsgd.png"
CURVE_INTERVALS = 24
ASSUMPTIONS_TEXT = (
    "Valid if the batch of each step is drawn independently with the stated sampling scheme (not if data are shuffled "
    "once and cut into batches), and if all parameters were fixed in advance, before any model was seen. All "
    "intermediate models may be published."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DpSgdOptions:
    """The values of the options."""

    examples: Examples
    batch: Batch
    delta: Delta
    noise: Noise = None
    epsilon: Epsilon = None
    attack_success: Success = None
    epochs: Epochs = None
    steps: Steps = None
    sampling: Sampling = "poisson"
    compare: Compare = True
    out: Out = None
    report: HtmlReport = None
    force: Force = False
    as_json: AsJson = False

    def build_run(self) -> DpSgd:
        """Return the run with the given noise, or with the least noise that meets the given budget."""
        steps = self.steps
        if (steps is None) == (self.epochs is None):
            given = "neither is given" if steps is None else "both are given"
            raise InputError.from_text("--epochs, --steps", f"{given}; give exactly one, for example --epochs 15")
        if steps is None:
            steps = steps_in_epochs(self.epochs or "", examples=self.examples, batch=self.batch)
        has_target = self.epsilon is not None or self.attack_success is not None
        if (self.noise is not None) == has_target:
            advice = "give --noise to compute epsilon, or --epsilon or --attack-success (or both) to find the noise"
            if has_target:
                raise InputError.from_text(
                    "--noise", f"cannot be combined with --epsilon or --attack-success; {advice}"
                )
            raise InputError.from_text("--noise, --epsilon, --attack-success", f"one of these is required; {advice}")
        sampling = sampling_from_name(self.sampling)
        if self.noise is not None:
            return DpSgd(self.examples, self.batch, self.noise, steps, sampling)
        budget = Budget(delta=self.delta, epsilon=self.epsilon, attack_success=self.attack_success)
        sizes = {"examples": self.examples, "batch": self.batch, "steps": steps}
        return least_noise_multiplier(budget, **sizes, sampling=sampling)


def dpsgd(options: DpSgdOptions) -> None:
    """Compute the privacy of a DP-SGD run, or the noise it needs.

    Prints epsilon at delta with lower and upper bounds, bounds on an attacker's success, and the results of other
    accounting methods.
    """
    check_report_path(options.report, replace=options.force)
    folder = None if options.out is None else writable_folder(Path(options.out))
    delta = float(exact_decimal("delta", options.delta))
    if not 0 < delta < 1:
        raise InputError.from_text(
            f"--delta {options.delta}", "must be in (0, 1), well below 1 / (number of examples), for example 1e-5"
        )
    with show_spinner("Accounting for every step ..."):
        run = options.build_run()
        comparison: tuple[ComparisonAccount, ...] = ()
        if options.compare:
            comparison = tuple(
                ComparisonAccount(
                    name=result.name,
                    statement=result.statement,
                    epsilon=result.epsilon if math.isfinite(result.epsilon) else None,
                    total_variation=result.total_variation,
                )
                for result in compare_methods(accounting_methods(run.step_loss, run.steps), delta)
            )
        account = TrainingAccount(
            document="training account",
            version=2,
            examples=run.examples,
            batch=run.batch,
            sampling=run.sampling.value,
            sampling_rate=run.sampling_rate,
            noise_multiplier=run.noise,
            steps=run.steps,
            comparison=comparison,
            **structs.asdict(epsilon_bracket(delta, *map(float, run.loss.epsilon_bounds(delta)))),
            **structs.asdict(attack_rate_bounds(run.loss, TABLE_FALSE_POSITIVE_RATES, ASSUMPTIONS_TEXT)),
        )
    if folder is not None:
        with show_spinner("Plotting ..."):
            # Each method's trade-off curve from its δ at 25 values of ε; labels state which of them are bounds.
            methods = accounting_methods(run.step_loss, run.steps)
            max_epsilon = max(1.0, 2 * methods[-1].epsilon(delta))
            epsilons = [max_epsilon * (index / CURVE_INTERVALS) ** 2 for index in range(CURVE_INTERVALS + 1)]
            curves = {
                f"{method_text(one.name)} ({one.statement})": [(epsilon, one.delta(epsilon)) for epsilon in epsilons]
                for one in methods
            }
            picture = folder / CURVE_FILE_NAME
            tradeoff_curves(curves).savefig(picture, dpi=160)
            account = structs.replace(account, picture=str(picture))
    if options.report is not None:
        with show_spinner("Writing the report ..."):
            curve = privacy_curve_points(run.loss, account.first_guarantee[0])
            write_file(options.report, document_html(account, curve=curve))
    if options.as_json:
        print_document(account)
    else:
        _print_account(account, options.report)


def _print_account(account: TrainingAccount, report: Path | None) -> None:
    """Print the run, its bounds, the comparison of methods, and the files that were written."""
    sampling = "Poisson sampling" if account.sampling == "poisson" else "fixed batch size, without replacement"
    size = f"batches of {account.batch:,} out of {account.examples:,} examples ({sampling})"
    echo_lines(f"DP-SGD, {account.steps:,} steps, {size}")
    noise = significant_text(account.noise_multiplier, 10, UP)
    echo_lines(f"noise multiplier {noise} (noise standard deviation / clipping norm)")
    echo_heading(f"epsilon = {bound_text(account.upper, 6, UP)} at delta = {terminal_text(account.delta, 6)}")
    interval = f"{bound_text(account.lower, 12, DOWN)} … {bound_text(account.upper, 12, UP)}"
    width = relative_width(account.relative_width)
    echo_lines(
        f"upper bound; the true value lies in {interval}",
        f"(relative width {width}; method: {method_text(account.method)})",
    )
    echo_heading(ATTACK_HEADING)
    print_attack_table(account)
    if account.comparison:
        echo_heading("Results of several accounting methods")
        print_table(METHOD_COLUMNS, [comparison_line(row) for row in account.comparison], left=2)
    echo_lines(f"\nNeighboring data sets: {NEIGHBOR_TEXT[account.sampling]}.", account.statement)
    echo_lines(*(f"Written: {file}" for file in (account.picture, report) if file is not None))


app = command_app(command_from_dataclass(DpSgdOptions, dpsgd), example=DPSGD_EXAMPLE)
