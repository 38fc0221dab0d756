"""Expressions built in Python with operators and methods, and what a query uses: a column or an expression.

They give the same trees as texts; the methods are the functions of the language, with the value before the dot.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn

from tightrope.errors import InputError
from tightrope.tables.expressions.arithmetic import Arithmetic
from tightrope.tables.expressions.conditions import Compare, Member, Missing, Not, join_conditions
from tightrope.tables.expressions.functions import FUNCTIONS
from tightrope.tables.expressions.leaves import ColumnRef, to_literal
from tightrope.tables.expressions.parsing import parse_expression
from tightrope.tables.expressions.texts import CONVERSIONS
from tightrope.tables.expressions.tree import ExpressionTree, SourceRows, ValueFacts, boolean_facts, tree_columns
from tightrope.tables.schema import Schema

if TYPE_CHECKING:
    import ibis.expr.types as ir

Literal = bool | int | float | str | datetime.date


class Expression:
    """A value that is computed from one row: ``tr.column("distance") > 500``.

    Operators: ``+ - * /``, comparisons, and ``& | ~`` for and, or, not. ``str(expression)`` is the text that a plan
    file holds. Missing values stay missing in everything but ``is_missing``, ``&``, ``|`` and ``tr.case``; a comparison
    with a missing value is neither true nor false.
    """

    __hash__ = None  # type: ignore[assignment]
    __slots__ = ("tree",)

    def __init__(self, tree: ExpressionTree) -> None:
        self.tree = tree

    def __str__(self) -> str:
        return str(self.tree)

    def __repr__(self) -> str:
        return f"<expression {self.tree}>"

    def __bool__(self) -> NoReturn:
        remedy = "write & | ~ for and, or, not, and each comparison in parentheses: (a > 1) & (b < 2)"
        raise InputError("expression", str(self), "used in a question: it is neither true nor false by itself", remedy)

    def __add__(self, other: Expression | Literal) -> Expression:
        return self._combine_with("+", other)

    def __radd__(self, other: Literal) -> Expression:
        return to_expression(other)._combine_with("+", self)

    def __sub__(self, other: Expression | Literal) -> Expression:
        return self._combine_with("-", other)

    def __rsub__(self, other: Literal) -> Expression:
        return to_expression(other)._combine_with("-", self)

    def __mul__(self, other: Expression | Literal) -> Expression:
        return self._combine_with("*", other)

    def __rmul__(self, other: Literal) -> Expression:
        return to_expression(other)._combine_with("*", self)

    def __truediv__(self, other: Expression | Literal) -> Expression:
        return self._combine_with("/", other)

    def __rtruediv__(self, other: Literal) -> Expression:
        return to_expression(other)._combine_with("/", self)

    def __mod__(self, divisor: float) -> Expression:
        return self._call_function("mod", divisor)

    def __neg__(self) -> Expression:
        return to_expression(0)._combine_with("-", self)

    def __abs__(self) -> Expression:
        return self._call_function("abs")

    def __eq__(self, other: object) -> Expression:  # type: ignore[override]
        return self._compare_with("==", other)

    def __ne__(self, other: object) -> Expression:  # type: ignore[override]
        return self._compare_with("!=", other)

    def __lt__(self, other: Expression | Literal) -> Expression:
        return self._compare_with("<", other)

    def __le__(self, other: Expression | Literal) -> Expression:
        return self._compare_with("<=", other)

    def __gt__(self, other: Expression | Literal) -> Expression:
        return self._compare_with(">", other)

    def __ge__(self, other: Expression | Literal) -> Expression:
        return self._compare_with(">=", other)

    def __and__(self, other: Expression) -> Expression:
        return Expression(join_conditions("and", self.tree, to_expression(other).tree))

    def __or__(self, other: Expression) -> Expression:
        return Expression(join_conditions("or", self.tree, to_expression(other).tree))

    def __invert__(self) -> Expression:
        return Expression(Not(self.tree))

    def is_in(self, values: Sequence[Literal]) -> Expression:
        """Return the condition that the value is one of these."""
        return Expression(Member(self.tree, tuple(map(to_literal, values))))

    def is_missing(self) -> Expression:
        """Return the condition that the value is NULL or NaN."""
        return Expression(Missing(self.tree))

    def clip(self, lower: float, upper: float) -> Expression:
        """Return the value clamped to [lower, upper]: a value outside becomes the nearer end."""
        return self._call_function("clip", lower, upper)

    def min(self, other: Expression | Literal) -> Expression:
        """Return the smaller of two numbers; missing if one of them is."""
        return self._call_function("min", other)

    def max(self, other: Expression | Literal) -> Expression:
        """Return the larger of two numbers; missing if one of them is."""
        return self._call_function("max", other)

    def cut(self, edges: Sequence[float | str | datetime.date]) -> Expression:
        """Return the largest edge that is not above the value; missing below the first edge."""
        return Expression(FUNCTIONS["cut"](self.tree, tuple(map(to_literal, edges))))

    def floor(self, width: float | None = None) -> Expression:
        """Return the largest integer, or multiple of a width, that is not above the value."""
        return self._call_function("floor", *(() if width is None else (width,)))

    def round(self, width: float | None = None) -> Expression:
        """Return the nearest integer, or multiple of a width: ``column("amount").round(0.05)``; halves go up."""
        return self._call_function("round", *(() if width is None else (width,)))

    def mod(self, divisor: float) -> Expression:
        """Return the remainder of a division, from 0 to below the divisor, as Python's ``%``."""
        return self._call_function("mod", divisor)

    def log(self, base: float | None = None) -> Expression:
        """Return the logarithm, natural or to a base, to nine decimals; missing unless the number is positive."""
        return self._call_function("log", *(() if base is None else (base,)))

    def lower(self) -> Expression:
        """Return a text in lower case (Latin, Greek and Cyrillic letters)."""
        return self._call_function("lower")

    def upper(self) -> Expression:
        """Return a text in upper case (Latin, Greek and Cyrillic letters)."""
        return self._call_function("upper")

    def prefix(self, letters: int) -> Expression:
        """Return the first characters of a text, or all of it if it is shorter."""
        return self._call_function("prefix", letters)

    def suffix(self, letters: int) -> Expression:
        """Return the last characters of a text, or all of it if it is shorter."""
        return self._call_function("suffix", letters)

    def substring(self, first: int, letters: int) -> Expression:
        """Return characters from the middle of a text; ``first`` is 1 for the first one."""
        return self._call_function("substring", first, letters)

    def concat(self, *others: Expression | Literal) -> Expression:
        """Return the text followed by others, with integers in digits; missing if one of them is."""
        return self._call_function("concat", *others)

    def cast(self, kind: str) -> Expression:
        """Return the value as ``"integer"``, ``"number"``, ``"text"`` or ``"date"``; missing if a text is not one."""
        if kind not in CONVERSIONS:
            raise InputError("cast", kind, f"one of {', '.join(CONVERSIONS)}")
        return self._call_function(kind)

    def length(self) -> Expression:
        """Return the number of characters of a text."""
        return self._call_function("length")

    def contains(self, part: Expression | str) -> Expression:
        """Return the condition that a text contains another one; no character is a pattern."""
        return self._call_function("contains", part)

    def starts_with(self, part: Expression | str) -> Expression:
        """Return the condition that a text begins with another one; no character is a pattern."""
        return self._call_function("starts_with", part)

    def ends_with(self, part: Expression | str) -> Expression:
        """Return the condition that a text ends with another one; no character is a pattern."""
        return self._call_function("ends_with", part)

    def local(self, zone: str) -> Expression:
        """Return the local time of an instant in a time zone: ``column("sent").local("Europe/Berlin").hour()``."""
        return self._call_function("local", zone)

    def year(self) -> Expression:
        """Return the year of a day or instant, in UTC."""
        return self._call_function("year")

    def quarter(self) -> Expression:
        """Return the quarter of a day or instant in UTC, 1 to 4."""
        return self._call_function("quarter")

    def month(self) -> Expression:
        """Return the month of a day or instant in UTC, 1 to 12."""
        return self._call_function("month")

    def week(self) -> Expression:
        """Return the Monday of the week of a day or instant, in UTC: a day, so that weeks of two years differ."""
        return self._call_function("week")

    def week_of_year(self) -> Expression:
        """Return the number of the ISO week of a day or instant in UTC, 1 to 53."""
        return self._call_function("week_of_year")

    def date_trunc(self, unit: str) -> Expression:
        """Return the first day of the ``"year"``, ``"quarter"``, ``"month"`` or ``"week"``, in UTC.

        With ``"day"`` it is the day of an instant, with ``"hour"`` or ``"minute"`` the instant at its beginning.
        """
        return Expression(FUNCTIONS["date_trunc"](to_literal(unit), self.tree))

    def day(self) -> Expression:
        """Return the day of the month in UTC, 1 to 31."""
        return self._call_function("day")

    def weekday(self) -> Expression:
        """Return the day of the week in UTC: 1 is Monday, 7 is Sunday."""
        return self._call_function("weekday")

    def hour(self) -> Expression:
        """Return the hour of an instant in UTC, 0 to 23."""
        return self._call_function("hour")

    def minute(self) -> Expression:
        """Return the minute of an instant, 0 to 59."""
        return self._call_function("minute")

    def days(self) -> Expression:
        """Return the days since 1970-01-01, in UTC: the difference of two is the length of a stay in days."""
        return self._call_function("days")

    def days_between(self, end: Expression | Literal) -> Expression:
        """Return the days from this day or instant to another: ``column("admitted").days_between(column("left"))``."""
        return self._call_function("days_between", end)

    def hours_between(self, end: Expression | Literal) -> Expression:
        """Return the hours from this day or instant to another; below 0 if that one is earlier."""
        return self._call_function("hours_between", end)

    def minutes_between(self, end: Expression | Literal) -> Expression:
        """Return the minutes from this day or instant to another; below 0 if that one is earlier."""
        return self._call_function("minutes_between", end)

    def seconds_between(self, end: Expression | Literal) -> Expression:
        """Return the seconds from this day or instant to another; below 0 if that one is earlier."""
        return self._call_function("seconds_between", end)

    def _combine_with(self, operation: str, other: Expression | Literal) -> Expression:
        return Expression(Arithmetic(operation, self.tree, to_expression(other).tree))

    def _compare_with(self, comparison: str, other: object) -> Expression:
        return Expression(Compare(comparison, self.tree, to_expression(other).tree))

    def _call_function(self, function: str, *others: Expression | Literal) -> Expression:
        return Expression(FUNCTIONS[function](self.tree, *(to_expression(other).tree for other in others)))


def column(name: str) -> Expression:
    """Return a column of the table as an expression: ``tr.column("distance") / 1.609``.

    >>> print(column("departed").month().is_in([6, 7, 8]) & (column("distance") > 500))
    month(departed) in [6, 7, 8] and distance > 500
    """
    return Expression(ColumnRef(name))


def expression(text: str) -> Expression:
    """Return the expression that a text in a plan file's form denotes; ``InputError`` says what cannot be read.

    >>> expression("0 < distance <= 500")
    <expression 0 < distance and distance <= 500>
    """
    return Expression(parse_expression(text))


def case(*arguments: Expression | Literal | None) -> Expression:
    """Return the value of the first condition that is true, else the last: ``case(condition, value, ..., otherwise)``.

    >>> print(case(column("age") < 18, "young", column("age") < 65, "grown", "old"))
    case(age < 18, 'young', age < 65, 'grown', 'old')
    """
    parts = [None if argument is None else to_expression(argument).tree for argument in arguments]
    return Expression(FUNCTIONS["case"](*parts))


def to_expression(value: object) -> Expression:
    """Return an expression unchanged, and any other value as a literal."""
    return value if isinstance(value, Expression) else Expression(to_literal(value))


Term = str | ExpressionTree
"""What a query uses: a column of the table by its name, or an expression. A column's name never means an expression."""


def resolve_term(given: str | Expression | ExpressionTree, schema: Schema) -> Term:
    """Return the term, checked against the schema; a text that is not a column's name is read as an expression.

    Raises ``SchemaError`` for a missing column, ``InputError`` for an expression that cannot be read or has no kind.
    """
    if isinstance(given, str) and given in schema.column_names:
        return given
    tree = given.tree if isinstance(given, Expression) else parse_expression(given) if isinstance(given, str) else given
    if not isinstance(tree, ExpressionTree):
        raise InputError("expression", type(given).__name__, "a column's name or an expression")
    tree.infer_column_facts(schema)
    return tree.name if isinstance(tree, ColumnRef) else tree


def term_facts(term: Term, schema: Schema) -> ValueFacts:
    """Return the kind and the range of a term's values; raises ``SchemaError`` for a column of the kind "other"."""
    if isinstance(term, ExpressionTree):
        return term.infer_column_facts(schema)
    column = schema.find_column(term)
    column.refuse_other_kind("column", "be a privacy unit, a group or a value")
    return boolean_facts() if column.kind == "boolean" else ValueFacts(column.kind)


def term_columns(*terms: Term | None) -> tuple[str, ...]:
    """Return the columns of the table that the terms read, each once, in order."""
    given_terms = (term for term in terms if term is not None)
    names = [tree_columns(term) if isinstance(term, ExpressionTree) else (term,) for term in given_terms]
    return tuple(dict.fromkeys(name for term_names in names for name in term_names))


def engine_column(term: Term, rows: SourceRows) -> ir.Column:
    """Return the engine's column of a term: the stored column, or the computed one."""
    return term.to_engine_column(rows) if isinstance(term, ExpressionTree) else rows.table[term]
