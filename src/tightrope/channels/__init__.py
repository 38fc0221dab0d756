"""Row-stochastic matrices: what a report says about a person, and the most any could; knows no mechanism of local."""

from tightrope.channels import extremal, published, suprema
from tightrope.channels.channel import Channel
from tightrope.channels.product import ProductChannel, SymmetricChannel
from tightrope.numerics.divergences import Divergence

__all__ = ["Channel", "Divergence", "ProductChannel", "SymmetricChannel", "extremal", "published", "suprema"]
