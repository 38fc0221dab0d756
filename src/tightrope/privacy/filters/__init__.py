"""Parameters chosen after seeing outputs: filters with a guarantee known beforehand, and an odometer (theory §2).

Which to use when: ``docs/adaptivity.md``. Proofs: ``docs/proofs/filters.md``.
"""

from tightrope.privacy.filters.basic import BasicFilter
from tightrope.privacy.filters.filter import Filter, Guarantee
from tightrope.privacy.filters.gaussian import GaussianFilter
from tightrope.privacy.filters.menu import EnvelopeFilter, MenuFilter
from tightrope.privacy.filters.moments import MomentFilter
from tightrope.privacy.filters.odometer import Odometer
from tightrope.privacy.filters.tokens import TokenFilter

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
