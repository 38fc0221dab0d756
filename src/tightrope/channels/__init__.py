"""Row-stochastic matrices: what one report says about one person, exactly, and the most any report could say."""

from tightrope.channels.channel import Channel
from tightrope.channels.divergences import Divergence
from tightrope.channels.kernel import Kernel
from tightrope.channels.product import ProductChannel
from tightrope.channels.symmetric import SymmetricChannel

__all__ = ["Channel", "Divergence", "Kernel", "ProductChannel", "SymmetricChannel"]
