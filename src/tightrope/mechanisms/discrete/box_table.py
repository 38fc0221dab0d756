"""Exact integer noise for several numbers at once, in the shape of a box: a random half-width, then a uniform point."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from math import comb
from typing import Any, ClassVar, NoReturn, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from tightrope.accounting.distributions.atoms import Atoms
from tightrope.accounting.privacy_loss import PrivacyLoss
from tightrope.errors import InputError
from tightrope.mechanisms.discrete.integer_weights import first_survival_at_most, symmetric_quantile
from tightrope.mechanisms.discrete.noise_table import NoiseTable
from tightrope.mechanisms.discrete.table_loss import SMALLEST_TABLE_LOSS, snap_losses, weight_log_ratios
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


def point_weights(radii: list[int], dimension: int) -> tuple[list[int], int]:
    """Return v(0), v(1), …, v(N), rounded down, and the total that represents probability 1; ``radii`` out of 2¹²⁸."""
    lift = GUARD + dimension * (2 * len(radii) + 1).bit_length()
    weights = [(weight << lift) // (2 * r + 1) ** dimension for r, weight in enumerate(radii)]
    return list(accumulate(reversed(weights)))[::-1], 1 << (BITS + lift)


@dataclass(frozen=True, eq=False)  # not slotted: caches what all shifts share
class BoxLosses:
    """Losses of box noise with weights ``radii`` of the half-widths, out of 2¹²⁸, in ``dimension`` dimensions."""

    radii: list[int]
    dimension: int
    _ratios_by_distance: dict[int, tuple[Floats, float]] = field(default_factory=dict)

    @cached_property
    def _norm_weights(self) -> tuple[list[int], Floats]:
        """V in fine units, and as probabilities."""
        weights, whole = point_weights(self.radii, self.dimension)
        return weights, np.array([weight / whole for weight in weights])

    def atoms_for_shift(self, shift: int) -> Atoms:
        """Return the loss distribution of (X, X + shift·(1, …, 1)); the reverse pair has the same distribution.

        Raises ``InputError`` if the shift is so large that there are too many pairs of distances.
        """
        count = len(self.radii)
        if not count * shift <= MOST_PAIRS:
            raise InputError("sensitivity", shift, f"at most {MOST_PAIRS // count} for this noise", "coarser units")
        probabilities, differences = self._norm_weights[1], range(min(shift, count - 1) + 1)
        points = [self._point_counts(difference, shift) for difference in range(shift + 1)]
        weight_log_ratios = [self._log_weight_ratios(difference) for difference in differences]
        near = [
            points[difference][: count - difference] * probabilities[: count - difference] for difference in differences
        ]
        far = [points[difference][: count - difference] * probabilities[difference:] for difference in differences[1:]]
        losses = np.concatenate(
            [ratio for ratio, _ in weight_log_ratios] + [-ratio for ratio, _ in weight_log_ratios[1:]]
        )
        infinite = 0.0
        for difference, counts in enumerate(points):
            start = max(count - difference, 0)
            infinite += float(np.dot(counts[start:], probabilities[start:]))
        slack = max(slack for _, slack in weight_log_ratios) + SMALLEST_TABLE_LOSS
        atoms = Atoms.merge_losses(
            losses,
            np.concatenate([*near, *far]),
            infinite_mass=infinite,
            reverse_infinity_mass=infinite,
            rounding_error_bound=slack,
        )
        return Atoms(
            atoms.losses,
            atoms.masses,
            infinite,
            infinite,
            slack,
            relative_mass_error=MASS_ROUNDING + len(near[0]) * ROUND_OFF,
        )

    def _point_counts(self, difference: int, shift: int) -> Floats:
        """Return the number of points at distance a from 0 and a + ``apart`` from the corner, for a = 0..N."""
        lengths = 2 * np.arange(len(self.radii), dtype=np.float64) + (difference - shift + 1)
        return shared_point_counts(lengths, self.dimension, one_end=difference == shift)

    def _log_weight_ratios(self, apart: int) -> tuple[Floats, float]:
        """Return log v(a) / v(a + apart) for a = 0..N − apart, and a bound on their rounding error."""
        if apart not in self._ratios_by_distance:
            weights = self._norm_weights[0]
            pairs = list(zip(weights[: len(weights) - apart], weights[apart:], strict=True))
            losses, slack = snap_losses(weight_log_ratios(pairs), ())
            self._ratios_by_distance[apart] = np.where(np.abs(losses) < SMALLEST_TABLE_LOSS, 0.0, losses), slack
        return self._ratios_by_distance[apart]


MOST_DIMENSIONS = 16
BOX_PRECISION = 256
"""Binary digits of sums over half-widths, rounded up: by less than 2⁻²⁰⁰ in total."""


@dataclass(frozen=True, repr=False)  # not slotted: caches sums over half-widths
class BoxTable:
    """X = (X_1, …, X_d): R = |S|, S from ``radii``, then each X_i uniform on {−R, …, R}, independent given R.

    All points with the same largest |x_i| are equally likely, and more likely if it is smaller: the K-norm mechanism of
    Hardt and Talwar for the cube, with any profile. Errors, quantiles and widths refer to a single X_i. Only the whole
    vector is private, so a single X_i cannot be drawn.

    ``loss(s)`` covers shifts of every X_i by up to s, for any neighboring relation that bounds the changes by s.

    Raises ``InputError`` unless ``radii`` is finite and 2 ≤ d ≤ 16.

    >>> box = BoxTable(NoiseTable(2**127, (2**126,)), dimension=2)
    >>> box.largest_magnitude, box.mean_absolute
    (1.0, 0.3333333333333333)
    """

    radii: NoiseTable
    dimension: int

    tail: ClassVar[None] = None
    is_unimodal: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.radii.tail is not None:
            raise InputError("radii", self.radii, "a finite table", "an infinite table has an unbounded box")
        if not 2 <= check_integer("dimension", self.dimension) <= MOST_DIMENSIONS:
            raise InputError("dimension", self.dimension, f"a whole number from 2 to {MOST_DIMENSIONS}")

    def __repr__(self) -> str:
        return f"BoxTable({self.dimension} numbers, half-widths up to {len(self.radii.half)})"

    @cached_property
    def _radius_weights(self) -> list[int]:
        """P(R = 0), P(R = 1), … out of 2¹²⁸."""
        return [self.radii.center, *(2 * weight for weight in self.radii.half)]

    @cached_property
    def _box_losses(self) -> BoxLosses:
        return BoxLosses(self._radius_weights, self.dimension)

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
        lift = BOX_PRECISION - 128
        up = [-((-weight * r << lift) // (2 * r + 1)) for r, weight in enumerate(self._radius_weights)]
        down = [(weight << lift) // (2 * r + 1) for r, weight in enumerate(self._radius_weights)]
        return tuple(list(accumulate(reversed(part), initial=0))[::-1][1:] for part in (up, down))  # type: ignore[return-value]

    def survival_probability(self, x: int) -> Fraction:
        """Return P(X_i > x) for x ≥ 0, at most 2⁻²⁰⁰ above it: Σ over r > x of P(R = r) (r − x)/(2r + 1)."""
        if x >= len(self._radius_weights):
            return Fraction(0)
        up, down = self._tail_sums
        return Fraction(up[x] - x * down[x], 1 << BOX_PRECISION)

    def positive_probabilities(self) -> Floats:
        """Return P(X_i = 1), P(X_i = 2), … in floats."""
        _, down = self._tail_sums
        return np.array([weight / (1 << BOX_PRECISION) for weight in down[:-1]])

    def radius_probabilities(self) -> Floats:
        """Return P(R = 0), P(R = 1), … in floats."""
        return np.array([weight / TOTAL for weight in self._radius_weights])

    @cached_property
    def exact_mean_absolute(self) -> Fraction:
        """E|X_i| = Σ P(R = r) r(r+1)/(2r+1), rounded up by at most a factor 1 + 2⁻²⁰⁰."""
        lift = BOX_PRECISION - 128
        terms = (-((-weight * r * (r + 1) << lift) // (2 * r + 1)) for r, weight in enumerate(self._radius_weights))
        return Fraction(sum(terms), 1 << BOX_PRECISION)

    @cached_property
    def exact_mean_squared(self) -> Fraction:
        """E X_i² = Σ P(R = r) r(r+1)/3."""
        return Fraction(sum(weight * r * (r + 1) for r, weight in enumerate(self._radius_weights)), 3 * TOTAL)

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
