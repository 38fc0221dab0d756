"""The documents of a release: its certificate, its result with every answer, and the planned release."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Annotated, Any, Literal, Protocol

from msgspec import UNSET, Meta, UnsetType, ValidationError, convert, field, structs, to_builtins

from tightrope.documents.document import (
    Counted,
    Digits,
    Natural,
    PackedTable,
    Part,
    Positive,
    Probability,
    ReleasePromise,
    Size,
    TablePart,
)
from tightrope.documents.escaping import csv_table
from tightrope.documents.numbers import TIME_UNITS, Rounding, time_text
from tightrope.documents.privacy_unit import PrivacyUnit
from tightrope.documents.reader import FormerKeys, Reader, rename_document_keys
from tightrope.documents.wording import explain_release, title_with_bound
from tightrope.errors import InputError

MEASURES = ("value", "lower", "upper")
ROUNDINGS: tuple[Rounding, ...] = ("nearest", "down", "up")
"""The directions in which measures are rounded to dates."""
PAID = ("usable", "intercept", "intercept_lower", "intercept_upper", "best_rank", "worst_rank", "noisy")
"""Optional fields of a record, also charged: the noisy number of values, the intercept of a line and its interval, the
possible ranks of a group, and the noisy number if least squares changed it."""
QUESTION, STATISTIC, MISSING = "question", "statistic", "missing"
"""Names of columns of ``results_csv``: an answer's name, its title with the bound, and the missing keys of a group."""
Key = str | bool | int | float | None
_BOUNDS = {"rows_per_person": "max_rows", "groups_per_person": "max_groups", "rows_per_group": "max_rows_per_group"}
FORMER_KEYS: dict[str, FormerKeys] = {
    "release certificate": {
        (): {"share": "budget_fraction", "neighbours": "neighbors"},
        ("neighbors",): {"person": "privacy_unit", "means": "noun", **_BOUNDS},
        ("mechanisms", "*"): _BOUNDS,
        ("computed",): {"engine": "method"},
        ("entry",): {"share": "budget_fraction"},
    },
    "release result": {(): {"costs": "bias"}, ("answers", "*"): _BOUNDS},
}
"""Names of keys up to version 2 of certificates and version 1 of results."""
_FIRST_WITH_NEW_KEYS = {"release certificate": 3, "release result": 2}
_FIRST_WITH_TABLES = 4
"""First version of certificates with a list of tables."""


def upgrade_document(data: Any) -> Any:
    """Return the data of a release document with today's keys, and with the tables of a certificate in one list.

    Documents of today's version stay as they are.
    """
    if not isinstance(data, dict):
        return data
    kind, version = str(data.get("document")), data.get("version")
    if not isinstance(version, int):
        return data
    if version < _FIRST_WITH_NEW_KEYS.get(kind, 0):
        data = rename_document_keys(data, FORMER_KEYS[kind])
    if kind == "release result" and "certificate" in data:
        return {**data, "certificate": upgrade_document(data["certificate"])}
    return _with_shared_tables(data) if kind == "release certificate" and version < _FIRST_WITH_TABLES else data


def _with_shared_tables(data: dict[str, Any]) -> dict[str, Any]:
    """Return a certificate of up to version 3, where each mechanism has its own table, with a list of all tables."""
    mechanisms = data.get("mechanisms")
    if "tables" in data or not isinstance(mechanisms, list | tuple):
        return data
    shared = SharedTables()
    try:
        numbers = [shared.number_of(convert(mechanism["table"], TablePart).packed()) for mechanism in mechanisms]
    except (ValidationError, KeyError, TypeError):
        return data  # converting the document then names the problem
    changed = [{**mechanism, "table": number} for mechanism, number in zip(mechanisms, numbers, strict=True)]
    return {**data, "mechanisms": changed, "tables": to_builtins(shared.numbered_tables())}


RELEASES = Reader(
    "release",
    "take the file as tightrope release wrote it: releasing again spends the budget again",
    upgrade=upgrade_document,
)


class NumberedTable(PackedTable, frozen=True, kw_only=True):
    """A table of noise, and the number by which mechanisms refer to it."""

    id: Counted


class SharedTables:
    """The tables of a certificate: equal ones once, numbered from 1 in the order of their first use."""

    def __init__(self) -> None:
        self._numbers: dict[PackedTable, int] = {}

    def number_of(self, table: PackedTable) -> int:
        """Return the number of a table."""
        return self._numbers.setdefault(table, len(self._numbers) + 1)

    def numbered_tables(self) -> tuple[NumberedTable, ...]:
        """Return each table once."""
        return tuple(NumberedTable(id=number, **structs.asdict(table)) for table, number in self._numbers.items())


class Neighbors(Part, frozen=True, kw_only=True):
    """Whose presence the guarantee hides: ``privacy_unit`` is the column that names them, None if each row is one.

    ``noun`` says what a unit is: "a person", or another noun with its article, such as "an aircraft".
    """

    relation: Literal["add-remove"]
    privacy_unit: str | None
    noun: str
    max_rows: Counted
    max_rows_per_group: Counted
    max_groups: Counted
    statement: str

    @property
    def protected_unit(self) -> PrivacyUnit:
        """The privacy unit with its contribution bounds."""
        return PrivacyUnit(self.privacy_unit, self.max_rows, self.max_rows_per_group, self.max_groups, self.noun)


class ChoicePart(Part, frozen=True, kw_only=True):
    """A choice among ``cells`` equal parts of a range, by the exponential mechanism: in place of a number with noise.

    A candidate at distance d, in units of the mechanism, is chosen in proportion to w(⌊2d / factor⌋): w(0) = 2¹⁰⁰ and
    w(j + 1) = ⌈w(j) · root / 2¹²⁸⌉, where (root / 2¹²⁸)² is at least what the table falls by in a step of its tail. A
    row moves a distance by half the ``sensitivity_per_row``, so that the table's noise dominates the choice. ``target``
    None: the result is the cell with ``below`` units of each row below its left edge; else how many cells near it have
    that many units on either side. An answer has one of each, over the same cells. ``left_out``: the number of smallest
    (``below`` 0) or largest rows (``below`` 1,000,000) without which it is the minimum or maximum; else None.
    """

    below: Digits
    cells: Counted
    root: Digits
    target: Digits | None
    left_out: Digits | None = None


class ReleasedMechanism(Part, frozen=True, kw_only=True):
    """One noisy vector: value · unit + noise, noise = factor · Y + U − U', Y from the table, U, U' below factor.

    ``table`` is the number of its table in the certificate's ``tables``.
    ``answers`` names the questions that it serves: a count of discovered keys serves all over these keys. Mechanisms
    with one ``exclusive`` label are one: each row enters one of them, and ``groups`` counts the cells of all of them.
    ``column`` and ``by`` are columns or expressions; ``where`` is the condition that a row must meet to count.
    Mechanisms with the same number ``together`` are shifted by the same rows: one person's rows fall into their groups
    in one way for all of them. Version 1 lacks it. The mechanisms of a ``box``, that many with one number
    ``together``, share their noise: |S| = R is drawn from the table once for all of them, and Y is uniform on −R..R.
    No row meets two different conditions ``where`` of the mechanisms with the same number ``disjoint``; each row is a
    person, so that one person moves the mechanisms of at most one of these conditions.
    """

    answers: Annotated[tuple[str, ...], Meta(min_length=1)]
    statistic: str
    column: str | None
    by: tuple[str, ...]
    where: str | None = None
    family: str
    unit: Decimal
    sensitivity_per_row: Digits
    table_steps_per_row: Counted
    rows: Counted
    max_rows_per_group: Counted
    groups: Counted
    factor: Digits
    table: Counted
    exclusive: str | None = None
    together: Counted | None = None
    choice: ChoicePart | None = None
    box: Counted | None = None
    disjoint: Counted | None = None


class PublicTablePart(Part, frozen=True, kw_only=True):
    """A public table in which private rows looked something up: ``on`` says by which column of theirs in which of its.

    ``columns`` are those that rows got; ``sha256`` is of its names and values, column by column, sorted by the keys.
    """

    name: str
    on: dict[str, str]
    columns: tuple[str, ...]
    rows: Natural
    sha256: Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]


class ConsistencyPart(Part, frozen=True, kw_only=True):
    """Answers about the same rows, made consistent by weighted least squares on what was released.

    ``divided_by`` numbers for each answer the divisions of the rows that its key columns are: where two answers have
    the same, their groups agree. Where they share the "total" alone, all key columns of an answer are one division.
    ``variances`` of the noise, in squared units of the answers' common step, are the weights: one over them.
    """

    answers: Annotated[tuple[str, ...], Meta(min_length=2)]
    shared: Literal["groups", "total"]
    divided_by: tuple[tuple[Natural, ...], ...]
    variances: tuple[Decimal, ...]
    statement: str

    def __post_init__(self) -> None:
        _check_same_length("divided_by", self.divided_by, self.answers)
        _check_same_length("variances", self.variances, self.answers)


FractionText = Annotated[str, Meta(pattern="^[0-9]+/[0-9]+$")]
"""A positive fraction, such as "3/8"."""


class MarginalTablePart(Part, frozen=True, kw_only=True):
    """One table of counts: its answer, its columns by position, and the weight of the variance of each of its cells.

    The error of a cell exceeds ``half_width_95`` with a probability of at most 5 %.
    """

    answer: str
    columns: tuple[Natural, ...]
    weight: FractionText
    half_width_95: Size


class MeasurementPart(Part, frozen=True, kw_only=True):
    """The integers of one mechanism: numbers of rows by cell of the table on ``columns``.

    Along ``differences`` they are of each pair of values: the rows with the first value less those with the second.
    ``precision`` is the weight of their squared errors in least squares.
    """

    mechanism: Counted
    columns: tuple[Natural, ...]
    differences: tuple[Natural, ...]
    precision: FractionText


class MarginalsPart(Part, frozen=True, kw_only=True):
    """All tables of a question ``marginals``: columns with ``sizes`` values each, and what was measured for them.

    ``gap``: with Gaussian noise of these variances, the root of the weighted mean variance of all cells would exceed
    that of every linear mechanism by at most this, relative to it.
    """

    columns: tuple[str, ...]
    sizes: tuple[Counted, ...]
    tables: Annotated[tuple[MarginalTablePart, ...], Meta(min_length=1)]
    measurements: Annotated[tuple[MeasurementPart, ...], Meta(min_length=1)]
    gap: Size
    statement: str

    def __post_init__(self) -> None:
        _check_same_length("sizes", self.sizes, self.columns)


class Profile(Part, frozen=True, kw_only=True):
    """(ε, δ) that all hold; δ rounded up."""

    epsilon: tuple[Size, ...]
    delta: tuple[Probability, ...]

    def __post_init__(self) -> None:
        _check_same_length("delta", self.delta, self.epsilon)


class Rates(Part, frozen=True, kw_only=True):
    """The best attacker's true-positive rate, at most, at each false-positive rate."""

    false_positive_rate: tuple[Probability, ...]
    true_positive_rate: tuple[Probability, ...]

    def __post_init__(self) -> None:
        _check_same_length("true_positive_rate", self.true_positive_rate, self.false_positive_rate)


class Alternative(Part, frozen=True, kw_only=True):
    """A family of noise and its expected error relative to the selected family."""

    family: str
    relative_error: Positive


class ComputationPart(Part, frozen=True, kw_only=True):
    """The method by which the guarantee was computed."""

    method: str
    argument: str
    rounding: str


def limit_label(name: str) -> str:
    """Return the name of a limit in a sentence; the limit ``total`` is the dataset's whole budget.

    >>> limit_label("total"), limit_label("weekly")
    ('the whole budget', "the limit 'weekly'")
    """
    return "the whole budget" if name == "total" else f"the limit {name!r}"


class LimitLeft(Part, frozen=True, kw_only=True):
    """The part of one limit that was left after a release.

    ``rule``: "basic" adds up ε and δ; "moments" adds up log moments of the noise, and ``left_by_addition`` is what a
    basic limit of the same promise would have left.
    """

    name: str
    rule: Literal["basic", "moments"]
    left: str
    left_by_addition: str | None = None

    @property
    def limit_text(self) -> str:
        """Return the limit in words."""
        if self.rule == "basic":
            return f"{self.left} of {limit_label(self.name)}"
        return f"{self.left} of {limit_label(self.name)} by moments ({self.left_by_addition} under basic composition)"


class LedgerEntry(Part, frozen=True, kw_only=True):
    """The ledger entry to which a release was charged, by its number and its SHA-256.

    It is the ``position``-th release of the dataset or, where ``of`` says how many there are, of a series.
    ``budget_fraction`` is what it took of the dataset's whole budget, as an exact fraction; ``left`` what was left
    after it, and ``limits`` what was left of every limit that it was charged to.
    """

    ledger: str
    dataset: str
    key: str
    number: Counted
    hash: str
    budget_fraction: str
    left: str
    position: Counted
    of: Counted | None
    limits: tuple[LimitLeft, ...] = ()

    @property
    def entry_text(self) -> str:
        """Return the entry in words."""
        position = (
            f"release {self.position} of {self.of}"
            if self.of
            else f"release {self.position} of the dataset {self.dataset!r}"
        )
        scope = " beside the series" if self.of else ""
        left = f"; budget left{scope}: {', '.join(limit.limit_text for limit in self.limits)}" if self.limits else ""
        return f"{position}; recorded as entry {self.number} of ledger {self.ledger}{left}"


class ReleaseCertificate(ReleasePromise, frozen=True, kw_only=True):
    """The guarantee of all answers of a release together, with all numbers needed to recompute it."""

    document: Literal["release certificate"]
    version: Literal[1, 2, 3, 4]
    neighbors: Neighbors
    mechanisms: tuple[ReleasedMechanism, ...]
    tables: tuple[NumberedTable, ...]
    profile: Profile
    tradeoff: Rates
    alternatives: tuple[Alternative, ...]
    computed: ComputationPart
    versions: dict[str, str]
    ledger: str
    entry: LedgerEntry | None = None
    public_tables: tuple[PublicTablePart, ...] = ()
    consistent: tuple[ConsistencyPart, ...] = ()
    marginals: MarginalsPart | UnsetType = UNSET
    """What was measured for a question ``marginals``; other certificates lack it."""

    def __post_init__(self) -> None:
        for place, one in enumerate(self.mechanisms, start=1):
            if (one.together is None) != (self.version == 1):
                raise InputError(f"mechanisms {place} together", one.together, "a number, from version 2 on")
        numbers = tuple(table.id for table in self.tables)
        if numbers != tuple(range(1, len(numbers) + 1)):
            raise InputError("tables", numbers[:10], f"the ids 1 to {len(numbers)} in order")
        if used := {one.table for one in self.mechanisms} ^ {*numbers}:
            raise InputError("mechanisms table", min(used), "the id of a table, and each table in use")

    def table_of(self, mechanism: ReleasedMechanism) -> TablePart:
        """Return the table from which the noise of a mechanism was drawn."""
        return self.tables[mechanism.table - 1].unpacked()

    def explain(self) -> str:
        """Return the guarantee in one plain paragraph, with a picture of 100 guesses; all numbers are rounded up."""
        protected, seen = self.neighbors.protected_unit, "everything that this release publishes"
        return str(explain_release(self.epsilon, self.delta, self.attack_success, protected, seen))


class NoiseUsed(Part, frozen=True, kw_only=True):
    """The noise in one statistic of an answer, in natural units; ``worst_error`` None: without limit."""

    statistic: str
    family: str
    why: str
    mean_absolute_error: Size
    half_width_95: Size
    worst_error: Size | None
    unit: str


class ErrorAtSize(Part, frozen=True, kw_only=True):
    """Errors for a group of ``rows`` rows (None: without limit), and its probability of suppression."""

    rows: Counted
    expected_absolute_error: Size | None
    half_width_95: Size | None
    suppressed: Probability


class ErrorStatement(Part, frozen=True, kw_only=True):
    """Errors that hold for every group (None where they depend on its size, or for ``worst_error`` without limit)."""

    expected_absolute_error: Size | None
    half_width_95: Size | None
    worst_error: Size | None
    by_group_size: tuple[ErrorAtSize, ...]
    statement: str


class QuestionPart(Part, frozen=True, kw_only=True):
    """One question, whose rows it counts and what its noise costs; an answer adds its records.

    ``meaning`` says what a value is, ``over`` of which rows: of one person at most ``max_rows`` in all, and
    ``max_rows_per_group`` in each of ``max_groups`` groups. ``additive``: whether parts add up to the whole, so that
    an axis begins at zero. ``label`` is the title for readers: the ``title`` or the ``question``, and the bound on a
    person's rows if it can leave rows out. Documents of version 0.2.0 and before lack it.
    """

    name: str
    question: str
    kind: str
    meaning: str
    over: str
    additive: bool
    by: tuple[str, ...]
    keys: Literal["none", "given", "discovered"]
    weight: Positive
    max_rows: Counted
    max_rows_per_group: Counted
    max_groups: Counted
    noise: tuple[NoiseUsed, ...]
    error: ErrorStatement
    notes: tuple[str, ...]
    edges: tuple[Key, ...] = ()
    """Lower ends of the parts of a histogram, the last key of its rows; None for other questions."""
    title: str | None = None
    description: str | None = None
    unit: str | None = None
    label: str = ""
    bands: dict[str, tuple[Key, ...]] = field(default_factory=dict)
    """Lower ends of the bands of each key column that is cut into bands, without that of a histogram."""
    k: Counted | None = None
    """The number of largest groups asked for; None for other questions."""
    clamping: str = ""
    """How values that are clamped change the answer, and whether that is estimated; empty if none is clamped."""

    def __post_init__(self) -> None:
        if (self.keys == "none") != (not self.by):
            raise InputError("keys", self.keys, "'none' if and only if by is empty")


class TitledPart(Protocol):
    """The fields of a question from which its title is made; parts of incomplete documents have them, too."""

    @property
    def label(self) -> str:
        """The title with the bound."""

    @property
    def title(self) -> str | None:
        """The publisher's title."""

    @property
    def question(self) -> str:
        """The question in words."""

    @property
    def name(self) -> str:
        """The name of the answer."""

    @property
    def over(self) -> str:
        """The rows that are used."""

    @property
    def kind(self) -> str:
        """The kind of question."""

    @property
    def by(self) -> tuple[str, ...]:
        """The key columns."""


def displayed_title(part: TitledPart) -> str:
    """Return the title for readers, which states the bound on a person's rows, also for documents without labels."""
    if part.label:
        return part.label
    # A count of people without groups uses one row of each: none is left out.
    uses_all = part.over.startswith("each ") or (part.kind == "count_distinct" and not part.by)
    title = part.title or part.question or part.name.replace("_", " ") or "Answer"
    return title_with_bound(title, "" if uses_all else part.over.removeprefix("rows, "))


class AnswerDocument(QuestionPart, frozen=True, kw_only=True):
    """A question with its records: the keys by column, then ``value``, ``lower``, ``upper``.

    A ``value`` of None is suppressed; an end of None means that there is no limit.
    """

    rows: tuple[dict[str, Key], ...]

    def __post_init__(self) -> None:
        QuestionPart.__post_init__(self)
        for place, row in enumerate(self.rows, start=1):
            if not {*self.by, *MEASURES} <= set(row) <= {*self.by, *MEASURES, *PAID}:
                raise InputError(f"rows {place}", len(row), f"a record of {[*self.by, *MEASURES]}")
            for name in (*MEASURES, *PAID):
                number = row.get(name)
                if number is not None and (isinstance(number, bool) or not isinstance(number, int | float)):
                    raise InputError(f"rows {place} {name}", type(number).__name__, "a number or nothing")


class BiasPart(Part, frozen=True, kw_only=True):
    """The effect of the row bound, or of a moved range, on the answers of these names; charged like an answer.

    ``share`` is of all rows, or of the rows that were used. With probability 95 %, ``lower`` and ``upper`` contain it
    or are None: shares are omitted if the number of rows is close to its noise. The 95 % is not conditional on a
    share being stated. ``statement`` is the sentence; it is empty if the noise is too large for a useful one.
    """

    answers: tuple[str, ...]
    kind: Literal["left out", "below", "above", "missing"]
    column: str | None
    share: Probability | None
    lower: Probability | None
    upper: Probability | None
    statement: str


class PublisherPart(Part, frozen=True, kw_only=True):
    """The publisher's description of a release: its content, source of the table, publisher, date and contact.

    The ``date`` is a text that was written down before the table was read: a clock would tell how long that took.
    """

    description: str | None = None
    origin: str | None = None
    publisher: str | None = None
    date: str | None = None
    contact: str | None = None


class ReleaseResult(Part, frozen=True, kw_only=True):
    """All published data of a release."""

    document: Literal["release result"]
    version: Literal[1, 2]
    title: str | None
    answers: tuple[AnswerDocument, ...]
    certificate: ReleaseCertificate
    bias: tuple[BiasPart, ...] = ()
    about: PublisherPart | None = None
    comparisons: tuple[AnswerDocument, ...] = ()
    """Differences and ratios of the answers."""
    measured: tuple[tuple[int, ...], ...] | UnsetType = UNSET
    """The noisy integers of each measurement of a question ``marginals``, from which its tables are computed."""

    @property
    def answers_and_comparisons(self) -> tuple[AnswerDocument, ...]:
        """The answers, then the comparisons."""
        return self.answers + self.comparisons


def read_certificate(text: str) -> ReleaseCertificate:
    """Return the certificate in a JSON text; raises ``InputError`` with the path of the problem."""
    return RELEASES.parse_json(text, ReleaseCertificate)


def read_result(text: str) -> ReleaseResult:
    """Return the result in a JSON text; raises ``InputError`` with the path of the problem."""
    return RELEASES.parse_json(text, ReleaseResult)


def _check_same_length(name: str, values: tuple[Any, ...], others: tuple[Any, ...]) -> None:
    if len(values) != len(others):
        raise InputError(name, f"{len(values)} numbers", f"a list of {len(others)}, the same length as the other list")


def results_csv(result: ReleaseResult) -> str:
    """Return all answers as CSV, one line for each group: all digits, and empty fields for missing values.

    ``statistic`` says what a value is and which rows it is about. A total has no keys. For a group of missing values,
    ``missing`` names the columns. Answers that are dates are written as dates. Texts are escaped for spreadsheets and
    terminals (``escape_csv_formula``): JSON and Parquet hold the exact keys.
    """
    return csv_table(results_columns(result, show_dates=True))


def results_columns(result: ReleaseResult, *, show_dates: bool = False) -> dict[str, list[Any]]:
    """Return the columns of the table of all answers, with one value for each group.

    Answers that are dates are days since 1970-01-01, like all others numbers, unless ``show_dates`` asks for text.
    """
    rows = [(answer, record) for answer in result.answers_and_comparisons for record in answer.rows]
    titles = {answer.name: displayed_title(answer) for answer in result.answers_and_comparisons}
    missing = [", ".join(name for name in answer.by if record[name] is None) or None for answer, record in rows]

    def values_of(name: str) -> list[Any]:
        return [record.get(name) for _, record in rows]

    return {
        QUESTION: [answer.name for answer, _ in rows],
        STATISTIC: [titles[answer.name] for answer, _ in rows],
        **{column: values_of(name) for column, name in _key_columns(result).items()},
        **_measure_columns(rows, show_dates=show_dates),
        **{name: values_of(name) for name in PAID if any(name in record for _, record in rows)},
        **({MISSING: missing} if any(missing) else {}),
    }


def _key_columns(result: ReleaseResult) -> dict[str, str]:
    """Return the name of each column of keys, with the key that it holds.

    "by " precedes keys that are named like another column, or that begin with it already.
    """
    return {
        f"by {name}" if name in (QUESTION, STATISTIC, MISSING) or name.startswith("by ") else name: name
        for name in dict.fromkeys(name for answer in result.answers_and_comparisons for name in answer.by)
    }


def _measure_columns(
    rows: Sequence[tuple[AnswerDocument, dict[str, Any]]], *, show_dates: bool
) -> dict[str, list[Any]]:
    """Return the value and its interval by name; with ``show_dates``, numbers of days are the texts of dates."""
    return {
        name: [
            record[name]
            if record[name] is None or not show_dates or answer.unit not in TIME_UNITS
            else time_text(float(record[name]), answer.unit, rounding)
            for answer, record in rows
        ]
        for name, rounding in zip(MEASURES, ROUNDINGS, strict=True)
    }


# The output of ``tightrope plan``: the guarantee and the errors of a release that has not been charged.

PLANNED = Reader("planned release", "take what tightrope plan --json prints: planning anew costs nothing")

PLANNED_OUTPUT = "everything that this plan would release"


class AlonePart(Part, frozen=True, kw_only=True):
    """What one of several questions would have by itself, with the plan's whole budget, and with a larger weight.

    ``half_width_95`` is that of the plan, ``alone`` that of the question by itself, in a group of ``rows`` rows (None:
    in every group). With the larger ``weight`` it would be about ``weighted``, and all others ``others_times`` as large
    (both estimates).
    """

    rows: Counted | None
    half_width_95: Size
    alone: Size
    weight: Positive
    weighted: Size
    others_times: Positive


class PlannedAnswer(QuestionPart, frozen=True, kw_only=True):
    """One question, and what its noise will cost.

    ``alone`` is None for the only question of a plan, and where other questions hardly change the error.
    """

    alone: AlonePart | None = None


class BudgetRow(Part, frozen=True, kw_only=True):
    """The accuracy at another budget: 95 % half-widths by question and, where they depend on it, by rows in the group.

    A half-width of None has no limit.
    A budget that cannot be met has neither ``attack_success`` nor ``answers``.
    """

    epsilon: Size
    delta: Probability
    attack_success: Probability | None
    answers: dict[str, Size | dict[str, Size | None] | None] | None


class PlannedCount(Part, frozen=True, kw_only=True):
    """An additional count for the answers of these names, over all groups."""

    answers: tuple[str, ...]
    statistic: str
    half_width_95: Size


class PlannedCosts(Part, frozen=True, kw_only=True):
    """The part of the budget, at most, that measures the bias of bounding and clamping, and how exactly."""

    budget_fraction: str
    counts: tuple[PlannedCount, ...]


class PlannedRelease(ReleasePromise, frozen=True, kw_only=True):
    """The budget, the guarantee and the accuracy of each answer before a release. The budget is not yet charged."""

    document: Literal["planned release"]
    version: Literal[2]
    title: str | None
    attacker: str
    neighbors: Neighbors
    answers: tuple[PlannedAnswer, ...]
    alternatives: tuple[Alternative, ...]
    table: tuple[BudgetRow, ...] | None
    bias_check: PlannedCosts | None = None
    planning_rule: Counted = 1
    """The rule for relative noise sizes: 2 makes errors even relative to those alone, 1 gives all noise one size."""

    def explain(self) -> str:
        """Return the guarantee in one plain paragraph, with a picture of 100 guesses; all numbers are rounded up."""
        protected = self.neighbors.protected_unit
        return str(explain_release(self.epsilon, self.delta, self.attack_success, protected, PLANNED_OUTPUT))
