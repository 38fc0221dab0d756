"""Collect without being trusted: mechanisms that people run themselves, and what a collector makes of the reports.

Importing is cheap: each name loads its module on first use (PEP 562).
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tightrope.channels import Channel, SymmetricChannel
    from tightrope.local import limits
    from tightrope.local.arrow import bits_from_arrow, bits_to_arrow, from_arrow, to_arrow
    from tightrope.local.collection import perturb_table, tally_table
    from tightrope.local.comparison import Option, best, compare
    from tightrope.local.estimates import Shares
    from tightrope.local.hadamard_response import hadamard
    from tightrope.local.local_hashing import hashing
    from tightrope.local.memoised import Memoised
    from tightrope.local.mixture import hybrid
    from tightrope.local.one_bit import duchi
    from tightrope.local.permanent import rappor
    from tightrope.local.planning import plan
    from tightrope.local.prefix_tree import Found, heavy_hitters
    from tightrope.local.quantile_tree import quantiles
    from tightrope.local.response import binary_with_erasure, k_randomized_response, response_with_erasure
    from tightrope.local.shuffling import shuffled_closed_form, shuffled_delta, shuffled_epsilon
    from tightrope.local.simplex import Biased, on_simplex
    from tightrope.local.subset import subset_selection
    from tightrope.local.tally import Tally
    from tightrope.local.unary import unary_encoding
    from tightrope.local.vector_means import vector_mean
    from tightrope.local.window import piecewise

_CHANNELS = ("Channel", "SymmetricChannel")
_HOMES = {
    "Biased": "simplex",
    "Found": "prefix_tree",
    "Memoised": "memoised",
    "Option": "comparison",
    "Shares": "estimates",
    "Tally": "tally",
    "best": "comparison",
    "binary_with_erasure": "response",
    "bits_from_arrow": "arrow",
    "bits_to_arrow": "arrow",
    "compare": "comparison",
    "duchi": "one_bit",
    "from_arrow": "arrow",
    "hadamard": "hadamard_response",
    "hashing": "local_hashing",
    "heavy_hitters": "prefix_tree",
    "hybrid": "mixture",
    "k_randomized_response": "response",
    "on_simplex": "simplex",
    "perturb_table": "collection",
    "piecewise": "window",
    "plan": "planning",
    "quantiles": "quantile_tree",
    "rappor": "permanent",
    "response_with_erasure": "response",
    "shuffled_closed_form": "shuffling",
    "shuffled_delta": "shuffling",
    "shuffled_epsilon": "shuffling",
    "subset_selection": "subset",
    "tally_table": "collection",
    "to_arrow": "arrow",
    "unary_encoding": "unary",
    "vector_mean": "vector_means",
}

__all__ = [
    "Biased",
    "Channel",
    "Found",
    "Memoised",
    "Option",
    "Shares",
    "SymmetricChannel",
    "Tally",
    "best",
    "binary_with_erasure",
    "bits_from_arrow",
    "bits_to_arrow",
    "compare",
    "duchi",
    "from_arrow",
    "hadamard",
    "hashing",
    "heavy_hitters",
    "hybrid",
    "k_randomized_response",
    "limits",
    "on_simplex",
    "perturb_table",
    "piecewise",
    "plan",
    "quantiles",
    "rappor",
    "response_with_erasure",
    "shuffled_closed_form",
    "shuffled_delta",
    "shuffled_epsilon",
    "subset_selection",
    "tally_table",
    "to_arrow",
    "unary_encoding",
    "vector_mean",
]


def __getattr__(name: str) -> Any:
    """Load a public name on first use."""
    if name == "limits":
        return importlib.import_module("tightrope.local.limits")
    if name in _CHANNELS:
        value = getattr(importlib.import_module("tightrope.channels"), name)
    elif name in _HOMES:
        value = getattr(importlib.import_module(f"tightrope.local.{_HOMES[name]}"), name)
    else:
        raise AttributeError(f"module 'tightrope.local' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
