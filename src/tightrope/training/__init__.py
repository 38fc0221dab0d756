"""Training with noisy gradients: accountants for the libraries that train; knows none of them until it is asked.

>>> "OpacusAccountant" in __all__
True
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tightrope.training.history import Entry, History

if TYPE_CHECKING:
    from tightrope.training.opacus import OpacusAccountant

__all__ = ["Entry", "History", "OpacusAccountant"]


def __getattr__(name: str) -> Any:
    """``OpacusAccountant`` on first use; ``MissingExtraError`` where Opacus is not installed."""
    if name != "OpacusAccountant":
        raise AttributeError(f"module 'tightrope.training' has no attribute {name!r}")
    from tightrope.training import opacus

    return opacus.OpacusAccountant
