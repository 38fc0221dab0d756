"""Costs d(x_i, y_j)^p between points with coordinates; the matrix is never built unless somebody asks for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from tightrope.errors import InputError
from tightrope.numerics.arrays import Floats, Integers, finite_array
from tightrope.transport.costs.costs import Cost, Marks
from tightrope.transport.costs.real_line import ceiling_of, raised

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

    def least(self) -> float:
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
