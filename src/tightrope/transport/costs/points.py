"""Costs d(x_i, y_j)^p between points with coordinates; the matrix is never built unless somebody asks for it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from tightrope.errors import InputError
from tightrope.numerics.arrays import Floats, Integers, finite_array
from tightrope.transport.costs.costs import Cost, Marks

# Costs |x_i − y_j|^p between real numbers: monotone rearrangement is optimal, whatever the size.


@dataclass(frozen=True, slots=True, eq=False)
class Line(Cost):
    """c_ij = |x_i − y_j|^exponent; x [n] and y [m] in any order."""

    x: Floats
    y: Floats
    exponent: float = 1.0

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.x), len(self.y)

    def ceiling(self) -> float:
        span = max(float(self.x.max() - self.y.min()), float(self.y.max() - self.x.min()))
        return ceiling_of(span, self.exponent)

    def pairs(self, rows: Integers, columns: Integers) -> Floats:
        return raised(np.abs(self.x[rows] - self.y[columns]), self.exponent)

    def block(self, rows: Integers) -> Floats:
        return raised(np.abs(self.x[rows, None] - self.y), self.exponent)

    def take(self, rows: Integers, columns: Integers) -> Self:
        return replace(self, x=self.x[rows], y=self.y[columns])

    def power(self, exponent: float) -> Self:
        return replace(self, exponent=self.exponent * exponent)


def ceiling_of(distance: float, exponent: float) -> float:
    """The power of one distance; infinite where floats end."""
    try:
        return float(distance**exponent)
    except OverflowError:
        return math.inf


def raised(distances: Floats, exponent: float) -> Floats:
    """distances^exponent; 1 and 2 are spared the slow general power."""
    if exponent == 1:
        return distances
    found: Floats = distances * distances if exponent == 2 else distances**exponent
    return found


def line(x: object, y: object | None = None) -> Line:
    """The cost |x_i − y_j| between real numbers; ``y`` is ``x`` where it is not given.

    Raises ``InputError`` where a place is not a finite number, or there is none.

    >>> line([1, 2, 3]).matrix().tolist()
    [[0.0, 1.0, 2.0], [1.0, 0.0, 1.0], [2.0, 1.0, 0.0]]
    """
    places = _places("x", x)
    return Line(places, places if y is None else _places("y", y))


def _places(name: str, values: object) -> Floats:
    return finite_array(name, values, 1, "a list of finite numbers", "places in the plane: transport.points")


Lengths = Callable[[Floats], Floats]


def _euclidean(steps: Floats) -> Floats:
    return np.sqrt(_squared(steps))


def _squared(steps: Floats) -> Floats:
    found: Floats = np.einsum("...k,...k->...", steps, steps)
    return found


def _cityblock(steps: Floats) -> Floats:
    found: Floats = np.abs(steps).sum(axis=-1)
    return found


def _chebyshev(steps: Floats) -> Floats:
    found: Floats = np.abs(steps).max(axis=-1)
    return found


METRICS: dict[str, Lengths] = {
    "chebyshev": _chebyshev,
    "cityblock": _cityblock,
    "euclidean": _euclidean,
    "sqeuclidean": _squared,
}
SQUARED = {"euclidean": 2.0**-480, "sqeuclidean": 2.0**-960}
"""Shorter ways may have lost digits, as their squares fell below the least float."""


@dataclass(frozen=True, slots=True, eq=False)
class Points(Cost):
    """c_ij = d(x_i, y_j)^exponent; x [n, k], y [m, k]."""

    x: Floats
    y: Floats
    metric: str
    exponent: float = 1.0

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.x), len(self.y)

    def ceiling(self) -> float:
        """The distance across the box around all points."""
        low = np.minimum(self.x.min(axis=0), self.y.min(axis=0))
        high = np.maximum(self.x.max(axis=0), self.y.max(axis=0))
        with np.errstate(over="ignore"):
            return ceiling_of(float(METRICS[self.metric](high - low)), self.exponent)

    def differ(self, rows: Integers, columns: Integers) -> Marks:
        return np.asarray((self.x[rows] != self.y[columns]).any(axis=1))

    def least_exact(self) -> float:
        """Squares of steps lose their digits first."""
        steps = SQUARED.get(self.metric, float(np.finfo(float).tiny))
        return max(float(np.finfo(float).tiny), ceiling_of(steps, self.exponent))

    def pairs(self, rows: Integers, columns: Integers) -> Floats:
        return raised(METRICS[self.metric](self.x[rows] - self.y[columns]), self.exponent)

    def block(self, rows: Integers) -> Floats:
        from scipy.spatial.distance import cdist

        between: Any = cdist  # its stubs know metrics as literals only
        return raised(between(self.x[rows], self.y, self.metric), self.exponent)

    def take(self, rows: Integers, columns: Integers) -> Self:
        return replace(self, x=self.x[rows], y=self.y[columns])

    def power(self, exponent: float) -> Self:
        return replace(self, exponent=self.exponent * exponent)


def points(x: object, y: object | None = None, *, metric: str = "euclidean") -> Points:
    """The cost d(x_i, y_j) between points, one a row of coordinates; ``y`` is ``x`` where it is not given.

    ``metric``: "euclidean", "cityblock", "chebyshev" or "sqeuclidean". Raises ``InputError`` for another metric, for
    coordinates that are not finite, and where x and y have unlike dimensions.

    >>> points([[0, 0], [3, 4]]).matrix().tolist()
    [[0.0, 5.0], [5.0, 0.0]]
    """
    known_metric(metric, METRICS)
    here = _coordinates("x", x)
    there = here if y is None else _coordinates("y", y)
    if here.shape[1] != there.shape[1]:
        raise InputError("y", there.shape, f"points with {here.shape[1]} coordinates, as x has")
    return Points(here, there, metric)


def known_metric(metric: str, known: dict[str, Lengths]) -> None:
    """Refuse a metric whose name is not among ``known``."""
    if metric not in known:
        raise InputError("metric", metric, "one of " + ", ".join(sorted(known)), "or give the costs as a matrix")


def _coordinates(name: str, values: object) -> Floats:
    return finite_array(
        name, values, 2, "a table of finite coordinates, one row a point", "real numbers on a line: transport.line"
    )
