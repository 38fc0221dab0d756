"""What a mechanism's ``channel`` is, where people look for it: ``local.Channel`` is ``channels.Channel``."""

from tightrope.channels import Channel, SymmetricChannel

__all__ = ["Channel", "SymmetricChannel"]
