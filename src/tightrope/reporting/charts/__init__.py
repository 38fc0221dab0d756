"""Axes, curves and figures, independent of the pages; the figures load when they are used."""

from __future__ import annotations

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(__name__, submodules=["plots"])
