"""The functions of the expression language by name, with their arguments and nodes, for texts and for Python."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from tightrope.errors import InputError
from tightrope.tables.expressions.arithmetic import Absolute, Clip, Extreme
from tightrope.tables.expressions.conditions import Case, make_cut
from tightrope.tables.expressions.leaves import ColumnRef, Value
from tightrope.tables.expressions.rounding import Cell, GridValue, Logarithm, Remainder
from tightrope.tables.expressions.texts import (
    CONVERSIONS,
    TEXT_TESTS,
    Concat,
    Converted,
    Lower,
    Prefix,
    Substring,
    Suffix,
    TextLength,
    TextTest,
    Upper,
)
from tightrope.tables.expressions.times import ELAPSED_MICROSECONDS, UNITS, Calendar, Elapsed, Local, Truncate
from tightrope.tables.expressions.tree import ExpressionTree

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


def _make_truncation(unit: ExpressionTree, part: ExpressionTree) -> Truncate:
    if not (isinstance(unit, Value) and isinstance(unit.value, str)):
        raise InputError("date_trunc", str(unit), FUNCTIONS["date_trunc"].usage)
    return Truncate(unit.value, part)


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
    "floor": LanguageFunction(
        "floor(x) or floor(x, width) with a number",
        partial(_make_with_literals, "floor", partial(GridValue, "floor")),
        1,
        2,
    ),
    "round": LanguageFunction(
        "round(x) or round(x, width) with a number",
        partial(_make_with_literals, "round", partial(GridValue, "round")),
        1,
        2,
    ),
    "mod": LanguageFunction(
        "mod(x, divisor) with a positive number", partial(_make_with_literals, "mod", Remainder), 2, 2
    ),
    "log": LanguageFunction(
        "log(x) or log(x, base) with a number", partial(_make_with_literals, "log", Logarithm), 1, 2
    ),
    "lower": LanguageFunction("lower(text)", Lower),
    "upper": LanguageFunction("upper(text)", Upper),
    "prefix": LanguageFunction(
        "prefix(text, characters) with an integer",
        partial(_make_with_literals, "prefix", Prefix),
        2,
        2,
    ),
    "suffix": LanguageFunction(
        "suffix(text, characters) with an integer",
        partial(_make_with_literals, "suffix", Suffix),
        2,
        2,
    ),
    "substring": LanguageFunction(
        "substring(text, first, characters) with two integers; the first character is number 1",
        partial(_make_with_literals, "substring", Substring),
        3,
        3,
    ),
    "concat": LanguageFunction("concat(text, text, ...)", lambda *parts: Concat(parts), 2, None),
    "length": LanguageFunction("length(text)", TextLength),
    **{test: LanguageFunction(f"{test}(text, part)", partial(TextTest, test), 2, 2) for test in TEXT_TESTS},
    **{
        kind: LanguageFunction(f"{kind}({' or '.join(kinds)})", partial(Converted, kind))
        for kind, kinds in CONVERSIONS.items()
    },
    "date_trunc": LanguageFunction("date_trunc('month', day or instant)", _make_truncation, 2, 2),
    "week": LanguageFunction("week(day or instant)", partial(Truncate, "week")),
    **{
        function: LanguageFunction(f"{function}(start, end)", partial(Elapsed, function), 2, 2)
        for function in ELAPSED_MICROSECONDS
    },
    "local": LanguageFunction("local(instant, 'Europe/Berlin')", partial(_make_with_literals, "local", Local), 2, 2),
    "column": LanguageFunction('column("a name")', _make_column),
    **{unit: LanguageFunction(f"{unit}(day or instant)", partial(Calendar, unit)) for unit in UNITS},
}
