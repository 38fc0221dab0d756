"""``tightrope couple apply``: replace each row's value by one random draw.

The new file has no group column.
"""

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
from tightrope.cli.couple.distributions import open_table_for_mechanism
from tightrope.cli.options import AsJson
from tightrope.cli.output import check_new_parquet_path, echo_lines, print_json, show_spinner
from tightrope.errors import InputError
from tightrope.transport.on_tables.collection import apply_cells, apply_table
from tightrope.transport.on_tables.supports import Categories, Cells

APPLY_EXAMPLE = """\b
Example:
  tightrope couple apply mechanism.json places.parquet --out released.parquet --keep year
"""
MechanismPath = Annotated[Path, typer.Argument(metavar="MECHANISM", help="Mechanism file written by 'couple fit'.")]
DataPath = Annotated[Path, typer.Argument(metavar="DATA", help="A .parquet, .csv or .duckdb file.")]
OutputPath = Annotated[Path, typer.Option(metavar="FILE", help="Write the new values to this new .parquet file.")]
ValueColumns = Annotated[
    list[str] | None,
    typer.Option(metavar="COLUMN", help="Column(s) of the values, if named differently than when fitting."),
]
GroupColumn = Annotated[
    str | None, typer.Option(metavar="COLUMN", help="Group column, if named differently than when fitting.")
]
KeptColumns = Annotated[
    list[str] | None, typer.Option(metavar="COLUMN", help="Also write this column, unchanged; it is not protected.")
]
TableName = Annotated[str | None, typer.Option("--table", metavar="NAME", help="The table in a .duckdb file.")]
OUTPUT_EXISTS_REMEDY = "publish the existing file, or delete it if it was not shared: each run makes new random draws"


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplyOptions:
    """Options of ``tightrope couple apply``."""

    mechanism: MechanismPath
    data: DataPath
    out: OutputPath
    value: ValueColumns = None
    group: GroupColumn = None
    keep: KeptColumns = None
    table: TableName = None
    as_json: AsJson = False


def apply(options: ApplyOptions) -> None:
    """Replace each value with a random draw.

    The group column is not written. Release each value only once: another random draw for it reveals more.
    """
    check_new_parquet_path(options.out, OUTPUT_EXISTS_REMEDY)
    with show_spinner("Checking the mechanism ..."):
        coupling = read_mechanism(options.mechanism)
    support = coupling.support
    if options.value is not None:  # the same points under the names of this table's columns
        count = len(support.column_names)
        if len(options.value) != count:
            needed = "one column" if count == 1 else f"{count} columns, in the same order as in 'couple fit'"
            raise InputError.from_text("--value", f"the mechanism needs {needed}; {len(options.value)} are given")
        if isinstance(support, Categories):
            support = replace(support, column=options.value[0])
        else:
            axes = zip(support.axes, options.value, strict=True)
            support = Cells(tuple(replace(axis, column=column) for axis, column in axes))
    coupling_for_table = replace(coupling, support=support, group=options.group or coupling.group)
    keep = tuple(options.keep or ())
    with show_row_progress("Sampling") as progress:
        table = open_table_for_mechanism(coupling_for_table, options.data, options.table)
        mechanism, group = coupling_for_table.mechanism, coupling_for_table.group
        if isinstance(support, Cells):
            rows = apply_cells(mechanism, table, support, group, options.out, keep=keep, progress=progress)
        else:
            rows = apply_table(
                mechanism,
                table,
                support.column,
                group,
                options.out,
                points=support.point_names,
                keep=keep,
                progress=progress,
            )
    written_columns = [*support.column_names, *keep]
    if options.as_json:
        print_json({"rows": rows, "out": str(options.out), "columns": written_columns})
        return
    echo_lines(f"{rows:,} rows written to {options.out}: {', '.join(written_columns)}.")
    echo_lines("Each value was replaced once. Running this again would release each value again, and reveal more.")


@contextmanager
def show_row_progress(task: str) -> Iterator[Callable[[int], None]]:
    """Show a row count on standard error if that is a terminal; yields the function that updates it."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    with Console(stderr=True).status(task) as status:
        yield lambda rows: status.update(f"{task}: {rows:,} rows")
