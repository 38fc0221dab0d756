"""Audits of a mechanism's output: lower bounds on ε, δ and total variation, each with a proof.

>>> from tightrope import audit
>>> audit.scores([3.0] * 500, [1.0] * 500).epsilon(0.0) > 3
True

Importing is cheap: each name of the stub next to this file loads its module on first use.
"""

from __future__ import annotations

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
