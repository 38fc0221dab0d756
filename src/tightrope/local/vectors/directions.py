"""Directions that a person and the collector make alike from a public number, so that a report need not hold them."""

from __future__ import annotations

import hashlib

import numpy as np
from scipy.special import ndtri

from tightrope.numerics.arrays import Floats, Integers
from tightrope.randomness.source import Words


def directions(seeds: Words, numbers: Integers, dimension: int) -> Floats:
    """Direction ``numbers[i]`` of ``seeds[i]``: a unit vector, shape [n, dimension].

    A Gaussian vector, divided by its length, from the SHAKE-128 stream of (seed, number): uniform on the sphere for
    whoever cannot tell that stream from random bits, and to the rounding of floats. Nothing here is secret, and the
    privacy of a report hangs on none of it.

    >>> seeds = np.array([7, 7, 8], dtype=np.uint64)
    >>> found = directions(seeds, np.array([0, 1, 0]), 3)
    >>> np.round(np.sum(found * found, axis=1), 12).tolist(), bool(np.all(found[0] == directions(seeds, [0] * 3, 3)[0]))
    ([1.0, 1.0, 1.0], True)
    """
    names = np.stack([seeds, np.asarray(numbers, dtype=np.uint64)], axis=1).astype("<u8").tobytes()
    rows = range(0, len(names), 16)
    stream = b"".join([hashlib.shake_128(names[at : at + 16]).digest(8 * dimension) for at in rows])
    words = np.frombuffer(stream, dtype="<u8").reshape(-1, dimension)
    normal = ndtri(((words >> np.uint64(11)) + 0.5) * 2.0**-53)
    return np.asarray(normal / np.linalg.norm(normal, axis=1, keepdims=True))


def axes_of(vectors: Floats) -> Floats:
    """Unit vectors of the same directions, shape [n, d]; the first axis for the zero vector.

    Never divides by a length of 0, and no square underflows.

    >>> axes_of(np.array([[3e-200, 4e-200], [0.0, 0.0]])).round(12).tolist()
    [[0.6, 0.8], [1.0, 0.0]]
    """
    largest = np.max(np.abs(vectors), axis=1, keepdims=True, initial=0.0)
    level = vectors / np.where(largest > 0, largest, 1.0)
    level[largest[:, 0] == 0, 0] = 1.0
    return np.asarray(level / np.linalg.norm(level, axis=1, keepdims=True))
