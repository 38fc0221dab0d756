"""Reading a release document that may lack any field: an absent or senseless one is None or empty, never an error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from numbers import Real

Json = Mapping[str, object]

LARGEST_NUMBER = 1e300


def as_number(value: object) -> float | None:
    """``value`` as a float; None for anything else: NaN, ±∞, booleans, and what no picture can hold (over 1e300).

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


def number(source: Json, key: str) -> float | None:
    """The finite number in a field, or None."""
    return as_number(source.get(key))


def text(source: Json, key: str) -> str:
    """The text in a field, without white space around it; numbers as they print; empty where there is none.

    >>> text({"a": " x ", "b": 3, "c": None}, "a"), text({"b": 3}, "b"), text({"c": None}, "c")
    ('x', '3', '')
    """
    value = source.get(key)
    if isinstance(value, str):
        return value.strip()
    return "" if as_number(value) is None else str(value)


def object_at(source: Json, key: str) -> Json:
    """The object in a field; empty where there is none."""
    value = source.get(key)
    return value if isinstance(value, Mapping) else {}


def items(source: Json, key: str) -> list[object]:
    """The list in a field; empty where there is none."""
    value = source.get(key)
    return list(value) if isinstance(value, Sequence) and not isinstance(value, str | bytes) else []


def objects_at(source: Json, key: str) -> list[Json]:
    """The objects of the list in a field, others dropped."""
    return [item for item in items(source, key) if isinstance(item, Mapping)]


def texts(source: Json, key: str) -> list[str]:
    """The texts of the list in a field, others dropped."""
    return [item.strip() for item in items(source, key) if isinstance(item, str) and item.strip()]


def pairs(source: Json, first: str, second: str) -> list[tuple[float, float]]:
    """Two parallel lists of numbers as pairs; a pair with a hole is dropped.

    >>> pairs({"x": [0, 1, 2], "y": [5, None]}, "x", "y")
    [(0.0, 5.0)]
    """
    found = [(as_number(x), as_number(y)) for x, y in zip(items(source, first), items(source, second), strict=False)]
    return [(x, y) for x, y in found if x is not None and y is not None]
