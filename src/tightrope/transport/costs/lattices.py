"""Grids in any dimension: points are numbered as numpy flattens an array of that shape."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np

from tightrope.errors import InputError
from tightrope.numerics.arrays import Floats, Integers
from tightrope.numerics.checks import whole
from tightrope.transport.costs.costs import Cost
from tightrope.transport.costs.graphs import Graph
from tightrope.transport.costs.point_clouds import METRICS, Points, known_metric

Step = tuple[int, ...]


def grid(shape: Sequence[int] | int, *, metric: str = "cityblock") -> Cost:
    """The cost between the cells of a grid of that shape, with neighbouring cells at distance 1.

    "cityblock" and "chebyshev" (a king's moves) are metrics of the grid's edges: the coupling is a flow on them.
    "euclidean" and "sqeuclidean" are costs between points. Raises ``InputError`` for another metric or an empty shape.

    >>> grid((2, 3)).matrix()[0].tolist()
    [0.0, 1.0, 2.0, 1.0, 2.0, 3.0]
    """
    known_metric(metric, METRICS)
    sizes = tuple(whole(f"shape[{k}]", size) for k, size in enumerate(np.atleast_1d(shape).tolist()))
    if not sizes:
        raise InputError("shape", shape, "at least one number of cells", "for example (100, 100)")
    places = _cells(sizes)
    clouds = Points(places, places, metric)
    if metric not in METRIC_STEPS:
        return clouds
    joined = [_edges(sizes, step) for step in METRIC_STEPS[metric](len(sizes))]
    tails, heads = (np.concatenate(ends) for ends in zip(*joined, strict=True))
    return Graph(len(places), tails, heads, np.ones(len(tails)), clouds)


def _cells(sizes: Step) -> Floats:
    return np.moveaxis(np.indices(sizes, dtype=np.float64), 0, -1).reshape(-1, len(sizes))


def _cityblock_steps(dimension: int) -> list[Step]:
    return [tuple(int(k == axis) for k in range(dimension)) for axis in range(dimension)]


def _chebyshev_steps(dimension: int) -> list[Step]:
    """One of each pair of opposite moves of a king."""
    origin = (0,) * dimension
    return [step for step in product((-1, 0, 1), repeat=dimension) if step > origin]


METRIC_STEPS = {"cityblock": _cityblock_steps, "chebyshev": _chebyshev_steps}


def _edges(sizes: Step, step: Step) -> tuple[Integers, Integers]:
    """All pairs of cells that differ by ``step``."""
    numbers = np.arange(int(np.prod(sizes)), dtype=np.int64).reshape(sizes)
    here = tuple(slice(max(0, -d), size - max(0, d)) for d, size in zip(step, sizes, strict=True))
    there = tuple(slice(max(0, d), size - max(0, -d)) for d, size in zip(step, sizes, strict=True))
    return numbers[here].ravel(), numbers[there].ravel()
