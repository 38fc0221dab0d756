"""Answers as they are shown: groups in the order of their keys, each with a value and an interval."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from decimal import Context
from statistics import median

from tightrope.documents.escaping import part_named, printable
from tightrope.documents.numbers import DOWN, MISSING, UP, decimals_for, fixed, plain, rounded
from tightrope.documents.release import MEASURES, PAID
from tightrope.reporting.wording.document import Json, as_number, items, number, object_at, objects_at, text, texts

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
    return [read_answer(source) for source in objects_at(document, "answers")]


def read_answer(source: Json) -> Answer:
    """One answer; where ``by`` does not say what the keys are, every column that is not a number of ours is one."""
    records = objects_at(source, "rows")
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
        error=object_at(source, "error"),
        noise=tuple(objects_at(source, "noise")),
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


# What an answer says beside its value: where a line meets the axis, and which places a group can have.

Table = tuple[tuple[str, ...], list[tuple[str, ...]]]
"""Names of columns, and their texts, row by row."""
INTERCEPT = ("intercept", "intercept_lower", "intercept_upper")


def further(answer: Answer) -> Table:
    """The columns that stand behind the interval; none for most kinds."""
    if any("intercept" in row.paid for row in answer.rows):
        # The intercept and its interval, in the digits that its noise leaves.
        found = [tuple(number(row.paid, name) for name in INTERCEPT) for row in answer.rows]
        widths = [(upper - lower) / 2 for _, lower, upper in found if lower is not None and upper is not None]
        digits = decimals_for(widths)
        return ("at zero", "from", "to"), [
            (fixed(at, digits), fixed(lower, digits, DOWN), fixed(upper, digits, UP)) for at, lower, upper in found
        ]
    if any("best_rank" in row.paid for row in answer.rows):
        return ("place",), [(_place(row),) for row in answer.rows]
    return (), [() for _ in answer.rows]


def _place(row: Row) -> str:
    """Which places of the order a group can have.

    >>> _place(Row(("a",), 9.0, 8.0, 10.0, paid={"best_rank": 1, "worst_rank": 3}))
    '1 to 3'
    """
    best, worst = number(row.paid, "best_rank"), number(row.paid, "worst_rank")
    if best is None:
        return ""
    if worst is None:
        return f"{best:.0f} or later"
    return f"{best:.0f}" if best == worst else f"{best:.0f} to {worst:.0f}"


# A value, its ± and its interval as one reader sees them: in the digits that are shown, they agree.

WITHHELD = "withheld"
LARGEST = 1e15
"""From here on numbers are shown by their leading digits, and ± is the longer side."""
EVEN = 0.02
"""Sides that differ by no more than this share of the longer one are shown as one."""
_WIDE = Context(prec=400)


@dataclass(frozen=True, slots=True)
class Shown:
    """The texts of one group. ``off`` is "12" for value ± 12, and "+5 −3" where the sides differ."""

    value: str
    off: str
    lower: str
    upper: str

    @property
    def within(self) -> str:
        """How far off the value may be, as it stands behind it."""
        alone = self.off in ("", MISSING) or self.off.startswith("+")
        return self.off if alone else f"± {self.off}"


def rounded_row(row: Row, decimals: int) -> Shown:
    """The value rounded, the ends rounded outwards; sides that are nearly even become the longer one.

    >>> rounded_row(Row((), 3.1416, 3.0967, 3.1865), 3)
    Shown(value='3.142', off='0.046', lower='3.096', upper='3.188')
    >>> rounded_row(Row((), 0.2, 0.0, 0.5), 1).off
    '+0.3 −0.2'
    """
    lower, upper = fixed(row.lower, decimals, DOWN), fixed(row.upper, decimals, UP)
    if row.value is None:
        return Shown(WITHHELD, MISSING, lower, upper)
    value = fixed(row.value, decimals)
    if row.lower is None or row.upper is None:
        return Shown(value, MISSING, lower, upper)
    if max(map(abs, (row.value, row.lower, row.upper))) >= LARGEST:
        return Shown(value, fixed(row.half_width, decimals, UP), lower, upper)
    middle = rounded(row.value, decimals)
    below = _WIDE.subtract(middle, rounded(row.lower, decimals, DOWN))
    above = _WIDE.subtract(rounded(row.upper, decimals, UP), middle)
    if below != above and not _even(row.value - row.lower, row.upper - row.value):
        return Shown(value, f"+{plain(above)} −{plain(below)}", lower, upper)
    side = max(below, above)
    return Shown(value, plain(side), plain(_WIDE.subtract(middle, side)), plain(_WIDE.add(middle, side)))


def _even(below: float, above: float) -> bool:
    return abs(above - below) <= EVEN * max(above, below)
