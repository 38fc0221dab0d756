"""Exact integer noise for several numbers at once, in the shape of a box: a common half-width, then a point in it."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from typing import Any, ClassVar, NoReturn, Self

import numpy as np
from numpy.typing import NDArray

from tightrope.errors import InputError
from tightrope.mechanisms.tables.box_losses import BoxLosses
from tightrope.mechanisms.tables.table import NoiseTable
from tightrope.mechanisms.tables.tails import first_at_most, symmetric_quantile
from tightrope.numerics.arrays import Floats
from tightrope.numerics.checks import inner_probability, whole
from tightrope.privacy.laws.atoms import Atoms
from tightrope.privacy.loss import PrivacyLoss
from tightrope.randomness.choice import TOTAL
from tightrope.randomness.integers import below_each
from tightrope.randomness.source import Source
from tightrope.randomness.stream import Stream

MOST_DIMENSIONS = 16
FINE = 256
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
    def _beyond(self) -> tuple[list[int], list[int]]:
        """Σ over r > x of P(R = r) r/(2r+1), rounded up, and of P(R = r)/(2r+1), down; x = 0, 1, …; out of 2²⁵⁶."""
        lift = FINE - 128
        up = [-((-weight * r << lift) // (2 * r + 1)) for r, weight in enumerate(self._widths)]
        down = [(weight << lift) // (2 * r + 1) for r, weight in enumerate(self._widths)]
        return tuple(list(accumulate(reversed(part), initial=0))[::-1][1:] for part in (up, down))  # type: ignore[return-value]

    def survival(self, x: int) -> Fraction:
        """P(X_i > x) for x ≥ 0, at most 2⁻²⁰⁰ above it: Σ over r > x of P(R = r) (r − x)/(2r + 1)."""
        if x >= len(self._widths):
            return Fraction(0)
        up, down = self._beyond
        return Fraction(up[x] - x * down[x], 1 << FINE)

    def listed(self) -> Floats:
        """P(X_i = 1), P(X_i = 2), … in floats."""
        _, down = self._beyond
        return np.array([weight / (1 << FINE) for weight in down[:-1]])

    def half_widths(self) -> Floats:
        """P(R = 0), P(R = 1), … in floats."""
        return np.array([weight / TOTAL for weight in self._widths])

    @cached_property
    def exact_mean_absolute(self) -> Fraction:
        """E|X_i| = Σ P(R = r) r(r+1)/(2r+1), at most 2⁻²⁰⁰ of it above it."""
        lift = FINE - 128
        terms = (-((-weight * r * (r + 1) << lift) // (2 * r + 1)) for r, weight in enumerate(self._widths))
        return Fraction(sum(terms), 1 << FINE)

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
