"""A good start for arc pricing: solve between boxes of points, then price points with the potentials of their boxes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tightrope.numerics.arrays import Floats, Integers
from tightrope.transport.costs.costs import Cost, Matrix
from tightrope.transport.costs.point_clouds import Points
from tightrope.transport.libraries.pot import simplex
from tightrope.transport.solvers.north_west import staircase

BOXES = 576
"""About so many boxes: 24 × 24 in the plane."""
NEIGHBOURS = 12
"""Arcs of least reduced cost that every point brings."""


@dataclass(frozen=True, slots=True, eq=False)
class Boxes:
    """Points in boxes: the box of every point, and for every box its mass and centre of mass."""

    home: Integers
    mass: Floats
    centre: Floats


def boxed(places: Floats, masses: Floats) -> Boxes:
    """Boxes of equal size that cover the points; empty ones are left out."""
    low, span = places.min(axis=0), np.ptp(places, axis=0)
    sides = max(2, round(BOXES ** (1 / places.shape[1])))
    steps = np.minimum(((places - low) / np.where(span > 0, span, 1) * sides).astype(np.int64), sides - 1)
    _, home = np.unique(steps, axis=0, return_inverse=True)
    home = home.ravel()
    mass = np.bincount(home, masses).astype(np.float64, copy=False)
    centre = np.stack([np.bincount(home, masses * axis) / mass for axis in places.T], axis=1)
    return Boxes(home, mass, centre)


def first_arcs(cost: Points, source: Floats, target: Floats) -> tuple[Integers, Integers]:
    """Pairs that hold a coupling, and for every point those of least reduced cost at the potentials of the boxes."""
    here, there = boxed(cost.x, source), boxed(cost.y, target)
    between = Matrix(Points(here.centre, there.centre, cost.metric, cost.exponent).matrix())
    _, coarse, _ = simplex(here.mass, there.mass, between.values)
    rows = Points(cost.x, there.centre, cost.metric, cost.exponent).row_room(between.column_room(coarse))
    columns = cost.column_room(rows)
    mirrored = Points(cost.y, cost.x, cost.metric, cost.exponent)
    near, far = _cheapest(cost, columns), _cheapest(mirrored, rows)
    return _joined(_some_coupling(here, there, source, target), near, (far[1], far[0]))


def _some_coupling(here: Boxes, there: Boxes, source: Floats, target: Floats) -> tuple[Integers, Integers]:
    """The north-west corner rule with points in the order of their boxes: it makes the first problem feasible."""
    rows, columns = np.argsort(here.home, kind="stable"), np.argsort(there.home, kind="stable")
    stairs = staircase(source[rows], target[columns])
    return rows[stairs.rows], columns[stairs.columns]


def _joined(*pairs: tuple[Integers, Integers]) -> tuple[Integers, Integers]:
    return np.concatenate([one for one, _ in pairs]), np.concatenate([other for _, other in pairs])


def _cheapest(cost: Cost, v: Floats) -> tuple[Integers, Integers]:
    """For every row the columns of least c_ij − v_j."""
    count = min(NEIGHBOURS, cost.shape[1])
    # copies, since a slice would keep the block alive: all of them are the matrix that is not to be built
    columns = [np.argpartition(costs - v, count - 1, axis=1)[:, :count].copy() for _, costs in cost.blocks()]
    return np.repeat(np.arange(cost.shape[0]), count), np.concatenate(columns).ravel()
