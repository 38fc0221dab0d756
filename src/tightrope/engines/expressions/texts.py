"""Texts made of a text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from tightrope.engines.expressions.facts import Facts, Rows
from tightrope.engines.expressions.leaves import Value
from tightrope.engines.expressions.tree import Tree
from tightrope.engines.schema import Schema
from tightrope.errors import InputError

if TYPE_CHECKING:
    import ibis.expr.types as ir

LONGEST_PREFIX = 1_000


@final
@dataclass(frozen=True)
class Lower(Tree):
    """A text in small letters: those of the Latin, Greek and Cyrillic alphabets, one by one.

    Engines disagree about the others, and about letters that become two.
    """

    part: Tree

    @property
    def parts(self) -> tuple[Tree, ...]:
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
    def parts(self) -> tuple[Tree, ...]:
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
