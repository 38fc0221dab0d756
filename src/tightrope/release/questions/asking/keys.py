"""The groups that a question lists: values of one column, tuples of several, or values by column."""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Mapping

from tightrope.errors import PlanError

Keys = tuple[tuple[object, ...], ...]
NESTED = (list, tuple, dict, set, frozenset)
MOST_KEYS = 1_000_000
"""So many keys are planned at most: each is a row of the answer."""


def listed_keys(keys: object, by: tuple[str, ...]) -> Keys | None:
    """The groups, one value for each of ``by``; None where none are listed. Raises ``PlanError``."""
    if keys is None:
        return None
    if not by:
        raise PlanError("keys", keys, "left out where by is", 'say which column they are of: by="city"')
    listed = _product(keys, by) if isinstance(keys, Mapping) else _listed(keys, by)
    if not all(isinstance(value, Hashable) and not isinstance(value, NESTED) for key in listed for value in key):
        expected = f"a list of {'values' if len(by) == 1 else f'lists of {len(by)} values'}, none of them a list itself"
        raise PlanError("keys", _kind(keys), expected, "say keys = [0, 1]" if len(by) == 1 else 'say keys = [["a", 1]]')
    if len(once := dict.fromkeys(listed)) < len(listed):
        different = f"different keys, but {len(listed) - len(once)} of {len(listed)} equal others"
        raise PlanError("keys", _kind(keys), different, "list each group once; 1, 1.0 and true are one")
    return tuple(once)


def _listed(keys: object, by: tuple[str, ...]) -> list[tuple[object, ...]]:
    listed = [tuple(key) if isinstance(key, (tuple, list)) else (key,) for key in _values(keys)]
    for place, key in enumerate(listed):
        if len(key) != len(by):
            raise PlanError("keys", f"{len(key)} in key {place + 1}", f"one value for each of {list(by)}")
    return listed


def _product(keys: Mapping[object, object], by: tuple[str, ...]) -> list[tuple[object, ...]]:
    if set(keys) != set(by):
        raise PlanError("keys", list(keys), f"values for exactly the columns {list(by)}")
    columns = [_values(keys[column]) for column in by]
    if (size := math.prod(map(len, columns))) > MOST_KEYS:
        expected = f"at most {MOST_KEYS:,} combinations"
        raise PlanError("keys", f"{size:,} combinations", expected, "list those that matter, or leave keys out")
    return list(itertools.product(*columns))


_PLAIN = (list, tuple, range, set, frozenset)
_OTHERS = (("numpy", "ndarray"), ("pandas", "Index"))
"""Lists of other libraries, by library and class. A column of a frame is not among them: it is data."""


def _values(values: object) -> list[object]:
    others = any((cls.__module__.partition(".")[0], cls.__name__) in _OTHERS for cls in type(values).__mro__)
    others = others and getattr(values, "ndim", 1) == 1
    entries = list(values) if isinstance(values, _PLAIN) or others else []  # type: ignore[call-overload]
    if not entries:
        remedy = "list them in the plan, or leave keys out to discover them; keys that are read from the data are data"
        raise PlanError("keys", _kind(values), "a list with at least one key", remedy)
    return entries


def _kind(keys: object) -> str:
    """What is shown of keys that cannot be: not they, for they may have been read from the data."""
    return f"{type(keys).__name__} of {len(keys)}" if isinstance(keys, (*_PLAIN, Mapping)) else type(keys).__name__
