"""The functions of the language, by name: what they take, and the node that they make. Text and Python share them."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, final
from zoneinfo import ZoneInfo

from tightrope.errors import InputError
from tightrope.tables.engine_calls import load_library
from tightrope.tables.expressions.arithmetic import Absolute, Clip, Extreme, numeric_kind
from tightrope.tables.expressions.conditions import UNITS, Calendar, Case, make_cut
from tightrope.tables.expressions.leaves import ColumnRef, Value, double_literal
from tightrope.tables.expressions.tree import NUMBERS, ExpressionTree, SourceRows, ValueFacts
from tightrope.tables.schema import Schema

if TYPE_CHECKING:
    import ibis.expr.types as ir

# Texts made of a text.

LONGEST_PREFIX = 1_000


@final
@dataclass(frozen=True)
class Lower(ExpressionTree):
    """A text in lower case: Latin, Greek and Cyrillic letters, one by one.

    Engines disagree about the others, and about letters that become two.
    """

    part: ExpressionTree

    @property
    def child_nodes(self) -> tuple[ExpressionTree, ...]:
        """The text."""
        return (self.part,)

    @property
    def max_value_bytes(self) -> int:
        """Characters of two bytes may become three."""
        return self.part.max_value_bytes * 3 // 2

    @property
    def creates_text(self) -> bool:
        """Always."""
        return True

    def __str__(self) -> str:
        return f"lower({self.part})"

    def infer_facts(self, schema: Schema) -> ValueFacts:
        """A text."""
        return _check_text(self.part, "lower", schema)

    def to_engine_column(self, rows: SourceRows) -> ir.Column:
        """Character by character, from our own table."""
        return self.part.to_engine_column(rows).translate(LARGEST_CUT, LARGE_IN_SMALL)


@final
@dataclass(frozen=True)
class Prefix(ExpressionTree):
    """The first characters of a text, or all of it if shorter: the region of a postcode, the chapter of a code.

    Characters are code points, as in Python: a separate accent counts.
    """

    part: ExpressionTree
    letters: Value

    def __post_init__(self) -> None:
        if not (self.letters.kind == "integer" and 1 <= int(self.letters.value) <= LONGEST_PREFIX):
            raise InputError("prefix", str(self.letters), f"prefix(text, letters) with 1 to {LONGEST_PREFIX:,} letters")
        super().__post_init__()

    @property
    def child_nodes(self) -> tuple[ExpressionTree, ...]:
        """The text and the number."""
        return self.part, self.letters

    @property
    def max_value_bytes(self) -> int:
        """Up to four bytes a character."""
        return min(4 * int(self.letters.value), self.part.max_value_bytes)

    @property
    def creates_text(self) -> bool:
        """Always."""
        return True

    def __str__(self) -> str:
        return f"prefix({self.part}, {self.letters})"

    def infer_facts(self, schema: Schema) -> ValueFacts:
        """A text."""
        return _check_text(self.part, "prefix", schema)

    def to_engine_column(self, rows: SourceRows) -> ir.Column:
        """By the engine."""
        return self.part.to_engine_column(rows).left(int(self.letters.value))


def _check_text(part: ExpressionTree, function: str, schema: Schema) -> ValueFacts:
    kind = part.infer_facts(schema).kind
    if kind != "text":
        raise InputError("expression", f"{part} ({kind})", f"a text for {function}")
    return ValueFacts("text")


LARGEST_CUT = "".join(
    letter for letter in map(chr, range(ord("A"), 0x530)) if letter.lower() != letter and len(letter.lower()) == 1
)
LARGE_IN_SMALL = "".join(letter.lower() for letter in LARGEST_CUT)  # one by one: at a word's end Σ would become ς

# Instants as the clock of a place shows them.

FIRST, LAST = datetime.datetime(1970, 1, 1), datetime.datetime(2050, 1, 1)
"""Clocks that are changed between these are followed; before and after, they stay as they are there."""
_DAY = datetime.timedelta(days=1)
_SECOND = datetime.timedelta(seconds=1)
_NEAR = datetime.datetime(1, 1, 2), datetime.datetime(9999, 12, 30)
"""Beyond, an hour more or less may leave the calendar: such instants are missing."""
Change = tuple[datetime.datetime, int]
"""From this instant (UTC) on, clocks are this many seconds ahead."""


@final
@dataclass(frozen=True)
class Local(ExpressionTree):
    """The local time in a time zone at an instant; instants without a zone are in UTC.

    The rule is our own table, from the zones of Python, so that every engine has the same one: clocks between 1970
    and 2050.
    """

    part: ExpressionTree
    zone: Value

    def __post_init__(self) -> None:
        clock_changes(str(self.zone.value) if self.zone.kind == "text" else "")
        super().__post_init__()

    @property
    def child_nodes(self) -> tuple[ExpressionTree, ...]:
        """The instant and the zone."""
        return self.part, self.zone

    @property
    def query_length(self) -> int:
        """Each change of the clock is compared with the instant."""
        return (1 + len(clock_changes(str(self.zone.value)))) * (2 + self.part.query_length)

    def __str__(self) -> str:
        return f"local({self.part}, {self.zone})"

    def infer_facts(self, schema: Schema) -> ValueFacts:
        """An instant."""
        kind = self.part.infer_facts(schema).kind
        if kind != "timestamp":
            remedy = "a day has no time of day" if kind == "date" else "of a CSV file, declare its type"
            raise InputError("expression", f"{self.part} ({kind})", "a timestamp for local", remedy)
        return ValueFacts("timestamp")

    def to_engine_column(self, rows: SourceRows) -> ir.Column:
        """By halves, as few comparisons a row as there are digits in the number of changes."""
        ibis, own = load_library("ibis"), self.part.to_engine_column(rows)
        found = own + _clock_offset(own, clock_changes(str(self.zone.value)))
        near = (own >= ibis.literal(_NEAR[0])) & (own < ibis.literal(_NEAR[1]))
        return ibis.ifelse(near, found, ibis.null(found.type()))


def _clock_offset(own: ir.Column, known: Sequence[Change]) -> ir.Column:
    """The interval by which clocks are ahead at an instant, at or after the first of these changes."""
    ibis = load_library("ibis")
    if len(known) == 1:
        return ibis.interval(seconds=known[0][1])
    half = len(known) // 2
    later = own >= ibis.literal(known[half][0])
    return ibis.ifelse(later, _clock_offset(own, known[half:]), _clock_offset(own, known[:half]))


@lru_cache(maxsize=64)
def clock_changes(zone: str) -> tuple[Change, ...]:
    """When clocks of a zone are changed, and to what, the first at ``FIRST``; ``InputError`` for no zone of Python's.

    >>> [(at.date().isoformat(), ahead // 3600) for at, ahead in clock_changes("Europe/Berlin")[:3]]
    [('1970-01-01', 1), ('1980-04-06', 2), ('1980-09-28', 1)]
    """
    try:
        clock = ZoneInfo(zone)
    except (ValueError, OSError, KeyError):  # no file, no key, a folder
        raise InputError("zone", zone, "a time zone such as 'Europe/Berlin' or 'America/New_York'") from None
    found, day = [(FIRST, _offset_seconds(clock, FIRST))], FIRST
    while day < LAST:
        if _offset_seconds(clock, day + _DAY) != found[-1][1]:
            # The second of this day from which on clocks are no longer `before` ahead.
            before = found[-1][1]
            low, high = day, day + _DAY
            while high - low > _SECOND:
                middle = low + _SECOND * ((high - low) // _SECOND // 2)
                low, high = (middle, high) if _offset_seconds(clock, middle) == before else (low, middle)
            found.append((high, _offset_seconds(clock, high)))
        day += _DAY
    return tuple(found)


def _offset_seconds(clock: ZoneInfo, at: datetime.datetime) -> int:
    ahead = at.replace(tzinfo=datetime.UTC).astimezone(clock).utcoffset() or datetime.timedelta()
    return ahead // _SECOND


# A range in equal parts: the number of the part that a value lies in, for counts over fine grids.

MOST_PARTS = 10_000


@final
@dataclass(frozen=True)
class Cell(ExpressionTree):
    """⌊(clip(x, lower, upper) − lower) / width⌋, at most ``cells`` − 1, in doubles: the same bits on every engine."""

    part: ExpressionTree
    lower: Value
    upper: Value
    cells: Value
    mentions = 2

    def __post_init__(self) -> None:
        numbers = self.lower.kind in NUMBERS and self.upper.kind in NUMBERS and self.cells.kind == "integer"
        if not numbers or not (1 <= self.cell_count <= MOST_PARTS and self._has_valid_width):
            shown = f"{self.lower}, {self.upper}, {self.cells}"
            raise InputError("cell", shown, f"cell(x, lowest, highest, parts) with at most {MOST_PARTS:,} parts")
        super().__post_init__()

    @property
    def cell_count(self) -> int:
        """The number of parts."""
        return int(self.cells.value)

    @property
    def _has_valid_width(self) -> bool:
        """Return whether doubles can hold the width, and the range in widths."""
        length = float(self.upper.value) - float(self.lower.value)
        return 0 < length < math.inf and self.cell_width > 0 and length / self.cell_width < 2 * MOST_PARTS

    @property
    def cell_width(self) -> float:
        """Of one part."""
        return (float(self.upper.value) - float(self.lower.value)) / self.cell_count

    @property
    def child_nodes(self) -> tuple[ExpressionTree, ...]:
        """The number, its range, and how many parts that has."""
        return self.part, self.lower, self.upper, self.cells

    def __str__(self) -> str:
        return f"cell({self.part}, {self.lower}, {self.upper}, {self.cells})"

    def infer_facts(self, schema: Schema) -> ValueFacts:
        """0 to cells − 1."""
        numeric_kind((self.part,), schema)
        return ValueFacts("integer", 0.0, float(self.cell_count - 1), tuple(range(self.cell_count)))

    def to_engine_column(self, rows: SourceRows) -> ir.Column:
        """Missing where the number is."""
        ibis, x = load_library("ibis"), self.part.to_engine_column(rows).cast("float64")
        low, high = double_literal(float(self.lower.value)), double_literal(float(self.upper.value))
        clipped = ibis.least(ibis.greatest(x, low), high)
        number = ((clipped - low) / double_literal(self.cell_width)).floor().cast("int64")
        return ibis.ifelse(x.notnull(), ibis.least(number, self.cell_count - 1), ibis.null("int64"))


Listed = tuple[Value, ...]
Argument = ExpressionTree | Listed | None
"""A part, a list of literals, or the word None."""


@dataclass(frozen=True, slots=True)
class LanguageFunction:
    """``usage`` shows how it is written; ``make_node`` takes arguments of the right number and kind."""

    usage: str
    make_node: Callable[..., ExpressionTree]
    min_arguments: int = 1
    max_arguments: int | None = 1
    takes_list: bool = False
    """True if the last argument is a list of literals."""

    def __call__(self, *arguments: Argument) -> ExpressionTree:
        """The node; raises ``InputError`` that shows the usage."""
        many = self.min_arguments <= len(arguments) and (
            self.max_arguments is None or len(arguments) <= self.max_arguments
        )
        plain = arguments[:-1] if self.takes_list else arguments
        fits = all(isinstance(part, ExpressionTree) for part in plain) or self.make_node is _make_case
        if not many or not fits or (self.takes_list and not isinstance(arguments[-1], tuple)):
            raise InputError("expression", f"{len(arguments)} arguments", self.usage)
        return self.make_node(*arguments)


def _make_case(*arguments: ExpressionTree | None) -> Case:
    tests, values = arguments[:-1:2], arguments[1:-1:2]
    if len(arguments) % 2 == 0 or not all(isinstance(test, ExpressionTree) for test in tests):
        raise InputError("case", f"{len(arguments)} arguments", FUNCTIONS["case"].usage)
    return Case(tuple(test for test in tests if test is not None), (*values, arguments[-1]))


def _make_column(name: ExpressionTree) -> ColumnRef:
    if not (isinstance(name, Value) and isinstance(name.value, str)):
        raise InputError("column", str(name), FUNCTIONS["column"].usage)
    return ColumnRef(name.value)


def _make_with_literals(
    function: str, make_node: Callable[..., ExpressionTree], part: ExpressionTree, *literals: ExpressionTree
) -> ExpressionTree:
    """The node of a function all of whose arguments but the first are literals."""
    if not all(isinstance(own, Value) for own in literals):
        raise InputError(function, ", ".join(map(str, literals)), FUNCTIONS[function].usage)
    return make_node(part, *literals)


def _make_extreme(largest: bool, *parts: ExpressionTree) -> Extreme:
    return Extreme(largest, parts)


FUNCTIONS: dict[str, LanguageFunction] = {
    "abs": LanguageFunction("abs(x)", Absolute),
    "min": LanguageFunction("min(x, y, ...)", partial(_make_extreme, False), 2, None),
    "max": LanguageFunction("max(x, y, ...)", partial(_make_extreme, True), 2, None),
    "clip": LanguageFunction(
        "clip(x, lowest, highest) with two numbers", partial(_make_with_literals, "clip", Clip), 3, 3
    ),
    "cut": LanguageFunction("cut(x, [a, b, ...]) with rising numbers or days", make_cut, 2, 2, takes_list=True),
    "cell": LanguageFunction(
        "cell(x, lowest, highest, parts) with two numbers and how many parts",
        partial(_make_with_literals, "cell", Cell),
        4,
        4,
    ),
    "case": LanguageFunction("case(condition, value, ..., otherwise)", _make_case, 3, None),
    "lower": LanguageFunction("lower(text)", Lower),
    "prefix": LanguageFunction(
        "prefix(text, letters) with a whole number", partial(_make_with_literals, "prefix", Prefix), 2, 2
    ),
    "local": LanguageFunction("local(instant, 'Europe/Berlin')", partial(_make_with_literals, "local", Local), 2, 2),
    "column": LanguageFunction('column("a name")', _make_column),
    **{unit: LanguageFunction(f"{unit}(day or instant)", partial(Calendar, unit)) for unit in UNITS},
}
