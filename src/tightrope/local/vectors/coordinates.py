"""Means of vectors in a cube: each person reports a few neighbouring coordinates, beginning at a random one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tightrope.certificates import Guarantee
from tightrope.errors import InputError
from tightrope.local.mechanisms.hybrid import Mixture, hybrid
from tightrope.local.parts.estimates import Shares, deviations
from tightrope.local.parts.odds import checked_epsilon
from tightrope.local.parts.values import categories, reals, report_rows
from tightrope.numerics.arrays import Floats
from tightrope.numerics.checks import whole
from tightrope.numerics.rounding import rounded
from tightrope.randomness.integers import below
from tightrope.randomness.source import Source
from tightrope.randomness.stream import Stream

if TYPE_CHECKING:
    from tightrope.privacy.loss import PrivacyLoss

PER_COORDINATE = 2.5
"""The ε a coordinate should have at least (Wang et al. 2019, §4.2; it concerns variance only)."""


@dataclass(frozen=True, slots=True)
class VectorMean:
    """``count`` of ``dimension`` coordinates, neighbours in a circle, each through ``part``.

    A report is a row: where it begins, then a number of ``part`` for each coordinate. The beginning is uniform whatever
    the vector is, so it tells nothing.
    """

    epsilon: float
    dimension: int
    count: int
    part: Mixture

    @property
    def loss(self) -> PrivacyLoss:
        """``count`` reports of one number each: two vectors may differ in all coordinates."""
        return self.count * self.part.loss

    @property
    def guarantee(self) -> Guarantee:
        """The realised (ε, 0, η) of all ``count`` numbers, rounded up."""
        epsilon = rounded(self.count * self.part.guarantee.epsilon, "up")
        return Guarantee(epsilon, 0.0, min(1.0, self.loss.total_variation()))

    def perturb(self, values: ArrayLike, randomness: Source | None = None) -> NDArray[np.uint32]:
        """Rows, shape [n, 1 + count], for vectors of shape [n, dimension]; raises ``InputError`` for other shapes, and
        unless all numbers lie between the ends.
        """
        vectors, randomness = self._vectors(values), randomness or Stream()
        begin = below(self.dimension, len(vectors), randomness)
        out = np.empty((len(vectors), 1 + self.count), dtype=np.uint32)
        out[:, 0] = begin
        for place in range(self.count):
            chosen = vectors[np.arange(len(vectors)), (begin + place) % self.dimension]
            out[:, 1 + place] = self.part.perturb(chosen, randomness)
        return out

    def _vectors(self, values: ArrayLike) -> Floats:
        array = np.asarray(values)
        if array.ndim != 2 or array.shape[1] != self.dimension or array.dtype.kind not in "iuf":
            expected = f"real numbers of shape [n, {self.dimension}]"
            raise InputError("type and shape of values", (str(array.dtype), array.shape), expected)
        reals("values", array.ravel(), self.part.lower, self.part.upper)  # all of them, not those that are asked for
        return array.astype(np.float64)

    def estimate(self, reports: ArrayLike, *, confidence: float = 0.95, simultaneous: bool = False) -> Shares:
        """The mean of each coordinate among those who reported it, shape [dimension].

        Each is unbiased: who reports it is random. Raises ``InputError`` where fewer than two people reported one.
        """
        rows = self._rows(reports)
        where = (rows[:, :1] + np.arange(self.count)) % self.dimension
        decoded = np.stack([self.part.decode(column) for column in rows[:, 1:].T], axis=1)
        width = deviations(confidence, of=self.dimension if simultaneous else 1)
        value, square, people = _means(where.ravel(), decoded.ravel(), self.dimension)
        least = np.array([self.part.least_spread(one) for one in value.tolist()])
        half = width * np.sqrt(np.maximum(square, least) / people)
        return Shares(value, value - half, value + half, len(rows), confidence, simultaneous)

    def _rows(self, reports: ArrayLike) -> NDArray[np.int64]:
        rows = report_rows(reports, 1 + self.count)
        categories("first coordinates", rows[:, 0], self.dimension)
        return rows.astype(np.int64)


def _means(where: NDArray[Any], decoded: Floats, dimension: int) -> tuple[Floats, Floats, NDArray[np.int64]]:
    """Mean and variance of the reports on each coordinate, and how many there are."""
    people = np.bincount(where, minlength=dimension)
    if not np.all(people > 1):
        fewest = int(people.min())
        raise InputError("reports of a coordinate", fewest, "at least 2", "ask more people, or for fewer coordinates")
    value = np.bincount(where, decoded, dimension) / people
    square = np.bincount(where, (decoded - value[where]) ** 2, dimension) / (people - 1)
    return np.asarray(value), np.asarray(square), people


def vector_mean(
    epsilon: float, dimension: int, *, between: tuple[float, float] = (-1.0, 1.0), count: int | None = None
) -> VectorMean:
    """The mean of vectors in a cube, all of whose coordinates lie in ``between``, ε-LDP for any two of them.

    For vectors of bounded length there is ``ball_mean``: its squared error grows with the dimension, this one with the
    dimension's square (at ε = 1 and 100 coordinates it is 66 times as large, on unit vectors).

    ``count`` coordinates a person, by default ε / 2.5 of them but one at least, each by ``hybrid`` with ε / count.
    Raises ``InputError`` unless ε > 0 is finite, dimension ≥ 1 and 1 ≤ count ≤ dimension.

    >>> import numpy as np
    >>> mechanism = vector_mean(1.0, 3)
    >>> rows = mechanism.perturb(np.tile([0.5, 0.0, -0.5], (9000, 1)))
    >>> mechanism.estimate(rows).value.shape, mechanism.loss.delta(1.0)
    ((3,), 0.0)
    """
    epsilon, size = checked_epsilon(epsilon), whole("dimension", dimension)
    usual = max(1, min(size, int(epsilon / PER_COORDINATE)))
    number = usual if count is None else whole("count", count)
    if not number <= size:
        raise InputError("count", count, f"at most dimension={size}", "nobody has more coordinates to report")
    return VectorMean(epsilon, size, number, hybrid(epsilon / number, between=between))
