"""Optimal transport, exact and with a proof of optimality; couplings that hide the group of a value (theory §6).

Importing is cheap: each name of the stub file next to this one loads its module on first use.
"""

from __future__ import annotations

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
