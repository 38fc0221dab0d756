"""W_∞ on a line: monotone rearrangement is optimal here too, and a half-line proves it. Linear memory, no solver."""

from __future__ import annotations

import math

import numpy as np

from tightrope.numerics.arrays import Floats
from tightrope.transport.costs.real_line import Line
from tightrope.transport.proofs.certificates import Cut
from tightrope.transport.proofs.result import Coupling, plan_of
from tightrope.transport.solvers.north_west import Staircase, staircase

LEFT_OUT = 1e-12
"""So much mass in all is not asked how far it moves."""
Marks = np.ndarray[tuple[int], np.dtype[np.bool_]]


def line_bottleneck(cost: Line, source: Floats, target: Floats) -> Coupling:
    """The monotone coupling without the slivers that roundings of the laws leave at its corners."""
    rows, columns = np.argsort(cost.x, kind="stable"), np.argsort(cost.y, kind="stable")
    stairs = staircase(source[rows], target[columns])
    lengths = cost.pairs(rows[stairs.rows], columns[stairs.columns])
    kept = (stairs.masses > 0) & ~_slivers(stairs, lengths)
    masses = _whole_rows(stairs, kept, source[rows])
    plan = plan_of(rows[stairs.rows], columns[stairs.columns], masses, cost.shape)
    worst = int(np.argmax(np.where(kept, lengths, -1.0)))
    i, j = int(rows[stairs.rows[worst]]), int(columns[stairs.columns[worst]])
    proof = _half_line(cost, i, j, source, target)
    return Coupling(plan, float(lengths[worst]), proof, math.inf, "monotone rearrangement")


def _slivers(stairs: Staircase, lengths: Floats) -> Marks:
    """The furthest entries that hold 1e−12 in all, but never the largest entry of a row or a column."""
    largest = np.zeros(stairs.rows[-1] + 1), np.zeros(stairs.columns[-1] + 1)
    for index, found in zip((stairs.rows, stairs.columns), largest, strict=True):
        np.maximum.at(found, index, stairs.masses)
    small = (stairs.masses < largest[0][stairs.rows]) & (stairs.masses < largest[1][stairs.columns])
    tiny = np.flatnonzero(small & (stairs.masses <= LEFT_OUT))
    furthest = tiny[np.argsort(-lengths[tiny], kind="stable")]
    marks = np.zeros(stairs.size, dtype=bool)
    marks[furthest[np.cumsum(stairs.masses[furthest]) <= LEFT_OUT]] = True
    return marks


def _whole_rows(stairs: Staircase, kept: Marks, source: Floats) -> Floats:
    """Masses without the slivers, rows stretched back to what they should hold."""
    masses = np.where(kept, stairs.masses, 0.0)
    held = np.bincount(stairs.rows, masses, len(source))
    stretch = source / np.where(held > 0, held, 1.0)
    found: Floats = masses * stretch[stairs.rows]
    return found


def _half_line(cost: Line, i: int, j: int, source: Floats, target: Floats) -> Cut:
    """Sources from x_i outwards hold more than the targets that stop short of y_j: some mass goes |x_i − y_j|."""
    upward = cost.x[i] <= cost.y[j]
    chosen = cost.x <= cost.x[i] if upward else cost.x >= cost.x[i]
    reached = cost.y < cost.y[j] if upward else cost.y > cost.y[j]
    surplus = float(source[chosen].sum() - target[reached].sum())
    pair = (np.array([i]), np.array([j]))
    return Cut(chosen, reached, surplus, float(cost.pairs(*pair)[0]))
