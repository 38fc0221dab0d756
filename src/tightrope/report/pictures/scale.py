"""Axes: from numbers to percentages of a chart's width or height, and the round numbers to write beside them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tightrope.certificates.words.digits import fixed, power_of_ten, significant
from tightrope.report.words.answers import Answer

SMALLEST_ROOM = 1e-290  # below it, floats are too coarse for ticks


@dataclass(frozen=True, slots=True)
class Tick:
    """A round number on an axis: where it stands, in percent, and how it is written."""

    at: float
    label: str


@dataclass(frozen=True, slots=True)
class Scale:
    """A linear axis from ``low`` to ``high``, low < high."""

    low: float
    high: float

    def at(self, value: float) -> float:
        """Where ``value`` stands, in percent of the axis, held inside it.

        >>> Scale(0, 4).at(1), Scale(0, 4).at(9)
        (25.0, 100.0)
        """
        return min(max(100 * (value - self.low) / (self.high - self.low), 0.0), 100.0)

    def ticks(self, count: int) -> list[Tick]:
        """At most ``count`` + 1 round numbers inside the axis.

        >>> [tick.label for tick in Scale(0, 3100).ticks(4)]
        ['0', '1,000', '2,000', '3,000']
        """
        step = round_step((self.high - self.low) / count)
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        decimals = max(0, -math.floor(math.log10(step) + 1e-9))
        return [Tick(self.at(i * step), _written(i * step, decimals)) for i in range(first, last + 1)]


@dataclass(frozen=True, slots=True)
class DecadeScale:
    """A logarithmic axis between whole powers of ten, ``low`` < ``high`` being the exponents."""

    low: int
    high: int

    def at(self, value: float) -> float:
        """Where ``value`` > 0 stands, in percent of the axis, held inside it."""
        return Scale(self.low, self.high).at(math.log10(value))

    def ticks(self, count: int) -> list[Tick]:
        """Powers of ten, evenly many apart."""
        step = max(1, math.ceil((self.high - self.low) / count))
        exponents = range(self.high, self.low - 1, -step)
        return [Tick(Scale(self.low, self.high).at(e), power_of_ten(e)) for e in exponents]


def round_step(least: float) -> float:
    """The smallest of 1, 2, 5 · 10ⁿ that is not below ``least`` > 0.

    >>> round_step(0.3), round_step(2), round_step(700)
    (0.5, 2.0, 1000.0)
    """
    power = 10.0 ** math.floor(math.log10(least))
    return next(m * power for m in (1.0, 2.0, 5.0, 10.0) if m * power >= least * (1 - 1e-9))


def scale_of(numbers: Sequence[float], margin: float = 0.04) -> Scale:
    """An axis that holds all of ``numbers`` with a margin."""
    low, high = min(numbers), max(numbers)
    spare = next(room for room in ((high - low) * margin, abs(high) * 0.1, 1.0) if room >= SMALLEST_ROOM)
    return Scale(low - spare, high + spare)


def value_scale(answer: Answer) -> Scale | None:
    """The axis of an answer's values: holds every value and most whiskers.

    Whiskers longer than the spread of all values plus six typical half-widths are cut there, so that one
    tiny group does not flatten the picture.
    """
    values = answer.values
    if not values:
        return None
    low, high = min(values), max(values)
    reach = (high - low) / 2 + 3 * (answer.typical_half_width or 0.0)
    ends = [end for row in answer.rows if row.value is not None for end in (row.lower, row.upper) if end is not None]
    shown = [min(max(end, low - reach), high + reach) for end in ends]
    return (
        _from_zero(scale_of([*values, *shown]), [*values, *shown]) if answer.additive else scale_of([*values, *shown])
    )


def _from_zero(scale: Scale, numbers: Sequence[float]) -> Scale:
    return Scale(0.0, scale.high) if min(numbers) >= 0 else Scale(scale.low, max(scale.high, 0.0))


def _written(value: float, decimals: int) -> str:
    return fixed(value, decimals) if decimals <= 6 and abs(value) < 1e7 else significant(value, 3)
