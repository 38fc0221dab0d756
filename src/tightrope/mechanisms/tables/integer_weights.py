"""From a formula to integer weights, in fixed point with 256 binary digits: the same on every machine.

A "raw" weight is a whole number on any common scale; :func:`weighed` divides by the exact sum and rounds down, and the
remainder – at most one part in 2¹²⁸ a cell – goes to 0. Rounding down keeps a non-increasing law non-increasing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Context, Decimal
from fractions import Fraction
from typing import NamedTuple

from tightrope.mechanisms.tables.tails import Tail
from tightrope.randomness.choice import TOTAL

DIGITS = 256
ONE = 1 << DIGITS
"""1 in fixed point."""

LARGEST_STEP = 40.0
"""Neighbouring levels of an endless law differ by at most e^40: each is known to 2⁻⁶⁴ of itself."""

LARGEST_SCALE = 1e6
"""Endless laws fall by at least a millionth part a step."""

FEWEST_CELLS = 12 * math.log(2)
"""A block falls by 2⁻¹² where the number of cells allows: the tail is entered and repeated rarely."""

MOST_BLOCK_CELLS = 1 << 16
"""Cells of a block, unless one plateau needs more."""

PRECISION = Context(prec=110)


def exponential(x: Fraction) -> int:
    """e^{−x} for x ≥ 0 in fixed point, within one unit of 2⁻²⁵⁶."""
    if x > 200:  # e^{-200} < 2^{-256}
        return 0
    power = PRECISION.exp(PRECISION.divide(Decimal(-x.numerator), Decimal(x.denominator)))
    return int(PRECISION.multiply(power, Decimal(ONE)))


def powers(ratio: int, count: int) -> list[int]:
    """1, r, r², … (``count`` of them) in fixed point; each step rounds down."""
    out = [ONE] * count
    for i in range(1, count):
        out[i] = out[i - 1] * ratio >> DIGITS
    return out


@dataclass(frozen=True, slots=True)
class Plateaus:
    """An endless tail: ``width`` cells of raw weight ``first``, then ``ratio`` (fixed point) times that, and so on."""

    first: int
    ratio: int
    width: int = 1

    @property
    def repeats(self) -> int:
        """Plateaus a block."""
        rate = DIGITS * math.log(2) - math.log(self.ratio)
        return max(1, min(math.ceil(FEWEST_CELLS / rate), MOST_BLOCK_CELLS // self.width))

    def levels(self, first: int) -> list[int]:
        """Weights of the cells of one block that begins at the level ``first``."""
        return [first * level >> DIGITS for level in powers(self.ratio, self.repeats) for _ in range(self.width)]

    def unrolled(self) -> tuple[list[int], Plateaus]:
        """The cells of the first block, and the rest; none where one level is all that precision allows."""
        if self.repeats == 1:
            return [], self
        last = powers(self.ratio, self.repeats + 1)[-1]
        return self.levels(self.first), replace(self, first=self.first * last >> DIGITS)

    @property
    def total(self) -> int:
        """Raw weight of the whole tail: first · width / (1 − r)."""
        return self.first * self.width * ONE // (ONE - self.ratio)

    def tail(self, escape_in: int) -> Tail:
        """The tail as integer weights: block cells (1 − r) r^i / width, rounded down; the rest escapes."""
        top = (ONE - self.ratio) // self.width
        block = tuple(level * TOTAL >> DIGITS for level in self.levels(top))
        return Tail(block, escape_in, TOTAL - sum(block))


class Weighed(NamedTuple):
    """The fields of a ``NoiseTable``, in its order: whole weights out of 2¹²⁸, the tail, ideal spacings of losses."""

    centre: int
    half: tuple[int, ...]
    tail: Tail | None
    steps: tuple[float, ...]


def weighed(raw: Sequence[int], tail: Plateaus | None = None, steps: tuple[float, ...] = ()) -> Weighed:
    """Raw weights raw[0], raw[1], … of 0, ±1, …, continued by ``tail``, as parts of 2¹²⁸."""
    cells, rest = ([], None) if tail is None else tail.unrolled()
    head = [*raw, *cells]
    beyond = rest.total if rest else 0
    whole = 2 * (sum(head) + beyond) - head[0]
    half = tuple(w * TOTAL // whole for w in head[1:])
    escape_in = beyond * TOTAL // whole
    centre = TOTAL - 2 * (sum(half) + escape_in)
    return Weighed(centre, half, rest.tail(escape_in) if rest else None, steps)
