"""Reports of a release or a study: one self-contained HTML page, and figures for a paper or a notebook.

>>> from tightrope import reporting
>>> reporting.html({"title": "census"}).startswith("<!doctype html>")
True

Importing is cheap: each name in the stub next to this file loads its module on first use.
"""

from __future__ import annotations

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
