"""Collect without being trusted: mechanisms that people run themselves, and what a collector makes of the reports.

Importing is cheap: each name of the stub next to this file loads its module on first use.
"""

from __future__ import annotations

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
