"""How a number, a day or an instant is spelled in text, in CSV fields and in folders' names: what is not so is missing.

What is told apart by a list of what is *refused* depends on what a library takes for a number today: underscores, odd
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
"""What is ignored around a spelling; around text nothing is."""
INTEGER_DIGITS = r"[+-]?[0-9]+"
"""What stands left of an integer's point."""
SCALED = "e"
"""What an exponent begins with, in capitals or not."""
DAY_LETTERS = 10
EXACT_BELOW = 2.0**53
"""Doubles hold every whole number below."""
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
    """In capitals or not. Not ``(?i)``, which takes a long s for an s, too."""
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
"""What a directive of a format takes at most; which days there are the engine knows."""


def whole(kind: str, mark: str = ".") -> str:
    """The pattern of a whole text of that kind, with the mark that numbers have for a point."""
    return _framed(_SPELLED[kind].replace(_POINT, f"[{mark}]"))


def whole_in_format(said: str) -> str:
    """The pattern of a whole text in a format such as ``%d.%m.%Y``, of directives that ``Dialect`` lets through."""
    pieces = re.findall(r"%-?(.)|( +)|([^% ])", said, re.DOTALL)
    return _framed("".join(_DIRECTIVES[name] if name else " +" if gap else re.escape(own) for name, gap, own in pieces))


def _framed(pattern: str) -> str:
    return rf"^[ \t]*({pattern})[ \t]*$"


def fitted(value: str | None, kind: str) -> Any:
    """What a text is in a column of a declared kind; None where it does not fit. A CSV field is the same.

    >>> fitted("007", "integer"), fitted("1.7", "integer"), fitted("2024-02-29", "date"), fitted("007", "text")
    (7, None, datetime.date(2024, 2, 29), '007')
    """
    if value is None or kind == "text":
        return value and (None if any("\ud800" <= letter <= "\udfff" for letter in value) else value)
    if not re.fullmatch(whole(kind), value):
        return None
    try:
        return _MADE[kind](value.strip(BLANKS))
    except (ValueError, OverflowError):  # the 30th of February; an instant that in UTC is after the last one
        return None


def _integer(text: str) -> int | None:
    if SCALED in text.lower():
        number = _number(text)
        return int(number) if number is not None and abs(number) < EXACT_BELOW and number.is_integer() else None
    made = int(text.partition(".")[0])
    return made if -(1 << 63) <= made < 1 << 63 else None


def _number(text: str) -> float | None:
    made = float(text)
    stray = abs(made) < EXACT_BELOW and made == math.floor(made) and not re.fullmatch(whole("exact"), text)
    return None if stray else made


def _timestamp(text: str) -> datetime.datetime:
    made = datetime.datetime.fromisoformat(text)
    return made if made.tzinfo is None else made.astimezone(datetime.UTC).replace(tzinfo=None)


_MADE: Mapping[str, Callable[[str], Any]] = {
    "integer": _integer,
    "number": _number,
    "boolean": lambda text: text.lower() in ("true", "1"),
    "date": lambda text: datetime.date.fromisoformat(text[:DAY_LETTERS]),
    "timestamp": _timestamp,
}
