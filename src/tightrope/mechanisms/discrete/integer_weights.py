"""Integer weights from formulas, in fixed point with 256 binary digits: identical on every machine.

A "raw" weight is an integer on any common scale; :func:`normalize_weights` divides by the exact sum and rounds down,
and the remainder – at most one part in 2¹²⁸ a cell – goes to 0. Rounding down keeps non-increasing weights
non-increasing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any, NamedTuple, Self

from tightrope.errors import InputError
from tightrope.numerics.checks import check_inner_probability
from tightrope.numerics.root_finding import bisect_integer, bracket_by_doubling
from tightrope.randomness.alias_sampler import TOTAL

SMALLEST_PROBABILITY = 1e-30
"""The smallest probability with a quantile."""


@dataclass(frozen=True, slots=True)
class Tail:
    """An exact infinite geometric tail: "X > N" has weight ``escape_in`` (of 2¹²⁸), and so has "X < −N".

    Beyond N the magnitude is N + 1 + k with probability block[k] / 2¹²⁸ for k < B; with probability escape / 2¹²⁸ it
    moves B further and the choice is repeated. sum(block) + escape = 2¹²⁸; all weights are positive, so every integer
    is possible and no output has infinite loss.
    """

    block: tuple[int, ...] = field(repr=False)
    escape_in: int
    escape: int

    def __post_init__(self) -> None:
        if not (self.block and min(self.block) > 0 and self.escape > 0 and self.escape_in > 0):
            raise InputError("tail", self, "positive weights only", "a distribution without a tail has tail=None")
        if not sum(self.block) + self.escape == TOTAL:
            raise InputError("tail", self, "block and escape weights that add up to 2^128")

    def tail_probability(self, cells: int) -> Fraction:
        """Return P(X > N + cells) as a fraction of 1."""
        periods, rest = divmod(cells, len(self.block))
        remaining = TOTAL - sum(self.block[:rest])
        return Fraction(self.escape_in * self.escape**periods * remaining, TOTAL ** (periods + 2))

    def excess_moments(self) -> tuple[Fraction, Fraction]:
        """Return E K and E K² of the excess K = |X| − (N + 1) of an X beyond ±N, as described above."""
        size, stay = len(self.block), sum(self.block)
        first = sum(k * w for k, w in enumerate(self.block))
        mean = Fraction(first + self.escape * size, stay)
        second = sum(k * k * w for k, w in enumerate(self.block))
        square = (second + self.escape * (size * size + 2 * size * mean)) / Fraction(stay)
        return mean, square

    def block_weights(self, periods: int) -> list[int]:
        """Return integer weights of the first ``periods`` blocks, each times 2^(128·periods)."""
        powers = [self.escape_in * self.escape**j << 128 * (periods - 1 - j) for j in range(periods)]
        return [power * w for power in powers for w in self.block]

    def to_data(self) -> dict[str, Any]:
        """Return integers as decimal strings, which JSON readers do not round."""
        return {
            "block": [str(w) for w in self.block],
            "escape_in": str(self.escape_in),
            "escape": str(self.escape),
        }

    @classmethod
    def from_data(cls, data: dict[str, Any]) -> Self:
        """The inverse of :meth:`to_data`."""
        return cls(tuple(map(int, data["block"])), int(data["escape_in"]), int(data["escape"]))


def symmetric_quantile(survival: Callable[[int], Fraction], p: float) -> int:
    """Return the smallest x with P(X ≤ x) ≥ p for a symmetric integer distribution, survival(x) = P(X > x), x ≥ 0.

    Raises ``InputError`` unless 1e−30 ≤ p < 1.
    """
    p = check_inner_probability("p", p)
    if not p >= SMALLEST_PROBABILITY:
        raise InputError("p", p, f"at least {SMALLEST_PROBABILITY}", "use a larger probability")
    target = Fraction(p)
    if target > survival(0):  # P(X ≤ x) ≥ p ⇔ P(X > x) ≤ 1 − p, x ≥ 0
        return first_survival_at_most(survival, 1 - target)
    return -first_survival_at_most(lambda x: target - survival(x), Fraction(0), strict=True)


def first_survival_at_most(survival: Callable[[int], Fraction], target: Fraction, *, strict: bool = False) -> int:
    """Return the smallest x ≥ 0 with survival(x) ≤ target, for a non-increasing function.

    ``strict``: instead the smallest x ≥ 0 with survival(x) > target, for a non-decreasing function.
    """

    def has_passed_target(x: int) -> bool:
        return survival(x) > target if strict else survival(x) <= target

    if has_passed_target(0):
        return 0
    bracket = bracket_by_doubling(has_passed_target, 0, 1)
    assert bracket is not None  # noqa: S101 - without a limit
    return bisect_integer(has_passed_target, *bracket, side="passes")


DIGITS = 256
ONE = 1 << DIGITS
"""1 in fixed point."""

LARGEST_STEP = 40.0
"""Largest log-ratio of neighboring levels of an infinite tail: each is accurate to a relative 2⁻⁶⁴."""

LARGEST_SCALE = 1e6
"""Largest scale of an infinite tail: it decreases by at least a millionth in each step."""

BLOCK_LOG_DECREASE = 12 * math.log(2)
"""Log of the decrease over one block, 2¹², if the number of cells allows: so blocks are rarely repeated."""

MAX_BLOCK_CELLS = 1 << 16
"""Maximum number of cells of a block, unless one plateau needs more."""

PRECISION = Context(prec=110)


def fixed_point_exponential(x: Fraction) -> int:
    """Return e^{−x} for x ≥ 0 in fixed point, within one unit of 2⁻²⁵⁶."""
    if x > 200:  # e^{-200} < 2^{-256}
        return 0
    power = PRECISION.exp(PRECISION.divide(Decimal(-x.numerator), Decimal(x.denominator)))
    return int(PRECISION.multiply(power, Decimal(ONE)))


def fixed_point_powers(ratio: int, count: int) -> list[int]:
    """Return 1, r, r², … (``count`` of them) in fixed point; each step rounds down."""
    out = [ONE] * count
    for i in range(1, count):
        out[i] = out[i - 1] * ratio >> DIGITS
    return out


@dataclass(frozen=True, slots=True)
class PlateauTail:
    """An infinite tail: ``width`` cells of raw weight ``first``, then ``ratio`` (fixed point) times that, and so on."""

    first: int
    ratio: int
    width: int = 1

    @property
    def plateaus_per_block(self) -> int:
        """Number of plateaus per block."""
        rate = DIGITS * math.log(2) - math.log(self.ratio)
        return max(1, min(math.ceil(BLOCK_LOG_DECREASE / rate), MAX_BLOCK_CELLS // self.width))

    def cell_levels(self, first: int) -> list[int]:
        """Return the weights of the cells of one block that begins at the level ``first``."""
        return [
            first * level >> DIGITS
            for level in fixed_point_powers(self.ratio, self.plateaus_per_block)
            for _ in range(self.width)
        ]

    def split_first_block(self) -> tuple[list[int], PlateauTail]:
        """Return the cells of the first block and the rest; no cells if precision allows only one level."""
        if self.plateaus_per_block == 1:
            return [], self
        last = fixed_point_powers(self.ratio, self.plateaus_per_block + 1)[-1]
        return self.cell_levels(self.first), replace(self, first=self.first * last >> DIGITS)

    @property
    def total_weight(self) -> int:
        """Raw weight of the whole tail: first · width / (1 − r)."""
        return self.first * self.width * ONE // (ONE - self.ratio)


class TableFields(NamedTuple):
    """The fields of a ``NoiseTable``, in its order: integer weights out of 2¹²⁸, the tail, ideal spacings of losses."""

    center: int
    half: tuple[int, ...]
    tail: Tail | None
    steps: tuple[float, ...]


def normalize_weights(
    raw: Sequence[int], tail: PlateauTail | None = None, steps: tuple[float, ...] = ()
) -> TableFields:
    """Return raw weights of 0, ±1, …, continued by ``tail``, as parts of 2¹²⁸."""
    cells, rest = ([], None) if tail is None else tail.split_first_block()
    head = [*raw, *cells]
    beyond = rest.total_weight if rest else 0
    whole = 2 * (sum(head) + beyond) - head[0]
    half = tuple(w * TOTAL // whole for w in head[1:])
    escape_in = beyond * TOTAL // whole
    center = TOTAL - 2 * (sum(half) + escape_in)
    if rest is None:
        return TableFields(center, half, None, steps)
    # block cells (1 - r) r^i / width, rounded down; the rest escapes
    levels = rest.cell_levels((ONE - rest.ratio) // rest.width)
    block = tuple(level * TOTAL >> DIGITS for level in levels)
    return TableFields(center, half, Tail(block, escape_in, TOTAL - sum(block)), steps)
