"""``tightrope init``: a commented plan for somebody's own table."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tightrope.cli.options import AsJson

if TYPE_CHECKING:
    from tightrope.engines.schema import Schema

INIT_EXAMPLE = """\b
Example:
  tightrope init visits.parquet --person user_id --out visits.toml
  tightrope init postgresql://reader@host/clinic --table public.visits --person user_id
  tightrope init visits.csv --person user_id --dialect 'delimiter=;' --dialect 'decimal=,'
"""
Data = Annotated[str, typer.Argument(metavar="DATA", help="A .parquet, .csv or .duckdb file, or a postgresql:// URL.")]
Person = Annotated[
    str | None, typer.Option(metavar="COLUMN", help="The column that says whose row it is: a person's rows are hidden.")
]
EachRow = Annotated[bool, typer.Option("--each-row", help="Each row is a person: nobody has two rows.")]
TableName = Annotated[str | None, typer.Option(metavar="NAME", help="The table, in a .duckdb file or a database.")]
MARKS = ("delimiter", "quote", "decimal", "encoding", "date_format", "timestamp_format")
Dialect = Annotated[
    list[str] | None,
    typer.Option(metavar="KEY=MARK", help=f"How a .csv file is written, such as 'delimiter=;': {', '.join(MARKS)}."),
]
Out = Annotated[str, typer.Option(metavar="PLAN", help="Where to write the plan.")]
Force = Annotated[bool, typer.Option("--force", help="Replace a plan that is already there.")]


def init(
    data: Data,
    person: Person = None,
    each_row: EachRow = False,
    table: TableName = None,
    dialect: Dialect = None,
    out: Out = "plan.toml",
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Write a commented plan for your own table.

    Reads the names and types of its columns, never a value.
    """
    from tightrope.cli.output import print_json, say, writable, write
    from tightrope.engines import open_source
    from tightrope.release.documents.starter import starter

    target = Path(out)
    _check(person, each_row, target, force)
    marks = _marks(dialect or ())
    schema = open_source(data, table=table, dialect=marks or None).schema
    text = starter(schema, _relative(data, target), person, table=table, dialect=marks)
    writable(target.parent)
    write(target, text)
    if as_json:
        print_json({"plan": str(target), "source": data, "person": person, "columns": _columns(schema)})
        return
    say(f"Wrote {target}. It runs as it is: one total. Fill in the questions, then:")
    say(f"  tightrope plan {target}      how accurate each answer will be; spends nothing")
    say(f"  tightrope release {target}   draws the noise and writes the report")


def _check(person: str | None, each_row: bool, target: Path, force: bool) -> None:
    from tightrope.errors import InputError

    if (person is None) != each_row:
        remedy = (
            "all rows of one person are hidden together: --person user_id where a column says whose row it is, "
            "--each-row where nobody has two rows"
        )
        got = None if person is None else f"{person} and --each-row"
        raise InputError("person", got, "either --person COLUMN or --each-row", remedy)
    if target.exists() and not force:
        raise InputError("out", str(target), "a file that does not exist yet", "try --out, or --force to replace it")


def _marks(given: Sequence[str]) -> dict[str, str]:
    """How a CSV file is written, by key.

    >>> _marks(["delimiter=;", "decimal=,"])
    {'delimiter': ';', 'decimal': ','}
    """
    from tightrope.errors import InputError, listed, nearest

    marks = {}
    for entry in given:
        key, equals, mark = entry.partition("=")
        if key not in MARKS or not equals:
            remedy = nearest(key, MARKS) or "say --dialect 'delimiter=;'"
            raise InputError("dialect", entry, f"KEY=MARK with one of {listed(MARKS)}", remedy)
        marks[key] = mark
    return marks


def _relative(data: str, plan: Path) -> str:
    """The path of the data as the plan will have it: relative to the plan, or absolute on another drive."""
    if "://" in data:
        return data
    try:
        return Path(os.path.relpath(data, plan.parent)).as_posix()
    except ValueError:
        return Path(data).absolute().as_posix()


def _columns(schema: Schema) -> list[dict[str, str]]:
    return [{"name": column.name, "kind": column.kind} for column in schema.columns]
