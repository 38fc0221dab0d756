"""Read a release document that may lack any field: an absent or invalid field is None or empty, never an error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from numbers import Real

Json = Mapping[str, object]

LARGEST_NUMBER = 1e300


def as_number(value: object) -> float | None:
    """Return ``value`` as a float; None for other types, NaN, ±∞, booleans, and numbers too large to draw (over 1e300).

    >>> as_number(3), as_number(float("nan")), as_number(True), as_number("3")
    (3.0, None, None, None)
    """
    if isinstance(value, bool) or not isinstance(value, Real | Decimal):
        return None
    try:
        found = float(value)
    except (OverflowError, ValueError):
        return None
    return found if abs(found) <= LARGEST_NUMBER else None


def number_at(source: Json, key: str) -> float | None:
    """Return the finite number in a field, or None."""
    return as_number(source.get(key))


def text_at(source: Json, key: str) -> str:
    """Return the text in a field, stripped of white space; numbers as they print; empty if missing.

    >>> text_at({"a": " x ", "b": 3, "c": None}, "a"), text_at({"b": 3}, "b"), text_at({"c": None}, "c")
    ('x', '3', '')
    """
    value = source.get(key)
    if isinstance(value, str):
        return value.strip()
    return "" if as_number(value) is None else str(value)


def object_at(source: Json, key: str) -> Json:
    """Return the object in a field; empty if missing."""
    value = source.get(key)
    return value if isinstance(value, Mapping) else {}


def list_at(source: Json, key: str) -> list[object]:
    """Return the list in a field; empty if missing."""
    value = source.get(key)
    return list(value) if isinstance(value, Sequence) and not isinstance(value, str | bytes) else []


def objects_at(source: Json, key: str) -> list[Json]:
    """Return the objects of the list in a field; other items are dropped."""
    return [item for item in list_at(source, key) if isinstance(item, Mapping)]


def texts_at(source: Json, key: str) -> list[str]:
    """Return the texts of the list in a field; other items are dropped."""
    return [item.strip() for item in list_at(source, key) if isinstance(item, str) and item.strip()]


def pairs_at(source: Json, first: str, second: str) -> list[tuple[float, float]]:
    """Return two parallel lists of numbers as pairs; a pair with a missing number is dropped.

    >>> pairs_at({"x": [0, 1, 2], "y": [5, None]}, "x", "y")
    [(0.0, 5.0)]
    """
    found = [
        (as_number(x), as_number(y)) for x, y in zip(list_at(source, first), list_at(source, second), strict=False)
    ]
    return [(x, y) for x, y in found if x is not None and y is not None]
