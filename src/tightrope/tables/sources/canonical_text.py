"""Text forms of numbers, days and instants, in CSV fields and in folders' names: all other texts are missing.

A list of *refused* forms would depend on the numbers that a library accepts today: underscores, odd
blanks, ``epoch``. Here is what *fits*, as patterns for a whole text that Python and RE2 read alike; what is matched
means the same to Python's and DuckDB's own casts.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Callable, Mapping
from typing import Any

BLANKS = " \t"
"""Characters ignored around values other than text."""
INTEGER_DIGITS = r"[+-]?[0-9]+"
"""The part of an integer to the left of its point."""
SCALED = "e"
"""The start of an exponent, in upper or lower case."""
DAY_LETTERS = 10
EXACT_BELOW = 2.0**53
"""Doubles hold every integer below."""
_POINT = "[.]"
_SHORT = rf"[+-]?([0-9]|{_POINT}){{1,15}}[eE][+]?[0-9]+"
"""With no more digits than tell doubles apart: its double is a whole number only if it is the same one. R writes
100000 so."""
_DAY = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
_TIME = r"([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\.[0-9]{1,9})?)?"
_MIDNIGHT = r"00:00(:00(\.0{1,9})?)?"
_OFFSET = r"(Z|[+-](0[0-9]|1[0-5])(:?[0-5][0-9])?)"
"""Nowhere on Earth is a clock sixteen hours from UTC; engines take more, and differ in it."""
_MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
           "December")  # fmt: skip


def _any_case(*words: str) -> str:
    """Match upper and lower case. Not ``(?i)``, which also matches a long s as s."""
    spelled = ("".join(f"[{letter.upper()}{letter.lower()}]" for letter in word) for word in words)
    return f"({'|'.join(spelled)})"


_NO_DIGITS = _any_case("inf", "infinity", "nan")
_SPELLED: Mapping[str, str] = {
    "integer": rf"{INTEGER_DIGITS}({_POINT}0*)?|{_SHORT}",
    "number": rf"[+-]?(([0-9]+({_POINT}[0-9]*)?|{_POINT}[0-9]+)([eE][+-]?[0-9]+)?|{_NO_DIGITS})",
    "exact": rf"{INTEGER_DIGITS}({_POINT}0*)?|[+-]?{_POINT}0+|{_SHORT}",
    "boolean": rf"{_any_case('true', 'false')}|[01]",
    "date": rf"{_DAY}([ T]{_MIDNIGHT})?",
    "timestamp": rf"{_DAY}([ T]{_TIME}{_OFFSET}?)?",
    "zoned": rf"{_DAY}[ T]{_TIME}{_OFFSET}",
}
"""``exact``: numbers that are, if their double is a whole number below 2^53, that whole number. Others would be,
rounded, another person's. ``zoned``: timestamps with an offset from UTC."""
_DIRECTIVES: Mapping[str, str] = {
    "Y": "[0-9]{1,4}",
    "f": "[0-9]{1,6}",
    "j": "[0-9]{1,3}",
    "b": _any_case(*(month[:3] for month in _MONTHS)),
    "B": _any_case(*_MONTHS),
    "p": _any_case("am", "pm"),
    "z": _OFFSET,
    "%": "%",
    **dict.fromkeys("mdHMSyI", "[0-9]{1,2}"),
}
"""Patterns that directives of a format accept at most; the engine checks the calendar."""


def pattern_of_kind(kind: str, mark: str = ".") -> str:
    """The pattern of a whole text of that kind, with the mark that numbers have for a point."""
    return _anchor_pattern(_SPELLED[kind].replace(_POINT, f"[{mark}]"))


def pattern_of_format(said: str) -> str:
    """The pattern of a whole text in a format such as ``%d.%m.%Y``, of directives that ``Dialect`` lets through."""
    pieces = re.findall(r"%-?(.)|( +)|([^% ])", said, re.DOTALL)
    return _anchor_pattern(
        "".join(_DIRECTIVES[name] if name else " +" if gap else re.escape(own) for name, gap, own in pieces)
    )


def _anchor_pattern(pattern: str) -> str:
    return rf"^[ \t]*({pattern})[ \t]*$"


def parse_value(value: str | None, kind: str) -> Any:
    """Return a text's value in a column of a declared kind, as in CSV fields; None if it does not fit.

    >>> pairs = (("007", "integer"), ("1.7", "integer"), ("2024-02-29", "date"), ("007", "text"))
    >>> tuple(parse_value(*pair) for pair in pairs)
    (7, None, datetime.date(2024, 2, 29), '007')
    """
    if value is None or kind == "text":
        return value and (None if any("\ud800" <= letter <= "\udfff" for letter in value) else value)
    if not re.fullmatch(pattern_of_kind(kind), value):
        return None
    try:
        return _MADE[kind](value.strip(BLANKS))
    except (ValueError, OverflowError):  # the 30th of February; an instant that in UTC is after the last one
        return None


def _parse_integer(text: str) -> int | None:
    if SCALED in text.lower():
        number = _parse_number(text)
        return int(number) if number is not None and abs(number) < EXACT_BELOW and number.is_integer() else None
    made = int(text.partition(".")[0])
    return made if -(1 << 63) <= made < 1 << 63 else None


def _parse_number(text: str) -> float | None:
    made = float(text)
    stray = abs(made) < EXACT_BELOW and made == math.floor(made) and not re.fullmatch(pattern_of_kind("exact"), text)
    return None if stray else made


def _parse_timestamp(text: str) -> datetime.datetime:
    made = datetime.datetime.fromisoformat(text)
    return made if made.tzinfo is None else made.astimezone(datetime.UTC).replace(tzinfo=None)


_MADE: Mapping[str, Callable[[str], Any]] = {
    "integer": _parse_integer,
    "number": _parse_number,
    "boolean": lambda text: text.lower() in ("true", "1"),
    "date": lambda text: datetime.date.fromisoformat(text[:DAY_LETTERS]),
    "timestamp": _parse_timestamp,
}
