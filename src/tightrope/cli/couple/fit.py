"""``tightrope couple fit``: from a table, or from public laws, to a mechanism in a file."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from tightrope.cli.couple.laws import load_group_distributions
from tightrope.cli.options import AsJson, Force, Page, check_picture_path, check_report_path
from tightrope.cli.output import echo_lines, print_json, print_table, show_spinner, writable_folder, write_file
from tightrope.documents.document import plain_data, to_json_text
from tightrope.documents.numbers import UP, percent_text, significant_text
from tightrope.errors import InputError
from tightrope.reporting import Table, document_html
from tightrope.reporting.charts.plots import coupling_picture
from tightrope.transport.couplings.mechanism import CouplingMechanism, moves
from tightrope.transport.on_tables.saved import SavedCoupling, target_law

FIT_EXAMPLE = """\b
Examples, a map of 15 by 36 cells, a score in 30 bins, and categories learned privately:
  tightrope couple fit places.parquet --value latitude --value longitude --group size --grid 15x36
      --bounds -60,90 --bounds -180,180 --out mechanism.json
  tightrope couple fit people.parquet --value wage --group sex --bins 30 --bounds 0,30 --out mechanism.json
  tightrope couple fit visits.parquet --value shop --group district --points a,b,c --groups north,south
      --epsilon 1 --privacy-unit user_id --out mechanism.json
"""
MOVES = ("group", "moves on average", "at most", "stays")
OTHERS = 0o077
"""Permission bits denied to all but the owner, for files as secret as the table."""
Data = Annotated[Path | None, typer.Argument(metavar="DATA", help="A .parquet, .csv or .duckdb file.")]
Value = Annotated[list[str], typer.Option(metavar="COLUMN", help="What is to be released; two of them for a map.")]
Group = Annotated[str, typer.Option(metavar="COLUMN", help="What the released value must not tell.")]
Out = Annotated[Path, typer.Option(metavar="FILE", help="Where to write the mechanism, as JSON.")]
Grid = Annotated[str | None, typer.Option(metavar="ROWSxCOLUMNS", help="Cut two numeric columns into cells.")]
Bins = Annotated[int | None, typer.Option(metavar="N", help="Cut one numeric column into cells.")]
Between = Annotated[
    list[str] | None,
    typer.Option(metavar="LO,HI", help="Public bounds, once a value; what lies outside is clamped to the end."),
]
Points = Annotated[str | None, typer.Option(metavar="A,B,...", help="The categories, if they are public.")]
Groups = Annotated[str | None, typer.Option(metavar="A,B,...", help="The groups, if they are public.")]
Metric = Annotated[
    str | None,
    typer.Option(metavar="M", help="cityblock, euclidean, chebyshev or sqeuclidean on a map; discrete for texts."),
]
Objective = Annotated[
    str, typer.Option(metavar="O", help="'expected': least average distance; 'worst': least largest one.")
]
Target = Annotated[
    str, typer.Option(metavar="T", help="The law of every output: 'barycenter' costs least, 'uniform', or a group's.")
]
Epsilon = Annotated[
    float | None, typer.Option(metavar="E", help="Learn the laws privately, spending so much; 1 is usual.")
]
Person = Annotated[str | None, typer.Option(metavar="COLUMN", help="Whose row it is; by default each row is a person.")]
Laws = Annotated[
    Path | None, typer.Option(metavar="CSV", help="Instead of DATA: public laws, columns point, group, mass.")
]
Name = Annotated[str | None, typer.Option("--table", metavar="NAME", help="The table, in a DuckDB file.")]
Picture = Annotated[Path | None, typer.Option("--plot", metavar="FILE", help="Draw before and after, .png or .svg.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class FitOptions:
    """The values of the options."""

    data: Data = None
    value: Value
    group: Group
    out: Out
    grid: Grid = None
    bins: Bins = None
    bounds: Between = None
    points: Points = None
    groups: Groups = None
    metric: Metric = None
    objective: Objective = "expected"
    target: Target = "barycenter"
    epsilon: Epsilon = None
    privacy_unit: Person = None
    laws: Laws = None
    table: Name = None
    plot: Picture = None
    report: Page = None
    force: Force = False
    as_json: AsJson = False


def fit(options: FitOptions) -> None:
    """Fit a coupling: every group's values come out with one law, at the least distance.

    Without --epsilon, the file holds the laws of the table's groups as they are.
    """
    _check_files(options)
    with show_spinner("Counting ..."):
        known = load_group_distributions(options)
    started = time.perf_counter()
    with show_spinner("Coupling the groups' laws with their target ..."):
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
            with show_spinner("Drawing ..."):
                draw_picture(saved, options.plot)
        if options.report is not None:
            caption = f"How far values move, in {data['unit']} ({data['metric']})"
            write_file(
                options.report,
                document_html(
                    saved.to_document(),
                    tables=[Table(caption, tuple(name.capitalize() for name in MOVES), _move_rows(data))],
                ),
            )
    if options.as_json:
        print_json({**data, "out": str(options.out)})
    else:
        _print_result(data, options)


def _check_files(options: FitOptions) -> None:
    """Before anything is learned: what is written can be, and replaces nothing that is read or that may have cost ε."""
    check_picture_path(options.plot)
    check_report_path(options.report, replace=options.force)
    read = [path.resolve() for path in (options.data, options.laws) if path is not None]
    named = {"out": options.out, "plot": options.plot, "report": options.report}
    written = {name: path for name, path in named.items() if path is not None}
    for name, path in written.items():
        if path.is_dir() or path.resolve() in read:
            raise InputError(name, str(path), "a file of its own", "name another one")
        writable_folder(path.parent)
    if options.out.exists() and not options.force:
        raise InputError("out", str(options.out), "a file that does not exist yet", "--force replaces it")
    if len({path.resolve() for path in written.values()}) < len(written):
        last = next(name for name in ("report", "plot") if name in written)
        raise InputError(last, str(written[last]), "another file than --out", "name another one")


@contextmanager
def _owner_only_files(secret: bool) -> Iterator[None]:
    """Files that are made here are their owner's alone from the first byte on, if they are secret."""
    before = os.umask(0)
    os.umask(before | OTHERS if secret else before)
    try:
        yield
    finally:
        os.umask(before)


def _move_rows(data: Mapping[str, Any]) -> list[list[str]]:

    return [
        [
            one["group"],
            significant_text(one["mean"], 4, UP),
            significant_text(one["largest"], 4, UP),
            percent_text(one["kept"]),
        ]
        for one in data["groups"]
    ]


def _print_result(data: Mapping[str, Any], options: FitOptions) -> None:

    echo_lines(f"{len(data['groups'])} groups of {options.group}, {data['points']} points; target: {options.target}\n")
    print_table(MOVES, _move_rows(data))
    echo_lines(f"\nDistances: {data['unit']} ({data['metric']}).")
    off = significant_text(data["target_error"] * 2.0**128, 2, UP)
    echo_lines(f"Every group comes out with the target's law, exact to {off} times 2^-128.")
    print_learning(data["origin"])
    echo_lines(f"Fitted in {data['seconds']:.1f} s.")
    echo_lines(f"Written: {options.out}; it is {data['origin']['secrecy']}.")
    if options.plot is not None:
        echo_lines(f"Drawn: {options.plot}")
    if options.report is not None:
        echo_lines(f"Written: {options.report}; it is as secret as that file, and holds it.")
    echo_lines("One value, one draw: releasing a value again tells more. See docs/couple.md.")


def print_learning(origin: Mapping[str, Any]) -> None:
    """Describe learned distributions: the budget spent, and the loss left by their estimation error."""
    own = origin.get("learning")
    if own is None:
        return
    spent = significant_text(own["epsilon"], 6, UP)
    echo_lines(f"Learning the laws spent epsilon {spent} (a person: {own['person']}); no ledger recorded it.")
    echo_lines(
        f"True laws may differ: with {own['confidence']:.0%} confidence one draw tells two groups apart by at most"
    )
    for one in own["left"]:
        parts = [significant_text(one[key], 3, UP) for key in ("epsilon", "delta", "total_variation")]
        echo_lines("  epsilon {}, delta {}, total variation {}".format(*parts))


def draw_picture(saved: SavedCoupling, picture: Path) -> None:
    """Before and after, into a file."""
    try:
        picture.unlink(missing_ok=True)  # its place in the file system has the rights of the old one
        coupling_picture(saved).savefig(picture, dpi=150)
    except OSError as error:
        raise InputError("plot", str(picture), "a file that can be written", str(error.strerror)) from None
