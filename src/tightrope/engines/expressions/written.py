"""Expressions in Python: the same trees as those of the text, made with operators and methods."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import NoReturn

from tightrope.engines.expressions.arithmetic import Arithmetic
from tightrope.engines.expressions.conditions import Compare, Member, Missing, Not, logic
from tightrope.engines.expressions.functions import FUNCTIONS
from tightrope.engines.expressions.leaves import Column, literal
from tightrope.engines.expressions.reading import read
from tightrope.engines.expressions.tree import Tree
from tightrope.errors import InputError

Literal = bool | int | float | str | datetime.date


class Expression:
    """A value that is computed from one row: ``tr.column("distance") > 500``.

    Operators ``+ - * /``, comparisons, and ``& | ~`` for and, or, not. ``str`` gives its text, which a plan file reads.
    Missing values stay missing in everything but ``is_missing``, ``&``, ``|`` and ``tr.case``; a comparison with one is
    neither true nor false.
    """

    __hash__ = None  # type: ignore[assignment]
    __slots__ = ("tree",)

    def __init__(self, tree: Tree) -> None:
        self.tree = tree

    def __str__(self) -> str:
        return str(self.tree)

    def __repr__(self) -> str:
        return f"<expression {self.tree}>"

    def __bool__(self) -> NoReturn:
        remedy = "say (a > 1) & (b < 2), | and ~ for and, or, not, and each comparison in parentheses"
        raise InputError("expression", str(self), "a part of a question: it has no value before a row is seen", remedy)

    def __add__(self, other: Expression | Literal) -> Expression:
        return self._with("+", other)

    def __radd__(self, other: Literal) -> Expression:
        return lifted(other)._with("+", self)

    def __sub__(self, other: Expression | Literal) -> Expression:
        return self._with("-", other)

    def __rsub__(self, other: Literal) -> Expression:
        return lifted(other)._with("-", self)

    def __mul__(self, other: Expression | Literal) -> Expression:
        return self._with("*", other)

    def __rmul__(self, other: Literal) -> Expression:
        return lifted(other)._with("*", self)

    def __truediv__(self, other: Expression | Literal) -> Expression:
        return self._with("/", other)

    def __rtruediv__(self, other: Literal) -> Expression:
        return lifted(other)._with("/", self)

    def __neg__(self) -> Expression:
        return lifted(0)._with("-", self)

    def __abs__(self) -> Expression:
        return self._call("abs")

    def __eq__(self, other: object) -> Expression:  # type: ignore[override]
        return self._compared("==", other)

    def __ne__(self, other: object) -> Expression:  # type: ignore[override]
        return self._compared("!=", other)

    def __lt__(self, other: Expression | Literal) -> Expression:
        return self._compared("<", other)

    def __le__(self, other: Expression | Literal) -> Expression:
        return self._compared("<=", other)

    def __gt__(self, other: Expression | Literal) -> Expression:
        return self._compared(">", other)

    def __ge__(self, other: Expression | Literal) -> Expression:
        return self._compared(">=", other)

    def __and__(self, other: Expression) -> Expression:
        return Expression(logic("and", self.tree, lifted(other).tree))

    def __or__(self, other: Expression) -> Expression:
        return Expression(logic("or", self.tree, lifted(other).tree))

    def __invert__(self) -> Expression:
        return Expression(Not(self.tree))

    def is_in(self, values: Sequence[Literal]) -> Expression:
        """Whether it is one of these values."""
        return Expression(Member(self.tree, tuple(map(literal, values))))

    def is_missing(self) -> Expression:
        """Whether it is NULL or NaN."""
        return Expression(Missing(self.tree))

    def clip(self, lower: float, upper: float) -> Expression:
        """Moved to the nearer end of a range."""
        return self._call("clip", lower, upper)

    def min(self, other: Expression | Literal) -> Expression:
        """The smaller of two numbers; missing where one is."""
        return self._call("min", other)

    def max(self, other: Expression | Literal) -> Expression:
        """The larger of two numbers; missing where one is."""
        return self._call("max", other)

    def cut(self, edges: Sequence[float | str | datetime.date]) -> Expression:
        """The largest edge that is not above it; missing below the first edge, and the last part has no end."""
        return Expression(FUNCTIONS["cut"](self.tree, tuple(map(literal, edges))))

    def lower(self) -> Expression:
        """A text in small letters (Latin, Greek, Cyrillic)."""
        return self._call("lower")

    def prefix(self, letters: int) -> Expression:
        """The first letters of a text, all of it where it has fewer."""
        return self._call("prefix", letters)

    def local(self, zone: str) -> Expression:
        """What clocks in a time zone show at an instant: ``column("sent").local("Europe/Berlin").hour()``."""
        return self._call("local", zone)

    def year(self) -> Expression:
        """The year of a day or instant, in UTC."""
        return self._call("year")

    def month(self) -> Expression:
        """1 to 12."""
        return self._call("month")

    def day(self) -> Expression:
        """1 to 31."""
        return self._call("day")

    def weekday(self) -> Expression:
        """1 is Monday, 7 is Sunday."""
        return self._call("weekday")

    def hour(self) -> Expression:
        """0 to 23, in UTC."""
        return self._call("hour")

    def days(self) -> Expression:
        """Days since 1970-01-01, in UTC: ``column("left").days() - column("came").days()`` is the length of a stay."""
        return self._call("days")

    def _with(self, operation: str, other: Expression | Literal) -> Expression:
        return Expression(Arithmetic(operation, self.tree, lifted(other).tree))

    def _compared(self, comparison: str, other: object) -> Expression:
        return Expression(Compare(comparison, self.tree, lifted(other).tree))

    def _call(self, function: str, *others: Expression | Literal) -> Expression:
        return Expression(FUNCTIONS[function](self.tree, *(lifted(other).tree for other in others)))


def column(name: str) -> Expression:
    """A column of the table, to compute with: ``tr.column("distance") / 1.609``.

    >>> print(column("departed").month().is_in([6, 7, 8]) & (column("distance") > 500))
    month(departed) in [6, 7, 8] and distance > 500
    """
    return Expression(Column(name))


def expression(text: str) -> Expression:
    """The expression in a text, as a plan file writes it; raises ``InputError`` that says what cannot be read.

    >>> expression("0 < distance <= 500")
    <expression 0 < distance and distance <= 500>
    """
    return Expression(read(text))


def case(*arguments: Expression | Literal | None) -> Expression:
    """``case(condition, value, ..., otherwise)``: the value beside the first condition that is true.

    >>> print(case(column("age") < 18, "young", column("age") < 65, "grown", "old"))
    case(age < 18, 'young', age < 65, 'grown', 'old')
    """
    parts = [None if argument is None else lifted(argument).tree for argument in arguments]
    return Expression(FUNCTIONS["case"](*parts))


def lifted(value: object) -> Expression:
    """An expression as it is, anything else as a literal."""
    return value if isinstance(value, Expression) else Expression(literal(value))
