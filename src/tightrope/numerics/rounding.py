"""What doubles lose, and how far they reach."""

from __future__ import annotations

ROUND_OFF = 2.0**-53
"""Unit round-off of doubles: fl(x) = x (1 + e) with |e| at most this."""
OVERFLOW = 300.0
"""Beyond e^300 exponentials are formed with their peak pulled out: products of two stay in double precision."""
SUBNORMAL = 1e-290
"""Below this numbers begin to lose digits, or will where they are multiplied."""
