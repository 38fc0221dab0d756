"""Filters and an odometer: privacy guarantees for parameters chosen after seeing outputs (theory §2).

When to use which: ``docs/adaptivity.md``. Proofs: ``docs/proofs/filters.md``.
"""

from tightrope.accounting.filters.filter import BasicFilter, Filter, GaussianFilter, Guarantee
from tightrope.accounting.filters.menu import EnvelopeFilter, MenuFilter, TokenFilter
from tightrope.accounting.filters.moments import MomentFilter, Odometer

__all__ = [
    "BasicFilter",
    "EnvelopeFilter",
    "Filter",
    "GaussianFilter",
    "Guarantee",
    "MenuFilter",
    "MomentFilter",
    "Odometer",
    "TokenFilter",
]
