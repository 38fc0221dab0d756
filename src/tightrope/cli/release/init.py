"""``tightrope init``: a commented plan for somebody's own table."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tightrope.cli.failures import spends_nothing
from tightrope.cli.options import AsJson

if TYPE_CHECKING:
    from tightrope.engines.schema import Schema
    from tightrope.release.documents.starter import Chosen

INIT_EXAMPLE = """\b
Example:
  tightrope init visits.parquet --person user_id --out visits.toml
  tightrope init visits.parquet --interactive
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
Interactive = Annotated[
    bool, typer.Option("--interactive", help="Ask who a person is, and for a first count and average.")
]
Force = Annotated[bool, typer.Option("--force", help="Replace a plan that is already there.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The command line."""

    data: Data
    person: Person = None
    each_row: EachRow = False
    table: TableName = None
    dialect: Dialect = None
    out: Out = "plan.toml"
    force: Force = False
    interactive: Interactive = False
    as_json: AsJson = False


@spends_nothing()
def init(asked: Asked) -> None:
    """Write a commented plan for your own table.

    Reads the names and types of its columns, never a value.
    """
    from tightrope.cli.output import print_json, say, writable, write
    from tightrope.engines import open_source
    from tightrope.release.documents.starter import starter

    target = Path(asked.out)
    _check(asked, target)
    marks = _marks(asked.dialect or ())
    opened = open_source(asked.data, table=asked.table, dialect=marks or None)
    schema = opened.schema
    person, chosen = _chosen(asked, schema)
    place = _relative(asked.data, target)
    text = starter(schema, place, person, table=asked.table, dialect=marks, chosen=chosen)
    writable(target.parent)
    write(target, text)
    if asked.as_json:
        print_json({"plan": str(target), "source": asked.data, "person": person, "columns": _columns(schema)})
        return
    if opened.markers:
        say(f"Marks of the writer in the folder, which hold no rows and are not read: {opened.markers} files")
    say(f"Wrote {target}. It runs as it is. Fill in further questions, then:")
    say(f"  tightrope plan {target}      how accurate each answer will be; spends nothing")
    say(f"  tightrope release {target}   draws the noise and writes the report")


def _chosen(asked: Asked, schema: Schema) -> tuple[str | None, Chosen | None]:
    """The person's column, and what else was asked for."""
    if not asked.interactive:
        return asked.person, None
    from tightrope.cli.release.ask import prompt, wishes

    return wishes(schema, prompt, asked.person, each_row=asked.each_row)


def _check(asked: Asked, target: Path) -> None:
    from tightrope.errors import InputError

    person, open_question = asked.person, asked.interactive and not asked.each_row
    if (person is None) != asked.each_row and not (person is None and open_question):
        remedy = (
            "all rows of one person are hidden together: --person user_id where a column says whose row it is, "
            "--each-row where nobody has two rows"
        )
        got = None if person is None else f"{person} and --each-row"
        raise InputError("person", got, "either --person COLUMN or --each-row", remedy)
    if target.exists() and not asked.force:
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
