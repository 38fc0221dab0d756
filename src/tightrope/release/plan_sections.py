"""The sections of a plan file: the table, what is looked up, who is protected, what is promised, where it is kept."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import PurePath
from types import MappingProxyType
from typing import Annotated, Literal

from msgspec import Meta

from tightrope.documents.budget import Budget
from tightrope.documents.document import Counted, Part
from tightrope.documents.escaping import A_PERSON, toml_value
from tightrope.documents.reader import APART_FROM_ZERO, hidden, tip, vanishes
from tightrope.errors import InputError, SchemaError, listed
from tightrope.release.bias_check import sliver
from tightrope.release.settings import MEANS as MEANING
from tightrope.tables import Dialect
from tightrope.tables.backends import postgres
from tightrope.tables.schema import Column, Schema

WHO = 'say column = "...": all rows of one person are hidden together; or each_row = true where nobody has two rows'
A_NOUN = 'a noun with "a" or "an" before it, of at most 60 letters'
A_NOUN_IS = 'say means = "a patient"'
LEDGER_FILE = "tightrope.ledger"
"""The ledger's file beside the plan, where the plan names none."""
PLACES = "path", "spark", "postgres"
DATABASES = "postgresql://", "postgres://"
A_DATABASE = 'say postgres = "postgresql://role@host/database"'
ON_A_CLUSTER = 'a file of another machine is copied first, or read by Spark: say spark = "..."'
Exact = Annotated[Decimal, Meta(extra_json_schema={"type": ["number", "string"]})]
"""A number as it is typed: 0.1 is one tenth."""
Noun = Annotated[str, Meta(extra_json_schema={"type": "string", "pattern": MEANING.pattern}), tip(A_NOUN_IS)]
"""A pattern for programs; people are told in words."""
Text = Annotated[str, Meta(min_length=1), tip("put it in quotes")]


def is_a_noun(means: str) -> bool:
    """Whether it says what a person is: a noun with its article, in letters that can be seen.

    >>> is_a_noun("a patient"), is_a_noun("an aircraft"), is_a_noun("patient"), is_a_noun("1")
    (True, True, False, False)
    """
    return MEANING.fullmatch(means) is not None and means.isprintable()


class SourceSection(Part, frozen=True, kw_only=True):
    """Which table, and who reads it: files (DuckDB), Parquet on a cluster (Spark), or a database (PostgreSQL).

    Paths are relative to the plan. ``table`` is a name in a DuckDB file or a database; types and dialect are a CSV
    file's, types those of partitions, too.
    """

    path: Annotated[str, Meta(min_length=1), tip('say path = "people.parquet"')] | None = None
    spark: Annotated[str, Meta(min_length=1), tip('say spark = "people.parquet"')] | None = None
    postgres: Annotated[str, Meta(min_length=1), tip(A_DATABASE)] | None = None
    table: Text | None = None
    types: dict[str, Annotated[str, tip('say "number", in quotes')]] | None = None
    dialect: Dialect | None = None

    def __post_init__(self) -> None:
        self._refuse_misplaced()
        given = [name for name in PLACES if getattr(self, name) is not None]
        if len(given) != 1:
            remedy = 'say path = "people.parquet"'
            raise InputError(
                "path",
                self.path and hidden(self.path),
                f"given, or else one of {listed(PLACES[1:])}, and no two",
                remedy,
            )
        if self.postgres is not None and not self.postgres.startswith(DATABASES):  # not shown: it may hold a password
            raise InputError("postgres", "...", "a URL", A_DATABASE)
        postgres.checked_address(self.postgres or self.spark or "", given[0])
        for name in ("table", "types", "dialect") if self.spark is not None else ():
            if getattr(self, name) is not None:
                raise InputError(name, getattr(self, name), "left out beside spark", "Parquet files say their types")

    def _refuse_misplaced(self) -> None:
        """First of all: what opens a URL that stands under another key may repeat it, and it may hold a password."""
        for name, expected in (("path", "a file or folder"), ("spark", "Parquet")):
            address = getattr(self, name) or ""
            if address.startswith(DATABASES):
                raise InputError(name, hidden(address), expected, f"{A_DATABASE} instead of {name}")
        if self.path is not None and "://" in self.path:
            raise InputError("path", hidden(self.path), "a file or folder", ON_A_CLUSTER)

    @property
    def place(self) -> str:
        """The key that says where the table is."""
        return next(name for name in PLACES if getattr(self, name) is not None)


class PersonSection(Part, frozen=True, kw_only=True):
    """Who is protected, and how many rows of one person count."""

    column: Text | None = None
    each_row: Annotated[bool, tip("say each_row = true, without quotes")] = False
    rows: Counted | None = None
    rows_per_group: Counted | None = None
    groups: Counted | None = None
    means: Noun = A_PERSON

    def __post_init__(self) -> None:
        if not is_a_noun(self.means):
            raise InputError("means", self.means, A_NOUN, A_NOUN_IS)
        if (self.column is None) != self.each_row:
            raise InputError("column", self.column, "given, or each_row = true, and not both", WHO)
        if self.column is not None and self.rows is None:
            raise InputError("rows", None, "a whole number >= 1", "how many rows of one person may count at most?")
        for name in ("rows", "rows_per_group", "groups"):
            if self.each_row and getattr(self, name) not in (None, 1):
                remedy = "a person with one row has no bounds"
                raise InputError(name, getattr(self, name), "left out beside each_row = true", remedy)


class BudgetSection(Part, frozen=True, kw_only=True):
    """What is promised, the share of it that a plan may spend, and the part of that which counts what bounds cost."""

    epsilon: Exact | None = None
    delta: Exact | None = None
    attack_success: Exact | None = None
    points: Annotated[tuple[tuple[Exact, Exact], ...], tip("say points = [[1, 1e-6]]")] | None = None
    share: Exact = Decimal(1)
    costs: Exact = Decimal(0)

    def __post_init__(self) -> None:
        named = [(name, getattr(self, name)) for name in ("epsilon", "delta", "attack_success", "share", "costs")]
        for name, value in (*named, *(("points", number) for point in self.points or () for number in point)):
            if value is not None and vanishes(value):  # also one in quotes, which no reader of TOML looks at
                raise InputError(name, str(value), APART_FROM_ZERO, "it would be taken for 0")
        self.budget().share(self.share)
        sliver(self.costs)

    def budget(self) -> Budget:
        """The whole promise; raises ``InputError`` where nothing is promised or a number is out of range."""
        if (self.epsilon, self.attack_success, self.points) == (None, None, None):
            expected = "given, beside epsilon, attack_success or points"
            raise InputError("delta", self.delta, expected, "say epsilon = 1 and delta = 1e-8")
        return Budget(
            epsilon=self.epsilon,
            delta=self.delta,
            attack_success=self.attack_success,
            points=self.points,
        )


class FurtherLimit(Part, frozen=True, kw_only=True):
    """A limit beside the whole budget: every year or month anew, or for what one audience sees.

    One that is called "total" is the whole budget, and says by which rule releases add up.
    """

    name: Text
    epsilon: Exact | None = None
    delta: Exact | None = None
    attack_success: Exact | None = None
    points: tuple[tuple[Exact, Exact], ...] | None = None
    every: Literal["year", "month"] | None = None
    audience: Text | None = None
    rule: Literal["basic", "moments"] = "basic"
    releases: Counted | None = None


class LedgerSection(Part, frozen=True, kw_only=True):
    """Where spending is remembered: a file beside the plan, or ``postgresql://...``; the dataset's name in it.

    ``times`` declares so many equal releases together; ``series`` names them.
    """

    path: Text = LEDGER_FILE
    dataset: Text | None = None
    note: str = ""
    audience: Text | None = None
    times: Counted | None = None
    series: Text = "series"
    limit: tuple[FurtherLimit, ...] = ()

    def __post_init__(self) -> None:
        if "://" in self.path:  # a plan opens no ledger, and would hold a password until a release does
            from tightrope.ledger.places import checked_url

            checked_url(self.path, "path")


class LookupSection(Part, frozen=True, kw_only=True):
    """A public table in which rows look something up, by ``on``: ``tr.lookup``. ``columns`` are those that they get."""

    path: Annotated[str, Meta(min_length=1), tip('say path = "airports.csv"')]
    on: Annotated[Text | tuple[Text, ...] | dict[str, Text], tip('say on = "city", or on = { dest = "faa" }')]
    columns: Annotated[tuple[Text, ...] | dict[str, Text], tip('say columns = ["region"]')] | None = None
    table: Text | None = None
    types: dict[str, Annotated[str, tip('say "number", in quotes')]] | None = None
    dialect: Dialect | None = None

    def __post_init__(self) -> None:
        if "://" in self.path and not self.path.startswith(DATABASES):
            remedy = "copy the file here first"
            raise InputError("path", hidden(self.path), "a file, or postgresql://role@host/database", remedy)
        postgres.checked_address(self.path, "path")


# A first plan for somebody's own table, written from its schema: it runs, and says what every setting means.

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
