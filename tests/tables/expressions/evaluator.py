"""The language once more in plain Python, one row at a time: what every engine must agree with. None is missing."""

from __future__ import annotations

import datetime as dt
import math
import re
import sys
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import singledispatch
from typing import Any
from zoneinfo import ZoneInfo

from tests.tables.expressions.trees import SCHEMA
from tightrope.tables.expressions.arithmetic import Absolute, Arithmetic, Clip, Extreme
from tightrope.tables.expressions.conditions import Case, Compare, Cut, Logic, Member, Missing, Not
from tightrope.tables.expressions.leaves import ColumnRef, Value
from tightrope.tables.expressions.rounding import Cell, GridValue, Logarithm, Remainder
from tightrope.tables.expressions.texts import (
    CONVERTIBLE_TEXTS,
    Concat,
    Converted,
    LetterCase,
    Substring,
    TextEnd,
    TextLength,
    TextTest,
)
from tightrope.tables.expressions.times import (
    CLOCK_TABLE_END,
    CLOCK_TABLE_START,
    Calendar,
    Elapsed,
    Local,
    Truncate,
)
from tightrope.tables.expressions.tree import ExpressionTree

Row = Mapping[str, Any]
EXACT = 2**53


def evaluated(tree: ExpressionTree, row: Row) -> Any:
    """The value, a double where the kind is a number; NaN is missing."""
    found = value(tree, row)
    if type(found) is int and tree.infer_column_facts(SCHEMA).kind == "number":
        return float(found)
    return None if isinstance(found, float) and math.isnan(found) else found


@singledispatch
def value(tree: ExpressionTree, row: Row) -> Any:
    raise TypeError(type(tree))


@value.register
def _(tree: ColumnRef, row: Row) -> Any:
    found = row[tree.name]
    return None if isinstance(found, int) and not -(2**63) <= found < 2**63 else found


@value.register
def _(tree: Value, row: Row) -> Any:
    return tree.value


@value.register
def _(tree: Arithmetic, row: Row) -> Any:
    left, right = evaluated(tree.left, row), evaluated(tree.right, row)
    if left is None or right is None:
        return None
    if tree.operation == "/":
        return None if right == 0 else float(left) / float(right)
    if type(left) is int and type(right) is int:
        found = {"+": left + right, "-": left - right, "*": left * right}[tree.operation]
        return found if max(map(abs, (left, right, found))) < EXACT else None
    x, y = float(left), float(right)
    return {"+": x + y, "-": x - y, "*": x * y}[tree.operation]


@value.register
def _(tree: Absolute, row: Row) -> Any:
    found = evaluated(tree.part, row)
    if found is None or (type(found) is int and abs(found) >= EXACT):
        return None
    return abs(found)


@value.register
def _(tree: Extreme, row: Row) -> Any:
    found = [evaluated(part, row) for part in tree.choices]
    if None in found:
        return None
    return max(found) if tree.largest else min(found)


@value.register
def _(tree: Clip, row: Row) -> Any:
    found = evaluated(tree.part, row)
    ends: Any = tree.lower.value, tree.upper.value
    return None if found is None else min(max(found, ends[0]), ends[1])


@value.register
def _(tree: Compare, row: Row) -> Any:
    left, right = alike(evaluated(tree.left, row), evaluated(tree.right, row))
    if left is None or right is None:
        return None
    return {
        "==": left == right,
        "!=": left != right,
        "<": left < right,
        "<=": left <= right,
        ">": left > right,
        ">=": left >= right,
    }[tree.comparison]


@value.register
def _(tree: Member, row: Row) -> Any:
    found = evaluated(tree.part, row)
    if found is None:
        return None
    numbers = any(type(each.value) is float for each in tree.listed)
    found = float(found) if type(found) is int and numbers else found
    return any(pair[0] == pair[1] for pair in (alike(found, each.value) for each in tree.listed))


@value.register
def _(tree: Missing, row: Row) -> Any:
    return evaluated(tree.part, row) is None


@value.register
def _(tree: Not, row: Row) -> Any:
    found = evaluated(tree.part, row)
    return None if found is None else not found


@value.register
def _(tree: Logic, row: Row) -> Any:
    found = [evaluated(part, row) for part in tree.conditions]
    decides = tree.word == "or"
    return decides if decides in found else None if None in found else not decides


@value.register
def _(tree: Cut, row: Row) -> Any:
    found = evaluated(tree.part, row)
    below = [
        edge.value
        for edge in tree.edges
        if found is not None and alike(found, edge.value)[0] >= alike(found, edge.value)[1]
    ]
    last = below[-1] if below else None
    if not isinstance(last, str):
        return last
    of_days = all(len(str(edge.value)) == len("2024-12-31") for edge in tree.edges)
    return dt.date.fromisoformat(last) if of_days else dt.datetime.fromisoformat(last)


@value.register
def _(tree: Case, row: Row) -> Any:
    for test, choice in zip(tree.conditions, tree.choices, strict=False):
        if evaluated(test, row) is True:
            return None if choice is None else evaluated(choice, row)
    return None if tree.choices[-1] is None else evaluated(tree.choices[-1], row)


@value.register
def _(tree: Calendar, row: Row) -> Any:
    found = evaluated(tree.part, row)
    if found is None:
        return None
    return {
        "days": lambda: found.toordinal() - dt.date(1970, 1, 1).toordinal(),
        "weekday": found.isoweekday,
        "quarter": lambda: (found.month + 2) // 3,
        "week_of_year": lambda: found.isocalendar().week,
    }.get(tree.unit, lambda: getattr(found, tree.unit))()


@value.register
def _(tree: Truncate, row: Row) -> Any:
    found = evaluated(tree.part, row)
    if found is None:
        return None
    if tree.unit in ("hour", "minute"):
        return found.replace(second=0, microsecond=0, **({"minute": 0} if tree.unit == "hour" else {}))
    day = dt.date(found.year, found.month, found.day)
    return {
        "year": lambda: day.replace(month=1, day=1),
        "quarter": lambda: day.replace(month=(day.month - 1) // 3 * 3 + 1, day=1),
        "month": lambda: day.replace(day=1),
        "week": lambda: day - dt.timedelta(days=day.weekday()),
        "day": lambda: day,
    }[tree.unit]()


@value.register
def _(tree: Elapsed, row: Row) -> Any:
    start, end = alike(evaluated(tree.start, row), evaluated(tree.end, row))
    if start is None or end is None:
        return None
    unit = dt.timedelta(**{tree.function.removesuffix("_between"): 1})
    if not isinstance(start, dt.datetime):
        return (end - start) // unit
    microsecond = dt.timedelta(microseconds=1)
    return float((end - start) // microsecond) / float(unit // microsecond)


@value.register
def _(tree: GridValue, row: Row) -> Any:
    """By exact fractions, of the double that is nearest to x times the denominator over the numerator."""
    found = evaluated(tree.part, row)
    if found is None or math.isinf(found) or (type(found) is int and abs(found) >= EXACT):
        return None
    width = Fraction(1) if tree.width is None else Fraction(repr(tree.width.value))
    position = float(found) * float(width.denominator) / float(width.numerator)
    if not abs(position) < EXACT:
        return None
    index = math.floor(Fraction(position) + (Fraction(1, 2) if tree.direction == "round" else 0))
    if width.denominator == 1:
        return index * width.numerator if abs(index * width.numerator) < EXACT else None
    return float(index) * float(width.numerator) / float(width.denominator)


@value.register
def _(tree: Remainder, row: Row) -> Any:
    found = evaluated(tree.part, row)
    if found is None or math.isinf(found) or (type(found) is int and abs(found) >= EXACT):
        return None
    return found % tree.divisor.value


@value.register
def _(tree: Logarithm, row: Row) -> Any:
    found = evaluated(tree.part, row)
    if found is None or found <= 0:
        return None
    base = 1.0 if tree.base is None else math.log(tree.base.value)
    return math.floor(math.log(min(float(found), sys.float_info.max)) / base * 2**30 + 0.5) / 2**30


@value.register
def _(tree: Cell, row: Row) -> Any:
    found = evaluated(tree.part, row)
    if found is None:
        return None
    low, high = float(tree.lower.value), float(tree.upper.value)
    width = (high - low) / tree.cell_count
    return min(math.floor((min(max(float(found), low), high) - low) / width), tree.cell_count - 1)


@value.register
def _(tree: Local, row: Row) -> Any:
    """Python's own clock; beyond the years that are followed, the one at their end."""
    found = evaluated(tree.part, row)
    if found is None or not dt.datetime(1, 1, 2) <= found < dt.datetime(9999, 12, 30):
        return None
    near = min(max(found, CLOCK_TABLE_START), CLOCK_TABLE_END).replace(tzinfo=dt.UTC)
    return found + (near.astimezone(ZoneInfo(str(tree.zone.value))).utcoffset() or dt.timedelta())


@value.register
def _(tree: TextEnd, row: Row) -> Any:
    found, letters = evaluated(tree.part, row), int(tree.letters.value)
    return None if found is None else found[:letters] if tree.end == "prefix" else found[-letters:]


@value.register
def _(tree: Substring, row: Row) -> Any:
    found, start = evaluated(tree.part, row), int(tree.first.value) - 1
    return None if found is None else found[start : start + int(tree.letters.value)]


@value.register
def _(tree: Concat, row: Row) -> Any:
    found = [evaluated(part, row) for part in tree.parts]
    return None if None in found else "".join(map(str, found))


@value.register
def _(tree: Converted, row: Row) -> Any:
    found = evaluated(tree.part, row)
    if found is None:
        return None
    if tree.kind == "text":
        return str(found).lower() if isinstance(found, bool) else str(found)
    if not isinstance(found, str):
        return found.date() if tree.kind == "date" else float(found)
    if not re.fullmatch(CONVERTIBLE_TEXTS[tree.kind].removeprefix("^"), found):
        return None
    try:
        return {"integer": int, "number": float, "date": dt.date.fromisoformat}[tree.kind](found)
    except ValueError:
        return None


@value.register
def _(tree: TextLength, row: Row) -> Any:
    found = evaluated(tree.part, row)
    return None if found is None else len(found)


@value.register
def _(tree: TextTest, row: Row) -> Any:
    text, part = evaluated(tree.text, row), evaluated(tree.part, row)
    if text is None or part is None:
        return None
    return {"contains": part in text, "starts_with": text.startswith(part), "ends_with": text.endswith(part)}[tree.test]


@value.register
def _(tree: LetterCase, row: Row) -> Any:
    found = evaluated(tree.part, row)
    convert = str.lower if tree.case == "lower" else str.upper
    return None if found is None else "".join(other_case(letter, convert) for letter in found)


def other_case(letter: str, convert: Callable[[str], str]) -> str:
    return convert(letter) if ord(letter) < 0x530 and len(convert(letter)) == 1 else letter


def alike(left: Any, right: Any) -> tuple[Any, Any]:
    """Both as one Python type: a day or instant beside its text, doubles beside a double."""
    if isinstance(left, dt.date) and isinstance(right, str):
        return left, timed(left, right)
    if isinstance(right, dt.date) and isinstance(left, str):
        return timed(right, left), right
    if {type(left), type(right)} == {int, float}:
        return float(left), float(right)
    return left, right


def timed(like: dt.date, text: str) -> dt.date:
    return dt.datetime.fromisoformat(text) if isinstance(like, dt.datetime) else dt.date.fromisoformat(text)
