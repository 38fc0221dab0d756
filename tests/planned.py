"""Noise that many tests plan alike is computed once a process (the fixture ``planned_once``).

Not for tests of the search itself, of its time, or with a patch inside it: those need every search.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from tightrope.documents import Budget
from tightrope.noise.allocation import Allocation, allocate
from tightrope.noise.worst_split import Unit

_allocated = cache(allocate)


def allocated(units: Sequence[Unit], budget: Budget, **options: Any) -> Allocation:
    """``allocate``, kept by all its arguments; data that reached them would be seen as another search."""
    if options.get("like") is not None:  # an allocation has no hash
        return allocate(units, budget, **options)
    return _allocated(tuple(units), budget, **options)
