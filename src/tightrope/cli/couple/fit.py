"""``tightrope couple fit``: fit a mechanism to the distributions of a table's groups, and write it to a file."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from tightrope.cli.couple.distributions import load_group_distributions
from tightrope.cli.options import AsJson, Force, HtmlReport, check_picture_path, check_report_path
from tightrope.cli.output import echo_lines, print_json, print_table, show_spinner, writable_folder, write_file
from tightrope.documents.document import plain_data, to_json_text
from tightrope.documents.numbers import DOWN, UP, percent_text, significant_text, terminal_text, total_variation
from tightrope.errors import InputError
from tightrope.reporting import Table, document_html
from tightrope.reporting.charts.plots import coupling_picture, delta_frontier_chart
from tightrope.transport.couplings.mechanism import CouplingMechanism, check_delta, move_statistics
from tightrope.transport.on_tables.saved import KnownLaws, SavedCoupling, target_law
from tightrope.transport.solvers.barycenter import DeltaFrontier, delta_frontier

FIT_EXAMPLE = """\b
Examples: positions in 15 by 36 cells, wages in 30 bins (the second time with --delta), and categories with --epsilon:
  tightrope couple fit places.parquet --value latitude --value longitude --group size --grid 15x36
      --bounds -60,90 --bounds -180,180 --out mechanism.json
  tightrope couple fit people.parquet --value wage --group sex --bins 30 --bounds 0,30 --out mechanism.json
  tightrope couple fit people.parquet --value wage --group sex --bins 30 --bounds 0,30 --delta 0.1
      --frontier frontier.svg --out mechanism.json
  tightrope couple fit visits.parquet --value shop --group district --points a,b,c --groups north,south
      --epsilon 1 --privacy-unit user_id --out mechanism.json
"""
MOVE_COLUMNS = ("group", "mean distance", "max distance", "unchanged")
SHARING_TEXTS = {
    "table": "contains the exact group distributions; protect it like the data",
    "public": "contains the given public distributions, and no other data",
    "private": "is differentially private with the stated epsilon, and may be shared",
}
"""Who may see a mechanism file, by the origin of its distributions."""
RELEASE_ONCE_TEXT = (
    "Release each value only once: a second randomized release of the same value reveals more. See docs/couple.md."
)
EACH_ROW = "each row"
"""The privacy unit in a mechanism file, if each row is a person."""
WEAK_TOTAL_VARIATION = 0.99
"""A bound on the total variation that is at least this large is reported as no guarantee."""
MIN_PRINTED_SECONDS = 0.1
"""A shorter running time is not printed."""
DENIED_PERMISSIONS = 0o077
"""Permission bits denied to all but the owner, for files that reveal the table's distributions."""
DataPath = Annotated[Path | None, typer.Argument(metavar="DATA", help="A .parquet, .csv or .duckdb file.")]
ValueColumns = Annotated[
    list[str],
    typer.Option(
        metavar="COLUMN",
        help="Column of the values to release; repeat it for positions, for example latitude and longitude.",
    ),
]
GroupColumn = Annotated[str, typer.Option(metavar="COLUMN", help="Sensitive attribute to hide.")]
OutputPath = Annotated[Path, typer.Option(metavar="FILE", help="Write the mechanism there, as JSON.")]
Grid = Annotated[
    str | None, typer.Option(metavar="ROWSxCOLUMNS", help="Divide two numeric columns into cells of equal size.")
]
BinCount = Annotated[int | None, typer.Option(metavar="N", help="Divide one numeric column into cells of equal size.")]
Bounds = Annotated[
    list[str] | None,
    typer.Option(metavar="LO,HI", help="Public bounds, once per --value; values outside are clamped."),
]
CategoryNames = Annotated[
    str | None, typer.Option(metavar="A,B,...", help="The possible values (categories), if they are public.")
]
GroupNames = Annotated[str | None, typer.Option(metavar="A,B,...", help="The groups, if they are public.")]
Metric = Annotated[
    str | None,
    typer.Option(
        metavar="M",
        help="Distance: cityblock, euclidean, chebyshev or sqeuclidean for cells; discrete for categories (any change "
        "is 1).",
    ),
]
Objective = Annotated[
    str,
    typer.Option(metavar="O", help="'expected': minimize the mean distance; 'worst': minimize the largest distance."),
]
Target = Annotated[
    str,
    typer.Option(
        metavar="T",
        help="Output distribution of all groups: 'barycenter' (smallest total distance), 'uniform', or the name of a "
        "group.",
    ),
]
Delta = Annotated[
    float,
    typer.Option(
        metavar="D",
        help="Let the output distributions of two groups differ by up to this total variation; then values move less.",
    ),
]
FrontierPath = Annotated[
    Path | None,
    typer.Option(
        "--frontier", metavar="FILE", help="Draw the least mean distance for every --delta (.png, .svg or .pdf)."
    ),
]
Epsilon = Annotated[
    float | None,
    typer.Option(metavar="E", help="Estimate the group distributions with epsilon-DP, for example 1."),
]
PrivacyUnitColumn = Annotated[
    str | None, typer.Option(metavar="COLUMN", help="Column with the person's id; default: one row per person.")
]
DistributionsPath = Annotated[
    Path | None,
    typer.Option(
        metavar="CSV",
        help="Instead of DATA: public distributions, with the columns point (the value), group and mass (the "
        "probability).",
    ),
]
TableName = Annotated[str | None, typer.Option("--table", metavar="NAME", help="The table in a .duckdb file.")]
PicturePath = Annotated[
    Path | None,
    typer.Option("--plot", metavar="FILE", help="Draw the distributions before and after (.png, .svg or .pdf)."),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class FitOptions:
    """Options of ``tightrope couple fit``."""

    data: DataPath = None
    value: ValueColumns
    group: GroupColumn
    out: OutputPath
    grid: Grid = None
    bins: BinCount = None
    bounds: Bounds = None
    points: CategoryNames = None
    groups: GroupNames = None
    metric: Metric = None
    objective: Objective = "expected"
    target: Target = "barycenter"
    delta: Delta = 0.0
    epsilon: Epsilon = None
    privacy_unit: PrivacyUnitColumn = None
    laws: DistributionsPath = None
    table: TableName = None
    plot: PicturePath = None
    frontier: FrontierPath = None
    report: HtmlReport = None
    force: Force = False
    as_json: AsJson = False


def fit(options: FitOptions) -> None:
    """Fit a coupling that hides group membership.

    The mechanism gives every group the same output distribution at minimal transport cost. With --delta, these
    distributions may differ by that total variation, at a smaller cost. Without --epsilon, the output file contains the
    exact group distributions of the table: keep it secret.
    """
    _check_files(options)
    with show_spinner("Counting ..."):
        fit_data = load_group_distributions(options)
    started = time.perf_counter()
    with show_spinner("Fitting ..."):
        metric = fit_data.support.default_metric if options.metric is None else options.metric
        objective: Any = options.objective  # checked by fit
        cost, target = fit_data.support.transport_cost(metric), target_law(fit_data, options.target)
        fitted = CouplingMechanism.fit(fit_data.laws, cost, target=target, objective=objective, delta=options.delta)
        origin = fit_data.stated_origin(options.target)
        saved = SavedCoupling(fitted, fit_data.support, options.group, metric, origin)
    seconds = time.perf_counter() - started
    frontier = None
    if options.frontier is not None:
        with show_spinner("Computing the frontier ..."):
            frontier = delta_frontier(list(fit_data.laws.values()), cost, target=target)
    groups: list[dict[str, Any]] = []
    for name in fitted.groups:
        distances = move_statistics(fitted, name, cost)
        texts = {
            "group": str(name),
            "mean": distances.mean,
            "largest": distances.largest,
            "kept": distances.unchanged_fraction,
        }
        groups.append(texts)
    # These are the printed results and, with "out", those of --json.
    data: dict[str, Any] = {
        "points": len(saved.support),
        "unit": saved.support.distance_unit(saved.metric),
        "metric": saved.metric,
        "objective": fitted.objective,
        "groups": groups,
        **distance_from_target(fitted),
        "seconds": seconds,
        "origin": plain_data(saved.origin),
    }
    if frontier is not None:
        data["frontier_is_exact"] = frontier.is_exact
        data["frontier"] = [{"delta": one.delta, "mean": one.cost, "lower": one.lower} for one in frontier.points]
    write_result_files(saved, frontier, data, options)
    if options.as_json:
        print_json({**data, "out": str(options.out)})
    else:
        _print_result(data, options, fit_data)


def write_result_files(
    saved: SavedCoupling, frontier: DeltaFrontier | None, data: Mapping[str, Any], options: FitOptions
) -> None:
    """Write the mechanism, its pictures and its report."""
    # Files that reveal the table's distributions are readable only to their owner.
    previous_mask = os.umask(0)
    os.umask(previous_mask | DENIED_PERMISSIONS if saved.origin.kind == "table" else previous_mask)
    try:
        write_file(options.out, to_json_text(saved.to_document()))
        if options.plot is not None:
            with show_spinner("Plotting ..."):
                draw_picture("--plot", options.plot, partial(coupling_picture, saved))
        if options.frontier is not None and frontier is not None:
            draw_picture(
                "--frontier",
                options.frontier,
                partial(delta_frontier_chart, frontier, unit=data["unit"], delta=saved.mechanism.delta),
            )
        if options.report is not None:
            caption = f"Distance between input and output, in {data['unit']} ({data['metric']})"
            write_file(
                options.report,
                document_html(
                    saved.to_document(),
                    tables=[Table(caption, tuple(name.capitalize() for name in MOVE_COLUMNS), _move_rows(data))],
                ),
            )
    finally:
        os.umask(previous_mask)


def distance_from_target(fitted: CouplingMechanism) -> dict[str, float]:
    """Return how far output distributions are from the target: an error, or δ with both sides of its cost."""
    if fitted.common_part is None:
        return {"target_error": float(fitted.target_error)}
    weights = zip(fitted.common_part.weights, fitted.cost_by_group.values(), strict=True)
    mean = math.fsum(weight * loss for weight, loss in weights)
    return {"delta": fitted.delta, "mean": mean, "lower": min(mean, fitted.common_part.lower)}


def _check_files(options: FitOptions) -> None:
    """Raise ``InputError`` if a file could not be written, or would replace an input or an existing mechanism.

    Also for a wrong --delta. Called before any budget is spent.
    """
    check_delta(options.delta, options.objective)
    check_picture_path(options.plot)
    check_picture_path(options.frontier)
    if options.frontier is not None and options.objective != "expected":
        raise InputError.from_text("--frontier", "is the least mean distance; leave out --objective")
    check_report_path(options.report, replace=options.force)
    inputs = [path.resolve() for path in (options.data, options.laws) if path is not None]
    paths = {
        "--out": options.out,
        "--plot": options.plot,
        "--frontier": options.frontier,
        "--report": options.report,
    }
    outputs = {name: path for name, path in paths.items() if path is not None}
    for name, path in outputs.items():
        if path.is_dir():
            raise InputError.from_text(f"{name} {path}", "is a folder; name a file")
        if path.resolve() in inputs:
            raise InputError.from_text(f"{name} {path}", "would replace the input; name another file")
        writable_folder(path.parent)
    if options.out.exists() and not options.force:
        raise InputError.from_text(f"--out {options.out}", "the file exists already; --force overwrites it")
    if len({path.resolve() for path in outputs.values()}) < len(outputs):
        raise InputError.from_text(", ".join(outputs), "name a different file for each")


def _move_rows(data: Mapping[str, Any]) -> list[list[str]]:
    """Return the distances of each group as text."""
    return [
        [
            group["group"],
            # Rounding moves a mass below 2e-12, which the largest distance ignores.
            significant_text(group["mean"] if group["largest"] > 0 else 0.0, 4, UP),
            significant_text(group["largest"], 4, UP),
            percent_text(group["kept"]),
        ]
        for group in data["groups"]
    ]


def _print_result(data: Mapping[str, Any], options: FitOptions, fit_data: KnownLaws) -> None:
    """Print the distances, the accuracy, the learned distributions' guarantee, and the files that were written."""
    echo_lines(
        f"group column {options.group}: {len(data['groups'])} groups; {', '.join(options.value)}: {data['points']} "
        f"possible values; target distribution: {options.target}"
    )
    if fit_data.unused_rows:
        echo_lines(
            f"{fit_data.unused_rows:,} of {fit_data.total_rows:,} rows were not used: their value or group is "
            "missing or not listed."
        )
    echo_lines("")
    print_table(MOVE_COLUMNS, _move_rows(data))
    is_line = len(options.value) == 1 and data["metric"] in ("cityblock", "euclidean", "chebyshev")
    metric = "absolute differences" if is_line else data["metric"]
    echo_lines(f"\nDistances: {data['unit']} ({metric}).")
    if "delta" in data:
        echo_lines(*delta_lines(data))
        mean, lower = terminal_text(data["mean"], 6, UP), terminal_text(data["lower"], 6, DOWN)
        echo_lines(f"Mean distance over groups: {mean}; at least {lower} if outputs have this much in common.")
    else:
        echo_lines(f"The output distribution of every group equals the target{error_text(data['target_error'])}.")
    print_learning(data["origin"])
    if data["seconds"] >= MIN_PRINTED_SECONDS:
        echo_lines(f"Fitted in {data['seconds']:.1f} s.")
    echo_lines(f"Written: {options.out}. The file itself {SHARING_TEXTS[data['origin']['kind']]}.")
    for picture in (options.plot, options.frontier):
        if picture is not None:
            echo_lines(f"Written: {picture}")
    if options.report is not None:
        echo_lines(f"Written: {options.report}. It contains the mechanism file.")
    echo_lines(RELEASE_ONCE_TEXT)


def delta_lines(data: Mapping[str, Any]) -> tuple[str, str]:
    """Return the guarantee of a partial coupling in words."""
    delta = terminal_text(data["delta"], 6, UP)
    return (
        f"The outputs of any two groups differ in total variation by at most {delta} (epsilon 0, delta {delta}):",
        f"at least {percent_text(1 - data['delta'], DOWN)} of each group have a common output distribution.",
    )


def error_text(target_error: float) -> str:
    """Return the error of output probabilities, to be appended to a sentence; empty if there is none.

    >>> error_text(2.7e-40), error_text(0.0)
    (', up to an error of 2.7e-40 in each probability', '')
    """
    return f", up to an error of {terminal_text(target_error, 2, UP)} in each probability" if target_error > 0 else ""


def print_learning(origin: Mapping[str, Any]) -> None:
    """Print the budget spent on learned distributions, and what their estimation error can reveal."""
    learning = origin.get("learning")
    if learning is None:
        return
    epsilon_spent = terminal_text(learning["epsilon"], 6, UP)
    unit = "one row" if learning["person"] == EACH_ROW else f"all rows with the same {learning['person']}"
    echo_lines(
        f"Estimating the distributions used epsilon {epsilon_spent} (privacy unit: {unit}). "
        "This is not recorded in a ledger."
    )
    # Each bound (ε, δ) implies a bound on the total variation; all hold together, so the smallest one holds.
    bounds = learning["left"]
    eta = min(
        min(bound["total_variation"], total_variation(bound["epsilon"], min(bound["delta"], 1.0))) for bound in bounds
    )
    confidence = f"{learning['confidence']:.0%}".replace("%", " %")
    if eta >= WEAK_TOTAL_VARIATION:
        echo_lines(
            "No guarantee for group membership: the estimated distributions are too inaccurate (an attacker's "
            f"advantage can be {terminal_text(eta, 3, UP)}). Use fewer cells, more rows or a larger epsilon."
        )
        return
    echo_lines(
        "The true distributions differ from the estimated ones. One output reveals about the group, with "
        f"{confidence} confidence, at most:"
    )
    echo_lines(f"  total variation {terminal_text(eta, 3, UP)}")
    for bound in bounds:
        if bound["epsilon"] > 0:
            epsilon, delta = (terminal_text(number, 3, UP) for number in (bound["epsilon"], min(bound["delta"], eta)))
            echo_lines(f"  epsilon {epsilon}, delta {delta}")


def draw_picture(option: str, picture: Path, draw: Callable[[], Any]) -> None:
    """Draw a figure into a file."""
    try:
        picture.unlink(missing_ok=True)  # a new file gets its own permissions instead of those of the old one
        draw().savefig(picture, dpi=150)
    except OSError as error:
        raise InputError.from_text(f"{option} {picture}", f"cannot be written ({error.strerror})") from None
