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
from tightrope.tables.engine_calls import load
from tightrope.tables.expressions.arithmetic import Absolute, Clip, Extreme, numeric
from tightrope.tables.expressions.conditions import UNITS, Calendar, Case, cut
from tightrope.tables.expressions.leaves import Column, Value, double
from tightrope.tables.expressions.tree import NUMBERS, Facts, Rows, Tree
from tightrope.tables.schema import Schema

if TYPE_CHECKING:
    import ibis.expr.types as ir

# Texts made of a text.

LONGEST_PREFIX = 1_000


@final
@dataclass(frozen=True)
class Lower(Tree):
    """A text in small letters: those of the Latin, Greek and Cyrillic alphabets, one by one.

    Engines disagree about the others, and about letters that become two.
    """

    part: Tree

    @property
    def operands(self) -> tuple[Tree, ...]:
        """The text."""
        return (self.part,)

    @property
    def longest(self) -> int:
        """Letters of two bytes may become letters of three."""
        return self.part.longest * 3 // 2

    @property
    def made_anew(self) -> bool:
        """Always."""
        return True

    def __str__(self) -> str:
        return f"lower({self.part})"

    def facts(self, schema: Schema) -> Facts:
        """A text."""
        return _text(self.part, "lower", schema)

    def compiled(self, rows: Rows) -> ir.Column:
        """Letter by letter, by a table of ours."""
        return self.part.compiled(rows).translate(LARGEST_CUT, LARGE_IN_SMALL)


@final
@dataclass(frozen=True)
class Prefix(Tree):
    """The first letters of a text, all of it where it has fewer: the region of a postcode, the chapter of a code.

    Letters are code points, as in Python: an accent that is a letter of its own counts.
    """

    part: Tree
    letters: Value

    def __post_init__(self) -> None:
        if not (self.letters.kind == "integer" and 1 <= int(self.letters.value) <= LONGEST_PREFIX):
            raise InputError("prefix", str(self.letters), f"prefix(text, letters) with 1 to {LONGEST_PREFIX:,} letters")
        super().__post_init__()

    @property
    def operands(self) -> tuple[Tree, ...]:
        """The text and the number."""
        return self.part, self.letters

    @property
    def longest(self) -> int:
        """Up to four bytes a letter."""
        return min(4 * int(self.letters.value), self.part.longest)

    @property
    def made_anew(self) -> bool:
        """Always."""
        return True

    def __str__(self) -> str:
        return f"prefix({self.part}, {self.letters})"

    def facts(self, schema: Schema) -> Facts:
        """A text."""
        return _text(self.part, "prefix", schema)

    def compiled(self, rows: Rows) -> ir.Column:
        """By the engine."""
        return self.part.compiled(rows).left(int(self.letters.value))


def _text(part: Tree, function: str, schema: Schema) -> Facts:
    kind = part.facts(schema).kind
    if kind != "text":
        raise InputError("expression", f"{part} ({kind})", f"a text for {function}")
    return Facts("text")


def _large() -> str:
    letters = map(chr, range(ord("A"), 0x530))
    return "".join(letter for letter in letters if letter.lower() != letter and len(letter.lower()) == 1)


LARGEST_CUT = _large()
LARGE_IN_SMALL = "".join(letter.lower() for letter in LARGEST_CUT)  # one by one: at a word's end Σ would become ς

# Instants as the clock of a place shows them.

FIRST, LAST = datetime.datetime(1970, 1, 1), datetime.datetime(2050, 1, 1)
"""Clocks that are changed between these are followed; before and after, they stay as they are there."""
_DAY = datetime.timedelta(days=1)
_SECOND = datetime.timedelta(seconds=1)
_NEAR = datetime.datetime(1, 1, 2), datetime.datetime(9999, 12, 30)
"""Beyond, an hour more or less may leave the calendar: such instants are missing."""
Change = tuple[datetime.datetime, int]
"""From this instant (UTC) on, clocks are so many seconds ahead."""


@final
@dataclass(frozen=True)
class Local(Tree):
    """What clocks in a time zone show at an instant, which is taken for UTC where it has no zone.

    The rule is a table of ours, from the zones of Python, so that every engine has the same one: clocks between 1970
    and 2050.
    """

    part: Tree
    zone: Value

    def __post_init__(self) -> None:
        changes(str(self.zone.value) if self.zone.kind == "text" else "")
        super().__post_init__()

    @property
    def operands(self) -> tuple[Tree, ...]:
        """The instant and the zone."""
        return self.part, self.zone

    @property
    def weight(self) -> int:
        """Each change of the clock is compared with the instant."""
        return (1 + len(changes(str(self.zone.value)))) * (2 + self.part.weight)

    def __str__(self) -> str:
        return f"local({self.part}, {self.zone})"

    def facts(self, schema: Schema) -> Facts:
        """An instant."""
        kind = self.part.facts(schema).kind
        if kind != "timestamp":
            remedy = "a day has no time of day" if kind == "date" else "of a CSV file, declare its type"
            raise InputError("expression", f"{self.part} ({kind})", "a timestamp for local", remedy)
        return Facts("timestamp")

    def compiled(self, rows: Rows) -> ir.Column:
        """By halves, as few comparisons a row as there are digits in the number of changes."""
        ibis, own = load("ibis"), self.part.compiled(rows)
        found = own + _ahead(own, changes(str(self.zone.value)))
        near = (own >= ibis.literal(_NEAR[0])) & (own < ibis.literal(_NEAR[1]))
        return ibis.ifelse(near, found, ibis.null(found.type()))


def _ahead(own: ir.Column, known: Sequence[Change]) -> ir.Column:
    """The interval by which clocks are ahead at an instant, at or after the first of these changes."""
    ibis = load("ibis")
    if len(known) == 1:
        return ibis.interval(seconds=known[0][1])
    half = len(known) // 2
    later = own >= ibis.literal(known[half][0])
    return ibis.ifelse(later, _ahead(own, known[half:]), _ahead(own, known[:half]))


@lru_cache(maxsize=64)
def changes(zone: str) -> tuple[Change, ...]:
    """When clocks of a zone are changed, and to what, the first at ``FIRST``; ``InputError`` for no zone of Python's.

    >>> [(at.date().isoformat(), ahead // 3600) for at, ahead in changes("Europe/Berlin")[:3]]
    [('1970-01-01', 1), ('1980-04-06', 2), ('1980-09-28', 1)]
    """
    try:
        clock = ZoneInfo(zone)
    except (ValueError, OSError, KeyError):  # no file, no key, a folder
        raise InputError("zone", zone, "a time zone such as 'Europe/Berlin' or 'America/New_York'") from None
    found, day = [(FIRST, _seconds(clock, FIRST))], FIRST
    while day < LAST:
        if _seconds(clock, day + _DAY) != found[-1][1]:
            # The second of this day from which on clocks are no longer `before` ahead.
            before = found[-1][1]
            low, high = day, day + _DAY
            while high - low > _SECOND:
                middle = low + _SECOND * ((high - low) // _SECOND // 2)
                low, high = (middle, high) if _seconds(clock, middle) == before else (low, middle)
            found.append((high, _seconds(clock, high)))
        day += _DAY
    return tuple(found)


def _seconds(clock: ZoneInfo, at: datetime.datetime) -> int:
    ahead = at.replace(tzinfo=datetime.UTC).astimezone(clock).utcoffset() or datetime.timedelta()
    return ahead // _SECOND


# A range in equal parts: the number of the part that a value lies in, for counts over fine grids.

MOST_PARTS = 10_000


@final
@dataclass(frozen=True)
class Cell(Tree):
    """⌊(clip(x, lower, upper) − lower) / width⌋, at most ``cells`` − 1, in doubles: the same bits on every engine."""

    part: Tree
    lower: Value
    upper: Value
    cells: Value
    mentions = 2

    def __post_init__(self) -> None:
        numbers = self.lower.kind in NUMBERS and self.upper.kind in NUMBERS and self.cells.kind == "integer"
        if not numbers or not (1 <= self.parts_of <= MOST_PARTS and self._divides):
            shown = f"{self.lower}, {self.upper}, {self.cells}"
            raise InputError("cell", shown, f"cell(x, lowest, highest, parts) with at most {MOST_PARTS:,} parts")
        super().__post_init__()

    @property
    def parts_of(self) -> int:
        """How many parts there are."""
        return int(self.cells.value)

    @property
    def _divides(self) -> bool:
        """Whether doubles hold the width, and the range in widths."""
        length = float(self.upper.value) - float(self.lower.value)
        return 0 < length < math.inf and self.width > 0 and length / self.width < 2 * MOST_PARTS

    @property
    def width(self) -> float:
        """Of one part."""
        return (float(self.upper.value) - float(self.lower.value)) / self.parts_of

    @property
    def operands(self) -> tuple[Tree, ...]:
        """The number, its range, and how many parts that has."""
        return self.part, self.lower, self.upper, self.cells

    def __str__(self) -> str:
        return f"cell({self.part}, {self.lower}, {self.upper}, {self.cells})"

    def facts(self, schema: Schema) -> Facts:
        """0 to cells − 1."""
        numeric((self.part,), schema)
        return Facts("integer", 0.0, float(self.parts_of - 1), tuple(range(self.parts_of)))

    def compiled(self, rows: Rows) -> ir.Column:
        """Missing where the number is."""
        ibis, x = load("ibis"), self.part.compiled(rows).cast("float64")
        low, high = double(float(self.lower.value)), double(float(self.upper.value))
        clipped = ibis.least(ibis.greatest(x, low), high)
        number = ((clipped - low) / double(self.width)).floor().cast("int64")
        return ibis.ifelse(x.notnull(), ibis.least(number, self.parts_of - 1), ibis.null("int64"))


Listed = tuple[Value, ...]
Argument = Tree | Listed | None
"""A part, a list of literals, or the word None."""


@dataclass(frozen=True, slots=True)
class Function:
    """``usage`` shows how it is written; ``makes`` takes arguments of the right number and kind."""

    usage: str
    makes: Callable[..., Tree]
    least: int = 1
    most: int | None = 1
    lists: bool = False
    """Whether its last argument is a list of literals."""

    def __call__(self, *arguments: Argument) -> Tree:
        """The node; raises ``InputError`` that shows the usage."""
        many = self.least <= len(arguments) and (self.most is None or len(arguments) <= self.most)
        plain = arguments[:-1] if self.lists else arguments
        fits = all(isinstance(part, Tree) for part in plain) or self.makes is _case
        if not many or not fits or (self.lists and not isinstance(arguments[-1], tuple)):
            raise InputError("expression", f"{len(arguments)} arguments", self.usage)
        return self.makes(*arguments)


def _case(*arguments: Tree | None) -> Case:
    tests, values = arguments[:-1:2], arguments[1:-1:2]
    if len(arguments) % 2 == 0 or not all(isinstance(test, Tree) for test in tests):
        raise InputError("case", f"{len(arguments)} arguments", FUNCTIONS["case"].usage)
    return Case(tuple(test for test in tests if test is not None), (*values, arguments[-1]))


def _named(name: Tree) -> Column:
    if not (isinstance(name, Value) and isinstance(name.value, str)):
        raise InputError("column", str(name), FUNCTIONS["column"].usage)
    return Column(name.value)


def _clip(part: Tree, lower: Tree, upper: Tree) -> Clip:
    if not (isinstance(lower, Value) and isinstance(upper, Value)):
        raise InputError("clip", f"{lower}, {upper}", FUNCTIONS["clip"].usage)
    return Clip(part, lower, upper)


def _cell(part: Tree, lower: Tree, upper: Tree, cells: Tree) -> Cell:
    if not all(isinstance(own, Value) for own in (lower, upper, cells)):
        raise InputError("cell", f"{lower}, {upper}, {cells}", FUNCTIONS["cell"].usage)
    return Cell(part, *(own for own in (lower, upper, cells) if isinstance(own, Value)))


def _local(part: Tree, zone: Tree) -> Local:
    if not isinstance(zone, Value):
        raise InputError("local", str(zone), FUNCTIONS["local"].usage)
    return Local(part, zone)


def _prefix(part: Tree, letters: Tree) -> Prefix:
    if not isinstance(letters, Value):
        raise InputError("prefix", str(letters), FUNCTIONS["prefix"].usage)
    return Prefix(part, letters)


def _extreme(largest: bool, *parts: Tree) -> Extreme:
    return Extreme(largest, parts)


def _cut(part: Tree, edges: Sequence[Value]) -> Tree:
    return cut(part, edges)


FUNCTIONS: dict[str, Function] = {
    "abs": Function("abs(x)", Absolute),
    "min": Function("min(x, y, ...)", partial(_extreme, False), 2, None),
    "max": Function("max(x, y, ...)", partial(_extreme, True), 2, None),
    "clip": Function("clip(x, lowest, highest) with two numbers", _clip, 3, 3),
    "cut": Function("cut(x, [a, b, ...]) with rising numbers or days", _cut, 2, 2, lists=True),
    "cell": Function("cell(x, lowest, highest, parts) with two numbers and how many parts", _cell, 4, 4),
    "case": Function("case(condition, value, ..., otherwise)", _case, 3, None),
    "lower": Function("lower(text)", Lower),
    "prefix": Function("prefix(text, letters) with a whole number", _prefix, 2, 2),
    "local": Function("local(instant, 'Europe/Berlin')", _local, 2, 2),
    "column": Function('column("a name")', _named),
    **{unit: Function(f"{unit}(day or instant)", partial(Calendar, unit)) for unit in UNITS},
}
