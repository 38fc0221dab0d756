"""The loop of row-wise choice, for numba where it is installed (see ``randomness.loops``)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tightrope.randomness.source import Words


def choose_by_row(words: Words, rows: NDArray[np.int64], layout: tuple[Any, ...], out: NDArray[np.int64]) -> int:
    """Outcomes of the alias table of each row into ``out``; how many words equal an edge.

    ``layout`` is (first column and shift of each row; edge, own and other outcome of each column).
    """
    starts, shifts, edges, own, other = layout
    ties = np.uint64(0)
    for i in range(len(words)):
        word, row = words[i], np.uint64(rows[i])
        column = starts[row] + (word >> shifts[row])
        edge, below, above = edges[column], own[column], other[column]
        ties += np.uint64(word == edge)
        out[i] = below if word < edge else above
    return int(ties)
