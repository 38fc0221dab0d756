"""``tightrope init``: a commented plan for your own table."""

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

from tightrope.cli.errors import interrupt_without_charge
from tightrope.cli.options import AsJson, command_app, command_from_dataclass, is_finite_number
from tightrope.cli.output import echo_lines, print_json, show_progress, writable_folder, write_file
from tightrope.documents.escaping import A_PERSON, escape_control_chars
from tightrope.errors import InputError, quoted_names, suggest_nearest

if TYPE_CHECKING:
    from tightrope.release.plan_sections import StarterOptions
    from tightrope.tables.schema import Schema

INIT_EXAMPLE = """\b
Example:
  tightrope init visits.parquet --privacy-unit user_id --out visits.toml
  tightrope init visits.parquet --interactive
  tightrope init postgresql://reader@host/clinic --table public.visits --privacy-unit user_id
  tightrope init visits.csv --privacy-unit user_id --dialect 'delimiter=;' --dialect 'decimal=,'
"""
Data = Annotated[str, typer.Argument(metavar="DATA", help="A .parquet, .csv or .duckdb file, or a postgresql:// URL.")]
Person = Annotated[
    str | None, typer.Option(metavar="COLUMN", help="The column that identifies the person of each row.")
]
EachRow = Annotated[bool, typer.Option("--each-row", help="Each row is a different person.")]
TableName = Annotated[str | None, typer.Option(metavar="NAME", help="The table, in a .duckdb file or a database.")]
MARKS = ("delimiter", "quote", "decimal", "encoding", "date_format", "timestamp_format", "null_values")
Dialect = Annotated[
    list[str] | None,
    typer.Option(metavar="KEY=VALUE", help=f"How a .csv file is written, such as 'delimiter=;': {', '.join(MARKS)}."),
]
Out = Annotated[str, typer.Option(metavar="PLAN", help="Where to write the plan.")]
Interactive = Annotated[
    bool, typer.Option("--interactive", help="Ask for the privacy unit, a first count and a first average.")
]
Force = Annotated[bool, typer.Option("--force", help="Overwrite an existing plan.")]
MaxRows = Annotated[
    int | None,
    typer.Option(
        "--max-rows", min=1, help="Use at most this many rows per person. 'tightrope suggest PLAN' suggests a number."
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class InitSettings:
    """The command line."""

    data: Data
    privacy_unit: Person = None
    each_row: EachRow = False
    max_rows: MaxRows = None
    table: TableName = None
    dialect: Dialect = None
    out: Out = "plan.toml"
    force: Force = False
    interactive: Interactive = False
    as_json: AsJson = False

    def check_options(self) -> None:
        """Raise ``InputError`` for options that contradict each other, and if the plan exists already."""
        given = [self.privacy_unit is not None, self.each_row]
        if all(given) or not any([*given, self.interactive]):
            raise InputError.from_text(
                "--privacy-unit",
                "give either --privacy-unit COLUMN (the column that identifies the person of each row) or --each-row "
                f"(each row is a different person){', not both' if all(given) else ''}",
            )
        target = Path(self.out)
        if target.exists() and not self.force:
            raise InputError.from_text(
                "--out", f"{target} already exists; choose --out PLAN, or --force to overwrite it"
            )
        if self.each_row and self.max_rows not in (None, 1):
            raise InputError.from_text("--max-rows", "leave it out: with --each-row every person has one row")


@interrupt_without_charge()
def init(asked: InitSettings) -> None:
    """Write a commented plan for your own table.

    Reads only the names and types of its columns.
    """
    from tightrope.release.plan_sections import SUGGESTION_FRACTION, StarterOptions, starter_plan_text
    from tightrope.tables import open_source

    asked.check_options()
    target = Path(asked.out)
    marks = _csv_options(asked.dialect)
    with show_progress("Reading the names and types of the columns ..."):
        opened = open_source(asked.data, table=asked.table, dialect=marks or None)
    schema = opened.schema
    person, chosen = asked.privacy_unit, StarterOptions(asked.max_rows)
    if asked.interactive:
        person, chosen = collect_settings(
            schema, prompt_answer, person, each_row=asked.each_row, max_rows=asked.max_rows
        )
    # The path of the data as the plan has it: relative to the plan.
    place = asked.data if "://" in asked.data else Path(os.path.relpath(asked.data, target.parent)).as_posix()
    text = starter_plan_text(schema, place, person, table=asked.table, dialect=marks, chosen=chosen)
    writable_folder(target.parent)
    write_file(target, text)
    if asked.as_json:
        columns = [{"name": column.name, "kind": column.kind} for column in schema.columns]
        rows = {"max_rows": chosen.rows or 1, "max_rows_chosen": person is None or chosen.rows is not None}
        print_json({"plan": str(target), "source": asked.data, "person": person, **rows, "columns": columns})
        return
    if opened.marker_count:
        echo_lines(f"Marker files in the folder, which contain no rows and are not read: {opened.marker_count}")
    echo_lines(f"Wrote {target}, a complete plan. Add your questions, then:")
    if person is not None and chosen.rows is None:
        echo_lines(
            f"  tightrope suggest {target}   suggests max_rows, the most rows of one person that are used (now 1); "
            f"charges {SUGGESTION_FRACTION} of the budget"
        )
    echo_lines(f"  tightrope plan {target}      how accurate each answer will be; spends nothing")
    echo_lines(f"  tightrope release {target}   charges the budget and writes the report")


def _csv_options(given: Sequence[str] | None) -> dict[str, str]:
    """CSV options by key.

    >>> _csv_options(["delimiter=;", "decimal=,"])
    {'delimiter': ';', 'decimal': ','}
    """
    marks = {}
    for entry in given or ():
        key, equals, mark = entry.partition("=")
        if key not in MARKS or not equals:
            remedy = suggest_nearest(key, MARKS) or "say --dialect 'delimiter=;'"
            raise InputError("dialect", entry, f"KEY=MARK with one of {quoted_names(MARKS)}", remedy)
        marks[key] = mark
    return marks


# The prompts of ``tightrope init --interactive``: from the schema only; each may be skipped.

Ask = Callable[[str, Sequence[str], str], str]
"""Shows words, what may be chosen (anything, where that is empty) and the default; gives what was said."""
Entry = Mapping[str, str | tuple[float, float]]
NONE = ""
COLUMNS_SHOWN = 20
"""The number of columns shown to choose from; others can be typed."""
TRIES = 5


def collect_settings(
    schema: Schema, ask: Ask, person: str | None, *, each_row: bool, max_rows: int | None = None
) -> tuple[str | None, StarterOptions]:
    """The column of the person and what else was chosen; nothing is read but the schema."""
    from tightrope.release.plan_sections import StarterOptions, is_unit_noun

    if person is None and not each_row:
        column = _prompt_column(
            schema, ask, "Which column identifies the person of each row? (empty: each row is a person)", ()
        )
        person = column or None
    rows, means = max_rows, A_PERSON
    if person is not None:
        if rows is None:
            rows = _prompt_max_rows(ask)
        words = 'What is a person in this table? ("a" or "an" and a noun, such as: a patient)'
        means = _prompt_until_valid(ask, words, (), A_PERSON, lambda said: said if is_unit_noun(said) else None)
    kinds = ("text", "boolean", "date")
    by = _prompt_column(schema, ask, "Count rows by which column? (empty: no such count)", kinds, person)
    questions: list[Entry] = [{"kind": "count", "by": by}] if by else []
    numeric, words = ("number", "integer"), "The average of which column? (empty: no average)"
    column = _prompt_column(schema, ask, words, numeric, person)
    if column:
        low = _prompt_number(ask, f"The lowest plausible value of {column}, from public knowledge, not from the data?")
        high = _prompt_number(ask, f"The highest plausible value of {column}, from public knowledge?")
        if not low < high:
            raise InputError.from_text(
                "bounds", f"the lowest value, {low:g}, must be smaller than the highest, {high:g}"
            )
        questions.append({"kind": "mean", "column": column, "bounds": (low, high)})
    rows = 1 if person is None else rows
    return person, StarterOptions(rows, None if means == A_PERSON else means, tuple(questions))


def prompt_answer(words: str, choices: Sequence[str], default: str) -> str:
    """One prompt on standard error; the answer comes from standard input. Raises ``InputError`` at its end."""
    shown = f"{words} [{', '.join(map(escape_control_chars, choices))}]" if choices else words
    console = Console(stderr=True, markup=False, highlight=False)
    try:
        return str(Prompt.ask(Text(shown), console=console, default=default, show_default=bool(default))).strip()
    except EOFError:
        raise InputError.from_text("--interactive", "standard input ended before all prompts were answered") from None


def _prompt_max_rows(ask: Ask) -> int | None:
    """Return the most rows of one person that are used; None if that is to be decided later."""
    from tightrope.release.plan_sections import SUGGESTION_FRACTION
    from tightrope.release.settings import MAX_BOUND

    words = (
        "How many rows of one person may be used, at most? Further rows are left out of every answer. (empty: 1 for "
        f"now; tightrope suggest PLAN suggests a number from the table, for a fraction of {SUGGESTION_FRACTION} of the "
        "budget)"
    )

    def checked_count(said: str) -> str | None:
        return said if said == NONE or (said.isdecimal() and 0 < int(said) <= MAX_BOUND) else None

    count = _prompt_until_valid(ask, words, (), NONE, checked_count)
    return int(count) if count else None


def _prompt_column(schema: Schema, ask: Ask, words: str, kinds: Sequence[str], but: str | None = None) -> str:
    """A column of one of these kinds (none: of any that is plain), or nothing."""
    usual = [column for column in schema.columns if (column.kind in kinds if kinds else column.kind != "other")]
    names = [column.name for column in usual if column.name != but]
    if not names:
        return NONE
    return _prompt_until_valid(
        ask, words, names[:COLUMNS_SHOWN], NONE, lambda said: said if said in (NONE, *names) else None
    )


def _prompt_number(ask: Ask, words: str) -> float:
    return float(_prompt_until_valid(ask, words, (), NONE, lambda said: said if is_finite_number(said) else None))


def _prompt_until_valid(
    ask: Ask, words: str, choices: Sequence[str], default: str, taken: Callable[[str], str | None]
) -> str:
    """Prompt again until the answer is valid."""
    for _ in range(TRIES):
        found = taken(ask(words, choices, default))
        if found is not None:
            return found
    raise InputError.from_text("--interactive", f"no valid answer after {TRIES} tries: {words}")


app = command_app(command_from_dataclass(InitSettings, init), example=INIT_EXAMPLE)
