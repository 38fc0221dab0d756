"""How many words or numbers are asked for: whole numbers only. (This folder does not know ``numerics``.)"""

from __future__ import annotations

from numbers import Integral

from tightrope.errors import InputError


def count(name: str, value: object, at_least: int = 0) -> int:
    """``value`` as an int; raises ``InputError`` unless it is a whole number ≥ ``at_least``."""
    if isinstance(value, bool) or not isinstance(value, Integral) or not int(value) >= at_least:
        raise InputError(name, value, f"a whole number >= {at_least}")
    return int(value)
