"""The names under which answers are remembered: what is one name, and what is none."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from tightrope.errors import InputError

EQUAL_TYPES = frozenset({int, str, bytes, UUID})
"""Equal where they are the same, and only there."""
EXPECTED = "made of whole numbers, strings, bytes, UUIDs or tuples of them"
OWN_NAMES = "1, 1.0 and True are equal, NaN is not even equal to itself: give every value a name of its own"


def people(person: Any, count: int) -> list[Any]:
    """Whose value each of ``count`` values is: one name for all, or a list, tuple or array of names, shape [count].

    Names are whole numbers, strings, bytes, UUIDs or (in a list) tuples of these. Others are refused: floats, booleans
    and what is missing (None, NaN) would be one name for several people, or several names for one. Raises
    ``InputError``, which tells types and never a name.

    >>> people("Ann", 2), people([7, "7"], 2)
    (['Ann', 'Ann'], [7, '7'])
    """
    found = _each(person)
    if found is None:
        return _checked([_plain(person)]) * count
    if len(found) != count:
        raise InputError("person", f"{len(found)} people", f"one person, or one for each of {count} values")
    return _checked(found)


def _each(person: Any) -> list[Any] | None:
    """The names of a list, tuple or array; None where ``person`` is one name."""
    if isinstance(person, (list, tuple)):
        return [_plain(name) for name in person]
    if not getattr(person, "ndim", 0):
        return None
    array: NDArray[Any] = np.asarray(person)
    return list(array) if array.dtype.kind in "Mm" else array.tolist()


def _plain(name: Any) -> Any:
    """A number or string of numpy as one of Python."""
    return name.item() if isinstance(name, np.generic) else name


def _checked(found: list[Any]) -> list[Any]:
    odd = {kind for kind in map(type, found) if kind not in EQUAL_TYPES}
    if tuple in odd and all(_is_whole(name) for name in found if isinstance(name, tuple)):
        odd.remove(tuple)
    if odd:
        raise InputError("types in person", sorted(kind.__name__ for kind in odd), EXPECTED, OWN_NAMES)
    return found


def _is_whole(name: tuple[Any, ...]) -> bool:
    return all(type(part) in EQUAL_TYPES or (isinstance(part, tuple) and _is_whole(part)) for part in name)
