"""Noise that many tests plan alike is computed once a process (the fixture ``planned_once``).

Not for tests of the search itself, of its time, or with a patch inside it: those need every search.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from tightrope.documents import Budget
from tightrope.noise.allocation import NoiseAllocation, allocate_noise
from tightrope.noise.worst_split import CompositionGroup

_allocated = cache(allocate_noise)


def allocated(units: Sequence[CompositionGroup], budget: Budget, **options: Any) -> NoiseAllocation:
    """``allocate``, kept by all its arguments; data that reached them would be seen as another search."""
    if options.get("like") is not None:  # an allocation has no hash
        return allocate_noise(units, budget, **options)
    return _allocated(tuple(units), budget, **options)
