"""Which group each of many values is from: one name for all, or a name a value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tightrope.errors import InputError
from tightrope.numerics.arrays import array_of

Group = Any
Codes = NDArray[np.int32]


def codes(group: Group, names: Sequence[Group], count: int) -> Codes:
    """The place in ``names`` of the group of each of ``count`` values, shape [count].

    ``group``: one of the names, or a list or array with one for each value; a tuple is a name. Names are the same where
    Python finds them equal. Raises ``InputError`` for other names – of a list it says how many, since the group of
    a person may be what is to be hidden – and for a list of another length.

    >>> codes("b", ["a", "b"], 3).tolist(), codes(["b", "a", "b"], ["a", "b"], 3).tolist()
    ([1, 1, 1], [1, 0, 1])
    """
    if not _is_many(group):
        return np.broadcast_to(np.int32(_one(group, names)), (count,))
    given = _array(group)
    if given.shape != (count,):
        shown = f"groups of shape {given.shape}"
        raise InputError("group", shown, f"one of {list(names)}, or one for each of {count} values")
    found = _searched(given, np.array(names)) if _comparable(given, names) else _listed(given, names)
    unknown = int(np.count_nonzero(found < 0))
    if unknown:
        expected = f"0 of {count}, each one of {list(names)}"
        raise InputError("unknown groups", unknown, expected, "leave these values out")
    return found


def _is_many(group: Group) -> bool:
    return isinstance(group, list) or getattr(group, "ndim", 0) > 0


def _one(group: Group, names: Sequence[Group]) -> int:
    try:
        return {name: number for number, name in enumerate(names)}[group]
    except (KeyError, TypeError):
        raise InputError("group", group, f"one of {list(names)}", "fit the mechanism with its law") from None


def _array(group: Any) -> NDArray[Any]:
    """The names in an array: in one of objects where numpy would change them."""
    if isinstance(group, list) and _is_changed(group):
        mixed = np.empty(len(group), dtype=object)
        mixed[:] = group
        return mixed
    return array_of("group", group, "one name, or a name for each value")


def _is_changed(group: list[Any]) -> bool:
    """Numpy makes strings of numbers beside strings, arrays of tuples, and drops NULs at the ends of strings."""
    kinds = set(map(type, group))
    return len(kinds) > 1 or tuple in kinds or (kinds == {str} and "\0" in "".join(group))


def _listed(given: NDArray[Any], names: Sequence[Group]) -> Codes:
    """One by one, whatever the names are; what cannot be hashed is none of them."""
    places = {name: number for number, name in enumerate(names)}
    entries = list(given) if given.dtype.kind in "Mm" else given.tolist()
    try:
        return np.array([places.get(entry, -1) for entry in entries], dtype=np.int32)
    except TypeError:
        raise InputError("group", "lists or tables", "a name for each value", "names are such as keys can be") from None


def _searched(given: NDArray[Any], known: NDArray[Any]) -> Codes:
    """All at once: where each would stand among the sorted names, and whether it is the one that stands there."""
    order = np.argsort(known)
    places = order[np.minimum(np.searchsorted(known, given, sorter=order), len(known) - 1)]
    return np.where(known[places] == given, places, -1).astype(np.int32)


def _comparable(given: NDArray[Any], names: Sequence[Group]) -> bool:
    """Whether names and what came are all strings, or all whole numbers of 64 bits, as numpy holds them."""
    wanted = {"U": str, "i": int}.get(given.dtype.kind)
    if wanted is None or not all(type(name) is wanted for name in names):
        return False
    known = np.array(names)
    return known.dtype.kind == given.dtype.kind and known.tolist() == list(names)  # numpy drops NULs at the end
