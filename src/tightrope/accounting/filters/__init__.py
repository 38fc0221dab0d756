"""Filters and an odometer: privacy guarantees for parameters chosen after seeing outputs (theory §2).

When to use which: ``docs/adaptivity.md``. Proofs: ``docs/proofs/filters.md``.
"""

from tightrope.accounting.filters.filter import BasicFilter, Filter, Guarantee
from tightrope.accounting.filters.gaussian import GaussianFilter
from tightrope.accounting.filters.menu import EnvelopeFilter, MenuFilter, TokenFilter
from tightrope.accounting.filters.moments import MomentFilter
from tightrope.accounting.filters.odometer import Odometer

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
