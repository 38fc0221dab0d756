"""``tightrope dpsgd``: what a training run with noisy gradients costs, or the noise that it needs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from msgspec import structs

from tightrope.cli.account import attack_rate_bounds, show_attack
from tightrope.cli.options import AsJson, Force, Page, check_page, command_app, curve_of, from_fields
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
from tightrope.documents.numbers import DOWN, UP, significant_text
from tightrope.errors import InputError
from tightrope.noise.calibrate import DpSgd, least_noise_multiplier, sampling_from_name, steps_in_epochs
from tightrope.noise.compare import accounting_methods, compare_methods
from tightrope.reporting import document_html
from tightrope.reporting.charts.plots import tradeoff_curves
from tightrope.reporting.wording.accounts import WAY_COLUMNS, WHO, bound_text, comparison_line, relative_width

DPSGD_EXAMPLE = """\b
Example, what 15 epochs cost, and the noise that keeps epsilon at 1:
  tightrope dpsgd --examples 60000 --batch 256 --noise 1.3 --epochs 15 --delta 1e-5
  tightrope dpsgd --examples 60000 --batch 256 --epsilon 1 --epochs 15 --delta 1e-5
"""
Examples = Annotated[int, typer.Option(metavar="N", help="How many examples the training data hold.")]
Batch = Annotated[int, typer.Option(metavar="B", help="Examples in a batch; on average, with Poisson sampling.")]
Delta = Annotated[str, typer.Option(metavar="D", help="How improbable a failure of the promise must be, say 1e-5.")]
Noise = Annotated[
    float | None,
    typer.Option(metavar="S", help="Noise multiplier: standard deviation of the noise over the clip norm."),
]
Epsilon = Annotated[
    str | None, typer.Option(metavar="E", help="Instead of --noise: the least noise with this epsilon.")
]
Success = Annotated[
    str | None,
    typer.Option(metavar="P", help="Instead of --noise: an attacker is right about membership at most this often."),
]
Epochs = Annotated[str | None, typer.Option(metavar="K", help="Passes over the data; whole batches in them count.")]
Steps = Annotated[int | None, typer.Option(metavar="T", help="Instead of --epochs: how many batches.")]
Sampled = Annotated[
    str,
    typer.Option(
        metavar="WAY", help="poisson (one example is added or removed) or subset (one is replaced; sensitivity 2)."
    ),
]
Compare = Annotated[bool, typer.Option("--compare/--no-compare", help="Compare with other ways of accounting.")]
Out = Annotated[str | None, typer.Option(metavar="DIR", help="Write dpsgd.png, the trade-off curves, there.")]
SHOWN_RATES = (0.0001, 0.001, 0.01, 0.1)
PICTURE, ON_CURVE = "dpsgd.png", 24
FIXED = (
    "Holds for batches that are drawn afresh for every step, in the way named above (data that are shuffled once and "
    "cut into batches are not), and for parameters fixed in advance, not chosen after seeing a model. Every model on "
    "the way may be published."
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
    sampling: Sampled = "poisson"
    compare: Compare = True
    out: Out = None
    report: Page = None
    force: Force = False
    as_json: AsJson = False


def dpsgd(asked: DpSgdOptions) -> None:
    """Account for DP-SGD, or find its noise.

    Epsilon at delta in a bracket that holds the truth, what an attacker gains, and what other accountants say.
    """
    check_page(asked.report, replace=asked.force)
    folder = None if asked.out is None else writable_folder(Path(asked.out))

    at = float(exact_decimal("delta", asked.delta))
    if not 0 < at < 1:
        raise InputError(
            "delta", asked.delta, "a number in (0, 1)", "well below one over the number of examples, such as 1e-5"
        )
    with show_spinner("Accounting for every step ..."):
        run = _described_run(asked)
        comparison: tuple[ComparisonAccount, ...] = ()
        if asked.compare:
            comparison = tuple(
                ComparisonAccount(
                    name=line.name,
                    statement=line.statement,
                    epsilon=line.epsilon if math.isfinite(line.epsilon) else None,
                    total_variation=line.total_variation,
                )
                for line in compare_methods(accounting_methods(run.step_loss, run.steps), at)
            )
        found = TrainingAccount(
            document="training account",
            version=2,
            examples=run.examples,
            batch=run.batch,
            sampling=run.sampling.value,
            sampling_rate=run.sampling_rate,
            noise_multiplier=run.noise,
            steps=run.steps,
            comparison=comparison,
            **structs.asdict(epsilon_bracket(at, *map(float, run.loss.epsilon_bounds(at)))),
            **structs.asdict(attack_rate_bounds(run.loss, SHOWN_RATES, FIXED)),
        )
    if folder is not None:
        with show_spinner("Drawing ..."):
            found = structs.replace(found, picture=str(_draw_tradeoff_curves(run, at, folder / PICTURE)))
    if asked.report is not None:
        with show_spinner("Writing the page ..."):
            write_file(asked.report, document_html(found, curve=curve_of(run.loss, found.first_guarantee[0])))
    if asked.as_json:
        print_document(found)
    else:
        _print_result(found, asked.report)


def _described_run(asked: DpSgdOptions) -> DpSgd:
    """The run that was described: with its noise, or with the least that keeps the budget."""
    steps = asked.steps
    if (steps is None) == (asked.epochs is None):
        raise InputError("steps", steps, "given, or epochs, and not both", "say --epochs 15 or --steps 3515")
    if steps is None:
        steps = steps_in_epochs(asked.epochs or "", examples=asked.examples, batch=asked.batch)
    if asked.epsilon is None and asked.attack_success is None:
        budget = None
    else:
        budget = Budget(delta=asked.delta, epsilon=asked.epsilon, attack_success=asked.attack_success)
    way = sampling_from_name(asked.sampling)
    if asked.noise is not None and budget is None:
        return DpSgd(asked.examples, asked.batch, asked.noise, steps, way)
    if budget is not None and asked.noise is None:
        return least_noise_multiplier(budget, examples=asked.examples, batch=asked.batch, steps=steps, sampling=way)
    remedy = "--noise says what you have, --epsilon and --attack-success what you want"
    raise InputError("noise", asked.noise, "given, or an epsilon or an attack_success, and not both", remedy)


def _draw_tradeoff_curves(run: DpSgd, delta: float, path: Path) -> Path:
    """Trade-off curves by every way, from δ at some ε; the limit is drawn like the bounds and named as none."""
    ways = accounting_methods(run.step_loss, run.steps)
    most = max(1.0, 2 * ways[-1].epsilon(delta))
    epsilons = [most * (number / ON_CURVE) ** 2 for number in range(ON_CURVE + 1)]
    curves = {f"{way.name} ({way.statement})": [(at, way.delta(at)) for at in epsilons] for way in ways}
    tradeoff_curves(curves).savefig(path, dpi=160)
    return path


def _print_result(found: TrainingAccount, page: Path | None) -> None:

    size = f"batches of {found.batch:,} out of {found.examples:,} examples ({found.sampling} sampling)"
    echo_lines(f"DP-SGD, {found.steps:,} steps, {size}")
    echo_lines(
        f"noise multiplier {significant_text(found.noise_multiplier, 10, UP)}: standard deviation over the clip norm"
    )
    echo_heading(f"epsilon = {bound_text(found.upper, 6, UP)} at delta = {found.delta:g}")
    ends = f"{bound_text(found.lower, 12, DOWN)} … {bound_text(found.upper, 12, UP)}"
    width = relative_width(found.relative_width)
    echo_lines(f"safe to state; the truth is in {ends} (relative width {width}; method: {found.method})")
    echo_heading("What an attacker gains")
    show_attack(found)
    if found.comparison:
        echo_heading("The same steps, accounted for in other ways")
        print_table(WAY_COLUMNS, [comparison_line(way) for way in found.comparison], left=2)
    echo_lines(f"\nneighbors: {found.neighbors} ({WHO[found.sampling]})", found.statement)
    echo_lines(*(f"Written: {file}" for file in (found.picture, page) if file is not None))


app = command_app(from_fields(DpSgdOptions, dpsgd), example=DPSGD_EXAMPLE)
