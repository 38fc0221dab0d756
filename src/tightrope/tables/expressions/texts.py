"""Functions of texts: letters, parts, lengths, tests for a part, and conversions from and to texts.

Characters are code points, as in Python: a separate accent counts. Texts are compared byte by byte, without patterns,
so that neither a collation nor a wildcard matters.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, ClassVar, Literal, final

from tightrope.errors import InputError
from tightrope.tables.engine_calls import load_library
from tightrope.tables.expressions.leaves import ENGINE_TYPES, Value
from tightrope.tables.expressions.tree import (
    MAX_LISTED_VALUES,
    ExpressionTree,
    SourceRows,
    ValueFacts,
    boolean_facts,
)
from tightrope.tables.schema import Schema

if TYPE_CHECKING:
    import ibis.expr.types as ir

MAX_PART_LETTERS = 1_000
"""Most characters of ``prefix``, ``suffix`` and ``substring``."""
_FIRST_LETTER, _LETTERS_END = ord("A"), 0x530
"""Code points with the Latin, Greek and Cyrillic letters, about which engines disagree."""
MAX_INTEGER_DIGITS = 20
"""Bytes of the longest integer of 64 bits as text."""


def _letter_pairs(convert: Callable[[str], str]) -> tuple[str, str]:
    """Return letters that have one other letter as their conversion, and those letters."""
    letters = "".join(
        letter
        for letter in map(chr, range(_FIRST_LETTER, _LETTERS_END))
        if convert(letter) != letter and len(convert(letter)) == 1
    )
    return letters, "".join(map(convert, letters))


LETTER_CASES: dict[Literal["lower", "upper"], tuple[str, str]] = {
    "lower": _letter_pairs(str.lower),
    "upper": _letter_pairs(str.upper),
}
"""Converted one by one: Python's ``lower`` of the whole text would turn a Σ at its end into ς."""


@dataclass(frozen=True)
class NewText(ExpressionTree):
    """A text that is computed from other values."""

    @property
    def creates_text(self) -> bool:
        """True: the result is a new text."""
        return True


@dataclass(frozen=True)
class LetterCase(NewText):
    """A text in another case: Latin, Greek and Cyrillic letters are converted one by one.

    Other letters stay as they are, because engines disagree about them; so do letters whose other case has two.
    """

    part: ExpressionTree
    case: ClassVar[Literal["lower", "upper"]]
    is_exact = True

    @property
    def child_nodes(self) -> tuple[ExpressionTree, ...]:
        """The text."""
        return (self.part,)

    @property
    def max_value_bytes(self) -> int:
        """The size if each character grows from two bytes to three."""
        return self.part.max_value_bytes * 3 // 2

    def __str__(self) -> str:
        return f"{self.case}({self.part})"

    def infer_column_facts(self, schema: Schema) -> ValueFacts:
        """Return the facts of a text."""
        return check_text(self.part, self.case, schema)

    def to_engine_column(self, rows: SourceRows) -> ir.Column:
        """Translate by our own table of letters."""
        return self.part.to_engine_column(rows).translate(*LETTER_CASES[self.case])


@final
@dataclass(frozen=True)
class Lower(LetterCase):
    """A text in lower case."""

    case = "lower"


@final
@dataclass(frozen=True)
class Upper(LetterCase):
    """A text in upper case."""

    case = "upper"


@dataclass(frozen=True)
class TextEnd(NewText):
    """The first or last characters of a text, or all of it if shorter: the region of a postcode, a file's ending."""

    part: ExpressionTree
    letters: Value
    end: ClassVar[Literal["prefix", "suffix"]]
    is_exact = True

    def __post_init__(self) -> None:
        if not is_integer_within(self.letters, 1, MAX_PART_LETTERS):
            expected = f"{self.end}(text, characters) with 1 to {MAX_PART_LETTERS:,} characters"
            raise InputError(self.end, str(self.letters), expected)
        super().__post_init__()

    @property
    def child_nodes(self) -> tuple[ExpressionTree, ...]:
        """The text and the number."""
        return self.part, self.letters

    @property
    def max_value_bytes(self) -> int:
        """Up to four bytes a character."""
        return min(4 * int(self.letters.value), self.part.max_value_bytes)

    def __str__(self) -> str:
        return f"{self.end}({self.part}, {self.letters})"

    def infer_column_facts(self, schema: Schema) -> ValueFacts:
        """Return the facts of a text."""
        return check_text(self.part, self.end, schema)

    def to_engine_column(self, rows: SourceRows) -> ir.Column:
        """Compute it in the engine."""
        text, letters = self.part.to_engine_column(rows), int(self.letters.value)
        return text.left(letters) if self.end == "prefix" else text.right(letters)


@final
@dataclass(frozen=True)
class Prefix(TextEnd):
    """The first characters of a text."""

    end = "prefix"


@final
@dataclass(frozen=True)
class Suffix(TextEnd):
    """The last characters of a text."""

    end = "suffix"


@final
@dataclass(frozen=True)
class Substring(NewText):
    """Characters from the middle of a text; fewer or none where the text is too short. The first one is number 1."""

    part: ExpressionTree
    first: Value
    letters: Value
    operand_mentions = 2
    is_exact = True

    def __post_init__(self) -> None:
        if not all(is_integer_within(number, 1, MAX_PART_LETTERS) for number in (self.first, self.letters)):
            expected = f"substring(text, first, characters) with two numbers from 1 to {MAX_PART_LETTERS:,}"
            raise InputError("substring", f"{self.first}, {self.letters}", expected, "the first character is number 1")
        super().__post_init__()

    @property
    def child_nodes(self) -> tuple[ExpressionTree, ...]:
        """The text and the two numbers."""
        return self.part, self.first, self.letters

    @property
    def max_value_bytes(self) -> int:
        """Up to four bytes a character."""
        return min(4 * int(self.letters.value), self.part.max_value_bytes)

    def __str__(self) -> str:
        return f"substring({self.part}, {self.first}, {self.letters})"

    def infer_column_facts(self, schema: Schema) -> ValueFacts:
        """Return the facts of a text."""
        return check_text(self.part, "substring", schema)

    def to_engine_column(self, rows: SourceRows) -> ir.Column:
        """Compute it in the engine; ibis counts characters from 0."""
        return self.part.to_engine_column(rows).substr(int(self.first.value) - 1, int(self.letters.value))


@final
@dataclass(frozen=True)
class Concat(NewText):
    """Texts one after another, with integers in digits; missing if one of them is."""

    parts: tuple[ExpressionTree, ...]

    @property
    def child_nodes(self) -> tuple[ExpressionTree, ...]:
        """The texts."""
        return self.parts

    @property
    def max_value_bytes(self) -> int:
        """The sum of the largest sizes."""
        return sum(max(part.max_value_bytes, MAX_INTEGER_DIGITS) for part in self.parts)

    def __str__(self) -> str:
        return f"concat({', '.join(map(str, self.parts))})"

    def infer_column_facts(self, schema: Schema) -> ValueFacts:
        """Return the facts of a text; its possible values if those of all parts are known and few."""
        facts = [part.infer_column_facts(schema) for part in self.parts]
        for part, its in zip(self.parts, facts, strict=True):
            if its.kind not in ("text", "integer"):
                expected = "a text or an integer for concat"
                remedy = {
                    "number": f"say round({part})",
                    "boolean": f"say text({part})",
                    "date": f"say text({part})",
                    "timestamp": f"say text(date({part}))",
                }
                raise InputError("expression", f"{part} ({its.kind})", expected, remedy.get(its.kind, ""))
        choices = [its.possible_values for its in facts if its.possible_values is not None]
        never_missing = all(its.never_missing for its in facts)
        if len(choices) < len(facts) or not math.prod(map(len, choices)) <= MAX_LISTED_VALUES:
            return ValueFacts("text", never_missing=never_missing)
        joined = {"".join(map(str, values)) for values in itertools.product(*choices)}
        return ValueFacts("text", possible_values=tuple(sorted(joined)), never_missing=never_missing)

    def to_engine_column(self, rows: SourceRows) -> ir.Column:
        """Join the texts in the engine; a cast of an integer gives its decimal digits everywhere."""
        columns = [part.to_engine_column(rows) for part in self.parts]
        return reduce(add, [column.cast("string") if column.type().is_integer() else column for column in columns])


@final
@dataclass(frozen=True)
class TextLength(ExpressionTree):
    """The number of characters of a text."""

    part: ExpressionTree
    is_exact = True

    @property
    def child_nodes(self) -> tuple[ExpressionTree, ...]:
        """The text."""
        return (self.part,)

    def __str__(self) -> str:
        return f"length({self.part})"

    def infer_column_facts(self, schema: Schema) -> ValueFacts:
        """Return the range: a character has at least one byte."""
        check_text(self.part, "length", schema)
        return ValueFacts("integer", 0.0, float(self.part.max_value_bytes))

    def to_engine_column(self, rows: SourceRows) -> ir.Column:
        """Compute it in the engine."""
        return self.part.to_engine_column(rows).length().cast("int64")


TEXT_TESTS: dict[str, Callable[[ir.Column, ir.Column], ir.Column]] = {
    "contains": lambda text, part: text.contains(part),
    "starts_with": lambda text, part: text.startswith(part),
    "ends_with": lambda text, part: text.endswith(part),
}


@final
@dataclass(frozen=True)
class TextTest(ExpressionTree):
    """The condition that a text contains another one, or starts or ends with it; missing if one of them is.

    Capitals and small letters differ, and no character stands for another. Every text contains the empty text.
    """

    test: str
    text: ExpressionTree
    part: ExpressionTree
    is_exact = True

    @property
    def child_nodes(self) -> tuple[ExpressionTree, ...]:
        """The text, and the part that is looked for."""
        return self.text, self.part

    def __str__(self) -> str:
        return f"{self.test}({self.text}, {self.part})"

    def infer_column_facts(self, schema: Schema) -> ValueFacts:
        """Return the facts of a condition."""
        facts = [check_text(part, self.test, schema) for part in self.child_nodes]
        return boolean_facts(never_missing=all(its.never_missing for its in facts))

    def to_engine_column(self, rows: SourceRows) -> ir.Column:
        """Search in the engine; its functions take the part as it is, unlike LIKE."""
        return TEXT_TESTS[self.test](*(part.to_engine_column(rows) for part in self.child_nodes))


Conversion = Literal["integer", "number", "text", "date"]
CONVERSIONS: dict[Conversion, tuple[str, ...]] = {
    "integer": ("text",),
    "number": ("text", "integer"),
    "text": ("text", "integer", "boolean", "date"),
    "date": ("text", "timestamp"),
}
"""The functions of ``Converted``, and the kinds that each of them takes."""
CONVERSION_REMEDIES: dict[tuple[str, str], str] = {
    ("integer", "number"): "say floor(x) or round(x)",
    ("integer", "boolean"): "say case(condition, 1, 0)",
    ("number", "boolean"): "say case(condition, 1, 0)",
    ("text", "number"): "say floor(x) or round(x) first",
    ("text", "timestamp"): "say date(t) first",
}
CONVERTIBLE_TEXTS: dict[str, str] = {
    "integer": "^[+-]?[0-9]{1,18}",
    "number": "^[+-]?[0-9]{1,15}([.][0-9]{1,15})?",
    "date": "^[0-9]{4}-[0-9]{2}-[0-9]{2}",
}
"""Patterns of the complete texts that are read as each kind: plain digits, about which engines agree."""
FIRST_YEAR = "0001"
CONVERTED_BYTES = 20
"""Bytes of the longest integer of 64 bits, day or truth value as text."""


@final
@dataclass(frozen=True)
class Converted(NewText):
    """A text read as an integer, number or day, missing if it has another form; or one of these as text."""

    kind: Conversion
    part: ExpressionTree
    operand_mentions = 4

    @property
    def child_nodes(self) -> tuple[ExpressionTree, ...]:
        """The value that is converted."""
        return (self.part,)

    @property
    def max_value_bytes(self) -> int:
        """The size of the text, or of the part of a text that is read."""
        return max(CONVERTED_BYTES, self.part.max_value_bytes)

    def __str__(self) -> str:
        return f"{self.kind}({self.part})"

    def infer_column_facts(self, schema: Schema) -> ValueFacts:
        """Return the facts of the kind; possible values are converted to texts, and ranges of integers stay."""
        facts = self.part.infer_column_facts(schema)
        if facts.kind not in CONVERSIONS[self.kind]:
            expected = f"a {' or '.join(CONVERSIONS[self.kind])} for {self.kind}"
            remedy = CONVERSION_REMEDIES.get((self.kind, facts.kind), "")
            raise InputError("expression", f"{self.part} ({facts.kind})", expected, remedy)
        if self.kind == "number" and facts.kind == "integer":
            return ValueFacts("number", facts.lower, facts.upper, never_missing=facts.never_missing)
        if self.kind != "text":
            return ValueFacts(self.kind)
        values = None if facts.possible_values is None else tuple(sorted(map(_value_text, facts.possible_values)))
        return ValueFacts("text", possible_values=values, never_missing=facts.never_missing)

    def to_engine_column(self, rows: SourceRows) -> ir.Column:
        """Cast values of other kinds; cast the texts that match the pattern as a whole, without errors."""
        column, ibis = self.part.to_engine_column(rows), load_library("ibis")
        if self.kind == "text":
            return column.cast("string")
        if not column.type().is_string():
            return column.date() if self.kind == "date" else column.cast("float64")
        matching = column.re_extract(CONVERTIBLE_TEXTS[self.kind], 0)
        is_complete = matching == column
        if self.kind == "date":
            is_complete = is_complete & (column >= FIRST_YEAR)
        engine_type = "date" if self.kind == "date" else ENGINE_TYPES[self.kind]
        return ibis.ifelse(is_complete, matching.try_cast(engine_type), ibis.null(engine_type))


def _value_text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def check_text(part: ExpressionTree, function: str, schema: Schema) -> ValueFacts:
    """Return the facts of a text that a function makes of this one; raises ``InputError`` if it is not a text."""
    facts = part.infer_column_facts(schema)
    if facts.kind != "text":
        remedy = f"text({part}) makes a text of it" if facts.kind in CONVERSIONS["text"] else ""
        raise InputError("expression", f"{part} ({facts.kind})", f"a text for {function}", remedy)
    return ValueFacts("text", never_missing=facts.never_missing)


def is_integer_within(literal: Value, low: int, high: int) -> bool:
    """Return whether a literal is an integer of a range."""
    return literal.kind == "integer" and low <= int(literal.value) <= high
