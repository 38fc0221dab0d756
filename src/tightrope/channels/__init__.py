"""Row-stochastic matrices: how much a report reveals about a person, and upper bounds over all channels."""

from tightrope.channels import extremal, published, suprema
from tightrope.channels.channel import Channel
from tightrope.channels.product import ProductChannel, SymmetricChannel
from tightrope.numerics.divergences import Divergence

__all__ = ["Channel", "Divergence", "ProductChannel", "SymmetricChannel", "extremal", "published", "suprema"]
