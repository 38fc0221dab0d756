"""Which group each of many values is from: one name for all, or a name a value."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tightrope.errors import InputError
from tightrope.transport.exact_laws import array_of

Group = Any
Codes = NDArray[np.int32]
Places = NDArray[np.int64]

FEW = 16
"""So many groups are found by comparing with each name, more by search in the order of the names."""


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
    many = len(names) > FEW and _comparable(given, names)
    found = _searched(given, names) if many else _compared(given, names)
    unknown = int(np.count_nonzero(found < 0))
    if unknown:
        expected = f"0 of {count}, each one of {list(names)}"
        raise InputError("unknown groups", unknown, expected, "leave these values out")
    return found


def runs(found: Codes) -> Iterator[tuple[int, Places]]:
    """The places of each code, code after code; shape [k] each."""
    order = np.argsort(found.astype(np.int16) if found.max(initial=0) < 2**15 else found, kind="stable")
    counts = np.bincount(found)
    ends = np.cumsum(counts)
    for code in np.flatnonzero(counts).tolist():
        yield code, order[ends[code] - counts[code] : ends[code]]


def _is_many(group: Group) -> bool:
    return isinstance(group, list) or getattr(group, "ndim", 0) > 0


def _one(group: Group, names: Sequence[Group]) -> int:
    try:
        return {name: number for number, name in enumerate(names)}[group]
    except (KeyError, TypeError):
        raise InputError("group", group, f"one of {list(names)}", "fit the mechanism with its law") from None


def _array(group: Any) -> NDArray[Any]:
    """A list of unlike things stays one of objects: numpy would make strings of the numbers in it."""
    if isinstance(group, list) and (len(set(map(type, group))) > 1 or isinstance(next(iter(group), None), tuple)):
        mixed = np.empty(len(group), dtype=object)
        mixed[:] = group
        return mixed
    return array_of("group", group, "one name, or a name for each value")


def _compared(given: NDArray[Any], names: Sequence[Group]) -> Codes:
    found = np.full(len(given), -1, dtype=np.int32)
    for number, name in enumerate(names):
        wanted: Any = _boxed(name) if isinstance(name, tuple) else name
        found[np.asarray(given == wanted, dtype=bool)] = number
    return found


def _boxed(name: tuple[Any, ...]) -> NDArray[Any]:
    """One object that numpy does not take for an array of its parts."""
    box = np.empty(1, dtype=object)
    box[0] = name
    return box


def _searched(given: NDArray[Any], names: Sequence[Group]) -> Codes:
    known = np.array(names)
    order = np.argsort(known)
    place = order[np.minimum(np.searchsorted(known, given, sorter=order), len(names) - 1)]
    return np.where(known[place] == given, place, -1).astype(np.int32)


def _comparable(given: NDArray[Any], names: Sequence[Group]) -> bool:
    """Whether names and what came are all strings, or all whole numbers of 64 bits: they have one order."""
    wanted = {"U": str, "i": int}.get(given.dtype.kind)
    return all(type(name) is wanted for name in names) and np.array(names).dtype.kind == given.dtype.kind
