"""Ranges of numbers and their arithmetic, for what noise is weighted with; ends are rounded as doubles are."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Span:
    """All numbers from ``low`` to ``high``.

    >>> (Span(-1, 2) * Span(3, 4) - 1).reach
    7.0
    """

    low: float
    high: float

    @property
    def reach(self) -> float:
        """The largest absolute value."""
        return float(max(abs(self.low), abs(self.high)))

    def __add__(self, other: Span | float) -> Span:
        second = _span(other)
        return Span(self.low + second.low, self.high + second.high)

    def __neg__(self) -> Span:
        return Span(-self.high, -self.low)

    def __sub__(self, other: Span | float) -> Span:
        return self + -_span(other)

    def __mul__(self, other: Span | float) -> Span:
        second = _span(other)
        ends = [_times(a, b) for a in (self.low, self.high) for b in (second.low, second.high)]
        return Span(min(ends), max(ends))

    def within(self, other: Span) -> Span:
        """The part inside another one; where there is none, its nearest end."""
        low, high = max(self.low, other.low), min(self.high, other.high)
        return Span(low, high) if low <= high else _nearest(self, other)

    def over(self, positive: Span) -> Span:
        """All quotients by numbers above zero; without limit where the divisor may be zero."""
        if not positive.low > 0:
            return Span(-math.inf, math.inf)
        return self * Span(1 / positive.high, 1 / positive.low)

    def square(self) -> Span:
        """All squares."""
        least = 0.0 if self.low <= 0 <= self.high else min(self.low**2, self.high**2)
        return Span(least, self.reach**2)


def around(middle: float, width: float) -> Span:
    """``middle`` ± ``width``."""
    return Span(middle - width, middle + width)


def _span(other: Span | float) -> Span:
    return other if isinstance(other, Span) else Span(other, other)


def _times(a: float, b: float) -> float:
    return 0.0 if a == 0 or b == 0 else a * b


def _nearest(span: Span, other: Span) -> Span:
    end = other.low if span.high < other.low else other.high
    return Span(end, end)
