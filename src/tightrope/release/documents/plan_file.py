"""A plan in a file: TOML that is read as a frozen document and becomes a session and its questions.

``docs/plan-file.md`` describes every key. Each mistake is one ``PlanError`` that says where it is and what to try.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import Meta

from tightrope.certificates.budget import Budget, Number
from tightrope.certificates.document import Counted, Part
from tightrope.certificates.places import Names, placed
from tightrope.certificates.reading import Reader, tip
from tightrope.engines import Dialect, Table, is_there, open_on_spark, open_source
from tightrope.errors import InputError, PlanError, listed, nearest
from tightrope.release.kinds import KINDS
from tightrope.release.plan import Plan
from tightrope.release.questions.asked import ENTRIES, RENAMED
from tightrope.release.questions.node import Question
from tightrope.release.questions.tasks import A_PERSON
from tightrope.release.session import MEANS, Session, Settings

if TYPE_CHECKING:
    from tightrope.ledger import Account, Limit

PLAN_FILE = Reader(
    "the plan", "write a plan for your data with: tightrope init DATA --person COLUMN", PlanError, by_hand=True
)
WHO = 'say column = "...": all rows of one person are hidden together; or each_row = true where nobody has two rows'
ELSEWHERE = "median", "max", "min"
NOT_YET = 'this kind is not offered: say kind = "quantile", where q = 0.5 is the median and q = 0.99 nearly the largest'
KEYS: Names = {
    "source": "[source] path",
    "table": "[source] table",
    "types": "[source] types",
    "dialect": "[source.dialect]",
    "person": "[person] column",
    "rows_per_person": "[person] rows",
    "rows_per_group": "[person] rows_per_group",
    "groups_per_person": "[person] groups",
    "budget": "[budget]",
    **{name: f"[budget] {name}" for name in ("epsilon", "delta", "attack_success", "points", "share")},
    "questions": "question",
    "where": "where",
    "ledger": "[ledger] path",
    "limits": "[ledger] limit",
    **{name: f"[ledger] {name}" for name in ("dataset", "audience", "note")},
}
"""Where the parameters of ``open_source``, ``Session`` and its ``plan`` stand in a plan file."""
LEDGER = "tightrope.ledger"
"""The ledger's file beside the plan, where the plan names none."""
PLACES = "path", "spark", "postgres"
DATABASES = "postgresql://", "postgres://"
NEEDED = "source", "person", "budget"
Exact = Annotated[Decimal, Meta(extra_json_schema={"type": ["number", "string"]})]
"""A number as it is typed: 0.1 is one tenth."""
Text = Annotated[str, Meta(min_length=1), tip("put it in quotes")]


class SourceSection(Part, frozen=True, kw_only=True):
    """Which table, and who reads it: files (DuckDB), Parquet on a cluster (Spark), or a database (PostgreSQL).

    Paths are relative to the plan. ``table`` is a name in a DuckDB file or a database; types and dialect are a CSV
    file's, types those of partitions, too.
    """

    path: Annotated[str, Meta(min_length=1), tip('say path = "people.parquet"')] | None = None
    spark: Annotated[str, Meta(min_length=1), tip('say spark = "people.parquet"')] | None = None
    postgres: Annotated[str, Meta(min_length=1), tip('say postgres = "postgresql://role@host/database"')] | None = None
    table: Text | None = None
    types: dict[str, Annotated[str, tip('say "number", in quotes')]] | None = None
    dialect: Dialect | None = None

    def __post_init__(self) -> None:
        given = [name for name in PLACES if getattr(self, name) is not None]
        if len(given) != 1:
            remedy = 'say path = "people.parquet"'
            raise InputError("path", self.path, f"given, or else one of {listed(PLACES[1:])}, and no two", remedy)
        if self.postgres is not None and not self.postgres.startswith(DATABASES):  # not shown: it may hold a password
            raise InputError("postgres", "...", "a URL", 'say postgres = "postgresql://role@host/database"')
        for name in ("table", "types", "dialect") if self.spark is not None else ():
            if getattr(self, name) is not None:
                raise InputError(name, getattr(self, name), "left out beside spark", "Parquet files say their types")

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
    means: Annotated[str, Meta(pattern=MEANS.pattern), tip('say means = "an aircraft"')] = A_PERSON

    def __post_init__(self) -> None:
        if (self.column is None) != self.each_row:
            raise InputError("column", self.column, "given, or each_row = true, and not both", WHO)
        if self.column is not None and self.rows is None:
            raise InputError("rows", None, "a whole number >= 1", "how many rows of one person may count at most?")
        for name in ("rows", "rows_per_group", "groups"):
            if self.each_row and getattr(self, name) not in (None, 1):
                remedy = "a person with one row has no bounds"
                raise InputError(name, getattr(self, name), "left out beside each_row = true", remedy)


class BudgetSection(Part, frozen=True, kw_only=True):
    """What is promised, and the share of it that this plan may spend."""

    epsilon: Exact | None = None
    delta: Exact | None = None
    attack_success: Exact | None = None
    points: Annotated[tuple[tuple[Exact, Exact], ...], tip("say points = [[1, 1e-6]]")] | None = None
    share: Exact = Decimal(1)

    def __post_init__(self) -> None:
        self.budget().share(self.share)

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

    path: Text = LEDGER
    dataset: Text | None = None
    note: str = ""
    audience: Text | None = None
    times: Counted | None = None
    series: Text = "series"
    limit: tuple[FurtherLimit, ...] = ()


class PlanDocument(Part, frozen=True, kw_only=True):
    """All that a plan file says. The entries of a question are those of its kind (``release.questions``)."""

    document: Literal["plan"] = "plan"
    version: Literal[1] = 1
    title: Text | None = None
    expected_rows: Counted | None = None
    where: Annotated[Text, tip('say where = "distance > 500"')] | None = None
    source: SourceSection
    person: PersonSection
    budget: BudgetSection
    ledger: LedgerSection = LedgerSection()
    question: Annotated[
        tuple[dict[str, Any], ...], Meta(min_length=1), tip("write [[question]] with double brackets, once or more")
    ]

    def __post_init__(self) -> None:
        self.questions()

    def questions(self) -> tuple[Question, ...]:
        """What is asked; raises ``InputError`` that names the question."""
        return tuple(_question(f"question {number}", entry) for number, entry in enumerate(self.question, start=1))


@dataclass(frozen=True, slots=True)
class PlanFile:
    """A plan and where it lies: ``session()`` opens the table, ``plan()`` chooses the noise; neither spends."""

    document: PlanDocument
    folder: Path

    @property
    def title(self) -> str | None:
        """The heading of the report."""
        return self.document.title

    @property
    def source(self) -> str | Path:
        """The table: a path, from where the plan lies, or a URL."""
        source = self.document.source
        given = source.path or source.spark or source.postgres or ""
        is_url = source.postgres or (source.spark and "://" in given)
        return given if is_url else self.folder / given

    def table(self) -> Table:
        """The table, of which the schema is read."""
        said = self.document.source
        if said.spark is not None:
            return open_on_spark(str(self.source))
        return open_source(self.source, table=said.table, types=said.types, dialect=said.dialect)

    def session(self) -> Session:
        """The table with its person and budget; reads the schema only."""
        with placed("", self._keys):
            return Session(self.table(), **self._settings())

    def _settings(self) -> Settings:
        person = self.document.person
        return {
            "person": (person.column, person.means),
            "budget": self.document.budget.budget(),
            "rows_per_person": person.rows,
            "rows_per_group": person.rows_per_group,
            "groups_per_person": person.groups,
        }

    @property
    def _keys(self) -> Names:
        return {**KEYS, "source": f"[source] {self.document.source.place}"}

    def plan(self, within: Mapping[str, Number | str] | None = None) -> Plan:
        """The least noise for the questions, or the least budget for errors ``within`` these.

        Reads the schema only, spends nothing, and opens no ledger.
        """
        if all(one.rule == "basic" for one in self.document.ledger.limit):
            return self._planned(self.session(), within=within)
        with TemporaryDirectory() as folder:  # noise on a limit by moments is planned as its ledger would have it
            return self._planned(self.recorded(ledger=str(Path(folder) / LEDGER)), within=within)

    def account(self) -> Account | None:
        """The dataset in the ledger; None where nobody declared it yet. Makes nothing."""
        if "://" not in self.ledger and not Path(self.ledger).exists():
            return None
        from tightrope.ledger import Ledger

        ledger = Ledger(self.ledger)
        return ledger.account(self.dataset) if self.dataset in ledger.datasets() else None

    @property
    def ledger(self) -> str:
        """Where the ledger is: a URL, or a file; paths in a plan are relative to it."""
        path = self.document.ledger.path
        return path if "://" in path else str(self.folder / path)

    @property
    def dataset(self) -> str:
        """The table's name in the ledger: as declared, or as the file and the table in it are called."""
        table, place = self.document.source.table, self.source
        # another link to a file is the same people
        last = place.resolve().name if isinstance(place, Path) else place.rstrip("/").rpartition("/")[2]
        return self.document.ledger.dataset or (last if table is None else f"{last}: {table}")

    def recorded(self, note: str | None = None, ledger: str | None = None) -> Session:
        """The session, charged in the ledger; makes the ledger and declares the dataset where they are not there.

        ``note`` is what is written down then, instead of the plan's; ``ledger`` another place than the plan's.
        """
        section = self.document.ledger
        with placed("", self._keys):
            return Session.open(
                self.table(), ledger=self.ledger if ledger is None else ledger, dataset=self.dataset,
                limits=[self._limit(one) for one in section.limit], audience=section.audience,
                note=note or section.note, **self._settings(),
            )  # fmt: skip

    def _limit(self, one: FurtherLimit) -> Limit:
        from tightrope.ledger import Limit
        from tightrope.ledger.limits import TOTAL

        said = _promised(one)
        whole = one.name == TOTAL and not any(value is not None for value in said.values())
        section = self.document.budget if whole else BudgetSection(**said)
        return Limit(one.name, section.budget(), one.every, one.audience, one.rule, one.releases)

    def release_plan(self, key: str | None = None) -> Plan:
        """The plan of the next release, charged in the ledger: of the series, where there is one.

        One that was charged and never answered is taken up again, at no cost. Under a ``key`` it is that release.
        """
        section, session = self.document.ledger, self.recorded()
        plan = self._planned(session, key)
        if section.times is not None:
            return session.series(plan, times=section.times, key=section.series).next(key)
        return session.resumed(plan) if key is None else plan

    def _planned(
        self, session: Session, key: str | None = None, within: Mapping[str, Number | str] | None = None
    ) -> Plan:
        share, rows = self.document.budget.share, self.document.expected_rows
        with placed("", self._keys):
            where, questions = self.document.where, self.document.questions()
            return session.plan(questions, where=where, share=share, expected_rows=rows, within=within, key=key)


def load(path: str | Path) -> PlanFile:
    """The plan in a file. Raises ``PlanError`` for anything that is not a plan, and where its table is not there."""
    place = Path(path)
    file = PlanFile(read(place), place.parent)
    if isinstance(file.source, Path) and not is_there(file.source):
        source = file.document.source
        expected = f"a file that exists ({file.source})"
        raise PlanError(
            f"[source] {source.place}", source.path or source.spark, expected, "paths are relative to the plan"
        )
    return file


def read(path: Path) -> PlanDocument:
    """What a plan file says, whether or not its table is there; raises ``PlanError``."""
    found = PLAN_FILE.tables(path)
    # a section that is left out is an empty one: the error then says which of its keys is needed
    found |= {name: found.get(name, {}) for name in NEEDED}
    return PLAN_FILE.data({key: _plain(found[key]) if key == "question" else found[key] for key in found}, PlanDocument)


def _promised(limit: FurtherLimit) -> dict[str, Any]:
    """The part of a limit that is a budget."""
    return {name: getattr(limit, name) for name in ("epsilon", "delta", "attack_success", "points")}


def _question(place: str, entry: Mapping[str, Any]) -> Question:
    kind = entry.get("kind")
    if kind not in tuple(KINDS):
        remedy = NOT_YET if kind in ELSEWHERE else nearest(kind, tuple(KINDS))
        raise PlanError(f"{place} kind", kind, f"one of {listed(tuple(KINDS))}", remedy)
    node = KINDS[kind]
    known = ("kind", *node.entries, *ENTRIES)
    for key in entry:
        if key not in known:
            raise PlanError(f"key in {place}, a {kind}", key, f"one of {listed(known)}", nearest(key, known))
    with placed(place, RENAMED):
        return node.from_entry(entry)


def _plain(value: Any) -> Any:
    """Values as Python numbers: a column of numbers holds floats."""
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else value
