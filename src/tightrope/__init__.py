"""Tightrope: the least noise for the privacy you promise - and the proof.

Importing is cheap: each name of the stub beside this file loads its module on first use.
"""

from __future__ import annotations

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

__version__ = "0.2.0"
