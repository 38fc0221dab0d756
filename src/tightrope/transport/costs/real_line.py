"""Costs |x_i − y_j|^p between real numbers: monotone rearrangement is optimal, whatever the size."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from tightrope.numerics.arrays import Floats, Integers, finite_array
from tightrope.transport.costs.costs import Cost


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
