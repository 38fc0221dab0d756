"""What people are told of a question, in the plan's own words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tightrope.errors import PlanError

TEXTS = ("title", "description", "unit", "means")
"""``means`` says what a value is, in place of the words of its kind."""
LONGEST_TEXT = 2_000


def texts(asking: Mapping[str, Any]) -> dict[str, str]:
    """Those that were given; raises ``PlanError`` for what is no text."""
    found = {name: asking[name] for name in TEXTS if asking.get(name) is not None}
    for name, text in found.items():
        if not (isinstance(text, str) and text.strip() and len(text) <= LONGEST_TEXT):
            shown = text[:50] if isinstance(text, str) else type(text).__name__
            raise PlanError(name, shown, f"a text of at most {LONGEST_TEXT:,} letters", "it is shown to readers")
    return found
