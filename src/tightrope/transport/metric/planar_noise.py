"""Planar Laplace noise on a grid: exactly ε·d private, certified from the integers that are drawn from."""

from __future__ import annotations

import math

import numpy as np

from tightrope.errors import InputError
from tightrope.numerics.arrays import Floats
from tightrope.numerics.checks import positive, whole
from tightrope.transport.costs.lattices import grid
from tightrope.transport.metric.metric_privacy import MetricMechanism

EPSILON_MARGIN = 1e-9
"""Relative: how much less than ε the kernel uses, so that roundings of its table stay within ε."""
KERNEL_REACH = 45.0
"""Beyond the grid by this over ε, the kernel has e^−45 of its mass at most, per place."""
LARGEST_STRETCH = 50.0
"""Largest ε times diameter: weights stay above 2³⁰ units of 2⁻¹²⁸."""
MOST_CELLS, MOST_REACH = 900, 3000
METRICS = ("euclidean", "cityblock")


def planar_laplace(shape: tuple[int, int], epsilon: float, *, metric: str = "euclidean") -> MetricMechanism:
    """The map x ↦ the nearest grid point to x + Z with P(Z = z) ∝ e^{−ε ‖z‖} on all of ℤ².

    The normaliser is the same at every x, so log-ratios are at most ε d(x, x′): the full ε, not half of it as for the
    exponential mechanism on the grid alone. What falls outside goes to the edge, coordinate by coordinate
    (post-processing). Points are numbered row by row; distances count cells.

    Raises ``InputError`` for shapes other than two numbers, more than 900 cells, ε times the diameter above 50 (the
    noise would never cross the grid: take a coarser one), and an ε so small that the kernel reaches over 3000 cells.

    >>> noisy = planar_laplace((3, 4), 1.0)
    >>> noisy.epsilon <= 1.0, noisy.matrix.shape
    (True, (12, 12))
    """
    height, width = _checked_shape(shape)
    epsilon = positive("epsilon", epsilon)
    cost = grid_distances((height, width), metric)
    if not epsilon * float(cost.max()) <= LARGEST_STRETCH:
        raise InputError("epsilon", epsilon, f"at most {LARGEST_STRETCH / float(cost.max()):g} on this grid")
    matrix = _clamped(_kernel((height, width), epsilon * (1 - EPSILON_MARGIN), metric), (height, width))
    found = MetricMechanism.of(matrix, cost)
    if not found.epsilon <= epsilon:
        raise InputError("epsilon", epsilon, f"at least {found.epsilon!r}, what the table's rounding allows")
    return found


def grid_distances(shape: tuple[int, int], metric: str = "euclidean") -> Floats:
    """Distances between the points of a grid, numbered row by row, in cells, shape [n, n].

    ``metric``: "euclidean" or "cityblock"; raises ``InputError`` for another.

    >>> grid_distances((1, 3)).tolist()[0]
    [0.0, 1.0, 2.0]
    """
    if metric not in METRICS:
        raise InputError("metric", metric, f"one of {list(METRICS)}")
    return grid(_pair(shape), metric=metric).matrix()


def _norm(down: Floats, right: Floats, metric: str) -> Floats:
    return np.asarray(np.hypot(down, right) if metric == "euclidean" else np.abs(down) + np.abs(right))


def _checked_shape(shape: tuple[int, int]) -> tuple[int, int]:
    height, width = _pair(shape)
    if not 2 <= height * width <= MOST_CELLS:
        raise InputError("shape", shape, f"2 to {MOST_CELLS} cells", "take larger cells")
    return height, width


def _pair(shape: tuple[int, int]) -> tuple[int, int]:
    if not isinstance(shape, tuple) or len(shape) != 2:
        raise InputError("shape", shape, "a pair of whole numbers (height, width)")
    return whole("height", shape[0]), whole("width", shape[1])


def _kernel(shape: tuple[int, int], epsilon: float, metric: str) -> Floats:
    """e^{−ε‖z‖} for |z| up to the grid's size plus the reach, shape [2R + 1, 2R + 1]."""
    reach = max(shape) + math.ceil(KERNEL_REACH / epsilon)
    if not reach <= MOST_REACH:
        remedy = "take larger cells: epsilon is per cell"
        raise InputError("epsilon", epsilon, f"at least {KERNEL_REACH / (MOST_REACH - max(shape)):g}", remedy)
    axis = np.arange(-reach, reach + 1, dtype=np.float64)
    return np.exp(-epsilon * _norm(axis[:, None], axis[None, :], metric))


def _clamped(kernel: Floats, shape: tuple[int, int]) -> Floats:
    """P(y | x) for x, y on the grid: sums of the kernel over what is clamped to y, shape [n, n]."""
    height, width = shape
    by_rows = _gathered(kernel, height)
    both = _gathered(np.moveaxis(by_rows, 2, 0).reshape(len(kernel), -1), width)
    cells = both.reshape(width, width, height, height).transpose(2, 0, 3, 1).reshape(height * width, height * width)
    return np.asarray(cells / cells.sum(axis=1, keepdims=True))


def _gathered(kernel: Floats, size: int) -> Floats:
    """Sums over the first axis of what moves a to b on a line of ``size`` points with clamped ends, [a, b, rest]."""
    reach, out = len(kernel) // 2, np.empty((size, size, kernel.shape[1]))
    for a in range(size):
        for b in range(size):
            low = 0 if b == 0 else reach + b - a
            high = len(kernel) if b == size - 1 else reach + b - a + 1
            out[a, b] = kernel[low:high].sum(axis=0)
    return out
