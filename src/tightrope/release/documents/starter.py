"""A first plan for somebody's own table, written from its schema: it runs, and says what every setting means."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from types import MappingProxyType

from tightrope.certificates.printable import toml_value
from tightrope.engines.schema import Column, Schema
from tightrope.errors import SchemaError

GROUPS = ("text", "boolean", "integer", "date")
"""Kinds of columns to group by, the likeliest first."""
NUMBER_COLUMNS = ("number", "integer")
MOST_COLUMNS, WIDE = 100, 110

MEANS = '# means = "an aircraft"   # where a person is no human'


@dataclass(frozen=True, slots=True)
class Chosen:
    """What a user was asked: how many rows of a person count, what a person is, and the entries of questions."""

    rows: int = 1
    means: str | None = None
    questions: tuple[Mapping[str, str | tuple[float, float]], ...] = ()


HEAD = """\
# A plan for Tightrope. Lines that start with # are comments.
#   tightrope plan FILE      how accurate every answer will be; reads no data, spends nothing
#   tightrope release FILE   draws the noise, writes result.json, certificate.json, results.csv/.parquet, report.html
# All settings: docs/plan-file.md

title = {title}
# expected_rows = 500   # plan for groups of this size instead of 30, 100, 1000 and 10000

[source]
{place}
"""
FILE = "path = {path}   # relative to this file; a file or folder that Spark reads: spark = ..."
DATABASE = "postgres = {path}   # the role's password is in PGPASSWORD or ~/.pgpass, never here"

TABLE_LINE = "table = {table}\n"

DIALECT = """
[source.dialect]
# How the file is written: declared, never guessed. Also quote, encoding, header, date_format, timestamp_format.
"""

TYPES = """
# A CSV file has no types: every column is text until you declare it "integer", "number", "boolean", "date" or
# "timestamp". A field that does not fit counts as missing. Columns that are not needed may be left out.
# [source.types]
{columns}
"""

PERSON = """
[person]
# The promise is made to a person: all rows with the same {column} are hidden together.
column = {column}
{means}
# At most this many rows of one person count, in each question. More rows: more of the data is used, and more noise.
rows = {rows}
# rows_per_group = 1   # at most this many of them in one group
# groups = 1           # in at most this many groups; fewer mean less noise
"""

EACH_ROW = """
[person]
# The promise is made to a person, and here each row is one: nobody may have two rows.
# If somebody can, use column = "..." for the column that says whose row it is, and rows = ...
each_row = true
"""

BUDGET = """
[budget]
# epsilon: how much the answers may tell about one person. 0.1 is very private, 1 is usual, above 5 promises little.
# tightrope plan FILE --table shows what each value buys.
# Or say how often an attacker may be right about whether somebody is in the data: attack_success = 0.6
epsilon = 1
# delta: how improbable a failure of that promise must be. Well below one over the number of people:
# 1e-8 suits up to a million people, 1e-10 a hundred million.
delta = 1e-8
# costs: so much of it, at most, tells how many rows and values the bounds left out. 0 counts nothing.
costs = 0.02

# The questions share the budget. weight = 4 gives one of them half the noise it would have with weight = 1.
[[question]]
kind = "count"
name = "total"
"""

GROUPED = """
# How many rows in each group. Left to itself, a group is shown when it is large enough; small ones are withheld.
# Groups that everybody knows are better listed (in quotes where they are text): keys = [...]
# [[question]]
# kind = "count"
# by = {group}
"""

RANGED = """
# A mean or a sum needs a range: values outside are moved to its ends, and a wider range means more noise.
# Replace the question marks by what is publicly known; a range read off the data would give somebody away.
# [[question]]
# kind = "mean"
# column = {column}
# between = [?, ?]
{by}
"""


def starter(
    schema: Schema,
    path: str,
    person: str | None,
    *,
    table: str | None = None,
    dialect: Mapping[str, str] = MappingProxyType({}),
    chosen: Chosen | None = None,
) -> str:
    """The text of a plan for the table with this schema at ``path``; no value of the table is read.

    It loads and runs as it is: one total. ``person`` is the column that says whose row it is, None where each row is
    a person; ``table`` is needed for a DuckDB file, ``dialect`` for a CSV file written in another way. Groups and
    means are comments to fill in: no range is made up. ``chosen`` is what somebody was asked instead.
    Raises ``SchemaError`` where the person column is missing or cannot name people.

    >>> print(starter(Schema((Column("age", "integer"),)), "a.parquet", None).splitlines()[5])
    title = "a"
    """
    in_database = path.startswith(("postgresql://", "postgres://"))
    title, column = (
        (table or "") if in_database else PurePath(path).stem,
        None if person is None else _person(schema, person),
    )
    others = [other for other in schema.columns if other.name != person]
    parts = [
        HEAD.format(title=quoted(title), place=(DATABASE if in_database else FILE).format(path=quoted(path))),
        "" if table is None else TABLE_LINE.format(table=quoted(table)),
    ]
    typed = not path.lower().endswith(".csv")
    written = "".join(f"{key} = {quoted(mark)}\n" for key, mark in dialect.items())
    parts += [DIALECT + written] if written else []
    parts += [_columns(others) if typed else _types(others)]
    wishes = chosen or Chosen()
    parts += [EACH_ROW if column is None else _who(column, wishes), BUDGET]
    return "".join([*parts, *(map(_entry, wishes.questions) if wishes.questions else _examples(others, typed))])


def _who(column: str, wishes: Chosen) -> str:
    means = MEANS if wishes.means is None else f"means = {quoted(wishes.means)}"
    return PERSON.format(column=quoted(column), means=means, rows=wishes.rows)


def _entry(question: Mapping[str, str | tuple[float, float]]) -> str:
    """One question as a plan has it."""
    lines = [f"{key} = {quoted(said) if isinstance(said, str) else list(said)}" for key, said in question.items()]
    return "\n".join(["\n[[question]]", *lines, ""])


def quoted(text: str) -> str:
    r"""A TOML string, on one line whatever the text holds.

    >>> print(quoted('say "a"'))
    "say \"a\""
    """
    return toml_value(text)


def _person(schema: Schema, name: str) -> str:
    if schema.column(name).kind == "other":
        raise SchemaError("person", name, "a column of plain values", "lists and structs cannot name people")
    return name


def _types(columns: list[Column]) -> str:
    """A line to declare the type of each column."""
    lines = [f'# {quoted(column.name)} = "text"' for column in columns[:MOST_COLUMNS]]
    return TYPES.format(columns="\n".join(lines) + _more(columns))


def _columns(columns: list[Column]) -> str:
    """What there is to ask about, by kind, as a comment."""
    kinds = dict.fromkeys(column.kind for column in columns)
    named = {kind: [quoted(column.name) for column in columns if column.kind == kind] for kind in kinds}
    lines = [f"{kind}: {', '.join(names[:MOST_COLUMNS])}{_more(names)}" for kind, names in named.items()]
    wrapped = [part for line in lines for part in textwrap.wrap(line, WIDE, break_long_words=False)]
    return "".join(["\n# The other columns, by kind\n" if lines else "", *(f"#   {part}\n" for part in wrapped)])


def _more(names: Sequence[object]) -> str:
    return f" ... and {len(names) - MOST_COLUMNS} more" if len(names) > MOST_COLUMNS else ""


def _examples(columns: list[Column], typed: bool) -> list[str]:
    """A grouped count and a mean, for the columns that look most like it; without types nobody knows the numbers."""
    group = _first(columns, GROUPS)
    value = _first([column for column in columns if column != group], NUMBER_COLUMNS) or _first(columns, NUMBER_COLUMNS)
    value = value if typed else Column("...", "number")
    examples = [] if group is None else [GROUPED.format(group=quoted(group.name))]
    if value is None:
        return examples
    by = "" if group is None or group == value else f"# by = {quoted(group.name)}"
    return [*examples, RANGED.format(column=quoted(value.name), by=by).rstrip() + "\n"]


def _first(columns: list[Column], kinds: tuple[str, ...]) -> Column | None:
    """The first column of the likeliest kind."""
    ordered = [column for kind in kinds for column in columns if column.kind == kind]
    return ordered[0] if ordered else None
