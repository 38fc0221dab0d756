"""The sections of a plan file: the table, what is looked up, who is protected, what is promised, where it is kept."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Literal

from msgspec import Meta

from tightrope.certificates.budget import Budget
from tightrope.certificates.document import Counted, Part
from tightrope.certificates.printable import A_PERSON
from tightrope.certificates.reading import APART_FROM_ZERO, hidden, tip, vanishes
from tightrope.engines import Dialect
from tightrope.engines.backends import addresses
from tightrope.errors import InputError, listed
from tightrope.release.costs.tallies import sliver
from tightrope.release.stated.people import MEANS

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
Noun = Annotated[str, Meta(extra_json_schema={"type": "string", "pattern": MEANS.pattern}), tip(A_NOUN_IS)]
"""A pattern for programs; people are told in words."""
Text = Annotated[str, Meta(min_length=1), tip("put it in quotes")]


def is_a_noun(means: str) -> bool:
    """Whether it says what a person is: a noun with its article, in letters that can be seen.

    >>> is_a_noun("a patient"), is_a_noun("an aircraft"), is_a_noun("patient"), is_a_noun("1")
    (True, True, False, False)
    """
    return MEANS.fullmatch(means) is not None and means.isprintable()


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
        addresses.checked(self.postgres or self.spark or "", given[0])
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
            from tightrope.ledger.storage.places import checked_url

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
        addresses.checked(self.path, "path")
