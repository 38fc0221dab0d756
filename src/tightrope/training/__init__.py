"""Accountants of the privacy loss of training with noisy gradients, for training libraries such as Opacus.

>>> "OpacusAccountant" in __all__
True

Importing is cheap: each name of the stub next to this file loads its module on first use.
"""

from __future__ import annotations

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
