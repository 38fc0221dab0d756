"""Reading inert data: look-ups in parsed JSON that check the type and say where they are."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Self

from tightrope.errors import InputError

AGAIN = "write the file again with: tightrope couple fit"
LARGEST_NUMBER = sys.float_info.max
HEX = re.compile(r"[0-9a-f]{1,8192}")


def parsed(text: str, name: str) -> Any:
    """The data of a JSON text; raises ``InputError`` for anything else, NaN and infinities too."""
    try:
        return json.loads(text, parse_constant=_refused)
    except (ValueError, RecursionError):
        raise InputError(name, f"{len(text)} characters", "a JSON file that 'tightrope couple fit' wrote") from None


def _refused(constant: str) -> Any:
    raise ValueError(constant)


def hexadecimal(number: int) -> str:
    """A whole number >= 0 as text; decimal text of thousands of digits takes Python quadratic time.

    >>> hexadecimal(255)
    'ff'
    """
    return f"{number:x}"


@dataclass(frozen=True, slots=True)
class Fields:
    """One table of the file: each look-up raises ``InputError`` with the place of what is wrong."""

    place: str
    entries: Mapping[str, Any]

    @classmethod
    def of(cls, place: str, value: Any) -> Self:
        """The table at ``place``."""
        if not isinstance(value, Mapping):
            raise InputError(place, value, "a table of keys and values", AGAIN)
        return cls(place, value)

    def wrong(self, key: str, expected: str, remedy: str = AGAIN) -> InputError:
        """The error that says that the value of ``key`` is not what was expected."""
        return InputError(f"{self.place} {key}", self.entries.get(key), expected, remedy)

    def inner(self, key: str) -> Fields:
        """A table in this table."""
        return Fields.of(f"{self.place} {key}", self.entries.get(key))

    def text(self, key: str) -> str:
        """A text that is not empty."""
        value = self.entries.get(key)
        if not isinstance(value, str) or not value:
            raise self.wrong(key, "a text")
        return value

    def number(self, key: str) -> float:
        """A finite number."""
        value = self.entries.get(key)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) <= LARGEST_NUMBER:
            raise self.wrong(key, "a finite number")
        return float(value)

    def whole(self, key: str) -> int:
        """A whole number ≥ 0."""
        value = self.entries.get(key)
        if isinstance(value, bool) or not isinstance(value, int) or not value >= 0:
            raise self.wrong(key, "a whole number >= 0")
        return value

    def listed(self, key: str, entry: Callable[[Any], bool], expected: str) -> list[Any]:
        """A list, not empty, of things that ``entry`` accepts."""
        values = self.entries.get(key)
        if not isinstance(values, list) or not values or not all(map(entry, values)):
            shown = f"{len(values)} entries" if isinstance(values, list) else type(values).__name__  # laws are secret
            raise InputError(f"{self.place} {key}", shown, f"a list, not empty, of {expected}", AGAIN)
        return values

    def wholes(self, key: str) -> list[int]:
        """A list of whole numbers ≥ 0 as hexadecimal text."""
        texts = self.listed(key, _is_hexadecimal, "whole numbers in hexadecimal text")
        return [int(text, 16) for text in texts]

    def places(self, key: str, size: int) -> list[int]:
        """A list of whole numbers in 0..size − 1."""
        return self.listed(key, lambda value: _is_place(value, size), f"whole numbers in 0..{size - 1}")


def _is_hexadecimal(value: Any) -> bool:
    return isinstance(value, str) and HEX.fullmatch(value) is not None


def _is_place(value: Any, size: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < size
