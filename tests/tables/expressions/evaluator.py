"""The language once more in plain Python, one row at a time: what every engine must agree with. None is missing."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Mapping
from functools import singledispatch
from typing import Any
from zoneinfo import ZoneInfo

from tests.tables.expressions.trees import SCHEMA
from tightrope.tables.expressions.arithmetic import Absolute, Arithmetic, Clip, Extreme
from tightrope.tables.expressions.conditions import Calendar, Case, Compare, Cut, Logic, Member, Missing, Not
from tightrope.tables.expressions.functions import CLOCK_TABLE_END, CLOCK_TABLE_START, Cell, Local, Lower, Prefix
from tightrope.tables.expressions.leaves import ColumnRef, Value
from tightrope.tables.expressions.tree import ExpressionTree

Row = Mapping[str, Any]
EXACT = 2**53


def evaluated(tree: ExpressionTree, row: Row) -> Any:
    """The value, a double where the kind is a number; NaN is missing."""
    found = value(tree, row)
    if type(found) is int and tree.infer_facts(SCHEMA).kind == "number":
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
    return dt.date.fromisoformat(last) if isinstance(last, str) else last


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
    if tree.unit == "days":
        return found.toordinal() - dt.date(1970, 1, 1).toordinal()
    return found.isoweekday() if tree.unit == "weekday" else getattr(found, tree.unit)


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
def _(tree: Prefix, row: Row) -> Any:
    found = evaluated(tree.part, row)
    return None if found is None else found[: int(tree.letters.value)]


@value.register
def _(tree: Lower, row: Row) -> Any:
    found = evaluated(tree.part, row)
    return None if found is None else "".join(small(letter) for letter in found)


def small(letter: str) -> str:
    return letter.lower() if ord(letter) < 0x530 and len(letter.lower()) == 1 else letter


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
