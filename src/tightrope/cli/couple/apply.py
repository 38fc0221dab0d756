"""``tightrope couple apply``: one draw for each row of a table, into a new file without the group."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from tightrope.cli.couple.check import read_mechanism
from tightrope.cli.couple.laws import open_table_for_mechanism
from tightrope.cli.options import AsJson
from tightrope.cli.output import check_new_parquet_path, echo_lines, print_json, show_spinner
from tightrope.errors import InputError
from tightrope.transport.on_tables.collection import apply_cells, apply_table
from tightrope.transport.on_tables.supports import Categories, Cells

APPLY_EXAMPLE = """\b
Example:
  tightrope couple apply mechanism.json places.parquet --out released.parquet --keep year
"""
Mechanism = Annotated[Path, typer.Argument(metavar="MECHANISM", help="A file of 'couple fit'.")]
Data = Annotated[Path, typer.Argument(metavar="DATA", help="A .parquet, .csv or .duckdb file.")]
Out = Annotated[Path, typer.Option(metavar="FILE", help="A .parquet file that does not exist yet.")]
Value = Annotated[
    list[str] | None, typer.Option(metavar="COLUMN", help="Where the values are, if not where they were fitted.")
]
Group = Annotated[str | None, typer.Option(metavar="COLUMN", help="The same for the group.")]
Keep = Annotated[
    list[str] | None, typer.Option(metavar="COLUMN", help="Also write this column, unchanged: it is not hidden.")
]
Name = Annotated[str | None, typer.Option("--table", metavar="NAME", help="The table, in a DuckDB file.")]
OUTPUT_EXISTS_REMEDY = (
    "publish the draws that were made, or remove the file if nobody has seen it: each run draws new ones"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplyOptions:
    """The values of the options."""

    mechanism: Mechanism
    data: Data
    out: Out
    value: Value = None
    group: Group = None
    keep: Keep = None
    table: Name = None
    as_json: AsJson = False


def apply(options: ApplyOptions) -> None:
    """Replace every value by one draw, and write no group.

    A second run is a second release of every value, and tells more.
    """
    check_new_parquet_path(options.out, OUTPUT_EXISTS_REMEDY)
    with show_spinner("Checking the mechanism ..."):
        saved = read_mechanism(options.mechanism)
    # The same points in other columns.

    if options.value is None:
        placed = saved.support
    else:
        if len(options.value) != len(saved.support.column_names):
            raise InputError(
                "value", options.value, f"{len(saved.support.column_names)} columns, in the order of the fit"
            )
        if isinstance(saved.support, Categories):
            placed = replace(saved.support, column=options.value[0])
        else:
            placed = Cells(
                tuple(replace(axis, column=name) for axis, name in zip(saved.support.axes, options.value, strict=True))
            )
    saved = replace(saved, support=placed, group=options.group or saved.group)
    with show_row_progress("Drawing") as progress:
        table, keep = open_table_for_mechanism(saved, options.data, options.table), tuple(options.keep or ())
        if isinstance(saved.support, Cells):
            settings = (saved.mechanism, table, saved.support, saved.group, options.out)
            rows = apply_cells(*settings, keep=keep, progress=progress)
        else:
            value, names = saved.support.column, saved.support.point_names
            columns = (saved.mechanism, table, value, saved.group, options.out)
            rows = apply_table(*columns, points=names, keep=keep, progress=progress)
    if options.as_json:
        print_json(
            {"rows": rows, "out": str(options.out), "columns": [*saved.support.column_names, *(options.keep or [])]}
        )
        return
    echo_lines(
        f"{rows:,} rows written to {options.out}: {', '.join([*saved.support.column_names, *(options.keep or [])])}."
    )
    echo_lines("Each value was drawn once. Running this again would release every value again, and that tells more.")


@contextmanager
def show_row_progress(task: str) -> Iterator[Callable[[int], None]]:
    """A line on standard error that counts rows, only if it is a terminal."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return

    with Console(stderr=True).status(task) as line:
        yield lambda rows: line.update(f"{task}: {rows:,} rows")
