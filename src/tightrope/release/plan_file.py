"""A plan in a file: TOML that is read as a frozen document and becomes a session and its questions.

``docs/plan-file.md`` describes every key. Each mistake is one ``PlanError`` that says where it is and what to try.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import Meta

from tightrope.documents.budget import Number
from tightrope.documents.document import Counted, Part
from tightrope.documents.reader import Names, Reader, hidden, named_keys, tip
from tightrope.documents.release import About
from tightrope.errors import InputError, LedgerError, PlanError, listed, nearest
from tightrope.queries.count import count, count_distinct
from tightrope.queries.histogram import histogram
from tightrope.queries.mean import mean, sum
from tightrope.queries.moments import correlation, covariance, standard_deviation, variance
from tightrope.queries.options import ENTRIES, KEYS_BY_OPTION, RENAMED
from tightrope.queries.proportion import share
from tightrope.queries.quantile import quantile
from tightrope.queries.query import Question
from tightrope.queries.ratio import ratio
from tightrope.queries.regression import regression
from tightrope.queries.top_k import other, top
from tightrope.release.plan import Plan
from tightrope.release.plan_sections import (
    LEDGER_FILE,
    BudgetSection,
    FurtherLimit,
    LedgerSection,
    LookupSection,
    PersonSection,
    SourceSection,
    Text,
)
from tightrope.release.session import Session
from tightrope.release.settings import Settings
from tightrope.tables import Lookup, Table, is_there, lookup_in, open_on_spark, open_source

if TYPE_CHECKING:
    from tightrope.ledger import Account, Limit

# The kinds of questions that a plan file can name.

KNOWN: tuple[type[Question], ...] = (
    count,
    count_distinct,
    sum,
    mean,
    histogram,
    quantile,
    share,
    ratio,
    variance,
    standard_deviation,
    covariance,
    correlation,
    regression,
    top,
    other,
)
KINDS: dict[str, type[Question]] = {kind.kind: kind for kind in KNOWN}
"""By name; ``register`` adds to it."""


def register(kind: type[Question]) -> None:
    """Let plan files ask questions of this kind; raises ``InputError`` where the name is another kind's."""
    if KINDS.setdefault(kind.kind, kind) is not kind:
        raise InputError("kind", kind.kind, "a name that no other kind of question has", "rename the new kind")


# All that a plan file says, read key by key: misspelled keys and values of the wrong type are named.

ELSEWHERE = "max", "min"
NOT_YET = 'this kind is not offered: say kind = "quantile", where q = 0.5 is the median and q = 0.99 nearly the largest'
MEDIAN = "median"
"""A quantile without ``q``."""
OTHER_SHARE = 'another share than a half is asked for with kind = "quantile"'


class PlanDocument(Part, frozen=True, kw_only=True):
    """All that a plan file says. The entries of a question are those of its kind (``release.questions``)."""

    document: Literal["plan"] = "plan"
    version: Literal[1] = 1
    title: Text | None = None
    description: Text | None = None
    origin: Text | None = None
    publisher: Text | None = None
    date: Text | None = None
    contact: Text | None = None
    expected_rows: Counted | None = None
    where: Annotated[Text, tip('say where = "distance > 500"')] | None = None
    source: SourceSection
    person: PersonSection
    budget: BudgetSection
    lookup: tuple[LookupSection, ...] = ()
    ledger: LedgerSection = LedgerSection()
    question: Annotated[
        tuple[dict[str, Any], ...], Meta(min_length=1), tip("write [[question]] with double brackets, once or more")
    ]

    def __post_init__(self) -> None:
        self.questions()

    def questions(self) -> tuple[Question, ...]:
        """What is asked; raises ``InputError`` that names the question."""
        return tuple(_question(f"question {number}", entry) for number, entry in enumerate(self.question, start=1))


def _question(place: str, entry: Mapping[str, Any]) -> Question:
    kind = entry.get("kind")
    kinds = (*KINDS, MEDIAN)
    if kind not in kinds:
        remedy = NOT_YET if kind in ELSEWHERE else nearest(kind, kinds)
        raise PlanError(f"{place} kind", kind, f"one of {listed(kinds)}", remedy)
    node = KINDS["quantile" if kind == MEDIAN else kind]
    known = ("kind", *(key for key in node.entries if (kind, key) != (MEDIAN, "q")), *ENTRIES)
    for key in entry:
        if key not in known:
            remedy = OTHER_SHARE if (kind, key) == (MEDIAN, "q") else nearest(key, known)
            raise PlanError(f"key in {place}, a {kind}", key, f"one of {listed(known)}", remedy)
    with named_keys(place, RENAMED):
        return make_question(node, entry)


def make_question(kind: type[Question], entry: Mapping[str, Any]) -> Question:
    """The question of an entry whose keys are known and whose values are plain; raises ``PlanError``.

    A parameter of its own that the entry leaves out is passed as None, so that the kind says what it needs.
    """
    own = {key: entry.get(key, kind.entry_defaults.get(key)) for key in kind.entries}
    common = {option: entry[key] for option, key in KEYS_BY_OPTION.items() if key in entry}
    return kind(**own, **common)


PLAN_FILE = Reader(
    "the plan", "write a plan for your data with: tightrope init DATA --person COLUMN", PlanError, by_hand=True
)
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
    **{name: f"[budget] {name}" for name in ("epsilon", "delta", "attack_success", "points", "share", "costs")},
    "lookup": "lookup",
    "questions": "question",
    "where": "where",
    "ledger": "[ledger] path",
    "limits": "[ledger] limit",
    **{name: f"[ledger] {name}" for name in ("dataset", "audience", "note")},
}
"""Where the parameters of ``open_source``, ``Session`` and its ``plan`` stand in a plan file."""
NEEDED = "source", "person", "budget"


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
    def about(self) -> About | None:
        """What the plan says to readers besides; None where it says nothing."""
        said = {name: getattr(self.document, name) for name in About.__struct_fields__}
        return About(**said) if any(said.values()) else None

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
        with named_keys("", self._keys):
            return Session(self.table(), **self._settings())

    def _settings(self) -> Settings:
        person = self.document.person
        return {
            "person": (person.column, person.means),
            "budget": self.document.budget.budget(),
            "rows_per_person": person.rows,
            "rows_per_group": person.rows_per_group,
            "groups_per_person": person.groups,
            "lookup": self.lookups(),
        }

    def lookups(self) -> tuple[Lookup, ...]:
        """The public tables; paths are relative to the plan."""
        tables = enumerate(self.document.lookup, start=1)
        return tuple(self._lookup(number, said) for number, said in tables)

    def _lookup(self, number: int, said: LookupSection) -> Lookup:
        place = said.path if "://" in said.path else self.folder / said.path
        last = said.path.rstrip("/").rpartition("/")[2]
        with named_keys(f"lookup {number}", {"source": "path"}):
            opened = open_source(place, table=said.table, types=said.types, dialect=said.dialect)
            return lookup_in(opened, said.on, said.columns, last if said.table is None else f"{last}: {said.table}")

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
            return self._planned(self.recorded(ledger=str(Path(folder) / LEDGER_FILE)), within=within)

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
        with named_keys("", self._keys):
            return Session.open(
                self.table(), ledger=self.ledger if ledger is None else ledger, dataset=self.dataset,
                limits=[self._limit(one) for one in section.limit], audience=section.audience,
                note=note or section.note, **self._settings(),
            )  # fmt: skip

    def _limit(self, one: FurtherLimit) -> Limit:
        from tightrope.ledger import Limit
        from tightrope.ledger.limits import MAIN_LIMIT

        # The part of a limit that is a budget.
        said = {name: getattr(one, name) for name in ("epsilon", "delta", "attack_success", "points")}
        whole = one.name == MAIN_LIMIT and not any(value is not None for value in said.values())
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
        kept, rows = self.document.budget, self.document.expected_rows
        with named_keys("", self._keys):
            where, questions = self.document.where, self.document.questions()
            return session.plan(
                questions, where=where, share=kept.share, expected_rows=rows, within=within, key=key, costs=kept.costs
            )


def load(path: str | Path) -> PlanFile:
    """The plan in a file. Raises ``PlanError`` for anything that is not a plan, and where its table is not there."""
    place = Path(path)
    file = PlanFile(read(place), place.parent)
    if isinstance(file.source, Path) and not is_there(file.source):
        source = file.document.source
        expected, given = f"a file that exists ({hidden(str(file.source))})", hidden(source.path or source.spark or "")
        raise PlanError(f"[source] {source.place}", given, expected, "paths are relative to the plan")
    return file


def read(path: Path) -> PlanDocument:
    """What a plan file says, whether or not its table is there; raises ``PlanError``."""
    return parsed(PLAN_FILE.tables(path))


def parsed(tables: Mapping[str, Any]) -> PlanDocument:
    """What the tables of a plan file say, numbers with a point as exact decimals; raises ``PlanError``."""
    # a section that is left out is an empty one: the error then says which of its keys is needed
    found = {**tables, **{name: tables.get(name, {}) for name in NEEDED}}
    return PLAN_FILE.data({key: _plain(found[key]) if key == "question" else found[key] for key in found}, PlanDocument)


def _plain(value: Any) -> Any:
    """Values as Python numbers: a column of numbers holds floats."""
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else value


# What a plan's ledger says before a release: what is left, and whether it would be refused. Writes nothing.


def standing(file: PlanFile, plan: Plan) -> list[str]:
    """Sentences; none where nobody has declared the dataset yet."""
    try:
        account = file.account()
        if account is None:
            return []
        file.recorded()  # the dataset is there: nothing is declared, and what differs is refused
        # What is left of every limit, in its latest period.
        from tightrope.ledger.overview import limits

        said = [f"{limit['left']} of {limit['slot']!r}" for limit in limits(account)]
        # Whether a release passes now; of a series, how far it is.
        from tightrope.release.execution import claim_of

        section = file.document.ledger
        if section.times is not None:
            running = account.state().series.get(section.series)
            done = 0 if running is None else running.done
            if running is None or done < section.times:
                verdict = [f"Of the series {section.series!r} {done} of {section.times} are released."]
            else:
                verdict = [f"A release would be refused: all {done} of the series {section.series!r} are released."]
        else:
            claim = claim_of(plan.draft, secrets.token_hex(8), section.audience)
            if account.unanswered(claim.plan) is not None:
                verdict = [
                    "A release of this very plan was paid and never answered: the next one takes it up, at no cost."
                ]
            else:
                refusal = account.refusal(claim)
                verdict = [] if refusal is None else [f"A release would be refused: {refusal}."]
        return [*[f"The ledger has left: {', '.join(said)}."], *verdict]
    except (InputError, LedgerError) as error:
        return [f"A release would be refused: {error}."]
