"""The sections of a plan file: table, public tables, privacy unit, budget and ledger."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import PurePath
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import Meta

from tightrope.documents.budget import Budget
from tightrope.documents.document import Counted, Part
from tightrope.documents.escaping import A_PERSON, toml_value
from tightrope.documents.plan_ledger import LEDGER_FILE, Text
from tightrope.documents.privacy_unit import PrivacyUnit
from tightrope.documents.reader import APART_FROM_ZERO, missing_field_tip, redact_secret, underflows_to_zero
from tightrope.documents.wording import DELTA_ADVICE, DELTA_NAME
from tightrope.errors import InputError, quoted_names
from tightrope.queries.comparisons import comparison
from tightrope.release.bias_check import bias_check_fraction
from tightrope.release.settings import MAX_ROWS_ADVICE, NOUN_PATTERN, resolve_privacy_unit
from tightrope.tables import Dialect
from tightrope.tables.backends import postgres
from tightrope.tables.schema import Column, Schema
from tightrope.tables.sources.csv import is_csv_path

if TYPE_CHECKING:
    from tightrope.queries.marginals.question import marginals

UNIT_ADVICE = (
    'set column = "..." (the column that identifies the person of each row), or each_row = true (every row is a '
    "different person)"
)
NOUN_DESCRIPTION = 'a noun with "a" or "an" before it, of at most 60 characters'
NOUN_EXAMPLE = 'for example noun = "a patient"'

LOCATION_KEYS = "path", "spark", "postgres"
DATABASE_PREFIXES = "postgresql://", "postgres://"
DATABASE_ADVICE = 'say postgres = "postgresql://role@host/database"'
REMOTE_FILE_ADVICE = 'a file of another machine is copied first, or read by Spark: say spark = "..."'
ExactNumber = Annotated[Decimal, Meta(extra_json_schema={"type": ["number", "string"]})]
"""An exact decimal: 0.1 is one tenth."""
Noun = Annotated[
    str, Meta(extra_json_schema={"type": "string", "pattern": NOUN_PATTERN.pattern}), missing_field_tip(NOUN_EXAMPLE)
]
"""A noun; the pattern is for the JSON schema only: error messages describe it in words."""


def is_unit_noun(means: str) -> bool:
    """Return whether the text is a noun with its article, in printable characters.

    >>> is_unit_noun("a patient"), is_unit_noun("an aircraft"), is_unit_noun("patient"), is_unit_noun("1")
    (True, True, False, False)
    """
    return NOUN_PATTERN.fullmatch(means) is not None and means.isprintable()


class SourceSection(Part, frozen=True, kw_only=True):
    """The table and its backend: files (DuckDB), Parquet on a cluster (Spark), or a database (PostgreSQL).

    Paths are relative to the plan. ``table`` is a name in a DuckDB file or a database; ``types`` and ``dialect`` are
    for CSV files, ``types`` also for the columns of partitions.
    """

    path: Annotated[str, Meta(min_length=1), missing_field_tip('say path = "people.parquet"')] | None = None
    spark: Annotated[str, Meta(min_length=1), missing_field_tip('say spark = "people.parquet"')] | None = None
    postgres: Annotated[str, Meta(min_length=1), missing_field_tip(DATABASE_ADVICE)] | None = None
    table: Text | None = None
    types: dict[str, Annotated[str, missing_field_tip('say "number", in quotes')]] | None = None
    dialect: Dialect | None = None

    def __post_init__(self) -> None:
        self._refuse_misplaced()
        given_keys = [name for name in LOCATION_KEYS if getattr(self, name) is not None]
        if len(given_keys) != 1:
            remedy = 'path = "people.parquet"'
            problem = "missing" if not given_keys else f"{quoted_names(tuple(given_keys))} are set"
            requirement = f"set exactly one of {quoted_names(LOCATION_KEYS)}"
            raise InputError.from_text("path", f"{problem}; {requirement}, for example {remedy}")
        if self.postgres is not None and not self.postgres.startswith(DATABASE_PREFIXES):
            # the value may contain a password, so it is not shown
            raise InputError("postgres", "...", "a URL", DATABASE_ADVICE)
        postgres.check_address(self.postgres or self.spark or "", given_keys[0])
        for name in ("table", "types", "dialect") if self.spark is not None else ():
            if getattr(self, name) is not None:
                raise InputError.from_text(name, "not allowed with spark, because Parquet files declare their types")

    def _refuse_misplaced(self) -> None:
        """Refuse a URL under another key first: later errors could repeat it, and it may contain a password."""
        for name, expected in (("path", "a file or folder"), ("spark", "Parquet")):
            address = getattr(self, name) or ""
            if address.startswith(DATABASE_PREFIXES):
                raise InputError(name, redact_secret(address), expected, f"{DATABASE_ADVICE} instead of {name}")
        if self.path is not None and "://" in self.path:
            raise InputError("path", redact_secret(self.path), "a file or folder", REMOTE_FILE_ADVICE)

    @property
    def location_key(self) -> str:
        """The key that holds the table's location."""
        return next(name for name in LOCATION_KEYS if getattr(self, name) is not None)


class PrivacyUnitSection(Part, frozen=True, kw_only=True):
    """The privacy unit, and its contribution bounds."""

    column: Text | None = None
    each_row: Annotated[bool, missing_field_tip("say each_row = true, without quotes")] = False
    max_rows: Counted | None = None
    max_rows_per_group: Counted | None = None
    max_groups: Counted | None = None
    noun: Noun = A_PERSON

    def __post_init__(self) -> None:
        if not is_unit_noun(self.noun):
            raise InputError("noun", self.noun, NOUN_DESCRIPTION, NOUN_EXAMPLE)
        if (self.column is None) != self.each_row:
            raise InputError.from_text("column", f"{'both are set' if self.each_row else 'missing'}; {UNIT_ADVICE}")
        if self.column is not None and self.max_rows is None:
            raise InputError.from_text("max_rows", MAX_ROWS_ADVICE.replace("=", " = "))
        for name in ("max_rows", "max_rows_per_group", "max_groups"):
            if self.each_row and getattr(self, name) not in (None, 1):
                raise InputError.from_text(name, "remove it: with each_row = true every person has one row")


class BudgetSection(Part, frozen=True, kw_only=True):
    """The privacy budget, the fraction of it that a plan may spend, and the part of that for the bias check."""

    epsilon: ExactNumber | None = None
    delta: ExactNumber | None = None
    attack_success: ExactNumber | None = None
    points: (
        Annotated[tuple[tuple[ExactNumber, ExactNumber], ...], missing_field_tip("say points = [[1, 1e-6]]")] | None
    ) = None
    budget_fraction: ExactNumber = Decimal(1)
    bias_check: ExactNumber = Decimal(0)

    def __post_init__(self) -> None:
        named = [
            (name, getattr(self, name))
            for name in ("epsilon", "delta", "attack_success", "budget_fraction", "bias_check")
        ]
        for name, value in (*named, *(("points", number) for point in self.points or () for number in point)):
            if value is not None and underflows_to_zero(
                value
            ):  # also numbers in quotes, which TOML parsers do not check
                raise InputError(name, str(value), APART_FROM_ZERO, "it would be rounded to 0")
        self.to_budget().scale_by(self.budget_fraction)
        bias_check_fraction(self.bias_check)

    def to_budget(self) -> Budget:
        """Return the whole budget; raises ``InputError`` if it is missing or a number is out of range."""
        if (self.epsilon, self.attack_success, self.points) == (None, None, None):
            names = "epsilon, attack_success or points"
            given = "missing; set" if self.delta is None else "not enough by itself; add"
            raise InputError.from_text("delta", f"{given} {names}, for example epsilon = 1 and delta = 1e-8")
        return Budget(
            epsilon=self.epsilon,
            delta=self.delta,
            attack_success=self.attack_success,
            points=self.points,
        )


class FurtherLimit(Part, frozen=True, kw_only=True):
    """A limit in addition to the whole budget: for each year or month, or for the answers for one audience.

    The limit named "total" is the whole budget and sets the composition rule for its releases.
    """

    name: Text
    epsilon: ExactNumber | None = None
    delta: ExactNumber | None = None
    attack_success: ExactNumber | None = None
    points: tuple[tuple[ExactNumber, ExactNumber], ...] | None = None
    every: Literal["year", "month"] | None = None
    audience: Text | None = None
    rule: Literal["basic", "moments"] = "basic"
    releases: Counted | None = None


class LedgerSection(Part, frozen=True, kw_only=True):
    """The ledger of spent budget: a file with a path relative to the plan, or ``postgresql://...``.

    ``dataset`` is the table's name in the ledger. ``times`` declares a number of equal releases together; ``series``
    names them. With ``date`` and ``dates`` they are of one table: each uses only the rows of one date.
    """

    path: Text = LEDGER_FILE
    dataset: Text | None = None
    note: str = ""
    audience: Text | None = None
    times: Counted | None = None
    series: Text = "series"
    date: Text | None = None
    dates: tuple[Any, ...] = ()
    limit: tuple[FurtherLimit, ...] = ()

    def __post_init__(self) -> None:
        if "://" in self.path:  # check for a password now: planning does not open the ledger
            from tightrope.ledger.places import checked_url

            checked_url(self.path, "path")
        if (self.date is None) != (not self.dates):
            missing = "date" if self.date is None else "dates"
            text = 'missing; say date = "month(admitted)" and dates = [1, 2, 3], for example'
            raise InputError.from_text(missing, text)

    @property
    def series_length(self) -> int | None:
        """The number of releases of the series that the plan declares; None without a series."""
        return len(self.dates) if self.times is None and self.dates else self.times


class ComparisonSection(Part, frozen=True, kw_only=True):
    """A difference or a ratio of two answers, or of two groups of an answer (``tr.comparison``)."""

    kind: Literal["difference", "ratio"]
    first: Annotated[Text, missing_field_tip('name an answer: first = "mean_price"')]
    second: Text | None = None
    between: dict[str, tuple[Any, ...]] | None = None
    name: Text | None = None
    title: Text | None = None
    description: Text | None = None
    unit: Text | None = None
    round_to: float | None = None

    def to_comparison(self) -> comparison:
        """Return the comparison; raises ``PlanError`` if it is invalid."""
        return comparison(
            self.kind, self.first, self.second, self.between or {}, name=self.name, title=self.title,
            description=self.description, unit=self.unit, round_to=self.round_to,
        )  # fmt: skip


class MarginalsSection(Part, frozen=True, kw_only=True):
    """All tables of counts of some columns (``tr.marginals``)."""

    columns: Annotated[Text | tuple[Text | dict[str, Text], ...], missing_field_tip('say columns = ["sex"]')] | None = (
        None
    )
    orders: tuple[int, ...] = (0, 1, 2)
    of: tuple[tuple[Text, ...], ...] | None = None
    keys: Annotated[dict[str, tuple[Any, ...]], missing_field_tip('say keys.sex = ["F", "M"]')] | None = None
    bounds: Annotated[dict[str, tuple[int, ...]], missing_field_tip("say bounds.age = [0, 99]")] | None = None
    weight: Literal["cells", "tables"] = "cells"
    weights: tuple[float, ...] | None = None
    where: Text | None = None
    margin_of_error: float | Text | None = None
    name: Text = "marginals"
    title: Text | None = None
    description: Text | None = None
    unit: Text | None = None

    def to_question(self) -> marginals:
        """Return the question; raises ``PlanError`` if it is invalid."""
        from tightrope.queries.marginals.question import marginals

        return marginals(
            self.columns, orders=self.orders, of=self.of, keys=self.keys, bounds=self.bounds, weight=self.weight,
            weights=self.weights, where=self.where, margin_of_error=self.margin_of_error, name=self.name,
            title=self.title, description=self.description, unit=self.unit,
        )  # fmt: skip


class PublicTableSection(Part, frozen=True, kw_only=True):
    """A public table that is joined to the rows by ``on`` (``tr.public_table``).

    ``columns`` are the columns that are added to the rows.
    """

    path: Annotated[str, Meta(min_length=1), missing_field_tip('say path = "airports.csv"')]
    on: Annotated[
        Text | tuple[Text, ...] | dict[str, Text], missing_field_tip('say on = "city", or on = { dest = "faa" }')
    ]
    columns: Annotated[tuple[Text, ...] | dict[str, Text], missing_field_tip('say columns = ["region"]')] | None = None
    table: Text | None = None
    types: dict[str, Annotated[str, missing_field_tip('say "number", in quotes')]] | None = None
    dialect: Dialect | None = None

    def __post_init__(self) -> None:
        if "://" in self.path and not self.path.startswith(DATABASE_PREFIXES):
            text = f"{redact_secret(self.path)} is not a file or a postgresql:// URL; copy the file here first"
            raise InputError.from_text("path", text)
        postgres.check_address(self.path, "path")


# A first plan for a user's table, written from its schema: it runs, and comments explain every setting.

GROUPING_KINDS = ("text", "boolean", "integer", "date")
"""Kinds of columns to group by, most likely first."""
NUMBER_KINDS = ("number", "integer")
MAX_LISTED_COLUMNS, LINE_WIDTH = 100, 110

STARTER_FRACTION, SUGGESTION_FRACTION = Decimal("0.45"), Decimal("0.05")
"""The parts of the budget that one release of a starter plan takes, and a suggested bound: two of each fit."""
NOUN_COMMENT = '# noun = "an aircraft"   # where a person is not a human'


@dataclass(frozen=True, slots=True)
class StarterOptions:
    """A user's choices for a starter plan: the maximum number of rows of a person, the unit's noun, the questions."""

    rows: int | None = None
    """None: not chosen yet; the plan then uses one row of each person, and its comments say how to choose."""
    means: str | None = None
    questions: tuple[Mapping[str, str | tuple[float, float]], ...] = ()

    def question_entries(self, columns: list[Column], typed: bool) -> list[str]:
        """Return the chosen questions or, without any, commented examples of a grouped count and a mean.

        The examples use the most suitable columns. Without types the numeric columns are unknown, so the mean has a
        placeholder.
        """
        if self.questions:
            entries = []
            for question in self.questions:
                lines = [f"{key} = {toml_string(v) if isinstance(v, str) else list(v)}" for key, v in question.items()]
                entries.append("\n".join(["\n[[question]]", *lines, ""]))
            return entries
        group = _first_of_kinds(columns, GROUPING_KINDS)
        value = _first_of_kinds([column for column in columns if column != group], NUMBER_KINDS) or _first_of_kinds(
            columns, NUMBER_KINDS
        )
        value = value if typed else Column("...", "number")
        examples = [] if group is None else [COUNT_EXAMPLE.format(group=toml_string(group.name))]
        if value is None:
            return examples
        by = "" if group is None or group == value else f"# by = {toml_string(group.name)}"
        return [*examples, MEAN_EXAMPLE.format(column=toml_string(value.name), by=by).rstrip() + "\n"]


HEAD_TEXT = """\
# A plan for Tightrope. Lines that start with # are comments.
#   tightrope plan FILE      how accurate every answer will be; reads no data, spends nothing
#   tightrope release FILE   charges the budget, writes result.json, certificate.json, results.csv/.parquet, report.html
# All settings: docs/plan-file.md

title = {title}
# expected_rows = 500   # plan for groups of this size instead of 30, 100, 1000 and 10000

[source]
{place}
"""
FILE_LINE = "path = {path}   # relative to this file; a file or folder that Spark reads: spark = ..."
DATABASE_LINE = "postgres = {path}   # the role's password is in PGPASSWORD or ~/.pgpass, never here"

TABLE_LINE = "table = {table}\n"

DIALECT_TEXT = """
[source.dialect]
# How the file is written: declared, never guessed. Also quote, encoding, header, date_format, null_values.
"""

TYPES_TEXT = """
# A CSV file has no types: every column is text until you declare it "integer", "number", "boolean", "date" or
# "timestamp". A field that does not fit counts as missing. Columns that are not needed may be left out.
# [source.types]
{columns}
"""

PERSON_TEXT = """
[privacy_unit]
# Who is protected: one person, with all rows that have the same {column}.
column = {column}
{means}
# At most this many rows of one person are used in each question; further rows are left out of every answer. A larger
# limit uses more of the data, with more noise.
{undecided}max_rows = {rows}
# max_rows_per_group = 1   # at most this many of them in one group
# max_groups = 1           # in at most this many groups; fewer groups need less noise
"""

UNDECIDED_TEXT = """\
# NOT CHOSEN YET: 1 uses one row of each person. Choose the limit from public knowledge, or set [budget] below and run
#   tightrope suggest FILE   which suggests one from the table, for a fraction of {suggestion} of the budget
"""

EACH_ROW_TEXT = """
[privacy_unit]
# Who is protected: one person. Each row must be a different person.
# If a person can have several rows, set column = "..." (the column that identifies the person) and max_rows = ...
each_row = true
"""

DELTA_COMMENT = "\n".join(
    f"# {line}" for line in textwrap.wrap(f"delta: the {DELTA_NAME}, on top of that limit. {DELTA_ADVICE}", 118)
)
BUDGET_TEXT = """
[budget]
# epsilon: any result is at most e^epsilon times as likely with a person's data as without. 0.1 is strong, 1 is common,
# above 5 is weak. tightrope plan FILE --table shows the accuracy for several values.
# Or limit how often an attacker is right about whether a person is in the data: attack_success = 0.6
epsilon = 1
{delta}
delta = 1e-8
# budget_fraction: the part of this budget that one release of this plan takes. The whole budget is never renewed: with
# 0.45 it is enough for two releases, such as a correction, and two suggestions (tightrope suggest takes {suggestion}).
# With 1, the first release takes everything; its noise is less than half as large.
budget_fraction = {fraction}
# bias_check: at most this fraction of the budget estimates the bias from limiting rows and clamping values; 0: none.
bias_check = 0.02

# The questions share the budget. weight = 4 gives one of them half the relative error of those with weight = 1.
[[question]]
kind = "count"
name = "total"
"""

COUNT_EXAMPLE = """
# The number of rows in each group. Without keys, groups are discovered and small ones are suppressed.
# If the groups are public knowledge, list them (text in quotes): keys = [...]
# [[question]]
# kind = "count"
# by = {group}
"""

MEAN_EXAMPLE = """
# A mean or a sum needs a range: values outside are clamped to its ends, and a wider range needs more noise.
# Replace the question marks by public knowledge; a range taken from the data would reveal values of it.
# [[question]]
# kind = "mean"
# column = {column}
# bounds = [?, ?]
{by}
"""


def starter_plan_text(
    schema: Schema,
    path: str,
    person: str | None,
    *,
    table: str | None = None,
    dialect: Mapping[str, str] = MappingProxyType({}),
    chosen: StarterOptions | None = None,
) -> str:
    """Return the text of a plan for the table with this schema at ``path``; reads no values of the table.

    It runs without changes, with one total. ``person`` is the column, or an expression, that identifies the person,
    None if each row is a person; ``table`` is needed for a DuckDB file, ``dialect`` for a CSV file in another dialect.
    A grouped count and a mean are commented examples, because ranges cannot be guessed. ``chosen`` replaces the
    defaults with a user's choices.
    Raises ``SchemaError`` if the person column is missing or cannot identify people.

    >>> print(starter_plan_text(Schema((Column("age", "integer"),)), "a.parquet", None).splitlines()[5])
    title = "a"
    """
    in_database = path.startswith(("postgresql://", "postgres://"))
    title = (table or "") if in_database else PurePath(path).stem
    if person is not None and person not in schema.column_names:
        resolve_privacy_unit(PrivacyUnit(person, 1, 1, 1), schema)
    elif person is not None:
        schema.find_column(person).refuse_other_kind("privacy_unit", "identify people")
    other_columns = [column for column in schema.columns if column.name != person]
    parts = [
        HEAD_TEXT.format(
            title=toml_string(title), place=(DATABASE_LINE if in_database else FILE_LINE).format(path=toml_string(path))
        ),
        "" if table is None else TABLE_LINE.format(table=toml_string(table)),
    ]
    typed = not is_csv_path(path)
    dialect_lines = "".join(f"{key} = {toml_string(value)}\n" for key, value in dialect.items())
    parts += [DIALECT_TEXT + dialect_lines] if dialect_lines else []
    parts += [_column_lines(other_columns, typed)]
    options = chosen or StarterOptions()
    if person is None:
        parts += [EACH_ROW_TEXT]
    else:
        means = NOUN_COMMENT if options.means is None else f"noun = {toml_string(options.means)}"
        undecided = "" if options.rows else UNDECIDED_TEXT.format(suggestion=SUGGESTION_FRACTION)
        parts += [
            PERSON_TEXT.format(column=toml_string(person), means=means, rows=options.rows or 1, undecided=undecided)
        ]
    return "".join(
        [
            *parts,
            BUDGET_TEXT.format(delta=DELTA_COMMENT, fraction=STARTER_FRACTION, suggestion=SUGGESTION_FRACTION),
            *options.question_entries(other_columns, typed),
        ]
    )


def toml_string(text: str) -> str:
    r"""Return the text as a TOML string on one line.

    >>> print(toml_string('say "a"'))
    "say \"a\""
    """
    return toml_value(text)


def _column_lines(columns: list[Column], typed: bool) -> str:
    """Return a comment that lists the columns by kind; without types, commented lines that declare them."""
    if not typed:
        lines = [f'# {toml_string(column.name)} = "text"' for column in columns[:MAX_LISTED_COLUMNS]]
        return TYPES_TEXT.format(columns="\n".join(lines) + _shortened_list(columns))
    kinds = dict.fromkeys(column.kind for column in columns)
    named = {kind: [toml_string(column.name) for column in columns if column.kind == kind] for kind in kinds}
    lines = [
        f"{kind}: {', '.join(names[:MAX_LISTED_COLUMNS])}{_shortened_list(names)}" for kind, names in named.items()
    ]
    wrapped = [part for line in lines for part in textwrap.wrap(line, LINE_WIDTH, break_long_words=False)]
    return "".join(["\n# The other columns, by kind\n" if lines else "", *(f"#   {part}\n" for part in wrapped)])


def _shortened_list(names: Sequence[object]) -> str:
    return f" ... and {len(names) - MAX_LISTED_COLUMNS} more" if len(names) > MAX_LISTED_COLUMNS else ""


def _first_of_kinds(columns: list[Column], kinds: tuple[str, ...]) -> Column | None:
    """Return the first column of the first of these kinds that any column has, or None."""
    ordered = [column for kind in kinds for column in columns if column.kind == kind]
    return ordered[0] if ordered else None
