"""``tightrope couple fit``: fit a mechanism to the distributions of a table's groups, and write it to a file."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from tightrope.cli.couple.distributions import load_group_distributions
from tightrope.cli.options import AsJson, Force, Page, check_picture_path, check_report_path
from tightrope.cli.output import echo_lines, print_json, print_table, show_spinner, writable_folder, write_file
from tightrope.documents.document import plain_data, to_json_text
from tightrope.documents.numbers import UP, percent_text, significant_text, total_variation, typed_text
from tightrope.errors import InputError
from tightrope.reporting import Table, document_html
from tightrope.reporting.charts.plots import coupling_picture
from tightrope.transport.couplings.mechanism import CouplingMechanism, moves
from tightrope.transport.on_tables.saved import KnownLaws, SavedCoupling, target_law

FIT_EXAMPLE = """\b
Examples: positions in 15 by 36 cells, wages in 30 bins, and categories with --epsilon:
  tightrope couple fit places.parquet --value latitude --value longitude --group size --grid 15x36
      --bounds -60,90 --bounds -180,180 --out mechanism.json
  tightrope couple fit people.parquet --value wage --group sex --bins 30 --bounds 0,30 --out mechanism.json
  tightrope couple fit visits.parquet --value shop --group district --points a,b,c --groups north,south
      --epsilon 1 --privacy-unit user_id --out mechanism.json
"""
MOVE_COLUMNS = ("group", "mean distance", "max distance", "unchanged")
SHARING_TEXTS = {
    "table": "contains the exact group distributions of the table; protect it like the data",
    "public": "contains the given public distributions, and no other data",
    "private": "is differentially private with the stated epsilon, and may be shared",
}
"""Who may see a mechanism file, by the origin of its distributions."""
WEAK_TOTAL_VARIATION = 0.99
"""A bound on the total variation from this on is reported as no guarantee."""
OTHERS = 0o077
"""Permission bits denied to all but the owner, for files that reveal the table's distributions."""
Data = Annotated[Path | None, typer.Argument(metavar="DATA", help="A .parquet, .csv or .duckdb file.")]
Value = Annotated[list[str], typer.Option(metavar="COLUMN", help="Column of the values to release; twice for a map.")]
Group = Annotated[str, typer.Option(metavar="COLUMN", help="Sensitive attribute to hide.")]
Out = Annotated[Path, typer.Option(metavar="FILE", help="Write the mechanism there, as JSON.")]
Grid = Annotated[
    str | None, typer.Option(metavar="ROWSxCOLUMNS", help="Divide two numeric columns into cells of equal size.")
]
Bins = Annotated[int | None, typer.Option(metavar="N", help="Divide one numeric column into cells of equal size.")]
Bounds = Annotated[
    list[str] | None,
    typer.Option(metavar="LO,HI", help="Public bounds, once per --value; values outside are clamped."),
]
Points = Annotated[str | None, typer.Option(metavar="A,B,...", help="The categories, if they are public.")]
Groups = Annotated[str | None, typer.Option(metavar="A,B,...", help="The groups, if they are public.")]
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
Epsilon = Annotated[
    float | None,
    typer.Option(metavar="E", help="Estimate the group distributions with epsilon-DP, for example 1."),
]
PrivacyUnit = Annotated[
    str | None, typer.Option(metavar="COLUMN", help="Column with the person's id; default: one row per person.")
]
Laws = Annotated[
    Path | None,
    typer.Option(metavar="CSV", help="Instead of DATA: public distributions, with the columns point, group, mass."),
]
TableName = Annotated[str | None, typer.Option("--table", metavar="NAME", help="The table in a .duckdb file.")]
Picture = Annotated[
    Path | None,
    typer.Option("--plot", metavar="FILE", help="Draw the distributions before and after (.png, .svg or .pdf)."),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class FitOptions:
    """The values of the options."""

    data: Data = None
    value: Value
    group: Group
    out: Out
    grid: Grid = None
    bins: Bins = None
    bounds: Bounds = None
    points: Points = None
    groups: Groups = None
    metric: Metric = None
    objective: Objective = "expected"
    target: Target = "barycenter"
    epsilon: Epsilon = None
    privacy_unit: PrivacyUnit = None
    laws: Laws = None
    table: TableName = None
    plot: Picture = None
    report: Page = None
    force: Force = False
    as_json: AsJson = False


def fit(options: FitOptions) -> None:
    """Fit a coupling that hides group membership.

    The randomized map gives every group the same output distribution at minimal transport cost. Without --epsilon, the
    output file contains the exact group distributions of the table: keep it secret.
    """
    _check_files(options)
    with show_spinner("Counting ..."):
        known = load_group_distributions(options)
    started = time.perf_counter()
    with show_spinner("Fitting ..."):
        metric = known.support.default_metric if options.metric is None else options.metric
        objective: Any = options.objective  # checked by fit
        cost, target = known.support.transport_cost(metric), target_law(known, options.target)
        fitted = CouplingMechanism.fit(known.laws, cost, target=target, objective=objective)
        saved = SavedCoupling(fitted, known.support, options.group, metric, known.stated_origin(options.target))
    seconds = time.perf_counter() - started
    groups: list[dict[str, Any]] = []
    for name in fitted.groups:
        found = moves(fitted, name, cost)
        groups.append({"group": str(name), "mean": found.mean, "largest": found.largest, "kept": found.kept})
    # What is printed, and what --json has.
    data = {
        "points": len(saved.support),
        "unit": saved.support.distance_unit(saved.metric),
        "metric": saved.metric,
        "objective": fitted.objective,
        "groups": groups,
        "target_error": float(fitted.target_error),
        "seconds": seconds,
        "origin": plain_data(saved.origin),
    }
    with _owner_only_files(known.kind == "table"):
        write_file(options.out, to_json_text(saved.to_document()))
        if options.plot is not None:
            with show_spinner("Plotting ..."):
                draw_picture(saved, options.plot)
        if options.report is not None:
            caption = f"Distance between input and output, in {data['unit']} ({data['metric']})"
            write_file(
                options.report,
                document_html(
                    saved.to_document(),
                    tables=[Table(caption, tuple(name.capitalize() for name in MOVE_COLUMNS), _move_rows(data))],
                ),
            )
    if options.as_json:
        print_json({**data, "out": str(options.out)})
    else:
        _print_result(data, options, known)


def _check_files(options: FitOptions) -> None:
    """Raise ``InputError`` if a file could not be written, or would replace an input or an existing mechanism.

    Called before any budget is spent.
    """
    check_picture_path(options.plot)
    check_report_path(options.report, replace=options.force)
    inputs = [path.resolve() for path in (options.data, options.laws) if path is not None]
    paths = {"--out": options.out, "--plot": options.plot, "--report": options.report}
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


@contextmanager
def _owner_only_files(secret: bool) -> Iterator[None]:
    """Within this context, new files are readable to their owner only, if they are secret."""
    before = os.umask(0)
    os.umask(before | OTHERS if secret else before)
    try:
        yield
    finally:
        os.umask(before)


def _move_rows(data: Mapping[str, Any]) -> list[list[str]]:
    """Return the distances of each group as text."""
    return [
        [
            one["group"],
            significant_text(one["mean"], 4, UP),
            significant_text(one["largest"], 4, UP),
            percent_text(one["kept"]),
        ]
        for one in data["groups"]
    ]


def _print_result(data: Mapping[str, Any], options: FitOptions, known: KnownLaws) -> None:
    """Print the distances, the accuracy, the learned distributions' guarantee, and the files that were written."""
    echo_lines(f"{len(data['groups'])} groups of {options.group}, {data['points']} points; target: {options.target}")
    if known.unused_rows:
        echo_lines(
            f"{known.unused_rows:,} of {known.total_rows:,} rows were not used: their value or group is missing or not "
            "listed."
        )
    echo_lines("")
    print_table(MOVE_COLUMNS, _move_rows(data))
    echo_lines(f"\nDistances: {data['unit']} ({data['metric']}).")
    echo_lines(f"The output distribution of every group equals the target{error_text(data['target_error'])}.")
    print_learning(data["origin"])
    echo_lines(f"Fitted in {data['seconds']:.1f} s.")
    echo_lines(f"Written: {options.out}. It {SHARING_TEXTS[data['origin']['kind']]}.")
    if options.plot is not None:
        echo_lines(f"Written: {options.plot}")
    if options.report is not None:
        echo_lines(f"Written: {options.report}. It contains the mechanism file.")
    echo_lines(RELEASE_ONCE_TEXT)


RELEASE_ONCE_TEXT = "Release each value only once: another random draw for it reveals more. See docs/couple.md."


def error_text(target_error: float) -> str:
    """Return the error of output probabilities, to be appended to a sentence; empty if there is none.

    >>> error_text(2.7e-40), error_text(0.0)
    (', up to an error of 2.7e-40 in each probability', '')
    """
    return f", up to an error of {typed_text(target_error, 2, UP)} in each probability" if target_error > 0 else ""


def print_learning(origin: Mapping[str, Any]) -> None:
    """Print the budget spent on learned distributions, and what their estimation error can reveal."""
    learning = origin.get("learning")
    if learning is None:
        return
    spent = typed_text(learning["epsilon"], 6, UP)
    unit = "one row" if learning["person"] == EACH_ROW else f"all rows with the same {learning['person']}"
    echo_lines(
        f"Estimating the distributions used epsilon {spent} (privacy unit: {unit}). This is not recorded in a ledger."
    )
    # Of each bound (ε, δ) follows one on the total variation; all hold together, so the smallest one is proven.
    bounds = learning["left"]
    eta = min(min(one["total_variation"], total_variation(one["epsilon"], min(one["delta"], 1.0))) for one in bounds)
    confidence = f"{learning['confidence']:.0%}".replace("%", " %")
    if eta >= WEAK_TOTAL_VARIATION:
        echo_lines(
            "No guarantee: the estimated distributions are too inaccurate (an attacker's advantage can be "
            f"{typed_text(eta, 3, UP)}). Use fewer cells, more rows or a larger epsilon."
        )
        return
    echo_lines(
        "The true distributions differ from the estimated ones. One output reveals about the group, with "
        f"{confidence} confidence, at most:"
    )
    echo_lines(f"  total variation {typed_text(eta, 3, UP)}")
    for one in bounds:
        if one["epsilon"] > 0:
            epsilon, delta = (typed_text(number, 3, UP) for number in (one["epsilon"], min(one["delta"], eta)))
            echo_lines(f"  epsilon {epsilon}, delta {delta}")


EACH_ROW = "each row"
"""The privacy unit in a mechanism file, if each row is a person."""


def draw_picture(coupling: SavedCoupling, picture: Path) -> None:
    """Draw the distributions before and after into a file."""
    try:
        picture.unlink(missing_ok=True)  # a new file gets its own permissions instead of those of the old one
        coupling_picture(coupling).savefig(picture, dpi=150)
    except OSError as error:
        raise InputError.from_text(f"--plot {picture}", f"cannot be written ({error.strerror})") from None
