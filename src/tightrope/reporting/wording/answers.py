"""Answers as displayed: groups in the order of their keys, each with a value and an interval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Context
from typing import Self

from msgspec import structs

from tightrope.documents.escaping import escape_control_chars, range_part_text
from tightrope.documents.numbers import (
    DOWN,
    MISSING,
    TIME_UNITS,
    UP,
    decimals_for,
    fixed_text,
    full_digits,
    rounded_decimal,
    shortest_text,
    time_text,
)
from tightrope.documents.release import MEASURES, PAID, AnswerDocument, ErrorStatement, NoiseUsed, ReleaseResult
from tightrope.reporting.wording.partial_release import (
    Json,
    PartialAnswer,
    PartialErrors,
    PartialNoise,
    PartialRelease,
    stated_number,
)

FEWEST_ON_AN_AXIS = 5  # a numeric axis with fewer groups is mostly empty: a list reads better
_MEASURES = frozenset((*MEASURES, *PAID))
TRUE_AND_FALSE_ROWS = "ones or zeros"
"""The statistic of a proportion, in documents; proportions are shown in percent."""


@dataclass(frozen=True, slots=True)
class Row:
    """One group: its keys, the noisy value (None: suppressed) and the ends of its 95 % interval."""

    keys: tuple[object, ...]
    value: float | None
    lower: float | None
    upper: float | None
    band_labels: Mapping[int, str] = field(default_factory=dict)
    """The labels of the keys that are bands of a range, by position."""
    extra_values: Json = field(default_factory=dict)
    """The additional published values."""
    time_unit: str = ""
    """The unit of values that are shown as dates or instants; empty for numbers."""

    @property
    def half_width(self) -> float | None:
        """The longer side of the interval; None without a value or an end."""
        if self.value is None or self.lower is None or self.upper is None:
            return None
        return max(self.upper - self.value, self.value - self.lower, 0.0)

    @property
    def key_labels(self) -> tuple[str, ...]:
        """The keys as text."""
        return tuple(self.band_labels.get(index) or key_text(key) for index, key in enumerate(self.keys))

    @property
    def sort_key(self) -> tuple[tuple[int, float, str], ...]:
        """The keys for sorting: numbers before texts before no value."""
        ranks: list[tuple[int, float, str]] = []
        for key in self.keys:
            position = stated_number(key)
            if position is not None:
                ranks.append((0, position, ""))
            else:
                ranks.append((2 if key_text(key) == "no value" else 1, 0.0, key_text(key)))
        return tuple(ranks)

    @property
    def rank_range(self) -> str:
        """The ranks that the group can have, as text; empty without ranks.

        >>> Row(("a",), 9.0, 8.0, 10.0, extra_values={"best_rank": 1, "worst_rank": 3}).rank_range
        '1 to 3'
        """
        best, worst = (stated_number(self.extra_values.get(name)) for name in ("best_rank", "worst_rank"))
        if best is None:
            return ""
        if worst is None:
            return f"{best:.0f} or later"
        return f"{best:.0f}" if best == worst else f"{best:.0f} to {worst:.0f}"


@dataclass(frozen=True, slots=True)
class Answer:
    """One question and what was published about it."""

    name: str
    question: str
    meaning: str
    over: str
    """The rows that count, and the largest number of one person's rows."""
    additive: bool
    """True if zero is a natural start of the axis."""
    by: tuple[str, ...]
    discovered: bool | None
    rows: tuple[Row, ...]
    error: ErrorStatement | PartialErrors
    noise: tuple[NoiseUsed | PartialNoise, ...]
    notes: tuple[str, ...]
    title: str = ""
    description: str = ""
    unit: str = ""
    label: str = ""
    kind: str = ""
    time_unit: str = ""
    """The unit of values that are shown as dates or instants; empty for numbers."""
    ranked: bool = False
    """True if the groups are ranked, largest first, rather than ordered by their keys."""
    in_percent: bool = False
    """True if the values are shares in percent."""
    has_bands: bool = False
    """True if a key is a band of a range."""
    k: int | None = None
    """The number of largest groups asked for."""
    clamping: str = ""
    """How clamped values change the answer; empty if none is clamped."""

    @property
    def published_values(self) -> list[float]:
        """Every published value."""
        return [row.value for row in self.rows if row.value is not None]

    @property
    def half_widths(self) -> list[float]:
        """The half-width of every complete interval."""
        return [row.half_width for row in self.rows if row.half_width is not None]

    @property
    def decimal_places(self) -> int:
        """Number of decimals that are meaningful given the noise; 0 if all numbers are integers."""
        ends = [end for row in self.rows for end in (row.value, row.lower, row.upper) if end is not None]
        if all(end.is_integer() for end in ends):
            return 0
        return decimals_for(self.half_widths)

    @property
    def has_numeric_axis(self) -> bool:
        """Return whether the groups are numbers, and enough of them to stand along an axis; bands are bars instead."""
        if self.ranked or self.has_bands or len(self.by) != 1:
            return False
        keys = [stated_number(row.keys[0]) for row in self.rows if row.keys[0] is not None]
        return None not in keys and len(set(keys)) >= FEWEST_ON_AN_AXIS


def key_text(key: object) -> str:
    """Return a key as text.

    >>> key_text(None), key_text(True), key_text(12.0), key_text("a")
    ('no value', 'true', '12', 'a')
    """
    if key is None or key != key:  # noqa: PLR0124 - NaN is the value that differs from itself
        return "no value"
    if isinstance(key, bool):
        return "true" if key else "false"
    if isinstance(key, float):
        return shortest_text(key)
    return escape_control_chars(key) or "(empty)"


def shown_answers(document: ReleaseResult | PartialRelease) -> list[Answer]:
    """Return every answer of a document as displayed, in its order."""
    return [shown_answer(answer) for answer in (*document.answers, *document.comparisons)]


@dataclass(frozen=True, slots=True)
class ValueFormat:
    """How the values of an answer are displayed: with a unit, as dates or instants, or as shares in percent."""

    unit: str
    time_unit: str
    in_percent: bool

    @classmethod
    def for_answer(cls, source: AnswerDocument | PartialAnswer) -> Self:
        """Return the format; shares without a unit of their own are in percent."""
        unit = (source.unit or "").strip()
        are_shares = any(noise.statistic == TRUE_AND_FALSE_ROWS for noise in source.noise)
        if unit in TIME_UNITS:
            return cls("", unit, in_percent=False)
        return cls(unit, "", in_percent=are_shares and not source.unit)

    def scale(self, number: float | None) -> float | None:
        """Return a number as it is displayed."""
        return number if number is None or not self.in_percent else number * 100

    def shown_errors(self, error: ErrorStatement | PartialErrors) -> ErrorStatement | PartialErrors:
        """Return the errors as they are displayed."""
        sizes = [
            structs.replace(
                size,
                expected_absolute_error=self.scale(size.expected_absolute_error),
                half_width_95=self.scale(size.half_width_95),
            )
            for size in error.by_group_size
        ]
        return structs.replace(
            error,
            expected_absolute_error=self.scale(error.expected_absolute_error),
            half_width_95=self.scale(error.half_width_95),
            worst_error=self.scale(error.worst_error),
            by_group_size=tuple(sizes),
        )


def shown_answer(source: AnswerDocument | PartialAnswer) -> Answer:
    """Return one answer as displayed."""
    by, value_format = _key_columns(source), ValueFormat.for_answer(source)
    ranked = any("best_rank" in record for record in source.rows)
    edges_by_name = {**source.bands, **({by[-1]: source.edges} if source.edges and by else {})}
    rows = [_shown_row(record, by, edges_by_name, value_format) for record in source.rows]
    return Answer(
        name=source.name.strip(),
        question=source.question.strip(),
        meaning=source.meaning or "A statistic",
        over=source.over,
        additive=source.additive,
        by=by,
        discovered=source.keys == "discovered" if source.keys else None,
        rows=tuple(rows if ranked else sorted(rows, key=lambda row: row.sort_key)),
        error=value_format.shown_errors(source.error),
        noise=source.noise,
        notes=source.notes,
        title=(source.title or "").strip(),
        description=(source.description or "").strip(),
        unit=value_format.unit,
        time_unit=value_format.time_unit,
        label=source.label.strip(),
        kind=source.kind,
        ranked=ranked,
        in_percent=value_format.in_percent,
        has_bands=bool(source.edges or source.bands),
        k=None if source.k is None else int(source.k),
        clamping=escape_control_chars(source.clamping),
    )


def _key_columns(source: AnswerDocument | PartialAnswer) -> tuple[str, ...]:
    """Return ``by``; if it is missing, every column without a reserved numeric name."""
    if source.by or len(source.rows) <= 1:
        return source.by
    return tuple(dict.fromkeys(name for record in source.rows for name in record if name not in _MEASURES))


def _shown_row(
    record: Json, by: Sequence[str], edges_by_name: Mapping[str, Sequence[object]], value_format: ValueFormat
) -> Row:
    """Return one group as displayed: its bands named by their edges, its measures scaled."""
    keys = tuple(record.get(name) for name in by)
    bands = {
        index: range_part_text(key, edges_by_name[name])
        for index, (name, key) in enumerate(zip(by, keys, strict=True))
        if edges_by_name.get(name)
    }
    charged = {name: record[name] for name in PAID if name in record}
    value, lower, upper = (value_format.scale(stated_number(record.get(name))) for name in MEASURES)
    return Row(keys, value, lower, upper, bands, charged, value_format.time_unit)


# Text next to the value of an answer: where a line meets the axis, and which positions a group can have.

Table = tuple[tuple[str, ...], list[tuple[str, ...]]]
"""Names of columns, and their texts, row by row."""
INTERCEPT = ("intercept", "intercept_lower", "intercept_upper")


def extra_columns(answer: Answer) -> Table:
    """Return the columns after the interval; empty for most kinds."""
    published = {name for row in answer.rows for name in row.extra_values}
    if "intercept" in published:
        return _intercept_columns(answer)
    if "noisy" in published:
        # Least squares changed the value: the raw noisy number stands next to it.
        raw = [stated_number(row.extra_values.get("noisy")) for row in answer.rows]
        digits = 0 if all(number is None or number.is_integer() for number in raw) else answer.decimal_places
        return ("before adjustment",), [(fixed_text(number, digits),) for number in raw]
    if "best_rank" in published:
        return ("rank",), [(row.rank_range,) for row in answer.rows]
    return (), [()] * len(answer.rows)


def _intercept_columns(answer: Answer) -> Table:
    """Return the intercept and its interval, in the digits that are meaningful given its noise."""
    numbers = [tuple(stated_number(row.extra_values.get(name)) for name in INTERCEPT) for row in answer.rows]
    widths = [(upper - lower) / 2 for _, lower, upper in numbers if lower is not None and upper is not None]
    digits = decimals_for(widths)
    return ("intercept", "from", "to"), [
        (fixed_text(at, digits), fixed_text(lower, digits, DOWN), fixed_text(upper, digits, UP))
        for at, lower, upper in numbers
    ]


# A value, its ± and its interval as displayed: they agree in the printed digits.

SUPPRESSED = "suppressed"
LARGEST = 1e15
"""From this size, numbers are printed with their leading digits only, and ± is the longer side."""
EVEN = 0.02
"""Sides that differ by at most this fraction of the longer one are printed as one."""
_WIDE = Context(prec=400)


@dataclass(frozen=True, slots=True)
class RoundedValues:
    """The texts of one group. ``plus_minus`` is "12" for value ± 12, and "+5 −3" if the sides differ."""

    value: str
    plus_minus: str
    lower: str
    upper: str

    @property
    def plus_minus_text(self) -> str:
        """The margin of error as printed after the value."""
        alone = self.plus_minus in ("", MISSING) or self.plus_minus.startswith("+")
        return self.plus_minus if alone else f"± {self.plus_minus}"


def printed_answer_row(answer: Answer, row: Row) -> RoundedValues:
    """Return ``rounded_answer_row`` with the answer's decimals; shares in percent, margins in percentage points."""
    texts = rounded_answer_row(row, answer.decimal_places)
    if not answer.in_percent:
        return texts
    value, lower, upper = (
        text if text in (SUPPRESSED, MISSING) else f"{text} %" for text in (texts.value, texts.lower, texts.upper)
    )
    return replace(texts, value=value, lower=lower, upper=upper)


def rounded_answer_row(row: Row, decimals: int) -> RoundedValues:
    """Return the value rounded, the ends rounded outwards; nearly equal sides are replaced by the longer one.

    >>> rounded_answer_row(Row((), 3.1416, 3.0967, 3.1865), 3)
    RoundedValues(value='3.142', plus_minus='0.046', lower='3.096', upper='3.188')
    >>> rounded_answer_row(Row((), 19723.0, 19720.0, 19726.0, time_unit="days since 1970-01-01"), 0)
    RoundedValues(value='2024-01-01', plus_minus='3 days', lower='2023-12-29', upper='2024-01-04')
    >>> rounded_answer_row(Row((), 0.2, 0.0, 0.5), 1).plus_minus
    '+0.3 −0.2'
    """
    if row.time_unit:
        return _dated_row(row, decimals)
    lower, upper = fixed_text(row.lower, decimals, DOWN), fixed_text(row.upper, decimals, UP)
    if row.value is None:
        return RoundedValues(SUPPRESSED, MISSING, lower, upper)
    value = fixed_text(row.value, decimals)
    if row.lower is None or row.upper is None:
        return RoundedValues(value, MISSING, lower, upper)
    if max(map(abs, (row.value, row.lower, row.upper))) >= LARGEST:
        return RoundedValues(value, fixed_text(row.half_width, decimals, UP), lower, upper)
    middle = rounded_decimal(row.value, decimals)
    below = _WIDE.subtract(middle, rounded_decimal(row.lower, decimals, DOWN))
    above = _WIDE.subtract(rounded_decimal(row.upper, decimals, UP), middle)
    left, right = row.value - row.lower, row.upper - row.value
    if below != above and not abs(right - left) <= EVEN * max(right, left):
        return RoundedValues(value, f"+{full_digits(above)} −{full_digits(below)}", lower, upper)
    side = max(below, above)
    return RoundedValues(
        value, full_digits(side), full_digits(_WIDE.subtract(middle, side)), full_digits(_WIDE.add(middle, side))
    )


def _dated_row(row: Row, decimals: int) -> RoundedValues:
    """Return the texts of a value that is a date or an instant; its margins of error are in days."""
    lower = MISSING if row.lower is None else time_text(row.lower, row.time_unit, "down")
    upper = MISSING if row.upper is None else time_text(row.upper, row.time_unit, "up")
    if row.value is None:
        return RoundedValues(SUPPRESSED, MISSING, lower, upper)
    value = time_text(row.value, row.time_unit)
    if row.lower is None or row.upper is None:
        return RoundedValues(value, MISSING, lower, upper)
    below, above = (fixed_text(side, decimals, UP) for side in (row.value - row.lower, row.upper - row.value))
    return RoundedValues(value, f"{above} days" if below == above else f"+{above} −{below} days", lower, upper)
