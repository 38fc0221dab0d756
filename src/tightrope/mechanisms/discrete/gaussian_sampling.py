"""Discrete Gaussian noise without a table: all integers, scales up to 10⁹."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import special

from tightrope.accounting.distributions.gaussian import GaussianLaw
from tightrope.accounting.privacy_loss import PrivacyLoss
from tightrope.errors import InputError
from tightrope.mechanisms.discrete.integer_mechanism import add_noise, entries
from tightrope.mechanisms.discrete.integer_tables import scale_between
from tightrope.mechanisms.discrete.integer_weights import ONE, exponential
from tightrope.mechanisms.mechanism import Mechanism
from tightrope.numerics.arrays import Integers
from tightrope.numerics.checks import inner_probability, positive, whole
from tightrope.randomness.alias_sampler import TOTAL, WORDS_AT_ONCE, Choice
from tightrope.randomness.bits import Source, Stream, Words
from tightrope.randomness.integers import below, falling_exponential, happens
from tightrope.randomness.loops import Loop, choose, compiled, propose

# An envelope of integer weights over the discrete Gaussian: cells to draw, and the chance to keep each point.
#
# P(X = x) ∝ ρ(x) = e^{−x²/(2σ²)} on all integers. Points are (sign, |x|) with −0 refused. Cell j < J holds the W =
# 2^w magnitudes from jW, where ρ is largest, and gets the weight a_j ≥ S ρ(jW); everything from B = JW on is the
# tail, of weight a; S is a whole number. Proposed are a cell with probability a_j / 2¹²⁸, then a sign and a place in
# it, uniformly, and the point is kept with probability S ρ(x) / a_j: so each point is proposed and kept with
# probability S ρ(x) / (2W 2¹²⁸), exactly. The weights need not be near S ρ; they must not be below it, and they must
# be whole. In the tail, super-cell i ≥ 0 of V = 2^v points is chosen with probability 2^{−i−1}; BV ≥ 0.7 σ² makes ρ
# at least halve from one to the next, so that S (V/W) 2^{i+1} ρ(x) / a ≤ 1 for a ≥ 2 S (V/W) ρ(B).
# ``docs/proofs/exact-sampling.md``.

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


# Exact draws of the discrete Gaussian of any large scale: two words each, no table of its values.
#
# A float decides only where it cannot be wrong: whether the acceptance number lies below or above the probability by
# more than ``doubt``, a bound on the error of both with room to spare. The rest (about one draw in 10¹², and the
# tail) is decided in exact arithmetic, see :mod:`tightrope.mechanisms.discrete.gaussian_sampling`.

DOUBT = 2.0**-40
"""More than a thousand times the rounding of the numbers compared (docs/proofs/exact-sampling.md)."""
TERMS = 10
"""e^{−t} for 0 ≤ t ≤ 1/7 by its Taylor polynomial of this degree: right to 10⁻¹⁶."""


@dataclass(frozen=True, slots=True)
class GaussianSampler:
    """Draws from an envelope. ``doubt`` ≥ 2⁻⁴⁰ may be widened: it moves decisions to exact arithmetic, not the law."""

    envelope: Envelope
    doubt: float = DOUBT

    def __post_init__(self) -> None:
        if not DOUBT <= self.doubt <= 1:
            raise InputError("doubt", self.doubt, "a number in [2^-40, 1]", "less would trust floats too far")

    def draw(self, size: int, randomness: Source) -> Integers:
        """``size`` independent draws, shape [size]."""
        out, loops = np.empty(size, dtype=np.int64), (compiled(choose, size), compiled(propose, size))
        for start in range(0, size, WORDS_AT_ONCE):
            self._fill(out[start : start + WORDS_AT_ONCE], randomness, loops)
        return out

    def _fill(self, out: Integers, randomness: Source, loops: tuple[Loop | None, Loop | None]) -> None:
        """Places whose proposal was refused get another, until none is left."""
        missing = self._propose(out, randomness, loops)
        while len(missing):
            again = np.empty(len(missing), dtype=np.int64)
            refused = self._propose(again, randomness, (None, None))
            out[missing] = again
            missing = missing[refused]

    def _propose(self, out: Integers, randomness: Source, loops: tuple[Loop | None, Loop | None]) -> Integers:
        """One proposal a place; the places where it was refused, ascending."""
        cells, waiting = np.empty_like(out), np.empty_like(out)
        self.envelope.choice.fill(cells, randomness, loops[0])
        words = randomness.words(len(out))
        loop = loops[1] if words.flags.writeable else None
        count = (loop or _propose)(words, cells, self._shape, out, waiting)
        return self._settle(out, cells, words, waiting[:count], randomness)

    @property
    def _shape(self) -> tuple[np.uint64, int, float, float, float]:
        """What ``loops.propose`` wants to know."""
        bits = self.envelope.cell_bits
        return np.uint64(bits), self.envelope.cells, self.envelope.factor, math.ldexp(1.0, bits - 63), 1.0 - self.doubt

    def _settle(self, out: Integers, cells: Integers, words: Words, waiting: Integers, randomness: Source) -> Integers:
        """Decides the proposals that the quick test left, and draws the tail; returns the refused ones."""
        inner = waiting[cells[waiting] < self.envelope.cells]
        kept, unclear = self._compare(out[inner], cells[inner], words[inner])
        for at in np.flatnonzero(unclear).tolist():
            kept[at] = self._exact(abs(int(out[inner[at]])), int(words[inner[at]]), randomness)
        kept &= (out[inner] != 0) | (words[inner] & np.uint64(1) == 0)  # -0 is refused
        refused = np.ones(len(out), dtype=np.bool_)
        refused[inner] = ~kept
        for at in waiting[cells[waiting] == self.envelope.cells].tolist():
            point = self._tail(randomness)
            refused[at] = point is None
            out[at] = point or 0
        return waiting[refused[waiting]]

    def _compare(self, points: Integers, cells: Integers, words: Words) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Where the acceptance number is surely below the probability to keep; where it is neither surely above."""
        bits, _, factor, unit, _ = self._shape
        edge = cells << np.int64(bits)
        place = np.abs(points) - edge
        fall = place.astype(np.float64) * (place + 2.0 * edge) * factor
        power = np.ones_like(fall)
        for k in range(TERMS, 0, -1):
            power = 1.0 - power * fall / k
        level = (words >> (bits + np.uint64(1))).astype(np.float64) * unit
        kept = level + unit <= power - self.doubt
        return kept, ~kept & (level < power + self.doubt)

    def _exact(self, x: int, word: int, randomness: Source) -> bool:
        """The same comparison without rounding: the bits of the word, continued, against ever better bounds."""
        bits = self.envelope.cell_bits + 1
        return happens(partial(self.envelope.chance, x), randomness, word >> bits, 64 - bits)

    def _tail(self, randomness: Source) -> int | None:
        """A point beyond the cells, or None where it was refused."""
        period = _leading_ones(randomness)
        (place,), (sign,) = below(1 << self.envelope.tail_bits, 1, randomness), below(2, 1, randomness)
        x = self.envelope.start + (period << self.envelope.tail_bits) + int(place)
        kept = happens(partial(self.envelope.tail_chance, x, period), randomness)
        return (x if sign else -x) if kept else None


def _leading_ones(randomness: Source) -> int:
    """How often a coin shows heads first: i with probability 2^{−i−1}."""
    count = 0
    while True:
        word = int(randomness.words(1)[0])
        ones = 64 - (word ^ (2**64 - 1)).bit_length()
        count += ones
        if ones < 64:
            return count


def _propose(
    words: Words, cells: Integers, shape: tuple[np.uint64, int, float, float, float], out: Integers, waiting: Integers
) -> int:
    """The numpy twin of ``loops.propose``; views, as no number reaches 2⁶³."""
    bits, last, factor, unit, ceiling = shape
    np.left_shift(cells, np.int64(bits), out=out)
    place = ((words >> np.uint64(1)) & np.uint64((1 << int(bits)) - 1)).view(np.int64)
    real = place.astype(np.float64)
    level = (words >> (bits + np.uint64(1))).view(np.int64).astype(np.float64)
    level *= unit
    level += unit
    level += real * (real + 2.0 * out) * factor
    out += place
    found = np.flatnonzero((level > ceiling) | (cells >= last) | (out == 0))
    out *= 1 - 2 * (words & np.uint64(1)).view(np.int64)
    waiting[: len(found)] = found
    return len(found)


SMALLEST, LARGEST = 64.0, 1e9
UPWARDS = 1 + 2.0**-48
"""Takes a float that is right to a few units in the last place to the side where it is safe."""


@dataclass(frozen=True, slots=True)
class LargeGaussian(Mechanism):
    """P(X = x) = e^{−x²/(2 scale²)} / Z for every integer x, exactly; no output has infinite loss.

    *Privacy.* With Φ(u_k) = P(X < k), u_{k+1} − u_k ≤ 1/√(scale² − ½) for all k. So the ROC curve of (X, X + d), whose
    corners are (Φ(−u_k), Φ(u_{k−d})), lies above that of two normal laws d/√(scale² − ½) apart: the loss of a Gaussian
    whose scale is smaller by 1/(4 scale²) of itself dominates, at every shift (``docs/proofs/exact-sampling.md``).
    """

    scale: float
    sensitivity: int
    sampler: GaussianSampler = field(repr=False, compare=False)

    @classmethod
    def of(cls, scale: float, sensitivity: int = 1) -> Self:
        """For 64 ≤ scale ≤ 10⁹, taken as the exact number that the float is; raises ``InputError`` for others.

        >>> noise = LargeGaussian.of(1e9, 10**9)
        >>> round(noise.loss.delta(1), 9), noise.half_width(0.95)
        (0.126936738, 1959963985)
        """
        number = scale_between(scale, SMALLEST, LARGEST)
        sensitivity = whole("sensitivity", sensitivity, remedy="round the answers to fixed point first")
        positive("sensitivity", sensitivity)
        return cls(number, sensitivity, GaussianSampler(Envelope(number)))

    @property
    def loss(self) -> PrivacyLoss:
        """μ-GDP with μ = sensitivity / √(scale² − ½), rounded up; smaller shifts are dominated."""
        return PrivacyLoss.of(GaussianLaw(self.sensitivity / math.sqrt(self.scale**2 - 0.5) * UPWARDS))

    @property
    def mean_absolute_error(self) -> float:
        """E|X| = (2 scale² − 1/6) / (scale √(2π)), up to 1/(60 scale⁴) of itself (Euler–Maclaurin)."""
        return (2 * self.scale**2 - 1 / 6) / (self.scale * math.sqrt(2 * math.pi))

    @property
    def mean_squared_error(self) -> float:
        """E X² = scale²: Poisson's summation takes away less than e^{−19 scale²} of it."""
        return self.scale**2

    @property
    def worst_error(self) -> float:
        """There is none: ∞."""
        return math.inf

    def quantile(self, p: float) -> int:
        """The smallest x with P(X ≤ x) ≥ p, or a neighbour of it; raises ``InputError`` unless 0 < p < 1."""
        return math.ceil(self.scale * float(special.ndtri(inner_probability("p", p))) - 0.5)

    def half_width(self, confidence: float) -> int:
        """A w with P(|X| ≤ w) ≥ confidence; the smallest one, or the next.

        P(X > w) ≤ (1 + 1/(12 scale²)) Φ(−(w + ½)/scale): e^{−x²/2σ²} is at most 1 + 1/(24σ²) times its mean over
        [x − ½, x + ½], and Z is at least scale √(2π).
        """
        outside = (1 - inner_probability("confidence", confidence)) / (2 + 1 / (6 * self.scale**2))
        return math.ceil(-self.scale * float(special.ndtri(outside / UPWARDS)) * UPWARDS - 0.5)

    def sample(self, size: int, randomness: Source | None = None) -> NDArray[np.int64]:
        """``size`` independent draws of X, shape [size], exactly from its law."""
        return self.sampler.draw(whole("size", size, at_least=0), randomness or Stream())

    def release(self, value: Any, randomness: Source | None = None) -> Any:
        """Value + X for an integer or an array of integers; raises ``InputError`` for anything else."""
        return add_noise(value, self.sample(entries(value), randomness))
