"""What a release writes: its certificate, and its result with every answer. One writer, one reader."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, Any, Literal

from msgspec import Meta

from tightrope.documents.document import (
    Counted,
    Digits,
    Natural,
    Part,
    Positive,
    Probability,
    Promised,
    Size,
    TablePart,
)
from tightrope.documents.escaping import csv_table
from tightrope.documents.reader import Reader
from tightrope.documents.wording import Protected, of_release
from tightrope.errors import InputError

MEASURES = ("value", "lower", "upper")
PAID = ("usable", "intercept", "intercept_lower", "intercept_upper", "best_rank", "worst_rank", "noisy")
"""What a record may hold besides, for it was paid for: the noisy number of values, where a line meets the axis, which
places of an order a group can have, and the number that was drawn where least squares moved it."""
Key = str | bool | int | float | None
RELEASES = Reader("release", "take the file as tightrope release wrote it: releasing again spends the budget again")


class Neighbours(Part, frozen=True, kw_only=True):
    """Whose presence the guarantee hides: ``person`` is the column that names them, None where each row is one.

    ``means`` says what a person is: "a person", or another noun with its article, such as "an aircraft".
    """

    relation: Literal["add-remove"]
    person: str | None
    means: str
    rows_per_person: Counted
    rows_per_group: Counted
    groups_per_person: Counted
    statement: str

    @property
    def protected(self) -> Protected:
        """The same for sentences."""
        return Protected(
            self.means, self.person or "", self.rows_per_person, self.groups_per_person, self.rows_per_group
        )


class ChoicePart(Part, frozen=True, kw_only=True):
    """A choice among ``cells`` equal parts of a range, by the exponential mechanism: in place of a number with noise.

    A candidate at distance d, in units of the mechanism, is chosen in proportion to w(⌊2d / factor⌋): w(0) = 2¹⁰⁰ and
    w(j + 1) = ⌈w(j) · root / 2¹²⁸⌉, where (root / 2¹²⁸)² is at least what the table falls by in a step of its tail. A
    row moves a distance by half the ``sensitivity_per_row``, so that the table's noise dominates the choice. ``target``
    None: sought is the cell below whose left edge ``below`` units of each row lie; else how many cells around it have
    so many units on either side. An answer has one of each, over the same cells.
    """

    below: Digits
    cells: Counted
    root: Digits
    target: Digits | None


class RanMechanism(Part, frozen=True, kw_only=True):
    """One noisy vector: value · unit + noise, noise = factor · Y + U − U', Y from the table, U, U' below factor.

    ``answers`` names the questions that it serves: a count of discovered keys serves all over these keys. Mechanisms
    with one ``exclusive`` label are one: each row enters one of them, and ``groups`` counts the cells of all of them.
    ``column`` and ``by`` are columns or expressions; ``where`` is the condition that a row must meet to count.
    Mechanisms with the same number ``together`` are shifted by the same rows: one person's rows fall into their groups
    in one way for all of them. Version 1 does not say it. The mechanisms of a ``box``, so many with one number
    ``together``, share their noise: |S| = R is drawn from the table once for all of them, and Y is uniform on −R..R.
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
    rows_per_group: Counted
    groups: Counted
    factor: Digits
    table: TablePart
    exclusive: str | None = None
    together: Counted | None = None
    choice: ChoicePart | None = None
    box: Counted | None = None


class PublicTablePart(Part, frozen=True, kw_only=True):
    """A public table in which private rows looked something up: ``on`` says by which column of theirs in which of its.

    ``columns`` are those that rows got; ``sha256`` is of its names and values, column by column, sorted by the keys.
    """

    name: str
    on: dict[str, str]
    columns: tuple[str, ...]
    rows: Natural
    sha256: Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]


class Consistent(Part, frozen=True, kw_only=True):
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
        _parallel("divided_by", self.divided_by, self.answers)
        _parallel("variances", self.variances, self.answers)


class Profile(Part, frozen=True, kw_only=True):
    """(ε, δ) that all hold; δ rounded up."""

    epsilon: tuple[Size, ...]
    delta: tuple[Probability, ...]

    def __post_init__(self) -> None:
        _parallel("delta", self.delta, self.epsilon)


class Rates(Part, frozen=True, kw_only=True):
    """What the best attacker finds, at most, for each share of false alarms."""

    false_positive_rate: tuple[Probability, ...]
    true_positive_rate: tuple[Probability, ...]

    def __post_init__(self) -> None:
        _parallel("true_positive_rate", self.true_positive_rate, self.false_positive_rate)


class Alternative(Part, frozen=True, kw_only=True):
    """A family of noise and its expected error over that of the chosen one."""

    family: str
    relative_error: Positive


class Computed(Part, frozen=True, kw_only=True):
    """How the guarantee was computed."""

    engine: str
    argument: str
    rounding: str


class LimitLeft(Part, frozen=True, kw_only=True):
    """What was left of one limit after a release, as a share of it.

    ``rule``: "basic" adds up ε and δ; "moments" adds up log moments of the noise, and ``left_by_addition`` is what a
    basic limit of the same promise would have left.
    """

    name: str
    rule: Literal["basic", "moments"]
    left: str
    left_by_addition: str | None = None

    @property
    def words(self) -> str:
        """In words, for people."""
        if self.rule == "basic":
            return f"{self.left} of {self.name!r}"
        return f"{self.left} of {self.name!r} by moments ({self.left_by_addition} if promises were added up)"


class LedgerEntry(Part, frozen=True, kw_only=True):
    """Where a release was charged: the entry of a ledger, by its number and its SHA-256.

    It is the ``position``-th release of the dataset or, where ``of`` says how many there are, of a series.
    ``share`` is what it took of the dataset's whole budget, as an exact fraction; ``left`` what was left after it, and
    ``limits`` what was left of every limit that it was charged to.
    """

    ledger: str
    dataset: str
    key: str
    number: Counted
    hash: str
    share: str
    left: str
    position: Counted
    of: Counted | None
    limits: tuple[LimitLeft, ...] = ()

    @property
    def words(self) -> str:
        """In words, for people."""
        place = (
            f"release {self.position} of {self.of}"
            if self.of
            else f"release {self.position} of the dataset {self.dataset!r}"
        )
        beside = " beside the series" if self.of else ""
        left = f"; left{beside}: {', '.join(limit.words for limit in self.limits)}" if self.limits else ""
        return f"{place}; recorded as entry {self.number} of ledger {self.ledger}{left}"


class ReleaseCertificate(Promised, frozen=True, kw_only=True):
    """What holds for all answers of a release together, and all that is needed to compute it again."""

    document: Literal["release certificate"]
    version: Literal[1, 2]
    neighbours: Neighbours
    mechanisms: tuple[RanMechanism, ...]
    profile: Profile
    tradeoff: Rates
    alternatives: tuple[Alternative, ...]
    computed: Computed
    versions: dict[str, str]
    ledger: str
    entry: LedgerEntry | None = None
    public_tables: tuple[PublicTablePart, ...] = ()
    consistent: tuple[Consistent, ...] = ()

    def __post_init__(self) -> None:
        for place, one in enumerate(self.mechanisms, start=1):
            if (one.together is None) != (self.version == 1):
                raise InputError(f"mechanisms {place} together", one.together, "a number, from version 2 on")

    def explain(self) -> str:
        """The promise in one paragraph for everybody, and a picture of 100 guesses; every number is rounded up."""
        protected, seen = self.neighbours.protected, "all that this release says"
        return str(of_release(self.epsilon, self.delta, self.attack_success, protected, seen))


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
    """What the noise does to a group of so many rows (None: without limit), and how likely the group is withheld."""

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


class Asked(Part, frozen=True, kw_only=True):
    """One question, whose rows it counts and what its noise costs; an answer adds its records.

    ``meaning`` says what a value is, ``over`` of which rows: of one person at most ``rows_per_person`` in all, and
    ``rows_per_group`` in each of ``groups_per_person`` groups. ``additive``: whether parts add up to the whole, so that
    an axis begins at zero.
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
    rows_per_person: Counted
    rows_per_group: Counted
    groups_per_person: Counted
    noise: tuple[NoiseUsed, ...]
    error: ErrorStatement
    notes: tuple[str, ...]
    edges: tuple[Key, ...] = ()
    """Where the parts of a histogram begin, the last key of its rows; others have none."""
    title: str | None = None
    description: str | None = None
    unit: str | None = None

    def __post_init__(self) -> None:
        if (self.keys == "none") != (not self.by):
            raise InputError("keys", self.keys, "'none' exactly where there is nothing in by")


class AnswerDocument(Asked, frozen=True, kw_only=True):
    """A question with its records: the keys by column, then ``value``, ``lower``, ``upper``.

    A ``value`` of None is withheld; an end of None is without limit.
    """

    rows: tuple[dict[str, Key], ...]

    def __post_init__(self) -> None:
        Asked.__post_init__(self)
        for place, row in enumerate(self.rows, start=1):
            if not {*self.by, *MEASURES} <= set(row) <= {*self.by, *MEASURES, *PAID}:
                raise InputError(f"rows {place}", len(row), f"a record of {[*self.by, *MEASURES]}")
            for name in (*MEASURES, *PAID):
                number = row.get(name)
                if number is not None and (isinstance(number, bool) or not isinstance(number, int | float)):
                    raise InputError(f"rows {place} {name}", type(number).__name__, "a number or nothing")


class Cost(Part, frozen=True, kw_only=True):
    """What the bound on rows left out, or a range moved, in the answers of these names; paid for like an answer.

    ``share`` is of all rows, or of the rows that were used; ``lower`` and ``upper`` hold it 95 % of the time, the times
    in which they are None included: where the number of rows hardly stands out from its noise nothing is said of
    shares, and for the case that something is said there is no promise of its own. ``statement`` says it in words.
    """

    answers: tuple[str, ...]
    kind: Literal["left out", "below", "above", "missing"]
    column: str | None
    share: Probability | None
    lower: Probability | None
    upper: Probability | None
    statement: str


class About(Part, frozen=True, kw_only=True):
    """What its publisher says of a release: what it is, where the table is from, who published it, when, whom to ask.

    The ``date`` is a text that was written down before the table was read: a clock would tell how long that took.
    """

    description: str | None = None
    origin: str | None = None
    publisher: str | None = None
    date: str | None = None
    contact: str | None = None


class ReleaseResult(Part, frozen=True, kw_only=True):
    """All that a release publishes."""

    document: Literal["release result"]
    version: Literal[1]
    title: str | None
    answers: tuple[AnswerDocument, ...]
    certificate: ReleaseCertificate
    costs: tuple[Cost, ...] = ()
    about: About | None = None


def read_certificate(text: str) -> ReleaseCertificate:
    """The certificate in a JSON text; raises ``InputError`` that names the place of what is wrong."""
    return RELEASES.json(text, ReleaseCertificate)


def read_result(text: str) -> ReleaseResult:
    """The result in a JSON text; raises ``InputError`` that names the place of what is wrong."""
    return RELEASES.json(text, ReleaseResult)


def _parallel(name: str, found: tuple[Any, ...], other: tuple[Any, ...]) -> None:
    if len(found) != len(other):
        raise InputError(name, f"{len(found)} numbers", f"a list of {len(other)}, as many as beside it")


# All answers of a release as one table, a line a group; and as CSV, for spreadsheets and for the page itself.

QUESTION, MISSING = "question", "missing"


def results_csv(result: ReleaseResult) -> str:
    """One line a group; texts in quotes, numbers with every digit, nothing where there is nothing.

    A total has no keys. Where a group is that of what is missing, ``missing`` names the columns that it is missing in.
    Texts are escaped for spreadsheets and terminals (``csv_text``): JSON and Parquet hold the exact keys.
    """
    return csv_table(results_columns(result))


def results_columns(result: ReleaseResult) -> dict[str, list[Any]]:
    """The columns of the table of all answers, one value a group."""
    keys = dict.fromkeys(name for answer in result.answers for name in answer.by)
    every = [(answer, row) for answer in result.answers for row in answer.rows]
    paid = [name for name in PAID if any(name in row for _, row in every)]
    missing = [_missing(answer, row) or None for answer, row in every]
    return {
        QUESTION: [answer.name for answer, _ in every],
        **{_key_column(name): [row.get(name) for _, row in every] for name in keys},
        **{name: [row.get(name) for _, row in every] for name in (*MEASURES, *paid)},
        **({MISSING: missing} if any(missing) else {}),
    }


def _missing(answer: AnswerDocument, row: Mapping[str, Any]) -> str:
    """The key columns in which a group is that of what is missing."""
    return ", ".join(name for name in answer.by if row[name] is None)


def _key_column(name: str) -> str:
    """A key column that is called as the column of questions is marked as a key, and so is what looks marked.

    >>> _key_column("question"), _key_column("by question"), _key_column("city")
    ('by question', 'by by question', 'city')
    """
    return f"by {name}" if name in (QUESTION, MISSING) or name.startswith("by ") else name


# What ``tightrope plan`` says: the promise and the errors of a release that has not been paid for.

PLANNED = Reader("planned release", "take what tightrope plan --json prints: planning anew costs nothing")

WOULD_SAY = "all that this plan would say, once released,"


class PlannedAnswer(Asked, frozen=True, kw_only=True):
    """One question, and what its noise will cost."""


class BudgetRow(Part, frozen=True, kw_only=True):
    """What another budget buys: 95 % half-widths by question and, where they depend on it, by rows in the group.

    A half-width of None has no limit.
    A budget that cannot be met has neither ``attack_success`` nor ``answers``.
    """

    epsilon: Size
    delta: Probability
    attack_success: Probability | None
    answers: dict[str, Size | dict[str, Size | None] | None] | None


class PlannedCount(Part, frozen=True, kw_only=True):
    """A count beside the answers of these names, over all groups."""

    answers: tuple[str, ...]
    statistic: str
    half_width_95: Size


class PlannedCosts(Part, frozen=True, kw_only=True):
    """The part of the budget, at most, that tells what bounding and clamping cost, and how exactly."""

    share: str
    counts: tuple[PlannedCount, ...]


class PlannedRelease(Promised, frozen=True, kw_only=True):
    """What would be spent, what it would promise, and how accurate each answer would be. Nothing has been spent."""

    document: Literal["planned release"]
    version: Literal[1]
    title: str | None
    attacker: str
    neighbours: Neighbours
    answers: tuple[PlannedAnswer, ...]
    alternatives: tuple[Alternative, ...]
    table: tuple[BudgetRow, ...] | None
    costs: PlannedCosts | None = None

    def explain(self) -> str:
        """The promise in one paragraph for everybody, and a picture of 100 guesses; every number is rounded up."""
        protected = self.neighbours.protected
        return str(of_release(self.epsilon, self.delta, self.attack_success, protected, WOULD_SAY))
