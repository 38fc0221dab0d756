"""What Ctrl-C ends with: known before anything else is loaded."""

from __future__ import annotations

NOTHING_SPENT = "interrupted; nothing was spent"
INTERRUPTED = 130
"""128 and the number of SIGINT."""
