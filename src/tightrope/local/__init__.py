"""Collect without being trusted: mechanisms that people run themselves, and what a collector makes of the reports.

Importing is cheap: each name loads its module on first use (PEP 562).
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tightrope.channels import Channel, SymmetricChannel
    from tightrope.local import limits
    from tightrope.local.mechanisms.duchi import duchi
    from tightrope.local.mechanisms.hadamard_response import hadamard
    from tightrope.local.mechanisms.hybrid import hybrid
    from tightrope.local.mechanisms.local_hashing import hashing
    from tightrope.local.mechanisms.permanent import rappor
    from tightrope.local.mechanisms.piecewise import piecewise
    from tightrope.local.mechanisms.prefix_tree import Found, heavy_hitters
    from tightrope.local.mechanisms.quantile_tree import quantiles
    from tightrope.local.mechanisms.response import binary_with_erasure, k_randomized_response, response_with_erasure
    from tightrope.local.mechanisms.subset import subset_selection
    from tightrope.local.mechanisms.unary import unary_encoding
    from tightrope.local.mechanisms.vector_means import vector_mean
    from tightrope.local.on_tables.arrow import bits_from_arrow, bits_to_arrow, from_arrow, to_arrow
    from tightrope.local.on_tables.collection import perturb_table, tally_table
    from tightrope.local.parts.estimates import Shares
    from tightrope.local.parts.simplex import Biased, on_simplex
    from tightrope.local.parts.tally import Tally
    from tightrope.local.studies.comparison import Option, best, compare
    from tightrope.local.studies.findings import Findings
    from tightrope.local.studies.memoised import Memoised
    from tightrope.local.studies.planning import plan
    from tightrope.local.studies.shuffling import shuffled_closed_form, shuffled_delta, shuffled_epsilon
    from tightrope.local.studies.study import Study
    from tightrope.local.studies.study_file import load_study

_CHANNELS = ("Channel", "SymmetricChannel")
_HOMES = {
    "Biased": "parts.simplex",
    "Findings": "studies.findings",
    "Found": "mechanisms.prefix_tree",
    "Memoised": "studies.memoised",
    "Option": "studies.comparison",
    "Shares": "parts.estimates",
    "Study": "studies.study",
    "Tally": "parts.tally",
    "best": "studies.comparison",
    "binary_with_erasure": "mechanisms.response",
    "bits_from_arrow": "on_tables.arrow",
    "bits_to_arrow": "on_tables.arrow",
    "compare": "studies.comparison",
    "duchi": "mechanisms.duchi",
    "from_arrow": "on_tables.arrow",
    "hadamard": "mechanisms.hadamard_response",
    "hashing": "mechanisms.local_hashing",
    "heavy_hitters": "mechanisms.prefix_tree",
    "hybrid": "mechanisms.hybrid",
    "k_randomized_response": "mechanisms.response",
    "load_study": "studies.study_file",
    "on_simplex": "parts.simplex",
    "perturb_table": "on_tables.collection",
    "piecewise": "mechanisms.piecewise",
    "plan": "studies.planning",
    "quantiles": "mechanisms.quantile_tree",
    "rappor": "mechanisms.permanent",
    "response_with_erasure": "mechanisms.response",
    "shuffled_closed_form": "studies.shuffling",
    "shuffled_delta": "studies.shuffling",
    "shuffled_epsilon": "studies.shuffling",
    "subset_selection": "mechanisms.subset",
    "tally_table": "on_tables.collection",
    "to_arrow": "on_tables.arrow",
    "unary_encoding": "mechanisms.unary",
    "vector_mean": "mechanisms.vector_means",
}

__all__ = [
    "Biased",
    "Channel",
    "Findings",
    "Found",
    "Memoised",
    "Option",
    "Shares",
    "Study",
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
    "load_study",
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
