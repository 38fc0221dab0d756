"""The heart: loss laws, composition, curves; numpy and scipy only, and no mechanism by name."""

from tightrope.privacy.curves.bounds import Bounds
from tightrope.privacy.loss import PrivacyLoss
from tightrope.privacy.neighbours import Neighbours

__all__ = ["Bounds", "Neighbours", "PrivacyLoss"]
