"""The heart: loss laws, composition, curves. numpy and scipy only."""

from tightrope.privacy.bounds import Bounds
from tightrope.privacy.loss import PrivacyLoss
from tightrope.privacy.neighbours import Neighbours

__all__ = ["Bounds", "Neighbours", "PrivacyLoss"]
