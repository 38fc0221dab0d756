"""Exact integer noise for several numbers at once, in the shape of a box: a common half-width, then a point in it."""

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
from tightrope.mechanisms.discrete.integer_weights import first_at_most, symmetric_quantile
from tightrope.mechanisms.discrete.noise_table import NoiseTable
from tightrope.mechanisms.discrete.table_loss import NOTHING, log_ratios, snapped
from tightrope.numerics.arrays import Floats
from tightrope.numerics.checks import inner_probability, whole
from tightrope.numerics.rounding import ROUND_OFF
from tightrope.randomness.alias_sampler import BITS, TOTAL
from tightrope.randomness.bits import Source, Stream
from tightrope.randomness.integers import below_each

# How many points of ℤ^d have one distance from 0 and another from the corner s·(1, …, 1); distance: the largest
# |x_i|.
#
# For distances a and b = a + j, |j| ≤ s, each coordinate lies in an interval of V = a + b − s + 1 whole numbers.
# Where |j| < s, one of its ends has distance b from the corner and the other one distance a from 0, and no inner
# point has either: a point needs both ends, which are V^d − 2 (V−1)^d + (V−2)^d (one, where V = 1). Where |j| = s,
# one of the ends has both distances: V^d − (V−1)^d. Sums of positive terms: nothing cancels, in floats as little as
# in whole numbers.

Number = TypeVar("Number", int, Floats)


def with_one_end(inner: Number, dimension: int) -> Number:
    """(m+1)^d − m^d for m = V − 1 ≥ 0.

    >>> with_one_end(2, 3) == 3**3 - 2**3
    True
    """
    found = inner * 0 + 1
    for k in range(1, dimension):
        found = found + comb(dimension, k) * inner**k
    return found


def with_both_ends(inner: Number, dimension: int) -> Number:
    """(m+1)^d − 2 m^d + (m−1)^d for m = V − 1 ≥ 1.

    >>> with_both_ends(2, 3) == 3**3 - 2 * 2**3 + 1
    True
    """
    found = inner * 0
    for k in range(2, dimension + 1, 2):
        found = found + 2 * comb(dimension, k) * inner ** (dimension - k)
    return found


def shared_floats(lengths: Floats, dimension: int, *, one_end: bool) -> Floats:
    """The number of points for each V, to a few units in the last place; none where V < 1."""
    inner = np.maximum(lengths - 1, 0.0)
    many = (with_one_end if one_end else with_both_ends)(inner, dimension)
    return np.where(lengths > 1, many, (lengths == 1).astype(np.float64))


# The privacy loss of noise in the shape of a box, at the corner of all shifts, from whole weights.
#
# P(x) = v(‖x‖), ‖x‖ the largest |x_i|, v falling. Of all shifts by at most s in each coordinate the corner s·(1, …,
# 1) loses most at every ε (docs/proofs/box.md), and all corners are alike. Points are gathered by (‖x‖, ‖x −
# corner‖), which ``box_points`` counts; the pair that is mirrored has the loss of the other sign.
#
# **Rounding.** v(a) = Σ_{r ≥ a} P(R = r) / (2r+1)^d in units so fine that what is rounded down is below 2⁻¹⁰⁰ of it;
# losses are logarithms of quotients of these whole numbers (``integer_losses``). Masses are products of two doubles,
# each right to a few units in the last place, and sums of such, one after the other: within ``MASS_ROUNDING`` and a
# unit for each term of the truth.

GUARD = 128
"""Binary digits beyond those of the smallest weight."""
MOST_PAIRS = 1 << 22
"""Pairs of distances that are gone through: half a minute."""
MASS_ROUNDING = 2e-14
"""Relative error of a mass, within sixteen units of 2⁻⁵³, and what sums in pairs of up to 2²² of them add."""


def point_weights(radii: list[int], dimension: int) -> tuple[list[int], int]:
    """v(0), v(1), …, v(N), rounded down, and what stands for probability 1; ``radii`` out of 2¹²⁸."""
    lift = GUARD + dimension * (2 * len(radii) + 1).bit_length()
    each = [(weight << lift) // (2 * r + 1) ** dimension for r, weight in enumerate(radii)]
    return list(accumulate(reversed(each)))[::-1], 1 << (BITS + lift)


@dataclass(frozen=True, eq=False)  # not slotted: what all shifts share is kept
class BoxLosses:
    """Of the chances ``radii`` of half-widths, out of 2¹²⁸, in so many dimensions."""

    radii: list[int]
    dimension: int
    _known: dict[int, tuple[Floats, float]] = field(default_factory=dict)

    @cached_property
    def _weights(self) -> tuple[list[int], Floats]:
        """V in fine units, and as probabilities."""
        weights, whole = point_weights(self.radii, self.dimension)
        return weights, np.array([weight / whole for weight in weights])

    def atoms(self, shift: int) -> Atoms:
        """Law of log P/Q under P for P = law of X, Q = law of X + shift·(1, …, 1); the reverse pair has the same law.

        Raises ``InputError`` where the shift is so large that there are too many pairs of distances.
        """
        count = len(self.radii)
        if not count * shift <= MOST_PAIRS:
            raise InputError("sensitivity", shift, f"at most {MOST_PAIRS // count} for this noise", "coarser units")
        chances, reached = self._weights[1], range(min(shift, count - 1) + 1)
        points = [self._points(apart, shift) for apart in range(shift + 1)]
        falls = [self._falls(apart) for apart in reached]
        near = [points[apart][: count - apart] * chances[: count - apart] for apart in reached]
        far = [points[apart][: count - apart] * chances[apart:] for apart in reached[1:]]
        losses = np.concatenate([fall for fall, _ in falls] + [-fall for fall, _ in falls[1:]])
        lost = sum(float(np.dot(own[max(count - apart, 0) :], chances[max(count - apart, 0) :]))
                   for apart, own in enumerate(points))  # fmt: skip
        slack = max(slack for _, slack in falls) + NOTHING
        found = Atoms.gather(losses, np.concatenate([*near, *far]), infinite_mass=lost, opposite_mass=lost, slack=slack)
        return Atoms(found.losses, found.masses, lost, lost, slack, inexact=MASS_ROUNDING + len(near[0]) * ROUND_OFF)

    def _points(self, apart: int, shift: int) -> Floats:
        """How many points are at distance a = 0..N from 0 and a + ``apart`` from the corner."""
        lengths = 2 * np.arange(len(self.radii), dtype=np.float64) + (apart - shift + 1)
        return shared_floats(lengths, self.dimension, one_end=apart == shift)

    def _falls(self, apart: int) -> tuple[Floats, float]:
        """Log v(a) / v(a + apart) for a = 0..N − apart, and what rounding may have done to them."""
        if apart not in self._known:
            weights = self._weights[0]
            pairs = list(zip(weights[: len(weights) - apart], weights[apart:], strict=True))
            losses, slack = snapped(log_ratios(pairs), ())
            self._known[apart] = np.where(np.abs(losses) < NOTHING, 0.0, losses), slack
        return self._known[apart]


MOST_DIMENSIONS = 16
BOX_PRECISION = 256
"""Binary digits of sums over half-widths, which are rounded up: by less than 2⁻²⁰⁰ in all."""


@dataclass(frozen=True, repr=False)  # not slotted: sums over half-widths are kept
class BoxTable:
    """X = (X_1, …, X_d): R = |S|, S from ``radii``, then each X_i uniform on {−R, …, R}, independently given R.

    Every point of one largest |x_i| is equally likely, and likelier the smaller that is: the K-norm mechanism of Hardt
    and Talwar for the cube, with any profile. What is said of one number – its errors, quantiles, widths – is said of
    a single X_i; only all of them together are private, so no single one can be drawn.

    ``loss(s)``: all X_i shifted by up to s each. Add-remove, or whatever moves each number by at most s.

    Raises ``InputError`` unless ``radii`` ends somewhere and 2 ≤ d ≤ 16.

    >>> box = BoxTable(NoiseTable(2**127, (2**126,)), dimension=2)
    >>> box.worst, box.mean_absolute
    (1.0, 0.3333333333333333)
    """

    radii: NoiseTable
    dimension: int

    tail: ClassVar[None] = None
    is_unimodal: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.radii.tail is not None:
            raise InputError("radii", self.radii, "a table that ends", "an endless one has no largest box")
        if not 2 <= whole("dimension", self.dimension) <= MOST_DIMENSIONS:
            raise InputError("dimension", self.dimension, f"a whole number from 2 to {MOST_DIMENSIONS}")

    def __repr__(self) -> str:
        return f"BoxTable({self.dimension} numbers, half-widths up to {len(self.radii.half)})"

    @cached_property
    def _widths(self) -> list[int]:
        """P(R = 0), P(R = 1), … out of 2¹²⁸."""
        return [self.radii.centre, *(2 * weight for weight in self.radii.half)]

    @cached_property
    def _losses(self) -> BoxLosses:
        return BoxLosses(self._widths, self.dimension)

    def atoms(self, shift: int) -> Atoms:
        """Law of the privacy loss of (X, X + shift·(1, …, 1)), which dominates every shift of at most that each."""
        return self._losses.atoms(whole("shift", shift))

    def loss(self, sensitivity: int = 1) -> PrivacyLoss:
        """The privacy loss for all shifts of at most ``sensitivity`` in each number; both directions have one law."""
        atoms = self.atoms(whole("sensitivity", sensitivity))
        return PrivacyLoss.of(atoms, reverse=atoms)

    @cached_property
    def _tail_sums(self) -> tuple[list[int], list[int]]:
        """Σ over r > x of P(R = r) r/(2r+1), rounded up, and of P(R = r)/(2r+1), down; x = 0, 1, …; out of 2²⁵⁶."""
        lift = BOX_PRECISION - 128
        up = [-((-weight * r << lift) // (2 * r + 1)) for r, weight in enumerate(self._widths)]
        down = [(weight << lift) // (2 * r + 1) for r, weight in enumerate(self._widths)]
        return tuple(list(accumulate(reversed(part), initial=0))[::-1][1:] for part in (up, down))  # type: ignore[return-value]

    def survival(self, x: int) -> Fraction:
        """P(X_i > x) for x ≥ 0, at most 2⁻²⁰⁰ above it: Σ over r > x of P(R = r) (r − x)/(2r + 1)."""
        if x >= len(self._widths):
            return Fraction(0)
        up, down = self._tail_sums
        return Fraction(up[x] - x * down[x], 1 << BOX_PRECISION)

    def listed(self) -> Floats:
        """P(X_i = 1), P(X_i = 2), … in floats."""
        _, down = self._tail_sums
        return np.array([weight / (1 << BOX_PRECISION) for weight in down[:-1]])

    def half_widths(self) -> Floats:
        """P(R = 0), P(R = 1), … in floats."""
        return np.array([weight / TOTAL for weight in self._widths])

    @cached_property
    def exact_mean_absolute(self) -> Fraction:
        """E|X_i| = Σ P(R = r) r(r+1)/(2r+1), at most 2⁻²⁰⁰ of it above it."""
        lift = BOX_PRECISION - 128
        terms = (-((-weight * r * (r + 1) << lift) // (2 * r + 1)) for r, weight in enumerate(self._widths))
        return Fraction(sum(terms), 1 << BOX_PRECISION)

    @cached_property
    def exact_mean_squared(self) -> Fraction:
        """E X_i² = Σ P(R = r) r(r+1)/3."""
        return Fraction(sum(weight * r * (r + 1) for r, weight in enumerate(self._widths)), 3 * TOTAL)

    @property
    def mean_absolute(self) -> float:
        """E|X_i|."""
        return float(self.exact_mean_absolute)

    @property
    def worst(self) -> float:
        """The largest |X_i|."""
        return self.radii.worst

    def quantile(self, p: float) -> int:
        """The smallest x with P(X_i ≤ x) ≥ p; 1e−30 ≤ p < 1."""
        return symmetric_quantile(self.survival, p)

    def half_width(self, confidence: float) -> int:
        """The smallest w with P(|X_i| ≤ w) ≥ confidence."""
        outside = 1 - Fraction(inner_probability("confidence", confidence))
        return first_at_most(self.survival, outside / 2)

    def draw(self, size: int, randomness: Source | None = None) -> NDArray[np.int64]:
        """``size`` independent points, shape [size, dimension], exactly; from the operating system by default."""
        size, randomness = whole("size", size, at_least=0), randomness or Stream()
        half = np.abs(self.radii.sample(size, randomness))
        each = np.repeat(half, self.dimension)
        points: NDArray[np.int64] = below_each(2 * each + 1, randomness) - each
        return points.reshape(size, self.dimension)

    def sample(self, size: int, randomness: Source | None = None) -> NoReturn:
        """Raises ``InputError``: one number drawn by itself would not be what was certified."""
        del randomness
        remedy = "draw(size) gives all of them"
        raise InputError("size", size, f"a draw of all {self.dimension} numbers, for they share their noise", remedy)

    def to_data(self) -> dict[str, Any]:
        """Plain data: the table of the half-widths, and the dimension."""
        return {**self.radii.to_data(), "dimension": self.dimension}

    @classmethod
    def from_data(cls, data: dict[str, Any]) -> Self:
        """The inverse of :meth:`to_data`."""
        return cls(NoiseTable.from_data(data), data["dimension"])


AnyTable = NoiseTable | BoxTable
"""The noise of one number, or of several at once."""


def table_of(data: dict[str, Any]) -> AnyTable:
    """The table that ``to_data`` of either wrote."""
    return BoxTable.from_data(data) if "dimension" in data else NoiseTable.from_data(data)
