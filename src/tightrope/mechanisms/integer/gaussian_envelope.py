"""An envelope of integer weights over the discrete Gaussian: cells to draw, and the chance to keep each point.

P(X = x) ∝ ρ(x) = e^{−x²/(2σ²)} on all integers. Points are (sign, |x|) with −0 refused. Cell j < J holds the
W = 2^w magnitudes from jW, where ρ is largest, and gets the weight a_j ≥ S ρ(jW); everything from B = JW on is the
tail, of weight a; S is a whole number. Proposed are a cell with probability a_j / 2¹²⁸, then a sign and a place in it,
uniformly, and the point is kept with probability S ρ(x) / a_j: so each point is proposed and kept with probability
S ρ(x) / (2W 2¹²⁸), exactly. The weights need not be near S ρ; they must not be below it, and they must be whole.
In the tail, super-cell i ≥ 0 of V = 2^v points is chosen with probability 2^{−i−1}; BV ≥ 0.7 σ² makes ρ at least halve
from one to the next, so that S (V/W) 2^{i+1} ρ(x) / a ≤ 1 for a ≥ 2 S (V/W) ρ(B). ``docs/proofs/exact-sampling.md``.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from tightrope.mechanisms.tables.integer_weights import ONE, exponential
from tightrope.randomness.choice import TOTAL, Choice
from tightrope.randomness.real_chance import falling_exponential

FEWEST_SCALE_CELLS = 64
"""A scale is at least this many cells: about 1 % of the proposals are refused, or fewer."""
TAIL_BEGINS = 8
"""Scales until the tail begins: P(|X| > 8σ) is near 10⁻¹⁵, and e^{−32} leaves the last cell a weight above 2⁷⁰."""


@dataclass(frozen=True)  # not slotted: the weights are computed once and kept
class Envelope:
    """For a scale σ ≥ 64, taken as the exact binary fraction that a float is."""

    scale: float

    @cached_property
    def variance(self) -> Fraction:
        """σ², exactly."""
        return Fraction(self.scale) ** 2

    @cached_property
    def factor(self) -> float:
        """1/(2σ²), correctly rounded."""
        return float(1 / (2 * self.variance))

    @cached_property
    def cell_bits(self) -> int:
        """The w of the largest cell width W = 2^w with σ ≥ 64 W."""
        return (int(self.scale) // FEWEST_SCALE_CELLS).bit_length() - 1

    @cached_property
    def cells(self) -> int:
        """The J of the least number of cells that reach 8σ."""
        return -(-TAIL_BEGINS * (int(self.scale) + 1) >> self.cell_bits) + 1

    @property
    def start(self) -> int:
        """B, where the tail begins."""
        return self.cells << self.cell_bits

    @cached_property
    def tail_bits(self) -> int:
        """The v of the least V = 2^v ≥ W with B V ≥ 0.7 σ² > σ² log 2."""
        bits = self.cell_bits
        while 10 * (self.start << bits) < 7 * self.variance:
            bits += 1
        return bits

    @cached_property
    def choice(self) -> Choice:
        """Draws a cell: 0..J − 1, J for the tail, J + 1 for "again" (what rounding left over)."""
        return Choice.of(self._weights)

    @cached_property
    def _levels(self) -> tuple[int, ...]:
        """At least ρ(jW), j < J, and 2 (V/W) ρ(B), in fixed point."""
        inner = [exponential(self.exponent(j << self.cell_bits)) + 1 for j in range(self.cells + 1)]
        return (*inner[:-1], inner[-1] << (self.tail_bits - self.cell_bits + 1))

    @cached_property
    def total(self) -> int:
        """S: as large as 2¹²⁸ parts allow, each rounded up."""
        return (TOTAL - len(self._levels)) * ONE // sum(self._levels)

    @cached_property
    def _weights(self) -> tuple[int, ...]:
        rounded = [-(-self.total * level // ONE) for level in self._levels]
        return (*rounded, TOTAL - sum(rounded))

    def exponent(self, x: int) -> Fraction:
        """x²/(2σ²)."""
        return x * x / (2 * self.variance)

    def chance(self, x: int, digits: int) -> tuple[Fraction, Fraction]:
        """Bounds on the probability S ρ(x) / a_j to keep a proposed x ≥ 0 below B, about ``digits`` digits apart."""
        share = Fraction(self.total, self._weights[x >> self.cell_bits])
        low, high = falling_exponential(self.exponent(x), digits)
        return share * low, share * high

    def tail_chance(self, x: int, period: int, digits: int) -> tuple[Fraction, Fraction]:
        """Bounds on the probability to keep x ≥ B that was proposed from super-cell ``period``."""
        lift = self.tail_bits - self.cell_bits + period + 1
        share = Fraction(self.total << lift, self._weights[self.cells])
        low, high = falling_exponential(self.exponent(x), digits)
        return share * low, share * high
