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

from tightrope.accounting.distributions.gaussian import GaussianLossDistribution
from tightrope.accounting.privacy_loss import PrivacyLoss
from tightrope.errors import InputError
from tightrope.mechanisms.discrete.integer_mechanism import add_noise, count_entries
from tightrope.mechanisms.discrete.integer_tables import check_scale_range
from tightrope.mechanisms.discrete.integer_weights import ONE, fixed_point_exponential
from tightrope.mechanisms.mechanism import Mechanism
from tightrope.numerics.arrays import Integers
from tightrope.numerics.checks import check_inner_probability, check_integer, check_positive
from tightrope.randomness.alias_sampler import TOTAL, WORDS_AT_ONCE, AliasSampler
from tightrope.randomness.bits import Source, Stream, Words
from tightrope.randomness.integers import bernoulli_from_bits, falling_exponential, uniform_below
from tightrope.randomness.loops import Loop, choose_outcomes, compiled_loop, propose_points

# An envelope of integer weights over the discrete Gaussian: cells to draw, and each point's acceptance probability.
# Below, ``TOTAL`` is 2¹²⁸, the sum of all weights, and ``ONE`` is the number 1 in fixed point.
#
# P(X = x) ∝ ρ(x) = e^{−x²/(2σ²)} on all integers. Points are (sign, |x|) with −0 rejected. Cell j < J holds the W = 2^w
# magnitudes from jW, where ρ is largest, and gets the weight a_j ≥ S ρ(jW); everything from B = JW on is the tail, of
# weight a; S is an integer. The proposal is a cell with probability a_j / 2¹²⁸, then a sign and an offset in it,
# uniformly, and the point is accepted with probability S ρ(x) / a_j: so each point is proposed and accepted with
# probability S ρ(x) / (2W 2¹²⁸), exactly. The weights need not be near S ρ; they must be integers and not below it. In
# the tail, super-cell i ≥ 0 of V = 2^v points is chosen with probability 2^{−i−1}; BV ≥ 0.7 σ² makes ρ at least halve
# from one to the next, so that S (V/W) 2^{i+1} ρ(x) / a ≤ 1 for a ≥ 2 S (V/W) ρ(B). ``docs/proofs/exact-sampling.md``.

FEWEST_SCALE_CELLS = 64
"""A scale spans at least this many cells: at most about 1 % of the proposals are rejected."""
TAIL_BEGINS = 8
"""Number of scales before the tail begins: P(|X| > 8σ) ≈ 10⁻¹⁵, and e^{−32} leaves the last cell a weight above 2⁷⁰."""


@dataclass(frozen=True)  # not slotted: caches the weights
class Envelope:
    """The envelope for a scale σ ≥ 64, taken as the exact binary fraction of the float."""

    scale: float

    @cached_property
    def exact_variance(self) -> Fraction:
        """σ², exactly."""
        return Fraction(self.scale) ** 2

    @cached_property
    def exponent_factor(self) -> float:
        """1/(2σ²), correctly rounded."""
        return float(1 / (2 * self.exact_variance))

    @cached_property
    def cell_bits(self) -> int:
        """The largest w with σ ≥ 64 W, where W = 2^w is the cell width."""
        return (int(self.scale) // FEWEST_SCALE_CELLS).bit_length() - 1

    @cached_property
    def cell_count(self) -> int:
        """J, the smallest number of cells that reach 8σ."""
        return -(-TAIL_BEGINS * (int(self.scale) + 1) >> self.cell_bits) + 1

    @property
    def tail_start(self) -> int:
        """B, the start of the tail."""
        return self.cell_count << self.cell_bits

    @cached_property
    def tail_bits(self) -> int:
        """The smallest v such that V = 2^v ≥ W and B V ≥ 0.7 σ² > σ² log 2."""
        bits = self.cell_bits
        while 10 * (self.tail_start << bits) < 7 * self.exact_variance:
            bits += 1
        return bits

    @cached_property
    def cell_sampler(self) -> AliasSampler:
        """A sampler of cells: 0..J − 1, J for the tail, J + 1 for "again" (the rounding remainder)."""
        return AliasSampler.from_weights(self._cell_weights)

    @cached_property
    def _density_levels(self) -> tuple[int, ...]:
        """At least ρ(jW), j < J, and 2 (V/W) ρ(B), in fixed point."""
        inner = [
            fixed_point_exponential(self.density_exponent(j << self.cell_bits)) + 1 for j in range(self.cell_count + 1)
        ]
        return (*inner[:-1], inner[-1] << (self.tail_bits - self.cell_bits + 1))

    @cached_property
    def weight_scale(self) -> int:
        """S: with this factor the cell weights, rounded up, add up to at most 2¹²⁸ (nearly the largest such factor)."""
        return (TOTAL - len(self._density_levels)) * ONE // sum(self._density_levels)

    @cached_property
    def _cell_weights(self) -> tuple[int, ...]:
        rounded = [-(-self.weight_scale * level // ONE) for level in self._density_levels]
        return (*rounded, TOTAL - sum(rounded))

    def density_exponent(self, x: int) -> Fraction:
        """Return x²/(2σ²)."""
        return x * x / (2 * self.exact_variance)

    def acceptance_bounds(self, x: int, digits: int) -> tuple[Fraction, Fraction]:
        """Return bounds on the acceptance probability S ρ(x) / a_j of 0 ≤ x < B, about ``digits`` digits apart."""
        share = Fraction(self.weight_scale, self._cell_weights[x >> self.cell_bits])
        low, high = falling_exponential(self.density_exponent(x), digits)
        return share * low, share * high

    def tail_acceptance_bounds(self, x: int, super_cell: int, digits: int) -> tuple[Fraction, Fraction]:
        """Return bounds on the acceptance probability of x ≥ B proposed from super-cell ``super_cell``."""
        lift = self.tail_bits - self.cell_bits + super_cell + 1
        share = Fraction(self.weight_scale << lift, self._cell_weights[self.cell_count])
        low, high = falling_exponential(self.density_exponent(x), digits)
        return share * low, share * high


# Exact draws of the discrete Gaussian of any large scale: two words each, without a table of values.
#
# A point is accepted if a uniform number u in [0, 1) is below its acceptance probability; the first bits of u are those
# bits of the random word that sign and offset leave over. Floats decide only if u differs from the probability by more
# than ``doubt``, a generous bound on the errors of both. The rest (about one draw in 10¹², and the tail) is decided in
# exact arithmetic.

DOUBT = 2.0**-40
"""More than a thousand times the rounding error of the compared numbers (docs/proofs/exact-sampling.md)."""
TERMS = 10
"""Degree of the Taylor polynomial of e^{−t} for 0 ≤ t ≤ 1/7: accurate to 10⁻¹⁶."""


@dataclass(frozen=True, slots=True)
class GaussianSampler:
    """Sampler for an envelope. A larger ``doubt`` ≥ 2⁻⁴⁰ moves decisions to exact arithmetic; the draws stay exact."""

    envelope: Envelope
    doubt: float = DOUBT

    def __post_init__(self) -> None:
        if not DOUBT <= self.doubt <= 1:
            raise InputError("doubt", self.doubt, "a number in [2^-40, 1]", "less is below the error of floats")

    def draw_samples(self, size: int, randomness: Source) -> Integers:
        """Return ``size`` independent draws, shape [size]."""
        out, loops = (
            np.empty(size, dtype=np.int64),
            (compiled_loop(choose_outcomes, size), compiled_loop(propose_points, size)),
        )
        for start in range(0, size, WORDS_AT_ONCE):
            self._fill_samples(out[start : start + WORDS_AT_ONCE], randomness, loops)
        return out

    def _fill_samples(self, out: Integers, randomness: Source, loops: tuple[Loop | None, Loop | None]) -> None:
        """Fill the array, proposing again for rejected entries until all are accepted."""
        missing = self._propose_points(out, randomness, loops)
        while len(missing):
            again = np.empty(len(missing), dtype=np.int64)
            refused = self._propose_points(again, randomness, (None, None))
            out[missing] = again
            missing = missing[refused]

    def _propose_points(self, out: Integers, randomness: Source, loops: tuple[Loop | None, Loop | None]) -> Integers:
        """Propose one point for each entry; return the indices of rejected ones, ascending."""
        cells, undecided = np.empty_like(out), np.empty_like(out)
        self.envelope.cell_sampler.fill_outcomes(cells, randomness, loops[0])
        words = randomness.random_words(len(out))
        loop = loops[1] if words.flags.writeable else None
        count = (loop or _propose_with_numpy)(words, cells, self._loop_parameters, out, undecided)
        return self._resolve_proposals(out, cells, words, undecided[:count], randomness)

    @property
    def _loop_parameters(self) -> tuple[np.uint64, int, float, float, float]:
        """Parameters of ``loops.propose_points``."""
        bits = self.envelope.cell_bits
        return (
            np.uint64(bits),
            self.envelope.cell_count,
            self.envelope.exponent_factor,
            math.ldexp(1.0, bits - 63),
            1.0 - self.doubt,
        )

    def _resolve_proposals(
        self, out: Integers, cells: Integers, words: Words, undecided: Integers, randomness: Source
    ) -> Integers:
        """Decide the proposals that the quick test left undecided, and draw the tail; return the rejected ones."""
        inner = undecided[cells[undecided] < self.envelope.cell_count]
        accepted, unsure = self._compare_acceptance(out[inner], cells[inner], words[inner])
        for index in np.flatnonzero(unsure).tolist():
            accepted[index] = self._accepts_exactly(abs(int(out[inner[index]])), int(words[inner[index]]), randomness)
        accepted &= (out[inner] != 0) | (words[inner] & np.uint64(1) == 0)  # -0 is refused
        rejected = np.ones(len(out), dtype=np.bool_)
        rejected[inner] = ~accepted
        for index in undecided[cells[undecided] == self.envelope.cell_count].tolist():
            point = self._draw_tail_point(randomness)
            rejected[index] = point is None
            out[index] = point or 0
        return undecided[rejected[undecided]]

    def _compare_acceptance(
        self, points: Integers, cells: Integers, words: Words
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Return masks: u is surely below the acceptance probability; floats cannot decide."""
        bits, _, factor, unit, _ = self._loop_parameters
        edge = cells << np.int64(bits)
        offset = np.abs(points) - edge
        exponent = offset.astype(np.float64) * (offset + 2.0 * edge) * factor
        power = np.ones_like(exponent)
        for k in range(TERMS, 0, -1):
            power = 1.0 - power * exponent / k
        level = (words >> (bits + np.uint64(1))).astype(np.float64) * unit
        accepted = level + unit <= power - self.doubt
        return accepted, ~accepted & (level < power + self.doubt)

    def _accepts_exactly(self, x: int, word: int, randomness: Source) -> bool:
        """Decide acceptance without rounding: continue the bits of the word and refine the bounds."""
        bits = self.envelope.cell_bits + 1
        return bernoulli_from_bits(partial(self.envelope.acceptance_bounds, x), randomness, word >> bits, 64 - bits)

    def _draw_tail_point(self, randomness: Source) -> int | None:
        """Return a point beyond the cells, or None if it is rejected."""
        # The number of leading heads of fair coin flips: i with probability 2^{−i−1}.
        super_cell, ones = 0, 64
        while ones == 64:
            word = int(randomness.random_words(1)[0])
            ones = 64 - (word ^ (2**64 - 1)).bit_length()
            super_cell += ones
        (offset,), (sign,) = uniform_below(1 << self.envelope.tail_bits, 1, randomness), uniform_below(2, 1, randomness)
        x = self.envelope.tail_start + (super_cell << self.envelope.tail_bits) + int(offset)
        accepted = bernoulli_from_bits(partial(self.envelope.tail_acceptance_bounds, x, super_cell), randomness)
        return (x if sign else -x) if accepted else None


def _propose_with_numpy(
    words: Words,
    cells: Integers,
    parameters: tuple[np.uint64, int, float, float, float],
    out: Integers,
    undecided: Integers,
) -> int:
    """NumPy version of ``loops.propose_points``.

    ``view(np.int64)`` reinterprets unsigned words without a copy: all numbers are below 2⁶³.
    """
    bits, cell_count, factor, unit, accept_below = parameters
    np.left_shift(cells, np.int64(bits), out=out)
    offset = ((words >> np.uint64(1)) & np.uint64((1 << int(bits)) - 1)).view(np.int64)
    offset_float = offset.astype(np.float64)
    level = (words >> (bits + np.uint64(1))).view(np.int64).astype(np.float64)
    level *= unit
    level += unit
    level += offset_float * (offset_float + 2.0 * out) * factor
    out += offset
    # Here ``level`` is u + t, and the acceptance probability is e^{−t}, both up to errors that doubt covers. As
    # 1 − t ≤ e^{−t}, a point with u + t ≤ 1 − doubt is accepted; the others are compared more precisely.
    indices = np.flatnonzero((level > accept_below) | (cells >= cell_count) | (out == 0))
    out *= 1 - 2 * (words & np.uint64(1)).view(np.int64)
    undecided[: len(indices)] = indices
    return len(indices)


SMALLEST, LARGEST = 64.0, 1e9
UPWARDS = 1 + 2.0**-48
"""Factor that moves a float accurate to a few units in the last place to the safe side."""


@dataclass(frozen=True, slots=True)
class LargeGaussian(Mechanism):
    """P(X = x) = e^{−x²/(2 scale²)} / Z for every integer x, exactly; no output has infinite loss.

    *Privacy.* With Φ(u_k) = P(X < k), u_{k+1} − u_k ≤ 1/√(scale² − ½) for all k. So the ROC curve of (X, X + d), with
    corners (Φ(−u_k), Φ(u_{k−d})), lies above the ROC curve of two normal distributions d/√(scale² − ½) apart: at every
    shift, the loss is dominated by a Gaussian whose scale is smaller by the relative amount 1/(4 scale²)
    (``docs/proofs/exact-sampling.md``).
    """

    scale: float
    sensitivity: int
    sampler: GaussianSampler = field(repr=False, compare=False)

    @classmethod
    def from_scale(cls, scale: float, sensitivity: int = 1) -> Self:
        """Return the mechanism for 64 ≤ scale ≤ 10⁹, the exact value of the float; else raises ``InputError``.

        >>> noise = LargeGaussian.from_scale(1e9, 10**9)
        >>> round(noise.loss.delta(1), 9), noise.half_width(0.95)
        (0.126936738, 1959963985)
        """
        number = check_scale_range(scale, SMALLEST, LARGEST)
        sensitivity = check_integer("sensitivity", sensitivity, remedy="round the answers to fixed point first")
        check_positive("sensitivity", sensitivity)
        return cls(number, sensitivity, GaussianSampler(Envelope(number)))

    @property
    def loss(self) -> PrivacyLoss:
        """μ-GDP with μ = sensitivity / √(scale² − ½), rounded up; smaller shifts are dominated."""
        return PrivacyLoss.from_distribution(
            GaussianLossDistribution(self.sensitivity / math.sqrt(self.scale**2 - 0.5) * UPWARDS)
        )

    @property
    def mean_absolute_error(self) -> float:
        """E|X| = (2 scale² − 1/6) / (scale √(2π)), up to a relative error of 1/(60 scale⁴) (Euler–Maclaurin)."""
        return (2 * self.scale**2 - 1 / 6) / (self.scale * math.sqrt(2 * math.pi))

    @property
    def mean_squared_error(self) -> float:
        """E X² = scale²: by Poisson's summation formula, with a relative error below e^{−19 scale²}."""
        return self.scale**2

    @property
    def worst_error(self) -> float:
        """∞: the noise is unbounded."""
        return math.inf

    def quantile(self, p: float) -> int:
        """Return the smallest x with P(X ≤ x) ≥ p, up to ±1; raises ``InputError`` unless 0 < p < 1."""
        return math.ceil(self.scale * float(special.ndtri(check_inner_probability("p", p))) - 0.5)

    def half_width(self, confidence: float) -> int:
        """Return the smallest w with P(|X| ≤ w) ≥ confidence, or the next integer.

        P(X > w) ≤ (1 + 1/(12 scale²)) Φ(−(w + ½)/scale): e^{−x²/2σ²} is at most 1 + 1/(24σ²) times its mean over
        [x − ½, x + ½], and Z is at least scale √(2π).
        """
        outside = (1 - check_inner_probability("confidence", confidence)) / (2 + 1 / (6 * self.scale**2))
        return math.ceil(-self.scale * float(special.ndtri(outside / UPWARDS)) * UPWARDS - 0.5)

    def sample(self, size: int, randomness: Source | None = None) -> NDArray[np.int64]:
        """Return ``size`` exact independent draws of X, shape [size]."""
        return self.sampler.draw_samples(check_integer("size", size, at_least=0), randomness or Stream())

    def release(self, value: Any, randomness: Source | None = None) -> Any:
        """Return value + X for an integer or an array of integers; raises ``InputError`` for other types."""
        return add_noise(value, self.sample(count_entries(value), randomness))
