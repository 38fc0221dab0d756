"""``tightrope init``: a commented plan for somebody's own table."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.prompt import Prompt
from rich.text import Text

from tightrope.cli.errors import spends_nothing
from tightrope.cli.options import AsJson, command_app, from_fields
from tightrope.cli.output import print_json, say, writable, write
from tightrope.documents.escaping import A_PERSON, printable
from tightrope.errors import InputError, listed, nearest

if TYPE_CHECKING:
    from tightrope.release.plan_sections import Chosen
    from tightrope.tables.schema import Schema

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
    from tightrope.release.plan_sections import starter
    from tightrope.tables import open_source

    target = Path(asked.out)

    check_person, open_question = asked.person, asked.interactive and not asked.each_row
    if (check_person is None) != asked.each_row and not (check_person is None and open_question):
        remedy = (
            "all rows of one person are hidden together: --person user_id where a column says whose row it is, "
            "--each-row where nobody has two rows"
        )
        got = None if check_person is None else f"{check_person} and --each-row"
        raise InputError("person", got, "either --person COLUMN or --each-row", remedy)
    if target.exists() and not asked.force:
        raise InputError("out", str(target), "a file that does not exist yet", "try --out, or --force to replace it")
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

    return wishes(schema, prompt, asked.person, each_row=asked.each_row)


def _marks(given: Sequence[str]) -> dict[str, str]:
    """How a CSV file is written, by key.

    >>> _marks(["delimiter=;", "decimal=,"])
    {'delimiter': ';', 'decimal': ','}
    """
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


# The questions of ``tightrope init --interactive``: from the schema alone, and each may be left out.

Ask = Callable[[str, Sequence[str], str], str]
"""Shows words, what may be chosen (anything, where that is empty) and the default; gives what was said."""
Entry = Mapping[str, str | tuple[float, float]]
NONE = ""
COLUMNS_SHOWN = 20
"""So many columns are shown to choose from; others can be typed."""
TRIES = 5


def wishes(schema: Schema, ask: Ask, person: str | None, *, each_row: bool) -> tuple[str | None, Chosen]:
    """The column of the person and what else was chosen; nothing is read but the schema."""
    from tightrope.release.plan_sections import Chosen

    if person is None and not each_row:
        column = _column(schema, ask, "Which column says whose row it is? (nothing: each row is a person)", ())
        person = column or None
    rows = 1 if person is None else _whole(ask, "At most how many rows of one person may count?")
    means = A_PERSON if person is None else _noun(ask)
    kinds = ("text", "boolean", "date")
    by = _column(schema, ask, "Count rows by which column? (nothing: by none)", kinds, person)
    questions = (*(({"kind": "count", "by": by},) if by else ()), *_means(schema, ask, person))
    return person, Chosen(rows, None if means == A_PERSON else means, questions)


def prompt(words: str, choices: Sequence[str], default: str) -> str:
    """One prompt on standard error; the answer comes from standard input. Raises ``InputError`` where there is none."""
    shown = f"{words} [{', '.join(map(printable, choices))}]" if choices else words
    console = Console(stderr=True, markup=False, highlight=False)
    try:
        return str(Prompt.ask(Text(shown), console=console, default=default, show_default=bool(default))).strip()
    except EOFError:
        raise InputError("interactive", None, "answers on standard input", "or leave --interactive out") from None


def _means(schema: Schema, ask: Ask, person: str | None) -> tuple[Entry, ...]:
    column = _column(schema, ask, "The average of which column? (nothing: of none)", ("number", "integer"), person)
    if not column:
        return ()
    low = _number(ask, f"The lowest value of {column} that is publicly known, not read off the data?")
    high = _number(ask, f"The highest value of {column} that is publicly known?")
    if not low < high:
        raise InputError("between", (low, high), "a pair (lowest, highest) with lowest < highest")
    return ({"kind": "mean", "column": column, "between": (low, high)},)


def _column(schema: Schema, ask: Ask, words: str, kinds: Sequence[str], but: str | None = None) -> str:
    """A column of one of these kinds (none: of any that is plain), or nothing."""
    usual = [column for column in schema.columns if (column.kind in kinds if kinds else column.kind != "other")]
    names = [column.name for column in usual if column.name != but]
    if not names:
        return NONE
    return _tried(ask, words, names[:COLUMNS_SHOWN], NONE, lambda said: said if said in (NONE, *names) else None)


def _noun(ask: Ask) -> str:
    """What a person is, as a plan takes it."""
    from tightrope.release.plan_sections import is_a_noun

    words = 'What is a person there? ("a" or "an" and a noun, such as: a patient)'
    return _tried(ask, words, (), A_PERSON, lambda said: said if is_a_noun(said) else None)


def _whole(ask: Ask, words: str) -> int:
    """A number of rows that a plan takes."""
    from tightrope.release.settings import MOST

    return int(_tried(ask, words, (), "1", lambda said: said if said.isdecimal() and 0 < int(said) <= MOST else None))


def _number(ask: Ask, words: str) -> float:
    return float(_tried(ask, words, (), NONE, lambda said: said if _is_number(said) else None))


def _is_number(said: str) -> bool:
    try:
        return abs(float(said)) < float("inf")
    except ValueError:
        return False


def _tried(ask: Ask, words: str, choices: Sequence[str], default: str, taken: Callable[[str], str | None]) -> str:
    """Asked again where the answer is none of what may be said."""
    for _ in range(TRIES):
        found = taken(ask(words, choices, default))
        if found is not None:
            return found
    raise InputError("interactive", None, f"an answer to: {words}", "or leave --interactive out and write the plan")


app = command_app(from_fields(Asked, init), example=INIT_EXAMPLE)
