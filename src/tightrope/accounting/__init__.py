"""The heart: loss laws, composition, curves; numpy and scipy only, and no mechanism by name."""

from tightrope.accounting.bounds import Bounds
from tightrope.accounting.neighbors import Neighbours
from tightrope.accounting.privacy_loss import PrivacyLoss

__all__ = ["Bounds", "Neighbours", "PrivacyLoss"]
