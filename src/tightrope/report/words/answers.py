"""Answers as they are shown: groups in the order of their keys, each with a value and an interval."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from statistics import median

from tightrope.certificates.printable import part_named, printable
from tightrope.certificates.release import MEASURES, PAID
from tightrope.certificates.words.digits import decimals_for
from tightrope.report.words.document import Json, as_number, items, number, part, parts, text, texts

FEWEST_ON_AN_AXIS = 5  # a numeric axis with fewer groups is mostly empty: a list reads better
_MEASURES = frozenset((*MEASURES, *PAID))


@dataclass(frozen=True, slots=True)
class Row:
    """One group: its keys, the noisy value (None: withheld) and the ends of its 95 % interval."""

    keys: tuple[object, ...]
    value: float | None
    lower: float | None
    upper: float | None
    part: str = ""
    """What the last key is called, where it is a part of a range."""
    paid: Json = field(default_factory=dict)
    """What else was paid for."""

    @property
    def half_width(self) -> float | None:
        """The longer side of the interval; None without a value or an end."""
        if self.value is None or self.lower is None or self.upper is None:
            return None
        return max(self.upper - self.value, self.value - self.lower, 0.0)

    @property
    def labels(self) -> tuple[str, ...]:
        """The keys as text."""
        own = tuple(label(key) for key in self.keys)
        return (*own[:-1], self.part) if self.part else own


@dataclass(frozen=True, slots=True)
class Answer:
    """One question and what was published about it."""

    name: str
    question: str
    meaning: str
    over: str
    """Which rows, and how many of one person at most."""
    additive: bool
    """Whether zero is a natural place to start the axis."""
    by: tuple[str, ...]
    discovered: bool | None
    rows: tuple[Row, ...]
    error: Json
    noise: tuple[Json, ...]
    notes: tuple[str, ...]
    title: str = ""
    description: str = ""
    unit: str = ""
    ranked: bool = False
    """Whether the groups stand in an order of their own: the largest first, not by their keys."""

    @property
    def values(self) -> list[float]:
        """Every published value."""
        return [row.value for row in self.rows if row.value is not None]

    @property
    def half_widths(self) -> list[float]:
        """The half-width of every complete interval."""
        return [row.half_width for row in self.rows if row.half_width is not None]

    @property
    def typical_half_width(self) -> float | None:
        """Their median; None where there is none."""
        return median(self.half_widths) if self.half_widths else None

    @property
    def decimals(self) -> int:
        """Digits behind the point that the noise leaves meaning; none where all numbers are whole."""
        ends = [end for row in self.rows for end in (row.value, row.lower, row.upper) if end is not None]
        if all(end.is_integer() for end in ends):
            return 0
        return decimals_for(self.half_widths)

    @property
    def withheld(self) -> int:
        """How many groups show no value."""
        return sum(row.value is None for row in self.rows)

    @property
    def on_an_axis(self) -> bool:
        """Whether the groups are numbers, and enough of them to stand along an axis."""
        if self.ranked or len(self.by) != 1:
            return False
        keys = [as_number(row.keys[0]) for row in self.rows if row.keys[0] is not None]
        return None not in keys and len(set(keys)) >= FEWEST_ON_AN_AXIS


def label(key: object) -> str:
    """A key as text.

    >>> label(None), label(True), label(12.0), label("a")
    ('no value', 'true', '12', 'a')
    """
    if key is None or key != key:  # noqa: PLR0124 - NaN is the value that differs from itself
        return "no value"
    if isinstance(key, bool):
        return "true" if key else "false"
    if isinstance(key, float) and key.is_integer() and abs(key) < 1e15:
        return str(int(key))
    return printable(key) or "(empty)"


def read_answers(document: Json) -> list[Answer]:
    """Every answer of a document, in its order."""
    return [read_answer(source) for source in parts(document, "answers")]


def read_answer(source: Json) -> Answer:
    """One answer; where ``by`` does not say what the keys are, every column that is not a number of ours is one."""
    records = parts(source, "rows")
    by = tuple(name for name in items(source, "by") if isinstance(name, str))  # as rows have it: blanks belong to it
    if not by and len(records) > 1:
        by = tuple(dict.fromkeys(name for record in records for name in record if name not in _MEASURES))
    keys = text(source, "keys")
    edges, ranked = items(source, "edges"), any("best_rank" in record for record in records)
    rows = tuple(_row(record, by, edges) for record in records)
    return Answer(
        name=text(source, "name"),
        question=text(source, "question"),
        meaning=text(source, "meaning") or "A statistic",
        over=text(source, "over"),
        additive=source.get("additive") is True,
        by=by,
        discovered=keys == "discovered" if keys or items(source, "keys") else None,
        rows=rows if ranked else tuple(sorted(rows, key=_order)),
        error=part(source, "error"),
        noise=tuple(parts(source, "noise")),
        notes=tuple(texts(source, "notes")),
        title=text(source, "title"),
        description=text(source, "description"),
        unit=text(source, "unit"),
        ranked=ranked,
    )


def _row(record: Json, by: Iterable[str], edges: Sequence[object]) -> Row:
    keys = tuple(record.get(name) for name in by)
    part = part_named(keys[-1], edges) if edges and keys else ""
    paid = {name: record[name] for name in PAID if name in record}
    return Row(keys, number(record, "value"), number(record, "lower"), number(record, "upper"), part, paid)


def _order(row: Row) -> tuple[tuple[int, float, str], ...]:
    """Numbers before texts before no value."""
    return tuple(_rank(key) for key in row.keys)


def _rank(key: object) -> tuple[int, float, str]:
    position = as_number(key)
    if position is not None:
        return (0, position, "")
    return (2 if label(key) == "no value" else 1, 0.0, label(key))
