"""Exact integer noise for several numbers at once, in the shape of a box: a random half-width, then a uniform point."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import accumulate, pairwise
from math import comb
from typing import Any, ClassVar, NoReturn, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from tightrope.accounting.distributions.atoms import Atoms
from tightrope.accounting.privacy_loss import PrivacyLoss
from tightrope.errors import InputError
from tightrope.mechanisms.discrete.integer_weights import (
    DIGITS,
    ONE,
    PlateauTail,
    Tail,
    first_survival_at_most,
    symmetric_quantile,
)
from tightrope.mechanisms.discrete.noise_table import NoiseTable, build_noise_table
from tightrope.mechanisms.discrete.table_loss import (
    LOSS_ROUNDING,
    SMALLEST_TABLE_LOSS,
    snap_losses,
    weight_log_ratios,
)
from tightrope.numerics.arrays import Floats
from tightrope.numerics.checks import check_inner_probability, check_integer
from tightrope.numerics.rounding import ROUND_OFF
from tightrope.randomness.alias_sampler import BITS, TOTAL
from tightrope.randomness.bits import Source, Stream
from tightrope.randomness.integers import uniform_below_each

# The number of points of ℤ^d at one distance from 0 and another from the corner s·(1, …, 1); distance: largest |x_i|.
#
# For distances a and b = a + j, |j| ≤ s, each coordinate lies in an interval of V = a + b − s + 1 integers. If |j| < s,
# one of its ends has distance b from the corner and the other one distance a from 0, and no inner point has either: a
# point needs both ends, which gives V^d − 2 (V−1)^d + (V−2)^d points (one if V = 1). If |j| = s, one of the ends has
# both distances: V^d − (V−1)^d. These are sums of positive terms, so floats lose no digits to cancellation.

Number = TypeVar("Number", int, Floats)


def points_with_one_end(inner: Number, dimension: int) -> Number:
    """Return (m+1)^d − m^d for m = V − 1 ≥ 0.

    >>> points_with_one_end(2, 3) == 3**3 - 2**3
    True
    """
    total = inner * 0 + 1
    for k in range(1, dimension):
        total = total + comb(dimension, k) * inner**k
    return total


def points_with_both_ends(inner: Number, dimension: int) -> Number:
    """Return (m+1)^d − 2 m^d + (m−1)^d for m = V − 1 ≥ 1.

    >>> points_with_both_ends(2, 3) == 3**3 - 2 * 2**3 + 1
    True
    """
    total = inner * 0
    for k in range(2, dimension + 1, 2):
        total = total + 2 * comb(dimension, k) * inner ** (dimension - k)
    return total


def shared_point_counts(lengths: Floats, dimension: int, *, one_end: bool) -> Floats:
    """Return the number of points for each V, to a few units in the last place; 0 if V < 1."""
    inner = np.maximum(lengths - 1, 0.0)
    many = (points_with_one_end if one_end else points_with_both_ends)(inner, dimension)
    return np.where(lengths > 1, many, (lengths == 1).astype(np.float64))


# The privacy loss of box-shaped noise at the worst corner of all shifts, from integer weights.
#
# P(x) = v(‖x‖), ‖x‖ the largest |x_i|, v decreasing. Of all shifts by at most s in each coordinate the corner s·(1, …,
# 1) has the largest loss at every ε (docs/proofs/box.md), and all corners are equivalent. Points are grouped by (‖x‖,
# ‖x − corner‖); the mirrored pair has the loss of the other sign.
#
# **Rounding.** v(a) = Σ_{r ≥ a} P(R = r) / (2r+1)^d in units so fine that rounding down loses a relative 2⁻¹⁰⁰ at most;
# losses are logarithms of quotients of these integers (see ``table_loss``). Masses are sums of products of two doubles,
# each accurate to a few units in the last place: the error is within ``MASS_ROUNDING`` plus one unit for each term.

GUARD = 128
"""Binary digits beyond the smallest weight's."""
MOST_PAIRS = 1 << 22
"""Maximum number of pairs of distances: half a minute."""
MASS_ROUNDING = 2e-14
"""Relative error of a mass: within sixteen units of 2⁻⁵³, plus the error of pairwise sums of up to 2²² masses."""


NEGLIGIBLE_BITS, EXTRA_BITS = 90, 80
"""Of an unbounded box: half-widths whose tail probability is below 2⁻⁹⁰ count with the largest loss. Their point
weights are listed until the rest is smaller by a factor of 2⁻⁸⁰, which changes losses by less than their rounding."""


def point_weights(radii: list[int], dimension: int, precision: int = BITS) -> tuple[list[int], int]:
    """Return v(0), v(1), …, v(N), rounded down, and the total that represents probability 1.

    ``radii``: P(R = 0), P(R = 1), … out of 2^``precision``.
    """
    lift = GUARD + dimension * (2 * len(radii) + 1).bit_length()
    weights = [(weight << lift) // (2 * r + 1) ** dimension for r, weight in enumerate(radii)]
    return list(accumulate(reversed(weights)))[::-1], 1 << (precision + lift)


def list_radius_weights(radii: NoiseTable, precision: int, bits: int, *, also: int = 0) -> list[int]:
    """Return P(R = 0), P(R = 1), … out of 2^``precision``, rounded down.

    With a tail, whole blocks are listed until P(R is larger) < 2^−``bits``, and then at least ``also`` more weights.
    """
    lift = precision - BITS
    weights = [weight << lift for weight in (radii.center, *(2 * weight for weight in radii.half))]
    if radii.tail is None:
        return weights
    rest, enough = 2 * radii.tail.escape_in << lift, math.inf
    while len(weights) < enough:
        if enough == math.inf and not rest >> (precision - bits):
            enough = len(weights) + also
            continue
        weights += [rest * weight >> BITS for weight in radii.tail.block]
        rest = rest * radii.tail.escape >> BITS
    return weights


@dataclass(frozen=True, eq=False)  # not slotted: caches what all shifts share
class PointWeights:
    """v(0), v(1), … in fine units and as probabilities.

    Points at which both distances are below ``count`` are counted; ``far_probability`` bounds P(R ≥ ``count``), and
    ``largest_step`` log v(a) / v(a + 1) for all a ≥ ``count``. Both are 0 for a table without tail.
    """

    weights: list[int]
    probabilities: Floats
    count: int
    far_probability: float = 0.0
    largest_step: float = 0.0
    _ratios_by_distance: dict[int, tuple[Floats, float]] = field(default_factory=dict)

    @classmethod
    def from_radii(cls, radii: NoiseTable, dimension: int, shift: int) -> Self:
        """Return the weights that a shift needs, of an unbounded table ``shift`` more than are counted."""
        if radii.tail is None:
            precision, listed = BITS, list_radius_weights(radii, BITS, 0)
            count, far, largest_step = len(listed), 0.0, 0.0
        else:
            block, escape = radii.tail.block, radii.tail.escape
            # bits by which a block decreases: all listed weights keep at least 128 digits
            bits_per_block = BITS - escape.bit_length() + 1
            blocks = -(-shift // len(block)) + 2 + EXTRA_BITS // bits_per_block
            precision = 3 * BITS + NEGLIGIBLE_BITS + (blocks + 1) * bits_per_block
            count = len(list_radius_weights(radii, precision, NEGLIGIBLE_BITS))
            listed = list_radius_weights(radii, precision, NEGLIGIBLE_BITS, also=blocks * len(block))
            far = float(1 - Fraction(sum(listed[:count]), 1 << precision)) * (1 + 2.0**-50)
            steps = [Fraction(b, a) for a, b in pairwise(block)]
            steps.append(Fraction(block[0] * escape, block[-1] * TOTAL))
            least_ratio = min(steps) * Fraction(2 * count + 1, 2 * count + 3) ** dimension
            largest_step = -math.log(least_ratio) * (1 + 2.0**-40)
        weights, whole = point_weights(listed, dimension, precision)
        return cls(weights, np.array([weight / whole for weight in weights]), count, far, largest_step)

    def log_ratios(self, apart: int, count: int) -> tuple[Floats, float]:
        """Return log v(a) / v(a + apart) for a below ``count``, and a bound on their rounding error."""
        if apart not in self._ratios_by_distance:
            pairs = list(zip(self.weights, self.weights[apart:], strict=False))
            losses, slack = snap_losses(weight_log_ratios(pairs), ())
            self._ratios_by_distance[apart] = np.where(np.abs(losses) < SMALLEST_TABLE_LOSS, 0.0, losses), slack
        losses, slack = self._ratios_by_distance[apart]
        return losses[:count], slack


@dataclass(frozen=True, eq=False)  # not slotted: caches what all shifts share
class BoxLosses:
    """Losses of box noise with the half-width |S|, S from ``radii``, in ``dimension`` dimensions."""

    radii: NoiseTable
    dimension: int
    _weights_by_shift: dict[int, PointWeights] = field(default_factory=dict)

    def _point_weights(self, shift: int) -> PointWeights:
        key = 0 if self.radii.tail is None else shift
        if key not in self._weights_by_shift:
            self._weights_by_shift[key] = PointWeights.from_radii(self.radii, self.dimension, shift)
        return self._weights_by_shift[key]

    def atoms_for_shift(self, shift: int) -> Atoms:
        """Return the loss distribution of (X, X + shift·(1, …, 1)); the reverse pair has the same distribution.

        Raises ``InputError`` if the shift is so large that there are too many pairs of distances.
        """
        listed = len(self.radii.half) + 1
        if not listed * shift <= MOST_PAIRS:
            raise InputError("sensitivity", shift, f"at most {MOST_PAIRS // listed} for this noise", "coarser units")
        table = self._point_weights(shift)
        count, probabilities = table.count, table.probabilities
        differences = range(min(shift, count - 1) + 1)
        points = [self._point_counts(difference, shift, count) for difference in range(shift + 1)]
        log_ratios = [table.log_ratios(difference, count - difference) for difference in differences]
        near = [
            points[difference][: count - difference] * probabilities[: count - difference] for difference in differences
        ]
        far = [
            points[difference][: count - difference] * probabilities[difference:count] for difference in differences[1:]
        ]
        losses = [ratio for ratio, _ in log_ratios] + [-ratio for ratio, _ in log_ratios[1:]]
        masses, outer = [*near, *far], table.far_probability
        for difference, counts in enumerate(points):
            start = max(count - difference, 0)
            outer += float(np.dot(counts[start:], probabilities[start:count]))
        slack = max(slack for _, slack in log_ratios) + SMALLEST_TABLE_LOSS
        if self.radii.tail is not None:
            # The other points have the same probability under both distributions: the two largest losses dominate.
            ratios, last_slack = table.log_ratios(shift, count)
            largest = max(float(np.max(ratios)), shift * table.largest_step)
            losses.append(np.array([largest, -largest]))
            masses.append(outer / (1 + np.exp(np.array([-largest, largest]))))
            outer, slack = 0.0, max(slack, last_slack, 2 * LOSS_ROUNDING * largest)
        atoms = Atoms.merge_losses(
            np.concatenate(losses),
            np.concatenate(masses),
            infinite_mass=outer,
            reverse_infinity_mass=outer,
            rounding_error_bound=slack,
        )
        return Atoms(
            atoms.losses,
            atoms.masses,
            outer,
            outer,
            slack,
            relative_mass_error=MASS_ROUNDING + len(near[0]) * ROUND_OFF,
        )

    def _point_counts(self, difference: int, shift: int, count: int) -> Floats:
        """Return the number of points at distance a from 0 and a + ``difference`` from the corner; a < ``count``."""
        lengths = 2 * np.arange(count, dtype=np.float64) + (difference - shift + 1)
        return shared_point_counts(lengths, self.dimension, one_end=difference == shift)


def _cap_radii(radii: NoiseTable, ratio: int, dimension: int, mode: int) -> NoiseTable:
    """Return half-widths whose listed point weights fall by at most ``ratio`` (fixed point) from one to the next.

    Rounding to 2⁻¹²⁸ changes improbable small half-widths: these are lowered where they would be too likely, and the
    most likely half-width, ``mode``, gets what they lose.
    """
    listed = list_radius_weights(radii, BOX_PRECISION, LISTED_BITS)
    lift, last = dimension * (2 * len(listed) + 1).bit_length(), len(radii.half)
    beyond = sum((weight << lift) // (2 * r + 1) ** dimension for r, weight in enumerate(listed) if r > last)
    capped = [radii.center, *(2 * weight for weight in radii.half)]
    for r in range(last, -1, -1):
        size = (2 * r + 1) ** dimension
        largest = (beyond * (ONE - ratio) // ratio * size >> lift) >> (BOX_PRECISION - BITS)
        capped[r] = min(capped[r], largest - largest % 2)
        beyond += (capped[r] << (lift + BOX_PRECISION - BITS)) // size
    capped[mode] += TOTAL - 2 * radii.tail.escape_in - sum(capped) if radii.tail else 0
    return NoiseTable(capped[0], tuple(weight // 2 for weight in capped[1:]), radii.tail)


MOST_DIMENSIONS = 16
BOX_PRECISION, LISTED_BITS = 256, 160
"""Binary digits of sums over half-widths, rounded up: by less than 2⁻²⁰⁰ in total; half-widths of a tail are listed
until P(R is larger) < 2⁻¹⁶⁰, which is added to every tail probability."""
HEAD_BITS = 56
"""The geometric tail of an unbounded box begins where P(R = r) is about 2⁻⁵⁶ of the largest one."""


@dataclass(frozen=True, repr=False)  # not slotted: caches sums over half-widths
class BoxTable:
    """X = (X_1, …, X_d): R = |S|, S from ``radii``, then each X_i uniform on {−R, …, R}, independent given R.

    All points with the same largest |x_i| are equally likely, and more likely if it is smaller: the K-norm mechanism of
    Hardt and Talwar for the cube, with any profile. Errors, quantiles and widths refer to a single X_i. Only the whole
    vector is private, so a single X_i cannot be drawn.

    ``loss(s)`` covers shifts of every X_i by up to s, for any neighboring relation that bounds the changes by s.

    With an unbounded table of ``radii``, every loss is finite: such a box needs no δ. Raises ``InputError`` unless
    2 ≤ d ≤ 16.

    >>> box = BoxTable(NoiseTable(2**127, (2**126,)), dimension=2)
    >>> box.largest_magnitude, box.mean_absolute
    (1.0, 0.3333333333333333)
    """

    radii: NoiseTable
    dimension: int

    is_unimodal: ClassVar[bool] = True

    @classmethod
    def from_ratio(cls, ratio: float, dimension: int) -> Self:
        """Return the noise with P(x) ∝ ratio^max |x_i|, apart from rounding and from improbable points.

        The half-width r has the weight ratio^r (2r + 1)^d up to N, then a geometric tail with the ratio
        ρ = ratio ((2N + 5)/(2N + 3))^d, whose first weight makes P(‖x‖ = N + 1) continue the profile. From there on the
        profile falls more slowly, so the loss under a shift of s is s log(1/ratio) at most; see docs/proofs/box.md.

        >>> BoxTable.from_ratio(0.5, 2).loss(1).epsilon(0) <= math.log(2) * (1 + 1e-12)
        True
        """
        exact = Fraction(ratio)
        fixed, powers, weights = exact.numerator * ONE // exact.denominator, [ONE], [ONE]
        largest = ONE
        while True:
            r = len(weights)
            tail_ratio = fixed * (2 * r + 3) ** dimension // (2 * r + 1) ** dimension + 1
            if weights[-1] << HEAD_BITS <= largest and tail_ratio * tail_ratio <= fixed * ONE:
                break
            powers.append(powers[-1] * fixed >> DIGITS)
            weights.append(powers[-1] * (2 * r + 1) ** dimension)
            largest = max(largest, weights[-1])
        first = len(weights)  # N + 1
        beyond = powers[-1] * fixed // (ONE - fixed)  # Σ ratio^r over r > N
        level, covered, r = ONE, 0, first
        while level >> BITS:
            covered += level * (2 * first + 1) ** dimension // (2 * r + 1) ** dimension
            level, r = level * tail_ratio >> DIGITS, r + 1
        tail = PlateauTail(beyond * (2 * first + 1) ** dimension * ONE // covered, tail_ratio)
        radii = build_noise_table([2 * weights[0], *weights[1:]], tail)
        mode = max(range(first), key=weights.__getitem__)
        return cls(_cap_radii(radii, fixed, dimension, mode) if mode else radii, dimension)

    def __post_init__(self) -> None:
        if not 2 <= check_integer("dimension", self.dimension) <= MOST_DIMENSIONS:
            raise InputError("dimension", self.dimension, f"a whole number from 2 to {MOST_DIMENSIONS}")

    def __repr__(self) -> str:
        end = f"up to {len(self.radii.half)}" if self.tail is None else "without a limit"
        return f"BoxTable({self.dimension} numbers, half-widths {end})"

    @property
    def tail(self) -> Tail | None:
        """The tail of the half-widths; None if they are bounded."""
        return self.radii.tail

    @cached_property
    def _radius_weights(self) -> list[int]:
        """P(R = 0), P(R = 1), … out of 2²⁵⁶; of a tail, those that are listed."""
        return list_radius_weights(self.radii, BOX_PRECISION, LISTED_BITS)

    @cached_property
    def _unlisted_weight(self) -> int:
        """P(R is not listed) out of 2²⁵⁶: 0 without a tail."""
        return (1 << BOX_PRECISION) - sum(self._radius_weights)

    @cached_property
    def _box_losses(self) -> BoxLosses:
        return BoxLosses(self.radii, self.dimension)

    def atoms_for_shift(self, shift: int) -> Atoms:
        """Return the loss distribution of (X, X + shift·(1, …, 1)), which dominates all shifts of at most that size."""
        return self._box_losses.atoms_for_shift(check_integer("shift", shift))

    def loss(self, sensitivity: int = 1) -> PrivacyLoss:
        """Return the loss for all shifts of at most ``sensitivity`` in each number; both directions are the same."""
        atoms = self.atoms_for_shift(check_integer("sensitivity", sensitivity))
        return PrivacyLoss.from_distribution(atoms, reverse=atoms)

    @cached_property
    def _tail_sums(self) -> tuple[list[int], list[int]]:
        """Σ over r > x of P(R = r) r/(2r+1), rounded up, and of P(R = r)/(2r+1), down; x = 0, 1, …; out of 2²⁵⁶."""
        up = [-((-weight * r) // (2 * r + 1)) for r, weight in enumerate(self._radius_weights)]
        down = [weight // (2 * r + 1) for r, weight in enumerate(self._radius_weights)]
        return tuple(list(accumulate(reversed(part), initial=0))[::-1][1:] for part in (up, down))  # type: ignore[return-value]

    def survival_probability(self, x: int) -> Fraction:
        """Return P(X_i > x) for x ≥ 0, at most 2⁻²⁰⁰ above it: Σ over r > x of P(R = r) (r − x)/(2r + 1).

        With a tail, at most 2⁻¹⁵⁹ above it.
        """
        if x >= len(self._radius_weights):
            return Fraction(self._unlisted_weight, 1 << BOX_PRECISION)
        up, down = self._tail_sums
        return Fraction(up[x] - x * down[x] + self._unlisted_weight, 1 << BOX_PRECISION)

    def positive_probabilities(self) -> Floats:
        """Return P(X_i = 1), P(X_i = 2), … in floats."""
        _, down = self._tail_sums
        return np.array([weight / (1 << BOX_PRECISION) for weight in down[:-1]])

    def radius_probabilities(self) -> Floats:
        """Return P(R = 0), P(R = 1), … in floats."""
        return np.array([weight / (1 << BOX_PRECISION) for weight in self._radius_weights])

    def _unlisted_moments(self) -> tuple[Fraction, Fraction]:
        """Return the parts of E (R + 1) and E (R + 1)² from half-widths that are not listed."""
        if self.tail is None:
            return Fraction(0), Fraction(0)
        # R + 1 = first + K, K the excess over the first half-width that is not listed
        (mean, square), first = self.tail.excess_moments(), len(self._radius_weights) + 1
        probability = Fraction(self._unlisted_weight, 1 << BOX_PRECISION)
        return probability * (first + mean), probability * (first * first + 2 * first * mean + square)

    @cached_property
    def exact_mean_absolute(self) -> Fraction:
        """E|X_i| = Σ P(R = r) r(r+1)/(2r+1), rounded up by at most a factor 1 + 2⁻²⁰⁰, with a tail 1 + 2⁻¹⁴⁰."""
        terms = (-((-weight * r * (r + 1)) // (2 * r + 1)) for r, weight in enumerate(self._radius_weights))
        return Fraction(sum(terms), 1 << BOX_PRECISION) + self._unlisted_moments()[0] / 2

    @cached_property
    def exact_mean_squared(self) -> Fraction:
        """E X_i² = Σ P(R = r) r(r+1)/3, with a tail rounded up."""
        listed = sum(weight * r * (r + 1) for r, weight in enumerate(self._radius_weights))
        return Fraction(listed, 3 << BOX_PRECISION) + self._unlisted_moments()[1] / 3

    @property
    def mean_absolute(self) -> float:
        """E|X_i|."""
        return float(self.exact_mean_absolute)

    @property
    def largest_magnitude(self) -> float:
        """The largest |X_i|."""
        return self.radii.largest_magnitude

    def quantile(self, p: float) -> int:
        """Return the smallest x with P(X_i ≤ x) ≥ p; 1e−30 ≤ p < 1."""
        return symmetric_quantile(self.survival_probability, p)

    def half_width(self, confidence: float) -> int:
        """Return the smallest w with P(|X_i| ≤ w) ≥ confidence."""
        outside = 1 - Fraction(check_inner_probability("confidence", confidence))
        return first_survival_at_most(self.survival_probability, outside / 2)

    def draw_points(self, size: int, randomness: Source | None = None) -> NDArray[np.int64]:
        """Draw ``size`` independent points, shape [size, dimension], exactly; by default from the operating system."""
        size, randomness = check_integer("size", size, at_least=0), randomness or Stream()
        half = np.abs(self.radii.sample(size, randomness))
        each = np.repeat(half, self.dimension)
        points: NDArray[np.int64] = uniform_below_each(2 * each + 1, randomness) - each
        return points.reshape(size, self.dimension)

    def sample(self, size: int, randomness: Source | None = None) -> NoReturn:
        """Raise ``InputError``: one number drawn by itself is not covered by the certificate."""
        del randomness
        remedy = "draw(size) gives all of them"
        raise InputError("size", size, f"a draw of all {self.dimension} numbers, as they share their noise", remedy)

    def to_data(self) -> dict[str, Any]:
        """Return plain data: the table of the half-widths, and the dimension."""
        return {**self.radii.to_data(), "dimension": self.dimension}

    @classmethod
    def from_data(cls, data: dict[str, Any]) -> Self:
        """The inverse of :meth:`to_data`."""
        return cls(NoiseTable.from_data(data), data["dimension"])


AnyTable = NoiseTable | BoxTable
"""The noise of one number, or of several numbers jointly."""


def table_from_data(data: dict[str, Any]) -> AnyTable:
    """Return the table from the output of either ``to_data``."""
    return BoxTable.from_data(data) if "dimension" in data else NoiseTable.from_data(data)
