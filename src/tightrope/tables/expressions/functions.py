"""The functions of the expression language by name, with their arguments and nodes; used by texts and by Python."""

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

MAX_PREFIX = 1_000
"""Most characters of ``prefix``."""
UPPERCASE_LETTERS = "".join(
    letter for letter in map(chr, range(ord("A"), 0x530)) if letter.lower() != letter and len(letter.lower()) == 1
)
LOWERCASE_LETTERS = "".join(letter.lower() for letter in UPPERCASE_LETTERS)
"""Converted one by one: Python's ``lower`` of the whole text would turn a Σ at its end into ς."""

CLOCK_TABLE_START, CLOCK_TABLE_END = datetime.datetime(1970, 1, 1), datetime.datetime(2050, 1, 1)
"""Clock changes between these are followed; before and after, offsets from UTC stay as they are at these instants."""
_DAY = datetime.timedelta(days=1)
_SECOND = datetime.timedelta(seconds=1)
_SHIFTABLE_RANGE = datetime.datetime(1, 1, 2), datetime.datetime(9999, 12, 30)
"""Instants outside are missing in local time, because an offset might leave the calendar."""
ClockChange = tuple[datetime.datetime, int]
"""An instant (UTC), and the number of seconds by which clocks are ahead of UTC from then on."""

MAX_CELL_PARTS = 10_000
"""Most parts of ``cell``."""


@final
@dataclass(frozen=True)
class Lower(ExpressionTree):
    """A text in lower case: Latin, Greek and Cyrillic letters are converted one by one.

    Other letters stay as they are, because engines disagree about them; so do letters whose lower case has two.
    """

    part: ExpressionTree

    @property
    def child_nodes(self) -> tuple[ExpressionTree, ...]:
        """The text."""
        return (self.part,)

    @property
    def max_value_bytes(self) -> int:
        """The size if each character grows from two bytes to three."""
        return self.part.max_value_bytes * 3 // 2

    @property
    def creates_text(self) -> bool:
        """True: the result is a new text."""
        return True

    def __str__(self) -> str:
        return f"lower({self.part})"

    def infer_facts(self, schema: Schema) -> ValueFacts:
        """Return the facts of a text."""
        return _check_text(self.part, "lower", schema)

    def to_engine_column(self, rows: SourceRows) -> ir.Column:
        """Translate by our own table of letters."""
        return self.part.to_engine_column(rows).translate(UPPERCASE_LETTERS, LOWERCASE_LETTERS)


@final
@dataclass(frozen=True)
class Prefix(ExpressionTree):
    """The first characters of a text, or all of it if shorter: the region of a postcode, the chapter of a code.

    Characters are code points, as in Python: a separate accent counts.
    """

    part: ExpressionTree
    letters: Value

    def __post_init__(self) -> None:
        if not (self.letters.kind == "integer" and 1 <= int(self.letters.value) <= MAX_PREFIX):
            raise InputError("prefix", str(self.letters), f"prefix(text, letters) with 1 to {MAX_PREFIX:,} letters")
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
        """True: the result is a new text."""
        return True

    def __str__(self) -> str:
        return f"prefix({self.part}, {self.letters})"

    def infer_facts(self, schema: Schema) -> ValueFacts:
        """Return the facts of a text."""
        return _check_text(self.part, "prefix", schema)

    def to_engine_column(self, rows: SourceRows) -> ir.Column:
        """Compute it in the engine."""
        return self.part.to_engine_column(rows).left(int(self.letters.value))


def _check_text(part: ExpressionTree, function: str, schema: Schema) -> ValueFacts:
    kind = part.infer_facts(schema).kind
    if kind != "text":
        raise InputError("expression", f"{part} ({kind})", f"a text for {function}")
    return ValueFacts("text")


@final
@dataclass(frozen=True)
class Local(ExpressionTree):
    """The local time in a time zone at an instant; an instant without a zone is taken as UTC.

    Offsets come from ``clock_changes``, Python's zones between 1970 and 2050, so that every engine gives the same time.
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
        """The length of the query, in which each clock change is compared with the instant."""
        return (1 + len(clock_changes(str(self.zone.value)))) * (2 + self.part.query_length)

    def __str__(self) -> str:
        return f"local({self.part}, {self.zone})"

    def infer_facts(self, schema: Schema) -> ValueFacts:
        """Return the facts of an instant without a zone."""
        kind = self.part.infer_facts(schema).kind
        if kind != "timestamp":
            remedy = "a day has no time of day" if kind == "date" else "declare its type if it comes from a CSV file"
            raise InputError("expression", f"{self.part} ({kind})", "a timestamp for local", remedy)
        return ValueFacts("timestamp")

    def to_engine_column(self, rows: SourceRows) -> ir.Column:
        """Add the offset, found by binary search in log₂(number of changes) comparisons a row."""
        ibis, instant = load_library("ibis"), self.part.to_engine_column(rows)
        local_time = instant + _clock_offset(instant, clock_changes(str(self.zone.value)))
        shiftable = (instant >= ibis.literal(_SHIFTABLE_RANGE[0])) & (instant < ibis.literal(_SHIFTABLE_RANGE[1]))
        return ibis.ifelse(shiftable, local_time, ibis.null(local_time.type()))


def _clock_offset(instant: ir.Column, changes: Sequence[ClockChange]) -> ir.Column:
    """Return the interval by which clocks are ahead of UTC at an instant; before all changes, that of the first."""
    ibis = load_library("ibis")
    if len(changes) == 1:
        return ibis.interval(seconds=changes[0][1])
    half = len(changes) // 2
    is_later = instant >= ibis.literal(changes[half][0])
    return ibis.ifelse(is_later, _clock_offset(instant, changes[half:]), _clock_offset(instant, changes[:half]))


@lru_cache(maxsize=64)
def clock_changes(zone: str) -> tuple[ClockChange, ...]:
    """Return the clock changes of a zone; the first entry is the offset at ``CLOCK_TABLE_START``.

    Raises ``InputError`` for a zone that Python does not have.

    >>> [(at.date().isoformat(), ahead // 3600) for at, ahead in clock_changes("Europe/Berlin")[:3]]
    [('1970-01-01', 1), ('1980-04-06', 2), ('1980-09-28', 1)]
    """
    try:
        clock = ZoneInfo(zone)
    except (ValueError, OSError, KeyError):  # no such file, no such zone, or a folder
        raise InputError("zone", zone, "a time zone such as 'Europe/Berlin' or 'America/New_York'") from None
    changes, day = [(CLOCK_TABLE_START, _offset_seconds(clock, CLOCK_TABLE_START))], CLOCK_TABLE_START
    while day < CLOCK_TABLE_END:
        if _offset_seconds(clock, day + _DAY) != changes[-1][1]:
            # Find the second of this day at which the offset changes.
            before = changes[-1][1]
            low, high = day, day + _DAY
            while high - low > _SECOND:
                middle = low + _SECOND * ((high - low) // _SECOND // 2)
                low, high = (middle, high) if _offset_seconds(clock, middle) == before else (low, middle)
            changes.append((high, _offset_seconds(clock, high)))
        day += _DAY
    return tuple(changes)


def _offset_seconds(clock: ZoneInfo, instant: datetime.datetime) -> int:
    ahead = instant.replace(tzinfo=datetime.UTC).astimezone(clock).utcoffset() or datetime.timedelta()
    return ahead // _SECOND


@final
@dataclass(frozen=True)
class Cell(ExpressionTree):
    """⌊(clip(x, lower, upper) − lower) / width⌋, at most ``cells`` − 1, in doubles: the same bits on every engine."""

    part: ExpressionTree
    lower: Value
    upper: Value
    cells: Value
    operand_mentions = 2

    def __post_init__(self) -> None:
        are_numbers = self.lower.kind in NUMBERS and self.upper.kind in NUMBERS and self.cells.kind == "integer"
        if not are_numbers or not (1 <= self.cell_count <= MAX_CELL_PARTS and self._has_valid_width):
            shown = f"{self.lower}, {self.upper}, {self.cells}"
            raise InputError("cell", shown, f"cell(x, lowest, highest, parts) with at most {MAX_CELL_PARTS:,} parts")
        super().__post_init__()

    @property
    def cell_count(self) -> int:
        """The number of parts."""
        return int(self.cells.value)

    @property
    def _has_valid_width(self) -> bool:
        """Return whether the width, and the range divided by it, are accurate enough as doubles."""
        length = float(self.upper.value) - float(self.lower.value)
        return 0 < length < math.inf and self.cell_width > 0 and length / self.cell_width < 2 * MAX_CELL_PARTS

    @property
    def cell_width(self) -> float:
        """The width of one part."""
        return (float(self.upper.value) - float(self.lower.value)) / self.cell_count

    @property
    def child_nodes(self) -> tuple[ExpressionTree, ...]:
        """The value, the ends of the range, and the number of parts."""
        return self.part, self.lower, self.upper, self.cells

    def __str__(self) -> str:
        return f"cell({self.part}, {self.lower}, {self.upper}, {self.cells})"

    def infer_facts(self, schema: Schema) -> ValueFacts:
        """Return the facts of the integers 0 to ``cells`` − 1."""
        numeric_kind((self.part,), schema)
        return ValueFacts("integer", 0.0, float(self.cell_count - 1), tuple(range(self.cell_count)))

    def to_engine_column(self, rows: SourceRows) -> ir.Column:
        """Compute the number of the part; missing values stay missing."""
        ibis, x = load_library("ibis"), self.part.to_engine_column(rows).cast("float64")
        low, high = double_literal(float(self.lower.value)), double_literal(float(self.upper.value))
        clipped = ibis.least(ibis.greatest(x, low), high)
        cell = ((clipped - low) / double_literal(self.cell_width)).floor().cast("int64")
        return ibis.ifelse(x.notnull(), ibis.least(cell, self.cell_count - 1), ibis.null("int64"))


LiteralList = tuple[Value, ...]
Argument = ExpressionTree | LiteralList | None
"""An operand, a list of literals, or None for a missing value."""


@dataclass(frozen=True, slots=True)
class LanguageFunction:
    """A function of the language.

    ``usage`` shows how it is written; ``make_node`` gets arguments whose number and form have been checked.
    """

    usage: str
    make_node: Callable[..., ExpressionTree]
    min_arguments: int = 1
    max_arguments: int | None = 1
    takes_list: bool = False
    """True if the last argument is a list of literals."""

    def __call__(self, *arguments: Argument) -> ExpressionTree:
        """Return the node of a call; raises ``InputError`` that shows the usage."""
        number_fits = self.min_arguments <= len(arguments) and (
            self.max_arguments is None or len(arguments) <= self.max_arguments
        )
        operands = arguments[:-1] if self.takes_list else arguments
        forms_fit = all(isinstance(part, ExpressionTree) for part in operands) or self.make_node is _make_case
        if not number_fits or not forms_fit or (self.takes_list and not isinstance(arguments[-1], tuple)):
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
    """Return the node of a function whose arguments after the first must be literals."""
    if not all(isinstance(literal, Value) for literal in literals):
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
