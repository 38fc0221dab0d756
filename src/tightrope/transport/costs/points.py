"""Costs d(x_i, y_j)^p between points with coordinates, without building the matrix."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from tightrope.errors import InputError
from tightrope.numerics.arrays import Floats, Integers, finite_array
from tightrope.transport.costs.costs import BoolArray, Cost


@dataclass(frozen=True, slots=True, eq=False)
class Line(Cost):
    """Costs c_ij = |x_i − y_j|^exponent between real numbers x [n] and y [m], in any order.

    Monotone rearrangement is optimal, and is computed for any size.
    """

    x: Floats
    y: Floats
    exponent: float = 1.0

    @property
    def matrix_shape(self) -> tuple[int, int]:
        return len(self.x), len(self.y)

    def cost_upper_bound(self) -> float:
        span = max(float(self.x.max() - self.y.min()), float(self.y.max() - self.x.min()))
        return power_or_infinity(span, self.exponent)

    def pair_costs(self, rows: Integers, columns: Integers) -> Floats:
        return raise_distances(np.abs(self.x[rows] - self.y[columns]), self.exponent)

    def row_costs(self, rows: Integers) -> Floats:
        return raise_distances(np.abs(self.x[rows, None] - self.y), self.exponent)

    def select_points(self, rows: Integers, columns: Integers) -> Self:
        return replace(self, x=self.x[rows], y=self.y[columns])

    def raise_to_power(self, exponent: float) -> Self:
        return replace(self, exponent=self.exponent * exponent)


def power_or_infinity(distance: float, exponent: float) -> float:
    """Return the distance between two points to the power ``exponent``; ∞ on overflow."""
    try:
        return float(distance**exponent)
    except OverflowError:
        return math.inf


def raise_distances(distances: Floats, exponent: float) -> Floats:
    """Return distances^exponent; exponents 1 and 2 are computed without the slow general power."""
    if exponent == 1:
        return distances
    powers: Floats = distances * distances if exponent == 2 else distances**exponent
    return powers


def line(x: object, y: object | None = None) -> Line:
    """Return the cost |x_i − y_j| between real numbers; ``y`` defaults to ``x``.

    Raises ``InputError`` for values that are not finite, and for an empty list.

    >>> line([1, 2, 3]).to_matrix().tolist()
    [[0.0, 1.0, 2.0], [1.0, 0.0, 1.0], [2.0, 1.0, 0.0]]
    """
    sources = _parse_line_points("x", x)
    return Line(sources, sources if y is None else _parse_line_points("y", y))


def _parse_line_points(name: str, values: object) -> Floats:
    return finite_array(name, values, 1, "a list of finite numbers", "for points in the plane, use transport.points")


LengthFunction = Callable[[Floats], Floats]
"""Computes lengths [...] from coordinate differences [..., k]."""


def _squared_lengths(steps: Floats) -> Floats:
    squared_lengths: Floats = np.einsum("...k,...k->...", steps, steps)
    return squared_lengths


METRICS: dict[str, LengthFunction] = {
    "chebyshev": lambda steps: np.abs(steps).max(axis=-1),
    "cityblock": lambda steps: np.abs(steps).sum(axis=-1),
    "euclidean": lambda steps: np.sqrt(_squared_lengths(steps)),
    "sqeuclidean": _squared_lengths,
}
SMALLEST_EXACT_DISTANCES = {"euclidean": 2.0**-480, "sqeuclidean": 2.0**-960}
"""Smaller distances may be inexact, because squares underflow."""


@dataclass(frozen=True, slots=True, eq=False)
class Points(Cost):
    """Costs c_ij = d(x_i, y_j)^exponent between points x [n, k] and y [m, k]."""

    x: Floats
    y: Floats
    metric: str
    exponent: float = 1.0

    @property
    def matrix_shape(self) -> tuple[int, int]:
        return len(self.x), len(self.y)

    def cost_upper_bound(self) -> float:
        """Return the diagonal of the bounding box of all points."""
        low = np.minimum(self.x.min(axis=0), self.y.min(axis=0))
        high = np.maximum(self.x.max(axis=0), self.y.max(axis=0))
        with np.errstate(over="ignore"):
            return power_or_infinity(float(METRICS[self.metric](high - low)), self.exponent)

    def locations_differ(self, rows: Integers, columns: Integers) -> BoolArray:
        return np.asarray((self.x[rows] != self.y[columns]).any(axis=1))

    def smallest_exact_cost(self) -> float:
        """Return the threshold below which squares of coordinate differences may underflow."""
        smallest_distance = SMALLEST_EXACT_DISTANCES.get(self.metric, float(np.finfo(float).tiny))
        return max(float(np.finfo(float).tiny), power_or_infinity(smallest_distance, self.exponent))

    def pair_costs(self, rows: Integers, columns: Integers) -> Floats:
        return raise_distances(METRICS[self.metric](self.x[rows] - self.y[columns]), self.exponent)

    def row_costs(self, rows: Integers) -> Floats:
        from scipy.spatial.distance import cdist

        distance_matrix: Any = cdist  # its stubs accept metrics as literals only
        return raise_distances(distance_matrix(self.x[rows], self.y, self.metric), self.exponent)

    def select_points(self, rows: Integers, columns: Integers) -> Self:
        return replace(self, x=self.x[rows], y=self.y[columns])

    def raise_to_power(self, exponent: float) -> Self:
        return replace(self, exponent=self.exponent * exponent)


def points(x: object, y: object | None = None, *, metric: str = "euclidean") -> Points:
    """Return the cost d(x_i, y_j) between points, one for each row of coordinates; ``y`` defaults to ``x``.

    ``metric``: "euclidean", "cityblock", "chebyshev" or "sqeuclidean". Raises ``InputError`` for another metric, for
    coordinates that are not finite, and if x and y have different dimensions.

    >>> points([[0, 0], [3, 4]]).to_matrix().tolist()
    [[0.0, 5.0], [5.0, 0.0]]
    """
    check_metric(metric, METRICS)
    source_points = _parse_coordinates("x", x)
    target_points = source_points if y is None else _parse_coordinates("y", y)
    if source_points.shape[1] != target_points.shape[1]:
        raise InputError("y", target_points.shape, f"points with {source_points.shape[1]} coordinates, as x has")
    return Points(source_points, target_points, metric)


def check_metric(metric: str, known_metrics: dict[str, LengthFunction]) -> None:
    """Raise ``InputError`` for a metric that is not among ``known_metrics``."""
    if metric not in known_metrics:
        raise InputError(
            "metric", metric, "one of " + ", ".join(sorted(known_metrics)), "or give the costs as a matrix"
        )


def _parse_coordinates(name: str, values: object) -> Floats:
    return finite_array(
        name,
        values,
        2,
        "a table of finite coordinates, one row for each point",
        "for numbers on a line, use transport.line",
    )
