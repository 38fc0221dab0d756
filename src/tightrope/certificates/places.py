"""Errors of Python functions in the words of a file that people write: the names of its keys, and where they stand."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType

from tightrope.errors import BudgetRefused, InputError, PlanError, SchemaError

Names = Mapping[str, str]
"""What a parameter is called in the file, where that is another name: ``{"rows_per_person": "[person] rows"}``."""
SAME: Names = MappingProxyType({})
_GIVEN = re.compile(r"(?<![\w<>!])([a-z_]+)=(?![=\s])")


@contextmanager
def placed(place: str, names: Names = SAME) -> Iterator[None]:
    """Errors from within name keys of a file, and say where they stand; texts give keys as they are typed there.

    They leave as ``PlanError``; a ``SchemaError`` and a refused budget stay what they are.
    """
    try:
        yield
    except InputError as error:
        kind = SchemaError if isinstance(error, SchemaError) else PlanError
        where = f"{place} {_key(error.name, names)}".strip()
        raise kind(where, error.value, typed(error.expected, names), typed(error.remedy, names)) from None
    except BudgetRefused as error:
        raise BudgetRefused(typed(str(error), names)) from None


def typed(text: str, names: Names) -> str:
    """The text with every ``parameter=value`` as a line of the file.

    >>> typed("fewer, such as groups_per_person=1", {"groups_per_person": "[person] groups"})
    'fewer, such as groups = 1'
    """
    return _GIVEN.sub(lambda found: f"{names.get(found[1], found[1]).rpartition(' ')[2]} = ", text)


def _key(name: str, names: Names) -> str:
    """The key of a parameter; of what belongs to one (``dialect delimiter``), what belongs to the key."""
    parameter, blank, part = name.partition(" ")
    return f"{names.get(parameter, parameter)}{blank}{part}"
