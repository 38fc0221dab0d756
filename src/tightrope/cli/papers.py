"""``tightrope reproduce``: recompute the numbers of four papers on differential privacy, and compare."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from tightrope.cli.options import AsJson, command_app
from tightrope.cli.output import echo_heading, echo_lines, print_json, writable_folder, write_file
from tightrope.reporting.pages.document_page import papers_html

if TYPE_CHECKING:
    from tightrope.papers.item import Item, ItemResult

REPRODUCE_EXAMPLE = """\b
Example:
  tightrope reproduce --out papers.html            all papers; takes a few minutes
  tightrope reproduce --only GDGK,KM --coarse      two papers, fewer random examples
"""
Out = Annotated[Path | None, typer.Option(metavar="PAGE", help="Write one self-contained HTML page, with pictures.")]
Only = Annotated[
    str | None,
    typer.Option(
        metavar="PAPERS",
        help="Comma-separated list of papers: GDGK (Geng, Ding, Guo, Kumar), GI (Ghazi, Issa), GI-v1 (its first "
        "version), AAC (Asoodeh, Aliakbarpour, Calmon), KM (Kawamoto, Murakami).",
    ),
]
Coarse = Annotated[
    bool, typer.Option("--coarse", help="Test each theorem on fewer random examples; takes less than a minute.")
]


def reproduce(out: Out = None, only: Only = None, coarse: Coarse = False, as_json: AsJson = False) -> None:
    """Recompute the numbers of four papers on differential privacy (one in two versions), and compare.

    For every theorem, example, figure and table: Tightrope's number, the paper's, and the verdict: agrees, sharper
    (Tightrope's bound is better), wrong (the paper is wrong), or not reproduced.
    """
    from tightrope.papers.item import COARSE, FULL, VERDICT_TEXTS, run_items, select_items, verdict_counts

    chosen = select_items(None if only is None else [name.strip() for name in only.split(",") if name.strip()])
    if out is not None:
        writable_folder(out.resolve().parent)
    with progress_bar(chosen) as finished:
        results = run_items(chosen, COARSE if coarse else FULL, pictures=out is not None, finished=finished)
    if out is not None:
        write_file(out.resolve(), results_page(results))
    if as_json:
        print_json({"items": [result.result_data for result in results]})
    else:
        paper = ""
        for show_result in results:
            if show_result.item.paper != paper:
                paper = show_result.item.paper
                echo_heading(paper)
            echo_lines(f"{show_result.item.item}: {show_result.finding.verdict}")
        echo_lines(
            "",
            ", ".join(f"{count} {VERDICT_TEXTS.get(word, word)}" for word, count in verdict_counts(results).items())
            + f" of {len(results)} statements",
        )
        if out is not None:
            echo_lines(f"Page: {out}")


def results_page(results: Sequence[ItemResult]) -> str:
    """Return the results as an HTML page."""
    from tightrope.papers.item import TITLES

    return papers_html([one.result_data for one in results], [one.pictures for one in results], TITLES)


@contextmanager
def progress_bar(items: Sequence[Item]) -> Iterator[Callable[[Item], None]]:
    """Show a progress bar on standard error if it is a terminal; call the yielded function after each item."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as bar:
        task = bar.add_task("Papers", total=len(items))
        yield lambda item: bar.update(task, advance=1, description=f"{item.paper} {item.item[:32]}")


app = command_app(reproduce, example=REPRODUCE_EXAMPLE)
