"""Privacy accounting: loss distributions, composition, curves; independent of mechanisms, with only numpy and scipy."""

from tightrope.accounting.bounds import Bounds
from tightrope.accounting.neighbors import Neighbors
from tightrope.accounting.privacy_loss import PrivacyLoss

__all__ = ["Bounds", "Neighbors", "PrivacyLoss"]
