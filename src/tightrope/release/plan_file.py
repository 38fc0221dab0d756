"""Plan files: TOML that is parsed into a frozen document, then into a session and its questions.

``docs/plan-file.md`` describes every key. Each mistake raises one ``PlanError`` with its location and a remedy.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import Meta

from tightrope.documents.budget import Number
from tightrope.documents.document import Counted, Part
from tightrope.documents.plan_ledger import LEDGER_FILE, PLAN_FILE, Text, dataset_name, ledger_location
from tightrope.documents.reader import (
    Names,
    missing_field_tip,
    redact_secret,
    reword_key_errors,
    unknown_key_error,
)
from tightrope.documents.release import PublisherPart, limit_label
from tightrope.errors import InputError, LedgerError, PlanError, quoted_names, suggest_nearest
from tightrope.queries import comparisons
from tightrope.queries.options import ENTRIES
from tightrope.queries.query import Query
from tightrope.release.plan import Plan
from tightrope.release.plan_sections import (
    BudgetSection,
    ComparisonSection,
    FurtherLimit,
    LedgerSection,
    MarginalsSection,
    PrivacyUnitSection,
    PublicTableSection,
    SourceSection,
)
from tightrope.release.session import Session
from tightrope.release.settings import Settings
from tightrope.tables import PublicTableSource, Table, open_on_spark, open_source, path_exists, public_table_source

if TYPE_CHECKING:
    from tightrope.ledger import Account, Limit
    from tightrope.queries.marginals import question as marginals_module

QUERY_KINDS = {
    "count": "count",
    "count_distinct": "count",
    "sum": "mean",
    "mean": "mean",
    "histogram": "histogram",
    "quantile": "quantile",
    "minimum": "quantile",
    "maximum": "quantile",
    "proportion": "ratio",
    "ratio": "ratio",
    "variance": "moments",
    "standard_deviation": "moments",
    "covariance": "moments",
    "correlation": "moments",
    "regression": "regression",
    "top_k": "top_k",
    "mode": "top_k",
    "suppressed_count": "top_k",
}
"""The kinds of questions, with the module of ``tightrope.queries`` that defines each: loaded if a plan uses it."""
ADDED_KINDS: dict[str, type[Query]] = {}
"""Further kinds, by name: those of ``register_query_kind``."""


def query_class(kind: str) -> type[Query]:
    """Return the class of a kind of question that is in ``QUERY_KINDS`` or ``ADDED_KINDS``."""
    if kind in ADDED_KINDS:
        return ADDED_KINDS[kind]
    found: type[Query] = getattr(import_module(f"tightrope.queries.{QUERY_KINDS[kind]}"), kind)
    return found


def register_query_kind(kind: type[Query]) -> None:
    """Allow questions of this kind in plan files; raises ``InputError`` if another kind has the name."""
    if kind.kind in QUERY_KINDS or ADDED_KINDS.setdefault(kind.kind, kind) is not kind:
        raise InputError("kind", kind.kind, "a name that no other kind of question has", "rename the new kind")


SHORT_KINDS = {"max": "maximum", "min": "minimum"}
"""Names of other programs for kinds of questions."""
QUESTION_ADVICE = "write [[question]] with double brackets, once or more"
MEDIAN = "median"
"""The kind of a quantile question without ``q``."""
MEDIAN_ADVICE = 'a median has no q; for another quantile use kind = "quantile"'


class PlanDocument(Part, frozen=True, kw_only=True):
    """The content of a plan file. The keys of a question depend on its kind (``tightrope.queries``).

    It is parsed key by key: errors name misspelled keys and values of the wrong type.
    """

    document: Literal["plan"] = "plan"
    version: Literal[2] = 2
    title: Text | None = None
    description: Text | None = None
    origin: Text | None = None
    publisher: Text | None = None
    date: Text | None = None
    contact: Text | None = None
    expected_rows: Counted | None = None
    where: Annotated[Text, missing_field_tip('for example where = "distance > 500"')] | None = None
    source: SourceSection
    privacy_unit: PrivacyUnitSection
    budget: BudgetSection
    public_table: tuple[PublicTableSection, ...] = ()
    ledger: LedgerSection = LedgerSection()
    question: Annotated[
        tuple[dict[str, Any], ...],
        Meta(min_length=1),
        missing_field_tip(QUESTION_ADVICE),
    ] = ()
    marginals: tuple[MarginalsSection, ...] = ()

    comparison: tuple[ComparisonSection, ...] = ()

    def __post_init__(self) -> None:
        if not (self.question or self.marginals):
            raise InputError.from_text("question", f"missing; {QUESTION_ADVICE}")
        queries = self.make_queries()
        if self.marginals:
            self.make_marginals()
        if self.comparison:
            self.make_comparisons(queries)

    def make_marginals(self) -> tuple[marginals_module.marginals, ...]:
        """Return the questions ``marginals``; raises ``InputError`` with the place of an invalid one."""
        tables = []
        for number, section in enumerate(self.marginals, start=1):
            with reword_key_errors(f"marginals {number}"):
                tables.append(section.to_question())
        return tuple(tables)

    def make_comparisons(self, queries: Sequence[Query]) -> tuple[comparisons.comparison, ...]:
        """Return the comparisons of the answers; raises ``InputError`` with the place of an invalid one."""
        compared = []
        for number, section in enumerate(self.comparison, start=1):
            with reword_key_errors(f"comparison {number}"):
                compared.append(section.to_comparison())
                compared[-1].check_answers(queries)
        return tuple(compared)

    def make_queries(self) -> tuple[Query, ...]:
        """Return the questions; raises ``InputError`` with the name of an invalid one."""
        queries = []
        for number, entry in enumerate(self.question, start=1):
            location, kind = f"question {number}", entry.get("kind")
            kinds = (*QUERY_KINDS, *ADDED_KINDS, MEDIAN)
            if kind not in kinds:
                suggestion = suggest_nearest(SHORT_KINDS.get(str(kind), kind), kinds)
                problem = "missing" if kind is None else f"{kind!r} is not available"
                text = f"{problem}; {suggestion or f'kinds: {quoted_names(kinds)}'}"
                raise PlanError.from_text(f"{location} kind", text)
            question_class = query_class("quantile" if kind == MEDIAN else str(kind))
            if kind == MEDIAN and "q" in entry:
                raise PlanError.from_text(f"{location} ({kind})", MEDIAN_ADVICE)
            known_keys = ("kind", *(key for key in question_class.entries if (kind, key) != (MEDIAN, "q")), *ENTRIES)
            unknown_key = next((key for key in entry if key not in known_keys), None)
            if unknown_key is not None:
                raise unknown_key_error(PlanError, f"{location} ({kind})", unknown_key, known_keys)
            with reword_key_errors(location):
                queries.append(make_question(question_class, entry))
        return tuple(queries)


def make_question(kind: type[Query], entry: Mapping[str, Any]) -> Query:
    """Return the question of an entry with valid keys and plain values; raises ``PlanError``.

    A missing parameter is passed as None, so that the error of the kind names the parameter.
    """
    kind_parameters = {key: entry.get(key, kind.entry_defaults.get(key)) for key in kind.entries}
    options = {key: entry[key] for key in ENTRIES if key in entry}
    return kind(**kind_parameters, **options)


PLAN_KEYS: Names = {
    "source": "[source] path",
    "table": "[source] table",
    "types": "[source] types",
    "dialect": "[source.dialect]",
    "privacy_unit": "[privacy_unit] column",
    **{name: f"[privacy_unit] {name}" for name in ("max_rows", "max_rows_per_group", "max_groups")},
    "budget": "[budget]",
    **{
        name: f"[budget] {name}"
        for name in ("epsilon", "delta", "attack_success", "points", "budget_fraction", "bias_check")
    },
    "public_tables": "public_table",
    "questions": "question",
    "comparisons": "comparison",
    "where": "where",
    "ledger": "[ledger] path",
    "limits": "[ledger] limit",
    **{name: f"[ledger] {name}" for name in ("dataset", "audience", "note", "times", "date", "dates")},
}
"""The plan-file keys of the parameters of ``open_source``, ``Session`` and ``Session.plan``."""
REQUIRED_SECTIONS = "source", "privacy_unit", "budget"


@dataclass(frozen=True, slots=True)
class PlanFile:
    """A plan and its folder: ``open_session`` opens the table, ``make_plan`` selects noise; neither spends budget."""

    document: PlanDocument
    folder: Path

    @property
    def reader_information(self) -> PublisherPart | None:
        """The plan's information for readers, such as its description and publisher; None if there is none."""
        texts = {name: getattr(self.document, name) for name in PublisherPart.__struct_fields__}
        return PublisherPart(**texts) if any(texts.values()) else None

    @property
    def source_location(self) -> str | Path:
        """The table: a path relative to the plan, or a URL."""
        source = self.document.source
        location = source.path or source.spark or source.postgres or ""
        is_url = source.postgres or (source.spark and "://" in location)
        return location if is_url else self.folder / location

    def open_table(self) -> Table:
        """Return the table; reads its schema only."""
        source = self.document.source
        if source.spark is not None:
            return open_on_spark(str(self.source_location))
        return open_source(self.source_location, table=source.table, types=source.types, dialect=source.dialect)

    def open_session(self) -> Session:
        """Return a session for the table with its privacy unit and budget; reads the schema only."""
        with reword_key_errors("", self._key_columns):
            return Session(self.open_table(), **self._session_settings())

    def _session_settings(self) -> Settings:
        unit = self.document.privacy_unit
        return {
            "privacy_unit": (unit.column, unit.noun),
            "budget": self.document.budget.to_budget(),
            "max_rows": unit.max_rows,
            "max_rows_per_group": unit.max_rows_per_group,
            "max_groups": unit.max_groups,
            "public_tables": self.public_tables(),
        }

    def public_tables(self) -> tuple[PublicTableSource, ...]:
        """Return the public tables; paths are relative to the plan."""
        tables = enumerate(self.document.public_table, start=1)
        return tuple(self._public_table(number, section) for number, section in tables)

    def _public_table(self, number: int, section: PublicTableSection) -> PublicTableSource:
        location = section.path if "://" in section.path else self.folder / section.path
        file_name = section.path.rstrip("/").rpartition("/")[2]
        with reword_key_errors(f"public_table {number}", {"source": "path"}):
            table = open_source(location, table=section.table, types=section.types, dialect=section.dialect)
            return public_table_source(
                table,
                section.on,
                section.columns,
                file_name if section.table is None else f"{file_name}: {section.table}",
            )

    @property
    def _key_columns(self) -> Names:
        return {**PLAN_KEYS, "source": f"[source] {self.document.source.location_key}"}

    def make_plan(self, margin_of_error: Mapping[str, Number | str] | None = None) -> Plan:
        """Return the plan with the least noise, or with the smallest budget for errors of at most ``margin_of_error``.

        Reads the schema only, spends no budget, and does not open the plan's ledger.
        """
        if all(limit.rule == "basic" for limit in self.document.ledger.limit):
            return self._plan_in_session(self.open_session(), margin_of_error=margin_of_error)
        with TemporaryDirectory() as folder:  # a limit by moments needs a ledger, so plan with a temporary one
            return self._plan_in_session(
                self.open_ledger_session(ledger=str(Path(folder) / LEDGER_FILE)), margin_of_error=margin_of_error
            )

    def find_account(self) -> Account | None:
        """Return the dataset's account in the ledger; None before it is declared. Does not create a ledger."""
        if "://" not in self.ledger_location and not Path(self.ledger_location).exists():
            return None
        from tightrope.ledger import Ledger
        from tightrope.ledger.store import MissingLedgerError

        try:
            ledger = Ledger(self.ledger_location)
        except MissingLedgerError:  # a database without a ledger
            return None
        return ledger.open_account(self.dataset_name) if self.dataset_name in ledger.dataset_names() else None

    def last_ledger_entry(self) -> int:
        """Return the number of the last entry of the dataset in the ledger; 0 before it is declared."""
        account = self.find_account()
        return 0 if account is None else account.book.list_entries(account.dataset_name)[-1].number

    @property
    def ledger_location(self) -> str:
        """The location of the ledger: a URL, or a file; paths are relative to the plan."""
        return ledger_location(self.folder, self.document.ledger.path)

    @property
    def dataset_name(self) -> str:
        """The table's name in the ledger: as declared, else from the names of the file and the table in it."""
        return dataset_name(self.source_location, self.document.source.table, self.document.ledger.dataset)

    def open_ledger_session(self, note: str | None = None, ledger: str | None = None) -> Session:
        """Return the session, charged in the ledger; creates the ledger and declares the dataset if necessary.

        ``note`` and ``ledger`` replace those in the plan.
        """
        section = self.document.ledger
        with reword_key_errors("", self._key_columns):
            return Session.open(
                self.open_table(), ledger=self.ledger_location if ledger is None else ledger, dataset=self.dataset_name,
                limits=[self._ledger_limit(limit) for limit in section.limit], audience=section.audience,
                note=note or section.note, **self._session_settings(),
            )  # fmt: skip

    def _ledger_limit(self, limit: FurtherLimit) -> Limit:
        from tightrope.ledger import Limit
        from tightrope.ledger.limits import MAIN_LIMIT

        # The part of a limit that is a budget.
        budget_keys = {name: getattr(limit, name) for name in ("epsilon", "delta", "attack_success", "points")}
        is_whole_budget = limit.name == MAIN_LIMIT and not any(value is not None for value in budget_keys.values())
        section = self.document.budget if is_whole_budget else BudgetSection(**budget_keys)
        return Limit(limit.name, section.to_budget(), limit.every, limit.audience, limit.rule, limit.releases)

    def release_plan(self, key: str | None = None) -> Plan:
        """Return the plan of the next release, charged in the ledger; of the next date if the plan declares a series.

        A release that was charged but never answered is resumed, at no cost. A ``key`` selects that release.
        """
        section, session = self.document.ledger, self.open_ledger_session()
        plan = self._plan_in_session(session, key)
        if section.series_length is not None:
            with reword_key_errors("", self._key_columns):
                series = session.series(
                    plan, times=section.times, key=section.series, date=section.date, dates=section.dates
                )
            return series.next(key)
        return session.resumed(plan) if key is None else plan

    def _plan_in_session(
        self, session: Session, key: str | None = None, margin_of_error: Mapping[str, Number | str] | None = None
    ) -> Plan:
        budget_section, expected_rows = self.document.budget, self.document.expected_rows
        with reword_key_errors("", self._key_columns):
            where, questions = self.document.where, self.document.make_queries()
            return session.plan(
                [*questions, *self.document.make_marginals()] if self.document.marginals else questions,
                where=where,
                budget_fraction=budget_section.budget_fraction,
                expected_rows=expected_rows,
                margin_of_error=margin_of_error,
                key=key,
                bias_check=budget_section.bias_check,
                comparisons=self.document.make_comparisons(questions) if self.document.comparison else (),
            )


def load_plan_file(path: str | Path) -> PlanFile:
    """Return the plan in a file. Raises ``PlanError`` if it is not a valid plan or its table does not exist."""
    plan_path = Path(path)
    plan_file = PlanFile(read_plan_document(plan_path), plan_path.parent)
    if isinstance(plan_file.source_location, Path) and not path_exists(plan_file.source_location):
        source = plan_file.document.source
        text = f"{redact_secret(str(plan_file.source_location))} does not exist; paths are relative to the plan file"
        raise PlanError.from_text(f"[source] {source.location_key}", text)
    return plan_file


def read_plan_document(path: Path) -> PlanDocument:
    """Return the document of a plan file, without looking for its table; raises ``PlanError``."""
    return parse_plan_document(PLAN_FILE.parse_toml(path))


def parse_plan_document(tables: Mapping[str, Any]) -> PlanDocument:
    """Return the document from parsed TOML, with floats as exact decimals; raises ``PlanError``."""
    # a missing section is parsed as an empty one, so that the error names the required key
    sections = {**tables, **{name: tables.get(name, {}) for name in REQUIRED_SECTIONS}}
    plain_sections: dict[str, Any] = {
        name: _plain_values(sections[name]) for name in ("question", "marginals", "comparison") if name in sections
    }
    return PLAN_FILE.convert_data({**sections, **plain_sections}, PlanDocument)


def _plain_values(value: Any) -> Any:
    """Return the value with decimals as floats."""
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, dict):
        return {key: _plain_values(item) for key, item in value.items()}
    return [_plain_values(item) for item in value] if isinstance(value, list) else value


@dataclass(frozen=True, slots=True)
class LedgerForecast:
    """A forecast of a release of a plan: sentences on the budget left and the outcome, and whether it is refused."""

    sentences: list[str]
    would_refuse: bool
    budget_left: Fraction = Fraction(1)
    """The fraction of the whole budget that is left before the release."""


def forecast_release(file: PlanFile, plan: Plan, key: str | None = None) -> LedgerForecast:
    """Return the forecast of a release, without writing to the ledger; no sentences before the dataset is declared.

    ``key`` is the name of the release, as in ``release_plan``.
    """
    try:
        account = file.find_account()
        if account is None:
            return LedgerForecast([], would_refuse=False)
        file.open_ledger_session()  # the dataset exists, so this only raises if its declaration differs
        # The remaining part of every limit, in its latest period.
        from tightrope.ledger.overview import limit_overviews

        budget_left = [f"{limit['left']} of {limit_label(limit['slot'])}" for limit in limit_overviews(account)]
        refusal: str | None = None
        verdict = []
        # For a series: its progress. Else: whether a release would be accepted now.
        from tightrope.release.execution import draft_under_key, release_claim, unanswered_draft

        section = file.document.ledger
        if section.series_length is not None:
            series_state = account.current_state().series.get(section.series)
            done = 0 if series_state is None else series_state.done
            if series_state is None or done < section.series_length:
                verdict = [f"{done} of {section.series_length} releases of the series {section.series!r} are done."]
            elif key is None:
                refusal = f"all {done} releases of the series {section.series!r} are done"
        else:
            draft = plan.draft if key is None else draft_under_key(account, plan.draft, key, section.audience)
            claim = release_claim(draft, secrets.token_hex(8) if key is None else key, section.audience)
            if account.find_charge(claim) is not None:
                verdict = [f"The release {key!r} was already charged: its answers would be written again at no cost."]
            elif key is None and unanswered_draft(account, plan.draft, section.audience)[1] is not None:
                verdict = ["A release of this plan was charged but not finished: the next run finishes it at no cost."]
            elif (refused := account.find_refusal(claim)) is not None:
                refusal = str(refused)
        if refusal is not None:
            verdict = [f"A release would be refused: {refusal}."]
        from tightrope.ledger.limits import MAIN_LIMIT

        fraction_left = account.current_state().balance_of(MAIN_LIMIT).fraction_left
        sentences = [f"Budget left: {', '.join(budget_left)}.", *verdict]
        return LedgerForecast(sentences, refusal is not None, fraction_left)
    except (InputError, LedgerError) as error:
        return LedgerForecast([f"A release would be refused: {error}."], would_refuse=True)
