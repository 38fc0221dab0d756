"""What kinds of several moments have in common: their errors before spending, and when they are withheld."""

from __future__ import annotations

import math

from tightrope.release.questions.node import Record
from tightrope.release.questions.vector import Noise

TYPICAL = 1 / 9
"""The mean square of centred values for which errors are stated, over the largest square."""
ALIKE = 0.5
"""The correlation for which errors are stated."""
MEAN_TO_WIDTH = 0.41
"""E|X| over the half-width of 95 %: of a normal law; of laws with heavier tails it is less."""
EVEN = "errors are stated for values around the middle of their range, with a standard deviation of a sixth of it"
PAIRS = "rows in which either value is missing are left out"


def expected(record: Record) -> tuple[float, float]:
    """E|error|, about, and the half-width of 95 % where all numbers came out without noise; ∞ without a limit."""
    low, high = record["lower"], record["upper"]
    if low is None or high is None:
        return math.inf, math.inf
    return MEAN_TO_WIDTH * (high - low) / 2, (high - low) / 2


def withheld_below(usable: Noise, people: int) -> float:
    """P(the noisy count is below 1)."""
    return usable.at_most(-people)


def finite(number: float) -> float | None:
    """The number; nothing where it has no limit."""
    return number if math.isfinite(number) else None
