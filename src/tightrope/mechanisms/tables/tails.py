"""The exact, endless part of a law with δ = 0, and quantiles from exact tail probabilities."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import accumulate
from typing import Any, Self

from tightrope.errors import InputError
from tightrope.numerics.checks import inner_probability
from tightrope.randomness.choice import TOTAL

SMALLEST_PROBABILITY = 1e-30
"""The smallest probability whose quantile is computed."""


@dataclass(frozen=True, slots=True)
class Tail:
    """Geometric tail: "X > N" has weight ``escape_in`` (of 2¹²⁸), and so has "X < −N".

    Beyond N the magnitude is N + 1 + k with probability block[k] / 2¹²⁸ for k < B; with probability escape / 2¹²⁸ it
    moves B further and the choice is made again. sum(block) + escape = 2¹²⁸; all of them are positive, so every
    whole number can be drawn and no output has infinite loss.
    """

    block: tuple[int, ...] = field(repr=False)
    escape_in: int
    escape: int

    def __post_init__(self) -> None:
        if not (self.block and min(self.block) > 0 and self.escape > 0 and self.escape_in > 0):
            raise InputError("tail", self, "positive weights only", "a law without a tail has tail=None")
        if not sum(self.block) + self.escape == TOTAL:
            raise InputError("tail", self, "block and escape weights that add up to 2^128")

    def beyond(self, cells: int) -> Fraction:
        """P(X > N + cells) as a fraction of 1."""
        periods, rest = divmod(cells, len(self.block))
        left = TOTAL - sum(self.block[:rest])
        return Fraction(self.escape_in * self.escape**periods * left, TOTAL ** (periods + 2))

    def moments(self) -> tuple[Fraction, Fraction]:
        """E K and E K² of the magnitude K beyond N + 1: K = k, or B + K again."""
        size, stay = len(self.block), sum(self.block)
        first = sum(k * w for k, w in enumerate(self.block))
        mean = Fraction(first + self.escape * size, stay)
        second = sum(k * k * w for k, w in enumerate(self.block))
        square = (second + self.escape * (size * size + 2 * size * mean)) / Fraction(stay)
        return mean, square

    def weights(self, periods: int) -> list[int]:
        """Weights of the first ``periods`` blocks, each times 2^(128·periods): whole numbers."""
        powers = [self.escape_in * self.escape**j << 128 * (periods - 1 - j) for j in range(periods)]
        return [power * w for power in powers for w in self.block]

    def to_data(self) -> dict[str, Any]:
        """Whole numbers as decimal strings: no reader of JSON rounds them."""
        return {
            "block": [str(w) for w in self.block],
            "escape_in": str(self.escape_in),
            "escape": str(self.escape),
        }

    @classmethod
    def from_data(cls, data: dict[str, Any]) -> Self:
        """The inverse of :meth:`to_data`."""
        return cls(tuple(map(int, data["block"])), int(data["escape_in"]), int(data["escape"]))


def suffix_sums(weights: tuple[int, ...], beyond: int) -> tuple[int, ...]:
    """Entry x is the weight of "X > x", x = 0..N; weights[k] is that of k + 1, ``beyond`` that of "X > N"."""
    return tuple(accumulate(reversed(weights), initial=beyond))[::-1]


def symmetric_quantile(survival: Callable[[int], Fraction], p: float) -> int:
    """The smallest x with P(X ≤ x) ≥ p, of a symmetric integer law with survival(x) = P(X > x) for x ≥ 0.

    Raises ``InputError`` unless 1e−30 ≤ p < 1.
    """
    p = inner_probability("p", p)
    if not p >= SMALLEST_PROBABILITY:
        raise InputError("p", p, f"at least {SMALLEST_PROBABILITY}", "rarer events do not happen")
    target = Fraction(p)
    if target > survival(0):  # P(X ≤ x) ≥ p ⇔ P(X > x) ≤ 1 − p, x ≥ 0
        return first_at_most(survival, 1 - target)
    return -first_at_most(lambda x: target - survival(x), Fraction(0), strict=True)


def first_at_most(survival: Callable[[int], Fraction], target: Fraction, *, strict: bool = False) -> int:
    """The smallest x ≥ 0 with survival(x) ≤ target, for a non-increasing function, by doubling and bisection.

    ``strict``: instead the smallest x ≥ 0 with survival(x) > target, for a non-decreasing function.
    """

    def reached(x: int) -> bool:
        return survival(x) > target if strict else survival(x) <= target

    low, high = -1, 0
    while not reached(high):
        low, high = high, 2 * high + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if reached(middle) else (middle, high)
    return high
