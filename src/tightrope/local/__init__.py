"""Collect without being trusted: mechanisms that people run themselves, and what a collector makes of the reports.

Importing is cheap: each name loads its module on first use (PEP 562).
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tightrope.local.hadamard_response import hadamard
    from tightrope.local.local_hashing import hashing
    from tightrope.local.response import binary_with_erasure, k_randomized_response, response_with_erasure
    from tightrope.local.shares import Shares
    from tightrope.local.subset import subset_selection
    from tightrope.local.tally import Tally
    from tightrope.local.unary import unary_encoding

_HOMES = {
    "Shares": "shares",
    "Tally": "tally",
    "binary_with_erasure": "response",
    "hadamard": "hadamard_response",
    "hashing": "local_hashing",
    "k_randomized_response": "response",
    "response_with_erasure": "response",
    "subset_selection": "subset",
    "unary_encoding": "unary",
}

__all__ = [
    "Shares",
    "Tally",
    "binary_with_erasure",
    "hadamard",
    "hashing",
    "k_randomized_response",
    "response_with_erasure",
    "subset_selection",
    "unary_encoding",
]


def __getattr__(name: str) -> Any:
    """Load a public name on first use."""
    if name not in _HOMES:
        raise AttributeError(f"module 'tightrope.local' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"tightrope.local.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
