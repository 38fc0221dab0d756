"""What a part of a document may be: no other key, no other type, no number out of range. What is not so is no document.

Whoever reads a document sees every key of it: one that no claim is about would be believed because the others are.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from typing import Any

Shape = Callable[[str, Any], None]
"""Takes the name of a place and what stands there; raises ``MalformedError``."""
LARGEST_WHOLE = 1 << 53


class MalformedError(ValueError):
    """Something that no writer of ours writes."""


def expect(holds: bool, name: str, words: str) -> None:
    """Raise unless it holds."""
    if not holds:
        raise MalformedError(f"{name}: expected {words}")


def anything(_name: str, _value: Any) -> None:
    """What nothing is computed from."""


def word(name: str, value: Any) -> None:
    """Text."""
    expect(isinstance(value, str), name, "text")


def true_or_false(name: str, value: Any) -> None:
    """A truth value."""
    expect(isinstance(value, bool), name, "true or false")


def number(least: float = -sys.float_info.max, most: float = sys.float_info.max) -> Shape:
    """A number of that range, both ends included."""

    def shape(name: str, value: Any) -> None:
        plain = isinstance(value, (int, float)) and not isinstance(value, bool)
        expect(plain and least <= value <= most, name, f"a number in [{least:g}, {most:g}]")

    return shape


def positive(name: str, value: Any) -> None:
    """A number above 0."""
    number(0)(name, value)
    expect(value > 0, name, "a number above 0")


def whole(least: int = 0, most: int = LARGEST_WHOLE) -> Shape:
    """A whole number of that range: 1.0 is none."""

    def shape(name: str, value: Any) -> None:
        plain = isinstance(value, int) and not isinstance(value, bool)
        expect(plain and least <= value <= most, name, f"a whole number in [{least}, {most}]")

    return shape


def spelled_as(pattern: str, words: str) -> Shape:
    """Text of this pattern alone."""

    def shape(name: str, value: Any) -> None:
        expect(isinstance(value, str) and re.fullmatch(pattern, value, re.ASCII) is not None, name, words)

    return shape


def among(*values: object) -> Shape:
    """One of these, and of the same type."""

    def shape(name: str, value: Any) -> None:
        same = any(type(value) is type(one) and value == one for one in values)
        expect(same, name, f"one of {', '.join(map(repr, values))}")

    return shape


def maybe(part: Shape) -> Shape:
    """That, or nothing."""

    def shape(name: str, value: Any) -> None:
        if value is not None:
            part(name, value)

    return shape


def many(part: Shape, least: int = 0, most: int = 1 << 20) -> Shape:
    """A list of these."""

    def shape(name: str, value: Any) -> None:
        expect(isinstance(value, list) and least <= len(value) <= most, name, f"a list of {least} to {most}")
        for place, one in enumerate(value):
            part(f"{name}[{place}]", one)

    return shape


def row_of(*parts: Shape) -> Shape:
    """A list of exactly these."""

    def shape(name: str, value: Any) -> None:
        expect(isinstance(value, list) and len(value) == len(parts), name, f"a list of {len(parts)}")
        for place, (part, one) in enumerate(zip(parts, value, strict=True)):
            part(f"{name}[{place}]", one)

    return shape


def table(needed: dict[str, Shape], more: dict[str, Shape] | None = None, *, others: bool = False) -> Shape:
    """A table with these keys, and maybe some ``more``; with ``others`` besides only where nothing is read of them."""
    known = {**needed, **(more or {})}

    def shape(name: str, value: Any) -> None:
        expect(isinstance(value, dict), name, "a table")
        missing, extra = [key for key in needed if key not in value], [key for key in value if key not in known]
        expect(not missing, name, f"the key {missing[:1]}")
        expect(others or not extra, name, f"no key but its own; it has {extra[:1]!a}")
        for key, own in value.items():
            known.get(key, anything)(f"{name}.{key}", own)

    return shape


def names_to(part: Shape) -> Shape:
    """A table of any keys to these."""

    def shape(name: str, value: Any) -> None:
        expect(isinstance(value, dict), name, "a table")
        for key, own in value.items():
            part(f"{name}.{key!a}", own)

    return shape


def tagged(key: str, forms: dict[str, Shape]) -> Shape:
    """A table whose ``key`` says which of the forms it has."""

    def shape(name: str, value: Any) -> None:
        expect(isinstance(value, dict), name, "a table")
        tag = value.get(key)
        expect(isinstance(tag, str) and tag in forms, f"{name}.{key}", f"one of {', '.join(forms)}")
        forms[tag](name, {own: inner for own, inner in value.items() if own != key})

    return shape
